//! Surfaces and a medium in one pass: the relief and the roughness of a ring, and a plant as a volume, from three views (Vicini2021,
//! figure 1; docs/experiments.md).

mod fern;

use std::path::{Path, PathBuf};

use prbopt::io::mesh::{read_ply, write_ply};

fn mesh_file() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("scenes/fern.ply")
}

#[test]
#[ignore = "writes a mesh into scenes/"]
fn write_the_fern() {
    write_ply(&mesh_file(), &fern::fern()).expect("the repository is writable");
}

#[test]
fn the_fern_is_that_of_its_generator() {
    let (file, made) = (read_ply(&mesh_file(), false, false).expect("it is there"), fern::fern());
    assert_eq!(file.triangles, made.triangles);
    let mut pairs = file.positions.as_flattened().iter().zip(made.positions.as_flattened());
    assert!(pairs.all(|(a, b)| (a - b).abs() < 1e-6));
    let inside = |p: &[f32; 3]| p[0].abs() < 0.72 && (-0.01..0.8).contains(&p[1]) && p[2].abs() < 0.72;
    assert!(
        made.positions.iter().all(inside),
        "{:?}",
        made.positions.iter().find(|p| !inside(p))
    );
}
