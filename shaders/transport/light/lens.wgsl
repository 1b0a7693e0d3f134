// Sensors as light sees them that arrives: where a point of a surface is seen on the film, and from where.

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
    // How far the sensor sees the point through nothing.
    distance: f32,
    // Pixels that an area across the view fills.
    pixels: f32,
    seen: bool,
}

const UNSEEN: Sight = Sight(vec2f(0.0), vec3f(0.0), 0.0, 0.0, false);

// How the point `p` is seen through the place of the aperture that `u` draws.
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

// By parallel rays.
fn look_along(sensor: Sensor, local: vec3f) -> Sight {
    let forward = unit(transform_vector(sensor.to_world, vec3f(0.0, 0.0, 1.0)));
    let distance = (local.z - sensor.near_clip) * tracer.step;
    let pixels = sensor.focal.x * sensor.focal.y * tracer.share;
    return Sight(lens_film(sensor, local.xy), -forward, distance, pixels, true);
}

// Through a pinhole or a lens.
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

// The place on the film of a point at the distance one.
fn lens_film(sensor: Sensor, at: vec2f) -> vec2f {
    return sensor.center - sensor.focal * at;
}
