// The last kernel of a wave of paths in the primal pass: the mean RGB of a pixel's samples and the fraction of rays that reach
// the background unscattered, as render_paths.wgsl has them.

#import bind/launch
#import bind/wave

@group(0) @binding(8) var<storage, read_write> image: array<vec4f>;

@compute @workgroup_size(RAY_GROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    let index = launch.first_pixel + (group.y * launch.groups_x + group.x) * RAY_GROUP + lane;
    if index >= launch.last_pixel {
        return;
    }
    var sum = vec4f(0.0);
    if launch.first_sample > 0u && launch.exposure == EXPOSURE_NONE {
        sum = image[index];
        if sum.w < 0.0 {
            return;
        }
    }
    let samples = launch.last_sample - launch.first_sample;
    for (var sample = 0u; sample < samples; sample++) {
        let path = (index - launch.first_pixel) * samples + sample;
        let flags = wave_word(path, WAVE_FLAGS);
        if (flags & IS_MASKED) != 0u {
            image[index] = vec4f(0.0, 0.0, 0.0, -1.0);
            return;
        }
        let radiance = wave_vector(path, WAVE_RADIANCE) * wave_number(path, WAVE_WEIGHT);
        sum += vec4f(radiance, select(0.0, 1.0, (flags & IS_STRAIGHT) != 0u));
    }
    if launch.last_sample == launch.spp && launch.exposure == EXPOSURE_NONE {
        sum = sum / f32(launch.spp);
    }
    image[index] = sum;
}
