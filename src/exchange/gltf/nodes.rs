//! Meshes, cameras and lights as glTF's nodes.

use glam::{DAffine3, DMat4, DVec3};
use serde_json::{Value, json};

use super::super::triangles;
use super::buffer::Buffer;
use super::materials::Look;
use crate::io::Result;
use crate::io::mesh::Mesh;
use crate::scene::{Distortion, LightKind, Scene, SensorKind, Source, Surface};

/// Lumens per watt, by which glTF's photometric units become those of light in scenes.
const LUMENS: f64 = 683.0;

/// A shape's mesh in world space. Its n-th set of texture coordinates is transformed by the material's n-th transform.
pub(super) fn mesh(surface: &Surface, name: &str, look: &Look, buffer: &mut Buffer) -> Result<Value> {
    let mesh = triangles::of_surface(surface)?;
    let mut attributes = json!({"POSITION": buffer.vectors(&mesh.positions, true)});
    if !mesh.normals.is_empty() {
        attributes["NORMAL"] = json!(buffer.vectors(&unit(&mesh), false));
    }
    if mesh.uvs.is_empty() && !look.transforms.is_empty() {
        let zero = vec![[0.0f32; 2]; mesh.positions.len()];
        for set in 0..look.transforms.len() {
            attributes[format!("TEXCOORD_{set}")] = json!(buffer.vectors(&zero, false));
        }
    } else {
        for (set, to_uv) in look.transforms.iter().enumerate() {
            let place = |uv: &[f32; 2]| to_uv.transform_point2((*uv).into()).to_array();
            let uvs: Vec<[f32; 2]> = mesh.uvs.iter().map(place).collect();
            attributes[format!("TEXCOORD_{set}")] = json!(buffer.vectors(&uvs, false));
        }
    }
    if let Some(colors) = look
        .colors
        .as_ref()
        .filter(|colors| colors.len() == mesh.positions.len())
    {
        attributes["COLOR_0"] = json!(buffer.vectors(colors, false));
    }
    let indices = buffer.triangles(&mesh.triangles);
    Ok(json!({
        "name": name,
        "primitives": [{"attributes": attributes, "indices": indices, "material": look.material}],
    }))
}

/// Unit normals, which glTF requires; a normal without a length becomes z.
fn unit(mesh: &Mesh) -> Vec<[f32; 3]> {
    let unit = |n: &[f32; 3]| {
        glam::Vec3::from_array(*n)
            .try_normalize()
            .unwrap_or(glam::Vec3::Z)
            .to_array()
    };
    mesh.normals.iter().map(unit).collect()
}

/// The matrix of a camera's or light's node: in scenes they look along +z with +x to the left, in glTF along -z.
fn looking(to_world: &glam::Affine3A) -> Value {
    let place = DAffine3::from_cols_array(&to_world.to_cols_array().map(f64::from));
    let turned = place * DAffine3::from_scale(DVec3::new(-1.0, 1.0, -1.0));
    json!(DMat4::from(turned).to_cols_array())
}

/// The cameras, with a node each.
pub(super) fn cameras(scene: &Scene, nodes: &mut Vec<Value>, notes: &mut Vec<String>) -> Vec<Value> {
    let mut cameras = Vec::new();
    for sensor in &scene.sensors {
        let name = &sensor.name;
        let [width, height] = [sensor.width, sensor.height].map(f64::from);
        let [near, far] = [sensor.near_clip, sensor.far_clip];
        let is_centered = sensor.center.map(f64::from) == [0.5 * width, 0.5 * height];
        let camera = match sensor.kind {
            SensorKind::Perspective | SensorKind::ThinLens { .. } => {
                let fov = 2.0 * (0.5 * height / f64::from(sensor.focal[1])).atan();
                let ratio = width / height * f64::from(sensor.focal[1] / sensor.focal[0]);
                json!({"type": "perspective", "name": name,
                    "perspective": {"yfov": fov, "aspectRatio": ratio, "znear": near, "zfar": far}})
            }
            SensorKind::Orthographic => {
                let scale = sensor.to_world.matrix3.x_axis.length();
                let half = |size: f64, focal: f32| 0.5 * size / f64::from(focal) * f64::from(scale);
                json!({"type": "orthographic", "name": name, "orthographic": {
                    "xmag": half(width, sensor.focal[0]), "ymag": half(height, sensor.focal[1]),
                    "znear": near, "zfar": far}})
            }
            _ => {
                notes.push(format!("`{name}` is left out: glTF has cameras with a picture only"));
                continue;
            }
        };
        if matches!(sensor.kind, SensorKind::ThinLens { .. }) {
            notes.push(format!("`{name}` becomes a pinhole: glTF has no lenses"));
        }
        if !is_centered || sensor.distortion != Distortion::None {
            notes.push(format!(
                "`{name}`: its principal point and distortion are left out: glTF's cameras look through their middle"
            ));
        }
        let mut place = sensor.to_world;
        for axis in [
            &mut place.matrix3.x_axis,
            &mut place.matrix3.y_axis,
            &mut place.matrix3.z_axis,
        ] {
            *axis = axis.normalize_or_zero();
        }
        nodes.push(json!({"name": name, "camera": cameras.len(), "matrix": looking(&place)}));
        cameras.push(camera);
    }
    cameras
}

/// The lights without a surface, with a node each.
pub(super) fn lights(scene: &Scene, nodes: &mut Vec<Value>, notes: &mut Vec<String>) -> Vec<Value> {
    let mut lights = Vec::new();
    for light in &scene.world.lights {
        let name = &light.name;
        let Source::Fill(values) = &light.intensity.source else {
            continue;
        };
        let rgb = [0, 1, 2].map(|c: usize| f64::from(values[c.min(values.len() - 1)]));
        let most = rgb.iter().copied().fold(0.0, f64::max);
        let color = rgb.map(|x| if most > 0.0 { x / most } else { 1.0 });
        let mut described = json!({"name": name, "color": color, "intensity": LUMENS * most});
        let place = match &light.kind {
            LightKind::Point { position } => {
                described["type"] = json!("point");
                json!({"translation": position})
            }
            LightKind::Directional { direction } => {
                described["type"] = json!("directional");
                let z = glam::Vec3::from_array(*direction).normalize();
                let (x, y) = z.any_orthonormal_pair();
                json!({"matrix": looking(&glam::Affine3A::from_mat3(glam::Mat3::from_cols(x, y, z)))})
            }
            LightKind::Spot { to_world, cutoff, beam } => {
                described["type"] = json!("spot");
                // glTF requires the inner cone to be smaller than the outer one.
                let inner = beam.min(cutoff * 0.999);
                described["spot"] = json!({"innerConeAngle": inner, "outerConeAngle": cutoff});
                json!({"matrix": looking(to_world)})
            }
            LightKind::Projector { .. } => {
                notes.push(format!("`{name}` is left out: glTF has no projectors"));
                continue;
            }
        };
        if light.texture.is_some() {
            notes.push(format!("`{name}.texture` is left out: glTF's lights have no pictures"));
        }
        let mut node = place;
        node["name"] = json!(name);
        node["extensions"] = json!({"KHR_lights_punctual": {"light": lights.len()}});
        nodes.push(node);
        lights.push(described);
    }
    lights
}
