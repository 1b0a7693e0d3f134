//! The built program in a fresh folder: exit codes, what it leaves behind, interrupted and resumed runs.

mod bench;
mod derivatives;
mod export;
mod failures;
mod gltf;
mod hostile;
mod losses;
mod memory;
mod refusals;
mod results;
mod xml;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// A folder with a small scene, its target, and the program.
struct Place {
    folder: tempfile::TempDir,
}

/// A scene of four 16×16 views (the last held out) that takes a few milliseconds an iteration.
fn scene() -> Value {
    let view = |origin: [f64; 3], held_out: bool| {
        json!({
            "type": "perspective", "fov": 40, "held_out": held_out,
            "to_world": [{"look_at": {"origin": origin, "target": [0, 0, 0], "up": [0, 1, 0]}}],
            "film": {"type": "hdrfilm", "width": 16, "height": 16, "rfilter": {"type": "box"}}
        })
    };
    let grid = json!({"type": "gridvolume", "resolution": [8, 8, 8], "value": 0.1});
    json!({
        "type": "scene",
        "object": {
            "type": "cube", "bsdf": {"type": "null"},
            "interior": {"type": "radiance_field", "sh_degree": 1, "sigma_t": grid, "sh_coeffs": grid}
        },
        "sky": {"type": "constant", "radiance": 0.5},
        "optimize": {
            "parameters": {
                "object.interior.sigma_t": {"learning_rate": 0.2, "start_resolution": [4, 4, 4]},
                "object.interior.sh_coeffs": {"learning_rate": 0.05, "start_resolution": [4, 4, 4]},
                "sky.radiance": {"learning_rate": 0.01}
            },
            "references": {"type": "scene", "filename": "target.json", "spp": 4},
            "iterations": 30,
            "batch": {"views": 2},
            "loss": "l1",
            "regularizers": [
                {"type": "total_variation", "parameter": "object.interior.sigma_t", "weight": 1e-4, "every": 3}
            ],
            "stages": [{"at": 0.5, "upsample": 2}],
            "output": {"images_every": 10, "checkpoint_seconds": 0.001, "spp": 2}
        },
        "a": view([0.0, 1.0, 4.0], false),
        "b": view([4.0, -1.0, 0.0], false),
        "c": view([-2.0, 1.0, -3.0], false),
        "d": view([2.0, 2.0, 2.0], true)
    })
}

fn target() -> Value {
    let blobs = |value: f64| {
        json!({"type": "blobs", "resolution": [8, 8, 8], "blobs": [
            {"center": [0.5, 0.5, 0.5], "radius": 0.2, "value": value}
        ]})
    };
    json!({
        "type": "scene",
        "object": {
            "type": "cube", "bsdf": {"type": "null"},
            "interior": {"type": "radiance_field", "sh_degree": 1, "sigma_t": blobs(8.0), "sh_coeffs": blobs(1.0)}
        },
        "sky": {"type": "constant", "radiance": 1}
    })
}

impl Place {
    fn new() -> Self {
        let place = Self {
            folder: tempfile::tempdir().expect("a temporary folder"),
        };
        place.write("scene.json", &scene());
        place.write("target.json", &target());
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, value: &Value) {
        fs::write(self.path(name), format!("{value:#}")).expect("writable");
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin!("prbopt"));
        command.args(arguments).current_dir(self.folder.path());
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().expect("the program starts")
    }

    /// Runs a command that must end with this exit code; returns stdout and stderr.
    #[track_caller]
    fn expect(&self, code: i32, arguments: &[&str]) -> (String, String) {
        let output = self.run(arguments);
        let (out, err) = (
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr),
        );
        assert_eq!(output.status.code(), Some(code), "{arguments:?}\n{out}\n{err}");
        (out.into_owned(), err.into_owned())
    }

    fn start(&self, arguments: &[&str]) -> Child {
        let mut command = self.command(arguments);
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        command.spawn().expect("the program starts")
    }

    fn json(&self, name: &str) -> Value {
        serde_json::from_slice(&fs::read(self.path(name)).expect("there")).expect("JSON")
    }

    /// Lines of a file that is being written.
    fn lines_so_far(&self, name: &str) -> usize {
        let bytes = fs::read(self.path(name)).unwrap_or_default();
        bytes.iter().filter(|b| **b == b'\n').count()
    }

    fn lines(&self, name: &str) -> Vec<Value> {
        let text = fs::read_to_string(self.path(name)).expect("there");
        text.lines()
            .map(|line| serde_json::from_str(line).expect("JSON"))
            .collect()
    }
}

/// Files of a folder and their bytes, by name.
fn contents(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut files: Vec<_> = fs::read_dir(folder)
        .expect("there")
        .map(|entry| entry.expect("readable"))
        .map(|entry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            (name, fs::read(entry.path()).expect("readable"))
        })
        .collect();
    files.sort();
    files
}

/// Waits until `ready` or fails after half a minute.
#[track_caller]
fn wait_for(mut ready: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !ready() {
        assert!(begun.elapsed() < Duration::from_secs(30), "waited in vain");
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn a_run_leaves_everything_that_it_promises() {
    let place = Place::new();
    let (out, err) = place.expect(0, &["optimize", "scene.json", "--device", "cpu"]);
    assert_eq!(out, "", "only data goes to stdout");
    for words in [
        "memory: about",
        "held-out views (1)",
        "rendering 1 held-out view at",
        "runs/scene/final",
        "prbopt render scene.json",
    ] {
        assert!(err.contains(words), "`{words}` is missing in {err}");
    }
    for file in [
        "final/object.interior.sigma_t.vol",
        "final/object.interior.sigma_t.npy",
        "final/object.interior.sh_coeffs.vol",
        "final/sky.radiance.json",
        "stages/1/object.interior.sigma_t.vol",
        "checkpoint.safetensors",
        "run.json",
        "scene.json",
        "held_out/d.png",
    ] {
        assert!(place.path("runs/scene").join(file).exists(), "{file}");
    }
    assert_eq!(
        place.json("runs/scene/start/sky.radiance.json")["value"],
        json!([0.5, 0.5, 0.5])
    );
    assert_eq!(
        place.json("runs/scene/truth/sky.radiance.json")["value"],
        json!([1.0, 1.0, 1.0])
    );
    assert!(!place.path("runs/scene/start/object.interior.sigma_t.vol").exists());
    let page = fs::read_to_string(place.path("runs/scene/report.html")).expect("there");
    for cell in [
        "0.50000&ensp;0.50000&ensp;0.50000</td><td>",
        "<td>1.00000&ensp;1.00000&ensp;1.00000</td></tr>",
    ] {
        assert!(page.contains(cell), "the report lacks {cell}");
    }
    let grid = |file: &str| prbopt::io::vol::read(&place.path("runs/scene").join(file)).expect("readable");
    assert_eq!(grid("final/object.interior.sh_coeffs.vol").size, [8, 8, 8]);
    assert_eq!(grid("final/object.interior.sh_coeffs.vol").channels, 12);
    assert_eq!(grid("stages/1/object.interior.sigma_t.vol").size, [4, 4, 4]);
    for iteration in ["00000", "00010", "00020", "00030"] {
        for extension in ["png", "exr"] {
            let file = place.path(&format!("runs/scene/images/{iteration}_a.{extension}"));
            let (image, _) = prbopt::io::image::read(&file).expect("decodable");
            assert_eq!((image.width, image.height, image.channels), (16, 16, 3));
        }
    }
    let metrics = place.lines("runs/scene/metrics.jsonl");
    let iterations: Vec<u64> = metrics.iter().filter_map(|m| m["iteration"].as_u64()).collect();
    assert_eq!(iterations, (1..=30).collect::<Vec<_>>());
    let last = metrics.last().expect("lines");
    assert!(last["loss"].as_f64() < metrics[0]["loss"].as_f64(), "{last}");
    assert!(last["ms"]["adjoint"].as_f64() > Some(0.0) && last["memory_bytes"].as_u64() > Some(0));
    assert_eq!(
        (metrics[14]["stage"].as_u64(), metrics[15]["stage"].as_u64()),
        (Some(1), Some(2))
    );
    assert!(metrics[0]["penalty"].is_number() && metrics[1]["penalty"] == 0.0);
    assert!(last["gradient_norms"]["sky.radiance"].as_f64() > Some(0.0));
    let held_out = place.json("runs/scene/held_out.json");
    assert!(held_out["mean_psnr"].as_f64() > Some(5.0) && held_out["mean_ssim"].is_number());
    assert_eq!(held_out["views"][0]["name"], "d");
    let run = place.json("runs/scene/run.json");
    assert_eq!(run["device"]["kind"], "cpu");
    assert!(run["seed"].is_number() && run["version"].is_string() && run["command"][1] == "optimize");
}

#[test]
fn killed_and_resumed_runs_end_with_the_same_bits() {
    let place = Place::new();
    let mut scene = scene();
    scene["optimize"]["stages"] = json!([{"at": 0.1, "upsample": 1, "spp": 2}, {"at": 0.5}]);
    place.write("scene.json", &scene);
    let optimize = |output: &str, more: &[&str]| -> Vec<String> {
        let words = [
            "optimize",
            "scene.json",
            "--device",
            "cpu",
            "--iterations",
            "300",
            "--quiet",
            "-o",
            output,
        ];
        words.iter().chain(more).map(ToString::to_string).collect()
    };
    let words = |words: &[String]| -> Vec<&'static str> {
        words.iter().map(|w| &*Box::leak(w.clone().into_boxed_str())).collect()
    };
    place.expect(0, &words(&optimize("whole", &[])));
    let checkpoint = place.path("killed/checkpoint.safetensors");
    let mut kills = 0;
    let mut resume: &[&str] = &[];
    for pause in [0, 40, 15, 70, 25] {
        let mut child = place.start(&words(&optimize("killed", resume)));
        let written = || fs::metadata(&checkpoint).ok().and_then(|m| m.modified().ok());
        let before = written();
        let mut ended = false;
        wait_for(|| {
            ended = child.try_wait().expect("a child").is_some();
            ended || written() != before
        });
        std::thread::sleep(Duration::from_millis(pause));
        kills += usize::from(child.kill().is_ok() && !ended);
        child.wait().expect("a child");
        resume = &["--resume"];
    }
    assert!(kills >= 2, "the run ended before it could be killed");
    place.expect(0, &words(&optimize("killed", resume)));
    for folder in ["final", "stages/1", "stages/2", "held_out"] {
        let (a, b) = (place.path("whole").join(folder), place.path("killed").join(folder));
        assert_eq!(contents(&a), contents(&b), "{folder}");
    }
    let iterations: Vec<u64> = place
        .lines("killed/metrics.jsonl")
        .iter()
        .filter_map(|m| m["iteration"].as_u64())
        .collect();
    assert_eq!(iterations, (1..=300).collect::<Vec<_>>(), "no line twice, none missing");
    let resumed = place.json("killed/run.json")["resumed"].as_array().map(Vec::len);
    assert!(resumed >= Some(1), "{resumed:?}");
}

/// A stage that changes no setting leaves the bits as they are: moments and steps go on. One of more samples changes the values
/// but not the sizes of the results.
#[test]
fn a_stage_of_samples_alone_keeps_all_else() {
    let place = Place::new();
    let run = |name: &str, stages: Value| {
        let mut scene = scene();
        scene["optimize"]["stages"] = stages;
        place.write("scene.json", &scene);
        place.expect(0, &["optimize", "scene.json", "--device", "cpu", "--quiet", "-o", name]);
        contents(&place.path(name).join("final"))
    };
    let whole = run("whole", json!([]));
    let same = run("same", json!([{"at": 0.4, "upsample": 1, "spp": 1}]));
    assert_eq!(whole, same);
    assert_eq!(place.lines("same/metrics.jsonl")[29]["stage"], 2);
    let reset = run("reset", json!([{"at": 0.4, "upsample": 1, "moments": "reset"}]));
    assert_ne!(whole, reset);
    let more = run("more", json!([{"at": 0.4, "upsample": 1, "spp": 4}]));
    assert_ne!(whole, more);
    let sizes = |files: &[(String, Vec<u8>)]| {
        files
            .iter()
            .map(|(name, data)| (name.clone(), data.len()))
            .collect::<Vec<_>>()
    };
    assert_eq!(sizes(&whole), sizes(&more));
}

#[test]
fn threads_change_no_bit() {
    let place = Place::new();
    for threads in ["1", "2", "3"] {
        let output = place
            .command(&["optimize", "scene.json", "--device", "cpu", "--quiet", "-o", threads])
            .env("RAYON_NUM_THREADS", threads)
            .output();
        assert!(output.expect("the program starts").status.success());
    }
    for other in ["2/final", "3/final"] {
        assert_eq!(contents(&place.path("1/final")), contents(&place.path(other)));
    }
    place.expect(0, &["optimize", "scene.json", "--quiet", "-o", "other", "--seed", "5"]);
    assert_ne!(contents(&place.path("1/final")), contents(&place.path("other/final")));
}

#[cfg(unix)]
#[test]
fn ctrl_c_saves_and_says_how_to_go_on() {
    let place = Place::new();
    let words = [
        "optimize",
        "scene.json",
        "--device",
        "cpu",
        "--iterations",
        "100000",
        "-o",
        "a folder",
    ];
    let child = place.start(&words);
    wait_for(|| place.path("a folder/checkpoint.safetensors").exists());
    let status = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(status.expect("kill").success());
    let output = child.wait_with_output().expect("a child");
    assert_eq!(output.status.code(), Some(130));
    let text = String::from_utf8_lossy(&output.stderr);
    let command = "prbopt optimize scene.json --resume -o 'a folder' --device cpu";
    assert!(text.contains(command), "{text}");
    let lines = place.lines("a folder/metrics.jsonl");
    let done = lines.last().expect("lines")["iteration"].as_u64().expect("a number");
    assert!(text.contains(&format!("stopped after iteration {done};")), "{text}");
    let more = (done + 5).to_string();
    let (_, err) = place.expect(
        0,
        &[
            "optimize",
            "scene.json",
            "--device",
            "cpu",
            "--resume",
            "-o",
            "a folder",
            "--iterations",
            &more,
        ],
    );
    assert!(err.contains(&format!("going on from iteration {done}")), "{err}");
}

#[test]
fn a_folder_that_holds_a_run_is_refused() {
    let place = Place::new();
    let words = ["optimize", "scene.json", "--iterations", "3", "-o", "run"];
    place.expect(0, &words);
    fs::write(place.path("run/notes.txt"), "mine").expect("writable");
    let before = contents(&place.path("run/final"));
    let (_, err) = place.expect(2, &words);
    assert!(
        err.starts_with("error: run: holds a run already") && err.contains("--resume") && err.contains("--force"),
        "{err}"
    );
    assert_eq!(contents(&place.path("run/final")), before);
    place.expect(
        0,
        &["optimize", "scene.json", "--iterations", "3", "-o", "run", "--force"],
    );
    assert!(place.path("run/notes.txt").exists());
    place.expect(2, &["optimize", "scene.json", "-o", "run", "--force", "--resume"]);
}

#[test]
fn a_failed_replacement_leaves_the_old_run() {
    let place = Place::new();
    place.expect(0, &["optimize", "scene.json", "--iterations", "3", "-o", "run"]);
    let before = contents(&place.path("run/final"));
    let mut broken = scene();
    broken["optimize"]["references"] = json!({"type": "images"});
    place.write("scene.json", &broken);
    place.expect(2, &["optimize", "scene.json", "-o", "run", "--force"]);
    assert_eq!(contents(&place.path("run/final")), before);
}

#[test]
fn an_unwritable_folder_is_told_before_any_work() {
    let place = Place::new();
    let (_, err) = place.expect(2, &["optimize", "scene.json", "-o", "target.json/run"]);
    assert!(err.contains("target.json/run") && err.contains("--output"), "{err}");
    assert!(!err.contains("rendering"), "{err}");
    let (_, err) = place.expect(2, &["render", "scene.json", "-o", "target.json/views"]);
    assert!(err.contains("target.json/views"), "{err}");
}

#[test]
fn a_checkpoint_of_something_else_is_refused() {
    let place = Place::new();
    place.expect(0, &["optimize", "scene.json", "--iterations", "4", "-o", "run"]);
    let resume = ["optimize", "scene.json", "--resume", "-o", "run"];
    let (_, err) = place.expect(2, &["optimize", "scene.json", "--resume", "-o", "run", "--seed", "9"]);
    assert!(err.contains("seed 0, not 9"), "{err}");
    let mut other = scene();
    other["optimize"]["parameters"]["sky.radiance"]["learning_rate"] = json!(0.02);
    place.write("scene.json", &other);
    let (_, err) = place.expect(2, &resume);
    assert!(err.contains("another scene"), "{err}");
    let mut images_only = scene();
    images_only["optimize"]["output"]["images_every"] = json!(1);
    place.write("scene.json", &images_only);
    place.expect(0, &resume);
    let elsewhere = Place::new();
    fs::rename(place.path("run"), elsewhere.path("run")).expect("movable");
    elsewhere.expect(0, &resume);
    fs::rename(elsewhere.path("run"), place.path("run")).expect("movable");
    let checkpoint = place.path("run/checkpoint.safetensors");
    let bytes = fs::read(&checkpoint).expect("there");
    fs::write(&checkpoint, &bytes[..bytes.len() - 4]).expect("writable");
    let (_, err) = place.expect(2, &resume);
    assert!(err.contains("truncated") && err.contains("--force"), "{err}");
}

#[test]
fn machines_get_json_lines_and_quiet_gets_nothing() {
    let place = Place::new();
    let (out, err) = place.expect(0, &["optimize", "scene.json", "--json", "-o", "a"]);
    assert_eq!(err, "");
    let events: Vec<Value> = out.lines().map(|l| serde_json::from_str(l).expect("JSON")).collect();
    let count = |name: &str| events.iter().filter(|e| e["event"] == name).count();
    assert_eq!(
        (count("start"), count("iteration"), count("stage"), count("done")),
        (1, 30, 1, 1)
    );
    let done = events.last().expect("lines");
    assert!(
        done["event"] == "done" && done["held_out_mean_psnr"].is_number(),
        "{done}"
    );
    let (out, err) = place.expect(0, &["optimize", "scene.json", "--quiet", "-o", "b"]);
    assert_eq!((out.as_str(), err.as_str()), ("", ""));
    let (out, _) = place.expect(0, &["info", "--json"]);
    let info: Value = serde_json::from_str(&out).expect("JSON");
    assert!(
        info["version"].is_string() && info["devices"].as_array().is_some_and(|d| !d.is_empty()),
        "{info}"
    );
    place.expect(0, &["info"]);
}

#[test]
fn a_broken_scene_is_told_with_all_its_mistakes() {
    let place = Place::new();
    let mut broken = scene();
    broken["optimize"]["iteratons"] = json!(5);
    broken["a"]["fov"] = json!("wide");
    place.write("scene.json", &broken);
    for command in ["optimize", "render", "info"] {
        let (_, err) = place.expect(2, &[command, "scene.json"]);
        assert!(
            err.contains("error: ") && err.contains("iteratons") && err.contains("`iterations`"),
            "{err}"
        );
        assert!(err.contains("fov"), "all mistakes are told together: {err}");
    }
    assert!(!place.path("runs").exists() && !place.path("renders").exists());
    let (_, err) = place.expect(2, &["optimize", "nowhere.json"]);
    assert!(err.contains("nowhere.json"), "{err}");
    let (_, err) = place.expect(2, &["optimize", "target.json"]);
    assert!(err.contains("no block `optimize`"), "{err}");
    place.expect(2, &["optimize", "scene.json", "--iterations", "0"]);
}

#[test]
fn a_parameter_that_nothing_reaches_is_named() {
    let place = Place::new();
    let mut away = scene();
    for name in ["a", "b", "c"] {
        away[name]["to_world"] = json!([{"look_at": {"origin": [0, 0, 5], "target": [0, 0, 9], "up": [0, 1, 0]}}]);
    }
    away["optimize"]["regularizers"] = json!([]);
    place.write("scene.json", &away);
    let (_, err) = place.expect(2, &["optimize", "scene.json"]);
    assert!(
        err.contains("object.interior.sigma_t") && err.contains("received no gradient"),
        "{err}"
    );
    assert!(!err.contains("sky.radiance received"), "{err}");
}
