//! From a film position to radiance and back: the primal estimator and its adjoint, for one ray.

use super::radiance_field::{FieldView, NoSamples, SampleSink, Segment, State, field_segment, walk};
use crate::resident::layout::SceneRecord;
use crate::transport::lookup::background::background_eval;
use crate::transport::lookup::sh::{Basis, MAX_COEFFICIENTS};
use crate::transport::mode::{PRIMAL, REPLAY};
use crate::transport::number::Number;
use crate::transport::rays::camera::Ray;

/// One ray through the scene, primal or replayed.
#[derive(Debug, Clone, Copy)]
pub struct March<N> {
    direction: [f32; 3],
    backdrop: Option<[f32; 3]>,
    /// The part of the ray inside the field.
    pub segment: Option<Segment>,
    pub state: State<N>,
}

impl<N: Number> March<N> {
    /// The primal path of a ray with its jitter.
    #[inline(always)]
    pub fn new(scene: &SceneRecord, ray: &Ray, jitter: f32, backdrop: Option<[f32; 3]>) -> Self {
        let segment = field_segment(scene, ray, jitter);
        Self {
            direction: ray.direction,
            backdrop,
            segment,
            state: State::new([N::lift(0.0); 3]),
        }
    }

    /// The replay of a finished primal path: starts with the primal's radiance.
    #[inline(always)]
    pub fn replay(&self) -> Self {
        Self {
            state: State::new(self.state.radiance),
            ..*self
        }
    }

    /// Whether the background is the scene's emitter, not a random backdrop.
    #[inline(always)]
    pub fn sees_emitter(&self) -> bool {
        self.backdrop.is_none()
    }

    /// The spherical harmonics in the ray's direction; zero outside the field.
    #[inline(always)]
    pub fn basis(&self) -> Basis {
        match &self.segment {
            Some(segment) => segment.basis,
            None => [0.0; MAX_COEFFICIENTS],
        }
    }

    /// Continues for a few samples; true if the ray is not finished.
    #[inline(always)]
    pub fn walk<V: FieldView<N>, S: SampleSink<N>, const MODE: u8>(
        &mut self,
        scene: &SceneRecord,
        view: &V,
        d_radiance: [N; 3],
        sink: &mut S,
    ) -> bool {
        match &self.segment {
            Some(segment) => walk::<N, V, S, MODE>(scene, view, segment, &mut self.state, d_radiance, sink),
            None => false,
        }
    }

    /// Finishes a primal path: adds the background behind the medium.
    #[inline(always)]
    pub fn end_primal<V: FieldView<N>>(&mut self, scene: &SceneRecord, view: &V) {
        let behind = self.behind(scene, view);
        for c in 0..3 {
            self.state.radiance[c] += self.state.transmittance * behind[c];
        }
    }

    /// Finishes a replay: sends the emitter's gradient and leaves the remaining radiance, zero up to rounding, in the
    /// state.
    #[inline(always)]
    pub fn end_replay<V: FieldView<N>, S: SampleSink<N>>(
        &mut self,
        scene: &SceneRecord,
        view: &V,
        d_radiance: [N; 3],
        sink: &mut S,
    ) {
        let t = self.state.transmittance;
        if self.backdrop.is_none() {
            sink.emitter(
                self.direction,
                [d_radiance[0] * t, d_radiance[1] * t, d_radiance[2] * t],
            );
        }
        let behind = self.behind(scene, view);
        for c in 0..3 {
            self.state.radiance[c] -= t * behind[c];
        }
    }

    #[inline(always)]
    fn behind<V: FieldView<N>>(&self, scene: &SceneRecord, view: &V) -> [N; 3] {
        match self.backdrop {
            Some(color) => [N::lift(color[0]), N::lift(color[1]), N::lift(color[2])],
            None => background_eval(scene, view.emitter(), self.direction),
        }
    }
}

/// Result of a primal ray: radiance and final transmittance.
#[derive(Debug, Clone, Copy)]
pub struct Gathered<N> {
    pub radiance: [N; 3],
    pub transmittance: N,
    /// Samples that contributed.
    pub count: u32,
}

/// Result of a replay.
#[derive(Debug, Clone, Copy)]
pub struct Replayed<N> {
    /// Remaining radiance: zero up to rounding.
    pub left: [N; 3],
    /// Samples that contributed.
    pub count: u32,
}

/// The primal estimate of a ray's radiance.
#[inline(always)]
pub fn gather<N: Number, V: FieldView<N>>(
    scene: &SceneRecord,
    view: &V,
    ray: &Ray,
    jitter: f32,
    backdrop: Option<[f32; 3]>,
) -> Gathered<N> {
    let State {
        radiance,
        transmittance,
        count,
        ..
    } = primal(scene, view, ray, jitter, backdrop).state;
    Gathered {
        radiance,
        transmittance,
        count,
    }
}

#[inline(always)]
fn primal<N: Number, V: FieldView<N>>(
    scene: &SceneRecord,
    view: &V,
    ray: &Ray,
    jitter: f32,
    backdrop: Option<[f32; 3]>,
) -> March<N> {
    let mut path = March::new(scene, ray, jitter, backdrop);
    while path.walk::<V, NoSamples, PRIMAL>(scene, view, [N::lift(0.0); 3], &mut NoSamples) {}
    path.end_primal(scene, view);
    path
}

/// The adjoint: walks the ray for its radiance, then replays it with the same random state and sends the derivatives
/// of `d_radiance` · radiance to `sink`.
#[inline(always)]
pub fn backpropagate<N: Number, V: FieldView<N>, S: SampleSink<N>>(
    scene: &SceneRecord,
    view: &V,
    ray: &Ray,
    jitter: f32,
    backdrop: Option<[f32; 3]>,
    d_radiance: [N; 3],
    sink: &mut S,
) -> (Gathered<N>, Replayed<N>) {
    let path = primal(scene, view, ray, jitter, backdrop);
    let mut replay = path.replay();
    while replay.walk::<V, S, REPLAY>(scene, view, d_radiance, sink) {}
    replay.end_replay(scene, view, d_radiance, sink);
    let State {
        radiance,
        transmittance,
        count,
        ..
    } = path.state;
    (
        Gathered {
            radiance,
            transmittance,
            count,
        },
        Replayed {
            left: replay.state.radiance,
            count: replay.state.count,
        },
    )
}
