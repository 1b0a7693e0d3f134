//! A scene as binary glTF 2.0: shapes with materials and textures, cameras, and lights without a surface.

mod buffer;
mod materials;
mod nodes;

use std::path::Path;

use serde_json::{Value, json};

use crate::io::{Result, atomic};
use crate::params::ParamSet;
use crate::scene::{Background, Bsdf, Optic, Scene};
use buffer::Buffer;
use materials::Materials;

/// A scene converted to glTF.
#[derive(Debug)]
pub struct Export {
    /// The file's bytes.
    pub bytes: Vec<u8>,
    /// The parts of the scene that glTF cannot express, a sentence each.
    pub notes: Vec<String>,
}

/// The extensions of glTF 2.0 that a file may use.
const EXTENSIONS: &[&str] = &[
    "KHR_lights_punctual",
    "KHR_materials_clearcoat",
    "KHR_materials_emissive_strength",
    "KHR_materials_ior",
    "KHR_materials_specular",
    "KHR_materials_transmission",
    "KHR_materials_volume",
];

/// Converts a scene into which [`super::bake`] has put the values of `params`.
///
/// # Errors
/// A mesh can no longer be read, or an image not be coded.
pub fn export(scene: &Scene, params: &ParamSet) -> Result<Export> {
    let mut buffer = Buffer::default();
    let mut materials = Materials::new(params);
    let (mut meshes, mut nodes, mut notes) = (Vec::new(), Vec::new(), left_out(scene));
    for (name, surface) in scene.world.placed_by_name() {
        if matches!(surface.bsdf, Bsdf::Null) && surface.emitter.is_none() {
            notes.push(format!("`{name}` is left out: it only bounds a medium"));
            continue;
        }
        let material = materials.of(&surface, &name, &mut buffer, &mut notes)?;
        let mesh = nodes::mesh(&surface, &name, &material, &mut buffer)?;
        nodes.push(json!({"name": name, "mesh": meshes.len()}));
        meshes.push(mesh);
    }
    let cameras = nodes::cameras(scene, &mut nodes, &mut notes);
    let lights = nodes::lights(scene, &mut nodes, &mut notes);
    let count = nodes.len();
    let mut root = json!({
        "asset": {"version": "2.0", "generator": concat!("prbopt ", env!("CARGO_PKG_VERSION"))},
        "scene": 0,
        "scenes": [{"nodes": (0..count).collect::<Vec<_>>()}],
        "nodes": nodes,
    });
    let mut put = |key: &str, list: Vec<Value>| {
        // glTF allows no empty lists.
        if !list.is_empty() {
            root[key] = Value::Array(list);
        }
    };
    put("meshes", meshes);
    put("cameras", cameras);
    put("materials", materials.materials);
    put("textures", materials.textures);
    put("samplers", materials.samplers);
    put("images", materials.images);
    put("accessors", std::mem::take(&mut buffer.accessors));
    put("bufferViews", std::mem::take(&mut buffer.views));
    if !lights.is_empty() {
        root["extensions"] = json!({"KHR_lights_punctual": {"lights": lights}});
    }
    if !buffer.bytes.is_empty() {
        root["buffers"] = json!([{"byteLength": buffer.bytes.len()}]);
    }
    let text = root.to_string();
    let used: Vec<&str> = EXTENSIONS.iter().copied().filter(|name| text.contains(name)).collect();
    if !used.is_empty() {
        root["extensionsUsed"] = json!(used);
    }
    Ok(Export {
        bytes: binary(&root.to_string(), &buffer.bytes),
        notes,
    })
}

/// Writes a scene into a file.
///
/// # Errors
/// The file cannot be written.
pub fn write(export: &Export, output: &Path) -> Result<()> {
    atomic::write_bytes(output, &export.bytes)
}

/// A sentence for each part of a scene, other than shapes, that glTF cannot express.
fn left_out(scene: &Scene) -> Vec<String> {
    let mut notes = Vec::new();
    if scene.field.is_some() {
        notes.push("the radiance field is left out: glTF has no volumes; export it as .vdb".to_owned());
    }
    if scene.splats.is_some() {
        notes.push("the splats are left out: glTF has none".to_owned());
    }
    match &scene.optic {
        Some(Optic::Slab(slab)) => notes.push(format!(
            "the slab `{}` is left out: export it as .ply, .obj or .stl",
            slab.name
        )),
        Some(Optic::Cube(cube)) => notes.push(format!(
            "the cube `{}` is left out: glTF has no varying index; export its grid as .vdb",
            cube.name
        )),
        None => {}
    }
    for medium in &scene.world.media {
        notes.push(format!(
            "the medium `{}` is left out: glTF has no volumes; export it as .vdb",
            medium.path
        ));
    }
    if !matches!(scene.background, Background::None) {
        notes.push("the light from far away is left out: glTF has no environments".to_owned());
    }
    notes
}

/// The container: a header, then the JSON and the buffer, each padded to a multiple of four bytes.
fn binary(json: &str, buffer: &[u8]) -> Vec<u8> {
    let mut chunks = Vec::new();
    for (kind, bytes, filler) in [(*b"JSON", json.as_bytes(), b' '), (*b"BIN\0", buffer, 0)] {
        if bytes.is_empty() {
            continue;
        }
        let length = bytes.len().next_multiple_of(4);
        chunks.extend((length as u32).to_le_bytes());
        chunks.extend(kind);
        chunks.extend(bytes);
        chunks.resize(chunks.len() + length - bytes.len(), filler);
    }
    let mut out = b"glTF".to_vec();
    out.extend(2u32.to_le_bytes());
    out.extend((12 + chunks.len() as u32).to_le_bytes());
    out.extend(chunks);
    out
}
