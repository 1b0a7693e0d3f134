//! Sixteen lanes in two vectors of AVX2.

use std::arch::x86_64::*;
use std::ops::{Add, Div, Mul, Sub};

use super::{Lanes, WIDTH};

// SAFETY of all that follows: vectors of this type are made only at levels that exist where the processor has AVX2 and FMA.
#[derive(Debug, Clone, Copy)]
pub(in crate::device::cpu) struct Avx2Lanes(__m256, __m256);

/// The sum of eight lanes: the upper half is added to the lower one, until one lane is left.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn sum(eight: __m256) -> f32 {
    let four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps::<1>(eight));
    let two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)))
}

/// The lanes of eight counts that are above `least`.
///
/// # Safety
/// There are eight counts.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn above(counts: *const u32, least: u32) -> __m256 {
    // SAFETY: as the caller promises.
    let counts = unsafe { _mm256_loadu_si256(counts.cast()) };
    _mm256_castsi256_ps(_mm256_cmpgt_epi32(counts, _mm256_set1_epi32(least as i32)))
}

/// A bit for each of eight words: whether its bit number `bit` is set.
///
/// # Safety
/// There are eight words.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn having(words: *const u32, bit: u32) -> u32 {
    // SAFETY: as the caller promises.
    let words = unsafe { _mm256_loadu_si256(words.cast()) };
    let highest = _mm256_sll_epi32(words, _mm_cvtsi32_si128(31 - bit as i32));
    _mm256_movemask_ps(_mm256_castsi256_ps(highest)) as u32
}

/// The sums of eight vectors: each addition adds the halves of two vectors and packs both results into one vector.
#[inline]
#[target_feature(enable = "avx2")]
fn sums(v: &[Avx2Lanes; 8]) -> [f32; 8] {
    let eight = |a: Avx2Lanes| _mm256_add_ps(a.0, a.1);
    let fours = |a: Avx2Lanes, b: Avx2Lanes| {
        let (a, b) = (eight(a), eight(b));
        _mm256_add_ps(
            _mm256_permute2f128_ps::<0x20>(a, b),
            _mm256_permute2f128_ps::<0x31>(a, b),
        )
    };
    let twos = |a: __m256, b: __m256| {
        let low = _mm256_shuffle_ps::<0b01_00_01_00>(a, b);
        _mm256_add_ps(low, _mm256_shuffle_ps::<0b11_10_11_10>(a, b))
    };
    let first = twos(fours(v[0], v[1]), fours(v[2], v[3]));
    let second = twos(fours(v[4], v[5]), fours(v[6], v[7]));
    let even = _mm256_shuffle_ps::<0b10_00_10_00>(first, second);
    let ones = _mm256_add_ps(even, _mm256_shuffle_ps::<0b11_01_11_01>(first, second));
    let order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    let mut sums = [0.0; 8];
    // SAFETY: the array holds as many numbers as the vector.
    unsafe { _mm256_storeu_ps(sums.as_mut_ptr(), _mm256_permutevar8x32_ps(ones, order)) };
    sums
}

#[inline]
#[target_feature(enable = "avx2")]
fn add_exponent(x: __m256, exponent: __m256) -> __m256 {
    let shifted = _mm256_slli_epi32::<23>(_mm256_castps_si256(exponent));
    _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(x), shifted))
}

impl Lanes for Avx2Lanes {
    /// All bits of a lane, or none.
    type Mask = (__m256, __m256);

    const IS_ROOMY: bool = false;
    const PARTS: usize = 2;

    /// The part is copied to both vectors; compilers merge the operations on the two equal halves.
    #[inline(always)]
    fn part(self, part: usize) -> Self {
        match part {
            0 => Self(self.0, self.0),
            _ => Self(self.1, self.1),
        }
    }
    #[inline(always)]
    fn join(first: Self, second: Self) -> Self {
        Self(first.0, second.0)
    }
    #[inline(always)]
    fn store_part(self, to: &mut [f32; WIDTH], part: usize) {
        let (halves, _) = to.as_chunks_mut::<8>();
        // SAFETY: as above; a half holds as many numbers as a vector.
        unsafe { _mm256_storeu_ps(halves[part].as_mut_ptr(), self.0) }
    }
    #[inline(always)]
    fn splat(x: f32) -> Self {
        // SAFETY: as above.
        let half = unsafe { _mm256_set1_ps(x) };
        Self(half, half)
    }
    #[inline(always)]
    fn load(from: &[f32; WIDTH]) -> Self {
        // SAFETY: as above; the array holds as many numbers as both vectors.
        unsafe { Self(_mm256_loadu_ps(from.as_ptr()), _mm256_loadu_ps(from.as_ptr().add(8))) }
    }
    #[inline(always)]
    fn store(self, to: &mut [f32; WIDTH]) {
        // SAFETY: as above; the array holds as many numbers as both vectors.
        unsafe {
            _mm256_storeu_ps(to.as_mut_ptr(), self.0);
            _mm256_storeu_ps(to.as_mut_ptr().add(8), self.1);
        }
    }
    #[inline(always)]
    fn quarters([a, b, c, d]: [f32; 4]) -> Self {
        // SAFETY: as above.
        unsafe {
            Self(
                _mm256_set_m128(_mm_set1_ps(b), _mm_set1_ps(a)),
                _mm256_set_m128(_mm_set1_ps(d), _mm_set1_ps(c)),
            )
        }
    }
    #[inline(always)]
    fn rows(from: &[f32], first: usize, stride: usize) -> Self {
        assert!(first + 3 * stride + 4 <= from.len(), "the rows lie within the grid");
        // SAFETY: as above; the last row ends within the slice, and the others lie before it.
        unsafe {
            let first = from.as_ptr().add(first);
            Self(
                _mm256_loadu2_m128(first.add(stride), first),
                _mm256_loadu2_m128(first.add(3 * stride), first.add(2 * stride)),
            )
        }
    }
    #[inline(always)]
    fn quarter<const Q: usize>(self) -> Self {
        let half = if Q < 2 { self.0 } else { self.1 };
        // SAFETY: as above.
        let twice = unsafe {
            match Q % 2 {
                0 => _mm256_permute2f128_ps::<0x00>(half, half),
                _ => _mm256_permute2f128_ps::<0x11>(half, half),
            }
        };
        Self(twice, twice)
    }
    #[inline(always)]
    fn stretch<const Q: usize>(self) -> Self {
        let (half, first) = (if Q < 2 { self.0 } else { self.1 }, 4 * (Q % 2) as i32);
        // SAFETY: as above.
        unsafe {
            let (a, b, c, d) = (first, first + 1, first + 2, first + 3);
            let low = _mm256_setr_epi32(a, a, a, a, b, b, b, b);
            let high = _mm256_setr_epi32(c, c, c, c, d, d, d, d);
            Self(
                _mm256_permutevar8x32_ps(half, low),
                _mm256_permutevar8x32_ps(half, high),
            )
        }
    }
    #[inline(always)]
    fn lane<const L: usize>(self) -> Self {
        let half = if L < 8 { self.0 } else { self.1 };
        // SAFETY: as above.
        let all = unsafe { _mm256_permutevar8x32_ps(half, _mm256_set1_epi32(L as i32 % 8)) };
        Self(all, all)
    }
    #[inline(always)]
    fn min(self, other: Self) -> Self {
        // SAFETY: as above.
        unsafe { Self(_mm256_min_ps(self.0, other.0), _mm256_min_ps(self.1, other.1)) }
    }
    #[inline(always)]
    fn max(self, other: Self) -> Self {
        // SAFETY: as above.
        unsafe { Self(_mm256_max_ps(self.0, other.0), _mm256_max_ps(self.1, other.1)) }
    }
    #[inline(always)]
    fn mul_add(self, factor: Self, term: Self) -> Self {
        // SAFETY: as above.
        unsafe {
            Self(
                _mm256_fmadd_ps(self.0, factor.0, term.0),
                _mm256_fmadd_ps(self.1, factor.1, term.1),
            )
        }
    }
    #[inline(always)]
    fn sub_product(self, a: Self, b: Self) -> Self {
        // SAFETY: as above.
        unsafe { Self(_mm256_fnmadd_ps(a.0, b.0, self.0), _mm256_fnmadd_ps(a.1, b.1, self.1)) }
    }
    #[inline(always)]
    fn at_least(self, other: Self) -> Self::Mask {
        // SAFETY: as above.
        unsafe {
            (
                _mm256_cmp_ps::<_CMP_GE_OQ>(self.0, other.0),
                _mm256_cmp_ps::<_CMP_GE_OQ>(self.1, other.1),
            )
        }
    }
    #[inline(always)]
    fn below(self, other: Self) -> Self::Mask {
        // SAFETY: as above.
        unsafe {
            (
                _mm256_cmp_ps::<_CMP_LT_OQ>(self.0, other.0),
                _mm256_cmp_ps::<_CMP_LT_OQ>(self.1, other.1),
            )
        }
    }
    #[inline(always)]
    fn above(counts: &[u32; WIDTH], least: u32) -> Self::Mask {
        // SAFETY: as above; the array holds as many numbers as both vectors.
        unsafe { (above(counts.as_ptr(), least), above(counts.as_ptr().add(8), least)) }
    }
    #[inline(always)]
    fn bits(mask: Self::Mask) -> u32 {
        // SAFETY: as above.
        unsafe { _mm256_movemask_ps(mask.0) as u32 | (_mm256_movemask_ps(mask.1) as u32) << 8 }
    }
    #[inline(always)]
    fn having(words: &[u32; WIDTH], bit: u32) -> u32 {
        // SAFETY: as above; the array holds as many words as both vectors.
        unsafe { having(words.as_ptr(), bit) | having(words.as_ptr().add(8), bit) << 8 }
    }
    #[inline(always)]
    fn keep(self, mask: Self::Mask) -> Self {
        // SAFETY: as above.
        unsafe { Self(_mm256_and_ps(self.0, mask.0), _mm256_and_ps(self.1, mask.1)) }
    }
    #[inline(always)]
    fn add_exponent(self, exponent: Self) -> Self {
        // SAFETY: as above.
        unsafe { Self(add_exponent(self.0, exponent.0), add_exponent(self.1, exponent.1)) }
    }
    #[inline(always)]
    fn sum(self) -> f32 {
        // SAFETY: as above.
        unsafe { sum(_mm256_add_ps(self.0, self.1)) }
    }
    #[inline(always)]
    fn sums(vectors: &[Self; 8]) -> [f32; 8] {
        // SAFETY: as above.
        unsafe { sums(vectors) }
    }
}

macro_rules! operators {
    ($($operator:ident $method:ident $apply:ident;)*) => {$(
        impl $operator for Avx2Lanes {
            type Output = Self;

            #[inline(always)]
            fn $method(self, other: Self) -> Self {
                // SAFETY: as above.
                unsafe { Self($apply(self.0, other.0), $apply(self.1, other.1)) }
            }
        }
    )*};
}

operators! { Add add _mm256_add_ps; Sub sub _mm256_sub_ps; Mul mul _mm256_mul_ps; Div div _mm256_div_ps; }
