//! Parameters of the cameras of a radiance field: `views.poses`, `views.focal` and `views.distortion`. They exist only where the
//! block `optimize` or `--parameter` asks for them, since cameras are known in most scenes.

use glam::Mat3A;

use super::quantity::Quantity;
use super::reader::Value;
use super::{Array, Distortion, Scene, Sensor, SensorKind, Source, lookup};
use crate::params::{Kind, Shape};

/// A parameter of the cameras: poses have an entry for each sensor of the scene, in their order, the others one for all.
#[derive(Debug, Clone)]
pub struct ViewPart {
    pub array: Array,
    /// [`Quantity::Pose`], [`Quantity::Zoom`] or [`Quantity::Radial`].
    pub quantity: Quantity,
}

/// Numbers of a pose: a rotation vector in radians and a translation, both along the camera's own axes.
pub const POSE: usize = 6;

/// The parameters: path and quantity.
const PARTS: [(&str, Quantity); 3] = [
    ("views.poses", Quantity::Pose),
    ("views.focal", Quantity::Zoom),
    ("views.distortion", Quantity::Radial),
];

/// The largest entry by which a rotation times its transpose may differ from the identity.
const ROUNDING: f32 = 1e-3;

/// Adds the parameters of the cameras that `entries` name to the scene.
pub(super) fn name(entries: &[(&str, Value<'_>)], scene: &mut Scene) {
    for (path, entry) in entries {
        let Some((_, quantity)) = PARTS.into_iter().find(|(part, _)| part == path) else {
            continue;
        };
        if scene.views.iter().any(|part| part.quantity == quantity) {
            continue;
        }
        // The cameras may be missing because of another mistake, which was reported.
        let known = !entry.context.has_errors();
        if let Some((what, advice)) = known.then(|| obstacle(scene, quantity)).flatten() {
            entry.error(format!("`{path}` cannot be optimised: {what}"), advice);
        }
        scene.views.push(part(path, quantity, scene.sensors.len()));
    }
}

/// Adds `views.poses` to the scene for held-out views that are refined after the run, if the run does not optimise it anyway.
pub(super) fn make_poses(value: &Value<'_>, scene: &mut Scene) {
    let is_poses = |part: &ViewPart| part.quantity == Quantity::Pose;
    if value.context.has_errors() || scene.views.iter().any(is_poses) {
        return;
    }
    let (path, quantity) = PARTS[0];
    match obstacle(scene, quantity) {
        Some((what, advice)) => value.error(format!("views cannot be refined: {what}"), advice),
        None => scene.views.push(part(path, quantity, scene.sensors.len())),
    }
}

fn part(path: &str, quantity: Quantity, sensors: usize) -> ViewPart {
    let array = match quantity {
        Quantity::Pose => Array {
            path: path.to_string(),
            kind: Kind::Attribute,
            shape: Shape {
                size: [sensors, 1, 1],
                channels: POSE,
            },
            source: Source::Fill(vec![0.0; POSE]),
            tuning: None,
        },
        _ => lookup::value(path.to_string(), vec![0.0]),
    };
    ViewPart { array, quantity }
}

/// Why a parameter of the cameras has no derivatives, and what to do.
fn obstacle(scene: &Scene, quantity: Quantity) -> Option<(String, &'static str)> {
    if scene.field.is_none() {
        return Some((
            "derivatives by cameras are known for rays through a radiance field".into(),
            "remove it, or let the scene have a `radiance_field`",
        ));
    }
    let odd = |sensor: &&Sensor| sensor.kind != SensorKind::Perspective;
    if let Some(sensor) = scene.sensors.iter().find(odd) {
        let what = format!("the sensor `{}` is no pinhole", sensor.name);
        return Some((
            what,
            "remove it, or look through `perspective` sensors or a `dataset` alone",
        ));
    }
    let askew = |sensor: &&Sensor| !is_rigid(&sensor.to_world.matrix3);
    if let Some(sensor) = scene.sensors.iter().find(askew) {
        let what = format!("the axes of the camera `{}` are not at right angles", sensor.name);
        return Some((what, "give it a pose that turns and moves only"));
    }
    let fisheye = |sensor: &&Sensor| matches!(sensor.distortion, Distortion::Fisheye { .. });
    if quantity == Quantity::Radial && scene.sensors.iter().any(|s| fisheye(&s)) {
        let what = "the lens of a fisheye is another model".to_string();
        return Some((what, "remove it, or undistort the photographs"));
    }
    None
}

/// Whether axes have length one and are at right angles.
fn is_rigid(axes: &Mat3A) -> bool {
    let product = axes.transpose() * *axes;
    product.abs_diff_eq(Mat3A::IDENTITY, ROUNDING)
}
