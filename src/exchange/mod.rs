//! Scenes in the formats of other tools: what becomes of each thing, and what they cannot say.

pub mod gltf;
pub mod mitsuba;
mod settle;
pub mod triangles;
pub mod volumes;

pub use settle::settle;
