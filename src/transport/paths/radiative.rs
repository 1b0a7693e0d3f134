//! Radiative backpropagation: an adjoint that walks once and estimates the radiance still to come where it is needed,
//! instead of gathering it in a first walk (NimierDavid2020, sections 3.5 to 3.8 and appendix A.1).
//!
//! The walk is that of path replay. Before each flight a second path is traced ahead: the same flight, from the same
//! random numbers, then a continuation from independent ones. Its radiance estimates the radiance still to come.

use super::adjoint::Adjoint;
use super::chain::Chain;
use super::path_state::PathState;
use super::tracking::Flight;
use super::trail::Trail;
use super::vertex::Vertex;
use super::volpath::{Met, Walk};
use crate::transport::mode::{GATHER, UNIT_RADIANCE};
use crate::transport::number::Number;
use crate::transport::number::rgb::Rgb;
use crate::transport::rays::camera::Ray;
use crate::transport::rays::sampler::Sampler;
use crate::transport::scene::bsdf::local::Lobe;
use crate::transport::scene::records::{Fields, NoSink, SceneView, Sink};
use crate::transport::scene::shape::{Nearest, describe};

/// How an adjoint walk knows the radiance still to come.
pub trait Incident<N: Number>: Sized {
    /// Whether a first walk has gathered it.
    const REPLAYED: bool;

    /// Called before each flight, up to `hit` at the distance `far`.
    #[inline(always)]
    fn before_flight<F: Fields<N>, S: Sink<N>>(_walk: &mut Walk<'_, N, F, S, Self>, _hit: Option<&Nearest>, _far: f32) {
    }

    /// Called after the path has been turned at `vertex`, into a lobe of this kind.
    #[inline(always)]
    fn after_turn<F: Fields<N>, S: Sink<N>>(_walk: &mut Walk<'_, N, F, S, Self>, _vertex: &Vertex, _lobe: Lobe) {}

    /// Whether in-scattered radiance is replaced by one in all directions.
    #[inline(always)]
    fn is_unit(&self) -> bool {
        false
    }
}

/// Path replay: the radiance gathered by a first walk, minus the contributions subtracted so far.
#[derive(Debug, Clone, Copy, Default)]
pub struct Replayed;

impl<N: Number> Incident<N> for Replayed {
    const REPLAYED: bool = true;
}

/// The estimate of the radiance still to come in radiative backpropagation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ahead {
    /// Traced by an independent path.
    Traced,
    /// One at every scattering, which is biased.
    Unit,
}

/// The state of radiative backpropagation.
#[derive(Debug)]
pub(super) struct Estimated<N> {
    ahead: Ahead,
    /// Radiance that the path itself had added when the last estimate replaced the path's radiance, and that estimate.
    added: Rgb<N>,
    expected: Rgb<N>,
}

impl<N: Number> Estimated<N> {
    /// Sets the path's radiance still to come to that of the path traced ahead.
    #[inline]
    fn expect(&mut self, path: &mut PathState<N>, ahead: &PathState<N>) {
        self.added = self.added(path);
        path.expect(ahead);
        self.expected = path.gathered.radiance;
    }

    /// Radiance that the path itself has added so far.
    #[inline]
    fn added(&self, path: &PathState<N>) -> Rgb<N> {
        self.added + (self.expected - path.gathered.radiance)
    }
}

impl<N: Number> Incident<N> for Estimated<N> {
    const REPLAYED: bool = false;

    #[inline]
    fn before_flight<F: Fields<N>, S: Sink<N>>(walk: &mut Walk<'_, N, F, S, Self>, hit: Option<&Nearest>, far: f32) {
        let medium = &walk.scene.media[walk.path.medium as usize];
        let slot = |volume: u32| walk.scene.volumes[volume as usize].slot;
        let sink = &walk.adjoint.sink;
        if !sink.wants(slot(medium.sigma_t)) && !sink.wants(slot(medium.albedo)) {
            return;
        }
        let ahead = match walk.adjoint.incident.ahead {
            Ahead::Unit => fly_and_go_on::<N, F, S, UNIT_RADIANCE>(walk, hit, far),
            Ahead::Traced => fly_and_go_on::<N, F, S, GATHER>(walk, hit, far),
        };
        walk.adjoint.incident.expect(&mut walk.path, &ahead);
    }

    #[inline]
    fn after_turn<F: Fields<N>, S: Sink<N>>(walk: &mut Walk<'_, N, F, S, Self>, vertex: &Vertex, lobe: Lobe) {
        // Where no parameter of the vertex is tuned no derivative is sent, so that no radiance is needed.
        if !vertex.is_wanted(walk.scene, &walk.adjoint.sink) {
            return;
        }
        let mut ahead = walk.path.fresh();
        let extra = &mut walk.adjoint.extra;
        let unit = walk.adjoint.incident.ahead == Ahead::Unit;
        if lobe == Lobe::Null {
            // A null lobe keeps the direction: the path goes on without roulette, nor is it replaced by unit radiance.
            ahead = match unit {
                true => go_on::<N, F, UNIT_RADIANCE>(walk.scene, walk.fields, ahead, extra),
                false => go_on::<N, F, GATHER>(walk.scene, walk.fields, ahead, extra),
            };
        } else if unit {
            ahead.add_unit_radiance(walk.scene);
        } else if ahead.roulette::<F>(walk.scene, extra) {
            ahead = go_on::<N, F, GATHER>(walk.scene, walk.fields, ahead, extra);
        }
        walk.adjoint.incident.expect(&mut walk.path, &ahead);
    }

    #[inline]
    fn is_unit(&self) -> bool {
        self.ahead == Ahead::Unit
    }
}

/// Traces ahead: the walk's next flight from the same random numbers, and a continuation from extra ones.
#[inline(never)]
fn fly_and_go_on<N: Number, F: Fields<N>, S: Sink<N>, const MODE: u8>(
    walk: &mut Walk<'_, N, F, S, Estimated<N>>,
    hit: Option<&Nearest>,
    far: f32,
) -> PathState<N> {
    let mut ahead = Walk::looking(walk.scene, walk.fields, walk.path.fresh(), walk.sampler);
    let flight = ahead.fly::<MODE>(far);
    ahead.sampler = walk.adjoint.extra;
    let next = match flight {
        Flight::Collided { p, sigma } => match ahead.collide::<MODE>(p, &sigma) {
            Some(vertex) => Met::Scatterer(vertex),
            None => Met::End,
        },
        Flight::Passed => match hit {
            Some(hit) => {
                let hit = describe(ahead.scene, hit, ahead.path.origin, ahead.path.direction);
                ahead.hit_surface::<MODE>(&hit)
            }
            None => {
                ahead.escape::<MODE>();
                Met::End
            }
        },
    };
    match next {
        Met::End => {}
        Met::Boundary => ahead.run::<MODE>(None),
        Met::Scatterer(vertex) => ahead.run::<MODE>(Some(vertex)),
    }
    walk.adjoint.extra = ahead.sampler;
    ahead.path
}

/// Follows a path until it ends.
#[inline(never)]
fn go_on<N: Number, F: Fields<N>, const MODE: u8>(
    scene: &SceneView,
    fields: &F,
    path: PathState<N>,
    sampler: &mut Sampler,
) -> PathState<N> {
    let mut walk = Walk::looking(scene, fields, path, *sampler);
    walk.run::<MODE>(None);
    *sampler = walk.sampler;
    walk.path
}

/// The adjoint of a camera ray's radiance by radiative backpropagation: follows the primal's path with the random
/// numbers of `sampler` and sends the derivatives of `d_radiance` · radiance to `sink`; `extra` is for all other
/// draws. Returns the path's final state with the radiance that it gathered itself.
#[inline]
#[allow(clippy::too_many_arguments, reason = "they are what an adjoint consists of")]
pub fn backpropagate_radiative<N: Number, F: Fields<N>, S: Sink<N>>(
    scene: &SceneView,
    fields: &F,
    ray: &Ray,
    medium: u32,
    mut sampler: Sampler,
    extra: Sampler,
    ahead: Ahead,
    d_radiance: [N; 3],
    sink: &mut S,
) -> PathState<N> {
    let path = PathState::new(scene, ray, medium, &mut sampler);
    let incident = Estimated {
        ahead,
        added: Rgb::zero(),
        expected: Rgb::zero(),
    };
    let adjoint = Adjoint::new(Rgb(d_radiance), sink, extra, None, incident);
    let mut walk = Walk {
        scene,
        fields,
        path,
        sampler,
        adjoint,
        trail: Trail::default(),
        chain: Chain::default(),
    };
    walk.replay();
    let mut path = walk.path;
    path.gathered.radiance = walk.adjoint.incident.added(&path);
    path
}

/// Walks that only gather radiance and send no derivatives.
impl<'a, N: Number, F: Fields<N>> Walk<'a, N, F, NoSink, Replayed> {
    /// Continues `path` with the random numbers of `sampler`.
    #[inline(always)]
    pub(super) fn looking(scene: &'a SceneView<'a>, fields: &'a F, path: PathState<N>, sampler: Sampler) -> Self {
        Self {
            scene,
            fields,
            path,
            sampler,
            adjoint: Adjoint::new(Rgb::zero(), NoSink, sampler, None, Replayed),
            trail: Trail::default(),
            chain: Chain::default(),
        }
    }
}
