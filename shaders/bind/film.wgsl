// The film of light tracing, onto which many invocations splat concurrently: for each pixel red, green, blue, and whether a
// contribution was not finite.
//
// FLOAT_ATOMIC: the adapter has atomic addition of floats. Else 64-bit integers, whose sums do not depend on the order of
// additions: with WIDE_ATOMIC the adapter adds them atomically, else word by word. Their unit is such that all paths together
// stay within 62 binary digits on a single pixel; among surfaces (PARTICLES), where a path's contribution has no known bound,
// a colour has several sums (bind/bins.wgsl).

#import bind/film_place
#import transport/light/splat

#ifdef FLOAT_ATOMIC

@group(0) @binding(26) var<storage, read_write> film: array<atomic<f32>>;

fn film_add(pixel: u32, channel: u32, value: f32) {
    atomicAdd(&film[4u * pixel + channel], value);
}

#else
#import common/fixed
#import common/math

#ifdef WIDE_ATOMIC

@group(0) @binding(26) var<storage, read_write> film: array<atomic<i64>>;

fn film_add_whole(entry: u32, scaled: f32) {
    atomicAdd(&film[entry], i64(round(scaled)));
}

#else

@group(0) @binding(26) var<storage, read_write> film: array<atomic<u32>>;

fn film_add_whole(entry: u32, scaled: f32) {
    let words = fixed_from_f32(scaled);
    let low = atomicAdd(&film[2u * entry], words.x);
    let carry = select(0u, 1u, low + words.x < low);
    atomicAdd(&film[2u * entry + 1u], words.y + carry);
}

#endif

#ifdef PARTICLES
#import bind/bins

// A contribution that is not finite, or too large, counts as zero and makes the pixel not a number.
fn film_add(pixel: u32, channel: u32, value: f32) {
    let order = i32((bitcast<u32>(value) >> 23u) & 0xffu) - 127;
    if order >= BINS_END {
        film_add_whole(FILM_SUMS * pixel + SPOILED, 1.0);
    } else if value != 0.0 {
        let bin = u32(max(order - BINS_BEGIN, 0)) / BIN_ORDERS;
        film_add_whole(FILM_SUMS * pixel + BINS * channel + bin, value * bin_units(bin));
    }
}

#else

// A contribution that is not finite, or too large, counts as zero and makes the pixel not a number.
fn film_add(pixel: u32, channel: u32, value: f32) {
    let scaled = value * settings.film.units;
    if is_finite(scaled) && abs(scaled) < FIXED_LARGEST {
        film_add_whole(4u * pixel + channel, scaled);
    } else {
        film_add_whole(4u * pixel + 3u, 1.0);
    }
}

#endif
#endif

// Splats a colour at a film position onto the pixels that the filter reaches.
fn film_splat(place: vec2f, color: vec3f) {
    if !path_is_near(place) {
        return;
    }
    let across = taps(place.x);
    let down = taps(place.y);
    for (var r = 0; r < down.count; r++) {
        let y = down.first + r;
        let row = taps_share(down, r).x;
        for (var k = 0; k < across.count; k++) {
            let x = across.first + k;
            if film_has(x, y) {
                film_add_color(u32(y) * film_size().x + u32(x), color * (taps_share(across, k).x * row));
            }
        }
    }
}

// Adds to a pixel.
fn film_add_color(pixel: u32, color: vec3f) {
    film_add(pixel, 0u, color.x);
    film_add(pixel, 1u, color.y);
    film_add(pixel, 2u, color.z);
}
