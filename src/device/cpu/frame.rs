//! The image and the adjoint image, and the loss between them.

use rayon::prelude::*;

use super::chunk::{CHUNK, Place, chunks};
use super::passes::{Inputs, Pass};
use super::vector::level::Kernel;
use super::vector::wide::Wide;
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
        let image = self.room(chunks);
        image.fill([0.0; 4]);
        image
    }

    /// An image for this many chunks, holding whatever was there.
    pub(super) fn room(&mut self, chunks: usize) -> &mut [[f32; 4]] {
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
        adjoint.resize(image.len(), [0.0; 3]);
        let compared = adjoint.par_chunks_mut(CHUNK).zip(image.par_chunks(CHUNK)).zip(&chunks);
        let partial: Vec<[f64; 3]> = compared
            .map(|((adjoint, image), chunk)| {
                let mut pixels = Compared::default();
                let mut masked = 0u32;
                let (runs, length) = chunk.runs(&inputs.sensors, batch, keys);
                for Place { place, index, pixel } in runs {
                    let sensor = &inputs.sensors[pixel.sensor as usize];
                    for i in 0..length {
                        let (x, at) = (image[place + i], i as u32);
                        if x[3] < 0.0 {
                            masked += 1;
                            continue;
                        }
                        let here = Pixel {
                            index: pixel.index + at,
                            ..pixel
                        };
                        let r = reference(&inputs.references, sensor, keys, here);
                        for c in 0..3 {
                            pixels.x[c][place + i] = x[c];
                            pixels.r[c][place + i] = r[c];
                            if let Loss::Linear { seed } = loss {
                                pixels.weight[c][place + i] = linear_weight(seed, index + at, c as u32);
                            }
                        }
                    }
                }
                let [value, square] = inputs.level.run(CompareChunk {
                    loss,
                    scale,
                    pixels: &pixels,
                    adjoint,
                });
                [value, square, f64::from(masked)]
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

/// The channels of a chunk: render, reference and the weight of [`Loss::Linear`]. All are zero, and so is the loss, for
/// masked pixels and places without one.
struct Compared {
    x: [[f32; CHUNK]; 3],
    r: [[f32; CHUNK]; 3],
    weight: [[f32; CHUNK]; 3],
}

impl Default for Compared {
    fn default() -> Self {
        let zero = [[0.0; CHUNK]; 3];
        Self {
            x: zero,
            r: zero,
            weight: zero,
        }
    }
}

/// The loss of a chunk, sixteen pixels at a time.
struct CompareChunk<'a> {
    loss: Loss,
    /// Factor on the slopes.
    scale: f32,
    pixels: &'a Compared,
    adjoint: &'a mut [[f32; 3]],
}

impl Kernel for CompareChunk<'_> {
    /// Sums of the loss and of the squared difference.
    type Output = [f64; 2];

    #[inline(always)]
    fn run<W: Wide>(self) -> [f64; 2] {
        const LANES: usize = 16;
        let Compared { x, r, weight } = self.pixels;
        let mut sums = [[0f64; LANES]; 2];
        for first in (0..CHUNK).step_by(LANES) {
            let mut slopes = [[0f32; LANES]; 3];
            for c in 0..3 {
                for l in 0..LANES {
                    let [x, r, weight] = [x[c][first + l], r[c][first + l], weight[c][first + l]];
                    let (value, slope) = loss_eval(self.loss, x, r, weight);
                    sums[0][l] += f64::from(value);
                    sums[1][l] += f64::from((x - r) * (x - r));
                    slopes[c][l] = slope * self.scale;
                }
            }
            for l in 0..LANES {
                self.adjoint[first + l] = [slopes[0][l], slopes[1][l], slopes[2][l]];
            }
        }
        let mut total = [0.0; 2];
        for l in 0..LANES {
            total[0] += sums[0][l];
            total[1] += sums[1][l];
        }
        total
    }
}

/// A pixel's reference over its backdrop; black where there is none.
#[inline(always)]
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
