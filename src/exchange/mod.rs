//! Converts scenes to the formats of other tools, and notes what these cannot express.

mod bake;
pub mod gltf;
pub mod milling;
pub mod mitsuba;
pub mod triangles;
pub mod volumes;

pub use bake::bake;
