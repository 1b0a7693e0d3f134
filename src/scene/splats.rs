//! `splats`: a picture as an ordered blend of two-dimensional Gaussians.

use std::path::PathBuf;

use crate::io::tensors::Reader;
use crate::params::{Kind, Shape};

use super::object::Object;
use super::reader::Value;
use super::vocabulary::Class;
use super::{Array, Source};

/// The largest number of splats.
pub(super) const MAX_COUNT: u64 = 1 << 26;

/// The splats of a picture; the first of two that cover each other hides the second.
#[derive(Debug, Clone, PartialEq)]
pub struct Splats {
    /// Two channels: right and down from the picture's top left corner. The unit is the picture's longer side.
    pub position: Array,
    /// Two channels: logarithms of the standard deviations along the splat's axes.
    pub scale: Array,
    /// One channel: the angle of the first axis in radians.
    pub rotation: Array,
    pub color: Array,
    /// One channel: the weight at the centre.
    pub opacity: Array,
    pub order: Order,
    pub placement: Placement,
}

/// The order in which splats are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Order {
    /// As they are numbered, the first in front.
    #[default]
    Index,
    /// Sorted by size before the first iteration and whenever their number changes, the smallest in front.
    Size,
}

/// Where splats stand before a run.
#[derive(Debug, Clone, PartialEq)]
pub enum Placement {
    Random {
        seed: u64,
    },
    /// More and smaller splats along the edges of the first view's reference picture, in its colours.
    Picture {
        seed: u64,
    },
    /// The splats of an earlier run, from its `.safetensors` file.
    File(PathBuf),
}

/// Names of the arrays, and their channels, in the order of [`Splats::arrays`].
pub const ARRAYS: [(&str, usize); 5] = [
    ("position", 2),
    ("scale", 2),
    ("rotation", 1),
    ("color", 3),
    ("opacity", 1),
];

impl Splats {
    /// All arrays, in the order of [`ARRAYS`].
    pub fn arrays(&self) -> [&Array; 5] {
        [&self.position, &self.scale, &self.rotation, &self.color, &self.opacity]
    }

    /// The number of splats.
    pub fn count(&self) -> usize {
        self.position.shape.texels()
    }
}

/// The splats called `name`.
pub(super) fn read(value: &Value<'_>, name: &str) -> Option<Splats> {
    let mut object = value.plugin(Class::Splats)?;
    let order = object.choice("order", &[("index", Order::Index), ("size", Order::Size)], Order::Index);
    let count = object.integer("count", 1000) as usize;
    let (placement, count) = placement(&mut object, count)?;
    object.finish();
    let arrays = ARRAYS.map(|(part, channels)| Array {
        path: format!("{name}.{part}"),
        kind: Kind::Points,
        shape: Shape {
            size: [count, 1, 1],
            channels,
        },
        source: Source::Placed,
        tuning: None,
    });
    let [position, scale, rotation, color, opacity] = arrays;
    Some(Splats {
        position,
        scale,
        rotation,
        color,
        opacity,
        order,
        placement,
    })
}

/// The placement and the number of splats.
fn placement(object: &mut Object<'_>, count: usize) -> Option<(Placement, usize)> {
    let given = object.get("count").is_some();
    let seed = object
        .get("seed")
        .and_then(|value| value.integer(0, u64::MAX))
        .unwrap_or(0);
    let placed = object.choice("placement", &[("random", false), ("picture", true)], false);
    let Some(value) = object.get("filename") else {
        let placement = match placed {
            false => Placement::Random { seed },
            true => Placement::Picture { seed },
        };
        return Some((placement, count));
    };
    if given {
        value.error(
            "`filename` beside `count`",
            "the file says how many splats there are: remove `count`",
        );
    }
    let path = value.file()?;
    match count_in(&path) {
        Ok(count) => Some((Placement::File(path), count)),
        Err(error) => {
            value.error("these splats cannot be used", error);
            None
        }
    }
}

/// The number of splats in a file, by its header.
fn count_in(path: &std::path::Path) -> crate::io::Result<usize> {
    let refuse = |message: String| crate::io::IoError::new(path, message);
    let reader = Reader::open(path)?;
    let mut count = None;
    for (name, channels) in ARRAYS {
        let shape = reader.shape(name);
        match shape {
            Some(&[n, c])
                if c == channels && n > 0 && n as u64 <= MAX_COUNT && count.is_none_or(|known| known == n) =>
            {
                count = Some(n);
            }
            Some(found) => {
                let expected = count.map_or_else(|| "n".to_owned(), |n| n.to_string());
                return Err(refuse(format!(
                    "`{name}` has the shape {found:?}, expected [{expected}, {channels}] with 1 to {MAX_COUNT} splats"
                )));
            }
            None => return Err(refuse(format!("holds no array named `{name}`"))),
        }
    }
    Ok(count.unwrap_or(0))
}
