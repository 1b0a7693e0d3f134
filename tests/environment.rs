//! Directions towards environment maps: chi-square of the draws against their pdf, the variance of estimates by them, and tables
//! that follow a step and a stage.

mod small;

use glam::Affine3A;
use prbopt::device::cpu::Cpu;
use prbopt::device::{ArrayKind, Device, Step};
use prbopt::kernels::optimizer::Optimizer;
use prbopt::optimize::{RenderSettings, render_view};
use prbopt::resident::Resident;
use prbopt::resident::environment::environment_table;
use prbopt::scene::{self, Background, Scene, Source};
use prbopt::transport::lookup::background::{env_eval, env_stencil};
use prbopt::transport::rays::random::{Counter, Pass, pass_key};
use prbopt::transport::rays::sampler::{Sampler, WALK};
use prbopt::transport::scene::light::{envmap_pdf, light_sample};
use prbopt::transport::scene::records::SceneView;
use prbopt::transport::scene::tables::Tables;
use small::draw;

const PI: f64 = std::f64::consts::PI;

/// A map: its name, columns and rows, and the RGB of a texel at column and row.
struct Map {
    name: &'static str,
    size: [usize; 2],
    texel: fn(usize, usize) -> [f32; 3],
}

/// Dim, brighter upwards, with two small suns of different colours.
fn suns(x: usize, y: usize) -> [f32; 3] {
    match (x, y) {
        (5, 9) => [900.0, 800.0, 500.0],
        (23, 3) => [0.0, 200.0, 900.0],
        _ => [0.2, 0.3, 0.6].map(|c| c * (1.0 + 0.5 * (y as f32 * 0.2).cos())),
    }
}

fn maps() -> Vec<Map> {
    vec![
        Map {
            name: "two suns",
            size: [32, 16],
            texel: suns,
        },
        Map {
            name: "noise",
            size: [7, 5],
            texel: |x, y| [0, 1, 2].map(|c| draw(3, (y * 7 + x) as u32, c)),
        },
        Map {
            name: "one texel of all, in the last column",
            size: [9, 13],
            texel: |x, y| [if (x, y) == (8, 6) { 3.0 } else { 0.0 }; 3],
        },
        Map {
            name: "a pole",
            size: [16, 9],
            texel: |_, y| [if y == 0 { 1e4 } else { 1e-3 }; 3],
        },
        Map {
            name: "black",
            size: [12, 6],
            texel: |_, _| [0.0; 3],
        },
        Map {
            name: "two rows",
            size: [2, 2],
            texel: |x, y| [(1 + x + 2 * y) as f32; 3],
        },
        Map {
            name: "narrow",
            size: [3, 40],
            texel: |x, y| [(1 + (x * 7 + y * 3) % 5) as f32; 3],
        },
    ]
}

impl Map {
    fn values(&self) -> Vec<f32> {
        let [columns, rows] = self.size;
        let texels = (0..columns * rows).map(|i| (self.texel)(i % columns, i / columns));
        texels.flatten().collect()
    }

    /// A floor under the map.
    fn scene(&self) -> Scene {
        let [columns, rows] = self.size;
        let text = format!(
            r#"{{"integrator": {{"type": "prbvolpath", "max_depth": 2}},
                "camera": {{"type": "perspective", "fov": 20,
                    "to_world": [{{"look_at": {{"origin": [0, 1, 3], "target": [0, 0, 0], "up": [0, 1, 0]}}}}],
                    "film": {{"type": "hdrfilm", "width": 8, "height": 8, "rfilter": {{"type": "box"}}}}}},
                "floor": {{"type": "rectangle", "to_world": [{{"scale": 50}}, {{"rotate": {{"axis": [1, 0, 0], "angle": -90}}}}]}},
                "sky": {{"type": "envmap", "data": {{"resolution": [{columns}, {rows}]}}}},
                "optimize": {{"parameters": {{"sky.data": {{"learning_rate": 1}}}},
                    "references": {{"type": "constant", "value": 1}}}}}}"#
        );
        scene::parse(&text, std::path::Path::new("map.json")).unwrap_or_else(|mistakes| panic!("{mistakes}"))
    }

    /// The scene made resident, its map turned and scaled.
    fn resident(&self, turned: bool) -> Resident {
        let mut scene = self.scene();
        if let Background::Envmap { to_world, scale, .. } = &mut scene.background
            && turned
        {
            *to_world = Affine3A::from_rotation_x(0.7) * Affine3A::from_rotation_y(2.0);
            scale.source = Source::Fill(vec![0.3]);
        }
        Resident::new(&scene).expect("it is sound").0
    }
}

fn sampler(seed: u64, sample: u32) -> Sampler {
    let counter = Counter {
        sensor: 0,
        pixel: 0,
        sample,
        block: WALK,
    };
    Sampler::new(pass_key(seed, 0, Pass::Primal), counter)
}

/// Calls `visit` with the world of a map and its texels.
fn with_world<T>(map: &Map, turned: bool, compensated: bool, visit: impl FnOnce(&SceneView, &[f32]) -> T) -> T {
    let resident = map.resident(turned);
    let values = map.values();
    let records = resident.transport.paths();
    let tables = Tables {
        lights: environment_table(resident.scene.env_size, &values, compensated),
        ..Tables::default()
    };
    visit(&SceneView::new(&resident.scene, records, &tables), &values)
}

/// A direction of the map's frame in the world.
fn to_world(world: &SceneView, d: [f64; 3]) -> [f32; 3] {
    let m = &world.common.world_to_env;
    [0, 1, 2].map(|a| (0..3).map(|b| f64::from(m[b][a]) * d[b]).sum::<f64>() as f32)
}

/// Draws fall into 24 × 24 bins of the map as the integral of their pdf says, which is one over all of it.
#[test]
fn draws_follow_their_pdf() {
    const BINS: usize = 24;
    const STEPS: usize = 24;
    const DRAWS: u32 = 1 << 17;
    for map in maps() {
        for (turned, compensated) in [(false, false), (true, false), (true, true)] {
            with_world(&map, turned, compensated, |world, _| {
                let mut expected = vec![0.0; BINS * BINS];
                let cell = 1.0 / (BINS * STEPS) as f64;
                for i in 0..BINS * STEPS {
                    let (sine, cosine) = ((i as f64 + 0.5) * cell * PI).sin_cos();
                    for j in 0..BINS * STEPS {
                        let phi = (j as f64 + 0.5) * cell * 2.0 * PI;
                        let local = [phi.sin() * sine, cosine, -phi.cos() * sine];
                        let pdf = f64::from(envmap_pdf(world, to_world(world, local)));
                        expected[i / STEPS * BINS + j / STEPS] += pdf * 2.0 * PI * PI * sine * cell * cell;
                    }
                }
                let total: f64 = expected.iter().sum();
                assert!(
                    (total - 1.0).abs() < 2e-3,
                    "{}: the pdf integrates to {total}",
                    map.name
                );

                let mut counts = vec![0u32; BINS * BINS];
                let mut apart = 0;
                for sample in 0..DRAWS {
                    let drawn = light_sample(world, [0.0; 3], &mut sampler(9, sample)).expect("no pdf is zero");
                    let [x, y, z] = drawn.direction.map(f64::from);
                    let m = &world.common.world_to_env;
                    let local =
                        [0, 1, 2].map(|a| f64::from(m[a][0]) * x + f64::from(m[a][1]) * y + f64::from(m[a][2]) * z);
                    let u = (local[0].atan2(-local[2]) / (2.0 * PI)).rem_euclid(1.0);
                    let v = local[1].clamp(-1.0, 1.0).acos() / PI;
                    let bin = |x: f64| ((x * BINS as f64) as usize).min(BINS - 1);
                    counts[bin(v) * BINS + bin(u)] += 1;
                    assert!((drawn.weight * drawn.pdf - 1.0).abs() < 1e-5);
                    let found = envmap_pdf(world, drawn.direction);
                    apart += u32::from((found / drawn.pdf - 1.0).abs() > 1e-2);
                }
                // Where texels differ much or at a pole, rounding moves a direction to another pdf.
                assert!(
                    apart < DRAWS / 1000,
                    "{}: {apart} densities are not those of the draw",
                    map.name
                );
                assert_chi_square(map.name, &counts, &expected);
            });
        }
    }
}

/// Chi-square of counts against expected shares; bins that expect little are one. The bound is the 1 - 10⁻⁴ quantile.
fn assert_chi_square(name: &str, counts: &[u32], expected: &[f64]) {
    let draws: f64 = counts.iter().map(|n| f64::from(*n)).sum();
    let (mut chi_square, mut freedom, mut rest) = (0.0f64, 0.0f64, [0.0; 2]);
    for (count, share) in counts.iter().zip(expected) {
        let (count, expected) = (f64::from(*count), share * draws);
        if expected < 20.0 {
            rest = [rest[0] + count, rest[1] + expected];
        } else {
            chi_square += (count - expected).powi(2) / expected;
            freedom += 1.0;
        }
    }
    if rest[1] > 1.0 {
        chi_square += (rest[0] - rest[1]).powi(2) / rest[1];
    }
    let bound = freedom * (1.0 - 2.0 / (9.0 * freedom) + 3.719 * (2.0 / (9.0 * freedom)).sqrt()).powi(3);
    assert!(
        freedom >= 2.0 && chi_square < bound,
        "{name}: chi-square {chi_square} of {freedom} bins exceeds {bound}"
    );
}

/// A pdf that is proportional to luminance leaves an estimate of its integral without variance; uniform draws, and
/// the sine between rows, leave a few percent of the mean's square, but half of it where all light is at a pole.
#[test]
fn the_luminance_has_next_to_no_variance() {
    for (map, bound) in maps().iter().zip([0.01, 0.05, 0.05, 0.7]) {
        with_world(map, true, false, |world, values| {
            let n = 1 << 16;
            let (mut sum, mut squares) = (0.0, 0.0);
            for sample in 0..n {
                let drawn = light_sample(world, [0.0; 3], &mut sampler(4, sample)).expect("no pdf is zero");
                let d = drawn.direction;
                let m = &world.common.world_to_env;
                let local = [0, 1, 2].map(|a| m[a][0] * d[0] + m[a][1] * d[1] + m[a][2] * d[2]);
                let [r, g, b]: [f32; 3] = env_eval(values, &env_stencil(world.common.env_size, local));
                let x = f64::from((0.2126 * r + 0.7152 * g + 0.0722 * b) * drawn.weight);
                sum += x;
                squares += x * x;
            }
            let mean = sum / f64::from(n);
            let relative = squares / f64::from(n) / (mean * mean) - 1.0;
            println!("{}: {relative}", map.name);
            assert!(relative < bound, "{}: a relative variance of {relative}", map.name);
        });
    }
}

/// The floor under two suns, whose diffuse BSDF draws directions too: pictures of both tables have one mean (within four standard
/// errors, which are less than 0.6 % of it) and the compensated one has less noise.
#[test]
fn compensation_changes_noise_alone() {
    let suns = &maps()[0];
    let [[mean, variance], [other, less]] = [false, true].map(|compensated| {
        let mut scene = suns.scene();
        if let Background::Envmap { mis_compensation, .. } = &mut scene.background {
            *mis_compensation = compensated;
        }
        let (resident, mut params) = Resident::new(&scene).expect("it is sound");
        let slot = params.find("sky.data").expect("it is there");
        params.parameters[slot].values = suns.values();
        let mut device = Cpu::new();
        device
            .load(resident, params, Optimizer::Sgd { momentum: 0.0 })
            .expect("it fits");
        let look = RenderSettings {
            seed: 3,
            iteration: 0,
            spp: 1,
        };
        let means: Vec<f64> = (0..4096)
            .map(|iteration| {
                let picture = render_view(&mut device, 0, RenderSettings { iteration, ..look }).expect("it renders");
                picture.iter().map(|p| f64::from(p[1])).sum::<f64>() / picture.len() as f64
            })
            .collect();
        let mean = means.iter().sum::<f64>() / means.len() as f64;
        let square: f64 = means.iter().map(|m| (m - mean).powi(2)).sum();
        [mean, square / (means.len() - 1) as f64]
    });
    let error = ((variance + less) / 4096.0).sqrt();
    println!("{mean} and {other}, {error}; {variance} and {less}");
    assert!((mean - other).abs() < 4.0 * error, "{mean} and {other}");
    assert!(error < 6e-3 * mean, "{error}");
    assert!(less < variance, "{less} and {variance}");
}

/// A device with these values of a map, and their slot.
fn load(map: &Map, values: &[f32]) -> (Cpu, usize) {
    let (resident, mut params) = Resident::new(&map.scene()).expect("it is sound");
    let slot = params.find("sky.data").expect("it is there");
    params.parameters[slot].values.copy_from_slice(values);
    let mut device = Cpu::new();
    device
        .load(resident, params, Optimizer::Sgd { momentum: 0.0 })
        .expect("it fits");
    (device, slot)
}

fn picture(device: &mut Cpu) -> Vec<[f32; 4]> {
    let look = RenderSettings {
        seed: 1,
        iteration: 0,
        spp: 64,
    };
    render_view(device, 0, look).expect("it renders")
}

/// A stage that refines a map leaves the mean of what it lights, within 2 %, and pictures that are, to the bit, those of a device
/// that began with the finer map.
#[test]
fn a_map_is_refined() {
    let texel = |x: usize, y: usize| [0.2, 0.3, 0.6].map(|c| c + (if (x, y) == (31, 5) { 30.0 } else { 0.0 }));
    let of_size = |size| Map {
        name: "a sun at the seam",
        size,
        texel,
    };
    let (coarse, fine) = (of_size([32, 16]), of_size([64, 32]));
    let (mut device, slot) = load(&coarse, &coarse.values());
    let before = picture(&mut device);
    device.resample(&[(slot, [64, 32, 1])], false).expect("it fits");
    device.rebuild().expect("it rebuilds");
    let after = picture(&mut device);
    let refined = device.read(slot, ArrayKind::Values).expect("values");
    assert_eq!(after, picture(&mut load(&fine, &refined).0));
    let mean = |pixels: &[[f32; 4]]| pixels.iter().map(|p| p[0]).sum::<f32>() / pixels.len() as f32;
    let (before, after) = (mean(&before), mean(&after));
    assert!((after / before - 1.0).abs() < 0.02, "{before} before and {after} after");
    // The sun lies on both sides of the seam.
    let row = &refined[3 * 64 * 10..][..3 * 64];
    assert!(row[0] > 5.0 && row[3 * 63] > 15.0 && row[3 * 32] < 1.0, "{row:?}");
}

/// After a step that makes a texel bright pictures are, to the bit, those of a device that began with it.
#[test]
fn a_texel_that_a_step_makes_bright_is_found() {
    let map = Map {
        name: "dim",
        size: [16, 9],
        texel: |_, _| [0.25; 3],
    };
    let mut values = map.values();
    let (mut device, slot) = load(&map, &values);
    let dim = picture(&mut device);
    let mut gradient = vec![0.0; values.len()];
    let bright = 3 * (2 * 16 + 7);
    for c in 0..3 {
        gradient[bright + c] = -512.0;
        values[bright + c] += 512.0;
    }
    device
        .write(slot, ArrayKind::Gradient, &gradient)
        .expect("it has a gradient");
    let step = Step {
        optimizer: Optimizer::Sgd { momentum: 0.0 },
        rate: 1.0,
        count: 1,
    };
    device.step(&step).expect("it steps");
    device.rebuild().expect("it rebuilds");
    let found = picture(&mut device);
    assert_eq!(found, picture(&mut load(&map, &values).0));
    let deviation = |pixels: &[[f32; 4]]| {
        let mean = pixels.iter().map(|p| p[1]).sum::<f32>() / pixels.len() as f32;
        let square = pixels.iter().map(|p| (p[1] - mean).powi(2)).sum::<f32>() / pixels.len() as f32;
        (mean, square.sqrt() / mean)
    };
    let ((dim, _), (mean, noise)) = (deviation(&dim), deviation(&found));
    assert!(
        mean > 5.0 * dim,
        "{mean} after {dim}: the step has not made the texel bright"
    );
    // 64 samples a pixel; drawn uniformly, the texel would be met by one in a hundred.
    assert!(noise < 0.2, "pixels differ by {noise} of their mean");
}
