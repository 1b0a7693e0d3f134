//! Scene files: what is read from them, and what a mistake says.

use std::path::Path;

use prbopt::scene;

#[test]
fn two_blobs_parses() {
    let scene = scene::load(Path::new("scenes/two_blobs.json")).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(scene.sensors.len(), 14);
    assert!(scene.warnings.is_empty(), "{:?}", scene.warnings);
    println!("{:#}", scene.resolved);
}
