//! Where a path is scattered: by a phase function in a medium, by a BSDF on a surface. The walk treats both alike.

use super::path_state::Lobe;
use crate::transport::number::Number;
use crate::transport::number::rgb::Rgb;
use crate::transport::rays::sampler::Sampler;
use crate::transport::scene::bsdf::{bsdf_eval, bsdf_sample};
use crate::transport::scene::phase::{phase_adjoint, phase_eval, phase_pdf, phase_sample};
use crate::transport::scene::records::{Fields, SceneView, Sink};
use crate::transport::scene::shape::Hit;

/// A vertex at which the path is about to be scattered.
#[derive(Debug, Clone, Copy)]
pub struct Vertex {
    /// The position, and the origin of rays that leave it (offset from a surface against self-intersection).
    pub(super) q: [f32; 3],
    pub(super) p: [f32; 3],
    pub(super) scatterer: Scatterer,
}

/// What scatters there.
#[derive(Debug, Clone, Copy)]
pub(super) enum Scatterer {
    /// The phase function of this index.
    Phase(u32),
    /// The surface that was hit, and its reflectance there.
    Surface { hit: Hit, color: [f32; 3] },
}

/// A direction sampled at a vertex.
#[derive(Debug, Clone, Copy)]
pub(super) struct DirectionSample<N> {
    pub direction: [f32; 3],
    /// Value over pdf (or, for a discrete lobe, over probability); None where it is one.
    pub weight: Option<Rgb<N>>,
    /// Pdf by solid angle on the sampling side; 0 if it is not needed.
    pub pdf: f32,
    pub lobe: Lobe,
    /// Relative index of refraction of the boundary that was crossed; 1 if none was.
    pub eta: f32,
}

impl Vertex {
    /// A vertex in a medium with this phase function.
    #[inline(always)]
    pub(super) fn in_medium(p: [f32; 3], phase: u32) -> Self {
        Self {
            q: p,
            p,
            scatterer: Scatterer::Phase(phase),
        }
    }

    /// The phase function, in a medium.
    #[inline(always)]
    pub(super) fn phase(&self) -> Option<u32> {
        match self.scatterer {
            Scatterer::Phase(index) => Some(index),
            Scatterer::Surface { .. } => None,
        }
    }

    /// The phase function's or BSDF's value for light that arrives along -`outgoing` and leaves along -`incoming`,
    /// cosine included, and the pdf with which [`Self::sample`] draws `outgoing`. None where the value is zero.
    #[inline]
    pub(super) fn eval<N: Number, F: Fields<N>>(
        &self,
        scene: &SceneView,
        fields: &F,
        incoming: [f32; 3],
        outgoing: [f32; 3],
    ) -> Option<(Rgb<N>, f32)> {
        match &self.scatterer {
            &Scatterer::Phase(index) => {
                let pdf = phase_pdf(scene, fields, index, self.p, incoming, outgoing);
                let value = match F::TWO_SIDED {
                    true => phase_eval(scene, fields, index, self.p, incoming, outgoing),
                    false => N::lift(pdf),
                };
                Some((Rgb::splat(value), pdf))
            }
            Scatterer::Surface { hit, color } => {
                let (value, pdf) = bsdf_eval(*color, hit, outgoing)?;
                Some((Rgb::lift(value), pdf))
            }
        }
    }

    /// Samples a direction; None if the path ends.
    #[inline]
    pub(super) fn sample<N: Number, F: Fields<N>>(
        &self,
        scene: &SceneView,
        fields: &F,
        incoming: [f32; 3],
        sampler: &mut Sampler,
    ) -> Option<DirectionSample<N>> {
        match &self.scatterer {
            &Scatterer::Phase(index) => {
                let direction = phase_sample(scene, fields, index, self.p, incoming, sampler);
                // The pdf is used for MIS with sampled lights, and for two-sided weights.
                let pdf = match F::TWO_SIDED || scene.settings.lights > 0 {
                    true => phase_pdf(scene, fields, index, self.p, incoming, direction),
                    false => 0.0,
                };
                // With one side a phase function is its own pdf, so the weight is one.
                let weight = F::TWO_SIDED.then(|| {
                    let value = phase_eval(scene, fields, index, self.p, incoming, direction);
                    Rgb::splat(value * N::lift(1.0 / pdf))
                });
                Some(DirectionSample {
                    direction,
                    weight,
                    pdf,
                    lobe: Lobe::Continuous,
                    eta: 1.0,
                })
            }
            Scatterer::Surface { hit, color } => {
                let drawn = bsdf_sample(*color, hit, sampler)?;
                Some(DirectionSample {
                    direction: drawn.direction,
                    weight: Some(Rgb::lift(drawn.weight)),
                    pdf: drawn.pdf,
                    lobe: Lobe::Continuous,
                    eta: 1.0,
                })
            }
        }
    }

    /// Sends `d`, the derivative by the logarithm of the value for `outgoing`, to the phase function's parameters.
    #[inline]
    pub(super) fn adjoint<N: Number, F: Fields<N>, S: Sink<N>>(
        &self,
        scene: &SceneView,
        fields: &F,
        incoming: [f32; 3],
        outgoing: [f32; 3],
        d: N,
        sink: &mut S,
    ) {
        // Reflectances are not differentiated.
        if let Some(index) = self.phase() {
            phase_adjoint(scene, fields, index, self.p, incoming, outgoing, d, sink);
        }
    }
}
