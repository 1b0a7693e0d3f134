//! Memory of this process as the operating system counts it.

/// Largest resident size so far in MiB; None where the system does not tell.
pub fn peak_resident_mib() -> Option<u64> {
    status_kib("VmHWM:").map(|kib| kib / 1024)
}

/// Resident size now in MiB; None where the system does not tell.
pub fn resident_mib() -> Option<u64> {
    status_kib("VmRSS:").map(|kib| kib / 1024)
}

fn status_kib(field: &str) -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(field))?;
    line.split_whitespace().next()?.parse().ok()
}
