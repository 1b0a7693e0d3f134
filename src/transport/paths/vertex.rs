//! Where a path is scattered: by a phase function in a medium, by a BSDF on a surface.

use crate::transport::number::Number;
use crate::transport::number::rgb::Rgb;
use crate::transport::rays::sampler::Sampler;
use crate::transport::scene::bsdf::bsdf_is_wanted;
use crate::transport::scene::interaction::Interaction;
use crate::transport::scene::phase::{phase_eval, phase_is_wanted, phase_pdf, phase_sample};
use crate::transport::scene::records::{Fields, SceneView, Sink};

/// A vertex at which the path is about to be scattered.
#[derive(Debug, Clone, Copy)]
#[allow(clippy::large_enum_variant, reason = "one at a time, on the stack of the walk")]
pub enum Vertex {
    /// A point in a medium, and the index of its phase function.
    Medium { p: [f32; 3], phase: u32 },
    /// A point on a surface that has a BSDF.
    Surface(Interaction),
}

/// A direction sampled from a phase function.
#[derive(Debug, Clone, Copy)]
pub(super) struct PhaseSample<N> {
    pub direction: [f32; 3],
    /// Value over pdf; None where it is one.
    pub weight: Option<Rgb<N>>,
    /// Pdf by solid angle on the sampling side; 0 if it is not needed.
    pub pdf: f32,
}

impl Vertex {
    /// A vertex in a medium with this phase function.
    #[inline(always)]
    pub(super) fn in_medium(p: [f32; 3], phase: u32) -> Self {
        Self::Medium { p, phase }
    }

    /// Whether `sink` needs derivatives by any parameter of what scatters here.
    #[inline]
    pub(super) fn is_wanted<N: Number, S: Sink<N>>(&self, scene: &SceneView, sink: &S) -> bool {
        match self {
            Self::Medium { phase, .. } => phase_is_wanted(scene, *phase, sink),
            Self::Surface(at) => bsdf_is_wanted(scene, at, sink),
        }
    }
}

/// A phase function's value at `p`, and the pdf with which [`sample`] draws `outgoing`.
#[inline]
pub(super) fn eval<N: Number, F: Fields<N>>(
    scene: &SceneView,
    fields: &F,
    phase: u32,
    p: [f32; 3],
    incoming: [f32; 3],
    outgoing: [f32; 3],
) -> (Rgb<N>, f32) {
    let pdf = phase_pdf(scene, fields, phase, p, incoming, outgoing);
    let value = match F::TWO_SIDED {
        true => phase_eval(scene, fields, phase, p, incoming, outgoing),
        false => N::lift(pdf),
    };
    (Rgb::splat(value), pdf)
}

/// Samples a direction from a phase function at `p`.
#[inline]
pub(super) fn sample<N: Number, F: Fields<N>>(
    scene: &SceneView,
    fields: &F,
    phase: u32,
    p: [f32; 3],
    incoming: [f32; 3],
    sampler: &mut Sampler,
) -> PhaseSample<N> {
    let direction = phase_sample(scene, fields, phase, p, incoming, sampler);
    // The pdf is used for MIS with sampled lights, and for two-sided weights.
    let pdf = match F::TWO_SIDED || scene.settings.lights > 0 {
        true => phase_pdf(scene, fields, phase, p, incoming, direction),
        false => 0.0,
    };
    // With one side a phase function is its own pdf, so the weight is one.
    let weight = F::TWO_SIDED.then(|| {
        let value = phase_eval(scene, fields, phase, p, incoming, direction);
        Rgb::splat(value * N::lift(1.0 / pdf))
    });
    PhaseSample { direction, weight, pdf }
}
