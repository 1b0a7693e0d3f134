//! Functions of each entry of a short array, as loops that are written out where they stand: `map` and `from_fn` of the
//! standard library go through half a dozen functions that are compiled for each closure, and are calls in a walk when one
//! of them falls into another unit of compilation.

/// The array of `f` of each index, in order.
#[inline(always)]
pub fn each_index<U: Copy, const N: usize>(mut f: impl FnMut(usize) -> U) -> [U; N] {
    const { assert!(N > 0, "an array without entries has no first one") };
    let mut all = [f(0); N];
    for i in 1..N {
        all[i] = f(i);
    }
    all
}

/// `map` of arrays.
pub trait EachEntry<T, const N: usize> {
    /// `f` of each entry, in order.
    fn each<U: Copy>(self, f: impl FnMut(T) -> U) -> [U; N];
}

impl<T: Copy, const N: usize> EachEntry<T, N> for [T; N] {
    #[inline(always)]
    fn each<U: Copy>(self, mut f: impl FnMut(T) -> U) -> [U; N] {
        each_index(|i| f(self[i]))
    }
}
