//! The replay of a tile from back to front: `replay` of `transport/splats/blend.rs`, one splat after the other, sixteen
//! pixels of each block that it reaches at a time.

use super::gather::{End, KEPT, Kept, Weighed};
use super::lists::{Entry, Pages, page_of};
use super::shape::{Blocks, Seen, Shape, bits, bring_shape};
use super::sums::Record;
use crate::device::ReplayStats;
use crate::device::cpu::planes::{BLOCKS, Plane, TILE, ones};
use crate::device::cpu::vector::lanes::{Lanes, WIDTH};
use crate::device::cpu::vector::level::Kernel;
use crate::device::cpu::vector::wide::Wide;
use crate::each::{EachEntry, each_index};
use crate::transport::splats::blend::MAX_WEIGHT;

/// Prefetch distance of shapes, in entries of a list.
const AHEAD: usize = 8;

/// Results of a tile's replay beside its records.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Found {
    pub(super) stats: ReplayStats,
    pub(super) by_background: [f64; 3],
    /// Sums of the loss and of the squared difference, if the loss is computed in the same visit.
    pub(super) loss: [f64; 2],
}

impl Found {
    /// As plain numbers, to be sent to other ranks.
    pub(super) fn words(self) -> [u64; 9] {
        let ReplayStats {
            rays,
            samples,
            drifted,
            tape_bytes,
        } = self.stats;
        let [r, g, b] = self.by_background.each(f64::to_bits);
        let [value, square] = self.loss.each(f64::to_bits);
        [rays, samples, drifted, tape_bytes, r, g, b, value, square]
    }

    /// From [`Self::words`].
    pub(super) fn from_words([rays, samples, drifted, tape_bytes, r, g, b, value, square]: [u64; 9]) -> Self {
        Self {
            stats: ReplayStats {
                rays,
                samples,
                drifted,
                tape_bytes,
            },
            by_background: [r, g, b].each(f64::from_bits),
            loss: [value, square].each(f64::from_bits),
        }
    }

    pub(super) fn with(self, other: Self) -> Self {
        Self {
            stats: self.stats + other.stats,
            by_background: [0, 1, 2].each(|c| self.by_background[c] + other.by_background[c]),
            loss: [0, 1].each(|i| self.loss[i] + other.loss[i]),
        }
    }
}

/// Undoes a tile's list and notes a record an entry.
pub(super) struct Replay<'a> {
    /// The tile's entries, whose blocks `Gather` has written.
    pub(super) list: &'a [Entry],
    pub(super) pages: Pages<'a>,
    pub(super) shapes: &'a [Shape],
    pub(super) origin: [f32; 2],
    pub(super) inside: [usize; 2],
    pub(super) background: [f32; 3],
    /// Whether derivatives by it are asked for.
    pub(super) tunes_background: bool,
    /// Results of `Gather`.
    pub(super) end: &'a End,
    pub(super) image: &'a [Plane<f32>; 4],
    /// The loss's derivatives by the tile's pixels; zero outside the picture.
    pub(super) adjoint: &'a [Plane<f32>; 3],
    /// What `Gather` has kept; None if that has been overwritten.
    pub(super) kept: Option<&'a Kept>,
    /// One for each entry of the list, in its order.
    pub(super) records: &'a mut [Record],
}

impl Kernel for Replay<'_> {
    type Output = Found;

    #[inline(always)]
    fn run<W: Wide>(self) -> Found {
        let blocks = Blocks::<W::Lanes>::new(self.origin);
        let mut undo = Undo {
            transmittance: self.image[3],
            by_color: self.adjoint,
            behind: Plane::of(0.0),
        };
        if self.inside != [TILE; 2] {
            // Pixels outside the picture have nothing to undo: their transmittance is set to 1.
            let is_inside = ones(self.inside);
            for block in 0..BLOCKS {
                for l in 0..WIDTH {
                    undo.transmittance[block][l] += 1.0 - is_inside[block][l];
                }
            }
        }
        undo.over_adjoint::<W::Lanes>(self.background);
        let by_background = match self.tunes_background {
            true => undo.by_background::<W::Lanes>(),
            false => [0.0; 3],
        };
        let mut again = Weighed::UNSEEN;
        let first_kept = self.list.len().saturating_sub(KEPT);
        let mut sums = Sums::<W::Lanes>::new();
        for page in (0..self.pages.count()).rev() {
            let (range, shapes) = (self.pages.range(page), page_of(self.shapes, page));
            let list = &self.list[range.clone()];
            for i in range.clone().rev() {
                let entry = self.list[i];
                let Weighed { splat, weights } = match self.kept {
                    Some(kept) if i >= first_kept => &kept[i % KEPT],
                    _ => {
                        bring_shape(shapes, list, (i - range.start).wrapping_sub(AHEAD));
                        self.weigh(&blocks, &shapes[usize::from(entry.splat)], i, &mut again);
                        &again
                    }
                };
                // A sum across lanes is a chain of dependent steps. It is taken here, one entry late, so that it overlaps with
                // this entry's weights.
                if W::Lanes::IS_ROOMY
                    && let Some(record) = self.records.get_mut(i + 1)
                {
                    *record = sums.record();
                }
                sums = undo.blend_all(splat, weights, entry.blocks);
                if !W::Lanes::IS_ROOMY {
                    self.records[i] = sums.record();
                }
            }
        }
        if let (true, Some(record)) = (W::Lanes::IS_ROOMY, self.records.first_mut()) {
            *record = sums.record();
        }
        Found {
            stats: self.stats::<W::Lanes>(&undo.transmittance),
            by_background,
            loss: [0.0; 2],
        }
    }
}

impl Replay<'_> {
    /// An entry as `Gather` has seen it, and its weights in the blocks that it was blended in. All are computed before any is
    /// undone: they are independent of each other, so that the processor overlaps them, while the steps of undoing form a chain.
    #[inline(always)]
    fn weigh<L: Lanes>(&self, blocks: &Blocks<L>, shape: &Shape, entry: usize, of: &mut Weighed) {
        let Weighed { splat, weights } = of;
        blocks.see(shape, splat);
        for block in bits::<BLOCKS>(u64::from(self.list[entry].blocks)) {
            let mut weight: L = splat.weight(splat.measured(block));
            if self.end.finished >> block & 1 == 1 {
                weight = weight.keep(L::above(&self.end.count[block], entry as u32));
            }
            weight.store(&mut weights[block]);
        }
    }

    /// Counts of pixels, of entries that they have undone, and of pixels whose transmittance is not 1 again within (45).
    #[inline(always)]
    fn stats<L: Lanes>(&self, transmittance: &Plane<f32>) -> ReplayStats {
        let mut stats = ReplayStats {
            rays: (self.inside[0] * self.inside[1]) as u64,
            ..ReplayStats::default()
        };
        for block in 0..BLOCKS {
            let off = L::load(&transmittance[block]) - L::splat(1.0);
            let off = off.max(L::splat(0.0) - off);
            // Each blend and its undoing round three times at most.
            let bound = |count: u32| 4.0 * f32::EPSILON * (1 + count) as f32;
            if self.end.finished >> block & 1 == 0 {
                let count = self.list.len() as u32;
                stats.samples += WIDTH as u64 * u64::from(count);
                stats.drifted += u64::from(L::bits(L::splat(bound(count)).below(off)).count_ones());
                continue;
            }
            let mut bounds = [0.0; WIDTH];
            for l in 0..WIDTH {
                let count = self.end.count[block][l];
                stats.samples += u64::from(count);
                bounds[l] = bound(count);
            }
            stats.drifted += u64::from(L::bits(L::load(&bounds).below(off)).count_ones());
        }
        stats
    }
}

/// `StateAdjoint` of `transport/splats/blend.rs`, and the transmittance, for the pixels of a tile.
pub(super) struct Undo<'a> {
    pub(super) transmittance: Plane<f32>,
    pub(super) by_color: &'a [Plane<f32>; 3],
    /// Derivatives by the transmittance.
    pub(super) behind: Plane<f32>,
}

/// Sums over the pixels of a splat, separate for each lane; [`Record`] says what is summed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sums<L> {
    pub(super) first: [L; 8],
    pub(super) last: L,
}

impl<L: Lanes> Sums<L> {
    #[inline(always)]
    pub(super) fn new() -> Self {
        let zero = L::splat(0.0);
        Self {
            first: [zero; 8],
            last: zero,
        }
    }
}

impl<L: Lanes> Sums<L> {
    /// The sums over all lanes.
    #[inline(always)]
    fn record(&self) -> Record {
        Record {
            sums: L::sums(&self.first),
            last: self.last.sum(),
        }
    }
}

impl Undo<'_> {
    /// Sets the derivatives by the transmittance after the last splat, T̄ = δ · b with the background b.
    #[inline(always)]
    fn over_adjoint<L: Lanes>(&mut self, background: [f32; 3]) {
        for block in 0..BLOCKS {
            let mut seen = L::splat(0.0);
            for c in 0..3 {
                seen = L::load(&self.by_color[c][block]).mul_add(L::splat(background[c]), seen);
            }
            seen.store(&mut self.behind[block]);
        }
    }

    /// Derivatives by the background, T δ summed over the pixels; T must be that after the last splat.
    #[inline(always)]
    fn by_background<L: Lanes>(&self) -> [f64; 3] {
        let mut by_background = [0.0; 3];
        for c in 0..3 {
            let mut sum = L::splat(0.0);
            for block in 0..BLOCKS {
                sum = L::load(&self.transmittance[block]).mul_add(L::load(&self.by_color[c][block]), sum);
            }
            by_background[c] = f64::from(sum.sum());
        }
        by_background
    }

    /// Undoes a splat in some blocks.
    #[inline(always)]
    pub(super) fn blend_all<L: Lanes>(&mut self, splat: &Seen, weights: &Plane<f32>, blocks: u16) -> Sums<L> {
        let mut parts = [Sums::new(); 2];
        for part in 0..L::PARTS {
            for block in bits::<BLOCKS>(u64::from(blocks)) {
                self.blend(splat, (block, part), &weights[block], &mut parts[part]);
            }
        }
        let [low, high] = parts;
        Sums {
            first: each_index(|i| L::join(low.first[i], high.first[i])),
            last: L::join(low.last, high.last),
        }
    }

    /// Undoes a splat in a part of a block, (44), and adds the terms of its derivatives, (43), to the sums.
    #[inline(always)]
    fn blend<L: Lanes>(
        &mut self,
        splat: &Seen,
        (block, part): (usize, usize),
        weight: &[f32; WIDTH],
        sums: &mut Sums<L>,
    ) {
        let load = |from: &[f32; WIDTH]| L::load(from).part(part);
        let weight = load(weight);
        let before = load(&self.transmittance[block]) / (L::splat(1.0) - weight);
        before.store_part(&mut self.transmittance[block], part);
        let hidden = load(&self.behind[block]);
        let mut adjoint = [hidden; 3];
        // T̄ − C̄ · c: minus the derivative by the weight, over T.
        let mut less = hidden;
        for c in 0..3 {
            adjoint[c] = load(&self.by_color[c][block]);
            less = less.sub_product(adjoint[c], L::splat(splat.color[c]));
        }
        hidden
            .sub_product(weight, less)
            .store_part(&mut self.behind[block], part);
        let share = before * weight;
        // The colours' sums come first, as their operands are not needed any more: registers are few.
        let [one, by_1, by_2, uu, uv, vv, red, green] = &mut sums.first;
        *red = share.mul_add(adjoint[0], *red);
        *green = share.mul_add(adjoint[1], *green);
        sums.last = share.mul_add(adjoint[2], sums.last);
        let by_power = (share * less).keep(weight.below(L::splat(MAX_WEIGHT)));
        *one = *one + by_power;
        let [u, v] = splat.measured_part(block, part);
        let by_u = by_power * u;
        *by_1 = *by_1 + by_u;
        *uu = by_u.mul_add(u, *uu);
        *uv = by_u.mul_add(v, *uv);
        let by_v = by_power * v;
        *by_2 = *by_2 + by_v;
        *vv = by_v.mul_add(v, *vv);
    }
}
