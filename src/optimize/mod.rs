//! The loop: what to look at, how fast to go, when to refine. It sees a device and figures, never an element.

pub mod batch;
pub mod estimate;
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

pub use views::{RenderSettings, render_view};

pub(crate) use run::Run;

/// Iterations after which a parameter that has never received a gradient is taken for a mistake.
pub const PATIENCE: u32 = 20;

/// Who follows a run by what it leaves in its folder.
pub trait Observer: std::fmt::Debug {
    /// An iteration is done and its line is in `metrics.jsonl`. The run waits until this returns.
    fn iterated(&self);
}

/// Nobody.
impl Observer for () {
    fn iterated(&self) {}
}

/// What to run and where.
#[derive(Debug)]
pub struct Job<'a> {
    pub scene: &'a Scene,
    /// The scene's block `optimize` with what the command line says instead.
    pub rule: &'a Optimize,
    pub folder: &'a RunFolder,
    /// Set to stop after the iteration at work.
    pub stop: &'a AtomicBool,
    /// The command that goes on with the run.
    pub resume_command: String,
    pub observer: &'a dyn Observer,
}

/// How a run ended.
#[derive(Debug)]
pub struct Report {
    /// Whether it was stopped before its end.
    pub interrupted: bool,
    pub iteration: u32,
    /// Figures of the last iteration that was made.
    pub last: Option<Figures>,
    pub held_out: Option<HeldOut>,
    pub seconds: f64,
}
