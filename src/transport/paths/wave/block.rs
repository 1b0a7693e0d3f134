//! Sixteen paths at vertices whose BSDFs are of one kind, side by side in the lanes of vectors.

use super::edges::Zeros;
use crate::each::{EachEntry, each_index};
use crate::resident::layout::{LeafRecord, NONE, leaf};
use crate::transport::rays::random::Key;
use crate::transport::rays::sampler::{blocks_of, dot};
use crate::transport::scene::batch::{DrawnCells, LANES};
use crate::transport::scene::shape::SurfacePoint;

/// A number for each lane, and a vector or a colour.
pub type Lanes<T> = [T; LANES];
pub type Lanes3 = [Lanes<f32>; 3];

/// Most textures of a kind.
pub const TEXTURES: usize = 5;

/// Random numbers that are computed ahead: a light, a direction and roulette take at most this many.
const AHEAD: usize = 8;

/// Kinds of BSDF leaves that are evaluated in lanes, if they are alone on their side of a surface and have no normal or bump
/// map.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Diffuse,
    /// With GGX microfacets, sampled by visible normals.
    RoughConductor,
    Conductor,
    Dielectric,
}

impl Kind {
    pub const ALL: [Self; 4] = [Self::Diffuse, Self::RoughConductor, Self::Conductor, Self::Dielectric];

    /// The kind of a leaf, if it has one.
    pub fn of(record: &LeafRecord) -> Option<Self> {
        if record.factors > 0 || record.relief != NONE {
            return None;
        }
        match record.kind {
            leaf::DIFFUSE => Some(Self::Diffuse),
            leaf::ROUGH_CONDUCTOR if record.flags & (leaf::BECKMANN | leaf::ALL_NORMALS) == 0 => {
                Some(Self::RoughConductor)
            }
            leaf::CONDUCTOR => Some(Self::Conductor),
            leaf::DIELECTRIC => Some(Self::Dielectric),
            _ => None,
        }
    }

    /// Whether it has a value for every direction, in contrast to a mirror or smooth glass.
    #[inline(always)]
    pub fn is_smooth(self) -> bool {
        matches!(self, Self::Diffuse | Self::RoughConductor)
    }
}

/// Sixteen vertices side by side: what derivatives by their textures need to know. Lanes from `count` on repeat the first. Each
/// vector is one cache line: the fields that are no vectors come last.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
pub struct Vertices {
    /// The path's place among those that are followed together.
    pub path: Lanes<u32>,
    pub beta: Lanes3,
    pub zeros: Lanes<Zeros>,
    pub p: Lanes3,
    pub uv: [Lanes<f32>; 2],
    pub triangle: Lanes<u32>,
    pub weights: [Lanes<f32>; 2],
    /// The leaf, and the values of its textures.
    pub leaf: Lanes<u32>,
    pub values: [Lanes3; TEXTURES],
    /// The direction that the path comes from as the leaf sees it.
    pub wi: Lanes3,
    /// Of a light that was drawn: its direction as the leaf sees it, the weight of [`crate::transport::scene::light::Drawn`],
    /// then times that of MIS, and its radiance.
    pub light_wo: Lanes3,
    pub light_weight: Lanes<f32>,
    pub light_radiance: Lanes3,
    /// The direction that the path is turned into as the leaf sees it, its pdf, and what the throughput is multiplied by.
    pub wo: Lanes3,
    pub pdf: Lanes<f32>,
    pub weight: Lanes3,
    /// 1 where there is such a direction.
    pub turns: Lanes<u32>,
    pub kind: Kind,
    pub count: usize,
}

/// Paths at their vertices: where they are, and what becomes of them. Vectors lie as in [`Vertices`].
#[derive(Debug, Clone)]
#[repr(C, align(64))]
pub struct Block {
    pub at: Vertices,
    /// The random numbers of each: sensor, pixel and sample, the first block, and how many are drawn.
    pub counters: [Lanes<u32>; 4],
    pub drawn: Lanes<u32>,
    /// The next random numbers, and the cells that they draw on an environment map, if directions may be drawn from one.
    pub next: [Lanes<f32>; AHEAD],
    pub cells: DrawnCells,
    pub eta: Lanes<f32>,
    pub incoming: Lanes3,
    pub normal: Lanes3,
    pub shading: Lanes3,
    pub clearance: Lanes<f32>,
    /// Whether the leaf is turned over.
    pub turned: Lanes<u32>,
    /// 1 where a path goes on so far.
    pub alive: Lanes<u32>,
    /// The local frame.
    pub s: Lanes3,
    pub t: Lanes3,
    /// 1 where a light was drawn that may light the point: its index, where its shadow ray begins, its direction, its distance
    /// and its pdf.
    pub lit: Lanes<u32>,
    pub light: Lanes<u32>,
    pub light_origin: Lanes3,
    pub light_direction: Lanes3,
    pub light_distance: Lanes<f32>,
    pub light_pdf: Lanes<f32>,
    /// The BSDF's value for it times the weight.
    pub light_factor: Lanes3,
    /// The direction that the path is turned into, in the world, and where it goes on.
    pub direction: Lanes3,
    pub origin: Lanes3,
    /// Throughput and its zeros afterwards.
    pub next_beta: Lanes3,
    pub next_zeros: Lanes<Zeros>,
    /// Segments so far, of all, and the pass's key.
    pub depth: u32,
    pub key: Key,
}

impl Vertices {
    const fn new() -> Self {
        let (none, zero, zeros) = ([0; LANES], [0.0; LANES], [[0.0; LANES]; 3]);
        Self {
            kind: Kind::Diffuse,
            count: 0,
            path: none,
            beta: zeros,
            zeros: [Zeros::NONE; LANES],
            p: zeros,
            uv: [zero; 2],
            triangle: none,
            weights: [zero; 2],
            leaf: none,
            values: [zeros; TEXTURES],
            wi: zeros,
            light_wo: zeros,
            light_weight: zero,
            light_radiance: zeros,
            wo: zeros,
            pdf: zero,
            weight: zeros,
            turns: none,
        }
    }

    /// A bit for each lane that has this leaf.
    #[inline(always)]
    pub fn lanes_of(&self, leaf: u32) -> u32 {
        let mut bits = 0;
        for lane in 0..LANES {
            bits |= u32::from(self.leaf[lane] == leaf) << lane;
        }
        bits
    }

    /// Where textures are looked up in a lane.
    #[inline(always)]
    pub fn point(&self, lane: usize) -> SurfacePoint {
        SurfacePoint {
            p: Block::lane(&self.p, lane),
            uv: [0, 1].each(|a| self.uv[a][lane]),
            triangle: self.triangle[lane],
            weights: [0, 1].each(|a| self.weights[a][lane]),
        }
    }
}

impl Block {
    pub fn new() -> Self {
        let (none, zero, zeros) = ([0; LANES], [0.0; LANES], [[0.0; LANES]; 3]);
        Self {
            at: Vertices::new(),
            depth: 0,
            key: [0; 4],
            counters: [none; 4],
            drawn: none,
            next: [zero; AHEAD],
            cells: DrawnCells::NONE,
            eta: zero,
            incoming: zeros,
            normal: zeros,
            shading: zeros,
            clearance: zero,
            turned: none,
            alive: none,
            s: zeros,
            t: zeros,
            lit: none,
            light: none,
            light_origin: zeros,
            light_direction: zeros,
            light_distance: zero,
            light_pdf: zero,
            light_factor: zeros,
            direction: zeros,
            origin: zeros,
            next_beta: zeros,
            next_zeros: [Zeros::NONE; LANES],
        }
    }

    /// The vector of a lane.
    #[inline(always)]
    pub fn lane(of: &Lanes3, lane: usize) -> [f32; 3] {
        [0, 1, 2].each(|a| of[a][lane])
    }

    /// Sets the vector of a lane.
    #[inline(always)]
    pub fn put(to: &mut Lanes3, lane: usize, v: [f32; 3]) {
        for a in 0..3 {
            to[a][lane] = v[a];
        }
    }

    /// The origin of a ray that leaves the point of a lane in `direction`.
    #[inline(always)]
    pub fn leave(&self, lane: usize, direction: [f32; 3]) -> [f32; 3] {
        let normal = Self::lane(&self.normal, lane);
        let (outwards, inwards) = (self.clearance[lane], -self.clearance[lane]);
        let step = std::hint::select_unpredictable(dot(normal, direction) < 0.0, inwards, outwards);
        [0, 1, 2].each(|a| self.at.p[a][lane] + normal[a] * step)
    }

    /// The next `AHEAD` random numbers of each path.
    #[inline(always)]
    pub fn look_ahead(&self) -> [Lanes<f32>; AHEAD] {
        let mut all = [[0.0; LANES]; AHEAD + 4];
        let mut is_whole = true;
        for lane in 0..LANES {
            is_whole &= self.drawn[lane].is_multiple_of(4);
        }
        // Where no path has used a part of its first block, the last one is not needed.
        let count = if is_whole { AHEAD / 4 } else { AHEAD / 4 + 1 };
        for block in 0..count {
            let mut blocks = [0; LANES];
            for lane in 0..LANES {
                blocks[lane] = self.counters[3][lane].wrapping_add(self.drawn[lane] / 4 + block as u32);
            }
            let four = blocks_of(self.key, &self.counters, &blocks);
            for i in 0..4 {
                all[4 * block + i] = four[i];
            }
        }
        if is_whole {
            return each_index(|i| all[i]);
        }
        // Moved down by the count of numbers used of the first block, a bit of the count at a time (`Samplers::look_ahead`).
        let mut by_one = [[0.0; LANES]; AHEAD + 2];
        for i in 0..AHEAD + 2 {
            by_one[i] = self.moved(1, &all[i + 1], &all[i]);
        }
        let mut next = [[0.0; LANES]; AHEAD];
        for i in 0..AHEAD {
            next[i] = self.moved(2, &by_one[i + 2], &by_one[i]);
        }
        next
    }

    /// For each lane `far` if this bit of its count of used random numbers is set, else `near`.
    #[inline(always)]
    fn moved(&self, bit: u32, far: &Lanes<f32>, near: &Lanes<f32>) -> Lanes<f32> {
        let mut chosen = [0.0; LANES];
        for lane in 0..LANES {
            let moves = self.drawn[lane] & bit != 0;
            chosen[lane] = std::hint::select_unpredictable(moves, far[lane], near[lane]);
        }
        chosen
    }
}

impl Default for Block {
    fn default() -> Self {
        Self::new()
    }
}
