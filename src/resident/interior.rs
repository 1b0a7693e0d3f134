//! The insides of closed convex shapes that a medium fills and nothing else stands in: a straight line between two points
//! inside meets no surface, so that a path need not look for one there.

use super::bvh::box_around_surfaces;
use super::layout::{MediumRecord, NONE, Rows, SurfaceRecord, Triangle, surface};
use super::surface_free::Inside;
use crate::each::each_index;

/// Rounding of a point's local coordinates and of a hit on the shape, in units of the largest coordinate.
const ROUNDING: f32 = 64.0 * f32::EPSILON;

/// Largest margin: a shape that needs more is too small for its distance from the origin, and no interior is used.
const WIDEST: f32 = 0.01;

/// The inside of a cube or a sphere, less a margin that is larger than rounding.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interior {
    /// World to the shape's own space, where it reaches from -1 to 1.
    pub to_local: Rows,
    pub is_ball: bool,
    /// Bound of a point's distance from the centre, in the shape's own space: along each axis of a cube, and squared of a
    /// ball.
    pub within: f32,
}

impl Interior {
    /// Whether a point lies inside.
    #[inline(always)]
    pub fn holds(&self, p: [f32; 3]) -> bool {
        let [x, y, z] = each_index(|a| {
            let m = &self.to_local[a];
            m[0] * p[0] + m[1] * p[1] + m[2] * p[2] + m[3]
        });
        let reach = match self.is_ball {
            true => x * x + y * y + z * z,
            false => x.abs().max(y.abs()).max(z.abs()),
        };
        reach < self.within
    }
}

/// For each medium the convex shape that it fills alone, if there is one. For surfaces that stand still.
pub(super) fn interiors(
    media: &[MediumRecord],
    surfaces: &[SurfaceRecord],
    triangles: &[Triangle],
) -> Vec<Option<Interior>> {
    let of_medium = |medium: usize| {
        let holds = |record: &&SurfaceRecord| record.interior == medium as u32;
        let mut around = surfaces.iter().filter(holds);
        let shell = around.next().filter(|_| around.next().is_none())?;
        let interior = inside_of(shell)?;
        let others = surfaces.iter().filter(|record| !std::ptr::eq(*record, shell));
        let space = Inside::from_box(box_around_surfaces(&[*shell]));
        let clear =
            others.into_iter().all(|other| space.is_free_of(other)) && triangles.iter().all(|t| !space.overlaps(t));
        clear.then_some(interior)
    };
    (0..media.len()).map(of_medium).collect()
}

/// The inside of a closed convex shape with outward normals; None for other shapes, and if its medium is also outside.
fn inside_of(shell: &SurfaceRecord) -> Option<Interior> {
    let closed = matches!(shell.kind, surface::CUBE | surface::SPHERE);
    if !closed || shell.side < 0.0 || shell.interior == NONE || shell.interior == shell.exterior {
        return None;
    }
    let box_ = box_around_surfaces(&[*shell]);
    let largest = box_.iter().flatten().fold(0f32, |largest, x| largest.max(x.abs()));
    let steepest = shell
        .to_local
        .iter()
        .map(|row| row[..3].iter().map(|x| x.abs()).sum::<f32>());
    let margin = ROUNDING * (1.0 + largest * steepest.fold(0.0, f32::max));
    (margin < WIDEST).then_some(Interior {
        to_local: shell.to_local,
        is_ball: shell.kind == surface::SPHERE,
        within: 1.0 - margin,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resident::rows;
    use bytemuck::Zeroable;
    use glam::{Affine3A, Quat, Vec3};

    fn shape(kind: u32, to_world: Affine3A) -> SurfaceRecord {
        SurfaceRecord {
            kind,
            to_world: rows(&to_world),
            to_local: rows(&to_world.inverse()),
            interior: NONE,
            exterior: NONE,
            side: 1.0,
            ..SurfaceRecord::zeroed()
        }
    }

    fn of(surfaces: &[SurfaceRecord], triangles: &[Triangle]) -> Option<Interior> {
        interiors(&[MediumRecord::zeroed()], surfaces, triangles)[0]
    }

    #[test]
    fn points_are_inside_up_to_a_margin() {
        let to_world = Affine3A::from_scale_rotation_translation(
            Vec3::new(2.0, 1.0, 0.5),
            Quat::from_rotation_z(0.4),
            Vec3::new(3.0, -1.0, 2.0),
        );
        for (kind, corner, edge) in [(surface::CUBE, true, 0.999), (surface::SPHERE, false, 0.999)] {
            let shell = SurfaceRecord {
                interior: 0,
                ..shape(kind, to_world)
            };
            let inside = of(&[shell], &[]).expect("an inside");
            let holds = |local: Vec3| inside.holds(to_world.transform_point3(local).to_array());
            assert!(
                holds(Vec3::ZERO) && holds(edge * Vec3::X) && holds(-edge * Vec3::Z),
                "{kind}"
            );
            assert_eq!(holds(edge * Vec3::ONE), corner, "{kind}");
            for out in [1.0, 1.001, 7.0] {
                assert!(!holds(out * Vec3::Y) && !holds(-out * Vec3::X), "{kind} {out}");
            }
            assert!(!inside.holds([f32::NAN, 0.0, 0.0]) && !inside.holds([f32::INFINITY; 3]));
        }
    }

    #[test]
    fn only_a_convex_shape_that_nothing_stands_in_has_an_inside() {
        let at = |x: f32| Affine3A::from_translation(Vec3::new(x, 0.0, 0.0));
        let large = |s: f32| Affine3A::from_scale(Vec3::splat(s));
        let cube = SurfaceRecord {
            interior: 0,
            ..shape(surface::CUBE, at(0.0))
        };
        assert!(of(&[cube], &[]).is_some());
        assert!(of(&[], &[]).is_none());
        for (what, free, other) in [
            ("beside", true, shape(surface::SPHERE, at(2.5))),
            ("around", true, shape(surface::SPHERE, large(2.0))),
            ("within", false, shape(surface::SPHERE, large(0.1))),
            ("through", false, shape(surface::RECTANGLE, at(0.5))),
            (
                "the same medium again",
                false,
                SurfaceRecord {
                    interior: 0,
                    ..shape(surface::CUBE, at(9.0))
                },
            ),
        ] {
            assert_eq!(of(&[cube, other], &[]).is_some(), free, "{what}");
            assert_eq!(of(&[other, cube], &[]).is_some(), free, "{what}");
        }
        let triangle = |x: f32| [[x, -9.0, 0.0], [x, 9.0, 0.0], [x, 0.0, 9.0]];
        assert!(of(&[cube], &[triangle(0.5)]).is_none() && of(&[cube], &[triangle(1.5)]).is_some());
        for (what, other) in [
            (
                "open",
                SurfaceRecord {
                    kind: surface::CYLINDER,
                    ..cube
                },
            ),
            ("inside out", SurfaceRecord { side: -1.0, ..cube }),
            ("on both sides", SurfaceRecord { exterior: 0, ..cube }),
            (
                "too far away",
                SurfaceRecord {
                    interior: 0,
                    ..shape(surface::CUBE, at(1e5))
                },
            ),
        ] {
            assert!(of(&[other], &[]).is_none(), "{what}");
        }
    }
}
