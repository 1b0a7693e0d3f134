//! How paths begin: the rays of a pass's samples, made sixteen at a time where the camera is a pinhole.

use std::ops::Range;

use crate::device::cpu::passes::Inputs;
use crate::device::cpu::vector::level::Kernel;
use crate::device::cpu::vector::wide::Wide;
use crate::resident::layout::{SceneRecord, SensorRecord};
use crate::transport::rays::camera::Ray;
use crate::transport::rays::pixel::{Pixel, Sampled, SampledRays, Samples, is_pinhole, sample_ray, sample_rays};
use crate::transport::rays::random::Key;
use crate::transport::rays::sampler::Streams;
use crate::transport::scene::batch::LANES;

/// How a sample's path begins.
#[derive(Debug, Clone, Copy)]
pub(in crate::device::cpu) struct Beginning {
    pub ray: Ray,
    /// The medium that it begins in.
    pub medium: u32,
    /// What its radiance counts in its pixel.
    pub weight: f32,
    pub streams: Streams,
}

/// The samples that a pass takes of a pixel.
#[derive(Debug, Clone)]
pub(in crate::device::cpu) struct Sampling<'a> {
    pub inputs: &'a Inputs,
    /// The scene's sensors, or others in their places.
    pub sensors: &'a [SensorRecord],
    pub key: Key,
    pub samples: Range<u32>,
}

impl Sampling<'_> {
    /// How a sample of a pixel begins; None where its lens has no inverse.
    #[inline(always)]
    fn begin(&self, pixel: Pixel, sample: u32) -> Option<Beginning> {
        let sensor = self.sensor(pixel);
        let Sampled { ray, weight, .. } = sample_ray(&self.inputs.scene, sensor, pixel, self.key, sample)?;
        Some(Beginning {
            ray,
            medium: sensor.medium,
            weight,
            streams: self.streams(pixel, sample),
        })
    }

    /// How the samples of a pixel begin, one by one.
    #[inline(always)]
    pub(in crate::device::cpu) fn of(&self, pixel: Pixel) -> impl Iterator<Item = Option<Beginning>> {
        self.samples.clone().map(move |sample| self.begin(pixel, sample))
    }

    /// How the samples of pixels begin, one after the other; None, once, where a pixel's lens has no inverse. What comes with a pixel
    /// goes with its samples.
    pub(super) fn beginnings<T: Copy, I: Iterator<Item = (T, Pixel)>>(&self, pixels: I) -> Beginnings<'_, T, I> {
        let mut all = Beginnings {
            sampling: self,
            pixels,
            pixel: None,
            group: Vec::with_capacity(LANES),
            rays: SampledRays::NONE,
            taken: 0,
        };
        all.advance();
        all
    }

    #[inline(always)]
    fn sensor(&self, pixel: Pixel) -> &SensorRecord {
        &self.sensors[pixel.sensor as usize]
    }

    #[inline(always)]
    fn streams(&self, pixel: Pixel, sample: u32) -> Streams {
        Streams {
            key: self.key,
            pixel,
            sample,
        }
    }
}

/// What [`Sampling::beginnings`] goes through.
#[derive(Debug)]
pub(super) struct Beginnings<'a, T, I> {
    sampling: &'a Sampling<'a>,
    pixels: I,
    /// The pixel whose turn it is, and its next sample.
    pixel: Option<(T, Pixel, u32)>,
    /// Samples of one pinhole whose rays are made, and how many of them have been taken.
    group: Vec<(T, Pixel, u32)>,
    rays: SampledRays<LANES>,
    taken: usize,
}

impl<T: Copy, I: Iterator<Item = (T, Pixel)>> Beginnings<'_, T, I> {
    /// Whether nothing is left.
    pub(super) fn is_done(&self) -> bool {
        self.pixel.is_none() && self.taken == self.group.len()
    }

    /// Goes on to the next pixel.
    #[inline(always)]
    fn advance(&mut self) {
        let first = self.sampling.samples.start;
        self.pixel = match self.sampling.samples.is_empty() {
            true => None,
            false => self.pixels.next().map(|(with, pixel)| (with, pixel, first)),
        };
    }

    /// Goes on to the next sample.
    #[inline(always)]
    fn advance_sample(&mut self) {
        if let Some((_, _, sample)) = &mut self.pixel
            && *sample + 1 < self.sampling.samples.end
        {
            *sample += 1;
        } else {
            self.advance();
        }
    }

    /// Makes the rays of the next samples of one pinhole.
    #[inline(never)]
    fn fill(&mut self, sensor: u32) {
        let record = &self.sampling.sensors[sensor as usize];
        self.group.clear();
        self.taken = 0;
        let mut of = Samples {
            sensor,
            pixels: [0; LANES],
            samples: [0; LANES],
            places: [[0; LANES]; 2],
        };
        while let Some((with, pixel, sample)) = self.pixel
            && pixel.sensor == sensor
            && self.group.len() < LANES
        {
            let lane = self.group.len();
            (of.pixels[lane], of.samples[lane]) = (pixel.index, sample);
            (of.places[0][lane], of.places[1][lane]) = (pixel.index % record.width, pixel.index / record.width);
            self.group.push((with, pixel, sample));
            self.advance_sample();
        }
        self.rays = self.sampling.inputs.level.run(SampleRays {
            scene: &self.sampling.inputs.scene,
            record,
            of: &of,
            key: self.sampling.key,
        });
    }

    /// The next sample, with None where its lens has no inverse.
    #[inline(always)]
    pub(super) fn take_next(&mut self) -> Option<(T, Option<Beginning>)> {
        if self.taken == self.group.len() {
            let (with, pixel, sample) = self.pixel?;
            if !is_pinhole(self.sampling.sensor(pixel)) {
                let begun = self.sampling.begin(pixel, sample);
                match begun {
                    Some(_) => self.advance_sample(),
                    None => self.advance(),
                }
                return Some((with, begun));
            }
            self.fill(pixel.sensor);
        }
        let (with, pixel, sample) = self.group[self.taken];
        let record = self.sampling.sensor(pixel);
        let begun = Beginning {
            ray: self.rays.ray(self.taken, record, pixel.sensor),
            medium: record.medium,
            weight: self.rays.weights[self.taken],
            streams: self.sampling.streams(pixel, sample),
        };
        self.taken += 1;
        Some((with, Some(begun)))
    }
}

struct SampleRays<'a> {
    scene: &'a SceneRecord,
    record: &'a SensorRecord,
    of: &'a Samples<LANES>,
    key: Key,
}

impl Kernel for SampleRays<'_> {
    type Output = SampledRays<LANES>;
    #[inline(always)]
    fn run<W: Wide>(self) -> SampledRays<LANES> {
        sample_rays(self.scene, self.record, self.of, self.key)
    }
}
