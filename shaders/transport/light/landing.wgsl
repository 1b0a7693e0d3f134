// Where light that leaves an optic meets the screen, and the film that sees it there.

#import bind/light

// Where light lands on the screen, and the film position that sees this point.
struct Landing {
    // In pixels from the film's upper left corner.
    film: vec2f,
    // Film area in pixels per unit of the screen's area there.
    pixels: f32,
    // The direction in the screen's frame; not a unit vector.
    onward: vec3f,
    // Homogeneous coordinates on the film.
    seen: vec3f,
    // Factor on `onward` from the point of departure to the screen.
    reach: f32,
    // Whether light meets the screen, within the film's clip distances.
    meets: bool,
}

// Derivatives by the point and the direction that light comes from.
struct LandingAdjoint {
    p: vec3f,
    direction: vec3f,
}

// Whether a place is within [-1, 1]².
fn within(p: vec2f) -> bool {
    return !(p.x > 1.0) && !(p.x < -1.0) && !(p.y > 1.0) && !(p.y < -1.0);
}

// The linear part of an affine map.
fn turned(map: Rows, v: vec3f) -> vec3f {
    return vec3f(dot(map[0].xyz, v), dot(map[1].xyz, v), dot(map[2].xyz, v));
}

// The transpose of the linear part of an affine map.
fn turned_back(map: Rows, v: vec3f) -> vec3f {
    return map[0].xyz * v.x + map[1].xyz * v.y + map[2].xyz * v.z;
}

// Intersects light from `p` along `direction`, in the optic's frame, with the screen, and projects that point onto the film.
fn land(p: vec3f, direction: vec3f) -> Landing {
    var landing: Landing;
    let map = settings.screen.to_screen;
    let onward = turned(map, direction);
    let at = turned(map, p) + vec3f(map[0].w, map[1].w, map[2].w);
    if !(onward.z * settings.screen.front < 0.0) {
        return landing;
    }
    let reach = -at.z / onward.z;
    if !(reach > 0.0) {
        return landing;
    }
    let place = at.xy + reach * onward.xy;
    if !within(place) {
        return landing;
    }
    let film = settings.film;
    let seen = vec3f(
        film.row_x.x * place.x + film.row_x.y * place.y + film.row_x.z,
        film.row_y.x * place.x + film.row_y.y * place.y + film.row_y.z,
        film.depth.x * place.x + film.depth.y * place.y + film.depth.z,
    );
    if seen.z < film.near_clip || seen.z > film.far_clip {
        return landing;
    }
    let scale = 1.0 / seen.z;
    return Landing(seen.xy * scale, film.pixels * scale * scale * scale, onward, seen, reach, true);
}

#ifdef REPLAY

// From derivatives by the place on the film and by the logarithm of `pixels` to those by the point and the direction that
// light comes from.
fn landing_adjoint(landing: Landing, by_film: vec2f, by_log: f32) -> LandingAdjoint {
    let film = settings.film;
    let onward = landing.onward;
    let scale = 1.0 / landing.seen.z;
    let by_seen = by_film * scale;
    let by_distance = -dot(by_seen, landing.film) - 3.0 * by_log * scale;
    let by_place = film.row_x.xy * by_seen.x + film.row_y.xy * by_seen.y + film.depth.xy * by_distance;
    let by_reach = dot(by_place, onward.xy);
    let by_depth = -(by_reach / onward.z);
    let by = vec3f(by_place, by_depth);
    let map = settings.screen.to_screen;
    return LandingAdjoint(turned_back(map, by), turned_back(map, landing.reach * by));
}

#endif
