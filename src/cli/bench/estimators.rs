//! Compares path replay with the estimators that it replaces: time, memory, and the gradient's mean and variance, for
//! increasing path lengths.
//!
//! The objective is the mean of an image, whose adjoint image is constant and has no noise: all noise of the gradient
//! is the estimator's.

use std::path::Path;
use std::time::Instant;

use anyhow::{Context, bail, ensure};
use clap::ValueEnum;
use serde::Serialize;

use super::volume::{self, Setting};
use super::{BenchArgs, median, milliseconds_since, scene};
use crate::cli::Outcome;
use crate::cli::shared::check_output;
use crate::device::{ArrayKind, Batch, Device, DeviceError, Keys, ReplayStats};
use crate::io::atomic;
use crate::kernels::loss::Loss;
use crate::kernels::optimizer::Optimizer;
use crate::output::processor::processor_seconds;
use crate::output::streams::print_line;
use crate::params::ParamSet;
use crate::report::scaling::{self, Line, Panel};
use crate::resident::paths::{Estimator, Variant};
use crate::resident::{Resident, Transport};
use crate::scene::{Gradient, Rules};
use crate::transport::rays::pixel::PixelTable;
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
            Self::Prb => "path replay",
            Self::PrbDrt => "path replay, drt",
            Self::PrbPaired => "path replay, paired",
            Self::Ad => "tape",
            Self::Rb => "radiative",
            Self::RbBiased => "radiative, biased",
            Self::RbPipelined => "radiative, pipelined",
        }
    }
}

/// The estimators compared by default for a scene file: path replay only with free flight, which works in media of any kind.
const OF_SCENES: [Compared; 5] = [
    Compared::Prb,
    Compared::Ad,
    Compared::Rb,
    Compared::RbBiased,
    Compared::RbPipelined,
];

/// One estimator at one path length.
#[derive(Debug, Serialize)]
struct Row {
    max_depth: u32,
    spp: u32,
    estimator: Compared,
    /// The reason if the estimator cannot run.
    #[serde(skip_serializing_if = "Option::is_none")]
    refused: Option<String>,
    /// Medians over the runs: the adjoint pass, and adjoint and primal pass together.
    adjoint_ms: f64,
    iteration_ms: f64,
    /// Processor time of the primal and of the adjoint pass, all threads together.
    processor_ms: [f64; 2],
    /// Contributions gathered per path, about one per collision.
    contributions: f64,
    /// Bytes of the recorded tape, and of all other arrays: parameters, gradients, their accumulators, images.
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

/// Sums over runs of each entry and of its square, and for each run the sum of the gradient's entries.
#[derive(Default)]
struct Sums {
    entries: Vec<[f64; 2]>,
    totals: Vec<f64>,
}

/// Runs the command.
pub(super) fn run(args: &BenchArgs) -> anyhow::Result<Outcome> {
    if let Some(file) = &args.plot {
        check_plot(file, args.file.as_deref())?;
    }
    let mut figures = Figures {
        workload: super::describe(args),
        device: String::new(),
        runs: args.runs,
        rows: Vec::new(),
    };
    let compared = match (args.only.as_slice(), &args.file) {
        ([], None) => Compared::value_variants(),
        ([], Some(_)) => &OF_SCENES[..],
        (only, _) => only,
    };
    let few = [args.samples().spp];
    let spps = match args.spps.as_slice() {
        [] => &few[..],
        spps => spps,
    };
    for &max_depth in &args.depths {
        for &spp in spps {
            for &estimator in compared {
                let mut device = args.device.open()?;
                figures.device = format!("{} ({})", device.info().name, device.info().detail);
                let lengths = [max_depth, spp];
                figures.rows.push(measure(args, device.as_mut(), lengths, estimator)?);
            }
        }
    }
    if let Some(file) = &args.plot {
        let svg = plot(&figures.rows, spps.len() > 1).context("--plot: there is nothing to draw")?;
        atomic::write_bytes(file, svg.as_bytes())?;
    }
    if args.json {
        print_line(&serde_json::to_string(&figures)?);
    } else {
        print(&figures);
    }
    Ok(Outcome::Done)
}

/// Checks before the measurements that a plot can be written.
fn check_plot(file: &Path, scene: Option<&Path>) -> anyhow::Result<()> {
    let is_svg = file.extension().is_some_and(|e| e.eq_ignore_ascii_case("svg"));
    ensure!(
        is_svg,
        "{}: a plot is an SVG; give a name that ends in .svg",
        file.display()
    );
    let inputs: Vec<&Path> = scene.into_iter().collect();
    check_output(file, &inputs)
}

/// The smoke, or the scene of `args.file` seen by its first sensor, with the estimator and `max_depth` of `setting`.
fn prepare(args: &BenchArgs, setting: Setting) -> anyhow::Result<(Resident, ParamSet, Batch)> {
    let Some(path) = &args.file else {
        let (resident, params, mut batches) = volume::prepare(args, setting)?;
        return Ok((resident, params, batches.swap_remove(0)));
    };
    of_scene(args, path, setting).with_context(|| path.display().to_string())
}

fn of_scene(args: &BenchArgs, path: &Path, setting: Setting) -> anyhow::Result<(Resident, ParamSet, Batch)> {
    let mut scene = args.set.load(path)?;
    let integrator = &mut scene.integrator;
    integrator.estimator = setting.estimator;
    integrator.max_depth = Some(setting.max_depth);
    if integrator.rules == Rules::Volpath {
        integrator.gradient = setting.gradient;
    } else if setting.gradient != Gradient::FreeFlight {
        bail!("prb_drt and prb_paired differentiate media, which its integrator walks past; leave them out of --only");
    }
    // Only path replay moves the points of a path with the parameters; other estimators hold them fixed.
    integrator.attached &= setting.estimator == Estimator::PathReplay;
    integrator.inverted = integrator.inverted.filter(|_| integrator.attached);
    let (mut resident, mut params) = Resident::new(&scene)?;
    if !matches!(resident.transport, Transport::Paths(_)) {
        bail!("estimators of paths are compared; name a scene whose integrator follows paths");
    }
    scene::select(&mut resident, &mut params, &args.parameter)?;
    if resident.sensors.is_empty() {
        bail!("there is nothing to look through; add a sensor");
    }
    resident.set_constant_reference(scene::REFERENCE);
    let table = PixelTable::new(&resident.sensors, &[0])
        .context("the first view has more than 2³² pixels; make its film smaller")?;
    Ok((resident, params, Batch { table, drawn: None }))
}

fn measure(
    args: &BenchArgs,
    device: &mut dyn Device,
    [max_depth, spp]: [u32; 2],
    compared: Compared,
) -> anyhow::Result<Row> {
    let (estimator, gradient) = compared.estimator();
    let setting = Setting {
        estimator,
        gradient,
        max_depth,
        within: true,
    };
    // Load the scene.
    let (resident, params, batch) = prepare(args, setting)?;
    let parameters = params.parameters.iter().enumerate();
    let tuned: Vec<(usize, String)> = parameters
        .filter(|(_, p)| p.tuning.is_some())
        .map(|(i, p)| (i, p.path.clone()))
        .collect();
    device.load(resident, params, Optimizer::Sgd { momentum: 0.0 })?;
    let mut row = Row {
        max_depth,
        spp,
        estimator: compared,
        refused: None,
        adjoint_ms: 0.0,
        iteration_ms: 0.0,
        processor_ms: [0.0; 2],
        contributions: 0.0,
        tape_bytes: 0,
        other_bytes: 0,
        gradients: Vec::new(),
    };
    let mut sums: Vec<Sums> = tuned.iter().map(|_| Sums::default()).collect();
    let mut times = Vec::new();
    // One estimate per run, each with its own seed.
    for run in 0..args.runs {
        let (time, stats) = match estimate(device, &batch, [args.seed, run.into()], spp, estimator) {
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
    row.adjoint_ms = median(steady.iter().map(|t| t.adjoint));
    row.iteration_ms = median(steady.iter().map(|t| t.primal + t.adjoint));
    row.processor_ms = [0, 1].map(|pass| median(steady.iter().map(|t| t.processor[pass])));
    row.other_bytes = device.memory() - row.tape_bytes;
    let named = tuned.iter().zip(&sums);
    row.gradients = named.map(|((_, path), sums)| sums.moments(path)).collect();
    Ok(row)
}

/// Milliseconds of one estimate.
struct Time {
    primal: f64,
    adjoint: f64,
    /// Processor time of the primal and of the adjoint pass, all threads together.
    processor: [f64; 2],
}

/// One estimate, by a seed and the number of a run.
fn estimate(
    device: &mut dyn Device,
    batch: &Batch,
    [seed, run]: [u64; 2],
    spp: u32,
    estimator: Estimator,
) -> crate::device::Result<(Time, ReplayStats)> {
    let keys = |pass| Keys {
        objective: pass_key(seed, run as u32, Pass::Objective),
        pass: pass_key(seed, run as u32, pass),
    };
    let mut clock = (Instant::now(), processor_seconds());
    let mut lap = || {
        let (begun, processor) = std::mem::replace(&mut clock, (Instant::now(), processor_seconds()));
        [begun.elapsed().as_secs_f64() * 1e3, milliseconds_since(processor)]
    };
    let pipelined = estimator.is_pipelined() && run > 0;
    let (pass, primal, stats, adjoint) = if pipelined {
        let stats = device.render_and_backpropagate(batch, keys(Pass::Adjoint), spp)?;
        (Pass::Adjoint, [0.0; 2], Some(stats), lap())
    } else {
        device.render(batch, keys(Pass::Primal), spp)?;
        device.finish()?;
        (Pass::Primal, lap(), None, [0.0; 2])
    };
    device.loss(batch, keys(pass), MEAN)?;
    lap();
    let (stats, adjoint) = match stats {
        Some(stats) => (stats, adjoint),
        None => {
            let stats = device.backpropagate(batch, keys(Pass::Adjoint), spp)?;
            device.finish()?;
            (stats, lap())
        }
    };
    let time = Time {
        primal: primal[0],
        adjoint: adjoint[0],
        processor: [primal[1], adjoint[1]],
    };
    Ok((time, stats))
}

/// Time of both passes and memory of all estimators by the samples a pixel, or else by the length of paths.
fn plot(rows: &[Row], by_samples: bool) -> Option<String> {
    let mut compared: Vec<Compared> = Vec::new();
    for row in rows {
        if !compared.contains(&row.estimator) {
            compared.push(row.estimator);
        }
    }
    let panel = |title, value: fn(&Row) -> f64| {
        let line = |estimator: &Compared| Line {
            name: estimator.name().to_owned(),
            points: rows
                .iter()
                .filter(|row| row.refused.is_none() && row.estimator == *estimator)
                .map(|row| (f64::from(if by_samples { row.spp } else { row.max_depth }), value(row)))
                .collect(),
        };
        Panel {
            title,
            across: if by_samples {
                "samples a pixel"
            } else {
                "edges of the longest path"
            },
            lines: compared.iter().map(line).collect(),
        }
    };
    scaling::svg(&[
        panel("Primal pass, ms of processors", |row| row.processor_ms[0]),
        panel("Adjoint pass, ms of processors", |row| row.processor_ms[1]),
        panel("Tape and all else on the device, MiB", |row| {
            mib(row.tape_bytes + row.other_bytes)
        }),
    ])
}

fn mib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
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
        "{:>6}{:>5}  {:<21}{:>11}{:>11}{:>11}{:>10}{:>10}{:>11}",
        "depth", "spp", "estimator", "adjoint ms", "processor", "iteration", "tape MiB", "rest MiB", "a path"
    );
    print_line(&(head + &parameters.collect::<String>()));
    figures.rows.iter().for_each(|row| print_line(&in_words(row)));
}

fn in_words(row: &Row) -> String {
    let of = format!("{:>6}{:>5}  {:<21}", row.max_depth, row.spp, row.estimator.name());
    if let Some(why) = &row.refused {
        return format!("{of}  {why}");
    }
    let costs = format!(
        "{:>11.1}{:>11.1}{:>11.1}{:>10.1}{:>10.1}{:>11.1}",
        row.adjoint_ms,
        row.processor_ms[1],
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
