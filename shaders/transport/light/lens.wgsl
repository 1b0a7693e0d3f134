// Connections from surface points to a sensor: where a point is seen on the film, and from which direction.

#import bind/launch
#import bind/tracer
#import common/math
#import transport/rays/sampler

// How a sensor sees a point, if it is `seen`.
struct Sight {
    // In pixels from the film's top left corner.
    film: vec2f,
    // From the point to the sensor.
    direction: vec3f,
    // Length of the connection, from the point to the near clip distance, that must be free of occluders.
    distance: f32,
    // Film area in pixels per unit of area perpendicular to the connection.
    pixels: f32,
    seen: bool,
}

const UNSEEN: Sight = Sight(vec2f(0.0), vec3f(0.0), 0.0, 0.0, false);

// Connects the point `p` with the point of the aperture that `u` draws.
fn look_at(p: vec3f, u: vec2f) -> Sight {
    let sensor = sensors[tracer.sensor];
    let local = transform_point(tracer.to_local, p);
    if !(local.z >= sensor.near_clip && local.z <= sensor.far_clip) {
        return UNSEEN;
    }
    if sensor.kind == SENSOR_ORTHOGRAPHIC {
        return look_along(sensor, local);
    }
    return look_through(sensor, p, local, u);
}

// `look_at` for an orthographic sensor.
fn look_along(sensor: Sensor, local: vec3f) -> Sight {
    let forward = unit(transform_vector(sensor.to_world, vec3f(0.0, 0.0, 1.0)));
    let distance = (local.z - sensor.near_clip) * tracer.step;
    let pixels = sensor.focal.x * sensor.focal.y * tracer.share;
    return Sight(lens_film(sensor, local.xy), -forward, distance, pixels, true);
}

// `look_at` for a pinhole or a thin lens.
fn look_through(sensor: Sensor, p: vec3f, local: vec3f, u: vec2f) -> Sight {
    var hole = vec2f(0.0);
    var focus = 1.0;
    if sensor.kind == SENSOR_THINLENS {
        hole = sensor.aperture_radius * sqrt(u.x) * circle(u.y);
        focus = sensor.focus_distance;
    }
    // Where the ray crosses the plane in focus, at the distance one.
    let sharp = hole / focus + (local.xy - hole) / local.z;
    let to = transform_point(sensor.to_world, vec3f(hole, 0.0)) - p;
    let square = dot(to, to);
    if square == 0.0 {
        return UNSEEN;
    }
    let distance = sqrt(square);
    let cosine = local.z / distance;
    let pixels = sensor.focal.x * sensor.focal.y / (cosine * cosine * cosine * square);
    let until_clip = distance * (1.0 - sensor.near_clip / local.z);
    return Sight(lens_film(sensor, sharp), to / distance, until_clip, pixels, true);
}

// The film position of a point of the plane at distance one.
fn lens_film(sensor: Sensor, at: vec2f) -> vec2f {
    return sensor.center - sensor.focal * at;
}
