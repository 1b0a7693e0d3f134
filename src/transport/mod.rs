//! Light transport in Rust, generic over the number type; `shaders/transport/` holds the same functions in WGSL, file
//! by file.
//!
//! There are four kinds of transport, [`field`], [`paths`], [`splats`] and [`light`], which do not use each other. They share
//! [`number`] (number types), [`rays`] (from pixels and random numbers to rays), [`lookup`] (interpolation and its
//! adjoints), and [`scene`] (shapes, lights, phase functions, majorants).
//!
//! Geometry (rays, positions, stencils) is f32 for every number type, so that the f64 oracle, dual and recorded
//! numbers take the same samples as the f32 device.

pub mod field;
pub mod light;
pub mod lookup;
pub mod mode;
pub mod number;
pub mod paths;
pub mod rays;
pub mod scene;
pub mod splats;
