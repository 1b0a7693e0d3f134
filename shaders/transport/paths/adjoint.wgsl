// The derivatives that an adjoint walk sends: for each factor of the throughput, the radiance still to come over the
// factor.

#import transport/rays/sampler
#import transport/paths/path_state
#import transport/lookup/volume
#import transport/scene/records

#ifdef REPLAY

// The state of an adjoint beside that of the path.
struct Adjoint {
    // Derivative of the loss by the path's radiance.
    d_radiance: vec3f,
    // Random numbers for draws that only the adjoint makes.
    extra: Sampler,
    reservoir: Reservoir,
}

// Weighted reservoir sampling with a reservoir of one point, at which the path could have been scattered.
struct Reservoir {
    // Sum of the weights of all points offered; zero if there is no point.
    total: f32,
    p: vec3f,
    direction: vec3f,
    medium: u32,
    depth: u32,
    // Derivative by the in-scattered radiance, over the point's weight.
    d: vec3f,
    // Derivative by the transmitted radiance, which extinction at the point reduces, over the point's weight.
    lost: vec3f,
}

var<private> adjoint: Adjoint;

// The smallest normal number.
const MIN_POSITIVE: f32 = 1.1754944e-38;

// The next of the adjoint's own draws.
fn extra_draw() -> f32 {
    var extra = adjoint.extra;
    let u = sampler_draw(&extra);
    adjoint.extra = extra;
    return u;
}

// Sends `weight` times `d`, a derivative by a medium's scaled extinction, to the unscaled values of its grid.
fn send_extinction(medium: Medium, at: Neighbours, d: vec3f, weight: f32) {
    sink_volume(volume_record(medium.sigma_t), at, d * (weight * medium.scale));
}

// Offers a point of this weight to the reservoir. Returns a number uniform below the weight if the point is accepted,
// -1 if not.
fn reservoir_offer(weight: f32, draws: ptr<function, Sampler>) -> f32 {
    // 1/weight overflows for subnormal weights.
    if !(weight >= MIN_POSITIVE) {
        return -1.0;
    }
    adjoint.reservoir.total += weight;
    let drawn = sampler_draw(draws) * adjoint.reservoir.total;
    return select(-1.0, drawn, drawn < weight);
}

// Stores the accepted point.
fn reservoir_keep(path: ptr<function, Path>, p: vec3f, d: vec3f, lost: vec3f) {
    let total = adjoint.reservoir.total;
    adjoint.reservoir = Reservoir(total, p, (*path).direction, (*path).medium, (*path).depth, d, lost);
}

// Offers a uniform point of a part of a flight, on which the path state is constant, to the reservoir. Extinction at
// that point absorbs the radiance still to come and adds in-scattered radiance.
fn offer_segment(path: ptr<function, Path>, start: f32, end: f32) {
    if end >= ENDLESS {
        return;
    }
    let length = end - start;
    let d = path_alive(path, adjoint.d_radiance * (*path).beta * path_norm(path));
    let lost = path_alive(path, adjoint.d_radiance * (*path).radiance);
    let weight = (abs(d.x) * length + abs(d.y) * length) + abs(d.z) * length;
    var extra = adjoint.extra;
    let below = reservoir_offer(weight, &extra);
    adjoint.extra = extra;
    if below >= 0.0 {
        // A draw below the weight is uniform there, so it is reused to place the point.
        let p = along((*path).origin, (*path).direction, start + length * (below / weight));
        let scale = length / weight;
        reservoir_keep(path, p, d * scale, lost * scale);
    }
}

// Sends the derivative of a real collision by the extinction there, with the collision's pdf detached. `hero` is the
// extinction of the channel that decided.
fn send_collision(path: ptr<function, Path>, medium: Medium, found: Extinction, hero: f32) {
    var share = 1.0;
    if settings.gradient_kind == GRADIENT_DRT {
        share = free_flight_share(medium, found.sigma);
    }
    let scale = 1.0 / hero;
    let zero = vanishes(found.sigma * scale);
    let come = (*path).radiance * (1.0 / select(found.sigma, vec3f(1.0), zero));
    let logarithmic = select(come, (*path).radiance_but_zero * scale, zero);
    send_extinction(medium, found.at, path_alive(path, adjoint.d_radiance * logarithmic), share);
}

// Differential ratio tracking of a segment's transmittance: sends -`length` times `d` to the extinction at a uniform
// point of the segment, a one-sample estimate of the derivative.
fn send_transmittance(medium: Medium, origin: vec3f, direction: vec3f, length: f32, d: vec3f) {
    // The transmittance of an unbounded medium is zero, and so is its derivative.
    if length >= ENDLESS {
        return;
    }
    let p = along(origin, direction, length * extra_draw());
    let volume = volume_record(medium.sigma_t);
    send_extinction(medium, volume_stencil(volume, p), d, -length);
}

// The derivative by a factor that is about to be multiplied: the radiance still to come over the factor. For a factor
// of zero it is `radiance_but_zero`, the radiance with that factor left out.
fn by_factor(path: ptr<function, Path>, factor: vec3f) -> vec3f {
    let zero = vanishes(factor);
    let come = select((*path).radiance * (1.0 / select(factor, vec3f(1.0), zero)), (*path).radiance_but_zero, zero);
    return path_alive(path, adjoint.d_radiance * come);
}

// The weight of free-flight sampling, against differential tracking, in the derivative by in-scattering.
fn free_flight_share(medium: Medium, sigma: vec3f) -> f32 {
    let mean = (sigma.x + sigma.y + sigma.z) * (1.0 / 3.0);
    let square = mean * mean;
    return square / (square + medium.kappa * medium.kappa);
}

#endif
