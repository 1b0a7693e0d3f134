//! Scenes in the formats of other tools: what becomes of each thing, and what they cannot say.

mod bake;
pub mod gltf;
pub mod milling;
pub mod mitsuba;
pub mod triangles;
pub mod volumes;

pub use bake::bake;
