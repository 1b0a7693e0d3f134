// A path on its way through a world: what it has gathered, and the throughput that its next contribution is worth.
//
// The throughput leaves factors of zero out and counts them; the radiance that exactly one of them keeps from a path is
// gathered beside. What an adjoint gathers has twice the digits of a number, because what is left of it is divided by
// factors that may be small (docs/method.md, section 13).

#import common/math
#import transport/rays/camera
#import transport/rays/sampler
#import transport/scene/records

// Less than this of the light of a flight without end is none.
const NEGLIGIBLE: f32 = 1e-30;
// A factor of less size counts as zero: in f32 its own derivative could not be found by dividing by it, and what comes
// through it is below the rounding of anything else. 2^-32.
const FAINT: f32 = 2.3283064e-10;
// Russian roulette never lets a path go on with a higher probability than this.
const MAX_SURVIVAL: f32 = 0.95;

// Whether factors of the throughput are zero or as good as zero.
fn vanishes(factor: vec3f) -> vec3<bool> {
    return abs(factor) < vec3f(FAINT);
}

// A path on its way.
struct Path {
    // Gathered so far; in a replay still to come.
    radiance: vec3f,
    // In an adjoint's walks what the rounding of `radiance` has left out.
    radiance_low: vec3f,
    // The same for contributions of which exactly one factor is zero, with that factor left out.
    radiance_but_zero: vec3f,
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
    // Where the last scattering was; whether the direction that it took was drawn from a density by solid angle, so that
    // light that it meets could also have been drawn by next-event estimation; and that density.
    scattered_at: vec3f,
    continuous: bool,
    pdf: f32,
    // Product of the relative indices of refraction of the boundaries on the way: radiance is scaled by its square,
    // which roulette must not mistake for a loss.
    eta: f32,
    // Contributions so far.
    count: u32,
    // Whether the path reached the background without a turn.
    straight: bool,
}

// A path that begins with a camera ray in `medium`.
fn path_new(ray: Ray, medium: u32, sampler: ptr<function, Sampler>) -> Path {
    let hero = path_draw_hero(sampler);
    return path_start(along(ray.origin, ray.direction, ray.near), ray.direction, ray.far - ray.near, medium, hero);
}

// Draws the channel that decides collisions.
fn path_draw_hero(sampler: ptr<function, Sampler>) -> u32 {
    if settings.spectral == 1u {
        return min(u32(sampler_draw(sampler) * 3.0), 2u);
    }
    return 0u;
}

// Whether the path is in a medium, and in its box, where no surface is met.
fn path_is_surface_free(path: ptr<function, Path>) -> bool {
    if (*path).medium == NONE {
        return false;
    }
    let medium = medium_record((*path).medium);
    return medium.clear == 1u && all(medium.low <= (*path).origin) && all((*path).origin <= medium.high);
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
    path.eta = 1.0;
    return path;
}

// One over the mean of the channels' densities.
fn path_norm(path: ptr<function, Path>) -> f32 {
    if settings.spectral == 1u {
        return 3.0 / ((*path).ratio.x + (*path).ratio.y + (*path).ratio.z);
    }
    return 1.0;
}

// Takes over what another path has gathered.
fn path_expect(path: ptr<function, Path>, gathered: ptr<function, Path>) {
    (*path).radiance = (*gathered).radiance;
    (*path).radiance_low = (*gathered).radiance_low;
    (*path).radiance_but_zero = (*gathered).radiance_but_zero;
}

// Adds (a replay subtracts) throughput times `radiance`.
fn path_add(path: ptr<function, Path>, radiance: vec3f) {
    (*path).count += 1u;
    var value = (*path).beta * radiance;
    if mode == REPLAY {
        value = -value;
    }
    let lit = select(vec3f(0.0), value, (*path).zeros == vec3u(0u));
    if mode == PRIMAL {
        (*path).radiance += lit;
    } else {
        // Zero in fact.
        let zero = (*path).count >> 31u;
        let sum = two_sum((*path).radiance, as_rounded(lit, zero), zero);
        let gathered = two_sum(sum.rounded, (*path).radiance_low + sum.left_out, zero);
        (*path).radiance = gathered.rounded;
        (*path).radiance_low = gathered.left_out;
        (*path).radiance_but_zero += select(vec3f(0.0), value, (*path).zeros == vec3u(1u));
    }
}

// Multiplies the throughput; zeros are counted, not multiplied.
fn path_multiply(path: ptr<function, Path>, factor: vec3f) {
    let zero = vanishes(factor);
    (*path).zeros += select(vec3u(0u), vec3u(1u), zero);
    (*path).beta *= select(factor, vec3f(1.0), zero);
}

// Derivatives `d` of the channels in which the path still carries light; zero in the others.
fn path_alive(path: ptr<function, Path>, d: vec3f) -> vec3f {
    return select(vec3f(0.0), d, (*path).zeros == vec3u(0u));
}

// The weight of a real collision that the channel `hero` decided, without the albedo.
fn path_multiply_real(path: ptr<function, Path>, sigma: vec3f, hero: f32) {
    if settings.spectral == 1u {
        (*path).ratio *= sigma * (1.0 / hero);
        path_multiply(path, sigma * (1.0 / hero));
    }
}

// The weight of a null collision.
fn path_multiply_null(path: ptr<function, Path>, sigma: vec3f, hero: f32, mu: f32) {
    if settings.spectral == 1u {
        (*path).ratio *= (mu - sigma) * (1.0 / (mu - hero));
        path_multiply(path, (mu - sigma) * (1.0 / (mu - hero)));
    }
}

// Whether next to nothing is left of the channels that the medium extinguishes; these end.
fn path_fades(path: ptr<function, Path>, sigma: vec3f) -> bool {
    let extinguished = sigma > vec3f(0.0);
    if any(extinguished & ((*path).ratio > vec3f(NEGLIGIBLE))) {
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

// Throughput that decisions look at, as it was before refraction concentrated or spread it.
fn path_brightness(path: ptr<function, Path>) -> f32 {
    let value = (*path).beta * path_norm(path);
    return max(max(max(0.0, value.x), value.y), value.z) * ((*path).eta * (*path).eta);
}

// Russian roulette from `rr_depth` on: false if the path ends.
fn path_roulette(path: ptr<function, Path>, sampler: ptr<function, Sampler>) -> bool {
    if (*path).depth <= settings.rr_depth {
        return true;
    }
    let survival = min(path_brightness(path), MAX_SURVIVAL);
    if sampler_draw(sampler) >= survival {
        return false;
    }
    (*path).beta *= 1.0 / survival;
    return true;
}

// Turns the path at `q` into `direction`, drawn with this density by solid angle; `p` is the point beside `q` from which
// what leaves it begins.
fn path_turn(path: ptr<function, Path>, q: vec3f, p: vec3f, direction: vec3f, pdf: f32) {
    (*path).origin = p;
    (*path).scattered_at = q;
    (*path).direction = direction;
    (*path).continuous = true;
    (*path).pdf = pdf;
    (*path).far = FAR;
}
