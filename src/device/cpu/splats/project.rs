//! From the parameters of splats to their shapes and tiles, and from derivatives back to gradients of the parameters.

use super::axes::{Axes, Each};
use super::lists::TileBox;
use super::shape::{LEAST, Shape};
use super::sums::Record;
use crate::device::cpu::planes::TILE;
use crate::device::cpu::vector::lanes::WIDTH;
use crate::device::cpu::vector::level::Kernel;
use crate::device::cpu::vector::wide::Wide;
use crate::each::EachEntry;
use crate::params::ParamSet;
use crate::resident::splats::SplatSlots;
use crate::transport::number::Number;
use crate::transport::splats::blend::MIN_WEIGHT;
use crate::transport::splats::splat::{SCALE_HIGH, SCALE_LOW};

/// The parameters of all splats.
#[derive(Clone, Copy)]
pub(super) struct Reader<'a> {
    position: &'a [f32],
    scale: &'a [f32],
    rotation: &'a [f32],
    color: &'a [f32],
    opacity: &'a [f32],
}

impl<'a> Reader<'a> {
    pub(super) fn new(slots: &SplatSlots, params: &'a ParamSet) -> Self {
        let [position, scale, rotation, color, opacity] = slots.all().each(|slot| &params.parameters[slot].values[..]);
        Self {
            position,
            scale,
            rotation,
            color,
            opacity,
        }
    }

    /// The splats from `first` on, one a lane; lanes beyond the last one repeat it.
    #[inline(always)]
    fn splats(&self, first: usize) -> Lot {
        let count = self.rotation.len() - first;
        if count >= WIDTH {
            return Lot {
                position: lanes(&self.position[2 * first..]),
                scale: lanes(&self.scale[2 * first..]),
                rotation: lanes::<1>(&self.rotation[first..])[0],
                color: lanes(&self.color[3 * first..]),
                opacity: lanes::<1>(&self.opacity[first..])[0],
            };
        }
        Lot {
            position: some_lanes(&self.position[2 * first..]),
            scale: some_lanes(&self.scale[2 * first..]),
            rotation: some_lanes::<1>(&self.rotation[first..])[0],
            color: some_lanes(&self.color[3 * first..]),
            opacity: some_lanes::<1>(&self.opacity[first..])[0],
        }
    }
}

/// The parameters of sixteen splats.
struct Lot {
    position: [Each; 2],
    scale: [Each; 2],
    rotation: Each,
    color: [Each; 3],
    opacity: Each,
}

/// Transposes the numbers of sixteen splats, C for each splat, to C arrays.
#[inline(always)]
fn lanes<const C: usize>(of: &[f32]) -> [Each; C] {
    let mut apart = [[0.0; WIDTH]; C];
    let of = &of[..C * WIDTH];
    for l in 0..WIDTH {
        for c in 0..C {
            apart[c][l] = of[C * l + c];
        }
    }
    apart
}

/// [`lanes`] of fewer splats.
#[inline(always)]
fn some_lanes<const C: usize>(of: &[f32]) -> [Each; C] {
    let mut apart = [[0.0; WIDTH]; C];
    let count = of.len() / C;
    for l in 0..WIDTH {
        for c in 0..C {
            apart[c][l] = of[C * l.min(count - 1) + c];
        }
    }
    apart
}

/// Projects some splats, and finds the tiles that they may reach.
pub(super) struct Project<'a> {
    pub(super) read: Reader<'a>,
    /// The first one's index.
    pub(super) first: usize,
    pub(super) side: f32,
    /// Added to the centres, in pixels.
    pub(super) offset: [f32; 2],
    /// Tiles a row and a column.
    pub(super) tiles: [usize; 2],
    pub(super) shapes: &'a mut [Shape],
    pub(super) boxes: &'a mut [TileBox],
}

impl Kernel for Project<'_> {
    type Output = ();

    #[inline(always)]
    fn run<W: Wide>(self) {
        for begin in (0..self.shapes.len()).step_by(WIDTH) {
            let of = self.read.splats(self.first + begin);
            let [a, b, c] = Axes::new(&of.scale, &of.rotation, self.side).triangle();
            let mut center = of.position;
            let mut log_opacity = [0.0; WIDTH];
            for l in 0..WIDTH {
                center[0][l] = center[0][l] * self.side + self.offset[0];
                center[1][l] = center[1][l] * self.side + self.offset[1];
                log_opacity[l] = Number::ln(of.opacity[l]) * std::f32::consts::LOG2_E;
            }
            let mut ridge = [[0.0; WIDTH]; 2];
            for l in 0..WIDTH {
                ridge[0][l] = -(a[l] * b[l]) / (b[l] * b[l] + c[l] * c[l]);
                ridge[1][l] = -b[l] / a[l];
            }
            let reach = reach(&of.opacity, &log_opacity, [&a, &b, &c]);
            let columns = tiles(&center[0], &reach[0], self.tiles[0]);
            let rows = tiles(&center[1], &reach[1], self.tiles[1]);
            for l in 0..WIDTH.min(self.shapes.len() - begin) {
                let is_seen = columns[0][l] < columns[1][l] && rows[0][l] < rows[1][l];
                self.boxes[begin + l] = match is_seen {
                    true => TileBox {
                        columns: [columns[0][l] as u16, columns[1][l] as u16],
                        rows: [rows[0][l] as u16, rows[1][l] as u16],
                    },
                    false => TileBox::default(),
                };
                self.shapes[begin + l] = Shape {
                    center: [center[0][l], center[1][l]],
                    a: a[l],
                    b: b[l],
                    c: c[l],
                    log_opacity: log_opacity[l],
                    color: [of.color[0][l], of.color[1][l], of.color[2][l]],
                    ridge: [ridge[0][l], ridge[1][l]],
                };
            }
        }
    }
}

/// Half width and height in pixels of the boxes outside which weights are left out; NaN for splats that reach no pixel.
#[inline(always)]
fn reach(opacity: &Each, log_opacity: &Each, [a, b, c]: [&Each; 3]) -> [Each; 2] {
    /// A margin in pixels for the rounding of weights at the very edge.
    const SLACK: f32 = 0.01;
    let mut reach = [[0.0; WIDTH]; 2];
    for l in 0..WIDTH {
        // The largest U² + V² at which the weight is not left out; NaN where the opacity is too small.
        let widest = if opacity[l] > MIN_WEIGHT {
            log_opacity[l] - LEAST
        } else {
            f32::NAN
        };
        let down = widest.sqrt() / c[l];
        reach[0][l] = down * (b[l] * b[l] + c[l] * c[l]).sqrt() / a[l] + SLACK;
        reach[1][l] = down + SLACK;
    }
    reach
}

/// The tiles along an axis that hold a pixel's centre no farther than `reach` from `center`, the end excluded; none if
/// one of the two is not finite.
#[inline(always)]
fn tiles(center: &Each, reach: &Each, tiles: usize) -> [[i32; WIDTH]; 2] {
    let last = (tiles * TILE) as f32;
    let mut found = [[0; WIDTH]; 2];
    for l in 0..WIDTH {
        let [low, high] = [center[l] - reach[l], center[l] + reach[l]];
        // Comparisons with NaN are false.
        let is_finite = low >= f32::MIN && high <= f32::MAX;
        let first = (low - 0.5).ceil().max(0.0).min(last);
        let end = ((high - 0.5).floor() + 1.0).max(0.0).min(last);
        let [first, end] = [first, end].each(|x| if is_finite { x as i32 } else { 0 });
        found[0][l] = first / TILE as i32;
        found[1][l] = (end + TILE as i32 - 1) / TILE as i32;
    }
    found
}

/// From the sums of some splats to the gradients of their parameters.
pub(super) struct Update<'a> {
    pub(super) read: Reader<'a>,
    /// The first one's index.
    pub(super) first: usize,
    pub(super) side: f32,
    pub(super) sums: &'a [Record],
    /// Of all splats, in the order of the slots; empty for parameters that are not tuned.
    pub(super) gradients: [&'a mut [f32]; 5],
}

impl Kernel for Update<'_> {
    type Output = ();

    #[inline(always)]
    fn run<W: Wide>(self) {
        let [position, scale, rotation, color, opacity] = self.gradients;
        for begin in (0..self.sums.len()).step_by(WIDTH) {
            let first = self.first + begin;
            let count = WIDTH.min(self.sums.len() - begin);
            let of = self.read.splats(first);
            let axes = Axes::new(&of.scale, &of.rotation, self.side);
            let mut sums = [[0.0; WIDTH]; 9];
            for l in 0..count {
                let record = &self.sums[begin + l];
                for k in 0..8 {
                    sums[k][l] = record.sums[k];
                }
                sums[8][l] = record.last;
            }
            let [one, moments @ .., red, green, blue] = &sums;
            let by = along_axes(&axes, moments);
            let mut by_position = by.center;
            let mut by_scale = by.scale;
            let mut by_opacity = [0.0; WIDTH];
            for l in 0..WIDTH {
                for axis in 0..2 {
                    by_position[axis][l] *= self.side;
                    let is_free = (SCALE_LOW..=SCALE_HIGH).contains(&of.scale[axis][l]);
                    by_scale[axis][l] = if is_free { by_scale[axis][l] } else { 0.0 };
                }
                // The weight is the opacity times a Gaussian; a splat without opacity is in no list.
                by_opacity[l] = if one[l] == 0.0 { 0.0 } else { -one[l] / of.opacity[l] };
            }
            add(position, first, count, &by_position);
            add(scale, first, count, &by_scale);
            add(rotation, first, count, &[by.rotation]);
            add(color, first, count, &[*red, *green, *blue]);
            add(opacity, first, count, &[by_opacity]);
        }
    }
}

/// Derivatives by the centre in pixels, by the logarithms of the standard deviations and by the rotation.
struct Along {
    center: [Each; 2],
    scale: [Each; 2],
    rotation: Each,
}

/// The derivatives (48) from the sums of −p̄ times u, v, uu, uv and vv, with p̄ = ᾱ α of (46). (u, v) and the coordinates
/// along the axes differ by a rotation, by which the moments are turned first: along the axes nothing cancels.
#[inline(always)]
fn along_axes(axes: &Axes, [u, v, uu, uv, vv]: &[Each; 5]) -> Along {
    const TWICE: f32 = -2.0 * std::f32::consts::LN_2;
    let Axes {
        cos,
        sin,
        inverse: [p, q],
    } = axes;
    let [a, _, _] = axes.triangle();
    let zero = [0.0; WIDTH];
    let mut by = Along {
        center: [zero; 2],
        scale: [zero; 2],
        rotation: zero,
    };
    for l in 0..WIDTH {
        let (k, m) = (p[l] * cos[l] / a[l], -q[l] * sin[l] / a[l]);
        let [along, across] = [k * u[l] - m * v[l], m * u[l] + k * v[l]];
        let mixed = 2.0 * k * m * uv[l];
        let [squares, others] = [
            k * k * uu[l] - mixed + m * m * vv[l],
            m * m * uu[l] + mixed + k * k * vv[l],
        ];
        let product = k * m * (uu[l] - vv[l]) + (k * k - m * m) * uv[l];
        by.center[0][l] = TWICE * (p[l] * cos[l] * along - q[l] * sin[l] * across);
        by.center[1][l] = TWICE * (p[l] * sin[l] * along + q[l] * cos[l] * across);
        by.scale[0][l] = TWICE * squares;
        by.scale[1][l] = TWICE * others;
        by.rotation[l] = TWICE * product * (q[l] / p[l] - p[l] / q[l]);
    }
    by
}

/// Adds terms of some splats to a gradient; it is empty if the parameter is not tuned.
#[inline(always)]
fn add<const C: usize>(gradient: &mut [f32], first: usize, count: usize, terms: &[Each; C]) {
    if gradient.is_empty() {
        return;
    }
    let entries = &mut gradient[C * first..C * (first + count)];
    for l in 0..count {
        for c in 0..C {
            entries[C * l + c] += terms[c][l];
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::device::cpu::vector::level::Level;
    use crate::transport::rays::random::test_uniform;
    use crate::transport::splats::splat::{Parameters, Splat, SplatAdjoint, reach as scalar_reach};

    /// Round splats and needles in the middle of a picture.
    pub(in crate::device::cpu::splats) fn some_splats(count: u32) -> Vec<Parameters<f32>> {
        let splat = |i| {
            let (a, b) = (test_uniform(20, i, 0), test_uniform(20, i, 1));
            Parameters {
                position: [(28.0 + 24.0 * a[0]) / 64.0, (44.0 + 24.0 * a[1]) / 64.0],
                scale: [-5.0 + 3.5 * a[2], -5.0 + 3.5 * a[3]],
                rotation: 7.0 * b[0],
                color: [b[1], b[2], b[3]],
                opacity: 0.005 + b[1],
            }
        };
        (0..count).map(splat).collect()
    }

    fn arrays(splats: &[Parameters<f32>]) -> [Vec<f32>; 5] {
        [
            splats.iter().flat_map(|s| s.position).collect(),
            splats.iter().flat_map(|s| s.scale).collect(),
            splats.iter().map(|s| s.rotation).collect(),
            splats.iter().flat_map(|s| s.color).collect(),
            splats.iter().map(|s| s.opacity).collect(),
        ]
    }

    fn reader([position, scale, rotation, color, opacity]: &[Vec<f32>; 5]) -> Reader<'_> {
        Reader {
            position,
            scale,
            rotation,
            color,
            opacity,
        }
    }

    pub(in crate::device::cpu::splats) fn project_one(of: &Parameters<f32>, side: f32) -> (Shape, TileBox) {
        let (shapes, boxes) = project_all(&[*of], side, [64; 2]);
        (shapes[0], boxes[0])
    }

    fn project_all(splats: &[Parameters<f32>], side: f32, tiles: [usize; 2]) -> (Vec<Shape>, Vec<TileBox>) {
        let arrays = arrays(splats);
        let (mut shapes, mut boxes) = (
            vec![Shape::default(); splats.len()],
            vec![TileBox::default(); splats.len()],
        );
        Level::Baseline.run(Project {
            read: reader(&arrays),
            first: 0,
            side,
            offset: [-0.0; 2],
            tiles,
            shapes: &mut shapes,
            boxes: &mut boxes,
        });
        (shapes, boxes)
    }

    /// Against `transport/splats/splat.rs` in f64: the exponent at points within reach, and the sides of the box.
    #[test]
    fn shapes_are_those_of_single_splats() {
        let splats = some_splats(1003);
        let (shapes, boxes) = project_all(&splats, 640.0, [40, 40]);
        for (i, of) in splats.iter().enumerate() {
            let exact = Splat::project(&lift(of), 640.0);
            let Shape {
                a,
                b,
                c,
                center,
                log_opacity,
                ..
            } = shapes[i];
            assert!((f64::from(log_opacity) - f64::from(of.opacity).log2()).abs() < 1e-5);
            let [xx, xy, yy] = exact.conic.map(|x| 0.5 * std::f64::consts::LOG2_E * x);
            let [a, b, c] = [a, b, c].map(f64::from);
            let near = |found: f64, expected: f64| (found - expected).abs() < 2e-6 * (xx + yy);
            assert!(
                near(a * a, xx) && near(a * b, xy) && near(b * b + c * c, yy),
                "splat {i}: {of:?}"
            );
            let determinant = xx * yy - xy * xy;
            assert!(((a * c).powi(2) / determinant - 1.0).abs() < 4e-6, "splat {i}: {of:?}");
            for axis in 0..2 {
                assert!((f64::from(center[axis]) - exact.center[axis]).abs() < 1e-4);
            }
            let [width, height] = scalar_reach(of, 640.0).unwrap_or([f32::NAN; 2]);
            let side = |center: f32, reach: f32| match reach.is_nan() {
                true => [0, 0],
                false => {
                    let first = (center - reach - 0.5).ceil().clamp(0.0, 640.0);
                    let end = ((center + reach - 0.5).floor() + 1.0).clamp(0.0, 640.0);
                    [first as u16 / 16, (end as u16).div_ceil(16)]
                }
            };
            let expected = TileBox {
                columns: side(center[0], width),
                rows: side(center[1], height),
            };
            assert_eq!(
                boxes[i].count(),
                expected.count(),
                "splat {i}: {:?}, expected {expected:?}",
                boxes[i]
            );
        }
    }

    fn lift(of: &Parameters<f32>) -> Parameters<f64> {
        Parameters {
            position: of.position.map(f64::from),
            scale: of.scale.map(f64::from),
            rotation: f64::from(of.rotation),
            color: of.color.map(f64::from),
            opacity: f64::from(of.opacity),
        }
    }

    /// Sums over a few points, made here in f64 from the definition of u and v, lead to the gradients that
    /// `Splat::project_adjoint` gives in f64 for the same points.
    #[test]
    fn gradients_are_those_of_single_splats() {
        let splats = some_splats(37);
        let (shapes, _) = project_all(&splats, 64.0, [4, 4]);
        let arrays = arrays(&splats);
        let mut records = vec![Record::default(); splats.len()];
        let mut expected = Vec::new();
        for (i, of) in splats.iter().enumerate() {
            let exact = Splat::project(&lift(of), 64.0);
            let mut by = SplatAdjoint::<f64>::zero();
            let mut sums = [0f64; 6];
            for k in 0..5u32 {
                let at = test_uniform(21, i as u32, k);
                // Points within two standard deviations along either axis.
                let (cos, sin) = (of.rotation.cos(), of.rotation.sin());
                let [s, t] = [0, 1].map(|axis| 4.0 * (at[axis] - 0.5) * of.scale[axis].exp() * 64.0);
                let point = [
                    exact.center[0] as f32 + cos * s - sin * t,
                    exact.center[1] as f32 + sin * s + cos * t,
                ];
                let by_weight = f64::from(at[2]) - 0.3;
                by.add(&exact.eval_adjoint(point, by_weight));
                let by_power = -by_weight * exact.eval(point);
                let [x, y] = [0, 1].map(|axis| f64::from(point[axis]) - exact.center[axis]);
                let u = f64::from(shapes[i].a) * x + f64::from(shapes[i].b) * y;
                let v = f64::from(shapes[i].c) * y;
                for (sum, term) in sums.iter_mut().zip([1.0, u, v, u * u, u * v, v * v]) {
                    *sum += by_power * term;
                }
            }
            let [one, u, v, uu, uv, vv] = sums.map(|x| x as f32);
            records[i] = Record {
                sums: [one, u, v, uu, uv, vv, 2.0, 3.0],
                last: 4.0,
            };
            by.color = [2.0, 3.0, 4.0];
            expected.push(Splat::project_adjoint(&lift(of), 64.0, &by));
        }
        let mut found = arrays.clone().map(|a| vec![0.0; a.len()]);
        let [position, scale, rotation, color, opacity] = &mut found;
        Level::Baseline.run(Update {
            read: reader(&arrays),
            first: 0,
            side: 64.0,
            sums: &records,
            gradients: [position, scale, rotation, color, opacity],
        });
        let [position, scale, rotation, color, opacity] = &found;
        for (i, of) in expected.iter().enumerate() {
            let pairs = [
                ([position[2 * i], position[2 * i + 1]], of.position),
                ([scale[2 * i], scale[2 * i + 1]], of.scale),
                ([rotation[i], opacity[i]], [of.rotation, of.opacity]),
            ];
            for (found, expected) in pairs {
                for k in 0..2 {
                    let size = expected[0].abs().max(expected[1].abs()).max(1e-3);
                    let off = (f64::from(found[k]) - expected[k]).abs();
                    assert!(
                        off < 2e-4 * size,
                        "splat {i}: {found:?}, expected {expected:?}; {:?}",
                        splats[i]
                    );
                }
            }
            assert_eq!(color[3 * i..3 * i + 3], [2.0, 3.0, 4.0]);
        }
    }
}
