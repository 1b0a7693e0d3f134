//! The page of a run: viewers change no bit of the run, and attackers neither stop nor slow it.

mod attacks;
mod client;
mod worlds;

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use client::{Events, Served, outcome, processor_time};
use serde_json::{Value, json};

/// The program, run to its end in a folder, and the seconds of processor time that it took.
fn run_alone(folder: &Path, words: &[&str]) -> f64 {
    let process = Command::new(assert_cmd::cargo::cargo_bin!("prbopt"))
        .args(words)
        .arg("--quiet")
        .current_dir(folder)
        .stdin(Stdio::null())
        .spawn()
        .expect("starts");
    let (went_well, seconds) = processor_time(process);
    assert!(went_well, "{words:?}");
    seconds
}

/// The view of a camera that is turned about y by `angle`, or, of a flat picture, an enlarged part.
fn view(sensor: usize, flat: bool, angle: f64, show: &Value) -> Value {
    let (sin, cos) = angle.sin_cos();
    let motion = match flat {
        true => json!([[0.5, 0, 0, 0.1 * cos], [0, 0.5, 0, 0.1 * sin], [0, 0, 1, 0]]),
        false => json!([[cos, 0, sin, 0], [0, 1, 0, 0], [-sin, 0, cos, 0]]),
    };
    json!({"sensor": sensor, "motion": motion, "zoom": 1, "show": show, "pixels": 96})
}

/// Asks for a view and waits for its picture.
fn look(served: &Served, events: &Events, view: &Value) -> Vec<u8> {
    let (status, answer) = served.command("/view", &view.to_string());
    assert_eq!(status, 200, "{view}");
    let number: u64 = String::from_utf8_lossy(&answer).trim().parse().expect("a number");
    let about = events.wait("picture", |of| of["order"] == number);
    assert_eq!(about["show"], view["show"]);
    let (status, png) = served.get("/picture");
    assert_eq!(status, 200);
    image::load_from_memory(&png).expect("a PNG").into_rgb8().into_raw()
}

/// A run that is paused, looked at in every way, saved, resumed, and looked at until it ends.
fn run_watched(folder: &Path, words: &[&str], shows: &[Value], flat: bool) {
    let served = Served::start(folder, words);
    let events = served.events();
    assert_eq!(served.post("/pause", ""), 200);
    events.wait("standing", |of| of["state"] == "paused");
    let is_gradient = |show: &&Value| show.is_object();
    for show in shows.iter().filter(|show| !is_gradient(show)) {
        let seen = [0.0, 1.0, 2.0].map(|angle| look(&served, &events, &view(0, flat, angle, show)));
        assert!(seen[0].iter().any(|v| *v != seen[0][0]), "{show} is more than one grey");
        if show == "picture" {
            assert_ne!(seen[0], seen[1], "{show}");
            assert_ne!(seen[1], seen[2], "{show}");
        }
    }
    assert_eq!(served.post("/save", ""), 200);
    events.wait("saved", |_| true);
    assert_eq!(served.post("/go_on", ""), 200);
    for show in shows.iter().filter(is_gradient) {
        let seen = look(&served, &events, &view(0, flat, 0.5, show));
        assert!(seen.iter().any(|v| *v != seen[0]), "{show} is more than one grey");
    }
    let mut angle = 0.0;
    while served.post("/view", &view(0, flat, angle, &shows[0]).to_string()) == 200 {
        angle += 0.2;
        std::thread::sleep(Duration::from_millis(20));
    }
    let (went_well, _) = served.finish();
    assert!(went_well, "{words:?}");
    assert!(
        events.last("standing").is_some_and(|of| of["state"] == "over"),
        "pages are told of the end"
    );
}

/// Runs a scene with and without a viewer.
fn compare(worlds: [&Value; 2], words: &[&str], shows: &[Value], flat: bool) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    worlds::write(folder.path(), worlds);
    let words = |output: &'static str| [&["optimize", "scene.json", "-o", output], words].concat();
    run_alone(folder.path(), &words("alone"));
    run_watched(folder.path(), &words("watched"), shows, flat);
    let [alone, watched] = ["alone", "watched"].map(|run| outcome(&folder.path().join(run)));
    assert_eq!(alone.len(), watched.len());
    for (a, b) in alone.iter().zip(&watched) {
        assert!(a == b, "{} is not {}", a.0, b.0);
    }
}

fn shows(gradients: &[&str]) -> Vec<Value> {
    let mut all = vec![json!("picture"), json!("depth"), json!("opacity")];
    all.extend(gradients.iter().map(|path| json!({"gradient": path})));
    all
}

const CPU: &[&str] = &["--device", "cpu"];

#[test]
fn looking_changes_no_bit_of_a_field() {
    let shows = shows(&["object.interior.sigma_t", "object.interior.sh_coeffs"]);
    let long = [CPU, &["--iterations", "1500"]].concat();
    compare([&worlds::field(false), &worlds::field(true)], &long, &shows, false);
}

#[test]
fn looking_changes_no_bit_of_paths() {
    let volpath = json!({"type": "prbvolpath", "max_depth": 4});
    let worlds = [false, true].map(|target| worlds::paths(target, volpath.clone()));
    compare(
        [&worlds[0], &worlds[1]],
        CPU,
        &shows(&["smoke.interior.sigma_t"]),
        false,
    );
}

/// A textured room, in which the gradient is that of the texture where it is seen.
#[test]
fn looking_changes_no_bit_of_surfaces() {
    let worlds = [false, true].map(worlds::surfaces);
    compare(
        [&worlds[0], &worlds[1]],
        CPU,
        &shows(&["floor.bsdf.reflectance"]),
        false,
    );
}

/// An estimator that carries an image from one iteration to the next.
#[test]
fn looking_changes_no_bit_of_what_is_carried_on() {
    let pipelined = json!({"type": "rbvolpath", "max_depth": 4, "variant": "pipelined"});
    let worlds = [false, true].map(|target| worlds::paths(target, pipelined.clone()));
    compare(
        [&worlds[0], &worlds[1]],
        CPU,
        &shows(&["smoke.interior.sigma_t"]),
        false,
    );
}

#[test]
fn looking_changes_no_bit_of_splats() {
    let worlds = [worlds::splats(), worlds::splats()];
    let shows = [json!("picture"), json!("opacity"), json!({"gradient": "splats.color"})];
    compare([&worlds[0], &worlds[1]], CPU, &shows, true);
}

/// On a GPU, if there is one.
#[test]
fn looking_changes_no_bit_on_a_gpu() {
    if !prbopt::device::select::list().is_empty() {
        let gpu: &[&str] = &["--device", "gpu", "--deterministic", "--iterations", "12"];
        let shows = shows(&["object.interior.sigma_t"]);
        compare([&worlds::field(false), &worlds::field(true)], gpu, &shows, false);
        let splats = [worlds::splats(), worlds::splats()];
        compare(
            [&splats[0], &splats[1]],
            gpu,
            &[json!("picture"), json!("opacity")],
            true,
        );
        return;
    }
    assert!(std::env::var_os("PRBOPT_REQUIRE_GPU").is_none(), "there is no GPU");
    eprintln!("skipped: there is no GPU");
}

/// A run that is over is looked at through all its cameras, and takes no commands.
#[test]
fn finished_runs_are_looked_at() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    worlds::write(folder.path(), [&worlds::field(false), &worlds::field(true)]);
    let words = [
        "optimize",
        "scene.json",
        "-o",
        "run",
        "--device",
        "cpu",
        "--iterations",
        "12",
    ];
    run_alone(folder.path(), &words);
    let served = Served::start(folder.path(), &["view", "run", "--device", "cpu"]);
    let events = served.events();
    assert_eq!(events.wait("standing", |_| true)["state"], "finished");
    let seen = [0, 1, 2].map(|sensor| look(&served, &events, &view(sensor, false, 0.0, &json!("picture"))));
    assert!(seen[0] != seen[1] && seen[1] != seen[2]);
    let (status, report) = served.get("/report");
    assert!(status == 200 && String::from_utf8_lossy(&report).contains("Convergence"));
    for path in ["/pause", "/go_on", "/save", "/stop"] {
        assert_eq!(served.post(path, ""), 404, "{path}");
    }
    let gradient = view(0, false, 0.0, &json!({"gradient": "object.interior.sigma_t"}));
    assert_eq!(
        served.post("/view", &gradient.to_string()),
        400,
        "gradients are those of a run at work"
    );
    // Ctrl-C ends it, with success.
    let interrupt = |served: Served| {
        // SAFETY: the process is this test's own and has not been waited for.
        assert_eq!(
            unsafe { libc::kill(served.process.id() as libc::pid_t, libc::SIGINT) },
            0
        );
        assert!(served.finish().0, "Ctrl-C is how it ends");
    };
    interrupt(served);
    std::fs::remove_dir_all(folder.path().join("run/final")).expect("it is there");
    let served = Served::start(folder.path(), &["view", "run", "--device", "cpu"]);
    assert_eq!(served.events().wait("standing", |_| true)["state"], "stopped");
    interrupt(served);
}

/// `/stop` acts like Ctrl-C: the run is saved, and resumed by `--resume` ends with the bits of one that was never stopped.
#[test]
fn stopped_runs_go_on() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    worlds::write(folder.path(), [&worlds::field(false), &worlds::field(true)]);
    let words = |output: &'static str| ["optimize", "scene.json", "-o", output, "--device", "cpu"];
    run_alone(folder.path(), &words("whole"));
    let served = Served::start(folder.path(), &words("stopped"));
    let events = served.events();
    assert_eq!(served.post("/pause", ""), 200);
    events.wait("standing", |of| of["state"] == "paused");
    assert_eq!(served.post("/stop", ""), 200);
    let (went_well, _) = served.finish();
    assert!(!went_well, "an interrupted run says so by its exit code");
    assert!(!folder.path().join("stopped/final").exists());
    run_alone(folder.path(), &[&words("stopped")[..], &["--resume"]].concat());
    let [whole, stopped] = ["whole", "stopped"].map(|run| outcome(&folder.path().join(run)));
    assert!(whole == stopped);
}

/// Pages are told of the last iteration and have time to read the last report, before they are told that nothing more comes.
#[test]
fn the_end_is_told_with_its_figures_and_its_report() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    worlds::write(folder.path(), [&worlds::field(false), &worlds::field(true)]);
    let served = Served::start(
        folder.path(),
        &["optimize", "scene.json", "-o", "run", "--device", "cpu"],
    );
    let events = served.events();
    while events.last("report").is_none_or(|of| of["last"] != true) {
        let is_over = events.last("standing").is_some_and(|of| of["state"] == "over");
        assert!(!is_over, "no page was told of the last report");
        std::thread::sleep(Duration::from_millis(10));
    }
    let (status, report) = served.get("/report");
    assert_eq!(status, 200);
    events.wait("standing", |of| of["state"] == "over");
    assert_eq!(events.last("figures").expect("figures")["iteration"], 60);
    assert!(served.finish().0);
    let written = std::fs::read(folder.path().join("run/report.html")).expect("a report");
    assert!(report == written, "what was read is the report of the whole run");
}

/// Pixels without a surface have no depth: they are black, not coloured like the nearest depth.
#[test]
fn what_is_behind_all_surfaces_has_no_depth() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    worlds::write(folder.path(), [&worlds::surfaces(false), &worlds::surfaces(true)]);
    run_alone(
        folder.path(),
        &[
            "optimize",
            "scene.json",
            "-o",
            "run",
            "--device",
            "cpu",
            "--iterations",
            "2",
        ],
    );
    let served = Served::start(folder.path(), &["view", "run", "--device", "cpu"]);
    let events = served.events();
    let seen = look(&served, &events, &view(0, false, 0.0, &json!("depth")));
    let (sky, floor) = (&seen[..3], &seen[seen.len() - 3..]);
    assert!(sky == [0; 3] && floor != [0; 3], "{sky:?} {floor:?}");
    // SAFETY: the process is this test's own and has not been waited for.
    assert_eq!(
        unsafe { libc::kill(served.process.id() as libc::pid_t, libc::SIGINT) },
        0
    );
    assert!(served.finish().0, "Ctrl-C is how it ends");
}
