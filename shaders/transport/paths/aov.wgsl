// Arbitrary output variables (AOVs): channels that describe the first surface that a camera ray hits, beside the radiance.

#import transport/rays/camera
#import transport/rays/sampler
#import transport/scene/bsdf
#import transport/scene/interaction
#import transport/scene/records
#import transport/scene/shape
#import transport/scene/tangent

// The value of a channel along a ray, as three numbers; those that it does not have are zero.
fn aov_eval(kind: u32, ray: Ray) -> vec3f {
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
        case AOV_PRIM_INDEX: {
            return vec3f(f32(face_number(hit)), 0.0, 0.0);
        }
        default: {
            return vec3f(f32(hit.surface + 1u), 0.0, 0.0);
        }
    }
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
