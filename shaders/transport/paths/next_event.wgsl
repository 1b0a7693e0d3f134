// Next-event estimation: shadow rays from a path's vertices to sampled lights, and the derivatives by the
// transmittance on them.

#import transport/paths/adjoint
#import transport/scene/sky
#import transport/scene/bsdf
#import transport/scene/interaction
#import transport/scene/light
#import transport/scene/shape
#import transport/paths/path_state
#import transport/paths/replay_cache
#import transport/paths/tracking
#ifdef DRIFTS
#import transport/paths/trail
#endif
#ifdef DEFERS
#import transport/paths/wave_path
#endif
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
    var zeros = vec3u(0u);
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
        let passes = zeros == vec3u(0u);
        let open = select(vec3f(0.0), factor, passes);
        if any(passes) {
#ifdef DEFERS
            path_defer(path, open * radiance);
#else
            path_add(path, open * radiance);
#endif
        }
        if mode != REPLAY {
            break;
        }
#ifdef REPLAY
        let d_beta = adjoint.d_radiance * (*path).beta;
        lit = path_alive(path, d_beta * factor) * radiance;
        if any(passes) {
            // Send the derivative by the light's radiance.
            let d_radiance = path_alive(path, d_beta * open);
            if is_light(record.kind, LIGHT_ENVMAP) {
                sky_adjoint(drawn.direction, d_radiance);
            } else {
                light_adjoint(record, drawn.point, d_radiance);
            }
            let by_logarithm = d_radiance * radiance;
            let arrived = select(vec3f(0.0), through.transmittance, passes) * weight * radiance;
            sent = Lit(by_logarithm.x + by_logarithm.y + by_logarithm.z, path_alive(path, d_beta * arrived));
        }
        // Without media and masks the transmittance has no derivatives.
        if SURFACES_ONLY {
            break;
        }
#endif
    }
    return sent;
}

// The radiance or intensity of the light that was sampled.
fn drawn_radiance(record: Light, drawn: Drawn) -> vec3f {
    if is_light(record.kind, LIGHT_ENVMAP) {
        return sky_value(drawn.direction);
    }
    return light_value(record, drawn.point);
}

// Transmittance of a shadow ray, if it is `open` (not occluded): the product of the factors that are not zero, and the number
// of masks that transmit nothing of a channel.
struct Through {
    open: bool,
    transmittance: vec3f,
    zeros: vec3u,
}

// Follows a shadow ray through media and masks. When `shading`, replays them and sends their derivatives, from `lit`, the
// derivative by the logarithm of the transmittance, in which factors of zero are left out.
fn shadow(
    first_medium: u32,
    p: vec3f,
    drawn: Drawn,
    lit: vec3f,
    zeros: vec3u,
    shading: bool,
    sampler: ptr<function, Sampler>,
) -> Through {
    var medium = first_medium;
    var origin = p;
    var far = drawn.distance;
    var open = drawn.distance * SHADOW;
    var through = Through(false, vec3f(1.0), vec3u(0u));
#ifdef REPLAY
#ifdef DRIFTS
    var drift = drift_new();
    var draws = sampler_aside(*sampler);
#endif
#endif
#ifdef DEFERS
    // The ray is traced by later kernels of the wave, and its contribution waits for the result.
    wave_keep_ray(wave_at, WAVE_SHADOW_RAY, WaveRay(origin, drawn.direction, open));
    through.open = true;
    return through;
#else
    loop {
        // Find the next surface.
        let met = shadow_nearest(origin, drawn.direction, open);
        if SURFACES_ONLY {
            through.open = !met.found;
            return through;
        }
        let hit = describe(met, origin, drawn.direction, open);
        if hit.found && SCATTERING_SURFACES && surface_record(hit.surface).bsdf != NONE {
#ifdef STRAIGHT
            let at = interaction_new(hit, drawn.direction);
            if (at.flags & BSDF_NULL) == 0u {
                return through;
            }
            let share = null_transmission(at);
            let is_zero = vanishes(share);
            through.zeros += select(vec3u(0u), vec3u(1u), is_zero);
            through.transmittance *= select(share, vec3f(1.0), is_zero);
            if (at.flags & BSDF_VARIES) == 0u && all(through.zeros > vec3u(0u)) {
                return through;
            }
#ifdef REPLAY
            if shading {
                // Over this factor; where it is zero, `lit` leaves it out already.
                let known = select(zeros == vec3u(0u), zeros == vec3u(1u), is_zero);
                let d = lit * (1.0 / select(share, vec3f(1.0), is_zero));
                null_adjoint(at, select(vec3f(0.0), d, known));
            }
#endif
#else
            return through;
#endif
        }
        // Visit the medium in front of that surface.
        if MEDIA && medium != NONE {
            let inside = medium_record(medium);
            let end = select(far, hit.t, hit.found);
            let come = select(vec3f(0.0), lit, zeros == vec3u(0u));
            through.transmittance *= ratio_track(inside, origin, drawn.direction, end, come, shading, sampler);
#ifdef REPLAY
#ifdef DRIFTS
            if shading {
                drift = drift_cross(drift, inside, origin, drawn.direction, end, hit.found, hit.normal, come, &draws);
            }
#endif
#endif
        }
        if !hit.found {
#ifdef REPLAY
#ifdef DRIFTS
            if shading {
                trail.drifts[0] = drift;
            }
#endif
#endif
            through.open = true;
            return through;
        }
        // Pass through the boundary.
#ifdef REPLAY
#ifdef DRIFTS
        drift = drift_pass(drift, hit.t, hit.normal);
#endif
#endif
        medium = medium_beyond(hit, drawn.direction, medium);
        origin = leave(hit, drawn.direction);
        far -= hit.t;
        open -= hit.t;
    }
    return through;
#endif
}
