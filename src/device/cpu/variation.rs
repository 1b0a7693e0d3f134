//! The total variation of a grid and its gradient on the CPU, a row at a time.

use std::ops::Range;

use rayon::prelude::*;

use super::vector::level::{Kernel, Level};
use super::vector::wide::Wide;
use crate::kernels::regularizer::total_variation;
use crate::params::Shape;

/// Slices that one task walks through, so that a grid larger than the caches is read and written once.
const BAND: usize = 6;

/// Bands whose first slice lies in `slices`.
pub(super) fn bands_of(slices: &Range<usize>) -> Range<usize> {
    slices.start.div_ceil(BAND)..slices.end.div_ceil(BAND)
}

/// Adds `scale` times the gradient of the total variation, summed over all entries, to `gradient`; it is complete in the
/// slices `wanted`. If it `wraps`, the first texel of a row is behind the last. Returns the unscaled penalty of each of their
/// [`bands_of`], and the range of entries that were changed.
///
/// A band keeps its derivatives by the first slice of the band above in an array, which is added when all bands are done.
pub(super) fn add_total_variation(
    level: Level,
    values: &[f32],
    shape: Shape,
    wraps: bool,
    scale: f32,
    gradient: &mut [f32],
    wanted: Range<usize>,
) -> (Vec<f64>, Range<usize>) {
    let [nx, ny, nz] = shape.size;
    let len = nx * ny * shape.channels;
    if wanted.is_empty() {
        return (Vec::new(), 0..0);
    }
    // The slice below the first wanted one contributes to that one's gradient.
    let first = wanted.start.saturating_sub(1) / BAND;
    let touched = first * BAND * len..nz.min(wanted.end.next_multiple_of(BAND)) * len;
    let gradient = &mut gradient[touched.clone()];
    let bands: Vec<(f64, Vec<f32>)> = gradient
        .par_chunks_mut(BAND * len)
        .enumerate()
        .map(|(i, mut rest)| {
            let band = first + i;
            let mut carried = vec![0.0; if (band + 1) * BAND < nz { len } else { 0 }];
            let mut total = 0.0;
            for z in band * BAND..nz.min((band + 1) * BAND) {
                let (gradient, above) = rest.split_at_mut(len);
                let next = (z + 1).min(nz - 1);
                total += level.run(Slice {
                    shape,
                    wraps,
                    scale,
                    here: &values[z * len..(z + 1) * len],
                    above: &values[next * len..(next + 1) * len],
                    gradient,
                    gradient_above: if above.is_empty() {
                        &mut carried
                    } else {
                        &mut above[..len]
                    },
                });
                rest = above;
            }
            (total, carried)
        })
        .collect();
    let firsts = gradient.par_chunks_mut(BAND * len).skip(1);
    firsts.zip(&bands).for_each(|(gradient, (_, carried))| {
        for (g, c) in gradient.iter_mut().zip(carried) {
            *g += c;
        }
    });
    let begins = bands_of(&wanted);
    let penalties = bands[begins.start - first..begins.end - first]
        .iter()
        .map(|(total, _)| *total);
    (penalties.collect(), touched)
}

/// One slice of a grid.
struct Slice<'a> {
    shape: Shape,
    wraps: bool,
    /// Factor on the penalties' derivatives.
    scale: f32,
    here: &'a [f32],
    /// The next slice; the slice itself if it is the last.
    above: &'a [f32],
    gradient: &'a mut [f32],
    /// Empty above the last slice.
    gradient_above: &'a mut [f32],
}

impl Kernel for Slice<'_> {
    /// The sum of the penalties.
    type Output = f64;

    #[inline(always)]
    fn run<W: Wide>(self) -> f64 {
        let Shape { size, channels } = self.shape;
        let len = size[0] * channels;
        // Added at the end of a row: blocks that write into each other's entries would depend on one another.
        let mut by_right = vec![0.0; len];
        let mut total = 0f64;
        for y in 0..size[1] {
            let row = y * len..(y + 1) * len;
            let next = if y + 1 < size[1] { row.end } else { row.start };
            let (gradient, below) = self.gradient[row.start..].split_at_mut(len);
            let mut row = Row {
                channels,
                wraps: self.wraps,
                scale: self.scale,
                here: &self.here[row.clone()],
                down: &self.here[next..next + len],
                above: &self.above[row.clone()],
                gradient,
                gradient_below: below.get_mut(..len).unwrap_or_default(),
                gradient_above: self.gradient_above.get_mut(row).unwrap_or_default(),
                by_right: &mut by_right,
                penalties: [0.0; LANES],
            };
            row.add();
            total += row.penalties.iter().copied().map(f64::from).sum::<f64>();
        }
        total
    }
}

/// Entries that are processed in one vector (SIMD lanes).
const LANES: usize = 16;

type Lanes = [f32; LANES];

/// One row of a slice, texel by texel, each with all its channels.
struct Row<'a> {
    channels: usize,
    wraps: bool,
    scale: f32,
    here: &'a [f32],
    /// The next row of the slice and the same row of the next slice; at the border, this row itself.
    down: &'a [f32],
    above: &'a [f32],
    gradient: &'a mut [f32],
    /// Empty where there is none.
    gradient_below: &'a mut [f32],
    gradient_above: &'a mut [f32],
    /// The derivative that each entry contributes to its right neighbour.
    by_right: &'a mut [f32],
    /// Sums of the penalties by lane, each over every sixteenth entry.
    penalties: Lanes,
}

impl Row<'_> {
    #[inline(always)]
    fn add(&mut self) {
        let len = self.here.len();
        let mut at = 0;
        while at + LANES + self.channels <= len {
            let right = load(self.here, at + self.channels, LANES);
            self.add_block(at, LANES, right);
            at += LANES;
        }
        while at < len {
            let count = LANES.min(len - at);
            let mut right = [0.0; LANES];
            for (l, right) in right.iter_mut().enumerate().take(count) {
                let i = at + l;
                *right = match i + self.channels {
                    next if next < len => self.here[next],
                    next if self.wraps => self.here[next - len],
                    _ => self.here[i],
                };
            }
            self.add_block(at, count, right);
            at += count;
        }
        add(
            &mut self.gradient[self.channels..],
            &self.by_right[..len - self.channels],
        );
        if self.wraps {
            add(
                &mut self.gradient[..self.channels],
                &self.by_right[len - self.channels..],
            );
        }
    }

    /// Adds penalties and derivatives of `count` entries from `at` on, whose right neighbours are `right`.
    #[inline(always)]
    fn add_block(&mut self, at: usize, count: usize, right: Lanes) {
        let here = load(self.here, at, count);
        let down = load(self.down, at, count);
        let above = load(self.above, at, count);
        let mut steps = [[0.0; LANES]; 3];
        let mut penalties = [0.0; LANES];
        for l in 0..LANES {
            let (penalty, slopes) = total_variation(here[l], [right[l], down[l], above[l]]);
            penalties[l] = penalty;
            for axis in 0..3 {
                steps[axis][l] = self.scale * slopes[axis];
            }
        }
        let [x, y, z] = steps;
        for l in 0..LANES {
            // Lanes behind the last entry see equal neighbours: their penalty is exactly 0.
            self.penalties[l] += penalties[l];
        }
        store(&mut self.by_right[at..at + count], &x);
        subtract(&mut self.gradient[at..at + count], &x, &y, &z);
        if !self.gradient_below.is_empty() {
            add(&mut self.gradient_below[at..at + count], &y);
        }
        if !self.gradient_above.is_empty() {
            add(&mut self.gradient_above[at..at + count], &z);
        }
    }
}

/// `count` entries of a row from `at` on, padded with zeros.
#[inline(always)]
#[expect(
    clippy::manual_memcpy,
    reason = "`copy_from_slice` is a call, which a kernel of a wider level cannot inline"
)]
fn load(from: &[f32], at: usize, count: usize) -> Lanes {
    let from = &from[at..at + count];
    let mut lanes = [0.0; LANES];
    for l in 0..count {
        lanes[l] = from[l];
    }
    lanes
}

#[inline(always)]
#[expect(
    clippy::manual_memcpy,
    reason = "`copy_from_slice` is a call, which a kernel of a wider level cannot inline"
)]
fn store(to: &mut [f32], lanes: &Lanes) {
    for l in 0..to.len() {
        to[l] = lanes[l];
    }
}

#[inline(always)]
fn add(to: &mut [f32], from: &[f32]) {
    let from = &from[..to.len()];
    for i in 0..to.len() {
        to[i] += from[i];
    }
}

#[inline(always)]
fn subtract(from: &mut [f32], x: &Lanes, y: &Lanes, z: &Lanes) {
    for l in 0..from.len() {
        from[l] -= x[l] + y[l] + z[l];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WEIGHT: f32 = 0.7;

    /// The penalty and its gradient, texel by texel.
    fn plain(values: &[f32], shape: Shape, wraps: bool) -> (f64, Vec<f64>) {
        let Shape { size, channels } = shape;
        let scale = f64::from(WEIGHT) / shape.len() as f64;
        let strides = [channels, channels * size[0], channels * size[0] * size[1]];
        let mut gradient = vec![0.0; values.len()];
        let mut sum = 0.0;
        for i in 0..values.len() {
            let next = [0, 1, 2].map(|axis| match i / strides[axis] % size[axis] + 1 {
                next if next < size[axis] => i + strides[axis],
                _ if wraps && axis == 0 => i - (size[axis] - 1) * strides[axis],
                _ => i,
            });
            let (penalty, slopes) = total_variation(values[i], next.map(|n| values[n]));
            sum += scale * f64::from(penalty);
            for (n, slope) in next.into_iter().zip(slopes) {
                gradient[n] += scale * f64::from(slope);
                gradient[i] -= scale * f64::from(slope);
            }
        }
        (sum, gradient)
    }

    #[test]
    fn rows_give_what_texels_give_and_all_levels_the_same_bits() {
        let sizes = [
            ([1, 1, 1], 1),
            ([40, 3, 1], 3),
            ([7, 5, 4], 1),
            ([33, 2, 3], 4),
            ([3, 4, 13], 2),
            ([16, 16, 5], 2),
            ([5, 1, 2], 28),
        ];
        for ((size, channels), wraps) in sizes.into_iter().flat_map(|of| [(of, false), (of, true)]) {
            let shape = Shape { size, channels };
            let values: Vec<f32> = (0..shape.len()).map(|i| (i as f32 * 1.7).sin()).collect();
            let (penalty, expected) = plain(&values, shape, wraps);
            let mut first = None;
            for level in Level::up_to(Level::detect()) {
                let mut gradient = vec![0.25; shape.len()];
                let scale = WEIGHT / shape.len() as f32;
                let (bands, touched) =
                    add_total_variation(level, &values, shape, wraps, scale, &mut gradient, 0..size[2]);
                assert_eq!(touched, 0..shape.len());
                let sum = f64::from(scale) * bands.iter().sum::<f64>();
                assert!((sum - penalty).abs() <= 1e-5 * penalty, "{size:?}: {sum}, {penalty}");
                for (g, e) in gradient.iter().zip(&expected) {
                    assert!((f64::from(*g) - 0.25 - e).abs() < 1e-6, "{size:?}: {g}, {e}");
                }
                let bits: Vec<u32> = gradient.iter().map(|g| g.to_bits()).collect();
                let (first_sum, first_bits) = first.get_or_insert_with(|| (sum, bits.clone()));
                assert_eq!((sum, &bits), (*first_sum, &*first_bits), "{size:?} at {level:?}");
            }
        }
    }

    /// However slices are dealt out, each part has the bits of the whole, and the penalties of all parts are those of all
    /// bands.
    #[test]
    fn parts_of_the_slices_give_what_the_whole_gives() {
        let (size, channels) = ([5, 3, 20], 2);
        let shape = Shape { size, channels };
        let (slice, level) = (5 * 3 * 2, Level::detect());
        let values: Vec<f32> = (0..shape.len()).map(|i| (i as f32 * 1.7).sin()).collect();
        let mut whole = vec![0.25; shape.len()];
        let (bands, _) = add_total_variation(level, &values, shape, false, WEIGHT, &mut whole, 0..20);
        for cuts in [
            &[0, 7, 20][..],
            &[0, 6, 12, 20],
            &[0, 1, 1, 13, 14, 20],
            &[0, 0, 19, 20],
        ] {
            let mut found = Vec::new();
            for wanted in cuts.windows(2).map(|cut| cut[0]..cut[1]) {
                let mut gradient = vec![0.25; shape.len()];
                let (own, touched) =
                    add_total_variation(level, &values, shape, false, WEIGHT, &mut gradient, wanted.clone());
                assert_eq!(own.len(), bands_of(&wanted).len());
                found.extend(own);
                let entries = wanted.start * slice..wanted.end * slice;
                assert!(entries.is_empty() || touched.start <= entries.start && entries.end <= touched.end);
                assert_eq!(gradient[entries.clone()], whole[entries], "{cuts:?}: {wanted:?}");
            }
            assert_eq!(found, bands, "{cuts:?}");
        }
    }
}
