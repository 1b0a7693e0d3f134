//! Rays that go down the hierarchy of triangles together, sixteen at a time: a box or a triangle is tested against all rays of a
//! packet that have met what is above it, in the arithmetic of `bvh.rs`. Where few are left, each goes on by itself.

// A choice between values, never between branches, which would become stores under a mask.
use std::hint::select_unpredictable as select;

use super::meet::{less, more};
use super::rays::{LANES, Lanes, Rays, Vectors, lanes_where};
use crate::each::EachEntry;
use crate::resident::bvh::{Bvh, MAX_LEVELS};
use crate::resident::layout::{BLOCK, BlockRecord, NONE, NodeRecord, WIDTH, child};
use crate::transport::scene::bvh::{
    self, BOX_TOLERANCE, EDGE_TOLERANCE, FAR, MIN_DIRECTION, Prepared, Start, TRIANGLE, Target,
};

/// Rays of a packet that go on one by one; more do so together.
const FEW: u32 = 3;

/// Children that are not visited yet, for every node on the way down.
const WAITING: usize = (WIDTH - 1) * MAX_LEVELS + 1;

/// A child that waits for the rays of some lanes, and where one of them enters it.
#[derive(Debug, Clone, Copy)]
struct Waiting {
    enters: f32,
    child: u32,
    lanes: u32,
}

/// Rays of a packet, with what box and triangle tests share. Each vector lies in one line of the cache.
#[repr(align(64))]
pub(super) struct Packet {
    origin: Vectors,
    inverse: Vectors,
    /// The origin, moved so that lower planes, and that upper planes are farther from the middle of a box by the error bound.
    low: Vectors,
    high: Vectors,
    /// The axis of the direction's largest component; shear along the two that follow it, scale along it.
    last: Lanes<u32>,
    by: Vectors,
    /// The nearest hits so far: their distances, or how far the rays reach, and the numbers of triangles as `bvh.rs` compares
    /// them, zero without.
    pub t: Lanes<f32>,
    number: Lanes<u32>,
    /// Places of triangles in the hierarchy, and weights of their second and third corners.
    pub place: Lanes<u32>,
    pub weights: [Lanes<f32>; 2],
}

impl Packet {
    /// Those of up to [`LANES`] rays, given by their indices, that reach as far as `t`. Lanes without one repeat the first.
    #[inline(always)]
    pub(super) fn new(bounds: &[[f32; 3]; 2], rays: &Rays, which: &[u32], t: &[f32]) -> Self {
        let mut packet = Self {
            origin: [[0.0; LANES]; 3],
            inverse: [[0.0; LANES]; 3],
            low: [[0.0; LANES]; 3],
            high: [[0.0; LANES]; 3],
            last: [0; LANES],
            by: [[0.0; LANES]; 3],
            t: [0.0; LANES],
            number: [0; LANES],
            place: [0; LANES],
            weights: [[0.0; LANES]; 2],
        };
        let mut direction = [[0.0; LANES]; 3];
        for lane in 0..LANES {
            let i = *which.get(lane).unwrap_or(&which[0]) as usize;
            for a in 0..3 {
                packet.origin[a][lane] = rays.origin[a][i];
                direction[a][lane] = rays.direction[a][i];
            }
            packet.t[lane] = t[i].min(FAR);
        }
        packet.prepare(bounds, &direction);
        packet
    }

    #[inline(always)]
    fn prepare(&mut self, bounds: &[[f32; 3]; 2], direction: &Vectors) {
        for lane in 0..LANES {
            let [o, d] = [&self.origin, direction].each(|of| [0, 1, 2].each(|a| of[a][lane]));
            let mut reach = 0.0f32;
            for a in 0..3 {
                reach = more(reach, (bounds[0][a] - o[a]).abs());
                reach = more(reach, (bounds[1][a] - o[a]).abs());
                reach = more(reach, o[a].abs());
            }
            let slack = BOX_TOLERANCE * reach;
            for a in 0..3 {
                let least = select(d[a] < 0.0, -MIN_DIRECTION, MIN_DIRECTION);
                self.inverse[a][lane] = 1.0 / select(d[a].abs() < MIN_DIRECTION, least, d[a]);
                self.low[a][lane] = o[a] + slack;
                self.high[a][lane] = o[a] - slack;
            }
            let size = d.each(f32::abs);
            let y = size[1] > size[0];
            let z = size[2] > select(y, size[1], size[0]);
            let last = select(z, 2, u32::from(y));
            self.last[lane] = last;
            let [x, y, along] = turned(last, d);
            let by = [x / along, y / along, 1.0 / along];
            for k in 0..3 {
                self.by[k][lane] = by[k];
            }
        }
    }

    /// Whether a lane has met a triangle, and its number among all meshes'.
    #[inline(always)]
    pub(super) fn triangle(&self, lane: usize) -> Option<u32> {
        (self.number[lane] != 0).then_some(self.number[lane] & !TRIANGLE)
    }

    /// Finds the nearest hits of the lanes of `all`; with `ANY` whether there are some. Returns the lanes that have one.
    #[inline(always)]
    pub(super) fn walk<const ANY: bool>(&mut self, bvh: &Bvh, all: u32) -> u32 {
        let mut waiting = [Waiting {
            enters: 0.0,
            child: 0,
            lanes: 0,
        }; WAITING];
        waiting[0].lanes = all;
        let mut depth = 1;
        let mut open = all;
        while depth > 0 {
            depth -= 1;
            let Waiting { child: at, lanes, .. } = waiting[depth];
            let lanes = lanes & open;
            if lanes == 0 {
                continue;
            }
            if lanes.count_ones() <= FEW {
                // Not by a closure, which would be compiled without the kernel's vector level.
                let (mut left, mut met) = (lanes, 0);
                while left != 0 {
                    let lane = left.trailing_zeros() as usize % LANES;
                    left &= left - 1;
                    met |= u32::from(self.go_alone::<ANY>(bvh, at, lane)) << lane;
                }
                if ANY {
                    open &= !met;
                }
                continue;
            }
            let index = (at & !child::KIND) as usize;
            if at & child::KIND == child::BLOCK {
                let met = self.meet_block(&bvh.blocks[index], index as u32, lanes);
                if ANY {
                    open &= !met;
                }
                continue;
            }
            depth = self.enter_node(bvh, &bvh.nodes[index], lanes, &mut waiting, depth);
        }
        match ANY {
            true => all & !open,
            false => all & lanes_where(|lane| self.number[lane] != 0),
        }
    }

    /// Lets the children of a node that any ray of `lanes` enters wait, the nearest in front. Returns how many wait.
    #[inline(always)]
    fn enter_node(
        &self,
        bvh: &Bvh,
        node: &NodeRecord,
        lanes: u32,
        waiting: &mut [Waiting; WAITING],
        mut depth: usize,
    ) -> usize {
        // Which children are entered is not asked before all have been looked at: a wrong guess costs as much as another box.
        let (mut nears, mut bits) = ([[0.0; LANES]; WIDTH], [0; WIDTH]);
        for k in 0..WIDTH {
            (nears[k], bits[k]) = self.enter([0, 1, 2, 3, 4, 5].each(|plane| node.planes[plane][k]));
        }
        let mut entered = 0;
        for k in 0..WIDTH {
            // Surfaces that are no triangles, and none at all, have the highest bit.
            let is_searched = (node.children[k] < child::SURFACE) & (bits[k] & lanes != 0);
            entered |= u32::from(is_searched) << k;
        }
        let base = depth;
        while entered != 0 {
            let k = entered.trailing_zeros() as usize % WIDTH;
            entered &= entered - 1;
            let (child, near, met) = (node.children[k], &nears[k], bits[k] & lanes);
            bvh::prefetch(bvh, child);
            let enters = near[met.trailing_zeros() as usize % LANES];
            let mut place = depth;
            while place > base && waiting[place - 1].enters < enters {
                waiting[place] = waiting[place - 1];
                place -= 1;
            }
            waiting[place] = Waiting {
                enters,
                child,
                lanes: met,
            };
            depth += 1;
        }
        depth
    }

    /// Entry distances of a box, whose lower planes stand before its upper ones, and a bit for each lane that enters it before
    /// its hit.
    #[inline(always)]
    fn enter(&self, planes: [f32; 6]) -> (Lanes<f32>, u32) {
        let mut nears = [0.0; LANES];
        let mut enters = [0u32; LANES];
        for lane in 0..LANES {
            let (mut near, mut far) = (0.0, self.t[lane]);
            for a in 0..3 {
                let inverse = self.inverse[a][lane];
                let low = (planes[a] - self.low[a][lane]) * inverse;
                let high = (planes[3 + a] - self.high[a][lane]) * inverse;
                let backwards = inverse < 0.0;
                near = more(select(backwards, high, low), near);
                far = less(select(backwards, low, high), far);
            }
            nears[lane] = near;
            enters[lane] = u32::from(near <= far);
        }
        (nears, lanes_where(|lane| enters[lane] != 0))
    }

    /// Tests the rays of `lanes` against the triangles of a block. Returns those that hit one.
    #[inline(always)]
    fn meet_block(&mut self, block: &BlockRecord, index: u32, lanes: u32) -> u32 {
        let mut met = 0;
        for k in 0..BLOCK {
            if block.triangles[k] != NONE {
                let corners = [0, 3, 6].each(|first| [0, 1, 2].each(|axis| block.corners[first + axis][k]));
                met |= self.meet_triangle(&corners, block.triangles[k], BLOCK as u32 * index + k as u32, lanes);
            }
        }
        met
    }

    #[inline(always)]
    fn meet_triangle(&mut self, corners: &[[f32; 3]; 3], number: u32, place: u32, lanes: u32) -> u32 {
        let (mut t, mut u, mut v) = ([0.0; LANES], [0.0; LANES], [0.0; LANES]);
        let mut hits = [0u32; LANES];
        for lane in 0..LANES {
            let [a, b, c] = corners.each(|corner| self.sheared(lane, corner));
            let [u0, v0, w0] = [edge(b, c), edge(c, a), edge(a, b)];
            let outside = (less(less(u0, v0), w0) < 0.0) & (more(more(u0, v0), w0) > 0.0);
            let sum = u0 + v0 + w0;
            t[lane] = (u0 * a[2] + v0 * b[2] + w0 * c[2]) / sum;
            (u[lane], v[lane]) = (v0 / sum, w0 / sum);
            hits[lane] = u32::from(!outside & (t[lane] > 0.0) & (t[lane] <= self.t[lane]));
        }
        let hits = lanes & lanes_where(|lane| hits[lane] != 0);
        if hits == 0 {
            return 0;
        }
        let mut planes = [0.0; 6];
        for axis in 0..3 {
            let [a, b, c] = corners.each(|corner| corner[axis]);
            planes[axis] = less(less(a, b), c);
            planes[3 + axis] = more(more(a, b), c);
        }
        let (starts, enters) = self.enter(planes);
        let mut nearer = [0u32; LANES];
        for lane in 0..LANES {
            let t = more(t[lane], starts[lane]);
            let first = (t < self.t[lane]) | (t == self.t[lane]) & ((number | TRIANGLE) < self.number[lane]);
            let hit = first & ((hits & enters) >> lane & 1 != 0);
            nearer[lane] = u32::from(hit);
            self.t[lane] = select(hit, t, self.t[lane]);
            self.number[lane] = select(hit, number | TRIANGLE, self.number[lane]);
            self.place[lane] = select(hit, place, self.place[lane]);
            self.weights[0][lane] = select(hit, u[lane], self.weights[0][lane]);
            self.weights[1][lane] = select(hit, v[lane], self.weights[1][lane]);
        }
        lanes_where(|lane| nearer[lane] != 0)
    }

    /// A corner in the space of a ray, which is the line x = y = 0 there.
    #[inline(always)]
    fn sheared(&self, lane: usize, corner: [f32; 3]) -> [f32; 3] {
        let from = [0, 1, 2].each(|a| corner[a] - self.origin[a][lane]);
        let [x, y, z] = turned(self.last[lane], from);
        let by = [0, 1, 2].each(|k| self.by[k][lane]);
        [x - by[0] * z, y - by[1] * z, by[2] * z]
    }

    /// What box and triangle tests need of one ray.
    #[inline(always)]
    fn prepared(&self, lane: usize) -> Prepared {
        let [origin, inverse, low, high, by] =
            [&self.origin, &self.inverse, &self.low, &self.high, &self.by].each(|of| [0, 1, 2].each(|a| of[a][lane]));
        let backwards = inverse.each(|x| x < 0.0);
        let last = self.last[lane];
        Prepared {
            inverse,
            near: [0, 1, 2].each(|a| select(backwards[a], high[a], low[a])),
            far: [0, 1, 2].each(|a| select(backwards[a], low[a], high[a])),
            backwards,
            axes: bvh::axes(last as usize),
            origin: turned(last, origin),
            by,
        }
    }

    /// Takes one ray further from a child on. Returns whether it hits anything.
    #[inline(always)]
    fn go_alone<const ANY: bool>(&mut self, bvh: &Bvh, at: u32, lane: usize) -> bool {
        let ray = self.prepared(lane);
        let start = Start {
            child: at,
            t_min: 0.0,
            t_max: self.t[lane],
            number: self.number[lane],
        };
        let hit = match at & child::KIND {
            child::BLOCK => bvh::intersect_in_block(bvh, at & !child::KIND, &ray, &start),
            _ if ANY => return bvh::is_blocked_below(bvh, ray, &start),
            _ => bvh::intersect_below(bvh, ray, &start),
        };
        let Some(hit) = hit else { return false };
        if let Target::Triangle { number, place, u, v } = hit.target {
            self.t[lane] = hit.t;
            self.number[lane] = number | TRIANGLE;
            self.place[lane] = BLOCK as u32 * place.0 + place.1;
            (self.weights[0][lane], self.weights[1][lane]) = (u, v);
        }
        true
    }
}

/// A vector with its axis `last` at the end, and those that follow it before.
#[inline(always)]
fn turned(last: u32, [x, y, z]: [f32; 3]) -> [f32; 3] {
    let (is_x, is_y) = (last == 0, last == 1);
    [
        select(is_x, y, select(is_y, z, x)),
        select(is_x, z, select(is_y, x, y)),
        select(is_x, x, select(is_y, y, z)),
    ]
}

/// The edge function of `bvh.rs`.
#[inline(always)]
fn edge(p: [f32; 3], q: [f32; 3]) -> f32 {
    let (left, right) = (p[0] * q[1], p[1] * q[0]);
    let area = left - right;
    let unsure = EDGE_TOLERANCE * more(left.abs(), right.abs());
    select(area.abs() <= unsure, 0.0, area)
}
