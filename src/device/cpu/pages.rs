//! Large arrays on large pages: rays in random order read texels all over a grid, and every access to a page that is not in
//! the processor's TLB costs a walk through the page tables.

use crate::resident::pages::{LARGE, advise};

/// An array of `len` zeros, on large pages if it is large.
pub(super) fn zeros(len: usize) -> Vec<f32> {
    let array = vec![0.0; len];
    advise(&array);
    array
}

/// The same values, on large pages if they are many.
pub(super) fn on_large_pages(values: Vec<f32>) -> Vec<f32> {
    match size_of_val(&values[..]) < LARGE {
        true => values,
        false => copy(&values),
    }
}

/// A copy, on large pages if it is large: the system takes longer to provide many small pages than the copy itself takes.
pub(super) fn copy(values: &[f32]) -> Vec<f32> {
    let mut array = Vec::with_capacity(values.len());
    advise(&array);
    array.extend_from_slice(values);
    array
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_survive_the_move() {
        for len in [0, 1, 5000, (LARGE / 4) + 12_345] {
            let values: Vec<f32> = (0..len).map(|i| i as f32).collect();
            assert_eq!(on_large_pages(values.clone()), values);
        }
    }
}
