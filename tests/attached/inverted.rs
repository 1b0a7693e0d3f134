//! Derivatives that a replay carries by inverted Jacobians of rays, against those by kept chains.

use prbopt::gradcheck::Setup;
use prbopt::gradcheck::paths::objective::{CastPath, PathObjective};
use prbopt::resident::layout::gradient;
use prbopt::transport::rays::random::Counter;
use prbopt::transport::rays::sampler::Sampler;

use super::{WEIGHT, World, apart, traced_worlds, worlds};

/// Passes, each of which draws new signs of the regularising terms for every path.
const REPEATS: u32 = 1000;

impl World {
    /// The scene with inverted Jacobians, to whose diagonals ± `regularization` is added.
    fn inverted(&self, regularization: f32) -> Setup {
        let mut scene = self.scene(true);
        scene.integrator.inverted = Some(regularization);
        self.setup_of(&scene)
    }
}

/// Worlds whose shapes and camera stand still: inverted Jacobians refuse the others.
fn still(worlds: Vec<World>) -> impl Iterator<Item = World> {
    let moves = |path: &&str| path.contains("to_world") || path.contains("vertex_positions");
    worlds.into_iter().filter(move |world| !world.wanted.iter().any(moves))
}

/// The derivatives of a path by all checked parameters.
fn replayed(setup: &Setup, objective: &PathObjective, cast: &CastPath) -> Vec<f64> {
    let mut found = objective.fields.zeros();
    objective.replay(WEIGHT, cast, &mut objective.sums(&mut found));
    setup.checked.iter().flat_map(|&slot| found[slot].clone()).collect()
}

/// Along smooth vertices every Jacobian has an inverse without any regularising term: path by path, both forms are the same sum
/// but for the rounding of points and directions to f32, 1e-7 in the median and 1e-6 at most.
#[test]
fn inverted_jacobians_carry_what_kept_chains_do() {
    for world in still(traced_worlds()) {
        let (kept, inverted) = (world.setup(true), world.inverted(0.0));
        let objectives = [&kept, &inverted].map(|setup| PathObjective::new(setup, gradient::FREE_FLIGHT));
        let mut errors = Vec::new();
        for cast in &objectives[0].casts {
            let expected = replayed(&kept, &objectives[0], cast);
            let found = replayed(&inverted, &objectives[1], cast);
            if expected.iter().any(|x| *x != 0.0) {
                errors.push(apart(&found, &expected));
            }
        }
        errors.sort_by(f64::total_cmp);
        let [median, all] = [0.5, 1.0].map(|share| errors[((errors.len() - 1) as f64 * share) as usize]);
        println!(
            "{}: {} paths, median {median:.1e}, all {all:.1e}",
            world.name,
            errors.len()
        );
        assert!(
            errors.len() * 2 > objectives[0].casts.len(),
            "{}: few paths arrive",
            world.name
        );
        assert!(median < 1e-7 && all < 1e-6, "{}: they differ", world.name);
    }
}

/// At a diffuse plane the radiance does not depend on the direction of the ray that arrives, so that the Jacobian is singular.
/// With terms of random sign the mean is that of the chain, within four standard errors of each entry, which chance exceeds at
/// one of 16 000 entries.
#[test]
fn random_terms_have_no_mean() {
    let of_plane = still(worlds()).filter(|world| world.name.contains("printed plane"));
    for world in of_plane.chain(still(traced_worlds())) {
        let (kept, inverted) = (world.setup(true), world.inverted(0.01));
        let objectives = [&kept, &inverted].map(|setup| PathObjective::new(setup, gradient::FREE_FLIGHT));
        let casts = &objectives[0].casts;
        let mut expected: Vec<f64> = Vec::new();
        for cast in casts {
            let of_path = replayed(&kept, &objectives[0], cast);
            expected.resize(of_path.len(), 0.0);
            expected.iter_mut().zip(&of_path).for_each(|(sum, x)| *sum += x);
        }
        let [mut sum, mut squares] = [0, 1].map(|_| vec![0.0; expected.len()]);
        for repeat in 0..REPEATS {
            let mut gradient = vec![0.0; expected.len()];
            for (i, cast) in casts.iter().enumerate() {
                let counter = Counter {
                    sensor: 0,
                    pixel: i as u32,
                    sample: repeat,
                    block: 0,
                };
                let cast = CastPath {
                    extra: Sampler::new([7, 8, 9, 10], counter),
                    ..*cast
                };
                let of_path = replayed(&inverted, &objectives[1], &cast);
                gradient.iter_mut().zip(&of_path).for_each(|(sum, x)| *sum += x);
            }
            for (i, x) in gradient.iter().enumerate() {
                assert!(x.is_finite(), "{}: {x}", world.name);
                sum[i] += x;
                squares[i] += x * x;
            }
        }
        let n = f64::from(REPEATS);
        let norm = expected.iter().map(|x| x * x).sum::<f64>().sqrt();
        let (mut worst, mut noise) = (0.0f64, 0.0);
        for (i, expected) in expected.iter().enumerate() {
            let mean = sum[i] / n;
            let variance = (squares[i] / n - mean * mean).max(0.0) / (n - 1.0);
            noise += variance;
            // Points and directions are rounded to f32 at different places of both forms: added to the noise.
            worst = worst.max((mean - expected).abs() / (variance.sqrt() + 1e-7 * norm));
        }
        let noise = noise.sqrt() / norm;
        println!(
            "{}: {worst:.2} standard errors, which are {noise:.1e} of the gradient",
            world.name
        );
        assert!(worst < 4.0, "{}: the means differ", world.name);
        assert!(noise < 0.02, "{}: too much noise to see a difference", world.name);
    }
}
