//! The images that renders are compared with, one after another in memory.

use super::Resident;
use super::layout::backdrop;
use crate::each::EachEntry;

/// Pixels of all references in the films' colour spaces, with straight alpha.
#[derive(Debug, Clone, PartialEq)]
pub enum Pixels {
    None,
    /// The same for every pixel of every view.
    Constant([f32; 4]),
    /// Eight bits a channel, red in the lowest byte: photographs that are fitted in sRGB, as they are coded.
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
            Self::Unorm8(data) => data[index as usize]
                .to_le_bytes()
                .each(|b| f32::from(b) * (1.0 / 255.0)),
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
    /// Takes rendered images as references, one for each sensor that is named, in the film's own colour space; each is dropped
    /// before the next.
    pub fn set_references(&mut self, images: impl IntoIterator<Item = (usize, Vec<[f32; 4]>)>) {
        let mut all = Vec::new();
        for (sensor, pixels) in images {
            self.sensors[sensor].first_pixel = all.len() as u32;
            self.sensors[sensor].backdrop = backdrop::OPAQUE;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resident::layout::{NO_REFERENCE, SensorRecord};
    use bytemuck::Zeroable;

    fn resident() -> Resident {
        let mut resident = Resident::empty();
        resident.sensors = vec![SensorRecord::zeroed(); 3];
        for sensor in &mut resident.sensors {
            (sensor.first_pixel, sensor.backdrop) = (NO_REFERENCE, backdrop::RANDOM);
        }
        resident
    }

    #[test]
    fn renders_follow_one_another_without_their_transmittance() {
        let mut resident = resident();
        let image = |x: f32, n: usize| vec![[x, 2.0 * x, 3.0 * x, -1.0]; n];
        resident.set_references([(2, image(1.0, 4)), (0, image(5.0, 2))]);
        let first: Vec<u32> = resident.sensors.iter().map(|s| s.first_pixel).collect();
        assert_eq!(first, [4, NO_REFERENCE, 0]);
        let backdrops: Vec<u32> = resident.sensors.iter().map(|s| s.backdrop).collect();
        assert_eq!(backdrops, [backdrop::OPAQUE, backdrop::RANDOM, backdrop::OPAQUE]);
        assert_eq!(resident.references.get(3), [1.0, 2.0, 3.0, 1.0]);
        assert_eq!(resident.references.get(4), [5.0, 10.0, 15.0, 1.0]);
        assert_eq!(resident.references.bytes(), 6 * 16);
    }

    #[test]
    fn constants_and_bytes_are_read_as_colours() {
        let mut resident = resident();
        resident.set_constant_reference([0.25, 0.5, 0.75]);
        assert!(
            resident
                .sensors
                .iter()
                .all(|s| s.first_pixel == 0 && s.backdrop == backdrop::OPAQUE)
        );
        assert_eq!(resident.references.get(77), [0.25, 0.5, 0.75, 1.0]);
        let coded = Pixels::Unorm8(vec![0, 0xff33_6600]);
        assert_eq!((coded.get(0), coded.bytes()), ([0.0; 4], 8));
        for (found, byte) in coded.get(1).into_iter().zip([0.0, 102.0, 51.0, 255.0]) {
            assert!((found - byte / 255.0).abs() < 1e-7);
        }
        assert_eq!((Pixels::None.get(1), Pixels::None.bytes()), ([0.0; 4], 0));
    }
}
