//! Directions in the local shading frame, whose third axis is the shading normal, and what sampling one yields.
//!
//! `wi` points to where the path came from and `wo` onwards. Values of BSDFs include the cosine of `wo`; they and their
//! derivatives are generic over the number, sampling and pdfs are f32 and carry no derivatives.

use crate::each::EachEntry;
use crate::transport::number::Number;
use crate::transport::number::rgb::Rgb;
use crate::transport::rays::sampler::{circle, dot};

/// The kind of lobe that a direction was drawn from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lobe {
    /// A diffuse or glossy lobe, which has a value for every direction and a pdf by solid angle.
    Smooth,
    /// A mirror image, which has a probability.
    Reflection,
    /// A refracted direction, which has a probability.
    Transmission,
    /// The direction straight on, which has a probability.
    Null,
}

/// A sampled direction.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LobeSample {
    pub direction: [f32; 3],
    /// For a smooth lobe the pdf by solid angle, summed over all smooth lobes that can draw the direction; for another
    /// its probability.
    pub pdf: f32,
    pub lobe: Lobe,
    /// The index on the side of `direction` over that on the side of `wi`.
    pub eta: f32,
}

/// A constant vector.
#[inline(always)]
pub fn lift<N: Number>(v: [f32; 3]) -> [N; 3] {
    v.each(N::lift)
}

/// The scalar product of vectors of numbers.
#[inline(always)]
pub fn inner<N: Number>(a: [N; 3], b: [N; 3]) -> N {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

/// The scalar product of colours.
#[inline(always)]
pub fn weigh<N: Number>(a: Rgb<N>, b: Rgb<N>) -> N {
    (a * b).sum()
}

/// The vector of unit length along `v`, or `v` itself where that is zero.
#[inline(always)]
pub fn normalised(v: [f32; 3]) -> [f32; 3] {
    let square = dot(v, v);
    let scale = if square > 0.0 { 1.0 / square.sqrt() } else { 1.0 };
    v.each(|x| x * scale)
}

/// The vector product.
#[inline(always)]
pub fn outer<N: Number>(a: [N; 3], b: [N; 3]) -> [N; 3] {
    [
        a[1] * b[2] - a[2] * b[1],
        a[2] * b[0] - a[0] * b[2],
        a[0] * b[1] - a[1] * b[0],
    ]
}

/// The gradients of a function of the unit vectors `wi` and `wo` by these; their components along the vectors are irrelevant.
pub type Gradients<N> = [[N; 3]; 2];

/// Gradients of zero.
#[inline(always)]
pub fn no_gradients<N: Number>() -> Gradients<N> {
    [[N::lift(0.0); 3]; 2]
}

/// The derivative by turning `wi` and `wo` together, from the gradients by either: an infinitesimal rotation ω changes
/// the value by ω · torque. A function of the angle between the two alone has none.
#[inline(always)]
pub fn torque<N: Number>(wi: [N; 3], wo: [N; 3], [by_wi, by_wo]: Gradients<N>) -> [N; 3] {
    let (i, o) = (outer(wi, by_wi), outer(wo, by_wo));
    [0, 1, 2].each(|a| i[a] + o[a])
}

/// The gradient of a function of a direction's cosine (its z) alone, from its derivative by the cosine.
#[inline(always)]
pub fn upright<N: Number>(by_cosine: N) -> [N; 3] {
    [N::lift(0.0), N::lift(0.0), by_cosine]
}

/// a + b times `scale`, of vectors.
#[inline(always)]
pub fn add_scaled<N: Number>(a: [N; 3], b: [N; 3], scale: N) -> [N; 3] {
    [0, 1, 2].each(|k| a[k] + b[k] * scale)
}

/// The mirror image at the surface: z negated.
#[inline(always)]
pub fn flipped<N: Number>([x, y, z]: [N; 3]) -> [N; 3] {
    [x, y, -z]
}

/// `v`, reversed if `wi` is below the surface: then `above(wi, wi)` is above it. Microfacets look alike from opposite
/// directions.
#[inline(always)]
pub fn above<N: Number>(wi: [N; 3], v: [N; 3]) -> [N; 3] {
    if wi[2].below(0.0) { v.each(|x| -x) } else { v }
}

/// The mirror image of `wi` at a plane with the unit normal `m`.
#[inline(always)]
pub fn mirrored(wi: [f32; 3], m: [f32; 3]) -> [f32; 3] {
    let twice = 2.0 * dot(wi, m);
    normalised([twice * m[0] - wi[0], twice * m[1] - wi[1], twice * m[2] - wi[2]])
}

/// `wi` refracted at a plane with the unit normal `m`: `ti` is the index on the side of `wi` over that on the other, and
/// `cosine` that of the refracted direction, of the opposite sign as that of `wi`.
#[inline(always)]
pub fn refracted(wi: [f32; 3], m: [f32; 3], ti: f32, cosine: f32) -> [f32; 3] {
    let along = ti * dot(wi, m) + cosine;
    normalised([
        along * m[0] - ti * wi[0],
        along * m[1] - ti * wi[1],
        along * m[2] - ti * wi[2],
    ])
}

/// The unit vector halfway between two directions on the upper side.
#[inline(always)]
pub fn halfway<N: Number>(a: [N; 3], b: [N; 3]) -> [N; 3] {
    let sum = [a[0] + b[0], a[1] + b[1], a[2] + b[2]];
    let scale = inner(sum, sum).sqrt().recip();
    sum.each(|x| x * scale)
}

/// A uniform point of the unit disk, by the concentric map, which keeps neighbours together (Shirley1997).
#[inline]
pub fn disk([u, v]: [f32; 2]) -> [f32; 2] {
    let (a, b) = (2.0 * u - 1.0, 2.0 * v - 1.0);
    if a == 0.0 && b == 0.0 {
        return [0.0, 0.0];
    }
    // The fraction of the whole circle that the angle takes.
    let (radius, angle) = if a.abs() > b.abs() {
        (a, 0.125 * (b / a))
    } else {
        (b, 0.25 - 0.125 * (a / b))
    };
    let [x, y] = circle(if angle < 0.0 { angle + 1.0 } else { angle });
    [radius * x, radius * y]
}

/// A direction on the upper side with pdf cosine / π.
#[inline]
pub fn cosine_hemisphere(u: [f32; 2]) -> [f32; 3] {
    let [x, y] = disk(u);
    [x, y, (1.0 - x * x - y * y).max(0.0).sqrt()]
}
