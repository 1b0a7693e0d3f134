//! What the first walk of an adjoint keeps of its tracking, so that the second need not track again what the first did.
//!
//! A replay makes the same flights and the same shadow rays from the same random numbers. The first few of a path, whose
//! number does not grow with its length, are taken from this cache instead; a longer path tracks the rest anew, to the
//! same bits.

use arrayvec::ArrayVec;

use super::tracking::Flown;
use crate::transport::number::rgb::Rgb;
use crate::transport::rays::sampler::Sampler;

/// Flights, and shadow rays, that are kept of a path.
pub const CACHED: usize = 32;

/// The cache of one path.
#[derive(Debug)]
pub struct ReplayCache<N> {
    /// Flights that a replay can take over as they are.
    pub(super) flights: Cached<Flown<N>>,
    /// Transmittances of shadow rays; None where something opaque is in the way.
    pub(super) shadow_rays: Cached<Option<Rgb<N>>>,
}

impl<N> ReplayCache<N> {
    /// An empty cache.
    pub fn new() -> Self {
        Self {
            flights: Cached::new(),
            shadow_rays: Cached::new(),
        }
    }
}

impl<N> Default for ReplayCache<N> {
    fn default() -> Self {
        Self::new()
    }
}

/// Results in the order in which they were found, each beside the random numbers that come after it.
#[derive(Debug)]
pub(super) struct Cached<T> {
    results: ArrayVec<(T, Sampler), CACHED>,
    recalled: usize,
}

impl<T> Cached<T> {
    fn new() -> Self {
        Self {
            results: ArrayVec::new(),
            recalled: 0,
        }
    }
}

impl<T: Copy> Cached<T> {
    /// Keeps a result, as long as there is room.
    #[inline]
    pub(super) fn store(&mut self, result: T, sampler: &Sampler) {
        if !self.results.is_full() {
            self.results.push((result, *sampler));
        }
    }

    /// The next result, and the sampler as it was after it; None beyond what was kept.
    #[inline]
    pub(super) fn recall(&mut self, sampler: &mut Sampler) -> Option<T> {
        let (result, after) = self.results.get(self.recalled)?;
        self.recalled += 1;
        *sampler = *after;
        Some(*result)
    }
}
