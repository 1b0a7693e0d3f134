//! An index of refraction that varies over the cube [-1, 1]³: a cubic B-spline with a coefficient a texel, whose second
//! derivatives are continuous, so that the force on light has no visible seams.

use crate::each::{EachEntry, each_index};
use crate::transport::number::Number;

/// Width of the border, in texels, that repeats the outermost texel on each side, so that the four texels that a point depends
/// on along an axis are always neighbours in the array.
pub const BORDER: usize = 2;

/// The weights of four neighbouring texels at the fraction f between the second and the third: coefficients of 1, f, f² and f³,
/// times six (docs/method.md, equation 70).
pub const SIX_VALUES: [[f32; 4]; 4] = [
    [1.0, 4.0, 1.0, 0.0],
    [-3.0, 0.0, 3.0, 0.0],
    [3.0, -6.0, 3.0, 0.0],
    [-1.0, 3.0, -3.0, 1.0],
];

/// First ([`SLOPES`]) and second ([`CURVES`]) derivatives of the weights, not times six.
pub const SLOPES: [[f32; 4]; 3] = [[-0.5, 0.0, 0.5, 0.0], [1.0, -2.0, 1.0, 0.0], [-0.5, 1.5, -1.5, 0.5]];
pub const CURVES: [[f32; 4]; 2] = [[1.0, -2.0, 1.0, 0.0], [-1.0, 3.0, -3.0, 1.0]];

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

impl<N: Number> Bending<N> {
    #[inline(always)]
    pub fn new(index: N, slope: [N; 3]) -> Self {
        Self {
            index,
            slope,
            force: slope.each(|s| index * s),
        }
    }

    /// The derivative of the force along `d`, from the second derivatives of the index: xx, xy, xz, yy, yz and zz.
    #[inline(always)]
    pub fn turned(&self, [xx, xy, xz, yy, yz, zz]: [N; 6], d: [N; 3]) -> [N; 3] {
        let (index, slope) = (self.index, self.slope);
        let rise = slope[0] * d[0] + slope[1] * d[1] + slope[2] * d[2];
        let turned = [
            xx * d[0] + xy * d[1] + xz * d[2],
            xy * d[0] + yy * d[1] + yz * d[2],
            xz * d[0] + yz * d[1] + zz * d[2],
        ];
        [0, 1, 2].each(|a: usize| slope[a] * rise + index * turned[a])
    }
}

/// A medium of varying index of refraction.
pub trait Medium<N: Number> {
    /// Length of the gradient that [`Self::send`] sends to, border included.
    fn entries(&self) -> usize;

    /// The index at a place, its slope, and the acceleration of light.
    fn bending(&self, p: [N; 3]) -> Bending<N>;

    /// [`Self::bending`], and the derivative of the acceleration along `d`. That is also the transpose of its Jacobian times
    /// `d`, since n∇n is the gradient of n²/2, whose Hessian is symmetric.
    fn bending_along(&self, p: [N; 3], d: [N; 3]) -> (Bending<N>, [N; 3]);

    /// Sends the derivatives by the index at a place, and by its slope, to the entries, four neighbours at a time.
    fn send(&self, p: [N; 3], by_index: N, by_slope: [N; 3], send: &mut impl FnMut(usize, [N; 4]));
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

/// Four rows of four coefficients, or of their weights.
type Layer<N> = [[N; 4]; 4];

/// The coefficients that a point depends on, and their weights.
#[derive(Debug, Clone, Copy)]
struct Axes<N> {
    /// Index of the first of the 64 coefficients.
    first: usize,
    /// Along each axis the weights of the value, the slope and the curvature.
    weight: [[[N; 4]; 3]; 3],
}

impl<N: Number> Axes<N> {
    /// The weights of a layer's 16 coefficients, for derivatives of these orders along x and y.
    #[inline(always)]
    fn plane(&self, along_x: usize, along_y: usize) -> Layer<N> {
        let (x, y) = (&self.weight[0][along_x], &self.weight[1][along_y]);
        y.each(|y| x.each(|x| x * y))
    }
}

/// Polynomials of f, whose coefficients are divided by `over`.
#[inline(always)]
fn polynomials<N: Number, const TERMS: usize>(coefficients: &[[f32; 4]; TERMS], over: N, f: N) -> [N; 4] {
    let mut sums = coefficients[TERMS - 1].each(|c| N::lift(c) / over);
    for k in 1..TERMS {
        let lower = coefficients[TERMS - 1 - k];
        sums = [0, 1, 2, 3].each(|i: usize| sums[i] * f + N::lift(lower[i]) / over);
    }
    sums
}

/// The cell and the weights of a place along an axis of `n` texels.
#[inline(always)]
fn axis<N: Number>(x: N, n: usize) -> (usize, [[N; 4]; 3]) {
    let [one, half, six] = [1.0, 0.5, 6.0].each(N::lift);
    let scale = N::lift(0.5 * n as f32);
    let g = (x + one) * scale - half;
    // The texel below, counted from one before the first since g may be -1/2; by rounding, points may lie outside the cube by
    // less than a texel.
    let cell = ((g + one).value() as i64).clamp(0, n as i64);
    let f = g - N::lift((cell - 1) as f32);
    let values = polynomials(&SIX_VALUES, six, f);
    let slopes = polynomials(&SLOPES, one, f).each(|x| x * scale);
    let curves = polynomials(&CURVES, one, f).each(|x| x * (scale * scale));
    (cell as usize, [values, slopes, curves])
}

/// The weighted sum of four layers.
#[inline(always)]
fn weighted<N: Number>(layers: &[Layer<N>; 4], weight: &[N; 4]) -> Layer<N> {
    let [a, b, c, d] = layers;
    each_index(|j| {
        each_index(|i| (a[j][i] * weight[0] + b[j][i] * weight[1]) + (c[j][i] * weight[2] + d[j][i] * weight[3]))
    })
}

/// The sum of the products of a layer and its weights, added pairwise.
#[inline(always)]
fn total<N: Number>(layer: &Layer<N>, weight: &Layer<N>) -> N {
    let row = |j: usize| -> [N; 4] { each_index(|i| layer[j][i] * weight[j][i]) };
    let [a, b, c, d] = [row(0), row(1), row(2), row(3)];
    let four: [N; 4] = each_index(|i| (a[i] + c[i]) + (b[i] + d[i]));
    (four[0] + four[2]) + (four[1] + four[3])
}

impl<N: Number> Index<'_, N> {
    /// Entries from a row to the next, and from a layer to the next.
    #[inline(always)]
    fn strides(&self) -> [usize; 2] {
        let [px, py] = [self.size[0] + 2 * BORDER, self.size[1] + 2 * BORDER];
        [px, px * py]
    }

    #[inline(always)]
    fn axes(&self, p: [N; 3]) -> Axes<N> {
        const { assert!(BORDER == 2, "the cell counts from one before the first texel") };
        let [nx, ny, nz] = self.size;
        let [(x, by_x), (y, by_y), (z, by_z)] = [axis(p[0], nx), axis(p[1], ny), axis(p[2], nz)];
        let [row, layer] = self.strides();
        Axes {
            first: z * layer + y * row + x,
            weight: [by_x, by_y, by_z],
        }
    }

    /// The first of four coefficients along x, of row (y, z) of those that a place depends on.
    #[inline(always)]
    fn row(&self, axes: &Axes<N>, y: usize, z: usize) -> usize {
        let [row, layer] = self.strides();
        axes.first + z * layer + y * row
    }

    /// Four neighbouring coefficients of a row.
    #[inline(always)]
    fn four(&self, first: usize) -> [N; 4] {
        let four = &self.values[first..first + 4];
        [four[0], four[1], four[2], four[3]]
    }

    /// The coefficients that a place depends on.
    #[inline(always)]
    fn layers(&self, axes: &Axes<N>) -> [Layer<N>; 4] {
        each_index(|z| each_index(|y| self.four(self.row(axes, y, z))))
    }
}

impl<N: Number> Medium<N> for Index<'_, N> {
    #[inline(always)]
    fn entries(&self) -> usize {
        self.values.len()
    }

    #[inline(always)]
    fn bending(&self, p: [N; 3]) -> Bending<N> {
        let axes = self.axes(p);
        let (layers, z) = (self.layers(&axes), &axes.weight[2]);
        let [plain, by_z] = [weighted(&layers, &z[0]), weighted(&layers, &z[1])];
        let here = axes.plane(0, 0);
        let slope = [
            total(&plain, &axes.plane(1, 0)),
            total(&plain, &axes.plane(0, 1)),
            total(&by_z, &here),
        ];
        Bending::new(total(&plain, &here), slope)
    }

    #[inline(always)]
    fn bending_along(&self, p: [N; 3], d: [N; 3]) -> (Bending<N>, [N; 3]) {
        let axes = self.axes(p);
        let (layers, z) = (self.layers(&axes), &axes.weight[2]);
        let [plain, by_z] = [weighted(&layers, &z[0]), weighted(&layers, &z[1])];
        let by_zz = weighted(&layers, &z[2]);
        let [here, by_x, by_y] = [axes.plane(0, 0), axes.plane(1, 0), axes.plane(0, 1)];
        let slope = [total(&plain, &by_x), total(&plain, &by_y), total(&by_z, &here)];
        let bending = Bending::new(total(&plain, &here), slope);
        let second = [
            total(&plain, &axes.plane(2, 0)),
            total(&plain, &axes.plane(1, 1)),
            total(&by_z, &by_x),
            total(&plain, &axes.plane(0, 2)),
            total(&by_z, &by_y),
            total(&by_zz, &here),
        ];
        (bending, bending.turned(second, d))
    }

    #[inline(always)]
    fn send(&self, p: [N; 3], by_index: N, by_slope: [N; 3], send: &mut impl FnMut(usize, [N; 4])) {
        let axes = self.axes(p);
        let [here, by_x, by_y] = [axes.plane(0, 0), axes.plane(1, 0), axes.plane(0, 1)];
        let across: Layer<N> = each_index(|j| each_index(|i| by_x[j][i] * by_slope[0] + by_y[j][i] * by_slope[1]));
        let z = &axes.weight[2];
        for k in 0..4 {
            let along = by_index * z[0][k] + by_slope[2] * z[1][k];
            for j in 0..4 {
                let four = each_index(|i| here[j][i] * along + across[j][i] * z[0][k]);
                send(self.row(&axes, j, k), four);
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

    /// `send` is the transpose of the lookup, which is linear in the coefficients.
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
