//! The bounding box of a scene.

use std::borrow::Cow;

use glam::{Affine3A, Vec3, Vec3A};

use crate::io::Result;
use crate::resident::vertices::displaced;
use crate::scene::{Bsdf, Displacement, Geometry, Scene, Sensor, Surface};

/// An axis-aligned box.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Extent {
    pub(super) low: Vec3,
    pub(super) high: Vec3,
}

impl Extent {
    /// The box of a scene's subject: its radiance field, else the shapes that contain media, else all shapes. None if
    /// there are none of these.
    ///
    /// # Errors
    /// A mesh cannot be read.
    pub(super) fn of(scene: &Scene) -> Result<Option<Self>> {
        if let Some(field) = &scene.field {
            return Ok(Some(Self::of_box(&field.to_world, [-1.0; 3], [1.0; 3])));
        }
        let shapes: Vec<Cow<'_, Surface>> = scene.world.placed().collect();
        let holds_medium = |s: &Surface| s.interior.is_some() && matches!(s.bsdf, Bsdf::Null);
        let none_holds = !shapes.iter().any(|s| holds_medium(s));
        let shown = shapes.iter().filter(|s| none_holds || holds_medium(s));
        let boxes = shown.map(|s| Self::of_surface(s));
        let boxes: Vec<Self> = boxes.collect::<Result<_>>()?;
        Ok(boxes.into_iter().reduce(Self::around))
    }

    /// The box around a surface with its displacement.
    ///
    /// # Errors
    /// A mesh or an image cannot be read.
    pub(super) fn of_surface(surface: &Surface) -> Result<Self> {
        let Some(heights) = surface.displacement.as_ref().map(Displacement::array) else {
            return Self::of_shape(&surface.geometry, &surface.to_world);
        };
        let mesh = displaced(surface, heights.shape, &heights.source.materialise(heights.shape)?)?;
        Ok(Self::of_points(mesh.positions.into_iter().map(Vec3::from_array)))
    }

    /// The box around a shape.
    ///
    /// # Errors
    /// A mesh cannot be read.
    fn of_shape(geometry: &Geometry, to_world: &Affine3A) -> Result<Self> {
        let (low, high) = match geometry {
            Geometry::Cube => ([-1.0; 3], [1.0; 3]),
            Geometry::Distances { .. } => ([0.0; 3], [1.0; 3]),
            Geometry::Sphere { center, radius } => (center.map(|x| x - radius), center.map(|x| x + radius)),
            Geometry::Rectangle | Geometry::Disk => ([-1.0, -1.0, 0.0], [1.0, 1.0, 0.0]),
            Geometry::Cylinder { ends: [p0, p1], radius } => (
                [0, 1, 2].map(|a| p0[a].min(p1[a]) - radius),
                [0, 1, 2].map(|a| p0[a].max(p1[a]) + radius),
            ),
            Geometry::Mesh { path, format, .. } => {
                let mesh = format.read(path, true, false)?;
                let corners = mesh.triangles.iter().flatten().map(|v| mesh.positions[*v as usize]);
                return Ok(Self::of_points(corners.map(|p| to_world.transform_point3(p.into()))));
            }
        };
        Ok(Self::of_box(to_world, low, high))
    }

    fn of_box(to_world: &Affine3A, low: [f32; 3], high: [f32; 3]) -> Self {
        let corner = |i: usize| {
            let place: [f32; 3] = std::array::from_fn(|axis| if i >> axis & 1 == 0 { low[axis] } else { high[axis] });
            to_world.transform_point3(place.into())
        };
        Self::of_points((0..8).map(corner))
    }

    fn of_points(points: impl Iterator<Item = Vec3>) -> Self {
        let nothing = Self {
            low: Vec3::INFINITY,
            high: Vec3::NEG_INFINITY,
        };
        points.fold(nothing, |all, p| Self {
            low: all.low.min(p),
            high: all.high.max(p),
        })
    }

    fn around(self, other: Self) -> Self {
        Self {
            low: self.low.min(other.low),
            high: self.high.max(other.high),
        }
    }

    /// Its centre.
    pub(super) fn center(&self) -> Vec3 {
        0.5 * (self.low + self.high)
    }

    /// Radius of its bounding sphere.
    pub(super) fn radius(&self) -> f32 {
        0.5 * (self.high - self.low).length()
    }
}

/// The mean up direction of the cameras; the nearest axis of the world if one is close.
pub(super) fn upward(sensors: &[Sensor]) -> Vec3 {
    let sum: Vec3A = sensors.iter().map(|s| s.to_world.matrix3.y_axis).sum();
    let mean = Vec3::from(sum).normalize_or(Vec3::Y);
    let axes = [Vec3::X, Vec3::Y, Vec3::Z].into_iter().flat_map(|axis| [axis, -axis]);
    axes.into_iter().find(|axis| axis.dot(mean) > 0.9).unwrap_or(mean)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scene::MeshFormat;

    #[test]
    fn boxes_hold_their_turned_shapes() {
        let turned = Affine3A::from_rotation_z(std::f32::consts::FRAC_PI_4);
        let extent = Extent::of_shape(&Geometry::Cube, &turned).expect("no file is read");
        assert!((extent.high - Vec3::new(2f32.sqrt(), 2f32.sqrt(), 1.0)).length() < 1e-6);
        assert!(extent.center().length() < 1e-6 && (extent.radius() - 5f32.sqrt()).abs() < 1e-6);
    }

    #[test]
    fn meshes_are_read() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let file = folder.path().join("mesh.obj");
        let geometry = Geometry::Mesh {
            path: file.clone(),
            format: MeshFormat::Obj,
            face_normals: false,
            flip_tex_coords: false,
        };
        let moved = Affine3A::from_translation(Vec3::new(10.0, 0.0, 0.0));
        assert!(Extent::of_shape(&geometry, &moved).is_err(), "there is no file yet");
        // The last vertex is not used by any triangle.
        std::fs::write(&file, "v 0 0 0\nv 2 0 0\nv 0 4 -1\nv 9 9 9\nf 1 2 3\n").expect("writable");
        let extent = Extent::of_shape(&geometry, &moved).expect("a mesh");
        assert_eq!(
            (extent.low.to_array(), extent.high.to_array()),
            ([10.0, 0.0, -1.0], [12.0, 4.0, 0.0])
        );
    }
}
