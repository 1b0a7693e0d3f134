//! Several paths followed together: each walks by itself to its next flight, and the flights through a medium are made
//! side by side.

use super::flights::{Arrival, Departure, fits_side_by_side};
use super::path_state::PathState;
use super::radiative::Replayed;
use super::replay_cache::ReplayCache;
use super::reservoir::{expect_reservoir, send_reservoir};
use super::tracking::{Flight, alters};
use super::vertex::Vertex;
use super::volpath::{Met, Segment, Walk};
use crate::resident::layout::MediumRecord;
use crate::transport::mode::{GATHER, PRIMAL, REPLAY};
use crate::transport::number::rgb::Rgb;
use crate::transport::rays::camera::Ray;
use crate::transport::rays::sampler::Sampler;
use crate::transport::scene::records::{Fields, NoSink, SceneView, Sink};

/// Flights that are worth a vector; fewer are made one by one.
const FEW: usize = 3;

/// Points whose sums are brought near before they are added to.
const AHEAD: usize = 4;

/// A walk that gathers radiance.
pub(super) type Looking<'a, F> = Walk<'a, f32, F, NoSink, Replayed>;

/// Makes flights through a medium with these values of its extinction and albedo, as `flights::fly_side_by_side` does, compiled
/// for the processor at hand.
pub trait Pilot {
    /// Whether flights side by side are faster than one by one on this processor.
    fn is_wide(&self) -> bool;

    /// Fills the arrivals of the departures.
    fn fly(
        &self,
        scene: &SceneView,
        medium: u32,
        values: [&[f32]; 2],
        departures: &[Departure],
        arrivals: &mut [Arrival],
    );
}

/// Follows paths until they end, each from its vertex or, without one, with a ray.
pub(super) fn run_together<F: Fields<f32>, P: Pilot, const MODE: u8>(
    pilot: &P,
    walks: &mut [Looking<F>],
    begin: impl Fn(usize) -> Option<Vertex>,
) {
    let mut segments = vec![Segment::default(); walks.len()];
    let mut waiting = Vec::with_capacity(walks.len());
    for (i, walk) in walks.iter_mut().enumerate() {
        let met = walk.begin(begin(i));
        if walk.run_to_flight::<MODE>(met, &mut segments[i]) {
            waiting.push(i);
        }
    }
    let (mut departures, mut arrivals, mut flying) = (Vec::new(), Vec::new(), Vec::new());
    while let Some(&first) = waiting.first() {
        // Those that wait for the same medium as the first fly together.
        let Walk { scene, fields, .. } = walks[first];
        let number = walks[first].path.medium;
        let medium = &scene.media[number as usize];
        flying.clear();
        waiting.retain(|&i| {
            let joins = walks[i].path.medium == number;
            if joins {
                flying.push(i);
            }
            !joins
        });
        let together =
            pilot.is_wide() && flying.len() > FEW && fits_side_by_side(scene, medium) && !alters(scene, medium);
        if together {
            departures.clear();
            departures.extend(flying.iter().map(|&i| walks[i].departure(segments[i].far)));
            // Each flight overwrites the arrival at its place, whatever was there.
            if arrivals.len() < departures.len() {
                arrivals.resize(departures.len(), Arrival::unknown(&departures[0]));
            }
            let values = [medium.sigma_t, medium.albedo].map(|v| fields.integrand(scene.volumes[v as usize].slot));
            pilot.fly(scene, number, values, &departures, &mut arrivals[..departures.len()]);
        }
        for (k, i) in flying.drain(..).enumerate() {
            let (walk, segment) = (&mut walks[i], &mut segments[i]);
            let flight = match together {
                true => walk.take_arrival::<MODE>(medium, &arrivals[k]),
                false => walk.fly::<MODE>(segment.far),
            };
            let met = walk.arrive::<MODE>(segment, &flight);
            if walk.run_to_flight::<MODE>(met, segment) {
                waiting.push(i);
            }
        }
    }
}

/// A camera ray, the medium that it begins in, and the random numbers of its path.
pub type Beginning = (Ray, u32, Sampler);

/// [`gather`](super::volpath::gather) of several rays; calls `done` with the path of each, in order.
pub fn gather_together<F: Fields<f32>, P: Pilot>(
    scene: &SceneView,
    fields: &F,
    pilot: &P,
    rays: impl Iterator<Item = Beginning>,
    done: impl FnMut(PathState<f32>),
) {
    let start = |(ray, medium, mut sampler): Beginning| {
        let path = PathState::new(scene, &ray, medium, &mut sampler);
        Walk::looking(scene, fields, path, sampler)
    };
    let mut walks: Vec<_> = rays.map(start).collect();
    run_together::<F, P, PRIMAL>(pilot, &mut walks, |_| None);
    walks.into_iter().map(|walk| walk.path).for_each(done);
}

/// What the adjoint of a ray starts from: the ray, the stream of the adjoint's own draws, and the derivative by the
/// ray's radiance.
pub type AdjointBeginning = (Beginning, Sampler, [f32; 3]);

/// [`backpropagate`](super::volpath::backpropagate) of several rays; `caches` are as many. Calls `done` with both
/// states of each path.
pub fn backpropagate_together<F: Fields<f32>, S: Sink<f32>, P: Pilot>(
    scene: &SceneView,
    fields: &F,
    pilot: &P,
    rays: &[AdjointBeginning],
    caches: &mut [ReplayCache<f32>],
    sink: &mut S,
    mut done: impl FnMut(&PathState<f32>, &PathState<f32>),
) {
    // The first walks.
    let mut walks = Vec::with_capacity(rays.len());
    for (((ray, medium, sampler), ..), cache) in rays.iter().zip(caches.iter_mut()) {
        let mut sampler = *sampler;
        cache.clear();
        let path = PathState::new(scene, ray, *medium, &mut sampler);
        let mut walk = Walk::looking(scene, fields, path, sampler);
        walk.adjoint.cache = Some(cache);
        walks.push(walk);
    }
    run_together::<F, P, GATHER>(pilot, &mut walks, |_| None);
    let firsts: Vec<_> = walks.into_iter().map(|walk| walk.path).collect();
    // The replays, each of which leaves a point at which radiance is wanted.
    let (mut followers, mut vertices, mut reservoirs) = (Vec::new(), Vec::new(), Vec::new());
    let mut caches = caches.iter_mut().peekable();
    for (&((ray, medium, sampler), extra, d_radiance), first) in rays.iter().zip(&firsts) {
        let cache = caches.next().expect("a cache for each ray");
        if let Some(next) = caches.peek() {
            next.expect_flights(scene, sink);
        }
        let mut walk = Walk::replaying(
            scene, fields, &ray, medium, sampler, extra, first, cache, d_radiance, sink,
        );
        walk.run::<REPLAY>(None);
        done(first, &walk.path);
        match walk.follow_reservoir() {
            None => send_reservoir(scene, fields, &walk.adjoint.reservoir, Rgb::zero(), sink),
            Some((follower, vertex)) => {
                reservoirs.push(walk.adjoint.reservoir);
                followers.push(follower);
                vertices.push(vertex);
            }
        }
    }
    // The paths from these points.
    run_together::<F, P, PRIMAL>(pilot, &mut followers, |i| Some(vertices[i]));
    for (i, (follower, reservoir)) in followers.iter().zip(&reservoirs).enumerate() {
        if let Some(next) = reservoirs.get(i + AHEAD) {
            expect_reservoir(scene, fields, next, sink);
        }
        send_reservoir(scene, fields, reservoir, follower.path.radiance, sink);
    }
}

impl<F: Fields<f32>> Looking<'_, F> {
    /// Goes on until the path is about to fly along `segment` through a medium; false if it ends before.
    #[inline]
    fn run_to_flight<const MODE: u8>(&mut self, mut met: Met, segment: &mut Segment) -> bool {
        loop {
            let Some(next) = self.approach::<MODE>(&met) else {
                return false;
            };
            *segment = next;
            if segment.medium {
                return true;
            }
            met = self.arrive::<MODE>(segment, &Flight::Passed);
        }
    }

    /// The flight that the path is about to make.
    #[inline(always)]
    fn departure(&self, far: f32) -> Departure {
        Departure {
            origin: self.path.origin,
            direction: self.path.direction,
            far,
            sampler: self.sampler,
        }
    }

    /// Takes a flight over.
    #[inline(always)]
    fn take_arrival<const MODE: u8>(&mut self, medium: &MediumRecord, arrival: &Arrival) -> Flight<f32> {
        self.sampler = arrival.sampler;
        self.land::<MODE>(medium, &arrival.flown)
    }
}
