//! Triangle meshes: Wavefront OBJ, Stanford PLY and Mitsuba's serialized ones.

mod attributes;
mod obj;
mod placed;
mod ply;
mod serialized;
mod write;

use std::collections::HashMap;
use std::path::Path;

use glam::DVec3;

pub use attributes::Attribute;
pub use obj::read_obj;
pub use placed::{Placed, smooth_normals};
pub use ply::{AttributeHeader, read_ply, read_ply_attributes};
pub use serialized::read_serialized;
pub use write::{write_obj, write_ply, write_stl};

use super::{IoError, Result, open};

/// Triangles over shared vertices. Front faces are counter-clockwise.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Mesh {
    pub positions: Vec<[f32; 3]>,
    /// One per vertex; empty if the file has none or they were not requested.
    pub normals: Vec<[f32; 3]>,
    /// One per vertex; empty if the file has none.
    pub uvs: Vec<[f32; 2]>,
    /// Indices of vertices, all of which exist.
    pub triangles: Vec<[u32; 3]>,
    /// Read from a `.ply` only; face attributes only if all faces are triangles.
    pub attributes: Vec<Attribute>,
    /// Faces of the file with fewer than three corners, which have no area and are left out.
    pub dropped_faces: usize,
    /// Vertices of an `.obj` without normals or texture coordinates, where other vertices have them.
    pub bare_vertices: usize,
}

impl Mesh {
    /// Whether the mesh is closed: each edge belongs to two triangles that traverse it in opposite directions.
    ///
    /// Vertices at equal positions are merged, and triangles that become degenerate by that are ignored.
    ///
    /// # Errors
    /// An edge that violates the rule, as the rest of a sentence that begins with the mesh's name.
    pub fn is_closed(&self) -> std::result::Result<(), String> {
        let mut directed: HashMap<[u32; 2], u32> = HashMap::new();
        let corners = self.merge_positions();
        let edges = || {
            let merged = self.triangles.iter().map(|t| t.map(|v| corners[v as usize]));
            let solid = merged.filter(|[a, b, c]| a != b && b != c && c != a);
            solid.flat_map(|[a, b, c]| [[a, b], [b, c], [c, a]])
        };
        edges().for_each(|edge| *directed.entry(edge).or_default() += 1);
        if directed.is_empty() {
            return Err("has no triangle with an area, expected a closed surface".into());
        }
        for [a, b] in edges() {
            let (same, opposite) = (directed[&[a, b]], directed.get(&[b, a]).copied().unwrap_or(0));
            let wrong = match (same, opposite) {
                (1, 1) => continue,
                (1, 0) => "belongs to one triangle only: the surface has a hole",
                (2, 0) => "is passed in the same direction by both its triangles: they face opposite sides",
                _ => "belongs to more than two triangles",
            };
            let [a, b] = [a, b].map(|v| self.positions[v as usize]);
            return Err(format!(
                "is not closed: the edge from {a:?} to {b:?} {wrong}, expected two triangles that pass it in opposite \
                 directions"
            ));
        }
        Ok(())
    }

    /// The square [-1, 1]² in the plane z = 0, divided into `columns` × `rows` quads, with uv = ((x, y) + 1) / 2.
    pub fn grid([columns, rows]: [u32; 2]) -> Self {
        let mut mesh = Self::default();
        for y in 0..=rows {
            for x in 0..=columns {
                let uv = [x as f32 / columns as f32, y as f32 / rows as f32];
                mesh.positions.push([2.0 * uv[0] - 1.0, 2.0 * uv[1] - 1.0, 0.0]);
                mesh.uvs.push(uv);
            }
        }
        for y in 0..rows {
            for x in 0..columns {
                let a = y * (columns + 1) + x;
                let [b, c, d] = [a + 1, a + columns + 2, a + columns + 1];
                mesh.triangles.extend([[a, b, c], [a, c, d]]);
            }
        }
        mesh
    }

    /// Number of triangles without an area, which no ray hits.
    pub fn flat_triangles(&self) -> usize {
        let has_area = |triangle: &&[u32; 3]| {
            let [a, b, c] = triangle.map(|v| DVec3::from_array(self.positions[v as usize].map(f64::from)));
            (b - a).cross(c - a) != DVec3::ZERO
        };
        self.triangles.len() - self.triangles.iter().filter(has_area).count()
    }

    /// For each vertex the index of the first vertex at the same position.
    fn merge_positions(&self) -> Vec<u32> {
        let mut first = HashMap::new();
        let indices = self.positions.iter().zip(0..);
        // Adding zero gives -0 and 0 the same bits.
        indices
            .map(|(p, i)| *first.entry(p.map(|v| (v + 0.0).to_bits())).or_insert(i))
            .collect()
    }

    /// Rejects meshes without triangles, non-finite numbers, and indices of missing vertices.
    fn check(self, path: &Path) -> Result<Self> {
        if self.triangles.is_empty() {
            return Err(IoError::new(
                path,
                "has no faces of three corners, expected a mesh of at least one",
            ));
        }
        let arrays = [
            ("position", self.positions.as_flattened(), 3),
            ("normal", self.normals.as_flattened(), 3),
            ("texture coordinate", self.uvs.as_flattened(), 2),
        ];
        for (what, values, width) in arrays {
            if let Some(i) = values.iter().position(|v| !v.is_finite()) {
                let message = format!(
                    "the {what} of vertex {} holds {}, expected finite numbers",
                    i / width,
                    values[i]
                );
                return Err(IoError::new(path, message));
            }
        }
        for attribute in &self.attributes {
            if let Some(i) = attribute.values.iter().position(|v| !v.is_finite()) {
                let (name, at) = (&attribute.name, i / attribute.channels);
                let message = format!(
                    "value {at} of `{name}` holds {}, expected finite numbers",
                    attribute.values[i]
                );
                return Err(IoError::new(path, message));
            }
        }
        let count = self.positions.len();
        if let Some(v) = self.triangles.as_flattened().iter().find(|&&v| v as usize >= count) {
            let message = format!("has a face with vertex {v}, expected less than {count}, the number of vertices");
            return Err(IoError::new(path, message));
        }
        Ok(self)
    }
}

/// All of a regular file.
fn bytes(path: &Path) -> Result<Vec<u8>> {
    open(path)?;
    std::fs::read(path).map_err(|e| IoError::new(path, format!("cannot be read: {e}")))
}

/// Adds a polygon as a fan around its first corner.
fn add_fan(triangles: &mut Vec<[u32; 3]>, polygon: &[u32]) {
    for pair in polygon.windows(2).skip(1) {
        triangles.push([polygon[0], pair[0], pair[1]]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A cube of quads in fans, each with four vertices of its own.
    fn cube() -> Mesh {
        let mut mesh = Mesh::default();
        for axis in 0..3 {
            for side in [0.0, 1.0] {
                let corner = |u: f32, v: f32| {
                    let mut p = [side; 3];
                    p[(axis + 1) % 3] = u;
                    p[(axis + 2) % 3] = v;
                    p
                };
                let first = mesh.positions.len() as u32;
                let mut quad = [first, first + 1, first + 2, first + 3];
                mesh.positions
                    .extend([corner(0.0, 0.0), corner(1.0, 0.0), corner(1.0, 1.0), corner(0.0, 1.0)]);
                if side == 0.0 {
                    quad.reverse();
                }
                add_fan(&mut mesh.triangles, &quad);
            }
        }
        mesh
    }

    #[test]
    fn a_cube_of_separate_faces_is_closed() {
        assert_eq!(cube().is_closed(), Ok(()));
    }

    #[test]
    fn signs_of_zero_do_not_open_a_surface() {
        let mut mesh = cube();
        for v in mesh.positions[..4].as_flattened_mut() {
            *v = if *v == 0.0 { -0.0 } else { *v };
        }
        assert_eq!(mesh.is_closed(), Ok(()));
    }

    #[test]
    fn collapsed_triangles_do_not_count() {
        let mut mesh = cube();
        mesh.triangles.push([0, 0, 1]);
        assert_eq!(mesh.is_closed(), Ok(()));
    }

    #[test]
    fn triangles_without_an_area_are_counted() {
        let mut mesh = cube();
        assert_eq!(mesh.flat_triangles(), 0);
        let [p, q] = [mesh.positions[0], mesh.positions[1]];
        mesh.positions.push([0, 1, 2].map(|a| 3.0 * q[a] - 2.0 * p[a]));
        mesh.triangles.extend([[0, 0, 1], [0, 1, 24], [0, 2, 24]]);
        assert_eq!(mesh.flat_triangles(), 2);
    }

    #[test]
    fn open_and_inconsistent_surfaces_are_told() {
        let mut mesh = cube();
        mesh.triangles.pop();
        let hole = mesh.is_closed().expect_err("a triangle is missing");
        assert!(
            hole.contains("the edge from [0.0, 0.0, 1.0] to [0.0, 1.0, 1.0] belongs to one triangle"),
            "{hole}"
        );
        let mut mesh = cube();
        mesh.triangles[0].reverse();
        assert!(mesh.is_closed().is_err_and(|e| e.contains("same direction")));
        let mut mesh = cube();
        mesh.triangles.push(mesh.triangles[0]);
        assert!(mesh.is_closed().is_err_and(|e| e.contains("more than two")));
        assert!(Mesh::default().is_closed().is_err());
    }

    #[test]
    fn numbers_that_are_not_finite_are_named_by_their_vertex() {
        let check = |array: usize, at: usize| {
            let mut mesh = cube();
            let count = mesh.positions.len();
            (mesh.normals, mesh.uvs) = (vec![[0.0; 3]; count], vec![[0.0; 2]; count]);
            let values = match array {
                0 => mesh.positions.as_flattened_mut(),
                1 => mesh.normals.as_flattened_mut(),
                _ => mesh.uvs.as_flattened_mut(),
            };
            values[at] = f32::INFINITY;
            mesh.check(Path::new("a")).expect_err("infinity").to_string()
        };
        for (array, at, expected) in [
            (0, 8, "the position of vertex 2"),
            (0, 9, "the position of vertex 3"),
            (1, 8, "the normal of vertex 2"),
            (1, 9, "the normal of vertex 3"),
            (2, 7, "the texture coordinate of vertex 3"),
            (2, 8, "the texture coordinate of vertex 4"),
        ] {
            assert_eq!(
                check(array, at),
                format!("a: {expected} holds inf, expected finite numbers")
            );
        }
        let mut mesh = cube();
        mesh.triangles[3][1] = 24;
        let error = mesh.check(Path::new("a")).expect_err("a missing vertex").to_string();
        assert_eq!(
            error,
            "a: has a face with vertex 24, expected less than 24, the number of vertices"
        );
        let error = Mesh::default().check(Path::new("a")).expect_err("nothing").to_string();
        assert_eq!(
            error,
            "a: has no faces of three corners, expected a mesh of at least one"
        );
        assert!(cube().check(Path::new("a")).is_ok());
    }

    #[test]
    fn vertices_that_are_near_are_not_the_same() {
        let mut mesh = cube();
        mesh.positions.as_flattened_mut().iter_mut().for_each(|v| *v *= 1e-12);
        assert_eq!(mesh.is_closed(), Ok(()));
    }

    #[test]
    fn a_folder_is_no_mesh() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let error = bytes(folder.path()).expect_err("a folder").to_string();
        assert!(error.contains("is a folder or a device, expected a file"), "{error}");
    }
}
