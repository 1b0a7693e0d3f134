//! The machine's memory, and large pages: random accesses to a large array miss the TLB, each at the cost of a walk through
//! the page tables, and large pages make such misses rare.

use std::sync::OnceLock;

/// Bytes below which arrays stay on ordinary pages.
pub const LARGE: usize = 4 << 20;

/// Asks for large pages for an array that has not been written yet. The system may ignore it, which costs time alone.
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

/// Gives the memory of a part of an array back to the system; afterwards its values are kept or zero. Only whole large
/// pages within it are given back, since giving back a part of one would split it.
#[cfg(target_os = "linux")]
pub fn give_back(part: &mut [f32]) {
    const LARGE_PAGE: usize = 2 << 20;
    let begin = part.as_ptr().addr();
    let start = begin.next_multiple_of(LARGE_PAGE);
    let end = (begin + size_of_val(part)) / LARGE_PAGE * LARGE_PAGE;
    if start < end {
        // SAFETY: the range lies within memory that is borrowed mutably and that no file is mapped to; the system replaces its
        // pages by zeros, which are numbers.
        unsafe {
            libc::madvise(
                part.as_mut_ptr().with_addr(start).cast(),
                end - start,
                libc::MADV_DONTNEED,
            );
        }
    }
}

#[cfg(not(target_os = "linux"))]
pub fn give_back(_: &mut [f32]) {}

/// Bytes of the machine's memory, if the system tells. It is read once, since reading takes longer than a pass over a small
/// picture may wait.
pub fn physical_bytes() -> Option<u64> {
    static BYTES: OnceLock<Option<u64>> = OnceLock::new();
    let ask = || {
        let text = std::fs::read_to_string("/proc/meminfo").ok()?;
        let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
        let kib: u64 = line.split_whitespace().next()?.parse().ok()?;
        kib.checked_mul(1024)
    };
    *BYTES.get_or_init(ask)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn what_is_given_back_has_no_memory_and_its_neighbours_keep_their_values() {
        let resident = || {
            let status = std::fs::read_to_string("/proc/self/statm").expect("a Linux");
            let pages = status.split(' ').nth(1).and_then(|pages| pages.parse::<usize>().ok());
            4096 * pages.expect("a number")
        };
        let mut array = vec![1f32; 64 << 20];
        let (third, before) = (array.len() / 3, resident());
        give_back(&mut array[third..2 * third]);
        // Tests beside this one take and free memory meanwhile.
        let half = size_of_val(&array[..third]) / 2;
        assert!(resident() + half < before, "{} of {before} are left", resident());
        let kept = array[..third].iter().chain(&array[2 * third..]);
        assert!(kept.into_iter().all(|x| *x == 1.0));
        assert_eq!(array[array.len() / 2], 0.0);
    }

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
