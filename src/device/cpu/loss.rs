//! Loss and adjoint image.

use rayon::prelude::*;

use super::chunk::{CHUNK, Place, chunks};
use crate::device::cpu::Cpu;
use crate::device::{Batch, Keys, LossValue};
use crate::kernels::loss::{Loss, loss_eval};
use crate::resident::layout::{NO_REFERENCE, SensorRecord, backdrop};
use crate::resident::references::Pixels;
use crate::transport::rays::pixel::{Pixel, linear_weight, random_backdrop};

impl Cpu {
    /// Fills `self.adjoint` with the losses' slopes over 3 times the number of pixels.
    pub(super) fn compare(&mut self, batch: &Batch, keys: Keys, loss: Loss) -> LossValue {
        let chunks = chunks(&self.resident, batch);
        let scale = 1.0 / (3.0 * batch.pixels() as f32);
        let mut adjoint = std::mem::take(&mut self.adjoint);
        adjoint.clear();
        adjoint.resize(self.image.len(), [0.0; 3]);
        let (resident, image) = (&self.resident, &self.image);
        let partial: Vec<[f64; 3]> = adjoint
            .par_chunks_mut(CHUNK)
            .zip(&chunks)
            .enumerate()
            .map(|(i, (adjoint, chunk))| {
                let mut sums = [0f64; 3];
                for Place { place, index, pixel } in chunk.pixels(resident, batch, keys) {
                    let x = image[i * CHUNK + place];
                    if x[3] < 0.0 {
                        sums[2] += 1.0;
                        continue;
                    }
                    let r = reference(
                        &resident.references,
                        &resident.sensors[pixel.sensor as usize],
                        keys,
                        pixel,
                    );
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
        self.adjoint = adjoint;
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
