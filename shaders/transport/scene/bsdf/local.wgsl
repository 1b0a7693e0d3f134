// Directions in the local shading frame, whose third axis is the shading normal, and what sampling one yields.
//
// `wi` points to where the path came from and `wo` onwards. Values of BSDFs include the cosine of `wo`.

#import transport/rays/sampler

const FRAC_1_PI: f32 = 0.31830989;

// What a direction was drawn from: a diffuse or glossy lobe, a mirror image, a refracted direction, or straight on.
const LOBE_SMOOTH: u32 = 0u;
const LOBE_REFLECTION: u32 = 1u;
const LOBE_TRANSMISSION: u32 = 2u;
const LOBE_STRAIGHT: u32 = 3u;

// A sampled direction; there is none where `pdf` is zero.
struct LobeSample {
    direction: vec3f,
    // Of a smooth lobe the pdf by solid angle, over all lobes that could have drawn the direction; of another its
    // probability.
    pdf: f32,
    lobe: u32,
    // The index on the side of `direction` over that on the side of `wi`.
    eta: f32,
}

fn lobe_sample_none() -> LobeSample {
    return LobeSample(vec3f(0.0), 0.0, LOBE_SMOOTH, 1.0);
}

// The vector of unit length along `v`, or `v` itself where that is zero.
fn normalised(v: vec3f) -> vec3f {
    let square = dot(v, v);
    if square > 0.0 {
        return v * (1.0 / sqrt(square));
    }
    return v;
}

#ifdef REPLAY
#ifdef SLOPES

// Gradients of a function of two unit directions; components along the directions themselves do not count.
struct Gradients {
    wi: vec3f,
    wo: vec3f,
}

fn no_gradients() -> Gradients {
    return Gradients(vec3f(0.0), vec3f(0.0));
}

// Gradients by two directions, from those by the directions that above() made of them.
fn gradients_above(wi: vec3f, by: Gradients) -> Gradients {
    return Gradients(above(wi, by.wi), above(wi, by.wo));
}

// The derivative by turning `wi` and `wo` together, from the gradients by either: an infinitesimal rotation changes the
// value by its scalar product with the torque. What only depends on the angle between the two has none.
fn torque(wi: vec3f, wo: vec3f, by: Gradients) -> vec3f {
    return cross(wi, by.wi) + cross(wo, by.wo);
}

// The gradient of a function of a direction's cosine alone.
fn upright(by_cosine: f32) -> vec3f {
    return vec3f(0.0, 0.0, by_cosine);
}

#endif
#endif

// `v` mirrored at the surface: z negated.
fn flipped(v: vec3f) -> vec3f {
    return vec3f(v.x, v.y, -v.z);
}

// `v`, reversed if `wi` is below the surface: then above(wi, wi) is above it. Microfacets look alike from opposite
// directions.
fn above(wi: vec3f, v: vec3f) -> vec3f {
    return select(v, -v, wi.z < 0.0);
}

// The mirror image of `wi` at a plane with the unit normal `m`.
fn mirrored(wi: vec3f, m: vec3f) -> vec3f {
    return normalised(2.0 * dot(wi, m) * m - wi);
}

// `wi` refracted at a plane with the unit normal `m`: `ti` is the index on the side of `wi` over that on the other, and
// `cosine` that of the refracted direction, of the opposite sign as that of `wi`.
fn refracted(wi: vec3f, m: vec3f, ti: f32, cosine: f32) -> vec3f {
    return normalised((ti * dot(wi, m) + cosine) * m - ti * wi);
}

// The unit vector halfway between two directions on the upper side.
fn halfway(a: vec3f, b: vec3f) -> vec3f {
    let sum = a + b;
    return sum * (1.0 / sqrt(dot(sum, sum)));
}

// A uniform point of the unit disk, by the concentric map (Shirley1997).
fn disk(u: vec2f) -> vec2f {
    let p = 2.0 * u - 1.0;
    if p.x == 0.0 && p.y == 0.0 {
        return vec2f(0.0);
    }
    // The fraction of the whole circle that the angle takes.
    var radius = p.y;
    var angle = 0.0;
    if abs(p.x) > abs(p.y) {
        radius = p.x;
        angle = 0.125 * (p.y / p.x);
    } else {
        angle = 0.25 - 0.125 * (p.x / p.y);
    }
    return radius * circle(select(angle, angle + 1.0, angle < 0.0));
}

// A direction on the upper side with pdf cosine / pi.
fn cosine_hemisphere(u: vec2f) -> vec3f {
    let p = disk(u);
    return vec3f(p, sqrt(max(1.0 - p.x * p.x - p.y * p.y, 0.0)));
}
