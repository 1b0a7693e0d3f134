//! Light tracing.

pub(super) mod band;
pub(super) mod passes;

pub use passes::light_bytes;
