//! Passes that several ranks share, a GPU each: a rank looks at a run of a batch's pixels, and what its rays have sent is
//! summed over the ranks before anything reads it. Sums in whole numbers are, too, so that their bits are those of one rank;
//! sums of floats are rounded once more a rank.

use std::ops::Range;

use super::Gpu;
use super::records::ELEMENT_GROUP;
use crate::cluster::{Cluster, Plain};
use crate::device::units::LIMIT;
use crate::device::{DeviceError, Result};
use crate::resident::Transport;

/// Bytes of sums that are read, reduced and written back at a time.
const PIECE: u64 = 1 << 26;

impl Gpu {
    /// Has the passes of all ranks of a job work together.
    #[must_use]
    pub(in crate::device) fn shared_by(self, cluster: Cluster) -> Self {
        Self { cluster, ..self }
    }

    /// Refuses what several ranks cannot share.
    pub(super) fn check_shared(&self, transport: &Transport) -> Result<()> {
        match transport {
            Transport::Splats(_) | Transport::Light(_) if !self.cluster.is_single() => Err(DeviceError::Unavailable(
                "ranks share light tracing and pictures of splats on CPUs alone; use --device cpu, or a single process"
                    .into(),
            )),
            _ => Ok(()),
        }
    }

    /// This rank's part of the pixels of a batch: whole workgroups of the loss.
    pub(super) fn own_pixels(&self, pixels: u32) -> Range<u32> {
        let own = self.cluster.share(pixels as usize, ELEMENT_GROUP as usize);
        own.start as u32..own.end as u32
    }

    /// An image, from each rank's part.
    pub(super) fn of_all_pixels(&self, own: Vec<[f32; 4]>, pixels: u32) -> Vec<[f32; 4]> {
        self.cluster.join_shares(&own, pixels as usize, ELEMENT_GROUP as usize)
    }

    /// What the workgroups of the loss have reported, from each rank's part.
    pub(super) fn of_all_groups(&self, own: Vec<[f32; 4]>, pixels: u32) -> Vec<[f32; 4]> {
        self.cluster
            .join_shares(&own, pixels.div_ceil(ELEMENT_GROUP) as usize, 1)
    }

    /// Before rays send what is added to gradients of floats: one rank alone keeps what is there.
    pub(super) fn begin_sums(&self) {
        if !self.cluster.leads() && !self.pipelines.dialect.accumulation.is_fixed() {
            self.context.clear(self.arrays.banks.iter().map(|bank| &bank.gradient));
        }
    }

    /// After rays have sent what they send: the sums over the ranks take the place of each rank's.
    pub(super) fn reduce_sums(&self) -> Result<()> {
        if self.cluster.is_single() {
            return Ok(());
        }
        let is_fixed = self.pipelines.dialect.accumulation.is_fixed();
        let entry = if is_fixed { 8 } else { 4 };
        for (parameter, place) in self.params.parameters.iter().zip(&self.arrays.plan.places) {
            if parameter.tuning.is_none() {
                continue;
            }
            let target = self.arrays.banks[place.bank].target();
            let (begin, end) = (entry * place.first as u64, entry * (place.first + place.len) as u64);
            for first in (begin..end).step_by(PIECE as usize) {
                let bytes = self.context.download(target, first, PIECE.min(end - first))?;
                let reduced = match is_fixed {
                    true => self.reduced(&bytes, whole_sum),
                    false => self.reduced(&bytes, |of_ranks| of_ranks.sum::<f32>()),
                };
                self.context.upload(target, first, &reduced);
            }
        }
        Ok(())
    }

    fn reduced<T: Plain>(&self, bytes: &[u8], sum: impl Fn(&mut dyn Iterator<Item = T>) -> T) -> Vec<u8> {
        let own: Vec<T> = bytemuck::pod_collect_to_vec(bytes);
        bytemuck::cast_slice(&self.cluster.reduce(&own, sum)).to_vec()
    }
}

/// The sum of the ranks' sums; where one of them or the total is an overflow, what `collect` takes for one.
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
