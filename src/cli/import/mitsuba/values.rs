//! The values that Mitsuba's XML writes as attributes: numbers, vectors, colours, spectra, transforms.

use glam::DVec3;
use serde_json::{Value, json};

use crate::io::xml::Element;

/// Why an element cannot be taken: one sentence.
pub(super) type Parsed<T> = Result<T, String>;

/// A finite number as JSON, whole ones without a fraction.
pub(super) fn number(x: f64) -> Value {
    if x.fract() == 0.0 && x.abs() < 1e15 {
        json!(x as i64)
    } else {
        json!(x)
    }
}

/// A finite number.
pub(super) fn parse_number(text: &str) -> Parsed<f64> {
    let found = text.trim().parse::<f64>().ok().filter(|x| x.is_finite());
    found.ok_or_else(|| format!("{text:?} is no finite number"))
}

/// Numbers between blanks or commas.
fn numbers(text: &str) -> Parsed<Vec<f64>> {
    let parts = text.split(|c: char| c.is_whitespace() || c == ',');
    parts.filter(|part| !part.is_empty()).map(parse_number).collect()
}

/// The value of a mandatory attribute.
pub(super) fn required<'e>(element: &'e Element, name: &str) -> Parsed<&'e str> {
    element
        .attribute(name)
        .ok_or_else(|| format!("<{}> lacks the attribute `{name}`; add it", element.tag))
}

/// The three components of `value` (one for all, or three) or of `x`, `y`, `z`, each `otherwise` where it is absent.
fn components(element: &Element, otherwise: Option<f64>) -> Parsed<[f64; 3]> {
    let axes = ["x", "y", "z"];
    if let Some(value) = element.attribute("value") {
        if axes.iter().any(|axis| element.attribute(axis).is_some()) {
            return Err(format!(
                "<{}> has `value` and components; give one of them",
                element.tag
            ));
        }
        return match numbers(value)?[..] {
            [all] => Ok([all; 3]),
            [x, y, z] => Ok([x, y, z]),
            ref found => Err(format!("{value:?} has {} numbers; expected one or three", found.len())),
        };
    }
    let mut found = [0.0; 3];
    for (component, axis) in found.iter_mut().zip(axes) {
        *component = match (element.attribute(axis), otherwise) {
            (Some(text), _) => parse_number(text)?,
            (None, Some(otherwise)) => otherwise,
            (None, None) => return Err(format!("<{}> lacks `{axis}`; give x, y and z, or `value`", element.tag)),
        };
    }
    Ok(found)
}

/// `<point>` and `<vector>`.
pub(super) fn vector(element: &Element) -> Parsed<Value> {
    Ok(list(&components(element, None)?))
}

fn list(numbers: &[f64]) -> Value {
    Value::Array(numbers.iter().map(|x| number(*x)).collect())
}

/// `<rgb>`.
pub(super) fn rgb(element: &Element) -> Parsed<Value> {
    let text = required(element, "value")?;
    match numbers(text)?[..] {
        [grey] => Ok(json!({"type": "rgb", "value": number(grey)})),
        [r, g, b] => Ok(json!({"type": "rgb", "value": list(&[r, g, b])})),
        ref found => Err(format!(
            "the color {text:?} has {} numbers; expected one or three",
            found.len()
        )),
    }
}

/// `<spectrum>` with a `value`: a number, or pairs `wavelength:value`.
pub(super) fn spectrum(text: &str) -> Parsed<Value> {
    if !text.contains(':') {
        return Ok(json!({"type": "spectrum", "value": number(parse_number(text)?)}));
    }
    let parts = text
        .split(|c: char| c.is_whitespace() || c == ',')
        .filter(|part| !part.is_empty());
    let pairs = parts.map(|part| {
        let (wavelength, value) = part
            .split_once(':')
            .ok_or_else(|| format!("{part:?} is no pair; write wavelength:value"))?;
        Ok(list(&[parse_number(wavelength)?, parse_number(value)?]))
    });
    let pairs: Vec<Value> = pairs.collect::<Parsed<_>>()?;
    Ok(json!({"type": "spectrum", "value": pairs}))
}

/// `<transform>`: its operations in their order, the first of which is applied first.
pub(super) fn operation(element: &Element) -> Parsed<Value> {
    match element.tag.as_str() {
        "translate" => Ok(json!({"translate": list(&components(element, Some(0.0))?)})),
        "scale" => Ok(match components(element, Some(1.0))? {
            [x, y, z] if x == y && y == z => json!({"scale": number(x)}),
            all => json!({"scale": list(&all)}),
        }),
        "rotate" => {
            let axis = components(element, Some(0.0))?;
            if axis == [0.0; 3] {
                return Err("the axis of a <rotate> is zero; give x, y or z".into());
            }
            let angle = parse_number(required(element, "angle")?)?;
            Ok(json!({"rotate": {"axis": list(&axis), "angle": number(angle)}}))
        }
        "lookat" => look_at(element),
        "matrix" => matrix(required(element, "value")?),
        other => Err(format!(
            "<{other}> in a <transform>; expected <translate>, <rotate>, <scale>, <lookat> or <matrix>"
        )),
    }
}

fn three(element: &Element, name: &str) -> Parsed<DVec3> {
    let text = required(element, name)?;
    match numbers(text)?[..] {
        [x, y, z] => Ok(DVec3::new(x, y, z)),
        ref found => Err(format!("`{name}` has {} numbers; expected three", found.len())),
    }
}

/// `<lookat>`. Without `up`, or where it is zero, Mitsuba takes the first of two axes perpendicular to the direction.
fn look_at(element: &Element) -> Parsed<Value> {
    let (origin, target) = (three(element, "origin")?, three(element, "target")?);
    let given = match element.attribute("up") {
        Some(_) => three(element, "up")?,
        None => DVec3::ZERO,
    };
    let up = match given == DVec3::ZERO {
        true => beside((target - origin).normalize_or_zero()),
        false => given,
    };
    let [origin, target, up] = [origin, target, up].map(|v| list(&v.to_array()));
    Ok(json!({"look_at": {"origin": origin, "target": target, "up": up}}))
}

/// A unit vector perpendicular to a unit vector, Mitsuba's (Duff2017).
fn beside(n: DVec3) -> DVec3 {
    let sign = 1f64.copysign(n.z);
    let a = -1.0 / (sign + n.z);
    DVec3::new(1.0 + sign * n.x * n.x * a, sign * n.x * n.y * a, -sign * n.x)
}

/// `<matrix>`: 16 numbers row by row, or the nine of a linear map.
fn matrix(text: &str) -> Parsed<Value> {
    let found = numbers(text)?;
    let rows: Vec<Value> = match found.len() {
        16 => found.chunks(4).map(list).collect(),
        9 => {
            let row = |row: &[f64]| list(&[row[0], row[1], row[2], 0.0]);
            found.chunks(3).map(row).chain([list(&[0.0, 0.0, 0.0, 1.0])]).collect()
        }
        count => return Err(format!("a <matrix> of {count} numbers; expected 16, or 9")),
    };
    Ok(json!({"matrix": rows}))
}
