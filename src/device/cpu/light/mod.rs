//! Light tracing.

pub(super) mod band;
mod particles;
pub(super) mod passes;
mod sheet;
mod wide_index;

pub(super) use passes::{film_bytes, pass_bytes};
