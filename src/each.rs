//! `map` and `from_fn` of short arrays, as loops that are always inlined: those of the standard library go through half a
//! dozen functions that are compiled for each closure, and remain calls in the inner loop of a walk when one of these falls
//! into another unit of compilation.

use std::mem::MaybeUninit;

/// The array of `f(i)` for each index i, in order. `f` is called at one place, so that it is inlined in the loop, whose
/// length is that of the array, so that sixteen f32 become one vector.
#[inline(always)]
pub(crate) fn each_index<U: Copy, const N: usize>(mut f: impl FnMut(usize) -> U) -> [U; N] {
    let mut all = [MaybeUninit::uninit(); N];
    for i in 0..N {
        all[i] = MaybeUninit::new(f(i));
    }
    // SAFETY: the loop has written every entry, and `[MaybeUninit<U>; N]` has the layout of `[U; N]`.
    unsafe { all.as_ptr().cast::<[U; N]>().read() }
}

/// An always inlined `map` of arrays.
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
