//! The modes of a walk: one function serves all passes, and a const parameter selects the mode.

/// Adds radiance; ends where all further contributions are zero.
pub const PRIMAL: u8 = 0;
/// The first walk of an adjoint: adds radiance, and takes all samples that the replay takes (also through factors of
/// zero, and samples that contribute nothing).
pub const GATHER: u8 = 1;
/// The second walk of an adjoint: subtracts radiance and sends derivatives.
pub const REPLAY: u8 = 2;
/// A biased form of radiative backpropagation: adds radiance like [`GATHER`], but ends at the first scattering, with
/// in-scattered radiance one.
pub const UNIT_RADIANCE: u8 = 3;
