//! The share λ by which a hit point stays on the path's ray when its surface moves, in place of following the surface
//! (docs/method.md, section 21, (51a)).

use super::bsdf::local::inner;
use super::interaction::Interaction;
use super::motion::minus;
use super::records::{Fields, SceneView};
use super::shape::Hit;
use super::tangent::slopes;
use super::texture::texture_value;
use crate::each::EachEntry;
use crate::resident::glide::Track;
use crate::resident::layout::{LeafRecord, leaf, surface};
use crate::transport::number::Number;
use crate::transport::rays::camera::transform_point;
use crate::transport::rays::sampler::dot;

/// Squared distance from the middle over that of the border (q in section 21) beyond which λ falls.
const MIDDLE: f32 = 0.25;
/// The cosine |n · ω| below which λ falls.
const LEAST_COSINE: f32 = 0.25;

/// λ is zero on surfaces smaller than this many times a lobe's footprint (width times distance): along the ray, they
/// would change the integrand more than the lobe does.
const LARGE: f32 = 2.0;

/// The share λ of the way along the ray that a point goes, and its gradient by moving the point over its surface.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Glide {
    pub share: f32,
    pub slope: [f32; 3],
}

impl Glide {
    /// λ = 1: the point stays on the ray, as every point that the camera sees.
    pub const WHOLE: Self = Self {
        share: 1.0,
        slope: [0.0; 3],
    };
}

/// The smooth step 3x² − 2x³ of x clamped to [0, 1], and its derivative.
#[inline]
fn step_slope(x: f32) -> [f32; 2] {
    let x = x.clamp(0.0, 1.0);
    [x * x * (3.0 - 2.0 * x), 6.0 * x * (1.0 - x)]
}

/// The angular width of a BSDF's lobe, roughly, in radians: the least roughness of its leaves, one if all are diffuse or smooth.
#[inline]
pub fn width<N: Number, F: Fields<N>>(scene: &SceneView, fields: &F, at: &Interaction) -> f32 {
    let value = |leaf: &LeafRecord, number: u32| {
        texture_value(
            scene,
            |slot| fields.sampling(slot),
            leaf.first_texture + number,
            &at.hit.point,
        )[0]
    };
    let of_leaf = |leaf: &LeafRecord| match leaf.kind {
        leaf::ROUGH_CONDUCTOR | leaf::ROUGH_DIELECTRIC => value(leaf, 3).min(value(leaf, 4)),
        leaf::ROUGH_PLASTIC => value(leaf, 3),
        leaf::PRINCIPLED | leaf::PRINCIPLED_THIN => value(leaf, 1) * value(leaf, 1),
        _ => 1.0,
    };
    at.leaves(scene).iter().map(of_leaf).fold(1.0, f32::min)
}

/// λ at the hit of a ray along `ray` that a lobe of this width scattered at `origin`; None where λ is zero and the
/// point follows its surface.
#[inline(never)]
pub fn glide(scene: &SceneView, origin: [f32; 3], width: f32, hit: &Hit, ray: [f32; 3]) -> Option<Glide> {
    let Track { rows, middle, size } = scene.motions.get(hit.surface as usize)?.as_ref()?.track?;
    // Compares the surface with the lobe's footprint at this distance.
    let way = minus(middle, origin);
    if size <= 0.0 || size < LARGE * width * dot(way, way).sqrt() {
        return None;
    }
    // q, the squared distance from the middle over that of the border, and its derivative.
    let mut at = transform_point(&rows, hit.point.p);
    if rows[2] != [0.0; 4] {
        // On a box, leave out the coordinate perpendicular to the face.
        let across = (0..3).fold(0, |best, k| if at[k].abs() > at[best].abs() { k } else { best });
        at[across] = 0.0;
    }
    let square = dot(at, at);
    let outwards = [0, 1, 2].each(|a| 2.0 * (at[0] * rows[0][a] + at[1] * rows[1][a] + at[2] * rows[2][a]));
    let [border, fall] = step_slope((1.0 - square) / (1.0 - MIDDLE));
    // The cosine, and its derivative: the ray turns about its origin, and on a curved surface the normal turns.
    let cosine = dot(hit.normal, ray);
    let mut turning = [0.0; 3];
    let kind = scene.surfaces[hit.surface as usize].kind;
    if kind == surface::SPHERE || kind == surface::CYLINDER {
        let rows = slopes(scene, hit).normal;
        turning = [0, 1, 2].each(|a| inner([0, 1, 2].each(|k| rows[k][a]), ray) * cosine.signum());
    }
    // A ray that has passed boundaries counts `hit.t` from the last of them.
    let length = dot([0, 1, 2].each(|a: usize| hit.point.p[a] - origin[a]), ray);
    let by_cosine = [0, 1, 2].each(|a| turning[a] - cosine.abs() * ray[a] / length);
    let [lean, rise] = step_slope(cosine.abs() / LEAST_COSINE);
    let share = border * lean;
    (share > 0.0).then(|| Glide {
        share,
        slope: [0, 1, 2]
            .each(|a| border * rise / LEAST_COSINE * by_cosine[a] - lean * fall / (1.0 - MIDDLE) * outwards[a]),
    })
}
