//! The derivatives that an adjoint walk sends: for each factor of the throughput, the radiance still to come over the
//! factor.

use super::path_state::{PathState, vanishes};
use super::replay_cache::ReplayCache;
use super::reservoir::Reservoir;
use super::tracking::{Extinction, Flight, Flown};
use crate::resident::layout::{LightRecord, MediumRecord, gradient};
use crate::transport::lookup::grid::Stencil;
use crate::transport::lookup::volume::volume_stencil;
use crate::transport::number::Number;
use crate::transport::number::rgb::Rgb;
use crate::transport::rays::sampler::{Sampler, along};
use crate::transport::scene::light::light_adjoint;
use crate::transport::scene::records::{Fields, SceneView, Sink};
use crate::transport::scene::shape::SurfacePoint;

/// The state of an adjoint beside that of the path. `I` says how the radiance still to come is known.
#[derive(Debug)]
pub struct Adjoint<'s, N, S, I> {
    /// Derivative of the loss by the path's radiance.
    pub d_radiance: Rgb<N>,
    pub sink: S,
    /// Random numbers for draws that only the adjoint makes.
    pub extra: Sampler,
    pub(super) reservoir: Reservoir<N>,
    /// Flights and shadow rays of the first walk.
    pub(super) cache: Option<&'s mut ReplayCache<N>>,
    pub(super) incident: I,
}

impl<'s, N: Number, S: Sink<N>, I> Adjoint<'s, N, S, I> {
    /// For walks that send derivatives to `sink`; `extra` is the stream of the adjoint's own draws.
    #[inline]
    pub(super) fn new(
        d_radiance: Rgb<N>,
        sink: S,
        extra: Sampler,
        cache: Option<&'s mut ReplayCache<N>>,
        incident: I,
    ) -> Self {
        Self {
            d_radiance,
            sink,
            extra,
            reservoir: Reservoir::empty(),
            cache,
            incident,
        }
    }

    /// [`send_extinction`] to the adjoint's sink.
    #[inline(always)]
    pub(super) fn send_extinction(
        &mut self,
        scene: &SceneView,
        medium: &MediumRecord,
        at: &Stencil,
        d: Rgb<N>,
        weight: f32,
    ) {
        send_extinction(scene, medium, at, d, weight, &mut self.sink);
    }

    /// Sends the derivatives of a flight by the extinction, or offers them to the reservoir.
    #[inline]
    pub(super) fn send_flight(
        &mut self,
        scene: &SceneView,
        path: &PathState<N>,
        medium: &MediumRecord,
        flown: &Flown<N>,
    ) {
        let Some([start, end]) = flown.part.filter(|_| wants_extinction(scene, &self.sink)) else {
            return;
        };
        match scene.settings.gradient {
            gradient::PAIRED => return self.offer_segment(scene, path, start, end),
            gradient::DRT => {
                // d/d sigma of the flight's transmittance: minus its length times the radiance still to come.
                let d = path.alive(self.d_radiance * path.gathered.radiance);
                let origin = along(path.origin, path.direction, start);
                self.send_transmittance(scene, medium, origin, path.direction, end - start, d);
            }
            _ => {}
        }
        if let Flight::Collided { sigma, .. } = &flown.flight {
            self.send_collision(scene, path, medium, sigma, sigma.sampled[path.hero as usize]);
        }
    }

    /// Offers a uniform point of a part of a flight, on which the path state is constant, to the reservoir. Extinction
    /// at that point absorbs the radiance still to come and adds in-scattered radiance.
    #[inline]
    pub(super) fn offer_segment(&mut self, scene: &SceneView, path: &PathState<N>, start: f32, end: f32) {
        let length = end - start;
        if !length.is_finite() || !wants_extinction(scene, &self.sink) {
            return;
        }
        let norm = N::lift(path.norm(scene));
        let d = path.alive((self.d_radiance * path.beta).map(|x| x * norm));
        let lost = path.alive(self.d_radiance * path.gathered.radiance);
        let mut weight = 0.0;
        for c in 0..3 {
            weight += d[c].value().abs() as f32 * length;
        }
        let Self { reservoir, extra, .. } = self;
        reservoir.offer(path, weight, extra, |below| {
            // A draw below the weight is uniform there, so it is reused to place the point.
            let p = along(path.origin, path.direction, start + length * (below / weight));
            let scale = length / weight;
            (p, d * scale, lost * scale)
        });
    }

    /// Sends the derivative of a real collision by the extinction there, with the collision's pdf detached. `hero` is
    /// the extinction of the channel that decided.
    #[inline]
    fn send_collision(
        &mut self,
        scene: &SceneView,
        path: &PathState<N>,
        medium: &MediumRecord,
        sigma: &Extinction<N>,
        hero: f32,
    ) {
        let share = match scene.settings.gradient {
            gradient::DRT => free_flight_share(medium, &sigma.sampled),
            _ => 1.0,
        };
        let scale = 1.0 / hero;
        let mut logarithmic = Rgb::zero();
        for c in 0..3 {
            logarithmic[c] = if vanishes(sigma.integrand[c] * N::lift(scale)) {
                path.gathered.radiance_but_zero[c] * N::lift(scale)
            } else {
                path.gathered.radiance[c] * sigma.integrand[c].recip()
            };
        }
        let d = path.alive(self.d_radiance * logarithmic);
        self.send_extinction(scene, medium, &sigma.at, d, share);
    }

    /// Differential ratio tracking of a segment's transmittance: sends -`length` · `d` to the extinction at a uniform
    /// point of the segment, a one-sample estimate of the derivative.
    #[inline]
    pub(super) fn send_transmittance(
        &mut self,
        scene: &SceneView,
        medium: &MediumRecord,
        origin: [f32; 3],
        direction: [f32; 3],
        length: f32,
        d: Rgb<N>,
    ) {
        // The transmittance of an unbounded medium is zero, and so is its derivative.
        if !length.is_finite() || !wants_extinction(scene, &self.sink) {
            return;
        }
        let p = along(origin, direction, length * self.extra.draw());
        let volume = &scene.volumes[medium.sigma_t as usize];
        self.send_extinction(scene, medium, &volume_stencil(volume, p), d, -length);
    }

    /// The derivative by a factor that is about to be multiplied: the radiance still to come over the factor. For a
    /// factor of zero it is `radiance_but_zero`, the radiance with that factor left out.
    #[inline]
    pub(super) fn by_factor(&self, path: &PathState<N>, factor: Rgb<N>) -> Rgb<N> {
        let mut d = Rgb::zero();
        for c in 0..3 {
            d[c] = if vanishes(factor[c]) {
                self.d_radiance[c] * path.gathered.radiance_but_zero[c]
            } else {
                self.d_radiance[c] * path.gathered.radiance[c] * factor[c].recip()
            };
        }
        path.alive(d)
    }

    /// Sends the derivative by a light's value at `point`; its contribution was throughput · `factor` · value.
    #[inline]
    pub(super) fn send_light<F: Fields<N>>(
        &mut self,
        scene: &SceneView,
        fields: &F,
        path: &PathState<N>,
        light: &LightRecord,
        point: &SurfacePoint,
        factor: Rgb<N>,
    ) {
        let d = path.alive(self.d_radiance * path.beta * factor);
        light_adjoint(scene, fields, light, point, d, &mut self.sink);
    }
}

/// Whether derivatives by the extinction of any medium are needed. The answer is one for all media: the derivatives by
/// in-scattering cost an extra path from one point, which is chosen among the points in all media.
#[inline(always)]
pub(super) fn wants_extinction<N: Number, S: Sink<N>>(scene: &SceneView, sink: &S) -> bool {
    let is_wanted = |medium: &MediumRecord| sink.wants(scene.volumes[medium.sigma_t as usize].slot);
    scene.media.iter().any(is_wanted)
}

/// Sends `weight` · `d`, a derivative by a medium's scaled extinction, to the unscaled values of its grid.
#[inline(always)]
pub(super) fn send_extinction<N: Number, S: Sink<N>>(
    scene: &SceneView,
    medium: &MediumRecord,
    at: &Stencil,
    d: Rgb<N>,
    weight: f32,
    sink: &mut S,
) {
    let volume = &scene.volumes[medium.sigma_t as usize];
    sink.volume(volume, at, (d * (weight * medium.scale)).0, 3);
}

/// The weight of free-flight sampling, against differential tracking, in the derivative by in-scattering.
#[inline]
pub(super) fn free_flight_share(medium: &MediumRecord, sigma: &[f32; 3]) -> f32 {
    let mean = (sigma[0] + sigma[1] + sigma[2]) * (1.0 / 3.0);
    let square = mean * mean;
    square / (square + medium.kappa * medium.kappa)
}
