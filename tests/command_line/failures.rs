//! Two processes in one folder, and disks that are full.

use super::*;

/// Arguments of a run into the folder `run` that does not end by itself.
const ENDLESS: [&str; 8] = [
    "optimize",
    "scene.json",
    "--device",
    "cpu",
    "--iterations",
    "1000000",
    "-o",
    "run",
];

#[test]
fn a_second_process_in_the_folder_of_a_run_at_work_is_refused() {
    let place = Place::new();
    let mut child = place.start(&ENDLESS);
    wait_for(|| place.path("run/checkpoint.safetensors").exists());
    let lines_before = place.lines_so_far("run/metrics.jsonl");
    let holder = format!("run: process {} is at work on the run in this folder", child.id());
    for more in [&[][..], &["--resume"], &["--force"]] {
        let words: Vec<&str> = ENDLESS.iter().chain(more).copied().collect();
        let (_, err) = place.expect(2, &words);
        // Elsewhere a locked file cannot be read, so that its holder stays nameless.
        let named = err.contains(&holder) || !cfg!(unix) && err.contains("another process is at work");
        assert!(named && err.contains("--output"), "{more:?}: {err}");
        assert_eq!(err.trim_end().lines().count(), 1, "one sentence: {err}");
    }
    place.expect(0, &["report", "run"]);
    assert!(place.path("run/report.html").exists());
    wait_for(|| place.lines_so_far("run/metrics.jsonl") > lines_before + 3);
    assert!(child.try_wait().expect("a child").is_none(), "the run is still at work");
    // A process that was killed leaves the file of its lock, but no lock.
    child.kill().expect("at work");
    child.wait().expect("a child");
    assert!(place.path("run/.lock").exists());
    place.expect(
        0,
        &[
            "optimize",
            "scene.json",
            "--device",
            "cpu",
            "--iterations",
            "3",
            "--force",
            "-o",
            "run",
        ],
    );
}

/// A limit on the size of files stands in for a full disk: both are a lack of room that may pass.
#[cfg(target_os = "linux")]
mod full_disk {
    use std::io::Read;

    use super::*;

    /// Starts the program where a write beyond `blocks` of 512 bytes a file is an error and not a signal.
    fn start_limited(place: &Place, blocks: u32, arguments: &[&str]) -> Child {
        let script = format!("trap '' XFSZ; ulimit -S -f {blocks}; exec \"$@\"");
        let mut command = Command::new("sh");
        command
            .args(["-c", &script, "sh"])
            .arg(assert_cmd::cargo::cargo_bin!("prbopt"));
        command.args(arguments).current_dir(place.folder.path());
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        command.spawn().expect("the program starts")
    }

    /// Sets the limit of a process at work; the largest one lifts it.
    fn set_limit(child: &Child, bytes: u64) {
        let limit = libc::rlimit {
            rlim_cur: bytes,
            rlim_max: libc::RLIM_INFINITY,
        };
        // SAFETY: the process is our child, and the limit outlives the call.
        let failed = unsafe { libc::prlimit(child.id() as i32, libc::RLIMIT_FSIZE, &limit, std::ptr::null_mut()) };
        assert_eq!(failed, 0, "{}", std::io::Error::last_os_error());
    }

    /// Collects what a child says, beside it.
    struct Listener {
        said: std::sync::Arc<std::sync::Mutex<String>>,
    }

    impl Listener {
        fn new(child: &mut Child) -> Self {
            let mut stderr = child.stderr.take().expect("piped");
            let said = std::sync::Arc::new(std::sync::Mutex::new(String::new()));
            let heard = std::sync::Arc::clone(&said);
            std::thread::spawn(move || {
                let mut buffer = [0; 4096];
                while let Ok(count @ 1..) = stderr.read(&mut buffer) {
                    let text = String::from_utf8_lossy(&buffer[..count]);
                    heard.lock().expect("not poisoned").push_str(&text);
                }
            });
            Self { said }
        }

        fn text(&self) -> String {
            self.said.lock().expect("not poisoned").clone()
        }
    }

    fn count(text: &str, words: &str) -> usize {
        text.matches(words).count()
    }

    /// The scene without pictures, whose checkpoint is larger than all else: 8³ texels of 13 values in `final/`, with two
    /// moments in the checkpoint.
    fn write_scene(place: &Place, checkpoint_seconds: f64) {
        let mut scene = scene();
        scene["optimize"]["output"] = json!({"images_every": 0, "checkpoint_seconds": checkpoint_seconds, "spp": 1});
        scene["optimize"]["stages"] = json!([]);
        for grid in ["sigma_t", "sh_coeffs"] {
            let parameter = &mut scene["optimize"]["parameters"][format!("object.interior.{grid}")];
            parameter.as_object_mut().expect("an object").remove("start_resolution");
        }
        place.write("scene.json", &scene);
        // The references are made where there is room.
        place.expect(
            0,
            &[
                "optimize",
                "scene.json",
                "--device",
                "cpu",
                "--quiet",
                "--iterations",
                "1",
                "-o",
                "run",
            ],
        );
        let references = fs::read(place.path("run/references.safetensors")).expect("there");
        fs::remove_dir_all(place.path("run")).expect("there");
        fs::create_dir(place.path("run")).expect("a folder can be made");
        fs::write(place.path("run/references.safetensors"), references).expect("writable");
    }

    const RUN: [&str; 8] = [
        "optimize",
        "scene.json",
        "--device",
        "cpu",
        "--iterations",
        "30",
        "-o",
        "run",
    ];

    #[test]
    fn the_result_is_there_before_the_checkpoint_that_waits_for_room() {
        let place = Place::new();
        write_scene(&place, 1e6);
        // 64 KiB: larger than any result and than the metrics, smaller than the checkpoint of 80 KiB.
        let mut child = start_limited(&place, 128, &RUN);
        let listener = Listener::new(&mut child);
        wait_for(|| listener.text().contains("waiting for room"));
        assert!(place.path("run/final/object.interior.sh_coeffs.vol").exists());
        assert!(place.path("run/held_out.json").exists());
        assert_eq!(place.lines("run/metrics.jsonl").len(), 30);
        assert!(!place.path("run/checkpoint.safetensors").exists());
        std::thread::sleep(Duration::from_millis(700));
        assert!(child.try_wait().expect("a child").is_none(), "it waits");
        set_limit(&child, libc::RLIM_INFINITY);
        assert_eq!(child.wait().expect("a child").code(), Some(0));
        let told = listener.text();
        assert_eq!(count(&told, "waiting for room"), 1, "told once: {told}");
        assert!(
            told.contains("checkpoint.safetensors: cannot be written: it would be larger"),
            "{told}"
        );
        place.expect(0, &[&RUN[..], &["--resume"]].concat());
    }

    #[test]
    fn a_result_without_room_waits_until_ctrl_c() {
        let place = Place::new();
        write_scene(&place, 1e6);
        let mut child = start_limited(&place, 32, &RUN);
        let listener = Listener::new(&mut child);
        wait_for(|| listener.text().contains("waiting for room"));
        let interrupt = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
        assert!(interrupt.expect("kill").success());
        assert_eq!(child.wait().expect("a child").code(), Some(2));
        wait_for(|| listener.text().contains("error: "));
        let told = listener.text();
        assert!(
            told.contains("sh_coeffs") && told.contains("cannot be written"),
            "{told}"
        );
    }

    #[test]
    fn a_disk_that_is_full_on_the_way_ends_no_run() {
        let place = Place::new();
        write_scene(&place, 0.001);
        let words: Vec<&str> = RUN
            .iter()
            .map(|word| if *word == "30" { "300" } else { word })
            .collect();
        // 16 KiB: room for the scene and the record, but neither for a checkpoint nor for the lines of all iterations.
        let mut child = start_limited(&place, 32, &words);
        let listener = Listener::new(&mut child);
        wait_for(|| listener.text().contains("the run goes on"));
        assert!(fs::metadata(place.path("run/metrics.jsonl")).expect("there").len() <= 16384);
        set_limit(&child, libc::RLIM_INFINITY);
        assert_eq!(child.wait().expect("a child").code(), Some(0));
        assert_eq!(count(&listener.text(), "the run goes on"), 1, "{}", listener.text());
        let iterations: Vec<u64> = place
            .lines("run/metrics.jsonl")
            .iter()
            .filter_map(|line| line["iteration"].as_u64())
            .collect();
        assert_eq!(iterations, (1..=300).collect::<Vec<_>>(), "no line is lost");
    }
}
