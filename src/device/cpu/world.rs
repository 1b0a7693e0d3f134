//! The passes over a world of surfaces and media: a path at a time.

use rayon::prelude::*;

use super::Cpu;
use super::chunk::{CHUNK, Chunk, Place, chunks};
use super::render::MASKED;
use super::sums::{Accumulate, Sums};
use crate::device::{Batch, DeviceError, Keys, ReplayStats, Result};
use crate::params::ParamSet;
use crate::resident::environment::environment_table;
use crate::resident::layout::{SceneRecord, background};
use crate::resident::world::World as Records;
use crate::transport::camera::Ray;
use crate::transport::path::sample_ray;
use crate::transport::pixel::Pixel;
use crate::transport::random::Key;
use crate::transport::sampler::{Sampler, streams};
use crate::transport::throughput::Path;
use crate::transport::volpath::{gather, propagate};
use crate::transport::world::PRIMAL;
use crate::transport::world::{Fields, World};

/// What depends on the parameters' values.
#[derive(Debug, Default)]
pub(super) struct Tables {
    majorants: Vec<f32>,
    environment: Vec<f32>,
}

impl Tables {
    /// The tables of a world whose parameters have these values.
    pub(super) fn new(scene: &SceneRecord, world: &Records, params: &ParamSet) -> Self {
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

    pub(super) fn bytes(&self) -> usize {
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
pub(super) fn bind<'a>(scene: &'a SceneRecord, world: &'a Records, tables: &'a Tables) -> World<'a> {
    World::new(scene, world, &tables.majorants, &tables.environment)
}

/// A camera ray, and the streams of its path and of its adjoint.
#[inline(always)]
fn begin(cpu: &Cpu, pixel: Pixel, key: Key, sample: u32) -> Option<(Ray, u32, Sampler, Sampler)> {
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
    pub(super) fn render_world(&mut self, records: &Records, batch: &Batch, keys: Keys, spp: u32) {
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
    pub(super) fn propagate_world(
        &mut self,
        records: &Records,
        batch: &Batch,
        keys: Keys,
        spp: u32,
    ) -> Result<ReplayStats> {
        let largest = self.adjoint.iter().flatten().fold(0f32, |m, d| m.max(d.abs()));
        if largest == 0.0 {
            return Ok(ReplayStats::default());
        }
        let chunks = chunks(&self.resident, batch);
        let mut sums = std::mem::take(&mut self.sums);
        sums.begin(self.gradients.iter().map(Vec::len), largest / spp as f32);
        let this = &*self;
        let values = this.values();
        let world = bind(&this.resident.scene, records, &this.tables);
        let stats = chunks
            .par_iter()
            .enumerate()
            .map(|(i, &chunk)| {
                ReplayChunk {
                    cpu: this,
                    world: &world,
                    values: &values,
                    batch,
                    keys,
                    spp,
                    chunk,
                    adjoint: &this.adjoint[i * CHUNK..][..CHUNK],
                    sums: &sums,
                }
                .run()
            })
            .reduce(ReplayStats::default, |a, b| ReplayStats {
                rays: a.rays + b.rays,
                samples: a.samples + b.samples,
                drifted: a.drifted + b.drifted,
            });
        let ended = sums.end(&mut self.gradients);
        self.sums = sums;
        self.activity.iter_mut().for_each(super::step::Activity::touch_all);
        ended.map_err(|slot| {
            DeviceError::Overflow(format!(
                "the gradient of {} left the range of its sums: a smaller learning rate, or density away from zero, \
                 would keep it smaller",
                self.params.parameters[slot].path
            ))
        })?;
        Ok(stats)
    }
}

struct RenderChunk<'a> {
    cpu: &'a Cpu,
    world: &'a World<'a>,
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

struct ReplayChunk<'a> {
    cpu: &'a Cpu,
    world: &'a World<'a>,
    values: &'a Values<'a>,
    batch: &'a Batch,
    keys: Keys,
    spp: u32,
    chunk: Chunk,
    adjoint: &'a [[f32; 3]],
    sums: &'a Sums,
}

impl ReplayChunk<'_> {
    fn run(self) -> ReplayStats {
        let scale = 1.0 / self.spp as f32;
        let mut stats = ReplayStats::default();
        let mut sink = Accumulate::new(self.sums, self.world.scene, self.world.background);
        for Place { place, pixel, .. } in self.chunk.pixels(&self.cpu.resident, self.batch, self.keys) {
            let d = self.adjoint[place];
            if d == [0.0; 3] {
                continue;
            }
            let d = [d[0] * scale, d[1] * scale, d[2] * scale];
            for sample in 0..self.spp {
                let Some((ray, medium, sampler, extra)) = begin(self.cpu, pixel, self.keys.pass, sample) else {
                    break;
                };
                let (first, replay) =
                    propagate::<f32, _, _>(self.world, self.values, &ray, medium, sampler, extra, d, &mut sink);
                stats.rays += 1;
                stats.samples += u64::from(replay.count);
                stats.drifted += u64::from(drifted(&first, &replay));
            }
        }
        stats
    }
}

/// Whether more is left of a replay than rounding explains. No contribution is negative, so that the radiance bounds
/// the sum of their sizes.
#[inline(always)]
fn drifted(first: &Path<f32>, replay: &Path<f32>) -> bool {
    let bound = 8.0 * (replay.count + 1) as f32 * f32::EPSILON;
    let mut drifted = false;
    for c in 0..3 {
        drifted |= replay.radiance[c].abs() > bound * first.radiance[c].abs();
    }
    drifted
}
