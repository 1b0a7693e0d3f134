//! Writes meshes: as binary little-endian `.ply` with all their attributes, as `.obj`, and as binary `.stl`.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;

use super::{Attribute, Mesh};
use crate::io::{IoError, Result, atomic};

/// Writes a mesh; [`super::read_ply`] gives the same one.
///
/// # Errors
/// The file cannot be written.
pub fn write_ply(path: &Path, mesh: &Mesh) -> Result<()> {
    let mut header = format!(
        "ply\nformat binary_little_endian 1.0\nelement vertex {}\n",
        mesh.positions.len()
    );
    let of = |prefix: &str| -> Vec<(&str, &Attribute)> {
        let all = mesh.attributes.iter();
        all.filter_map(|a| Some((a.name.strip_prefix(prefix)?, a))).collect()
    };
    let (of_vertices, of_faces) = (of("vertex_"), of("face_"));
    let known: [(&[&str], bool); 3] = [
        (&["x", "y", "z"], true),
        (&["nx", "ny", "nz"], !mesh.normals.is_empty()),
        (&["u", "v"], !mesh.uvs.is_empty()),
    ];
    for name in known.iter().filter(|(_, there)| *there).flat_map(|(names, _)| *names) {
        properties(&mut header, [(*name).to_owned()]);
    }
    for (name, attribute) in &of_vertices {
        properties(&mut header, components(name, attribute));
    }
    let _ = write!(
        header,
        "element face {}\nproperty list uchar int vertex_indices\n",
        mesh.triangles.len()
    );
    for (name, attribute) in &of_faces {
        properties(&mut header, components(name, attribute));
    }
    header.push_str("end_header\n");
    atomic::write(path, |out| {
        out.write_all(header.as_bytes())?;
        let mut put = |values: &[f32]| values.iter().try_for_each(|v| out.write_all(&v.to_le_bytes()));
        for (i, position) in mesh.positions.iter().enumerate() {
            put(position)?;
            mesh.normals.get(i).map_or(Ok(()), |normal| put(normal))?;
            mesh.uvs.get(i).map_or(Ok(()), |uv| put(uv))?;
            of_vertices.iter().try_for_each(|(_, attribute)| put(attribute.at(i)))?;
        }
        for (i, triangle) in mesh.triangles.iter().enumerate() {
            out.write_all(&[3])?;
            triangle
                .iter()
                .try_for_each(|vertex| out.write_all(&vertex.to_le_bytes()))?;
            let of_face = of_faces.iter().flat_map(|(_, attribute)| attribute.at(i));
            of_face.into_iter().try_for_each(|v| out.write_all(&v.to_le_bytes()))?;
        }
        Ok(())
    })
}

/// Writes meshes, each as an object of its own, with normals and texture coordinates. An OBJ's v grows upwards; here the
/// first row of an image is at v = 0.
///
/// # Errors
/// The file cannot be written.
pub fn write_obj(path: &Path, meshes: &[(String, Mesh)]) -> Result<()> {
    atomic::write(path, |out| {
        // OBJ counts positions, texture coordinates and normals from one, all objects together.
        let mut first = [1usize; 3];
        for (name, mesh) in meshes {
            writeln!(out, "o {name}")?;
            for [x, y, z] in &mesh.positions {
                writeln!(out, "v {x} {y} {z}")?;
            }
            for [u, v] in &mesh.uvs {
                writeln!(out, "vt {u} {}", 1.0 - v)?;
            }
            for [x, y, z] in &mesh.normals {
                writeln!(out, "vn {x} {y} {z}")?;
            }
            let corner = |vertex: u32| {
                let [p, uv, n] = first.map(|first| first + vertex as usize);
                match (mesh.uvs.is_empty(), mesh.normals.is_empty()) {
                    (false, false) => format!("{p}/{uv}/{n}"),
                    (false, true) => format!("{p}/{uv}"),
                    (true, false) => format!("{p}//{n}"),
                    (true, true) => p.to_string(),
                }
            };
            for triangle in &mesh.triangles {
                let [a, b, c] = triangle.map(corner);
                writeln!(out, "f {a} {b} {c}")?;
            }
            first[0] += mesh.positions.len();
            first[1] += mesh.uvs.len();
            first[2] += mesh.normals.len();
        }
        Ok(())
    })
}

/// Writes triangles with the normals of their faces; nothing else has a place in the format. Triangles without an area,
/// which have no normal, are left out.
///
/// # Errors
/// The file cannot be written, or there are more than 2³² triangles.
pub fn write_stl(path: &Path, mesh: &Mesh) -> Result<()> {
    let corners = |t: &[u32; 3]| t.map(|v| glam::Vec3::from_array(mesh.positions[v as usize]));
    let facets = || {
        mesh.triangles.iter().filter_map(|triangle| {
            let [a, b, c] = corners(triangle);
            let normal = (b - a).cross(c - a).try_normalize()?;
            Some([normal, a, b, c])
        })
    };
    let count = u32::try_from(facets().count());
    let count = count.map_err(|_| IoError::new(path, "has more triangles than an .stl can count"))?;
    atomic::write(path, |out| {
        // A header of 80 bytes that must not begin with "solid", which is how text files do.
        let mut header = [0; 80];
        header[..6].copy_from_slice(b"binary");
        out.write_all(&header)?;
        out.write_all(&count.to_le_bytes())?;
        for facet in facets() {
            for number in facet.iter().flat_map(|v| v.to_array()) {
                out.write_all(&number.to_le_bytes())?;
            }
            out.write_all(&[0; 2])?;
        }
        Ok(())
    })
}

fn properties(header: &mut String, names: impl IntoIterator<Item = String>) {
    for name in names {
        let _ = writeln!(header, "property float {name}");
    }
}

fn components<'a>(name: &'a str, attribute: &Attribute) -> impl Iterator<Item = String> + use<'a> {
    (0..attribute.channels).map(move |i| format!("{name}_{i}"))
}

impl Attribute {
    /// The values of a vertex or a face.
    fn at(&self, index: usize) -> &[f32] {
        &self.values[index * self.channels..][..self.channels]
    }
}

#[cfg(test)]
mod tests {
    use super::super::{read_obj, read_ply};
    use super::*;

    fn tetrahedron() -> Mesh {
        Mesh {
            positions: vec![[0.0; 3], [1.0, 0.0, 0.0], [0.0, 2.0, 0.0], [0.0, 0.0, 3.0]],
            triangles: vec![[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]],
            ..Mesh::default()
        }
    }

    /// Objects of all four kinds of corners, one after the other.
    #[test]
    fn objects_of_an_obj_come_back_as_one_mesh() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("a.obj");
        let with = |uvs: bool, normals: bool| {
            let mut mesh = tetrahedron();
            mesh.uvs = vec![[0.0, 0.25], [0.5, 0.75], [1.0, 0.0], [0.125, 1.0]];
            mesh.normals = vec![[0.0, 0.0, 1.0], [0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.6, 0.8]];
            mesh.uvs.truncate(if uvs { 4 } else { 0 });
            mesh.normals.truncate(if normals { 4 } else { 0 });
            mesh
        };
        for (uvs, normals) in [(true, true), (true, false), (false, true), (false, false)] {
            let mesh = with(uvs, normals);
            write_obj(&path, &[("a".into(), mesh.clone()), ("b".into(), mesh.clone())]).expect("writable");
            let found = read_obj(&path, false, true).expect("a mesh");
            assert_eq!(found.triangles.len(), 8);
            for (i, triangle) in found.triangles.iter().enumerate() {
                for (k, v) in triangle.iter().map(|v| *v as usize).enumerate() {
                    let expected = mesh.triangles[i % 4][k] as usize;
                    assert_eq!(found.positions[v], mesh.positions[expected]);
                    assert_eq!(found.uvs.get(v), mesh.uvs.get(expected));
                    assert_eq!(found.normals.get(v), mesh.normals.get(expected));
                }
            }
            let text = std::fs::read_to_string(&path).expect("text");
            assert_eq!(text.lines().filter(|line| line.starts_with("o ")).count(), 2);
        }
    }

    /// Byte by byte: 80 of a header, a count, then fifty for each triangle.
    #[test]
    fn an_stl_holds_normals_and_corners() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("a.stl");
        let mut mesh = tetrahedron();
        mesh.triangles.insert(1, [0, 1, 1]);
        write_stl(&path, &mesh).expect("writable");
        let bytes = std::fs::read(&path).expect("readable");
        assert_eq!(bytes.len(), 84 + 4 * 50);
        assert!(!bytes.starts_with(b"solid"));
        assert_eq!(bytes[80..84], [4, 0, 0, 0]);
        let float = |at: usize| f32::from_le_bytes(bytes[at..at + 4].try_into().expect("four"));
        let first: Vec<f32> = (0..12).map(|i| float(84 + 4 * i)).collect();
        assert_eq!(first, [0.0, 0.0, -1.0, 0.0, 0.0, 0.0, 0.0, 2.0, 0.0, 1.0, 0.0, 0.0]);
        let second: Vec<f32> = (0..3).map(|i| float(134 + 4 * i)).collect();
        assert_eq!(second, [0.0, -1.0, 0.0]);
    }

    #[test]
    fn a_mesh_comes_back_with_its_attributes() {
        let attribute = |name: &str, channels, values: &[f32]| Attribute {
            name: name.into(),
            channels,
            values: values.to_vec(),
        };
        let mut mesh = Mesh {
            positions: vec![[0.0, 1.0, 2.0], [3.0, 4.0, 5.0], [6.0, 7.5, 8.0], [1.0, 1.0, 1.0]],
            triangles: vec![[0, 1, 2], [3, 2, 1]],
            attributes: vec![
                attribute(
                    "vertex_color",
                    3,
                    &[0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 0.0, 0.5],
                ),
                attribute("vertex_my_rough", 1, &[0.1, 0.2, 0.3, 0.4]),
                attribute("face_tint", 3, &[1.0, 0.5, 0.25, 0.0, 0.75, 0.125]),
            ],
            ..Mesh::default()
        };
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("a.ply");
        for full in [false, true] {
            if full {
                mesh.normals = vec![[0.0, 0.0, 1.0], [0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.6, 0.8]];
                mesh.uvs = vec![[0.0, 0.25], [0.5, 0.75], [1.0, 0.0], [0.125, 1.0]];
            }
            write_ply(&path, &mesh).expect("writable");
            assert_eq!(read_ply(&path, false, false).expect("a mesh"), mesh);
        }
    }
}
