//! Interfaces of dielectrics: smooth, a thin plate, and rough.

use super::conductor::{mirror_cosine, mirror_gradients, smooth_sample, unclamped};
use super::fresnel::{fresnel, fresnel_slopes, plate, plate_slope, refracted_cosine, relative_index};
use super::local::{Gradients, Lobe, LobeSample, above, inner, mirrored, no_gradients, refracted, weigh};
use super::microfacet::{Bend, Distribution, Microfacets};
use crate::each::EachEntry;
use crate::transport::number::Number;
use crate::transport::number::rgb::Rgb;
use crate::transport::rays::sampler::dot;

/// The normal of a smooth surface.
const NORMAL: [f32; 3] = [0.0, 0.0, 1.0];

/// A smooth interface; `eta` is the index inside over that outside.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Dielectric<N> {
    pub eta: N,
    /// Colour factors of reflected and of transmitted light.
    pub reflection: Rgb<N>,
    pub transmission: Rgb<N>,
}

impl<N: Number> Dielectric<N> {
    /// The factor of the mirror image or of the refracted direction, for radiance, which refraction divides by the
    /// squared relative index.
    #[inline(always)]
    pub fn discrete(&self, wi: [f32; 3], lobe: Lobe) -> Rgb<N> {
        let f = fresnel(N::lift(wi[2]), self.eta);
        match lobe {
            Lobe::Reflection => self.reflection * Rgb::splat(f),
            Lobe::Transmission => {
                let ti = relative_index(N::lift(wi[2]), self.eta).recip();
                self.transmission * Rgb::splat((N::lift(1.0) - f) * ti * ti)
            }
            _ => Rgb::zero(),
        }
    }

    /// Derivatives of [`Self::discrete`], weighted by `d`, for the refracted direction as it is: that of `eta` is not
    /// complete, because another index refracts elsewhere.
    #[inline]
    pub fn discrete_adjoint(&self, wi: [f32; 3], lobe: Lobe, d: Rgb<N>) -> Self {
        let [f, _, by_eta] = fresnel_slopes(N::lift(wi[2]), self.eta);
        let zero = Rgb::zero();
        match lobe {
            Lobe::Reflection => Self {
                eta: weigh(d, self.reflection) * by_eta,
                reflection: d * Rgb::splat(f),
                transmission: zero,
            },
            Lobe::Transmission => {
                let ti = relative_index(N::lift(wi[2]), self.eta).recip();
                let square = ti * ti;
                let passed = N::lift(1.0) - f;
                // ti is 1 / eta from outside and eta from inside.
                let gathering = N::lift(if wi[2] < 0.0 { 2.0 } else { -2.0 }) * square / self.eta;
                Self {
                    eta: weigh(d, self.transmission) * (passed * gathering - by_eta * square),
                    reflection: zero,
                    transmission: d * Rgb::splat(passed * square),
                }
            }
            _ => Self {
                eta: N::lift(0.0),
                reflection: zero,
                transmission: zero,
            },
        }
    }
}

impl Dielectric<f32> {
    /// The mirror image with the probability of the reflectance, else the refracted direction.
    #[inline]
    pub fn sample(&self, wi: [f32; 3], u1: f32, _u2: [f32; 2]) -> Option<LobeSample> {
        if wi[2] == 0.0 {
            return None;
        }
        let [reflected, transmitted] = self.both(wi);
        Some(if u1 < reflected.pdf { reflected } else { transmitted })
    }

    /// The mirror image and the refracted direction.
    #[inline(always)]
    pub fn both(&self, wi: [f32; 3]) -> [LobeSample; 2] {
        let f = fresnel(wi[2], self.eta);
        let it = relative_index(wi[2], self.eta);
        let transmitted = LobeSample {
            direction: refracted(wi, NORMAL, 1.0 / it, refracted_cosine(wi[2], self.eta)),
            pdf: 1.0 - f,
            lobe: Lobe::Transmission,
            eta: it,
        };
        [mirror_image(wi, f), transmitted]
    }
}

/// The mirror image of `wi`, drawn with this probability.
#[inline(always)]
pub fn mirror_image(wi: [f32; 3], probability: f32) -> LobeSample {
    LobeSample {
        direction: [-wi[0], -wi[1], wi[2]],
        pdf: probability,
        lobe: Lobe::Reflection,
        eta: 1.0,
    }
}

/// A plate so thin that light leaves it where it entered, in the direction it came; `eta` is its index over that around
/// it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ThinDielectric<N> {
    pub eta: N,
    /// Colour factors of reflected and of transmitted light.
    pub reflection: Rgb<N>,
    pub transmission: Rgb<N>,
}

impl<N: Number> ThinDielectric<N> {
    /// The factor of the mirror image, or of the direction straight on ([`Lobe::Null`]).
    #[inline]
    pub fn discrete(&self, wi: [f32; 3], lobe: Lobe) -> Rgb<N> {
        let f = plate(fresnel(N::lift(wi[2].abs()), self.eta));
        match lobe {
            Lobe::Reflection => self.reflection * Rgb::splat(f),
            Lobe::Null => self.transmission * Rgb::splat(N::lift(1.0) - f),
            _ => Rgb::zero(),
        }
    }

    /// Derivatives of [`Self::discrete`], weighted by `d`.
    #[inline]
    pub fn discrete_adjoint(&self, wi: [f32; 3], lobe: Lobe, d: Rgb<N>) -> Self {
        let [single, _, by_eta] = fresnel_slopes(N::lift(wi[2].abs()), self.eta);
        let (f, by_eta) = (plate(single), plate_slope(single) * by_eta);
        let (zero, none) = (Rgb::zero(), N::lift(0.0));
        let (eta, reflection, transmission) = match lobe {
            Lobe::Reflection => (weigh(d, self.reflection) * by_eta, d * Rgb::splat(f), zero),
            Lobe::Null => (
                -weigh(d, self.transmission) * by_eta,
                zero,
                d * Rgb::splat(N::lift(1.0) - f),
            ),
            _ => (none, zero, zero),
        };
        Self {
            eta,
            reflection,
            transmission,
        }
    }
}

impl ThinDielectric<f32> {
    /// The mirror image with the probability of the reflectance, else straight on.
    #[inline]
    pub fn sample(&self, wi: [f32; 3], u1: f32, _u2: [f32; 2]) -> Option<LobeSample> {
        if wi[2] == 0.0 {
            return None;
        }
        let f = plate(fresnel(wi[2].abs(), self.eta));
        Some(if u1 < f {
            mirror_image(wi, f)
        } else {
            LobeSample {
                direction: wi.each(|x| -x),
                pdf: 1.0 - f,
                lobe: Lobe::Null,
                eta: 1.0,
            }
        })
    }
}

/// A rough interface; `eta`, the index inside over that outside, is not one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RoughDielectric<N> {
    pub eta: N,
    pub alpha_u: N,
    pub alpha_v: N,
    /// Colour factors of reflected and of transmitted light.
    pub reflection: Rgb<N>,
    pub transmission: Rgb<N>,
    pub distribution: Distribution,
    /// Whether only visible normals are sampled.
    pub visible: bool,
}

impl<N: Number> RoughDielectric<N> {
    #[inline]
    fn facets(&self) -> Microfacets<N> {
        Microfacets::new(self.distribution, [self.alpha_u, self.alpha_v], self.visible)
    }

    /// The value for radiance times the cosine of `wo`.
    #[inline]
    pub fn eval(&self, wi: [N; 3], wo: [N; 3]) -> Rgb<N> {
        let sides = wi[2] * wo[2];
        if sides.above(0.0) {
            let value = self.facets().reflection(above(wi, wi), above(wi, wo));
            let f = fresnel(signed_mirror_cosine(wi, wo), self.eta);
            self.reflection * Rgb::splat(f * value)
        } else if sides.below(0.0) {
            self.transmission * Rgb::splat(refraction(&self.facets(), self.eta, wi, wo))
        } else {
            Rgb::zero()
        }
    }

    /// Derivatives of [`Self::eval`], weighted by `d`. Roughnesses that are clamped have none.
    #[inline]
    pub fn eval_adjoint(&self, wi: [N; 3], wo: [N; 3], d: Rgb<N>) -> Self {
        let (none, zero) = (N::lift(0.0), Rgb::zero());
        let mut out = Self {
            eta: none,
            alpha_u: none,
            alpha_v: none,
            reflection: zero,
            transmission: zero,
            ..*self
        };
        let sides = wi[2] * wo[2];
        let alpha;
        if sides.above(0.0) {
            let (value, slopes) = self.facets().reflection_slopes(above(wi, wi), above(wi, wo));
            let [f, _, by_eta] = fresnel_slopes(signed_mirror_cosine(wi, wo), self.eta);
            let weight = weigh(d, self.reflection);
            out.eta = weight * by_eta * value;
            out.reflection = d * Rgb::splat(f * value);
            alpha = slopes.each(|slope| weight * f * slope);
        } else if sides.below(0.0) {
            let (value, slopes, by_eta) = refraction_slopes(&self.facets(), self.eta, wi, wo);
            let weight = weigh(d, self.transmission);
            out.eta = weight * by_eta;
            out.transmission = d * Rgb::splat(value);
            alpha = slopes.each(|slope| weight * slope);
        } else {
            return out;
        }
        out.alpha_u = unclamped(self.alpha_u, alpha[0]);
        out.alpha_v = unclamped(self.alpha_v, alpha[1]);
        out
    }

    /// The gradients of [`Self::eval`], weighted by `d`, by the directions.
    #[inline]
    pub fn gradients(&self, wi: [N; 3], wo: [N; 3], d: Rgb<N>) -> Gradients<N> {
        if (wi[2] * wo[2]).above(0.0) {
            return reflection_gradients(&self.facets(), self.eta, wi, wo, weigh(d, self.reflection));
        }
        refraction_gradients(&self.facets(), self.eta, wi, wo, weigh(d, self.transmission))
    }
}

/// The cosine between `wi` and the upward half vector of `wi` and `wo`, both on one side; negative if they are below.
#[inline(always)]
pub fn signed_mirror_cosine<N: Number>(wi: [N; 3], wo: [N; 3]) -> N {
    let cosine = mirror_cosine(wi, wo);
    if wi[2].below(0.0) { -cosine } else { cosine }
}

/// The value of a rough interface of index `eta` for radiance transmitted from `wo` to `wi`, on the other side, times
/// the cosine of `wo`: the factor e² of the solid angles and 1 / e² of the radiance cancel.
#[inline]
pub fn refraction<N: Number>(facets: &Microfacets<N>, eta: N, wi: [N; 3], wo: [N; 3]) -> N {
    let e = relative_index(wi[2], eta);
    let (i, o) = (above(wi, wi), above(wi, wo));
    let value = facets.refraction(i, o, e);
    if !value.above(0.0) {
        return N::lift(0.0);
    }
    let Some(bend) = Bend::new(i, o, e) else {
        return N::lift(0.0);
    };
    (N::lift(1.0) - fresnel(bend.wi_m, e)) * value
}

/// [`refraction`] and its derivatives by the two roughnesses and by `eta`.
#[inline]
pub fn refraction_slopes<N: Number>(facets: &Microfacets<N>, eta: N, wi: [N; 3], wo: [N; 3]) -> (N, [N; 2], N) {
    let e = relative_index(wi[2], eta);
    let (i, o) = (above(wi, wi), above(wi, wo));
    let zero = N::lift(0.0);
    let (value, slopes, by_e) = facets.refraction_slopes(i, o, e);
    let Some(bend) = Bend::new(i, o, e).filter(|_| value.above(0.0)) else {
        return (zero, [zero; 2], zero);
    };
    let [f, by_cosine, by_index] = fresnel_slopes(bend.wi_m, e);
    let passed = N::lift(1.0) - f;
    // The half vector turns with the index, so that its cosine with `wi` changes.
    let turning = (inner(i, o) - bend.wi_m * inner(o, bend.m)) / bend.length;
    let by_e = passed * by_e - value * (by_index + by_cosine * turning);
    let by_eta = if wi[2].below(0.0) { -by_e * e * e } else { by_e };
    (passed * value, slopes.each(|slope| passed * slope), by_eta)
}

/// The gradients of a rough interface's reflection by the directions, which are on one side, times `weight`.
#[inline]
pub fn reflection_gradients<N: Number>(
    facets: &Microfacets<N>,
    eta: N,
    wi: [N; 3],
    wo: [N; 3],
    weight: N,
) -> Gradients<N> {
    let (i, o) = (above(wi, wi), above(wi, wo));
    let [f, slope, _] = fresnel_slopes(signed_mirror_cosine(wi, wo), eta);
    let weight = weight * facets.reflection(i, o);
    let by_cosine = if wi[2].below(0.0) { -slope } else { slope } * weight;
    let along = facets.reflection_gradients(i, o);
    mirror_gradients(i, o, along, weight * f, by_cosine).each(|by| above(wi, by))
}

/// The gradients of [`refraction`] by the directions, times `weight`; zero where they are on one side.
#[inline]
pub fn refraction_gradients<N: Number>(
    facets: &Microfacets<N>,
    eta: N,
    wi: [N; 3],
    wo: [N; 3],
    weight: N,
) -> Gradients<N> {
    let (i, o) = (above(wi, wi), above(wi, wo));
    let e = relative_index(wi[2], eta);
    let value = facets.refraction(i, o, e);
    let Some(bend) = Bend::new(i, o, e).filter(|_| o[2].below(0.0) && value.above(0.0)) else {
        return no_gradients();
    };
    let [f, by_cosine, _] = fresnel_slopes(bend.wi_m, e);
    let passed = N::lift(1.0) - f;
    if !passed.above(0.0) {
        return no_gradients();
    }
    let along = facets.refraction_gradients(i, o, e, &bend, -by_cosine / passed);
    let value = passed * value * weight;
    along.each(|by| above(wi, by.each(|x| x * value)))
}

impl RoughDielectric<f32> {
    /// The distribution that normals are sampled from: wider without visible normals, whose weights would grow at
    /// grazing angles (Walter2007).
    #[inline]
    fn sampled_facets(&self, wi: [f32; 3]) -> Microfacets<f32> {
        let wider = if self.visible {
            1.0
        } else {
            1.2 - 0.2 * wi[2].abs().sqrt()
        };
        let mut facets = self.facets();
        facets.alpha = facets.alpha.each(|alpha| alpha * wider);
        facets
    }

    /// The pdf by solid angle with which [`Self::sample`] draws `wo`.
    #[inline]
    pub fn pdf(&self, wi: [f32; 3], wo: [f32; 3]) -> f32 {
        let sides = wi[2] * wo[2];
        let facets = self.sampled_facets(wi);
        if sides > 0.0 {
            let f = fresnel(signed_mirror_cosine(wi, wo), self.eta);
            f * facets.reflection_pdf(above(wi, wi), above(wi, wo))
        } else if sides < 0.0 {
            let [pdf, f] = refraction_pdf(&facets, self.eta, wi, wo);
            (1.0 - f) * pdf
        } else {
            0.0
        }
    }

    /// Mirrors `wi` at a sampled normal with the probability of the reflectance, else refracts it there; None if that
    /// is on the wrong side of the surface.
    #[inline]
    pub fn sample(&self, wi: [f32; 3], u1: f32, u2: [f32; 2]) -> Option<LobeSample> {
        if wi[2] == 0.0 {
            return None;
        }
        let m = self.sampled_facets(wi).sample_normal(above(wi, wi), u2);
        let cosine = dot(wi, m);
        if cosine * wi[2] <= 0.0 {
            return None;
        }
        let mirrors = u1 < fresnel(cosine, self.eta);
        let direction = if mirrors {
            mirrored(wi, m)
        } else {
            refracted_at(wi, m, self.eta)
        };
        if mirrors != (direction[2] * wi[2] > 0.0) {
            return None;
        }
        let eta = if mirrors { 1.0 } else { relative_index(wi[2], self.eta) };
        smooth_sample(direction, self.pdf(wi, direction)).map(|sample| LobeSample { eta, ..sample })
    }
}

/// `wi` refracted at the upper normal `m`.
#[inline]
pub fn refracted_at(wi: [f32; 3], m: [f32; 3], eta: f32) -> [f32; 3] {
    let cosine = dot(wi, m);
    refracted(wi, m, 1.0 / relative_index(cosine, eta), refracted_cosine(cosine, eta))
}

/// The pdf of `wo` on the other side, if `wi` is refracted at sampled normals, and the reflectance at its normal.
#[inline]
pub fn refraction_pdf(facets: &Microfacets<f32>, eta: f32, wi: [f32; 3], wo: [f32; 3]) -> [f32; 2] {
    let e = relative_index(wi[2], eta);
    let (i, o) = (above(wi, wi), above(wi, wo));
    Bend::new(i, o, e).map_or([0.0; 2], |bend| {
        let jacobian = -e * e * bend.wo_m / bend.square;
        [facets.pdf(i, bend.m) * jacobian, fresnel(bend.wi_m, e)]
    })
}
