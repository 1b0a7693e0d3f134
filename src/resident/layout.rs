//! The records that the CPU walk and the WGSL walk both read, byte for byte; `shaders/common/layout.wgsl` is the twin.
//!
//! Every field is a 4-byte scalar, an array of four of them, or one of three with a scalar behind it, so that Rust's
//! and WGSL's layouts agree.

use crate::each::EachEntry;
use bytemuck::{Pod, Zeroable};

/// Three rows of an affine map; the fourth column is the translation.
pub type Rows = [[f32; 4]; 3];

/// Cells of a [`FilterTable`].
pub const FILTER_CELLS: usize = 120;

/// Entries of a row of a [`FilterTable`]: the cells' ends, filled up to a multiple of four.
pub const FILTER_ENTRIES: usize = FILTER_CELLS + 4;

/// The largest number of filters with tables in a scene.
pub const FILTERS: usize = 4;

/// Cumulative integrals of a reconstruction filter f from minus to plus its radius, at the ends of cells of equal width.
/// Lobes of f may be negative.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Pod, Zeroable)]
pub struct FilterTable {
    /// The cumulative distribution of |f|, from 0 to 1.
    pub drawn: [f32; FILTER_ENTRIES],
    /// The integral of f up to each end, over the integral of |f| over all cells.
    pub signed: [f32; FILTER_ENTRIES],
}

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
    /// By the table [`SensorRecord::filter_table`](super::SensorRecord::filter_table).
    pub const TABLE: u32 = 2;
}

/// Codes of [`SensorRecord::kind`].
pub mod sensor {
    /// A pinhole, with a lens's distortion.
    pub const PERSPECTIVE: u32 = 0;
    /// A camera with a circular aperture and a plane in focus.
    pub const THINLENS: u32 = 1;
    /// Parallel rays, one from each place on the film.
    pub const ORTHOGRAPHIC: u32 = 2;
    /// Rays from an area, distributed about its normal in proportion to the cosine.
    pub const IRRADIANCEMETER: u32 = 3;
    /// Parallel rays to an area.
    pub const DISTANT: u32 = 4;
}

/// Codes of auxiliary outputs (AOVs): properties of the first surface that a camera ray hits; zero where it hits none.
pub mod aov {
    /// The BSDF's value for light along the normal, times π.
    pub const ALBEDO: u32 = 0;
    /// Distance from where the ray begins.
    pub const DEPTH: u32 = 1;
    pub const POSITION: u32 = 2;
    pub const UV: u32 = 3;
    pub const GEO_NORMAL: u32 = 4;
    pub const SH_NORMAL: u32 = 5;
    /// Number of the shape in the order of the file, from one.
    pub const SHAPE_INDEX: u32 = 6;
    /// Derivatives of the position by u and by v.
    pub const DP_DU: u32 = 7;
    pub const DP_DV: u32 = 8;
    /// On a mesh the triangle's number in it, from zero.
    pub const PRIM_INDEX: u32 = 9;
    /// How u and v change to the next column and to the next row of pixels, over the square root of the number of samples.
    pub const DUV_DX: u32 = 10;
    pub const DUV_DY: u32 = 11;
}

/// Codes of [`SensorRecord::area`].
pub mod area {
    /// The origin of [`SensorRecord::area_to_world`](super::SensorRecord::area_to_world).
    pub const POINT: u32 = 0;
    /// The unit disc in the plane z = 0.
    pub const DISK: u32 = 1;
    /// [-1, 1]² in the plane z = 0.
    pub const RECTANGLE: u32 = 2;
    /// The unit sphere, seen from outside and from inside.
    pub const SPHERE: u32 = 3;
    pub const CAVITY: u32 = 4;
    /// x² + y² = 1 for z from 0 to 1, seen from outside and from inside.
    pub const CYLINDER: u32 = 5;
    pub const PIPE: u32 = 6;
    /// The sides of [-1, 1]³, seen from outside and from inside.
    pub const CUBE: u32 = 7;
    pub const ROOM: u32 = 8;
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
    /// Factor on the environment map's radiance along rays through a radiance field; 1 without a map.
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
    /// Parameter that holds the factor on the map's radiance for paths; [`NONE`] without a map.
    pub env_scale_slot: u32,
    pub padding: u32,
    pub filters: [FilterTable; FILTERS],
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
    /// Radius of a filter that is no box, in pixels.
    pub filter_size: f32,
    pub distortion_model: u32,
    pub backdrop: u32,
    /// Index of its reference's first pixel among those of all references; [`NO_REFERENCE`] without a reference.
    pub first_pixel: u32,
    /// Medium around the camera; [`NONE`] if there is none.
    pub medium: u32,
    /// Codes of [`sensor`].
    pub kind: u32,
    /// 1 if samples may lie beside the film.
    pub sample_border: u32,
    /// Index among [`SceneRecord::filters`].
    pub filter_table: u32,
    /// Codes of [`area`].
    pub area: u32,
    pub aperture_radius: f32,
    /// Of a thin lens: distance of the plane in focus. Of a distant sensor: distance of its rays' origins from their
    /// targets.
    pub focus_distance: f32,
    /// Of an irradiance meter or a distant sensor: maps its area to the world. The third column is the unit normal of a
    /// disc or a rectangle.
    pub area_to_world: Rows,
}

/// Marks a sensor without a reference.
pub const NO_REFERENCE: u32 = u32::MAX;

/// Marks the absence of a medium, volume, light or parameter.
pub const NONE: u32 = u32::MAX;

/// Most vertices of a chain of smooth glass and mirrors, whose points move with the parameters in a replay
/// (`prb_attached`).
pub const CHAIN_VERTICES: u32 = 16;

/// Bytes in a GPU invocation's private memory of a chain's vertices and the light at its end, 36 words each
/// (`shaders/transport/paths/chain.wgsl`).
pub const CHAIN_BYTES: u32 = (CHAIN_VERTICES + 1) * 36 * 4;

/// Codes of [`VolumeRecord::filter`].
pub mod lookup {
    pub const CONSTANT: u32 = 0;
    pub const TRILINEAR: u32 = 1;
    pub const NEAREST: u32 = 2;
}

/// Codes of [`VolumeRecord::wrap`].
pub mod wrap {
    pub const CLAMP: u32 = 0;
    pub const REPEAT: u32 = 1;
    pub const MIRROR: u32 = 2;
}

/// Codes of [`PhaseRecord::kind`].
pub mod phase {
    pub const ISOTROPIC: u32 = 0;
    pub const HG: u32 = 1;
    pub const RAYLEIGH: u32 = 2;
    pub const BLEND: u32 = 3;
}

/// Codes of [`SurfaceRecord::kind`].
pub mod surface {
    pub const CUBE: u32 = 0;
    pub const SPHERE: u32 = 1;
    pub const RECTANGLE: u32 = 2;
    pub const MESH: u32 = 3;
    pub const DISK: u32 = 4;
    pub const CYLINDER: u32 = 5;
    pub const DISTANCES: u32 = 6;
}

/// Codes of [`LeafRecord::kind`].
pub mod leaf {
    /// Light passes straight through.
    pub const NULL: u32 = 0;
    pub const DIFFUSE: u32 = 1;
    pub const CONDUCTOR: u32 = 2;
    pub const ROUGH_CONDUCTOR: u32 = 3;
    pub const DIELECTRIC: u32 = 4;
    pub const THIN_DIELECTRIC: u32 = 5;
    pub const ROUGH_DIELECTRIC: u32 = 6;
    pub const PLASTIC: u32 = 7;
    pub const ROUGH_PLASTIC: u32 = 8;
    pub const PRINCIPLED: u32 = 9;
    pub const PRINCIPLED_THIN: u32 = 10;

    // Bits of [`super::LeafRecord::flags`].

    /// It is evaluated with the normal reversed: the back of a two-sided BSDF.
    pub const TURNED: u32 = 1;
    /// Microfacet normals follow Beckmann's distribution in place of GGX.
    pub const BECKMANN: u32 = 2;
    /// Microfacet normals are sampled from all, not only from visible ones.
    pub const ALL_NORMALS: u32 = 4;
    /// Light changes its colour each time it returns to the base of a plastic.
    pub const NONLINEAR: u32 = 8;
    /// The index is given by the reflectance at normal incidence.
    pub const SPECULAR: u32 = 16;
    /// A run may change some texture.
    pub const VARIES: u32 = 32;
    /// The normal is reversed before the relief turns it.
    pub const RELIEF_TURNED: u32 = 64;
    /// The relief is a bump map, in place of a normal map.
    pub const BUMP: u32 = 128;
    /// Normals of the relief that the viewer does not see are turned towards it.
    pub const FLIPS: u32 = 256;
    /// The relief shadows light at grazing angles.
    pub const SHADOWS: u32 = 512;
    /// It belongs to the front of the relief alone (`FRONT`), or to the back alone (`BACK`).
    pub const FRONT: u32 = 1024;
    pub const BACK: u32 = 2048;
}

/// Bits of [`BsdfRecord::flags`].
pub mod bsdf {
    /// Some leaf has a pdf by solid angle, so that next-event estimation can serve it.
    pub const SMOOTH: u32 = 1;
    /// Some leaf lets light pass straight through.
    pub const NULL: u32 = 2;
    /// Some texture is one that a run may change.
    pub const VARIES: u32 = 4;
    /// Some leaf looks different when it is turned about its normal.
    pub const ANISOTROPIC: u32 = 8;
}

/// Bits of [`MediumRecord::flags`].
pub mod medium {
    /// Albedo and `sigma_t` have the same texels in the same place.
    pub const ALIGNED: u32 = 1;
    /// Every shadow ray from inside is blocked: the closed surface around it lets none pass straight on, and no light is
    /// inside.
    pub const SEALED: u32 = 2;
}

/// Codes of [`LightRecord::kind`].
pub mod light {
    pub const POINT: u32 = 0;
    pub const SPOT: u32 = 1;
    pub const DIRECTIONAL: u32 = 2;
    pub const AREA: u32 = 3;
    pub const ENVMAP: u32 = 4;
    pub const PROJECTOR: u32 = 5;
    /// Light along the normals of a shape, which only light tracing follows.
    pub const COLLIMATED: u32 = 6;
}

/// Codes of [`PathSettings::gradient`].
pub mod gradient {
    pub const FREE_FLIGHT: u32 = 0;
    pub const DRT: u32 = 1;
    pub const PAIRED: u32 = 2;
}

/// A volume: its array, how it is looked up, and where it lies in the world.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Pod, Zeroable)]
pub struct VolumeRecord {
    /// World to the unit cube.
    pub world_to_unit: Rows,
    /// Texels along x, y, z, and channels.
    pub size: [u32; 4],
    /// Index of its parameter in the `ParamSet`.
    pub slot: u32,
    pub filter: u32,
    pub wrap: u32,
    pub padding: u32,
}

/// A medium: indices of its volumes and its majorants.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Pod, Zeroable)]
pub struct MediumRecord {
    /// World to the unit cube that the majorant grid fills.
    pub world_to_grid: Rows,
    /// World-space box outside of which the extinction is zero.
    pub low: [f32; 3],
    /// 1 if no surface passes through that box.
    pub clear: u32,
    pub high: [f32; 3],
    /// 1 if the shape around that box is the world's only surface, and light passes straight through it: a path that leaves
    /// the box reaches the background.
    pub alone: u32,
    /// Cells of the majorant grid along x, y, z, and the index of the first among all media's.
    pub majorants: [u32; 4],
    /// Volumes.
    pub sigma_t: u32,
    pub albedo: u32,
    pub emission: u32,
    pub phase: u32,
    /// Factor on `sigma_t`.
    pub scale: f32,
    /// 1 if `sigma_t` has three channels.
    pub spectral: u32,
    /// Bits of [`medium`].
    pub flags: u32,
    /// Inverse length that weighs free-flight sampling against differential ratio tracking.
    pub kappa: f32,
}

impl MediumRecord {
    /// Whether it has one of [`medium`].
    #[inline(always)]
    pub fn has(&self, flag: u32) -> bool {
        self.flags & flag != 0
    }

    pub(super) fn set(&mut self, flag: u32, value: bool) {
        self.flags = if value { self.flags | flag } else { self.flags & !flag };
    }
}

/// A phase function.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Pod, Zeroable)]
pub struct PhaseRecord {
    pub kind: u32,
    /// Parameter that holds g.
    pub slot: u32,
    /// Of a blend, the index of its weight's volume.
    pub weight: u32,
    /// The first of a blend's two phase functions; the second follows it.
    pub first: u32,
}

/// A shape.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Pod, Zeroable)]
pub struct SurfaceRecord {
    /// World to the shape's own space, and back.
    pub to_local: Rows,
    pub to_world: Rows,
    pub kind: u32,
    /// Index of its BSDF; [`NONE`] if light passes straight through.
    pub bsdf: u32,
    /// Indices of the media behind the surface and in front of it, where its normal points; [`NONE`] without one.
    pub interior: u32,
    pub exterior: u32,
    /// Index of its area light; [`NONE`] without one.
    pub light: u32,
    /// -1 if normals are flipped, else 1.
    pub side: f32,
    /// Of a shape given by distances, the index of its grid.
    pub distances: u32,
    pub padding: u32,
}

/// Signed distances on a grid, whose outermost points lie on the faces of [-1, 1]³ in a shape's own space.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
pub struct DistanceGridRecord {
    /// Points along x, y and z: two or more.
    pub size: [u32; 3],
    /// The index of its first value among those of all grids; x is fastest.
    pub first: u32,
    /// Whether shading normals are blended between cells.
    pub smooth: u32,
    /// The index of its first cell among those of all grids: where its `rooms` begin.
    pub first_room: u32,
    pub padding: [u32; 2],
}

/// A BSDF: on each side a mixture of leaves.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Pod, Zeroable)]
pub struct BsdfRecord {
    /// The first leaf and the number of leaves on the front, to which the normal points, and on the back.
    pub front: [u32; 2],
    pub back: [u32; 2],
    /// Bits of [`bsdf`].
    pub flags: u32,
    pub padding: [u32; 3],
}

/// Most textures of a leaf.
pub const LEAF_TEXTURES: usize = 12;

/// A BSDF that is no mixture. Its weight is the product of its factors, one for each mixture that it is nested in.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Pod, Zeroable)]
pub struct LeafRecord {
    /// Codes of [`leaf`].
    pub kind: u32,
    /// Bits of [`leaf`].
    pub flags: u32,
    pub first_factor: u32,
    pub factors: u32,
    /// The first of its textures, which follow each other.
    pub first_texture: u32,
    /// Of a plastic: index of its coat.
    pub coat: u32,
    /// How many textures there are.
    pub textures: u32,
    /// The texture that turns its normal; [`NONE`] where it has the surface's own.
    pub relief: u32,
    /// Sampling rates of the lobes of a principled BSDF, relative to each other.
    pub rates: [f32; 4],
    /// Factor on the heights of a bump map.
    pub bump_scale: f32,
    pub padding: [u32; 3],
}

/// A factor of a leaf's weight: a texture's value x, or 1 - x.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Pod, Zeroable)]
pub struct FactorRecord {
    pub texture: u32,
    /// 1 for 1 - x.
    pub complement: u32,
    pub padding: [u32; 2],
}

/// Normals and texture coordinates at the corners of a mesh's triangle.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Pod, Zeroable)]
pub struct CornerRecord {
    /// Unit normals in the world; zero where the face's own is used. The fourth entries are the corners' vertex numbers in
    /// their mesh, as the bits of a u32.
    pub normals: [[f32; 4]; 3],
    /// u, v of the first two corners, and of the third.
    pub uv_ab: [f32; 4],
    pub uv_c: [f32; 2],
    /// Index of the shape that the triangle belongs to.
    pub shape: u32,
    /// Its number in its mesh.
    pub face: u32,
}

impl CornerRecord {
    /// The corners' vertex numbers in their mesh.
    pub fn vertices(&self) -> [u32; 3] {
        self.normals.each(|normal| normal[3].to_bits())
    }
}

/// A light that is sampled.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Pod, Zeroable)]
pub struct LightRecord {
    /// Place of a point, a spot or a projector, or centre of a sphere; the fourth entry is the area of an area light.
    pub position: [f32; 4],
    /// Direction that light travels along; the fourth entry is the cosine of a spot's cutoff, or the radius of a sphere.
    pub direction: [f32; 4],
    /// World to the frame of a spot or a projector, which shines along +z.
    pub to_local: Rows,
    pub kind: u32,
    /// Parameter that holds its colour, or the one value of a projector; [`NONE`] if all of it is a texture.
    pub slot: u32,
    /// Surface of an area light.
    pub surface: u32,
    /// Cosine of the angle at which a spot begins to fall off.
    pub cos_beam: f32,
    /// The first emissive triangle of an area light on a cube or a mesh, and their number.
    pub first_emissive: u32,
    pub emissive_triangles: u32,
    /// Texture that multiplies it; [`NONE`] without one.
    pub texture: u32,
    /// Where the table of a textured area light begins among the sampling tables.
    pub table: u32,
    /// Half the width and half the height of the picture that a spot or a projector casts, at the distance one.
    pub extent: [f32; 2],
    /// Columns and rows of that table; zero without one.
    pub cells: [u32; 2],
    /// Probability with which next-event estimation chooses this light, if lights differ in it
    /// ([`PathSettings::weighted`]), and the sum of this and of those of the lights before it.
    pub probability: f32,
    pub cumulative: f32,
    pub padding: [u32; 2],
}

/// A triangle that shines on the side of its normal (b - a) × (c - a).
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Pod, Zeroable)]
pub struct EmissiveTriangleRecord {
    pub a: [f32; 3],
    /// Its share of the light's area: from `begins` to `ends` in the cumulative distribution over triangles.
    pub begins: f32,
    pub b: [f32; 3],
    pub ends: f32,
    pub c: [f32; 3],
    /// Of a mesh: its number among all meshes'; else [`NONE`].
    pub triangle: u32,
    /// u, v of the first two corners, and of the third.
    pub uv_ab: [f32; 4],
    pub uv_c: [f32; 2],
    pub padding_uv: [u32; 2],
}

/// Codes of [`TextureRecord::kind`].
pub mod texture {
    pub const CONSTANT: u32 = 0;
    pub const CHECKERBOARD: u32 = 1;
    pub const BITMAP: u32 = 2;
    /// Values of a mesh's vertices, or of its faces.
    pub const VERTICES: u32 = 3;
    pub const FACES: u32 = 4;
    /// A volume at the surface's points.
    pub const VOLUME: u32 = 5;
    /// A checkerboard whose squares show other textures.
    pub const SQUARES: u32 = 6;
}

/// A texture: one value, two values or textures that alternate, an image, values of a mesh's vertices or faces, or a volume.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Pod, Zeroable)]
pub struct TextureRecord {
    /// Rows of the map of u and v; the fourth entries are unused. The first entry of all is the factor on a mesh's values.
    pub to_uv: [[f32; 4]; 2],
    pub kind: u32,
    /// Parameter that holds its values. `other_slot` is the parameter of a checkerboard's other squares, or the index of a
    /// volume's record. Of [`texture::SQUARES`] both are indices of textures.
    pub slot: u32,
    pub other_slot: u32,
    /// Channels of a value: one or three.
    pub channels: u32,
    /// Width and height of an image.
    pub size: [u32; 2],
    /// Codes of [`lookup`] and [`wrap`].
    pub filter: u32,
    pub wrap: u32,
}

/// The parameters that a texture shows.
pub fn slots_of(textures: &[TextureRecord], texture: u32) -> Vec<u32> {
    let record = &textures[texture as usize];
    match record.kind {
        texture::SQUARES => [record.slot, record.other_slot]
            .into_iter()
            .flat_map(|square| slots_of(textures, square))
            .collect(),
        texture::CHECKERBOARD => vec![record.slot, record.other_slot],
        _ => vec![record.slot],
    }
}

/// Whether paths are followed among surfaces alone: media are ignored, and every surface that is hit ends an edge of the path
/// and blocks shadow rays, also one that light passes straight through.
pub mod surfaces_only {
    pub const NO: u32 = 0;
    /// Alpha takes a surface that light passes straight through for opaque.
    pub const OPAQUE: u32 = 1;
    /// Alpha looks through such a surface.
    pub const CLEAR: u32 = 2;
}

/// What every path of a world shares.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Pod, Zeroable)]
pub struct PathSettings {
    pub surfaces: u32,
    /// Lights that are sampled: all of them, or none.
    pub lights: u32,
    /// Index of the environment map among the lights.
    pub environment: u32,
    /// Longest path in edges; [`NONE`] for no limit.
    pub max_depth: u32,
    /// Depth beyond which Russian roulette may end a path; [`NONE`] for never.
    pub rr_depth: u32,
    pub hide_emitters: u32,
    pub gradient: u32,
    /// 1 if any medium's `sigma_t` has three channels.
    pub spectral: u32,
    /// The box around all meshes' triangles.
    pub low: [f32; 3],
    /// A constant of [`surfaces_only`].
    pub surfaces_only: u32,
    pub high: [f32; 3],
    /// 1 if lights are chosen with the probabilities in their records, 0 if uniformly.
    pub weighted: u32,
}

/// A triangle of a mesh: its corners in the world.
pub type Triangle = [[f32; 3]; 3];

/// Children of a node of a hierarchy.
pub const WIDTH: usize = 8;

/// Triangles of a block.
pub const BLOCK: usize = 4;

/// The two highest bits of an entry of [`NodeRecord::children`]: what the child is. The other bits are its index.
pub mod child {
    pub const KIND: u32 = 3 << 30;
    pub const NODE: u32 = 0;
    pub const BLOCK: u32 = 1 << 30;
    pub const SURFACE: u32 = 2 << 30;
    pub const EMPTY: u32 = 3 << 30;
}

/// A node of a hierarchy: its children and their boxes.
#[repr(C, align(32))]
#[derive(Debug, Clone, Copy, PartialEq, Pod, Zeroable)]
pub struct NodeRecord {
    /// The lower corners' x, y and z of all children, then the upper corners'. The box of an empty entry is from ∞ to -∞.
    pub planes: [[f32; WIDTH]; 6],
    /// Indices of nodes, blocks or surfaces, with the bits of [`child`].
    pub children: [u32; WIDTH],
}

/// Up to four triangles that are tested at once, one a SIMD lane. Unused lanes are zero and numbered [`NONE`].
#[repr(C, align(32))]
#[derive(Debug, Clone, Copy, PartialEq, Pod, Zeroable)]
pub struct BlockRecord {
    /// x, y and z of all triangles' first corners, then of the second and the third corners.
    pub corners: [[f32; BLOCK]; 9],
    /// Numbers of the triangles among all meshes'.
    pub triangles: [u32; BLOCK],
}
