// The random numbers of one path: consecutive blocks of a counter, so that a replay draws the same ones.

#import bind/launch
#import transport/rays/random

// First block of a path's walk; block 0 is the film position. The numbers of both are stratified over the samples of a pixel.
const WALK: u32 = 1u;
// First block of the draws that only an adjoint makes.
const ADJOINT: u32 = 1073741824u;
// How far the blocks of draws beside a walk lie behind those of the walk.
const ASIDE: u32 = 536870912u;

const LN_2: f32 = 0.69314718;

// A sequence of random numbers, drawn with the pass's key.
struct Sampler {
    counter: Counter,
    values: vec4f,
    used: u32,
}

// The sequence that starts at `counter`'s block.
fn sampler_new(counter: Counter) -> Sampler {
    if counter.block != WALK {
        return Sampler(counter, vec4f(0.0), 4u);
    }
    let next = Counter(counter.sensor, counter.pixel, counter.sample, counter.block + 1u);
    return Sampler(next, stratified_uniform(pass_key(), counter), 0u);
}

// A sequence for draws beside this one, which does not advance: a walk and its replay have the same at the same place.
fn sampler_aside(sampler: Sampler) -> Sampler {
    let counter = sampler.counter;
    return sampler_new(Counter(counter.sensor, counter.pixel, counter.sample, counter.block + ASIDE));
}

// The next number, uniform in [0, 1).
fn sampler_draw(sampler: ptr<function, Sampler>) -> f32 {
    if (*sampler).used == 4u {
        (*sampler).values = random_uniform(pass_key(), (*sampler).counter);
        (*sampler).counter.block += 1u;
        (*sampler).used = 0u;
    }
    // The values are rotated, so that the next one is at a constant index.
    let value = (*sampler).values.x;
    (*sampler).values = (*sampler).values.yzwx;
    (*sampler).used += 1u;
    return value;
}

// -ln(1 - u) of a uniform number: exponentially distributed with mean one. Evaluated by a series, so that all machines
// and both languages agree: 1 - u = m 2^k with m near one, and ln m = 2 artanh((m - 1) / (m + 1)).
fn exponential(u: f32) -> f32 {
    let bits = bitcast<u32>(1.0 - u);
    // The exponent k for which m lies between sqrt(1/2) and sqrt(2).
    let k = bitcast<i32>(bits - 0x3f3504f3u) >> 23u;
    let m = bitcast<f32>(bits - (bitcast<u32>(k) << 23u));
    let s = (m - 1.0) / (m + 1.0);
    let s2 = s * s;
    let series = s * (2.0 + s2 * (2.0 / 3.0 + s2 * (2.0 / 5.0 + s2 * (2.0 / 7.0 + s2 * (2.0 / 9.0)))));
    return max(-(series + f32(k) * LN_2), LEAST);
}

// The smallest result of exponential: positive, because 0 over an extinction of 0 is not a number.
const LEAST: f32 = 2.98023224e-8;

// The point of the unit circle at angle 2 pi u, cosine and sine, by polynomials on an eighth of the circle.
fn circle(u: f32) -> vec2f {
    let quadrant = floor(u * 4.0 + 0.5);
    let x = (u * 4.0 - quadrant) * 1.57079633;
    let x2 = x * x;
    let sine = x * (1.0 + x2 * (-1.0 / 6.0 + x2 * (1.0 / 120.0 + x2 * (-1.0 / 5040.0))));
    let cosine = 1.0 + x2 * (-0.5 + x2 * (1.0 / 24.0 + x2 * (-1.0 / 720.0 + x2 * (1.0 / 40320.0))));
    // Odd quadrants turn by a right angle, the upper two by two.
    let turns = u32(quadrant) & 3u;
    let turned = select(vec2f(cosine, sine), vec2f(-sine, cosine), (turns & 1u) == 1u);
    return select(turned, -turned, (turns & 2u) == 2u);
}

// Two unit vectors perpendicular to a unit vector and to each other.
struct Frame {
    s: vec3f,
    t: vec3f,
}

// The frame of the unit vector `n` (Duff2017).
fn frame(n: vec3f) -> Frame {
    let side = select(1.0, -1.0, n.z < 0.0);
    let a = -1.0 / (side + n.z);
    let b = n.x * n.y * a;
    return Frame(vec3f(1.0 + side * n.x * n.x * a, side * b, -side * n.x), vec3f(b, side + n.y * n.y * a, -n.y));
}

// The unit vector at the polar angle with cosine `cosine` from `n` and azimuth 2 pi u.
fn around(n: vec3f, cosine: f32, u: f32) -> vec3f {
    let sine = sqrt(max(1.0 - cosine * cosine, 0.0));
    let place = circle(u);
    let axes = frame(n);
    return axes.s * (sine * place.x) + axes.t * (sine * place.y) + n * cosine;
}

// The point `t` along a ray.
fn along(origin: vec3f, direction: vec3f, t: f32) -> vec3f {
    return origin + direction * t;
}
