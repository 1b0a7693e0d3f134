//! Ray intersection with a bounding volume hierarchy (BVH) over triangles and other surfaces: the nearest hit.
//!
//! Intersection is watertight at edges and vertices that triangles share. Triangles are tested as by Woop, Benthin and
//! Wald (2013): sheared so that the ray runs along an axis, where an edge function has the same sign for both of its
//! triangles. An edge function within its rounding error is set to zero, which counts as inside; this keeps the test
//! watertight where a compiler fuses a multiplication and an addition. Boxes are widened by the largest error that
//! shearing adds to a vertex.
//!
//! Hits do not depend on the tree. A triangle is hit only where the ray meets its own box, at a distance not less than
//! the box's; the box test is monotonic, so that enclosing boxes are entered no later. Of hits at the same distance
//! the lower number wins, surfaces before triangles.

use std::mem::MaybeUninit;
use std::sync::OnceLock;

#[cfg(target_arch = "x86_64")]
use super::lanes::x86::{Avx, Sse};
use super::lanes::{Lanes, Plain};
use crate::each::EachEntry;
use crate::resident::bvh::{Bvh, MAX_LEVELS};
use crate::resident::layout::{BLOCK, BlockRecord, NodeRecord, WIDTH, child};
use crate::transport::lookup::prefetch::prefetch_line;

/// A hit of a triangle or another surface.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hit {
    /// Distance along the ray, in units of the direction's length.
    pub t: f32,
    pub target: Target,
}

/// What was hit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Target {
    Triangle {
        /// Its number among all meshes' triangles.
        number: u32,
        /// Its position in the BVH: block and lane.
        place: (u32, u32),
        /// The point is (1 - u - v) a + u b + v c.
        u: f32,
        v: f32,
    },
    Surface {
        number: u32,
        /// The second value that the surface's own test returned.
        part: u32,
    },
}

/// Larger than every distance.
pub const FAR: f32 = f32::MAX;

/// Edge functions are rounding noise below this multiple of their larger product.
pub const EDGE_TOLERANCE: f32 = 2.0 * f32::EPSILON;

/// Relative error bound of shearing and box tests, as a multiple of the largest coordinate.
pub const BOX_TOLERANCE: f32 = 8.0 * f32::EPSILON;

/// Direction components are clamped to at least this magnitude: 1/0 is infinite, and 0 · infinity is not a number.
pub const MIN_DIRECTION: f32 = 1e-20;

/// Set in triangles' numbers, so that those of surfaces are lower.
pub(super) const TRIANGLE: u32 = 1 << 31;

/// Size of the traversal stack: all children but the visited one, for every node on the way down.
const WAITING: usize = (WIDTH - 1) * MAX_LEVELS + 1;

/// The instruction set used for traversal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    Baseline,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl Level {
    /// All levels that this processor has, the widest last.
    pub fn all() -> Vec<Self> {
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("bmi1") {
            let wide = is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512vl")
                && is_x86_feature_detected!("avx512dq");
            return match wide {
                true => vec![Self::Baseline, Self::Avx2, Self::Avx512],
                false => vec![Self::Baseline, Self::Avx2],
            };
        }
        vec![Self::Baseline]
    }

    /// The widest level that this processor has.
    #[inline]
    pub fn widest() -> Self {
        static WIDEST: OnceLock<Level> = OnceLock::new();
        *WIDEST.get_or_init(|| Self::all().pop().unwrap_or(Self::Baseline))
    }
}

/// A ray on the open interval from `t_min` to `t_max`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ray {
    pub origin: [f32; 3],
    /// Finite and nonzero, of any length.
    pub direction: [f32; 3],
    /// Not negative.
    pub t_min: f32,
    pub t_max: f32,
}

impl Ray {
    /// From its origin to the distance `far`.
    #[inline(always)]
    pub fn until(origin: [f32; 3], direction: [f32; 3], far: f32) -> Self {
        Self {
            origin,
            direction,
            t_min: 0.0,
            t_max: far,
        }
    }
}

/// The surfaces of a BVH other than triangles.
pub trait Surfaces {
    /// Whether the traversal tests them; false where the caller has tested them before.
    const ASKED: bool;

    /// The distance of the first hit between 0 and `t_max` with a surface, and a part number that [`Target::Surface`] stores.
    fn intersect(&self, number: u32) -> Option<(f32, u32)>;
}

impl<F: Fn(u32) -> Option<(f32, u32)>> Surfaces for F {
    const ASKED: bool = true;

    #[inline(always)]
    fn intersect(&self, number: u32) -> Option<(f32, u32)> {
        self(number)
    }
}

/// Passes over all surfaces but triangles.
#[derive(Debug, Clone, Copy)]
pub struct TrianglesAlone;

impl Surfaces for TrianglesAlone {
    const ASKED: bool = false;

    #[inline(always)]
    fn intersect(&self, _: u32) -> Option<(f32, u32)> {
        None
    }
}

/// The nearest hit, from either side.
#[inline]
pub fn intersect(bvh: &Bvh, ray: &Ray, surfaces: &impl Surfaces) -> Option<Hit> {
    intersect_at(Level::widest(), bvh, ray, surfaces)
}

/// [`intersect`] with an instruction set from [`Level::all`].
#[inline]
pub fn intersect_at(level: Level, bvh: &Bvh, ray: &Ray, surfaces: &impl Surfaces) -> Option<Hit> {
    let prepared = Prepared::new(&bvh.bounds, ray.origin, ray.direction);
    search::<_, false>(level, bvh, prepared, surfaces, &Start::at_root(ray))
}

/// Whether there is any hit: [`intersect`] without the search for the nearest.
#[inline]
pub fn is_blocked(bvh: &Bvh, ray: &Ray, surfaces: &impl Surfaces) -> bool {
    let prepared = Prepared::new(&bvh.bounds, ray.origin, ray.direction);
    search::<_, true>(Level::widest(), bvh, prepared, surfaces, &Start::at_root(ray)).is_some()
}

/// [`intersect`] with triangles only, in the subtree that `start` names.
#[inline]
pub(super) fn intersect_below(bvh: &Bvh, ray: Prepared, start: &Start) -> Option<Hit> {
    search::<_, false>(Level::widest(), bvh, ray, &TrianglesAlone, start)
}

/// [`is_blocked`] by triangles only, in the subtree that `start` names.
#[inline]
pub(super) fn is_blocked_below(bvh: &Bvh, ray: Prepared, start: &Start) -> bool {
    search::<_, true>(Level::widest(), bvh, ray, &TrianglesAlone, start).is_some()
}

/// Where a search begins.
#[derive(Debug, Clone, Copy)]
pub(super) struct Start {
    /// The child at the root of the subtree that is searched.
    pub child: u32,
    /// The interval of the ray.
    pub t_min: f32,
    pub t_max: f32,
    /// Number of the hit that is already known at `t_max`, which a hit at the same distance replaces only if its number
    /// is lower; zero without one.
    pub number: u32,
}

impl Start {
    fn at_root(ray: &Ray) -> Self {
        Self {
            child: 0,
            t_min: ray.t_min,
            t_max: ray.t_max,
            number: 0,
        }
    }
}

/// The vector type for the triangles of a single block, tested without a search of the hierarchy.
#[cfg(target_arch = "x86_64")]
type BlockLanes = Sse;
#[cfg(not(target_arch = "x86_64"))]
type BlockLanes = Plain<BLOCK>;

/// [`intersect_below`] a child that is a block: only its triangles are tested.
#[inline(always)]
pub(super) fn intersect_in_block(bvh: &Bvh, index: u32, ray: &Prepared, start: &Start) -> Option<Hit> {
    let mut best = Best::at(start);
    intersect_block::<BlockLanes>(&bvh.blocks[index as usize], index, ray, start.t_min, &mut best);
    best.hit
}

#[inline]
fn search<M: Surfaces, const ANY: bool>(
    level: Level,
    bvh: &Bvh,
    ray: Prepared,
    surfaces: &M,
    start: &Start,
) -> Option<Hit> {
    match level {
        Level::Baseline => walk::<Plain<WIDTH>, Plain<BLOCK>, _, ANY>(bvh, ray, surfaces, start),
        // SAFETY: the processor has the level.
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 => unsafe { walk_avx2::<_, ANY>(bvh, ray, surfaces, start) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Level::Avx512 => unsafe { walk_avx512::<_, ANY>(bvh, ray, surfaces, start) },
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1")]
fn walk_avx2<M: Surfaces, const ANY: bool>(bvh: &Bvh, ray: Prepared, surfaces: &M, start: &Start) -> Option<Hit> {
    walk::<Avx, Sse, M, ANY>(bvh, ray, surfaces, start)
}

/// The same vector types: AVX-512 adds mask registers and doubles the number of vector registers.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,avx512f,avx512vl,avx512dq")]
fn walk_avx512<M: Surfaces, const ANY: bool>(bvh: &Bvh, ray: Prepared, surfaces: &M, start: &Start) -> Option<Hit> {
    walk::<Avx, Sse, M, ANY>(bvh, ray, surfaces, start)
}

/// Values of a ray that box and triangle tests share.
#[derive(Debug, Clone, Copy)]
pub(super) struct Prepared {
    pub inverse: [f32; 3],
    /// The origin, moved so that near planes are nearer and far planes farther by the error bound.
    pub near: [f32; 3],
    pub far: [f32; 3],
    /// Whether the upper plane along an axis is the near one.
    pub backwards: [bool; 3],
    /// Permutation of the axes that puts the largest component of the direction last.
    pub axes: [usize; 3],
    /// The origin's coordinates in the order of `axes`.
    pub origin: [f32; 3],
    /// Shear along the first two of these axes, scale along the last.
    pub by: [f32; 3],
}

impl Prepared {
    #[inline(always)]
    fn new(bounds: &[[f32; 3]; 2], origin: [f32; 3], direction: [f32; 3]) -> Self {
        let mut reach = 0.0f32;
        let mut inverse = [0.0; 3];
        let backwards = direction.each(|d| d < 0.0);
        for a in 0..3 {
            let [low, high] = [bounds[0][a], bounds[1][a]].each(|plane| (plane - origin[a]).abs());
            // Rounding errors of plane - origin are relative to the larger of the two.
            reach = reach.max(low).max(high).max(origin[a].abs());
            let least = if backwards[a] { -MIN_DIRECTION } else { MIN_DIRECTION };
            let tiny = direction[a].abs() < MIN_DIRECTION;
            inverse[a] = 1.0 / if tiny { least } else { direction[a] };
        }
        // Widen boxes by the error bound.
        let slack = BOX_TOLERANCE * reach;
        let side = backwards.each(|backwards| if backwards { -slack } else { slack });
        // Shear along the direction's largest component.
        let size = direction.each(f32::abs);
        let mut last = 0;
        if size[1] > size[last] {
            last = 1;
        }
        if size[2] > size[last] {
            last = 2;
        }
        let axes = axes(last);
        let along = direction[last];
        Self {
            inverse,
            near: [0, 1, 2].each(|a| origin[a] + side[a]),
            far: [0, 1, 2].each(|a| origin[a] - side[a]),
            backwards,
            axes,
            origin: axes.each(|a| origin[a]),
            by: [direction[axes[0]] / along, direction[axes[1]] / along, 1.0 / along],
        }
    }

    /// Entry distances of a node's boxes, at least `t_min`, and a bit for each that is entered before `t_max`.
    #[inline(always)]
    fn enter<const N: usize, V: Lanes<N>>(&self, planes: &[[f32; N]; 6], t_min: f32, t_max: f32) -> (V, u32) {
        let mut near = V::splat(t_min);
        let mut far = V::splat(t_max);
        for a in 0..3 {
            let (low, high) = (&planes[a], &planes[3 + a]);
            let (first, last) = if self.backwards[a] { (high, low) } else { (low, high) };
            let (first, last) = (V::load(first), V::load(last));
            let inverse = V::splat(self.inverse[a]);
            near = first.sub(V::splat(self.near[a])).mul(inverse).max(near);
            far = last.sub(V::splat(self.far[a])).mul(inverse).min(far);
        }
        (near, near.le(far))
    }
}

/// The axes in cyclic order, `last` at the end.
#[inline(always)]
pub(super) fn axes(last: usize) -> [usize; 3] {
    [(last + 1) % 3, (last + 2) % 3, last]
}

/// The nearest hit found so far.
struct Best {
    t: f32,
    /// Zero without a hit, so that one at exactly `t_max` does not count.
    number: u32,
    hit: Option<Hit>,
}

impl Best {
    #[inline(always)]
    fn at(start: &Start) -> Self {
        Self {
            t: start.t_max.min(FAR),
            number: start.number,
            hit: None,
        }
    }

    #[inline(always)]
    fn improve(&mut self, number: u32, hit: Hit) {
        if hit.t < self.t || (hit.t == self.t && number < self.number) {
            (self.t, self.number, self.hit) = (hit.t, number, Some(hit));
        }
    }
}

/// Traverses the BVH: the nearest hit, or with `ANY` the first one found.
#[inline(always)]
fn walk<V, T, M, const ANY: bool>(bvh: &Bvh, prepared: Prepared, surfaces: &M, start: &Start) -> Option<Hit>
where
    V: Lanes<WIDTH>,
    T: Lanes<BLOCK>,
    M: Surfaces,
{
    if bvh.nodes.is_empty() {
        return None;
    }
    let t_min = start.t_min;
    let mut best = Best::at(start);
    // Entry distance and child in one integer: the bit patterns of positive floats are ordered like their values.
    let mut waiting = [MaybeUninit::<u64>::uninit(); WAITING];
    let mut depth = 0;
    let mut at = start.child;
    loop {
        let index = (at & !child::KIND) as usize;
        match at & child::KIND {
            child::NODE => {
                let node = &bvh.nodes[index];
                // Intersect all boxes of the node; continue at the nearest child and push the others.
                let (enter, mut met) = prepared.enter::<WIDTH, V>(&node.planes, t_min, best.t);
                if !M::ASKED {
                    // The highest bit is set in the two kinds of children to skip: surfaces and empty slots.
                    met &= !V::load(bytemuck::cast_ref(&node.children)).signs();
                }
                if met != 0 {
                    let first = met.trailing_zeros() as usize % WIDTH;
                    met &= met - 1;
                    at = node.children[first];
                    if met == 0 {
                        continue;
                    }
                    let enter = enter.store();
                    let key = |k: usize| u64::from(enter[k].to_bits()) << 32 | u64::from(node.children[k]);
                    let mut nearest = key(first);
                    let base = depth;
                    while met != 0 {
                        let k = met.trailing_zeros() as usize % WIDTH;
                        met &= met - 1;
                        prefetch(bvh, node.children[k]);
                        let other = key(k);
                        let farther = nearest.max(other);
                        nearest = nearest.min(other);
                        // Insert in order of distance, the farthest at the bottom of the stack; any hit serves `ANY`.
                        let mut place = depth;
                        // SAFETY: entries between `base` and `depth` were written.
                        while !ANY && place > base && unsafe { waiting[place - 1].assume_init() } < farther {
                            waiting[place] = waiting[place - 1];
                            place -= 1;
                        }
                        waiting[place].write(farther);
                        depth += 1;
                    }
                    prefetch(bvh, node.children[first]);
                    at = nearest as u32;
                    continue;
                }
            }
            // Intersect the leaf.
            child::BLOCK => intersect_block::<T>(&bvh.blocks[index], index as u32, &prepared, t_min, &mut best),
            child::SURFACE => {
                let number = index as u32;
                if let Some((t, part)) = surfaces.intersect(number)
                    && t > t_min
                {
                    let target = Target::Surface { number, part };
                    best.improve(number, Hit { t, target });
                }
            }
            _ => {}
        }
        if ANY && best.hit.is_some() {
            return best.hit;
        }
        // Pop the next child, skipping those that start behind the nearest hit.
        loop {
            if depth == 0 {
                return best.hit;
            }
            depth -= 1;
            // SAFETY: all entries below `depth` were written.
            let next = unsafe { waiting[depth].assume_init() };
            if f32::from_bits((next >> 32) as u32) <= best.t {
                at = next as u32;
                break;
            }
        }
    }
}

/// Prefetches a child into the cache, so that the memory latencies of siblings overlap.
#[inline(always)]
pub(super) fn prefetch(bvh: &Bvh, child: u32) {
    const LINE: usize = 64;
    let index = (child & !child::KIND) as usize;
    let (start, size) = match child & child::KIND {
        child::NODE => (
            bvh.nodes.as_ptr().wrapping_add(index).cast::<u8>(),
            size_of::<NodeRecord>(),
        ),
        child::BLOCK => (bvh.blocks.as_ptr().wrapping_add(index).cast(), size_of::<BlockRecord>()),
        _ => return,
    };
    for line in 0..size.div_ceil(LINE) {
        prefetch_line(start.wrapping_add(line * LINE));
    }
}

/// The edge function: twice the signed area of the triangle formed by the ray and the edge from p to q.
#[inline(always)]
fn edge<V: Lanes<BLOCK>>(p: [V; 3], q: [V; 3]) -> V {
    let (left, right) = (p[0].mul(q[1]), p[1].mul(q[0]));
    let area = left.sub(right);
    let unsure = V::splat(EDGE_TOLERANCE).mul(left.abs().max(right.abs()));
    area.clear_where_le(area.abs(), unsure)
}

/// Tests the triangles of a block.
#[inline(always)]
fn intersect_block<V: Lanes<BLOCK>>(block: &BlockRecord, index: u32, ray: &Prepared, t_min: f32, best: &mut Best) {
    // Sheared vertices, relative to the ray: the ray is the line x = y = 0, scaled depth is z. Not by an array's `map`:
    // the compiler leaves it a call, compiled without the caller's instruction set.
    let corner = |first: usize| {
        let along = |k: usize| V::load(&block.corners[first + ray.axes[k]]).sub(V::splat(ray.origin[k]));
        let by = |k: usize| V::splat(ray.by[k]);
        let (x, y, z) = (along(0), along(1), along(2));
        [x.sub(by(0).mul(z)), y.sub(by(1).mul(z)), by(2).mul(z)]
    };
    let (a, b, c) = (corner(0), corner(3), corner(6));
    let (u, v, w) = (edge(b, c), edge(c, a), edge(a, b));
    let zero = V::splat(0.0);
    let outside = u.min(v).min(w).lt(zero) & zero.lt(u.max(v).max(w));
    let mut met = !outside & ((1 << BLOCK) - 1);
    if met == 0 {
        return;
    }
    let sum = u.add(v).add(w);
    // A degenerate triangle has sum 0, and the distance is not a number, which fails the test.
    let t = u.mul(a[2]).add(v.mul(b[2])).add(w.mul(c[2])).div(sum);
    met &= V::splat(t_min).lt(t) & t.le(V::splat(best.t));
    if met == 0 {
        return;
    }
    let (t, u, v) = (t.store(), v.div(sum).store(), w.div(sum).store());
    while met != 0 {
        let lane = met.trailing_zeros() as usize % BLOCK;
        met &= met - 1;
        let Some(start) = enter_triangle(block, lane, ray, t_min, best.t) else {
            continue;
        };
        let number = block.triangles[lane];
        let target = Target::Triangle {
            number,
            place: (index, lane as u32),
            u: u[lane],
            v: v[lane],
        };
        best.improve(
            number | TRIANGLE,
            Hit {
                t: t[lane].max(start),
                target,
            },
        );
    }
}

/// Entry distance of the box of one triangle of a block, if the ray enters it before `t_max`.
#[inline(always)]
fn enter_triangle(block: &BlockRecord, lane: usize, ray: &Prepared, t_min: f32, t_max: f32) -> Option<f32> {
    let mut planes = [[0.0]; 6];
    for axis in 0..3 {
        let [a, b, c] = [0, 3, 6].each(|first| block.corners[first + axis][lane]);
        planes[axis] = [a.min(b).min(c)];
        planes[3 + axis] = [a.max(b).max(c)];
    }
    let (near, met) = ray.enter::<1, Plain<1>>(&planes, t_min, t_max);
    (met != 0).then(|| near.store()[0])
}

#[cfg(test)]
mod tests;
