//! Parses a Mitsuba-style JSON scene file into plain, validated, typed data.
//!
//! Independent of devices and transport. Checking a scene reads only the headers of arrays; [`crate::resident`] reads
//! their values.

mod area;
mod arrays;
mod attributes;
mod bsdf;
mod change;
mod cie;
mod coin;
mod color;
mod context;
mod dataset;
mod definitions;
mod diagnostics;
mod emitter;
pub mod figures;
mod files;
mod film;
mod gradient_index;
mod instance;
mod integrator;
mod json;
pub mod leaves;
mod lens;
mod light;
mod lookup;
mod magnifier;
mod material;
pub mod materials;
mod medium;
mod motion;
mod noise;
mod object;
mod optic;
mod optimize;
mod painted;
mod parameters;
mod phase;
mod planet;
mod plume;
mod quantity;
mod radiance_field;
mod reader;
mod reference;
mod relief;
mod ridges;
mod root;
mod sampler;
mod schema;
mod sensor;
mod shape;
mod slab;
mod source;
mod spectrum;
mod splats;
mod texture;
mod transform;
mod unseen;
mod uv;
mod views;
mod vocabulary;
mod volume;
mod warnings;
mod world;
mod write;

use std::path::{Path, PathBuf};

use glam::{Affine3A, Quat, Vec3};

pub use self::arrays::Visited;
pub use self::change::Change;
pub use self::diagnostics::{Diagnostic, Diagnostics, Place};
pub use self::gradient_index::IndexCube;
pub use self::integrator::{Aov, AovKind, Channels, Estimator, Gradient, Integrator, Rules, Variant};
pub use self::motion::Motion;
pub use self::optic::{Optic, SPLAT_REACH, is_light, screen_reflectance};
pub use self::quantity::MAX_LIGHT;
pub use self::relief::Motif;
pub use self::root::{load, load_asking, load_target, load_with, parse};
pub use self::schema::schema;
pub use self::slab::Slab;
pub use self::splats::{ARRAYS as SPLAT_ARRAYS, Order, Placement, Splats};
pub use self::views::{POSE, ViewPart};
pub use self::vocabulary::tag;
pub use self::world::{
    AreaEmitter, AttributeMap, Bsdf, Displacement, Geometry, Group, Instance, Light, LightKind, Lookup, Material,
    Medium, MeshFormat, Model, NestedBsdf, Phase, Relief, Surface, Texture, TextureMap, World, Wrap,
};

pub use crate::io::dataset::Distortion;
pub use crate::kernels::loss::Loss;
pub use crate::kernels::optimizer::Optimizer;
pub use crate::kernels::regularizer::Penalty;

use crate::params::{Kind, Shape, Tuning};

/// A whole scene.
#[derive(Debug, Clone, Default)]
pub struct Scene {
    /// The file it came from.
    pub path: PathBuf,
    /// The radiance field, if the scene has one (at most one is supported).
    pub field: Option<RadianceField>,
    /// The splats, if the scene is a picture of them.
    pub splats: Option<Splats>,
    /// Shapes, scattering media and lights at finite distance; empty in a scene of a radiance field.
    pub world: World,
    /// The refracting object that `ptracer` traces light through.
    pub optic: Option<Optic>,
    /// The integrator for `world`.
    pub integrator: Integrator,
    /// What pictures show beside radiance, or in its place.
    pub channels: Channels,
    /// The emitter at infinity.
    pub background: Background,
    /// Every view, data sets expanded, in the order of the file.
    pub sensors: Vec<Sensor>,
    /// Parameters of the views' cameras.
    pub views: Vec<ViewPart>,
    /// The block `optimize`; None for scenes that are only rendered.
    pub optimize: Option<Optimize>,
    /// The scene as JSON with references inlined, data sets expanded and defaults filled in. File names in it are
    /// absolute, so that it can be moved; parsing it gives the same scene.
    pub resolved: serde_json::Value,
    /// Probable mistakes that are valid, one sentence each.
    pub warnings: Vec<String>,
    /// What derivatives by the optimised parameters leave out, or by those alone that a command asks for; one sentence each.
    pub derivative_warnings: Vec<String>,
    /// Paths of the parameters whose values `initial` of the block `optimize` replaces.
    pub replaced: Vec<String>,
}

impl Scene {
    /// All warnings, for commands that take derivatives.
    pub fn all_warnings(&self) -> impl Iterator<Item = &String> {
        self.warnings.iter().chain(&self.derivative_warnings)
    }

    /// Every array of the scene with its attributes.
    pub fn visit(&self) -> Vec<Visited<&Array>> {
        arrays::all(self)
    }

    /// Every array of the scene with its attributes, for changes, after which [`Self::rewrite`] must be called.
    pub fn visit_mut(&mut self) -> Vec<Visited<&mut Array>> {
        arrays::all_mut(self)
    }

    /// The slab, if that is the scene's optic.
    pub fn slab(&self) -> Option<&Slab> {
        match &self.optic {
            Some(Optic::Slab(slab)) => Some(slab),
            _ => None,
        }
    }

    /// Updates [`Self::resolved`] after changes of the scene.
    pub fn rewrite(&mut self) {
        self.resolved = write::to_json(self);
    }

    /// Every array of the scene.
    pub fn arrays(&self) -> Vec<&Array> {
        self.visit().into_iter().map(|visited| visited.array).collect()
    }

    /// The folder of its file; None for a scene from standard input.
    pub fn folder(&self) -> Option<&Path> {
        self.path.parent().filter(|_| self.path != Path::new("-"))
    }

    /// The input files of a render that a run does not replace: meshes, textures, and arrays that are not optimised.
    pub fn files(&self) -> Vec<&Path> {
        self.files_of(|array| array.tuning.is_none())
    }

    /// The input files of a render.
    pub fn inputs(&self) -> Vec<&Path> {
        self.files_of(|_| true)
    }

    fn files_of(&self, counts: impl Fn(&Array) -> bool) -> Vec<&Path> {
        let arrays = self.arrays().into_iter().filter(|array| counts(array));
        let of_arrays = arrays.filter_map(|array| match &array.source {
            Source::GridFile(path) | Source::ImageFile(path) => Some(path.as_path()),
            Source::Reflectance { path, .. }
            | Source::Share { path, .. }
            | Source::Radiance { path, .. }
            | Source::Relief { path, .. } => Some(path.as_path()),
            Source::Attribute { path, .. } => Some(path.as_path()),
            _ => None,
        });
        let grouped = self.world.groups.iter().flat_map(|group| &group.surfaces);
        let meshes = self.world.surfaces.iter().chain(grouped).filter_map(Surface::file);
        of_arrays.chain(meshes).collect()
    }
}

impl RadianceField {
    /// The transform from its grids' unit cube [0, 1]³ to the world.
    pub fn unit_to_world(&self) -> Affine3A {
        let unit_to_cube =
            Affine3A::from_scale_rotation_translation(Vec3::splat(2.0), Quat::IDENTITY, Vec3::splat(-1.0));
        self.to_world * unit_to_cube
    }
}

impl Background {
    /// Its array, if it has one.
    pub fn array(&self) -> Option<&Array> {
        match self {
            Background::None => None,
            Background::Constant { radiance } => Some(radiance),
            Background::Envmap { data, .. } => Some(data),
        }
    }
}

/// The initial values of a parameter.
#[derive(Debug, Clone, PartialEq)]
pub enum Source {
    /// These channels in every texel (one entry is repeated over all channels).
    Fill(Vec<f32>),
    /// A `.vol`, `.npy` or `.vdb` grid; its header was checked.
    GridFile(PathBuf),
    /// An image file, read as linear radiance.
    ImageFile(PathBuf),
    /// An image file of reflectances; with `raw` its values are taken as linear.
    Reflectance { path: PathBuf, raw: bool },
    /// An image file of opacities or weights of BSDFs, likewise; its values are clamped to [0, 1].
    Share { path: PathBuf, raw: bool },
    /// An image file of radiances, intensities or irradiances, likewise.
    Radiance { path: PathBuf, raw: bool },
    /// An image file of normals or heights, likewise.
    Relief { path: PathBuf, raw: bool },
    /// A sum of Gaussians above a base value (one entry or one per channel), at any resolution.
    Blobs { base: Vec<f32>, blobs: Vec<Blob> },
    /// A procedural plume of smoke, at any resolution; `value` is a bound of its density (one entry or one per channel).
    Plume { seed: u64, value: Vec<f32> },
    /// A procedural picture of leaves ([`leaves`]), at any resolution; one channel takes the mean of its colours.
    Leaves { seed: u64 },
    /// The procedural map of a planet ([`planet`]), at any resolution; one channel takes the mean of its colours.
    Planet { seed: u64 },
    /// A procedural relief, at any resolution: heights in one channel, normals in three.
    Motif { motif: Motif, seed: u64 },
    /// The values of a mesh's vertices or faces, in a `.ply`.
    Attribute { path: PathBuf, name: String },
    /// The values of splats, which follow from their [`Placement`].
    Placed,
    /// The vertices of a mesh, a [`Geometry::Mesh`], in world space.
    Vertices { geometry: Geometry, to_world: Affine3A },
    /// The normals of a mesh's vertices in world space.
    VertexNormals { geometry: Geometry, to_world: Affine3A },
}

/// A Gaussian: `value` exp(−½ |p − `center`|² / `radius`²) for a point p of the unit cube.
#[derive(Debug, Clone, PartialEq)]
pub struct Blob {
    pub center: [f32; 3],
    /// Standard deviation in the unit cube.
    pub radius: f32,
    /// One entry for all channels, or one per channel.
    pub value: Vec<f32>,
}

/// An array of the scene that can be optimised.
#[derive(Debug, Clone, PartialEq)]
pub struct Array {
    /// Its path in the file.
    pub path: String,
    pub kind: Kind,
    pub shape: Shape,
    pub source: Source,
    /// Set if the `optimize` block names it; `shape` and `source` then follow its `initial` and `start_resolution`.
    pub tuning: Option<Tuning>,
}

impl Array {
    /// An array of a few numbers (one texel), not optimised; `path` names it.
    pub fn value(path: &str, values: &[f32]) -> Self {
        lookup::value(path.to_string(), values.to_vec())
    }

    /// Whether derivatives by it are wanted: it is among `asked`, or, if that is empty, optimised.
    fn is_wanted(&self, asked: &[String]) -> bool {
        self.tuning.is_some() && (asked.is_empty() || asked.contains(&self.path))
    }
}

/// The activation from raw density to extinction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DensityActivation {
    /// max(x, 0), with derivative 1 at 0.
    #[default]
    Relu,
    /// ln(1 + exp x)
    Softplus,
    /// exp x
    Exp,
}

/// The activation from a sum of spherical harmonics to a colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ColorActivation {
    /// Clamped to [0, 1], with slope 1 on the closed interval.
    #[default]
    Clip,
    /// 1 / (1 + exp(-x))
    Sigmoid,
    /// max(x + 0.5, 0), with derivative 1 at 0.
    ReluHalf,
}

/// An emission–absorption medium that fills a cube with a null BSDF.
#[derive(Debug, Clone)]
pub struct RadianceField {
    /// Maps the cube [-1, 1]³ into the world.
    pub to_world: Affine3A,
    /// Raw density, one channel.
    pub sigma_t: Array,
    /// 3 (degree + 1)² channels; channel of coefficient i and colour c is 3 i + c.
    pub sh_coeffs: Array,
    pub sh_degree: u32,
    pub density_activation: DensityActivation,
    pub color_activation: ColorActivation,
    /// Scales the marching step, which is the smallest voxel edge in world units.
    pub step: f32,
    /// Rays stop when the transmittance falls below this; 0 disables it.
    pub stop: f32,
}

/// The emitter at infinity.
#[derive(Debug, Clone, Default)]
#[allow(clippy::large_enum_variant, reason = "a scene has one")]
pub enum Background {
    /// No emitter: black.
    #[default]
    None,
    /// The same radiance everywhere; 1×1×1×3.
    Constant { radiance: Array },
    /// Latitude–longitude map; shape width×height×1×3.
    Envmap {
        data: Array,
        /// Factor on the whole map: one channel.
        scale: Array,
        /// Its probability in next-event estimation is this weight over the sum of all lights' weights.
        sampling_weight: f32,
        /// Whether directions are drawn in proportion to the radiance above the map's mean (Karlik2019).
        mis_compensation: bool,
        /// Rotates the map's frame into the world.
        to_world: Affine3A,
    },
}

/// Reconstruction filter of a film.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Filter {
    #[default]
    Box,
    Tent {
        radius: f32,
    },
    /// Cut off at four standard deviations.
    Gaussian {
        stddev: f32,
    },
    /// The cubics of Mitchell1988; `b` 0 and `c` 1/2 is Catmull's and Rom's.
    Mitchell {
        b: f32,
        c: f32,
    },
    Lanczos {
        lobes: u32,
    },
}

impl Filter {
    /// Half its width in pixels.
    pub fn radius(self) -> f32 {
        match self {
            Self::Box => 0.5,
            Self::Tent { radius } => radius,
            Self::Gaussian { stddev } => 4.0 * stddev,
            Self::Mitchell { .. } => 2.0,
            Self::Lanczos { lobes } => lobes as f32,
        }
    }
}

/// The channels of a film's files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PixelFormat {
    Luminance,
    LuminanceAlpha,
    #[default]
    Rgb,
    Rgba,
}

/// What a sensor measures.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum SensorKind {
    /// Through a pinhole.
    #[default]
    Perspective,
    /// Through a lens of this radius, focused at this distance, in world units.
    ThinLens { aperture_radius: f32, focus_distance: f32 },
    /// Along parallel rays.
    Orthographic,
    /// Along one ray.
    Radiancemeter,
    /// The irradiance of an area.
    Irradiancemeter(Area),
    /// Along parallel rays that begin at a distance from their target; None: outside of the scene.
    Distant { target: Target, ray_offset: Option<f32> },
}

/// Where the rays of a distant sensor go.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Target {
    /// All over the scene.
    Scene,
    Point([f32; 3]),
    Area(Area),
}

/// A surface from which points are drawn uniformly.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Area {
    pub form: AreaForm,
    /// Transform from the form's local space to the world.
    pub to_world: Affine3A,
    /// Whether its normals are reversed.
    pub flipped: bool,
}

/// The form of an [`Area`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AreaForm {
    /// [-1, 1]² in the plane z = 0, normal +z.
    Rectangle,
    /// The unit disk in the plane z = 0, normal +z.
    Disk,
    /// The unit sphere, which `to_world` scales alike along all axes.
    Sphere,
    /// x² + y² = 1 for z from 0 to 1, without caps, which `to_world` scales alike across its axis.
    Cylinder,
    /// The sides of [-1, 1]³.
    Cube,
}

/// The colour space of the values that rays carry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ColorSpace {
    #[default]
    Linear,
    /// Rays carry sRGB-coded values: they are compared with coded references and decoded when written as EXR.
    Srgb,
}

/// A camera and its film.
#[derive(Debug, Clone, Default)]
pub struct Sensor {
    /// Its key in the file; for a view of a data set, the image's file stem.
    pub name: String,
    /// Camera space to world: +X left, +Y up, +Z forward.
    pub to_world: Affine3A,
    pub width: u32,
    pub height: u32,
    /// If only a crop window of the film is rendered: the sizes of film and window in pixels.
    pub cropped: Option<[[u32; 2]; 2]>,
    /// Focal lengths in pixels; of an orthographic sensor, pixels per unit of length.
    pub focal: [f32; 2],
    /// Principal point in pixels from the image's top left corner.
    pub center: [f32; 2],
    pub distortion: Distortion,
    pub near_clip: f32,
    pub far_clip: f32,
    pub kind: SensorKind,
    pub filter: Filter,
    /// Whether filters at the film's border take samples beside it.
    pub sample_border: bool,
    pub color_space: ColorSpace,
    /// What is written into EXR files, and whether as half floats.
    pub pixel_format: PixelFormat,
    pub half: bool,
    /// The batch whose film it shares with others, side by side.
    pub batch: Option<String>,
    /// Default samples per pixel of renders.
    pub spp: u32,
    /// Its reference photograph; it exists and has the right size after `downscale`.
    pub reference: Option<Reference>,
    /// Excluded from the optimisation and rendered at the end.
    pub held_out: bool,
    /// The medium around the camera: an index into [`World::media`].
    pub medium: Option<usize>,
    /// Its true camera-to-world transform, if `to_world` is wrong on purpose, for an experiment.
    pub undisturbed: Option<Affine3A>,
    /// Parameters that move it in a world of surfaces.
    pub motion: Vec<Motion>,
}

/// A photograph that a view is compared with.
#[derive(Debug, Clone, PartialEq)]
pub struct Reference {
    pub path: PathBuf,
    /// Integer factor of the box reduction applied when it is read.
    pub downscale: u32,
    /// Background of its transparent parts.
    pub backdrop: Backdrop,
}

/// Background of a reference's transparent parts.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Backdrop {
    /// The photograph's alpha is ignored.
    #[default]
    Opaque,
    /// A colour in the film's colour space. The scene's own emitter should be the same colour.
    Color([f32; 3]),
    /// A random colour for every pixel, another in each iteration, behind both photograph and medium.
    Random,
}

/// The block `optimize`.
#[derive(Debug, Clone, PartialEq)]
pub struct Optimize {
    pub iterations: u32,
    /// Samples per pixel of the primal and of the adjoint pass, up to the first stage.
    pub spp: u32,
    pub spp_grad: u32,
    pub batch: BatchRule,
    pub loss: Loss,
    pub optimizer: Optimizer,
    pub schedule: Schedule,
    /// In order of `at`.
    pub stages: Vec<Stage>,
    pub regularizers: Vec<Regularizer>,
    /// How the number of splats changes.
    pub growth: Option<Growth>,
    pub views: ViewRule,
    pub references: References,
    pub seed: u64,
    pub output: OutputRule,
}

/// When cameras are refined, if they are parameters.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ViewRule {
    /// Fraction of the iterations during which they stay where they are.
    pub start: f32,
    /// Iterations after the run in which held-out cameras are refined, while everything else stays; 0: none.
    pub held_out_iterations: u32,
    /// The learning rate in these iterations, which falls to a tenth.
    pub held_out_rate: f32,
}

/// The pixels of one iteration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BatchRule {
    /// Every pixel of every training view.
    AllViews,
    /// Every pixel of this many views, taken in turn from a shuffled order.
    Views(u32),
    /// This many pixels drawn at random from all training views.
    Rays(u32),
}

/// A factor on all learning rates over the run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Schedule {
    pub decay: Decay,
    /// Iterations over which the factor rises linearly from 0 to 1.
    pub warm_up: u32,
}

/// The shape of a schedule after its warm-up.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Decay {
    Constant,
    /// From 1 to `final_factor`, geometrically.
    Exponential {
        final_factor: f32,
    },
    /// From 1 to `final_factor`, along half a cosine.
    Cosine {
        final_factor: f32,
    },
}

/// A change of resolution.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stage {
    /// Fraction of the iterations after which it happens, in (0, 1).
    pub at: f32,
    /// Integer factor on the resolution of every optimised grid, texture and environment map; 1 if there is none.
    pub upsample: u32,
    pub moments: MomentRule,
    /// Samples per pixel of the primal and of the adjoint pass from then on.
    pub spp: u32,
    pub spp_grad: u32,
}

/// Treatment of the optimiser's moments at a change of resolution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MomentRule {
    /// Reset to zero, with the step count of the bias correction.
    Reset,
    /// Resampled like the parameter.
    Resample,
}

/// A penalty on one parameter.
#[derive(Debug, Clone, PartialEq)]
pub struct Regularizer {
    /// Path of an optimised parameter.
    pub parameter: String,
    pub penalty: Penalty,
    pub weight: f32,
    /// Applied at every `every`-th iteration with `every` times the weight.
    pub every: u32,
}

/// Growth of the number of splats during a run, from that of the scene.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Growth {
    /// Number of splats at the end.
    pub count: u32,
    /// Iterations between two changes.
    pub every: u32,
    /// Fraction of the iterations after which the number stays.
    pub until: f32,
}

/// The source of the reference images.
#[derive(Debug, Clone, PartialEq)]
pub enum References {
    /// The sensors' own `image`s.
    Images,
    /// Rendered from this target scene, already checked, by the present scene's sensors.
    Scene { path: PathBuf, spp: u32 },
    /// The same value everywhere.
    Constant([f32; 3]),
    /// A picture of leaves, in the colour space of each film.
    Leaves { seed: u64 },
    /// Pictures drawn from formulas, in the colour space of each film: one for all sensors, or one for each.
    Figures(Vec<figures::Figure>),
}

/// Intervals of outputs in iterations; 0 means never.
#[derive(Debug, Clone, PartialEq)]
pub struct OutputRule {
    /// Interval of previews into `images/`.
    pub images_every: u32,
    /// Names of the sensors to preview; empty: the first training view.
    pub sensors: Vec<String>,
    /// Seconds between checkpoints.
    pub checkpoint_seconds: f32,
    /// Samples per pixel of previews and of held-out views.
    pub spp: u32,
}
