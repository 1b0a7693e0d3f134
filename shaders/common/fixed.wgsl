// 64-bit fixed-point numbers as two words (low, high), in units of 2^-40: their sums do not depend on the order.

// Limit of a contribution: a single addition cannot carry a sum past the range that FIXED_ALARM detects.
const FIXED_LARGEST: f32 = 4194304.0;
// A high word at or beyond this, in either direction, is close to overflow.
const FIXED_ALARM: u32 = 0x40000000u;

// The fixed-point number nearest to a finite |x| < FIXED_LARGEST.
fn fixed_from_f32(x: f32) -> vec2u {
    // The high word has units of 2^-8. Scaling by powers of two and subtracting the integer part are exact.
    let scaled = abs(x) * 256.0;
    let whole = floor(scaled);
    let rest = round((scaled - whole) * 4294967296.0);
    var words = vec2u(0u, u32(whole));
    if rest >= 4294967296.0 {
        words.y += 1u;
    } else {
        words.x = u32(rest);
    }
    return select(words, fixed_negate(words), x < 0.0);
}

fn fixed_negate(words: vec2u) -> vec2u {
    return vec2u(~words.x + 1u, ~words.y + select(0u, 1u, words.x == 0u));
}

// The nearest f32, computed from the magnitude: small negative numbers would lose digits in two's complement.
fn fixed_to_f32(words: vec2u) -> f32 {
    let negative = (words.y >> 31u) == 1u;
    let magnitude = select(words, fixed_negate(words), negative);
    let x = f32(magnitude.y) * 0.00390625 + f32(magnitude.x) * 9.094947e-13;
    return select(x, -x, negative);
}

fn fixed_add(a: vec2u, b: vec2u) -> vec2u {
    let low = a.x + b.x;
    return vec2u(low, a.y + b.y + select(0u, 1u, low < a.x));
}

// Whether a high word is close to overflow.
fn fixed_alarm(high: u32) -> bool {
    return high + FIXED_ALARM >= 2u * FIXED_ALARM;
}
