//! A run whose splats grow in number, stopped and resumed, ends with the bits of one that was not stopped.

use std::path::Path;
use std::sync::atomic::Ordering;

use super::*;
use prbopt::device::cpu::Cpu;
use prbopt::optimize::Observer;
use prbopt::output::metrics::Figures;
use prbopt::output::run_folder::{Opening, RunFolder};

fn scene() -> Scene {
    let text = r#"{"type": "scene",
        "picture": {"type": "canvas", "film": {"type": "hdrfilm", "width": 40, "height": 24, "color_space": "srgb"}},
        "splats": {"type": "splats", "count": 30, "placement": "picture"},
        "optimize": {"iterations": 40, "references": {"type": "leaves"}, "growth": {"count": 90, "every": 5, "until": 0.5},
            "parameters": {"splats.position": {"learning_rate": 0.002}, "splats.scale": {"learning_rate": 0.02},
                "splats.rotation": {"learning_rate": 0.02}, "splats.color": {"learning_rate": 0.01},
                "splats.opacity": {"learning_rate": 0.01}},
            "output": {"images_every": 0, "checkpoint_seconds": 1e6}}}"#;
    prbopt::scene::parse(text, Path::new("splats.json")).unwrap_or_else(|e| panic!("{e}"))
}

/// Stops a run after so many iterations.
#[derive(Debug)]
struct StopAfter<'a> {
    left: std::sync::atomic::AtomicU32,
    stop: &'a AtomicBool,
}

impl Observer for StopAfter<'_> {
    fn iterated(&self, _: &Figures) {
        if self.left.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.stop.store(true, Ordering::SeqCst);
        }
    }
}

/// Runs on from a folder's checkpoint, if it has one, for at most so many iterations.
fn run_on(scene: &Scene, folder: &Path, iterations: u32) -> Report {
    let folder = RunFolder::open(folder, Opening::Resume).expect("a folder");
    let path = folder.checkpoint();
    let checkpoint = path.exists().then(|| Checkpoint::open(&path).expect("a checkpoint"));
    let stop = AtomicBool::new(false);
    let observer = StopAfter {
        left: iterations.into(),
        stop: &stop,
    };
    let job = Job {
        observer: &observer,
        scene,
        settings: scene.optimize.as_ref().expect("given"),
        folder: &folder,
        stop: &stop,
        resume_command: "prbopt optimize splats.json --resume".into(),
    };
    let mut progress = Progress::new(Style::Quiet);
    let mut device = Cpu::new();
    let run = Run::prepare(&job, checkpoint, &mut device, &mut progress).expect("can be prepared");
    run.finish().expect("runs")
}

#[test]
fn runs_that_grow_go_on_to_the_bit() {
    let scene = scene();
    let result = |folder: &Path| std::fs::read(folder.join("final/splats.safetensors")).expect("a result");
    let whole = tempfile::tempdir().expect("a temporary folder");
    run_on(&scene, whole.path(), u32::MAX);
    let expected = result(whole.path());
    let count = prbopt::io::tensors::Reader::open(&whole.path().join("final/splats.safetensors")).expect("readable");
    assert_eq!(count.shape("opacity"), Some(&[90, 1][..]));
    // In the middle of a stretch, at a change, and just after one.
    for stops in [&[7][..], &[10], &[5, 6, 4]] {
        let folder = tempfile::tempdir().expect("a temporary folder");
        for &iterations in stops {
            assert!(run_on(&scene, folder.path(), iterations).interrupted);
        }
        assert!(!run_on(&scene, folder.path(), u32::MAX).interrupted);
        assert!(result(folder.path()) == expected, "stopped after {stops:?} iterations");
    }
    let counts = prbopt::output::metrics::read(&whole.path().join("metrics.jsonl")).expect("figures");
    let counts: Vec<u64> = counts.iter().step_by(5).filter_map(|f| f.splats).collect();
    assert_eq!(counts, [30, 45, 60, 75, 90, 90, 90, 90]);
    // 144 bits a splat; rounding to half precision changes the PSNR by less than 0.5 dB, and results keep full precision.
    let text = std::fs::read(whole.path().join("picture.json")).expect("figures");
    let picture: serde_json::Value = serde_json::from_slice(&text).expect("JSON");
    let [full, half] = [&picture["psnr"], &picture["half_precision"]["psnr"]].map(|v| v.as_f64().expect("an error"));
    assert_eq!((&picture["splats"], &picture["pixels"]), (&90.into(), &960.into()));
    assert_eq!(picture["half_precision"]["bits_per_pixel"], 13.5);
    assert!(full != half && (full - half).abs() < 0.5, "{picture}");
    let mut file = prbopt::io::tensors::Reader::open(&whole.path().join("final/splats.safetensors")).expect("readable");
    let positions = file.f32("position").expect("there");
    assert!(
        positions.iter().any(|v| ::half::f16::from_f32(*v).to_f32() != *v),
        "full precision is kept"
    );
    let checkpoint = whole.path().join("checkpoint.safetensors");
    let mut checkpoint = prbopt::io::tensors::Reader::open(&checkpoint).expect("readable");
    assert_eq!(checkpoint.f32("splats.position/values").expect("there"), positions);
}
