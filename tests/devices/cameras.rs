//! Cameras that a run refines: derivatives, ten iterations and the refinement of held-out cameras on a GPU as on the CPU, and
//! the same bits whenever sums are whole numbers.

#[path = "../small/cameras.rs"]
mod small;

use std::path::Path;
use std::process::Command;

use prbopt::device::cpu::Cpu;
use prbopt::device::gpu::{DispatchSize, Gpu, Options};
use prbopt::device::{ArrayKind, Device};
use prbopt::gradcheck::{Options as Check, Setup, Weighting, check, device_adjoints};
use prbopt::params::{Quantity, Tuning};

use super::compare::{Outcome, compare};
use super::gpu;
use super::iterations::{ADAM, iterate};
use small::{Small, table, uniform};

/// Finite differences of a few entries; beside them a device is compared with the CPU, entry by entry.
fn options() -> Check {
    Check {
        entries: 12,
        weightings: vec![Weighting::Mean, Weighting::Random],
        ..Check::default()
    }
}

/// A device's gradients by all checked parameters, for two weightings of the pixels.
fn derivatives(setup: &Setup, device: &mut dyn Device) -> Outcome {
    let seeds = [0, 3];
    let adjoints = device_adjoints(setup, device, &seeds).expect("gradients");
    let mut outcome = Outcome::default();
    for (seed, adjoint) in seeds.iter().zip(adjoints) {
        for (&parameter, gradient) in setup.checked.iter().zip(adjoint.gradients) {
            let path = &setup.params.parameters[parameter].path;
            outcome.array(&format!("{path}, weights {seed}"), gradient);
        }
    }
    outcome
}

#[test]
fn derivatives_agree_with_the_cpu_and_with_finite_differences() {
    let Some(mut gpu) = gpu(Options::default()) else { return };
    for small in table() {
        let setup = small.setup(&options());
        let (cpu, found) = (derivatives(&setup, &mut Cpu::new()), derivatives(&setup, &mut gpu));
        compare(&cpu, &found).unwrap_or_else(|e| panic!("{}: {e}", small.name));
        let report = check(&setup, Some(&mut gpu), &options())
            .expect("the check runs")
            .report;
        assert!(report.passed, "{}\n{report}", small.name);
        assert_eq!(report.parameters.len(), 2 * small.wanted.len());
    }
}

/// The case with a lens, all parameters of views, and a grid of density that is optimised beside them.
fn with_density() -> Setup {
    let small: &Small = &table()[1];
    let mut setup = small.setup(&options());
    for parameter in &mut setup.params.parameters {
        let learning_rate = match parameter.quantity {
            Quantity::Density => 0.02,
            quantity if quantity.is_of_views() => 0.005,
            _ => continue,
        };
        parameter.tuning = Some(Tuning {
            learning_rate,
            bounds: [f32::NEG_INFINITY, f32::INFINITY],
            smoothing: 0.0,
        });
    }
    setup
}

/// Values of all parameters, and where cameras stand, after ten iterations.
fn tenth(setup: &Setup, device: &mut dyn Device) -> Outcome {
    device
        .load(setup.resident.clone(), setup.params.clone(), ADAM)
        .expect("a small scene");
    iterate(device, &setup.batch, 2, 1.0);
    let mut outcome = Outcome::default();
    outcome.stepped();
    for (i, parameter) in setup
        .params
        .parameters
        .iter()
        .enumerate()
        .filter(|(_, p)| p.tuning.is_some())
    {
        let values = device.read(i, ArrayKind::Values).expect("values");
        let moved = values.iter().zip(&parameter.values).map(|(a, b)| a - b);
        outcome.array(&format!("{} has moved by", parameter.path), moved.collect());
    }
    for (i, sensor) in device.sensors().iter().enumerate() {
        outcome.array(&format!("camera {i}"), sensor.to_world.concat());
        outcome.array(&format!("focal lengths {i}"), sensor.focal.to_vec());
        outcome.array(&format!("lens {i}"), sensor.distortion.to_vec());
    }
    outcome
}

#[test]
fn the_tenth_iteration_is_that_of_the_cpu() {
    let Some(mut gpu) = gpu(Options::default()) else { return };
    let setup = with_density();
    let (cpu, found) = (tenth(&setup, &mut Cpu::new()), tenth(&setup, &mut gpu));
    compare(&cpu, &found).unwrap_or_else(|e| panic!("{e}"));
    assert!(
        cpu.get("views.poses has moved by").iter().any(|x| x.abs() > 1e-3),
        "cameras have moved"
    );
}

#[test]
fn whole_numbers_have_the_same_bits_however_a_pass_is_cut() {
    let setup = with_density();
    for wide_atomics in [true, false] {
        let whole = Options {
            deterministic: true,
            wide_atomics,
            ..Options::default()
        };
        let pieces = Options {
            dispatch_size: Some(DispatchSize { rays: 64, samples: 1 }),
            ..whole
        };
        let (Some(mut whole), Some(mut pieces)) = (gpu(whole), gpu(pieces)) else {
            return;
        };
        let first = tenth(&setup, &mut whole);
        assert!(first == tenth(&setup, &mut whole), "other bits a second time");
        assert!(first == tenth(&setup, &mut pieces), "other bits in pieces");
    }
}

/// Derivatives by views are summed as whole numbers even where those by grids are sums of floats: the bits are the same.
#[test]
fn sums_of_views_are_whole_numbers_whatever_those_of_grids() {
    // Without harmonics, whose sums in whole numbers take a driver long to compile.
    let setup = table()[3].setup(&options());
    let deterministic = Options {
        deterministic: true,
        ..Options::default()
    };
    let [floats, whole] = [Options::default(), deterministic].map(|options| {
        let mut gpu: Gpu = gpu(options)?;
        Some(derivatives(&setup, &mut gpu))
    });
    assert!(floats == whole);
}

/// Derivatives by poses do not depend on the unit of length: they are the same in a world 2³⁰ times as large or as small.
#[test]
fn derivatives_know_no_unit_of_length() {
    let Some(mut gpu) = gpu(Options::default()) else { return };
    let mut of = |unit: f32| {
        let mut small = table().remove(3);
        small.unit = unit;
        derivatives(&small.setup(&options()), &mut gpu)
    };
    let expected = of(1.0);
    for unit in [2f32.powi(-30), 2f32.powi(30)] {
        compare(&expected, &of(unit)).unwrap_or_else(|e| panic!("{unit}: {e}"));
    }
}

/// A known field of blobs under three cameras and a fourth that is held out, all with slightly wrong poses.
fn astray(folder: &Path) -> std::path::PathBuf {
    let object = r#""object": {"type": "cube", "bsdf": {"type": "null"}, "interior": {"type": "radiance_field", "sh_degree": 0,
        "sigma_t": {"type": "blobs", "resolution": 12, "base": -1, "blobs": [
            {"center": [0.3, 0.35, 0.5], "radius": 0.12, "value": 12}, {"center": [0.65, 0.6, 0.4], "radius": 0.14, "value": 14}]},
        "sh_coeffs": {"type": "gridvolume", "resolution": 12, "value": [1.5, 0.2, -0.5]}}}"#;
    let camera = |i: usize, off: f32, more: &str| {
        let angle = 1.4 * i as f32;
        let shift = |axis: usize| off * (2.0 * uniform(3 * i + axis, 5) - 1.0);
        let origin = [
            3.0 * angle.sin() + shift(0),
            1.0 + shift(1),
            3.0 * angle.cos() + shift(2),
        ];
        format!(
            r#""camera{i}": {{"type": "perspective", "fov": 40, "film": {{"type": "hdrfilm", "width": 12, "height": 12}}{more},
            "to_world": [{{"look_at": {{"origin": {origin:?}, "target": [{}, 0, 0], "up": [0, 1, 0]}}}}]}}"#,
            shift(0)
        )
    };
    let written = |name: &str, cameras: Vec<String>, more: &str| {
        let path = folder.join(name);
        std::fs::write(&path, format!("{{{object}, {}{more}}}", cameras.join(", "))).expect("writable");
        path
    };
    let truth = written("truth.json", (0..4).map(|i| camera(i, 0.0, "")).collect(), "");
    for i in 0..4 {
        let picture = folder.join(format!("{i}.exr"));
        prbopt(
            &[
                "render",
                "--spp",
                "64",
                "--device",
                "cpu",
                "--sensor",
                &i.to_string(),
                "-o",
            ],
            &picture,
            &truth,
        );
    }
    let photographed = |i: usize| {
        let held_out = i == 3;
        camera(i, 0.1, &format!(r#", "image": "{i}.exr", "held_out": {held_out}"#))
    };
    let run = r#", "optimize": {"iterations": 10, "batch": "all", "spp": 2, "references": "images", "loss": "l2",
        "views": {"held_out_iterations": 40, "held_out_rate": 0.004}, "output": {"images_every": 0},
        "parameters": {"views.poses": {"learning_rate": 0.005}, "object.interior.sh_coeffs": {"learning_rate": 0.001}}}"#;
    written("scene.json", (0..4).map(photographed).collect(), run)
}

fn prbopt(arguments: &[&str], output: &Path, scene: &Path) {
    let run = Command::new(env!("CARGO_BIN_EXE_prbopt"))
        .args(arguments)
        .args([output, scene])
        .output()
        .expect("it starts");
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
}

#[test]
fn a_run_refines_its_cameras_and_those_that_are_held_out() {
    if gpu(Options::default()).is_none() {
        return;
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let scene = astray(folder.path());
    let figures = ["cpu", "gpu"].map(|device| {
        let results = folder.path().join(device);
        prbopt(&["optimize", "--device", device, "-o"], &results, &scene);
        let of = |name: &str, what: &[&str]| {
            let text = std::fs::read(results.join(name)).unwrap_or_else(|e| panic!("{name}: {e}"));
            let value: serde_json::Value = serde_json::from_slice(&text).expect("JSON");
            what.iter()
                .fold(&value, |value, key| &value[*key])
                .as_f64()
                .expect("a number")
        };
        [
            of("held_out.json", &["mean_psnr"]),
            of("held_out_refined.json", &["mean_psnr"]),
            of("final/cameras.json", &["after", "mean_degrees"]),
        ]
    });
    let [cpu, gpu] = figures;
    assert!(cpu[1] > cpu[0] + 0.3, "{cpu:?}");
    for (a, b) in cpu.iter().zip(gpu) {
        assert!((a - b).abs() <= 1e-3 * a.abs(), "{cpu:?} {gpu:?}");
    }
}
