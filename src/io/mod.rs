//! Bytes to plain arrays and back. Nothing here knows of scenes, devices or transport.

pub mod dataset;

use std::path::PathBuf;

/// An error that names the file, what was found, and what was expected.
#[derive(Debug, thiserror::Error)]
#[error("{}: {message}", path.display())]
pub struct IoError {
    /// The file that could not be read or written.
    pub path: PathBuf,
    /// What was wrong with it and what was expected, as one sentence.
    pub message: String,
}

impl IoError {
    /// An error about `path`.
    pub fn new(path: impl Into<PathBuf>, message: impl std::fmt::Display) -> Self {
        Self {
            path: path.into(),
            message: message.to_string(),
        }
    }
}

/// The result of reading or writing a file.
pub type Result<T> = std::result::Result<T, IoError>;

/// An image: `data[(y * width + x) * channels + c]`, rows from the top. 1, 3 or 4 channels; alpha is straight.
#[derive(Debug, Clone, PartialEq)]
pub struct Image {
    pub width: usize,
    pub height: usize,
    pub channels: usize,
    pub data: Vec<f32>,
}

/// How the numbers of a file stand for light.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// Proportional to radiance (EXR).
    Linear,
    /// Coded with the sRGB transfer function and scaled to [0, 1] (PNG, JPEG). Alpha is never coded.
    Srgb,
}

/// A grid of texels: `data[((z * size[1] + y) * size[0] + x) * channels + c]`.
#[derive(Debug, Clone, PartialEq)]
pub struct Grid {
    /// Texels along x, y, z.
    pub size: [usize; 3],
    pub channels: usize,
    /// Lower and upper corner as the file states them; the unit cube where the format has none.
    pub bounds: [[f32; 3]; 2],
    pub data: Vec<f32>,
}
