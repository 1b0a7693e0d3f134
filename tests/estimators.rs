//! The estimators that path replay is compared with: conventional differentiation takes the same paths and gives the same
//! gradient, radiative backpropagation gives the same mean, and its biased variants another one.

mod small;

use prbopt::device::cpu::Cpu;
use prbopt::device::{ArrayKind, Device, DeviceError, Keys, ReplayStats};
use prbopt::gradcheck::paths::objective::PathObjective;
use prbopt::gradcheck::{Options, Setup};
use prbopt::kernels::loss::Loss;
use prbopt::kernels::optimizer::Optimizer;
use prbopt::resident::layout::gradient;
use prbopt::resident::paths::{Estimator, Variant};
use prbopt::transport::paths::radiative::Ahead;
use prbopt::transport::rays::random::{Pass, pass_key};
use rayon::prelude::*;
use small::worlds::{SmallWorld, worlds};

fn options() -> Options {
    Options {
        seed: 5,
        ..Options::default()
    }
}

fn setup(small: &SmallWorld, gradient: &str, estimator: Estimator) -> Setup {
    let mut setup = small.setup(gradient, &options());
    setup.resident.transport.paths_mut().estimator = estimator;
    setup
}

fn keys(pass: u32) -> Keys {
    Keys {
        objective: pass_key(3, 0, Pass::Objective),
        pass: pass_key(3, pass, Pass::Adjoint),
    }
}

fn load(setup: &Setup) -> Cpu {
    let mut cpu = Cpu::new();
    let sgd = Optimizer::Sgd { momentum: 0.0 };
    cpu.load(setup.resident.clone(), setup.params.clone(), sgd)
        .expect("small worlds fit");
    cpu
}

fn gradients(cpu: &mut Cpu) -> Vec<Vec<f32>> {
    let slots = 0..cpu.params().parameters.len();
    slots
        .map(|slot| cpu.read(slot, ArrayKind::Gradient).expect("the CPU can be read"))
        .collect()
}

/// The gradient of a random weighting of the pixels on the CPU device.
fn on_device(setup: &Setup) -> (Vec<Vec<f32>>, ReplayStats) {
    let mut cpu = load(setup);
    cpu.render(&setup.batch, keys(1), 2).expect("it renders");
    cpu.loss(&setup.batch, keys(1), Loss::Linear { seed: 9 })
        .expect("it compares");
    let stats = cpu.backpropagate(&setup.batch, keys(2), setup.spp).expect("it runs");
    (gradients(&mut cpu), stats)
}

/// The largest difference between two gradients over the largest entry, parameter by parameter.
fn disagreement(a: &[Vec<f32>], b: &[Vec<f32>]) -> f32 {
    let largest = |v: &[f32]| v.iter().fold(0f32, |m, x| m.max(x.abs()));
    a.iter()
        .zip(b)
        .map(|(a, b)| {
            let difference: Vec<f32> = a.iter().zip(b).map(|(a, b)| a - b).collect();
            largest(&difference) / largest(b).max(1e-12)
        })
        .fold(0.0, f32::max)
}

#[test]
fn the_tape_gives_the_gradient_of_path_replay_on_the_device() {
    for small in worlds() {
        let (replay, none) = on_device(&setup(&small, "free_flight", Estimator::PathReplay));
        let (tape, stats) = on_device(&setup(&small, "free_flight", Estimator::Tape));
        let error = disagreement(&tape, &replay);
        assert!(error < 2e-4, "{}: {error:.1e}", small.name);
        assert_eq!(none.rays, stats.rays, "{}", small.name);
        // Without a medium there is one estimator.
        let drt = setup(&small, "drt", Estimator::PathReplay);
        if !drt.resident.transport.paths().media.is_empty() {
            let (other, _) = on_device(&drt);
            let apart = disagreement(&tape, &other) > 1e-2;
            assert!(apart, "{}: another estimator is taken for it", small.name);
        }
        assert!(none.tape_bytes == 0 && stats.tape_bytes > 0, "{}", small.name);
    }
}

#[test]
fn the_tape_grows_with_the_paths_and_has_an_end() {
    let small = &worlds()[0];
    let mut setup = setup(small, "free_flight", Estimator::Tape);
    let mut bytes = Vec::new();
    for depth in [2, 32] {
        let paths = setup.resident.transport.paths_mut();
        paths.media[0].scale = 20.0;
        (paths.settings.max_depth, paths.settings.rr_depth) = (depth, 1000);
        bytes.push(on_device(&setup).1.tape_bytes);
    }
    assert!(bytes[1] > 3 * bytes[0], "{bytes:?}");
    let mut cpu = load(&setup);
    cpu.limit_tape(bytes[1] / 2);
    cpu.render(&setup.batch, keys(1), 2).expect("it renders");
    cpu.loss(&setup.batch, keys(1), Loss::L2).expect("it compares");
    match cpu.backpropagate(&setup.batch, keys(2), setup.spp) {
        Err(DeviceError::TooLarge(text)) => assert!(text.contains("prbvolpath"), "{text}"),
        other => panic!("{other:?}"),
    }
    assert!(gradients(&mut cpu).iter().flatten().all(|g| *g == 0.0));
}

/// Radiative backpropagation, times `fault`: means over many passes of the difference to path replay, each over its
/// standard error, entry by entry; and the norm of the standard errors over that of path replay's mean.
fn against_replay(setup: &Setup, gradient: u32, incident: Ahead, passes: u32, fault: f64) -> (Vec<f64>, f64) {
    let pass = |k: u32| {
        let mut setup = setup.clone();
        setup.keys = keys(k);
        let objective = PathObjective::new(&setup, gradient);
        let mut sums = [objective.fields.zeros(), objective.fields.zeros()];
        for cast in &objective.casts {
            let weight = objective.weight(7, cast);
            objective.replay(weight, cast, &mut objective.sums(&mut sums[0]));
            objective.backpropagate_radiative(
                incident,
                weight.map(|w| w * fault),
                cast,
                &mut objective.sums(&mut sums[1]),
            );
        }
        sums.map(|sums| sums.concat())
    };
    let found: Vec<[Vec<f64>; 2]> = (0..passes).into_par_iter().map(pass).collect();
    let n = f64::from(passes);
    let mean = |of: &dyn Fn(&[Vec<f64>; 2]) -> f64| found.iter().map(of).sum::<f64>() / n;
    let (mut z, mut errors, mut norm) = (Vec::new(), 0.0, 0.0);
    for i in 0..found[0][0].len() {
        let difference = |f: &[Vec<f64>; 2]| f[1][i] - f[0][i];
        let bias = mean(&difference);
        let variance = mean(&|f| (difference(f) - bias).powi(2)) / (n - 1.0);
        z.push(if bias == 0.0 {
            0.0
        } else {
            bias / variance.sqrt().max(1e-12 * bias.abs())
        });
        errors += variance;
        norm += mean(&|f| f[0][i]).powi(2);
    }
    (z, (errors / norm).sqrt())
}

/// Whether these entries, in units of their standard errors, are noise alone: all below 4.5, their mean square below 1.8.
fn is_noise(z: &[f64]) -> bool {
    let reached: Vec<f64> = z.iter().copied().filter(|z| *z != 0.0).collect();
    let square = reached.iter().map(|z| z * z).sum::<f64>() / reached.len() as f64;
    reached.iter().all(|z| z.abs() < 4.5) && square < 1.8
}

/// What is left between the means is noise, and the noise is so small that an error of a tenth would be seen,
/// as the next test shows.
#[test]
fn unbiased_radiative_backpropagation_has_the_mean_of_path_replay() {
    for small in worlds() {
        for (name, code) in [("drt", gradient::DRT), ("free_flight", gradient::FREE_FLIGHT)] {
            let setup = setup(&small, name, Estimator::PathReplay);
            // Without a medium there is one estimator.
            if name == "free_flight" && setup.resident.transport.paths().media.is_empty() {
                continue;
            }
            // The derivative by the scale of a map without end is the noisiest of all, most of all by ratio tracking.
            let passes = match (small.name, name) {
                ("fog without end", "drt") => 16000,
                ("fog without end", _) => 4000,
                _ => 1500,
            };
            let (z, error) = against_replay(&setup, code, Ahead::Traced, passes, 1.0);
            assert!(is_noise(&z), "{}, {name}: {z:?}", small.name);
            assert!(error < 0.3, "{}, {name}: errors below {error} go unseen", small.name);
        }
    }
}

#[test]
fn a_gradient_that_is_a_tenth_too_large_is_seen() {
    for small in worlds() {
        let setup = setup(&small, "drt", Estimator::PathReplay);
        let (z, _) = against_replay(&setup, gradient::DRT, Ahead::Traced, 1500, 1.1);
        assert!(!is_noise(&z), "{}: {z:?}", small.name);
    }
}

#[test]
fn biased_radiative_backpropagation_has_another_mean() {
    let mut seen = 0;
    for small in worlds() {
        let setup = setup(&small, "drt", Estimator::PathReplay);
        let (z, _) = against_replay(&setup, gradient::DRT, Ahead::Unit, 300, 1.0);
        let worst = z.iter().fold(0.0, |m: f64, z| m.max(z.abs()));
        seen += u32::from(worst > 8.0);
    }
    assert!(seen >= 10, "a bias is seen in {seen} worlds only");
}

/// A pass that renders and backpropagates at once has the image of a primal pass by the same random numbers, to 1e-4, and the
/// gradient of a separate adjoint pass, to the bit.
#[test]
fn a_shared_pass_is_both_passes() {
    for small in worlds() {
        let setup = setup(&small, "paired", Estimator::Radiative(Variant::Pipelined));
        let mut cpu = load(&setup);
        let (batch, spp) = (&setup.batch, setup.spp);
        cpu.render(batch, keys(1), spp).expect("it renders");
        cpu.loss(batch, keys(1), Loss::Linear { seed: 9 }).expect("it compares");
        cpu.backpropagate(batch, keys(2), spp).expect("it runs");
        let apart = gradients(&mut cpu);
        cpu.clear_gradients().expect("it clears");
        let stats = cpu.render_and_backpropagate(batch, keys(2), spp).expect("it runs");
        let (together, image) = (gradients(&mut cpu), cpu.image().expect("there is an image"));
        assert_eq!(apart, together, "{}", small.name);
        assert_eq!(stats.rays, u64::from(batch.pixels() * spp));
        cpu.render(batch, keys(2), spp).expect("it renders");
        for (a, b) in image.iter().zip(cpu.image().expect("there is an image")) {
            for c in 0..4 {
                let bound = 1e-4 * b[c].abs().max(1.0);
                assert!((a[c] - b[c]).abs() < bound, "{}: {a:?} for {b:?}", small.name);
            }
        }
    }
}

#[test]
fn what_cannot_share_a_pass_says_so() {
    let small = &worlds()[0];
    for estimator in [Estimator::PathReplay, Estimator::Tape] {
        let setup = setup(small, "free_flight", estimator);
        let result = load(&setup).render_and_backpropagate(&setup.batch, keys(1), 1);
        assert!(matches!(result, Err(DeviceError::Unavailable(_))), "{result:?}");
    }
    let setup = setup(small, "paired", Estimator::Radiative(Variant::Pipelined));
    let result = load(&setup).render_and_backpropagate(&setup.batch, keys(1), 1);
    assert!(
        matches!(result, Err(DeviceError::Unavailable(_))),
        "nothing to carry: {result:?}"
    );
}

/// A scene of smoke as the program reads it.
fn scene(variant: &str, batch: &str) -> String {
    let grid = r#"{"type": "gridvolume", "resolution": 4, "value": 0.4}"#;
    format!(
        r#"{{"type": "scene", "integrator": {{"type": "rbvolpath", "variant": "{variant}"}},
             "smoke": {{"type": "cube", "bsdf": {{"type": "null"}},
                 "interior": {{"type": "heterogeneous", "sigma_t": {grid}, "albedo": 0.6}}}},
             "sky": {{"type": "constant"}},
             "camera": {{"type": "perspective", "fov": 40, "film": {{"type": "hdrfilm", "width": 8, "height": 8}},
                 "to_world": [{{"look_at": {{"origin": [0, 0, 5], "target": [0, 0, 0], "up": [0, 1, 0]}}}}]}},
             "optimize": {{"parameters": {{"smoke.interior.sigma_t": {{"learning_rate": 0.05}}}}, "batch": {batch},
                 "references": {{"type": "constant", "value": 1}}, "iterations": 12, "spp": 8,
                 "output": {{"images_every": 5}}}}}}"#
    )
}

/// Runs the program on a scene: whether it succeeded, its errors, and its metrics.
fn optimize(text: &str, more: &[&str]) -> (bool, String, Vec<serde_json::Value>) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    std::fs::write(folder.path().join("scene.json"), text).expect("it can be written");
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_prbopt"))
        .current_dir(folder.path())
        .args(["optimize", "scene.json", "-o", "run"])
        .args(more)
        .output()
        .expect("the program starts");
    let metrics = std::fs::read_to_string(folder.path().join("run/metrics.jsonl")).unwrap_or_default();
    let metrics = metrics
        .lines()
        .map(|line| serde_json::from_str(line).expect("lines of JSON"));
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.success(), errors, metrics.collect())
}

#[test]
fn pipelined_runs_render_apart_only_once_and_learn() {
    for variant in ["unbiased", "pipelined", "biased_pipelined"] {
        let (succeeded, errors, metrics) = optimize(&scene(variant, r#""all""#), &["--device", "cpu"]);
        assert!(succeeded, "{variant}: {errors}");
        let loss = |i: usize| metrics[i]["loss"].as_f64().expect("a loss");
        assert!(loss(11) < 0.5 * loss(0), "{variant}: {} to {}", loss(0), loss(11));
        let apart = metrics.iter().filter(|m| m["ms"]["primal"] != 0.0).count();
        assert_eq!(apart, if variant == "unbiased" { 12 } else { 1 }, "{variant}");
    }
}

#[test]
fn pipelines_need_the_same_pixels_and_the_cpu() {
    let (succeeded, errors, _) = optimize(&scene("pipelined", r#"{"rays": 10}"#), &["--device", "cpu"]);
    assert!(!succeeded && errors.contains("set `batch` to \"all\""), "{errors}");
}
