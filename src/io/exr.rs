//! OpenEXR: linear images of channels R, G, B, A or Y. Files hold colours premultiplied by alpha, [`Image`] straight.

use std::fs::File;
use std::io::{self, BufReader, BufWriter};
use std::path::Path;

use exr::image::{AnyChannel, AnyChannels, Encoding, FlatSamples, Layer};
use exr::math::Vec2;
use exr::meta::header::{Header, LayerAttributes};
use exr::meta::{BlockDescription, MetaData};
use exr::prelude::{ReadChannels, ReadLayers, WritableImage, f16};

use super::image::{Channel, ImageHeader, check_size};
use super::{Image, IoError, Result};

/// The channels to read, in the order of [`Image`].
fn wanted(names: &[String]) -> Option<&'static [&'static str]> {
    const CHOICES: [&[&str]; 4] = [&["R", "G", "B", "A"], &["R", "G", "B"], &["Y", "Y", "Y", "A"], &["Y"]];
    CHOICES
        .into_iter()
        .find(|choice| choice.iter().all(|c| names.iter().any(|n| n == c)))
}

/// The header of the file's first part, checked against the file's length.
pub(super) fn header(path: &Path, file: File, length: u64) -> Result<ImageHeader> {
    let fail = |message: String| Err(IoError::new(path, message));
    let metadata = match MetaData::read_from_buffered(BufReader::new(file), false) {
        Ok(metadata) => metadata,
        Err(e) => return fail(format!("is a damaged or truncated EXR file: {e}")),
    };
    let Some(part) = metadata.headers.iter().find(|part| !part.deep) else {
        return fail("is an EXR file without a flat image".into());
    };
    let names: Vec<String> = part.channels.list.iter().map(|c| c.name.to_string()).collect();
    let Some(channels) = wanted(&names) else {
        return fail(format!(
            "is an EXR file with channels {}, expected R, G, B or Y",
            names.join(", ")
        ));
    };
    if part.channels.list.iter().any(|c| c.sampling != Vec2(1, 1)) {
        return fail("is an EXR file with subsampled channels, which are not supported".into());
    }
    if let BlockDescription::Tiles(tiles) = part.blocks {
        check_tiles(path, part, tiles.tile_size)?;
    }
    let (width, height) = (part.layer_size.width(), part.layer_size.height());
    // All channels of the file are decoded, also those that are not copied.
    let decoded = names.len().max(channels.len());
    check_size(path, width as u64, height as u64, decoded as u64, length)?;
    Ok(ImageHeader {
        width,
        height,
        channels: channels.len(),
    })
}

/// Limits the size of tiles, whose decoding buffers do not depend on the image's size.
fn check_tiles(path: &Path, part: &Header, tile: Vec2<usize>) -> Result<()> {
    let limit = part.layer_size.width().max(part.layer_size.height()).max(4096);
    if tile.width() > limit || tile.height() > limit {
        let message = format!(
            "is an EXR file with tiles of {}×{} pixels, larger than its image",
            tile.width(),
            tile.height()
        );
        return Err(IoError::new(path, message));
    }
    Ok(())
}

/// Reads the first flat part, whose header has been checked.
pub(super) fn read(path: &Path, file: File) -> Result<Image> {
    let image = exr::prelude::read()
        .no_deep_data()
        .largest_resolution_level()
        .all_channels()
        .first_valid_layer()
        .all_attributes()
        .non_parallel()
        .from_buffered(BufReader::new(file))
        .map_err(|e| IoError::new(path, format!("is a damaged or truncated EXR file: {e}")))?;
    let layer = image.layer_data;
    let list = layer.channel_data.list;
    let names: Vec<String> = list.iter().map(|c| c.name.to_string()).collect();
    let choice = wanted(&names).ok_or_else(|| IoError::new(path, "has no flat part with channels R, G, B or Y"))?;
    let (width, height, channels) = (layer.size.width(), layer.size.height(), choice.len());
    let mut data = vec![0.0; width * height * channels];
    for (c, name) in choice.iter().enumerate() {
        let samples = list
            .iter()
            .find(|channel| channel.name.eq(name))
            .map(|channel| &channel.sample_data);
        for (texel, value) in data
            .chunks_exact_mut(channels)
            .zip(samples.into_iter().flat_map(|s| s.values_as_f32()))
        {
            texel[c] = value;
        }
    }
    let mut image = Image {
        width,
        height,
        channels,
        data,
    };
    for_each_translucent(&mut image, |v, alpha| v / alpha);
    Ok(image)
}

/// Writes 32-bit floats, losslessly compressed.
pub(super) fn write(out: &mut BufWriter<File>, image: &Image) -> io::Result<()> {
    let names: &[&str] = match image.channels {
        1 => &["Y"],
        3 => &["R", "G", "B"],
        _ => &["R", "G", "B", "A"],
    };
    let mut image = image.clone();
    for_each_translucent(&mut image, |v, alpha| v * alpha);
    let channel = |(c, name): (usize, &&str)| Channel {
        name: (*name).to_string(),
        values: image.data.iter().skip(c).step_by(image.channels).copied().collect(),
    };
    let channels = names.iter().enumerate().map(channel).collect();
    write_channels(out, [image.width, image.height], channels, false)
}

/// Writes channels as they are, of 16-bit floats if `half`, else of 32-bit ones, losslessly compressed.
pub(super) fn write_channels(
    out: &mut BufWriter<File>,
    [width, height]: [usize; 2],
    channels: Vec<Channel>,
    half: bool,
) -> io::Result<()> {
    let channel = |Channel { name, values }: Channel| {
        let samples = match half {
            true => FlatSamples::F16(values.iter().map(|x| f16::from_f32(*x)).collect()),
            false => FlatSamples::F32(values),
        };
        AnyChannel::new(name.as_str(), samples)
    };
    let channels = AnyChannels::sort(channels.into_iter().map(channel).collect());
    let layer = Layer::new(
        (width, height),
        LayerAttributes::default(),
        Encoding::FAST_LOSSLESS,
        channels,
    );
    let result = exr::prelude::Image::from_layer(layer)
        .write()
        .non_parallel()
        .to_buffered(out);
    result.map_err(|e| match e {
        exr::error::Error::Io(e) => e,
        other => io::Error::other(other.to_string()),
    })
}

/// Applies `change` to the colours of translucent texels. Those with alpha 0 or 1 stay: at 0 the colour is emitted
/// light.
fn for_each_translucent(image: &mut Image, change: impl Fn(f32, f32) -> f32) {
    if !image.has_alpha() {
        return;
    }
    for texel in image
        .data
        .chunks_exact_mut(4)
        .filter(|texel| texel[3] > 0.0 && texel[3] != 1.0)
    {
        for c in 0..3 {
            texel[c] = change(texel[c], texel[3]);
        }
    }
}
