//! Camera paths: a circle around a scene's subject, or a smooth path through positions from a file.

use std::f32::consts::TAU;
use std::path::Path;

use anyhow::{Context, Result, bail};
use glam::{Affine3A, Mat3A, Vec3};
use serde::Deserialize;

use crate::cli::extent::{Extent, upward};
use crate::io::read_at_most;
use crate::scene::{Scene, Sensor};

/// Largest file of camera positions, in bytes: it holds more than a million.
const MAX_PATH_BYTES: u64 = 1 << 28;
/// Largest elevation of a circle's camera, in radians.
const STEEPEST: f32 = 1.2;

/// A camera position, as in `look_at`.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Place {
    origin: Vec3List,
    target: Vec3List,
    #[serde(default = "upwards")]
    up: Vec3List,
}

type Vec3List = [f32; 3];

fn upwards() -> Vec3List {
    [0.0, 1.0, 0.0]
}

/// A circle of `count` cameras like `base` around the scene's subject: at the elevation of `base`, starting at its
/// azimuth, at the distance from which the whole subject is visible.
///
/// # Errors
/// The scene has no shapes, or a mesh cannot be read.
pub(super) fn circle(scene: &Scene, base: &Sensor, count: usize) -> Result<Vec<Affine3A>> {
    let Some(extent) = Extent::of(scene)?.filter(|extent| extent.radius() > 0.0) else {
        bail!(
            "{}: has no shape that a circle of the camera would fit around; add one, or give the way of the camera by \
             --path",
            scene.path.display()
        );
    };
    let up = upward(&scene.sensors);
    let center = extent.center();
    let offset = Vec3::from(base.to_world.translation) - center;
    let height = if offset.length() > 0.0 {
        (offset.normalize().dot(up)).asin()
    } else {
        0.3
    };
    let height = height.clamp(-STEEPEST, STEEPEST);
    let level = offset - up * offset.dot(up);
    let first = if level.length() > 1e-3 * extent.radius() {
        level
    } else {
        up.any_orthogonal_vector()
    };
    let (first, side) = (first.normalize(), up.cross(first.normalize()));
    let distance = extent.radius() / half_view(base).sin();
    let camera = |i: usize| {
        let (sin, cos) = (TAU * i as f32 / count as f32).sin_cos();
        let direction = (first * cos + side * sin) * height.cos() + up * height.sin();
        look(center + direction * distance, center, up)
    };
    (0..count).map(camera).collect()
}

/// Half of the smaller field of view.
fn half_view(sensor: &Sensor) -> f32 {
    let half = |size: u32, focal: f32| (0.5 * size as f32 / focal).atan();
    half(sensor.width, sensor.focal[0]).min(half(sensor.height, sensor.focal[1]))
}

/// A camera at `origin` that looks at `target`.
fn look(origin: Vec3, target: Vec3, up: Vec3) -> Result<Affine3A> {
    let forward = (target - origin).normalize_or_zero();
    let left = up.cross(forward).normalize_or_zero();
    if forward == Vec3::ZERO || left == Vec3::ZERO {
        bail!("a camera at {origin} that looks at {target} with {up} upwards has no direction; move one of them");
    }
    let matrix = Mat3A::from_cols(left.into(), forward.cross(left).into(), forward.into());
    Ok(Affine3A::from_mat3_translation(matrix.into(), origin))
}

/// `count` cameras along the positions in a JSON file, a list of objects with `origin`, `target` and `up` ([0, 1, 0]),
/// interpolated by a Catmull-Rom spline.
///
/// # Errors
/// The file cannot be read, is no such list, or two positions coincide.
pub(super) fn path(file: &Path, count: usize) -> Result<Vec<Affine3A>> {
    let shown = file.display();
    let text = read_at_most(file, MAX_PATH_BYTES).with_context(|| format!("{shown}: cannot be read"))?;
    let places: Vec<Place> = serde_json::from_slice(&text).with_context(|| {
        format!(
            "{shown}: is no list of places such as {{\"origin\": [0, 1, 4], \"target\": [0, 0, 0], \"up\": [0, 1, 0]}}"
        )
    })?;
    if places.len() < 2 {
        let found = ["no place", "one place"][places.len()];
        bail!("{shown}: has {found}, expected two or more");
    }
    let camera = |i: usize| {
        let at = i as f32 / (count.max(2) - 1) as f32 * (places.len() - 1) as f32;
        let place = between(&places, at);
        look(place.origin.into(), place.target.into(), place.up.into()).with_context(|| format!("{shown}: frame {i}"))
    };
    (0..count).map(camera).collect()
}

fn between(places: &[Place], at: f32) -> Place {
    let last = places.len() - 1;
    let i = (at.floor() as usize).min(last - 1);
    let t = at - i as f32;
    let around = [i.saturating_sub(1), i, i + 1, (i + 2).min(last)].map(|k| places[k]);
    let mix = |of: fn(&Place) -> Vec3List| -> Vec3List {
        std::array::from_fn(|axis| {
            let [a, b, c, d] = around.map(|place| of(&place)[axis]);
            b + 0.5 * t * (c - a + t * (2.0 * a - 5.0 * b + 4.0 * c - d + t * (3.0 * (b - c) + d - a)))
        })
    };
    Place {
        origin: mix(|p| p.origin),
        target: mix(|p| p.target),
        up: mix(|p| p.up),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use glam::Vec3A;

    #[test]
    fn a_circle_sees_all_of_the_scene_from_every_side() {
        let scene = crate::scene::load(Path::new("scenes/two_blobs.json")).expect("a scene");
        let base = &scene.sensors[0];
        let cameras = circle(&scene, base, 8).expect("the scene has a cube");
        let corner = Vec3::ONE;
        for camera in &cameras {
            let seen = camera.inverse().transform_point3(corner);
            let across = (seen.x / seen.z).abs().max((seen.y / seen.z).abs());
            assert!(seen.z > 0.0 && across <= half_view(base).tan() * 1.0001, "{seen}");
        }
        let apart: Vec3A = cameras[0].translation + cameras[4].translation;
        let height = apart.y / 2.0;
        assert!(
            apart.x.abs() < 1e-4 && height > 0.0,
            "opposite cameras are at one height"
        );
    }

    #[test]
    fn a_way_goes_through_its_places() {
        let place = |x: f32| Place {
            origin: [x, 0.0, 4.0],
            target: [0.0; 3],
            up: [0.0, 1.0, 0.0],
        };
        let places = [place(0.0), place(1.0), place(5.0)];
        for (at, x) in [(0.0, 0.0), (1.0, 1.0), (2.0, 5.0)] {
            assert!((between(&places, at).origin[0] - x).abs() < 1e-6);
        }
        let folder = tempfile::tempdir().expect("a temporary folder");
        let file = folder.path().join("way.json");
        std::fs::write(
            &file,
            r#"[{"origin": [0, 0, 4], "target": [0, 0, 0]}, {"origin": [4, 0, 0], "target": [0, 0, 0]}]"#,
        )
        .expect("writable");
        assert_eq!(path(&file, 5).expect("a way").len(), 5);
        std::fs::write(&file, r#"[{"origin": [0, 0, 4]}]"#).expect("writable");
        assert!(format!("{:#}", path(&file, 5).expect_err("no target")).contains("target"));
    }
}
