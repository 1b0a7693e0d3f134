//! Pictures as ordered blends of two-dimensional Gaussians. Read `blend` first: the blend and its undoing.

pub mod blend;
pub mod splat;
