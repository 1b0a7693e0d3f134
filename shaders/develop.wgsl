// Gathers at every pixel of a view one sample of each pixel around, weighted by the film's filter; in the end (EXPOSURE_DONE)
// the weighted mean becomes the image: src/device/cpu/paths/develop.rs.

#import bind/launch
#import transport/rays/film
#import transport/rays/pixel

// A sample of each pixel; in the end the image.
@group(0) @binding(8) var<storage, read_write> image: array<vec4f>;
// Two vectors per pixel: the sum of radiance and share of unscattered rays, times the filter; and the sum of the filter.
@group(0) @binding(26) var<storage, read_write> film: array<vec4f>;

@compute @workgroup_size(RAY_GROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    let index = launch.first_pixel + (group.y * launch.groups_x + group.x) * RAY_GROUP + lane;
    if index >= launch.last_pixel {
        return;
    }
    if launch.exposure == EXPOSURE_DONE {
        let weight = film[2u * index + 1u].x;
        image[index] = vec4f(0.0, 0.0, 0.0, -1.0);
        if weight != 0.0 {
            // With negative lobes the share of unscattered rays can be below zero, which would mean a masked pixel.
            let seen = film[2u * index] / weight;
            image[index] = vec4f(seen.xyz, max(seen.w, 0.0));
        }
        return;
    }
    var sum = vec4f(0.0);
    var total = 0.0;
    if launch.first_sample > 0u {
        sum = film[2u * index];
        total = film[2u * index + 1u].x;
    }
    let pixel = batch_pixel(index);
    let sensor = sensors[pixel.sensor];
    let reach = filter_reach(sensor);
    // The pixels that are sampled: those of the film and of its border.
    let border = film_border(sensor);
    let sampled = vec2u(sensor.width, sensor.height) + 2u * border;
    let column = pixel.index % sensor.width + border;
    let row = pixel.index / sensor.width + border;
    for (var y = row - min(row, reach); y <= min(row + reach, sampled.y - 1u); y++) {
        for (var x = column - min(column, reach); x <= min(column + reach, sampled.x - 1u); x++) {
            let at = y * sampled.x + x;
            let seen = image[at];
            if seen.w < 0.0 {
                continue;
            }
            let u = film_numbers(pass_key(), Counter(pixel.sensor, at, launch.first_sample, 0u));
            let across = filter_weight(sensor, u.x - 0.5 - (f32(column) - f32(x)));
            let down = filter_weight(sensor, u.y - 0.5 - (f32(row) - f32(y)));
            sum += across * down * seen;
            total += across * down;
        }
    }
    film[2u * index] = sum;
    film[2u * index + 1u] = vec4f(total, 0.0, 0.0, 0.0);
}
