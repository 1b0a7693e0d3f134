//! What is done to every element: losses, optimisers, regularisers, resampling. Pure functions of numbers; both devices
//! apply them, the GPU through the files of the same stems in `shaders/kernels/`.

pub mod loss;
pub mod occupancy;
pub mod optimizer;
pub mod quality;
pub mod regularizer;
pub mod resample;
