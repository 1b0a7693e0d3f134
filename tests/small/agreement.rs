//! Path replay beside conventional automatic differentiation of the same walk, with the same random numbers.

use prbopt::gradcheck::Setup;
use prbopt::gradcheck::paths::fields::Sides;
use prbopt::gradcheck::paths::objective::PathObjective;
use prbopt::resident::layout::gradient;
use prbopt::transport::number::Number;
use prbopt::transport::number::dual::Dual;
use prbopt::transport::number::tape::{Recorded, Tape};

/// Largest difference, relative to the largest derivative: both are exact derivatives of one sum, up to rounding.
const ROUNDING: f64 = 1e-11;

/// Compares derivatives of every third path by replay and by reverse mode over a tape, all entries of all parameters.
pub fn agrees_with_tape(name: &str, setup: &Setup) {
    let objective = PathObjective::new(setup, gradient::FREE_FLIGHT);
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
                error <= ROUNDING * largest,
                "{name}, entry {i}: {a} by replay, {b} by tape"
            );
        }
    }
}

/// Compares the gradient of all paths with forward mode, at some entries of each parameter in `slots`.
pub fn agrees_with_forward_mode(name: &str, setup: &Setup, slots: impl Iterator<Item = usize>) {
    let objective = PathObjective::new(setup, gradient::FREE_FLIGHT);
    let adjoint = objective.adjoint(1);
    let mut fields = Sides::new(&setup.params, |v| Dual::constant(v.into()));
    for slot in slots {
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
            assert!(
                error <= ROUNDING * largest,
                "{name}, parameter {slot}, entry {entry}: {slope} by forward mode, {} by replay",
                gradient[entry]
            );
        }
    }
}
