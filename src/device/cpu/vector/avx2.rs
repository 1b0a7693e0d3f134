//! Geometry and opacities of eight lattice places at a time: the steps of
//! [`crate::transport::field::radiance_field::lattice`], [`crate::transport::lookup::grid::grid_stencils`] and
//! [`crate::transport::field::radiance_field::opacities`], one instruction for eight lanes. Written with intrinsics because
//! compilers vectorise the plain loops over the wrong index.

use std::arch::x86_64::*;

use crate::device::cpu::field::bricks::{Bricks, CELL_BITS};
use crate::resident::layout::SceneRecord;
use crate::transport::field::radiance_field::{LANES, Lattice, Segment};
use crate::transport::lookup::grid::Stencils;

#[inline]
#[target_feature(enable = "avx2")]
pub(in crate::device::cpu) fn floats(v: __m256) -> [f32; LANES] {
    // SAFETY: both are 32 bytes of plain numbers.
    unsafe { std::mem::transmute(v) }
}

#[inline]
#[target_feature(enable = "avx2")]
fn words(v: __m256i) -> [u32; LANES] {
    // SAFETY: both are 32 bytes of plain numbers.
    unsafe { std::mem::transmute(v) }
}

#[inline]
#[target_feature(enable = "avx2")]
fn vector(v: &[f32; LANES]) -> __m256 {
    // SAFETY: the array holds eight floats.
    unsafe { _mm256_loadu_ps(v.as_ptr()) }
}

#[inline]
#[target_feature(enable = "avx2")]
fn integers(v: &[u32; LANES]) -> __m256i {
    // SAFETY: the array holds eight words.
    unsafe { _mm256_loadu_si256(v.as_ptr().cast()) }
}

/// `index_below` of eight lanes.
#[inline]
#[target_feature(enable = "avx2")]
fn index_below(x: __m256, last: u32) -> __m256i {
    let last = _mm256_set1_ps(last.min(1 << 24) as f32);
    _mm256_cvttps_epi32(_mm256_min_ps(_mm256_max_ps(x, _mm256_setzero_ps()), last))
}

/// The places of eight samples from number `index` on.
#[inline]
#[target_feature(enable = "avx2")]
pub(in crate::device::cpu) fn lattice(scene: &SceneRecord, segment: &Segment, index: u32) -> Lattice {
    let numbers = _mm256_add_epi32(
        _mm256_set1_epi32(index as i32),
        _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7),
    );
    let steps = _mm256_mul_ps(_mm256_cvtepi32_ps(numbers), _mm256_set1_ps(scene.step_length));
    let t = _mm256_add_ps(_mm256_set1_ps(segment.first), steps);
    let inside = _mm256_movemask_ps(_mm256_cmp_ps::<_CMP_LT_OQ>(t, _mm256_set1_ps(segment.far))) as u32;
    let mut p = [[0.0; LANES]; 3];
    let mut cells = [_mm256_setzero_si256(); 3];
    for axis in 0..3 {
        let along = _mm256_mul_ps(t, _mm256_set1_ps(segment.direction[axis]));
        let x = _mm256_add_ps(_mm256_set1_ps(segment.origin[axis]), along);
        p[axis] = floats(x);
        let size = scene.occupancy_size[axis];
        cells[axis] = index_below(_mm256_mul_ps(x, _mm256_set1_ps(size as f32)), size - 1);
    }
    let [nx, ny] = [scene.occupancy_size[0] as i32, scene.occupancy_size[1] as i32];
    let rows = _mm256_add_epi32(_mm256_mullo_epi32(cells[2], _mm256_set1_epi32(ny)), cells[1]);
    let cells = _mm256_add_epi32(_mm256_mullo_epi32(rows, _mm256_set1_epi32(nx)), cells[0]);
    Lattice {
        p,
        cells: words(cells),
        inside,
    }
}

/// The stencils of eight points.
#[inline]
#[target_feature(enable = "avx2")]
pub(in crate::device::cpu) fn stencils(size: [u32; 4], p: &[[f32; LANES]; 3]) -> Stencils<LANES> {
    let one = _mm256_set1_ps(1.0);
    let strides = [1, size[0], size[0] * size[1]];
    let mut offsets = [[_mm256_setzero_si256(); 2]; 3];
    let mut weights = [[_mm256_setzero_ps(); 2]; 3];
    for axis in 0..3 {
        let scaled = _mm256_mul_ps(vector(&p[axis]), _mm256_set1_ps(size[axis] as f32));
        let x = _mm256_sub_ps(scaled, _mm256_set1_ps(0.5));
        let base = _mm256_floor_ps(x);
        let fraction = _mm256_sub_ps(x, base);
        weights[axis] = [_mm256_sub_ps(one, fraction), fraction];
        let stride = _mm256_set1_epi32(strides[axis] as i32);
        let last = size[axis] - 1;
        offsets[axis] = [
            _mm256_mullo_epi32(index_below(base, last), stride),
            _mm256_mullo_epi32(index_below(_mm256_add_ps(base, one), last), stride),
        ];
    }
    let mut corners = [[0; LANES]; 8];
    let mut products = [[0.0; LANES]; 8];
    for k in 0..8 {
        let (i, j, l) = (k & 1, (k >> 1) & 1, k >> 2);
        corners[k] = words(_mm256_add_epi32(
            _mm256_add_epi32(offsets[2][l], offsets[1][j]),
            offsets[0][i],
        ));
        products[k] = floats(_mm256_mul_ps(
            _mm256_mul_ps(weights[2][l], weights[1][j]),
            weights[0][i],
        ));
    }
    Stencils::from_parts(corners, products)
}

/// [`Bricks::keys`] of eight points.
#[inline]
#[target_feature(enable = "avx2")]
pub(in crate::device::cpu) fn keys(bricks: &Bricks, p: &[[f32; LANES]; 3]) -> [u32; LANES] {
    let mut brick = [_mm256_setzero_si256(); 3];
    let mut cell = [_mm256_setzero_si256(); 3];
    for axis in 0..3 {
        let (p, count, texels) = (vector(&p[axis]), bricks.count[axis], bricks.texels[axis]);
        let x = _mm256_mul_ps(p, _mm256_set1_ps(count as f32));
        brick[axis] = index_below(_mm256_add_ps(x, _mm256_set1_ps(bricks.shift[axis])), count - 1);
        let x = _mm256_mul_ps(p, _mm256_set1_ps(texels as f32));
        let x = index_below(_mm256_add_ps(x, _mm256_set1_ps(0.5)), texels);
        cell[axis] = _mm256_and_si256(x, _mm256_set1_epi32(7));
    }
    let [nx, ny] = [bricks.count[0] as i32, bricks.count[1] as i32];
    let rows = _mm256_add_epi32(_mm256_mullo_epi32(brick[2], _mm256_set1_epi32(ny)), brick[1]);
    let brick = _mm256_add_epi32(_mm256_mullo_epi32(rows, _mm256_set1_epi32(nx)), brick[0]);
    let upper = _mm256_or_si256(_mm256_slli_epi32::<6>(cell[2]), _mm256_slli_epi32::<3>(cell[1]));
    let cell = _mm256_or_si256(upper, cell[0]);
    words(_mm256_or_si256(_mm256_slli_epi32::<{ CELL_BITS as i32 }>(brick), cell))
}

/// One-channel lookups at eight points. Neighbours along x lie side by side and are loaded as pairs; where a lookup is
/// clamped both are the same texel, and the pair that ends with it is loaded (at texel 0 the pair that begins with it).
/// There must be two texels at least.
#[inline]
#[target_feature(enable = "avx2")]
pub(in crate::device::cpu) fn sigmas(data: &[f32], at: &Stencils<LANES>) -> [f32; LANES] {
    let (texels, weights) = at.parts();
    let mut last = 0;
    for texel in texels[7] {
        last = if last > texel { last } else { texel };
    }
    assert!(
        (last as usize) < data.len() && data.len() > 1,
        "a stencil reaches outside its grid"
    );
    let mut sum = _mm256_setzero_ps();
    for row in 0..4 {
        let (lower, upper) = (integers(&texels[2 * row]), integers(&texels[2 * row + 1]));
        let same = _mm256_cmpeq_epi32(lower, upper);
        let first = _mm256_cmpeq_epi32(lower, _mm256_setzero_si256());
        let shifted = _mm256_andnot_si256(first, same);
        let starts = words(_mm256_add_epi32(lower, shifted));
        // SAFETY: a start and its successor are texels of the stencil or, where they are one, that texel and a
        // neighbour in the array, which holds two at least.
        let (a, b) = unsafe { pairs(data.as_ptr(), &starts) };
        let b = _mm256_blendv_ps(b, a, _mm256_castsi256_ps(_mm256_and_si256(first, same)));
        let a = _mm256_blendv_ps(a, b, _mm256_castsi256_ps(shifted));
        sum = _mm256_add_ps(sum, _mm256_mul_ps(a, vector(&weights[2 * row])));
        sum = _mm256_add_ps(sum, _mm256_mul_ps(b, vector(&weights[2 * row + 1])));
    }
    floats(sum)
}

/// `data[start]` and `data[start + 1]` of eight lanes.
///
/// # Safety
/// Both must be within the array, for every lane.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn pairs(data: *const f32, starts: &[u32; LANES]) -> (__m256, __m256) {
    // SAFETY: as the caller promises.
    let two = |i: usize, j: usize| unsafe {
        let low = _mm_load_sd(data.add(starts[i] as usize).cast());
        _mm_castpd_ps(_mm_loadh_pd(low, data.add(starts[j] as usize).cast()))
    };
    let ab = _mm256_set_m128(two(4, 5), two(0, 1));
    let cd = _mm256_set_m128(two(6, 7), two(2, 3));
    (
        _mm256_shuffle_ps::<0b10_00_10_00>(ab, cd),
        _mm256_shuffle_ps::<0b11_01_11_01>(ab, cd),
    )
}

/// 1 - exp(-max(x, 0) h) of eight raw densities.
#[inline]
#[target_feature(enable = "avx2")]
pub(in crate::device::cpu) fn opacities_relu(step_length: f32, raw_sigma: &[f32; LANES]) -> [f32; LANES] {
    let sign = _mm256_set1_ps(-0.0);
    let raw = vector(raw_sigma);
    // Negative lanes become 0; NaN stays NaN.
    let negative = _mm256_cmp_ps::<_CMP_LT_OQ>(raw, _mm256_setzero_ps());
    let sigma = _mm256_andnot_ps(negative, raw);
    let x = _mm256_xor_ps(_mm256_mul_ps(sigma, _mm256_set1_ps(step_length)), sign);
    floats(_mm256_xor_ps(exp_m1(x), sign))
}

/// The steps of the f32 `exp_m1` of [`crate::transport::number::Number`].
#[inline]
#[target_feature(enable = "avx2")]
fn exp_m1(x: __m256) -> __m256 {
    // With this order of operands NaN stays NaN, as in `clamp`.
    let x = _mm256_min_ps(_mm256_set1_ps(88.0), _mm256_max_ps(_mm256_set1_ps(-87.0), x));
    let scaled = _mm256_mul_ps(x, _mm256_set1_ps(std::f32::consts::LOG2_E));
    let k = _mm256_floor_ps(_mm256_add_ps(scaled, _mm256_set1_ps(0.5)));
    let high = _mm256_sub_ps(x, _mm256_mul_ps(k, _mm256_set1_ps(0.693_359_4)));
    let r = _mm256_add_ps(high, _mm256_mul_ps(k, _mm256_set1_ps(2.121_944_4e-4)));
    let mut p = _mm256_set1_ps(1.0 / 5040.0);
    for coefficient in [1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5] {
        p = _mm256_add_ps(_mm256_mul_ps(p, r), _mm256_set1_ps(coefficient));
    }
    let p = _mm256_add_ps(_mm256_mul_ps(_mm256_mul_ps(p, r), r), r);
    let exponent = _mm256_add_epi32(_mm256_cvttps_epi32(k), _mm256_set1_epi32(127));
    let scale = _mm256_castsi256_ps(_mm256_slli_epi32::<23>(exponent));
    _mm256_add_ps(_mm256_mul_ps(scale, p), _mm256_sub_ps(scale, _mm256_set1_ps(1.0)))
}
