//! The PRB adjoint pass. Rays replay in parallel and leave compact records, sorted by brick and cell of the grids; then
//! each brick is summed by one thread, cell by cell, in ray order. Neither atomics nor a gradient copy a thread, and
//! the same bits whatever the number of threads.
//!
//! Rows of bricks along x are reduced in four turns by the parity of their places along y and z: rows of one turn share
//! no texel.

use std::marker::PhantomData;
use std::ops::Range;

use rayon::prelude::*;

use super::bricks::Bricks;
use super::packet::{self, Lane, Packet, PacketSink};
use super::records::{Replays, Unsorted};
use super::reduce::ReduceBrick;
use super::view::Arrays;
use crate::device::cpu::Cpu;
use crate::device::cpu::chunk::{CHUNK, Chunk, chunks};
use crate::device::cpu::shared::SharedSlice;
use crate::device::cpu::vector::level::Kernel;
use crate::device::cpu::vector::wide::Wide;
use crate::device::{Batch, Keys, ReplayStats};
use crate::resident::layout::SceneRecord;
use crate::transport::field::radiance_field::{LANES, Sample, Sink, State};
use crate::transport::lookup::background::background_adjoint;
use crate::transport::lookup::sh::Basis;

/// Records that a round of chunks may leave at most; what bounds the memory of the adjoint, however long rays are.
const ROUND_RECORDS: usize = 1 << 20;
/// Chunks of a round, even if they leave more.
const LEAST_CHUNKS: usize = 4;

impl Cpu {
    /// Adds a batch's derivatives to the gradients.
    pub(in crate::device::cpu) fn backpropagate_field(&mut self, batch: &Batch, keys: Keys, spp: u32) -> ReplayStats {
        let chunks = chunks(&self.resident, batch);
        let bricks = Bricks::new(&self.resident.scene);
        // Rounds take several chunks, for all threads to have something to do, and as many samples a pixel as then fit.
        let records = CHUNK * self.longest_ray();
        let samples = (ROUND_RECORDS / (LEAST_CHUNKS * records)).clamp(1, spp as usize);
        let per_round = (ROUND_RECORDS / (records * samples)).max(LEAST_CHUNKS);
        let mut replays = std::mem::take(&mut self.replays);
        let mut bases = std::mem::take(&mut self.bases);
        bases.resize(per_round.min(chunks.len()) * samples * CHUNK, [0.0; 16]);
        let mut stats = ReplayStats::default();
        let rounds = chunks.chunks(per_round).enumerate();
        let rounds = rounds.flat_map(|round| (0..spp).step_by(samples).map(move |first| (first, round)));
        for (first, (round, chunks)) in rounds {
            replays.resize_with(chunks.len().max(replays.len()), Replays::default);
            let used = &mut replays[..chunks.len()];
            let this = &*self;
            used.par_iter_mut()
                .zip(bases.par_chunks_mut(samples * CHUNK))
                .zip(chunks)
                .enumerate()
                .for_each(|(i, ((replays, bases), &chunk))| {
                    let adjoint = &this.adjoint[(round * per_round + i) * CHUNK..][..CHUNK];
                    this.level.run(ReplayChunk {
                        cpu: this,
                        batch,
                        keys,
                        spp,
                        samples: first..(first + samples as u32).min(spp),
                        chunk,
                        adjoint,
                        bricks,
                        first_ray: (i * samples * CHUNK) as u32,
                        replays,
                        bases,
                    });
                });
            self.reduce(bricks, used, &bases);
            for replay in used.iter() {
                stats.rays += replay.stats.rays;
                stats.samples += replay.stats.samples;
                stats.drifted += replay.stats.drifted;
            }
        }
        (self.replays, self.bases) = (replays, bases);
        stats
    }

    /// An upper bound of the number of samples along a ray.
    fn longest_ray(&self) -> usize {
        let scene = &self.resident.scene;
        if scene.has_field == 0 {
            return 1;
        }
        (self.resident.diagonal() / scene.step_length).ceil() as usize + 1
    }

    /// Sums the records of a round into the gradients.
    fn reduce(&mut self, bricks: Bricks, replays: &[Replays], bases: &[Basis]) {
        let (resident, level) = (&self.resident, self.level);
        let scene = &resident.scene;
        let activity = &self.activity;
        if let (Some(sigma_slot), Some(sh_slot)) = (resident.slots.sigma_t, resident.slots.sh_coeffs) {
            let (sigma, sh) = pair_mut(&mut self.gradients, sigma_slot, sh_slot);
            let (sigma, sh) = (SharedSlice::new(sigma), SharedSlice::new(sh));
            let activities = [sigma_slot, sh_slot].map(|slot| &activity[slot]);
            for color in 0..4 {
                bricks.of_color(color).into_par_iter().for_each(|row| {
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
                            });
                        }
                    }
                });
            }
        }
        if let Some(emitter) = resident.slots.emitter {
            let gradient = &mut self.gradients[emitter];
            if !gradient.is_empty() {
                activity[emitter].touch(0..gradient.len());
                for (direction, g) in replays.iter().flat_map(|r| &r.emitters) {
                    background_adjoint(scene, gradient, *direction, *g);
                }
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
    cpu: &'a Cpu,
    batch: &'a Batch,
    keys: Keys,
    spp: u32,
    /// Those of this round.
    samples: Range<u32>,
    chunk: Chunk,
    adjoint: &'a [[f32; 3]],
    bricks: Bricks,
    /// Index of the chunk's first ray in the round.
    first_ray: u32,
    replays: &'a mut Replays,
    /// Of the directions of the chunk's rays.
    bases: &'a mut [Basis],
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
    /// Keys of the places that the ray looks at.
    keys: [u32; LANES],
    level: PhantomData<W>,
}

impl<W: Wide> Sink<f32> for Recorder<'_, W> {
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
            cpu,
            batch,
            keys,
            spp,
            samples,
            chunk,
            adjoint,
            bricks,
            first_ray,
            replays,
            bases,
        } = self;
        let scene = &cpu.resident.scene;
        let view = Arrays::<W>::new(&cpu.params, &cpu.resident, &cpu.occupancy, batch);
        replays.clear();
        let scale = 1.0 / spp as f32;
        let mut scaled = [[0.0; 3]; CHUNK];
        for (s, d) in scaled.iter_mut().zip(adjoint) {
            *s = [d[0] * scale, d[1] * scale, d[2] * scale];
        }
        let mut packet = Packet::take();
        let mut rays = 0;
        let mut unsorted = Unsorted::take();
        for sample in samples {
            let mut pixels = chunk.pixels(&cpu.resident, batch, keys);
            while packet.fill(
                &cpu.resident,
                &mut pixels,
                packet::Sample {
                    keys,
                    index: sample,
                    adjoint: &scaled,
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
                for (lane, radiance) in packet.lanes.iter().zip(&packet.radiances) {
                    replays.stats.count(&lane.path.state, radiance);
                }
            }
        }
        packet.put_back();
        replays.sort(&unsorted, bricks.len());
        unsorted.put_back();
    }
}

impl ReplayStats {
    /// Takes note of a finished replay whose primal radiance was `radiance`, which is also the sum of the sizes of its
    /// contributions because none is negative.
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
