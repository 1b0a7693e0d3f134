//! Differential ratio tracking of in-scattering: a path keeps one of all points at which it could have been scattered,
//! and estimates the in-scattered radiance there (NimierDavid2022; docs/method.md, section 14).

use super::adjoint::{Adjoint, free_flight_share, send_extinction, wants_extinction};
use super::path_state::{NEGLIGIBLE, PathState};
use super::radiative::Incident;
use super::tracking::{extinction, is_unbounded, tentative_collisions};
use super::volpath::Walk;
use crate::each::EachEntry;
use crate::resident::layout::{NONE, medium as medium_flag};
use crate::transport::lookup::grid::prefetch;
use crate::transport::lookup::volume::{volume_eval, volume_stencil};
use crate::transport::number::Number;
use crate::transport::number::rgb::Rgb;
use crate::transport::rays::sampler::Sampler;
use crate::transport::scene::records::{Fields, SceneView, Sink};

/// Probability that a segment after the first offers points: only one point per path is kept, so that offering on all
/// segments costs more time than it saves variance.
const VISITED_SHARE: f32 = 0.25;

/// Weighted reservoir sampling with a reservoir of one point.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reservoir<N> {
    /// Sum of the weights of all points offered; zero if there is no point.
    pub(super) total: f32,
    pub(super) p: [f32; 3],
    pub(super) direction: [f32; 3],
    pub(super) medium: u32,
    pub(super) depth: u32,
    /// Derivative by the in-scattered radiance, over the point's weight.
    pub(super) d: Rgb<N>,
    /// Derivative by the transmitted radiance, which extinction at the point reduces, over the point's weight.
    pub(super) lost: Rgb<N>,
}

impl<N: Number> Reservoir<N> {
    #[inline]
    pub(super) fn empty() -> Self {
        Self {
            total: 0.0,
            p: [0.0; 3],
            direction: [0.0; 3],
            medium: NONE,
            depth: 0,
            d: Rgb::zero(),
            lost: Rgb::zero(),
        }
    }

    /// Whether it holds no point.
    #[inline(always)]
    pub(super) fn is_empty(&self) -> bool {
        self.total <= 0.0
    }

    /// Offers a point of `path` with this weight. If it is accepted, `describe` gets a number uniform below the weight
    /// and returns the point, [`Self::d`] and [`Self::lost`].
    #[inline(always)]
    pub(super) fn offer(
        &mut self,
        path: &PathState<N>,
        weight: f32,
        draws: &mut Sampler,
        describe: impl FnOnce(f32) -> ([f32; 3], Rgb<N>, Rgb<N>),
    ) {
        // 1/weight overflows for subnormal weights.
        if weight.is_nan() || weight < f32::MIN_POSITIVE {
            return;
        }
        self.total += weight;
        let drawn = draws.draw() * self.total;
        if drawn < weight {
            let (p, d, lost) = describe(drawn);
            *self = Self {
                total: self.total,
                p,
                direction: path.direction,
                medium: path.medium,
                depth: path.depth,
                d,
                lost,
            };
        }
    }
}

impl<N: Number, F: Fields<N>, S: Sink<N>, I: Incident<N>> Walk<'_, N, F, S, I> {
    /// Differential ratio tracking of in-scattering: offers the tentative collisions along the whole segment.
    #[inline]
    pub(super) fn offer_tentative_collisions(&mut self, far: f32) {
        let (scene, fields, path) = (self.scene, self.fields, &self.path);
        let medium = &scene.media[path.medium as usize];
        if path.depth + 1 >= scene.settings.max_depth || !wants_extinction(scene, &self.adjoint.sink) {
            return;
        }
        let mut norm = path.norm(scene);
        if path.depth > 0 {
            if self.adjoint.extra.draw() >= VISITED_SHARE {
                return;
            }
            norm /= VISITED_SHARE;
        }
        let endless = is_unbounded(medium, far);
        let mut transmittance = Rgb::splat(N::lift(1.0));
        let Adjoint {
            d_radiance,
            extra,
            reservoir,
            ..
        } = &mut self.adjoint;
        let (origin, direction) = (path.origin, path.direction);
        tentative_collisions(scene, medium, origin, direction, far, extra, |p, mu, draws| {
            let sigma = extinction(scene, fields, medium, p);
            let share = 1.0 - free_flight_share(medium, &sigma.sampled);
            let d = path.alive(*d_radiance * path.beta * transmittance * (norm * share / mu));
            let mut weight = 0.0;
            for c in 0..3 {
                weight += d[c].value().abs() as f32;
            }
            transmittance *= sigma.integrand.map(|s| (N::lift(mu) - s) * N::lift(1.0 / mu));
            reservoir.offer(path, weight, draws, |_| (p, d * (1.0 / weight), Rgb::zero()));
            // A ray in a medium without end has no last tentative collision: stop when the transmittance is
            // negligible.
            !endless || (0..3).any(|c| sigma.sampled[c] > 0.0 && transmittance[c].value().abs() > NEGLIGIBLE)
        });
    }
}

/// Sends the derivative by the extinction at the reservoir's point; `radiance` is the in-scattered radiance there.
#[inline]
pub(super) fn send_reservoir<N: Number, F: Fields<N>, S: Sink<N>>(
    scene: &SceneView,
    fields: &F,
    reservoir: &Reservoir<N>,
    radiance: Rgb<N>,
    sink: &mut S,
) {
    let &Reservoir { total, p, d, lost, .. } = reservoir;
    if reservoir.is_empty() {
        return;
    }
    let medium = &scene.media[reservoir.medium as usize];
    let volume = &scene.volumes[medium.albedo as usize];
    let albedo = Rgb(volume_eval(
        volume,
        fields.integrand(volume.slot),
        &volume_stencil(volume, p),
    ));
    let at = volume_stencil(&scene.volumes[medium.sigma_t as usize], p);
    send_extinction(scene, medium, &at, d * albedo * radiance - lost, total, sink);
}

/// Prefetches what [`send_reservoir`] will look up, and announces to the sink what it will send.
#[inline]
pub(super) fn expect_reservoir<N: Number, F: Fields<N>, S: Sink<N>>(
    scene: &SceneView,
    fields: &F,
    reservoir: &Reservoir<N>,
    sink: &S,
) {
    let medium = &scene.media[reservoir.medium as usize];
    let [sigma_t, albedo] = [medium.sigma_t, medium.albedo].each(|volume| &scene.volumes[volume as usize]);
    let at = volume_stencil(sigma_t, reservoir.p);
    sink.expect(sigma_t, &at);
    if medium.has(medium_flag::ALIGNED) {
        prefetch(fields.integrand(albedo.slot), &at, albedo.size[3]);
    }
}
