//! The PRB adjoint pass. Rays replay in parallel and leave compact records, sorted by brick and cell of the grids; then
//! each brick is summed by one thread, cell by cell, in ray order. That takes neither atomics nor a copy of the gradient for
//! each thread, and gives the same bits whatever the number of threads.
//!
//! Rows of bricks along x are reduced in four turns by the parity of their places along y and z: rows of one turn share
//! no texel.

use std::marker::PhantomData;
use std::ops::Range;

use rayon::prelude::*;

use super::bricks::Bricks;
use super::packet::{self, Lane, Packet, PacketSink};
use super::passes::FieldPasses;
use super::ranks::{Shares, exchange_lists};
use super::records::{Replays, Unsorted};
use super::reduce::ReduceBrick;
use super::refine::{Rays, add_to_gradients, refine};
use super::round::Round;
use super::view::Arrays;
use crate::device::ReplayStats;
use crate::device::cpu::chunk::{CHUNK, Chunk, chunks};
use crate::device::cpu::passes::{Inputs, Pass};
use crate::device::cpu::shared::SharedSlice;
use crate::device::cpu::update::Updates;
use crate::device::cpu::vector::level::Kernel;
use crate::device::cpu::vector::wide::Wide;
use crate::each::EachEntry;
use crate::resident::field::FieldSlots;
use crate::resident::layout::SceneRecord;
use crate::resident::views::{SUMS, Views};
use crate::transport::field::radiance_field::{LANES, Sample, SampleSink, State, same_size};
use crate::transport::lookup::background::background_adjoint;
use crate::transport::lookup::sh::Basis;

impl FieldPasses {
    /// Adds a batch's derivatives to the gradients.
    pub(in crate::device::cpu) fn backpropagate(
        &mut self,
        inputs: &Inputs,
        pass: Pass,
        adjoint: &[[f32; 3]],
        updates: &mut Updates,
    ) -> ReplayStats {
        let chunks = chunks(&inputs.sensors, pass.batch);
        let bricks = Bricks::new(&inputs.scene);
        let round = Round::new(self.scene.longest_ray(&inputs.scene), pass.spp);
        let (per_round, samples) = (round.chunks, round.samples);
        let Self {
            scene,
            occupancy,
            replays,
            bases,
            shares,
            records: of_layers,
            ..
        } = self;
        let cluster = inputs.cluster;
        bases.resize(per_round.min(chunks.len()) * samples * CHUNK, [0.0; 16]);
        let with_field = scene.slots.is_some_and(|FieldSlots { sigma_t, sh_coeffs }| {
            [sigma_t, sh_coeffs]
                .into_iter()
                .any(|slot| !updates.gradients[slot].is_empty())
        });
        let views = scene.views.as_ref().filter(|views| views.are_wanted(&inputs.params));
        let mut sums = vec![[0.0; SUMS]; views.map_or(0, Views::len)];
        let mut stats = ReplayStats::default();
        let rounds = chunks.chunks(per_round).enumerate();
        let rounds = rounds.flat_map(|round| (0..pass.spp).step_by(samples).map(move |first| (first, round)));
        for (first_sample, (round, chunks)) in rounds {
            replays.resize_with(chunks.len().max(replays.len()), Replays::default);
            let used = &mut replays[..chunks.len()];
            used.par_iter_mut()
                .zip(bases.par_chunks_mut(samples * CHUNK))
                .zip(chunks)
                .enumerate()
                .for_each(|(i, ((replays, bases), &chunk))| {
                    if !cluster.owns(round * per_round + i) {
                        return replays.clear();
                    }
                    inputs.level.run(ReplayChunk {
                        slots: scene.slots,
                        occupancy,
                        inputs,
                        pass,
                        samples: first_sample..(first_sample + samples as u32).min(pass.spp),
                        chunk,
                        adjoint: &adjoint[(round * per_round + i) * CHUNK..][..CHUNK],
                        bricks,
                        first_ray: (i * samples * CHUNK) as u32,
                        replays,
                        bases,
                        with_field,
                        with_views: views.is_some(),
                    });
                });
            let slots = scene.slots.filter(|_| with_field);
            let shares = shares.as_ref().filter(|_| slots.is_some());
            let first = round * per_round;
            if !cluster.is_single() {
                exchange_lists(cluster, used, first, [inputs.emitter.is_some(), views.is_some()]);
            }
            if let Some(shares) = shares {
                let own = used.iter().enumerate().filter(|(i, _)| cluster.owns(first + i));
                own.for_each(|(_, replay)| replay.count_layers(bricks, of_layers));
                shares.exchange(used, first);
                shares.exchange_bases(&mut bases[..used.len() * samples * CHUNK], samples * CHUNK, first);
            }
            reduce(inputs, slots, (bricks, shares), used, bases, updates);
            for replay in used.iter() {
                stats.rays += replay.stats.rays;
                stats.samples += replay.stats.samples;
                stats.drifted += replay.stats.drifted;
                for (sensor, of_ray) in &replay.views {
                    // Sensors behind those of the scene have no sums.
                    if let Some(sum) = sums.get_mut(*sensor as usize) {
                        (0..SUMS).for_each(|k| sum[k] += f64::from(of_ray[k]));
                    }
                }
            }
        }
        if let Some(views) = views {
            add_to_gradients(views, &inputs.params, &sums, updates);
        }
        stats.over(cluster)
    }
}

/// Sums the records of a round into the gradients, in this rank's bricks alone.
fn reduce(
    inputs: &Inputs,
    slots: Option<FieldSlots>,
    (bricks, shares): (Bricks, Option<&Shares>),
    replays: &[Replays],
    bases: &[Basis],
    updates: &mut Updates,
) {
    let (scene, level) = (&inputs.scene, inputs.level);
    let Updates {
        gradients, activity, ..
    } = updates;
    if let Some(FieldSlots { sigma_t, sh_coeffs }) = slots {
        let (sigma, sh) = pair_mut(gradients, sigma_t, sh_coeffs);
        let (sigma, sh) = (SharedSlice::new(sigma), SharedSlice::new(sh));
        let activities = [sigma_t, sh_coeffs].each(|slot| &activity[slot]);
        let own = shares.map_or(0..bricks.len() as u32, Shares::bricks);
        let part_of = |brick| shares.filter(|_| same_size(scene))?.part_of(brick, scene.sh_size[2]);
        for color in 0..4 {
            let rows = bricks.of_color(color).into_par_iter();
            let rows = rows.filter(|row| own.contains(&row.start));
            rows.for_each(|row| {
                let wanted = part_of(row.start);
                for brick in row {
                    if replays.iter().any(|r| !r.of_brick(brick).is_empty()) {
                        level.run(ReduceBrick {
                            scene,
                            brick,
                            replays,
                            bases,
                            sigma: &sigma,
                            sh: &sh,
                            activities,
                            wanted: wanted.clone(),
                        });
                    }
                }
            });
        }
    }
    if let Some(emitter) = inputs.emitter {
        let gradient = &mut gradients[emitter];
        if !gradient.is_empty() {
            activity[emitter].touch(0..gradient.len());
            for (direction, g) in replays.iter().flat_map(|r| &r.emitters) {
                background_adjoint(scene, gradient, *direction, *g);
            }
        }
    }
}

/// Two different elements of a list of arrays.
fn pair_mut(arrays: &mut [Vec<f32>], a: usize, b: usize) -> (&mut [f32], &mut [f32]) {
    let [a, b] = arrays
        .get_disjoint_mut([a, b])
        .expect("the slots of a field are different parameters");
    (a, b)
}

struct ReplayChunk<'a> {
    slots: Option<FieldSlots>,
    occupancy: &'a [u8],
    inputs: &'a Inputs,
    pass: Pass<'a>,
    /// The samples of each pixel that this round replays.
    samples: Range<u32>,
    chunk: Chunk,
    adjoint: &'a [[f32; 3]],
    bricks: Bricks,
    /// Index of the chunk's first ray in the round.
    first_ray: u32,
    replays: &'a mut Replays,
    /// Spherical harmonics of the directions of the chunk's rays.
    bases: &'a mut [Basis],
    /// Whether derivatives by the field are wanted, and by the views.
    with_field: bool,
    with_views: bool,
}

/// Records the gradients of one chunk.
struct Recorder<'a, W> {
    unsorted: &'a mut Unsorted,
    emitters: &'a mut Vec<([f32; 3], [f32; 3])>,
    bricks: Bricks,
    /// Index of the packet's first ray in the round, and of the ray whose turn it is.
    first: u32,
    ray: u32,
    /// Number of the packet's first record.
    begin: usize,
    /// Brick and cell of each of the places on the ray that are being evaluated.
    keys: [u32; LANES],
    level: PhantomData<W>,
}

impl<W: Wide> SampleSink<f32> for Recorder<'_, W> {
    #[inline(always)]
    fn approach(&mut self, p: &[[f32; LANES]; 3]) {
        self.keys = W::keys(&self.bricks, p);
    }

    #[inline(always)]
    fn note(&mut self, lane: usize, sample: &Sample<f32>) {
        self.unsorted.push(self.keys[lane], self.ray, sample);
    }

    /// Samples are replayed by [`PacketSink::replay`].
    #[inline(always)]
    fn sample(&mut self, _: [f32; 3], _: &Basis, _: f32, _: [f32; 3]) {}

    #[inline(always)]
    fn emitter(&mut self, d: [f32; 3], d_radiance: [f32; 3]) {
        self.emitters.push((d, d_radiance));
    }
}

impl<W: Wide> PacketSink for Recorder<'_, W> {
    #[inline(always)]
    fn turn(&mut self, lane: u32) {
        self.ray = self.first + lane;
    }

    #[inline(always)]
    fn replay(&mut self, scene: &SceneRecord, lanes: &mut [Lane]) {
        self.unsorted.replay(scene, self.begin, lanes, self.first);
    }
}

impl Kernel for ReplayChunk<'_> {
    type Output = ();

    #[inline(always)]
    fn run<W: Wide>(self) {
        let Self {
            slots,
            occupancy,
            inputs,
            pass: Pass { batch, keys, spp },
            samples,
            chunk,
            adjoint,
            bricks,
            first_ray,
            replays,
            bases,
            with_field,
            with_views,
        } = self;
        let scene = &inputs.scene;
        let view = Arrays::<W>::new(inputs, slots, occupancy, batch);
        replays.clear();
        let scale = 1.0 / spp as f32;
        let mut scaled = [[0.0; 3]; CHUNK];
        for (i, d) in adjoint.iter().enumerate() {
            scaled[i] = [d[0] * scale, d[1] * scale, d[2] * scale];
        }
        let mut packet = Packet::take();
        let mut rays = 0;
        let mut unsorted = Unsorted::take();
        for sample in samples {
            let mut pixels = chunk.pixels(&inputs.sensors, batch, keys);
            while packet.fill(
                inputs,
                &mut pixels,
                packet::Sample {
                    keys,
                    index: sample,
                    adjoint: &scaled,
                    with_casts: with_views,
                },
            ) {
                let first = first_ray + rays as u32;
                for lane in &packet.lanes {
                    bases[rays] = lane.path.basis();
                    rays += 1;
                }
                let mut recorder = Recorder::<W> {
                    begin: unsorted.len(),
                    unsorted: &mut unsorted,
                    emitters: &mut replays.emitters,
                    bricks,
                    first,
                    ray: first,
                    keys: [0; LANES],
                    level: PhantomData,
                };
                packet.backpropagate(scene, &view, &mut recorder);
                if with_views {
                    let begin = recorder.begin;
                    let rays = Rays {
                        lanes: &packet.lanes,
                        casts: &packet.casts,
                        bases: &bases[(first - first_ray) as usize..],
                        first,
                    };
                    let records = unsorted.records_from(begin);
                    refine((scene, &inputs.sensors), &view, &rays, records, &mut replays.views);
                }
                for (lane, radiance) in packet.lanes.iter().zip(&packet.radiances) {
                    replays.stats.count(&lane.path.state, radiance);
                }
            }
        }
        packet.put_back();
        if with_field {
            replays.sort(&unsorted, bricks.len());
        }
        unsorted.put_back();
    }
}

impl ReplayStats {
    /// Counts a finished replay whose primal radiance was `radiance`. In the bound (9) that stands for the sum of all
    /// contributions' magnitudes: where the background may be negative it is smaller, and too many rays count as drifted.
    #[inline(always)]
    fn count(&mut self, replay: &State<f32>, radiance: &[f32; 3]) {
        self.rays += 1;
        self.samples += u64::from(replay.count);
        let bound = 8.0 * (replay.count + 1) as f32 * f32::EPSILON;
        let mut drifted = false;
        for c in 0..3 {
            drifted |= replay.radiance[c].abs() > bound * radiance[c].abs();
        }
        self.drifted += u64::from(drifted);
    }
}
