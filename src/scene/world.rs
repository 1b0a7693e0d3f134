//! Shapes, scattering media and lights as typed data.

use std::path::{Path, PathBuf};

use glam::{Affine2, Affine3A};

use super::Array;
use crate::io;
use crate::io::mesh::{Mesh, read_obj, read_ply};

/// What light is followed through.
#[derive(Debug, Clone, Default)]
pub struct World {
    pub surfaces: Vec<Surface>,
    pub media: Vec<Medium>,
    /// Lights without a surface.
    pub lights: Vec<Light>,
}

impl World {
    /// Whether there is nothing to follow light through.
    pub fn is_empty(&self) -> bool {
        self.surfaces.is_empty() && self.media.is_empty() && self.lights.is_empty()
    }
}

/// A shape and what it is made of.
#[derive(Debug, Clone)]
pub struct Surface {
    /// Its key in the file.
    pub name: String,
    pub geometry: Geometry,
    /// The shape's own space into the world.
    pub to_world: Affine3A,
    pub flip_normals: bool,
    pub bsdf: Bsdf,
    /// Indices into [`World::media`].
    pub interior: Option<usize>,
    pub exterior: Option<usize>,
    /// Radiance of an `area` emitter; a value of three channels.
    pub radiance: Option<Array>,
}

impl Surface {
    /// The file of its mesh.
    pub(super) fn mesh_file(&self) -> Option<&Path> {
        match &self.geometry {
            Geometry::Mesh { path, .. } => Some(path),
            _ => None,
        }
    }
}

/// The form of a shape in its own space.
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
    /// A file that has been found.
    Mesh {
        path: PathBuf,
        format: MeshFormat,
        face_normals: bool,
        flip_tex_coords: bool,
    },
}

/// How a mesh is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MeshFormat {
    Obj,
    Ply,
}

impl MeshFormat {
    /// Reads a mesh of this format; with `face_normals` without those of its vertices.
    ///
    /// # Errors
    /// The file cannot be read, or is no such mesh.
    pub fn read(self, path: &Path, face_normals: bool, flip_tex_coords: bool) -> io::Result<Mesh> {
        match self {
            Self::Obj => read_obj(path, face_normals, flip_tex_coords),
            Self::Ply => read_ply(path, face_normals, flip_tex_coords),
        }
    }
}

/// How a surface reflects.
#[derive(Debug, Clone)]
pub enum Bsdf {
    /// Lets light pass as if it were not there.
    Null,
    /// Lambertian, on the side of the normal.
    Diffuse { reflectance: Texture },
}

/// Colours over a surface.
#[derive(Debug, Clone)]
pub enum Texture {
    Constant([f32; 3]),
    Checkerboard { colors: [[f32; 3]; 2], to_uv: Affine2 },
    Bitmap(TextureMap),
}

/// An image over a surface.
#[derive(Debug, Clone)]
pub struct TextureMap {
    /// Three channels, each a share of light.
    pub reflectance: Array,
    pub nearest: bool,
    pub wrap: Wrap,
    pub to_uv: Affine2,
}

/// What lies outside a grid's or an image's unit interval.
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
    /// Whether it fills its shapes; else it also ends at the box around the place of `sigma_t`.
    pub homogeneous: bool,
    /// Extinction per unit of length before `scale`: one channel or three.
    pub sigma_t: Lookup,
    /// One channel or three.
    pub albedo: Lookup,
    /// Radiance, weighted by the absorption coefficient; one channel or three.
    pub emission: Option<Lookup>,
    /// Multiplies `sigma_t`.
    pub scale: f32,
    pub phase: Phase,
}

/// A volume: an array and where it lies.
#[derive(Debug, Clone)]
pub struct Lookup {
    pub array: Array,
    /// The same value everywhere: `nearest` and `wrap` do not matter, and `to_world` only bounds a medium.
    pub constant: bool,
    /// The unit cube into the world.
    pub to_world: Affine3A,
    pub nearest: bool,
    pub wrap: Wrap,
}

/// How a medium scatters.
#[derive(Debug, Clone)]
pub enum Phase {
    Isotropic,
    /// Henyey–Greenstein; a value of one channel in (-1, 1).
    Hg {
        g: Array,
    },
    Rayleigh,
    /// `weight` of the second, the rest of the first.
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
    /// Intensity of a point or spot, irradiance of a directional light; a value of three channels.
    pub intensity: Array,
}

/// Where a light is and where it points.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum LightKind {
    Point {
        position: [f32; 3],
    },
    /// Light travels along +z of `to_world`; angles in radians.
    Spot {
        to_world: Affine3A,
        cutoff: f32,
        beam: f32,
    },
    /// The unit direction that light travels along.
    Directional {
        direction: [f32; 3],
    },
}

/// How light is followed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Integrator {
    pub estimator: Estimator,
    /// Longest path, in edges; none for no limit.
    pub max_depth: Option<u32>,
    /// Depth from which Russian roulette may end a path.
    pub rr_depth: u32,
    /// Emitters are not seen by the camera directly.
    pub hide_emitters: bool,
    pub gradient: Gradient,
}

impl Default for Integrator {
    fn default() -> Self {
        Self {
            estimator: Estimator::PathReplay,
            max_depth: None,
            rr_depth: 5,
            hide_emitters: false,
            gradient: Gradient::Auto,
        }
    }
}

/// How derivatives are propagated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Estimator {
    /// Path replay backpropagation: `volpath` and `prbvolpath`.
    #[default]
    PathReplay,
    /// Conventional reverse-mode differentiation of the same walk, recorded on a tape: `advolpath`.
    Tape,
    /// Radiative backpropagation: `rbvolpath`.
    Radiative(Variant),
}

impl Estimator {
    /// Whether an iteration renders along the paths of its adjoint, which carry the adjoint image of the one before.
    pub fn is_pipelined(self) -> bool {
        matches!(self, Self::Radiative(Variant::Pipelined | Variant::BiasedPipelined))
    }
}

/// What radiative backpropagation saves (NimierDavid2020, section 3.8).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Variant {
    /// Nothing: radiance is estimated by a path of its own at every interaction.
    #[default]
    Unbiased,
    /// Those paths: radiance is taken for one where light is scattered.
    Biased,
    /// The primal pass: it is made along with the adjoint, which carries the adjoint image of the iteration before.
    Pipelined,
    /// Both.
    BiasedPipelined,
}

/// How extinction is differentiated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Gradient {
    /// What suits the scene: [`Self::Paired`] where there is a background, else [`Self::Drt`]; of a tape what it can
    /// do.
    #[default]
    Auto,
    /// At the collisions of free-flight sampling.
    FreeFlight,
    /// Differential ratio tracking.
    Drt,
    /// Differential tracking along the flight itself: what comes through a point and what is scattered there, together.
    Paired,
}
