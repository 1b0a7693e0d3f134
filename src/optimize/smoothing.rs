//! Steps that are smooth over a grid, a texture or an environment map: the optimiser works on u with x = S u, S being what [`smooth`]
//! applies, in the place of (I + λL)⁻¹ in Nicolet2021 (section 3).

use super::run::Run;
use crate::device::{self, ArrayKind, Step};
use crate::kernels::smoothing::{lambda, smooth};

/// A parameter whose step is smoothed.
struct Smoothed {
    index: usize,
    lambda: f64,
    /// Values before the step.
    before: Vec<f32>,
}

impl Run<'_> {
    /// A step of the device, smoothed where parameters ask for it. Returns the norms of the gradients that the step used.
    pub(super) fn smooth_step(&mut self, step: &Step) -> device::Result<Vec<f64>> {
        let smoothed = self.smooth_gradients()?;
        let mut norms = Vec::new();
        self.device.in_a_row(&mut |device| {
            norms = device.step(step)?;
            Ok(())
        })?;
        for parameter in smoothed {
            self.smooth_values(&parameter)?;
        }
        Ok(norms)
    }

    /// Replaces gradients ∂L/∂x by ∂L/∂u = Sᵀ ∂L/∂x; S is symmetric.
    fn smooth_gradients(&mut self) -> device::Result<Vec<Smoothed>> {
        let mut smoothed = Vec::new();
        for index in 0..self.device.params().parameters.len() {
            let parameter = &self.device.params().parameters[index];
            let Some(tuning) = parameter.tuning.filter(|tuning| tuning.smoothing > 0.0) else {
                continue;
            };
            let (shape, lambda) = (parameter.shape, lambda(parameter.shape.size, tuning.smoothing));
            let wraps = parameter.kind.wraps();
            let mut gradient = self.device.read(index, ArrayKind::Gradient)?;
            smooth(&mut gradient, shape.size, shape.channels, wraps, lambda);
            self.device.write(index, ArrayKind::Gradient, &gradient)?;
            smoothed.push(Smoothed {
                index,
                lambda,
                before: self.device.read(index, ArrayKind::Values)?,
            });
        }
        Ok(smoothed)
    }

    /// Replaces the step Δu by Δx = S Δu, and clamps values to their bounds, which a smoothed step may leave.
    fn smooth_values(&mut self, parameter: &Smoothed) -> device::Result<()> {
        let Smoothed { index, lambda, before } = parameter;
        let of_device = &self.device.params().parameters[*index];
        let (shape, wraps) = (of_device.shape, of_device.kind.wraps());
        let [low, high] = of_device
            .tuning
            .map_or([f32::NEG_INFINITY, f32::INFINITY], |t| t.bounds);
        let mut values = self.device.read(*index, ArrayKind::Values)?;
        for (value, before) in values.iter_mut().zip(before) {
            *value -= before;
        }
        smooth(&mut values, shape.size, shape.channels, wraps, *lambda);
        for (value, before) in values.iter_mut().zip(before) {
            *value = (*value + before).clamp(low, high);
        }
        self.device.write(*index, ArrayKind::Values, &values)
    }
}
