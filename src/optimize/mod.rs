//! The optimisation loop: batches, learning rates, refinement. It uses the `Device` interface; values are computed on the
//! host only where steps are smoothed, splats grow or are rounded to half precision.

pub mod batch;
pub mod cameras;
pub mod estimate;
mod growth;
mod half;
pub mod held_out;
mod iteration;
pub mod references;
mod refined;
mod run;
pub mod schedule;
mod smoothing;
pub mod stage;
mod views;

use std::sync::atomic::AtomicBool;

use crate::device::{self, Device};
use crate::output::metrics::Figures;
use crate::output::run_folder::RunFolder;
use crate::scene::{Optimize, Scene};

use cameras::Refined;
use held_out::HeldOut;

pub use views::{RenderSettings, render_view, render_view_aov};

pub use references::data_marks;
pub use run::{Run, identity};

/// Iterations without any gradient after which a parameter is reported as a mistake.
pub const PATIENCE: u32 = 20;

/// How an observer wants a run to go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wish {
    /// With the next iteration.
    GoOn,
    /// Not yet: the observer is asked again.
    Wait,
    /// After a checkpoint: it is written, and the observer is asked again.
    Save,
}

/// Follows a run. It may read the device's arrays, and render through a sensor of its own, but changes neither parameters
/// nor anything else that the run reads.
pub trait Observer: std::fmt::Debug {
    /// Called after an iteration whose line is in `metrics.jsonl`; the run waits for its return.
    fn iterated(&self, figures: &Figures);

    /// Whether the observer renders. The last of the device's sensors is then its own, to be replaced at will.
    fn watches(&self) -> bool {
        false
    }

    /// Called with an iteration's gradients on the device, before its step.
    ///
    /// # Errors
    /// The device's.
    fn stepping(&self, _device: &mut dyn Device) -> device::Result<()> {
        Ok(())
    }

    /// Called before each iteration, until the observer returns [`Wish::GoOn`] or the run is stopped.
    ///
    /// # Errors
    /// The device's.
    fn attend(&self, _device: &mut dyn Device) -> device::Result<Wish> {
        Ok(Wish::GoOn)
    }

    /// Called when a checkpoint that the observer asked for is on the disk.
    fn saved(&self, _iteration: u32) {}
}

/// No observer.
impl Observer for () {
    fn iterated(&self, _figures: &Figures) {}
}

/// The input of a run.
#[derive(Debug)]
pub struct Job<'a> {
    pub scene: &'a Scene,
    /// The scene's block `optimize`, with the command line's changes.
    pub settings: &'a Optimize,
    pub folder: &'a RunFolder,
    /// Set by the caller to stop after the present iteration.
    pub stop: &'a AtomicBool,
    /// The command that resumes the run.
    pub resume_command: String,
    pub observer: &'a dyn Observer,
}

/// How a run ended.
#[derive(Debug)]
pub struct Report {
    /// Whether it was stopped before its last iteration.
    pub interrupted: bool,
    pub iteration: u32,
    /// Figures of the last completed iteration.
    pub last: Option<Figures>,
    pub held_out: Option<HeldOut>,
    /// Figures of held-out views after their cameras were refined with all other parameters fixed.
    pub held_out_refined: Option<HeldOut>,
    /// How far the training cameras are from their true or stated poses, if poses were parameters.
    pub cameras: Option<Refined>,
    /// Paths and final values of the optimised parameters that are a few numbers ([`crate::params::Kind::Value`]).
    pub found: Vec<(String, Vec<f32>)>,
    pub seconds: f64,
}
