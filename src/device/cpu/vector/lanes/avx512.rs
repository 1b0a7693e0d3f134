//! Sixteen lanes in one vector of AVX-512.

use std::arch::x86_64::*;
use std::ops::{Add, Div, Mul, Sub};

use super::{Lanes, WIDTH};

// SAFETY of all that follows: `Level::Avx512` alone makes vectors of this type, and exists only where the features do.
#[derive(Debug, Clone, Copy)]
pub(in crate::device::cpu) struct Avx512Lanes(__m512);

impl Lanes for Avx512Lanes {
    type Mask = __mmask16;

    const IS_ROOMY: bool = true;

    #[inline(always)]
    fn splat(x: f32) -> Self {
        // SAFETY: as above.
        Self(unsafe { _mm512_set1_ps(x) })
    }
    #[inline(always)]
    fn load(from: &[f32; WIDTH]) -> Self {
        // SAFETY: as above; the array holds as many numbers as the vector.
        Self(unsafe { _mm512_loadu_ps(from.as_ptr()) })
    }
    #[inline(always)]
    fn store(self, to: &mut [f32; WIDTH]) {
        // SAFETY: as above.
        unsafe { _mm512_storeu_ps(to.as_mut_ptr(), self.0) }
    }
    #[inline(always)]
    fn quarters([a, b, c, d]: [f32; 4]) -> Self {
        // SAFETY: as above.
        Self(unsafe { joined([_mm_set1_ps(a), _mm_set1_ps(b), _mm_set1_ps(c), _mm_set1_ps(d)]) })
    }
    #[inline(always)]
    fn rows(from: &[f32], first: usize, stride: usize) -> Self {
        assert!(first + 3 * stride + 4 <= from.len(), "the rows lie within the grid");
        // SAFETY: as above; the last row ends within the slice, and the others lie before it.
        Self(unsafe {
            let first = from.as_ptr().add(first);
            joined([
                _mm_loadu_ps(first),
                _mm_loadu_ps(first.add(stride)),
                _mm_loadu_ps(first.add(2 * stride)),
                _mm_loadu_ps(first.add(3 * stride)),
            ])
        })
    }
    #[inline(always)]
    fn quarter<const Q: usize>(self) -> Self {
        // SAFETY: as above.
        Self(unsafe {
            match Q {
                0 => _mm512_shuffle_f32x4::<0b00_00_00_00>(self.0, self.0),
                1 => _mm512_shuffle_f32x4::<0b01_01_01_01>(self.0, self.0),
                2 => _mm512_shuffle_f32x4::<0b10_10_10_10>(self.0, self.0),
                _ => _mm512_shuffle_f32x4::<0b11_11_11_11>(self.0, self.0),
            }
        })
    }
    #[inline(always)]
    fn stretch<const Q: usize>(self) -> Self {
        let q = 4 * Q as i32;
        // SAFETY: as above.
        Self(unsafe {
            let (a, b, c, d) = (q, q + 1, q + 2, q + 3);
            let order = _mm512_setr_epi32(a, a, a, a, b, b, b, b, c, c, c, c, d, d, d, d);
            _mm512_permutexvar_ps(order, self.0)
        })
    }
    #[inline(always)]
    fn lane<const L: usize>(self) -> Self {
        // SAFETY: as above.
        Self(unsafe { _mm512_permutexvar_ps(_mm512_set1_epi32(L as i32), self.0) })
    }
    #[inline(always)]
    fn min(self, other: Self) -> Self {
        // SAFETY: as above.
        Self(unsafe { _mm512_min_ps(self.0, other.0) })
    }
    #[inline(always)]
    fn max(self, other: Self) -> Self {
        // SAFETY: as above.
        Self(unsafe { _mm512_max_ps(self.0, other.0) })
    }
    #[inline(always)]
    fn mul_add(self, factor: Self, term: Self) -> Self {
        // SAFETY: as above.
        Self(unsafe { _mm512_fmadd_ps(self.0, factor.0, term.0) })
    }
    #[inline(always)]
    fn sub_product(self, a: Self, b: Self) -> Self {
        // SAFETY: as above.
        Self(unsafe { _mm512_fnmadd_ps(a.0, b.0, self.0) })
    }
    #[inline(always)]
    fn at_least(self, other: Self) -> Self::Mask {
        // SAFETY: as above.
        unsafe { _mm512_cmp_ps_mask::<_CMP_GE_OQ>(self.0, other.0) }
    }
    #[inline(always)]
    fn below(self, other: Self) -> Self::Mask {
        // SAFETY: as above.
        unsafe { _mm512_cmp_ps_mask::<_CMP_LT_OQ>(self.0, other.0) }
    }
    #[inline(always)]
    fn above(counts: &[u32; WIDTH], least: u32) -> Self::Mask {
        // SAFETY: as above; the array holds as many numbers as the vector.
        unsafe {
            let counts = _mm512_loadu_si512(counts.as_ptr().cast());
            _mm512_cmpgt_epi32_mask(counts, _mm512_set1_epi32(least as i32))
        }
    }
    #[inline(always)]
    fn bits(mask: Self::Mask) -> u32 {
        u32::from(mask)
    }
    #[inline(always)]
    fn having(words: &[u32; WIDTH], bit: u32) -> u32 {
        // SAFETY: as above; the array holds as many words as the vector.
        u32::from(unsafe {
            let words = _mm512_loadu_si512(words.as_ptr().cast());
            _mm512_test_epi32_mask(words, _mm512_set1_epi32(1 << bit))
        })
    }
    #[inline(always)]
    fn keep(self, mask: Self::Mask) -> Self {
        // SAFETY: as above.
        Self(unsafe { _mm512_maskz_mov_ps(mask, self.0) })
    }
    #[inline(always)]
    fn add_exponent(self, exponent: Self) -> Self {
        // SAFETY: as above.
        Self(unsafe {
            let shifted = _mm512_slli_epi32::<23>(_mm512_castps_si512(exponent.0));
            _mm512_castsi512_ps(_mm512_add_epi32(_mm512_castps_si512(self.0), shifted))
        })
    }
    #[inline(always)]
    fn sum(self) -> f32 {
        // SAFETY: as above.
        unsafe {
            let eight = _mm256_add_ps(_mm512_castps512_ps256(self.0), _mm512_extractf32x8_ps::<1>(self.0));
            super::avx2::sum(eight)
        }
    }
    #[inline(always)]
    fn sums(vectors: &[Self; 8]) -> [f32; 8] {
        // SAFETY: as above.
        unsafe { sums(vectors) }
    }
}

/// Four quarters side by side.
#[inline]
#[target_feature(enable = "avx512f,avx512dq")]
fn joined([a, b, c, d]: [__m128; 4]) -> __m512 {
    let low = _mm256_insertf128_ps::<1>(_mm256_castps128_ps256(a), b);
    let high = _mm256_insertf128_ps::<1>(_mm256_castps128_ps256(c), d);
    _mm512_insertf32x8::<1>(_mm512_castps256_ps512(low), high)
}

/// The sums of eight vectors: each addition adds the halves of two vectors and packs both results into one vector.
#[inline]
#[target_feature(enable = "avx512f")]
fn sums(v: &[Avx512Lanes; 8]) -> [f32; 8] {
    // Quarters of a vector are called 0 to 3.
    let eighths = |a: __m512, b: __m512| {
        let low = _mm512_shuffle_f32x4::<0b01_00_01_00>(a, b);
        _mm512_add_ps(low, _mm512_shuffle_f32x4::<0b11_10_11_10>(a, b))
    };
    let fours = |a: __m512, b: __m512| {
        let low = _mm512_shuffle_f32x4::<0b10_00_10_00>(a, b);
        _mm512_add_ps(low, _mm512_shuffle_f32x4::<0b11_01_11_01>(a, b))
    };
    let first = fours(eighths(v[0].0, v[1].0), eighths(v[2].0, v[3].0));
    let second = fours(eighths(v[4].0, v[5].0), eighths(v[6].0, v[7].0));
    let low = _mm512_shuffle_ps::<0b01_00_01_00>(first, second);
    let twos = _mm512_add_ps(low, _mm512_shuffle_ps::<0b11_10_11_10>(first, second));
    let ones = _mm512_add_ps(twos, _mm512_movehdup_ps(twos));
    let order = _mm512_setr_epi32(0, 4, 8, 12, 2, 6, 10, 14, 0, 0, 0, 0, 0, 0, 0, 0);
    let mut sums = [0.0; 8];
    // SAFETY: the array holds as many numbers as half of the vector.
    unsafe {
        _mm256_storeu_ps(
            sums.as_mut_ptr(),
            _mm512_castps512_ps256(_mm512_permutexvar_ps(order, ones)),
        )
    };
    sums
}

macro_rules! operators {
    ($($operator:ident $method:ident $apply:ident;)*) => {$(
        impl $operator for Avx512Lanes {
            type Output = Self;

            #[inline(always)]
            fn $method(self, other: Self) -> Self {
                // SAFETY: as above.
                Self(unsafe { $apply(self.0, other.0) })
            }
        }
    )*};
}

operators! { Add add _mm512_add_ps; Sub sub _mm512_sub_ps; Mul mul _mm512_mul_ps; Div div _mm512_div_ps; }
