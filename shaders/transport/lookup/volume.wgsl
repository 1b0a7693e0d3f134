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
    return wrapped_neighbours(volume.size, volume.wrap, local, volume.filter_kind == LOOKUP_NEAREST);
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

#ifdef DRIFTS

// The derivatives of `d` times a trilinear lookup at the world-space point `p` by its coordinates; zero for a constant.
fn volume_slopes(volume: Volume, p: vec3f, d: vec3f) -> vec3f {
    if volume.filter_kind != LOOKUP_TRILINEAR {
        return vec3f(0.0);
    }
    let at = volume_stencil(volume, p);
    let first = parameter_first(volume.slot);
    let channels = volume.size.w;
    var by_cell = vec3f(0.0);
    for (var k = 0u; k < 8u; k++) {
        let start = first + corner_texel(at, k) * channels;
        var x = 0.0;
        if channels == 1u {
            x = value(start) * (d.x + d.y + d.z);
        } else {
            x = value(start) * d.x + value(start + 1u) * d.y + value(start + 2u) * d.z;
        }
        let upper = vec3<bool>((k & 1u) != 0u, (k & 2u) != 0u, (k & 4u) != 0u);
        let weights = select(1.0 - at.fraction, at.fraction, upper);
        let signs = select(vec3f(-1.0), vec3f(1.0), upper);
        by_cell += signs * vec3f(weights.y * weights.z, weights.x * weights.z, weights.x * weights.y) * x;
    }
    let by_unit = by_cell * vec3f(volume.size.xyz);
    let to_unit = volume.world_to_unit;
    return to_unit[0].xyz * by_unit.x + to_unit[1].xyz * by_unit.y + to_unit[2].xyz * by_unit.z;
}

#endif

fn corner_term(start: u32, channels: u32, at: Neighbours, k: u32) -> f32 {
    return value(start + corner_texel(at, k) * channels) * corner_weight(at, k);
}
