//! Light that is followed from the lights and splatted onto films: through an optic onto a screen ([`optic`]), with derivatives
//! by what bends it, the heights of a slab or the index inside a cube; and among surfaces of any kind ([`particle`]).

pub mod cube;
pub mod emission;
pub mod heights;
pub mod index;
pub mod landing;
pub mod leapfrog;
pub mod lens;
pub mod optic;
pub mod particle;
pub mod slab;
pub mod splat;
