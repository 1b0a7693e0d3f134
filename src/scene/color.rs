//! Colours: a number, `[r, g, b]`, or an object such as `rgb`, `uniform` or `spectrum`.

use super::files;
use super::object::Object;
use super::quantity::Quantity;
use super::reader::{Limit, Value};
use super::spectrum::{self, Sample, Seen};
use super::vocabulary::Class;

/// A colour.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Color {
    /// One number for all channels.
    Grey(f32),
    Rgb([f32; 3]),
}

impl Color {
    /// Red, green and blue.
    pub(super) fn rgb(self) -> [f32; 3] {
        match self {
            Self::Grey(x) => [x; 3],
            Self::Rgb(rgb) => rgb,
        }
    }

    /// The colour as a number: the mean of its channels, as in Mitsuba.
    pub(super) fn mean(self) -> f32 {
        match self {
            Self::Grey(x) => x,
            Self::Rgb(rgb) => rgb.iter().sum::<f32>() / 3.0,
        }
    }
}

/// What a colour measures: decides how a spectrum is converted to red, green and blue, and whether it is clamped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sense {
    /// Light: the spectrum is used as it is.
    Light,
    /// A factor on light, seen under D65 and clamped to [0, 1].
    Share,
    /// A factor on light, seen under D65, without an upper limit.
    Factor,
}

impl Sense {
    /// What values of this quantity measure.
    pub(super) fn of(quantity: Quantity) -> Self {
        match (quantity, quantity.limit()) {
            (Quantity::Light | Quantity::Environment, _) => Self::Light,
            (_, Limit::Within(0.0, _)) => Self::Share,
            _ => Self::Factor,
        }
    }
}

/// The colour of light, whose channels may be negative.
pub(super) fn light(value: &Value<'_>) -> Option<[f32; 3]> {
    read(value, Limit::Any, Sense::Light).map(Color::rgb)
}

/// A colour whose channels obey `limit`.
pub(super) fn read(value: &Value<'_>, limit: Limit, sense: Sense) -> Option<Color> {
    if value.is_number() {
        return Some(Color::Grey(value.number(limit)? as f32));
    }
    if value.is_list() {
        return triple(value, limit).map(Color::Rgb);
    }
    let mut object = value.plugin(Class::Spectrum)?;
    let color = match object.name {
        "uniform" => uniform(&mut object, limit),
        "rawconstant" => rawconstant(&mut object, limit),
        "srgb" => srgb(&mut object),
        "d65" => d65(&mut object),
        "spectrum" => spectrum(&mut object, limit, sense),
        _ => rgb(&mut object, limit).map(Color::Rgb),
    };
    let value = object.value.clone();
    object.finish();
    let color = color?;
    let fault = color.rgb().iter().find_map(|x| limit.violated_by(f64::from(*x)));
    if let Some(reason) = fault {
        value.error(format!("the colour {:?} is not possible", color.rgb()), reason);
        return None;
    }
    Some(color)
}

/// A number for all three channels, or a list of three.
fn triple(value: &Value<'_>, limit: Limit) -> Option<[f32; 3]> {
    if value.is_number() {
        return Some([value.number(limit)? as f32; 3]);
    }
    let [r, g, b] = value.list_of::<3>()?.map(|item| item.number(limit));
    Some([r?, g?, b?].map(|x| x as f32))
}

fn rgb(object: &mut Object<'_>, limit: Limit) -> Option<[f32; 3]> {
    let value = object.require("value", "a number or [r, g, b]")?;
    if value.is_object() {
        value.error("a colour stands inside a colour", "give a number or [r, g, b]");
        return None;
    }
    triple(&value, limit)
}

/// A number, a list of three, or an `rgb`.
fn nested(value: &Value<'_>, limit: Limit) -> Option<[f32; 3]> {
    if !value.is_object() {
        return triple(value, limit);
    }
    let mut object = value.plugin(Class::Spectrum)?;
    if object.name != "rgb" {
        object.error(
            format!("a `{}` stands inside a colour", object.name),
            "give [r, g, b], or an `rgb`",
        );
        return None;
    }
    let color = rgb(&mut object, limit);
    object.finish();
    color
}

fn uniform(object: &mut Object<'_>, limit: Limit) -> Option<Color> {
    // Accepted and ignored: wavelengths play no part in red, green and blue.
    object.number("wavelength_min", 360.0);
    object.number("wavelength_max", 830.0);
    let value = object.require("value", "a number")?.number(limit)?;
    Some(Color::Grey(value as f32))
}

fn rawconstant(object: &mut Object<'_>, limit: Limit) -> Option<Color> {
    let value = object.require("value", "a number or [r, g, b]")?;
    if value.is_number() {
        return Some(Color::Grey(value.number(limit)? as f32));
    }
    triple(&value, limit).map(Color::Rgb)
}

fn srgb(object: &mut Object<'_>) -> Option<Color> {
    let unbounded = object.boolean("unbounded", false);
    let limit = if unbounded { Limit::Any } else { Limit::Within(0.0, 1.0) };
    let color = object.require("color", "[r, g, b], or an `rgb`")?;
    nested(&color, limit).map(Color::Rgb)
}

/// The illuminant D65, which is white; or the light that a reflectance of `color` returns of it.
fn d65(object: &mut Object<'_>) -> Option<Color> {
    let scale = object.number("scale", 1.0);
    let Some(color) = object.get("color") else {
        return Some(Color::Grey(scale));
    };
    let color = nested(&color, Limit::NonNegative)?;
    Some(Color::Rgb(color.map(|x| (x * scale).min(f32::MAX))))
}

/// A spectrum: one value, or pairs of a wavelength and a value, here or in a file.
fn spectrum(object: &mut Object<'_>, limit: Limit, sense: Sense) -> Option<Color> {
    let samples = match (object.get("value"), object.get("filename")) {
        (Some(value), None) if value.is_number() => {
            let value = value.number(limit)? as f32;
            return Some(match sense {
                Sense::Light => Color::Rgb(spectrum::equal_energy().map(|x| x as f32 * value)),
                Sense::Share | Sense::Factor => Color::Grey(value),
            });
        }
        (Some(value), None) => pairs(&value)?,
        (None, Some(file)) => file_pairs(&file)?,
        (None, None) => {
            object.error("the `spectrum` has no values", "give `value` or `filename`");
            return None;
        }
        (Some(_), Some(file)) => {
            file.error("`value` and `filename` exclude each other", "remove one of the two");
            return None;
        }
    };
    let seen = match sense {
        Sense::Light => Seen::Directly,
        Sense::Share | Sense::Factor => Seen::UnderD65,
    };
    let most = if sense == Sense::Share {
        1.0
    } else {
        f64::from(f32::MAX)
    };
    let found = spectrum::to_rgb(&samples, seen);
    let possible = found.map(|x| x.clamp(0.0, most));
    if possible != found {
        object.value.context.warn_once(&format!(
            "the spectrum at {} has the red, green and blue {:?}, which is clamped to {:?}",
            object.value.path,
            found.map(|x| x as f32),
            possible.map(|x| x as f32)
        ));
    }
    Some(Color::Rgb(possible.map(|x| x as f32)))
}

/// A list of pairs.
fn pairs(value: &Value<'_>) -> Option<Vec<Sample>> {
    if !value.is_list() {
        let found = format!("found {}", value.describe());
        value.error(found, "expected a number, or a list of [wavelength, value]");
        return None;
    }
    let items = value.list()?;
    let pair = |item: &Value<'_>| {
        let [wavelength, height] = item.list_of::<2>()?;
        let pair = (wavelength.number(Limit::Positive), height.number(Limit::NonNegative));
        Some([pair.0?, pair.1?])
    };
    let samples: Vec<_> = items.iter().map(pair).collect();
    let samples = samples.into_iter().collect::<Option<Vec<Sample>>>()?;
    checked(samples, |index| index.map_or(value, |i| &items[i]))
}

fn file_pairs(file: &Value<'_>) -> Option<Vec<Sample>> {
    match files::spectrum(&file.file()?) {
        Ok(samples) => checked(samples, |_| file),
        Err(error) => {
            file.error("this spectrum cannot be used", error);
            None
        }
    }
}

/// `samples`, if they are two or more of increasing wavelength. `place` gives the value at which a mistake is reported: that
/// of the sample with an index, or that of the whole spectrum.
fn checked<'v, 'a: 'v>(samples: Vec<Sample>, place: impl Fn(Option<usize>) -> &'v Value<'a>) -> Option<Vec<Sample>> {
    if samples.len() < 2 {
        let what = format!("the number of pairs in the spectrum is {}", samples.len());
        place(None).error(what, "give two or more, or one number for all wavelengths");
        return None;
    }
    let disorder = samples.windows(2).position(|pair| pair[1][0] <= pair[0][0]);
    if let Some(i) = disorder {
        let (before, after) = (samples[i][0], samples[i + 1][0]);
        let what = format!("the wavelength {after} follows {before}");
        place(Some(i + 1)).error(what, "wavelengths must increase");
        return None;
    }
    Some(samples)
}
