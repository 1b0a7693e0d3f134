//! The principled BSDF of a solid: a blend of metal, plastic and glass, with a clear coat and sheen (Burley2012, Burley2015).

use super::conductor::{mirror_cosine, mirror_gradients, smooth_sample};
use super::dielectric::{
    reflection_gradients, refracted_at, refraction, refraction_gradients, refraction_pdf, refraction_slopes,
    signed_mirror_cosine,
};
use super::disney::{Diffusion, INV_PI, disney_alpha, disney_alpha_adjoint, lerp, tint, tint_adjoint};
use super::fresnel::{
    fresnel, fresnel_slopes, normal_reflectance, normal_reflectance_slope, relative_index, schlick_slope,
    schlick_weight,
};
use super::local::{
    Gradients, LobeSample, above, add_scaled, cosine_hemisphere, halfway, mirrored, no_gradients, upright, weigh,
};
use super::microfacet::{Distribution, Microfacets, along_sphere};
use crate::each::EachEntry;
use crate::transport::number::Number;
use crate::transport::number::rgb::Rgb;
use crate::transport::rays::sampler::{circle, dot};

/// The clear coat's roughness at gloss 0 and at gloss 1, and that of its shadowing.
const COAT_ALPHA: [f32; 2] = [0.1, 0.001];
const COAT_SHADOWING: f32 = 0.25;
/// The clear coat's reflectance at normal incidence.
const COAT_REFLECTANCE: f32 = 0.04;

/// A principled BSDF. All but `eta`, which is at least one, lie in [0, 1].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Principled<N> {
    pub base_color: Rgb<N>,
    pub roughness: N,
    pub anisotropic: N,
    pub metallic: N,
    pub spec_trans: N,
    /// The index inside over that outside; see [`eta_of_specular`].
    pub eta: N,
    pub spec_tint: N,
    pub sheen: N,
    pub sheen_tint: N,
    pub flatness: N,
    pub clearcoat: N,
    pub clearcoat_gloss: N,
    /// Weights of the diffuse, the specular and the clear coat's lobe in sampling.
    pub rates: [f32; 3],
    /// The least share of the samples that each lobe is given on the upper side: above zero, lobes whose factors are
    /// zero have derivatives of finite variance.
    pub least_share: f32,
}

/// The index with the reflectance 0.08 `specular` at normal incidence.
#[inline]
pub fn eta_of_specular<N: Number>(specular: N) -> N {
    N::lift(2.0) / (N::lift(1.0) - (N::lift(0.08) * specular).sqrt()) - N::lift(1.0)
}

/// The derivative of [`eta_of_specular`]; at zero, where it is infinite, zero.
#[inline]
pub fn eta_of_specular_slope<N: Number>(specular: N) -> N {
    if !specular.above(0.0) {
        return N::lift(0.0);
    }
    let root = (N::lift(0.08) * specular).sqrt();
    let rest = N::lift(1.0) - root;
    N::lift(0.08) / (root * rest * rest)
}

/// The clear coat's density of normals (Burley2012), the derivative of its logarithm by the gloss, and its reflectance
/// with shadowing.
#[derive(Debug, Clone, Copy)]
struct ClearCoat<N> {
    density: N,
    slope: N,
    /// Reflectance times shadowing over four, and its derivative by the cosine between a direction and the half vector.
    factor: N,
    factor_slope: N,
}

impl<N: Number> ClearCoat<N> {
    #[inline]
    fn new(gloss: N, wi: [N; 3], wo: [N; 3]) -> Self {
        let alpha = lerp(N::lift(COAT_ALPHA[0]), N::lift(COAT_ALPHA[1]), gloss);
        let (density, slope) = coat_density(alpha, halfway(wi, wo));
        let shadowing = Microfacets::new(Distribution::Ggx, [N::lift(COAT_SHADOWING); 2], true);
        let [least, rest] = [COAT_REFLECTANCE, 1.0 - COAT_REFLECTANCE].each(N::lift);
        let cosine = mirror_cosine(wi, wo);
        let shadowing = N::lift(0.25) * shadowing.shadowing(wi) * shadowing.shadowing(wo);
        Self {
            density,
            slope: slope * (N::lift(COAT_ALPHA[1]) - N::lift(COAT_ALPHA[0])),
            factor: (least + rest * schlick_weight(cosine)) * shadowing,
            factor_slope: rest * schlick_slope(cosine) * shadowing,
        }
    }

    /// The gradients of the logarithm of density times shadowing by the two directions.
    #[inline]
    fn gradients(gloss: N, wi: [N; 3], wo: [N; 3]) -> Gradients<N> {
        let alpha = lerp(N::lift(COAT_ALPHA[0]), N::lift(COAT_ALPHA[1]), gloss);
        let shadowing = Microfacets::new(Distribution::Ggx, [N::lift(COAT_SHADOWING); 2], true);
        let h = [0, 1, 2].each(|a| wi[a] + wo[a]);
        let by_h = along_sphere(h, |m| coat_density_gradient(alpha, m));
        [wi, wo].each(|w| add_scaled(shadowing.shadowing_gradient(w), by_h, N::lift(1.0)))
    }
}

/// The gradient of the logarithm of [`coat_density`] by the normal's components.
#[inline]
fn coat_density_gradient<N: Number>(alpha: N, m: [N; 3]) -> [N; 3] {
    let square = alpha * alpha;
    let factor = N::lift(-2.0) / (m[0] * m[0] + m[1] * m[1] + square * m[2] * m[2]);
    [factor * m[0], factor * m[1], factor * square * m[2]]
}

/// The density and its logarithm's derivative by the roughness.
#[inline]
fn coat_density<N: Number>(alpha: N, m: [N; 3]) -> (N, N) {
    let two = N::lift(2.0);
    let square = alpha * alpha;
    let logarithm = two * alpha.ln();
    let below = m[0] * m[0] + m[1] * m[1] + square * m[2] * m[2];
    let above = square - N::lift(1.0);
    let density = above * N::lift(INV_PI) / (logarithm * below);
    let slope = two * alpha * (above.recip() - m[2] * m[2] / below) - two / (alpha * logarithm);
    (density, slope)
}

impl<N: Number> Principled<N> {
    #[inline]
    fn facets(&self) -> Microfacets<N> {
        let alpha = disney_alpha(self.roughness, self.anisotropic);
        Microfacets::new(Distribution::Ggx, alpha, true)
    }

    /// The shares of a diffuse base and of glass.
    #[inline(always)]
    fn shares(&self) -> [N; 2] {
        let one = N::lift(1.0);
        let dielectric = one - self.metallic;
        [dielectric * (one - self.spec_trans), dielectric * self.spec_trans]
    }

    /// The value for radiance times the cosine of `wo`.
    #[inline]
    pub fn eval(&self, wi: [N; 3], wo: [N; 3]) -> Rgb<N> {
        let [solid, glass] = self.shares();
        let sides = wi[2] * wo[2];
        if sides.below(0.0) {
            let value = glass * refraction(&self.facets(), self.eta, wi, wo);
            return self.base_color.map(root) * Rgb::splat(value);
        }
        if !sides.above(0.0) {
            return Rgb::zero();
        }
        let mirrors = self.facets().reflection(above(wi, wi), above(wi, wo));
        let f = fresnel(signed_mirror_cosine(wi, wo), self.eta);
        if wi[2].below(0.0) {
            return Rgb::splat(glass * f * mirrors);
        }
        let (one, cosine) = (N::lift(1.0), wo[2]);
        let weight = schlick_weight(mirror_cosine(wi, wo));
        let coat = ClearCoat::new(self.clearcoat_gloss, wi, wo);
        let diffusion = Diffusion::new(wi, wo);
        let shape = solid * diffusion.shape(self.roughness, self.flatness) * (N::lift(INV_PI) * cosine);
        let sheen = self.sheen * (one - self.metallic) * diffusion.sheen * cosine;
        let clear = self.clearcoat * coat.density * coat.factor * cosine;
        let (tint, r0) = (tint(self.base_color), normal_reflectance(self.eta));
        let channel = |c: usize| {
            let color = self.base_color[c];
            let metal = lerp(color, one, weight);
            let plain = lerp(f, lerp(tint[c] * r0, one, weight), self.spec_tint);
            lerp(plain, metal, self.metallic) * mirrors
                + clear
                + color * shape
                + sheen * lerp(one, tint[c], self.sheen_tint)
        };
        Rgb([0, 1, 2].each(channel))
    }

    /// Derivatives of [`Self::eval`], weighted by `d`. The root of a base colour of zero, which transmitted light is
    /// multiplied by, counts as constant there.
    #[inline]
    pub fn eval_adjoint(&self, wi: [N; 3], wo: [N; 3], d: Rgb<N>) -> Self {
        let (none, one) = (N::lift(0.0), N::lift(1.0));
        let mut out = Self {
            base_color: Rgb::zero(),
            roughness: none,
            anisotropic: none,
            metallic: none,
            spec_trans: none,
            eta: none,
            spec_tint: none,
            sheen: none,
            sheen_tint: none,
            flatness: none,
            clearcoat: none,
            clearcoat_gloss: none,
            ..*self
        };
        let [solid, glass] = self.shares();
        let (mut by_solid, mut by_glass) = (none, none);
        let by_alpha;
        let sides = wi[2] * wo[2];
        if sides.below(0.0) {
            let (value, slopes, by_eta) = refraction_slopes(&self.facets(), self.eta, wi, wo);
            let roots = self.base_color.map(root);
            let weight = weigh(d, roots);
            out.base_color = Rgb([0, 1, 2].each(|c| d[c] * glass * value * root_slope(roots[c])));
            by_glass = weight * value;
            out.eta = weight * glass * by_eta;
            by_alpha = slopes.each(|slope| weight * glass * slope);
        } else if sides.above(0.0) {
            let (mirrors, slopes) = self.facets().reflection_slopes(above(wi, wi), above(wi, wo));
            let [f, _, f_by_eta] = fresnel_slopes(signed_mirror_cosine(wi, wo), self.eta);
            if wi[2].below(0.0) {
                let weight = d.sum();
                by_glass = weight * f * mirrors;
                out.eta = weight * glass * f_by_eta * mirrors;
                by_alpha = slopes.each(|slope| weight * glass * f * slope);
            } else {
                let cosine = wo[2];
                let dielectric = one - self.metallic;
                let weight = schlick_weight(mirror_cosine(wi, wo));
                let (tint, r0) = (tint(self.base_color), normal_reflectance(self.eta));
                let coat = ClearCoat::new(self.clearcoat_gloss, wi, wo);
                let diffusion = Diffusion::new(wi, wo);
                let [shape, by_roughness, by_flatness] = diffusion.shape_slopes(self.roughness, self.flatness);
                let lambert = N::lift(INV_PI) * cosine;
                let sheen = diffusion.sheen * cosine;
                let (mut by_tint, mut by_mirrors, mut by_f, mut by_r0) = (Rgb::zero(), none, none, none);
                let (mut by_shape, mut by_sheen) = (none, none);
                for c in 0..3 {
                    let color = self.base_color[c];
                    let metal = lerp(color, one, weight);
                    let tinted = lerp(tint[c] * r0, one, weight);
                    let plain = lerp(f, tinted, self.spec_tint);
                    by_mirrors += d[c] * lerp(plain, metal, self.metallic);
                    let d_mirror = d[c] * mirrors;
                    out.metallic += d_mirror * (metal - plain);
                    out.base_color[c] += d_mirror * self.metallic * (one - weight) + d[c] * solid * shape * lambert;
                    let d_plain = d_mirror * dielectric;
                    out.spec_tint += d_plain * (tinted - f);
                    by_f += d_plain * (one - self.spec_tint);
                    let d_tinted = d_plain * self.spec_tint * (one - weight);
                    by_r0 += d_tinted * tint[c];
                    by_tint[c] += d_tinted * r0;
                    by_shape += d[c] * color * lambert;
                    by_sheen += d[c] * lerp(one, tint[c], self.sheen_tint);
                    let d_sheen = d[c] * self.sheen * dielectric * sheen;
                    out.sheen_tint += d_sheen * (tint[c] - one);
                    by_tint[c] += d_sheen * self.sheen_tint;
                }
                out.base_color += tint_adjoint(self.base_color, by_tint);
                out.eta = by_f * f_by_eta + by_r0 * normal_reflectance_slope(self.eta);
                by_alpha = slopes.each(|slope| by_mirrors * slope);
                by_solid = by_shape * shape;
                out.roughness = by_shape * solid * by_roughness;
                out.flatness = by_shape * solid * by_flatness;
                out.sheen = by_sheen * dielectric * sheen;
                out.metallic -= by_sheen * self.sheen * sheen;
                let clear = d.sum() * coat.density * coat.factor * cosine;
                out.clearcoat = clear;
                out.clearcoat_gloss = clear * self.clearcoat * coat.slope;
            }
        } else {
            return out;
        }
        let [by_roughness, by_anisotropic] = disney_alpha_adjoint(self.roughness, self.anisotropic, by_alpha);
        out.roughness += by_roughness;
        out.anisotropic = by_anisotropic;
        out.metallic -= by_solid * (one - self.spec_trans) + by_glass * self.spec_trans;
        out.spec_trans = (one - self.metallic) * (by_glass - by_solid);
        out
    }

    /// The gradients of [`Self::eval`], weighted by `d`, by the directions.
    #[inline]
    pub fn gradients(&self, wi: [N; 3], wo: [N; 3], d: Rgb<N>) -> Gradients<N> {
        let (sides, facets) = (wi[2] * wo[2], self.facets());
        let [solid, glass] = self.shares();
        if sides.below(0.0) {
            let weight = weigh(d, self.base_color.map(root)) * glass;
            return refraction_gradients(&facets, self.eta, wi, wo, weight);
        }
        if !sides.above(0.0) {
            return no_gradients();
        }
        if wi[2].below(0.0) {
            return reflection_gradients(&facets, self.eta, wi, wo, d.sum() * glass);
        }
        let (one, cosine) = (N::lift(1.0), mirror_cosine(wi, wo));
        // The specular reflection, and its derivative by the cosine between a direction and the half vector.
        let mirrors = facets.reflection(wi, wo);
        let (weight, weight_slope) = (schlick_weight(cosine), schlick_slope(cosine));
        let [f, f_slope, _] = fresnel_slopes(cosine, self.eta);
        let (plain_tint, r0) = (tint(self.base_color), normal_reflectance(self.eta));
        let (mut glossy, mut by_cosine) = (N::lift(0.0), N::lift(0.0));
        for c in 0..3 {
            let (color, base) = (self.base_color[c], plain_tint[c] * r0);
            let plain = lerp(f, lerp(base, one, weight), self.spec_tint);
            glossy += d[c] * lerp(plain, lerp(color, one, weight), self.metallic);
            let plain_slope = lerp(f_slope, (one - base) * weight_slope, self.spec_tint);
            by_cosine += d[c] * lerp(plain_slope, (one - color) * weight_slope, self.metallic);
        }
        // Diffuse lobe, sheen and clear coat, without the cosine of `wo`.
        let diffusion = Diffusion::new(wi, wo);
        let shape = diffusion.shape(self.roughness, self.flatness);
        let [shape_i, shape_o] = diffusion.shape_by_cosines(self.roughness, self.flatness);
        let [shape_m, sheen_m] = diffusion.by_mirror_cosine(self.roughness, self.flatness, cosine);
        let diffuse = weigh(d, self.base_color) * solid * N::lift(INV_PI);
        let sheen_tint = plain_tint.map(|x| lerp(one, x, self.sheen_tint));
        let sheen = weigh(d, sheen_tint) * self.sheen * (one - self.metallic);
        let coat = ClearCoat::new(self.clearcoat_gloss, wi, wo);
        let clear = d.sum() * self.clearcoat * coat.density;
        let all = diffuse * shape + sheen * diffusion.sheen + clear * coat.factor;
        let by_cosine = by_cosine * mirrors + (diffuse * shape_m + sheen * sheen_m + clear * coat.factor_slope) * wo[2];
        let along = facets.reflection_gradients(wi, wo);
        let mirrored = mirror_gradients(wi, wo, along, glossy * mirrors, by_cosine);
        let coated = ClearCoat::gradients(self.clearcoat_gloss, wi, wo);
        let cosines = [diffuse * shape_i * wo[2], diffuse * shape_o * wo[2] + all].each(upright);
        [0, 1].each(|k| {
            let sum = add_scaled(cosines[k], mirrored[k], one);
            add_scaled(sum, coated[k], clear * coat.factor * wo[2])
        })
    }
}

/// The square root, zero at zero.
#[inline(always)]
fn root<N: Number>(x: N) -> N {
    if x.above(0.0) { x.sqrt() } else { N::lift(0.0) }
}

/// The derivative of [`root`] from its result.
#[inline(always)]
fn root_slope<N: Number>(root: N) -> N {
    if root.above(0.0) {
        N::lift(0.5) / root
    } else {
        N::lift(0.0)
    }
}

/// Probabilities in proportion to `weights`, mixed with uniform ones so that each is at least `least`; zero if the weights are.
#[inline]
pub fn lobe_shares<const LOBES: usize>(weights: [f32; LOBES], least: f32) -> [f32; LOBES] {
    let sum: f32 = weights.iter().sum();
    if sum <= 0.0 {
        return [0.0; LOBES];
    }
    weights.each(|weight| least + (1.0 - LOBES as f32 * least) * (weight / sum))
}

impl Principled<f32> {
    /// The probabilities of the diffuse, the specular and the clear coat's lobe.
    #[inline]
    fn probabilities(&self, wi: [f32; 3]) -> [f32; 3] {
        if wi[2] <= 0.0 {
            return [0.0, 1.0, 0.0];
        }
        let [diffuse, specular, coat] = self.rates;
        let weights = [diffuse * self.shares()[0], specular, 0.25 * coat * self.clearcoat];
        lobe_shares(weights, self.least_share)
    }

    /// The probability that the specular lobe transmits at a normal of this Fresnel reflectance.
    #[inline]
    fn transmission(&self, wi: [f32; 3], reflectance: f32) -> f32 {
        if reflectance >= 1.0 {
            return 0.0;
        }
        let glass = if wi[2] > 0.0 { self.shares()[1] } else { 1.0 };
        (glass * (1.0 - reflectance)).clamp(self.least_share, 1.0 - self.least_share)
    }

    #[inline]
    fn coat_alpha(&self) -> f32 {
        lerp(COAT_ALPHA[0], COAT_ALPHA[1], self.clearcoat_gloss)
    }

    /// The pdf by solid angle with which [`Self::sample`] draws `wo`.
    #[inline]
    pub fn pdf(&self, wi: [f32; 3], wo: [f32; 3]) -> f32 {
        let [diffuse, specular, coat] = self.probabilities(wi);
        let sides = wi[2] * wo[2];
        if sides == 0.0 {
            return 0.0;
        }
        if sides < 0.0 {
            let [pdf, f] = refraction_pdf(&self.facets(), self.eta, wi, wo);
            return specular * self.transmission(wi, f) * pdf;
        }
        let f = fresnel(signed_mirror_cosine(wi, wo), self.eta);
        let mirror = specular * (1.0 - self.transmission(wi, f));
        let mut pdf = mirror * self.facets().reflection_pdf(above(wi, wi), above(wi, wo));
        if wi[2] > 0.0 {
            let m = halfway(wi, wo);
            let (density, _) = coat_density(self.coat_alpha(), m);
            let mirrored = 0.25 * density * m[2] / mirror_cosine(wi, wo).max(f32::MIN_POSITIVE);
            pdf += coat * mirrored + diffuse * wo[2] * INV_PI;
        }
        pdf
    }

    /// Draws a direction from one of the lobes; None if that is on the wrong side of the surface.
    #[inline]
    pub fn sample(&self, wi: [f32; 3], u1: f32, u2: [f32; 2]) -> Option<LobeSample> {
        if wi[2] == 0.0 {
            return None;
        }
        let [diffuse, specular, coat] = self.probabilities(wi);
        let mut it = 1.0;
        let mut crosses = false;
        let direction = if u1 < diffuse {
            cosine_hemisphere(u2)
        } else if u1 >= diffuse + specular && coat > 0.0 {
            mirrored(wi, coat_normal(self.coat_alpha(), u2))
        } else {
            let m = self.facets().sample_normal(above(wi, wi), u2);
            let transmission = self.transmission(wi, fresnel(dot(wi, m), self.eta));
            crosses = u1 < diffuse + specular * transmission;
            if crosses {
                it = relative_index(wi[2], self.eta);
                refracted_at(wi, m, self.eta)
            } else {
                mirrored(wi, m)
            }
        };
        if crosses == (direction[2] * wi[2] > 0.0) {
            return None;
        }
        smooth_sample(direction, self.pdf(wi, direction)).map(|sample| LobeSample { eta: it, ..sample })
    }
}

/// Samples a normal of the clear coat with the pdf of its density times the cosine.
#[inline]
fn coat_normal(alpha: f32, u: [f32; 2]) -> [f32; 3] {
    let square = alpha * alpha;
    let power = Number::exp(Number::ln(square) * (1.0 - u[0]));
    let sine = ((power - square).max(0.0) / (1.0 - square)).min(1.0);
    let [x, y] = circle(u[1]);
    let root = sine.sqrt();
    [root * x, root * y, (1.0 - sine).sqrt()]
}
