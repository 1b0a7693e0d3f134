//! Prefetching: cache lines are requested some time before they are read, so that the lookup does not wait for memory.

/// Prefetches the cache line at an address. Any address is allowed: nothing is dereferenced.
#[inline(always)]
pub fn prefetch_line<T>(address: *const T) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch dereferences nothing and accepts any address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(address.cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}
