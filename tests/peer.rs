//! Small worlds that another renderer has measured pixel by pixel: Mitsuba 3.9.1, with eight million paths and more
//! for each (docs/testing.md; `tests/data/peer/measure.py` writes the measurements).

use std::path::Path;

use half::f16;
use prbopt::cli::import::mitsuba;
use prbopt::device::Device;
use prbopt::device::cpu::Cpu;
use prbopt::kernels::optimizer::Optimizer;
use prbopt::optimize::{RenderSettings, render_view};
use prbopt::resident::Resident;
use prbopt::scene::{self, Scene};

const FOLDER: &str = "tests/data/peer";
/// Pictures are squares of this many pixels.
const SIDE: usize = 32;
const BATCHES: u64 = 32;
const SPP: u32 = 32;
/// Batches that the other renderer's errors come from.
const THEIR_BATCHES: f64 = 32.0;
/// Samples a pixel in each of them.
const THEIR_SPP: f64 = 256.0;
/// Pixels, blocks of 4 × 4 of them and whole pictures are compared.
const BLOCKS: [usize; 3] = [1, 4, SIDE];
/// A scene of constant light alone, which paths find only by leaving the scene, as it is not drawn (docs/testing.md).
const NOISY: &str = "rgb_albedo";
/// Standard normal deviate that no comparison exceeds. After Šidák's correction for 23 times 3267 values 5.7 would be
/// exceeded by chance in one of 1000 runs; means of few bright samples are skewed, which asks for a little more.
const BOUND: f64 = 6.5;

/// Radiances, a channel after the other of a pixel after the other.
type Picture = Vec<f64>;

/// Means, the squares of their standard errors, and how many batches these come from.
struct Measured {
    mean: Picture,
    square: Picture,
    batches: f64,
}

/// Bytes of the header of a `.npy` file.
const HEADER: usize = 128;

/// The other renderer's measurement: an array of two by rows by columns by channels of 16-bit floats.
fn theirs(name: &str) -> Measured {
    let bytes = std::fs::read(Path::new(FOLDER).join(format!("means/{name}.npy"))).expect("it is there");
    let values = &bytes[HEADER..];
    let values: Picture = values
        .chunks_exact(2)
        .map(|b| f16::from_le_bytes([b[0], b[1]]).to_f64())
        .collect();
    let (mean, error) = values.split_at(values.len() / 2);
    Measured {
        mean: mean.to_vec(),
        square: error.iter().map(|e| e * e).collect(),
        batches: THEIR_BATCHES,
    }
}

/// The scene of a file.
fn load(path: &Path) -> Scene {
    scene::load(path).unwrap_or_else(|mistakes| panic!("{mistakes}"))
}

/// Pictures of independent seeds.
fn render(scene: &Scene, spp: u32) -> Vec<Picture> {
    let (resident, params) = Resident::new(scene).expect("the scene is without mistakes");
    let mut device = Cpu::new();
    let sgd = Optimizer::Sgd { momentum: 0.0 };
    device.load(resident, params, sgd).expect("it fits");
    let look = |seed| RenderSettings {
        seed,
        iteration: 0,
        spp,
    };
    (0..BATCHES)
        .map(|seed| {
            let pixels = render_view(&mut device, 0, look(seed)).expect("it renders");
            pixels.iter().flat_map(|p| [0, 1, 2].map(|c| f64::from(p[c]))).collect()
        })
        .collect()
}

/// Means over blocks of `side` × `side` pixels.
fn blocks(picture: &[f64], side: usize) -> Picture {
    let count = SIDE / side;
    let mut sums = vec![0.0; count * count * 3];
    for y in 0..SIDE {
        for x in 0..SIDE {
            for c in 0..3 {
                sums[(y / side * count + x / side) * 3 + c] += picture[(y * SIDE + x) * 3 + c];
            }
        }
    }
    sums.iter().map(|sum| sum / (side * side) as f64).collect()
}

/// The other renderer's measurement of blocks, whose pixels are independent.
fn their_blocks(found: &Measured, side: usize) -> Measured {
    let scale = 1.0 / (side * side) as f64;
    Measured {
        mean: blocks(&found.mean, side),
        square: blocks(&found.square, side).iter().map(|s| s * scale).collect(),
        batches: found.batches,
    }
}

fn our_blocks(pictures: &[Picture], side: usize) -> Measured {
    let pictures: Vec<Picture> = pictures.iter().map(|picture| blocks(picture, side)).collect();
    let n = pictures.len() as f64;
    let entries = 0..pictures[0].len();
    let mean: Picture = entries
        .clone()
        .map(|i| pictures.iter().map(|p| p[i]).sum::<f64>() / n)
        .collect();
    let deviation = |i: usize| pictures.iter().map(|p| (p[i] - mean[i]).powi(2)).sum::<f64>();
    Measured {
        square: entries.map(|i| deviation(i) / (n - 1.0) / n).collect(),
        mean,
        batches: n,
    }
}

/// Welch's t of entry `i` as the normal deviate of the same probability (Wallace 1959).
fn deviate(a: &Measured, b: &Measured, i: usize) -> f64 {
    // The other renderer's means are rounded to 16-bit floats.
    let rounding = b.mean[i].abs() / 2048.0;
    let difference = ((a.mean[i] - b.mean[i]).abs() - rounding).max(0.0);
    let total = a.square[i] + b.square[i];
    if total == 0.0 {
        return if difference == 0.0 { 0.0 } else { f64::INFINITY };
    }
    let square = difference * difference / total;
    let share = |m: &Measured| m.square[i] * m.square[i] / (m.batches - 1.0);
    let freedom = total * total / (share(a) + share(b));
    (8.0 * freedom + 1.0) / (8.0 * freedom + 3.0) * (freedom * (square / freedom).ln_1p()).sqrt()
}

/// The variance of a sample of prbopt over that of the other renderer, each summed over all pixels and channels.
fn variance_ratio(ours: &Measured, theirs: &Measured) -> f64 {
    let of_samples = |m: &Measured, spp: f64| m.square.iter().sum::<f64>() * m.batches * spp;
    of_samples(ours, f64::from(SPP)) / of_samples(theirs, THEIR_SPP)
}

/// The largest deviate of all pixels, of all blocks and of the whole picture.
fn disagreements(ours: &[Picture], theirs: &Measured) -> [f64; 3] {
    BLOCKS.map(|side| {
        let (ours, theirs) = (our_blocks(ours, side), their_blocks(theirs, side));
        let entries = 0..ours.mean.len();
        entries.map(|i| deviate(&ours, &theirs, i)).fold(0.0, f64::max)
    })
}

/// The pictures with each entry replaced: `change` gets the picture and the entry's x, y and channel.
fn planted(pictures: &[Picture], change: impl Fn(&Picture, usize, usize, usize) -> f64) -> Vec<Picture> {
    let entry = |i: usize| (i / 3 % SIDE, i / 3 / SIDE, i % 3);
    pictures
        .iter()
        .map(|picture| {
            (0..picture.len())
                .map(|i| {
                    let (x, y, c) = entry(i);
                    change(picture, x, y, c)
                })
                .collect()
        })
        .collect()
}

/// The scenes of a folder with this extension, by name.
fn scenes(folder: &Path, extension: &str) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(folder)
        .expect("it is there")
        .map(|entry| entry.expect("can be listed").path())
        .filter(|path| path.extension().is_some_and(|e| e == extension))
        .map(|path| path.file_stem().expect("a name").to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

/// Samples of a batch of a sensor of one pixel.
const METER_SPP: u32 = 8192;

/// Sensors that measure one number, with a quarter of a million paths each; 6 % more would be seen.
#[test]
fn meters_measure_what_another_renderer_does() {
    let folder = Path::new(FOLDER).join("meters");
    let names = scenes(&folder, "json");
    assert!(names.len() >= 7, "{names:?}");
    for name in names {
        let theirs = theirs(&name);
        let ours = render(&load(&folder.join(format!("{name}.json"))), METER_SPP);
        let found = |factor: f64| {
            let batches = BATCHES as f64;
            let of = |c: usize| ours.iter().map(move |p| factor * p[c]);
            let mean: Picture = (0..3).map(|c| of(c).sum::<f64>() / batches).collect();
            let square = |c: usize| of(c).map(|x| (x - mean[c]).powi(2)).sum::<f64>() / (batches - 1.0) / batches;
            let measured = Measured {
                square: (0..3).map(square).collect(),
                mean: mean.clone(),
                batches,
            };
            (0..3).map(|c| deviate(&measured, &theirs, c)).fold(0.0, f64::max)
        };
        println!("{name}: {:.2}, with 6 % more {:.2}", found(1.0), found(1.06));
        assert!(
            found(1.0) < BOUND && found(1.06) > BOUND,
            "{name}: {} {}",
            found(1.0),
            found(1.06)
        );
    }
}

#[test]
fn pixels_are_those_of_another_renderer() {
    let folder = Path::new(FOLDER).join("scenes");
    let names = scenes(&folder, "json");
    assert!(names.len() >= 23, "{names:?}");
    for name in names {
        hold(&name, &load(&folder.join(format!("{name}.json"))));
    }
}

/// The other renderer has read the XML itself.
#[test]
fn scenes_of_xml_are_those_of_another_renderer() {
    let folder = Path::new(FOLDER).join("xml");
    let names = scenes(&folder, "xml");
    assert!(names.len() >= 3, "{names:?}");
    for name in names {
        let file = folder.join(format!("{name}.xml"));
        let converted = mitsuba::convert(&file, &folder.join("scene.json"), &[]);
        hold(&name, &converted.unwrap_or_else(|mistakes| panic!("{mistakes:#}")).1);
    }
}

/// Compares rendered pictures of a scene with the other renderer's, and checks that small mistakes would be seen.
fn hold(name: &str, scene: &Scene) {
    let theirs = theirs(name);
    let ours = render(scene, SPP);
    let found = disagreements(&ours, &theirs);
    let ratio = variance_ratio(&our_blocks(&ours, 1), &theirs);
    println!("{name}: {found:.2?}, variance {ratio:.3}");
    let most = if name == NOISY { 1.4 } else { 1.1 };
    assert!(ratio < most, "{name}: {ratio} times the variance of a sample");
    assert!(found.iter().all(|z| *z < BOUND), "{name}: {found:?} exceeds {BOUND}");

    let at = |p: &Picture, x: usize, y: usize, c: usize| p[(y * SIDE + x) * 3 + c];
    let seen = |what: &str, change: &dyn Fn(&Picture, usize, usize, usize) -> f64| {
        let found = disagreements(&planted(&ours, change), &theirs);
        println!("  {what}: {found:.2?}");
        assert!(
            found.iter().any(|z| *z > BOUND),
            "{name}: {what} would not be seen: {found:?}"
        );
    };
    seen("three percent more light", &|p, x, y, c| 1.03 * at(p, x, y, c));
    seen("a step to the side", &|p, x, y, c| at(p, (x + 1) % SIDE, y, c));
    seen("a sixth more light in the middle's 4 × 4 pixels", &|p, x, y, c| {
        let inside = x / 4 == 3 && y / 4 == 4;
        at(p, x, y, c) * if inside { 7.0 / 6.0 } else { 1.0 }
    });
}
