// The principled BSDF of a solid: metals, plastics and glasses between them, with a clear coat and sheen (Burley2012,
// Burley2015).

#import common/math
#import transport/scene/bsdf/conductor
#import transport/scene/bsdf/dielectric
#import transport/scene/bsdf/disney
#import transport/scene/bsdf/fresnel
#import transport/scene/bsdf/local
#import transport/scene/bsdf/microfacet

// The clear coat's roughness at gloss 0 and at gloss 1, and that of its shadowing.
const COAT_ALPHA: vec2f = vec2f(0.1, 0.001);
const COAT_SHADOWING: f32 = 0.25;
// The clear coat's reflectance at normal incidence.
const COAT_REFLECTANCE: f32 = 0.04;

// A principled BSDF. All but `eta`, which is at least one, lie in [0, 1].
struct Principled {
    base_color: vec3f,
    roughness: f32,
    anisotropic: f32,
    metallic: f32,
    spec_trans: f32,
    // The index inside over that outside.
    eta: f32,
    spec_tint: f32,
    sheen: f32,
    sheen_tint: f32,
    flatness: f32,
    clearcoat: f32,
    clearcoat_gloss: f32,
    // Relative sampling rates of the diffuse, the specular and the clear coat's lobe.
    rates: vec3f,
    // The least share of the samples that each lobe is given on the upper side: above zero, lobes whose factors are zero
    // have derivatives of finite variance.
    least_share: f32,
}

// The index with the reflectance 0.08 `specular` at normal incidence.
fn eta_of_specular(specular: f32) -> f32 {
    return 2.0 / (1.0 - sqrt(0.08 * specular)) - 1.0;
}

// The derivative of eta_of_specular; at zero, where it is infinite, zero.
fn eta_of_specular_slope(specular: f32) -> f32 {
    if specular <= 0.0 {
        return 0.0;
    }
    let root = sqrt(0.08 * specular);
    let rest = 1.0 - root;
    return 0.08 / (root * rest * rest);
}

// The clear coat's density of normals (Burley2012), its logarithm's derivative by the gloss, and reflectance times
// shadowing.
struct ClearCoat {
    density: f32,
    slope: f32,
    // Reflectance times shadowing, and its derivative by the cosine between a direction and the normal halfway.
    factor: f32,
    factor_slope: f32,
}

fn clear_coat_new(gloss: f32, wi: vec3f, wo: vec3f) -> ClearCoat {
    let alpha = disney_lerp(COAT_ALPHA.x, COAT_ALPHA.y, gloss);
    let density = coat_density(alpha, halfway(wi, wo));
    let facets = microfacets_new(DISTRIBUTION_GGX, vec2f(COAT_SHADOWING), true);
    let cosine = mirror_cosine(wi, wo);
    let f = COAT_REFLECTANCE + (1.0 - COAT_REFLECTANCE) * schlick_weight(cosine);
    let shadowing = 0.25 * microfacets_shadowing(facets, wi) * microfacets_shadowing(facets, wo);
    let by_cosine = (1.0 - COAT_REFLECTANCE) * schlick_slope(cosine);
    return ClearCoat(density.x, density.y * (COAT_ALPHA.y - COAT_ALPHA.x), f * shadowing, by_cosine * shadowing);
}

// The density and its logarithm's derivative by the roughness.
fn coat_density(alpha: f32, m: vec3f) -> vec2f {
    let square = alpha * alpha;
    let log_square = 2.0 * logarithm(alpha);
    let below = m.x * m.x + m.y * m.y + square * m.z * m.z;
    let over = square - 1.0;
    let density = over * FRAC_1_PI / (log_square * below);
    let slope = 2.0 * alpha * (1.0 / over - m.z * m.z / below) - 2.0 / (alpha * log_square);
    return vec2f(density, slope);
}

fn principled_facets(p: Principled) -> Microfacets {
    return microfacets_new(DISTRIBUTION_GGX, disney_alpha(p.roughness, p.anisotropic), true);
}

// The shares of a diffuse base and of glass.
fn principled_shares(p: Principled) -> vec2f {
    return (1.0 - p.metallic) * vec2f(1.0 - p.spec_trans, p.spec_trans);
}

// The value for radiance times the cosine of `wo`.
fn principled_eval(p: Principled, wi: vec3f, wo: vec3f) -> vec3f {
    let shares = principled_shares(p);
    let facets = principled_facets(p);
    let sides = wi.z * wo.z;
    if sides < 0.0 {
        return sqrt(max(p.base_color, vec3f(0.0))) * (shares.y * dielectric_refraction(facets, p.eta, wi, wo));
    }
    if sides == 0.0 {
        return vec3f(0.0);
    }
    let mirrors = microfacets_reflection(facets, above(wi, wi), above(wi, wo));
    let f = fresnel(signed_mirror_cosine(wi, wo), p.eta);
    if wi.z < 0.0 {
        return vec3f(shares.y * f * mirrors);
    }
    let weight = schlick_weight(mirror_cosine(wi, wo));
    let coat = clear_coat_new(p.clearcoat_gloss, wi, wo);
    let diffusion = diffusion_new(wi, wo);
    let shape = shares.x * diffusion_shape_slopes(diffusion, p.roughness, p.flatness).x * FRAC_1_PI * wo.z;
    let sheen = p.sheen * (1.0 - p.metallic) * diffusion.sheen * wo.z;
    let clear = p.clearcoat * coat.density * coat.factor * wo.z;
    let tint = disney_tint(p.base_color);
    let tinted = mix(tint * normal_reflectance(p.eta), vec3f(1.0), weight);
    let metal = mix(p.base_color, vec3f(1.0), weight);
    let plain = mix(vec3f(f), tinted, p.spec_tint);
    let glossy = mix(plain, metal, p.metallic) * mirrors;
    return glossy + clear + p.base_color * shape + sheen * mix(vec3f(1.0), tint, p.sheen_tint);
}

// The probabilities of the diffuse, the specular and the clear coat's lobe.
fn principled_probabilities(p: Principled, wi: vec3f) -> vec3f {
    if wi.z <= 0.0 {
        return vec3f(0.0, 1.0, 0.0);
    }
    let weights = p.rates * vec3f(principled_shares(p).x, 1.0, 0.25 * p.clearcoat);
    let sum = weights.x + weights.y + weights.z;
    if sum <= 0.0 {
        return vec3f(0.0);
    }
    return p.least_share + (1.0 - 3.0 * p.least_share) * (weights / sum);
}

// The probability that the specular lobe transmits at a sampled normal of this reflectance.
fn principled_transmission(p: Principled, wi: vec3f, reflectance: f32) -> f32 {
    if reflectance >= 1.0 {
        return 0.0;
    }
    let glass = select(1.0, principled_shares(p).y, wi.z > 0.0);
    return clamp(glass * (1.0 - reflectance), p.least_share, 1.0 - p.least_share);
}

fn principled_coat_alpha(p: Principled) -> f32 {
    return disney_lerp(COAT_ALPHA.x, COAT_ALPHA.y, p.clearcoat_gloss);
}

// The pdf by solid angle with which principled_sample draws `wo`.
fn principled_pdf(p: Principled, wi: vec3f, wo: vec3f) -> f32 {
    let lobes = principled_probabilities(p, wi);
    let facets = principled_facets(p);
    let sides = wi.z * wo.z;
    if sides == 0.0 {
        return 0.0;
    }
    if sides < 0.0 {
        let refracts = refraction_pdf(facets, p.eta, wi, wo);
        return lobes.y * principled_transmission(p, wi, refracts.y) * refracts.x;
    }
    let f = fresnel(signed_mirror_cosine(wi, wo), p.eta);
    let mirrors = lobes.y * (1.0 - principled_transmission(p, wi, f));
    var pdf = mirrors * microfacets_reflection_pdf(facets, above(wi, wi), above(wi, wo));
    if wi.z > 0.0 {
        let m = halfway(wi, wo);
        let density = coat_density(principled_coat_alpha(p), m).x;
        let coat = 0.25 * density * m.z / max(mirror_cosine(wi, wo), 1.1754944e-38);
        pdf += lobes.z * coat + lobes.x * wo.z * FRAC_1_PI;
    }
    return pdf;
}

// Draws a direction from one of the lobes; none if that is on the wrong side of the surface.
fn principled_sample(p: Principled, wi: vec3f, u1: f32, u2: vec2f) -> LobeSample {
    if wi.z == 0.0 {
        return lobe_sample_none();
    }
    let lobes = principled_probabilities(p, wi);
    var it = 1.0;
    var crosses = false;
    var direction = vec3f(0.0);
    if u1 < lobes.x {
        direction = cosine_hemisphere(u2);
    } else if u1 >= lobes.x + lobes.y && lobes.z > 0.0 {
        direction = mirrored(wi, coat_normal(principled_coat_alpha(p), u2));
    } else {
        let m = microfacets_sample_normal(principled_facets(p), above(wi, wi), u2);
        let f = fresnel(dot(wi, m), p.eta);
        crosses = u1 < lobes.x + lobes.y * principled_transmission(p, wi, f);
        if crosses {
            it = relative_index(wi.z, p.eta);
            direction = refracted_at(wi, m, p.eta);
        } else {
            direction = mirrored(wi, m);
        }
    }
    if crosses == (direction.z * wi.z > 0.0) {
        return lobe_sample_none();
    }
    var drawn = smooth_sample(direction, principled_pdf(p, wi, direction));
    drawn.eta = it;
    return drawn;
}

// Samples a normal of the clear coat with the pdf of its density times the cosine.
fn coat_normal(alpha: f32, u: vec2f) -> vec3f {
    let square = alpha * alpha;
    let power = exp_full(logarithm(square) * (1.0 - u.x));
    let sine = min(max(power - square, 0.0) / (1.0 - square), 1.0);
    return vec3f(sqrt(sine) * circle(u.y), sqrt(1.0 - sine));
}

#ifdef REPLAY

// Derivatives of principled_eval, weighted by `d`. Transmitted light is multiplied by the root of the base colour, which
// counts as constant at zero, where its slope is infinite.
fn principled_eval_adjoint(p: Principled, wi: vec3f, wo: vec3f, d: vec3f) -> Principled {
    var out = Principled();
    out.rates = p.rates;
    out.least_share = p.least_share;
    let shares = principled_shares(p);
    let facets = principled_facets(p);
    let dielectric = 1.0 - p.metallic;
    var by_solid = 0.0;
    var by_glass = 0.0;
    var by_alpha = vec2f(0.0);
    let sides = wi.z * wo.z;
    if sides < 0.0 {
        let value = dielectric_refraction_slopes(facets, p.eta, wi, wo);
        let roots = sqrt(max(p.base_color, vec3f(0.0)));
        let weight = dot(d, roots);
        let slopes = select(vec3f(0.0), 0.5 / max(roots, vec3f(1.1754944e-38)), roots > vec3f(0.0));
        out.base_color = d * slopes * (shares.y * value.x);
        by_glass = weight * value.x;
        out.eta = weight * shares.y * value.w;
        by_alpha = weight * shares.y * value.yz;
    } else if sides > 0.0 && wi.z < 0.0 {
        let value = microfacets_reflection_slopes(facets, above(wi, wi), above(wi, wo));
        let f = fresnel_slopes(signed_mirror_cosine(wi, wo), p.eta);
        let weight = d.x + d.y + d.z;
        by_glass = weight * f.x * value.x;
        out.eta = weight * shares.y * f.z * value.x;
        by_alpha = weight * shares.y * f.x * value.yz;
    } else if sides > 0.0 {
        let value = microfacets_reflection_slopes(facets, wi, wo);
        let f = fresnel_slopes(mirror_cosine(wi, wo), p.eta);
        let weight = schlick_weight(mirror_cosine(wi, wo));
        let tint = disney_tint(p.base_color);
        let r0 = normal_reflectance(p.eta);
        let coat = clear_coat_new(p.clearcoat_gloss, wi, wo);
        let diffusion = diffusion_new(wi, wo);
        let shape = diffusion_shape_slopes(diffusion, p.roughness, p.flatness);
        let lambert = FRAC_1_PI * wo.z;
        let sheen = diffusion.sheen * wo.z;
        let metal = mix(p.base_color, vec3f(1.0), weight);
        let tinted = mix(tint * r0, vec3f(1.0), weight);
        let plain = mix(vec3f(f.x), tinted, p.spec_tint);
        let d_mirror = d * value.x;
        let d_plain = d_mirror * dielectric;
        let d_tinted = d_plain * p.spec_tint * (1.0 - weight);
        let d_sheen = d * (p.sheen * dielectric * sheen);
        let by_sheen = dot(d, mix(vec3f(1.0), tint, p.sheen_tint));
        let by_shape = dot(d, p.base_color) * lambert;
        out.base_color = d_mirror * (p.metallic * (1.0 - weight)) + d * (shares.x * shape.x * lambert)
            + disney_tint_adjoint(p.base_color, d_tinted * r0 + d_sheen * p.sheen_tint);
        out.metallic = dot(d_mirror, metal - plain) - by_sheen * p.sheen * sheen;
        out.spec_tint = dot(d_plain, tinted - f.x);
        out.sheen_tint = dot(d_sheen, tint - 1.0);
        let by_f = (d_plain.x + d_plain.y + d_plain.z) * (1.0 - p.spec_tint);
        out.eta = by_f * f.z + dot(d_tinted, tint) * normal_reflectance_slope(p.eta);
        by_alpha = dot(d, mix(plain, metal, p.metallic)) * value.yz;
        by_solid = by_shape * shape.x;
        out.roughness = by_shape * shares.x * shape.y;
        out.flatness = by_shape * shares.x * shape.z;
        out.sheen = by_sheen * dielectric * sheen;
        out.clearcoat = (d.x + d.y + d.z) * coat.density * coat.factor * wo.z;
        out.clearcoat_gloss = out.clearcoat * p.clearcoat * coat.slope;
    } else {
        return out;
    }
    let shape = disney_alpha_adjoint(p.roughness, p.anisotropic, by_alpha);
    out.roughness += shape.x;
    out.anisotropic = shape.y;
    out.metallic -= by_solid * (1.0 - p.spec_trans) + by_glass * p.spec_trans;
    out.spec_trans = dielectric * (by_glass - by_solid);
    return out;
}

#ifdef SLOPES

// The gradient of the logarithm of coat_density by the normal's components.
fn coat_density_gradient(alpha: f32, m: vec3f) -> vec3f {
    let square = alpha * alpha;
    let factor = -2.0 / (m.x * m.x + m.y * m.y + square * m.z * m.z);
    return factor * vec3f(m.x, m.y, square * m.z);
}

// The gradients of the logarithm of the clear coat's density times shadowing by the two directions.
fn clear_coat_gradients(gloss: f32, wi: vec3f, wo: vec3f) -> Gradients {
    let alpha = disney_lerp(COAT_ALPHA.x, COAT_ALPHA.y, gloss);
    let facets = microfacets_new(DISTRIBUTION_GGX, vec2f(COAT_SHADOWING), true);
    let by_h = along_sphere(wi + wo, coat_density_gradient(alpha, halfway(wi, wo)));
    return Gradients(
        microfacets_shadowing_gradient(facets, wi) + by_h,
        microfacets_shadowing_gradient(facets, wo) + by_h,
    );
}

// The gradients of principled_eval, weighted by `d`, by the directions.
fn principled_gradients(p: Principled, wi: vec3f, wo: vec3f, d: vec3f) -> Gradients {
    let facets = principled_facets(p);
    let shares = principled_shares(p);
    let sides = wi.z * wo.z;
    if sides < 0.0 {
        let weight = dot(d, sqrt(max(p.base_color, vec3f(0.0)))) * shares.y;
        return dielectric_refraction_gradients(facets, p.eta, wi, wo, weight);
    }
    if sides == 0.0 {
        return no_gradients();
    }
    let sum = d.x + d.y + d.z;
    if wi.z < 0.0 {
        return dielectric_reflection_gradients(facets, p.eta, wi, wo, sum * shares.y);
    }
    // Specular reflection, and its derivative by the cosine between a direction and the normal halfway.
    let cosine = mirror_cosine(wi, wo);
    let mirrors = microfacets_reflection(facets, wi, wo);
    let weight = schlick_weight(cosine);
    let slope = schlick_slope(cosine);
    let f = fresnel_slopes(cosine, p.eta);
    let tint = disney_tint(p.base_color);
    let base = tint * normal_reflectance(p.eta);
    let plain = mix(vec3f(f.x), mix(base, vec3f(1.0), weight), p.spec_tint);
    let plain_slope = mix(vec3f(f.y), (1.0 - base) * slope, p.spec_tint);
    let glossy = dot(d, mix(plain, mix(p.base_color, vec3f(1.0), weight), p.metallic));
    let glossy_slope = dot(d, mix(plain_slope, (1.0 - p.base_color) * slope, p.metallic));
    // Diffuse lobe, sheen and clear coat, without the cosine of `wo`.
    let diffusion = diffusion_new(wi, wo);
    let shape = diffusion_shape_slopes(diffusion, p.roughness, p.flatness).x;
    let by = diffusion_shape_by_cosines(diffusion, p.roughness, p.flatness);
    let by_mirror = diffusion_by_mirror_cosine(diffusion, p.roughness, p.flatness, cosine);
    let diffuse = dot(d, p.base_color) * shares.x * FRAC_1_PI;
    let sheen = dot(d, mix(vec3f(1.0), tint, p.sheen_tint)) * p.sheen * (1.0 - p.metallic);
    let coat = clear_coat_new(p.clearcoat_gloss, wi, wo);
    let clear = sum * p.clearcoat * coat.density;
    let all = diffuse * shape + sheen * diffusion.sheen + clear * coat.factor;
    let all_slope = diffuse * by_mirror.x + sheen * by_mirror.y + clear * coat.factor_slope;
    let along = microfacets_reflection_gradients(facets, wi, wo);
    let mirror = mirror_gradients(wi, wo, along, glossy * mirrors, glossy_slope * mirrors + all_slope * wo.z);
    let coated = clear_coat_gradients(p.clearcoat_gloss, wi, wo);
    let coat_value = clear * coat.factor * wo.z;
    return Gradients(
        mirror.wi + upright(diffuse * by.x * wo.z) + coated.wi * coat_value,
        mirror.wo + upright(diffuse * by.y * wo.z + all) + coated.wo * coat_value,
    );
}

#endif
#endif
