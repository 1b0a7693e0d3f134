//! Arrays of rays and of hits, which are processed in vectors of [`LANES`].

use std::hint::select_unpredictable;

use crate::each::EachEntry;
use crate::resident::layout::{NONE, Rows};
use crate::transport::rays::camera::{transform_point, transform_vector};
use crate::transport::scene::shape::{Hit, SurfacePoint};

/// Rays of a vector, which are processed together.
pub const LANES: usize = 16;

/// A value for each lane.
pub(super) type Lanes<T> = [T; LANES];

/// A vector in space for each lane, component by component.
pub(super) type Vectors = [Lanes<f32>; 3];

/// The values of the [`LANES`] lanes from an index on.
#[inline(always)]
pub(super) fn lanes<T: Copy>(values: &[T], first: usize) -> &Lanes<T> {
    values[first..].first_chunk().expect("whole vectors")
}

/// [`lanes`], mutable.
#[inline(always)]
pub(super) fn lanes_mut<T: Copy>(values: &mut [T], first: usize) -> &mut Lanes<T> {
    values[first..].first_chunk_mut().expect("whole vectors")
}

/// A bit mask of the lanes for which `holds` is true.
#[inline(always)]
pub(super) fn lanes_where(holds: impl Fn(usize) -> bool) -> u32 {
    let mut bytes = [0u8; LANES];
    for lane in 0..LANES {
        bytes[lane] = select_unpredictable(holds(lane), u8::MAX, 0);
    }
    highest_bits(bytes)
}

/// The highest bits of bytes: one instruction, where bits that are shifted and joined one by one take thirty.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn highest_bits(bytes: [u8; LANES]) -> u32 {
    use std::arch::x86_64::{_mm_movemask_epi8, _mm_set_epi64x};
    let all = u128::from_le_bytes(bytes);
    // SAFETY: all processors of this architecture have SSE2.
    unsafe { _mm_movemask_epi8(_mm_set_epi64x((all >> 64) as i64, all as i64)) as u32 }
}

/// The same for other processors.
#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
fn highest_bits(bytes: [u8; LANES]) -> u32 {
    let mut bits = 0;
    for lane in 0..LANES {
        bits |= u32::from(bytes[lane] >> 7) << lane;
    }
    bits
}

/// The bit mask of the first `count` lanes (at least one), or of all if they are fewer.
#[inline(always)]
pub(super) fn first_lanes(count: usize) -> u32 {
    u32::MAX >> (u32::BITS as usize - count.min(LANES))
}

/// Calls a function with each lane whose bit is set.
#[inline(always)]
pub(super) fn each_lane(mut bits: u32, mut f: impl FnMut(usize)) {
    while bits != 0 {
        f(bits.trailing_zeros() as usize % LANES);
        bits &= bits - 1;
    }
}

/// The rays of a vector.
#[derive(Debug, Clone, Copy)]
pub(super) struct Group {
    pub origin: Vectors,
    pub direction: Vectors,
    pub far: Lanes<f32>,
}

impl Group {
    #[inline(always)]
    pub(super) fn origin(&self, lane: usize) -> [f32; 3] {
        [self.origin[0][lane], self.origin[1][lane], self.origin[2][lane]]
    }

    #[inline(always)]
    pub(super) fn direction(&self, lane: usize) -> [f32; 3] {
        [
            self.direction[0][lane],
            self.direction[1][lane],
            self.direction[2][lane],
        ]
    }

    /// A ray in the space of a shape.
    #[inline(always)]
    pub(super) fn local(&self, m: &Rows, lane: usize) -> ([f32; 3], [f32; 3]) {
        (
            transform_point(m, self.origin(lane)),
            transform_vector(m, self.direction(lane)),
        )
    }
}

/// Rays from their origins to the distances `far`, padded to whole vectors.
#[derive(Debug, Clone, Default)]
pub struct Rays {
    pub origin: [Vec<f32>; 3],
    pub direction: [Vec<f32>; 3],
    pub far: Vec<f32>,
}

impl Rays {
    /// Makes room for so many rays, in whole vectors. Those that are new are zero.
    #[inline]
    pub fn resize(&mut self, count: usize) {
        let count = count.next_multiple_of(LANES);
        for a in 0..3 {
            self.origin[a].resize(count, 0.0);
            self.direction[a].resize(count, 0.0);
        }
        self.far.resize(count, 0.0);
    }

    #[inline(always)]
    pub fn put(&mut self, i: usize, origin: [f32; 3], direction: [f32; 3], far: f32) {
        for a in 0..3 {
            self.origin[a][i] = origin[a];
            self.direction[a][i] = direction[a];
        }
        self.far[i] = far;
    }

    /// The rays of the vector that begins at an index.
    #[inline(always)]
    pub(super) fn group(&self, first: usize) -> Group {
        Group {
            origin: [0, 1, 2].each(|a| *lanes(&self.origin[a], first)),
            direction: [0, 1, 2].each(|a| *lanes(&self.direction[a], first)),
            far: *lanes(&self.far, first),
        }
    }

    #[inline(always)]
    pub fn origin(&self, i: usize) -> [f32; 3] {
        [0, 1, 2].each(|a| self.origin[a][i])
    }

    #[inline(always)]
    pub fn direction(&self, i: usize) -> [f32; 3] {
        [0, 1, 2].each(|a| self.direction[a][i])
    }
}

/// The nearest hits of rays: the fields of [`Hit`], an array for each number.
#[derive(Debug, Clone, Default)]
pub struct Hits {
    pub t: Vec<f32>,
    /// [`NONE`] without a hit; the other fields are undefined then.
    pub surface: Vec<u32>,
    pub primitive: Vec<u32>,
    pub p: [Vec<f32>; 3],
    pub uv: [Vec<f32>; 2],
    pub triangle: Vec<u32>,
    pub weights: [Vec<f32>; 2],
    pub clearance: Vec<f32>,
    pub normal: [Vec<f32>; 3],
    pub shading: [Vec<f32>; 3],
    /// Bits of [`facing`].
    pub facing: Vec<u32>,
}

/// How a ray meets a surface.
pub mod facing {
    /// From the side that the geometric normal points to.
    pub const OUTSIDE: u32 = 1;
    /// Not from the side that the shading normal points to.
    pub const BEHIND: u32 = 2;
}

impl Hits {
    /// Makes room for so many hits, in whole vectors.
    #[inline]
    pub fn make_room(&mut self, count: usize) {
        if count <= self.t.len() {
            return;
        }
        let count = count.next_multiple_of(LANES);
        self.t.resize(count, 0.0);
        self.surface.resize(count, NONE);
        self.primitive.resize(count, 0);
        self.triangle.resize(count, NONE);
        self.clearance.resize(count, 0.0);
        self.facing.resize(count, 0);
        for k in 0..2 {
            self.uv[k].resize(count, 0.0);
            self.weights[k].resize(count, 0.0);
        }
        for a in 0..3 {
            self.p[a].resize(count, 0.0);
            self.normal[a].resize(count, 0.0);
            self.shading[a].resize(count, 0.0);
        }
    }

    /// The hit of ray `i`; None if it has none.
    #[inline(always)]
    pub fn get(&self, i: usize) -> Option<Hit> {
        (self.surface[i] != NONE).then(|| Hit {
            t: self.t[i],
            surface: self.surface[i],
            primitive: self.primitive[i],
            point: SurfacePoint {
                p: [0, 1, 2].each(|a| self.p[a][i]),
                uv: [0, 1].each(|k| self.uv[k][i]),
                triangle: self.triangle[i],
                weights: [0, 1].each(|k| self.weights[k][i]),
            },
            clearance: self.clearance[i],
            normal: [0, 1, 2].each(|a| self.normal[a][i]),
            shading: [0, 1, 2].each(|a| self.shading[a][i]),
        })
    }

    #[inline(always)]
    pub fn put(&mut self, i: usize, hit: Option<&Hit>) {
        let Some(hit) = hit else {
            self.surface[i] = NONE;
            return;
        };
        self.t[i] = hit.t;
        self.surface[i] = hit.surface;
        self.primitive[i] = hit.primitive;
        self.triangle[i] = hit.point.triangle;
        self.clearance[i] = hit.clearance;
        for k in 0..2 {
            self.uv[k][i] = hit.point.uv[k];
            self.weights[k][i] = hit.point.weights[k];
        }
        for a in 0..3 {
            self.p[a][i] = hit.point.p[a];
            self.normal[a][i] = hit.normal[a];
            self.shading[a][i] = hit.shading[a];
        }
    }
}
