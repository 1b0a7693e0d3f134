//! A radiance field flattened into records, or a scene of a background alone.

use glam::{Affine3A, Vec3A};

use super::layout::{self, SceneRecord};
use super::views::Views;
use super::{rows, slot};
use crate::each::EachEntry;
use crate::params::{ParamSet, Shape};
use crate::scene::{ColorActivation, DensityActivation, RadianceField};

/// What is known of a radiance field beside its records.
#[derive(Debug, Clone, Default)]
pub struct FieldScene {
    /// The field's parameters; None where there is nothing but a background.
    pub slots: Option<FieldSlots>,
    /// Edges of the field's cube in world units, from which the step follows at every resolution.
    extent: [f32; 3],
    diagonal: f32,
    /// Marching step in voxel edges.
    step: f32,
    /// Cameras that are parameters.
    pub views: Option<Views>,
}

/// Indices into the [`ParamSet`] of a field's parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FieldSlots {
    pub sigma_t: usize,
    pub sh_coeffs: usize,
}

impl FieldScene {
    /// Flattens a field, whose arrays are among `params`, into `record`.
    pub(super) fn new(field: &RadianceField, record: &mut SceneRecord, params: &ParamSet) -> Self {
        let slots = FieldSlots {
            sigma_t: slot(params, &field.sigma_t),
            sh_coeffs: slot(params, &field.sh_coeffs),
        };
        describe(record, field);
        let (extent, diagonal) = measure(&field.to_world);
        Self {
            slots: Some(slots),
            extent,
            diagonal,
            step: field.step,
            views: None,
        }
    }

    /// An upper bound of the number of samples along a ray.
    pub fn longest_ray(&self, scene: &SceneRecord) -> u64 {
        match self.slots {
            None => 1,
            Some(_) => (self.diagonal / scene.step_length).ceil() as u64 + 1,
        }
    }

    /// Follows a change of resolution; `shapes` are those of the parameters in their order.
    pub fn fit(&self, record: &mut SceneRecord, shapes: &[Shape]) {
        let Some(slots) = self.slots else { return };
        let (sigma, sh) = (shapes[slots.sigma_t], shapes[slots.sh_coeffs]);
        let size = |s: Shape| s.size.each(|n| n as u32);
        let [x, y, z] = size(sigma);
        record.sigma_size = [x, y, z, 1];
        let [x, y, z] = size(sh);
        record.sh_size = [x, y, z, sh.channels as u32];
        let cells = |n: usize| n.div_ceil(layout::occupancy::CELL) as u32;
        let [x, y, z] = sigma.size.each(cells);
        record.occupancy_size = [x, y, z, 0];
        let voxel = (0..3)
            .map(|a| self.extent[a] / sigma.size[a].max(sh.size[a]) as f32)
            .fold(f32::INFINITY, f32::min);
        record.step_length = voxel * self.step;
    }
}

/// The edges and the longest diagonal of a cube in world units.
fn measure(to_world: &Affine3A) -> ([f32; 3], f32) {
    let [x, y, z] = [
        to_world.matrix3.x_axis,
        to_world.matrix3.y_axis,
        to_world.matrix3.z_axis,
    ]
    .each(|axis| 2.0 * axis);
    let diagonal = [x + y + z, x + y - z, x - y + z, x - y - z]
        .each(Vec3A::length)
        .into_iter()
        .fold(0.0, f32::max);
    ([x.length(), y.length(), z.length()], diagonal)
}

/// Fills in a field's records.
fn describe(record: &mut SceneRecord, field: &RadianceField) {
    record.world_to_unit = rows(&field.unit_to_world().inverse());
    record.world_to_field = rows(&field.to_world.inverse());
    record.stop = field.stop;
    record.has_field = 1;
    record.sh_degree = field.sh_degree;
    record.density_activation = match field.density_activation {
        DensityActivation::Relu => layout::density::RELU,
        DensityActivation::Softplus => layout::density::SOFTPLUS,
        DensityActivation::Exp => layout::density::EXP,
    };
    record.color_activation = match field.color_activation {
        ColorActivation::Clip => layout::color::CLIP,
        ColorActivation::Sigmoid => layout::color::SIGMOID,
        ColorActivation::ReluHalf => layout::color::RELU_HALF,
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A ray of length 3 has six steps of length 0.5, or seven if it begins and ends within a step.
    #[test]
    fn the_longest_ray_has_a_sample_more_than_whole_steps() {
        let mut record: SceneRecord = bytemuck::Zeroable::zeroed();
        record.step_length = 0.5;
        let slots = FieldSlots {
            sigma_t: 0,
            sh_coeffs: 1,
        };
        let field = |slots, diagonal| FieldScene {
            slots,
            diagonal,
            ..FieldScene::default()
        };
        assert_eq!(field(Some(slots), 3.0).longest_ray(&record), 7);
        assert_eq!(field(Some(slots), 3.1).longest_ray(&record), 8);
        assert_eq!(field(None, 3.0).longest_ray(&record), 1);
    }
}
