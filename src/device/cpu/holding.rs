//! The entries of a parameter that each of several ranks steps. It alone keeps the optimiser's moments of these; of their
//! gradient it alone has the whole, but for what lies between the layers that it sums and the spans that it steps.

use std::ops::Range;

use rayon::prelude::*;

use super::pages;
use super::step::{BLOCK, SPAN_ENTRIES};
use super::update::Updates;
use crate::cluster::{Cluster, Plain};
use crate::transport::lookup::prefetch::prefetch_line;

/// Entries of each rank of which those that have changed are sent at a time, so that what is packed and what arrives stays in a
/// cache.
const ROUND: usize = 1 << 18;

/// Blocks between the one that is copied and the one that is asked for from memory.
const BLOCKS_AHEAD: usize = 8;

/// Numbers in a line of the cache.
const LINE: usize = 16;

/// A parameter's entries, dealt out to ranks.
#[derive(Debug, Clone)]
pub(super) struct Holding {
    cluster: Cluster,
    /// For each rank the first entry whose gradient it sums; one more is the end.
    sums: Vec<usize>,
    /// For each rank the first entry that it steps: where the next span begins.
    steps: Vec<usize>,
    /// For each block of entries whether the last step has changed it.
    changed: Vec<u8>,
}

impl Holding {
    fn new(cluster: Cluster, sums: Vec<usize>) -> Self {
        let len = sums[cluster.size()];
        let steps = sums
            .iter()
            .map(|entry| entry.next_multiple_of(SPAN_ENTRIES).min(len))
            .collect();
        let changed = Vec::new();
        Self {
            cluster,
            sums,
            steps,
            changed,
        }
    }

    fn sums(&self, rank: usize) -> Range<usize> {
        self.sums[rank]..self.sums[rank + 1]
    }

    fn steps(&self, rank: usize) -> Range<usize> {
        self.steps[rank]..self.steps[rank + 1]
    }

    /// The entries that this rank steps: whole spans.
    pub(super) fn own(&self) -> Range<usize> {
        self.steps(self.cluster.rank())
    }

    /// The layers of a grid whose gradient a rank sums; each has `length` entries.
    fn layers(&self, rank: usize, length: usize) -> Range<usize> {
        let sums = self.sums(rank);
        sums.start / length..sums.end / length
    }

    /// The layers whose gradient this rank sums.
    pub(super) fn own_layers(&self, length: usize) -> Range<usize> {
        self.layers(self.cluster.rank(), length)
    }

    /// What each rank has found for `of` its layers, one after the other.
    pub(super) fn of_layers(&self, own: &[f64], length: usize, of: impl Fn(&Range<usize>) -> Range<usize>) -> Vec<f64> {
        self.concat(own, |rank| of(&self.layers(rank, length)).len())
    }

    /// The entries that `from` sums and `to` steps.
    fn between(&self, from: usize, to: usize) -> Range<usize> {
        common(&self.sums(from), &self.steps(to))
    }

    /// A flag for each block that this rank steps, if there are others to be told.
    pub(super) fn flags(holding: &Option<Self>) -> Vec<u8> {
        vec![0; holding.as_ref().map_or(0, |holding| blocks(&holding.own()).len())]
    }

    /// What each rank has found for its spans, span by span.
    pub(super) fn of_spans(&self, own: &[f64]) -> Vec<f64> {
        self.concat(own, |rank| self.steps(rank).len().div_ceil(SPAN_ENTRIES))
    }

    /// The first of what the ranks have found.
    pub(super) fn first(&self, found: Option<usize>) -> Option<usize> {
        let all = self.cluster.gather(&[found.map_or(u64::MAX, |entry| entry as u64)]);
        all.into_iter()
            .min()
            .filter(|entry| *entry != u64::MAX)
            .map(|entry| entry as usize)
    }

    /// What all ranks have, one after the other.
    fn concat<T: Plain>(&self, own: &[T], length: impl Fn(usize) -> usize) -> Vec<T> {
        let lengths: Vec<usize> = (0..self.cluster.size()).map(length).collect();
        self.cluster.concat_lengths(own, &lengths).concat()
    }
}

fn common(a: &Range<usize>, b: &Range<usize>) -> Range<usize> {
    let begin = a.start.max(b.start);
    begin..a.end.min(b.end).max(begin)
}

fn blocks(entries: &Range<usize>) -> Range<usize> {
    match entries.is_empty() {
        true => 0..0,
        false => entries.start / BLOCK..entries.end.div_ceil(BLOCK),
    }
}

impl Updates {
    /// Has each rank step other entries, of which it then keeps the moments. The gradient is zero.
    pub(super) fn deal(&mut self, index: usize, cluster: Cluster, sums: Vec<usize>) {
        if self.gradients[index].is_empty() {
            return;
        }
        let (next, ranks) = (Holding::new(cluster, sums), cluster.size());
        let own = next.own();
        for moment in &mut self.moments[index] {
            let kept = match &self.holdings[index] {
                None => moment[own.clone()].to_vec(),
                Some(last) => {
                    let held = last.own();
                    let sent = |rank| {
                        let range = common(&held, &next.steps(rank));
                        let kept = moment.iter().skip(range.start.saturating_sub(held.start));
                        kept.take(range.len()).copied().collect()
                    };
                    cluster.all_to_all(&(0..ranks).map(sent).collect::<Vec<_>>()).concat()
                }
            };
            self.activity[index].wake_from(own.start / BLOCK, &kept);
            *moment = pages::on_large_pages(kept);
        }
        self.holdings[index] = Some(next);
    }

    /// Has every rank keep all moments of a parameter again, or zeros in their place.
    pub(super) fn collect(&mut self, index: usize, keep: bool) {
        if let Some(holding) = self.holdings[index].take() {
            for moment in &mut self.moments[index] {
                *moment = match keep {
                    true => holding.concat(moment, |rank| holding.steps(rank).len()),
                    false => Vec::new(),
                };
            }
        }
    }

    /// A moment; of one that ranks share, at rank 0 alone.
    pub(super) fn read_moment(&self, index: usize, moment: usize) -> Vec<f32> {
        let own = &self.moments[index][moment];
        match &self.holdings[index] {
            Some(holding) => to_leader(holding.cluster, own),
            None => own.clone(),
        }
    }

    /// A gradient; of one that ranks share, at rank 0 alone.
    pub(super) fn read_gradient(&self, index: usize) -> Vec<f32> {
        let gradient = &self.gradients[index];
        match &self.holdings[index] {
            Some(holding) => to_leader(holding.cluster, &gradient[holding.sums(holding.cluster.rank())]),
            None => gradient.clone(),
        }
    }

    /// Brings the gradients of entries that one rank sums and another steps to the latter.
    pub(super) fn complete_gradients(&mut self) {
        let Self {
            gradients,
            holdings,
            activity,
            ..
        } = self;
        for ((gradient, holding), activity) in gradients.iter_mut().zip(holdings).zip(activity) {
            let Some(holding) = holding else { continue };
            let (cluster, rank) = (holding.cluster, holding.cluster.rank());
            let others = |of: usize| match of == rank {
                true => 0..0,
                false => holding.between(rank, of),
            };
            let all = (0..cluster.size()).map(others);
            let sent: Vec<Vec<f32>> = all.clone().map(|range| gradient[range].to_vec()).collect();
            let notes: Vec<Vec<u8>> = all.map(|range| activity.touched(blocks(&range))).collect();
            let (arrived, notes) = (cluster.all_to_all(&sent), cluster.all_to_all(&notes));
            for from in (0..cluster.size()).filter(|&from| from != rank) {
                let range = holding.between(from, rank);
                activity.touch_blocks(range.start / BLOCK, &notes[from]);
                gradient[range].copy_from_slice(&arrived[from]);
            }
        }
    }

    /// For each block of entries whether the last step has changed it; nothing before the first, and of a parameter that
    /// is not dealt out.
    pub(super) fn changed_blocks(&self, index: usize) -> &[u8] {
        self.holdings[index].as_ref().map_or(&[], |holding| &holding.changed)
    }

    /// Has all ranks know the values of a parameter after a step, of which `stepped` says which blocks this rank has
    /// changed, and zeroes the gradients of all others.
    pub(super) fn share_values(&mut self, index: usize, values: &mut [f32], stepped: &[u8]) {
        let Some(holding) = &self.holdings[index] else { return };
        let (cluster, own) = (holding.cluster, holding.own());
        // Before ranks wait for each other: who has stepped less has more to zero.
        let (gradient, activity) = (&mut self.gradients[index], &self.activity[index]);
        gradient
            .par_chunks_mut(BLOCK)
            .enumerate()
            .for_each(|(block, gradient)| {
                if !own.contains(&(block * BLOCK)) && activity.forget(block) {
                    gradient.fill(0.0);
                }
            });
        let all = holding.concat(stepped, |rank| blocks(&holding.steps(rank)).len());
        let longest = (0..cluster.size()).map(|rank| holding.steps(rank).len()).max();
        let (mut sent, mut arrived) = (Vec::new(), Vec::new());
        for begin in (0..longest.unwrap_or(0)).step_by(ROUND) {
            let changed = |rank: usize| {
                let of_rank = holding.steps(rank);
                let first = (of_rank.start + begin).min(of_rank.end);
                let round = blocks(&(first..(first + ROUND).min(of_rank.end)));
                let all = &all;
                let changed = round.filter(move |&block| all[block] != 0);
                changed.map(move |block| block * BLOCK..((block + 1) * BLOCK).min(of_rank.end))
            };
            let lengths: Vec<usize> = (0..cluster.size())
                .map(|rank| changed(rank).map(|range| range.len()).sum())
                .collect();
            if lengths.iter().all(|length| *length == 0) {
                continue;
            }
            sent.clear();
            ahead(values, changed(cluster.rank()), |values, range| {
                sent.extend_from_slice(&values[range]);
            });
            cluster.concat_into(&sent, &lengths, &mut arrived);
            let mut begin = 0;
            for rank in 0..cluster.size() {
                let mut part = &arrived[begin..begin + lengths[rank]];
                begin += lengths[rank];
                if rank == cluster.rank() {
                    continue;
                }
                ahead(values, changed(rank), |values, range| {
                    let (block, rest) = part.split_at(range.len());
                    values[range].copy_from_slice(block);
                    part = rest;
                });
            }
        }
        if let Some(holding) = &mut self.holdings[index] {
            holding.changed = all;
        }
    }
}

/// Does something with each of some blocks of an array, which lie in main memory and far apart: later ones are asked for
/// meanwhile.
fn ahead(
    values: &mut [f32],
    ranges: impl Iterator<Item = Range<usize>>,
    mut visit: impl FnMut(&mut [f32], Range<usize>),
) {
    let ranges: Vec<Range<usize>> = ranges.collect();
    for (i, range) in ranges.iter().enumerate() {
        if let Some(later) = ranges.get(i + BLOCKS_AHEAD) {
            let later = &values[later.clone()];
            later.chunks(LINE).for_each(|line| prefetch_line(line.as_ptr()));
        }
        visit(values, range.clone());
    }
}

/// What all ranks have, one after the other, at rank 0; nothing at the others.
fn to_leader(cluster: Cluster, own: &[f32]) -> Vec<f32> {
    let mut parts = vec![Vec::new(); cluster.size()];
    parts[0] = own.to_vec();
    cluster.all_to_all(&parts).concat()
}
