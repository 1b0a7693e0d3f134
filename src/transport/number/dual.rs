//! Forward-mode differentiation: a value and its derivative by one parameter.

use std::ops::{Add, AddAssign, Div, Mul, MulAssign, Neg, Sub, SubAssign};

use super::Number;

/// A value and its derivative by the variables seeded with slope one.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Dual {
    pub value: f64,
    pub slope: f64,
}

impl Dual {
    /// A value with a derivative.
    #[inline]
    pub fn new(value: f64, slope: f64) -> Self {
        Self { value, slope }
    }

    /// A value that does not depend on the parameter.
    #[inline]
    pub fn constant(value: f64) -> Self {
        Self { value, slope: 0.0 }
    }
}

impl Add for Dual {
    type Output = Self;
    #[inline]
    fn add(self, other: Self) -> Self {
        Self::new(self.value + other.value, self.slope + other.slope)
    }
}

impl Sub for Dual {
    type Output = Self;
    #[inline]
    fn sub(self, other: Self) -> Self {
        Self::new(self.value - other.value, self.slope - other.slope)
    }
}

impl Mul for Dual {
    type Output = Self;
    #[inline]
    fn mul(self, other: Self) -> Self {
        Self::new(
            self.value * other.value,
            self.slope * other.value + self.value * other.slope,
        )
    }
}

impl Div for Dual {
    type Output = Self;
    #[inline]
    fn div(self, other: Self) -> Self {
        let value = self.value / other.value;
        Self::new(value, (self.slope - value * other.slope) / other.value)
    }
}

impl Neg for Dual {
    type Output = Self;
    #[inline]
    fn neg(self) -> Self {
        Self::new(-self.value, -self.slope)
    }
}

impl AddAssign for Dual {
    #[inline]
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl SubAssign for Dual {
    #[inline]
    fn sub_assign(&mut self, other: Self) {
        *self = *self - other;
    }
}

impl MulAssign for Dual {
    #[inline]
    fn mul_assign(&mut self, other: Self) {
        *self = *self * other;
    }
}

impl Number for Dual {
    #[inline]
    fn lift(x: f32) -> Self {
        Self::constant(f64::from(x))
    }
    #[inline]
    fn value(self) -> f64 {
        self.value
    }
    #[inline]
    fn detach(self) -> Self {
        Self::constant(self.value)
    }
    #[inline]
    fn below(self, bound: f32) -> bool {
        self.value < f64::from(bound)
    }
    #[inline]
    fn above(self, bound: f32) -> bool {
        self.value > f64::from(bound)
    }
    #[inline]
    fn exp(self) -> Self {
        let e = self.value.exp();
        Self::new(e, e * self.slope)
    }
    #[inline]
    fn exp_m1(self) -> Self {
        Self::new(self.value.exp_m1(), self.value.exp() * self.slope)
    }
    #[inline]
    fn ln(self) -> Self {
        Self::new(self.value.ln(), self.slope / self.value)
    }
    #[inline]
    fn ln_1p(self) -> Self {
        Self::new(self.value.ln_1p(), self.slope / (1.0 + self.value))
    }
    #[inline]
    fn recip(self) -> Self {
        let r = 1.0 / self.value;
        Self::new(r, -r * r * self.slope)
    }
    #[inline]
    fn sqrt(self) -> Self {
        let root = self.value.sqrt();
        Self::new(root, 0.5 / root * self.slope)
    }
    #[inline]
    fn sin(self) -> Self {
        let (sine, cosine) = self.value.sin_cos();
        Self::new(sine, cosine * self.slope)
    }
    #[inline]
    fn cos(self) -> Self {
        let (sine, cosine) = self.value.sin_cos();
        Self::new(cosine, -sine * self.slope)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slopes_are_those_of_calculus() {
        let x = Dual::new(0.7, 1.0);
        let f = |x: f64| {
            (x * x - 3.0 * x).exp() / (1.0 + x)
                + (-x).exp_m1() * (2.0 * x).ln_1p()
                + x.sin() / x.cos() * (3.0 * x).sqrt()
        };
        let three = Dual::lift(3.0);
        let y = (x * x - three * x).exp() * (Dual::lift(1.0) + x).recip()
            + (-x).exp_m1() * (Dual::lift(2.0) * x).ln_1p()
            + Number::sin(x) / Number::cos(x) * (three * x).sqrt();
        let h = 1e-4;
        let coarse = (f(0.7 + h) - f(0.7 - h)) / (2.0 * h);
        let fine = (f(0.7 + h / 2.0) - f(0.7 - h / 2.0)) / h;
        assert!((y.value - f(0.7)).abs() < 1e-14);
        assert!((y.slope - (4.0 * fine - coarse) / 3.0).abs() < 1e-11, "{y:?}");
        assert_eq!(y.detach().slope, 0.0);
    }
}
