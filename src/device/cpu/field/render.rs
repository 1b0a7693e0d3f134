//! The primal pass: a chunk of pixels at a time.

use rayon::prelude::*;

use super::packet::{Lane, Packet, Sample};
use super::passes::FieldPasses;
use super::view::Arrays;
use crate::device::cpu::chunk::{CHUNK, Chunk, chunks};
use crate::device::cpu::frame::{Frame, MASKED};
use crate::device::cpu::passes::{Inputs, Pass};
use crate::device::cpu::vector::level::Kernel;
use crate::device::cpu::vector::wide::Wide;

impl FieldPasses {
    /// Renders a batch, chunk by chunk.
    pub(in crate::device::cpu) fn render(&self, inputs: &Inputs, pass: Pass, frame: &mut Frame) {
        let chunks = chunks(&inputs.sensors, pass.batch);
        let image = frame.begin(chunks.len());
        let all = image.par_chunks_mut(CHUNK).zip(&chunks).enumerate();
        let own = all.filter(|(i, _)| inputs.cluster.owns(*i));
        inputs.begin_chunks(chunks.len());
        own.for_each(|(_, (out, &chunk))| {
            inputs.level.run(RenderChunk {
                passes: self,
                inputs,
                pass,
                chunk,
                out,
            });
            inputs.gauge.add();
        });
    }
}

struct RenderChunk<'a> {
    passes: &'a FieldPasses,
    inputs: &'a Inputs,
    pass: Pass<'a>,
    chunk: Chunk,
    out: &'a mut [[f32; 4]],
}

impl Kernel for RenderChunk<'_> {
    type Output = ();

    #[inline(always)]
    fn run<W: Wide>(self) {
        let Self {
            passes,
            inputs,
            pass: Pass { batch, keys, spp },
            chunk,
            out,
        } = self;
        let view = Arrays::<W>::new(inputs, passes.scene.slots, &passes.occupancy, batch);
        let mut packet = Packet::take();
        for sample in 0..spp {
            let mut pixels = chunk.pixels(&inputs.sensors, batch, keys);
            while packet.fill(
                inputs,
                &mut pixels,
                Sample {
                    keys,
                    index: sample,
                    adjoint: &[],
                    with_casts: false,
                },
            ) {
                packet.gather(&inputs.scene, &view);
                for &place in &packet.masked {
                    out[place][3] = f32::NEG_INFINITY;
                }
                for Lane {
                    place, weight, path, ..
                } in &packet.lanes
                {
                    let out = &mut out[*place];
                    for c in 0..3 {
                        out[c] += path.state.radiance[c] * weight;
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
