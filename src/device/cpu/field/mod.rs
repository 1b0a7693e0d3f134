//! The passes over a radiance field: packets of rays, records of samples, and their reduction brick by brick.

pub(super) mod adjoint;
pub(super) mod bricks;
pub(super) mod packet;
pub(super) mod passes;
pub(super) mod ranks;
pub(super) mod records;
pub(super) mod reduce;
pub(super) mod refine;
pub(super) mod render;
mod round;
pub(super) mod view;

pub(super) use round::replay_bytes;
