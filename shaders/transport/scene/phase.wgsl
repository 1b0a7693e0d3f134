// Phase functions: pdfs of the directions into which a medium scatters.
//
// All depend on the cosine between the propagation directions before and after scattering. A blend's weight is looked
// up at the point of scattering.

#import common/math
#import transport/rays/sampler
#import transport/lookup/volume
#import transport/scene/records

const INV_FOUR_PI: f32 = 0.07957747;

// Blends can be nested to this depth.
const MAX_NESTING: u32 = 4u;

// Henyey-Greenstein (Henyey1941); forward scattering for g > 0.
fn hg_eval(g: f32, cosine: f32) -> f32 {
    let d = 1.0 + g * g - 2.0 * cosine * g;
    return (1.0 - g * g) / (d * sqrt(d)) * INV_FOUR_PI;
}

// The derivative of ln hg_eval by g.
fn hg_log_slope(g: f32, cosine: f32) -> f32 {
    let d = 1.0 + g * g - 2.0 * cosine * g;
    return -2.0 * g * (1.0 / (1.0 - g * g)) + 3.0 * (cosine - g) * (1.0 / d);
}

// Samples a cosine with the pdf of hg_eval.
fn hg_sample(g: f32, u: f32) -> f32 {
    // The textbook formula (1 + g^2 - s^2) / 2g with s = (1 - g^2) / (1 + g x), with g divided out: that one cancels
    // near g = 0.
    let x = 2.0 * u - 1.0;
    let denominator = 1.0 - g + 2.0 * g * u;
    let bent = g * (1.0 - u) * u * (3.0 + 2.0 * g * x - g * g) / (denominator * denominator);
    return clamp(x + 2.0 * bent, -1.0, 1.0);
}

// Samples a cosine with pdf 3/8 (1 + c^2): the real root of c^3 + 3 c = 4 (2u - 1), by Cardano's formula.
fn rayleigh_sample(u: f32) -> f32 {
    let z = 2.0 * (2.0 * u - 1.0);
    let x = abs(z) + sqrt(z * z + 1.0);
    // Cube root by pow, refined by one Newton step: pow has few accurate digits on GPUs.
    var a = pow(x, 1.0 / 3.0);
    a -= (a - x / (a * a)) * (1.0 / 3.0);
    return clamp(select(1.0, -1.0, z < 0.0) * (a - 1.0 / a), -1.0, 1.0);
}

// The weights at `p` of a blend and of the blends nested as second parts.
fn blend_weights(index: u32, p: vec3f) -> vec4f {
    var weights = vec4f(0.0);
    var next = index;
    for (var i = 0u; i < MAX_NESTING; i++) {
        let record = phase_record(next);
        if record.kind != PHASE_BLEND {
            break;
        }
        let volume = volume_record(record.weight);
        let weight = volume_eval(volume, volume_stencil(volume, p)).x;
        weights = select(weights, vec4f(weight), vec4u(i) == vec4u(0u, 1u, 2u, 3u));
        next = record.first + 1u;
    }
    return weights;
}

// The pdf of scattering by an angle of this cosine.
fn phase_eval(index: u32, blend: vec4f, cosine: f32) -> f32 {
    var total = 0.0;
    var factor = 1.0;
    var next = index;
    var weights = blend;
    // Iterate down the second parts of nested blends; the first part is never a blend and is evaluated at once.
    for (var i = 0u; i <= MAX_NESTING; i++) {
        let record = phase_record(next);
        var part = record;
        var share = factor;
        let blends = record.kind == PHASE_BLEND;
        if blends {
            part = phase_record(record.first);
            share = factor * (1.0 - weights.x);
        }
        total += share * simple_eval(part, cosine);
        if !blends {
            break;
        }
        factor *= weights.x;
        weights = weights.yzwx;
        next = record.first + 1u;
    }
    return total;
}

#ifdef DRIFTS

// The derivative of the logarithm of phase_eval by the cosine.
fn phase_cosine_slope(index: u32, blend: vec4f, cosine: f32) -> f32 {
    var total = 0.0;
    var by_cosine = 0.0;
    var factor = 1.0;
    var next = index;
    var weights = blend;
    for (var i = 0u; i <= MAX_NESTING; i++) {
        let record = phase_record(next);
        var part = record;
        var share = factor;
        let blends = record.kind == PHASE_BLEND;
        if blends {
            part = phase_record(record.first);
            share = factor * (1.0 - weights.x);
        }
        let of_part = share * simple_eval(part, cosine);
        total += of_part;
        by_cosine += of_part * simple_cosine_slope(part, cosine);
        if !blends {
            break;
        }
        factor *= weights.x;
        weights = weights.yzwx;
        next = record.first + 1u;
    }
    return by_cosine / total;
}

// The derivative of the logarithm of a simple phase function by the cosine.
fn simple_cosine_slope(record: Phase, cosine: f32) -> f32 {
    switch record.kind {
        case PHASE_HG: {
            let g = value(parameter_first(record.slot));
            return 3.0 * g / (1.0 + g * g - 2.0 * cosine * g);
        }
        case PHASE_RAYLEIGH: {
            return 2.0 * cosine / (1.0 + cosine * cosine);
        }
        default: {
            return 0.0;
        }
    }
}

#endif

fn simple_eval(record: Phase, cosine: f32) -> f32 {
    switch record.kind {
        case PHASE_HG: {
            return hg_eval(value(parameter_first(record.slot)), cosine);
        }
        case PHASE_RAYLEIGH: {
            return 0.75 * INV_FOUR_PI * (1.0 + cosine * cosine);
        }
        default: {
            return INV_FOUR_PI;
        }
    }
}

// Samples a direction with the pdf phase_eval.
fn phase_sample(index: u32, blend: vec4f, incoming: vec3f, sampler: ptr<function, Sampler>) -> vec3f {
    var record = phase_record(index);
    var weights = blend;
    for (var i = 0u; i < MAX_NESTING && record.kind == PHASE_BLEND; i++) {
        record = phase_record(record.first + select(0u, 1u, sampler_draw(sampler) < weights.x));
        weights = weights.yzwx;
    }
    let u = sampler_draw(sampler);
    var cosine = 1.0 - 2.0 * u;
    if record.kind == PHASE_HG {
        cosine = hg_sample(value(parameter_first(record.slot)), u);
    } else if record.kind == PHASE_RAYLEIGH {
        cosine = rayleigh_sample(u);
    }
    return around(incoming, cosine, sampler_draw(sampler));
}

#ifdef REPLAY

// Sends `d_log`, the derivative by the logarithm of the pdf, to the phase function's parameters.
fn phase_adjoint(index: u32, blend: vec4f, p: vec3f, cosine: f32, d_log: f32) {
    if phase_record(index).kind == PHASE_ISOTROPIC || phase_record(index).kind == PHASE_RAYLEIGH {
        return;
    }
    let d = d_log / phase_eval(index, blend, cosine);
    var factor = 1.0;
    var next = index;
    var weights = blend;
    for (var i = 0u; i <= MAX_NESTING; i++) {
        let record = phase_record(next);
        var part = record;
        var share = factor;
        let blends = record.kind == PHASE_BLEND;
        if blends {
            part = phase_record(record.first);
            share = factor * (1.0 - weights.x);
        }
        slope(part, cosine, d * share);
        if !blends {
            return;
        }
        let volume = volume_record(record.weight);
        let a = simple_eval(part, cosine);
        let b = phase_eval(record.first + 1u, weights.yzwx, cosine);
        sink_volume(volume, volume_stencil(volume, p), vec3f(d * factor * (b - a), 0.0, 0.0));
        factor *= weights.x;
        weights = weights.yzwx;
        next = record.first + 1u;
    }
}

// Sends `d` times the derivative of a simple phase function to its parameter.
fn slope(record: Phase, cosine: f32, d: f32) {
    if record.kind == PHASE_HG {
        let g = value(parameter_first(record.slot));
        sink_number(record.slot, d * hg_eval(g, cosine) * hg_log_slope(g, cosine));
    }
}

#endif
