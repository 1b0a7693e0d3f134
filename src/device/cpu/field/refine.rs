//! Derivatives by cameras, after the replay of a packet: a second pass over its samples, whose records then hold the
//! derivatives by raw density and colour. Runs that do not refine cameras never come here.

use super::packet::{Cast, Lane};
use super::records::Record;
use super::view::Arrays;
use crate::device::cpu::update::Updates;
use crate::each::EachEntry;
use crate::params::ParamSet;
use crate::resident::layout::{NONE, SceneRecord, SensorRecord};
use crate::resident::views::{SUMS, Views};
use crate::transport::field::radiance_field::same_size;
use crate::transport::field::ray_adjoint::{Line, RayAdjoint};
use crate::transport::lookup::grid::grid_cell;
use crate::transport::lookup::sh::Basis;
use crate::transport::rays::view_adjoint::{camera_axes, view_adjoint};

/// The index of a sensor, and the derivatives by its view.
pub(in crate::device::cpu) type OfView = (u32, [f32; SUMS]);

/// The rays of a packet.
pub(in crate::device::cpu) struct Rays<'a> {
    pub(in crate::device::cpu) lanes: &'a [Lane],
    pub(in crate::device::cpu) casts: &'a [Cast],
    /// Spherical harmonics of their directions.
    pub(in crate::device::cpu) bases: &'a [Basis],
    /// Index of the first ray in the round.
    pub(in crate::device::cpu) first: u32,
}

/// Adds to `found` the derivatives by views of the packet whose replayed samples are `records`.
#[inline(always)]
pub(in crate::device::cpu) fn refine<'a, W>(
    (scene, sensors): (&SceneRecord, &[SensorRecord]),
    view: &Arrays<W>,
    rays: &Rays,
    records: impl Iterator<Item = &'a Record>,
    found: &mut Vec<OfView>,
) {
    match view.channels {
        3 => sweep::<W, 3>((scene, sensors), view, rays, records, found),
        12 => sweep::<W, 12>((scene, sensors), view, rays, records, found),
        27 => sweep::<W, 27>((scene, sensors), view, rays, records, found),
        _ => sweep::<W, 48>((scene, sensors), view, rays, records, found),
    }
}

#[inline(always)]
fn sweep<'a, W, const CHANNELS: usize>(
    (scene, sensors): (&SceneRecord, &[SensorRecord]),
    view: &Arrays<W>,
    rays: &Rays,
    records: impl Iterator<Item = &'a Record>,
    found: &mut Vec<OfView>,
) {
    let mut lines = [None; super::packet::RAYS];
    let mut sums = [RayAdjoint::<f32>::zero(); super::packet::RAYS];
    for (line, cast) in lines.iter_mut().zip(rays.casts) {
        let ray = &cast.ray;
        *line = Some(Line::new(scene, ray.origin, ray.direction, ray.near));
    }
    for record in records {
        let lane = (record.ray() - rays.first) as usize;
        let Some(line) = &lines[lane] else { continue };
        let t = line.distance(record.p);
        let [d_sigma, r, g, b] = record.values;
        let cell = grid_cell(scene.sigma_size, record.p);
        sums[lane].add_density(view.sigma, &cell, t, d_sigma);
        let cell = match same_size(scene) {
            true => cell,
            false => grid_cell(scene.sh_size, record.p),
        };
        sums[lane].add_color::<CHANNELS>((view.sh, &rays.bases[lane]), &cell, t, [r, g, b]);
    }
    for (i, (lane, cast)) in rays.lanes.iter().zip(rays.casts).enumerate() {
        let Some(line) = &lines[i] else { continue };
        if lane.path.sees_emitter() {
            let left = lane.path.state.transmittance;
            let d_radiance = lane.d_radiance.each(|d| d * left);
            sums[i].add_background(scene, view.emitter, line, d_radiance);
        }
        let record = &sensors[cast.sensor as usize];
        let axes = camera_axes(&record.to_world);
        let by_ray = sums[i].end(scene, line);
        let of_view = view_adjoint(record, (&axes, &record.distortion), cast.ray.direction, &by_ray);
        match found.last_mut() {
            Some((sensor, sum)) if *sensor == cast.sensor => (0..SUMS).for_each(|k| sum[k] += of_view[k]),
            _ => found.push((cast.sensor, of_view)),
        }
    }
}

/// Turns the sums over the rays of each view into gradients of the views' parameters, and adds them.
pub(in crate::device::cpu) fn add_to_gradients(
    views: &Views,
    params: &ParamSet,
    sums: &[[f64; SUMS]],
    updates: &mut Updates,
) {
    let (poses, [zoom, radial]) = views.derivatives(params, sums);
    let mut add = |slot: u32, values: &[f64]| {
        if slot == NONE || updates.gradients[slot as usize].is_empty() {
            return;
        }
        let gradient = &mut updates.gradients[slot as usize];
        for (g, value) in gradient.iter_mut().zip(values) {
            *g += *value as f32;
        }
        updates.activity[slot as usize].touch(0..gradient.len());
    };
    add(views.poses, poses.as_flattened());
    add(views.focal, &[zoom]);
    add(views.distortion, &[radial]);
}
