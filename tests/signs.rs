//! The sign of surfaces' gradients: path replay, conventional differentiation and unbiased radiative backpropagation have one
//! mean; biased radiative backpropagation has another, of the wrong sign where it matters from where radiance arrives
//! (Vicini2021, figures 2 and 5; docs/experiments.md).
//!
//! `PRBOPT_PICTURES` names a folder for the planes of signs.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::Command;

use ::image::imageops::blur;
use ::image::{ImageBuffer, Rgb};
use prbopt::io::{Image, image};
use tempfile::TempDir;

/// Standard errors beyond which a mean has a sign.
const SURE: f64 = 4.0;
const REPLAY: &[&str] = &["integrator.type=prb"];
const TAPE: &[&str] = &["integrator.type=ad"];
const RADIATIVE: &[&str] = &["integrator.type=rb"];
const BIASED: &[&str] = &["integrator.type=rb", "integrator.variant=biased"];

/// A bundled scene with changes, one of its sensors, and a folder for results.
struct Scene {
    file: PathBuf,
    sensor: &'static str,
    changes: Vec<String>,
    folder: TempDir,
}

impl Scene {
    fn new(name: &str, sensor: &'static str, changes: &[&str]) -> Self {
        Self {
            file: Path::new(env!("CARGO_MANIFEST_DIR")).join("scenes").join(name),
            sensor,
            changes: changes.iter().map(ToString::to_string).collect(),
            folder: tempfile::tempdir().expect("a folder can be made"),
        }
    }

    fn run(&self, command: &str, output: &str, sets: &[&str], words: &[&str]) -> PathBuf {
        let output = self.folder.path().join(output);
        let changes = self.changes.iter().map(String::as_str);
        let sets = changes.chain(sets.iter().copied()).map(|set| format!("--set={set}"));
        let done = Command::new(env!("CARGO_BIN_EXE_prbopt"))
            .args([
                command,
                "--quiet",
                "--device",
                "cpu",
                "--sensor",
                self.sensor,
                "--output",
            ])
            .arg(&output)
            .args(words)
            .args(sets)
            .arg(&self.file)
            .output()
            .expect("it runs");
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        output
    }

    /// Its picture. Differences of pictures of one seed have less noise than pictures.
    fn render(&self, sets: &[&str], spp: u32, seed: u32) -> Image {
        let words = ["--spp", &spp.to_string(), "--seed", &seed.to_string()];
        let folder = self.run("render", "picture", sets, &words);
        image::read(&folder.join(format!("{}.exr", self.sensor)))
            .expect("it is written")
            .0
    }

    /// The gradients of a mean squared difference by a parameter, one for each of the seeds, with `spp` samples a pixel.
    fn gradients(
        &self,
        parameter: &str,
        sets: &[&str],
        difference: &Image,
        spp: u32,
        seeds: Range<u32>,
    ) -> Vec<Vec<f64>> {
        let mut adjoint = difference.clone();
        let factor = 2.0 / adjoint.data.len() as f32;
        adjoint.data.iter_mut().for_each(|x| *x *= factor);
        let file = self.folder.path().join("adjoint.exr");
        image::write_exr(&file, &adjoint).expect("the test's folder is writable");
        let of_seed = |seed: u32| {
            let words = [
                "--adjoint",
                file.to_str().expect("paths of tests are text"),
                "--parameter",
                parameter,
                "--spp",
                &spp.to_string(),
                "--seed",
                &seed.to_string(),
            ];
            read(&self.run("backpropagate", "gradients", sets, &words), parameter)
        };
        seeds.map(of_seed).collect()
    }
}

/// The values of a parameter in a folder: one number, or a picture of them.
fn read(folder: &Path, parameter: &str) -> Vec<f64> {
    let json = folder.join(format!("{parameter}.json"));
    if let Ok(text) = std::fs::read_to_string(json) {
        let value: serde_json::Value = serde_json::from_str(&text).expect("it is JSON");
        return vec![value["value"][0].as_f64().expect("it is a number")];
    }
    let (picture, _) = image::read(&folder.join(format!("{parameter}.exr"))).expect("it is written");
    picture.data.into_iter().map(f64::from).collect()
}

fn minus(a: &Image, b: &Image) -> Image {
    let data = a.data.iter().zip(&b.data).map(|(a, b)| a - b).collect();
    Image { data, ..a.clone() }
}

/// What a picture loses by a blur of `sigma` pixels.
fn detail(picture: &Image, sigma: f32) -> Image {
    let [width, height] = [picture.width, picture.height].map(|n| n as u32);
    let buffer =
        ImageBuffer::<Rgb<f32>, _>::from_raw(width, height, picture.data.clone()).expect("it has three channels");
    let blurred = Image {
        data: blur(&buffer, sigma).into_raw(),
        ..picture.clone()
    };
    minus(picture, &blurred)
}

/// The mean of samples, and its standard error.
fn mean(samples: impl Iterator<Item = f64> + Clone) -> [f64; 2] {
    let n = samples.clone().count() as f64;
    let mean = samples.clone().sum::<f64>() / n;
    let square: f64 = samples.map(|x| (x - mean).powi(2)).sum();
    [mean, (square / (n - 1.0) / n).sqrt()]
}

/// The sign of a mean beyond its noise.
fn sign([mean, error]: [f64; 2]) -> Option<bool> {
    (mean.abs() > SURE * error).then_some(mean > 0.0)
}

/// The derivative of the mean squared difference by the roughness for all pairs of a start and a target, row by row of starts.
struct Plane {
    side: usize,
    cells: Vec<[f64; 2]>,
}

impl Plane {
    /// By an estimator, whose gradients are of `seeds` seeds with `spp` samples a pixel.
    fn new(scene: &Scene, values: &[f64], estimator: &[&str], spp: u32, seeds: u32) -> Self {
        let of_start = |start: f64, difference: &Image| {
            let set = alpha(start);
            let sets: Vec<&str> = estimator.iter().copied().chain([set.as_str()]).collect();
            let gradients = scene.gradients("blob.bsdf.alpha", &sets, difference, spp, 1..seeds + 1);
            mean(gradients.iter().map(|g| g[0]))
        };
        Self::of(scene, values, |start, differences| {
            differences
                .iter()
                .map(|difference| of_start(start, difference))
                .collect()
        })
    }

    /// By central differences of pictures of `seeds` seeds, `step` to either side.
    fn by_differences(scene: &Scene, values: &[f64], step: f64, seeds: u32) -> Self {
        Self::of(scene, values, |start, differences| {
            let slopes: Vec<Image> = (1..=seeds)
                .map(|seed| {
                    let [up, down] = [start + step, start - step].map(|x| scene.render(&[&alpha(x)], REFERENCE, seed));
                    minus(&up, &down)
                })
                .collect();
            let slope = |difference: &Image, slope: &Image| {
                let pairs = difference.data.iter().zip(&slope.data);
                let sum: f64 = pairs.map(|(a, b)| f64::from(*a) * f64::from(*b)).sum();
                sum / step / difference.data.len() as f64
            };
            let cell = |difference: &Image| mean(slopes.iter().map(|s| slope(difference, s)));
            differences.iter().map(cell).collect()
        })
    }

    /// `row` gives the cells of a start from the differences of its picture from all targets.
    fn of(scene: &Scene, values: &[f64], row: impl Fn(f64, &[Image]) -> Vec<[f64; 2]>) -> Self {
        let pictures: Vec<Image> = values
            .iter()
            .map(|x| scene.render(&[&alpha(*x)], REFERENCE, 0))
            .collect();
        let cells = values.iter().zip(&pictures).flat_map(|(start, picture)| {
            let differences: Vec<Image> = pictures.iter().map(|target| minus(picture, target)).collect();
            row(*start, &differences)
        });
        Self {
            side: values.len(),
            cells: cells.collect(),
        }
    }

    /// The numbers of cells off the diagonal whose sign is that of the differences, is opposite, and is uncertain in either.
    fn count(&self, differences: &Self) -> [usize; 3] {
        let mut count = [0; 3];
        for (at, (cell, expected)) in self.cells.iter().zip(&differences.cells).enumerate() {
            if at / self.side != at % self.side {
                let signs = sign(*cell).zip(sign(*expected));
                count[signs.map_or(2, |(a, b)| usize::from(a != b))] += 1;
            }
        }
        count
    }

    /// Starts from left to right, targets from below: red where the gradient is positive, blue where it is negative, by its
    /// square root.
    fn picture(&self) -> Image {
        const SIDE: usize = 12;
        let n = self.side;
        let largest = self.cells.iter().fold(0f64, |m, c| m.max(c[0].abs()));
        let mut data = Vec::new();
        for y in 0..n * SIDE {
            for x in 0..n * SIDE {
                let [value, _] = self.cells[x / SIDE * n + (n - 1 - y / SIDE)];
                let fade = 1.0 - (value.abs() / largest).sqrt() as f32;
                data.extend(if value > 0.0 {
                    [1.0, fade, fade]
                } else {
                    [fade, fade, 1.0]
                });
            }
        }
        Image {
            width: n * SIDE,
            height: n * SIDE,
            channels: 3,
            data,
        }
    }

    fn write(&self, name: &str) {
        if let Some(folder) = std::env::var_os("PRBOPT_PICTURES") {
            image::write_png(&Path::new(&folder).join(name), &self.picture()).expect("the folder is writable");
        }
    }
}

/// Samples a pixel of pictures of starts and targets.
const REFERENCE: u32 = 1024;

fn alpha(value: f64) -> String {
    format!("blob.bsdf.alpha={value}")
}

/// The room with what stands in the glass box: the blob, or a panel that mirrors the dark opening of the room.
fn room(side: u32, shape: &str) -> Scene {
    const PANEL: &str = r#"blob={"type": "cube", "to_world": [{"scale": [0.3, 0.4, 0.1]}, {"translate": [0, -0.45, 0]}],
        "bsdf": {"type": "roughconductor", "material": "Cu", "distribution": "ggx", "alpha": 0.15}}"#;
    let [width, height] = ["width", "height"].map(|axis| format!("camera.film.{axis}={side}"));
    // Without the start of a run, the scene has the roughness that it states.
    let stated = r#"optimize.parameters={"blob.bsdf.alpha":{}}"#;
    let mut changes = vec![width.as_str(), &height, stated];
    if shape == "panel" {
        changes.push(PANEL);
    }
    Scene::new("blob.json", "camera", &changes)
}

/// A wrong sign beyond four standard errors would occur by chance once in 5000 choices of seeds.
#[test]
fn replay_has_the_sign_of_differences_and_biased_radiative_backpropagation_the_other() {
    let scene = room(24, "panel");
    let values = [0.1, 0.3, 0.5];
    let differences = Plane::by_differences(&scene, &values, 0.03, 8);
    let count = |estimator| Plane::new(&scene, &values, estimator, 256, 5).count(&differences);
    let ([same, other, _], biased) = (count(REPLAY), count(BIASED));
    assert!(same >= 4 && other == 0, "{same} and {other}");
    assert!(biased[0] == 0 && biased[1] >= 4, "{biased:?}");
}

#[test]
#[ignore = "takes ten minutes"]
fn planes_of_signs() {
    for (shape, steps) in [("panel", 15), ("blob", 5)] {
        let scene = room(32, shape);
        let value = |i: u32| 0.05 + 0.55 * f64::from(i) / f64::from(steps);
        let values: Vec<f64> = (0..=steps).map(value).collect();
        let differences = Plane::by_differences(&scene, &values, 0.01, 8);
        differences.write(&format!("signs_{shape}_differences.png"));
        for (name, estimator) in [("replay", REPLAY), ("radiative", RADIATIVE), ("biased", BIASED)] {
            let plane = Plane::new(&scene, &values, estimator, 64, 4);
            let [same, other, unsure] = plane.count(&differences);
            println!(
                "{shape}, {name}: {same} cells have the sign of differences, {other} the other, {unsure} none that is sure"
            );
            plane.write(&format!("signs_{shape}_{name}.png"));
            assert!(name == "biased" || other == 0, "{shape}, {name}");
        }
    }
}

/// A texture, and a picture that shows it.
struct Textured {
    name: &'static str,
    scene: Scene,
    parameter: &'static str,
    /// Entries of the gradient that are compared, of each texel's three or one.
    entries: &'static [usize],
}

/// The floor of a painted room, the roughness of the ball in it over its surface, and the slopes of a coin.
fn textured() -> Vec<Textured> {
    let room = |changes: &[&str]| Scene::new("painted_room_target.json", "front", changes);
    let rough = r#"ball.bsdf.alpha={"type": "bitmap", "raw": true, "data": {"resolution": [32, 16], "value": 0.2}}"#;
    vec![
        Textured {
            name: "floor",
            scene: room(&[]),
            parameter: "floor.bsdf.reflectance",
            entries: &[0, 1, 2],
        },
        Textured {
            name: "roughness",
            scene: room(&[rough]),
            parameter: "ball.bsdf.alpha",
            entries: &[0],
        },
        Textured {
            name: "coin",
            scene: Scene::new("relief_target.json", "front", &[]),
            parameter: "coin.bsdf.normalmap",
            entries: &[0, 1],
        },
    ]
}

impl Textured {
    /// The gradient under the difference of the picture and its blur, entry by entry, with standard errors.
    fn means(&self, estimator: &[&str], difference: &Image, spp: u32, seeds: Range<u32>) -> Vec<[f64; 2]> {
        let gradients = self.scene.gradients(self.parameter, estimator, difference, spp, seeds);
        let channels = if self.entries.len() == 1 { 1 } else { 3 };
        let sought = (0..gradients[0].len()).filter(|i| self.entries.contains(&(i % channels)));
        sought.map(|i| mean(gradients.iter().map(move |g| g[i]))).collect()
    }
}

/// How gradients differ from path replay's.
struct Comparison {
    /// The mean square of differences over their standard errors: 1 for equal means.
    deviation: f64,
    /// The factor by which replay's gradient fits best, by least squares.
    scale: f64,
    /// Of entries of which both signs are known, the share that are opposite, and the number of these entries.
    opposite: f64,
    known: usize,
}

fn compare(replay: &[[f64; 2]], other: &[[f64; 2]]) -> Comparison {
    let pairs = || replay.iter().zip(other).filter(|(r, o)| r[1] > 0.0 && o[1] > 0.0);
    let square: f64 = pairs()
        .map(|(r, o)| (r[0] - o[0]).powi(2) / (r[1] * r[1] + o[1] * o[1]))
        .sum();
    let known: Vec<bool> = pairs().filter_map(|(r, o)| Some(sign(*r)? != sign(*o)?)).collect();
    Comparison {
        deviation: square / pairs().count() as f64,
        scale: pairs().map(|(r, o)| r[0] * o[0]).sum::<f64>() / pairs().map(|(r, _)| r[0] * r[0]).sum::<f64>(),
        opposite: known.iter().filter(|x| **x).count() as f64 / known.len() as f64,
        known: known.len(),
    }
}

/// Differences over standard errors of 16 samples follow about Student's t of 15 degrees, whose square has the mean 15 / 13.
#[test]
#[ignore = "takes minutes"]
fn gradients_of_textures() {
    for textured in textured() {
        let difference = detail(&textured.scene.render(&[], REFERENCE, 0), 4.0);
        let replay = textured.means(REPLAY, &difference, 64, 0..16);
        for (name, estimator) in [("tape", TAPE), ("radiative", RADIATIVE), ("biased", BIASED)] {
            // The tape takes replay's paths; others have paths of their own.
            let seeds = if name == "tape" { 0..16 } else { 16..32 };
            let other = textured.means(estimator, &difference, 64, seeds);
            let c = compare(&replay, &other);
            println!(
                "{}, {name}: mean squared deviation {:.2}, scale {:.3}, {:.1} % of {} known signs opposite",
                textured.name,
                c.deviation,
                c.scale,
                100.0 * c.opposite,
                c.known
            );
            assert!(
                name == "biased" || (c.deviation < 1.3 && c.opposite == 0.0),
                "{}: {name}",
                textured.name
            );
        }
    }
}
