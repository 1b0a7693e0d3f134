//! A slice that several threads write at different places.

use std::marker::PhantomData;

/// A mutable slice whose disjointness the caller guarantees.
#[derive(Debug)]
pub(super) struct SharedSlice<'a, T> {
    data: *mut T,
    len: usize,
    owner: PhantomData<&'a mut [T]>,
}

// SAFETY: access goes through `get`, whose caller promises that no element is touched by two threads.
unsafe impl<T: Send> Send for SharedSlice<'_, T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for SharedSlice<'_, T> {}

impl<'a, T> SharedSlice<'a, T> {
    pub(super) fn new(slice: &'a mut [T]) -> Self {
        Self {
            data: slice.as_mut_ptr(),
            len: slice.len(),
            owner: PhantomData,
        }
    }

    /// The whole slice.
    ///
    /// # Safety
    /// As long as the result lives, no element that it is used to touch may be touched by another thread.
    #[inline(always)]
    #[allow(
        clippy::mut_from_ref,
        reason = "the point of the type: the caller keeps the elements apart"
    )]
    pub(super) unsafe fn get(&self) -> &mut [T] {
        // SAFETY: pointer and length come from a slice that is mutably borrowed for 'a.
        unsafe { std::slice::from_raw_parts_mut(self.data, self.len) }
    }
}
