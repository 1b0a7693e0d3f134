//! Textures: `bitmap` and `checkerboard`.

use crate::params::{Kind, Shape};

use super::object::Object;
use super::quantity::Quantity;
use super::reader::Value;
use super::vocabulary::Class;
use super::{Array, Source, Texture, TextureMap, Wrap, color, files, lookup, uv, volume};

/// Mitsuba's default colours of the two kinds of square.
const CHECKERBOARD: [f32; 2] = [0.4, 0.2];

/// The reflectance at `value`; `path` names its array, if it has one.
pub(super) fn read(value: &Value<'_>, path: &str) -> Option<Texture> {
    let value = value.resolve()?;
    if volume::stands_for_constant(&value) {
        return reflectance(&value).map(Texture::Constant);
    }
    let mut object = value.plugin(Class::Texture)?;
    let texture = match object.name {
        "bitmap" => bitmap(&mut object, path).map(Texture::Bitmap),
        _ => Some(checkerboard(&mut object)),
    };
    object.finish();
    texture
}

/// A colour with channels in [0, 1].
fn reflectance(value: &Value<'_>) -> Option<[f32; 3]> {
    color::read_within(value, Quantity::Reflectance.limit())
}

fn checkerboard(object: &mut Object<'_>) -> Texture {
    let [one, other] = CHECKERBOARD.map(|grey| [grey; 3]);
    let colors = [("color0", one), ("color1", other)].map(|(key, default)| {
        let given = object.get(key).and_then(|value| reflectance(&value.resolve()?));
        given.unwrap_or(default)
    });
    let to_uv = uv::read(object, "to_uv");
    Texture::Checkerboard { colors, to_uv }
}

fn bitmap(object: &mut Object<'_>, array: &str) -> Option<TextureMap> {
    let file = object.require("filename", "the image file");
    let nearest = object.choice("filter_type", &[("bilinear", false), ("nearest", true)], false);
    let wrap = object.choice("wrap_mode", lookup::WRAP_MODES, Wrap::Repeat);
    let raw = object.boolean("raw", false);
    // Accepted and ignored: it selects how Mitsuba stores a texture.
    object.boolean("accel", true);
    let to_uv = uv::read(object, "to_uv");
    let file = file?;
    let path = file.file()?;
    let [width, height] = match files::image_size(&path, 1) {
        Ok(size) => size.map(|side| side as usize),
        Err(error) => {
            file.error("this image cannot be used", error);
            return None;
        }
    };
    Some(TextureMap {
        reflectance: Array {
            path: array.to_string(),
            kind: Kind::Texture,
            shape: Shape {
                size: [width, height, 1],
                channels: 3,
            },
            source: Source::Reflectance { path, raw },
            tuning: None,
        },
        nearest,
        wrap,
        to_uv,
    })
}
