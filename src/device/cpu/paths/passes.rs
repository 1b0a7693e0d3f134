//! The passes over a world of surfaces and media: a path at a time.

use std::ops::Add;

use rayon::prelude::*;

use super::sums::{Accumulate, Sums};
use crate::device::cpu::Cpu;
use crate::device::cpu::chunk::{CHUNK, Chunk, Place, chunks};
use crate::device::cpu::field::render::MASKED;
use crate::device::units::units_in_one;
use crate::device::{Batch, DeviceError, Keys, ReplayStats, Result};
use crate::params::ParamSet;
use crate::resident::environment::environment_table;
use crate::resident::layout::{SceneRecord, background};
use crate::resident::paths::{Estimator, PathScene, Variant};
use crate::transport::mode::PRIMAL;
use crate::transport::paths::path_state::PathState;
use crate::transport::paths::radiative::{Ahead, backpropagate_radiative};
use crate::transport::paths::volpath::{backpropagate, gather};
use crate::transport::rays::camera::Ray;
use crate::transport::rays::pixel::Pixel;
use crate::transport::rays::pixel::sample_ray;
use crate::transport::rays::random::Key;
use crate::transport::rays::sampler::{Sampler, streams};
use crate::transport::scene::records::{Fields, SceneView};

/// What depends on the parameters' values.
#[derive(Debug, Default)]
pub(in crate::device::cpu) struct Tables {
    majorants: Vec<f32>,
    environment: Vec<f32>,
}

impl Tables {
    /// The tables of a world whose parameters have these values.
    pub(in crate::device::cpu) fn new(scene: &SceneRecord, world: &PathScene, params: &ParamSet) -> Self {
        let values: Vec<&[f32]> = params.parameters.iter().map(|p| &p.values[..]).collect();
        let environment = match scene.background {
            background::ENVMAP => environment_table(scene.env_size, values[world.background as usize]),
            _ => Vec::new(),
        };
        Self {
            majorants: world.rebuild_majorants(&values),
            environment,
        }
    }

    pub(in crate::device::cpu) fn bytes(&self) -> usize {
        4 * (self.majorants.len() + self.environment.len())
    }
}

/// The parameters as slices.
struct Values<'a>(Vec<&'a [f32]>);

impl Fields<f32> for Values<'_> {
    const TWO_SIDED: bool = false;
    const TRACKED: bool = false;
    #[inline(always)]
    fn integrand(&self, slot: u32) -> &[f32] {
        self.0[slot as usize]
    }
    #[inline(always)]
    fn sampling(&self, slot: u32) -> &[f32] {
        self.0[slot as usize]
    }
}

/// The records of a world beside the tables that a device holds.
pub(in crate::device::cpu) fn bind<'a>(
    scene: &'a SceneRecord,
    world: &'a PathScene,
    tables: &'a Tables,
) -> SceneView<'a> {
    SceneView::new(scene, world, &tables.majorants, &tables.environment)
}

/// A camera ray, the medium that it begins in, and the streams of its path and of its adjoint.
pub(in crate::device::cpu) type Beginning = (Ray, u32, Sampler, Sampler);

#[inline(always)]
fn begin(cpu: &Cpu, pixel: Pixel, key: Key, sample: u32) -> Option<Beginning> {
    let sensor = &cpu.resident.sensors[pixel.sensor as usize];
    let (ray, _) = sample_ray(&cpu.resident.scene, sensor, pixel, key, sample)?;
    let [walk, adjoint] = streams(key, pixel, sample);
    Some((ray, sensor.medium, walk, adjoint))
}

impl Cpu {
    fn values(&self) -> Values<'_> {
        Values(self.params.parameters.iter().map(|p| &p.values[..]).collect())
    }

    /// Renders into `self.image`, chunk by chunk.
    pub(in crate::device::cpu) fn render_paths(&mut self, records: &PathScene, batch: &Batch, keys: Keys, spp: u32) {
        let chunks = chunks(&self.resident, batch);
        let mut image = std::mem::take(&mut self.image);
        image.clear();
        image.resize(chunks.len() * CHUNK, [0.0; 4]);
        let this = &*self;
        let values = this.values();
        let world = bind(&this.resident.scene, records, &this.tables);
        image.par_chunks_mut(CHUNK).zip(&chunks).for_each(|(out, &chunk)| {
            RenderChunk {
                cpu: this,
                world: &world,
                values: &values,
                batch,
                keys,
                spp,
                chunk,
                out,
            }
            .run();
        });
        self.image = image;
    }

    /// Adds a batch's derivatives to the gradients.
    pub(in crate::device::cpu) fn backpropagate_paths(
        &mut self,
        records: &PathScene,
        batch: &Batch,
        keys: Keys,
        spp: u32,
    ) -> Result<ReplayStats> {
        let chunks = chunks(&self.resident, batch);
        let stats = self.with_sums(records, batch, keys, spp, |pass| {
            let all = || chunks.par_iter().enumerate();
            match records.estimator {
                Estimator::PathReplay => Ok(all().map(|(i, &chunk)| pass.replay(i, chunk)).reduce_with(Add::add)),
                Estimator::Tape => super::tape::differentiate(pass, &chunks).map(Some),
                Estimator::Radiative(variant) => {
                    let backpropagate_radiative =
                        |(i, &chunk)| pass.backpropagate_radiative(i, chunk, incident(variant), None);
                    Ok(all().map(backpropagate_radiative).reduce_with(Add::add))
                }
            }
        })?;
        let stats = stats.unwrap_or_default();
        self.tape_bytes = self.tape_bytes.max(stats.tape_bytes);
        Ok(stats)
    }

    /// Renders into `self.image` and along the same paths carries the adjoint image, which is of an earlier render.
    pub(in crate::device::cpu) fn render_and_backpropagate_paths(
        &mut self,
        records: &PathScene,
        batch: &Batch,
        keys: Keys,
        spp: u32,
    ) -> Result<ReplayStats> {
        let chunks = chunks(&self.resident, batch);
        let Estimator::Radiative(variant) = records.estimator else {
            return Err(unshared());
        };
        if self.adjoint.len() != chunks.len() * CHUNK {
            let message = "the adjoint image is not of this batch; pipelining needs the same pixels in every iteration";
            return Err(DeviceError::Unavailable(message.into()));
        }
        let mut image = std::mem::take(&mut self.image);
        image.clear();
        image.resize(chunks.len() * CHUNK, [0.0; 4]);
        let stats = self.with_sums(records, batch, keys, spp, |pass| {
            let all = image.par_chunks_mut(CHUNK).zip(&chunks).enumerate();
            let backpropagate_radiative = |(i, (out, &chunk)): (_, (&mut [_], _))| {
                pass.backpropagate_radiative(i, chunk, incident(variant), Some(out))
            };
            Ok(all.map(backpropagate_radiative).reduce_with(Add::add))
        });
        self.image = image;
        Ok(stats?.unwrap_or_default())
    }

    /// Does `work`, whose sums become a part of the gradients.
    fn with_sums<T: Default>(
        &mut self,
        records: &PathScene,
        batch: &Batch,
        keys: Keys,
        spp: u32,
        work: impl FnOnce(&Propagation<'_>) -> Result<T>,
    ) -> Result<T> {
        let largest = self.adjoint.iter().flatten().fold(0f32, |m, d| m.max(d.abs()));
        let texels = self.params.parameters.iter().map(|p| p.shape.texels());
        let scales = texels.map(|texels| units_in_one(largest, batch.pixels(), spp, texels));
        let mut sums = std::mem::take(&mut self.sums);
        sums.begin(self.gradients.iter().map(Vec::len), scales.collect());
        let this = &*self;
        let done = work(&Propagation {
            cpu: this,
            world: &bind(&this.resident.scene, records, &this.tables),
            values: &this.values(),
            batch,
            keys,
            spp,
            sums: &sums,
        });
        let merged = sums.merge();
        sums.add_to(&mut self.gradients);
        self.sums = sums;
        self.activity
            .iter_mut()
            .for_each(crate::device::cpu::step::Activity::touch_all);
        merged.map_err(|slot| {
            DeviceError::Overflow(format!(
                "the gradient of {} left the range of its sums; lower the learning rate, or bound the density \
                 away from zero",
                self.params.parameters[slot].path
            ))
        })?;
        done
    }
}

/// What a variant of radiative backpropagation takes for the radiance still to come.
fn incident(variant: Variant) -> Ahead {
    match variant {
        Variant::Unbiased | Variant::Pipelined => Ahead::Traced,
        Variant::Biased | Variant::BiasedPipelined => Ahead::Unit,
    }
}

/// Only radiative backpropagation renders along an adjoint's paths.
pub(in crate::device::cpu) fn unshared() -> DeviceError {
    DeviceError::Unavailable("primal and adjoint cannot share a pass here: only `rbvolpath` does that".into())
}

struct RenderChunk<'a> {
    cpu: &'a Cpu,
    world: &'a SceneView<'a>,
    values: &'a Values<'a>,
    batch: &'a Batch,
    keys: Keys,
    spp: u32,
    chunk: Chunk,
    out: &'a mut [[f32; 4]],
}

impl RenderChunk<'_> {
    fn run(self) {
        let scale = 1.0 / self.spp as f32;
        for Place { place, pixel, .. } in self.chunk.pixels(&self.cpu.resident, self.batch, self.keys) {
            let mut sum = [0.0f32; 4];
            for sample in 0..self.spp {
                let Some((ray, medium, sampler, _)) = begin(self.cpu, pixel, self.keys.pass, sample) else {
                    sum[3] = f32::NEG_INFINITY;
                    break;
                };
                let path = gather::<f32, _, PRIMAL>(self.world, self.values, &ray, medium, sampler);
                for c in 0..3 {
                    sum[c] += path.radiance[c];
                }
                sum[3] += f32::from(u8::from(path.straight));
            }
            self.out[place] = if sum[3] < 0.0 {
                [0.0, 0.0, 0.0, MASKED]
            } else {
                [sum[0] * scale, sum[1] * scale, sum[2] * scale, sum[3] * scale]
            };
        }
    }
}

/// A pass that sends a batch's derivatives to sums.
pub(in crate::device::cpu) struct Propagation<'a> {
    pub cpu: &'a Cpu,
    pub world: &'a SceneView<'a>,
    values: &'a Values<'a>,
    batch: &'a Batch,
    keys: Keys,
    spp: u32,
    pub sums: &'a Sums,
}

impl<'a> Propagation<'a> {
    /// A sink into the calling thread's sums.
    pub(in crate::device::cpu) fn sink(&self) -> Accumulate<'a> {
        Accumulate::new(self.sums, self.world.common, self.world.background)
    }

    /// The pixels of the `i`-th chunk: place, the derivative by each of its samples, and the samples' beginnings.
    pub(in crate::device::cpu) fn pixels(
        &self,
        i: usize,
        chunk: Chunk,
    ) -> impl Iterator<Item = (usize, [f32; 3], impl Iterator<Item = Option<Beginning>>)> {
        let scale = 1.0 / self.spp as f32;
        let pixels = chunk.pixels(&self.cpu.resident, self.batch, self.keys);
        pixels.map(move |Place { place, pixel, .. }| {
            let d = self.cpu.adjoint[i * CHUNK + place].map(|d| d * scale);
            let samples = (0..self.spp).map(move |sample| begin(self.cpu, pixel, self.keys.pass, sample));
            (place, d, samples)
        })
    }

    /// Path replay of a chunk.
    fn replay(&self, i: usize, chunk: Chunk) -> ReplayStats {
        let mut stats = ReplayStats::default();
        let mut sink = self.sink();
        for (_, d, samples) in self.pixels(i, chunk).filter(|(_, d, _)| *d != [0.0; 3]) {
            for (ray, medium, sampler, extra) in samples.map_while(|begun| begun) {
                let (first, replay) =
                    backpropagate::<f32, _, _>(self.world, self.values, &ray, medium, sampler, extra, d, &mut sink);
                stats.rays += 1;
                stats.samples += u64::from(replay.count);
                stats.drifted += u64::from(drifted(&first, &replay));
            }
        }
        stats
    }

    /// Radiative backpropagation of a chunk, which may be rendered on the way.
    fn backpropagate_radiative(
        &self,
        i: usize,
        chunk: Chunk,
        incident: Ahead,
        mut out: Option<&mut [[f32; 4]]>,
    ) -> ReplayStats {
        let scale = 1.0 / self.spp as f32;
        let mut stats = ReplayStats::default();
        let mut sink = self.sink();
        for (place, d, samples) in self.pixels(i, chunk) {
            let carries = d != [0.0; 3];
            if !carries && out.is_none() {
                continue;
            }
            let mut sum = [0.0f32; 4];
            for begun in samples {
                let Some((ray, medium, sampler, extra)) = begun else {
                    sum = [0.0, 0.0, 0.0, MASKED];
                    break;
                };
                let (world, values) = (self.world, self.values);
                let path = if carries {
                    backpropagate_radiative::<f32, _, _>(
                        world, values, &ray, medium, sampler, extra, incident, d, &mut sink,
                    )
                } else {
                    gather::<f32, _, PRIMAL>(world, values, &ray, medium, sampler)
                };
                for c in 0..3 {
                    sum[c] += path.radiance[c] * scale;
                }
                sum[3] += f32::from(u8::from(path.straight)) * scale;
                stats.rays += u64::from(carries);
                stats.samples += u64::from(path.count);
            }
            if let Some(out) = &mut out {
                out[place] = sum;
            }
        }
        stats
    }
}

/// Whether more is left of a replay than rounding explains. No contribution is negative, so that the radiance bounds
/// the sum of their sizes.
#[inline(always)]
fn drifted(first: &PathState<f32>, replay: &PathState<f32>) -> bool {
    let bound = 8.0 * (replay.count + 1) as f32 * f32::EPSILON;
    let mut drifted = false;
    for c in 0..3 {
        drifted |= replay.radiance[c].abs() > bound * first.radiance[c].abs();
    }
    drifted
}
