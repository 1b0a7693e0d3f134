// Plastics: a diffuse base under a dielectric coat, with all reflections between them. The coat is smooth, or rough.

#import transport/scene/bsdf/conductor
#import transport/scene/bsdf/dielectric
#import transport/scene/bsdf/fresnel
#import transport/scene/bsdf/local
#import transport/scene/bsdf/microfacet

// The base's reflectance with all interreflections under the coat, over pi eta^2, and its derivatives by the reflectance and
// by the share `internal` that the coat reflects back.
fn plastic_base(diffuse: f32, internal: f32, eta: f32, nonlinear: bool) -> vec3f {
    let scale = FRAC_1_PI / (eta * eta);
    let again = select(internal, diffuse * internal, nonlinear);
    let sum = 1.0 / (1.0 - again);
    let square = sum * sum * scale;
    if nonlinear {
        return vec3f(diffuse * sum * scale, square, diffuse * diffuse * square);
    }
    return vec3f(diffuse * sum * scale, sum * scale, diffuse * square);
}

// A smooth coat of index `eta` over a diffuse base, which reflects on the upper side.
struct Plastic {
    eta: f32,
    diffuse: vec3f,
    specular: vec3f,
    // Whether light changes its colour each time it returns to the base.
    nonlinear: bool,
    // Weight of the specular lobe among samples, by the means of both lobes' factors; computed by the host.
    specular_weight: f32,
}

// The value of the base times the cosine of `wo`.
fn plastic_eval(p: Plastic, wi: vec3f, wo: vec3f) -> vec3f {
    if wi.z <= 0.0 || wo.z <= 0.0 {
        return vec3f(0.0);
    }
    let internal = diffuse_fresnel(1.0 / p.eta);
    let through = (1.0 - fresnel(wi.z, p.eta)) * (1.0 - fresnel(wo.z, p.eta)) * wo.z;
    return through * vec3f(
        plastic_base(p.diffuse.x, internal, p.eta, p.nonlinear).x,
        plastic_base(p.diffuse.y, internal, p.eta, p.nonlinear).x,
        plastic_base(p.diffuse.z, internal, p.eta, p.nonlinear).x,
    );
}

// The factor of the mirror image.
fn plastic_discrete(p: Plastic, wi: vec3f, lobe: u32) -> vec3f {
    if lobe != LOBE_REFLECTION || wi.z <= 0.0 {
        return vec3f(0.0);
    }
    return p.specular * fresnel(wi.z, p.eta);
}

// The probability of a specular lobe of this reflectance beside a diffuse one.
fn specular_probability(reflectance: f32, weight: f32) -> f32 {
    let specular = reflectance * weight;
    let sum = specular + (1.0 - reflectance) * (1.0 - weight);
    if sum > 0.0 {
        return specular / sum;
    }
    return 0.0;
}

// The pdf by solid angle with which plastic_sample draws `wo` from the base.
fn plastic_pdf(p: Plastic, wi: vec3f, wo: vec3f) -> f32 {
    if wi.z <= 0.0 || wo.z <= 0.0 {
        return 0.0;
    }
    return (1.0 - specular_probability(fresnel(wi.z, p.eta), p.specular_weight)) * wo.z * FRAC_1_PI;
}

// The mirror image, or a direction from the base.
fn plastic_sample(p: Plastic, wi: vec3f, u1: f32, u2: vec2f) -> LobeSample {
    if wi.z <= 0.0 {
        return lobe_sample_none();
    }
    let probability = specular_probability(fresnel(wi.z, p.eta), p.specular_weight);
    if u1 < probability {
        return mirror_image(wi, probability);
    }
    let direction = cosine_hemisphere(u2);
    return smooth_sample(direction, plastic_pdf(p, wi, direction));
}

// A rough coat of index `eta` over a diffuse base, which reflects on the upper side.
struct RoughPlastic {
    eta: f32,
    alpha: f32,
    diffuse: vec3f,
    specular: vec3f,
    // Whether light changes its colour each time it returns to the base.
    nonlinear: bool,
    distribution: u32,
    // Whether only visible normals are sampled.
    visible: bool,
    // Weight of the specular lobe among samples, by the means of both lobes' factors; computed by the host.
    specular_weight: f32,
}

// The coat's transmittances for `wi` and `wo`, and its internal reflectance back into the base: values, and their derivatives
// by the roughness and by the index.
struct Coat {
    values: vec3f,
    by_alpha: vec3f,
    by_eta: vec3f,
}

fn rough_plastic_facets(p: RoughPlastic) -> Microfacets {
    return microfacets_new(p.distribution, vec2f(p.alpha), p.visible);
}

// The value times the cosine of `wo`.
fn rough_plastic_eval(p: RoughPlastic, coat: Coat, wi: vec3f, wo: vec3f) -> vec3f {
    if wi.z <= 0.0 || wo.z <= 0.0 {
        return vec3f(0.0);
    }
    let f = fresnel(mirror_cosine(wi, wo), p.eta);
    let mirrors = f * microfacets_reflection(rough_plastic_facets(p), wi, wo);
    let internal = coat.values.z;
    let through = coat.values.x * coat.values.y * wo.z;
    return p.specular * mirrors + through * vec3f(
        plastic_base(p.diffuse.x, internal, p.eta, p.nonlinear).x,
        plastic_base(p.diffuse.y, internal, p.eta, p.nonlinear).x,
        plastic_base(p.diffuse.z, internal, p.eta, p.nonlinear).x,
    );
}

// The pdf by solid angle with which rough_plastic_sample draws `wo`; `transmittance` is the coat's for `wi`.
fn rough_plastic_pdf(p: RoughPlastic, transmittance: f32, wi: vec3f, wo: vec3f) -> f32 {
    if wi.z <= 0.0 || wo.z <= 0.0 {
        return 0.0;
    }
    let probability = specular_probability(1.0 - transmittance, p.specular_weight);
    let mirrors = microfacets_reflection_pdf(rough_plastic_facets(p), wi, wo);
    return probability * mirrors + (1.0 - probability) * wo.z * FRAC_1_PI;
}

// Mirrors `wi` at a sampled normal, or draws a direction from the base; none if that is below the surface.
fn rough_plastic_sample(p: RoughPlastic, transmittance: f32, wi: vec3f, u1: f32, u2: vec2f) -> LobeSample {
    if wi.z <= 0.0 {
        return lobe_sample_none();
    }
    var direction = vec3f(0.0);
    if u1 < specular_probability(1.0 - transmittance, p.specular_weight) {
        direction = mirrored(wi, microfacets_sample_normal(rough_plastic_facets(p), wi, u2));
    } else {
        direction = cosine_hemisphere(u2);
    }
    return smooth_sample(direction, rough_plastic_pdf(p, transmittance, wi, direction));
}

#ifdef REPLAY

fn plastic_without_derivatives(p: Plastic) -> Plastic {
    return Plastic(0.0, vec3f(0.0), vec3f(0.0), p.nonlinear, p.specular_weight);
}

// Derivatives of plastic_eval, weighted by `d`.
fn plastic_eval_adjoint(p: Plastic, wi: vec3f, wo: vec3f, d: vec3f) -> Plastic {
    var out = plastic_without_derivatives(p);
    if wi.z <= 0.0 || wo.z <= 0.0 {
        return out;
    }
    let i = fresnel_slopes(wi.z, p.eta);
    let o = fresnel_slopes(wo.z, p.eta);
    let ti = 1.0 - i.x;
    let to = 1.0 - o.x;
    let inverse = 1.0 / p.eta;
    let internal = diffuse_fresnel(inverse);
    let by_eta = -diffuse_fresnel_slope(inverse) * inverse * inverse;
    for (var c = 0u; c < 3u; c++) {
        let base = plastic_base(p.diffuse[c], internal, p.eta, p.nonlinear);
        let weight = d[c] * wo.z;
        out.diffuse[c] = weight * ti * to * base.y;
        let through = ti * to * (base.z * by_eta - 2.0 * base.x * inverse);
        out.eta += weight * (through - base.x * (i.z * to + ti * o.z));
    }
    return out;
}

// Derivatives of plastic_discrete, weighted by `d`.
fn plastic_discrete_adjoint(p: Plastic, wi: vec3f, lobe: u32, d: vec3f) -> Plastic {
    var out = plastic_without_derivatives(p);
    if lobe == LOBE_REFLECTION && wi.z > 0.0 {
        let f = fresnel_slopes(wi.z, p.eta);
        out.specular = d * f.x;
        out.eta = dot(d, p.specular) * f.z;
    }
    return out;
}

// Derivatives of rough_plastic_eval, those of the coat's table included, weighted by `d`. Roughnesses that are clamped
// have none.
fn rough_plastic_eval_adjoint(p: RoughPlastic, coat: Coat, wi: vec3f, wo: vec3f, d: vec3f) -> RoughPlastic {
    var out = p;
    out.eta = 0.0;
    out.alpha = 0.0;
    out.diffuse = vec3f(0.0);
    out.specular = vec3f(0.0);
    if wi.z <= 0.0 || wo.z <= 0.0 {
        return out;
    }
    let f = fresnel_slopes(mirror_cosine(wi, wo), p.eta);
    let mirrors = microfacets_reflection_slopes(rough_plastic_facets(p), wi, wo);
    let weight = dot(d, p.specular);
    out.specular = d * (f.x * mirrors.x);
    out.eta = weight * f.z * mirrors.x;
    var by_alpha = weight * f.x * (mirrors.y + mirrors.z);
    let t = coat.values.x * coat.values.y;
    let t_by_alpha = coat.by_alpha.x * coat.values.y + coat.values.x * coat.by_alpha.y;
    let t_by_eta = coat.by_eta.x * coat.values.y + coat.values.x * coat.by_eta.y;
    for (var c = 0u; c < 3u; c++) {
        let base = plastic_base(p.diffuse[c], coat.values.z, p.eta, p.nonlinear);
        let share = d[c] * wo.z;
        out.diffuse[c] = share * t * base.y;
        by_alpha += share * (base.x * t_by_alpha + t * base.z * coat.by_alpha.z);
        out.eta += share * (base.x * t_by_eta + t * base.z * coat.by_eta.z - 2.0 * base.x * t / p.eta);
    }
    out.alpha = unclamped(p.alpha, by_alpha);
    return out;
}

#ifdef SLOPES

// The values of plastic_base for the three channels, weighted by `d` and summed.
fn plastic_bases(diffuse: vec3f, internal: f32, eta: f32, nonlinear: bool, d: vec3f) -> f32 {
    var sum = 0.0;
    for (var c = 0u; c < 3u; c++) {
        sum += d[c] * plastic_base(diffuse[c], internal, eta, nonlinear).x;
    }
    return sum;
}

// The gradients of plastic_eval, weighted by `d`, by the directions.
fn plastic_gradients(p: Plastic, wi: vec3f, wo: vec3f, d: vec3f) -> Gradients {
    if wi.z <= 0.0 || wo.z <= 0.0 {
        return no_gradients();
    }
    let i = fresnel_slopes(wi.z, p.eta);
    let o = fresnel_slopes(wo.z, p.eta);
    let weight = plastic_bases(p.diffuse, diffuse_fresnel(1.0 / p.eta), p.eta, p.nonlinear, d);
    let by_wi = -i.y * (1.0 - o.x) * wo.z;
    let by_wo = (1.0 - i.x) * (1.0 - o.x - o.y * wo.z);
    return Gradients(upright(weight * by_wi), upright(weight * by_wo));
}

// The gradients of rough_plastic_eval, weighted by `d`, by the directions. `by_cosine` are the derivatives of the coat's
// transmittances by the cosines.
fn rough_plastic_gradients(p: RoughPlastic, coat: Coat, by_cosine: vec2f, wi: vec3f, wo: vec3f, d: vec3f) -> Gradients {
    if wi.z <= 0.0 || wo.z <= 0.0 {
        return no_gradients();
    }
    let mirrors = dielectric_reflection_gradients(rough_plastic_facets(p), p.eta, wi, wo, dot(d, p.specular));
    let weight = plastic_bases(p.diffuse, coat.values.z, p.eta, p.nonlinear, d);
    return Gradients(
        mirrors.wi + upright(weight * by_cosine.x * coat.values.y * wo.z),
        mirrors.wo + upright(weight * coat.values.x * (coat.values.y + by_cosine.y * wo.z)),
    );
}

#endif
#endif
