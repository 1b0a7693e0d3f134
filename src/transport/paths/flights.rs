//! Free flights of several paths through one medium, side by side in the lanes of vectors.
//!
//! Delta tracking of a single path is a chain of dependent steps with branches that cannot be predicted. Here
//! [`LANES`] paths take each step together, and lanes whose flight has ended are filled again. The steps of a lane are
//! those of a path alone (`tracking.rs`), from the same random numbers and to the same bits.

// Chooses between two computed values: the compiler would turn branches into masked stores.
use std::hint::select_unpredictable as select;

use super::tracking::{Extinction, Flight, Flown};
use crate::each::EachEntry;
use crate::resident::layout::{MediumRecord, NONE, medium as medium_flag};
use crate::transport::lookup::grid::{Stencils, grid_eval_lanes, grid_stencils_rounding, index_below, prefetch};
use crate::transport::lookup::volume::is_plain;
use crate::transport::number::rgb::Rgb;
use crate::transport::rays::sampler::{Sampler, Samplers, exponential};
use crate::transport::scene::records::SceneView;

/// Paths that take each step together, one in each lane of a vector.
pub const LANES: usize = 16;

/// A value for each lane.
type Lanes<T> = [T; LANES];

/// Idle lanes are filled again when there are this many. Filling single lanes costs more than it saves, since a vector that was
/// written in parts and is read as a whole stalls the processor.
const IDLE: u32 = 8;

/// A flight to be made.
#[derive(Debug, Clone, Copy)]
pub struct Departure {
    pub origin: [f32; 3],
    pub direction: [f32; 3],
    pub far: f32,
    pub sampler: Sampler,
}

/// A flight that was made, and the sampler's state after it.
#[derive(Debug, Clone, Copy)]
pub struct Arrival {
    pub flown: Flown<f32>,
    pub sampler: Sampler,
}

impl Arrival {
    /// Placeholder for a flight that has not been made yet.
    #[inline]
    pub(super) fn unknown(departure: &Departure) -> Self {
        Self {
            flown: Flown {
                medium: NONE,
                flight: Flight::Passed,
                part: None,
            },
            sampler: departure.sampler,
        }
    }
}

/// Whether flights through this medium can be made side by side: it is bounded, and its extinction is one number a
/// texel with the usual lookup.
#[inline]
pub fn fits_side_by_side(scene: &SceneView, medium: &MediumRecord) -> bool {
    let volume = &scene.volumes[medium.sigma_t as usize];
    is_plain(volume) && volume.size[3] == 1 && medium.high.iter().all(|x| x.is_finite())
}

/// Makes all flights through the medium of this index, with the values of its extinction and albedo; `arrivals[i]` is the end
/// of `departures[i]`.
#[inline(always)]
pub fn fly_side_by_side(
    scene: &SceneView,
    medium: u32,
    [extinction, albedo]: [&[f32]; 2],
    departures: &[Departure],
    arrivals: &mut [Arrival],
) {
    let cloud = Cloud::new(scene, medium, extinction, albedo);
    let mut tracks = Tracks::idle();
    let mut taken = 0;
    loop {
        if taken < departures.len() && tracks.idle_lanes() >= IDLE {
            let missed = tracks.depart(&cloud, departures, &mut taken);
            for lane in 0..LANES {
                if missed[lane] != 0 {
                    arrivals[tracks.flight[lane] as usize] = tracks.pass(&cloud, lane, None);
                }
            }
            continue;
        }
        if tracks.idle_lanes() == LANES as u32 {
            return;
        }
        let mu = tracks.reach(&cloud);
        for lane in 0..LANES {
            if tracks.live[lane] == ENDED {
                tracks.live[lane] = 0;
                let part = [tracks.start[lane], tracks.end[lane]];
                arrivals[tracks.flight[lane] as usize] = tracks.pass(&cloud, lane, Some(part));
            }
        }
        let looked_up = tracks.look_up(&cloud);
        let real = tracks.decide(&looked_up.value, &mu);
        for lane in 0..LANES {
            if real[lane] != 0 {
                tracks.live[lane] = 0;
                arrivals[tracks.flight[lane] as usize] = tracks.collide(&cloud, lane, &looked_up);
            }
        }
        tracks.go_on();
    }
}

/// A medium and its extinction.
#[derive(Debug, Clone, Copy)]
struct Cloud<'a> {
    number: u32,
    medium: &'a MediumRecord,
    size: [u32; 4],
    world_to_unit: &'a [[f32; 4]; 3],
    extinction: &'a [f32],
    /// Values of the albedo and its number of channels, if its texels are where those of the extinction are.
    albedo: Option<(&'a [f32], u32)>,
    majorants: &'a [f32],
}

impl<'a> Cloud<'a> {
    fn new(scene: &'a SceneView, number: u32, extinction: &'a [f32], albedo: &'a [f32]) -> Self {
        let medium = &scene.media[number as usize];
        let volume = &scene.volumes[medium.sigma_t as usize];
        let texels = volume.size[0] as usize * volume.size[1] as usize * volume.size[2] as usize;
        assert!(
            volume.size[3] == 1 && texels == extinction.len(),
            "the extinction is not that of the medium"
        );
        let [x, y, z, first] = medium.majorants.each(|n| n as usize);
        Self {
            number,
            medium,
            size: volume.size,
            world_to_unit: &volume.world_to_unit,
            extinction,
            albedo: (medium.has(medium_flag::ALIGNED))
                .then_some((albedo, scene.volumes[medium.albedo as usize].size[3])),
            majorants: &scene.majorants[first..first + x * y * z],
        }
    }
}

/// [`Tracks::live`] of a lane whose flight goes on, has reached a tentative collision, or has passed the medium.
const FLYING: u32 = 1;
const REACHED: u32 = 2;
const ENDED: u32 = 3;

/// The state of delta tracking in each lane, as `scene::majorant::Cells` keeps it for a single path.
#[derive(Debug, Clone, Copy)]
struct Tracks {
    /// 0 for an idle lane.
    live: Lanes<u32>,
    /// The place of the flight among the departures.
    flight: Lanes<u32>,
    origin: [Lanes<f32>; 3],
    direction: [Lanes<f32>; 3],
    /// Distances at which the flight entered the medium, of the present point, and at which the ray leaves the medium.
    start: Lanes<f32>,
    t: Lanes<f32>,
    end: Lanes<f32>,
    /// Optical depth by majorants that is left to the next tentative collision.
    rest: Lanes<f32>,
    /// The present cell, and what takes the ray to the next.
    index: Lanes<u32>,
    next: [Lanes<f32>; 3],
    delta: [Lanes<f32>; 3],
    left: [Lanes<u32>; 3],
    stride: [Lanes<u32>; 3],
    samplers: Samplers<LANES>,
}

/// Extinction at the present points.
#[derive(Debug, Clone, Copy)]
struct LookedUp {
    p: [Lanes<f32>; 3],
    at: Stencils<LANES>,
    value: Lanes<f32>,
}

impl Tracks {
    #[inline(always)]
    fn idle() -> Self {
        Self {
            live: [0; LANES],
            flight: [0; LANES],
            origin: [[0.0; LANES]; 3],
            direction: [[0.0; LANES]; 3],
            start: [0.0; LANES],
            t: [0.0; LANES],
            end: [0.0; LANES],
            rest: [0.0; LANES],
            index: [0; LANES],
            next: [[f32::INFINITY; LANES]; 3],
            delta: [[f32::INFINITY; LANES]; 3],
            left: [[0; LANES]; 3],
            stride: [[0; LANES]; 3],
            samplers: Samplers::none(),
        }
    }

    #[inline(always)]
    fn idle_lanes(&self) -> u32 {
        let mut idle = 0;
        for lane in 0..LANES {
            idle += u32::from(self.live[lane] == 0);
        }
        idle
    }

    /// Begins flights in all idle lanes, as long as there are any to be made (`majorant::clip`, `Cells::new`). Returns
    /// the lanes whose ray misses the medium, which stay idle.
    #[inline(always)]
    fn depart(&mut self, cloud: &Cloud, departures: &[Departure], taken: &mut usize) -> Lanes<u32> {
        let medium = cloud.medium;
        let mut fresh = [0; LANES];
        for lane in 0..LANES {
            if self.live[lane] == 0 && *taken < departures.len() {
                let departure = &departures[*taken];
                for a in 0..3 {
                    self.origin[a][lane] = departure.origin[a];
                    self.direction[a][lane] = departure.direction[a];
                }
                self.end[lane] = departure.far;
                self.samplers.put(lane, &departure.sampler);
                self.flight[lane] = *taken as u32;
                fresh[lane] = 1;
                *taken += 1;
            }
        }
        // Clip the rays to the medium's box.
        let (mut begin, mut end): (Lanes<f32>, Lanes<f32>) = ([0.0; LANES], self.end);
        let mut missed = [0; LANES];
        for a in 0..3 {
            let (low, high) = (medium.low[a], medium.high[a]);
            for lane in 0..LANES {
                let (o, d) = (self.origin[a][lane], self.direction[a][lane]);
                let inverse = 1.0 / d;
                let (p, q) = ((low - o) * inverse, (high - o) * inverse);
                let (enter, leave) = (begin[lane].max(p.min(q)), end[lane].min(p.max(q)));
                let parallel = d == 0.0;
                begin[lane] = if parallel { begin[lane] } else { enter };
                end[lane] = if parallel { end[lane] } else { leave };
                missed[lane] |= u32::from(parallel & ((o < low) | (o > high)));
            }
        }
        for lane in 0..LANES {
            let passes = (missed[lane] == 0) & (begin[lane] < end[lane]);
            missed[lane] = u32::from((fresh[lane] != 0) & !passes);
            fresh[lane] &= u32::from(passes);
        }
        // Find the cells that they begin in.
        let mut stride = 1;
        let mut index = [0; LANES];
        for a in 0..3 {
            let count = medium.majorants[a];
            let m = &medium.world_to_grid[a];
            for lane in 0..LANES {
                let is_fresh = fresh[lane] != 0;
                let o = [self.origin[0][lane], self.origin[1][lane], self.origin[2][lane]];
                let d = [
                    self.direction[0][lane],
                    self.direction[1][lane],
                    self.direction[2][lane],
                ];
                let start = (m[0] * o[0] + m[1] * o[1] + m[2] * o[2] + m[3]) * count as f32;
                let speed = (m[0] * d[0] + m[1] * d[1] + m[2] * d[2]) * count as f32;
                let cell = index_below(start + begin[lane] * speed, count - 1);
                index[lane] += cell * stride;
                let moves = (count > 1) & (speed != 0.0);
                let forward = speed > 0.0;
                let plane = if forward { cell as i32 + 1 } else { cell as i32 } as f32;
                let next = select(moves, (plane - start) / speed, f32::INFINITY);
                let delta = select(moves, (1.0 / speed).abs(), f32::INFINITY);
                let left = if forward { count - 1 - cell } else { cell };
                let left = if moves { left } else { 0 };
                let step = if forward { stride } else { stride.wrapping_neg() };
                self.next[a][lane] = select(is_fresh, next, self.next[a][lane]);
                self.delta[a][lane] = select(is_fresh, delta, self.delta[a][lane]);
                self.left[a][lane] = select(is_fresh, left, self.left[a][lane]);
                self.stride[a][lane] = select(is_fresh, step, self.stride[a][lane]);
            }
            stride *= count;
        }
        let drawn = self.samplers.draw(&fresh);
        // A loop of its own needs few enough registers to be vectorised.
        let mut rest = [0.0; LANES];
        for lane in 0..LANES {
            rest[lane] = exponential(drawn[lane]);
        }
        for lane in 0..LANES {
            let is_fresh = fresh[lane] != 0;
            self.start[lane] = select(is_fresh, begin[lane], self.start[lane]);
            self.t[lane] = select(is_fresh, begin[lane], self.t[lane]);
            self.end[lane] = select(is_fresh, end[lane], self.end[lane]);
            self.index[lane] = select(is_fresh, index[lane], self.index[lane]);
            self.rest[lane] = select(is_fresh, rest[lane], self.rest[lane]);
            self.live[lane] = select(is_fresh, FLYING, self.live[lane]);
        }
        missed
    }

    /// Goes from cell to cell until every flight has reached a tentative collision or the end of the medium; returns
    /// the majorants there.
    #[inline(always)]
    fn reach(&mut self, cloud: &Cloud) -> Lanes<f32> {
        let last = cloud.majorants.len() as u32 - 1;
        let mut mu = [0.0; LANES];
        loop {
            let mut flying = 0;
            for lane in 0..LANES {
                let index = self.index[lane].min(last);
                // SAFETY: the index has been clamped to the last one.
                mu[lane] = unsafe { *cloud.majorants.as_ptr().offset(index as i32 as isize) };
            }
            for lane in 0..LANES {
                let live = self.live[lane] == FLYING;
                let [x, y, z] = [self.next[0][lane], self.next[1][lane], self.next[2][lane]];
                let plane = least(least(x, y), z);
                let exit = least(self.end[lane], plane);
                let collision = self.t[lane] + self.rest[lane] / mu[lane];
                let reached = collision < exit;
                let crosses = live & !reached;
                let passes = plane >= self.end[lane];
                // Rounding could make the rest negative, and a cell with majorant zero would turn that into a distance
                // of minus infinity.
                let rest = self.rest[lane] - mu[lane] * (exit - self.t[lane]);
                let rest = select(rest > 0.0, rest, 0.0);
                self.rest[lane] = select(crosses, rest, self.rest[lane]);
                let beyond = if self.t[lane] > plane { self.t[lane] } else { plane };
                let t = if reached { collision } else { beyond };
                self.t[lane] = select(live & !(crosses & passes), t, self.t[lane]);
                let state = if reached {
                    REACHED
                } else if passes {
                    ENDED
                } else {
                    FLYING
                };
                self.live[lane] = select(live, state, self.live[lane]);
                // Cross the nearest plane. Beyond the grid's last cell only a rounding error of the path is left; it
                // stays in that cell.
                let crosses = crosses & !passes;
                let along = [
                    crosses & (x == plane),
                    crosses & (x != plane) & (y == plane),
                    crosses & (x != plane) & (y != plane),
                ];
                for a in 0..3 {
                    let inside = self.left[a][lane] != 0;
                    let after = select(inside, self.next[a][lane] + self.delta[a][lane], f32::INFINITY);
                    self.next[a][lane] = select(along[a], after, self.next[a][lane]);
                    let steps = along[a] & inside;
                    self.left[a][lane] -= u32::from(steps);
                    self.index[lane] = self.index[lane].wrapping_add(select(steps, self.stride[a][lane], 0));
                }
                flying += u32::from(self.live[lane] == FLYING);
            }
            if flying == 0 {
                return mu;
            }
        }
    }

    /// Looks the extinction up at the present points.
    #[inline(always)]
    fn look_up(&self, cloud: &Cloud) -> LookedUp {
        let (mut p, mut unit) = ([[0.0; LANES]; 3], [[0.0; LANES]; 3]);
        let m = cloud.world_to_unit;
        for lane in 0..LANES {
            let t = self.t[lane];
            let x = self.origin[0][lane] + self.direction[0][lane] * t;
            let y = self.origin[1][lane] + self.direction[1][lane] * t;
            let z = self.origin[2][lane] + self.direction[2][lane] * t;
            unit[0][lane] = m[0][0] * x + m[0][1] * y + m[0][2] * z + m[0][3];
            unit[1][lane] = m[1][0] * x + m[1][1] * y + m[1][2] * z + m[1][3];
            unit[2][lane] = m[2][0] * x + m[2][1] * y + m[2][2] * z + m[2][3];
            (p[0][lane], p[1][lane], p[2][lane]) = (x, y, z);
        }
        let at = grid_stencils_rounding(cloud.size, &unit);
        let mut value = grid_eval_lanes(cloud.extinction, &at);
        for lane in 0..LANES {
            value[lane] *= cloud.medium.scale;
        }
        LookedUp { p, at, value }
    }

    /// Whether the tentative collision of each lane is real: with the probability extinction / majorant.
    #[inline(always)]
    fn decide(&mut self, extinction: &Lanes<f32>, mu: &Lanes<f32>) -> Lanes<u32> {
        let u = self.samplers.draw(&self.live);
        let mut real = [0; LANES];
        for lane in 0..LANES {
            real[lane] = u32::from((self.live[lane] != 0) & (u[lane] * mu[lane] < extinction[lane]));
        }
        real
    }

    /// Draws how far the flights go on.
    #[inline(always)]
    fn go_on(&mut self) {
        let u = self.samplers.draw(&self.live);
        for lane in 0..LANES {
            let live = self.live[lane] != 0;
            self.rest[lane] = if live { exponential(u[lane]) } else { self.rest[lane] };
            self.live[lane] = if live { FLYING } else { 0 };
        }
    }

    /// The arrival of a flight through the medium.
    #[inline(always)]
    fn pass(&self, cloud: &Cloud, lane: usize, part: Option<[f32; 2]>) -> Arrival {
        Arrival {
            flown: Flown {
                medium: cloud.number,
                flight: Flight::Passed,
                part,
            },
            sampler: self.samplers.lane(lane),
        }
    }

    /// The arrival of a flight at a real collision.
    #[inline(always)]
    fn collide(&self, cloud: &Cloud, lane: usize, looked_up: &LookedUp) -> Arrival {
        let value = [looked_up.value[lane]; 3];
        let sigma = Extinction {
            at: looked_up.at.lane(lane),
            integrand: Rgb(value),
            sampled: value,
        };
        let p = [0, 1, 2].each(|a| looked_up.p[a][lane]);
        // The path is about to look the albedo up.
        if let Some((albedo, channels)) = cloud.albedo {
            prefetch(albedo, &sigma.at, channels);
        }
        Arrival {
            flown: Flown {
                medium: cloud.number,
                flight: Flight::Collided { p, sigma },
                part: Some([self.start[lane], self.t[lane]]),
            },
            sampler: self.samplers.lane(lane),
        }
    }
}

/// The smaller number, by one instruction: `f32::min` treats not-a-number apart.
#[inline(always)]
fn least(a: f32, b: f32) -> f32 {
    if a < b { a } else { b }
}
