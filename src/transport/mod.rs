//! Light transport in Rust, generic over the number type; `shaders/transport/` is the same in WGSL, stem by stem.
//!
//! Geometry (rays, positions, stencils) is f32 in every instantiation, so that the f64 oracle, dual numbers and the
//! recording number see the very samples that the f32 device sees.

pub mod adjoint;
pub mod background;
pub mod camera;
pub mod candidate;
pub mod connection;
pub mod film;
pub mod grid;
pub mod hierarchy;
pub mod light;
pub mod majorant;
pub mod number;
pub mod path;
pub mod phase;
pub mod pixel;
pub mod radiance_field;
pub mod radiative;
pub mod random;
pub mod sampler;
pub mod sh;
pub mod shape;
pub mod texture;
pub mod throughput;
pub mod tracking;
pub mod trail;
pub mod volpath;
pub mod volume;
pub mod world;
