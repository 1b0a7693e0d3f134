//! One iteration: render, loss, backpropagate, regularise, step, rebuild.

use std::time::Instant;

use serde_json::{Map, Value};

use super::run::Run;
use super::schedule::rate_factor;
use super::stage::samples;
use crate::device::{self, ArrayKind, Keys, LossValue, ReplayStats, Step, Term};
use crate::output::metrics::{Figures, Milliseconds, psnr};
use crate::transport::rays::random::{Pass, pass_key};

/// Steps between rebuilds of occupancy grid, majorants and sampling tables. An outdated occupancy grid hides density
/// that has grown in empty cells; a rebuild reads the density once, much less memory traffic than a step.
const REBUILD_EVERY: u32 = 1;

impl Run<'_> {
    /// Runs the next iteration and returns its figures.
    pub(super) fn iterate(&mut self) -> device::Result<Figures> {
        let (settings, index) = (self.job.settings, self.state.iteration);
        let [spp, spp_grad] = samples(settings, self.state.stage);
        let begun = Instant::now();
        let key = |pass| pass_key(settings.seed, index, pass);
        let keys = |pass| Keys {
            objective: key(Pass::Objective),
            pass: key(pass),
        };
        let batch = self.batches.at(index);
        let (mut ms, carries) = (Milliseconds::default(), self.carries);
        let (mut loss, mut replay) = (LossValue::default(), ReplayStats::default());
        self.device.in_a_row(&mut |device| {
            if device.is_fused(settings.loss) {
                (loss, replay) = timed(&mut ms.adjoint, || {
                    device.value_and_gradient(&batch, keys(Pass::Primal), settings.loss)
                })?;
                return Ok(());
            }
            if carries {
                replay = timed(&mut ms.adjoint, || {
                    device.render_and_backpropagate(&batch, keys(Pass::Primal), spp)
                })?;
            } else {
                timed(&mut ms.primal, || device.render(&batch, keys(Pass::Primal), spp))?;
            }
            loss = timed(&mut ms.loss, || device.loss(&batch, keys(Pass::Primal), settings.loss))?;
            if !carries {
                replay = timed(&mut ms.adjoint, || {
                    device.backpropagate(&batch, keys(Pass::Adjoint), spp_grad)
                })?;
            }
            Ok(())
        })?;
        self.carries = self.device.is_pipelined();
        let due: Vec<Term> = self
            .terms
            .iter()
            .filter(|(_, every)| index.is_multiple_of(*every))
            .map(|(term, _)| *term)
            .collect();
        let penalty = timed(&mut ms.regularise, || match due.as_slice() {
            [] => Ok(0.0),
            due => self.device.regularise(due),
        })?;
        if self.views_rest() {
            self.hold_views()?;
        }
        self.job.observer.stepping(self.device)?;
        let rate = rate_factor(&settings.schedule, index, settings.iterations);
        let step = Step {
            optimizer: settings.optimizer,
            rate,
            count: self.state.steps + 1,
        };
        let norms = timed(&mut ms.step, || self.smooth_step(&step))?;
        self.state.steps += 1;
        self.state.iteration += 1;
        if self.state.iteration.is_multiple_of(REBUILD_EVERY) {
            timed(&mut ms.rebuild, || self.device.rebuild())?;
        }
        self.note_reach(&norms, loss.loss + penalty);
        ms.total = begun.elapsed().as_secs_f64() * 1e3;
        Ok(self.figures(loss, replay, penalty, &step, &norms, ms))
    }

    /// Whether cameras that are parameters are held fixed in this iteration: up to the share `views.start` of the run.
    pub(super) fn views_rest(&self) -> bool {
        let settings = self.job.settings;
        let start = f64::from(settings.views.start) * f64::from(settings.iterations);
        f64::from(self.state.iteration) < start.round()
    }

    /// Sets the gradients of camera parameters to zero.
    fn hold_views(&mut self) -> device::Result<()> {
        for index in 0..self.device.params().parameters.len() {
            let parameter = &self.device.params().parameters[index];
            if parameter.quantity.is_of_views() && parameter.tuning.is_some() {
                let zeros = vec![0.0; parameter.shape.len()];
                self.device.write(index, ArrayKind::Gradient, &zeros)?;
            }
        }
        Ok(())
    }

    /// Records which parameters have received a nonzero gradient.
    fn note_reach(&mut self, norms: &[f64], objective: f64) {
        self.state.learning |= objective != 0.0;
        let parameters = &self.device.params().parameters;
        for (parameter, &norm) in parameters.iter().zip(norms) {
            if norm != 0.0 && !self.state.reached.contains(&parameter.path) {
                self.state.reached.push(parameter.path.clone());
            }
        }
    }

    fn figures(
        &self,
        loss: LossValue,
        replay: ReplayStats,
        penalty: f64,
        step: &Step,
        norms: &[f64],
        ms: Milliseconds,
    ) -> Figures {
        let (mut rates, mut gradient_norms) = (Map::new(), Map::new());
        for (parameter, &norm) in self.device.params().parameters.iter().zip(norms) {
            if let Some(tuning) = parameter.tuning {
                rates.insert(
                    parameter.path.clone(),
                    Value::from(f64::from(step.rate_of(parameter.quantity, tuning))),
                );
                gradient_norms.insert(parameter.path.clone(), Value::from(norm));
            }
        }
        Figures {
            iteration: self.state.iteration,
            stage: self.state.stage + 1,
            loss: loss.loss,
            psnr: psnr(loss.mse),
            penalty,
            learning_rate_factor: step.rate,
            learning_rates: rates,
            gradient_norms,
            masked: loss.masked,
            replay,
            ms,
            memory_bytes: self.device.memory(),
            splats: self.splat_count(),
            seconds: self.seconds(),
        }
    }
}

/// Runs `work` and stores the milliseconds that it took.
fn timed<T>(ms: &mut f64, work: impl FnOnce() -> T) -> T {
    let begun = Instant::now();
    let result = work();
    *ms = begun.elapsed().as_secs_f64() * 1e3;
    result
}
