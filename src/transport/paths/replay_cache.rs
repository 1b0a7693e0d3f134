//! What the first walk of an adjoint notes of its tracking, so that the second need not track again what the first did.
//!
//! A replay makes the same flights and the same connections from the same random numbers. The first few of a path,
//! whose number does not grow with its length, are taken from these notes instead; a longer path tracks the rest anew,
//! to the same bits.

use arrayvec::ArrayVec;

use super::tracking::Flown;
use crate::transport::rays::sampler::Sampler;

/// Flights, and connections, that are noted of a path.
pub const NOTED: usize = 32;

/// The notes of one path.
#[derive(Debug)]
pub struct Trail<N> {
    /// Flights that a replay can take over as they are.
    pub(super) flights: Notes<Flown<N>>,
    /// Transmittances of connections; None where something opaque is in the way.
    pub(super) connections: Notes<Option<[N; 3]>>,
}

impl<N> Trail<N> {
    /// Without notes.
    pub fn new() -> Self {
        Self {
            flights: Notes::new(),
            connections: Notes::new(),
        }
    }
}

impl<N> Default for Trail<N> {
    fn default() -> Self {
        Self::new()
    }
}

/// Results of tracking in the order in which they were found, each beside the random numbers that come after it.
#[derive(Debug)]
pub(super) struct Notes<T> {
    notes: ArrayVec<(T, Sampler), NOTED>,
    recalled: usize,
}

impl<T> Notes<T> {
    fn new() -> Self {
        Self {
            notes: ArrayVec::new(),
            recalled: 0,
        }
    }
}

impl<T: Copy> Notes<T> {
    /// Notes a result, as long as there is room.
    #[inline]
    pub(super) fn note(&mut self, result: T, sampler: &Sampler) {
        if !self.notes.is_full() {
            self.notes.push((result, *sampler));
        }
    }

    /// The next result, and the sampler as it was after it; None beyond what is noted.
    #[inline]
    pub(super) fn recall(&mut self, sampler: &mut Sampler) -> Option<T> {
        let (result, after) = self.notes.get(self.recalled)?;
        self.recalled += 1;
        *sampler = *after;
        Some(*result)
    }
}
