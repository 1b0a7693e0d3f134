//! A tile of a picture forwards: `gather` of `transport/splats/blend.rs`, a block of sixteen pixels after the other.

use super::lists::TILE;
use super::pixels::{Plane, ones, write};
use super::shape::{BLOCKS, Blocks, LEAST, Shape, bits, bring_shape};
use crate::device::cpu::vector::lanes::{Lanes, WIDTH};
use crate::device::cpu::vector::level::Kernel;
use crate::device::cpu::vector::wide::Wide;
use crate::transport::splats::blend::{MAX_WEIGHT, MIN_TRANSMITTANCE};

/// Entries of a list that are taken together: the bits of a word.
pub(super) const GROUP: usize = 64;

/// Entries of a list by which shapes are asked for ahead.
const AHEAD: usize = 8;

/// How the pixels of a tile ended: what their undoing begins with.
#[derive(Debug, Clone, Copy)]
pub(super) struct End {
    pub(super) transmittance: Plane<f32>,
    /// Blocks of which a pixel was finished before the end of the list. The pixels of the others have looked at all of it.
    pub(super) finished: u16,
    /// For each pixel of those blocks one more than the last entry that it has looked at.
    pub(super) count: Plane<u32>,
}

impl Default for End {
    fn default() -> Self {
        Self {
            transmittance: Plane::of(1.0),
            finished: 0,
            count: Plane::of(0),
        }
    }
}

impl End {
    /// Takes out pixels that are not in the picture: they have looked at nothing.
    fn leave_out(&mut self, inside: [usize; 2], entries: usize) {
        let is_inside = ones(inside);
        for block in 0..BLOCKS {
            if self.finished >> block & 1 == 0 {
                self.count[block] = [entries as u32; WIDTH];
            }
            for l in 0..WIDTH {
                if is_inside[block][l] == 0.0 {
                    (self.transmittance[block][l], self.count[block][l]) = (1.0, 0);
                }
            }
        }
        self.finished = u16::MAX;
    }
}

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
    /// What is there is how another picture ended: a guess.
    pub(super) end: &'a mut End,
}

impl Kernel for Gather<'_> {
    type Output = ();

    #[inline(always)]
    fn run<W: Wide>(mut self) {
        // Pixels that are not in the picture are finished.
        let mut transmittance = ones(self.inside);
        let mut color = [Plane::of(0.0); 3];
        let blocks = Blocks::<W::Lanes>::new(self.origin);
        let mut group = Group {
            first: 0,
            shapes: [Shape::default(); GROUP],
            words: [0; BLOCKS],
            open: u16::MAX,
            guess: std::mem::take(&mut self.end.finished),
        };
        for first in (0..self.list.len()).step_by(GROUP) {
            group.first = first;
            self.look_around(&blocks, &mut group);
            for block in 0..BLOCKS {
                let mut state = Blend {
                    transmittance: W::Lanes::load(&transmittance[block]),
                    color: [0, 1, 2].map(|c| W::Lanes::load(&color[c][block])),
                };
                self.blend(&blocks, &mut group, block, &mut state);
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
                let over = left.mul_add(W::Lanes::splat(self.background[c]), seen);
                over.store(&mut color[c][block]);
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

/// Up to 64 entries of a list.
struct Group {
    /// The first one's place in the list.
    first: usize,
    shapes: [Shape; GROUP],
    /// For each block the entries that are blended there, as bits.
    words: [u64; BLOCKS],
    /// Blocks of which some pixel is not finished.
    open: u16,
    /// Blocks of which some pixel is probably finished before the list ends.
    guess: u16,
}

impl Gather<'_> {
    /// Finds out which entries reach which blocks.
    #[inline(always)]
    fn look_around<L: Lanes>(&mut self, blocks: &Blocks<L>, group: &mut Group) {
        let count = GROUP.min(self.list.len() - group.first);
        let mut reached = [[0u32; WIDTH]; GROUP / WIDTH];
        for i in 0..count {
            let entry = group.first + i;
            bring_shape(self.shapes, self.list, entry + AHEAD);
            group.shapes[i] = self.shapes[self.list[entry] as usize];
            let bits = blocks.reached(&group.shapes[i]) & group.open;
            self.reached[entry] = bits;
            reached[i / WIDTH][i % WIDTH] = u32::from(bits);
        }
        for block in 0..BLOCKS {
            group.words[block] = 0;
            for part in 0..count.div_ceil(WIDTH) {
                group.words[block] |= u64::from(L::having(&reached[part], block as u32)) << (WIDTH * part);
            }
        }
    }

    /// Blends a group's entries in a block.
    #[inline(always)]
    fn blend<L: Lanes>(&mut self, blocks: &Blocks<L>, group: &mut Group, block: usize, state: &mut Blend<L>) {
        let begin = *state;
        if group.guess >> block & 1 == 0 {
            for i in bits::<GROUP>(group.words[block]) {
                let weight = Weight::of(blocks, &group.shapes[i], block);
                state.blend(&group.shapes[i], weight.value.keep(weight.is_blended));
            }
            // Transmittance never grows: pixels that are open after the last splat were open throughout.
            if L::bits(state.is_open()) == ALL {
                return;
            }
        }
        *state = begin;
        self.blend_watching(blocks, group, block, state);
    }

    /// [`Self::blend`], looking after each entry for pixels that are finished.
    #[inline(always)]
    fn blend_watching<L: Lanes>(&mut self, blocks: &Blocks<L>, group: &mut Group, block: usize, state: &mut Blend<L>) {
        let mut is_open = state.is_open();
        let mut rest = group.words[block];
        while rest != 0 {
            let i = rest.trailing_zeros() as usize % GROUP;
            rest &= rest - 1;
            let weight = Weight::of(blocks, &group.shapes[i], block);
            state.blend(&group.shapes[i], weight.value.keep(L::both(is_open, weight.is_blended)));
            let was_open = L::bits(is_open);
            is_open = state.is_open();
            let closed = was_open & !L::bits(is_open);
            if closed == 0 {
                continue;
            }
            self.note_finished(block, group.first + i, closed);
            if L::bits(is_open) == 0 {
                group.open &= !(1 << block);
                for after in bits::<GROUP>(rest) {
                    self.reached[group.first + after] &= !(1 << block);
                }
                return;
            }
        }
    }

    /// Takes note of pixels of a block that an entry has finished.
    #[inline(always)]
    fn note_finished(&mut self, block: usize, entry: usize, closed: u32) {
        let End { finished, count, .. } = &mut *self.end;
        if *finished >> block & 1 == 0 {
            *finished |= 1 << block;
            count[block] = [self.list.len() as u32; WIDTH];
        }
        for l in bits::<WIDTH>(u64::from(closed)) {
            count[block][l] = entry as u32 + 1;
        }
    }
}

/// Bits of a vector's lanes.
const ALL: u32 = (1 << WIDTH) - 1;

/// A splat's weight at a block's pixels, at most [`MAX_WEIGHT`]; what it is where it is not blended is not defined.
#[derive(Debug, Clone, Copy)]
pub(super) struct Weight<L: Lanes> {
    pub(super) value: L,
    /// Pixels where it is not left out.
    pub(super) is_blended: L::Mask,
}

impl<L: Lanes> Weight<L> {
    #[inline(always)]
    pub(super) fn of(blocks: &Blocks<L>, shape: &Shape, block: usize) -> Self {
        let exponent = shape.exponent(blocks.measured(shape, block));
        Self {
            value: exponent.exp2().min(L::splat(MAX_WEIGHT)),
            is_blended: exponent.at_least(L::splat(LEAST)),
        }
    }
}

/// `PixelState` of `transport/splats/blend.rs` for the pixels of a block.
#[derive(Debug, Clone, Copy)]
pub(super) struct Blend<L> {
    pub(super) transmittance: L,
    pub(super) color: [L; 3],
}

impl<L: Lanes> Blend<L> {
    /// Pixels that are not finished.
    #[inline(always)]
    fn is_open(&self) -> L::Mask {
        self.transmittance.at_least(L::splat(MIN_TRANSMITTANCE))
    }

    #[inline(always)]
    pub(super) fn blend(&mut self, shape: &Shape, weight: L) {
        let share = self.transmittance * weight;
        for c in 0..3 {
            self.color[c] = share.mul_add(L::splat(shape.color[c]), self.color[c]);
        }
        self.transmittance = self.transmittance - share;
    }
}
