// Hits of rays in an adjoint's first walk, kept so that the replay need not trace these rays again.
//
// A replay follows the same rays. The cache holds a fixed number of them per path, whatever its length; the replay traces
// the rest again, with the same results. A wave of paths has a cache of its own (bind/wave.wgsl).

#import transport/scene/records
#import transport/scene/shape

#ifdef WAVE
#ifdef REPLAY

// Whether the shadow ray that the path sends from the end of its edge is blocked.
var<private> is_blocked: bool;

// The result of that shadow ray, which is not traced again.
fn shadow_nearest(origin: vec3f, direction: vec3f, far: f32) -> Nearest {
    return Nearest(far, 0u, 0u, 0u, 0.0, 0.0, is_blocked);
}

#endif
#else
#ifdef REPLAY

// Segments that are kept of a path.
const SEGMENTS: u32 = 16u;
// Shadow rays that are kept: the bits of a word.
const SHADOW_RAYS: u32 = 32u;

struct ReplayCache {
    nearest: array<Nearest, SEGMENTS>,
    // Segments and shadow rays of this walk so far.
    segments: u32,
    shadow_rays: u32,
    // A bit for each shadow ray that was blocked.
    blocked: u32,
}

var<private> replay_cache: ReplayCache;

// Begins a walk: the first one of an adjoint fills the cache, the second reads it.
fn replay_cache_clear() {
    replay_cache.segments = 0u;
    replay_cache.shadow_rays = 0u;
    if mode == GATHER {
        replay_cache.blocked = 0u;
    }
}

#endif

// The nearest hit of a path's segment.
fn segment_nearest(origin: vec3f, direction: vec3f, far: f32) -> Nearest {
#ifdef REPLAY
    let at = replay_cache.segments;
    replay_cache.segments += 1u;
    if mode == REPLAY && at < SEGMENTS {
        return replay_cache.nearest[at];
    }
    let found = nearest(origin, direction, far, false);
    if mode == GATHER && at < SEGMENTS {
        replay_cache.nearest[at] = found;
    }
    return found;
#else
    return nearest(origin, direction, far, false);
#endif
}

// The nearest hit of a shadow ray; where any surface blocks light, any hit.
fn shadow_nearest(origin: vec3f, direction: vec3f, far: f32) -> Nearest {
    let any = SURFACES_ONLY;
#ifdef REPLAY
    let at = replay_cache.shadow_rays;
    replay_cache.shadow_rays += 1u;
    let kept = any && at < SHADOW_RAYS;
    if mode == REPLAY && kept {
        return Nearest(far, 0u, 0u, 0u, 0.0, 0.0, ((replay_cache.blocked >> at) & 1u) == 1u);
    }
    let found = nearest(origin, direction, far, any);
    if mode == GATHER && kept && found.found {
        replay_cache.blocked |= 1u << at;
    }
    return found;
#else
    return nearest(origin, direction, far, any);
#endif
}

#endif
