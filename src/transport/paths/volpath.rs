//! Paths through participating media and between surfaces: one walk for every mode.
//!
//! A primal walk adds what it finds. An adjoint walks twice from the same random numbers: first as the primal does, but
//! on through factors that are zero; then again, subtracting what it added, so that what is left is the radiance still
//! to come, whose logarithmic derivatives belong to the factors met on the way (Vicini2021, section 3.2 and 4.1).

use super::adjoint::{Adjoint, Candidate, Incident, derivatives_of_factor, send_light};
use super::next_event::{connect, mis};
use super::path_state::Path;
use super::radiative::{look_ahead, look_along};
use super::replay_cache::Trail;
use super::reservoir::{gather_candidates, settle_candidate};
use super::tracking::{Extinction, Flight, fly};
use crate::resident::layout::{NONE, background, bsdf, gradient};
use crate::transport::lookup::background::background_eval;
use crate::transport::lookup::volume::{volume_eval, volume_stencil};
use crate::transport::mode::{GATHER, PRIMAL, REPLAY, UNIT_RADIANCE};
use crate::transport::number::Number;
use crate::transport::rays::camera::Ray;
use crate::transport::rays::sampler::{Sampler, along, around, dot};
use crate::transport::scene::light::{area_density, envmap_density, light_sample, light_value};
use crate::transport::scene::phase::{phase_density, phase_eval, phase_sample, phase_scatter};
use crate::transport::scene::records::{Fields, NoSink, Sink, World};
use crate::transport::scene::shape::{Hit, intersect, leave};
use crate::transport::scene::texture::texture_eval;

/// Follows a path to its end.
#[inline]
pub fn walk<N: Number, F: Fields<N>, S: Sink<N>, const MODE: u8>(
    world: &World,
    fields: &F,
    path: &mut Path<N>,
    sampler: &mut Sampler,
    adjoint: &mut Adjoint<'_, N, S>,
) {
    if path.depth >= world.record.max_depth {
        return;
    }
    loop {
        let free = adjoint.incident == Incident::Replayed && path.flies_free(world);
        let mut hit = match free {
            true => None,
            false => intersect(world, path.origin, path.direction, path.far),
        };
        if path.medium != NONE {
            let far = match &hit {
                Some(hit) => hit.t,
                None => path.far,
            };
            if MODE == REPLAY {
                look_ahead(world, fields, path, hit.as_ref(), far, *sampler, adjoint);
                if world.record.gradient == gradient::DRT {
                    gather_candidates(world, fields, path, far, adjoint);
                }
            }
            if let Flight::Collided { p, sigma } = fly::<N, F, S, MODE>(world, fields, path, far, sampler, adjoint) {
                if !scatter::<N, F, S, MODE>(world, fields, path, p, &sigma, sampler, adjoint) {
                    return;
                }
                continue;
            }
        }
        if free {
            hit = intersect(world, path.origin, path.direction, path.far);
        }
        let Some(hit) = hit else {
            escape::<N, F, S, MODE>(world, fields, path, adjoint);
            return;
        };
        if !meet::<N, F, S, MODE>(world, fields, path, &hit, sampler, adjoint) {
            return;
        }
    }
}

/// What lies behind the scene.
#[inline]
pub(super) fn escape<N: Number, F: Fields<N>, S: Sink<N>, const MODE: u8>(
    world: &World,
    fields: &F,
    path: &mut Path<N>,
    adjoint: &mut Adjoint<'_, N, S>,
) {
    path.straight = path.depth == 0;
    if !world.has_background() || (path.depth == 0 && world.record.hide_emitters == 1) {
        return;
    }
    let mut weight = path.norm(world);
    if path.depth > 0 && world.scene.background == background::ENVMAP {
        weight *= mis(path.density, envmap_density(world, path.direction));
    }
    let radiance = background_eval(world.scene, fields.integrand(world.background), path.direction);
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
pub(super) fn scatter<N: Number, F: Fields<N>, S: Sink<N>, const MODE: u8>(
    world: &World,
    fields: &F,
    path: &mut Path<N>,
    p: [f32; 3],
    sigma: &Extinction<N>,
    sampler: &mut Sampler,
    adjoint: &mut Adjoint<'_, N, S>,
) -> bool {
    let medium = &world.media[path.medium as usize];
    let volume = &world.volumes[medium.albedo as usize];
    let at = if medium.aligned == 1 {
        sigma.at
    } else {
        volume_stencil(volume, p)
    };
    let albedo = volume_eval(volume, fields.integrand(volume.slot), &at);
    if F::TWO_SIDED {
        path.decide(volume_eval(volume, fields.sampling(volume.slot), &at));
    }
    if MODE == REPLAY {
        let d = derivatives_of_factor(path, &adjoint.d_radiance, albedo);
        adjoint.sink.volume(volume, &at, d, 3);
    }
    path.multiply::<F>(albedo);
    path.depth += 1;
    if path.depth >= world.record.max_depth || path.is_dark::<MODE>() {
        return false;
    }
    redirect::<N, F, S, MODE>(world, fields, path, p, sampler, adjoint)
}

/// Scatters the light at `p`: next-event estimation, then a new direction. False if the path ends.
#[inline]
fn redirect<N: Number, F: Fields<N>, S: Sink<N>, const MODE: u8>(
    world: &World,
    fields: &F,
    path: &mut Path<N>,
    p: [f32; 3],
    sampler: &mut Sampler,
    adjoint: &mut Adjoint<'_, N, S>,
) -> bool {
    if MODE == UNIT_RADIANCE {
        return path.glimpse(world);
    }
    let (incoming, index) = (path.direction, world.media[path.medium as usize].phase);
    if world.record.lights > 0
        && let Some(drawn) = light_sample(world, p, sampler)
    {
        let density = phase_density(world, fields, index, p, incoming, drawn.direction);
        let value = match F::TWO_SIDED {
            true => phase_eval(world, fields, index, p, incoming, drawn.direction),
            false => N::lift(density),
        };
        let lit = connect::<N, F, S, MODE>(world, fields, path, p, &drawn, [value; 3], density, sampler, adjoint);
        // Where radiance is one in all directions, that of the lights is a part of it.
        if MODE == REPLAY && adjoint.incident != Incident::One {
            phase_scatter(world, fields, index, p, incoming, drawn.direction, lit, adjoint.sink);
        }
    }
    let outgoing = phase_sample(world, fields, index, p, incoming, sampler);
    // Only lights that could also have been drawn ask for it.
    let density = match F::TWO_SIDED || world.record.lights > 0 {
        true => phase_density(world, fields, index, p, incoming, outgoing),
        false => 0.0,
    };
    if F::TWO_SIDED {
        let value = phase_eval(world, fields, index, p, incoming, outgoing);
        path.multiply::<F>([value * N::lift(1.0 / density); 3]);
    }
    path.turn(p, p, outgoing, density);
    if MODE == REPLAY {
        look_along(world, fields, path, index, adjoint);
        let mut d = N::lift(0.0);
        for c in 0..3 {
            if path.zeros[c] == 0 {
                d += adjoint.d_radiance[c] * path.radiance[c];
            }
        }
        phase_scatter(world, fields, index, p, incoming, outgoing, d, adjoint.sink);
    }
    path.roulette::<F>(world, sampler)
}

/// A surface: false if the path ends.
#[inline]
pub(super) fn meet<N: Number, F: Fields<N>, S: Sink<N>, const MODE: u8>(
    world: &World,
    fields: &F,
    path: &mut Path<N>,
    hit: &Hit,
    sampler: &mut Sampler,
    adjoint: &mut Adjoint<'_, N, S>,
) -> bool {
    let record = &world.surfaces[hit.surface as usize];
    let q = along(path.origin, path.direction, hit.t);
    let against = dot(path.direction, hit.normal) < 0.0;
    if record.light != NONE && against && !(path.depth == 0 && world.record.hide_emitters == 1) {
        let mut weight = path.norm(world);
        if path.depth > 0 {
            weight *= mis(path.density, area_density(world, path.from, path.direction, hit, q));
        }
        let slot = world.lights[record.light as usize].slot;
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
        path.origin = leave(q, hit.normal, path.direction);
        path.far -= hit.t;
        return true;
    }
    if !against {
        return false;
    }
    path.depth += 1;
    if path.depth >= world.record.max_depth {
        return false;
    }
    let color = texture_eval(world, &world.textures[record.texture as usize], hit.uv);
    if color == [0.0; 3] {
        return false;
    }
    if MODE == UNIT_RADIANCE {
        path.multiply::<F>(color.map(N::lift));
        return path.glimpse(world);
    }
    let p = leave(q, hit.normal, hit.normal);
    const INV_PI: f32 = std::f32::consts::FRAC_1_PI;
    if world.record.lights > 0
        && let Some(drawn) = light_sample(world, p, sampler)
    {
        let cosine = dot(drawn.direction, hit.shading);
        if cosine > 0.0 && dot(drawn.direction, hit.normal) > 0.0 {
            let density = cosine * INV_PI;
            let value = color.map(|x| N::lift(x * density));
            connect::<N, F, S, MODE>(world, fields, path, p, &drawn, value, density, sampler, adjoint);
        }
    }
    let cosine = (1.0 - sampler.draw()).sqrt();
    let outgoing = around(hit.shading, cosine, sampler.draw());
    if dot(outgoing, hit.normal) <= 0.0 {
        return false;
    }
    path.multiply::<F>(color.map(N::lift));
    if F::TWO_SIDED {
        path.decide(color);
    }
    path.turn(q, p, outgoing, cosine * INV_PI);
    path.roulette::<F>(world, sampler)
}

/// The light that is scattered at the candidate, by a path of its own.
#[inline]
fn follow_candidate<N: Number, F: Fields<N>, const MODE: u8>(
    world: &World,
    fields: &F,
    candidate: &Candidate<N>,
    mut sampler: Sampler,
) -> [N; 3] {
    if candidate.depth + 1 >= world.record.max_depth {
        return [N::lift(0.0); 3];
    }
    let p = candidate.p;
    let hero = Path::<N>::draw_hero(world, &mut sampler);
    let mut path = Path::start(p, candidate.direction, f32::INFINITY, candidate.medium, hero);
    path.depth = candidate.depth + 1;
    let mut nothing = NoSink;
    let mut unused = Adjoint::new([N::lift(0.0); 3], &mut nothing, sampler);
    if redirect::<N, F, NoSink, MODE>(world, fields, &mut path, p, &mut sampler, &mut unused) {
        walk::<N, F, NoSink, MODE>(world, fields, &mut path, &mut sampler, &mut unused);
    }
    path.radiance
}

/// The radiance that a camera ray brings.
#[inline]
pub fn gather<N: Number, F: Fields<N>, const MODE: u8>(
    world: &World,
    fields: &F,
    ray: &Ray,
    medium: u32,
    sampler: Sampler,
) -> Path<N> {
    gather_noting::<N, F, MODE>(world, fields, ray, medium, sampler, None)
}

/// [`gather`], with notes of its tracking if a replay is to come.
#[inline]
fn gather_noting<N: Number, F: Fields<N>, const MODE: u8>(
    world: &World,
    fields: &F,
    ray: &Ray,
    medium: u32,
    mut sampler: Sampler,
    trail: Option<&mut Trail<N>>,
) -> Path<N> {
    let mut path = Path::new(world, ray, medium, &mut sampler);
    let mut nothing = NoSink;
    let mut adjoint = Adjoint::new([N::lift(0.0); 3], &mut nothing, sampler);
    adjoint.trail = trail;
    walk::<N, F, NoSink, MODE>(world, fields, &mut path, &mut sampler, &mut adjoint);
    path
}

/// The adjoint of [`gather`]: walks twice with the numbers of `sampler` and sends the derivatives of `d_radiance` ·
/// radiance to `sink`; `extra` is for draws that the primal does not make. Returns both walks' ends: what is left of
/// the radiance in the second is zero but for rounding.
#[inline]
#[allow(clippy::too_many_arguments, reason = "they are what an adjoint consists of")]
pub fn propagate<N: Number, F: Fields<N>, S: Sink<N>>(
    world: &World,
    fields: &F,
    ray: &Ray,
    medium: u32,
    sampler: Sampler,
    extra: Sampler,
    d_radiance: [N; 3],
    sink: &mut S,
) -> (Path<N>, Path<N>) {
    let mut trail = Trail::new();
    let first = gather_noting::<N, F, GATHER>(world, fields, ray, medium, sampler, Some(&mut trail));
    let mut sampler = sampler;
    let mut replay = Path::new(world, ray, medium, &mut sampler);
    replay.radiance = first.radiance;
    replay.spare = first.spare;
    let mut adjoint = Adjoint::new(d_radiance, sink, extra);
    adjoint.trail = Some(&mut trail);
    backpropagate(world, fields, &mut replay, &mut sampler, &mut adjoint);
    (first, replay)
}

/// Follows an adjoint path to its end, and the light that is scattered at its candidate.
#[inline]
pub(super) fn backpropagate<N: Number, F: Fields<N>, S: Sink<N>>(
    world: &World,
    fields: &F,
    path: &mut Path<N>,
    sampler: &mut Sampler,
    adjoint: &mut Adjoint<'_, N, S>,
) {
    walk::<N, F, S, REPLAY>(world, fields, path, sampler, adjoint);
    if adjoint.candidate.total > 0.0 {
        let (candidate, extra) = (&adjoint.candidate, adjoint.extra);
        let radiance = match adjoint.incident {
            Incident::One => follow_candidate::<N, F, UNIT_RADIANCE>(world, fields, candidate, extra),
            _ => follow_candidate::<N, F, PRIMAL>(world, fields, candidate, extra),
        };
        settle_candidate(world, fields, adjoint, radiance);
    }
}
