//! Conventional reverse-mode differentiation of paths. The paths of a batch are recorded all together and the
//! record is then read backwards, as a system does that differentiates an image as a whole.

use rayon::prelude::*;

use super::passes::Propagation;
use crate::device::cpu::chunk::{Chunk, Place};
use crate::device::{DeviceError, ReplayStats, Result};
use crate::transport::mode::GATHER;
use crate::transport::number::Number;
use crate::transport::number::tape::{Budget, MAX_VARIABLES, Recorded, Tape};
use crate::transport::paths::volpath::gather;
use crate::transport::scene::records::Fields;

/// The parameters as variables of a tape, numbered consecutively.
struct Variables<'a> {
    integrand: Vec<Vec<Recorded>>,
    sampling: Vec<&'a [f32]>,
    /// For each parameter the number of its first entry.
    first: Vec<usize>,
}

impl Fields<Recorded> for Variables<'_> {
    const TWO_SIDED: bool = true;
    const TRACKED: bool = true;
    fn integrand(&self, slot: u32) -> &[Recorded] {
        &self.integrand[slot as usize]
    }
    fn sampling(&self, slot: u32) -> &[f32] {
        self.sampling[slot as usize]
    }
}

impl<'a> Variables<'a> {
    fn new(pass: &Propagation<'a>) -> Result<Self> {
        let parameters = &pass.inputs.params.parameters;
        let mut count = 0;
        let mut variables = Self {
            integrand: Vec::new(),
            sampling: parameters.iter().map(|p| &p.values[..]).collect(),
            first: Vec::new(),
        };
        for parameter in parameters {
            let (first, tuned) = (count, parameter.tuning.is_some());
            count += parameter.values.len();
            if count > MAX_VARIABLES {
                return Err(DeviceError::TooLarge(format!(
                    "conventional differentiation (`advolpath`) numbers at most {MAX_VARIABLES} values; use a coarser \
                     grid, or `prbvolpath`"
                )));
            }
            let number = |(i, x): (usize, &f32)| match tuned {
                true => Recorded::variable(first + i, f64::from(*x)),
                false => Recorded::lift(*x),
            };
            variables.first.push(first);
            variables
                .integrand
                .push(parameter.values.iter().enumerate().map(number).collect());
        }
        Ok(variables)
    }
}

/// A recorded chunk: its tape, and on it the sum of the chunk's samples, each times the loss's derivative by the sample.
struct Record {
    tape: Tape,
    sum: Recorded,
    stats: ReplayStats,
}

/// Adds a batch's derivatives to the sums.
pub(in crate::device::cpu) fn differentiate(pass: &Propagation<'_>, chunks: &[Chunk]) -> Result<ReplayStats> {
    let most = pass.inputs.tape_limit;
    let budget = Budget::new(usize::try_from(most).unwrap_or(usize::MAX));
    let variables = Variables::new(pass)?;
    let record = |(i, &chunk): (usize, &Chunk)| {
        Tape::begin(Some(&budget));
        let (sum, mut stats) = record(pass, &variables, i, chunk);
        let overflown = Tape::has_overflown();
        let tape = Tape::end();
        stats.tape_bytes = tape.bytes() as u64;
        (!overflown).then_some(Record { tape, sum, stats })
    };
    let records: Option<Vec<Record>> = chunks
        .par_iter()
        .enumerate()
        .filter(|(i, _)| pass.inputs.cluster.owns(*i))
        .map(record)
        .collect();
    let records = records.ok_or_else(|| {
        DeviceError::TooLarge(format!(
            "the tape of conventional differentiation (`advolpath`) exceeds {:.1} GiB, the most that it may take; use \
             fewer pixels or samples, a smaller `max_depth`, or `prbvolpath`, which needs no tape",
            most as f64 / f64::from(1u32 << 30)
        ))
    })?;
    let stats = records
        .iter()
        .map(|r| r.stats)
        .fold(ReplayStats::default(), |a, b| a + b);
    records.into_par_iter().for_each(|Record { tape, sum, .. }| {
        let mut sink = pass.sink();
        tape.backpropagate(sum, |variable, d| {
            let slot = variables.first.partition_point(|first| *first <= variable) - 1;
            sink.add(slot, variable - variables.first[slot], d as f32);
        });
    });
    Ok(stats)
}

/// Records the paths of a chunk.
fn record(pass: &Propagation<'_>, variables: &Variables<'_>, i: usize, chunk: Chunk) -> (Recorded, ReplayStats) {
    let mut sum = Recorded::lift(0.0);
    let mut stats = ReplayStats::default();
    for (Place { pixel, .. }, d) in pass.pixels(i, chunk).filter(|(_, d)| *d != [0.0; 3]) {
        let sampling = pass.sampling();
        for begun in sampling.of(pixel).map_while(|begun| begun) {
            let path =
                gather::<Recorded, _, GATHER>(pass.scene, variables, &begun.ray, begun.medium, begun.streams.walk());
            for c in 0..3 {
                sum += path.gathered.radiance[c] * Recorded::lift(d[c] * begun.weight);
            }
            stats.rays += 1;
            stats.samples += u64::from(path.gathered.count);
            if Tape::has_overflown() {
                return (sum, stats);
            }
        }
    }
    (sum, stats)
}
