//! The loop: what to look at, how fast to go, when to refine. It sees a device and figures, never an element.

pub mod batch;
pub mod schedule;
pub mod stage;
