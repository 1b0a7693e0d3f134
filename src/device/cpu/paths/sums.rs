//! Gradients of paths, summed in whole numbers: such sums do not depend on their order, so that any thread may add
//! anywhere and the bits are the same for any number of them. The memory is that of the gradients, however long paths
//! are.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};

use crate::resident::layout::{SceneRecord, VolumeRecord, background};
use crate::transport::lookup::background::env_stencil;
use crate::transport::lookup::grid::Stencil;
use crate::transport::lookup::volume::volume_adjoint;
use crate::transport::rays::camera::{normalize, transform_vector};
use crate::transport::scene::records::Sink;

/// Bytes that private copies of the sums may take together; beyond it all threads share one.
const PRIVATE_BYTES: usize = 64 << 20;
/// The largest derivative by a pixel is this many units.
const LARGEST: f32 = (1u64 << 30) as f32;
/// A single contribution of more units is an overflow.
const MOST: f32 = (1u64 << 52) as f32;
const NOWHERE: usize = usize::MAX;

/// Sums of one pass.
#[derive(Debug, Default)]
pub(in crate::device::cpu) struct Sums {
    /// Copy by copy, for each parameter its entries; empty if it is not tuned.
    copies: Vec<Vec<Vec<AtomicI64>>>,
    /// Units in one.
    scale: f32,
    overflow: AtomicBool,
    /// An entry that received something that is not a number.
    broken: [AtomicUsize; 2],
}

impl Sums {
    /// Prepares for contributions to parameters of these lengths, of which the largest derivative by a pixel is
    /// `largest`.
    pub(in crate::device::cpu) fn begin(&mut self, lengths: impl Iterator<Item = usize> + Clone, largest: f32) {
        let bytes = 8 * lengths.clone().sum::<usize>();
        let threads = rayon::current_num_threads();
        let copies = if bytes * threads <= PRIVATE_BYTES { threads } else { 1 };
        let fits = self.copies.len() == copies
            && self
                .copies
                .iter()
                .all(|copy| copy.iter().map(Vec::len).eq(lengths.clone()));
        if !fits {
            let zeros = |len| (0..len).map(|_| AtomicI64::new(0)).collect();
            self.copies = (0..copies).map(|_| lengths.clone().map(zeros).collect()).collect();
        }
        // A power of two, so that scaling loses no digit.
        self.scale = f32::from_bits((LARGEST / largest).to_bits() & 0x7f80_0000);
        *self.overflow.get_mut() = false;
        self.broken = [AtomicUsize::new(NOWHERE), AtomicUsize::new(NOWHERE)];
    }

    /// Adds the sums to the gradients and zeroes them; the index of a parameter that overflowed.
    pub(in crate::device::cpu) fn end(&mut self, gradients: &mut [Vec<f32>]) -> Result<(), usize> {
        use rayon::prelude::*;
        let mut overflowed = None;
        let unit = 1.0 / f64::from(self.scale);
        for (slot, gradient) in gradients.iter_mut().enumerate() {
            let copies: Vec<&[AtomicI64]> = self.copies.iter().map(|copy| &copy[slot][..]).collect();
            let fits = gradient
                .par_chunks_mut(4096)
                .enumerate()
                .map(|(i, chunk)| {
                    let mut fits = true;
                    for (j, g) in chunk.iter_mut().enumerate() {
                        let mut sum = Some(0i64);
                        for copy in &copies {
                            let part = copy[i * 4096 + j].swap(0, Ordering::Relaxed);
                            sum = sum.and_then(|sum| sum.checked_add(part));
                        }
                        fits &= sum.is_some_and(|s| s.unsigned_abs() < 1 << 62);
                        *g += (sum.unwrap_or(0) as f64 * unit) as f32;
                    }
                    fits
                })
                .reduce(|| true, |a, b| a && b);
            if !fits {
                overflowed = overflowed.or(Some(slot));
            }
        }
        let [slot, index] = [0, 1].map(|i| *self.broken[i].get_mut());
        if slot != NOWHERE && index != NOWHERE {
            gradients[slot][index] = f32::NAN;
        }
        match overflowed {
            Some(slot) => Err(slot),
            None if *self.overflow.get_mut() => Err(slot.min(gradients.len() - 1)),
            None => Ok(()),
        }
    }

    pub(in crate::device::cpu) fn bytes(&self) -> usize {
        self.copies.iter().flatten().map(|array| 8 * array.len()).sum()
    }
}

/// A sink into the calling thread's sums.
#[derive(Debug)]
pub(in crate::device::cpu) struct Accumulate<'a> {
    sums: &'a Sums,
    arrays: &'a [Vec<AtomicI64>],
    shared: bool,
    scene: &'a SceneRecord,
    background: u32,
}

impl<'a> Accumulate<'a> {
    /// For the calling thread.
    pub(in crate::device::cpu) fn new(sums: &'a Sums, scene: &'a SceneRecord, background: u32) -> Self {
        let shared = sums.copies.len() == 1;
        let copy = if shared {
            0
        } else {
            rayon::current_thread_index().unwrap_or(0)
        };
        Self {
            sums,
            arrays: &sums.copies[copy],
            shared,
            scene,
            background,
        }
    }

    /// Adds to an entry of a tuned parameter.
    #[inline(always)]
    pub(in crate::device::cpu) fn add(&mut self, slot: usize, index: usize, value: f32) {
        let units = value * self.sums.scale;
        if units.is_nan() || units.abs() > MOST {
            self.refuse(slot, index, value);
            return;
        }
        let units = units as i64;
        let entry = &self.arrays[slot][index];
        if self.shared {
            entry.fetch_add(units, Ordering::Relaxed);
        } else {
            entry.store(entry.load(Ordering::Relaxed).wrapping_add(units), Ordering::Relaxed);
        }
    }

    #[cold]
    fn refuse(&mut self, slot: usize, index: usize, value: f32) {
        if value.is_finite() {
            self.sums.overflow.store(true, Ordering::Relaxed);
        } else {
            self.sums.broken[1].store(index, Ordering::Relaxed);
        }
        self.sums.broken[0].store(slot, Ordering::Relaxed);
    }
}

impl Sink<f32> for Accumulate<'_> {
    #[inline(always)]
    fn wants(&self, slot: u32) -> bool {
        !self.arrays[slot as usize].is_empty()
    }

    #[inline(always)]
    fn volume(&mut self, volume: &VolumeRecord, at: &Stencil, d: [f32; 3], _: u32) {
        let slot = volume.slot as usize;
        if self.arrays[slot].is_empty() {
            return;
        }
        volume_adjoint(volume, at, d, |entry, share| self.add(slot, entry, share));
    }

    #[inline(always)]
    fn value(&mut self, slot: u32, d: [f32; 3], channels: u32) {
        if self.arrays[slot as usize].is_empty() {
            return;
        }
        for c in 0..channels as usize {
            self.add(slot as usize, c, d[c]);
        }
    }

    #[inline(always)]
    fn background(&mut self, d: [f32; 3], d_radiance: [f32; 3]) {
        let slot = self.background as usize;
        if self.arrays[slot].is_empty() {
            return;
        }
        if self.scene.background != background::ENVMAP {
            self.value(self.background, d_radiance, 3);
            return;
        }
        let local = normalize(transform_vector(&self.scene.world_to_env, d));
        let at = env_stencil(self.scene.env_size, local);
        for k in 0..4 {
            for c in 0..3 {
                let value = d_radiance[c] * self.scene.env_scale * at.weights[k];
                self.add(slot, at.texels[k] as usize * 3 + c, value);
            }
        }
    }
}
