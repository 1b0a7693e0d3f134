//! Light transport in Rust, generic over the number type; `shaders/transport/` is the same in WGSL, file by file.
//!
//! Two kinds of transport, [`field`] and [`paths`], stand beside each other and do not know of each other. Both are made
//! of the same pieces: [`number`] (what a walk computes with), [`rays`] (from pixels and random numbers to rays),
//! [`lookup`] (interpolation and its adjoints), and [`scene`] (shapes, lights, phase functions, majorants).
//!
//! Geometry (rays, positions, stencils) is f32 in every instantiation, so that the f64 oracle, dual numbers and the
//! recording number see the very samples that the f32 device sees.

pub mod field;
pub mod lookup;
pub mod mode;
pub mod number;
pub mod paths;
pub mod rays;
pub mod scene;
