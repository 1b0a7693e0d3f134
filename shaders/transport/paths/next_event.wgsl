// Next-event estimation: shadow rays from a path's vertices to sampled lights, and the derivatives by the
// transmittance on them.

#import transport/paths/adjoint
#import transport/lookup/background
#import transport/scene/light
#import transport/scene/shape
#import transport/paths/path_state
#import transport/paths/tracking
#import transport/scene/records

// The part of a shadow ray that is tested for occluders: it stops short of the light, which must not occlude itself.
const SHADOW: f32 = 0.9995;

// The power heuristic of multiple importance sampling.
fn mis(a: f32, b: f32) -> f32 {
    let sum = a * a + b * b;
    if sum > 0.0 {
        return a * a / sum;
    }
    return 0.0;
}

// Adds the radiance of a sampled light that arrives at `p` and is scattered with `value`. `pdf` is the pdf of the same
// direction under phase function or BSDF sampling, for MIS. Returns the derivative by the logarithm of `value`.
fn sample_light(
    path: ptr<function, Path>,
    p: vec3f,
    drawn: Drawn,
    value: vec3f,
    pdf: f32,
    sampler: ptr<function, Sampler>,
) -> f32 {
    let start = *sampler;
    var lit = vec3f(0.0);
    // The first iteration estimates the transmittance; the second, in a replay, sends its derivatives.
    for (var turn = 0u; turn < 2u; turn++) {
        var draws = start;
        let through = shadow((*path).medium, p, drawn, lit, turn == 1u, &draws);
        if turn == 1u {
            break;
        }
        *sampler = draws;
        if !through.open {
            break;
        }
        // Add the contribution, weighted by MIS.
        let record = light_record(drawn.light);
        var weight = drawn.weight * path_norm(path);
        if drawn.pdf > 0.0 {
            weight *= mis(drawn.pdf, pdf);
        }
        let radiance = drawn_radiance(record, drawn);
        let factor = value * through.transmittance * weight;
        path_add(path, factor * radiance);
        if mode != REPLAY {
            break;
        }
#ifdef REPLAY
        // Send the derivative by the light's radiance.
        let d_radiance = path_alive(path, adjoint.d_radiance * (*path).beta * factor);
        if record.kind == LIGHT_ENVMAP {
            sink_background(drawn.direction, d_radiance);
        } else {
            sink_color(record.slot, d_radiance);
        }
        lit = d_radiance * radiance;
#endif
    }
    return lit.x + lit.y + lit.z;
}

// The radiance or intensity of the light that was sampled.
fn drawn_radiance(record: Light, drawn: Drawn) -> vec3f {
    if record.kind == LIGHT_ENVMAP {
        return background_eval(drawn.direction);
    }
    return light_value(record.slot);
}

// The transmittance of a shadow ray: zero unless `open`.
struct Through {
    open: bool,
    transmittance: vec3f,
}

// Follows a shadow ray through its parts that lie in media. When `shading`, each part is replayed with `lit`, the
// derivative by the logarithm of the transmittance.
fn shadow(
    first_medium: u32,
    p: vec3f,
    drawn: Drawn,
    lit: vec3f,
    shading: bool,
    sampler: ptr<function, Sampler>,
) -> Through {
    var medium = first_medium;
    var origin = p;
    var far = drawn.distance;
    var open = drawn.distance * SHADOW;
    var through = Through(false, vec3f(1.0));
    loop {
        // Find the next surface; one with a BSDF occludes the light.
        let hit = intersect(origin, drawn.direction, open);
        let record = surface_record(hit.surface);
        if hit.found && record.bsdf != BSDF_NULL {
            return through;
        }
        // Visit the medium before it.
        if medium != NONE {
            let inside = medium_record(medium);
            let end = select(far, hit.t, hit.found);
            through.transmittance *= ratio_track(inside, origin, drawn.direction, end, lit, shading, sampler);
        }
        if !hit.found {
            through.open = true;
            return through;
        }
        // Pass through the boundary.
        if record.interior != NONE || record.exterior != NONE {
            let against = dot(drawn.direction, hit.normal) < 0.0;
            medium = select(record.exterior, record.interior, against);
        }
        origin = leave(hit, drawn.direction);
        far -= hit.t;
        open -= hit.t;
    }
    return through;
}
