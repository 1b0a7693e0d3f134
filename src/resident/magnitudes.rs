//! How large the derivatives of radiance by parameters are expected to be, from the brightness of the lights and from the
//! parameters' values. Sums of gradients in whole numbers have units that fit these magnitudes (`device/units.rs`).

use glam::Vec3;

use super::layout::{LightRecord, NONE, SurfaceRecord, light, slots_of, surface};
use super::paths::PathScene;
use super::slot;
use crate::params::{ParamSet, Parameter, Quantity};
use crate::scene::{Background, Scene};

/// Expectations within this many binary orders of one count as one: units have room for twice as many.
const FREE: i32 = 6;

/// Most binary orders.
const MOST: i32 = 60;

/// For each parameter θ the binary order of ∂L/∂θ: of L over θ where radiance is linear in θ, of L for others, L being the
/// radiance of a white surface, or one if that is less. Orders within [`FREE`] of zero are zero, others are so much nearer
/// to it.
pub(super) fn magnitudes(scene: &Scene, paths: &PathScene, params: &ParamSet) -> Vec<i32> {
    let radiance = binary_order(radiance(scene, paths, params).max(1.0));
    let order = |parameter: &Parameter| {
        let order = match parameter.quantity {
            Quantity::Light | Quantity::Environment | Quantity::Emission => {
                radiance - binary_order(mean(&parameter.values))
            }
            _ => radiance,
        };
        let order = order.clamp(-MOST, MOST);
        order - order.clamp(-FREE, FREE)
    };
    params.parameters.iter().map(order).collect()
}

/// The radiance of a white surface under all lights, roughly.
fn radiance(scene: &Scene, paths: &PathScene, params: &ParamSet) -> f64 {
    let of_slot = |slot: u32| mean(&params.parameters[slot as usize].values);
    let background = match &scene.background {
        Background::None => 0.0,
        Background::Constant { radiance } => of_slot(slot(params, radiance) as u32),
        Background::Envmap { data, scale, .. } => {
            of_slot(slot(params, data) as u32) * of_slot(slot(params, scale) as u32)
        }
    };
    let of_light = |record: &LightRecord| {
        let mut value = if record.slot == NONE { 1.0 } else { of_slot(record.slot) };
        if record.texture != NONE {
            let slots = slots_of(&paths.bsdfs.textures, record.texture);
            value *= slots.iter().map(|slot| of_slot(*slot)).fold(0.0, f64::max);
        }
        let [x, y, z, area] = record.position;
        let from = match paths.surfaces.get(record.surface as usize) {
            Some(surface) => column(surface, 3),
            None => Vec3::new(x, y, z),
        };
        let square = || nearest(paths, record, from).map_or(1.0, |d| d * d);
        match record.kind {
            light::ENVMAP => 0.0,
            light::DIRECTIONAL => value,
            light::AREA | light::COLLIMATED => value * (f64::from(area) / square()).min(1.0),
            _ => value / square(),
        }
    };
    background + paths.lights.iter().map(of_light).sum::<f64>()
}

/// The distance from a light to the middle of the nearest other shape, or the size of that shape if it is more; None without
/// shapes.
fn nearest(paths: &PathScene, light: &LightRecord, from: Vec3) -> Option<f64> {
    let others = paths
        .surfaces
        .iter()
        .zip(0..)
        .filter(|(record, number)| *number != light.surface && record.kind != surface::MESH);
    let singles = others.map(|(record, _)| distance(record, from));
    let [low, high] = [paths.settings.low, paths.settings.high].map(Vec3::from_array);
    let meshes = low
        .cmple(high)
        .all()
        .then(|| ((low + high) / 2.0).distance(from).max(low.distance(high) / 2.0));
    let distances = singles
        .chain(meshes)
        .map(f64::from)
        .filter(|d| *d > 0.0 && d.is_finite());
    distances.reduce(f64::min)
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

/// The e of 2^e ≤ x < 2^(e + 1); zero for zero and for what is not finite.
fn binary_order(x: f64) -> i32 {
    match x.is_normal() {
        true => ((x.to_bits() >> 52) & 0x7ff) as i32 - 1023,
        false => 0,
    }
}
