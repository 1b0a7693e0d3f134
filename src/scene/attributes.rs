//! `mesh_attribute`: textures that show values of the vertices or faces of the mesh that they are on.

use crate::io::Result;
use crate::io::mesh::{AttributeHeader, read_ply, read_ply_attributes};
use crate::params::{Kind, Shape};
use std::path::Path;

use super::diagnostics::suggest;
use super::reader::Value;
use super::{Array, AttributeMap, Bsdf, Geometry, MeshFormat, Source, Surface, Texture};

/// The prefixes of attributes' names.
pub(super) const PREFIXES: [&str; 2] = ["vertex_", "face_"];

/// Gives the textures of a shape the values of its mesh; `value` is the shape.
pub(super) fn bind(value: &Value<'_>, surface: &mut Surface) {
    let Surface {
        name,
        geometry,
        bsdf,
        emitter,
        ..
    } = surface;
    let mut maps = Vec::new();
    of_bsdf(bsdf, &mut maps);
    if let Some(emitter) = emitter {
        of_texture(&mut emitter.radiance, &mut maps);
    }
    for map in maps {
        let (attribute, channels) = (map.name.clone(), map.values.shape.channels);
        let what = format!("`{name}` shows `{attribute}` of its mesh");
        let Geometry::Mesh {
            path,
            format: MeshFormat::Ply,
            ..
        } = &*geometry
        else {
            value.error(
                format!("{what}, but is no `ply`"),
                "only meshes of `ply` files have attributes",
            );
            return;
        };
        match found(path, &attribute, channels) {
            Ok(header) => map.values = array(format!("{name}.{attribute}"), path, header),
            Err(why) => value.error(what, why),
        }
    }
}

/// The header of an attribute in a file. Textures of one channel take attributes of one value, those of three channels
/// attributes of one or three.
fn found(path: &Path, name: &str, channels: usize) -> std::result::Result<AttributeHeader, String> {
    let all = read_ply_attributes(path).map_err(|error| error.to_string())?;
    let names: Vec<&str> = all.iter().map(|header| header.name.as_str()).collect();
    let shown = path.display();
    let Some(header) = all.iter().find(|header| header.name == name) else {
        return Err(match names.is_empty() {
            true => format!("{shown} has no attributes"),
            false => format!("{shown} has none of that name: {}", suggest(name, &names)),
        });
    };
    if header.channels == 3 && channels == 1 {
        return Err(format!("it has three values in {shown}, where one is needed"));
    }
    Ok(header.clone())
}

fn array(path: String, file: &Path, header: AttributeHeader) -> Array {
    Array {
        path,
        kind: Kind::Attribute,
        shape: Shape {
            size: [header.count, 1, 1],
            channels: header.channels,
        },
        source: Source::Attribute {
            path: file.to_path_buf(),
            name: header.name,
        },
        tuning: None,
    }
}

/// The values of a mesh's attribute.
pub(super) fn values(path: &Path, name: &str, shape: Shape) -> Result<Vec<f32>> {
    let mesh = read_ply(path, false, false)?;
    let found = mesh.attributes.into_iter().find(|attribute| attribute.name == name);
    let values = found.map(|attribute| attribute.values).unwrap_or_default();
    if values.len() == shape.len() {
        return Ok(values);
    }
    let message = match name.starts_with(PREFIXES[1]) {
        true => format!("`{name}` needs a mesh all of whose faces are triangles"),
        false => format!("`{name}` is no longer what it was when the scene was read"),
    };
    Err(crate::io::IoError::new(path, message))
}

impl Bsdf {
    /// Whether it has a `mesh_attribute` texture, so that its values depend on the mesh that it is on.
    pub fn shows_attributes(&self) -> bool {
        super::arrays::of_bsdf(self)
            .iter()
            .any(|array| array.kind == Kind::Attribute)
    }
}

fn of_bsdf<'a>(bsdf: &'a mut Bsdf, maps: &mut Vec<&'a mut AttributeMap>) {
    match bsdf {
        Bsdf::Null => {}
        Bsdf::Material(material) => {
            for input in &mut material.inputs {
                of_texture(&mut input.texture, maps);
            }
        }
        Bsdf::TwoSided { sides } => sides.iter_mut().for_each(|side| of_bsdf(&mut side.bsdf, maps)),
        Bsdf::Mask { opacity, nested } => {
            of_texture(opacity, maps);
            of_bsdf(&mut nested.bsdf, maps);
        }
        Bsdf::Blend { weight, nested } => {
            of_texture(weight, maps);
            nested.iter_mut().for_each(|part| of_bsdf(&mut part.bsdf, maps));
        }
        Bsdf::Relief { relief, nested } => {
            of_texture(&mut relief.texture, maps);
            of_bsdf(&mut nested.bsdf, maps);
        }
    }
}

fn of_texture<'a>(texture: &'a mut Texture, maps: &mut Vec<&'a mut AttributeMap>) {
    match texture {
        Texture::Attribute(map) => maps.push(map),
        Texture::Squares { textures, .. } => textures.iter_mut().for_each(|texture| of_texture(texture, maps)),
        Texture::Constant(_) | Texture::Checkerboard { .. } | Texture::Bitmap(_) | Texture::Volume { .. } => {}
    }
}
