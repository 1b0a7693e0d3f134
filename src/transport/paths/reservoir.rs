//! Differential ratio tracking of in-scattering: a path keeps one of all points that it could have scattered at, and
//! follows the light that is scattered there (NimierDavid2022; docs/method.md, section 14).

use super::adjoint::{Adjoint, Candidate, free_flight_share};
use super::path_state::{NEGLIGIBLE, PathState};
use super::tracking::{extinction, is_unbounded, tentative_collisions};
use crate::transport::lookup::volume::{volume_eval, volume_stencil};
use crate::transport::number::Number;
use crate::transport::scene::records::{Fields, SceneView, Sink};

/// Share of the segments after the first on which candidates for in-scattering are looked for: a path keeps only one of
/// all, so that looking everywhere would cost more than it helps.
const VISITED_SHARE: f32 = 0.25;

/// Differential ratio tracking of in-scattering: candidates along the whole segment, one of them kept.
#[inline]
pub(super) fn offer_tentative_collisions<N: Number, F: Fields<N>, S: Sink<N>>(
    scene: &SceneView,
    fields: &F,
    path: &PathState<N>,
    far: f32,
    adjoint: &mut Adjoint<'_, N, S>,
) {
    if path.depth + 1 >= scene.settings.max_depth {
        return;
    }
    let mut norm = path.norm(scene);
    if path.depth > 0 {
        if adjoint.extra.draw() >= VISITED_SHARE {
            return;
        }
        norm /= VISITED_SHARE;
    }
    let medium = &scene.media[path.medium as usize];
    let endless = is_unbounded(medium, far);
    let mut transmittance = [N::lift(1.0); 3];
    let Adjoint {
        d_radiance,
        extra,
        candidate: choice,
        ..
    } = adjoint;
    tentative_collisions(
        scene,
        medium,
        path.origin,
        path.direction,
        far,
        extra,
        |p, mu, sampler| {
            let sigma = extinction(scene, fields, medium, p);
            let share = 1.0 - free_flight_share(medium, &sigma.sampled);
            let mut weight = 0.0;
            let mut d = [N::lift(0.0); 3];
            for c in 0..3 {
                if path.zeros[c] == 0 {
                    d[c] = d_radiance[c] * path.beta[c] * transmittance[c] * N::lift(norm * share / mu);
                    weight += d[c].value().abs() as f32;
                }
                transmittance[c] *= (N::lift(mu) - sigma.integrand[c]) * N::lift(1.0 / mu);
            }
            // Of less there is no inverse.
            if weight >= f32::MIN_POSITIVE {
                choice.total += weight;
                if sampler.draw() * choice.total < weight {
                    *choice = Candidate {
                        total: choice.total,
                        p,
                        direction: path.direction,
                        medium: path.medium,
                        depth: path.depth,
                        d: d.map(|d| d * N::lift(1.0 / weight)),
                        lost: [N::lift(0.0); 3],
                    };
                }
            }
            // In a medium without end nothing else would stop them.
            !endless || (0..3).any(|c| sigma.sampled[c] > 0.0 && transmittance[c].value().abs() > NEGLIGIBLE)
        },
    );
}

/// Sends the derivative by the extinction at the candidate, where light of this `radiance` was scattered.
#[inline]
pub(super) fn send_reservoir<N: Number, F: Fields<N>, S: Sink<N>>(
    scene: &SceneView,
    fields: &F,
    adjoint: &mut Adjoint<'_, N, S>,
    radiance: [N; 3],
) {
    let Candidate { total, p, d, lost, .. } = adjoint.candidate;
    let medium = &scene.media[adjoint.candidate.medium as usize];
    let volume = &scene.volumes[medium.albedo as usize];
    let albedo = volume_eval(volume, fields.integrand(volume.slot), &volume_stencil(volume, p));
    let mut d_sigma = [N::lift(0.0); 3];
    for c in 0..3 {
        d_sigma[c] = (d[c] * albedo[c] * radiance[c] - lost[c]) * N::lift(total * medium.scale);
    }
    let volume = &scene.volumes[medium.sigma_t as usize];
    adjoint.sink.volume(volume, &volume_stencil(volume, p), d_sigma, 3);
}
