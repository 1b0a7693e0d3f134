//! Light tracing.

pub(super) mod band;
pub(super) mod passes;
