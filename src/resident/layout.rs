//! The records that the CPU walk and the WGSL walk both read, byte for byte; `shaders/common/layout.wgsl` is the twin.
//!
//! Every field is a 4-byte scalar, an array of four of them, or one of three with a scalar behind it, so that Rust's and
//! WGSL's layouts agree.

use bytemuck::{Pod, Zeroable};

/// Three rows of an affine map; the fourth column is the translation.
pub type Rows = [[f32; 4]; 3];

/// Number of entries of the table of the truncated Gaussian's distribution function.
pub const FILTER_TABLE: usize = 68;

/// Codes of [`SceneRecord::density_activation`].
pub mod density {
    pub const RELU: u32 = 0;
    pub const SOFTPLUS: u32 = 1;
    pub const EXP: u32 = 2;
}

/// Codes of [`SceneRecord::color_activation`].
pub mod color {
    pub const CLIP: u32 = 0;
    pub const SIGMOID: u32 = 1;
    pub const RELU_HALF: u32 = 2;
}

/// Codes of [`SceneRecord::background`].
pub mod background {
    pub const NONE: u32 = 0;
    pub const CONSTANT: u32 = 1;
    pub const ENVMAP: u32 = 2;
}

/// Codes of [`SensorRecord::filter`].
pub mod filter {
    pub const BOX: u32 = 0;
    pub const TENT: u32 = 1;
    pub const GAUSSIAN: u32 = 2;
}

/// Codes of [`SensorRecord::distortion_model`].
pub mod distortion {
    pub const NONE: u32 = 0;
    pub const BROWN: u32 = 1;
    pub const FISHEYE: u32 = 2;
}

/// Codes of [`SensorRecord::backdrop`].
pub mod backdrop {
    pub const OPAQUE: u32 = 0;
    pub const COLOR: u32 = 1;
    pub const RANDOM: u32 = 2;
}

/// Bits of an occupancy cell.
pub mod occupancy {
    /// Some reachable texel is positive: the cell can add to an image.
    pub const RENDERS: u32 = 1;
    /// Some reachable texel is not negative: the cell can take a gradient.
    pub const LEARNS: u32 = 2;
    /// Texels along the edge of a cell.
    pub const CELL: usize = 4;
}

/// What every ray of a scene shares.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Pod, Zeroable)]
pub struct SceneRecord {
    /// World to the grids' unit cube [0, 1]³.
    pub world_to_unit: Rows,
    /// World directions to the cube's frame, to be normalised; the fourth column is unused.
    pub world_to_field: Rows,
    /// World directions to the environment map's frame; the fourth column is unused.
    pub world_to_env: Rows,
    /// Texels of the density along x, y, z.
    pub sigma_size: [u32; 4],
    /// Texels of the coefficients along x, y, z, and their channels.
    pub sh_size: [u32; 4],
    /// Cells of the occupancy grid along x, y, z.
    pub occupancy_size: [u32; 4],
    /// Width and height of the environment map.
    pub env_size: [u32; 2],
    pub env_scale: f32,
    /// Distance between samples in world units.
    pub step_length: f32,
    /// Transmittance under which a ray stops.
    pub stop: f32,
    /// 1 if there is a radiance field.
    pub has_field: u32,
    pub sh_degree: u32,
    pub density_activation: u32,
    pub color_activation: u32,
    pub background: u32,
    pub padding: [u32; 2],
    /// Distribution function of the Gaussian filter at -4 + i/8 standard deviations, i = 0 … 64.
    pub gaussian_cdf: [f32; FILTER_TABLE],
}

/// A camera, its film and where its reference lies.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Pod, Zeroable)]
pub struct SensorRecord {
    /// Camera space (+X left, +Y up, +Z forward) to world.
    pub to_world: Rows,
    /// k1 k2 k3 p1 p2 of the Brown model in entries 0 1 2 4 5; k1 … k4 of the fisheye in entries 0 … 3.
    pub distortion: [f32; 8],
    /// Colour behind transparent parts of the reference; the fourth entry is unused.
    pub backdrop_color: [f32; 4],
    pub focal: [f32; 2],
    pub center: [f32; 2],
    pub width: u32,
    pub height: u32,
    pub near_clip: f32,
    pub far_clip: f32,
    pub filter: u32,
    /// Radius of a tent, standard deviation of a Gaussian, in pixels.
    pub filter_size: f32,
    pub distortion_model: u32,
    pub backdrop: u32,
    /// Index of its first pixel among all references; [`NO_REFERENCE`] if it has none.
    pub first_pixel: u32,
    pub padding: [u32; 3],
}

/// Marks a sensor without a reference.
pub const NO_REFERENCE: u32 = u32::MAX;

/// A node of a hierarchy of triangles.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Pod, Zeroable)]
pub struct NodeRecord {
    /// Lower corner of its box.
    pub low: [f32; 3],
    /// Of a leaf the first triangle, else the first child; the second child follows the first.
    pub first: u32,
    /// Upper corner of its box.
    pub high: [f32; 3],
    /// Triangles of a leaf; 0 if there are children.
    pub count: u32,
}

/// A triangle of a hierarchy.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Pod, Zeroable)]
pub struct TriangleRecord {
    pub a: [f32; 3],
    /// Which shape it belongs to.
    pub shape: u32,
    pub b: [f32; 3],
    /// Its index within the shape.
    pub triangle: u32,
    pub c: [f32; 3],
    pub padding: u32,
}
