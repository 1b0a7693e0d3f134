// What surfaces do to light: values, densities and draws of BSDFs.
//
// Values include the cosine between the direction and the shading normal. Directions below the geometric normal
// scatter nothing, so that no light leaks through a mesh whose normals are interpolated.

#import transport/rays/sampler

const INV_PI: f32 = 0.31830989;

// A BSDF's value and the density of its draw; nothing is scattered unless `lit`.
struct BsdfValue {
    value: vec3f,
    pdf: f32,
    lit: bool,
}

// A direction drawn from a BSDF, value over density, and density by solid angle; the path ends unless `lit`.
struct BsdfSample {
    direction: vec3f,
    weight: vec3f,
    pdf: f32,
    lit: bool,
}

// The value of a diffuse surface of this reflectance for light from `outgoing`, and the density with which bsdf_sample
// draws that direction.
fn bsdf_eval(color: vec3f, normal: vec3f, shading: vec3f, outgoing: vec3f) -> BsdfValue {
    let cosine = dot(outgoing, shading);
    let pdf = cosine * INV_PI;
    return BsdfValue(color * pdf, pdf, cosine > 0.0 && dot(outgoing, normal) > 0.0);
}

// Draws a direction in proportion to the cosine. The weight is the reflectance, because value and density share the
// factor cosine / pi.
fn bsdf_sample(color: vec3f, normal: vec3f, shading: vec3f, sampler: ptr<function, Sampler>) -> BsdfSample {
    let cosine = sqrt(1.0 - sampler_draw(sampler));
    let direction = around(shading, cosine, sampler_draw(sampler));
    return BsdfSample(direction, color, cosine * INV_PI, dot(direction, normal) > 0.0);
}
