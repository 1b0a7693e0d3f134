// Textures: values over a surface, and their adjoint: texture_eval beside texture_adjoint.

#import bind/parameters
#import bind/scene
#import transport/lookup/grid
#import transport/lookup/volume
#import transport/scene/records
#import transport/scene/shape

// The texels around a point of a texture, with linear weights.
struct TextureStencil {
    // The parameter that holds the texels, and the channels of a texel: one or three.
    slot: u32,
    channels: u32,
    // Texels with a weight: one, four or eight.
    count: u32,
    texels: vec4u,
    weights: vec4f,
#ifdef SOLIDS
    // The fifth to the eighth.
    other_texels: vec4u,
    other_weights: vec4f,
#endif
}

// The stencil of a texture's first value alone.
fn texture_stencil_first(record: Texture) -> TextureStencil {
    var at: TextureStencil;
    at.slot = record.slot;
    at.channels = record.channels;
    at.count = 1u;
    at.weights.x = 1.0;
    return at;
}

// Texture coordinates under a texture's own map.
fn mapped(record: Texture, uv: vec2f) -> vec2f {
    let x = record.to_uv[0];
    let y = record.to_uv[1];
    return vec2f(x.x * uv.x + x.y * uv.y + x.z, y.x * uv.x + y.y * uv.y + y.z);
}

// The texels at `uv` of a texture that depends on `uv` alone: a constant, a checkerboard with squares of edge 1/2, or an
// image whose first row lies at v = 0.
fn texture_stencil(record: Texture, uv: vec2f) -> TextureStencil {
    var at = texture_stencil_first(record);
    if record.kind == TEXTURE_CONSTANT {
        return at;
    }
    let mapped_uv = mapped(record, uv);
    if BITMAPS && record.kind == TEXTURE_BITMAP {
        image_stencil(record, mapped_uv, &at);
    } else if is_other_square(mapped_uv) {
        at.slot = record.other_slot;
    }
    return at;
}

// Whether mapped coordinates lie in a square of a checkerboard where just one of them is in the second half of its period.
fn is_other_square(uv: vec2f) -> bool {
    let second = uv - floor(uv) > vec2f(0.5);
    return second.x != second.y;
}

// The texture that one of the scene's shows at `uv`: itself, or what the square of a checkerboard of textures holds.
fn shown(index: u32, uv: vec2f) -> Texture {
#ifdef SQUARES
    let record = texture_record(index);
    if record.kind == TEXTURE_SQUARES {
        return texture_record(select(record.slot, record.other_slot, is_other_square(mapped(record, uv))));
    }
    return record;
#else
    return texture_record(index);
#endif
}

// The texels of one of the scene's textures at a point of a surface.
fn stencil(index: u32, point: SurfacePoint) -> TextureStencil {
    let record = shown(index, point.uv);
#ifdef ATTRIBUTES
    if record.kind == TEXTURE_VERTICES || record.kind == TEXTURE_FACES {
        return attribute_stencil(record, point);
    }
#endif
#ifdef SOLIDS
    if record.kind == TEXTURE_VOLUME {
        return solid_stencil(record, point);
    }
#endif
    return texture_stencil(record, point.uv);
}

#ifdef ATTRIBUTES

// The stencil of a mesh's vertex or face values at a point, times the texture's factor.
fn attribute_stencil(record: Texture, point: SurfacePoint) -> TextureStencil {
    var at = texture_stencil_first(record);
    let scale = record.to_uv[0].x;
    at.count = 4u;
    if record.kind == TEXTURE_FACES {
        at.texels.x = corner_record(point.triangle).face;
        at.weights.x = scale;
        return at;
    }
    let v = point.weights.x;
    let w = point.weights.y;
    at.texels = vec4u(corner_vertices(point.triangle), 0u);
    at.weights = vec4f((1.0 - v - w) * scale, v * scale, w * scale, 0.0);
    return at;
}

#endif
#ifdef SOLIDS

// The texels of a volume at a point of a surface.
fn solid_stencil(record: Texture, point: SurfacePoint) -> TextureStencil {
    var at = texture_stencil_first(record);
    let volume = volume_record(record.other_slot);
    let near = volume_stencil(volume, point.p);
    for (var k = 0u; k < 4u; k++) {
        at.texels[k] = corner_texel(near, k);
        at.weights[k] = corner_weight(near, k);
        at.other_texels[k] = corner_texel(near, k + 4u);
        at.other_weights[k] = corner_weight(near, k + 4u);
    }
    at.count = volume_corners(volume);
    return at;
}

#endif

// Looks up a texture.
fn texture_value(index: u32, point: SurfacePoint) -> vec3f {
    return texture_eval(stencil(index, point));
}

#ifdef SLOPES

// The stencils of a texture's derivatives by u and by v.
struct TextureSlopes {
    by_u: TextureStencil,
    by_v: TextureStencil,
}

// The stencils of a texture's derivatives: the same texels with other weights. Lookups that are not bilinear count as
// constant.
fn texture_slopes(record: Texture, uv: vec2f) -> TextureSlopes {
    var at = texture_stencil(record, uv);
    if at.count == 1u {
        at.weights.x = 0.0;
        at.count = 4u;
        return TextureSlopes(at, at);
    }
    let w = at.weights;
    // Bilinear weights are products of one along x and one along y: a sum over one axis leaves the weight of the other.
    let left = w.x + w.z;
    let right = w.y + w.w;
    let top = w.x + w.y;
    let bottom = w.z + w.w;
    let by_x = vec4f(-top, top, -bottom, bottom) * f32(record.size.x);
    let by_y = vec4f(-left, -right, left, right) * f32(record.size.y);
    var slopes = TextureSlopes(at, at);
    slopes.by_u.weights = by_x * record.to_uv[0].x + by_y * record.to_uv[1].x;
    slopes.by_v.weights = by_x * record.to_uv[0].y + by_y * record.to_uv[1].y;
    return slopes;
}

#ifdef MOVES

// The derivatives by the texture coordinates, from `d` by the texture's value there. Only bitmaps have slopes.
fn picture_slopes(index: u32, uv: vec2f, d: vec3f) -> vec2f {
    let record = shown(index, uv);
    if !BITMAPS || record.kind != TEXTURE_BITMAP {
        return vec2f(0.0);
    }
    let slopes = texture_slopes(record, uv);
    let at = slopes.by_u;
    var by_weights: vec4f;
    for (var k = 0u; k < at.count; k++) {
        by_weights[k] = dot(stencil_texel(at, at.texels[k]), d);
    }
    return vec2f(dot(by_weights, slopes.by_u.weights), dot(by_weights, slopes.by_v.weights));
}

#endif
#endif

// The texels of an image at `uv`: bilinear between texel centres, or the nearest, which is the first of four at an offset of
// zero.
fn image_stencil(record: Texture, uv: vec2f, at: ptr<function, TextureStencil>) {
    let is_nearest = record.filter_kind == LOOKUP_NEAREST;
    let place = uv * vec2f(record.size) - select(0.5, 0.0, is_nearest);
    let base = floor(place);
    let f = select(place - base, vec2f(0.0), is_nearest);
    let columns = vec2u(image_column(record, base.x), image_column(record, base.x + 1.0));
    (*at).count = select(4u, 1u, is_nearest);
    (*at).texels = vec4u(columns + image_row(record, base.y), columns + image_row(record, base.y + 1.0));
    (*at).weights = vec4f((1.0 - f.x) * (1.0 - f.y), f.x * (1.0 - f.y), (1.0 - f.x) * f.y, f.x * f.y);
}

// A column; positions beyond the image are wrapped or clamped.
fn image_column(record: Texture, x: f32) -> u32 {
    return wrap_index(record.wrap, x, record.size.x);
}

// The first texel of a row, likewise.
fn image_row(record: Texture, y: f32) -> u32 {
    return wrap_index(record.wrap, y, record.size.y) * record.size.x;
}

// The value at a stencil. One channel is repeated.
fn texture_eval(at: TextureStencil) -> vec3f {
#ifdef MOVES
    // A loop, so that compilers write the lookup out once: shaders with points that move have many lookups.
    var sum = vec3f(0.0);
    for (var k = 0u; k < min(at.count, 4u); k++) {
        sum += stencil_texel(at, at.texels[k]) * at.weights[k];
    }
#else
    if at.count == 1u {
        return stencil_texel(at, at.texels.x);
    }
    var sum = stencil_texel(at, at.texels.x) * at.weights.x;
    sum += stencil_texel(at, at.texels.y) * at.weights.y;
    sum += stencil_texel(at, at.texels.z) * at.weights.z;
    sum += stencil_texel(at, at.texels.w) * at.weights.w;
#endif
#ifdef SOLIDS
    if at.count > 4u {
        sum += stencil_texel(at, at.other_texels.x) * at.other_weights.x;
        sum += stencil_texel(at, at.other_texels.y) * at.other_weights.y;
        sum += stencil_texel(at, at.other_texels.z) * at.other_weights.z;
        sum += stencil_texel(at, at.other_texels.w) * at.other_weights.w;
    }
#endif
    return sum;
}

fn stencil_texel(at: TextureStencil, texel: u32) -> vec3f {
    let first = parameter_first(at.slot) + at.channels * texel;
    let last = at.channels - 1u;
    return vec3f(value(first), value(first + min(1u, last)), value(first + min(2u, last)));
}

#ifdef REPLAY

// The adjoint of texture_eval. A single channel receives the sum of the three derivatives.
fn texture_adjoint(at: TextureStencil, d: vec3f) {
    let slot = parameter_slot(at.slot);
    if slot.tuned == 0u || all(d == vec3f(0.0)) {
        return;
    }
    var texels = at.texels;
    var weights = at.weights;
    for (var k = 0u; k < at.count; k++) {
#ifdef SOLIDS
        if k == 4u {
            texels = at.other_texels;
            weights = at.other_weights;
        }
#endif
        if weights.x != 0.0 {
            sink_entries(slot, at.channels * texels.x, d * weights.x, at.channels);
        }
        texels = texels.yzwx;
        weights = weights.yzwx;
    }
}

#endif
