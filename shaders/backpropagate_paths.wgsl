// The adjoint pass over a path-traced scene: replays the paths of every pixel and backpropagates the adjoint image to
// the parameters' gradients.

#ifdef RAY_QUERIES
enable wgpu_ray_query;
#endif

#import bind/launch
#import bind/gradients
#import transport/rays/pixel
#import transport/paths/volpath

@group(0) @binding(9) var<storage, read> adjoint_image: array<vec4f>;

@compute @workgroup_size(RAY_GROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    // One sample per invocation; those of a pixel are neighbours, since their rays hit much the same surfaces.
    let samples = launch.last_sample - launch.first_sample;
    let at = (group.y * launch.groups_x + group.x) * RAY_GROUP + lane;
    let index = launch.first_pixel + at / samples;
    if index >= launch.last_pixel {
        return;
    }
    // Each sample adds to the counters by itself: a sum over the workgroup would keep the whole walk's variables alive across
    // barriers, for which software drivers compile minutes longer, and is little beside the additions to gradients.
    let counts = replay_sample(index, launch.first_sample + at % samples);
    for (var i = 0u; i < 3u; i++) {
        statistics_add(i, counts[i]);
    }
    report_faults();
}

// Replays a sample of a pixel: rays, contributions, and replays that drifted.
fn replay_sample(index: u32, sample: u32) -> vec3u {
    let d_radiance = adjoint_image[index].xyz * (1.0 / f32(launch.spp));
    if all(d_radiance == vec3f(0.0)) {
        return vec3u(0u);
    }
    let pixel = batch_pixel(index);
    let sensor = sensors[pixel.sensor];
    let sampled = sample_ray(sensor, pixel, pass_key(), sample);
    if !sampled.ray.valid {
        return vec3u(0u);
    }
    let sampler = sampler_new(Counter(pixel.sensor, pixel.index, sample, WALK));
    let extra = sampler_new(Counter(pixel.sensor, pixel.index, sample, ADJOINT));
    let replayed = backpropagate(sampled.ray, sensor.medium, sampler, extra, d_radiance * sampled.weight);
    return vec3u(1u, replayed.count, select(0u, 1u, has_drifted(replayed.gathered, replayed.left, replayed.count)));
}
