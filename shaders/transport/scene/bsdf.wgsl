// BSDFs: values, pdfs and sampling.
//
// Values include the cosine with the shading normal. They are zero below the geometric surface, so that no light leaks
// through a mesh with interpolated normals.

#import transport/rays/sampler
#import transport/scene/bsdf/conductor
#import transport/scene/bsdf/dielectric
#import transport/scene/bsdf/plastic
#import transport/scene/bsdf/principled
#import transport/scene/bsdf/principledthin

const INV_PI: f32 = 0.31830989;

// A BSDF's value and its sampling pdf; both are zero unless `lit`.
struct BsdfValue {
    value: vec3f,
    pdf: f32,
    lit: bool,
}

// A sampled direction, value over pdf, and pdf by solid angle; the path ends unless `lit`.
struct BsdfSample {
    direction: vec3f,
    weight: vec3f,
    pdf: f32,
    lit: bool,
}

// The value of a diffuse surface of this reflectance for light from `outgoing`, and the pdf with which bsdf_sample
// draws that direction.
fn bsdf_eval(color: vec3f, normal: vec3f, shading: vec3f, outgoing: vec3f) -> BsdfValue {
    let cosine = dot(outgoing, shading);
    let pdf = cosine * INV_PI;
    return BsdfValue(color * pdf, pdf, cosine > 0.0 && dot(outgoing, normal) > 0.0);
}

// Samples a direction in proportion to the cosine. The weight is the reflectance, because value and pdf share the
// factor cosine / pi.
fn bsdf_sample(color: vec3f, normal: vec3f, shading: vec3f, sampler: ptr<function, Sampler>) -> BsdfSample {
    let cosine = sqrt(1.0 - sampler_draw(sampler));
    let direction = around(shading, cosine, sampler_draw(sampler));
    return BsdfSample(direction, color, cosine * INV_PI, dot(direction, normal) > 0.0);
}
