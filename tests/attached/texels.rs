//! The gradient by the texels of a lens's normal map at few samples a pixel, from the device's replay and from whole paths in
//! f64: the cosine of each with the f64 gradient at many samples.

use prbopt::device::cpu::Cpu;
use prbopt::device::{ArrayKind, Device, Keys};
use prbopt::gradcheck::paths::objective::{CastPath, PathObjective};
use prbopt::gradcheck::{Options, Setup};
use prbopt::kernels::loss::Loss;
use prbopt::kernels::optimizer::Optimizer;
use prbopt::resident::layout::gradient;
use prbopt::scene;
use prbopt::transport::rays::random::{Pass, pass_key};
use rayon::prelude::*;

use super::trace::{self, Values};
use super::{choices, told};

const FEW: u32 = 128;
const MANY: u32 = 4096;

/// Seed of the random weights of pixels.
const SEED: u32 = 3;

/// The lens of `scenes/lens_target.json` with its true normal map of 4 × 4 texels, seen by the front camera on a film of 4 × 4
/// pixels.
fn lens(inverted: Option<f32>) -> Setup {
    let changes = [
        "front.film.width=4",
        "front.film.height=4",
        "face.bsdf.normalmap.data.resolution=[4,4]",
    ];
    let changes: Vec<_> = changes.iter().map(|c| c.parse().expect("a change")).collect();
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("scenes/lens_target.json");
    let mut scene = scene::load_with(&path, &changes).unwrap_or_else(|mistakes| panic!("{mistakes}"));
    scene.sensors.truncate(1);
    scene.integrator.inverted = inverted;
    let options = Options {
        parameters: vec!["face.bsdf.normalmap".into()],
        ..Options::default()
    };
    Setup::new(&scene, &options).expect("the lens is sound")
}

/// The derivative of the objective by a path's radiance, one number a channel.
type Weights<'a> = &'a (dyn Fn(&PathObjective, &CastPath) -> [f64; 3] + Sync);

/// Random weights of pixels and channels.
fn random(objective: &PathObjective, cast: &CastPath) -> [f64; 3] {
    objective.weight(SEED, cast)
}

/// The gradient of whole paths in f64, by differences with the choices of each path held.
fn whole(setup: &Setup, iteration: u32, spp: u32, weights: Weights) -> Vec<f64> {
    let mut setup = setup.clone();
    setup.spp = spp;
    setup.keys.pass = pass_key(5, iteration, Pass::Adjoint);
    let objective = PathObjective::new(&setup, gradient::FREE_FLIGHT);
    let lift = |values: &Vec<f32>| values.iter().map(|x| f64::from(*x)).collect::<Vec<f64>>();
    let values: Vec<Vec<f64>> = setup.params.parameters.iter().map(|p| lift(&p.values)).collect();
    let slot = setup.checked[0];
    let none = || (vec![0.0; values[slot].len()], 0);
    let sums = objective.casts.par_iter().fold(none, |(mut sum, lost), cast| {
        let is_told = add_whole(&objective, &values, slot, (cast, weights), &mut sum);
        (sum, lost + u32::from(!is_told))
    });
    let (sum, lost) = sums.reduce(none, |(mut a, lost), (b, more)| {
        a.iter_mut().zip(&b).for_each(|(a, b)| *a += b);
        (a, lost + more)
    });
    assert!(lost * 100 < objective.casts.len() as u32, "{lost} paths are not told");
    sum
}

/// Adds the derivatives of a path to `sum`; false where the path has radiance that `trace` does not reproduce.
fn add_whole(
    objective: &PathObjective,
    values: &[Vec<f64>],
    slot: usize,
    (cast, weights): (&CastPath, Weights),
    sum: &mut [f64],
) -> bool {
    const STEP: f64 = 1e-6;
    let view = objective.view();
    let seen = objective.gather(&objective.fields, cast);
    if seen == [0.0; 3] {
        return true;
    }
    let ray = (cast.ray.origin.map(f64::from), cast.ray.direction.map(f64::from));
    let Some((reflects, probability)) = choices().find_map(|reflects| told(&view, values, ray, reflects, seen)) else {
        return false;
    };
    // The path meets no surface that turns it.
    if reflects.is_empty() {
        return true;
    }
    let weight = weights(objective, cast);
    let mut moved = values.to_vec();
    for (flat, sum) in sum.iter_mut().enumerate() {
        let mut at = |step: f64| {
            moved[slot][flat] = values[slot][flat] + step;
            let there = Values {
                now: &moved,
                recorded: values,
            };
            let found = trace::radiance(&view, &there, ray, &reflects);
            moved[slot][flat] = values[slot][flat];
            found.map(|found| (0..3).map(|c| weight[c] * found.radiance[c]).sum::<f64>() / probability)
        };
        let (Some(after), Some(before)) = (at(STEP), at(-STEP)) else {
            return false;
        };
        *sum += (after - before) / (2.0 * STEP);
    }
    true
}

fn keys(setup: &Setup, iteration: u32, pass: Pass) -> Keys {
    Keys {
        pass: pass_key(5, iteration, pass),
        ..setup.keys
    }
}

/// A device that has rendered this many samples a pixel.
fn rendered(setup: &Setup, keys: Keys, spp: u32) -> Cpu {
    let mut device = Cpu::new();
    let (resident, params) = (setup.resident.clone(), setup.params.clone());
    device
        .load(resident, params, Optimizer::Sgd { momentum: 0.0 })
        .expect("it fits");
    device.render(&setup.batch, keys, spp).expect("it renders");
    device
}

/// The device's gradient along the paths of [`whole`], for the adjoint image that it holds.
fn replayed(device: &mut Cpu, setup: &Setup, iteration: u32, spp: u32) -> Vec<f64> {
    let keys = keys(setup, iteration, Pass::Adjoint);
    device.backpropagate(&setup.batch, keys, spp).expect("gradients");
    let gradient = device.read(setup.checked[0], ArrayKind::Gradient).expect("a gradient");
    gradient.into_iter().map(f64::from).collect()
}

fn cosine(a: &[f64], b: &[f64]) -> f64 {
    let product = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    product(a, b) / (product(a, a) * product(b, b)).sqrt()
}

#[test]
#[ignore = "takes half a minute"]
fn gradients_of_few_samples_point_where_those_of_whole_paths_do() {
    let (kept, inverted) = (lens(None), lens(Some(0.01)));
    let many = whole(&kept, 1, MANY, &random);
    let few = cosine(&whole(&kept, 2, FEW, &random), &many);
    for (name, setup) in [("kept chains", &kept), ("inverted Jacobians", &inverted)] {
        let keys = keys(setup, 2, Pass::Adjoint);
        let mut device = rendered(setup, keys, 1);
        let loss = Loss::Linear { seed: SEED };
        device.loss(&setup.batch, keys, loss).expect("a loss");
        let found = cosine(&replayed(&mut device, setup, 2, FEW), &many);
        println!("{name}: cosine {found:.5}; whole paths {few:.5}");
        assert!(few > 0.5 && found > few - 0.005, "{name}: {found} beside {few}");
    }
}

/// Iterations of an optimisation (`course`), and samples a pixel of each of its passes.
const ITERATIONS: u32 = 20;
const SPP: u32 = 256;

/// Mean squared errors against the target, one an iteration, of an optimisation by Adam from a flat face on, along the gradients
/// of replay or of whole paths.
fn course(truth: &Setup, target: &[[f32; 4]], by_replay: bool) -> Vec<f64> {
    let mut setup = truth.clone();
    let slot = setup.checked[0];
    let flat = setup.params.parameters[slot].values.chunks_exact_mut(3);
    flat.for_each(|texel| texel.copy_from_slice(&[0.5, 0.5, 1.0]));
    let count = setup.params.parameters[slot].values.len();
    let [mut mean, mut square] = [0, 1].map(|_| vec![0.0; count]);
    let mut losses = Vec::new();
    for iteration in 1..=ITERATIONS {
        let primal = keys(&setup, iteration, Pass::Primal);
        let mut device = rendered(&setup, primal, SPP);
        let image = device.image().expect("it was rendered");
        let entries = 3.0 * target.len() as f32;
        let apart = |image: &[[f32; 4]], pixel: usize| [0, 1, 2].map(|c: usize| image[pixel][c] - target[pixel][c]);
        // The random numbers of this image are the same in all courses and iterations, and so is its noise.
        let shown = rendered(&setup, keys(&setup, 2, Pass::Preview), MANY)
            .image()
            .expect("it was rendered");
        let squares = (0..target.len())
            .flat_map(|pixel| apart(&shown, pixel))
            .map(|d| f64::from(d * d));
        losses.push(squares.sum::<f64>() / f64::from(entries));
        let adjoint = (0..target.len()).map(|pixel| apart(&image, pixel).map(|d| 2.0 * d / entries));
        let adjoint: Vec<[f32; 3]> = adjoint.collect();
        let gradient = if by_replay {
            device
                .set_adjoint(&setup.batch, primal, &adjoint)
                .expect("an adjoint image");
            replayed(&mut device, &setup, iteration, SPP)
        } else {
            let weights = |_: &PathObjective, cast: &CastPath| {
                let scale = f64::from(cast.weight) / f64::from(SPP);
                adjoint[cast.place as usize].map(|d| f64::from(d) * scale)
            };
            whole(&setup, iteration, SPP, &weights)
        };
        let values = &mut setup.params.parameters[slot].values;
        for (i, g) in gradient.into_iter().enumerate() {
            mean[i] += 0.1 * (g - mean[i]);
            square[i] += 0.001 * (g * g - square[i]);
            let [m, v] =
                [(0.9f64, mean[i]), (0.999, square[i])].map(|(beta, x)| x / (1.0 - beta.powi(iteration as i32)));
            values[i] -= (0.01 * m / (v.sqrt() + 1e-12)) as f32;
        }
    }
    losses
}

/// An optimisation by replay has, at each iteration, an error within 10 % of that of one by derivatives of whole paths, which
/// ends below 30 % of its first error.
#[test]
#[ignore = "takes a minute"]
fn the_course_is_that_of_whole_paths() {
    let truth = lens(None);
    let mut device = rendered(&truth, keys(&truth, 1, Pass::Primal), MANY);
    let target = device.image().expect("it was rendered");
    let [expected, found] = [false, true].map(|by_replay| course(&truth, &target, by_replay));
    for (i, (expected, found)) in expected.iter().zip(&found).enumerate() {
        println!("{}: whole paths {expected:.4e}, replay {found:.4e}", i + 1);
    }
    let ratios = found.iter().zip(&expected).map(|(a, b)| (a / b - 1.0).abs());
    let apart = ratios.fold(0.0, f64::max);
    println!("{:.2} % apart at most", 100.0 * apart);
    assert!(apart < 0.1, "{apart}");
    let last = expected[expected.len() - 1];
    assert!(
        last < 0.3 * expected[0],
        "the course leads nowhere: {last} of {}",
        expected[0]
    );
}
