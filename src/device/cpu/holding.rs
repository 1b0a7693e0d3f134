//! Which entries of a parameter each of several ranks steps. Only that rank keeps the optimiser's moments of these entries: its
//! array spans all entries, but occupies memory for its own alone. Only that rank has their full gradient, except for entries
//! between the layers that it sums and the spans that it steps, whose gradient another rank sends.

use std::ops::Range;

use super::pages;
use super::step::{BLOCK, SPAN_ENTRIES};
use super::update::Updates;
use crate::cluster::{Cluster, Plain};
use crate::resident::pages::give_back;

/// A parameter's entries, dealt out to ranks.
#[derive(Debug, Clone)]
pub(super) struct Holding {
    pub(super) cluster: Cluster,
    /// For each rank the first entry whose gradient it sums; the last element is the number of entries.
    sums: Vec<usize>,
    /// For each rank the first entry that it steps: `sums`, rounded up to the beginning of a span.
    steps: Vec<usize>,
    /// For each block of entries whether the last step has changed it.
    pub(super) changed: Vec<u8>,
}

impl Holding {
    /// Deals entries out; `sums` holds for each rank the first entry whose gradient it sums, and then the number of entries.
    pub(super) fn new(cluster: Cluster, sums: Vec<usize>) -> Self {
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

    /// The entries that a rank steps: whole spans.
    pub(super) fn steps(&self, rank: usize) -> Range<usize> {
        self.steps[rank]..self.steps[rank + 1]
    }

    /// [`Self::steps`] of this rank.
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

    /// The results of all ranks concatenated: one number for each of `of(layers)`, such as bands of a rank's layers.
    pub(super) fn of_layers(&self, own: &[f64], length: usize, of: impl Fn(&Range<usize>) -> Range<usize>) -> Vec<f64> {
        self.concat(own, |rank| of(&self.layers(rank, length)).len())
    }

    /// The entries that `from` sums and `to` steps.
    fn between(&self, from: usize, to: usize) -> Range<usize> {
        common(&self.sums(from), &self.steps(to))
    }

    /// The results of all ranks concatenated: one number for each span.
    pub(super) fn of_spans(&self, own: &[f64]) -> Vec<f64> {
        self.concat(own, |rank| self.steps(rank).len().div_ceil(SPAN_ENTRIES))
    }

    /// Exchanges a moment when entries are dealt out anew: this rank receives the entries that it steps under `next`.
    fn hand_over(&self, moment: &mut [f32], next: &Self) {
        let (rank, held, own) = (self.cluster.rank(), self.own(), next.own());
        let sent = |to| match to == rank {
            true => Vec::new(),
            false => moment[common(&held, &next.steps(to))].to_vec(),
        };
        let arrived = self
            .cluster
            .all_to_all(&(0..self.cluster.size()).map(sent).collect::<Vec<_>>());
        for (from, arrived) in arrived.iter().enumerate().filter(|(from, _)| *from != rank) {
            moment[common(&own, &self.steps(from))].copy_from_slice(arrived);
        }
    }

    /// The smallest entry that any rank has found.
    pub(super) fn first(&self, found: Option<usize>) -> Option<usize> {
        let all = self.cluster.gather(&[found.map_or(u64::MAX, |entry| entry as u64)]);
        all.into_iter()
            .min()
            .filter(|entry| *entry != u64::MAX)
            .map(|entry| entry as usize)
    }

    /// The arrays of all ranks concatenated; `length` gives that of each rank.
    pub(super) fn concat<T: Plain>(&self, own: &[T], length: impl Fn(usize) -> usize) -> Vec<T> {
        let lengths: Vec<usize> = (0..self.cluster.size()).map(length).collect();
        self.cluster.concat_lengths(own, &lengths).concat()
    }
}

fn common(a: &Range<usize>, b: &Range<usize>) -> Range<usize> {
    let begin = a.start.max(b.start);
    begin..a.end.min(b.end).max(begin)
}

/// The blocks that contain any of these entries.
pub(super) fn blocks(entries: &Range<usize>) -> Range<usize> {
    match entries.is_empty() {
        true => 0..0,
        false => entries.start / BLOCK..entries.end.div_ceil(BLOCK),
    }
}

impl Updates {
    /// Deals the entries out anew to ranks and moves their moments accordingly. The gradient must be zero.
    pub(super) fn deal(&mut self, index: usize, cluster: Cluster, sums: Vec<usize>) {
        if self.gradients[index].is_empty() {
            return;
        }
        let next = Holding::new(cluster, sums);
        let own = next.own();
        for moment in &mut self.moments[index] {
            if let Some(last) = &self.holdings[index] {
                last.hand_over(moment, &next);
            }
            self.activity[index].wake_from(own.start / BLOCK, &moment[own.clone()]);
            give_back(&mut moment[..own.start]);
            give_back(&mut moment[own.end..]);
        }
        self.holdings[index] = Some(next);
    }

    /// Has every rank keep all moments of a parameter again, or zeros in their place.
    pub(super) fn collect(&mut self, index: usize, keep: bool) {
        if let Some(holding) = self.holdings[index].take() {
            for moment in &mut self.moments[index] {
                *moment = match keep {
                    true => holding.concat(&moment[holding.own()], |rank| holding.steps(rank).len()),
                    false => Vec::new(),
                };
            }
        }
    }

    /// A moment; if ranks share the parameter, all of it at rank 0 and nothing elsewhere.
    pub(super) fn read_moment(&self, index: usize, moment: usize) -> Vec<f32> {
        let own = &self.moments[index][moment];
        match &self.holdings[index] {
            Some(holding) => to_leader(holding.cluster, &own[holding.own()]),
            None => pages::copy(own),
        }
    }

    /// A gradient; if ranks share the parameter, all of it at rank 0 and nothing elsewhere.
    pub(super) fn read_gradient(&self, index: usize) -> Vec<f32> {
        let gradient = &self.gradients[index];
        match &self.holdings[index] {
            Some(holding) => to_leader(holding.cluster, &gradient[holding.sums(holding.cluster.rank())]),
            None => pages::copy(gradient),
        }
    }

    /// Where one rank sums the gradient of an entry and another steps it, sends the gradient to the one that steps.
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

    /// For each block of entries whether the last step has changed it; empty before the first step, and for a parameter that
    /// is not dealt out.
    pub(super) fn changed_blocks(&self, index: usize) -> &[u8] {
        self.holdings[index].as_ref().map_or(&[], |holding| &holding.changed)
    }
}

/// The arrays of all ranks concatenated at rank 0; nothing at the others.
fn to_leader(cluster: Cluster, own: &[f32]) -> Vec<f32> {
    let mut parts = vec![Vec::new(); cluster.size()];
    parts[0] = own.to_vec();
    cluster.all_to_all(&parts).concat()
}
