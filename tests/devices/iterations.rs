//! The first iterations of a run: primal pass, loss, adjoint pass and step.

use prbopt::device::{Batch, Device, Keys, Step};
use prbopt::kernels::loss::Loss;
use prbopt::kernels::optimizer::Optimizer;
use prbopt::transport::rays::random::{Pass, pass_key};

pub(super) const ADAM: Optimizer = Optimizer::Adam {
    beta_1: 0.9,
    beta_2: 0.99,
    epsilon: 1e-8,
    mask_updates: false,
};
const ITERATIONS: u32 = 10;

/// Runs ten of them by [`ADAM`], with the same samples a pixel in both passes; `rate` is a factor on learning rates.
pub(super) fn iterate(device: &mut dyn Device, batch: &Batch, spp: u32, rate: f32) {
    for count in 1..=ITERATIONS {
        let keys = |pass| Keys {
            objective: pass_key(5, count, Pass::Objective),
            pass: pass_key(5, count, pass),
        };
        device.render(batch, keys(Pass::Primal), spp).expect("renders");
        device.loss(batch, keys(Pass::Primal), Loss::L2).expect("a loss");
        device
            .backpropagate(batch, keys(Pass::Adjoint), spp)
            .expect("gradients");
        let step = Step {
            optimizer: ADAM,
            rate,
            count,
        };
        device.step(&step).expect("finite gradients");
        device.rebuild().expect("rebuilds");
    }
}
