//! Benchmark of pictures of splats: an iteration of `scenes/splats.json` with other numbers of splats and pixels, beside
//! lower bounds of its time, and how its time follows the number of splats.

use std::hint::black_box;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, bail};
use serde::Serialize;

use super::{ADAM, BenchArgs, Samples, Timing, iterate, machine_peaks, median};
use crate::cli::Outcome;
use crate::device::cpu::Cpu;
use crate::device::{ArrayKind, Batch};
use crate::output::streams::print_line;
use crate::resident::{Resident, Transport};
use crate::scene::{self, Scene};
use crate::transport::rays::pixel::PixelTable;
use crate::transport::splats::blend::{MAX_WEIGHT, MIN_TRANSMITTANCE, MIN_WEIGHT};
use crate::transport::splats::splat::{Parameters, Splat, reach};

const SCENE: &str = include_str!("../../../scenes/splats.json");

/// Timed iterations of a block. [`UNTIMED`] ones precede them, and the machine's rates are measured after them.
const BLOCK: u32 = 5;
const UNTIMED: usize = 2;
/// The reference of the loss.
const REFERENCE: [f32; 3] = [0.5; 3];

/// Edge of a tile in pixels.
const TILE: f32 = 16.0;

/// Values of a splat; each has a gradient and two moments.
const NUMBERS: u64 = 9;

#[derive(Debug, Serialize)]
struct Figures {
    image: u32,
    threads: usize,
    rows: Vec<Row>,
    /// R² of a line fitted to the passes' time over the number of splats, and over that of pairs of a tile and a splat;
    /// None for fewer than three rows.
    #[serde(skip_serializing_if = "Option::is_none")]
    r2_of_splats: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    r2_of_pairs: Option<f64>,
}

/// The figures for one number of splats; times are medians, but for the fastest iteration.
#[derive(Debug, Serialize)]
struct Row {
    splats: u32,
    /// Pairs of a tile and a splat whose box reaches it, and of a pixel and a splat that is blended there.
    tile_pairs: u64,
    pixel_pairs: u64,
    /// Nanoseconds of one core for an exponential, vectorised, while all cores are at work.
    exponential_ns: f64,
    /// Likewise for all arithmetic of a pair of a pixel and a splat in both passes, including its two exponentials.
    pair_ns: f64,
    memory_gb_per_second: f64,
    iteration_ms: f64,
    fastest_ms: f64,
    /// Primal, loss and adjoint.
    passes_ms: f64,
    step_ms: f64,
    /// Lower bounds for passes one after the other: by the exponentials, by all arithmetic of pairs, and by the bytes that
    /// are read from and written to memory.
    exponentials_ms: f64,
    arithmetic_ms: f64,
    bytes_ms: f64,
    /// Lower bound by exponentials and bytes if both passes share one visit of each tile.
    visit_ms: f64,
    /// An iteration's time over exponentials and bytes, over arithmetic and bytes, and over `visit_ms`: medians over blocks of
    /// iterations, each compared with the machine's rates measured right after it.
    ratio_to_floor: f64,
    ratio_to_arithmetic: f64,
    ratio_to_visit: f64,
}

pub(super) fn run(args: &BenchArgs) -> anyhow::Result<Outcome> {
    let image = args.image();
    let mut machine = Machine::new()?;
    let mut rows = Vec::new();
    for &splats in &args.splats {
        rows.push(measure(args, &mut machine, splats, image)?);
    }
    let walks: Vec<f64> = rows.iter().map(|row| row.passes_ms).collect();
    let over = |x: fn(&Row) -> f64| (rows.len() > 2).then(|| r2(&rows.iter().map(x).collect::<Vec<_>>(), &walks));
    let figures = Figures {
        image,
        threads: rayon::current_num_threads(),
        r2_of_splats: over(|row| f64::from(row.splats)),
        r2_of_pairs: over(|row| row.tile_pairs as f64),
        rows,
    };
    print(&figures, args.json)?;
    Ok(Outcome::Done)
}

/// The device and the memory whose rates are measured.
struct Machine {
    device: Cpu,
    memory: machine_peaks::Memory,
}

/// The machine's rates at a moment: nanoseconds of a core for an exponential and for a pair, and memory bytes a second.
#[derive(Debug, Clone, Copy)]
struct Rates {
    exponential_ns: f64,
    pair_ns: f64,
    bandwidth: f64,
}

/// Lower bounds in milliseconds: of exponentials, of all arithmetic of pairs, and of the bytes of passes one after the
/// other; and exponentials and bytes if both passes share one visit of each tile.
#[derive(Debug, Clone, Copy)]
struct Floor {
    exponentials: f64,
    arithmetic: f64,
    bytes: f64,
    visit: f64,
}

impl Machine {
    fn new() -> anyhow::Result<Self> {
        Ok(Self {
            device: Cpu::open()?,
            memory: machine_peaks::Memory::new(),
        })
    }

    fn rates(&mut self) -> Rates {
        let device = &self.device;
        let mean = |ns: Vec<f64>| ns.iter().sum::<f64>() / ns.len() as f64;
        Rates {
            exponential_ns: mean(rayon::broadcast(|_| exponential_ns(device))),
            pair_ns: mean(rayon::broadcast(|_| fastest_ns(|| device.blend_pairs(4).0))),
            bandwidth: self.memory.bandwidth(2),
        }
    }
}

impl Rates {
    /// The lower bounds of an iteration with these numbers of tile pairs and pixel pairs.
    fn floor(self, (splats, image): (u32, u32), [tile_pairs, pixel_pairs]: [u64; 2]) -> Floor {
        let threads = rayon::current_num_threads() as f64;
        let of_pairs = |ns: f64| pixel_pairs as f64 * ns * 1e-6 / threads;
        let of_bytes = |bytes: u64| bytes as f64 / self.bandwidth * 1e3;
        // A splat's weight at a pixel takes one exponential in each of the two passes.
        let exponentials = 2.0 * of_pairs(self.exponential_ns);
        Floor {
            exponentials,
            arithmetic: of_pairs(self.pair_ns),
            bytes: of_bytes(bytes(splats, image, tile_pairs)),
            visit: 0.5 * exponentials + of_bytes(bytes_of_visits(splats, tile_pairs)),
        }
    }
}

/// The scene with this many splats before a picture of `image`² pixels.
fn scene(splats: u32, image: u32) -> anyhow::Result<Scene> {
    let mut text: serde_json::Value = serde_json::from_str(SCENE)?;
    text["splats"]["count"] = splats.into();
    for side in ["width", "height"] {
        text["picture"]["film"][side] = image.into();
    }
    scene::parse(&text.to_string(), Path::new("bench")).map_err(|mistakes| anyhow::anyhow!("{mistakes}"))
}

/// Times blocks of iterations on `splats` splats, and measures the machine's rates after each block.
fn measure(args: &BenchArgs, machine: &mut Machine, splats: u32, image: u32) -> anyhow::Result<Row> {
    let (mut resident, mut params) = Resident::new(&scene(splats, image)?)?;
    params.parameters.iter_mut().for_each(|p| _ = p.project());
    resident.set_constant_reference(REFERENCE);
    let Transport::Splats(of) = &resident.transport else {
        bail!("`scenes/splats.json` is not a picture of splats");
    };
    let slots = of.slots;
    let table = PixelTable::new(&resident.sensors, &[0]).context("the picture has more than 2³² pixels")?;
    let batch = Batch { table, drawn: None };
    let mut device = args.device.open()?;
    device.load(resident, params, ADAM)?;
    let samples = Samples { spp: 1, spp_grad: 1 };
    let (mut blocks, mut iteration) = (Vec::new(), 0);
    for first in (0..args.iterations).step_by(BLOCK as usize) {
        let timed = BLOCK.min(args.iterations - first);
        let mut timings = Vec::new();
        for _ in 0..UNTIMED as u32 + timed {
            timings.push(iterate(device.as_mut(), &batch, samples, args.seed, iteration, true)?);
            iteration += 1;
        }
        blocks.push((timings.split_off(UNTIMED), machine.rates()));
    }
    let mut values = Vec::new();
    for slot in slots.all() {
        values.push(device.read(slot, ArrayKind::Values)?);
    }
    let of = |i: usize| Parameters {
        position: [values[0][2 * i], values[0][2 * i + 1]],
        scale: [values[1][2 * i], values[1][2 * i + 1]],
        rotation: values[2][i],
        color: [0.0; 3],
        opacity: values[4][i],
    };
    let pairs = pairs((0..splats as usize).map(of), image as usize);
    Ok(row(splats, image, pairs, &blocks))
}

/// The figures of blocks of iterations, each with the machine's rates after it.
fn row(splats: u32, image: u32, pairs: [u64; 2], blocks: &[(Vec<Timing>, Rates)]) -> Row {
    let [tile_pairs, pixel_pairs] = pairs;
    let all = || blocks.iter().flat_map(|(timings, _)| timings);
    let of = |part: fn(&Timing) -> f64| median(all().map(part));
    let rate = |part: fn(&Rates) -> f64| median(blocks.iter().map(|(_, rates)| part(rates)));
    let floor = |part: fn(&Floor) -> f64| {
        let floors = blocks.iter().map(|(_, rates)| rates.floor((splats, image), pairs));
        median(floors.map(|floor| part(&floor)))
    };
    let ratio = |part: fn(&Floor) -> f64| {
        median(blocks.iter().map(|(timings, rates)| {
            median(timings.iter().map(Timing::total)) / part(&rates.floor((splats, image), pairs))
        }))
    };
    Row {
        splats,
        tile_pairs,
        pixel_pairs,
        exponential_ns: rate(|r| r.exponential_ns),
        pair_ns: rate(|r| r.pair_ns),
        memory_gb_per_second: rate(|r| r.bandwidth) * 1e-9,
        iteration_ms: of(Timing::total),
        fastest_ms: all().map(Timing::total).fold(f64::INFINITY, f64::min),
        passes_ms: of(|t| t.primal + t.loss + t.adjoint),
        step_ms: of(|t| t.step),
        exponentials_ms: floor(|f| f.exponentials),
        arithmetic_ms: floor(|f| f.arithmetic),
        bytes_ms: floor(|f| f.bytes),
        visit_ms: floor(|f| f.visit),
        ratio_to_floor: ratio(|f| f.exponentials + f.bytes),
        ratio_to_arithmetic: ratio(|f| f.arithmetic + f.bytes),
        ratio_to_visit: ratio(|f| f.visit),
    }
}

/// Pairs of a tile and a splat whose box reaches it, and of a pixel and a splat that is blended there.
fn pairs(splats: impl Iterator<Item = Parameters<f32>>, image: usize) -> [u64; 2] {
    let mut transmittance = vec![1.0f32; image * image];
    let [mut tiles, mut pixels] = [0u64; 2];
    for of in splats {
        let Some(reach) = reach(&of, image as f32) else {
            continue;
        };
        let splat = Splat::project(&of, image as f32);
        // Range of the pixels whose centres are in the box: the first, and one past the last.
        let range = |axis: usize| {
            let [center, last] = [splat.center[axis] - 0.5, image as f32];
            let first = (center - reach[axis]).ceil().clamp(0.0, last);
            (first, ((center + reach[axis]).floor() + 1.0).clamp(first, last))
        };
        let [columns, rows] = [range(0), range(1)];
        let reached = |(first, end): (f32, f32)| match end > first {
            true => (end / TILE).ceil() - (first / TILE).floor(),
            false => 0.0,
        };
        tiles += (reached(columns) * reached(rows)) as u64;
        for y in rows.0 as usize..rows.1 as usize {
            for x in columns.0 as usize..columns.1 as usize {
                let weight = splat.eval([x as f32 + 0.5, y as f32 + 0.5]);
                let seen = &mut transmittance[y * image + x];
                if weight >= MIN_WEIGHT && *seen >= MIN_TRANSMITTANCE {
                    *seen *= 1.0 - weight.min(MAX_WEIGHT);
                    pixels += 1;
                }
            }
        }
    }
    [tiles, pixels]
}

/// Bytes that an iteration moves if its passes run one after the other: the step reads and writes values, gradients and two
/// moments; gradients are written before; the image is written, and read by loss and adjoint; the adjoint image is written and
/// read; lists are written, and read by both passes.
fn bytes(splats: u32, image: u32, tile_pairs: u64) -> u64 {
    let pixels = u64::from(image) * u64::from(image);
    u64::from(splats) * NUMBERS * 4 * (4 + 4 + 1) + pixels * (3 * 16 + 2 * 12) + tile_pairs * 3 * 4
}

/// [`bytes`] if both passes share one visit of each tile: image and adjoint image stay in the cache, and lists are
/// written and read once.
fn bytes_of_visits(splats: u32, tile_pairs: u64) -> u64 {
    u64::from(splats) * NUMBERS * 4 * (4 + 4 + 1) + tile_pairs * 2 * 4
}

/// Nanoseconds of one core for an exponential, of numbers that stay in the L1 cache.
fn exponential_ns(device: &Cpu) -> f64 {
    const VECTORS: usize = 256;
    const PASSES: usize = 20;
    let numbers = vec![[-1.5f32; 16]; VECTORS];
    let mut powers = numbers.clone();
    let pass = || {
        for _ in 0..PASSES {
            device.powers_of_two(black_box(&numbers), black_box(&mut powers));
        }
        (16 * VECTORS * PASSES) as u64
    };
    fastest_ns(pass)
}

/// Nanoseconds per operation in the fastest of 40 calls of `pass`, which returns its number of operations.
fn fastest_ns(mut pass: impl FnMut() -> u64) -> f64 {
    let time = |_| {
        let start = Instant::now();
        let count = pass();
        start.elapsed().as_secs_f64() * 1e9 / count as f64
    };
    (0..40).map(time).fold(f64::INFINITY, f64::min)
}

/// R², the coefficient of determination, of the least-squares line through points.
fn r2(x: &[f64], y: &[f64]) -> f64 {
    let mean = |v: &[f64]| v.iter().sum::<f64>() / v.len() as f64;
    let (mean_x, mean_y) = (mean(x), mean(y));
    let mut sums = [0.0; 3];
    for (x, y) in x.iter().zip(y) {
        let (dx, dy) = (x - mean_x, y - mean_y);
        sums = [sums[0] + dx * dx, sums[1] + dx * dy, sums[2] + dy * dy];
    }
    sums[1] * sums[1] / (sums[0] * sums[2])
}

fn print(figures: &Figures, json: bool) -> anyhow::Result<()> {
    if json {
        print_line(&serde_json::to_string(figures)?);
        return Ok(());
    }
    let Figures {
        image, threads, rows, ..
    } = figures;
    print_line(&format!("{image}×{image} pixels on {threads} threads"));
    print_line("  splats  tile pairs  pixel pairs  iteration (fastest) = passes + step, ms");
    for row in rows {
        print_line(&format!(
            "{:8} {:11} {:12} {:10.2} {:9.2} {:9.2} {:6.2}",
            row.splats, row.tile_pairs, row.pixel_pairs, row.iteration_ms, row.fastest_ms, row.passes_ms, row.step_ms,
        ));
        print_line(&format!(
            "           meanwhile {:.3} ns an exponential, {:.3} ns a pair, {:.1} GB/s",
            row.exponential_ns, row.pair_ns, row.memory_gb_per_second,
        ));
        print_line(&format!(
            "           {:.1} times exponentials {:.2} + bytes {:.2} ms, {:.1} times arithmetic {:.2} + bytes, {:.1} times the {:.2} of one visit",
            row.ratio_to_floor,
            row.exponentials_ms,
            row.bytes_ms,
            row.ratio_to_arithmetic,
            row.arithmetic_ms,
            row.ratio_to_visit,
            row.visit_ms,
        ));
    }
    if let (Some(splats), Some(pairs)) = (figures.r2_of_splats, figures.r2_of_pairs) {
        print_line(&format!(
            "  passes are a line over the number of splats with R² = {splats:.4}, over tile pairs with R² = {pairs:.4}"
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_explains_what_lies_on_it() {
        assert!((r2(&[1.0, 2.0, 4.0], &[3.0, 5.0, 9.0]) - 1.0).abs() < 1e-12);
        // Deviations -1, 0, 1 and -1, 2, -1 are orthogonal.
        assert!(r2(&[1.0, 2.0, 3.0], &[0.0, 3.0, 0.0]).abs() < 1e-12);
    }

    #[test]
    fn pairs_of_a_disc_and_of_what_it_hides() {
        let disc = |opacity: f32| Parameters {
            position: [0.5; 2],
            // Weights of 1/255 or more reach 16.6 pixels from the middle of 64.
            scale: [(5.0f32 / 64.0).ln(); 2],
            rotation: 0.3,
            color: [0.0; 3],
            opacity,
        };
        let area = std::f64::consts::PI * 2.0 * 25.0 * (0.99f64 * 255.0).ln();
        let [tiles, pixels] = pairs([disc(0.99)].into_iter(), 64);
        assert_eq!(tiles, 16);
        assert!((pixels as f64 / area - 1.0).abs() < 0.02, "{pixels}, expected {area}");
        // Three discs make the pixels in their middle opaque: the fourth is blended only around it.
        let [four, _] = [4, 1].map(|n| pairs((0..n).map(|_| disc(0.99)), 64)[1]);
        assert!(
            four > 3 * pixels && four < 4 * pixels,
            "{four} of four, {pixels} of one"
        );
        assert_eq!(pairs([disc(0.0)].into_iter(), 64), [0, 0]);
    }
}
