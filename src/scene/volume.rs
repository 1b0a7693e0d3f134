//! Contents of volumes: `gridvolume`, `constvolume`, `blobs`, `plume`, and numbers and colours as shorthands for a
//! `constvolume`.

use crate::io::UNIT_CUBE;
use crate::params::Shape;

use super::color::{self, Color, Sense};
use super::object::Object;
use super::quantity::Quantity;
use super::reader::Value;
use super::vocabulary::{self, Class, Known};
use super::{Blob, Source, files};

/// The longest side of a grid.
const MAX_SIDE: u64 = 1 << 16;

/// Largest number of values of an array: the limit of 32-bit indices.
const MAX_VALUES: u128 = 1 << 31;

/// Requirements on a volume.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted {
    pub(super) quantity: Quantity,
    pub(super) channels: Channels,
}

/// The number of channels of a volume.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Channels {
    Exactly(usize),
    /// As in its values or file: one (grey) or three (RGB).
    OneOrThree,
}

impl Channels {
    fn fit(self, count: usize) -> bool {
        match self {
            Channels::Exactly(n) => count == n,
            Channels::OneOrThree => count == 1 || count == 3,
        }
    }

    /// The number of channels for values with `count` entries; a single entry is repeated over all channels.
    pub(super) fn told_by(self, count: usize) -> usize {
        match self {
            Channels::Exactly(n) => n,
            Channels::OneOrThree => count,
        }
    }
}

/// The source and shape of a volume's values.
#[derive(Debug, Clone)]
pub(super) struct Volume {
    pub(super) shape: Shape,
    pub(super) source: Source,
    /// The same value everywhere, without a grid.
    pub(super) constant: bool,
    /// The bounding box stated in the file, or the unit cube.
    pub(super) bounds: [[f32; 3]; 2],
}

/// A volume of a radiance field, which fills the cube of its medium.
pub(super) fn read(value: &Value<'_>, wanted: Wanted) -> Option<Volume> {
    let value = value.resolve()?;
    if stands_for_constant(&value) {
        return read_constant(&value, wanted);
    }
    let mut object = value.plugin(Class::Volume)?;
    if let Some(transform) = object.get("to_world") {
        let advice = "the grid fills the cube that the medium fills; move the cube instead";
        transform.error("a volume of a `radiance_field` cannot have a `to_world`", advice);
    }
    if object.name == "gridvolume" {
        object.only("filter_type", "trilinear");
        object.only("wrap_mode", "clamp");
        object.only("use_grid_bbox", false);
    }
    let volume = contents(&mut object, wanted);
    object.finish();
    volume
}

/// Whether the value is a shorthand for a `constvolume`: a number, a list or a colour.
pub(super) fn stands_for_constant(value: &Value<'_>) -> bool {
    !value.is_object() || value.type_name().is_some_and(is_color)
}

fn is_color(name: &str) -> bool {
    matches!(
        vocabulary::lookup(name),
        Known::Supported(Class::Spectrum) | Known::Mitsuba(Class::Spectrum)
    )
}

/// The `constvolume` that a shorthand stands for.
pub(super) fn read_constant(value: &Value<'_>, wanted: Wanted) -> Option<Volume> {
    channel_values(value, wanted).map(|values| constant(values, wanted.channels))
}

/// The contents of a volume; the caller reads its placement.
pub(super) fn contents(object: &mut Object<'_>, wanted: Wanted) -> Option<Volume> {
    match object.name {
        "gridvolume" => gridvolume(object, wanted),
        "blobs" => blobs(object, wanted),
        "plume" => plume(object, wanted),
        _ => match object.get("value") {
            Some(value) => read_constant(&value, wanted),
            None => Some(constant(vec![1.0], wanted.channels)),
        },
    }
}

/// One value everywhere.
pub(super) fn constant(values: Vec<f32>, channels: Channels) -> Volume {
    let shape = Shape {
        size: [1, 1, 1],
        channels: channels.told_by(values.len()),
    };
    Volume {
        constant: true,
        ..grid(shape, Source::Fill(values))
    }
}

/// A grid in the unit cube.
fn grid(shape: Shape, source: Source) -> Volume {
    Volume {
        shape,
        source,
        constant: false,
        bounds: UNIT_CUBE,
    }
}

/// A number for all channels, a list of one number per channel, or a colour, whose mean is taken for one channel.
pub(super) fn channel_values(value: &Value<'_>, wanted: Wanted) -> Option<Vec<f32>> {
    let Wanted { quantity, channels } = wanted;
    let limit = quantity.limit();
    if value.is_number() {
        return Some(vec![value.number(limit)? as f32]);
    }
    if value.is_object() && (channels.fit(3) || channels == Channels::Exactly(1)) {
        let color = color::read(value, limit, Sense::of(quantity))?;
        return Some(match color {
            Color::Rgb(rgb) if channels.fit(3) => rgb.to_vec(),
            color => vec![color.mean()],
        });
    }
    if !value.is_list() {
        value.error(format!("found {}", value.describe()), expected_values(channels));
        return None;
    }
    let items = value.list()?;
    if !channels.fit(items.len()) {
        let found = format!("a list of {}", items.len());
        value.error(found, expected_values(channels));
        return None;
    }
    let numbers: Vec<_> = items.iter().map(|item| item.number(limit)).collect();
    numbers.into_iter().map(|x| x.map(|x| x as f32)).collect()
}

fn expected_values(channels: Channels) -> String {
    match channels {
        Channels::Exactly(1) => "expected a number".to_string(),
        Channels::Exactly(n) => format!("expected a number, or one number for each of the {n} channels"),
        Channels::OneOrThree => "expected a number, or [r, g, b]".to_string(),
    }
}

/// Texels along x, y and z: a list, or one number for all three.
pub(super) fn resolution(value: &Value<'_>, channels: usize) -> Option<Shape> {
    let sides = if value.is_list() {
        value.list_of::<3>()?.map(|side| side.integer(1, MAX_SIDE))
    } else {
        [value.integer(1, MAX_SIDE); 3]
    };
    let [x, y, z] = sides;
    let shape = Shape {
        size: [x? as usize, y? as usize, z? as usize],
        channels,
    };
    check_size(value, shape).then_some(shape)
}

/// Whether an array has an addressable size; reports it if not.
pub(super) fn check_size(value: &Value<'_>, shape: Shape) -> bool {
    let [x, y, z] = shape.size;
    let count = [x, y, z, shape.channels].iter().map(|n| *n as u128).product::<u128>();
    if count >= MAX_VALUES {
        value.error(
            format!("a grid of {x}×{y}×{z}×{} values", shape.channels),
            format!("it would hold {count} values; at most 2147483647 are possible"),
        );
    }
    count < MAX_VALUES
}

fn gridvolume(object: &mut Object<'_>, wanted: Wanted) -> Option<Volume> {
    // Accepted and ignored: both select how Mitsuba stores a grid.
    object.boolean("raw", false);
    object.boolean("accel", true);
    let (file, size, value) = (object.get("filename"), object.get("resolution"), object.get("value"));
    match (file, size) {
        (Some(file), None) => {
            if let Some(value) = value {
                value.error(
                    "`value` beside `filename`",
                    "the values come from the file; remove one of the two",
                );
            }
            grid_file(&file, wanted)
        }
        (None, Some(size)) => {
            let values = value.map_or(Some(vec![0.0]), |value| channel_values(&value, wanted));
            let count = values.as_ref().map_or(1, Vec::len);
            let shape = resolution(&size, wanted.channels.told_by(count));
            Some(grid(shape?, Source::Fill(values?)))
        }
        (None, None) => {
            object.error("the grid has no size", "give `filename`, or `resolution` and `value`");
            None
        }
        (Some(file), Some(_)) => {
            file.error(
                "`filename` and `resolution` exclude each other",
                "the size comes from the file; remove one",
            );
            None
        }
    }
}

/// A grid file, whose header is checked.
pub(super) fn grid_file(value: &Value<'_>, wanted: Wanted) -> Option<Volume> {
    let path = value.file()?;
    let header = match files::grid_header(&path) {
        Ok(header) => header,
        Err(error) => {
            value.error("this grid cannot be used", error);
            return None;
        }
    };
    let (size, channels) = (header.size, header.channels);
    if !wanted.channels.fit(channels) {
        let found = format!("the grid {} has {channels} channels", path.display());
        value.error(found, expected_channels(wanted, channels));
        return None;
    }
    let shape = Shape { size, channels };
    check_size(value, shape).then_some(Volume {
        bounds: header.bounds,
        ..grid(shape, Source::GridFile(path))
    })
}

/// The required number of channels as text, for a file that has `found`.
fn expected_channels(wanted: Wanted, found: usize) -> String {
    match (wanted.quantity, wanted.channels) {
        (Quantity::Density, _) => "density has one channel".to_string(),
        (Quantity::Coefficients, Channels::Exactly(n)) => {
            format!("spherical harmonics of this `sh_degree` need {n}{}", degree_of(found))
        }
        (_, Channels::Exactly(n)) => format!("expected {n}, as many as the scene's own values have"),
        (_, Channels::OneOrThree) => "expected 1, or 3 for red, green and blue".to_string(),
    }
}

/// A hint at the degree of spherical harmonics with this number of channels.
fn degree_of(channels: usize) -> String {
    match (0..=3).find(|degree| 3 * (degree + 1) * (degree + 1) == channels) {
        Some(degree) => format!("; {channels} would be degree {degree}"),
        None => String::new(),
    }
}

fn blobs(object: &mut Object<'_>, wanted: Wanted) -> Option<Volume> {
    let size = object.require("resolution", "the texels along x, y and z");
    let base = object
        .get("base")
        .map_or(Some(vec![0.0]), |value| channel_values(&value, wanted));
    let list = object.require("blobs", "a list of blobs").and_then(|v| v.list());
    let blobs: Vec<_> = list?.iter().map(|item| blob(item, wanted)).collect();
    let blobs: Option<Vec<_>> = blobs.into_iter().collect();
    let heights = blobs.iter().flatten().map(|blob| blob.value.len());
    let entries = heights.chain(base.as_ref().map(Vec::len)).max().unwrap_or(1);
    let shape = resolution(&size?, wanted.channels.told_by(entries));
    let (base, blobs) = (base?, blobs?);
    Some(grid(shape?, Source::Blobs { base, blobs }))
}

fn blob(value: &Value<'_>, wanted: Wanted) -> Option<Blob> {
    let mut object = value.block("blob")?;
    let center = object
        .require("center", "its place in the unit cube, [x, y, z]")
        .and_then(|v| v.vector::<3>());
    let radius = object.require_number("radius", "its standard deviation");
    let value = object
        .require("value", "its height in each channel")
        .and_then(|v| channel_values(&v, wanted));
    object.finish();
    Some(Blob {
        center: center?.map(|x| x as f32),
        radius: radius? as f32,
        value: value?,
    })
}

fn plume(object: &mut Object<'_>, wanted: Wanted) -> Option<Volume> {
    let size = object.require("resolution", "the texels along x, y and z");
    let seed = object.get("seed").map_or(Some(0), |value| value.integer(0, u64::MAX));
    let value = object
        .get("value")
        .map_or(Some(vec![1.0]), |value| channel_values(&value, wanted));
    let entries = value.as_ref().map_or(1, Vec::len);
    let shape = resolution(&size?, wanted.channels.told_by(entries));
    let (seed, value) = (seed?, value?);
    Some(grid(shape?, Source::Plume { seed, value }))
}
