//! `checkpoint.safetensors`: everything needed to resume a run. The random state is the seed and the iteration.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow, bail};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::device::{ArrayKind, Device};
use crate::io::atomic::Pending;
use crate::io::tensors::{self, Reader};
use crate::kernels::optimizer::Optimizer;
use crate::params::{Parameter, Shape};

/// The progress of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct State {
    /// Iterations done.
    pub iteration: u32,
    /// Changes of resolution done.
    pub stage: u32,
    /// Optimiser steps since the moments were last zero.
    pub steps: u32,
    /// Whether an iteration had a loss that was not zero.
    pub learning: bool,
    /// Paths of the optimised parameters that have received a gradient.
    pub reached: Vec<String>,
    /// Seconds that the run has taken.
    pub seconds: f64,
}

/// What must be equal for a resumed run to compute the bits of an uninterrupted one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// Hash of the scene and its files (`scene_fingerprint`).
    pub scene: String,
    pub seed: u64,
    /// The device's arithmetic, which decides the bits of its results.
    pub arithmetic: String,
}

/// The text of a checkpoint. Shapes of parameters are not in it: the arrays state them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Head {
    /// Version of the checkpoint's format: [`FORMAT`].
    format: u64,
    /// The program's version.
    version: String,
    iterations: u32,
    #[serde(flatten)]
    identity: Identity,
    #[serde(flatten)]
    state: State,
}

const HEAD: &str = "prbopt";

/// The version of checkpoints that is written and read. Checkpoints of version 1 state none.
const FORMAT: u64 = 2;

/// Saves values and moments of all optimised parameters, an array at a time. `iterations` is the length of the run.
/// Another thread waits for the disk while the run goes on.
///
/// # Errors
/// The disk is full or the device lost; an earlier checkpoint stays as it was.
pub fn save(
    path: &Path,
    device: &mut dyn Device,
    optimizer: Optimizer,
    identity: &Identity,
    state: &State,
    iterations: u32,
) -> crate::io::Result<Pending> {
    let mut sources = Vec::new();
    let mut arrays = Vec::new();
    for (index, parameter) in tuned(&device.params().parameters) {
        for what in arrays_of(optimizer) {
            sources.push((index, what));
            arrays.push((array_name(parameter, what), axes(parameter.shape)));
        }
    }
    let head = Head {
        format: FORMAT,
        version: env!("CARGO_PKG_VERSION").into(),
        iterations,
        identity: identity.clone(),
        state: state.clone(),
    };
    let head = serde_json::to_string(&head).map_err(|e| crate::io::IoError::new(path, e))?;
    let text = BTreeMap::from([(HEAD.to_owned(), head)]);
    tensors::write_behind(path, &arrays, &text, |i| {
        let (parameter, what) = sources[i];
        device.read(parameter, what).map_err(io::Error::other)
    })
}

/// An open checkpoint.
#[derive(Debug)]
pub struct Checkpoint {
    path: PathBuf,
    reader: Reader,
    head: Head,
}

impl Checkpoint {
    /// Opens a checkpoint and reads its text.
    ///
    /// # Errors
    /// It is truncated, damaged, of another version, or no checkpoint of this program; or it states numbers that no run
    /// can reach.
    pub fn open(path: &Path) -> Result<Self> {
        let reader = Reader::open(path)?;
        let shown = path.display();
        let text = reader.text(HEAD).map(serde_json::from_str::<Value>);
        let Some(text) = text else {
            bail!("{shown}: is no checkpoint of prbopt");
        };
        let text =
            text.map_err(|e| anyhow!("{shown}: has a head that is no JSON, so the checkpoint is damaged: {e}"))?;
        let format = text.get("format").map_or(Some(1), Value::as_u64);
        if format.is_some_and(|format| format != FORMAT) {
            bail!(
                "{shown}: was written by prbopt checkpoint version {}, this is {FORMAT}",
                format.unwrap_or_default()
            );
        }
        let head = serde_json::from_value::<Head>(text);
        let head = head.map_err(|e| anyhow!("{shown}: has a head that is damaged: {e}"))?;
        if let Some(fault) = head.fault() {
            bail!("{shown}: claims {fault}, which no run reaches, so the checkpoint is damaged");
        }
        Ok(Self {
            path: path.to_owned(),
            reader,
            head,
        })
    }

    /// The run's progress when it was saved.
    pub fn state(&self) -> &State {
        &self.head.state
    }

    /// The run's seed.
    pub fn seed(&self) -> u64 {
        self.head.identity.seed
    }

    /// The length that the run was meant to have.
    pub fn iterations(&self) -> u32 {
        self.head.iterations
    }

    /// Whether a run with this identity can go on from here.
    ///
    /// # Errors
    /// It cannot: the sentence says what differs and what to do.
    pub fn check(&self, identity: &Identity) -> Result<()> {
        let (path, saved) = (self.path.display(), &self.head.identity);
        if saved.scene != identity.scene {
            bail!(
                "{path}: belongs to another scene, or the scene, a file of it or its target has been changed since; restore it, or \
                 start anew with --force"
            );
        }
        if saved.seed != identity.seed {
            bail!(
                "{path}: was made with seed {}, not {}; leave --seed out, or start anew with --force",
                saved.seed,
                identity.seed
            );
        }
        if saved.arithmetic != identity.arithmetic {
            bail!(
                "{path}: was made by {}, this would go on with {}; a run keeps to one: resume where it began, set \
                 PRBOPT_VECTORS where processors differ, or start anew with --force",
                saved.arithmetic,
                identity.arithmetic
            );
        }
        Ok(())
    }

    /// The parameters' shapes: the saved ones of optimised parameters, the current ones of all others.
    ///
    /// # Errors
    /// An array is missing, or is not of a parameter's four axes.
    pub fn shapes(&self, parameters: &[Parameter]) -> Result<Vec<Shape>> {
        let saved = |parameter: &Parameter| {
            let (path, name) = (self.path.display(), array_name(parameter, ArrayKind::Values));
            match self.reader.shape(&name) {
                _ if parameter.tuning.is_none() => Ok(parameter.shape),
                Some(&[z, y, x, channels]) => Ok(Shape {
                    size: [x, y, z],
                    channels,
                }),
                Some(found) => bail!("{path}: {name} has the shape {found:?}, expected four axes"),
                None => bail!("{path}: holds no array named `{name}`"),
            }
        };
        parameters.iter().map(saved).collect()
    }

    /// Replaces values and shapes of the optimised parameters by the saved ones.
    ///
    /// # Errors
    /// An array is missing, holds NaN, infinity or a value out of its bounds, or the parameters that received a gradient
    /// are not the run's.
    pub fn restore_values(&mut self, parameters: &mut [Parameter]) -> Result<()> {
        let shapes = self.shapes(parameters)?;
        let is_tuned = |path: &String| tuned(parameters).any(|(_, p)| p.path == *path);
        if let Some(stranger) = self.head.state.reached.iter().find(|path| !is_tuned(path)) {
            let path = self.path.display();
            bail!("{path}: claims a gradient of `{stranger}`, which is not optimised, so the checkpoint is damaged");
        }
        for (parameter, shape) in parameters.iter_mut().zip(shapes) {
            if let Some(tuning) = parameter.tuning {
                let [low, high] = tuning.bounds;
                let range = format!("values between {low} and {high}");
                let is_possible = |v: f32| low <= v && v <= high;
                parameter.values = self.array(parameter, ArrayKind::Values, shape, &range, is_possible)?;
                parameter.shape = shape;
            }
        }
        Ok(())
    }

    /// Copies the saved moments to the device, which already holds the values.
    ///
    /// # Errors
    /// As [`Checkpoint::restore_values`], or the device's.
    pub fn restore_moments(&mut self, device: &mut dyn Device, optimizer: Optimizer) -> Result<()> {
        for index in 0..device.params().parameters.len() {
            let parameter = &device.params().parameters[index];
            if parameter.tuning.is_none() {
                continue;
            }
            for moment in 0..optimizer.moments() {
                let parameter = &device.params().parameters[index];
                let what = ArrayKind::Moment(moment);
                let values = match is_mean_square(optimizer, moment) {
                    true => self.array(parameter, what, parameter.shape, "squares", |v| v >= 0.0)?,
                    false => self.array(parameter, what, parameter.shape, "finite numbers", |_| true)?,
                };
                device.write(index, ArrayKind::Moment(moment), &values)?;
            }
        }
        Ok(())
    }

    /// Reads an array of this shape whose values must be finite and satisfy `is_possible`, which errors call
    /// `expected_values`.
    fn array(
        &mut self,
        parameter: &Parameter,
        what: ArrayKind,
        shape: Shape,
        expected_values: &str,
        is_possible: impl Fn(f32) -> bool,
    ) -> Result<Vec<f32>> {
        let name = array_name(parameter, what);
        let expected = axes(shape);
        if self.reader.shape(&name).is_some_and(|found| found != expected) {
            let found = self.reader.shape(&name).unwrap_or_default();
            bail!(
                "{}: {name} has the shape {found:?}, expected {expected:?}",
                self.path.display()
            );
        }
        let values = self.reader.f32(&name)?;
        match values.iter().position(|v| !v.is_finite() || !is_possible(*v)) {
            None => Ok(values),
            Some(at) => Err(anyhow!(
                "{}: value {at} of {name} is {}, expected {expected_values}: the checkpoint is damaged",
                self.path.display(),
                values[at]
            )),
        }
    }
}

impl Head {
    /// The first claim of the head that no run reaches, in words; None if all are possible.
    fn fault(&self) -> Option<String> {
        let State {
            iteration,
            stage,
            steps,
            seconds,
            ..
        } = self.state;
        let length = self.iterations;
        if iteration > length || length == 0 {
            return Some(format!("iteration {iteration} of a run of {length}"));
        }
        // Each iteration is a step. A change of resolution may reset the count of steps, and an iteration follows it.
        let possible = match stage {
            0 => steps == iteration,
            _ => 1 <= steps && steps <= iteration,
        };
        if !possible {
            return Some(format!(
                "{steps} steps after {iteration} iterations and {stage} changes of resolution"
            ));
        }
        if !(seconds.is_finite() && seconds >= 0.0) {
            return Some(format!("to have taken {seconds} seconds"));
        }
        None
    }
}

/// Whether a moment is a mean of squared gradients: its square root is taken, so that it must not be negative.
fn is_mean_square(optimizer: Optimizer, moment: usize) -> bool {
    matches!(
        (optimizer, moment),
        (Optimizer::Adam { .. }, 1) | (Optimizer::RmsProp { .. }, 0)
    )
}

fn tuned(parameters: &[Parameter]) -> impl Iterator<Item = (usize, &Parameter)> {
    parameters.iter().enumerate().filter(|(_, p)| p.tuning.is_some())
}

fn arrays_of(optimizer: Optimizer) -> impl Iterator<Item = ArrayKind> {
    std::iter::once(ArrayKind::Values).chain((0..optimizer.moments()).map(ArrayKind::Moment))
}

fn array_name(parameter: &Parameter, what: ArrayKind) -> String {
    let what = match what {
        ArrayKind::Values => "values".into(),
        ArrayKind::Gradient => "gradient".into(),
        ArrayKind::Moment(i) => format!("moment_{}", i + 1),
    };
    format!("{}/{what}", parameter.path)
}

/// Axes of a parameter's array, the last contiguous.
fn axes(shape: Shape) -> Vec<usize> {
    let [x, y, z] = shape.size;
    vec![z, y, x, shape.channels]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Steps equal iterations before a change of resolution; after it there is at least one step, and at most one an
    /// iteration.
    #[test]
    fn only_what_a_run_reaches_is_believed() {
        let fault = |iteration, iterations, stage, steps, seconds| {
            let state = State {
                iteration,
                stage,
                steps,
                seconds,
                ..State::default()
            };
            let identity = Identity {
                scene: String::new(),
                seed: 1,
                arithmetic: String::new(),
            };
            let version = String::new();
            let head = Head {
                format: FORMAT,
                version,
                iterations,
                identity,
                state,
            };
            head.fault()
        };
        for (iteration, iterations, stage, steps) in [(0, 1, 0, 0), (5, 10, 0, 5), (10, 10, 1, 10), (10, 10, 2, 1)] {
            assert_eq!(fault(iteration, iterations, stage, steps, 0.0), None);
        }
        for (iteration, iterations, stage, steps) in [
            (0, 0, 0, 0),
            (11, 10, 0, 11),
            (5, 10, 0, 4),
            (5, 10, 0, 6),
            (5, 10, 1, 0),
            (5, 10, 1, 6),
        ] {
            assert!(
                fault(iteration, iterations, stage, steps, 0.0).is_some(),
                "{steps} steps"
            );
        }
        for seconds in [-0.5, f64::NAN, f64::INFINITY] {
            assert!(fault(5, 10, 0, 5, seconds).is_some_and(|f| f.contains("seconds")));
        }
    }
}
