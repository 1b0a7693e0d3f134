//! Paths through participating media and between surfaces: one walk for every mode.
//!
//! A primal walk adds what it finds. An adjoint walks twice from the same random numbers: first as the primal does, but
//! on through factors that are zero; then again, subtracting what it added, so that what is left is the radiance still
//! to come, whose logarithmic derivatives belong to the factors met on the way (Vicini2021, section 3.2 and 4.1).

use super::adjoint::{Adjoint, Candidate, Incident, derivatives_of_factor, send_light};
use super::next_event::{mis, sample_light};
use super::path_state::PathState;
use super::radiative::{look_ahead, look_along};
use super::replay_cache::ReplayCache;
use super::reservoir::{offer_tentative_collisions, send_reservoir};
use super::tracking::{Extinction, Flight, fly};
use crate::resident::layout::{NONE, background, bsdf, gradient};
use crate::transport::lookup::background::background_eval;
use crate::transport::lookup::volume::{volume_eval, volume_stencil};
use crate::transport::mode::{GATHER, PRIMAL, REPLAY, UNIT_RADIANCE};
use crate::transport::number::Number;
use crate::transport::rays::camera::Ray;
use crate::transport::rays::sampler::{Sampler, around, dot};
use crate::transport::scene::light::{area_pdf, envmap_pdf, light_sample, light_value};
use crate::transport::scene::phase::{phase_adjoint, phase_eval, phase_pdf, phase_sample};
use crate::transport::scene::records::{Fields, NoSink, SceneView, Sink};
use crate::transport::scene::shape::{Hit, intersect, leave};
use crate::transport::scene::texture::texture_eval;

/// Follows a path to its end.
#[inline]
pub fn walk<N: Number, F: Fields<N>, S: Sink<N>, const MODE: u8>(
    scene: &SceneView,
    fields: &F,
    path: &mut PathState<N>,
    sampler: &mut Sampler,
    adjoint: &mut Adjoint<'_, N, S>,
) {
    if path.depth >= scene.settings.max_depth {
        return;
    }
    loop {
        let free = adjoint.incident == Incident::Replayed && path.is_surface_free(scene);
        let mut hit = match free {
            true => None,
            false => intersect(scene, path.origin, path.direction, path.far),
        };
        if path.medium != NONE {
            let far = match &hit {
                Some(hit) => hit.t,
                None => path.far,
            };
            if MODE == REPLAY {
                look_ahead(scene, fields, path, hit.as_ref(), far, *sampler, adjoint);
                if scene.settings.gradient == gradient::DRT {
                    offer_tentative_collisions(scene, fields, path, far, adjoint);
                }
            }
            if let Flight::Collided { p, sigma } = fly::<N, F, S, MODE>(scene, fields, path, far, sampler, adjoint) {
                if !collide::<N, F, S, MODE>(scene, fields, path, p, &sigma, sampler, adjoint) {
                    return;
                }
                continue;
            }
        }
        if free {
            hit = intersect(scene, path.origin, path.direction, path.far);
        }
        let Some(hit) = hit else {
            escape::<N, F, S, MODE>(scene, fields, path, adjoint);
            return;
        };
        if !hit_surface::<N, F, S, MODE>(scene, fields, path, &hit, sampler, adjoint) {
            return;
        }
    }
}

/// What lies behind the scene.
#[inline]
pub(super) fn escape<N: Number, F: Fields<N>, S: Sink<N>, const MODE: u8>(
    scene: &SceneView,
    fields: &F,
    path: &mut PathState<N>,
    adjoint: &mut Adjoint<'_, N, S>,
) {
    path.straight = path.depth == 0;
    if !scene.has_background() || (path.depth == 0 && scene.settings.hide_emitters == 1) {
        return;
    }
    let mut weight = path.norm(scene);
    if path.depth > 0 && scene.common.background == background::ENVMAP {
        weight *= mis(path.pdf, envmap_pdf(scene, path.direction));
    }
    let radiance = background_eval(scene.common, fields.integrand(scene.background), path.direction);
    path.add::<MODE>(radiance.map(|x| x * N::lift(weight)));
    if MODE == REPLAY {
        let mut d = [N::lift(0.0); 3];
        for c in 0..3 {
            if path.zeros[c] == 0 {
                d[c] = adjoint.d_radiance[c] * path.beta[c] * N::lift(weight);
            }
        }
        adjoint.sink.background(path.direction, d);
    }
}

/// A real collision: false if the path ends.
#[inline]
pub(super) fn collide<N: Number, F: Fields<N>, S: Sink<N>, const MODE: u8>(
    scene: &SceneView,
    fields: &F,
    path: &mut PathState<N>,
    p: [f32; 3],
    sigma: &Extinction<N>,
    sampler: &mut Sampler,
    adjoint: &mut Adjoint<'_, N, S>,
) -> bool {
    let medium = &scene.media[path.medium as usize];
    let volume = &scene.volumes[medium.albedo as usize];
    let at = if medium.aligned == 1 {
        sigma.at
    } else {
        volume_stencil(volume, p)
    };
    let albedo = volume_eval(volume, fields.integrand(volume.slot), &at);
    if F::TWO_SIDED {
        path.multiply_sampled(volume_eval(volume, fields.sampling(volume.slot), &at));
    }
    if MODE == REPLAY {
        let d = derivatives_of_factor(path, &adjoint.d_radiance, albedo);
        adjoint.sink.volume(volume, &at, d, 3);
    }
    path.multiply::<F>(albedo);
    path.depth += 1;
    if path.depth >= scene.settings.max_depth || path.is_dark::<MODE>() {
        return false;
    }
    scatter_at::<N, F, S, MODE>(scene, fields, path, p, sampler, adjoint)
}

/// Scatters the light at `p`: next-event estimation, then a new direction. False if the path ends.
#[inline]
fn scatter_at<N: Number, F: Fields<N>, S: Sink<N>, const MODE: u8>(
    scene: &SceneView,
    fields: &F,
    path: &mut PathState<N>,
    p: [f32; 3],
    sampler: &mut Sampler,
    adjoint: &mut Adjoint<'_, N, S>,
) -> bool {
    if MODE == UNIT_RADIANCE {
        return path.add_unit_radiance(scene);
    }
    let (incoming, index) = (path.direction, scene.media[path.medium as usize].phase);
    if scene.settings.lights > 0
        && let Some(drawn) = light_sample(scene, p, sampler)
    {
        let pdf = phase_pdf(scene, fields, index, p, incoming, drawn.direction);
        let value = match F::TWO_SIDED {
            true => phase_eval(scene, fields, index, p, incoming, drawn.direction),
            false => N::lift(pdf),
        };
        let lit = sample_light::<N, F, S, MODE>(scene, fields, path, p, &drawn, [value; 3], pdf, sampler, adjoint);
        // Where radiance is one in all directions, that of the lights is a part of it.
        if MODE == REPLAY && adjoint.incident != Incident::One {
            phase_adjoint(scene, fields, index, p, incoming, drawn.direction, lit, adjoint.sink);
        }
    }
    let outgoing = phase_sample(scene, fields, index, p, incoming, sampler);
    // Only lights that could also have been drawn ask for it.
    let pdf = match F::TWO_SIDED || scene.settings.lights > 0 {
        true => phase_pdf(scene, fields, index, p, incoming, outgoing),
        false => 0.0,
    };
    if F::TWO_SIDED {
        let value = phase_eval(scene, fields, index, p, incoming, outgoing);
        path.multiply::<F>([value * N::lift(1.0 / pdf); 3]);
    }
    path.turn(p, p, outgoing, pdf);
    if MODE == REPLAY {
        look_along(scene, fields, path, index, adjoint);
        let mut d = N::lift(0.0);
        for c in 0..3 {
            if path.zeros[c] == 0 {
                d += adjoint.d_radiance[c] * path.radiance[c];
            }
        }
        phase_adjoint(scene, fields, index, p, incoming, outgoing, d, adjoint.sink);
    }
    path.roulette::<F>(scene, sampler)
}

/// A surface: false if the path ends.
#[inline]
pub(super) fn hit_surface<N: Number, F: Fields<N>, S: Sink<N>, const MODE: u8>(
    scene: &SceneView,
    fields: &F,
    path: &mut PathState<N>,
    hit: &Hit,
    sampler: &mut Sampler,
    adjoint: &mut Adjoint<'_, N, S>,
) -> bool {
    let record = &scene.surfaces[hit.surface as usize];
    let against = dot(path.direction, hit.normal) < 0.0;
    if record.light != NONE && against && !(path.depth == 0 && scene.settings.hide_emitters == 1) {
        let mut weight = path.norm(scene);
        if path.depth > 0 {
            weight *= mis(path.pdf, area_pdf(scene, path.scattered_at, path.direction, hit));
        }
        let slot = scene.lights[record.light as usize].slot;
        let radiance: [N; 3] = light_value(fields.integrand(slot));
        path.add::<MODE>(radiance.map(|x| x * N::lift(weight)));
        if MODE == REPLAY {
            send_light(path, slot, [N::lift(weight); 3], adjoint);
        }
    }
    if record.bsdf == bsdf::NULL {
        if record.interior != NONE || record.exterior != NONE {
            path.medium = if against { record.interior } else { record.exterior };
        }
        path.origin = leave(hit, path.direction);
        path.far -= hit.t;
        return true;
    }
    if !against {
        return false;
    }
    path.depth += 1;
    if path.depth >= scene.settings.max_depth {
        return false;
    }
    let color = texture_eval(scene, &scene.textures[record.texture as usize], hit.uv);
    if color == [0.0; 3] {
        return false;
    }
    if MODE == UNIT_RADIANCE {
        path.multiply::<F>(color.map(N::lift));
        return path.add_unit_radiance(scene);
    }
    let p = leave(hit, hit.normal);
    const INV_PI: f32 = std::f32::consts::FRAC_1_PI;
    if scene.settings.lights > 0
        && let Some(drawn) = light_sample(scene, p, sampler)
    {
        let cosine = dot(drawn.direction, hit.shading);
        if cosine > 0.0 && dot(drawn.direction, hit.normal) > 0.0 {
            let pdf = cosine * INV_PI;
            let value = color.map(|x| N::lift(x * pdf));
            sample_light::<N, F, S, MODE>(scene, fields, path, p, &drawn, value, pdf, sampler, adjoint);
        }
    }
    let cosine = (1.0 - sampler.draw()).sqrt();
    let outgoing = around(hit.shading, cosine, sampler.draw());
    if dot(outgoing, hit.normal) <= 0.0 {
        return false;
    }
    path.multiply::<F>(color.map(N::lift));
    if F::TWO_SIDED {
        path.multiply_sampled(color);
    }
    path.turn(hit.p, p, outgoing, cosine * INV_PI);
    path.roulette::<F>(scene, sampler)
}

/// The light that is scattered at the candidate, by a path of its own.
#[inline]
fn follow_reservoir<N: Number, F: Fields<N>, const MODE: u8>(
    scene: &SceneView,
    fields: &F,
    candidate: &Candidate<N>,
    mut sampler: Sampler,
) -> [N; 3] {
    if candidate.depth + 1 >= scene.settings.max_depth {
        return [N::lift(0.0); 3];
    }
    let p = candidate.p;
    let hero = PathState::<N>::draw_hero(scene, &mut sampler);
    let mut path = PathState::start(p, candidate.direction, f32::INFINITY, candidate.medium, hero);
    path.depth = candidate.depth + 1;
    let mut nothing = NoSink;
    let mut unused = Adjoint::new([N::lift(0.0); 3], &mut nothing, sampler);
    if scatter_at::<N, F, NoSink, MODE>(scene, fields, &mut path, p, &mut sampler, &mut unused) {
        walk::<N, F, NoSink, MODE>(scene, fields, &mut path, &mut sampler, &mut unused);
    }
    path.radiance
}

/// The radiance that a camera ray brings.
#[inline]
pub fn gather<N: Number, F: Fields<N>, const MODE: u8>(
    scene: &SceneView,
    fields: &F,
    ray: &Ray,
    medium: u32,
    sampler: Sampler,
) -> PathState<N> {
    gather_noting::<N, F, MODE>(scene, fields, ray, medium, sampler, None)
}

/// [`gather`], with notes of its tracking if a replay is to come.
#[inline]
fn gather_noting<N: Number, F: Fields<N>, const MODE: u8>(
    scene: &SceneView,
    fields: &F,
    ray: &Ray,
    medium: u32,
    mut sampler: Sampler,
    cache: Option<&mut ReplayCache<N>>,
) -> PathState<N> {
    let mut path = PathState::new(scene, ray, medium, &mut sampler);
    let mut nothing = NoSink;
    let mut adjoint = Adjoint::new([N::lift(0.0); 3], &mut nothing, sampler);
    adjoint.cache = cache;
    walk::<N, F, NoSink, MODE>(scene, fields, &mut path, &mut sampler, &mut adjoint);
    path
}

/// The adjoint of [`gather`]: walks twice with the numbers of `sampler` and sends the derivatives of `d_radiance` ·
/// radiance to `sink`; `extra` is for draws that the primal does not make. Returns both walks' ends: what is left of
/// the radiance in the second is zero but for rounding.
#[inline]
#[allow(clippy::too_many_arguments, reason = "they are what an adjoint consists of")]
pub fn propagate<N: Number, F: Fields<N>, S: Sink<N>>(
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
    let first = gather_noting::<N, F, GATHER>(scene, fields, ray, medium, sampler, Some(&mut cache));
    let mut sampler = sampler;
    let mut replay = PathState::new(scene, ray, medium, &mut sampler);
    replay.radiance = first.radiance;
    replay.radiance_but_zero = first.radiance_but_zero;
    let mut adjoint = Adjoint::new(d_radiance, sink, extra);
    adjoint.cache = Some(&mut cache);
    backpropagate(scene, fields, &mut replay, &mut sampler, &mut adjoint);
    (first, replay)
}

/// Follows an adjoint path to its end, and the light that is scattered at its candidate.
#[inline]
pub(super) fn backpropagate<N: Number, F: Fields<N>, S: Sink<N>>(
    scene: &SceneView,
    fields: &F,
    path: &mut PathState<N>,
    sampler: &mut Sampler,
    adjoint: &mut Adjoint<'_, N, S>,
) {
    walk::<N, F, S, REPLAY>(scene, fields, path, sampler, adjoint);
    if adjoint.candidate.total > 0.0 {
        let (candidate, extra) = (&adjoint.candidate, adjoint.extra);
        let radiance = match adjoint.incident {
            Incident::One => follow_reservoir::<N, F, UNIT_RADIANCE>(scene, fields, candidate, extra),
            _ => follow_reservoir::<N, F, PRIMAL>(scene, fields, candidate, extra),
        };
        send_reservoir(scene, fields, adjoint, radiance);
    }
}
