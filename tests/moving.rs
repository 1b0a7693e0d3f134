//! Gradients by the places of shapes: path replay against finite differences with the sampling frozen, conventional
//! reverse-mode AD and forward mode; the f32 device against f64; and against differences of converged images.

mod small;

use prbopt::device::cpu::Cpu;
use prbopt::gradcheck::paths::fields::Sides;
use prbopt::gradcheck::paths::fresh::{FreshRow, rows};
use prbopt::gradcheck::paths::objective::Objective;
use prbopt::gradcheck::{Options, check};
use prbopt::resident::layout::gradient;
use prbopt::transport::number::Number;
use prbopt::transport::number::dual::Dual;
use prbopt::transport::number::tape::{Recorded, Tape};
use prbopt::transport::rays::camera::normalize;
use prbopt::transport::rays::sampler::dot;
use prbopt::transport::scene::shape::intersect;
use prbopt::transport::scene::tangent::{derivatives, slopes};
use small::moving::{continuous_worlds, moving_worlds};

fn options() -> Options {
    Options {
        entries: 24,
        seed: 5,
        ..Options::default()
    }
}

#[test]
fn replay_agrees_with_finite_differences_and_the_device_with_replay() {
    for small in moving_worlds() {
        let setup = small.setup("free_flight", &options());
        let report = check(&setup, Some(&mut Cpu::new()), &options())
            .expect("the check runs")
            .report;
        assert!(report.passed, "{}\n{report}", small.name);
        for loss in &report.losses {
            let device = loss.device.expect("there is a device");
            assert!((device - loss.value).abs() < 1e-5, "{}: {loss:?}", small.name);
        }
        let mut errors: Vec<f64> = report
            .parameters
            .iter()
            .flat_map(|p| &p.rows)
            .map(|r| r.error)
            .collect();
        errors.sort_by(f64::total_cmp);
        let ninth = errors[errors.len() * 9 / 10];
        assert!(ninth < 1e-7, "{}: a tenth of the errors exceed {ninth:.1e}", small.name);
        for parameter in &report.parameters {
            assert!(
                parameter.largest > 0.0,
                "{}: nothing reaches {}",
                small.name,
                parameter.path
            );
        }
    }
}

/// The same noise, path by path: both are exact derivatives of the same sum, so that only rounding is between them.
#[test]
fn replay_agrees_with_conventional_ad_path_by_path() {
    for small in moving_worlds() {
        let setup = small.setup("free_flight", &options());
        let objective = Objective::new(&setup, gradient::FREE_FLIGHT);
        let mut variables = 0;
        let fields = Sides::new(&setup.params, |v| {
            variables += 1;
            Recorded::variable(variables - 1, v.into())
        });
        for cast in objective.casts.iter().step_by(3) {
            Tape::begin(None);
            let radiance = objective.gather(&fields, cast);
            let weight = [0.5f32, -0.25, 1.0];
            let mut sum = Recorded::lift(0.0);
            for c in 0..3 {
                sum += radiance[c] * Recorded::lift(weight[c]);
            }
            let by_tape = sum.gradient(variables);
            let mut by_replay = objective.fields.zeros();
            objective.replay(weight.map(f64::from), cast, &mut objective.sums(&mut by_replay));
            let largest = by_tape.iter().fold(0.0, |m: f64, g| m.max(g.abs()));
            for (i, (a, b)) in by_replay.concat().iter().zip(&by_tape).enumerate() {
                let error = (a - b).abs();
                assert!(
                    error <= 1e-11 * largest,
                    "{}, entry {i}: {a} by replay, {b} by tape",
                    small.name
                );
            }
        }
    }
}

#[test]
fn replay_agrees_with_forward_mode() {
    for small in moving_worlds() {
        let setup = small.setup("free_flight", &options());
        let objective = Objective::new(&setup, gradient::FREE_FLIGHT);
        let adjoint = objective.adjoint(1);
        let mut fields = Sides::new(&setup.params, |v| Dual::constant(v.into()));
        for &slot in &setup.checked {
            let gradient = &adjoint.gradient[slot];
            let largest = gradient.iter().fold(0.0, |m: f64, g| m.max(g.abs()));
            for entry in (0..gradient.len()).step_by(gradient.len() / 4 + 1) {
                fields.integrand[slot][entry].slope = 1.0;
                let mut slope = 0.0;
                for cast in &objective.casts {
                    let (radiance, weight) = (objective.gather(&fields, cast), objective.weight(1, cast));
                    slope += (0..3).map(|c| weight[c] * radiance[c].slope).sum::<f64>();
                }
                fields.integrand[slot][entry].slope = 0.0;
                let error = (slope - gradient[entry]).abs();
                assert!(error <= 1e-11 * largest, "{}, {slot} {entry}: {slope}", small.name);
            }
        }
    }
}

/// Differences of images whose sampling is not frozen: directions and points of lights are drawn anew for what has moved.
/// Only the means agree, which are compared by the standard error over independent passes.
#[test]
fn where_nothing_is_covered_derivatives_are_those_of_the_image() {
    for small in continuous_worlds() {
        let setup = small.setup("free_flight", &options());
        for &slot in &setup.checked {
            let parameter = &setup.params.parameters[slot];
            let wanted: Vec<usize> = (0..parameter.values.len()).collect();
            for row in rows(&setup, slot, &wanted, 2000) {
                let FreshRow {
                    replayed,
                    fresh,
                    error,
                    index,
                } = row;
                let found = format!(
                    "{}, {} {index:?}: {replayed:.3e}, {fresh:.3e} ± {error:.1e}",
                    small.name, parameter.path
                );
                println!("{found}");
                // What is left of the difference's second order, and of the rounding of geometry.
                assert!(
                    (fresh - replayed).abs() < 4.0 * error + 2e-3 * fresh.abs() + 1e-5,
                    "{found}"
                );
            }
        }
    }
}

/// How normals, tangents and texture coordinates change along a surface, against hits of neighbouring rays.
#[test]
fn slopes_are_those_of_neighbouring_hits() {
    const STEP: f32 = 2e-3;
    let mut kinds = [0; 6];
    for small in moving_worlds() {
        let setup = small.setup("free_flight", &options());
        let objective = Objective::new(&setup, gradient::FREE_FLIGHT);
        let view = objective.view();
        for cast in &objective.casts {
            let (origin, direction) = (cast.ray.origin, cast.ray.direction);
            let Some(hit) = intersect(&view, origin, direction, f32::INFINITY) else {
                continue;
            };
            let grazing = dot(direction, hit.normal).abs() < 0.3;
            for axis in 0..3 {
                let mut beside = origin;
                beside[axis] += STEP;
                let Some(next) = intersect(&view, beside, direction, f32::INFINITY) else {
                    continue;
                };
                let over = [0, 1, 2].map(|a| next.point.p[a] - hit.point.p[a]);
                let far = dot(over, over).sqrt() > 4.0 * STEP;
                let turns = (0..2).any(|k| (next.point.uv[k] - hit.point.uv[k]).abs() > 0.2);
                if grazing || far || turns || (next.surface, next.primitive) != (hit.surface, hit.primitive) {
                    continue;
                }
                kinds[view.surfaces[hit.surface as usize].kind as usize] += 1;
                let slopes = slopes(&view, &hit);
                let along = |rows: &[[f32; 3]]| rows.iter().map(|row| dot(*row, over)).collect::<Vec<_>>();
                let change = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a - b).collect::<Vec<_>>();
                let [before, after] = [&hit, &next].map(|hit| normalize(derivatives(&view, hit)[0]));
                let raw = derivatives(&view, &hit)[0];
                let turned = along(&slopes.tangent);
                let guess = normalize([0, 1, 2].map(|a| raw[a] + turned[a]));
                for (what, found, expected) in [
                    ("normal", along(&slopes.normal), change(&next.shading, &hit.shading)),
                    ("uv", along(&slopes.uv), change(&next.point.uv, &hit.point.uv)),
                    ("tangent", change(&guess, &before), change(&after, &before)),
                ] {
                    let largest = expected.iter().fold(0.0f32, |m, x| m.max(x.abs()));
                    for (a, b) in found.iter().zip(&expected) {
                        let kind = view.surfaces[hit.surface as usize].kind;
                        assert!(
                            (a - b).abs() < 0.03 * largest + 2e-5,
                            "{}, kind {kind}, {what}: {found:?}, {expected:?}",
                            small.name
                        );
                    }
                }
            }
        }
    }
    assert!(kinds.iter().all(|hits| *hits > 10), "hits of the kinds: {kinds:?}");
}
