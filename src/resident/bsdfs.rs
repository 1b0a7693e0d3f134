//! BSDFs flattened: each side of a surface is a mixture of leaves, whose weights are products of textures' values.

use bytemuck::Zeroable;
use glam::{Affine2, Vec2};

use super::layout::{
    self, BsdfRecord, FactorRecord, LeafRecord, NONE, TextureRecord, VolumeRecord, bsdf as flag, leaf, slots_of,
};
use super::paths::{volume_record, wrap_code};
use super::slot;
use crate::each::EachEntry;
use crate::params::ParamSet;
use crate::scene::{Array, Bsdf, Material, Model, NestedBsdf, Relief, Texture};

/// The records of all BSDFs of a scene.
#[derive(Debug, Clone, Default)]
pub struct Bsdfs {
    pub bsdfs: Vec<BsdfRecord>,
    pub leaves: Vec<LeafRecord>,
    pub factors: Vec<FactorRecord>,
    pub textures: Vec<TextureRecord>,
    /// The volumes of textures, until [`Self::place_volumes`] appends them to the scene's.
    volumes: Vec<VolumeRecord>,
    /// For each BSDF its path in the scene: what several surfaces share is one record.
    paths: Vec<String>,
}

/// A leaf of one side with the factors of its weight, while mixtures are flattened.
#[derive(Debug, Clone, PartialEq)]
struct Part {
    leaf: LeafRecord,
    factors: Vec<FactorRecord>,
}

impl Bsdfs {
    /// Bytes of the records.
    pub(super) fn bytes(&self) -> usize {
        size_of_val(&self.bsdfs[..])
            + size_of_val(&self.leaves[..])
            + size_of_val(&self.factors[..])
            + size_of_val(&self.textures[..])
    }

    /// Adds the BSDF at `path` of a shape and returns its index; [`NONE`] if light just passes.
    pub(super) fn add(&mut self, bsdf: &Bsdf, path: &str, shape: &str, params: &ParamSet) -> u32 {
        if matches!(bsdf, Bsdf::Null) {
            return NONE;
        }
        let path = match bsdf.shows_attributes() {
            true => format!("{path} of {shape}"),
            false => path.to_string(),
        };
        if let Some(known) = self.paths.iter().position(|known| *known == path) {
            return known as u32;
        }
        let sides = self.sides(bsdf, params);
        let mut record = BsdfRecord::zeroed();
        for part in sides.iter().flatten() {
            record.flags |= lobes(part.leaf.kind);
            if part.leaf.relief != NONE || self.is_anisotropic(&part.leaf) {
                record.flags |= flag::ANISOTROPIC;
            }
            let mut factors = part.factors.iter().map(|factor| factor.texture);
            if part.leaf.flags & leaf::VARIES != 0 || factors.any(|texture| self.is_tuned(texture, params)) {
                record.flags |= flag::VARIES;
            }
        }
        let [front, back] = sides.map(|parts| self.push(parts));
        (record.front, record.back) = (front, back);
        self.bsdfs.push(record);
        self.paths.push(path);
        self.bsdfs.len() as u32 - 1
    }

    /// Appends the volumes of textures to those of media.
    pub(super) fn place_volumes(&mut self, volumes: &mut Vec<VolumeRecord>) {
        let solid = |record: &&mut TextureRecord| record.kind == layout::texture::VOLUME;
        for record in self.textures.iter_mut().filter(solid) {
            record.other_slot += volumes.len() as u32;
        }
        volumes.append(&mut self.volumes);
    }

    /// Treats no texture as one that a run may change.
    pub fn hold(&mut self) {
        for bsdf in &mut self.bsdfs {
            bsdf.flags &= !flag::VARIES;
        }
        for leaf in &mut self.leaves {
            leaf.flags &= !leaf::VARIES;
        }
    }

    /// Treats every texture as one that a run may change.
    pub(super) fn vary_all(&mut self) {
        for bsdf in &mut self.bsdfs {
            bsdf.flags |= flag::VARIES;
        }
        for leaf in &mut self.leaves {
            leaf.flags |= leaf::VARIES;
        }
    }

    /// Whether a leaf may look different when it is turned about its normal: its roughnesses along the tangents are two
    /// textures, or it is principled and has an anisotropy, which may be zero.
    fn is_anisotropic(&self, leaf: &LeafRecord) -> bool {
        let texture = |i: u32| self.textures[(leaf.first_texture + i) as usize];
        match leaf.kind {
            leaf::ROUGH_CONDUCTOR | leaf::ROUGH_DIELECTRIC => texture(3) != texture(4),
            leaf::PRINCIPLED | leaf::PRINCIPLED_THIN => true,
            _ => false,
        }
    }

    fn is_tuned(&self, texture: u32, params: &ParamSet) -> bool {
        let slots = slots_of(&self.textures, texture);
        slots
            .iter()
            .any(|&slot| params.parameters[slot as usize].tuning.is_some())
    }

    /// Adds the leaves of a side; returns the index of the first and their number.
    fn push(&mut self, parts: Vec<Part>) -> [u32; 2] {
        let range = [self.leaves.len() as u32, parts.len() as u32];
        for part in parts {
            let coat = self.coats() as u32;
            self.leaves.push(LeafRecord {
                coat,
                first_factor: self.factors.len() as u32,
                factors: part.factors.len() as u32,
                ..part.leaf
            });
            self.factors.extend(part.factors);
        }
        range
    }

    /// The leaves on the front and on the back.
    fn sides(&mut self, bsdf: &Bsdf, params: &ParamSet) -> [Vec<Part>; 2] {
        match bsdf {
            Bsdf::Null => {
                let null = Part {
                    leaf: blank(),
                    factors: Vec::new(),
                };
                [vec![null.clone()], vec![null]]
            }
            Bsdf::Material(material) => {
                let part = Part {
                    leaf: self.leaf(material, params),
                    factors: Vec::new(),
                };
                let back = if material.transmits() {
                    vec![part.clone()]
                } else {
                    Vec::new()
                };
                [vec![part], back]
            }
            Bsdf::TwoSided { sides } => {
                let front = self.sides(&sides[0].bsdf, params)[0].clone();
                let mut back = match sides.get(1) {
                    Some(second) => self.sides(&second.bsdf, params)[0].clone(),
                    None => front.clone(),
                };
                for part in &mut back {
                    part.leaf.flags ^= match part.leaf.relief {
                        NONE => leaf::TURNED,
                        _ => leaf::RELIEF_TURNED,
                    };
                }
                [front, back]
            }
            Bsdf::Mask { opacity, nested } => {
                let opacity = self.texture(opacity, params);
                self.mixture(opacity, [&NULL, &nested.bsdf], params)
            }
            Bsdf::Blend { weight, nested } => {
                let weight = self.texture(weight, params);
                let [first, second] = &**nested;
                let parts: [&NestedBsdf; 2] = [first, second];
                self.mixture(weight, parts.each(|part| &part.bsdf), params)
            }
            Bsdf::Relief { relief, nested } => self.relieved(relief, &nested.bsdf, params),
        }
    }

    /// The leaf of a material.
    fn leaf(&mut self, material: &Material, params: &ParamSet) -> LeafRecord {
        let mut record = blank();
        record.kind = kind(material.model);
        let inputs = &material.inputs;
        let textures: Vec<TextureRecord> = inputs.iter().map(|input| self.record(&input.texture, params)).collect();
        record.first_texture = self.textures.len() as u32;
        for (input, texture) in inputs.iter().zip(textures) {
            let texture = self.keep(texture);
            record.flags |= if self.is_tuned(texture, params) {
                leaf::VARIES
            } else {
                0
            };
            match input.key {
                // The same along both tangents.
                "alpha" if record.kind != leaf::ROUGH_PLASTIC => self.textures.push(self.textures[texture as usize]),
                "specular" => record.flags |= leaf::SPECULAR,
                _ => {}
            }
        }
        record.textures = self.textures.len() as u32 - record.first_texture;
        let flags = [
            (material.facets.beckmann, leaf::BECKMANN),
            (!material.facets.visible, leaf::ALL_NORMALS),
            (material.nonlinear, leaf::NONLINEAR),
        ];
        record.flags |= flags.iter().filter(|(set, _)| *set).map(|(_, flag)| flag).sum::<u32>();
        record.rates = material.rates;
        record
    }

    /// The leaves of (1 - x) · first + x · second, where x is the texture's value.
    fn mixture(&mut self, texture: u32, bsdfs: [&Bsdf; 2], params: &ParamSet) -> [Vec<Part>; 2] {
        let mut sides = [Vec::new(), Vec::new()];
        for (bsdf, complement) in bsdfs.into_iter().zip([1, 0]) {
            for (side, parts) in sides.iter_mut().zip(self.sides(bsdf, params)) {
                side.extend(parts.into_iter().map(|mut part| {
                    part.factors.push(FactorRecord {
                        texture,
                        complement,
                        padding: [0; 2],
                    });
                    part
                }));
            }
        }
        sides
    }

    /// The leaves of a BSDF under a normal map or a bump map.
    fn relieved(&mut self, relief: &Relief, nested: &Bsdf, params: &ParamSet) -> [Vec<Part>; 2] {
        let texture = self.texture(&relief.texture, params);
        let mut sides = self.sides(nested, params);
        if !relief.flips {
            // A path may hit the front of the relief from the back of the surface, and the other way round.
            let all = either_side(sides);
            sides = [all.clone(), all];
        }
        let flags = [
            (relief.bump_scale.is_some(), leaf::BUMP),
            (relief.flips, leaf::FLIPS),
            (relief.shadows, leaf::SHADOWS),
        ];
        let flags = flags.iter().filter(|(set, _)| *set).map(|(_, flag)| flag).sum::<u32>();
        for part in sides.iter_mut().flatten() {
            part.leaf.relief = texture;
            part.leaf.flags |= flags;
            part.leaf.bump_scale = relief.bump_scale.unwrap_or(1.0);
        }
        sides
    }

    /// Adds a texture and returns its index.
    pub(super) fn texture(&mut self, texture: &Texture, params: &ParamSet) -> u32 {
        let record = self.record(texture, params);
        self.keep(record)
    }

    fn keep(&mut self, record: TextureRecord) -> u32 {
        self.textures.push(record);
        self.textures.len() as u32 - 1
    }

    /// The record of a checkerboard of textures, which are added.
    fn squares(&mut self, textures: &[Texture; 2], to_uv: &Affine2, params: &ParamSet) -> TextureRecord {
        let [first, second] = [0, 1].each(|i| self.texture(&textures[i], params));
        let channels = self.textures[first as usize].channels;
        let [slot, other_slot] = Texture::in_order([first, second], channels as usize);
        TextureRecord {
            kind: layout::texture::SQUARES,
            slot,
            other_slot,
            channels,
            to_uv: uv_rows(to_uv),
            ..TextureRecord::zeroed()
        }
    }

    /// The record of a texture. Others that it shows are added; itself is not.
    fn record(&mut self, texture: &Texture, params: &ParamSet) -> TextureRecord {
        let mut record = TextureRecord::zeroed();
        let place = |array: &Array| slot(params, array) as u32;
        let (array, to_uv) = match texture {
            Texture::Constant(array) => (array, &Affine2::IDENTITY),
            Texture::Checkerboard { colors, to_uv } => {
                let [agreeing, other] = Texture::squares(colors);
                record.kind = layout::texture::CHECKERBOARD;
                record.other_slot = place(other);
                (agreeing, to_uv)
            }
            Texture::Squares { textures, to_uv, .. } => return self.squares(textures, to_uv, params),
            Texture::Bitmap(map) => {
                record.kind = layout::texture::BITMAP;
                record.filter = match map.nearest {
                    true => layout::lookup::NEAREST,
                    false => layout::lookup::TRILINEAR,
                };
                record.wrap = wrap_code(map.wrap);
                (&map.data, &map.to_uv)
            }
            Texture::Attribute(map) => {
                record.kind = match map.name.starts_with("face_") {
                    true => layout::texture::FACES,
                    false => layout::texture::VERTICES,
                };
                (&map.values, &Affine2::from_scale(Vec2::splat(map.scale)))
            }
            Texture::Volume { volume, .. } => {
                record.kind = layout::texture::VOLUME;
                record.other_slot = self.volumes.len() as u32;
                self.volumes.push(volume_record(volume, params));
                (&volume.array, &Affine2::IDENTITY)
            }
        };
        record.slot = place(array);
        record.channels = array.shape.channels as u32;
        record.to_uv = uv_rows(to_uv);
        record
    }
}

const NULL: Bsdf = Bsdf::Null;

/// A leaf record that lets light pass, without textures, factors and relief.
fn blank() -> LeafRecord {
    LeafRecord {
        relief: NONE,
        ..LeafRecord::zeroed()
    }
}

/// The leaves of both sides in one list; one that only one side has is flagged to be on that side alone.
fn either_side([front, back]: [Vec<Part>; 2]) -> Vec<Part> {
    let (both, behind): (Vec<Part>, Vec<Part>) = back.into_iter().partition(|part| front.contains(part));
    let bound = |parts: Vec<Part>, flag: u32| {
        parts.into_iter().map(move |mut part| {
            part.leaf.flags |= flag;
            part
        })
    };
    let (shared, before): (Vec<Part>, Vec<Part>) = front.into_iter().partition(|part| both.contains(part));
    let one_sided = bound(before, leaf::FRONT).chain(bound(behind, leaf::BACK));
    shared.into_iter().chain(one_sided).collect()
}

fn kind(model: Model) -> u32 {
    match model {
        Model::Diffuse => leaf::DIFFUSE,
        Model::Conductor => leaf::CONDUCTOR,
        Model::RoughConductor => leaf::ROUGH_CONDUCTOR,
        Model::Dielectric => leaf::DIELECTRIC,
        Model::ThinDielectric => leaf::THIN_DIELECTRIC,
        Model::RoughDielectric => leaf::ROUGH_DIELECTRIC,
        Model::Plastic => leaf::PLASTIC,
        Model::RoughPlastic => leaf::ROUGH_PLASTIC,
        Model::Principled => leaf::PRINCIPLED,
        Model::PrincipledThin => leaf::PRINCIPLED_THIN,
    }
}

/// The flags that a leaf of this kind gives to its BSDF.
fn lobes(kind: u32) -> u32 {
    match kind {
        leaf::NULL | leaf::THIN_DIELECTRIC => flag::NULL,
        leaf::CONDUCTOR | leaf::DIELECTRIC => 0,
        _ => flag::SMOOTH,
    }
}

fn uv_rows(to_uv: &Affine2) -> [[f32; 4]; 2] {
    let (m, t) = (to_uv.matrix2, to_uv.translation);
    [[m.x_axis.x, m.y_axis.x, t.x, 0.0], [m.x_axis.y, m.y_axis.y, t.y, 0.0]]
}
