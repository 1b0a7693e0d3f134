// Differential ratio tracking of in-scattering: a path keeps one of all points at which it could have been scattered,
// and estimates the in-scattered radiance there (NimierDavid2022; docs/method.md, section 14).

#import transport/paths/adjoint
#import transport/paths/path_state
#import transport/paths/tracking
#import transport/lookup/volume
#import transport/scene/records

#ifdef REPLAY

// Probability that a segment after the first offers points: only one point per path is kept, so that offering on all
// segments costs more time than it saves variance.
const VISITED_SHARE: f32 = 0.25;

// Differential ratio tracking of in-scattering: offers the tentative collisions along the whole segment.
fn offer_tentative_collisions(path: ptr<function, Path>, far: f32) {
    if (*path).depth + 1u >= settings.max_depth {
        return;
    }
    var norm = path_norm(path);
    if (*path).depth > 0u {
        if extra_draw() >= VISITED_SHARE {
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
        if reservoir_offer(weight, &extra) >= 0.0 {
            reservoir_keep(path, p, d * (1.0 / weight), vec3f(0.0));
        }
        // A ray in a medium without end has no last tentative collision: stop when the transmittance is negligible.
        if endless && !any((sigma > vec3f(0.0)) & (abs(transmittance) > vec3f(NEGLIGIBLE))) {
            break;
        }
        tentative_draw(&points, &extra);
    }
    adjoint.extra = extra;
}

// Sends the derivative by the extinction at the reservoir's point; `radiance` is the in-scattered radiance there.
fn send_reservoir(radiance: vec3f) {
    let kept = adjoint.reservoir;
    let medium = medium_record(kept.medium);
    let albedo_volume = volume_record(medium.albedo);
    let albedo = volume_eval(albedo_volume, volume_stencil(albedo_volume, kept.p));
    let volume = volume_record(medium.sigma_t);
    send_extinction(medium, volume_stencil(volume, kept.p), kept.d * albedo * radiance - kept.lost, kept.total);
}

#endif
