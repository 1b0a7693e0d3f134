//! Several paths followed together: each walks by itself to its next flight, and the flights through a medium, or the random
//! walks inside, are made side by side.

use std::cell::RefCell;

use super::adjoint::wants_extinction;
use super::flights::{Arrival, Departure, fits_side_by_side};
use super::path_state::{Gathered, PathState};
use super::radiative::Replayed;
use super::random_walks::{Matter, Send, Walker};
use super::replay_cache::ReplayCache;
use super::reservoir::{expect_reservoir, send_reservoir};
use super::starts::Begin;
use super::tracking::{Flight, alters};
use super::vertex::Vertex;
use super::volpath::{Met, Segment, Walk};
use super::walk_notes::{Run, UNNOTED, WalkNotes, Walked};
use super::wave::block::{Block, Lanes, Lanes3, TEXTURES, Vertices};
use super::wave::shading::Lamps;
use super::wave::{Room, Wave, is_among_surfaces};
use crate::each::EachEntry;
use crate::resident::layout::{MediumRecord, TextureRecord, VolumeRecord};
use crate::transport::lookup::grid::Stencil;
use crate::transport::mode::{GATHER, PRIMAL, REPLAY};
use crate::transport::number::rgb::Rgb;
use crate::transport::rays::camera::Ray;
use crate::transport::rays::sampler::Streams;
use crate::transport::scene::batch::images::Texels;
use crate::transport::scene::batch::{Hits, Rays, Seen, SkyMap};
use crate::transport::scene::phase::phase_is_wanted;
use crate::transport::scene::records::{Fields, NoSink, SceneView, Sink};

/// Up to this many flights are made one by one, more in vectors.
const FEW: usize = 3;

/// How many reservoirs ahead the memory for a point's derivatives is prefetched.
const AHEAD: usize = 4;

/// Initial capacity in paths; more are no error.
const PATHS: usize = 1024;

/// The vectorised steps of paths that are followed together, compiled for the processor at hand.
pub trait Pilot {
    /// Whether flights side by side are faster than one by one on this processor.
    fn is_wide(&self) -> bool;

    /// Finds what the first `count` rays meet, as `batch::nearest_together` does.
    fn look(&self, scene: &SceneView, rays: &Rays, count: usize, hits: &mut Hits);

    /// Finds which of the first `count` rays are blocked, as `batch::blocked_together` does.
    fn cast(&self, scene: &SceneView, rays: &Rays, count: usize, blocked: &mut Vec<u32>);

    /// Finds which of the first `count` rays meet one of these shapes, as `batch::meeting_together` does.
    fn meet(&self, scene: &SceneView, shapes: &[u32], rays: &Rays, count: usize, meeting: &mut Vec<u32>);

    /// Looks up an environment map's radiance and pdf in these directions, as [`SkyMap::look_up_all`] does.
    fn look_up(&self, scene: &SceneView, map: &SkyMap, directions: &[Lanes3], pdfs: bool, seen: &mut Vec<Seen>);

    /// Looks up an image whose values are `data`, as `batch::image_together` does.
    fn image(&self, record: &TextureRecord, data: &[f32], uv: &[Lanes<f32>; 2]) -> Lanes3;

    /// Finds the texels of an image, as `batch::texels_together` does.
    fn texels(&self, record: &TextureRecord, uv: &[Lanes<f32>; 2]) -> Texels;

    /// Prepares a block, as `wave::shading::prepare` does.
    fn prepare(&self, scene: &SceneView, lamps: &Lamps, block: &mut Block);

    /// Shades a block, as `wave::shading::shade` does.
    fn shade(&self, scene: &SceneView, lamps: &Lamps, mode: u8, block: &mut Block);

    /// The derivatives by the textures of a block, as `wave::shading::slopes` does.
    fn slopes(&self, block: &Vertices, wo: &Lanes3, d: &Lanes3, indices: bool, slopes: &mut [Lanes3; TEXTURES]);

    /// Follows the walkers until they end or fly out, as `random_walks::walk_side_by_side` does.
    fn walk(&self, mode: u8, matter: &Matter, walkers: &mut [Walker], notes: &mut WalkNotes, send: &mut Send);

    /// Sends the derivatives of noted collisions, as `walk_notes::send_noted` does.
    fn send_noted(&self, matter: &Matter, run: Run, send: &mut Send);

    /// Makes flights through a medium, as `flights::fly_side_by_side` does; `values` are those of its extinction and albedo.
    fn fly(
        &self,
        scene: &SceneView,
        medium: u32,
        values: [&[f32]; 2],
        departures: &[Departure],
        arrivals: &mut [Arrival],
    );
}

/// Follows paths until they end, each from its vertex or, without one, with a ray. Random walks inside medium i are made side
/// by side if `matters` has an entry i that is not None; what they leave for a replay is in `notes`.
pub(super) fn run_together<F: Fields<f32>, S: Sink<f32>, P: Pilot, const MODE: u8>(
    pilot: &P,
    walks: &mut [Walk<f32, F, S, Replayed>],
    matters: &[Option<Matter>],
    notes: &mut WalkNotes,
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
    let mut flying = Vec::new();
    let mut flights = Flights::default();
    // Paths that have been scattered inside a medium, and where.
    let mut inside: Vec<(usize, [f32; 3])> = Vec::new();
    let mut walkers = Vec::new();
    loop {
        while let Some(&first) = waiting.first() {
            // Paths that wait to fly through the same medium as the first one fly together.
            let number = walks[first].path.medium;
            let matter = matters.get(number as usize).and_then(Option::as_ref);
            flying.clear();
            waiting.retain(|&i| {
                let joins = walks[i].path.medium == number;
                if joins {
                    flying.push(i);
                }
                !joins
            });
            let together = flights.make::<F, S, P, MODE>(pilot, walks, &segments, &flying);
            for (k, i) in flying.drain(..).enumerate() {
                let (walk, segment) = (&mut walks[i], &mut segments[i]);
                let flight = match together {
                    true => walk.take_arrival::<MODE>(&flights.arrivals[k]),
                    false => walk.fly::<MODE>(segment.far),
                };
                match walk.arrive::<MODE>(segment, &flight) {
                    Met::Scatterer(Vertex::Medium { p, .. }) if matter.is_some_and(|matter| matter.holds(p)) => {
                        match walk.recall_walk::<MODE>(notes) {
                            None => inside.push((i, p)),
                            Some(true) => {}
                            Some(false) if walk.run_to_flight::<MODE>(Met::Boundary, segment) => waiting.push(i),
                            Some(false) => {}
                        }
                    }
                    met => {
                        if walk.run_to_flight::<MODE>(met, segment) {
                            waiting.push(i);
                        }
                    }
                }
            }
        }
        let Some(&(first, _)) = inside.first() else {
            return;
        };
        // All paths that are inside the same medium as the first.
        let number = walks[first].path.medium;
        walkers.clear();
        let order: Vec<usize> = inside
            .extract_if(.., |(i, _)| walks[*i].path.medium == number)
            .map(|(i, p)| {
                let mut walker = walks[i].walker(p);
                let cache = walks[i].adjoint.cache.as_ref();
                // Without room for its end in the cache a walk leaves no notes, and the replay makes it again.
                if MODE == GATHER && cache.is_some_and(|cache| cache.walks.has_room()) {
                    walker.number = notes.begin();
                }
                walkers.push(walker);
                i
            })
            .collect();
        if let Some(Some(matter)) = matters.get(number as usize) {
            let volume = matter.albedo_volume();
            pilot.walk(MODE, matter, &mut walkers, notes, &mut |k, at, d| {
                walks[order[k]].adjoint.sink.volume(volume, at, d, 3);
            });
            if MODE == GATHER {
                notes.end_run(number);
            }
        }
        for (i, walker) in order.into_iter().zip(&walkers) {
            let walk = &mut walks[i];
            (walk.path, walk.sampler) = (walker.path, walker.sampler);
            if MODE == GATHER
                && let Some(cache) = &mut walk.adjoint.cache
            {
                cache.walks.store(Walked::of(walker));
            }
            if !walker.ended && walk.run_to_flight::<MODE>(Met::Boundary, &mut segments[i]) {
                waiting.push(i);
            }
        }
    }
}

/// Flights that are made side by side, in memory that is used again.
#[derive(Default)]
struct Flights {
    departures: Vec<Departure>,
    arrivals: Vec<Arrival>,
}

impl Flights {
    /// Makes the flights that these walks are about to make through one medium. False if they are better made one by one:
    /// because they are few, the medium does not fit, or the first walk has kept them for the replay.
    fn make<F: Fields<f32>, S: Sink<f32>, P: Pilot, const MODE: u8>(
        &mut self,
        pilot: &P,
        walks: &[Walk<f32, F, S, Replayed>],
        segments: &[Segment],
        flying: &[usize],
    ) -> bool {
        let Walk {
            scene, fields, path, ..
        } = &walks[flying[0]];
        let medium = &scene.media[path.medium as usize];
        let worth = pilot.is_wide() && flying.len() > FEW && MODE != REPLAY;
        if !worth || !fits_side_by_side(scene, medium) || alters(scene, medium) {
            return false;
        }
        let Self { departures, arrivals } = self;
        departures.clear();
        for &i in flying {
            departures.push(walks[i].departure(segments[i].far));
        }
        // Each flight overwrites the arrival at its place, whatever was there.
        if arrivals.len() < departures.len() {
            arrivals.resize(departures.len(), Arrival::unknown(&departures[0]));
        }
        let values = [medium.sigma_t, medium.albedo].each(|v| fields.integrand(scene.volumes[v as usize].slot));
        pilot.fly(
            scene,
            path.medium,
            values,
            departures,
            &mut arrivals[..departures.len()],
        );
        true
    }
}

/// The media inside of which random walks are made side by side.
#[inline]
fn matters<'a, F: Fields<f32>, P: Pilot>(
    scene: &'a SceneView<'a>,
    fields: &'a F,
    pilot: &P,
) -> Vec<Option<Matter<'a>>> {
    match pilot.is_wide() {
        true => (0..scene.interiors.len())
            .map(|i| Matter::of(scene, fields, i))
            .collect(),
        false => Vec::new(),
    }
}

/// [`gather`](super::volpath::gather) of the rays that `feed` begins. Calls `done` in order with the value that `feed` gave for
/// each, the weight of its radiance in its pixel, what the path has gathered, and whether it is straight
/// ([`PathState::straight`]). `room` serves one pass.
pub fn gather_together<F: Fields<f32>, P: Pilot, T: Copy>(
    scene: &SceneView,
    fields: &F,
    pilot: &P,
    feed: impl FnOnce(&mut Begin<T>),
    room: &mut Room,
    mut done: impl FnMut(T, f32, &Gathered<f32>, bool),
) {
    let (mut with, mut weights) = (Vec::with_capacity(PATHS), Vec::with_capacity(PATHS));
    if is_among_surfaces(scene) {
        let mut wave = Wave::new(scene, fields, NoSink, room);
        feed(&mut |own, starts| {
            with.extend_from_slice(own);
            weights.extend_from_slice(&starts.rays.weights[..starts.count]);
            wave.begin(starts);
        });
        wave.run::<PRIMAL>(pilot, u32::MAX);
        for (i, own) in with.iter().enumerate() {
            done(*own, weights[i], &room.paths.gathered[i], room.paths.straight[i]);
        }
        return;
    }
    let mut walks = Vec::new();
    feed(&mut |own, starts| {
        with.extend_from_slice(own);
        weights.extend_from_slice(&starts.rays.weights[..starts.count]);
        for lane in 0..starts.count {
            let mut sampler = starts.streams(lane).walk();
            let path = PathState::new(scene, &starts.ray(lane), starts.medium, &mut sampler);
            walks.push(Walk::looking(scene, fields, path, sampler));
        }
    });
    let mut notes = WalkNotes::default();
    run_together::<F, _, P, PRIMAL>(pilot, &mut walks, &matters(scene, fields, pilot), &mut notes, |_| None);
    for (i, walk) in walks.iter().enumerate() {
        done(with[i], weights[i], &walk.path.gathered, walk.path.straight);
    }
}

/// What the adjoint of a ray starts from: the ray, its medium and its random numbers, and the derivative by its radiance.
type AdjointBeginning = ((Ray, u32, Streams), [f32; 3]);

/// [`backpropagate`](super::volpath::backpropagate) of the rays that `feed` begins, each with the derivative by its weighted
/// radiance; `caches`, `notes` and `room` are memory to be used again, `room` within one pass. Calls `done` with what each path
/// has gathered, and what its replay has left of it.
#[allow(
    clippy::too_many_arguments,
    reason = "they are what the adjoints of several paths consist of"
)]
pub fn backpropagate_together<F: Fields<f32>, S: Sink<f32>, P: Pilot>(
    scene: &SceneView,
    fields: &F,
    pilot: &P,
    feed: impl FnOnce(&mut Begin<[f32; 3]>),
    caches: &mut Vec<ReplayCache<f32>>,
    room: &mut Room,
    notes: &mut WalkNotes,
    sink: &mut S,
    mut done: impl FnMut(&Gathered<f32>, &Gathered<f32>),
) {
    if is_among_surfaces(scene) {
        let mut wave = Wave::new(scene, fields, sink, room);
        feed(&mut |d_pixel, starts| wave.begin_adjoint(starts, d_pixel));
        wave.backpropagate(pilot);
        for (first, left) in room.paths.replayed() {
            done(first, left);
        }
        return;
    }
    let mut rays = Vec::new();
    feed(&mut |d_pixel, starts| {
        for (lane, d) in starts.by_radiance(d_pixel).enumerate() {
            rays.push(((starts.ray(lane), starts.medium, starts.streams(lane)), d));
        }
    });
    caches.resize_with(rays.len().max(caches.len()), ReplayCache::new);
    walk_adjoints(scene, fields, pilot, &rays, caches, notes, sink, done);
}

/// [`backpropagate_together`] where paths are not followed in waves; there are at least as many `caches` as rays.
#[allow(
    clippy::too_many_arguments,
    reason = "they are what the adjoints of several paths consist of"
)]
fn walk_adjoints<F: Fields<f32>, S: Sink<f32>, P: Pilot>(
    scene: &SceneView,
    fields: &F,
    pilot: &P,
    rays: &[AdjointBeginning],
    caches: &mut [ReplayCache<f32>],
    notes: &mut WalkNotes,
    sink: &mut S,
    done: impl FnMut(&Gathered<f32>, &Gathered<f32>),
) {
    // The first walks.
    let mut walks = Vec::with_capacity(rays.len());
    for (((ray, medium, streams), d_radiance), cache) in rays.iter().zip(caches.iter_mut()) {
        let mut sampler = streams.walk();
        cache.clear();
        cache.begin_rays(scene, streams.adjoint());
        let path = PathState::new(scene, ray, *medium, &mut sampler);
        let mut walk = Walk::looking(scene, fields, path, sampler);
        (walk.adjoint.d_radiance, walk.adjoint.cache) = (Rgb(*d_radiance), Some(cache));
        walks.push(walk);
    }
    // Random walks that are made side by side send derivatives by the albedo alone.
    let mut matters = matters(scene, fields, pilot);
    let albedo_alone =
        !wants_extinction(scene, sink) && scene.media.iter().all(|m| !phase_is_wanted(scene, m.phase, sink));
    if !albedo_alone {
        matters.clear();
    }
    notes.clear();
    run_together::<F, _, P, GATHER>(pilot, &mut walks, &matters, notes, |_| None);
    let mut firsts = Vec::with_capacity(walks.len());
    for walk in &walks {
        firsts.push(walk.path);
    }
    drop(walks);
    match matters.iter().any(Option::is_some) {
        true => replay_together(scene, fields, pilot, &matters, rays, &firsts, caches, notes, sink, done),
        false => replay_one_by_one(scene, fields, pilot, rays, &firsts, caches, sink, done),
    }
}

/// The replays of [`backpropagate_together`], where no derivative by an extinction is sought, so that no reservoir holds a
/// point.
#[allow(
    clippy::too_many_arguments,
    reason = "they are what the replays of several paths consist of"
)]
fn replay_together<F: Fields<f32>, S: Sink<f32>, P: Pilot>(
    scene: &SceneView,
    fields: &F,
    pilot: &P,
    matters: &[Option<Matter>],
    rays: &[AdjointBeginning],
    firsts: &[PathState<f32>],
    caches: &mut [ReplayCache<f32>],
    notes: &mut WalkNotes,
    sink: &mut S,
    mut done: impl FnMut(&Gathered<f32>, &Gathered<f32>),
) {
    let shared = RefCell::new(sink);
    let mut sinks: Vec<_> = rays.iter().map(|_| Shared(&shared)).collect();
    let mut walks = Vec::with_capacity(rays.len());
    let all = rays.iter().zip(firsts).zip(caches.iter_mut().zip(&mut sinks));
    for ((&((ray, medium, streams), d_radiance), first), (cache, sink)) in all {
        let [sampler, extra] = [streams.walk(), streams.adjoint()];
        walks.push(Walk::replaying(
            scene, fields, &ray, medium, sampler, extra, first, cache, d_radiance, sink,
        ));
    }
    run_together::<F, _, P, REPLAY>(pilot, &mut walks, matters, notes, |_| None);
    for (first, walk) in firsts.iter().zip(&walks) {
        done(&first.gathered, &walk.path.gathered);
    }
    drop(walks);
    let mut sink = shared.borrow_mut();
    for (medium, run) in notes.runs() {
        if let Some(Some(matter)) = matters.get(medium as usize) {
            let volume = matter.albedo_volume();
            pilot.send_noted(matter, run, &mut |_, at, d| sink.volume(volume, at, d, 3));
        }
    }
}

/// A sink that several walks send to.
struct Shared<'a, 's, S>(&'a RefCell<&'s mut S>);

impl<S: Sink<f32>> Sink<f32> for Shared<'_, '_, S> {
    #[inline(always)]
    fn wants(&self, slot: u32) -> bool {
        self.0.borrow().wants(slot)
    }
    #[inline(always)]
    fn expect(&self, volume: &VolumeRecord, at: &Stencil) {
        self.0.borrow().expect(volume, at);
    }
    #[inline(always)]
    fn volume(&mut self, volume: &VolumeRecord, at: &Stencil, d: [f32; 3], channels: u32) {
        self.0.borrow_mut().volume(volume, at, d, channels);
    }
    #[inline(always)]
    fn entries(&mut self, slot: u32, first: u32, d: [f32; 3], channels: u32) {
        self.0.borrow_mut().entries(slot, first, d, channels);
    }
    #[inline(always)]
    fn vertex_normal(&mut self, mesh: u32, vertex: u32, d: [f32; 3]) -> bool {
        self.0.borrow_mut().vertex_normal(mesh, vertex, d)
    }
    #[inline(always)]
    fn background(&mut self, d: [f32; 3], d_radiance: [f32; 3]) {
        self.0.borrow_mut().background(d, d_radiance);
    }
}

/// The replays of [`backpropagate_together`], each of which may leave a point in its reservoir, and the paths that estimate the
/// in-scattered radiance at these points.
#[allow(
    clippy::too_many_arguments,
    reason = "they are what the replays of several paths consist of"
)]
fn replay_one_by_one<F: Fields<f32>, S: Sink<f32>, P: Pilot>(
    scene: &SceneView,
    fields: &F,
    pilot: &P,
    rays: &[AdjointBeginning],
    firsts: &[PathState<f32>],
    caches: &mut [ReplayCache<f32>],
    sink: &mut S,
    mut done: impl FnMut(&Gathered<f32>, &Gathered<f32>),
) {
    let count = rays.len();
    let (mut followers, mut vertices, mut reservoirs) = (
        Vec::with_capacity(count),
        Vec::with_capacity(count),
        Vec::with_capacity(count),
    );
    let mut caches = caches.iter_mut().peekable();
    for (&((ray, medium, streams), d_radiance), first) in rays.iter().zip(firsts) {
        let [sampler, extra] = [streams.walk(), streams.adjoint()];
        let cache = caches.next().expect("a cache for each ray");
        if let Some(next) = caches.peek() {
            next.expect_flights(scene, sink);
        }
        let mut walk = Walk::replaying(
            scene, fields, &ray, medium, sampler, extra, first, cache, d_radiance, sink,
        );
        walk.run::<REPLAY>(None);
        done(&first.gathered, &walk.path.gathered);
        match walk.follow_reservoir() {
            None => send_reservoir(scene, fields, &walk.adjoint.reservoir, Rgb::zero(), sink),
            Some((follower, vertex)) => {
                reservoirs.push(walk.adjoint.reservoir);
                followers.push(follower);
                vertices.push(vertex);
            }
        }
    }
    // The paths from the reservoirs' points.
    run_together::<F, _, P, PRIMAL>(pilot, &mut followers, &[], &mut WalkNotes::default(), |i| {
        Some(vertices[i])
    });
    for (i, (follower, reservoir)) in followers.iter().zip(&reservoirs).enumerate() {
        if let Some(next) = reservoirs.get(i + AHEAD) {
            expect_reservoir(scene, fields, next, sink);
        }
        send_reservoir(scene, fields, reservoir, follower.path.gathered.radiance, sink);
    }
}

impl<F: Fields<f32>, S: Sink<f32>> Walk<'_, f32, F, S, Replayed> {
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

    /// Takes over the end of a flight that was made side by side with others.
    #[inline(always)]
    fn take_arrival<const MODE: u8>(&mut self, arrival: &Arrival) -> Flight<f32> {
        let medium: &MediumRecord = &self.scene.media[self.path.medium as usize];
        self.sampler = arrival.sampler;
        self.land::<MODE>(medium, &arrival.flown)
    }

    /// The path, about to be scattered at `p` inside its medium.
    #[inline]
    fn walker(&self, p: [f32; 3]) -> Walker {
        Walker {
            p,
            path: self.path,
            sampler: self.sampler,
            d_radiance: self.adjoint.d_radiance,
            number: UNNOTED,
            ended: false,
        }
    }

    /// In a replay, skips a noted random walk of the first path: takes over the state at its end and returns whether the path
    /// ended there. None if the walk has to be made.
    #[inline]
    fn recall_walk<const MODE: u8>(&mut self, notes: &mut WalkNotes) -> Option<bool> {
        if MODE != REPLAY {
            return None;
        }
        let walked = self.adjoint.cache.as_mut()?.walks.recall()?;
        if walked.number == UNNOTED {
            return None;
        }
        notes.expect(walked.number, &self.path, self.adjoint.d_radiance);
        let left = self.path;
        self.path = walked.path;
        self.path.expect(&left);
        self.path.gathered.count = left.gathered.count;
        self.sampler = walked.sampler;
        Some(walked.ended)
    }
}
