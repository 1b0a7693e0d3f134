//! Paths through participating media and between surfaces: one walk for every mode.
//!
//! A primal walk adds radiance contributions. An adjoint walks twice from the same random numbers: first like the
//! primal, but continuing through factors that are zero; then again (the replay), subtracting each contribution, so
//! that the remainder is the radiance still to come. Divided by a throughput factor it is the derivative by that
//! factor (Vicini2021, sections 3.2 and 4.1).

use super::adjoint::Adjoint;
use super::chain::Chain;
use super::next_event::mis;
use super::path_state::PathState;
use super::radiative::{Incident, Replayed};
use super::replay_cache::ReplayCache;
use super::reservoir::send_reservoir;
use super::tracking::{Extinction, Flight};
use super::trail::{Found, Trail, Way, distance};
use super::vertex::{self, Vertex};
use crate::resident::layout::{NONE, background, gradient, medium as medium_flag, surfaces_only};
use crate::transport::lookup::volume::{volume_eval, volume_stencil};
use crate::transport::mode::{GATHER, PRIMAL, REPLAY, UNIT_RADIANCE};
use crate::transport::number::Number;
use crate::transport::number::rgb::Rgb;
use crate::transport::rays::camera::Ray;
use crate::transport::rays::sampler::{Sampler, dot};
use crate::transport::scene::area_light::area_pdf;
use crate::transport::scene::bsdf::local::Lobe;
use crate::transport::scene::interaction::medium_beyond;
use crate::transport::scene::light::{envmap_pdf, light_sample, light_value};
use crate::transport::scene::phase::phase_adjoint;
use crate::transport::scene::records::{Fields, NoSink, SceneView, Sink};
use crate::transport::scene::shape::{Hit, Nearest, describe, leave, nearest};
use crate::transport::scene::sky::{sky_adjoint, sky_value};
use crate::transport::scene::three_point::Scatterer;

/// A walk: the scene and its parameters, the state of the path, its random numbers, and the state of the adjoint.
#[derive(Debug)]
pub struct Walk<'a, N, F, S, I> {
    pub(super) scene: &'a SceneView<'a>,
    pub(super) fields: &'a F,
    pub(super) path: PathState<N>,
    pub(super) sampler: Sampler,
    pub(super) adjoint: Adjoint<'a, N, S, I>,
    pub(super) trail: Trail<N>,
    pub(super) chain: Chain<N>,
}

/// A straight part of a path, up to the next surface.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Segment {
    /// Whether it begins in a medium, in which the path flies freely.
    pub medium: bool,
    /// The distance at which a flight ends.
    pub far: f32,
    /// Whether the nearest surface is looked for after the flight; else it is `hit`.
    free: bool,
    hit: Option<Nearest>,
}

/// What a path does at the end of a segment.
#[derive(Debug, Clone, Copy)]
pub(super) enum Met {
    /// Passes through a boundary without a BSDF.
    Boundary,
    /// Is scattered at this vertex.
    Scatterer(Vertex),
    /// Ends.
    End,
}

impl<'a, N: Number, F: Fields<N>, S: Sink<N>, I: Incident<N>> Walk<'a, N, F, S, I> {
    /// Follows the path until it ends. If `begin` is given, the path starts by being scattered at that vertex.
    #[inline]
    pub(super) fn run<const MODE: u8>(&mut self, begin: Option<Vertex>) {
        let mut next = self.begin(begin);
        while let Some(segment) = self.approach::<MODE>(&next) {
            let flight = match segment.medium {
                true => self.fly::<MODE>(segment.far),
                false => Flight::Passed,
            };
            next = self.arrive::<MODE>(&segment, &flight);
        }
        if MODE == REPLAY && self.scene.attached {
            self.send_chain();
        }
    }

    /// Where a path starts: at a vertex, or with a ray.
    #[inline(always)]
    pub(super) fn begin(&self, vertex: Option<Vertex>) -> Met {
        match vertex {
            _ if self.path.depth >= self.scene.settings.max_depth => Met::End,
            Some(vertex) => Met::Scatterer(vertex),
            None => Met::Boundary,
        }
    }

    /// Scatters at the vertex that was met, if any, and finds how far the next segment reaches. None if the path ends.
    #[inline(always)]
    pub(super) fn approach<const MODE: u8>(&mut self, met: &Met) -> Option<Segment> {
        let scene = self.scene;
        // Scatter at the vertex that the last segment ended at.
        let goes_on = match met {
            Met::End => false,
            Met::Boundary => true,
            &Met::Scatterer(Vertex::Medium { p, phase }) => self.scatter_in_medium::<MODE>(p, phase),
            Met::Scatterer(Vertex::Surface(at)) => self.scatter_at_surface::<MODE>(at),
        };
        if !goes_on {
            return None;
        }
        // Find the nearest surface. If no surface stands in the medium, this waits until the flight has passed
        // through it: a collision makes the intersection unnecessary.
        let path = &self.path;
        let free = I::REPLAYED && path.is_surface_free(scene);
        let hit = match free {
            true => None,
            false => self.nearest::<MODE>(),
        };
        let path = &self.path;
        let far = match &hit {
            Some(hit) => hit.t,
            None => path.far,
        };
        let medium = path.medium != NONE;
        if MODE == REPLAY && medium {
            I::before_flight(self, hit.as_ref(), far);
            if scene.settings.gradient == gradient::DRT {
                self.offer_tentative_collisions(far);
            }
        }
        Some(Segment { medium, far, free, hit })
    }

    /// Collides at the end of the segment's flight, or meets the surface behind it or the background.
    #[inline(always)]
    pub(super) fn arrive<const MODE: u8>(&mut self, segment: &Segment, flight: &Flight<N>) -> Met {
        let drifts = (MODE == REPLAY || F::TWO_SIDED) && self.scene.moves();
        if let Flight::Collided { p, sigma } = flight {
            if drifts {
                self.drift_along(distance(self.path.origin, *p), None);
                self.follow_trail::<MODE>(Found::Medium(*p));
            }
            return match self.collide::<MODE>(*p, sigma) {
                Some(vertex) => Met::Scatterer(vertex),
                None => Met::End,
            };
        }
        let hit = match segment.free {
            // Outside of the medium's box there is nothing but the background.
            true if self.path.is_in_alone(self.scene) => None,
            true => self.nearest::<MODE>(),
            false => segment.hit,
        };
        match hit {
            Some(hit) => {
                let hit = self.describe::<MODE>(&hit);
                if drifts {
                    self.drift_along(hit.t, Some(hit.normal));
                }
                self.hit_surface::<MODE>(&hit)
            }
            None => {
                if drifts {
                    self.drift_along(f32::INFINITY, None);
                }
                self.escape::<MODE>();
                Met::End
            }
        }
    }

    /// The path's nearest surface, from the replay cache if the first walk stored it.
    #[inline(always)]
    fn nearest<const MODE: u8>(&mut self) -> Option<Nearest> {
        let (scene, path) = (self.scene, &self.path);
        let look = || nearest(scene, path.origin, path.direction, path.far);
        match &mut self.adjoint.cache {
            Some(cache) => cache.nearest.recall_or::<MODE>(look),
            None => look(),
        }
    }

    /// The hit on the nearest surface, from the replay cache if the first walk stored it.
    #[inline(always)]
    fn describe<const MODE: u8>(&mut self, nearest: &Nearest) -> Hit {
        let (scene, path) = (self.scene, &self.path);
        let look = || describe(scene, nearest, path.origin, path.direction);
        match &mut self.adjoint.cache {
            Some(cache) => cache.hits.recall_or::<MODE>(look),
            None => look(),
        }
    }

    /// Adds the background's radiance, weighted by MIS against next-event estimation.
    #[inline]
    pub(super) fn escape<const MODE: u8>(&mut self) {
        if self.scene.moves() {
            self.follow_trail::<MODE>(Found::Nothing);
        }
        let (scene, path) = (self.scene, &mut self.path);
        path.straight = path.is_straight(scene);
        if !scene.has_background() || (path.straight && scene.settings.hide_emitters == 1) {
            return;
        }
        let is_map = scene.common.background == background::ENVMAP;
        let (direction, pdf) = (path.direction, path.pdf);
        let shared = is_map && path.competes(scene);
        let look = || {
            let share = match shared {
                true => mis(pdf, envmap_pdf(scene, direction)),
                false => 1.0,
            };
            (sky_value(scene, self.fields, direction), share)
        };
        let (radiance, share) = match &mut self.adjoint.cache {
            Some(cache) if is_map => cache.skies.recall_or::<MODE>(look),
            _ => look(),
        };
        let weight = path.norm(scene) * share;
        path.add::<MODE>(radiance * weight);
        if MODE == REPLAY {
            let d = path.alive(self.adjoint.d_radiance * path.beta * weight);
            sky_adjoint(scene, self.fields, path.direction, d, &mut self.adjoint.sink);
        }
        if scene.is_attached::<MODE>() {
            let beta = self.path.beta;
            self.carry_to_rays::<MODE>(self.adjoint.d_radiance * beta * radiance * weight);
            self.chain_to_sky(weight);
        }
    }

    /// Handles a real collision at `p`: multiplies the throughput by the albedo. None if the path ends there.
    #[inline]
    pub(super) fn collide<const MODE: u8>(&mut self, p: [f32; 3], sigma: &Extinction<N>) -> Option<Vertex> {
        let (scene, fields, path) = (self.scene, self.fields, &mut self.path);
        let medium = &scene.media[path.medium as usize];
        let volume = &scene.volumes[medium.albedo as usize];
        let at = if medium.has(medium_flag::ALIGNED) {
            sigma.at
        } else {
            volume_stencil(volume, p)
        };
        let albedo = Rgb(volume_eval(volume, fields.integrand(volume.slot), &at));
        if F::TWO_SIDED {
            path.multiply_sampled(volume_eval(volume, fields.sampling(volume.slot), &at));
        }
        if MODE == REPLAY {
            let d = self.adjoint.by_factor(path, albedo);
            self.adjoint.sink.volume(volume, &at, d.0, 3);
        }
        path.multiply::<F>(albedo);
        path.depth += 1;
        if path.depth >= scene.settings.max_depth || path.is_dark::<MODE>() {
            return None;
        }
        Some(Vertex::in_medium(p, medium.phase))
    }

    /// Handles a surface: adds its emission, then passes through it, makes it the next vertex, or ends the path.
    #[inline]
    pub(super) fn hit_surface<const MODE: u8>(&mut self, hit: &Hit) -> Met {
        let record = &self.scene.surfaces[hit.surface as usize];
        let moves = self.scene.moves();
        match (moves, record.bsdf) {
            (true, NONE) => self.pass_boundary(hit),
            (true, _) => self.follow_trail::<MODE>(Found::Surface(hit)),
            (false, _) => {}
        }
        let (scene, path) = (self.scene, &mut self.path);
        let hidden = record.light != NONE && path.depth == 0 && scene.settings.hide_emitters == 1;
        let against = dot(path.direction, hit.normal) < 0.0;
        if record.light != NONE && against && !hidden {
            let mut weight = path.norm(scene);
            if path.competes(scene) {
                weight *= mis(path.pdf, area_pdf(scene, path.scattered_at, path.direction, hit));
            }
            let light = &scene.lights[record.light as usize];
            let factor = Rgb::splat(N::lift(weight));
            let mut radiance = light_value(scene, self.fields, light, &hit.point);
            if moves {
                radiance += self.seen_light::<MODE>(light, hit, factor);
            }
            self.path.add::<MODE>(radiance * weight);
            if MODE == REPLAY {
                self.adjoint
                    .send_light(scene, self.fields, &self.path, light, &hit.point, factor);
            }
            if scene.is_attached::<MODE>() {
                self.carry_to_rays::<MODE>(self.adjoint.d_radiance * self.path.beta * factor * radiance);
                self.chain_to_light(light, hit, factor);
            }
        }
        let path = &mut self.path;
        // A surface without BSDF only separates media, and the camera looks through hidden emitters.
        if record.bsdf == NONE || hidden {
            if scene.settings.surfaces_only != surfaces_only::NO && !hidden && !path.counts_null(scene) {
                return Met::End;
            }
            path.medium = medium_beyond(scene, hit, path.direction, path.medium);
            path.pass(hit.t, leave(hit, path.direction));
            return Met::Boundary;
        }
        self.hit_bsdf::<MODE>(hit)
    }

    /// Scatters light at a point of a medium: next-event estimation, then a new direction. False if the path ends.
    #[inline]
    fn scatter_in_medium<const MODE: u8>(&mut self, p: [f32; 3], phase: u32) -> bool {
        let (scene, fields) = (self.scene, self.fields);
        if MODE == UNIT_RADIANCE {
            self.path.add_unit_radiance(scene);
            return false;
        }
        let (incoming, medium) = (self.path.direction, self.path.medium);
        let at = Scatterer::Medium { p, incoming, phase };
        // Next-event estimation. Unit radiance over all directions already includes that of the lights.
        if scene.settings.lights > 0
            && !scene.media[medium as usize].has(medium_flag::SEALED)
            && let Some(drawn) = light_sample(scene, p, &mut self.sampler)
        {
            let outgoing = drawn.direction;
            let (mut value, pdf) = vertex::eval(scene, fields, phase, p, incoming, outgoing);
            let way = Way {
                drawn_from: p,
                origin: p,
                medium,
                draws: self.sampler,
            };
            if F::TWO_SIDED && MODE != REPLAY && scene.moves() {
                value *= self.lit_ratio(&at, &drawn, &way);
            }
            let lit = self.sample_light::<MODE>(p, medium, &drawn, value, pdf);
            if MODE == REPLAY && !self.adjoint.incident.is_unit() {
                let d = lit.by_logarithm;
                phase_adjoint(scene, fields, phase, p, incoming, outgoing, d, &mut self.adjoint.sink);
                if scene.moves() {
                    self.send_lit(&at, &drawn, &way, lit.by_value * value);
                }
            }
        }
        // Sample the new direction.
        let drawn = vertex::sample(scene, fields, phase, p, incoming, &mut self.sampler);
        if let Some(weight) = drawn.weight {
            self.path.multiply::<F>(weight);
        }
        self.path.turn(p, p, drawn.direction, Lobe::Smooth, drawn.pdf);
        if MODE == REPLAY {
            I::after_turn(self, &Vertex::in_medium(p, phase), Lobe::Smooth);
            let d = self
                .path
                .alive(self.adjoint.d_radiance * self.path.gathered.radiance)
                .sum();
            let outgoing = drawn.direction;
            phase_adjoint(scene, fields, phase, p, incoming, outgoing, d, &mut self.adjoint.sink);
        }
        if scene.moves() && (MODE == REPLAY || F::TWO_SIDED) {
            let d = match MODE {
                REPLAY => self.path.alive(self.adjoint.d_radiance * self.path.gathered.radiance),
                _ => Rgb::zero(),
            };
            self.leave_trail(&at, drawn.direction, d);
        }
        // Russian roulette.
        self.path.roulette::<F>(scene, &mut self.sampler)
    }

    /// Runs the replay, then a path from the reservoir's point to estimate the in-scattered radiance there.
    #[inline]
    pub(super) fn replay(&mut self) {
        self.run::<REPLAY>(None);
        let radiance = match self.follow_reservoir() {
            None => Rgb::zero(),
            Some((mut walk, vertex)) => {
                match self.adjoint.incident.is_unit() {
                    true => walk.run::<UNIT_RADIANCE>(Some(vertex)),
                    false => walk.run::<PRIMAL>(Some(vertex)),
                }
                walk.path.gathered.radiance
            }
        };
        let Adjoint { reservoir, sink, .. } = &mut self.adjoint;
        send_reservoir(self.scene, self.fields, reservoir, radiance, sink);
    }

    /// The path that estimates the in-scattered radiance at the reservoir's point, and its first vertex; None if that
    /// radiance is zero or there is no point.
    #[inline]
    pub(super) fn follow_reservoir(&self) -> Option<(Walk<'a, N, F, NoSink, Replayed>, Vertex)> {
        let (scene, kept, mut sampler) = (self.scene, &self.adjoint.reservoir, self.adjoint.extra);
        if kept.is_empty() || kept.depth + 1 >= scene.settings.max_depth {
            return None;
        }
        let hero = PathState::<N>::draw_hero(scene, &mut sampler);
        let mut path = PathState::start(kept.p, kept.direction, f32::INFINITY, kept.medium, hero);
        path.depth = kept.depth + 1;
        let vertex = Vertex::in_medium(kept.p, scene.media[kept.medium as usize].phase);
        Some((Walk::looking(scene, self.fields, path, sampler), vertex))
    }
}

/// The radiance along a camera ray.
#[inline]
pub fn gather<N: Number, F: Fields<N>, const MODE: u8>(
    scene: &SceneView,
    fields: &F,
    ray: &Ray,
    medium: u32,
    sampler: Sampler,
) -> PathState<N> {
    gather_caching::<N, F, MODE>(scene, fields, ray, medium, sampler, Rgb::zero(), None)
}

/// [`gather`], which stores flights and shadow rays in `cache` for a replay. `d_radiance`, the derivative by the radiance, is
/// used only where derivatives by rays are propagated by inverted Jacobians.
#[inline]
fn gather_caching<N: Number, F: Fields<N>, const MODE: u8>(
    scene: &SceneView,
    fields: &F,
    ray: &Ray,
    medium: u32,
    mut sampler: Sampler,
    d_radiance: Rgb<N>,
    cache: Option<&mut ReplayCache<N>>,
) -> PathState<N> {
    let path = PathState::new(scene, ray, medium, &mut sampler);
    let mut walk = Walk::looking(scene, fields, path, sampler);
    (walk.adjoint.d_radiance, walk.adjoint.cache) = (d_radiance, cache);
    walk.run::<MODE>(None);
    walk.path
}

/// The adjoint of [`gather`] by path replay: walks twice with the random numbers of `sampler` and sends the
/// derivatives of `d_radiance` · radiance to `sink`; `extra` is for draws that the primal does not make. Returns the
/// final state of both walks: the radiance left in the second is zero up to rounding.
#[inline]
#[allow(clippy::too_many_arguments, reason = "they are what an adjoint consists of")]
pub fn backpropagate<N: Number, F: Fields<N>, S: Sink<N>>(
    scene: &SceneView,
    fields: &F,
    ray: &Ray,
    medium: u32,
    sampler: Sampler,
    extra: Sampler,
    d_radiance: [N; 3],
    sink: &mut S,
) -> (PathState<N>, PathState<N>) {
    let mut cache = ReplayCache::new();
    cache.begin_rays(scene, extra);
    let first = gather_caching::<N, F, GATHER>(scene, fields, ray, medium, sampler, Rgb(d_radiance), Some(&mut cache));
    let mut walk = Walk::replaying(
        scene, fields, ray, medium, sampler, extra, &first, &mut cache, d_radiance, sink,
    );
    walk.replay();
    (first, walk.path)
}

impl<'a, 's, N: Number, F: Fields<N>, S: Sink<N>> Walk<'a, N, F, &'s mut S, Replayed> {
    /// A replay of `first`, the path that a first walk with `cache` has followed.
    #[inline]
    #[allow(clippy::too_many_arguments, reason = "they are what an adjoint consists of")]
    pub(super) fn replaying(
        scene: &'a SceneView<'a>,
        fields: &'a F,
        ray: &Ray,
        medium: u32,
        mut sampler: Sampler,
        extra: Sampler,
        first: &PathState<N>,
        cache: &'a mut ReplayCache<N>,
        d_radiance: [N; 3],
        sink: &'s mut S,
    ) -> Self {
        let mut path = PathState::new(scene, ray, medium, &mut sampler);
        path.expect(first);
        cache.replay_rays();
        Self {
            scene,
            fields,
            path,
            sampler,
            adjoint: Adjoint::new(Rgb(d_radiance), sink, extra, Some(cache), Replayed),
            trail: Trail::default(),
            chain: Chain::new(scene, &path),
        }
    }
}
