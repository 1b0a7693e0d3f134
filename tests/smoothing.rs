//! Smoothed steps of a texture and of an environment map: what a step adds is smoothed twice, on both devices.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use prbopt::device::gpu::Adapters;
use prbopt::io::image;
use prbopt::kernels::smoothing::{lambda, smooth};

const SIZE: [usize; 3] = [12, 7, 1];
const SHARE: f32 = 0.15;

/// A floor of 12 × 7 texels under a lamp, which `more` in its `optimize` has to find grey.
fn floor(reflectance: &str, more: &str) -> String {
    format!(
        r#"{{"floor": {{"type": "rectangle", "bsdf": {{"type": "diffuse", "reflectance": {reflectance}}}}},
            "lamp": {{"type": "point", "position": [0.4, 0.3, 2], "intensity": 12}},
            "sky": {{"type": "envmap", "data": {{"resolution": [12, 7], "value": 0.5}}}},
            "camera": {{"type": "perspective", "fov": 60, "to_world": [{{"look_at": {{"origin": [0, 0, 2], "target": [0, 0, 0], "up": [0, 1, 0]}}}}],
                "film": {{"type": "hdrfilm", "width": 24, "height": 24, "rfilter": {{"type": "box"}}}}}}{more}}}"#
    )
}

/// The scene and its target in a folder; the floor's steps are smoothed over `share` of its longer side.
fn scenes(folder: &Path, share: f32) {
    let texture =
        r#"{"type": "bitmap", "wrap_mode": "clamp", "data": {"resolution": [12, 7], "value": [0.5, 0.4, 0.6]}}"#;
    let checkered = r#"{"type": "checkerboard", "color0": 0.3, "color1": 0.7, "to_uv": [{"scale": [3, 2, 1]}]}"#;
    let optimize = format!(
        r#", "optimize": {{"parameters": {{"floor.bsdf.reflectance": {{"learning_rate": 0.02, "smoothing": {share}}},
                "sky.data": {{"learning_rate": 0.02, "smoothing": {share}}}}},
            "references": {{"type": "scene", "filename": "target.json", "spp": 16}}, "optimizer": {{"type": "sgd", "momentum": 0}},
            "iterations": 1, "spp": 4, "spp_grad": 4}}"#
    );
    fs::write(folder.join("target.json"), floor(checkered, "")).expect("writable");
    fs::write(folder.join("floor.json"), floor(texture, &optimize)).expect("writable");
}

fn program(folder: &Path, words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_prbopt"))
        .args(words)
        .current_dir(folder)
        .output()
        .expect("it runs")
}

fn texels(run: &Path, parameter: &str) -> Vec<f32> {
    let found = image::read(&run.join(format!("{parameter}.exr")))
        .expect("it is written")
        .0;
    assert_eq!([found.width, found.height], [12, 7]);
    found.data
}

/// The texels of floor and sky before and after one step of gradient descent.
fn after_a_step(device: &str, share: f32) -> [[Vec<f32>; 2]; 2] {
    let folder = tempfile::tempdir().expect("a folder can be made");
    scenes(folder.path(), share);
    let done = program(
        folder.path(),
        &["optimize", "floor.json", "--device", device, "-o", "run"],
    );
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    ["floor.bsdf.reflectance", "sky.data"]
        .map(|parameter| ["run/start", "run/final"].map(|at| texels(&folder.path().join(at), parameter)))
}

/// A step x → x − r g becomes x → x − r S(S g), to 2e-3 of the largest change; of the sky S goes round.
fn steps_are_smoothed_twice(device: &str) {
    let (rough, smoothed) = (after_a_step(device, 0.0), after_a_step(device, SHARE));
    for ([start, rough], ([_, smoothed], wraps)) in rough.iter().zip(smoothed.iter().zip([false, true])) {
        let mut step: Vec<f32> = rough.iter().zip(start).map(|(after, before)| after - before).collect();
        let largest = step.iter().fold(0f32, |m, x| m.max(x.abs()));
        assert!(largest > 1e-5, "nothing was learned: {largest}");
        for _ in 0..2 {
            smooth(&mut step, SIZE, 3, wraps, lambda(SIZE, SHARE));
        }
        for ((found, before), step) in smoothed.iter().zip(start).zip(&step) {
            assert!(
                (found - before - step).abs() < 2e-3 * largest + 1e-7,
                "wraps {wraps}: {found} {before} {step}"
            );
        }
    }
}

#[test]
fn steps_of_the_cpu_are_smoothed_twice() {
    steps_are_smoothed_twice("cpu");
}

#[test]
fn steps_of_the_gpu_are_smoothed_twice() {
    if Adapters::find().summaries().is_empty() {
        let required = std::env::var_os("PRBOPT_REQUIRE_GPU").is_some_and(|v| v == "1");
        assert!(!required, "PRBOPT_REQUIRE_GPU is set, but there is no adapter");
        println!("skipped: this machine has no GPU adapter");
        return;
    }
    steps_are_smoothed_twice("gpu");
}

/// What has no neighbours cannot be smoothed.
#[test]
fn what_has_no_neighbours_is_refused() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    scenes(folder.path(), SHARE);
    let file = folder.path().join("floor.json");
    let text = fs::read_to_string(&file).expect("it is there");
    let plain = text.replace("floor.bsdf.reflectance\"", "lamp.intensity\"");
    fs::write(&file, plain).expect("writable");
    let told = program(folder.path(), &["optimize", "floor.json", "--device", "cpu"]);
    let text = String::from_utf8_lossy(&told.stderr).into_owned();
    assert_eq!(told.status.code(), Some(2), "{text}");
    assert!(
        text.contains("only the steps of grids, `bitmap`s and environment maps can be smoothed"),
        "{text}"
    );
}
