//! Trilinear lookups in grids and their adjoints: [`grid_eval`] beside [`grid_adjoint`].
//!
//! Texels are cell-centred as in Mitsuba: texel i of N lies at (i + 0.5) / N; lookups beyond the outer centres clamp.

use super::prefetch::prefetch_line;
use super::sh::Basis;
use crate::each::EachEntry;
use crate::resident::layout::wrap;
use crate::transport::number::Number;

/// The eight texels around a point, with trilinear weights. Corner k is the upper neighbour along x if bit 0 of k is
/// set, along y for bit 1, along z for bit 2.
#[derive(Debug, Clone, Copy)]
pub struct Stencil {
    /// Texel indices, to be multiplied by the number of channels. The last is the largest, but for [`grid_stencil_wrapped`].
    texels: [u32; 8],
    weights: [f32; 8],
}

impl Stencil {
    /// Texel indices, to be multiplied by the number of channels.
    #[inline(always)]
    pub fn texels(&self) -> &[u32; 8] {
        &self.texels
    }

    /// The first texel with weight one.
    #[inline(always)]
    pub fn first() -> Self {
        Self {
            texels: [0; 8],
            weights: [1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
        }
    }

    /// The weights of the texels; those of a lookup sum to one, those of its derivatives to zero.
    #[inline(always)]
    pub fn weights(&self) -> &[f32; 8] {
        &self.weights
    }

    /// The sum of stencils of the same texels, each times a factor.
    #[inline]
    pub fn sum<const COUNT: usize>(stencils: &[Self; COUNT], factors: [f32; COUNT]) -> Self {
        let mut sum = stencils[0];
        for k in 0..8 {
            sum.weights[k] = 0.0;
            for i in 0..COUNT {
                sum.weights[k] += stencils[i].weights[k] * factors[i];
            }
        }
        sum
    }

    /// This stencil repeated in every lane.
    #[inline(always)]
    pub fn spread<const LANES: usize>(&self) -> Stencils<LANES> {
        let mut stencils = Stencils {
            texels: [[0; LANES]; 8],
            weights: [[0.0; LANES]; 8],
        };
        for k in 0..8 {
            stencils.texels[k] = [self.texels[k]; LANES];
            stencils.weights[k] = [self.weights[k]; LANES];
        }
        stencils
    }

    /// Asserts that an array of `len` values, `channels` per texel, contains all corners of a stencil whose last corner has the
    /// largest index.
    #[inline(always)]
    pub fn check(&self, len: usize, channels: usize) {
        assert!(
            (self.texels[7] as usize + 1) * channels <= len,
            "a stencil reaches outside its grid"
        );
    }
}

/// The stencils of several points in structure-of-arrays layout, for vectorisation.
#[derive(Debug, Clone, Copy)]
pub struct Stencils<const LANES: usize> {
    texels: [[u32; LANES]; 8],
    weights: [[f32; LANES]; 8],
}

impl<const LANES: usize> Stencils<LANES> {
    /// Stencils from corners and weights computed elsewhere, by the same steps as [`grid_stencils`].
    #[inline(always)]
    pub fn from_parts(texels: [[u32; LANES]; 8], weights: [[f32; LANES]; 8]) -> Self {
        Self { texels, weights }
    }

    /// All corners and weights, corner by corner.
    #[inline(always)]
    pub fn parts(&self) -> (&[[u32; LANES]; 8], &[[f32; LANES]; 8]) {
        (&self.texels, &self.weights)
    }

    /// The stencil of one lane.
    #[inline(always)]
    pub fn lane(&self, lane: usize) -> Stencil {
        let mut stencil = Stencil {
            texels: [0; 8],
            weights: [0.0; 8],
        };
        for k in 0..8 {
            stencil.texels[k] = self.texels[k][lane];
            stencil.weights[k] = self.weights[k][lane];
        }
        stencil
    }
}

/// The stencil of the point `p` of the unit cube in a grid of `size` texels.
#[inline(always)]
pub fn grid_stencil(size: [u32; 4], p: [f32; 3]) -> Stencil {
    grid_stencils(size, &[[p[0]], [p[1]], [p[2]]]).lane(0)
}

/// The stencils of the points whose coordinate along axis a is `p[a]`.
#[inline(always)]
pub fn grid_stencils<const LANES: usize>(size: [u32; 4], p: &[[f32; LANES]; 3]) -> Stencils<LANES> {
    stencils_by::<LANES>(size, p, floor)
}

/// [`grid_stencils`] for code that is compiled for processors with a rounding instruction.
#[inline(always)]
pub fn grid_stencils_rounding<const LANES: usize>(size: [u32; 4], p: &[[f32; LANES]; 3]) -> Stencils<LANES> {
    stencils_by::<LANES>(size, p, f32::floor)
}

#[inline(always)]
fn stencils_by<const LANES: usize>(
    size: [u32; 4],
    p: &[[f32; LANES]; 3],
    floor: impl Fn(f32) -> f32,
) -> Stencils<LANES> {
    let strides = [1, size[0], size[0] * size[1]];
    // For each axis: offsets of the lower and upper neighbour, and their weights.
    let mut offsets = [[[0u32; LANES]; 2]; 3];
    let mut weights = [[[0f32; LANES]; 2]; 3];
    for axis in 0..3 {
        for lane in 0..LANES {
            let x = p[axis][lane] * size[axis] as f32 - 0.5;
            let base = floor(x);
            weights[axis][1][lane] = x - base;
            weights[axis][0][lane] = 1.0 - (x - base);
            offsets[axis][0][lane] = index_below(base, size[axis] - 1) * strides[axis];
            offsets[axis][1][lane] = index_below(base + 1.0, size[axis] - 1) * strides[axis];
        }
    }
    let mut stencils = Stencils {
        texels: [[0; LANES]; 8],
        weights: [[0.0; LANES]; 8],
    };
    for k in 0..8 {
        let (i, j, l) = (k & 1, (k >> 1) & 1, k >> 2);
        for lane in 0..LANES {
            stencils.texels[k][lane] = offsets[2][l][lane] + offsets[1][j][lane] + offsets[0][i][lane];
            stencils.weights[k][lane] = (weights[2][l][lane] * weights[1][j][lane]) * weights[0][i][lane];
        }
    }
    stencils
}

/// The largest integer not above `x`. `f32::floor` is a function call on processors without a rounding instruction;
/// this version is valid for 32-bit results, which cover all positions near a grid.
#[inline(always)]
fn floor(x: f32) -> f32 {
    let whole = x as i32 as f32;
    if whole > x { whole - 1.0 } else { whole }
}

/// The cell between eight texel centres around a point, and the point's place in it: what the derivative of a lookup by the
/// position needs, and the weights of a [`Stencil`] do not give.
#[derive(Debug, Clone, Copy)]
pub struct Cell<N> {
    /// Texel indices in the order of a [`Stencil`].
    pub texels: [u32; 8],
    /// Position along each axis: 0 at the lower texel centre, 1 at the upper one.
    pub fraction: [N; 3],
    size: [f32; 3],
}

/// The cell of the point `p` of the unit cube in a grid of `size` texels: that of [`grid_stencil`].
#[inline(always)]
pub fn grid_cell<N: Number>(size: [u32; 4], p: [N; 3]) -> Cell<N> {
    cell_around(size, p, p)
}

/// The cell around `decided`, with the position of `p` relative to it; `p` may lie outside of the cell.
#[inline(always)]
pub fn cell_around<N: Number, D: Number>(size: [u32; 4], p: [N; 3], decided: [D; 3]) -> Cell<N> {
    let strides = [1, size[0], size[0] * size[1]];
    let mut offsets = [[0u32; 2]; 3];
    let mut fraction = [N::lift(0.0); 3];
    let mut sides = [0.0; 3];
    for axis in 0..3 {
        let side = size[axis] as f32;
        let base = floor((decided[axis] * D::lift(side) - D::lift(0.5)).value() as f32);
        fraction[axis] = p[axis] * N::lift(side) - N::lift(0.5) - N::lift(base);
        offsets[axis] = [
            index_below(base, size[axis] - 1) * strides[axis],
            index_below(base + 1.0, size[axis] - 1) * strides[axis],
        ];
        sides[axis] = side;
    }
    let mut texels = [0; 8];
    for k in 0..8 {
        texels[k] = offsets[2][k >> 2] + offsets[1][(k >> 1) & 1] + offsets[0][k & 1];
    }
    Cell {
        texels,
        fraction,
        size: sides,
    }
}

impl<N: Number> Cell<N> {
    /// The weights of the texels.
    #[inline(always)]
    pub fn weights(&self) -> [N; 8] {
        let [x, y, z] = self.fraction.each(|f| [N::lift(1.0) - f, f]);
        let mut weights = [N::lift(0.0); 8];
        for k in 0..8 {
            weights[k] = z[k >> 2] * y[(k >> 1) & 1] * x[k & 1];
        }
        weights
    }

    /// The derivative by the point of the lookup of a grid whose texels here are `values`.
    #[inline(always)]
    pub fn gradient(&self, values: &[N; 8]) -> [N; 3] {
        let [x, y, z] = self.fraction.each(|f| [N::lift(1.0) - f, f]);
        let mut gradient = [N::lift(0.0); 3];
        for k in 0..4 {
            let (low, high) = (k & 1, k >> 1);
            gradient[0] += (values[2 * k + 1] - values[2 * k]) * (z[high] * y[low]);
            let (back, ahead) = (4 * high + low, 4 * high + low + 2);
            gradient[1] += (values[ahead] - values[back]) * (z[high] * x[low]);
            gradient[2] += (values[k + 4] - values[k]) * (y[high] * x[low]);
        }
        for axis in 0..3 {
            gradient[axis] *= N::lift(self.size[axis]);
        }
        gradient
    }
}

/// [`grid_stencil`] for wrap modes in which a texel's neighbours are not adjacent in the array.
#[inline(always)]
pub fn grid_stencil_wrapped(size: [u32; 4], mode: u32, p: [f32; 3]) -> Stencil {
    let strides = [1, size[0], size[0] * size[1]];
    let mut offsets = [[0u32; 2]; 3];
    let mut weights = [[0f32; 2]; 3];
    for axis in 0..3 {
        let x = p[axis] * size[axis] as f32 - 0.5;
        let base = x.floor();
        weights[axis] = [1.0 - (x - base), x - base];
        offsets[axis] = [
            wrap_index(mode, base, size[axis]) * strides[axis],
            wrap_index(mode, base + 1.0, size[axis]) * strides[axis],
        ];
    }
    let mut stencil = Stencil {
        texels: [0; 8],
        weights: [0.0; 8],
    };
    for k in 0..8 {
        let (i, j, l) = (k & 1, (k >> 1) & 1, k >> 2);
        stencil.texels[k] = offsets[2][l] + offsets[1][j] + offsets[0][i];
        stencil.weights[k] = (weights[2][l] * weights[1][j]) * weights[0][i];
    }
    stencil
}

/// The derivatives of a lookup with [`grid_stencil_wrapped`] by the point: for each axis a stencil whose weights sum to zero.
#[inline]
pub fn grid_slopes(size: [u32; 4], mode: u32, p: [f32; 3]) -> [Stencil; 3] {
    let stencil = grid_stencil_wrapped(size, mode, p);
    let fractions = [0, 1, 2].each(|axis: usize| {
        let x = p[axis] * size[axis] as f32 - 0.5;
        x - x.floor()
    });
    [0, 1, 2].each(|by: usize| {
        let mut slope = stencil;
        for k in 0..8 {
            slope.weights[k] = 1.0;
            for axis in 0..3 {
                let is_upper = k >> axis & 1 == 1;
                slope.weights[k] *= match (axis == by, is_upper) {
                    (true, true) => size[axis] as f32,
                    (true, false) => -(size[axis] as f32),
                    (false, true) => fractions[axis],
                    (false, false) => 1.0 - fractions[axis],
                };
            }
        }
        slope
    })
}

/// The stencil of the texel that contains a point (nearest-neighbour lookup).
#[inline(always)]
pub fn nearest_stencil(size: [u32; 4], mode: u32, p: [f32; 3]) -> Stencil {
    let mut index = [0; 3];
    for axis in 0..3 {
        index[axis] = wrap_index(mode, (p[axis] * size[axis] as f32).floor(), size[axis]);
    }
    Stencil {
        texels: [(index[2] * size[1] + index[1]) * size[0] + index[0]; 8],
        weights: [1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
    }
}

/// Maps the integer `x` to a texel along an axis of `size` texels by the wrap mode.
#[inline(always)]
pub fn wrap_index(mode: u32, x: f32, size: u32) -> u32 {
    let n = size as f32;
    match mode {
        wrap::REPEAT => index_below(x - (x / n).floor() * n, size - 1),
        wrap::MIRROR => {
            let x = x - (x / (2.0 * n)).floor() * (2.0 * n);
            index_below(if x < n { x } else { 2.0 * n - 1.0 - x }, size - 1)
        }
        _ => index_below(x, size - 1),
    }
}

/// `x` clamped to an index in 0 … `last`; not-a-number becomes 0.
#[inline(always)]
pub fn index_below(x: f32, last: u32) -> u32 {
    const LARGEST: u32 = 1 << 24;
    let last = if last < LARGEST { last } else { LARGEST } as f32;
    let x = if x > 0.0 { x } else { 0.0 };
    let x = if x < last { x } else { last };
    // SAFETY: x is a number between 0 and 2^24.
    unsafe { x.to_int_unchecked::<i32>() as u32 }
}

/// Looks up a one-channel grid.
#[inline(always)]
pub fn grid_eval<N: Number>(data: &[N], at: &Stencil) -> N {
    at.check(data.len(), 1);
    let mut sum = N::lift(0.0);
    for k in 0..8 {
        // SAFETY: `check` has accepted the largest index.
        sum += unsafe { *data.get_unchecked(at.texels[k] as usize) } * N::lift(at.weights[k]);
    }
    sum
}

/// Looks up a grid of a few channels. Terms are added in pairs, which shortens the dependency chain that the walk
/// waits for.
#[inline(always)]
pub fn grid_eval_balanced<N: Number, const CHANNELS: usize>(data: &[N], at: &Stencil) -> [N; CHANNELS] {
    at.check(data.len(), CHANNELS);
    let mut sums = [[N::lift(0.0); CHANNELS]; 4];
    for k in 0..4 {
        for c in 0..CHANNELS {
            let term = |k: usize| {
                // SAFETY: `check` has accepted the largest index.
                let texel = unsafe { *data.get_unchecked(at.texels[k] as usize * CHANNELS + c) };
                texel * N::lift(at.weights[k])
            };
            sums[k][c] = term(k) + term(k + 4);
        }
    }
    let mut sum = [N::lift(0.0); CHANNELS];
    for c in 0..CHANNELS {
        sum[c] = (sums[0][c] + sums[1][c]) + (sums[2][c] + sums[3][c]);
    }
    sum
}

/// Prefetches the texels of a stencil from an array of `channels` values a texel.
#[inline(always)]
pub fn prefetch<T>(data: &[T], at: &Stencil, channels: u32) {
    for k in 0..8 {
        prefetch_line(data.as_ptr().wrapping_add(at.texels[k] as usize * channels as usize));
    }
}

/// Prefetches the texels of several stencils: the lower neighbours along x, next to which the upper ones lie in memory.
#[inline(always)]
pub fn prefetch_rows<T, const LANES: usize>(data: &[T], at: &Stencils<LANES>, channels: u32) {
    for lane in 0..LANES {
        for k in [0, 2, 4, 6] {
            prefetch_line(
                data.as_ptr()
                    .wrapping_add(at.texels[k][lane] as usize * channels as usize),
            );
        }
    }
}

/// [`grid_eval_balanced`] of a grid of one channel, at the stencils of several points.
#[inline(always)]
pub fn grid_eval_lanes<const LANES: usize>(data: &[f32], at: &Stencils<LANES>) -> [f32; LANES] {
    check_lanes(data, at, 1);
    let mut sums = [[0.0; LANES]; 4];
    for k in 0..4 {
        for lane in 0..LANES {
            // SAFETY: the largest index has been checked, and the last corner of a stencil has its largest. Offsets are signed
            // 32-bit numbers, as gather instructions take.
            let texel = |k: usize| unsafe { *data.as_ptr().offset(at.texels[k][lane] as i32 as isize) };
            sums[k][lane] = texel(k) * at.weights[k][lane] + texel(k + 4) * at.weights[k + 4][lane];
        }
    }
    let mut sum = [0.0; LANES];
    for lane in 0..LANES {
        sum[lane] = (sums[0][lane] + sums[1][lane]) + (sums[2][lane] + sums[3][lane]);
    }
    sum
}

/// [`grid_eval_balanced`] of a grid of three channels, at the stencils of several points. Each texel is loaded as one vector of
/// its channels, which takes a third of the time of a gather per channel. Returns the lanes of each channel.
#[inline(always)]
pub fn grid_eval_rgb_lanes<const LANES: usize>(data: &[f32], at: &Stencils<LANES>) -> [[f32; LANES]; 3] {
    let largest = check_lanes(data, at, 3);
    let mut sum = [[0.0; LANES]; 3];
    // The array's last texel has no fourth value.
    if largest * 3 + 4 > data.len() {
        for lane in 0..LANES {
            let v = grid_eval_balanced::<f32, 3>(data, &at.lane(lane));
            for c in 0..3 {
                sum[c][lane] = v[c];
            }
        }
        return sum;
    }
    for lane in 0..LANES {
        // SAFETY: four values from the largest index on are within the array, and the last corner of a stencil has its largest
        // index.
        let v = unsafe { texels_eval(data.as_ptr(), at, lane) };
        for c in 0..3 {
            sum[c][lane] = v[c];
        }
    }
    sum
}

/// The weighted sum over the corners of one lane's stencil, of three channels; the fourth number is unspecified.
///
/// # Safety
/// Four values from each texel on can be read.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn texels_eval<const LANES: usize>(data: *const f32, at: &Stencils<LANES>, lane: usize) -> [f32; 4] {
    use std::arch::x86_64::{_mm_add_ps, _mm_loadu_ps, _mm_mul_ps, _mm_set1_ps, _mm_storeu_ps};
    // SSE intrinsics, which every x86-64 processor has: compilers turn loops into gathers, which take three times as long.
    // SAFETY: by the caller's contract, and `out` has four places.
    unsafe {
        let term = |k: usize| {
            let texel = _mm_loadu_ps(data.add(at.texels[k][lane] as usize * 3));
            _mm_mul_ps(texel, _mm_set1_ps(at.weights[k][lane]))
        };
        let pair = |k: usize| _mm_add_ps(term(k), term(k + 4));
        let all = _mm_add_ps(_mm_add_ps(pair(0), pair(1)), _mm_add_ps(pair(2), pair(3)));
        let mut out = [0.0; 4];
        _mm_storeu_ps(out.as_mut_ptr(), all);
        out
    }
}

/// [`texels_eval`] on other architectures.
///
/// # Safety
/// Three values from each texel on can be read.
#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
unsafe fn texels_eval<const LANES: usize>(data: *const f32, at: &Stencils<LANES>, lane: usize) -> [f32; 4] {
    let mut out = [0.0; 4];
    for c in 0..3 {
        // SAFETY: by the caller's contract.
        let term = |k: usize| unsafe { *data.add(at.texels[k][lane] as usize * 3 + c) } * at.weights[k][lane];
        let pair = |k: usize| term(k) + term(k + 4);
        out[c] = (pair(0) + pair(1)) + (pair(2) + pair(3));
    }
    out
}

/// Asserts that an array of `channels` values a texel contains all corners, the last of which has the largest index; returns
/// the largest of all.
#[inline(always)]
fn check_lanes<const LANES: usize>(data: &[f32], at: &Stencils<LANES>, channels: usize) -> usize {
    let mut largest = 0;
    for lane in 0..LANES {
        largest = largest.max(at.texels[7][lane]);
    }
    assert!(
        (largest as usize + 1) * channels <= data.len(),
        "a stencil reaches outside its grid"
    );
    largest as usize
}

/// The adjoint of [`grid_eval`]: adds `g` times each weight to the texels' gradients.
#[inline(always)]
pub fn grid_adjoint<N: Number>(gradient: &mut [N], at: &Stencil, g: N) {
    at.check(gradient.len(), 1);
    for k in 0..8 {
        // SAFETY: `check` has accepted the largest index.
        *unsafe { gradient.get_unchecked_mut(at.texels[k] as usize) } += g * N::lift(at.weights[k]);
    }
}

/// Looks up a grid of `CHANNELS` = 3 (degree + 1)² coefficients and sums the spherical harmonics: channel 3 i + c
/// holds coefficient i of colour c. The loop over channels is the vectorised one.
#[inline(always)]
pub fn grid_eval_sh<N: Number, const CHANNELS: usize>(data: &[N], at: &Stencil, basis: &Basis) -> [N; 3] {
    at.check(data.len(), CHANNELS);
    let mut sum = [N::lift(0.0); CHANNELS];
    for k in 0..8 {
        let start = at.texels[k] as usize * CHANNELS;
        // SAFETY: `check` has accepted the largest index.
        let texel = unsafe { data.get_unchecked(start..start + CHANNELS) };
        let weight = N::lift(at.weights[k]);
        for i in 0..CHANNELS {
            if k == 0 {
                sum[i] = texel[i] * weight;
            } else {
                sum[i] += texel[i] * weight;
            }
        }
    }
    sum_harmonics(&sum, basis)
}

/// The sum of coefficients times basis functions, in an order that suits vectors of five RGB coefficients, each of
/// which begins with the last coefficient of the one before: five sums, of coefficient 0 alone and of every fourth
/// coefficient from 1, 2, 3 and 4 on, which are added as (0 + 2) + (1 + 3) + 4.
#[inline(always)]
fn sum_harmonics<N: Number, const CHANNELS: usize>(coefficients: &[N; CHANNELS], basis: &Basis) -> [N; 3] {
    let mut sums = [[N::lift(0.0); 3]; 5];
    for i in 0..CHANNELS / 3 {
        for c in 0..3 {
            let term = coefficients[3 * i + c] * N::lift(basis[i]);
            if i < 5 {
                sums[i][c] = term;
            } else {
                sums[1 + (i - 1) % 4][c] += term;
            }
        }
    }
    let mut color = [N::lift(0.0); 3];
    for c in 0..3 {
        color[c] = ((sums[0][c] + sums[2][c]) + (sums[1][c] + sums[3][c])) + sums[4][c];
    }
    color
}

/// The adjoint of [`grid_eval_sh`].
#[inline(always)]
pub fn grid_adjoint_sh<N: Number, const CHANNELS: usize>(gradient: &mut [N], at: &Stencil, basis: &Basis, g: [N; 3]) {
    at.check(gradient.len(), CHANNELS);
    let mut spread = [N::lift(0.0); CHANNELS];
    for i in 0..CHANNELS / 3 {
        for c in 0..3 {
            spread[3 * i + c] = g[c] * N::lift(basis[i]);
        }
    }
    for k in 0..8 {
        let start = at.texels[k] as usize * CHANNELS;
        // SAFETY: `check` has accepted the largest index.
        let texel = unsafe { gradient.get_unchecked_mut(start..start + CHANNELS) };
        let weight = N::lift(at.weights[k]);
        for i in 0..CHANNELS {
            texel[i] += spread[i] * weight;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_texels_ramp_between_their_centres() {
        let data = [1.0f32, 3.0];
        let at = |x: f32| grid_eval(&data, &grid_stencil([2, 1, 1, 0], [x, 0.3, 0.9]));
        for (x, expected) in [
            (0.0, 1.0),
            (0.25, 1.0),
            (0.375, 1.5),
            (0.5, 2.0),
            (0.75, 3.0),
            (1.0, 3.0),
        ] {
            assert!((at(x) - expected).abs() < 1e-6, "at {x}: {}", at(x));
        }
    }

    /// <eval(a), g> = <a, adjoint(g)> for random data, positions and gradients.
    #[test]
    fn scatter_is_the_adjoint_of_eval() {
        use crate::transport::rays::random::test_uniform;
        const CHANNELS: usize = 12;
        let size = [3u32, 4, 5, 0];
        let data: Vec<f64> = (0..60 * CHANNELS as u32)
            .map(|i| f64::from(test_uniform(3, i, 0)[0]))
            .collect();
        for i in 0..200 {
            let u = test_uniform(3, i, 1);
            let p = [u[0] * 1.2 - 0.1, u[1] * 1.2 - 0.1, u[2]];
            let v = test_uniform(3, i, 2);
            let basis = crate::transport::lookup::sh::sh_basis(1, [0.6, -0.48, 0.64]);
            let g = [v[0], v[1], v[2]].map(f64::from);
            let at = grid_stencil(size, p);
            let color = grid_eval_sh::<f64, CHANNELS>(&data, &at, &basis);
            let mut gradient = vec![0f64; data.len()];
            grid_adjoint_sh::<f64, CHANNELS>(&mut gradient, &at, &basis, g);
            let left: f64 = color.iter().zip(g).map(|(a, b)| a * b).sum();
            let right: f64 = gradient.iter().zip(&data).map(|(a, b)| a * b).sum();
            assert!((left - right).abs() < 1e-12 * left.abs().max(1.0), "{left} != {right}");
            let sum: f32 = at.weights().iter().sum();
            assert!((sum - 1.0).abs() < 1e-6, "weights sum to {sum}");
        }
    }
}
