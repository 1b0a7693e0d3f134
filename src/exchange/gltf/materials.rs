//! BSDFs as glTF's materials: base colour, metallic share, roughness, and extensions.

use std::collections::HashMap;

use glam::{Affine2, Vec3};
use serde_json::{Value, json};

use super::super::triangles;
use super::buffer::Buffer;
use crate::io::{Image, Result, image, srgb};
use crate::params::{ParamSet, Parameter};
use crate::scene::{Array, Bsdf, Geometry, Material, Model, Source, Surface, Texture, Wrap};

/// glTF's codes of filters and of wrap modes.
const NEAREST: u32 = 9728;
const LINEAR: u32 = 9729;
const CLAMP: u32 = 33071;
const MIRROR: u32 = 33648;
const REPEAT: u32 = 10497;

/// The index of refraction of glTF's materials that state none.
const GLTF_INDEX: f32 = 1.5;

/// Roughness of a Lambertian material: without highlights glTF gives it no meaning, and Burley's diffuse lobe, that of
/// Blender's Principled, is flattest here.
const LAMBERTIAN: f32 = 0.45;

/// Takes the place of a colour that glTF cannot express.
const GREY: [f32; 3] = [0.5; 3];

/// A shape's material, and the texture coordinates and colours that its vertices need for it.
#[derive(Debug, Default)]
pub(super) struct Look {
    pub material: usize,
    /// Transforms of texture coordinates; the n-th set of the mesh is transformed by the n-th.
    pub transforms: Vec<Affine2>,
    /// Linear colours of vertices.
    pub colors: Option<Vec<[f32; 3]>>,
}

/// All materials of a file.
#[derive(Debug)]
pub(super) struct Materials<'a> {
    params: &'a ParamSet,
    pub materials: Vec<Value>,
    pub textures: Vec<Value>,
    pub samplers: Vec<Value>,
    pub images: Vec<Value>,
    /// Indices of images by the path of their parameter and by their use.
    known: HashMap<(String, Use), usize>,
}

/// How the texels of an image are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Use {
    /// sRGB-coded colours.
    Color,
    /// Roughnesses in green, the square roots of `alpha`; the rest is one.
    Alpha,
    /// Roughnesses in green, as they are.
    Roughness,
    /// Shares of metal in blue.
    Metal,
    /// Normals; the second component is negated if `flipped`.
    Normal { flipped: bool },
}

/// A material under construction.
struct Making<'n> {
    name: String,
    root: Value,
    pbr: Value,
    look: Look,
    notes: &'n mut Vec<String>,
}

impl Making<'_> {
    fn note(&mut self, what: &str) {
        let name = &self.name;
        self.notes.push(format!("`{name}`: {what}"));
    }

    fn extend(&mut self, extension: &str, value: Value) {
        self.root["extensions"][extension] = value;
    }

    /// Sets the index of refraction. Blender's importer derives the reflectance from it only beside
    /// `KHR_materials_specular`, which is stated unless the material transmits light.
    fn index(&mut self, index: f32, lets_through: bool) {
        let index = index.max(1.0);
        if (index - GLTF_INDEX).abs() > 1e-5 {
            self.extend("KHR_materials_ior", json!({"ior": index}));
            if !lets_through {
                self.extend("KHR_materials_specular", json!({"specularFactor": 1.0}));
            }
        }
    }

    /// States a thickness, by which glTF takes the shape for a solid; otherwise transmitted light would not be
    /// refracted.
    fn solid(&mut self, surface: &Surface) -> Result<()> {
        let mesh = triangles::of_surface(surface)?;
        let all = || mesh.positions.iter().map(|p| Vec3::from_array(*p));
        let [low, high] = [all().reduce(Vec3::min), all().reduce(Vec3::max)].map(Option::unwrap_or_default);
        let edges = (high - low).to_array().into_iter().filter(|edge| *edge > 0.0);
        let thickness = edges.fold(f32::INFINITY, f32::min);
        if thickness.is_finite() {
            self.extend("KHR_materials_volume", json!({"thicknessFactor": thickness}));
        }
        Ok(())
    }

    /// Index of the set of texture coordinates under this transform.
    fn set(&mut self, to_uv: Affine2) -> usize {
        let known = self.look.transforms.iter().position(|known| *known == to_uv);
        known.unwrap_or_else(|| {
            self.look.transforms.push(to_uv);
            self.look.transforms.len() - 1
        })
    }
}

impl<'a> Materials<'a> {
    pub(super) fn new(params: &'a ParamSet) -> Self {
        Self {
            params,
            materials: Vec::new(),
            textures: Vec::new(),
            samplers: Vec::new(),
            images: Vec::new(),
            known: HashMap::new(),
        }
    }

    /// Converts a shape's material; properties that glTF cannot express are added to `notes`.
    pub(super) fn of(
        &mut self,
        surface: &Surface,
        name: &str,
        buffer: &mut Buffer,
        notes: &mut Vec<String>,
    ) -> Result<Look> {
        let mut making = Making {
            name: name.to_owned(),
            root: json!({"name": name}),
            pbr: json!({"metallicFactor": 0.0, "roughnessFactor": 1.0}),
            look: Look::default(),
            notes,
        };
        self.bsdf(&surface.bsdf, surface, &mut making, buffer)?;
        if let Some(emitter) = &surface.emitter {
            self.emission(&emitter.radiance, &mut making, buffer);
        }
        making.root["pbrMetallicRoughness"] = making.pbr;
        making.look.material = self.materials.len();
        self.materials.push(making.root);
        Ok(making.look)
    }

    fn bsdf(&mut self, bsdf: &Bsdf, surface: &Surface, making: &mut Making<'_>, buffer: &mut Buffer) -> Result<()> {
        match bsdf {
            Bsdf::Null => {
                making.root["alphaMode"] = json!("BLEND");
                making.pbr["baseColorFactor"] = json!([0.0, 0.0, 0.0, 0.0]);
            }
            Bsdf::Material(material) => self.material(material, surface, making, buffer)?,
            Bsdf::TwoSided { sides } => {
                making.root["doubleSided"] = json!(true);
                if sides.len() > 1 {
                    making.note("the material of its back is left out: glTF has one for both sides");
                }
                self.bsdf(&sides[0].bsdf, surface, making, buffer)?;
            }
            Bsdf::Mask { opacity, nested } => {
                self.bsdf(&nested.bsdf, surface, making, buffer)?;
                let Some([alpha, ..]) = constant(opacity) else {
                    making.note("the texture of its opacity is left out: glTF takes it from the colour's");
                    return Ok(());
                };
                making.root["alphaMode"] = json!("BLEND");
                let mut base = making.pbr["baseColorFactor"].as_array().cloned();
                let base = base.get_or_insert_with(|| vec![json!(1.0); 4]);
                base[3] = json!(alpha);
                making.pbr["baseColorFactor"] = json!(base);
            }
            Bsdf::Blend { weight, nested } => {
                let second = constant(weight).is_some_and(|[w, ..]| w >= 0.5);
                making.note("glTF has no mixtures of materials: the one with more weight stands for both");
                self.bsdf(&nested[usize::from(second)].bsdf, surface, making, buffer)?;
            }
            Bsdf::Relief { relief, nested } => {
                self.bsdf(&nested.bsdf, surface, making, buffer)?;
                let as_normals = match relief.bump_scale {
                    None => Use::Normal {
                        flipped: goes_round_with_uvs(surface)?,
                    },
                    Some(_) => {
                        making.note("its bump map is left out: glTF has normal maps");
                        return Ok(());
                    }
                };
                match self.texture(&relief.texture, as_normals, making, buffer) {
                    Some(texture) => making.root["normalTexture"] = texture,
                    None => making.note("its normal map is left out: glTF takes images"),
                }
            }
        }
        Ok(())
    }

    fn material(
        &mut self,
        material: &Material,
        surface: &Surface,
        making: &mut Making<'_>,
        buffer: &mut Buffer,
    ) -> Result<()> {
        let input = |key: &str| input(material, key);
        let number = |key: &str| input(key).and_then(constant).map(|[x, ..]| x);
        match material.model {
            Model::Diffuse => {
                self.base_color(input("reflectance"), surface, making, buffer)?;
                // Some programs read only one of the two factors.
                let none = json!({"specularFactor": 0.0, "specularColorFactor": [0.0, 0.0, 0.0]});
                making.extend("KHR_materials_specular", none);
                making.pbr["roughnessFactor"] = json!(LAMBERTIAN);
            }
            Model::Conductor | Model::RoughConductor => {
                making.pbr["metallicFactor"] = json!(1.0);
                let [eta, k, tint] = ["eta", "k", "specular_reflectance"].map(|key| input(key).and_then(constant));
                let factor = tint.unwrap_or([1.0; 3]);
                if let (Some(eta), Some(k)) = (eta, k) {
                    let color = [0, 1, 2].map(|c| factor[c] * mirror(eta[c], k[c]));
                    making.pbr["baseColorFactor"] = json!([color[0], color[1], color[2], 1.0]);
                } else {
                    making.note("the textures of its index are left out: glTF's metals have a colour");
                }
                self.roughness(material, making, buffer);
            }
            Model::Plastic | Model::RoughPlastic => {
                self.base_color(input("diffuse_reflectance"), surface, making, buffer)?;
                self.roughness(material, making, buffer);
                making.index(number("eta").unwrap_or(GLTF_INDEX), false);
            }
            Model::Dielectric | Model::ThinDielectric | Model::RoughDielectric => {
                making.pbr["baseColorFactor"] = json!([1.0, 1.0, 1.0, 1.0]);
                self.base_color(input("specular_transmittance"), surface, making, buffer)?;
                making.extend("KHR_materials_transmission", json!({"transmissionFactor": 1.0}));
                making.index(number("eta").unwrap_or(GLTF_INDEX), true);
                self.roughness(material, making, buffer);
                if material.model != Model::ThinDielectric {
                    making.solid(surface)?;
                }
            }
            Model::Principled | Model::PrincipledThin => self.principled(material, surface, making, buffer)?,
        }
        Ok(())
    }

    fn principled(
        &mut self,
        material: &Material,
        surface: &Surface,
        making: &mut Making<'_>,
        buffer: &mut Buffer,
    ) -> Result<()> {
        let input = |key: &str| input(material, key);
        let number = |key: &str| match input(key) {
            None => 0.0,
            // Of textures that are no images.
            Some(texture) => constant(texture).map_or(0.5, |[x, ..]| x),
        };
        let others = material.inputs.iter().filter(|input| input.key != "base_color");
        if others
            .map(|input| &input.texture)
            .any(|texture| !is_image(texture) && constant(texture).is_none())
        {
            making.note("its textures that are no images become one number, 0.5");
        }
        self.base_color(input("base_color"), surface, making, buffer)?;
        making.pbr["metallicFactor"] = json!(number("metallic"));
        making.pbr["roughnessFactor"] = json!(number("roughness"));
        let textured = |key| input(key).filter(|texture| is_image(texture));
        match (textured("roughness"), textured("metallic")) {
            (None, None) => {}
            (Some(roughness), metallic) => {
                making.pbr["roughnessFactor"] = json!(1.0);
                if let Some(texture) = self.texture(roughness, Use::Roughness, making, buffer) {
                    making.pbr["metallicRoughnessTexture"] = texture;
                }
                if metallic.is_some() {
                    making.note("the texture of `metallic` is left out: glTF has one image for it and roughness");
                }
            }
            (None, Some(metallic)) => {
                making.pbr["metallicFactor"] = json!(1.0);
                if let Some(texture) = self.texture(metallic, Use::Metal, making, buffer) {
                    making.pbr["metallicRoughnessTexture"] = texture;
                }
            }
        }
        if material.model == Model::Principled {
            // F = 0.08 · specular at normal incidence, which glTF states by an index of refraction.
            let root = (0.08 * number("specular")).max(0.0).sqrt();
            let index = match input("eta") {
                Some(_) => number("eta"),
                None => (1.0 + root) / (1.0 - root),
            };
            making.index(index, number("spec_trans") > 0.0);
        } else {
            making.index(number("eta"), number("spec_trans") > 0.0);
        }
        if number("spec_trans") > 0.0 {
            making.extend(
                "KHR_materials_transmission",
                json!({"transmissionFactor": number("spec_trans")}),
            );
            if material.model == Model::Principled {
                making.solid(surface)?;
            }
        }
        if number("clearcoat") > 0.0 {
            // The coat of a `principled` is a quarter as strong as glTF's, and its alpha follows from its gloss.
            let roughness = (0.1 + (0.001 - 0.1) * number("clearcoat_gloss")).sqrt();
            making.extend(
                "KHR_materials_clearcoat",
                json!({"clearcoatFactor": 0.25 * number("clearcoat"), "clearcoatRoughnessFactor": roughness}),
            );
        }
        for key in ["anisotropic", "spec_tint", "sheen", "flatness", "diff_trans"] {
            if number(key) > 0.0 {
                making.note(&format!("`{key}` is left out: glTF's material has none like it"));
            }
        }
        Ok(())
    }

    /// Sets the roughness of microfacets; zero for a smooth material.
    fn roughness(&mut self, material: &Material, making: &mut Making<'_>, buffer: &mut Buffer) {
        let found = ["alpha", "alpha_u", "alpha_v"]
            .iter()
            .filter_map(|key| material.inputs.iter().find(|input| input.key == *key));
        let alphas: Vec<&Texture> = found.map(|input| &input.texture).collect();
        let Some(first) = alphas.first() else {
            making.pbr["roughnessFactor"] = json!(0.0);
            return;
        };
        match constant(first) {
            Some([alpha, ..]) => making.pbr["roughnessFactor"] = json!(alpha.max(0.0).sqrt().min(1.0)),
            None => match self.texture(first, Use::Alpha, making, buffer) {
                Some(texture) => making.pbr["metallicRoughnessTexture"] = texture,
                None => making.note("the texture of its roughness is left out: glTF takes images"),
            },
        }
        let values: Vec<_> = alphas.iter().map(|alpha| constant(alpha)).collect();
        if values.len() == 2 && values[0] != values[1] {
            making.note("it is as rough along both tangents as along the first: glTF's material is not anisotropic");
        }
    }

    fn base_color(
        &mut self,
        texture: Option<&Texture>,
        surface: &Surface,
        making: &mut Making<'_>,
        buffer: &mut Buffer,
    ) -> Result<()> {
        let Some(texture) = texture else { return Ok(()) };
        let factor = |[r, g, b]: [f32; 3]| json!([r, g, b, 1.0]);
        if let Some(color) = constant(texture) {
            making.pbr["baseColorFactor"] = factor(color);
            return Ok(());
        }
        if let Some(info) = self.texture(texture, Use::Color, making, buffer) {
            making.pbr["baseColorTexture"] = info;
            return Ok(());
        }
        if let (Texture::Attribute(map), Geometry::Mesh { .. }) = (texture, &surface.geometry) {
            let is_of_vertices = map.name.starts_with("vertex_");
            let values = self.parameter(&map.values).map(|p| (&p.values, p.shape.channels));
            if let (true, Some((values, channels))) = (is_of_vertices, values) {
                let color = |v: &[f32]| [0, 1, 2].map(|c: usize| (map.scale * v[c.min(channels - 1)]).clamp(0.0, 1.0));
                making.look.colors = Some(values.chunks_exact(channels).map(color).collect());
                return Ok(());
            }
        }
        making.note("its colours are left out and are grey: glTF takes images and colours of vertices");
        making.pbr["baseColorFactor"] = factor(GREY);
        Ok(())
    }

    /// Sets the emission of the surface.
    fn emission(&mut self, radiance: &Texture, making: &mut Making<'_>, buffer: &mut Buffer) {
        making.note("it shines in programs that take emission for light; glTF has no area lights");
        let (color, strength) = match constant(radiance) {
            Some(radiance) => {
                let most = radiance.iter().copied().fold(0.0, f32::max);
                (radiance.map(|x| if most > 0.0 { x / most } else { 0.0 }), most)
            }
            None => match self.texture(radiance, Use::Color, making, buffer) {
                Some(texture) => {
                    making.root["emissiveTexture"] = texture;
                    ([1.0; 3], 1.0)
                }
                None => ([0.0; 3], 1.0),
            },
        };
        making.root["emissiveFactor"] = json!(color);
        making.extend("KHR_materials_emissive_strength", json!({"emissiveStrength": strength}));
    }

    fn parameter(&self, array: &Array) -> Option<&'a Parameter> {
        Some(&self.params.parameters[self.params.find(&array.path)?])
    }

    /// The reference to a texture in a material; None if the texture is no image.
    fn texture(&mut self, texture: &Texture, made: Use, making: &mut Making<'_>, buffer: &mut Buffer) -> Option<Value> {
        let (path, picture, to_uv, nearest, wrap) = match texture {
            Texture::Bitmap(map) => {
                let picture = super::super::bake::image_of(self.parameter(&map.data)?);
                (map.data.path.clone(), picture, map.to_uv, map.nearest, map.wrap)
            }
            // A checkerboard becomes an image of two by two texels.
            Texture::Checkerboard { colors, to_uv } => {
                let [a, b] = Texture::squares(colors).map(|color| fill(color).unwrap_or(GREY));
                let picture = Image {
                    width: 2,
                    height: 2,
                    channels: 3,
                    data: [a, b, b, a].concat(),
                };
                let path = colors[0]
                    .path
                    .strip_suffix(".color0")
                    .unwrap_or(&colors[0].path)
                    .to_owned();
                (path, picture, *to_uv, true, Wrap::Repeat)
            }
            Texture::Constant(_) | Texture::Squares { .. } | Texture::Attribute(_) | Texture::Volume { .. } => {
                return None;
            }
        };
        let brightest = picture.data.iter().copied().fold(0.0, f32::max);
        if made == Use::Color && brightest > 1.0 {
            making.note("values of its textures above one become one: glTF's images end there");
        }
        let source = *self.known.entry((path, made)).or_insert_with(|| {
            let view = buffer.view(&image::png_bytes(&coded(&picture, made)), None);
            self.images.push(json!({"bufferView": view, "mimeType": "image/png"}));
            self.images.len() - 1
        });
        let filter = if nearest { NEAREST } else { LINEAR };
        let wrap = match wrap {
            Wrap::Clamp => CLAMP,
            Wrap::Repeat => REPEAT,
            Wrap::Mirror => MIRROR,
        };
        let sampler = json!({"magFilter": filter, "minFilter": filter, "wrapS": wrap, "wrapT": wrap});
        let sampler = place_of(&mut self.samplers, sampler);
        let index = place_of(&mut self.textures, json!({"source": source, "sampler": sampler}));
        Some(json!({"index": index, "texCoord": making.set(to_uv)}))
    }
}

/// The index of an entry in a list, to which it is added if it is new.
fn place_of(list: &mut Vec<Value>, entry: Value) -> usize {
    let known = list.iter().position(|known| *known == entry);
    known.unwrap_or_else(|| {
        list.push(entry);
        list.len() - 1
    })
}

/// An image coded for its use in glTF, with values from 0 to 1.
fn coded(picture: &Image, made: Use) -> Image {
    let texel = |t: &[f32]| -> [f32; 3] {
        let at = |c: usize| t[c.min(t.len() - 1)];
        match made {
            Use::Color => [0, 1, 2].map(|c| srgb::encode(at(c).clamp(0.0, 1.0))),
            Use::Alpha => [1.0, at(0).max(0.0).sqrt(), 1.0],
            Use::Roughness => [1.0, at(0), 1.0],
            Use::Metal => [1.0, 1.0, at(0)],
            Use::Normal { flipped } => [at(0), if flipped { 1.0 - at(1) } else { at(1) }, at(2)],
        }
    };
    Image {
        channels: 3,
        data: picture.data.chunks_exact(picture.channels).flat_map(texel).collect(),
        ..*picture
    }
}

/// Whether a texture is an image.
fn is_image(texture: &Texture) -> bool {
    matches!(texture, Texture::Bitmap(_) | Texture::Checkerboard { .. })
}

/// The colour of a texture that is the same everywhere.
fn constant(texture: &Texture) -> Option<[f32; 3]> {
    match texture {
        Texture::Constant(array) => fill(array),
        _ => None,
    }
}

fn fill(array: &Array) -> Option<[f32; 3]> {
    match &array.source {
        Source::Fill(values) => Some([0, 1, 2].map(|c: usize| values[c.min(values.len() - 1)])),
        _ => None,
    }
}

/// Reflectance of a conductor at normal incidence.
fn mirror(eta: f32, k: f32) -> f32 {
    ((eta - 1.0).powi(2) + k * k) / ((eta + 1.0).powi(2) + k * k)
}

/// Whether u, v and the normal form a right-handed frame on most triangles. The second component of our normal maps then
/// points along v; that of glTF's always points against it.
fn goes_round_with_uvs(surface: &Surface) -> Result<bool> {
    let mesh = triangles::with_normals(triangles::of_surface(surface)?);
    let mut balance = 0i64;
    for triangle in &mesh.triangles {
        let [a, b, c] = triangle.map(|v| v as usize);
        let (Some(p), Some(q), Some(r)) = (mesh.uvs.get(a), mesh.uvs.get(b), mesh.uvs.get(c)) else {
            continue;
        };
        let turned = (q[0] - p[0]) * (r[1] - p[1]) - (q[1] - p[1]) * (r[0] - p[0]);
        let [x, y, z] = [a, b, c].map(|v| Vec3::from_array(mesh.positions[v]));
        let faces = (y - x).cross(z - x).dot(Vec3::from_array(mesh.normals[a]));
        balance += if turned * faces > 0.0 { 1 } else { -1 };
    }
    Ok(balance > 0)
}
/// The texture of a material's parameter.
fn input<'a>(material: &'a Material, key: &str) -> Option<&'a Texture> {
    let found = material.inputs.iter().find(|input| input.key == key)?;
    Some(&found.texture)
}
