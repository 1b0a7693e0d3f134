//! The modes of a walk: one function serves every pass, and a const parameter says which.

/// Adds radiance and ends where nothing can come any more.
pub const PRIMAL: u8 = 0;
/// The first walk of an adjoint: adds radiance, and visits all that a replay visits (factors of zero, samples that
/// contribute nothing).
pub const GATHER: u8 = 1;
/// The second walk of an adjoint: subtracts radiance and sends derivatives.
pub const REPLAY: u8 = 2;
/// Of radiative backpropagation with a bias: adds radiance as [`GATHER`] does, but ends where light would be scattered,
/// as if the radiance were one there in all directions.
pub const UNIT_RADIANCE: u8 = 3;
