//! Warnings about a scene as a whole.

use super::context::Context;
use super::motion;
use super::optic::screen_reflectance;
use super::{Backdrop, Background, Bsdf, Model, Scene, Source, Surface};

/// Records all warnings.
pub(super) fn note(context: &Context<'_>, scene: &Scene) {
    backdrops(context, scene);
    if scene
        .sensors
        .iter()
        .any(|sensor| sensor.color_space != scene.sensors[0].color_space)
    {
        context.warn("some films are `linear` and some `srgb`: one medium cannot look right in both");
    }
    darkness(context, scene);
    singular(context, scene);
    motion::warn(context, scene);
}

/// Jacobians of rays that are inverted, but have no inverse.
fn singular(context: &Context<'_>, scene: &Scene) {
    let is_diffuse = |bsdf: &Bsdf| matches!(bsdf, Bsdf::Material(material) if material.model == Model::Diffuse);
    let scatters = |surface: &Surface| is_diffuse(&surface.bsdf) && screen_reflectance(&surface.bsdf) != Some([0.0; 3]);
    if scene.integrator.inverted == Some(0.0) && scene.world.surfaces.iter().any(scatters) {
        context.warn(
            "the `regularization` is 0, and at a `diffuse` surface Jacobians of rays have no inverse: what is seen behind one moves \
             nothing; remove it, or say \"jacobians\": \"kept\"",
        );
    }
}

/// A path-traced scene without light.
fn darkness(context: &Context<'_>, scene: &Scene) {
    let world = &scene.world;
    let dark = matches!(scene.background, Background::None)
        && world.lights.is_empty()
        && world.surfaces.iter().all(|surface| surface.emitter.is_none())
        && world.media.iter().all(|medium| medium.emission.is_none());
    if dark && !world.is_empty() && !context.has_errors() {
        context.warn("nothing in the scene emits light, so that it is black: add an emitter");
    }
}

/// If photographs are composited on one colour and the emitter has another, the medium learns the difference.
fn backdrops(context: &Context<'_>, scene: &Scene) {
    let behind = match &scene.background {
        Background::None => Some([0.0; 3]),
        Background::Constant { radiance } if radiance.tuning.is_none() => match &radiance.source {
            Source::Fill(values) => <[f32; 3]>::try_from(values.as_slice()).ok(),
            _ => None,
        },
        Background::Constant { .. } | Background::Envmap { .. } => None,
    };
    let backdrops = scene
        .sensors
        .iter()
        .filter_map(|sensor| sensor.reference.as_ref())
        .map(|image| image.backdrop);
    for backdrop in backdrops {
        let message = match (backdrop, behind) {
            (Backdrop::Color(color), Some(behind)) if color != behind => format!(
                "the photographs are composited on {color:?} but the scene's background is {behind:?}: \
                 a `constant` emitter of the same radiance makes them agree"
            ),
            (Backdrop::Random, behind) if behind != Some([0.0; 3]) => {
                "the photographs are composited on random colours, which replace the scene's emitter: remove it"
                    .to_string()
            }
            _ => continue,
        };
        context.warn(message);
        return;
    }
}
