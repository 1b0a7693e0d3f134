//! Cameras and lights of glTF.

use std::f64::consts::TAU;

use glam::{DAffine3, DVec3};
use gltf::camera::Projection;
use gltf::khr_lights_punctual::{Kind, Light};
use serde_json::json;

use super::{Conversion, matrix};

/// Lumens per watt, which relates glTF's photometric units to those of scenes.
const LUMENS: f64 = 683.0;

/// Pixels along y of a camera's picture.
const HEIGHT: f64 = 512.0;

/// Far clip distance of a camera whose file states none.
const FAR: f64 = 1e4;

/// Field of view of the camera that is added to a file without one, in turns.
const VIEW: f64 = 40.0 / 360.0;

/// The pose of a camera or light: glTF looks along -z with +x to the right, scenes along +z with +x to the left.
fn looking(to_world: &DAffine3) -> DAffine3 {
    let mut place = *to_world * DAffine3::from_scale(DVec3::new(-1.0, 1.0, -1.0));
    // Normalises the axes, as cameras and lights have no scale.
    let [z, y] = [place.matrix3.z_axis, place.matrix3.y_axis].map(DVec3::normalize_or_zero);
    let x = y.cross(z).normalize_or_zero();
    place.matrix3 = glam::DMat3::from_cols(x, z.cross(x), z);
    place
}

impl Conversion<'_> {
    pub(super) fn camera(&mut self, camera: &gltf::Camera<'_>, name: &str, to_world: &DAffine3) {
        let place = looking(to_world);
        let film = |ratio: f64| {
            let width = (HEIGHT * ratio).round().clamp(1.0, 16384.0);
            json!({"type": "hdrfilm", "width": width as u32, "height": HEIGHT as u32, "rfilter": {"type": "box"}})
        };
        let clips = |near: f32, far: Option<f32>| {
            let near = f64::from(near).max(1e-4);
            let far = far.map_or(FAR, f64::from);
            [near, if far > near { far } else { near + FAR }]
        };
        let (ratio, [near, far], mut sensor) = match camera.projection() {
            Projection::Perspective(lens) => {
                let ratio = lens.aspect_ratio().map_or(1.0, f64::from);
                let fov = f64::from(lens.yfov()).to_degrees();
                (
                    ratio,
                    clips(lens.znear(), lens.zfar()),
                    json!({"type": "perspective", "fov": fov, "fov_axis": "y", "to_world": matrix(&place)}),
                )
            }
            Projection::Orthographic(lens) => {
                let [x, y] = [lens.xmag(), lens.ymag()].map(|mag| f64::from(mag.abs()));
                let scaled = place * DAffine3::from_scale(DVec3::new(x, x, 1.0));
                (
                    if y > 0.0 { x / y } else { 1.0 },
                    clips(lens.znear(), Some(lens.zfar())),
                    json!({"type": "orthographic", "to_world": matrix(&scaled)}),
                )
            }
        };
        if !(ratio > 0.0 && ratio.is_finite()) || place.matrix3.determinant() < 0.5 {
            self.note(format!("the camera `{name}` is left out: it looks nowhere"));
            return;
        }
        sensor["near_clip"] = json!(near);
        sensor["far_clip"] = json!(far);
        sensor["film"] = film(ratio);
        self.has_camera = true;
        let name = self.free(name);
        self.root.insert(name, sensor);
    }

    pub(super) fn light(&mut self, light: &Light<'_>, name: &str, to_world: &DAffine3) {
        let color = light
            .color()
            .map(|x| f64::from(x) * f64::from(light.intensity()) / LUMENS);
        if light.range().is_some() {
            self.note(format!("the range of the light `{name}` is left out: light has no end"));
        }
        let place = looking(to_world);
        let described = match light.kind() {
            Kind::Point => json!({"type": "point", "position": to_world.translation.to_array(), "intensity": color}),
            Kind::Directional => {
                json!({"type": "directional", "direction": place.matrix3.z_axis.to_array(), "irradiance": color})
            }
            Kind::Spot {
                inner_cone_angle,
                outer_cone_angle,
            } => json!({
                "type": "spot", "intensity": color, "to_world": matrix(&place),
                "cutoff_angle": f64::from(outer_cone_angle).to_degrees(),
                "beam_width": f64::from(inner_cone_angle.min(outer_cone_angle)).to_degrees(),
            }),
        };
        if place.matrix3.determinant() < 0.5 || color.iter().any(|x| !(*x >= 0.0 && x.is_finite())) {
            self.note(format!("the light `{name}` is left out: it shines nowhere"));
            return;
        }
        self.shines = true;
        let name = self.free(name);
        self.root.insert(name, described);
    }

    /// A camera that sees all shapes, slightly from above.
    pub(super) fn overview(&mut self) {
        let [low, high] = self.bounds.unwrap_or([DVec3::NEG_ONE, DVec3::ONE]);
        let (center, radius) = (0.5 * (low + high), (0.5 * (high - low).length()).max(1e-3));
        let distance = 1.05 * radius / (0.5 * VIEW * TAU).sin();
        let origin = center + distance * DVec3::new(0.5, 0.4, 1.0).normalize();
        let name = self.free("camera");
        self.note(format!("it has no camera: one that sees everything is added, `{name}`"));
        let [near, far] = [0.01 * radius, distance + 2.0 * radius];
        let sensor = json!({
            "type": "perspective", "fov": 360.0 * VIEW, "fov_axis": "smaller", "near_clip": near, "far_clip": far,
            "to_world": [{"look_at": {
                "origin": origin.to_array(), "target": center.to_array(), "up": [0, 1, 0],
            }}],
            "film": {"type": "hdrfilm", "width": HEIGHT as u32, "height": HEIGHT as u32, "rfilter": {"type": "box"}},
        });
        self.root.insert(name, sensor);
        self.has_camera = true;
    }
}
