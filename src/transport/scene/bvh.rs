//! Rays against a hierarchy of triangles and other surfaces: the first hit.
//!
//! No ray slips through an edge or a vertex that triangles share. Triangles are tested as by Woop, Benthin and Wald
//! (2013): sheared so that the ray runs along an axis, where an edge has the same sign for both its triangles. An edge
//! function that rounding leaves unsure counts as zero, which is inside, so that this also holds where a compiler fuses
//! a multiplication with an addition. Boxes are widened by what shearing may shift a vertex.
//!
//! Hits do not depend on the tree. A triangle counts only where the ray meets its own box, and is met no earlier than
//! that; the test of boxes is monotonic, so that all boxes around it are met no later. Of hits at the same distance the
//! one of the lower number wins, surfaces before triangles.

use std::mem::MaybeUninit;
use std::sync::OnceLock;

#[cfg(target_arch = "x86_64")]
use super::lanes::x86::{Avx, Sse};
use super::lanes::{Lanes, Plain};
use crate::resident::bvh::{Bvh, MAX_LEVELS};
use crate::resident::layout::{BLOCK, BlockRecord, NodeRecord, WIDTH, child};

/// Where a ray meets a triangle or another surface.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hit {
    /// Distance along the ray in lengths of its direction.
    pub t: f32,
    pub target: Target,
}

/// What a ray meets.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Target {
    Triangle {
        /// Its number among all meshes' triangles.
        number: u32,
        /// Where it lies in the hierarchy: its block and its lane there.
        place: (u32, u32),
        /// The point is (1 - u - v) a + u b + v c.
        u: f32,
        v: f32,
    },
    Surface {
        number: u32,
        /// What the surface's own test said.
        part: u32,
    },
}

/// Beyond every distance.
pub const FAR: f32 = f32::MAX;

/// Edge functions below this multiple of their terms have no sure sign.
pub const EDGE_TOLERANCE: f32 = 2.0 * f32::EPSILON;

/// How far shearing and the tests of boxes may be off, as a multiple of the largest coordinate.
pub const BOX_TOLERANCE: f32 = 8.0 * f32::EPSILON;

/// Components of a direction below this are replaced, so that each has an inverse.
pub const MIN_DIRECTION: f32 = 1e-20;

/// Marks the numbers of triangles, so that those of surfaces are lower.
const TRIANGLE: u32 = 1 << 31;

/// Children that can wait at once: of every node on the way down all but the one that is visited.
const WAITING: usize = (WIDTH - 1) * MAX_LEVELS + 1;

/// The instruction set that hierarchies are walked with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    Baseline,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl Level {
    /// All levels of this processor, the widest last.
    pub fn all() -> Vec<Self> {
        let mut levels = vec![Self::Baseline];
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("bmi1") {
            levels.push(Self::Avx2);
            let wide = is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512vl")
                && is_x86_feature_detected!("avx512dq");
            if wide {
                levels.push(Self::Avx512);
            }
        }
        levels
    }

    /// The widest level of this processor.
    #[inline]
    pub fn widest() -> Self {
        static WIDEST: OnceLock<Level> = OnceLock::new();
        *WIDEST.get_or_init(|| Self::all().pop().unwrap_or(Self::Baseline))
    }
}

/// A ray between two distances, neither of them included.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ray {
    pub origin: [f32; 3],
    /// Finite and not zero, but of any length.
    pub direction: [f32; 3],
    /// Not negative.
    pub t_min: f32,
    pub t_max: f32,
}

/// The first hit, from either side. `meet` tests a surface: it gives the distance of the first hit between 0 and
/// `t_max`, and a part that [`Target::Surface`] keeps.
#[inline]
pub fn intersect(bvh: &Bvh, ray: &Ray, meet: &impl Fn(u32) -> Option<(f32, u32)>) -> Option<Hit> {
    intersect_at(Level::widest(), bvh, ray, meet)
}

/// [`intersect`] with an instruction set that [`Level::all`] named.
#[inline]
pub fn intersect_at(level: Level, bvh: &Bvh, ray: &Ray, meet: &impl Fn(u32) -> Option<(f32, u32)>) -> Option<Hit> {
    match level {
        Level::Baseline => walk::<Plain<WIDTH>, Plain<BLOCK>, _, false>(bvh, ray, meet),
        // SAFETY: the processor has the level.
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 => unsafe { walk_avx2::<_, false>(bvh, ray, meet) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Level::Avx512 => unsafe { walk_avx512::<_, false>(bvh, ray, meet) },
    }
}

/// Whether there is any hit at all: what [`intersect`] would say, found without looking for the first.
#[inline]
pub fn is_blocked(bvh: &Bvh, ray: &Ray, meet: &impl Fn(u32) -> Option<(f32, u32)>) -> bool {
    let hit = match Level::widest() {
        Level::Baseline => walk::<Plain<WIDTH>, Plain<BLOCK>, _, true>(bvh, ray, meet),
        // SAFETY: the processor has the level.
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 => unsafe { walk_avx2::<_, true>(bvh, ray, meet) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Level::Avx512 => unsafe { walk_avx512::<_, true>(bvh, ray, meet) },
    };
    hit.is_some()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1")]
fn walk_avx2<M: Fn(u32) -> Option<(f32, u32)>, const ANY: bool>(bvh: &Bvh, ray: &Ray, meet: &M) -> Option<Hit> {
    walk::<Avx, Sse, M, ANY>(bvh, ray, meet)
}

/// The same vectors: masks have registers of their own and there are twice as many others.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,avx512f,avx512vl,avx512dq")]
fn walk_avx512<M: Fn(u32) -> Option<(f32, u32)>, const ANY: bool>(bvh: &Bvh, ray: &Ray, meet: &M) -> Option<Hit> {
    walk::<Avx, Sse, M, ANY>(bvh, ray, meet)
}

/// What the tests of boxes and triangles need to know of a ray.
struct Prepared {
    origin: [f32; 3],
    inverse: [f32; 3],
    /// The origin moved against the boxes' near and far planes, which so are farther apart.
    near: [f32; 3],
    far: [f32; 3],
    /// Whether the upper plane along an axis is the near one.
    backwards: [bool; 3],
    /// Axes in the order that makes the longest component of the direction the last.
    axes: [usize; 3],
    /// By how much each of these is sheared or scaled.
    by: [f32; 3],
}

impl Prepared {
    #[inline(always)]
    fn new(bounds: &[[f32; 3]; 2], ray: &Ray) -> Self {
        let Ray { origin, direction, .. } = *ray;
        let mut reach = 0.0f32;
        let mut inverse = [0.0; 3];
        let backwards = direction.map(|d| d < 0.0);
        for a in 0..3 {
            let [low, high] = [bounds[0][a], bounds[1][a]].map(|plane| (plane - origin[a]).abs());
            // Sums with the origin are as wrong as it is large.
            reach = reach.max(low).max(high).max(origin[a].abs());
            let least = if backwards[a] { -MIN_DIRECTION } else { MIN_DIRECTION };
            let tiny = direction[a].abs() < MIN_DIRECTION;
            inverse[a] = 1.0 / if tiny { least } else { direction[a] };
        }
        let slack = BOX_TOLERANCE * reach;
        let side = backwards.map(|backwards| if backwards { -slack } else { slack });
        let size = direction.map(f32::abs);
        let mut last = 0;
        if size[1] > size[last] {
            last = 1;
        }
        if size[2] > size[last] {
            last = 2;
        }
        let axes = [(last + 1) % 3, (last + 2) % 3, last];
        let along = direction[last];
        Self {
            origin,
            inverse,
            near: [0, 1, 2].map(|a| origin[a] + side[a]),
            far: [0, 1, 2].map(|a| origin[a] - side[a]),
            backwards,
            axes,
            by: [direction[axes[0]] / along, direction[axes[1]] / along, 1.0 / along],
        }
    }

    /// Where the ray enters boxes, not before `t_min`, and a bit for each that it meets before `t_max`.
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

/// The nearest hit so far.
struct Best {
    t: f32,
    /// Zero without a hit, so that nothing at that distance is one.
    number: u32,
    hit: Option<Hit>,
}

impl Best {
    #[inline(always)]
    fn improve(&mut self, number: u32, hit: Hit) {
        if hit.t < self.t || (hit.t == self.t && number < self.number) {
            (self.t, self.number, self.hit) = (hit.t, number, Some(hit));
        }
    }
}

/// The first hit, or with `ANY` some hit.
#[inline(always)]
fn walk<V, T, M, const ANY: bool>(bvh: &Bvh, ray: &Ray, meet: &M) -> Option<Hit>
where
    V: Lanes<WIDTH>,
    T: Lanes<BLOCK>,
    M: Fn(u32) -> Option<(f32, u32)>,
{
    if bvh.nodes.is_empty() {
        return None;
    }
    let prepared = Prepared::new(&bvh.bounds, ray);
    let mut best = Best {
        t: ray.t_max.min(FAR),
        number: 0,
        hit: None,
    };
    // Distance and child, which together are one integer: positive floats are in the order of their bits.
    let mut waiting = [MaybeUninit::<u64>::uninit(); WAITING];
    let mut depth = 0;
    let mut at = 0u32;
    loop {
        let index = (at & !child::KIND) as usize;
        match at & child::KIND {
            child::NODE => {
                let node = &bvh.nodes[index];
                let (enter, mut met) = prepared.enter::<WIDTH, V>(&node.planes, ray.t_min, best.t);
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
                        // The farthest lie lowest.
                        let mut place = depth;
                        // SAFETY: what lies between `base` and `depth` was written.
                        while place > base && unsafe { waiting[place - 1].assume_init() } < farther {
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
            child::BLOCK => meet_block::<T>(&bvh.blocks[index], index as u32, &prepared, ray.t_min, &mut best),
            child::SURFACE => {
                let number = index as u32;
                if let Some((t, part)) = meet(number)
                    && t > ray.t_min
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
        // What begins behind the hit found meanwhile is left out.
        loop {
            if depth == 0 {
                return best.hit;
            }
            depth -= 1;
            // SAFETY: everything below `depth` was written.
            let next = unsafe { waiting[depth].assume_init() };
            if f32::from_bits((next >> 32) as u32) <= best.t {
                at = next as u32;
                break;
            }
        }
    }
}

/// Asks for a child to be brought near: where siblings are visited too, their memory is waited for at once.
#[inline(always)]
fn prefetch(bvh: &Bvh, child: u32) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        const LINE: usize = 64;
        let index = (child & !child::KIND) as usize;
        let (start, size) = match child & child::KIND {
            child::NODE => (
                bvh.nodes.as_ptr().wrapping_add(index).cast::<i8>(),
                size_of::<NodeRecord>(),
            ),
            child::BLOCK => (bvh.blocks.as_ptr().wrapping_add(index).cast(), size_of::<BlockRecord>()),
            _ => return,
        };
        for line in 0..size.div_ceil(LINE) {
            // SAFETY: a prefetch reads nothing and may be given any address.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(start.wrapping_add(line * LINE)) };
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (bvh, child);
}

/// Twice the area of the triangle from the ray to an edge from p to q; its sign tells the side.
#[inline(always)]
fn edge<V: Lanes<BLOCK>>(p: [V; 3], q: [V; 3]) -> V {
    let (left, right) = (p[0].mul(q[1]), p[1].mul(q[0]));
    let area = left.sub(right);
    let unsure = V::splat(EDGE_TOLERANCE).mul(left.abs().max(right.abs()));
    area.clear_where_le(area.abs(), unsure)
}

/// Tests the triangles of a block.
#[inline(always)]
fn meet_block<V: Lanes<BLOCK>>(block: &BlockRecord, index: u32, ray: &Prepared, t_min: f32, best: &mut Best) {
    let origin = ray.axes.map(|axis| V::splat(ray.origin[axis]));
    let by = ray.by.map(V::splat);
    // Vertices as the ray sees them: at distance zero it passes through (0, 0).
    let [a, b, c] = [0, 3, 6].map(|first| {
        let along = |k: usize| V::load(&block.corners[first + ray.axes[k]]).sub(origin[k]);
        let (x, y, z) = (along(0), along(1), along(2));
        [x.sub(by[0].mul(z)), y.sub(by[1].mul(z)), by[2].mul(z)]
    });
    let (u, v, w) = (edge(b, c), edge(c, a), edge(a, b));
    let zero = V::splat(0.0);
    let outside = u.min(v).min(w).lt(zero) & zero.lt(u.max(v).max(w));
    let mut met = !outside & ((1 << BLOCK) - 1);
    if met == 0 {
        return;
    }
    let sum = u.add(v).add(w);
    // Without area the sum is zero and the distance not a number.
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

/// Where the ray enters the box of one triangle of a block, if it does before `t_max`.
#[inline(always)]
fn enter_triangle(block: &BlockRecord, lane: usize, ray: &Prepared, t_min: f32, t_max: f32) -> Option<f32> {
    let mut planes = [[0.0]; 6];
    for axis in 0..3 {
        let [a, b, c] = [0, 3, 6].map(|first| block.corners[first + axis][lane]);
        planes[axis] = [a.min(b).min(c)];
        planes[3 + axis] = [a.max(b).max(c)];
    }
    let (near, met) = ray.enter::<1, Plain<1>>(&planes, t_min, t_max);
    (met != 0).then(|| near.store()[0])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resident::layout::Triangle;
    use rand_core::Rng;
    use rand_pcg::Pcg32;

    fn uniform(random: &mut Pcg32) -> f32 {
        (random.next_u32() >> 8) as f32 / (1 << 24) as f32
    }

    fn point(random: &mut Pcg32) -> [f32; 3] {
        [(); 3].map(|()| 2.0 * uniform(random) - 1.0)
    }

    fn add(a: [f32; 3], s: f32, b: [f32; 3]) -> [f32; 3] {
        std::array::from_fn(|i| a[i] + s * b[i])
    }

    fn ray(origin: [f32; 3], direction: [f32; 3]) -> Ray {
        Ray {
            origin,
            direction,
            t_min: 0.0,
            t_max: f32::INFINITY,
        }
    }

    /// No surfaces but triangles.
    fn nothing(_: u32) -> Option<(f32, u32)> {
        None
    }

    fn first(bvh: &Bvh, ray: &Ray) -> Option<Hit> {
        intersect(bvh, ray, &nothing)
    }

    fn number(hit: Hit) -> u32 {
        match hit.target {
            Target::Triangle { number, .. } | Target::Surface { number, .. } => number,
        }
    }

    /// The first hit of all triangles, each in a hierarchy of its own but with the box of all.
    fn brute_force(triangles: &[Triangle], bvh: &Bvh, ray: &Ray) -> Option<(f32, u32)> {
        let mut best: Option<(f32, u32)> = None;
        for (triangle, number) in triangles.iter().zip(0..) {
            let mut alone = Bvh::new(&[*triangle], &[]);
            alone.bounds = bvh.bounds;
            if let Some(hit) = intersect_at(Level::Baseline, &alone, ray, &nothing)
                && best.is_none_or(|(t, _)| hit.t < t)
            {
                best = Some((hit.t, number));
            }
        }
        best
    }

    /// Möller and Trumbore's test in f64: t, u, v, if the hit is at least `margin` inside the triangle.
    fn oracle(triangle: &Triangle, origin: [f32; 3], direction: [f32; 3], margin: f64) -> Option<[f64; 3]> {
        let wide = |v: [f32; 3]| glam::DVec3::from_array(v.map(f64::from));
        let (a, d) = (wide(triangle[0]), wide(direction));
        let (e1, e2) = (wide(triangle[1]) - a, wide(triangle[2]) - a);
        let det = e1.dot(d.cross(e2));
        let s = wide(origin) - a;
        let (u, v) = (s.dot(d.cross(e2)) / det, d.dot(s.cross(e1)) / det);
        let inside = u >= margin && v >= margin && u + v <= 1.0 - margin;
        inside.then(|| [e2.dot(s.cross(e1)) / det, u, v])
    }

    /// Rays that hit or miss everything clearly agree with another test in f64; what they hit is where they say.
    #[test]
    fn hits_are_those_of_another_test() {
        let mut random = Pcg32::new(1, 2);
        let mut hits = 0;
        for (scale, offset) in [(1.0, 0.0), (1e-3, 0.0), (1e3, 0.0), (1.0, 50.0)] {
            let soup = |random: &mut Pcg32| {
                let center = point(random);
                [(); 3].map(|()| add([offset; 3], scale, add(center, 0.3, point(random))))
            };
            let triangles: Vec<Triangle> = (0..300).map(|_| soup(&mut random)).collect();
            let bvh = Bvh::new(&triangles, &[]);
            for _ in 0..400 {
                let origin = add([offset; 3], 2.0 * scale, point(&mut random));
                let direction = point(&mut random);
                let all = |margin| {
                    let hits = triangles
                        .iter()
                        .filter_map(move |t| oracle(t, origin, direction, margin));
                    hits.map(|[t, ..]| t).filter(|&t| t > 0.0)
                };
                if all(-1e-3).count() != all(1e-3).count() {
                    continue;
                }
                let nearest = all(0.0).fold(f64::INFINITY, f64::min);
                let ray = ray(origin, direction);
                let hit = first(&bvh, &ray);
                assert_eq!(hit.is_some(), nearest.is_finite());
                let Some(hit) = hit else { continue };
                hits += 1;
                let tolerance = 2e-5 * f64::from(scale);
                let off = (f64::from(hit.t) - nearest).abs();
                assert!(off < tolerance.max(2e-5 * nearest), "{} {nearest}", hit.t);
                let Target::Triangle {
                    number,
                    place: (block, lane),
                    u,
                    v,
                } = hit.target
                else {
                    panic!("there are only triangles");
                };
                assert_eq!(bvh.blocks[block as usize].triangles[lane as usize], number);
                let [_, exact_u, exact_v] =
                    oracle(&triangles[number as usize], origin, direction, 0.0).expect("it was hit");
                assert!((f64::from(u) - exact_u).abs() < 1e-2 && (f64::from(v) - exact_v).abs() < 1e-2);
                let within = |t_max| first(&bvh, &Ray { t_max, ..ray }).is_some();
                assert!(!within(hit.t) && within(hit.t * 1.001));
                let beyond = first(&bvh, &Ray { t_min: hit.t, ..ray });
                assert!(beyond.is_none_or(|next| next.t > hit.t));
            }
        }
        assert!(hits > 500, "{hits} hits");
    }

    /// Soups that are hard: on a grid, so that hits coincide and rays run along edges; slivers; points and lines; at
    /// scales from 10⁻²⁰ to 10¹⁵.
    fn soups() -> Vec<Vec<Triangle>> {
        let mut random = Pcg32::new(3, 4);
        let on_grid = |random: &mut Pcg32| point(random).map(|x| (3.0 * x).round());
        let mut soups: Vec<Vec<Triangle>> = Vec::new();
        soups.push((0..200).map(|_| [(); 3].map(|()| on_grid(&mut random))).collect());
        let sliver = |random: &mut Pcg32| {
            let (a, along) = (on_grid(random), point(random));
            [a, add(a, 1.0, along), add(add(a, 2.0, along), 1e-7, point(random))]
        };
        soups.push((0..200).map(|_| sliver(&mut random)).collect());
        let flat = soups[0].iter().map(|t| t.map(|p| [p[0], 1.0, p[2]])).collect();
        soups.push(flat);
        for scale in [1e-20, 1e-8, 1e15] {
            let scaled = soups[0].iter().map(|t| t.map(|p| p.map(|x| scale * x))).collect();
            soups.push(scaled);
        }
        soups.push([soups[0].clone(), soups[0].clone(), soups[1].clone()].concat());
        soups
    }

    /// Rays whose components and origins often lie on the grid or are zero.
    fn rays(triangles: &[Triangle], count: usize) -> Vec<Ray> {
        let mut random = Pcg32::new(8, 1);
        let size = triangles
            .as_flattened()
            .as_flattened()
            .iter()
            .fold(0f32, |s, x| s.max(x.abs()));
        let coordinate = |random: &mut Pcg32| match random.next_u32() % 3 {
            0 => 0.0,
            1 => ((6.0 * uniform(random)).round() - 3.0) / 3.0,
            _ => 2.0 * uniform(random) - 1.0,
        };
        let mut rays = Vec::new();
        while rays.len() < count {
            let origin = [(); 3].map(|()| size * coordinate(&mut random));
            let mut direction = [(); 3].map(|()| coordinate(&mut random));
            if random.next_u32().is_multiple_of(2) {
                let t = &triangles[random.next_u32() as usize % triangles.len()];
                direction = add(t[random.next_u32() as usize % 3], -1.0, origin).map(|x| x / size);
            }
            if direction != [0.0; 3] {
                rays.push(ray(origin, direction));
            }
        }
        rays
    }

    /// Bit for bit, on all vector levels, whatever the tree; the lower number wins.
    #[test]
    fn hits_are_those_of_brute_force() {
        let mut hits = 0;
        for triangles in soups() {
            let bvh = Bvh::new(&triangles, &[]);
            for ray in rays(&triangles, 300) {
                let expected = brute_force(&triangles, &bvh, &ray);
                hits += usize::from(expected.is_some());
                for level in Level::all() {
                    let hit = intersect_at(level, &bvh, &ray, &nothing);
                    let found = hit.map(|hit| (hit.t, number(hit)));
                    assert_eq!(found, expected, "{level:?} {ray:?}");
                }
                assert_eq!(is_blocked(&bvh, &ray, &nothing), expected.is_some());
            }
        }
        assert!(hits > 300, "{hits} hits");
    }

    /// After vertices moved, the old tree in new boxes finds what a new tree finds.
    #[test]
    fn refitted_hierarchies_find_what_new_ones_find() {
        let mut random = Pcg32::new(31, 2);
        let mut soup = || -> Vec<Triangle> {
            let triangle = |random: &mut Pcg32| {
                let center = point(random);
                [(); 3].map(|()| add(center, 0.2, point(random)))
            };
            (0..500).map(|_| triangle(&mut random)).collect()
        };
        let (before, after) = (soup(), soup());
        let mut refitted = Bvh::new(&before, &[]);
        refitted.refit(&after, &[]);
        let rebuilt = Bvh::new(&after, &[]);
        assert_eq!(refitted.bounds, rebuilt.bounds);
        let mut hits = 0;
        for ray in rays(&after, 2000) {
            let [old, new] = [&refitted, &rebuilt].map(|bvh| first(bvh, &ray).map(|hit| (hit.t, number(hit))));
            assert_eq!(old, new, "{ray:?}");
            hits += usize::from(old.is_some());
        }
        assert!(hits > 500, "{hits} hits");
    }

    /// Surfaces and triangles in one hierarchy: at the same distance surfaces come first, then lower numbers.
    #[test]
    fn surfaces_are_leaves_too() {
        let quad = |z: f32| [[[-1.0, -1.0, z], [3.0, -1.0, z], [-1.0, 3.0, z]]];
        let triangles = [quad(2.0), quad(1.0), quad(1.0)].concat();
        let plane = |z: f32| [[-1.1, -1.1, z - 0.1], [1.1, 1.1, z + 0.1]];
        for (z, expected) in [(0.5, (0.5, false, 7)), (1.0, (1.0, false, 7)), (1.5, (1.0, true, 1))] {
            let surfaces: Vec<_> = [9, 8, 7].map(|number| (number, plane(z))).to_vec();
            let bvh = Bvh::new(&triangles, &surfaces);
            let ray = ray([0.2, 0.3, 0.0], [0.0, 0.0, 1.0]);
            for level in Level::all() {
                let hit = intersect_at(level, &bvh, &ray, &|_| Some((z, 5))).expect("it was hit");
                let is_triangle = matches!(hit.target, Target::Triangle { .. });
                assert_eq!((hit.t, is_triangle, number(hit)), expected);
            }
        }
    }

    /// A sphere of triangles around a centre; its poles have many neighbours.
    fn sphere(center: [f32; 3], radius: f32, rings: usize) -> Vec<Triangle> {
        let vertex = |i: usize, j: usize| {
            let theta = std::f32::consts::PI * i as f32 / rings as f32;
            let phi = std::f32::consts::PI * (j % (2 * rings)) as f32 / rings as f32;
            // The poles are points, not rings.
            let sine = if i.is_multiple_of(rings) { 0.0 } else { theta.sin() };
            add(center, radius, [sine * phi.cos(), sine * phi.sin(), theta.cos()])
        };
        let quads = (0..rings).flat_map(|i| (0..2 * rings).map(move |j| (i, j)));
        quads
            .flat_map(|(i, j)| {
                let [a, b, c, d] = [vertex(i, j), vertex(i + 1, j), vertex(i + 1, j + 1), vertex(i, j + 1)];
                [[a, b, c], [a, c, d]]
            })
            .filter(|[a, b, c]| a != b && b != c && c != a)
            .collect()
    }

    /// From inside a closed surface nothing gets out: not at vertices, nor along edges, nor far from the world's
    /// origin.
    #[test]
    fn closed_surfaces_do_not_leak() {
        let mut random = Pcg32::new(5, 6);
        for (center, radius) in [
            ([0.0; 3], 1.0),
            ([100.0, -300.0, 1000.0], 1.0),
            ([0.3, 0.1, -0.2], 1e-3),
            ([1e3, 0.0, 0.0], 2e3),
        ] {
            let triangles = sphere(center, radius, 24);
            let bvh = Bvh::new(&triangles, &[]);
            for i in 0..60_000 {
                let origin = match i % 3 {
                    0 => center,
                    _ => add(center, 0.5 * radius, point(&mut random)),
                };
                let [a, b, _] = triangles[random.next_u32() as usize % triangles.len()];
                let along = [0.0, 0.5, uniform(&mut random)][i % 3];
                let target = add(a, along, add(b, -1.0, a));
                let direction = add(target, -1.0, origin);
                let hit = first(&bvh, &ray(origin, direction));
                assert!(hit.is_some(), "from {origin:?} along {direction:?}");
            }
        }
    }

    /// A cube's faces are as thin as boxes get; rays run in their planes' directions and at its corners and edges.
    #[test]
    fn cubes_do_not_leak() {
        let corner = |i: usize| [0, 1, 2].map(|axis| if i >> axis & 1 == 1 { 1.0 } else { -1.0 });
        let quads = [
            [0, 2, 3, 1],
            [4, 5, 7, 6],
            [0, 1, 5, 4],
            [2, 6, 7, 3],
            [0, 4, 6, 2],
            [1, 3, 7, 5],
        ];
        let faces = quads.iter().flat_map(|&[a, b, c, d]| {
            let [a, b, c, d] = [a, b, c, d].map(corner);
            [[a, b, c], [a, c, d]]
        });
        let faces: Vec<Triangle> = faces.collect();
        let bvh = Bvh::new(&faces, &[]);
        let mut random = Pcg32::new(9, 3);
        for i in 0..100_000 {
            let origin = if i % 2 == 0 {
                [0.0; 3]
            } else {
                point(&mut random).map(|v| 0.999 * v)
            };
            let mut target = point(&mut random);
            for axis in 0..3 {
                if random.next_u32().is_multiple_of(2) || axis == i % 3 {
                    target[axis] = if target[axis] < 0.0 { -1.0 } else { 1.0 };
                }
            }
            let direction = add(target, -1.0, origin);
            let hit = first(&bvh, &ray(origin, direction));
            let hit = hit.unwrap_or_else(|| panic!("from {origin:?} along {direction:?}"));
            assert!(
                (hit.t - 1.0).abs() < 1e-4,
                "{hit:?} from {origin:?} along {direction:?}"
            );
        }
    }

    #[test]
    fn nothing_is_hit_where_there_is_nothing() {
        let up = ray([0.0; 3], [0.0, 0.0, 1.0]);
        assert_eq!(first(&Bvh::default(), &up), None);
        let point = [[0.0, 0.0, 1.0]; 3];
        let line = [[0.0, 0.0, 1.0], [0.0, 0.0, 2.0], [0.0, 0.0, 3.0]];
        assert_eq!(first(&Bvh::new(&[point, line], &[]), &up), None);
    }
}
