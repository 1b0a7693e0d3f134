//! The normal map of a coin is found from its glints (docs/experiments.md).

use std::fs;
use std::path::Path;
use std::process::Command;

use prbopt::io::image;
use prbopt::params::Shape;
use prbopt::scene::{Motif, Source};

/// The seed of the coin in `scenes/relief_target.json`.
const COIN: u64 = 7;

/// The slopes along u and v of the normals whose components plus one, over two, are given.
fn slopes(texels: &[f32]) -> Vec<f64> {
    let slope = |texel: &[f32]| {
        let [x, y, z] = [0, 1, 2].map(|c: usize| f64::from(2.0 * texel[c] - 1.0));
        [-x / z, -y / z]
    };
    texels.chunks_exact(3).flat_map(slope).collect()
}

/// The PSNR of slopes, in dB: the peak is the range of the true ones.
fn psnr(found: &[f64], truth: &[f64]) -> f64 {
    let square: f64 = found.iter().zip(truth).map(|(a, b)| (a - b).powi(2)).sum();
    let [low, high] = truth
        .iter()
        .fold([f64::MAX, f64::MIN], |[low, high], x| [low.min(*x), high.max(*x)]);
    10.0 * ((high - low).powi(2) * truth.len() as f64 / square).log10()
}

/// The PSNR of the slopes of a flat coin, and of what `prbopt optimize` finds, with these pieces of both scenes' text
/// replaced.
fn find(size: usize, changes: &[(&str, &str)]) -> [f64; 2] {
    let folder = tempfile::tempdir().expect("a folder can be made");
    for name in ["relief.json", "relief_target.json"] {
        let scenes = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenes");
        let mut text = fs::read_to_string(scenes.join(name)).expect("it is there");
        for (from, to) in changes {
            text = text.replace(from, to);
        }
        fs::write(folder.path().join(name), text).expect("the test's folder is writable");
    }
    let done = Command::new(env!("CARGO_BIN_EXE_prbopt"))
        .args(["optimize", "relief.json", "--device", "cpu", "--output", "run"])
        .current_dir(&folder)
        .output()
        .expect("it runs");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let found = folder.path().join("run/final/coin.bsdf.normalmap.exr");
    let (normals, _) = image::read(&found).expect("it is written");
    assert_eq!([normals.width, normals.height, normals.channels], [size, size, 3]);
    let shape = Shape {
        size: [size, size, 1],
        channels: 3,
    };
    let truth = slopes(
        &Source::Motif {
            motif: Motif::Coin,
            seed: COIN,
        }
        .materialise(shape)
        .expect("it is computed"),
    );
    [
        psnr(&vec![0.0; truth.len()], &truth),
        psnr(&slopes(&normals.data), &truth),
    ]
}

#[test]
fn a_small_coin_appears() {
    let [flat, found] = find(
        16,
        &[
            ("[64, 64]", "[16, 16]"),
            ("[16, 16]}", "[8, 8]}"),
            ("\"width\": 96, \"height\": 96", "\"width\": 32, \"height\": 32"),
            (
                r#""stages": [{"at": 0.1, "moments": "resample"}, {"at": 0.25, "moments": "resample"}]"#,
                r#""stages": [{"at": 0.2, "moments": "resample"}]"#,
            ),
            ("\"iterations\": 400", "\"iterations\": 200"),
            ("\"spp\": 512", "\"spp\": 256"),
        ],
    );
    println!("small coin: {flat:.2} dB flat, {found:.2} dB found");
    assert!(found > flat + 5.0, "{flat} dB flat, {found} dB found");
}

/// The experiment itself, which takes minutes: `cargo test --release --test relief -- --ignored --nocapture`.
#[test]
#[ignore = "takes minutes"]
fn the_coin_is_found() {
    let [flat, found] = find(64, &[]);
    println!("coin: {flat:.2} dB flat, {found:.2} dB found");
    assert!(found > 25.0, "{found} dB");
    let stages = r#""stages": [{"at": 0.1, "moments": "resample"}, {"at": 0.25, "moments": "resample"}]"#;
    let at_once = |more: &str| {
        find(
            64,
            &[(r#", "start_resolution": [16, 16]"#, more), (stages, r#""stages": []"#)],
        )[1]
    };
    let [rough, smooth] = ["", r#", "smoothing": 0.016"#].map(at_once);
    println!("from 64 x 64 texels on: {rough:.2} dB, smoothed {smooth:.2} dB");
    assert!(smooth > rough + 3.0, "{rough} dB, {smooth} dB");
}
