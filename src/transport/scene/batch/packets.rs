//! Packet traversal of the BVH's triangles, sixteen rays at a time: a box or a triangle is tested against all rays of a packet
//! that have entered its parent's box, in the arithmetic of `bvh.rs`. Where few rays are left, each is traversed by itself.

// Selects between two values without a branch: the vectoriser would turn branches into masked stores.
use std::hint::select_unpredictable as select;

use super::meet::{less, more};
use super::rays::{LANES, Lanes, Rays, Vectors, lanes_where};
use crate::each::EachEntry;
use crate::resident::bvh::{Bvh, MAX_LEVELS};
use crate::resident::layout::{BLOCK, BlockRecord, NONE, NodeRecord, WIDTH, child};
use crate::transport::scene::bvh::{
    self, BOX_TOLERANCE, EDGE_TOLERANCE, FAR, MIN_DIRECTION, Prepared, Start, TRIANGLE, Target,
};

/// Up to this many remaining rays of a packet are traversed one by one.
const FEW: u32 = 3;

/// Size of the traversal stack, as in `bvh.rs`: all children but the visited one, for every node on the way down.
const WAITING: usize = (WIDTH - 1) * MAX_LEVELS + 1;

/// An entry of the traversal stack: a child, the lanes whose rays enter it, and the entry distance of the first of these.
#[derive(Debug, Clone, Copy)]
struct Waiting {
    enters: f32,
    child: u32,
    lanes: u32,
}

/// Rays of a packet, with the values that box and triangle tests share. Each vector of lanes is one cache line.
#[repr(align(64))]
pub(super) struct Packet {
    origin: Vectors,
    inverse: Vectors,
    /// The origin, shifted by the error bound for lower and for upper planes, which widens all boxes.
    low: Vectors,
    high: Vectors,
    /// The axis of the direction's largest component; in `by`, shear along the two axes after it (cyclically), then
    /// scale along it.
    last: Lanes<u32>,
    by: Vectors,
    /// The nearest hits so far: their distances (without a hit the ends of the rays), and the triangles' numbers with
    /// the bit `TRIANGLE`, as `bvh.rs` compares them (without a hit zero).
    pub t: Lanes<f32>,
    number: Lanes<u32>,
    /// The hit triangle's place in the BVH, `BLOCK` · block + lane, and barycentric weights of its second and third corners.
    pub place: Lanes<u32>,
    pub weights: [Lanes<f32>; 2],
}

impl Packet {
    /// The packet of up to [`LANES`] rays, given by their indices, on the intervals from 0 to `t`. Unused lanes repeat
    /// the first ray.
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

    /// The number, among the triangles of all meshes, of the one that a lane has hit.
    #[inline(always)]
    pub(super) fn triangle(&self, lane: usize) -> Option<u32> {
        (self.number[lane] != 0).then_some(self.number[lane] & !TRIANGLE)
    }

    /// Traverses the BVH for the lanes of `all`: their nearest hits, or with `ANY` whether they have any. Returns the
    /// lanes with a hit.
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

    /// Pushes the children of a node that any ray of `lanes` enters onto the stack, the nearest on top. Returns the
    /// stack's new depth.
    #[inline(always)]
    fn enter_node(
        &self,
        bvh: &Bvh,
        node: &NodeRecord,
        lanes: u32,
        waiting: &mut [Waiting; WAITING],
        mut depth: usize,
    ) -> usize {
        // All boxes are tested before the first branch on a result: a mispredicted branch costs as much as another box test.
        let (mut nears, mut bits) = ([[0.0; LANES]; WIDTH], [0; WIDTH]);
        for k in 0..WIDTH {
            (nears[k], bits[k]) = self.enter([0, 1, 2, 3, 4, 5].each(|plane| node.planes[plane][k]));
        }
        let mut entered = 0;
        for k in 0..WIDTH {
            // Children that are other surfaces or empty slots have the highest bit set.
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

    /// Entry distances of a box, given by its three lower and then its three upper planes, and a bit for each lane that
    /// enters it before its nearest hit.
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

    /// One lane's ray, prepared for the traversal of a single ray.
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

    /// Traverses the subtree of a child with one lane's ray. Returns whether it hits a triangle nearer than before.
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

/// A vector's components in cyclic order, that of the axis `last` at the end.
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
