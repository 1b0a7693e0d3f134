//! Geometry and opacities of eight lattice places at a time: the steps of [`crate::transport::radiance_field::lattice`],
//! [`crate::transport::grid::grid_stencils`] and [`crate::transport::radiance_field::opacities`], one instruction for
//! eight lanes. Written out because compilers turn the plain loops into vectors along the wrong direction.

use std::arch::x86_64::*;

use crate::resident::layout::SceneRecord;
use crate::transport::grid::Stencils;
use crate::transport::radiance_field::{LANES, Lattice, Segment};

#[inline]
#[target_feature(enable = "avx2")]
fn floats(v: __m256) -> [f32; LANES] {
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

/// `index_below` of eight lanes.
#[inline]
#[target_feature(enable = "avx2")]
fn index_below(x: __m256, last: u32) -> __m256i {
    let last = _mm256_set1_ps(last.min(1 << 24) as f32);
    _mm256_cvttps_epi32(_mm256_min_ps(_mm256_max_ps(x, _mm256_setzero_ps()), last))
}

/// The places from `index` on.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn lattice(scene: &SceneRecord, segment: &Segment, index: u32) -> Lattice {
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
pub(super) fn stencils(size: [u32; 4], p: &[[f32; LANES]; 3]) -> Stencils<LANES> {
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

/// 1 - exp(-max(x, 0) h) of eight raw densities.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn opacities_relu(step_length: f32, raw_sigma: &[f32; LANES]) -> [f32; LANES] {
    let sign = _mm256_set1_ps(-0.0);
    let raw = vector(raw_sigma);
    // Negative lanes become 0; not-a-number passes.
    let negative = _mm256_cmp_ps::<_CMP_LT_OQ>(raw, _mm256_setzero_ps());
    let sigma = _mm256_andnot_ps(negative, raw);
    let x = _mm256_xor_ps(_mm256_mul_ps(sigma, _mm256_set1_ps(step_length)), sign);
    floats(_mm256_xor_ps(exp_m1(x), sign))
}

/// The steps of the f32 `exp_m1` of [`crate::transport::number::Number`].
#[inline]
#[target_feature(enable = "avx2")]
fn exp_m1(x: __m256) -> __m256 {
    // The order of operands lets not-a-number pass, as `clamp` does.
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
