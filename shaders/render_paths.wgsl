// The primal pass over a path-traced scene. Where samples are splatted onto the pixels around (develop.wgsl), an invocation
// renders one sample, uniform in its pixel.

#ifdef RAY_QUERIES
enable wgpu_ray_query;
#endif

#import bind/image
#import bind/launch
#import transport/rays/pixel
#import transport/paths/volpath

@compute @workgroup_size(RAY_GROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    let index = image_index(group, lane);
    if index >= launch.last_pixel {
        return;
    }
    var sum = image_begin(index);
    if sum.w < 0.0 {
        return;
    }
    let pixel = batch_pixel(index);
    var sensor = sensors[pixel.sensor];
    if launch.exposure == EXPOSURE_SAMPLE {
        sensor = spread_sensor(sensor);
    }
    for (var sample = launch.first_sample; sample < launch.last_sample; sample++) {
        let sampled = sample_ray(sensor, pixel, pass_key(), sample);
        if !sampled.ray.valid {
            image_mask(index);
            return;
        }
        let sampler = sampler_new(Counter(pixel.sensor, pixel.index, sample, WALK));
        let path = gather(sampled.ray, sensor.medium, sampler);
        sum += vec4f(path.radiance * sampled.weight, select(0.0, 1.0, path.straight));
    }
    image_end(index, sum);
}
