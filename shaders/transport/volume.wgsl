// Lookups in volumes that lie somewhere in the world: trilinear or nearest, with Mitsuba's wrap modes.

#import bind/parameters
#import bind/world
#import common/math
#import transport/grid

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

// The corners that count. The number is not known to compilers, so that they leave the loops over corners standing:
// lookups are in many places.
fn volume_corners(volume: Volume) -> u32 {
    return select(1u, 8u, volume.filter_kind == LOOKUP_TRILINEAR);
}

// The value there: three channels, or one repeated.
fn volume_eval(volume: Volume, at: Neighbours) -> vec3f {
    let first = parameter_first(volume.slot);
    let count = volume_corners(volume);
    if volume.size.w == 1u {
        return vec3f(volume_number(first, at, count));
    }
    var sum = vec3f(0.0);
    for (var k = 0u; k < count; k++) {
        let start = first + corner_texel(at, k) * volume.size.w;
        sum += vec3f(values[start], values[start + 1u], values[start + 2u]) * corner_weight(at, k);
    }
    return sum;
}

// The value of a volume of one channel.
fn volume_number(first: u32, at: Neighbours, count: u32) -> f32 {
    var sum = 0.0;
    for (var k = 0u; k < count; k++) {
        sum += values[first + corner_texel(at, k)] * corner_weight(at, k);
    }
    return sum;
}
