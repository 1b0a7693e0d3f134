//! The records that describe pieces of work to the shaders, byte for byte as in `shaders/common/layout.wgsl`.

use bytemuck::{Pod, Zeroable};

use super::plan::Place;
use crate::device::units::spread;
use crate::params::Shape;
use crate::resident::layout::{NONE, Rows};

/// Invocations of a workgroup that work on rays.
pub const RAY_GROUP: u32 = 64;

/// Vectors of 16 bytes that a uniform buffer holds: 64 KiB, which WebGPU promises.
pub const UNIFORM_VECTORS: u32 = 1 << 12;

/// Invocations of a workgroup that work on elements of arrays.
pub const ELEMENT_GROUP: u32 = 256;

/// Codes of [`Launch::loss_kind`].
pub mod loss {
    pub const L1: u32 = 0;
    pub const L2: u32 = 1;
    pub const HUBER: u32 = 2;
    pub const RELATIVE_L2: u32 = 3;
    pub const LOG_L1: u32 = 4;
    pub const LINEAR: u32 = 5;
    pub const SCALED_L2: u32 = 6;
    /// No loss: sums of image and references.
    pub const MEANS: u32 = 7;
}

/// Codes of [`Launch::reference_kind`].
pub mod reference {
    pub const NONE: u32 = 0;
    pub const CONSTANT: u32 = 1;
    pub const UNORM8: u32 = 2;
    pub const FLOAT: u32 = 3;
}

/// Codes of [`Elements::kind`] in a step.
pub mod optimizer {
    pub const ADAM: u32 = 0;
    pub const SGD: u32 = 1;
    pub const RMSPROP: u32 = 2;
}

/// Codes of [`Elements::kind`] in a regulariser's pass.
pub mod penalty {
    pub const TOTAL_VARIATION: u32 = 0;
    pub const SPARSITY: u32 = 1;
}

/// Where a parameter lies, whether it is optimised, and the resolution of its sums.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
pub struct Slot {
    /// Address of its first entry: [`super::plan::Place::address`].
    pub first: u32,
    /// 1 if it is optimised.
    pub tuned: u32,
    /// Binary digits by which sums in whole numbers are finer than [`Launch::digits`] says.
    pub spread: i32,
    /// The binary order of the radiance's derivative by it, roughly.
    pub magnitude: i32,
}

impl Slot {
    /// A parameter of this shape that a plan puts there.
    pub(super) fn new(place: Place, shape: Shape, tuned: bool, magnitude: i32) -> Self {
        Self {
            first: place.address(),
            tuned: u32::from(tuned),
            spread: spread(shape.texels()),
            magnitude,
        }
    }

    /// No parameter.
    pub const NONE: Self = Self {
        first: NONE,
        tuned: 0,
        spread: 0,
        magnitude: 0,
    };
}

/// A piece of a pass over the rays of a batch.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Pod, Zeroable)]
pub struct Launch {
    /// Keys of the iteration's objective and of the pass.
    pub objective: [u32; 4],
    pub key: [u32; 4],
    /// The parameters of a field, and the radiance behind a scene.
    pub sigma: Slot,
    pub sh: Slot,
    pub emitter: Slot,
    /// The piece: pixels of the batch and samples of each.
    pub first_pixel: u32,
    pub last_pixel: u32,
    pub first_sample: u32,
    pub last_sample: u32,
    /// Samples of the whole pass.
    pub spp: u32,
    /// Pixels are drawn from the table (1) or taken in its order (0).
    pub drawn: u32,
    /// Workgroups a row of the dispatch.
    pub groups_x: u32,
    /// Entries of the pixel table, and where its parts lie among the tables.
    pub sensor_count: u32,
    pub starts_at: u32,
    pub sensors_at: u32,
    pub occupancy_at: u32,
    pub reach_at: u32,
    pub reference_kind: u32,
    pub loss_kind: u32,
    pub loss_delta: f32,
    pub loss_seed: u32,
    /// 1 over the number of values in the batch's image.
    pub adjoint_scale: f32,
    /// Where a world's records begin, kind by kind, in units of 16 bytes, and the places of the parameters.
    pub surfaces_at: u32,
    pub media_at: u32,
    pub volumes_at: u32,
    pub phases_at: u32,
    pub lights_at: u32,
    pub bsdfs_at: u32,
    pub leaves_at: u32,
    pub factors_at: u32,
    pub textures_at: u32,
    pub parameters_at: u32,
    pub nodes_at: u32,
    pub blocks_at: u32,
    pub corners_at: u32,
    pub emissive_triangles_at: u32,
    pub distance_grids_at: u32,
    pub distances_at: u32,
    pub rooms_at: u32,
    /// Where the environment map's table begins, behind the majorants.
    pub environment_at: u32,
    /// Where the coats of plastics begin, behind that table.
    pub coats_at: u32,
    /// Units of sums in whole numbers: [`crate::device::units::Units`].
    pub digits: i32,
    pub exponent: i32,
    /// Codes of [`crate::resident::layout::aov`], of a pass over the first surfaces.
    pub aov: u32,
    /// Codes of [`exposure`].
    pub exposure: u32,
    /// Factor on the reference of a loss that scales both; that on the image is `loss_delta`.
    pub loss_scale: f32,
    /// Factor on derivatives by the places of cameras, a power of two: about the world units in a unit of a pose's
    /// translation, so that the resolution of sums in whole numbers does not depend on the unit of length.
    pub view_length: f32,
    /// Where the records of motions begin, in units of 16 bytes: those of surfaces, of vertices that heights displace, of lights
    /// and of cameras; and the triangles around vertices.
    pub motions_at: u32,
    pub displaced_at: u32,
    pub light_motions_at: u32,
    pub sensor_motions_at: u32,
    pub around_at: u32,
    /// Where the list of shapes that rays are tested against in turn begins.
    pub singles_at: u32,
    /// The places that a wave has for the intersections of a path's edges, and the first edge that it keeps.
    pub wave_places: u32,
    pub wave_first: u32,
    /// Where the first of these places is: a part of the wave, and a word in it.
    pub wave_edges_at: u32,
    pub wave_edges_word: u32,
}

/// A vertex that heights displace.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Pod, Zeroable)]
pub struct DisplacedRecord {
    /// Its displacement for a height of one, and its position at height zero.
    pub along: [f32; 3],
    pub padding_0: u32,
    pub rest: [f32; 3],
    pub padding_1: u32,
    /// The texels around it, and their weights.
    pub texels: [u32; 4],
    pub weights: [f32; 4],
}

/// The motion of a surface, a light or a camera: [`crate::resident::motion::Motion`] at the parameters' values. A parameter is
/// [`NONE`] where there is none.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Pod, Zeroable)]
pub struct MotionRecord {
    pub translate: u32,
    pub rotate: u32,
    pub scale: u32,
    /// Factors that it is scaled by: one, or three.
    pub scale_channels: u32,
    /// The point about which it is rotated and scaled.
    pub origin: [f32; 3],
    /// The positions of a mesh's vertices, or heights that displace them.
    pub vertices: u32,
    /// The rotation, as a vector along its axis.
    pub radians: [f32; 3],
    /// The normals of a mesh's vertices.
    pub normals: u32,
    /// The three factors.
    pub factors: [f32; 3],
    /// The first of the vertices that heights displace, among those of all meshes.
    pub relief: u32,
    /// Of the angle x: sin x / x, (1 − cos x) / x² and (x − sin x) / x³.
    pub sines: [f32; 3],
    /// For a smooth mesh, where the lists of the triangles around its vertices begin, in words: for each vertex and behind the
    /// last one the place of its first triangle, then the two other vertices of each triangle.
    pub around: u32,
    /// Where points slide: [`crate::resident::glide::Track`].
    pub track: Rows,
    pub middle: [f32; 3],
    /// Zero where points are held.
    pub extent: f32,
}

/// Codes of [`Launch::exposure`].
pub mod exposure {
    /// A sample of each pixel is rendered, or spread over pixels.
    pub const SAMPLE: u32 = 1;
    /// All samples are spread.
    pub const DONE: u32 = 2;
}

/// A pass over a view of splats.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Pod, Zeroable)]
pub struct SplatSettings {
    /// The parameters; the background is [`Slot::NONE`] if there is none.
    pub position: Slot,
    pub scale: Slot,
    pub rotation: Slot,
    pub color: Slot,
    pub opacity: Slot,
    pub background: Slot,
    pub count: u32,
    /// Splats that one invocation lists, and how many such groups there are.
    pub group: u32,
    pub groups: u32,
    /// Workgroups a row of the dispatch.
    pub groups_x: u32,
    /// Tiles of the pass: their number in a row of the view, and the number of rows from [`Self::first_row`] on.
    pub tiles_x: u32,
    pub tiles_y: u32,
    pub width: u32,
    pub height: u32,
    /// The view's first pixel in the image of the batch.
    pub first_pixel: u32,
    /// The longer side of the picture in pixels, and what is added to centres, in pixels.
    pub side: f32,
    pub offset: [f32; 2],
    pub first_row: u32,
    pub padding: [u32; 3],
}

/// A slab in its own frame: [`crate::resident::optics::SlabRecord`].
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Pod, Zeroable)]
pub struct Slab {
    pub origin: [f32; 2],
    pub across: [f32; 2],
    pub down: [f32; 2],
    pub thickness: f32,
    pub eta: f32,
    pub outside: [f32; 3],
    pub entering: f32,
    pub inside: [f32; 3],
    pub padding: u32,
}

/// A cube of varying index in its own frame: [`crate::resident::optics::CubeRecord`].
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Pod, Zeroable)]
pub struct Cube {
    pub corner: [f32; 3],
    pub step: f32,
    pub across: [f32; 3],
    pub most_steps: u32,
    pub down: [f32; 3],
    pub refracts: u32,
    pub direction: [f32; 3],
    pub padding: u32,
}

/// A screen in the optic's frame: [`crate::resident::light::ScreenRecord`].
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Pod, Zeroable)]
pub struct Screen {
    pub to_screen: Rows,
    pub front: f32,
    pub padding: [u32; 3],
}

/// A light that sends its colours along its normal: [`crate::resident::lamp::Lamp`].
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Pod, Zeroable)]
pub struct Lamp {
    pub to_uv: [[f32; 4]; 2],
    pub size: [u32; 2],
    /// Its first texel among the records.
    pub first: u32,
    pub nearest: u32,
    /// Codes of [`crate::resident::layout::wrap`].
    pub wrap: u32,
    pub padding: [u32; 3],
}

/// A film as the screen's image: [`crate::resident::light::Film`].
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Pod, Zeroable)]
pub struct LightFilm {
    pub row_x: [f32; 3],
    pub pixels: f32,
    pub row_y: [f32; 3],
    pub near_clip: f32,
    pub depth: [f32; 3],
    pub far_clip: f32,
    /// Factor on the splat of one path of the pass, for each colour.
    pub exposure: [f32; 3],
    /// The number of units in 1.0, for a film in whole numbers.
    pub units: f32,
    pub size: [u32; 2],
    /// The view's first pixel in the image of the batch.
    pub first_pixel: u32,
    pub sensor: u32,
    pub radius: f32,
    /// The filter's nodes in a pixel, their number, and the first among the records.
    pub nodes: f32,
    pub node_count: u32,
    pub filter_at: u32,
}

/// A pass over a view of light tracing.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Pod, Zeroable)]
pub struct LightSettings {
    /// The slab's heights or the cube's index, and its texels along x, y and z.
    pub parameter: Slot,
    pub size: [u32; 4],
    /// The optic is one of these; the other is zero.
    pub slab: Slab,
    pub cube: Cube,
    pub screen: Screen,
    pub film: LightFilm,
    pub lamp: Lamp,
}

/// Vectors of two nodes each that hold the widest filter which is splatted.
pub const SPLAT_VECTORS: usize = 513;

/// Light tracing among surfaces onto the film of a view: [`crate::resident::tracer::LightTracer`] and
/// [`crate::transport::light::lens::Lens`].
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Pod, Zeroable)]
pub struct TracerRecord {
    pub to_local: Rows,
    pub step: f32,
    pub share: f32,
    pub max_depth: u32,
    pub rr_depth: u32,
    pub center: [f32; 3],
    pub radius: f32,
    pub size: [u32; 2],
    /// The view's first pixel in the image of the batch.
    pub first_pixel: u32,
    pub sensor: u32,
    /// One over the pixels of the whole film, of which `size` is that of a crop window.
    pub scale: f32,
    pub filter_radius: f32,
    /// The filter's nodes in a pixel, and their number; values and slopes of two nodes a vector.
    pub nodes: f32,
    pub node_count: u32,
    pub table: [[f32; 4]; SPLAT_VECTORS],
}

/// Work on the elements of one parameter.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Pod, Zeroable)]
pub struct Elements {
    /// Texels along x, y, z and channels; of the source, where there is one.
    pub size: [u32; 4],
    pub source_size: [u32; 4],
    /// The parameter's first entry in its buffer and its number of entries.
    pub first: u32,
    pub count: u32,
    pub source_first: u32,
    /// Workgroups a row of the dispatch, and invocations in all.
    pub groups_x: u32,
    pub threads: u32,
    /// Optimiser or penalty.
    pub kind: u32,
    pub mask_updates: u32,
    pub rate: f32,
    pub second_correction: f32,
    pub low: f32,
    pub high: f32,
    /// beta_1, momentum or decay; beta_2.
    pub decay_1: f32,
    pub decay_2: f32,
    pub epsilon: f32,
    /// The weight of a penalty over its number of terms, or the unit of sums in whole numbers.
    pub weight: f32,
    /// Where the pass's workgroups report among the partial sums.
    pub report_at: u32,
    /// For majorants: factor on the extinction, margin, and the least majorant.
    pub scale: f32,
    pub margin: f32,
    pub least: f32,
    /// 1 if the first texel of a row is behind the last.
    pub wraps: u32,
}
