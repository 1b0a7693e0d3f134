//! Rays of a perspective camera with OpenCV's lens distortions, undistorted by Newton's method.

use crate::each::EachEntry;
use crate::resident::layout::{NONE, Rows, SensorRecord, distortion};

/// A ray in world space; `direction` is a unit vector and t runs from `near` to `far`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ray {
    pub origin: [f32; 3],
    pub direction: [f32; 3],
    pub near: f32,
    pub far: f32,
    /// The index of its sensor; [`NONE`] where that is not known.
    pub sensor: u32,
}

/// Applies the linear part of an affine map.
#[inline(always)]
pub fn transform_vector(m: &Rows, v: [f32; 3]) -> [f32; 3] {
    let mut out = [0.0; 3];
    for r in 0..3 {
        out[r] = m[r][0] * v[0] + m[r][1] * v[1] + m[r][2] * v[2];
    }
    out
}

/// Applies an affine map.
#[inline(always)]
pub fn transform_point(m: &Rows, p: [f32; 3]) -> [f32; 3] {
    let mut out = [0.0; 3];
    for r in 0..3 {
        out[r] = m[r][0] * p[0] + m[r][1] * p[1] + m[r][2] * p[2] + m[r][3];
    }
    out
}

/// `v` normalised to unit length.
#[inline(always)]
pub fn normalize(v: [f32; 3]) -> [f32; 3] {
    let scale = 1.0 / (v[0] * v[0] + v[1] * v[1] + v[2] * v[2]).sqrt();
    [v[0] * scale, v[1] * scale, v[2] * scale]
}

/// The ray through the film position (`x`, `y`), in pixels from the top left corner. None where Newton's method does
/// not converge: such pixels are masked.
#[inline(always)]
pub fn camera_ray(sensor: &SensorRecord, x: f32, y: f32) -> Option<Ray> {
    let distorted = on_image_plane(sensor, x, y);
    let [u, v] = match sensor.distortion_model {
        distortion::NONE => distorted,
        distortion::BROWN => undistort_brown(&sensor.distortion, distorted)?,
        _ => undistort_fisheye(&sensor.distortion, distorted)?,
    };
    Some(pinhole_ray(sensor, [u, v]))
}

/// Where all rays of a camera begin.
#[inline(always)]
pub fn camera_origin(sensor: &SensorRecord) -> [f32; 3] {
    [0, 1, 2].each(|axis| sensor.to_world[axis][3])
}

/// Where a lens without distortion shows a film position on the image plane.
#[inline(always)]
pub fn on_image_plane(sensor: &SensorRecord, x: f32, y: f32) -> [f32; 2] {
    [
        (x - sensor.center[0]) / sensor.focal[0],
        (y - sensor.center[1]) / sensor.focal[1],
    ]
}

/// The ray through a point of the image plane, which is one away from the camera, in OpenCV's camera space: +X right and +Y down.
#[inline(always)]
pub fn pinhole_ray(sensor: &SensorRecord, [u, v]: [f32; 2]) -> Ray {
    // The sensor's own frame has +X left and +Y up.
    let length = (u * u + v * v + 1.0).sqrt();
    let local = [-u / length, -v / length, 1.0 / length];
    Ray {
        origin: camera_origin(sensor),
        direction: normalize(transform_vector(&sensor.to_world, local)),
        near: sensor.near_clip * length,
        far: sensor.far_clip * length,
        sensor: NONE,
    }
}

/// Largest number of Newton steps.
pub const NEWTON_STEPS: u32 = 12;
/// Accepted residual in units of the focal length: a thousandth of a pixel at a focal length of 1000 pixels.
pub const NEWTON_TOLERANCE: f32 = 1e-6;

/// Solves distort(p) = `target` for the Brown model (OpenCV's formula). None unless the residual vanishes at a point
/// where the Jacobian's determinant is positive, that is, on the branch that contains the centre.
#[inline(always)]
pub fn undistort_brown(d: &[f32; 8], target: [f32; 2]) -> Option<[f32; 2]> {
    let [k1, k2, k3, p1, p2] = [d[0], d[1], d[2], d[4], d[5]];
    let (mut x, mut y) = (target[0], target[1]);
    for _ in 0..NEWTON_STEPS {
        let r2 = x * x + y * y;
        let radial = 1.0 + r2 * (k1 + r2 * (k2 + r2 * k3));
        let slope = 2.0 * (k1 + r2 * (2.0 * k2 + r2 * (3.0 * k3)));
        let fx = x * radial + 2.0 * p1 * x * y + p2 * (r2 + 2.0 * x * x) - target[0];
        let fy = y * radial + p1 * (r2 + 2.0 * y * y) + 2.0 * p2 * x * y - target[1];
        let xx = radial + slope * x * x + 2.0 * p1 * y + 6.0 * p2 * x;
        let xy = slope * x * y + 2.0 * p1 * x + 2.0 * p2 * y;
        let yy = radial + slope * y * y + 6.0 * p1 * y + 2.0 * p2 * x;
        let determinant = xx * yy - xy * xy;
        if determinant <= 1e-6 {
            return None;
        }
        if fx.abs() + fy.abs() <= NEWTON_TOLERANCE {
            return Some([x, y]);
        }
        x -= (yy * fx - xy * fy) / determinant;
        y -= (xx * fy - xy * fx) / determinant;
    }
    None
}

/// Solves the equidistant fisheye model θ (1 + k1 θ² + k2 θ⁴ + k3 θ⁶ + k4 θ⁸) = |target| for θ and returns the point of the
/// image plane at the distance tan θ from the centre. None for θ ≥ π/2, whose rays miss the plane, and beyond the model's
/// turning point.
#[inline(always)]
pub fn undistort_fisheye(d: &[f32; 8], target: [f32; 2]) -> Option<[f32; 2]> {
    let [k1, k2, k3, k4] = [d[0], d[1], d[2], d[3]];
    let radius = (target[0] * target[0] + target[1] * target[1]).sqrt();
    if radius < 1e-8 {
        return Some(target);
    }
    let mut theta = radius.min(1.5);
    for _ in 0..NEWTON_STEPS {
        let t2 = theta * theta;
        let f = theta * (1.0 + t2 * (k1 + t2 * (k2 + t2 * (k3 + t2 * k4)))) - radius;
        let slope = 1.0 + t2 * (3.0 * k1 + t2 * (5.0 * k2 + t2 * (7.0 * k3 + t2 * (9.0 * k4))));
        if slope <= 1e-6 {
            return None;
        }
        if f.abs() <= NEWTON_TOLERANCE {
            if !(0.0..1.57).contains(&theta) {
                return None;
            }
            let scale = theta.tan() / radius;
            return Some([target[0] * scale, target[1] * scale]);
        }
        theta -= f / slope;
    }
    None
}
