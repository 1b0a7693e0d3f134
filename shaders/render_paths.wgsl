// The primal pass over a path-traced scene: the mean RGB of a pixel's samples and the fraction of rays that reach the
// background unscattered, which is -1 for a masked pixel. Where samples are spread over pixels (develop.wgsl): a sample alone,
// uniform in its pixel.

#ifdef RAY_QUERIES
enable wgpu_ray_query;
#endif

#import bind/launch
#import transport/rays/pixel
#import transport/paths/volpath

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
    let pixel = batch_pixel(index);
    var sensor = sensors[pixel.sensor];
    if launch.exposure == EXPOSURE_SAMPLE {
        sensor = spread_sensor(sensor);
    }
    for (var sample = launch.first_sample; sample < launch.last_sample; sample++) {
        let sampled = sample_ray(sensor, pixel, pass_key(), sample);
        if !sampled.ray.valid {
            image[index] = vec4f(0.0, 0.0, 0.0, -1.0);
            return;
        }
        let sampler = sampler_new(Counter(pixel.sensor, pixel.index, sample, WALK));
        let path = gather(sampled.ray, sensor.medium, sampler);
        sum += vec4f(path.radiance * sampled.weight, select(0.0, 1.0, path.straight));
    }
    if launch.last_sample == launch.spp && launch.exposure == EXPOSURE_NONE {
        sum = sum / f32(launch.spp);
    }
    image[index] = sum;
}
