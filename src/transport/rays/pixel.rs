//! The pixel of a ray, and random choices per pixel (as opposed to per ray).

use super::camera::{Ray, camera_ray, on_image_plane, pinhole_ray};
use super::film::filter_sample;
use super::random::{Counter, Key, random_index, random_uniform, random_words, stratified_uniform};
use super::sensor::{sensor_ray, sensor_weight};
use crate::each::EachEntry;
use crate::resident::layout::{SceneRecord, SensorRecord, backdrop, distortion, filter, sensor};

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

/// The first four random numbers of a sample: two for its film position, the third for the jitter of a march.
#[inline(always)]
pub fn film_numbers(scene: &SceneRecord, key: Key, counter: Counter) -> [f32; 4] {
    // Rays through a field are mostly single samples of random pixels, which stratification does not help.
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
    /// The weight of its radiance in its pixel: of mean one (irradiance meters: π), and negative in negative lobes of the
    /// filter.
    pub weight: f32,
}

/// The ray of one sample of a pixel. None where the lens distortion has no inverse.
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

/// Whether [`sample_rays`] supports a sensor: pinholes without distortion.
#[inline(always)]
pub fn is_pinhole(record: &SensorRecord) -> bool {
    record.kind == sensor::PERSPECTIVE && record.distortion_model == distortion::NONE
}

/// Samples of one sensor, one in each lane of a vector.
#[derive(Debug, Clone, Copy)]
pub struct Samples<const LANES: usize> {
    pub sensor: u32,
    pub pixels: [u32; LANES],
    pub samples: [u32; LANES],
    /// Columns and rows of the pixels.
    pub places: [[u32; LANES]; 2],
}

/// Rays in structure-of-arrays layout, and the weight of each one's radiance in its pixel. Aligned so that sixteen numbers lie
/// in one cache line.
#[derive(Debug, Clone, Copy)]
#[repr(align(64))]
pub struct SampledRays<const LANES: usize> {
    pub origins: [[f32; LANES]; 3],
    pub directions: [[f32; LANES]; 3],
    pub nears: [f32; LANES],
    pub fars: [f32; LANES],
    pub weights: [f32; LANES],
}

impl<const LANES: usize> SampledRays<LANES> {
    /// All zero: no rays yet.
    pub const NONE: Self = Self {
        origins: [[0.0; LANES]; 3],
        directions: [[0.0; LANES]; 3],
        nears: [0.0; LANES],
        fars: [0.0; LANES],
        weights: [0.0; LANES],
    };

    /// The ray of one lane, of the sensor with this index.
    #[inline(always)]
    pub fn ray(&self, lane: usize, sensor: u32) -> Ray {
        Ray {
            origin: [0, 1, 2].each(|a| self.origins[a][lane]),
            direction: [0, 1, 2].each(|a| self.directions[a][lane]),
            near: self.nears[lane],
            far: self.fars[lane],
            sensor,
        }
    }

    /// Sets a lane.
    #[inline(always)]
    pub fn put(&mut self, lane: usize, ray: &Ray, weight: f32) {
        for a in 0..3 {
            self.origins[a][lane] = ray.origin[a];
            self.directions[a][lane] = ray.direction[a];
        }
        (self.nears[lane], self.fars[lane], self.weights[lane]) = (ray.near, ray.far, weight);
    }
}

/// [`sample_ray`] of several samples by a sensor that [`is_pinhole`], to the same bits.
#[inline(always)]
pub fn sample_rays<const LANES: usize>(
    scene: &SceneRecord,
    record: &SensorRecord,
    of: &Samples<LANES>,
    key: Key,
    rays: &mut SampledRays<LANES>,
) {
    let mut film = [[0.0; LANES]; 2];
    for lane in 0..LANES {
        let counter = Counter {
            sensor: of.sensor,
            pixel: of.pixels[lane],
            sample: of.samples[lane],
            block: 0,
        };
        let [u, v, ..] = film_numbers(scene, key, counter);
        (film[0][lane], film[1][lane]) = (u, v);
    }
    let weight = sensor_weight(record);
    rays.weights = [weight; LANES];
    if record.filter == filter::BOX {
        for axis in 0..2 {
            for lane in 0..LANES {
                film[axis][lane] += of.places[axis][lane] as f32;
            }
        }
    } else {
        for lane in 0..LANES {
            let extent = [record.width, record.height];
            let [x, y] = [0, 1].each(|a| filter_sample(scene, record, of.places[a][lane], extent[a], film[a][lane]));
            (film[0][lane], film[1][lane]) = (x.position, y.position);
            rays.weights[lane] = x.weight * y.weight * weight;
        }
    }
    for lane in 0..LANES {
        let ray = pinhole_ray(record, on_image_plane(record, film[0][lane], film[1][lane]));
        rays.put(lane, &ray, rays.weights[lane]);
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resident::filter::filter_table;
    use crate::scene::Filter;
    use bytemuck::Zeroable;

    /// [`sample_rays`] gives the bits of [`sample_ray`], with every filter.
    #[test]
    fn rays_side_by_side_are_those_alone() {
        const LANES: usize = 16;
        let (mut scene, mut record) = (SceneRecord::zeroed(), SensorRecord::zeroed());
        scene.filters[0] = filter_table(Filter::Mitchell { b: 0.0, c: 0.5 });
        (record.width, record.height) = (37, 23);
        (record.focal, record.center) = ([31.0, 29.0], [17.0, 12.5]);
        (record.near_clip, record.far_clip) = (0.5, 20.0);
        record.to_world = [[0.6, 0.0, 0.8, 1.0], [0.0, 1.0, 0.0, -2.0], [-0.8, 0.0, 0.6, 3.0]];
        assert!(is_pinhole(&record));
        for (kind, size) in [(filter::BOX, 0.5), (filter::TENT, 1.0), (filter::TABLE, 2.0)] {
            (record.filter, record.filter_size) = (kind, size);
            for first in (0..851).step_by(LANES) {
                let pixels: [u32; LANES] = std::array::from_fn(|lane| (first + lane as u32) % 851);
                let samples: [u32; LANES] = std::array::from_fn(|lane| (7 * first + lane as u32) % 300);
                let places = [pixels.map(|i| i % 37), pixels.map(|i| i / 37)];
                let of = Samples {
                    sensor: 5,
                    pixels,
                    samples,
                    places,
                };
                let mut rays = SampledRays::NONE;
                sample_rays(&scene, &record, &of, [1, 2, 3, 4], &mut rays);
                for lane in 0..LANES {
                    let pixel = Pixel {
                        sensor: 5,
                        index: pixels[lane],
                    };
                    let alone = sample_ray(&scene, &record, pixel, [1, 2, 3, 4], samples[lane]).expect("a pinhole");
                    assert_eq!(rays.ray(lane, 5), alone.ray, "filter {kind}, pixel {pixel:?}");
                    assert_eq!(rays.weights[lane], alone.weight, "filter {kind}, pixel {pixel:?}");
                }
            }
        }
    }
}
