//! The normal map of a magnifying glass is found from what is seen through it (docs/experiments.md).

use std::fs;
use std::path::Path;
use std::process::Command;

use prbopt::io::image;

/// The slopes along u and v of a map of normals.
fn slopes(file: &Path) -> Vec<f64> {
    let (normals, _) = image::read(file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
    assert_eq!(normals.channels, 3);
    let slope = |texel: &[f32]| {
        let [x, y, z] = [0, 1, 2].map(|c: usize| f64::from(2.0 * texel[c] - 1.0));
        [-x / z, -y / z]
    };
    normals.data.chunks_exact(3).flat_map(slope).collect()
}

/// The PSNR of slopes, in dB: the peak is the range of the true ones.
fn psnr(found: &[f64], truth: &[f64]) -> f64 {
    let square: f64 = found.iter().zip(truth).map(|(a, b)| (a - b).powi(2)).sum();
    let [low, high] = truth
        .iter()
        .fold([f64::MAX, f64::MIN], |[low, high], x| [low.min(*x), high.max(*x)]);
    10.0 * ((high - low).powi(2) * truth.len() as f64 / square).log10()
}

/// The PSNR of the slopes of a flat face, and of what `prbopt optimize` finds, with these pieces of both scenes' text
/// replaced.
fn find(changes: &[(&str, &str)]) -> [f64; 2] {
    let folder = tempfile::tempdir().expect("a folder can be made");
    for name in ["lens.json", "lens_target.json"] {
        let scenes = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenes");
        let mut text = fs::read_to_string(scenes.join(name)).expect("it is there");
        for (from, to) in changes {
            assert!(
                name == "lens_target.json" || text.contains(from),
                "{name} has no {from}"
            );
            text = text.replace(from, to);
        }
        fs::write(folder.path().join(name), text).expect("the test's folder is writable");
    }
    let done = Command::new(env!("CARGO_BIN_EXE_prbopt"))
        .args(["optimize", "lens.json", "--device", "cpu", "--output", "run"])
        .current_dir(&folder)
        .output()
        .expect("it runs");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let of = |part: &str| slopes(&folder.path().join(format!("run/{part}/face.bsdf.normalmap.exr")));
    let truth = of("truth");
    [psnr(&vec![0.0; truth.len()], &truth), psnr(&of("final"), &truth)]
}

#[test]
fn a_small_lens_is_found() {
    let [flat, found] = find(&[
        ("[64, 64]", "[16, 16]"),
        ("[8, 8]}", "[4, 4]}"),
        ("\"width\": 96, \"height\": 96", "\"width\": 24, \"height\": 24"),
        (
            r#"            {"at": 0.3, "moments": "resample"},
            {"at": 0.5, "moments": "resample"}"#,
            r#"            {"at": 0.4, "moments": "resample"}"#,
        ),
        ("\"iterations\": 300", "\"iterations\": 120"),
        ("\"spp\": 512", "\"spp\": 256"),
    ]);
    println!("small lens: {flat:.2} dB flat, {found:.2} dB found");
    assert!(found > flat + 10.0, "{flat} dB flat, {found} dB found");
}

/// The experiment itself, which takes minutes: `cargo test --release --test lens -- --ignored --nocapture`.
#[test]
#[ignore = "takes minutes"]
fn the_lens_is_found() {
    let [flat, found] = find(&[]);
    println!("lens: {flat:.2} dB flat, {found:.2} dB found");
    assert!(found > 40.0, "{found} dB");
}
