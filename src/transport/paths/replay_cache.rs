//! Flights and shadow rays of an adjoint's first walk, kept so that the replay need not track them again.
//!
//! A replay makes the same flights and shadow rays from the same random numbers. The cache holds a fixed number of
//! each per path, whatever its length; the replay tracks the rest again, with bit-identical results.

use arrayvec::ArrayVec;

use super::next_event::Through;
use super::tracking::Flown;
use crate::transport::rays::sampler::Sampler;

/// Capacity of the cache of a path: flights, and as many shadow rays.
pub const CACHED: usize = 32;

/// The cache of one path.
#[derive(Debug)]
pub struct ReplayCache<N> {
    /// Flights without side effects on the path.
    pub(super) flights: Cached<Flown<N>>,
    /// What gets through along shadow rays; None where occluded.
    pub(super) shadow_rays: Cached<Option<Through<N>>>,
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

/// Results in the order of the walk, each with the sampler's state after it.
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
    /// Appends a result while there is room.
    #[inline]
    pub(super) fn store(&mut self, result: T, sampler: &Sampler) {
        if !self.results.is_full() {
            self.results.push((result, *sampler));
        }
    }

    /// The next result; sets the sampler to its state after it. None beyond the last stored.
    #[inline]
    pub(super) fn recall(&mut self, sampler: &mut Sampler) -> Option<T> {
        let (result, after) = self.results.get(self.recalled)?;
        self.recalled += 1;
        *sampler = *after;
        Some(*result)
    }
}
