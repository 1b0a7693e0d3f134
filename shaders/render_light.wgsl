// The primal pass of light tracing: paths from the cells of a light, splatted onto the film of a view.

#import bind/film
#import bind/launch
#import bind/light_path
#import transport/light/optic

@compute @workgroup_size(RAY_GROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    let cell = launch.first_pixel + (group.y * launch.groups_x + group.x) * RAY_GROUP + lane;
    if cell >= launch.last_pixel {
        return;
    }
    for (var sample = launch.first_sample; sample < launch.last_sample; sample++) {
        splat(path_place(cell, sample));
    }
}

// Traces the path from a point of the light and splats it.
fn splat(place: vec2f) {
    let arrival = follow(place);
    if arrival.arrives && path_is_near(arrival.film) {
        film_splat(arrival.film, lamp_radiance(place) * arrival.weight);
    }
}
