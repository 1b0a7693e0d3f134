//! Light tracing among surfaces: paths begin at lights, and each of their vertices is connected to the sensor.
//!
//! Light arrives along `-a` and is scattered along `b`. The BSDF is evaluated as for a path from the camera, which arrives
//! along `-b`, so that the means are those of such paths: its value f(b, a) cos a is multiplied by |n · b| / |n · a|, with the
//! geometric normal n (Veach1997, section 5.3.2).

use super::emission::{Emission, emit};
use super::lens::{Lens, Sight};
use crate::each::EachEntry;
use crate::resident::layout::{NONE, bsdf};
use crate::resident::tracer::LightTracer;
use crate::transport::number::rgb::Rgb;
use crate::transport::rays::sampler::{Sampler, dot};
use crate::transport::scene::bsdf::local::Lobe;
use crate::transport::scene::bsdf::{Bsdf, BsdfSample};
use crate::transport::scene::interaction::Interaction;
use crate::transport::scene::records::{Fields, SceneView};
use crate::transport::scene::shape::{intersect, is_blocked, leave};

/// Upper limit of the survival probability in Russian roulette.
const MAX_SURVIVAL: f32 = 0.95;

/// Follows one path of light and calls `splat` with places on the film of `lens` and what the path contributes there, before
/// the film's filter.
pub fn trace<F: Fields<f32>>(
    scene: &SceneView,
    fields: &F,
    tracer: &LightTracer,
    lens: &Lens<'_>,
    sampler: &mut Sampler,
    mut splat: impl FnMut([f32; 2], Rgb<f32>),
) {
    let Some(emission) = emit(scene, fields, tracer, sampler) else {
        return;
    };
    let Emission {
        mut origin,
        mut direction,
        power,
    } = emission;
    let mut beta = Rgb::splat(1.0);
    let mut depth = 1;
    while depth < tracer.max_depth {
        let Some(hit) = intersect(scene, origin, direction, f32::INFINITY) else {
            return;
        };
        depth += 1;
        if scene.surfaces[hit.surface as usize].bsdf == NONE {
            // A surface without BSDF only separates media.
            origin = leave(&hit, direction);
            continue;
        }
        let at = Interaction::new(scene, &hit, direction);
        let u = [sampler.draw(), sampler.draw()];
        if let Some((film, seen)) = connect(scene, fields, &at, lens, u) {
            splat(film, power * beta * seen);
        }
        let bsdf = Bsdf::new(scene, fields, &at);
        let Some(drawn) = bsdf.sample(sampler) else {
            return;
        };
        let Some(weight) = weight(scene, fields, &at, &bsdf, &drawn) else {
            return;
        };
        beta *= weight;
        let brightness = beta.0.into_iter().fold(0.0, f32::max);
        if brightness <= 0.0 {
            return;
        }
        (origin, direction) = (at.leave(drawn.direction), drawn.direction);
        if depth > tracer.rr_depth {
            let survival = brightness.min(MAX_SURVIVAL);
            if sampler.draw() >= survival {
                return;
            }
            beta = beta * (1.0 / survival);
        }
    }
}

/// Where a point is seen on the film, and the share of the arriving power that it sends there per solid angle, times
/// [`Sight::pixels`].
fn connect<F: Fields<f32>>(
    scene: &SceneView,
    fields: &F,
    at: &Interaction,
    lens: &Lens<'_>,
    u: [f32; 2],
) -> Option<([f32; 2], Rgb<f32>)> {
    let hidden = scene.settings.hide_emitters == 1 && scene.surfaces[at.hit.surface as usize].light != NONE;
    if hidden || at.record(scene).flags & bsdf::SMOOTH == 0 {
        return None;
    }
    let Sight {
        film,
        direction,
        distance,
        pixels,
    } = lens.look_at(at.hit.point.p, u)?;
    let sent = scattered(scene, fields, at, direction)?;
    is_seen(scene, at.leave(direction), direction, distance).then(|| (film, sent * pixels))
}

/// The share of the arriving power that is scattered along `b`, per solid angle.
fn scattered<F: Fields<f32>>(scene: &SceneView, fields: &F, at: &Interaction, b: [f32; 3]) -> Option<Rgb<f32>> {
    let (a, n) = (at.incoming.each(|x| -x), at.hit.normal);
    let across = dot(n, a).abs();
    let seen = Interaction::new(scene, &at.hit, b.each(|x| -x));
    let (value, _) = Bsdf::new(scene, fields, &seen).eval(a)?;
    (across > 0.0).then(|| value * (dot(n, b).abs() / across))
}

/// Whether no surface lies between a point and the sensor; hidden emitters do not count.
fn is_seen(scene: &SceneView, mut p: [f32; 3], direction: [f32; 3], mut distance: f32) -> bool {
    if scene.settings.hide_emitters == 0 {
        return !is_blocked(scene, p, direction, distance);
    }
    while let Some(hit) = intersect(scene, p, direction, distance) {
        if scene.surfaces[hit.surface as usize].light == NONE {
            return false;
        }
        p = leave(&hit, direction);
        distance -= hit.t;
    }
    true
}

/// The factor on the power for the direction that was drawn; None if nothing is scattered that way, or it is not finite.
fn weight<F: Fields<f32>>(
    scene: &SceneView,
    fields: &F,
    at: &Interaction,
    bsdf: &Bsdf<'_, f32, F>,
    drawn: &BsdfSample,
) -> Option<Rgb<f32>> {
    let (a, b, n) = (at.incoming.each(|x| -x), drawn.direction, at.hit.normal);
    let turned = dot(n, b).abs() / dot(n, a).abs();
    let weight = match drawn.lobe {
        Lobe::Smooth => scattered(scene, fields, at, b)? * (1.0 / drawn.pdf),
        Lobe::Null => bsdf.weight(drawn),
        Lobe::Reflection => bsdf.weight(drawn) * turned,
        Lobe::Transmission => {
            // The half vector, along the normal of refraction. Radiance scales by the squared relative index, power does not.
            let h = [0, 1, 2].each(|i| a[i] + drawn.eta * b[i]);
            let (before, behind) = (dot(h, a).abs(), dot(h, b).abs());
            let bent = if behind > 0.0 { before / behind } else { 1.0 };
            bsdf.weight(drawn) * (drawn.eta * drawn.eta * turned * bent)
        }
    };
    weight.0.into_iter().all(f32::is_finite).then_some(weight)
}
