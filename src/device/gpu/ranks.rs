//! Passes that several ranks share, a GPU each: a rank takes a run of a batch's pixels or of a light's cells, and derivatives
//! or splats are summed over the ranks before anything reads them. Sums in whole numbers have the bits of a single rank; sums
//! of floats are rounded once more for each rank.

use std::ops::Range;

use super::records::{ELEMENT_GROUP, RAY_GROUP};
use super::shaders::Accumulation;
use super::splats::tile_rows;
use super::{Gpu, Passes};
use crate::cluster::{Cluster, Plain};
use crate::device::units::LIMIT;
use crate::device::{Batch, DeviceError, Result};

/// Bytes of sums that are read, reduced and written back at a time.
const PIECE: u64 = 1 << 26;

impl Gpu {
    /// Shares the passes of this device with the other ranks of a job.
    #[must_use]
    pub(in crate::device) fn shared_by(self, cluster: Cluster) -> Self {
        Self { cluster, ..self }
    }

    /// Each rank's run of a batch's pixels, one behind the other: whole workgroups of the loss, or for splats whole rows of
    /// tiles.
    pub(super) fn runs(&self, batch: &Batch) -> Vec<Range<u32>> {
        let pixels = batch.pixels().min(self.arrays.pixels);
        let all = 0..self.cluster.size();
        if let Passes::Splats(_) = &self.passes {
            let rows = tile_rows(&self.sensors, batch);
            let begin = |row: usize| rows.get(row).map_or(pixels, |first| (*first).min(pixels));
            let of = |rank| self.cluster.share_of(rank, rows.len(), 1);
            return all.map(of).map(|own| begin(own.start)..begin(own.end)).collect();
        }
        let of = |rank| self.cluster.share_of(rank, pixels as usize, ELEMENT_GROUP as usize);
        all.map(of).map(|own| own.start as u32..own.end as u32).collect()
    }

    /// This rank's run.
    pub(super) fn own_run(&self, batch: &Batch) -> Range<u32> {
        self.runs(batch).swap_remove(self.cluster.rank())
    }

    /// This rank's part of the cells of a light.
    pub(super) fn own_cells(&self, cells: u32) -> Range<u32> {
        let own = self.cluster.share(cells as usize, RAY_GROUP as usize);
        own.start as u32..own.end as u32
    }

    /// The pixels that this rank compares: the workgroups of the loss that hold a pixel of its run, or all pixels where light may
    /// arrive anywhere.
    pub(super) fn compared(&self, batch: &Batch) -> Range<u32> {
        let pixels = batch.pixels().min(self.arrays.pixels);
        if let Passes::Light(_) = &self.passes {
            return 0..pixels;
        }
        let own = self.own_run(batch);
        let begin = own.start / ELEMENT_GROUP * ELEMENT_GROUP;
        begin..own.end.next_multiple_of(ELEMENT_GROUP).min(pixels)
    }

    /// For each rank the workgroups of the loss, numbered over the batch, that it reports: those whose first pixel is in its run.
    pub(super) fn reporting(&self, batch: &Batch) -> Vec<Range<u32>> {
        let group = |run: Range<u32>| run.start.div_ceil(ELEMENT_GROUP)..run.end.div_ceil(ELEMENT_GROUP);
        self.runs(batch).into_iter().map(group).collect()
    }

    /// The ranks' arrays concatenated; `parts` gives the lengths.
    pub(super) fn of_all(&self, own: &[[f32; 4]], parts: &[Range<u32>]) -> Vec<[f32; 4]> {
        let lengths: Vec<usize> = parts.iter().map(Range::len).collect();
        self.cluster.concat_lengths(own, &lengths).concat()
    }

    /// The result of a pass that may fail at some ranks alone: an error of one is one of all.
    pub(super) fn agreed(&self, own: Result<()>) -> Result<()> {
        let told = own.as_ref().err().map(DeviceError::to_string).unwrap_or_default();
        let of_ranks = self.cluster.concat(told.as_bytes());
        own?;
        match of_ranks.into_iter().find(|told| !told.is_empty()) {
            Some(told) => Err(DeviceError::TooLarge(String::from_utf8_lossy(&told).into_owned())),
            None => Ok(()),
        }
    }

    /// Before derivatives are added to gradients of floats: all ranks but rank 0 zero theirs, so that what is there counts once.
    pub(super) fn begin_sums(&self) {
        if !self.cluster.leads() && !self.pipelines.dialect.accumulation.is_fixed() {
            self.context.clear(self.arrays.banks.iter().map(|bank| &bank.gradient));
        }
    }

    /// After an adjoint pass: replaces each rank's sums by the sums over all ranks.
    pub(super) fn reduce_sums(&self) -> Result<()> {
        for (parameter, place) in self.params.parameters.iter().zip(&self.arrays.plan.places) {
            if parameter.tuning.is_none() {
                continue;
            }
            let target = self.arrays.banks[place.bank].target();
            let entries = place.first as u64..(place.first + place.len) as u64;
            match self.pipelines.dialect.accumulation.is_fixed() {
                true => self.reduce(target, entries, whole_sum)?,
                false => self.reduce(target, entries, float_sum)?,
            }
        }
        Ok(())
    }

    /// After paths were splatted onto a film of so many pixels: replaces each rank's film by the sum over all ranks. In whole
    /// numbers there is room for all paths on one pixel.
    pub(super) fn reduce_film(&self, pixels: u32) -> Result<()> {
        let entries = 0..4 * u64::from(pixels);
        match self.pipelines.dialect.accumulation {
            Accumulation::FloatAtomic => self.reduce(&self.arrays.film, entries, float_sum),
            _ => self.reduce(&self.arrays.film, entries, |of_ranks: &mut dyn Iterator<Item = i64>| {
                of_ranks.fold(0, i64::wrapping_add)
            }),
        }
    }

    /// Replaces each rank's entries of a buffer by their sums over all ranks.
    pub(super) fn reduce<T: Plain>(
        &self,
        buffer: &wgpu::Buffer,
        entries: Range<u64>,
        sum: impl Fn(&mut dyn Iterator<Item = T>) -> T,
    ) -> Result<()> {
        if self.cluster.is_single() {
            return Ok(());
        }
        let [begin, end] = [entries.start, entries.end].map(|entry| size_of::<T>() as u64 * entry);
        for first in (begin..end).step_by(PIECE as usize) {
            let bytes = self.context.download(buffer, first, PIECE.min(end - first))?;
            let own: Vec<T> = bytemuck::pod_collect_to_vec(&bytes);
            let reduced = self.cluster.reduce(&own, &sum);
            self.context.upload(buffer, first, bytemuck::cast_slice(&reduced));
        }
        Ok(())
    }
}

/// The sum of the ranks' floats, in their order.
pub(super) fn float_sum(of_ranks: &mut dyn Iterator<Item = f32>) -> f32 {
    of_ranks.sum()
}

/// The sum of the ranks' sums; [`LIMIT`], an overflow for `collect`, where one of them or the total is an overflow.
pub(super) fn whole_sum(of_ranks: &mut dyn Iterator<Item = i64>) -> i64 {
    let fits = |sum: i128| sum.unsigned_abs() < LIMIT.unsigned_abs().into();
    let (mut total, mut all_fit) = (0i128, true);
    for sum in of_ranks.map(i128::from) {
        total += sum;
        all_fit &= fits(sum);
    }
    if all_fit && fits(total) { total as i64 } else { LIMIT }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_overflow_of_a_rank_is_one_of_the_sum() {
        let sum = |sums: &[i64]| whole_sum(&mut sums.iter().copied());
        assert_eq!(sum(&[3, -5, 1 << 40]), (1 << 40) - 2);
        assert_eq!(sum(&[LIMIT - 1, -(LIMIT - 1)]), 0);
        for over in [
            &[LIMIT, -LIMIT][..],
            &[LIMIT - 1, 1],
            &[1 - LIMIT, -1],
            &[i64::MIN, i64::MAX],
        ] {
            assert_eq!(sum(over), LIMIT, "{over:?}");
        }
    }
}
