// Interfaces of dielectrics: smooth, a thin plate, and rough.

#import transport/scene/bsdf/conductor
#import transport/scene/bsdf/fresnel
#import transport/scene/bsdf/local
#import transport/scene/bsdf/microfacet

// A smooth interface; `eta` is the index inside over that outside.
struct Dielectric {
    eta: f32,
    // Factors of what is reflected and of what is transmitted.
    reflection: vec3f,
    transmission: vec3f,
}

// The factor of the mirror image or of the refracted direction, for radiance: refraction divides it by the square of the
// relative index.
fn dielectric_discrete(p: Dielectric, wi: vec3f, lobe: u32) -> vec3f {
    let f = fresnel(wi.z, p.eta);
    if lobe == LOBE_REFLECTION {
        return p.reflection * f;
    }
    if lobe == LOBE_TRANSMISSION {
        let ti = 1.0 / relative_index(wi.z, p.eta);
        return p.transmission * ((1.0 - f) * ti * ti);
    }
    return vec3f(0.0);
}

// The mirror image with the probability of the reflectance, else the refracted direction.
fn dielectric_sample(p: Dielectric, wi: vec3f, u1: f32, u2: vec2f) -> LobeSample {
    if wi.z == 0.0 {
        return lobe_sample_none();
    }
    let f = fresnel(wi.z, p.eta);
    if u1 < f {
        return mirror_image(wi, f);
    }
    let it = relative_index(wi.z, p.eta);
    let direction = refracted(wi, vec3f(0.0, 0.0, 1.0), 1.0 / it, refracted_cosine(wi.z, p.eta));
    return LobeSample(direction, 1.0 - f, LOBE_TRANSMISSION, it);
}

// The mirror image of `wi`, drawn with this probability.
fn mirror_image(wi: vec3f, probability: f32) -> LobeSample {
    return LobeSample(vec3f(-wi.xy, wi.z), probability, LOBE_REFLECTION, 1.0);
}

// A plate so thin that light leaves it where it entered, in the direction it came; `eta` is its index over that around
// it.
struct ThinDielectric {
    eta: f32,
    // Factors of what is reflected and of what is transmitted.
    reflection: vec3f,
    transmission: vec3f,
}

// The factor of the mirror image, or of the direction straight on.
fn thin_dielectric_discrete(p: ThinDielectric, wi: vec3f, lobe: u32) -> vec3f {
    let f = plate(fresnel(abs(wi.z), p.eta));
    if lobe == LOBE_REFLECTION {
        return p.reflection * f;
    }
    return select(vec3f(0.0), p.transmission * (1.0 - f), lobe == LOBE_STRAIGHT);
}

// The mirror image with the probability of the reflectance, else straight on.
fn thin_dielectric_sample(p: ThinDielectric, wi: vec3f, u1: f32, u2: vec2f) -> LobeSample {
    if wi.z == 0.0 {
        return lobe_sample_none();
    }
    let f = plate(fresnel(abs(wi.z), p.eta));
    if u1 < f {
        return mirror_image(wi, f);
    }
    return LobeSample(-wi, 1.0 - f, LOBE_STRAIGHT, 1.0);
}

// A rough interface; `eta`, the index inside over that outside, is not one.
struct RoughDielectric {
    eta: f32,
    alpha_u: f32,
    alpha_v: f32,
    // Factors of what is reflected and of what is transmitted.
    reflection: vec3f,
    transmission: vec3f,
    distribution: u32,
    // Whether only visible normals are sampled.
    visible: bool,
}

fn rough_dielectric_facets(p: RoughDielectric) -> Microfacets {
    return microfacets_new(p.distribution, vec2f(p.alpha_u, p.alpha_v), p.visible);
}

// The value for radiance times the cosine of `wo`.
fn rough_dielectric_eval(p: RoughDielectric, wi: vec3f, wo: vec3f) -> vec3f {
    let sides = wi.z * wo.z;
    let facets = rough_dielectric_facets(p);
    if sides > 0.0 {
        let value = microfacets_reflection(facets, above(wi, wi), above(wi, wo));
        return p.reflection * (fresnel(signed_mirror_cosine(wi, wo), p.eta) * value);
    }
    if sides < 0.0 {
        return p.transmission * dielectric_refraction(facets, p.eta, wi, wo);
    }
    return vec3f(0.0);
}

// The cosine between `wi` and the upper normal halfway to `wo`, on the same side.
fn signed_mirror_cosine(wi: vec3f, wo: vec3f) -> f32 {
    let cosine = mirror_cosine(wi, wo);
    return select(cosine, -cosine, wi.z < 0.0);
}

// The refraction of a rough interface of index `eta` from `wo` to `wi`, on its other side, for radiance: the squared index by
// which solid angles shrink and that by which radiance grows cancel.
fn dielectric_refraction(facets: Microfacets, eta: f32, wi: vec3f, wo: vec3f) -> f32 {
    let e = relative_index(wi.z, eta);
    let i = above(wi, wi);
    let o = above(wi, wo);
    let value = microfacets_refraction(facets, i, o, e);
    if !(value > 0.0) {
        return 0.0;
    }
    return (1.0 - fresnel(bend_new(i, o, e).wi_m, e)) * value;
}

// The distribution that normals are sampled from. It is wider where all normals are sampled, not only visible ones: else the
// weights of samples would grow at grazing angles (Walter2007).
fn rough_dielectric_sampled_facets(p: RoughDielectric, wi: vec3f) -> Microfacets {
    var facets = rough_dielectric_facets(p);
    facets.alpha *= select(1.2 - 0.2 * sqrt(abs(wi.z)), 1.0, p.visible);
    return facets;
}

// The pdf by solid angle with which rough_dielectric_sample draws `wo`.
fn rough_dielectric_pdf(p: RoughDielectric, wi: vec3f, wo: vec3f) -> f32 {
    let sides = wi.z * wo.z;
    let facets = rough_dielectric_sampled_facets(p, wi);
    if sides > 0.0 {
        let f = fresnel(signed_mirror_cosine(wi, wo), p.eta);
        return f * microfacets_reflection_pdf(facets, above(wi, wi), above(wi, wo));
    }
    if sides < 0.0 {
        let refracts = refraction_pdf(facets, p.eta, wi, wo);
        return (1.0 - refracts.y) * refracts.x;
    }
    return 0.0;
}

// Mirrors `wi` at a sampled normal with the probability of the reflectance, else refracts it there; none if that is on
// the wrong side of the surface.
fn rough_dielectric_sample(p: RoughDielectric, wi: vec3f, u1: f32, u2: vec2f) -> LobeSample {
    if wi.z == 0.0 {
        return lobe_sample_none();
    }
    let m = microfacets_sample_normal(rough_dielectric_sampled_facets(p, wi), above(wi, wi), u2);
    let cosine = dot(wi, m);
    if cosine * wi.z <= 0.0 {
        return lobe_sample_none();
    }
    let mirrors = u1 < fresnel(cosine, p.eta);
    var direction = vec3f(0.0);
    if mirrors {
        direction = mirrored(wi, m);
    } else {
        direction = refracted_at(wi, m, p.eta);
    }
    if mirrors != (direction.z * wi.z > 0.0) {
        return lobe_sample_none();
    }
    var drawn = smooth_sample(direction, rough_dielectric_pdf(p, wi, direction));
    drawn.eta = select(relative_index(wi.z, p.eta), 1.0, mirrors);
    return drawn;
}

// `wi` refracted at the upper normal `m`.
fn refracted_at(wi: vec3f, m: vec3f, eta: f32) -> vec3f {
    let cosine = dot(wi, m);
    return refracted(wi, m, 1.0 / relative_index(cosine, eta), refracted_cosine(cosine, eta));
}

// The pdf of `wo` on the other side, if `wi` is refracted at sampled normals, and the reflectance at its normal.
fn refraction_pdf(facets: Microfacets, eta: f32, wi: vec3f, wo: vec3f) -> vec2f {
    let e = relative_index(wi.z, eta);
    let i = above(wi, wi);
    let bend = bend_new(i, above(wi, wo), e);
    if !bend.exists {
        return vec2f(0.0);
    }
    let jacobian = -e * e * bend.wo_m / bend.square;
    return vec2f(microfacets_pdf(facets, i, bend.m) * jacobian, fresnel(bend.wi_m, e));
}

#ifdef REPLAY

// Derivatives of dielectric_discrete, weighted by `d`, with the refracted direction held: that by `eta` is not complete,
// because another index refracts elsewhere.
fn dielectric_discrete_adjoint(p: Dielectric, wi: vec3f, lobe: u32, d: vec3f) -> Dielectric {
    let f = fresnel_slopes(wi.z, p.eta);
    if lobe == LOBE_REFLECTION {
        return Dielectric(dot(d, p.reflection) * f.z, d * f.x, vec3f(0.0));
    }
    if lobe != LOBE_TRANSMISSION {
        return Dielectric(0.0, vec3f(0.0), vec3f(0.0));
    }
    let ti = 1.0 / relative_index(wi.z, p.eta);
    let square = ti * ti;
    let passed = 1.0 - f.x;
    // ti is 1 / eta from outside and eta from inside.
    let gathering = select(-2.0, 2.0, wi.z < 0.0) * square / p.eta;
    let by_eta = dot(d, p.transmission) * (passed * gathering - f.z * square);
    return Dielectric(by_eta, vec3f(0.0), d * (passed * square));
}

// Derivatives of thin_dielectric_discrete, weighted by `d`.
fn thin_dielectric_discrete_adjoint(p: ThinDielectric, wi: vec3f, lobe: u32, d: vec3f) -> ThinDielectric {
    let single = fresnel_slopes(abs(wi.z), p.eta);
    let f = plate(single.x);
    let by_eta = plate_slope(single.x) * single.z;
    if lobe == LOBE_REFLECTION {
        return ThinDielectric(dot(d, p.reflection) * by_eta, d * f, vec3f(0.0));
    }
    if lobe != LOBE_STRAIGHT {
        return ThinDielectric(0.0, vec3f(0.0), vec3f(0.0));
    }
    return ThinDielectric(-dot(d, p.transmission) * by_eta, vec3f(0.0), d * (1.0 - f));
}

// Derivatives of rough_dielectric_eval, weighted by `d`. Roughnesses that are clamped have none.
fn rough_dielectric_eval_adjoint(p: RoughDielectric, wi: vec3f, wo: vec3f, d: vec3f) -> RoughDielectric {
    var out = p;
    out.eta = 0.0;
    out.reflection = vec3f(0.0);
    out.transmission = vec3f(0.0);
    var alpha = vec2f(0.0);
    let sides = wi.z * wo.z;
    let facets = rough_dielectric_facets(p);
    if sides > 0.0 {
        let value = microfacets_reflection_slopes(facets, above(wi, wi), above(wi, wo));
        let f = fresnel_slopes(signed_mirror_cosine(wi, wo), p.eta);
        let weight = dot(d, p.reflection);
        out.eta = weight * f.z * value.x;
        out.reflection = d * (f.x * value.x);
        alpha = weight * f.x * value.yz;
    } else if sides < 0.0 {
        let value = dielectric_refraction_slopes(facets, p.eta, wi, wo);
        let weight = dot(d, p.transmission);
        out.eta = weight * value.w;
        out.transmission = d * value.x;
        alpha = weight * value.yz;
    }
    out.alpha_u = unclamped(p.alpha_u, alpha.x);
    out.alpha_v = unclamped(p.alpha_v, alpha.y);
    return out;
}

// dielectric_refraction and its derivatives by the two roughnesses and by `eta`.
fn dielectric_refraction_slopes(facets: Microfacets, eta: f32, wi: vec3f, wo: vec3f) -> vec4f {
    let e = relative_index(wi.z, eta);
    let i = above(wi, wi);
    let o = above(wi, wo);
    let value = microfacets_refraction_slopes(facets, i, o, e);
    if !(value.x > 0.0) {
        return vec4f(0.0);
    }
    let bend = bend_new(i, o, e);
    let f = fresnel_slopes(bend.wi_m, e);
    let passed = 1.0 - f.x;
    // The half vector turns with the index, and so does the cosine of incidence on it.
    let turning = (dot(i, o) - bend.wi_m * dot(o, bend.m)) / bend.length;
    let by_e = passed * value.w - value.x * (f.z + f.y * turning);
    return vec4f(passed * value.xyz, select(by_e, -by_e * e * e, wi.z < 0.0));
}

#ifdef SLOPES

// The gradients of rough_dielectric_eval, weighted by `d`, by the directions.
fn rough_dielectric_gradients(p: RoughDielectric, wi: vec3f, wo: vec3f, d: vec3f) -> Gradients {
    let facets = rough_dielectric_facets(p);
    if wi.z * wo.z > 0.0 {
        return dielectric_reflection_gradients(facets, p.eta, wi, wo, dot(d, p.reflection));
    }
    return dielectric_refraction_gradients(facets, p.eta, wi, wo, dot(d, p.transmission));
}

// The gradients by the directions of a rough interface's reflection, times `factor`; both directions are on one side.
fn dielectric_reflection_gradients(facets: Microfacets, eta: f32, wi: vec3f, wo: vec3f, factor: f32) -> Gradients {
    let i = above(wi, wi);
    let o = above(wi, wo);
    let f = fresnel_slopes(signed_mirror_cosine(wi, wo), eta);
    let weight = factor * microfacets_reflection(facets, i, o);
    let by_cosine = select(f.y, -f.y, wi.z < 0.0) * weight;
    let along = microfacets_reflection_gradients(facets, i, o);
    return gradients_above(wi, mirror_gradients(i, o, along, weight * f.x, by_cosine));
}

// The gradients of dielectric_refraction by the directions, times `factor`; zero where they are on one side.
fn dielectric_refraction_gradients(facets: Microfacets, eta: f32, wi: vec3f, wo: vec3f, factor: f32) -> Gradients {
    let i = above(wi, wi);
    let o = above(wi, wo);
    let e = relative_index(wi.z, eta);
    let value = microfacets_refraction(facets, i, o, e);
    let bend = bend_new(i, o, e);
    if !bend.exists || o.z >= 0.0 || !(value > 0.0) {
        return no_gradients();
    }
    let f = fresnel_slopes(bend.wi_m, e);
    let passed = 1.0 - f.x;
    if !(passed > 0.0) {
        return no_gradients();
    }
    let along = microfacets_refraction_gradients(facets, i, o, e, bend, -f.y / passed);
    let scale = passed * value * factor;
    return gradients_above(wi, Gradients(along.wi * scale, along.wo * scale));
}

#endif
#endif
