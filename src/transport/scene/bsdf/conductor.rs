//! Conductors: smooth ones, which are mirrors, and rough ones of microfacets.

use super::fresnel::{fresnel_conductor, fresnel_conductor_slope, fresnel_conductor_slopes};
use super::local::{Gradients, Lobe, LobeSample, add_scaled, halfway, inner, mirrored, no_gradients, weigh};
use super::microfacet::{CLAMPED_ALPHA, Distribution, Microfacets};
use crate::each::EachEntry;
use crate::transport::number::Number;
use crate::transport::number::rgb::Rgb;

/// A smooth conductor of index `eta` + i `k` relative to the outside, which reflects on the upper side.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Conductor<N> {
    pub eta: Rgb<N>,
    pub k: Rgb<N>,
    pub specular: Rgb<N>,
}

impl<N: Number> Conductor<N> {
    /// The factor of the mirror image.
    #[inline(always)]
    pub fn discrete(&self, wi: [f32; 3], lobe: Lobe) -> Rgb<N> {
        if lobe != Lobe::Reflection || wi[2] <= 0.0 {
            return Rgb::zero();
        }
        self.specular * reflectances(N::lift(wi[2]), self.eta, self.k)
    }

    /// Derivatives of [`Self::discrete`], weighted by `d`.
    #[inline]
    pub fn discrete_adjoint(&self, wi: [f32; 3], lobe: Lobe, d: Rgb<N>) -> Self {
        let seen = lobe == Lobe::Reflection && wi[2] > 0.0;
        let d = if seen { d } else { Rgb::zero() };
        let [f, eta, k] = reflectance_slopes(N::lift(wi[2].max(0.0)), self.eta, self.k);
        let weighted = d * self.specular;
        Self {
            eta: weighted * eta,
            k: weighted * k,
            specular: d * f,
        }
    }
}

impl Conductor<f32> {
    /// The mirror image.
    #[inline]
    pub fn sample(&self, wi: [f32; 3], _u1: f32, _u2: [f32; 2]) -> Option<LobeSample> {
        (wi[2] > 0.0).then_some(LobeSample {
            direction: [-wi[0], -wi[1], wi[2]],
            pdf: 1.0,
            lobe: Lobe::Reflection,
            eta: 1.0,
        })
    }
}

/// A rough conductor, which reflects on the upper side.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RoughConductor<N> {
    pub eta: Rgb<N>,
    pub k: Rgb<N>,
    pub specular: Rgb<N>,
    pub alpha_u: N,
    pub alpha_v: N,
    pub distribution: Distribution,
    /// Whether only visible normals are sampled.
    pub visible: bool,
}

impl<N: Number> RoughConductor<N> {
    #[inline(always)]
    fn facets(&self) -> Microfacets<N> {
        Microfacets::new(self.distribution, [self.alpha_u, self.alpha_v], self.visible)
    }

    /// The value times the cosine of `wo`: F D G / (4 cos wi).
    #[inline(always)]
    pub fn eval(&self, wi: [N; 3], wo: [N; 3]) -> Rgb<N> {
        if !are_above(wi, wo) {
            return Rgb::zero();
        }
        let value = self.facets().reflection(wi, wo);
        self.specular * reflectances(mirror_cosine(wi, wo), self.eta, self.k) * Rgb::splat(value)
    }

    /// Derivatives of [`Self::eval`], weighted by `d`. Roughnesses below [`CLAMPED_ALPHA`] have none.
    #[inline(always)]
    pub fn eval_adjoint(&self, wi: [N; 3], wo: [N; 3], d: Rgb<N>) -> Self {
        let cosine = cosine_above(wi, wo);
        self.adjoint(wi, wo, d, reflectance_slopes(cosine, self.eta, self.k))
    }

    /// [`Self::eval_adjoint`] with derivatives of zero by the index, `eta` and `k`, which take most of its time.
    #[inline(always)]
    pub fn eval_adjoint_but_index(&self, wi: [N; 3], wo: [N; 3], d: Rgb<N>) -> Self {
        let f = reflectances(cosine_above(wi, wo), self.eta, self.k);
        self.adjoint(wi, wo, d, [f, Rgb::zero(), Rgb::zero()])
    }

    /// `f`, `eta` and `k`: the reflectances, and their derivatives by the index.
    #[inline(always)]
    fn adjoint(&self, wi: [N; 3], wo: [N; 3], d: Rgb<N>, [f, eta, k]: [Rgb<N>; 3]) -> Self {
        let zero = N::lift(0.0);
        let (value, slopes) = if are_above(wi, wo) {
            self.facets().reflection_slopes(wi, wo)
        } else {
            (zero, [zero; 2])
        };
        let weighted = d * self.specular * Rgb::splat(value);
        let shape = weigh(d * self.specular, f);
        Self {
            eta: weighted * eta,
            k: weighted * k,
            specular: d * f * Rgb::splat(value),
            alpha_u: unclamped(self.alpha_u, shape * slopes[0]),
            alpha_v: unclamped(self.alpha_v, shape * slopes[1]),
            ..*self
        }
    }

    /// The gradients of [`Self::eval`], weighted by `d`, by the directions.
    #[inline]
    pub fn gradients(&self, wi: [N; 3], wo: [N; 3], d: Rgb<N>) -> Gradients<N> {
        if !are_above(wi, wo) {
            return no_gradients();
        }
        let (cosine, facets) = (mirror_cosine(wi, wo), self.facets());
        let mirrors = facets.reflection(wi, wo);
        let (mut value, mut by_cosine) = (N::lift(0.0), N::lift(0.0));
        for c in 0..3 {
            let [f, slope] = fresnel_conductor_slope(cosine, self.eta[c], self.k[c]);
            let weight = d[c] * self.specular[c] * mirrors;
            value += weight * f;
            by_cosine += weight * slope;
        }
        mirror_gradients(wi, wo, facets.reflection_gradients(wi, wo), value, by_cosine)
    }
}

impl RoughConductor<f32> {
    /// The pdf by solid angle with which [`Self::sample`] draws `wo`.
    #[inline(always)]
    pub fn pdf(&self, wi: [f32; 3], wo: [f32; 3]) -> f32 {
        if wi[2] <= 0.0 || wo[2] <= 0.0 {
            return 0.0;
        }
        self.facets().reflection_pdf(wi, wo)
    }

    /// Mirrors `wi` at a sampled normal; None if that is below the surface.
    #[inline]
    pub fn sample(&self, wi: [f32; 3], _u1: f32, u2: [f32; 2]) -> Option<LobeSample> {
        if wi[2] <= 0.0 {
            return None;
        }
        let direction = self.mirror(wi, u2);
        smooth_sample(direction, self.pdf(wi, direction))
    }

    /// The mirror image of `wi` at a sampled normal.
    #[inline(always)]
    pub fn mirror(&self, wi: [f32; 3], u: [f32; 2]) -> [f32; 3] {
        mirrored(wi, self.facets().sample_normal(wi, u))
    }
}

/// A sample of a smooth lobe on the side of `wi`; None where its pdf is zero.
#[inline(always)]
pub fn smooth_sample(direction: [f32; 3], pdf: f32) -> Option<LobeSample> {
    (pdf > 0.0).then_some(LobeSample {
        direction,
        pdf,
        lobe: Lobe::Smooth,
        eta: 1.0,
    })
}

/// The derivative by a roughness that may be clamped: none below [`CLAMPED_ALPHA`].
#[inline(always)]
pub fn unclamped<N: Number>(alpha: N, slope: N) -> N {
    if alpha.below(CLAMPED_ALPHA) {
        N::lift(0.0)
    } else {
        slope
    }
}

/// The cosine between `wi` and the normal halfway between it and `wo`, which is not negative.
#[inline(always)]
pub fn mirror_cosine<N: Number>(wi: [N; 3], wo: [N; 3]) -> N {
    // Half the length of their sum: the root of (1 + wi·wo) / 2 would cancel at grazing angles.
    let sum = [0, 1, 2].each(|a| wi[a] + wo[a]);
    (N::lift(0.5) * inner(sum, sum).sqrt()).min(N::lift(1.0))
}

/// [`mirror_cosine`]; one unless both directions are above the surface.
#[inline(always)]
fn cosine_above<N: Number>(wi: [N; 3], wo: [N; 3]) -> N {
    if are_above(wi, wo) {
        mirror_cosine(wi, wo)
    } else {
        N::lift(1.0)
    }
}

#[inline(always)]
fn are_above<N: Number>(wi: [N; 3], wo: [N; 3]) -> bool {
    wi[2].above(0.0) && wo[2].above(0.0)
}

/// The gradients of a microfacet reflection by the directions: `along` are those of the logarithm of [`Microfacets::reflection`],
/// `value` is the reflection with its Fresnel factor, `by_cosine` its derivative by [`mirror_cosine`].
#[inline]
pub fn mirror_gradients<N: Number>(
    wi: [N; 3],
    wo: [N; 3],
    along: Gradients<N>,
    value: N,
    by_cosine: N,
) -> Gradients<N> {
    // The cosine is half of the length of the sum of both.
    let turning = halfway(wi, wo).each(|x| N::lift(0.5) * by_cosine * x);
    along.each(|by| add_scaled(turning, by, value))
}

/// Reflectances of the channels.
#[inline(always)]
fn reflectances<N: Number>(cosine: N, eta: Rgb<N>, k: Rgb<N>) -> Rgb<N> {
    let mut all = Rgb::zero();
    for c in 0..3 {
        all[c] = fresnel_conductor(cosine, eta[c], k[c]);
    }
    all
}

/// Reflectances of the channels, and their derivatives by `eta` and by `k`.
#[inline(always)]
fn reflectance_slopes<N: Number>(cosine: N, eta: Rgb<N>, k: Rgb<N>) -> [Rgb<N>; 3] {
    let mut all = [Rgb::zero(); 3];
    for c in 0..3 {
        let parts = fresnel_conductor_slopes(cosine, eta[c], k[c]);
        for part in 0..3 {
            all[part][c] = parts[part];
        }
    }
    all
}
