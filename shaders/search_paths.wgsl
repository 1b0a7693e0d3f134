// The third kernel of a wave of paths: searches the BVH for the queued rays.

#import bind/launch
#import bind/queue
#import bind/wave
#import transport/scene/shape

@compute @workgroup_size(RAY_GROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    let index = (group.y * launch.groups_x + group.x) * RAY_GROUP + lane;
    if index >= queue[0] {
        return;
    }
#ifdef SHARED_STACK
    waiting_at = lane;
#endif
    let entry = queue[QUEUE_ENTRIES + index];
    let path = entry & OF_PATH;
    let shadow = (entry & OF_SHADOW) != 0u;
    let any = (entry & ANY_HIT) != 0u;
    let ray = wave_ray(path, select(WAVE_RAY, WAVE_SHADOW_RAY, shadow));
    let depth = wave_depth(wave_word(path, WAVE_FLAGS));
    var known = Nearest(ray.far, 0u, 0u, 0u, 0.0, 0.0, false);
    if !shadow {
        known = wave_nearest(path, depth);
        // Where any hit serves, the hit that is known already must not end the search at once.
        known.found = known.found && !any;
    }
    let found = bvh_intersect(ray.origin, ray.direction, known, any);
    if !found.found {
        return;
    }
    if shadow {
        wave_keep(path, WAVE_BLOCKED, 1u);
    } else {
        wave_keep_nearest(path, depth, found);
    }
}
