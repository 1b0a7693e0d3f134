//! From pixels and random numbers to rays.

pub mod angle;
pub mod camera;
pub mod film;
pub mod pixel;
pub mod random;
pub mod sampler;
pub mod sensor;
pub mod view_adjoint;
