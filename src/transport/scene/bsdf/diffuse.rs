//! Lambertian reflection on the side of the normal: value ρ cosθo / π.

use super::local::{Gradients, upright, weigh};
use crate::transport::number::Number;
use crate::transport::number::rgb::Rgb;
use crate::transport::rays::sampler::circle;

const INV_PI: f32 = std::f32::consts::FRAC_1_PI;

/// The value for the local direction `wo`, cosine included.
#[inline]
pub fn diffuse_eval<N: Number>(reflectance: Rgb<N>, wo: [N; 3]) -> Rgb<N> {
    reflectance * Rgb::splat(lambert(wo))
}

/// The cosine over π; zero below the surface.
#[inline(always)]
fn lambert<N: Number>(wo: [N; 3]) -> N {
    wo[2].max(N::lift(0.0)) * N::lift(INV_PI)
}

/// The pdf of [`diffuse_sample`].
#[inline]
pub fn diffuse_pdf(wo: [f32; 3]) -> f32 {
    lambert(wo)
}

/// A local direction from two uniform numbers. Value over pdf is the reflectance.
#[inline]
pub fn diffuse_sample(u: [f32; 2]) -> [f32; 3] {
    let cosine = (1.0 - u[0]).sqrt();
    let sine = (1.0 - cosine * cosine).max(0.0).sqrt();
    let [x, y] = circle(u[1]);
    [sine * x, sine * y, cosine]
}

/// The gradients by the directions, from `d` by the value.
#[inline]
pub fn diffuse_gradients<N: Number>(reflectance: Rgb<N>, wo: [N; 3], d: Rgb<N>) -> Gradients<N> {
    let slope = if wo[2].above(0.0) { INV_PI } else { 0.0 };
    let by_cosine = weigh(d, reflectance) * N::lift(slope);
    [upright(N::lift(0.0)), upright(by_cosine)]
}

/// The derivative by the reflectance, from `d` by the value.
#[inline]
pub fn diffuse_adjoint<N: Number>(wo: [N; 3], d: Rgb<N>) -> Rgb<N> {
    d * Rgb::splat(lambert(wo))
}
