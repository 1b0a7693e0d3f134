//! `prbopt bench`: times the passes of an iteration and compares them with the machine's peak rates.

mod estimators;
mod machine_peaks;
mod moments;
mod noise;
mod rays;
mod scene;
mod splats;
mod volume;
mod workload;

use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Instant;

use anyhow::bail;
use clap::{Args, ValueEnum};
use serde::Serialize;

use super::Outcome;
use super::shared::{DeviceArgs, SetArgs};
use crate::device::{Batch, Device, Keys, ReplayStats, Step, parameter_bytes};
use crate::kernels::loss::Loss;
use crate::kernels::optimizer::Optimizer;
use crate::output::processor::processor_seconds;
use crate::output::streams::print_line;
use crate::scene::Gradient;
use crate::transport::rays::random::{Pass, pass_key};
use estimators::Compared;

/// Arguments of `prbopt bench`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    prbopt bench scenes/smoke.json --parameter smoke.interior.sigma_t --noise 32\n  \
    prbopt bench radiance_field --resolution 64 --image 128 --device cpu --json\n  \
    prbopt bench volume --gradient drt\n  \
    prbopt bench estimators --depths 4,16 --only prb,ad\n  \
    prbopt bench estimators scenes/figurine.json --depths 8,32,128 --plot depths.svg\n  \
    prbopt bench rays mesh.ply --rays 500000\n  \
    prbopt bench splats --splats 1000,10000,100000 --image 1024 --device cpu")]
pub struct BenchArgs {
    /// What to time: the file of a scene, or a workload: radiance_field (one view an iteration: render, L2 loss, PRB
    /// adjoint, Adam on all parameters), volume (the same for smoke with multiple scattering), gradient_noise (the
    /// noise of that gradient: its variance over `--runs` seeds, and the time of one estimate), estimators (path replay
    /// beside conventional differentiation and radiative backpropagation, of a scene, or without one from within glowing
    /// smoke where paths get as long as `--depths` allows: time, memory, mean and variance of the gradient), rays (a hierarchy over a mesh: the
    /// time of building and of refitting it on all threads, and of how many rays a second one thread finds the first hits,
    /// cosine-distributed from all over its surface; the best of five) or splats (pictures of `--splats` splats: an
    /// iteration beside the least that its exponentials and bytes take, and how its time follows the number of splats)
    #[arg(value_name = "SCENE|WORKLOAD", default_value = "radiance_field", value_hint = clap::ValueHint::FilePath)]
    subject: Subject,
    /// Of rays, the mesh that they leave, PLY or OBJ; of estimators, the file of a scene
    #[arg(value_name = "FILE", required_if_eq("subject", "rays"))]
    file: Option<PathBuf>,
    /// Rays from the mesh
    #[arg(long, value_name = "N", default_value_t = 500_000, value_parser = clap::value_parser!(u32).range(1..=100_000_000))]
    rays: u32,
    /// Of a scene, the path of a parameter to differentiate, which the steps leave as it is; may be repeated [default:
    /// all that the scene optimises]
    #[arg(long, value_name = "PATH")]
    parameter: Vec<String>,
    /// Of a scene, iterate over N seeds without steps and tell how the gradients vary: the sum over the entries of the
    /// variance of one estimate, norm and sum of the mean
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=1_000_000))]
    noise: Option<u32>,
    /// Of a scene on a GPU, also tell what each of its kernels takes, by the GPU's own clock; that slows them down a little
    #[arg(long, conflicts_with = "noise")]
    kernels: bool,
    /// Numbers of splats, with commas between them
    #[arg(long, value_name = "N", value_delimiter = ',', default_values_t = [20480], value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    splats: Vec<u32>,
    #[command(flatten)]
    set: SetArgs,
    /// Texels along each edge of the grids
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=1024))]
    resolution: u32,
    /// Pixels along each edge of a view [default: 128; of estimators 16, of splats 512]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=8192))]
    image: Option<u32>,
    /// Degree of the spherical harmonics
    #[arg(long, value_name = "DEGREE", default_value_t = 2, value_parser = clap::value_parser!(u32).range(0..=3))]
    sh_degree: u32,
    /// Samples a pixel of the primal pass [default: 1; of a scene its own]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    spp: Option<u32>,
    /// Samples a pixel of the adjoint pass [default: as many as of the primal pass; of a scene its own]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    spp_grad: Option<u32>,
    /// Longest path of a volume, in edges
    #[arg(long, value_name = "EDGES", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    max_depth: u32,
    /// Longest paths, in edges, for which estimators are compared; with commas between them
    #[arg(long, value_name = "EDGES", value_delimiter = ',', default_values_t = [4, 16, 64, 256], value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    depths: Vec<u32>,
    /// Samples a pixel for which estimators are compared, with commas between them [default: those of --spp]
    #[arg(long, value_name = "N", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=4096))]
    spps: Vec<u32>,
    /// Of estimators, also draw time and memory by the length of paths, or by the samples with several of `--spps`, as SVG
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
    /// Only these estimators, with commas between them [default: all; of a scene those of free flight]
    #[arg(long, value_name = "ESTIMATOR", value_enum, value_delimiter = ',')]
    only: Vec<Compared>,
    /// Albedo of a volume [default: 0.9; of estimators 0.99]
    #[arg(long, value_parser = share)]
    albedo: Option<f32>,
    /// Factor on the density of a volume, whose largest value is near one [default: 20; of estimators 400]
    #[arg(long, value_name = "FACTOR", value_parser = density)]
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
#[derive(Debug, Clone, PartialEq, Eq)]
enum Subject {
    Workload(Workload),
    Scene(PathBuf),
}

/// Workloads that are generated by code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
enum Workload {
    RadianceField,
    Volume,
    GradientNoise,
    Estimators,
    Rays,
    Splats,
}

impl FromStr for Subject {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(workload) = Workload::from_str(text, false) {
            return Ok(Self::Workload(workload));
        }
        let path = Path::new(text);
        if text == "-" || path.extension().is_some() || path.exists() {
            return Ok(Self::Scene(path.to_owned()));
        }
        let names: Vec<_> = Workload::value_variants()
            .iter()
            .filter_map(|workload| Some(workload.to_possible_value()?.get_name().to_owned()))
            .collect();
        Err(format!("expected the file of a scene, or one of {}", names.join(", ")))
    }
}

const ADAM: Optimizer = Optimizer::Adam {
    beta_1: 0.9,
    beta_2: 0.999,
    epsilon: 1e-8,
    mask_updates: false,
};

/// Samples per pixel.
#[derive(Debug, Clone, Copy)]
struct Samples {
    spp: u32,
    spp_grad: u32,
}

impl BenchArgs {
    fn pick<T>(&self, given: Option<T>, default: T, of_estimators: T) -> T {
        given.unwrap_or(match self.subject {
            Subject::Workload(Workload::Estimators) => of_estimators,
            _ => default,
        })
    }

    /// Samples per pixel of a generated workload.
    fn samples(&self) -> Samples {
        let spp = self.spp.unwrap_or(1);
        Samples {
            spp,
            spp_grad: self.spp_grad.unwrap_or(spp),
        }
    }

    fn image(&self) -> u32 {
        let default = match self.subject {
            Subject::Workload(Workload::Splats) => 512,
            _ => 128,
        };
        self.pick(self.image, default, 16)
    }

    fn albedo(&self) -> f32 {
        self.pick(self.albedo, 0.9, 0.99)
    }

    fn scale(&self) -> f32 {
        self.pick(self.scale, 20.0, 400.0)
    }
}

fn share(text: &str) -> Result<f32, String> {
    match text.parse() {
        Ok(share) if (0.0..=1.0).contains(&share) => Ok(share),
        _ => Err("expected a number from 0 to 1".into()),
    }
}

fn density(text: &str) -> Result<f32, String> {
    match text.parse() {
        Ok(factor) if (0.0..=1e6).contains(&factor) => Ok(factor),
        _ => Err("expected a number from 0 to 1000000".into()),
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
    /// Processor time of all threads together, independent of other load; 0 where the system does not report it.
    processor: f64,
    rays: u64,
    samples: u64,
}

impl Timing {
    fn total(&self) -> f64 {
        self.primal + self.loss + self.adjoint + self.step
    }
}

/// Runs the command.
pub fn run(args: BenchArgs) -> anyhow::Result<Outcome> {
    let workload = match &args.subject {
        Subject::Scene(path) => return scene::run(&args, path),
        Subject::Workload(workload) => *workload,
    };
    let of_scene = workload == Workload::Estimators && args.file.is_some();
    if args.noise.is_some() || args.kernels || !of_scene && (!args.parameter.is_empty() || !args.set.changes.is_empty())
    {
        bail!(
            "--noise, --kernels, --parameter and --set are for the file of a scene; the noise of the smoke of `volume` is told by \
             `gradient_noise` with --runs"
        );
    }
    let (resident, params, batches) = match workload {
        Workload::RadianceField => workload::prepare(&args)?,
        Workload::Volume => volume::prepare(&args, volume::Setting::of(&args))?,
        Workload::GradientNoise => return noise::run(&args),
        Workload::Estimators => return estimators::run(&args),
        Workload::Rays => return rays::run(&args),
        Workload::Splats => return splats::run(&args),
    };
    let bytes = parameter_bytes(params.parameters.iter().map(|p| (p.shape, p.tuning.is_some())), ADAM);
    let mut device = args.device.open()?;
    device.load(resident, params, ADAM)?;

    let mut timings = Vec::new();
    for iteration in 0..args.iterations + 2 {
        let batch = &batches[iteration as usize % batches.len()];
        timings.push(iterate(
            device.as_mut(),
            batch,
            args.samples(),
            args.seed,
            iteration,
            true,
        )?);
    }
    let timings = &timings[2..];
    // Read the peak memory before the bandwidth is measured, whose arrays do not belong to the workload.
    let peak_rss_mib = crate::output::memory::peak_resident_mib();
    let bandwidth = machine_peaks::Memory::new().bandwidth(5);
    let iteration_ms = median(timings.iter().map(Timing::total));
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
        samples_per_second: samples / (timings.iter().map(Timing::total).sum::<f64>() * 1e-3),
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
        max_depth,
        ..
    } = args;
    let (image, albedo, scale) = (args.image(), args.albedo(), args.scale());
    let Samples { spp, spp_grad } = args.samples();
    match &args.subject {
        Subject::Workload(Workload::Rays) => format!("rays={}", args.rays),
        Subject::Workload(Workload::Splats) => format!("splats={:?}", args.splats),
        Subject::Scene(path) => path.display().to_string(),
        Subject::Workload(Workload::RadianceField) => {
            format!("radiance_field resolution={resolution} image={image} sh_degree={sh_degree} spp={spp}+{spp_grad}")
        }
        Subject::Workload(Workload::Volume | Workload::GradientNoise) => format!(
            "volume resolution={resolution} image={image} spp={spp}+{spp_grad} max_depth={max_depth} albedo={albedo} \
             scale={scale}"
        ),
        Subject::Workload(Workload::Estimators) => match &args.file {
            Some(path) => format!("estimators {}", path.display()),
            None => format!("estimators resolution={resolution} image={image} albedo={albedo} scale={scale}"),
        },
    }
}

/// One iteration with the L2 loss; the optimiser's step only if `steps`.
fn iterate(
    device: &mut dyn Device,
    batch: &Batch,
    samples: Samples,
    seed: u64,
    iteration: u32,
    steps: bool,
) -> anyhow::Result<Timing> {
    let begun = processor_seconds();
    let mut clock = Instant::now();
    let mut lap = || {
        let now = Instant::now();
        now.duration_since(std::mem::replace(&mut clock, now)).as_secs_f64() * 1e3
    };
    let objective = pass_key(seed, iteration, Pass::Objective);
    let keys = |pass| Keys {
        objective,
        pass: pass_key(seed, iteration, pass),
    };
    let (mut stats, mut times) = (ReplayStats::default(), [0.0; 3]);
    let [primal, loss, adjoint] = &mut times;
    device.in_a_row(&mut |device| {
        if device.is_fused(Loss::L2) {
            (_, stats) = device.value_and_gradient(batch, keys(Pass::Primal), Loss::L2)?;
            *adjoint = lap();
            return Ok(());
        }
        device.render(batch, keys(Pass::Primal), samples.spp)?;
        device.finish()?;
        *primal = lap();
        device.loss(batch, keys(Pass::Primal), Loss::L2)?;
        *loss = lap();
        stats = device.backpropagate(batch, keys(Pass::Adjoint), samples.spp_grad)?;
        *adjoint = lap();
        Ok(())
    })?;
    if steps {
        device.in_a_row(&mut |device| {
            device.step(&Step {
                optimizer: ADAM,
                rate: 1.0,
                count: iteration + 1,
            })?;
            device.rebuild()?;
            device.finish()
        })?;
    }
    let [primal, loss, adjoint] = times;
    let step = if steps { lap() } else { 0.0 };
    Ok(Timing {
        primal,
        loss,
        adjoint,
        step,
        processor: milliseconds_since(begun),
        rays: stats.rays,
        samples: stats.samples,
    })
}

/// Processor time since `begun` in milliseconds; 0 where the system does not report it.
fn milliseconds_since(begun: Option<f64>) -> f64 {
    let taken = processor_seconds().zip(begun).map(|(now, begun)| now - begun);
    taken.unwrap_or(0.0) * 1e3
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
