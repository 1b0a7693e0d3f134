//! Gradients of paths, summed in whole numbers: such sums do not depend on their order, so that any thread may add
//! anywhere and the bits are the same for any number of threads. Memory grows with the gradients, not with the length of
//! paths. Units, and the rule by which every overflow is detected, are those of `device/units.rs`.

use std::ops::Range;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rayon::prelude::*;

use super::sum_cache::SumCache;
use crate::cluster::Cluster;
use crate::device::cpu::shared::SharedSlice;
use crate::device::units::LIMIT;
use crate::each::EachEntry;
use crate::params::Shape;
use crate::resident::layout::{SceneRecord, VolumeRecord, background};
use crate::resident::pages::advise;
use crate::transport::lookup::background::env_stencil;
use crate::transport::lookup::grid::{Stencil, prefetch};
use crate::transport::lookup::prefetch::prefetch_line;
use crate::transport::lookup::volume::volume_adjoint;
use crate::transport::rays::camera::{normalize, transform_vector};
use crate::transport::scene::records::Sink;

/// Bytes that private copies of the sums may take together; beyond it all threads share one.
const PRIVATE_BYTES: u64 = 64 << 20;
const ENTRY_BYTES: u64 = size_of::<AtomicI64>() as u64;
/// Entries that a thread takes at a time.
const CHUNK: usize = 4096;
/// Entries of a parameter that ranks exchange at a time, so that they stay in a cache.
const EXCHANGED: usize = 1 << 17;
const NOWHERE: usize = usize::MAX;

/// Sums of one pass: [`Self::begin`], contributions by [`Accumulate`], [`Self::add_to`].
#[derive(Debug)]
pub(in crate::device::cpu) struct Sums {
    /// For each copy and each parameter the entries' sums; empty if the parameter is not tuned.
    copies: Vec<Vec<Vec<AtomicI64>>>,
    /// If all threads share one large copy: for each thread a cache of its additions.
    caches: Vec<Mutex<SumCache>>,
    /// For each parameter the number of units in 1.0.
    scales: Vec<f32>,
    /// The number of the scene's parameters. Behind their sums are those of the normals of meshes' vertices.
    parameters: usize,
    /// A parameter whose sums left their range.
    overflow: AtomicUsize,
    /// Parameter and entry that received a value that is not finite.
    broken: [AtomicUsize; 2],
}

impl Default for Sums {
    fn default() -> Self {
        Self {
            copies: Vec::new(),
            caches: Vec::new(),
            scales: Vec::new(),
            parameters: 0,
            overflow: AtomicUsize::new(NOWHERE),
            broken: [AtomicUsize::new(NOWHERE), AtomicUsize::new(NOWHERE)],
        }
    }
}

impl Sums {
    /// Prepares sums for `parameters` parameters of these numbers of entries, and behind them for the normals of the vertices of
    /// each mesh that moves; `scales` has for each the number of units in 1.0.
    pub(in crate::device::cpu) fn begin(
        &mut self,
        lengths: impl Iterator<Item = usize> + Clone,
        scales: Vec<f32>,
        parameters: usize,
    ) {
        self.parameters = parameters;
        let copies = copies_of(lengths.clone().map(|len| len as u64).sum());
        self.begin_copies(copies, lengths, scales);
    }

    fn begin_copies(&mut self, copies: usize, lengths: impl Iterator<Item = usize> + Clone, scales: Vec<f32>) {
        let fits = self.copies.len() == copies
            && self
                .copies
                .iter()
                .all(|copy| copy.iter().map(Vec::len).eq(lengths.clone()));
        if !fits {
            let zeros = |len| {
                let mut sums = Vec::with_capacity(len);
                advise(&sums);
                sums.resize_with(len, || AtomicI64::new(0));
                sums
            };
            self.copies = (0..copies).map(|_| lengths.clone().map(zeros).collect()).collect();
        }
        let is_large = lengths.sum::<usize>() as u64 * ENTRY_BYTES > PRIVATE_BYTES;
        let threads = rayon::current_num_threads();
        match copies == 1 && is_large {
            true => self.caches.resize_with(threads, || Mutex::new(SumCache::new())),
            false => self.caches.clear(),
        }
        self.scales = scales;
        self.overflow = AtomicUsize::new(NOWHERE);
        self.broken = [AtomicUsize::new(NOWHERE), AtomicUsize::new(NOWHERE)];
    }

    /// Adds the sums of all copies of all ranks to the gradients and zeroes them. An entry that received a value that is not
    /// finite becomes NaN.
    ///
    /// # Errors
    /// The index of a parameter that left the range of its sums.
    pub(in crate::device::cpu) fn add_to(&mut self, gradients: &mut [Vec<f32>], cluster: Cluster) -> Result<(), usize> {
        for cache in &mut self.caches {
            let cache = cache.get_mut().unwrap_or_else(PoisonError::into_inner);
            if let Err(slot) = cache.empty(&self.copies[0]) {
                *self.overflow.get_mut() = slot;
            }
        }
        let mut overflowed = Some(*self.overflow.get_mut()).filter(|slot| *slot != NOWHERE);
        for (slot, gradient) in gradients.iter_mut().enumerate() {
            let unit = 1.0 / f64::from(self.scales[slot]);
            let copies: Vec<_> = self
                .copies
                .iter_mut()
                .map(|copy| SharedSlice::new(plain(&mut copy[slot])))
                .collect();
            let fits = gradient.par_chunks_mut(CHUNK).enumerate().map(|(i, gradient)| {
                let range = i * CHUNK..i * CHUNK + gradient.len();
                // SAFETY: each range of entries is visited once, by one thread.
                let chunk = copies.iter().map(|copy| unsafe { &mut copy.get()[range.clone()] });
                match cluster.is_single() {
                    true => add_chunk(chunk, unit, gradient),
                    false => merge(chunk).1,
                }
            });
            let mut fits = fits.reduce(|| true, |a, b| a && b);
            if let Some(totals) = copies.first().filter(|_| !cluster.is_single()) {
                // SAFETY: the threads above have ended.
                fits &= add_over(cluster, unsafe { totals.get() }, unit, gradient);
            }
            overflowed = overflowed.or((!fits).then_some(slot));
        }
        let [slot, index] = first_of(cluster, [0, 1].each(|i| *self.broken[i].get_mut()));
        let [overflowed] = first_of(cluster, [overflowed.unwrap_or(NOWHERE)]);
        let overflowed = (overflowed != NOWHERE).then_some(overflowed);
        if slot != NOWHERE {
            gradients[slot][index] = f32::NAN;
        }
        overflowed.map_or(Ok(()), Err)
    }

    pub(in crate::device::cpu) fn bytes(&self) -> usize {
        let caches = SumCache::BYTES as usize * self.caches.len();
        self.copies.iter().flatten().map(|array| 8 * array.len()).sum::<usize>() + caches
    }
}

/// Copies of the sums of this many entries: one a thread, or one for all where those would take too much together.
fn copies_of(entries: u64) -> usize {
    let threads = rayon::current_num_threads();
    match entries.saturating_mul(ENTRY_BYTES * threads as u64) {
        all if all <= PRIVATE_BYTES => threads,
        _ => 1,
    }
}

/// Bytes of the sums of parameters of these shapes, each tuned or not.
pub(in crate::device::cpu) fn sum_bytes(shapes: &[(Shape, bool)]) -> u64 {
    let tuned = shapes.iter().filter(|(_, tuned)| *tuned);
    let entries = tuned.map(|(shape, _)| shape.len() as u64).sum();
    let caches = match ENTRY_BYTES * entries > PRIVATE_BYTES {
        true => SumCache::BYTES * rayon::current_num_threads() as u64,
        false => 0,
    };
    ENTRY_BYTES * entries * copies_of(entries) as u64 + caches
}

/// Whether a sum is below [`LIMIT`] and not below −[`LIMIT`].
#[inline(always)]
pub(super) fn in_range(sum: i64) -> bool {
    // Adding LIMIT with wrap-around gives a negative number exactly for sums beyond either end.
    sum.wrapping_add(LIMIT) >= 0
}

/// `found` of the first rank that has found something, that is other than [`NOWHERE`].
fn first_of<const N: usize>(cluster: Cluster, found: [usize; N]) -> [usize; N] {
    if cluster.is_single() {
        return found;
    }
    let all = cluster.gather(&found);
    let first = all.as_chunks().0.iter().find(|found| found[0] != NOWHERE);
    *first.unwrap_or(&found)
}

/// Adds the sums that all ranks have of a parameter to its gradient, and zeroes them; false if a sum was out of range on
/// any rank. Each rank sums its share of the entries over all ranks, and sends the result to the others.
fn add_over(cluster: Cluster, totals: &mut [i64], unit: f64, gradient: &mut [f32]) -> bool {
    if gradient.is_empty() {
        return true;
    }
    let mut fits = true;
    let (mut of_others, mut added, mut added_by_others) = (Vec::new(), Vec::new(), Vec::new());
    for (totals, gradient) in totals.chunks_mut(EXCHANGED).zip(gradient.chunks_mut(EXCHANGED)) {
        let shares: Vec<Range<usize>> = (0..cluster.size())
            .map(|rank| cluster.share_of(rank, totals.len(), 1))
            .collect();
        cluster.exchange_shares(totals, &shares, &mut of_others);
        let own = shares[cluster.rank()].clone();
        let others = of_others.chunks_mut(own.len().max(1));
        let (sums, in_range) = merge(std::iter::once(&mut totals[own.clone()]).chain(others));
        fits &= in_range;
        added.clear();
        added.extend(sums.iter().map(|total| (*total as f64 * unit) as f32));
        totals.fill(0);
        let lengths: Vec<usize> = shares.iter().map(Range::len).collect();
        cluster.tell_others(&added, &lengths, &mut added_by_others);
        let mut others = added_by_others.iter();
        for share in shares {
            let is_own = share == own;
            let gradient = gradient[share].iter_mut();
            match is_own {
                true => gradient.zip(&added).for_each(|(g, added)| *g += added),
                false => gradient.zip(others.by_ref()).for_each(|(g, added)| *g += added),
            }
        }
    }
    !cluster.any(!fits)
}

/// Adds all other copies of some entries' sums to the first copy, which is returned, and zeroes them; false if a sum was out
/// of range.
fn merge<'a>(mut copies: impl Iterator<Item = &'a mut [i64]>) -> (&'a mut [i64], bool) {
    let totals = copies.next().unwrap_or_default();
    let mut fits = true;
    for others in copies {
        for (total, other) in totals.iter_mut().zip(others) {
            // If neither is out of range, the addition does not wrap.
            fits &= in_range(*total) & in_range(*other);
            *total = total.wrapping_add(std::mem::take(other));
        }
    }
    for total in totals.iter() {
        fits &= in_range(*total);
    }
    (totals, fits)
}

/// Adds all copies of some entries' sums to their gradients, and zeroes them; false if a sum was out of range. The entries
/// are few enough to stay in a cache meanwhile.
fn add_chunk<'a>(copies: impl Iterator<Item = &'a mut [i64]>, unit: f64, gradient: &mut [f32]) -> bool {
    let (totals, fits) = merge(copies);
    for (total, g) in totals.iter_mut().zip(gradient) {
        *g += (*total as f64 * unit) as f32;
        *total = 0;
    }
    fits
}

/// Sums as plain integers, where no other thread has access.
fn plain(sums: &mut [AtomicI64]) -> &mut [i64] {
    // SAFETY: an AtomicI64 has the size and the values of an i64 and at least its alignment, and the borrow is exclusive.
    unsafe { &mut *(std::ptr::from_mut(sums) as *mut [i64]) }
}

/// The whole number nearest to x, of halves the one away from zero.
///
/// # Safety
/// x is a number below [`LIMIT`] in magnitude.
#[inline(always)]
unsafe fn nearest(x: f32) -> i64 {
    // In f64 the sum with a half is exact wherever x has a fraction; in f32 it would round up odd numbers from 2²³ on.
    let x = f64::from(x);
    // SAFETY: as the caller says. A conversion for all numbers takes five instructions more.
    unsafe { (x + 0.5f64.copysign(x)).to_int_unchecked() }
}

/// A sink into the calling thread's sums.
#[derive(Debug)]
pub(in crate::device::cpu) struct Accumulate<'a> {
    sums: &'a Sums,
    /// The thread's cache of additions, if sums are large.
    cache: Option<MutexGuard<'a, SumCache>>,
    arrays: &'a [Vec<AtomicI64>],
    shared: bool,
    scene: &'a SceneRecord,
    background: u32,
}

impl<'a> Accumulate<'a> {
    /// For the calling thread.
    pub(in crate::device::cpu) fn new(sums: &'a Sums, scene: &'a SceneRecord, background: u32) -> Self {
        let is_alone = sums.copies.len() == 1;
        let thread = rayon::current_thread_index().unwrap_or(0);
        let copy = if is_alone { 0 } else { thread };
        Self {
            sums,
            // Only this thread locks its cache. If it has begun another chunk in the middle of one, the inner chunk has no cache.
            cache: sums.caches.get(thread).and_then(|cache| cache.try_lock().ok()),
            arrays: &sums.copies[copy],
            shared: is_alone && rayon::current_num_threads() > 1,
            scene,
            background,
        }
    }

    /// Adds to an entry of a tuned parameter.
    #[inline(always)]
    pub(in crate::device::cpu) fn add(&mut self, slot: usize, index: usize, value: f32) {
        self.entries_of(slot).add(index, value);
    }

    /// The entries of a tuned parameter. Their address and scale are read once: the compiler cannot know that writing an entry
    /// does not change these.
    #[inline(always)]
    fn entries_of(&mut self, slot: usize) -> Entries<'_> {
        Entries {
            sums: self.sums,
            arrays: self.arrays,
            entries: &self.arrays[slot],
            slot,
            scale: self.sums.scales[slot],
            shared: self.shared,
            cache: self.cache.as_deref_mut(),
        }
    }
}

/// The entries of one parameter, to be added to.
struct Entries<'a> {
    sums: &'a Sums,
    arrays: &'a [Vec<AtomicI64>],
    entries: &'a [AtomicI64],
    slot: usize,
    scale: f32,
    shared: bool,
    cache: Option<&'a mut SumCache>,
}

impl Entries<'_> {
    /// Adds the adjoint of a lookup of three channels ([`volume_adjoint`]), a texel at a time.
    #[inline(always)]
    fn add_texels(&mut self, at: &Stencil, d: [f32; 3]) {
        for k in 0..8 {
            let weight = at.weights()[k];
            if weight == 0.0 {
                continue;
            }
            let start = at.texels()[k] as usize * 3;
            let values = d.each(|d| d * weight);
            let units = values.each(|value| value * self.scale);
            let fits = units.iter().all(|units| units.abs() < LIMIT as f32) && start + 3 <= self.entries.len();
            match &mut self.cache {
                Some(cache) if fits => {
                    // SAFETY: the units fit.
                    let units = units.each(|units| unsafe { nearest(units) });
                    if !cache.add_three(self.arrays, self.slot, start, units) {
                        self.sums.overflow(self.slot);
                    }
                }
                _ => (0..3).for_each(|c| self.add(start + c, values[c])),
            }
        }
    }

    /// Adds to three entries if no other thread may add to them and all sums are in range; else adds nothing and returns false.
    #[inline(always)]
    fn add_three(&mut self, first: usize, values: [f32; 3]) -> bool {
        if self.shared || self.cache.is_some() {
            return false;
        }
        let Some([a, b, c]) = self.entries.get(first..).and_then(|entries| entries.first_chunk()) else {
            return false;
        };
        let units = values.each(|value| value * self.scale);
        // A value that is not a number fails these comparisons too.
        let [x, y, z] = units.each(|units| units.abs() < LIMIT as f32);
        let [before_a, before_b, before_c] = [a, b, c].each(|entry| entry.load(Ordering::Relaxed));
        if !(x & y & z & in_range(before_a) & in_range(before_b) & in_range(before_c)) {
            return false;
        }
        // SAFETY: they fit.
        let [x, y, z] = units.each(|units| unsafe { nearest(units) });
        a.store(before_a.wrapping_add(x), Ordering::Relaxed);
        b.store(before_b.wrapping_add(y), Ordering::Relaxed);
        c.store(before_c.wrapping_add(z), Ordering::Relaxed);
        true
    }

    #[inline(always)]
    fn add(&mut self, index: usize, value: f32) {
        let units = value * self.scale;
        // A value that is not a number fails this comparison too.
        let fits = units.abs() < LIMIT as f32;
        if !fits {
            self.sums.refuse(self.slot, index, value);
            return;
        }
        // SAFETY: they fit.
        let units = unsafe { nearest(units) };
        let entry = &self.entries[index];
        let fits = match &mut self.cache {
            Some(cache) => cache.add(self.arrays, self.slot, index, units),
            None if self.shared => in_range(entry.fetch_add(units, Ordering::Relaxed)),
            None => {
                let before = entry.load(Ordering::Relaxed);
                entry.store(before.wrapping_add(units), Ordering::Relaxed);
                in_range(before)
            }
        };
        if !fits {
            self.sums.overflow(self.slot);
        }
    }
}

impl Sums {
    #[cold]
    fn refuse(&self, slot: usize, index: usize, value: f32) {
        if value.is_finite() {
            self.overflow(slot);
        } else {
            // Only the first thread stores its parameter and entry, so that both are of one contribution.
            let [broken, entry] = &self.broken;
            if broken
                .compare_exchange(NOWHERE, slot, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok()
            {
                entry.store(index, Ordering::Relaxed);
            }
        }
    }

    #[cold]
    fn overflow(&self, slot: usize) {
        self.overflow.store(slot, Ordering::Relaxed);
    }
}

impl Sink<f32> for Accumulate<'_> {
    #[inline(always)]
    fn wants(&self, slot: u32) -> bool {
        !self.arrays[slot as usize].is_empty()
    }

    #[inline(always)]
    fn expect(&self, volume: &VolumeRecord, at: &Stencil) {
        prefetch(&self.arrays[volume.slot as usize], at, volume.size[3]);
    }

    #[inline(always)]
    fn expect_entries(&self, slot: u32, first: u32) {
        let entries = &self.arrays[slot as usize];
        prefetch_line(entries.as_ptr().wrapping_add(first as usize));
    }

    #[inline(always)]
    fn volume(&mut self, volume: &VolumeRecord, at: &Stencil, d: [f32; 3], _: u32) {
        let slot = volume.slot as usize;
        if self.arrays[slot].is_empty() {
            return;
        }
        let mut entries = self.entries_of(slot);
        if volume.size[3] == 3 && entries.cache.is_some() {
            return entries.add_texels(at, d);
        }
        volume_adjoint(
            volume,
            at,
            d,
            #[inline(always)]
            |index, value| entries.add(index, value),
        );
    }

    #[inline(always)]
    fn entries(&mut self, slot: u32, first: u32, d: [f32; 3], channels: u32) {
        if self.arrays[slot as usize].is_empty() {
            return;
        }
        let (mut entries, first) = (self.entries_of(slot as usize), first as usize);
        if channels == 3 && entries.add_three(first, d) {
            return;
        }
        for c in 0..channels as usize {
            entries.add(first + c, d[c]);
        }
    }

    #[inline(always)]
    fn vertex_normal(&mut self, mesh: u32, vertex: u32, d: [f32; 3]) -> bool {
        let slot = self.sums.parameters + mesh as usize;
        let is_summed = self.arrays.get(slot).is_some_and(|sums| !sums.is_empty());
        if is_summed {
            self.entries(slot as u32, 3 * vertex, d, 3);
        }
        is_summed
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
                let value = d_radiance[c] * at.weights[k];
                self.add(slot, at.texels[k] as usize * 3 + c, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytemuck::Zeroable;
    use std::sync::atomic::Ordering::Relaxed;

    /// The gradient of a single number after these contributions, in units of one, or the index of the parameter that
    /// left its range; in a copy of the thread's own and in one that all threads share.
    fn sum(contributions: &[(f32, usize)]) -> [Result<f32, usize>; 2] {
        [2, 1].map(|copies| {
            let mut sums = Sums::default();
            sums.begin_copies(copies, [0, 1].into_iter(), vec![1.0; 2]);
            let scene = SceneRecord::zeroed();
            let mut sink = Accumulate::new(&sums, &scene, 0);
            for &(value, times) in contributions {
                (0..times).for_each(|_| sink.add(1, 0, value));
            }
            drop(sink);
            let mut gradients = vec![Vec::new(), vec![0.0]];
            sums.add_to(&mut gradients, Cluster::single()).map(|()| gradients[1][0])
        })
    }

    #[test]
    fn contributions_round_to_the_nearest_unit() {
        assert_eq!(sum(&[(0.6, 1000)]), [Ok(1000.0); 2]);
        assert_eq!(sum(&[(-0.6, 1000), (2.4, 10)]), [Ok(-980.0); 2]);
        assert_eq!(sum(&[(8_388_609.0, 3)]), [Ok(25_165_827.0); 2]);
        for x in [
            0.0f32,
            0.49999997,
            0.5,
            -0.5,
            1.5,
            4_194_304.5,
            8_388_609.0,
            -1e15,
            2f32.powi(61),
        ] {
            // SAFETY: all of them are below the limit.
            let found = unsafe { nearest(x) };
            assert_eq!(found as f64, f64::from(x).round(), "{x}");
        }
    }

    #[test]
    fn sums_that_pass_the_end_of_their_range_are_never_taken_for_sums() {
        let [large, half] = [52, 61].map(|e| 2f32.powi(e));
        assert_eq!(sum(&[(large, 1023)]), [Ok(1023.0 * large); 2]);
        // Sums that wrap around 64 bits to zero, and further, to values that a check at the end alone would accept.
        for times in [4096, 4097, 5000, 8192] {
            assert_eq!(sum(&[(large, times)]), [Err(1); 2], "{times}");
            assert_eq!(sum(&[(-large, times)]), [Err(1); 2], "-{times}");
        }
        assert_eq!(sum(&[(half, 8)]), [Err(1); 2]);
        // The last contribution alone leaves the range.
        assert_eq!(sum(&[(half, 2)]), [Err(1); 2]);
        assert_eq!(sum(&[(2.0 * half, 1)]), [Err(1); 2], "one that is too large by itself");
    }

    #[test]
    fn copies_that_overflow_only_together_are_seen() {
        let mut sums = Sums::default();
        sums.begin_copies(2, [1].into_iter(), vec![1.0]);
        for copy in &mut sums.copies {
            *copy[0][0].get_mut() = LIMIT - 1;
        }
        assert_eq!(sums.add_to(&mut [vec![0.0]], Cluster::single()), Err(0));
    }

    #[test]
    fn sums_of_all_copies_are_added_in_the_order_of_the_parameters() {
        let mut sums = Sums::default();
        sums.begin_copies(2, [2, 0, 3].into_iter(), vec![4.0, 1.0, 0.5]);
        let scene = SceneRecord::zeroed();
        let mut sink = Accumulate::new(&sums, &scene, 0);
        sink.add(0, 1, 2.0);
        sink.add(2, 0, -6.0);
        drop(sink);
        *sums.copies[1][2][0].get_mut() = 10;
        let mut gradients = vec![vec![1.0, 1.0], vec![], vec![0.0; 3]];
        sums.add_to(&mut gradients, Cluster::single()).expect("small sums");
        assert_eq!(gradients, [vec![1.0, 3.0], vec![], vec![14.0, 0.0, 0.0]]);
        assert!(sums.copies.iter().flatten().flatten().all(|sum| sum.load(Relaxed) == 0));
    }
}
