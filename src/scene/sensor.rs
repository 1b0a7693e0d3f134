//! `perspective`: a pinhole camera with lens distortion, its film, and its reference photograph.

use super::film::{self, Film};
use super::medium::Media;
use super::object::Object;
use super::reader::{Limit, Value};
use super::transform;
use super::vocabulary::Class;
use super::{Backdrop, Distortion, Reference, Sensor, color, files, sampler};

/// Diagonal of a 35 mm photograph in millimetres, to which `focal_length` refers.
const FILM_DIAGONAL: f64 = 43.266_615_305_567_87;

/// Largest number of pixels: four values each must be addressable by 32-bit indices.
const MAX_PIXELS: u64 = (1 << 31) / 4;

/// The sensor called `name`. `with_images`: whether its photograph must exist. Its medium is added to `media`.
pub(super) fn read(value: &Value<'_>, name: &str, with_images: bool, media: &mut Media) -> Option<Sensor> {
    let mut object = value.plugin(Class::Sensor)?;
    if object.name == "canvas" {
        return canvas(object, name, with_images);
    }
    let to_world = transform::read_rigid(&mut object, "to_world");
    let lens = Lens::read(&mut object);
    let distortion = distortion(&mut object);
    let [near_clip, far_clip] = clip_range(&mut object);
    let image = object.get("image").and_then(|image| reference(&image));
    let held_out = object.boolean("held_out", false);
    let medium = object
        .get("medium")
        .and_then(|medium| media.read(&medium, &format!("{name}.medium")));
    let film = film::nested(&mut object);
    let spp = sampler::nested(&mut object);
    let [width, height] = size(&object, &film, image.as_ref(), with_images)?;
    let (focal, center) = lens.in_pixels([width, height]);
    if focal.iter().chain(&center).any(|x| !x.is_finite()) {
        object.error(
            "the lens is out of range",
            "choose a wider field of view or a smaller offset",
        );
    }
    object.finish();
    Some(Sensor {
        name: name.to_string(),
        to_world: transform::to_f32(to_world),
        width,
        height,
        focal,
        center,
        distortion,
        near_clip,
        far_clip,
        filter: film.filter,
        color_space: film.color_space,
        spp,
        reference: image.map(|image| image.reference).filter(|image| image.path.is_file()),
        held_out,
        medium,
    })
}

/// The plane of splats, which the film shows from edge to edge.
fn canvas(mut object: Object<'_>, name: &str, with_images: bool) -> Option<Sensor> {
    let image = object.get("image").and_then(|image| reference(&image));
    let held_out = object.boolean("held_out", false);
    let film = film::nested(&mut object);
    let [width, height] = size(&object, &film, image.as_ref(), with_images)?;
    object.finish();
    Some(Sensor {
        name: name.to_string(),
        width,
        height,
        focal: [1.0; 2],
        center: [0.5 * width as f32, 0.5 * height as f32],
        near_clip: 1e-2,
        far_clip: 1e4,
        filter: film.filter,
        color_space: film.color_space,
        spp: 1,
        reference: image.map(|image| image.reference).filter(|image| image.path.is_file()),
        held_out,
        ..Sensor::default()
    })
}

/// A photograph and the value that names it.
#[derive(Debug)]
struct Photograph<'a> {
    value: Value<'a>,
    reference: Reference,
}

/// The parameter `image`: a file name, or an object.
fn reference<'a>(value: &Value<'a>) -> Option<Photograph<'a>> {
    let reference = if value.as_str().is_some() {
        Reference {
            path: value.file()?,
            downscale: 1,
            backdrop: Backdrop::Opaque,
        }
    } else {
        let mut object = value.block("image")?;
        let path = object.require("filename", "the image file").and_then(|v| v.file());
        let downscale = object.integer("downscale", 1);
        let backdrop = object.get("background").and_then(|v| backdrop(&v)).unwrap_or_default();
        object.finish();
        Reference {
            path: path?,
            downscale,
            backdrop,
        }
    };
    Some(Photograph {
        value: value.clone(),
        reference,
    })
}

/// Background of photographs' transparent parts: a word or a colour.
pub(super) fn backdrop(value: &Value<'_>) -> Option<Backdrop> {
    if value.as_str().is_some() {
        let words = [
            ("none", Backdrop::Opaque),
            ("white", Backdrop::Color([1.0; 3])),
            ("black", Backdrop::Color([0.0; 3])),
            ("random", Backdrop::Random),
        ];
        return value.choice(&words, &[]);
    }
    color::read(value).map(Backdrop::Color)
}

/// Width and height: the film's, else the photograph's, else Mitsuba's default. The photograph must have that size.
fn size(object: &Object<'_>, film: &Film, image: Option<&Photograph<'_>>, required: bool) -> Option<[u32; 2]> {
    let mut found = None;
    if let Some(image) = image {
        match files::image_size(&image.reference.path, image.reference.downscale) {
            Ok(size) => found = Some(size),
            Err(error) if required || image.reference.path.exists() => {
                image.value.error("this photograph cannot be used", error);
            }
            Err(error) => image.value.context.warn(error),
        }
    }
    let fallback = found.unwrap_or(film::DEFAULT_SIZE);
    let size = [film.size[0].unwrap_or(fallback[0]), film.size[1].unwrap_or(fallback[1])];
    if let (Some([w, h]), Some(image)) = (found, image)
        && [w, h] != size
    {
        let what = format!("the photograph has {w}×{h} pixels, the film {}×{}", size[0], size[1]);
        image.value.error(what, "they must agree after `downscale`");
    }
    if u64::from(size[0]) * u64::from(size[1]) > MAX_PIXELS {
        object.error(
            format!("an image of {}×{} pixels", size[0], size[1]),
            format!("at most {MAX_PIXELS} are possible"),
        );
        return None;
    }
    Some(size)
}

/// `near_clip` and `far_clip`.
pub(super) fn clip_range(object: &mut Object<'_>) -> [f32; 2] {
    let near = object.number("near_clip", 1e-2);
    let far = object.number("far_clip", 1e4);
    if near >= far {
        object.error(
            format!("`near_clip` is {near} and `far_clip` {far}"),
            "near must be less than far",
        );
    }
    [near, far]
}

/// The lens in the units of the file.
#[derive(Debug)]
struct Lens {
    opening: Opening,
    center: Center,
}

#[derive(Debug)]
enum Opening {
    /// Degrees along an axis.
    FieldOfView(f64, Axis),
    /// In pixels.
    Focal([f64; 2]),
}

#[derive(Debug, Clone, Copy)]
enum Axis {
    X,
    Y,
    Diagonal,
    Smaller,
    Larger,
}

#[derive(Debug)]
enum Center {
    /// Mitsuba's principal point offset as a fraction of the film's size: the principal point is at 0.5 minus it.
    Offset([f64; 2]),
    /// In pixels from the top left corner, if given.
    Pixels([Option<f64>; 2]),
}

impl Lens {
    fn read(object: &mut Object<'_>) -> Self {
        let fov = object.get("fov");
        let fov_axis = object.get("fov_axis");
        let focal_length = object.get("focal_length");
        let focal = [object.get("focal_x"), object.get("focal_y")];
        let ways = [fov.is_some(), focal_length.is_some(), focal.iter().any(Option::is_some)];
        if ways.iter().filter(|given| **given).count() > 1 {
            object.error(
                "the lens is given twice",
                "give only one of `fov`, `focal_length`, and `focal_x` with `focal_y`",
            );
        }
        if let Some(axis) = fov_axis.as_ref().filter(|_| fov.is_none()) {
            axis.error(
                "`fov_axis` without `fov`",
                "it says along which axis `fov` is measured; remove it or give `fov`",
            );
        }
        Self {
            opening: opening(fov, fov_axis, focal_length, focal),
            center: Center::read(object),
        }
    }

    /// Focal lengths and principal point in pixels of an image of the given size.
    fn in_pixels(&self, size: [u32; 2]) -> ([f32; 2], [f32; 2]) {
        let [width, height] = size.map(f64::from);
        let focal = match self.opening {
            Opening::Focal(focal) => focal,
            Opening::FieldOfView(degrees, axis) => {
                let extent = match axis {
                    Axis::X => width,
                    Axis::Y => height,
                    Axis::Diagonal => width.hypot(height),
                    Axis::Smaller => width.min(height),
                    Axis::Larger => width.max(height),
                };
                [0.5 * extent / (0.5 * degrees.to_radians()).tan(); 2]
            }
        };
        let center = match self.center {
            Center::Offset([x, y]) => [width * (0.5 - x), height * (0.5 - y)],
            Center::Pixels([x, y]) => [x.unwrap_or(0.5 * width), y.unwrap_or(0.5 * height)],
        };
        (focal.map(|x| x as f32), center.map(|x| x as f32))
    }
}

fn opening(
    fov: Option<Value<'_>>,
    axis: Option<Value<'_>>,
    focal_length: Option<Value<'_>>,
    focal: [Option<Value<'_>>; 2],
) -> Opening {
    let axes = [
        ("x", Axis::X),
        ("y", Axis::Y),
        ("diagonal", Axis::Diagonal),
        ("smaller", Axis::Smaller),
        ("larger", Axis::Larger),
    ];
    let axis = axis.and_then(|value| value.choice(&axes, &[])).unwrap_or(Axis::X);
    let millimetres = focal_length.and_then(|value| parse_millimetres(&value)).unwrap_or(50.0);
    let diagonal = 2.0 * (0.5 * FILM_DIAGONAL / millimetres).atan().to_degrees();
    let [x, y] = focal.map(|value| value.and_then(|value| value.number(Limit::Positive)));
    match (x.or(y), fov) {
        (Some(either), _) => Opening::Focal([x.unwrap_or(either), y.unwrap_or(either)]),
        (None, Some(fov)) => {
            let degrees = fov.number(Limit::Between(0.0, 180.0)).unwrap_or(45.0);
            Opening::FieldOfView(degrees, axis)
        }
        (None, None) => Opening::FieldOfView(diagonal, Axis::Diagonal),
    }
}

/// Mitsuba writes `"50mm"`.
fn parse_millimetres(value: &Value<'_>) -> Option<f64> {
    let text = value.string()?;
    let number = text.trim().trim_end_matches("mm").trim_end().parse::<f64>().ok();
    let millimetres = number.filter(|x| *x > 0.0 && *x < 1e6);
    if millimetres.is_none() {
        value.error(
            format!("the focal length {text:?} cannot be read"),
            "write millimetres, such as \"50mm\"",
        );
    }
    millimetres
}

impl Center {
    fn read(object: &mut Object<'_>) -> Self {
        let offsets = [
            object.get("principal_point_offset_x"),
            object.get("principal_point_offset_y"),
        ];
        let pixels = [object.get("center_x"), object.get("center_y")];
        if offsets.iter().any(Option::is_some) && pixels.iter().any(Option::is_some) {
            let advice = "give only one of `principal_point_offset_x`, `_y`, and `center_x`, `center_y`";
            object.error("the principal point is given twice", advice);
        }
        let number = |value: Option<Value<'_>>| value.and_then(|value| value.number(Limit::Any));
        if pixels.iter().any(Option::is_some) {
            Center::Pixels(pixels.map(number))
        } else {
            Center::Offset(offsets.map(|value| number(value).unwrap_or(0.0)))
        }
    }
}

/// The parameter `distortion`.
fn distortion(object: &mut Object<'_>) -> Distortion {
    let Some(mut lens) = object.get("distortion").and_then(|value| value.block("distortion")) else {
        return Distortion::None;
    };
    let models = [("opencv", false), ("fisheye", true)];
    let model = lens
        .require("model", "`opencv` or `fisheye`")
        .and_then(|value| value.choice(&models, &[]));
    let mut number = |key| lens.number(key, 0.0);
    let k = [number("k1"), number("k2"), number("k3")];
    let read = match model {
        None => {
            // All names are valid for one of the two models, so that only the missing one is reported.
            for key in ["k4", "p1", "p2"] {
                number(key);
            }
            Distortion::None
        }
        Some(true) => Distortion::Fisheye {
            k: [k[0], k[1], k[2], number("k4")],
        },
        Some(false) => Distortion::Brown {
            k,
            p: [number("p1"), number("p2")],
        },
    };
    lens.finish();
    read
}
