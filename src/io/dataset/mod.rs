//! Data sets of photographs with cameras: NeRF `transforms.json` in its dialects, and COLMAP models.

use std::path::PathBuf;

use glam::Affine3A;

/// Lens distortion, OpenCV's models.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Distortion {
    #[default]
    None,
    /// Radial k1 k2 k3 and tangential p1 p2.
    Brown { k: [f32; 3], p: [f32; 2] },
    /// Equidistant fisheye k1 … k4.
    Fisheye { k: [f32; 4] },
}

/// One photograph and its camera.
#[derive(Debug, Clone, PartialEq)]
pub struct View {
    /// The image's file stem, made unique within the data set.
    pub name: String,
    /// The image file; it may be missing.
    pub image: PathBuf,
    /// Camera space to the data set's world: +X left, +Y up, +Z forward.
    pub to_world: Affine3A,
    /// Size in pixels: as the data set states it, else as the image's header does.
    pub width: u32,
    pub height: u32,
    /// Focal lengths in pixels of that size.
    pub focal: [f32; 2],
    /// Principal point in pixels from the top left corner.
    pub center: [f32; 2],
    pub distortion: Distortion,
}

/// A data set as read from its file.
#[derive(Debug, Clone, PartialEq)]
pub struct Dataset {
    /// In the order of the file.
    pub views: Vec<View>,
    /// Sparse points of a COLMAP model; empty elsewhere.
    pub points: Vec<[f32; 3]>,
    /// `aabb_scale` of an instant-ngp file.
    pub aabb_scale: Option<f32>,
}
