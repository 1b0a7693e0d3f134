// Trilinear lookups in grids and their adjoints: grid_eval beside grid_adjoint.
//
// Texels are cell-centred as in Mitsuba: texel i of N lies at (i + 0.5) / N; lookups beyond the outer centres clamp.

#import bind/launch
#import bind/parameters
#import transport/lookup/sh
#ifdef REPLAY
#import bind/gradients
#endif

// The eight texels around a point, with trilinear weights. Corner k is the upper neighbour along x if bit 0 of k is
// set, along y for bit 1, along z for bit 2.
struct Stencil {
    texels: array<u32, 8>,
    weights: array<f32, 8>,
}

// A stencil in compact form: for each axis the offsets of the lower and upper neighbour, and the fractional position
// between them.
struct Neighbours {
    x: vec2u,
    y: vec2u,
    z: vec2u,
    fraction: vec3f,
}

// The stencil of the point `p` of the unit cube in a grid of `size` texels.
fn grid_stencil(size: vec4u, p: vec3f) -> Stencil {
    return corners(grid_neighbours(size, p));
}

fn grid_neighbours(size: vec4u, p: vec3f) -> Neighbours {
    let x = p * vec3f(size.xyz) - 0.5;
    let base = floor(x);
    let last = vec3i(size.xyz) - 1;
    let low = vec3u(clamp(vec3i(base), vec3i(0), last));
    let high = vec3u(clamp(vec3i(base) + 1, vec3i(0), last));
    let row = size.x;
    let slice = size.x * size.y;
    let y = vec2u(low.y, high.y) * row;
    return Neighbours(vec2u(low.x, high.x), y, vec2u(low.z, high.z) * slice, x - base);
}

// Expands a stencil to eight corners.
fn corners(near: Neighbours) -> Stencil {
    var at: Stencil;
    at.texels[0] = corner_texel(near, 0u);
    at.texels[1] = corner_texel(near, 1u);
    at.texels[2] = corner_texel(near, 2u);
    at.texels[3] = corner_texel(near, 3u);
    at.texels[4] = corner_texel(near, 4u);
    at.texels[5] = corner_texel(near, 5u);
    at.texels[6] = corner_texel(near, 6u);
    at.texels[7] = corner_texel(near, 7u);
    at.weights[0] = corner_weight(near, 0u);
    at.weights[1] = corner_weight(near, 1u);
    at.weights[2] = corner_weight(near, 2u);
    at.weights[3] = corner_weight(near, 3u);
    at.weights[4] = corner_weight(near, 4u);
    at.weights[5] = corner_weight(near, 5u);
    at.weights[6] = corner_weight(near, 6u);
    at.weights[7] = corner_weight(near, 7u);
    return at;
}

// The texel at corner k.
fn corner_texel(near: Neighbours, k: u32) -> u32 {
    let x = select(near.x.x, near.x.y, (k & 1u) != 0u);
    let y = select(near.y.x, near.y.y, (k & 2u) != 0u);
    let z = select(near.z.x, near.z.y, (k & 4u) != 0u);
    return z + y + x;
}

// The weight of corner k.
fn corner_weight(near: Neighbours, k: u32) -> f32 {
    let upper = vec3<bool>((k & 1u) != 0u, (k & 2u) != 0u, (k & 4u) != 0u);
    let weights = select(1.0 - near.fraction, near.fraction, upper);
    return (weights.z * weights.y) * weights.x;
}

// grid_neighbours for wrap modes in which a texel's neighbours are not adjacent in the array: the twin of
// grid_stencil_wrapped and of nearest_stencil, whose eight texels are one, at an offset of zero.
fn wrapped_neighbours(size: vec4u, wrap: u32, p: vec3f, is_nearest: bool) -> Neighbours {
    let x = p * vec3f(size.xyz) - select(0.5, 0.0, is_nearest);
    let base = floor(x);
    let next = base + select(1.0, 0.0, is_nearest);
    let row = size.x;
    let slice = size.x * size.y;
    let low = vec2u(wrap_index(wrap, base.x, size.x), wrap_index(wrap, next.x, size.x));
    let y = vec2u(wrap_index(wrap, base.y, size.y), wrap_index(wrap, next.y, size.y)) * row;
    let z = vec2u(wrap_index(wrap, base.z, size.z), wrap_index(wrap, next.z, size.z)) * slice;
    return Neighbours(low, y, z, select(x - base, vec3f(0.0), is_nearest));
}

// Maps the integer `x` to a texel along an axis of `size` texels by the wrap mode.
fn wrap_index(wrap: u32, x: f32, size: u32) -> u32 {
    let n = f32(size);
    let is_mirror = wrap == WRAP_MIRROR;
    let period = select(n, 2.0 * n, is_mirror);
    let wrapped = x - floor(x / period) * period;
    let y = select(wrapped, 2.0 * n - 1.0 - wrapped, is_mirror & (wrapped >= n));
    return index_below(select(y, x, wrap == WRAP_CLAMP), size - 1u);
}

// `x` clamped to an index in 0 ... `last`.
fn index_below(x: f32, last: u32) -> u32 {
    return u32(clamp(x, 0.0, f32(min(last, 16777216u))));
}

// Looks up the one-channel grid that begins at `first`.
fn grid_eval(first: u32, at: ptr<function, Stencil>) -> f32 {
    // Unrolled by hand: some drivers do not unroll so short a loop.
    return grid_term(first, at, 0u) + grid_term(first, at, 1u) + grid_term(first, at, 2u) + grid_term(first, at, 3u)
        + grid_term(first, at, 4u) + grid_term(first, at, 5u) + grid_term(first, at, 6u) + grid_term(first, at, 7u);
}

fn grid_term(first: u32, at: ptr<function, Stencil>, k: u32) -> f32 {
    return value(first + (*at).texels[k]) * (*at).weights[k];
}

// The number of coefficients of a colour; unknown at compile time where loops must not unroll.
fn coefficient_count() -> u32 {
    if UNROLLS {
        return SH_COEFFICIENTS;
    }
    return min(SH_COEFFICIENTS, scene.sh_size.w / 3u);
}

// Raw colour, the sum of spherical harmonics: channel 3 i + c holds coefficient i of colour c.
fn grid_eval_sh(at: ptr<function, Stencil>, basis: ptr<function, Basis>) -> vec3f {
    var color = vec3f(0.0);
    for (var i = 0u; i < coefficient_count(); i++) {
        let sum = grid_term_sh(at, i, 0u) + grid_term_sh(at, i, 1u) + grid_term_sh(at, i, 2u) + grid_term_sh(at, i, 3u)
            + grid_term_sh(at, i, 4u) + grid_term_sh(at, i, 5u) + grid_term_sh(at, i, 6u) + grid_term_sh(at, i, 7u);
        color += sum * (*basis)[i];
    }
    return color;
}

fn grid_term_sh(at: ptr<function, Stencil>, i: u32, k: u32) -> vec3f {
    return value_color(launch.sh.first + (*at).texels[k] * SH_CHANNELS + 3u * i) * (*at).weights[k];
}

#ifdef REPLAY

// The adjoint of grid_eval: adds `g` times each weight to the texels' gradients.
fn grid_adjoint(slot: Slot, at: ptr<function, Stencil>, g: f32) {
    grid_adjoint_term(slot, at, 0u, g);
    grid_adjoint_term(slot, at, 1u, g);
    grid_adjoint_term(slot, at, 2u, g);
    grid_adjoint_term(slot, at, 3u, g);
    grid_adjoint_term(slot, at, 4u, g);
    grid_adjoint_term(slot, at, 5u, g);
    grid_adjoint_term(slot, at, 6u, g);
    grid_adjoint_term(slot, at, 7u, g);
}

fn grid_adjoint_term(slot: Slot, at: ptr<function, Stencil>, k: u32, g: f32) {
    gradient_add(slot, (*at).texels[k], g * (*at).weights[k]);
}

// The adjoint of grid_eval_sh.
fn grid_adjoint_sh(at: ptr<function, Stencil>, basis: ptr<function, Basis>, g: vec3f) {
    for (var i = 0u; i < coefficient_count(); i++) {
        let spread = g * (*basis)[i];
        grid_adjoint_term_sh(at, i, 0u, spread);
        grid_adjoint_term_sh(at, i, 1u, spread);
        grid_adjoint_term_sh(at, i, 2u, spread);
        grid_adjoint_term_sh(at, i, 3u, spread);
        grid_adjoint_term_sh(at, i, 4u, spread);
        grid_adjoint_term_sh(at, i, 5u, spread);
        grid_adjoint_term_sh(at, i, 6u, spread);
        grid_adjoint_term_sh(at, i, 7u, spread);
    }
}

fn grid_adjoint_term_sh(at: ptr<function, Stencil>, i: u32, k: u32, spread: vec3f) {
    gradient_add_color(launch.sh, (*at).texels[k] * SH_CHANNELS + 3u * i, spread * (*at).weights[k]);
}

#endif

#ifdef VIEWS

// The weights of the corners, lower ones along z first.
fn cell_weights(at: ptr<function, Stencil>) -> array<vec4f, 2> {
    return array(
        vec4f((*at).weights[0], (*at).weights[1], (*at).weights[2], (*at).weights[3]),
        vec4f((*at).weights[4], (*at).weights[5], (*at).weights[6], (*at).weights[7]),
    );
}

// The gradient of a grid lookup by the point. `low` are the values of the stencil's four lower texels along z, `high` those
// of the upper four.
fn cell_gradient(size: vec4u, at: ptr<function, Stencil>, low: vec4f, high: vec4f) -> vec3f {
    // The weights of two neighbours along an axis add up to the share of the other two axes.
    let weights = cell_weights(at);
    let a = weights[0];
    let b = weights[1];
    let x = dot(low.yw - low.xz, a.xz + a.yw) + dot(high.yw - high.xz, b.xz + b.yw);
    let y = dot(low.zw - low.xy, a.xy + a.zw) + dot(high.zw - high.xy, b.xy + b.zw);
    let z = dot(high - low, a + b);
    return vec3f(x, y, z) * vec3f(size.xyz);
}

#endif
