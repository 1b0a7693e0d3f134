//! `hdrfilm` and its reconstruction filters.

use super::object::Object;
use super::reader::Limit;
use super::vocabulary::Class;
use super::{ColorSpace, Filter, PixelFormat};

/// Mitsuba's default filter.
const DEFAULT_FILTER: Filter = Filter::Gaussian { stddev: 0.5 };

/// Mitsuba's default size.
pub(super) const DEFAULT_SIZE: [u32; 2] = [768, 576];

/// The largest accepted width of a filter in pixels: a larger one is probably a mistake, and its samples would miss
/// the film.
pub(super) const FILTER_WIDTH: Limit = Limit::Between(0.0, 16.0);

/// The most lobes of a Lanczos filter: with more its table would be too coarse.
pub(super) const MAX_LOBES: u64 = 10;

/// The largest width or height of an image in pixels.
pub(super) const MAX_SIDE: u32 = 65_536;

/// The contents of a film.
#[derive(Debug, Clone, Copy)]
pub(super) struct Film {
    /// Width and height, if given.
    pub(super) size: [Option<u32>; 2],
    pub(super) crop: Crop,
    pub(super) filter: Filter,
    pub(super) sample_border: bool,
    pub(super) color_space: ColorSpace,
    pub(super) pixel_format: PixelFormat,
    pub(super) half: bool,
}

impl Default for Film {
    fn default() -> Self {
        Self {
            size: [None; 2],
            crop: Crop::default(),
            filter: DEFAULT_FILTER,
            sample_border: false,
            color_space: ColorSpace::Linear,
            pixel_format: PixelFormat::Rgb,
            half: false,
        }
    }
}

/// The part of a film that is rendered.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Crop {
    pub(super) offset: [u32; 2],
    /// Width and height, if given; else those of the film, which fit only without an offset.
    pub(super) size: [Option<u32>; 2],
}

/// A film and the part of it that is rendered, in pixels.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Window {
    pub(super) film: [u32; 2],
    pub(super) offset: [u32; 2],
    pub(super) size: [u32; 2],
}

impl Window {
    /// Whether the whole film is rendered.
    pub(super) fn is_whole(&self) -> bool {
        self.film == self.size
    }
}

impl Film {
    /// The film of the given size, or of `fallback`, and the part of it that is rendered; None if that part exceeds it.
    pub(super) fn window(&self, fallback: [u32; 2]) -> Option<Window> {
        let film = [0, 1].map(|a| self.size[a].unwrap_or(fallback[a]));
        let size = [0, 1].map(|a| self.crop.size[a].unwrap_or(film[a]));
        let offset = self.crop.offset;
        let inside = (0..2).all(|a| u64::from(offset[a]) + u64::from(size[a]) <= u64::from(film[a]));
        inside.then_some(Window { film, offset, size })
    }
}

/// The film of `sensor`, or Mitsuba's default.
pub(super) fn nested(sensor: &mut Object<'_>) -> Film {
    let Some(mut object) = sensor.nested(Class::Film) else {
        return Film::default();
    };
    let mut side = |key| Some(object.get(key)?.integer(1, MAX_SIDE.into())? as u32);
    let size = [side("width"), side("height")];
    let crop_size = [side("crop_width"), side("crop_height")];
    let crop = Crop {
        offset: ["crop_offset_x", "crop_offset_y"].map(|key| object.integer(key, 0)),
        size: crop_size,
    };
    let filter = nested_filter(&mut object, DEFAULT_FILTER);
    let sample_border = object.boolean("sample_border", false);
    let color_space = color_space(&mut object, ColorSpace::Linear);
    object.choice_of("file_format", &[("openexr", ()), ("exr", ())], &["rgbe", "pfm"], ());
    let pixel_formats = [
        ("luminance", PixelFormat::Luminance),
        ("luminance_alpha", PixelFormat::LuminanceAlpha),
        ("rgb", PixelFormat::Rgb),
        ("rgba", PixelFormat::Rgba),
    ];
    let pixel_format = object.choice_of("pixel_format", &pixel_formats, &["xyz", "xyza"], PixelFormat::Rgb);
    let half = object.choice("component_format", &[("float16", true), ("float32", false)], false);
    object.finish();
    Film {
        size,
        crop,
        filter,
        sample_border,
        color_space,
        pixel_format,
        half,
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
        "mitchell" => Filter::Mitchell {
            b: filter.number("B", 1.0 / 3.0),
            c: filter.number("C", 1.0 / 3.0),
        },
        "catmullrom" => Filter::Mitchell { b: 0.0, c: 0.5 },
        "lanczos" => Filter::Lanczos {
            lobes: filter.integer("lobes", 3),
        },
        _ => Filter::Gaussian {
            stddev: filter.number("stddev", 0.5),
        },
    };
    filter.finish();
    read
}
