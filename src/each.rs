//! Functions of each entry of a short array, as loops that are written out where they stand: `map` and `from_fn` of the
//! standard library go through half a dozen functions that are compiled for each closure, and are calls in a walk when one
//! of them falls into another unit of compilation.

use std::mem::MaybeUninit;

/// The array of `f` of each index, in order. There is one call of `f`, so that it is written out in the loop, and the loop
/// is as long as the array, so that sixteen entries are one vector.
#[inline(always)]
pub(crate) fn each_index<U: Copy, const N: usize>(mut f: impl FnMut(usize) -> U) -> [U; N] {
    let mut all = [MaybeUninit::uninit(); N];
    for i in 0..N {
        all[i] = MaybeUninit::new(f(i));
    }
    // SAFETY: the loop has written every entry, and an array of entries that may be missing has the layout of the array.
    unsafe { all.as_ptr().cast::<[U; N]>().read() }
}

/// `map` of arrays.
pub(crate) trait EachEntry<T, const N: usize> {
    /// `f` of each entry, in order.
    fn each<U: Copy>(self, f: impl FnMut(T) -> U) -> [U; N];
}

impl<T: Copy, const N: usize> EachEntry<T, N> for [T; N] {
    #[inline(always)]
    fn each<U: Copy>(self, mut f: impl FnMut(T) -> U) -> [U; N] {
        let mut all = [MaybeUninit::uninit(); N];
        for i in 0..N {
            all[i] = MaybeUninit::new(f(self[i]));
        }
        // SAFETY: as above.
        unsafe { all.as_ptr().cast::<[U; N]>().read() }
    }
}
