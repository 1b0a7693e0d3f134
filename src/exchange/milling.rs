//! A slab as a ball-end mill leaves it: where hollows of the height field are narrower than the ball, material remains.
//!
//! Slopes of slabs are small, so that the ball is replaced by the paraboloid of its curvature, x²/(2 radius) above its lowest
//! point: at a contact of slope s, x² is too small by the share s²/4. The largest and smallest differences to a paraboloid are
//! found axis after axis, by envelopes of parabolas (Felzenszwalb2012).

use rayon::prelude::*;

/// A ball-end mill, in the slab's own units.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cutter {
    /// Of the ball; positive.
    pub radius: f64,
    /// The machine's step in height, of which the ball's height is a multiple; 0 for a machine without steps.
    pub step: f64,
}

/// The heights that a cutter leaves.
#[derive(Debug, Clone)]
pub struct Milled {
    /// Spline coefficients of the milled heights.
    pub heights: Vec<f32>,
    /// Largest, mean and root mean square distance along z of milled from wanted heights, and the range of the wanted ones.
    pub largest: f64,
    pub mean: f64,
    pub rms: f64,
    pub range: f64,
}

/// Positions of the ball in a texel, along either axis. Milled heights are the mean over them, which removes the ridges
/// between neighbouring positions.
const FINER: usize = 4;

/// Values row after row.
#[derive(Debug, Clone, PartialEq)]
struct Field {
    width: usize,
    values: Vec<f64>,
}

impl Field {
    fn height(&self) -> usize {
        self.values.len() / self.width
    }

    /// The transpose.
    fn transposed(&self) -> Self {
        let (width, height) = (self.width, self.height());
        let column = |x: usize| (0..height).map(move |y| self.values[y * width + x]);
        Self {
            width: height,
            values: (0..width).into_par_iter().flat_map_iter(column).collect(),
        }
    }

    /// Applies `line` to each row (axis 0), then to each column (axis 1) of the result.
    fn along_both(&self, line: impl Fn(&[f64], usize) -> Vec<f64> + Sync) -> Self {
        let along = |field: &Self, axis: usize| {
            let rows = field.values.par_chunks(field.width);
            let values: Vec<f64> = rows.flat_map_iter(|row| line(row, axis)).collect();
            Self {
                width: values.len() / field.height(),
                values,
            }
        };
        along(&along(self, 0).transposed(), 1).transposed()
    }
}

/// Mills the side of a slab [-1, 1]² with these spline coefficients of its heights, `size` along x and y: the ball visits all
/// positions, as low as it can be without cutting into the heights, rounded to the cutter's step. Beyond the rim there is no
/// material.
pub fn mill(heights: &[f32], size: [usize; 2], cutter: Cutter) -> Milled {
    let coarse = Field {
        width: size[0],
        values: heights.iter().map(|h| f64::from(*h)).collect(),
    };
    let fine = coarse.along_both(|line, _| finer(line));
    let (low, high) = fine
        .values
        .iter()
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| {
            (low.min(*v), high.max(*v))
        });
    // At a larger horizontal distance than this, the ball cannot touch the heights.
    let reach = (2.0 * cutter.radius * (high - low + cutter.step)).sqrt();
    let texel = size.map(|n| 2.0 / (n * FINER) as f64);
    let margin = [0, 1].map(|axis: usize| ((reach / texel[axis]).ceil() as usize).min(size[axis] * FINER));
    let bend = texel.map(|texel| texel * texel / (2.0 * cutter.radius));
    // Heights of the ball's lowest point, then the heights that it leaves.
    let touching = fine.along_both(|line, axis| {
        let upside_down: Vec<f64> = line.iter().map(|v| -v).collect();
        let least = envelope(&upside_down, bend[axis], margin[axis]);
        least.into_iter().map(|v| -v).collect()
    });
    let lowest = Field {
        values: touching.values.iter().map(|v| stepped(*v, cutter)).collect(),
        ..touching
    };
    let left = lowest.along_both(|line, axis| {
        let all = envelope(line, bend[axis], 0);
        all[margin[axis]..all.len() - margin[axis]].to_vec()
    });
    let count = left.values.len() as f64;
    let distances = || left.values.iter().zip(&fine.values).map(|(a, b)| a - b);
    Milled {
        largest: distances().fold(0.0, |most, d| d.abs().max(most)),
        mean: distances().map(f64::abs).sum::<f64>() / count,
        rms: (distances().map(|d| d * d).sum::<f64>() / count).sqrt(),
        range: high - low,
        heights: left
            .along_both(|line, _| coefficients(line))
            .values
            .iter()
            .map(|v| *v as f32)
            .collect(),
    }
}

/// The height of the ball's lowest point, rounded to the machine's step.
fn stepped(lowest: f64, cutter: Cutter) -> f64 {
    match cutter.step > 0.0 {
        true => (lowest / cutter.step).round() * cutter.step,
        false => lowest,
    }
}

/// Lower envelope of parabolas: the minimum over q of `values[q] + bend (p - q)²`, at each index p and at `margin` indices beyond
/// either end.
fn envelope(values: &[f64], bend: f64, margin: usize) -> Vec<f64> {
    // Parabolas of the envelope, and where each begins to be the lowest.
    let mut parabolas: Vec<(usize, f64)> = Vec::with_capacity(values.len());
    let above = |q: usize| values[q] / bend + (q * q) as f64;
    for q in 0..values.len() {
        let mut begin = f64::NEG_INFINITY;
        while let Some(&(last, from)) = parabolas.last() {
            begin = (above(q) - above(last)) / (2 * (q - last)) as f64;
            if begin > from {
                break;
            }
            parabolas.pop();
            begin = f64::NEG_INFINITY;
        }
        parabolas.push((q, begin));
    }
    let mut k = 0;
    let least = |p: usize| {
        let p = p as f64 - margin as f64;
        while k + 1 < parabolas.len() && parabolas[k + 1].1 <= p {
            k += 1;
        }
        let q = parabolas[k].0;
        values[q] + bend * (p - q as f64).powi(2)
    };
    (0..values.len() + 2 * margin).map(least).collect()
}

/// Spline weights of the coefficients before, at and after a texel, at the `i`-th of [`FINER`] positions in it.
fn weights(i: usize) -> [f64; 3] {
    let f = (i as f64 + 0.5) / FINER as f64;
    [0.5 * (1.0 - f) * (1.0 - f), 0.5 + f * (1.0 - f), 0.5 * f * f]
}

/// The spline at all [`FINER`] positions in each texel of a line.
fn finer(line: &[f64]) -> Vec<f64> {
    let n = line.len();
    let of_texel = |x: usize| {
        let around = [line[x.saturating_sub(1)], line[x], line[(x + 1).min(n - 1)]];
        (0..FINER).map(move |i| weights(i).iter().zip(around).map(|(w, v)| w * v).sum::<f64>())
    };
    (0..n).flat_map(of_texel).collect()
}

/// The coefficients of the spline whose means over texels are those of `fine`: the tridiagonal equations are solved by
/// forward elimination and back substitution.
fn coefficients(fine: &[f64]) -> Vec<f64> {
    let mean = |values: &[f64]| values.iter().sum::<f64>() / FINER as f64;
    let mut line: Vec<f64> = fine.chunks_exact(FINER).map(mean).collect();
    let n = line.len();
    let [beside, own, _] = [0, 1, 2].map(|k: usize| (0..FINER).map(|i| weights(i)[k]).sum::<f64>() / FINER as f64);
    // At the ends the neighbour beyond is the texel itself.
    let ends = |i: usize| usize::from(i == 0) + usize::from(i + 1 == n);
    let mut factors = vec![0.0; n];
    for i in 0..n {
        let (lower, factor, before) = match i {
            0 => (0.0, 0.0, 0.0),
            _ => (beside, factors[i - 1], line[i - 1]),
        };
        let pivot = own + beside * ends(i) as f64 - lower * factor;
        factors[i] = beside / pivot;
        line[i] = (line[i] - lower * before) / pivot;
    }
    for i in (0..n - 1).rev() {
        line[i] -= factors[i] * line[i + 1];
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waves(size: [usize; 2]) -> Vec<f32> {
        let at = |i: usize| ((i % size[0]) as f32, (i / size[0]) as f32);
        let wave = |(x, y): (f32, f32)| 0.01 * ((0.9 * x).sin() + (0.7 * y + 0.2 * x).cos());
        (0..size[0] * size[1]).map(|i| wave(at(i))).collect()
    }

    fn field(heights: &[f32], width: usize) -> Field {
        Field {
            width,
            values: heights.iter().map(|h| f64::from(*h)).collect(),
        }
    }

    fn cutter(radius: f64) -> Cutter {
        Cutter { radius, step: 0.0 }
    }

    #[test]
    fn a_field_has_the_coefficients_that_it_is_sampled_from() {
        for size in [[17, 9], [1, 5], [2, 2], [1, 1]] {
            let heights = waves(size);
            let again = field(&heights, size[0])
                .along_both(|line, _| finer(line))
                .along_both(|line, _| coefficients(line));
            for (a, b) in heights.iter().zip(&again.values) {
                assert!((f64::from(*a) - b).abs() < 1e-12, "{size:?}: {a} {b}");
            }
        }
    }

    #[test]
    fn an_envelope_is_the_least_of_all_parabolas() {
        let values: Vec<f64> = waves([60, 1]).iter().map(|h| f64::from(*h)).collect();
        for bend in [1e-5, 1e-3, 1.0] {
            for (p, found) in envelope(&values, bend, 7).into_iter().enumerate() {
                let all = values.iter().enumerate();
                let least = all
                    .map(|(q, v)| v + bend * (p as f64 - 7.0 - q as f64).powi(2))
                    .fold(f64::INFINITY, f64::min);
                assert!(
                    (found - least).abs() < 1e-14 * (1.0 + least.abs()),
                    "{bend}: {found} {least}"
                );
            }
        }
    }

    /// A paraboloid of radius R sinks into a slot of width 2 a between flat lands by a²/(2 R).
    #[test]
    fn a_ball_rests_on_the_edges_of_a_slot() {
        let size = [64usize, 8];
        let heights: Vec<f32> = (0..512)
            .map(|i| if (28..36).contains(&(i % 64)) { -0.1 } else { 0.0 })
            .collect();
        let milled = mill(&heights, size, cutter(0.5));
        // The spline leaves the land a texel before the slot, 5 texels from its middle, and places of the ball are a quarter of
        // a texel apart.
        let depth = |texels: f64| (texels * 2.0 / 64.0).powi(2) / (2.0 * 0.5);
        let fine = field(&milled.heights, 64).along_both(|line, _| finer(line));
        for y in 0..8 * FINER {
            let found = -fine.values[y * fine.width + 32 * FINER];
            assert!(found > depth(4.7) && found < depth(5.0), "{found}");
            assert!(fine.values[y * fine.width + 10 * FINER].abs() < 1e-7);
        }
        assert!(
            milled.largest > 0.1 - depth(5.0) && milled.largest < 0.1 - depth(4.7) + depth(3.2),
            "{}",
            milled.largest
        );
        assert!(milled.rms > 0.0 && milled.rms < milled.largest && (milled.range - 0.1).abs() < 1e-6);
    }

    /// Heights whose hollows are all wider than the ball stay nearly as they are, and milling a second time with the same ball
    /// changes little.
    #[test]
    fn a_ball_leaves_what_it_fits() {
        let size = [40usize, 40];
        let heights = waves(size);
        // Curvatures are below 0.01 (0.9² + 0.7² + 0.2²) 20² = 5.4.
        let fits = mill(&heights, size, cutter(0.15));
        // Between places of the ball, 2/160 apart, ridges remain; the most on domes.
        let ridge = (1.0f64 / 160.0).powi(2) * (1.0 / 0.15 + 5.4);
        assert!(fits.largest < ridge, "{} {ridge}", fits.largest);
        let once = mill(&heights, size, cutter(1.0));
        assert!(once.largest > 1e-2, "{}", once.largest);
        let twice = mill(&once.heights, size, cutter(1.0));
        assert!(twice.rms < 0.1 * once.rms, "{} {}", twice.rms, once.rms);
    }

    #[test]
    fn heights_of_a_plane_are_whole_numbers_of_steps() {
        let heights = vec![0.0034f32; 256];
        for (step, expected) in [(1e-3, 0.003), (2e-3, 0.004), (0.0, 0.0034)] {
            let milled = mill(&heights, [16, 16], Cutter { radius: 0.5, step });
            // At the rim the ball also cuts from beside, where it is up to half a step too low.
            let middle = f64::from(milled.heights[8 * 16 + 8]);
            assert!((middle - expected).abs() < 1e-7, "{middle} {expected}");
            assert!(milled.largest <= step + 1e-9, "{}", milled.largest);
        }
    }
}
