// Lookups in volumes that lie somewhere in the world: trilinear or nearest, with Mitsuba's wrap modes.

#import bind/parameters
#import bind/world
#import common/math
#import transport/grid

// The stencil of the world-space point `p`.
fn volume_stencil(volume: Volume, p: vec3f) -> Stencil {
    if volume.filter_kind == LOOKUP_CONSTANT {
        return single_stencil(0u);
    }
    let local = transform_point(volume.world_to_unit, p);
    if volume.filter_kind == LOOKUP_NEAREST {
        return nearest_stencil(volume.size, volume.wrap, local);
    }
    if volume.wrap == WRAP_CLAMP {
        return grid_stencil(volume.size, local);
    }
    return grid_stencil_wrapped(volume.size, volume.wrap, local);
}

// The value there: three channels, or one repeated.
fn volume_eval(volume: Volume, at: ptr<function, Stencil>) -> vec3f {
    let first = parameter_first(volume.slot);
    let channels = volume.size.w;
    if channels != 1u {
        if volume.filter_kind != LOOKUP_TRILINEAR {
            return volume_texel(first + (*at).texels[0] * channels);
        }
        return volume_term(first, channels, at, 0u) + volume_term(first, channels, at, 1u)
            + volume_term(first, channels, at, 2u) + volume_term(first, channels, at, 3u)
            + volume_term(first, channels, at, 4u) + volume_term(first, channels, at, 5u)
            + volume_term(first, channels, at, 6u) + volume_term(first, channels, at, 7u);
    }
    if volume.filter_kind != LOOKUP_TRILINEAR {
        return vec3f(values[first + (*at).texels[0]]);
    }
    return vec3f(grid_eval(first, at));
}

fn volume_texel(start: u32) -> vec3f {
    return vec3f(values[start], values[start + 1u], values[start + 2u]);
}

fn volume_term(first: u32, channels: u32, at: ptr<function, Stencil>, k: u32) -> vec3f {
    return volume_texel(first + (*at).texels[k] * channels) * (*at).weights[k];
}
