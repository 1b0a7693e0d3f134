//! `hdrfilm` and its reconstruction filters.

use super::object::Object;
use super::reader::Limit;
use super::vocabulary::Class;
use super::{ColorSpace, Filter};

/// Mitsuba's default filter.
const DEFAULT_FILTER: Filter = Filter::Gaussian { stddev: 0.5 };

/// Mitsuba's default size.
pub(super) const DEFAULT_SIZE: [u32; 2] = [768, 576];

/// The largest accepted width of a filter in pixels: a larger one is probably a mistake, and its samples would miss
/// the film.
pub(super) const FILTER_WIDTH: Limit = Limit::Between(0.0, 16.0);

/// The largest width or height of an image in pixels.
pub(super) const MAX_SIDE: u32 = 65_536;

/// The contents of a film.
#[derive(Debug, Clone, Copy)]
pub(super) struct Film {
    /// Width and height, if given.
    pub(super) size: [Option<u32>; 2],
    pub(super) filter: Filter,
    pub(super) color_space: ColorSpace,
}

impl Default for Film {
    fn default() -> Self {
        Self {
            size: [None; 2],
            filter: DEFAULT_FILTER,
            color_space: ColorSpace::Linear,
        }
    }
}

/// The film of `sensor`, or Mitsuba's default.
pub(super) fn nested(sensor: &mut Object<'_>) -> Film {
    let Some(mut object) = sensor.nested(Class::Film) else {
        return Film::default();
    };
    let mut side = |key| Some(object.get(key)?.integer(1, MAX_SIDE.into())? as u32);
    let size = [side("width"), side("height")];
    let filter = nested_filter(&mut object, DEFAULT_FILTER);
    let color_space = color_space(&mut object, ColorSpace::Linear);
    object.only("crop_offset_x", 0);
    object.only("crop_offset_y", 0);
    object.only("crop_width", size[0].unwrap_or(DEFAULT_SIZE[0]));
    object.only("crop_height", size[1].unwrap_or(DEFAULT_SIZE[1]));
    // Mitsuba's films sample beyond their border for filters that overlap it; a box filter does not overlap.
    if filter == Filter::Box {
        object.boolean("sample_border", false);
    } else {
        object.only("sample_border", false);
    }
    object.only("file_format", "openexr");
    object.only("pixel_format", "rgb");
    object.only("component_format", "float32");
    object.finish();
    Film {
        size,
        filter,
        color_space,
    }
}

/// The parameter `color_space`.
pub(super) fn color_space(object: &mut Object<'_>, default: ColorSpace) -> ColorSpace {
    object.choice(
        "color_space",
        &[("linear", ColorSpace::Linear), ("srgb", ColorSpace::Srgb)],
        default,
    )
}

/// The reconstruction filter nested in `object`, or `default`.
pub(super) fn nested_filter(object: &mut Object<'_>, default: Filter) -> Filter {
    let Some(mut filter) = object.nested(Class::Filter) else {
        return default;
    };
    let read = match filter.name {
        "box" => Filter::Box,
        "tent" => Filter::Tent {
            radius: filter.number("radius", 1.0),
        },
        _ => Filter::Gaussian {
            stddev: filter.number("stddev", 0.5),
        },
    };
    filter.finish();
    read
}
