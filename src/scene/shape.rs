//! `cube`, with a `null` BSDF and a medium inside.

use super::reader::Value;
use super::vocabulary::Class;
use super::{RadianceField, medium, transform};

/// The medium inside the cube called `name`.
pub(super) fn read(value: &Value<'_>, name: &str) -> Option<RadianceField> {
    let mut object = value.plugin(Class::Shape)?;
    let to_world = transform::read(&mut object, "to_world");
    let interior = object.get("interior");
    if !object.mentions(Class::Bsdf) {
        object.error(
            "a `cube` without BSDF",
            "it would be opaque and grey (`diffuse`) as in Mitsuba; add \"bsdf\": {\"type\": \"null\"} to see its interior",
        );
    }
    if let Some(bsdf) = object.nested(Class::Bsdf) {
        bsdf.finish();
    }
    let field = match interior {
        Some(interior) => medium::read(&interior, &format!("{name}.interior"), to_world),
        None => {
            object.error(
                "a `cube` without `interior`",
                "it would be invisible; put a `radiance_field` there",
            );
            None
        }
    };
    object.finish();
    field
}
