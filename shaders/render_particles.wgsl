// Light tracing among surfaces: traces as many paths from the lights as a view's whole film has samples, and splats the power
// that reaches the sensor onto the film.

#ifdef RAY_QUERIES
enable wgpu_ray_query;
#endif

#import bind/launch
#import bind/tracer
#import transport/light/particle
#import transport/rays/sampler

@compute @workgroup_size(RAY_GROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    // A pixel of the whole film, not only of its crop window.
    let cell = launch.first_pixel + (group.y * launch.groups_x + group.x) * RAY_GROUP + lane;
    if cell >= launch.last_pixel {
        return;
    }
    for (var sample = launch.first_sample; sample < launch.last_sample; sample++) {
        var sampler = sampler_new(Counter(tracer.sensor, cell, sample, WALK));
        trace(&sampler);
    }
}
