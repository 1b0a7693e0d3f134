// The second kernel of a wave of paths: tests their rays against the shapes outside the BVH, one by one, and queues the rays
// that have to search the BVH.

#import bind/launch
#import bind/queue
#import bind/wave
#import transport/scene/shape

// Number of the workgroup's rays that are queued, and of its paths that have an edge to follow or wait; position of its first
// entry in the queue.
var<workgroup> listed_count: atomic<u32>;
var<workgroup> path_count: atomic<u32>;
var<workgroup> listed_at: u32;

@compute @workgroup_size(RAY_GROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    if lane == 0u {
        atomicStore(&listed_count, 0u);
        atomicStore(&path_count, 0u);
    }
    workgroupBarrier();
    let path = (group.y * launch.groups_x + group.x) * RAY_GROUP + lane;
    var flags = 0u;
    if path < wave_paths() {
        flags = wave_word(path, WAVE_FLAGS);
    }
    if (flags & (GOES_ON | IS_WAITING)) != 0u {
        atomicAdd(&path_count, 1u);
    }
    // The path's edge, then its shadow ray.
    var entries = vec2u(NONE);
    for (var turn = 0u; turn < 2u; turn++) {
        let shadow = turn == 1u;
        if (flags & select(GOES_ON, IS_WAITING, shadow)) != 0u {
            entries = vec2u(entries.y, meet(path, flags, shadow));
        } else {
            entries = vec2u(entries.y, NONE);
        }
    }
    let wanted = select(vec2u(1u), vec2u(0u), entries == vec2u(NONE));
    let place = atomicAdd(&listed_count, wanted.x + wanted.y);
    workgroupBarrier();
    if lane == 0u {
        listed_at = QUEUE_ENTRIES + atomicAdd(&queue[0], atomicLoad(&listed_count));
        atomicAdd(&queue[QUEUE_PATHS], atomicLoad(&path_count));
    }
    workgroupBarrier();
    if wanted.x == 1u {
        atomicStore(&queue[listed_at + place], entries.x);
    }
    if wanted.y == 1u {
        atomicStore(&queue[listed_at + place + wanted.x], entries.y);
    }
}

// Finds the nearest hit of a path's edge or shadow ray among the shapes outside the BVH. Returns the queue entry, or NONE if
// the ray need not search the BVH.
fn meet(path: u32, flags: u32, shadow: bool) -> u32 {
    let ray = wave_ray(path, select(WAVE_RAY, WAVE_SHADOW_RAY, shadow));
    let met = nearest_in_turn(ray.origin, ray.direction, ray.far, shadow);
    // The last edge adds only the emission of the surface that it hits, or the background. With no emitter in the BVH any hit
    // there ends it, not only the nearest.
    let depth = wave_depth(flags);
    let last = !LIGHTS_IN_TREE && !shadow && depth > 0u && depth + 1u == settings.max_depth;
    var wanted = !(shadow && met.found);
    if last {
        wanted = scene.background != BACKGROUND_NONE;
        if met.found {
            wanted = surface_record(met.number).light != NONE;
        }
    }
    wanted = wanted && BVH && (SHAPES_IN_TREE || bvh_is_entered(ray.origin, ray.direction, met.t));
    if shadow {
        wave_keep(path, WAVE_BLOCKED, select(0u, 1u, met.found));
    } else {
        wave_keep_nearest(path, depth, met);
    }
    let entry = path | select(0u, OF_SHADOW, shadow) | select(0u, ANY_HIT, shadow || last);
    return select(NONE, entry, wanted);
}
