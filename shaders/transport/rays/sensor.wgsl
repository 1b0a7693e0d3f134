// Rays of the sensors that are no pinholes: thin lenses, parallel rays, and areas that light falls on.

#import common/layout
#import common/math
#import transport/rays/camera
#import transport/rays/sampler

// The length of rays that nothing bounds.
const RAY_LENGTH: f32 = 1e30;

// Offset of an irradiance meter's rays from its area, relative to the point's largest coordinate, or to one if that is
// larger: rounding must not make the area block its own rays.
const CLEARANCE: f32 = 1e-5;

// A point of a sensor's area, and the unit normal there.
struct AreaPoint {
    p: vec3f,
    normal: vec3f,
}

// The weight of all samples of a sensor: irradiance is π times the mean radiance around the normal.
fn sensor_weight(record: Sensor) -> f32 {
    return select(1.0, 3.14159265, record.kind == SENSOR_IRRADIANCEMETER);
}

// The ray through the film position (x, y), with the uniform numbers `u`.
fn sensor_ray(record: Sensor, x: f32, y: f32, u: vec4f) -> Ray {
    switch record.kind {
        case SENSOR_THINLENS: {
            return thinlens_ray(record, camera_ray(record, x, y), u.x, u.y);
        }
        case SENSOR_ORTHOGRAPHIC: {
            return orthographic_ray(record, x, y);
        }
        case SENSOR_IRRADIANCEMETER: {
            let at = area_point(record, u.x, u.y);
            let reach = max(max(max(abs(at.p.x), abs(at.p.y)), abs(at.p.z)), 1.0);
            let origin = along(at.p, at.normal, CLEARANCE * reach);
            return Ray(origin, around(at.normal, sqrt(1.0 - u.z), u.w), 0.0, RAY_LENGTH, true);
        }
        default: {
            let direction = forward(record);
            let origin = along(area_point(record, u.x, u.y).p, direction, -record.focus_distance);
            return Ray(origin, direction, 0.0, RAY_LENGTH, true);
        }
    }
}

// The direction that a sensor looks along.
fn forward(record: Sensor) -> vec3f {
    return unit(transform_vector(record.to_world, vec3f(0.0, 0.0, 1.0)));
}

// The ray of a thin lens through the point in focus on `pinhole`, the ray through the lens's centre.
fn thinlens_ray(record: Sensor, pinhole: Ray, u: f32, v: f32) -> Ray {
    let place = pinhole.near / record.near_clip * record.focus_distance;
    let focus = along(pinhole.origin, pinhole.direction, place);
    let lens = record.aperture_radius * sqrt(u) * circle(v);
    let origin = transform_point(record.to_world, vec3f(lens, 0.0));
    let span = focus - origin;
    // The distance along the ray for each unit along the axis.
    let stretch = length(span) / record.focus_distance;
    return Ray(origin, unit(span), record.near_clip * stretch, record.far_clip * stretch, pinhole.valid);
}

// The parallel ray through a film position; the focal length is in pixels a unit.
fn orthographic_ray(record: Sensor, x: f32, y: f32) -> Ray {
    let across = (record.center.x - x) / record.focal.x;
    let up = (record.center.y - y) / record.focal.y;
    let origin = transform_point(record.to_world, vec3f(across, up, record.near_clip));
    return Ray(origin, forward(record), 0.0, record.far_clip - record.near_clip, true);
}

// A point drawn uniformly from a sensor's area.
fn area_point(record: Sensor, u: f32, v: f32) -> AreaPoint {
    if record.area == AREA_CUBE || record.area == AREA_ROOM {
        return cube_point(record, u, v);
    }
    let around_axis = circle(v);
    var local = vec3f(0.0);
    switch record.area {
        case AREA_POINT: {}
        case AREA_DISK: {
            local = vec3f(sqrt(u) * around_axis, 0.0);
        }
        case AREA_RECTANGLE: {
            local = vec3f(2.0 * u - 1.0, 2.0 * v - 1.0, 0.0);
        }
        case AREA_CYLINDER, AREA_PIPE: {
            local = vec3f(around_axis, u);
        }
        default: {
            let z = 1.0 - 2.0 * u;
            local = vec3f(sqrt(max(1.0 - z * z, 0.0)) * around_axis, z);
        }
    }
    var normal = vec3f(0.0, 0.0, 1.0);
    if record.area == AREA_SPHERE {
        normal = local;
    } else if record.area == AREA_CAVITY {
        normal = -local;
    } else if record.area == AREA_CYLINDER {
        normal = vec3f(around_axis, 0.0);
    } else if record.area == AREA_PIPE {
        normal = vec3f(-around_axis, 0.0);
    }
    return AreaPoint(
        transform_point(record.area_to_world, local),
        unit(transform_vector(record.area_to_world, normal)),
    );
}

// A point drawn uniformly from the sides of a cube: `u` chooses a side in proportion to its area, and what is left of it a place there.
fn cube_point(record: Sensor, u: f32, v: f32) -> AreaPoint {
    let x = transform_vector(record.area_to_world, vec3f(1.0, 0.0, 0.0));
    let y = transform_vector(record.area_to_world, vec3f(0.0, 1.0, 0.0));
    let z = transform_vector(record.area_to_world, vec3f(0.0, 0.0, 1.0));
    let across = array<vec3f, 3>(cross(y, z), cross(z, x), cross(x, y));
    let areas = vec3f(length(across[0]), length(across[1]), length(across[2]));
    var rest = u * (areas.x + areas.y + areas.z);
    var axis = 0u;
    if rest >= areas.x {
        rest -= areas.x;
        axis = 1u;
        if rest >= areas.y {
            rest -= areas.y;
            axis = 2u;
        }
    }
    var along = across[0];
    var area = areas.x;
    if axis == 1u {
        along = across[1];
        area = areas.y;
    } else if axis == 2u {
        along = across[2];
        area = areas.z;
    }
    let share = 2.0 * rest / area;
    let side = select(1.0, -1.0, share < 1.0);
    let place = vec2f(2.0 * select(share - 1.0, share, share < 1.0) - 1.0, 2.0 * v - 1.0);
    var local = vec3f(side, place);
    if axis == 1u {
        local = vec3f(place.y, side, place.x);
    } else if axis == 2u {
        local = vec3f(place, side);
    }
    // Products of two half edges point inwards where the map mirrors.
    let mirrored = dot(x, across[0]) < 0.0;
    let facing = select(side, -side, mirrored == (record.area == AREA_CUBE));
    return AreaPoint(transform_point(record.area_to_world, local), unit(facing * along));
}
