//! Wavefront's `.obj`: the vertices and faces of all its objects as one mesh. Materials, groups, lines and curves are
//! ignored.

use std::collections::HashMap;
use std::path::Path;

use glam::Vec3;

use super::{Mesh, add_fan, bytes, smooth_normals};
use crate::io::{IoError, Result};

/// Reads a mesh. Polygons become fans; faces of fewer than three corners are counted, and vertices that no face uses left out.
///
/// If some corners of faces have normals, those of others follow from the faces that share them; if some have texture coordinates,
/// those of others are (0, 0). `face_normals` ignores normals, `flip_tex_coords` replaces v by 1 - v.
///
/// # Errors
/// If the file cannot be read, a line is malformed, an index has no vertex, a number is not finite, or there is no
/// face.
pub fn read_obj(path: &Path, face_normals: bool, flip_tex_coords: bool) -> Result<Mesh> {
    let bytes = bytes(path)?;
    // Names and comments may be in any encoding; the keywords and numbers are ASCII.
    let text = String::from_utf8_lossy(&bytes);
    let mut reader = Reader {
        face_normals,
        ..Reader::default()
    };
    // A backslash at its end continues a line on the next.
    let mut continued = String::new();
    for (line, number) in text.lines().chain([""]).zip(1u64..) {
        if let Some(start) = line.trim_end().strip_suffix('\\') {
            continued.push_str(start);
            continued.push(' ');
            continue;
        }
        continued.push_str(line);
        reader
            .line(&continued)
            .map_err(|e| IoError::new(path, format!("line {number}: {e}")))?;
        continued.clear();
    }
    reader.finish(flip_tex_coords).check(path)
}

/// Indices of position, texture coordinate and normal of a face's corner.
type Corner = (u32, Option<u32>, Option<u32>);

/// The state after the lines read so far.
#[derive(Default)]
struct Reader {
    face_normals: bool,
    positions: Vec<[f32; 3]>,
    uvs: Vec<[f32; 2]>,
    normals: Vec<[f32; 3]>,
    /// Corners that became vertices, and the vertex of each.
    corners: Vec<Corner>,
    vertices: HashMap<Corner, u32>,
    triangles: Vec<[u32; 3]>,
    dropped_faces: usize,
}

impl Reader {
    fn line(&mut self, line: &str) -> std::result::Result<(), String> {
        let line = line.split('#').next().unwrap_or_default();
        let mut words = line.split_ascii_whitespace();
        match words.next() {
            Some("v") => self.positions.push(numbers(words, 3)?),
            // Some programs write u alone.
            Some("vt") => self.uvs.push(numbers(words, 1)?),
            Some("vn") => self.normals.push(numbers(words, 3)?),
            Some("f") => {
                // As in Mitsuba, points and edges that stand among the faces are no mistake.
                if words.clone().count() < 3 {
                    self.dropped_faces += 1;
                    return Ok(());
                }
                let polygon = words
                    .map(|word| self.vertex(word))
                    .collect::<std::result::Result<Vec<u32>, String>>()?;
                add_fan(&mut self.triangles, &polygon);
            }
            _ => {}
        }
        Ok(())
    }

    /// The vertex of a corner `v`, `v/vt`, `v//vn` or `v/vt/vn`.
    fn vertex(&mut self, word: &str) -> std::result::Result<u32, String> {
        let mut parts = word.split('/');
        let position = parts.next().unwrap_or_default();
        let position = index(position, self.positions.len(), "position")?;
        let mut optional = |count, what| match parts.next() {
            None | Some("") => Ok(None),
            Some(text) => index(text, count, what).map(Some),
        };
        let uv = optional(self.uvs.len(), "texture coordinate")?;
        let normal = optional(self.normals.len(), "normal")?.filter(|_| !self.face_normals);
        if parts.next().is_some() {
            return Err(format!(
                "a face has the corner `{word}`, expected at most three indices"
            ));
        }
        let corner = (position, uv, normal);
        let next = u32::try_from(self.corners.len()).map_err(|_| "there are more than 2³² vertices")?;
        let vertex = *self.vertices.entry(corner).or_insert(next);
        if vertex == next {
            self.corners.push(corner);
        }
        Ok(vertex)
    }

    fn finish(self, flip_tex_coords: bool) -> Mesh {
        let has_uvs = self.corners.iter().any(|(_, uv, _)| uv.is_some());
        let has_normals = self.corners.iter().any(|(_, _, normal)| normal.is_some());
        let is_bare = |(_, uv, normal): &&Corner| (has_uvs && uv.is_none()) || (has_normals && normal.is_none());
        let uv = |&(_, t, _): &Corner| {
            t.map_or([0.0; 2], |t| {
                let [u, v] = self.uvs[t as usize];
                [u, if flip_tex_coords { 1.0 - v } else { v }]
            })
        };
        let all = |has_them: bool| if has_them { &self.corners[..] } else { &[] };
        Mesh {
            positions: self
                .corners
                .iter()
                .map(|(v, _, _)| self.positions[*v as usize])
                .collect(),
            normals: if has_normals { self.all_normals() } else { Vec::new() },
            uvs: all(has_uvs).iter().map(uv).collect(),
            bare_vertices: self.corners.iter().filter(is_bare).count(),
            triangles: self.triangles,
            attributes: Vec::new(),
            dropped_faces: self.dropped_faces,
        }
    }

    /// The normal of each corner, from the faces around it where it has none.
    fn all_normals(&self) -> Vec<[f32; 3]> {
        let around = match self.corners.iter().all(|(_, _, normal)| normal.is_some()) {
            true => Vec::new(),
            false => {
                let position = |(v, _, _): &Corner| Vec3::from_array(self.positions[*v as usize]);
                smooth_normals(&self.corners.iter().map(position).collect::<Vec<_>>(), &self.triangles)
            }
        };
        let given = self.corners.iter().enumerate();
        given
            .map(|(i, (_, _, normal))| normal.map_or_else(|| around[i].to_array(), |n| self.normals[n as usize]))
            .collect()
    }
}

/// The first N numbers of a line; the first `needed` are mandatory, the others default to 0.
fn numbers<'a, const N: usize>(
    words: impl Iterator<Item = &'a str>,
    needed: usize,
) -> std::result::Result<[f32; N], String> {
    let mut values = [0.0; N];
    let mut found = 0;
    for (value, word) in values.iter_mut().zip(words) {
        *value = word
            .parse()
            .ok()
            .filter(|v: &f32| v.is_finite())
            .ok_or_else(|| format!("found `{word}`, expected a finite number"))?;
        found += 1;
    }
    if found < needed {
        return Err(format!("found {found} numbers, expected {needed}"));
    }
    Ok(values)
}

/// Converts an index that counts from 1, or if negative backwards from the last element, to one that counts from 0.
fn index(text: &str, count: usize, what: &str) -> std::result::Result<u32, String> {
    let found: i64 = text
        .parse()
        .map_err(|_| format!("found `{text}`, expected the index of a {what}"))?;
    let index = if found < 0 { count as i64 + found } else { found - 1 };
    if index < 0 || index >= count as i64 {
        return Err(format!("a face has {what} {found}, but {count} come before it"));
    }
    u32::try_from(index).map_err(|_| format!("{what} {found} is beyond the 2³² that are supported"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, face_normals: bool, flip: bool) -> Result<Mesh> {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("a.obj");
        std::fs::write(&path, text).expect("writable");
        read_obj(&path, face_normals, flip)
    }

    const QUAD: &str = "# a quad\nv 0 0 0\nv 1 0 0 0.5\nv 1 1 0\nv 0 1 0\n";

    #[test]
    fn polygons_become_fans_and_negative_indices_count_backwards() {
        for face in [
            "f 1 2 3 4",
            "f -4 -3 -2 -1",
            "f 1 2 \\\n 3 -1 # comment",
            "f 1 2\\\n3 4",
        ] {
            let mesh = read(&format!("{QUAD}{face}\n"), false, false).expect("a mesh");
            assert_eq!(mesh.positions.len(), 4);
            assert_eq!(mesh.positions[2], [1.0, 1.0, 0.0]);
            assert_eq!(mesh.triangles, [[0, 1, 2], [0, 2, 3]]);
            assert!(mesh.normals.is_empty() && mesh.uvs.is_empty());
        }
    }

    #[test]
    fn corners_that_differ_become_vertices_of_their_own() {
        let text =
            format!("{QUAD}vt 0.25 0.75\nvt 0.5\nvn 0 0 1\nvn 0 0 -1\nf 1/1/1 2/2/1 3/1/1\nf 1/1/2 3/1/2 4/1/2\n");
        let mesh = read(&text, false, false).expect("a mesh");
        assert_eq!(mesh.triangles, [[0, 1, 2], [3, 4, 5]]);
        assert_eq!(mesh.normals[4], [0.0, 0.0, -1.0]);
        assert_eq!(mesh.uvs[..2], [[0.25, 0.75], [0.5, 0.0]]);
        let mesh = read(&text, true, true).expect("a mesh");
        assert_eq!(mesh.triangles, [[0, 1, 2], [0, 2, 3]]);
        assert!(mesh.normals.is_empty());
        assert_eq!(mesh.uvs[..2], [[0.25, 0.25], [0.5, 1.0]]);
    }

    #[test]
    fn every_combination_of_indices_is_read() {
        for (corner, normals, uvs) in [
            ("", 0, 0),
            ("/1", 0, 3),
            ("//1", 3, 0),
            ("/1/1", 3, 3),
            ("/-1/-1", 3, 3),
        ] {
            let text = format!("{QUAD}vt 0 0\nvn 0 0 1\nf 1{corner} 2{corner} 3{corner}\n");
            let mesh = read(&text, false, false).expect("a mesh");
            assert_eq!((mesh.normals.len(), mesh.uvs.len()), (normals, uvs), "{corner}");
        }
    }

    #[test]
    fn what_some_corners_lack_is_completed() {
        let text = format!("{QUAD}vt 0.5 0.25\nvn 0 0.6 0.8\nf 1/1/1 2/1/1 3/1/1\nf 1 4 3\n");
        let mesh = read(&text, false, false).expect("a mesh");
        assert_eq!(mesh.normals[..3], [[0.0, 0.6, 0.8]; 3]);
        assert_eq!(mesh.normals[3..], [[0.0, 0.0, -1.0]; 3], "the second face looks down");
        assert_eq!((mesh.uvs[0], mesh.uvs[4]), ([0.5, 0.25], [0.0, 0.0]));
        assert_eq!(mesh.bare_vertices, 3);
    }

    #[test]
    fn faces_of_two_corners_are_left_out_and_counted() {
        let mesh = read(&format!("{QUAD}f 1 2 3\nf 3 4\nf 4\nf 1 3 4\n"), false, false).expect("a mesh");
        assert_eq!((mesh.triangles, mesh.positions.len()), (vec![[0, 1, 2], [0, 2, 3]], 4));
        assert_eq!(mesh.dropped_faces, 2);
    }

    #[test]
    fn mistakes_are_named() {
        for (text, expected) in [
            ("f 1 2 5", "position 5, but 4 come before it"),
            ("f 0 1 2", "position 0"),
            ("f -5 1 2", "position -5"),
            ("f 1/1 2 3", "texture coordinate 1, but 0"),
            ("f 1 2", "no faces"),
            ("f 1 2 x", "`x`"),
            ("f 1/ 2/ 3/1/1/1", "texture coordinate 1"),
            ("v 1 nan 2", "line 6: found `nan`"),
            ("v 1 1e99 2", "1e99"),
            ("v 1 2", "2 numbers, expected 3"),
            ("o nothing", "no faces"),
        ] {
            let error = read(&format!("{QUAD}{text}\n"), false, false)
                .expect_err(text)
                .to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
