//! Cameras as parameters: derivatives by poses, focal length and lens, and runs that correct wrong cameras.

#[path = "small/cameras.rs"]
mod cameras;

use cameras::{table, uniform};
use prbopt::device::cpu::Cpu;
use prbopt::gradcheck::field::views::{NUMBERS, ViewsObjective};
use prbopt::gradcheck::{Options, Weighting, check};
use prbopt::params::Quantity;
use prbopt::scene::parse;
use prbopt::transport::number::Number;
use prbopt::transport::number::dual::Dual;
use prbopt::transport::number::tape::{Recorded, Tape};

fn options() -> Options {
    Options {
        entries: 100,
        weightings: vec![Weighting::Mean, Weighting::Random],
        ..Options::default()
    }
}

#[test]
fn derivatives_by_cameras_agree_with_finite_differences_and_with_the_device() {
    for small in table() {
        let setup = small.setup(&options());
        let report = check(&setup, Some(&mut Cpu::new()), &options())
            .expect("the check runs")
            .report;
        assert!(report.passed, "{}\n{report}", small.name);
        assert_eq!(report.parameters.len(), 2 * small.wanted.len());
        for of in &report.parameters {
            // A view that is held out sends no rays.
            let poses = of.path == "views.poses";
            assert_eq!(of.rows.len(), if poses { 19 } else { 1 }, "{}", of.path);
            assert!(of.largest > 1e-5, "{}: {}", of.path, of.largest);
        }
    }
}

/// Where nothing depends on the cameras, differences are rounding, which must not count as an error of a gradient of zero. Where
/// rays are stopped within a few samples, differences are still those of a smooth function.
#[test]
fn fields_that_are_even_or_dense_are_checked() {
    for dense in [false, true] {
        let mut setup = table()[0].setup(&options());
        for parameter in &mut setup.params.parameters {
            match parameter.quantity {
                Quantity::Density if dense => parameter.values.iter_mut().for_each(|v| *v *= 200.0),
                Quantity::Density => parameter.values.fill(0.4),
                Quantity::Coefficients if !dense => parameter.values.fill(0.0),
                _ => {}
            }
        }
        let report = check(&setup, None, &options()).expect("the check runs").report;
        assert!(report.passed, "dense: {dense}\n{report}");
        assert!(
            report.parameters.iter().all(|of| (of.largest > 0.0) == dense),
            "{report}"
        );
    }
}

/// Dual numbers through the walk, and a tape of it, ray by ray, against the closed form.
#[test]
fn forward_mode_and_a_tape_agree_with_the_closed_form() {
    for small in table() {
        let setup = small.setup(&options());
        let objective = setup.objective();
        let views = ViewsObjective::new(&setup, &objective).expect("views are parameters");
        let (poses, shared) = views.adjoint(3);
        let mut forward = vec![[0.0; NUMBERS]; 4];
        let mut taped = forward.clone();
        for cast in &objective.casts {
            let weight = objective.weight(3, cast);
            for k in 0..NUMBERS {
                let seeded = |numbers: &[f64; NUMBERS]| {
                    let mut duals = numbers.map(Dual::constant);
                    duals[k].slope = 1.0;
                    duals
                };
                let radiance = views.radiance_by(cast, seeded);
                let slope: f64 = (0..3).map(|c| weight[c] * radiance[c].slope).sum();
                forward[cast.sensor as usize][k] += slope;
            }
            Tape::begin(None);
            let variables = |numbers: &[f64; NUMBERS]| std::array::from_fn(|k| Recorded::variable(k, numbers[k]));
            let radiance = views.radiance_by(cast, variables);
            let mut sum = Recorded::lift(0.0);
            for c in 0..3 {
                sum += radiance[c] * Recorded::lift(weight[c] as f32);
            }
            let gradient = sum.gradient(NUMBERS);
            (0..NUMBERS).for_each(|k| taped[cast.sensor as usize][k] += gradient[k]);
        }
        for found in [&forward, &taped] {
            let largest = poses.as_flattened().iter().fold(0.0, |m: f64, g| m.max(g.abs()));
            for (view, of_view) in found.iter().enumerate() {
                for k in 0..6 {
                    let (a, b) = (of_view[k], poses[view][k]);
                    assert!(
                        (a - b).abs() <= 1e-6 * largest,
                        "{} view {view} {k}: {a} {b}",
                        small.name
                    );
                }
            }
            for (k, expected) in shared.iter().enumerate() {
                let sum: f64 = found.iter().map(|of_view| of_view[6 + k]).sum();
                assert!(
                    (sum - expected).abs() <= 1e-6 * expected.abs(),
                    "{}: {sum} {expected}",
                    small.name
                );
            }
        }
    }
}

/// A field of three blobs that is known, seen by six cameras that stand elsewhere than the scene says.
fn wrong_cameras(folder: &std::path::Path) -> std::path::PathBuf {
    let object = r#""object": {"type": "cube", "bsdf": {"type": "null"}, "interior": {"type": "radiance_field", "sh_degree": 0,
        "sigma_t": {"type": "blobs", "resolution": 24, "base": -1, "blobs": [
            {"center": [0.3, 0.35, 0.5], "radius": 0.09, "value": 14}, {"center": [0.7, 0.4, 0.35], "radius": 0.07, "value": 16},
            {"center": [0.5, 0.72, 0.65], "radius": 0.1, "value": 12}]},
        "sh_coeffs": {"type": "blobs", "resolution": 24, "base": [1.5, 1, 0.5], "blobs": [
            {"center": [0.7, 0.4, 0.35], "radius": 0.2, "value": [-1, 1.5, 2]}]}}}"#;
    let camera = |i: usize| {
        let angle = i as f32 * 1.1;
        let origin = [4.0 * angle.sin(), 1.5 - 0.5 * i as f32, 4.0 * angle.cos()];
        let off = |axis: usize, size: f32| size * (2.0 * uniform(3 * i + axis, 9) - 1.0);
        let look = |o: [f32; 3], t: [f32; 3]| {
            format!(r#"[{{"look_at": {{"origin": {o:?}, "target": {t:?}, "up": [0, 1, 0]}}}}]"#)
        };
        let wrong = [0, 1, 2].map(|axis| origin[axis] + off(axis, 0.05));
        let target = [0, 1, 2].map(|axis| off(axis + 30, 0.1));
        format!(
            r#""camera{i}": {{"type": "perspective", "fov": 35, "to_world": {}, "undisturbed": {},
            "film": {{"type": "hdrfilm", "width": 32, "height": 32}}}}"#,
            look(wrong, target),
            look(origin, [0.0; 3])
        )
    };
    let cameras: Vec<String> = (0..6).map(camera).collect();
    std::fs::write(folder.join("target.json"), format!("{{{object}}}")).expect("writable");
    let path = folder.join("scene.json");
    let run = r#""optimize": {"iterations": 1000, "batch": "all", "spp": 2,
        "references": {"type": "scene", "filename": "target.json", "spp": 64}, "output": {"images_every": 0},
        "parameters": {"views.poses": {"learning_rate": 0.002}}}"#;
    let text = format!("{{{object}, {}, {run}}}", cameras.join(", "));
    std::fs::write(&path, text).expect("writable");
    path
}

fn optimize(scene: &std::path::Path, name: &str, threads: &str, more: &[&str]) -> std::path::PathBuf {
    let folder = scene.with_file_name(name);
    let run = std::process::Command::new(env!("CARGO_BIN_EXE_prbopt"))
        .args(["optimize", "--device", "cpu", "-o"])
        .arg(&folder)
        .arg(scene)
        .args(more)
        .env("RAYON_NUM_THREADS", threads)
        .output()
        .expect("it starts");
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    folder
}

fn read(folder: &std::path::Path, name: &str) -> Vec<u8> {
    std::fs::read(folder.join("final").join(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
}

#[test]
fn wrong_cameras_are_found_and_a_run_goes_on_to_the_bit_with_any_number_of_threads() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let scene = wrong_cameras(folder.path());
    let whole = optimize(&scene, "whole", "1", &[]);
    let cameras: serde_json::Value = serde_json::from_slice(&read(&whole, "cameras.json")).expect("JSON");
    let [before, after] = ["before", "after"].map(|when| cameras[when]["mean_degrees"].as_f64().expect("a number"));
    assert!(before > 0.5 && after < 0.4 * before, "{cameras}");
    let [before, after] = ["before", "after"].map(|when| cameras[when]["mean_percent"].as_f64().expect("a number"));
    assert!(before > 0.3 && after < 0.7 * before, "{cameras}");
    let halves = optimize(&scene, "halves", "3", &["--iterations", "250"]);
    optimize(&scene, "halves", "2", &["--resume", "--iterations", "1000"]);
    assert!(read(&whole, "views.poses.npy") == read(&halves, "views.poses.npy"));
}

/// The schedule's factor counts twice for cameras: their rate falls by its square, and what they find differs from that of
/// a rate that does not fall.
#[test]
fn rates_of_cameras_fall_by_the_square_of_the_schedules_factor() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let scene = wrong_cameras(folder.path());
    let falling = [
        "--iterations",
        "9",
        "--set",
        r#"optimize.schedule={"type": "exponential", "final_factor": 0.1}"#,
    ];
    let [falling, constant] =
        [("falling", &falling[..]), ("constant", &falling[..2])].map(|(name, more)| optimize(&scene, name, "2", more));
    let metrics = std::fs::read_to_string(falling.join("metrics.jsonl")).expect("figures");
    for (i, line) in metrics.lines().enumerate() {
        let figures: serde_json::Value = serde_json::from_str(line).expect("JSON");
        let expected = 0.002 * 0.1f64.powf(2.0 * i as f64 / 8.0);
        let rate = figures["learning_rates"]["views.poses"].as_f64().expect("a number");
        assert!((rate / expected - 1.0).abs() < 1e-5, "{i}: {rate} beside {expected}");
    }
    assert_eq!(metrics.lines().count(), 9);
    assert!(read(&falling, "views.poses.npy") != read(&constant, "views.poses.npy"));
}

#[test]
fn what_has_no_derivatives_by_cameras_is_refused_in_one_sentence() {
    let small = &table()[1];
    let refused = |text: &str, expected: &str| {
        let error = parse(text, std::path::Path::new("small.json"))
            .expect_err(expected)
            .to_string();
        assert!(error.contains(expected) && error.lines().count() == 1, "{error}");
    };
    let text = small.text();
    refused(
        &text
            .replace("opencv", "fisheye")
            .replace(r#", "p1": 0.004, "p2": -0.002"#, ""),
        "is another model",
    );
    refused(
        &text.replace(r#""views.poses": {}"#, r#""views.pose": {}"#),
        "there is no parameter `views.pose`",
    );
    refused(
        &text.replace(r#""views.poses": {}"#, r#""views.poses": {"initial": 0.1}"#),
        "cameras begin where the data set has them",
    );
    refused(
        &text.replace(
            r#""type": "perspective", "fov": 40"#,
            r#""type": "thinlens", "aperture_radius": 0.1, "fov": 40"#,
        ),
        "is no pinhole",
    );
    let world = r#"{"camera": {"type": "perspective", "film": {"type": "hdrfilm", "width": 4, "height": 4}},
        "floor": {"type": "rectangle"}, "lamp": {"type": "point", "position": [0, 0, 2]},
        "optimize": {"references": {"type": "constant", "value": 0.5}, "parameters": {"views.poses": {}}}}"#;
    refused(world, "rays through a radiance field");
}
