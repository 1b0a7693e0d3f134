// Trilinear lookups in grids and their adjoints: grid_eval beside grid_scatter.
//
// Texels are cell-centred as in Mitsuba: texel i of N lies at (i + 0.5) / N; lookups beyond the outer centres clamp.

#import bind/launch
#import bind/parameters
#import transport/sh
#ifdef REPLAY
#import bind/gradients
#endif

// The eight texels around a point and their weights. Corner k takes the upper neighbour along x if bit 0 of k is set,
// along y for bit 1, along z for bit 2.
struct Stencil {
    texels: array<u32, 8>,
    weights: array<f32, 8>,
}

// The stencil of the point `p` of the unit cube in a grid of `size` texels.
fn grid_stencil(size: vec4u, p: vec3f) -> Stencil {
    let x = p * vec3f(size.xyz) - 0.5;
    let base = floor(x);
    let fraction = x - base;
    let last = vec3i(size.xyz) - 1;
    let low = vec3u(clamp(vec3i(base), vec3i(0), last));
    let high = vec3u(clamp(vec3i(base) + 1, vec3i(0), last));
    let row = size.x;
    let slice = size.x * size.y;
    let wx = vec2f(1.0 - fraction.x, fraction.x);
    let wy = vec2f(1.0 - fraction.y, fraction.y);
    let wz = vec2f(1.0 - fraction.z, fraction.z);
    let y = vec2u(low.y * row, high.y * row);
    let z = vec2u(low.z * slice, high.z * slice);
    var at: Stencil;
    at.texels[0] = z.x + y.x + low.x;
    at.texels[1] = z.x + y.x + high.x;
    at.texels[2] = z.x + y.y + low.x;
    at.texels[3] = z.x + y.y + high.x;
    at.texels[4] = z.y + y.x + low.x;
    at.texels[5] = z.y + y.x + high.x;
    at.texels[6] = z.y + y.y + low.x;
    at.texels[7] = z.y + y.y + high.x;
    at.weights[0] = (wz.x * wy.x) * wx.x;
    at.weights[1] = (wz.x * wy.x) * wx.y;
    at.weights[2] = (wz.x * wy.y) * wx.x;
    at.weights[3] = (wz.x * wy.y) * wx.y;
    at.weights[4] = (wz.y * wy.x) * wx.x;
    at.weights[5] = (wz.y * wy.x) * wx.y;
    at.weights[6] = (wz.y * wy.y) * wx.x;
    at.weights[7] = (wz.y * wy.y) * wx.y;
    return at;
}

// Raw density.
fn grid_eval(at: ptr<function, Stencil>) -> f32 {
    // Corners are written out: a driver may leave so short a loop standing.
    return grid_term(at, 0u) + grid_term(at, 1u) + grid_term(at, 2u) + grid_term(at, 3u)
        + grid_term(at, 4u) + grid_term(at, 5u) + grid_term(at, 6u) + grid_term(at, 7u);
}

fn grid_term(at: ptr<function, Stencil>, k: u32) -> f32 {
    return values[launch.sigma_at + (*at).texels[k]] * (*at).weights[k];
}

// Raw colour, the sum of spherical harmonics: channel 3 i + c holds coefficient i of colour c.
fn grid_eval_sh(at: ptr<function, Stencil>, basis: ptr<function, Basis>) -> vec3f {
    var color = vec3f(0.0);
    for (var i = 0u; i < SH_COEFFICIENTS; i++) {
        let sum = grid_term_sh(at, i, 0u) + grid_term_sh(at, i, 1u) + grid_term_sh(at, i, 2u) + grid_term_sh(at, i, 3u)
            + grid_term_sh(at, i, 4u) + grid_term_sh(at, i, 5u) + grid_term_sh(at, i, 6u) + grid_term_sh(at, i, 7u);
        color += sum * (*basis)[i];
    }
    return color;
}

fn grid_term_sh(at: ptr<function, Stencil>, i: u32, k: u32) -> vec3f {
    let start = (*at).texels[k] * SH_CHANNELS + 3u * i;
    return vec3f(values_sh[start], values_sh[start + 1u], values_sh[start + 2u]) * (*at).weights[k];
}

#ifdef REPLAY

// The adjoint of grid_eval: adds `g` times each weight.
fn grid_scatter(at: ptr<function, Stencil>, g: f32) {
    grid_scatter_term(at, 0u, g);
    grid_scatter_term(at, 1u, g);
    grid_scatter_term(at, 2u, g);
    grid_scatter_term(at, 3u, g);
    grid_scatter_term(at, 4u, g);
    grid_scatter_term(at, 5u, g);
    grid_scatter_term(at, 6u, g);
    grid_scatter_term(at, 7u, g);
}

fn grid_scatter_term(at: ptr<function, Stencil>, k: u32, g: f32) {
    gradient_add(launch.sigma_at + (*at).texels[k], g * (*at).weights[k]);
}

// The adjoint of grid_eval_sh.
fn grid_scatter_sh(at: ptr<function, Stencil>, basis: ptr<function, Basis>, g: vec3f) {
    for (var i = 0u; i < SH_COEFFICIENTS; i++) {
        let spread = g * (*basis)[i];
        grid_scatter_term_sh(at, i, 0u, spread);
        grid_scatter_term_sh(at, i, 1u, spread);
        grid_scatter_term_sh(at, i, 2u, spread);
        grid_scatter_term_sh(at, i, 3u, spread);
        grid_scatter_term_sh(at, i, 4u, spread);
        grid_scatter_term_sh(at, i, 5u, spread);
        grid_scatter_term_sh(at, i, 6u, spread);
        grid_scatter_term_sh(at, i, 7u, spread);
    }
}

fn grid_scatter_term_sh(at: ptr<function, Stencil>, i: u32, k: u32, spread: vec3f) {
    let start = (*at).texels[k] * SH_CHANNELS + 3u * i;
    let share = spread * (*at).weights[k];
    gradient_sh_add(start, share.x);
    gradient_sh_add(start + 1u, share.y);
    gradient_sh_add(start + 2u, share.z);
}

#endif
