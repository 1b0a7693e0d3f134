//! Paths from a light through an optic onto a screen, splatted onto the film that sees it, and their derivatives by what bends
//! them: the heights of a slab, or the index inside a cube.

pub mod cube;
pub mod heights;
pub mod index;
pub mod landing;
pub mod leapfrog;
pub mod optic;
pub mod slab;
pub mod splat;
