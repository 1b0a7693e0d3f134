//! Maps of shapes into the world, and which spheres and cylinders stay round under them.

use crate::each::EachEntry;
use std::f32::consts::PI;

use glam::{Affine3A, DAffine3, Mat3A, Vec3A};

/// The inverse of a map, computed in f64 and rounded once to f32: `transport::scene::shape::leave` relies on this accuracy.
pub(super) fn inverse(to_world: &Affine3A) -> Affine3A {
    let wide = DAffine3::from_cols_array(&to_world.to_cols_array().each(f64::from)).inverse();
    Affine3A::from_cols_array(&wide.to_cols_array().each(|x| x as f32))
}

/// The radius of the unit sphere's image under a map; None if the image is not round to 1e-4.
pub(super) fn radius(to_world: &Affine3A) -> Option<f32> {
    let [x, y, z] = [
        to_world.matrix3.x_axis,
        to_world.matrix3.y_axis,
        to_world.matrix3.z_axis,
    ];
    let radius = x.length();
    let alike = [y, z].iter().all(|a| (a.length() - radius).abs() <= 1e-4 * radius);
    let square = [x.dot(y), y.dot(z), x.dot(z)];
    let upright = square.iter().all(|d| d.abs() <= 1e-4 * radius * radius);
    (alike && upright).then_some(radius)
}

/// The map of the cylinder of radius one around the z axis from -1 to 1 to a scene's cylinder; its rotation about the axis
/// is Mitsuba's.
pub fn cylinder(ends: [[f32; 3]; 2], radius: f32) -> Affine3A {
    let [p0, p1] = ends.each(Vec3A::from_array);
    let half = 0.5 * (p1 - p0);
    let (x, y) = half.normalize().any_orthonormal_pair();
    let columns = Mat3A::from_cols(radius * x, radius * y, half);
    Affine3A {
        matrix3: columns,
        translation: 0.5 * (p0 + p1),
    }
}

/// The area of the image of the cylinder of radius one and height two under a map; None if it is not a right circular
/// cylinder.
pub(super) fn cylinder_area(to_world: &Affine3A) -> Option<f32> {
    let [x, y, z] = [
        to_world.matrix3.x_axis,
        to_world.matrix3.y_axis,
        to_world.matrix3.z_axis,
    ];
    let (radius, height) = (x.length(), 2.0 * z.length());
    let round = (y.length() - radius).abs() <= 1e-4 * radius && x.dot(y).abs() <= 1e-4 * radius * radius;
    let upright = [x, y].iter().all(|a| a.dot(z).abs() <= 1e-4 * radius * z.length());
    (round && upright).then_some(2.0 * PI * radius * height)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Half axes may differ by a ten-thousandth of their length and be out of square by as much, whatever the length.
    #[test]
    fn only_round_spheres_have_a_radius() {
        for length in [0.01f32, 1.0, 50.0] {
            let of = |axes: [[f32; 3]; 3]| {
                let [x, y, z] = axes.map(|axis| length * Vec3A::from_array(axis));
                radius(&Affine3A {
                    matrix3: glam::Mat3A::from_cols(x, y, z),
                    translation: Vec3A::new(3.0, 4.0, 5.0),
                })
            };
            let upright = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]];
            assert_eq!(of(upright), Some(length));
            assert_eq!(of([[0.0, 0.0, -1.0], [0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]), Some(length));
            for (row, column) in [(0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1)] {
                for (skew, round) in [(0.8e-4, true), (1.3e-4, false), (-0.8e-4, true), (-1.3e-4, false)] {
                    let mut axes = upright;
                    axes[row][column] = skew;
                    assert_eq!(of(axes).is_some(), round, "{length} {row} {column} {skew}");
                }
            }
            for axis in [1, 2] {
                for (stretch, round) in [(1.00008, true), (0.99992, true), (1.00013, false), (0.99987, false)] {
                    let mut axes = upright;
                    axes[axis][axis] = stretch;
                    assert_eq!(of(axes).is_some(), round, "{length} {axis} {stretch}");
                }
            }
        }
    }
}
