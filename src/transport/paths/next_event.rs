//! Next-event estimation: shadow rays from a path's vertices to sampled lights, and the derivatives by the
//! transmittance on them.

use super::adjoint::{Adjoint, wants_extinction};
use super::path_state::vanishes;
use super::radiative::Incident;
use super::tracking::{extinction, is_unbounded, ratio_track, tentative_collisions};
use super::volpath::Walk;
use crate::each::EachEntry;
use crate::resident::layout::{LightRecord, MediumRecord, NONE, bsdf, gradient, light, surfaces_only};
use crate::transport::mode::{GATHER, REPLAY};
use crate::transport::number::Number;
use crate::transport::number::rgb::Rgb;
use crate::transport::rays::sampler::{Sampler, along};
use crate::transport::scene::bsdf::Bsdf;
use crate::transport::scene::interaction::{Interaction, medium_beyond};
use crate::transport::scene::light::{Drawn, light_adjoint, light_value};
use crate::transport::scene::majorant::clip;
use crate::transport::scene::records::{Fields, SceneView, Sink};
use crate::transport::scene::shape::{Hit, intersect, is_blocked, leave};
use crate::transport::scene::sky::{sky_adjoint, sky_value};

/// The part of a shadow ray that is tested for occluders: it stops short of the light, which must not occlude itself.
pub(super) const SHADOW: f32 = 1.0 - 5e-4;

/// The power heuristic of multiple importance sampling.
#[inline(always)]
pub(super) fn mis(a: f32, b: f32) -> f32 {
    let (a, b) = (a * a, b * b);
    if a + b > 0.0 { a / (a + b) } else { 0.0 }
}

/// What a replay sends to a phase function or a BSDF after next-event estimation.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lit<N> {
    /// The derivative by the logarithm of its value, alike in all channels.
    pub by_logarithm: N,
    /// The derivatives by its value.
    pub by_value: Rgb<N>,
}

impl<N: Number> Lit<N> {
    #[inline]
    fn nothing() -> Self {
        Self {
            by_logarithm: N::lift(0.0),
            by_value: Rgb::zero(),
        }
    }
}

impl<N: Number, F: Fields<N>, S: Sink<N>, I: Incident<N>> Walk<'_, N, F, S, I> {
    /// Adds the radiance of a sampled light that arrives at `p`, through `medium` there, and is scattered with `value`.
    /// `pdf` is the pdf of the same direction under phase function or BSDF sampling, for MIS.
    #[inline]
    pub(super) fn sample_light<const MODE: u8>(
        &mut self,
        p: [f32; 3],
        medium: u32,
        drawn: &Drawn,
        value: Rgb<N>,
        pdf: f32,
    ) -> Lit<N> {
        let (scene, fields, start) = (self.scene, self.fields, self.sampler);
        let Some(Arrived { through, radiance }) = self.look_at_light::<MODE>(p, medium, drawn) else {
            return Lit::nothing();
        };
        // Add the contribution, weighted by MIS.
        let record = &scene.lights[drawn.light as usize];
        let mut weight = drawn.weight * self.path.norm(scene);
        if drawn.pdf > 0.0 {
            weight *= mis(drawn.pdf, pdf);
        }
        let factor = value * through.transmittance * weight;
        let open = through.open(factor);
        let is_dark = through.zeros.iter().all(|zeros| *zeros > 0);
        if !is_dark {
            self.path.add::<MODE>(open * radiance);
        }
        let arrived = |through: &Through<N>| through.open(through.transmittance) * weight * radiance;
        if MODE == GATHER && scene.inverted.is_some() && !is_dark {
            let d_beta = self.adjoint.d_radiance * self.path.beta;
            return Lit {
                by_value: self.path.alive(d_beta * arrived(&through)),
                ..Lit::nothing()
            };
        }
        if MODE != REPLAY {
            return Lit::nothing();
        }
        // Send the derivatives by the light's radiance, by the transmittance and by masks.
        let d_beta = self.adjoint.d_radiance * self.path.beta;
        if through.masked {
            let lit = self.path.alive(d_beta * factor * radiance);
            self.backpropagate_masks(p, drawn, through.zeros, lit);
        }
        if is_dark {
            return Lit::nothing();
        }
        let d_radiance = self.path.alive(d_beta * open);
        let lit = d_radiance * radiance;
        if record.kind == light::ENVMAP {
            sky_adjoint(scene, fields, drawn.direction, d_radiance, &mut self.adjoint.sink);
        } else {
            light_adjoint(scene, fields, record, &drawn.point, d_radiance, &mut self.adjoint.sink);
        }
        backpropagate_shadow_ray(scene, fields, medium, p, drawn, lit, start, &mut self.adjoint);
        Lit {
            by_logarithm: lit.sum(),
            by_value: self.path.alive(d_beta * arrived(&through)),
        }
    }

    /// What arrives along a shadow ray, from the replay cache if the first walk stored it; None if it is occluded.
    #[inline]
    fn look_at_light<const MODE: u8>(&mut self, p: [f32; 3], medium: u32, drawn: &Drawn) -> Option<Arrived<N>> {
        let (scene, fields) = (self.scene, self.fields);
        let look = |sampler: &mut Sampler| {
            let through = shadow_transmittance(scene, fields, medium, p, drawn, sampler)?;
            let radiance = drawn_radiance(scene, fields, &scene.lights[drawn.light as usize], drawn);
            Some(Arrived { through, radiance })
        };
        match &mut self.adjoint.cache {
            Some(cache) => cache.shadow_rays.redraw_or::<MODE>(&mut self.sampler, look),
            None => look(&mut self.sampler),
        }
    }

    /// Sends the derivatives by the masks on a shadow ray; `zeros` is how many of them transmit nothing, for each channel.
    /// `lit` is the derivative by the logarithm of the transmittance, in which factors of zero are left out.
    #[inline(never)]
    fn backpropagate_masks(&mut self, p: [f32; 3], drawn: &Drawn, zeros: [u32; 3], lit: Rgb<N>) {
        let (scene, fields) = (self.scene, self.fields);
        let sink = &mut self.adjoint.sink;
        let (mut origin, mut open) = (p, drawn.distance * SHADOW);
        while let Some(hit) = intersect(scene, origin, drawn.direction, open) {
            if scene.surfaces[hit.surface as usize].bsdf != NONE {
                let at = Interaction::new(scene, &hit, drawn.direction);
                let bsdf = Bsdf::new(scene, fields, &at);
                let share = bsdf.null_transmission();
                let mut d = Rgb::zero();
                for c in 0..3 {
                    match (vanishes(share[c]), zeros[c]) {
                        (true, 1) => d[c] = lit[c],
                        (false, 0) => d[c] = lit[c] * share[c].recip(),
                        _ => {}
                    }
                }
                bsdf.null_adjoint(d, sink);
            }
            origin = leave(&hit, drawn.direction);
            open -= hit.t;
        }
    }
}

/// What arrives along a shadow ray: the share that gets through, and the light's radiance or intensity.
#[derive(Debug, Clone, Copy)]
pub(super) struct Arrived<N> {
    through: Through<N>,
    radiance: Rgb<N>,
}

/// The transmittance of a shadow ray that no surface occludes.
#[derive(Debug, Clone, Copy)]
struct Through<N> {
    /// The product of the factors that are not zero.
    transmittance: Rgb<N>,
    /// For each channel, how many masks on the way transmit nothing.
    zeros: [u32; 3],
    /// Whether there are masks on the way.
    masked: bool,
}

impl<N: Number> Through<N> {
    /// `x` in the channels that get through.
    #[inline(always)]
    fn open(&self, x: Rgb<N>) -> Rgb<N> {
        let channel = |c: usize| if self.zeros[c] == 0 { x[c] } else { N::lift(0.0) };
        Rgb([0, 1, 2].each(channel))
    }
}

/// The transmittance of a shadow ray, by ratio tracking in media; None if it is occluded.
#[inline]
fn shadow_transmittance<N: Number, F: Fields<N>>(
    scene: &SceneView,
    fields: &F,
    medium: u32,
    p: [f32; 3],
    drawn: &Drawn,
    sampler: &mut Sampler,
) -> Option<Through<N>> {
    let mut through = Through {
        transmittance: Rgb::splat(N::lift(1.0)),
        zeros: [0; 3],
        masked: false,
    };
    let mut transmittance = through.transmittance;
    let direction = drawn.direction;
    let open = shadow(
        scene,
        medium,
        p,
        drawn,
        |part| {
            if let Some(medium) = part.medium {
                let Part { origin, far, .. } = part;
                transmittance = ratio_track(scene, fields, medium, origin, direction, far, sampler, transmittance);
            }
        },
        |hit| pass_mask(scene, fields, hit, direction, &mut through),
    );
    through.transmittance *= transmittance;
    open.then_some(through)
}

/// Lets a shadow ray through a surface with a BSDF; false if none of it gets through.
#[inline(never)]
fn pass_mask<N: Number, F: Fields<N>>(
    scene: &SceneView,
    fields: &F,
    hit: &Hit,
    direction: [f32; 3],
    through: &mut Through<N>,
) -> bool {
    let at = Interaction::new(scene, hit, direction);
    let flags = at.record(scene).flags;
    if flags & bsdf::NULL == 0 {
        return false;
    }
    let share: Rgb<N> = Bsdf::new(scene, fields, &at).null_transmission();
    through.masked = true;
    for c in 0..3 {
        if vanishes(share[c]) && !F::TRACKED {
            through.zeros[c] += 1;
        } else {
            through.transmittance[c] *= share[c];
        }
    }
    flags & bsdf::VARIES != 0 || through.zeros.contains(&0)
}

/// The radiance or intensity of the light that was sampled.
#[inline]
pub(super) fn drawn_radiance<N: Number, F: Fields<N>>(
    scene: &SceneView,
    fields: &F,
    record: &LightRecord,
    drawn: &Drawn,
) -> Rgb<N> {
    if record.kind == light::ENVMAP {
        return sky_value(scene, fields, drawn.direction);
    }
    light_value(scene, fields, record, &drawn.point)
}

/// A part of a shadow ray between two surfaces.
#[derive(Debug, Clone, Copy)]
pub(super) struct Part<'a> {
    /// The medium that it lies in, if any.
    pub medium: Option<&'a MediumRecord>,
    pub origin: [f32; 3],
    /// How long it is.
    pub far: f32,
    /// The surface that it ends at; None at the light.
    pub exit: Option<&'a Hit>,
}

/// Follows a shadow ray and calls `pass` for each part between surfaces, and `mask` for each surface with a BSDF, which says
/// whether light gets through. False if it does not.
#[inline]
pub(super) fn shadow(
    scene: &SceneView,
    medium: u32,
    p: [f32; 3],
    drawn: &Drawn,
    mut pass: impl FnMut(Part),
    mut mask: impl FnMut(&Hit) -> bool,
) -> bool {
    let (mut medium, mut origin) = (medium, p);
    let (mut far, mut open) = (drawn.distance, drawn.distance * SHADOW);
    if scene.is_opaque {
        let is_open = !is_blocked(scene, origin, drawn.direction, open);
        if is_open {
            let medium = scene.media.get(medium as usize);
            pass(Part {
                medium,
                origin,
                far,
                exit: None,
            });
        }
        return is_open;
    }
    // Find the next surface.
    loop {
        let hit = intersect(scene, origin, drawn.direction, open);
        let end = match &hit {
            Some(hit) => hit.t,
            None => far,
        };
        if let Some(hit) = &hit
            && (scene.settings.surfaces_only != surfaces_only::NO
                || scene.surfaces[hit.surface as usize].bsdf != NONE && !mask(hit))
        {
            return false;
        }
        // Visit what lies before it.
        pass(Part {
            medium: scene.media.get(medium as usize),
            origin,
            far: end,
            exit: hit.as_ref(),
        });
        let Some(hit) = hit else {
            return true;
        };
        // Pass through the boundary.
        medium = medium_beyond(scene, &hit, drawn.direction, medium);
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
    if !wants_extinction(scene, &adjoint.sink) {
        return;
    }
    let differential = scene.settings.gradient != gradient::FREE_FLIGHT;
    let pass = |part: Part| {
        let Part { origin, far, .. } = part;
        let Some(medium) = part.medium else { return };
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
    };
    // All masks count as passed: for an occluded ray this function is not called.
    shadow(scene, medium, p, drawn, pass, |_| true);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resident::Resident;
    use crate::transport::scene::shape::SurfacePoint;
    use crate::transport::scene::tables::Tables;
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
        let tables = Tables::default();
        let world = SceneView::new(&resident.scene, resident.transport.paths(), &tables);
        for begin in [-4.0f32, -0.5, 2.0] {
            let drawn = Drawn {
                light: 0,
                direction: [0.0, 0.0, 1.0],
                distance: 3.0 - begin,
                weight: 1.0,
                pdf: 0.0,
                point: SurfacePoint::new([0.0; 3], [0.0; 2]),
                normal: [0.0; 3],
            };
            let mut length = 0.0;
            let medium = u32::from((-1.0..1.0).contains(&begin));
            let open = shadow(
                &world,
                medium,
                [0.0, 0.0, begin],
                &drawn,
                |part| length += part.medium.map_or(0.0, |_| part.far),
                |_| false,
            );
            assert!(
                open && (length - drawn.distance).abs() < 1e-4,
                "{length} of {}",
                drawn.distance
            );
        }
    }
}
