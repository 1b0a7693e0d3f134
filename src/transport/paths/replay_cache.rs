//! What the first walk of an adjoint notes of its tracking, so that the second need not track again what the first did.
//!
//! A replay makes the same flights and the same connections from the same random numbers. The first few of a path,
//! whose number does not grow with its length, are taken from these notes instead; a longer path tracks the rest anew,
//! to the same bits.

use arrayvec::ArrayVec;

use super::tracking::Flown;
use crate::transport::rays::sampler::Sampler;

/// Flights, and connections, that are noted of a path.
pub const CACHED: usize = 32;

/// The notes of one path.
#[derive(Debug)]
pub struct ReplayCache<N> {
    /// Flights that a replay can take over as they are.
    pub(super) flights: Cached<Flown<N>>,
    /// Transmittances of connections; None where something opaque is in the way.
    pub(super) connections: Cached<Option<[N; 3]>>,
}

impl<N> ReplayCache<N> {
    /// Without cached.
    pub fn new() -> Self {
        Self {
            flights: Cached::new(),
            connections: Cached::new(),
        }
    }
}

impl<N> Default for ReplayCache<N> {
    fn default() -> Self {
        Self::new()
    }
}

/// Results of tracking in the order in which they were found, each beside the random numbers that come after it.
#[derive(Debug)]
pub(super) struct Cached<T> {
    cached: ArrayVec<(T, Sampler), CACHED>,
    recalled: usize,
}

impl<T> Cached<T> {
    fn new() -> Self {
        Self {
            cached: ArrayVec::new(),
            recalled: 0,
        }
    }
}

impl<T: Copy> Cached<T> {
    /// Cached a result, as long as there is room.
    #[inline]
    pub(super) fn note(&mut self, result: T, sampler: &Sampler) {
        if !self.cached.is_full() {
            self.cached.push((result, *sampler));
        }
    }

    /// The next result, and the sampler as it was after it; None beyond what is noted.
    #[inline]
    pub(super) fn recall(&mut self, sampler: &mut Sampler) -> Option<T> {
        let (result, after) = self.cached.get(self.recalled)?;
        self.recalled += 1;
        *sampler = *after;
        Some(*result)
    }
}
