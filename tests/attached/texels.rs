//! The gradient by the texels of a lens at few samples a pixel, as the device has it, beside that of whole paths in f64: how far each is
//! from the direction of the latter at many samples.

use prbopt::device::cpu::Cpu;
use prbopt::device::{ArrayKind, Device};
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

/// Of the random weights of pixels.
const SEED: u32 = 3;

/// The true lens, small, seen from the front.
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

/// The gradient of whole paths in f64, by differences with their choices held.
fn whole(setup: &Setup, iteration: u32, spp: u32) -> Vec<f64> {
    let mut setup = setup.clone();
    setup.spp = spp;
    setup.keys.pass = pass_key(5, iteration, Pass::Adjoint);
    let objective = PathObjective::new(&setup, gradient::FREE_FLIGHT);
    let lift = |values: &Vec<f32>| values.iter().map(|x| f64::from(*x)).collect::<Vec<f64>>();
    let values: Vec<Vec<f64>> = setup.params.parameters.iter().map(|p| lift(&p.values)).collect();
    let slot = setup.checked[0];
    let none = || (vec![0.0; values[slot].len()], 0);
    let sums = objective.casts.par_iter().fold(none, |(mut sum, lost), cast| {
        let is_told = add_whole(&objective, &values, slot, cast, &mut sum);
        (sum, lost + u32::from(!is_told))
    });
    let (sum, lost) = sums.reduce(none, |(mut a, lost), (b, more)| {
        a.iter_mut().zip(&b).for_each(|(a, b)| *a += b);
        (a, lost + more)
    });
    assert!(lost * 100 < objective.casts.len() as u32, "{lost} paths are not told");
    sum
}

/// Adds the derivatives of a path; false where it brings light, but the second opinion does not tell how.
fn add_whole(objective: &PathObjective, values: &[Vec<f64>], slot: usize, cast: &CastPath, sum: &mut [f64]) -> bool {
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
    // It meets no face.
    if reflects.is_empty() {
        return true;
    }
    let weight = objective.weight(SEED, cast);
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

/// The device's gradient along the paths of [`whole`].
fn replayed(setup: &Setup, iteration: u32, spp: u32) -> Vec<f64> {
    let mut device = Cpu::new();
    let mut keys = setup.keys;
    keys.pass = pass_key(5, iteration, Pass::Adjoint);
    let (resident, params) = (setup.resident.clone(), setup.params.clone());
    device
        .load(resident, params, Optimizer::Sgd { momentum: 0.0 })
        .expect("it fits");
    device.render(&setup.batch, keys, 1).expect("it renders");
    device
        .loss(&setup.batch, keys, Loss::Linear { seed: SEED })
        .expect("a loss");
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
    let many = whole(&kept, 1, MANY);
    let few = cosine(&whole(&kept, 2, FEW), &many);
    for (name, setup) in [("kept chains", &kept), ("inverted Jacobians", &inverted)] {
        let found = cosine(&replayed(setup, 2, FEW), &many);
        println!("{name}: cosine {found:.5}; whole paths {few:.5}");
        assert!(few > 0.5 && found > few - 0.005, "{name}: {found} beside {few}");
    }
}
