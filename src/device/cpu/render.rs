//! The primal pass: a chunk of pixels at a time.

use rayon::prelude::*;

use super::Cpu;
use super::chunk::{CHUNK, Chunk, Place, chunks};
use super::level::Kernel;
use super::view::{Arrays, channels, with_channels};
use super::wide::Wide;
use crate::device::{Batch, Keys};
use crate::transport::path::{gather, pixel_backdrop, sample_ray};

/// Marks a masked pixel in place of its transmittance.
pub(super) const MASKED: f32 = -1.0;

impl Cpu {
    /// Renders into `self.image`, chunk by chunk.
    pub(super) fn render_batch(&mut self, batch: &Batch, keys: Keys, spp: u32) {
        let chunks = chunks(&self.resident, batch);
        let mut image = std::mem::take(&mut self.image);
        image.clear();
        image.resize(chunks.len() * CHUNK, [0.0; 4]);
        let this = &*self;
        image.par_chunks_mut(CHUNK).zip(&chunks).for_each(|(out, &chunk)| {
            with_channels!(&this.resident.scene, CHANNELS => {
                this.level.run(RenderChunk::<CHANNELS> { cpu: this, batch, keys, spp, chunk, out });
            });
        });
        self.image = image;
    }

    /// The image in the batch's order.
    pub(super) fn image_in_order(&self) -> Vec<[f32; 4]> {
        let mut ordered = vec![[0.0; 4]; self.rendered.pixels() as usize];
        let keys = self.rendered_keys;
        for (i, chunk) in chunks(&self.resident, &self.rendered).into_iter().enumerate() {
            for Place { place, index, .. } in chunk.pixels(&self.resident, &self.rendered, keys) {
                ordered[index as usize] = self.image[i * CHUNK + place];
            }
        }
        ordered
    }
}

struct RenderChunk<'a, const CHANNELS: usize> {
    cpu: &'a Cpu,
    batch: &'a Batch,
    keys: Keys,
    spp: u32,
    chunk: Chunk,
    out: &'a mut [[f32; 4]],
}

impl<const CHANNELS: usize> Kernel for RenderChunk<'_, CHANNELS> {
    type Output = ();

    #[inline(always)]
    fn run<W: Wide>(self) {
        let resident = &self.cpu.resident;
        let scene = &resident.scene;
        let view = Arrays::<W, CHANNELS>::new(&self.cpu.params, resident.slots, &self.cpu.occupancy);
        let (keys, spp) = (self.keys, self.spp);
        for Place { place, pixel, .. } in self.chunk.pixels(resident, self.batch, keys) {
            let sensor = &resident.sensors[pixel.sensor as usize];
            let backdrop = pixel_backdrop(sensor, keys.objective, pixel);
            let mut sum = [0.0; 4];
            for sample in 0..spp {
                let Some((ray, jitter)) = sample_ray(scene, sensor, pixel, keys.pass, sample) else {
                    sum[3] = MASKED * f32::INFINITY;
                    break;
                };
                let gathered = gather(scene, &view, &ray, jitter, backdrop);
                for c in 0..3 {
                    sum[c] += gathered.radiance[c];
                }
                sum[3] += gathered.transmittance;
            }
            let scale = 1.0 / spp as f32;
            self.out[place] = if sum[3] < 0.0 {
                [0.0, 0.0, 0.0, MASKED]
            } else {
                [sum[0] * scale, sum[1] * scale, sum[2] * scale, sum[3] * scale]
            };
        }
    }
}
