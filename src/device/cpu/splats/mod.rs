//! Splats on the CPU: tile by tile, blocks of sixteen pixels at a time.

mod axes;
mod gather;
mod lists;
pub(super) mod pairs;
pub(super) mod passes;
mod project;
mod replay;
mod shape;
mod sums;
