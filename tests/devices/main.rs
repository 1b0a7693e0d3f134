//! The same seed on CPU and GPU: image, loss, gradients, step, regularisers, resampling and occupancy agree entry by
//! entry, and the comparison sees a planted fault.
//!
//! Without an adapter these tests print that they were skipped; with `PRBOPT_REQUIRE_GPU=1` they fail instead.

mod buffers;
mod cameras;
mod chains;
mod compare;
mod experiments;
mod gpu;
mod iterations;
mod known;
mod looked_at;
mod materials;
mod meshes;
mod moving;
mod particles;
mod ray_queries;
mod relief;
mod scenes;
mod small_factors;
mod sums;
mod waves;
mod world_cases;
mod worlds;

use compare::{Outcome, compare};
use gpu::gpu;
use prbopt::device::cpu::Cpu;
use prbopt::device::gpu::{DispatchSize, Options};
use prbopt::device::{ArrayKind, Batch, Device, DeviceError, Keys, Step, Term};
use prbopt::kernels::optimizer::Optimizer;
use prbopt::kernels::regularizer::Penalty;
use prbopt::transport::rays::pixel::PixelTable;
use prbopt::transport::rays::random::{Pass, pass_key};
use scenes::{Case, build, cases, plain};

fn keys(pass: Pass) -> Keys {
    Keys {
        objective: pass_key(5, 1, Pass::Objective),
        pass: pass_key(5, 1, pass),
    }
}

fn load(device: &mut dyn Device, case: &Case) -> Batch {
    let (resident, params) = build(case);
    let table = PixelTable::new(&resident.sensors, &[2, 0, 1]).expect("few pixels");
    device.load(resident, params, case.optimizer).expect("a small scene");
    Batch {
        table,
        drawn: case.drawn,
    }
}

/// Everything that a device computes for a case.
fn run(device: &mut dyn Device, case: &Case) -> Outcome {
    let batch = load(device, case);
    let mut outcome = Outcome::default();
    forward(device, case, &batch, &mut outcome);
    let stats = device.backpropagate(&batch, keys(Pass::Adjoint), 2).expect("gradients");
    outcome.count("rays", stats.rays);
    outcome.count("samples", stats.samples);
    note(device, "gradient", ArrayKind::Gradient, &mut outcome);
    if case.field {
        let term = |parameter, penalty, weight| Term {
            parameter,
            penalty,
            weight,
        };
        let terms = [
            term(0, Penalty::Sparsity, 0.01),
            term(0, Penalty::TotalVariation, 0.02),
            term(1, Penalty::TotalVariation, 0.03),
        ];
        let penalty = device.regularise(&terms).expect("penalties");
        outcome.array("penalty", vec![penalty as f32]);
        note(device, "gradient with penalties", ArrayKind::Gradient, &mut outcome);
    }
    for count in 1..=2 {
        let step = Step {
            optimizer: case.optimizer,
            rate: 0.5,
            count,
        };
        let norms = device.step(&step).expect("finite gradients");
        outcome.stepped();
        for (i, norm) in norms.iter().enumerate() {
            outcome.array(&format!("norm {i} of step {count}"), vec![*norm as f32]);
        }
        device.rebuild().expect("rebuilds");
        device.render(&batch, keys(Pass::Primal), 1).expect("renders");
        device.loss(&batch, keys(Pass::Primal), case.loss).expect("a loss");
        device.backpropagate(&batch, keys(Pass::Adjoint), 1).expect("gradients");
    }
    note(device, "values", ArrayKind::Values, &mut outcome);
    for moment in 0..case.optimizer.moments() {
        note(
            device,
            &format!("moment {moment}"),
            ArrayKind::Moment(moment),
            &mut outcome,
        );
    }
    if case.field {
        let sizes = [(0, [15, 18, 13]), (1, [14, 9, 20])];
        device.resample(&sizes, case.keep_moments).expect("resamples");
        note(device, "resampled values", ArrayKind::Values, &mut outcome);
        note(device, "resampled moment", ArrayKind::Moment(0), &mut outcome);
        device.render(&batch, keys(Pass::Preview), 1).expect("renders");
        outcome.array("image after resampling", device.image().expect("an image").concat());
    }
    outcome
}

/// Image and loss.
fn forward(device: &mut dyn Device, case: &Case, batch: &Batch, outcome: &mut Outcome) {
    device.render(batch, keys(Pass::Primal), 3).expect("renders");
    outcome.array("image", device.image().expect("an image").concat());
    let loss = device.loss(batch, keys(Pass::Primal), case.loss).expect("a loss");
    outcome.array("loss", vec![loss.loss as f32]);
    outcome.array("squared error", vec![loss.mse as f32]);
    outcome.count("masked pixels", loss.masked);
}

/// Notes an array of every parameter.
fn note(device: &mut dyn Device, name: &str, what: ArrayKind, outcome: &mut Outcome) {
    for i in 0..device.params().parameters.len() {
        let path = device.params().parameters[i].path.clone();
        let values = device.read(i, what).expect("a parameter's array");
        outcome.array(&format!("{name} of {path}"), values);
    }
}

/// Image, loss and gradients, without a step.
fn gradients(device: &mut dyn Device, case: &Case) -> Outcome {
    let batch = load(device, case);
    let mut outcome = Outcome::default();
    forward(device, case, &batch, &mut outcome);
    device.backpropagate(&batch, keys(Pass::Adjoint), 2).expect("gradients");
    note(device, "gradient", ArrayKind::Gradient, &mut outcome);
    outcome
}

#[test]
fn devices_agree() {
    let Some(mut gpu) = gpu(Options::default()) else { return };
    for case in cases() {
        let (cpu, gpu) = (run(&mut Cpu::new(), &case), run(&mut gpu, &case));
        compare(&cpu, &gpu).unwrap_or_else(|e| panic!("{}: {e}", case.name));
    }
}

#[test]
fn every_way_to_accumulate_agrees() {
    let deterministic = Options {
        deterministic: true,
        ..Options::default()
    };
    let exchanging = Options {
        float_atomics: false,
        ..Options::default()
    };
    for options in [deterministic, exchanging] {
        let Some(mut gpu) = gpu(options) else { return };
        // Without degree 3, whose shaders take a driver long to compile.
        for case in cases().iter().filter(|case| case.degree < 3).take(3) {
            let (cpu, gpu) = (run(&mut Cpu::new(), case), run(&mut gpu, case));
            compare(&cpu, &gpu).unwrap_or_else(|e| panic!("{options:?}, {}: {e}", case.name));
        }
    }
}

#[test]
fn fixed_point_sums_are_the_same_bits_however_a_pass_is_cut() {
    let sizes = [
        None,
        None,
        Some(DispatchSize { rays: 64, samples: 1 }),
        Some(DispatchSize { rays: 333, samples: 2 }),
    ];
    for case in [&cases()[3], &cases()[4]] {
        let mut first = None;
        for dispatch_size in sizes {
            let options = Options {
                deterministic: true,
                dispatch_size,
                ..Options::default()
            };
            let Some(mut gpu) = gpu(options) else { return };
            let outcome = run(&mut gpu, case);
            let first = first.get_or_insert_with(|| outcome.clone());
            assert!(*first == outcome, "{}: other bits with {dispatch_size:?}", case.name);
        }
    }
}

/// Buffers that the coefficients fill alone, so that the density and the light lie in a second one: the same before and after a
/// change of resolution, to the bit or, for sums of floats, within the tolerance.
#[test]
fn parameters_in_two_buffers_have_the_same_bits() {
    let case = &cases()[1];
    let largest = build(case).1.parameters.iter().map(|p| p.shape.len()).max();
    for (deterministic, wide_atomics) in [(true, true), (true, false), (false, true)] {
        let options = Options {
            deterministic,
            wide_atomics,
            ..Options::default()
        };
        let divided = Options {
            bank: largest,
            ..options
        };
        let (Some(mut one), Some(mut two)) = (gpu(options), gpu(divided)) else {
            return;
        };
        let (whole, parts) = (run(&mut one, case), run(&mut two, case));
        if deterministic {
            assert!(whole == parts, "other bits");
        } else {
            compare(&whole, &parts).unwrap_or_else(|e| panic!("{e}"));
        }
    }
}

/// Place of the entry of the largest magnitude.
fn largest(array: &[f32]) -> usize {
    let places = (0..array.len()).max_by(|&a, &b| array[a].abs().total_cmp(&array[b].abs()));
    places.expect("no array is empty")
}

/// The comparison must see a device that is wrong: each fault is small and in one place.
#[test]
fn planted_faults_are_seen() {
    let Some(mut gpu) = gpu(Options::default()) else { return };
    let case = plain();
    let sound = gradients(&mut Cpu::new(), &case);
    let batch = load(&mut gpu, &case);
    let mut with_fault = |parameter: usize, entry: usize, factor: f32| {
        let mut values = gpu.read(parameter, ArrayKind::Values).expect("values");
        values[entry] *= factor;
        gpu.write(parameter, ArrayKind::Values, &values).expect("written");
        let mut outcome = Outcome::default();
        forward(&mut gpu, &case, &batch, &mut outcome);
        gpu.backpropagate(&batch, keys(Pass::Adjoint), 2).expect("gradients");
        note(&mut gpu, "gradient", ArrayKind::Gradient, &mut outcome);
        gpu.clear_gradients().expect("cleared");
        values[entry] /= factor;
        gpu.write(parameter, ArrayKind::Values, &values).expect("written");
        outcome
    };
    compare(&sound, &with_fault(0, 0, 1.0)).expect("nothing is wrong yet");
    for (parameter, path) in ["object.interior.sigma_t", "object.interior.sh_coeffs", "sky.radiance"]
        .iter()
        .enumerate()
    {
        // The entry that matters most, so that the fault is in what the rays see.
        let gradient = sound.get(&format!("gradient of {path}"));
        let faulty = with_fault(parameter, largest(gradient), 1.01);
        compare(&sound, &faulty).expect_err("an entry of a parameter that is 1 % off");
    }
    let names: Vec<String> = sound.names().map(str::to_owned).collect();
    for name in names {
        for fault in [|x: f32| x * 1.001, |_| f32::NAN] {
            let mut faulty = sound.clone();
            let array = faulty.get_mut(&name);
            let place = largest(array);
            array[place] = fault(array[place]);
            compare(&sound, &faulty).expect_err("one entry that is 1 ‰ off, or not a number");
        }
    }
    let mut wrong_law = case.clone();
    wrong_law.density = prbopt::scene::DensityActivation::Exp;
    compare(&sound, &gradients(&mut gpu, &wrong_law)).expect_err("another activation");
}

#[test]
fn gradients_that_are_no_numbers_are_named_and_the_rest_is_stepped() {
    let Some(mut gpu) = gpu(Options::default()) else { return };
    for device in [&mut Cpu::new() as &mut dyn Device, &mut gpu] {
        load(device, &plain());
        let values = device.read(1, ArrayKind::Values).expect("values");
        let mut gradient = vec![1.0; values.len()];
        let entry = ((2 * 9 + 3) * 11 + 5) * 12 + 7;
        gradient[entry] = f32::NAN;
        device.write(1, ArrayKind::Gradient, &gradient).expect("written");
        let step = Step {
            optimizer: plain().optimizer,
            rate: 1.0,
            count: 1,
        };
        match device.step(&step) {
            Err(DeviceError::NotFinite { path, texel, channel }) => {
                assert_eq!(path, "object.interior.sh_coeffs");
                assert_eq!((texel, channel), ([5, 3, 2], 7));
            }
            other => panic!("{other:?}"),
        }
        let stepped = device.read(1, ArrayKind::Values).expect("values");
        assert_eq!(stepped[entry], values[entry]);
        let moved = stepped.iter().zip(&values).filter(|(a, b)| a != b).count();
        assert!(moved > values.len() / 2, "only {moved} entries moved");
        assert!(
            device
                .read(1, ArrayKind::Gradient)
                .expect("gradient")
                .iter()
                .all(|g| *g == 0.0)
        );
    }
}

#[test]
fn values_outside_of_their_bounds_are_projected_by_any_step() {
    let Some(mut gpu) = gpu(Options::default()) else { return };
    let step = |case: &Case| Step {
        optimizer: case.optimizer,
        rate: 1.0,
        count: 1,
    };
    for case in [plain(), cases()[4].clone()] {
        let stepped = [&mut Cpu::new() as &mut dyn Device, &mut gpu].map(|device| {
            load(device, &case);
            // Bounds are -0.8 and 0.9. Once as the scene is loaded, and once written in a block that nothing touches.
            device.step(&step(&case)).expect("no gradient");
            let loaded = device.read(1, ArrayKind::Values).expect("values");
            let mut values = loaded.clone();
            let last = values.len() - 1;
            (values[3], values[last]) = (-5.0, 7.0);
            device.write(1, ArrayKind::Values, &values).expect("written");
            device.step(&step(&case)).expect("no gradient");
            [loaded, device.read(1, ArrayKind::Values).expect("values")]
        });
        assert!(stepped[0] == stepped[1], "{}", case.name);
        let masked = matches!(case.optimizer, Optimizer::Adam { mask_updates: true, .. });
        for values in &stepped[0] {
            let inside = values.iter().all(|x| (-0.8..=0.9).contains(x));
            assert_eq!(
                inside, !masked,
                "{}: entries without a gradient move unless masked",
                case.name
            );
        }
    }
}
