//! Plastics: a diffuse base under a dielectric coat, with all reflections between them. The coat is smooth, or rough.

use super::conductor::{mirror_cosine, smooth_sample, unclamped};
use super::dielectric::{mirror_image, reflection_gradients};
use super::fresnel::{diffuse_fresnel, diffuse_fresnel_slope, fresnel, fresnel_slopes};
use super::local::{
    Gradients, Lobe, LobeSample, add_scaled, cosine_hemisphere, mirrored, no_gradients, upright, weigh,
};
use super::microfacet::{Distribution, Microfacets};
use crate::each::EachEntry;
use crate::transport::number::Number;
use crate::transport::number::rgb::Rgb;

const INV_PI: f32 = std::f32::consts::FRAC_1_PI;
/// The least weight of either lobe in sampling, so that a lobe whose factor is zero is sampled for its derivative.
const LEAST_SHARE: f32 = 0.01;

/// The specular lobe's weight in sampling: the mean specular factor over the sum of both lobes' means, clamped.
#[inline]
pub fn specular_weight(specular_mean: f32, diffuse_mean: f32) -> f32 {
    let sum = specular_mean + diffuse_mean;
    let share = if sum > 0.0 { specular_mean / sum } else { 0.5 };
    share.clamp(LEAST_SHARE, 1.0 - LEAST_SHARE)
}

/// The base's reflectance with all reflections between it and the coat, over π η², and its derivatives by the
/// reflectance `diffuse` and by the share `internal` that the coat reflects back into the base.
#[inline(always)]
fn base<N: Number>(diffuse: N, internal: N, eta: N, nonlinear: bool) -> [N; 3] {
    let one = N::lift(1.0);
    let scale = N::lift(INV_PI) / (eta * eta);
    let again = if nonlinear { diffuse * internal } else { internal };
    let sum = (one - again).recip();
    let square = sum * sum * scale;
    if nonlinear {
        [diffuse * sum * scale, square, diffuse * diffuse * square]
    } else {
        [diffuse * sum * scale, sum * scale, diffuse * square]
    }
}

/// The sum over channels of [`base`]'s value, weighted by `d`.
#[inline]
fn bases<N: Number>(diffuse: Rgb<N>, internal: N, eta: N, nonlinear: bool, d: Rgb<N>) -> N {
    weigh(d, diffuse.map(|x| base(x, internal, eta, nonlinear)[0]))
}

/// A smooth coat of index `eta` over a diffuse base, which reflects on the upper side.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Plastic<N> {
    pub eta: N,
    pub diffuse: Rgb<N>,
    pub specular: Rgb<N>,
    /// Whether light changes its colour each time it returns to the base.
    pub nonlinear: bool,
    /// See [`specular_weight`].
    pub specular_weight: f32,
}

impl<N: Number> Plastic<N> {
    /// The value of the base times the cosine of `wo`.
    #[inline]
    pub fn eval(&self, wi: [N; 3], wo: [N; 3]) -> Rgb<N> {
        if !(wi[2].above(0.0) && wo[2].above(0.0)) {
            return Rgb::zero();
        }
        let one = N::lift(1.0);
        let passed = [wi, wo].each(|w| one - fresnel(w[2], self.eta));
        let internal = diffuse_fresnel(self.eta.recip());
        let factor = passed[0] * passed[1] * wo[2];
        self.diffuse
            .map(|x| base(x, internal, self.eta, self.nonlinear)[0] * factor)
    }

    /// Derivatives of [`Self::eval`], weighted by `d`.
    #[inline]
    pub fn eval_adjoint(&self, wi: [N; 3], wo: [N; 3], d: Rgb<N>) -> Self {
        let (one, two) = (N::lift(1.0), N::lift(2.0));
        let mut out = self.without_derivatives();
        if !(wi[2].above(0.0) && wo[2].above(0.0)) {
            return out;
        }
        let [[fi, _, di], [fo, _, d_o]] = [wi, wo].each(|w| fresnel_slopes(w[2], self.eta));
        let (ti, to) = (one - fi, one - fo);
        let inverse = self.eta.recip();
        let internal = diffuse_fresnel(inverse);
        let by_eta = -diffuse_fresnel_slope(inverse) * inverse * inverse;
        let cosine = wo[2];
        for c in 0..3 {
            let [value, by_diffuse, by_internal] = base(self.diffuse[c], internal, self.eta, self.nonlinear);
            let weight = d[c] * cosine;
            out.diffuse[c] = weight * ti * to * by_diffuse;
            out.eta +=
                weight * (ti * to * (by_internal * by_eta - two * value * inverse) - value * (di * to + ti * d_o));
        }
        out
    }

    /// The gradients of [`Self::eval`], weighted by `d`, by the directions.
    #[inline]
    pub fn gradients(&self, wi: [N; 3], wo: [N; 3], d: Rgb<N>) -> Gradients<N> {
        if !(wi[2].above(0.0) && wo[2].above(0.0)) {
            return no_gradients();
        }
        let one = N::lift(1.0);
        let [[fi, di, _], [fo, d_o, _]] = [wi, wo].each(|w| fresnel_slopes(w[2], self.eta));
        let internal = diffuse_fresnel(self.eta.recip());
        let weight = bases(self.diffuse, internal, self.eta, self.nonlinear, d);
        let by_wi = -di * (one - fo) * wo[2];
        let by_wo = (one - fi) * (one - fo - d_o * wo[2]);
        [by_wi, by_wo].each(|by| upright(weight * by))
    }

    /// The factor of the mirror image.
    #[inline]
    pub fn discrete(&self, wi: [f32; 3], lobe: Lobe) -> Rgb<N> {
        if lobe != Lobe::Reflection || wi[2] <= 0.0 {
            return Rgb::zero();
        }
        self.specular * Rgb::splat(fresnel(N::lift(wi[2]), self.eta))
    }

    /// Derivatives of [`Self::discrete`], weighted by `d`.
    #[inline]
    pub fn discrete_adjoint(&self, wi: [f32; 3], lobe: Lobe, d: Rgb<N>) -> Self {
        let mut out = self.without_derivatives();
        if lobe == Lobe::Reflection && wi[2] > 0.0 {
            let [f, _, by_eta] = fresnel_slopes(N::lift(wi[2]), self.eta);
            out.specular = d * Rgb::splat(f);
            out.eta = weigh(d, self.specular) * by_eta;
        }
        out
    }

    #[inline(always)]
    fn without_derivatives(&self) -> Self {
        Self {
            eta: N::lift(0.0),
            diffuse: Rgb::zero(),
            specular: Rgb::zero(),
            ..*self
        }
    }
}

/// The probability of a specular lobe of this reflectance beside a diffuse one.
#[inline(always)]
fn specular_probability(reflectance: f32, weight: f32) -> f32 {
    let specular = reflectance * weight;
    let sum = specular + (1.0 - reflectance) * (1.0 - weight);
    if sum > 0.0 { specular / sum } else { 0.0 }
}

impl Plastic<f32> {
    /// The pdf by solid angle with which [`Self::sample`] draws `wo` from the base.
    #[inline]
    pub fn pdf(&self, wi: [f32; 3], wo: [f32; 3]) -> f32 {
        if wi[2] <= 0.0 || wo[2] <= 0.0 {
            return 0.0;
        }
        let probability = specular_probability(fresnel(wi[2], self.eta), self.specular_weight);
        (1.0 - probability) * wo[2] * INV_PI
    }

    /// The mirror image, or a direction from the base.
    #[inline]
    pub fn sample(&self, wi: [f32; 3], u1: f32, u2: [f32; 2]) -> Option<LobeSample> {
        if wi[2] <= 0.0 {
            return None;
        }
        let probability = specular_probability(fresnel(wi[2], self.eta), self.specular_weight);
        if u1 < probability {
            return Some(mirror_image(wi, probability));
        }
        let direction = cosine_hemisphere(u2);
        smooth_sample(direction, self.pdf(wi, direction))
    }
}

/// A rough coat of index `eta` over a diffuse base, which reflects on the upper side.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RoughPlastic<N> {
    pub eta: N,
    pub alpha: N,
    pub diffuse: Rgb<N>,
    pub specular: Rgb<N>,
    /// Whether light changes its colour each time it returns to the base.
    pub nonlinear: bool,
    pub distribution: Distribution,
    /// Whether only visible normals are sampled.
    pub visible: bool,
    /// See [`specular_weight`].
    pub specular_weight: f32,
}

/// The coat's transmittances for `wi` and for `wo`, and its reflectance for diffuse light from the base: values, and
/// their derivatives by the roughness and by the index.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Coat<N> {
    pub values: [N; 3],
    pub by_alpha: [N; 3],
    pub by_eta: [N; 3],
    /// The derivatives of the two transmittances by the cosines of their directions.
    pub by_cosine: [N; 2],
}

impl<N: Number> RoughPlastic<N> {
    #[inline]
    fn facets(&self) -> Microfacets<N> {
        Microfacets::new(self.distribution, [self.alpha; 2], self.visible)
    }

    /// The value times the cosine of `wo`.
    #[inline]
    pub fn eval(&self, coat: &Coat<N>, wi: [N; 3], wo: [N; 3]) -> Rgb<N> {
        if !(wi[2].above(0.0) && wo[2].above(0.0)) {
            return Rgb::zero();
        }
        let f = fresnel(mirror_cosine(wi, wo), self.eta);
        let mirrors = f * self.facets().reflection(wi, wo);
        let [ti, to, internal] = coat.values;
        let factor = ti * to * wo[2];
        let channel = |c: usize| {
            self.specular[c] * mirrors + base(self.diffuse[c], internal, self.eta, self.nonlinear)[0] * factor
        };
        Rgb([0, 1, 2].each(channel))
    }

    /// Derivatives of [`Self::eval`], those of the coat's table included, weighted by `d`. Roughnesses that are clamped
    /// have none.
    #[inline]
    pub fn eval_adjoint(&self, coat: &Coat<N>, wi: [N; 3], wo: [N; 3], d: Rgb<N>) -> Self {
        let (none, two) = (N::lift(0.0), N::lift(2.0));
        let mut out = Self {
            eta: none,
            alpha: none,
            diffuse: Rgb::zero(),
            specular: Rgb::zero(),
            ..*self
        };
        if !(wi[2].above(0.0) && wo[2].above(0.0)) {
            return out;
        }
        let [f, _, by_eta] = fresnel_slopes(mirror_cosine(wi, wo), self.eta);
        let (mirrors, slopes) = self.facets().reflection_slopes(wi, wo);
        let weight = weigh(d, self.specular);
        out.specular = d * Rgb::splat(f * mirrors);
        out.eta = weight * by_eta * mirrors;
        let mut by_alpha = weight * f * (slopes[0] + slopes[1]);
        let [ti, to, internal] = coat.values;
        let cosine = wo[2];
        for c in 0..3 {
            let [value, by_diffuse, by_internal] = base(self.diffuse[c], internal, self.eta, self.nonlinear);
            let weight = d[c] * cosine;
            out.diffuse[c] = weight * ti * to * by_diffuse;
            let through = |by: &[N; 3]| value * (by[0] * to + ti * by[1]) + ti * to * by_internal * by[2];
            by_alpha += weight * through(&coat.by_alpha);
            out.eta += weight * (through(&coat.by_eta) - two * value * ti * to / self.eta);
        }
        out.alpha = unclamped(self.alpha, by_alpha);
        out
    }

    /// The gradients of [`Self::eval`], weighted by `d`, by the directions.
    #[inline]
    pub fn gradients(&self, coat: &Coat<N>, wi: [N; 3], wo: [N; 3], d: Rgb<N>) -> Gradients<N> {
        if !(wi[2].above(0.0) && wo[2].above(0.0)) {
            return no_gradients();
        }
        let facets = self.facets();
        let mirrors = reflection_gradients(&facets, self.eta, wi, wo, weigh(d, self.specular));
        let [ti, to, internal] = coat.values;
        let weight = bases(self.diffuse, internal, self.eta, self.nonlinear, d);
        let [di, d_o] = coat.by_cosine;
        let base = [di * to * wo[2], ti * (to + d_o * wo[2])].each(|by| upright(weight * by));
        [0, 1].each(|k| add_scaled(base[k], mirrors[k], N::lift(1.0)))
    }
}

impl RoughPlastic<f32> {
    /// The pdf by solid angle with which [`Self::sample`] draws `wo`; `transmittance` is the coat's for `wi`.
    #[inline]
    pub fn pdf(&self, transmittance: f32, wi: [f32; 3], wo: [f32; 3]) -> f32 {
        if wi[2] <= 0.0 || wo[2] <= 0.0 {
            return 0.0;
        }
        let probability = specular_probability(1.0 - transmittance, self.specular_weight);
        probability * self.facets().reflection_pdf(wi, wo) + (1.0 - probability) * wo[2] * INV_PI
    }

    /// Mirrors `wi` at a sampled normal, or draws a direction from the base; None if that is below the surface.
    #[inline]
    pub fn sample(&self, transmittance: f32, wi: [f32; 3], u1: f32, u2: [f32; 2]) -> Option<LobeSample> {
        if wi[2] <= 0.0 {
            return None;
        }
        let probability = specular_probability(1.0 - transmittance, self.specular_weight);
        let direction = if u1 < probability {
            mirrored(wi, self.facets().sample_normal(wi, u2))
        } else {
            cosine_hemisphere(u2)
        };
        smooth_sample(direction, self.pdf(transmittance, wi, direction))
    }
}
