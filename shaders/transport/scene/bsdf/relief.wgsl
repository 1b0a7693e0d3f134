// A perturbed normal, of a normal map or a bump map: its frame within the local frame of the surface, its shadowing
// (Estevez2019), and the derivatives by the normal.

// Squared roughness of the microfacets that stand for a perturbed normal, over the squared slope of that normal.
const STEEPNESS: f32 = 0.125;

// The frame of a perturbed normal, in the local frame of the surface.
struct Relief {
    // The normal before normalisation, turned towards the viewer.
    m: vec3f,
    // One over its length; zero where that is zero.
    scale: f32,
    // -1 where x and y were reversed to turn it towards the viewer.
    sign: f32,
    // The normal.
    n: vec3f,
    // The length of the normal's part perpendicular to x.
    across: f32,
    // The other axes: the tangential part of x, normalised, and n × s.
    s: vec3f,
    t: vec3f,
}

// The frame of the normal along `vector`. If it `flips` and `wi` sees its back while it sees the front of the surface, or
// the other way round, x and y are reversed. A vector without length is the surface's own normal.
fn relief_new(vector: vec3f, wi: vec3f, flips: bool) -> Relief {
    let sign = select(1.0, -1.0, flips && !(dot(vector, wi) * wi.z > 0.0));
    let m = vec3f(vector.xy * sign, vector.z);
    let square = dot(m, m);
    var relief = Relief(m, 0.0, sign, vec3f(0.0, 0.0, 1.0), 0.0, vec3f(0.0), vec3f(0.0));
    if square > 0.0 {
        relief.scale = 1.0 / sqrt(square);
        relief.n = m * relief.scale;
    }
    let n = relief.n;
    let rest = n.y * n.y + n.z * n.z;
    if rest > 0.0 {
        relief.across = sqrt(rest);
        let along = -n.x / relief.across;
        relief.s = vec3f(relief.across, along * n.y, along * n.z);
    } else {
        relief.s = vec3f(0.0, 0.0, -n.x);
    }
    relief.t = cross(n, relief.s);
    return relief;
}

// A direction of the surface's frame in that of the normal.
fn relief_to_local(relief: Relief, v: vec3f) -> vec3f {
    return vec3f(dot(relief.s, v), dot(relief.t, v), dot(relief.n, v));
}

// A direction in the frame of the normal in the surface's.
fn relief_to_surface(relief: Relief, v: vec3f) -> vec3f {
    return relief.s * v.x + relief.t * v.y + relief.n * v.z;
}

// The squared roughness of microfacets as steep as the normal; -1 where it is clamped to one.
fn relief_roughness(relief: Relief) -> f32 {
    let m = relief.m;
    let across = STEEPNESS * (m.x * m.x + m.y * m.y);
    let along = m.z * m.z;
    if along - across > 0.0 {
        return across / along;
    }
    return -1.0;
}

// The share of light from `wo`, a direction in the surface's frame, that the relief does not shadow.
fn relief_shadowing(relief: Relief, wo: vec3f) -> f32 {
    let roughness = relief_roughness(relief);
    let square = select(roughness, 1.0, roughness < 0.0) * tangent_square(wo);
    return 2.0 / (1.0 + sqrt(1.0 + square));
}

// The squared tangent of the angle to the surface's normal.
fn tangent_square(wo: vec3f) -> f32 {
    return (wo.x * wo.x + wo.y * wo.y) / (wo.z * wo.z);
}

#ifdef REPLAY

// The derivatives by the vector that the frame was made from. `by_turning` is the derivative by turning the directions
// seen in the frame, `by_shadowing` that by relief_shadowing for `wo`.
fn relief_adjoint(relief: Relief, by_turning: vec3f, wo: vec3f, by_shadowing: f32) -> vec3f {
    // The frame turns by t . dn about -s and by s . dn about t; about n it turns so that s stays along x.
    var about_n = 0.0;
    if relief.across > 0.0 {
        about_n = by_turning.z * relief.n.x / relief.across;
    }
    let by_t = (by_turning.x + about_n) * relief.scale;
    let by_s = -by_turning.y * relief.scale;
    let d = relief.t * by_t + relief.s * by_s + relief_shadowing_slopes(relief, wo) * by_shadowing;
    return vec3f(d.xy * relief.sign, d.z);
}

// The gradient of relief_shadowing by the components of the vector.
fn relief_shadowing_slopes(relief: Relief, wo: vec3f) -> vec3f {
    let roughness = relief_roughness(relief);
    if roughness < 0.0 {
        return vec3f(0.0);
    }
    let tangent = tangent_square(wo);
    let root = sqrt(1.0 + roughness * tangent);
    let sum = 1.0 + root;
    let m = relief.m;
    let across = -tangent / (root * sum * sum) * (2.0 * STEEPNESS) / (m.z * m.z);
    return vec3f(across * m.x, across * m.y, -across * (m.x * m.x + m.y * m.y) / m.z);
}

#ifdef TRAILS

// The gradient of relief_shadowing by `wo`.
fn relief_shadowing_by_direction(relief: Relief, wo: vec3f) -> vec3f {
    let steepness = relief_roughness(relief);
    let roughness = select(steepness, 1.0, steepness < 0.0);
    let root = sqrt(1.0 + roughness * tangent_square(wo));
    let sum = 1.0 + root;
    let across = -roughness / (root * sum * sum) * 2.0 / (wo.z * wo.z);
    return vec3f(across * wo.x, across * wo.y, -across * (wo.x * wo.x + wo.y * wo.y) / wo.z);
}

#endif
#endif
