// Converts the sums of a film's pixels to a view of the image.

#import bind/launch
#import bind/light
#ifndef FLOAT_ATOMIC
#import common/fixed
#endif

@group(0) @binding(8) var<storage, read_write> image: array<vec4f>;

#ifdef FLOAT_ATOMIC

@group(0) @binding(26) var<storage, read> film: array<vec4f>;

fn received(pixel: u32) -> vec3f {
    return film[pixel].xyz;
}

#else

// Low and high words.
@group(0) @binding(26) var<storage, read> film: array<vec2u>;

fn received(pixel: u32) -> vec3f {
    // A quiet NaN, built at run time: WGSL forbids NaN constants.
    let spoiled = film[4u * pixel + 3u].x;
    if spoiled != 0u {
        return vec3f(bitcast<f32>(0x7fc00000u | spoiled));
    }
    return vec3f(
        fixed_to_f32(film[4u * pixel]),
        fixed_to_f32(film[4u * pixel + 1u]),
        fixed_to_f32(film[4u * pixel + 2u]),
    ) / settings.film.units;
}

#endif

@compute @workgroup_size(RAY_GROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    let pixel = launch.first_pixel + (group.y * launch.groups_x + group.x) * RAY_GROUP + lane;
    if pixel < launch.last_pixel {
        image[settings.film.first_pixel + pixel] = vec4f(received(pixel) * settings.film.exposure, 0.0);
    }
}
