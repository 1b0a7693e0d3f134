//! The images that renders are compared with, one after another in memory.

use super::Resident;
use super::layout::backdrop;

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
