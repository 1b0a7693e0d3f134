//! `prbopt bench` on a scene file: the time of an iteration's passes, and the noise of the gradient.
//!
//! It uses the first sensor, the L2 loss against 0.5 and Adam, so that other renderers can be measured in the same
//! way.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, anyhow, bail};
use serde::Serialize;

use super::moments::Moments;
use super::{ADAM, BenchArgs, Samples, Timing, iterate, median};
use crate::cli::Outcome;
use crate::device::{ArrayKind, Batch, Device, KernelTime};
use crate::output::streams::print_line;
use crate::params::{ParamSet, Tuning};
use crate::resident::{Resident, Transport};
use crate::transport::rays::pixel::PixelTable;

pub(super) const REFERENCE: [f32; 3] = [0.5; 3];

/// Default samples per pixel, if neither scene nor flags state them.
const SPP: u32 = 16;

/// Warm-up iterations, which are not timed.
const UNTIMED: u32 = 2;

/// The results; times are medians.
#[derive(Debug, Serialize)]
struct Figures {
    scene: String,
    device: String,
    /// Pixels along x and y, samples per pixel of primal and adjoint pass, and the longest path in edges.
    pixels: [u32; 2],
    spp: [u32; 2],
    #[serde(skip_serializing_if = "Option::is_none")]
    depth: Option<u32>,
    /// Number of iterations, or of seeds.
    iterations: u32,
    iteration_ms: f64,
    primal_ms: f64,
    loss_ms: f64,
    adjoint_ms: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    step_ms: Option<f64>,
    first_iteration_ms: f64,
    /// Processor time of an iteration, all threads together.
    processor_ms: f64,
    /// Paths (or rays through a field) per second of the whole iteration: those of the primal pass and those that the
    /// adjoint pass replays, each counted once.
    paths_per_second: f64,
    peak_rss_mib: Option<u64>,
    device_mib: u64,
    /// Figures of a GPU's kernels by name, with `--kernels`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    kernels: BTreeMap<String, KernelFigures>,
    /// Noise of the gradients by parameter path, with `--noise`.
    #[serde(flatten)]
    noise: BTreeMap<String, Noise>,
}

/// Mean number of dispatches and mean time of a kernel per iteration, by the GPU's clock.
#[derive(Debug, Serialize)]
struct KernelFigures {
    dispatches: f64,
    ms: f64,
}

/// The noise of a gradient estimate for one parameter.
#[derive(Debug, Serialize)]
struct Noise {
    /// Sum over the entries of the variance of one estimate.
    variance_sum: f64,
    /// The squared norm of the mean, with the noise's contribution to it subtracted.
    mean_norm2: f64,
    mean_norm: f64,
    mean_sum: f64,
}

/// Benchmarks the scene at `path`.
///
/// # Errors
/// The scene has mistakes, no sensor or no differentiable parameter, or there is no such device.
pub(super) fn run(args: &BenchArgs, path: &Path) -> anyhow::Result<Outcome> {
    let scene = args.set.load_asking(path, &args.parameter)?;
    let (mut resident, mut params) = Resident::new(&scene)?;
    select(&mut resident, &mut params, &args.parameter).with_context(|| path.display().to_string())?;
    if resident.sensors.is_empty() {
        bail!("{}: there is nothing to look through; add a sensor", path.display());
    }
    resident.set_constant_reference(REFERENCE);
    let table = PixelTable::new(&resident.sensors, &[0]).with_context(|| {
        format!(
            "{}: the first view has more than 2³² pixels; make its film smaller",
            path.display()
        )
    })?;
    let batch = Batch { table, drawn: None };
    let [primal, adjoint] = scene.optimize.as_ref().map_or([SPP; 2], |o| [o.spp, o.spp_grad]);
    let spp = args.spp.unwrap_or(primal);
    let samples = Samples {
        spp,
        spp_grad: args.spp_grad.unwrap_or(args.spp.unwrap_or(adjoint)),
    };
    let pixels = [resident.sensors[0].width, resident.sensors[0].height];
    let depth = match &resident.transport {
        Transport::Field(_) | Transport::Splats(_) | Transport::Light(_) => None,
        Transport::Paths(paths) => Some(paths.settings.max_depth),
    };
    let mut device = args.device.open()?;
    if args.kernels {
        // An error before rendering if kernels cannot be timed; the clock is reset when the timed iterations begin.
        device.time_kernels()?;
    }
    device.load(resident, params, ADAM)?;
    let (timings, untimed, noise) = match args.noise {
        Some(seeds) => {
            let (timings, noise) = estimate(device.as_mut(), &batch, samples, args, seeds)?;
            (timings, 1, noise)
        }
        None => {
            let mut timings = Vec::new();
            for i in 0..args.iterations + UNTIMED {
                if args.kernels && i == UNTIMED {
                    device.time_kernels()?;
                }
                timings.push(iterate(device.as_mut(), &batch, samples, args.seed, i, true)?);
            }
            (timings, UNTIMED as usize, BTreeMap::new())
        }
    };
    let first = timings[0].total();
    let timings: &[Timing] = &timings[untimed..];
    let paths = |t: &Timing| (u64::from(batch.pixels()) * u64::from(samples.spp) + t.rays) as f64;
    let of = |part: fn(&Timing) -> f64| median(timings.iter().map(part));
    let figures = Figures {
        scene: path.display().to_string(),
        device: format!("{} ({})", device.info().name, device.info().detail),
        pixels,
        spp: [samples.spp, samples.spp_grad],
        depth,
        iterations: args.noise.unwrap_or(args.iterations),
        iteration_ms: of(Timing::total),
        primal_ms: of(|t| t.primal),
        loss_ms: of(|t| t.loss),
        adjoint_ms: of(|t| t.adjoint),
        step_ms: args.noise.is_none().then(|| of(|t| t.step)),
        first_iteration_ms: first,
        processor_ms: of(|t| t.processor),
        paths_per_second: timings.iter().map(paths).sum::<f64>() / timings.iter().map(Timing::total).sum::<f64>() * 1e3,
        peak_rss_mib: crate::output::memory::peak_resident_mib(),
        device_mib: device.memory() >> 20,
        kernels: kernels(device.as_mut(), timings.len())?,
        noise,
    };
    print(&figures, args.json)?;
    Ok(Outcome::Done)
}

/// Dispatches and time of each kernel, divided by the number of iterations.
fn kernels(device: &mut dyn Device, iterations: usize) -> anyhow::Result<BTreeMap<String, KernelFigures>> {
    let each = |KernelTime { kernel, dispatches, ms }| {
        let [dispatches, ms] = [f64::from(dispatches), ms].map(|all| all / iterations as f64);
        (kernel, KernelFigures { dispatches, ms })
    };
    Ok(device.kernel_times()?.into_iter().map(each).collect())
}

/// Marks the parameters at `paths` as optimised, and no others; without paths those that the scene optimises.
pub(super) fn select(resident: &mut Resident, params: &mut ParamSet, paths: &[String]) -> anyhow::Result<()> {
    let all = || {
        let paths: Vec<&str> = params.parameters.iter().map(|p| p.path.as_str()).collect();
        paths.join("`, `")
    };
    let chosen = paths.iter().map(|path| params.asked(path));
    let chosen: Vec<usize> = chosen
        .collect::<Result<_, _>>()
        .map_err(|what| anyhow!("--parameter: {what}"))?;
    if paths.is_empty() {
        if params.parameters.iter().all(|p| p.tuning.is_none()) {
            bail!(
                "the scene optimises nothing; name what to differentiate by --parameter: there are `{}`",
                all()
            );
        }
        params.parameters.iter_mut().for_each(|p| _ = p.project());
        return Ok(());
    }
    for (i, parameter) in params.parameters.iter_mut().enumerate() {
        // Steps must not change values: the scene may be invalid beyond some of them.
        parameter.tuning = chosen.contains(&i).then_some(Tuning {
            learning_rate: 0.0,
            bounds: [f32::NEG_INFINITY, f32::INFINITY],
            smoothing: 0.0,
        });
    }
    if let Transport::Paths(paths) = &mut resident.transport {
        paths.vary_all();
    }
    Ok(())
}

/// One estimate of the gradient per seed, without steps in between.
fn estimate(
    device: &mut dyn Device,
    batch: &Batch,
    samples: Samples,
    args: &BenchArgs,
    seeds: u32,
) -> anyhow::Result<(Vec<Timing>, BTreeMap<String, Noise>)> {
    let parameters = device.params().parameters.iter().enumerate();
    let mut moments: Vec<(usize, String, Moments)> = parameters
        .filter(|(_, p)| p.tuning.is_some())
        .map(|(i, p)| (i, p.path.clone(), Moments::default()))
        .collect();
    let mut timings = Vec::new();
    for seed in 0..seeds {
        timings.push(iterate(device, batch, samples, args.seed, seed, false)?);
        for (index, _, moments) in &mut moments {
            moments.add(&device.read(*index, ArrayKind::Gradient)?);
        }
        device.clear_gradients()?;
    }
    let noise = moments.into_iter().map(|(_, path, moments)| {
        let spread = moments.spread();
        let mean_norm2 = spread.squares - spread.variance / f64::from(seeds);
        let noise = Noise {
            variance_sum: spread.variance,
            mean_norm2,
            mean_norm: mean_norm2.max(0.0).sqrt(),
            mean_sum: spread.sum,
        };
        (path, noise)
    });
    Ok((timings, noise.collect()))
}

fn print(figures: &Figures, json: bool) -> anyhow::Result<()> {
    if json {
        print_line(&serde_json::to_string(figures)?);
        return Ok(());
    }
    let ([width, height], [spp, spp_grad]) = (figures.pixels, figures.spp);
    let depth = figures
        .depth
        .map_or(String::new(), |depth| format!(", paths of up to {depth} edges"));
    print_line(&format!("{} on {}", figures.scene, figures.device));
    print_line(&format!(
        "  first sensor, {width}×{height} pixels, spp {spp}+{spp_grad}{depth}, L2 against 0.5"
    ));
    print_line(&format!(
        "  iteration {:8.1} ms, the first {:.1} ms; of processors {:.1} ms",
        figures.iteration_ms, figures.first_iteration_ms, figures.processor_ms
    ));
    let parts = [
        ("primal", Some(figures.primal_ms)),
        ("loss", Some(figures.loss_ms)),
        ("adjoint", Some(figures.adjoint_ms)),
        ("step", figures.step_ms),
    ];
    for (name, ms) in parts.iter().filter_map(|(name, ms)| Some((name, (*ms)?))) {
        print_line(&format!("    {name:<7} {ms:8.1} ms"));
    }
    let rate = figures.paths_per_second * 1e-6;
    print_line(&format!(
        "  {rate:.3} million paths a second, of the primal and of the replay"
    ));
    let mut kernels: Vec<_> = figures.kernels.iter().collect();
    kernels.sort_by(|(_, a), (_, b)| b.ms.total_cmp(&a.ms));
    for (kernel, KernelFigures { dispatches, ms }) in kernels {
        print_line(&format!("    {kernel:<18} {ms:8.3} ms in {dispatches:.1} dispatches"));
    }
    if let Some(peak) = figures.peak_rss_mib {
        print_line(&format!("  peak resident memory {peak} MiB"));
    }
    if !figures.noise.is_empty() {
        print_line(&format!("  gradients over {} seeds", figures.iterations));
    }
    for (path, noise) in &figures.noise {
        print_line(&format!(
            "    {path}: variance {:.3e}; mean of norm {:.3e} and sum {:.3e}",
            noise.variance_sum, noise.mean_norm, noise.mean_sum
        ));
    }
    Ok(())
}
