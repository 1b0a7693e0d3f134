//! Image files, recognised by their content, TGA by its name: EXR and Radiance HDR are linear, PNG, JPEG, BMP and TGA are
//! sRGB-coded.

use std::fs::File;
use std::io::{BufReader, ErrorKind, Read, Seek, SeekFrom};
use std::path::Path;

use ::image::codecs::bmp::BmpDecoder;
use ::image::codecs::hdr::HdrDecoder;
use ::image::codecs::jpeg::JpegDecoder;
use ::image::codecs::png::{PngDecoder, PngEncoder};
use ::image::codecs::tga::TgaDecoder;
use ::image::{ColorType, DynamicImage, ExtendedColorType, ImageDecoder, ImageEncoder, ImageError, Limits};

use super::{Encoding, Image, IoError, Result, atomic, exr, jpeg, open};

/// The header of an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ImageHeader {
    pub width: usize,
    pub height: usize,
    /// As in [`Image`].
    pub channels: usize,
}

/// Largest size of an image's pixels, in bytes as 32-bit floats.
const MAX_BYTES: u64 = 2 << 30;

/// Decoded size accepted for a file of any length, so that highly compressible images of usual sizes can be read.
const FREE_BYTES: u64 = 256 << 20;

/// Above [`FREE_BYTES`], the largest ratio of decoded bytes to file bytes: deflate's best ratio, with one float per
/// byte.
const MAX_BYTES_PER_BYTE: u64 = 4 * 1032;

/// The largest number of pixels per file byte: one-bit pixels under deflate's best ratio.
const MAX_PIXELS_PER_BYTE: u64 = 8 * 1032;

/// Memory limit of a PNG decoder for a row and for data beside the pixels (a colour profile).
const MAX_DECODER_BYTES: u64 = 64 << 20;

/// A file format that is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    Exr,
    Hdr,
    Png,
    Jpeg,
    Bmp,
    Tga,
}

impl Format {
    /// Its name in messages.
    fn name(self) -> &'static str {
        match self {
            Self::Exr => "EXR",
            Self::Hdr => "HDR",
            Self::Png => "PNG",
            Self::Jpeg => "JPEG",
            Self::Bmp => "BMP",
            Self::Tga => "TGA",
        }
    }

    fn encoding(self) -> Encoding {
        match self {
            Self::Exr | Self::Hdr => Encoding::Linear,
            Self::Png | Self::Jpeg | Self::Bmp | Self::Tga => Encoding::Srgb,
        }
    }
}

/// Reads the header alone.
///
/// # Errors
/// If the content is no EXR, HDR, PNG, JPEG, BMP or TGA, is damaged, or claims more pixels than are read or the file can
/// hold.
pub fn header(path: &Path) -> Result<ImageHeader> {
    let (file, length, format) = open_image(path)?;
    match format {
        Format::Exr => exr::header(path, file, length),
        Format::Hdr | Format::Png | Format::Jpeg | Format::Bmp | Format::Tga => {
            let decoder = decoder(path, file, length, format)?;
            let ((width, height), color) = (decoder.dimensions(), decoder.color_type());
            Ok(ImageHeader {
                width: width as usize,
                height: height as usize,
                channels: channels_of(color),
            })
        }
    }
}

/// The encoding of an image's values, which follows from its file format.
///
/// # Errors
/// As [`header`], if the content is of no known format.
pub fn encoding(path: &Path) -> Result<Encoding> {
    let (_, _, format) = open_image(path)?;
    Ok(format.encoding())
}

/// Reads a picture as 32-bit floats: linear values from an EXR or HDR, sRGB-coded values scaled to [0, 1] from a PNG (8 or
/// 16 bit, palette, grey), JPEG, BMP or TGA. Grey stays one channel unless there is alpha.
///
/// # Errors
/// As [`header`]; also if the pixels are truncated or damaged. Values that are not finite are not an error.
pub fn read(path: &Path) -> Result<(Image, Encoding)> {
    let (mut image, format) = read_any(path)?;
    if format == Format::Exr {
        exr::straighten(&mut image);
    }
    Ok((image, format.encoding()))
}

/// Reads the numbers of a texture as [`read`] does, but those of an EXR with alpha as the file has them: a texture's colours
/// are not divided by alpha, which it ignores.
///
/// # Errors
/// As [`read`].
pub fn read_texture(path: &Path) -> Result<(Image, Encoding)> {
    let (image, format) = read_any(path)?;
    Ok((image, format.encoding()))
}

fn read_any(path: &Path) -> Result<(Image, Format)> {
    let (file, length, format) = open_image(path)?;
    if format == Format::Exr {
        let second = file
            .try_clone()
            .map_err(|e| IoError::new(path, format!("cannot be opened: {e}")))?;
        exr::header(path, second, length)?;
        rewind(path, &file)?;
        return Ok((exr::read(path, file)?, format));
    }
    if matches!(format, Format::Jpeg) {
        check_whole(path, &file)?;
    }
    let decoder = decoder(path, file, length, format)?;
    let decoded = DynamicImage::from_decoder(decoder).map_err(|error| undecodable(path, format, &error))?;
    Ok((to_floats(decoded), format))
}

/// Writes linear RGB or RGBA (alpha straight in `image`, as everywhere) as 32-bit EXR; one channel as Y.
///
/// # Errors
/// If the file cannot be written.
pub fn write_exr(path: &Path, image: &Image) -> Result<()> {
    atomic::write(path, |out| exr::write(out, image))
}

/// A channel of an EXR file: its name, and a value for each pixel, row by row.
#[derive(Debug, Clone, PartialEq)]
pub struct Channel {
    pub name: String,
    pub values: Vec<f32>,
}

/// Writes channels of any names as they are, as EXR of 16-bit floats if `half`, else of 32-bit ones.
///
/// # Errors
/// If the file cannot be written.
pub fn write_exr_channels(path: &Path, size: [usize; 2], channels: Vec<Channel>, half: bool) -> Result<()> {
    atomic::write(path, |out| exr::write_channels(out, size, channels, half))
}

/// Writes values that are already coded as 8-bit PNG: clamped to [0, 1] and rounded.
///
/// # Errors
/// If the file cannot be written.
pub fn write_png(path: &Path, image: &Image) -> Result<()> {
    write_png_of(path, [image.width, image.height], image.channels, &image.data, |v| v)
}

/// Writes 8-bit PNG of `values`, `[y][x][channel]`, each coded by `coded`, clamped to [0, 1] and rounded.
///
/// # Errors
/// If the file cannot be written.
pub fn write_png_of(
    path: &Path,
    size: [usize; 2],
    channels: usize,
    values: &[f32],
    coded: impl Fn(f32) -> f32,
) -> Result<()> {
    atomic::write_bytes(path, &png_bytes_of(size, channels, values, coded))
}

/// Writes values that are already coded as 16-bit PNG: clamped to [0, 1] and rounded.
///
/// # Errors
/// If the file cannot be written.
pub fn write_deep_png(path: &Path, image: &Image) -> Result<()> {
    let color = match image.channels {
        1 => ExtendedColorType::L16,
        3 => ExtendedColorType::Rgb16,
        _ => ExtendedColorType::Rgba16,
    };
    let word = |v: &f32| (v.clamp(0.0, 1.0) * 65535.0).round() as u16;
    let bytes: Vec<u8> = image.data.iter().flat_map(|v| word(v).to_ne_bytes()).collect();
    atomic::write_bytes(path, &coded_png([image.width, image.height], &bytes, color))
}

/// The bytes of an 8-bit PNG of values that are already coded: clamped to [0, 1] and rounded.
pub fn png_bytes(image: &Image) -> Vec<u8> {
    png_bytes_of([image.width, image.height], image.channels, &image.data, |v| v)
}

fn png_bytes_of(size: [usize; 2], channels: usize, values: &[f32], coded: impl Fn(f32) -> f32) -> Vec<u8> {
    let color = match channels {
        1 => ExtendedColorType::L8,
        3 => ExtendedColorType::Rgb8,
        _ => ExtendedColorType::Rgba8,
    };
    let byte = |v: &f32| (coded(*v).clamp(0.0, 1.0) * 255.0).round() as u8;
    let bytes: Vec<u8> = values.iter().map(byte).collect();
    coded_png(size, &bytes, color)
}

/// Encodes an image's pixels, given as `bytes` (16-bit values in native byte order), as a PNG.
fn coded_png([width, height]: [usize; 2], bytes: &[u8], color: ExtendedColorType) -> Vec<u8> {
    let mut out = Vec::new();
    let written = PngEncoder::new(&mut out).write_image(bytes, width as u32, height as u32, color);
    written.expect("memory takes all bytes, and their number is that of the pixels");
    out
}

/// Rejects, before any allocation for pixels, an image that is empty, too large, or larger than a file of `length`
/// bytes can hold.
pub(super) fn check_size(path: &Path, width: u64, height: u64, channels: u64, length: u64) -> Result<()> {
    let counted = format!("{channels} channel{}", if channels == 1 { "" } else { "s" });
    let fail = |what: &str| Err(IoError::new(path, format!("claims {width}×{height} pixels, {what}")));
    let mib = |bytes: u64| bytes.div_ceil(1 << 20);
    let pixels = width.saturating_mul(height);
    let bytes = pixels.saturating_mul(4 * channels);
    let proportionate = length.saturating_mul(MAX_BYTES_PER_BYTE).max(FREE_BYTES);
    if pixels == 0 {
        fail("expected at least one")
    } else if pixels > length.saturating_mul(MAX_PIXELS_PER_BYTE) {
        fail(&format!(
            "which a file of {length} bytes cannot hold: it is truncated or damaged"
        ))
    } else if bytes > MAX_BYTES {
        fail(&format!(
            "which take {} MiB as floats of {counted}, more than the limit of {} MiB: make it smaller",
            mib(bytes),
            mib(MAX_BYTES)
        ))
    } else if bytes > proportionate {
        fail(&format!(
            "which take {} MiB as floats of {counted}, more than the limit of {} MiB for a file of {length} \
             bytes: it is damaged, or write it with less compression",
            mib(bytes),
            mib(proportionate)
        ))
    } else {
        Ok(())
    }
}

/// The first bytes of an EXR file.
const EXR: [u8; 4] = [0x76, 0x2f, 0x31, 0x01];

/// Whether a file is EXR by its first bytes.
///
/// # Errors
/// If the file cannot be opened.
pub fn is_exr(path: &Path) -> Result<bool> {
    let (mut file, _) = open(path)?;
    let mut magic = [0; 4];
    Ok(file.read_exact(&mut magic).is_ok() && magic == EXR)
}

/// Opens a file and determines its format from its first bytes; TGA has none of its own, so that its name counts.
fn open_image(path: &Path) -> Result<(File, u64, Format)> {
    let (mut file, length) = open(path)?;
    let mut magic = Vec::with_capacity(8);
    let read = (&mut file).take(8).read_to_end(&mut magic);
    read.map_err(|e| IoError::new(path, format!("cannot be read: {e}")))?;
    let format = match magic.as_slice() {
        magic if magic.starts_with(&EXR) => Format::Exr,
        [0x89, b'P', b'N', b'G', ..] => Format::Png,
        [0xff, 0xd8, 0xff, ..] => Format::Jpeg,
        [b'B', b'M', ..] => Format::Bmp,
        [b'#', b'?', b'R', ..] => Format::Hdr,
        [] => return Err(IoError::new(path, format!("is empty, expected an image: {FORMATS}"))),
        _ if is_named_tga(path) => Format::Tga,
        _ => {
            return Err(IoError::new(
                path,
                format!("is not an image by its content, expected {FORMATS}"),
            ));
        }
    };
    rewind(path, &file)?;
    Ok((file, length, format))
}

/// The formats in messages.
const FORMATS: &str = "EXR, HDR, PNG, JPEG, BMP, or TGA with a name in .tga";

/// The width, height and number of channels that the header of a PNG file claims; None if it has another first chunk or
/// ends before.
fn png_size(path: &Path, mut file: &File) -> Result<Option<[u64; 3]>> {
    let mut bytes = [0; 26];
    let read = file.read_exact(&mut bytes);
    rewind(path, file)?;
    let number = |at: usize| {
        u64::from(u32::from_be_bytes([
            bytes[at],
            bytes[at + 1],
            bytes[at + 2],
            bytes[at + 3],
        ]))
    };
    let channels = match bytes[25] {
        0 => 1,
        4 => 2,
        6 => 4,
        _ => 3,
    };
    Ok((read.is_ok() && &bytes[12..16] == b"IHDR").then(|| [number(16), number(20), channels]))
}

/// The error of a PNG file for which the decoder would need more memory than it may take.
fn beyond_decoder(path: &Path, [width, height, channels]: [u64; 3], length: u64) -> IoError {
    let of_decoder = || {
        let limit = MAX_DECODER_BYTES >> 20;
        IoError::new(
            path,
            format!(
                "claims {width}×{height} pixels, a row of which, or what stands beside them, takes more than {limit} MiB: \
                 make it smaller"
            ),
        )
    };
    check_size(path, width, height, channels, length).map_or_else(|e| e, |()| of_decoder())
}

fn is_named_tga(path: &Path) -> bool {
    path.extension()
        .is_some_and(|extension| extension.eq_ignore_ascii_case("tga"))
}

fn rewind(path: &Path, mut file: &File) -> Result<()> {
    file.seek(SeekFrom::Start(0))
        .map(|_| ())
        .map_err(|e| IoError::new(path, format!("cannot be read: {e}")))
}

/// A decoder of a file of any format but EXR, whose claimed size has been checked.
fn decoder(path: &Path, file: File, length: u64, format: Format) -> Result<Box<dyn ImageDecoder>> {
    let mut limits = Limits::default();
    limits.max_alloc = Some(MAX_DECODER_BYTES);
    let claimed = match format {
        Format::Png => png_size(path, &file)?,
        _ => None,
    };
    let file = BufReader::new(file);
    let opened: ::image::ImageResult<Box<dyn ImageDecoder>> = match format {
        Format::Png => PngDecoder::with_limits(file, limits).map(|d| Box::new(d) as _),
        Format::Bmp => BmpDecoder::new(file).map(|d| Box::new(d) as _),
        Format::Tga => TgaDecoder::new(file).map(|d| Box::new(d) as _),
        // Mitsuba and others begin their files with `#?RGBE`, where the strict decoder knows `#?RADIANCE` alone.
        Format::Hdr => HdrDecoder::new_nonstrict(file).map(|d| Box::new(d) as _),
        Format::Jpeg | Format::Exr => JpegDecoder::new(file).map(|d| Box::new(d) as _),
    };
    let decoder = match (opened, claimed) {
        (Err(ImageError::Limits(_)), Some(claimed)) => return Err(beyond_decoder(path, claimed, length)),
        (opened, _) => opened.map_err(|error| undecodable(path, format, &error))?,
    };
    let (width, height) = decoder.dimensions();
    let channels = channels_of(decoder.color_type()) as u64;
    check_size(path, width.into(), height.into(), channels, length)?;
    Ok(decoder)
}

/// Refuses a JPEG file that ends before its image does.
fn check_whole(path: &Path, mut file: &File) -> Result<()> {
    let mut bytes = Vec::new();
    let read = file.read_to_end(&mut bytes);
    read.map_err(|e| IoError::new(path, format!("cannot be read: {e}")))?;
    rewind(path, file)?;
    match jpeg::is_whole(&bytes) {
        true => Ok(()),
        false => Err(IoError::new(path, cut_short(Format::Jpeg))),
    }
}

/// What is told of a file that ends before its pixels do.
fn cut_short(format: Format) -> String {
    format!(
        "ends before its image does, expected a whole {} file: copy or export it anew",
        format.name()
    )
}

/// The error of a file that its decoder refuses: its cause without the decoder's words, which speak of the format's inside.
fn undecodable(path: &Path, format: Format, error: &ImageError) -> IoError {
    let name = format.name();
    let message = match error {
        ImageError::IoError(error) if error.kind() == ErrorKind::UnexpectedEof => cut_short(format),
        ImageError::IoError(error) => format!("cannot be read: {error}"),
        ImageError::Unsupported(_) => {
            format!("is a {name} file of a kind that is not read: save it with 8 bits a channel, or as EXR")
        }
        ImageError::Limits(_) => {
            format!("is a {name} file that takes more memory than it may to decode: make it smaller")
        }
        _ => format!("is damaged, expected a whole {name} file: copy or export it anew"),
    };
    IoError::new(path, message)
}

fn channels_of(color: ColorType) -> usize {
    match color.channel_count() {
        2 => 4,
        n => n.into(),
    }
}

fn to_floats(decoded: DynamicImage) -> Image {
    let (width, height) = (decoded.width() as usize, decoded.height() as usize);
    let channels = channels_of(decoded.color());
    let eight = |bytes: Vec<u8>| bytes.into_iter().map(|v| f32::from(v) / 255.0).collect();
    let sixteen = |words: Vec<u16>| words.into_iter().map(|v| f32::from(v) / 65535.0).collect();
    let data = match decoded {
        DynamicImage::ImageLuma8(image) => eight(image.into_raw()),
        DynamicImage::ImageRgb8(image) => eight(image.into_raw()),
        DynamicImage::ImageRgba8(image) => eight(image.into_raw()),
        DynamicImage::ImageLuma16(image) => sixteen(image.into_raw()),
        DynamicImage::ImageRgb16(image) => sixteen(image.into_raw()),
        DynamicImage::ImageRgba16(image) => sixteen(image.into_raw()),
        DynamicImage::ImageRgb32F(image) => image.into_raw(),
        // The only other type that the decoders return is grey with alpha.
        grey_alpha => sixteen(grey_alpha.into_rgba16().into_raw()),
    };
    Image {
        width,
        height,
        channels,
        data,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values that need 16 bits survive a round trip, in PNG's byte order.
    #[test]
    fn sixteen_bits_keep_what_eight_lose() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("a.png");
        for channels in [1, 3, 4] {
            let data: Vec<f32> = (0..2 * channels).map(|i| (256 * i + 3) as f32 / 65535.0).collect();
            let image = Image {
                width: 2,
                height: 1,
                channels,
                data,
            };
            write_deep_png(&path, &image).expect("writable");
            assert_eq!(read(&path).expect("an image").0, image, "{channels}");
        }
    }

    /// What a PNG claims is told where the decoder refuses to allocate for it.
    #[test]
    fn claims_beyond_the_decoders_memory_are_told() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("a.png");
        let told = |[width, height]: [u32; 2], more: usize| {
            let mut bytes = Vec::new();
            let mut encoder = png::Encoder::new(&mut bytes, width, height);
            encoder.set_color(png::ColorType::Rgba);
            encoder.set_depth(png::BitDepth::Sixteen);
            let mut writer = encoder.write_header().expect("a header");
            writer.write_chunk(png::chunk::IDAT, &[]).expect("memory takes it");
            drop(writer);
            bytes.resize(bytes.len() + more, 0);
            std::fs::write(&path, bytes).expect("writable");
            header(&path).expect_err("too large").to_string()
        };
        let error = told([i32::MAX as u32; 2], 0);
        assert!(
            error.contains("a.png: claims 2147483647×2147483647 pixels, which a file of"),
            "{error}"
        );
        let error = told([20_000_000, 1], 100_000);
        assert!(
            error.contains("claims 20000000×1 pixels, a row of which") && error.contains("more than 64 MiB"),
            "{error}"
        );
    }

    /// An EXR with these channels, of one pixel: as a texture and as a picture.
    fn exr_of(channels: &[(&str, f32)]) -> [Image; 2] {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("a.exr");
        let channel = |(name, value): &(&str, f32)| Channel {
            name: (*name).to_owned(),
            values: vec![*value],
        };
        write_exr_channels(&path, [1, 1], channels.iter().map(channel).collect(), false).expect("writable");
        [read_texture, read].map(|read| read(&path).expect("an image").0)
    }

    #[test]
    fn textures_are_not_divided_by_alpha() {
        let [texture, picture] = exr_of(&[("R", 0.2), ("G", 0.3), ("B", 0.4), ("A", 0.5)]);
        assert_eq!(texture.data, [0.2, 0.3, 0.4, 0.5]);
        assert_eq!(picture.data, [0.4, 0.6, 0.8, 0.5]);
    }

    #[test]
    fn x_y_and_z_become_colours() {
        let [texture, picture] = exr_of(&[("X", 0.3), ("Y", 0.2), ("Z", 0.1)]);
        assert_eq!(texture, picture);
        for (found, expected) in texture.data.iter().zip([0.61486, 0.08858, 0.08162]) {
            assert!((found - expected).abs() < 1e-4, "{:?}", texture.data);
        }
    }

    #[test]
    fn radiance_files_are_linear() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("sky.hdr");
        // Mantissas and a common exponent: m · 2^(e − 136).
        let pixels = [[128, 64, 32, 129], [255, 0, 1, 138]].concat();
        let bytes = [b"#?RADIANCE\nFORMAT=32-bit_rle_rgbe\n\n-Y 1 +X 2\n".as_slice(), &pixels].concat();
        std::fs::write(&path, &bytes).expect("writable");
        let (image, encoding) = read(&path).expect("an image");
        assert_eq!((image.channels, encoding), (3, Encoding::Linear));
        assert_eq!(image.data, [1.0, 0.5, 0.25, 1020.0, 0.0, 4.0]);
        std::fs::write(&path, &bytes[..bytes.len() - 5]).expect("writable");
        let error = read(&path).expect_err("truncated").to_string();
        assert!(
            error.ends_with("sky.hdr: ends before its image does, expected a whole HDR file: copy or export it anew"),
            "{error}"
        );
    }

    /// Files that are cut, or some bytes of which are others, are told in one sentence, without the decoder's words.
    #[test]
    fn damage_is_told_in_a_sentence() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        for (name, format) in [("a.png", "PNG"), ("a.jpg", "JPEG"), ("a.bmp", "BMP")] {
            let path = folder.path().join(name);
            let noise = |x: u32, y: u32| ::image::Rgb([x, y, x * y].map(|v| (v * 7) as u8));
            ::image::RgbImage::from_fn(32, 32, noise).save(&path).expect("writable");
            let whole = std::fs::read(&path).expect("readable");
            let mut other = whole.clone();
            let middle = other.len() / 2;
            other[middle..middle + 8].fill(0xff);
            for bytes in [&whole[..whole.len() / 2], &whole[..24], &other] {
                std::fs::write(&path, bytes).expect("writable");
                let error = match read(&path) {
                    // Other bytes may be another picture.
                    Ok(_) if bytes.len() == whole.len() => continue,
                    found => found.expect_err(name).to_string(),
                };
                let end = format!("expected a whole {format} file: copy or export it anew");
                assert!(error.ends_with(&end), "{error}");
                assert_eq!(error.matches(": ").count(), 2, "{error}");
            }
        }
    }

    #[test]
    fn grey_with_alpha_is_read_as_colours() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("a.png");
        let image = ::image::GrayAlphaImage::from_raw(2, 1, vec![51, 255, 255, 102]).expect("two pixels");
        image.save(&path).expect("writable");
        let (header, (image, _)) = (header(&path).expect("a header"), read(&path).expect("an image"));
        assert_eq!((header.width, header.height, header.channels), (2, 1, 4));
        assert_eq!(image.data, [0.2, 0.2, 0.2, 1.0, 1.0, 1.0, 1.0, 0.4]);
    }
}
