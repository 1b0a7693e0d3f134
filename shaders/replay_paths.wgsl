// The kernel of a wave's replay: shades the stored hit at the end of each path's edge again, and sends the derivatives there.

#import bind/gradients
#import bind/launch
#import bind/wave
#import transport/paths/volpath
#import transport/paths/wave_path

@group(0) @binding(9) var<storage, read> adjoint_image: array<vec4f>;

@compute @workgroup_size(RAY_GROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    let at = (group.y * launch.groups_x + group.x) * RAY_GROUP + lane;
    if at >= wave_paths() {
        return;
    }
    let flags = wave_word(at, WAVE_FLAGS);
    if (flags & GOES_ON) == 0u {
        return;
    }
    var path = kept_path(at, flags);
    var sampler = kept_sampler(at, flags);
    path.count = wave_word(at, WAVE_COUNT);
    wave_at = at;
    is_blocked = wave_is_blocked(at, path.depth);
    let index = launch.first_pixel + at / (launch.last_sample - launch.first_sample);
    adjoint.d_radiance = adjoint_image[index].xyz * (1.0 / f32(launch.spp)) * wave_number(at, WAVE_WEIGHT);
    let met = wave_nearest(at, path.depth);
    let goes_on = go_on(&path, describe(met, path.origin, path.direction, path.far), &sampler);
    wave_keep(at, WAVE_COUNT, path.count);
    keep_path(at, &path, sampler, select(0u, GOES_ON, goes_on));
#ifdef FIXED_POINT
    // Without sums in whole numbers there are neither faults nor a buffer for them.
    report_faults();
#endif
}
