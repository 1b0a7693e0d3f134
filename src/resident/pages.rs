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
