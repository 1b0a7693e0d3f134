//! Flights, shadow rays, surfaces, and the lights and directions drawn at surfaces in an adjoint's first walk, kept so that the
//! replay need not find them again.
//!
//! A replay makes the same flights and shadow rays from the same random numbers. The cache holds a fixed number of
//! each per path, whatever its length; the replay finds the rest again, with bit-identical results.

use super::jacobian::RayJacobian;
use super::next_event::Arrived;
use super::surface::{Lighting, Turn};
use super::tracking::{Flight, Flown};
use super::walk_notes::Walked;
use crate::resident::layout::medium as medium_flag;
use crate::transport::mode::{GATHER, REPLAY};
use crate::transport::number::Number;
use crate::transport::number::rgb::Rgb;
use crate::transport::rays::sampler::Sampler;
use crate::transport::scene::records::{SceneView, Sink};
use crate::transport::scene::shape::{Hit, Nearest};

/// Capacity of a path's cache: this many flights, and as many of each other kind of result but random walks.
pub const CACHED: usize = 32;

/// Capacity for random walks, whose ends are large; few paths have more.
const WALKS: usize = 8;

/// The cache of one path.
#[derive(Debug)]
pub struct ReplayCache<N> {
    /// Flights without side effects on the path, and the sampler's state after each.
    pub(super) flights: Cached<(Flown<N>, Sampler)>,
    /// What arrives along shadow rays, None where occluded, and the sampler's state after each.
    pub(super) shadow_rays: Cached<(Option<Arrived<N>>, Sampler)>,
    /// Lights that were drawn at surfaces, and directions that were sampled there, each with the sampler's state after it.
    pub(super) lights: Cached<(Option<Lighting<N>>, Sampler)>,
    pub(super) turns: Cached<(Option<Turn<N>>, Sampler)>,
    /// Nearest surfaces of segments, and what was found there.
    pub(super) nearest: Cached<Option<Nearest>>,
    pub(super) hits: Cached<Hit>,
    /// The ends of random walks that were made side by side with others (`random_walks.rs`).
    pub(super) walks: Cached<Walked>,
    /// The radiance of an environment map where a path escapes, and its weight against next-event estimation.
    pub(super) skies: Cached<(Rgb<N>, f32)>,
    /// State for derivatives that are propagated by inverted Jacobians.
    pub(super) rays: Option<Box<RayJacobian<N>>>,
}

impl<N> ReplayCache<N> {
    /// An empty cache.
    pub fn new() -> Self {
        Self {
            flights: Cached::new(),
            shadow_rays: Cached::new(),
            lights: Cached::new(),
            turns: Cached::new(),
            nearest: Cached::new(),
            hits: Cached::new(),
            walks: Cached::of(WALKS),
            skies: Cached::new(),
            rays: None,
        }
    }

    /// Empties the cache.
    #[inline]
    pub fn clear(&mut self) {
        self.flights.clear();
        self.shadow_rays.clear();
        self.lights.clear();
        self.turns.clear();
        self.nearest.clear();
        self.hits.clear();
        self.walks.clear();
        self.skies.clear();
    }
}

impl<N: Number> ReplayCache<N> {
    /// Announces the derivatives that a replay will send at the collisions of its flights, so that the sink can prefetch.
    pub(super) fn expect_flights<S: Sink<N>>(&self, scene: &SceneView, sink: &S) {
        for (flown, _) in &self.flights.results {
            if let Flight::Collided { sigma, .. } = &flown.flight {
                let medium = &scene.media[flown.medium as usize];
                sink.expect(&scene.volumes[medium.sigma_t as usize], &sigma.at);
                if medium.has(medium_flag::ALIGNED) {
                    sink.expect(&scene.volumes[medium.albedo as usize], &sigma.at);
                }
            }
        }
    }
}

impl<N> Default for ReplayCache<N> {
    #[inline]
    fn default() -> Self {
        Self::new()
    }
}

/// Results in the order of the walk. Memory grows to the longest path so far and is not reserved for the capacity, so that the
/// caches of all paths that are followed together stay in the processor's cache.
#[derive(Debug)]
pub(super) struct Cached<T> {
    results: Vec<T>,
    recalled: usize,
    capacity: usize,
}

impl<T> Cached<T> {
    fn new() -> Self {
        Self::of(CACHED)
    }

    fn of(capacity: usize) -> Self {
        Self {
            results: Vec::new(),
            recalled: 0,
            capacity,
        }
    }

    #[inline]
    fn clear(&mut self) {
        self.results.clear();
        self.recalled = 0;
    }
}

impl<T: Copy> Cached<T> {
    /// Whether a replay finds another result here.
    #[inline(always)]
    pub(super) fn has_next(&self) -> bool {
        self.recalled < self.results.len()
    }

    /// Whether another result will be kept.
    #[inline(always)]
    pub(super) fn has_room(&self) -> bool {
        self.results.len() < self.capacity
    }

    /// Appends a result while there is room.
    #[inline]
    pub(super) fn store(&mut self, result: T) {
        if self.has_room() {
            self.results.push(result);
        }
    }

    /// The next result; None beyond the last stored.
    #[inline]
    pub(super) fn recall(&mut self) -> Option<T> {
        let result = self.results.get(self.recalled)?;
        self.recalled += 1;
        Some(*result)
    }

    /// What `look` finds, stored by a first walk and recalled by a replay.
    #[inline(always)]
    pub(super) fn recall_or<const MODE: u8>(&mut self, look: impl FnOnce() -> T) -> T {
        if MODE == REPLAY
            && let Some(found) = self.recall()
        {
            return found;
        }
        let found = look();
        if MODE == GATHER {
            self.store(found);
        }
        found
    }
}

impl<T: Copy> Cached<(T, Sampler)> {
    /// [`Self::recall`], which sets the sampler to its state after the result.
    #[inline]
    pub(super) fn recall_with(&mut self, sampler: &mut Sampler) -> Option<T> {
        let (result, after) = self.recall()?;
        *sampler = after;
        Some(result)
    }

    /// What `draw` makes of random numbers, stored by a first walk and recalled by a replay.
    #[inline(always)]
    pub(super) fn redraw_or<const MODE: u8>(
        &mut self,
        sampler: &mut Sampler,
        draw: impl FnOnce(&mut Sampler) -> T,
    ) -> T {
        if MODE == REPLAY
            && let Some(found) = self.recall_with(sampler)
        {
            return found;
        }
        let found = draw(sampler);
        if MODE == GATHER {
            self.store((found, *sampler));
        }
        found
    }
}
