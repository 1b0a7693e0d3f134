//! Sensors: where they stand and look, their lens, their film, and their reference photograph.

use glam::{DAffine3, DMat3, DVec3};

use super::area;
use super::film::{self, Film, Window};
use super::lens::{Lens, distortion};
use super::medium::Media;
use super::object::Object;
use super::reader::{Limit, Value};
use super::transform;
use super::vocabulary::Class;
use super::{Backdrop, Distortion, Geometry, Reference, Sensor, SensorKind, Surface, Target, color, files, sampler};

/// Largest number of pixels: four values each must be addressable by 32-bit indices.
const MAX_PIXELS: u64 = (1 << 31) / 4;

/// The radius of a lens without one: that of Mitsuba.
const LEAST_APERTURE: f32 = f32::EPSILON / 2.0;

/// The sensor called `name`, or those of a batch. `with_images`: whether photographs must exist. Media are added to
/// `media`.
pub(super) fn read(value: &Value<'_>, name: &str, with_images: bool, media: &mut Media) -> Vec<Sensor> {
    let Some(object) = value.plugin(Class::Sensor) else {
        return Vec::new();
    };
    match object.name {
        "canvas" => canvas(object, name, with_images).into_iter().collect(),
        "batch" => batch(object, name, with_images, media),
        "irradiancemeter" => {
            if !value.context.references.is_target(value.node) {
                object.error(
                    "an `irradiancemeter` without a shape",
                    "put it into a `rectangle`, a `disk`, a `sphere`, a `cylinder` or a `cube`",
                );
            }
            Vec::new()
        }
        _ => sensor(object, name, None, with_images, media).into_iter().collect(),
    }
}

/// One sensor. `shared` is its part of a batch's film, which takes the place of its own film.
fn sensor(
    mut object: Object<'_>,
    name: &str,
    shared: Option<Film>,
    with_images: bool,
    media: &mut Media,
) -> Option<Sensor> {
    let image = object.get("image").and_then(|image| reference(&image));
    let held_out = object.boolean("held_out", false);
    let medium = object
        .get("medium")
        .and_then(|medium| media.read(&medium, &format!("{name}.medium")));
    let film = match shared {
        Some(film) => {
            object.nested_all(Class::Film);
            film
        }
        None => film::nested(&mut object),
    };
    let spp = sampler::nested(&mut object);
    let (kind, to_world, lens) = kind(&mut object)?;
    let undisturbed = match kind {
        SensorKind::Perspective => object.get("undisturbed").is_some(),
        _ => false,
    };
    let undisturbed = undisturbed.then(|| transform::to_f32(transform::read_rigid(&mut object, "undisturbed")));
    let [near_clip, far_clip] = match kind {
        SensorKind::Perspective | SensorKind::ThinLens { .. } | SensorKind::Orthographic => clip_range(&mut object),
        _ => [1e-2, 1e4],
    };
    let distortion = match kind {
        SensorKind::Perspective | SensorKind::ThinLens { .. } => distortion(&mut object),
        _ => Distortion::None,
    };
    // In Mitsuba a `thinlens` without `focus_distance` is focused at `far_clip`.
    let kind = match kind {
        SensorKind::ThinLens {
            aperture_radius,
            focus_distance: f32::INFINITY,
        } => SensorKind::ThinLens {
            aperture_radius,
            focus_distance: far_clip,
        },
        other => other,
    };
    let fallback = match lens {
        Some(_) => film::DEFAULT_SIZE,
        None => [1, 1],
    };
    let window = size(&object, &film, image.as_ref(), with_images, fallback)?;
    if lens.is_none() && window.film != [1, 1] {
        let [w, h] = window.film;
        object.error(
            format!("a `{}` with a film of {w}×{h} pixels", object.name),
            "it measures one number: give the film one pixel, or no size",
        );
    }
    let (focal, center) = lens.map_or(([1.0; 2], [0.5; 2]), |lens| lens.in_pixels(window.film));
    let center = [0, 1].map(|a| center[a] - window.offset[a] as f32);
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
        width: window.size[0],
        height: window.size[1],
        cropped: (!window.is_whole()).then_some([window.film, window.size]),
        focal,
        center,
        distortion,
        near_clip,
        far_clip,
        kind,
        filter: film.filter,
        sample_border: film.sample_border,
        color_space: film.color_space,
        pixel_format: film.pixel_format,
        half: film.half,
        batch: None,
        spp,
        reference: image.map(|image| image.reference).filter(|image| image.path.is_file()),
        held_out,
        medium,
        undisturbed,
        motion: Vec::new(),
    })
}

/// What a sensor measures, its transform to the world, and its lens. The lens is None for a `radiancemeter` and for `distant`,
/// whose film is one pixel. Returns None if a parameter is mistaken.
fn kind(object: &mut Object<'_>) -> Option<(SensorKind, DAffine3, Option<Lens>)> {
    match object.name {
        "perspective" => {
            let to_world = transform::read_rigid(object, "to_world");
            Some((SensorKind::Perspective, to_world, Some(Lens::read(object))))
        }
        "thinlens" => {
            let to_world = transform::read_rigid(object, "to_world");
            let aperture = object.require_number("aperture_radius", "the radius of the lens");
            let kind = SensorKind::ThinLens {
                aperture_radius: (aperture.unwrap_or(1.0) as f32).max(LEAST_APERTURE),
                focus_distance: object.number("focus_distance", f32::INFINITY),
            };
            Some((kind, to_world, Some(Lens::read(object))))
        }
        "orthographic" => {
            let to_world = transform::read(object, "to_world");
            Some((SensorKind::Orthographic, to_world, Some(Lens::parallel(object))))
        }
        "radiancemeter" => Some((SensorKind::Radiancemeter, ray(object)?, None)),
        _ => {
            let to_world = match object.get("direction") {
                Some(direction) => along(DVec3::ZERO, unit(&direction)?),
                None => transform::read(object, "to_world"),
            };
            let target = match object.get("target") {
                None => Target::Scene,
                Some(target) if target.is_list() => Target::Point(target.vector::<3>()?.map(|x| x as f32)),
                Some(target) => Target::Area(area::read(&target)?),
            };
            let ray_offset = object
                .get("ray_offset")
                .and_then(|offset| offset.number(Limit::Positive))
                .map(|offset| offset as f32);
            Some((SensorKind::Distant { target, ray_offset }, to_world, None))
        }
    }
}

/// Where the one ray of a `radiancemeter` goes: `origin` and `direction`, or `to_world`.
fn ray(object: &mut Object<'_>) -> Option<DAffine3> {
    let (origin, direction, to_world) = (object.get("origin"), object.get("direction"), object.get("to_world"));
    match (origin, direction, to_world) {
        (None, None, _) => Some(transform::read(object, "to_world")),
        (Some(origin), Some(direction), None) => {
            let (origin, direction) = (origin.vector::<3>(), unit(&direction));
            Some(along(origin?.into(), direction?))
        }
        (_, _, Some(to_world)) => {
            to_world.error(
                "`to_world` beside `origin` or `direction`",
                "give either the one or the others",
            );
            None
        }
        _ => {
            object.error("half a ray", "give both `origin` and `direction`, or `to_world`");
            None
        }
    }
}

fn unit(value: &Value<'_>) -> Option<DVec3> {
    let unit = DVec3::from(value.vector::<3>()?).try_normalize();
    if unit.is_none() {
        let advice = "at least one of its numbers must differ from zero";
        value.error("the vector has no direction", advice);
    }
    unit
}

/// A frame at `origin` whose +Z is the unit vector `direction`.
fn along(origin: DVec3, direction: DVec3) -> DAffine3 {
    let (x, y) = direction.any_orthonormal_pair();
    DAffine3::from_mat3_translation(DMat3::from_cols(x, y, direction), origin)
}

/// The irradiance meters nested in the shape called `name`, which was read as `surface`.
pub(super) fn on_shape(shape: &Value<'_>, name: &str, surface: &Surface, media: &mut Media) -> Vec<Sensor> {
    let Some(mut shape) = shape.plugin(Class::Shape) else {
        return Vec::new();
    };
    let of_shape = shape.nested_all(Class::Sensor).into_iter();
    let read = |(key, value): (&str, Value<'_>)| {
        let mut object = value.plugin(Class::Sensor)?;
        if object.name != "irradiancemeter" {
            let what = format!("a `{}` sensor in a shape", object.name);
            object.error(
                what,
                "it stands at the top level; in a shape stands an `irradiancemeter`",
            );
            return None;
        }
        let name = format!("{name}.{key}");
        let area = area::of_surface(surface);
        if area.is_none() {
            let advice = match surface.geometry {
                Geometry::Sphere { .. } => "only round spheres are measured so far: scale it alike along all axes",
                Geometry::Cylinder { .. } => "only round cylinders are measured so far: scale it alike across its axis",
                _ => "only a `rectangle`, a `disk`, a `sphere`, a `cylinder` or a `cube` is measured so far",
            };
            object.error("an `irradiancemeter` on this shape", advice);
        }
        let medium = object.get("medium");
        let medium = medium.and_then(|medium| media.read(&medium, &format!("{name}.medium")));
        let film = film::nested(&mut object);
        let spp = sampler::nested(&mut object);
        let window = size(&object, &film, None, false, [1, 1])?;
        if window.film != [1, 1] {
            let [w, h] = window.film;
            object.error(
                format!("an `irradiancemeter` with a film of {w}×{h} pixels"),
                "it measures one number: give the film one pixel, or no size",
            );
        }
        object.finish();
        Some(Sensor {
            name,
            width: 1,
            height: 1,
            focal: [1.0; 2],
            center: [0.5; 2],
            near_clip: 1e-2,
            far_clip: 1e4,
            kind: SensorKind::Irradiancemeter(area?),
            filter: film.filter,
            color_space: film.color_space,
            pixel_format: film.pixel_format,
            half: film.half,
            spp,
            medium: medium.or(surface.exterior),
            ..Sensor::default()
        })
    };
    of_shape.filter_map(read).collect()
}

/// The sensors of a `batch`, whose film they share side by side.
fn batch(mut object: Object<'_>, name: &str, with_images: bool, media: &mut Media) -> Vec<Sensor> {
    let film = film::nested(&mut object);
    let spp = sampler::nested(&mut object);
    let nested = object.nested_all(Class::Sensor);
    let Some(window) = size(&object, &film, None, false, film::DEFAULT_SIZE) else {
        return Vec::new();
    };
    let count = nested.len() as u32;
    if count == 0 {
        object.error("a `batch` without sensors", "put one or more into it");
        return Vec::new();
    }
    if !window.is_whole() || window.film[0] % count != 0 {
        object.error(
            format!("a film {} pixels wide for {count} sensors", window.film[0]),
            "give it a width that is a multiple of their number, and no crop window",
        );
        return Vec::new();
    }
    object.finish();
    let shared = Film {
        size: [Some(window.film[0] / count), Some(window.film[1])],
        ..film
    };
    let read = |(key, value): (&str, Value<'_>)| {
        let object = value.plugin(Class::Sensor)?;
        if matches!(object.name, "canvas" | "batch" | "irradiancemeter") {
            let what = format!("a `{}` in a `batch`", object.name);
            object.error(what, "it takes sensors that stand for themselves");
            return None;
        }
        let sensor = sensor(object, &format!("{name}.{key}"), Some(shared), with_images, media)?;
        Some(Sensor {
            batch: Some(name.to_string()),
            spp,
            ..sensor
        })
    };
    nested.into_iter().filter_map(read).collect()
}

/// A `canvas`, whose film shows the plane of splats from edge to edge.
fn canvas(mut object: Object<'_>, name: &str, with_images: bool) -> Option<Sensor> {
    let image = object.get("image").and_then(|image| reference(&image));
    let held_out = object.boolean("held_out", false);
    let film = film::nested(&mut object);
    let window = size(&object, &film, image.as_ref(), with_images, film::DEFAULT_SIZE)?;
    if !window.is_whole() {
        object.error(
            "a `canvas` with a crop window",
            "it shows the picture from edge to edge: give the film a size alone",
        );
    }
    let [width, height] = window.size;
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
        pixel_format: film.pixel_format,
        half: film.half,
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
    color::light(value).map(Backdrop::Color)
}

/// The film's size, or else the photograph's, or else `fallback`, and the part of it that is rendered. The photograph must
/// have the size of that part.
fn size(
    object: &Object<'_>,
    film: &Film,
    image: Option<&Photograph<'_>>,
    required: bool,
    fallback: [u32; 2],
) -> Option<Window> {
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
    let Some(window) = film.window(found.unwrap_or(fallback)) else {
        object.error(
            "the film's crop window leaves the film",
            "offset and size together must not exceed its width and height",
        );
        return None;
    };
    let size = window.size;
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
    Some(window)
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
