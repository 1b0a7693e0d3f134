//! Light tracing.

pub(super) mod band;
mod particles;
pub(super) mod passes;
mod sheet;

pub use passes::light_bytes;
