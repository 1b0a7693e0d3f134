//! The camera that pages look through: one of the scene's sensors, moved.

use glam::Vec3;

use super::wanted::{Moves, Wanted};
use crate::resident::layout::{NO_REFERENCE, Rows, SensorRecord, backdrop};

/// The sphere that cameras turn around, in world units.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Subject {
    pub center: Vec3,
    pub radius: f32,
    /// The direction that is up in the scene, of length 1.
    pub up: Vec3,
}

/// The product of two affine maps, a b: `b` is applied first.
fn product(a: &Rows, b: &Rows) -> Rows {
    std::array::from_fn(|r| {
        std::array::from_fn(|c| {
            let turned: f32 = (0..3).map(|k| a[r][k] * b[k][c]).sum();
            if c == 3 { turned + a[r][3] } else { turned }
        })
    })
}

/// The record of the camera of `wanted`, with a film smaller by `divisor` along each axis.
pub(super) fn record(base: &SensorRecord, wanted: &Wanted, divisor: u32) -> SensorRecord {
    let longer = base.width.max(base.height) as f32;
    let scale = wanted.pixels as f32 / (longer * divisor as f32);
    let given = [base.width, base.height];
    let size = given.map(|n| (n as f32 * scale).round().max(1.0));
    let factor = [0, 1].map(|a| size[a] / given[a] as f32);
    SensorRecord {
        to_world: product(&wanted.motion, &base.to_world),
        width: size[0] as u32,
        height: size[1] as u32,
        focal: [0, 1].map(|a| base.focal[a] * factor[a] * wanted.zoom),
        center: [0, 1].map(|a| base.center[a] * factor[a]),
        first_pixel: NO_REFERENCE,
        backdrop: backdrop::OPAQUE,
        ..*base
    }
}

/// Where the camera stands, and a unit vector along its view.
fn pose(record: &SensorRecord) -> [Vec3; 2] {
    let column = |c: usize| Vec3::from_array([0, 1, 2].map(|r| record.to_world[r][c]));
    [column(3), column(2).normalize_or(Vec3::Z)]
}

/// The nearest and the farthest depth that colours of depths tell apart: those of the subject, within the clip distances.
pub(super) fn depth_range(record: &SensorRecord, subject: Option<Subject>) -> [f32; 2] {
    let [near, far] = [record.near_clip, record.far_clip];
    let Some(subject) = subject else { return [near, far] };
    let [origin, forward] = pose(record);
    let distance = (subject.center - origin).dot(forward);
    let end = (distance + subject.radius).clamp(near, far);
    match end > near {
        true => [(distance - subject.radius).clamp(near, far), end],
        // The subject lies behind the camera.
        false => [near, far.min(near + 2.0 * subject.radius)],
    }
}

/// Rays through the centres of pixels, without lens distortion: origin and direction, whose component along the view is
/// one.
pub(super) fn rays(record: &SensorRecord, moves: Moves) -> impl Fn(u32, u32) -> [Vec3; 2] {
    let [origin, _] = pose(record);
    let column = |c: usize| Vec3::from_array([0, 1, 2].map(|r| record.to_world[r][c]));
    let (left, up, forward) = (column(0), column(1), column(2));
    let (focal, center) = (record.focal, record.center);
    move |x, y| {
        let [u, v] = [
            (x as f32 + 0.5 - center[0]) / focal[0],
            (y as f32 + 0.5 - center[1]) / focal[1],
        ];
        match moves {
            Moves::Parallel => [origin - left * u - up * v, forward],
            _ => [origin, forward - left * u - up * v],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resident::sensor_record;
    use crate::scene::Sensor;
    use crate::serve::wanted::{Choice, REST};
    use crate::transport::rays::camera::camera_ray;
    use glam::Affine3A;

    fn base() -> SensorRecord {
        let origin = Vec3::new(1.0, 2.0, 5.0);
        let forward = -origin.normalize();
        let left = Vec3::Y.cross(forward).normalize();
        sensor_record(&Sensor {
            to_world: Affine3A::from_cols(left.into(), forward.cross(left).into(), forward.into(), origin.into()),
            width: 64,
            height: 48,
            focal: [80.0, 80.0],
            center: [32.0, 20.0],
            near_clip: 0.5,
            far_clip: 100.0,
            ..Sensor::default()
        })
    }

    fn wanted() -> Wanted {
        Wanted {
            pixels: 128,
            ..Choice::default().first()
        }
    }

    /// A film of twice the pixels sees through its corners what the sensor sees through its own.
    #[test]
    fn films_of_any_size_see_the_same() {
        let base = base();
        for divisor in [1, 2, 8] {
            let seen = record(&base, &wanted(), divisor);
            assert_eq!([seen.width, seen.height], [128 / divisor, 96 / divisor]);
            for [x, y] in [[0.0, 0.0], [1.0, 0.3], [0.5, 1.0]] {
                let through = |of: &SensorRecord| {
                    camera_ray(of, x * of.width as f32, y * of.height as f32).expect("no distortion")
                };
                let (a, b) = (through(&seen), through(&base));
                assert!((0..3).all(|i| (a.direction[i] - b.direction[i]).abs() < 1e-6));
            }
        }
    }

    /// A motion is applied in the world, and the rays made here are those of the device.
    #[test]
    fn cameras_are_moved_in_the_world() {
        let mut of = wanted();
        of.motion = REST;
        of.motion[0][3] = 7.0;
        (of.motion[1], of.motion[2]) = ([0.0, 0.0, -1.0, 0.0], [0.0, 1.0, 0.0, 0.0]);
        let seen = record(&base(), &of, 1);
        let [origin, _] = pose(&seen);
        assert!((origin - Vec3::new(8.0, -5.0, 2.0)).length() < 1e-5, "{origin}");
        let mine = rays(&seen, Moves::Perspective)(10, 70);
        let theirs = camera_ray(&seen, 10.5, 70.5).expect("no distortion");
        assert!((mine[1].normalize() - Vec3::from(theirs.direction)).length() < 1e-6);
    }

    #[test]
    fn depths_are_those_of_the_subject() {
        let subject = |center: Vec3| Subject {
            center,
            radius: 1.0,
            up: Vec3::Y,
        };
        let distance = Vec3::new(1.0, 2.0, 5.0).length();
        let [low, high] = depth_range(&base(), Some(subject(Vec3::ZERO)));
        assert!((low - distance + 1.0).abs() < 1e-4 && (high - distance - 1.0).abs() < 1e-4);
        assert_eq!(
            depth_range(&base(), Some(subject(Vec3::new(2.0, 4.0, 10.0)))),
            [0.5, 2.5]
        );
        assert_eq!(depth_range(&base(), None), [0.5, 100.0]);
    }
}
