//! Next-event estimation: shadow rays from a path's vertices to sampled lights, and the derivatives by the
//! transmittance on them.

use super::adjoint::Adjoint;
use super::radiative::Incident;
use super::tracking::{extinction, is_unbounded, ratio_track, tentative_collisions};
use super::volpath::Walk;
use crate::resident::layout::{LightRecord, MediumRecord, NONE, bsdf, gradient, light};
use crate::transport::lookup::background::background_eval;
use crate::transport::mode::{GATHER, REPLAY};
use crate::transport::number::Number;
use crate::transport::number::rgb::Rgb;
use crate::transport::rays::sampler::{Sampler, along, dot};
use crate::transport::scene::light::{Drawn, light_value};
use crate::transport::scene::majorant::clip;
use crate::transport::scene::records::{Fields, SceneView, Sink};
use crate::transport::scene::shape::{intersect, leave};

/// The part of a shadow ray that is tested for occluders: it stops short of the light, which must not occlude itself.
const SHADOW: f32 = 1.0 - 5e-4;

/// The power heuristic of multiple importance sampling.
#[inline]
pub(super) fn mis(a: f32, b: f32) -> f32 {
    let (a, b) = (a * a, b * b);
    if a + b > 0.0 { a / (a + b) } else { 0.0 }
}

impl<N: Number, F: Fields<N>, S: Sink<N>, I: Incident<N>> Walk<'_, N, F, S, I> {
    /// Adds the radiance of a sampled light that arrives at `p` and is scattered with `value`. `pdf` is the pdf of the
    /// same direction under phase function or BSDF sampling, for MIS. Returns the derivative by the logarithm of
    /// `value`.
    #[inline]
    pub(super) fn sample_light<const MODE: u8>(&mut self, p: [f32; 3], drawn: &Drawn, value: Rgb<N>, pdf: f32) -> N {
        let (scene, fields, start) = (self.scene, self.fields, self.sampler);
        let Some(transmittance) = self.cached_transmittance::<MODE>(p, drawn) else {
            return N::lift(0.0);
        };
        // Add the contribution, weighted by MIS.
        let record = &scene.lights[drawn.light as usize];
        let mut weight = drawn.weight * self.path.norm(scene);
        if drawn.pdf > 0.0 {
            weight *= mis(drawn.pdf, pdf);
        }
        let radiance = drawn_radiance(scene, fields, record, drawn);
        let factor = value * transmittance * weight;
        self.path.add::<MODE>(factor * radiance);
        if MODE != REPLAY {
            return N::lift(0.0);
        }
        // Send the derivatives by the light's radiance and by the transmittance.
        let d_radiance = self.path.alive(self.adjoint.d_radiance * self.path.beta * factor);
        let lit = d_radiance * radiance;
        if record.kind == light::ENVMAP {
            self.adjoint.sink.background(drawn.direction, d_radiance.0);
        } else {
            self.adjoint.sink.value(record.slot, d_radiance.0, 3);
        }
        let medium = self.path.medium;
        backpropagate_shadow_ray(scene, fields, medium, p, drawn, lit, start, &mut self.adjoint);
        lit.sum()
    }

    /// The transmittance of a shadow ray, from the replay cache if the first walk stored it.
    #[inline]
    fn cached_transmittance<const MODE: u8>(&mut self, p: [f32; 3], drawn: &Drawn) -> Option<Rgb<N>> {
        if MODE == REPLAY
            && let Some(cache) = &mut self.adjoint.cache
            && let Some(found) = cache.shadow_rays.recall_with(&mut self.sampler)
        {
            return found;
        }
        let found = shadow_transmittance(self.scene, self.fields, self.path.medium, p, drawn, &mut self.sampler);
        if MODE == GATHER
            && let Some(cache) = &mut self.adjoint.cache
        {
            cache.shadow_rays.store((found, self.sampler));
        }
        found
    }
}

/// The transmittance of a shadow ray by ratio tracking; None if it is occluded.
#[inline]
fn shadow_transmittance<N: Number, F: Fields<N>>(
    scene: &SceneView,
    fields: &F,
    medium: u32,
    p: [f32; 3],
    drawn: &Drawn,
    sampler: &mut Sampler,
) -> Option<Rgb<N>> {
    let mut transmittance = Rgb::splat(N::lift(1.0));
    let direction = drawn.direction;
    let open = shadow(scene, medium, p, drawn, |medium, origin, far| {
        transmittance = ratio_track(scene, fields, medium, origin, direction, far, sampler, transmittance);
    });
    open.then_some(transmittance)
}

/// The radiance or intensity of the light that was sampled.
#[inline]
fn drawn_radiance<N: Number, F: Fields<N>>(
    scene: &SceneView,
    fields: &F,
    record: &LightRecord,
    drawn: &Drawn,
) -> Rgb<N> {
    Rgb(if record.kind == light::ENVMAP {
        background_eval(scene.common, fields.integrand(scene.background), drawn.direction)
    } else {
        light_value(fields.integrand(record.slot))
    })
}

/// Follows a shadow ray and calls `pass(medium, origin, length)` for each part that lies in a medium. False if a
/// surface occludes it.
#[inline]
fn shadow(
    scene: &SceneView,
    medium: u32,
    p: [f32; 3],
    drawn: &Drawn,
    mut pass: impl FnMut(&MediumRecord, [f32; 3], f32),
) -> bool {
    let (mut medium, mut origin) = (medium, p);
    let (mut far, mut open) = (drawn.distance, drawn.distance * SHADOW);
    // Find the next surface; one with a BSDF occludes the light.
    loop {
        let hit = intersect(scene, origin, drawn.direction, open);
        let end = match &hit {
            Some(hit) => hit.t,
            None => far,
        };
        if let Some(hit) = &hit
            && scene.surfaces[hit.surface as usize].bsdf != bsdf::NULL
        {
            return false;
        }
        // Visit the medium before it.
        if medium != NONE {
            pass(&scene.media[medium as usize], origin, end);
        }
        let Some(hit) = hit else {
            return true;
        };
        // Pass through the boundary.
        let record = &scene.surfaces[hit.surface as usize];
        if record.interior != NONE || record.exterior != NONE {
            let against = dot(drawn.direction, hit.normal) < 0.0;
            medium = if against { record.interior } else { record.exterior };
        }
        origin = leave(&hit, drawn.direction);
        far -= hit.t;
        open -= hit.t;
    }
}

/// Sends the derivatives by the extinction along a shadow ray. `lit` is the derivative by the logarithm of the
/// transmittance, `sampler` the state with which the transmittance was tracked.
#[inline]
#[allow(clippy::too_many_arguments, reason = "they are what a shadow ray consists of")]
fn backpropagate_shadow_ray<N: Number, F: Fields<N>, S: Sink<N>, I>(
    scene: &SceneView,
    fields: &F,
    medium: u32,
    p: [f32; 3],
    drawn: &Drawn,
    lit: Rgb<N>,
    mut sampler: Sampler,
    adjoint: &mut Adjoint<'_, N, S, I>,
) {
    let differential = scene.settings.gradient != gradient::FREE_FLIGHT;
    shadow(scene, medium, p, drawn, |medium, origin, far| {
        if differential {
            if let Some((start, end)) = clip(medium, origin, drawn.direction, 0.0, far) {
                let origin = along(origin, drawn.direction, start);
                adjoint.send_transmittance(scene, medium, origin, drawn.direction, end - start, lit);
            }
            return;
        }
        if is_unbounded(medium, far) {
            return;
        }
        // Replay the null collisions: the derivative of ln(1 - sigma / mu) by sigma is -1 / (mu - sigma).
        let volume = &scene.volumes[medium.sigma_t as usize];
        tentative_collisions(scene, medium, origin, drawn.direction, far, &mut sampler, |p, mu, _| {
            let sigma = extinction(scene, fields, medium, p);
            let scale = N::lift(medium.scale);
            let logarithmic = sigma.integrand.map(|s| -((N::lift(mu) - s).recip()) * scale);
            adjoint.sink.volume(volume, &sigma.at, (lit * logarithmic).0, 3);
            true
        });
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resident::Resident;
    use std::path::Path;

    /// A shadow ray passes through media up to the light, not a little less, whatever boundaries lie on its way.
    #[test]
    fn shadow_rays_pass_through_media_up_to_the_light() {
        let text = r#"{
            "fog": {"type": "cube", "to_world": [{"scale": 10}], "bsdf": {"type": "null"}, "interior": {"type": "homogeneous"}},
            "ball": {"type": "sphere", "bsdf": {"type": "null"},
                "interior": {"type": "homogeneous"}, "exterior": {"type": "ref", "id": "fog.interior"}},
            "lamp": {"type": "point", "position": [0, 0, 3]}}"#;
        let scene = crate::scene::parse(text, Path::new("fog.json")).unwrap_or_else(|mistakes| panic!("{mistakes}"));
        let (resident, _) = Resident::new(&scene).expect("it is sound");
        let world = SceneView::new(&resident.scene, resident.transport.paths(), &[], &[]);
        for begin in [-4.0f32, -0.5, 2.0] {
            let drawn = Drawn {
                light: 0,
                direction: [0.0, 0.0, 1.0],
                distance: 3.0 - begin,
                weight: 1.0,
                pdf: 0.0,
            };
            let mut length = 0.0;
            let medium = u32::from((-1.0..1.0).contains(&begin));
            let open = shadow(&world, medium, [0.0, 0.0, begin], &drawn, |_, _, far| length += far);
            assert!(
                open && (length - drawn.distance).abs() < 1e-4,
                "{length} of {}",
                drawn.distance
            );
        }
    }
}
