//! The images that renders are compared with, one after another in memory.

use super::Resident;
use super::layout::{NO_REFERENCE, backdrop};
use crate::io::{self, Encoding, Image, IoError, image, srgb};
use crate::scene::{Backdrop, ColorSpace, Sensor};

/// Pixels of all references in the films' colour spaces, with straight alpha.
#[derive(Debug, Clone, PartialEq)]
pub enum Pixels {
    None,
    /// The same for every pixel of every view.
    Constant([f32; 4]),
    /// Eight bits a channel, red in the lowest byte: photographs fitted as they are coded.
    Unorm8(Vec<u32>),
    Float(Vec<[f32; 4]>),
}

impl Pixels {
    /// The pixel at `index`.
    #[inline(always)]
    pub fn get(&self, index: u32) -> [f32; 4] {
        match self {
            Self::None => [0.0; 4],
            Self::Constant(value) => *value,
            Self::Unorm8(data) => data[index as usize].to_le_bytes().map(|b| f32::from(b) * (1.0 / 255.0)),
            Self::Float(data) => data[index as usize],
        }
    }

    /// Adds a photograph; the first that eight bits cannot hold turns all into floats.
    fn append(&mut self, picture: &Image, eight_bit: bool) {
        if !eight_bit && let Self::Unorm8(data) = self {
            *self = Self::Float((0..data.len()).map(|i| self.get(i as u32)).collect());
        }
        match self {
            Self::Unorm8(data) => data.extend(rgba(picture).map(to_unorm8)),
            Self::Float(data) => data.extend(rgba(picture)),
            Self::None | Self::Constant(_) => {}
        }
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        match self {
            Self::None | Self::Constant(_) => 0,
            Self::Unorm8(data) => 4 * data.len(),
            Self::Float(data) => 16 * data.len(),
        }
    }
}

impl Resident {
    /// Reads the sensors' photographs; those without one keep none.
    ///
    /// # Errors
    /// A photograph cannot be read, or its size is not its camera's.
    pub fn load_references(&mut self, sensors: &[Sensor]) -> io::Result<()> {
        let mut all = Pixels::Unorm8(Vec::new());
        let mut first = 0u32;
        for (sensor, record) in sensors.iter().zip(&mut self.sensors) {
            let Some(reference) = &sensor.reference else { continue };
            let (mut picture, encoding) = image::read(&reference.path)?;
            if reference.downscale > 1 {
                picture = picture.downscale(reference.downscale as usize);
            }
            if (picture.width, picture.height) != (sensor.width as usize, sensor.height as usize) {
                return Err(IoError::new(
                    &reference.path,
                    format!(
                        "the image has {}×{} pixels and its camera {} has {}×{}",
                        picture.width, picture.height, sensor.name, sensor.width, sensor.height
                    ),
                ));
            }
            recode(&mut picture, encoding, sensor.color_space);
            let coded = encoding == Encoding::Srgb && sensor.color_space == ColorSpace::Srgb;
            (record.backdrop, record.backdrop_color) = match reference.backdrop {
                Backdrop::Opaque => (backdrop::OPAQUE, [0.0; 4]),
                Backdrop::Color([r, g, b]) => (backdrop::COLOR, [r, g, b, 0.0]),
                Backdrop::Random => (backdrop::RANDOM, [0.0; 4]),
            };
            record.first_pixel = first;
            first = (picture.width * picture.height)
                .try_into()
                .ok()
                .and_then(|n| first.checked_add(n))
                .filter(|n| *n != NO_REFERENCE)
                .ok_or_else(|| {
                    IoError::new(
                        &reference.path,
                        "all references together have more than 2^32 pixels; raise `downscale`",
                    )
                })?;
            all.append(&picture, coded && reference.downscale <= 1);
        }
        self.references = if first == 0 { Pixels::None } else { all };
        Ok(())
    }

    /// Takes rendered images as references, one for each sensor listed, in the film's own colour space.
    pub fn set_references(&mut self, images: &[(usize, Vec<[f32; 4]>)]) {
        let mut all = Vec::new();
        for (sensor, pixels) in images {
            self.sensors[*sensor].first_pixel = all.len() as u32;
            self.sensors[*sensor].backdrop = backdrop::OPAQUE;
            all.extend(pixels.iter().map(|p| [p[0], p[1], p[2], 1.0]));
        }
        self.references = Pixels::Float(all);
    }

    /// Takes one colour as the reference of every sensor.
    pub fn set_constant_reference(&mut self, [r, g, b]: [f32; 3]) {
        for sensor in &mut self.sensors {
            sensor.first_pixel = 0;
            sensor.backdrop = backdrop::OPAQUE;
        }
        self.references = Pixels::Constant([r, g, b, 1.0]);
    }
}

/// Brings a photograph's colours into its film's colour space; alpha stays.
fn recode(picture: &mut Image, encoding: Encoding, space: ColorSpace) {
    let curve: fn(f32) -> f32 = match (encoding, space) {
        (Encoding::Srgb, ColorSpace::Linear) => srgb::decode,
        (Encoding::Linear, ColorSpace::Srgb) => srgb::encode,
        _ => return,
    };
    let channels = picture.channels;
    let colors = if channels == 1 { 1 } else { 3 };
    for pixel in picture.data.chunks_exact_mut(channels) {
        for value in &mut pixel[..colors] {
            *value = curve(*value);
        }
    }
}

/// RGBA of each pixel; grey is repeated, a missing alpha is 1.
fn rgba(picture: &Image) -> impl Iterator<Item = [f32; 4]> + '_ {
    picture.data.chunks_exact(picture.channels).map(|p| match p {
        [grey] => [*grey, *grey, *grey, 1.0],
        [r, g, b, alpha] => [*r, *g, *b, *alpha],
        _ => [p[0], p[1], p[2], 1.0],
    })
}

fn to_unorm8(pixel: [f32; 4]) -> u32 {
    u32::from_le_bytes(pixel.map(|v| (v.clamp(0.0, 1.0) * 255.0).round() as u8))
}
