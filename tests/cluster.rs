//! Runs and renders of several ranks of an MPI job, each a process of its own on this machine: their files are those of one
//! process, byte by byte, and a failure of one rank ends the job with a message.

#![cfg(feature = "mpi")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use prbopt::cluster::{Cluster, Membership};

const PROGRAM: &str = env!("CARGO_BIN_EXE_prbopt");

fn scene(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenes").join(name);
    path.display().to_string()
}

/// A command of so many ranks, each of which has so many threads.
fn ranks(count: usize, threads: usize) -> Command {
    let mut command = Command::new("mpirun");
    command.args(["--oversubscribe", "--allow-run-as-root", "--bind-to", "none", "-n"]);
    command.arg(count.to_string());
    command.env("RAYON_NUM_THREADS", threads.to_string());
    // Ranks that wait leave the processor to those that work: there are more of them than cores. Read by Open MPI.
    command.env("OMPI_MCA_mpi_yield_when_idle", "1");
    command
}

fn shown(output: &Output) -> String {
    let [out, err] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text).into_owned());
    format!("{}\n{out}\n{err}", output.status)
}

fn succeed(command: &mut Command) -> String {
    let output = command.output().expect("mpirun can be started");
    assert!(output.status.success(), "{command:?}: {}", shown(&output));
    shown(&output)
}

fn fail(command: &mut Command) -> String {
    let output = command.output().expect("it can be started");
    assert!(!output.status.success(), "{command:?}: {}", shown(&output));
    shown(&output)
}

/// All files below a folder that hold results.
fn results(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(&next).expect("it is a folder").flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let name = path.file_name().expect("it has one").to_string_lossy().into_owned();
            // Those tell when and where they were made.
            let tells_time = ["run.json", "report.html", ".lock", "checkpoint.safetensors"].contains(&&name[..]);
            if !tells_time {
                let relative = path.strip_prefix(folder).expect("below it").to_owned();
                let bytes = fs::read(&path).expect("readable");
                found.insert(
                    relative,
                    if name == "metrics.jsonl" {
                        timeless(&bytes)
                    } else {
                        bytes
                    },
                );
            }
        }
    }
    assert!(!found.is_empty());
    found
}

/// Lines of figures without seconds and bytes.
fn timeless(lines: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(lines);
    let line = |line: &str| {
        let mut figures: serde_json::Value = serde_json::from_str(line).expect("a line of JSON");
        let all = figures.as_object_mut().expect("an object");
        for name in ["ms", "seconds", "memory_bytes"] {
            assert!(all.shift_remove(name).is_some(), "{name}");
        }
        figures.to_string() + "\n"
    };
    text.lines().map(line).collect::<String>().into_bytes()
}

/// Both folders have the same files with the same bytes; names those that differ.
fn hold(expected: &BTreeMap<PathBuf, Vec<u8>>, found: &BTreeMap<PathBuf, Vec<u8>>, what: &str) {
    assert!(
        expected.keys().eq(found.keys()),
        "{what}: {:?} {:?}",
        expected.keys(),
        found.keys()
    );
    let differ: Vec<_> = expected
        .iter()
        .filter(|(path, bytes)| found[*path] != **bytes)
        .map(|(path, _)| path)
        .collect();
    assert!(differ.is_empty(), "{what}: {differ:?} differ");
}

/// A scene, the changes that make it small, and the iterations of its runs.
struct Subject {
    scene: &'static str,
    changes: &'static [&'static str],
    iterations: u32,
}

const SMOKE: Subject = Subject {
    scene: "smoke_nine_views.json",
    changes: &[
        "optimize.references.spp=2",
        "optimize.spp=2",
        "optimize.spp_grad=1",
        "optimize.output.images_every=3",
        "optimize.output.spp=2",
    ],
    iterations: 6,
};

const FIELD: Subject = Subject {
    scene: "two_blobs.json",
    changes: &["optimize.references.spp=1", "optimize.output.images_every=3"],
    iterations: 8,
};

const SURFACES: Subject = Subject {
    scene: "painted_room.json",
    changes: &["optimize.references.spp=2", "optimize.spp=1", "optimize.spp_grad=1"],
    iterations: 4,
};

const SPLATS: Subject = Subject {
    scene: "splats.json",
    changes: &["optimize.output.images_every=5"],
    iterations: 10,
};

/// Two pictures of one set of splats, whose number grows. Neither rows of tiles nor pictures end where workgroups of the loss do.
const PICTURES: Subject = Subject {
    changes: &[
        "splats.count=3000",
        r#"picture.film={"type": "hdrfilm", "width": 200, "height": 136, "color_space": "srgb"}"#,
        r#"smaller={"type": "canvas", "film": {"type": "hdrfilm", "width": 90, "height": 70, "color_space": "srgb"}}"#,
        "optimize.batch=all",
        r#"optimize.growth={"count": 3300, "every": 1, "until": 0.9}"#,
    ],
    ..SPLATS
};

/// Light through heights onto a film whose number of pixels the ranks do not divide.
const CAUSTIC: Subject = Subject {
    scene: "caustic.json",
    changes: &[
        "camera.film.width=50",
        "camera.film.height=39",
        "optimize.spp=4",
        "optimize.spp_grad=3",
        "optimize.output.spp=4",
    ],
    iterations: 3,
};

/// Light through a cube onto two films.
const BENT_LIGHT: Subject = Subject {
    scene: "bent_light.json",
    changes: &[
        "up.film.width=50",
        "up.film.height=39",
        "across.film.width=32",
        "across.film.height=20",
        "optimize.spp=2",
        "optimize.spp_grad=1",
        "optimize.output.spp=2",
    ],
    iterations: 3,
};

/// A field in a run that also finds the cameras' poses, focal length and lens, and the radiance of the background.
const CAMERAS: Subject = Subject {
    changes: &[
        "optimize.references.spp=1",
        "optimize.output.images_every=0",
        r#"optimize.parameters={"object.interior.sigma_t": {"learning_rate": 0.2, "start_resolution": [12, 12, 12]},
            "object.interior.sh_coeffs": {"start_resolution": [12, 12, 12]}, "background.radiance": {},
            "views.poses": {"learning_rate": 0.001}, "views.focal": {}, "views.distortion": {}}"#,
    ],
    ..FIELD
};

impl Subject {
    fn optimize(&self, command: Command, iterations: u32, folder: &Path, more: &[&str]) -> String {
        self.optimize_on("cpu", command, iterations, folder, more)
    }

    fn optimize_on(&self, device: &str, mut command: Command, iterations: u32, folder: &Path, more: &[&str]) -> String {
        command
            .args([PROGRAM, "optimize", &scene(self.scene), "--device", device, "-q", "-o"])
            .arg(folder);
        command.args(["--iterations", &iterations.to_string()]);
        for change in self.changes {
            command.args(["--set", change]);
        }
        succeed(command.args(more))
    }

    /// One rank of two threads, and two to four ranks of one or two threads, leave the same files.
    fn hold_bits(&self) {
        let root = tempfile::tempdir().expect("a temporary folder");
        let at = |name: &str| root.path().join(name);
        self.optimize(ranks(1, 2), self.iterations, &at("1"), &[]);
        let expected = results(&at("1"));
        assert!(
            expected.keys().any(|path| path.starts_with("final")),
            "{:?}",
            expected.keys()
        );
        for (count, threads) in [(2, 1), (3, 2), (4, 1)] {
            let folder = at(&count.to_string());
            let told = self.optimize(ranks(count, threads), self.iterations, &folder, &[]);
            assert!(!told.contains("warning"), "{told}");
            hold(
                &expected,
                &results(&folder),
                &format!("{} by {count} ranks", self.scene),
            );
        }
    }
}

#[test]
fn smoke_has_the_same_bits_for_any_number_of_ranks() {
    SMOKE.hold_bits();
}

#[test]
fn surfaces_have_the_same_bits_for_any_number_of_ranks() {
    SURFACES.hold_bits();
}

#[test]
fn fields_have_the_same_bits_for_any_number_of_ranks() {
    FIELD.hold_bits();
}

#[test]
fn cameras_have_the_same_bits_for_any_number_of_ranks() {
    CAMERAS.hold_bits();
}

#[test]
fn splats_have_the_same_bits_for_any_number_of_ranks() {
    SPLATS.hold_bits();
}

#[test]
fn light_has_the_same_bits_for_any_number_of_ranks() {
    CAUSTIC.hold_bits();
    BENT_LIGHT.hold_bits();
}

/// A run that is stopped halfway and resumed with another number of ranks leaves the files of one rank that was stopped there,
/// too.
#[test]
fn a_run_goes_on_with_another_number_of_ranks() {
    for subject in [SMOKE, FIELD, CAMERAS] {
        let root = tempfile::tempdir().expect("a temporary folder");
        let at = |name: &str| root.path().join(name);
        let (half, whole) = (subject.iterations / 2, subject.iterations);
        for (name, first, second) in [("one", 1, 1), ("more", 3, 2)] {
            subject.optimize(ranks(first, 1), half, &at(name), &[]);
            subject.optimize(ranks(second, 1), whole, &at(name), &["--resume"]);
        }
        hold(&results(&at("one")), &results(&at("more")), subject.scene);
    }
}

/// Rank 0 keeps the moments of its part of the grids alone: here at most twice its equal share of both moments, each with a layer
/// of bricks.
#[test]
fn moments_of_a_field_are_kept_in_parts() {
    let root = tempfile::tempdir().expect("a temporary folder");
    // Bytes of the values of 48³ texels, with a density and twelve coefficients each.
    let array = 4 * 13 * 48u64.pow(3);
    let memory = |count: usize| {
        let folder = root.path().join(count.to_string());
        let change = ["--set", "optimize.stages=[]", "--set", "optimize.batch={\"rays\": 256}"];
        let whole = [
            "--set",
            r#"optimize.parameters={"object.interior.sigma_t": {"learning_rate": 0.2}, "object.interior.sh_coeffs": {}}"#,
        ];
        FIELD.optimize(ranks(count, 1), 4, &folder, &[&change[..], &whole[..]].concat());
        let lines = fs::read_to_string(folder.join("metrics.jsonl")).expect("figures");
        let last: serde_json::Value = serde_json::from_str(lines.lines().last().expect("a line")).expect("JSON");
        last["memory_bytes"].as_u64().expect("a number")
    };
    let alone = memory(1);
    assert!(alone > 4 * array, "{alone}");
    let layer = array / 12;
    for count in [3, 4] {
        let saved = alone.saturating_sub(memory(count));
        let kept = (2 * array).saturating_sub(saved);
        assert!(
            kept <= 2 * (2 * array / count as u64 + layer) && saved > array / 2,
            "{count}: {kept} of {array}"
        );
    }
}

/// Whether there is a GPU adapter, of hardware or software.
fn has_gpu() -> bool {
    let found = !prbopt::device::select::list().is_empty();
    let required = std::env::var_os("PRBOPT_REQUIRE_GPU").is_some_and(|v| v == "1");
    assert!(found || !required, "PRBOPT_REQUIRE_GPU is set, but there is no adapter");
    found
}

/// What a run on GPUs leaves; each rank takes an adapter, all the same one where there is no other.
fn on_gpus(subject: &Subject, count: usize, more: &[&str]) -> BTreeMap<PathBuf, Vec<u8>> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    subject.optimize_on("gpu", ranks(count, 1), 3, folder.path(), more);
    results(folder.path())
}

/// A run that sums in whole numbers leaves the same files on one GPU and on so many.
fn hold_on_gpus(subject: &Subject, ranks: usize) {
    if !has_gpu() {
        return eprintln!("skipped: no adapter");
    }
    let expected = on_gpus(subject, 1, &["--deterministic"]);
    let what = format!("{} by {ranks} ranks", subject.scene);
    hold(&expected, &on_gpus(subject, ranks, &["--deterministic"]), &what);
}

#[test]
fn whole_numbers_of_a_field_have_the_same_bits_for_any_number_of_gpus() {
    hold_on_gpus(&FIELD, 3);
}

#[test]
fn whole_numbers_of_smoke_have_the_same_bits_for_any_number_of_gpus() {
    hold_on_gpus(&SMOKE, 2);
}

#[test]
fn whole_numbers_of_cameras_have_the_same_bits_for_any_number_of_gpus() {
    hold_on_gpus(&CAMERAS, 2);
}

#[test]
fn whole_numbers_of_surfaces_have_the_same_bits_for_any_number_of_gpus() {
    hold_on_gpus(&SURFACES, 2);
}

#[test]
fn whole_numbers_of_light_have_the_same_bits_for_any_number_of_gpus() {
    hold_on_gpus(&CAUSTIC, 3);
    hold_on_gpus(&BENT_LIGHT, 2);
}

#[test]
fn whole_numbers_of_splats_have_the_same_bits_for_any_number_of_gpus() {
    hold_on_gpus(&PICTURES, 3);
}

/// Sums in floats are rounded in another order: losses agree to 1e-4.
#[test]
fn sums_in_floats_agree_for_any_number_of_gpus() {
    if !has_gpu() {
        return eprintln!("skipped: no adapter");
    }
    let losses = |subject: &Subject, count: usize| -> Vec<f64> {
        let files = on_gpus(subject, count, &[]);
        let text = String::from_utf8_lossy(&files[Path::new("metrics.jsonl")]).into_owned();
        let loss = |line| serde_json::from_str::<serde_json::Value>(line).expect("JSON")["loss"].as_f64();
        text.lines().map(|line| loss(line).expect("a number")).collect()
    };
    for subject in [FIELD, CAUSTIC, PICTURES] {
        let (one, two) = (losses(&subject, 1), losses(&subject, 2));
        assert!(one.len() == 3 && one[2] < 0.999 * one[0], "{one:?}");
        for (a, b) in one.iter().zip(&two) {
            assert!((a - b).abs() <= 1e-4 * a.abs(), "{}: {one:?} {two:?}", subject.scene);
        }
    }
}

/// Messages of at most 100 000 bytes carry the same as whole ones.
#[test]
fn large_messages_go_in_pieces() {
    let root = tempfile::tempdir().expect("a temporary folder");
    let at = |name: &str| root.path().join(name);
    let subject = Subject { iterations: 2, ..FIELD };
    subject.optimize(ranks(1, 1), 2, &at("whole"), &[]);
    let mut pieces = ranks(3, 1);
    pieces.env("PRBOPT_MESSAGE_BYTES", "100000");
    subject.optimize(pieces, 2, &at("pieces"), &[]);
    hold(&results(&at("whole")), &results(&at("pieces")), "in pieces");
}

/// The files of a render by so many ranks.
fn rendered(name: &str, count: usize, more: &[&str]) -> BTreeMap<PathBuf, Vec<u8>> {
    let root = tempfile::tempdir().expect("a temporary folder");
    let folder = root.path().join("pictures");
    let mut command = ranks(count, 1);
    command.args([PROGRAM, "render", &scene(name), "-q", "-o"]).arg(&folder);
    succeed(command.args(more));
    let mut files = results(&folder);
    files.remove(Path::new("turntable.json"));
    files
}

/// A scene of surfaces that the integrator `ptracer` can render.
const TRACED: &str = "../tests/data/peer/scenes/painted_lamp.json";

#[test]
fn traced_light_has_the_same_bits_for_any_number_of_gpus() {
    if !has_gpu() {
        return eprintln!("skipped: no adapter");
    }
    let more = [
        "--set",
        "integrator.type=ptracer",
        "--spp",
        "2",
        "--device",
        "gpu",
        "--deterministic",
    ];
    let expected = rendered(TRACED, 1, &more);
    hold(&expected, &rendered(TRACED, 3, &more), TRACED);
}

#[test]
fn renders_have_the_same_bits_for_any_number_of_ranks() {
    for (name, more) in [
        ("smoke_five_views.json", &["--sensor", "all", "--spp", "2"][..]),
        ("kinds.json", &["--spp", "2"]),
        ("kinds.json", &["--turntable", "2", "--spp", "1"]),
        (TRACED, &["--set", "integrator.type=ptracer", "--spp", "1"]),
    ] {
        let render = |count: usize| rendered(name, count, &[more, &["--device", "cpu"]].concat());
        let expected = render(1);
        for count in [3, 4] {
            hold(&expected, &render(count), name);
        }
    }
}

/// Two ranks that were started with different arguments.
fn two(first: &[&str], second: &[&str]) -> Command {
    let mut command = ranks(1, 1);
    command
        .arg(PROGRAM)
        .args(first)
        .args([":", "-n", "1", PROGRAM])
        .args(second);
    command
}

#[test]
fn ranks_that_differ_are_refused() {
    let root = tempfile::tempdir().expect("a temporary folder");
    let out = root.path().join("out").display().to_string();
    let own = root.path().join("scene.json");
    let write = |density: f32| {
        let text = fs::read_to_string(scene("smoke_small.json")).expect("readable");
        fs::write(&own, text.replacen("\"scale\": ", &format!("\"scale\": {density}"), 1)).expect("writable");
    };
    write(1.0);
    let (own, other) = (own.display().to_string(), scene("smoke_small.json"));
    let told = fail(&mut two(&["render", &other, "-o", &out], &["render", &own, "-o", &out]));
    assert!(told.contains("the command of rank 1 is not that of rank 0"), "{told}");
    let told = fail(&mut two(
        &["render", &other, "-o", &out, "--seed", "1"],
        &["render", &other, "-o", &out, "--seed", "2"],
    ));
    assert!(told.contains("start all ranks with the same program"), "{told}");
    let told = fail(ranks(2, 1).args([PROGRAM, "info", &other]));
    assert!(told.contains("start this command alone"), "{told}");
    assert!(!Path::new(&out).exists());
}

/// The same arguments, but each rank in a folder of its own with another scene: as on machines without a common disk.
#[test]
fn ranks_that_read_other_data_are_refused() {
    let root = tempfile::tempdir().expect("a temporary folder");
    for (folder, scale) in [("a", 2.0), ("b", 3.0)] {
        let folder = root.path().join(folder);
        fs::create_dir(&folder).expect("writable");
        let text = format!(
            r#"{{"cube": {{"type": "cube", "b": {{"type": "null"}}, "interior": {{"type": "heterogeneous",
                "scale": {scale}, "sigma_t": {{"type": "gridvolume", "resolution": [2, 2, 2], "value": 1}}}}}},
                "sky": {{"type": "constant"}},
                "view": {{"type": "perspective", "to_world": [{{"translate": [0, 0, -4]}}], "film": {{"type": "hdrfilm", "width": 8, "height": 8}}}}}}"#
        );
        fs::write(folder.join("scene.json"), text).expect("writable");
    }
    let script = format!("cd \"$1/$2\" && exec {PROGRAM} render scene.json -o out");
    let root = root.path().display().to_string();
    let run = |second: &str| {
        let mut command = ranks(1, 1);
        command.args([
            "sh", "-c", &script, "sh", &root, "a", ":", "-n", "1", "sh", "-c", &script, "sh", &root, second,
        ]);
        command
    };
    succeed(&mut run("a"));
    let told = fail(&mut run("b"));
    assert!(
        told.contains("the scene or its data of rank 1 is not that of rank 0"),
        "{told}"
    );
}

#[test]
fn a_task_of_several_that_is_alone_is_refused() {
    let mut alone = Command::new(PROGRAM);
    alone.args(["render", &scene("smoke_small.json")]);
    alone.envs([("SLURM_STEP_ID", "0"), ("SLURM_NTASKS", "4")]);
    let told = fail(&mut alone);
    assert!(told.contains("one of 4 tasks") && told.contains("--mpi=pmix"), "{told}");
}

/// A rank of the next test: one panics, the others wait for it.
#[test]
#[ignore = "started by the next test, as a rank"]
fn panicking_rank() {
    let _membership = Membership::join().expect("a rank");
    let cluster = Cluster::world();
    cluster.advise("go on from the checkpoint a.safetensors");
    assert!(cluster.gather(&[1u8]).len() == 2);
    assert!(cluster.rank() != 1, "this rank has a defect");
    cluster.gather(&[2u8]);
}

#[test]
fn a_panic_of_a_rank_ends_the_job_with_a_sentence() {
    let own = std::env::current_exe().expect("this test");
    let begun = Instant::now();
    let told = fail(
        ranks(2, 1)
            .arg(own)
            .args(["--exact", "panicking_rank", "--ignored", "--nocapture"]),
    );
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    for part in [
        "this rank has a defect",
        "rank 1 of 2",
        "the whole job ends; go on from the checkpoint a.safetensors",
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
}

/// The child processes of a process, by id.
fn children(of: u32) -> Vec<u32> {
    let all = fs::read_dir("/proc").expect("Linux").flatten();
    let stat = |entry: fs::DirEntry| fs::read_to_string(entry.path().join("stat")).ok();
    let parent = |text: String| {
        let id = text.split(' ').next()?.parse().ok()?;
        let rest = text.rsplit_once(") ")?.1;
        let parent: u32 = rest.split(' ').nth(1)?.parse().ok()?;
        (parent == of).then_some(id)
    };
    let mut found: Vec<u32> = all.filter_map(stat).filter_map(parent).collect();
    found.sort_unstable();
    found
}

/// Starts a run of two ranks that would take for ever, and waits for its first checkpoint.
fn endless(folder: &Path) -> std::process::Child {
    let mut command = ranks(2, 1);
    command
        .args([PROGRAM, "optimize", &scene(FIELD.scene), "--device", "cpu", "-o"])
        .arg(folder);
    command.args([
        "--iterations",
        "1000000",
        "--set",
        "optimize.references.spp=1",
        "--set",
        "optimize.output.images_every=0",
    ]);
    command.args(["--set", "optimize.output.checkpoint_seconds=0.5"]);
    let child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it can be started");
    let begun = Instant::now();
    while !folder.join("checkpoint.safetensors").exists() {
        assert!(begun.elapsed() < Duration::from_secs(120), "no checkpoint");
        std::thread::sleep(Duration::from_millis(100));
    }
    child
}

fn signal(process: u32, name: &str) {
    let sent = Command::new("kill").args([name, &process.to_string()]).status();
    assert!(sent.expect("kill is there").success());
}

#[test]
fn a_lost_rank_ends_the_job_and_the_run_goes_on_from_its_checkpoint() {
    let root = tempfile::tempdir().expect("a temporary folder");
    let folder = root.path().join("run");
    let child = endless(&folder);
    let ranks_of = children(child.id());
    assert_eq!(ranks_of.len(), 2, "{ranks_of:?}");
    let begun = Instant::now();
    signal(ranks_of[1], "-KILL");
    let output = child.wait_with_output().expect("it ends");
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    let told = shown(&output);
    assert!(
        !output.status.success() && told.contains("checkpoint.safetensors") && told.contains("--resume"),
        "{told}"
    );
}

#[test]
fn rank_0_takes_the_signal_to_stop() {
    let root = tempfile::tempdir().expect("a temporary folder");
    let folder = root.path().join("run");
    let child = endless(&folder);
    // As a launcher does that hands signals to all ranks.
    for rank in children(child.id()).into_iter().rev() {
        signal(rank, "-INT");
    }
    let told = shown(&child.wait_with_output().expect("it ends"));
    assert!(
        told.contains("stopped after iteration") && told.contains("--resume"),
        "{told}"
    );
}
