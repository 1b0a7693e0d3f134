//! How far a point that a path meets slides along the path's ray when its surface moves, in place of following it
//! (docs/method.md, section 21).

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

/// The square of the distance from the middle, in that of the border, from which on points slide less.
const MIDDLE: f32 = 0.25;
/// The cosine of the angle to the normal below which points slide less.
const LEAST_COSINE: f32 = 0.25;

/// Points slide on surfaces that are at least this many times as large as what a lobe covers: what is smaller changes more
/// along a ray than the lobe does.
const LARGE: f32 = 2.0;

/// The share of the way along the ray that a point goes, and the derivative of that by moving the point over its
/// surface.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Glide {
    pub share: f32,
    pub slope: [f32; 3],
}

impl Glide {
    /// All of the way, as where a camera looks.
    pub const WHOLE: Self = Self {
        share: 1.0,
        slope: [0.0; 3],
    };
}

/// A step from zero to one between zero and one, and its derivative.
#[inline]
fn step_slope(x: f32) -> [f32; 2] {
    let x = x.clamp(0.0, 1.0);
    [x * x * (3.0 - 2.0 * x), 6.0 * x * (1.0 - x)]
}

/// By what angle, about, directions change that a BSDF scatters to: the least roughness of its leaves.
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

/// How far the point slides that a ray along `ray` meets which was scattered at `origin`, by a lobe of this width; None if
/// it follows its surface.
#[inline(never)]
pub fn glide(scene: &SceneView, origin: [f32; 3], width: f32, hit: &Hit, ray: [f32; 3]) -> Option<Glide> {
    let Track { rows, middle, size } = scene.motions.get(hit.surface as usize)?.as_ref()?.track?;
    // What a lobe covers at this distance.
    let way = minus(middle, origin);
    if size <= 0.0 || size < LARGE * width * dot(way, way).sqrt() {
        return None;
    }
    // The square of the distance from the middle, and its derivative.
    let mut at = transform_point(&rows, hit.point.p);
    if rows[2] != [0.0; 4] {
        // Of a box the coordinate across the face.
        let across = (0..3).fold(0, |best, k| if at[k].abs() > at[best].abs() { k } else { best });
        at[across] = 0.0;
    }
    let square = dot(at, at);
    let outwards = [0, 1, 2].each(|a| 2.0 * (at[0] * rows[0][a] + at[1] * rows[1][a] + at[2] * rows[2][a]));
    let [border, fall] = step_slope((1.0 - square) / (1.0 - MIDDLE));
    // The cosine, and its derivative: the ray turns about where it comes from, and the normal of what is curved turns.
    let cosine = dot(hit.normal, ray);
    let mut turning = [0.0; 3];
    let kind = scene.surfaces[hit.surface as usize].kind;
    if kind == surface::SPHERE || kind == surface::CYLINDER {
        let rows = slopes(scene, hit).normal;
        turning = [0, 1, 2].each(|a| inner([0, 1, 2].each(|k| rows[k][a]), ray) * cosine.signum());
    }
    let by_cosine = [0, 1, 2].each(|a| turning[a] - cosine.abs() * ray[a] / hit.t);
    let [lean, rise] = step_slope(cosine.abs() / LEAST_COSINE);
    let share = border * lean;
    (share > 0.0).then(|| Glide {
        share,
        slope: [0, 1, 2]
            .each(|a| border * rise / LEAST_COSINE * by_cosine[a] - lean * fall / (1.0 - MIDDLE) * outwards[a]),
    })
}
