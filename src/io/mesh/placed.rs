//! Meshes moved into the world, and the normals of vertices that have none.

use glam::{Affine3A, Vec3, Vec3A};

use super::Mesh;

/// A mesh's positions, normals and triangles in world space.
#[derive(Debug, Clone, PartialEq)]
pub struct Placed {
    pub positions: Vec<Vec3>,
    /// Unit normals of the vertices: the mesh's own, or else [`smooth_normals`].
    pub normals: Vec<Vec3>,
    /// Vertex indices; two are swapped if the map mirrors, so that front faces stay counter-clockwise.
    pub triangles: Vec<[u32; 3]>,
}

impl Mesh {
    /// The mesh transformed by an affine map; normals by its inverse transpose.
    pub fn placed(&self, to_world: &Affine3A) -> Placed {
        let place = |p: &[f32; 3]| to_world.transform_point3(Vec3::from_array(*p));
        let positions: Vec<Vec3> = self.positions.iter().map(place).collect();
        let mirrored = to_world.matrix3.determinant() < 0.0;
        let wound = |&[a, b, c]: &[u32; 3]| if mirrored { [a, c, b] } else { [a, b, c] };
        let triangles: Vec<[u32; 3]> = self.triangles.iter().map(wound).collect();
        let normals = if self.normals.is_empty() {
            smooth_normals(&positions, &triangles)
        } else {
            let turned = to_world.matrix3.inverse().transpose();
            let turn = |n: &[f32; 3]| (turned * Vec3A::from_array(*n)).normalize_or_zero().into();
            self.normals.iter().map(turn).collect()
        };
        Placed {
            positions,
            normals,
            triangles,
        }
    }
}

/// Unit normals of vertices: the adjacent faces' normals, weighted by each face's angle at the vertex (Thuermer1998).
pub fn smooth_normals(positions: &[Vec3], triangles: &[[u32; 3]]) -> Vec<Vec3> {
    let mut normals = vec![Vec3::ZERO; positions.len()];
    for triangle in triangles {
        let p = triangle.map(|v| positions[v as usize]);
        let face = (p[1] - p[0]).cross(p[2] - p[0]).normalize_or_zero();
        for k in 0..3 {
            let (to, fro) = (p[(k + 1) % 3] - p[k], p[(k + 2) % 3] - p[k]);
            if to.length_squared() > 0.0 && fro.length_squared() > 0.0 {
                normals[triangle[k] as usize] += face * to.angle_between(fro);
            }
        }
    }
    normals.into_iter().map(Vec3::normalize_or_zero).collect()
}
