//! RGB triples of numbers, with channel-wise operators.

use std::ops::{Add, AddAssign, Index, IndexMut, Mul, MulAssign, Neg, Sub, SubAssign};

use super::Number;
use crate::each::EachEntry;

/// Three channels of radiance, or of a factor on radiance.
#[derive(Debug, Clone, Copy, Default)]
pub struct Rgb<N>(pub [N; 3]);

/// Channel by channel: the derived comparison of arrays would be a function call in the walk.
impl<N: PartialEq> PartialEq for Rgb<N> {
    #[inline(always)]
    fn eq(&self, other: &Self) -> bool {
        self.0[0] == other.0[0] && self.0[1] == other.0[1] && self.0[2] == other.0[2]
    }
}

impl<N: Number> Rgb<N> {
    /// Black.
    #[inline(always)]
    pub fn zero() -> Self {
        Self::splat(N::lift(0.0))
    }

    /// The same number in all channels.
    #[inline(always)]
    pub fn splat(x: N) -> Self {
        Self([x; 3])
    }

    /// Three constants.
    #[inline(always)]
    pub fn lift(x: [f32; 3]) -> Self {
        Self(x.each(N::lift))
    }

    /// A function of each channel.
    #[inline(always)]
    pub fn map(self, f: impl FnMut(N) -> N) -> Self {
        Self(self.0.each(f))
    }

    /// The sum of the channels, in order.
    #[inline(always)]
    pub fn sum(self) -> N {
        self[0] + self[1] + self[2]
    }
}

impl<N> Index<usize> for Rgb<N> {
    type Output = N;
    #[inline(always)]
    fn index(&self, c: usize) -> &N {
        &self.0[c]
    }
}

impl<N> IndexMut<usize> for Rgb<N> {
    #[inline(always)]
    fn index_mut(&mut self, c: usize) -> &mut N {
        &mut self.0[c]
    }
}

impl<N: Number> Add for Rgb<N> {
    type Output = Self;
    #[inline(always)]
    fn add(self, other: Self) -> Self {
        Self([self[0] + other[0], self[1] + other[1], self[2] + other[2]])
    }
}

impl<N: Number> Sub for Rgb<N> {
    type Output = Self;
    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        Self([self[0] - other[0], self[1] - other[1], self[2] - other[2]])
    }
}

impl<N: Number> Mul for Rgb<N> {
    type Output = Self;
    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        Self([self[0] * other[0], self[1] * other[1], self[2] * other[2]])
    }
}

/// Times a constant.
impl<N: Number> Mul<f32> for Rgb<N> {
    type Output = Self;
    #[inline(always)]
    fn mul(self, factor: f32) -> Self {
        let factor = N::lift(factor);
        self.map(|x| x * factor)
    }
}

impl<N: Number> Neg for Rgb<N> {
    type Output = Self;
    #[inline(always)]
    fn neg(self) -> Self {
        self.map(|x| -x)
    }
}

impl<N: Number> AddAssign for Rgb<N> {
    #[inline(always)]
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl<N: Number> SubAssign for Rgb<N> {
    #[inline(always)]
    fn sub_assign(&mut self, other: Self) {
        *self = *self - other;
    }
}

impl<N: Number> MulAssign for Rgb<N> {
    #[inline(always)]
    fn mul_assign(&mut self, other: Self) {
        *self = *self * other;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operators_go_channel_by_channel() {
        let (a, b) = (Rgb([1.0f32, 2.0, 3.0]), Rgb([4.0, 0.5, -1.0]));
        assert_eq!(a + b, Rgb([5.0, 2.5, 2.0]));
        assert_eq!(a - b, Rgb([-3.0, 1.5, 4.0]));
        assert_eq!(a * b, Rgb([4.0, 1.0, -3.0]));
        assert_eq!(a * 2.0, Rgb([2.0, 4.0, 6.0]));
        assert_eq!(-a, Rgb([-1.0, -2.0, -3.0]));
        assert_eq!((b.sum(), Rgb::<f32>::zero()[1]), (3.5, 0.0));
        let mut c = a;
        c += b;
        c -= a;
        c *= b;
        assert_eq!(c, b * b);
        c[1] = 7.0;
        assert_eq!(c[1], 7.0);
    }
}
