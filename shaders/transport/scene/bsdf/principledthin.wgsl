// The principled BSDF of a thin sheet, whose two sides look alike and which light leaves where it entered (Burley2015).

#import transport/scene/bsdf/conductor
#import transport/scene/bsdf/disney
#import transport/scene/bsdf/fresnel
#import transport/scene/bsdf/local
#import transport/scene/bsdf/microfacet

// How the roughness of specular transmission grows with the index: factor and offset (Burley2015).
const WIDENING: vec2f = vec2f(0.65, -0.35);

// A thin sheet. All but `eta`, which is at least one, and `diff_trans`, which is at most two, lie in [0, 1].
struct PrincipledThin {
    base_color: vec3f,
    roughness: f32,
    anisotropic: f32,
    spec_trans: f32,
    eta: f32,
    spec_tint: f32,
    sheen: f32,
    sheen_tint: f32,
    flatness: f32,
    // Twice the share of diffuse light that leaves on the other side.
    diff_trans: f32,
    // Relative sampling rates of the lobes: diffuse reflection and transmission, specular reflection and transmission.
    rates: vec4f,
    // The least share of the samples that each lobe is given: above zero, lobes whose factors are zero have derivatives of
    // finite variance.
    least_share: f32,
}

fn principled_thin_facets(p: PrincipledThin) -> Microfacets {
    return microfacets_new(DISTRIBUTION_GGX, disney_alpha(p.roughness, p.anisotropic), true);
}

// The roughness of specular transmission, and its derivatives by roughness and by index.
fn principled_thin_widened(p: PrincipledThin) -> vec3f {
    let factor = WIDENING.x * p.eta + WIDENING.y;
    let roughness = p.roughness * factor;
    if roughness < 0.0 || roughness > 1.0 {
        return vec3f(select(0.0, 1.0, roughness > 1.0), 0.0, 0.0);
    }
    return vec3f(roughness, factor, p.roughness * WIDENING.x);
}

fn principled_thin_widened_facets(p: PrincipledThin) -> Microfacets {
    let alpha = disney_alpha(principled_thin_widened(p).x, p.anisotropic);
    return microfacets_new(DISTRIBUTION_GGX, alpha, true);
}

// The value times the cosine of `wo`.
fn principled_thin_eval(p: PrincipledThin, wi: vec3f, wo: vec3f) -> vec3f {
    let i = above(wi, wi);
    let o = above(wi, wo);
    let through = 0.5 * p.diff_trans;
    if i.z == 0.0 || o.z == 0.0 {
        return vec3f(0.0);
    }
    if o.z < 0.0 {
        var value = (1.0 - p.spec_trans) * through * (-o.z * FRAC_1_PI);
        if passes(i, o) {
            let f = fresnel(mirror_cosine(i, flipped(o)), p.eta);
            let glossy = microfacets_reflection(principled_thin_widened_facets(p), i, flipped(o));
            value += p.spec_trans * (1.0 - f) * glossy;
        }
        return p.base_color * value;
    }
    let cosine = mirror_cosine(i, o);
    let mirrors = p.spec_trans * microfacets_reflection(principled_thin_facets(p), i, o);
    let f = fresnel(cosine, p.eta);
    let tint = disney_tint(p.base_color);
    let tinted = mix(tint * normal_reflectance(p.eta), vec3f(1.0), schlick_weight(cosine));
    let diffusion = diffusion_new(i, o);
    let share = (1.0 - p.spec_trans) * (1.0 - through) * o.z;
    let shape = share * diffusion_shape_slopes(diffusion, p.roughness, p.flatness).x * FRAC_1_PI;
    let sheen = share * p.sheen * diffusion.sheen;
    let glossy = mix(vec3f(f), tinted, p.spec_tint) * mirrors;
    return glossy + p.base_color * shape + sheen * mix(vec3f(1.0), tint, p.sheen_tint);
}

// Whether `o` below the sheet leaves on the far side of the normal halfway between `i` and the mirror image of `o`.
fn passes(i: vec3f, o: vec3f) -> bool {
    return dot(o, halfway(i, flipped(o))) < 0.0;
}

// The probabilities of the lobes: diffuse reflection and transmission, specular reflection and transmission.
fn principled_thin_probabilities(p: PrincipledThin) -> vec4f {
    let solid = 1.0 - p.spec_trans;
    let through = 0.5 * p.diff_trans;
    let each = 0.5 * p.spec_trans;
    let weights = p.rates * vec4f(solid * (1.0 - through), solid * through, each, each);
    let sum = weights.x + weights.y + weights.z + weights.w;
    if sum <= 0.0 {
        return vec4f(0.0);
    }
    return p.least_share + (1.0 - 4.0 * p.least_share) * (weights / sum);
}

// The pdf by solid angle with which principled_thin_sample draws `wo`.
fn principled_thin_pdf(p: PrincipledThin, wi: vec3f, wo: vec3f) -> f32 {
    let i = above(wi, wi);
    let o = above(wi, wo);
    let lobes = principled_thin_probabilities(p);
    if i.z == 0.0 || o.z == 0.0 {
        return 0.0;
    }
    if o.z > 0.0 {
        return lobes.z * microfacets_reflection_pdf(principled_thin_facets(p), i, o) + lobes.x * o.z * FRAC_1_PI;
    }
    var glossy = 0.0;
    if passes(i, o) {
        glossy = microfacets_reflection_pdf(principled_thin_widened_facets(p), i, flipped(o));
    }
    return lobes.w * glossy - lobes.y * o.z * FRAC_1_PI;
}

// Draws a direction from one of the lobes; none if that is on the wrong side of the sheet.
fn principled_thin_sample(p: PrincipledThin, wi: vec3f, u1: f32, u2: vec2f) -> LobeSample {
    if wi.z == 0.0 {
        return lobe_sample_none();
    }
    let lobes = principled_thin_probabilities(p);
    let diffuse = lobes.x + lobes.y;
    let i = above(wi, wi);
    let straight = u1 >= diffuse + lobes.z;
    let through = straight || (u1 < diffuse && u1 >= lobes.x);
    var o = vec3f(0.0);
    if u1 < diffuse {
        o = cosine_hemisphere(u2);
    } else {
        var facets = principled_thin_facets(p);
        if straight {
            facets = principled_thin_widened_facets(p);
        }
        o = mirrored(i, microfacets_sample_normal(facets, i, u2));
    }
    if o.z <= 0.0 || (straight && !passes(i, flipped(o))) {
        return lobe_sample_none();
    }
    let direction = above(wi, select(o, flipped(o), through));
    return smooth_sample(direction, principled_thin_pdf(p, wi, direction));
}

#ifdef REPLAY

// Derivatives of principled_thin_eval, weighted by `d`.
fn principled_thin_eval_adjoint(p: PrincipledThin, wi: vec3f, wo: vec3f, d: vec3f) -> PrincipledThin {
    var out = PrincipledThin();
    out.rates = p.rates;
    out.least_share = p.least_share;
    let i = above(wi, wi);
    let o = above(wi, wo);
    if i.z == 0.0 || o.z == 0.0 {
        return out;
    }
    if o.z < 0.0 {
        principled_thin_transmission_adjoint(p, i, o, d, &out);
        return out;
    }
    let through = 0.5 * p.diff_trans;
    let solid = 1.0 - p.spec_trans;
    let cosine = mirror_cosine(i, o);
    let value = microfacets_reflection_slopes(principled_thin_facets(p), i, o);
    let f = fresnel_slopes(cosine, p.eta);
    let weight = schlick_weight(cosine);
    let tint = disney_tint(p.base_color);
    let r0 = normal_reflectance(p.eta);
    let diffusion = diffusion_new(i, o);
    let shape = diffusion_shape_slopes(diffusion, p.roughness, p.flatness) * FRAC_1_PI;
    let share = solid * (1.0 - through) * o.z;
    let tinted = mix(tint * r0, vec3f(1.0), weight);
    let d_mirror = d * (value.x * p.spec_trans);
    let d_tinted = d_mirror * (p.spec_tint * (1.0 - weight));
    let d_sheen = d * (share * p.sheen * diffusion.sheen);
    let by_mirrors = dot(d, mix(vec3f(f.x), tinted, p.spec_tint));
    let by_shape = dot(d, p.base_color);
    let by_sheen = dot(d, mix(vec3f(1.0), tint, p.sheen_tint));
    out.base_color = d * (share * shape.x)
        + disney_tint_adjoint(p.base_color, d_tinted * r0 + d_sheen * p.sheen_tint);
    out.spec_tint = dot(d_mirror, tinted - f.x);
    out.sheen_tint = dot(d_sheen, tint - 1.0);
    let by_f = (d_mirror.x + d_mirror.y + d_mirror.z) * (1.0 - p.spec_tint);
    out.eta = by_f * f.z + dot(d_tinted, tint) * normal_reflectance_slope(p.eta);
    out.flatness = by_shape * share * shape.z;
    out.sheen = by_sheen * share * diffusion.sheen;
    // The derivative by (1 - spec_trans) (1 - through), the common factor of the diffuse lobe and of sheen.
    let by_share = (by_shape * shape.x + by_sheen * p.sheen * diffusion.sheen) * o.z;
    out.diff_trans = -0.5 * solid * by_share;
    out.spec_trans = by_mirrors * value.x - (1.0 - through) * by_share;
    let by_alpha = disney_alpha_adjoint(p.roughness, p.anisotropic, by_mirrors * p.spec_trans * value.yz);
    out.roughness = by_alpha.x + by_shape * share * shape.y;
    out.anisotropic = by_alpha.y;
    return out;
}

// Derivatives of principled_thin_eval for `o` below the sheet.
fn principled_thin_transmission_adjoint(
    p: PrincipledThin,
    i: vec3f,
    o: vec3f,
    d: vec3f,
    out: ptr<function, PrincipledThin>,
) {
    let through = 0.5 * p.diff_trans;
    let solid = 1.0 - p.spec_trans;
    let lambert = -o.z * FRAC_1_PI;
    let weight = dot(d, p.base_color);
    var glossy = 0.0;
    if passes(i, o) {
        let f = fresnel_slopes(mirror_cosine(i, flipped(o)), p.eta);
        let value = microfacets_reflection_slopes(principled_thin_widened_facets(p), i, flipped(o));
        glossy = (1.0 - f.x) * value.x;
        let widened = principled_thin_widened(p);
        let by_alpha = weight * p.spec_trans * (1.0 - f.x) * value.yz;
        let by_widened = disney_alpha_adjoint(widened.x, p.anisotropic, by_alpha);
        (*out).roughness = by_widened.x * widened.y;
        (*out).anisotropic = by_widened.y;
        (*out).eta = by_widened.x * widened.z - weight * p.spec_trans * f.z * value.x;
    }
    (*out).base_color = d * (solid * through * lambert + p.spec_trans * glossy);
    (*out).spec_trans = weight * (glossy - through * lambert);
    (*out).diff_trans = weight * 0.5 * solid * lambert;
}

#ifdef SLOPES

// The gradients of principled_thin_eval, weighted by `d`, by the directions.
fn principled_thin_gradients(p: PrincipledThin, wi: vec3f, wo: vec3f, d: vec3f) -> Gradients {
    let i = above(wi, wi);
    let o = above(wi, wo);
    if i.z == 0.0 || o.z == 0.0 {
        return no_gradients();
    }
    return gradients_above(wi, principled_thin_upper_gradients(p, i, o, d));
}

// The same of directions of which `i` is on the upper side.
fn principled_thin_upper_gradients(p: PrincipledThin, i: vec3f, o: vec3f, d: vec3f) -> Gradients {
    let through = 0.5 * p.diff_trans;
    let solid = (1.0 - p.spec_trans) * FRAC_1_PI;
    if o.z < 0.0 {
        let weight = dot(d, p.base_color);
        let by = principled_thin_transmission_gradients(p, i, o);
        return Gradients(by.wi * weight, by.wo * weight + upright(-weight * solid * through));
    }
    // Specular reflection, and its derivative by the cosine between a direction and the normal halfway.
    let cosine = mirror_cosine(i, o);
    let facets = principled_thin_facets(p);
    let mirrors = p.spec_trans * microfacets_reflection(facets, i, o);
    let f = fresnel_slopes(cosine, p.eta);
    let tint = disney_tint(p.base_color);
    let base = tint * normal_reflectance(p.eta);
    let tinted = mix(base, vec3f(1.0), schlick_weight(cosine));
    let glossy = dot(d, mix(vec3f(f.x), tinted, p.spec_tint));
    let glossy_slope = dot(d, mix(vec3f(f.y), (1.0 - base) * schlick_slope(cosine), p.spec_tint));
    // Diffuse lobe and sheen, without the cosine of `o`.
    let diffusion = diffusion_new(i, o);
    let shape = diffusion_shape_slopes(diffusion, p.roughness, p.flatness).x;
    let by = diffusion_shape_by_cosines(diffusion, p.roughness, p.flatness);
    let by_mirror = diffusion_by_mirror_cosine(diffusion, p.roughness, p.flatness, cosine);
    let diffuse = dot(d, p.base_color) * solid * (1.0 - through);
    let sheen = dot(d, mix(vec3f(1.0), tint, p.sheen_tint)) * (1.0 - p.spec_trans) * (1.0 - through) * p.sheen;
    let all = diffuse * shape + sheen * diffusion.sheen;
    let all_slope = diffuse * by_mirror.x + sheen * by_mirror.y;
    let along = microfacets_reflection_gradients(facets, i, o);
    let mirror = mirror_gradients(i, o, along, glossy * mirrors, glossy_slope * mirrors + all_slope * o.z);
    return Gradients(
        mirror.wi + upright(diffuse * by.x * o.z),
        mirror.wo + upright(diffuse * by.y * o.z + all),
    );
}

// The gradients of specular transmission, over the base colour.
fn principled_thin_transmission_gradients(p: PrincipledThin, i: vec3f, o: vec3f) -> Gradients {
    if !passes(i, o) {
        return no_gradients();
    }
    let image = flipped(o);
    let facets = principled_thin_widened_facets(p);
    let f = fresnel_slopes(mirror_cosine(i, image), p.eta);
    let mirrors = p.spec_trans * microfacets_reflection(facets, i, image);
    let along = microfacets_reflection_gradients(facets, i, image);
    let by = mirror_gradients(i, image, along, (1.0 - f.x) * mirrors, -f.y * mirrors);
    return Gradients(by.wi, flipped(by.wo));
}

#endif
#endif
