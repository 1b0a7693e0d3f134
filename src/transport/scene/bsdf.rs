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
use super::texture::{stencil, texture_adjoint, texture_value};
use crate::resident::layout::{self, FactorRecord, LEAF_TEXTURES, LeafRecord, NONE, bsdf};
use crate::transport::number::Number;
use crate::transport::number::rgb::Rgb;
use crate::transport::rays::sampler::Sampler;
use diffuse::{diffuse_adjoint, diffuse_eval, diffuse_pdf, diffuse_sample};
use leaf::{Model, Values};
use local::{Lobe, LobeSample};

/// The share of samples that choose among leaves regardless of their weights, where weights may change: the derivative
/// by a weight of zero is that of samples of the leaf.
const EXPLORED: f32 = 0.125;

/// A direction sampled from a BSDF.
#[derive(Debug, Clone, Copy)]
pub struct BsdfSample {
    pub direction: [f32; 3],
    /// The same in the local frame.
    pub wo: [f32; 3],
    /// Pdf by solid angle; of a lobe that is not smooth its probability.
    pub pdf: f32,
    pub lobe: Lobe,
    /// Index on the side of the direction over that on the side that the path comes from.
    pub eta: f32,
    /// The leaf that was sampled, among those of the side.
    pub leaf: usize,
}

/// Indices of a leaf's textures.
#[inline(always)]
pub(super) fn textures(leaf: &LeafRecord) -> std::ops::Range<u32> {
    leaf.first_texture..leaf.first_texture + leaf.textures
}

/// A leaf's model, from the values of its textures at a point. Compiled once a number type: parameters are found by a
/// function that is not known here.
#[inline(never)]
fn model<'a, 'b, N: Number + 'b>(
    scene: &SceneView<'a>,
    look: &dyn Fn(u32) -> &'b [N],
    leaf: &LeafRecord,
    point: &SurfacePoint,
) -> Model<'a, N> {
    let mut values = [Rgb::zero(); LEAF_TEXTURES];
    for (value, texture) in values.iter_mut().zip(textures(leaf)) {
        *value = texture_value(scene, look, texture, point);
    }
    Model::new(leaf, scene.coats, &values)
}

#[inline]
pub(super) fn factors<'a>(scene: &SceneView<'a>, leaf: &LeafRecord) -> &'a [FactorRecord] {
    &scene.factors[leaf.first_factor as usize..][..leaf.factors as usize]
}

/// A factor of a leaf's weight.
#[inline]
fn factor_value<'a, N: Number + 'a>(
    scene: &SceneView,
    look: impl Fn(u32) -> &'a [N],
    factor: &FactorRecord,
    point: &SurfacePoint,
) -> N {
    let x = texture_value(scene, look, factor.texture, point)[0];
    if factor.complement == 1 { N::lift(1.0) - x } else { x }
}

/// A leaf's weight: the product of its factors.
#[inline]
fn leaf_weight<'a, N: Number + 'a>(
    scene: &SceneView,
    look: impl Fn(u32) -> &'a [N] + Copy,
    leaf: &LeafRecord,
    point: &SurfacePoint,
) -> N {
    let mut weight = N::lift(1.0);
    for factor in factors(scene, leaf) {
        weight *= factor_value(scene, look, factor, point);
    }
    weight
}

/// How leaves are chosen at a point: the sum of their weights on the sampling side, and the probability that each has
/// whatever its weight.
#[derive(Debug, Clone, Copy)]
struct Choice {
    total: f32,
    least: f32,
}

#[inline]
fn choice<N: Number, F: Fields<N>>(scene: &SceneView, fields: &F, at: &Interaction) -> Choice {
    let leaves = at.leaves(scene);
    let each = 1.0 / leaves.len() as f32;
    if leaves.len() == 1 {
        return Choice { total: 0.0, least: 1.0 };
    }
    let mut total = 0.0;
    for leaf in leaves {
        total += leaf_weight(scene, |slot| fields.sampling(slot), leaf, &at.hit.point);
    }
    let least = match at.record(scene).flags & bsdf::VARIES {
        _ if total <= 0.0 => each,
        0 => 0.0,
        _ => EXPLORED * each,
    };
    Choice { total, least }
}

/// The probability with which a leaf of this weight is chosen; `count` is the number of leaves.
#[inline]
fn choice_probability(choice: &Choice, weight: f32, count: usize) -> f32 {
    let chosen = if choice.total > 0.0 { weight / choice.total } else { 0.0 };
    choice.least + (1.0 - choice.least * count as f32) * chosen
}

/// The probability of a leaf at a point.
#[inline]
fn leaf_probability<N: Number, F: Fields<N>>(
    scene: &SceneView,
    fields: &F,
    at: &Interaction,
    choice: &Choice,
    leaf: &LeafRecord,
) -> f32 {
    let leaves = at.leaves(scene);
    if leaves.len() == 1 {
        return 1.0;
    }
    let weight = leaf_weight(scene, |slot| fields.sampling(slot), leaf, &at.hit.point);
    choice_probability(choice, weight, leaves.len())
}

/// The value of a leaf's smooth lobes.
#[inline]
fn leaf_eval<'a, N: Number + 'a>(
    scene: &SceneView,
    look: impl Fn(u32) -> &'a [N] + Copy,
    leaf: &LeafRecord,
    at: &Interaction,
    wo: [f32; 3],
) -> Rgb<N> {
    let seen = facing(scene, look, leaf, at).and_then(|facing| Some((facing.wi, facing.see(wo)?)));
    match (leaf.kind, seen) {
        (layout::leaf::NULL, _) | (_, None) => Rgb::zero(),
        (_, Some((_, seen))) if is_lambertian(leaf) => {
            diffuse_eval(texture_value(scene, look, leaf.first_texture, &at.hit.point), seen.wo)
        }
        (_, Some((wi, seen))) => model(scene, &look, leaf, &at.hit.point).eval(wi, seen.wo) * Rgb::splat(seen.factor),
    }
}

/// The pdf of a leaf's sampling of its smooth lobes.
#[inline]
fn leaf_pdf<N: Number, F: Fields<N>>(
    scene: &SceneView,
    fields: &F,
    leaf: &LeafRecord,
    at: &Interaction,
    wo: [f32; 3],
) -> f32 {
    let look = |slot| fields.sampling(slot);
    let seen = facing(scene, look, leaf, at).and_then(|facing| Some((facing.wi, facing.see(wo)?)));
    match (leaf.kind, seen) {
        (layout::leaf::NULL, _) | (_, None) => 0.0,
        (_, Some((_, seen))) if is_lambertian(leaf) => diffuse_pdf(seen.wo),
        (_, Some((wi, seen))) => model(scene, &look, leaf, &at.hit.point).pdf(wi, seen.wo),
    }
}

/// The factor of a leaf's lobe that is not smooth, which sends light along the local direction `wo`.
#[inline]
fn leaf_discrete<'a, N: Number + 'a>(
    scene: &SceneView,
    look: impl Fn(u32) -> &'a [N] + Copy,
    leaf: &LeafRecord,
    at: &Interaction,
    (lobe, wo): (Lobe, [f32; 3]),
) -> Rgb<N> {
    let Some(facing) = facing(scene, look, leaf, at) else {
        return Rgb::zero();
    };
    let Some(seen) = facing.see(wo) else {
        return Rgb::zero();
    };
    let factor = Rgb::splat(seen.factor);
    match leaf.kind {
        layout::leaf::NULL => factor,
        _ => model(scene, &look, leaf, &at.hit.point).discrete(facing.wi.map(narrow), lobe) * factor,
    }
}

/// The value of a number as f32: lobes that are not smooth have no derivative by directions.
#[inline(always)]
fn narrow<N: Number>(x: N) -> f32 {
    x.value() as f32
}

/// The value for light from `outgoing`, over the smooth lobes, and the pdf with which [`bsdf_sample`] draws that
/// direction; None where no leaf sends light there. A value of zero, as of a black texture, is no None.
#[inline]
pub fn bsdf_eval<N: Number, F: Fields<N>>(
    scene: &SceneView,
    fields: &F,
    at: &Interaction,
    outgoing: [f32; 3],
) -> Option<(Rgb<N>, f32)> {
    let wo = at.to_local(outgoing);
    let pdf = bsdf_pdf(scene, fields, at, wo);
    (pdf > 0.0).then(|| (bsdf_value(scene, |slot| fields.integrand(slot), at, wo), pdf))
}

/// The value for the local direction `wo`, over the smooth lobes.
#[inline]
fn bsdf_value<'a, N: Number + 'a>(
    scene: &SceneView,
    look: impl Fn(u32) -> &'a [N] + Copy,
    at: &Interaction,
    wo: [f32; 3],
) -> Rgb<N> {
    let leaves = at.leaves(scene);
    let mut sum = Rgb::zero();
    for leaf in leaves {
        let value = leaf_eval(scene, look, leaf, at, wo);
        if leaf.factors == 0 {
            // A leaf without factors is alone.
            return value;
        }
        sum += value * Rgb::splat(leaf_weight(scene, look, leaf, &at.hit.point));
    }
    sum
}

/// The pdf of [`bsdf_sample`] by solid angle, over the smooth lobes.
#[inline]
fn bsdf_pdf<N: Number, F: Fields<N>>(scene: &SceneView, fields: &F, at: &Interaction, wo: [f32; 3]) -> f32 {
    let choice = choice(scene, fields, at);
    let mut sum = 0.0;
    for leaf in at.leaves(scene) {
        sum += leaf_probability(scene, fields, at, &choice, leaf) * leaf_pdf(scene, fields, leaf, at, wo);
    }
    sum
}

/// Samples a leaf, then a direction; None if the path ends.
#[inline(never)]
pub fn bsdf_sample<N: Number, F: Fields<N>>(
    scene: &SceneView,
    fields: &F,
    at: &Interaction,
    sampler: &mut Sampler,
) -> Option<BsdfSample> {
    let (number, probability) = choose_leaf(scene, fields, at, sampler)?;
    let leaf = &at.leaves(scene)[number];
    let drawn = leaf_sample(scene, fields, leaf, at, sampler)?;
    let wo = drawn.direction;
    let straight = drawn.lobe == Lobe::Null;
    Some(BsdfSample {
        direction: if straight { at.incoming } else { at.to_world(wo) },
        wo,
        pdf: match drawn.lobe {
            Lobe::Smooth => bsdf_pdf(scene, fields, at, wo),
            _ => probability * drawn.pdf,
        },
        lobe: drawn.lobe,
        eta: drawn.eta,
        leaf: number,
    })
}

/// Samples a local direction from a leaf; the pdf of a smooth lobe is left out. None if the path ends.
#[inline]
fn leaf_sample<N: Number, F: Fields<N>>(
    scene: &SceneView,
    fields: &F,
    leaf: &LeafRecord,
    at: &Interaction,
    sampler: &mut Sampler,
) -> Option<LobeSample> {
    let look = |slot| fields.sampling(slot);
    let alone = |direction, lobe| LobeSample {
        direction,
        pdf: 1.0,
        lobe,
        eta: 1.0,
    };
    let facing = facing(scene, look, leaf, at);
    let drawn = if leaf.kind == layout::leaf::NULL {
        return (facing?.passes()).then(|| alone(at.wi.map(|x| -x), Lobe::Null));
    } else if is_lambertian(leaf) {
        let u = [sampler.draw(), sampler.draw()];
        alone(diffuse_sample(u), Lobe::Smooth)
    } else {
        let u1 = sampler.draw();
        let u2 = [sampler.draw(), sampler.draw()];
        model(scene, &look, leaf, &at.hit.point).sample(facing?.wi, u1, u2)?
    };
    let direction = facing?.leave(drawn.direction)?;
    Some(LobeSample { direction, ..drawn })
}

/// Chooses a leaf: its number and its probability.
#[inline]
fn choose_leaf<N: Number, F: Fields<N>>(
    scene: &SceneView,
    fields: &F,
    at: &Interaction,
    sampler: &mut Sampler,
) -> Option<(usize, f32)> {
    let leaves = at.leaves(scene);
    if leaves.len() < 2 {
        return (leaves.len() == 1).then_some((0, 1.0));
    }
    let choice = choice(scene, fields, at);
    let mut left = sampler.draw();
    let mut last = None;
    for (number, leaf) in leaves.iter().enumerate() {
        let probability = leaf_probability(scene, fields, at, &choice, leaf);
        if probability > 0.0 {
            last = Some((number, probability));
            if left < probability {
                break;
            }
        }
        left -= probability;
    }
    last
}

/// Whether the leaf is diffuse in the surface's own frame.
#[inline(always)]
fn is_lambertian(leaf: &LeafRecord) -> bool {
    leaf.kind == layout::leaf::DIFFUSE && leaf.relief == NONE
}

/// Whether the leaf is Lambertian and alone: its value is its pdf times the reflectance.
#[inline]
fn is_plain(leaf: &LeafRecord) -> bool {
    leaf.factors == 0 && is_lambertian(leaf)
}

/// What a sample multiplies the path's throughput by: the value of its lobe over its pdf or probability. `look` returns
/// a parameter's values.
#[inline]
pub fn bsdf_weight<'a, N: Number + 'a>(
    scene: &SceneView,
    look: impl Fn(u32) -> &'a [N] + Copy,
    at: &Interaction,
    sample: &BsdfSample,
) -> Rgb<N> {
    let leaf = &at.leaves(scene)[sample.leaf];
    let scale = 1.0 / sample.pdf;
    match sample.lobe {
        Lobe::Smooth if is_plain(leaf) => texture_value(scene, look, leaf.first_texture, &at.hit.point),
        Lobe::Smooth => bsdf_value(scene, look, at, sample.wo) * scale,
        lobe => {
            let weight = Rgb::splat(leaf_weight(scene, look, leaf, &at.hit.point));
            weight * leaf_discrete(scene, look, leaf, at, (lobe, sample.wo)) * scale
        }
    }
}

/// Whether `sink` needs derivatives by any texture of the BSDF.
#[inline]
pub fn bsdf_is_wanted<N: Number, S: Sink<N>>(scene: &SceneView, at: &Interaction, sink: &S) -> bool {
    let wanted = |texture: u32| {
        let at = stencil(scene, texture, &at.hit.point);
        sink.wants(at.slot)
    };
    at.leaves(scene).iter().any(|leaf| {
        textures(leaf).any(wanted)
            || factors(scene, leaf).iter().any(|factor| wanted(factor.texture))
            || leaf.relief != NONE && wanted(leaf.relief)
    })
}

/// Sends the derivatives by the values of a leaf's textures.
#[inline]
fn values_adjoint<N: Number, S: Sink<N>>(
    scene: &SceneView,
    leaf: &LeafRecord,
    point: &SurfacePoint,
    slopes: &Values<N>,
    sink: &mut S,
) {
    for (texture, slope) in textures(leaf).zip(slopes) {
        let at = stencil(scene, texture, point);
        if sink.wants(at.slot) {
            texture_adjoint(&at, *slope, sink);
        }
    }
}

/// Sends `d`, the derivative by the value of the smooth lobes for the local direction `wo`, to the textures.
#[inline(never)]
pub fn bsdf_adjoint<N: Number, F: Fields<N>, S: Sink<N>>(
    scene: &SceneView,
    fields: &F,
    at: &Interaction,
    wo: [f32; 3],
    d: Rgb<N>,
    sink: &mut S,
) {
    let look = |slot| fields.integrand(slot);
    let point = &at.hit.point;
    for leaf in at.leaves(scene).iter().filter(|leaf| leaf.kind != layout::leaf::NULL) {
        let Some(facing) = facing(scene, look, leaf, at) else {
            continue;
        };
        let Some(seen) = facing.see(wo) else { continue };
        let by_value = d * Rgb::splat(leaf_weight(scene, look, leaf, point));
        if is_lambertian(leaf) {
            let slope = diffuse_adjoint(seen.wo, by_value);
            texture_adjoint(&stencil(scene, leaf.first_texture, point), slope, sink);
        } else {
            let model = model(scene, &look, leaf, point);
            let by_model = by_value * Rgb::splat(seen.factor);
            values_adjoint(
                scene,
                leaf,
                point,
                &model.eval_adjoint(facing.wi, seen.wo, by_model),
                sink,
            );
            if relief_is_wanted(scene, leaf, point, sink) {
                let torque = model.torque(facing.wi, seen.wo, by_model);
                let by_factor = (by_value * model.eval(facing.wi, seen.wo)).sum();
                facing.adjoint(scene, at, wo, (torque, by_factor), sink);
            }
        }
        if leaf.factors > 0 {
            let value = leaf_eval(scene, look, leaf, at, wo);
            weight_adjoint(scene, fields, leaf, point, (d * value).sum(), sink);
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
    leaf.relief != NONE && sink.wants(stencil(scene, leaf.relief, point).slot)
}

/// Sends `d`, the derivative by the factor of a leaf's lobe that is not smooth times the leaf's weight, to the textures.
#[inline(never)]
fn discrete_adjoint<N: Number, F: Fields<N>, S: Sink<N>>(
    scene: &SceneView,
    fields: &F,
    at: &Interaction,
    leaf: &LeafRecord,
    (lobe, wo): (Lobe, [f32; 3]),
    d: Rgb<N>,
    sink: &mut S,
) {
    let look = |slot| fields.integrand(slot);
    let point = &at.hit.point;
    let Some(facing) = facing(scene, look, leaf, at) else {
        return;
    };
    let Some(seen) = facing.see(wo) else { return };
    let by_value = d * Rgb::splat(leaf_weight(scene, look, leaf, point));
    if leaf.kind != layout::leaf::NULL {
        let by_model = by_value * Rgb::splat(seen.factor);
        let slopes = model(scene, &look, leaf, point).discrete_adjoint(facing.wi.map(narrow), lobe, by_model);
        values_adjoint(scene, leaf, point, &slopes, sink);
    } else if relief_is_wanted(scene, leaf, point, sink) {
        let still = [N::lift(0.0); 3];
        facing.adjoint(scene, at, wo, (still, by_value.sum()), sink);
    }
    if leaf.factors > 0 {
        let value = leaf_discrete(scene, look, leaf, at, (lobe, wo));
        weight_adjoint(scene, fields, leaf, point, (d * value).sum(), sink);
    }
}

/// The adjoint of [`bsdf_weight`], with pdfs and probabilities detached.
#[inline]
pub fn bsdf_weight_adjoint<N: Number, F: Fields<N>, S: Sink<N>>(
    scene: &SceneView,
    fields: &F,
    at: &Interaction,
    sample: &BsdfSample,
    d: Rgb<N>,
    sink: &mut S,
) {
    let leaf = &at.leaves(scene)[sample.leaf];
    let scale = 1.0 / sample.pdf;
    match sample.lobe {
        Lobe::Smooth if is_plain(leaf) => {
            texture_adjoint(&stencil(scene, leaf.first_texture, &at.hit.point), d, sink);
        }
        Lobe::Smooth => bsdf_adjoint(scene, fields, at, sample.wo, d * scale, sink),
        lobe => discrete_adjoint(scene, fields, at, leaf, (lobe, sample.wo), d * scale, sink),
    }
}

/// Sends `d`, the derivative by a leaf's weight, to the textures of its factors.
#[inline]
fn weight_adjoint<N: Number, F: Fields<N>, S: Sink<N>>(
    scene: &SceneView,
    fields: &F,
    leaf: &LeafRecord,
    point: &SurfacePoint,
    d: N,
    sink: &mut S,
) {
    let look = |slot| fields.integrand(slot);
    let all = factors(scene, leaf);
    for (i, factor) in all.iter().enumerate() {
        // The product of the other factors: one of them may be zero.
        let mut slope = if factor.complement == 1 { -d } else { d };
        for (_, other) in all.iter().enumerate().filter(|(j, _)| *j != i) {
            slope *= factor_value(scene, look, other, point);
        }
        let zero = N::lift(0.0);
        texture_adjoint(&stencil(scene, factor.texture, point), Rgb([slope, zero, zero]), sink);
    }
}

/// The leaves that let light pass straight through.
#[inline]
fn straight_leaves<'a>(scene: &SceneView<'a>, at: &Interaction) -> impl Iterator<Item = &'a LeafRecord> {
    let passes = |leaf: &&LeafRecord| matches!(leaf.kind, layout::leaf::NULL | layout::leaf::THIN_DIELECTRIC);
    at.leaves(scene).iter().filter(passes)
}

/// The lobe of what passes straight through, and its local direction.
#[inline(always)]
fn straight(at: &Interaction) -> (Lobe, [f32; 3]) {
    (Lobe::Null, at.wi.map(|x| -x))
}

/// The share of light that passes straight through; `look` returns a parameter's values.
#[inline]
pub fn null_transmission<'a, N: Number + 'a>(
    scene: &SceneView,
    look: impl Fn(u32) -> &'a [N] + Copy,
    at: &Interaction,
) -> Rgb<N> {
    let mut sum = Rgb::zero();
    for leaf in straight_leaves(scene, at) {
        let weight = Rgb::splat(leaf_weight(scene, look, leaf, &at.hit.point));
        sum += weight * leaf_discrete(scene, look, leaf, at, straight(at));
    }
    sum
}

/// Sends `d`, the derivative by [`null_transmission`].
#[inline]
pub fn null_adjoint<N: Number, F: Fields<N>, S: Sink<N>>(
    scene: &SceneView,
    fields: &F,
    at: &Interaction,
    d: Rgb<N>,
    sink: &mut S,
) {
    for leaf in straight_leaves(scene, at) {
        discrete_adjoint(scene, fields, at, leaf, straight(at), d, sink);
    }
}

/// Whether the surface takes no part in what comes: a single diffuse leaf that is black and stays so.
#[inline]
pub fn bsdf_is_black<N: Number, F: Fields<N>>(scene: &SceneView, fields: &F, at: &Interaction, replayed: bool) -> bool {
    match at.leaves(scene) {
        [] => true,
        [leaf] if is_plain(leaf) => {
            let varies = replayed && at.record(scene).flags & bsdf::VARIES != 0;
            let color = texture_value(scene, |slot| fields.sampling(slot), leaf.first_texture, &at.hit.point);
            !varies && color == Rgb([0.0; 3])
        }
        _ => false,
    }
}
