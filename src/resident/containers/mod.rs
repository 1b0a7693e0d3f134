//! The shapes that bound media: whether they nest or lie apart, and whether shapes and sensors inside name the medium
//! around them.
//!
//! A walk changes its medium where it passes a surface, and never checks which medium it is in: boundaries that cut each
//! other, and a sensor that does not name the medium around it, would silently give wrong images.

mod closed_mesh;
mod ellipsoid;

use std::path::Path;

use glam::{Affine3A, DAffine3, DMat3, DVec3};

use self::closed_mesh::ClosedMesh;
use self::ellipsoid::Ellipsoid;
use super::layout::Triangle;
use crate::each::EachEntry;
use crate::io::{IoError, Result};
use crate::scene::{AreaForm, Bsdf, Geometry, Scene, Sensor, SensorKind, Surface};

/// Boundaries nearer than this, in units of the larger of 1 and their coordinates, count as touching: the offset of a walk
/// that leaves one may carry it across the other.
const GAP: f64 = 3e-5;

/// Whether closed triangles face outwards.
pub(super) fn face_outwards(triangles: &[Triangle]) -> bool {
    let triangles: Vec<_> = triangles.iter().map(|t| t.each(place)).collect();
    closed_mesh::signed_volume(&triangles) > 0.0
}

/// A closed surface with media on its sides.
#[derive(Debug)]
pub(super) struct Container {
    name: String,
    boundary: Boundary,
    /// Whether light passes straight through it (`null`). Else it may touch others, and its own `exterior` is not checked:
    /// a path hits it as a surface, whose two sides say which media they lie in.
    is_open: bool,
    /// Indices of the media on the inner and the outer side.
    inner: Option<usize>,
    outer: Option<usize>,
    /// Whether its normals look inwards, so that its `interior` lies on the outer side.
    inside_out: bool,
}

#[derive(Debug)]
enum Boundary {
    Ellipsoid(Ellipsoid),
    ClosedMesh(ClosedMesh),
}

impl Container {
    /// The container of a surface; None if the surface bounds no medium or is not closed. `triangles` are those of its mesh
    /// in the world, and `is_closed` says whether that is closed and faces outwards.
    ///
    /// # Errors
    /// Its mesh is inside out.
    pub(super) fn of(
        surface: &Surface,
        to_world: &Affine3A,
        triangles: &[Triangle],
        is_closed: bool,
    ) -> Result<Option<Self>> {
        let holds = surface.interior.is_some() || surface.exterior.is_some();
        let is_open = matches!(surface.bsdf, Bsdf::Null);
        let is_sheet = matches!(surface.geometry, Geometry::Mesh { .. }) && !is_open && !is_closed;
        if !holds || is_sheet {
            return Ok(None);
        }
        let (boundary, outwards) = match &surface.geometry {
            Geometry::Rectangle | Geometry::Disk | Geometry::Cylinder { .. } | Geometry::Distances { .. } => {
                return Ok(None);
            }
            Geometry::Sphere { .. } => (Boundary::Ellipsoid(Ellipsoid::new(double(to_world))), true),
            Geometry::Cube => (Boundary::ClosedMesh(ClosedMesh::cube(&double(to_world))), true),
            Geometry::Mesh { path, .. } => {
                let mesh = ClosedMesh::new(triangles.iter().map(|t| t.each(place)).collect());
                let outwards = mesh.volume() >= 0.0;
                if !outwards && !surface.flip_normals && surface.exterior.is_none() {
                    let message = "the mesh bounds a medium but its faces look inwards, so that its `interior` is all that \
                                   lies around it; turn them round, or set \"flip_normals\": true";
                    return Err(IoError::new(path, message));
                }
                (Boundary::ClosedMesh(mesh), outwards)
            }
        };
        let inside_out = outwards == surface.flip_normals;
        let (inner, outer) = match inside_out {
            false => (surface.interior, surface.exterior),
            true => (surface.exterior, surface.interior),
        };
        Ok(Some(Self {
            name: surface.name.clone(),
            boundary,
            is_open,
            inner,
            outer,
            inside_out,
        }))
    }

    fn holds(&self, p: DVec3) -> bool {
        match &self.boundary {
            Boundary::Ellipsoid(ellipsoid) => ellipsoid.holds(p),
            Boundary::ClosedMesh(mesh) => mesh.holds(p),
        }
    }

    fn volume(&self) -> f64 {
        match &self.boundary {
            Boundary::Ellipsoid(ellipsoid) => ellipsoid.volume(),
            Boundary::ClosedMesh(mesh) => mesh.volume().abs(),
        }
    }

    /// A point on the boundary.
    fn point(&self) -> DVec3 {
        match &self.boundary {
            Boundary::Ellipsoid(ellipsoid) => ellipsoid.point(),
            Boundary::ClosedMesh(mesh) => mesh.triangles()[0][0],
        }
    }

    /// A place near which the boundaries of two containers meet; None if they lie apart.
    fn meets(&self, other: &Self) -> Option<DVec3> {
        match (&self.boundary, &other.boundary) {
            (Boundary::ClosedMesh(a), Boundary::ClosedMesh(b)) => a.meets(b, GAP),
            (Boundary::Ellipsoid(a), Boundary::ClosedMesh(b)) | (Boundary::ClosedMesh(b), Boundary::Ellipsoid(a)) => {
                b.triangles().iter().find(|t| a.meets_triangle(t, GAP)).map(centroid)
            }
            (Boundary::Ellipsoid(a), Boundary::Ellipsoid(b)) => a.meets(b, GAP).then(|| a.nearest(b.center())),
        }
    }
}

/// The length of a medium without a box of its own: the diagonal of the cube that is as large as the largest container that
/// holds it. None if none does, or if it has no volume.
pub(super) fn length(containers: &[Container], medium: usize) -> Option<f32> {
    let holders = containers.iter().filter(|container| container.inner == Some(medium));
    let volume = holders.map(Container::volume).fold(0.0, f64::max);
    let length = (3f64.sqrt() * volume.cbrt()) as f32;
    (length.is_finite() && length > 0.0).then_some(length)
}

/// Checks all containers of a scene with each other and with its sensors.
///
/// # Errors
/// Two boundaries touch or cut each other, or the medium around a container or a sensor is not the one that it names.
pub(super) fn check(scene: &Scene, containers: &[Container]) -> Result<()> {
    let open = || containers.iter().filter(|container| container.is_open);
    for (i, container) in open().enumerate() {
        for other in open().take(i) {
            if let Some(at) = container.meets(other) {
                return refuse(&scene.path, cut(other, container, at));
            }
        }
    }
    // A container that a shell, a container with a BSDF, cuts lies on both of its sides: its surroundings are not checked.
    let is_whole = |container: &&Container| {
        let mut shells = containers.iter().filter(|shell| !shell.is_open);
        !shells.any(|shell| container.meets(shell).is_some())
    };
    let whole: Vec<&Container> = open().filter(is_whole).collect();
    let around = Around::new(containers, &whole);
    for container in whole {
        let holder = innermost(containers, container.point(), Some(container));
        let Some(expected) = around.medium(holder) else {
            continue;
        };
        if container.outer != expected {
            return refuse(&scene.path, misplaced(scene, container, holder, expected));
        }
    }
    // If all containers are shells, neither their media nor those of sensors are checked.
    for sensor in scene.sensors.iter().filter(|_| open().next().is_some()) {
        let Some(place) = stands_at(sensor) else { continue };
        let holder = innermost(containers, place, None);
        let Some(expected) = around.medium(holder) else {
            continue;
        };
        if sensor.medium != expected {
            // A shape that was turned by mistake is more likely than a sensor in the medium around everything.
            let turned = containers
                .iter()
                .find(|c| holder.is_none() && sensor.medium.is_none() && c.inside_out && c.outer == expected);
            let message = match turned.zip(expected) {
                Some((container, medium)) => {
                    turned_over(&container.name, &scene.world.media[medium].path, &sensor.name)
                }
                None => unaware(scene, sensor.medium, &sensor.name, holder, expected),
            };
            return refuse(&scene.path, message);
        }
    }
    Ok(())
}

/// Distance in front of a surface at which a sensor on it is looked for, in units of the larger of 1 and its coordinates.
const BEFORE: f64 = 1e-4;

/// A place where rays of a sensor begin; None if they begin outside of the scene.
fn stands_at(sensor: &Sensor) -> Option<DVec3> {
    let area = match sensor.kind {
        SensorKind::Distant { .. } => return None,
        SensorKind::Irradiancemeter(area) => area,
        _ => return Some(sensor.to_world.translation.as_dvec3()),
    };
    let map = double(&area.to_world);
    let facing = match area.form {
        AreaForm::Cylinder => DVec3::X,
        _ => DVec3::Z,
    };
    let normal = map.matrix3.inverse().transpose() * facing;
    let outwards = normal.normalize() * if area.flipped { -1.0 } else { 1.0 };
    let at = match area.form {
        AreaForm::Rectangle | AreaForm::Disk => map.translation,
        AreaForm::Sphere | AreaForm::Cube => map.transform_point3(DVec3::Z),
        AreaForm::Cylinder => map.transform_point3(DVec3::new(1.0, 0.0, 0.5)),
    };
    Some(at + outwards * gap_at(at, BEFORE))
}

/// The smallest container around a point, other than `but`.
fn innermost<'a>(containers: &'a [Container], p: DVec3, but: Option<&Container>) -> Option<&'a Container> {
    let others = containers
        .iter()
        .filter(|c| but.is_none_or(|but| !std::ptr::eq(*c, but)));
    others
        .filter(|c| c.holds(p))
        .min_by(|a, b| a.volume().total_cmp(&b.volume()))
}

/// The medium around everything: the outer medium of the first outermost container that light passes straight through; not
/// known if there is no such container.
struct Around {
    medium: Option<Option<usize>>,
}

impl Around {
    fn new(containers: &[Container], whole: &[&Container]) -> Self {
        let outermost = whole
            .iter()
            .find(|c| innermost(containers, c.point(), Some(c)).is_none());
        Self {
            medium: outermost.map(|c| c.outer),
        }
    }

    /// The medium in a container, outside of those nested in it, or around everything; None if it is not known.
    fn medium(&self, holder: Option<&Container>) -> Option<Option<usize>> {
        holder.map_or(self.medium, |container| Some(container.inner))
    }
}

fn refuse(scene: &Path, message: String) -> Result<()> {
    Err(IoError::new(scene, message))
}

fn cut(first: &Container, second: &Container, at: DVec3) -> String {
    let (a, b) = (&first.name, &second.name);
    let [x, y, z] = at.to_array();
    format!(
        "the boundaries of `{a}` and `{b}` touch or cut each other near [{x:.4}, {y:.4}, {z:.4}]; shapes that bound media \
         lie apart or one in the other, with a gap of at least {GAP:e} of their coordinates: move or scale one of them"
    )
}

fn misplaced(scene: &Scene, container: &Container, holder: Option<&Container>, expected: Option<usize>) -> String {
    let name = &container.name;
    let where_it_is = match holder {
        Some(holder) => format!("lies in `{}`", holder.name),
        None => "lies in no other shape that bounds a medium".to_string(),
    };
    let found = match container.outer {
        Some(outer) => format!("is surrounded by the medium `{}`", scene.world.media[outer].path),
        None => "has no medium around it".to_string(),
    };
    let advice = match expected {
        Some(medium) => format!(
            "expected `{path}`; add \"exterior\": {{\"type\": \"ref\", \"id\": \"{path}\"}}",
            path = scene.world.media[medium].path
        ),
        None => "expected none; remove its `exterior`".to_string(),
    };
    format!("the shape `{name}` {where_it_is} but {found}, {advice}")
}

fn turned_over(name: &str, medium: &str, sensor: &str) -> String {
    format!(
        "the normals of `{name}` look inwards, so that its `interior` is all that lies around it, also around the sensor \
         `{sensor}`, which has no `medium`; change its `flip_normals`, or refer to `{medium}` as the sensor's `medium`"
    )
}

fn unaware(
    scene: &Scene,
    found: Option<usize>,
    name: &str,
    holder: Option<&Container>,
    expected: Option<usize>,
) -> String {
    let path = |medium: usize| &scene.world.media[medium].path;
    let place = match holder {
        Some(holder) => format!("stands in `{}`", holder.name),
        None => "stands in no shape that bounds a medium".to_string(),
    };
    let found = match found {
        Some(medium) => format!("has the medium `{}`", path(medium)),
        None => "has no `medium`".to_string(),
    };
    let advice = match expected {
        Some(medium) => format!(
            "add \"medium\": {{\"type\": \"ref\", \"id\": \"{}\"}}, or move it",
            path(medium)
        ),
        None => "remove its `medium`, or move it".to_string(),
    };
    format!("the sensor `{name}` {place} but {found}; {advice}")
}

fn centroid(triangle: &[DVec3; 3]) -> DVec3 {
    (triangle[0] + triangle[1] + triangle[2]) / 3.0
}

fn place(p: [f32; 3]) -> DVec3 {
    DVec3::from_array(p.each(f64::from))
}

fn double(map: &Affine3A) -> DAffine3 {
    let [x, y, z] = [map.matrix3.x_axis, map.matrix3.y_axis, map.matrix3.z_axis].each(|axis| axis.as_dvec3());
    DAffine3 {
        matrix3: DMat3::from_cols(x, y, z),
        translation: map.translation.as_dvec3(),
    }
}

/// The length of a `gap` that is given in units of the larger of 1 and the coordinates of `p`.
fn gap_at(p: DVec3, gap: f64) -> f64 {
    gap * p.abs().max_element().max(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn middles_and_gaps_are_known() {
        let triangle = [
            DVec3::new(3.0, 1.0, 2.0),
            DVec3::new(6.0, 5.0, -2.0),
            DVec3::new(0.0, 3.0, 6.0),
        ];
        assert_eq!(centroid(&triangle), DVec3::new(3.0, 3.0, 2.0));
        for (p, gap) in [([0.5, 0.0, 0.0], 0.25), ([1.0, -8.0, 2.0], 2.0), ([4.0, 1.0, 0.0], 1.0)] {
            assert_eq!(gap_at(DVec3::from(p), 0.25), gap, "{p:?}");
        }
    }
}
