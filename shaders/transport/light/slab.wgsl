// Light through a slab: from a point of the lamp into the flat side, out of the side of heights, onto the screen; and the
// derivatives of the arriving light by the heights.

#import bind/light
#import transport/light/heights
#import transport/light/landing

// Newton's steps towards the side of heights.
const STEPS: u32 = 12u;

// Newton's method ends when its step is at most this share of the distance.
const SETTLED: f32 = 1e-6;

// Where a path of light leaves the slab, if it does.
struct SlabExit {
    p: vec3f,
    place: Stencil,
    height: Height,
    leaves: bool,
}

// Refraction out of the slab, not at total reflection: onward = eta · inside + factor · (-slope, 1).
struct Bend {
    factor: f32,
    // Length of (-slope, 1).
    length: f32,
    cos_inside: f32,
    cos_outside: f32,
    passed: f32,
    refracts: bool,
}

// The path beyond the slab.
struct Beyond {
    // Transmitted share of light, times film pixels per unit of screen area.
    weight: f32,
    bend: Bend,
    landing: Landing,
    arrives: bool,
}

// A path through the slab.
struct SlabTrace {
    exit: SlabExit,
    beyond: Beyond,
}

// Film position and weight of a path, if it `arrives`; `bent` if it went through the slab, not beside it.
struct SlabPath {
    film: vec2f,
    weight: f32,
    arrives: bool,
    bent: bool,
    trace: SlabTrace,
}

// Where light that leaves the lamp at (u, v) meets the plane of the flat side.
fn slab_entry(place: vec2f) -> vec2f {
    return settings.slab.origin + settings.slab.across * place.x + settings.slab.down * place.y;
}

// Where light that enters at `entry` leaves through the side of heights; not where it meets the rim, which absorbs it.
fn slab_exit(entry: vec2f) -> SlabExit {
    var none: SlabExit;
    if !within(entry) {
        return none;
    }
    let inside = settings.slab.inside;
    let thickness = settings.slab.thickness;
    // Along the slab's normal no step is needed, since the height does not change the exit's x and y.
    let is_upright = inside.x == 0.0 && inside.y == 0.0;
    var far = thickness * (1.0 / inside.z);
    var settled = is_upright;
    for (var i = 0u; i < STEPS; i++) {
        let place = entry + far * inside.xy;
        if !within(place) {
            return none;
        }
        let at = stencil(place);
        let found = height(at);
        if settled {
            let top = select(far * inside.z - thickness, found.value, is_upright);
            return SlabExit(vec3f(place, top), at, found, true);
        }
        let above = far * inside.z - thickness - found.value;
        let slope = inside.z - found.slope.x * inside.x - found.slope.y * inside.y;
        if !(slope > 0.0) {
            return none;
        }
        let step = above / slope;
        far -= step;
        settled = abs(step) <= SETTLED * abs(far);
    }
    return none;
}

fn bend(slope: vec2f) -> Bend {
    var none: Bend;
    let eta = settings.slab.eta;
    let inside = settings.slab.inside;
    let length = sqrt(1.0 + slope.x * slope.x + slope.y * slope.y);
    let cos_inside = (inside.z - slope.x * inside.x - slope.y * inside.y) / length;
    let square = 1.0 - eta * eta * (1.0 - cos_inside * cos_inside);
    if !(cos_inside > 0.0) || !(square > 0.0) {
        return none;
    }
    let cos_outside = sqrt(square);
    let amplitudes = slab_reflected(eta, cos_inside, cos_outside);
    let passed = 1.0 - 0.5 * dot(amplitudes, amplitudes);
    return Bend((cos_outside - eta * cos_inside) / length, length, cos_inside, cos_outside, passed, true);
}

// Fresnel amplitudes of reflection inside at a side, for both polarisations.
fn slab_reflected(eta: f32, inside: f32, outside: f32) -> vec2f {
    return vec2f(
        (eta * inside - outside) / (eta * inside + outside),
        (inside - eta * outside) / (inside + eta * outside),
    );
}

// Light that passes beside the slab; none where it meets the rim.
fn pass_by(entry: vec2f) -> Landing {
    var none: Landing;
    let d = settings.slab.outside;
    let along = settings.slab.thickness / d.z;
    if within(entry) || within(entry + along * d.xy) {
        return none;
    }
    return land(vec3f(entry, -settings.slab.thickness), d);
}

// Refracts light that leaves the slab at `exit`, and lands it on the screen.
fn arrive(exit: SlabExit) -> Beyond {
    var none: Beyond;
    let slope = exit.height.slope;
    let bent = bend(slope);
    if !bent.refracts {
        return none;
    }
    let inside = settings.slab.eta * settings.slab.inside;
    let landing = land(exit.p, vec3f(inside.xy - bent.factor * slope, inside.z + bent.factor));
    return Beyond(settings.slab.entering * bent.passed * landing.pixels, bent, landing, landing.meets);
}

// Follows light from a place of the lamp, in [0, 1]².
fn slab_follow(place: vec2f) -> SlabPath {
    var path: SlabPath;
    let entry = slab_entry(place);
    let exit = slab_exit(entry);
    if !exit.leaves {
        let landing = pass_by(entry);
        path.film = landing.film;
        path.weight = landing.pixels;
        path.arrives = landing.meets;
        return path;
    }
    let beyond = arrive(exit);
    return SlabPath(beyond.landing.film, beyond.weight, beyond.arrives, true, SlabTrace(exit, beyond));
}

#ifdef REPLAY

// From derivatives by the place on the film and by the weight to those by the height where the path leaves the slab, and by
// its slopes there.
fn arrival_adjoint(trace: SlabTrace, by_film: vec2f, by_weight: f32) -> vec3f {
    let eta = settings.slab.eta;
    let inside = settings.slab.inside;
    let slope = trace.exit.height.slope;
    let by_log = by_weight * trace.beyond.weight;
    let by = landing_adjoint(trace.beyond.landing, by_film, by_log);
    // Refraction.
    let factor = trace.beyond.bend.factor;
    let length = trace.beyond.bend.length;
    let cos_inside = trace.beyond.bend.cos_inside;
    let cos_outside = trace.beyond.bend.cos_outside;
    let by_factor = by.direction.z - dot(by.direction.xy, slope);
    let amplitudes = slab_reflected(eta, cos_inside, cos_outside);
    let below = vec2f(eta * cos_inside + cos_outside, cos_inside + eta * cos_outside);
    let ratios = amplitudes / (below * below);
    // The derivative of `passed` by the cosines is (-cos_outside, cos_inside) times this.
    let turn = 2.0 * eta * (ratios.x + ratios.y) * by_log / trace.beyond.bend.passed;
    let by_outside = by_factor / length + turn * cos_inside;
    let by_inside = -(eta * by_factor) / length - turn * cos_outside + eta * eta * cos_inside / cos_outside * by_outside;
    let by_length = -(factor * by_factor + cos_inside * by_inside) / length;
    let by_slope = -(factor * by.direction.xy) + (slope * by_length - inside.xy * by_inside) / length;
    // The path's end in the slab moves along it where the side rises, and meets other slopes there.
    let curvature = trace.exit.height.curvature;
    let by_far = dot(by.p, inside) + by_slope.x * (curvature.x * inside.x + curvature.y * inside.y)
        + by_slope.y * (curvature.y * inside.x + curvature.z * inside.y);
    let rising = inside.z - slope.x * inside.x - slope.y * inside.y;
    return vec3f(by_far / rising, by_slope);
}

// Sends derivatives by the place on the film and by the weight of a path to the heights.
fn slab_send(trace: SlabTrace, by_film: vec2f, by_weight: f32) {
    let by = arrival_adjoint(trace, by_film, by_weight);
    height_adjoint(trace.exit.place, by.x, by.yz);
}

#endif
