// The derivatives that an adjoint walk sends: by the factors of a path's throughput, from the radiance still to come.

#import transport/rays/sampler
#import transport/paths/path_state
#import transport/lookup/volume
#import transport/scene/records

#ifdef REPLAY

// What an adjoint carries beside the path.
struct Adjoint {
    // Derivative of the loss by the path's radiance.
    d_radiance: vec3f,
    // Draws that only the adjoint makes.
    extra: Sampler,
    candidate: Candidate,
}

// A point drawn, among all that a path could have scattered at, for a derivative by in-scattering.
struct Candidate {
    // Sum of all weights so far; the candidate's own is a part of it.
    total: f32,
    p: vec3f,
    direction: vec3f,
    medium: u32,
    depth: u32,
    // Derivative by the light scattered there, over the candidate's weight.
    d: vec3f,
    // What the light that comes through the point takes away, over the candidate's weight.
    lost: vec3f,
}

var<private> adjoint: Adjoint;

// The smallest normal number.
const MIN_POSITIVE: f32 = 1.1754944e-38;

fn extra_next() -> f32 {
    var extra = adjoint.extra;
    let u = sampler_next(&extra);
    adjoint.extra = extra;
    return u;
}

// Differential ratio tracking of the transmittance of a flight from `start` to `end`: minus its length times the
// radiance still to come, at a uniform place on it.
fn attenuate(path: ptr<function, Path>, medium: Medium, start: f32, end: f32) {
    let d = path_alive(path, adjoint.d_radiance * (*path).radiance);
    send_transmittance(medium, along((*path).origin, (*path).direction, start), (*path).direction, end - start, d);
}

// Offers a uniform point of a piece of a flight, on which the path stays as it is, as a candidate: more extinction
// there takes away the radiance that is still to come and adds what is scattered.
fn offer_segment(path: ptr<function, Path>, start: f32, end: f32) {
    if end >= ENDLESS {
        return;
    }
    let length = end - start;
    let d = path_alive(path, adjoint.d_radiance * (*path).beta * path_norm(path));
    let lost = path_alive(path, adjoint.d_radiance * (*path).radiance);
    let weight = (abs(d.x) * length + abs(d.y) * length) + abs(d.z) * length;
    // Of less there is no inverse.
    if weight >= MIN_POSITIVE {
        let total = adjoint.candidate.total + weight;
        adjoint.candidate.total = total;
        // Given that it is less than the weight, the draw is uniform below it.
        let drawn = extra_next() * total;
        if drawn < weight {
            let scale = length / weight;
            let direction = (*path).direction;
            let p = along((*path).origin, direction, start + length * (drawn / weight));
            adjoint.candidate =
                Candidate(total, p, direction, (*path).medium, (*path).depth, d * scale, lost * scale);
        }
    }
}

// The derivatives of a real collision, which `hero` sampled_beta, by the extinction there, the density of the collision
// detached.
fn send_collision(path: ptr<function, Path>, medium: Medium, found: Extinction, hero: f32) {
    var weight = medium.scale;
    if settings.gradient_kind == GRADIENT_DRT {
        weight *= free_flight_share(medium, found.sigma);
    }
    let zero = found.sigma == vec3f(0.0);
    let come = (*path).radiance * (1.0 / select(found.sigma, vec3f(1.0), zero));
    let logarithmic = select(come, (*path).radiance_but_zero * (1.0 / hero), zero);
    let d = adjoint.d_radiance * logarithmic * weight;
    sink_volume(volume_record(medium.sigma_t), found.at, path_alive(path, d));
}

// Sends -`length` times `d` to the extinction at a uniform place of the segment.
fn send_transmittance(medium: Medium, origin: vec3f, direction: vec3f, length: f32, d: vec3f) {
    // Nothing comes through an unbounded medium, so that there is no derivative either.
    if length >= ENDLESS {
        return;
    }
    let p = along(origin, direction, length * extra_next());
    let volume = volume_record(medium.sigma_t);
    sink_volume(volume, volume_stencil(volume, p), d * (-length * medium.scale));
}

// The derivatives by a factor that is about to be multiplied: the radiance still to come over the factor; where the
// factor is zero, what would come without it.
fn derivatives_of_factor(path: ptr<function, Path>, factor: vec3f) -> vec3f {
    let zero = factor == vec3f(0.0);
    let come = select((*path).radiance * (1.0 / select(factor, vec3f(1.0), zero)), (*path).radiance_but_zero, zero);
    return path_alive(path, adjoint.d_radiance * come);
}

// The share of free-flight sampling in the derivative by in-scattering.
fn free_flight_share(medium: Medium, sigma: vec3f) -> f32 {
    let mean = (sigma.x + sigma.y + sigma.z) * (1.0 / 3.0);
    let square = mean * mean;
    return square / (square + medium.kappa * medium.kappa);
}

#endif
