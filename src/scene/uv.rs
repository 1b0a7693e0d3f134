//! `to_uv`: a 3×3 or 4×4 matrix or a list of operations in the plane, the first of which is applied first.

use glam::{Affine2, DAffine2, DVec2};

use super::diagnostics::suggest;
use super::object::Object;
use super::reader::{Limit, Value};

/// The parameter `key` of `object`; the identity where it is absent or mistaken.
pub(super) fn read(object: &mut Object<'_>, key: &'static str) -> Affine2 {
    let given = object.get(key).and_then(|value| transform(&value));
    given.unwrap_or(Affine2::IDENTITY)
}

fn transform(value: &Value<'_>) -> Option<Affine2> {
    let product = if value.is_object() {
        operation(value)?
    } else {
        let items = value.list()?;
        if items.first().is_some_and(Value::is_list) {
            matrix(value)?
        } else {
            let operations: Vec<_> = items.iter().map(operation).collect();
            let mut product = DAffine2::IDENTITY;
            for step in operations {
                product = step? * product;
            }
            product
        }
    };
    let stored = Affine2::from_cols_array(&product.to_cols_array().map(|x| x as f32));
    if !stored.is_finite() {
        value.error("the transform is out of range", "its entries must stay under 3.4e38");
        return None;
    }
    Some(stored)
}

const OPERATIONS: &[&str] = &["translate", "scale", "rotate", "matrix"];

fn operation(value: &Value<'_>) -> Option<DAffine2> {
    let entries = value.entries()?;
    let [(name, argument)] = entries.as_slice() else {
        value.error(
            format!("an operation has one name, this one has {}", entries.len()),
            format!("write `{{\"scale\": [x, y]}}` ({})", suggest("", OPERATIONS)),
        );
        return None;
    };
    match *name {
        "translate" => Some(DAffine2::from_translation(plane_vector(argument)?)),
        "scale" if argument.is_number() => Some(DAffine2::from_scale(DVec2::splat(argument.number(Limit::Any)?))),
        "scale" => Some(DAffine2::from_scale(plane_vector(argument)?)),
        "rotate" => rotate(argument),
        "matrix" => matrix(argument),
        other => {
            value.error(format!("unknown operation `{other}`"), suggest(other, OPERATIONS));
            None
        }
    }
}

/// `[x, y]`, or `[x, y, z]` as in a transform of space; z is ignored.
fn plane_vector(value: &Value<'_>) -> Option<DVec2> {
    if value.list()?.len() == 3 {
        let [x, y, _] = value.vector()?;
        return Some(DVec2::new(x, y));
    }
    value.vector::<2>().map(DVec2::from)
}

/// Counter-clockwise in the plane; the axis, if given, is +z, or −z for the opposite sense.
fn rotate(value: &Value<'_>) -> Option<DAffine2> {
    let mut object = value.block("rotate in the plane")?;
    let angle = object.require_number("angle", "the angle in degrees");
    let sign = match object.get("axis") {
        None => Some(1.0),
        Some(axis) => match axis.vector::<3>() {
            Some([x, y, z]) if x == 0.0 && y == 0.0 && z != 0.0 => Some(z.signum()),
            Some(_) => {
                axis.error(
                    "this axis leaves the plane of the texture",
                    "leave it out, or give [0, 0, 1]",
                );
                None
            }
            None => None,
        },
    };
    object.finish();
    Some(DAffine2::from_angle(sign? * angle?.to_radians()))
}

/// Three rows of three numbers, the last of which is 0 0 1; or a 4×4 matrix, whose third row and column are ignored.
fn matrix(value: &Value<'_>) -> Option<DAffine2> {
    let (rows, kept) = if value.list()?.len() == 4 {
        let rows = value.list_of::<4>()?.map(|row| row.vector::<4>());
        let rows: Option<Vec<_>> = rows.into_iter().map(|row| row.map(|row| row.to_vec())).collect();
        (rows?, [0, 1, 3])
    } else {
        let rows = value.list_of::<3>()?.map(|row| row.vector::<3>());
        let rows: Option<Vec<_>> = rows.into_iter().map(|row| row.map(|row| row.to_vec())).collect();
        (rows?, [0, 1, 2])
    };
    let [a, b, last] = kept.map(|i| kept.map(|j| rows[i][j]));
    if last != [0.0, 0.0, 1.0] {
        value.error("the matrix is not affine", "its last row must be [0, 0, 1]");
        return None;
    }
    Some(DAffine2::from_cols_array(&[a[0], b[0], a[1], b[1], a[2], b[2]]))
}
