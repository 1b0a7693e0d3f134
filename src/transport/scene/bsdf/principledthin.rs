//! The principled BSDF of a thin sheet, whose two sides look alike and which light leaves where it entered (Burley2015).

use super::conductor::{mirror_cosine, mirror_gradients, smooth_sample};
use super::disney::{Diffusion, INV_PI, disney_alpha, disney_alpha_adjoint, lerp, tint, tint_adjoint};
use super::fresnel::{
    fresnel, fresnel_slopes, normal_reflectance, normal_reflectance_slope, schlick_slope, schlick_weight,
};
use super::local::{
    Gradients, LobeSample, above, add_scaled, cosine_hemisphere, flipped, halfway, inner, mirrored, no_gradients,
    upright, weigh,
};
use super::microfacet::{Distribution, Microfacets};
use super::principled::lobe_shares;
use crate::each::EachEntry;
use crate::transport::number::Number;
use crate::transport::number::rgb::Rgb;

/// The roughness of specular transmission is `roughness` · (0.65 eta - 0.35), clamped to [0, 1] (Burley2015).
const WIDENING: [f32; 2] = [0.65, -0.35];

/// A thin sheet. All but `eta`, which is at least one, and `diff_trans`, which is at most two, lie in [0, 1].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PrincipledThin<N> {
    pub base_color: Rgb<N>,
    pub roughness: N,
    pub anisotropic: N,
    pub spec_trans: N,
    pub eta: N,
    pub spec_tint: N,
    pub sheen: N,
    pub sheen_tint: N,
    pub flatness: N,
    /// Twice the share of diffuse light that leaves on the other side.
    pub diff_trans: N,
    /// Weights of the lobes in sampling: diffuse reflection and transmission, specular reflection and transmission.
    pub rates: [f32; 4],
    /// The least share of the samples that each lobe is given: above zero, lobes whose factors are zero have derivatives
    /// of finite variance.
    pub least_share: f32,
}

impl<N: Number> PrincipledThin<N> {
    #[inline]
    fn facets(&self) -> Microfacets<N> {
        let alpha = disney_alpha(self.roughness, self.anisotropic);
        Microfacets::new(Distribution::Ggx, alpha, true)
    }

    /// The roughness of specular transmission, and its derivatives by roughness and by index.
    #[inline]
    fn widened(&self) -> [N; 3] {
        let factor = N::lift(WIDENING[0]) * self.eta + N::lift(WIDENING[1]);
        let roughness = self.roughness * factor;
        if roughness.below(0.0) || roughness.above(1.0) {
            let bound = if roughness.above(1.0) { 1.0 } else { 0.0 };
            return [N::lift(bound), N::lift(0.0), N::lift(0.0)];
        }
        [roughness, factor, self.roughness * N::lift(WIDENING[0])]
    }

    #[inline]
    fn widened_facets(&self) -> Microfacets<N> {
        let alpha = disney_alpha(self.widened()[0], self.anisotropic);
        Microfacets::new(Distribution::Ggx, alpha, true)
    }

    /// The value times the cosine of `wo`.
    #[inline]
    pub fn eval(&self, wi: [N; 3], wo: [N; 3]) -> Rgb<N> {
        let (i, o) = (above(wi, wi), above(wi, wo));
        let one = N::lift(1.0);
        let through = N::lift(0.5) * self.diff_trans;
        let solid = one - self.spec_trans;
        if !i[2].above(0.0) || !(o[2].above(0.0) || o[2].below(0.0)) {
            return Rgb::zero();
        }
        if o[2].below(0.0) {
            let diffuse = solid * through * (-o[2] * N::lift(INV_PI));
            let mirrored = flipped(o);
            let mut value = diffuse;
            if passes(i, o) {
                let f = fresnel(mirror_cosine(i, mirrored), self.eta);
                value += self.spec_trans * (one - f) * self.widened_facets().reflection(i, mirrored);
            }
            return self.base_color * Rgb::splat(value);
        }
        let cosine = mirror_cosine(i, o);
        let mirrors = self.spec_trans * self.facets().reflection(i, o);
        let f = fresnel(cosine, self.eta);
        let weight = schlick_weight(cosine);
        let (tint, r0) = (tint(self.base_color), normal_reflectance(self.eta));
        let diffusion = Diffusion::new(i, o);
        let solid = solid * (one - through) * o[2];
        let shape = solid * diffusion.shape(self.roughness, self.flatness) * N::lift(INV_PI);
        let sheen = solid * self.sheen * diffusion.sheen;
        let channel = |c: usize| {
            lerp(f, lerp(tint[c] * r0, one, weight), self.spec_tint) * mirrors
                + self.base_color[c] * shape
                + sheen * lerp(one, tint[c], self.sheen_tint)
        };
        Rgb([0, 1, 2].each(channel))
    }

    /// Derivatives of [`Self::eval`], weighted by `d`.
    #[inline]
    pub fn eval_adjoint(&self, wi: [N; 3], wo: [N; 3], d: Rgb<N>) -> Self {
        let (none, one) = (N::lift(0.0), N::lift(1.0));
        let mut out = Self {
            base_color: Rgb::zero(),
            roughness: none,
            anisotropic: none,
            spec_trans: none,
            eta: none,
            spec_tint: none,
            sheen: none,
            sheen_tint: none,
            flatness: none,
            diff_trans: none,
            ..*self
        };
        let (i, o) = (above(wi, wi), above(wi, wo));
        if !i[2].above(0.0) || !(o[2].above(0.0) || o[2].below(0.0)) {
            return out;
        }
        let half = N::lift(0.5);
        let through = half * self.diff_trans;
        let solid = one - self.spec_trans;
        if o[2].below(0.0) {
            self.transmission_adjoint(i, o, d, &mut out);
            return out;
        }
        let cosine = mirror_cosine(i, o);
        let (mirrors, slopes) = self.facets().reflection_slopes(i, o);
        let [f, _, f_by_eta] = fresnel_slopes(cosine, self.eta);
        let weight = schlick_weight(cosine);
        let (tint, r0) = (tint(self.base_color), normal_reflectance(self.eta));
        let diffusion = Diffusion::new(i, o);
        let [shape, by_roughness, by_flatness] = diffusion.shape_slopes(self.roughness, self.flatness);
        let shape = shape * N::lift(INV_PI);
        let fuzz = diffusion.sheen;
        let share = solid * (one - through) * o[2];
        let (mut by_tint, mut by_mirrors, mut by_f, mut by_r0) = (Rgb::zero(), none, none, none);
        let (mut by_shape, mut by_sheen) = (none, none);
        for c in 0..3 {
            let tinted = lerp(tint[c] * r0, one, weight);
            by_mirrors += d[c] * lerp(f, tinted, self.spec_tint);
            let d_mirror = d[c] * mirrors * self.spec_trans;
            out.spec_tint += d_mirror * (tinted - f);
            by_f += d_mirror * (one - self.spec_tint);
            let d_tinted = d_mirror * self.spec_tint * (one - weight);
            by_r0 += d_tinted * tint[c];
            by_tint[c] += d_tinted * r0;
            out.base_color[c] = d[c] * share * shape;
            by_shape += d[c] * self.base_color[c];
            by_sheen += d[c] * lerp(one, tint[c], self.sheen_tint);
            let d_sheen = d[c] * share * self.sheen * fuzz;
            out.sheen_tint += d_sheen * (tint[c] - one);
            by_tint[c] += d_sheen * self.sheen_tint;
        }
        out.base_color += tint_adjoint(self.base_color, by_tint);
        out.eta = by_f * f_by_eta + by_r0 * normal_reflectance_slope(self.eta);
        out.flatness = by_shape * share * by_flatness * N::lift(INV_PI);
        out.sheen = by_sheen * share * fuzz;
        // The derivative by the factor that the diffuse lobe and sheen share.
        let by_share = (by_shape * shape + by_sheen * self.sheen * fuzz) * o[2];
        out.diff_trans = -half * solid * by_share;
        out.spec_trans = by_mirrors * mirrors - (one - through) * by_share;
        let by_alpha = slopes.each(|slope| by_mirrors * self.spec_trans * slope);
        let [roughness, anisotropic] = disney_alpha_adjoint(self.roughness, self.anisotropic, by_alpha);
        out.roughness = roughness + by_shape * share * by_roughness * N::lift(INV_PI);
        out.anisotropic = anisotropic;
        out
    }

    /// The gradients of [`Self::eval`], weighted by `d`, by the directions.
    #[inline]
    pub fn gradients(&self, wi: [N; 3], wo: [N; 3], d: Rgb<N>) -> Gradients<N> {
        let (i, o) = (above(wi, wi), above(wi, wo));
        if !i[2].above(0.0) || !(o[2].above(0.0) || o[2].below(0.0)) {
            return no_gradients();
        }
        self.upper_gradients(i, o, d).each(|by| above(wi, by))
    }

    /// [`Self::gradients`] for directions of which `i` is on the upper side.
    #[inline]
    fn upper_gradients(&self, i: [N; 3], o: [N; 3], d: Rgb<N>) -> Gradients<N> {
        let one = N::lift(1.0);
        let through = N::lift(0.5) * self.diff_trans;
        let solid = (one - self.spec_trans) * N::lift(INV_PI);
        if o[2].below(0.0) {
            let weight = weigh(d, self.base_color);
            let [by_i, by_o] = self.transmission_gradients(i, o).each(|by| by.each(|x| x * weight));
            return [by_i, add_scaled(by_o, upright(-weight * solid * through), one)];
        }
        let (cosine, facets) = (mirror_cosine(i, o), self.facets());
        // The specular reflection, and its derivative by the cosine between a direction and the half vector.
        let mirrors = self.spec_trans * facets.reflection(i, o);
        let (weight, weight_slope) = (schlick_weight(cosine), schlick_slope(cosine));
        let [f, f_slope, _] = fresnel_slopes(cosine, self.eta);
        let (plain_tint, r0) = (tint(self.base_color), normal_reflectance(self.eta));
        let (mut glossy, mut by_cosine) = (N::lift(0.0), N::lift(0.0));
        for c in 0..3 {
            let base = plain_tint[c] * r0;
            glossy += d[c] * lerp(f, lerp(base, one, weight), self.spec_tint);
            by_cosine += d[c] * lerp(f_slope, (one - base) * weight_slope, self.spec_tint);
        }
        // Diffuse lobe and sheen, without the cosine of `o`.
        let diffusion = Diffusion::new(i, o);
        let shape = diffusion.shape(self.roughness, self.flatness);
        let [shape_i, shape_o] = diffusion.shape_by_cosines(self.roughness, self.flatness);
        let [shape_m, sheen_m] = diffusion.by_mirror_cosine(self.roughness, self.flatness, cosine);
        let diffuse = weigh(d, self.base_color) * solid * (one - through);
        let sheen_tint = plain_tint.map(|x| lerp(one, x, self.sheen_tint));
        let sheen = weigh(d, sheen_tint) * (one - self.spec_trans) * (one - through) * self.sheen;
        let all = diffuse * shape + sheen * diffusion.sheen;
        let by_cosine = by_cosine * mirrors + (diffuse * shape_m + sheen * sheen_m) * o[2];
        let along = facets.reflection_gradients(i, o);
        let mirrored = mirror_gradients(i, o, along, glossy * mirrors, by_cosine);
        let cosines = [diffuse * shape_i * o[2], diffuse * shape_o * o[2] + all].each(upright);
        [0, 1].each(|k| add_scaled(cosines[k], mirrored[k], one))
    }

    /// The gradients of the specular transmission, over the base colour.
    #[inline]
    fn transmission_gradients(&self, i: [N; 3], o: [N; 3]) -> Gradients<N> {
        if !passes(i, o) {
            return no_gradients();
        }
        let mirrored = flipped(o);
        let facets = self.widened_facets();
        let [f, by_cosine, _] = fresnel_slopes(mirror_cosine(i, mirrored), self.eta);
        let mirrors = self.spec_trans * facets.reflection(i, mirrored);
        let along = facets.reflection_gradients(i, mirrored);
        let value = (N::lift(1.0) - f) * mirrors;
        let [by_i, by_mirrored] = mirror_gradients(i, mirrored, along, value, -by_cosine * mirrors);
        [by_i, flipped(by_mirrored)]
    }

    /// Derivatives of [`Self::eval`] for `o` below the sheet, weighted by `d`.
    #[inline]
    fn transmission_adjoint(&self, i: [N; 3], o: [N; 3], d: Rgb<N>, out: &mut Self) {
        let (none, one, half) = (N::lift(0.0), N::lift(1.0), N::lift(0.5));
        let through = half * self.diff_trans;
        let solid = one - self.spec_trans;
        let lambert = -o[2] * N::lift(INV_PI);
        let weight = weigh(d, self.base_color);
        let mut glossy = none;
        if passes(i, o) {
            let mirrored = flipped(o);
            let [f, _, f_by_eta] = fresnel_slopes(mirror_cosine(i, mirrored), self.eta);
            let (value, slopes) = self.widened_facets().reflection_slopes(i, mirrored);
            let passed = one - f;
            glossy = passed * value;
            let by_alpha = slopes.each(|slope| weight * self.spec_trans * passed * slope);
            let [widened, by_roughness, by_eta] = self.widened();
            let [by_widened, by_anisotropic] = disney_alpha_adjoint(widened, self.anisotropic, by_alpha);
            out.roughness = by_widened * by_roughness;
            out.anisotropic = by_anisotropic;
            out.eta = by_widened * by_eta - weight * self.spec_trans * f_by_eta * value;
        }
        out.base_color = d * Rgb::splat(solid * through * lambert + self.spec_trans * glossy);
        out.spec_trans = weight * (glossy - through * lambert);
        out.diff_trans = weight * half * solid * lambert;
    }
}

/// Whether `o`, below the sheet, has a negative cosine with the half vector of `i` and the mirror image of `o`.
#[inline]
fn passes<N: Number>(i: [N; 3], o: [N; 3]) -> bool {
    inner(o, halfway(i, flipped(o))).below(0.0)
}

/// The lobes, in the order in which draws choose them.
const DIFFUSE: usize = 0;
const THROUGH: usize = 1;
const MIRROR: usize = 2;
const STRAIGHT: usize = 3;

impl PrincipledThin<f32> {
    /// The probabilities of the lobes.
    #[inline]
    fn probabilities(&self) -> [f32; 4] {
        let (solid, through) = (1.0 - self.spec_trans, 0.5 * self.diff_trans);
        let [diffuse, transmitted, mirror, straight] = self.rates;
        lobe_shares(
            [
                diffuse * solid * (1.0 - through),
                transmitted * solid * through,
                mirror * 0.5 * self.spec_trans,
                straight * 0.5 * self.spec_trans,
            ],
            self.least_share,
        )
    }

    /// The pdf by solid angle with which [`Self::sample`] draws `wo`.
    #[inline]
    pub fn pdf(&self, wi: [f32; 3], wo: [f32; 3]) -> f32 {
        let (i, o) = (above(wi, wi), above(wi, wo));
        let shares = self.probabilities();
        if i[2] == 0.0 || o[2] == 0.0 {
            return 0.0;
        }
        if o[2] > 0.0 {
            return shares[MIRROR] * self.facets().reflection_pdf(i, o) + shares[DIFFUSE] * o[2] * INV_PI;
        }
        let glossy = if passes(i, o) {
            self.widened_facets().reflection_pdf(i, flipped(o))
        } else {
            0.0
        };
        shares[STRAIGHT] * glossy - shares[THROUGH] * o[2] * INV_PI
    }

    /// Draws a direction from one of the lobes; None if that is on the wrong side of the sheet.
    #[inline]
    pub fn sample(&self, wi: [f32; 3], u1: f32, u2: [f32; 2]) -> Option<LobeSample> {
        if wi[2] == 0.0 {
            return None;
        }
        let shares = self.probabilities();
        let diffuse = shares[DIFFUSE] + shares[THROUGH];
        let i = above(wi, wi);
        let straight = u1 >= diffuse + shares[MIRROR];
        let through = straight || (u1 < diffuse && u1 >= shares[DIFFUSE]);
        let o = if u1 < diffuse {
            cosine_hemisphere(u2)
        } else {
            let facets = if straight { self.widened_facets() } else { self.facets() };
            mirrored(i, facets.sample_normal(i, u2))
        };
        if o[2] <= 0.0 || (straight && !passes(i, flipped(o))) {
            return None;
        }
        let direction = above(wi, if through { flipped(o) } else { o });
        smooth_sample(direction, self.pdf(wi, direction))
    }
}
