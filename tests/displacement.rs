//! Meshes that a texture displaces: their pictures, a run that finds the heights from shading, and the files that it leaves.

#[path = "devices/gpu.rs"]
mod gpu;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use prbopt::device::cpu::Cpu;
use prbopt::device::gpu::Options;
use prbopt::device::{Batch, Device, Keys};
use prbopt::io::mesh::{read_obj, read_ply, write_ply};
use prbopt::io::{Image, image};
use prbopt::kernels::optimizer::Optimizer;
use prbopt::params::ParamSet;
use prbopt::resident::Resident;
use prbopt::resident::vertices::displaced;
use prbopt::scene;
use prbopt::transport::rays::pixel::PixelTable;
use prbopt::transport::rays::random::{Pass, pass_key};
use serde_json::Value;
use tempfile::TempDir;

/// Texels of the heights along each axis.
const TEXELS: usize = 8;

/// Hills between -0.1 and 0.1.
fn truth() -> Vec<f32> {
    let place = |i: usize| (i as f32 + 0.5) / TEXELS as f32;
    (0..TEXELS * TEXELS)
        .map(|i| {
            let [x, y] = [place(i % TEXELS), place(i / TEXELS)];
            0.06 * (5.0 * x + 1.0).sin() * (4.0 * y).cos() + 0.04 * (7.0 * y - 3.0 * x).sin()
        })
        .collect()
}

/// A wall of this shape under three coloured suns.
fn text(wall: &str, more: &str) -> String {
    let sun = |name: &str, direction: &str, irradiance: &str| {
        format!(r#""{name}": {{"type": "directional", "direction": {direction}, "irradiance": {irradiance}}}"#)
    };
    format!(
        r#"{{
            "integrator": {{"type": "prb", "max_depth": 3}},
            "wall": {{{wall}, "bsdf": {{"type": "twosided", "paint": {{"type": "diffuse", "reflectance": 0.6}}}}}},
            {}, {}, {},
            "camera": {{
                "type": "perspective", "fov": 32,
                "to_world": [{{"look_at": {{"origin": [0.3, -0.2, 4], "target": [0, 0, 0], "up": [0, 1, 0]}}}}],
                "film": {{"type": "hdrfilm", "width": 24, "height": 24, "rfilter": {{"type": "box"}}}}
            }}{more}
        }}"#,
        sun("red", "[1, 0, -1]", "[3, 0.3, 0.3]"),
        sun("green", "[-0.6, 0.9, -1]", "[0.3, 3, 0.3]"),
        sun("blue", "[-0.6, -0.9, -1]", "[0.3, 0.3, 3]"),
    )
}

/// A grid with these heights.
fn grid(heights: &str, more: &str) -> String {
    format!(r#""type": "grid", "resolution": [16, 16], "displacement": {heights} {more}"#)
}

const HEIGHTS: &str = r#"{"type": "bitmap", "wrap_mode": "clamp", "raw": true, "filename": "heights.exr"}"#;

/// A folder with the true heights.
fn folder() -> TempDir {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let heights = Image {
        width: TEXELS,
        height: TEXELS,
        channels: 1,
        data: truth(),
    };
    image::write_exr(&folder.path().join("heights.exr"), &heights).expect("is written");
    folder
}

fn flatten(folder: &Path, text: &str) -> (Resident, ParamSet) {
    let scene = scene::parse(text, &folder.join("scene.json")).unwrap_or_else(|mistakes| panic!("{mistakes}"));
    Resident::new(&scene).expect("the scene is sound")
}

/// A picture of a scene as it is loaded, without anything to be optimised.
fn picture(device: &mut dyn Device, (resident, mut params): (Resident, ParamSet)) -> Vec<f32> {
    params.parameters.iter_mut().for_each(|p| p.tuning = None);
    let table = PixelTable::new(&resident.sensors, &[0]).expect("few pixels");
    device
        .load(resident, params, Optimizer::Sgd { momentum: 0.0 })
        .expect("a small scene");
    let key = pass_key(3, 0, Pass::Primal);
    let keys = Keys {
        objective: key,
        pass: key,
    };
    device.render(&Batch { table, drawn: None }, keys, 4).expect("renders");
    device.image().expect("an image").concat()
}

/// Compares two pictures: at most 1 % of the numbers may be more than 1e-4 apart.
#[track_caller]
fn assert_alike(a: &[f32], b: &[f32], what: &str) {
    assert_eq!(a.len(), b.len(), "{what}");
    let far = a.iter().zip(b).filter(|(a, b)| (**a - **b).abs() > 1e-4).count();
    // A ray may pass a vertex on either side.
    assert!(far <= a.len() / 100, "{what}: {far} of {} values differ", a.len());
}

/// A displaced grid renders as the mesh of its displaced vertices, smooth or not, mirrored or not; and heights that are set after
/// loading displace it as those of the file do, also where a run could change them.
#[test]
fn a_displaced_grid_is_the_mesh_that_it_becomes() {
    let folder = folder();
    let optimised =
        r#", "optimize": {"references": {"type": "constant", "value": 0.5}, "parameters": {"wall.displacement": {}}}"#;
    for more in [
        r#", "displacement_scale": 2"#,
        r#", "face_normals": true"#,
        r#", "flip_normals": true, "to_world": [{"scale": [-0.8, 1.1, 1]}, {"rotate": {"axis": [1, 0, 0], "angle": 20}}]"#,
    ] {
        let of = |heights: &str, block: &str| flatten(folder.path(), &text(&grid(heights, more), block));
        let picture = |of: (Resident, ParamSet)| self::picture(&mut Cpu::new(), of);
        let first = picture(of(HEIGHTS, ""));
        let parsed = scene::parse(&text(&grid(HEIGHTS, more), ""), &folder.path().join("scene.json")).expect("sound");
        let surface = &parsed.world.surfaces[0];
        let shape = surface.displacement.as_ref().expect("displaced").array().shape;
        let mesh = displaced(surface, shape, &truth()).expect("is read");
        assert_eq!(mesh.triangles.len(), 2 * 16 * 16);
        write_ply(&folder.path().join("wall.ply"), &mesh).expect("is written");
        let rest = match more.contains("flip_normals") {
            true => r#", "flip_normals": true"#,
            false => "",
        };
        let faces = more.contains("face_normals");
        let known = format!(r#""type": "ply", "filename": "wall.ply", "face_normals": {faces} {rest}"#);
        let written = picture(flatten(folder.path(), &text(&known, "")));
        assert_alike(&first, &written, more);
        let flat = picture(of("0", ""));
        let changed = first
            .iter()
            .zip(&flat)
            .filter(|(a, b)| (**a - **b).abs() > 0.01)
            .count();
        assert!(changed > first.len() / 5, "{more}: {changed} of {} values", first.len());
        for block in ["", optimised] {
            let blank = r#"{"type": "bitmap", "wrap_mode": "clamp", "data": {"resolution": [8, 8], "value": 0}}"#;
            let (resident, mut params) = of(blank, block);
            let slot = params.find("wall.displacement.data").expect("a parameter");
            params.parameters[slot].values = truth();
            let later = picture((resident, params));
            assert_alike(&first, &later, &format!("{more}, {block}"));
        }
    }
}

/// The GPU shows displaced meshes, also those whose heights a run changes.
#[test]
fn the_gpu_shows_displaced_meshes() {
    let folder = folder();
    let Some(mut gpu) = gpu::gpu(Options::default()) else {
        return;
    };
    let optimised =
        r#", "optimize": {"references": {"type": "constant", "value": 0.5}, "parameters": {"wall.displacement": {}}}"#;
    let of = || flatten(folder.path(), &text(&grid(HEIGHTS, ""), optimised));
    assert_alike(&picture(&mut Cpu::new(), of()), &picture(&mut gpu, of()), "the devices");
}

/// A folder with the scene of a run, which begins with a flat wall.
fn run_folder(iterations: u32, spp: u32) -> TempDir {
    let folder = folder();
    let block = format!(
        r#", "optimize": {{
            "parameters": {{"wall.displacement": {{"learning_rate": 0.01, "start_resolution": [4, 4]}}}},
            "references": {{"type": "scene", "filename": "target.json", "spp": 256}},
            "loss": "l2", "iterations": {iterations}, "spp": {spp}, "spp_grad": 8, "batch": "all", "seed": 2,
            "stages": [{{"at": 0.3}}],
            "schedule": {{"type": "exponential", "final_factor": 0.05}},
            "output": {{"checkpoint_seconds": 0.001}}
        }}"#
    );
    let flat = r#"{"type": "bitmap", "wrap_mode": "clamp", "data": {"resolution": [4, 4], "value": 0}}"#;
    fs::write(folder.path().join("scene.json"), text(&grid(flat, ""), &block)).expect("writable");
    fs::write(folder.path().join("target.json"), text(&grid(HEIGHTS, ""), "")).expect("writable");
    folder
}

fn command(folder: &TempDir, words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_prbopt"));
    command.args(words).current_dir(folder.path());
    command
}

fn prbopt(folder: &TempDir, words: &[&str]) -> String {
    let done = command(folder, words).output().expect("it runs");
    assert!(
        done.status.success(),
        "{words:?}: {}",
        String::from_utf8_lossy(&done.stderr)
    );
    String::from_utf8_lossy(&done.stderr).into_owned() + &String::from_utf8_lossy(&done.stdout)
}

/// The deviation from the true heights, root mean square, but for the mean height, which shading does not tell.
fn deviation(heights: &[f32]) -> f64 {
    let differences: Vec<f64> = heights.iter().zip(truth()).map(|(a, b)| f64::from(a - b)).collect();
    let count = differences.len() as f64;
    let mean = differences.iter().sum::<f64>() / count;
    (differences.iter().map(|d| (d - mean).powi(2)).sum::<f64>() / count).sqrt()
}

#[test]
fn a_run_finds_the_heights_and_leaves_the_mesh() {
    let folder = run_folder(150, 16);
    let path = |name: &str| -> PathBuf { folder.path().join(name) };
    let said = prbopt(&folder, &["optimize", "scene.json", "--device", "cpu", "-o", "run"]);
    assert!(said.contains("leave out that silhouettes"), "{said}");
    let (found, _) = image::read(&path("run/final/wall.displacement.exr")).expect("it is written");
    assert_eq!([found.width, found.height, found.channels], [TEXELS, TEXELS, 1]);
    let [flat, found_deviation] = [deviation(&[0.0; TEXELS * TEXELS]), deviation(&found.data)];
    println!("deviation from the true heights: {flat:.5} flat, {found_deviation:.5} found");
    assert!(found_deviation < 0.3 * flat, "{flat} flat, {found_deviation} found");
    assert!(path("run/final/wall.displacement.png").is_file());
    // The mesh as the run has displaced it.
    let [ply, obj] = [
        read_ply(&path("run/final/wall.ply"), false, false),
        read_obj(&path("run/final/wall.obj"), false, false),
    ]
    .map(|mesh| mesh.expect("it is read"));
    assert_eq!(ply.positions.len(), 17 * 17);
    assert_eq!(obj.triangles.len(), ply.triangles.len());
    let center = ply.positions[8 * 17 + 8][2];
    let expected = [27, 28, 35, 36].map(|i| found.data[i]).iter().sum::<f32>() / 4.0;
    assert!((center - expected).abs() < 1e-6, "{center}, {expected}");
    // `info` describes the grid, and an export has the displaced mesh in its place.
    let info = prbopt(&folder, &["info", "scene.json", "--json"]);
    let info: Value = serde_json::from_str(info.lines().last().expect("a line")).expect("JSON");
    assert_eq!(info["surfaces"]["wall"]["form"], "grid of 16 × 16 squares");
    assert_eq!(info["surfaces"]["wall"]["displacement"], "wall.displacement");
    let parameters = ["--parameters", "run/final"];
    let words = |words: &[&'static str]| [words, &parameters[..]].concat();
    prbopt(&folder, &words(&["export", "scene.json", "-o", "out.xml"]));
    let xml = fs::read_to_string(path("out.xml")).expect("it is written");
    assert!(
        xml.contains("type=\"ply\"") && xml.contains("out_files/wall.ply"),
        "{xml}"
    );
    assert!(!xml.contains("displacement"), "{xml}");
    prbopt(&folder, &["import", "out.xml", "-o", "back.json"]);
    let render = ["--spp", "16", "--device", "cpu", "--seed", "5", "-o"];
    prbopt(
        &folder,
        &[&words(&["render", "scene.json"])[..], &render, &["run.exr"]].concat(),
    );
    prbopt(
        &folder,
        &[&["render", "back.json"][..], &render, &["back.exr"]].concat(),
    );
    let [run, back] = ["run.exr", "back.exr"].map(|name| image::read(&path(name)).expect("a picture").0.data);
    let far = run.iter().zip(&back).map(|(a, b)| (a - b).abs()).sum::<f32>() / run.len() as f32;
    assert!(far < 2e-3, "{far}");
    // The report shows the texture beside its start.
    let report = fs::read_to_string(path("run/report.html")).expect("it is written");
    assert!(report.contains("wall.displacement"));
}

#[test]
fn a_run_that_is_killed_goes_on_to_the_bit() {
    let folder = run_folder(60, 4);
    let path = |name: &str| -> PathBuf { folder.path().join(name) };
    let words = |output: &'static str| ["optimize", "scene.json", "--device", "cpu", "-q", "-o", output];
    prbopt(&folder, &words("whole"));
    let mut child = command(&folder, &words("killed"))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts");
    // In the second stage, in which the texture is finer.
    let begun = Instant::now();
    while !path("killed/stages/1").is_dir() || !path("killed/checkpoint.safetensors").is_file() {
        assert!(begun.elapsed() < Duration::from_secs(120), "no checkpoint");
        std::thread::sleep(Duration::from_millis(2));
    }
    std::thread::sleep(Duration::from_millis(50));
    child.kill().expect("a child");
    child.wait().expect("a child");
    assert!(
        !path("killed/final").is_dir(),
        "the run ended before it could be killed"
    );
    prbopt(&folder, &[&words("killed")[..], &["--resume"]].concat());
    for name in ["wall.displacement.exr", "wall.ply"] {
        let [whole, killed] =
            ["whole", "killed"].map(|run| fs::read(path(run).join("final").join(name)).expect("there"));
        assert!(whole == killed, "{name}");
    }
}

/// A displacement that is not possible is refused in one sentence.
#[test]
fn what_cannot_be_displaced_is_refused() {
    let folder = folder();
    let said = |wall: &str, more: &str| {
        let parsed = scene::parse(&text(wall, more), &folder.path().join("scene.json"));
        let message = match parsed {
            Err(mistakes) => mistakes.to_string(),
            Ok(scene) => Resident::new(&scene).err().map_or_else(String::new, |e| e.to_string()),
        };
        assert!(message.lines().count() <= 1, "{message}");
        message
    };
    let group = |shape: &str| {
        format!(
            r#", "group": {{"type": "shapegroup", "inner": {{{shape}}}}}, "shown": {{"type": "instance", "g": {{"type": "ref", "id": "group"}}}}"#
        )
    };
    for (wall, more, expected) in [
        (
            r#""type": "rectangle", "displacement": 0.1"#.to_string(),
            String::new(),
            "unknown parameter `displacement`",
        ),
        (
            r#""type": "grid", "resolution": [0, 3]"#.to_string(),
            String::new(),
            "wall.resolution",
        ),
        (
            r#""type": "grid""#.to_string(),
            String::new(),
            "`grid` lacks `resolution`",
        ),
        (
            grid(r#"{"type": "volume", "volume": 0.5}"#, ""),
            String::new(),
            "a `volume` as a displacement",
        ),
        (
            grid("0", ""),
            group(&grid("0.1", "")),
            "a shape of a `shapegroup` is displaced",
        ),
    ] {
        let message = said(&wall, &more);
        assert!(message.contains(expected), "{expected}: {message}");
    }
    assert_eq!(
        said(&grid("0.1", ""), &group(r#""type": "grid", "resolution": [2, 3]"#)),
        ""
    );
}
