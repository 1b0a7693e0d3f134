//! The lens of a sensor: its field of view, principal point and distortion.

use super::Distortion;
use super::object::Object;
use super::reader::{Limit, Value};

/// Diagonal of a 35 mm photograph in millimetres, to which `focal_length` refers.
const FILM_DIAGONAL: f64 = 43.266_615_305_567_87;

/// The lens in the units of the file.
#[derive(Debug)]
pub(super) struct Lens {
    opening: Opening,
    center: Center,
}

#[derive(Debug)]
enum Opening {
    /// Parallel rays: the film is two units wide.
    Parallel,
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
    pub(super) fn read(object: &mut Object<'_>) -> Self {
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

    /// The lens of an orthographic sensor: `focal_x` and `focal_y` are pixels per unit of length.
    pub(super) fn parallel(object: &mut Object<'_>) -> Self {
        let focal = [object.get("focal_x"), object.get("focal_y")];
        let opening = match focal.iter().any(Option::is_some) {
            true => opening(None, None, None, focal),
            false => Opening::Parallel,
        };
        let pixels = [object.get("center_x"), object.get("center_y")];
        Self {
            opening,
            center: Center::Pixels(pixels.map(|value| value.and_then(|value| value.number(Limit::Any)))),
        }
    }

    /// Focal lengths and principal point in pixels of an image of the given size.
    pub(super) fn in_pixels(&self, size: [u32; 2]) -> ([f32; 2], [f32; 2]) {
        let [width, height] = size.map(f64::from);
        let focal = match self.opening {
            Opening::Focal(focal) => focal,
            Opening::Parallel => [0.5 * width; 2],
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
    let diagonal = diagonal(focal_length);
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

/// The field of view along the diagonal in degrees, of a lens of 50 mm if none is given.
pub(super) fn diagonal(focal_length: Option<Value<'_>>) -> f64 {
    let millimetres = focal_length.and_then(|value| parse_millimetres(&value)).unwrap_or(50.0);
    2.0 * (0.5 * FILM_DIAGONAL / millimetres).atan().to_degrees()
}

/// A focal length as Mitsuba writes it, `"50mm"`, or a number of millimetres.
fn parse_millimetres(value: &Value<'_>) -> Option<f64> {
    if value.is_number() {
        return value.number(Limit::Between(0.0, 1e6));
    }
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
pub(super) fn distortion(object: &mut Object<'_>) -> Distortion {
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
            // Coefficients of both models are accepted, so that only the missing `model` is reported.
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
