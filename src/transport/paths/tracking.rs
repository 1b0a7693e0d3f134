//! Free flight through a medium by delta tracking against local majorants, and transmittance by ratio tracking
//! (Vicini2021, section 4.4; Novak2014).
//!
//! Where a medium's extinction has three channels, one of them (the hero) decides collisions, and the path is weighted
//! by the ratios of the other channels' pdfs to the hero's (one-sample multiple importance sampling, PBRT4 section
//! 14.2).

use super::radiative::Incident;
use super::volpath::Walk;
use crate::each::EachEntry;
use crate::resident::layout::{MediumRecord, NONE, gradient};
use crate::transport::lookup::grid::Stencil;
use crate::transport::lookup::volume::{volume_eval, volume_stencil};
use crate::transport::mode::{GATHER, REPLAY};
use crate::transport::number::Number;
use crate::transport::number::rgb::Rgb;
use crate::transport::rays::sampler::{Sampler, along, exponential};
use crate::transport::scene::majorant::Cells;
use crate::transport::scene::records::{Fields, SceneView, Sink};

/// Scaled extinction at a point.
#[derive(Debug, Clone, Copy)]
pub struct Extinction<N> {
    pub at: Stencil,
    pub integrand: Rgb<N>,
    /// On the sampling side: the values that decisions are made from.
    pub sampled: [f32; 3],
}

/// Looks up a medium's extinction.
#[inline]
pub fn extinction<N: Number, F: Fields<N>>(
    scene: &SceneView,
    fields: &F,
    medium: &MediumRecord,
    p: [f32; 3],
) -> Extinction<N> {
    let volume = &scene.volumes[medium.sigma_t as usize];
    let at = volume_stencil(volume, p);
    let integrand = Rgb(volume_eval(volume, fields.integrand(volume.slot), &at)) * medium.scale;
    let mut sampled = [0.0; 3];
    if F::TWO_SIDED {
        let other = volume_eval(volume, fields.sampling(volume.slot), &at);
        for c in 0..3 {
            sampled[c] = other[c] * medium.scale;
        }
    }
    if !F::TWO_SIDED {
        sampled = integrand.0.each(|s| s.value() as f32);
    }
    Extinction { at, integrand, sampled }
}

/// How a flight ended.
#[derive(Debug, Clone, Copy)]
pub enum Flight<N> {
    /// Left the medium or reached the end of the ray.
    Passed,
    /// A real collision.
    Collided { p: [f32; 3], sigma: Extinction<N> },
}

/// The result of free-flight sampling.
#[derive(Debug, Clone, Copy)]
pub struct Flown<N> {
    /// The medium's index.
    pub medium: u32,
    pub flight: Flight<N>,
    /// Distances between which no derivatives were sent yet; None if the ray misses the medium.
    pub part: Option<[f32; 2]>,
}

impl<N: Number, F: Fields<N>, S: Sink<N>, I: Incident<N>> Walk<'_, N, F, S, I> {
    /// Samples a free flight from the path's origin up to `far`, or takes it from the replay cache.
    #[inline]
    pub(super) fn fly<const MODE: u8>(&mut self, far: f32) -> Flight<N> {
        let medium = &self.scene.media[self.path.medium as usize];
        let kept = match &mut self.adjoint.cache {
            Some(cache) if MODE == REPLAY && is_kept::<N, F>(self.scene, medium) => {
                cache.flights.recall_with(&mut self.sampler)
            }
            _ => None,
        };
        let flown = match kept {
            Some(flown) => flown,
            None => self.track::<MODE>(medium, far),
        };
        self.land::<MODE>(medium, &flown)
    }

    /// Handles the end of a flight: stores it for the replay, sends its derivatives, and multiplies the throughput.
    #[inline]
    pub(super) fn land<const MODE: u8>(&mut self, medium: &MediumRecord, flown: &Flown<N>) -> Flight<N> {
        let scene = self.scene;
        if MODE == GATHER
            && let Some(cache) = &mut self.adjoint.cache
            && is_kept::<N, F>(scene, medium)
        {
            cache.flights.store((*flown, self.sampler));
        }
        if MODE == REPLAY {
            self.adjoint.send_flight(scene, &self.path, medium, flown);
        }
        if let Flight::Collided { sigma, .. } = &flown.flight {
            let hero = sigma.sampled[self.path.hero as usize];
            self.path.multiply_real::<F>(scene, sigma, hero);
        }
        flown.flight
    }

    /// Delta tracking from the path's origin until a real collision or `far`.
    #[inline]
    fn track<const MODE: u8>(&mut self, medium: &MediumRecord, far: f32) -> Flown<N> {
        let number = self.path.medium;
        let passed = |part| Flown {
            medium: number,
            flight: Flight::Passed,
            part,
        };
        let (scene, fields) = (self.scene, self.fields);
        let (origin, direction) = (self.path.origin, self.path.direction);
        let Some(mut cells) = Cells::new(medium, origin, direction, 0.0, far) else {
            return passed(None);
        };
        let start = cells.t;
        // Start of the part of the flight that was not offered to the reservoir yet.
        let mut piece = start;
        let splits = MODE == REPLAY && scene.settings.gradient == gradient::PAIRED && alters(scene, medium);
        let mut rest = exponential(self.sampler.draw());
        loop {
            let mu = scene.majorants[cells.index as usize];
            let exit = cells.exit();
            let mut t = cells.t;
            loop {
                let next = t + rest / mu;
                if next.is_nan() || next >= exit {
                    // Rounding could make the rest negative, and a cell with majorant zero would turn that into a
                    // distance of minus infinity.
                    rest = (rest - mu * (exit - t)).max(0.0);
                    break;
                }
                t = next;
                let p = along(origin, direction, t);
                let sigma = extinction(scene, fields, medium, p);
                if splits {
                    self.adjoint.offer_segment(scene, &self.path, piece, t);
                    piece = t;
                }
                if medium.emission != NONE {
                    self.emit::<MODE>(medium, [start, t], &sigma, mu);
                }
                // Decide with the hero channel whether the collision is real.
                let hero = sigma.sampled[self.path.hero as usize];
                if self.sampler.draw() * mu < hero {
                    return Flown {
                        medium: number,
                        flight: Flight::Collided { p, sigma },
                        part: Some([piece, t]),
                    };
                }
                // Handle the null collision.
                if MODE == REPLAY && scene.settings.gradient == gradient::FREE_FLIGHT {
                    self.send_null_collision(medium, &sigma, mu);
                }
                self.path.multiply_null::<F>(scene, &sigma, hero, mu);
                // The hero channel sees no extinction, so in a medium without end the path would never end; end it
                // when the other channels are negligible.
                if hero == 0.0 && cells.end == f32::INFINITY && self.path.fades(&sigma) {
                    return passed(None);
                }
                rest = exponential(self.sampler.draw());
            }
            if !cells.advance() {
                return passed(Some([piece, cells.end]));
            }
        }
    }

    /// Sends the derivative of a null collision's weight 1 - sigma / mu.
    #[inline]
    fn send_null_collision(&mut self, medium: &MediumRecord, sigma: &Extinction<N>, mu: f32) {
        let kept = sigma.integrand.map(|s| (N::lift(mu) - s).recip());
        let d = self
            .path
            .alive(self.adjoint.d_radiance * self.path.gathered.radiance * kept);
        self.adjoint.send_extinction(self.scene, medium, &sigma.at, d, -1.0);
    }

    /// Adds the radiance emitted at a tentative collision: absorption coefficient · emission / majorant (Vicini2021,
    /// equation 17). `part` holds the distances at which the flight entered the medium and of the collision.
    #[inline]
    fn emit<const MODE: u8>(&mut self, medium: &MediumRecord, part: [f32; 2], sigma: &Extinction<N>, mu: f32) {
        let (scene, fields, path) = (self.scene, self.fields, &mut self.path);
        let p = along(path.origin, path.direction, part[1]);
        // Look up albedo and emission.
        let albedo_volume = &scene.volumes[medium.albedo as usize];
        let albedo_at = volume_stencil(albedo_volume, p);
        let albedo = Rgb(volume_eval(
            albedo_volume,
            fields.integrand(albedo_volume.slot),
            &albedo_at,
        ));
        let emission_volume = &scene.volumes[medium.emission as usize];
        let emission_at = volume_stencil(emission_volume, p);
        let emission = Rgb(volume_eval(
            emission_volume,
            fields.integrand(emission_volume.slot),
            &emission_at,
        ));
        // Add the emitted radiance.
        let weight = N::lift(path.norm(scene) / mu);
        let absorbed = Rgb::splat(N::lift(1.0)) - albedo;
        let radiance = (sigma.integrand * absorbed * emission).map(|x| x * weight);
        path.add::<MODE>(radiance);
        if MODE != REPLAY {
            return;
        }
        // Send the derivatives by extinction, albedo and emission.
        let adjoint = &mut self.adjoint;
        let d = path.alive((adjoint.d_radiance * path.beta).map(|x| x * weight));
        let d_path = path.alive(adjoint.d_radiance * path.beta * radiance);
        adjoint.send_extinction(scene, medium, &sigma.at, d * absorbed * emission, 1.0);
        let d_albedo = -(d * sigma.integrand * emission);
        adjoint.sink.volume(albedo_volume, &albedo_at, d_albedo.0, 3);
        let d_emission = d * sigma.integrand * absorbed;
        adjoint.sink.volume(emission_volume, &emission_at, d_emission.0, 3);
        // The emitted radiance was attenuated along the flight.
        if scene.settings.gradient == gradient::DRT {
            let origin = along(path.origin, path.direction, part[0]);
            adjoint.send_transmittance(scene, medium, origin, path.direction, part[1] - part[0], d_path);
        }
    }
}

/// Whether a replay may take flights over from the first walk. Tracking that changes the path or sends derivatives at
/// tentative collisions must be repeated.
#[inline(always)]
fn is_kept<N: Number, F: Fields<N>>(scene: &SceneView, medium: &MediumRecord) -> bool {
    !F::TWO_SIDED && !alters(scene, medium) && scene.settings.gradient != gradient::FREE_FLIGHT
}

/// Whether tentative collisions in the medium change the path's throughput or radiance.
#[inline(always)]
pub(super) fn alters(scene: &SceneView, medium: &MediumRecord) -> bool {
    scene.settings.spectral == 1 || medium.emission != NONE
}

/// Ratio tracking: multiplies `transmittance` by that of the part of a shadow ray inside one medium.
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
    mut transmittance: Rgb<N>,
) -> Rgb<N> {
    if is_unbounded(medium, far) {
        let sigma = extinction(scene, fields, medium, origin);
        return transmittance * Rgb::lift(sigma.sampled.each(|s| if s > 0.0 { 0.0 } else { 1.0 }));
    }
    tentative_collisions(scene, medium, origin, direction, far, sampler, |p, mu, _| {
        let sigma = extinction(scene, fields, medium, p);
        transmittance *= sigma.integrand.map(|s| (N::lift(mu) - s) * N::lift(1.0 / mu));
        true
    });
    transmittance
}

/// Whether a ray continues to infinity in a medium without end; such a medium is homogeneous.
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
