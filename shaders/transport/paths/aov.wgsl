// Arbitrary output variables (AOVs): channels that describe the first surface that a camera ray hits, beside the radiance.

#import transport/rays/camera
#import transport/rays/sampler
#import transport/scene/bsdf
#import transport/scene/interaction
#import transport/scene/records
#import transport/scene/shape
#import transport/scene/tangent

// The value of a channel along a ray, as three numbers; those that it does not have are zero. `beside` is a ray of the same
// sample a column or a row further, for channels that show differences.
fn aov_eval(kind: u32, ray: Ray, beside: Ray) -> vec3f {
    let hit = intersect(along(ray.origin, ray.direction, ray.near), ray.direction, ray.far - ray.near);
    if !hit.found {
        return vec3f(0.0);
    }
    switch kind {
        case AOV_ALBEDO: {
            return albedo(hit, ray.direction);
        }
        case AOV_DEPTH: {
            return vec3f(hit.t, 0.0, 0.0);
        }
        case AOV_POSITION: {
            return hit.point.p;
        }
        case AOV_UV: {
            return vec3f(hit.point.uv, 0.0);
        }
        case AOV_GEO_NORMAL: {
            return hit.normal;
        }
        case AOV_SH_NORMAL: {
            return hit.shading;
        }
        case AOV_DP_DU: {
            return derivatives(hit).dp_du;
        }
        case AOV_DP_DV: {
            return derivatives(hit).dp_dv;
        }
        case AOV_DUV_DX, AOV_DUV_DY: {
            return uv_change(hit, beside);
        }
        case AOV_PRIM_INDEX: {
            return vec3f(f32(face_number(hit)), 0.0, 0.0);
        }
        default: {
            return vec3f(f32(hit.surface + 1u), 0.0, 0.0);
        }
    }
}

// By which axis of the film the ray beside is displaced that a channel needs: 0 and 1, or 2 for none.
fn aov_axis(kind: u32) -> u32 {
    return select(select(2u, 1u, kind == AOV_DUV_DY), 0u, kind == AOV_DUV_DX);
}

// By how much u and v differ where the ray `beside` meets the plane that touches the surface at `hit`.
fn uv_change(hit: Hit, beside: Ray) -> vec3f {
    let way = hit.point.p - beside.origin;
    let t = dot(hit.normal, way) / dot(hit.normal, beside.direction);
    let over = beside.direction * t - way;
    let by = derivatives(hit);
    let a = dot(by.dp_du, by.dp_du);
    let b = dot(by.dp_du, by.dp_dv);
    let c = dot(by.dp_dv, by.dp_dv);
    let x = dot(by.dp_du, over);
    let y = dot(by.dp_dv, over);
    let scale = 1.0 / (a * c - b * b);
    let change = vec2f(c * x - b * y, a * y - b * x) * scale;
    // Infinities and what is not a number fail the comparison.
    let finite = all(abs(change) < vec2f(FAR));
    return select(vec3f(0.0), vec3f(change, 0.0), finite);
}

// The number of a triangle in its mesh, zero on other shapes.
fn face_number(hit: Hit) -> u32 {
    if hit.point.triangle == NONE {
        return 0u;
    }
    return corner_record(hit.point.triangle).face;
}

// The albedo on the side of the ray: pi times the BSDF's value for light that arrives and leaves along the normal.
fn albedo(hit: Hit, direction: vec3f) -> vec3f {
    if surface_record(hit.surface).bsdf == NONE {
        return vec3f(0.0);
    }
    let outgoing = hit.shading * select(-1.0, 1.0, dot(direction, hit.normal) < 0.0);
    var at = interaction_new(hit, -outgoing);
    at.smooth_normal = true;
    return bsdf_eval(at, choice(at), LOBE_SMOOTH, 0u, to_local(at, outgoing)).value * 3.14159265;
}
