//! `prbopt` is an inverse renderer: it recovers the parameters of a scene from images, by path replay backpropagation.
//!
//! The modules in reading order, and what flows between them:
//!
//! ```text
//! scene.json ── scene ──▶ Scene      plain, validated, typed
//!              io      ──▶           images, grids, data sets as plain arrays
//!              params  ──▶ ParamSet  named f32 arrays [z][y][x][channel]: all that a run may change
//!              resident──▶ Resident  the scene flattened into the records that both devices read
//! optimize drives a device::Device: render → loss → backpropagate → regularise → step
//!              output  ──▶           run folder: images, grids, metrics, checkpoint
//!              report  ──▶           the page that shows a run, or several
//!              exchange──▶           scenes and results in the formats of other tools
//!              serve   ──▶           the page of a running optimisation, with an interactive view
//! ```
//!
//! `cluster` are the ranks of an MPI job, which share a device's passes.
//!
//! `each` are loops over short arrays, `transport` holds the light transport (one walk for every mode), `kernels`
//! element-wise operations, `gradcheck` compares the gradients with finite differences, `cli` is the program.

// `println!` and `eprintln!` panic where nothing can be written: `output::streams` does not.
#![warn(clippy::print_stdout, clippy::print_stderr)]

mod each;

pub mod scene;

pub mod io;

pub mod params;

pub mod resident;

pub mod transport;

pub mod kernels;

pub mod cluster;

pub mod device;

pub mod optimize;

pub mod gradcheck;

pub mod output;

pub mod exchange;

pub mod report;

pub mod serve;

pub mod cli;
