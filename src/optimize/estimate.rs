//! The memory that a run needs, estimated before it starts.

use crate::device::parameter_bytes;
use crate::kernels::optimizer::Optimizer;
use crate::output::progress::bytes;
use crate::params::{Kind, ParamSet, Shape};
use crate::scene::{Growth, Stage};

use super::stage::shape_after;

/// Bytes of the device's arrays at the finest resolution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Estimate {
    /// Values, gradients and moments.
    pub parameters: u64,
    /// Sums beside them: [`crate::device::Device::sum_bytes`].
    pub sums: u64,
    pub references: u64,
    /// Image and adjoint image of the largest batch.
    pub images: u64,
}

/// Bytes per pixel of the image and of the adjoint image.
const PIXEL_BYTES: u64 = 16 + 16;

impl Estimate {
    /// The estimate for parameters of these shapes, each optimised or not.
    pub fn new(
        shapes: impl IntoIterator<Item = (Shape, bool)>,
        optimizer: Optimizer,
        references: usize,
        pixels: u32,
        sums: u64,
    ) -> Self {
        Self {
            sums,
            parameters: parameter_bytes(shapes, optimizer),
            references: references as u64,
            images: PIXEL_BYTES * u64::from(pixels),
        }
    }

    /// The total.
    pub fn total(&self) -> u64 {
        self.parameters
            .saturating_add(self.sums)
            .saturating_add(self.references)
            .saturating_add(self.images)
    }

    /// The estimate as a sentence.
    pub fn text(&self) -> String {
        let sums = match self.sums {
            0 => String::new(),
            sums => format!(", {} sums", bytes(sums)),
        };
        format!(
            "memory: about {} at the finest resolution ({} parameters with gradients and moments{}, {} references, \
             {} images)",
            bytes(self.total()),
            bytes(self.parameters),
            sums,
            bytes(self.references),
            bytes(self.images)
        )
    }
}

/// Shapes of all parameters at the finest resolution, and whether each is optimised.
pub fn finest(params: &ParamSet, stages: &[Stage]) -> Vec<(Shape, bool)> {
    let parameters = params.parameters.iter();
    parameters
        .map(|p| (shape_after(p, stages), p.tuning.is_some()))
        .collect()
}

/// The same once splats have grown to all that they will be.
pub fn grown(params: &ParamSet, growth: Option<Growth>, mut shapes: Vec<(Shape, bool)>) -> Vec<(Shape, bool)> {
    if let Some(growth) = growth {
        let points = params
            .parameters
            .iter()
            .zip(&mut shapes)
            .filter(|(p, _)| p.kind == Kind::Points);
        points.for_each(|(_, (shape, _))| shape.size[0] = growth.count as usize);
    }
    shapes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::cpu::Cpu;
    use crate::device::{Batch, Device, Keys};
    use crate::kernels::loss::Loss;
    use crate::resident::Resident;
    use crate::transport::rays::pixel::PixelTable;

    /// An optimised cube of fog of `size`³ texels, seen by a camera of 4 × 4 pixels.
    fn scene(size: usize) -> String {
        format!(
            r#"{{"type": "scene", "integrator": {{"type": "volpath", "max_depth": 3}},
                "fog": {{"type": "cube", "bsdf": {{"type": "null"}}, "interior": {{"type": "heterogeneous",
                    "albedo": 0.5, "sigma_t": {{"type": "gridvolume", "resolution": [{size}, {size}, {size}], "value": 0.5}}}}}},
                "sky": {{"type": "constant"}},
                "view": {{"type": "perspective", "fov": 40,
                    "to_world": [{{"look_at": {{"origin": [0, 0, 4], "target": [0, 0, 0], "up": [0, 1, 0]}}}}],
                    "film": {{"type": "hdrfilm", "width": 4, "height": 4, "rfilter": {{"type": "box"}}}}}},
                "optimize": {{"iterations": 1, "references": {{"type": "constant", "value": 0.5}},
                    "parameters": {{"fog.interior.sigma_t": {{"learning_rate": 0.1}}}}}}}}"#
        )
    }

    /// The predicted sums equal what a backpropagation along paths adds to the CPU's memory.
    #[test]
    fn sums_are_told_as_large_as_they_become() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("scene.json");
        let threads = rayon::current_num_threads();
        // The larger size exceeds the limit for copies on any machine, the smaller one on machines of 2000 threads or
        // more. Each thread then has a cache: 4096 lines of a key and 32 entries.
        let cached = 4096 * (8 + 32 * 8);
        for (size, copies, caches) in [(16, threads, 0), (208, 1, cached * threads)] {
            std::fs::write(&path, scene(size)).expect("writable");
            let scene = crate::scene::load(&path).expect("no mistakes");
            let (mut resident, params) = Resident::new(&scene).expect("it can be flattened");
            resident.set_constant_reference([0.5; 3]);
            let shapes = finest(&params, &[]);
            let mut device = Cpu::default();
            let told = device.sum_bytes(&resident.transport, &shapes);
            let optimizer = Optimizer::Sgd { momentum: 0.0 };
            device.load(resident, params, optimizer).expect("it fits");
            let table = PixelTable::new(device.sensors(), &[0]).expect("few pixels");
            let (batch, keys) = (
                Batch { table, drawn: None },
                Keys {
                    objective: [1; 4],
                    pass: [2; 4],
                },
            );
            device.render(&batch, keys, 1).expect("renders");
            device.loss(&batch, keys, Loss::L2).expect("compares");
            let before = device.memory();
            device.backpropagate(&batch, keys, 1).expect("backpropagates");
            assert_eq!(device.memory() - before, told, "{size}");
            assert_eq!(told, (8 * size * size * size * copies + caches) as u64);
        }
    }

    #[test]
    fn the_estimate_is_a_sentence() {
        let estimate = |sums| Estimate {
            parameters: 22 << 20,
            sums,
            references: 3 << 10,
            images: 5 << 19,
        };
        assert_eq!(estimate(1 << 20).total(), (23 << 20) + (3 << 10) + (5 << 19));
        assert_eq!(
            estimate(1 << 20).text(),
            "memory: about 26 MiB at the finest resolution (22 MiB parameters with gradients and moments, 1.00 MiB sums, \
             3.00 KiB references, 2.50 MiB images)"
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
        let estimate = Estimate::new(finest(&params, &[stage, stage]), optimizer, 100, 10, 7);
        let moments = optimizer.moments() as u64;
        assert_eq!(estimate.parameters, 4 * (24 * 64 * (2 + moments) + 5));
        assert_eq!((estimate.sums, estimate.references, estimate.images), (7, 100, 320));
    }
}
