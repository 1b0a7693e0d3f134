//! The figurine: a translucent object behind smooth glass, whose inside is found from pictures of it (docs/experiments.md).

mod blob;
mod long_paths;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use glam::DVec3;
use prbopt::io::mesh::{read_ply, write_ply};
use prbopt::io::vol;
use prbopt::scene;
use tempfile::TempDir;

const ALBEDO: [f64; 3] = [0.99, 0.95, 0.85];

fn scene_file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("scenes").join(name)
}

#[test]
#[ignore = "writes scenes/figurine.ply"]
fn write_the_mesh() {
    write_ply(&scene_file("figurine.ply"), &blob::figurine().mesh).expect("the repository is writable");
}

#[test]
fn the_mesh_is_that_of_its_generator_and_closed() {
    let (file, made) = (
        read_ply(&scene_file("figurine.ply"), false, false).expect("it is there"),
        blob::figurine().mesh,
    );
    assert!(file.triangles == made.triangles, "other triangles");
    for (read, made) in [(&file.positions, &made.positions), (&file.normals, &made.normals)] {
        assert_eq!(read.len(), made.len());
        let mut pairs = read.as_flattened().iter().zip(made.as_flattened());
        assert!(pairs.all(|(a, b)| (a - b).abs() < 1e-6));
    }
    assert_eq!(made.is_closed(), Ok(()));
    assert!(
        (5000..=8000).contains(&made.triangles.len()),
        "{}",
        made.triangles.len()
    );
    // Faces and normals look outwards.
    for triangle in &made.triangles {
        let [a, b, c] = triangle.map(|v| glam::Vec3::from(made.positions[v as usize]));
        let faces = (b - a).cross(c - a).normalize();
        let normals = triangle.map(|v| glam::Vec3::from(made.normals[v as usize]));
        assert!(normals.iter().all(|n| n.dot(faces) > 0.5), "{triangle:?}");
    }
}

/// Runs the program in a folder; what it prints.
fn prbopt(folder: &Path, words: &[&str]) -> String {
    let done = Command::new(env!("CARGO_BIN_EXE_prbopt"))
        .args(words)
        .args(["--device", "cpu"])
        .current_dir(folder)
        .output()
        .expect("it runs");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).expect("text")
}

/// The values of a parameter that a run of this scene with these options has found.
fn found(scene: &str, options: &[&str], parameter: &str) -> Vec<f64> {
    let folder: TempDir = tempfile::tempdir().expect("a folder can be made");
    let scene = scene_file(scene).display().to_string();
    prbopt(folder.path(), &[&["optimize", &scene, "-o", "run"], options].concat());
    let file = folder
        .path()
        .join(format!("run/final/figurine.interior.{parameter}.json"));
    let text = fs::read_to_string(file).expect("it is written");
    let value: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let numbers = value["value"].as_array().expect("a list").iter();
    numbers.map(|x| x.as_f64().expect("a number")).collect()
}

fn is_near(found: &[f64], tolerance: f64) {
    println!("albedo {found:?}");
    assert_eq!(found.len(), 3);
    assert!(
        found.iter().zip(ALBEDO).all(|(a, b)| (a - b).abs() < tolerance),
        "{found:?}"
    );
}

#[test]
fn the_albedo_of_a_small_figurine_is_found() {
    let mut options = vec!["--iterations".to_owned(), "50".to_owned()];
    let mut set = |change: String| options.extend(["--set".to_owned(), change]);
    set("optimize.references.spp=64".to_owned());
    for view in ["front", "left", "behind"] {
        set(format!("{view}.film.width=20"));
        set(format!("{view}.film.height=25"));
    }
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    is_near(&found("figurine.json", &options, "albedo"), 0.02);
}

#[test]
#[ignore = "the experiment itself"]
fn the_albedo_is_found() {
    is_near(&found("figurine.json", &[], "albedo"), 0.005);
}

/// The PSNR of a grid of albedos over the texels that lie less than this below the surface.
fn psnr(found: &[f64], truth: &[f32], depths: &[f64], deepest: f64) -> f64 {
    let inside = (0..depths.len()).filter(|i| (0.0..deepest).contains(&depths[*i]));
    let (mut square, mut count) = (0.0, 0);
    for i in inside.flat_map(|i| 3 * i..3 * i + 3) {
        square += (found[i] - f64::from(truth[i])).powi(2);
        count += 1;
    }
    println!("{} texels", count / 3);
    -10.0 * (square / f64::from(count)).log10()
}

#[test]
#[ignore = "the experiment itself"]
fn the_colours_are_found() {
    let target = scene::load(&scene_file("figurine_grid_target.json")).unwrap_or_else(|e| panic!("{e}"));
    let visited = target.visit();
    let grid = visited
        .iter()
        .find(|visited| visited.array.path == "figurine.interior.albedo")
        .expect("a grid");
    let mut shape = grid.array.shape;
    shape.size = [16; 3];
    let truth = grid.array.source.materialise(shape).expect("it is computed");
    let figurine = blob::figurine();
    let depths: Vec<f64> = (0..16 * 16 * 16)
        .map(|i| {
            let texel = DVec3::new(f64::from(i % 16), f64::from(i / 16 % 16), f64::from(i / 256));
            let place = grid.to_world.transform_point3(((texel + 0.5) / 16.0).as_vec3());
            figurine.depth(place.as_dvec3())
        })
        .collect();

    let folder = tempfile::tempdir().expect("a folder can be made");
    let scene = scene_file("figurine_grid.json").display().to_string();
    prbopt(folder.path(), &["optimize", &scene, "-o", "run"]);
    let file = folder.path().join("run/final/figurine.interior.albedo.vol");
    let read = vol::read(&file).expect("it is written").data;
    let found: Vec<f64> = read.iter().map(|x| f64::from(*x)).collect();
    let start = vec![0.9; found.len()];
    for deepest in [0.05, f64::INFINITY] {
        let [before, after] = [&start, &found].map(|grid| psnr(grid, &truth, &depths, deepest));
        println!("less than {deepest} below the surface: {before:.1} dB, found {after:.1} dB");
        assert!(after > before + 8.0);
    }
}

#[test]
fn memory_does_not_grow_with_the_paths() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let scene = scene_file("figurine.json").display().to_string();
    let peak = |depth: u32| {
        let depth = format!("integrator.max_depth={depth}");
        let words = [
            "bench",
            &scene,
            "--json",
            "--iterations",
            "1",
            "--spp",
            "1",
            "--set",
            &depth,
            "--set",
            "front.film.width=640",
            "--set",
            "front.film.height=360",
        ];
        let figures: serde_json::Value = serde_json::from_str(&prbopt(folder.path(), &words)).expect("JSON");
        figures["peak_rss_mib"].as_f64().expect("a number")
    };
    // The records of each thread are bounded, and grow up to 64 edges.
    let [short, long] = [64, 1024].map(peak);
    println!("{short} and {long} MiB");
    // A MiB for the figures' rounding.
    assert!(long <= 1.05 * short + 1.0, "{short} {long}");
}
