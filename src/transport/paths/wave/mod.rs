//! Paths among surfaces followed together: all go from one surface to the next at a time. Rays and shadow rays are traced many
//! at a time (`scene/batch/`), and vertices of one kind are shaded side by side in the lanes of vectors ([`shading`]); vertices
//! of other kinds are shaded one by one, by the functions of a single path (`alone`). Each path takes the steps of
//! [`super::volpath`], from the same random numbers and to the same bits.

mod alone;
pub mod block;
mod blocks;
mod edges;
mod light;
mod scores;
pub mod shading;

use super::packet::Pilot;
use super::replay_cache::CACHED;
use super::starts::Starts;
use crate::each::EachEntry;
use crate::resident::layout::{BsdfRecord, LightRecord, NONE, bsdf, leaf, slots_of};
use crate::transport::mode::GATHER;
use crate::transport::number::rgb::Rgb;
use crate::transport::rays::random::Key;
use crate::transport::rays::sampler::Streams;
use crate::transport::scene::batch::images::is_image;
use crate::transport::scene::batch::{Hits, LANES, Seen, facing};
use crate::transport::scene::bsdf::textures;
use crate::transport::scene::light::Drawn;
use crate::transport::scene::records::{Fields, SceneView, Sink};
use crate::transport::scene::shape::Hit;
use crate::transport::scene::sky::sky_is_wanted;
use alone::Alone;
use block::{Block, Kind, Lanes3, Vertices};
use edges::{Edges, Paths, Shadows, Zeros};
use shading::Lamps;

/// Whether paths of this scene can be followed in waves: among opaque surfaces that stand still, without media.
pub fn is_among_surfaces(scene: &SceneView) -> bool {
    let settings = scene.settings;
    scene.media.is_empty()
        && scene.is_opaque
        && settings.surfaces > 0
        && settings.hide_emitters == 0
        && !scene.attached
        && !scene.moves()
}

/// Up to this many lanes look an image up one by one, more in a vector.
const FEW: u32 = 3;

/// A contribution that a path has gathered, times its throughput without the factors of zero, which `zeros` counts.
#[derive(Debug, Clone, Copy)]
struct Gain {
    path: u32,
    value: Rgb<f32>,
    zeros: Zeros,
}

/// Queues of paths that are scattered, by the index of their edge, each with its side of a BSDF: two for each kind, whose
/// textures are no images or are, and one for all other BSDFs.
type Queues = [Vec<(u32, Side)>; ALONE + 1];

/// The queue of paths that are shaded one by one.
const ALONE: usize = 2 * Kind::ALL.len();

/// What derivatives by a drawn light need.
#[derive(Debug, Clone, Copy)]
struct Shining {
    light: u32,
    /// Its index in [`Room::points`], for lights that were drawn path by path; else [`NONE`].
    point: u32,
    /// What its radiance is multiplied by, besides the throughput `beta`.
    factor: Rgb<f32>,
    beta: Rgb<f32>,
}

/// The lanes of a block whose derivatives are sought.
#[derive(Debug, Clone, Copy)]
struct Kept {
    /// A bit for each lane whose derivatives are sought, and one for each of these whose light has arrived.
    wanted: u32,
    arrived: u32,
}

/// What a first walk had kept after an edge: its numbers of gains, of blocks, and of vertices that are shaded one by one.
#[derive(Debug, Clone, Copy)]
struct Mark {
    gains: usize,
    blocks: usize,
    alone: usize,
}

/// How a wave treats one side of a BSDF.
#[derive(Debug, Clone, Copy)]
struct Side {
    /// The first leaf, and in which queue paths wait for it.
    leaf: u32,
    /// [`leaf::TURNED`] if the leaf is turned over, else zero.
    turned: u32,
    queue: u8,
    /// Whether derivatives by its textures are sought.
    wanted: bool,
}

/// Memory that waves of one pass use one after another.
#[derive(Debug, Default)]
pub struct Room {
    /// Front and back of each BSDF.
    sides: Vec<[Side; 2]>,
    /// Whether derivatives by the index of refraction of a rough conductor are sought.
    indices_wanted: bool,
    key: Key,
    pub(super) paths: Paths,
    /// The derivatives by the radiances of paths; none in a primal pass.
    d_radiance: Vec<[f32; 3]>,
    edges: Edges,
    hits: Hits,
    /// The indices of rays that meet nothing, and, in vectors, their directions and the background's radiance and pdf there.
    escaped: Vec<u32>,
    directions: Vec<Lanes3>,
    seen: Vec<Seen>,
    queues: Queues,
    next_edges: Edges,
    shadows: Shadows,
    /// One for each shadow ray, where derivatives by lights are sought.
    shining: Vec<Shining>,
    points: Vec<Drawn>,
    blocked: Vec<u32>,
    gains: Vec<Gain>,
    /// For each block whose derivatives are sought: its lanes, and its vertices. The two blocks that are shaded in turn stay in
    /// the cache.
    kept: Vec<Kept>,
    vertices: Vec<Vertices>,
    blocks: Option<Box<[Block; 2]>>,
    alone: Vec<Alone>,
    marks: Vec<Mark>,
}

impl Room {
    /// Empties what a wave has left.
    fn clear(&mut self) {
        self.paths.count = 0;
        self.d_radiance.clear();
        self.edges.count = 0;
        self.forget();
    }

    /// Drops what a first walk has kept.
    fn forget(&mut self) {
        self.gains.clear();
        self.kept.clear();
        self.vertices.clear();
        self.alone.clear();
        self.marks.clear();
    }
}

/// The paths, and what a first walk keeps for the replay.
#[derive(Debug)]
pub(super) struct Wave<'a, F, S> {
    scene: &'a SceneView<'a>,
    fields: &'a F,
    /// Of a first walk, what derivatives are sent to.
    sink: S,
    depth: u32,
    lamps: Lamps<'a>,
    /// Whether derivatives by a light are sought.
    lights_wanted: bool,
    /// Whether a first walk sends derivatives, and keeps what its replay needs.
    keeps: bool,
    pub(super) room: &'a mut Room,
}

impl<'a, F: Fields<f32>, S: Sink<f32>> Wave<'a, F, S> {
    /// No paths yet.
    pub(super) fn new(scene: &'a SceneView<'a>, fields: &'a F, sink: S, room: &'a mut Room) -> Self {
        let slots = |texture: u32| slots_of(scene.textures, texture).into_iter();
        let of_light = |record: &LightRecord| {
            (record.slot != NONE && sink.wants(record.slot))
                || record.texture != NONE && slots(record.texture).any(|slot| sink.wants(slot))
        };
        room.clear();
        if room.sides.is_empty() {
            room.sides = scene.bsdfs.iter().map(|record| sides(scene, record, &sink)).collect();
            room.indices_wanted = scene.leaves.iter().any(|leaf| {
                let mut index = textures(leaf).take(2).flat_map(slots);
                leaf.kind == leaf::ROUGH_CONDUCTOR && index.any(|slot| sink.wants(slot))
            });
        }
        Self {
            lamps: Lamps::new(scene, fields),
            lights_wanted: scene.lights.iter().any(of_light) || sky_is_wanted(scene, &sink),
            keeps: true,
            scene,
            fields,
            sink,
            depth: 0,
            room,
        }
    }

    /// Adds paths.
    pub(super) fn begin(&mut self, starts: &Starts) {
        let end = self.room.edges.count + starts.count;
        self.room.edges.make_room(end);
        self.room.next_edges.make_room(end);
        self.room.shadows.make_room(end);
        self.room.key = starts.key;
        self.room.paths.begin(starts);
        self.room.edges.begin(starts);
    }

    /// [`Self::begin`], with the derivatives by the paths' weighted radiances.
    pub(super) fn begin_adjoint(&mut self, starts: &Starts, d_pixel: &[[f32; 3]]) {
        for d in starts.by_radiance(d_pixel) {
            self.room.d_radiance.push(d);
        }
        self.begin(starts);
    }

    /// Follows all paths until they end, or have this many edges.
    pub(super) fn run<const MODE: u8>(&mut self, pilot: &impl Pilot, edges: u32) {
        if self.depth >= self.scene.settings.max_depth {
            if self.depth == 0 {
                self.room.paths.straight.fill(true);
            }
            self.room.edges.count = 0;
            return;
        }
        let mut queues = std::mem::take(&mut self.room.queues);
        let mut blocks = self.room.blocks.take().unwrap_or_default();
        while self.room.edges.count > 0 && self.depth < edges {
            if self.depth > 0 && self.depth + 1 == self.scene.settings.max_depth && self.lamps.shapes.is_some() {
                self.leave_light_alone::<MODE>(pilot);
            }
            let Room { edges, hits, .. } = &mut *self.room;
            pilot.look(self.scene, &edges.rays, edges.count, hits);
            queues.iter_mut().for_each(Vec::clear);
            self.arrive::<MODE>(pilot, &mut queues);
            self.scatter::<MODE>(pilot, &queues, &mut blocks);
            for &(i, _) in &queues[ALONE] {
                self.scatter_alone::<MODE>(i as usize);
            }
            self.settle_shadows::<MODE>(pilot);
            if MODE == GATHER && self.keeps {
                self.room.marks.push(Mark {
                    gains: self.room.gains.len(),
                    blocks: self.room.kept.len(),
                    alone: self.room.alone.len(),
                });
            }
            self.take_next();
        }
        self.room.queues = queues;
        self.room.blocks = Some(blocks);
    }

    /// Makes the rays that paths go on with the present ones.
    fn take_next(&mut self) {
        std::mem::swap(&mut self.room.edges, &mut self.room.next_edges);
        self.room.next_edges.count = 0;
    }

    /// Scatters the paths of queues, block by block. Each block is prepared before the previous one is shaded, so that what it
    /// prefetches arrives in time.
    fn scatter<const MODE: u8>(&mut self, pilot: &impl Pilot, queues: &Queues, [ahead, block]: &mut [Block; 2]) {
        let (mut ahead, mut block) = (ahead, block);
        let mut waiting = None;
        for (place, queue) in queues[..ALONE].iter().enumerate() {
            for group in queue.chunks(LANES) {
                let wanted = self.fill::<MODE>(pilot, ahead, Kind::ALL[place / 2], group);
                pilot.prepare(self.scene, &self.lamps, ahead);
                std::mem::swap(&mut ahead, &mut block);
                if let Some(wanted) = waiting.replace(wanted) {
                    pilot.shade(self.scene, &self.lamps, MODE, ahead);
                    self.leave::<MODE>(ahead, wanted);
                }
            }
        }
        if let Some(wanted) = waiting {
            pilot.shade(self.scene, &self.lamps, MODE, block);
            self.leave::<MODE>(block, wanted);
        }
    }

    /// The adjoint of all paths. Afterwards the radiance left in [`Paths::left`] is zero up to rounding.
    ///
    /// A replay begins with all of a path's radiance, but memory for vertices must be bounded. Paths that go on beyond
    /// [`CACHED`] edges are therefore followed to their end first, with nothing kept, and from there on once more, as many
    /// edges at a time.
    pub(super) fn backpropagate(&mut self, pilot: &impl Pilot) {
        let edges = CACHED as u32;
        self.run::<GATHER>(pilot, edges);
        if self.room.edges.count == 0 {
            self.room.paths.begin_replay();
            return self.replay(pilot);
        }
        let (on_the_way, depth) = (self.room.edges.clone(), self.depth);
        self.keeps = false;
        self.run::<GATHER>(pilot, u32::MAX);
        let gathered = self.room.paths.gathered.clone();
        (self.room.edges, self.depth) = (on_the_way, depth);
        self.keeps = true;
        self.room.paths.begin_replay();
        loop {
            self.replay(pilot);
            if self.room.edges.count == 0 {
                self.room.paths.gathered = gathered;
                return;
            }
            self.room.forget();
            self.run::<GATHER>(pilot, self.depth + edges);
        }
    }

    /// Adds the light that paths meet, and puts each path that is scattered into the queue of its BSDF's kind, or into the last
    /// one ([`ALONE`]).
    fn arrive<const MODE: u8>(&mut self, pilot: &impl Pilot, queues: &mut Queues) {
        let scene = self.scene;
        let seen = self.depth + 1;
        for i in 0..self.room.edges.count {
            let surface = self.room.hits.surface[i];
            if surface == NONE {
                self.room.escaped.push(i as u32);
                continue;
            }
            let record = &scene.surfaces[surface as usize];
            let facing = self.room.hits.facing[i];
            if record.light != NONE && facing & facing::OUTSIDE != 0 {
                self.meet_light::<MODE>(i, &scene.lights[record.light as usize]);
            }
            if seen >= scene.settings.max_depth {
                continue;
            }
            let side = self.room.sides[record.bsdf as usize][usize::from(facing & facing::BEHIND != 0)];
            queues[usize::from(side.queue)].push((i as u32, side));
        }
        self.escape::<MODE>(pilot);
        self.depth = seen;
    }

    /// The random numbers of a path.
    #[inline(always)]
    fn streams(&self, path: u32) -> Streams {
        let (pixel, sample) = self.room.paths.source(path as usize);
        Streams {
            key: self.room.key,
            pixel,
            sample,
        }
    }

    /// The hit at the end of an edge.
    #[inline(always)]
    fn hit(&self, i: usize) -> Hit {
        self.room.hits.get(i).expect("it has met a surface")
    }
}

/// Both sides of a BSDF.
fn sides<S: Sink<f32>>(scene: &SceneView, record: &BsdfRecord, sink: &S) -> [Side; 2] {
    [record.front, record.back].each(|[first, count]| {
        let leaf = scene.leaves.get(first as usize).filter(|_| count == 1);
        let textures = || leaf.into_iter().flat_map(textures);
        let slots = || textures().flat_map(|texture| slots_of(scene.textures, texture));
        let wanted = slots().any(|slot| sink.wants(slot));
        let smooth = record.flags & bsdf::SMOOTH != 0;
        // Derivatives of mirrors and glass are sent one by one.
        let fits = |kind: &Kind| smooth == kind.is_smooth() && (smooth || !wanted);
        let kind = leaf
            .filter(|_| record.flags & bsdf::ANISOTROPIC == 0)
            .and_then(Kind::of)
            .filter(fits);
        Side {
            leaf: first,
            turned: leaf.map_or(0, |leaf| leaf.flags & leaf::TURNED),
            queue: kind.map_or(ALONE as u8, |kind| {
                2 * kind as u8 + u8::from(textures().any(|k| is_image(&scene.textures[k as usize])))
            }),
            wanted,
        }
    })
}
