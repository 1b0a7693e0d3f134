//! What the program does at a terminal: the bar, narrow windows, Ctrl-C, and none of it where there is no terminal.

#![cfg(unix)]

use std::io::{Read, Write};
use std::num::NonZeroU16;
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};

const SCENE: &str = r#"{
    "object": {
        "type": "cube", "bsdf": {"type": "null"},
        "interior": {
            "type": "radiance_field", "sh_degree": 0,
            "sigma_t": {"type": "gridvolume", "resolution": 8, "value": 0.1},
            "sh_coeffs": {"type": "gridvolume", "resolution": 8, "value": 0.1}
        }
    },
    "camera": {
        "type": "perspective", "fov": 40,
        "to_world": [{"look_at": {"origin": [0, 0, 4], "target": [0, 0, 0], "up": [0, 1, 0]}}],
        "film": {"type": "hdrfilm", "width": 16, "height": 16}
    },
    "optimize": {
        "parameters": {"object.interior.sigma_t": {}},
        "references": {"type": "constant", "value": 0.5},
        "iterations": 1000000
    }
}"#;

/// The program at a terminal of some size.
struct Terminal {
    child: Box<dyn Child + Send + Sync>,
    master: Box<dyn MasterPty + Send>,
    /// Everything that was written, and the screen as it stands.
    seen: Arc<Mutex<(Vec<u8>, vt100::Parser)>>,
}

impl Terminal {
    fn start(folder: &Path, columns: u16, arguments: &[&str], environment: &[(&str, &str)]) -> Self {
        let size = PtySize {
            rows: 24,
            cols: columns,
            pixel_width: 0,
            pixel_height: 0,
        };
        let pair = native_pty_system().openpty(size).expect("a terminal");
        let mut command = CommandBuilder::new(assert_cmd::cargo::cargo_bin!("prbopt"));
        command.args(arguments);
        command.cwd(folder);
        command.env("TERM", "xterm-256color");
        command.env_remove("NO_COLOR");
        for (name, value) in environment {
            command.env(name, value);
        }
        let child = pair.slave.spawn_command(command).expect("starts");
        let mut reader = pair.master.try_clone_reader().expect("can be read");
        let rows = NonZeroU16::new(24).expect("not zero");
        let width = NonZeroU16::new(columns).expect("not zero");
        let seen = Arc::new(Mutex::new((Vec::new(), vt100::Parser::new(rows, width, 0))));
        let shared = Arc::clone(&seen);
        std::thread::spawn(move || {
            let mut chunk = [0; 4096];
            while let Ok(count @ 1..) = reader.read(&mut chunk) {
                let mut seen = shared.lock().expect("nobody panicked");
                seen.0.extend(&chunk[..count]);
                seen.1.process(&chunk[..count]);
            }
        });
        Self {
            child,
            master: pair.master,
            seen,
        }
    }

    fn screen(&self) -> String {
        self.seen.lock().expect("nobody panicked").1.screen().contents()
    }

    fn written(&self) -> String {
        String::from_utf8_lossy(&self.seen.lock().expect("nobody panicked").0).into_owned()
    }

    /// Waits until the screen is as wanted.
    #[track_caller]
    fn wait_for(&self, what: &str, wanted: impl Fn(&str) -> bool) {
        let begun = Instant::now();
        while !wanted(&self.screen()) {
            assert!(begun.elapsed() < Duration::from_secs(60), "{what}:\n{}", self.screen());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn press_control_c(&self) {
        self.master
            .take_writer()
            .expect("can be typed at")
            .write_all(&[3])
            .expect("typed");
    }

    /// The signal of a Control-C that is not typed: typing one throws away what the terminal has not shown yet.
    fn interrupt(&self) {
        let process = self.child.process_id().expect("runs").to_string();
        let status = Command::new("kill").args(["-INT", &process]).status();
        assert!(status.expect("kill").success());
    }

    fn end(mut self) -> (u32, String) {
        let status = self.child.wait().expect("ends");
        std::thread::sleep(Duration::from_millis(200));
        (status.exit_code(), self.screen())
    }
}

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    std::fs::write(folder.path().join("scene.json"), SCENE).expect("writable");
    folder
}

const OPTIMIZE: [&str; 4] = ["optimize", "scene.json", "--device", "cpu"];

#[test]
fn a_bar_shows_how_far_it_is_and_is_gone_at_the_end() {
    let folder = folder();
    let terminal = Terminal::start(folder.path(), 110, &OPTIMIZE, &[]);
    let bar = |screen: &str| {
        screen
            .lines()
            .filter(|l| l.contains("/1000000") && l.contains("it/s"))
            .count()
    };
    terminal.wait_for("a bar", |screen| bar(screen) == 1);
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(
        bar(&terminal.screen()),
        1,
        "one line that is drawn anew:\n{}",
        terminal.screen()
    );
    terminal.interrupt();
    let (code, screen) = terminal.end();
    assert_eq!(code, 130, "{screen}");
    assert_eq!(bar(&screen), 0, "nothing of the bar is left:\n{screen}");
    let said: Vec<&str> = screen.lines().skip(2).map(str::trim_end).collect();
    let stopping = "stopping when what is at work is done and saved; once more to stop at once";
    assert!(
        matches!(said[..], [first, last] if first == stopping && last.starts_with("stopped after iteration")),
        "{screen}"
    );
    assert!(screen.contains("--resume"), "{screen}");
}

/// A share that grows while a picture is rendered, over all its passes.
#[test]
fn a_render_shows_how_much_is_done() {
    let folder = folder();
    let scene = r#"{"integrator": {"type": "moment", "image": {"type": "path", "max_depth": 3}},
        "ball": {"type": "sphere"}, "sky": {"type": "constant"},
        "camera": {"type": "perspective", "fov": 40, "to_world": [{"translate": [0, 0, -4]}],
            "film": {"type": "hdrfilm", "width": 16, "height": 16}}}"#;
    std::fs::write(folder.path().join("scene.json"), scene).expect("writable");
    let arguments = [
        "render",
        "scene.json",
        "--device",
        "cpu",
        "--spp",
        "200000",
        "--scale",
        "4",
    ];
    let terminal = Terminal::start(folder.path(), 110, &arguments, &[("RAYON_NUM_THREADS", "1")]);
    let share = |screen: &str| -> Option<f64> {
        let line = screen.lines().find(|line| line.contains("% done"))?;
        assert!(line.contains("camera: 64×64 pixels, 200000 samples each: "), "{line}");
        line.split(": ").last()?.split(' ').next()?.parse().ok()
    };
    for least in 1..4 {
        terminal.wait_for("a share", |screen| {
            share(screen).is_some_and(|share| (f64::from(least)..50.0).contains(&share))
        });
    }
    terminal.interrupt();
    terminal.end();
}

#[test]
fn control_c_saves() {
    let folder = folder();
    let terminal = Terminal::start(folder.path(), 110, &OPTIMIZE, &[]);
    terminal.wait_for("a bar", |screen| screen.contains("it/s"));
    terminal.press_control_c();
    let (code, screen) = terminal.end();
    assert_eq!(code, 130, "{screen}");
    assert!(screen.contains("stopped after iteration"), "{screen}");
    assert!(folder.path().join("runs/scene/checkpoint.safetensors").is_file());
    assert!(folder.path().join("runs/scene/report.html").is_file());
}

#[test]
fn a_narrow_window_is_not_filled_with_broken_lines() {
    let folder = folder();
    let terminal = Terminal::start(folder.path(), 44, &OPTIMIZE, &[]);
    let bar = |screen: &str| screen.lines().filter(|l| l.contains("/1000000")).count();
    terminal.wait_for("a bar", |screen| bar(screen) == 1);
    let lines = terminal.screen().lines().count();
    std::thread::sleep(Duration::from_secs(1));
    assert_eq!(
        (bar(&terminal.screen()), terminal.screen().lines().count()),
        (1, lines),
        "{}",
        terminal.screen()
    );
    terminal.press_control_c();
    assert_eq!(terminal.end().0, 130);
}

#[test]
fn colours_are_for_those_who_want_them() {
    let folder = folder();
    let help = |environment: &[(&str, &str)]| {
        let terminal = Terminal::start(folder.path(), 100, &["optimize", "--help"], environment);
        terminal.wait_for("the help", |screen| screen.contains("--"));
        let seen = Arc::clone(&terminal.seen);
        assert_eq!(terminal.end().0, 0);
        String::from_utf8_lossy(&seen.lock().expect("nobody panicked").0).into_owned()
    };
    assert!(help(&[]).contains("\u{1b}["), "help is set off at a terminal");
    assert!(!help(&[("NO_COLOR", "1")]).contains("\u{1b}["), "NO_COLOR is obeyed");
}

#[test]
fn without_a_terminal_there_are_plain_lines_and_no_data_but_data() {
    let folder = folder();
    let output = Command::new(assert_cmd::cargo::cargo_bin!("prbopt"))
        .args(["optimize", "scene.json", "--device", "cpu", "--iterations", "30"])
        .current_dir(folder.path())
        .output()
        .expect("starts");
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}");
    assert!(output.stdout.is_empty(), "standard output is for data");
    assert!(
        told.contains("30/30") && !told.contains('\u{1b}') && !told.contains('\r'),
        "{told}"
    );
}

#[test]
fn an_error_is_one_line() {
    let folder = folder();
    let terminal = Terminal::start(folder.path(), 200, &["optimize", "nowhere.json"], &[]);
    terminal.wait_for("the error", |screen| screen.contains("error: "));
    let written = terminal.written();
    let (code, screen) = terminal.end();
    assert_eq!((code, screen.trim().lines().count()), (2, 1), "{written}");
}
