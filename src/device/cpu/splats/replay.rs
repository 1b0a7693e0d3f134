//! A tile of a picture backwards: `replay` of `transport/splats/blend.rs`, a splat after the other, sixteen pixels of
//! each block that it reaches at a time.

use super::gather::{End, Weight};
use super::pixels::{Plane, read};
use super::shape::{BLOCKS, Blocks, Shape, bits, bring_shape};
use super::sums::Record;
use crate::device::ReplayStats;
use crate::device::cpu::vector::lanes::{Lanes, WIDTH};
use crate::device::cpu::vector::level::Kernel;
use crate::device::cpu::vector::wide::Wide;
use crate::transport::splats::blend::MAX_WEIGHT;

/// Entries of a list by which shapes are asked for ahead.
const AHEAD: usize = 8;

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
    /// What `Gather` has noted and found.
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
        let blocks = Blocks::<W::Lanes>::new(self.origin);
        let mut undo = Undo {
            transmittance: self.end.transmittance,
            // Pixels that are not in the picture have no derivatives.
            by_color: [Plane::of(0.0); 3],
            behind: Plane::of(0.0),
        };
        read(self.adjoint, self.inside, &mut undo.by_color);
        let by_background = undo.over_adjoint::<W::Lanes>(self.background);
        let mut weights = Plane::of(0.0);
        for i in (0..self.list.len()).rev() {
            bring_shape(self.shapes, self.list, i.wrapping_sub(AHEAD));
            let shape = &self.shapes[self.list[i] as usize];
            // All weights are computed before any is undone: they are independent of each other, so that the processor
            // overlaps them, while the steps of undoing form a chain.
            for block in bits::<BLOCKS>(u64::from(self.reached[i])) {
                let weight = Weight::of(&blocks, shape, block);
                let mut value = weight.value.keep(weight.is_blended);
                if self.end.finished >> block & 1 == 1 {
                    value = value.keep(W::Lanes::above(&self.end.count[block], i as u32));
                }
                value.store(&mut weights[block]);
            }
            let mut sums = Sums::new();
            for block in bits::<BLOCKS>(u64::from(self.reached[i])) {
                undo.blend(&blocks, shape, block, W::Lanes::load(&weights[block]), &mut sums);
            }
            self.records[i] = Record {
                sums: W::Lanes::sums(&sums.first),
                last: sums.last.sum(),
            };
        }
        Found {
            stats: self.stats(&undo.transmittance),
            by_background: by_background.map(|by| f64::from(by.sum())),
        }
    }
}

impl Replay<'_> {
    /// What was undone, and of how many pixels the transmittance has not come back to 1.
    #[inline(always)]
    fn stats(&self, transmittance: &Plane<f32>) -> ReplayStats {
        let mut stats = ReplayStats {
            rays: (self.inside[0] * self.inside[1]) as u64,
            ..ReplayStats::default()
        };
        for block in 0..BLOCKS {
            let is_whole = self.end.finished >> block & 1 == 0;
            let (mut samples, mut drifted) = (0u32, 0u32);
            for l in 0..WIDTH {
                let count = if is_whole {
                    self.list.len() as u32
                } else {
                    self.end.count[block][l]
                };
                // Each blend and its undoing round three times at most.
                let bound = 4.0 * f32::EPSILON * (1 + count) as f32;
                drifted += u32::from((transmittance[block][l] - 1.0).abs() > bound);
                samples += count;
            }
            stats.drifted += u64::from(drifted);
            stats.samples += u64::from(samples);
        }
        stats
    }
}

/// `StateAdjoint` of `transport/splats/blend.rs`, and the transmittance, for the pixels of a tile.
pub(super) struct Undo {
    pub(super) transmittance: Plane<f32>,
    pub(super) by_color: [Plane<f32>; 3],
    /// Derivatives by the transmittance.
    pub(super) behind: Plane<f32>,
}

/// Sums over the pixels of a splat, still lane by lane; what they are is told at [`Record`].
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

impl Undo {
    /// The state after the last splat, from the derivatives by the colours; returns those by the background.
    #[inline(always)]
    fn over_adjoint<L: Lanes>(&mut self, background: [f32; 3]) -> [L; 3] {
        let mut by_background = [L::splat(0.0); 3];
        for block in 0..BLOCKS {
            let left = L::load(&self.transmittance[block]);
            let mut seen = L::splat(0.0);
            for c in 0..3 {
                let adjoint = L::load(&self.by_color[c][block]);
                seen = adjoint.mul_add(L::splat(background[c]), seen);
                by_background[c] = left.mul_add(adjoint, by_background[c]);
            }
            seen.store(&mut self.behind[block]);
        }
        by_background
    }

    /// Undoes a splat in a block, and adds what derivatives by it need.
    #[inline(always)]
    pub(super) fn blend<L: Lanes>(
        &mut self,
        blocks: &Blocks<L>,
        shape: &Shape,
        block: usize,
        weight: L,
        sums: &mut Sums<L>,
    ) {
        let [u, v] = blocks.measured(shape, block);
        let is_free = weight.below(L::splat(MAX_WEIGHT));
        let before = L::load(&self.transmittance[block]) / (L::splat(1.0) - weight);
        before.store(&mut self.transmittance[block]);
        let hidden = L::load(&self.behind[block]);
        let mut adjoint = [hidden; 3];
        let mut gain = L::splat(0.0) - hidden;
        for c in 0..3 {
            adjoint[c] = L::load(&self.by_color[c][block]);
            gain = adjoint[c].mul_add(L::splat(shape.color[c]), gain);
        }
        weight.mul_add(gain, hidden).store(&mut self.behind[block]);
        let share = before * weight;
        let by_power = (share * gain).keep(is_free);
        let (by_u, by_v) = (by_power * u, by_power * v);
        let [one, by_1, by_2, uu, uv, vv, red, green] = &mut sums.first;
        *one = *one + by_power;
        *by_1 = *by_1 + by_u;
        *by_2 = *by_2 + by_v;
        *uu = by_u.mul_add(u, *uu);
        *uv = by_u.mul_add(v, *uv);
        *vv = by_v.mul_add(v, *vv);
        *red = share.mul_add(adjoint[0], *red);
        *green = share.mul_add(adjoint[1], *green);
        sums.last = share.mul_add(adjoint[2], sums.last);
    }
}
