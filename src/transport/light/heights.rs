//! The height field: a biquadratic spline with a coefficient a texel, whose slopes are continuous.

use crate::each::EachEntry;
use crate::transport::number::Number;

/// Heights over [-1, 1]².
#[derive(Debug, Clone, Copy)]
pub struct Heights<'a, N> {
    pub values: &'a [N],
    /// Texels along x and y.
    pub size: [usize; 2],
}

/// The texels that a place depends on, and its three weights along each axis: of the value, the slope and the curvature.
#[derive(Debug, Clone, Copy)]
pub struct Stencil<N> {
    pub columns: [usize; 3],
    pub rows: [usize; 3],
    pub x: [[N; 3]; 3],
    pub y: [[N; 3]; 3],
}

/// A height, its slopes along x and y, and its curvatures xx, xy and yy.
#[derive(Debug, Clone, Copy)]
pub struct Height<N> {
    pub value: N,
    pub slope: [N; 2],
    pub curvature: [N; 3],
}

/// Texels and weights along an axis of `n` texels at x in [-1, 1].
#[inline(always)]
fn axis<N: Number>(x: N, n: usize) -> ([usize; 3], [[N; 3]; 3]) {
    let [one, half] = [N::lift(1.0), N::lift(0.5)];
    let scale = N::lift(0.5 * n as f32);
    let g = (x + one) * scale;
    let cell = (g.value() as i64).clamp(0, n as i64 - 1);
    let f = g - N::lift(cell as f32);
    let rest = one - f;
    let texel = |i: i64| i.clamp(0, n as i64 - 1) as usize;
    let square = scale * scale;
    (
        [texel(cell - 1), texel(cell), texel(cell + 1)],
        [
            [half * rest * rest, half + f * rest, half * f * f],
            [-(rest * scale), (rest - f) * scale, f * scale],
            [square, -(square + square), square],
        ],
    )
}

/// Where the spline is looked up at (x, y).
#[inline(always)]
pub fn stencil<N: Number>(size: [usize; 2], x: N, y: N) -> Stencil<N> {
    let ((columns, x), (rows, y)) = (axis(x, size[0]), axis(y, size[1]));
    Stencil { columns, rows, x, y }
}

/// The spline at a stencil.
#[inline(always)]
pub fn height<N: Number>(of: Heights<'_, N>, at: &Stencil<N>) -> Height<N> {
    // Sums along x of the value, the slope and the curvature, row by row.
    let mut sums = [[N::lift(0.0); 3]; 3];
    for r in 0..3 {
        let row = at.rows[r] * of.size[0];
        let [a, b, c] = at.columns.each(|column| of.values[row + column]);
        for k in 0..3 {
            sums[r][k] = at.x[k][0] * a + at.x[k][1] * b + at.x[k][2] * c;
        }
    }
    let along = |k: usize, order: usize| {
        at.y[order][0] * sums[0][k] + at.y[order][1] * sums[1][k] + at.y[order][2] * sums[2][k]
    };
    Height {
        value: along(0, 0),
        slope: [along(1, 0), along(0, 1)],
        curvature: [along(2, 0), along(1, 1), along(0, 2)],
    }
}

/// Sends derivatives by value and slopes to the nine coefficients.
#[inline(always)]
pub fn height_adjoint<N: Number>(at: &Stencil<N>, by: [N; 3], mut send: impl FnMut(usize, usize, N)) {
    let [value, x, y] = by;
    for r in 0..3 {
        let plain = value * at.y[0][r] + y * at.y[1][r];
        let sloped = x * at.y[0][r];
        for c in 0..3 {
            send(at.columns[c], at.rows[r], at.x[0][c] * plain + at.x[1][c] * sloped);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::resample::{Axis, resample_axis, resample_texel};
    use crate::transport::rays::random::test_uniform;

    fn field(size: [usize; 2]) -> Vec<f64> {
        (0..size[0] * size[1])
            .map(|i| f64::from(test_uniform(3, i as u32, 0)[0]))
            .collect()
    }

    fn at(values: &[f64], size: [usize; 2], x: f64, y: f64) -> Height<f64> {
        height(Heights { values, size }, &stencil(size, x, y))
    }

    /// Linear interpolation between the centres of twice as many texels refines the spline without moving it, at the rim
    /// too.
    #[test]
    fn twice_the_texels_are_the_same_surface() {
        let size = [5usize, 3];
        let values: Vec<f32> = field(size).iter().map(|v| *v as f32).collect();
        let fine = [10usize, 6];
        let axes = [(5, 10), (3, 6), (1, 1)].map(|(from, to)| resample_axis(Axis::Clamped, from, to));
        let mut refined = vec![0f64; 60];
        for (i, out) in refined.iter_mut().enumerate() {
            let mut texel = [0f32];
            let place = [axes[0][i % 10], axes[1][i / 10], axes[2][0]];
            resample_texel(&values, [5, 3, 1], 1, place, &mut texel);
            *out = f64::from(texel[0]);
        }
        let values: Vec<f64> = values.iter().map(|v| f64::from(*v)).collect();
        for i in 0..200 {
            let [x, y, ..] = test_uniform(4, i, 0).map(|u| 2.0 * f64::from(u) - 1.0);
            let (coarse, fine) = (at(&values, size, x, y), at(&refined, fine, x, y));
            assert!((coarse.value - fine.value).abs() < 1e-6, "{x} {y}");
            for a in 0..2 {
                assert!((coarse.slope[a] - fine.slope[a]).abs() < 1e-5, "{x} {y}");
            }
        }
    }

    #[test]
    fn slopes_and_curvatures_are_those_of_the_heights() {
        let size = [7usize, 4];
        let values = field(size);
        let h = 1e-5;
        for i in 0..100 {
            let [x, y, ..] = test_uniform(5, i, 0).map(|u| 1.9 * f64::from(u) - 0.95);
            let found = at(&values, size, x, y);
            let [left, right] = [at(&values, size, x - h, y), at(&values, size, x + h, y)];
            let [below, above] = [at(&values, size, x, y - h), at(&values, size, x, y + h)];
            let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-3, "{a} {b} at {x} {y}");
            near(found.slope[0], (right.value - left.value) / (2.0 * h));
            near(found.slope[1], (above.value - below.value) / (2.0 * h));
            // A curvature jumps at the border of a cell.
            let inside = |x: f64, n: usize| {
                let g = (x + 1.0) * 0.5 * n as f64;
                (g - g.round()).abs() > 1e-3
            };
            if inside(x, 7) && inside(y, 4) {
                near(found.curvature[0], (right.slope[0] - left.slope[0]) / (2.0 * h));
                near(found.curvature[1], (above.slope[0] - below.slope[0]) / (2.0 * h));
                near(found.curvature[2], (above.slope[1] - below.slope[1]) / (2.0 * h));
            }
        }
    }

    /// The adjoint is the transpose of the lookup, which is linear in the coefficients.
    #[test]
    fn the_adjoint_is_the_transpose() {
        let size = [4usize, 5];
        let (values, by) = (field(size), [0.3, -0.7, 1.1]);
        for i in 0..50 {
            let [x, y, ..] = test_uniform(6, i, 0).map(|u| 2.0 * f64::from(u) - 1.0);
            let place = stencil(size, x, y);
            let found = at(&values, size, x, y);
            let forward = by[0] * found.value + by[1] * found.slope[0] + by[2] * found.slope[1];
            let mut backward = 0.0;
            height_adjoint(&place, by, |column, row, g| backward += g * values[row * 4 + column]);
            assert!((forward - backward).abs() < 1e-12 * (1.0 + forward.abs()));
        }
    }
}
