//! Mistakes in scenes of splats, the picture of leaves, and pictures through the program.

use std::path::Path;

use prbopt::scene;

use super::text;

#[test]
fn mistakes_are_named() {
    let whole = |text: &str| {
        scene::parse(text, Path::new("splats.json"))
            .expect_err(text)
            .to_string()
    };
    let film = r#""film": {"type": "hdrfilm", "width": 8, "height": 8}"#;
    for (text, expected) in [
        (
            format!(r#"{{"c": {{"type": "canvas", {film}}}}}"#),
            "the scene has none",
        ),
        (
            format!(r#"{{"c": {{"type": "perspective", {film}}}, "s": {{"type": "splats"}}}}"#),
            "looks into space",
        ),
        (
            format!(r#"{{"c": {{"type": "canvas", {film}}}, "s": {{"type": "splats"}}, "b": {{"type": "sphere"}}}}"#),
            "stand beside `b`",
        ),
        (
            format!(r#"{{"c": {{"type": "canvas", {film}}}, "s": {{"type": "splats", "count": 0}}}}"#),
            "from 1 to",
        ),
        (
            format!(
                r#"{{"c": {{"type": "canvas", {film}}}, "s": {{"type": "splats", "filename": "none.safetensors"}}}}"#
            ),
            "cannot be used",
        ),
    ] {
        let found = whole(&text);
        assert!(found.contains(expected), "{found}");
    }
    let with = |block: &str| text(10, [8, 8], "").replace(r#""iterations": 30"#, block);
    for (block, expected) in [
        (r#""growth": {"count": 5}"#, "cannot grow to 5"),
        (r#""growth": {}"#, "`growth` lacks `count`"),
        (r#""batch": {"rays": 4}"#, "a view at a time"),
    ] {
        let found = whole(&with(block));
        assert!(found.contains(expected), "{found}");
    }
}

/// The picture of the first scene is hard: scaled to a quarter of its size and back, its PSNR is below 24 dB.
#[test]
fn the_picture_of_leaves_is_hard() {
    let [width, height] = [512usize, 512];
    let picture = scene::leaves::leaves(1, [512, 512]);
    let small: Vec<[f32; 3]> = (0..128 * 128)
        .map(|i| {
            let (x, y) = (i % 128 * 4, i / 128 * 4);
            let pixels = (0..16).map(|k| picture[(y + k / 4) * width + x + k % 4]);
            pixels.fold([0.0; 3], |s, p| [0, 1, 2].map(|c| s[c] + p[c] / 16.0))
        })
        .collect();
    let enlarged = |x: usize, y: usize, c: usize| {
        let along = |i: usize| {
            let at = ((i as f32 + 0.5) / 4.0 - 0.5).clamp(0.0, 127.0);
            let low = (at as usize).min(126);
            (low, at - low as f32)
        };
        let ((x, u), (y, v)) = (along(x), along(y));
        let at = |x: usize, y: usize| small[y * 128 + x][c];
        let row = |y: usize| at(x, y) * (1.0 - u) + at(x + 1, y) * u;
        row(y) * (1.0 - v) + row(y + 1) * v
    };
    let mut squares = 0.0;
    for y in 0..height {
        for x in 0..width {
            for c in 0..3 {
                squares += f64::from(enlarged(x, y, c) - picture[y * width + x][c]).powi(2);
            }
        }
    }
    let psnr = -10.0 * (squares / (3 * width * height) as f64).log10();
    assert!(psnr < 24.0, "{psnr} dB");
    assert_ne!(scene::leaves::leaves(2, [64, 64]), scene::leaves::leaves(1, [64, 64]));
}

/// From a picture to its splats and back at another size, through the program.
#[test]
fn a_picture_is_imported_recovered_and_enlarged() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let at = |name: &str| folder.path().join(name);
    let [width, height] = [48usize, 32];
    let image = prbopt::io::Image {
        width,
        height,
        channels: 3,
        data: scene::leaves::leaves(4, [48, 32]).into_iter().flatten().collect(),
    };
    prbopt::io::image::write_png(&at("photo.png"), &image).expect("writable");
    let run = |arguments: &[&str]| {
        let output = std::process::Command::new(assert_cmd::cargo::cargo_bin!("prbopt"))
            .args(arguments)
            .current_dir(folder.path())
            .output()
            .expect("starts");
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.code(), told)
    };
    let (code, told) = run(&["import", "photo.png", "--splats", "300", "-o", "photo.json"]);
    assert_eq!(code, Some(0), "{told}");
    assert!(told.contains("300") && told.contains("bits a pixel"), "{told}");
    let (code, told) = run(&["optimize", "photo.json", "--iterations", "60", "--device", "cpu"]);
    assert_eq!(code, Some(0), "{told}");
    let figures = std::fs::read_to_string(at("runs/photo/picture.json")).expect("written");
    let figures: serde_json::Value = serde_json::from_str(&figures).expect("JSON");
    let psnr = |value: &serde_json::Value| value.as_f64().expect("a number");
    assert!(psnr(&figures["psnr"]) > 21.0, "{figures}");
    assert!(psnr(&figures["half_precision"]["psnr"]) > 20.0, "{figures}");
    assert_eq!(
        figures["half_precision"]["bits_per_pixel"],
        144.0 * 300.0 / (48.0 * 32.0)
    );
    for name in ["splats.safetensors", "splats.ply", "splats.svg"] {
        assert!(at("runs/photo/final").join(name).is_file(), "{name}");
    }
    let images = std::fs::read_dir(at("runs/photo/images")).expect("a folder");
    let names: Vec<String> = images
        .flatten()
        .map(|e| e.file_name().to_string_lossy().into_owned())
        .collect();
    assert!(
        names
            .iter()
            .any(|n| n.contains("picture-splats") && n.ends_with(".png")),
        "{names:?}"
    );
    let render = [
        "render",
        "photo.json",
        "--parameters",
        "runs/photo/final",
        "--scale",
        "4",
        "-o",
        "large.png",
    ];
    let (code, told) = run(&render);
    assert_eq!(code, Some(0), "{told}");
    let header = prbopt::io::image::header(&at("large.png")).expect("a picture");
    assert_eq!((header.width, header.height), (4 * width, 4 * height));
    let (code, told) = run(&["gradcheck", "photo.json", "--entries", "4", "--device", "cpu"]);
    assert_eq!(code, Some(0), "{told}");
    let (code, told) = run(&["import", "photo.png", "--splats", "0"]);
    assert_eq!(code, Some(2), "{told}");
}
