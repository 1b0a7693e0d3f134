//! Sixteen lanes in one vector of AVX-512.

use std::arch::x86_64::*;
use std::ops::{Add, Div, Mul, Sub};

use super::{Lanes, WIDTH};

// SAFETY of all that follows: `Level::Avx512` alone makes vectors of this type, and exists only where the features do.
#[derive(Debug, Clone, Copy)]
pub(in crate::device::cpu) struct Avx512Lanes(__m512);

impl Lanes for Avx512Lanes {
    type Mask = __mmask16;

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
    fn at_least(self, other: Self) -> Self::Mask {
        // SAFETY: as above.
        unsafe { _mm512_cmp_ps_mask::<_CMP_GE_OQ>(self.0, other.0) }
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
    fn both(a: Self::Mask, b: Self::Mask) -> Self::Mask {
        a & b
    }
    #[inline(always)]
    fn bits(mask: Self::Mask) -> u32 {
        u32::from(mask)
    }
    #[inline(always)]
    fn keep(self, mask: Self::Mask) -> Self {
        // SAFETY: as above.
        Self(unsafe { _mm512_maskz_mov_ps(mask, self.0) })
    }
    #[inline(always)]
    fn note(mask: Self::Mask, value: u32, counts: &mut [u32; WIDTH]) {
        // SAFETY: as above; the array holds as many numbers as the vector.
        unsafe {
            let at = counts.as_mut_ptr().cast();
            let new = _mm512_mask_set1_epi32(_mm512_loadu_epi32(at), mask, value as i32);
            _mm512_storeu_epi32(at, new);
        }
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
