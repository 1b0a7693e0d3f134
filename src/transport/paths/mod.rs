//! Paths between surfaces and through scattering media.
//!
//! [`volpath`] is the walk, [`path_state`] its state, [`vertex`] a scattering vertex, `surface` what happens at one on a surface; [`tracking`] and [`next_event`]
//! are free flights and shadow rays, [`adjoint`] and [`reservoir`] the derivatives that a replay sends, and
//! `trail` remembers the last points of a path where shapes move, `chain` those on smooth glass and mirrors that are moved, of which
//! `jacobian` keeps how rays follow each other instead, and [`replay_cache`] holds flights and shadow rays of the first walk. [`packet`] follows several paths together, whose
//! [`flights`] are made side by side, and whose [`random_walks`] inside a medium are, which leave [`walk_notes`] for their replay. [`radiative`] is radiative backpropagation, the
//! baseline.

pub mod adjoint;
pub mod aov;
mod chain;
pub mod flights;
mod jacobian;
pub mod next_event;
pub mod packet;
pub mod path_state;
pub mod radiative;
pub mod random_walks;
pub mod replay_cache;
pub mod reservoir;
pub mod starts;
mod surface;
pub mod tracking;
mod trail;
pub mod vertex;
pub mod volpath;
pub mod walk_notes;
pub mod wave;
