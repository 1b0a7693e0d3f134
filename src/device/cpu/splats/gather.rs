//! The forward blend of a tile: `gather` of `transport/splats/blend.rs`, one block of sixteen pixels after the other.

use super::lists::{Entry, Pages, page_of};
use super::shape::{Blocks, Seen, Shape, bits, bring_shape};
use crate::device::cpu::planes::{BLOCKS, Plane, TILE, ones};
use crate::device::cpu::vector::lanes::{Lanes, WIDTH};
use crate::device::cpu::vector::level::Kernel;
use crate::device::cpu::vector::wide::Wide;
use crate::each::EachEntry;
use crate::transport::splats::blend::MIN_TRANSMITTANCE;

/// Entries of a list that are processed together: as many as a word has bits.
pub(super) const GROUP: usize = 64;

/// Prefetch distance of shapes, in entries of a list.
const AHEAD: usize = 8;

/// The places in a tile's list at which its pixels were finished (transmittance below 1/255), for their undoing.
#[derive(Debug, Clone, Copy)]
pub(super) struct End {
    /// Blocks, as bits, with a pixel that was finished before the end of the list. Pixels of other blocks blend the whole list.
    pub(super) finished: u16,
    /// For each pixel of those blocks one more than the last entry that it has processed; zero outside the picture.
    pub(super) count: Plane<u32>,
}

impl Default for End {
    fn default() -> Self {
        Self {
            finished: 0,
            count: Plane::of(0),
        }
    }
}

impl End {
    /// The state before the first entry of a list: only pixels outside the picture are finished.
    #[inline(always)]
    fn begin(&mut self, inside: [usize; 2], entries: usize) {
        self.finished = 0;
        if inside == [TILE; 2] {
            return;
        }
        let is_inside = ones(inside);
        for block in 0..BLOCKS {
            if is_inside[block] != [1.0; WIDTH] {
                self.finished |= 1 << block;
                self.count[block] =
                    is_inside[block].each(|is_inside| if is_inside == 1.0 { entries as u32 } else { 0 });
            }
        }
    }
}

/// Splats and weights of the last [`KEPT`] entries of a tile's list, for their undoing: entry i is at place i modulo [`KEPT`].
pub(super) type Kept = [Weighed; KEPT];

/// Entries that are kept. In a picture of many splats a tile has fewer, and each entry uses only a splat and the weights of a
/// few blocks of this third of a MiB, so that all of it stays in the first- or second-level cache.
pub(super) const KEPT: usize = 256;
const _: () = assert!(KEPT >= GROUP && KEPT.is_power_of_two());

/// A splat as a tile sees it, and its weights in the blocks in which it is blended.
#[derive(Debug, Clone, Copy)]
pub(super) struct Weighed {
    pub(super) splat: Seen,
    pub(super) weights: Plane<f32>,
}

impl Weighed {
    /// A placeholder, until a tile has seen a splat.
    pub(super) const UNSEEN: Self = Self {
        splat: Seen::UNSEEN,
        weights: Plane::of(0.0),
    };
}

/// Blends a tile's list.
pub(super) struct Gather<'a> {
    /// The tile's entries; `blocks` of each is written.
    pub(super) list: &'a mut [Entry],
    pub(super) pages: Pages<'a>,
    pub(super) shapes: &'a [Shape],
    /// The tile's first pixel, and its columns and rows in the picture.
    pub(super) origin: [f32; 2],
    pub(super) inside: [usize; 2],
    /// The radiance behind all splats.
    pub(super) background: [f32; 3],
    /// The tile in the frame: colour and transmittance.
    pub(super) image: &'a mut [Plane<f32>; 4],
    /// To be written. On input it is that of an earlier picture, and tells which blocks are likely to have finished pixels.
    pub(super) end: &'a mut End,
    pub(super) kept: &'a mut Kept,
}

impl Kernel for Gather<'_> {
    type Output = ();

    #[inline(always)]
    fn run<W: Wide>(mut self) {
        let [red, green, blue, transmittance] = &mut *self.image;
        // Pixels outside the picture are finished from the start: their transmittance is zero.
        *transmittance = ones(self.inside);
        for color in [red, green, blue] {
            *color = Plane::of(0.0);
        }
        let blocks = Blocks::<W::Lanes>::new(self.origin);
        let mut group = Group {
            first: 0,
            end: 0,
            words: [0; BLOCKS],
            open: u16::MAX,
            guess: self.end.finished,
        };
        self.end.begin(self.inside, self.list.len());
        for page in 0..self.pages.count() {
            let (range, shapes) = (self.pages.range(page), page_of(self.shapes, page));
            for first in range.clone().step_by(GROUP) {
                (group.first, group.end) = (first, range.end.min(first + GROUP));
                self.look_around(shapes, &blocks, &mut group);
                for block in 0..BLOCKS {
                    let mut state = Blend::<W::Lanes>::load(self.image, block);
                    self.blend(&mut group, block, &mut state);
                    state.store(self.image, block);
                }
            }
        }
        for block in 0..BLOCKS {
            let mut state = Blend::<W::Lanes>::load(self.image, block);
            for c in 0..3 {
                state.color[c] = state
                    .transmittance
                    .mul_add(W::Lanes::splat(self.background[c]), state.color[c]);
            }
            state.store(self.image, block);
        }
    }
}

/// Up to 64 entries of a page.
struct Group {
    /// Place of the first entry in the list, and the end.
    first: usize,
    end: usize,
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
    fn look_around<L: Lanes>(&mut self, shapes: &[Shape], blocks: &Blocks<L>, group: &mut Group) {
        let list = &mut self.list[..group.end];
        let count = group.end - group.first;
        let mut reached = [[0u32; WIDTH]; GROUP / WIDTH];
        for i in 0..count {
            let entry = group.first + i;
            bring_shape(shapes, list, entry + AHEAD);
            let shape = &shapes[usize::from(list[entry].splat)];
            blocks.see(shape, &mut self.kept[entry % KEPT].splat);
            let bits = blocks.reached(shape) & group.open;
            list[entry].blocks = bits;
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
    fn blend<L: Lanes>(&mut self, group: &mut Group, block: usize, state: &mut Blend<L>) {
        let begin = *state;
        if group.guess >> block & 1 == 0 {
            for i in bits::<GROUP>(group.words[block]) {
                let Weighed { splat, weights } = &mut self.kept[(group.first + i) % KEPT];
                let weight: L = splat.weight(splat.measured(block));
                weight.store(&mut weights[block]);
                state.blend(splat, weight);
            }
            // Transmittance never grows: pixels that are open after the last splat were open throughout.
            if L::bits(state.is_open()) == ALL {
                return;
            }
        }
        *state = begin;
        self.blend_watching(group, block, state);
    }

    /// [`Self::blend`] with a test after each entry whether it has finished pixels.
    #[inline(always)]
    fn blend_watching<L: Lanes>(&mut self, group: &mut Group, block: usize, state: &mut Blend<L>) {
        let mut is_open = state.is_open();
        let mut rest = group.words[block];
        while rest != 0 {
            let i = rest.trailing_zeros() as usize % GROUP;
            rest &= rest - 1;
            let Weighed { splat, weights } = &mut self.kept[(group.first + i) % KEPT];
            let weight = splat.weight::<L>(splat.measured(block)).keep(is_open);
            weight.store(&mut weights[block]);
            state.blend(splat, weight);
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
                    self.list[group.first + after].blocks &= !(1 << block);
                }
                return;
            }
        }
    }

    /// Notes that `entry` has finished the pixels `closed` of a block.
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

/// The bits of all lanes of a vector.
const ALL: u32 = (1 << WIDTH) - 1;

/// `PixelState` of `transport/splats/blend.rs` for the pixels of a block.
#[derive(Debug, Clone, Copy)]
pub(super) struct Blend<L> {
    pub(super) transmittance: L,
    pub(super) color: [L; 3],
}

impl<L: Lanes> Blend<L> {
    #[inline(always)]
    fn load([red, green, blue, transmittance]: &[Plane<f32>; 4], block: usize) -> Self {
        Self {
            transmittance: L::load(&transmittance[block]),
            color: [L::load(&red[block]), L::load(&green[block]), L::load(&blue[block])],
        }
    }

    #[inline(always)]
    fn store(self, [red, green, blue, transmittance]: &mut [Plane<f32>; 4], block: usize) {
        let [r, g, b] = self.color;
        r.store(&mut red[block]);
        g.store(&mut green[block]);
        b.store(&mut blue[block]);
        self.transmittance.store(&mut transmittance[block]);
    }

    /// Pixels that are not finished.
    #[inline(always)]
    fn is_open(&self) -> L::Mask {
        self.transmittance.at_least(L::splat(MIN_TRANSMITTANCE))
    }

    #[inline(always)]
    pub(super) fn blend(&mut self, splat: &Seen, weight: L) {
        let share = self.transmittance * weight;
        for c in 0..3 {
            self.color[c] = share.mul_add(L::splat(splat.color[c]), self.color[c]);
        }
        // T − T α is rounded once: at a weight near one, the error of a rounded product would be much of what is left.
        self.transmittance = self.transmittance.sub_product(self.transmittance, weight);
    }
}
