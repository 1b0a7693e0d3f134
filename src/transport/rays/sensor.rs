//! Rays of all sensors but pinholes: thin lenses, orthographic and distant sensors (parallel rays), and irradiance meters.

use super::camera::{Ray, camera_ray, normalize, transform_point, transform_vector};
use super::sampler::{along, around, circle, cross, dot};
use crate::each::EachEntry;
use crate::resident::layout::{NONE, SensorRecord, area, sensor};

/// The length of rays that nothing bounds.
pub const RAY_LENGTH: f32 = 1e30;

/// Distance from an area to the origins of its rays, as a share of the point's largest coordinate, or of one if that is less:
/// rounding must not put an origin behind the area.
const CLEARANCE: f32 = 1e-5;

/// A point of a sensor's area, and the unit normal there.
#[derive(Debug, Clone, Copy)]
pub struct AreaPoint {
    pub p: [f32; 3],
    pub normal: [f32; 3],
}

/// The weight of every sample of a sensor: π for irradiance meters, as irradiance is π times the mean of cosine-distributed
/// radiance; else one.
#[inline(always)]
pub fn sensor_weight(record: &SensorRecord) -> f32 {
    if record.kind == sensor::IRRADIANCEMETER {
        std::f32::consts::PI
    } else {
        1.0
    }
}

/// The ray through the film position (`x`, `y`), with the uniform numbers `u`. None where a lens distortion has no inverse.
#[inline(never)]
pub fn sensor_ray(record: &SensorRecord, x: f32, y: f32, u: [f32; 4]) -> Option<Ray> {
    match record.kind {
        sensor::THINLENS => Some(thinlens_ray(record, &camera_ray(record, x, y)?, u[0], u[1])),
        sensor::ORTHOGRAPHIC => Some(orthographic_ray(record, x, y)),
        sensor::IRRADIANCEMETER => {
            let AreaPoint { p, normal } = area_point(record, u[0], u[1]);
            let reach = p[0].abs().max(p[1].abs()).max(p[2].abs()).max(1.0);
            Some(Ray {
                origin: along(p, normal, CLEARANCE * reach),
                direction: around(normal, (1.0 - u[2]).sqrt(), u[3]),
                near: 0.0,
                far: RAY_LENGTH,
                sensor: NONE,
            })
        }
        _ => {
            let direction = forward(record);
            Some(Ray {
                origin: along(area_point(record, u[0], u[1]).p, direction, -record.focus_distance),
                direction,
                near: 0.0,
                far: RAY_LENGTH,
                sensor: NONE,
            })
        }
    }
}

/// The direction that a sensor looks along.
#[inline(always)]
fn forward(record: &SensorRecord) -> [f32; 3] {
    normalize(transform_vector(&record.to_world, [0.0, 0.0, 1.0]))
}

/// The ray from a uniform point of a thin lens through the point where the pinhole's `ray` crosses the plane in focus.
#[inline(always)]
fn thinlens_ray(record: &SensorRecord, ray: &Ray, u: f32, v: f32) -> Ray {
    let focus = along(
        ray.origin,
        ray.direction,
        ray.near / record.near_clip * record.focus_distance,
    );
    let (radius, [x, y]) = (record.aperture_radius * u.sqrt(), circle(v));
    let origin = transform_point(&record.to_world, [radius * x, radius * y, 0.0]);
    let span = [focus[0] - origin[0], focus[1] - origin[1], focus[2] - origin[2]];
    // The distance along the ray for each unit along the axis.
    let length = dot(span, span).sqrt() / record.focus_distance;
    Ray {
        origin,
        direction: normalize(span),
        near: record.near_clip * length,
        far: record.far_clip * length,
        sensor: NONE,
    }
}

/// The parallel ray through a film position; the focal length is in pixels a unit.
#[inline(always)]
fn orthographic_ray(record: &SensorRecord, x: f32, y: f32) -> Ray {
    let across = (record.center[0] - x) / record.focal[0];
    let up = (record.center[1] - y) / record.focal[1];
    Ray {
        origin: transform_point(&record.to_world, [across, up, record.near_clip]),
        direction: forward(record),
        near: 0.0,
        far: record.far_clip - record.near_clip,
        sensor: NONE,
    }
}

/// A point drawn uniformly from a sensor's area.
#[inline(always)]
fn area_point(record: &SensorRecord, u: f32, v: f32) -> AreaPoint {
    if record.area == area::CUBE || record.area == area::ROOM {
        return cube_point(record, u, v);
    }
    let map = &record.area_to_world;
    let [x, y] = circle(v);
    let local = match record.area {
        area::POINT => [0.0; 3],
        area::DISK => [u.sqrt() * x, u.sqrt() * y, 0.0],
        area::RECTANGLE => [2.0 * u - 1.0, 2.0 * v - 1.0, 0.0],
        area::CYLINDER | area::PIPE => [x, y, u],
        _ => {
            let z = 1.0 - 2.0 * u;
            let r = (1.0 - z * z).max(0.0).sqrt();
            [r * x, r * y, z]
        }
    };
    let normal = match record.area {
        area::SPHERE => transform_vector(map, local),
        area::CAVITY => transform_vector(map, local).each(|x| -x),
        area::CYLINDER => transform_vector(map, [x, y, 0.0]),
        area::PIPE => transform_vector(map, [-x, -y, 0.0]),
        _ => transform_vector(map, [0.0, 0.0, 1.0]),
    };
    AreaPoint {
        p: transform_point(map, local),
        normal: normalize(normal),
    }
}

/// A point drawn uniformly from the sides of a cube: `u` chooses a side in proportion to its area, and what is left of it a place there.
#[inline(always)]
fn cube_point(record: &SensorRecord, u: f32, v: f32) -> AreaPoint {
    let map = &record.area_to_world;
    let halves = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]].each(|axis| transform_vector(map, axis));
    let across = [
        cross(halves[1], halves[2]),
        cross(halves[2], halves[0]),
        cross(halves[0], halves[1]),
    ];
    let areas = across.each(|a| dot(a, a).sqrt());
    let mut rest = u * (areas[0] + areas[1] + areas[2]);
    let mut axis = 0;
    while axis < 2 && rest >= areas[axis] {
        rest -= areas[axis];
        axis += 1;
    }
    let share = 2.0 * rest / areas[axis];
    let (side, place) = if share < 1.0 { (-1.0, share) } else { (1.0, share - 1.0) };
    let mut local = [side; 3];
    local[(axis + 1) % 3] = 2.0 * place - 1.0;
    local[(axis + 2) % 3] = 2.0 * v - 1.0;
    // Products of two half edges point inwards where the map mirrors.
    let mirrored = dot(halves[0], across[0]) < 0.0;
    let facing = if mirrored == (record.area == area::CUBE) {
        -side
    } else {
        side
    };
    AreaPoint {
        p: transform_point(map, local),
        normal: normalize(across[axis].each(|x| facing * x)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::rays::random::test_uniform;
    use bytemuck::Zeroable;

    fn record(kind: u32) -> SensorRecord {
        let mut record = SensorRecord::zeroed();
        let identity = [[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0]];
        (record.kind, record.to_world, record.area_to_world) = (kind, identity, identity);
        (record.focal, record.center) = ([10.0; 2], [5.0; 2]);
        (record.near_clip, record.far_clip) = (0.5, 20.0);
        record
    }

    fn near(a: [f32; 3], b: [f32; 3]) -> bool {
        (0..3).all(|i| (a[i] - b[i]).abs() < 1e-5)
    }

    /// All rays of a pixel meet where the pinhole's ray crosses the plane in focus, and begin on the aperture.
    #[test]
    fn a_thin_lens_focuses() {
        let mut record = record(sensor::THINLENS);
        (record.aperture_radius, record.focus_distance) = (0.25, 4.0);
        let pinhole = camera_ray(&record, 9.0, 3.0).expect("it has no lens");
        let focus = along(pinhole.origin, pinhole.direction, 4.0 / pinhole.direction[2]);
        let mut widest = 0f32;
        for i in 0..512 {
            let ray = sensor_ray(&record, 9.0, 3.0, test_uniform(3, i, 0)).expect("it has no lens");
            assert!(
                near(along(ray.origin, ray.direction, 4.0 / ray.direction[2]), focus),
                "{ray:?}"
            );
            assert!((ray.near * ray.direction[2] - 0.5).abs() < 1e-5 && ray.origin[2] == 0.0);
            widest = widest.max(dot(ray.origin, ray.origin).sqrt());
        }
        assert!((0.24..=0.25001).contains(&widest), "{widest}");
    }

    /// Film positions are laid out over the plane, +X left and +Y up, and rays are parallel.
    #[test]
    fn orthographic_rays_are_parallel() {
        let mut record = record(sensor::ORTHOGRAPHIC);
        record.to_world[2][2] = 2.0;
        let ray = sensor_ray(&record, 8.0, 1.0, [0.0; 4]).expect("there is always one");
        assert!(near(ray.origin, [-0.3, 0.4, 1.0]) && near(ray.direction, [0.0, 0.0, 1.0]));
        assert_eq!((ray.near, ray.far), (0.0, 19.5));
    }

    /// Directions around the normal of a tilted rectangle have the mean cosine 2/3 of a cosine lobe, and points fill it.
    #[test]
    fn an_irradiance_meter_draws_in_proportion_to_the_cosine() {
        let mut record = record(sensor::IRRADIANCEMETER);
        record.area = area::RECTANGLE;
        // x to 2 y, y to 3 z, and the normal +x.
        record.area_to_world = [[0.0, 0.0, 1.0, 5.0], [2.0, 0.0, 0.0, 0.0], [0.0, 3.0, 0.0, 0.0]];
        let count = 1 << 14;
        let (mut cosine, mut place) = (0.0, [0.0f64; 2]);
        for i in 0..count {
            let ray = sensor_ray(&record, 0.0, 0.0, test_uniform(5, i, 0)).expect("there is always one");
            assert!(ray.direction[0] >= 0.0 && (ray.origin[0] - 5.00005).abs() < 1e-5);
            cosine += f64::from(ray.direction[0]);
            place = [1, 2].map(|a: usize| place[a - 1] + f64::from(ray.origin[a]).powi(2));
        }
        let mean = |sum: f64| sum / f64::from(count);
        // Four standard errors: the cosine's variance is 1/18, that of the square of a uniform number in [-1, 1] is 4/45.
        let error = |variance: f64| 4.0 * (variance / f64::from(count)).sqrt();
        assert!((mean(cosine) - 2.0 / 3.0).abs() < error(1.0 / 18.0), "{}", mean(cosine));
        for (a, side) in [(0, 4.0), (1, 9.0)] {
            assert!(
                (mean(place[a]) / side - 1.0 / 3.0).abs() < error(4.0 / 45.0),
                "{place:?}"
            );
        }
        assert_eq!(sensor_weight(&record), std::f32::consts::PI);
    }

    /// Rays of a distant sensor go to its target from the distance stated; points of a sphere have normals that point out,
    /// of a cavity in.
    #[test]
    fn a_distant_sensor_looks_at_its_target() {
        let mut record = record(sensor::DISTANT);
        (record.focus_distance, record.area) = (7.0, area::DISK);
        for i in 0..64 {
            let ray = sensor_ray(&record, 0.0, 0.0, test_uniform(7, i, 0)).expect("there is always one");
            assert!(near(ray.direction, [0.0, 0.0, 1.0]) && (ray.origin[2] + 7.0).abs() < 1e-5);
            assert!(ray.origin[0].hypot(ray.origin[1]) <= 1.00001);
        }
        for (kind, sign) in [(area::SPHERE, 1.0), (area::CAVITY, -1.0)] {
            record.area = kind;
            let AreaPoint { p, normal } = area_point(&record, 0.3, 0.8);
            assert!((dot(p, normal) - sign).abs() < 1e-5, "{p:?} {normal:?}");
        }
    }

    /// Points of a tube and of a stretched and mirrored box are on them, uniform by area, and their normals point out or in.
    #[test]
    fn points_fill_tubes_and_boxes() {
        let mut record = record(sensor::IRRADIANCEMETER);
        record.area_to_world = [[-2.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 0.5, 0.0]];
        let half = [2.0, 1.0, 0.5];
        for (kind, sign) in [(area::CUBE, 1.0), (area::ROOM, -1.0)] {
            record.area = kind;
            let mut counts = [[0u32; 2]; 3];
            let count = 1 << 14;
            for i in 0..count {
                let [u, v, ..] = test_uniform(11, i, 0);
                let AreaPoint { p, normal } = area_point(&record, u, v);
                let axis = (0..3)
                    .find(|&a| normal[a].abs() > 0.5)
                    .expect("normals point along axes");
                assert!(
                    (p[axis] * normal[axis] - sign * half[axis]).abs() < 1e-5,
                    "{p:?} {normal:?}"
                );
                assert!((0..3).all(|a| p[a].abs() <= half[a] + 1e-5), "{p:?}");
                counts[axis][usize::from(p[axis] > 0.0)] += 1;
            }
            // Areas of the sides over that of all, 14.
            for (found, share) in counts.iter().flatten().zip([1.0, 1.0, 2.0, 2.0, 4.0, 4.0]) {
                let (expected, total) = (share / 14.0, f64::from(count));
                let error = 4.0 * (expected * (1.0 - expected) / total).sqrt();
                assert!((f64::from(*found) / total - expected).abs() < error, "{counts:?}");
            }
        }
        record.area_to_world = [[2.0, 0.0, 0.0, 1.0], [0.0, 2.0, 0.0, 0.0], [0.0, 0.0, 5.0, 0.0]];
        for (kind, sign) in [(area::CYLINDER, 1.0), (area::PIPE, -1.0)] {
            record.area = kind;
            let AreaPoint { p, normal } = area_point(&record, 0.3, 0.8);
            assert!((p[2] - 1.5).abs() < 1e-5 && normal[2] == 0.0);
            assert!(
                ((p[0] - 1.0) * normal[0] + p[1] * normal[1] - 2.0 * sign).abs() < 1e-5,
                "{p:?} {normal:?}"
            );
        }
    }
}
