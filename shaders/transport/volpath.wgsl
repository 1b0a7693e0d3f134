// Paths through participating media and between surfaces: one walk for every mode.
//
// A primal walk adds what it finds. An adjoint walks twice from the same random numbers: first as the primal does, but on
// through factors that are zero; then again, subtracting what it added, so that what is left is the radiance still to
// come, whose logarithmic derivatives belong to the factors met on the way (Vicini2021, section 3.2 and 4.1).
//
// The mode is a variable of the invocation, so that one walk, which compilers write out where it is called, serves all.

#import transport/background
#import transport/camera
#import transport/light
#import transport/phase
#import transport/texture
#import transport/tracking
#import transport/world

// Share of the segments after the first on which candidates for in-scattering are looked for: a path keeps only one of
// all, so that looking everywhere would cost more than it helps.
const VISITED: f32 = 0.25;
// Less than this of the light of a flight without end is none.
const FAINT: f32 = 1e-30;
// Shadow rays end this fraction short of what they are drawn to.
const SHADOW: f32 = 0.9995;
// Russian roulette never lets a path go on with a higher probability than this.
const MOST: f32 = 0.95;

const INV_PI: f32 = 0.31830989;

// A path on its way.
struct Path {
    // Gathered so far; in a replay still to come.
    radiance: vec3f,
    // The same for contributions of which exactly one factor is zero, with that factor left out.
    spare: vec3f,
    // Product of the factors so far, zeros left out, and how many of those there were.
    beta: vec3f,
    zeros: vec3u,
    // For each channel the density of the path, had that channel decided, over the density of the path as decided.
    ratio: vec3f,
    // The channel that decides collisions.
    hero: u32,
    // Edges so far.
    depth: u32,
    origin: vec3f,
    direction: vec3f,
    medium: u32,
    // How far the camera sees.
    far: f32,
    // Where the last scattering was, and the density of the direction that it took.
    scattered_at: vec3f,
    density: f32,
    // Contributions so far.
    count: u32,
    // Whether the path reached the background without a turn.
    straight: bool,
}

// A path that begins with a camera ray in `medium`.
fn path_new(ray: Ray, medium: u32, sampler: ptr<function, Sampler>) -> Path {
    let hero = path_hero(sampler);
    return path_start(along(ray.origin, ray.direction, ray.near), ray.direction, ray.far - ray.near, medium, hero);
}

// Draws the channel that decides collisions.
fn path_hero(sampler: ptr<function, Sampler>) -> u32 {
    if world.spectral == 1u {
        return min(u32(sampler_next(sampler) * 3.0), 2u);
    }
    return 0u;
}

fn path_start(origin: vec3f, direction: vec3f, far: f32, medium: u32, hero: u32) -> Path {
    var path: Path;
    path.beta = vec3f(1.0);
    path.ratio = vec3f(1.0);
    path.hero = hero;
    path.origin = origin;
    path.direction = direction;
    path.medium = medium;
    path.far = far;
    path.scattered_at = origin;
    return path;
}

// One over the mean of the channels' densities.
fn path_norm(path: ptr<function, Path>) -> f32 {
    if world.spectral == 1u {
        return 3.0 / ((*path).ratio.x + (*path).ratio.y + (*path).ratio.z);
    }
    return 1.0;
}

// Adds (a replay subtracts) throughput times `radiance`.
fn path_add(path: ptr<function, Path>, radiance: vec3f) {
    (*path).count += 1u;
    var value = (*path).beta * radiance;
    if mode == REPLAY {
        value = -value;
    }
    (*path).radiance += select(vec3f(0.0), value, (*path).zeros == vec3u(0u));
    if mode != PRIMAL {
        (*path).spare += select(vec3f(0.0), value, (*path).zeros == vec3u(1u));
    }
}

// Multiplies the throughput; zeros are counted, not multiplied.
fn path_multiply(path: ptr<function, Path>, factor: vec3f) {
    let zero = factor == vec3f(0.0);
    (*path).zeros += select(vec3u(0u), vec3u(1u), zero);
    (*path).beta *= select(factor, vec3f(1.0), zero);
}

// Derivatives `d` of the channels in which the path still carries light; zero in the others.
fn path_alive(path: ptr<function, Path>, d: vec3f) -> vec3f {
    return select(vec3f(0.0), d, (*path).zeros == vec3u(0u));
}

// The weight of a real collision that `hero` decided, without the albedo.
fn path_weigh_real(path: ptr<function, Path>, sigma: vec3f, hero: f32) {
    if world.spectral == 1u {
        (*path).ratio *= sigma * (1.0 / hero);
        path_multiply(path, sigma * (1.0 / hero));
    }
}

// The weight of a null collision.
fn path_weigh_null(path: ptr<function, Path>, sigma: vec3f, hero: f32, mu: f32) {
    if world.spectral == 1u {
        (*path).ratio *= (mu - sigma) * (1.0 / (mu - hero));
        path_multiply(path, (mu - sigma) * (1.0 / (mu - hero)));
    }
}

// Whether next to nothing is left of the channels that the medium extinguishes; these end.
fn path_fades(path: ptr<function, Path>, sigma: vec3f) -> bool {
    let extinguished = sigma > vec3f(0.0);
    if any(extinguished & ((*path).ratio > vec3f(FAINT))) {
        return false;
    }
    (*path).ratio = select((*path).ratio, vec3f(0.0), extinguished);
    (*path).zeros += select(vec3u(0u), vec3u(2u), extinguished);
    return true;
}

// Whether no channel can carry anything any more.
fn path_is_dark(path: ptr<function, Path>) -> bool {
    return all((*path).zeros >= vec3u(select(2u, 1u, mode == PRIMAL)));
}

// Throughput that decisions look at.
fn path_brightness(path: ptr<function, Path>) -> f32 {
    let value = (*path).beta * path_norm(path);
    return max(max(max(0.0, value.x), value.y), value.z);
}

// Turns the path at `p` into `direction`, drawn with `density`.
fn path_turn(path: ptr<function, Path>, p: vec3f, origin: vec3f, direction: vec3f, density: f32) {
    (*path).origin = origin;
    (*path).scattered_at = p;
    (*path).direction = direction;
    (*path).density = density;
    (*path).far = FAR;
}

#ifdef REPLAY

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
}

// What an adjoint carries beside the path.
struct Adjoint {
    // Derivative of the loss by the path's radiance.
    d_radiance: vec3f,
    // Draws that only the adjoint makes.
    extra: Sampler,
    candidate: Candidate,
}

var<private> adjoint: Adjoint;

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
    darken(medium, along((*path).origin, (*path).direction, start), (*path).direction, end - start, d);
}

// Sends -`length` times `d` to the extinction at a uniform place of the segment.
fn darken(medium: Medium, origin: vec3f, direction: vec3f, length: f32, d: vec3f) {
    // Nothing comes through an unbounded medium, so that there is no derivative either.
    if length >= ENDLESS {
        return;
    }
    let p = along(origin, direction, length * extra_next());
    let volume = volume_record(medium.sigma_t);
    sink_volume(volume, volume_stencil(volume, p), d * (-length * medium.scale));
}

#endif

// Where a path is scattered.
struct Vertex {
    // Whether it is about to be scattered at all.
    turning: bool,
    // The place, and where the light that leaves it begins.
    q: vec3f,
    p: vec3f,
    on_surface: bool,
    normal: vec3f,
    // Reflectance; one in a medium.
    color: vec3f,
}

// A place in a medium.
fn medium_vertex(p: vec3f) -> Vertex {
    return Vertex(true, p, p, false, vec3f(0.0), vec3f(1.0));
}

// Follows a path to its end, which begins with being scattered at `begin` if that is turning.
fn walk(path: ptr<function, Path>, begin: Vertex, sampler: ptr<function, Sampler>) {
    if (*path).depth >= world.max_depth {
        return;
    }
    var vertex = begin;
    loop {
        if vertex.turning {
            if !redirect(path, vertex, sampler) {
                return;
            }
            vertex.turning = false;
        }
        let hit = intersect((*path).origin, (*path).direction, (*path).far);
        if (*path).medium != NONE {
#ifdef REPLAY
            if mode == REPLAY && world.gradient_kind == GRADIENT_DRT {
                gather_candidates(path, hit.t);
            }
#endif
            let flight = fly(path, hit.t, sampler);
            if flight.collided {
                if !scatter(path, flight) {
                    return;
                }
                vertex = medium_vertex(flight.p);
                continue;
            }
        }
        if !hit.found {
            escape(path);
            return;
        }
        if !meet(path, hit, &vertex) {
            return;
        }
    }
}

// The power heuristic.
fn mis(a: f32, b: f32) -> f32 {
    let sum = a * a + b * b;
    if sum > 0.0 {
        return a * a / sum;
    }
    return 0.0;
}

// What lies behind the scene.
fn escape(path: ptr<function, Path>) {
    (*path).straight = (*path).depth == 0u;
    if scene.background == BACKGROUND_NONE || ((*path).depth == 0u && world.hide_emitters == 1u) {
        return;
    }
    var weight = path_norm(path);
    if (*path).depth > 0u && scene.background == BACKGROUND_ENVMAP {
        weight *= mis((*path).density, envmap_density((*path).direction));
    }
    path_add(path, background_eval((*path).direction) * weight);
#ifdef REPLAY
    if mode == REPLAY {
        sink_background((*path).direction, path_alive(path, adjoint.d_radiance * (*path).beta * weight));
    }
#endif
}

// A real collision; redirect is to follow. False if the path ends.
fn scatter(path: ptr<function, Path>, flight: Flight) -> bool {
    let medium = medium_record((*path).medium);
    let volume = volume_record(medium.albedo);
    var at = flight.extinction.at;
    if medium.aligned != 1u {
        at = volume_stencil(volume, flight.p);
    }
    let albedo = volume_eval(volume, at);
#ifdef REPLAY
    if mode == REPLAY {
        sink_volume(volume, at, derivatives_of_factor(path, albedo));
    }
#endif
    path_multiply(path, albedo);
    (*path).depth += 1u;
    return !((*path).depth >= world.max_depth || path_is_dark(path));
}

// Scatters the light at a vertex: next-event estimation, then a new direction. False if the path ends. The two are turns
// of one loop, so that what they share is written out once.
fn redirect(path: ptr<function, Path>, vertex: Vertex, sampler: ptr<function, Sampler>) -> bool {
    let incoming = (*path).direction;
    var index = 0u;
    var blend = vec4f(0.0);
    var axis = vertex.normal;
    if !vertex.on_surface {
        index = medium_record((*path).medium).phase;
        blend = blend_weights(index, vertex.p);
        axis = incoming;
    }
    for (var turn = select(0u, 1u, world.lights == 0u); turn < 2u; turn++) {
        var drawn = DARK;
        var outgoing = vec3f(0.0);
        var cosine = 0.0;
        if turn == 0u {
            drawn = light_sample(vertex.p, sampler);
            outgoing = drawn.direction;
            cosine = dot(axis, outgoing);
            if !drawn.lit || (vertex.on_surface && cosine <= 0.0) {
                continue;
            }
        } else if vertex.on_surface {
            cosine = sqrt(1.0 - sampler_next(sampler));
            outgoing = around(axis, cosine, sampler_next(sampler));
        } else {
            outgoing = phase_sample(index, blend, incoming, sampler);
            cosine = dot(axis, outgoing);
        }
        var density = cosine * INV_PI;
        if !vertex.on_surface {
            density = phase_eval(index, blend, cosine);
        }
        var d = 0.0;
        if turn == 0u {
            d = connect(path, vertex.p, drawn, vertex.color * density, density, sampler);
        } else {
#ifdef REPLAY
            let come = path_alive(path, adjoint.d_radiance * (*path).radiance);
            d = come.x + come.y + come.z;
#endif
            path_turn(path, vertex.q, vertex.p, outgoing, density);
        }
#ifdef REPLAY
        if mode == REPLAY && !vertex.on_surface {
            phase_scatter(index, blend, vertex.p, cosine, d);
        }
#endif
    }
    if vertex.on_surface {
        path_multiply(path, vertex.color);
    }
    return roulette(path, sampler);
}

#ifdef REPLAY

// The derivatives by a factor that is about to be multiplied: the radiance still to come over the factor; where the
// factor is zero, what would come without it.
fn derivatives_of_factor(path: ptr<function, Path>, factor: vec3f) -> vec3f {
    let zero = factor == vec3f(0.0);
    let come = select((*path).radiance * (1.0 / select(factor, vec3f(1.0), zero)), (*path).spare, zero);
    return path_alive(path, adjoint.d_radiance * come);
}

// The derivatives of a real collision, which `hero` decided, by the extinction there, the density of the collision
// detached.
fn collide(path: ptr<function, Path>, medium: Medium, found: Extinction, hero: f32) {
    var weight = medium.scale;
    if world.gradient_kind == GRADIENT_DRT {
        weight *= free_flight_share(medium, found.sigma);
    }
    let zero = found.sigma == vec3f(0.0);
    let come = (*path).radiance * (1.0 / select(found.sigma, vec3f(1.0), zero));
    let logarithmic = select(come, (*path).spare * (1.0 / hero), zero);
    let d = adjoint.d_radiance * logarithmic * weight;
    sink_volume(volume_record(medium.sigma_t), found.at, path_alive(path, d));
}

// The share of free-flight sampling in the derivative by in-scattering.
fn free_flight_share(medium: Medium, sigma: vec3f) -> f32 {
    let mean = (sigma.x + sigma.y + sigma.z) * (1.0 / 3.0);
    let square = mean * mean;
    return square / (square + medium.kappa * medium.kappa);
}

#endif

// Russian roulette from `rr_depth` on: false if the path ends.
fn roulette(path: ptr<function, Path>, sampler: ptr<function, Sampler>) -> bool {
    if (*path).depth <= world.rr_depth {
        return true;
    }
    let survival = min(path_brightness(path), MOST);
    if sampler_next(sampler) >= survival {
        return false;
    }
    (*path).beta *= 1.0 / survival;
    return true;
}

// A surface: false if the path ends. One that scatters becomes the path's next vertex.
fn meet(path: ptr<function, Path>, hit: Hit, vertex: ptr<function, Vertex>) -> bool {
    let record = surface_record(hit.surface);
    let q = along((*path).origin, (*path).direction, hit.t);
    let against = dot((*path).direction, hit.normal) < 0.0;
    if record.light != NONE && against && !((*path).depth == 0u && world.hide_emitters == 1u) {
        var weight = path_norm(path);
        if (*path).depth > 0u {
            weight *= mis((*path).density, area_density((*path).scattered_at, (*path).direction, hit, q));
        }
        let slot = light_record(record.light).slot;
        path_add(path, light_value(slot) * weight);
#ifdef REPLAY
        if mode == REPLAY {
            sink_color(slot, path_alive(path, adjoint.d_radiance * (*path).beta * weight));
        }
#endif
    }
    if record.bsdf == BSDF_NULL {
        if record.interior != NONE || record.exterior != NONE {
            (*path).medium = select(record.exterior, record.interior, against);
        }
        (*path).origin = leave(q, hit.normal, (*path).direction);
        (*path).far -= hit.t;
        return true;
    }
    if !against {
        return false;
    }
    (*path).depth += 1u;
    if (*path).depth >= world.max_depth {
        return false;
    }
    let color = texture_eval(texture_record(record.surface_texture), hit.uv);
    if all(color == vec3f(0.0)) {
        return false;
    }
    *vertex = Vertex(true, q, leave(q, hit.normal, hit.normal), true, hit.normal, color);
    return true;
}

// Next-event estimation: light that comes from a drawn direction and is scattered with `value`, which would have been
// drawn with `density`. Returns the derivative by the logarithm of the value.
fn connect(
    path: ptr<function, Path>,
    p: vec3f,
    drawn: Drawn,
    value: vec3f,
    density: f32,
    sampler: ptr<function, Sampler>,
) -> f32 {
    let start = *sampler;
    var lit = vec3f(0.0);
    // The first turn finds the transmittance, the second, in a replay, sends its derivatives.
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
        let record = light_record(drawn.light);
        var weight = drawn.weight * path_norm(path);
        if drawn.density > 0.0 {
            weight *= mis(drawn.density, density);
        }
        let radiance = drawn_radiance(record, drawn);
        let factor = value * through.transmittance * weight;
        path_add(path, factor * radiance);
        if mode != REPLAY {
            break;
        }
#ifdef REPLAY
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

// What a drawn light sends, per unit of the draw's weight.
fn drawn_radiance(record: Light, drawn: Drawn) -> vec3f {
    if record.kind == LIGHT_ENVMAP {
        return background_eval(drawn.direction);
    }
    return light_value(record.slot);
}

// What a shadow ray leaves of the light: nothing unless `open`.
struct Through {
    open: bool,
    transmittance: vec3f,
}

// Goes along a shadow ray, part by part that lies in a medium. When `shading`, such a part is replayed with `lit`, the
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
    var far = drawn.distance * SHADOW;
    var through = Through(false, vec3f(1.0));
    loop {
        let hit = intersect(origin, drawn.direction, far);
        let record = surface_record(hit.surface);
        if hit.found && record.bsdf != BSDF_NULL {
            return through;
        }
        if medium != NONE {
            let inside = medium_record(medium);
            through.transmittance *= ratio_track(inside, origin, drawn.direction, hit.t, lit, shading, sampler);
        }
        if !hit.found {
            through.open = true;
            return through;
        }
        if record.interior != NONE || record.exterior != NONE {
            let against = dot(drawn.direction, hit.normal) < 0.0;
            medium = select(record.exterior, record.interior, against);
        }
        origin = leave(along(origin, drawn.direction, hit.t), hit.normal, drawn.direction);
        far -= hit.t;
    }
    return through;
}

#ifdef REPLAY

// Differential ratio tracking of in-scattering: candidates along the whole segment, one of them kept.
fn gather_candidates(path: ptr<function, Path>, far: f32) {
    if (*path).depth + 1u >= world.max_depth {
        return;
    }
    var norm = path_norm(path);
    if (*path).depth > 0u {
        if extra_next() >= VISITED {
            return;
        }
        norm /= VISITED;
    }
    let medium = medium_record((*path).medium);
    let endless = is_unbounded(medium, far);
    var transmittance = vec3f(1.0);
    var extra = adjoint.extra;
    var points = candidates_new(medium, (*path).origin, (*path).direction, far, &extra);
    while candidates_next(&points) {
        let p = along((*path).origin, (*path).direction, points.t);
        let sigma = extinction(medium, p).sigma;
        let share = 1.0 - free_flight_share(medium, sigma);
        let scale = norm * share / points.mu;
        let d = path_alive(path, adjoint.d_radiance * (*path).beta * transmittance * scale);
        let weight = abs(d.x) + abs(d.y) + abs(d.z);
        transmittance *= (points.mu - sigma) * (1.0 / points.mu);
        if weight > 0.0 {
            let total = adjoint.candidate.total + weight;
            adjoint.candidate.total = total;
            if sampler_next(&extra) * total < weight {
                let direction = (*path).direction;
                adjoint.candidate = Candidate(total, p, direction, (*path).medium, (*path).depth, d * (1.0 / weight));
            }
        }
        // In a medium without end nothing else would stop them.
        if endless && !any((sigma > vec3f(0.0)) & (abs(transmittance) > vec3f(FAINT))) {
            break;
        }
        candidates_draw(&points, &extra);
    }
    adjoint.extra = extra;
}

// Sends the derivative by the extinction at the candidate, where light of this `radiance` was scattered.
fn settle_candidate(radiance: vec3f) {
    let chosen = adjoint.candidate;
    let medium = medium_record(chosen.medium);
    let albedo_volume = volume_record(medium.albedo);
    let albedo = volume_eval(albedo_volume, volume_stencil(albedo_volume, chosen.p));
    let volume = volume_record(medium.sigma_t);
    sink_volume(volume, volume_stencil(volume, chosen.p), chosen.d * albedo * radiance * (chosen.total * medium.scale));
}

// How an adjoint ended: radiance gathered, radiance left over (zero but for rounding), contributions.
struct Replayed {
    gathered: vec3f,
    left: vec3f,
    count: u32,
}

// The adjoint of gather: walks twice with the numbers of `sampler` and sends the derivatives of `d_radiance` times the
// radiance to the gradients; `extra` is for draws that the primal does not make. Under differential ratio tracking a
// third walk follows the light that is scattered at the candidate.
fn propagate(ray: Ray, medium: u32, sampler: Sampler, extra: Sampler, d_radiance: vec3f) -> Replayed {
    adjoint.d_radiance = d_radiance;
    adjoint.extra = extra;
    adjoint.candidate.total = 0.0;
    var replayed: Replayed;
    var first: Path;
    for (var turn = 0u; turn < 3u; turn++) {
        var draws = sampler;
        var path: Path;
        if turn < 2u {
            path = path_new(ray, medium, &draws);
            mode = select(GATHER, REPLAY, turn == 1u);
            if turn == 1u {
                path.radiance = first.radiance;
                path.spare = first.spare;
            }
        } else {
            if world.gradient_kind != GRADIENT_DRT || adjoint.candidate.total == 0.0 {
                break;
            }
            draws = adjoint.extra;
            mode = PRIMAL;
            let chosen = adjoint.candidate;
            path = path_start(chosen.p, chosen.direction, FAR, chosen.medium, path_hero(&draws));
            path.depth = chosen.depth + 1u;
        }
        var begin = medium_vertex(path.origin);
        begin.turning = turn == 2u;
        walk(&path, begin, &draws);
        switch turn {
            case 0u: {
                first = path;
            }
            case 1u: {
                replayed = Replayed(first.radiance, path.radiance, path.count);
            }
            default: {
                settle_candidate(path.radiance);
            }
        }
    }
    return replayed;
}

#else

// The path that a camera ray begins.
fn gather(ray: Ray, medium: u32, sampler: Sampler) -> Path {
    var draws = sampler;
    var path = path_new(ray, medium, &draws);
    var begin: Vertex;
    walk(&path, begin, &draws);
    return path;
}

#endif
