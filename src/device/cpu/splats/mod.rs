//! Splats on the CPU: tile by tile, rows of sixteen pixels at a time.

mod lists;
pub(super) mod passes;
mod sums;
mod tile;
