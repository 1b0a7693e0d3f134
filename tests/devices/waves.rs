//! Paths that a GPU follows in waves are those of the CPU and of a single kernel, and have the same bits however waves are cut.

use std::path::Path;
use std::process::Command;

use prbopt::device::Device;
use prbopt::device::cpu::Cpu;
use prbopt::device::gpu::{DispatchSize, Options, wave_bytes};
use prbopt::resident::{Resident, Transport};
use prbopt::scene;

use super::buffers::storage_buffers;
use super::gpu;
use super::looked_at::{outcome, outcome_by};
use super::world_cases::SPP;
use super::worlds::compare;

/// Painted sheets and a ball, few enough to be tested in turn, under a panel with a sheet in its way, before this background.
/// Roulette begins behind `rr_depth` edges.
fn text(max_depth: i32, rr_depth: u32, background: &str) -> String {
    let sheet = r#""type": "ply", "filename": "tests/data/meshes/sheet.ply""#;
    let paint = r#"{"type": "diffuse", "reflectance": {"type": "mesh_attribute", "name": "vertex_color"}}"#;
    format!(
        r#"{{"integrator": {{"type": "prb", "max_depth": {max_depth}, "rr_depth": {rr_depth}}},
            "paper": {{{sheet}, "bsdf": {{"type": "twosided", "b": {paint}}}}},
            "tile": {{{sheet}, "to_world": [{{"scale": 0.5}}, {{"translate": [0.4, 0.3, 0.6]}}], "bsdf": {paint}}},
            "ball": {{"type": "sphere", "radius": 0.5, "center": [-0.5, -0.3, 0.5], "bsdf": {{"type": "diffuse", "reflectance": [0.8, 0.2, 0.4]}}}},
            "shade": {{{sheet}, "to_world": [{{"rotate": {{"axis": [1, 0, 0], "angle": 90}}}}, {{"translate": [0, 1.2, 0.5]}}], "bsdf": {paint}}},
            "panel": {{"type": "rectangle", "to_world": [{{"scale": 2}}, {{"rotate": {{"axis": [1, 0, 0], "angle": 90}}}}, {{"translate": [0, 1.6, 0.5]}}],
                "emitter": {{"type": "area", "radiance": [3, 4, 5]}}}},
            {background}
            "camera": {{"type": "perspective", "fov": 40, "to_world": [{{"look_at": {{"origin": [0.3, 0.4, 4], "target": [0, 0, 0], "up": [0, 1, 0]}}}}],
                "film": {{"type": "hdrfilm", "width": 19, "height": 18, "rfilter": {{"type": "gaussian"}}}}}}}}"#
    )
}

/// A map behind the world.
const SKY: &str =
    r#""sky": {"type": "envmap", "data": {"resolution": [6, 4], "value": [0.5, 0.6, 0.7]}, "scale": 0.7},"#;

/// Walls all around, from which paths go on for as long as they may.
const SHELL: &str = r#""shell": {"type": "sphere", "radius": 6, "flip_normals": true, "bsdf": {"type": "diffuse", "reflectance": [0.9, 0.8, 0.95]}},"#;

/// Paths of four, three and one edges: without a background the last edge counts only where it meets the panel; before a map it
/// may meet that, too; and paths of one edge see lights alone.
#[test]
fn waves_are_the_paths_of_the_cpu() {
    for (max_depth, background, options) in [
        (4, "", storage_buffers()),
        (3, SKY, Options::default()),
        (1, SKY, Options::default()),
    ] {
        let Some(mut gpu) = gpu(options) else { return };
        let text = text(max_depth, 3, background);
        let (cpu, gpu) = (outcome(&mut Cpu::new(), &text), outcome(&mut gpu, &text));
        compare(&cpu, &gpu).unwrap_or_else(|e| panic!("{max_depth} edges, {background}: {e}"));
    }
}

/// Paths with more edges than the 16 whose hits a wave keeps are walked once more before they are replayed; paths without a limit
/// end where none is left.
#[test]
fn waves_follow_long_paths() {
    let Some(mut gpu) = gpu(Options::default()) else { return };
    for (max_depth, rr_depth) in [(16, 100), (17, 100), (32, 100), (33, 100), (40, 100), (-1, 3)] {
        let text = text(max_depth, rr_depth, SHELL);
        let (cpu, gpu) = (outcome(&mut Cpu::new(), &text), outcome(&mut gpu, &text));
        compare(&cpu, &gpu).unwrap_or_else(|e| panic!("{max_depth} edges: {e}"));
    }
}

/// Paths that leave the world at once send derivatives to the sky alone: whichever of its parameters are optimised, all other
/// gradients have the same bits.
#[test]
fn gradients_are_the_same_whatever_of_the_sky_is_sought() {
    let options = Options {
        deterministic: true,
        ..Options::default()
    };
    let Some(mut gpu) = gpu(options) else { return };
    let text = text(3, 3, SKY);
    let all = outcome(&mut gpu, &text);
    for sought in [&[][..], &["sky.scale"], &["sky.data"]] {
        let is_sought = |path: &str| !path.starts_with("sky") || sought.contains(&path);
        let found = outcome_by(&mut gpu, &text, is_sought);
        for ((name, all), (_, found)) in all.iter().zip(&found) {
            let path = name.strip_prefix("gradient of ").unwrap_or(name);
            assert!(all.iter().any(|d| *d != 0.0), "{name}");
            if is_sought(path) {
                assert!(all == found, "{name}, with {sought:?}: other bits");
            } else {
                assert!(found.iter().all(|d| *d == 0.0), "{name}, with {sought:?}");
            }
        }
        assert_eq!(all.iter().filter(|(name, _)| name.contains("of sky")).count(), 2);
    }
}

/// Where a factor of the throughput is small, what a path has gathered before is many times what is still to come, which only
/// sums of twice the precision keep: the green of a plastic that is black there, far from its highlight.
#[test]
fn what_is_still_to_come_is_not_rounded_away() {
    let Some(mut gpu) = gpu(Options::default()) else { return };
    let text = r#"{"integrator": {"type": "prb", "max_depth": 2},
        "tile": {"type": "rectangle", "bsdf": {"type": "roughplastic", "alpha": 0.3, "diffuse_reflectance": [0.3, 0, 0.7]}},
        "sky": {"type": "constant", "radiance": 0.5},
        "lamp": {"type": "point", "position": [1.5, 2, 3], "intensity": [8, 9, 10]},
        "camera": {"type": "perspective", "fov": 40, "to_world": [{"look_at": {"origin": [0, -3, 2], "target": [0, 0, 0], "up": [0, 1, 0]}}],
            "film": {"type": "hdrfilm", "width": 8, "height": 8, "rfilter": {"type": "box"}}}}"#;
    let (cpu, gpu) = (outcome(&mut Cpu::new(), text), outcome(&mut gpu, text));
    let black = |all: &[(String, Vec<f32>)]| {
        let found = all
            .iter()
            .find(|(name, _)| name.ends_with("tile.bsdf.diffuse_reflectance"));
        found.expect("its gradient").1[1]
    };
    let (cpu, gpu) = (black(&cpu), black(&gpu));
    assert!((gpu / cpu - 1.0).abs() < 1e-5, "{cpu} and {gpu}");
}

/// A channel that meets more reflectances of zero than a byte counts stays dark, and leaves the other channels alone.
#[test]
fn zero_factors_of_long_paths_are_not_forgotten() {
    let Some(mut gpu) = gpu(Options::default()) else { return };
    // A ball from within, which shines in all channels and reflects two of them.
    let text = r#"{"integrator": {"type": "prb", "max_depth": 300, "rr_depth": 1000},
        "shell": {"type": "sphere", "flip_normals": true, "bsdf": {"type": "diffuse", "reflectance": [1, 0, 1]},
            "emitter": {"type": "area", "radiance": [0.01, 1, 0.01]}},
        "camera": {"type": "perspective", "film": {"type": "hdrfilm", "width": 8, "height": 8}}}"#;
    let (cpu, gpu) = (outcome(&mut Cpu::new(), text), outcome(&mut gpu, text));
    // Rounding sends paths of so many edges other ways, which hardly changes their radiance: sums are compared, to 3 %. A count
    // that overflows would change several of them by half or more.
    for ((name, cpu), (_, gpu)) in cpu.iter().zip(&gpu) {
        let sums: [f64; 2] = [cpu, gpu].map(|values| values.iter().map(|v| f64::from(*v)).sum());
        assert!((sums[1] / sums[0] - 1.0).abs() < 0.03, "{name}: {sums:?}");
    }
}

#[test]
fn waves_do_not_depend_on_how_they_are_cut() {
    for (max_depth, shell) in [(4, ""), (40, SHELL)] {
        let run = |waves, dispatch_size| {
            let options = Options {
                deterministic: true,
                waves,
                dispatch_size,
                ..Options::default()
            };
            gpu(options).map(|mut gpu| outcome(&mut gpu, &text(max_depth, 3, shell)))
        };
        let Some(whole) = run(true, None) else { return };
        let cut = run(true, Some(DispatchSize { rays: 77, samples: 3 }));
        assert!(cut.as_ref() == Some(&whole), "other bits");
        let one_kernel = run(false, None).expect("the same adapter");
        // Compilers may fuse other operations in other kernels.
        compare(&whole, &one_kernel).unwrap_or_else(|e| panic!("{e}"));
    }
}

/// Every kernel that an iteration starts is timed by the adapter's clock, as often as it is started, also where there are more
/// dispatches than one set of time stamps holds. Before that is asked for, there are no times.
#[test]
fn kernels_are_timed_by_the_adapter() {
    let options = Options {
        dispatch_size: Some(DispatchSize { rays: 9, samples: 1 }),
        ..Options::default()
    };
    let Some(mut gpu) = gpu(options) else { return };
    outcome(&mut gpu, &text(4, 3, ""));
    assert!(gpu.kernel_times().expect("no times").is_empty());
    gpu.time_kernels()
        .expect("a clock, which all adapters have that tests have met");
    outcome(&mut gpu, &text(4, 3, ""));
    let times = gpu.kernel_times().expect("times");
    let dispatches = |name: &str| {
        times
            .iter()
            .find(|time| time.kernel == name)
            .map_or(0, |time| time.dispatches)
    };
    for (kernel, edges) in [
        ("AdvancePaths", 4),
        ("AdvanceAdjoint", 4),
        ("ReplayPaths", 4),
        ("BeginReplay", 1),
    ] {
        let of_it = dispatches(kernel);
        assert!(of_it > 0 && of_it % edges == 0, "{kernel}: {of_it}");
    }
    assert_eq!(
        dispatches("MeetPaths"),
        dispatches("AdvancePaths") + dispatches("AdvanceAdjoint")
    );
    let all: u32 = times.iter().map(|time| time.dispatches).sum();
    assert!(all > 2048 && times.iter().all(|time| time.ms > 0.0), "{all}: {times:?}");
}

/// `bench --kernels` prints the dispatches of an iteration, as JSON and in words.
#[test]
fn kernels_are_told_by_bench() {
    if gpu(Options::default()).is_none() {
        return;
    }
    let told = |more: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_prbopt"));
        command.args([
            "bench",
            "scenes/cornell.json",
            "--device",
            "gpu",
            "--kernels",
            "--iterations",
            "2",
        ]);
        command.args([
            "--spp",
            "1",
            "--spp-grad",
            "1",
            "--set",
            "camera.film.width=8",
            "--set",
            "camera.film.height=8",
        ]);
        let done = command.args(more).output().expect("it starts");
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8(done.stdout).expect("text")
    };
    let figures: serde_json::Value = serde_json::from_str(&told(&["--json"])).expect("JSON");
    let kernels = &figures["kernels"];
    for (name, dispatches) in [
        ("MeetPaths", 12.0),
        ("ReplayPaths", 6.0),
        ("EndReplay", 1.0),
        ("Step", 1.0),
    ] {
        assert_eq!(kernels[name]["dispatches"], dispatches, "{name}: {kernels}");
    }
    assert!(kernels["SearchPaths"].is_null(), "there is no tree: {kernels}");
    let text = told(&[]);
    assert!(
        text.contains("ReplayPaths ") && text.contains(" ms in 6.0 dispatches"),
        "{text}"
    );
}

/// The memory that `info` and runs predict for waves is what these add to the memory of a device, to 128 bytes.
#[test]
fn waves_take_what_was_told() {
    let memory = |text: &str, waves| {
        let options = Options {
            waves,
            ..Options::default()
        };
        gpu(options).map(|mut gpu| {
            outcome(&mut gpu, text);
            gpu.memory()
        })
    };
    for max_depth in [4, 40] {
        let text = text(max_depth, 3, SHELL);
        let Some(together) = memory(&text, true) else { return };
        let scene = scene::parse(&text, Path::new("waves.json")).expect("a sound scene");
        let (resident, _) = Resident::new(&scene).expect("it is flattened");
        let Transport::Paths(paths) = &resident.transport else {
            panic!("paths among surfaces")
        };
        let told = wave_bytes(paths, 19 * 18, [SPP, SPP]).expect("waves serve it");
        let alone = memory(&text, false).expect("the same adapter");
        // Empty buffers have 16 bytes, and others a multiple of that.
        assert!(
            (alone + told..alone + told + 128).contains(&together),
            "{max_depth}: {alone} + {told}, {together}"
        );
    }
}
