//! Time of long paths, and light that shorter ones lose, in the figurine and in one of a tenth of its mean free path.

use prbopt::device::cpu::Cpu;
use prbopt::device::{ArrayKind, Batch, Device, Keys};
use prbopt::gradcheck::paths::objective::PathObjective;
use prbopt::gradcheck::{Options, Setup};
use prbopt::kernels::loss::Loss;
use prbopt::kernels::optimizer::Optimizer;
use prbopt::output::processor::processor_seconds;
use prbopt::resident::layout::gradient;
use prbopt::resident::paths::{Estimator, Variant};
use prbopt::scene;
use prbopt::transport::mode::PRIMAL;
use prbopt::transport::paths::volpath::gather;
use prbopt::transport::rays::pixel::PixelTable;
use prbopt::transport::rays::random::{Pass, pass_key};

use super::scene_file;

/// The depth of paths that lose hardly any light: losses of shorter ones are relative to it.
const ALL: u32 = 1 << 14;

/// A measurement of fewer seconds is repeated at twice the depth, where it takes four times as long.
const PATIENCE: f64 = 12.0;

/// At twice the depth paths still get longer if their mean number of events grows by this factor.
const STILL_GROWING: f64 = 1.3;

/// The figurine of this extinction from so near that it fills the picture, 32 × 40 pixels, with paths of this length.
fn setup(extinction: f64, depth: u32, spp: u32) -> Setup {
    let changes = [
        format!("integrator.max_depth={depth}"),
        format!("figurine.interior.sigma_t={extinction}"),
        "figurine.interior.albedo=[0.99,0.95,0.85]".to_owned(),
        "front.fov=7".to_owned(),
        "front.film.width=32".to_owned(),
        "front.film.height=40".to_owned(),
    ];
    let changes: Vec<_> = changes.iter().map(|change| change.parse().expect("a change")).collect();
    let scene = scene::load_with(&scene_file("figurine.json"), &changes).unwrap_or_else(|e| panic!("{e}"));
    let options = Options {
        parameters: vec!["figurine.interior.albedo".to_owned()],
        ..Options::default()
    };
    let mut setup = Setup::new(&scene, &options).expect("it can be prepared");
    let table = PixelTable::new(&setup.resident.sensors, &[0]).expect("a small film");
    setup.batch = Batch { table, drawn: None };
    setup.spp = spp;
    setup
}

/// The mean number of events of a path (glass that it meets and scatterings), and the mean of its radiance.
fn events_and_radiance(setup: &Setup) -> (f64, [f64; 3]) {
    let objective = PathObjective::new(setup, gradient::FREE_FLIGHT);
    let (mut events, mut sum) = (0, [0.0; 3]);
    for cast in &objective.casts {
        let view = objective.view();
        let path = gather::<f64, _, PRIMAL>(&view, &objective.fields, &cast.ray, cast.medium, cast.streams.walk());
        events += u64::from(path.depth);
        for (sum, radiance) in sum.iter_mut().zip(path.gathered.radiance.0) {
            *sum += radiance;
        }
    }
    let count = objective.casts.len() as f64;
    (events as f64 / count, sum.map(|sum| sum / count))
}

/// The gradient of the mean of the picture by the albedo.
fn gradient_of(setup: &Setup, estimator: Estimator) -> Vec<f32> {
    let mut cpu = loaded(setup, estimator);
    let keys = |pass| Keys {
        objective: pass_key(3, 0, Pass::Objective),
        pass: pass_key(3, 0, pass),
    };
    cpu.render(&setup.batch, keys(Pass::Primal), 1).expect("it renders");
    cpu.loss(&setup.batch, keys(Pass::Primal), Loss::Linear { seed: 0 })
        .expect("it compares");
    cpu.backpropagate(&setup.batch, keys(Pass::Adjoint), setup.spp)
        .expect("it runs");
    let slot = setup
        .params
        .find("figurine.interior.albedo")
        .expect("it is a parameter");
    cpu.read(slot, ArrayKind::Gradient).expect("the CPU can be read")
}

/// A device with the scene.
fn loaded(setup: &Setup, estimator: Estimator) -> Cpu {
    let mut resident = setup.resident.clone();
    resident.transport.paths_mut().estimator = estimator;
    let mut cpu = Cpu::new();
    cpu.load(resident, setup.params.clone(), Optimizer::Sgd { momentum: 0.0 })
        .expect("it fits");
    cpu
}

/// Processor time of the adjoint pass of an estimator, in seconds a path: the least of `runs`; and the sum of the gradient.
fn adjoint_seconds(setup: &Setup, estimator: Estimator, runs: u32) -> (f64, f64) {
    let mut cpu = loaded(setup, estimator);
    let keys = |run, pass| Keys {
        objective: pass_key(3, run, Pass::Objective),
        pass: pass_key(3, run, pass),
    };
    let (mut least, mut sum) = (f64::INFINITY, 0.0);
    for run in 0..runs {
        cpu.render(&setup.batch, keys(run, Pass::Primal), 1)
            .expect("it renders");
        cpu.loss(&setup.batch, keys(run, Pass::Primal), Loss::Linear { seed: 0 })
            .expect("it compares");
        let begun = processor_seconds().expect("a Unix");
        let stats = cpu
            .backpropagate(&setup.batch, keys(run, Pass::Adjoint), setup.spp)
            .expect("it runs");
        least = least.min((processor_seconds().expect("a Unix") - begun) / stats.rays as f64);
    }
    for slot in 0..cpu.params().parameters.len() {
        let gradient = cpu.read(slot, ArrayKind::Gradient).expect("the CPU can be read");
        sum += gradient.iter().map(|g| f64::from(*g)).sum::<f64>() / f64::from(runs);
    }
    (least, sum)
}

/// Slope of the line through points, and the share of the variance that it explains.
fn fit(points: &[[f64; 2]]) -> (f64, f64) {
    let n = points.len() as f64;
    let mean = |f: &dyn Fn(&[f64; 2]) -> f64| points.iter().map(f).sum::<f64>() / n;
    let (x, y) = (mean(&|p| p[0]), mean(&|p| p[1]));
    let [xx, xy, yy] = [
        mean(&|p| (p[0] - x).powi(2)),
        mean(&|p| (p[0] - x) * (p[1] - y)),
        mean(&|p| (p[1] - y).powi(2)),
    ];
    (xy / xx, xy * xy / (xx * yy))
}

/// Prints a table of Markdown and its fits.
fn measure(extinction: f64) {
    let (_, all) = events_and_radiance(&setup(extinction, ALL, 16));
    println!(
        "\nextinction {extinction}\n\n| depth | events | replay, µs a path | radiative | lost r, g, b |\n|---|---|---|---|---|"
    );
    let (mut linear, mut square): (Vec<[f64; 2]>, Vec<[f64; 2]>) = Default::default();
    let mut last = 0.0;
    for depth in (3..=10).map(|k| 1 << k) {
        let (events, radiance) = events_and_radiance(&setup(extinction, depth, 16));
        let (replay, mean) = adjoint_seconds(&setup(extinction, depth, 16), Estimator::PathReplay, 5);
        linear.push([events, replay * 1e6]);
        let mut cells = format!("| {depth} | {events:.1} | {:.1} | ", replay * 1e6);
        if last * 1280.0 < PATIENCE {
            let few = setup(extinction, depth, if depth < 100 { 4 } else { 1 });
            let (radiative, other) = adjoint_seconds(&few, Estimator::Radiative(Variant::Unbiased), 3);
            square.push([events, radiative * 1e6]);
            last = radiative;
            cells += &format!("{:.1} | ", radiative * 1e6);
            eprintln!("{depth}: sums of gradients {mean:.4} {other:.4}");
        } else {
            cells += "| ";
        }
        let lost = [0, 1, 2].map(|c| format!("{:.2} %", 100.0 * (1.0 - radiance[c] / all[c])));
        println!("{cells}{} |", lost.join(", "));
    }
    let (slope, share) = fit(&linear);
    println!("\nreplay: {slope:.3} µs an event, R² = {share:.5}");
    for (who, points) in [("replay", &linear), ("radiative", &square)] {
        let growing = points
            .windows(2)
            .take_while(|pair| pair[1][0] > STILL_GROWING * pair[0][0])
            .count();
        let logarithms: Vec<_> = points[..=growing].iter().map(|p| p.map(f64::ln)).collect();
        let steps = logarithms.windows(2).map(|w| (w[1][1] - w[0][1]) / (w[1][0] - w[0][0]));
        let steps: Vec<_> = steps.map(|step| format!("{step:.2}")).collect();
        println!(
            "{who}: exponent {:.2} over the first {} depths; step by step {}",
            fit(&logarithms).0,
            growing + 1,
            steps.join(", ")
        );
    }
}

#[test]
#[ignore = "minutes of measurements"]
fn time_of_long_paths() {
    measure(40.0);
    measure(400.0);
}

#[test]
fn paths_get_longer_and_less_is_lost() {
    let found: Vec<_> = [8, 32, 128]
        .iter()
        .map(|depth| events_and_radiance(&setup(40.0, *depth, 1)))
        .collect();
    for pair in found.windows(2) {
        let ((before, dark), (after, bright)) = (pair[0], pair[1]);
        assert!(after > 1.4 * before, "{before} {after}");
        // Longer paths carry much of the red light, which is hardly absorbed; blue light is absorbed on shorter ones.
        assert!(
            bright[0] > 1.2 * dark[0] && bright[1] > 1.02 * dark[1],
            "{dark:?} {bright:?}"
        );
    }
}

/// The tape differentiates the walk that path replay follows: with the same random numbers both give the same gradient, to 1e-4.
#[test]
fn replay_has_the_gradient_of_the_tape() {
    for depth in [8, 64] {
        let setup = setup(40.0, depth, 1);
        let [replay, tape] = [Estimator::PathReplay, Estimator::Tape].map(|estimator| gradient_of(&setup, estimator));
        println!("{depth} edges: {replay:?} by replay, {tape:?} by the tape");
        for (a, b) in replay.iter().zip(&tape) {
            assert!(*b > 0.0 && (a / b - 1.0).abs() < 1e-4, "{depth}: {a} {b}");
        }
    }
}
