//! A volume of a scattering medium: contents and placement in the world.

use glam::{Affine3A, DAffine3, DVec3};

use crate::params::{Kind, Shape};

use super::object::Object;
use super::quantity::Quantity;
use super::reader::Value;
use super::vocabulary::Class;
use super::volume::{self, Channels, Volume, Wanted};
use super::{Array, Lookup, Source, Wrap, transform};

/// The volume at `value`, of one or three channels; `path` names its array.
pub(super) fn read(value: &Value<'_>, path: &str, quantity: Quantity) -> Option<Lookup> {
    read_channels(value, path, quantity, Channels::OneOrThree)
}

/// The one-channel volume at `value`; `path` names its array.
pub(super) fn read_scalar(value: &Value<'_>, path: &str, quantity: Quantity) -> Option<Lookup> {
    read_channels(value, path, quantity, Channels::Exactly(1))
}

fn read_channels(value: &Value<'_>, path: &str, quantity: Quantity, channels: Channels) -> Option<Lookup> {
    let wanted = Wanted { quantity, channels };
    let value = value.resolve()?;
    if volume::stands_for_constant(&value) {
        let volume = volume::read_constant(&value, wanted)?;
        return Some(lookup(path, volume, &Placement::default()));
    }
    let mut object = value.plugin(Class::Volume)?;
    let placement = Placement::read(&mut object);
    let volume = volume::contents(&mut object, wanted);
    if let Some(Volume {
        bounds: [low, high], ..
    }) = &volume
        && placement.use_grid_bbox
        && (0..3).any(|axis| low[axis] >= high[axis])
    {
        let what = format!("the file's bounding box from {low:?} to {high:?} is empty");
        object.error(what, "place the grid with `to_world` instead");
    }
    object.finish();
    Some(lookup(path, volume?, &placement))
}

/// A constant volume.
pub(super) fn constant(path: &str, value: f32) -> Lookup {
    let volume = volume::constant(vec![value], Channels::Exactly(1));
    lookup(path, volume, &Placement::default())
}

/// An array of a few numbers at `path`, not optimised.
pub(super) fn value(path: String, values: Vec<f32>) -> Array {
    Array {
        path,
        kind: Kind::Value,
        shape: Shape {
            size: [1, 1, 1],
            channels: values.len(),
        },
        source: Source::Fill(values),
        tuning: None,
    }
}

/// Placement, filter and wrap mode of a volume.
#[derive(Debug, Default)]
struct Placement {
    to_world: DAffine3,
    use_grid_bbox: bool,
    nearest: bool,
    wrap: Wrap,
}

impl Placement {
    fn read(object: &mut Object<'_>) -> Self {
        let to_world = transform::read(object, "to_world");
        if object.name != "gridvolume" {
            return Self {
                to_world,
                ..Self::default()
            };
        }
        let filters = [("trilinear", false), ("nearest", true)];
        let nearest = object.choice("filter_type", &filters, false);
        let wrap = object.choice("wrap_mode", WRAP_MODES, Wrap::Clamp);
        let use_grid_bbox = object.boolean("use_grid_bbox", false);
        let unstated = match object.get("filename").map(|file| file.as_str()) {
            None => Some("`use_grid_bbox` without `filename`"),
            Some(Some(name)) if name.ends_with(".npy") => Some("`use_grid_bbox` of a .npy file"),
            Some(_) => None,
        };
        if use_grid_bbox && let Some(what) = unstated {
            let advice = "only a .vol or .vdb file states a bounding box; place the grid with `to_world`";
            object.error(what, advice);
        }
        Self {
            to_world,
            use_grid_bbox,
            nearest,
            wrap,
        }
    }

    /// The transform from the unit cube to the world.
    fn to_world(&self, bounds: [[f32; 3]; 2]) -> Affine3A {
        if !self.use_grid_bbox {
            return transform::to_f32(self.to_world);
        }
        let [low, high] = bounds.map(|corner| DVec3::from(corner.map(f64::from)));
        let to_box = DAffine3::from_scale_rotation_translation(high - low, glam::DQuat::IDENTITY, low);
        transform::to_f32(self.to_world * to_box)
    }
}

/// Names of the wrap modes of grids and images.
pub(super) const WRAP_MODES: &[(&str, Wrap)] = &[
    ("clamp", Wrap::Clamp),
    ("repeat", Wrap::Repeat),
    ("mirror", Wrap::Mirror),
];

fn lookup(path: &str, volume: Volume, placement: &Placement) -> Lookup {
    let constant = volume.constant;
    let array = Array {
        path: path.to_string(),
        kind: if constant { Kind::Value } else { Kind::Grid },
        shape: volume.shape,
        source: volume.source,
        tuning: None,
    };
    Lookup {
        array,
        constant,
        to_world: placement.to_world(volume.bounds),
        nearest: placement.nearest,
        wrap: placement.wrap,
    }
}
