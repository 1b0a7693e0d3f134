//! Meshes of glTF, each primitive a shape.

use anyhow::{Context, Result, ensure};
use glam::{DAffine3, DVec3, Vec3};
use gltf::accessor::{DataType, Dimensions};
use gltf::mesh::Mode;
use gltf::{Primitive, Semantic};
use serde_json::json;

use super::materials::Looks;
use super::{Conversion, matrix};
use crate::io::mesh::{self, Attribute, Mesh};

/// Largest number of vertices and triangles written in all: a small file can refer to the same vertices many times.
const MAX_WRITTEN: usize = 1 << 28;

/// The written file of a primitive, and the values that all shapes made from it share.
#[derive(Debug, Clone)]
pub(super) struct Written {
    /// The file as the scene names it.
    filename: String,
    is_flat: bool,
    bsdf: serde_json::Value,
    emitter: Option<serde_json::Value>,
    /// Corners of the box around its vertices.
    bounds: [DVec3; 2],
}

impl Conversion<'_> {
    /// Adds a shape for each primitive of a node's mesh.
    pub(super) fn mesh(
        &mut self,
        mesh: &gltf::Mesh<'_>,
        name: &str,
        to_world: &DAffine3,
        looks: &mut Looks,
    ) -> Result<()> {
        if to_world.matrix3.determinant() == 0.0 {
            self.note(format!("`{name}` is left out: its transform makes it flat"));
            return Ok(());
        }
        for primitive in mesh.primitives() {
            if !matches!(
                primitive.mode(),
                Mode::Triangles | Mode::TriangleStrip | Mode::TriangleFan
            ) {
                self.note(format!(
                    "the points or lines of `{name}` are left out: shapes are of triangles"
                ));
                continue;
            }
            if primitive.morph_targets().next().is_some() {
                self.note(format!("the targets that `{name}` could become are left out"));
            }
            let name = self.free(name);
            let key = (mesh.index(), primitive.index());
            let known = self.written.get(&key).cloned();
            let written = match known {
                Some(written) => written,
                None => {
                    let written = self
                        .write(&primitive, &name, looks)
                        .with_context(|| format!("`{name}`"))?;
                    self.written.insert(key, written.clone());
                    written
                }
            };
            self.place(name, &written, to_world)?;
        }
        Ok(())
    }

    /// Puts a shape into the scene.
    fn place(&mut self, name: String, written: &Written, to_world: &DAffine3) -> Result<()> {
        let [low, high] = written.bounds;
        for corner in 0..8 {
            let pick = |axis: usize| if corner >> axis & 1 == 0 { low[axis] } else { high[axis] };
            let p = to_world.transform_point3(DVec3::new(pick(0), pick(1), pick(2)));
            let [low, high] = self.bounds.unwrap_or([p, p]);
            self.bounds = Some([low.min(p), high.max(p)]);
        }
        let mut object = json!({
            "type": "ply",
            "filename": written.filename,
            "to_world": matrix(to_world),
            // glTF's primitives without normals are flat shaded.
            "face_normals": written.is_flat,
            "bsdf": written.bsdf,
        });
        if let Some(emitter) = &written.emitter {
            object["emitter"] = emitter.clone();
            self.shines = true;
        }
        self.root.insert(name, object);
        Ok(())
    }

    /// Writes a primitive as PLY.
    fn write(&mut self, primitive: &Primitive<'_>, name: &str, looks: &mut Looks) -> Result<Written> {
        let mut shape = self.read(primitive)?;
        self.vertices += shape.positions.len() + shape.triangles.len();
        ensure!(
            self.vertices <= MAX_WRITTEN,
            "with it, meshes have more than {MAX_WRITTEN} vertices and triangles; make them coarser"
        );
        let turned = goes_round_with_uvs(&shape);
        let look = self.look(&primitive.material(), turned, looks)?;
        if look.set != 0 {
            shape.uvs = self.uvs(primitive, look.set, shape.positions.len())?;
        }
        let colors = self.colors(primitive, name, shape.positions.len(), look.factor)?;
        let bsdf = match (colors, look.with_colors) {
            (Some(colors), Some(colored)) => {
                shape.attributes.push(colors);
                colored
            }
            (Some(_), None) => {
                self.note(format!(
                    "the colours of vertices of `{name}` are left out: it has an image"
                ));
                look.bsdf
            }
            (None, _) => look.bsdf,
        };
        let file = self.folder.join(format!("{name}.ply"));
        mesh::write_ply(&file, &shape)?;
        let corner = |pick: fn(Vec3, Vec3) -> Vec3| {
            let all = shape.positions.iter().map(|p| Vec3::from_array(*p));
            all.reduce(pick).unwrap_or_default().as_dvec3()
        };
        Ok(Written {
            filename: self.relative(&file)?,
            is_flat: shape.normals.is_empty(),
            bsdf,
            emitter: look.emitter,
            bounds: [corner(Vec3::min), corner(Vec3::max)],
        })
    }

    /// The vertices and triangles of a primitive.
    fn read(&self, primitive: &Primitive<'_>) -> Result<Mesh> {
        const VECTORS: &[(Dimensions, DataType)] = &[(Dimensions::Vec3, DataType::F32)];
        const INDICES: &[(Dimensions, DataType)] = &[
            (Dimensions::Scalar, DataType::U8),
            (Dimensions::Scalar, DataType::U16),
            (Dimensions::Scalar, DataType::U32),
        ];
        let positions = primitive.get(&Semantic::Positions);
        let positions = positions.context("has no vertices: the file is damaged, or compressed by an extension")?;
        self.buffers.check(&positions, VECTORS)?;
        let normals = primitive.get(&Semantic::Normals);
        if let Some(normals) = &normals {
            self.buffers.check(normals, VECTORS)?;
            ensure!(
                normals.count() == positions.count(),
                "has {} normals for {} vertices: the file is damaged",
                normals.count(),
                positions.count()
            );
        }
        if let Some(indices) = primitive.indices() {
            self.buffers.check(&indices, INDICES)?;
        }
        let reader = primitive.reader(|buffer| self.buffers.of(&buffer));
        let positions: Vec<[f32; 3]> = reader.read_positions().into_iter().flatten().collect();
        let normals: Vec<[f32; 3]> = reader.read_normals().into_iter().flatten().collect();
        let count = positions.len();
        let indices: Vec<u32> = match reader.read_indices() {
            Some(indices) => indices.into_u32().collect(),
            None => (0..count as u32).collect(),
        };
        ensure!(indices.len() >= 3, "has no triangle: the file is damaged");
        if let Some(beyond) = indices.iter().find(|v| **v as usize >= count) {
            anyhow::bail!("has a triangle with vertex {beyond}, but {count} vertices: the file is damaged");
        }
        let numbers = [positions.as_flattened(), normals.as_flattened()];
        ensure!(
            numbers.iter().all(|v| v.iter().all(|x| x.is_finite())),
            "has vertices that are not finite; correct them"
        );
        Ok(Mesh {
            triangles: triangles(primitive.mode(), &indices),
            uvs: self.uvs(primitive, 0, count)?,
            normals,
            positions,
            attributes: Vec::new(),
            dropped_faces: 0,
            bare_vertices: 0,
        })
    }

    /// The texture coordinates of set number `set`; empty if there is no such set.
    fn uvs(&self, primitive: &Primitive<'_>, set: u32, count: usize) -> Result<Vec<[f32; 2]>> {
        const PAIRS: &[(Dimensions, DataType)] = &[
            (Dimensions::Vec2, DataType::F32),
            (Dimensions::Vec2, DataType::U8),
            (Dimensions::Vec2, DataType::U16),
        ];
        let Some(accessor) = primitive.get(&Semantic::TexCoords(set)) else {
            return Ok(Vec::new());
        };
        self.buffers.check(&accessor, PAIRS)?;
        let reader = primitive.reader(|buffer| self.buffers.of(&buffer));
        let uvs = reader.read_tex_coords(set).map(|uvs| uvs.into_f32().collect());
        let uvs: Vec<[f32; 2]> = uvs.unwrap_or_default();
        ensure!(
            uvs.len() == count && uvs.as_flattened().iter().all(|x| x.is_finite()),
            "has {} texture coordinates for {count} vertices, or some that are not finite: the file is damaged",
            uvs.len()
        );
        Ok(uvs)
    }

    /// The linear colours of vertices, times a factor.
    fn colors(
        &mut self,
        primitive: &Primitive<'_>,
        name: &str,
        count: usize,
        factor: [f32; 3],
    ) -> Result<Option<Attribute>> {
        const COLORS: &[(Dimensions, DataType)] = &[
            (Dimensions::Vec3, DataType::F32),
            (Dimensions::Vec3, DataType::U8),
            (Dimensions::Vec3, DataType::U16),
            (Dimensions::Vec4, DataType::F32),
            (Dimensions::Vec4, DataType::U8),
            (Dimensions::Vec4, DataType::U16),
        ];
        let Some(accessor) = primitive.get(&Semantic::Colors(0)) else {
            return Ok(None);
        };
        self.buffers.check(&accessor, COLORS)?;
        let reader = primitive.reader(|buffer| self.buffers.of(&buffer));
        let colors = reader.read_colors(0).map(|colors| colors.into_rgba_f32().collect());
        let colors: Vec<[f32; 4]> = colors.unwrap_or_default();
        ensure!(
            colors.len() == count && colors.as_flattened().iter().all(|x| x.is_finite()),
            "has {} colours for {count} vertices, or some that are not finite: the file is damaged",
            colors.len()
        );
        if colors.iter().any(|color| color[3] < 1.0) {
            self.note(format!("the opacities of vertices of `{name}` are left out"));
        }
        let tint = |color: &[f32; 4]| [0, 1, 2].map(|c| (color[c] * factor[c]).clamp(0.0, 1.0));
        Ok(Some(Attribute {
            name: "vertex_color".into(),
            channels: 3,
            values: colors.iter().flat_map(tint).collect(),
        }))
    }
}

/// The triangles of a list, a strip or a fan.
fn triangles(mode: Mode, indices: &[u32]) -> Vec<[u32; 3]> {
    match mode {
        Mode::TriangleStrip => {
            let turned = |(i, w): (usize, &[u32])| match i % 2 {
                0 => [w[0], w[1], w[2]],
                _ => [w[1], w[0], w[2]],
            };
            indices.windows(3).enumerate().map(turned).collect()
        }
        Mode::TriangleFan => indices[1..].windows(2).map(|w| [indices[0], w[0], w[1]]).collect(),
        _ => indices.chunks_exact(3).map(|t| [t[0], t[1], t[2]]).collect(),
    }
}

/// Whether u, v and the face normal form a right-handed frame on most triangles.
fn goes_round_with_uvs(mesh: &Mesh) -> bool {
    let mut balance = 0i64;
    for [a, b, c] in mesh.triangles.iter().map(|t| t.map(|v| v as usize)) {
        let (Some(p), Some(q), Some(r)) = (mesh.uvs.get(a), mesh.uvs.get(b), mesh.uvs.get(c)) else {
            continue;
        };
        let turned = (q[0] - p[0]) * (r[1] - p[1]) - (q[1] - p[1]) * (r[0] - p[0]);
        let [x, y, z] = [a, b, c].map(|v| Vec3::from_array(mesh.positions[v]));
        let face = (y - x).cross(z - x);
        let outside = mesh.normals.get(a).map_or(1.0, |n| face.dot(Vec3::from_array(*n)));
        balance += if turned * outside > 0.0 { 1 } else { -1 };
    }
    balance > 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strips_and_fans_keep_their_sides() {
        assert_eq!(triangles(Mode::Triangles, &[0, 1, 2, 3, 4, 5]), [[0, 1, 2], [3, 4, 5]]);
        assert_eq!(triangles(Mode::TriangleStrip, &[0, 1, 2, 3]), [[0, 1, 2], [2, 1, 3]]);
        assert_eq!(triangles(Mode::TriangleFan, &[0, 1, 2, 3]), [[0, 1, 2], [0, 2, 3]]);
    }
}
