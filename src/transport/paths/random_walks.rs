//! Random walks of several paths inside one homogeneous medium, side by side in the lanes of vectors.
//!
//! Inside a translucent object a path is scattered dozens of times before it meets a surface again. Where the medium fills a
//! convex shape that nothing else stands in (`resident/interior.rs`), no surface lies between two points inside, so that no ray
//! is traced: a step is a direction, a distance and a lookup of the albedo. Elsewhere each flight, which is short, is tested
//! for whether any surface blocks it. The steps of a lane are those of a path alone (`volpath.rs`, `tracking.rs`), from the
//! same random numbers and to the same bits; a flight that a surface blocks is left to the path's own walk.

use super::flights::LANES;
use super::path_state::{PathState, is_faint};
use super::tracking::alters;
use super::walk_notes::{Note, UNNOTED, WalkNotes};
use crate::each::EachEntry;
use crate::resident::interior::Interior;
use crate::resident::layout::{PhaseRecord, VolumeRecord, lookup, medium as medium_flag, phase};
use crate::transport::lookup::grid::{
    Stencil, Stencils, grid_eval_lanes, grid_eval_rgb_lanes, grid_stencils_rounding, prefetch_rows,
};
use crate::transport::lookup::volume::is_plain;
use crate::transport::mode::{GATHER, PRIMAL, REPLAY};
use crate::transport::number::rgb::Rgb;
use crate::transport::rays::camera::transform_point;
use crate::transport::rays::sampler::{Ahead, Sampler, Samplers, around, exponential};
use crate::transport::scene::bsdf::local::Lobe;
use crate::transport::scene::phase::hg_sample;
use crate::transport::scene::records::{Fields, SceneView};
use crate::transport::scene::shape::is_blocked;

/// A value for each lane.
pub(super) type Lanes<T> = [T; LANES];

/// Idle lanes are filled again when there are this many (`flights.rs`).
const IDLE: u32 = 8;

/// A medium of constant extinction, its albedo, which may vary, and its phase function.
#[derive(Debug, Clone, Copy)]
pub struct Matter<'a> {
    scene: &'a SceneView<'a>,
    /// The convex shape that it fills alone, if it does.
    interior: Option<Interior>,
    /// Scaled extinction, and its majorant.
    sigma: f32,
    mu: f32,
    /// Asymmetry of the Henyey–Greenstein phase function; None if isotropic.
    g: Option<f32>,
    volume: &'a VolumeRecord,
    albedo: &'a [f32],
    max_depth: u32,
    rr_depth: u32,
}

impl<'a> Matter<'a> {
    /// The matter of the medium of this index. None if its paths are not made side by side: because surfaces are moved,
    /// because it is not homogeneous, emits light, has another phase function, or because lights are sampled at each point
    /// of it.
    pub(super) fn of<F: Fields<f32>>(scene: &'a SceneView<'a>, fields: &'a F, index: usize) -> Option<Self> {
        let medium = &scene.media[index];
        let interior = *scene.interiors.get(index)?;
        let [extinction, volume] = [medium.sigma_t, medium.albedo].each(|volume| &scene.volumes[volume as usize]);
        let record = &scene.phases[medium.phase as usize];
        let is_number = extinction.filter == lookup::CONSTANT && extinction.size[3] == 1;
        // A constant extinction may end at a box inside of the shape that bounds its medium.
        let usual = is_number && medium.high[0] == f32::INFINITY && medium.majorants[..3] == [1; 3];
        let albedo = fields.integrand(volume.slot);
        // Vectors gather by signed offsets of 32 bits.
        let small = is_plain(volume) && matches!(volume.size[3], 1 | 3) && i32::try_from(albedo.len()).is_ok();
        let looked_up = volume.filter == lookup::CONSTANT || small;
        let scatters = matches!(record.kind, phase::ISOTROPIC | phase::HG);
        let lit = scene.settings.lights > 0 && !medium.has(medium_flag::SEALED);
        if !usual || !looked_up || !scatters || lit || alters(scene, medium) {
            return None;
        }
        Some(Self {
            scene,
            interior,
            sigma: fields.integrand(extinction.slot)[0] * medium.scale,
            mu: scene.majorants[medium.majorants[3] as usize],
            g: asymmetry(fields, record),
            volume,
            albedo,
            max_depth: scene.settings.max_depth,
            rr_depth: scene.settings.rr_depth,
        })
    }

    /// Whether random walks from `p` are made here: unless the medium fills a convex shape and `p` is not in it.
    #[inline]
    pub(super) fn holds(&self, p: [f32; 3]) -> bool {
        self.interior.is_none_or(|interior| interior.holds(p))
    }

    /// Whether a surface lies before the distance `t`, enlarged by a margin for rounding: where this is true in error, the path
    /// itself finds none.
    fn is_blocked(&self, origin: [f32; 3], direction: [f32; 3], t: f32) -> bool {
        is_blocked(self.scene, origin, direction, t * (1.0 + 4.0 * f32::EPSILON))
    }

    /// The albedo at these places.
    #[inline(always)]
    fn albedo_at(&self, at: &Stencils<LANES>) -> [Lanes<f32>; 3] {
        if self.volume.filter == lookup::CONSTANT {
            let last = self.volume.size[3] as usize - 1;
            return [0, 1.min(last), 2.min(last)].each(|c| [self.albedo[c]; LANES]);
        }
        match self.volume.size[3] {
            1 => [grid_eval_lanes(self.albedo, at); 3],
            _ => grid_eval_rgb_lanes(self.albedo, at),
        }
    }

    /// The albedo's stencils at these points; prefetches its texels.
    #[inline(always)]
    pub(super) fn reach(&self, p: &[Lanes<f32>; 3]) -> Stencils<LANES> {
        let volume = self.volume;
        if volume.filter == lookup::CONSTANT {
            return Stencil::first().spread();
        }
        let mut unit = [[0.0; LANES]; 3];
        for lane in 0..LANES {
            let at = transform_point(&volume.world_to_unit, [p[0][lane], p[1][lane], p[2][lane]]);
            for a in 0..3 {
                unit[a][lane] = at[a];
            }
        }
        let at = grid_stencils_rounding(volume.size, &unit);
        prefetch_rows(self.albedo, &at, volume.size[3]);
        at
    }

    /// The volume of the albedo.
    #[inline]
    pub(super) fn albedo_volume(&self) -> &'a VolumeRecord {
        self.volume
    }
}

#[inline]
fn asymmetry<F: Fields<f32>>(fields: &F, record: &PhaseRecord) -> Option<f32> {
    (record.kind == phase::HG).then(|| fields.integrand(record.slot)[0])
}

/// A path that is about to be scattered at a point inside. Afterwards it has ended, or is about to fly out.
#[derive(Debug, Clone, Copy)]
pub struct Walker {
    pub p: [f32; 3],
    pub path: PathState<f32>,
    pub sampler: Sampler,
    /// Of a replay, the derivative by the path's radiance.
    pub d_radiance: Rgb<f32>,
    /// Of a first walk, its number among those that leave notes.
    pub number: u32,
    pub ended: bool,
}

/// Takes derivatives by the albedo: the walker's index, the stencil of the lookup, and the derivative by each channel.
pub type Send<'a> = dyn FnMut(usize, &Stencil, [f32; 3]) + 'a;

/// Follows all walkers until they end or fly out. A first walk (`GATHER`) notes their collisions as long as there is room; a
/// replay passes derivatives to `send`. The mode is no const parameter: most of a walk is the same in all modes, and is
/// compiled once for each vector level.
#[inline(always)]
pub fn walk_side_by_side(mode: u8, matter: &Matter, walkers: &mut [Walker], notes: &mut WalkNotes, send: &mut Send) {
    let mut tracks = Tracks::idle();
    let mut ahead = tracks.samplers.look_ahead();
    let mut taken = 0;
    loop {
        if taken < walkers.len() && tracks.idle_lanes() >= IDLE {
            tracks.take(walkers, &mut taken);
            ahead = tracks.samplers.look_ahead();
        }
        if tracks.idle_lanes() == LANES as u32 {
            return;
        }
        let before = tracks.samplers;
        tracks.step(matter, &ahead);
        tracks.leave(&before, matter, walkers);
        let at = matter.reach(&tracks.p);
        // Computed while the prefetched texels arrive.
        ahead = tracks.samplers.look_ahead();
        let albedo = matter.albedo_at(&at);
        match mode {
            GATHER => tracks.note(&albedo, walkers, notes),
            REPLAY => tracks.send(&at, &albedo, send),
            _ => {}
        }
        tracks.collide(mode, matter, &albedo);
        tracks.end_dead(walkers);
    }
}

/// The state of a random walk in each lane.
#[derive(Debug, Clone, Copy)]
struct Tracks {
    /// 0 for an idle lane.
    live: Lanes<u32>,
    /// 0 for a flight that ends outside.
    inside: Lanes<u32>,
    /// 0 for a path that roulette has ended.
    survives: Lanes<u32>,
    /// The place of the path among the walkers.
    walker: Lanes<u32>,
    /// The number by which its collisions are noted.
    number: Lanes<u32>,
    /// The point of scattering, that of the next collision, and the direction between.
    origin: [Lanes<f32>; 3],
    p: [Lanes<f32>; 3],
    direction: [Lanes<f32>; 3],
    beta: [Lanes<f32>; 3],
    zeros: [Lanes<u32>; 3],
    depth: Lanes<u32>,
    eta: Lanes<f32>,
    samplers: Samplers<LANES>,
    /// Of a replay: the radiance still to come, that behind one factor of zero, and the derivative by the path's radiance.
    come: [Lanes<f32>; 3],
    come_but_zero: [Lanes<f32>; 3],
    d_radiance: [Lanes<f32>; 3],
}

impl Tracks {
    #[inline(always)]
    fn idle() -> Self {
        Self {
            live: [0; LANES],
            inside: [0; LANES],
            survives: [0; LANES],
            walker: [0; LANES],
            number: [UNNOTED; LANES],
            origin: [[0.0; LANES]; 3],
            p: [[0.0; LANES]; 3],
            direction: [[0.0; LANES]; 3],
            beta: [[0.0; LANES]; 3],
            zeros: [[0; LANES]; 3],
            depth: [0; LANES],
            eta: [1.0; LANES],
            samplers: Samplers::none(),
            come: [[0.0; LANES]; 3],
            come_but_zero: [[0.0; LANES]; 3],
            d_radiance: [[0.0; LANES]; 3],
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

    /// Fills idle lanes.
    #[inline(always)]
    fn take(&mut self, walkers: &[Walker], taken: &mut usize) {
        for lane in 0..LANES {
            if self.live[lane] != 0 || *taken == walkers.len() {
                continue;
            }
            let Walker {
                p,
                path,
                sampler,
                d_radiance,
                number,
                ..
            } = &walkers[*taken];
            for c in 0..3 {
                self.p[c][lane] = p[c];
                self.direction[c][lane] = path.direction[c];
                self.beta[c][lane] = path.beta[c];
                self.zeros[c][lane] = path.zeros[c];
                self.come[c][lane] = path.gathered.radiance[c];
                self.come_but_zero[c][lane] = path.gathered.radiance_but_zero[c];
                self.d_radiance[c][lane] = d_radiance[c];
            }
            self.depth[lane] = path.depth;
            self.eta[lane] = path.eta;
            self.samplers.put(lane, sampler);
            self.walker[lane] = *taken as u32;
            self.number[lane] = *number;
            self.live[lane] = 1;
            *taken += 1;
        }
    }

    /// Turns the paths into directions drawn from the phase function, plays Russian roulette, and flies on to the next real
    /// collisions. Afterwards `inside` is 0 in lanes that roulette has ended, and where the flight would leave or is blocked.
    #[inline(always)]
    fn step(&mut self, matter: &Matter, ahead: &Ahead<LANES>) {
        self.survives = self.live;
        let (mut plays, mut players) = ([0; LANES], 0);
        for lane in 0..LANES {
            plays[lane] = u32::from((self.live[lane] != 0) & (self.depth[lane] > matter.rr_depth));
            players += plays[lane];
        }
        let [polar, azimuth, distance, choice] = &ahead.drawn;
        self.turn(matter, polar, azimuth);
        let mut taken = [0; LANES];
        let count = if players == 0 { 4 } else { 2 };
        for lane in 0..LANES {
            taken[lane] = if self.live[lane] != 0 { count } else { 0 };
        }
        self.samplers.take(ahead, &taken);
        if players == 0 {
            return self.fly(matter, Some([distance, choice]));
        }
        self.play(&plays);
        self.fly(matter, None);
    }

    /// Turns the paths by these random numbers.
    #[inline(always)]
    fn turn(&mut self, matter: &Matter, polar: &Lanes<f32>, azimuth: &Lanes<f32>) {
        let mut cosine = [0.0; LANES];
        match matter.g {
            Some(g) => {
                for lane in 0..LANES {
                    cosine[lane] = hg_sample(g, polar[lane]);
                }
            }
            None => {
                for lane in 0..LANES {
                    cosine[lane] = 1.0 - 2.0 * polar[lane];
                }
            }
        }
        for lane in 0..LANES {
            let incoming = [
                self.direction[0][lane],
                self.direction[1][lane],
                self.direction[2][lane],
            ];
            let outgoing = around(incoming, cosine[lane], azimuth[lane]);
            for a in 0..3 {
                self.direction[a][lane] = outgoing[a];
                self.origin[a][lane] = self.p[a][lane];
            }
        }
    }

    /// Russian roulette of some lanes.
    #[inline(always)]
    fn play(&mut self, plays: &Lanes<u32>) {
        let u = self.samplers.draw(plays);
        for lane in 0..LANES {
            let brightest = 0f32
                .max(self.beta[0][lane])
                .max(self.beta[1][lane])
                .max(self.beta[2][lane]);
            let survival = PathState::<f32>::survival(brightest * (self.eta[lane] * self.eta[lane]));
            let is_out = u[lane] >= survival;
            let scale = 1.0 / survival;
            let played = plays[lane] != 0;
            for c in 0..3 {
                let scaled = self.beta[c][lane] * scale;
                self.beta[c][lane] = if played { scaled } else { self.beta[c][lane] };
            }
            self.survives[lane] = if played & is_out { 0 } else { self.survives[lane] };
        }
    }

    /// Flies on from the origins; `first` are the random numbers of the first distance and of the choice between a real and a
    /// null collision there, if they are drawn.
    #[inline(always)]
    fn fly(&mut self, matter: &Matter, mut first: Option<[&Lanes<f32>; 2]>) {
        let mut t = [0.0; LANES];
        let mut flying = self.survives;
        self.inside = self.survives;
        loop {
            let drawn = first.take();
            let u = match drawn {
                Some([distance, _]) => *distance,
                None => self.samplers.draw(&flying),
            };
            let mut rest = [0.0; LANES];
            for lane in 0..LANES {
                rest[lane] = exponential(u[lane]);
            }
            for lane in 0..LANES {
                let next = t[lane] + rest[lane] / matter.mu;
                t[lane] = if flying[lane] != 0 { next } else { t[lane] };
            }
            for lane in 0..LANES {
                for a in 0..3 {
                    self.p[a][lane] = self.origin[a][lane] + self.direction[a][lane] * t[lane];
                }
            }
            let holds = match &matter.interior {
                Some(interior) => self.held(interior),
                None => self.unblocked(matter, &flying, &t),
            };
            for lane in 0..LANES {
                let leaves = (flying[lane] != 0) & (holds[lane] == 0);
                self.inside[lane] = if leaves { 0 } else { self.inside[lane] };
                flying[lane] = if leaves { 0 } else { flying[lane] };
            }
            let u = match drawn {
                Some([_, choice]) => *choice,
                None => self.samplers.draw(&flying),
            };
            let mut on = 0;
            for lane in 0..LANES {
                let real = u[lane] * matter.mu < matter.sigma;
                flying[lane] = if real { 0 } else { flying[lane] };
                on += flying[lane];
            }
            if on == 0 {
                return;
            }
        }
    }

    /// Lanes whose point is in the convex shape.
    #[inline(always)]
    fn held(&self, interior: &Interior) -> Lanes<u32> {
        let mut holds = [0; LANES];
        for lane in 0..LANES {
            let p = [self.p[0][lane], self.p[1][lane], self.p[2][lane]];
            holds[lane] = u32::from(interior.holds(p));
        }
        holds
    }

    /// Lanes whose flight over the distance `t` no surface blocks.
    #[inline(always)]
    fn unblocked(&self, matter: &Matter, flying: &Lanes<u32>, t: &Lanes<f32>) -> Lanes<u32> {
        let mut holds = [0; LANES];
        for lane in 0..LANES {
            if flying[lane] != 0 {
                let [origin, direction] =
                    [&self.origin, &self.direction].each(|v| [v[0][lane], v[1][lane], v[2][lane]]);
                holds[lane] = u32::from(!matter.is_blocked(origin, direction, t[lane]));
            }
        }
        holds
    }

    #[inline(always)]
    fn end(&mut self, lane: usize, walkers: &mut [Walker]) {
        let walker = &mut walkers[self.walker[lane] as usize];
        walker.ended = true;
        walker.path.depth = self.depth[lane];
        self.live[lane] = 0;
    }

    /// Ends the paths that roulette has chosen, and hands those whose flight leaves the shape back, about to make that flight;
    /// `before` are the random numbers before they were turned.
    #[inline(always)]
    fn leave(&mut self, before: &Samplers<LANES>, matter: &Matter, walkers: &mut [Walker]) {
        for lane in 0..LANES {
            if (self.live[lane] == 0) | (self.inside[lane] != 0) {
                continue;
            }
            if self.survives[lane] == 0 {
                self.end(lane, walkers);
                continue;
            }
            let Walker { path, sampler, .. } = &mut walkers[self.walker[lane] as usize];
            let [origin, direction] = [&self.origin, &self.direction].each(|v| [v[0][lane], v[1][lane], v[2][lane]]);
            path.turn(origin, origin, direction, Lobe::Smooth, 0.0);
            for c in 0..3 {
                path.beta[c] = self.beta[c][lane];
                path.zeros[c] = self.zeros[c][lane];
            }
            path.depth = self.depth[lane];
            // Skips the two random numbers of the direction, and a third of roulette.
            *sampler = before.lane(lane);
            for _ in 0..if path.depth > matter.rr_depth { 3 } else { 2 } {
                sampler.draw();
            }
            self.live[lane] = 0;
        }
    }

    /// Notes the collisions for the replay. Where there is no room, the replay makes their walks again.
    #[inline(always)]
    fn note(&mut self, albedo: &[Lanes<f32>; 3], walkers: &mut [Walker], notes: &mut WalkNotes) {
        let mut note = Note {
            walk: [UNNOTED; LANES],
            p: self.p,
            albedo: *albedo,
        };
        let mut noted = 0;
        for lane in 0..LANES {
            let is_live = self.live[lane] != 0;
            note.walk[lane] = if is_live { self.number[lane] } else { UNNOTED };
            noted += u32::from(note.walk[lane] != UNNOTED);
        }
        for c in 0..3 {
            for lane in 0..LANES {
                let dark = self.zeros[c][lane] != 0;
                note.albedo[c][lane] = if dark { f32::INFINITY } else { albedo[c][lane] };
            }
        }
        if noted > 0 && !notes.keep(&note) {
            for lane in 0..LANES {
                if self.live[lane] != 0 {
                    self.number[lane] = UNNOTED;
                    walkers[self.walker[lane] as usize].number = UNNOTED;
                }
            }
        }
    }

    /// Sends the derivatives by the albedo: the radiance still to come over the albedo.
    #[inline(always)]
    fn send(&self, at: &Stencils<LANES>, albedo: &[Lanes<f32>; 3], send: &mut Send) {
        let mut d = [[0.0; LANES]; 3];
        for c in 0..3 {
            for lane in 0..LANES {
                let behind = self.d_radiance[c][lane] * self.come_but_zero[c][lane];
                let over = self.d_radiance[c][lane] * self.come[c][lane] * (1.0 / albedo[c][lane]);
                let by = if is_faint(albedo[c][lane]) { behind } else { over };
                d[c][lane] = if self.zeros[c][lane] == 0 { by } else { 0.0 };
            }
        }
        for lane in 0..LANES {
            if self.live[lane] != 0 {
                let by = [d[0][lane], d[1][lane], d[2][lane]];
                send(self.walker[lane] as usize, &at.lane(lane), by);
            }
        }
    }

    /// Multiplies the throughput by the albedo.
    #[inline(always)]
    fn collide(&mut self, mode: u8, matter: &Matter, albedo: &[Lanes<f32>; 3]) {
        let dead = if mode == PRIMAL { 1 } else { 2 };
        let mut dark = [0; LANES];
        for c in 0..3 {
            for lane in 0..LANES {
                let zero = is_faint(albedo[c][lane]);
                let factor = if zero { 1.0 } else { albedo[c][lane] };
                self.beta[c][lane] *= factor;
                self.zeros[c][lane] += u32::from(zero);
                dark[lane] += u32::from(self.zeros[c][lane] >= dead);
            }
        }
        for lane in 0..LANES {
            self.depth[lane] += 1;
            let ends = (self.depth[lane] >= matter.max_depth) | (dark[lane] == 3);
            self.survives[lane] = u32::from(!ends);
        }
    }

    /// Ends the paths that are as long as paths may be, or dark.
    #[inline(always)]
    fn end_dead(&mut self, walkers: &mut [Walker]) {
        for lane in 0..LANES {
            if (self.live[lane] != 0) & (self.survives[lane] == 0) {
                self.end(lane, walkers);
            }
        }
    }
}
