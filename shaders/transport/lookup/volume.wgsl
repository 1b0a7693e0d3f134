// Lookups in volumes with a placement in the world: trilinear or nearest, with Mitsuba's wrap modes.

#import bind/parameters
#import bind/scene
#import common/math
#import transport/lookup/grid

// The stencil of the world-space point `p`.
fn volume_stencil(volume: Volume, p: vec3f) -> Neighbours {
    if volume.filter_kind == LOOKUP_CONSTANT {
        return Neighbours(vec2u(0u), vec2u(0u), vec2u(0u), vec3f(0.0));
    }
    let local = transform_point(volume.world_to_unit, p);
    if volume.filter_kind == LOOKUP_NEAREST {
        return nearest_neighbour(volume.size, volume.wrap, local);
    }
    return wrapped_neighbours(volume.size, volume.wrap, local);
}

// The number of corners with a weight. It is unknown at compile time, which keeps compilers from unrolling loops over
// corners.
fn volume_corners(volume: Volume) -> u32 {
    return select(1u, 8u, volume.filter_kind == LOOKUP_TRILINEAR);
}

// The looked-up value: three channels, or one repeated. Corners are unrolled, so that a GPU issues their loads
// together; corners beyond the first of a constant or nearest lookup have weight zero.
fn volume_eval(volume: Volume, at: Neighbours) -> vec3f {
    let first = parameter_first(volume.slot);
    let channels = volume.size.w;
    var sum = vec3f(0.0);
    for (var c = 0u; c < channels; c++) {
        let start = first + c;
        let x = corner_term(start, channels, at, 0u) + corner_term(start, channels, at, 1u)
            + corner_term(start, channels, at, 2u) + corner_term(start, channels, at, 3u)
            + corner_term(start, channels, at, 4u) + corner_term(start, channels, at, 5u)
            + corner_term(start, channels, at, 6u) + corner_term(start, channels, at, 7u);
        sum = select(sum, vec3f(x), vec3u(c) <= vec3u(0u, 1u, 2u));
    }
    return sum;
}

fn corner_term(start: u32, channels: u32, at: Neighbours, k: u32) -> f32 {
    return value(start + corner_texel(at, k) * channels) * corner_weight(at, k);
}
