// The pass over the first surfaces: the mean of one of their channels (AOV) over a pixel's samples; w is -1 for a masked
// pixel.

#ifdef RAY_QUERIES
enable wgpu_ray_query;
#endif

#import bind/launch
#import transport/rays/pixel
#import transport/paths/aov

@group(0) @binding(8) var<storage, read_write> image: array<vec4f>;

@compute @workgroup_size(RAY_GROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    let index = launch.first_pixel + (group.y * launch.groups_x + group.x) * RAY_GROUP + lane;
    if index >= launch.last_pixel {
        return;
    }
    var sum = vec4f(0.0);
    if launch.first_sample > 0u {
        sum = image[index];
        if sum.w < 0.0 {
            return;
        }
    }
    let pixel = batch_pixel(index);
    let sensor = sensors[pixel.sensor];
    for (var sample = launch.first_sample; sample < launch.last_sample; sample++) {
        let sampled = sample_ray(sensor, pixel, pass_key(), sample);
        if !sampled.ray.valid {
            image[index] = vec4f(0.0, 0.0, 0.0, -1.0);
            return;
        }
        let axis = aov_axis(launch.aov);
        var beside = sampled.ray;
        var found = true;
        if axis < 2u {
            // The film position is relative to the centre.
            var shifted = sensor;
            if axis == 0u {
                shifted.center.x -= 1.0;
            } else {
                shifted.center.y -= 1.0;
            }
            let next = sample_ray(shifted, pixel, pass_key(), sample).ray;
            // Beyond the part of the film that a lens shows there is no difference.
            found = next.valid;
            let closer = 1.0 / sqrt(f32(launch.spp));
            beside.origin += (next.origin - beside.origin) * closer;
            beside.direction += (next.direction - beside.direction) * closer;
        }
        // An irradiance meter's weight makes irradiance of radiance; surfaces are seen as they are.
        if found {
            sum += vec4f(aov_eval(launch.aov, sampled.ray, beside) * (sampled.weight / sensor_weight(sensor)), 0.0);
        }
    }
    if launch.last_sample == launch.spp {
        sum = sum / f32(launch.spp);
    }
    image[index] = sum;
}
