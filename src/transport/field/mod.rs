//! Emission and absorption in a radiance field: a ray is marched, nothing is scattered.

pub mod march;
pub mod radiance_field;
