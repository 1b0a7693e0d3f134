//! The PRB adjoint pass. Rays replay in parallel and leave compact records, sorted by brick of the grids; then each
//! brick is summed by one thread, in ray order. Neither atomics nor a gradient copy a thread, and the same bits whatever
//! the number of threads.
//!
//! Bricks are reduced in eight rounds by the parity of their place along each axis: bricks of one round share no texel.

use rayon::prelude::*;

use super::Cpu;
use super::chunk::{CHUNK, Chunk, chunks};
use super::level::Kernel;
use super::packet::{Packet, Sample, TurnSink};
use super::shared::SharedSlice;
use super::step::Activity;
use super::view::Arrays;
use super::wide::{Wide, prefetch_sh, scatter_sh};
use crate::device::{Batch, Keys, ReplayStats};
use crate::kernels::occupancy::reachable;
use crate::resident::layout::SceneRecord;
use crate::transport::background::background_scatter;
use crate::transport::grid::grid_scatter;
use crate::transport::radiance_field::{LANES, Sink, State, same_size};
use crate::transport::sh::Basis;

/// Records that a round of chunks may leave at most; what bounds the memory of the adjoint, however long rays are.
const ROUND_RECORDS: usize = 1 << 20;

/// A sample's gradients, waiting for its brick.
#[derive(Debug, Clone, Copy, Default)]
struct Record {
    p: [f32; 3],
    /// Index of the ray in its chunk, for the basis of its direction.
    ray: u32,
    d_sigma: f32,
    d_color: [f32; 3],
}

/// What a chunk's replays leave. Kept between rounds, so that nothing is allocated in a running optimisation.
#[derive(Debug, Default)]
pub(super) struct Replays {
    records: Vec<Record>,
    bricks: Vec<u16>,
    /// `records` sorted by brick, ray order kept; brick b holds `starts[b]..starts[b + 1]`.
    sorted: Vec<Record>,
    starts: Vec<u32>,
    bases: Vec<Basis>,
    /// Direction and gradient of each ray's emitter.
    emitters: Vec<([f32; 3], [f32; 3])>,
    stats: ReplayStats,
}

/// The lattice of bricks: the same for both grids, and along each axis at least three texels of either a brick, so that
/// bricks two apart share no texel.
#[derive(Debug, Clone, Copy)]
struct Bricks {
    count: [u32; 3],
}

impl Bricks {
    fn new(scene: &SceneRecord) -> Self {
        let along = |axis: usize| {
            let texels = scene.sigma_size[axis].min(scene.sh_size[axis]);
            let edge = if texels >= 64 { 8 } else { 4 };
            // 32 per axis keep the brick's index within 16 bits.
            (texels / edge).clamp(1, 32)
        };
        Self {
            count: [along(0), along(1), along(2)],
        }
    }

    fn len(self) -> usize {
        self.count.iter().product::<u32>() as usize
    }

    #[inline(always)]
    fn of(self, p: [f32; 3]) -> u16 {
        let mut at = [0; 3];
        for axis in 0..3 {
            at[axis] = ((p[axis] * self.count[axis] as f32).max(0.0) as u32).min(self.count[axis] - 1);
        }
        ((at[2] * self.count[1] + at[1]) * self.count[0] + at[0]) as u16
    }

    /// Takes note that a brick's texels, in a grid of `size`, may have received gradients.
    fn touch(self, brick: u32, size: [u32; 4], channels: usize, activity: &Activity) {
        if activity.is_empty() {
            return;
        }
        let [nx, ny, _] = self.count;
        let place = [brick % nx, brick / nx % ny, brick / (nx * ny)];
        let reach = |a: usize| reachable(place[a] as usize, self.count[a] as usize, size[a] as usize);
        let ((x0, x1), (y0, y1), (z0, z1)) = (reach(0), reach(1), reach(2));
        let [width, height] = [size[0] as usize, size[1] as usize];
        for z in z0..=z1 {
            for y in y0..=y1 {
                let row = (z * height + y) * width;
                activity.touch((row + x0) * channels..(row + x1 + 1) * channels);
            }
        }
    }

    /// The bricks of one of eight colours.
    fn of_color(self, color: u32) -> Vec<u32> {
        let [nx, ny, nz] = self.count;
        let mut all = Vec::new();
        for z in (color >> 2..nz).step_by(2) {
            for y in ((color >> 1) & 1..ny).step_by(2) {
                for x in (color & 1..nx).step_by(2) {
                    all.push((z * ny + y) * nx + x);
                }
            }
        }
        all
    }
}

impl Cpu {
    /// Adds a batch's derivatives to the gradients.
    pub(super) fn propagate_batch(&mut self, batch: &Batch, keys: Keys, spp: u32) -> ReplayStats {
        let chunks = chunks(&self.resident, batch);
        let bricks = Bricks::new(&self.resident.scene);
        let per_round = (ROUND_RECORDS / (CHUNK * self.longest_ray() * spp as usize)).max(4);
        let mut replays = std::mem::take(&mut self.replays);
        let mut stats = ReplayStats::default();
        for (round, chunks) in chunks.chunks(per_round).enumerate() {
            replays.resize_with(chunks.len().max(replays.len()), Replays::default);
            let used = &mut replays[..chunks.len()];
            let this = &*self;
            used.par_iter_mut()
                .zip(chunks)
                .enumerate()
                .for_each(|(i, (replays, &chunk))| {
                    let adjoint = &this.adjoint[(round * per_round + i) * CHUNK..][..CHUNK];
                    this.level.run(ReplayChunk {
                        cpu: this,
                        batch,
                        keys,
                        spp,
                        chunk,
                        adjoint,
                        bricks,
                        replays,
                    });
                });
            self.reduce(bricks, used);
            for replay in used.iter() {
                stats.rays += replay.stats.rays;
                stats.samples += replay.stats.samples;
                stats.drifted += replay.stats.drifted;
            }
        }
        self.replays = replays;
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
    fn reduce(&mut self, bricks: Bricks, replays: &[Replays]) {
        let (resident, level) = (&self.resident, self.level);
        let scene = &resident.scene;
        let activity = &self.activity;
        if let (Some(sigma_slot), Some(sh_slot)) = (resident.slots.sigma_t, resident.slots.sh_coeffs) {
            let (sigma, sh) = pair_mut(&mut self.gradients, sigma_slot, sh_slot);
            let (sigma, sh) = (SharedSlice::new(sigma), SharedSlice::new(sh));
            let grids = [
                (sigma_slot, scene.sigma_size, 1),
                (sh_slot, scene.sh_size, scene.sh_size[3]),
            ];
            for color in 0..8 {
                bricks.of_color(color).into_par_iter().for_each(|brick| {
                    if replays
                        .iter()
                        .all(|r| r.starts[brick as usize] == r.starts[brick as usize + 1])
                    {
                        return;
                    }
                    level.run(ReduceBrick {
                        scene,
                        brick,
                        replays,
                        sigma: &sigma,
                        sh: &sh,
                    });
                    for (slot, size, channels) in grids {
                        bricks.touch(brick, size, channels as usize, &activity[slot]);
                    }
                });
            }
        }
        if let Some(emitter) = resident.slots.emitter {
            let gradient = &mut self.gradients[emitter];
            if !gradient.is_empty() {
                activity[emitter].touch(0..gradient.len());
                for (direction, g) in replays.iter().flat_map(|r| &r.emitters) {
                    background_scatter(scene, gradient, *direction, *g);
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
    chunk: Chunk,
    adjoint: &'a [[f32; 3]],
    bricks: Bricks,
    replays: &'a mut Replays,
}

/// Records the gradients of one chunk.
struct Recorder<'a> {
    replays: &'a mut Replays,
    bricks: Bricks,
    /// Index of the packet's first ray in the chunk, and of the ray whose turn it is.
    first: u32,
    ray: u32,
}

impl Sink<f32> for Recorder<'_> {
    #[inline(always)]
    fn sample(&mut self, p: [f32; 3], _: &Basis, d_sigma: f32, d_color: [f32; 3]) {
        self.replays.records.push(Record {
            p,
            ray: self.ray,
            d_sigma,
            d_color,
        });
        self.replays.bricks.push(self.bricks.of(p));
    }

    #[inline(always)]
    fn emitter(&mut self, d: [f32; 3], d_radiance: [f32; 3]) {
        self.replays.emitters.push((d, d_radiance));
    }
}

impl TurnSink for Recorder<'_> {
    #[inline(always)]
    fn turn(&mut self, lane: u32) {
        self.ray = self.first + lane;
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
            chunk,
            adjoint,
            bricks,
            replays,
        } = self;
        let scene = &cpu.resident.scene;
        let view = Arrays::<W>::new(&cpu.params, &cpu.resident, &cpu.occupancy);
        replays.clear();
        let scale = 1.0 / spp as f32;
        let mut scaled = [[0.0; 3]; CHUNK];
        for (s, d) in scaled.iter_mut().zip(adjoint) {
            *s = [d[0] * scale, d[1] * scale, d[2] * scale];
        }
        let mut packet = Packet::take();
        for sample in 0..spp {
            let mut pixels = chunk.pixels(&cpu.resident, batch, keys);
            while packet.fill(
                &cpu.resident,
                &mut pixels,
                Sample {
                    keys,
                    index: sample,
                    adjoint: &scaled,
                },
            ) {
                let first = replays.bases.len() as u32;
                for lane in &packet.lanes {
                    replays.bases.push(lane.path.basis());
                }
                let mut recorder = Recorder {
                    replays: &mut *replays,
                    bricks,
                    first,
                    ray: first,
                };
                packet.propagate(scene, &view, &mut recorder);
                for (lane, radiance) in packet.lanes.iter().zip(&packet.radiances) {
                    replays.stats.count(&lane.path.state, radiance);
                }
            }
        }
        packet.put_back();
        replays.sort(bricks.len());
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

impl Replays {
    #[inline(always)]
    fn clear(&mut self) {
        self.records.clear();
        self.bricks.clear();
        self.bases.clear();
        self.emitters.clear();
        self.stats = ReplayStats::default();
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> usize {
        (self.records.capacity() + self.sorted.capacity()) * size_of::<Record>()
            + 2 * self.bricks.capacity()
            + 4 * self.starts.capacity()
            + self.bases.capacity() * size_of::<Basis>()
            + 24 * self.emitters.capacity()
    }

    /// Counting sort by brick, stable.
    #[inline(always)]
    fn sort(&mut self, bricks: usize) {
        self.starts.clear();
        self.starts.resize(bricks + 1, 0);
        for &b in &self.bricks {
            self.starts[b as usize + 1] += 1;
        }
        for b in 0..bricks {
            self.starts[b + 1] += self.starts[b];
        }
        self.sorted.resize(self.records.len(), Record::default());
        for (record, &b) in self.records.iter().zip(&self.bricks) {
            let place = &mut self.starts[b as usize];
            self.sorted[*place as usize] = *record;
            *place += 1;
        }
        // Each start has moved to its brick's end, which is the next one's start.
        self.starts.rotate_right(1);
        self.starts[0] = 0;
    }
}

struct ReduceBrick<'a> {
    scene: &'a SceneRecord,
    brick: u32,
    replays: &'a [Replays],
    sigma: &'a SharedSlice<'a, f32>,
    sh: &'a SharedSlice<'a, f32>,
}

impl Kernel for ReduceBrick<'_> {
    type Output = ();

    #[inline(always)]
    fn run<W: Wide>(self) {
        // SAFETY: bricks reduced at the same time have the same colour, and such bricks share no texel (see `Bricks`),
        // so that no element is touched by two threads.
        let (sigma, sh) = unsafe { (self.sigma.get(), self.sh.get()) };
        let same_grid = same_size(self.scene);
        let brick = self.brick as usize;
        for replays in self.replays {
            let range = replays.starts[brick] as usize..replays.starts[brick + 1] as usize;
            for records in replays.sorted[range].chunks(LANES) {
                let mut p = [[0.0; LANES]; 3];
                for (lane, record) in records.iter().enumerate() {
                    for axis in 0..3 {
                        p[axis][lane] = record.p[axis];
                    }
                }
                let at_sigma = W::stencils(self.scene.sigma_size, &p);
                let at_color = if same_grid {
                    at_sigma
                } else {
                    W::stencils(self.scene.sh_size, &p)
                };
                prefetch_sh::<W>(self.scene.sh_size[3], sh, &at_color, (1 << records.len()) - 1);
                for (lane, record) in records.iter().enumerate() {
                    if !sigma.is_empty() {
                        grid_scatter(sigma, &at_sigma.lane(lane), record.d_sigma);
                    }
                    if !sh.is_empty() && record.d_color != [0.0; 3] {
                        let basis = &replays.bases[record.ray as usize];
                        scatter_sh(self.scene.sh_size[3], sh, &at_color.lane(lane), basis, record.d_color);
                    }
                }
            }
        }
    }
}
