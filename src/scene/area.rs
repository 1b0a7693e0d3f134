//! Surfaces that sensors measure or look at: a `rectangle`, a `disk` or a `sphere`; a `cylinder` or a `cube` can be measured alone.

use glam::{Affine3A, Mat3A, Vec3, Vec3A};

use super::object::Object;
use super::reader::Value;
use super::vocabulary::Class;
use super::{Area, AreaForm, Geometry, Surface, transform};

/// Largest relative difference of the lengths of a sphere's axes, and largest cosine of the angles between them.
const ROUND: f32 = 1e-4;

/// The area of a shape that is nothing but the `target` of a sensor.
pub(super) fn read(value: &Value<'_>) -> Option<Area> {
    let mut object = value.plugin(Class::Shape)?;
    let to_world = transform::to_f32(transform::read(&mut object, "to_world"));
    let flipped = object.boolean("flip_normals", false);
    let geometry = match object.name {
        "rectangle" => Geometry::Rectangle,
        "disk" => Geometry::Disk,
        "sphere" => sphere(&mut object)?,
        other => {
            object.error(
                format!("a `{other}` as a target"),
                "only a `rectangle`, a `disk`, a `sphere` or a point is one so far",
            );
            return None;
        }
    };
    object.finish();
    let area = new(&geometry, to_world, flipped);
    if area.is_none() {
        value.error("this sphere is no target", "scale it alike along all axes");
    }
    area
}

fn sphere(object: &mut Object<'_>) -> Option<Geometry> {
    let center = object.get("center").map_or(Some([0.0; 3]), |v| v.vector::<3>());
    let radius = object.number("radius", 1.0);
    Some(Geometry::Sphere {
        center: center?.map(|x| x as f32),
        radius,
    })
}

/// The area of a surface, if it has a form that can be measured.
pub(super) fn of_surface(surface: &Surface) -> Option<Area> {
    new(&surface.geometry, surface.to_world, surface.flip_normals)
}

fn new(geometry: &Geometry, to_world: Affine3A, flipped: bool) -> Option<Area> {
    let flat = |form| Area {
        form,
        to_world,
        flipped,
    };
    match geometry {
        Geometry::Rectangle => Some(flat(AreaForm::Rectangle)),
        Geometry::Disk => Some(flat(AreaForm::Disk)),
        Geometry::Sphere { center, radius } => {
            let inner =
                Affine3A::from_translation(Vec3::from_array(*center)) * Affine3A::from_scale(Vec3::splat(*radius));
            let to_world = to_world * inner;
            is_similarity(&to_world).then_some(Area {
                form: AreaForm::Sphere,
                to_world,
                flipped,
            })
        }
        Geometry::Cylinder { ends, radius } => {
            let [foot, head] = ends.map(Vec3A::from_array);
            let (x, y) = (head - foot).normalize().any_orthonormal_pair();
            let to_world = to_world
                * Affine3A {
                    matrix3: Mat3A::from_cols(*radius * x, *radius * y, head - foot),
                    translation: foot,
                };
            is_alike_across(&to_world).then_some(Area {
                form: AreaForm::Cylinder,
                to_world,
                flipped,
            })
        }
        Geometry::Cube => Some(flat(AreaForm::Cube)),
        Geometry::Mesh { .. } | Geometry::Distances { .. } => None,
    }
}

/// Whether a map leaves a cylinder along z right and circular.
fn is_alike_across(map: &Affine3A) -> bool {
    let m = map.matrix3;
    let z = m.z_axis.length_squared().sqrt();
    let mut round = *map;
    round.matrix3.z_axis *= m.x_axis.length() / z;
    is_similarity(&round)
}

fn is_similarity(map: &Affine3A) -> bool {
    let m = map.matrix3;
    let square = m.x_axis.length_squared();
    let lengths = [m.y_axis, m.z_axis].map(|axis| (axis.length_squared() - square).abs());
    let angles = [m.x_axis.dot(m.y_axis), m.y_axis.dot(m.z_axis), m.x_axis.dot(m.z_axis)];
    lengths.iter().all(|d| *d <= 2.0 * ROUND * square) && angles.iter().all(|d| d.abs() <= ROUND * square)
}
