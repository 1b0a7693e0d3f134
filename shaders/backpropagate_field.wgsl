// The adjoint pass: replays the rays of every pixel and backpropagates the adjoint image to the parameters' gradients. VIEWS:
// cameras are parameters, too, and each ray sends derivatives to its own camera.

#import bind/launch
#import bind/gradients
#import transport/field/march
#ifdef VIEWS
#import bind/view_sums
#import transport/field/ray_adjoint
#import transport/rays/view_adjoint
#endif

@group(0) @binding(9) var<storage, read> adjoint: array<vec4f>;

// Rays, samples, rays whose replay left too much radiance (drift).
var<workgroup> counts: array<vec3u, RAY_GROUP>;

@compute @workgroup_size(RAY_GROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    let index = launch.first_pixel + (group.y * launch.groups_x + group.x) * RAY_GROUP + lane;
    counts[lane] = vec3u(0u);
    if index < launch.last_pixel {
        counts[lane] = replay_pixel(index);
    }
    report_faults();
    for (var half = RAY_GROUP / 2u; half > 0u; half /= 2u) {
        workgroupBarrier();
        if lane < half {
            counts[lane] += counts[lane + half];
        }
    }
    workgroupBarrier();
    if lane < 3u {
        workgroup_count(lane);
    }
}

// Adds one of the workgroup's counts to its pair of words.
fn workgroup_count(lane: u32) {
    let count = counts[0][lane];
    let low = atomicAdd(&statistics[2u * lane], count);
    if low + count < low {
        atomicAdd(&statistics[2u * lane + 1u], 1u);
    }
}

// Replays this launch's samples of a pixel: rays, samples along them, and rays that drifted.
fn replay_pixel(index: u32) -> vec3u {
    let d_radiance = adjoint[index].xyz * (1.0 / f32(launch.spp));
    if all(d_radiance == vec3f(0.0)) {
        return vec3u(0u);
    }
    let pixel = batch_pixel(index);
    let sensor = sensors[pixel.sensor];
    let backdrop = pixel_backdrop(sensor, objective_key(), pixel);
    var sum = vec3u(0u);
    for (var sample = launch.first_sample; sample < launch.last_sample; sample++) {
        let sampled = sample_ray(sensor, pixel, pass_key(), sample);
        if !sampled.ray.valid {
            continue;
        }
        let replayed = backpropagate(sampled.ray, sampled.jitter, backdrop, d_radiance * sampled.weight);
#ifdef VIEWS
        send_to_view(pixel.sensor, view_adjoint(sensor, sampled.ray.direction, ray_end(sampled.ray)));
#endif
        let bound = 8.0 * f32(replayed.count + 1u) * EPSILON;
        let drifted = any(abs(replayed.left) > bound * abs(replayed.gathered));
        sum += vec3u(1u, replayed.count, select(0u, 1u, drifted));
    }
    return sum;
}

#ifdef VIEWS

// Adds a ray's derivatives by its camera to the sums of its view. Forces are scaled to about the size of torques, whatever
// the world's unit of length.
fn send_to_view(view: u32, by: ByView) {
    let force = by.force * launch.view_length;
    view_add(view, 0u, by.torque.x);
    view_add(view, 1u, by.torque.y);
    view_add(view, 2u, by.torque.z);
    view_add(view, 3u, force.x);
    view_add(view, 4u, force.y);
    view_add(view, 5u, force.z);
    view_add(view, 6u, by.zoom);
    view_add(view, 7u, by.radial);
}

#endif
