// Textures: reflectance over a surface.

#import bind/parameters
#import bind/scene
#import transport/lookup/grid

// The reflectance at `uv`: constant, a checkerboard with squares of edge 1/2, or an image whose first row lies at v =
// 0.
fn texture_eval(record: Texture, uv: vec2f) -> vec3f {
    let u = record.to_uv[0].x * uv.x + record.to_uv[0].y * uv.y + record.to_uv[0].z;
    let v = record.to_uv[1].x * uv.x + record.to_uv[1].y * uv.y + record.to_uv[1].z;
    if record.kind == TEXTURE_BITMAP {
        return image_eval(record, vec2f(u, v));
    }
    let first = record.kind == TEXTURE_CONSTANT || ((u - floor(u) > 0.5) == (v - floor(v) > 0.5));
    return select(record.color1.xyz, record.color0.xyz, first);
}

// An image at `uv`: bilinear between texel centres, or nearest.
fn image_eval(record: Texture, uv: vec2f) -> vec3f {
    let place = uv * vec2f(record.size);
    if record.filter_kind == LOOKUP_NEAREST {
        return image_texel(record, floor(place));
    }
    let base = floor(place - 0.5);
    let f = (place - 0.5) - base;
    var color = image_texel(record, base) * ((1.0 - f.x) * (1.0 - f.y));
    color += image_texel(record, base + vec2f(1.0, 0.0)) * (f.x * (1.0 - f.y));
    color += image_texel(record, base + vec2f(0.0, 1.0)) * ((1.0 - f.x) * f.y);
    color += image_texel(record, base + vec2f(1.0, 1.0)) * (f.x * f.y);
    return color;
}

// The texel in a column and row; positions beyond the image are wrapped or clamped.
fn image_texel(record: Texture, at: vec2f) -> vec3f {
    let column = wrap_index(record.wrap, at.x, record.size.x);
    let row = wrap_index(record.wrap, at.y, record.size.y);
    let first = parameter_first(record.slot) + 3u * (row * record.size.x + column);
    return vec3f(values[first], values[first + 1u], values[first + 2u]);
}
