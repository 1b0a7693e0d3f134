//! The number types that a walk is generic over.
//!
//! Branches depend on values only; random draws and geometry are f32 and converted by [`Number::lift`]. f32 is the CPU
//! device, f64 the oracle of the tests, [`dual::Dual`] gives forward-mode derivatives and [`tape::Recorded`]
//! conventional reverse-mode ones.

pub mod dual;
pub mod rgb;
pub mod tape;

use std::fmt::Debug;
use std::ops::{Add, AddAssign, Div, Mul, MulAssign, Neg, Sub, SubAssign};

/// The operations of a walk.
pub trait Number:
    Copy
    + Debug
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
    + AddAssign
    + SubAssign
    + MulAssign
{
    /// A constant.
    fn lift(x: f32) -> Self;
    /// The value alone.
    fn value(self) -> f64;
    /// The same value, no derivative.
    fn detach(self) -> Self;
    /// Whether the value is less than a constant.
    fn below(self, bound: f32) -> bool;
    /// Whether the value is greater than a constant.
    fn above(self, bound: f32) -> bool;
    /// exp x
    fn exp(self) -> Self;
    /// exp x - 1 without cancellation
    fn exp_m1(self) -> Self;
    /// ln x of a positive number
    fn ln(self) -> Self;
    /// ln(1 + x) without cancellation
    fn ln_1p(self) -> Self;
    /// 1 / x
    fn recip(self) -> Self;
    /// The square root; its derivative at zero is infinite.
    fn sqrt(self) -> Self;
    /// The sine of an angle in radians.
    fn sin(self) -> Self;
    /// The cosine of an angle in radians.
    fn cos(self) -> Self;

    /// The angle in radians of the direction with this sine and cosine. The default adds the sine of what rounding to f32
    /// leaves of it, which is so small that it equals its sine.
    #[inline(always)]
    fn angle(sine: Self, cosine: Self) -> Self {
        let near = Self::lift(sine.value().atan2(cosine.value()) as f32);
        near + sine * near.cos() - cosine * near.sin()
    }

    /// Compensated addition: adds `term` to a sum of twice the digits, kept as a number and its rounding error.
    #[inline(always)]
    fn add_doubled([sum, low]: [Self; 2], term: Self) -> [Self; 2] {
        let [sum, left_out] = two_sum(sum, term);
        two_sum(sum, low + left_out)
    }

    /// |x|; its derivative at zero is that of x.
    #[inline(always)]
    fn abs(self) -> Self {
        if self.below(0.0) { -self } else { self }
    }
    /// The number whose value is less; the first of equal ones.
    #[inline(always)]
    fn min(self, other: Self) -> Self {
        if other.value() < self.value() { other } else { self }
    }
    /// The number whose value is greater; the first of equal ones.
    #[inline(always)]
    fn max(self, other: Self) -> Self {
        if other.value() > self.value() { other } else { self }
    }
}

/// The rounded sum of two numbers, and exactly what rounding left out of it (Knuth1997, section 4.2.2).
#[inline(always)]
fn two_sum<N: Number>(a: N, b: N) -> [N; 2] {
    let sum = a + b;
    let from_b = sum - a;
    let from_a = sum - from_b;
    [sum, (a - from_a) + (b - from_b)]
}

impl Number for f32 {
    #[inline(always)]
    fn angle(sine: Self, cosine: Self) -> Self {
        sine.atan2(cosine)
    }
    #[inline(always)]
    fn lift(x: f32) -> Self {
        x
    }
    #[inline(always)]
    fn value(self) -> f64 {
        f64::from(self)
    }
    #[inline(always)]
    fn detach(self) -> Self {
        self
    }
    #[inline(always)]
    fn below(self, bound: f32) -> bool {
        self < bound
    }
    #[inline(always)]
    fn above(self, bound: f32) -> bool {
        self > bound
    }
    #[inline(always)]
    fn exp(self) -> Self {
        exp_parts(self, 0.0)
    }
    #[inline(always)]
    fn exp_m1(self) -> Self {
        exp_parts(self, 1.0)
    }
    #[inline(always)]
    fn ln(self) -> Self {
        logarithm(self)
    }
    #[inline(always)]
    fn ln_1p(self) -> Self {
        f32::ln_1p(self)
    }
    #[inline(always)]
    fn recip(self) -> Self {
        1.0 / self
    }
    #[inline(always)]
    fn sqrt(self) -> Self {
        f32::sqrt(self)
    }
    #[inline(always)]
    fn sin(self) -> Self {
        f32::sin(self)
    }
    #[inline(always)]
    fn cos(self) -> Self {
        f32::cos(self)
    }
}

/// exp x - `minus` for `minus` 0 or 1, to about 2 ulp: x = k ln 2 + r with |r| ≤ ln 2 / 2 and exp x = 2^k + 2^k e with
/// e = exp r - 1 by its Taylor polynomial. Not the standard library's, because the WGSL twin must take the
/// same steps and WGSL has no exp_m1.
#[inline(always)]
fn exp_parts(x: f32, minus: f32) -> f32 {
    let x = x.clamp(-87.0, 88.0);
    let k = (x * std::f32::consts::LOG2_E + 0.5).floor();
    let r = (x - k * 0.693_359_4) + k * 2.121_944_4e-4;
    let p = 1.0 / 5040.0;
    let p = p * r + 1.0 / 720.0;
    let p = p * r + 1.0 / 120.0;
    let p = p * r + 1.0 / 24.0;
    let p = p * r + 1.0 / 6.0;
    let p = p * r + 0.5;
    let p = (p * r) * r + r;
    let scale = f32::from_bits(((k as i32 + 127) as u32) << 23);
    scale * p + (scale - minus)
}

/// ln x of a normal positive number, to about 2 ulp: x = m 2^k with m near one, and ln m = 2 artanh((m - 1) / (m + 1)).
/// Not the standard library's, because the WGSL twin must take the same steps.
#[inline(always)]
fn logarithm(x: f32) -> f32 {
    let bits = x.to_bits();
    // The exponent k for which m lies between sqrt(1/2) and sqrt(2).
    let k = (bits.wrapping_sub(0x3f35_04f3) as i32) >> 23;
    let m = f32::from_bits(bits.wrapping_sub((k as u32) << 23));
    let s = (m - 1.0) / (m + 1.0);
    let s2 = s * s;
    let series = s * (2.0 + s2 * (2.0 / 3.0 + s2 * (2.0 / 5.0 + s2 * (2.0 / 7.0 + s2 * (2.0 / 9.0)))));
    series + k as f32 * std::f32::consts::LN_2
}

impl Number for f64 {
    #[inline(always)]
    fn lift(x: f32) -> Self {
        f64::from(x)
    }
    #[inline(always)]
    fn value(self) -> f64 {
        self
    }
    #[inline(always)]
    fn detach(self) -> Self {
        self
    }
    #[inline(always)]
    fn below(self, bound: f32) -> bool {
        self < f64::from(bound)
    }
    #[inline(always)]
    fn above(self, bound: f32) -> bool {
        self > f64::from(bound)
    }
    #[inline(always)]
    fn exp(self) -> Self {
        f64::exp(self)
    }
    #[inline(always)]
    fn exp_m1(self) -> Self {
        f64::exp_m1(self)
    }
    #[inline(always)]
    fn ln(self) -> Self {
        f64::ln(self)
    }
    #[inline(always)]
    fn ln_1p(self) -> Self {
        f64::ln_1p(self)
    }
    #[inline(always)]
    fn recip(self) -> Self {
        1.0 / self
    }
    #[inline(always)]
    fn sqrt(self) -> Self {
        f64::sqrt(self)
    }
    #[inline(always)]
    fn sin(self) -> Self {
        f64::sin(self)
    }
    #[inline(always)]
    fn cos(self) -> Self {
        f64::cos(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f32_logarithms_are_right_to_a_few_ulp() {
        for i in -1260..1270 {
            let x = (i as f32 * 0.1).exp2();
            let exact = f64::from(x).ln();
            assert!((Number::ln(x).value() - exact).abs() <= 3e-7 * exact.abs(), "ln {x}");
        }
        assert_eq!(Number::ln(1.0f32), 0.0);
    }

    #[test]
    fn f32_exponentials_are_right_to_a_few_ulp() {
        for i in -8600..8700 {
            let x = i as f32 * 0.01;
            let exact = f64::from(x).exp();
            assert!((Number::exp(x).value() - exact).abs() <= 4e-7 * exact, "exp {x}");
            let exact = f64::from(x).exp_m1();
            assert!(
                (Number::exp_m1(x).value() - exact).abs() <= 4e-7 * exact.abs(),
                "exp_m1 {x}"
            );
        }
        for x in [1e-10f32, -1e-7, 3e-5, -0.3] {
            let exact = f64::from(x).exp_m1();
            assert!(
                (Number::exp_m1(x).value() - exact).abs() <= 2e-7 * exact.abs(),
                "exp_m1 {x}"
            );
        }
    }
}
