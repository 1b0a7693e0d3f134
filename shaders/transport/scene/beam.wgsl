// The intensity of a point-like light by direction (the falloff of a spot, the picture of a spot or a projector), and its
// derivatives where a scene moves.

#import common/math
#import transport/scene/light
#import transport/scene/motion
#import transport/scene/texture

#ifdef REPLAY
#ifdef TRAILS

// The first and the third axis of a light's frame in the world: the light shines along the third.
struct Axes {
    s: vec3f,
    n: vec3f,
}

// The axes of a light at its present pose: for a point light any two, for one with a picture those of the picture.
fn axes(record: Light) -> Axes {
    if is_light(record.kind, LIGHT_POINT) {
        return Axes(vec3f(1.0, 0.0, 0.0), vec3f(0.0, 0.0, 1.0));
    }
    var axis = record.direction.xyz;
    if is_light(record.kind, LIGHT_PROJECTOR) {
        axis = unit(record.to_local[2].xyz);
    }
    let across = record.to_local[0].xyz;
    return Axes(unit(across - axis * dot(across, axis)), axis);
}

// Derivatives by the vector to a light, and by the light's axes.
struct BeamSlopes {
    by_to: vec3f,
    by_axes: Axes,
}

// The derivatives by `to`, the vector to a point, a spot or a projector, and by the light's axes, from `d` by the logarithm
// of the intensity that the light sends against `to`.
fn beam_adjoint(record: Light, to: vec3f, d: vec3f) -> BeamSlopes {
    if is_light(record.kind, LIGHT_POINT) {
        return BeamSlopes(vec3f(0.0), Axes(vec3f(0.0), vec3f(0.0)));
    }
    let shorter = 1.0 / sqrt(dot(to, to));
    let from_light = to * -shorter;
    let frame = axes(record);
    let s = frame.s;
    let n = frame.n;
    let t = cross(n, s);
    // The rows of the map from the coordinates along the axes to the picture's frame, which may be mirrored.
    let rows = transpose(mat3x3f(
        transform_vector(record.to_local, s),
        transform_vector(record.to_local, t),
        transform_vector(record.to_local, n),
    ));
    let local = transform_vector(record.to_local, from_light);
    let is_spot = is_light(record.kind, LIGHT_SPOT);
    // The gradient by the direction's coordinates along the axes s, t and n.
    let sum = d.x + d.y + d.z;
    var by = rows[2] * (-3.0 / local.z * sum);
    if is_spot {
        let falloff = spot_falloff(record, -from_light);
        by = vec3f(0.0, 0.0, falloff.y / falloff.x * sum);
    }
    if record.light_texture != NONE {
        let half = select(-0.5, 0.5, is_spot);
        let uv = picture_uv(record, local, half);
        let value = texture_value(record.light_texture, surface_point_new(vec3f(0.0), uv));
        let dark = value == vec3f(0.0);
        let by_value = select(d / select(value, vec3f(1.0), dark), vec3f(0.0), dark);
        let by_uv = picture_slopes(record.light_texture, uv, by_value) * (half / local.z / record.extent);
        by += (rows[0] - rows[2] * (local.x / local.z)) * by_uv.x;
        by += (rows[1] - rows[2] * (local.y / local.z)) * by_uv.y;
    }
    let by_from = s * by.x + t * by.y + n * by.z;
    let by_t = from_light * by.y;
    // The second axis is across the third and the first.
    let by_axes = Axes(from_light * by.x + cross(by_t, n), from_light * by.z + cross(s, by_t));
    return BeamSlopes(direction_adjoint(-from_light, shorter, -by_from), by_axes);
}

#endif
#endif
