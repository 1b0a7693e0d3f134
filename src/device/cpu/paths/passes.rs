//! The passes over paths among surfaces, media and lights: chunk by chunk, several hundred paths at a time.

use std::ops::{Add, Range};
use std::sync::{Mutex, PoisonError};

use rayon::prelude::*;

use super::pilots::Pilots;
use super::sampling::{Beginning, Sampling};
use super::sums::{Accumulate, Sums};
use super::vertex_normals::{entries_of, send_on};
use crate::device::cpu::chunk::{CHUNK, Chunk, Place, chunks};
use crate::device::cpu::frame::{Frame, MASKED};
use crate::device::cpu::passes::{Inputs, Pass, unshared};
use crate::device::cpu::step::Activity;
use crate::device::cpu::update::Updates;
use crate::device::units::{Units, spread};
use crate::device::{DeviceError, ReplayStats, Result, only_rendered};
use crate::each::EachEntry;
use crate::params::ParamSet;
use crate::resident::layout::SensorRecord;
use crate::resident::paths::{Estimator, PathScene, Variant};
use crate::transport::mode::PRIMAL;
use crate::transport::paths::aov::{aov_axis, aov_eval};
use crate::transport::paths::packet::{backpropagate_together, gather_together};
use crate::transport::paths::path_state::Gathered;
use crate::transport::paths::radiative::{Ahead, backpropagate_radiative};
use crate::transport::paths::replay_cache::{CACHED, ReplayCache};
use crate::transport::paths::starts::Begin;
use crate::transport::paths::volpath::gather;
use crate::transport::paths::walk_notes::WalkNotes;
use crate::transport::paths::wave::{Room, is_among_surfaces};
use crate::transport::rays::pixel::Pixel;
use crate::transport::rays::sensor::sensor_weight;
use crate::transport::scene::records::{Fields, SceneView};
use crate::transport::scene::tables::Tables;

/// The passes over paths, and what they keep.
#[derive(Debug)]
pub(in crate::device::cpu) struct PathPasses {
    pub(in crate::device::cpu) scene: PathScene,
    tables: Tables,
    sums: Sums,
    /// Bytes of the longest tape so far.
    tape_bytes: u64,
}

/// The parameters as slices.
pub(in crate::device::cpu) struct Values<'a>(Vec<&'a [f32]>);

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

impl<'a> Values<'a> {
    pub(in crate::device::cpu) fn new(params: &'a ParamSet) -> Self {
        Self(params.parameters.iter().map(|p| &p.values[..]).collect())
    }
}

impl PathPasses {
    /// Passes over a scene whose tables are not built yet.
    pub(in crate::device::cpu) fn new(scene: PathScene) -> Self {
        Self {
            scene,
            tables: Tables::default(),
            sums: Sums::default(),
            tape_bytes: 0,
        }
    }

    /// Rebuilds what depends on the parameters' values: all of it, or what a step may have changed.
    pub(in crate::device::cpu) fn rebuild(&mut self, inputs: &mut Inputs, all: bool) {
        let Values(values) = Values::new(&inputs.params);
        self.scene.place(&values);
        self.scene.place_cameras(&values, &mut inputs.sensors);
        let has_changed = |slot: u32| all || inputs.params.parameters[slot as usize].tuning.is_some();
        self.tables.rebuild(&inputs.scene, &self.scene, &values, has_changed);
    }

    /// The tables that are made from the parameters' values.
    pub(in crate::device::cpu) fn tables(&self) -> &Tables {
        &self.tables
    }

    pub(in crate::device::cpu) fn bytes(&self) -> u64 {
        (self.tables.bytes() + self.sums.bytes() + self.scene.bytes()) as u64 + self.tape_bytes
    }

    /// Renders a batch, chunk by chunk.
    pub(in crate::device::cpu) fn render(&self, inputs: &Inputs, pass: Pass, frame: &mut Frame) {
        let chunks = chunks(&inputs.sensors, pass.batch);
        let image = frame.begin(chunks.len());
        let values = Values::new(&inputs.params);
        let scene = SceneView::new(&inputs.scene, &self.scene, &self.tables);
        let all = image.par_chunks_mut(CHUNK).zip(&chunks).enumerate().with_max_len(1);
        let own = all.filter(|(i, _)| inputs.cluster.owns(*i));
        let rooms = Spare::default();
        self.begin_chunks(inputs, chunks.len());
        own.for_each(|(_, (out, &chunk))| {
            RenderChunk {
                inputs,
                rooms: &rooms,
                scene: &scene,
                values: &values,
                pass,
                chunk,
                sensors: &inputs.sensors,
                samples: 0..pass.spp,
                out,
            }
            .run();
            inputs.gauge.add();
        });
    }

    /// Tells the gauge that `count` chunks begin, unless light is traced as well: that takes longer, and its parts count instead.
    pub(super) fn begin_chunks(&self, inputs: &Inputs, count: usize) {
        if self.scene.light_tracer.is_none() {
            inputs.begin_chunks(count);
        }
    }

    /// Renders the channel `aov` of the surfaces that camera rays meet first.
    pub(in crate::device::cpu) fn render_aov(&self, inputs: &Inputs, pass: Pass, aov: u32, frame: &mut Frame) {
        let Pass { batch, keys, spp } = pass;
        let chunks = chunks(&inputs.sensors, batch);
        let image = frame.begin(chunks.len());
        let values = Values::new(&inputs.params);
        let scene = SceneView::new(&inputs.scene, &self.scene, &self.tables);
        let sampling = Sampling {
            inputs,
            sensors: &inputs.sensors,
            key: keys.pass,
            samples: 0..spp,
        };
        let pixel = |pixel: Pixel| {
            let mut sum = [0.0f32; 4];
            // An irradiance meter's weight makes irradiance of radiance; surfaces are seen as they are.
            let seen = 1.0 / sensor_weight(&inputs.sensors[pixel.sensor as usize]);
            for (sample, begun) in sampling.of(pixel).enumerate() {
                let Some(begun) = begun else {
                    return [0.0, 0.0, 0.0, MASKED];
                };
                let beside = match aov_axis(aov) {
                    Some(axis) => sampling.beside(&begun.ray, pixel, sample as u32, axis),
                    None => Some(begun.ray),
                };
                // Beyond the part of the film that a lens shows there is no difference.
                let value = beside.map_or([0.0; 3], |beside| aov_eval(&scene, &values, aov, &begun.ray, &beside));
                for c in 0..3 {
                    sum[c] += value[c] * (begun.weight * seen);
                }
            }
            sum.each(|x| x / spp as f32)
        };
        let all = image.par_chunks_mut(CHUNK).zip(&chunks).enumerate();
        let own = all.filter(|(i, _)| inputs.cluster.owns(*i));
        inputs.begin_chunks(chunks.len());
        own.for_each(|(_, (out, chunk))| {
            for Place { place, pixel: at, .. } in chunk.pixels(&inputs.sensors, batch, keys) {
                out[place] = pixel(at);
            }
            inputs.gauge.add();
        });
    }

    /// Adds a batch's derivatives to the gradients.
    pub(in crate::device::cpu) fn backpropagate(
        &mut self,
        inputs: &Inputs,
        pass: Pass,
        adjoint: &[[f32; 3]],
        updates: &mut Updates,
    ) -> Result<ReplayStats> {
        if self.scene.light_tracer.is_some() {
            return Err(only_rendered());
        }
        let chunks = chunks(&inputs.sensors, pass.batch);
        let estimator = self.scene.estimator;
        let spare = Spare::default();
        let stats = self.with_sums(inputs, pass, adjoint, updates, |pass| {
            // One chunk a task: chunks take so different times that with longer tasks threads would be idle at the end.
            let every = || chunks.par_iter().enumerate().with_max_len(1);
            let all = || every().filter(|(i, _)| inputs.cluster.owns(*i));
            match estimator {
                Estimator::PathReplay => Ok(all()
                    .map(|(i, &chunk)| spare.lend(|kept| pass.replay(i, chunk, kept)))
                    .reduce_with(Add::add)),
                Estimator::Tape => super::tape::differentiate(pass, &chunks).map(Some),
                Estimator::Radiative(variant) => {
                    let backpropagate_radiative =
                        |(i, &chunk)| pass.backpropagate_radiative(i, chunk, incident(variant), None);
                    Ok(all().map(backpropagate_radiative).reduce_with(Add::add))
                }
            }
        })?;
        let stats = stats.unwrap_or_default().over(inputs.cluster);
        self.tape_bytes = self.tape_bytes.max(stats.tape_bytes);
        Ok(stats)
    }

    /// Renders a batch and along the same paths carries the adjoint image, which is of an earlier render.
    pub(in crate::device::cpu) fn render_and_backpropagate(
        &mut self,
        inputs: &Inputs,
        pass: Pass,
        frame: &mut Frame,
        updates: &mut Updates,
    ) -> Result<ReplayStats> {
        let chunks = chunks(&inputs.sensors, pass.batch);
        let Estimator::Radiative(variant) = self.scene.estimator else {
            return Err(unshared());
        };
        if frame.adjoint().len() != chunks.len() * CHUNK {
            let message = "the adjoint image is not of this batch; pipelining needs the same pixels in every iteration";
            return Err(DeviceError::Unavailable(message.into()));
        }
        let (image, adjoint) = frame.begin_again(chunks.len());
        let stats = self.with_sums(inputs, pass, adjoint, updates, |pass| {
            let all = image.par_chunks_mut(CHUNK).zip(&chunks).enumerate();
            let all = all.filter(|(i, _)| inputs.cluster.owns(*i));
            let backpropagate_radiative = |(i, (out, &chunk)): (_, (&mut [_], _))| {
                pass.backpropagate_radiative(i, chunk, incident(variant), Some(out))
            };
            Ok(all.map(backpropagate_radiative).reduce_with(Add::add))
        });
        Ok(stats?.unwrap_or_default().over(inputs.cluster))
    }

    /// Does `work`, which accumulates derivatives in whole numbers, and adds these sums to the gradients.
    fn with_sums<T: Default>(
        &mut self,
        inputs: &Inputs,
        pass: Pass,
        adjoint: &[[f32; 3]],
        updates: &mut Updates,
        work: impl FnOnce(&Propagation<'_>) -> Result<T>,
    ) -> Result<T> {
        let Self {
            scene, tables, sums, ..
        } = self;
        let units = Units::new(largest(inputs, adjoint), pass.batch.pixels(), pass.spp);
        // Behind the parameters' gradients are those by the normals of meshes' vertices.
        let meshes = &scene.rest.meshes;
        let mut gradients = std::mem::take(&mut updates.gradients);
        let parameters = gradients.len();
        let normals = entries_of(meshes, |slot| !gradients[slot].is_empty());
        gradients.extend(normals.iter().map(|entries| vec![0.0; *entries]));
        let texels = inputs.params.parameters.iter().map(|p| p.shape.texels());
        let of_normals = normals
            .iter()
            .zip(meshes)
            .map(|(entries, mesh)| (entries / 3, mesh.slot as usize));
        let scales = texels
            .zip(0..)
            .chain(of_normals)
            .map(|(texels, slot)| units.in_one(spread(texels), scene.magnitudes[slot]));
        sums.begin(gradients.iter().map(Vec::len), scales.collect(), parameters);
        let values = Values::new(&inputs.params);
        let done = work(&Propagation {
            inputs,
            scene: &SceneView::new(&inputs.scene, scene, tables),
            values: &values,
            pass,
            adjoint,
            sums,
        });
        let failed = inputs.cluster.any(done.is_err());
        let added = sums.add_to(&mut gradients, inputs.cluster);
        let by_normals = gradients.split_off(parameters);
        send_on(meshes, &values, &by_normals, &mut gradients);
        updates.gradients = gradients;
        updates.activity.iter_mut().for_each(Activity::touch_all);
        added.map_err(|slot| {
            let slot = slot
                .checked_sub(parameters)
                .map_or(slot, |mesh| meshes[mesh].slot as usize);
            out_of_range(&inputs.params.parameters[slot].path)
        })?;
        if failed && done.is_ok() {
            return Err(DeviceError::TooLarge("another rank has no room for its share".into()));
        }
        done
    }
}

/// The largest magnitude in the adjoint images of all ranks.
fn largest(inputs: &Inputs, adjoint: &[[f32; 3]]) -> f32 {
    let of = |ds: &[[f32; 3]]| ds.iter().flatten().fold(0f32, |m, d| m.max(d.abs()));
    let chunks = adjoint.par_chunks(CHUNK).enumerate();
    let own = chunks.filter(|(i, _)| inputs.cluster.owns(*i));
    inputs.cluster.max(own.map(|(_, ds)| of(ds)).reduce(|| 0.0, f32::max))
}

/// The error of a parameter whose sums left their range.
fn out_of_range(path: &str) -> DeviceError {
    DeviceError::Overflow(format!(
        "the gradient of {path} left the range of its sums: it is more than a thousand times what the scene's lights and values \
         suggest; if values ran away, lower the learning rate or set `bounds`, else do not optimise it, or state light or lengths \
         in other units"
    ))
}

/// How a variant of radiative backpropagation estimates the radiance still to come.
fn incident(variant: Variant) -> Ahead {
    match variant {
        Variant::Unbiased | Variant::Pipelined => Ahead::Traced,
        Variant::Biased | Variant::BiasedPipelined => Ahead::Unit,
    }
}

/// Renders a chunk: the mean of some samples of each pixel.
pub(super) struct RenderChunk<'a> {
    pub inputs: &'a Inputs,
    /// Memory of waves.
    pub rooms: &'a Spare<Room>,
    /// The scene's sensors, or others in their places.
    pub sensors: &'a [SensorRecord],
    pub scene: &'a SceneView<'a>,
    pub values: &'a Values<'a>,
    pub pass: Pass<'a>,
    pub chunk: Chunk,
    pub samples: Range<u32>,
    pub out: &'a mut [[f32; 4]],
}

/// Paths that are followed together: enough to fill vectors until most of them have ended, and few enough for their
/// states to stay in a cache.
fn together(scene: &SceneView) -> usize {
    // A path's state in a wave is smaller, and vectors must be filled by paths at vertices of one kind.
    if is_among_surfaces(scene) { 1024 } else { 256 }
}

/// [`together`] for an adjoint: fewer, because each path has a replay cache; in a wave the fewer the more edges a path may
/// have, so that the memory for kept vertices does not grow with the length of paths.
fn replayed_together(scene: &SceneView) -> usize {
    let edges = (scene.settings.max_depth as usize).clamp(1, CACHED);
    if is_among_surfaces(scene) {
        (KEPT / edges).clamp(64, 1024)
    } else {
        128
    }
}

/// Vertices that a wave keeps for its replay.
const KEPT: usize = 2048;

impl RenderChunk<'_> {
    pub(super) fn run(self) {
        self.rooms.lend(|room| self.render(room));
    }

    fn render(self, room: &mut Room) {
        let Pass { batch, keys, .. } = self.pass;
        let scale = 1.0 / self.samples.len() as f32;
        let (scene, values, pilot) = (self.scene, self.values, Pilots(self.inputs.level));
        let mut sums = [[0.0f32; 4]; CHUNK];
        let together = together(scene);
        let sampling = Sampling {
            inputs: self.inputs,
            sensors: self.sensors,
            key: keys.pass,
            samples: self.samples.clone(),
        };
        let pixels = self.chunk.pixels(self.sensors, batch, keys);
        let pixels = pixels.map(|Place { place, pixel, .. }| (place, pixel));
        let mut rays = sampling.beginnings(pixels);
        let mut masked = Vec::new();
        while !rays.is_done() {
            let feed = |begin: &mut Begin<usize>| rays.take(together, begin, |place| masked.push(place));
            let add = |place: usize, weight, gathered: &Gathered<f32>, straight| {
                let sum = &mut sums[place];
                for c in 0..3 {
                    sum[c] += gathered.radiance[c] * weight;
                }
                sum[3] += f32::from(u8::from(straight));
            };
            gather_together(scene, values, &pilot, feed, room, add);
        }
        for (out, sum) in self.out.iter_mut().zip(&sums) {
            *out = sum.each(|x| x * scale);
        }
        for place in masked {
            self.out[place] = [0.0, 0.0, 0.0, MASKED];
        }
    }
}

/// What first walks keep for the replays of a chunk.
#[derive(Default)]
struct Kept {
    caches: Vec<ReplayCache<f32>>,
    notes: WalkNotes,
    room: Room,
}

/// Memory that no chunk of a pass is using.
#[derive(Default)]
pub(super) struct Spare<T>(Mutex<Vec<T>>);

impl<T: Default> Spare<T> {
    fn lend<U>(&self, work: impl FnOnce(&mut T) -> U) -> U {
        let all = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut lent = all().pop().unwrap_or_default();
        let done = work(&mut lent);
        all().push(lent);
        done
    }
}

/// A pass that sends a batch's derivatives to sums.
pub(in crate::device::cpu) struct Propagation<'a> {
    pub inputs: &'a Inputs,
    pub scene: &'a SceneView<'a>,
    values: &'a Values<'a>,
    pass: Pass<'a>,
    adjoint: &'a [[f32; 3]],
    pub sums: &'a Sums,
}

impl<'a> Propagation<'a> {
    /// A sink into the calling thread's sums.
    pub(in crate::device::cpu) fn sink(&self) -> Accumulate<'a> {
        Accumulate::new(self.sums, self.scene.common, self.scene.background)
    }

    /// The pixels of the `i`-th chunk, and the derivative by each of their samples.
    pub(in crate::device::cpu) fn pixels(&self, i: usize, chunk: Chunk) -> impl Iterator<Item = (Place, [f32; 3])> {
        let Pass { batch, keys, spp } = self.pass;
        let scale = 1.0 / spp as f32;
        let pixels = chunk.pixels(&self.inputs.sensors, batch, keys);
        pixels.map(move |place| (place, self.adjoint[i * CHUNK + place.place].each(|d| d * scale)))
    }

    /// The samples that the pass takes of each pixel.
    pub(in crate::device::cpu) fn sampling(&self) -> Sampling<'_> {
        Sampling {
            inputs: self.inputs,
            sensors: &self.inputs.sensors,
            key: self.pass.keys.pass,
            samples: 0..self.pass.spp,
        }
    }

    /// Path replay of a chunk; `kept` is memory to be used again.
    fn replay(&self, i: usize, chunk: Chunk, kept: &mut Kept) -> ReplayStats {
        let Kept { caches, notes, room } = kept;
        let mut stats = ReplayStats::default();
        let mut sink = self.sink();
        let pilot = Pilots(self.inputs.level);
        let together = replayed_together(self.scene);
        let carrying = self.pixels(i, chunk).filter(|(_, d)| *d != [0.0; 3]);
        let pixels = carrying.map(|(Place { pixel, .. }, d)| (d, pixel));
        let sampling = self.sampling();
        let mut rays = sampling.beginnings(pixels);
        while !rays.is_done() {
            let feed = |begin: &mut Begin<[f32; 3]>| rays.take(together, begin, |_| ());
            backpropagate_together(
                self.scene,
                self.values,
                &pilot,
                feed,
                caches,
                room,
                notes,
                &mut sink,
                |first, replay| {
                    stats.rays += 1;
                    stats.samples += u64::from(first.count);
                    stats.drifted += u64::from(drifted(first, replay));
                },
            );
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
        let scale = 1.0 / self.pass.spp as f32;
        let mut stats = ReplayStats::default();
        let mut sink = self.sink();
        let sampling = self.sampling();
        for (Place { place, pixel, .. }, d) in self.pixels(i, chunk) {
            let carries = d != [0.0; 3];
            if !carries && out.is_none() {
                continue;
            }
            let mut sum = [0.0f32; 4];
            for begun in sampling.of(pixel) {
                let Some(Beginning {
                    ray,
                    medium,
                    weight,
                    streams,
                }) = begun
                else {
                    sum = [0.0, 0.0, 0.0, MASKED];
                    break;
                };
                let (scene, values) = (self.scene, self.values);
                let [walk, extra] = [streams.walk(), streams.adjoint()];
                let path = if carries {
                    let d = d.each(|d| d * weight);
                    backpropagate_radiative::<f32, _, _>(
                        scene, values, &ray, medium, walk, extra, incident, d, &mut sink,
                    )
                } else {
                    gather::<f32, _, PRIMAL>(scene, values, &ray, medium, walk)
                };
                for c in 0..3 {
                    sum[c] += path.gathered.radiance[c] * weight * scale;
                }
                sum[3] += f32::from(u8::from(path.straight)) * scale;
                stats.rays += u64::from(carries);
                stats.samples += u64::from(path.gathered.count);
            }
            if let Some(out) = &mut out {
                out[place] = sum;
            }
        }
        stats
    }
}

/// Whether a replay leaves more radiance than rounding explains, the bound (9). The primal's radiance stands for the sum of
/// all contributions' magnitudes: where lights may be negative it is smaller, and too many paths count as drifted.
#[inline(always)]
fn drifted(first: &Gathered<f32>, replay: &Gathered<f32>) -> bool {
    let bound = 8.0 * (replay.count + 1) as f32 * f32::EPSILON;
    let mut drifted = false;
    for c in 0..3 {
        drifted |= replay.radiance[c].abs() > bound * first.radiance[c].abs();
    }
    drifted
}
