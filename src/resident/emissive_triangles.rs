//! The triangles of area lights on cubes and meshes, from which points are drawn uniformly by area.

use glam::{Affine3A, Vec3};

use super::layout::{CornerRecord, EmissiveTriangleRecord, NONE, Triangle};
use crate::each::EachEntry;

/// Texture coordinates on the faces of the cube [-1, 1]³, as in Mitsuba: u and v are (1 + sign · p) / 2, with p the
/// coordinate along the axis of (axis, sign). Faces are numbered 2 · axis, plus 1 on the positive side.
pub const CUBE_UV: [[(usize, f32); 2]; 6] = [
    [(1, 1.0), (2, 1.0)],
    [(1, 1.0), (2, -1.0)],
    [(2, 1.0), (0, 1.0)],
    [(0, -1.0), (2, -1.0)],
    [(1, -1.0), (0, 1.0)],
    [(1, 1.0), (0, 1.0)],
];

/// Texture coordinates of a triangle's corners.
pub type CornerUvs = [[f32; 2]; 3];

/// The faces of the cube [-1, 1]³ under `to_world`, two triangles each, wound so that normals point outwards.
pub fn cube(to_world: &Affine3A) -> Vec<(Triangle, CornerUvs)> {
    let mirrored = to_world.matrix3.determinant() < 0.0;
    let mut triangles = Vec::with_capacity(12);
    for (face, uv) in CUBE_UV.iter().enumerate() {
        let (axis, side) = (face / 2, if face % 2 == 0 { -1.0 } else { 1.0f32 });
        let corner = |u: f32, v: f32| {
            let mut p = Vec3::ZERO;
            (p[axis], p[(axis + 1) % 3], p[(axis + 2) % 3]) = (side, u, v);
            let uv = uv.each(|(axis, sign)| 0.5 * sign * p[axis] + 0.5);
            (to_world.transform_point3(p).to_array(), uv)
        };
        let [a, b, c, d] = [
            corner(-1.0, -1.0),
            corner(1.0, -1.0),
            corner(1.0, 1.0),
            corner(-1.0, 1.0),
        ];
        let outwards = (side > 0.0) != mirrored;
        let halves = [[a, b, c], [a, c, d]].each(|[a, b, c]| if outwards { [a, b, c] } else { [a, c, b] });
        triangles.extend(halves.each(|half| (half.each(|corner| corner.0), half.each(|corner| corner.1))));
    }
    triangles
}

/// Triangles of a mesh with the texture coordinates of their corners.
pub fn mesh(triangles: &[Triangle], corners: &[CornerRecord]) -> Vec<(Triangle, CornerUvs)> {
    let uvs = corners.iter().map(|corner| {
        let [au, av, bu, bv] = corner.uv_ab;
        [[au, av], [bu, bv], corner.uv_c]
    });
    triangles.iter().copied().zip(uvs).collect()
}

/// The records of an area light on these triangles, on their backs if `flip_normals`, and their total area. `first` is the
/// first triangle's number among all meshes', [`NONE`] of a cube. None if the area is zero or not finite.
pub fn emissive_triangles(
    triangles: &[(Triangle, CornerUvs)],
    flip_normals: bool,
    first: u32,
) -> Option<(Vec<EmissiveTriangleRecord>, f32)> {
    let areas: Vec<f64> = triangles.iter().map(|(triangle, _)| area(triangle)).collect();
    let total: f64 = areas.iter().sum();
    if !(total as f32).is_normal() {
        return None;
    }
    let mut sum = 0.0;
    let mut emissive_triangles = Vec::with_capacity(triangles.len());
    for (i, ((triangle, uvs), area)) in triangles.iter().zip(areas).enumerate() {
        let begins = (sum / total) as f32;
        sum += area;
        let ends = (sum / total) as f32;
        let ([a, b, c], [uv_a, uv_b, uv_c]) = match flip_normals {
            true => (turned(*triangle), turned(*uvs)),
            false => (*triangle, *uvs),
        };
        // A triangle whose share of the area rounds to zero is never sampled.
        if begins < ends {
            emissive_triangles.push(EmissiveTriangleRecord {
                a,
                begins,
                b,
                ends,
                c,
                triangle: if first == NONE { NONE } else { first + i as u32 },
                uv_ab: [uv_a[0], uv_a[1], uv_b[0], uv_b[1]],
                uv_c,
                padding_uv: [0; 2],
            });
        }
    }
    Some((emissive_triangles, total as f32))
}

/// The same triangle seen from behind.
fn turned<T>([a, b, c]: [T; 3]) -> [T; 3] {
    [a, c, b]
}

fn area(triangle: &[[f32; 3]; 3]) -> f64 {
    let [a, b, c] = triangle.each(|p| glam::DVec3::from_array(p.each(f64::from)));
    0.5 * (b - a).cross(c - a).length()
}

#[cfg(test)]
mod tests {
    use super::*;
    use glam::{Mat3A, Vec3A};

    fn normal(triangle: &EmissiveTriangleRecord) -> Vec3 {
        let [a, b, c] = [triangle.a, triangle.b, triangle.c].map(Vec3::from_array);
        (b - a).cross(c - a)
    }

    /// Under any map, mirrored or not, a cube's triangles face away from its middle, or to it when flipped, and each one's
    /// share of the area ends where the next begins.
    #[test]
    fn a_cube_shines_outwards_from_all_its_area() {
        let middle = Vec3A::new(3.0, -2.0, 0.5);
        for mirror in [1.0, -1.0] {
            let sheared = Mat3A::from_cols_array(&[1.0, 0.2, 0.0, 0.0, 2.0, 0.3, 0.1, 0.0, mirror]);
            let to_world = Affine3A {
                matrix3: sheared,
                translation: middle,
            };
            for flip in [false, true] {
                let (emissive_triangles, area) =
                    emissive_triangles(&cube(&to_world), flip, NONE).expect("it has an area");
                assert_eq!(emissive_triangles.len(), 12);
                let side = |f: &EmissiveTriangleRecord| normal(f).dot(Vec3::from_array(f.a) - Vec3::from(middle));
                assert!(emissive_triangles.iter().all(|f| (side(f) < 0.0) == flip));
                let of_triangles: f32 = emissive_triangles.iter().map(|f| 0.5 * normal(f).length()).sum();
                assert!((of_triangles - area).abs() < 1e-4 * area);
                assert!(emissive_triangles.windows(2).all(|f| f[0].ends == f[1].begins));
                assert_eq!((emissive_triangles[0].begins, emissive_triangles[11].ends), (0.0, 1.0));
            }
        }
        let (_, area) = emissive_triangles(&cube(&Affine3A::from_scale(Vec3::new(1.0, 2.0, 3.0))), false, NONE)
            .expect("it has an area");
        assert_eq!(area, 88.0);
    }

    #[test]
    fn triangles_without_area_are_left_out() {
        let [o, x, y, z] = [[0.0; 3], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]];
        let triangles = [[o, o, x], [o, x, y], [x, x, x], [o, y, z], [z, z, o]].map(|t| (t, CornerUvs::default()));
        let (kept, area) = emissive_triangles(&triangles, false, 7).expect("it has an area");
        assert_eq!((kept[0].triangle, kept[1].triangle), (8, 10));
        assert_eq!((kept.len(), area), (2, 1.0));
        assert_eq!((kept[0].ends, kept[1].begins, kept[1].ends), (0.5, 0.5, 1.0));
        assert!(emissive_triangles(&triangles[2..3], false, NONE).is_none());
        let huge = [(
            [[-f32::MAX; 3], [f32::MAX, 0.0, 0.0], [0.0, f32::MAX, 1.0]],
            CornerUvs::default(),
        )];
        assert!(emissive_triangles(&huge, false, NONE).is_none());
    }
}
