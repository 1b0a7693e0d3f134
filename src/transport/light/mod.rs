//! Paths from a light through a slab of glass onto a screen, splatted onto the film that sees it, and their derivatives by the
//! slab's heights.

pub mod heights;
pub mod splat;
pub mod walk;
