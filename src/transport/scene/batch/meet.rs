//! Intersects a vector of rays with one shape after another, as `shape.rs` does a single ray.

// Selects between two values without a branch: the vectoriser would turn branches into masked stores.
use std::hint::select_unpredictable as select;

use super::rays::{Group, LANES, Lanes, each_lane, first_lanes, lanes_where};
use crate::resident::layout::{NONE, Rows, surface};
use crate::transport::scene::bvh::{BOX_TOLERANCE, FAR, MIN_DIRECTION};
use crate::transport::scene::records::SceneView;
use crate::transport::scene::shape::intersect_shape;

/// The nearest hits so far: their distances (without a hit the ends of the rays), surfaces ([`NONE`] without a hit) and parts.
#[derive(Debug, Clone, Copy)]
pub(super) struct Met {
    pub t: Lanes<f32>,
    pub number: Lanes<u32>,
    pub part: Lanes<u32>,
}

impl Met {
    #[inline(always)]
    pub(super) fn nothing(far: &Lanes<f32>) -> Self {
        Self {
            t: *far,
            number: [NONE; LANES],
            part: [0; LANES],
        }
    }

    /// Replaces a lane's nearest hit if `hit` is true.
    #[inline(always)]
    fn improve(&mut self, lane: usize, hit: bool, t: f32, number: u32, part: u32) {
        self.t[lane] = select(hit, t, self.t[lane]);
        self.number[lane] = select(hit, number, self.number[lane]);
        self.part[lane] = select(hit, part, self.part[lane]);
    }

    /// Tests the rays against `shapes`, none of them a mesh; lanes outside of `ahead` get no hit. Returns the lanes with a hit.
    #[inline(always)]
    pub(super) fn meet_all(&mut self, scene: &SceneView, shapes: &[u32], rays: &Group, ahead: u32) -> u32 {
        if ahead == 0 {
            return 0;
        }
        for &number in shapes {
            let record = &scene.surfaces[number as usize];
            let m = &record.to_local;
            match record.kind {
                surface::CUBE => self.meet_cube(m, number, rays),
                surface::SPHERE => self.meet_sphere(m, number, rays),
                surface::DISK => self.meet_disk(m, number, rays),
                surface::CYLINDER => self.meet_cylinder(m, number, rays),
                surface::DISTANCES => self.meet_distances(scene, number, rays, ahead),
                _ => self.meet_rectangle(m, number, rays),
            }
        }
        for lane in 0..LANES {
            let is_ahead = ahead >> lane & 1 != 0;
            self.number[lane] = select(is_ahead, self.number[lane], NONE);
        }
        lanes_where(|lane| self.number[lane] != NONE)
    }

    /// Tests a shape given by signed distances, one ray after another.
    #[inline(always)]
    fn meet_distances(&mut self, scene: &SceneView, number: u32, rays: &Group, ahead: u32) {
        each_lane(ahead, |lane| {
            let (o, d) = (rays.origin(lane), rays.direction(lane));
            // The same limit as for a single ray, so that the bits are the same.
            let far = if scene.bvh.nodes.is_empty() {
                self.t[lane]
            } else {
                rays.far[lane]
            };
            if let Some((t, part)) = intersect_shape(scene, number, o, d, far)
                && t < self.t[lane]
            {
                (self.t[lane], self.number[lane], self.part[lane]) = (t, number, part);
            }
        });
    }

    #[inline(always)]
    fn meet_rectangle(&mut self, m: &Rows, number: u32, rays: &Group) {
        for lane in 0..LANES {
            let (o, d) = rays.local(m, lane);
            let t = -o[2] / d[2];
            let (x, y) = (o[0] + t * d[0], o[1] + t * d[1]);
            let hit = (t > 0.0) & (t < self.t[lane]) & (x.abs() <= 1.0) & (y.abs() <= 1.0);
            self.improve(lane, hit, t, number, 0);
        }
    }

    #[inline(always)]
    fn meet_disk(&mut self, m: &Rows, number: u32, rays: &Group) {
        for lane in 0..LANES {
            let (o, d) = rays.local(m, lane);
            let t = -o[2] / d[2];
            let (x, y) = (o[0] + t * d[0], o[1] + t * d[1]);
            let hit = (t > 0.0) & (t < self.t[lane]) & (x * x + y * y <= 1.0);
            self.improve(lane, hit, t, number, 0);
        }
    }

    #[inline(always)]
    fn meet_sphere(&mut self, m: &Rows, number: u32, rays: &Group) {
        for lane in 0..LANES {
            let (o, d) = rays.local(m, lane);
            let dd = d[0] * d[0] + d[1] * d[1] + d[2] * d[2];
            let middle = -(o[0] * d[0] + o[1] * d[1] + o[2] * d[2]) / dd;
            let (x, y, z) = (o[0] + middle * d[0], o[1] + middle * d[1], o[2] + middle * d[2]);
            // For a miss the root is NaN, and all comparisons fail.
            let half = ((1.0 - (x * x + y * y + z * z)) / dd).sqrt();
            let (enter, leave) = (middle - half, middle + half);
            let t = select(enter > 0.0, enter, leave);
            let hit = (t > 0.0) & (t < self.t[lane]);
            self.improve(lane, hit, t, number, 0);
        }
    }

    #[inline(always)]
    fn meet_cylinder(&mut self, m: &Rows, number: u32, rays: &Group) {
        for lane in 0..LANES {
            let (o, d) = rays.local(m, lane);
            let far = self.t[lane];
            let dd = d[0] * d[0] + d[1] * d[1];
            let middle = -(o[0] * d[0] + o[1] * d[1]) / dd;
            let (x, y) = (o[0] + middle * d[0], o[1] + middle * d[1]);
            let half = ((1.0 - (x * x + y * y)) / dd).sqrt();
            let (enter, leave) = (middle - half, middle + half);
            let enters = (enter > 0.0) & (enter < far) & ((o[2] + enter * d[2]).abs() <= 1.0);
            let leaves = (leave > 0.0) & (leave < far) & ((o[2] + leave * d[2]).abs() <= 1.0);
            let hit = (dd != 0.0) & (enters | leaves);
            self.improve(lane, hit, select(enters, enter, leave), number, 0);
        }
    }

    #[inline(always)]
    fn meet_cube(&mut self, m: &Rows, number: u32, rays: &Group) {
        for lane in 0..LANES {
            let (o, d) = rays.local(m, lane);
            let (mut enter, mut leave) = (f32::NEG_INFINITY, f32::INFINITY);
            let (mut first, mut last) = (0, 0);
            let mut beside = false;
            for a in 0..3 {
                let along = d[a] != 0.0;
                beside |= !along & !((o[a] >= -1.0) & (o[a] <= 1.0));
                let inverse = 1.0 / d[a];
                let (low, high) = ((-1.0 - o[a]) * inverse, (1.0 - o[a]) * inverse);
                let backwards = u32::from(d[a] < 0.0);
                let axis = 2 * a as u32;
                let near = low.min(high);
                let nearer = along & (near > enter);
                enter = select(nearer, near, enter);
                first = select(nearer, axis + backwards, first);
                let end = low.max(high);
                let ends = along & (end < leave);
                leave = select(ends, end, leave);
                last = select(ends, axis + 1 - backwards, last);
            }
            let outside = enter > 0.0;
            let t = select(outside, enter, leave);
            let hit = !beside & (enter <= leave) & (t > 0.0) & (t < self.t[lane]);
            self.improve(lane, hit, t, number, select(outside, first, last));
        }
    }

    /// A bit for each lane whose ray enters the box around all triangles before the nearest hit so far, as the BVH's boxes
    /// are entered.
    #[inline(always)]
    pub(super) fn enters(&self, [low, high]: &[[f32; 3]; 2], rays: &Group) -> u32 {
        let mut enters = [0u32; LANES];
        for lane in 0..LANES {
            let (o, d) = (rays.origin(lane), rays.direction(lane));
            let mut reach = 0.0f32;
            for a in 0..3 {
                reach = more(reach, (low[a] - o[a]).abs());
                reach = more(reach, (high[a] - o[a]).abs());
                reach = more(reach, o[a].abs());
            }
            let slack = BOX_TOLERANCE * reach;
            let (mut near, mut far) = (0.0, less(self.t[lane], FAR));
            for a in 0..3 {
                let backwards = d[a] < 0.0;
                let least = select(backwards, -MIN_DIRECTION, MIN_DIRECTION);
                let inverse = 1.0 / select(d[a].abs() < MIN_DIRECTION, least, d[a]);
                let side = select(backwards, -slack, slack);
                let (first, last) = (select(backwards, high[a], low[a]), select(backwards, low[a], high[a]));
                near = more((first - (o[a] + side)) * inverse, near);
                far = less((last - (o[a] - side)) * inverse, far);
            }
            enters[lane] = u32::from(near <= far);
        }
        lanes_where(|lane| enters[lane] != 0)
    }
}

/// A bit for each lane whose ray does not point away from the box around all surfaces (`points_away`); with a BVH, all lanes.
#[inline(always)]
pub(super) fn ahead(scene: &SceneView, rays: &Group) -> u32 {
    if !scene.bvh.nodes.is_empty() {
        return first_lanes(LANES);
    }
    let [low, high] = &scene.bounds;
    let mut away = [0u32; LANES];
    for lane in 0..LANES {
        let (o, d) = (rays.origin(lane), rays.direction(lane));
        let mut any = false;
        for a in 0..3 {
            any |= (o[a] > high[a]) & (d[a] >= 0.0) | (o[a] < low[a]) & (d[a] <= 0.0);
        }
        away[lane] = u32::from(any);
    }
    lanes_where(|lane| away[lane] == 0)
}

/// Minimum and, in [`more`], maximum by one instruction: `f32::min` takes further ones to handle NaN.
#[inline(always)]
pub(super) fn less(a: f32, b: f32) -> f32 {
    if a < b { a } else { b }
}

#[inline(always)]
pub(super) fn more(a: f32, b: f32) -> f32 {
    if a > b { a } else { b }
}
