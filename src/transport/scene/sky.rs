//! The background of a scene of paths: its radiance, [`sky_value`], beside [`sky_adjoint`].

use super::records::{Fields, SceneView, Sink};
use crate::resident::layout::NONE;
use crate::transport::lookup::background::background_color;
use crate::transport::number::Number;
use crate::transport::number::rgb::Rgb;

/// The background's radiance for the unit direction `d` (world). The scene has a background.
#[inline]
pub fn sky_value<N: Number, F: Fields<N>>(scene: &SceneView, fields: &F, d: [f32; 3]) -> Rgb<N> {
    color(scene, fields, d) * Rgb::splat(scale(scene, fields))
}

/// Whether derivatives by the background are sought.
#[inline]
pub fn sky_is_wanted<N: Number, S: Sink<N>>(scene: &SceneView, sink: &S) -> bool {
    [scene.background, scene.common.env_scale_slot]
        .iter()
        .any(|slot| *slot != NONE && sink.wants(*slot))
}

/// Sends `d_radiance`, the derivative by [`sky_value`].
#[inline]
pub fn sky_adjoint<N: Number, F: Fields<N>, S: Sink<N>>(
    scene: &SceneView,
    fields: &F,
    d: [f32; 3],
    d_radiance: Rgb<N>,
    sink: &mut S,
) {
    sink.background(d, (d_radiance * Rgb::splat(scale(scene, fields))).0);
    let slot = scene.common.env_scale_slot;
    if slot != NONE && sink.wants(slot) {
        let by_scale = (d_radiance * color(scene, fields, d)).sum();
        sink.value(slot, [by_scale, N::lift(0.0), N::lift(0.0)], 1);
    }
}

#[inline(always)]
fn color<N: Number, F: Fields<N>>(scene: &SceneView, fields: &F, d: [f32; 3]) -> Rgb<N> {
    Rgb(background_color(scene.common, fields.integrand(scene.background), d))
}

/// The factor on the radiance of an environment map's texels.
#[inline(always)]
pub(super) fn scale<N: Number, F: Fields<N>>(scene: &SceneView, fields: &F) -> N {
    match scene.common.env_scale_slot {
        NONE => N::lift(1.0),
        slot => fields.integrand(slot)[0],
    }
}
