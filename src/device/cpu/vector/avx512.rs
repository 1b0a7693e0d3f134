//! Colour lookups in vectors of 16 lanes: the steps of [`crate::transport::lookup::grid::grid_eval_sh`], bit for bit. Loops go
//! over ranges: adapters of iterators would not be compiled for the target features of these functions.

use std::arch::x86_64::*;

use super::avx2;
use crate::device::cpu::field::records::Record;
use crate::device::cpu::field::reduce::{Gradient, Move};
use crate::transport::field::radiance_field::LANES;
use crate::transport::lookup::grid::Stencils;
use crate::transport::lookup::prefetch::prefetch_line;
use crate::transport::lookup::sh::{Basis, MAX_COEFFICIENTS};

/// Lanes of a vector that hold the colours of five coefficients.
const FILLED: usize = 15;
/// Channels from one vector to the next: four coefficients, so that a lane has the same colour in all vectors.
const STRIDE: usize = 12;

/// Vectors that cover a texel. All but the first begin with the last coefficient of the vector before.
#[inline(always)]
const fn vectors(channels: usize) -> usize {
    if channels <= FILLED {
        1
    } else {
        1 + (channels - FILLED).div_ceil(STRIDE)
    }
}

/// Lanes of vector `v` that lie in the texel and not in the vector before.
#[inline(always)]
const fn counted(channels: usize, v: usize) -> __mmask16 {
    let lanes = if channels - STRIDE * v < FILLED {
        channels - STRIDE * v
    } else {
        FILLED
    };
    let first = if v == 0 { 0 } else { FILLED - STRIDE };
    ((1 << lanes) - (1 << first)) as __mmask16
}

/// For each vector of a texel the basis function of each lane.
pub(in crate::device::cpu) type Bases = [[f32; 16]; 4];

/// The basis of the coefficients of each vector, three lanes each.
#[inline]
#[target_feature(enable = "avx512f")]
pub(in crate::device::cpu) fn bases(basis: &Basis) -> Bases {
    const { assert!(vectors(3 * MAX_COEFFICIENTS) <= 4) };
    let of_lane = _mm512_setr_epi32(0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4, 4);
    let mut bases = [[0.0; 16]; 4];
    for v in 0..4 {
        let index = _mm512_add_epi32(of_lane, _mm512_set1_epi32(4 * v as i32));
        // SAFETY: a basis holds 16 floats, and so does a vector.
        unsafe {
            let spread = _mm512_permutexvar_ps(index, _mm512_loadu_ps(basis.as_ptr()));
            _mm512_storeu_ps(bases[v].as_mut_ptr(), spread);
        }
    }
    bases
}

/// The colour at the point of one lane of the stencils.
#[inline]
#[target_feature(enable = "avx2,avx512f,avx512vl,avx512dq,avx512bw")]
pub(in crate::device::cpu) fn eval_sh<const CHANNELS: usize>(
    data: &[f32],
    at: &Stencils<LANES>,
    lane: usize,
    bases: &Bases,
) -> [f32; 3] {
    const { assert!(CHANNELS <= 3 * MAX_COEFFICIENTS) };
    let last = at.parts().0[7][lane] as usize;
    assert!(
        (last + 1) * CHANNELS <= data.len(),
        "a stencil reaches outside its grid"
    );
    // Whole vectors may reach beyond their texel, and at the very end beyond the grid.
    let reach = STRIDE * (vectors(CHANNELS) - 1) + 16;
    // SAFETY: the largest index has been checked.
    let terms = unsafe {
        if last * CHANNELS + reach <= data.len() {
            terms::<CHANNELS, false>(data, at, lane, bases)
        } else {
            terms::<CHANNELS, true>(data, at, lane, bases)
        }
    };
    // The order of `sum_harmonics`.
    let sums = _mm512_setr_epi32(0, 1, 2, 2, 3, 4, 5, 5, 6, 7, 8, 8, 9, 10, 11, 11);
    let sums = _mm512_permutexvar_ps(sums, terms);
    let two = _mm256_add_ps(_mm512_castps512_ps256(sums), _mm512_extractf32x8_ps::<1>(sums));
    let four = _mm_add_ps(_mm256_castps256_ps128(two), _mm256_extractf128_ps::<1>(two));
    let color = _mm_add_ps(four, _mm512_extractf32x4_ps::<3>(terms));
    let mut out = [0f32; 4];
    // SAFETY: `out` holds four floats.
    unsafe { _mm_storeu_ps(out.as_mut_ptr(), color) };
    [out[0], out[1], out[2]]
}

/// Coefficients times basis, in the five sums of `sum_harmonics`, three lanes each. Loads without masks become operands
/// of the multiplication.
///
/// # Safety
/// The texels of the lane lie within `data`, and, unless `MASKED`, so do all vectors that begin in them.
#[inline]
#[target_feature(enable = "avx2,avx512f,avx512vl,avx512dq,avx512bw")]
unsafe fn terms<const CHANNELS: usize, const MASKED: bool>(
    data: &[f32],
    at: &Stencils<LANES>,
    lane: usize,
    bases: &Bases,
) -> __m512 {
    let (texels, weights) = at.parts();
    let mut sums = [_mm512_setzero_ps(); 4];
    for k in 0..8 {
        let weight = _mm512_set1_ps(weights[k][lane]);
        for v in 0..vectors(CHANNELS) {
            // SAFETY: as the caller promises; the mask covers lanes within the texel.
            let values = unsafe {
                let start = data.as_ptr().add(texels[k][lane] as usize * CHANNELS + STRIDE * v);
                if MASKED {
                    _mm512_maskz_loadu_ps(counted(CHANNELS, v), start)
                } else {
                    _mm512_loadu_ps(start)
                }
            };
            let term = _mm512_mul_ps(values, weight);
            sums[v] = if k == 0 { term } else { _mm512_add_ps(sums[v], term) };
        }
    }
    let mut terms = _mm512_setzero_ps();
    for v in 0..vectors(CHANNELS) {
        // SAFETY: the basis of a vector is 16 floats.
        let basis = unsafe { _mm512_loadu_ps(bases[v].as_ptr()) };
        terms = if v == 0 {
            _mm512_maskz_mul_ps(counted(CHANNELS, v), sums[v], basis)
        } else {
            _mm512_mask_add_ps(terms, counted(CHANNELS, v), terms, _mm512_mul_ps(sums[v], basis))
        };
    }
    terms
}

/// Channels of a texel with nine coefficients a colour.
const TEXEL: usize = 27;
/// Lanes 5 to 15 of the upper vector of a texel's sums: channels 16 to 26. Lane 0 is the density, lanes 1 to 4 stay zero.
const UPPER: __mmask16 = 0xffe0;

/// The sums of one texel: channels 0 to 15; density and channels 16 to 26.
type TexelSums = (__m512, __m512);

/// [`crate::device::cpu::field::reduce::reduce_plain`] of nine coefficients, with the sums of a cell in sixteen registers.
#[inline]
#[target_feature(enable = "avx2,avx512f,avx512vl,avx512dq,avx512bw")]
pub(in crate::device::cpu) fn reduce_27(
    size: [u32; 4],
    records: &[Record],
    bases: &[Basis],
    sigma: &mut Gradient,
    sh: &mut Gradient,
) {
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
    // A variable for each texel instead of an array, so that compilers keep the sums in registers.
    let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = [zero(); 8];
    // Stencils of the current eight records and of the next; the references to both are swapped, not the stencils.
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
            let spread = spread(record, &bases[record.ray() as usize]);
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

/// A texel's sums plus the texel's weight times a record's derivatives `spread`.
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

/// Prefetches the texels of the cells in the first `lanes` lanes, once for neighbouring lanes that share a cell.
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
                prefetch_line(sh.as_ptr().wrapping_add(texels[k][lane] as usize * TEXEL + line * LINE));
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

/// The places of eight records, an array for each axis: two 4 × 4 transposes side by side.
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

/// Adds the sums of some texels to the gradients. Out of line, which leaves the registers to the sums.
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
