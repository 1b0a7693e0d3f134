//! The expected size of ∂L/∂θ for each parameter θ, from the brightness and the places of the lights. Sums of gradients in whole
//! numbers have units that fit it (`device/units.rs`).

use glam::Vec3;

use super::layout::{LightRecord, NONE, SurfaceRecord, light, slots_of, surface};
use super::paths::PathScene;
use super::slot;
use crate::params::{ParamSet, Parameter, Quantity};
use crate::scene::{Background, Scene};

/// Binary orders by which an expectation may be wrong: half of what units have room for.
const TOLERANCE: i32 = 6;

/// Largest binary order.
const MAX_ORDER: i32 = 60;

/// For each parameter the binary order e of the expected ∂L/∂θ, as e − clamp(e, −[`TOLERANCE`], [`TOLERANCE`]), so that usual
/// scenes have zeros. Where L is linear in θ, as in radiances and intensities, ∂L/∂θ follows from the distance of
/// the light and does not depend on θ; for others it is taken to be L, or one if that is less.
pub(super) fn magnitudes(scene: &Scene, paths: &PathScene, params: &ParamSet) -> Vec<i32> {
    let mut expected = Expected {
        params,
        slopes: vec![None; params.parameters.len()],
        radiance: 0.0,
    };
    expected.add_background(scene);
    paths.lights.iter().for_each(|record| expected.add_light(paths, record));
    expected.add_emission();
    let of_others = binary_order(expected.radiance.max(1.0));
    let order = |(parameter, slope): (&Parameter, &Option<f64>)| {
        let order = match (slope, parameter.quantity) {
            (Some(slope), _) => binary_order(*slope),
            (None, Quantity::Light | Quantity::Environment | Quantity::Emission) => 0,
            (None, _) => of_others,
        };
        let order = order.clamp(-MAX_ORDER, MAX_ORDER);
        order - order.clamp(-TOLERANCE, TOLERANCE)
    };
    params.parameters.iter().zip(&expected.slopes).map(order).collect()
}

/// What is known after some of the lights.
struct Expected<'a> {
    params: &'a ParamSet,
    /// ∂L/∂θ of the parameters in which L is linear.
    slopes: Vec<Option<f64>>,
    /// The radiance L of a white surface.
    radiance: f64,
}

impl Expected<'_> {
    fn mean_of(&self, slot: u32) -> f64 {
        mean(&self.params.parameters[slot as usize].values)
    }

    fn add_slope(&mut self, slot: u32, slope: f64) {
        let known = &mut self.slopes[slot as usize];
        *known = Some(known.unwrap_or(0.0).max(slope));
    }

    fn add_background(&mut self, scene: &Scene) {
        match &scene.background {
            Background::None => {}
            Background::Constant { radiance } => {
                let slot = slot(self.params, radiance) as u32;
                self.add_slope(slot, 1.0);
                self.radiance += self.mean_of(slot);
            }
            Background::Envmap { data, scale, .. } => {
                let texels = slot(self.params, data) as u32;
                // A scene without shapes has no parameter for the scale.
                let scale = self.params.find(&scale.path).map(|slot| slot as u32);
                let factor = scale.map_or(1.0, |slot| self.mean_of(slot));
                self.add_slope(texels, factor);
                if let Some(scale) = scale {
                    self.add_slope(scale, self.mean_of(texels));
                }
                self.radiance += factor * self.mean_of(texels);
            }
        }
    }

    fn add_light(&mut self, paths: &PathScene, record: &LightRecord) {
        if record.kind == light::ENVMAP {
            return;
        }
        let value = if record.slot == NONE {
            1.0
        } else {
            self.mean_of(record.slot)
        };
        let texels = match record.texture {
            NONE => Vec::new(),
            texture => slots_of(&paths.bsdfs.textures, texture),
        };
        let texture = texels
            .iter()
            .map(|slot| self.mean_of(*slot))
            .reduce(f64::max)
            .unwrap_or(1.0);
        let square = || nearest(paths, record).map_or(1.0, |d| d * d);
        let reach = match record.kind {
            light::DIRECTIONAL | light::COLLIMATED => 1.0,
            light::AREA => (f64::from(record.position[3]) / square()).min(1.0),
            _ => 1.0 / square(),
        };
        self.radiance += value * texture * reach;
        // An area light may be seen directly.
        let slope = if record.kind == light::AREA { 1.0 } else { reach };
        if record.slot != NONE {
            self.add_slope(record.slot, slope * texture);
        }
        texels.into_iter().for_each(|slot| self.add_slope(slot, slope * value));
    }

    /// Media that emit.
    fn add_emission(&mut self) {
        let emission = self
            .params
            .parameters
            .iter()
            .filter(|p| p.quantity == Quantity::Emission);
        self.radiance += emission.map(|p| mean(&p.values)).fold(0.0, f64::max);
    }
}

/// The distance from a light to the middle of the nearest other shape, or the size of that shape if it is more; None without
/// shapes.
fn nearest(paths: &PathScene, light: &LightRecord) -> Option<f64> {
    let from = place(paths, light);
    let is_other = |(record, number): &(&SurfaceRecord, u32)| *number != light.surface && record.kind != surface::MESH;
    let others = paths.surfaces.iter().zip(0..).filter(is_other);
    let singles = others.map(|(record, _)| distance(record, from));
    // All meshes together count as one shape.
    let [low, high] = [paths.settings.low, paths.settings.high].map(Vec3::from_array);
    let meshes = low.cmplt(high).any().then(|| {
        let middle = (low + high) / 2.0;
        middle.distance(from).max(low.distance(high) / 2.0)
    });
    let distances = singles.chain(meshes).map(f64::from);
    distances.filter(|d| *d > 0.0 && d.is_finite()).reduce(f64::min)
}

/// Where a light is: the middle of an area light.
fn place(paths: &PathScene, light: &LightRecord) -> Vec3 {
    let [x, y, z, _] = light.position;
    let shape = paths.surfaces.get(light.surface as usize);
    let triangles = &paths.emissive_triangles[light.first_emissive as usize..][..light.emissive_triangles as usize];
    match shape {
        None => Vec3::new(x, y, z),
        Some(shape) if triangles.is_empty() => column(shape, 3),
        Some(_) => {
            let corners = triangles.iter().flat_map(|t| [t.a, t.b, t.c]).map(Vec3::from_array);
            corners.sum::<Vec3>() / (3 * triangles.len()) as f32
        }
    }
}

fn distance(record: &SurfaceRecord, from: Vec3) -> f32 {
    let size = [0, 1, 2]
        .map(|k| column(record, k).length())
        .into_iter()
        .fold(0.0, f32::max);
    column(record, 3).distance(from).max(size)
}

/// A column of a shape's map to the world: where an axis goes, or the origin.
fn column(record: &SurfaceRecord, k: usize) -> Vec3 {
    Vec3::from_array(record.to_world.map(|row| row[k]))
}

fn mean(values: &[f32]) -> f64 {
    let sum: f64 = values.iter().map(|x| f64::from(x.abs())).sum();
    sum / values.len().max(1) as f64
}

/// The e of 2^e ≤ x < 2^(e + 1); zero for zero, subnormal numbers and what is not finite.
pub fn binary_order(x: f64) -> i32 {
    match x.is_normal() {
        true => ((x.to_bits() >> 52) & 0x7ff) as i32 - 1023,
        false => 0,
    }
}
