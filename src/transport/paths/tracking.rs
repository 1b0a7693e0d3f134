//! Free flight through a medium by delta tracking against local majorants, and transmittance by ratio tracking
//! (Vicini2021, section 4.4; Novak2014).
//!
//! Where a medium's extinction has three channels, collisions are sampled_beta by one of them, and densities of the others
//! relative to it weigh the path (one-sample multiple importance sampling, PBRT4 section 14.2).

use super::adjoint::Adjoint;
use super::path_state::PathState;
use crate::resident::layout::{MediumRecord, NONE, gradient};
use crate::transport::lookup::grid::Stencil;
use crate::transport::lookup::volume::{volume_eval, volume_stencil};
use crate::transport::mode::{GATHER, REPLAY};
use crate::transport::number::Number;
use crate::transport::rays::sampler::{Sampler, along, exponential};
use crate::transport::scene::majorant::Cells;
use crate::transport::scene::records::{Fields, SceneView, Sink};

/// Scaled extinction at a point.
#[derive(Debug, Clone, Copy)]
pub struct Extinction<N> {
    pub at: Stencil,
    pub integrand: [N; 3],
    /// On the sampling side.
    pub sampled: [f32; 3],
}

/// Looks a medium's extinction up.
#[inline]
pub fn extinction<N: Number, F: Fields<N>>(
    scene: &SceneView,
    fields: &F,
    medium: &MediumRecord,
    p: [f32; 3],
) -> Extinction<N> {
    let volume = &scene.volumes[medium.sigma_t as usize];
    let at = volume_stencil(volume, p);
    let scale = N::lift(medium.scale);
    let mut integrand = volume_eval(volume, fields.integrand(volume.slot), &at);
    let mut sampled = [0.0; 3];
    if F::TWO_SIDED {
        let other = volume_eval(volume, fields.sampling(volume.slot), &at);
        for c in 0..3 {
            sampled[c] = other[c] * medium.scale;
        }
    }
    for c in 0..3 {
        integrand[c] *= scale;
        if !F::TWO_SIDED {
            sampled[c] = integrand[c].value() as f32;
        }
    }
    Extinction { at, integrand, sampled }
}

/// Where a flight ended.
#[derive(Debug, Clone, Copy)]
pub enum Flight<N> {
    /// At the end of the medium or of the ray.
    Passed,
    /// At a real collision.
    Collided { p: [f32; 3], sigma: Extinction<N> },
}

/// A flight that was made.
#[derive(Debug, Clone, Copy)]
pub struct Flown<N> {
    pub flight: Flight<N>,
    /// Where it began and ended in the medium, but for the pieces that were offered on the way; None if there is
    /// nothing to say of it.
    pub part: Option<[f32; 2]>,
}

/// Flies from the path's origin until a real collision or `far`.
#[inline]
pub fn fly<N: Number, F: Fields<N>, S: Sink<N>, const MODE: u8>(
    scene: &SceneView,
    fields: &F,
    path: &mut PathState<N>,
    far: f32,
    sampler: &mut Sampler,
    adjoint: &mut Adjoint<'_, N, S>,
) -> Flight<N> {
    let medium = &scene.media[path.medium as usize];
    let noted = !F::TWO_SIDED && !alters(scene, medium) && scene.settings.gradient != gradient::FREE_FLIGHT;
    let flown = match &mut adjoint.cache {
        Some(cache) if MODE == REPLAY && noted => cache.flights.recall(sampler),
        _ => None,
    };
    let flown = flown.unwrap_or_else(|| {
        let flown = track::<N, F, S, MODE>(scene, fields, path, far, sampler, adjoint);
        if MODE == GATHER
            && noted
            && let Some(cache) = &mut adjoint.cache
        {
            cache.flights.note(flown, sampler);
        }
        flown
    });
    if MODE == REPLAY {
        adjoint.send_flight(scene, path, medium, &flown);
    }
    if let Flight::Collided { sigma, .. } = &flown.flight {
        path.multiply_real::<F>(scene, sigma, sigma.sampled[path.hero as usize]);
    }
    flown.flight
}

/// Whether tentative collisions in the medium change what a path carries.
#[inline(always)]
fn alters(scene: &SceneView, medium: &MediumRecord) -> bool {
    scene.settings.spectral == 1 || medium.emission != NONE
}

/// Delta tracking from the path's origin until a real collision or `far`.
#[inline]
fn track<N: Number, F: Fields<N>, S: Sink<N>, const MODE: u8>(
    scene: &SceneView,
    fields: &F,
    path: &mut PathState<N>,
    far: f32,
    sampler: &mut Sampler,
    adjoint: &mut Adjoint<'_, N, S>,
) -> Flown<N> {
    let passed = |part| Flown {
        flight: Flight::Passed,
        part,
    };
    let medium = &scene.media[path.medium as usize];
    let (origin, direction) = (path.origin, path.direction);
    let Some(mut cells) = Cells::new(medium, origin, direction, 0.0, far) else {
        return passed(None);
    };
    let start = cells.t;
    // Where the piece of the flight begins that is under way.
    let mut piece = start;
    let splits = MODE == REPLAY && scene.settings.gradient == gradient::PAIRED && alters(scene, medium);
    let mut rest = exponential(sampler.draw());
    loop {
        let mu = scene.majorants[cells.index as usize];
        let exit = cells.exit();
        let mut t = cells.t;
        loop {
            let next = t + rest / mu;
            if next.is_nan() || next >= exit {
                // Rounding must not leave less than nothing, which an empty cell would turn into a place before all.
                rest = (rest - mu * (exit - t)).max(0.0);
                break;
            }
            t = next;
            let p = along(origin, direction, t);
            let sigma = extinction(scene, fields, medium, p);
            if splits {
                adjoint.offer_segment(scene, path, piece, t);
                piece = t;
            }
            if medium.emission != NONE {
                emit::<N, F, S, MODE>(scene, fields, path, medium, [start, t], &sigma, mu, adjoint);
            }
            let hero = sigma.sampled[path.hero as usize];
            if sampler.draw() * mu < hero {
                return Flown {
                    flight: Flight::Collided { p, sigma },
                    part: Some([piece, t]),
                };
            }
            if MODE == REPLAY && scene.settings.gradient == gradient::FREE_FLIGHT {
                null_collision(scene, path, medium, &sigma, mu, adjoint);
            }
            path.multiply_null::<F>(scene, &sigma, hero, mu);
            // What its channel does not see, the path would never collide with in a medium without end.
            if hero == 0.0 && cells.end == f32::INFINITY && path.fades(&sigma) {
                return passed(None);
            }
            rest = exponential(sampler.draw());
        }
        if !cells.advance() {
            return passed(Some([piece, cells.end]));
        }
    }
}

/// Sends the derivative of a null collision's factor, 1 - sigma / mu.
#[inline]
fn null_collision<N: Number, S: Sink<N>>(
    scene: &SceneView,
    path: &PathState<N>,
    medium: &MediumRecord,
    sigma: &Extinction<N>,
    mu: f32,
    adjoint: &mut Adjoint<'_, N, S>,
) {
    let mut d = [N::lift(0.0); 3];
    for c in 0..3 {
        if path.zeros[c] == 0 {
            let kept = (N::lift(mu) - sigma.integrand[c]).recip();
            d[c] = -(adjoint.d_radiance[c] * path.radiance[c] * kept * N::lift(medium.scale));
        }
    }
    let volume = &scene.volumes[medium.sigma_t as usize];
    adjoint.sink.volume(volume, &sigma.at, d, 3);
}

/// Radiance emitted at a tentative collision: the absorption coefficient times the emission, over the majorant
/// (Vicini2021, equation 17). `part` is where the flight entered the medium and where the collision is.
#[inline]
#[allow(clippy::too_many_arguments, reason = "they are what a collision consists of")]
fn emit<N: Number, F: Fields<N>, S: Sink<N>, const MODE: u8>(
    scene: &SceneView,
    fields: &F,
    path: &mut PathState<N>,
    medium: &MediumRecord,
    part: [f32; 2],
    sigma: &Extinction<N>,
    mu: f32,
    adjoint: &mut Adjoint<'_, N, S>,
) {
    let p = along(path.origin, path.direction, part[1]);
    let albedo_volume = &scene.volumes[medium.albedo as usize];
    let albedo_at = volume_stencil(albedo_volume, p);
    let albedo = volume_eval(albedo_volume, fields.integrand(albedo_volume.slot), &albedo_at);
    let emission_volume = &scene.volumes[medium.emission as usize];
    let emission_at = volume_stencil(emission_volume, p);
    let emission = volume_eval(emission_volume, fields.integrand(emission_volume.slot), &emission_at);
    let weight = N::lift(path.norm(scene) / mu);
    let one = N::lift(1.0);
    let mut radiance = [one; 3];
    for c in 0..3 {
        radiance[c] = sigma.integrand[c] * (one - albedo[c]) * emission[c] * weight;
    }
    path.add::<MODE>(radiance);
    if MODE != REPLAY {
        return;
    }
    let (mut d_sigma, mut d_albedo, mut d_emission) = ([N::lift(0.0); 3], [N::lift(0.0); 3], [N::lift(0.0); 3]);
    let mut d_path = [N::lift(0.0); 3];
    for c in 0..3 {
        if path.zeros[c] == 0 {
            let d = adjoint.d_radiance[c] * path.beta[c] * weight;
            d_sigma[c] = d * (one - albedo[c]) * emission[c] * N::lift(medium.scale);
            d_albedo[c] = -(d * sigma.integrand[c] * emission[c]);
            d_emission[c] = d * sigma.integrand[c] * (one - albedo[c]);
            d_path[c] = adjoint.d_radiance[c] * path.beta[c] * radiance[c];
        }
    }
    let sigma_volume = &scene.volumes[medium.sigma_t as usize];
    adjoint.sink.volume(sigma_volume, &sigma.at, d_sigma, 3);
    adjoint.sink.volume(albedo_volume, &albedo_at, d_albedo, 3);
    adjoint.sink.volume(emission_volume, &emission_at, d_emission, 3);
    if scene.settings.gradient == gradient::DRT {
        let origin = along(path.origin, path.direction, part[0]);
        adjoint.send_transmittance(scene, medium, origin, path.direction, part[1] - part[0], d_path);
    }
}

/// Transmittance of a part of a shadow ray inside one medium, multiplied into `transmittance`.
#[inline]
#[allow(clippy::too_many_arguments, reason = "they are what a shadow ray consists of")]
pub fn ratio_track<N: Number, F: Fields<N>>(
    scene: &SceneView,
    fields: &F,
    medium: &MediumRecord,
    origin: [f32; 3],
    direction: [f32; 3],
    far: f32,
    sampler: &mut Sampler,
    transmittance: &mut [N; 3],
) {
    if is_unbounded(medium, far) {
        let sigma = extinction(scene, fields, medium, origin);
        for c in 0..3 {
            transmittance[c] *= N::lift(if sigma.sampled[c] > 0.0 { 0.0 } else { 1.0 });
        }
        return;
    }
    tentative_collisions(scene, medium, origin, direction, far, sampler, |p, mu, _| {
        let sigma = extinction(scene, fields, medium, p);
        for c in 0..3 {
            transmittance[c] *= (N::lift(mu) - sigma.integrand[c]) * N::lift(1.0 / mu);
        }
        true
    });
}

/// Whether a ray goes on in a medium without end, which is homogeneous.
#[inline(always)]
pub fn is_unbounded(medium: &MediumRecord, far: f32) -> bool {
    far == f32::INFINITY && medium.high[0] == f32::INFINITY
}

/// The points of a Poisson process whose rate is the majorant, in order along the ray, as long as `visit` returns true.
#[inline]
pub fn tentative_collisions(
    scene: &SceneView,
    medium: &MediumRecord,
    origin: [f32; 3],
    direction: [f32; 3],
    far: f32,
    sampler: &mut Sampler,
    mut visit: impl FnMut([f32; 3], f32, &mut Sampler) -> bool,
) {
    let Some(mut cells) = Cells::new(medium, origin, direction, 0.0, far) else {
        return;
    };
    let mut rest = exponential(sampler.draw());
    loop {
        let mu = scene.majorants[cells.index as usize];
        let exit = cells.exit();
        let mut t = cells.t;
        loop {
            let next = t + rest / mu;
            if next.is_nan() || next >= exit {
                rest = (rest - mu * (exit - t)).max(0.0);
                break;
            }
            t = next;
            if !visit(along(origin, direction, t), mu, sampler) {
                return;
            }
            rest = exponential(sampler.draw());
        }
        if !cells.advance() {
            return;
        }
    }
}
