//! The derivatives that an adjoint walk sends: by the factors of a path's throughput, from the radiance still to come.

use super::path_state::PathState;
use super::replay_cache::ReplayCache;
use super::tracking::{Extinction, Flight, Flown};
use crate::resident::layout::{MediumRecord, NONE, gradient};
use crate::transport::lookup::volume::volume_stencil;
use crate::transport::number::Number;
use crate::transport::rays::sampler::{Sampler, along};
use crate::transport::scene::records::{SceneView, Sink};

/// How an adjoint knows the radiance that is still to come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Incident {
    /// A first walk gathered it, and the replay has subtracted what has come since: path replay.
    Replayed,
    /// By a path of its own wherever it is needed: radiative backpropagation.
    Estimated,
    /// It is taken for one wherever light is scattered: radiative backpropagation with a bias.
    One,
}

/// What an adjoint carries beside the path.
#[derive(Debug)]
pub struct Adjoint<'s, N, S> {
    pub incident: Incident,
    /// Derivative of the loss by the path's radiance.
    pub d_radiance: [N; 3],
    pub sink: &'s mut S,
    /// Draws that only the adjoint makes.
    pub extra: Sampler,
    pub candidate: Candidate<N>,
    /// What a first walk notes for a replay.
    pub cache: Option<&'s mut ReplayCache<N>>,
    /// Under radiative backpropagation: what the path itself has added so far, and the radiance that it was last told
    /// to expect.
    added: [N; 3],
    expected: [N; 3],
}

/// A point drawn, among all that a path could have scattered at, for a derivative by in-scattering.
#[derive(Debug, Clone, Copy)]
pub struct Candidate<N> {
    /// Sum of all weights so far; the candidate's own is a part of it.
    pub(super) total: f32,
    pub(super) p: [f32; 3],
    pub(super) direction: [f32; 3],
    pub(super) medium: u32,
    pub(super) depth: u32,
    /// Derivative by the light scattered there, over the candidate's weight.
    pub(super) d: [N; 3],
    /// What the light that comes through the point takes away, over the candidate's weight.
    pub(super) lost: [N; 3],
}

impl<N: Number> Candidate<N> {
    fn none() -> Self {
        Self {
            total: 0.0,
            p: [0.0; 3],
            direction: [0.0; 3],
            medium: NONE,
            depth: 0,
            d: [N::lift(0.0); 3],
            lost: [N::lift(0.0); 3],
        }
    }
}

impl<'s, N: Number, S: Sink<N>> Adjoint<'s, N, S> {
    /// For walks that send derivatives to `sink`, with the stream of the draws that only they make.
    pub fn new(d_radiance: [N; 3], sink: &'s mut S, extra: Sampler) -> Self {
        Self {
            incident: Incident::Replayed,
            d_radiance,
            sink,
            extra,
            candidate: Candidate::none(),
            cache: None,
            added: [N::lift(0.0); 3],
            expected: [N::lift(0.0); 3],
        }
    }

    /// Tells the path what is still to come: what `ahead` found.
    #[inline]
    pub(super) fn expect(&mut self, path: &mut PathState<N>, ahead: &PathState<N>) {
        self.added = self.added(path);
        (path.radiance, path.radiance_but_zero) = (ahead.radiance, ahead.radiance_but_zero);
        self.expected = path.radiance;
    }

    /// What a path that is told what to expect has added by itself.
    #[inline]
    pub(super) fn added(&self, path: &PathState<N>) -> [N; 3] {
        [0, 1, 2].map(|c| self.added[c] + (self.expected[c] - path.radiance[c]))
    }

    /// Sends, or offers as a candidate, the derivatives of a flight by the extinction.
    #[inline]
    pub(super) fn send_flight(
        &mut self,
        scene: &SceneView,
        path: &PathState<N>,
        medium: &MediumRecord,
        flown: &Flown<N>,
    ) {
        let Some([start, end]) = flown.part else {
            return;
        };
        match scene.settings.gradient {
            gradient::PAIRED => return self.offer_segment(scene, path, start, end),
            gradient::DRT => self.attenuate(scene, path, medium, start, end),
            _ => {}
        }
        if let Flight::Collided { sigma, .. } = &flown.flight {
            self.send_collision(scene, path, medium, sigma, sigma.sampled[path.hero as usize]);
        }
    }

    /// Differential ratio tracking of the transmittance of a flight from `start` to `end`: minus its length times the
    /// radiance still to come, at a uniform place on it.
    #[inline]
    fn attenuate(&mut self, scene: &SceneView, path: &PathState<N>, medium: &MediumRecord, start: f32, end: f32) {
        let mut d = [N::lift(0.0); 3];
        for c in 0..3 {
            if path.zeros[c] == 0 {
                d[c] = self.d_radiance[c] * path.radiance[c];
            }
        }
        let origin = along(path.origin, path.direction, start);
        self.send_transmittance(scene, medium, origin, path.direction, end - start, d);
    }

    /// Offers a uniform point of a piece of a flight, on which the path stays as it is, as a candidate: more extinction
    /// there takes away the radiance that is still to come and adds what is scattered.
    #[inline]
    pub(super) fn offer_segment(&mut self, scene: &SceneView, path: &PathState<N>, start: f32, end: f32) {
        let length = end - start;
        if !length.is_finite() {
            return;
        }
        let norm = N::lift(path.norm(scene));
        let (mut d, mut lost) = ([N::lift(0.0); 3], [N::lift(0.0); 3]);
        let mut weight = 0.0;
        for c in 0..3 {
            if path.zeros[c] == 0 {
                d[c] = self.d_radiance[c] * path.beta[c] * norm;
                lost[c] = self.d_radiance[c] * path.radiance[c];
                weight += d[c].value().abs() as f32 * length;
            }
        }
        // Of less there is no inverse.
        if weight >= f32::MIN_POSITIVE {
            let total = self.candidate.total + weight;
            self.candidate.total = total;
            // Given that it is less than the weight, the draw is uniform below it.
            let drawn = self.extra.draw() * total;
            if drawn < weight {
                let scale = N::lift(length / weight);
                self.candidate = Candidate {
                    total,
                    p: along(path.origin, path.direction, start + length * (drawn / weight)),
                    direction: path.direction,
                    medium: path.medium,
                    depth: path.depth,
                    d: d.map(|d| d * scale),
                    lost: lost.map(|d| d * scale),
                };
            }
        }
    }

    /// The derivatives of a real collision, which `hero` sampled_beta, by the extinction there, the density of the collision
    /// detached.
    #[inline]
    fn send_collision(
        &mut self,
        scene: &SceneView,
        path: &PathState<N>,
        medium: &MediumRecord,
        sigma: &Extinction<N>,
        hero: f32,
    ) {
        let mut weight = medium.scale;
        if scene.settings.gradient == gradient::DRT {
            weight *= free_flight_share(medium, &sigma.sampled);
        }
        let mut d = [N::lift(0.0); 3];
        for c in 0..3 {
            if path.zeros[c] == 0 {
                let logarithmic = if sigma.integrand[c].value() == 0.0 {
                    path.radiance_but_zero[c] * N::lift(1.0 / hero)
                } else {
                    path.radiance[c] * sigma.integrand[c].recip()
                };
                d[c] = self.d_radiance[c] * logarithmic * N::lift(weight);
            }
        }
        let volume = &scene.volumes[medium.sigma_t as usize];
        self.sink.volume(volume, &sigma.at, d, 3);
    }

    /// Sends -`length` · `d` to the extinction at a uniform place of the segment.
    #[inline]
    pub(super) fn send_transmittance(
        &mut self,
        scene: &SceneView,
        medium: &MediumRecord,
        origin: [f32; 3],
        direction: [f32; 3],
        length: f32,
        d: [N; 3],
    ) {
        // Nothing comes through an unbounded medium, so that there is no derivative either.
        if !length.is_finite() {
            return;
        }
        let p = along(origin, direction, length * self.extra.draw());
        let volume = &scene.volumes[medium.sigma_t as usize];
        let weight = N::lift(-length * medium.scale);
        self.sink
            .volume(volume, &volume_stencil(volume, p), d.map(|d| d * weight), 3);
    }
}

/// The derivatives by a factor that is about to be multiplied: the radiance still to come over the factor; where the
/// factor is zero, what would come without it.
#[inline]
pub(super) fn derivatives_of_factor<N: Number>(path: &PathState<N>, d_radiance: &[N; 3], factor: [N; 3]) -> [N; 3] {
    let mut d = [N::lift(0.0); 3];
    for c in 0..3 {
        if path.zeros[c] == 0 {
            d[c] = if factor[c].value() == 0.0 {
                d_radiance[c] * path.radiance_but_zero[c]
            } else {
                d_radiance[c] * path.radiance[c] * factor[c].recip()
            };
        }
    }
    d
}

/// The share of free-flight sampling in the derivative by in-scattering.
#[inline]
pub(super) fn free_flight_share(medium: &MediumRecord, sigma: &[f32; 3]) -> f32 {
    let mean = (sigma[0] + sigma[1] + sigma[2]) * (1.0 / 3.0);
    let square = mean * mean;
    square / (square + medium.kappa * medium.kappa)
}

/// Sends the derivative by a light's value, of which `factor` times the throughput reaches the path.
#[inline]
pub(super) fn send_light<N: Number, S: Sink<N>>(
    path: &PathState<N>,
    slot: u32,
    factor: [N; 3],
    adjoint: &mut Adjoint<'_, N, S>,
) {
    let mut d = [N::lift(0.0); 3];
    for c in 0..3 {
        if path.zeros[c] == 0 {
            d[c] = adjoint.d_radiance[c] * path.beta[c] * factor[c];
        }
    }
    adjoint.sink.value(slot, d, 3);
}
