//! Pictures of splats: undone blends against conventional differentiation and forward mode, their drift, the same bits for any
//! number of threads, both devices, and values that are not finite.

mod devices;
#[path = "../devices/gpu.rs"]
mod gpu;
mod program;

use std::path::Path;

use prbopt::device::cpu::Cpu;
use prbopt::device::{ArrayKind, Batch, Device, Keys, LossValue, ReplayStats, Step};
use prbopt::gradcheck::forward::{Motion, direction, forward};
use prbopt::gradcheck::splats::objective::SplatObjective;
use prbopt::gradcheck::{Index, Options, Setup, check};
use prbopt::kernels::loss::Loss;
use prbopt::kernels::optimizer::Optimizer;
use prbopt::resident::{Resident, Transport};
use prbopt::scene::{self, Scene};
use prbopt::transport::number::Number;
use prbopt::transport::number::tape::{Recorded, Tape};
use prbopt::transport::rays::pixel::PixelTable;
use prbopt::transport::rays::random::{Counter, random_uniform};
use prbopt::transport::splats::blend::{List, MAX_WEIGHT, MIN_TRANSMITTANCE, MIN_WEIGHT, gather, replay};
use prbopt::transport::splats::splat::{Parameters, Splat, reach};

/// Uniform numbers in [0, 1).
fn uniform(i: u32, block: u32) -> [f32; 4] {
    let counter = Counter {
        sensor: 0,
        pixel: i,
        sample: 7,
        block,
    };
    random_uniform([1, 2, 3, 4], counter)
}

/// Splats over a pixel in the middle of a picture of 64 pixels, with weights up to `most`.
fn pile(count: u32, most: f32) -> Vec<Parameters<f32>> {
    let one = |i| {
        let (a, b, c) = (uniform(i, 0), uniform(i, 1), uniform(i, 2));
        Parameters {
            position: [0.5 + 0.02 * (a[0] - 0.5), 0.5 + 0.02 * (a[1] - 0.5)],
            scale: [-4.0 + 2.0 * a[2], -4.0 + 2.0 * a[3]],
            rotation: 6.0 * b[0],
            color: [b[1], b[2], b[3]],
            opacity: most * c[0],
        }
    };
    (0..count).map(one).collect()
}

const SIDE: f32 = 64.0;
const PIXEL: [f32; 2] = [32.5, 31.5];
const BACKGROUND: [f32; 3] = [0.2, 0.5, 0.9];
const ADJOINT: [f32; 3] = [0.7, -1.1, 0.4];

fn lift<N: Number>(of: &Parameters<f32>, mut number: impl FnMut(f32) -> N) -> Parameters<N> {
    Parameters {
        position: of.position.map(&mut number),
        scale: of.scale.map(&mut number),
        rotation: number(of.rotation),
        color: of.color.map(&mut number),
        opacity: number(of.opacity),
    }
}

fn flat<N: Copy>(of: &Parameters<N>) -> [N; 9] {
    let ([x, y], [a, b], [r, g, blue]) = (of.position, of.scale, of.color);
    [x, y, a, b, of.rotation, r, g, blue, of.opacity]
}

/// The gradient of ADJOINT · colour by the parameters of a pile, by undoing the blend; and how many entries were looked
/// at.
fn by_replay(pile: &[Parameters<f32>]) -> (Vec<f64>, u32) {
    let decide: Vec<Splat<f32>> = pile.iter().map(|p| Splat::project(p, SIDE)).collect();
    let wide: Vec<Parameters<f64>> = pile.iter().map(|p| lift(p, f64::from)).collect();
    let splats: Vec<Splat<f64>> = wide.iter().map(|p| Splat::project(p, SIDE)).collect();
    let order: Vec<u32> = (0..pile.len() as u32).collect();
    let list = List {
        order: &order,
        decide: &decide,
        splats: &splats,
        pixel: PIXEL,
    };
    let (last, count) = gather(&list);
    let mut gradient = vec![0.0; 9 * pile.len()];
    let (adjoint, background) = (ADJOINT.map(f64::from), BACKGROUND.map(f64::from));
    let left = replay(&list, (last, count), adjoint, background, |splat, by| {
        let by = Splat::project_adjoint(&wide[splat as usize], SIDE, &by);
        for (entry, term) in gradient[9 * splat as usize..].iter_mut().zip(flat(&by)) {
            *entry += term;
        }
    });
    assert!((left.transmittance - 1.0).abs() < 1e-10 && left.color.iter().all(|c| c.abs() < 1e-10));
    (gradient, count)
}

/// The same by conventional differentiation.
fn by_tape(pile: &[Parameters<f32>]) -> Vec<f64> {
    let decide: Vec<Splat<f32>> = pile.iter().map(|p| Splat::project(p, SIDE)).collect();
    Tape::begin(None);
    let mut variables = 0;
    let mut splats: Vec<Splat<Recorded>> = Vec::new();
    for of in pile {
        // Variables are numbered as `flat` lists them.
        let values = flat(of).map(|v| {
            variables += 1;
            Recorded::variable(variables - 1, f64::from(v))
        });
        let [x, y, a, b, rotation, red, green, blue, opacity] = values;
        let of = Parameters {
            position: [x, y],
            scale: [a, b],
            rotation,
            color: [red, green, blue],
            opacity,
        };
        splats.push(Splat::project(&of, SIDE));
    }
    let order: Vec<u32> = (0..pile.len() as u32).collect();
    let list = List {
        order: &order,
        decide: &decide,
        splats: &splats,
        pixel: PIXEL,
    };
    let color = gather(&list).0.over(BACKGROUND.map(Recorded::lift));
    let mut sum = Recorded::lift(0.0);
    for c in 0..3 {
        sum += color[c] * Recorded::lift(ADJOINT[c]);
    }
    let tape = Tape::end();
    let mut gradient = vec![0.0; variables];
    tape.backpropagate(sum, |variable, d| gradient[variable] += d);
    gradient
}

#[test]
fn undoing_agrees_with_a_tape() {
    // Weights up to .99 and clamped ones that end the pixel early; and 2000 faint ones, of which many are left out.
    for (count, most) in [(40, 1.3), (3, 5.0), (400, 0.05), (2000, 0.006)] {
        let pile = pile(count, most);
        let ((found, looked), expected) = (by_replay(&pile), by_tape(&pile));
        let largest = expected.iter().fold(0.0, |m: f64, v| m.max(v.abs()));
        assert!(largest > 0.0);
        for (i, (a, b)) in found.iter().zip(&expected).enumerate() {
            assert!(
                (a - b).abs() <= 1e-10 * largest.max(1.0),
                "{count} splats, entry {i}: {a}, by the tape {b}"
            );
        }
        assert!(
            most < 0.5 || looked < count,
            "{count} splats of up to {most} finish the pixel early"
        );
        assert!(
            most > 0.01 || looked == count,
            "all {count} faint splats are looked at, not {looked}"
        );
    }
}

#[test]
fn a_weight_that_is_clamped_sends_no_derivative_but_by_colour() {
    let mut pile = pile(1, 1.0);
    (pile[0].position, pile[0].opacity) = ([PIXEL[0] / SIDE, PIXEL[1] / SIDE], 0.995);
    let (found, _) = by_replay(&pile);
    for (i, d) in found.iter().enumerate() {
        let expected = if (5..8).contains(&i) {
            f64::from(MAX_WEIGHT) * f64::from(ADJOINT[i - 5])
        } else {
            0.0
        };
        assert!((d - expected).abs() < 1e-12, "entry {i}: {d}, expected {expected}");
    }
    pile[0].opacity = 0.985;
    assert!(
        by_replay(&pile).0.iter().filter(|d| **d != 0.0).count() >= 4,
        "below the clamp all of them count"
    );
}

/// Each blend and its undoing round the transmittance a few times: after n of them it is within 4 (n + 1) ε of 1,
/// relatively, and within 10⁻³ after 256.
#[test]
fn transmittances_are_undone_to_a_few_roundings() {
    for seed in 0..200u32 {
        let weights: Vec<f32> = (0..256)
            .map(|i| MIN_WEIGHT + (0.06 - MIN_WEIGHT) * uniform(seed * 1000 + i, 3)[0].powi(8))
            .chain([0.9])
            .collect();
        let mut state = prbopt::transport::splats::blend::PixelState::<f32>::begin();
        let mut count = 0;
        for weight in &weights {
            state.blend(*weight, [0.5; 3]);
            count += 1;
            if state.transmittance < MIN_TRANSMITTANCE {
                break;
            }
        }
        for weight in weights[..count].iter().rev() {
            state.undo(*weight, [0.5; 3]);
        }
        let drift = (state.transmittance - 1.0).abs();
        assert!(
            drift <= 4.0 * (count as f32 + 1.0) * f32::EPSILON && drift <= 1e-3,
            "{drift} after {count}"
        );
    }
}

/// A scene of splats whose reference is a picture of leaves.
fn text(count: usize, [width, height]: [u32; 2], more: &str) -> String {
    format!(
        r#"{{"type": "scene",
        "picture": {{"type": "canvas", "film": {{"type": "hdrfilm", "width": {width}, "height": {height},
            "color_space": "srgb", "rfilter": {{"type": "box"}}}}}},
        "sky": {{"type": "constant", "radiance": [0.9, 0.6, 0.3]}},
        "splats": {{"type": "splats", "count": {count}, "seed": 5{more}}},
        "optimize": {{"iterations": 30, "references": {{"type": "leaves", "seed": 2}},
            "parameters": {{"splats.position": {{"learning_rate": 0.002}}, "splats.scale": {{"learning_rate": 0.02}},
                "splats.rotation": {{}}, "splats.color": {{"learning_rate": 0.01}}, "splats.opacity": {{"learning_rate": 0.01}},
                "sky.radiance": {{"learning_rate": 0.01}}}}}}}}"#
    )
}

fn scene(count: usize, size: [u32; 2], more: &str) -> Scene {
    scene::parse(&text(count, size, more), Path::new("splats.json")).unwrap_or_else(|e| panic!("{e}"))
}

fn setup(scene: &Scene) -> Setup {
    let options = Options::default();
    Setup::new(scene, &options).expect("can be made ready")
}

#[test]
fn derivatives_agree_with_differences_on_the_cpu() {
    for (count, size, more) in [
        (60, [40, 24], ""),
        (300, [33, 50], r#", "placement": "picture""#),
        (5, [16, 16], r#", "order": "size""#),
    ] {
        let setup = setup(&scene(count, size, more));
        let outcome = check(&setup, Some(&mut Cpu::new()), &Options::default()).expect("checks");
        assert!(outcome.report.passed, "{}", outcome.report);
        assert_eq!(
            outcome.report.parameters.len(),
            12,
            "six parameters under two weightings"
        );
    }
}

/// The derivative of the objective along a direction, by the image's slopes and by the gradient.
#[test]
fn forward_mode_agrees_with_the_replay_and_with_differences() {
    let setup = setup(&scene(80, [40, 24], ""));
    let Transport::Splats(splats) = &setup.resident.transport else {
        panic!("a picture of splats")
    };
    let objective = SplatObjective::new(&setup, splats);
    let adjoint = objective.adjoint(1);
    for path in [
        "splats.position",
        "splats.scale",
        "splats.rotation",
        "splats.color",
        "splats.opacity",
        "sky.radiance",
    ] {
        let parameter = setup.params.find(path).expect("there");
        let along = direction(&setup.params.parameters[parameter], Motion::Scale(None)).expect("possible");
        let found = forward(&setup, parameter, &along, Some(1e-4)).expect("a walk");
        assert!(
            found.largest > 0.0 && found.difference <= 1e-6 * found.largest,
            "{path}: {}",
            found.difference
        );
        let slopes = found.slopes.iter().enumerate().map(|(i, slope)| {
            let weight = objective.weight(1, 0, [i % 40, i / 40]);
            let slope = slope.expect("every pixel");
            (0..3).map(|c| weight[c] * slope[c]).sum::<f64>()
        });
        let (forwards, backwards) = (
            slopes.sum::<f64>(),
            along
                .iter()
                .zip(&adjoint.gradient[parameter])
                .map(|(a, b)| a * b)
                .sum::<f64>(),
        );
        assert!(
            (forwards - backwards).abs() <= 1e-10 * forwards.abs().max(1e-3),
            "{path}: {forwards}, {backwards}"
        );
    }
    let one = direction(&setup.params.parameters[0], Motion::Entry(Index::Flat(3)));
    assert!(one.is_ok());
}

fn keys() -> Keys {
    Keys {
        objective: [1; 4],
        pass: [2; 4],
    }
}

const ADAM: Optimizer = Optimizer::Adam {
    beta_1: 0.9,
    beta_2: 0.999,
    epsilon: 1e-8,
    mask_updates: false,
};

/// Loads a scene with its reference.
fn load(device: &mut dyn Device, scene: &Scene) -> Batch {
    let (mut resident, params) = Resident::new(scene).expect("flat");
    resident.set_constant_reference([0.3, 0.5, 0.4]);
    let table = PixelTable::new(&resident.sensors, &[0]).expect("few pixels");
    device.load(resident, params, ADAM).expect("loads");
    Batch { table, drawn: None }
}

/// Pixels, and for each parameter its gradient and its values.
type Driven = (Vec<[f32; 4]>, Vec<Vec<f32>>, Vec<Vec<f32>>);

/// Image, gradients, and values after three steps.
fn drive(device: &mut dyn Device, scene: &Scene) -> Driven {
    let batch = load(device, scene);
    let mut image = Vec::new();
    let mut gradients = Vec::new();
    for count in 1..=3 {
        device.render(&batch, keys(), 1).expect("renders");
        device.loss(&batch, keys(), Loss::L2).expect("compares");
        device.backpropagate(&batch, keys(), 1).expect("backpropagates");
        if count == 1 {
            image = device.image().expect("an image");
            gradients = read(device, ArrayKind::Gradient);
        }
        let step = Step {
            optimizer: ADAM,
            rate: 1.0,
            count,
        };
        device.step(&step).expect("steps");
    }
    (image, gradients, read(device, ArrayKind::Values))
}

fn read(device: &mut dyn Device, kind: ArrayKind) -> Vec<Vec<f32>> {
    (0..device.params().parameters.len())
        .map(|p| device.read(p, kind).expect("readable"))
        .collect()
}

/// What an evaluation has found: the loss, how replays went, and the bits of the gradients.
type Evaluated = (LossValue, ReplayStats, Vec<Vec<u32>>);

/// Evaluates a batch in one visit of each tile, or in three passes, and takes the gradients away.
fn evaluate(device: &mut dyn Device, batch: &Batch, loss: Loss, in_one: bool) -> Evaluated {
    let (value, stats) = match in_one {
        true => device.value_and_gradient(batch, keys(), loss).expect("evaluates"),
        false => {
            device.render(batch, keys(), 1).expect("renders");
            let value = device.loss(batch, keys(), loss).expect("compares");
            (value, device.backpropagate(batch, keys(), 1).expect("backpropagates"))
        }
    };
    assert_eq!(device.image().expect("an image").is_empty(), in_one);
    let gradients = read(device, ArrayKind::Gradient);
    device.clear_gradients().expect("cleared");
    let bits = |numbers: Vec<f32>| numbers.into_iter().map(f32::to_bits).collect();
    (value, stats, gradients.into_iter().map(bits).collect())
}

/// One visit of each tile gives the bits of three passes: of two pictures that tiles do not divide, with splats as they are
/// placed, with 600 faint ones over every tile (more than a tile keeps), whose pixels end far behind, and with opaque ones, whose
/// pixels end at once; for all losses of single pixels. The vector level is that of the environment.
#[test]
fn one_visit_gives_the_bits_of_three_passes() {
    let smaller = r#""smaller": {"type": "canvas", "film": {"type": "hdrfilm", "width": 21, "height": 33,
        "color_space": "srgb", "rfilter": {"type": "box"}}}, "sky""#;
    let text = text(600, [100, 70], "").replacen(r#""sky""#, smaller, 1);
    let scene = scene::parse(&text, Path::new("splats.json")).unwrap_or_else(|e| panic!("{e}"));
    let mut device = Cpu::open().expect("the level is there");
    load(&mut device, &scene);
    let table = PixelTable::new(device.sensors(), &[0, 1]).expect("few pixels");
    let batch = Batch { table, drawn: None };
    for covering in [None, Some((0.0, 0.015)), Some((-2.0, 0.99))] {
        if let Some((scale, opacity)) = covering {
            let scales = [scale, scale - 0.2].repeat(600);
            device.write(1, ArrayKind::Values, &scales).expect("written");
            device
                .write(4, ArrayKind::Values, &vec![opacity; 600])
                .expect("written");
        }
        for loss in [
            Loss::L1,
            Loss::L2,
            Loss::Huber { delta: 0.1 },
            Loss::RelativeL2,
            Loss::LogL1,
            Loss::Linear { seed: 3 },
        ] {
            assert!(device.is_fused(loss), "{loss:?}");
            let [one, three] = [true, false].map(|in_one| evaluate(&mut device, &batch, loss, in_one));
            let reached = |gradient: &Vec<u32>| gradient.iter().any(|bits| *bits != 0);
            assert!(one.0.loss != 0.0 && one.2.iter().all(reached), "{covering:?}, {loss:?}");
            assert!(one == three, "{covering:?}, {loss:?}: {:?}, {:?}", one.0, three.0);
            let whole = u64::from(batch.pixels()) * 600;
            match covering {
                Some((0.0, _)) => assert!(one.1.samples < whole && one.1.samples > whole * 3 / 5, "{:?}", one.1),
                _ => assert!(one.1.samples < whole / 2, "{:?}", one.1),
            }
        }
    }
    assert!(!device.is_fused(Loss::NormalizedL2));
}

#[test]
fn the_number_of_threads_changes_no_bit() {
    let scene = scene(3000, [100, 70], "");
    let with = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .expect("a pool");
        pool.install(|| drive(&mut Cpu::new(), &scene))
    };
    let one = with(1);
    assert!(
        one.1.iter().all(|g| g.iter().any(|d| *d != 0.0)),
        "all gradients are reached"
    );
    for threads in [2, 3, 7] {
        assert_eq!(with(threads), one, "{threads} threads");
    }
}

/// A blend of all splats in each pixel, without tiles or vectors, gives the same picture.
#[test]
fn tiles_do_not_show() {
    let scene = scene(400, [50, 37], "");
    let (image, ..) = drive(&mut Cpu::new(), &scene);
    let setup = setup(&scene);
    let Transport::Splats(splats) = &setup.resident.transport else {
        panic!("a picture of splats")
    };
    let all = &setup.params.parameters;
    let of = |i: usize| {
        let values = splats.slots.all().map(|slot| &all[slot].values);
        Parameters {
            position: [values[0][2 * i], values[0][2 * i + 1]],
            scale: [values[1][2 * i], values[1][2 * i + 1]],
            rotation: values[2][i],
            color: [values[3][3 * i], values[3][3 * i + 1], values[3][3 * i + 2]],
            opacity: values[4][i],
        }
    };
    let shapes: Vec<Splat<f32>> = (0..400).map(|i| Splat::project(&of(i), 50.0)).collect();
    let order: Vec<u32> = (0..400).collect();
    for (i, pixel) in image.iter().enumerate() {
        let list = List {
            order: &order,
            decide: &shapes,
            splats: &shapes,
            pixel: [(i % 50) as f32 + 0.5, (i / 50) as f32 + 0.5],
        };
        let color = gather(&list).0.over([0.9, 0.6, 0.3]);
        for c in 0..3 {
            // Rounding may leave a weight out at the very edge of its splat.
            assert!(
                (pixel[c] - color[c]).abs() < 0.5 * MIN_WEIGHT,
                "pixel {i}: {pixel:?}, expected {color:?}"
            );
        }
    }
}

#[test]
fn no_splat_panics_wherever_and_however_large_it_is() {
    for value in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 1e30, -1e30, 0.0] {
        for field in 0..9 {
            let mut values = flat(&pile(1, 0.5)[0]);
            values[field] = value;
            let [x, y, a, b, rotation, red, green, blue, opacity] = values;
            let of = Parameters {
                position: [x, y],
                scale: [a, b],
                rotation,
                color: [red, green, blue],
                opacity,
            };
            let _ = reach(&of, SIDE);
            let mut device = Cpu::new();
            let scene = scene(3, [20, 20], "");
            let batch = load(&mut device, &scene);
            let arrays = [
                vec![x, y],
                vec![a, b],
                vec![rotation],
                vec![red, green, blue],
                vec![opacity],
            ];
            for (parameter, part) in arrays.iter().enumerate() {
                let mut all = device.read(parameter, ArrayKind::Values).expect("readable");
                all[..part.len()].copy_from_slice(part);
                device.write(parameter, ArrayKind::Values, &all).expect("written");
            }
            device.render(&batch, keys(), 1).expect("renders");
            device.loss(&batch, keys(), Loss::L2).expect("compares");
            device.backpropagate(&batch, keys(), 1).expect("backpropagates");
            let is_color = (5..8).contains(&field);
            let finite = device
                .image()
                .expect("an image")
                .iter()
                .flatten()
                .all(|v| v.is_finite());
            assert!(finite || is_color, "field {field} at {value} leaves the image finite");
        }
    }
}

/// Behind weights of up to 0.99 a hundredth of the transmittance is left: a rounding error of the whole would be a hundred of
/// what is left. The device counts no drift.
#[test]
fn opaque_splats_are_undone_to_a_few_roundings() {
    let scene = scene(2, [90, 70], "");
    let mut device = Cpu::new();
    let batch = load(&mut device, &scene);
    // A round splat in front of one that is opaque all over the picture.
    let arrays: [&[f32]; 5] = [
        &[0.5, 0.4, 0.5, 0.4],
        &[-1.5, -1.5, 3.0, 3.0],
        &[0.0; 2],
        &[0.5; 6],
        &[0.9, 1.0],
    ];
    for (parameter, values) in arrays.iter().enumerate() {
        device.write(parameter, ArrayKind::Values, values).expect("written");
    }
    device.render(&batch, keys(), 1).expect("renders");
    device.loss(&batch, keys(), Loss::L2).expect("compares");
    let stats = device.backpropagate(&batch, keys(), 1).expect("backpropagates");
    assert_eq!((stats.rays, stats.samples, stats.drifted), (90 * 70, 2 * 90 * 70, 0));
}

/// Two thousand splats that cover a picture make lists of 4 bytes for each of them and tile, and nothing else that
/// grows with their number over a pixel.
#[test]
fn memory_does_not_grow_with_depth() {
    let scene = scene(2000, [64, 64], "");
    let bytes = |scale: f32| {
        let mut device = Cpu::new();
        let batch = load(&mut device, &scene);
        device.write(1, ArrayKind::Values, &vec![scale; 4000]).expect("written");
        device.write(4, ArrayKind::Values, &vec![0.005; 2000]).expect("written");
        device.render(&batch, keys(), 1).expect("renders");
        device.loss(&batch, keys(), Loss::L2).expect("compares");
        device.backpropagate(&batch, keys(), 1).expect("backpropagates");
        device.memory()
    };
    let (small, large) = (bytes(-6.0), bytes(2.0));
    let lists = 4 * 2000 * 16;
    // Records of a round are bounded; each takes 36 bytes.
    let rounds = 36 * 2000 * 16;
    assert!(
        large <= small + 2 * lists + rounds,
        "{small} bytes, {large} for large splats"
    );
}
