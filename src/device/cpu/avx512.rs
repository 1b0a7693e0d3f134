//! Colour lookups in vectors of 16 lanes: the steps of [`crate::transport::grid::grid_eval_sh`], bit for bit. Ranges, not
//! iterators: adapters are not compiled for the features of these functions.

use std::arch::x86_64::*;

use super::avx2;
use super::records::Record;
use super::reduce::{Gradient, Move};
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

/// Channels of a texel with nine coefficients a colour.
const TEXEL: usize = 27;
/// Lanes of the upper vector of a texel's sums: the density, four that stay zero, channels 16 to 26.
const UPPER: __mmask16 = 0xffe0;

/// The sums of one texel: channels 0 to 15; density and channels 16 to 26.
type TexelSums = (__m512, __m512);

/// [`super::reduce::reduce_plain`] of nine coefficients, with the sums of a cell in sixteen registers.
#[inline]
#[target_feature(enable = "avx2,avx512f,avx512vl,avx512dq,avx512bw")]
pub(super) fn reduce_27(size: [u32; 4], records: &[Record], bases: &[Basis], sigma: &mut Gradient, sh: &mut Gradient) {
    if records.is_empty() {
        return;
    }
    let count = size[0] as usize * size[1] as usize * size[2] as usize;
    assert!(
        [(&sigma.values, count), (&sh.values, count * TEXEL)]
            .iter()
            .all(|(g, len)| g.is_empty() || g.len() == *len),
        "a gradient has the size of its grid"
    );
    // One name a texel: sums stay in registers only where nothing asks for their addresses.
    let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = [zero(); 8];
    // Those of this turn and of the next, which are not moved but change places.
    let mut spare = [stencils(size, &records[..LANES.min(records.len())]); 2];
    let [at, next] = &mut spare;
    let (mut at, mut next) = (at, next);
    let mut open = corners(at, 0);
    for start in (0..records.len()).step_by(LANES) {
        let lanes = LANES.min(records.len() - start);
        let ahead = &records[start + lanes..(start + lanes + LANES).min(records.len())];
        *next = stencils(size, ahead);
        expect(sh.values, next, ahead.len());
        let (texels, weights) = at.parts();
        for lane in 0..lanes {
            match Move::between(&open, texels[0][lane], texels[6][lane], texels[7][lane]) {
                Move::Stay => {}
                Move::Right => {
                    // SAFETY: the texels come from a stencil of this grid.
                    unsafe { close(&[open[0], open[2], open[4], open[6]], &[a, c, e, g], sigma, sh) };
                    (a, c, e, g) = (b, d, f, h);
                    [b, d, f, h] = [zero(); 4];
                    open = corners(at, lane);
                }
                Move::Away => {
                    // SAFETY: as above.
                    unsafe { close(&open, &[a, b, c, d, e, f, g, h], sigma, sh) };
                    [a, b, c, d, e, f, g, h] = [zero(); 8];
                    open = corners(at, lane);
                }
            }
            let record = &records[start + lane];
            let spread = spread(record, &bases[record.ray as usize]);
            a = add(a, spread, weights[0][lane]);
            b = add(b, spread, weights[1][lane]);
            c = add(c, spread, weights[2][lane]);
            d = add(d, spread, weights[3][lane]);
            e = add(e, spread, weights[4][lane]);
            f = add(f, spread, weights[5][lane]);
            g = add(g, spread, weights[6][lane]);
            h = add(h, spread, weights[7][lane]);
        }
        std::mem::swap(&mut at, &mut next);
    }
    // SAFETY: as above.
    unsafe { close(&open, &[a, b, c, d, e, f, g, h], sigma, sh) };
}

/// A texel's sums with what a record sends there.
#[inline]
#[target_feature(enable = "avx512f")]
fn add(sums: TexelSums, spread: TexelSums, weight: f32) -> TexelSums {
    let weight = _mm512_set1_ps(weight);
    (
        _mm512_add_ps(sums.0, _mm512_mul_ps(spread.0, weight)),
        _mm512_add_ps(sums.1, _mm512_mul_ps(spread.1, weight)),
    )
}

#[inline]
#[target_feature(enable = "avx512f")]
fn zero() -> TexelSums {
    (_mm512_setzero_ps(), _mm512_setzero_ps())
}

/// Asks for the texels of the cells in the first `lanes` lanes to be brought near, those once that several share.
#[inline]
#[target_feature(enable = "avx512f")]
fn expect(sh: &[f32], at: &Stencils<LANES>, lanes: usize) {
    const LINE: usize = 16;
    let (texels, _) = at.parts();
    for lane in 0..lanes.min(LANES) {
        if lane > 0 && texels[0][lane] == texels[0][lane - 1] {
            continue;
        }
        for k in [0, 2, 4, 6] {
            for line in 0..(2 * TEXEL).div_ceil(LINE) {
                let address = sh.as_ptr().wrapping_add(texels[k][lane] as usize * TEXEL + line * LINE);
                _mm_prefetch::<_MM_HINT_T0>(address.cast());
            }
        }
    }
}

/// The texels of one lane.
#[inline]
#[target_feature(enable = "avx512f")]
fn corners(at: &Stencils<LANES>, lane: usize) -> [u32; 8] {
    let (texels, _) = at.parts();
    let mut corners = [0; 8];
    for k in 0..8 {
        corners[k] = texels[k][lane];
    }
    corners
}

/// The stencils of up to eight records; lanes beyond hold some point.
#[inline]
#[target_feature(enable = "avx2,avx512f,avx512vl")]
fn stencils(size: [u32; 4], records: &[Record]) -> Stencils<LANES> {
    if let Some(records) = records.first_chunk() {
        return avx2::stencils(size, &places(records));
    }
    let mut p = [[0.0; LANES]; 3];
    for lane in 0..records.len().min(LANES) {
        for axis in 0..3 {
            p[axis][lane] = records[lane].p[axis];
        }
    }
    avx2::stencils(size, &p)
}

/// The places of eight records, axis by axis: two transposed squares of four records side by side.
#[inline]
#[target_feature(enable = "avx2,avx512f,avx512vl")]
fn places(records: &[Record; LANES]) -> [[f32; LANES]; 3] {
    // SAFETY: a record begins with four words, the first three of which are its place.
    let rows = |i: usize| unsafe {
        let row = |i: usize| _mm_loadu_ps(records[i].p.as_ptr());
        _mm256_set_m128(row(i + 4), row(i))
    };
    let (a, b, c, d) = (rows(0), rows(1), rows(2), rows(3));
    let (xy, more_xy) = (_mm256_unpacklo_ps(a, b), _mm256_unpacklo_ps(c, d));
    let (z, more_z) = (_mm256_unpackhi_ps(a, b), _mm256_unpackhi_ps(c, d));
    [
        avx2::floats(_mm256_shuffle_ps::<0b01_00_01_00>(xy, more_xy)),
        avx2::floats(_mm256_shuffle_ps::<0b11_10_11_10>(xy, more_xy)),
        avx2::floats(_mm256_shuffle_ps::<0b01_00_01_00>(z, more_z)),
    ]
}

/// A record's gradients by a texel of weight one, in the lanes of [`TexelSums`].
#[inline]
#[target_feature(enable = "avx512f")]
fn spread(record: &Record, basis: &Basis) -> TexelSums {
    // SAFETY: a record is eight words, and a basis holds 16 floats.
    let (record, basis) = unsafe {
        let record: *const Record = record;
        (
            _mm512_castps256_ps512(_mm256_loadu_ps(record.cast())),
            _mm512_loadu_ps(basis.as_ptr()),
        )
    };
    // In a record the density's derivative is word 4, the colour's are 5, 6 and 7.
    let color = _mm512_setr_epi32(5, 6, 7, 5, 6, 7, 5, 6, 7, 5, 6, 7, 5, 6, 7, 5);
    let lower = _mm512_mul_ps(
        _mm512_permutexvar_ps(color, record),
        _mm512_permutexvar_ps(_mm512_setr_epi32(0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4, 5), basis),
    );
    let word = _mm512_setr_epi32(4, 0, 0, 0, 0, 6, 7, 5, 6, 7, 5, 6, 7, 5, 6, 7);
    let coefficient = _mm512_setr_epi32(0, 0, 0, 0, 0, 5, 5, 6, 6, 6, 7, 7, 7, 8, 8, 8);
    let upper = _mm512_mul_ps(
        _mm512_maskz_permutexvar_ps(UPPER | 1, word, record),
        _mm512_mask_permutexvar_ps(_mm512_set1_ps(1.0), UPPER, coefficient, basis),
    );
    (lower, upper)
}

/// Adds the sums of some texels to the gradients.
///
/// # Safety
/// The texels lie within the gradients that are not empty.
#[inline(never)]
#[target_feature(enable = "avx512f")]
unsafe fn close<const N: usize>(texels: &[u32; N], sums: &[TexelSums; N], sigma: &mut Gradient, sh: &mut Gradient) {
    for k in 0..N {
        let (texel, (lower, upper)) = (texels[k] as usize, sums[k]);
        if !sigma.values.is_empty() {
            // SAFETY: as the caller promises.
            *unsafe { sigma.values.get_unchecked_mut(texel) } += _mm512_cvtss_f32(upper);
            sigma.activity.touch_texel::<1>(texel);
        }
        if sh.values.is_empty() {
            continue;
        }
        sh.activity.touch_texel::<TEXEL>(texel);
        // SAFETY: as the caller promises. Both vectors are read before either is written; the lanes that they share are
        // taken from the lower one.
        unsafe {
            let texel = sh.values.as_mut_ptr().add(texel * TEXEL);
            let rest = texel.add(TEXEL - 16);
            let (a, b) = (_mm512_loadu_ps(texel), _mm512_loadu_ps(rest));
            let a = _mm512_add_ps(a, lower);
            let shared = _mm512_castps_si512(a);
            let shared = _mm512_castsi512_ps(_mm512_alignr_epi32::<11>(shared, shared));
            let b = _mm512_mask_add_ps(shared, UPPER, b, upper);
            _mm512_storeu_ps(texel, a);
            _mm512_storeu_ps(rest, b);
        }
    }
}
