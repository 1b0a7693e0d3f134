//! File formats: from bytes to plain arrays and back, independent of scenes, devices and transport.

pub mod atomic;
pub mod dataset;
mod exr;
pub mod image;
mod jpeg;
pub mod json;
pub mod mesh;
pub mod npy;
mod relative;
pub mod srgb;
pub mod tensors;
pub mod vdb;
pub mod vol;
pub mod xml;

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

pub use relative::relative;

/// An error that names the file, what was found, and what was expected.
#[derive(Debug, thiserror::Error)]
#[error("{}: {message}", path.display())]
pub struct IoError {
    /// The file that could not be read or written.
    pub path: PathBuf,
    /// What was wrong with it and what was expected, as one sentence.
    pub message: String,
    /// Whether the disk is full, so that a later attempt may succeed.
    pub no_room: bool,
}

impl IoError {
    /// An error about `path`.
    pub fn new(path: impl Into<PathBuf>, message: impl std::fmt::Display) -> Self {
        Self {
            path: path.into(),
            message: message.to_string(),
            no_room: false,
        }
    }

    /// An error of writing `path`: `failed` names the operation that failed.
    pub fn of_writing(path: impl Into<PathBuf>, failed: &str, error: &std::io::Error) -> Self {
        let lack = lack_of_room(error.kind());
        let reason = lack.map_or_else(|| error.to_string(), str::to_owned);
        Self {
            path: path.into(),
            message: format!("{failed}: {reason}"),
            no_room: lack.is_some(),
        }
    }
}

/// The reason if a file cannot be written for lack of space; None for all other errors.
fn lack_of_room(kind: ErrorKind) -> Option<&'static str> {
    match kind {
        ErrorKind::StorageFull => Some("the disk is full"),
        ErrorKind::QuotaExceeded => Some("the disk quota is used up"),
        ErrorKind::FileTooLarge => Some("it would be larger than a file may be here"),
        _ => None,
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

/// The encoding of a file's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// Proportional to radiance (EXR, HDR).
    Linear,
    /// Coded with the sRGB transfer function and scaled to [0, 1] (PNG, JPEG, BMP, TGA). Alpha is never coded.
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

/// The header of a grid's file; the file was checked to be long enough for it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GridHeader {
    /// Texels along x, y, z.
    pub size: [usize; 3],
    pub channels: usize,
    /// As in [`Grid`].
    pub bounds: [[f32; 3]; 2],
}

/// Bounds of a grid whose file does not state any.
pub const UNIT_CUBE: [[f32; 3]; 2] = [[0.0; 3], [1.0; 3]];

impl Image {
    /// Whether the last channel is alpha.
    pub fn has_alpha(&self) -> bool {
        self.channels == 4
    }

    /// Index of the first value that is NaN or infinite.
    pub fn first_non_finite(&self) -> Option<usize> {
        self.data.iter().position(|v| !v.is_finite())
    }

    /// The image reduced by a box filter of integer size; remaining columns and rows are dropped.
    ///
    /// With alpha, colours are averaged with alpha as weight, and the result is straight again.
    pub fn downscale(&self, factor: usize) -> Image {
        let factor = factor.max(1);
        let (width, height) = (self.width / factor, self.height / factor);
        let mut data = Vec::with_capacity(width * height * self.channels);
        for y in 0..height {
            for x in 0..width {
                let texel = self.box_mean(x * factor, y * factor, factor);
                data.extend_from_slice(&texel[..self.channels]);
            }
        }
        Image {
            width,
            height,
            channels: self.channels,
            data,
        }
    }

    /// Mean of the box of `size`² pixels from (x0, y0), summed in f64 for accuracy at any box size.
    fn box_mean(&self, x0: usize, y0: usize, size: usize) -> [f32; 4] {
        let mut sum = [0.0f64; 4];
        let mut weight = 0.0;
        for y in y0..y0 + size {
            let row = (y * self.width + x0) * self.channels;
            for texel in self.data[row..row + size * self.channels].chunks_exact(self.channels) {
                let alpha = if self.has_alpha() { texel[3] as f64 } else { 1.0 };
                weight += alpha;
                for (s, &v) in sum.iter_mut().zip(&texel[..self.channels.min(3)]) {
                    *s += alpha * v as f64;
                }
            }
        }
        let mut mean = sum.map(|s| if weight > 0.0 { (s / weight) as f32 } else { 0.0 });
        mean[3] = (weight / (size * size) as f64) as f32;
        mean
    }
}

/// Reads all bytes of a file or stream; more than `most` bytes, as from an endless device, are an error.
///
/// # Errors
/// It cannot be read, or is longer.
pub fn read_at_most(path: &Path, most: u64) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        let message = format!("it has more than {most} bytes");
        return Err(std::io::Error::new(ErrorKind::FileTooLarge, message));
    }
    Ok(bytes)
}

/// Opens a regular file and returns its length.
fn open(path: &Path) -> Result<(File, u64)> {
    let file = File::open(path).map_err(|e| IoError::new(path, format!("cannot be opened: {e}")))?;
    let metadata = file
        .metadata()
        .map_err(|e| IoError::new(path, format!("cannot be opened: {e}")))?;
    if !metadata.is_file() {
        return Err(IoError::new(path, "is a folder or a device, expected a file"));
    }
    Ok((file, metadata.len()))
}

/// Number of values (texels × channels) of a grid that a header claims, if a file with `payload` bytes can hold it.
fn checked_len(size: [u64; 3], channels: u64, bytes_per_value: u64, payload: u64) -> Option<usize> {
    let values = size.iter().try_fold(channels, |n, &s| n.checked_mul(s))?;
    (values.checked_mul(bytes_per_value)? <= payload).then_some(values as usize)
}

/// Rejects a grid with NaN or infinity and names the first such texel.
fn check_finite(path: &Path, grid: Grid) -> Result<Grid> {
    let Some(index) = grid.data.iter().position(|v| !v.is_finite()) else {
        return Ok(grid);
    };
    let (texel, channel) = (index / grid.channels, index % grid.channels);
    let [nx, ny, _] = grid.size;
    let (x, y, z) = (texel % nx, texel / nx % ny, texel / (nx * ny));
    let value = grid.data[index];
    let message = format!("texel x={x} y={y} z={z}, channel {channel}, is {value}, expected finite numbers");
    Err(IoError::new(path, message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn downscale_averages_boxes_and_crops_the_rest() {
        let data = (0..15).map(|v| v as f32).collect();
        let image = Image {
            width: 5,
            height: 3,
            channels: 1,
            data,
        };
        let half = image.downscale(2);
        assert_eq!((half.width, half.height), (2, 1));
        assert_eq!(half.data, [3.0, 5.0]);
    }

    #[test]
    fn downscale_weights_colour_by_alpha() {
        let image = Image {
            width: 2,
            height: 2,
            channels: 4,
            data: [
                [1.0, 0.5, 0.0, 1.0],
                [0.0, 0.0, 0.0, 0.0],
                [9.0, 9.0, 9.0, 0.0],
                [0.0, 0.5, 1.0, 1.0],
            ]
            .concat(),
        };
        assert_eq!(image.downscale(2).data, [0.5, 0.5, 0.5, 0.5]);
    }

    #[test]
    fn transparent_box_is_black_not_nan() {
        let image = Image {
            width: 2,
            height: 2,
            channels: 4,
            data: vec![0.0; 16],
        };
        assert_eq!(image.downscale(2).data, [0.0; 4]);
    }

    #[test]
    fn lengths_that_overflow_are_refused() {
        assert_eq!(checked_len([1 << 31, 1 << 31, 1 << 31], 4, 4, u64::MAX), None);
        assert_eq!(checked_len([2, 3, 4], 5, 4, 480), Some(120));
        assert_eq!(checked_len([2, 3, 4], 5, 4, 479), None);
    }

    /// A 4 × 4 image has boxes of 2 × 2 pixels, row by row; a partly transparent box has the alpha-weighted mean
    /// colour, however small its alpha.
    #[test]
    fn boxes_lie_row_by_row() {
        let image = Image {
            width: 4,
            height: 4,
            channels: 1,
            data: (0..16).map(|i| (i * i) as f32).collect(),
        };
        // (0 + 1 + 16 + 25)/4 and so on.
        assert_eq!(image.downscale(2).data, [10.5, 24.5, 114.5, 160.5]);
        let faint = Image {
            width: 2,
            height: 2,
            channels: 4,
            data: [[0.5, 0.25, 1.0, 0.125], [0.0; 4], [0.0; 4], [0.5, 0.75, 0.0, 0.125]].concat(),
        };
        assert_eq!(faint.downscale(2).data, [0.5, 0.5, 0.5, 0.0625]);
    }

    #[test]
    fn the_first_texel_that_is_not_finite_is_named() {
        let grid = |at: usize| {
            let mut data = vec![0.0; 2 * 3 * 4 * 2];
            data[at] = f32::NAN;
            Grid {
                size: [2, 3, 4],
                channels: 2,
                bounds: UNIT_CUBE,
                data,
            }
        };
        // ((3 · 3 + 2) · 2 + 1) · 2 + 1
        let error = check_finite(Path::new("a"), grid(47)).expect_err("NaN").to_string();
        assert_eq!(
            error,
            "a: texel x=1 y=2 z=3, channel 1, is NaN, expected finite numbers"
        );
        let error = check_finite(Path::new("a"), grid(6)).expect_err("NaN").to_string();
        assert!(error.contains("x=1 y=1 z=0, channel 0"), "{error}");
    }

    #[test]
    fn a_mistake_in_a_file_is_no_lack_of_room() {
        assert!(!IoError::new("a", "is damaged").no_room);
        let image = Image {
            width: 2,
            height: 1,
            channels: 3,
            data: vec![0.25, 0.5, 0.75, 1.0, 0.0, 0.125],
        };
        assert_eq!([image.downscale(0), image.downscale(1)], [image.clone(), image.clone()]);
    }
}
