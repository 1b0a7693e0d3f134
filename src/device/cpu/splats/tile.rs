//! A tile of a picture, forwards and backwards: `transport/splats/blend.rs`, a block of sixteen pixels at a time.

use super::lists::TILE;
use super::pixels::{Plane, ones, read, write};
use super::shape::{LEAST, BLOCKS, Blocks, Shape, bits};
use super::sums::Record;
use crate::device::ReplayStats;
use crate::device::cpu::vector::lanes::{Lanes, WIDTH};
use crate::device::cpu::vector::level::Kernel;
use crate::device::cpu::vector::wide::Wide;
use crate::transport::lookup::prefetch::prefetch_line;
use crate::transport::splats::blend::{MAX_WEIGHT, MIN_TRANSMITTANCE};

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
    pub(super) end: &'a mut End,
}

impl Kernel for Gather<'_> {
    type Output = ();

    #[inline(always)]
    fn run<W: Wide>(self) {
        // Pixels that are not in the picture are finished.
        let mut transmittance = ones(self.inside);
        let mut color = [[[0.0; WIDTH]; BLOCKS]; 3];
        let End { count, has_finished, .. } = self.end;
        *has_finished = false;
        let blocks = Blocks::<W::Lanes>::new(self.origin);
        let min_transmittance = W::Lanes::splat(MIN_TRANSMITTANCE);
        let mut shapes = [Shape::default(); GROUP];
        let mut open = u16::MAX;
        for first in (0..self.list.len()).step_by(GROUP) {
            let group = GROUP.min(self.list.len() - first);
            let mut reached = [[0u32; WIDTH]; GROUP / WIDTH];
            for i in 0..group {
                bring_shape(self.shapes, self.list, first + i + AHEAD);
                shapes[i] = self.shapes[self.list[first + i] as usize];
                let bits = blocks.reached(&shapes[i]) & open;
                self.reached[first + i] = bits;
                reached[i / WIDTH][i % WIDTH] = u32::from(bits);
            }
            let mut words = [0u64; BLOCKS];
            for block in 0..BLOCKS {
                for part in 0..group.div_ceil(WIDTH) {
                    words[block] |= u64::from(W::Lanes::having(&reached[part], block as u32)) << (WIDTH * part);
                }
            }
            for block in 0..BLOCKS {
                let mut state = State::<W::Lanes> {
                    transmittance: W::Lanes::load(&transmittance[block]),
                    color: [0, 1, 2].map(|c| W::Lanes::load(&color[c][block])),
                };
                let begin = state;
                let mut word = words[block];
                while word != 0 {
                    let i = word.trailing_zeros() as usize % GROUP;
                    word &= word - 1;
                    state.blend(&blocks, &shapes[i], block);
                }
                let is_open = state.transmittance.at_least(min_transmittance);
                if W::Lanes::bits(is_open) != 0xffff {
                    state = begin;
                    let mut word = words[block];
                    while word != 0 {
                        let i = word.trailing_zeros() as usize % GROUP;
                        word &= word - 1;
                        let was_open = state.transmittance.at_least(min_transmittance);
                        state.blend_open(&blocks, &shapes[i], block, was_open);
                        let is_open = state.transmittance.at_least(min_transmittance);
                        let closed = W::Lanes::bits(was_open) & !W::Lanes::bits(is_open);
                        if closed != 0 && !*has_finished {
                            *has_finished = true;
                            *count = [[self.list.len() as u32; WIDTH]; BLOCKS];
                        }
                        for l in bits(closed as u16) {
                            count[block][l] = (first + i) as u32 + 1;
                        }
                        if W::Lanes::bits(is_open) == 0 {
                            open &= !(1 << block);
                            for after in bits64(word) {
                                self.reached[first + after] &= !(1 << block);
                            }
                            break;
                        }
                    }
                }
                state.transmittance.store(&mut transmittance[block]);
                for c in 0..3 {
                    state.color[c].store(&mut color[c][block]);
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
        self.end.transmittance = transmittance;
        if self.inside != [TILE; 2] {
            self.end.leave_out(self.inside, self.list.len());
        }
    }
}

/// How the pixels of a tile ended: what their undoing begins with.
#[derive(Debug, Clone, Copy)]
pub(super) struct End {
    transmittance: Plane<f32>,
    /// Whether a pixel was finished before the end of the list. If none was, all have looked at the whole list.
    has_finished: bool,
    /// Then for each pixel one more than the last entry that it has looked at.
    count: Plane<u32>,
}

impl Default for End {
    fn default() -> Self {
        Self {
            transmittance: [[1.0; WIDTH]; BLOCKS],
            has_finished: false,
            count: [[0; WIDTH]; BLOCKS],
        }
    }
}

impl End {
    /// Takes out pixels that are not in the picture: they have looked at nothing.
    fn leave_out(&mut self, inside: [usize; 2], entries: usize) {
        if !self.has_finished {
            self.has_finished = true;
            self.count = [[entries as u32; WIDTH]; BLOCKS];
        }
        let is_inside = ones(inside);
        for block in 0..BLOCKS {
            for l in 0..WIDTH {
                if is_inside[block][l] == 0.0 {
                    (self.transmittance[block][l], self.count[block][l]) = (1.0, 0);
                }
            }
        }
    }
}

/// Entries of a list by which shapes are asked for ahead.
const AHEAD: usize = 8;

/// Asks for the shape of an entry of a list, if there is one.
#[inline(always)]
fn bring_shape(shapes: &[Shape], list: &[u32], entry: usize) {
    if let Some(&index) = list.get(entry) {
        prefetch_line(shapes.as_ptr().wrapping_add(index as usize));
    }
}

/// Entries of a list that are taken together: the bits of a word.
const GROUP: usize = 64;

fn bits64(mut word: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let bit = (word != 0).then(|| word.trailing_zeros() as usize % GROUP)?;
        word &= word - 1;
        Some(bit)
    })
}

#[derive(Clone, Copy)]
struct State<L> {
    transmittance: L,
    color: [L; 3],
}

impl<L: Lanes> State<L> {
    #[inline(always)]
    fn blend(&mut self, blocks: &Blocks<L>, shape: &Shape, block: usize) {
        let (_, exponent) = blocks.exponent(shape, block);
        let is_blended = exponent.at_least(L::splat(LEAST));
        self.add(shape, exponent.exp2().min(L::splat(MAX_WEIGHT)).keep(is_blended));
    }

    #[inline(always)]
    fn blend_open(&mut self, blocks: &Blocks<L>, shape: &Shape, block: usize, was_open: L::Mask) {
        let (_, exponent) = blocks.exponent(shape, block);
        let is_blended = L::both(was_open, exponent.at_least(L::splat(LEAST)));
        self.add(shape, exponent.exp2().min(L::splat(MAX_WEIGHT)).keep(is_blended));
    }

    #[inline(always)]
    fn add(&mut self, shape: &Shape, weight: L) {
        let share = self.transmittance * weight;
        for c in 0..3 {
            self.color[c] = share.mul_add(L::splat(shape.color[c]), self.color[c]);
        }
        self.transmittance = self.transmittance - share;
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
    pub(super) end: &'a End,
    /// The loss's derivatives by the tile's pixels.
    pub(super) adjoint: &'a [[f32; 3]],
    /// One an entry of the list, in its order.
    pub(super) records: &'a mut [Record],
}

impl Kernel for Replay<'_> {
    type Output = Found;

    #[inline(always)]
    fn run<W: Wide>(self) -> Found {
        match self.end.has_finished {
            true => self.undo::<W, true>(),
            false => self.undo::<W, false>(),
        }
    }
}

impl Replay<'_> {
    /// `FINISHED`: some pixels have not looked at the whole list.
    #[inline(always)]
    fn undo<W: Wide, const FINISHED: bool>(self) -> Found {
        let Self { end, records, .. } = self;
        let mut transmittance = end.transmittance;
        let count = &end.count;
        // Pixels that are not in the picture have no derivatives.
        let mut by_color = [[[0.0; WIDTH]; BLOCKS]; 3];
        read(self.adjoint, self.inside, &mut by_color);
        // Derivatives by the transmittance.
        let mut behind = [[0.0; WIDTH]; BLOCKS];
        let mut by_background = [W::Lanes::splat(0.0); 3];
        for block in 0..BLOCKS {
            let left = W::Lanes::load(&transmittance[block]);
            let mut seen = W::Lanes::splat(0.0);
            for c in 0..3 {
                let adjoint = W::Lanes::load(&by_color[c][block]);
                seen = adjoint.mul_add(W::Lanes::splat(self.background[c]), seen);
                by_background[c] = left.mul_add(adjoint, by_background[c]);
            }
            seen.store(&mut behind[block]);
        }
        let blocks = Blocks::<W::Lanes>::new(self.origin);
        let max_weight = W::Lanes::splat(MAX_WEIGHT);
        let (zero, one) = (W::Lanes::splat(0.0), W::Lanes::splat(1.0));
        let mut weights = [[0.0; WIDTH]; BLOCKS];
        for i in (0..self.list.len()).rev() {
            bring_shape(self.shapes, self.list, i.wrapping_sub(AHEAD));
            if self.reached[i] == 0 {
                records[i] = Record::default();
                continue;
            }
            let shape = &self.shapes[self.list[i] as usize];
            // Derivatives by the exponent times 1, u, v, uu, uv and vv, and by the colour.
            let mut sums = [zero; 8];
            let mut last = zero;
            for block in bits(self.reached[i]) {
                let (_, exponent) = blocks.exponent(shape, block);
                let weight = exponent.exp2().min(max_weight);
                weight.keep(exponent.at_least(W::Lanes::splat(LEAST))).store(&mut weights[block]);
            }
            for block in bits(self.reached[i]) {
                let [u, v] = blocks.measured(shape, block);
                let mut weight = W::Lanes::load(&weights[block]);
                if FINISHED {
                    weight = weight.keep(W::Lanes::above(&count[block], i as u32));
                }
                let is_free = W::Lanes::below(weight, max_weight);
                let after = W::Lanes::load(&transmittance[block]);
                let before = after / (one - weight);
                before.store(&mut transmittance[block]);
                let hidden = W::Lanes::load(&behind[block]);
                let mut adjoint = [zero; 3];
                let mut gain = zero - hidden;
                for c in 0..3 {
                    adjoint[c] = W::Lanes::load(&by_color[c][block]);
                    gain = adjoint[c].mul_add(W::Lanes::splat(shape.color[c]), gain);
                }
                weight.mul_add(gain, hidden).store(&mut behind[block]);
                let share = before * weight;
                let by_power = (share * gain).keep(is_free);
                let (by_u, by_v) = (by_power * u, by_power * v);
                sums[0] = sums[0] + by_power;
                sums[1] = sums[1] + by_u;
                sums[2] = sums[2] + by_v;
                sums[3] = by_u.mul_add(u, sums[3]);
                sums[4] = by_u.mul_add(v, sums[4]);
                sums[5] = by_v.mul_add(v, sums[5]);
                sums[6] = share.mul_add(adjoint[0], sums[6]);
                sums[7] = share.mul_add(adjoint[1], sums[7]);
                last = share.mul_add(adjoint[2], last);
            }
            let sums = W::Lanes::sums(&sums);
            records[i] = Record { sums, last: last.sum() };
        }
        let mut found = Found::default();
        found.stats.rays = (self.inside[0] * self.inside[1]) as u64;
        for block in 0..BLOCKS {
            let (mut samples, mut drifted) = (0, 0);
            for l in 0..WIDTH {
                let count = if FINISHED { count[block][l] } else { self.list.len() as u32 };
                // Each blend and its undoing round three times at most.
                let bound = 4.0 * f32::EPSILON * (1 + count) as f32;
                drifted += u32::from((transmittance[block][l] - 1.0).abs() > bound);
                samples += count;
            }
            found.stats.drifted += u64::from(drifted);
            found.stats.samples += u64::from(samples);
        }
        for c in 0..3 {
            found.by_background[c] = f64::from(by_background[c].sum());
        }
        found
    }
}
