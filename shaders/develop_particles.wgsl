// Settles the sums of a view's film, so that they have room for further paths; in the last dispatch (EXPOSURE_DONE) then adds
// them to the image.

#import bind/launch
#import bind/tracer
#ifndef FLOAT_ATOMIC
#import bind/bins
#import common/fixed
#endif

@group(0) @binding(8) var<storage, read_write> image: array<vec4f>;

#ifdef FLOAT_ATOMIC

// For each pixel the sum that paths add to; behind these the settled sums.
@group(0) @binding(26) var<storage, read_write> film: array<vec4f>;

fn settled_at(pixel: u32) -> u32 {
    return tracer.size.x * tracer.size.y + pixel;
}

// Moves a pixel's sum to its settled sum: added to a large sum of floats, a single path would be lost to rounding.
fn settle(pixel: u32) {
    film[settled_at(pixel)] += film[pixel];
    film[pixel] = vec4f(0.0);
}

fn received(pixel: u32) -> vec3f {
    return film[settled_at(pixel)].xyz;
}

#else

// Low and high words.
@group(0) @binding(26) var<storage, read_write> film: array<vec2u>;

// The digits that stay in a sum: its unit is 2^BIN_ORDERS times smaller than that of the next sum.
const REST: u32 = (1u << BIN_ORDERS) - 1u;

// Carries whole units of the next range from each lower sum to the next one. The sums then are digits of one number, so that
// the result does not depend on when and how often they are settled.
fn settle(pixel: u32) {
    for (var channel = 0u; channel < 3u; channel++) {
        let first = FILM_SUMS * pixel + BINS * channel;
        var carried = vec2u(0u);
        for (var bin = 0u; bin + 1u < BINS; bin++) {
            let sum = fixed_add(film[first + bin], carried);
            film[first + bin] = vec2u(sum.x & REST, 0u);
            // The sum over 2^BIN_ORDERS, rounded down.
            carried = vec2u((sum.x >> BIN_ORDERS) | (sum.y << (32u - BIN_ORDERS)), u32(i32(sum.y) >> BIN_ORDERS));
        }
        let highest = fixed_add(film[first + BINS - 1u], carried);
        film[first + BINS - 1u] = highest;
        if fixed_alarm(highest.y) {
            film[FILM_SUMS * pixel + SPOILED].x = 1u;
        }
    }
}

fn received(pixel: u32) -> vec3f {
    // A quiet NaN, built at run time: WGSL forbids NaN constants.
    let spoiled = film[FILM_SUMS * pixel + SPOILED].x;
    if spoiled != 0u {
        return vec3f(bitcast<f32>(0x7fc00000u | spoiled));
    }
    return vec3f(settled(pixel, 0u), settled(pixel, 1u), settled(pixel, 2u));
}

// The value of settled sums, computed from the magnitude: the digits of a small negative number would cancel.
fn settled(pixel: u32, channel: u32) -> f32 {
    let first = FILM_SUMS * pixel + BINS * channel;
    var low = film[first].x;
    var middle = film[first + 1u].x;
    var high = film[first + 2u];
    let negative = (high.y >> 31u) == 1u;
    if negative {
        let borrowed = middle + select(0u, 1u, low > 0u);
        high = fixed_negate(fixed_add(high, vec2u(select(0u, 1u, borrowed > 0u), 0u)));
        middle = (0u - borrowed) & REST;
        low = (0u - low) & REST;
    }
    let x = fixed_to_f32(high) / bin_units(2u) + f32(middle) / bin_units(1u) + f32(low) / bin_units(0u);
    return select(x, -x, negative);
}

fn fixed_add(a: vec2u, b: vec2u) -> vec2u {
    let low = a.x + b.x;
    return vec2u(low, a.y + b.y + select(0u, 1u, low < a.x));
}

#endif

@compute @workgroup_size(RAY_GROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    let pixel = launch.first_pixel + (group.y * launch.groups_x + group.x) * RAY_GROUP + lane;
    if pixel >= launch.last_pixel {
        return;
    }
    settle(pixel);
    if launch.exposure != EXPOSURE_DONE {
        return;
    }
    let seen = image[tracer.first_pixel + pixel];
    if seen.w >= 0.0 {
        image[tracer.first_pixel + pixel] = seen + vec4f(received(pixel) / f32(launch.spp), 0.0);
    }
}
