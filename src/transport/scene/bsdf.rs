//! BSDFs: values, pdfs and sampling.
//!
//! Values include the cosine with the shading normal. They are zero below the geometric surface, so that no light
//! leaks through a mesh with interpolated normals.

pub mod beckmann;
pub mod conductor;
pub mod dielectric;
pub mod disney;
pub mod fresnel;
pub mod local;
pub mod microfacet;
pub mod plastic;
pub mod principled;
pub mod principledthin;
pub mod transmittance;

use super::shape::Hit;
use crate::transport::rays::sampler::{Sampler, around, dot};

const INV_PI: f32 = std::f32::consts::FRAC_1_PI;

/// A direction sampled from a BSDF.
#[derive(Debug, Clone, Copy)]
pub struct BsdfSample {
    pub direction: [f32; 3],
    /// Value over pdf.
    pub weight: [f32; 3],
    /// Pdf by solid angle.
    pub pdf: f32,
}

/// The value of a diffuse surface of this reflectance for light from `outgoing`, and the pdf with which
/// [`bsdf_sample`] draws that direction; None where the value is zero.
#[inline]
pub fn bsdf_eval(color: [f32; 3], hit: &Hit, outgoing: [f32; 3]) -> Option<([f32; 3], f32)> {
    let cosine = dot(outgoing, hit.shading);
    let lit = cosine > 0.0 && dot(outgoing, hit.normal) > 0.0;
    let pdf = cosine * INV_PI;
    lit.then(|| (color.map(|x| x * pdf), pdf))
}

/// Samples a direction in proportion to the cosine; None if it lies below the surface. The weight is the reflectance,
/// because value and pdf share the factor cosine / π.
#[inline]
pub fn bsdf_sample(color: [f32; 3], hit: &Hit, sampler: &mut Sampler) -> Option<BsdfSample> {
    let cosine = (1.0 - sampler.draw()).sqrt();
    let direction = around(hit.shading, cosine, sampler.draw());
    (dot(direction, hit.normal) > 0.0).then_some(BsdfSample {
        direction,
        weight: color,
        pdf: cosine * INV_PI,
    })
}
