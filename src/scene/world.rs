//! Shapes, scattering media and lights as typed data.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use glam::{Affine2, Affine3A};

use super::motion::Motion;
use super::quantity::Quantity;
use super::{Array, Source};
use crate::io;
use crate::io::mesh::{Mesh, read_obj, read_ply, read_serialized};

/// A path-traced scene.
#[derive(Debug, Clone, Default)]
pub struct World {
    pub surfaces: Vec<Surface>,
    /// Groups of shapes, which are in the world only where instances show them.
    pub groups: Vec<Group>,
    pub instances: Vec<Instance>,
    pub media: Vec<Medium>,
    /// Lights without a surface.
    pub lights: Vec<Light>,
}

impl World {
    /// Whether there are no shapes, media and lights.
    pub fn is_empty(&self) -> bool {
        let shapes = self.surfaces.is_empty() && self.groups.is_empty();
        shapes && self.media.is_empty() && self.lights.is_empty()
    }

    /// All surfaces in the world: those outside of groups, then for each instance those of its group, under its transform.
    pub fn placed(&self) -> impl Iterator<Item = Cow<'_, Surface>> {
        let shown = self.instances.iter().flat_map(|instance| {
            let surfaces = &self.groups[instance.group].surfaces;
            surfaces.iter().map(|surface| {
                Cow::Owned(Surface {
                    to_world: instance.to_world * surface.to_world,
                    ..surface.clone()
                })
            })
        });
        self.surfaces.iter().map(Cow::Borrowed).chain(shown)
    }

    /// [`Self::placed`] with names: a surface that an instance shows is called `<instance>.<key>`, by its key in the group.
    pub fn placed_by_name(&self) -> impl Iterator<Item = (String, Cow<'_, Surface>)> {
        let shown = self.instances.iter().flat_map(|instance| {
            let surfaces = &self.groups[instance.group].surfaces;
            surfaces.iter().map(|surface| {
                let own = surface.name.rsplit('.').next().unwrap_or_default();
                format!("{}.{own}", instance.name)
            })
        });
        let names = self.surfaces.iter().map(|surface| surface.name.clone()).chain(shown);
        names.zip(self.placed())
    }
}

/// A group of shapes, which instances show.
#[derive(Debug, Clone)]
pub struct Group {
    /// Its path in the file.
    pub path: String,
    /// Surfaces without media and emitters; their names are paths in the file.
    pub surfaces: Vec<Surface>,
}

/// A group of shapes under a transform of its own.
#[derive(Debug, Clone)]
pub struct Instance {
    /// Its key in the file.
    pub name: String,
    /// Index into [`World::groups`].
    pub group: usize,
    pub to_world: Affine3A,
}

/// A shape with BSDF, media and emission.
#[derive(Debug, Clone)]
pub struct Surface {
    /// Its key in the file; its path if it stands in a group.
    pub name: String,
    pub geometry: Geometry,
    /// Transform from local space to the world.
    pub to_world: Affine3A,
    pub flip_normals: bool,
    pub bsdf: Bsdf,
    /// Path of its BSDF in the file; not below the shape's own if it is a reference.
    pub bsdf_path: String,
    /// Indices into [`World::media`].
    pub interior: Option<usize>,
    pub exterior: Option<usize>,
    pub emitter: Option<AreaEmitter>,
    /// Parameters that move it in the world, or its vertices.
    pub motion: Vec<Motion>,
    /// How far the vertices of its mesh are moved.
    pub displacement: Option<Displacement>,
}

/// Heights by which the vertices of a mesh are moved along their normals.
#[derive(Debug, Clone)]
pub struct Displacement {
    /// One channel: an image or a constant.
    pub height: Texture,
    /// Factor from heights to world units.
    pub scale: f32,
}

impl Displacement {
    /// The heights.
    pub fn array(&self) -> &Array {
        match &self.height {
            Texture::Bitmap(map) => &map.data,
            Texture::Constant(array) => array,
            other => panic!("{other:?} is no displacement"),
        }
    }
}

/// The emitter of a surface.
#[derive(Debug, Clone)]
pub struct AreaEmitter {
    /// Its key in the shape.
    pub name: String,
    /// Emitted radiance, three channels.
    pub radiance: Texture,
    /// Whether light leaves along the normal alone (`directionalarea`), so that no path from a camera can meet it.
    pub directional: bool,
    /// Its probability in next-event estimation is this weight over the sum of all lights' weights.
    pub sampling_weight: f32,
}

impl Surface {
    /// The file of its mesh or of its signed distances; None for a `grid` and for other shapes.
    pub(super) fn file(&self) -> Option<&Path> {
        match &self.geometry {
            Geometry::Mesh {
                format: MeshFormat::Grid(_),
                ..
            } => None,
            Geometry::Mesh { path, .. } | Geometry::Distances { path, .. } => Some(path),
            _ => None,
        }
    }
}

/// The form of a shape in local space.
#[derive(Debug, Clone, PartialEq)]
pub enum Geometry {
    /// [-1, 1]³
    Cube,
    Sphere {
        center: [f32; 3],
        radius: f32,
    },
    /// [-1, 1]² in the plane z = 0, normal +z.
    Rectangle,
    /// x² + y² <= 1 in the plane z = 0, normal +z.
    Disk,
    /// Without caps; `ends` are the centres of its two ends.
    Cylinder {
        ends: [[f32; 3]; 2],
        radius: f32,
    },
    /// A mesh from a file, which exists; the path of a [`MeshFormat::Grid`] is empty.
    Mesh {
        path: PathBuf,
        format: MeshFormat,
        face_normals: bool,
        flip_tex_coords: bool,
    },
    /// The zero level of signed distances on a grid that fills [0, 1]³, in a `.vol` file of one channel and two points or
    /// more a side; it exists. With `smooth`, shading normals are blended between cells.
    Distances {
        path: PathBuf,
        smooth: bool,
    },
}

/// The file format of a mesh, or that it is a grid made by the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MeshFormat {
    Obj,
    Ply,
    /// Mitsuba's format; the index of the mesh in the file, from 0.
    Serialized(u32),
    /// No file: [-1, 1]² in the plane z = 0, in this many squares along x and y.
    Grid([u32; 2]),
}

impl MeshFormat {
    /// Reads a mesh of this format; `face_normals` discards vertex normals.
    ///
    /// # Errors
    /// The file cannot be read, or is no valid mesh.
    pub fn read(self, path: &Path, face_normals: bool, flip_tex_coords: bool) -> io::Result<Mesh> {
        match self {
            Self::Obj => read_obj(path, face_normals, flip_tex_coords),
            Self::Ply => read_ply(path, face_normals, flip_tex_coords),
            Self::Serialized(index) => read_serialized(path, index, face_normals),
            Self::Grid(squares) => Ok(Mesh::grid(squares)),
        }
    }
}

/// How a surface scatters light.
#[derive(Debug, Clone)]
pub enum Bsdf {
    /// No scattering: light passes.
    Null,
    /// A BSDF that contains no other BSDF.
    Material(Material),
    /// The first on the front; on the back the second or, without one, the first, turned over.
    TwoSided { sides: Vec<NestedBsdf> },
    /// The nested one with the probability `opacity`; else light passes.
    Mask { opacity: Texture, nested: Box<NestedBsdf> },
    /// `weight` · second + (1 - `weight`) · first.
    Blend {
        weight: Texture,
        nested: Box<[NestedBsdf; 2]>,
    },
    /// A normal map or a bump map: the nested one in the frame of a normal from a texture.
    Relief { relief: Relief, nested: Box<NestedBsdf> },
}

/// A normal map or a bump map.
#[derive(Debug, Clone)]
pub struct Relief {
    /// Normals in three channels, (component + 1) / 2 in the local frame; or heights in one channel.
    pub texture: Texture,
    /// Factor on heights; None if the texture holds normals.
    pub bump_scale: Option<f32>,
    /// Whether x and y of a normal are reversed where the viewer sees its back but the front of the surface, or vice versa.
    pub flips: bool,
    /// Whether a shadowing factor darkens light at grazing angles.
    pub shadows: bool,
}

impl Relief {
    /// What its texture measures.
    pub(super) fn quantity(&self) -> Quantity {
        match self.bump_scale {
            Some(_) => Quantity::Height,
            None => Quantity::Normal,
        }
    }
}

impl Bsdf {
    /// A Lambertian surface of this reflectance.
    pub fn diffuse(reflectance: Texture) -> Self {
        Self::Material(Material::diffuse(reflectance))
    }

    /// Its type in a scene file.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Material(material) => material.model.name(),
            Self::TwoSided { .. } => "twosided",
            Self::Mask { .. } => "mask",
            Self::Blend { .. } => "blendbsdf",
            Self::Relief { relief, .. } => match relief.bump_scale {
                Some(_) => "bumpmap",
                None => "normalmap",
            },
        }
    }
}

/// A BSDF that contains no other BSDF.
#[derive(Debug, Clone)]
pub struct Material {
    pub model: Model,
    /// Its textures in the order of the model's fields. A single `alpha` is the roughness along both tangents; `specular` takes
    /// the place of the index `eta` of a principled BSDF.
    pub inputs: Vec<Input>,
    pub facets: Facets,
    /// Whether light takes on the colour of a plastic's base at each reflection between base and coat.
    pub nonlinear: bool,
    /// Sampling rates of a principled BSDF's lobes: relative shares of the samples.
    pub rates: [f32; 4],
}

/// The scattering model of a [`Material`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Model {
    Diffuse,
    Conductor,
    RoughConductor,
    Dielectric,
    ThinDielectric,
    RoughDielectric,
    Plastic,
    RoughPlastic,
    Principled,
    PrincipledThin,
}

/// A texture of a material: its key in the file, and what it measures.
#[derive(Debug, Clone)]
pub struct Input {
    pub key: &'static str,
    pub quantity: Quantity,
    pub texture: Texture,
}

/// The microfacets of a rough surface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Facets {
    /// Whether their normals follow Beckmann's distribution; else GGX.
    pub beckmann: bool,
    /// Whether only normals that the viewer can see are sampled.
    pub visible: bool,
}

impl Default for Facets {
    fn default() -> Self {
        Self {
            beckmann: true,
            visible: true,
        }
    }
}

/// A BSDF in another, and its path in the file.
#[derive(Debug, Clone)]
pub struct NestedBsdf {
    pub path: String,
    pub bsdf: Bsdf,
}

/// A colour or a number over a surface: arrays of three channels or of one.
#[derive(Debug, Clone)]
pub enum Texture {
    Constant(Array),
    Checkerboard {
        colors: Box<[Array; 2]>,
        to_uv: Affine2,
    },
    /// A checkerboard whose squares show textures, in the order of [`Self::squares`]; `path` is the checkerboard's.
    Squares {
        path: String,
        textures: Box<[Texture; 2]>,
        to_uv: Affine2,
    },
    Bitmap(TextureMap),
    Attribute(AttributeMap),
    /// A volume, looked up at the surface's points in the world; `path` is the texture's.
    Volume {
        path: String,
        volume: Lookup,
    },
}

impl Texture {
    /// Width and height of an image in texels; 1 × 1 for any other texture.
    pub fn picture_size(&self) -> [usize; 2] {
        match self {
            Self::Bitmap(map) => [map.data.shape.size[0], map.data.shape.size[1]],
            Self::Constant(_)
            | Self::Checkerboard { .. }
            | Self::Squares { .. }
            | Self::Attribute(_)
            | Self::Volume { .. } => [1, 1],
        }
    }

    /// The two colours of a checkerboard: first that where u and v are in the same half of their periods. Mitsuba exchanges
    /// them where it asks for a number instead of a colour, such as an `alpha` (its `Checkerboard::eval_1`), and so does
    /// everything here.
    pub fn squares(colors: &[Array; 2]) -> [&Array; 2] {
        let [first, second] = colors;
        Self::in_order([first, second], first.shape.channels)
    }

    /// As [`Self::squares`], of whatever is shown, in values of so many channels.
    pub fn in_order<T>([first, second]: [T; 2], channels: usize) -> [T; 2] {
        match channels {
            1 => [second, first],
            _ => [first, second],
        }
    }

    /// The same value everywhere, of one channel or three; `path` names it.
    pub fn constant(path: &str, values: &[f32]) -> Self {
        Self::Constant(super::lookup::value(path.to_string(), values.to_vec()))
    }

    /// The path of the first of its arrays by which derivatives are wanted ([`Array::is_wanted`]), if any.
    pub(super) fn tuned(&self, asked: &[String]) -> Option<&str> {
        let arrays: Vec<&Array> = match self {
            Self::Constant(array) => vec![array],
            Self::Checkerboard { colors, .. } => colors.iter().collect(),
            Self::Squares { textures, .. } => return textures.iter().find_map(|texture| texture.tuned(asked)),
            Self::Bitmap(map) => vec![&map.data],
            Self::Attribute(map) => vec![&map.values],
            Self::Volume { volume, .. } => vec![&volume.array],
        };
        let tuned = arrays.into_iter().find(|array| array.is_wanted(asked))?;
        Some(&tuned.path)
    }

    /// Whether it is this number everywhere, and no run changes it.
    pub(super) fn is_always(&self, number: f32) -> bool {
        match self {
            Self::Constant(value) => {
                value.tuning.is_none() && matches!(&value.source, Source::Fill(all) if all.iter().all(|x| *x == number))
            }
            Self::Squares { textures, .. } => textures.iter().all(|texture| texture.is_always(number)),
            Self::Checkerboard { .. } | Self::Bitmap(_) | Self::Attribute(_) | Self::Volume { .. } => false,
        }
    }
}

/// An image texture.
#[derive(Debug, Clone)]
pub struct TextureMap {
    /// Texels: reflectances or other factors, radiances, normals or heights.
    pub data: Array,
    pub nearest: bool,
    pub wrap: Wrap,
    pub to_uv: Affine2,
}

/// Values of a mesh's vertices, interpolated over its triangles, or of its faces.
#[derive(Debug, Clone)]
pub struct AttributeMap {
    /// The texture's path in the file.
    pub path: String,
    /// `vertex_` or `face_` and what the mesh's file calls it.
    pub name: String,
    /// Factor on the values.
    pub scale: f32,
    /// The values on the shape that has the texture: one texel along x for each vertex or face.
    pub values: Array,
}

/// Lookups outside of the unit interval of a grid or an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Wrap {
    #[default]
    Clamp,
    Repeat,
    Mirror,
}

/// A medium that absorbs, scatters and emits.
#[derive(Debug, Clone)]
pub struct Medium {
    /// The path of the object in the file.
    pub path: String,
    /// Whether it fills its shapes; otherwise it is also bounded by the box of its `sigma_t` volume.
    pub homogeneous: bool,
    /// Extinction per unit length before `scale`: one channel or three.
    pub sigma_t: Lookup,
    /// One channel or three.
    pub albedo: Lookup,
    /// Emitted radiance, which is weighted by the absorption coefficient; one channel or three.
    pub emission: Option<Lookup>,
    /// Multiplies `sigma_t`.
    pub scale: f32,
    pub phase: Phase,
}

/// A volume: an array and its placement.
#[derive(Debug, Clone)]
pub struct Lookup {
    pub array: Array,
    /// The same value everywhere: `nearest` and `wrap` are irrelevant, and `to_world` only bounds the medium.
    pub constant: bool,
    /// Transform from the unit cube to the world.
    pub to_world: Affine3A,
    pub nearest: bool,
    pub wrap: Wrap,
}

/// A phase function.
#[derive(Debug, Clone)]
pub enum Phase {
    Isotropic,
    /// Henyey–Greenstein; a value of one channel in (-1, 1).
    Hg {
        g: Array,
    },
    Rayleigh,
    /// `weight` · second + (1 - `weight`) · first.
    Blend {
        weight: Box<Lookup>,
        phases: Box<[Phase; 2]>,
    },
}

/// A light without a surface.
#[derive(Debug, Clone)]
pub struct Light {
    pub name: String,
    pub kind: LightKind,
    /// Intensity of a point or spot, irradiance of a directional light: a value of three channels. Scale of a projector:
    /// one channel.
    pub intensity: Array,
    /// Picture of a projector, and perhaps of a spot, of three channels; multiplies `intensity`.
    pub texture: Option<Texture>,
    /// Its probability in next-event estimation is this weight over the sum of all lights' weights.
    pub sampling_weight: f32,
    /// Parameters that move it in the world.
    pub motion: Vec<Motion>,
}

impl Light {
    /// Width and height of its picture in texels; 1 × 1 if it is no image.
    pub fn picture_size(&self) -> [usize; 2] {
        match &self.texture {
            Some(texture) => texture.picture_size(),
            None => [1, 1],
        }
    }
}

/// Position and direction of a light.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum LightKind {
    Point {
        position: [f32; 3],
    },
    /// Light travels along +z of `to_world`; `cutoff` and `beam` are angles to that axis in radians.
    Spot {
        to_world: Affine3A,
        cutoff: f32,
        beam: f32,
    },
    /// The unit direction that light travels along.
    Directional {
        direction: [f32; 3],
    },
    /// Light travels along +z of `to_world`; `fov` is the field of view along x, in degrees.
    Projector {
        to_world: Affine3A,
        fov: f32,
    },
}
