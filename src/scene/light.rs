//! Lights without a surface: `point`, `directional`, `spot`.

use glam::DVec3;

use super::object::Object;
use super::quantity::Quantity;
use super::reader::{Limit, Value};
use super::vocabulary::Class;
use super::{Light, LightKind, color, lookup, transform};

/// Mitsuba's cutoff angle in degrees.
const DEFAULT_CUTOFF: f64 = 20.0;

/// The light called `name`.
pub(super) fn read(value: &Value<'_>, name: &str) -> Option<Light> {
    let mut object = value.plugin(Class::Emitter)?;
    let key = if object.name == "directional" {
        "irradiance"
    } else {
        "intensity"
    };
    let intensity = object
        .get(key)
        .map_or(Some([1.0; 3]), |v| color::read_within(&v, Quantity::Light.limit()))
        .unwrap_or([1.0; 3]);
    let kind = match object.name {
        "point" => point(&mut object),
        "directional" => directional(&mut object),
        _ => spot(&mut object),
    };
    object.finish();
    Some(Light {
        name: name.to_string(),
        kind: kind?,
        intensity: lookup::value(format!("{name}.{key}"), intensity.to_vec()),
    })
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
        None => transform::read(object, "to_world").matrix3.z_axis,
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
    let beam = object.get("beam_width");
    let cutoff = cutoff?;
    let widest = Limit::Within(0.0, cutoff);
    let beam = angle(beam, 0.75 * cutoff, widest)?;
    Some(LightKind::Spot {
        to_world: transform::to_f32(to_world),
        cutoff: cutoff.to_radians() as f32,
        beam: beam.to_radians() as f32,
    })
}
