// Microfacet distributions: the normals of the small mirrors that a rough surface is made of, how these shadow each
// other, and how normals are sampled (Walter2007, Heitz2014).
//
// Directions and normals are on the upper side, z > 0. Shadowing is separable: the product of the two directions'
// factors (Smith1967).

#import transport/scene/bsdf/beckmann
#import transport/scene/bsdf/local

// Roughnesses below this one act as this one.
const MIN_ALPHA: f32 = 1e-4;
// Roughnesses below this one have no derivative: less than MIN_ALPHA by more than interpolation rounds it.
const CLAMPED_ALPHA: f32 = 9.9999e-5;
// Densities of projected normals up to this one count as zero.
const LEAST_DENSITY: f32 = 1e-20;
// Beckmann's exponent from which on the density counts as zero, whatever the roughness: the exponential has an end.
const MAX_EXPONENT: f32 = 80.0;
// The cotangent over the roughness from which on Beckmann's shadowing counts as none.
const NO_SHADOWING: f32 = 1.6;

// The distribution of normals.
const DISTRIBUTION_BECKMANN: u32 = 0u;
const DISTRIBUTION_GGX: u32 = 1u;

// A distribution of normals with its roughness along the two tangents.
struct Microfacets {
    distribution: u32,
    alpha: vec2f,
    // Whether only visible normals are sampled.
    visible: bool,
}

// A distribution, its roughnesses at least MIN_ALPHA.
fn microfacets_new(distribution: u32, alpha: vec2f, visible: bool) -> Microfacets {
    return Microfacets(distribution, max(alpha, vec2f(MIN_ALPHA)), visible);
}

// The density D of normals: the integral of D times the cosine is one.
fn microfacets_density(facets: Microfacets, m: vec3f) -> f32 {
    if !(m.z > 0.0) {
        return 0.0;
    }
    let part = microfacets_stretched(facets, m);
    let scale = PI * facets.alpha.x * facets.alpha.y;
    var density = 0.0;
    if facets.distribution == DISTRIBUTION_BECKMANN {
        let exponent = part.x / part.y;
        if !(exponent < MAX_EXPONENT) {
            return 0.0;
        }
        density = exp_full(-exponent) / (scale * part.y * part.y);
    } else {
        let sum = part.x + part.y;
        density = 1.0 / (scale * sum * sum);
    }
    return select(0.0, density, density * m.z > LEAST_DENSITY);
}

// (x / alpha_u)^2 + (y / alpha_v)^2 and z^2.
fn microfacets_stretched(facets: Microfacets, m: vec3f) -> vec2f {
    let slope = m.xy / facets.alpha;
    return vec2f(dot(slope, slope), m.z * m.z);
}

// (alpha_u x)^2 + (alpha_v y)^2 and |z|.
fn microfacets_stretched_direction(facets: Microfacets, v: vec3f) -> vec2f {
    let wide = facets.alpha * v.xy;
    return vec2f(dot(wide, wide), abs(v.z));
}

// Beckmann's cotangent over the roughness, and the root of the part (alpha_u x)^2 + (alpha_v y)^2; both zero where nothing is
// shadowed.
fn microfacets_steepness(part: vec2f) -> vec2f {
    let root = sqrt(part.x);
    if !(root * NO_SHADOWING - part.y > 0.0) {
        return vec2f(0.0);
    }
    return vec2f(part.y / root, root);
}

// The share of the normals facing `v` that are not shadowed in this direction, over the cosine of `v`: that quotient is
// finite at grazing angles.
fn microfacets_shadowing_over_cosine(facets: Microfacets, v: vec3f) -> f32 {
    let part = microfacets_stretched_direction(facets, v);
    if facets.distribution == DISTRIBUTION_BECKMANN {
        let steep = microfacets_steepness(part);
        if steep.y == 0.0 {
            return 1.0 / part.y;
        }
        return (3.535 + 2.181 * steep.x) / (steep.y * fit_below(steep.x));
    }
    return 2.0 / (part.y + sqrt(part.y * part.y + part.x));
}

// The share of the normals facing `v` that are not shadowed in this direction.
fn microfacets_shadowing(facets: Microfacets, v: vec3f) -> f32 {
    return abs(v.z) * microfacets_shadowing_over_cosine(facets, v);
}

fn fit_below(a: f32) -> f32 {
    return 1.0 + (2.276 + 2.577 * a) * a;
}

// Reflection by the microfacets without Fresnel's factor, times the cosine of `wo`: D G / (4 cos wi).
fn microfacets_reflection(facets: Microfacets, wi: vec3f, wo: vec3f) -> f32 {
    let shadowing = microfacets_shadowing_over_cosine(facets, wi) * microfacets_shadowing(facets, wo);
    return 0.25 * microfacets_density(facets, halfway(wi, wo)) * shadowing;
}

// The normal at which `wo` below the surface is refracted into `wi` above it.
struct Bend {
    // wi + e wo
    h: vec3f,
    // h over `length`, on the upper side
    m: vec3f,
    // |h|^2
    square: f32,
    // |h|, negative if h points downwards
    length: f32,
    // The cosines with m of `wi`, positive, and `wo`, negative.
    wi_m: f32,
    wo_m: f32,
    // False where a direction sees the back of the normal, or no normal refracts `wo` into `wi`.
    exists: bool,
}

fn bend_new(wi: vec3f, wo: vec3f, e: f32) -> Bend {
    let h = wi + e * wo;
    let square = dot(h, h);
    let root = sqrt(square);
    let length = select(root, -root, h.z < 0.0);
    if !(square > 0.0) {
        return Bend(h, vec3f(0.0), square, length, 0.0, 0.0, false);
    }
    let m = h / length;
    let wi_m = dot(wi, m);
    let wo_m = dot(wo, m);
    return Bend(h, m, square, length, wi_m, wo_m, wi_m > 0.0 && wo_m < 0.0);
}

// Refraction by the microfacets, times the cosine of `wo`, without Fresnel's factor and without the factor e^2 by which
// refraction changes solid angles: D G |wi.m| |wo.m| / (cos wi |h|^2), with h = wi + e wo for the relative index e. `wi` is
// above the surface and `wo` below it. Zero where one of them sees the back of m.
fn microfacets_refraction(facets: Microfacets, wi: vec3f, wo: vec3f, e: f32) -> f32 {
    let bend = bend_new(wi, wo, e);
    if !bend.exists {
        return 0.0;
    }
    let sides = -bend.wi_m * bend.wo_m / bend.square;
    let shadowing = microfacets_shadowing_over_cosine(facets, wi) * microfacets_shadowing(facets, wo);
    return microfacets_density(facets, bend.m) * shadowing * sides;
}

// The pdf by solid angle with which microfacets_sample_normal draws `m` for `wi`.
fn microfacets_pdf(facets: Microfacets, wi: vec3f, m: vec3f) -> f32 {
    let density = microfacets_density(facets, m);
    if facets.visible {
        return density * microfacets_shadowing_over_cosine(facets, wi) * max(dot(wi, m), 0.0);
    }
    return density * m.z;
}

// The pdf of the direction that a sampled normal reflects `wi` into.
fn microfacets_reflection_pdf(facets: Microfacets, wi: vec3f, wo: vec3f) -> f32 {
    let m = halfway(wi, wo);
    let density = microfacets_density(facets, m);
    if facets.visible {
        return 0.25 * density * microfacets_shadowing_over_cosine(facets, wi);
    }
    return 0.25 * density * m.z / max(dot(wo, m), 1.1754944e-38);
}

// Samples a normal, of those visible from `wi` or of all.
fn microfacets_sample_normal(facets: Microfacets, wi: vec3f, u: vec2f) -> vec3f {
    let alpha = facets.alpha;
    if !facets.visible {
        var square = u.x / (1.0 - u.x);
        if facets.distribution == DISTRIBUTION_BECKMANN {
            square = -logarithm(1.0 - u.x);
        }
        return normalised(vec3f(alpha * sqrt(max(square, 0.0)) * circle(u.y), 1.0));
    }
    // Seen from the stretched direction the surface has a roughness of one.
    let v = normalised(vec3f(alpha * wi.xy, wi.z));
    if facets.distribution == DISTRIBUTION_BECKMANN {
        return normalised(vec3f(-alpha * visible_slopes(v, u), 1.0));
    }
    // Normals are halfway between v and a uniform point of a spherical cap (Dupuy2023).
    let height = (1.0 - u.y) * (1.0 + v.z);
    let z = height - v.z;
    let sine = sqrt(max(1.0 - z * z, 0.0));
    return normalised(vec3f(alpha * (sine * circle(u.x) + v.xy), height));
}

#ifdef REPLAY

// The derivatives of the logarithm of the density by the two roughnesses.
fn microfacets_density_slopes(facets: Microfacets, m: vec3f) -> vec2f {
    let part = microfacets_stretched(facets, m);
    let beckmann = facets.distribution == DISTRIBUTION_BECKMANN;
    let factor = select(4.0 / (part.x + part.y), 2.0 / part.y, beckmann);
    let slope = m.xy / facets.alpha;
    return (slope * slope * factor - 1.0) / facets.alpha;
}

// The derivative along `d` of the logarithm of D(h / |h|) / |h|^4, D being the density.
fn microfacets_density_slope_along(facets: Microfacets, h: vec3f, d: vec3f) -> f32 {
    let part = microfacets_stretched(facets, h);
    let along = 2.0 * h.xy * d.xy / (facets.alpha * facets.alpha);
    let dq = along.x + along.y;
    let dz2 = 2.0 * h.z * d.z;
    if facets.distribution == DISTRIBUTION_BECKMANN {
        return (part.x * dz2 / part.y - dq - 2.0 * dz2) / part.y;
    }
    return -2.0 * (dq + dz2) / (part.x + part.y);
}

// The derivatives of the logarithm of the shadowing by the two roughnesses.
fn microfacets_shadowing_slopes(facets: Microfacets, v: vec3f) -> vec2f {
    let part = microfacets_stretched_direction(facets, v);
    var factor = 0.0;
    if facets.distribution == DISTRIBUTION_BECKMANN {
        let steep = microfacets_steepness(part);
        if steep.y == 0.0 {
            return vec2f(0.0);
        }
        let a = steep.x;
        let over = (3.535 + 4.362 * a) / (3.535 + 2.181 * a);
        let below = a * (2.276 + 5.154 * a) / fit_below(a);
        factor = (over - below) / part.x;
    } else {
        let root = sqrt(part.y * part.y + part.x);
        factor = 1.0 / (root * (part.y + root));
    }
    return -facets.alpha * v.xy * v.xy * factor;
}

// The logarithmic derivatives of density and shadowings by the two roughnesses.
fn microfacets_log_slopes(facets: Microfacets, wi: vec3f, wo: vec3f, m: vec3f) -> vec2f {
    let shadowing = microfacets_shadowing_slopes(facets, wi) + microfacets_shadowing_slopes(facets, wo);
    return microfacets_density_slopes(facets, m) + shadowing;
}

// microfacets_reflection and its derivatives by the two roughnesses.
fn microfacets_reflection_slopes(facets: Microfacets, wi: vec3f, wo: vec3f) -> vec3f {
    let value = microfacets_reflection(facets, wi, wo);
    if !(value > 0.0) {
        return vec3f(0.0);
    }
    return vec3f(value, value * microfacets_log_slopes(facets, wi, wo, halfway(wi, wo)));
}

// microfacets_refraction and its derivatives by the two roughnesses and by the relative index.
fn microfacets_refraction_slopes(facets: Microfacets, wi: vec3f, wo: vec3f, e: f32) -> vec4f {
    let value = microfacets_refraction(facets, wi, wo, e);
    if !(value > 0.0) {
        return vec4f(0.0);
    }
    let bend = bend_new(wi, wo, e);
    // By e, wi.h has the derivative wi.wo and wo.h has wo.wo; the factor |h|^-4 is in the density's derivative.
    let cosines = dot(wi, wo) / bend.wi_m + dot(wo, wo) / bend.wo_m;
    let along = microfacets_density_slope_along(facets, bend.h, wo) + cosines / bend.length;
    return vec4f(value, value * microfacets_log_slopes(facets, wi, wo, bend.m), value * along);
}

#ifdef SLOPES

// The gradient of the logarithm of the density by the normal's components.
fn microfacets_density_gradient(facets: Microfacets, m: vec3f) -> vec3f {
    let part = microfacets_stretched(facets, m);
    let square = facets.alpha * facets.alpha;
    if facets.distribution == DISTRIBUTION_BECKMANN {
        return vec3f(-2.0 / part.y * m.xy / square, (2.0 * part.x / part.y - 4.0) / m.z);
    }
    let factor = -4.0 / (part.x + part.y);
    return vec3f(factor * m.xy / square, factor * m.z);
}

// The gradient of the logarithm of microfacets_shadowing_over_cosine.
fn microfacets_shadowing_over_cosine_gradient(facets: Microfacets, v: vec3f) -> vec3f {
    let part = microfacets_stretched_direction(facets, v);
    var by_z = 0.0;
    var across = 0.0;
    if facets.distribution == DISTRIBUTION_BECKMANN {
        let steep = microfacets_steepness(part);
        let a = steep.x;
        if steep.y == 0.0 {
            by_z = -1.0 / part.y;
        } else {
            let by_a = 2.181 / (3.535 + 2.181 * a) - (2.276 + 5.154 * a) / fit_below(a);
            by_z = by_a / steep.y;
            across = -(by_a * a + 1.0) / part.x;
        }
    } else {
        let root = sqrt(part.y * part.y + part.x);
        by_z = -1.0 / root;
        across = -1.0 / (root * (part.y + root));
    }
    return vec3f(across * facets.alpha * facets.alpha * v.xy, select(by_z, -by_z, v.z < 0.0));
}

// The gradient of the logarithm of microfacets_shadowing.
fn microfacets_shadowing_gradient(facets: Microfacets, v: vec3f) -> vec3f {
    return microfacets_shadowing_over_cosine_gradient(facets, v) + vec3f(0.0, 0.0, 1.0 / v.z);
}

// The gradients of the logarithm of microfacets_reflection by the two directions.
fn microfacets_reflection_gradients(facets: Microfacets, wi: vec3f, wo: vec3f) -> Gradients {
    let by_h = along_sphere(wi + wo, microfacets_density_gradient(facets, halfway(wi, wo)));
    return Gradients(
        microfacets_shadowing_over_cosine_gradient(facets, wi) + by_h,
        microfacets_shadowing_gradient(facets, wo) + by_h,
    );
}

// The gradients by the two directions of the logarithm of a product: microfacets_refraction times a function of the cosine of
// `wi` with the normal, whose logarithm has the derivative `by_cosine`.
fn microfacets_refraction_gradients(
    facets: Microfacets,
    wi: vec3f,
    wo: vec3f,
    e: f32,
    bend: Bend,
    by_cosine: f32,
) -> Gradients {
    // The value without shadowing is that of the density at h / |h| times (wi.h) (wo.h) / |h|^4, as a function of h and of
    // the directions in these products.
    let by_wi_m = 1.0 / bend.wi_m + by_cosine;
    let by_wo_m = 1.0 / bend.wo_m;
    let density = microfacets_density_gradient(facets, bend.m);
    let turning = dot(bend.m, density) + by_cosine * bend.wi_m + 4.0;
    let by_h = (density + wi * by_wi_m + wo * by_wo_m - bend.m * turning) / bend.length;
    return Gradients(
        microfacets_shadowing_over_cosine_gradient(facets, wi) + bend.m * by_wi_m + by_h,
        microfacets_shadowing_gradient(facets, wo) + bend.m * by_wo_m + by_h * e,
    );
}

// The gradient by h of a function of h / |h|, whose gradient by that unit vector is `gradient`.
fn along_sphere(h: vec3f, gradient: vec3f) -> vec3f {
    let scale = 1.0 / sqrt(dot(h, h));
    let m = h * scale;
    return (gradient - m * dot(m, gradient)) * scale;
}

#endif
#endif
