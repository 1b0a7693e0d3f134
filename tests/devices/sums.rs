//! Gradients that a GPU sums in whole numbers agree with sums of floats, whatever the size of the adjoint image and however far
//! contributions lie apart; the bits do not depend on how a pass is cut or on what the adapter adds at once.

use std::path::Path;

use prbopt::device::cpu::Cpu;
use prbopt::device::gpu::{DispatchSize, Gpu, Options};
use prbopt::device::{ArrayKind, Batch, Device, DeviceError};
use prbopt::gradcheck::{Options as GradcheckOptions, Setup};
use prbopt::kernels::loss::Loss;
use prbopt::kernels::optimizer::Optimizer;
use prbopt::resident::Resident;
use prbopt::resident::references::Pixels;
use prbopt::scene;
use prbopt::transport::rays::pixel::PixelTable;
use prbopt::transport::rays::random::Pass;

use super::scenes::{Case, Emitter, build, cases, noise, plain};
use super::{gpu, keys};

const WHOLE: Options = Options {
    deterministic: true,
    precise: false,
    float_atomics: true,
    wide_atomics: true,
    subgroups: true,
    ray_queries: false,
    waves: true,
    uniform_buffers: true,
    dispatch_size: None,
    bank: None,
};

/// The gradients of all parameters after one adjoint pass of this many samples a pixel; the reference of a pixel is
/// that of the case, or a function of its place along x, from 0 to 1.
fn gradients(gpu: &mut Gpu, case: &Case, spp: u32, reference: Option<fn(f32) -> f32>) -> Vec<Vec<f32>> {
    let (mut resident, params) = build(case);
    if let Some(reference) = reference {
        let (width, height) = (resident.sensors[0].width, resident.sensors[0].height);
        let pixel = |i: u32| {
            let value = reference((i % width) as f32 / (width - 1) as f32);
            [value, value, value, 1.0]
        };
        resident.references = Pixels::Float((0..width * height).map(pixel).collect());
        resident.sensors[0].first_pixel = 0;
    }
    let table = PixelTable::new(&resident.sensors, &[0]).expect("few pixels");
    gpu.load(resident, params, case.optimizer).expect("a small scene");
    let batch = Batch { table, drawn: None };
    gpu.render(&batch, keys(Pass::Primal), 1).expect("renders");
    gpu.loss(&batch, keys(Pass::Primal), case.loss).expect("a loss");
    gpu.backpropagate(&batch, keys(Pass::Adjoint), spp).expect("gradients");
    let all = 0..gpu.params().parameters.len();
    all.map(|i| gpu.read(i, ArrayKind::Gradient).expect("a gradient"))
        .collect()
}

fn norm(values: impl Iterator<Item = f64>) -> f64 {
    values.map(|x| x * x).sum::<f64>().sqrt()
}

/// Norm of the difference over that of the second, and the share of entries that are a thousandth off.
fn distance(a: &[f32], b: &[f32]) -> (f64, f64) {
    let difference = norm(a.iter().zip(b).map(|(a, b)| f64::from(a - b)));
    let reached = b.iter().filter(|b| **b != 0.0).count();
    let astray = a
        .iter()
        .zip(b)
        .filter(|(a, b)| (**a - **b).abs() > 1e-3 * b.abs())
        .count();
    (
        difference / norm(b.iter().map(|b| f64::from(*b))),
        astray as f64 / reached.max(1) as f64,
    )
}

/// Gradients by sums of floats, of whole numbers in 64 bits and in two words agree; a compiler may round contributions in another
/// way in another shader.
fn compare(case: &Case, spp: u32, reference: Option<fn(f32) -> f32>) {
    let Some(mut floats) = gpu(Options::default()) else {
        return;
    };
    let Some(mut whole) = gpu(WHOLE) else { return };
    let Some(mut words) = gpu(Options {
        wide_atomics: false,
        ..WHOLE
    }) else {
        return;
    };
    let expected = gradients(&mut floats, case, spp, reference);
    let found = gradients(&mut whole, case, spp, reference);
    for (parameter, (words, found)) in gradients(&mut words, case, spp, reference)
        .iter()
        .zip(&found)
        .enumerate()
    {
        let (apart, _) = distance(words, found);
        assert!(
            apart < 1e-6,
            "{}, parameter {parameter}: {apart} of the norm in two words",
            case.name
        );
    }
    for (parameter, (found, expected)) in found.iter().zip(&expected).enumerate() {
        assert!(expected.iter().any(|g| *g != 0.0), "{}: no gradient", case.name);
        let (apart, astray) = distance(found, expected);
        // A float sum of ten thousand contributions to a single number is itself some 1e-4 off.
        let bound = if expected.len() > 3 { 1e-5 } else { 3e-4 };
        assert!(
            apart < bound && astray < 0.01,
            "{}, parameter {parameter}: {apart} of the norm, {astray} of the entries",
            case.name
        );
    }
}

#[test]
fn tiny_adjoints_are_not_rounded_away() {
    // The adjoint is 1e-13 and less, a tenth of 2⁻⁴⁰.
    compare(
        &Case {
            name: "a loss of almost nothing",
            loss: Loss::Huber { delta: 1e-10 },
            ..plain()
        },
        2,
        None,
    );
    compare(
        &Case {
            name: "many samples",
            loss: Loss::Huber { delta: 1e-8 },
            ..cases()[3].clone()
        },
        64,
        None,
    );
}

#[test]
fn a_large_view_keeps_what_it_sends() {
    const EDGE: u32 = 800;
    let case = Case {
        field: false,
        emitter: Emitter::Envmap,
        ..plain()
    };
    let gradient = |device: &mut dyn Device| {
        let (mut resident, mut params) = build(&case);
        // Texels of a few thousand contributions each, which floats can sum as well.
        let map = &mut params.parameters[0];
        map.shape.size = [384, 224, 1];
        map.values = (0..map.shape.len()).map(|i| noise(40, i)).collect();
        resident.fit(&[map.shape]);
        let sensor = &mut resident.sensors[0];
        let factor = EDGE as f32 / sensor.width as f32;
        sensor.focal = sensor.focal.map(|x| x * factor);
        sensor.center = [0.5 * EDGE as f32; 2];
        (sensor.width, sensor.height) = (EDGE, EDGE);
        let table = PixelTable::new(&resident.sensors, &[0]).expect("few pixels");
        device.load(resident, params, case.optimizer).expect("a small scene");
        let batch = Batch { table, drawn: None };
        device.render(&batch, keys(Pass::Primal), 1).expect("renders");
        device.loss(&batch, keys(Pass::Primal), case.loss).expect("a loss");
        device.backpropagate(&batch, keys(Pass::Adjoint), 4).expect("gradients");
        device.read(0, ArrayKind::Gradient).expect("a gradient")
    };
    let Some(mut whole) = gpu(WHOLE) else { return };
    let (found, expected) = (gradient(&mut whole), gradient(&mut Cpu::new()));
    let (apart, astray) = distance(&found, &expected);
    assert!(
        apart < 1e-4 && astray < 0.01,
        "{apart} of the norm, {astray} of the entries"
    );
}

#[test]
fn contributions_that_lie_far_apart_are_all_kept() {
    // From the left to the right the adjoint falls from 2⁻²⁰ to 2⁻⁴⁰; a texel's share of a contribution varies as much
    // again.
    compare(
        &Case {
            name: "an adjoint over 2²⁰",
            emitter: Emitter::None,
            loss: Loss::RelativeL2,
            ..plain()
        },
        1,
        Some(|x| (10.0 + 20.0 * x).exp2()),
    );
}

/// The gradient by the first parameter after one more pass under this loss.
fn add_pass(gpu: &mut Gpu, batch: &Batch, delta: f32) -> Vec<f32> {
    gpu.loss(batch, keys(Pass::Primal), Loss::Huber { delta })
        .expect("a loss");
    gpu.backpropagate(batch, keys(Pass::Adjoint), 1).expect("gradients");
    gpu.read(0, ArrayKind::Gradient).expect("a gradient")
}

#[test]
fn passes_with_other_units_add_up() {
    let Some(mut gpu) = gpu(WHOLE) else { return };
    let case = plain();
    let (resident, params) = build(&case);
    let table = PixelTable::new(&resident.sensors, &[0, 1]).expect("few pixels");
    gpu.load(resident, params, case.optimizer).expect("a small scene");
    let batch = Batch { table, drawn: None };
    gpu.render(&batch, keys(Pass::Primal), 1).expect("renders");
    // The pass with delta 1 adds the same to the gradient of delta 2⁻⁸ as to zero.
    let small = add_pass(&mut gpu, &batch, 2f32.powi(-8));
    let both = add_pass(&mut gpu, &batch, 1.0);
    gpu.clear_gradients().expect("cleared");
    let large = add_pass(&mut gpu, &batch, 1.0);
    for ((both, small), large) in both.iter().zip(&small).zip(&large) {
        assert_eq!(*both, small + large);
    }
}

#[test]
fn bits_do_not_depend_on_how_a_pass_is_cut() {
    for reference in [None, Some((|x| 1e3 * x) as fn(f32) -> f32)] {
        let [a, b] = [(1 << 18, 64), (64, 1)].map(|(rays, samples)| {
            let options = Options {
                dispatch_size: Some(DispatchSize { rays, samples }),
                ..WHOLE
            };
            gpu(options).map(|mut gpu| gradients(&mut gpu, &plain(), 3, reference))
        });
        assert_eq!(a, b);
    }
}

#[test]
fn sums_that_leave_their_range_are_an_error_and_leave_no_trace() {
    for wide_atomics in [true, false] {
        let Some(mut gpu) = gpu(Options { wide_atomics, ..WHOLE }) else {
            return;
        };
        // A contribution is the adjoint times the map's scale: out of range by itself, or only the sum of several.
        for scale in [1e13, 1e6] {
            let case = &cases()[7];
            let (mut resident, params) = build(case);
            resident.scene.env_scale = scale;
            let table = PixelTable::new(&resident.sensors, &[0, 1, 2]).expect("few pixels");
            gpu.load(resident, params, case.optimizer).expect("a small scene");
            let batch = Batch { table, drawn: None };
            gpu.render(&batch, keys(Pass::Primal), 1).expect("renders");
            gpu.loss(&batch, keys(Pass::Primal), Loss::L1).expect("a loss");
            let result = gpu.backpropagate(&batch, keys(Pass::Adjoint), 16);
            assert!(matches!(result, Err(DeviceError::Overflow(_))), "{scale}: {result:?}");
        }
        let after = gradients(&mut gpu, &plain(), 1, None);
        let Some(mut fresh) = super::gpu(Options { wide_atomics, ..WHOLE }) else {
            return;
        };
        assert_eq!(after, gradients(&mut fresh, &plain(), 1, None));
    }
}

/// The memory of whole-number sums that a run predicts is what a device allocates for them.
#[test]
fn sums_are_told_as_large_as_their_buffers() {
    for wide_atomics in [true, false] {
        let (Some(mut floats), Some(mut whole)) = (gpu(Options::default()), gpu(Options { wide_atomics, ..WHOLE }))
        else {
            return;
        };
        for case in cases() {
            let (resident, params) = build(&case);
            let shapes: Vec<_> = params
                .parameters
                .iter()
                .map(|p| (p.shape, p.tuning.is_some()))
                .collect();
            let told = whole.sum_bytes(&resident.transport, &shapes);
            assert_eq!(floats.sum_bytes(&resident.transport, &shapes), 0);
            floats
                .load(resident.clone(), params.clone(), case.optimizer)
                .expect("it fits");
            whole.load(resident, params, case.optimizer).expect("it fits");
            let tuned: usize = shapes
                .iter()
                .filter(|(_, tuned)| *tuned)
                .map(|(shape, _)| shape.len())
                .sum();
            assert!(told >= 8 * tuned as u64, "{told} bytes for {tuned} entries");
            let held = whole.memory() - floats.memory();
            // An empty buffer takes 16 bytes, and there is at most one for each bank.
            assert!((told..=told + 32).contains(&held), "{held}, not {told}");
        }
    }
}

/// All paths of a pass add equal numbers to the derivative by the radiance of a lamp that fills the view. A sum of floats is off
/// by more than a thousandth; where few entries change, sums are whole numbers, with the bits of the CPU.
#[test]
fn a_number_that_all_paths_add_to_keeps_its_digits() {
    let text = r#"{
        "integrator": {"type": "prb", "max_depth": 2},
        "camera": {"type": "perspective", "fov": 30, "film": {"type": "hdrfilm", "width": 32, "height": 32, "rfilter": {"type": "box"}},
            "to_world": [{"look_at": {"origin": [0, 0, 4], "target": [0, 0, 0], "up": [0, 1, 0]}}]},
        "lamp": {"type": "rectangle", "to_world": [{"scale": 3}], "emitter": {"type": "area", "radiance": 1}},
        "optimize": {"parameters": {"lamp.emitter.radiance": {}}, "references": {"type": "constant", "value": 0}}
    }"#;
    let scene = scene::parse(text, Path::new("lamp.json")).unwrap_or_else(|mistakes| panic!("{mistakes}"));
    // Not a power of two, whose multiples would be exact.
    let adjoint = vec![[1.0 / 3000.0; 3]; 1024];
    let expected = 1024.0 / 3000.0;
    let found = |device: &mut dyn Device| {
        let (resident, params) = Resident::new(&scene).expect("can be made ready");
        let table = PixelTable::new(&resident.sensors, &[0]).expect("few pixels");
        let radiance = params.find("lamp.emitter.radiance").expect("there");
        device
            .load(resident, params, Optimizer::Sgd { momentum: 0.0 })
            .expect("small");
        let batch = Batch { table, drawn: None };
        device.render(&batch, keys(Pass::Primal), 1).expect("renders");
        device.set_adjoint(&batch, keys(Pass::Adjoint), &adjoint).expect("fits");
        device
            .backpropagate(&batch, keys(Pass::Adjoint), 512)
            .expect("gradients");
        device.read(radiance, ArrayKind::Gradient).expect("a gradient")
    };
    // One number is added at a time, although the adapter may be able to add those of a subgroup at once.
    let alone = Options {
        subgroups: false,
        ..Options::default()
    };
    let Some(mut floats) = gpu(alone) else { return };
    let precise = Options {
        precise: true,
        ..Options::default()
    };
    let Some(mut precise) = gpu(precise) else { return };
    let lost = found(&mut floats)[0];
    assert!(
        (lost / expected - 1.0).abs() > 1e-3,
        "floats keep their digits after all: {lost}"
    );
    let kept = found(&mut precise);
    assert_eq!(kept, found(&mut Cpu::open().expect("there is a CPU")));
    assert!((kept[0] / expected - 1.0).abs() < 1e-5, "{kept:?}");
    let memory = precise.memory();
    assert!(memory > floats.memory(), "sums of 8 bytes stand beside the gradients");
}

/// A floor under light that is measured in small or in large units: radiance is linear in the light's and in the floor's colour,
/// so that each derivative times the colour adds up to the picture, to a hundredth.
#[test]
fn units_of_light_and_length_do_not_matter() {
    let far = |distance: f32| {
        let power = distance * distance;
        (
            distance,
            format!(r#""type": "point", "position": [0, 0, {distance}], "intensity": {power}"#),
            "lamp.intensity",
        )
    };
    let sun = |irradiance: f32| {
        let text = format!(r#""type": "directional", "direction": [0, 0, -1], "irradiance": {irradiance}"#);
        (1.0, text, "lamp.irradiance")
    };
    let mut devices: Vec<Box<dyn Device>> = vec![Box::new(Cpu::new())];
    devices.extend(gpu(WHOLE).map(|gpu| Box::new(gpu) as Box<dyn Device>));
    for (size, lamp, of_light) in [far(1e-4), far(3e4), sun(1e-3), sun(1e5)] {
        let text = format!(
            r#"{{"integrator": {{"type": "prb", "max_depth": 3}}, "lamp": {{{lamp}}},
                "floor": {{"type": "rectangle", "to_world": [{{"scale": {}}}], "bsdf": {{"type": "diffuse", "reflectance": 0.5}}}},
                "camera": {{"type": "perspective", "fov": 40, "near_clip": {}, "far_clip": {},
                    "to_world": [{{"look_at": {{"origin": [0, 0, {size}], "target": [0, 0, 0], "up": [0, 1, 0]}}}}],
                    "film": {{"type": "hdrfilm", "width": 64, "height": 64, "rfilter": {{"type": "box"}}}}}}}}"#,
            4.0 * size,
            0.01 * size,
            10.0 * size
        );
        let scene = scene::parse(&text, Path::new("floor.json")).unwrap_or_else(|e| panic!("{e}"));
        for device in &mut devices {
            let setup = Setup::new(&scene, &GradcheckOptions::default()).expect("it is sound");
            let table = PixelTable::new(&setup.resident.sensors, &[0]).expect("few pixels");
            let batch = Batch { table, drawn: None };
            let sgd = Optimizer::Sgd { momentum: 0.0 };
            let values: Vec<f32> = setup.params.parameters.iter().map(|p| p.values[0]).collect();
            device.load(setup.resident, setup.params, sgd).expect("a small scene");
            device.render(&batch, keys(Pass::Primal), 64).expect("renders");
            let sum: f64 = device.image().expect("an image").iter().map(|p| f64::from(p[0])).sum();
            let ones = vec![[1.0; 3]; 64 * 64];
            device
                .set_adjoint(&batch, keys(Pass::Primal), &ones)
                .expect("of this size");
            device
                .backpropagate(&batch, keys(Pass::Adjoint), 64)
                .expect("gradients");
            for path in [of_light, "floor.bsdf.reflectance"] {
                let index = device.params().find(path).expect("there");
                let value = f64::from(values[index]);
                let slope = f64::from(device.read(index, ArrayKind::Gradient).expect("a gradient")[0]);
                let name = device.info().name.clone();
                assert!(
                    (slope * value / sum - 1.0).abs() < 1e-2,
                    "{name}, {lamp}, {path}: {} of {sum}",
                    slope * value
                );
            }
        }
    }
}
