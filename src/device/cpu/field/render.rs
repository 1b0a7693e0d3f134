//! The primal pass: a chunk of pixels at a time.

use rayon::prelude::*;

use super::packet::{Lane, Packet, Sample};
use super::view::Arrays;
use crate::device::cpu::Cpu;
use crate::device::cpu::chunk::{CHUNK, Chunk, Place, chunks};
use crate::device::cpu::vector::level::Kernel;
use crate::device::cpu::vector::wide::Wide;
use crate::device::{Batch, Keys};

/// Marks a masked pixel in place of its transmittance.
pub(in crate::device::cpu) const MASKED: f32 = -1.0;

impl Cpu {
    /// Renders into `self.image`, chunk by chunk.
    pub(in crate::device::cpu) fn render_field(&mut self, batch: &Batch, keys: Keys, spp: u32) {
        let chunks = chunks(&self.resident, batch);
        let mut image = std::mem::take(&mut self.image);
        image.clear();
        image.resize(chunks.len() * CHUNK, [0.0; 4]);
        let this = &*self;
        image.par_chunks_mut(CHUNK).zip(&chunks).for_each(|(out, &chunk)| {
            this.level.run(RenderChunk {
                cpu: this,
                batch,
                keys,
                spp,
                chunk,
                out,
            });
        });
        self.image = image;
    }

    /// The image in the batch's order.
    pub(in crate::device::cpu) fn image_in_order(&self) -> Vec<[f32; 4]> {
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

struct RenderChunk<'a> {
    cpu: &'a Cpu,
    batch: &'a Batch,
    keys: Keys,
    spp: u32,
    chunk: Chunk,
    out: &'a mut [[f32; 4]],
}

impl Kernel for RenderChunk<'_> {
    type Output = ();

    #[inline(always)]
    fn run<W: Wide>(self) {
        let Self {
            cpu,
            batch,
            keys,
            spp,
            chunk,
            out,
        } = self;
        let view = Arrays::<W>::new(&cpu.params, &cpu.resident, &cpu.occupancy, batch);
        let mut packet = Packet::take();
        for sample in 0..spp {
            let mut pixels = chunk.pixels(&cpu.resident, batch, keys);
            while packet.fill(
                &cpu.resident,
                &mut pixels,
                Sample {
                    keys,
                    index: sample,
                    adjoint: &[],
                },
            ) {
                packet.gather(&cpu.resident.scene, &view);
                for &place in &packet.masked {
                    out[place][3] = f32::NEG_INFINITY;
                }
                for Lane { place, path, .. } in &packet.lanes {
                    let out = &mut out[*place];
                    for c in 0..3 {
                        out[c] += path.state.radiance[c];
                    }
                    out[3] += path.state.transmittance;
                }
            }
        }
        packet.put_back();
        let scale = 1.0 / spp as f32;
        for pixel in out {
            *pixel = if pixel[3] < 0.0 {
                [0.0, 0.0, 0.0, MASKED]
            } else {
                [pixel[0] * scale, pixel[1] * scale, pixel[2] * scale, pixel[3] * scale]
            };
        }
    }
}
