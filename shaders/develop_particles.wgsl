// Adds what the pixels of a view's film have received to the image. Sums are settled before, so that they have room for further
// paths; between dispatches nothing else is done.

#import bind/launch
#import bind/tracer
#ifndef FLOAT_ATOMIC
#import bind/bins
#import common/fixed
#endif

@group(0) @binding(8) var<storage, read_write> image: array<vec4f>;

#ifdef FLOAT_ATOMIC

// What paths have added to pixels, then what these have been settled with.
@group(0) @binding(26) var<storage, read_write> film: array<vec4f>;

fn settled_at(pixel: u32) -> u32 {
    return tracer.size.x * tracer.size.y + pixel;
}

// Beside a large sum of floats a path would be rounded away.
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

// Digits of a sum that stay in it: its unit is so many orders below that of the next one.
const REST: u32 = (1u << BIN_ORDERS) - 1u;

// Moves what the sums of lower ranges hold of the unit of the next one there. What is left are digits of one number, which is the
// same whenever this is done.
fn settle(pixel: u32) {
    for (var channel = 0u; channel < 3u; channel++) {
        let first = FILM_SUMS * pixel + BINS * channel;
        var carried = vec2u(0u);
        for (var bin = 0u; bin + 1u < BINS; bin++) {
            let sum = fixed_add(film[first + bin], carried);
            film[first + bin] = vec2u(sum.x & REST, 0u);
            // Divided, and rounded down.
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
    // A quiet NaN, which no constant may be.
    let spoiled = film[FILM_SUMS * pixel + SPOILED].x;
    if spoiled != 0u {
        return vec3f(bitcast<f32>(0x7fc00000u | spoiled));
    }
    return vec3f(settled(pixel, 0u), settled(pixel, 1u), settled(pixel, 2u));
}

// What sums that are settled come to, by their magnitude: digits of small negative numbers would cancel.
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
