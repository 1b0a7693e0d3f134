//! What a run will need of memory, told before it starts.

use crate::device::parameter_bytes;
use crate::kernels::optimizer::Optimizer;
use crate::output::progress::bytes;
use crate::params::{ParamSet, Shape};
use crate::scene::Stage;

use super::stage::shape_after;

/// Bytes of the device's arrays at the finest resolution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Estimate {
    /// Values, gradients and moments.
    pub parameters: u64,
    pub references: u64,
    /// Image and adjoint image of the largest batch.
    pub images: u64,
}

/// Bytes a pixel of the image and of the adjoint image.
const PIXEL_BYTES: u64 = 16 + 16;

impl Estimate {
    /// The estimate for parameters that start as they are and pass through `stages`.
    pub fn new(params: &ParamSet, stages: &[Stage], optimizer: Optimizer, references: usize, pixels: u32) -> Self {
        Self {
            parameters: parameter_bytes(finest(params, stages), optimizer),
            references: references as u64,
            images: PIXEL_BYTES * u64::from(pixels),
        }
    }

    /// All of it.
    pub fn total(&self) -> u64 {
        self.parameters
            .saturating_add(self.references)
            .saturating_add(self.images)
    }

    /// A sentence.
    pub fn text(&self) -> String {
        format!(
            "memory: about {} at the finest resolution ({} parameters with gradients and moments, {} references, {} \
             images)",
            bytes(self.total()),
            bytes(self.parameters),
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
