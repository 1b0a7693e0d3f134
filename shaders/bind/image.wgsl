// The primal image of paths: for each pixel the mean RGB of its samples and the fraction of rays that reach the background
// unscattered, which is -1 for a masked pixel. Later dispatches over the same pixels continue the sums of earlier ones.

#import bind/launch

@group(0) @binding(8) var<storage, read_write> image: array<vec4f>;

// The pixel of an invocation; from `launch.last_pixel` on there is none.
fn image_index(group: vec3u, lane: u32) -> u32 {
    return launch.first_pixel + (group.y * launch.groups_x + group.x) * RAY_GROUP + lane;
}

// The sum over the samples of earlier dispatches; its last component is negative for a masked pixel.
fn image_begin(index: u32) -> vec4f {
    if launch.first_sample > 0u && launch.exposure == EXPOSURE_NONE {
        return image[index];
    }
    return vec4f(0.0);
}

fn image_mask(index: u32) {
    image[index] = vec4f(0.0, 0.0, 0.0, -1.0);
}

// Writes the sum; after a pixel's last sample the mean.
fn image_end(index: u32, sum: vec4f) {
    let is_mean = launch.last_sample == launch.spp && launch.exposure == EXPOSURE_NONE;
    image[index] = sum / select(1.0, f32(launch.spp), is_mean);
}
