//! From derivatives by a ray to those by its camera: a torque and a force along the camera's axes, and those by its focal
//! lengths and its lens (docs/method.md, section 22).

use crate::each::EachEntry;
use crate::resident::layout::{Rows, SensorRecord, distortion};
use crate::transport::number::Number;

/// Derivatives by a ray: by its origin, by its unit direction (only the component perpendicular to it has a meaning), and by
/// the clip distance where its samples begin.
#[derive(Debug, Clone, Copy)]
pub struct ByRay<N> {
    pub origin: [N; 3],
    pub direction: [N; 3],
    pub near: N,
}

/// The axes of a camera, column by column.
pub type Axes<N> = [[N; 3]; 3];

/// The axes of a camera from its record's `to_world`.
#[inline(always)]
pub fn camera_axes<N: Number>(to_world: &Rows) -> Axes<N> {
    [0, 1, 2].each(|column| [0, 1, 2].each(|row| N::lift(to_world[row][column])))
}

/// A vector of the world along a camera's axes.
#[inline(always)]
pub fn along_axes<N: Number>(axes: &Axes<N>, v: [N; 3]) -> [N; 3] {
    axes.each(|a| a[0] * v[0] + a[1] * v[1] + a[2] * v[2])
}

/// A direction of the world as a unit vector in a camera's frame, by the inverse of the axes, since these are orthogonal only
/// up to rounding.
#[inline(always)]
pub fn seen_from<N: Number>([a, b, c]: &Axes<N>, d: [N; 3]) -> [N; 3] {
    let cross = |x: &[N; 3], y: &[N; 3]| {
        [
            x[1] * y[2] - x[2] * y[1],
            x[2] * y[0] - x[0] * y[2],
            x[0] * y[1] - x[1] * y[0],
        ]
    };
    let dual = [cross(b, c), cross(c, a), cross(a, b)];
    // A mirrored frame has a negative determinant, which decides the sign.
    let volume = a[0] * dual[0][0] + a[1] * dual[0][1] + a[2] * dual[0][2];
    let seen = along_axes(&dual, d).each(|x| x / volume);
    let length = (seen[0] * seen[0] + seen[1] * seen[1] + seen[2] * seen[2]).sqrt();
    seen.each(|x| x / length)
}

/// A lens at a point of the image plane.
#[derive(Debug, Clone, Copy)]
pub struct LensAt<N> {
    /// Where the point is seen, in focal lengths.
    pub distorted: [N; 2],
    /// The Jacobian of `distorted` by (u, v), row by row.
    pub jacobian: [[N; 2]; 2],
    /// Derivative of `distorted` by the first radial coefficient.
    pub by_radial: [N; 2],
}

/// The lens of a camera with the coefficients `d`, at the point (`u`, `v`) of the image plane, whose distance from the axis
/// is the tangent of its angle.
#[inline(always)]
pub fn lens_at<N: Number>(model: u32, d: &[N; 8], [u, v]: [N; 2]) -> LensAt<N> {
    let (one, two, six, zero) = (N::lift(1.0), N::lift(2.0), N::lift(6.0), N::lift(0.0));
    let r2 = u * u + v * v;
    match model {
        distortion::NONE => LensAt {
            distorted: [u, v],
            jacobian: [[one, zero], [zero, one]],
            by_radial: [zero; 2],
        },
        distortion::BROWN => {
            let [k1, k2, k3, p1, p2] = [d[0], d[1], d[2], d[4], d[5]];
            let radial = one + r2 * (k1 + r2 * (k2 + r2 * k3));
            let slope = two * (k1 + r2 * (two * k2 + r2 * (N::lift(3.0) * k3)));
            let across = slope * u * v + two * p1 * u + two * p2 * v;
            LensAt {
                distorted: [
                    u * radial + two * p1 * u * v + p2 * (r2 + two * u * u),
                    v * radial + p1 * (r2 + two * v * v) + two * p2 * u * v,
                ],
                jacobian: [
                    [radial + slope * u * u + two * p1 * v + six * p2 * u, across],
                    [across, radial + slope * v * v + six * p1 * v + two * p2 * u],
                ],
                by_radial: [u * r2, v * r2],
            }
        }
        _ => fisheye_at(d, [u, v], r2),
    }
}

/// [`lens_at`] of the equidistant fisheye.
#[inline(always)]
fn fisheye_at<N: Number>(d: &[N; 8], [u, v]: [N; 2], r2: N) -> LensAt<N> {
    let n = N::lift;
    if !r2.above(1e-16) {
        let zero = n(0.0);
        return LensAt {
            distorted: [u, v],
            jacobian: [[n(1.0), zero], [zero, n(1.0)]],
            by_radial: [zero; 2],
        };
    }
    let r = r2.sqrt();
    let theta = angle(r, n(1.0));
    let t2 = theta * theta;
    let bent = theta * (n(1.0) + t2 * (d[0] + t2 * (d[1] + t2 * (d[2] + t2 * d[3]))));
    let slope = n(1.0) + t2 * (n(3.0) * d[0] + t2 * (n(5.0) * d[1] + t2 * (n(7.0) * d[2] + t2 * (n(9.0) * d[3]))));
    let (share, outward) = (bent / r, slope / (n(1.0) + r2));
    let mixed = (outward - share) / r2;
    let cubic = theta * t2 / r;
    LensAt {
        distorted: [u * share, v * share],
        jacobian: [
            [share + mixed * u * u, mixed * u * v],
            [mixed * u * v, share + mixed * v * v],
        ],
        by_radial: [u * cubic, v * cubic],
    }
}

/// The angle whose sine and cosine are in this proportion, between 0 and π: `atan2` of the values, then three Newton steps,
/// which add the derivatives.
#[inline(always)]
pub fn angle<N: Number>(sine: N, cosine: N) -> N {
    let length = (sine * sine + cosine * cosine).sqrt();
    let mut angle = N::lift(sine.value().atan2(cosine.value()) as f32);
    for _ in 0..3 {
        angle += (sine * angle.cos() - cosine * angle.sin()) / length;
    }
    angle
}

/// The derivatives by a camera that one of its rays sends: torque (3), force (3), logarithm of the focal lengths, first radial
/// coefficient. `direction` is the ray's; `axes` and `lens` are those of the camera at present.
#[inline(always)]
pub fn view_adjoint<N: Number>(
    record: &SensorRecord,
    (axes, lens): (&Axes<N>, &[N; 8]),
    direction: [N; 3],
    by: &ByRay<N>,
) -> [N; 8] {
    let seen = seen_from(axes, direction);
    let (pull, force) = (along_axes(axes, by.direction), along_axes(axes, by.origin));
    let torque = [
        seen[1] * pull[2] - seen[2] * pull[1],
        seen[2] * pull[0] - seen[0] * pull[2],
        seen[0] * pull[1] - seen[1] * pull[0],
    ];
    // The direction is that of (-u, -v, 1), whose length is 1/seen[2].
    let point = [-seen[0] / seen[2], -seen[1] / seen[2]];
    let along = seen[0] * pull[0] + seen[1] * pull[1] + seen[2] * pull[2];
    let near = by.near * N::lift(record.near_clip) * seen[2];
    let by_point = [0, 1].each(|i| near * point[i] - (pull[i] - along * seen[i]) * seen[2]);
    let lens = lens_at(record.distortion_model, lens, point);
    let [[a, b], [c, d]] = lens.jacobian;
    let determinant = a * d - b * c;
    // The transposed inverse of the Jacobian: from the derivative by the point to that by its place on the film.
    let by_seen = [
        (d * by_point[0] - c * by_point[1]) / determinant,
        (a * by_point[1] - b * by_point[0]) / determinant,
    ];
    let zoom = -(by_seen[0] * lens.distorted[0] + by_seen[1] * lens.distorted[1]);
    let radial = -(by_seen[0] * lens.by_radial[0] + by_seen[1] * lens.by_radial[1]);
    [
        torque[0], torque[1], torque[2], force[0], force[1], force[2], zoom, radial,
    ]
}
