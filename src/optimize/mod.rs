//! The optimisation loop: batches, learning rates, refinement. It uses the `Device` interface and never touches
//! elements.

pub mod batch;
pub mod estimate;
mod growth;
mod half;
pub mod held_out;
mod iteration;
pub mod references;
mod run;
pub mod schedule;
pub mod stage;
#[cfg(test)]
mod tests;
mod views;

use std::sync::atomic::AtomicBool;

use crate::output::metrics::Figures;
use crate::output::run_folder::RunFolder;
use crate::scene::{Optimize, Scene};

use held_out::HeldOut;

pub use views::{RenderSettings, render_view, render_view_aov};

pub(crate) use run::Run;

/// Iterations without any gradient after which a parameter is reported as a mistake.
pub const PATIENCE: u32 = 20;

/// Follows a run through the files in its folder.
pub trait Observer: std::fmt::Debug {
    /// Called after an iteration whose line is in `metrics.jsonl`; the run waits for its return.
    fn iterated(&self);
}

/// No observer.
impl Observer for () {
    fn iterated(&self) {}
}

/// The input of a run.
#[derive(Debug)]
pub struct Job<'a> {
    pub scene: &'a Scene,
    /// The scene's block `optimize`, with the command line's changes.
    pub rule: &'a Optimize,
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
    pub seconds: f64,
}
