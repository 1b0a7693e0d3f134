//! How paths begin: with camera rays, one in each lane of a vector.

use crate::each::EachEntry;
use crate::transport::rays::camera::Ray;
use crate::transport::rays::pixel::{Pixel, SampledRays, Samples};
use crate::transport::rays::random::Key;
use crate::transport::rays::sampler::Streams;
use crate::transport::scene::batch::LANES;

/// Samples of one sensor: their rays, and where these and their random numbers come from.
#[derive(Debug, Clone)]
pub struct Starts {
    /// Number of lanes in use.
    pub count: usize,
    pub rays: SampledRays<LANES>,
    /// The medium that the rays begin in.
    pub medium: u32,
    pub key: Key,
    pub of: Samples<LANES>,
}

/// A callback that begins paths, each with a value of its own. It takes up to [`LANES`] samples a call: an iterator would hand
/// over one at a time, and a vector that was written in parts and is read as a whole stalls the processor.
pub type Begin<'a, T> = dyn FnMut(&[T], &Starts) + 'a;

impl Starts {
    /// No samples yet.
    pub fn none(key: Key) -> Self {
        Self {
            count: 0,
            rays: SampledRays::NONE,
            medium: 0,
            key,
            of: Samples {
                sensor: 0,
                pixels: [0; LANES],
                samples: [0; LANES],
                places: [[0; LANES]; 2],
            },
        }
    }

    /// A single sample, of weight one.
    pub fn of_one(ray: &Ray, medium: u32, streams: &Streams) -> Self {
        let mut starts = Self::none(streams.key);
        starts.rays.put(0, ray, 1.0);
        (starts.count, starts.medium, starts.of.sensor) = (1, medium, streams.pixel.sensor);
        (starts.of.pixels[0], starts.of.samples[0]) = (streams.pixel.index, streams.sample);
        starts
    }

    /// The derivatives by the rays' radiances: `d_pixel`, those by the weighted radiances, times the weights.
    #[inline]
    pub fn by_radiance(&self, d_pixel: &[[f32; 3]]) -> impl Iterator<Item = [f32; 3]> {
        let all = d_pixel.iter().zip(&self.rays.weights);
        all.map(|(d, weight)| d.each(|d| d * weight))
    }

    /// A lane's ray.
    #[inline(always)]
    pub fn ray(&self, lane: usize) -> Ray {
        self.rays.ray(lane, self.of.sensor)
    }

    /// A lane's pixel.
    #[inline(always)]
    pub fn pixel(&self, lane: usize) -> Pixel {
        Pixel {
            sensor: self.of.sensor,
            index: self.of.pixels[lane],
        }
    }

    /// A lane's random numbers.
    #[inline(always)]
    pub fn streams(&self, lane: usize) -> Streams {
        Streams {
            key: self.key,
            pixel: self.pixel(lane),
            sample: self.of.samples[lane],
        }
    }
}
