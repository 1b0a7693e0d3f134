//! BSDFs: values, pdfs, sampling, and the derivatives by their textures.
//!
//! A BSDF is on each side a mixture of leaves: its value is Σ w f, where the weight w of a leaf is a product of textures'
//! values and f is the leaf's own. Values include the cosine with the shading normal. A leaf is sampled with a
//! probability that is detached from its weight. Smooth lobes share a pdf, that of the mixture; a lobe that sends light
//! in one direction only has a probability.

pub mod beckmann;
pub mod conductor;
pub mod dielectric;
pub mod diffuse;
pub mod disney;
pub mod fresnel;
pub mod leaf;
pub mod local;
pub mod microfacet;
pub mod plastic;
pub mod principled;
pub mod principledthin;
pub mod relief;
pub mod transmittance;

use super::facing::facing;
use super::interaction::Interaction;
use super::records::{Fields, SceneView, Sink};
use super::shape::SurfacePoint;
use super::texture::{stencil, texture_adjoint, texture_is_wanted, texture_value};
use crate::each::EachEntry;
use crate::resident::layout::{self, FactorRecord, LEAF_TEXTURES, LeafRecord, NONE, bsdf};
use crate::transport::number::Number;
use crate::transport::number::rgb::Rgb;
use crate::transport::rays::sampler::Sampler;
use diffuse::{diffuse_adjoint, diffuse_eval, diffuse_pdf, diffuse_sample};
use leaf::{Model, Values};
use local::{Lobe, LobeSample, lift, torque};

/// The share of samples that choose among leaves regardless of their weights, where weights may change: without it, a
/// leaf of weight zero is never sampled and its weight gets no derivative.
const EXPLORED: f32 = 0.125;

/// A direction sampled from a BSDF.
#[derive(Debug, Clone, Copy)]
pub struct BsdfSample {
    pub direction: [f32; 3],
    /// The same in the local frame.
    pub wo: [f32; 3],
    /// Pdf by solid angle; for a lobe that is not smooth its probability.
    pub pdf: f32,
    pub lobe: Lobe,
    /// Index on the side of the direction over that on the side that the path comes from.
    pub eta: f32,
    /// The leaf that was sampled, among those of the side.
    pub leaf: usize,
}

/// Indices of a leaf's textures.
#[inline(always)]
pub(in crate::transport) fn textures(leaf: &LeafRecord) -> std::ops::Range<u32> {
    leaf.first_texture..leaf.first_texture + leaf.textures
}

/// The values of a leaf's textures at a point. Compiled once per number type, since `look` is called dynamically.
#[inline(never)]
fn values<'b, N: Number + 'b>(
    scene: &SceneView,
    look: &dyn Fn(u32) -> &'b [N],
    leaf: &LeafRecord,
    point: &SurfacePoint,
) -> Values<N> {
    let mut values = [Rgb::zero(); LEAF_TEXTURES];
    for i in 0..leaf.textures as usize {
        values[i] = texture_value(scene, look, leaf.first_texture + i as u32, point);
    }
    values
}

#[inline]
pub(super) fn factors<'a>(scene: &SceneView<'a>, leaf: &LeafRecord) -> &'a [FactorRecord] {
    &scene.factors[leaf.first_factor as usize..][..leaf.factors as usize]
}

/// Only the first so many leaves of a side are tested for facing the path; all others may be chosen. A GPU keeps a bit for each.
const FACED: usize = 32;

/// How leaves are chosen at a point: their count, the sum of their weights on the sampling side, and the least
/// probability of each, whatever its weight.
#[derive(Debug, Clone, Copy)]
struct Choice {
    count: usize,
    total: f32,
    least: f32,
}

/// How far the sum of all probabilities may be below one by rounding; if it is less, leaves are missing.
const ROUNDING_OF_SUM: f32 = 1e-5;

/// The probability with which a leaf of this weight is chosen.
#[inline]
fn choice_probability(choice: &Choice, weight: f32) -> f32 {
    let chosen = if choice.total > 0.0 { weight / choice.total } else { 0.0 };
    choice.least + (1.0 - choice.least * choice.count as f32) * chosen
}

/// The value of a number as f32, without derivatives: lobes that are not smooth have none by directions.
#[inline(always)]
fn narrow<N: Number>(x: N) -> f32 {
    x.value() as f32
}

/// Whether the leaf is diffuse in the surface's own frame.
#[inline(always)]
fn is_lambertian(leaf: &LeafRecord) -> bool {
    leaf.kind == layout::leaf::DIFFUSE && leaf.relief == NONE
}

/// Whether the leaf is Lambertian and alone: its value is its pdf times the reflectance.
#[inline(always)]
fn is_plain(leaf: &LeafRecord) -> bool {
    leaf.factors == 0 && is_lambertian(leaf)
}

/// A BSDF where a path meets it. Textures of the first leaf, mostly the only one, are looked up once for all that is asked
/// of it at this point.
#[derive(Debug)]
pub struct Bsdf<'a, N, F> {
    scene: &'a SceneView<'a>,
    fields: &'a F,
    at: &'a Interaction,
    /// Those on the side that the path comes from.
    leaves: &'a [LeafRecord],
    /// The first leaf on the integrand's and on the sampling side; None if it lets light pass or there is none.
    first: Option<Model<'a, N>>,
    first_sampled: Option<Model<'a, f32>>,
}

/// A BSDF with the parameters of one side of the fields (integrand or sampling), which `look` returns.
#[derive(Debug, Clone, Copy)]
struct Side<'b, 'a, M, L> {
    scene: &'a SceneView<'a>,
    at: &'a Interaction,
    leaves: &'a [LeafRecord],
    first: &'b Option<Model<'a, M>>,
    look: L,
}

impl<'a, M: Number + 'a, L: Fn(u32) -> &'a [M] + Copy> Side<'_, 'a, M, L> {
    /// The result of `ask` for a leaf's model, which exists already for the first leaf.
    #[inline(always)]
    fn ask<T>(&self, leaf: &LeafRecord, ask: impl Fn(&Model<M>) -> T) -> T {
        match self.first {
            Some(model) if std::ptr::eq(leaf, &self.leaves[0]) => ask(model),
            _ => ask(&Model::new(
                leaf,
                self.scene.coats,
                &values(self.scene, &self.look, leaf, &self.at.hit.point),
            )),
        }
    }

    /// The reflectance of a Lambertian leaf.
    #[inline(always)]
    fn reflectance(&self, leaf: &LeafRecord) -> Rgb<M> {
        match self.first {
            Some(Model::Diffuse(reflectance)) if std::ptr::eq(leaf, &self.leaves[0]) => *reflectance,
            _ => texture_value(self.scene, self.look, leaf.first_texture, &self.at.hit.point),
        }
    }

    /// A factor of a leaf's weight.
    #[inline]
    fn factor_value(&self, factor: &FactorRecord) -> M {
        let x = texture_value(self.scene, self.look, factor.texture, &self.at.hit.point)[0];
        if factor.complement == 1 { M::lift(1.0) - x } else { x }
    }

    /// A leaf's weight: the product of its factors.
    #[inline]
    fn leaf_weight(&self, leaf: &LeafRecord) -> M {
        let mut weight = M::lift(1.0);
        for factor in factors(self.scene, leaf) {
            weight *= self.factor_value(factor);
        }
        weight
    }

    /// The value of a leaf's smooth lobes.
    #[inline]
    fn leaf_eval(&self, leaf: &LeafRecord, wo: [f32; 3]) -> Rgb<M> {
        let seen =
            facing(self.scene, self.look, leaf, self.at).and_then(|facing| Some((facing.wi, facing.see(lift(wo))?)));
        match (leaf.kind, seen) {
            (layout::leaf::NULL, _) | (_, None) => Rgb::zero(),
            (_, Some((_, seen))) if is_lambertian(leaf) => diffuse_eval(self.reflectance(leaf), seen.wo),
            (_, Some((wi, seen))) => self.ask(leaf, |model| model.eval(wi, seen.wo)) * Rgb::splat(seen.factor),
        }
    }

    /// The factor of a leaf's lobe that is not smooth, which sends light along the local direction `wo`.
    #[inline]
    fn leaf_discrete(&self, leaf: &LeafRecord, (lobe, wo): (Lobe, [f32; 3])) -> Rgb<M> {
        let Some(facing) = facing(self.scene, self.look, leaf, self.at) else {
            return Rgb::zero();
        };
        let Some(seen) = facing.see(lift(wo)) else {
            return Rgb::zero();
        };
        let factor = Rgb::splat(seen.factor);
        match leaf.kind {
            layout::leaf::NULL => factor,
            _ => self.ask(leaf, |model| model.discrete(facing.wi.each(narrow), lobe)) * factor,
        }
    }

    /// The value for the local direction `wo`, over the smooth lobes.
    #[inline]
    fn value(&self, wo: [f32; 3]) -> Rgb<M> {
        let mut sum = Rgb::zero();
        for leaf in self.leaves {
            let value = self.leaf_eval(leaf, wo);
            // Both sides of a two-sided BSDF under a normal map are leaves without factors; the turned normal chooses
            // one of them.
            sum += match leaf.factors {
                0 => value,
                _ => value * Rgb::splat(self.leaf_weight(leaf)),
            };
        }
        sum
    }

    /// The factor of a sample on the path's throughput: the value of its lobe over its pdf or probability.
    #[inline]
    fn weight(&self, sample: &BsdfSample) -> Rgb<M> {
        let leaf = &self.leaves[sample.leaf];
        let scale = 1.0 / sample.pdf;
        match sample.lobe {
            Lobe::Smooth if is_plain(leaf) => self.reflectance(leaf),
            Lobe::Smooth => self.value(sample.wo) * scale,
            lobe => {
                let weight = Rgb::splat(self.leaf_weight(leaf));
                weight * self.leaf_discrete(leaf, (lobe, sample.wo)) * scale
            }
        }
    }
}

impl<'a, L: Fn(u32) -> &'a [f32] + Copy> Side<'_, 'a, f32, L> {
    /// Whether a leaf may be chosen: of a two-sided BSDF's leaves under a relief, those of the side that its normal
    /// turns to the path.
    #[inline]
    fn may_be_chosen(&self, number: usize, leaf: &LeafRecord) -> bool {
        number >= FACED
            || leaf.flags & (layout::leaf::FRONT | layout::leaf::BACK) == 0
            || facing(self.scene, self.look, leaf, self.at).is_some()
    }

    /// Whether the leaf is chosen without a random number. A mask seen from the side where what it masks has no lobe is the
    /// exception among single leaves: its null leaf is chosen with the probability of its weight, else the path ends as if
    /// absorbed, since a picture's alpha counts the paths that go straight on.
    #[inline]
    fn is_certain(&self) -> bool {
        match self.leaves {
            [leaf] => leaf.factors == 0 || !self.passes_straight(),
            _ => false,
        }
    }

    #[inline]
    fn passes_straight(&self) -> bool {
        self.at.record(self.scene).flags & bsdf::NULL != 0
    }

    #[inline]
    fn choice(&self) -> Choice {
        let leaves = self.leaves;
        let (mut count, mut total) = (leaves.len(), 0.0);
        if self.is_certain() {
            return Choice {
                count,
                total,
                least: 1.0,
            };
        }
        for (number, leaf) in leaves.iter().enumerate() {
            match self.may_be_chosen(number, leaf) {
                true => total += self.leaf_weight(leaf),
                false => count -= 1,
            }
        }
        let each = 1.0 / count.max(1) as f32;
        let least = match self.at.record(self.scene).flags & bsdf::VARIES {
            _ if total <= 0.0 => each,
            0 => 0.0,
            _ => EXPLORED * each,
        };
        // Where leaves are missing on this side, the probabilities of the others are their weights.
        if total > 0.0 && self.passes_straight() {
            total = total.max(1.0);
        }
        Choice { count, total, least }
    }

    /// The probability of a leaf that may be chosen.
    #[inline]
    fn leaf_probability(&self, choice: &Choice, leaf: &LeafRecord) -> f32 {
        if self.is_certain() {
            return 1.0;
        }
        choice_probability(choice, self.leaf_weight(leaf))
    }

    /// The pdf of a leaf's sampling of its smooth lobes.
    #[inline]
    fn leaf_pdf(&self, leaf: &LeafRecord, wo: [f32; 3]) -> f32 {
        let seen =
            facing(self.scene, self.look, leaf, self.at).and_then(|facing| Some((facing.wi, facing.see(lift(wo))?)));
        match (leaf.kind, seen) {
            (layout::leaf::NULL, _) | (_, None) => 0.0,
            (_, Some((_, seen))) if is_lambertian(leaf) => diffuse_pdf(seen.wo),
            (_, Some((wi, seen))) => self.ask(leaf, |model| model.pdf(wi, seen.wo)),
        }
    }

    /// The pdf of [`Bsdf::sample`] by solid angle, over the smooth lobes.
    #[inline]
    fn pdf(&self, wo: [f32; 3]) -> f32 {
        let choice = self.choice();
        let mut sum = 0.0;
        for leaf in self.leaves {
            sum += self.leaf_probability(&choice, leaf) * self.leaf_pdf(leaf, wo);
        }
        sum
    }

    /// Samples a local direction from a leaf; the pdf of a smooth lobe is left out. None if the path ends.
    #[inline]
    fn leaf_sample(&self, leaf: &LeafRecord, sampler: &mut Sampler) -> Option<LobeSample> {
        let alone = |direction, lobe| LobeSample {
            direction,
            pdf: 1.0,
            lobe,
            eta: 1.0,
        };
        let facing = facing(self.scene, self.look, leaf, self.at);
        let drawn = if leaf.kind == layout::leaf::NULL {
            return (facing?.passes()).then(|| alone(self.at.wi.each(|x| -x), Lobe::Null));
        } else if is_lambertian(leaf) {
            let u = [sampler.draw(), sampler.draw()];
            alone(diffuse_sample(u), Lobe::Smooth)
        } else {
            let u1 = sampler.draw();
            let u2 = [sampler.draw(), sampler.draw()];
            let wi = facing?.wi;
            self.ask(leaf, |model| model.sample(wi, u1, u2))?
        };
        let direction = facing?.leave(drawn.direction)?;
        Some(LobeSample { direction, ..drawn })
    }

    /// Chooses a leaf: its number and its probability. None if there is none, or the path ends instead.
    #[inline]
    fn choose_leaf(&self, sampler: &mut Sampler) -> Option<(usize, f32)> {
        let leaves = self.leaves;
        if leaves.is_empty() {
            return None;
        }
        if self.is_certain() {
            return Some((0, 1.0));
        }
        let choice = self.choice();
        let mut left = sampler.draw();
        let mut last = None;
        for (number, leaf) in leaves.iter().enumerate() {
            if !self.may_be_chosen(number, leaf) {
                continue;
            }
            let probability = self.leaf_probability(&choice, leaf);
            if probability > 0.0 {
                last = Some((number, probability));
                if left < probability {
                    return last;
                }
            }
            left -= probability;
        }
        last.filter(|_| left < ROUNDING_OF_SUM)
    }
}

impl<'a, N: Number + 'a, F: Fields<N>> Bsdf<'a, N, F> {
    /// The BSDF of a surface with the parameters of `fields`.
    #[inline]
    pub fn new(scene: &'a SceneView<'a>, fields: &'a F, at: &'a Interaction) -> Self {
        let leaves = at.leaves(scene);
        let mut bsdf = Self {
            scene,
            fields,
            at,
            leaves,
            first: None,
            first_sampled: None,
        };
        let point = &at.hit.point;
        match leaves.first() {
            None => {}
            Some(leaf) if leaf.kind == layout::leaf::NULL => {}
            Some(leaf) if leaf.kind == layout::leaf::DIFFUSE => {
                let color = texture_value(scene, |slot| fields.integrand(slot), leaf.first_texture, point);
                let sampled = match F::TWO_SIDED {
                    true => texture_value(scene, |slot| fields.sampling(slot), leaf.first_texture, point),
                    false => Rgb(color.0.each(narrow)),
                };
                bsdf.first = Some(Model::Diffuse(color));
                bsdf.first_sampled = Some(Model::Diffuse(sampled));
            }
            Some(leaf) => {
                let found = values(scene, &|slot| fields.integrand(slot), leaf, point);
                let sampled = match F::TWO_SIDED {
                    true => values(scene, &|slot| fields.sampling(slot), leaf, point),
                    false => found.each(|value| Rgb(value.0.each(narrow))),
                };
                bsdf.first = Some(Model::new(leaf, scene.coats, &found));
                bsdf.first_sampled = Some(Model::new(leaf, scene.coats, &sampled));
            }
        }
        bsdf
    }

    /// The BSDF with the integrand's parameters, which are differentiated.
    #[inline(always)]
    fn integrand(&self) -> Side<'_, 'a, N, impl Fn(u32) -> &'a [N] + Copy + use<'a, N, F>> {
        let fields = self.fields;
        Side {
            scene: self.scene,
            at: self.at,
            leaves: self.leaves,
            first: &self.first,
            look: move |slot| fields.integrand(slot),
        }
    }

    /// The BSDF with the sampling side's parameters, from which directions and pdfs follow.
    #[inline(always)]
    fn sampling(&self) -> Side<'_, 'a, f32, impl Fn(u32) -> &'a [f32] + Copy + use<'a, N, F>> {
        let fields = self.fields;
        Side {
            scene: self.scene,
            at: self.at,
            leaves: self.leaves,
            first: &self.first_sampled,
            look: move |slot| fields.sampling(slot),
        }
    }

    /// The value for light from `outgoing`, over the smooth lobes, and the pdf with which [`Self::sample`] draws that
    /// direction; None where that pdf is zero. A black texture has the value zero, not None.
    #[inline]
    pub fn eval(&self, outgoing: [f32; 3]) -> Option<(Rgb<N>, f32)> {
        let wo = self.at.to_local(outgoing);
        let pdf = self.sampling().pdf(wo);
        (pdf > 0.0).then(|| (self.integrand().value(wo), pdf))
    }

    /// Samples a leaf, then a direction; None if the path ends.
    #[inline(never)]
    pub fn sample(&self, sampler: &mut Sampler) -> Option<BsdfSample> {
        let (at, side) = (self.at, self.sampling());
        let (number, probability) = side.choose_leaf(sampler)?;
        let drawn = side.leaf_sample(&self.leaves[number], sampler)?;
        let wo = drawn.direction;
        let straight = drawn.lobe == Lobe::Null;
        Some(BsdfSample {
            direction: if straight { at.incoming } else { at.to_world(wo) },
            wo,
            pdf: match drawn.lobe {
                Lobe::Smooth => side.pdf(wo),
                _ => probability * drawn.pdf,
            },
            lobe: drawn.lobe,
            eta: drawn.eta,
            leaf: number,
        })
    }

    /// The factor of a sample on the path's throughput: the value of its lobe over its pdf or probability.
    #[inline]
    pub fn weight(&self, sample: &BsdfSample) -> Rgb<N> {
        self.integrand().weight(sample)
    }

    /// [`Self::weight`] on the sampling side.
    #[inline]
    pub fn sampled_weight(&self, sample: &BsdfSample) -> [f32; 3] {
        self.sampling().weight(sample).0
    }

    /// Sends `d`, the derivative by the value of the smooth lobes for the local direction `wo`, to the textures.
    #[inline(never)]
    pub fn adjoint<S: Sink<N>>(&self, wo: [f32; 3], d: Rgb<N>, sink: &mut S) {
        let (scene, at, side) = (self.scene, self.at, self.integrand());
        let point = &at.hit.point;
        for leaf in self.leaves.iter().filter(|leaf| leaf.kind != layout::leaf::NULL) {
            let Some(facing) = facing(scene, side.look, leaf, at) else {
                continue;
            };
            let Some(seen) = facing.see(lift(wo)) else { continue };
            let by_value = d * Rgb::splat(side.leaf_weight(leaf));
            if is_lambertian(leaf) {
                let slope = diffuse_adjoint(seen.wo, by_value);
                texture_adjoint(&stencil(scene, leaf.first_texture, point), slope, sink);
            } else {
                let by_model = by_value * Rgb::splat(seen.factor);
                let slopes = side.ask(leaf, |model| model.eval_adjoint(facing.wi, seen.wo, by_model));
                values_adjoint(scene, leaf, point, &slopes, sink);
                if relief_is_wanted(scene, leaf, point, sink) {
                    let (torque, value) = side.ask(leaf, |model| {
                        (
                            torque(facing.wi, seen.wo, model.gradients(facing.wi, seen.wo, by_model)),
                            model.eval(facing.wi, seen.wo),
                        )
                    });
                    facing.adjoint(scene, at, wo, (torque, (by_value * value).sum()), sink);
                }
            }
            if leaf.factors > 0 {
                let value = side.leaf_eval(leaf, wo);
                self.weight_adjoint(leaf, (d * value).sum(), sink);
            }
        }
    }

    /// Sends `d`, the derivative by the factor of a leaf's lobe that is not smooth times the leaf's weight, to the textures.
    #[inline(never)]
    fn discrete_adjoint<S: Sink<N>>(&self, leaf: &LeafRecord, (lobe, wo): (Lobe, [f32; 3]), d: Rgb<N>, sink: &mut S) {
        let (scene, at, side) = (self.scene, self.at, self.integrand());
        let point = &at.hit.point;
        let Some(facing) = facing(scene, side.look, leaf, at) else {
            return;
        };
        let Some(seen) = facing.see(lift(wo)) else { return };
        let by_value = d * Rgb::splat(side.leaf_weight(leaf));
        if leaf.kind != layout::leaf::NULL {
            let by_model = by_value * Rgb::splat(seen.factor);
            let wi = facing.wi.each(narrow);
            let slopes = side.ask(leaf, |model| model.discrete_adjoint(wi, lobe, by_model));
            values_adjoint(scene, leaf, point, &slopes, sink);
        } else if relief_is_wanted(scene, leaf, point, sink) {
            let still = [N::lift(0.0); 3];
            facing.adjoint(scene, at, wo, (still, by_value.sum()), sink);
        }
        if leaf.factors > 0 {
            let value = side.leaf_discrete(leaf, (lobe, wo));
            self.weight_adjoint(leaf, (d * value).sum(), sink);
        }
    }

    /// The derivative by the reflectance of a plain leaf, from `d` by the value for the local direction `wo`; None where there
    /// are other leaves, whose adjoint is [`Self::adjoint`].
    #[inline]
    pub fn plain_slope(&self, wo: [f32; 3], d: Rgb<N>) -> Option<Rgb<N>> {
        let leaf = self.leaves.first().filter(|leaf| is_plain(leaf))?;
        let seen = facing(self.scene, self.integrand().look, leaf, self.at).and_then(|facing| facing.see(lift(wo)));
        Some(seen.map_or(Rgb::zero(), |seen| diffuse_adjoint(seen.wo, d)))
    }

    /// The adjoint of [`Self::weight`], with pdfs and probabilities detached. `lit` is the [`Self::plain_slope`] for the light
    /// that was sampled at the same point, or zero: both derivatives go to the same texels, which are visited once.
    #[inline]
    pub fn sample_adjoint<S: Sink<N>>(&self, sample: &BsdfSample, d: Rgb<N>, lit: Rgb<N>, sink: &mut S) {
        let leaf = &self.leaves[sample.leaf];
        let scale = 1.0 / sample.pdf;
        match sample.lobe {
            Lobe::Smooth if is_plain(leaf) => {
                texture_adjoint(
                    &stencil(self.scene, leaf.first_texture, &self.at.hit.point),
                    d + lit,
                    sink,
                );
            }
            Lobe::Smooth => self.adjoint(sample.wo, d * scale, sink),
            lobe => self.discrete_adjoint(leaf, (lobe, sample.wo), d * scale, sink),
        }
    }

    /// Sends `d`, the derivative by a leaf's weight, to the textures of its factors.
    #[inline]
    fn weight_adjoint<S: Sink<N>>(&self, leaf: &LeafRecord, d: N, sink: &mut S) {
        let (scene, side) = (self.scene, self.integrand());
        let all = factors(scene, leaf);
        for (i, factor) in all.iter().enumerate() {
            // By the product of the other factors, not by weight / factor, since a factor may be zero.
            let mut slope = if factor.complement == 1 { -d } else { d };
            for (_, other) in all.iter().enumerate().filter(|(j, _)| *j != i) {
                slope *= side.factor_value(other);
            }
            let zero = N::lift(0.0);
            let at = stencil(scene, factor.texture, &self.at.hit.point);
            texture_adjoint(&at, Rgb([slope, zero, zero]), sink);
        }
    }

    /// The leaves that let light pass straight through.
    #[inline]
    fn straight_leaves(&self) -> impl Iterator<Item = &'a LeafRecord> + use<'a, N, F> {
        let passes = |leaf: &&LeafRecord| matches!(leaf.kind, layout::leaf::NULL | layout::leaf::THIN_DIELECTRIC);
        self.leaves.iter().filter(passes)
    }

    /// The lobe of light that passes straight through, and its local direction.
    #[inline(always)]
    fn straight(&self) -> (Lobe, [f32; 3]) {
        (Lobe::Null, self.at.wi.each(|x| -x))
    }

    /// The share of light that passes straight through.
    #[inline]
    pub fn null_transmission(&self) -> Rgb<N> {
        let side = self.integrand();
        let mut sum = Rgb::zero();
        for leaf in self.straight_leaves() {
            let weight = Rgb::splat(side.leaf_weight(leaf));
            sum += weight * side.leaf_discrete(leaf, self.straight());
        }
        sum
    }

    /// Sends `d`, the derivative by [`Self::null_transmission`].
    #[inline]
    pub fn null_adjoint<S: Sink<N>>(&self, d: Rgb<N>, sink: &mut S) {
        for leaf in self.straight_leaves() {
            self.discrete_adjoint(leaf, self.straight(), d, sink);
        }
    }

    /// Whether the surface neither scatters light nor has derivatives: no leaf, or a single black diffuse leaf that,
    /// where `replayed`, no run may change.
    #[inline]
    pub fn is_black(&self, replayed: bool) -> bool {
        match self.leaves {
            [] => true,
            [leaf] if is_plain(leaf) => {
                let varies = replayed && self.at.record(self.scene).flags & bsdf::VARIES != 0;
                !varies && self.sampling().reflectance(leaf) == Rgb([0.0; 3])
            }
            _ => false,
        }
    }
}

/// Whether `sink` needs derivatives by any texture of the BSDF.
#[inline]
pub fn bsdf_is_wanted<N: Number, S: Sink<N>>(scene: &SceneView, at: &Interaction, sink: &S) -> bool {
    let point = &at.hit.point;
    at.leaves(scene).iter().any(|leaf| {
        textures(leaf).any(|texture| texture_is_wanted(scene, texture, point, sink))
            || factors(scene, leaf)
                .iter()
                .any(|factor| texture_is_wanted(scene, factor.texture, point, sink))
            || relief_is_wanted(scene, leaf, point, sink)
    })
}

/// Sends the derivatives by the values of a leaf's textures.
#[inline]
pub(in crate::transport) fn values_adjoint<N: Number, S: Sink<N>>(
    scene: &SceneView,
    leaf: &LeafRecord,
    point: &SurfacePoint,
    slopes: &Values<N>,
    sink: &mut S,
) {
    for (texture, slope) in textures(leaf).zip(slopes) {
        if texture_is_wanted(scene, texture, point, sink) {
            texture_adjoint(&stencil(scene, texture, point), *slope, sink);
        }
    }
}

/// Whether `sink` needs derivatives by a leaf's relief.
#[inline]
fn relief_is_wanted<N: Number, S: Sink<N>>(
    scene: &SceneView,
    leaf: &LeafRecord,
    point: &SurfacePoint,
    sink: &S,
) -> bool {
    leaf.relief != NONE && texture_is_wanted(scene, leaf.relief, point, sink)
}
