//! SIMD vectors of sixteen numbers, for kernels that are written once for all vector levels. Written with intrinsics,
//! because compilers split loops over sixteen lanes as soon as they have branches.
//!
//! Every operation rounds as that of a single number does, so that all levels give the same bits.

#[cfg(target_arch = "x86_64")]
pub(in crate::device::cpu) mod avx2;
#[cfg(target_arch = "x86_64")]
pub(in crate::device::cpu) mod avx512;

use std::ops::{Add, Div, Mul, Sub};

use super::level::Kernel;
use super::wide::Wide;
use crate::each::{EachEntry, each_index};

/// Numbers of a vector.
pub(in crate::device::cpu) const WIDTH: usize = 16;

/// One number for each lane. Comparisons with NaN are false, and `min` and `max` return their second operand if one is NaN.
pub(in crate::device::cpu) trait Lanes:
    Copy + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> + Div<Output = Self>
{
    /// A truth value for each lane.
    type Mask: Copy;

    /// Whether operations are vector instructions, rather than loops over the lanes.
    const IS_VECTOR: bool = true;

    /// Whether there are registers enough to keep a dozen vectors while other things are computed.
    const IS_ROOMY: bool;

    /// Parts of the lanes that kernels process one after the other where all lanes at once would need too many registers.
    const PARTS: usize = 1;

    /// A part of the lanes; the values of the other lanes are undefined.
    #[inline(always)]
    fn part(self, _part: usize) -> Self {
        self
    }
    /// Puts the first part and the second one together, if there are two.
    #[inline(always)]
    fn join(first: Self, _second: Self) -> Self {
        first
    }
    /// [`Self::store`] for a part of the lanes.
    #[inline(always)]
    fn store_part(self, to: &mut [f32; WIDTH], _part: usize) {
        self.store(to);
    }

    fn splat(x: f32) -> Self;
    fn load(from: &[f32; WIDTH]) -> Self;
    fn store(self, to: &mut [f32; WIDTH]);
    /// Four numbers, each repeated in a quarter of the lanes.
    fn quarters(of: [f32; 4]) -> Self;
    /// Four rows of four numbers, which begin `stride` apart.
    ///
    /// # Panics
    /// The last row reaches beyond `from`.
    fn rows(from: &[f32], first: usize, stride: usize) -> Self;
    /// Lanes 4 Q to 4 Q + 3, repeated in each quarter.
    fn quarter<const Q: usize>(self) -> Self;
    /// Lanes 4 Q to 4 Q + 3, each repeated in a quarter of its own.
    fn stretch<const Q: usize>(self) -> Self;
    /// Lane L, repeated in all lanes.
    fn lane<const L: usize>(self) -> Self;
    fn min(self, other: Self) -> Self;
    fn max(self, other: Self) -> Self;
    /// The number times `factor` plus `term`, rounded once.
    fn mul_add(self, factor: Self, term: Self) -> Self;
    /// The number less `a` times `b`, rounded once.
    fn sub_product(self, a: Self, b: Self) -> Self;

    /// Lanes whose number is `other` or more.
    fn at_least(self, other: Self) -> Self::Mask;
    /// Lanes whose number is less than `other`.
    fn below(self, other: Self) -> Self::Mask;
    /// Lanes whose count is above `least`. Both are below 2³¹.
    fn above(counts: &[u32; WIDTH], least: u32) -> Self::Mask;
    /// A bit for each lane.
    fn bits(mask: Self::Mask) -> u32;
    /// A bit for each word: whether its bit number `bit`, counted from the lowest, is set.
    fn having(words: &[u32; WIDTH], bit: u32) -> u32;

    /// Zero in the lanes that are not in `mask`.
    fn keep(self, mask: Self::Mask) -> Self;

    /// The number times 2ᵏ, k being the integer in the lowest bits of `exponent`: an addition to the exponent's bits, exact.
    fn add_exponent(self, exponent: Self) -> Self;
    /// The sum of all lanes: the upper half is added to the lower one, until one lane is left.
    fn sum(self) -> f32;
    /// [`Self::sum`] of each vector.
    fn sums(vectors: &[Self; 8]) -> [f32; 8];

    /// 2ˣ to 2 ulp for x between -126 and 127; undefined elsewhere. Adding a large number rounds x to an integer, which is
    /// then in the lowest bits; the rest is in ±½, where a minimax polynomial is right to 10⁻⁷.
    #[inline(always)]
    #[allow(
        clippy::approx_constant,
        reason = "coefficients of a minimax polynomial, not of the series"
    )]
    fn exp2(self) -> Self {
        const LARGE: f32 = 12_582_912.0;
        let coefficient = Self::splat;
        let shifted = self + Self::splat(LARGE);
        let r = self - (shifted - Self::splat(LARGE));
        let square = r * r;
        let high = coefficient(0.001_326_472_7).mul_add(r, coefficient(0.009_671_513));
        let middle = coefficient(0.055_507_336).mul_add(r, coefficient(0.240_222_42));
        let low = coefficient(0.693_147).mul_add(r, coefficient(1.0));
        let p = high.mul_add(square, middle).mul_add(square, low);
        p.add_exponent(shifted)
    }
}

/// [`Lanes::exp2`] of a number of vectors.
pub(in crate::device::cpu) struct PowersOfTwo<'a> {
    pub(in crate::device::cpu) numbers: &'a [[f32; WIDTH]],
    pub(in crate::device::cpu) powers: &'a mut [[f32; WIDTH]],
}

impl Kernel for PowersOfTwo<'_> {
    type Output = ();

    #[inline(always)]
    fn run<W: Wide>(self) {
        for i in 0..self.numbers.len().min(self.powers.len()) {
            W::Lanes::load(&self.numbers[i]).exp2().store(&mut self.powers[i]);
        }
    }
}

/// Plain loops, as wide as the compiler makes them.
#[derive(Debug, Clone, Copy)]
pub(in crate::device::cpu) struct PlainLanes([f32; WIDTH]);

impl PlainLanes {
    #[inline(always)]
    fn zip(self, other: Self, f: impl Fn(f32, f32) -> f32) -> Self {
        Self(each_index(|l| f(self.0[l], other.0[l])))
    }
}

impl Lanes for PlainLanes {
    type Mask = [bool; WIDTH];

    const IS_VECTOR: bool = false;

    const IS_ROOMY: bool = false;

    #[inline(always)]
    fn splat(x: f32) -> Self {
        Self([x; WIDTH])
    }
    #[inline(always)]
    fn load(from: &[f32; WIDTH]) -> Self {
        Self(*from)
    }
    #[inline(always)]
    fn store(self, to: &mut [f32; WIDTH]) {
        *to = self.0;
    }
    #[inline(always)]
    fn quarters(of: [f32; 4]) -> Self {
        Self(each_index(|l| of[l / 4]))
    }
    #[inline(always)]
    fn rows(from: &[f32], first: usize, stride: usize) -> Self {
        let mut all = [0.0; WIDTH];
        for j in 0..4 {
            all[4 * j..4 * j + 4].copy_from_slice(&from[first + j * stride..][..4]);
        }
        Self(all)
    }
    #[inline(always)]
    fn quarter<const Q: usize>(self) -> Self {
        Self(each_index(|l| self.0[4 * Q + l % 4]))
    }
    #[inline(always)]
    fn stretch<const Q: usize>(self) -> Self {
        Self(each_index(|l| self.0[4 * Q + l / 4]))
    }
    #[inline(always)]
    fn lane<const L: usize>(self) -> Self {
        Self([self.0[L]; WIDTH])
    }
    #[inline(always)]
    fn min(self, other: Self) -> Self {
        self.zip(other, |a, b| if a < b { a } else { b })
    }
    #[inline(always)]
    fn max(self, other: Self) -> Self {
        self.zip(other, |a, b| if a > b { a } else { b })
    }
    #[inline(always)]
    fn mul_add(self, factor: Self, term: Self) -> Self {
        Self(each_index(|l| fused(self.0[l], factor.0[l], term.0[l])))
    }
    #[inline(always)]
    fn sub_product(self, a: Self, b: Self) -> Self {
        Self(each_index(|l| fused(-a.0[l], b.0[l], self.0[l])))
    }
    #[inline(always)]
    fn at_least(self, other: Self) -> Self::Mask {
        each_index(|l| self.0[l] >= other.0[l])
    }
    #[inline(always)]
    fn below(self, other: Self) -> Self::Mask {
        each_index(|l| self.0[l] < other.0[l])
    }
    #[inline(always)]
    fn above(counts: &[u32; WIDTH], least: u32) -> Self::Mask {
        counts.each(|count| count > least)
    }
    #[inline(always)]
    fn bits(mask: Self::Mask) -> u32 {
        (0..WIDTH).fold(0, |bits, l| bits | u32::from(mask[l]) << l)
    }
    #[inline(always)]
    fn having(words: &[u32; WIDTH], bit: u32) -> u32 {
        (0..WIDTH).fold(0, |bits, l| bits | (words[l] >> bit & 1) << l)
    }
    #[inline(always)]
    fn keep(self, mask: Self::Mask) -> Self {
        Self(each_index(|l| if mask[l] { self.0[l] } else { 0.0 }))
    }
    #[inline(always)]
    fn add_exponent(self, exponent: Self) -> Self {
        self.zip(exponent, |x, k| {
            f32::from_bits(x.to_bits().wrapping_add(k.to_bits() << 23))
        })
    }
    #[inline(always)]
    fn sum(self) -> f32 {
        let mut sums = self.0;
        for half in [8, 4, 2, 1] {
            for l in 0..half {
                sums[l] += sums[l + half];
            }
        }
        sums[0]
    }
    #[inline(always)]
    fn sums(vectors: &[Self; 8]) -> [f32; 8] {
        vectors.each(Self::sum)
    }
}

/// a b + c rounded once, for processors without such an instruction: the product is exact in f64, and a sum that is rounded
/// to odd in f64 rounds to f32 as the exact sum does (BoldoMelquiond2008).
#[cfg(not(target_arch = "aarch64"))]
#[inline(always)]
fn fused(a: f32, b: f32, c: f32) -> f32 {
    let (product, term) = (f64::from(a) * f64::from(b), f64::from(c));
    let sum = product + term;
    let from_term = sum - product;
    let left_out = (product - (sum - from_term)) + (term - from_term);
    let bits = sum.to_bits();
    // Rounds to odd: an inexact sum whose last bit is even moves one step towards the exact one. Infinities and NaN stay.
    let odd = match (left_out > 0.0) == (sum > 0.0) {
        true => bits.wrapping_add(1),
        false => bits.wrapping_sub(1),
    };
    let is_rounded = left_out != 0.0 && left_out.is_finite() && bits & 1 == 0;
    f64::from_bits(if is_rounded { odd } else { bits }) as f32
}

#[cfg(target_arch = "aarch64")]
#[inline(always)]
fn fused(a: f32, b: f32, c: f32) -> f32 {
    a.mul_add(b, c)
}

macro_rules! operators {
    ($($operator:ident $method:ident $sign:tt;)*) => {$(
        impl $operator for PlainLanes {
            type Output = Self;

            #[inline(always)]
            fn $method(self, other: Self) -> Self {
                self.zip(other, |a, b| a $sign b)
            }
        }
    )*};
}

operators! { Add add +; Sub sub -; Mul mul *; Div div /; }

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::cpu::vector::level::Level;

    #[test]
    fn powers_of_two_are_right_to_two_ulp_and_the_same_at_every_level() {
        let numbers: Vec<[f32; WIDTH]> = (0..4000)
            .map(|i| std::array::from_fn(|l| 10.0 - 2.1e-3 * (16 * i + l) as f32))
            .collect();
        let at = |level: Level| {
            let mut powers = vec![[0.0; WIDTH]; numbers.len()];
            level.run(PowersOfTwo {
                numbers: &numbers,
                powers: &mut powers,
            });
            powers
        };
        let plain = at(Level::Baseline);
        for (x, power) in numbers.iter().flatten().zip(plain.iter().flatten()) {
            let exact = f64::from(*x).exp2();
            assert!((f64::from(*power) - exact).abs() < 2.5e-7 * exact, "2^{x} is {power}");
        }
        for level in Level::up_to(Level::detect()) {
            assert_eq!(at(level), plain, "{level:?}");
        }
    }

    /// Products and sums that are rounded once, worked out by whole numbers: (2²³ + 1)² is 2⁴⁶ + 2²⁴ + 1, of which a
    /// rounding between the two would lose the 1; the last three are halfway between two numbers but for a part that a
    /// rounding in f64 would lose, on either side, and exactly halfway.
    #[test]
    fn products_and_sums_are_rounded_once() {
        let power = |k: i32| 2f32.powi(k);
        let odd = power(23) + 1.0;
        assert_eq!(fused(odd, odd, -power(46)), power(24));
        assert_eq!(fused(odd, odd, -power(46) - power(24)), 1.0);
        let half = 1.0 + power(-12);
        // (1 + 2⁻¹²)² = 1 + 2⁻¹¹ + 2⁻²⁴, halfway between 1 + 2⁻¹¹ and the next number; the even one is the lower.
        assert_eq!(fused(half, half, 0.0), 1.0 + power(-11));
        assert_eq!(fused(half, half, power(-100)), 1.0 + power(-11) + power(-23));
        assert_eq!(fused(half, half, -power(-100)), 1.0 + power(-11));
        assert_eq!(fused(-half, half, -power(-100)), -1.0 - power(-11) - power(-23));
        assert!(fused(f32::INFINITY, 1.0, f32::NEG_INFINITY).is_nan());
        assert_eq!(fused(f32::MAX, 2.0, 0.0), f32::INFINITY);
        assert_eq!(fused(f32::INFINITY, 1.0, 5.0), f32::INFINITY);
    }

    /// All operations at each level, on numbers of both signs, infinities and NaN.
    struct Everything;

    impl Kernel for Everything {
        type Output = Vec<u32>;

        #[inline(always)]
        fn run<W: Wide>(self) -> Vec<u32> {
            let mut a: [f32; WIDTH] = std::array::from_fn(|l| (l as f32 - 7.3) * 1.7);
            let mut b: [f32; WIDTH] = std::array::from_fn(|l| 5.1 - l as f32);
            (a[3], a[5], b[4], b[5]) = (f32::INFINITY, 2.0, f32::NEG_INFINITY, 2.0);
            let counts: [u32; WIDTH] = std::array::from_fn(|l| 3 * l as u32);
            let sum = W::Lanes::load(&b.map(|x| if x.is_finite() { x } else { 1.0 })).sum();
            let (x, y) = (W::Lanes::load(&a), W::Lanes::load(&b));
            let (more, above) = (x.at_least(y), W::Lanes::above(&counts, 9));
            let mut found = vec![
                W::Lanes::bits(more),
                W::Lanes::bits(above),
                W::Lanes::bits(x.below(y)),
                W::Lanes::having(&counts, 1),
                sum.to_bits(),
            ];
            let vectors = std::array::from_fn(|i| W::Lanes::load(&counts.map(|k| (k + i as u32) as f32 * 0.37)));
            found.extend(W::Lanes::sums(&vectors).map(f32::to_bits));
            found.extend(vectors.map(|v| v.sum().to_bits()));
            let nan = W::Lanes::splat(f32::NAN);
            let (mut parts, mut stored) = ([x; 2], [0.0; WIDTH]);
            for part in 0..W::Lanes::PARTS {
                parts[part] = x.part(part).mul_add(y.part(part), x.part(part));
                parts[part].store_part(&mut stored, part);
            }
            found.extend(stored.map(f32::to_bits));
            for result in [
                x + y,
                x - y,
                x * y,
                x / y,
                x.min(y),
                x.max(y),
                nan.min(y),
                nan.max(y),
                x.keep(more),
                x.mul_add(y, x),
                W::Lanes::join(parts[0], parts[1]),
                x.sub_product(y, y),
                W::Lanes::quarters([a[0], a[1], a[2], a[3]]),
                W::Lanes::rows(&a, 1, 3),
                x.quarter::<0>(),
                x.quarter::<1>(),
                x.quarter::<2>(),
                x.quarter::<3>(),
                x.stretch::<0>(),
                x.stretch::<1>(),
                x.stretch::<2>(),
                x.stretch::<3>(),
                x.lane::<0>(),
                x.lane::<7>(),
                x.lane::<8>(),
                x.lane::<15>(),
            ] {
                let mut out = [0.0; WIDTH];
                result.store(&mut out);
                found.extend(out.map(f32::to_bits));
            }
            found
        }
    }

    #[test]
    fn every_operation_gives_the_same_bits_at_every_level() {
        let plain = Level::Baseline.run(Everything);
        let (more, above): (u32, u32) = (plain[0], plain[1]);
        // a ≥ b from lane 7 on, in lane 3, which is infinite, and in 4 and 5; counts are above 9 from lane 4 on.
        assert_eq!((more, above), (0b1111_1111_1011_1000, 0xfff0));
        // Counts are 3 l, of which bit 1 is set in lanes 1, 2, 5, 6 and so on.
        assert_eq!((plain[2], plain[3]), (!more & 0xffff, 0b0110_0110_0110_0110));
        let (at_once, one_by_one) = plain[5..21].split_at(8);
        assert_eq!(at_once, one_by_one);
        for level in Level::up_to(Level::detect()) {
            assert_eq!(level.run(Everything), plain, "{level:?}");
        }
    }
}
