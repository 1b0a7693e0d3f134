//! `prbopt bench`: times the passes of an iteration and compares them with the machine's peak rates.

mod estimators;
mod machine_peaks;
mod noise;
mod rays;
mod volume;
mod workload;

use std::path::PathBuf;
use std::time::Instant;

use clap::{Args, ValueEnum};
use serde::Serialize;

use super::Outcome;
use super::shared::DeviceArgs;
use crate::device::{Batch, Device, Keys, Step, parameter_bytes};
use crate::kernels::loss::Loss;
use crate::kernels::optimizer::Optimizer;
use crate::output::progress::print_line;
use crate::scene::Gradient;
use crate::transport::rays::random::{Pass, pass_key};
use estimators::Compared;

/// Arguments of `prbopt bench`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    prbopt bench radiance_field --resolution 64 --image 128 --device cpu --json\n  \
    prbopt bench volume --gradient drt\n  \
    prbopt bench estimators --depths 4,16 --only prb,ad\n  \
    prbopt bench rays mesh.ply --rays 500000")]
pub struct BenchArgs {
    /// What to time
    #[arg(value_enum, default_value_t = Workload::RadianceField)]
    workload: Workload,
    /// Mesh that rays leave, PLY or OBJ
    #[arg(required_if_eq("workload", "rays"))]
    mesh: Option<PathBuf>,
    /// Rays from the mesh
    #[arg(long, value_name = "N", default_value_t = 500_000, value_parser = clap::value_parser!(u32).range(1..=100_000_000))]
    rays: u32,
    /// Texels along each edge of the grids
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=1024))]
    resolution: u32,
    /// Pixels along each edge of a view [default: 128; of estimators 16]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=8192))]
    image: Option<u32>,
    /// Degree of the spherical harmonics
    #[arg(long, value_name = "DEGREE", default_value_t = 2, value_parser = clap::value_parser!(u32).range(0..=3))]
    sh_degree: u32,
    /// Samples a pixel of the primal pass
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=4096))]
    spp: u32,
    /// Samples a pixel of the adjoint pass [default: as many as of the primal pass]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    spp_grad: Option<u32>,
    /// Longest path of a volume, in edges
    #[arg(long, value_name = "EDGES", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    max_depth: u32,
    /// Longest paths, in edges, for which estimators are compared; with commas between them
    #[arg(long, value_name = "EDGES", value_delimiter = ',', default_values_t = [4, 16, 64, 256], value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    depths: Vec<u32>,
    /// Only these estimators, with commas between them [default: all]
    #[arg(long, value_name = "ESTIMATOR", value_enum, value_delimiter = ',')]
    only: Vec<Compared>,
    /// Albedo of a volume [default: 0.9; of estimators 0.99]
    #[arg(long)]
    albedo: Option<f32>,
    /// Factor on the density of a volume, whose largest value is near one [default: 20; of estimators 400]
    #[arg(long, value_name = "FACTOR")]
    scale: Option<f32>,
    /// How the extinction of a volume is differentiated
    #[arg(long, value_enum, default_value_t = GradientKind::Paired)]
    gradient: GradientKind,
    /// Iterations that are timed, after two that are not
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    iterations: u32,
    #[command(flatten)]
    device: DeviceArgs,
    /// Seed of the random numbers
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Seeds over which the noise of a gradient is estimated
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = clap::value_parser!(u32).range(2..=1_000_000))]
    runs: u32,
    /// Print one line of JSON
    #[arg(long)]
    json: bool,
}

/// What can be timed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
enum Workload {
    /// One view an iteration: render, L2 loss against a constant, PRB adjoint, Adam on all parameters
    RadianceField,
    /// The same for smoke with multiple scattering, seen by one camera
    Volume,
    /// The noise of that gradient: its variance over `--runs` seeds, and the time of one estimate
    GradientNoise,
    /// Path replay beside conventional differentiation and radiative backpropagation, from within glowing smoke where
    /// paths get as long as `--depths` allows: time, memory, mean and variance of the gradient
    Estimators,
    /// A hierarchy over a mesh: the time of building it on all threads, and of how many rays a second one thread finds
    /// the first hits, cosine-distributed from all over its surface; the best of five
    Rays,
}

impl BenchArgs {
    fn pick<T>(&self, given: Option<T>, default: T, of_estimators: T) -> T {
        given.unwrap_or(match self.workload {
            Workload::Estimators => of_estimators,
            _ => default,
        })
    }

    fn image(&self) -> u32 {
        self.pick(self.image, 128, 16)
    }

    fn albedo(&self) -> f32 {
        self.pick(self.albedo, 0.9, 0.99)
    }

    fn scale(&self) -> f32 {
        self.pick(self.scale, 20.0, 400.0)
    }
}

/// The values of an integrator's `gradient`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[value(rename_all = "snake_case")]
#[serde(rename_all = "snake_case")]
enum GradientKind {
    Paired,
    Drt,
    FreeFlight,
}

impl GradientKind {
    fn name(self) -> &'static str {
        match self {
            Self::Paired => "paired",
            Self::Drt => "drt",
            Self::FreeFlight => "free_flight",
        }
    }
}

impl From<GradientKind> for Gradient {
    fn from(kind: GradientKind) -> Self {
        match kind {
            GradientKind::Paired => Self::Paired,
            GradientKind::Drt => Self::Drt,
            GradientKind::FreeFlight => Self::FreeFlight,
        }
    }
}

/// Medians over the timed iterations.
#[derive(Debug, Serialize)]
struct Figures {
    workload: String,
    device: String,
    iteration_ms: f64,
    primal_ms: f64,
    loss_ms: f64,
    adjoint_ms: f64,
    step_ms: f64,
    /// Samples per second of the whole iteration: along rays, of the primal pass and of both walks of the adjoint
    /// pass.
    samples_per_second: f64,
    peak_rss_mib: Option<u64>,
    device_mib: u64,
    /// Lower bound of the step's time: bytes that it must move over the copy bandwidth.
    step_floor_ms: f64,
    step_ratio_to_floor: f64,
    memory_gb_per_second: f64,
}

/// Milliseconds of the parts of an iteration.
#[derive(Debug, Clone, Copy, Default)]
struct Timing {
    primal: f64,
    loss: f64,
    adjoint: f64,
    step: f64,
    samples: u64,
}

/// Runs the command.
pub fn run(args: BenchArgs) -> anyhow::Result<Outcome> {
    let optimizer = Optimizer::Adam {
        beta_1: 0.9,
        beta_2: 0.999,
        epsilon: 1e-8,
        mask_updates: false,
    };
    let (resident, params, batches) = match args.workload {
        Workload::RadianceField => workload::prepare(&args)?,
        Workload::Volume => volume::prepare(&args, volume::Setting::of(&args))?,
        Workload::GradientNoise => return noise::run(&args),
        Workload::Estimators => return estimators::run(&args),
        Workload::Rays => return rays::run(&args),
    };
    let bytes = parameter_bytes(
        params.parameters.iter().map(|p| (p.shape, p.tuning.is_some())),
        optimizer,
    );
    let mut device = args.device.open()?;
    device.load(resident, params, optimizer)?;

    let mut timings = Vec::new();
    for iteration in 0..args.iterations + 2 {
        let batch = &batches[iteration as usize % batches.len()];
        timings.push(iterate(device.as_mut(), batch, optimizer, &args, iteration)?);
    }
    let timings = &timings[2..];
    // Read the peak memory before the bandwidth is measured, whose arrays do not belong to the workload.
    let peak_rss_mib = crate::output::memory::peak_resident_mib();
    let bandwidth = machine_peaks::memory_bandwidth();
    let total = |t: &Timing| t.primal + t.loss + t.adjoint + t.step;
    let iteration_ms = median(timings.iter().map(total));
    let step_ms = median(timings.iter().map(|t| t.step));
    // The step reads and writes values, gradient and moments once.
    let step_floor_ms = 2.0 * bytes as f64 / bandwidth * 1e3;
    let samples = timings.iter().map(|t| 3 * t.samples).sum::<u64>() as f64;
    let figures = Figures {
        workload: describe(&args),
        device: format!("{} ({})", device.info().name, device.info().detail),
        iteration_ms,
        primal_ms: median(timings.iter().map(|t| t.primal)),
        loss_ms: median(timings.iter().map(|t| t.loss)),
        adjoint_ms: median(timings.iter().map(|t| t.adjoint)),
        step_ms,
        samples_per_second: samples / (timings.iter().map(total).sum::<f64>() * 1e-3),
        peak_rss_mib,
        device_mib: device.memory() >> 20,
        step_floor_ms,
        step_ratio_to_floor: step_ms / step_floor_ms,
        memory_gb_per_second: bandwidth * 1e-9,
    };
    print(&figures, args.json)?;
    Ok(Outcome::Done)
}

fn describe(args: &BenchArgs) -> String {
    let BenchArgs {
        resolution,
        sh_degree,
        spp,
        max_depth,
        ..
    } = args;
    let (image, albedo, scale) = (args.image(), args.albedo(), args.scale());
    let spp_grad = args.spp_grad.unwrap_or(*spp);
    match args.workload {
        Workload::Rays => format!("rays={}", args.rays),
        Workload::RadianceField => {
            format!("radiance_field resolution={resolution} image={image} sh_degree={sh_degree} spp={spp}+{spp_grad}")
        }
        Workload::Volume | Workload::GradientNoise => format!(
            "volume resolution={resolution} image={image} spp={spp}+{spp_grad} max_depth={max_depth} albedo={albedo} \
             scale={scale}"
        ),
        Workload::Estimators => {
            format!("estimators resolution={resolution} image={image} spp={spp} albedo={albedo} scale={scale}")
        }
    }
}

fn iterate(
    device: &mut dyn Device,
    batch: &Batch,
    optimizer: Optimizer,
    args: &BenchArgs,
    iteration: u32,
) -> anyhow::Result<Timing> {
    let mut clock = Instant::now();
    let mut lap = || {
        let now = Instant::now();
        now.duration_since(std::mem::replace(&mut clock, now)).as_secs_f64() * 1e3
    };
    let objective = pass_key(args.seed, iteration, Pass::Objective);
    let keys = |pass| Keys {
        objective,
        pass: pass_key(args.seed, iteration, pass),
    };
    device.render(batch, keys(Pass::Primal), args.spp)?;
    device.finish()?;
    let primal = lap();
    device.loss(batch, keys(Pass::Primal), Loss::L2)?;
    let loss = lap();
    let stats = device.backpropagate(batch, keys(Pass::Adjoint), args.spp_grad.unwrap_or(args.spp))?;
    let adjoint = lap();
    device.step(&Step {
        optimizer,
        rate: 1.0,
        count: iteration + 1,
    })?;
    device.rebuild()?;
    device.finish()?;
    Ok(Timing {
        primal,
        loss,
        adjoint,
        step: lap(),
        samples: stats.samples,
    })
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn print(figures: &Figures, json: bool) -> anyhow::Result<()> {
    if json {
        print_line(&serde_json::to_string(figures)?);
        return Ok(());
    }
    print_line(&format!("{} on {}", figures.workload, figures.device));
    print_line(&format!("  iteration {:8.1} ms", figures.iteration_ms));
    print_line(&format!("    primal  {:8.1} ms", figures.primal_ms));
    print_line(&format!("    loss    {:8.1} ms", figures.loss_ms));
    print_line(&format!("    adjoint {:8.1} ms", figures.adjoint_ms));
    print_line(&format!(
        "    step    {:8.1} ms, {:.1} times its floor of {:.1} ms at {:.1} GB/s",
        figures.step_ms, figures.step_ratio_to_floor, figures.step_floor_ms, figures.memory_gb_per_second
    ));
    let rate = figures.samples_per_second * 1e-6;
    print_line(&format!("  {rate:.1} million samples a second"));
    if let Some(peak) = figures.peak_rss_mib {
        print_line(&format!("  peak resident memory {peak} MiB"));
    }
    Ok(())
}
