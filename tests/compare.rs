//! `prbopt compare`: its figures, and the exit code that each check gives.

use std::path::Path;

use assert_cmd::Command;
use serde_json::Value;

use prbopt::io::{Image, image, srgb};

fn compare(folder: &Path, arguments: &[&str]) -> (Option<i32>, String, String) {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("prbopt"));
    let output = command
        .current_dir(folder)
        .arg("compare")
        .args(arguments)
        .output()
        .expect("the program starts");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

fn figures(folder: &Path, arguments: &[&str]) -> Value {
    let (_, stdout, stderr) = compare(folder, &[arguments, &["--json"]].concat());
    assert_eq!(stdout.lines().count(), 1, "{stdout}{stderr}");
    serde_json::from_str(&stdout).expect("one line of JSON")
}

/// 16×12 pixels whose sRGB-coded values are `coded`.
fn write_exr(path: &Path, coded: f32) {
    let data = vec![srgb::decode(coded); 16 * 12 * 3];
    image::write_exr(
        path,
        &Image {
            width: 16,
            height: 12,
            channels: 3,
            data,
        },
    )
    .expect("writable");
}

#[test]
fn checks_pass_and_fail_by_exit_code() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    write_exr(&folder.path().join("a.exr"), 0.5);
    write_exr(&folder.path().join("b.exr"), 0.6);
    for (arguments, code) in [
        (&["a.exr", "b.exr"][..], 0),
        (&["a.exr", "b.exr", "--psnr-min", "19.9"], 0),
        (&["a.exr", "b.exr", "--psnr-min", "20.1"], 1),
        (&["a.exr", "b.exr", "--ssim-min", "0.9"], 0),
        (&["a.exr", "b.exr", "--ssim-min", "0.999"], 1),
        (&["a.exr", "b.exr", "--max-abs-error", "0.2"], 0),
        (&["a.exr", "b.exr", "--max-abs-error", "0.01"], 1),
        (
            &[
                "a.exr",
                "a.exr",
                "--psnr-min",
                "1000",
                "--ssim-min",
                "1",
                "--max-abs-error",
                "0",
            ],
            0,
        ),
        (&["a.exr", "none.exr"], 2),
        (&["a.exr"], 2),
        (&["a.exr", "b.exr", "--psnr-min", "nan"], 2),
    ] {
        let (found, stdout, stderr) = compare(folder.path(), arguments);
        assert_eq!(found, Some(code), "{arguments:?}: {stdout}{stderr}");
        assert_eq!(stdout.contains("failed"), code == 1, "{arguments:?}: {stdout}");
    }
}

#[test]
fn figures_are_of_coded_values_and_differences_of_linear_ones() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    write_exr(&folder.path().join("a.exr"), 0.5);
    write_exr(&folder.path().join("b.exr"), 0.6);
    let found = figures(folder.path(), &["a.exr", "b.exr", "--difference", "d.png"]);
    let close = |key: &str, expected: f64| {
        let value = found[key].as_f64().expect(key);
        assert!(
            (value - expected).abs() < 1e-5 * expected.abs(),
            "{key}: {value} instead of {expected}"
        );
    };
    let (a, b) = (f64::from(srgb::decode(0.5)), f64::from(srgb::decode(0.6)));
    close("psnr", 20.0);
    close("mse", 0.01);
    // Without contrast only SSIM's term of luminance differs from 1.
    close("ssim", (2.0 * 0.5 * 0.6 + 1e-4) / (0.25 + 0.36 + 1e-4));
    close("mean_a", a);
    close("mean_b", b);
    close("max_abs_error", b - a);
    assert_eq!(found["values"], "linear");
    let (difference, _) = image::read(&folder.path().join("d.png")).expect("written");
    assert!((difference.data[0] - 0.1).abs() < 0.003, "{}", difference.data[0]);
}

#[test]
fn a_png_is_taken_as_coded() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    write_exr(&folder.path().join("a.exr"), 51.0 / 255.0);
    let data = vec![0.2; 16 * 12 * 3];
    image::write_png(
        &folder.path().join("b.png"),
        &Image {
            width: 16,
            height: 12,
            channels: 3,
            data,
        },
    )
    .expect("writable");
    let found = figures(folder.path(), &["a.exr", "b.png"]);
    assert!(found["psnr"].as_f64().expect("finite") > 120.0, "{found}");
    assert!(found["max_abs_error"].as_f64().expect("finite") < 1e-6, "{found}");
}

#[test]
fn nan_passes_no_check() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    write_exr(&folder.path().join("a.exr"), f32::NAN);
    let (code, stdout, _) = compare(folder.path(), &["a.exr", "a.exr"]);
    assert_eq!(code, Some(1));
    assert!(stdout.contains("576 values are NaN"), "{stdout}");
    let found = figures(
        folder.path(),
        &["a.exr", "a.exr", "--max-abs-error", "1e9", "--psnr-min", "-1e9"],
    );
    assert_eq!(found["failed"].as_array().map(Vec::len), Some(3), "{found}");
}

#[test]
fn sizes_must_agree() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    write_exr(&folder.path().join("a.exr"), 0.5);
    let data = vec![0.2; 27];
    image::write_png(
        &folder.path().join("b.png"),
        &Image {
            width: 3,
            height: 3,
            channels: 3,
            data,
        },
    )
    .expect("writable");
    let (code, _, stderr) = compare(folder.path(), &["a.exr", "b.png"]);
    assert_eq!(code, Some(2));
    assert!(stderr.contains("16×12") && stderr.contains("3×3"), "{stderr}");
}
