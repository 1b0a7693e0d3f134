//! Radiative backpropagation: an adjoint that walks once and estimates the radiance still to come where it needs it,
//! instead of knowing it from a walk before (NimierDavid2020, sections 3.5 to 3.8 and appendix A.1).
//!
//! It is the walk of path replay. Before each flight it looks ahead: the flight itself, by the numbers that it is about
//! to be made with, then whatever comes after it, by others. What that finds is the radiance still to come.

use super::adjoint::{Adjoint, Incident};
use super::path_state::PathState;
use super::tracking::{Flight, fly};
use super::volpath::{backpropagate, collide, escape, hit_surface, walk};
use crate::transport::mode::{GATHER, UNIT_RADIANCE};
use crate::transport::number::Number;
use crate::transport::rays::camera::Ray;
use crate::transport::rays::sampler::Sampler;
use crate::transport::scene::phase::phase_is_wanted;
use crate::transport::scene::records::{Fields, NoSink, SceneView, Sink};
use crate::transport::scene::shape::Hit;

/// The adjoint of a camera ray's radiance by radiative backpropagation: follows the path that the primal follows with
/// the numbers of `sampler`, and sends the derivatives of `d_radiance` · radiance to `sink`. `extra` is for all other
/// draws. Returns the path at its end, with the radiance that it brought itself.
///
/// # Panics
/// `incident` is [`Incident::Replayed`], which is [`super::volpath::propagate`].
#[inline]
#[allow(clippy::too_many_arguments, reason = "they are what an adjoint consists of")]
pub fn backpropagate_radiative<N: Number, F: Fields<N>, S: Sink<N>>(
    scene: &SceneView,
    fields: &F,
    ray: &Ray,
    medium: u32,
    mut sampler: Sampler,
    extra: Sampler,
    incident: Incident,
    d_radiance: [N; 3],
    sink: &mut S,
) -> PathState<N> {
    assert!(incident != Incident::Replayed, "a replay needs a walk before");
    let mut path = PathState::new(scene, ray, medium, &mut sampler);
    let mut adjoint = Adjoint::new(d_radiance, sink, extra);
    adjoint.incident = incident;
    backpropagate(scene, fields, &mut path, &mut sampler, &mut adjoint);
    path.radiance = adjoint.added(&path);
    path
}

/// Finds what a path is to expect from its next flight on, up to `hit` at the distance `far`; `flight` has the numbers
/// of the flight.
#[inline]
pub(super) fn look_ahead<N: Number, F: Fields<N>, S: Sink<N>>(
    scene: &SceneView,
    fields: &F,
    path: &mut PathState<N>,
    hit: Option<&Hit>,
    far: f32,
    flight: Sampler,
    adjoint: &mut Adjoint<'_, N, S>,
) {
    if adjoint.incident == Incident::Replayed {
        return;
    }
    let medium = &scene.media[path.medium as usize];
    let slot = |volume: u32| scene.volumes[volume as usize].slot;
    if !adjoint.sink.wants(slot(medium.sigma_t)) && !adjoint.sink.wants(slot(medium.albedo)) {
        return;
    }
    let extra = &mut adjoint.extra;
    let ahead = match adjoint.incident {
        Incident::One => fly_and_go_on::<N, F, UNIT_RADIANCE>(scene, fields, path, hit, far, flight, extra),
        _ => fly_and_go_on::<N, F, GATHER>(scene, fields, path, hit, far, flight, extra),
    };
    adjoint.expect(path, &ahead);
}

/// A flight by the numbers of `flight`, and what follows it by those of `extra`.
#[inline(never)]
fn fly_and_go_on<N: Number, F: Fields<N>, const MODE: u8>(
    scene: &SceneView,
    fields: &F,
    path: &PathState<N>,
    hit: Option<&Hit>,
    far: f32,
    mut flight: Sampler,
    extra: &mut Sampler,
) -> PathState<N> {
    let mut ahead = path.fresh();
    let mut nothing = NoSink;
    let unused = &mut Adjoint::new([N::lift(0.0); 3], &mut nothing, *extra);
    let goes_on = match fly::<N, F, NoSink, MODE>(scene, fields, &mut ahead, far, &mut flight, unused) {
        Flight::Collided { p, sigma } => {
            collide::<N, F, NoSink, MODE>(scene, fields, &mut ahead, p, &sigma, extra, unused)
        }
        Flight::Passed => match hit {
            Some(hit) => hit_surface::<N, F, NoSink, MODE>(scene, fields, &mut ahead, hit, extra, unused),
            None => {
                escape::<N, F, NoSink, MODE>(scene, fields, &mut ahead, unused);
                false
            }
        },
    };
    if goes_on {
        walk::<N, F, NoSink, MODE>(scene, fields, &mut ahead, extra, unused);
    }
    ahead
}

/// Finds what a path is to expect that has just been turned by the phase function `index`, unless that has no
/// parameters.
#[inline]
pub(super) fn look_along<N: Number, F: Fields<N>, S: Sink<N>>(
    scene: &SceneView,
    fields: &F,
    path: &mut PathState<N>,
    index: u32,
    adjoint: &mut Adjoint<'_, N, S>,
) {
    if adjoint.incident == Incident::Replayed || !phase_is_wanted(scene, index, adjoint.sink) {
        return;
    }
    let mut ahead = path.fresh();
    if adjoint.incident == Incident::One {
        ahead.add_unit_radiance(scene);
    } else if ahead.roulette::<F>(scene, &mut adjoint.extra) {
        go_on(scene, fields, &mut ahead, &mut adjoint.extra);
    }
    adjoint.expect(path, &ahead);
}

/// Follows a path to its end.
#[inline(never)]
fn go_on<N: Number, F: Fields<N>>(scene: &SceneView, fields: &F, path: &mut PathState<N>, sampler: &mut Sampler) {
    let mut nothing = NoSink;
    let unused = &mut Adjoint::new([N::lift(0.0); 3], &mut nothing, *sampler);
    walk::<N, F, NoSink, GATHER>(scene, fields, path, sampler, unused);
}
