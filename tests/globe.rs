//! The map of a globe is found from a picture of it through a glass jar (docs/experiments.md).

use std::f64::consts::{PI, TAU};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use prbopt::io::image;
use prbopt::params::Shape;
use prbopt::scene::Source;
use tempfile::TempDir;

/// Seeds of the maps in `scenes/globe.json` and `scenes/globe_target.json`.
const START: u64 = 8;
const TRUTH: u64 = 1;
/// Where the camera stands, over the globe's radius.
const CAMERA: [f64; 3] = [0.0, 0.5, 4.5];
/// The least cosine between a seen texel's normal and the direction of the camera.
const FACING: f64 = 0.34;
/// The radius of the stand, which hides what lies within it from all light.
const STAND: f64 = 0.25;

/// The scene and its target, with pieces of their text replaced, and where runs leave their results.
struct Globe {
    folder: TempDir,
    size: [usize; 2],
}

impl Globe {
    /// With a map of this size.
    fn new(size: [usize; 2], changes: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let scenes = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenes");
        for name in ["globe.json", "globe_target.json"] {
            let mut text = fs::read_to_string(scenes.join(name)).expect("it is there");
            if name == "globe.json" {
                assert!(changes.iter().all(|(from, _)| text.contains(from)), "{changes:?}");
            }
            text = text.replace("[512, 256]", &format!("{size:?}"));
            for (from, to) in changes {
                text = text.replace(from, to);
            }
            fs::write(folder.path().join(name), text).expect("the test's folder is writable");
        }
        Self { folder, size }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn prbopt(&self, words: &[&str]) {
        let done = Command::new(env!("CARGO_BIN_EXE_prbopt"))
            .args(words)
            .args(["--device", "cpu"])
            .current_dir(&self.folder)
            .output()
            .expect("it runs");
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    }

    /// The map that a run has found, row by row.
    fn found(&self, run: &str) -> Vec<f32> {
        let file = self.path(run).join("final/globe.bsdf.reflectance.exr");
        let (map, _) = image::read(&file).expect("it is written");
        assert_eq!([map.width, map.height, map.channels], [self.size[0], self.size[1], 3]);
        map.data
    }

    /// The `planet` of a seed, as a map.
    fn map(&self, seed: u64) -> Vec<f32> {
        let [width, height] = self.size;
        let shape = Shape {
            size: [width, height, 1],
            channels: 3,
        };
        Source::Planet { seed }.materialise(shape).expect("it is computed")
    }

    /// Places of texels on the globe, row by row: poles lie along y.
    fn places(&self) -> impl Iterator<Item = [f64; 3]> {
        let [width, height] = self.size;
        (0..width * height).map(move |i| {
            let theta = PI * ((i / width) as f64 + 0.5) / height as f64;
            let phi = TAU * ((i % width) as f64 + 0.5) / width as f64;
            [theta.sin() * phi.cos(), theta.cos(), -theta.sin() * phi.sin()]
        })
    }

    /// The PSNR of a map over the texels whose normals have at least this cosine to the camera and which do not lie in the stand.
    fn psnr(&self, map: &[f32], facing: f64) -> f64 {
        let truth = self.map(TRUTH);
        let (mut square, mut count) = (0.0, 0);
        for (i, place) in self.places().enumerate() {
            let to_camera: [f64; 3] = std::array::from_fn(|axis| CAMERA[axis] - place[axis]);
            let length = to_camera.iter().map(|x| x * x).sum::<f64>().sqrt();
            let cosine = (0..3).map(|axis| place[axis] * to_camera[axis]).sum::<f64>() / length;
            if cosine < facing || (place[1] < 0.0 && place[0].hypot(place[2]) < STAND) {
                continue;
            }
            let pairs = map[3 * i..3 * i + 3].iter().zip(&truth[3 * i..3 * i + 3]);
            square += pairs.map(|(a, b)| f64::from(a - b).powi(2)).sum::<f64>();
            count += 3;
        }
        assert!(count > map.len() / 8, "{count} of {}", map.len());
        -10.0 * (square / f64::from(count as u32)).log10()
    }

    /// A picture with these options.
    fn picture(&self, scene: &str, spp: &str, options: &[&str]) -> Vec<f32> {
        self.prbopt(&[&["render", scene, "--spp", spp, "-o", "picture.exr"], options].concat());
        let (picture, _) = image::read(&self.path("picture.exr")).expect("it is written");
        picture.data
    }
}

fn mean_square(a: &[f32], b: &[f32]) -> f64 {
    let sum: f64 = a.iter().zip(b).map(|(a, b)| f64::from(a - b).powi(2)).sum();
    sum / a.len() as f64
}

/// A small globe, without a penalty.
fn small() -> Globe {
    let changes = [
        ("\"width\": 320, \"height\": 180", "\"width\": 64, \"height\": 36"),
        ("\"iterations\": 160", "\"iterations\": 80"),
        ("\"weight\": 0.02", "\"weight\": 0"),
    ];
    Globe::new([64, 32], &changes)
}

#[test]
fn a_small_globe_shows_its_map() {
    let globe = small();
    globe.prbopt(&["optimize", "globe.json", "--output", "run"]);
    let (start, found) = (globe.map(START), globe.found("run"));
    let [before, after] = [&start, &found].map(|map| globe.psnr(map, FACING));
    println!("small globe: {before:.2} dB at first, {after:.2} dB found");
    assert!(after > before + 6.0, "{before} dB at first, {after} dB found");

    // Texels under the stand keep their values. A lookup reaches less than a row; behind the last row a map begins again at the
    // other pole.
    let [width, height] = globe.size;
    let row = PI / height as f64;
    let hidden = globe.places().enumerate().filter(|(i, place)| {
        let angle = (-place[1]).clamp(-1.0, 1.0).acos();
        angle + row < STAND.asin() && i / width + 1 < height
    });
    let hidden: Vec<usize> = hidden.map(|(i, _)| i).collect();
    assert!(hidden.len() >= width, "{}", hidden.len());
    let texel = |map: &[f32], i: usize| [0, 1, 2].map(|c| map[3 * i + c].to_bits());
    assert!(hidden.iter().all(|i| texel(&start, *i) == texel(&found, *i)));
    let moved = (0..width * height)
        .filter(|i| texel(&start, *i) != texel(&found, *i))
        .count();
    assert!(moved > width * height / 2, "{moved}");
}

/// The text of a scene without the comment at its beginning.
fn body(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenes").join(name);
    let text = fs::read_to_string(path).expect("it is there");
    text.split_once("{\n").expect("a scene").1.to_owned()
}

#[test]
fn the_large_globe_is_the_globe() {
    let larger = |name: &str| {
        body(name)
            .replace("[512, 256]", "[1024, 512]")
            .replace("\"width\": 320, \"height\": 180", "\"width\": 1280, \"height\": 720")
    };
    let mut scene = larger("globe.json").replace("globe_target", "globe_large_target");
    for (few, many) in [("8}", "64}"), ("4}", "32}"), ("2}", "16}"), ("1,\n", "8,\n")] {
        scene = scene.replace(&format!("\"spp\": {few}"), &format!("\"spp\": {many}"));
    }
    assert!(scene == body("globe_large.json"));
    assert!(larger("globe_target.json") == body("globe_large_target.json"));
}

/// Compares maps of the large globe, which take hours to find, with the true one:
/// `MAPS="runs/globe_large/final …" cargo test --release --test globe -- --ignored --nocapture large_globe`.
#[test]
#[ignore = "reads what runs of hours have written"]
fn maps_of_the_large_globe_are_compared() {
    let folders = std::env::var("MAPS").expect("MAPS names folders of maps, with blanks between them");
    let globe = Globe::new([1024, 512], &[]);
    for name in ["globe_large.json", "globe_large_target.json"] {
        let text = format!("{{\n{}", body(name));
        fs::write(globe.path(name), text).expect("the test's folder is writable");
    }
    let truth = globe.picture("globe_large_target.json", "16", &["--seed", "1"]);
    let floor = mean_square(
        &truth,
        &globe.picture("globe_large_target.json", "16", &["--seed", "2"]),
    );
    let off = |options: &[&str]| {
        let options = [&["--seed", "3"], options].concat();
        mean_square(&truth, &globe.picture("globe_large.json", "16", &options)) - floor
    };
    let tell = |name: &str, map: &[f32], off: f64| {
        let [seen, all] = [FACING, 0.0].map(|facing| globe.psnr(map, facing));
        println!("{name}: {seen:.2} dB, with the limb {all:.2} dB, pictures {off:.3e} over a floor of {floor:.3e}");
        (seen, off)
    };
    let (before, far) = tell("at first", &globe.map(START), off(&[]));
    for name in folders.split_whitespace() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
        let (map, _) = image::read(&folder.join("globe.bsdf.reflectance.exr")).expect("a map");
        let (after, near) = tell(
            name,
            &map.data,
            off(&["--parameters", folder.to_str().expect("a path of characters")]),
        );
        assert!(
            after > before + 14.0 && near < 0.05 * far,
            "{name}: {after} dB, {near} of {far}"
        );
    }
}

/// The experiment itself, which takes minutes: `cargo test --release --test globe -- --ignored --nocapture map_of_the_globe`.
#[test]
#[ignore = "takes minutes"]
fn the_map_of_the_globe_is_found() {
    let globe = Globe::new([512, 256], &[]);
    globe.prbopt(&["optimize", "globe.json", "--output", "run"]);
    let maps = [globe.map(START), globe.found("run")];
    let [[before, after], [all_before, all_after]] =
        [FACING, 0.0].map(|facing| [0, 1].map(|i| globe.psnr(&maps[i], facing)));
    let truth = globe.picture("globe_target.json", "64", &["--seed", "1"]);
    let floor = mean_square(&truth, &globe.picture("globe_target.json", "64", &["--seed", "2"]));
    let [far, near] = ["run/start", "run/final"].map(|of| {
        let picture = globe.picture("globe.json", "64", &["--seed", "3", "--parameters", of]);
        mean_square(&truth, &picture) - floor
    });
    println!(
        "globe: {before:.2} dB at first, {after:.2} dB found; with the limb {all_before:.2} and {all_after:.2} dB"
    );
    println!("pictures: {far:.3e} at first, {near:.3e} found, over a floor of {floor:.3e}");
    assert!(
        after > 24.0 && near < 0.02 * far,
        "{before} dB, {after} dB, {far}, {near}"
    );
}
