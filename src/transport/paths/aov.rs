//! Arbitrary output variables (AOVs): properties of the first surface that a camera ray meets, in channels beside a picture's
//! radiance.

use crate::each::EachEntry;
use crate::resident::layout::{NONE, aov};
use crate::transport::rays::camera::Ray;
use crate::transport::rays::sampler::{along, dot};
use crate::transport::scene::bsdf::Bsdf;
use crate::transport::scene::interaction::Interaction;
use crate::transport::scene::records::{Fields, SceneView};
use crate::transport::scene::shape::{Hit, intersect};
use crate::transport::scene::tangent::derivatives;

/// The value of the channel `kind` of [`aov`] along a ray; components that it does not have are zero, and all are if the ray
/// meets nothing.
#[inline]
pub fn aov_eval<F: Fields<f32>>(scene: &SceneView, fields: &F, kind: u32, ray: &Ray) -> [f32; 3] {
    let origin = along(ray.origin, ray.direction, ray.near);
    let Some(hit) = intersect(scene, origin, ray.direction, ray.far - ray.near) else {
        return [0.0; 3];
    };
    match kind {
        aov::ALBEDO => albedo(scene, fields, &hit, ray.direction),
        aov::DEPTH => [hit.t, 0.0, 0.0],
        aov::POSITION => hit.point.p,
        aov::UV => [hit.point.uv[0], hit.point.uv[1], 0.0],
        aov::GEO_NORMAL => hit.normal,
        aov::SH_NORMAL => hit.shading,
        aov::DP_DU => derivatives(scene, &hit)[0],
        aov::DP_DV => derivatives(scene, &hit)[1],
        aov::PRIM_INDEX => [face_number(scene, &hit) as f32, 0.0, 0.0],
        _ => [(hit.surface + 1) as f32, 0.0, 0.0],
    }
}

/// The number of a triangle in its mesh, zero on other shapes.
#[inline]
fn face_number(scene: &SceneView, hit: &Hit) -> u32 {
    let corners = scene.corners.get(hit.point.triangle as usize);
    corners.map_or(0, |corners| corners.face)
}

/// The albedo of a diffuse surface whose BSDF has everywhere the value that this one has for light and view along the normal,
/// on the side of the ray.
#[inline]
fn albedo<F: Fields<f32>>(scene: &SceneView, fields: &F, hit: &Hit, direction: [f32; 3]) -> [f32; 3] {
    if scene.surfaces[hit.surface as usize].bsdf == NONE {
        return [0.0; 3];
    }
    let side = if dot(direction, hit.normal) < 0.0 { 1.0 } else { -1.0 };
    let outgoing = hit.shading.each(|x| x * side);
    let at = Interaction {
        smooth: true,
        ..Interaction::new(scene, hit, outgoing.each(|x| -x))
    };
    match Bsdf::<f32, F>::new(scene, fields, &at).eval(outgoing) {
        Some((value, _)) => value.0.each(|x| x * std::f32::consts::PI),
        None => [0.0; 3],
    }
}
