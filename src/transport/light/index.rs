//! An index of refraction that varies over the cube [-1, 1]³: a cubic B-spline with a coefficient a texel, whose second
//! derivatives are continuous, so that the force on light has no visible seams.

use crate::each::EachEntry;
use crate::transport::number::Number;

/// Copies of the outermost texels on each side, so that the four texels that a place depends on along an axis always are
/// neighbours.
pub const BORDER: usize = 2;

/// The coefficients with their border.
#[derive(Debug, Clone, Copy)]
pub struct Index<'a, N> {
    /// Padded by [`BORDER`] on all sides; x varies fastest.
    pub values: &'a [N],
    /// Texels along x, y and z, without the border.
    pub size: [usize; 3],
}

/// The index at a place, and n∇n, which is the acceleration of light there.
#[derive(Debug, Clone, Copy)]
pub struct Bending<N> {
    pub index: N,
    pub slope: [N; 3],
    pub force: [N; 3],
}

/// A place's weights along an axis: of the value, the slope and the curvature.
#[derive(Debug, Clone, Copy)]
struct Axis<N> {
    /// The first of four texels, counted with the border.
    first: usize,
    weight: [[N; 4]; 3],
}

/// The sides of a grid with its border.
pub fn padded(size: [usize; 3]) -> [usize; 3] {
    size.each(|n| n + 2 * BORDER)
}

/// The coefficients with a border of copies.
pub fn pad<N: Copy>(values: &[N], size: [usize; 3]) -> Vec<N> {
    border(size).map(|flat| values[flat]).collect()
}

/// For each entry of a padded grid, the entry that it is a copy of.
pub fn border(size: [usize; 3]) -> impl Iterator<Item = usize> {
    let [nx, ny, nz] = size;
    let inner = |at: usize, n: usize| at.saturating_sub(BORDER).min(n - 1);
    let [px, py, pz] = padded([nx, ny, nz]);
    (0..pz).flat_map(move |z| {
        (0..py).flat_map(move |y| (0..px).map(move |x| (inner(z, nz) * ny + inner(y, ny)) * nx + inner(x, nx)))
    })
}

#[inline(always)]
fn axis<N: Number>(x: N, n: usize) -> Axis<N> {
    let [one, half, two, three] = [1.0, 0.5, 2.0, 3.0].each(N::lift);
    // Not of an f32 each, which would not fit their slopes.
    let [sixth, two_thirds] = [half / three, two / three];
    let scale = N::lift(0.5 * n as f32);
    let g = (x + one) * scale - half;
    // The texel below, as -1/2 ≤ g; rounding may leave the cube by less than a texel.
    let cell = ((g.value() + 1.0) as i64 - 1).clamp(-1, n as i64 - 1);
    let f = g - N::lift(cell as f32);
    let rest = one - f;
    let [f2, rest2] = [f * f, rest * rest];
    let slope = scale;
    let curve = scale * scale;
    Axis {
        first: (cell + BORDER as i64 - 1) as usize,
        weight: [
            [
                sixth * rest2 * rest,
                two_thirds - f2 + half * f2 * f,
                two_thirds - rest2 + half * rest2 * rest,
                sixth * f2 * f,
            ],
            [
                -(slope * half * rest2),
                slope * f * (N::lift(1.5) * f - two),
                slope * rest * (two - N::lift(1.5) * rest),
                slope * half * f2,
            ],
            [
                curve * rest,
                curve * (three * f - two),
                curve * (three * rest - two),
                curve * f,
            ],
        ],
    }
}

/// Adds four coefficients, all with this factor.
#[inline(always)]
fn add<N: Number>(sums: [N; 4], row: [N; 4], by: N) -> [N; 4] {
    [
        sums[0] + row[0] * by,
        sums[1] + row[1] * by,
        sums[2] + row[2] * by,
        sums[3] + row[3] * by,
    ]
}

#[inline(always)]
fn along<N: Number>(weight: &[N; 4], sums: &[N; 4]) -> N {
    (weight[0] * sums[0] + weight[1] * sums[1]) + (weight[2] * sums[2] + weight[3] * sums[3])
}

/// What bends light.
pub trait Medium<N: Number> {
    /// The index at a place, its slope, and the acceleration of light.
    fn bending(&self, p: [N; 3]) -> Bending<N>;

    /// The same, and the derivative of the acceleration along `d`, which is also its derivative's transpose times `d`:
    /// n∇n is the slope of n²/2.
    fn bending_along(&self, p: [N; 3], d: [N; 3]) -> (Bending<N>, [N; 3]);

    /// Sends the derivatives by the index at a place, and by its slope, to the entries, four neighbours at a time.
    fn send(&self, p: [N; 3], by_index: N, by_slope: [N; 3], send: &mut impl FnMut(usize, [N; 4]));
}

impl<N: Number> Index<'_, N> {
    /// Index of the first of four texels along x, of row (y, z) of a stencil.
    #[inline(always)]
    fn row(&self, axes: &[Axis<N>; 3], y: usize, z: usize) -> usize {
        let [px, py] = [self.size[0] + 2 * BORDER, self.size[1] + 2 * BORDER];
        ((axes[2].first + z) * py + axes[1].first + y) * px + axes[0].first
    }

    #[inline(always)]
    fn axes(&self, p: [N; 3]) -> [Axis<N>; 3] {
        let [nx, ny, nz] = self.size;
        [axis(p[0], nx), axis(p[1], ny), axis(p[2], nz)]
    }

    /// Four neighbouring coefficients.
    #[inline(always)]
    fn four(&self, at: usize) -> [N; 4] {
        let row = &self.values[at..at + 4];
        [row[0], row[1], row[2], row[3]]
    }
}

impl<N: Number> Medium<N> for Index<'_, N> {
    #[inline(always)]
    fn bending(&self, p: [N; 3]) -> Bending<N> {
        let axes = self.axes(p);
        let [y, z] = [&axes[1].weight, &axes[2].weight];
        let zero = [N::lift(0.0); 4];
        let (mut plain, mut by_y, mut by_z) = (zero, zero, zero);
        for k in 0..4 {
            for j in 0..4 {
                let row = self.four(self.row(&axes, j, k));
                plain = add(plain, row, y[0][j] * z[0][k]);
                by_y = add(by_y, row, y[1][j] * z[0][k]);
                by_z = add(by_z, row, y[0][j] * z[1][k]);
            }
        }
        let x = &axes[0].weight;
        let index = along(&x[0], &plain);
        let slope = [along(&x[1], &plain), along(&x[0], &by_y), along(&x[0], &by_z)];
        Bending {
            index,
            slope,
            force: slope.each(|s| index * s),
        }
    }

    #[inline(always)]
    fn bending_along(&self, p: [N; 3], d: [N; 3]) -> (Bending<N>, [N; 3]) {
        let axes = self.axes(p);
        let [y, z] = [&axes[1].weight, &axes[2].weight];
        let zero = [N::lift(0.0); 4];
        // Sums along y and z of the value and of its derivatives y, z, yy, yz, zz.
        let [mut plain, mut by_y, mut by_z, mut yy, mut yz, mut zz] = [zero; 6];
        for k in 0..4 {
            for j in 0..4 {
                let row = self.four(self.row(&axes, j, k));
                plain = add(plain, row, y[0][j] * z[0][k]);
                by_y = add(by_y, row, y[1][j] * z[0][k]);
                by_z = add(by_z, row, y[0][j] * z[1][k]);
                yy = add(yy, row, y[2][j] * z[0][k]);
                yz = add(yz, row, y[1][j] * z[1][k]);
                zz = add(zz, row, y[0][j] * z[2][k]);
            }
        }
        let x = &axes[0].weight;
        let index = along(&x[0], &plain);
        let slope = [along(&x[1], &plain), along(&x[0], &by_y), along(&x[0], &by_z)];
        let [xx, xy, xz] = [along(&x[2], &plain), along(&x[1], &by_y), along(&x[1], &by_z)];
        let [yy, yz, zz] = [along(&x[0], &yy), along(&x[0], &yz), along(&x[0], &zz)];
        let rise = slope[0] * d[0] + slope[1] * d[1] + slope[2] * d[2];
        let turned = [
            xx * d[0] + xy * d[1] + xz * d[2],
            xy * d[0] + yy * d[1] + yz * d[2],
            xz * d[0] + yz * d[1] + zz * d[2],
        ];
        let bending = Bending {
            index,
            slope,
            force: slope.each(|s| index * s),
        };
        (bending, [0, 1, 2].each(|a: usize| slope[a] * rise + index * turned[a]))
    }

    /// To the 64 coefficients, by their index with the border.
    #[inline(always)]
    fn send(&self, p: [N; 3], by_index: N, by_slope: [N; 3], send: &mut impl FnMut(usize, [N; 4])) {
        let axes = self.axes(p);
        let [x, y, z] = axes.each(|axis| axis.weight);
        for k in 0..4 {
            // Along z first, which 16 coefficients share.
            let plain = by_index * z[0][k] + by_slope[2] * z[1][k];
            let [by_x, by_y] = [by_slope[0] * z[0][k], by_slope[1] * z[0][k]];
            for j in 0..4 {
                let (a, b) = (plain * y[0][j] + by_y * y[1][j], by_x * y[0][j]);
                send(
                    self.row(&axes, j, k),
                    [0, 1, 2, 3].each(|i: usize| a * x[0][i] + b * x[1][i]),
                );
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::rays::random::test_uniform;

    const SIZE: [usize; 3] = [5, 4, 6];

    fn grid() -> Vec<f64> {
        let random = |i| 1.3 + 0.2 * f64::from(test_uniform(7, i, 0)[0]);
        pad(&(0..120).map(random).collect::<Vec<_>>(), SIZE)
    }

    fn places() -> impl Iterator<Item = ([f64; 3], [f64; 3])> {
        (0..60).map(|i| {
            let [a, b, c, d] = test_uniform(8, i, 0).map(|u| 2.0 * f64::from(u) - 1.0);
            ([a, b, c], [d, a * b, c - d])
        })
    }

    #[test]
    fn a_constant_index_bends_nothing() {
        let values = pad(&[1.25f64; 120], SIZE);
        let index = Index {
            values: &values,
            size: SIZE,
        };
        for (p, d) in places().chain([([1.0; 3], [1.0; 3]), ([-1.0; 3], [1.0; 3])]) {
            let (at, turned) = index.bending_along(p, d);
            assert!((at.index - 1.25).abs() < 1e-14);
            assert!(at.force.iter().chain(&turned).all(|x| x.abs() < 1e-12), "{at:?}");
        }
    }

    #[test]
    fn slopes_and_turns_are_those_of_the_index() {
        let values = grid();
        let index = Index {
            values: &values,
            size: SIZE,
        };
        let h = 1e-5;
        for (p, d) in places() {
            let moved = |by: f64, v: [f64; 3]| index.bending([0, 1, 2].map(|a| p[a] + by * v[a]));
            let (at, turned) = index.bending_along(p, d);
            for a in 0..3 {
                let axis = [0, 1, 2].map(|b| f64::from(u8::from(a == b)));
                let slope = (moved(h, axis).index - moved(-h, axis).index) / (2.0 * h);
                assert!((at.slope[a] - slope).abs() < 1e-7, "{a} {slope} {:?}", at.slope);
                let turn = (moved(h, d).force[a] - moved(-h, d).force[a]) / (2.0 * h);
                assert!(
                    (turned[a] - turn).abs() < 1e-6 * (1.0 + turn.abs()),
                    "{a} {turn} {turned:?}"
                );
            }
        }
    }

    /// What is sent is the transpose of the lookup, which is linear in the coefficients.
    #[test]
    fn what_is_sent_is_the_transpose() {
        let values = grid();
        let index = Index {
            values: &values,
            size: SIZE,
        };
        for (p, by) in places() {
            let at = index.bending(p);
            let forward = 0.7 * at.index + (0..3).map(|a| by[a] * at.slope[a]).sum::<f64>();
            let mut backward = 0.0;
            index.send(p, 0.7, by, &mut |first, g: [f64; 4]| {
                backward += (0..4).map(|i| g[i] * values[first + i]).sum::<f64>();
            });
            assert!((forward - backward).abs() < 1e-12 * (1.0 + forward.abs()));
        }
    }

    /// Each entry of the border is a copy of the nearest texel.
    #[test]
    fn the_border_copies_the_outermost_texels() {
        let values: Vec<usize> = (0..120).collect();
        let [px, py, pz] = padded(SIZE);
        let all = pad(&values, SIZE);
        assert_eq!(all.len(), px * py * pz);
        let at = |x: usize, y: usize, z: usize| all[(z * py + y) * px + x];
        assert_eq!(at(0, 0, 0), 0);
        assert_eq!(at(2, 2, 2), 0);
        assert_eq!(at(4, 3, 5), (3 * 4 + 1) * 5 + 2);
        assert_eq!(at(px - 1, py - 1, pz - 1), 119);
    }
}
