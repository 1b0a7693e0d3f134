//! Lookups in arrays of parameters, each beside its adjoint.

pub mod background;
pub mod grid;
pub mod prefetch;
pub mod sh;
pub mod volume;
