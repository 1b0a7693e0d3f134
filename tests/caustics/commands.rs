//! The program on scenes of light tracing: runs that are stopped and resumed, the memory that `info` predicts, slabs that are
//! milled, and files that do not fit.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use prbopt::io::{Image, image};
use serde_json::{Value, json};

/// A folder with a scene whose heights of 4² coefficients become 16².
pub(super) struct Place(tempfile::TempDir);

pub(super) fn scene() -> Value {
    let facing = |z: i32, to: i32| json!({"look_at": {"origin": [0, 0, z], "target": [0, 0, to], "up": [0, 1, 0]}});
    json!({
        "type": "scene",
        "integrator": {"type": "ptracer", "max_depth": 4},
        "light": {
            "type": "rectangle", "to_world": [{"translate": [0, 0, -5]}],
            "emitter": {"type": "directionalarea", "radiance": 1}
        },
        "slab": {
            "type": "heightfield", "thickness": 0.1,
            "heights": {"type": "bitmap", "wrap_mode": "clamp", "data": {"resolution": [4, 4], "value": 0}},
            "bsdf": {"type": "dielectric", "int_ior": 1.5, "ext_ior": 1, "specular_reflectance": 0}
        },
        "screen": {
            "type": "rectangle", "to_world": [{"scale": 5}, facing(7, 0)],
            "bsdf": {"type": "diffuse", "reflectance": 1}
        },
        "camera": {
            "type": "perspective", "fov": 45, "to_world": [facing(4, 7)],
            "film": {"type": "hdrfilm", "width": 20, "height": 16, "rfilter": {"type": "gaussian"}}
        },
        "optimize": {
            "parameters": {"slab.heights": {"learning_rate": 1e-4, "bounds": [-0.05, 0.05]}},
            "references": {"type": "figure", "name": "ring"},
            "loss": "normalized_l2",
            "iterations": 200, "spp": 32,
            "stages": [{"at": 0.2}, {"at": 0.9}],
            "output": {"checkpoint_seconds": 0.001, "spp": 2}
        }
    })
}

impl Place {
    fn new() -> Self {
        Self::of(&scene())
    }

    /// A folder with this scene as `a.json`.
    pub(super) fn of(scene: &Value) -> Self {
        let place = Self(tempfile::tempdir().expect("a temporary folder"));
        place.write("a.json", scene);
        place
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(super) fn write(&self, name: &str, value: &Value) {
        fs::write(self.path(name), value.to_string()).expect("writable");
    }

    pub(super) fn command(&self, line: &str, threads: &str) -> Command {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin!("prbopt"));
        command
            .args(line.split(' '))
            .current_dir(self.0.path())
            .env("RAYON_NUM_THREADS", threads)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// What a command that must succeed prints.
    #[track_caller]
    pub(super) fn told(&self, line: &str) -> String {
        let output = self.command(line, "2").output().expect("starts");
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{line}: {error}");
        String::from_utf8(output.stdout).expect("text")
    }

    #[track_caller]
    pub(super) fn refuses(&self, line: &str, expected: &str) {
        let output = self.command(line, "2").output().expect("starts");
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{line}: {error}");
        assert!(error.contains(expected), "{line}: {error}\nexpected: {expected}");
    }

    pub(super) fn bytes(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
    }
}

/// A run that is killed within a stage and resumed, on another number of threads, ends with the bits of one that was not stopped.
#[test]
fn a_run_stopped_within_a_stage_ends_with_the_same_bits() {
    let files = ["final/slab.heights.exr", "final/slab.stl", "stages/2/slab.heights.exr"];
    ends_with_the_same_bits(&Place::new(), "cpu", &files);
}

/// Kills a run of 200 iterations within its second stage, from the 41st to the 180th, and resumes it.
pub(super) fn ends_with_the_same_bits(place: &Place, device: &str, files: &[&str]) {
    let line = |folder: &str| format!("optimize a.json --device {device} --quiet -o {folder}");
    let whole = place.command(&line("whole"), "1").output().expect("starts");
    assert!(whole.status.success());
    let mut child = place.command(&line("stopped"), "3").spawn().expect("starts");
    let begun = Instant::now();
    // Checkpoints are written between iterations.
    let progress = || fs::read_to_string(place.path("stopped/metrics.jsonl")).unwrap_or_default();
    while progress().lines().count() < 80 {
        assert!(begun.elapsed() < Duration::from_secs(120), "waited in vain");
        std::thread::sleep(Duration::from_millis(1));
    }
    child.kill().expect("still at work");
    child.wait().expect("ends");
    assert!(!place.path("stopped/final").exists(), "stopped before its end");
    assert!(place.path("stopped/stages/1").exists() && !place.path("stopped/stages/2").exists());
    place.told(&format!("{} --resume", line("stopped")));
    for file in files {
        let [a, b] = ["whole", "stopped"].map(|run| place.bytes(&format!("{run}/{file}")));
        assert!(a == b, "{file}");
    }
}

/// The memory that `info` predicts before a run is what the device then reports, to 10 %.
#[test]
fn memory_is_told_before_a_run() {
    let place = Place::new();
    let mut large = scene();
    large["camera"]["film"]["width"] = json!(96);
    large["slab"]["heights"]["data"]["resolution"] = json!([64, 32]);
    large["optimize"]["iterations"] = json!(10);
    large["optimize"]["spp"] = json!(1);
    place.write("large.json", &large);
    let info: Value = serde_json::from_str(&place.told("info large.json --json")).expect("JSON");
    assert_eq!(info["slab"]["thickness"], json!(0.1f32));
    memory_is_as_told(&place);
}

/// Compares the memory that `info` predicts for `large.json` with the largest that a run of it reports.
pub(super) fn memory_is_as_told(place: &Place) {
    let info: Value = serde_json::from_str(&place.told("info large.json --json")).expect("JSON");
    let told = info["memory_bytes"].as_f64().expect("a number");
    place.told("optimize large.json --device cpu --quiet -o run");
    let metrics = fs::read_to_string(place.path("run/metrics.jsonl")).expect("there");
    let of = |line: &str| serde_json::from_str::<Value>(line).expect("JSON")["memory_bytes"].as_f64();
    let most = metrics.lines().filter_map(of).fold(0.0, f64::max);
    assert!((told / most - 1.0).abs() < 0.1, "{told} {most}");
}

/// `mill`: its statistics are in order, the milled heights are rendered in the place of those found, and their solid is written.
#[test]
fn a_slab_is_milled() {
    let place = Place::new();
    place.told("optimize a.json --device cpu --quiet --iterations 40 -o run");
    let line = "mill a.json --parameters run/final -o milled --radius 20 --json";
    let told: Value = serde_json::from_str(&place.told(line)).expect("JSON");
    let of = |key: &str| told[key].as_f64().expect("a number");
    assert!(
        of("mean") > 0.0 && of("rms") >= of("mean") && of("largest") >= of("rms") && of("range") > of("largest"),
        "{told}"
    );
    let [found, left] = ["run/final", "milled"].map(|folder| {
        let file = place.path(&format!("{folder}/slab.heights.exr"));
        image::read(&file).expect("readable").0.data
    });
    assert_eq!(found.len(), left.len());
    let most = found
        .iter()
        .zip(&left)
        .map(|(a, b)| (b - a).abs())
        .fold(0.0f32, f32::max);
    assert!(f64::from(most) > 0.5 * of("mean"), "{most} {told}");
    for file in ["slab.ply", "slab.obj", "slab.stl"] {
        assert!(place.path("milled").join(file).exists(), "{file}");
    }
    place.told("render a.json --parameters milled --spp 2 --quiet -o milled.exr");
    place.told("export a.json --parameters run/final --shape slab -o found.stl");
    assert!(place.bytes("found.stl") == place.bytes("run/final/slab.stl"));
    for (line, expected) in [
        ("mill a.json --radius 0 -o b", "expected a positive length"),
        (
            "mill a.json --radius 1 --step=-1 -o b",
            "expected a length, or 0 for none",
        ),
        ("mill a.json --radius 1 -o milled", "choose another name with --output"),
        (
            "mill a.json --radius 1 --step 0.1 --set slab.heights.data.value=-0.06 -o b",
            "the cutter would go through the slab",
        ),
    ] {
        place.refuses(line, expected);
    }
    place.write(
        "none.json",
        &json!({"type": "scene", "camera": {"type": "perspective"}}),
    );
    place.refuses("mill none.json --radius 1 -o b", "give a scene with a `heightfield`");
    assert!(!place.path("b").exists());
}

/// Pictures and heights that do not fit the scene are refused with a sentence, before anything is computed.
#[test]
fn files_that_do_not_fit_are_refused() {
    let place = Place::new();
    let picture = |width: usize, channels: usize, value: f32| Image {
        width,
        height: 4,
        channels,
        data: vec![value; width * 4 * channels],
    };
    image::write_png(&place.path("other.png"), &picture(6, 3, 0.5)).expect("writable");
    let mut other = scene();
    other["camera"]["image"] = json!("other.png");
    other["optimize"]["references"] = json!("images");
    place.write("other.json", &other);
    place.refuses(
        "optimize other.json --device cpu -o run",
        "the photograph has 6×4 pixels, the film 20×16",
    );
    fs::create_dir(place.path("low")).expect("writable");
    image::write_exr(&place.path("low/slab.heights.exr"), &picture(4, 3, -0.2)).expect("writable");
    place.refuses(
        "render a.json --parameters low -o low.exr",
        "texel x=0 y=0 of `slab.heights` is -0.2, beyond the slab's other side at -0.1",
    );
}
