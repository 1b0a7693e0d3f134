// Conductors: smooth (a mirror), and rough (microfacets).

#import transport/scene/bsdf/fresnel
#import transport/scene/bsdf/local
#import transport/scene/bsdf/microfacet

// A smooth conductor of index `eta` + i `k` relative to the outside, which reflects on the upper side.
struct Conductor {
    eta: vec3f,
    k: vec3f,
    specular: vec3f,
}

// The factor of the mirror image.
fn conductor_discrete(p: Conductor, wi: vec3f, lobe: u32) -> vec3f {
    if lobe != LOBE_REFLECTION || wi.z <= 0.0 {
        return vec3f(0.0);
    }
    return p.specular * reflectances(wi.z, p.eta, p.k);
}

// The mirror image.
fn conductor_sample(p: Conductor, wi: vec3f, u1: f32, u2: vec2f) -> LobeSample {
    return LobeSample(vec3f(-wi.xy, wi.z), select(0.0, 1.0, wi.z > 0.0), LOBE_REFLECTION, 1.0);
}

// A rough conductor, which reflects on the upper side.
struct RoughConductor {
    eta: vec3f,
    k: vec3f,
    specular: vec3f,
    alpha_u: f32,
    alpha_v: f32,
    distribution: u32,
    // Whether only visible normals are sampled.
    visible: bool,
}

fn rough_conductor_facets(p: RoughConductor) -> Microfacets {
    return microfacets_new(p.distribution, vec2f(p.alpha_u, p.alpha_v), p.visible);
}

// The value times the cosine of `wo`: F D G / (4 cos wi).
fn rough_conductor_eval(p: RoughConductor, wi: vec3f, wo: vec3f) -> vec3f {
    if wi.z <= 0.0 || wo.z <= 0.0 {
        return vec3f(0.0);
    }
    let value = microfacets_reflection(rough_conductor_facets(p), wi, wo);
    return p.specular * reflectances(mirror_cosine(wi, wo), p.eta, p.k) * value;
}

// The pdf by solid angle with which rough_conductor_sample draws `wo`.
fn rough_conductor_pdf(p: RoughConductor, wi: vec3f, wo: vec3f) -> f32 {
    if wi.z <= 0.0 || wo.z <= 0.0 {
        return 0.0;
    }
    return microfacets_reflection_pdf(rough_conductor_facets(p), wi, wo);
}

// Mirrors `wi` at a sampled normal; none if that is below the surface.
fn rough_conductor_sample(p: RoughConductor, wi: vec3f, u1: f32, u2: vec2f) -> LobeSample {
    if wi.z <= 0.0 {
        return lobe_sample_none();
    }
    let direction = mirrored(wi, microfacets_sample_normal(rough_conductor_facets(p), wi, u2));
    return smooth_sample(direction, rough_conductor_pdf(p, wi, direction));
}

// A sample of a smooth lobe, whose direction is on the side of `wi` (`eta` is one); none where its pdf is zero.
fn smooth_sample(direction: vec3f, pdf: f32) -> LobeSample {
    return LobeSample(direction, select(0.0, pdf, pdf > 0.0), LOBE_SMOOTH, 1.0);
}

// The derivative by a roughness that may be clamped: none below CLAMPED_ALPHA.
fn unclamped(alpha: f32, slope: f32) -> f32 {
    return select(slope, 0.0, alpha < CLAMPED_ALPHA);
}

// The cosine between `wi` and the normal halfway between it and `wo`, which is not negative.
fn mirror_cosine(wi: vec3f, wo: vec3f) -> f32 {
    // Half the length of their sum: the root of (1 + wi.wo) / 2 would cancel at grazing angles.
    let sum = wi + wo;
    return min(0.5 * sqrt(dot(sum, sum)), 1.0);
}

// Reflectances of the channels.
fn reflectances(cosine: f32, eta: vec3f, k: vec3f) -> vec3f {
    return vec3f(
        fresnel_conductor(cosine, eta.x, k.x),
        fresnel_conductor(cosine, eta.y, k.y),
        fresnel_conductor(cosine, eta.z, k.z),
    );
}

#ifdef REPLAY

// Reflectances of the channels, and their derivatives by `eta` and by `k`, as columns.
fn reflectance_slopes(cosine: f32, eta: vec3f, k: vec3f) -> mat3x3f {
    return transpose(mat3x3f(
        fresnel_conductor_slopes(cosine, eta.x, k.x),
        fresnel_conductor_slopes(cosine, eta.y, k.y),
        fresnel_conductor_slopes(cosine, eta.z, k.z),
    ));
}

// Derivatives of conductor_discrete, weighted by `d`.
fn conductor_discrete_adjoint(p: Conductor, wi: vec3f, lobe: u32, d: vec3f) -> Conductor {
    if lobe != LOBE_REFLECTION || wi.z <= 0.0 {
        return Conductor(vec3f(0.0), vec3f(0.0), vec3f(0.0));
    }
    let f = reflectance_slopes(wi.z, p.eta, p.k);
    let weighted = d * p.specular;
    return Conductor(weighted * f[1], weighted * f[2], d * f[0]);
}

// Derivatives of rough_conductor_eval, weighted by `d`. Roughnesses below CLAMPED_ALPHA have none.
fn rough_conductor_eval_adjoint(p: RoughConductor, wi: vec3f, wo: vec3f, d: vec3f) -> RoughConductor {
    var value = vec3f(0.0);
    var f = mat3x3f();
    if wi.z > 0.0 && wo.z > 0.0 {
        value = microfacets_reflection_slopes(rough_conductor_facets(p), wi, wo);
        f = reflectance_slopes(mirror_cosine(wi, wo), p.eta, p.k);
    }
    let weighted = d * p.specular * value.x;
    let shape = dot(d * p.specular, f[0]);
    var out = p;
    out.eta = weighted * f[1];
    out.k = weighted * f[2];
    out.specular = d * f[0] * value.x;
    out.alpha_u = unclamped(p.alpha_u, shape * value.y);
    out.alpha_v = unclamped(p.alpha_v, shape * value.z);
    return out;
}

#ifdef SLOPES

// The gradients of rough_conductor_eval, weighted by `d`, by the directions.
fn rough_conductor_gradients(p: RoughConductor, wi: vec3f, wo: vec3f, d: vec3f) -> Gradients {
    if wi.z <= 0.0 || wo.z <= 0.0 {
        return no_gradients();
    }
    let cosine = mirror_cosine(wi, wo);
    let facets = rough_conductor_facets(p);
    let weight = d * p.specular * microfacets_reflection(facets, wi, wo);
    var sum = vec2f(0.0);
    for (var c = 0u; c < 3u; c++) {
        sum += weight[c] * fresnel_conductor_slope(cosine, p.eta[c], p.k[c]);
    }
    return mirror_gradients(wi, wo, microfacets_reflection_gradients(facets, wi, wo), sum.x, sum.y);
}

// The gradients of microfacet reflection by the directions: `along` are those of its logarithm without Fresnel's factor,
// `value` is its value with that, and `by_cosine` the derivative of this by mirror_cosine.
fn mirror_gradients(wi: vec3f, wo: vec3f, along: Gradients, value: f32, by_cosine: f32) -> Gradients {
    // The cosine is half of the length of the sum of both.
    let turning = 0.5 * by_cosine * halfway(wi, wo);
    return Gradients(turning + along.wi * value, turning + along.wo * value);
}

#endif
#endif
