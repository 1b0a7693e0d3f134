//! Files named by a scene: checks of their headers, and later their values.

use std::path::Path;

use crate::io::dataset::{self, Dataset};
use crate::io::{self, Encoding, GridHeader, IoError, Result, image, npy, srgb, vdb, vol};
use crate::params::Shape;

use super::spectrum::Sample;

/// The header of a `.vol`, `.npy` or `.vdb` file.
pub(super) fn grid_header(path: &Path) -> Result<GridHeader> {
    match GridFormat::of(path)? {
        GridFormat::Vol => vol::header(path),
        GridFormat::Npy => npy::header(path),
        GridFormat::Vdb => vdb::header(path),
    }
}

/// The values of a grid; its header must still have this shape.
pub(super) fn grid_values(path: &Path, shape: Shape) -> Result<Vec<f32>> {
    let grid = match GridFormat::of(path)? {
        GridFormat::Vol => vol::read(path)?,
        GridFormat::Npy => npy::read(path)?,
        GridFormat::Vdb => vdb::read(path)?,
    };
    unchanged(path, (grid.size, grid.channels), (shape.size, shape.channels))?;
    Ok(grid.data)
}

/// File formats of grids, by file extension.
#[derive(Debug, Clone, Copy)]
enum GridFormat {
    Vol,
    Npy,
    Vdb,
}

impl GridFormat {
    fn of(path: &Path) -> Result<Self> {
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("vol") => Ok(GridFormat::Vol),
            Some("npy") => Ok(GridFormat::Npy),
            Some("vdb") => Ok(GridFormat::Vdb),
            _ => Err(IoError::new(path, "a grid's file name ends in .vol, .npy or .vdb")),
        }
    }
}

/// Width and height of an image after reduction by an integer factor.
pub(super) fn image_size(path: &Path, downscale: u32) -> Result<[u32; 2]> {
    let header = image::header(path)?;
    let reduced = [header.width, header.height].map(|side| side as u32 / downscale);
    if reduced.contains(&0) {
        let message = format!(
            "{}×{} pixels cannot be reduced {downscale} times",
            header.width, header.height
        );
        return Err(IoError::new(path, message));
    }
    Ok(reduced)
}

/// The number of channels of an image, and whether its values are sRGB-coded.
pub(super) fn image_channels(path: &Path) -> Result<(usize, bool)> {
    let header = image::header(path)?;
    Ok((header.channels, image::encoding(path)? == Encoding::Srgb))
}

/// The pixels of an image as linear radiance; its header must still have this shape. Grey is repeated over all
/// channels and alpha is ignored.
pub(super) fn image_values(path: &Path, shape: Shape) -> Result<Vec<f32>> {
    let (mut image, encoding) = image::read_texture(path)?;
    let [width, height, _] = shape.size;
    unchanged(path, [image.width, image.height], [width, height])?;
    if let Some(i) = image.first_non_finite() {
        let (x, y) = (i / image.channels % width, i / image.channels / width);
        return Err(IoError::new(
            path,
            format!("pixel ({x}, {y}) is not finite; replace it"),
        ));
    }
    if encoding == Encoding::Srgb {
        srgb::decode_image(&mut image);
    }
    let channels = image.channels;
    let texels = image.data.chunks_exact(channels);
    let rgb = texels.flat_map(|texel| (0..shape.channels).map(move |c| texel[if channels < 3 { 0 } else { c }]));
    Ok(rgb.collect())
}

/// The luminance of a linear colour (Rec. 709).
fn luminance([r, g, b]: [f32; 3]) -> f32 {
    0.2126 * r + 0.7152 * g + 0.0722 * b
}

/// What the texels of an image measure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Texels {
    /// Reflectances and other factors, not negative. Upper limits depend on the quantity and are checked in
    /// `resident/values.rs`.
    Reflectance,
    /// Opacities and weights, which are clamped afterwards.
    Share,
    /// Light, not negative.
    Radiance,
    /// Normals or heights.
    Relief,
}

impl Texels {
    fn fault(self, value: f32) -> Option<&'static str> {
        let (possible, rule) = match self {
            Self::Reflectance => (
                value.is_finite() && value >= 0.0,
                "reflectances and other factors must be finite and not negative",
            ),
            Self::Share => (value.is_finite(), "opacities and weights must be finite"),
            Self::Radiance => (
                value.is_finite() && value >= 0.0,
                "light must be finite and not negative",
            ),
            Self::Relief => (value.is_finite(), "normals and heights must be finite"),
        };
        (!possible).then_some(rule)
    }
}

/// For an image of linear values: how many of its colour values are unusual, how many there are, and the largest;
/// None if there are none, for sRGB-coded images, or if the image cannot be read, which is reported where it is used.
pub(super) fn unusual_values(path: &Path, is_unusual: impl Fn(f32) -> bool) -> Option<(usize, usize, f32)> {
    if image::encoding(path).ok()? == Encoding::Srgb {
        return None;
    }
    let (image, _) = image::read_texture(path).ok()?;
    let colors = if image.channels < 3 { 1 } else { 3 };
    let numbers = || {
        image
            .data
            .chunks_exact(image.channels)
            .flat_map(|texel| &texel[..colors])
    };
    let found = numbers().filter(|v| is_unusual(**v)).count();
    (found > 0).then(|| {
        (
            found,
            numbers().count(),
            numbers().fold(0.0, |most: f32, v| most.max(*v)),
        )
    })
}

/// The colours of an image as linear values; its header must still have this shape. Grey is repeated over all channels
/// and alpha is ignored. Impossible values are rejected.
pub(super) fn texture_values(path: &Path, raw: bool, texels: Texels, shape: Shape) -> Result<Vec<f32>> {
    let (image, encoding) = image::read_texture(path)?;
    let [width, height, _] = shape.size;
    unchanged(path, [image.width, image.height], [width, height])?;
    let channels = image.channels;
    for (index, texel) in image.data.chunks_exact(channels).enumerate() {
        // Without green and blue the second channel is alpha.
        let colors = if channels < 3 { 1 } else { 3 };
        let fault = texel[..colors].iter().find_map(|v| Some((*v, texels.fault(*v)?)));
        if let Some((value, rule)) = fault {
            let (x, y) = (index % width, index / width);
            let message = format!("pixel ({x}, {y}) is {value}; {rule}: correct the values");
            return Err(IoError::new(path, message));
        }
    }
    let decode = |x: f32| match (encoding, raw) {
        (Encoding::Srgb, false) => srgb::decode(x),
        _ => x,
    };
    let texels = image.data.chunks_exact(channels);
    let rgb = texels.map(|texel| [0, 1, 2].map(|c| decode(texel[if channels < 3 { 0 } else { c }])));
    Ok(match shape.channels {
        1 if channels < 3 => rgb.map(|[grey, ..]| grey).collect(),
        1 => rgb.map(luminance).collect(),
        _ => rgb.flatten().collect(),
    })
}

/// Checks that a file still has the header that it had when the scene was checked.
fn unchanged<T: PartialEq + std::fmt::Debug>(path: &Path, found: T, expected: T) -> Result<()> {
    if found == expected {
        return Ok(());
    }
    let message = format!("changed while the program ran: found {found:?}, expected {expected:?}; start again");
    Err(IoError::new(path, message))
}

/// The views of a data set.
pub(super) fn dataset(path: &Path) -> Result<Dataset> {
    dataset::load(path)
}

/// Largest accepted file for a few numbers.
const MAX_VALUE_BYTES: u64 = 1 << 16;

/// Largest accepted file for a spectrum: a line for every thousandth of a nanometre.
const MAX_SPECTRUM_BYTES: u64 = 1 << 24;

/// Why `path` is no file, in words.
pub(super) fn absence(path: &Path) -> String {
    match path.exists() {
        true => format!("{} is a folder or a device", path.display()),
        false => format!("there is no file {}", path.display()),
    }
}

/// The `count` finite numbers of a file `{"value": […]}`, the format in which runs save colours.
pub(super) fn numbers(path: &Path, count: usize) -> Result<Vec<f32>> {
    #[derive(serde::Deserialize)]
    struct File {
        value: Vec<f32>,
    }
    let text = short_text(path, MAX_VALUE_BYTES, &format!("{count} numbers"))?;
    let expected = |_| IoError::new(path, format!("expected {{\"value\": […]}} with {count} numbers"));
    let File { value } = serde_json::from_str(&text).map_err(expected)?;
    if value.len() != count || value.iter().any(|x| !x.is_finite()) {
        let message = format!("found {} numbers, expected {count} finite ones", value.len());
        return Err(IoError::new(path, message));
    }
    Ok(value)
}

/// The text of a file of at most this length; `what` is what it contains.
fn short_text(path: &Path, most: u64, what: &str) -> Result<String> {
    let refuse = |error: &dyn std::fmt::Display| IoError::new(path, format!("cannot be read: {error}"));
    let length = std::fs::metadata(path).map_err(|error| refuse(&error))?.len();
    if length > most {
        return Err(refuse(&format!("it has {length} bytes, far more than {what} need")));
    }
    let bytes = io::read_at_most(path, most).map_err(|error| refuse(&error))?;
    String::from_utf8(bytes).map_err(|error| refuse(&error))
}

/// The wavelengths (nm, positive) and values (not negative) of a file that has a pair of them a line; what follows `#`
/// is no part of it.
pub(super) fn spectrum(path: &Path) -> Result<Vec<Sample>> {
    let text = short_text(path, MAX_SPECTRUM_BYTES, "the lines of a spectrum")?;
    let lines = text
        .lines()
        .map(|line| line.split('#').next().unwrap_or_default().trim());
    let numbered = lines.enumerate().filter(|(_, line)| !line.is_empty());
    let pairs = numbered.map(|(i, line)| {
        let numbers: Vec<Option<f64>> = line.split_whitespace().map(|word| word.parse().ok()).collect();
        match numbers[..] {
            [Some(wavelength), Some(value)]
                if wavelength > 0.0 && value >= 0.0 && ((wavelength + value) as f32).is_finite() =>
            {
                Ok([wavelength, value])
            }
            _ => {
                let expected = "expected a wavelength and a value that is not negative, such as `550 0.7`";
                Err(IoError::new(path, format!("line {} is {line:.40?}; {expected}", i + 1)))
            }
        }
    });
    pairs.collect()
}
