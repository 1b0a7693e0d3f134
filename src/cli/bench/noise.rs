//! The noise and time of one estimate of a gradient.

use std::time::Instant;

use serde::Serialize;

use super::moments::Moments;
use super::{BenchArgs, GradientKind, Samples, volume};
use crate::cli::Outcome;
use crate::device::{ArrayKind, Device, Keys};
use crate::kernels::loss::Loss;
use crate::kernels::optimizer::Optimizer;
use crate::output::streams::print_line;
use crate::transport::rays::random::{Pass, pass_key};

/// Noise of the gradient by one parameter.
#[derive(Debug, Serialize)]
struct Noise {
    parameter: String,
    /// Sum over the entries of the variance of one estimate.
    variance: f64,
    /// Norm and sum of the mean over all runs.
    mean_norm: f64,
    mean_sum: f64,
    variance_times_seconds: f64,
}

#[derive(Debug, Serialize)]
struct Figures {
    workload: String,
    gradient: GradientKind,
    runs: u32,
    seconds: f64,
    noise: Vec<Noise>,
}

/// Runs the command.
pub(super) fn run(args: &BenchArgs) -> anyhow::Result<Outcome> {
    let (resident, params, batches) = volume::prepare(args, volume::Setting::of(args))?;
    let tuned: Vec<(usize, String)> = params
        .parameters
        .iter()
        .enumerate()
        .filter(|(_, p)| p.tuning.is_some())
        .map(|(i, p)| (i, p.path.clone()))
        .collect();
    let mut device = args.device.open()?;
    device.load(resident, params, Optimizer::Sgd { momentum: 0.0 })?;
    let mut moments: Vec<Moments> = tuned.iter().map(|_| Moments::default()).collect();
    let mut seconds = Vec::new();
    for run in 0..args.runs {
        let start = Instant::now();
        estimate(device.as_mut(), &batches[0], args, run)?;
        seconds.push(start.elapsed().as_secs_f64());
        for ((index, _), moments) in tuned.iter().zip(&mut moments) {
            moments.add(&device.read(*index, ArrayKind::Gradient)?);
        }
        device.clear_gradients()?;
    }
    let figures = Figures {
        workload: super::describe(args),
        gradient: args.gradient,
        runs: args.runs,
        seconds: super::median(seconds.iter().copied()),
        noise: tuned
            .iter()
            .zip(&moments)
            .map(|((_, path), moments)| noise(moments, path, super::median(seconds.iter().copied())))
            .collect(),
    };
    print(&figures, args.json)?;
    Ok(Outcome::Done)
}

fn estimate(device: &mut dyn Device, batch: &crate::device::Batch, args: &BenchArgs, run: u32) -> anyhow::Result<()> {
    let objective = pass_key(args.seed, run, Pass::Objective);
    let keys = |pass| Keys {
        objective,
        pass: pass_key(args.seed, run, pass),
    };
    let Samples { spp, spp_grad } = args.samples();
    device.render(batch, keys(Pass::Primal), spp)?;
    device.loss(batch, keys(Pass::Primal), Loss::L2)?;
    device.backpropagate(batch, keys(Pass::Adjoint), spp_grad)?;
    device.finish()?;
    Ok(())
}

fn noise(moments: &Moments, path: &str, seconds: f64) -> Noise {
    let spread = moments.spread();
    Noise {
        parameter: path.to_string(),
        variance: spread.variance,
        mean_norm: spread.squares.sqrt(),
        mean_sum: spread.sum,
        variance_times_seconds: spread.variance * seconds,
    }
}

fn print(figures: &Figures, json: bool) -> anyhow::Result<()> {
    if json {
        print_line(&serde_json::to_string(figures)?);
        return Ok(());
    }
    print_line(&format!(
        "{}, gradient {}, {} runs",
        figures.workload,
        figures.gradient.name(),
        figures.runs
    ));
    print_line(&format!("  {:.1} ms an estimate", figures.seconds * 1e3));
    for noise in &figures.noise {
        print_line(&format!(
            "  {}: variance {:.3e}, times seconds {:.3e}; mean of norm {:.3e} and sum {:.3e}",
            noise.parameter, noise.variance, noise.variance_times_seconds, noise.mean_norm, noise.mean_sum
        ));
    }
    Ok(())
}
