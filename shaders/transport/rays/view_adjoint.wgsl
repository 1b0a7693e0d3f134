// From derivatives by a ray to those by its camera: a torque and a force along the camera's axes, and those by its focal
// lengths and its lens (docs/method.md, section 22).

#import common/layout
#import common/math

// Derivatives by a ray's origin, by its unit direction (only the part perpendicular to it counts), and by the clip distance
// where its samples begin.
struct ByRay {
    origin: vec3f,
    direction: vec3f,
    near: f32,
}

// Derivatives by a view, through one of its rays; `zoom` is by the logarithm of the focal lengths, `radial` by the first
// radial coefficient.
struct ByView {
    torque: vec3f,
    force: vec3f,
    zoom: f32,
    radial: f32,
}

// The lens model at a point of the image plane.
struct LensAt {
    // Distorted position of the point, in focal lengths.
    distorted: vec2f,
    // Its derivatives by the point, row by row.
    row_x: vec2f,
    row_y: vec2f,
    // Its derivative by the first radial coefficient.
    by_radial: vec2f,
}

// Components of a world vector along the columns of `axes`.
fn along_axes(axes: Rows, v: vec3f) -> vec3f {
    return axes[0].xyz * v.x + axes[1].xyz * v.y + axes[2].xyz * v.z;
}

// A world direction as a unit vector in the camera's frame. Inverts the matrix of axes, since its columns are at right angles
// only up to rounding.
fn seen_from(axes: Rows, d: vec3f) -> vec3f {
    let a = vec3f(axes[0].x, axes[1].x, axes[2].x);
    let b = vec3f(axes[0].y, axes[1].y, axes[2].y);
    let c = vec3f(axes[0].z, axes[1].z, axes[2].z);
    let across = cross(b, c);
    // A mirrored frame has a negative determinant, which decides the sign.
    return unit(vec3f(dot(across, d), dot(cross(c, a), d), dot(cross(a, b), d)) / dot(a, across));
}

// The lens of a camera at a point of the image plane, whose distance from the axis is the tangent of its angle.
fn lens_at(record: Sensor, point: vec2f) -> LensAt {
    let u = point.x;
    let v = point.y;
    let r2 = u * u + v * v;
    if record.distortion_model == DISTORTION_NONE {
        return LensAt(point, vec2f(1.0, 0.0), vec2f(0.0, 1.0), vec2f(0.0));
    }
    let k = record.distortion[0];
    if record.distortion_model == DISTORTION_FISHEYE {
        return fisheye_at(k, point, r2);
    }
    let p1 = record.distortion[1].x;
    let p2 = record.distortion[1].y;
    let radial = 1.0 + r2 * (k.x + r2 * (k.y + r2 * k.z));
    let slope = 2.0 * (k.x + r2 * (2.0 * k.y + r2 * (3.0 * k.z)));
    let mixed = slope * u * v + 2.0 * p1 * u + 2.0 * p2 * v;
    return LensAt(
        vec2f(
            u * radial + 2.0 * p1 * u * v + p2 * (r2 + 2.0 * u * u),
            v * radial + p1 * (r2 + 2.0 * v * v) + 2.0 * p2 * u * v,
        ),
        vec2f(radial + slope * u * u + 2.0 * p1 * v + 6.0 * p2 * u, mixed),
        vec2f(mixed, radial + slope * v * v + 6.0 * p1 * v + 2.0 * p2 * u),
        point * r2,
    );
}

// lens_at of the equidistant fisheye.
fn fisheye_at(k: vec4f, point: vec2f, r2: f32) -> LensAt {
    if !(r2 > 1e-16) {
        return LensAt(point, vec2f(1.0, 0.0), vec2f(0.0, 1.0), vec2f(0.0));
    }
    let r = sqrt(r2);
    let theta = arc_tangent(r, 1.0);
    let t2 = theta * theta;
    let bent = theta * (1.0 + t2 * (k.x + t2 * (k.y + t2 * (k.z + t2 * k.w))));
    let slope = 1.0 + t2 * (3.0 * k.x + t2 * (5.0 * k.y + t2 * (7.0 * k.z + t2 * (9.0 * k.w))));
    let share = bent / r;
    let mixed = (slope / (1.0 + r2) - share) / r2;
    let u = point.x;
    let v = point.y;
    return LensAt(
        point * share,
        vec2f(share + mixed * u * u, mixed * u * v),
        vec2f(mixed * u * v, share + mixed * v * v),
        point * (theta * t2 / r),
    );
}

// Derivatives by a view at its present pose, from those by one of its rays, which has this direction.
fn view_adjoint(record: Sensor, direction: vec3f, by: ByRay) -> ByView {
    let seen = seen_from(record.to_world, direction);
    let pull = along_axes(record.to_world, by.direction);
    // The direction is that of (-u, -v, 1), whose length is 1 / seen.z.
    let point = -seen.xy / seen.z;
    let near = by.near * record.near_clip * seen.z;
    let by_point = near * point - (pull.xy - dot(seen, pull) * seen.xy) * seen.z;
    let lens = lens_at(record, point);
    let determinant = lens.row_x.x * lens.row_y.y - lens.row_x.y * lens.row_y.x;
    // The transposed inverse of the lens's Jacobian takes derivatives by the point to those by its distorted position.
    let by_seen = vec2f(
        lens.row_y.y * by_point.x - lens.row_y.x * by_point.y,
        lens.row_x.x * by_point.y - lens.row_x.y * by_point.x,
    ) / determinant;
    return ByView(
        cross(seen, pull),
        along_axes(record.to_world, by.origin),
        -dot(by_seen, lens.distorted),
        -dot(by_seen, lens.by_radial),
    );
}
