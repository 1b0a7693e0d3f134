//! Splats on the CPU: tile by tile, blocks of sixteen pixels at a time.

mod axes;
mod lists;
pub(super) mod passes;
mod pixels;
mod project;
mod shape;
mod sums;
mod tile;
