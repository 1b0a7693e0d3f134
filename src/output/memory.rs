//! Memory of this process as the operating system counts it.

/// Largest resident size so far in MiB; None where the system does not tell.
pub fn peak_resident_mib() -> Option<u64> {
    status_kib("VmHWM:").map(|kib| kib / 1024)
}

/// Resident size now in MiB; None where the system does not tell.
pub fn resident_mib() -> Option<u64> {
    status_kib("VmRSS:").map(|kib| kib / 1024)
}

/// Memory that can still be used without swapping, in bytes; None where the system does not tell.
pub fn available_bytes() -> Option<u64> {
    kib_of("/proc/meminfo", "MemAvailable:").map(|kib| kib << 10)
}

/// Has freed blocks of a megabyte and more go back to the system at once. By default glibc takes blocks of up to 32 MiB from its
/// arenas as soon as one of their size has been freed, and each thread's arena keeps up to twice as much that is free.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub fn give_back_freed() {
    const LARGE: libc::c_int = 1 << 20;
    // SAFETY: the calls only set thresholds of the allocator.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, LARGE);
        libc::mallopt(libc::M_TRIM_THRESHOLD, LARGE);
    }
}

/// Other allocators stay as they are.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub fn give_back_freed() {}

fn status_kib(field: &str) -> Option<u64> {
    kib_of("/proc/self/status", field)
}

/// A figure of one of the system's lists.
fn kib_of(list: &str, field: &str) -> Option<u64> {
    let list = std::fs::read_to_string(list).ok()?;
    let line = list.lines().find_map(|line| line.strip_prefix(field))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    /// Compares the resident size with the page count in `/proc/self/statm`, and with 96 MiB that are written.
    #[test]
    fn resident_memory_is_that_of_the_system() {
        // SAFETY: the call only returns a number.
        let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as u64;
        let pages = || -> u64 {
            let text = std::fs::read_to_string("/proc/self/statm").expect("a Linux");
            let resident = text.split_whitespace().nth(1).expect("two figures");
            resident.parse().expect("a number")
        };
        let block = std::hint::black_box(vec![1u8; 96 << 20]);
        // Other threads allocate and free meanwhile: of many pairs of readings the nearest one counts.
        let pairs = (0..1000).map(|_| (resident_mib().expect("told"), (pages() * page) >> 20));
        let (told, counted) = pairs
            .min_by_key(|(told, counted)| told.abs_diff(*counted))
            .expect("some");
        assert!(told.abs_diff(counted) <= 2 && told >= 90, "{told} MiB, not {counted}");
        assert!(peak_resident_mib().expect("told") >= 96, "{}", block.len());
        assert_eq!(status_kib("NoSuchField:"), None);
        let available = available_bytes().expect("told");
        assert!(available > 1 << 24 && available < 1 << 50, "{available}");
        drop(block);
        let (peak, now) = (peak_resident_mib().expect("told"), resident_mib().expect("told"));
        assert!(now <= peak && peak < 1 << 20, "{now} MiB, at most {peak}");
    }
}
