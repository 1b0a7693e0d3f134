//! Scattering media on both devices: the same seed gives the same paths, but for the few that rounding sends another
//! way.

use prbopt::device::cpu::Cpu;
use prbopt::device::gpu::{DispatchSize, Options};
use prbopt::device::{ArrayKind, Batch, Device, Step};
use prbopt::kernels::loss::Loss;
use prbopt::kernels::optimizer::Optimizer;
use prbopt::resident::layout;
use prbopt::transport::rays::pixel::PixelTable;
use prbopt::transport::rays::random::Pass;

use super::world_cases::{Case, SPP, build, cases};
use super::{gpu, keys};

/// What a device computed: images and gradients by name.
pub(super) type Outcome = Vec<(String, Vec<f32>)>;

pub(super) const SGD: Optimizer = Optimizer::Sgd { momentum: 0.0 };

pub(super) fn load(device: &mut dyn Device, case: &Case) -> Batch {
    let (resident, params) = build(case);
    let table = PixelTable::new(&resident.sensors, &[1, 0]).expect("few pixels");
    device.load(resident, params, SGD).expect("a small scene");
    Batch { table, drawn: None }
}

pub(super) fn image(device: &mut dyn Device, batch: &Batch, name: &str, outcome: &mut Outcome) {
    device.render(batch, keys(Pass::Primal), SPP).expect("renders");
    outcome.push((name.into(), device.image().expect("an image").concat()));
}

pub(super) fn gradients(device: &mut dyn Device, batch: &Batch, outcome: &mut Outcome) {
    device.loss(batch, keys(Pass::Primal), Loss::L2).expect("a loss");
    let stats = device
        .backpropagate(batch, keys(Pass::Adjoint), SPP)
        .expect("gradients");
    assert_eq!(stats.rays, u64::from(batch.pixels() * SPP));
    assert!(stats.drifted * 50 <= stats.rays, "{stats:?}");
    for i in 0..device.params().parameters.len() {
        let path = device.params().parameters[i].path.clone();
        let values = device.read(i, ArrayKind::Gradient).expect("a gradient");
        outcome.push((format!("gradient of {path}"), values));
    }
}

/// The channels of the first surfaces (AOVs), an image, and gradients.
pub(super) fn look(device: &mut dyn Device, case: &Case) -> Outcome {
    let batch = load(device, case);
    let mut outcome = Outcome::new();
    channels(device, &batch, &mut outcome);
    image(device, &batch, "image", &mut outcome);
    gradients(device, &batch, &mut outcome);
    outcome
}

fn channels(device: &mut dyn Device, batch: &Batch, outcome: &mut Outcome) {
    for aov in 0..=layout::aov::DUV_DY {
        device
            .render_aov(batch, keys(Pass::Primal), SPP, aov)
            .expect("there are surfaces");
        outcome.push((format!("channel {aov}"), device.image().expect("an image").concat()));
    }
}

/// Image, gradients, a step, and images after the step and at another resolution.
pub(super) fn run(device: &mut dyn Device, case: &Case) -> Outcome {
    let batch = load(device, case);
    let mut outcome = Outcome::new();
    channels(device, &batch, &mut outcome);
    image(device, &batch, "image", &mut outcome);
    gradients(device, &batch, &mut outcome);
    let step = Step {
        optimizer: SGD,
        rate: 1.0,
        count: 1,
    };
    device.step(&step).expect("finite gradients");
    device.rebuild().expect("rebuilds");
    image(device, &batch, "image after a step", &mut outcome);
    // Values still fit into a uniform buffer, so that no kernel is compiled again.
    device.resample(&[(0, [16, 15, 14])], true).expect("resamples");
    image(device, &batch, "image after resampling", &mut outcome);
    outcome
}

/// Larger differences, as a fraction of the largest entry, are more than rounding, which each vertex of a path magnifies.
const TOLERANCE: f32 = 1e-3;
/// Share of an image's or a gradient's entries that may differ: rounding sends some paths another way.
const ASTRAY: f32 = 0.02;
/// Largest difference of the sums of entries, by the sum of their sizes.
const BIAS: f32 = 0.01;

/// Compares two outcomes.
///
/// # Errors
/// The first array that differs, and how.
pub(super) fn compare(a: &Outcome, b: &Outcome) -> Result<(), String> {
    for ((name, a), (other, b)) in a.iter().zip(b) {
        assert_eq!((name, a.len()), (other, b.len()));
        if a.iter().chain(b).any(|x| !x.is_finite()) {
            return Err(format!("{name} is not finite"));
        }
        let scale = a.iter().fold(0f32, |m, v| m.max(v.abs())).max(1e-30);
        let astray = a
            .iter()
            .zip(b)
            .filter(|(a, b)| (*a - *b).abs() > TOLERANCE * scale)
            .count();
        let sum = |x: &[f32]| x.iter().sum::<f32>();
        let sizes = a.iter().map(|x| x.abs()).sum::<f32>().max(1e-30);
        let bias = (sum(a) - sum(b)).abs() / sizes;
        if astray as f32 > (ASTRAY * a.len() as f32).max(if a.len() < 4 { 0.0 } else { 3.0 }) || bias > BIAS {
            return Err(format!(
                "{name}: {astray} of {} entries differ, and the sum by {bias}",
                a.len()
            ));
        }
    }
    Ok(())
}

#[test]
fn devices_follow_the_same_paths() {
    let Some(mut gpu) = gpu(Options::default()) else { return };
    let mut wrong = Vec::new();
    let mut cases = cases();
    // Drivers compile kernels for longer than they run. Worlds with as many shapes and lamps mostly have the same kinds of them, so
    // that the kernels of one serve the next.
    cases.sort_by_key(|case| {
        let lamps = case.world.lights.len();
        (
            case.world.surfaces.len(),
            lamps,
            case.is_under_a_map(),
            format!("{:?}", case.rules),
        )
    });
    for case in cases {
        let (cpu, gpu) = (run(&mut Cpu::new(), &case), run(&mut gpu, &case));
        if let Err(e) = compare(&cpu, &gpu) {
            wrong.push(format!("{}: {e}", case.name));
        }
    }
    assert!(wrong.is_empty(), "\n{}\n", wrong.join("\n"));
}

#[test]
fn every_kind_of_sum_adds_the_same_paths() {
    for float_atomics in [true, false] {
        let options = Options {
            deterministic: float_atomics,
            float_atomics,
            ..Options::default()
        };
        let Some(mut gpu) = gpu(options) else { return };
        for case in [&cases()[0], &cases()[3]] {
            let (cpu, gpu) = (run(&mut Cpu::new(), case), run(&mut gpu, case));
            compare(&cpu, &gpu).unwrap_or_else(|e| panic!("{}, {options:?}: {e}", case.name));
        }
    }
}

#[test]
fn deterministic_sums_do_not_depend_on_how_paths_are_cut() {
    let case = &cases()[5];
    let mut first = None;
    for (rays, samples) in [(1 << 18, 64), (64, 1), (77, 3)] {
        let options = Options {
            deterministic: true,
            dispatch_size: Some(DispatchSize { rays, samples }),
            ..Options::default()
        };
        let Some(mut gpu) = gpu(options) else { return };
        let outcome = run(&mut gpu, case);
        let first = first.get_or_insert_with(|| outcome.clone());
        assert!(
            *first == outcome,
            "other bits with {rays} rays and {samples} samples a dispatch"
        );
    }
}

/// The comparison sees a parameter that is 3 % off, an array that is 2 % off, and a NaN.
#[test]
fn planted_faults_in_worlds_are_seen() {
    let Some(mut gpu) = gpu(Options::default()) else { return };
    let case = &cases()[5];
    let forward = |device: &mut dyn Device, fault: Option<(usize, f32)>| {
        let batch = load(device, case);
        if let Some((parameter, factor)) = fault {
            let mut values = device.read(parameter, ArrayKind::Values).expect("values");
            values.iter_mut().for_each(|v| *v *= factor);
            device.write(parameter, ArrayKind::Values, &values).expect("written");
        }
        let mut outcome = Outcome::new();
        image(device, &batch, "image", &mut outcome);
        gradients(device, &batch, &mut outcome);
        outcome
    };
    let sound = forward(&mut Cpu::new(), None);
    compare(&sound, &forward(&mut gpu, Some((0, 1.0)))).expect("nothing is wrong yet");
    for parameter in 0..gpu.params().parameters.len() {
        let path = gpu.params().parameters[parameter].path.clone();
        let faulty = forward(&mut gpu, Some((parameter, 1.03)));
        compare(&sound, &faulty).expect_err(&format!("{path} is 3 % off"));
    }
    for at in 0..sound.len() {
        let mut faulty = sound.clone();
        faulty[at].1.iter_mut().for_each(|x| *x *= 1.02);
        compare(&sound, &faulty).expect_err("an array that is 2 % off");
        faulty[at].1[0] = f32::NAN;
        compare(&sound, &faulty).expect_err("not a number");
    }
}
