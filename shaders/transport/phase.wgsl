// Phase functions: probability densities over the directions into which a medium scatters.
//
// All depend on the cosine between the direction that light came along and the one it leaves along. A blend's weight is
// looked up where the light is scattered.

#import common/math
#import transport/sampler
#import transport/volume
#import transport/world

const INV_FOUR_PI: f32 = 0.07957747;

// Blends may stand in blends this many times.
const MAX_NESTING: u32 = 4u;

// Henyey-Greenstein (Henyey1941); forward for g > 0.
fn hg_eval(g: f32, cosine: f32) -> f32 {
    let d = 1.0 + g * g - 2.0 * cosine * g;
    return (1.0 - g * g) / (d * sqrt(d)) * INV_FOUR_PI;
}

// The derivative of ln hg_eval by g.
fn hg_log_slope(g: f32, cosine: f32) -> f32 {
    let d = 1.0 + g * g - 2.0 * cosine * g;
    return -2.0 * g * (1.0 / (1.0 - g * g)) + 3.0 * (cosine - g) * (1.0 / d);
}

// A cosine distributed as hg_eval.
fn hg_sample(g: f32, u: f32) -> f32 {
    if abs(g) < 1e-3 {
        return 1.0 - 2.0 * u;
    }
    let s = (1.0 - g * g) / (1.0 - g + 2.0 * g * u);
    return clamp((1.0 + g * g - s * s) / (2.0 * g), -1.0, 1.0);
}

// A cosine distributed as 3/8 (1 + c^2): the real root of c^3 + 3 c = 4 (2u - 1), by Cardano's formula.
fn rayleigh_sample(u: f32) -> f32 {
    let z = 2.0 * (2.0 * u - 1.0);
    let x = abs(z) + sqrt(z * z + 1.0);
    // The cube root, sharpened by a step of Newton's method.
    var a = pow(x, 1.0 / 3.0);
    a -= (a - x / (a * a)) * (1.0 / 3.0);
    return clamp(select(1.0, -1.0, z < 0.0) * (a - 1.0 / a), -1.0, 1.0);
}

fn blend_weight(record: Phase, p: vec3f) -> f32 {
    let volume = volume_record(record.weight);
    var at = volume_stencil(volume, p);
    return volume_eval(volume, &at).x;
}

// The density of scattering from `incoming` into `outgoing` at `p`, both unit vectors along which light is followed.
fn phase_eval(index: u32, p: vec3f, incoming: vec3f, outgoing: vec3f) -> f32 {
    let cosine = dot(incoming, outgoing);
    var total = 0.0;
    var factor = 1.0;
    var next = index;
    // A blend's second part is walked on; its first part, which is never a blend, is added at once.
    for (var i = 0u; i <= MAX_NESTING; i++) {
        let record = phase_record(next);
        if record.kind != PHASE_BLEND {
            return total + factor * simple_eval(record, cosine);
        }
        let weight = blend_weight(record, p);
        total += factor * (1.0 - weight) * simple_eval(phase_record(record.first), cosine);
        factor *= weight;
        next = record.first + 1u;
    }
    return total;
}

fn simple_eval(record: Phase, cosine: f32) -> f32 {
    switch record.kind {
        case PHASE_HG: {
            return hg_eval(values[parameter_first(record.slot)], cosine);
        }
        case PHASE_RAYLEIGH: {
            return 0.75 * INV_FOUR_PI * (1.0 + cosine * cosine);
        }
        default: {
            return INV_FOUR_PI;
        }
    }
}

// A direction distributed as phase_eval.
fn phase_sample(index: u32, p: vec3f, incoming: vec3f, sampler: ptr<function, Sampler>) -> vec3f {
    var record = phase_record(index);
    for (var i = 0u; i <= MAX_NESTING && record.kind == PHASE_BLEND; i++) {
        let weight = blend_weight(record, p);
        record = phase_record(record.first + select(0u, 1u, sampler_next(sampler) < weight));
    }
    let u = sampler_next(sampler);
    var cosine = 1.0 - 2.0 * u;
    if record.kind == PHASE_HG {
        cosine = hg_sample(values[parameter_first(record.slot)], u);
    } else if record.kind == PHASE_RAYLEIGH {
        cosine = rayleigh_sample(u);
    }
    return around(incoming, cosine, sampler_next(sampler));
}

#ifdef REPLAY

// Sends `d`, the derivative by the logarithm of the density, on to the phase function's parameters.
fn phase_scatter(index: u32, p: vec3f, incoming: vec3f, outgoing: vec3f, d_log: f32) {
    let record = phase_record(index);
    let cosine = dot(incoming, outgoing);
    if record.kind == PHASE_HG {
        sink_number(record.slot, d_log * hg_log_slope(values[parameter_first(record.slot)], cosine));
        return;
    }
    if record.kind != PHASE_BLEND {
        return;
    }
    let d = d_log * (1.0 / phase_eval(index, p, incoming, outgoing));
    var factor = 1.0;
    var next = index;
    for (var i = 0u; i <= MAX_NESTING; i++) {
        let part = phase_record(next);
        if part.kind != PHASE_BLEND {
            slope(part, cosine, d * factor);
            return;
        }
        let volume = volume_record(part.weight);
        var at = volume_stencil(volume, p);
        let weight = volume_eval(volume, &at).x;
        let first = phase_record(part.first);
        slope(first, cosine, d * factor * (1.0 - weight));
        let a = simple_eval(first, cosine);
        let b = phase_eval(part.first + 1u, p, incoming, outgoing);
        sink_volume(volume, &at, vec3f(d * factor * (b - a), 0.0, 0.0));
        factor *= weight;
        next = part.first + 1u;
    }
}

// Sends `d` times the slope of a simple phase function on to its parameter.
fn slope(record: Phase, cosine: f32, d: f32) {
    if record.kind == PHASE_HG {
        let g = values[parameter_first(record.slot)];
        sink_number(record.slot, d * hg_eval(g, cosine) * hg_log_slope(g, cosine));
    }
}

#endif
