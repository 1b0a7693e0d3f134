// The state of a path: radiance gathered so far, and the throughput of its next contribution.
//
// The throughput leaves factors of zero out and counts them; contributions with exactly one of them are summed separately,
// without that factor. An adjoint sums radiance with twice the digits of a number, because the remainder is divided by
// factors that may be small (docs/method.md, section 13).

#ifdef WAVE
#import bind/wave
#endif
#import common/math
#import transport/rays/camera
#import transport/rays/sampler
#import transport/scene/records

// In an unbounded medium, the channels that it extinguishes end when the pdf ratios of all of them have fallen to this; a
// reservoir is offered no more points of a ray when their transmittances have.
const NEGLIGIBLE: f32 = 1e-30;
// Factors of a smaller absolute value count as zero, 2^-32: the radiance still to come over such a factor has no correct
// digit in f32, and 1/factor overflows for subnormal factors.
const FAINT: f32 = 2.3283064e-10;
// Upper limit of the survival probability in Russian roulette.
const MAX_SURVIVAL: f32 = 0.95;

// Whether factors of the throughput count as zero.
fn vanishes(factor: vec3f) -> vec3<bool> {
    return abs(factor) < vec3f(FAINT);
}

// A path on its way.
struct Path {
    // Primal: gathered so far. Replay: still to come.
    radiance: vec3f,
    // Rounding error of `radiance`, in the walks of an adjoint: together they have twice the digits.
    radiance_low: vec3f,
    // The same for contributions of which exactly one factor is zero, with that factor left out.
    radiance_but_zero: vec3f,
    // Product of the throughput's nonzero factors, and the number of zero factors per channel.
    beta: vec3f,
    zeros: vec3u,
    // For each channel, the path's pdf if that channel decided collisions, over the pdf of the hero channel.
    ratio: vec3f,
    // The hero: the channel that decides collisions.
    hero: u32,
    // Segments so far.
    depth: u32,
    origin: vec3f,
    direction: vec3f,
    medium: u32,
    // The end of the present segment's ray, at first the camera's far distance.
    far: f32,
    // Position of the last scattering; whether the direction was sampled there from a pdf by solid angle, so that
    // next-event estimation could also sample emitters in it (MIS); and that pdf.
    scattered_at: vec3f,
    continuous: bool,
    pdf: f32,
    // Product of the relative indices of refraction of the boundaries crossed. Radiance scales by its square, which is
    // no loss of light and must not lower the survival probability of Russian roulette.
    eta: f32,
    // Contributions so far.
    count: u32,
    // Whether the path reached the background without being scattered, or has no edge by which it would meet anything.
    straight: bool,
}

// A path that starts with a camera ray in `medium`.
fn path_new(ray: Ray, medium: u32, sampler: ptr<function, Sampler>) -> Path {
    let hero = path_draw_hero(sampler);
    return path_start(along(ray.origin, ray.direction, ray.near), ray.direction, ray.far - ray.near, medium, hero);
}

// Draws the hero channel.
fn path_draw_hero(sampler: ptr<function, Sampler>) -> u32 {
    if settings.spectral == 1u {
        return min(u32(sampler_draw(sampler) * 3.0), 2u);
    }
    return 0u;
}

// Whether the path is in the box of a medium that no surface intersects.
fn path_is_surface_free(path: ptr<function, Path>) -> bool {
    if !MEDIA || (*path).medium == NONE {
        return false;
    }
    let medium = medium_record((*path).medium);
    return medium.clear == 1u && all(medium.low <= (*path).origin) && all((*path).origin <= medium.high);
}

// Whether the path, which has flown out of its medium's box, meets no surface behind it but the medium's boundary.
fn path_is_in_alone(path: ptr<function, Path>) -> bool {
    return MEDIA && medium_record((*path).medium).alone == 1u;
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

// The weight of one-sample MIS: one over the mean of the channels' pdf ratios.
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
    path_gather(path, value, (*path).zeros);
}

// Adds a contribution that has this many factors of zero in each channel, which `value` leaves out.
fn path_gather(path: ptr<function, Path>, value: vec3f, zeros: vec3u) {
#ifdef GATHERS
    // This walk repeats edges for the replay alone: their radiance has been gathered before.
    if launch.wave_first > 0u {
        return;
    }
#endif
    let lit = select(vec3f(0.0), value, zeros == vec3u(0u));
#ifdef WAVE
    recall_radiance(path);
#endif
    if mode == PRIMAL {
        (*path).radiance += lit;
    } else {
        // There are fewer than 2^31 lights, so that this is zero; the compiler cannot know, and so cannot simplify two_sum. A
        // path's own count would not do: some kernels begin with a constant one.
        let zero = settings.lights >> 31u;
        let sum = two_sum((*path).radiance, as_rounded(lit, zero), zero);
        let gathered = two_sum(sum.rounded, (*path).radiance_low + sum.left_out, zero);
        (*path).radiance = gathered.rounded;
        (*path).radiance_low = gathered.left_out;
        (*path).radiance_but_zero += select(vec3f(0.0), value, zeros == vec3u(1u));
    }
#ifdef WAVE
    keep_radiance(path);
#endif
}

#ifdef WAVE

// The gathered radiance of a wave's path stays in memory and is loaded where needed: in registers it would compete with the
// BSDFs, whose need of registers limits how many paths a processor follows at once (occupancy).
fn recall_radiance(path: ptr<function, Path>) {
    (*path).radiance = wave_vector(wave_at, WAVE_RADIANCE);
    if mode != PRIMAL {
        (*path).radiance_low = wave_vector(wave_at, WAVE_RADIANCE_LOW);
        (*path).radiance_but_zero = wave_vector(wave_at, WAVE_BUT_ZERO);
    }
}

fn keep_radiance(path: ptr<function, Path>) {
    wave_keep_vector(wave_at, WAVE_RADIANCE, (*path).radiance);
    if mode != PRIMAL {
        wave_keep_vector(wave_at, WAVE_RADIANCE_LOW, (*path).radiance_low);
        wave_keep_vector(wave_at, WAVE_BUT_ZERO, (*path).radiance_but_zero);
    }
}

#endif

// Multiplies the throughput; factors of zero are counted instead.
fn path_multiply(path: ptr<function, Path>, factor: vec3f) {
    let zero = vanishes(factor);
    (*path).zeros += select(vec3u(0u), vec3u(1u), zero);
    (*path).beta *= select(factor, vec3f(1.0), zero);
}

// The channels of `d` without a factor of zero; zero in the others.
fn path_alive(path: ptr<function, Path>, d: vec3f) -> vec3f {
    return select(vec3f(0.0), d, (*path).zeros == vec3u(0u));
}

// The weight of a real collision that the hero channel decided, without the albedo. `hero` is its extinction.
fn path_multiply_real(path: ptr<function, Path>, sigma: vec3f, hero: f32) {
    if settings.spectral == 1u {
        (*path).ratio *= sigma * (1.0 / hero);
        path_multiply(path, sigma * (1.0 / hero));
    }
}

// The weight of a null collision; `hero` is the hero channel's extinction, `mu` the majorant.
fn path_multiply_null(path: ptr<function, Path>, sigma: vec3f, hero: f32, mu: f32) {
    if settings.spectral == 1u {
        (*path).ratio *= (mu - sigma) * (1.0 / (mu - hero));
        path_multiply(path, (mu - sigma) * (1.0 / (mu - hero)));
    }
}

// Whether the channels that the medium extinguishes are negligible; if so, ends them.
fn path_fades(path: ptr<function, Path>, sigma: vec3f) -> bool {
    let extinguished = sigma > vec3f(0.0);
    if any(extinguished & ((*path).ratio > vec3f(NEGLIGIBLE))) {
        return false;
    }
    (*path).ratio = select((*path).ratio, vec3f(0.0), extinguished);
    (*path).zeros += select(vec3u(0u), vec3u(2u), extinguished);
    return true;
}

// Whether all further contributions are zero in every channel.
fn path_is_dark(path: ptr<function, Path>) -> bool {
    return all((*path).zeros >= vec3u(select(2u, 1u, mode == PRIMAL)));
}

// The largest channel of the throughput, without the scale of refraction.
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

// Whether next-event estimation could also have sampled the emitter that the path hits next, so that MIS weighs both.
fn path_competes(path: ptr<function, Path>) -> bool {
    return (*path).continuous && settings.lights > 0u;
}

// Whether a path that reaches the background has come straight from the camera, as alpha sees it: nothing that stood in its way
// counts. Only a path that was turned has a pdf above zero.
fn path_is_straight(path: ptr<function, Path>) -> bool {
    return (*path).depth == 0u || (settings.surfaces_only == SURFACES_ONLY_CLEAR && (*path).pdf == 0.0);
}

// Counts a surface that light passes straight through as an edge. It blocks shadow rays, so that light behind it is not
// weighed by MIS. False if the path ends there.
fn path_counts_null(path: ptr<function, Path>) -> bool {
    (*path).depth += 1u;
    (*path).continuous = false;
    return (*path).depth < settings.max_depth;
}

// Turns the path at `q` into a direction that was sampled with this pdf, by solid angle if `continuous`; `p` is the origin
// of rays that leave `q`.
fn path_turn(path: ptr<function, Path>, q: vec3f, p: vec3f, direction: vec3f, continuous: bool, pdf: f32) {
    (*path).origin = p;
    (*path).scattered_at = q;
    (*path).direction = direction;
    (*path).continuous = continuous;
    (*path).pdf = pdf;
    (*path).far = FAR;
}

// Lets the path go straight on through the surface at distance `t`, from `p` on its other side.
fn path_pass(path: ptr<function, Path>, t: f32, p: vec3f) {
    (*path).origin = p;
    (*path).far -= t;
}
