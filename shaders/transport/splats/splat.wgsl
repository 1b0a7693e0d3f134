// One Gaussian: from the parameters to a shape in pixels, its weight at a pixel, and both backwards. The twin of
// src/transport/splats/splat.rs.

#import bind/splats
#import common/math

// The parameters of one splat. The unit of lengths is the longer side of the picture.
struct Parameters {
    position: vec2f,
    scale: vec2f,
    rotation: f32,
    color: vec3f,
    opacity: f32,
}

// Derivatives of the loss by a splat's shape in pixels, opacity and colour.
struct SplatAdjoint {
    center: vec2f,
    conic: vec3f,
    opacity: f32,
    color: vec3f,
}

// Logarithms of standard deviations are clamped to this.
const SCALE_LOW: f32 = -16.0;
const SCALE_HIGH: f32 = 4.0;

// One over the square of a standard deviation in pixels.
fn inverse_square(scale: f32, side: f32) -> f32 {
    return exp_full(-2.0 * clamp(scale, SCALE_LOW, SCALE_HIGH)) / (side * side);
}

fn is_clamped(scale: f32) -> bool {
    return scale < SCALE_LOW || scale > SCALE_HIGH;
}

// The shape of a splat in a picture whose longer side is `side` pixels; it reaches no tile yet.
fn project(of_splat: Parameters, side: f32) -> Splat {
    let i = inverse_square(of_splat.scale.x, side);
    let j = inverse_square(of_splat.scale.y, side);
    let c = cos(of_splat.rotation);
    let s = sin(of_splat.rotation);
    let conic = vec3f(c * c * i + s * s * j, c * s * (i - j), s * s * i + c * c * j);
    return Splat(of_splat.position * side, 0u, 0u, conic, of_splat.opacity, of_splat.color, 0.0);
}

// `project` backwards: derivatives by the parameters.
fn project_adjoint(of_splat: Parameters, side: f32, by: SplatAdjoint) -> Parameters {
    let i = inverse_square(of_splat.scale.x, side);
    let j = inverse_square(of_splat.scale.y, side);
    let c = cos(of_splat.rotation);
    let s = sin(of_splat.rotation);
    let by_i = c * c * by.conic.x + c * s * by.conic.y + s * s * by.conic.z;
    let by_j = s * s * by.conic.x - c * s * by.conic.y + c * c * by.conic.z;
    let turn = 2.0 * c * s * (by.conic.z - by.conic.x) + (c * c - s * s) * by.conic.y;
    let slopes = vec2f(
        select(-2.0 * i * by_i, 0.0, is_clamped(of_splat.scale.x)),
        select(-2.0 * j * by_j, 0.0, is_clamped(of_splat.scale.y)),
    );
    return Parameters(by.center * side, slopes, (i - j) * turn, by.color, by.opacity);
}

// The exponent of the Gaussian at a point.
fn splat_power(splat: Splat, point: vec2f) -> f32 {
    let d = point - splat.center;
    return -(0.5 * (splat.conic.x * d.x * d.x + splat.conic.z * d.y * d.y) + splat.conic.y * d.x * d.y);
}

// The weight at a point, not clamped yet.
fn splat_eval(splat: Splat, point: vec2f) -> f32 {
    return splat.opacity * exp_full(splat_power(splat, point));
}

// `splat_eval` backwards; no derivative by the colour.
fn eval_adjoint(splat: Splat, point: vec2f, by_weight: f32) -> SplatAdjoint {
    let d = point - splat.center;
    let gauss = exp_full(splat_power(splat, point));
    let by_power = by_weight * splat.opacity * gauss;
    return SplatAdjoint(
        by_power * vec2f(splat.conic.x * d.x + splat.conic.y * d.y, splat.conic.y * d.x + splat.conic.z * d.y),
        -by_power * vec3f(0.5 * d.x * d.x, d.x * d.y, 0.5 * d.y * d.y),
        by_weight * gauss,
        vec3f(0.0),
    );
}

// No derivatives.
fn splat_zero() -> SplatAdjoint {
    return SplatAdjoint(vec2f(0.0), vec3f(0.0), 0.0, vec3f(0.0));
}

// Half the width and height in pixels of the box outside of which a splat's weight is below 1/255; negative if it is
// below everywhere, or the box or the position is not finite.
fn reach(of_splat: Parameters, side: f32) -> vec2f {
    // A margin in pixels for the rounding of weights at the very edge.
    let slack = 0.01;
    let share = of_splat.opacity * 255.0;
    if !(share > 1.0 && is_finite(share)) {
        return vec2f(-1.0);
    }
    let squares = 1.0 / vec2f(inverse_square(of_splat.scale.x, side), inverse_square(of_splat.scale.y, side));
    let c = cos(of_splat.rotation);
    let s = sin(of_splat.rotation);
    let widest = 2.0 * log(share);
    let found = sqrt(widest * vec2f(dot(vec2f(c * c, s * s), squares), dot(vec2f(s * s, c * c), squares))) + slack;
    let known = is_finite(found.x) && is_finite(found.y) && is_finite(of_splat.position.x) && is_finite(of_splat.position.y);
    return select(vec2f(-1.0), found, known);
}
