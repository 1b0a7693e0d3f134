//! BSDFs and textures as JSON. An object that the file has elsewhere than where it is used is written as a reference, and
//! itself in its own place if that is the top level.

use glam::Affine2;
use serde_json::{Map, Value, json};

use super::super::quantity::Quantity;
use super::super::world::{Material, Model, Relief};
use super::super::{Bsdf, NestedBsdf, Source, Texture};
use super::world::{lookup, wrap};
use super::{channels, file, fill, number, numbers};

/// The key of the object at `path` in the object at `parent`; None if it is not directly in that.
pub(super) fn key_in<'a>(path: &'a str, parent: &str) -> Option<&'a str> {
    let key = path.strip_prefix(parent)?.strip_prefix('.')?;
    (!key.contains('.')).then_some(key)
}

/// The BSDF with this path, used in the object at `parent`.
pub(super) fn place(bsdf: &Bsdf, path: &str, parent: &str, root: &mut Map<String, Value>) -> Value {
    let object = self::bsdf(bsdf, path, root);
    inline_or_refer(object, path, key_in(path, parent).is_some(), root)
}

/// `object` itself if it `is_here`, else a reference to it; an object of the top level is added to `root`.
fn inline_or_refer(object: Value, path: &str, is_here: bool, root: &mut Map<String, Value>) -> Value {
    if is_here {
        return object;
    }
    if !path.contains('.') {
        root.insert(path.to_string(), object);
    }
    json!({"type": "ref", "id": path})
}

fn bsdf(bsdf: &Bsdf, path: &str, root: &mut Map<String, Value>) -> Value {
    match bsdf {
        Bsdf::Null => json!({"type": "null"}),
        Bsdf::Material(material) => self::material(material, path, root),
        Bsdf::TwoSided { sides } => nested(json!({"type": "twosided"}), sides, path, root),
        Bsdf::Mask { opacity, nested: part } => {
            let object = json!({"type": "mask", "opacity": texture(opacity, path, "opacity", root)});
            nested(object, std::slice::from_ref(part), path, root)
        }
        Bsdf::Blend { weight, nested: parts } => {
            let object = json!({"type": "blendbsdf", "weight": texture(weight, path, "weight", root)});
            nested(object, &**parts, path, root)
        }
        Bsdf::Relief { relief, nested: part } => {
            let object = self::relief(relief, bsdf.name(), path, root);
            nested(object, std::slice::from_ref(part), path, root)
        }
    }
}

fn relief(relief: &Relief, name: &str, path: &str, root: &mut Map<String, Value>) -> Value {
    let mut object = json!({
        "type": name,
        "flip_invalid_normals": relief.flips,
        "use_shadowing_function": relief.shadows,
    });
    let key = match relief.bump_scale {
        None => "normalmap",
        Some(scale) => {
            object["scale"] = json!(scale);
            key_in(texture_path(&relief.texture), path).unwrap_or("heights")
        }
    };
    object[key] = texture(&relief.texture, path, key, root);
    object
}

fn material(material: &Material, path: &str, root: &mut Map<String, Value>) -> Value {
    let mut object = json!({"type": material.model.name()});
    for input in &material.inputs {
        let value = texture(&input.texture, path, input.key, root);
        match (input.key, input.quantity) {
            // Files give two indices; only their ratio, `eta`, is kept.
            ("eta", Quantity::Index | Quantity::BendingIndex) => {
                object["int_ior"] = value;
                object["ext_ior"] = json!(1.0);
            }
            (key, _) => object[key] = value,
        }
    }
    if matches!(
        material.model,
        Model::RoughConductor | Model::RoughDielectric | Model::RoughPlastic
    ) {
        object["distribution"] = json!(if material.facets.beckmann { "beckmann" } else { "ggx" });
        object["sample_visible"] = json!(material.facets.visible);
    }
    if matches!(material.model, Model::Plastic | Model::RoughPlastic) {
        object["nonlinear"] = json!(material.nonlinear);
    }
    for (key, rate) in material.model.rate_keys().iter().zip(material.rates) {
        object[*key] = json!(rate);
    }
    object
}

/// Adds nested BSDFs to the object at `path`: under their own keys, or all as `bsdf_0`, `bsdf_1`, … if one of them is
/// elsewhere in the file.
fn nested(mut object: Value, parts: &[NestedBsdf], path: &str, root: &mut Map<String, Value>) -> Value {
    let keys: Option<Vec<&str>> = parts.iter().map(|part| key_in(&part.path, path)).collect();
    for (i, part) in parts.iter().enumerate() {
        let key = match &keys {
            Some(keys) => keys[i].to_string(),
            None => format!("bsdf_{i}"),
        };
        let value = self::bsdf(&part.bsdf, &part.path, root);
        object[key] = inline_or_refer(value, &part.path, keys.is_some(), root);
    }
    object
}

/// The texture that is the parameter `key` of the object at `parent`.
pub(super) fn texture(texture: &Texture, parent: &str, key: &str, root: &mut Map<String, Value>) -> Value {
    let path = texture_path(texture);
    let is_constant = matches!(texture, Texture::Constant(_));
    let is_here = key_in(path, parent) == Some(key);
    let mut object = contents(texture, root);
    if is_constant && !is_here {
        object = json!({"type": "rgb", "value": object});
    }
    inline_or_refer(object, path, is_here, root)
}

/// The path of a texture in the file.
fn texture_path(texture: &Texture) -> &str {
    match texture {
        Texture::Constant(value) => &value.path,
        Texture::Checkerboard { colors, .. } => {
            let color = &colors[0].path;
            color.strip_suffix(".color0").unwrap_or(color)
        }
        Texture::Squares { path, .. } => path,
        Texture::Bitmap(map) => &map.data.path,
        Texture::Attribute(map) => &map.path,
        Texture::Volume { path, .. } => path,
    }
}

fn contents(texture: &Texture, root: &mut Map<String, Value>) -> Value {
    match texture {
        Texture::Constant(value) => fill(value),
        Texture::Checkerboard { colors, to_uv } => json!({
            "type": "checkerboard",
            "color0": fill(&colors[0]),
            "color1": fill(&colors[1]),
            "to_uv": plane_matrix(to_uv),
        }),
        Texture::Squares { path, textures, to_uv } => {
            let [first, second] = &**textures;
            json!({
                "type": "checkerboard",
                "color0": self::texture(first, path, "color0", root),
                "color1": self::texture(second, path, "color1", root),
                "to_uv": plane_matrix(to_uv),
            })
        }
        Texture::Attribute(map) => json!({"type": "mesh_attribute", "name": map.name, "scale": number(map.scale)}),
        Texture::Volume { volume, .. } => json!({"type": "volume", "volume": lookup(volume)}),
        Texture::Bitmap(map) => {
            let mut object = json!({
                "type": "bitmap",
                "filter_type": if map.nearest { "nearest" } else { "bilinear" },
                "wrap_mode": wrap(map.wrap),
                "to_uv": plane_matrix(&map.to_uv),
            });
            match &map.data.source {
                Source::Reflectance { path, raw }
                | Source::Share { path, raw }
                | Source::Radiance { path, raw }
                | Source::Relief { path, raw } => {
                    object["filename"] = file(path);
                    object["raw"] = json!(raw);
                }
                Source::Fill(values) => {
                    let [width, height, _] = map.data.shape.size;
                    object["data"] = json!({"resolution": [width, height], "value": channels(values)});
                }
                Source::Leaves { seed } => {
                    let [width, height, _] = map.data.shape.size;
                    object["data"] = json!({"resolution": [width, height], "leaves": seed});
                }
                Source::Planet { seed } => {
                    let [width, height, _] = map.data.shape.size;
                    object["data"] = json!({"resolution": [width, height], "planet": seed});
                }
                Source::Motif { motif, seed } => {
                    let [width, height, _] = map.data.shape.size;
                    object["data"] = json!({"resolution": [width, height], motif.name(): seed});
                }
                _ => {}
            }
            object
        }
    }
}

fn plane_matrix(m: &Affine2) -> Value {
    let row = |i: usize| numbers(&[m.matrix2.x_axis[i], m.matrix2.y_axis[i], m.translation[i]]);
    json!([row(0), row(1), [0.0, 0.0, 1.0]])
}
