//! The image and the adjoint image, and the loss between them.

use rayon::prelude::*;

use super::chunk::{CHUNK, Place, chunks};
use super::passes::{Inputs, Pass};
use crate::device::{Batch, Keys, LossValue};
use crate::kernels::loss::{Loss, loss_eval};
use crate::resident::layout::{NO_REFERENCE, SensorRecord, backdrop};
use crate::resident::references::Pixels;
use crate::transport::rays::pixel::{Pixel, linear_weight, random_backdrop};

/// Marks a masked pixel in place of its transmittance.
pub(super) const MASKED: f32 = -1.0;

/// What was rendered last, and the derivative of its loss; in the order of the chunks of its batch.
#[derive(Debug, Default)]
pub(super) struct Frame {
    batch: Batch,
    keys: Option<Keys>,
    pub image: Vec<[f32; 4]>,
    pub adjoint: Vec<[f32; 3]>,
}

impl Frame {
    /// The batch of the last render.
    pub(super) fn rendered(&self) -> &Batch {
        &self.batch
    }

    /// Takes note of what was rendered.
    pub(super) fn note(&mut self, pass: Pass) {
        self.batch.clone_from(pass.batch);
        self.keys = Some(pass.keys);
    }

    /// An image of zeros for this many chunks.
    pub(super) fn begin(&mut self, chunks: usize) -> &mut [[f32; 4]] {
        self.image.clear();
        self.image.resize(chunks * CHUNK, [0.0; 4]);
        &mut self.image
    }

    /// The image in the batch's order; empty before the first render.
    pub(super) fn in_order(&self, sensors: &[SensorRecord]) -> Vec<[f32; 4]> {
        let Some(keys) = self.keys else { return Vec::new() };
        let mut ordered = vec![[0.0; 4]; self.batch.pixels() as usize];
        for (i, chunk) in chunks(sensors, &self.batch).into_iter().enumerate() {
            for Place { place, index, .. } in chunk.pixels(sensors, &self.batch, keys) {
                ordered[index as usize] = self.image[i * CHUNK + place];
            }
        }
        ordered
    }

    /// Fills the adjoint image with the losses' slopes over 3 times the number of pixels.
    pub(super) fn compare(&mut self, inputs: &Inputs, batch: &Batch, keys: Keys, loss: Loss) -> LossValue {
        let chunks = chunks(&inputs.sensors, batch);
        let scale = 1.0 / (3.0 * batch.pixels() as f32);
        let Self { image, adjoint, .. } = self;
        adjoint.clear();
        adjoint.resize(image.len(), [0.0; 3]);
        let partial: Vec<[f64; 3]> = adjoint
            .par_chunks_mut(CHUNK)
            .zip(&chunks)
            .enumerate()
            .map(|(i, (adjoint, chunk))| {
                let mut sums = [0f64; 3];
                for Place { place, index, pixel } in chunk.pixels(&inputs.sensors, batch, keys) {
                    let x = image[i * CHUNK + place];
                    if x[3] < 0.0 {
                        sums[2] += 1.0;
                        continue;
                    }
                    let sensor = &inputs.sensors[pixel.sensor as usize];
                    let r = reference(&inputs.references, sensor, keys, pixel);
                    for c in 0..3 {
                        let weight = match loss {
                            Loss::Linear { seed } => linear_weight(seed, index, c as u32),
                            _ => 0.0,
                        };
                        let (value, slope) = loss_eval(loss, x[c], r[c], weight);
                        sums[0] += f64::from(value);
                        sums[1] += f64::from((x[c] - r[c]) * (x[c] - r[c]));
                        adjoint[place][c] = slope * scale;
                    }
                }
                sums
            })
            .collect();
        let total = partial
            .iter()
            .fold([0f64; 3], |t, p| [t[0] + p[0], t[1] + p[1], t[2] + p[2]]);
        let pixels = f64::from(batch.pixels());
        LossValue {
            loss: total[0] / (3.0 * pixels),
            mse: total[1] / (3.0 * (pixels - total[2]).max(1.0)),
            masked: total[2] as u64,
        }
    }

    /// Takes an adjoint image in the batch's order; masked pixels have none.
    pub(super) fn set_adjoint(&mut self, sensors: &[SensorRecord], batch: &Batch, keys: Keys, adjoint: &[[f32; 3]]) {
        let chunks = chunks(sensors, batch);
        self.adjoint.clear();
        self.adjoint.resize(chunks.len() * CHUNK, [0.0; 3]);
        for (i, chunk) in chunks.into_iter().enumerate() {
            for Place { place, index, .. } in chunk.pixels(sensors, batch, keys) {
                if self.image[i * CHUNK + place][3] >= 0.0 {
                    self.adjoint[i * CHUNK + place] = adjoint[index as usize];
                }
            }
        }
    }

    pub(super) fn bytes(&self) -> usize {
        4 * (4 * self.image.len() + 3 * self.adjoint.len())
    }
}

/// A pixel's reference over its backdrop; black where there is none.
fn reference(pixels: &Pixels, sensor: &SensorRecord, keys: Keys, pixel: Pixel) -> [f32; 3] {
    if sensor.first_pixel == NO_REFERENCE {
        return [0.0; 3];
    }
    let [r, g, b, alpha] = pixels.get(sensor.first_pixel + pixel.index);
    let behind = match sensor.backdrop {
        backdrop::OPAQUE => return [r, g, b],
        backdrop::COLOR => [
            sensor.backdrop_color[0],
            sensor.backdrop_color[1],
            sensor.backdrop_color[2],
        ],
        _ => random_backdrop(keys.objective, pixel),
    };
    let over = |color: f32, behind: f32| color * alpha + behind * (1.0 - alpha);
    [over(r, behind[0]), over(g, behind[1]), over(b, behind[2])]
}
