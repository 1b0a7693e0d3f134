// Free flight through a medium by delta tracking against local majorants, and transmittance by ratio tracking
// (Vicini2021, section 4.4; Novak2014).
//
// Where a medium's extinction has three channels, one of them (the hero) decides collisions, and the path is weighted
// by the ratios of the other channels' pdfs to the hero's (one-sample multiple importance sampling, PBRT4 section
// 14.2).

#import transport/paths/adjoint
#import transport/scene/majorant
#import transport/rays/sampler
#import transport/paths/path_state
#import transport/lookup/volume
#import transport/scene/records

// Scaled extinction at a point.
struct Extinction {
    at: Neighbours,
    sigma: vec3f,
}

// Looks up a medium's extinction.
fn extinction(medium: Medium, p: vec3f) -> Extinction {
    let volume = volume_record(medium.sigma_t);
    let at = volume_stencil(volume, p);
    return Extinction(at, volume_eval(volume, at) * medium.scale);
}

// How a flight ended: with a real collision, or by leaving the medium or reaching the end of the ray.
struct Flight {
    collided: bool,
    p: vec3f,
    extinction: Extinction,
}

// Tentative collisions: the points of a Poisson process whose rate is the majorant, in order along the ray.
struct Candidates {
    cells: Cells,
    // Distance of the last point, or from which the search for the next continues.
    t: f32,
    // Optical depth to the next point.
    rest: f32,
    // Majorant of the present cell.
    mu: f32,
}

// Starts at the part of a ray before `far` that lies in the medium.
fn tentative_new(medium: Medium, origin: vec3f, direction: vec3f, far: f32, sampler: ptr<function, Sampler>) -> Candidates {
    var cells = cells_new(medium, origin, direction, 0.0, far);
    var rest = 0.0;
    var mu = 0.0;
    if cells.met {
        rest = exponential(sampler_draw(sampler));
        mu = bounds[cells.index];
    }
    return Candidates(cells, cells.t, rest, mu);
}

// Advances to the next point, at `t`; false at the end. Call tentative_draw between one point and the next.
fn tentative_next(points: ptr<function, Candidates>) -> bool {
    if !(*points).cells.met {
        return false;
    }
    var cells = (*points).cells;
    var t = (*points).t;
    var mu = (*points).mu;
    var rest = (*points).rest;
    var found = false;
    loop {
        let exit = cells_exit(&cells);
        if mu > 0.0 {
            let next = t + rest / mu;
            if next < exit {
                t = next;
                found = true;
                break;
            }
            rest = max(rest - mu * (exit - t), 0.0);
        }
        if !cells_advance(&cells) {
            break;
        }
        t = cells.t;
        mu = bounds[cells.index];
    }
    *points = Candidates(cells, t, rest, mu);
    return found;
}

// Draws the optical depth to the next point.
fn tentative_draw(points: ptr<function, Candidates>, sampler: ptr<function, Sampler>) {
    (*points).rest = exponential(sampler_draw(sampler));
}

// Transmittance of the part of a shadow ray inside one medium. When `shading`, the part is replayed instead: `lit` is
// the derivative by the logarithm of the transmittance.
fn ratio_track(
    medium: Medium,
    origin: vec3f,
    direction: vec3f,
    far: f32,
    lit: vec3f,
    shading: bool,
    sampler: ptr<function, Sampler>,
) -> vec3f {
    var transmittance = vec3f(1.0);
#ifdef REPLAY
    if shading && settings.gradient_kind != GRADIENT_FREE_FLIGHT && !is_unbounded(medium, far) {
        let part = clip(medium, origin, direction, 0.0, far);
        if part.met {
            send_transmittance(medium, along(origin, direction, part.start), direction, part.end - part.start, lit);
        }
        return transmittance;
    }
#endif
    if is_unbounded(medium, far) {
        if shading {
            return transmittance;
        }
        return select(vec3f(1.0), vec3f(0.0), extinction(medium, origin).sigma > vec3f(0.0));
    }
    var points = tentative_new(medium, origin, direction, far, sampler);
    while tentative_next(&points) {
        let found = extinction(medium, along(origin, direction, points.t));
#ifdef REPLAY
        if shading {
            let d = lit * (-(1.0 / (points.mu - found.sigma)) * medium.scale);
            sink_volume(volume_record(medium.sigma_t), found.at, d);
        }
#endif
        transmittance *= (points.mu - found.sigma) * (1.0 / points.mu);
        tentative_draw(&points, sampler);
    }
    return transmittance;
}

// Whether a ray continues to infinity in a medium without end; such a medium is homogeneous.
fn is_unbounded(medium: Medium, far: f32) -> bool {
    return far >= ENDLESS && medium.high.x >= FAR;
}

// Samples a free flight from the path's origin up to `far`.
fn fly(path: ptr<function, Path>, far: f32, sampler: ptr<function, Sampler>) -> Flight {
    let medium = medium_record((*path).medium);
    var flight: Flight;
    var points = tentative_new(medium, (*path).origin, (*path).direction, far, sampler);
    if !points.cells.met {
        return flight;
    }
    let start = points.t;
    var end = points.cells.end;
    // Start of the part of the flight that was not offered to the reservoir yet.
    var piece = start;
#ifdef REPLAY
    // Whether tentative collisions in the medium change the path's throughput or radiance.
    let alters = settings.spectral == 1u || medium.emission != NONE;
    let splits = mode == REPLAY && settings.gradient_kind == GRADIENT_PAIRED && alters;
#endif
    while tentative_next(&points) {
        flight.p = along((*path).origin, (*path).direction, points.t);
        flight.extinction = extinction(medium, flight.p);
        let sigma = flight.extinction.sigma;
#ifdef REPLAY
        if splits {
            offer_segment(path, piece, points.t);
            piece = points.t;
        }
#endif
        if medium.emission != NONE {
            emit(path, medium, start, points.t, flight.extinction, points.mu);
        }
        // Decide with the hero channel whether the collision is real.
        let hero = sigma[(*path).hero];
        if sampler_draw(sampler) * points.mu < hero {
            flight.collided = true;
            end = points.t;
            break;
        }
#ifdef REPLAY
        if mode == REPLAY && settings.gradient_kind == GRADIENT_FREE_FLIGHT {
            send_null_collision(path, medium, flight.extinction, points.mu);
        }
#endif
        path_multiply_null(path, sigma, hero, points.mu);
        // The hero channel sees no extinction, so in a medium without end the path would never end; end it when the
        // other channels are negligible.
        if hero == 0.0 && points.cells.end >= ENDLESS && path_fades(path, sigma) {
            return flight;
        }
        tentative_draw(&points, sampler);
    }
#ifdef REPLAY
    if mode == REPLAY && settings.gradient_kind == GRADIENT_DRT {
        // d/d sigma of the flight's transmittance: minus its length times the radiance still to come.
        let d = path_alive(path, adjoint.d_radiance * (*path).radiance);
        send_transmittance(medium, along((*path).origin, (*path).direction, start), (*path).direction, end - start, d);
    }
    if mode == REPLAY && settings.gradient_kind == GRADIENT_PAIRED {
        offer_segment(path, piece, end);
    }
#endif
    if flight.collided {
#ifdef REPLAY
        if mode == REPLAY && settings.gradient_kind != GRADIENT_PAIRED {
            send_collision(path, medium, flight.extinction, flight.extinction.sigma[(*path).hero]);
        }
#endif
        path_multiply_real(path, flight.extinction.sigma, flight.extinction.sigma[(*path).hero]);
    }
    return flight;
}

#ifdef REPLAY

// Sends the derivative of a null collision's weight 1 - sigma / mu.
fn send_null_collision(path: ptr<function, Path>, medium: Medium, found: Extinction, mu: f32) {
    let kept = 1.0 / (mu - found.sigma);
    send_extinction(medium, found.at, path_alive(path, adjoint.d_radiance * (*path).radiance * kept), -1.0);
}

#endif

// Adds the radiance emitted at a tentative collision: absorption coefficient times emission over majorant (Vicini2021,
// equation 17). `start` is where the flight entered the medium and `t` where the collision is.
fn emit(path: ptr<function, Path>, medium: Medium, start: f32, t: f32, found: Extinction, mu: f32) {
    let p = along((*path).origin, (*path).direction, t);
    // Look up albedo and emission.
    let albedo_volume = volume_record(medium.albedo);
    let albedo_at = volume_stencil(albedo_volume, p);
    let albedo = volume_eval(albedo_volume, albedo_at);
    let emission_volume = volume_record(medium.emission);
    let emission_at = volume_stencil(emission_volume, p);
    let emission = volume_eval(emission_volume, emission_at);
    // Add the emitted radiance.
    let weight = path_norm(path) / mu;
    let radiance = found.sigma * (1.0 - albedo) * emission * weight;
    path_add(path, radiance);
#ifdef REPLAY
    if mode != REPLAY {
        return;
    }
    // Send the derivatives by extinction, albedo and emission.
    let d = path_alive(path, adjoint.d_radiance * (*path).beta * weight);
    send_extinction(medium, found.at, d * (1.0 - albedo) * emission, 1.0);
    sink_volume(albedo_volume, albedo_at, -(d * found.sigma * emission));
    sink_volume(emission_volume, emission_at, d * found.sigma * (1.0 - albedo));
    // The emitted radiance was attenuated along the flight.
    if settings.gradient_kind == GRADIENT_DRT {
        let origin = along((*path).origin, (*path).direction, start);
        let d_path = path_alive(path, adjoint.d_radiance * (*path).beta * radiance);
        send_transmittance(medium, origin, (*path).direction, t - start, d_path);
    }
#endif
}
