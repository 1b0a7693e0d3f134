// Emitters at infinity: a constant, or a latitude-longitude map looked up bilinearly as Mitsuba's `envmap` does.

#import bind/contents
#import bind/launch
#import bind/parameters
#import common/math
#ifdef REPLAY
#import bind/gradients
#endif

// The four texels around a direction, with bilinear weights.
struct EnvStencil {
    texels: vec4u,
    weights: vec4f,
}

// The stencil of the unit direction `d`, given in the map's frame, for a map of `size` = width, height.
fn env_stencil(size: vec2u, d: vec3f) -> EnvStencil {
    let u = arc_tangent(d.x, -d.z) * (0.5 / PI);
    let v = arc_cosine(clamp(d.y, -1.0, 1.0)) / PI;
    let width = f32(size.x);
    let height = f32(size.y);
    let shifted = u - 0.5 / width;
    let x = (shifted - floor(shifted)) * width;
    let y = v * (height - 1.0);
    let column = min(u32(x), size.x - 1u);
    let row = min(u32(y), max(size.y, 2u) - 2u);
    return env_cell(size, vec2u(column, row), vec2f(x - f32(column), y - f32(row)));
}

// The stencil of a position in the cell between a texel and its right, lower and diagonal neighbours.
fn env_cell(size: vec2u, cell: vec2u, place: vec2f) -> EnvStencil {
    let column = cell.x;
    let row = cell.y;
    let fx = place.x;
    let fy = place.y;
    let next_column = select(0u, column + 1u, column + 1u < size.x);
    let next_row = min(row + 1u, size.y - 1u);
    return EnvStencil(
        vec4u(
            row * size.x + column,
            row * size.x + next_column,
            next_row * size.x + column,
            next_row * size.x + next_column,
        ),
        vec4f((1.0 - fx) * (1.0 - fy), fx * (1.0 - fy), (1.0 - fx) * fy, fx * fy),
    );
}

fn emitter_texel(texel: u32) -> vec3f {
    return value_color(launch.emitter.first + 3u * texel);
}

// Radiance of the map, before its scale.
fn env_eval(at: EnvStencil) -> vec3f {
    return emitter_texel(at.texels.x) * at.weights.x + emitter_texel(at.texels.y) * at.weights.y
        + emitter_texel(at.texels.z) * at.weights.z + emitter_texel(at.texels.w) * at.weights.w;
}

#ifdef ENVIRONMENT_SLOPES

// The derivative by the direction `d` (of length one, in the map's frame) of the radiance of env_eval times `g`. On the poles,
// where it has none, it is zero.
fn env_slope(size: vec2u, d: vec3f, g: vec3f) -> vec3f {
    let square = d.x * d.x + d.z * d.z;
    if !(square > 1e-12) {
        return vec3f(0.0);
    }
    let at = env_stencil(size, d);
    let a = dot(emitter_texel(at.texels.x), g);
    let b = dot(emitter_texel(at.texels.y), g);
    let c = dot(emitter_texel(at.texels.z), g);
    let e = dot(emitter_texel(at.texels.w), g);
    // Bilinear weights are products of one along u and one along v: a sum over one axis leaves the weight of the other.
    let w = at.weights;
    let across = ((b - a) * (w.x + w.y) + (e - c) * (w.z + w.w)) * f32(size.x);
    let down = ((c - a) * (w.x + w.z) + (e - b) * (w.y + w.w)) * (f32(size.y) - 1.0);
    let by_u = across * (0.5 / PI) / square;
    let by_v = down * (1.0 / PI) / sqrt(square);
    return vec3f(-d.z * by_u, -by_v, d.x * by_u);
}

#endif

// The emitter's radiance for the unit direction `d` (world), of a map before its scale.
fn background_color(d: vec3f) -> vec3f {
    if ENVIRONMENT_MAP && scene.background == BACKGROUND_ENVMAP {
        return env_eval(env_stencil(scene.env_size, unit(transform_vector(scene.world_to_env, d))));
    }
    if scene.background == BACKGROUND_CONSTANT {
        return emitter_texel(0u);
    }
    return vec3f(0.0);
}

// The emitter's radiance for the unit direction `d` (world) along rays through a radiance field.
fn background_eval(d: vec3f) -> vec3f {
    return background_color(d) * scene.env_scale;
}

#ifdef REPLAY

// The adjoint of env_eval, for the first `count` texels; compilers that do not know the number do not unroll the loop.
fn env_adjoint(at: EnvStencil, count: u32, g: vec3f) {
    var texels = at.texels;
    var weights = at.weights;
    for (var k = 0u; k < count; k++) {
        gradient_add_color(launch.emitter, 3u * texels.x, g * weights.x);
        texels = texels.yzwx;
        weights = weights.yzwx;
    }
}

// The adjoint of background_color. A constant is a map of one texel.
fn background_color_adjoint(d: vec3f, g: vec3f) {
    if scene.background == BACKGROUND_NONE {
        return;
    }
    var at = EnvStencil(vec4u(0u), vec4f(1.0));
    var count = 1u;
    if ENVIRONMENT_MAP && scene.background == BACKGROUND_ENVMAP {
        at = env_stencil(scene.env_size, unit(transform_vector(scene.world_to_env, d)));
        count = 4u;
    }
    env_adjoint(at, count, g);
}

// The adjoint of background_eval.
fn background_adjoint(d: vec3f, g: vec3f) {
    background_color_adjoint(d, g * scene.env_scale);
}

#endif
