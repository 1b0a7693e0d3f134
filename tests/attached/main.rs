//! Gradients along chains of smooth glass and mirrors whose points move (`prb_attached`): path replay against differences of
//! images whose sampling is not frozen and against differences of whole paths in f64, and that the detached replay gives zero.

mod camera;
mod exact;
mod inverted;
#[path = "../small/mod.rs"]
mod small;
mod texels;
mod trace;
mod worlds;

use std::path::Path;

use prbopt::gradcheck::Setup;
use prbopt::gradcheck::paths::fresh::rows;
use prbopt::gradcheck::paths::objective::{CastPath, PathObjective};
use prbopt::params::Quantity;
use prbopt::resident::Resident;
use prbopt::resident::layout::gradient;
use prbopt::scene::{self, Scene};
use prbopt::transport::paths::radiative::Ahead;
use prbopt::transport::scene::records::SceneView;
use trace::Values;
use worlds::{MOST_TURNS, World, moving_worlds, traced_worlds, worlds};

/// Passes, each with random numbers of its own, whose mean is an image of the finite differences.
const PASSES: u32 = 1000;

#[test]
fn replay_agrees_with_differences_of_images_that_are_drawn_anew() {
    let mut failures = Vec::new();
    for world in worlds().into_iter().chain(moving_worlds()) {
        let setup = world.setup(true);
        for &slot in &setup.checked {
            let parameter = &setup.params.parameters[slot];
            let wanted: Vec<usize> = (0..parameter.values.len()).collect();
            let rows = rows(&setup, slot, &wanted, PASSES);
            let largest = rows.iter().fold(0.0, |m: f64, row| m.max(row.fresh.abs()));
            assert!(largest > 1e-4, "{}: nothing reaches {}", world.name, parameter.path);
            for row in rows {
                let found = format!(
                    "{}, {} {:?}: {:.4e}, {:.4e} ± {:.1e}",
                    world.name, parameter.path, row.index, row.replayed, row.fresh, row.error
                );
                println!("{found}");
                // A step changes few of Fresnel's choices between reflection and refraction, so that the standard error is itself
                // uncertain.
                if (row.fresh - row.replayed).abs() >= 6.0 * row.error + 1e-2 * (row.fresh.abs() + largest) {
                    failures.push(found);
                }
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// The derivatives by a path's radiance.
const WEIGHT: [f64; 3] = [1.0, 0.5, 2.0];

/// All sequences of choices at fewer than `MOST_TURNS` surfaces: whether each reflects, else refracts.
fn choices() -> impl Iterator<Item = Vec<bool>> {
    (0..MOST_TURNS)
        .flat_map(|turns| (0..1u32 << turns).map(move |bits| (0..turns).map(|k| bits >> k & 1 == 1).collect()))
}

/// These choices with their probability, if `trace` finds along them the radiance that a path has `seen`. Of a path that ends at
/// a diffuse plane, under grey light, the share is the radiance of `trace` over that seen.
fn told(
    view: &SceneView,
    values: &[Vec<f64>],
    ray: ([f64; 3], [f64; 3]),
    reflects: Vec<bool>,
    seen: [f64; 3],
) -> Option<(Vec<bool>, f64)> {
    let here = Values {
        now: values,
        recorded: values,
    };
    let found = trace::radiance(view, &here, ray, &reflects)?;
    let share = match found.scattered {
        true => found.radiance[0] / seen[0],
        false => found.probability,
    };
    let alike = (0..3).all(|c| (found.radiance[c] / share - seen[c]).abs() < 2e-4 * seen[c]);
    alike.then_some((reflects, share))
}

/// Derivatives of a path's radiance by all checked parameters: by path replay, and by differences of `trace` with the path's
/// choices held. `None` where `trace` does not reproduce the path.
fn both(setup: &Setup, objective: &PathObjective, values: &[Vec<f64>], cast: &CastPath) -> Option<[Vec<f64>; 2]> {
    let view = objective.view();
    let seen = objective.gather(&objective.fields, cast);
    let ray = (cast.ray.origin.map(f64::from), cast.ray.direction.map(f64::from));
    let (reflects, probability) = choices().find_map(|reflects| told(&view, values, ray, reflects, seen))?;
    let mut replayed = objective.fields.zeros();
    objective.replay(WEIGHT, cast, &mut objective.sums(&mut replayed));
    let mut moved = values.to_vec();
    let mut at = |slot: usize, flat: usize, step: f64| {
        moved[slot][flat] = values[slot][flat] + step;
        let there = Values {
            now: &moved,
            recorded: values,
        };
        let found = trace::radiance(&view, &there, ray, &reflects);
        moved[slot][flat] = values[slot][flat];
        found.map(|found| (0..3).map(|c| WEIGHT[c] * found.radiance[c]).sum::<f64>() / probability)
    };
    let (mut found, mut expected) = (Vec::new(), Vec::new());
    for &slot in &setup.checked {
        for flat in 0..values[slot].len() {
            let mut difference = |step: f64| Some((at(slot, flat, step)? - at(slot, flat, -step)?) / (2.0 * step));
            let [wide, narrow] = [difference(1e-5)?, difference(1e-6)?];
            // The border of a texel lies between the two points: there is no derivative.
            if (wide - narrow).abs() > 1e-5 * narrow.abs() + 1e-7 {
                return None;
            }
            found.push(replayed[slot][flat]);
            expected.push(narrow);
        }
    }
    Some([found, expected])
}

/// Path by path, all derivatives against those of the whole path in f64: relative errors below 1e-5 in the median, 1e-4 for nine
/// tenths and 1e-3 at most, which is the rounding of points and directions to f32 on curved surfaces and at texel borders.
#[test]
fn replay_agrees_with_differences_of_the_whole_path() {
    for world in traced_worlds() {
        let setup = world.setup(true);
        let objective = PathObjective::new(&setup, gradient::FREE_FLIGHT);
        let without = match world.moves() {
            true => None,
            false => Some(PathObjective::without_paths(&world.setup(false), gradient::FREE_FLIGHT)),
        };
        let lift = |values: &Vec<f32>| values.iter().map(|x| f64::from(*x)).collect::<Vec<f64>>();
        let values: Vec<Vec<f64>> = setup.params.parameters.iter().map(|p| lift(&p.values)).collect();
        let [mut errors, mut held] = [Vec::new(), Vec::new()];
        let mut largest = vec![0.0f64; setup.checked.len()];
        for cast in &objective.casts {
            let Some([found, expected]) = both(&setup, &objective, &values, cast) else {
                continue;
            };
            errors.push(apart(&found, &expected));
            if let Some(without) = &without {
                let mut detached = objective.fields.zeros();
                without.replay(WEIGHT, cast, &mut without.sums(&mut detached));
                let detached: Vec<f64> = setup.checked.iter().flat_map(|&slot| detached[slot].clone()).collect();
                held.push(apart(&detached, &expected));
            }
            let mut from = 0;
            for (of, &slot) in largest.iter_mut().zip(&setup.checked) {
                let entries = &expected[from..from + values[slot].len()];
                *of = entries.iter().fold(*of, |m, x| m.max(x.abs()));
                from += entries.len();
            }
        }
        for errors in [&mut errors, &mut held] {
            errors.sort_by(f64::total_cmp);
        }
        let [median, ninth, all] = [0.5, 0.9, 1.0].map(|share| errors[((errors.len() - 1) as f64 * share) as usize]);
        println!(
            "{}: {} of {} paths, median {median:.1e}, nine tenths {ninth:.1e}, all {all:.1e}; largest {largest:.2?}; held \
             {:.1e} and more",
            world.name,
            errors.len(),
            objective.casts.len(),
            held.first().unwrap_or(&f64::NAN)
        );
        assert!(
            errors.len() * 2 > objective.casts.len(),
            "{}: few paths are told",
            world.name
        );
        assert!(
            largest.iter().all(|x| *x > 1e-3),
            "{}: something is not reached",
            world.name
        );
        assert!(
            median < 1e-5 && ninth < 1e-4 && all < 1e-3,
            "{}: they differ",
            world.name
        );
        // The detached replay is off by more than a tenth in the median: the comparison tells it from the attached one.
        assert!(
            held.is_empty() || held[held.len() / 2] > 0.1,
            "{}: nothing moves",
            world.name
        );
    }
}

/// The relative error of the derivatives `found`, by Euclidean norms.
fn apart(found: &[f64], expected: &[f64]) -> f64 {
    let square = |v: &mut dyn Iterator<Item = f64>| v.map(|x| x * x).sum::<f64>();
    let between = square(&mut found.iter().zip(expected).map(|(a, b)| a - b));
    (between / square(&mut expected.iter().copied())).sqrt()
}

/// A detached replay holds sampled directions fixed. A normal map of smooth glass acts by these alone, so that its gradient is
/// exactly zero, and so is that of radiative backpropagation.
#[test]
fn a_detached_replay_knows_nothing_of_it() {
    for world in worlds()
        .into_iter()
        .filter(|world| world.wanted[0].ends_with("normalmap"))
    {
        let setup = world.setup(false);
        let objective = PathObjective::new(&setup, gradient::FREE_FLIGHT);
        let [mut found, mut radiative] = [objective.fields.zeros(), objective.fields.zeros()];
        for cast in &objective.casts {
            objective.replay(WEIGHT, cast, &mut objective.sums(&mut found));
            let mut sink = objective.sums(&mut radiative);
            objective.backpropagate_radiative(Ahead::Traced, WEIGHT, cast, &mut sink);
        }
        let normals = |slot: &&usize| setup.params.parameters[**slot].quantity == Quantity::Normal;
        for &slot in setup.checked.iter().filter(normals) {
            let nothing = |of: &[Vec<f64>]| of[slot].iter().all(|d| *d == 0.0);
            assert!(nothing(&found) && nothing(&radiative), "{}", world.name);
        }
    }
}

/// Scenes in which the derivatives of a chain would be incomplete are refused, with the reason.
#[test]
fn scenes_out_of_reach_are_refused() {
    let world = |integrator: &str, bsdf: &str| {
        let text = format!(
            r#"{{"integrator": {{"type": "prb_attached" {integrator}}}, "sky": {{"type": "constant"}},
                "camera": {{"type": "perspective", "film": {{"type": "hdrfilm", "width": 4, "height": 4}}}},
                "ball": {{"type": "sphere", "bsdf": {bsdf}}}}}"#
        );
        let scene = scene::parse(&text, Path::new("small.json")).unwrap_or_else(|e| panic!("{e}"));
        Resident::new(&scene).map(|_| ()).map_err(|e| e.to_string())
    };
    let glass = r#"{"type": "dielectric"}"#;
    assert_eq!(world("", glass), Ok(()));
    assert_eq!(world("", r#"{"type": "diffuse", "reflectance": 0}"#), Ok(()));
    let relief = |kind: &str| {
        format!(
            r#"{{"type": "{kind}", "inner": {glass}, "map": {{"type": "bitmap", "data": {{"resolution": [2, 2], "value": 0.5}}}}}}"#
        )
    };
    for (integrator, bsdf, expected) in [
        (r#", "max_depth": -1"#, glass, "set its `max_depth` to 17 or less"),
        (r#", "max_depth": 18"#, glass, "set its `max_depth` to 17 or less"),
        ("", r#"{"type": "diffuse"}"#, "knows `diffuse` surfaces that are flat"),
        ("", r#"{"type": "roughdielectric"}"#, "where it meets any other `bsdf`"),
        ("", &relief("bumpmap"), "write the `bumpmap` as one"),
    ] {
        let why = world(integrator, bsdf).expect_err(bsdf);
        assert!(why.contains(expected), "{why}");
    }
    let plane = |reflectance: &str, light: &str| {
        let text = format!(
            r#"{{"integrator": {{"type": "prb_attached"}}, "light": {light},
                "camera": {{"type": "perspective", "film": {{"type": "hdrfilm", "width": 4, "height": 4}}}},
                "plane": {{"type": "rectangle", "bsdf": {{"type": "diffuse", "reflectance": {reflectance}}}}}}}"#
        );
        let scene = scene::parse(&text, Path::new("small.json")).unwrap_or_else(|e| panic!("{e}"));
        Resident::new(&scene).map(|_| ()).map_err(|e| e.to_string())
    };
    let (sky, lamp) = (r#"{"type": "constant"}"#, r#"{"type": "point", "position": [0, 0, 3]}"#);
    assert_eq!(plane("0.5", sky), Ok(()));
    assert_eq!(plane("0", lamp), Ok(()));
    for (reflectance, light, expected) in [
        ("0.5", lamp, "from which lights at a finite distance would move away"),
        (
            r#"{"type": "checkerboard"}"#,
            sky,
            "reflectances that are constant or a `bitmap`",
        ),
        (
            r#"{"type": "checkerboard", "color0": {"type": "bitmap", "data": {"resolution": [2, 2], "value": 0.5}}}"#,
            sky,
            "reflectances that are constant or a `bitmap`",
        ),
    ] {
        let why = plane(reflectance, light).expect_err(light);
        assert!(why.contains(expected), "{why}");
    }
}

/// A camera before an environment map can be a parameter with kept chains alone.
#[test]
fn cameras_that_move_are_refused_without_kept_chains() {
    let worlds = moving_worlds();
    let world = worlds.iter().find(|world| world.name.contains("before the sky"));
    let world = world.expect("a camera before the sky");
    let why = |scene: &Scene| Resident::new(scene).map(|_| ()).map_err(|e| e.to_string());
    let mut scene = world.scene(true);
    assert_eq!(why(&scene), Ok(()));
    scene.integrator.inverted = Some(0.01);
    let inverted = why(&scene).expect_err("inverted Jacobians follow no camera");
    assert!(inverted.contains(r#"say "jacobians": "kept""#), "{inverted}");
    let detached = why(&world.scene(false)).expect_err("the sky is seen");
    assert!(detached.contains("only `prb_attached` knows"), "{detached}");
}
