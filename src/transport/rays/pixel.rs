//! The pixel of a ray, and random choices per pixel (as opposed to per ray).

use super::camera::{Ray, camera_ray};
use super::film::filter_sample;
use super::random::{Counter, Key, random_index, random_uniform, random_words, stratified_uniform};
use super::sensor::{sensor_ray, sensor_weight};
use crate::resident::layout::{SceneRecord, SensorRecord, backdrop, sensor};

/// A pixel of a sensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pixel {
    pub sensor: u32,
    /// y · width + x
    pub index: u32,
}

/// Maps an index over the pixels of several sensors to a [`Pixel`]: `starts[i]` is the first index of `sensors[i]`,
/// and one more entry holds the total.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct PixelTable {
    pub sensors: Vec<u32>,
    pub starts: Vec<u32>,
}

impl PixelTable {
    /// The table over whole sensors, in the order given. None if the pixels do not fit 32 bits.
    #[inline]
    pub fn new(records: &[SensorRecord], sensors: &[u32]) -> Option<Self> {
        let mut starts = vec![0u32];
        for &s in sensors {
            let sensor = &records[s as usize];
            let last = *starts.last().expect("starts is never empty");
            starts.push(last.checked_add(sensor.width.checked_mul(sensor.height)?)?);
        }
        Some(Self {
            sensors: sensors.to_vec(),
            starts,
        })
    }

    /// Number of pixels.
    #[inline]
    pub fn len(&self) -> u32 {
        self.starts.last().copied().unwrap_or(0)
    }

    /// Whether there is no pixel.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The pixel at `index` < `len`.
    #[inline(always)]
    pub fn pixel(&self, index: u32) -> Pixel {
        let slot = self.starts.partition_point(|&start| start <= index) - 1;
        Pixel {
            sensor: self.sensors[slot],
            index: index - self.starts[slot],
        }
    }
}

/// Counter blocks of draws that belong to a pixel or ray of the batch rather than to a sample.
pub const DRAWN_PIXEL: u32 = 1 << 16;
pub const RANDOM_BACKDROP: u32 = 1 << 17;
pub const LINEAR_WEIGHT: u32 = 1 << 18;

/// Counter block of a sample's place on a lens or an area.
pub const LENS: u32 = 1 << 29;

/// The random pixel of ray `index`, in a batch of rays drawn uniformly from all pixels of `table`; equal in every pass
/// with the same `objective` key.
#[inline(always)]
pub fn drawn_pixel(table: &PixelTable, objective: Key, index: u32) -> Pixel {
    let words = random_words(
        objective,
        Counter {
            sensor: 0,
            pixel: index,
            sample: 0,
            block: DRAWN_PIXEL,
        },
    );
    table.pixel(random_index(words[0], table.len()))
}

/// The random background colour of a pixel, behind both its reference and the medium; equal in every pass of an
/// iteration.
#[inline(always)]
pub fn random_backdrop(objective: Key, pixel: Pixel) -> [f32; 3] {
    let counter = Counter {
        sensor: pixel.sensor,
        pixel: pixel.index,
        sample: 0,
        block: RANDOM_BACKDROP,
    };
    let u = random_uniform(objective, counter);
    [u[0], u[1], u[2]]
}

/// The first block of a sample: the numbers of its place on the film, and of where a march begins.
#[inline(always)]
pub fn film_numbers(scene: &SceneRecord, key: Key, counter: Counter) -> [f32; 4] {
    // Rays through a field are one sample each of pixels drawn at random as a rule: there is nothing to spread.
    match scene.has_field {
        0 => stratified_uniform(key, counter),
        _ => random_uniform(key, counter),
    }
}

/// A sample's ray.
#[derive(Debug, Clone, Copy)]
pub struct Sampled {
    pub ray: Ray,
    /// Uniform in [0, 1): where along its first step a march through a field begins.
    pub jitter: f32,
    /// What its radiance counts in its pixel. Of mean one but for meters, and negative in negative lobes of the filter.
    pub weight: f32,
}

/// One sample of a pixel. None where its lens has no inverse.
#[inline(always)]
pub fn sample_ray(scene: &SceneRecord, record: &SensorRecord, pixel: Pixel, key: Key, sample: u32) -> Option<Sampled> {
    let mut counter = Counter {
        sensor: pixel.sensor,
        pixel: pixel.index,
        sample,
        block: 0,
    };
    let [u, v, jitter, _] = film_numbers(scene, key, counter);
    let (column, row) = (pixel.index % record.width, pixel.index / record.width);
    let x = filter_sample(scene, record, column, record.width, u);
    let y = filter_sample(scene, record, row, record.height, v);
    let mut ray = if record.kind == sensor::PERSPECTIVE {
        camera_ray(record, x.position, y.position)?
    } else {
        counter.block = LENS;
        sensor_ray(record, x.position, y.position, random_uniform(key, counter))?
    };
    ray.sensor = pixel.sensor;
    Some(Sampled {
        ray,
        jitter,
        weight: x.weight * y.weight * sensor_weight(record),
    })
}

/// The colour that replaces the emitter behind this pixel, if its backdrop is random.
#[inline(always)]
pub fn pixel_backdrop(sensor: &SensorRecord, objective: Key, pixel: Pixel) -> Option<[f32; 3]> {
    if sensor.backdrop == backdrop::RANDOM {
        Some(random_backdrop(objective, pixel))
    } else {
        None
    }
}

/// The weight of [`crate::kernels::loss::Loss::Linear`] for a channel of a batch's pixel: 1 for `seed` 0, else uniform
/// in [-1, 1).
#[inline(always)]
pub fn linear_weight(seed: u32, index: u32, channel: u32) -> f32 {
    if seed == 0 {
        return 1.0;
    }
    let key = [seed, LINEAR_WEIGHT, 0, 0];
    2.0 * random_uniform(
        key,
        Counter {
            sensor: 0,
            pixel: index,
            sample: channel,
            block: 0,
        },
    )[0] - 1.0
}
