// 64-bit integers as two words (low, high) in two's complement, in units that the host chooses: their sums do not
// depend on the order of additions. src/device/units.rs states how every overflow is detected.

// Upper limit of a contribution: 2^62 units.
const FIXED_LARGEST: f32 = 4611686018427387904.0;
// A sum whose high word is at or beyond this, in either direction, has a magnitude of 2^62 units or more.
const FIXED_ALARM: u32 = 0x40000000u;
// Fewest and most binary digits of the largest adjoint that a unit resolves.
const FIXED_FEWEST_DIGITS: i32 = 16;
const FIXED_MOST_DIGITS: i32 = 40;

// The integer nearest to |x| < FIXED_LARGEST.
fn fixed_from_f32(x: f32) -> vec2u {
    let size = abs(x);
    // Both are exact: the product with a power of two, and the difference, which has no more digits than `size`.
    let high = floor(size * 2.3283064365386963e-10);
    let low = round(size - high * 4294967296.0);
    let words = vec2u(u32(low), u32(high));
    return select(words, fixed_negate(words), x < 0.0);
}

fn fixed_negate(words: vec2u) -> vec2u {
    return vec2u(~words.x + 1u, ~words.y + select(0u, 1u, words.x == 0u));
}

// The nearest f32, computed from the magnitude: small negative numbers would lose digits in two's complement.
fn fixed_to_f32(words: vec2u) -> f32 {
    let negative = (words.y >> 31u) == 1u;
    let magnitude = select(words, fixed_negate(words), negative);
    let x = f32(magnitude.y) * 4294967296.0 + f32(magnitude.x);
    return select(x, -x, negative);
}

// Whether a sum with this high word is close to overflow.
fn fixed_alarm(high: u32) -> bool {
    return high + FIXED_ALARM >= 2u * FIXED_ALARM;
}
