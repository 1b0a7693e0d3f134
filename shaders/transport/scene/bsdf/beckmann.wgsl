// Visible slopes of a Beckmann surface of roughness one, by inverting their distribution function (Jakob2014).

#import common/math

// 1 / sqrt(pi)
const INV_SQRT_PI: f32 = 0.5641896;
// Draws are kept this far from 0 and 1, where slopes are infinite.
const BECKMANN_MARGIN: f32 = 1e-6;
// Steps of Newton's method: the distribution function then is right to 3e-5.
const BECKMANN_STEPS: u32 = 3u;

// The error function, right to 2e-7 (Abramowitz1964, 7.1.26).
fn error_function(x: f32) -> f32 {
    let a = abs(x);
    let t = 1.0 / (1.0 + 0.3275911 * a);
    var p = 1.0614054 * t - 1.453152;
    p = p * t + 1.4214137;
    p = p * t - 0.28449674;
    p = p * t + 0.2548296;
    let value = 1.0 - p * t * exp_full(-a * a);
    return select(value, -value, x < 0.0);
}

// The inverse of the error function, right to a relative 2e-5 (Giles2011).
fn inverse_error_function(x: f32) -> f32 {
    var w = -logarithm((1.0 - x) * (1.0 + x));
    if w < 5.0 {
        w -= 2.5;
        var p = 2.8102264e-8;
        p = 3.4327394e-7 + p * w;
        p = -3.5233877e-6 + p * w;
        p = -4.3915065e-6 + p * w;
        p = 2.1858087e-4 + p * w;
        p = -1.253725e-3 + p * w;
        p = -4.1776816e-3 + p * w;
        p = 0.24664073 + p * w;
        return (1.5014094 + p * w) * x;
    }
    w = sqrt(w) - 3.0;
    var p = -2.0021426e-4;
    p = 1.0095056e-4 + p * w;
    p = 1.3493432e-3 + p * w;
    p = -3.6734284e-3 + p * w;
    p = 5.7395077e-3 + p * w;
    p = -7.6224613e-3 + p * w;
    p = 9.4388705e-3 + p * w;
    p = 1.001674 + p * w;
    return (2.8329768 + p * w) * x;
}

// Samples the slopes that are visible from the unit vector `v`.
fn visible_slopes(v: vec3f, draws: vec2f) -> vec2f {
    let sine = sqrt(v.x * v.x + v.y * v.y);
    let cosine = max(v.z, BECKMANN_MARGIN);
    let tangent = sine / cosine;
    // The slopes along v, up to its cotangent, as their error function b: the distribution function is
    // 1 + b + tan exp(-x^2) / sqrt(pi) over its largest value.
    let largest = cosine / max(sine, 1e-7);
    var low = -1.0;
    var high = error_function(largest);
    let total = 1.0 + high + tangent * INV_SQRT_PI * exp_full(-largest * largest);
    let u = clamp(draws, vec2f(BECKMANN_MARGIN), vec2f(1.0 - BECKMANN_MARGIN));
    let goal = u.x * total;
    // At grazing angles high - b goes with the root of 1 - u, at normal ones with 1 - u.
    let power = 1.0 - 0.5 * sqrt(max(1.0 - cosine, 0.0));
    var b = high - (1.0 + high) * exp_full(power * logarithm(1.0 - u.x));
    b = clamp(b, BECKMANN_MARGIN - 1.0, 1.0 - BECKMANN_MARGIN);
    for (var i = 0u; i < BECKMANN_STEPS; i++) {
        let x = inverse_error_function(b);
        let excess = 1.0 + b + tangent * INV_SQRT_PI * exp_full(-x * x) - goal;
        if excess > 0.0 {
            high = b;
        } else {
            low = b;
        }
        let next = b - excess / max(1.0 - x * tangent, BECKMANN_MARGIN);
        b = select(0.5 * (low + high), next, next >= low && next <= high);
        b = clamp(b, BECKMANN_MARGIN - 1.0, 1.0 - BECKMANN_MARGIN);
    }
    let x = inverse_error_function(b);
    let y = inverse_error_function(2.0 * u.y - 1.0);
    var along = vec2f(1.0, 0.0);
    if sine > 0.0 {
        along = v.xy / sine;
    }
    return vec2f(along.x * x - along.y * y, along.y * x + along.x * y);
}
