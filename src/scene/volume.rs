//! Volumes: `gridvolume`, `constvolume`, `blobs`, and numbers and colours that stand for a `constvolume`.

use crate::params::Shape;

use super::object::Object;
use super::reader::{Limit, Value};
use super::vocabulary::Class;
use super::{Blob, Source, color, files};

/// The longest side of a grid.
const MAX_SIDE: u64 = 1 << 16;

/// How many values an array may have: beyond it, 32-bit indices do not reach.
const MAX_VALUES: u128 = 1 << 31;

/// Where the values of a grid come from and how many there are.
#[derive(Debug, Clone)]
pub(super) struct Volume {
    pub(super) shape: Shape,
    pub(super) source: Source,
}

/// A volume of the given number of channels.
pub(super) fn read(value: &Value<'_>, channels: usize) -> Option<Volume> {
    let value = value.resolve()?;
    if !value.is_object() || value.type_name() == Some("rgb") {
        return Some(constant(channel_values(&value, channels)?, channels));
    }
    let mut object = value.plugin(Class::Volume)?;
    if let Some(transform) = object.get("to_world") {
        let advice = "the grid fills the cube that the medium fills; move the cube instead";
        transform.error("a volume of a `radiance_field` cannot have a `to_world`", advice);
    }
    let volume = match object.name {
        "gridvolume" => gridvolume(&mut object, channels),
        "blobs" => blobs(&mut object, channels),
        _ => {
            let values = match object.get("value") {
                Some(value) => channel_values(&value, channels),
                None => Some(vec![1.0]),
            };
            values.map(|values| constant(values, channels))
        }
    };
    object.finish();
    volume
}

fn constant(values: Vec<f32>, channels: usize) -> Volume {
    Volume {
        shape: Shape {
            size: [1, 1, 1],
            channels,
        },
        source: Source::Fill(values),
    }
}

/// A number for all channels, or a list of one number a channel, or a colour where there are three.
pub(super) fn channel_values(value: &Value<'_>, channels: usize) -> Option<Vec<f32>> {
    if value.is_number() {
        return Some(vec![value.number(Limit::Any)? as f32]);
    }
    if value.is_object() && channels == 3 {
        return Some(color::read(value)?.to_vec());
    }
    if !value.is_list() {
        value.error("this is not a value", expected_values(channels));
        return None;
    }
    let items = value.list()?;
    if items.len() != channels {
        let found = format!("a list of {}", items.len());
        value.error(found, expected_values(channels));
        return None;
    }
    let numbers: Vec<_> = items.iter().map(|item| item.number(Limit::Any)).collect();
    numbers.into_iter().map(|x| x.map(|x| x as f32)).collect()
}

fn expected_values(channels: usize) -> String {
    match channels {
        1 => "expected a number".to_string(),
        _ => format!("expected a number, or one number for each of the {channels} channels"),
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

/// Whether an array is of a size that can be indexed; reports it if not.
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

fn gridvolume(object: &mut Object<'_>, channels: usize) -> Option<Volume> {
    object.only("filter_type", "trilinear");
    object.only("wrap_mode", "clamp");
    object.only("use_grid_bbox", false);
    // Both speak of how Mitsuba stores a grid and change nothing here.
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
            grid_file(&file, channels)
        }
        (None, Some(size)) => {
            let shape = resolution(&size, channels);
            let values = value.map_or(Some(vec![0.0]), |value| channel_values(&value, channels));
            Some(Volume {
                shape: shape?,
                source: Source::Fill(values?),
            })
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

/// A grid file whose header fits.
pub(super) fn grid_file(value: &Value<'_>, channels: usize) -> Option<Volume> {
    let path = value.file()?;
    let header = match files::grid_header(&path) {
        Ok(header) => header,
        Err(error) => {
            value.error("this grid cannot be used", error);
            return None;
        }
    };
    let (size, found) = (header.size, header.channels);
    if found != channels {
        let advice = match channels {
            1 => "density has one channel".to_string(),
            _ => format!(
                "spherical harmonics of this `sh_degree` need {channels}{}",
                degree_of(found)
            ),
        };
        value.error(format!("the grid {} has {found} channels", path.display()), advice);
        return None;
    }
    let shape = Shape { size, channels };
    check_size(value, shape).then_some(Volume {
        shape,
        source: Source::GridFile(path),
    })
}

/// Which degree would have this many channels.
fn degree_of(channels: usize) -> String {
    match (0..=3).find(|degree| 3 * (degree + 1) * (degree + 1) == channels) {
        Some(degree) => format!("; {channels} would be degree {degree}"),
        None => String::new(),
    }
}

fn blobs(object: &mut Object<'_>, channels: usize) -> Option<Volume> {
    let shape = object
        .require("resolution", "the texels along x, y and z")
        .and_then(|v| resolution(&v, channels));
    let base = object
        .get("base")
        .map_or(Some(vec![0.0]), |value| channel_values(&value, channels));
    let list = object.require("blobs", "a list of blobs").and_then(|v| v.list());
    let blobs: Vec<_> = list?.iter().map(|item| blob(item, channels)).collect();
    let blobs: Option<Vec<_>> = blobs.into_iter().collect();
    Some(Volume {
        shape: shape?,
        source: Source::Blobs {
            base: base?,
            blobs: blobs?,
        },
    })
}

fn blob(value: &Value<'_>, channels: usize) -> Option<Blob> {
    let mut object = value.block("blob")?;
    let center = object
        .require("center", "its place in the unit cube, [x, y, z]")
        .and_then(|v| v.vector::<3>());
    let radius = object
        .require("radius", "its standard deviation")
        .and_then(|v| v.number(Limit::Positive));
    let value = object
        .require("value", "its height in each channel")
        .and_then(|v| channel_values(&v, channels));
    object.finish();
    Some(Blob {
        center: center?.map(|x| x as f32),
        radius: radius? as f32,
        value: value?,
    })
}
