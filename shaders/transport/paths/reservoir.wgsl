// Differential ratio tracking of in-scattering: a path keeps one of all points that it could have scattered at, and
// follows the light that is scattered there (NimierDavid2022; docs/method.md, section 14).

#import transport/paths/adjoint
#import transport/paths/path_state
#import transport/paths/tracking
#import transport/lookup/volume
#import transport/scene/records

#ifdef REPLAY

// Share of the segments after the first on which candidates for in-scattering are looked for: a path keeps only one of
// all, so that looking everywhere would cost more than it helps.
const VISITED_SHARE: f32 = 0.25;

// Differential ratio tracking of in-scattering: candidates along the whole segment, one of them kept.
fn offer_tentative_collisions(path: ptr<function, Path>, far: f32) {
    if (*path).depth + 1u >= settings.max_depth {
        return;
    }
    var norm = path_norm(path);
    if (*path).depth > 0u {
        if extra_next() >= VISITED_SHARE {
            return;
        }
        norm /= VISITED_SHARE;
    }
    let medium = medium_record((*path).medium);
    let endless = is_unbounded(medium, far);
    var transmittance = vec3f(1.0);
    var extra = adjoint.extra;
    var points = tentative_new(medium, (*path).origin, (*path).direction, far, &extra);
    while tentative_next(&points) {
        let p = along((*path).origin, (*path).direction, points.t);
        let sigma = extinction(medium, p).sigma;
        let share = 1.0 - free_flight_share(medium, sigma);
        let scale = norm * share / points.mu;
        let d = path_alive(path, adjoint.d_radiance * (*path).beta * transmittance * scale);
        let weight = abs(d.x) + abs(d.y) + abs(d.z);
        transmittance *= (points.mu - sigma) * (1.0 / points.mu);
        // Of less there is no inverse.
        if weight >= MIN_POSITIVE {
            let total = adjoint.candidate.total + weight;
            adjoint.candidate.total = total;
            if sampler_next(&extra) * total < weight {
                let direction = (*path).direction;
                let scaled = d * (1.0 / weight);
                adjoint.candidate =
                    Candidate(total, p, direction, (*path).medium, (*path).depth, scaled, vec3f(0.0));
            }
        }
        // In a medium without end nothing else would stop them.
        if endless && !any((sigma > vec3f(0.0)) & (abs(transmittance) > vec3f(NEGLIGIBLE))) {
            break;
        }
        tentative_draw(&points, &extra);
    }
    adjoint.extra = extra;
}

// Sends the derivative by the extinction at the candidate, where light of this `radiance` was scattered.
fn send_reservoir(radiance: vec3f) {
    let chosen = adjoint.candidate;
    let medium = medium_record(chosen.medium);
    let albedo_volume = volume_record(medium.albedo);
    let albedo = volume_eval(albedo_volume, volume_stencil(albedo_volume, chosen.p));
    let volume = volume_record(medium.sigma_t);
    let d = (chosen.d * albedo * radiance - chosen.lost) * (chosen.total * medium.scale);
    sink_volume(volume, volume_stencil(volume, chosen.p), d);
}

#endif
