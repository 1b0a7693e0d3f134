//! Element-wise operations: losses, optimisers, regularisers, resampling. Pure functions of numbers, used by both
//! devices; the GPU's are in the files of the same stems in `shaders/kernels/`.

pub mod loss;
pub mod occupancy;
pub mod optimizer;
pub mod quality;
pub mod regularizer;
pub mod resample;
pub mod smoothing;
