// Functions that WGSL lacks or does not specify precisely enough: twins of src/transport/number/mod.rs and of Rust's
// standard library.

const PI: f32 = 3.14159265;
const HALF_PI: f32 = 1.57079633;
const LOG2_E: f32 = 1.44269504;
const EPSILON: f32 = 1.1920929e-7;

// exp x - `minus` for `minus` 0 or 1, to about 2 ulp: x = k ln 2 + r with |r| <= ln 2 / 2 and
// exp x = 2^k + 2^k (exp r - 1), the parenthesis by its Taylor polynomial.
fn exp_parts(argument: f32, minus: f32) -> f32 {
    let x = clamp(argument, -87.0, 88.0);
    let k = floor(x * LOG2_E + 0.5);
    let r = (x - k * 0.693359375) + k * 2.1219444e-4;
    var p = 1.0 / 5040.0;
    p = p * r + 1.0 / 720.0;
    p = p * r + 1.0 / 120.0;
    p = p * r + 1.0 / 24.0;
    p = p * r + 1.0 / 6.0;
    p = p * r + 0.5;
    p = (p * r) * r + r;
    let scale = bitcast<f32>(u32(i32(k) + 127) << 23u);
    return scale * p + (scale - minus);
}

fn exp_full(x: f32) -> f32 {
    return exp_parts(x, 0.0);
}

fn exp_m1(x: f32) -> f32 {
    return exp_parts(x, 1.0);
}

// ln x of a normal positive number: x = m 2^k with m near one, and ln m = 2 artanh((m - 1) / (m + 1)).
fn logarithm(x: f32) -> f32 {
    let bits = bitcast<u32>(x);
    // The exponent k for which m lies between sqrt(1/2) and sqrt(2).
    let k = bitcast<i32>(bits - 0x3f3504f3u) >> 23u;
    let m = bitcast<f32>(bits - (bitcast<u32>(k) << 23u));
    let s = (m - 1.0) / (m + 1.0);
    let s2 = s * s;
    let series = s * (2.0 + s2 * (2.0 / 3.0 + s2 * (2.0 / 5.0 + s2 * (2.0 / 7.0 + s2 * (2.0 / 9.0)))));
    return series + f32(k) * 0.69314718;
}

// ln(1 + x) for x > -1. Up to 1 by 2 artanh(x / (2 + x)), whose series has terms under 1e-8 from s^14 on.
fn ln_1p(x: f32) -> f32 {
    if abs(x) > 1.0 {
        return log(1.0 + x);
    }
    let s = x / (2.0 + x);
    let q = s * s;
    var p = 1.0 / 15.0;
    p = p * q + 1.0 / 13.0;
    p = p * q + 1.0 / 11.0;
    p = p * q + 1.0 / 9.0;
    p = p * q + 1.0 / 7.0;
    p = p * q + 1.0 / 5.0;
    p = p * q + 1.0 / 3.0;
    p = p * q + 1.0;
    return 2.0 * s * p;
}

// The angle of the point (x, y), to about 2 ulp of pi: WGSL's atan2 may be off by 4096 ulp. The ratio of the smaller
// to the larger coordinate is reduced to |r| <= tan(pi / 8) for the series.
fn arc_tangent(y: f32, x: f32) -> f32 {
    let low = min(abs(x), abs(y));
    let high = max(abs(x), abs(y));
    // Where both are zero, so is the angle.
    let is_steep = low > 0.41421356 * high;
    let above = select(low, low - high, is_steep);
    let below = select(high, low + high, is_steep);
    let ratio = above / select(below, 1.0, below == 0.0);
    let q = ratio * ratio;
    var p = -1.0 / 15.0;
    p = p * q + 1.0 / 13.0;
    p = p * q - 1.0 / 11.0;
    p = p * q + 1.0 / 9.0;
    p = p * q - 1.0 / 7.0;
    p = p * q + 1.0 / 5.0;
    p = p * q - 1.0 / 3.0;
    var angle = select(0.0, 0.25 * PI, is_steep) + (ratio + ratio * q * p);
    angle = select(angle, HALF_PI - angle, abs(y) > abs(x));
    angle = select(angle, PI - angle, x < 0.0);
    return select(angle, -angle, y < 0.0);
}

// The angle with cosine x.
fn arc_cosine(x: f32) -> f32 {
    return arc_tangent(sqrt((1.0 - x) * (1.0 + x)), x);
}

// tan x for 0 <= x < pi / 2; above pi / 4 as 1 / tan(pi / 2 - x), which stays accurate near pi / 2.
fn tangent(x: f32) -> f32 {
    if x > 0.25 * PI {
        return 1.0 / tangent_small((HALF_PI - x) - 4.371139e-8);
    }
    return tangent_small(x);
}

// tan x for |x| <= pi / 4, as sine series over cosine series.
fn tangent_small(x: f32) -> f32 {
    let q = x * x;
    let sine = x * (1.0 + q * (-1.0 / 6.0 + q * (1.0 / 120.0 + q * (-1.0 / 5040.0 + q * (1.0 / 362880.0)))));
    let cosine = 1.0 + q * (-0.5 + q * (1.0 / 24.0 + q * (-1.0 / 720.0 + q * (1.0 / 40320.0))));
    return sine / cosine;
}

// Whether x is finite, by its bits: compilers may assume that floats are and drop comparisons.
fn is_finite(x: f32) -> bool {
    return (bitcast<u32>(x) & 0x7f800000u) != 0x7f800000u;
}

// Returns `x` unchanged. `zero` is 0, which the compiler cannot know: it neither cancels nor fuses operations across this
// call.
fn as_rounded(x: vec3f, zero: u32) -> vec3f {
    return bitcast<vec3f>(bitcast<vec3u>(x) ^ vec3u(zero));
}

// The rounded sum of two numbers, and its exact rounding error (Knuth1997, section 4.2.2).
struct Sum {
    rounded: vec3f,
    left_out: vec3f,
}

fn two_sum(a: vec3f, b: vec3f, zero: u32) -> Sum {
    let sum = as_rounded(a + b, zero);
    let from_b = as_rounded(sum - a, zero);
    let from_a = as_rounded(sum - from_b, zero);
    return Sum(sum, as_rounded(a - from_a, zero) + as_rounded(b - from_b, zero));
}

// Applies the linear part of an affine map.
fn transform_vector(m: Rows, v: vec3f) -> vec3f {
    return vec3f(
        m[0].x * v.x + m[0].y * v.y + m[0].z * v.z,
        m[1].x * v.x + m[1].y * v.y + m[1].z * v.z,
        m[2].x * v.x + m[2].y * v.y + m[2].z * v.z,
    );
}

// Applies an affine map.
fn transform_point(m: Rows, p: vec3f) -> vec3f {
    return vec3f(
        m[0].x * p.x + m[0].y * p.y + m[0].z * p.z + m[0].w,
        m[1].x * p.x + m[1].y * p.y + m[1].z * p.z + m[1].w,
        m[2].x * p.x + m[2].y * p.y + m[2].z * p.z + m[2].w,
    );
}

// v normalised to unit length.
fn unit(v: vec3f) -> vec3f {
    return v * (1.0 / sqrt(v.x * v.x + v.y * v.y + v.z * v.z));
}
