//! The step of a parameter that several ranks share: in rounds, each rank steps some of its entries and sends their new values
//! to the others while these are still in a cache.

use std::ops::Range;

use rayon::prelude::*;

use super::holding::{Holding, blocks};
use super::shared::SharedSlice;
use super::step::{BLOCK, SPAN_ENTRIES, StepSpan, StepTask};
use super::update::Updates;
use super::vector::level::Level;
use crate::device::Step;
use crate::params::Parameter;
use crate::transport::lookup::prefetch::prefetch_line;

/// Values that all ranks together send in a round: few enough that both buffers stay in a cache.
const ROUND: usize = 1 << 19;

/// Prefetch distance: blocks between the one that is copied and the one that is prefetched.
const BLOCKS_AHEAD: usize = 8;

/// Numbers in a line of the cache.
const LINE: usize = 16;

/// For each round the entries that each rank steps. A rank's changed values are spread evenly over the rounds: otherwise ranks
/// that send much in different rounds would wait for each other in turns.
fn rounds(holding: &Holding) -> Vec<Vec<Range<usize>>> {
    let ranks = 0..holding.cluster.size();
    let counts = |rank| spans(holding.steps(rank)).map(|span| changed(holding, &span)).collect();
    let counts: Vec<Vec<usize>> = ranks.clone().map(counts).collect();
    let totals: Vec<usize> = counts.iter().map(|counts| counts.iter().sum()).collect();
    let most = totals.iter().copied().max().unwrap_or(0);
    let rounds = most.div_ceil(ROUND / ranks.len()).max(1);
    // The first entry of each round of one rank, and the end.
    let cuts = |rank: usize| {
        let of_rank = holding.steps(rank);
        let (mut cuts, mut passed) = (vec![of_rank.start], 0);
        for (span, count) in spans(of_rank.clone()).zip(&counts[rank]) {
            while cuts.len() < rounds && passed * rounds >= totals[rank] * cuts.len() {
                cuts.push(span.start);
            }
            passed += count;
        }
        cuts.resize(rounds + 1, of_rank.end);
        cuts
    };
    let cuts: Vec<Vec<usize>> = ranks.map(cuts).collect();
    let of_round = |round: usize| cuts.iter().map(|cuts| cuts[round]..cuts[round + 1]).collect();
    (0..rounds).map(of_round).collect()
}

/// The spans of a range of entries that begins with a span.
fn spans(entries: Range<usize>) -> impl Iterator<Item = Range<usize>> {
    let end = entries.end;
    let begins = entries.step_by(SPAN_ENTRIES);
    begins.map(move |begin| begin..(begin + SPAN_ENTRIES).min(end))
}

/// The spans of some entries, each with the place of its first changed value among all that are sent.
fn places(holding: &Holding, entries: Range<usize>) -> Vec<(Range<usize>, usize)> {
    let mut place = 0;
    let next = |span: Range<usize>| {
        let begin = place;
        place += changed(holding, &span);
        (span, begin)
    };
    spans(entries).map(next).collect()
}

/// Number of values in those blocks of `entries` that the step changes.
fn changed(holding: &Holding, entries: &Range<usize>) -> usize {
    let blocks = blocks(entries);
    let beyond = match holding.changed[blocks.clone()].last() {
        Some(1) => blocks.end * BLOCK - entries.end,
        _ => 0,
    };
    let count: usize = holding.changed[blocks]
        .iter()
        .map(|changed| usize::from(*changed))
        .sum();
    count * BLOCK - beyond
}

impl Updates {
    /// Steps a parameter that is dealt out, after which all ranks have its values. Returns the gradient's sum of squares for
    /// each span.
    pub(super) fn step_dealt(
        &mut self,
        level: Level,
        index: usize,
        parameter: &mut Parameter,
        step: &Step,
    ) -> Vec<f64> {
        let Some(mut holding) = self.holdings[index].take() else {
            return Vec::new();
        };
        let (cluster, own) = (holding.cluster, holding.own());
        self.forget_others(index, &own);
        let to_step = self.activity[index].to_step(blocks(&own), step.optimizer.masks_updates());
        holding.changed = holding.concat(&to_step, |rank| blocks(&holding.steps(rank)).len());
        let (mut squares, mut sent, mut arrived) = (Vec::new(), Vec::new(), Vec::new());
        for entries in rounds(&holding) {
            let lengths: Vec<usize> = entries.iter().map(|entries| changed(&holding, entries)).collect();
            let own = entries[cluster.rank()].clone();
            sent.resize(lengths[cluster.rank()], 0.0);
            squares.extend(self.step_round(level, index, parameter, step, (&holding, own), &mut sent));
            cluster.tell_others(&sent, &lengths, &mut arrived);
            let mut rest = &arrived[..];
            let ranks = entries.into_iter().enumerate();
            for (rank, entries) in ranks.filter(|(rank, _)| *rank != cluster.rank()) {
                let (told, others) = rest.split_at(lengths[rank]);
                rest = others;
                take_over(&mut parameter.values, &holding, entries, told);
            }
        }
        let squares = holding.of_spans(&squares);
        self.holdings[index] = Some(holding);
        squares
    }

    /// Zeroes the gradients of entries that other ranks step.
    fn forget_others(&mut self, index: usize, own: &Range<usize>) {
        let gradient = &mut self.gradients[index];
        let others = [0..own.start, own.end..gradient.len()];
        for block in others.iter().flat_map(blocks) {
            if self.activity[index].forget(block) {
                let end = ((block + 1) * BLOCK).min(gradient.len());
                gradient[block * BLOCK..end].fill(0.0);
            }
        }
    }

    /// Steps the entries of a round and copies the values of blocks that are stepped into `sent`. Returns the gradient's sum of
    /// squares for each span.
    fn step_round(
        &mut self,
        level: Level,
        index: usize,
        parameter: &mut Parameter,
        step: &Step,
        (holding, entries): (&Holding, Range<usize>),
        sent: &mut [f32],
    ) -> Vec<f64> {
        let arrays = (&mut self.gradients[index], &mut self.moments[index]);
        let Some(task) = StepTask::new(
            parameter,
            step,
            Some(holding.own()),
            (arrays, &mut self.activity[index]),
        ) else {
            return Vec::new();
        };
        let sent = SharedSlice::new(sent);
        let spans = places(holding, entries).into_par_iter();
        spans
            .map(|(span, place)| {
                level.run(StepSpan {
                    task: &task,
                    begin: span.start,
                    told: Some((&sent, place)),
                })
            })
            .collect()
    }
}

/// Copies the changed values of another rank's `entries`, which arrived in `told`, into `values`. Their blocks lie in main
/// memory and far apart, so that later ones are prefetched.
fn take_over(values: &mut [f32], holding: &Holding, entries: Range<usize>, told: &[f32]) {
    let values = SharedSlice::new(values);
    let spans = places(holding, entries).into_par_iter();
    spans.for_each(|(span, place)| {
        // SAFETY: spans have no entry in common, and each is copied by one thread.
        let values = unsafe { &mut values.get()[span.clone()] };
        let changed = &holding.changed[blocks(&span)];
        let mut told = &told[place..];
        for block in (0..changed.len()).filter(|&block| changed[block] != 0) {
            if changed.get(block + BLOCKS_AHEAD) == Some(&1) {
                let later = values[(block + BLOCKS_AHEAD) * BLOCK..].chunks(LINE).take(BLOCK / LINE);
                later.for_each(|line| prefetch_line(line.as_ptr()));
            }
            let end = ((block + 1) * BLOCK).min(values.len());
            let values = &mut values[block * BLOCK..end];
            values.copy_from_slice(&told[..values.len()]);
            told = &told[values.len()..];
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::Cluster;

    #[test]
    fn rounds_take_every_entry_once_and_each_the_same_part_of_what_changes() {
        // The first rank changes much at its beginning, the second nothing, the third all.
        let spans = [60usize, 3, 50];
        let begins = [0, 60, 63, 113].map(|span| span * SPAN_ENTRIES);
        let mut holding = Holding::new(Cluster::of(3, 0), begins.to_vec());
        let per_span = SPAN_ENTRIES / BLOCK;
        holding.changed = (0..113 * per_span)
            .map(|block| u8::from(block < 20 * per_span || block >= 63 * per_span))
            .collect();
        let rounds = rounds(&holding);
        assert_eq!(rounds.len(), (50 * SPAN_ENTRIES).div_ceil(ROUND / 3));
        for (rank, spans) in spans.into_iter().enumerate() {
            let mut end = begins[rank];
            for round in &rounds {
                assert_eq!(
                    (round[rank].start, round[rank].start % SPAN_ENTRIES),
                    (end, 0),
                    "rank {rank}"
                );
                end = round[rank].end;
                let part = changed(&holding, &round[rank]) / SPAN_ENTRIES;
                assert!(
                    part <= spans.div_ceil(rounds.len()) + 1,
                    "rank {rank} tells of {part} spans"
                );
            }
            assert_eq!(end, begins[rank + 1], "rank {rank}");
        }
    }

    #[test]
    fn what_another_rank_tells_comes_to_where_it_has_changed() {
        let len = SPAN_ENTRIES + 3 * BLOCK + 5;
        let mut holding = Holding::new(Cluster::of(2, 0), vec![0, 0, len]);
        holding.changed = (0..len.div_ceil(BLOCK)).map(|block| u8::from(block % 3 != 1)).collect();
        let is_told = |entry: usize| entry / BLOCK % 3 != 1;
        let told: Vec<f32> = (0..len)
            .filter(|&entry| is_told(entry))
            .map(|entry| entry as f32)
            .collect();
        assert_eq!(changed(&holding, &(0..len)), told.len());
        let mut values = vec![-1.0; len];
        take_over(&mut values, &holding, 0..len, &told);
        for (entry, value) in values.into_iter().enumerate() {
            assert_eq!(value, if is_told(entry) { entry as f32 } else { -1.0 });
        }
    }
}
