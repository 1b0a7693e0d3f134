//! Emitters at infinity: `constant` and `envmap`.

use crate::params::{Kind, Shape};

use super::object::Object;
use super::quantity::{MAX_LIGHT, too_bright};
use super::reader::Value;
use super::vocabulary::Class;
use super::{Array, Background, Source, color, files, medium, transform, volume};

/// Whether emitters of this type stand in a shape, which then emits.
pub(super) fn stands_in_shapes(name: &str) -> bool {
    matches!(name, "area" | "directionalarea")
}

/// The emitter called `name`.
pub(super) fn read(value: &Value<'_>, name: &str) -> Option<Background> {
    let mut object = value.plugin(Class::Emitter)?;
    let mut background = match object.name {
        "constant" => constant(&mut object, name),
        _ => envmap(&mut object, name),
    };
    // Next-event estimation never samples a constant background, so that its weight has no effect.
    let weight = object.number("sampling_weight", 1.0);
    if let Some(Background::Envmap { sampling_weight, .. }) = &mut background {
        *sampling_weight = weight;
    }
    medium::check_stated(&mut object);
    object.finish();
    background
}

fn constant(object: &mut Object<'_>, name: &str) -> Option<Background> {
    let radiance = object
        .get("radiance")
        .map_or(Some([1.0; 3]), |value| color::light(&value))?;
    if radiance.iter().any(|x| *x > MAX_LIGHT) {
        object
            .value
            .error_by("radiance", "`radiance` is not possible", too_bright());
    }
    if radiance.iter().any(|x| *x < 0.0) {
        object
            .value
            .error_by("radiance", "`radiance` is negative", "light cannot be");
    }
    let radiance = Array {
        path: format!("{name}.radiance"),
        kind: Kind::Value,
        shape: Shape {
            size: [1, 1, 1],
            channels: 3,
        },
        source: Source::Fill(radiance.to_vec()),
        tuning: None,
    };
    Some(Background::Constant { radiance })
}

fn envmap(object: &mut Object<'_>, name: &str) -> Option<Background> {
    let scale = Array::value(&format!("{name}.scale"), &[object.number("scale", 1.0)]);
    let to_world = transform::read_rotation(object, "to_world");
    let mis_compensation = object.boolean("mis_compensation", false);
    let (shape, source) = match (object.get("filename"), object.get("data")) {
        (Some(file), None) => image(&file)?,
        (None, Some(data)) => values(&data)?,
        (None, None) => {
            object.error(
                "the map has no pixels",
                "give `filename`, or `data` with `resolution` and `value`",
            );
            return None;
        }
        (Some(_), Some(data)) => {
            data.error("`filename` and `data` exclude each other", "remove one of the two");
            return None;
        }
    };
    let data = Array {
        path: format!("{name}.data"),
        kind: Kind::Envmap,
        shape,
        source,
        tuning: None,
    };
    Some(Background::Envmap {
        data,
        scale,
        sampling_weight: 1.0,
        mis_compensation,
        to_world: transform::to_f32(to_world),
    })
}

/// A map from an image file.
pub(super) fn image(value: &Value<'_>) -> Option<(Shape, Source)> {
    let path = value.file()?;
    match files::image_size(&path, 1) {
        Ok([width, height]) if width < MIN_SIDE || height < MIN_SIDE => {
            value.error(
                format!("an environment of {width} × {height} pixels"),
                format!("expected {MIN_SIDE} × {MIN_SIDE} or more; for one colour use a `constant` emitter"),
            );
            None
        }
        Ok([width, height]) => {
            let shape = map_shape(width as usize, height as usize);
            volume::check_size(value, shape).then_some((shape, Source::ImageFile(path)))
        }
        Err(error) => {
            value.error("this image cannot be used", error);
            None
        }
    }
}

/// A map filled with one colour.
fn values(value: &Value<'_>) -> Option<(Shape, Source)> {
    let mut object = value.block("data")?;
    let size = object
        .require("resolution", "the map's width and height")
        .and_then(|v| size(&v));
    let fill = object.get("value").map_or(Some([1.0; 3]), |v| color::light(&v));
    object.finish();
    Some((size?, Source::Fill(fill?.to_vec())))
}

/// The smallest width and height of a map: lookups near the poles interpolate between two rows.
const MIN_SIDE: u32 = 2;

/// Width and height of a map.
pub(super) fn size(value: &Value<'_>) -> Option<Shape> {
    let [width, height] = value.list_of::<2>()?.map(|side| side.integer(MIN_SIDE.into(), 1 << 16));
    let shape = map_shape(width? as usize, height? as usize);
    volume::check_size(value, shape).then_some(shape)
}

fn map_shape(width: usize, height: usize) -> Shape {
    Shape {
        size: [width, height, 1],
        channels: 3,
    }
}
