//! Paths between surfaces and through scattering media.
//!
//! [`volpath`] is the walk, [`path_state`] what it carries, [`vertex`] where it scatters; [`tracking`] and [`next_event`] are free flight and shadow
//! rays, [`adjoint`] and [`reservoir`] the derivatives that a replay sends, [`replay_cache`] what it need not compute
//! again. [`radiative`] is radiative backpropagation, the baseline.

pub mod adjoint;
pub mod next_event;
pub mod path_state;
pub mod radiative;
pub mod replay_cache;
pub mod reservoir;
pub mod tracking;
pub mod vertex;
pub mod volpath;
