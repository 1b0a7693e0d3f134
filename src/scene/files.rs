//! What a scene asks of the files it names: that they exist and that their headers fit.

use std::path::Path;

use crate::io::dataset::Dataset;
use crate::io::{IoError, Result};
use crate::params::Shape;

/// Texels along x, y, z and channels of a `.vol` or `.npy` file.
pub(super) fn grid_header(path: &Path) -> Result<([usize; 3], usize)> {
    Err(IoError::new(path, "grid files cannot be read yet"))
}

/// Width and height of an image, and its channels.
pub(super) fn image_header(path: &Path) -> Result<([u32; 2], usize)> {
    Err(IoError::new(path, "image files cannot be read yet"))
}

/// Width and height of an image after a reduction by a whole number.
pub(super) fn image_size(path: &Path, downscale: u32) -> Result<[u32; 2]> {
    let (size, _) = image_header(path)?;
    let reduced = size.map(|side| side / downscale);
    if reduced.contains(&0) {
        let [w, h] = size;
        return Err(IoError::new(path, format!("an image of {w}×{h} pixels cannot be reduced {downscale} times")));
    }
    Ok(reduced)
}

/// The values of a grid that was found to have this shape.
pub(super) fn grid_values(path: &Path, shape: Shape) -> Result<Vec<f32>> {
    Err(IoError::new(path, format!("grid files of {} values cannot be read yet", shape.len())))
}

/// The pixels of an image that was found to have this shape, as linear radiance.
pub(super) fn image_values(path: &Path, shape: Shape) -> Result<Vec<f32>> {
    Err(IoError::new(path, format!("image files of {} values cannot be read yet", shape.len())))
}

/// The views of a data set.
pub(super) fn dataset(path: &Path) -> Result<Dataset> {
    Err(IoError::new(path, "data sets cannot be read yet"))
}

/// A list of `count` finite numbers in a small JSON file.
pub(super) fn numbers(path: &Path, count: usize) -> Result<Vec<f32>> {
    let text = std::fs::read_to_string(path).map_err(|error| IoError::new(path, error))?;
    let expected = |_| IoError::new(path, format!("expected a JSON list of {count} numbers"));
    let numbers: Vec<f32> = serde_json::from_str(&text).map_err(expected)?;
    if numbers.len() != count || numbers.iter().any(|x| !x.is_finite()) {
        let message = format!("found {} numbers, expected {count} finite ones", numbers.len());
        return Err(IoError::new(path, message));
    }
    Ok(numbers)
}
