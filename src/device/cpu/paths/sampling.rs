//! How paths begin: the rays of a pass's samples, made sixteen at a time where the camera is a pinhole.

use std::ops::Range;

use crate::device::cpu::passes::Inputs;
use crate::device::cpu::vector::level::Kernel;
use crate::device::cpu::vector::wide::Wide;
use crate::each::EachEntry;
use crate::resident::layout::{SceneRecord, SensorRecord};
use crate::transport::paths::starts::{Begin, Starts};
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
    /// Weight of its radiance in the pixel.
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

    /// The ray of the same sample a pixel further along an axis of the film than `ray`, over the square root of the number of
    /// samples; its direction is no unit vector. None where the lens has no inverse.
    pub(in crate::device::cpu) fn beside(&self, ray: &Ray, pixel: Pixel, sample: u32, axis: usize) -> Option<Ray> {
        let mut shifted = *self.sensor(pixel);
        // The film position is relative to the centre.
        shifted.center[axis] -= 1.0;
        let next = sample_ray(&self.inputs.scene, &shifted, pixel, self.key, sample)?.ray;
        let share = 1.0 / (self.samples.len() as f32).sqrt();
        let mix = |from: [f32; 3], to: [f32; 3]| [0, 1, 2].each(|a: usize| from[a] + (to[a] - from[a]) * share);
        Some(Ray {
            origin: mix(ray.origin, next.origin),
            direction: mix(ray.direction, next.direction),
            ..*ray
        })
    }

    /// How the samples of a pixel begin, one by one.
    #[inline(always)]
    pub(in crate::device::cpu) fn of(&self, pixel: Pixel) -> impl Iterator<Item = Option<Beginning>> {
        self.samples.clone().map(move |sample| self.begin(pixel, sample))
    }

    /// How all samples of `pixels` begin. The value that comes with a pixel is handed on with each of its samples.
    pub(super) fn beginnings<T: Copy, I: Iterator<Item = (T, Pixel)>>(&self, pixels: I) -> Beginnings<'_, T, I> {
        let mut all = Beginnings {
            sampling: self,
            pixels,
            next: None,
            place: [0; 2],
            with: Vec::with_capacity(LANES),
            starts: Starts::none(self.key),
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

/// The state of the iteration by [`Sampling::beginnings`].
#[derive(Debug)]
pub(super) struct Beginnings<'a, T, I> {
    sampling: &'a Sampling<'a>,
    pixels: I,
    /// The current pixel with its value, and its next sample.
    next: Option<(T, Pixel, u32)>,
    /// Column and row of that pixel: two divisions, which all its samples share.
    place: [u32; 2],
    /// Samples of one sensor, and the value of each.
    with: Vec<T>,
    starts: Starts,
}

impl<T: Copy, I: Iterator<Item = (T, Pixel)>> Beginnings<'_, T, I> {
    /// Whether nothing is left.
    pub(super) fn is_done(&self) -> bool {
        self.next.is_none()
    }

    /// Goes on to the next pixel.
    #[inline(always)]
    fn advance(&mut self) {
        let first = self.sampling.samples.start;
        self.next = match self.sampling.samples.is_empty() {
            true => None,
            false => self.pixels.next().map(|(with, pixel)| (with, pixel, first)),
        };
        if let Some((_, pixel, _)) = self.next {
            let width = self.sampling.sensor(pixel).width;
            self.place = [pixel.index % width, pixel.index / width];
        }
    }

    /// Goes on to the next sample.
    #[inline(always)]
    fn advance_sample(&mut self) {
        if let Some((_, _, sample)) = &mut self.next
            && *sample + 1 < self.sampling.samples.end
        {
            *sample += 1;
        } else {
            self.advance();
        }
    }

    /// Calls `begin` with the next `count` samples, some at a time, and `masked` with the value of a pixel whose lens has no
    /// inverse.
    pub(super) fn take(&mut self, mut count: usize, begin: &mut Begin<T>, mut masked: impl FnMut(T)) {
        while count > 0
            && let Some((_, pixel, _)) = self.next
        {
            let without = self.fill(pixel.sensor, count.min(LANES));
            count -= self.starts.count;
            if self.starts.count > 0 {
                begin(&self.with, &self.starts);
            }
            without.into_iter().for_each(&mut masked);
        }
    }

    /// Makes the rays of the next samples of one sensor, at most `most`. A pixel whose lens has no inverse has no rays and ends
    /// the run: its value is returned.
    #[inline(never)]
    fn fill(&mut self, sensor: u32, most: usize) -> Option<T> {
        let sampling = self.sampling;
        let (scene, record) = (&sampling.inputs.scene, &sampling.sensors[sensor as usize]);
        let is_pinhole = is_pinhole(record);
        self.with.clear();
        (self.starts.medium, self.starts.of.sensor) = (record.medium, sensor);
        let mut masked = None;
        while let Some((with, pixel, sample)) = self.next
            && pixel.sensor == sensor
            && self.with.len() < most
        {
            let Starts { rays, of, .. } = &mut self.starts;
            let lane = self.with.len();
            if !is_pinhole {
                let Some(Sampled { ray, weight, .. }) = sample_ray(scene, record, pixel, sampling.key, sample) else {
                    masked = Some(with);
                    self.advance();
                    break;
                };
                rays.put(lane, &ray, weight);
            }
            (of.pixels[lane], of.samples[lane]) = (pixel.index, sample);
            [of.places[0][lane], of.places[1][lane]] = self.place;
            self.with.push(with);
            self.advance_sample();
        }
        self.starts.count = self.with.len();
        if is_pinhole {
            let Starts { rays, of, key, .. } = &mut self.starts;
            let key = *key;
            sampling.inputs.level.run(SampleRays {
                scene,
                record,
                of,
                key,
                rays,
            });
        }
        masked
    }
}

struct SampleRays<'a> {
    scene: &'a SceneRecord,
    record: &'a SensorRecord,
    of: &'a Samples<LANES>,
    key: Key,
    rays: &'a mut SampledRays<LANES>,
}

impl Kernel for SampleRays<'_> {
    type Output = ();
    #[inline(always)]
    fn run<W: Wide>(self) {
        sample_rays(self.scene, self.record, self.of, self.key, self.rays);
    }
}
