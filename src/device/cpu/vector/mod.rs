//! Vector levels of x86-64, and the operations that differ between them.

#[cfg(target_arch = "x86_64")]
pub(super) mod avx2;
#[cfg(target_arch = "x86_64")]
pub(super) mod avx512;
pub(super) mod lanes;
pub(super) mod level;
pub(super) mod wide;
