//! A growing number of splats: transparent ones are removed, large ones where the error is large are split, and new ones
//! are added where the error is largest. All follows from the values, the picture and its reference alone, so that a run
//! that is resumed grows in the same way.

use anyhow::Result;
use serde_json::json;

use super::run::Run;
use super::views::render_view;
use crate::device::{ArrayKind, Replacement};
use crate::output::images::Picture;
use crate::params::{Kind, Shape};
use crate::resident::placement::z_curve;
use crate::scene::{Growth, Order, SPLAT_ARRAYS};
use crate::transport::splats::blend::MIN_WEIGHT;

/// Share of the additional splats that come from splitting.
const SPLIT_SHARE: f32 = 0.5;

/// A half's standard deviation along the axis that was split, and the shift of its centre, over that deviation before.
const HALF_WIDTH: f32 = 0.6;
const HALF_DISTANCE: f32 = 0.6;

/// Splats whose longer standard deviation is less than this many pixels are not split.
const LEAST_SPLIT: f32 = 1.0;

/// Opacity of a new splat.
const NEW_OPACITY: f32 = 0.5;

/// Standard deviation of a new splat, over the spacing that all splats would have on an even grid.
const NEW_WIDTH: f32 = 0.4;

/// The density of new splats is proportional to the squared error to this power. With 1 they crowd where few pixels are
/// far off.
const ERROR_POWER: f32 = 0.35;

/// The last iteration after which the number of splats changes: a multiple of `every` within the share `until` of the
/// run.
fn last_change(growth: &Growth, iterations: u32) -> u32 {
    let end = (f64::from(growth.until) * f64::from(iterations)) as u32;
    end.min(iterations.saturating_sub(1)) / growth.every * growth.every
}

/// The number of splats after the change that follows so many iterations; None if no change does. It rises evenly from
/// `first` to `growth.count`.
pub(super) fn count_after(growth: &Growth, first: usize, iteration: u32, iterations: u32) -> Option<usize> {
    let last = last_change(growth, iterations);
    if iteration == 0 || !iteration.is_multiple_of(growth.every) || iteration > last {
        return None;
    }
    let more = growth.count as usize - first.min(growth.count as usize);
    Some(first + (more as f64 * f64::from(iteration) / f64::from(last)).round() as usize)
}

/// The parameters of all splats, and the optimiser's moments of each parameter.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Splats {
    /// In the order of [`SPLAT_ARRAYS`]: the values, then each moment.
    pub(super) arrays: Vec<[Vec<f32>; 5]>,
}

/// Squared errors of a picture, and the colours that it should have.
#[derive(Debug)]
pub(super) struct Errors {
    width: usize,
    height: usize,
    squares: Vec<f32>,
    reference: Vec<[f32; 3]>,
    /// Summed-area table: sums of squared errors over all pixels above and to the left, with a row and a column more.
    sums: Vec<f64>,
}

impl Errors {
    /// Compares a picture with its reference.
    pub(super) fn new([width, height]: [usize; 2], picture: &[[f32; 4]], reference: Vec<[f32; 3]>) -> Self {
        let square = |(a, b): (&[f32; 4], &[f32; 3])| (0..3).map(|c| (a[c] - b[c]) * (a[c] - b[c])).sum();
        let squares: Vec<f32> = picture.iter().zip(&reference).map(square).collect();
        let mut sums = vec![0.0; (width + 1) * (height + 1)];
        for y in 0..height {
            let mut row = 0.0;
            for x in 0..width {
                row += f64::from(squares[y * width + x]);
                sums[(y + 1) * (width + 1) + x + 1] = sums[y * (width + 1) + x + 1] + row;
            }
        }
        Self {
            width,
            height,
            squares,
            reference,
            sums,
        }
    }

    /// The sum of squared errors over the pixels that a box touches.
    fn over(&self, low: [f32; 2], high: [f32; 2]) -> f64 {
        let within = |x: f32, length: usize| x.clamp(0.0, length as f32) as usize;
        let [left, right] = [low[0].floor(), high[0].ceil()].map(|x| within(x, self.width));
        let [top, bottom] = [low[1].floor(), high[1].ceil()].map(|y| within(y, self.height));
        let at = |x: usize, y: usize| self.sums[y * (self.width + 1) + x];
        at(right, bottom) - at(left, bottom) - at(right, top) + at(left, top)
    }

    /// `count` pixels, drawn in proportion to the squared error to the power of [`ERROR_POWER`], stratified along a
    /// Z-shaped curve.
    fn draw(&self, count: usize) -> Vec<usize> {
        let total: f64 = self.squares.iter().map(|s| f64::from(s.powf(ERROR_POWER))).sum();
        let mut drawn = Vec::with_capacity(count);
        if !(total > 0.0 && total.is_finite()) {
            return drawn;
        }
        let (mut walked, step) = (0.0, total / count.max(1) as f64);
        for pixel in z_curve(self.width, self.height) {
            walked += f64::from(self.squares[pixel].powf(ERROR_POWER));
            while drawn.len() < count && walked > (drawn.len() as f64 + 0.5) * step {
                drawn.push(pixel);
            }
        }
        drawn
    }
}

impl Splats {
    /// The number of splats.
    pub(super) fn count(&self) -> usize {
        self.arrays[0][4].len()
    }

    fn value(&self, array: usize, i: usize, channel: usize) -> f32 {
        self.arrays[0][array][i * SPLAT_ARRAYS[array].1 + channel]
    }

    /// Appends a splat of another list with all its moments.
    fn push_from(&mut self, other: &Self, i: usize) {
        for (to, from) in self.arrays.iter_mut().zip(&other.arrays) {
            for ((to, from), (_, channels)) in to.iter_mut().zip(from).zip(SPLAT_ARRAYS) {
                to.extend(&from[channels * i..channels * (i + 1)]);
            }
        }
    }

    fn empty(&self) -> Self {
        Self {
            arrays: self.arrays.iter().map(|_| [const { Vec::new() }; 5]).collect(),
        }
    }

    /// The splats after a change to `wanted` of them. Moments of halves and of new splats begin with zero: gradients grow
    /// with a splat's area, so that second moments of a larger splat would keep steps short for many iterations.
    pub(super) fn grown(&self, wanted: usize, errors: &Errors, order: Order) -> Self {
        let side = errors.width.max(errors.height) as f32;
        let kept: Vec<usize> = (0..self.count())
            .filter(|&i| self.value(4, i, 0) >= MIN_WEIGHT)
            .collect();
        let more = wanted.saturating_sub(kept.len());
        // Split those with the largest error within a standard deviation.
        let mut scored: Vec<(f64, usize)> = kept
            .iter()
            .map(|&i| {
                let deviation = [0, 1].map(|c| self.value(1, i, c).exp() * side);
                let widest = deviation[0].max(deviation[1]);
                let center = [0, 1].map(|c| self.value(0, i, c) * side);
                let error = errors.over(center.map(|x| x - widest), center.map(|x| x + widest));
                (if widest >= LEAST_SPLIT { error } else { 0.0 }, i)
            })
            .collect();
        scored.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        scored.truncate((SPLIT_SHARE * more as f32) as usize);
        let mut split: Vec<usize> = scored
            .into_iter()
            .filter(|(error, _)| *error > 0.0)
            .map(|(_, i)| i)
            .collect();
        split.sort_unstable();
        let mut grown = self.empty();
        // New splats lie in front: behind opaque splats they would not be seen.
        let pixels = errors.draw(more - split.len());
        let spacing = ((errors.width * errors.height) as f32 / wanted.max(1) as f32).sqrt();
        for &pixel in &pixels {
            grown.push_new(pixel, errors, (NEW_WIDTH * spacing).max(0.5) / side);
        }
        for &i in &kept {
            grown.push_from(self, i);
            if split.binary_search(&i).is_ok() {
                grown.push_from(self, i);
                grown.part_last_two();
            }
        }
        match order {
            Order::Index => grown,
            Order::Size => grown.sorted_by_size(),
        }
    }

    fn push_new(&mut self, pixel: usize, errors: &Errors, width: f32) {
        let side = errors.width.max(errors.height) as f32;
        let [x, y] = [pixel % errors.width, pixel / errors.width].map(|i| (i as f32 + 0.5) / side);
        let values: [&[f32]; 5] = [
            &[x, y],
            &[width.ln(); 2],
            &[0.0],
            &errors.reference[pixel],
            &[NEW_OPACITY],
        ];
        for (array, values) in values.iter().enumerate() {
            self.arrays[0][array].extend(*values);
            for moments in &mut self.arrays[1..] {
                moments[array].extend(values.iter().map(|_| 0.0));
            }
        }
    }

    /// Makes the last two splats, copies of one splat, its two halves. Their moments begin with zero.
    fn part_last_two(&mut self) {
        let last = self.count() - 1;
        let longer = usize::from(self.value(1, last, 1) > self.value(1, last, 0));
        let width = self.value(1, last, longer).exp();
        let (sin, cos) = self.value(2, last, 0).sin_cos();
        let along = if longer == 0 { [cos, sin] } else { [-sin, cos] };
        for (i, sign) in [(last - 1, -1.0), (last, 1.0)] {
            for c in 0..2 {
                self.arrays[0][0][2 * i + c] += sign * HALF_DISTANCE * width * along[c];
            }
            self.arrays[0][1][2 * i + longer] += HALF_WIDTH.ln();
            for moments in &mut self.arrays[1..] {
                for (moments, (_, channels)) in moments.iter_mut().zip(SPLAT_ARRAYS) {
                    moments[channels * i..channels * (i + 1)].fill(0.0);
                }
            }
        }
    }

    fn sorted_by_size(&self) -> Self {
        let mut order: Vec<usize> = (0..self.count()).collect();
        let area = |i: usize| self.value(1, i, 0) + self.value(1, i, 1);
        order.sort_by(|&a, &b| area(a).total_cmp(&area(b)));
        let mut sorted = self.empty();
        order.into_iter().for_each(|i| sorted.push_from(self, i));
        sorted
    }
}

impl Run<'_> {
    /// Changes the number of splats, if a change is due after the iterations done so far.
    pub(super) fn grow(&mut self) -> Result<()> {
        let (scene, settings) = (self.job.scene, self.job.settings);
        let (Some(growth), Some(splats)) = (&settings.growth, &scene.splats) else {
            return Ok(());
        };
        let Some(wanted) = count_after(growth, splats.count(), self.state.iteration, settings.iterations) else {
            return Ok(());
        };
        let Some(errors) = self.errors()? else { return Ok(()) };
        let slots: Vec<usize> = splats
            .arrays()
            .iter()
            .filter_map(|array| self.device.params().find(&array.path))
            .collect();
        let kinds = (0..settings.optimizer.moments()).map(ArrayKind::Moment);
        let mut arrays = Vec::new();
        for kind in std::iter::once(ArrayKind::Values).chain(kinds) {
            let mut all = [const { Vec::new() }; 5];
            for (values, &slot) in all.iter_mut().zip(&slots) {
                *values = self.device.read(slot, kind)?;
            }
            arrays.push(all);
        }
        let before = Splats { arrays };
        let grown = before.grown(wanted, &errors, splats.order);
        let count = grown.count();
        let replaced = slots.iter().enumerate().map(|(array, &parameter)| Replacement {
            parameter,
            shape: Shape {
                size: [count, 1, 1],
                channels: SPLAT_ARRAYS[array].1,
            },
            values: grown.arrays[0][array].clone(),
            moments: grown.arrays[1..].iter().map(|moment| moment[array].clone()).collect(),
        });
        self.device.replace(replaced.collect())?;
        self.progress.event(
            "growth",
            json!({ "iteration": self.state.iteration, "splats": count, "before": before.count() }),
        );
        Ok(())
    }

    /// The errors of the first training view.
    fn errors(&mut self) -> Result<Option<Errors>> {
        let scene = self.job.scene;
        let Some(index) = scene.sensors.iter().position(|sensor| !sensor.held_out) else {
            return Ok(None);
        };
        let sensor = &scene.sensors[index];
        let Some(reference) = self.targets.film_pixels(scene, index as u32)? else {
            return Ok(None);
        };
        let look = self.look();
        let picture = Picture::of(sensor, render_view(self.device, index as u32, look)?);
        let size = [sensor.width as usize, sensor.height as usize];
        Ok(Some(Errors::new(size, &picture.pixels, reference)))
    }

    /// The number of splats, if the scene is a picture of them.
    pub(super) fn splat_count(&self) -> Option<u64> {
        let points = self
            .device
            .params()
            .parameters
            .iter()
            .find(|p| p.kind == Kind::Points)?;
        Some(points.shape.texels() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GROWTH: Growth = Growth {
        count: 100,
        every: 10,
        until: 0.5,
    };

    #[test]
    fn numbers_rise_evenly_to_the_last_change() {
        let counts: Vec<Option<usize>> = (0..=60).map(|i| count_after(&GROWTH, 40, i, 105)).collect();
        let changes: Vec<(usize, usize)> = counts
            .iter()
            .enumerate()
            .filter_map(|(i, c)| Some((i, (*c)?)))
            .collect();
        assert_eq!(changes, [(10, 52), (20, 64), (30, 76), (40, 88), (50, 100)]);
        assert_eq!(
            count_after(&GROWTH, 100, 10, 105),
            Some(100),
            "transparent ones are replaced"
        );
        assert_eq!(count_after(&GROWTH, 40, 10, 11), None, "a short run does not grow");
    }

    fn three() -> Splats {
        let values = [
            vec![0.25, 0.5, 0.75, 0.5, 0.5, 0.1],
            vec![-1.5, -2.5, -1.5, -2.5, -3.0, -3.0],
            vec![0.0, std::f32::consts::FRAC_PI_2, 0.0],
            vec![0.5; 9],
            vec![0.8, 0.9, 0.001],
        ];
        let first = values.clone().map(|v| vec![0.5; v.len()]);
        let second = values.clone().map(|v| vec![0.25; v.len()]);
        Splats {
            arrays: vec![values, first, second],
        }
    }

    /// An error on the right half alone: the splat there is split along its longer axis, which is the picture's y, the
    /// transparent one goes, and the new one stands on the right with the colour that was missing.
    #[test]
    fn splats_are_split_and_added_where_the_error_is() {
        let size = [32, 32];
        let picture = vec![[0.5, 0.5, 0.5, 0.0]; 32 * 32];
        let reference = (0..32 * 32).map(|i| if i % 32 < 16 { [0.5; 3] } else { [0.9, 0.1, 0.5] });
        let errors = Errors::new(size, &picture, reference.collect());
        let grown = three().grown(4, &errors, Order::Index);
        assert_eq!(grown.count(), 4);
        let [position, scale, _, color, opacity] = &grown.arrays[0];
        assert!(
            position[0] > 0.5 && color[..3] == [0.9, 0.1, 0.5] && opacity[0] == NEW_OPACITY,
            "the new one in front"
        );
        assert_eq!(position[2..4], [0.25, 0.5], "the splat on the left stays");
        let (above, below) = (&position[4..6], &position[6..8]);
        assert!((above[0] - 0.75).abs() < 1e-6 && (below[0] - 0.75).abs() < 1e-6);
        assert!(above[1] < 0.45 && below[1] > 0.55, "{above:?} {below:?}");
        assert_eq!(scale[4], -1.5 + HALF_WIDTH.ln());
        assert!(opacity.iter().all(|o| *o >= MIN_WEIGHT), "the transparent one has gone");
        assert_eq!(
            grown.arrays[1][4],
            [0.0, 0.5, 0.0, 0.0],
            "first moments follow who stays"
        );
        assert_eq!(
            grown.arrays[2][4],
            [0.0, 0.25, 0.0, 0.0],
            "second moments follow who stays"
        );
        let sorted = three().grown(4, &errors, Order::Size);
        let areas: Vec<f32> = sorted.arrays[0][1].chunks(2).map(|s| s[0] + s[1]).collect();
        assert!(areas.is_sorted());
    }

    #[test]
    fn without_an_error_nothing_is_added() {
        let picture = vec![[0.5, 0.5, 0.5, 0.0]; 16];
        let errors = Errors::new([4, 4], &picture, vec![[0.5; 3]; 16]);
        assert_eq!(three().grown(50, &errors, Order::Index).count(), 2);
    }

    #[test]
    fn no_change_comes_after_the_last_iteration_and_none_takes_splats_away() {
        let until_the_end = Growth { until: 1.0, ..GROWTH };
        let changes = |iterations| -> Vec<(u32, usize)> {
            let count = |i| Some((i, count_after(&until_the_end, 40, i, iterations)?));
            (0..=iterations).filter_map(count).collect()
        };
        assert_eq!(changes(20), [(10, 100)]);
        assert_eq!(changes(21), [(10, 70), (20, 100)]);
        assert_eq!(changes(0), []);
        assert_eq!(count_after(&GROWTH, 130, 50, 105), Some(130));
        // 61 more in five changes: 12.2, 24.4, 36.6, 48.8 and all, to the nearest.
        let odd = Growth { count: 101, ..GROWTH };
        let counts = [10, 20, 30, 40, 50].map(|i| count_after(&odd, 40, i, 105));
        assert_eq!(counts, [52, 64, 77, 89, 101].map(Some));
    }

    /// Every box of a picture of 7 × 5, also those that reach out of it, against the sum pixel by pixel.
    #[test]
    fn errors_over_a_box_are_the_sum_of_its_pixels() {
        let value = |i: usize| (i * i % 13) as f32;
        let picture: Vec<[f32; 4]> = (0..35).map(|i| [value(i), 1.0, 0.5, 9.0]).collect();
        let reference: Vec<[f32; 3]> = (0..35).map(|i| [0.0, 3.0, value(i + 1)]).collect();
        let errors = Errors::new([7, 5], &picture, reference);
        let square = |i: usize| f64::from(value(i).powi(2) + 4.0 + (0.5 - value(i + 1)).powi(2));
        for i in 0..35 {
            assert_eq!(f64::from(errors.squares[i]), square(i));
        }
        let edges = [-2.5f32, -0.5, 0.0, 0.3, 1.0, 2.7, 4.0, 4.2, 5.0, 6.5, 7.0, 9.1];
        for [left, right] in [[0, 3], [1, 5], [2, 11], [4, 4], [5, 7], [3, 9], [0, 1], [10, 11]] {
            for [top, bottom] in [[0, 4], [2, 5], [3, 3], [5, 11], [1, 6], [10, 11]] {
                let (low, high) = ([edges[left], edges[top]], [edges[right], edges[bottom]]);
                let within = |v: usize, low: f32, high: f32| low.floor() <= v as f32 && ((v + 1) as f32) <= high.ceil();
                let inside = |i: &usize| within(i % 7, low[0], high[0]) && within(i / 7, low[1], high[1]);
                let expected: f64 = (0..35).filter(inside).map(square).sum();
                assert!((errors.over(low, high) - expected).abs() < 1e-9, "{low:?} {high:?}");
            }
        }
    }

    /// Along the curve through 4 × 4 pixels an error of 2.25 is met at pixel 5 and one of 1 at pixel 10.
    #[test]
    fn pixels_are_drawn_by_their_errors() {
        let mut picture = vec![[0.0; 4]; 16];
        picture[5][0] = 1.5;
        picture[10][2] = 1.0;
        let errors = Errors::new([4, 4], &picture, vec![[0.0; 3]; 16]);
        assert_eq!(errors.draw(4), [5, 5, 10, 10]);
        assert_eq!(errors.draw(2), [5, 10]);
        assert_eq!(errors.draw(8), [5, 5, 5, 5, 5, 10, 10, 10]);
        assert_eq!(errors.draw(1), [5]);
        assert!(errors.draw(0).is_empty());
        picture[3][1] = f32::INFINITY;
        assert!(Errors::new([4, 4], &picture, vec![[0.0; 3]; 16]).draw(4).is_empty());
    }

    /// Splats with these centres and deviations (in pixels of a picture whose longer side is `side`) and angles; the two
    /// moments have distinct values.
    fn splats(side: f32, of: &[([f32; 2], [f32; 2], f32)]) -> Splats {
        let mut values = [const { Vec::new() }; 5];
        for (i, (place, deviations, angle)) in of.iter().enumerate() {
            values[0].extend(place.map(|v| v / side));
            values[1].extend(deviations.map(|v| (v / side).ln()));
            values[2].push(*angle);
            values[3].extend([0.1, 0.2, 0.3].map(|c| c + i as f32));
            values[4].push(0.75);
        }
        let moment = |from: f32| {
            let number = |array: usize, values: &Vec<f32>| {
                (0..values.len())
                    .map(|i| from + array as f32 + 0.125 * i as f32)
                    .collect()
            };
            let arrays: Vec<Vec<f32>> = values.iter().enumerate().map(|(a, v)| number(a, v)).collect();
            <[Vec<f32>; 5]>::try_from(arrays).expect("five")
        };
        Splats {
            arrays: vec![values.clone(), moment(10.0), moment(20.0)],
        }
    }

    /// Squared errors of one on these pixels of a black picture.
    fn errors_at(size: [usize; 2], pixels: &[usize]) -> Errors {
        let mut reference = vec![[0.0; 3]; size[0] * size[1]];
        for &pixel in pixels {
            reference[pixel] = [1.0, 0.0, 0.0];
        }
        Errors::new(size, &vec![[0.0; 4]; reference.len()], reference)
    }

    /// The halves of a splat stand 0.6 of its longer deviation from its centre, and are 0.6 as long.
    #[test]
    fn halves_lie_along_the_longer_axis() {
        for (deviations, along) in [([4.0, 2.0], [0.8, 0.6]), ([2.0, 4.0], [-0.6, 0.8])] {
            // The angle's cosine is 0.8 and its sine 0.6.
            let before = splats(32.0, &[([16.0, 16.0], deviations, 0.75f32.atan())]);
            // Two more splats are wanted: one by the split, one on the only pixel with an error.
            let grown = before.grown(3, &errors_at([32, 32], &[16 * 32 + 16]), Order::Index);
            assert_eq!(grown.count(), 3);
            let [position, scale, rotation, color, opacity] = &grown.arrays[0];
            for (half, sign) in [(1, -1.0), (2, 1.0)] {
                for c in 0..2 {
                    let expected = 16.0 + sign * 0.6 * 4.0 * along[c];
                    assert!((position[2 * half + c] * 32.0 - expected).abs() < 1e-4, "{position:?}");
                    let expected = if deviations[c] == 4.0 { 2.4 } else { 2.0 };
                    assert!((scale[2 * half + c].exp() * 32.0 - expected).abs() < 1e-4, "{scale:?}");
                }
                assert_eq!((rotation[half], opacity[half]), (0.75f32.atan(), 0.75));
                assert_eq!(color[3 * half..3 * half + 3], [0.1, 0.2, 0.3]);
                for moment in [1, 2] {
                    assert_eq!(grown.arrays[moment][3][3 * half..3 * half + 3], [0.0; 3]);
                }
            }
            // The new one: in the pixel's middle, of the reference's colour, 0.4 as wide as the distance of three splats.
            assert_eq!((position[0] * 32.0, position[1] * 32.0), (16.5, 16.5));
            let width = 0.4 * (1024.0f32 / 3.0).sqrt();
            assert!((scale[0].exp() * 32.0 - width).abs() < 1e-3 && scale[0] == scale[1]);
            assert_eq!(
                (rotation[0], &color[..3], opacity[0]),
                (0.0, &[1.0, 0.0, 0.0][..], NEW_OPACITY)
            );
        }
    }

    /// Three of five splats have an error within a deviation and are wide enough to be split. If there is room for one
    /// only, that with the larger error is split; of equals the first.
    #[test]
    fn the_largest_errors_are_split_first() {
        let five = splats(
            64.0,
            &[
                ([10.0, 10.0], [2.0, 1.0], 0.0),
                ([30.0, 10.0], [1.0, 3.0], 0.0),
                ([50.0, 10.0], [2.0, 2.0], 0.0),
                ([10.0, 26.0], [0.9, 0.9], 0.0),
                ([30.0, 26.0], [1.5, 1.5], 0.0),
            ],
        );
        let at = |x: usize, y: usize| y * 64 + x;
        // One at the first, three at the second up to its deviation, none at the third, one at the fourth, too small,
        // and one at the fifth.
        let pixels = [at(10, 10), at(30, 10), at(27, 7), at(32, 12), at(10, 26), at(30, 26)];
        let errors = errors_at([64, 32], &pixels);
        let split = |wanted| -> Vec<usize> {
            let grown = five.grown(wanted, &errors, Order::Index);
            assert_eq!(grown.count(), wanted);
            let color = |i: usize| grown.arrays[0][3][3 * i + 1];
            // Splats are told by their colours; a splat that was split is there twice, one after the other.
            let olds: Vec<usize> = (0..wanted)
                .filter(|i| color(*i) > 0.15)
                .map(|i| color(i) as usize)
                .collect();
            assert!(olds.is_sorted(), "{olds:?}");
            (0..5)
                .filter(|i| olds.iter().filter(|old| *old == i).count() == 2)
                .collect()
        };
        assert!(split(5).is_empty());
        assert!(split(6).is_empty());
        assert_eq!(split(7), [1]);
        assert_eq!(split(8), [1]);
        assert_eq!(split(9), [0, 1]);
        assert_eq!(split(40), [0, 1, 4]);
        let equal = errors_at([64, 32], &[at(10, 10), at(30, 10), at(50, 10)]);
        let grown = five.grown(7, &equal, Order::Index);
        let red = [1, 2, 3].map(|i| grown.arrays[0][3][3 * i]);
        assert_eq!(red, [0.1, 0.1, 1.1], "the first twice");
    }

    /// Moments of new splats are zero, kept splats keep theirs; a new splat is half a pixel wide at least.
    #[test]
    fn new_splats_begin_without_moments() {
        let mut three = splats(8.0, &[([1.0, 1.0], [0.5, 0.5], 0.0); 3]);
        three.arrays[0][4] = vec![0.9 * MIN_WEIGHT, MIN_WEIGHT, 0.5];
        let grown = three.grown(100, &errors_at([8, 8], &[9]), Order::Index);
        assert_eq!(grown.count(), 100);
        assert!((grown.arrays[0][1][0] - (0.5f32 / 8.0).ln()).abs() < 1e-6);
        for moment in [1, 2] {
            for (array, (_, channels)) in SPLAT_ARRAYS.iter().enumerate() {
                let (new, old) = grown.arrays[moment][array].split_at(98 * channels);
                assert!(new.iter().all(|m| *m == 0.0), "array {array}");
                assert_eq!(old, &three.arrays[moment][array][*channels..], "array {array}");
            }
        }
        assert_eq!(grown.arrays[0][4][97..], [NEW_OPACITY, MIN_WEIGHT, 0.5]);
        let one_moment = Splats {
            arrays: three.arrays[..2].to_vec(),
        };
        let grown = one_moment.grown(100, &errors_at([8, 8], &[9]), Order::Index);
        assert_eq!((grown.arrays.len(), grown.arrays[1][4][0]), (2, 0.0));
    }
}
