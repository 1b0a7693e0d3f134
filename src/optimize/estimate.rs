//! The memory that a run needs, estimated before it starts.

use anyhow::Result;

use super::batch::Batches;
use super::references;
use super::stage::shape_after;
use super::views::training_views;
use crate::device::gpu::wave_bytes;
use crate::device::{Batch, Device, parameter_bytes, scene_bytes};
use crate::output::progress::bytes;
use crate::params::{Kind, ParamSet, Parameter, Shape};
use crate::resident::{Resident, Transport};
use crate::scene::{Growth, Optimize, Scene, Stage};

/// Bytes of the device's arrays at the finest resolution. Not counted are the records of samples that a CPU device sums a
/// radiance field's gradients from, which grow with the number of samples (as a rule 32 MiB at most), and a tape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Estimate {
    /// Values, gradients and moments.
    pub parameters: u64,
    /// Accumulators beside them: [`Device::sum_bytes`].
    pub sums: u64,
    /// Surfaces, media, lights, and the tables that follow from the values that the run begins with; that of an environment map at
    /// its finest resolution.
    pub scene: u64,
    pub references: u64,
    /// Image and adjoint image of the largest batch.
    pub images: u64,
    /// States of the paths that are followed at once: [`Device::path_bytes`].
    pub paths: u64,
}

impl Estimate {
    /// The estimate of a run on this device: `references` in bytes, `largest` the batch of the most pixels.
    pub fn new(
        device: &dyn Device,
        resident: &Resident,
        params: &ParamSet,
        settings: &Optimize,
        references: u64,
        largest: &Batch,
    ) -> Self {
        let finest = finest(params, &settings.stages, settings.growth);
        Self {
            sums: device.sum_bytes(&resident.transport, &finest),
            scene: scene_bytes(resident, params, &finest),
            parameters: parameter_bytes(finest, settings.optimizer),
            references,
            images: device.image_bytes(resident, largest, settings.loss),
            paths: device.path_bytes(resident, largest, most_samples(settings)),
        }
    }

    /// The estimate of a scene whose references are neither read nor rendered: photographs for sRGB-coded films count 8
    /// bits a channel. Beside it the bytes of the waves in which a GPU would follow the run's paths, if it did.
    ///
    /// # Errors
    /// The scene cannot be flattened.
    pub fn of_scene(scene: &Scene, settings: &Optimize, device: &dyn Device) -> Result<(Self, Option<u64>)> {
        let (resident, params) = Resident::new(scene)?;
        let training = training_views(scene, &settings.references);
        let references = references::bytes(scene, &settings.references, &training);
        // A run without a view to learn from is refused elsewhere.
        let batches = Batches::new(settings.batch, &resident.sensors, training, settings.seed);
        let largest = batches.map_or_else(|_| Batch::default(), |batches| batches.largest());
        let waves = match &resident.transport {
            Transport::Paths(paths) => wave_bytes(paths, largest.pixels(), most_samples(settings)),
            _ => None,
        };
        let estimate = Self::new(device, &resident, &params, settings, references, &largest);
        Ok((estimate, waves))
    }

    /// The total.
    pub fn total(&self) -> u64 {
        self.parameters
            .saturating_add(self.sums)
            .saturating_add(self.scene)
            .saturating_add(self.references)
            .saturating_add(self.images)
            .saturating_add(self.paths)
    }

    /// The estimate as a sentence.
    pub fn text(&self) -> String {
        let others = [(self.sums, "sums"), (self.scene, "scene"), (self.paths, "paths")];
        let [sums, scene, paths] = others.map(|(count, what)| match count {
            0 => String::new(),
            count => format!(", {} {what}", bytes(count)),
        });
        format!(
            "memory: about {} at the finest resolution ({} parameters with gradients and moments{sums}{scene}{paths}, {} references, \
             {} images)",
            bytes(self.total()),
            bytes(self.parameters),
            bytes(self.references),
            bytes(self.images)
        )
    }
}

/// The most samples a pixel of primal and of adjoint passes, over all stages.
fn most_samples(settings: &Optimize) -> [u32; 2] {
    let stages = settings.stages.iter().map(|stage| [stage.spp, stage.spp_grad]);
    stages.fold([settings.spp, settings.spp_grad], |most, spp| {
        [0, 1].map(|pass: usize| most[pass].max(spp[pass]))
    })
}

/// Shapes of all parameters at the finest resolution and with the final number of splats, and whether each parameter is
/// optimised.
pub fn finest(params: &ParamSet, stages: &[Stage], growth: Option<Growth>) -> Vec<(Shape, bool)> {
    let refined = |p: &Parameter| {
        let mut shape = shape_after(p, stages);
        if let (Kind::Points, Some(growth)) = (p.kind, growth) {
            shape.size[0] = growth.count as usize;
        }
        (shape, p.tuning.is_some())
    };
    params.parameters.iter().map(refined).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::optimizer::Optimizer;

    #[test]
    fn the_estimate_is_a_sentence() {
        let estimate = |sums| Estimate {
            parameters: 22 << 20,
            sums,
            scene: sums / 2,
            references: 3 << 10,
            images: 5 << 19,
            paths: 2 * sums,
        };
        assert_eq!(estimate(1 << 20).total(), (25 << 20) + (3 << 10) + (6 << 19));
        assert_eq!(
            estimate(1 << 20).text(),
            "memory: about 28 MiB at the finest resolution (22 MiB parameters with gradients and moments, 1.00 MiB sums, \
             512 KiB scene, 2.00 MiB paths, 3.00 KiB references, 2.50 MiB images)"
        );
        assert_eq!(
            estimate(0).text(),
            "memory: about 25 MiB at the finest resolution (22 MiB parameters with gradients and moments, 3.00 KiB \
             references, 2.50 MiB images)"
        );
    }

    /// Two doublings of a tuned grid of 2 · 3 · 4 texels: 64 times as many values; a constant stays as it is.
    #[test]
    fn the_finest_resolution_counts() {
        use crate::params::{Kind, Parameter, Quantity, Tuning};
        use crate::scene::MomentRule;
        let parameter = |kind, size, tuned: bool| Parameter {
            path: "a".into(),
            kind,
            quantity: Quantity::Extinction,
            shape: Shape { size, channels: 1 },
            to_world: glam::Affine3A::IDENTITY,
            values: Vec::new(),
            tuning: tuned.then_some(Tuning {
                learning_rate: 0.1,
                bounds: [0.0, 1.0],
                smoothing: 0.0,
            }),
        };
        let params = ParamSet {
            parameters: vec![
                parameter(Kind::Grid, [2, 3, 4], true),
                parameter(Kind::Grid, [5, 1, 1], false),
            ],
        };
        let stage = Stage {
            at: 0.5,
            upsample: 2,
            moments: MomentRule::Reset,
            spp: 1,
            spp_grad: 1,
        };
        let optimizer = Optimizer::Sgd { momentum: 0.0 };
        let shapes = finest(&params, &[stage, stage], None);
        let moments = optimizer.moments() as u64;
        assert_eq!(parameter_bytes(shapes, optimizer), 4 * (24 * 64 * (2 + moments) + 5));
    }
}
