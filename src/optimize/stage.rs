//! Coarse-to-fine optimisation: when the resolution changes, and to what.

use crate::device::{self, ArrayKind, Device};
use crate::kernels::optimizer::Optimizer;
use crate::params::{Parameter, Shape};
use crate::scene::{MomentRule, Optimize, Stage};

/// The iteration (from 0) before which a change happens: never before the first, never after the last.
pub fn begins_at(stage: &Stage, iterations: u32) -> u32 {
    let at = (f64::from(stage.at) * f64::from(iterations)).round() as u32;
    at.clamp(1, iterations.saturating_sub(1).max(1))
}

/// Samples per pixel of the primal and of the adjoint pass after `passed` changes of resolution.
pub fn samples(settings: &Optimize, passed: u32) -> [u32; 2] {
    let last = (passed as usize)
        .checked_sub(1)
        .and_then(|index| settings.stages.get(index));
    last.map_or([settings.spp, settings.spp_grad], |stage| [stage.spp, stage.spp_grad])
}

/// The shape of a parameter after some stages: optimised grids, textures and environment maps are refined, all others stay.
///
/// Sizes saturate on overflow; no device accepts such a size.
pub fn shape_after(parameter: &Parameter, stages: &[Stage]) -> Shape {
    let mut shape = parameter.shape;
    if follows(parameter) {
        for stage in stages {
            for n in &mut shape.size[..parameter.kind.refined_axes()] {
                *n = n.saturating_mul(stage.upsample as usize);
            }
        }
    }
    shape
}

/// Changes the resolution of every optimised grid, texture and environment map. The stage's `moments` says whether the moments and
/// the step count are reset.
///
/// # Errors
/// The device's, if the finer grids do not fit.
pub fn enter(device: &mut dyn Device, stage: &Stage, optimizer: Optimizer) -> device::Result<()> {
    let parameters = &device.params().parameters;
    let refined = |p: &Parameter| follows(p) && stage.upsample > 1;
    let sizes: Vec<(usize, [usize; 3])> = parameters
        .iter()
        .enumerate()
        .filter(|(_, p)| refined(p))
        .map(|(i, p)| (i, shape_after(p, std::slice::from_ref(stage)).size))
        .collect();
    // All parameters share the step count of the bias correction, so those that keep their size are reset as well.
    let others: Vec<(usize, usize)> = parameters
        .iter()
        .enumerate()
        .filter(|(_, p)| p.tuning.is_some() && !refined(p))
        .map(|(i, p)| (i, p.shape.len()))
        .collect();
    let keep = stage.moments == MomentRule::Resample;
    device.resample(&sizes, keep)?;
    if !keep {
        for (parameter, len) in others {
            for moment in 0..optimizer.moments() {
                device.write(parameter, ArrayKind::Moment(moment), &vec![0.0; len])?;
            }
        }
    }
    device.rebuild()
}

fn follows(parameter: &Parameter) -> bool {
    parameter.kind.refined_axes() > 0 && parameter.tuning.is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::{Kind, Quantity, Tuning};
    use glam::Affine3A;

    fn stage(at: f32) -> Stage {
        Stage {
            at,
            upsample: 2,
            moments: MomentRule::Reset,
            spp: 1,
            spp_grad: 1,
        }
    }

    #[test]
    fn changes_fall_within_the_run() {
        assert_eq!(begins_at(&stage(0.25), 400), 100);
        assert_eq!(begins_at(&stage(0.001), 10), 1);
        assert_eq!(begins_at(&stage(0.999), 10), 9);
    }

    #[test]
    fn what_is_optimised_and_has_axes_follows() {
        let shape = Shape {
            size: [3, 4, 5],
            channels: 2,
        };
        let mut parameter = Parameter {
            path: "a".into(),
            kind: Kind::Grid,
            quantity: Quantity::Extinction,
            shape,
            to_world: Affine3A::IDENTITY,
            values: Vec::new(),
            tuning: None,
        };
        let stages = [stage(0.2), stage(0.4)];
        assert_eq!(shape_after(&parameter, &stages), shape);
        parameter.tuning = Some(Tuning {
            learning_rate: 0.1,
            bounds: [0.0, 1.0],
            smoothing: 0.0,
        });
        assert_eq!(shape_after(&parameter, &stages).size, [12, 16, 20]);
        parameter.kind = Kind::Texture;
        assert_eq!(shape_after(&parameter, &stages).size, [12, 16, 5]);
        parameter.kind = Kind::Envmap;
        assert_eq!(shape_after(&parameter, &stages).size, [12, 16, 5]);
        parameter.kind = Kind::Attribute;
        assert_eq!(shape_after(&parameter, &stages), shape);
    }

    #[test]
    fn a_short_run_changes_between_its_iterations() {
        assert_eq!(begins_at(&stage(0.5), 1), 1);
        assert_eq!(begins_at(&stage(0.5), 3), 2);
        assert_eq!(
            [1, 2, 3].map(|iterations| begins_at(&stage(1.0), iterations)),
            [1, 1, 2]
        );
    }
}
