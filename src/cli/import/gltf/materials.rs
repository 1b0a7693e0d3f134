//! Materials of glTF as BSDFs.

use std::collections::HashMap;
use std::path::PathBuf;

use anyhow::Result;
use gltf::Material;
use gltf::material::AlphaMode;
use serde_json::{Value, json};

use super::Conversion;
use super::textures::{self, Use};

/// F₀ of a `principled` with a `specular` of one.
const MOST_SPECULAR: f64 = 0.08;

/// Strength of glTF's coat over that of a `principled` with the same factor.
const COAT: f64 = 4.0;

/// The alpha of a `principled`'s coat with a gloss of zero and of one.
const GLOSS: [f64; 2] = [0.1, 0.001];

/// The material of a primitive, converted.
#[derive(Debug, Clone, Default)]
pub(super) struct Look {
    /// A reference to a BSDF.
    pub bsdf: Value,
    /// The BSDF with vertex colours as its colour, if no texture gives it.
    pub with_colors: Option<Value>,
    pub emitter: Option<Value>,
    /// The set of texture coordinates of all its textures.
    pub set: u32,
    /// Factor on colours of vertices.
    pub factor: [f32; 3],
}

/// Cache: looks by material and by orientation of the normal map, image files by image and use.
#[derive(Debug, Default)]
pub(super) struct Looks {
    known: HashMap<(Option<usize>, bool), Look>,
    pub files: HashMap<(usize, String), PathBuf>,
}

/// A material's values, as numbers, textures or colours of the scene file.
struct Values {
    color: Value,
    roughness: Value,
    metallic: Value,
    /// F₀ of the part that is no metal.
    reflectance: f64,
    ior: f64,
    transmission: f64,
    /// Whether transmitted light enters a solid, rather than passing a thin sheet.
    is_solid: bool,
    /// Strength and roughness of a coat.
    coat: [f64; 2],
}

impl Values {
    /// The key of the colour in the BSDF.
    fn color_key(&self) -> &'static str {
        if self.is_diffuse() { "reflectance" } else { "base_color" }
    }

    fn is_diffuse(&self) -> bool {
        self.reflectance == 0.0 && self.metallic == json!(0.0) && self.transmission == 0.0 && self.coat[0] == 0.0
    }

    /// Whether it is smooth, rough or thin glass, and nothing else.
    fn is_glass(&self) -> bool {
        let is_plain = self.transmission == 1.0 && self.metallic == json!(0.0) && self.coat[0] == 0.0;
        is_plain && self.roughness.is_number() && (self.is_solid || self.roughness == json!(0.0))
    }

    /// The BSDF without those around it (normal map, two sides, mask).
    fn bsdf(&self) -> Value {
        let color = &self.color;
        if self.is_diffuse() {
            return json!({"type": "diffuse", "reflectance": color});
        }
        if self.is_glass() {
            let roughness = self.roughness.as_f64().unwrap_or(0.0);
            let kind = match (self.is_solid, roughness > 0.0) {
                (true, false) => "dielectric",
                (true, true) => "roughdielectric",
                (false, _) => "thindielectric",
            };
            let mut glass = json!({"type": kind, "int_ior": self.ior, "ext_ior": 1.0, "specular_transmittance": color});
            if roughness > 0.0 {
                glass["distribution"] = json!("ggx");
                glass["alpha"] = json!(roughness * roughness);
            }
            return glass;
        }
        if self.transmission > 0.0 && !self.is_solid {
            return json!({"type": "principledthin", "base_color": color, "roughness": self.roughness,
                "eta": self.ior, "spec_trans": self.transmission});
        }
        let mut bsdf = json!({"type": "principled", "base_color": color, "roughness": self.roughness,
            "metallic": self.metallic});
        let root = self.reflectance.sqrt();
        match self.reflectance > MOST_SPECULAR {
            true => bsdf["eta"] = json!((1.0 + root) / (1.0 - root)),
            false => bsdf["specular"] = json!(self.reflectance / MOST_SPECULAR),
        }
        if self.transmission > 0.0 {
            bsdf["spec_trans"] = json!(self.transmission);
        }
        let [strength, roughness] = self.coat;
        if strength > 0.0 {
            let gloss = (roughness * roughness - GLOSS[0]) / (GLOSS[1] - GLOSS[0]);
            bsdf["clearcoat"] = json!((COAT * strength).min(1.0));
            bsdf["clearcoat_gloss"] = json!(gloss.clamp(0.0, 1.0));
        }
        bsdf
    }
}

impl Conversion<'_> {
    /// Converts a material, once. `turned`: whether u, v and the normal form a right-handed frame; then the second
    /// component of our normal maps points along v, and that of glTF's against it.
    pub(super) fn look(&mut self, material: &Material<'_>, turned: bool, looks: &mut Looks) -> Result<Look> {
        let turned = turned && material.normal_texture().is_some();
        let key = (material.index(), turned);
        if let Some(known) = looks.known.get(&key) {
            return Ok(known.clone());
        }
        let look = self.convert_material(material, turned, looks)?;
        looks.known.insert(key, look.clone());
        Ok(look)
    }

    fn convert_material(&mut self, material: &Material<'_>, turned: bool, looks: &mut Looks) -> Result<Look> {
        let name = material.name().unwrap_or("material").to_owned();
        let mut sets = Vec::new();
        let values = self.values(material, &name, &mut sets, looks)?;
        let wraps = self.wraps(material, turned, &mut sets, looks)?;
        let emitter = self.emitter(material, &name, &mut sets, looks)?;
        if material.occlusion_texture().is_some() {
            self.note(format!("the occlusion of `{name}` is left out: light finds it itself"));
        }
        if sets.windows(2).any(|pair| pair[0] != pair[1]) {
            self.note(format!(
                "`{name}`: all its textures take the texture coordinates of the first"
            ));
        }
        let wrap = |inner: Value| {
            wraps.iter().fold(inner, |inner, around| {
                let mut around = around.clone();
                around["bsdf"] = inner;
                around
            })
        };
        let bsdf = values.bsdf();
        let pbr = material.pbr_metallic_roughness();
        let with_colors = (pbr.base_color_texture().is_none() && bsdf.get(values.color_key()).is_some()).then(|| {
            let mut colored = bsdf.clone();
            colored[values.color_key()] = json!({"type": "mesh_attribute", "name": "vertex_color"});
            wrap(colored)
        });
        let key = self.free(&format!("mat-{name}"));
        self.root.insert(key.clone(), wrap(bsdf));
        let [r, g, b, _] = pbr.base_color_factor();
        Ok(Look {
            bsdf: json!({"type": "ref", "id": key}),
            with_colors,
            emitter,
            set: sets.first().copied().unwrap_or(0),
            factor: [r, g, b],
        })
    }

    fn values(
        &mut self,
        material: &Material<'_>,
        name: &str,
        sets: &mut Vec<u32>,
        looks: &mut Looks,
    ) -> Result<Values> {
        let pbr = material.pbr_metallic_roughness();
        let [r, g, b, _] = pbr.base_color_factor();
        let factor = [r, g, b].map(|x| x.clamp(0.0, 1.0));
        let color = match pbr.base_color_texture() {
            Some(info) => self.textured(&info, Use::Color(factor), sets, looks)?,
            None => rgb(factor),
        };
        let image = pbr.metallic_roughness_texture();
        let mut channel = |channel: usize, value: f32, conversion: &mut Self| match &image {
            Some(info) if value > 0.0 => conversion.textured(info, Use::Channel(channel, value), sets, looks),
            _ => Ok(json!(value.clamp(0.0, 1.0))),
        };
        let roughness = channel(1, pbr.roughness_factor(), self)?;
        let metallic = channel(2, pbr.metallic_factor(), self)?;
        let ior = f64::from(material.ior().unwrap_or(1.5)).clamp(1.0, 10.0);
        let mut reflectance = ((ior - 1.0) / (ior + 1.0)).powi(2);
        if let Some(specular) = material.specular() {
            let [r, g, b] = specular.specular_color_factor().map(f64::from);
            // A grey colour acts as one more factor, except on reflection at grazing angles.
            let is_grey = r == g && g == b && (0.0..=1.0).contains(&r);
            reflectance *= f64::from(specular.specular_factor()).clamp(0.0, 1.0) * if is_grey { r } else { 1.0 };
            if !is_grey && reflectance > 0.0 {
                self.note(format!(
                    "the colour of the highlights of `{name}` is left out: a `principled` has white ones"
                ));
            }
            if specular.specular_texture().is_some() || specular.specular_color_texture().is_some() {
                self.note(format!(
                    "the textures of `KHR_materials_specular` of `{name}` are left out"
                ));
            }
        }
        let transmission = material.transmission();
        if transmission
            .as_ref()
            .is_some_and(|t| t.transmission_texture().is_some())
        {
            self.note(format!("the texture of the transmission of `{name}` is left out"));
        }
        let values = Values {
            color,
            roughness,
            metallic,
            reflectance,
            ior,
            transmission: transmission.map_or(0.0, |t| f64::from(t.transmission_factor()).clamp(0.0, 1.0)),
            is_solid: number(material, "KHR_materials_volume", "thicknessFactor") > 0.0,
            coat: self.coat(material, name),
        };
        self.note_shortfalls(material, &values);
        Ok(values)
    }

    /// Strength and roughness of a coat.
    fn coat(&mut self, material: &Material<'_>, name: &str) -> [f64; 2] {
        const COAT_OF: &str = "KHR_materials_clearcoat";
        let textures = [
            "clearcoatTexture",
            "clearcoatRoughnessTexture",
            "clearcoatNormalTexture",
        ];
        let has = |key: &&str| {
            material
                .extension_value(COAT_OF)
                .is_some_and(|coat| coat.get(key).is_some())
        };
        if textures.iter().any(has) {
            self.note(format!("the textures of the coat of `{name}` are left out"));
        }
        ["clearcoatFactor", "clearcoatRoughnessFactor"].map(|key| number(material, COAT_OF, key).clamp(0.0, 1.0))
    }

    /// Notes the properties of the glTF material that the BSDF lacks.
    fn note_shortfalls(&mut self, material: &Material<'_>, values: &Values) {
        let name = material.name().unwrap_or("material");
        if values.transmission > 0.0 && !values.is_solid {
            self.note(format!(
                "`{name}` is a thin sheet, as glTF has it without `KHR_materials_volume`"
            ));
            if values.metallic != json!(0.0) || values.coat[0] > 0.0 {
                self.note(format!("metal and coat of `{name}` are left out: sheets have none"));
            }
        }
        let volume = material.extension_value("KHR_materials_volume");
        if volume.is_some_and(|volume| volume.get("attenuationDistance").is_some()) {
            self.note(format!("what absorbs light inside of `{name}` is left out"));
        }
        if COAT * values.coat[0] > 1.0 {
            self.note(format!(
                "the coat of `{name}` is a quarter as strong as in glTF, the most that a `principled` has"
            ));
        }
    }

    /// The BSDFs around that of the material, from the innermost: normal map, two sides, mask.
    fn wraps(
        &mut self,
        material: &Material<'_>,
        turned: bool,
        sets: &mut Vec<u32>,
        looks: &mut Looks,
    ) -> Result<Vec<Value>> {
        let mut wraps = Vec::new();
        if let Some(normals) = material.normal_texture() {
            let made = Use::Normal {
                scale: normals.scale(),
                turned,
            };
            let place = normals.extension_value("KHR_texture_transform");
            let set = place.and_then(|place| place.get("texCoord")).and_then(Value::as_u64);
            sets.push(set.map_or(normals.tex_coord(), |set| set as u32));
            let vector = |key: &str, c: usize| place.and_then(|place| place.get(key)?.get(c)?.as_f64());
            let offset = [0, 1].map(|c| vector("offset", c).unwrap_or(0.0) as f32);
            let scale = [0, 1].map(|c| vector("scale", c).unwrap_or(1.0) as f32);
            let rotation = place.and_then(|place| place.get("rotation")?.as_f64()).unwrap_or(0.0) as f32;
            let to_uv = textures::to_uv(offset, rotation, scale);
            let map = self.bitmap(&normals.texture(), made, to_uv, looks)?;
            wraps.push(json!({"type": "normalmap", "normalmap": map}));
        }
        if material.double_sided() && material.transmission().is_none() {
            wraps.push(json!({"type": "twosided"}));
        }
        let bound = match material.alpha_mode() {
            AlphaMode::Opaque => return Ok(wraps),
            AlphaMode::Blend => None,
            AlphaMode::Mask => Some(material.alpha_cutoff().unwrap_or(0.5)),
        };
        let pbr = material.pbr_metallic_roughness();
        let factor = pbr.base_color_factor()[3];
        let opacity = match pbr.base_color_texture() {
            Some(info) => self.textured(&info, Use::Opacity { factor, bound }, sets, looks)?,
            None => json!(bound.map_or(factor, |bound| f32::from(factor >= bound)).clamp(0.0, 1.0)),
        };
        wraps.push(json!({"type": "mask", "opacity": opacity}));
        Ok(wraps)
    }

    /// The emitter of the surface; None if it does not shine.
    fn emitter(
        &mut self,
        material: &Material<'_>,
        name: &str,
        sets: &mut Vec<u32>,
        looks: &mut Looks,
    ) -> Result<Option<Value>> {
        let strength = material.emissive_strength().unwrap_or(1.0).max(0.0);
        let radiance = material.emissive_factor().map(|x| x.max(0.0) * strength);
        if radiance == [0.0; 3] || !radiance.iter().all(|x| x.is_finite()) {
            return Ok(None);
        }
        let radiance = match material.emissive_texture() {
            Some(info) => self.textured(&info, Use::Color(radiance), sets, looks)?,
            None => rgb(radiance),
        };
        if material.double_sided() {
            self.note(format!("`{name}` shines from its front alone"));
        }
        Ok(Some(json!({"type": "area", "radiance": radiance})))
    }
}

/// A number of an extension; zero without it.
fn number(material: &Material<'_>, extension: &str, key: &str) -> f64 {
    let value = material.extension_value(extension).and_then(|value| value.get(key));
    value.and_then(Value::as_f64).unwrap_or(0.0)
}

fn rgb(color: [f32; 3]) -> Value {
    json!({"type": "rgb", "value": color})
}
