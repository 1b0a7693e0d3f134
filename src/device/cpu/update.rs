//! Regularisers, occupancy and resampling on the CPU.

use rayon::prelude::*;

use super::Cpu;
use super::pages;
use super::step::Activity;
use crate::device::Term;
use crate::kernels::occupancy::reachable;
use crate::kernels::regularizer::{Penalty, sparsity, total_variation};
use crate::kernels::resample::{resample_axis, resample_texel};
use crate::params::{Kind, Shape};
use crate::resident::layout::{density, occupancy};

impl Cpu {
    /// Adds a regulariser's gradient and returns its weighted penalty.
    pub(super) fn add_term(&mut self, term: &Term) -> f64 {
        let parameter = &self.params.parameters[term.parameter];
        let gradient = &mut self.gradients[term.parameter];
        self.activity[term.parameter].touch(0..gradient.len());
        match term.penalty {
            Penalty::TotalVariation => add_total_variation(&parameter.values, parameter.shape, term.weight, gradient),
            Penalty::Sparsity => {
                let scale = term.weight / parameter.shape.texels() as f32;
                let sums: Vec<f64> = parameter
                    .values
                    .par_chunks(4096)
                    .zip(gradient.par_chunks_mut(4096))
                    .map(|(values, gradient)| {
                        let mut sum = 0f64;
                        for (x, g) in values.iter().zip(gradient) {
                            let (penalty, slope) = sparsity(*x);
                            sum += f64::from(penalty);
                            *g += scale * slope;
                        }
                        sum
                    })
                    .collect();
                f64::from(scale) * sums.iter().sum::<f64>()
            }
        }
    }

    /// Rebuilds the occupancy grid: separable maxima over the texels that each cell can reach.
    pub(super) fn rebuild_occupancy(&mut self) {
        let scene = &self.resident.scene;
        let Some(slot) = self.resident.slots.sigma_t else {
            return;
        };
        let [cx, cy, cz] = [0, 1, 2].map(|a| scene.occupancy_size[a] as usize);
        self.occupancy.clear();
        if scene.density_activation != density::RELU {
            self.occupancy
                .resize(cx * cy * cz, (occupancy::RENDERS | occupancy::LEARNS) as u8);
            return;
        }
        let [nx, ny, nz] = [0, 1, 2].map(|a| scene.sigma_size[a] as usize);
        let ranges = [(cx, nx), (cy, ny), (cz, nz)].map(|(cells, texels)| {
            (0..cells)
                .map(|cell| reachable(cell, cells, texels))
                .collect::<Vec<_>>()
        });
        let values = &self.params.parameters[slot].values;
        let mut rows = vec![0f32; nz * ny * cx];
        rows.par_chunks_mut(ny * cx)
            .zip(values.par_chunks(ny * nx))
            .for_each(|(out, slice)| {
                for (out, row) in out.chunks_mut(cx).zip(slice.chunks(nx)) {
                    for (out, &(first, last)) in out.iter_mut().zip(&ranges[0]) {
                        *out = row[first..=last].iter().fold(f32::NEG_INFINITY, |a, b| a.max(*b));
                    }
                }
            });
        let fold = |rows: &[f32], stride: usize, first: usize, last: usize, out: &mut [f32]| {
            out.fill(f32::NEG_INFINITY);
            for i in first..=last {
                for (o, v) in out.iter_mut().zip(&rows[i * stride..(i + 1) * stride]) {
                    *o = o.max(*v);
                }
            }
        };
        let mut slices = vec![0f32; nz * cy * cx];
        slices
            .par_chunks_mut(cy * cx)
            .zip(rows.par_chunks(ny * cx))
            .for_each(|(out, rows)| {
                for (out, &(first, last)) in out.chunks_mut(cx).zip(&ranges[1]) {
                    fold(rows, cx, first, last, out);
                }
            });
        let mut cells = vec![0f32; cx * cy];
        for &(first, last) in &ranges[2] {
            fold(&slices, cx * cy, first, last, &mut cells);
            self.occupancy.extend(cells.iter().map(|m| {
                let renders = if *m > 0.0 { occupancy::RENDERS } else { 0 };
                let learns = if *m >= 0.0 { occupancy::LEARNS } else { 0 };
                (renders | learns) as u8
            }));
        }
    }

    /// Changes a parameter's resolution; its gradient becomes zero, its moments are resampled or zeroed.
    pub(super) fn resample_one(&mut self, index: usize, size: [usize; 3], keep_moments: bool) {
        let from = self.params.parameters[index].shape;
        let to = Shape { size, ..from };
        let values = resample(&self.params.parameters[index].values, from, size);
        for moment in &mut self.moments[index] {
            *moment = if keep_moments {
                resample(moment, from, size)
            } else {
                pages::zeros(to.len())
            };
        }
        let parameter = &mut self.params.parameters[index];
        debug_assert_eq!(parameter.kind, Kind::Grid, "only grids have stages");
        parameter.values = values;
        parameter.shape = to;
        if let Some(tuning) = parameter.tuning {
            self.gradients[index] = pages::zeros(to.len());
            self.activity[index] = Activity::new(to.len(), keep_moments);
            self.activity[index].wake_outside(&parameter.values, tuning.bounds);
        }
    }
}

fn resample(data: &[f32], from: Shape, size: [usize; 3]) -> Vec<f32> {
    let channels = from.channels;
    let axes = [0, 1, 2].map(|a| resample_axis(from.size[a], size[a]));
    let mut out = pages::zeros(size[0] * size[1] * size[2] * channels);
    out.par_chunks_mut(size[0] * size[1] * channels)
        .enumerate()
        .for_each(|(z, slice)| {
            for (i, texel) in slice.chunks_mut(channels).enumerate() {
                let place = [axes[0][i % size[0]], axes[1][i / size[0]], axes[2][z]];
                resample_texel(data, from.size, channels, place, texel);
            }
        });
    out
}

/// Total variation by slices: the even ones first, then the odd ones, because a slice writes into the next.
fn add_total_variation(values: &[f32], shape: Shape, weight: f32, gradient: &mut [f32]) -> f64 {
    let Shape {
        size: [nx, ny, nz],
        channels,
    } = shape;
    let slice = nx * ny * channels;
    let scale = weight / shape.len() as f32;
    let row = nx * channels;
    let mut total = 0f64;
    for parity in 0..2 {
        let start = (parity * slice).min(gradient.len());
        let sums: Vec<f64> = gradient[start..]
            .par_chunks_mut(2 * slice)
            .enumerate()
            .map(|(pair, gradient)| {
                let z = 2 * pair + parity;
                if z >= nz {
                    return 0.0;
                }
                let here = &values[z * slice..(z + 1) * slice];
                let above = if z + 1 < nz {
                    &values[(z + 1) * slice..(z + 2) * slice]
                } else {
                    here
                };
                let mut sum = 0f64;
                for y in 0..ny {
                    for i in y * row..(y + 1) * row {
                        let value = here[i];
                        let right = if i + channels < (y + 1) * row {
                            here[i + channels]
                        } else {
                            value
                        };
                        let down = if y + 1 < ny { here[i + row] } else { value };
                        let (penalty, [dx, dy, dz]) = total_variation(value, [right, down, above[i]]);
                        sum += f64::from(penalty);
                        gradient[i] -= scale * (dx + dy + dz);
                        if i + channels < (y + 1) * row {
                            gradient[i + channels] += scale * dx;
                        }
                        if y + 1 < ny {
                            gradient[i + row] += scale * dy;
                        }
                        if z + 1 < nz {
                            gradient[slice + i] += scale * dz;
                        }
                    }
                }
                sum
            })
            .collect();
        total += sums.iter().sum::<f64>();
    }
    f64::from(scale) * total
}
