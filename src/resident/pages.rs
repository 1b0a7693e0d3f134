//! Large pages: who touches places all over an array pays a walk through the page tables for every page that the
//! processor has not looked up lately.

/// Bytes below which arrays stay on ordinary pages.
pub const LARGE: usize = 4 << 20;

/// Asks for large pages for an array that has not been written yet. A wish: where it is not granted, nothing but time is
/// lost.
#[cfg(target_os = "linux")]
pub fn advise<T>(array: &Vec<T>) {
    const PAGE: usize = 4096;
    let bytes = array.capacity() * size_of::<T>();
    if bytes < LARGE {
        return;
    }
    let start = array.as_ptr().addr().next_multiple_of(PAGE);
    let end = (array.as_ptr().addr() + bytes) / PAGE * PAGE;
    // SAFETY: the range lies within the array's memory, and advice of this kind changes no content.
    unsafe {
        libc::madvise(
            array.as_ptr().with_addr(start).cast_mut().cast(),
            end - start,
            libc::MADV_HUGEPAGE,
        );
    }
}

#[cfg(not(target_os = "linux"))]
pub fn advise<T>(_: &Vec<T>) {}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    /// The kernel lists what it was advised of a range of memory: `hg` stands for large pages.
    #[test]
    fn large_arrays_are_marked() {
        if !std::path::Path::new("/sys/kernel/mm/transparent_hugepage").exists() {
            return;
        }
        for bytes in [LARGE, 4 * LARGE] {
            let array: Vec<u8> = Vec::with_capacity(bytes);
            advise(&array);
            let middle = array.as_ptr().addr() + bytes / 2;
            let maps = std::fs::read_to_string("/proc/self/smaps").expect("a Linux");
            let mut within = false;
            let flags = maps.lines().find_map(|line| {
                let range = line.split(' ').next().and_then(|word| word.split_once('-'));
                if let Some((low, high)) = range
                    && let (Ok(low), Ok(high)) = (usize::from_str_radix(low, 16), usize::from_str_radix(high, 16))
                {
                    within = (low..high).contains(&middle);
                }
                line.strip_prefix("VmFlags:").filter(|_| within)
            });
            let flags = flags.expect("the array lies somewhere");
            assert!(flags.split(' ').any(|flag| flag == "hg"), "{bytes} bytes: {flags}");
        }
    }
}
