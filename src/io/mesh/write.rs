//! Writes meshes as binary little-endian `.ply`, with all their attributes.

use std::fmt::Write as _;
use std::path::Path;

use super::{Attribute, Mesh};
use crate::io::{Result, atomic};

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
    let mut bytes = header.into_bytes();
    let mut put = |values: &[f32]| bytes.extend(values.iter().flat_map(|v| v.to_le_bytes()));
    for (i, position) in mesh.positions.iter().enumerate() {
        put(position);
        mesh.normals.get(i).into_iter().for_each(|normal| put(normal));
        mesh.uvs.get(i).into_iter().for_each(|uv| put(uv));
        of_vertices.iter().for_each(|(_, attribute)| put(attribute.at(i)));
    }
    for (i, triangle) in mesh.triangles.iter().enumerate() {
        bytes.push(3);
        bytes.extend(triangle.iter().flat_map(|vertex| vertex.to_le_bytes()));
        for (_, attribute) in &of_faces {
            bytes.extend(attribute.at(i).iter().flat_map(|v| v.to_le_bytes()));
        }
    }
    atomic::write_bytes(path, &bytes)
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
    use super::super::read_ply;
    use super::*;

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
