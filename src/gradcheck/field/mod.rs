//! Gradients of radiance fields against finite differences.

pub mod coverage;
pub mod difference;
pub mod entries;
pub mod fields;
pub mod objective;
pub mod views;
