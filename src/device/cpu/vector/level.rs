//! Vector levels of x86-64, chosen once at run time. All levels give the same bits: multiplication and addition are fused
//! by `Lanes::mul_add` and `Lanes::sub_product` alone, which every level has, and the order of every sum is kept.

#[cfg(target_arch = "x86_64")]
use super::wide::{Avx2, Avx512};
use super::wide::{Plain, Wide};

/// The instruction set that the hot loops are compiled for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::device::cpu) enum Level {
    Baseline,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

/// The environment variable that names a level to be used in place of the processor's widest, for measurements.
const VARIABLE: &str = "PRBOPT_VECTORS";

impl Level {
    /// The level that the environment asks for, else the widest of this processor.
    ///
    /// # Errors
    /// The level is unknown, or this processor has not got it.
    pub(in crate::device::cpu) fn choose() -> Result<Self, String> {
        let widest = Self::detect();
        let Some(wanted) = std::env::var_os(VARIABLE) else {
            return Ok(widest);
        };
        let levels = Self::up_to(widest);
        let found = levels.iter().find(|level| wanted == level.name());
        found.copied().ok_or_else(|| {
            let names: Vec<_> = levels.iter().map(|level| level.name()).collect();
            format!(
                "{VARIABLE} is {wanted:?}, which this processor has not got; set it to {} or unset it",
                names.join(" or ")
            )
        })
    }

    /// The levels of a processor whose widest one is `widest`.
    pub(in crate::device::cpu) fn up_to(widest: Self) -> Vec<Self> {
        match widest {
            Self::Baseline => vec![Self::Baseline],
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => vec![Self::Baseline, Self::Avx2],
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => vec![Self::Baseline, Self::Avx2, Self::Avx512],
        }
    }

    /// The widest level of this processor.
    pub(in crate::device::cpu) fn detect() -> Self {
        #[cfg(target_arch = "x86_64")]
        {
            let avx512 = is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512vl")
                && is_x86_feature_detected!("avx512dq")
                && is_x86_feature_detected!("avx512bw");
            let avx2 = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma");
            if avx512 && avx2 {
                return Self::Avx512;
            }
            if avx2 {
                return Self::Avx2;
            }
        }
        Self::Baseline
    }

    /// The name that run records carry.
    pub(in crate::device::cpu) fn name(self) -> &'static str {
        match self {
            Self::Baseline => "baseline",
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => "avx2",
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => "avx512",
        }
    }

    /// Runs a kernel compiled for this level; None at the baseline, for which it is not compiled.
    pub(in crate::device::cpu) fn run_wide<K: Kernel>(self, kernel: K) -> Option<K::Output> {
        match self {
            Self::Baseline => {
                drop(kernel);
                None
            }
            // SAFETY: as in `run`.
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => Some(unsafe { run_avx2(kernel) }),
            // SAFETY: as in `run`.
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => Some(unsafe { run_avx512(kernel) }),
        }
    }

    /// Runs a kernel compiled for this level.
    pub(in crate::device::cpu) fn run<K: Kernel>(self, kernel: K) -> K::Output {
        match self {
            Self::Baseline => kernel.run::<Plain>(),
            // SAFETY: `detect` found the features, and a `Level` other than the baseline comes only from there.
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => unsafe { run_avx2(kernel) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => unsafe { run_avx512(kernel) },
        }
    }
}

/// A piece of work to be compiled once a level: its `run` must be `#[inline(always)]`.
pub(in crate::device::cpu) trait Kernel {
    type Output;
    fn run<W: Wide>(self) -> Self::Output;
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn run_avx2<K: Kernel>(kernel: K) -> K::Output {
    kernel.run::<Avx2>()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,avx512f,avx512vl,avx512dq,avx512bw")]
fn run_avx512<K: Kernel>(kernel: K) -> K::Output {
    kernel.run::<Avx512>()
}
