//! Where a scene lies in space, as far as its file tells without reading meshes.

use glam::{Affine3A, Vec3};

use crate::scene::{Bsdf, Geometry, Scene};

/// A box along the axes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Extent {
    pub(super) low: Vec3,
    pub(super) high: Vec3,
}

impl Extent {
    /// The box of what a scene is about: its radiance field, else the shapes that hold media, else all shapes whose
    /// form the file tells. None if there is nothing of them.
    pub(super) fn of(scene: &Scene) -> Option<Self> {
        if let Some(field) = &scene.field {
            return Some(Self::of_box(&field.to_world, [-1.0; 3], [1.0; 3]));
        }
        let surfaces = &scene.world.surfaces;
        let media = surfaces
            .iter()
            .filter(|s| s.interior.is_some() && matches!(s.bsdf, Bsdf::Null));
        let held = media
            .filter_map(|s| Self::of_shape(&s.geometry, &s.to_world))
            .reduce(Self::around);
        let all = surfaces.iter().filter_map(|s| Self::of_shape(&s.geometry, &s.to_world));
        held.or_else(|| all.reduce(Self::around))
    }

    /// The box around a shape; none for a mesh, whose file would have to be read.
    pub(super) fn of_shape(geometry: &Geometry, to_world: &Affine3A) -> Option<Self> {
        let (low, high) = match geometry {
            Geometry::Cube => ([-1.0; 3], [1.0; 3]),
            Geometry::Sphere { center, radius } => (center.map(|x| x - radius), center.map(|x| x + radius)),
            Geometry::Rectangle => ([-1.0, -1.0, 0.0], [1.0, 1.0, 0.0]),
            Geometry::Mesh { .. } => return None,
        };
        Some(Self::of_box(to_world, low, high))
    }

    fn of_box(to_world: &Affine3A, low: [f32; 3], high: [f32; 3]) -> Self {
        let corner = |i: usize| {
            let place: [f32; 3] = std::array::from_fn(|axis| if i >> axis & 1 == 0 { low[axis] } else { high[axis] });
            to_world.transform_point3(place.into())
        };
        let start = Self {
            low: corner(0),
            high: corner(0),
        };
        (1..8).map(corner).fold(start, |all, p| Self {
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

    /// Its middle.
    pub(super) fn center(&self) -> Vec3 {
        0.5 * (self.low + self.high)
    }

    /// Radius of the sphere around it.
    pub(super) fn radius(&self) -> f32 {
        0.5 * (self.high - self.low).length()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boxes_hold_their_turned_shapes() {
        let turned = Affine3A::from_rotation_z(std::f32::consts::FRAC_PI_4);
        let extent = Extent::of_shape(&Geometry::Cube, &turned).expect("a cube has a box");
        assert!((extent.high - Vec3::new(2f32.sqrt(), 2f32.sqrt(), 1.0)).length() < 1e-6);
        assert!(extent.center().length() < 1e-6 && (extent.radius() - 5f32.sqrt()).abs() < 1e-6);
    }
}
