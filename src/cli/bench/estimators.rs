//! Compares path replay with the estimators that it replaces: time, memory, and the gradient's mean and variance, for
//! increasing path lengths.
//!
//! The objective is the mean of an image, whose adjoint image is constant and has no noise: all noise of the gradient
//! is the estimator's.

use std::time::Instant;

use clap::ValueEnum;
use serde::Serialize;

use super::volume::{self, Setting};
use super::{BenchArgs, median};
use crate::cli::Outcome;
use crate::device::{ArrayKind, Batch, Device, DeviceError, Keys, ReplayStats};
use crate::kernels::loss::Loss;
use crate::kernels::optimizer::Optimizer;
use crate::output::progress::print_line;
use crate::resident::paths::{Estimator, Variant};
use crate::scene::Gradient;
use crate::transport::rays::random::{Pass, pass_key};

/// The objective: [`Loss::Linear`] with weight one is the image's mean.
const MEAN: Loss = Loss::Linear { seed: 0 };

/// An estimator to compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[value(rename_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub(super) enum Compared {
    /// Path replay at the collisions of free flight, as all but the next two
    Prb,
    /// Path replay with differential ratio tracking
    PrbDrt,
    /// Path replay with paired points
    PrbPaired,
    /// Conventional differentiation
    Ad,
    /// Radiative backpropagation
    Rb,
    /// The same with incident radiance taken for one
    RbBiased,
    /// The same along the primal's paths, with the adjoint image of the iteration before
    RbPipelined,
}

impl Compared {
    fn estimator(self) -> (Estimator, Gradient) {
        let estimator = match self {
            Self::Prb | Self::PrbDrt | Self::PrbPaired => Estimator::PathReplay,
            Self::Ad => Estimator::Tape,
            Self::Rb => Estimator::Radiative(Variant::Unbiased),
            Self::RbBiased => Estimator::Radiative(Variant::Biased),
            Self::RbPipelined => Estimator::Radiative(Variant::Pipelined),
        };
        let gradient = match self {
            Self::PrbDrt => Gradient::Drt,
            Self::PrbPaired => Gradient::Paired,
            _ => Gradient::FreeFlight,
        };
        (estimator, gradient)
    }

    fn name(self) -> &'static str {
        match self {
            Self::Prb => "prbvolpath",
            Self::PrbDrt => "prbvolpath, drt",
            Self::PrbPaired => "prbvolpath, paired",
            Self::Ad => "advolpath",
            Self::Rb => "rbvolpath",
            Self::RbBiased => "rbvolpath, biased",
            Self::RbPipelined => "rbvolpath, pipelined",
        }
    }
}

/// One estimator at one path length.
#[derive(Debug, Serialize)]
struct Row {
    max_depth: u32,
    estimator: Compared,
    /// The reason if the estimator cannot run.
    #[serde(skip_serializing_if = "Option::is_none")]
    refused: Option<String>,
    /// Medians over the runs: the adjoint pass, and adjoint and primal pass together.
    adjoint_ms: f64,
    iteration_ms: f64,
    /// Contributions gathered per path, about one per collision.
    contributions: f64,
    /// Bytes of the recorded tape, and of all other arrays: parameters, gradients, their sums, images.
    tape_bytes: u64,
    other_bytes: u64,
    gradients: Vec<Moments>,
}

/// Statistics of the gradient by a parameter over the runs.
#[derive(Debug, Serialize)]
struct Moments {
    parameter: String,
    /// Sum of the mean's entries, and its standard error.
    mean: f64,
    error: f64,
    /// Sum over the entries of the variance of one estimate.
    variance: f64,
}

#[derive(Debug, Serialize)]
struct Figures {
    workload: String,
    device: String,
    runs: u32,
    rows: Vec<Row>,
}

/// Sums over runs: of each entry and its square; and the gradient's sum of every run.
#[derive(Default)]
struct Sums {
    entries: Vec<[f64; 2]>,
    totals: Vec<f64>,
}

/// Runs the command.
pub(super) fn run(args: &BenchArgs) -> anyhow::Result<Outcome> {
    let mut figures = Figures {
        workload: super::describe(args),
        device: String::new(),
        runs: args.runs,
        rows: Vec::new(),
    };
    let compared = match args.only.as_slice() {
        [] => Compared::value_variants(),
        only => only,
    };
    for &max_depth in &args.depths {
        for &estimator in compared {
            let mut device = args.device.open()?;
            figures.device = format!("{} ({})", device.info().name, device.info().detail);
            figures.rows.push(measure(args, device.as_mut(), max_depth, estimator)?);
        }
    }
    if args.json {
        print_line(&serde_json::to_string(&figures)?);
    } else {
        print(&figures);
    }
    Ok(Outcome::Done)
}

fn measure(args: &BenchArgs, device: &mut dyn Device, max_depth: u32, compared: Compared) -> anyhow::Result<Row> {
    let (estimator, gradient) = compared.estimator();
    let setting = Setting {
        estimator,
        gradient,
        max_depth,
        within: true,
    };
    // Load the scene.
    let (resident, params, batches) = volume::prepare(args, setting)?;
    let parameters = params.parameters.iter().enumerate();
    let tuned: Vec<(usize, String)> = parameters
        .filter(|(_, p)| p.tuning.is_some())
        .map(|(i, p)| (i, p.path.clone()))
        .collect();
    device.load(resident, params, Optimizer::Sgd { momentum: 0.0 })?;
    let mut row = Row {
        max_depth,
        estimator: compared,
        refused: None,
        adjoint_ms: 0.0,
        iteration_ms: 0.0,
        contributions: 0.0,
        tape_bytes: 0,
        other_bytes: 0,
        gradients: Vec::new(),
    };
    let mut sums: Vec<Sums> = tuned.iter().map(|_| Sums::default()).collect();
    let mut times = Vec::new();
    // One estimate per run, each with its own seed.
    for run in 0..args.runs {
        let (time, stats) = match estimate(device, &batches[0], args, run, estimator) {
            Err(DeviceError::TooLarge(why)) => {
                row.refused = Some(why);
                return Ok(row);
            }
            other => other?,
        };
        times.push(time);
        row.contributions = stats.samples as f64 / stats.rays as f64;
        row.tape_bytes = row.tape_bytes.max(stats.tape_bytes);
        for ((index, _), sums) in tuned.iter().zip(&mut sums) {
            sums.add(&device.read(*index, ArrayKind::Gradient)?);
        }
        device.clear_gradients()?;
    }
    // The first iteration of a pipelined estimator has no previous adjoint image.
    let steady = if estimator.is_pipelined() {
        &times[1..]
    } else {
        &times[..]
    };
    row.adjoint_ms = median(steady.iter().map(|t| t[1]));
    row.iteration_ms = median(steady.iter().map(|t| t[0] + t[1]));
    row.other_bytes = device.memory() - row.tape_bytes;
    let named = tuned.iter().zip(&sums);
    row.gradients = named.map(|((_, path), sums)| sums.moments(path)).collect();
    Ok(row)
}

/// Milliseconds of the primal and of the adjoint pass of one estimate.
fn estimate(
    device: &mut dyn Device,
    batch: &Batch,
    args: &BenchArgs,
    run: u32,
    estimator: Estimator,
) -> crate::device::Result<([f64; 2], ReplayStats)> {
    let keys = |pass| Keys {
        objective: pass_key(args.seed, run, Pass::Objective),
        pass: pass_key(args.seed, run, pass),
    };
    let begun = Instant::now();
    if estimator.is_pipelined() && run > 0 {
        let stats = device.render_and_backpropagate(batch, keys(Pass::Adjoint), args.samples().spp)?;
        let time = begun.elapsed().as_secs_f64() * 1e3;
        device.loss(batch, keys(Pass::Adjoint), MEAN)?;
        return Ok(([0.0, time], stats));
    }
    device.render(batch, keys(Pass::Primal), args.samples().spp)?;
    device.finish()?;
    let primal = begun.elapsed().as_secs_f64() * 1e3;
    device.loss(batch, keys(Pass::Primal), MEAN)?;
    let begun = Instant::now();
    let stats = device.backpropagate(batch, keys(Pass::Adjoint), args.samples().spp)?;
    device.finish()?;
    Ok(([primal, begun.elapsed().as_secs_f64() * 1e3], stats))
}

impl Sums {
    fn add(&mut self, gradient: &[f32]) {
        self.entries.resize(gradient.len(), [0.0; 2]);
        let mut total = 0.0;
        for (entry, g) in self.entries.iter_mut().zip(gradient) {
            let g = f64::from(*g);
            entry[0] += g;
            entry[1] += g * g;
            total += g;
        }
        self.totals.push(total);
    }

    fn moments(&self, path: &str) -> Moments {
        let n = self.totals.len() as f64;
        let spread = |sum: f64, squares: f64| ((squares - sum * sum / n) / (n - 1.0)).max(0.0);
        let sum: f64 = self.totals.iter().sum();
        let squares: f64 = self.totals.iter().map(|t| t * t).sum();
        Moments {
            parameter: path.to_string(),
            mean: sum / n,
            error: (spread(sum, squares) / n).sqrt(),
            variance: self.entries.iter().map(|[sum, squares]| spread(*sum, *squares)).sum(),
        }
    }
}

fn print(figures: &Figures) {
    print_line(&format!(
        "{} on {}, {} runs",
        figures.workload, figures.device, figures.runs
    ));
    let names = figures.rows.iter().find(|row| row.refused.is_none());
    let parameters = names.iter().flat_map(|row| &row.gradients).map(|g| {
        let name = g.parameter.rsplit('.').next().unwrap_or_default();
        format!("  {:>23}{:>11}", format!("{name}: mean"), "variance")
    });
    let head = format!(
        "{:>6}  {:<21}{:>11}{:>11}{:>10}{:>10}{:>11}",
        "depth", "estimator", "adjoint ms", "iteration", "tape MiB", "rest MiB", "a path"
    );
    print_line(&(head + &parameters.collect::<String>()));
    figures.rows.iter().for_each(|row| print_line(&in_words(row)));
}

fn in_words(row: &Row) -> String {
    let of = format!("{:>6}  {:<21}", row.max_depth, row.estimator.name());
    if let Some(why) = &row.refused {
        return format!("{of}  {why}");
    }
    let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    let costs = format!(
        "{:>11.1}{:>11.1}{:>10.1}{:>10.1}{:>11.1}",
        row.adjoint_ms,
        row.iteration_ms,
        mib(row.tape_bytes),
        mib(row.other_bytes),
        row.contributions
    );
    let gradients = row.gradients.iter().map(|g| {
        let mean = format!("{:.3e} ± {:.1e}", g.mean, g.error);
        format!("  {mean:>23}{:>11.2e}", g.variance)
    });
    of + &costs + &gradients.collect::<String>()
}
