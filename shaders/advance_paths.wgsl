// The fourth kernel of a wave of paths: shades the hit at the end of each path's edge, which gives its next edge and shadow
// ray.

#import bind/launch
#import bind/queue
#import bind/wave
#import transport/paths/volpath
#import transport/paths/wave_path

@compute @workgroup_size(RAY_GROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    let at = (group.y * launch.groups_x + group.x) * RAY_GROUP + lane;
    if at == 0u {
        // Empties the queue for the rays of the next edges.
        atomicStore(&queue[QUEUE_PATHS_BEFORE], atomicLoad(&queue[QUEUE_PATHS]));
        atomicStore(&queue[QUEUE_PATHS], 0u);
        atomicStore(&queue[0], 0u);
    }
    if at >= wave_paths() {
        return;
    }
    let flags = wave_word(at, WAVE_FLAGS);
    if (flags & (GOES_ON | IS_WAITING)) == 0u {
        return;
    }
    var path = kept_path(at, flags);
    var sampler = kept_sampler(at, flags);
    wave_at = at;
    deferred = Deferred();
    if (flags & IS_WAITING) != 0u {
        arrive(at, &path);
    }
    var goes_on = false;
    if (flags & GOES_ON) != 0u {
        let met = wave_nearest(at, path.depth);
        goes_on = go_on(&path, describe(met, path.origin, path.direction, path.far), &sampler);
    }
    keep_path(at, &path, sampler, select(0u, GOES_ON, goes_on));
}
