// Next-event estimation: shadow rays from a path's vertices to sampled lights, and the derivatives by the
// transmittance on them.

#import transport/paths/adjoint
#import transport/lookup/background
#import transport/scene/bsdf
#import transport/scene/interaction
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

// What a replay sends to a phase function or a BSDF after next-event estimation: the derivative by the logarithm of its
// value, alike in all channels, and those by its value.
struct Lit {
    by_logarithm: f32,
    by_value: vec3f,
}

// Adds the radiance of a sampled light that arrives at `p`, through `medium` there, and is scattered with `value`. `pdf`
// is the pdf of the same direction under phase function or BSDF sampling, for MIS.
fn sample_light(
    path: ptr<function, Path>,
    p: vec3f,
    medium: u32,
    drawn: Drawn,
    value: vec3f,
    pdf: f32,
    sampler: ptr<function, Sampler>,
) -> Lit {
    let start = *sampler;
    var sent = Lit(0.0, vec3f(0.0));
    var lit = vec3f(0.0);
    var zeros = 0u;
    // The first iteration estimates the transmittance; the second, in a replay, sends its derivatives.
    for (var turn = 0u; turn < 2u; turn++) {
        var draws = start;
        let through = shadow(medium, p, drawn, lit, zeros, turn == 1u, &draws);
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
        zeros = through.zeros;
        if zeros == 0u {
            path_add(path, factor * radiance);
        }
        if mode != REPLAY || zeros > 1u {
            break;
        }
#ifdef REPLAY
        let d_radiance = path_alive(path, adjoint.d_radiance * (*path).beta * factor);
        lit = d_radiance * radiance;
        if zeros == 0u {
            // Send the derivative by the light's radiance.
            if record.kind == LIGHT_ENVMAP {
                sink_background(drawn.direction, d_radiance);
            } else {
                light_adjoint(record, drawn.uv, d_radiance);
            }
            let arrived = through.transmittance * weight * radiance;
            sent = Lit(lit.x + lit.y + lit.z, path_alive(path, adjoint.d_radiance * (*path).beta * arrived));
        }
#endif
    }
    return sent;
}

// The radiance or intensity of the light that was sampled.
fn drawn_radiance(record: Light, drawn: Drawn) -> vec3f {
    if record.kind == LIGHT_ENVMAP {
        return background_eval(drawn.direction);
    }
    return light_value(record, drawn.uv);
}

// What arrives along a shadow ray if `open`: the product of the factors that are not zero, and the number of masks of zero
// transmission.
struct Through {
    open: bool,
    transmittance: vec3f,
    zeros: u32,
}

// Follows a shadow ray through its parts that lie in media, and through masks. When `shading`, each of them is replayed
// with `lit`, the derivative by the logarithm of the transmittance, in which a factor of zero is left out if there is one.
fn shadow(
    first_medium: u32,
    p: vec3f,
    drawn: Drawn,
    lit: vec3f,
    zeros: u32,
    shading: bool,
    sampler: ptr<function, Sampler>,
) -> Through {
    var medium = first_medium;
    var origin = p;
    var far = drawn.distance;
    var open = drawn.distance * SHADOW;
    var through = Through(false, vec3f(1.0), 0u);
    loop {
        // Find the next surface.
        let hit = intersect(origin, drawn.direction, open);
        if hit.found && surface_record(hit.surface).bsdf != NONE {
            let at = interaction_new(hit, drawn.direction);
            if (at.flags & BSDF_NULL) == 0u {
                return through;
            }
            let share = null_transmission(at);
            let is_zero = all(vanishes(vec3f(share)));
            if is_zero {
                through.zeros += 1u;
                if (at.flags & BSDF_VARIES) == 0u {
                    return through;
                }
            } else {
                through.transmittance *= share;
            }
#ifdef REPLAY
            if shading && (is_zero || zeros == 0u) {
                null_adjoint(at, (lit.x + lit.y + lit.z) * (1.0 / select(share, 1.0, is_zero)));
            }
#endif
        }
        // Visit the medium before it.
        if medium != NONE && !(shading && zeros > 0u) {
            let inside = medium_record(medium);
            let end = select(far, hit.t, hit.found);
            through.transmittance *= ratio_track(inside, origin, drawn.direction, end, lit, shading, sampler);
        }
        if !hit.found {
            through.open = true;
            return through;
        }
        // Pass through the boundary.
        medium = medium_beyond(hit, drawn.direction, medium);
        origin = leave(hit, drawn.direction);
        far -= hit.t;
        open -= hit.t;
    }
    return through;
}
