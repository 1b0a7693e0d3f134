//! Forward-mode differentiation by several variables at once, over any number: a value and its gradient.

use crate::each::each_index;
use std::ops::{Add, AddAssign, Div, Mul, MulAssign, Neg, Sub, SubAssign};

use super::Number;
use crate::each::EachEntry;

/// A value and its derivatives by `COUNT` variables.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Jet<N, const COUNT: usize> {
    pub value: N,
    pub slopes: [N; COUNT],
}

impl<N: Number, const COUNT: usize> Jet<N, COUNT> {
    /// A value that does not depend on the variables.
    #[inline(always)]
    pub fn constant(value: N) -> Self {
        Self {
            value,
            slopes: [N::lift(0.0); COUNT],
        }
    }

    /// The variable of this number, with this value.
    #[inline(always)]
    pub fn variable(value: N, number: usize) -> Self {
        let mut jet = Self::constant(value);
        jet.slopes[number] = N::lift(1.0);
        jet
    }

    /// A function of one variable at this value, of which `value` and `slope` are given.
    #[inline(always)]
    fn chain(self, value: N, slope: N) -> Self {
        Self {
            value,
            slopes: self.slopes.each(|x| x * slope),
        }
    }
}

impl<N: Number, const COUNT: usize> Add for Jet<N, COUNT> {
    type Output = Self;
    #[inline(always)]
    fn add(self, other: Self) -> Self {
        Self {
            value: self.value + other.value,
            slopes: each_index(|k| self.slopes[k] + other.slopes[k]),
        }
    }
}

impl<N: Number, const COUNT: usize> Sub for Jet<N, COUNT> {
    type Output = Self;
    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        Self {
            value: self.value - other.value,
            slopes: each_index(|k| self.slopes[k] - other.slopes[k]),
        }
    }
}

#[allow(clippy::suspicious_arithmetic_impl, reason = "derivatives of products and quotients")]
impl<N: Number, const COUNT: usize> Mul for Jet<N, COUNT> {
    type Output = Self;
    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        Self {
            value: self.value * other.value,
            slopes: each_index(|k| self.slopes[k] * other.value + self.value * other.slopes[k]),
        }
    }
}

#[allow(clippy::suspicious_arithmetic_impl, reason = "derivatives of products and quotients")]
impl<N: Number, const COUNT: usize> Div for Jet<N, COUNT> {
    type Output = Self;
    #[inline(always)]
    fn div(self, other: Self) -> Self {
        let value = self.value / other.value;
        Self {
            value,
            slopes: each_index(|k| (self.slopes[k] - value * other.slopes[k]) / other.value),
        }
    }
}

impl<N: Number, const COUNT: usize> Neg for Jet<N, COUNT> {
    type Output = Self;
    #[inline(always)]
    fn neg(self) -> Self {
        Self {
            value: -self.value,
            slopes: self.slopes.each(|x| -x),
        }
    }
}

impl<N: Number, const COUNT: usize> AddAssign for Jet<N, COUNT> {
    #[inline(always)]
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl<N: Number, const COUNT: usize> SubAssign for Jet<N, COUNT> {
    #[inline(always)]
    fn sub_assign(&mut self, other: Self) {
        *self = *self - other;
    }
}

impl<N: Number, const COUNT: usize> MulAssign for Jet<N, COUNT> {
    #[inline(always)]
    fn mul_assign(&mut self, other: Self) {
        *self = *self * other;
    }
}

impl<N: Number, const COUNT: usize> Number for Jet<N, COUNT> {
    #[inline(always)]
    fn lift(x: f32) -> Self {
        Self::constant(N::lift(x))
    }
    #[inline(always)]
    fn value(self) -> f64 {
        self.value.value()
    }
    #[inline(always)]
    fn detach(self) -> Self {
        Self::constant(self.value.detach())
    }
    #[inline(always)]
    fn below(self, bound: f32) -> bool {
        self.value.below(bound)
    }
    #[inline(always)]
    fn above(self, bound: f32) -> bool {
        self.value.above(bound)
    }
    #[inline(always)]
    fn exp(self) -> Self {
        let e = self.value.exp();
        self.chain(e, e)
    }
    #[inline(always)]
    fn exp_m1(self) -> Self {
        self.chain(self.value.exp_m1(), self.value.exp())
    }
    #[inline(always)]
    fn ln(self) -> Self {
        self.chain(self.value.ln(), self.value.recip())
    }
    #[inline(always)]
    fn ln_1p(self) -> Self {
        self.chain(self.value.ln_1p(), (N::lift(1.0) + self.value).recip())
    }
    #[inline(always)]
    fn recip(self) -> Self {
        let r = self.value.recip();
        self.chain(r, -(r * r))
    }
    #[inline(always)]
    fn sqrt(self) -> Self {
        let root = self.value.sqrt();
        self.chain(root, N::lift(0.5) / root)
    }
    #[inline(always)]
    fn sin(self) -> Self {
        self.chain(self.value.sin(), self.value.cos())
    }
    #[inline(always)]
    fn cos(self) -> Self {
        self.chain(self.value.cos(), -self.value.sin())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::number::dual::Dual;

    /// Every operation of a walk, of two variables.
    fn all<N: Number>(x: N, y: N) -> N {
        let three = N::lift(3.0);
        let mut sum = (x * y - three * x).exp() * (N::lift(1.0) + y).recip() - (-x).exp_m1() / y;
        sum += (N::lift(2.0) * x).ln_1p() * y.ln() + x.sin() / y.cos();
        sum -= (three * x * y).sqrt();
        sum *= x.max(y).abs();
        sum + sum.detach()
    }

    #[test]
    fn slopes_are_those_of_forward_mode() {
        let [x, y] = [0.7, 0.4];
        let jet: Jet<f64, 2> = all(Jet::variable(x, 0), Jet::variable(y, 1));
        for (k, seeds) in [[1.0, 0.0], [0.0, 1.0]].into_iter().enumerate() {
            let dual = all(Dual::new(x, seeds[0]), Dual::new(y, seeds[1]));
            assert!((jet.value - dual.value).abs() < 1e-15, "{jet:?} {dual:?}");
            assert!((jet.slopes[k] - dual.slope).abs() < 1e-14, "{k}: {jet:?} {dual:?}");
        }
    }
}
