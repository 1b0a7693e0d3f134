//! The passes over paths: several hundred paths at a time, derivatives summed in whole numbers.

mod develop;
pub(super) mod passes;
mod pilots;
mod sampling;
mod sum_cache;
pub(super) mod sums;
pub(super) mod tape;
pub(super) mod vertex_normals;
