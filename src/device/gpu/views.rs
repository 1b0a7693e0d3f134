//! Cameras that a run refines: derivatives by each view are summed behind the counters of an adjoint pass; the host turns these
//! few sums into gradients, and moves the cameras to where their parameters say.

use super::passes::gradient_fault;
use super::ranks::whole_sum;
use super::{Gpu, Passes, views_of};
use crate::device::units::{LIMIT, Units};
use crate::device::{ArrayKind, Device, Result};
use crate::resident::Transport;
use crate::resident::layout::NONE;
use crate::resident::views::{SUMS, Views};

/// Words of the counters before the first view's sums: the twin of `shaders/bind/view_sums.wgsl`.
const COUNTERS: usize = 8;

/// Words of the statistics of adjoint passes: counters, and sums for each sensor, since rays of all of them may send.
pub(super) fn statistics_words(transport: &Transport, sensors: usize) -> u64 {
    let views = views_of(transport).map_or(0, |_| sensors);
    (COUNTERS + 2 * SUMS * views) as u64
}

/// The largest power of two up to the world length of a pose's unit of translation: a force times it is the size of a torque.
pub(super) fn length(views: &Views) -> f32 {
    views.unit.log2().floor().exp2() as f32
}

impl Gpu {
    /// The cameras that are parameters.
    fn views(&self) -> Option<&Views> {
        match &self.passes {
            Passes::Field(field) => field.views.as_ref(),
            Passes::Paths(_) | Passes::Splats(_) | Passes::Light(_) => None,
        }
    }

    /// Puts cameras where their parameters say, if a step may have moved them or `all` may have changed.
    pub(super) fn place_views(&mut self, all: bool) -> Result<()> {
        let wanted = |views: &&Views| all || views.are_wanted(&self.params);
        let Some(slots) = self.views().filter(wanted).map(Views::slots) else {
            return Ok(());
        };
        for slot in slots.into_iter().filter(|slot| *slot != NONE) {
            let values = self.read(slot as usize, ArrayKind::Values)?;
            self.params.parameters[slot as usize].values = values;
        }
        if let Passes::Field(field) = &self.passes
            && let Some(views) = &field.views
        {
            views.place(&self.params, &mut self.sensors);
        }
        let records = bytemuck::cast_slice(&self.sensors);
        self.context.upload(&self.arrays.sensors, 0, records);
        Ok(())
    }

    /// Turns the sums of each view, over the rays of all ranks, into gradients and adds them; `words` are the statistics.
    ///
    /// # Errors
    /// A sum has left its range.
    pub(super) fn add_to_views(&mut self, words: &[u32], units: Units) -> Result<()> {
        let Some(views) = self.views().filter(|views| views.are_wanted(&self.params)) else {
            return Ok(());
        };
        let pairs = words[COUNTERS..].as_chunks::<2>().0;
        let own: Vec<i64> = pairs
            .iter()
            .map(|&[low, high]| (u64::from(low) | u64::from(high) << 32) as i64)
            .collect();
        let sums = self.cluster.reduce(&own, whole_sum);
        if sums.iter().any(|sum| sum.unsigned_abs() >= LIMIT.unsigned_abs()) {
            return Err(gradient_fault("left the range of its sums"));
        }
        let (unit, length) = (1.0 / f64::from(units.in_one(0, 0)), f64::from(length(views)));
        let scaled = |sums: &[i64; SUMS]| {
            let [a, b, c, x, y, z, zoom, radial] = sums.map(|sum| sum as f64 * unit);
            [a, b, c, x / length, y / length, z / length, zoom, radial]
        };
        // Sensors behind those of the scene have no parameters.
        let of_views = sums.as_chunks::<SUMS>().0.iter().take(views.len());
        let sums: Vec<[f64; SUMS]> = of_views.map(scaled).collect();
        let (poses, [zoom, radial]) = views.derivatives(&self.params, &sums);
        let [of_poses, of_focal, of_distortion] = views.slots();
        self.add_to_gradient(of_poses, poses.as_flattened())?;
        self.add_to_gradient(of_focal, &[zoom])?;
        self.add_to_gradient(of_distortion, &[radial])
    }

    /// Adds to the gradient of a parameter, if there is such a parameter and it is optimised.
    fn add_to_gradient(&mut self, slot: u32, values: &[f64]) -> Result<()> {
        if slot == NONE || self.params.parameters[slot as usize].tuning.is_none() {
            return Ok(());
        }
        let mut gradient = self.read(slot as usize, ArrayKind::Gradient)?;
        for (g, value) in gradient.iter_mut().zip(values) {
            *g += *value as f32;
        }
        self.write(slot as usize, ArrayKind::Gradient, &gradient)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Constants that are private to this crate have the same values in the shaders.
    #[test]
    fn shaders_know_where_the_sums_of_views_are() {
        let text = include_str!("../../../shaders/bind/view_sums.wgsl");
        for declared in [
            format!("const VIEW_SUMS: u32 = {COUNTERS}u;"),
            format!("const VIEW_NUMBERS: u32 = {SUMS}u;"),
        ] {
            assert!(text.contains(&declared), "{declared}");
        }
    }
}
