//! Textures: `bitmap`, `checkerboard`, `mesh_attribute` and `volume`, and numbers and colours as constant ones.

use std::path::Path;

use glam::Affine2;

use crate::params::{Kind, Shape};

use super::color::{self, Sense};
use super::object::Object;
use super::quantity::Quantity;
use super::reader::Value;
use super::relief::Motif;
use super::vocabulary::Class;
use super::volume::{self, Channels, Wanted};
use super::{Array, AttributeMap, Source, Texture, TextureMap, Wrap, attributes, files, lookup, uv};

/// Mitsuba's defaults of `color0` and `color1`.
const CHECKERBOARD: [f32; 2] = [0.4, 0.2];

/// A texture of three channels at `value`; the path names its arrays.
pub(super) fn read(value: &Value<'_>, quantity: Quantity) -> Option<Texture> {
    read_channels(value, quantity, 3)
}

/// A texture of one channel at `value`.
pub(super) fn read_scalar(value: &Value<'_>, quantity: Quantity) -> Option<Texture> {
    read_channels(value, quantity, 1)
}

fn read_channels(value: &Value<'_>, quantity: Quantity, channels: usize) -> Option<Texture> {
    read_within(value, quantity, channels, false)
}

/// As [`read_channels`]; `in_square`: whether it is what a square of a checkerboard shows.
fn read_within(value: &Value<'_>, quantity: Quantity, channels: usize, in_square: bool) -> Option<Texture> {
    let wanted = Wanted {
        quantity,
        channels: Channels::Exactly(channels),
    };
    let value = value.resolve()?;
    if volume::stands_for_constant(&value) {
        return constant(&value, wanted, Sense::of(quantity)).map(Texture::Constant);
    }
    let mut object = value.plugin(Class::Texture)?;
    let texture = match object.name {
        "bitmap" => bitmap(&mut object, wanted).map(Texture::Bitmap),
        "mesh_attribute" => mesh_attribute(&mut object, channels),
        "volume" => solid(&mut object, wanted),
        _ => checkerboard(&mut object, wanted, in_square),
    };
    object.finish();
    texture
}

/// One value, repeated over all channels if it is a number.
fn constant(value: &Value<'_>, wanted: Wanted, sense: Sense) -> Option<Array> {
    let values = match wanted.channels {
        Channels::Exactly(3) => color::read(value, wanted.quantity.limit(), sense)?.rgb().to_vec(),
        _ => volume::channel_values(value, wanted)?,
    };
    Some(repeated(&value.path, &values, wanted))
}

fn repeated(path: &str, values: &[f32], wanted: Wanted) -> Array {
    let channels = wanted.channels.told_by(values.len());
    let values = values.iter().copied().cycle().take(channels);
    lookup::value(path.to_string(), values.collect())
}

fn checkerboard(object: &mut Object<'_>, wanted: Wanted, in_square: bool) -> Option<Texture> {
    let given = ["color0", "color1"].map(|key| (key, object.get(key)));
    let to_uv = uv::read(object, "to_uv");
    let is_texture = |value: &Value<'_>| {
        value
            .resolve()
            .is_some_and(|value| !volume::stands_for_constant(&value))
    };
    if given.iter().any(|(_, value)| value.as_ref().is_some_and(is_texture)) {
        // Refused before the squares are read: names that stand for one another twice would be read twice as often at each step.
        if in_square {
            object.error(
                "a `checkerboard` of textures in another one",
                "its squares show colours or numbers there; others also a `bitmap`, a `mesh_attribute`, a `volume` or such a \
                 `checkerboard`",
            );
            return None;
        }
        return squares(object, given, to_uv, wanted);
    }
    // As in Mitsuba, a spectrum in a texture counts as a reflectance, even where the texture is the radiance of an emitter.
    let sense = match Sense::of(wanted.quantity) {
        Sense::Light => Sense::Share,
        other => other,
    };
    let color = |(key, value): &(&str, Option<Value<'_>>), default: f32| {
        let given = value
            .as_ref()
            .and_then(|value| constant(&value.resolve()?, wanted, sense));
        given.unwrap_or_else(|| repeated(&format!("{}.{key}", object.value.path), &[default], wanted))
    };
    let colors = Box::new([color(&given[0], CHECKERBOARD[0]), color(&given[1], CHECKERBOARD[1])]);
    Some(Texture::Checkerboard { colors, to_uv })
}

/// A checkerboard whose squares show textures, of which one at least is more than a colour or a number.
fn squares(
    object: &Object<'_>,
    given: [(&str, Option<Value<'_>>); 2],
    to_uv: Affine2,
    wanted: Wanted,
) -> Option<Texture> {
    use Quantity::{Displacement, Elevation, Height, Light, Normal};
    if let Displacement | Elevation | Height | Light | Normal = wanted.quantity {
        object.error(
            "a `checkerboard` of textures, which a `bsdf` takes for its reflectances and other factors alone",
            "give `color0` and `color1` as colours or numbers, or make one `bitmap` of both",
        );
        return None;
    }
    let channels = wanted.channels.told_by(1);
    let read = |(key, value): (&str, Option<Value<'_>>), default: f32| match value {
        Some(value) => read_within(&value, wanted.quantity, channels, true),
        None => {
            let path = format!("{}.{key}", object.value.path);
            Some(Texture::Constant(repeated(&path, &[default], wanted)))
        }
    };
    let [first, second] = given;
    let [first, second] = [read(first, CHECKERBOARD[0]), read(second, CHECKERBOARD[1])];
    let textures = Box::new([first?, second?]);
    Some(Texture::Squares {
        path: object.value.path.clone(),
        textures,
        to_uv,
    })
}

/// The attribute of a mesh; `attributes::bind` replaces the placeholder values by those of the shape's mesh.
fn mesh_attribute(object: &mut Object<'_>, channels: usize) -> Option<Texture> {
    let scale = object.number("scale", 1.0);
    let value = object.require("name", "the attribute, such as \"vertex_color\"")?;
    let name = value.string()?;
    if !attributes::PREFIXES.iter().any(|prefix| name.starts_with(prefix)) {
        let what = format!("there is no attribute called {name:?}");
        value.error(what, "names of attributes begin with `vertex_` or `face_`");
        return None;
    }
    let path = object.value.path.clone();
    Some(Texture::Attribute(AttributeMap {
        name: name.to_string(),
        scale,
        values: lookup::value(path.clone(), vec![0.0; channels]),
        path,
    }))
}

/// A volume at the points of a surface.
fn solid(object: &mut Object<'_>, wanted: Wanted) -> Option<Texture> {
    let value = object.require("volume", "a `gridvolume` or a `constvolume`")?;
    let target = value.resolve()?;
    let volume = match wanted.channels {
        Channels::Exactly(1) => lookup::read_scalar(&target, &target.path, wanted.quantity),
        _ => lookup::read(&target, &target.path, wanted.quantity),
    };
    Some(Texture::Volume {
        path: object.value.path.clone(),
        volume: volume?,
    })
}

/// Refuses textures that are not looked up by u and v; `what` is the object, in words, that only takes those that are.
pub(super) fn by_uv(value: &Value<'_>, texture: Option<Texture>, what: &str) -> Option<Texture> {
    let kind = match &texture {
        Some(Texture::Attribute(_)) => "mesh_attribute",
        Some(Texture::Volume { .. }) => "volume",
        _ => return texture,
    };
    value.error(
        format!("a `{kind}` in {what}"),
        "expected a `bitmap` or a `checkerboard`",
    );
    None
}

fn bitmap(object: &mut Object<'_>, wanted: Wanted) -> Option<TextureMap> {
    let channels = wanted.channels.told_by(1);
    let nearest = object.choice("filter_type", &[("bilinear", false), ("nearest", true)], false);
    let wrap = object.choice("wrap_mode", lookup::WRAP_MODES, Wrap::Repeat);
    let raw = object.boolean("raw", false);
    // Accepted and ignored: it selects how Mitsuba stores a texture.
    object.boolean("accel", true);
    // Texels are floats here whatever the file has, so that all of them have derivatives.
    let formats = ["auto", "variant", "float16", "fp16", "uint8"].map(|name| (name, ()));
    object.choice("format", &formats, ());
    let to_uv = uv::read(object, "to_uv");
    let (shape, source) = match (object.get("filename"), object.get("data")) {
        (Some(file), None) => image(&file, raw, channels, wanted.quantity)?,
        (None, Some(data)) => filled(&data, wanted)?,
        (None, None) => {
            object.error(
                "the `bitmap` has no texels",
                "give `filename`, or `data` with `resolution` and `value`",
            );
            return None;
        }
        (Some(_), Some(data)) => {
            data.error("`filename` and `data` exclude each other", "remove one of the two");
            return None;
        }
    };
    Some(TextureMap {
        data: Array {
            path: object.value.path.clone(),
            kind: Kind::Texture,
            shape,
            source,
            tuning: None,
        },
        nearest,
        wrap,
        to_uv,
    })
}

/// Texels from an image file.
pub(super) fn image(file: &Value<'_>, raw: bool, channels: usize, quantity: Quantity) -> Option<(Shape, Source)> {
    let path = file.file()?;
    match files::image_size(&path, 1) {
        Ok([width, height]) => {
            let shape = shape([width, height], channels);
            let source = match quantity {
                Quantity::Light => Source::Radiance { path, raw },
                Quantity::Normal | Quantity::Height | Quantity::Elevation | Quantity::Displacement => {
                    check_relief(file, &path, raw, quantity)?;
                    Source::Relief { path, raw }
                }
                _ => Source::Reflectance { path, raw },
            };
            volume::check_size(file, shape).then_some((shape, source))
        }
        Err(error) => {
            file.error("this image cannot be used", error);
            None
        }
    }
}

/// Checks an image of normals, which needs three channels, or of heights; warns if its values are decoded from sRGB like
/// colours.
fn check_relief(file: &Value<'_>, path: &Path, raw: bool, quantity: Quantity) -> Option<()> {
    let (channels, colored) = files::image_channels(path)
        .map_err(|error| file.error("this image cannot be used", error))
        .ok()?;
    if quantity == Quantity::Normal && channels != 3 {
        let advice = "expected an image of three channels without alpha";
        file.error(format!("this image of normals has {channels} channels"), advice);
        return None;
    }
    if colored && !raw {
        file.context
            .warn("the values of this image are decoded as colours: `raw` true takes them as they are");
    }
    Some(())
}

/// Texels of one value, or of a procedural picture.
fn filled(value: &Value<'_>, wanted: Wanted) -> Option<(Shape, Source)> {
    let mut object = value.block("data")?;
    let size = object.require("resolution", "the image's width and height");
    let size = size.and_then(|value| size_of(&value, wanted.channels.told_by(1)));
    let relief = matches!(
        wanted.quantity,
        Quantity::Normal | Quantity::Height | Quantity::Displacement
    );
    let pictures = ["value", "leaves", "planet"].map(|key| object.get(key));
    let motifs = Motif::ALL.map(|motif| object.get(motif.name()).map(|value| (motif, value)));
    let seed = |value: Value<'_>| value.integer(0, u64::MAX);
    let mut given: Vec<_> = motifs.into_iter().flatten().collect();
    let several = pictures.iter().flatten().count() + given.len() > 1;
    let source = match (pictures, given.pop()) {
        (pictures, motif) if several => exclude(pictures, motif.map(|(_, value)| value)),
        ([Some(value), _, _], None) => volume::channel_values(&value, wanted).map(Source::Fill),
        ([_, Some(leaves), _], None) => seed(leaves).map(|seed| Source::Leaves { seed }),
        ([_, _, Some(planet)], None) => seed(planet).map(|seed| Source::Planet { seed }),
        (_, Some((motif, value))) if relief => seed(value).map(|seed| Source::Motif { motif, seed }),
        (_, Some((motif, value))) => {
            value.error(
                format!("`{}` is a relief", motif.name()),
                "it may stand in a `normalmap`, a `bumpmap` or a `displacement`",
            );
            None
        }
        _ => Some(Source::Fill(vec![1.0])),
    };
    object.finish();
    Some((size?, source?))
}

/// Reports that more than one kind of texels is given.
fn exclude<'a, T>(pictures: [Option<Value<'a>>; 3], motif: Option<Value<'a>>) -> Option<T> {
    let another = motif.or_else(|| pictures.into_iter().flatten().last());
    let what = "`value`, `leaves`, `planet`, `coin`, `magnifier` and `ridges` exclude each other";
    another.expect("there are several").error(what, "keep one of them");
    None
}

/// Replaces the object path `from` by `to` at the beginning of the paths of a texture and its arrays.
pub(super) fn rename(texture: &mut Texture, from: &str, to: &str) {
    let arrays: Vec<&mut Array> = match texture {
        Texture::Constant(array) => vec![array],
        Texture::Checkerboard { colors, .. } => colors.iter_mut().collect(),
        Texture::Bitmap(map) => vec![&mut map.data],
        Texture::Squares { path, textures, .. } => {
            move_below(path, from, to);
            textures.iter_mut().for_each(|texture| rename(texture, from, to));
            vec![]
        }
        Texture::Attribute(map) => {
            move_below(&mut map.path, from, to);
            vec![]
        }
        Texture::Volume { path, volume } => {
            move_below(path, from, to);
            vec![&mut volume.array]
        }
    };
    for array in arrays {
        move_below(&mut array.path, from, to);
    }
}

fn move_below(path: &mut String, from: &str, to: &str) {
    if let Some(rest) = path.strip_prefix(from).filter(|rest| rest.starts_with('.')) {
        *path = format!("{to}{rest}");
    }
}

/// Width and height of an image.
pub(super) fn size_of(value: &Value<'_>, channels: usize) -> Option<Shape> {
    let [width, height] = value.list_of::<2>()?.map(|side| side.integer(1, 1 << 16));
    let shape = shape([width? as u32, height? as u32], channels);
    volume::check_size(value, shape).then_some(shape)
}

fn shape([width, height]: [u32; 2], channels: usize) -> Shape {
    Shape {
        size: [width as usize, height as usize, 1],
        channels,
    }
}
