//! OpenEXR: linear images of channels R, G, B, A or Y, or of X, Y, Z, which are converted to RGB, as colours of other primaries
//! are. Pictures hold colours premultiplied by alpha, [`Image`] straight.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, BufReader, BufWriter};
use std::path::Path;

use exr::block::chunk::{CompressedBlock, TileCoordinates};
use exr::block::lines::LineRef;
use exr::block::reader::ChunksReader;
use exr::block::{BlockIndex, UncompressedBlock};
use exr::image::{AnyChannel, AnyChannels, Encoding, FlatSamples, Layer, SpecificChannels};
use exr::math::Vec2;
use exr::meta::attribute::{Chromaticities, SampleType};
use exr::meta::header::{Header, LayerAttributes};
use exr::meta::{BlockDescription, MetaData};
use exr::prelude::{WritableImage, f16};
use glam::{DMat3, DVec3};

use super::image::{Channel, ImageHeader, check_size};
use super::{Image, IoError, Result, srgb};

/// The channels to read, in the order of [`Image`], and which of the file's `names` each is. They may be written in small letters,
/// or lie in a layer, if there are no others. Luminance beside chroma is no grey image.
fn wanted(names: &[String]) -> Option<(&'static [&'static str], Vec<usize>)> {
    const CHOICES: [&[&str]; 6] = [
        &["R", "G", "B", "A"],
        &["R", "G", "B"],
        &["X", "Y", "Z", "A"],
        &["X", "Y", "Z"],
        &["Y", "Y", "Y", "A"],
        &["Y"],
    ];
    let plain = |name: &String| name.rsplit('.').next().unwrap_or_default().to_ascii_uppercase();
    // Of a layer R, G and B alone are colours: X, Y and Z may be those of a normal.
    let passes = [
        (&CHOICES[..], names.to_vec()),
        (&CHOICES[..2], names.iter().map(plain).collect()),
    ];
    passes.iter().find_map(|(choices, names)| {
        let place = |channel: &&str| {
            let mut places = (0..names.len()).filter(|i| names[*i] == *channel);
            places.next().filter(|_| places.next().is_none())
        };
        let found = choices.iter().copied().find_map(|choice| {
            let places: Option<Vec<usize>> = choice.iter().map(place).collect();
            Some((choice, places?))
        })?;
        let is_chroma = found.0[0] == "Y" && ["RY", "BY"].iter().any(|channel| place(channel).is_some());
        (!is_chroma).then_some(found)
    })
}

/// The map from RGB of these primaries to that of Rec. 709, white to light of white's colour, as Mitsuba reads such files; None if
/// they are those of Rec. 709, or no primaries.
fn to_rec709(of: &Chromaticities) -> Option<DMat3> {
    let place =
        |x: f32, y: f32| DVec3::new(f64::from(x), f64::from(y), 1.0 - f64::from(x) - f64::from(y)) / f64::from(y);
    let [r, g, b, white] = [of.red, of.green, of.blue, of.white].map(|Vec2(x, y)| place(x, y));
    let primaries = DMat3::from_cols(r, g, b);
    let inverse = primaries.inverse();
    let to_xyz = primaries * DMat3::from_diagonal(inverse * white);
    let columns = [0, 1, 2].map(|axis| DVec3::from(srgb::from_xyz(to_xyz.col(axis).to_array())));
    let map = DMat3::from_cols(columns[0], columns[1], columns[2]);
    (map.is_finite() && !map.abs_diff_eq(DMat3::IDENTITY, 1e-3)).then_some(map)
}

/// The header of the file's first part, checked against the file's length.
pub(super) fn header(path: &Path, file: File, length: u64) -> Result<ImageHeader> {
    let fail = |message: String| Err(IoError::new(path, message));
    let metadata = match MetaData::read_from_buffered(BufReader::new(file), false) {
        Ok(metadata) => metadata,
        Err(e) => return Err(undecodable(path, &e)),
    };
    let Some(part) = metadata.headers.iter().find(|part| !part.deep) else {
        return fail("is an EXR file without a flat image".into());
    };
    let names = names_of(part);
    let Some((channels, _)) = wanted(&names) else {
        return fail(format!(
            "is an EXR file with channels {}, expected R, G, B or Y or X, Y, Z",
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
    // A block may be the whole image, and is decoded with all channels of the file.
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

/// The error of a file that the decoder refuses: in its words only what it does not support, since those speak of damage are of
/// the format's inside.
fn undecodable(path: &Path, error: &exr::error::Error) -> IoError {
    let message = match error {
        exr::error::Error::NotSupported(what) => {
            format!("is an EXR file of a kind that is not read ({what}): save it as lines or tiles of one flat image")
        }
        exr::error::Error::Io(error) => format!("cannot be read: {error}"),
        _ => "is damaged or ends before its image does, expected a whole EXR file: copy or export it anew".to_owned(),
    };
    IoError::new(path, message)
}

/// What is said of a file whose blocks are not one for each part of the image.
const MISPLACED: &str = "is a damaged EXR file: blocks of the image are missing, or stand in the place of others";

/// Reads the first flat part, whose header has been checked; colours as the file has them, multiplied by alpha or not.
pub(super) fn read(path: &Path, file: File) -> Result<Image> {
    let fail = |error| undecodable(path, &error);
    let reader = exr::block::read(BufReader::new(file), false).map_err(fail)?;
    let parts = reader.headers();
    let chromaticities = parts.first().and_then(|part| part.shared_attributes.chromaticities);
    let flat = parts.iter().position(|part| !part.deep);
    let flat = flat.and_then(|at| Some((at, parts[at].clone(), wanted(&names_of(&parts[at]))?)));
    let (at, part, (choice, places)) =
        flat.ok_or_else(|| IoError::new(path, "has no flat part with channels R, G, B or Y or X, Y, Z"))?;
    let (width, height, channels) = (part.layer_size.width(), part.layer_size.height(), choice.len());
    let mut data = vec![0.0; width * height * channels];
    // Lines go where they belong as they are decoded: whole channels beside the image would double its memory.
    let is_wanted =
        |_: &_, tile: TileCoordinates, block: BlockIndex| block.layer == at && tile.is_largest_resolution_level();
    let chunks = reader.filter_chunks(false, is_wanted).map_err(fail)?;
    let metadata = chunks.meta_data().clone();
    let mut stored = 0;
    for chunk in chunks {
        let chunk = chunk.map_err(fail)?;
        // Offsets of a damaged file lead to blocks of other parts, or of smaller levels.
        let is_smaller = matches!(&chunk.compressed_block, CompressedBlock::Tile(tile) if !tile.coordinates.is_largest_resolution_level());
        if chunk.layer_index != at || is_smaller {
            return Err(IoError::new(path, MISPLACED));
        }
        let block = UncompressedBlock::decompress_chunk(chunk, &metadata, false).map_err(fail)?;
        for line in block.lines(&part.channels) {
            let (Vec2(x, y), count) = (line.location.position, line.location.sample_count);
            let row = data.get_mut((y * width + x) * channels..);
            let row = row.filter(|_| x + count <= width);
            let row = row.ok_or_else(|| IoError::new(path, MISPLACED))?;
            for c in (0..channels).filter(|c| places[*c] == line.location.channel) {
                let texels = row.iter_mut().skip(c).step_by(channels);
                let of_type = part.channels.list[line.location.channel].sample_type;
                read_line(&line, of_type, texels).map_err(fail)?;
                stored += count;
            }
        }
    }
    if stored != data.len() {
        return Err(IoError::new(path, MISPLACED));
    }
    if choice[0] == "X" {
        for texel in data.chunks_exact_mut(channels) {
            let rgb = srgb::from_xyz([texel[0], texel[1], texel[2]].map(f64::from));
            texel[..3].copy_from_slice(&rgb.map(|x| x as f32));
        }
    }
    let map = chromaticities.as_ref().and_then(to_rec709);
    if let (Some(map), "R") = (map, choice[0]) {
        for texel in data.chunks_exact_mut(channels) {
            let of_file = DVec3::from([texel[0], texel[1], texel[2]].map(f64::from));
            // Colours outside of Rec. 709 have negative components, which no light and no reflectance has.
            let rgb = (map * of_file).max(of_file.min(DVec3::ZERO));
            texel[..3].copy_from_slice(&rgb.as_vec3().to_array());
        }
    }
    Ok(Image {
        width,
        height,
        channels,
        data,
    })
}

fn names_of(part: &Header) -> Vec<String> {
    part.channels.list.iter().map(|c| c.name.to_string()).collect()
}

/// Converts the samples of a line to 32-bit floats.
fn read_line<'a>(
    line: &LineRef<'_>,
    of_type: SampleType,
    mut texels: impl Iterator<Item = &'a mut f32>,
) -> exr::error::UnitResult {
    let mut put = |value: f32| {
        if let Some(texel) = texels.next() {
            *texel = value;
        }
    };
    match of_type {
        SampleType::F16 => line.read_samples::<f16>().try_for_each(|v| v.map(|v| put(v.to_f32()))),
        SampleType::F32 => line.read_samples::<f32>().try_for_each(|v| v.map(&mut put)),
        SampleType::U32 => line.read_samples::<u32>().try_for_each(|v| v.map(|v| put(v as f32))),
    }
}

/// Divides colours by alpha, which a picture's file multiplies them by.
pub(super) fn straighten(image: &mut Image) {
    for_each_translucent(image, |v, alpha| v / alpha);
}

/// Writes a file of one layer, losslessly compressed. As a function it would need channels that can be written for any lifetime,
/// which the compiler takes for `'static`: closures that borrow an image are not.
macro_rules! write_layer {
    ($out:expr, $size:expr, $channels:expr) => {{
        let layer = Layer::new($size, LayerAttributes::default(), Encoding::FAST_LOSSLESS, $channels);
        let image = exr::prelude::Image::from_layer(layer);
        image.write().non_parallel().to_buffered($out).map_err(|e| match e {
            exr::error::Error::Io(e) => e,
            other => io::Error::other(other.to_string()),
        })
    }};
}

/// Writes 32-bit floats, losslessly compressed.
pub(super) fn write(out: &mut BufWriter<File>, image: &Image) -> io::Result<()> {
    let mut image = Cow::Borrowed(image);
    if image.has_alpha() {
        for_each_translucent(image.to_mut(), |v, alpha| v * alpha);
    }
    let size = (image.width, image.height);
    // Lists of channels would need a copy of all values; a closure that is called for each pixel needs none.
    let at = |at: Vec2<usize>, c: usize| image.data[(at.y() * image.width + at.x()) * image.channels + c];
    let named = SpecificChannels::build();
    if image.channels == 1 {
        return write_layer!(out, size, named.with_channel("Y").with_pixel_fn(|p| (at(p, 0),)));
    }
    let rgb = named.with_channel("R").with_channel("G").with_channel("B");
    match image.channels {
        3 => write_layer!(out, size, rgb.with_pixel_fn(|p| (at(p, 0), at(p, 1), at(p, 2)))),
        _ => {
            let rgba = rgb.with_channel("A");
            write_layer!(
                out,
                size,
                rgba.with_pixel_fn(|p| (at(p, 0), at(p, 1), at(p, 2), at(p, 3)))
            )
        }
    }
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
    write_layer!(out, (width, height), channels)
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

#[cfg(test)]
mod tests {
    use exr::image::Levels;
    use exr::image::write::layers::WritableLayers;
    use exr::math::RoundingMode;
    use exr::meta::attribute::LineOrder;
    use exr::prelude::Compression;

    use super::*;

    /// The bytes before the pixels of a file with these channels and their sampling, and tiles of this size.
    fn file(channels: &[(&str, i32)], [width, height]: [i32; 2], tile: Option<[i32; 2]>) -> Vec<u8> {
        let words = |words: &[i32]| words.iter().flat_map(|w| w.to_le_bytes()).collect::<Vec<u8>>();
        let mut list = Vec::new();
        for (name, sampling) in channels {
            list.extend([name.as_bytes(), &[0], &words(&[2, 0, *sampling, *sampling])].concat());
        }
        list.push(0);
        let window = words(&[0, 0, width - 1, height - 1]);
        let one = 1f32.to_le_bytes();
        let mut attributes = vec![
            ("channels", "chlist", list),
            ("compression", "compression", vec![0]),
            ("dataWindow", "box2i", window.clone()),
            ("displayWindow", "box2i", window),
            ("lineOrder", "lineOrder", vec![0]),
            ("pixelAspectRatio", "float", one.to_vec()),
            ("screenWindowCenter", "v2f", vec![0; 8]),
            ("screenWindowWidth", "float", one.to_vec()),
        ];
        if let Some(size) = tile {
            attributes.push(("tiles", "tiledesc", [&words(&size)[..], &[0]].concat()));
        }
        let mut out = vec![0x76, 0x2f, 0x31, 1, 2, if tile.is_some() { 2 } else { 0 }, 0, 0];
        for (name, kind, value) in attributes {
            out.extend(
                [
                    name.as_bytes(),
                    &[0],
                    kind.as_bytes(),
                    &[0],
                    &words(&[value.len() as i32]),
                    &value,
                ]
                .concat(),
            );
        }
        out.push(0);
        out
    }

    /// Reads the header of a file that claims to be so many bytes long.
    fn header_of(bytes: &[u8], length: u64) -> std::result::Result<[usize; 3], String> {
        let mut file = tempfile::tempfile().expect("a temporary file");
        std::io::Write::write_all(&mut file, bytes).expect("writable");
        std::io::Seek::rewind(&mut file).expect("the beginning");
        let header = header(Path::new("a.exr"), file, length);
        header
            .map(|h| [h.width, h.height, h.channels])
            .map_err(|e| e.to_string())
    }

    #[test]
    fn what_is_not_read_is_told_by_the_header() {
        let rgb = [("B", 1), ("G", 1), ("R", 1)];
        assert_eq!(header_of(&file(&rgb, [16, 8], None), 10_000), Ok([16, 8, 3]));
        // Tiles may be as large as the image's longer side, or 4096 pixels.
        for (size, tile, possible) in [
            ([16, 8], [4096, 4096], true),
            ([16, 8], [4097, 16], false),
            ([16, 8], [16, 4097], false),
            ([5000, 8], [16, 5000], true),
            ([8, 5000], [5000, 16], true),
            ([5000, 8], [5001, 16], false),
            ([5000, 8], [16, 5001], false),
        ] {
            let found = header_of(&file(&rgb, size, Some(tile)), 1_000_000);
            let expected = format!("tiles of {}×{} pixels, larger than its image", tile[0], tile[1]);
            match possible {
                true => assert_eq!(found, Ok([size[0] as usize, size[1] as usize, 3])),
                false => assert!(found.is_err_and(|e| e.contains(&expected)), "{tile:?}"),
            }
        }
        let error = header_of(&file(&[("B", 1), ("G", 2), ("R", 1)], [16, 8], None), 10_000).expect_err("a small G");
        assert!(error.contains("subsampled") || error.contains("sampling"), "{error}");
        let error = header_of(&file(&[("U", 1), ("V", 1)], [16, 8], None), 10_000).expect_err("no colours");
        assert!(
            error.contains("with channels U, V, expected R, G, B or Y or X, Y, Z"),
            "{error}"
        );
    }

    /// Channels are found in small letters and in the only layer, not in one of two; luminance beside chroma is no grey.
    #[test]
    fn channels_are_found_by_their_names() {
        let found = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|name| (*name).to_string()).collect();
            wanted(&names).map(|(_, places)| places)
        };
        assert_eq!(found(&["b", "g", "r"]), Some(vec![2, 1, 0]));
        assert_eq!(
            found(&["diffuse.B", "diffuse.G", "diffuse.R", "Z"]),
            Some(vec![2, 1, 0])
        );
        assert_eq!(
            found(&["B", "G", "R", "diffuse.B", "diffuse.G", "diffuse.R"]),
            Some(vec![2, 1, 0])
        );
        assert_eq!(found(&["N.X", "N.Y", "N.Z"]), None);
        assert_eq!(found(&["a.B", "a.G", "a.R", "b.B", "b.G", "b.R"]), None);
        assert_eq!((found(&["Y"]), found(&["BY", "RY", "Y"])), (Some(vec![0]), None));
    }

    /// The primaries of Rec. 709 change nothing. Those of Rec. 2020 become what ITU-R BT.2087 says, to 1e-3 (its white is that of
    /// Rec. 709, too).
    #[test]
    fn other_primaries_are_converted() {
        let primaries = |red, green, blue| Chromaticities {
            red,
            green,
            blue,
            white: Vec2(0.3127, 0.329),
        };
        assert_eq!(
            to_rec709(&primaries(Vec2(0.64, 0.33), Vec2(0.3, 0.6), Vec2(0.15, 0.06))),
            None
        );
        let wide = primaries(Vec2(0.708, 0.292), Vec2(0.17, 0.797), Vec2(0.131, 0.046));
        let map = to_rec709(&wide).expect("other primaries");
        let expected = DMat3::from_cols_array_2d(&[
            [1.6605, -0.1246, -0.0182],
            [-0.5876, 1.1329, -0.1006],
            [-0.0728, -0.0083, 1.1187],
        ]);
        assert!(map.abs_diff_eq(expected, 1e-3), "{map}");
    }

    /// The bytes of a file of these layers.
    fn written<'a, L: WritableLayers<'a>>(image: &'a exr::prelude::Image<L>) -> Vec<u8> {
        let mut bytes = io::Cursor::new(Vec::new());
        image
            .write()
            .non_parallel()
            .to_buffered(&mut bytes)
            .expect("memory takes all bytes");
        bytes.into_inner()
    }

    fn read_bytes(bytes: &[u8]) -> Result<Image> {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("a.exr");
        std::fs::write(&path, bytes).expect("writable");
        read(&path, File::open(&path).expect("it is there"))
    }

    const SIZE: Vec2<usize> = Vec2(7, 5);

    /// Another number for each texel and channel, exact in 16 bits.
    fn number(x: usize, y: usize, channel: usize) -> f32 {
        (100 * channel + 10 * y + x) as f32
    }

    /// A layer of three channels of other types, in tiles, with smaller levels, and a data window off the origin.
    fn layer(name: &str, offset: f32) -> Layer<AnyChannels<Levels<FlatSamples>>> {
        let level = |level: usize, channel: usize| {
            let size = [SIZE.0, SIZE.1].map(|n| (n >> level).max(1));
            let texels = (0..size[1]).flat_map(move |y| (0..size[0]).map(move |x| (x, y)));
            let value = move |(x, y)| {
                if level == 0 {
                    number(x, y, channel) + offset
                } else {
                    -1.0
                }
            };
            let values = texels.map(value);
            match channel {
                0 => FlatSamples::F16(values.map(f16::from_f32).collect()),
                1 => FlatSamples::F32(values.collect()),
                _ => FlatSamples::U32(values.map(|v| v.max(0.0) as u32).collect()),
            }
        };
        let levels = |channel| Levels::Mip {
            rounding_mode: RoundingMode::Down,
            level_data: (0..3).map(|i| level(i, channel)).collect(),
        };
        let channels = ["R", "G", "B"]
            .into_iter()
            .zip(0..)
            .map(|(name, c)| AnyChannel::new(name, levels(c)));
        let attributes = LayerAttributes {
            layer_position: Vec2(-3, 11),
            ..LayerAttributes::named(name)
        };
        let encoding = Encoding {
            compression: Compression::ZIP1,
            blocks: exr::image::Blocks::Tiles(Vec2(4, 3)),
            line_order: LineOrder::Increasing,
        };
        Layer::new(SIZE, attributes, encoding, AnyChannels::sort(channels.collect()))
    }

    /// Tiles of half, float and whole numbers, with smaller levels, whose window begins elsewhere; the first of two layers.
    #[test]
    fn tiles_go_where_they_belong() {
        let expected: Vec<f32> = (0..SIZE.1)
            .flat_map(|y| (0..SIZE.0).flat_map(move |x| (0..3).map(move |c| number(x, y, c))))
            .collect();
        let one = exr::prelude::Image::from_layer(layer("a", 0.0));
        let read = read_bytes(&written(&one)).expect("it is sound");
        assert_eq!(
            ([read.width, read.height, read.channels], &read.data),
            ([7, 5, 3], &expected)
        );
        let window = exr::prelude::IntegerBounds::from_dimensions(SIZE);
        let layers = [layer("a", 0.0), layer("b", 1000.0)];
        let two = exr::prelude::Image::from_layers(exr::prelude::ImageAttributes::new(window), layers);
        let read = read_bytes(&written(&two)).expect("it is sound");
        assert_eq!(read.data, expected);
    }

    /// Offsets that lead to another level or another layer, or twice to the same block, are damage.
    #[test]
    fn blocks_of_others_are_refused() {
        let window = exr::prelude::IntegerBounds::from_dimensions(SIZE);
        let layers = [layer("a", 0.0), layer("b", 1000.0)];
        let two = exr::prelude::Image::from_layers(exr::prelude::ImageAttributes::new(window), layers);
        let sound = written(&two);
        // Tables of the offsets of four, one and one blocks stand before the first block, which the first offset names.
        let word = |at: usize| u64::from_le_bytes(sound[at..at + 8].try_into().expect("eight bytes"));
        let blocks = 2 * (4 + 1 + 1);
        let table = (0..sound.len() - 8)
            .find(|at| word(*at) == (at + 8 * blocks) as u64)
            .expect("a table");
        for (what, other) in [("the next block", 1), ("a smaller level", 4), ("the other layer", 6)] {
            let mut damaged = sound.clone();
            damaged.copy_within(table + 8 * other..table + 8 * (other + 1), table);
            let error = read_bytes(&damaged).expect_err(what).to_string();
            assert!(error.contains("damaged"), "{what}: {error}");
        }
    }

    /// A block is decoded with all its channels, which count: 2048 × 2048 pixels of 40 channels take 640 MiB.
    #[test]
    fn channels_that_are_not_used_take_memory() {
        let names: Vec<String> = (0..37).map(|i| format!("a{i:02}")).collect();
        let mut channels: Vec<(&str, i32)> = vec![("B", 1), ("G", 1), ("R", 1)];
        channels.extend(names.iter().map(|name| (&name[..], 1)));
        assert_eq!(
            header_of(&file(&channels[..3], [2048; 2], None), 100_000),
            Ok([2048, 2048, 3])
        );
        let error = header_of(&file(&channels, [2048; 2], None), 100_000).expect_err("too large");
        assert!(error.contains("640 MiB as floats of 40 channels"), "{error}");
    }

    /// Only texels whose alpha is positive and not 1 are changed, each by its own alpha.
    #[test]
    fn translucent_texels_are_those_between_nothing_and_one() {
        let mut image = Image {
            width: 5,
            height: 1,
            channels: 4,
            data: [
                [1.0, 2.0, 3.0, 0.5],
                [4.0, 5.0, 6.0, 0.0],
                [7.0, 8.0, 9.0, 1.0],
                [1.0, 2.0, 3.0, 2.0],
                [1.0, 1.0, 1.0, -1.0],
            ]
            .concat(),
        };
        for_each_translucent(&mut image, |v, alpha| 10.0 * v * alpha);
        let expected = [
            [5.0, 10.0, 15.0, 0.5],
            [4.0, 5.0, 6.0, 0.0],
            [7.0, 8.0, 9.0, 1.0],
            [20.0, 40.0, 60.0, 2.0],
            [1.0, 1.0, 1.0, -1.0],
        ];
        assert_eq!(image.data, expected.concat());
        let mut opaque = Image {
            width: 4,
            height: 1,
            channels: 3,
            data: vec![0.5; 12],
        };
        for_each_translucent(&mut opaque, |_, _| 9.0);
        assert_eq!(opaque.data, [0.5; 12]);
    }
}
