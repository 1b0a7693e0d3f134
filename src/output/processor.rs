//! Processor time of this process as the operating system counts it.

/// Processor seconds of all threads of this process so far, independent of other load; None where the system does not
/// report them.
#[cfg(unix)]
pub fn processor_seconds() -> Option<f64> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call writes to the struct that it is given.
    let failed = unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) };
    (failed == 0).then_some(time.tv_sec as f64 + 1e-9 * time.tv_nsec as f64)
}

#[cfg(not(unix))]
pub fn processor_seconds() -> Option<f64> {
    None
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn what_is_computed_counts() {
        let begun = processor_seconds().expect("told");
        let sum = (0..50_000_000u64).fold(0, |sum, i| std::hint::black_box(sum + i));
        let taken = processor_seconds().expect("told") - begun;
        // Fifty million additions take no less than three milliseconds of any processor, and no minute.
        assert!((3e-3..60.0).contains(&taken), "{taken} s, {sum}");
    }
}
