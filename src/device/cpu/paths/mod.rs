//! The passes over paths: one path at a time, derivatives summed in whole numbers.

mod develop;
pub(super) mod passes;
pub(super) mod sums;
pub(super) mod tape;
