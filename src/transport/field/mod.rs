//! Emission and absorption in a radiance field: rays are marched, without scattering.

pub mod march;
pub mod radiance_field;
pub mod ray_adjoint;
