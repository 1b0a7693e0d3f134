//! A tile of a picture, forwards and backwards: `transport/splats/blend.rs`, a block of sixteen pixels at a time.

use super::pixels::{Plane, ones, read, write};
use super::shape::{BLOCKS, Blocks, Shape, bits};
use super::sums::Record;
use crate::device::ReplayStats;
use crate::device::cpu::vector::lanes::{Lanes, WIDTH};
use crate::device::cpu::vector::level::Kernel;
use crate::device::cpu::vector::wide::Wide;
use crate::transport::splats::blend::{MAX_WEIGHT, MIN_TRANSMITTANCE, MIN_WEIGHT};

/// Splats after which a tile looks which of its blocks are finished.
const LOOK_AROUND: usize = 16;

/// Blends a tile's list.
pub(super) struct Gather<'a> {
    pub(super) list: &'a [u32],
    pub(super) shapes: &'a [Shape],
    /// The tile's first pixel, and its columns and rows in the picture.
    pub(super) origin: [f32; 2],
    pub(super) inside: [usize; 2],
    /// The radiance behind all splats.
    pub(super) background: [f32; 3],
    /// For each entry of the list the blocks in which it is blended, as bits.
    pub(super) reached: &'a mut [u16],
    /// The tile's pixels in the frame.
    pub(super) pixels: &'a mut [[f32; 4]],
}

impl Kernel for Gather<'_> {
    /// One more than the last entry of the list that each pixel has looked at before it was finished.
    type Output = Plane<u32>;

    #[inline(always)]
    fn run<W: Wide>(self) -> Plane<u32> {
        // Pixels that are not in the picture are finished.
        let mut transmittance = ones(self.inside);
        let mut color = [[[0.0; WIDTH]; BLOCKS]; 3];
        let mut count = [[0; WIDTH]; BLOCKS];
        let blocks = Blocks::<W::Lanes>::new(self.origin);
        let (min_weight, max_weight) = (W::Lanes::splat(MIN_WEIGHT), W::Lanes::splat(MAX_WEIGHT));
        let (min_transmittance, one) = (W::Lanes::splat(MIN_TRANSMITTANCE), W::Lanes::splat(1.0));
        // All at once: in the loop below, wrong guesses of where a splat's blocks end would wait for it.
        for (i, &index) in self.list.iter().enumerate() {
            self.reached[i] = blocks.reached(&self.shapes[index as usize]);
        }
        let mut weights = [[0.0; WIDTH]; BLOCKS];
        let mut open = u16::MAX;
        for (i, &index) in self.list.iter().enumerate() {
            let shape = &self.shapes[index as usize];
            self.reached[i] &= open;
            blocks.weigh(shape, self.reached[i], &mut weights);
            for block in bits(self.reached[i]) {
                let before = W::Lanes::load(&transmittance[block]);
                let weight = W::Lanes::load(&weights[block]);
                let is_open = before.at_least(min_transmittance);
                let is_blended = W::Lanes::both(is_open, weight.at_least(min_weight));
                let weight = weight.min(max_weight).keep(is_blended);
                let share = before * weight;
                for c in 0..3 {
                    let seen = W::Lanes::load(&color[c][block]);
                    (seen + share * W::Lanes::splat(shape.color[c])).store(&mut color[c][block]);
                }
                (before * (one - weight)).store(&mut transmittance[block]);
                W::Lanes::note(is_open, i as u32 + 1, &mut count[block]);
            }
            if i % LOOK_AROUND == LOOK_AROUND - 1 {
                for block in 0..BLOCKS {
                    let is_open = W::Lanes::load(&transmittance[block]).at_least(min_transmittance);
                    if W::Lanes::bits(is_open) == 0 {
                        open &= !(1 << block);
                    }
                }
            }
        }
        for block in 0..BLOCKS {
            let left = W::Lanes::load(&transmittance[block]);
            for c in 0..3 {
                let seen = W::Lanes::load(&color[c][block]);
                (seen + left * W::Lanes::splat(self.background[c])).store(&mut color[c][block]);
            }
        }
        let [r, g, b] = &color;
        write([r, g, b, &transmittance], self.inside, self.pixels);
        count
    }
}

/// What an undone tile has found beside its records.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Found {
    pub(super) stats: ReplayStats,
    pub(super) by_background: [f64; 3],
}

impl Found {
    pub(super) fn with(self, other: Self) -> Self {
        Self {
            stats: self.stats + other.stats,
            by_background: [0, 1, 2].map(|c| self.by_background[c] + other.by_background[c]),
        }
    }
}

/// Undoes a tile's list and notes a record an entry.
pub(super) struct Replay<'a> {
    pub(super) list: &'a [u32],
    pub(super) shapes: &'a [Shape],
    pub(super) origin: [f32; 2],
    pub(super) inside: [usize; 2],
    pub(super) background: [f32; 3],
    /// What [`Gather`] has noted and found.
    pub(super) reached: &'a [u16],
    pub(super) count: &'a Plane<u32>,
    pub(super) pixels: &'a [[f32; 4]],
    /// The loss's derivatives by the tile's pixels.
    pub(super) adjoint: &'a [[f32; 3]],
    /// One an entry of the list, in its order.
    pub(super) records: &'a mut [Record],
}

impl Kernel for Replay<'_> {
    type Output = Found;

    #[inline(always)]
    fn run<W: Wide>(self) -> Found {
        let Self { count, records, .. } = self;
        let mut state = [[[1.0; WIDTH]; BLOCKS]; 4];
        read(self.pixels, self.inside, &mut state);
        let [_, _, _, mut transmittance] = state;
        // Pixels that are not in the picture have no derivatives.
        let mut by_color = [[[0.0; WIDTH]; BLOCKS]; 3];
        read(self.adjoint, self.inside, &mut by_color);
        // Derivatives by the transmittance.
        let mut behind = [[0.0; WIDTH]; BLOCKS];
        let mut by_background = [[0f64; WIDTH]; 3];
        for block in 0..BLOCKS {
            for c in 0..3 {
                for l in 0..WIDTH {
                    behind[block][l] += by_color[c][block][l] * self.background[c];
                    by_background[c][l] += f64::from(transmittance[block][l] * by_color[c][block][l]);
                }
            }
        }
        let blocks = Blocks::<W::Lanes>::new(self.origin);
        let (min_weight, max_weight) = (W::Lanes::splat(MIN_WEIGHT), W::Lanes::splat(MAX_WEIGHT));
        let (zero, one) = (W::Lanes::splat(0.0), W::Lanes::splat(1.0));
        let mut weights = [[0.0; WIDTH]; BLOCKS];
        for i in (0..self.list.len()).rev() {
            if self.reached[i] == 0 {
                records[i] = Record::default();
                continue;
            }
            let shape = &self.shapes[self.list[i] as usize];
            blocks.weigh(shape, self.reached[i], &mut weights);
            // Derivatives by the exponent times 1, x, y, xx, xy and yy, and by the colour.
            let (mut power, mut color) = ([zero; 6], [zero; 3]);
            for block in bits(self.reached[i]) {
                let after = W::Lanes::load(&transmittance[block]);
                let mut adjoint = [zero; 3];
                let mut seen = zero;
                for c in 0..3 {
                    adjoint[c] = W::Lanes::load(&by_color[c][block]);
                    seen = seen + adjoint[c] * W::Lanes::splat(shape.color[c]);
                }
                let hidden = W::Lanes::load(&behind[block]);
                let gain = seen - hidden;
                let [x, y] = blocks.offsets(shape, block);
                let weight = W::Lanes::load(&weights[block]);
                let was_open = W::Lanes::above(&count[block], i as u32);
                let is_blended = W::Lanes::both(was_open, weight.at_least(min_weight));
                let is_free = max_weight.at_least(weight);
                let weight = weight.min(max_weight).keep(is_blended);
                let before = after / (one - weight);
                let share = before * weight;
                before.store(&mut transmittance[block]);
                (hidden + weight * gain).store(&mut behind[block]);
                let by_power = (share * gain).keep(is_free);
                let (by_x, by_y) = (by_power * x, by_power * y);
                let terms = [by_power, by_x, by_y, by_x * x, by_x * y, by_y * y];
                for k in 0..6 {
                    power[k] = power[k] + terms[k];
                }
                for c in 0..3 {
                    color[c] = color[c] + share * adjoint[c];
                }
            }
            // Ranges, not adapters, which are not compiled for the vector level.
            for k in 0..6 {
                records[i].power[k] = power[k].sum();
            }
            for c in 0..3 {
                records[i].color[c] = color[c].sum();
            }
        }
        let mut found = Found::default();
        found.stats.rays = (self.inside[0] * self.inside[1]) as u64;
        for block in 0..BLOCKS {
            for l in 0..WIDTH {
                // Each blend and its undoing round three times at most.
                let bound = 4.0 * f32::EPSILON * (1 + count[block][l]) as f32;
                found.stats.drifted += u64::from((transmittance[block][l] - 1.0).abs() > bound);
                found.stats.samples += u64::from(count[block][l]);
            }
        }
        for c in 0..3 {
            found.by_background[c] = by_background[c].iter().sum();
        }
        found
    }
}
