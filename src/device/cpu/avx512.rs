//! Colour lookups in vectors of 16 lanes: the steps of [`crate::transport::grid::grid_eval_sh`], bit for bit. Ranges, not
//! iterators: adapters are not compiled for the features of these functions.

use std::arch::x86_64::*;

use crate::transport::grid::Stencils;
use crate::transport::radiance_field::LANES;
use crate::transport::sh::{Basis, MAX_COEFFICIENTS};

/// Lanes of a vector that hold the colours of five coefficients.
const FILLED: usize = 15;

/// The lookup at one lane of the stencils.
#[inline]
#[target_feature(enable = "avx2,avx512f,avx512vl,avx512dq,avx512bw")]
pub(super) fn eval_sh<const CHANNELS: usize>(
    data: &[f32],
    at: &Stencils<LANES>,
    lane: usize,
    basis: &Basis,
) -> [f32; 3] {
    const { assert!(CHANNELS <= 3 * MAX_COEFFICIENTS) };
    assert!(
        (at.parts().0[7][lane] as usize + 1) * CHANNELS <= data.len(),
        "a stencil reaches outside its grid"
    );
    // SAFETY: the largest index has been checked.
    let terms = unsafe {
        if CHANNELS == 27 {
            terms_of_27(data, at, lane, basis)
        } else {
            terms::<CHANNELS>(data, at, lane, basis)
        }
    };
    // The order of `sum_harmonics`.
    let moved = _mm512_castps_si512(terms);
    let two = _mm512_castsi512_si256(_mm512_alignr_epi32::<6>(moved, moved));
    let two = _mm256_add_ps(_mm512_castps512_ps256(terms), _mm256_castsi256_ps(two));
    let one = _mm256_castps_si256(two);
    let one = _mm256_castsi256_ps(_mm256_alignr_epi32::<3>(one, one));
    let four = _mm_add_ps(_mm256_castps256_ps128(two), _mm256_castps256_ps128(one));
    let color = _mm_add_ps(four, _mm512_extractf32x4_ps::<3>(terms));
    let mut out = [0f32; 4];
    // SAFETY: `out` holds four floats.
    unsafe { _mm_storeu_ps(out.as_mut_ptr(), color) };
    [out[0], out[1], out[2]]
}

/// Coefficients times basis, five coefficients a vector, all vectors added.
///
/// # Safety
/// The texels of the lane lie within `data`.
#[inline]
#[target_feature(enable = "avx2,avx512f,avx512vl,avx512dq,avx512bw")]
unsafe fn terms<const CHANNELS: usize>(data: &[f32], at: &Stencils<LANES>, lane: usize, basis: &Basis) -> __m512 {
    let vectors = CHANNELS.div_ceil(FILLED);
    let (texels, weights) = at.parts();
    let mut sums = [_mm512_setzero_ps(); 4];
    for k in 0..8 {
        let weight = _mm512_set1_ps(weights[k][lane]);
        for v in 0..vectors {
            let lanes = (CHANNELS - v * FILLED).min(FILLED);
            let mask = ((1u32 << lanes) - 1) as __mmask16;
            // SAFETY: the mask covers `lanes` floats of a texel.
            let values = unsafe {
                let texel = data.as_ptr().add(texels[k][lane] as usize * CHANNELS + v * FILLED);
                _mm512_maskz_loadu_ps(mask, texel)
            };
            sums[v] = _mm512_add_ps(sums[v], _mm512_mul_ps(values, weight));
        }
    }
    let mut terms = _mm512_mul_ps(sums[0], basis_of_fifths(basis, 0));
    for v in 1..vectors {
        terms = _mm512_add_ps(terms, _mm512_mul_ps(sums[v], basis_of_fifths(basis, v)));
    }
    terms
}

/// [`terms`] of nine coefficients. Two full vectors cover a texel, channels 0 to 15 and 11 to 26, so that loads need no
/// masks and become operands of the multiplication.
///
/// # Safety
/// The texels of the lane lie within `data`.
#[inline]
#[target_feature(enable = "avx2,avx512f,avx512vl,avx512dq,avx512bw")]
unsafe fn terms_of_27(data: &[f32], at: &Stencils<LANES>, lane: usize, basis: &Basis) -> __m512 {
    const CHANNELS: usize = 27;
    let (texels, weights) = at.parts();
    let (mut low, mut high) = (_mm512_setzero_ps(), _mm512_setzero_ps());
    for k in 0..8 {
        let weight = _mm512_set1_ps(weights[k][lane]);
        // SAFETY: both vectors lie within a texel.
        let (a, b) = unsafe {
            let texel = data.as_ptr().add(texels[k][lane] as usize * CHANNELS);
            (_mm512_loadu_ps(texel), _mm512_loadu_ps(texel.add(CHANNELS - 16)))
        };
        low = _mm512_add_ps(low, _mm512_mul_ps(a, weight));
        high = _mm512_add_ps(high, _mm512_mul_ps(b, weight));
    }
    // Channel 15, the first of coefficient 5, moves to lane 0.
    let high = _mm512_castps_si512(high);
    let high = _mm512_castsi512_ps(_mm512_alignr_epi32::<4>(high, high));
    _mm512_add_ps(
        _mm512_maskz_mul_ps((1 << FILLED) - 1, low, basis_of_fifths(basis, 0)),
        _mm512_maskz_mul_ps((1 << (CHANNELS - FILLED)) - 1, high, basis_of_fifths(basis, 1)),
    )
}

/// The basis of coefficients 5 v … 5 v + 4, three lanes each.
#[inline]
#[target_feature(enable = "avx512f")]
fn basis_of_fifths(basis: &Basis, v: usize) -> __m512 {
    let of_lane = _mm512_setr_epi32(0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4, 0);
    let index = _mm512_add_epi32(of_lane, _mm512_set1_epi32(5 * v as i32));
    // SAFETY: a basis holds 16 floats.
    _mm512_permutexvar_ps(index, unsafe { _mm512_loadu_ps(basis.as_ptr()) })
}
