// Penalties on a grid and their gradients.

#import common/math

// Smooths the total variation's norm at zero.
const TV_EPSILON: f32 = 1e-3;

// The total variation at one texel and channel, from its value and its three forward neighbours (the texel itself
// where there is none): the penalty in w, its derivatives by the neighbours in xyz; the derivative by the texel is
// minus their sum.
fn total_variation(value: f32, next: vec3f) -> vec4f {
    let d = next - value;
    let norm = sqrt(d.x * d.x + d.y * d.y + d.z * d.z + TV_EPSILON * TV_EPSILON);
    return vec4f(d / norm, norm - TV_EPSILON);
}

// The sparsity penalty of a raw density and its derivative.
fn sparsity(value: f32) -> vec2f {
    let x = max(value, 0.0);
    let square = 2.0 * x * x;
    return vec2f(ln_1p(square), 4.0 * x / (1.0 + square));
}
