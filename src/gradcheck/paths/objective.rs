//! The differentiated function: a weighted sum of pixels over paths with fixed random numbers.

use std::ops::Range;

use rayon::prelude::*;

use super::fields::{Sides, Sums};
use crate::device::{Batch, Keys};
use crate::each::EachEntry;
use crate::gradcheck::Setup;
use crate::gradcheck::field::objective::{dot, pixel_at};
use crate::resident::Resident;
use crate::resident::layout::SceneRecord;
use crate::resident::paths::PathScene;
use crate::transport::mode::GATHER;
use crate::transport::number::Number;
use crate::transport::paths::path_state::PathState;
use crate::transport::paths::radiative::{Ahead, backpropagate_radiative};
use crate::transport::paths::volpath;
use crate::transport::rays::camera::Ray;
use crate::transport::rays::pixel::{Sampled, linear_weight, sample_ray};
use crate::transport::rays::sampler::{Sampler, Streams};
use crate::transport::scene::records::{Fields, SceneView, Sink};
use crate::transport::scene::tables::Tables;

/// A path of the objective.
#[derive(Debug, Clone, Copy)]
pub struct CastPath {
    pub ray: Ray,
    pub medium: u32,
    pub streams: Streams,
    /// The random numbers that only the path's adjoint draws.
    pub extra: Sampler,
    /// Index of the path's pixel in the batch, and the weight of its radiance there.
    pub place: u32,
    pub weight: f32,
}

/// Generates the paths of a range of pixels of a batch. A pixel with a sample without ray is masked, as on the
/// devices.
pub fn cast_paths(resident: &Resident, batch: &Batch, keys: Keys, spp: u32, places: Range<u32>) -> Vec<CastPath> {
    let of_pixel = |place: u32| -> Vec<CastPath> {
        let pixel = pixel_at(batch, keys, place);
        let sensor = &resident.sensors[pixel.sensor as usize];
        let casts: Option<Vec<CastPath>> = (0..spp)
            .map(|sample| {
                let Sampled { ray, weight, .. } = sample_ray(&resident.scene, sensor, pixel, keys.pass, sample)?;
                let streams = Streams {
                    key: keys.pass,
                    pixel,
                    sample,
                };
                Some(CastPath {
                    ray,
                    medium: sensor.medium,
                    streams,
                    extra: streams.adjoint(),
                    place,
                    weight,
                })
            })
            .collect();
        casts.unwrap_or_default()
    };
    places.into_par_iter().flat_map_iter(of_pixel).collect()
}

/// The objective, its paths and parameters.
#[derive(Debug)]
pub struct PathObjective {
    scene: SceneRecord,
    records: PathScene,
    /// Majorants and sampling tables of the unperturbed parameters.
    tables: Tables,
    pub fields: Sides<f64>,
    pub casts: Vec<CastPath>,
    pixels: u32,
    spp: u32,
}

/// The value and gradient of an objective by path replay: one array per parameter.
#[derive(Debug, Clone, PartialEq)]
pub struct Adjoint {
    pub loss: f64,
    pub rays: u64,
    pub gradient: Vec<Vec<f64>>,
}

impl PathObjective {
    /// The objective of a path-traced scene; `gradient` selects the estimator of the derivatives by the extinction.
    ///
    /// # Panics
    /// The scene is a radiance field.
    pub fn new(setup: &Setup, gradient: u32) -> Self {
        let all = 0..setup.batch.pixels();
        Self {
            casts: cast_paths(&setup.resident, &setup.batch, setup.keys, setup.spp, all),
            ..Self::without_paths(setup, gradient)
        }
    }

    /// As [`PathObjective::new`], without generating the paths.
    pub fn without_paths(setup: &Setup, gradient: u32) -> Self {
        let mut records = setup.resident.transport.paths().clone();
        records.settings.gradient = gradient;
        let values: Vec<&[f32]> = setup.params.parameters.iter().map(|p| &p.values[..]).collect();
        records.place(&values);
        let scene = setup.resident.scene;
        Self {
            tables: Tables::new(&scene, &records, &values),
            fields: Sides::new(&setup.params, f64::lift),
            casts: Vec::new(),
            pixels: setup.batch.pixels(),
            spp: setup.spp,
            scene,
            records,
        }
    }

    /// The records as a walk reads them.
    pub fn view(&self) -> SceneView<'_> {
        SceneView::new(&self.scene, &self.records, &self.tables)
    }

    /// The derivative of the objective by a path's radiance.
    pub fn weight(&self, seed: u32, cast: &CastPath) -> [f64; 3] {
        let scale = f64::from(cast.weight) / (3.0 * f64::from(self.pixels) * f64::from(self.spp));
        [0, 1, 2].each(|c| f64::from(linear_weight(seed, cast.place, c)) * scale)
    }

    /// The radiance of a path in any number type, continuing through factors of zero.
    pub fn gather<N: Number, F: Fields<N>>(&self, fields: &F, cast: &CastPath) -> [N; 3] {
        volpath::gather::<N, F, GATHER>(&self.view(), fields, &cast.ray, cast.medium, cast.streams.walk())
            .gathered
            .radiance
            .0
    }

    /// Replays one path; derivatives go to `sink`.
    pub fn replay<S: Sink<f64>>(
        &self,
        weight: [f64; 3],
        cast: &CastPath,
        sink: &mut S,
    ) -> (PathState<f64>, PathState<f64>) {
        let walk = cast.streams.walk();
        volpath::backpropagate(
            &self.view(),
            &self.fields,
            &cast.ray,
            cast.medium,
            walk,
            cast.extra,
            weight,
            sink,
        )
    }

    /// Radiative backpropagation along one path; derivatives go to `sink`.
    pub fn backpropagate_radiative<S: Sink<f64>>(
        &self,
        incident: Ahead,
        weight: [f64; 3],
        cast: &CastPath,
        sink: &mut S,
    ) -> PathState<f64> {
        backpropagate_radiative(
            &self.view(),
            &self.fields,
            &cast.ray,
            cast.medium,
            cast.streams.walk(),
            cast.extra,
            incident,
            weight,
            sink,
        )
    }

    /// A sink that accumulates into `gradient`.
    pub fn sums<'a>(&'a self, gradient: &'a mut [Vec<f64>]) -> Sums<'a> {
        Sums {
            scene: &self.scene,
            background: self.records.background,
            gradient,
        }
    }

    /// The objective and its gradient by path replay, all paths in order; `wrap` may wrap the accumulating sink in
    /// another.
    pub fn adjoint_through<'a, S: Sink<f64>>(
        &'a self,
        seed: u32,
        gradient: &'a mut [Vec<f64>],
        wrap: impl FnOnce(Sums<'a>) -> S,
    ) -> f64 {
        let mut sink = wrap(self.sums(gradient));
        let mut loss = 0.0;
        for cast in &self.casts {
            let weight = self.weight(seed, cast);
            let (first, _) = self.replay(weight, cast, &mut sink);
            loss += dot(weight, first.gathered.radiance.0);
        }
        loss
    }

    /// The objective and its gradient by path replay.
    pub fn adjoint(&self, seed: u32) -> Adjoint {
        let mut gradient = self.fields.zeros();
        let loss = self.adjoint_through(seed, &mut gradient, |sink| sink);
        Adjoint {
            loss,
            rays: self.casts.len() as u64,
            gradient,
        }
    }

    /// The records.
    pub fn records(&self) -> &PathScene {
        &self.records
    }

    /// The majorants.
    pub fn majorants(&self) -> &[f32] {
        &self.tables.majorants
    }

    /// The record that all rays share.
    pub fn scene(&self) -> &SceneRecord {
        &self.scene
    }
}
