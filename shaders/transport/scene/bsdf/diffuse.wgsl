// Lambertian reflection on the side of the normal: value rho cos / pi.

#import transport/rays/sampler
#import transport/scene/bsdf/local

const INV_PI: f32 = 0.31830989;

// The value for the local direction `wo`, cosine included.
fn diffuse_eval(reflectance: vec3f, wo: vec3f) -> vec3f {
    return reflectance * diffuse_pdf(wo);
}

// The pdf of diffuse_sample.
fn diffuse_pdf(wo: vec3f) -> f32 {
    return max(wo.z, 0.0) * INV_PI;
}

// A local direction from two uniform numbers. Value over pdf is the reflectance.
fn diffuse_sample(u: vec2f) -> vec3f {
    let cosine = sqrt(1.0 - u.x);
    let sine = sqrt(max(1.0 - cosine * cosine, 0.0));
    let place = circle(u.y);
    return vec3f(sine * place.x, sine * place.y, cosine);
}

// The derivative by the reflectance, from `d` by the value.
fn diffuse_adjoint(wo: vec3f, d: vec3f) -> vec3f {
    return d * diffuse_pdf(wo);
}

#ifdef REPLAY
#ifdef SLOPES

// The gradients by the directions, from `d` by the value.
fn diffuse_gradients(reflectance: vec3f, wo: vec3f, d: vec3f) -> Gradients {
    let by_cosine = dot(d, reflectance) * select(0.0, INV_PI, wo.z > 0.0);
    return Gradients(vec3f(0.0), upright(by_cosine));
}

#endif
#endif
