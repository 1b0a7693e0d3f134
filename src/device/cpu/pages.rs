//! Large arrays on large pages: rays in random order touch texels all over a grid, and every page that the processor
//! has not looked up lately costs a walk through the page tables.

/// Arrays smaller than this stay on ordinary pages.
const LARGE: usize = 4 << 20;

/// `len` zeros.
pub(super) fn zeros(len: usize) -> Vec<f32> {
    let array = vec![0.0; len];
    advise(&array);
    array
}

/// The same values, on large pages if they are many.
pub(super) fn settle(values: Vec<f32>) -> Vec<f32> {
    if size_of_val(&values[..]) < LARGE {
        return values;
    }
    let mut array = zeros(values.len());
    array.copy_from_slice(&values);
    array
}

/// Asks for large pages. A wish: where it is not granted, nothing but time is lost.
#[cfg(target_os = "linux")]
fn advise(array: &[f32]) {
    const PAGE: usize = 4096;
    let bytes = size_of_val(array);
    if bytes < LARGE {
        return;
    }
    let start = array.as_ptr().addr().next_multiple_of(PAGE);
    let end = (array.as_ptr().addr() + bytes) / PAGE * PAGE;
    // SAFETY: the range lies within the array, and advice of this kind changes no content.
    unsafe {
        libc::madvise(
            array.as_ptr().with_addr(start).cast_mut().cast(),
            end - start,
            libc::MADV_HUGEPAGE,
        );
    }
}

#[cfg(not(target_os = "linux"))]
fn advise(_: &[f32]) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_survive_the_move() {
        for len in [0, 1, 5000, (LARGE / 4) + 12_345] {
            let values: Vec<f32> = (0..len).map(|i| i as f32).collect();
            assert_eq!(settle(values.clone()), values);
        }
    }
}
