//! Lights without a surface: `point`, `directional`, `spot`, `projector`.

use std::f32::consts::FRAC_PI_2;

use glam::DVec3;

use super::color::{self, Color, Sense};
use super::lens::diagonal;
use super::object::Object;
use super::quantity::Quantity;
use super::reader::{Limit, Value};
use super::vocabulary::Class;
use super::{Array, Light, LightKind, Texture, lookup, medium, texture, transform};

/// Mitsuba's cutoff angle in degrees.
const DEFAULT_CUTOFF: f64 = 20.0;

/// The light called `name`.
pub(super) fn read(value: &Value<'_>, name: &str) -> Option<Light> {
    let mut object = value.plugin(Class::Emitter)?;
    let sampling_weight = object.number("sampling_weight", 1.0);
    let (kind, intensity, texture) = match object.name {
        "point" => (point(&mut object), color(&mut object, name, "intensity"), None),
        "directional" => (directional(&mut object), color(&mut object, name, "irradiance"), None),
        "projector" => {
            let scale = vec![object.number("scale", 1.0)];
            let picture = picture(&mut object, "irradiance");
            let picture =
                picture.unwrap_or_else(|| Texture::constant(&format!("{}.irradiance", object.value.path), &[1.0; 3]));
            let kind = projector(&mut object, &picture);
            (kind, lookup::value(format!("{name}.scale"), scale), Some(picture))
        }
        _ => {
            let kind = spot(&mut object);
            let slide = slide(&mut object, kind.as_ref());
            (kind, color(&mut object, name, "intensity"), slide)
        }
    };
    let mut texture = texture;
    if let Some(texture) = &mut texture {
        texture::rename(texture, &object.value.path, name);
    }
    medium::check_stated(&mut object);
    object.finish();
    Some(Light {
        name: name.to_string(),
        kind: kind?,
        intensity,
        texture,
        sampling_weight,
        motion: Vec::new(),
    })
}

/// The colour `key` of the light called `name`.
fn color(object: &mut Object<'_>, name: &str, key: &'static str) -> Array {
    let given = object.get(key);
    let read = given.and_then(|value| color::read(&value, Quantity::Light.limit(), Sense::Light));
    lookup::value(format!("{name}.{key}"), read.map_or([1.0; 3], Color::rgb).to_vec())
}

/// The texture `key`.
fn picture(object: &mut Object<'_>, key: &'static str) -> Option<Texture> {
    let value = object.get(key)?;
    let texture = texture::read(&value, Quantity::Light);
    texture::by_uv(&value, texture, "a light without a surface")
}

/// The `texture` of a spot, which must vary, and whose cone must be narrower than a half space.
fn slide(object: &mut Object<'_>, spot: Option<&LightKind>) -> Option<Texture> {
    let is_wide = matches!(spot, Some(LightKind::Spot { cutoff, .. }) if *cutoff >= FRAC_PI_2);
    let texture = picture(object, "texture")?;
    if matches!(texture, Texture::Constant(_)) {
        let advice = "expected a `bitmap` or a `checkerboard`; a colour belongs into `intensity`";
        object
            .value
            .error_by("texture", "the `texture` of a `spot` is the same everywhere", advice);
    } else if is_wide {
        let advice = "its `cutoff_angle` must stay below 90 degrees";
        object
            .value
            .error_by("texture", "a `spot` with a `texture` shines backwards", advice);
    }
    Some(texture)
}

/// The point or direction `key`, which excludes `to_world`; the inner option is None if it is absent.
fn vector(object: &mut Object<'_>, key: &'static str) -> Option<Option<DVec3>> {
    let (given, to_world) = (object.get(key), object.get("to_world"));
    match (given, to_world) {
        (Some(value), Some(_)) => {
            value.error(
                format!("`{key}` and `to_world` exclude each other"),
                "remove one of the two",
            );
            None
        }
        (Some(value), None) => value.vector::<3>().map(|v| Some(DVec3::from(v))),
        (None, _) => Some(None),
    }
}

fn point(object: &mut Object<'_>) -> Option<LightKind> {
    let position = match vector(object, "position")? {
        Some(position) => position,
        None => transform::read(object, "to_world").translation,
    };
    Some(LightKind::Point {
        position: position.to_array().map(|x| x as f32),
    })
}

fn directional(object: &mut Object<'_>) -> Option<LightKind> {
    let direction = match vector(object, "direction")? {
        Some(direction) => direction,
        None => transform::read_direction(object, "to_world"),
    };
    let Some(unit) = direction.try_normalize() else {
        object.value.error_by(
            "direction",
            "`direction` has no direction",
            "at least one of its numbers must differ from zero",
        );
        return None;
    };
    // A direction already of unit length in f32 is kept, so that writing and reading the scene again changes nothing.
    let is_unit = (direction.length() - 1.0).abs() < 1e-6;
    let direction = if is_unit { direction } else { unit };
    Some(LightKind::Directional {
        direction: direction.to_array().map(|x| x as f32),
    })
}

fn spot(object: &mut Object<'_>) -> Option<LightKind> {
    let to_world = transform::read_rigid(object, "to_world");
    let angle = |value: Option<Value<'_>>, default: f64, limit| match value {
        Some(value) => value.number(limit),
        None => Some(default),
    };
    let cutoff = angle(object.get("cutoff_angle"), DEFAULT_CUTOFF, Limit::Between(0.0, 180.0));
    let cutoff = cutoff?;
    // A beam wider than the cone ends with it, without a penumbra.
    let beam = angle(object.get("beam_width"), 0.75 * cutoff, Limit::Within(0.0, 180.0))?.min(cutoff);
    Some(LightKind::Spot {
        to_world: transform::to_f32(to_world),
        cutoff: cutoff.to_radians() as f32,
        beam: beam.to_radians() as f32,
    })
}

/// A projector. Its field of view along x follows from the given one and the proportions of its picture.
fn projector(object: &mut Object<'_>, picture: &Texture) -> Option<LightKind> {
    let to_world = transform::read_rigid(object, "to_world");
    let (fov, axis) = opening(object);
    let [width, height] = picture.picture_size().map(|n| n as f64);
    let extent = match axis {
        Axis::X => width,
        Axis::Y => height,
        Axis::Diagonal => width.hypot(height),
        Axis::Smaller => width.min(height),
        Axis::Larger => width.max(height),
    };
    let along_x = 2.0 * (width / extent * (0.5 * fov.to_radians()).tan()).atan();
    // A field of view along x is kept, so that writing and reading the scene again changes nothing.
    let fov = if extent == width { fov } else { along_x.to_degrees() };
    Some(LightKind::Projector {
        to_world: transform::to_f32(to_world),
        fov: fov as f32,
    })
}

/// The field of view in degrees, and the axis along which it is measured.
fn opening(object: &mut Object<'_>) -> (f64, Axis) {
    let axis = object.choice("fov_axis", AXES, Axis::X);
    let (fov, focal_length) = (object.get("fov"), object.get("focal_length"));
    match (fov, focal_length) {
        (Some(fov), None) => (fov.number(Limit::Between(0.0, 180.0)).unwrap_or(45.0), axis),
        (Some(_), Some(focal_length)) => {
            focal_length.error("the lens is given twice", "give only one of `fov` and `focal_length`");
            (45.0, axis)
        }
        (None, focal_length) => (diagonal(focal_length), Axis::Diagonal),
    }
}

#[derive(Debug, Clone, Copy)]
enum Axis {
    X,
    Y,
    Diagonal,
    Smaller,
    Larger,
}

const AXES: &[(&str, Axis)] = &[
    ("x", Axis::X),
    ("y", Axis::Y),
    ("diagonal", Axis::Diagonal),
    ("smaller", Axis::Smaller),
    ("larger", Axis::Larger),
];
