//! Gradients and optimiser state of parameters, regularisers, and resampling on the CPU.

use rayon::prelude::*;

use super::holding::Holding;
use super::pages;
use super::step::Activity;
use super::variation::{add_total_variation, bands_of};
use super::vector::level::Level;
use crate::device::{Term, axes_of};
use crate::kernels::optimizer::Optimizer;
use crate::kernels::regularizer::{Penalty, sparsity};
use crate::kernels::resample::{Axis, resample_axis, resample_texel};
use crate::params::{ParamSet, Parameter, Shape};

/// Gradients and the optimiser's state, parameter by parameter.
#[derive(Debug, Default)]
pub(super) struct Updates {
    /// For each parameter its gradient; empty if it is not tuned.
    pub gradients: Vec<Vec<f32>>,
    /// For each parameter the optimiser's moments, which occupy memory only for entries stepped here; none if it is not tuned.
    pub moments: Vec<Vec<Vec<f32>>>,
    /// For each parameter which entries each rank steps, if ranks share it; else None.
    pub holdings: Vec<Option<Holding>>,
    /// For each parameter the blocks that a step cannot skip.
    pub activity: Vec<Activity>,
}

impl Updates {
    /// Zero gradients and moments.
    pub(super) fn new(params: &ParamSet, optimizer: Optimizer) -> Self {
        let tuned = |p: &Parameter| if p.tuning.is_some() { p.shape.len() } else { 0 };
        let moments = |p: &Parameter| match p.tuning {
            Some(_) => (0..optimizer.moments()).map(|_| pages::zeros(p.shape.len())).collect(),
            None => Vec::new(),
        };
        let all = &params.parameters;
        let mut updates = Self {
            gradients: all.iter().map(|p| pages::zeros(tuned(p))).collect(),
            moments: all.iter().map(moments).collect(),
            holdings: vec![None; all.len()],
            activity: all.iter().map(|p| Activity::new(tuned(p), false)).collect(),
        };
        for (index, parameter) in all.iter().enumerate() {
            updates.wake_outside(index, parameter);
        }
        updates
    }

    /// Has the next step look at values that lie outside of their bounds, so that it projects them.
    pub(super) fn wake_outside(&mut self, index: usize, parameter: &Parameter) {
        if let Some(tuning) = parameter.tuning {
            self.activity[index].wake_outside(&parameter.values, tuning.bounds);
        }
    }

    /// Zeroes all gradients.
    pub(super) fn clear(&mut self) {
        self.gradients.iter_mut().for_each(|g| g.fill(0.0));
    }

    /// Replaces a gradient by one of its own length.
    pub(super) fn write_gradient(&mut self, parameter: usize, values: &[f32]) {
        self.activity[parameter].touch_all();
        self.gradients[parameter].copy_from_slice(values);
    }

    /// Replaces a moment by one of its own length.
    pub(super) fn write_moment(&mut self, parameter: usize, moment: usize, values: &[f32]) {
        self.activity[parameter].wake(values);
        let own = self.holdings[parameter].as_ref().map_or(0..values.len(), Holding::own);
        self.moments[parameter][moment][own.clone()].copy_from_slice(&values[own]);
    }

    pub(super) fn bytes(&self) -> usize {
        let gradients: usize = self.gradients.iter().map(Vec::len).sum();
        let moments = self.moments.iter().zip(&self.holdings).map(|(moments, holding)| {
            let length = |moment: &Vec<f32>| holding.as_ref().map_or(moment.len(), |holding| holding.own().len());
            moments.iter().map(length).sum::<usize>()
        });
        4 * (gradients + moments.sum::<usize>())
    }

    /// Adds a regulariser's gradient and returns its weighted penalty.
    pub(super) fn add_term(&mut self, level: Level, params: &ParamSet, term: &Term) -> f64 {
        let parameter = &params.parameters[term.parameter];
        let gradient = &mut self.gradients[term.parameter];
        let activity = &self.activity[term.parameter];
        match term.penalty {
            Penalty::TotalVariation => {
                let (shape, wraps) = (parameter.shape, parameter.kind.wraps());
                let holding = &self.holdings[term.parameter];
                let scale = term.weight / shape.len() as f32;
                let slice = shape.len() / shape.size[2].max(1);
                let wanted = holding
                    .as_ref()
                    .map_or(0..shape.size[2], |holding| holding.own_layers(slice));
                let (own, touched) =
                    add_total_variation(level, &parameter.values, shape, wraps, scale, gradient, wanted);
                activity.touch(touched);
                let penalties = match holding {
                    Some(holding) => holding.of_layers(&own, slice, bands_of),
                    None => own,
                };
                f64::from(scale) * penalties.iter().sum::<f64>()
            }
            Penalty::Sparsity => {
                activity.touch(0..gradient.len());
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

    /// Adapts to a tuned parameter whose length has changed: takes its new `moments`, and zeroes its gradient.
    pub(super) fn replace(&mut self, index: usize, parameter: &Parameter, moments: Vec<Vec<f32>>) {
        let len = parameter.values.len();
        self.moments[index] = moments;
        self.gradients[index] = pages::zeros(len);
        self.activity[index] = Activity::new(len, true);
        self.wake_outside(index, parameter);
    }

    /// Changes a parameter's resolution; its gradient becomes zero, its moments are resampled or zeroed.
    pub(super) fn resample(&mut self, index: usize, parameter: &mut Parameter, size: [usize; 3], keep_moments: bool) {
        let (from, lie) = (parameter.shape, axes_of(parameter.kind));
        let to = Shape { size, ..from };
        parameter.values = resample(&parameter.values, lie, from, size);
        parameter.shape = to;
        self.collect(index, keep_moments);
        for moment in &mut self.moments[index] {
            *moment = if keep_moments {
                resample(moment, lie, from, size)
            } else {
                pages::zeros(to.len())
            };
        }
        if parameter.tuning.is_some() {
            self.gradients[index] = pages::zeros(to.len());
            self.activity[index] = Activity::new(to.len(), keep_moments);
            self.wake_outside(index, parameter);
        }
    }
}

fn resample(data: &[f32], lie: [Axis; 3], from: Shape, size: [usize; 3]) -> Vec<f32> {
    let channels = from.channels;
    let axes = [0, 1, 2].map(|a| resample_axis(lie[a], from.size[a], size[a]));
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
