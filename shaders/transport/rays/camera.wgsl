// Rays of a perspective camera with OpenCV's lens distortions, undistorted by Newton's method.

#import common/layout
#import common/math

// A ray in world space; `direction` is a unit vector and t runs from `near` to `far`. Not `valid` where Newton's
// method does not converge: such pixels are masked.
struct Ray {
    origin: vec3f,
    direction: vec3f,
    near: f32,
    far: f32,
    valid: bool,
}

// A point of the undistorted image plane, if `valid`.
struct Undistorted {
    point: vec2f,
    valid: bool,
}

const NEWTON_STEPS: u32 = 12u;
const NEWTON_TOLERANCE: f32 = 1e-6;

// The ray through the film position (x, y), in pixels from the top left corner.
fn camera_ray(sensor: Sensor, x: f32, y: f32) -> Ray {
    let distorted = vec2f((x - sensor.center.x) / sensor.focal.x, (y - sensor.center.y) / sensor.focal.y);
    var plane = Undistorted(distorted, true);
    if sensor.distortion_model == DISTORTION_BROWN {
        plane = undistort_brown(sensor.distortion[0], sensor.distortion[1], distorted);
    } else if sensor.distortion_model == DISTORTION_FISHEYE {
        plane = undistort_fisheye(sensor.distortion[0], distorted);
    }
    var ray: Ray;
    if !plane.valid {
        return ray;
    }
    // OpenCV's camera space has +X right and +Y down, ours +X left and +Y up.
    let u = plane.point.x;
    let v = plane.point.y;
    let distance = sqrt(u * u + v * v + 1.0);
    let direction = vec3f(-u / distance, -v / distance, 1.0 / distance);
    ray.origin = vec3f(sensor.to_world[0].w, sensor.to_world[1].w, sensor.to_world[2].w);
    ray.direction = unit(transform_vector(sensor.to_world, direction));
    ray.near = sensor.near_clip * distance;
    ray.far = sensor.far_clip * distance;
    ray.valid = true;
    return ray;
}

// Solves distort(p) = goal for the Brown model (OpenCV's formula). Not valid unless the residual vanishes at a point
// where the Jacobian's determinant is positive, that is, on the branch that contains the centre.
fn undistort_brown(k: vec4f, p: vec4f, goal: vec2f) -> Undistorted {
    let k1 = k.x;
    let k2 = k.y;
    let k3 = k.z;
    let p1 = p.x;
    let p2 = p.y;
    var x = goal.x;
    var y = goal.y;
    for (var step = 0u; step < NEWTON_STEPS; step++) {
        let r2 = x * x + y * y;
        let radial = 1.0 + r2 * (k1 + r2 * (k2 + r2 * k3));
        let slope = 2.0 * (k1 + r2 * (2.0 * k2 + r2 * (3.0 * k3)));
        let fx = x * radial + 2.0 * p1 * x * y + p2 * (r2 + 2.0 * x * x) - goal.x;
        let fy = y * radial + p1 * (r2 + 2.0 * y * y) + 2.0 * p2 * x * y - goal.y;
        let xx = radial + slope * x * x + 2.0 * p1 * y + 6.0 * p2 * x;
        let xy = slope * x * y + 2.0 * p1 * x + 2.0 * p2 * y;
        let yy = radial + slope * y * y + 6.0 * p1 * y + 2.0 * p2 * x;
        let determinant = xx * yy - xy * xy;
        if determinant <= 1e-6 {
            return Undistorted(vec2f(0.0), false);
        }
        if abs(fx) + abs(fy) <= NEWTON_TOLERANCE {
            return Undistorted(vec2f(x, y), true);
        }
        x -= (yy * fx - xy * fy) / determinant;
        y -= (xx * fy - xy * fx) / determinant;
    }
    return Undistorted(vec2f(0.0), false);
}

// Solves the equidistant fisheye model t (1 + k1 t^2 + k2 t^4 + k3 t^6 + k4 t^8) = |goal| for the angle t and returns
// the point tan t on the image plane. Not valid for t >= pi / 2, whose rays miss the plane, and beyond the model's
// turning point.
fn undistort_fisheye(k: vec4f, goal: vec2f) -> Undistorted {
    let radius = sqrt(goal.x * goal.x + goal.y * goal.y);
    if radius < 1e-8 {
        return Undistorted(goal, true);
    }
    var theta = min(radius, 1.5);
    for (var step = 0u; step < NEWTON_STEPS; step++) {
        let t2 = theta * theta;
        let f = theta * (1.0 + t2 * (k.x + t2 * (k.y + t2 * (k.z + t2 * k.w)))) - radius;
        let slope = 1.0 + t2 * (3.0 * k.x + t2 * (5.0 * k.y + t2 * (7.0 * k.z + t2 * (9.0 * k.w))));
        if slope <= 1e-6 {
            return Undistorted(vec2f(0.0), false);
        }
        if abs(f) <= NEWTON_TOLERANCE {
            if !(theta >= 0.0 && theta < 1.57) {
                return Undistorted(vec2f(0.0), false);
            }
            return Undistorted(goal * (tangent(theta) / radius), true);
        }
        theta -= f / slope;
    }
    return Undistorted(vec2f(0.0), false);
}
