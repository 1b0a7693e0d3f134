//! `to_world`: a 4×4 matrix or a list of operations, the first of which is applied first.

use glam::{Affine3A, DAffine3, DMat3, DMat4, DVec3};

use super::object::Object;
use super::reader::{Limit, Value};

/// The parameter `key` of `object`; the identity where it is absent or mistaken.
pub(super) fn read(object: &mut Object<'_>, key: &'static str) -> DAffine3 {
    object
        .get(key)
        .and_then(|value| transform(&value))
        .unwrap_or(DAffine3::IDENTITY)
}

/// A rotation and translation, for cameras: Mitsuba rejects scale there, too.
pub(super) fn read_rigid(object: &mut Object<'_>, key: &'static str) -> DAffine3 {
    read_checked(
        object,
        key,
        |m| is_orthonormal(m.matrix3),
        "scale and shear make no sense for it",
    )
}

/// A rotation.
pub(super) fn read_rotation(object: &mut Object<'_>, key: &'static str) -> DAffine3 {
    let check = |m: &DAffine3| is_orthonormal(m.matrix3) && m.translation == DVec3::ZERO;
    read_checked(
        object,
        key,
        check,
        "it lies infinitely far away, so only rotations make sense",
    )
}

/// The image of +Z, along which parallel light travels; warns if it is scaled.
pub(super) fn read_direction(object: &mut Object<'_>, key: &'static str) -> DVec3 {
    let z = read(object, key).matrix3.z_axis;
    if (z.length() - 1.0).abs() >= 1e-3 {
        object.value.context.warn(format!(
            "`{}.{key}` scales the direction of parallel light, of which the direction alone is taken; Mitsuba's light grows with it, by \
             a factor that depends on the material",
            object.value.path
        ));
    }
    z
}

/// A similarity: rotation, translation, and uniform scale.
pub(super) fn read_similarity(object: &mut Object<'_>, key: &'static str) -> DAffine3 {
    let check = |m: &DAffine3| is_orthonormal(m.matrix3 * (1.0 / m.matrix3.x_axis.length()));
    read_checked(
        object,
        key,
        check,
        "cameras stay cameras only if all axes are scaled alike",
    )
}

fn read_checked(
    object: &mut Object<'_>,
    key: &'static str,
    check: impl FnOnce(&DAffine3) -> bool,
    reason: &str,
) -> DAffine3 {
    let Some((value, matrix)) = object.get(key).and_then(|value| transform(&value).map(|m| (value, m))) else {
        return DAffine3::IDENTITY;
    };
    if !check(&matrix) {
        value.error(format!("this transform does not suit a `{}`", object.name), reason);
    }
    matrix
}

/// Converts to f32, the precision in which scenes are stored.
pub(super) fn to_f32(matrix: DAffine3) -> Affine3A {
    let columns = matrix.to_cols_array().map(|x| x as f32);
    Affine3A::from_cols_array(&columns)
}

fn is_orthonormal(m: DMat3) -> bool {
    let gram = m.transpose() * m;
    (gram - DMat3::IDENTITY).to_cols_array().iter().all(|x| x.abs() < 1e-3)
}

/// A transform: a matrix, an operation, or a list of operations.
fn transform(value: &Value<'_>) -> Option<DAffine3> {
    if value.is_object() {
        return checked(value, operation(value)?);
    }
    let items = value.list()?;
    if items.first().is_some_and(Value::is_list) {
        return checked(value, matrix(value)?);
    }
    let mut product = DAffine3::IDENTITY;
    let operations: Vec<_> = items.iter().map(operation).collect();
    for step in operations {
        product = step? * product;
    }
    checked(value, product)
}

/// Rejects transforms that are singular or not representable.
fn checked(value: &Value<'_>, m: DAffine3) -> Option<DAffine3> {
    let lengths = m.matrix3.x_axis.length() * m.matrix3.y_axis.length() * m.matrix3.z_axis.length();
    let determinant = m.matrix3.determinant();
    if !to_f32(m).is_finite() {
        value.error("the transform is out of range", "its entries must stay under 3.4e38");
        return None;
    }
    let invertible = to_f32(m).inverse().is_finite() && determinant.abs() > 1e-9 * lengths;
    if !invertible {
        value.error(
            "the matrix is singular",
            "it must be invertible, so no scale may be zero and no axes coincide",
        );
        return None;
    }
    Some(m)
}

const OPERATIONS: &[&str] = &["translate", "scale", "rotate", "look_at", "matrix"];

/// One operation of a list.
fn operation(value: &Value<'_>) -> Option<DAffine3> {
    let entries = value.entries()?;
    let [(name, argument)] = entries.as_slice() else {
        value.error(
            format!("an operation has one name, this one has {}", entries.len()),
            format!(
                "write `{{\"translate\": [x, y, z]}}` ({})",
                super::diagnostics::suggest("", OPERATIONS)
            ),
        );
        return None;
    };
    match *name {
        "translate" => Some(DAffine3::from_translation(argument.vector()?.into())),
        "scale" if argument.is_number() => Some(DAffine3::from_scale(DVec3::splat(argument.number(Limit::Any)?))),
        "scale" => Some(DAffine3::from_scale(argument.vector()?.into())),
        "rotate" => rotate(argument),
        "look_at" => look_at(argument),
        "matrix" => matrix(argument),
        other => {
            value.error(
                format!("unknown operation `{other}`"),
                super::diagnostics::suggest(other, OPERATIONS),
            );
            None
        }
    }
}

/// Counter-clockwise about an axis through the origin, seen with the axis pointing at the viewer.
fn rotate(value: &Value<'_>) -> Option<DAffine3> {
    let mut object = value.block("rotate")?;
    let axis = object
        .require("axis", "the axis, such as [0, 1, 0]")
        .and_then(|v| Some((v.vector::<3>()?, v)));
    let angle = object.require_number("angle", "the angle in degrees");
    object.finish();
    let (axis, axis_value) = axis?;
    let Some(axis) = DVec3::from(axis).try_normalize() else {
        axis_value.error(
            "the axis has no direction",
            "at least one of its numbers must differ from zero",
        );
        return None;
    };
    Some(DAffine3::from_axis_angle(axis, angle?.to_radians()))
}

/// Mitsuba's camera frame: +X left, +Y up, +Z towards the target.
fn look_at(value: &Value<'_>) -> Option<DAffine3> {
    let mut object = value.block("look_at")?;
    let mut point = |key, expected| {
        object
            .require(key, expected)
            .and_then(|v| v.vector::<3>())
            .map(DVec3::from)
    };
    let (origin, target, up) = (
        point("origin", "where the camera stands, [x, y, z]"),
        point("target", "a point that it looks at, [x, y, z]"),
        point("up", "the direction that is up in the image, such as [0, 1, 0]"),
    );
    object.finish();
    let (origin, target, up) = (origin?, target?, up?);
    let Some(forward) = (target - origin).try_normalize() else {
        value.error(
            "`origin` and `target` are the same point",
            "they must differ to give a direction",
        );
        return None;
    };
    let left = up.normalize_or_zero().cross(forward);
    if left.length() < 1e-6 {
        value.error(
            "`up` is parallel to the viewing direction or zero",
            "choose another direction",
        );
        return None;
    }
    let left = left.normalize();
    let matrix = DMat3::from_cols(left, forward.cross(left), forward);
    Some(DAffine3::from_mat3_translation(matrix, origin))
}

/// Four rows of four numbers, the last of which is 0 0 0 1.
fn matrix(value: &Value<'_>) -> Option<DAffine3> {
    let rows: Vec<_> = value.list_of::<4>()?.iter().map(|row| row.vector::<4>()).collect();
    let mut m = [[0.0; 4]; 4];
    for (target, row) in m.iter_mut().zip(rows) {
        *target = row?;
    }
    if m[3] != [0.0, 0.0, 0.0, 1.0] {
        value.error("the matrix is not affine", "its last row must be [0, 0, 0, 1]");
        return None;
    }
    Some(DAffine3::from_mat4(DMat4::from_cols_array_2d(&m).transpose()))
}
