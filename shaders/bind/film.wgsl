// What the pixels of a film receive of paths that end there from many invocations at once: red, green, blue, and whether something
// was no number.
//
// FLOAT_ATOMIC: the adapter has atomic addition of floats. Else 64-bit integers, whose sums do not depend on the order of
// additions: with WIDE_ATOMIC the adapter adds them atomically, else word by word. Their unit is such that all paths together
// stay within 62 binary digits on a single pixel.

#import bind/light

#ifdef FLOAT_ATOMIC

@group(0) @binding(26) var<storage, read_write> film: array<atomic<f32>>;

fn film_add(entry: u32, value: f32) {
    atomicAdd(&film[entry], value);
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

// What is no number, or too large, counts as zero, and the pixel as no number.
fn film_add(entry: u32, value: f32) {
    let scaled = value * settings.film.units;
    if is_finite(scaled) && abs(scaled) < FIXED_LARGEST {
        film_add_whole(entry, scaled);
    } else {
        film_add_whole(entry | 3u, 1.0);
    }
}

#endif

// Adds to a pixel.
fn film_add_color(pixel: u32, color: vec3f) {
    film_add(4u * pixel, color.x);
    film_add(4u * pixel + 1u, color.y);
    film_add(4u * pixel + 2u, color.z);
}
