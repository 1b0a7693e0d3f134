// The adjoint pass of light tracing: where each path ends on the film, weighs the adjoint image with the filter and with its
// slopes, and sends the derivatives to the parameter of the optic.

#import bind/gradients
#import bind/launch
#import bind/light_path
#import transport/light/optic
#import transport/light/splat

@group(0) @binding(9) var<storage, read> adjoint_image: array<vec4f>;

@compute @workgroup_size(RAY_GROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    let cell = launch.first_pixel + (group.y * launch.groups_x + group.x) * RAY_GROUP + lane;
    if cell >= launch.last_pixel {
        return;
    }
    for (var sample = launch.first_sample; sample < launch.last_sample; sample++) {
        replay_path(path_place(cell, sample));
    }
    let count = launch.last_sample - launch.first_sample;
    statistics_add(0u, count);
    statistics_add(1u, count);
    report_faults();
}

// Traces the path from a point of the light and sends its derivatives.
fn replay_path(place: vec2f) {
    let arrival = follow(place);
    if !arrival.arrives || !arrival.bent || !path_is_near(arrival.film) {
        return;
    }
    let by = splat_adjoint(arrival.film, lamp_radiance(place) * settings.film.exposure);
    if any(by != vec3f(0.0)) {
        send(arrival, by.yz * arrival.weight, by.x);
    }
}

// The sum over pixels of (adjoint · `color`) times the filter around a film position, and its derivatives by that position.
fn splat_adjoint(place: vec2f, color: vec3f) -> vec3f {
    let across = taps(place.x);
    let down = taps(place.y);
    var sum = vec3f(0.0);
    for (var r = 0; r < down.count; r++) {
        let y = down.first + r;
        let row = taps_share(down, r);
        for (var k = 0; k < across.count; k++) {
            let x = across.first + k;
            if film_has(x, y) {
                let column = taps_share(across, k);
                let pixel = settings.film.first_pixel + u32(y) * settings.film.size.x + u32(x);
                let by = dot(adjoint_image[pixel].xyz, color);
                sum += by * vec3f(column.x * row.x, column.y * row.x, column.x * row.y);
            }
        }
    }
    return sum;
}
