//! The differentiated function: a weighted sum of pixels over a fixed set of rays.
//!
//! With w the weight of a pixel and channel, F = Σ w L / (3 · pixels · spp) over all rays: the devices' linear loss.
//! Primal and adjoint pass share their random numbers here.

use std::ops::Range;

use rayon::prelude::*;

use super::fields::{Fields, Plain, Scatter};
use crate::device::{Batch, Keys};
use crate::each::EachEntry;
use crate::params::ParamSet;
use crate::resident::Resident;
use crate::resident::layout::SceneRecord;
use crate::transport::field::march::{Gathered, Replayed, backpropagate, gather};
use crate::transport::field::radiance_field::{FieldView, SampleSink};
use crate::transport::number::Number;
use crate::transport::rays::camera::Ray;
use crate::transport::rays::pixel::{Pixel, Sampled, drawn_pixel, linear_weight, pixel_backdrop, sample_ray};

/// A ray of the objective.
#[derive(Debug, Clone, Copy)]
pub struct CastRay {
    pub ray: Ray,
    pub jitter: f32,
    /// The colour that replaces the emitter behind this ray.
    pub backdrop: Option<[f32; 3]>,
    /// Index of the ray's pixel in the batch, and the weight of its radiance there.
    pub place: u32,
    pub weight: f32,
    /// Index of its sensor.
    pub sensor: u32,
}

/// Generates the rays of a range of pixels of a batch. A pixel with a sample without ray is masked, as on the devices.
pub fn cast_rays(resident: &Resident, batch: &Batch, keys: Keys, spp: u32, places: Range<u32>) -> Vec<CastRay> {
    let scene = resident.scene;
    let of_pixel = |place: u32| {
        let pixel = pixel_at(batch, keys, place);
        let sensor = &resident.sensors[pixel.sensor as usize];
        let backdrop = pixel_backdrop(sensor, keys.objective, pixel);
        let rays: Option<Vec<_>> = (0..spp)
            .map(|sample| sample_ray(&scene, sensor, pixel, keys.pass, sample))
            .collect();
        rays.into_iter()
            .flatten()
            .map(move |Sampled { ray, jitter, weight }| CastRay {
                ray,
                jitter,
                backdrop,
                place,
                weight,
                sensor: pixel.sensor,
            })
    };
    places.into_par_iter().flat_map_iter(of_pixel).collect()
}

/// The pixel at an index of a batch.
pub(in crate::gradcheck) fn pixel_at(batch: &Batch, keys: Keys, place: u32) -> Pixel {
    match batch.drawn {
        Some(_) => drawn_pixel(&batch.table, keys.objective, place),
        None => batch.table.pixel(place),
    }
}

/// The objective, its rays and parameters.
#[derive(Debug)]
pub struct FieldObjective {
    pub scene: SceneRecord,
    pub fields: Fields<f64>,
    /// Rays of the pixels that are not masked.
    pub casts: Vec<CastRay>,
    /// Pixels of the batch, including masked ones.
    pub pixels: u32,
    spp: u32,
}

/// The value and gradient of an objective by path replay.
#[derive(Debug, Clone, PartialEq)]
pub struct Adjoint {
    pub loss: f64,
    pub gradient: Fields<f64>,
}

impl FieldObjective {
    /// The objective over all rays of a batch.
    pub fn new(resident: &Resident, params: &ParamSet, batch: &Batch, keys: Keys, spp: u32) -> Self {
        Self {
            scene: resident.scene,
            fields: Fields::new(resident, params, f64::lift),
            casts: cast_rays(resident, batch, keys, spp, 0..batch.pixels()),
            pixels: batch.pixels(),
            spp,
        }
    }

    /// The derivative of F by a ray's radiance.
    pub fn weight(&self, seed: u32, cast: &CastRay) -> [f64; 3] {
        let scale = f64::from(cast.weight) / (3.0 * f64::from(self.pixels) * f64::from(self.spp));
        [0, 1, 2].each(|c| f64::from(linear_weight(seed, cast.place, c)) * scale)
    }

    /// The view of the parameters.
    pub fn view(&self) -> Plain<'_, f64> {
        Plain {
            scene: &self.scene,
            fields: &self.fields,
        }
    }

    /// The radiance along a ray, under a view of the parameters.
    pub fn gather<N: Number, V: FieldView<N>>(&self, view: &V, cast: &CastRay) -> Gathered<N> {
        gather(&self.scene, view, &cast.ray, cast.jitter, cast.backdrop)
    }

    /// Replays one ray; derivatives go to `sink`.
    pub fn replay<S: SampleSink<f64>>(
        &self,
        seed: u32,
        cast: &CastRay,
        sink: &mut S,
    ) -> (Gathered<f64>, Replayed<f64>) {
        let d_radiance = self.weight(seed, cast);
        backpropagate(
            &self.scene,
            &self.view(),
            &cast.ray,
            cast.jitter,
            cast.backdrop,
            d_radiance,
            sink,
        )
    }

    /// F and its gradient by path replay, all rays in order; `wrap` may wrap the accumulating sink in another.
    pub fn adjoint_through<'a, S: SampleSink<f64>>(
        &'a self,
        seed: u32,
        gradient: &'a mut Fields<f64>,
        wrap: impl FnOnce(Scatter<'a, f64>) -> S,
    ) -> f64 {
        let mut sink = wrap(Scatter {
            scene: &self.scene,
            gradient,
        });
        let mut loss = 0.0;
        for cast in &self.casts {
            let (gathered, _) = self.replay(seed, cast, &mut sink);
            loss += dot(self.weight(seed, cast), gathered.radiance);
        }
        loss
    }

    /// F and its gradient by path replay.
    pub fn adjoint(&self, seed: u32) -> Adjoint {
        let mut gradient = self.fields.zeros();
        let loss = self.adjoint_through(seed, &mut gradient, |sink| sink);
        Adjoint { loss, gradient }
    }
}

/// The inner product.
pub(in crate::gradcheck) fn dot(a: [f64; 3], b: [f64; 3]) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}
