//! Which media fill boxes that no surface passes through: free flights inside need not look for surfaces. And which of them
//! are alone in the world: paths that leave them need not either.

use super::bvh::Corners;
use super::layout::{MediumRecord, NONE, Rows, SurfaceRecord, Triangle, surface};
use crate::each::{EachEntry, each_index};

/// By how much surfaces may reach into a box that counts as free, in units of its largest coordinate: the offset of a walk
/// that leaves a surface is smaller.
const MARGIN: f32 = 1e-5;

/// Marks the media through whose boxes no surface and none of the `triangles` of all meshes passes.
pub(super) fn mark_surface_free(media: &mut [MediumRecord], surfaces: &[SurfaceRecord], triangles: &[Triangle]) {
    for medium in media {
        let Some(inside) = Inside::of(medium) else {
            continue;
        };
        let clear =
            surfaces.iter().all(|record| inside.is_free_of(record)) && triangles.iter().all(|t| !inside.overlaps(t));
        medium.clear = u32::from(clear);
    }
}

/// Marks the medium, if any, whose box is held by the world's only surface, a boundary without BSDF, light or medium outside
/// it. Such a shape is closed and convex, so that a ray from inside meets it once. For surfaces that stand still, after
/// [`mark_surface_free`].
pub(super) fn mark_alone(media: &mut [MediumRecord], surfaces: &[SurfaceRecord]) {
    let [record] = surfaces else {
        return;
    };
    let separates = record.bsdf == NONE && record.light == NONE && record.exterior == NONE && record.side > 0.0;
    if !separates || record.interior == NONE {
        return;
    }
    let medium = &mut media[record.interior as usize];
    let held = Inside::of(medium).is_some_and(|inside| inside.is_held_by(record));
    medium.alone = u32::from(held);
}

/// The inside of a box.
pub(super) struct Inside {
    low: [f32; 3],
    high: [f32; 3],
}

impl Inside {
    /// The inside between two corners, without a margin.
    pub(super) fn from_box([low, high]: Corners) -> Self {
        Self { low, high }
    }

    /// The inside of a medium's box, less a margin; None if the box is infinite.
    fn of(medium: &MediumRecord) -> Option<Self> {
        let size = medium
            .low
            .iter()
            .chain(&medium.high)
            .fold(0f32, |size, x| size.max(x.abs()));
        size.is_finite().then(|| Self {
            low: medium.low.each(|x| x + MARGIN * size),
            high: medium.high.each(|x| x - MARGIN * size),
        })
    }

    /// Whether a shape other than a mesh lies outside of the box, or all around it, as the closed and convex cubes and
    /// spheres can. Always true of a mesh, whose triangles are tested one by one.
    pub(super) fn is_free_of(&self, record: &SurfaceRecord) -> bool {
        if record.kind == surface::MESH {
            return true;
        }
        !self.overlaps(&corners_of(record)) || self.is_held_by(record)
    }

    /// Whether a cube or a sphere lies all around the box; false for other shapes.
    fn is_held_by(&self, record: &SurfaceRecord) -> bool {
        let local = corners(self.low, self.high).each(|c| apply(&record.to_local, c));
        match record.kind {
            surface::CUBE => local.iter().flatten().all(|x| x.abs() <= 1.0),
            surface::SPHERE => local.iter().all(|p| p.iter().map(|x| x * x).sum::<f32>() <= 1.0),
            _ => false,
        }
    }

    /// Whether the box around some points reaches inside.
    pub(super) fn overlaps(&self, points: &[[f32; 3]]) -> bool {
        (0..3).all(|a| points.iter().any(|p| p[a] > self.low[a]) && points.iter().any(|p| p[a] < self.high[a]))
    }
}

/// The world-space corners of the box, in a shape's own space, that holds the shape; not for meshes.
pub(super) fn corners_of(record: &SurfaceRecord) -> [[f32; 3]; 8] {
    let is_flat = matches!(record.kind, surface::RECTANGLE | surface::DISK);
    let thickness = if is_flat { 0.0 } else { 1.0 };
    let solid = corners([-1.0, -1.0, -thickness], [1.0, 1.0, thickness]);
    solid.each(|c| apply(&record.to_world, c))
}

/// The box around points.
pub(super) fn around(points: impl IntoIterator<Item = [f32; 3]>) -> Corners {
    let none = [[f32::INFINITY; 3], [f32::NEG_INFINITY; 3]];
    points.into_iter().fold(none, |[low, high], p| {
        [
            [0, 1, 2].each(|a: usize| low[a].min(p[a])),
            [0, 1, 2].each(|a: usize| high[a].max(p[a])),
        ]
    })
}

fn corners(low: [f32; 3], high: [f32; 3]) -> [[f32; 3]; 8] {
    each_index(|k| each_index(|a| if k >> a & 1 == 0 { low[a] } else { high[a] }))
}

/// Applies an affine map.
pub(super) fn apply(m: &Rows, p: [f32; 3]) -> [f32; 3] {
    each_index(|a| m[a][0] * p[0] + m[a][1] * p[1] + m[a][2] * p[2] + m[a][3])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resident::rows;
    use bytemuck::Zeroable;
    use glam::{Affine3A, Quat, Vec3};

    fn medium() -> MediumRecord {
        MediumRecord {
            low: [-1.0; 3],
            high: [1.0; 3],
            ..MediumRecord::zeroed()
        }
    }

    fn shape(kind: u32, to_world: Affine3A) -> SurfaceRecord {
        SurfaceRecord {
            kind,
            to_world: rows(&to_world),
            to_local: rows(&to_world.inverse()),
            ..SurfaceRecord::zeroed()
        }
    }

    #[test]
    fn only_what_passes_through_the_box_is_in_the_way() {
        let at = |x: f32| Affine3A::from_translation(Vec3::new(x, 0.0, 0.0));
        let turned = Affine3A::from_quat(Quat::from_rotation_z(0.5));
        let large = |s: f32| Affine3A::from_scale(Vec3::splat(s));
        for (kind, to_world, clear) in [
            (surface::CUBE, Affine3A::IDENTITY, true),
            (surface::CUBE, turned, false),
            (surface::CUBE, turned * large(1.5), true),
            (surface::CUBE, large(0.5), false),
            (surface::CUBE, at(2.0), true),
            (surface::CUBE, at(1.9), false),
            (surface::SPHERE, Affine3A::IDENTITY, false),
            (surface::SPHERE, large(1.8), true),
            (surface::SPHERE, at(1.9), false),
            (surface::RECTANGLE, at(0.0), false),
            (surface::RECTANGLE, Affine3A::from_translation(Vec3::Z), true),
            (surface::RECTANGLE, Affine3A::from_translation(0.99 * Vec3::Z), false),
        ] {
            let mut media = [medium()];
            mark_surface_free(&mut media, &[shape(kind, to_world)], &[]);
            assert_eq!(media[0].clear == 1, clear, "{kind} {to_world}");
        }
        let mut triangle = [[-2.0, 0.5, 0.0], [0.0, 0.5, 1.5], [0.0, 0.5, 2.0]];
        let mut media = [medium()];
        mark_surface_free(&mut media, &[], &[triangle]);
        assert_eq!(media[0].clear, 0, "a triangle reaches in");
        for corner in &mut triangle {
            corner[1] = 1.0;
        }
        mark_surface_free(&mut media, &[], &[triangle]);
        assert_eq!(media[0].clear, 1, "a triangle touches");
    }

    #[test]
    fn only_a_boundary_that_is_all_the_world_is_left_for_good() {
        let turned = Affine3A::from_quat(Quat::from_rotation_z(0.5));
        let boundary = |kind, to_world| SurfaceRecord {
            bsdf: NONE,
            light: NONE,
            exterior: NONE,
            side: 1.0,
            ..shape(kind, to_world)
        };
        let cube = boundary(surface::CUBE, Affine3A::IDENTITY);
        let alone = |surfaces: &[SurfaceRecord]| {
            let mut media = [medium()];
            mark_alone(&mut media, surfaces);
            media[0].alone == 1
        };
        assert!(alone(&[cube]));
        assert!(alone(&[boundary(
            surface::SPHERE,
            Affine3A::from_scale(Vec3::splat(1.8))
        )]));
        assert!(!alone(&[cube, cube]), "two surfaces");
        assert!(!alone(&[]), "none");
        for (what, other) in [
            ("a corner of the box outside", boundary(surface::CUBE, turned)),
            (
                "beside the box",
                boundary(surface::CUBE, Affine3A::from_translation(3.0 * Vec3::X)),
            ),
            (
                "open",
                boundary(surface::CYLINDER, Affine3A::from_scale(Vec3::splat(5.0))),
            ),
            ("a BSDF", SurfaceRecord { bsdf: 0, ..cube }),
            ("a light", SurfaceRecord { light: 0, ..cube }),
            ("a medium outside", SurfaceRecord { exterior: 0, ..cube }),
            ("no medium inside", SurfaceRecord { interior: NONE, ..cube }),
            ("normals inwards", SurfaceRecord { side: -1.0, ..cube }),
        ] {
            assert!(!alone(&[other]), "{what}");
        }
    }

    #[test]
    fn a_medium_without_end_is_not_clear() {
        let mut media = [medium()];
        (media[0].low, media[0].high) = ([f32::NEG_INFINITY; 3], [f32::INFINITY; 3]);
        mark_surface_free(&mut media, &[], &[]);
        assert_eq!(media[0].clear, 0);
    }

    /// Spheres and turned cubes that hold all corners of the box except those of one side or edge, or one corner.
    #[test]
    fn every_corner_of_the_box_counts() {
        let turned = Affine3A::from_quat(Quat::from_rotation_x(0.02));
        for kind in [surface::CUBE, surface::SPHERE] {
            // The box's corners are just held: half an edge of 1, half a diagonal of √3.
            let size = if kind == surface::CUBE { 1.03 } else { 1.74 };
            let held = Affine3A::from_scale(Vec3::splat(size)) * turned;
            for towards in corners([-1.0; 3], [1.0; 3]).map(Vec3::from) {
                for axes in [Vec3::X, Vec3::Y, Vec3::Z, Vec3::ONE] {
                    for (shift, clear) in [(0.0, 1), (0.04, 0)] {
                        let to_world = Affine3A::from_translation(shift * towards * axes) * held;
                        let mut media = [medium()];
                        mark_surface_free(&mut media, &[shape(kind, to_world)], &[]);
                        assert_eq!(media[0].clear, clear, "{kind} {shift} {towards} {axes}");
                    }
                }
            }
        }
        assert_eq!(
            corners([0.0; 3], [1.0, 2.0, 4.0]).map(|c| c.iter().sum::<f32>()),
            [0., 1., 2., 3., 4., 5., 6., 7.]
        );
    }

    #[test]
    fn maps_are_applied_row_by_row() {
        let map = [[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0], [9.0, 10.0, 11.0, 12.0]];
        assert_eq!(apply(&map, [1.0, 10.0, 100.0]), [325.0, 773.0, 1221.0]);
    }

    /// A box away from the origin: shapes at its mirror image are not in it.
    #[test]
    fn boxes_and_surfaces_off_the_origin_are_compared_where_they_are() {
        let medium = MediumRecord {
            low: [2.0, -7.0, 10.0],
            high: [4.0, -6.0, 20.0],
            ..MediumRecord::zeroed()
        };
        let middle = Vec3::new(3.0, -6.5, 15.0);
        for (at, clear) in [
            (middle, 0),
            (-middle, 1),
            (Vec3::new(-3.0, -6.5, 15.0), 1),
            (Vec3::new(3.0, 6.5, 15.0), 1),
            (Vec3::new(3.0, -6.5, 9.8), 1),
            (Vec3::new(3.0, -6.5, 10.0), 0),
            (Vec3::new(3.0, -6.5, 20.2), 1),
            (Vec3::new(4.2, -6.5, 15.0), 1),
            (Vec3::new(1.8, -6.5, 15.0), 1),
            (Vec3::new(3.0, -5.8, 15.0), 1),
            (Vec3::new(3.0, -7.2, 15.0), 1),
        ] {
            let to_world = Affine3A::from_scale_rotation_translation(Vec3::splat(0.1), Quat::from_rotation_y(0.3), at);
            for kind in [surface::SPHERE, surface::CUBE, surface::RECTANGLE] {
                let mut media = [medium];
                mark_surface_free(&mut media, &[shape(kind, to_world)], &[]);
                assert_eq!(media[0].clear, clear, "{kind} at {at}");
            }
        }
        // A turned cube and a ball that hold the box.
        let around = Affine3A::from_scale_rotation_translation(Vec3::splat(9.0), Quat::from_rotation_y(0.3), middle);
        for kind in [surface::SPHERE, surface::CUBE] {
            let mut media = [medium];
            mark_surface_free(&mut media, &[shape(kind, around)], &[]);
            assert_eq!(media[0].clear, 1, "{kind}");
        }
    }
}
