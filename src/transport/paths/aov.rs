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
/// meets nothing. `beside` is a ray of the same sample a column or a row further, for channels that show differences.
#[inline]
pub fn aov_eval<F: Fields<f32>>(scene: &SceneView, fields: &F, kind: u32, ray: &Ray, beside: &Ray) -> [f32; 3] {
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
        aov::DUV_DX | aov::DUV_DY => uv_change(scene, &hit, beside),
        aov::PRIM_INDEX => [face_number(scene, &hit) as f32, 0.0, 0.0],
        _ => [(hit.surface + 1) as f32, 0.0, 0.0],
    }
}

/// By which axis of the film the ray beside is displaced that a channel needs, if it needs one.
#[inline]
pub fn aov_axis(kind: u32) -> Option<usize> {
    match kind {
        aov::DUV_DX => Some(0),
        aov::DUV_DY => Some(1),
        _ => None,
    }
}

/// By how much u and v differ where the ray `beside` meets the plane that touches the surface at `hit`.
#[inline]
fn uv_change(scene: &SceneView, hit: &Hit, beside: &Ray) -> [f32; 3] {
    let p = hit.point.p;
    let from = [0, 1, 2].each(|a: usize| p[a] - beside.origin[a]);
    let t = dot(hit.normal, from) / dot(hit.normal, beside.direction);
    let over = [0, 1, 2].each(|a: usize| beside.direction[a] * t - from[a]);
    let [du, dv] = derivatives(scene, hit);
    let (a, b, c) = (dot(du, du), dot(du, dv), dot(dv, dv));
    let (x, y) = (dot(du, over), dot(dv, over));
    let scale = 1.0 / (a * c - b * b);
    let change = [(c * x - b * y) * scale, (a * y - b * x) * scale, 0.0];
    if change[0].is_finite() && change[1].is_finite() {
        change
    } else {
        [0.0; 3]
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
