//! Photographs as references.

use rayon::prelude::*;

use super::Resident;
use super::layout::backdrop;
use super::references::Pixels;
use crate::each::EachEntry;
use crate::io::{self, Encoding, Image, IoError, image, srgb};
use crate::scene::{Backdrop, ColorSpace, Reference, Sensor};

/// Most photographs that are decoded at a time, and the most bytes that their floats take together if they are several.
const AT_A_TIME: usize = 8;
const BYTES_AT_A_TIME: u64 = 2 << 30;

impl Resident {
    /// Reads the photographs of the sensors listed and keeps them as references: with eight bits a channel if all are
    /// coded so, or downscaled, in sRGB and fitted in sRGB, else as floats. `all` are the scene's sensors.
    ///
    /// # Errors
    /// A photograph cannot be read, has not its camera's size, or there are more than 2³² pixels.
    pub fn read_photographs(&mut self, all: &[Sensor], listed: &[u32]) -> io::Result<()> {
        let mut pixels = Pixels::Unorm8(Vec::new());
        let mut count = 0u64;
        for group in groups(listed, |index| float_bytes(&all[index as usize])) {
            let read = group.par_iter().filter_map(|&index| {
                let sensor = &all[index as usize];
                let reference = sensor.reference.as_ref()?;
                Some(photograph(sensor, reference).map(|photograph| (index, reference, photograph)))
            });
            for (index, reference, photograph) in read.collect::<io::Result<Vec<_>>>()? {
                let record = &mut self.sensors[index as usize];
                record.first_pixel = count as u32;
                (record.backdrop, record.backdrop_color) = match reference.backdrop {
                    Backdrop::Opaque => (backdrop::OPAQUE, [0.0; 4]),
                    Backdrop::Color([r, g, b]) => (backdrop::COLOR, [r, g, b, 0.0]),
                    Backdrop::Random => (backdrop::RANDOM, [0.0; 4]),
                };
                count += photograph.pixels.len() as u64;
                if count > u64::from(u32::MAX) {
                    let message = "the photographs together have more than 2³² pixels; use `downscale`";
                    return Err(IoError::new(&reference.path, message));
                }
                append(&mut pixels, photograph);
            }
        }
        self.references = pixels;
        Ok(())
    }
}

/// Bytes of a sensor's photograph before it is downscaled, as floats of four channels.
fn float_bytes(sensor: &Sensor) -> u64 {
    let factor = sensor
        .reference
        .as_ref()
        .map_or(0, |reference| u64::from(reference.downscale));
    let [width, height] = [sensor.width, sensor.height].each(|n| u64::from(n).saturating_mul(factor));
    width.saturating_mul(height).saturating_mul(16)
}

/// Cuts a list into groups that are decoded at a time.
fn groups(listed: &[u32], bytes: impl Fn(u32) -> u64) -> Vec<&[u32]> {
    let mut groups = Vec::new();
    let mut rest = listed;
    while !rest.is_empty() {
        let mut total = 0u64;
        let fits = |index: &&u32| {
            total = total.saturating_add(bytes(**index));
            total <= BYTES_AT_A_TIME
        };
        let count = rest.iter().take(AT_A_TIME).take_while(fits).count().max(1);
        let (group, others) = rest.split_at(count);
        groups.push(group);
        rest = others;
    }
    groups
}

/// A photograph in the colour space of its sensor's film.
#[derive(Debug, Clone, PartialEq)]
pub struct Photograph {
    /// RGB and straight alpha.
    pub pixels: Vec<[f32; 4]>,
    /// Whether it is kept with eight bits a channel.
    pub eight_bit: bool,
}

/// Reads the photograph of a sensor; its size is checked before it is decoded. Downscaling averages linear light, whatever
/// the encoding of file and film.
///
/// # Errors
/// It cannot be read, holds NaN or infinity, or has not the sensor's size.
pub fn photograph(sensor: &Sensor, reference: &Reference) -> io::Result<Photograph> {
    let factor = reference.downscale.max(1) as usize;
    let header = image::header(&reference.path)?;
    check_size(sensor, reference, [header.width / factor, header.height / factor])?;
    let (mut image, mut encoding) = match reference.backdrop {
        Backdrop::Opaque => without_alpha(image::read_texture(&reference.path)?),
        Backdrop::Color(_) | Backdrop::Random => image::read(&reference.path)?,
    };
    let eight_bit =
        sensor.color_space == ColorSpace::Srgb && encoding == Encoding::Srgb && (factor > 1 || has_eight_bits(&image));
    if factor > 1 {
        if encoding == Encoding::Srgb {
            srgb::decode_image(&mut image);
            encoding = Encoding::Linear;
        }
        image = image.downscale(factor);
    }
    // The file may have been replaced since.
    check_size(sensor, reference, [image.width, image.height])?;
    if let Some(at) = image.first_non_finite() {
        let (x, y) = (at / image.channels % image.width, at / image.channels / image.width);
        let message = format!("pixel x={x} y={y} is {}, expected finite numbers", image.data[at]);
        return Err(IoError::new(&reference.path, message));
    }
    let convert = match (encoding, sensor.color_space) {
        (Encoding::Srgb, ColorSpace::Linear) => srgb::decode,
        (Encoding::Linear, ColorSpace::Srgb) => srgb::encode,
        _ => |v| v,
    };
    let pixel = |texel: &[f32]| match *texel {
        [r, g, b, a] => [convert(r), convert(g), convert(b), a],
        [r, g, b] => [convert(r), convert(g), convert(b), 1.0],
        _ => [convert(texel[0]), convert(texel[0]), convert(texel[0]), 1.0],
    };
    Ok(Photograph {
        pixels: image.data.chunks_exact(image.channels).map(pixel).collect(),
        eight_bit,
    })
}

/// The image with the colours that its file has. Those of an EXR are of light, which transparency has reduced already.
fn without_alpha((image, encoding): (Image, Encoding)) -> (Image, Encoding) {
    if image.channels != 4 {
        return (image, encoding);
    }
    let colors = image.data.chunks_exact(4).flat_map(|texel| &texel[..3]);
    let image = Image {
        channels: 3,
        data: colors.copied().collect(),
        ..image
    };
    (image, encoding)
}

/// Refuses a photograph whose size differs from its film's.
fn check_size(sensor: &Sensor, reference: &Reference, [width, height]: [usize; 2]) -> io::Result<()> {
    if [width, height] == [sensor.width as usize, sensor.height as usize] {
        return Ok(());
    }
    let message = format!(
        "has {width}×{height} pixels, its camera `{}` {}×{}",
        sensor.name, sensor.width, sensor.height
    );
    Err(IoError::new(&reference.path, message))
}

fn has_eight_bits(image: &Image) -> bool {
    let whole = |v: &f32| (v * 255.0 - (v * 255.0).round()).abs() < 1e-3;
    image.data.iter().all(whole)
}

/// Adds a photograph. The first that is not kept with eight bits turns all before it into floats.
fn append(all: &mut Pixels, photograph: Photograph) {
    let pack = |p: &[f32; 4]| u32::from_le_bytes(p.each(|v| (v.clamp(0.0, 1.0) * 255.0).round() as u8));
    match all {
        Pixels::Unorm8(data) if photograph.eight_bit => data.extend(photograph.pixels.iter().map(pack)),
        Pixels::Float(data) => data.extend(photograph.pixels),
        coded => {
            let before = match coded {
                Pixels::Unorm8(data) => data.len() as u32,
                _ => 0,
            };
            let mut data: Vec<[f32; 4]> = (0..before).map(|i| coded.get(i)).collect();
            data.extend(photograph.pixels);
            *coded = Pixels::Float(data);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sensor(folder: &std::path::Path, name: &str, color_space: ColorSpace) -> Sensor {
        Sensor {
            name: name.into(),
            width: 2,
            height: 1,
            color_space,
            reference: Some(Reference {
                path: folder.join(name),
                downscale: 1,
                backdrop: Backdrop::Random,
            }),
            ..Sensor::default()
        }
    }

    fn resident(count: usize) -> Resident {
        let mut resident = Resident::empty();
        resident.sensors = vec![bytemuck::Zeroable::zeroed(); count];
        resident
    }

    #[test]
    fn coded_photographs_stay_coded_until_a_linear_one_comes() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let data = vec![1.0, 0.2, 0.0, 0.4, 0.6, 0.8];
        let picture = Image {
            width: 2,
            height: 1,
            channels: 3,
            data,
        };
        image::write_png(&folder.path().join("a.png"), &picture).expect("writable");
        image::write_exr(&folder.path().join("b.exr"), &picture).expect("writable");
        let sensors = [
            sensor(folder.path(), "a.png", ColorSpace::Srgb),
            sensor(folder.path(), "b.exr", ColorSpace::Srgb),
        ];
        let mut coded = resident(2);
        coded.read_photographs(&sensors[..1], &[0]).expect("readable");
        assert!(matches!(coded.references, Pixels::Unorm8(_)));
        assert!((coded.references.get(1)[0] - 0.4).abs() < 1e-6);
        let mut mixed = resident(2);
        mixed.read_photographs(&sensors, &[0, 1]).expect("readable");
        assert!(matches!(mixed.references, Pixels::Float(_)));
        assert_eq!(mixed.sensors[1].first_pixel, 2);
        assert_eq!(mixed.references.get(1), coded.references.get(1));
        assert!((mixed.references.get(3)[1] - srgb::encode(0.6)).abs() < 1e-6);
    }

    /// Half of the pixels are black, half white: their mean light is 1/2, which sRGB codes as 1.055 (1/2)^(1/2.4) - 0.055.
    #[test]
    fn reduced_photographs_keep_their_mean_light_on_either_film() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let picture = Image {
            width: 4,
            height: 2,
            channels: 3,
            data: [[0.0f32; 3], [1.0; 3]].repeat(4).concat(),
        };
        image::write_png(&folder.path().join("a.png"), &picture).expect("writable");
        image::write_exr(&folder.path().join("b.exr"), &picture).expect("writable");
        let read = |name: &str, color_space| {
            let sensor = sensor(folder.path(), name, color_space);
            let reference = Reference {
                downscale: 2,
                ..sensor.reference.clone().expect("given")
            };
            photograph(&sensor, &reference).expect("readable")
        };
        for name in ["a.png", "b.exr"] {
            for (film, mean) in [(ColorSpace::Linear, 0.5f32), (ColorSpace::Srgb, 0.735_357)] {
                let read = read(name, film);
                for pixel in &read.pixels {
                    assert!(
                        (pixel[0] - mean).abs() < 1e-5 && pixel[3] == 1.0,
                        "{name} {film:?}: {pixel:?}"
                    );
                }
                assert_eq!(read.pixels.len(), 2);
                assert_eq!(read.eight_bit, name == "a.png" && film == ColorSpace::Srgb);
            }
        }
    }

    /// The light in an EXR is what its alpha has left of it.
    #[test]
    fn an_exr_without_a_backdrop_keeps_its_light() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let picture = Image {
            width: 1,
            height: 1,
            channels: 4,
            data: vec![0.4, 0.6, 0.8, 0.5],
        };
        image::write_exr(&folder.path().join("a.exr"), &picture).expect("writable");
        let sensor = Sensor {
            width: 1,
            height: 1,
            ..sensor(folder.path(), "a.exr", ColorSpace::Linear)
        };
        for (backdrop, expected) in [
            (Backdrop::Opaque, [0.2, 0.3, 0.4, 1.0]),
            (Backdrop::Color([0.0; 3]), [0.4, 0.6, 0.8, 0.5]),
        ] {
            let reference = Reference {
                backdrop,
                downscale: 1,
                ..sensor.reference.clone().expect("given")
            };
            let read = photograph(&sensor, &reference).expect("readable");
            assert_eq!(read.pixels, [expected], "{backdrop:?}");
        }
    }

    #[test]
    fn a_size_that_is_not_the_films_is_refused_before_pixels_are_decoded() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("a.png");
        let picture = Image {
            width: 64,
            height: 64,
            channels: 1,
            data: (0..4096).map(|i| (i * 37 % 256) as f32 / 255.0).collect(),
        };
        image::write_png(&path, &picture).expect("writable");
        let bytes = std::fs::read(&path).expect("there");
        std::fs::write(&path, &bytes[..200]).expect("writable");
        let sensor = sensor(folder.path(), "a.png", ColorSpace::Srgb);
        let reference = sensor.reference.clone().expect("given");
        let error = photograph(&sensor, &reference).expect_err("wrong size").to_string();
        assert!(
            error.contains("64×64"),
            "the pixels are missing, the header is there: {error}"
        );
    }

    #[test]
    fn few_large_or_eight_small_photographs_are_decoded_at_a_time() {
        let gib = |index: u32| u64::from(index) << 30;
        assert_eq!(groups(&[9, 1, 1, 1, 2, 3], gib), [&[9][..], &[1, 1], &[1], &[2], &[3]]);
        assert_eq!(
            groups(&[0; 17], gib).iter().map(|g| g.len()).collect::<Vec<_>>(),
            [8, 8, 1]
        );
        let mut large = sensor(std::path::Path::new(""), "a.png", ColorSpace::Srgb);
        (large.width, large.height) = (8192, 4096);
        large.reference.as_mut().expect("given").downscale = 2;
        assert_eq!(float_bytes(&large), 2 << 30);
    }

    #[test]
    fn a_linear_film_decodes_and_a_wrong_size_is_refused() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let picture = Image {
            width: 2,
            height: 1,
            channels: 1,
            data: vec![1.0, 0.2],
        };
        image::write_png(&folder.path().join("a.png"), &picture).expect("writable");
        let mut sensor = sensor(folder.path(), "a.png", ColorSpace::Linear);
        let reference = sensor.reference.clone().expect("given");
        let read = photograph(&sensor, &reference).expect("readable");
        assert!((read.pixels[1][2] - srgb::decode(0.2)).abs() < 1e-6 && !read.eight_bit);
        sensor.width = 3;
        let error = photograph(&sensor, &reference).expect_err("wrong size").to_string();
        assert!(error.contains("2×1") && error.contains("3×1"), "{error}");
    }

    /// 0.5 is 127.5/255, which eight bits cannot hold, wherever in the image it stands.
    #[test]
    fn every_value_must_have_eight_bits() {
        let grey = |data: &[f32]| Image {
            width: data.len(),
            height: 1,
            channels: 1,
            data: data.to_vec(),
        };
        for (data, expected) in [
            (&[0.2, 1.0, 0.0][..], true),
            (&[0.5, 1.0], false),
            (&[1.0, 0.5], false),
            (&[0.2, 0.5, 0.6], false),
        ] {
            assert_eq!(has_eight_bits(&grey(data)), expected, "{data:?}");
        }
    }

    #[test]
    fn a_group_may_be_just_as_large_as_is_decoded_at_a_time() {
        let half = BYTES_AT_A_TIME / 2;
        let sizes = [
            half,
            BYTES_AT_A_TIME - half,
            half + 1,
            BYTES_AT_A_TIME - half,
            BYTES_AT_A_TIME + 1,
            u64::MAX,
        ];
        let found = groups(&[0, 1, 2, 3, 4, 5, 5], |index| sizes[index as usize]);
        assert_eq!(found, [&[0, 1][..], &[2], &[3], &[4], &[5], &[5]]);
        assert!(groups(&[], |_| 1).is_empty());
    }

    #[test]
    fn records_tell_what_is_behind_and_where_a_photograph_begins() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let picture = Image {
            width: 2,
            height: 1,
            channels: 3,
            data: vec![1.0, 0.2, 0.0, 0.4, 0.6, 0.8],
        };
        image::write_png(&folder.path().join("a.png"), &picture).expect("writable");
        let backdrops = [Backdrop::Color([0.1, 0.2, 0.3]), Backdrop::Random, Backdrop::Opaque];
        let sensors = backdrops.map(|backdrop| {
            let mut sensor = sensor(folder.path(), "a.png", ColorSpace::Srgb);
            sensor.reference.as_mut().expect("given").backdrop = backdrop;
            sensor
        });
        let mut all = resident(3);
        all.read_photographs(&sensors, &[0, 2, 1]).expect("readable");
        let found = [0, 1, 2].map(|i| {
            let record = &all.sensors[i];
            (record.first_pixel, record.backdrop, record.backdrop_color)
        });
        let expected = [
            (0, backdrop::COLOR, [0.1, 0.2, 0.3, 0.0]),
            (4, backdrop::RANDOM, [0.0; 4]),
            (2, backdrop::OPAQUE, [0.0; 4]),
        ];
        assert_eq!(found, expected);
        assert_eq!(all.references.bytes(), 6 * 4);
    }

    #[test]
    fn the_first_photograph_may_be_of_floats() {
        for mut all in [Pixels::None, Pixels::Unorm8(Vec::new()), Pixels::Float(Vec::new())] {
            let photograph = Photograph {
                pixels: vec![[0.25, 0.5, 1.5, 1.0], [-1.0, 0.0, 9.0, 0.5]],
                eight_bit: false,
            };
            append(&mut all, photograph);
            assert_eq!(
                (all.bytes(), all.get(0), all.get(1)),
                (32, [0.25, 0.5, 1.5, 1.0], [-1.0, 0.0, 9.0, 0.5])
            );
        }
    }
}
