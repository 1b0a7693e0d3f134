//! Paths between surfaces and through scattering media.
//!
//! [`volpath`] is the walk, [`path_state`] its state, [`vertex`] a scattering vertex, `surface` what happens at one on a
//! surface; [`tracking`] and [`next_event`] are free flights and shadow rays, and [`starts`] the camera rays. [`adjoint`] and
//! [`reservoir`] are the derivatives that a replay sends, and [`replay_cache`] keeps flights and shadow rays of the first walk
//! for it. Where shapes move, `trail` remembers the last points of a path, and `drift` how the transmittance between them
//! changes. `chain` remembers the vertices on smooth glass and mirrors whose points are moved; in its place `jacobian`
//! propagates derivatives by inverted Jacobians of rays. [`packet`] follows several paths together: their [`flights`], and
//! [`random_walks`] inside a medium with [`walk_notes`] for their replay, are made side by side in the lanes of vectors, and
//! [`wave`] shades vertices so. [`radiative`] is radiative backpropagation, the baseline, and [`aov`] the channels beside a
//! picture's radiance.

pub mod adjoint;
pub mod aov;
mod chain;
mod drift;
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
