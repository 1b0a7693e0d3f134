// Buffers of every pass of light tracing through an optic: a view, and tables of filters and of lights.

#import common/layout

// Whether the optic is a cube of varying index, rather than a slab.
override CUBE: bool = false;

@group(0) @binding(19) var<uniform> settings: LightSettings;
// Nodes of filters, each with its value and its slope times the node spacing; and the texels of lights, row by row.
@group(0) @binding(20) var<storage, read> records: array<vec4f>;

// Value and scaled slope of a node of the film's filter.
fn filter_node(node: u32) -> vec2f {
    return records[settings.film.filter_at + node].xy;
}

fn film_filter() -> FilmFilter {
    return FilmFilter(settings.film.radius, settings.film.nodes, settings.film.node_count);
}

fn film_size() -> vec2u {
    return settings.film.size;
}

// The radiance that the light emits at (u, v).
fn lamp_radiance(place: vec2f) -> vec3f {
    let lamp = settings.lamp;
    let to_uv = lamp.to_uv;
    let p = vec2f(
        to_uv[0].x * place.x + to_uv[0].y * place.y + to_uv[0].z,
        to_uv[1].x * place.x + to_uv[1].y * place.y + to_uv[1].z,
    ) * vec2f(lamp.size);
    if lamp.nearest == 1u {
        return lamp_texel(vec2i(floor(p)));
    }
    let low = floor(p - 0.5);
    let f = p - 0.5 - low;
    let at = vec2i(low);
    let above = lamp_texel(at) * (1.0 - f.x) + lamp_texel(at + vec2i(1, 0)) * f.x;
    let below = lamp_texel(at + vec2i(0, 1)) * (1.0 - f.x) + lamp_texel(at + vec2i(1, 1)) * f.x;
    return above * (1.0 - f.y) + below * f.y;
}

fn lamp_texel(texel: vec2i) -> vec3f {
    let x = wrapped(texel.x, i32(settings.lamp.size.x));
    let y = wrapped(texel.y, i32(settings.lamp.size.y));
    return records[settings.lamp.first + y * settings.lamp.size.x + x].xyz;
}

// The index of the texel `at` along an axis of `n` texels, by the light's wrap mode.
fn wrapped(at: i32, n: i32) -> u32 {
    switch settings.lamp.wrap {
        case WRAP_CLAMP: {
            return u32(clamp(at, 0, n - 1));
        }
        case WRAP_REPEAT: {
            return u32(((at % n) + n) % n);
        }
        default: {
            let folded = ((at % (2 * n)) + 2 * n) % (2 * n);
            return u32(min(folded, 2 * n - 1 - folded));
        }
    }
}
