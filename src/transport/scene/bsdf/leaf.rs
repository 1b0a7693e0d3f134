//! A leaf with the values of its textures at a point: one interface to all kinds of BSDFs that are no mixtures.

use super::conductor::{Conductor, RoughConductor};
use super::dielectric::{Dielectric, RoughDielectric, ThinDielectric};
use super::diffuse::{diffuse_adjoint, diffuse_eval, diffuse_gradients, diffuse_pdf, diffuse_sample};
use super::local::{Gradients, Lobe, LobeSample, no_gradients};
use super::microfacet::Distribution;
use super::plastic::{Plastic, RoughPlastic};
use super::principled::{Principled, eta_of_specular, eta_of_specular_slope};
use super::principledthin::PrincipledThin;
use super::transmittance::TransmittanceTable;
use crate::each::EachEntry;
use crate::resident::layout::{LEAF_TEXTURES, LeafRecord, leaf};
use crate::transport::number::Number;
use crate::transport::number::rgb::Rgb;
use crate::transport::scene::coats::Coat;

/// The share of samples that each lobe of a principled BSDF is given at least, where a run may change it.
const LEAST_SHARE: f32 = 0.03;

/// The values of a leaf's textures, in the order of its model's fields; a number is the first channel.
pub type Values<N> = [Rgb<N>; LEAF_TEXTURES];

/// A leaf that reflects or transmits.
#[derive(Debug, Clone, Copy)]
#[allow(clippy::large_enum_variant, reason = "one at a time, on the stack of the walk")]
pub enum Model<'a, N> {
    Diffuse(Rgb<N>),
    Conductor(Conductor<N>),
    RoughConductor(RoughConductor<N>),
    Dielectric(Dielectric<N>),
    ThinDielectric(ThinDielectric<N>),
    RoughDielectric(RoughDielectric<N>),
    Plastic(Plastic<N>),
    RoughPlastic(RoughPlastic<N>, &'a TransmittanceTable),
    /// With the parameter `specular`, if the index follows from that ([`eta_of_specular`]).
    Principled(Principled<N>, Option<N>),
    PrincipledThin(PrincipledThin<N>),
}

/// [`Values`] that begin with these, in the order of a model's fields; the others are zero.
#[inline]
fn fill<N: Number, const COUNT: usize>(fields: [Rgb<N>; COUNT]) -> Values<N> {
    let mut values = [Rgb::zero(); LEAF_TEXTURES];
    values[..COUNT].copy_from_slice(&fields);
    values
}

/// A colour with a number as its first channel, the others zero.
#[inline(always)]
fn first<N: Number>(x: N) -> Rgb<N> {
    Rgb([x, N::lift(0.0), N::lift(0.0)])
}

impl<'a, N: Number> Model<'a, N> {
    /// The model of a leaf; `coats` are those of all plastics.
    ///
    /// # Panics
    /// The leaf lets light pass: it has no model.
    #[inline]
    pub fn new(record: &LeafRecord, coats: &'a [Coat], v: &Values<N>) -> Self {
        let n = |i: usize| v[i][0];
        let has = |flag: u32| record.flags & flag != 0;
        let distribution = match has(leaf::BECKMANN) {
            true => Distribution::Beckmann,
            false => Distribution::Ggx,
        };
        let visible = !has(leaf::ALL_NORMALS);
        let nonlinear = has(leaf::NONLINEAR);
        let least_share = if has(leaf::VARIES) { LEAST_SHARE } else { 0.0 };
        let coat = || &coats[record.coat as usize];
        match record.kind {
            leaf::DIFFUSE => Self::Diffuse(v[0]),
            leaf::CONDUCTOR => Self::Conductor(Conductor {
                eta: v[0],
                k: v[1],
                specular: v[2],
            }),
            leaf::ROUGH_CONDUCTOR => Self::RoughConductor(RoughConductor {
                eta: v[0],
                k: v[1],
                specular: v[2],
                alpha_u: n(3),
                alpha_v: n(4),
                distribution,
                visible,
            }),
            leaf::DIELECTRIC => Self::Dielectric(Dielectric {
                eta: n(0),
                reflection: v[1],
                transmission: v[2],
            }),
            leaf::THIN_DIELECTRIC => Self::ThinDielectric(ThinDielectric {
                eta: n(0),
                reflection: v[1],
                transmission: v[2],
            }),
            leaf::ROUGH_DIELECTRIC => Self::RoughDielectric(RoughDielectric {
                eta: n(0),
                reflection: v[1],
                transmission: v[2],
                alpha_u: n(3),
                alpha_v: n(4),
                distribution,
                visible,
            }),
            leaf::PLASTIC => Self::Plastic(Plastic {
                eta: n(0),
                diffuse: v[1],
                specular: v[2],
                nonlinear,
                specular_weight: coat().specular_weight,
            }),
            leaf::ROUGH_PLASTIC => Self::RoughPlastic(
                RoughPlastic {
                    eta: n(0),
                    diffuse: v[1],
                    specular: v[2],
                    alpha: n(3),
                    nonlinear,
                    distribution,
                    visible,
                    specular_weight: coat().specular_weight,
                },
                coat().table.as_ref().expect("the coat of a rough plastic has a table"),
            ),
            leaf::PRINCIPLED => {
                let specular = has(leaf::SPECULAR).then_some(n(5));
                let [r0, r1, r2, _] = record.rates;
                let model = Principled {
                    base_color: v[0],
                    roughness: n(1),
                    anisotropic: n(2),
                    metallic: n(3),
                    spec_trans: n(4),
                    eta: specular.map_or(n(5), eta_of_specular),
                    spec_tint: n(6),
                    sheen: n(7),
                    sheen_tint: n(8),
                    flatness: n(9),
                    clearcoat: n(10),
                    clearcoat_gloss: n(11),
                    rates: [r0, r1, r2],
                    least_share,
                };
                Self::Principled(model, specular)
            }
            leaf::PRINCIPLED_THIN => Self::PrincipledThin(PrincipledThin {
                base_color: v[0],
                roughness: n(1),
                anisotropic: n(2),
                spec_trans: n(3),
                eta: n(4),
                spec_tint: n(5),
                sheen: n(6),
                sheen_tint: n(7),
                flatness: n(8),
                diff_trans: n(9),
                rates: record.rates,
                least_share,
            }),
            kind => unreachable!("a leaf of the kind {kind} has no model"),
        }
    }

    /// The smooth lobes' value for radiance times the cosine of `wo`.
    #[inline(never)]
    pub fn eval(&self, wi: [N; 3], wo: [N; 3]) -> Rgb<N> {
        match self {
            Self::Diffuse(reflectance) if wi[2].above(0.0) => diffuse_eval(*reflectance, wo),
            Self::RoughConductor(p) => p.eval(wi, wo),
            Self::RoughDielectric(p) => p.eval(wi, wo),
            Self::Plastic(p) => p.eval(wi, wo),
            Self::RoughPlastic(p, table) => p.eval(&table.coat(p.alpha, p.eta, wi, wo), wi, wo),
            Self::Principled(p, _) => p.eval(wi, wo),
            Self::PrincipledThin(p) => p.eval(wi, wo),
            Self::Diffuse(_) | Self::Conductor(_) | Self::Dielectric(_) | Self::ThinDielectric(_) => Rgb::zero(),
        }
    }

    /// The derivatives by the values of its textures, from `d` by [`Self::eval`].
    #[inline(never)]
    pub fn eval_adjoint(&self, wi: [N; 3], wo: [N; 3], d: Rgb<N>) -> Values<N> {
        match self {
            Self::Diffuse(_) if wi[2].above(0.0) => fill([diffuse_adjoint(wo, d)]),
            Self::RoughConductor(p) => {
                let g = p.eval_adjoint(wi, wo, d);
                fill([g.eta, g.k, g.specular, first(g.alpha_u), first(g.alpha_v)])
            }
            Self::RoughDielectric(p) => {
                let g = p.eval_adjoint(wi, wo, d);
                let [alpha_u, alpha_v] = [g.alpha_u, g.alpha_v].each(first);
                fill([first(g.eta), g.reflection, g.transmission, alpha_u, alpha_v])
            }
            Self::Plastic(p) => {
                let g = p.eval_adjoint(wi, wo, d);
                fill([first(g.eta), g.diffuse, g.specular])
            }
            Self::RoughPlastic(p, table) => {
                let g = p.eval_adjoint(&table.coat(p.alpha, p.eta, wi, wo), wi, wo, d);
                fill([first(g.eta), g.diffuse, g.specular, first(g.alpha)])
            }
            Self::Principled(p, specular) => {
                let g = p.eval_adjoint(wi, wo, d);
                let eta = match specular {
                    Some(specular) => g.eta * eta_of_specular_slope(*specular),
                    None => g.eta,
                };
                fill([
                    g.base_color,
                    first(g.roughness),
                    first(g.anisotropic),
                    first(g.metallic),
                    first(g.spec_trans),
                    first(eta),
                    first(g.spec_tint),
                    first(g.sheen),
                    first(g.sheen_tint),
                    first(g.flatness),
                    first(g.clearcoat),
                    first(g.clearcoat_gloss),
                ])
            }
            Self::PrincipledThin(p) => {
                let g = p.eval_adjoint(wi, wo, d);
                fill([
                    g.base_color,
                    first(g.roughness),
                    first(g.anisotropic),
                    first(g.spec_trans),
                    first(g.eta),
                    first(g.spec_tint),
                    first(g.sheen),
                    first(g.sheen_tint),
                    first(g.flatness),
                    first(g.diff_trans),
                ])
            }
            Self::Diffuse(_) | Self::Conductor(_) | Self::Dielectric(_) | Self::ThinDielectric(_) => {
                [Rgb::zero(); LEAF_TEXTURES]
            }
        }
    }

    /// The gradients of [`Self::eval`], weighted by `d`, by both directions.
    #[inline(never)]
    pub fn gradients(&self, wi: [N; 3], wo: [N; 3], d: Rgb<N>) -> Gradients<N> {
        match self {
            Self::Diffuse(reflectance) if wi[2].above(0.0) => diffuse_gradients(*reflectance, wo, d),
            Self::RoughConductor(p) => p.gradients(wi, wo, d),
            Self::RoughDielectric(p) => p.gradients(wi, wo, d),
            Self::Plastic(p) => p.gradients(wi, wo, d),
            Self::RoughPlastic(p, table) => p.gradients(&table.coat(p.alpha, p.eta, wi, wo), wi, wo, d),
            Self::Principled(p, _) => p.gradients(wi, wo, d),
            Self::PrincipledThin(p) => p.gradients(wi, wo, d),
            Self::Diffuse(_) | Self::Conductor(_) | Self::Dielectric(_) | Self::ThinDielectric(_) => no_gradients(),
        }
    }

    /// The factor of a lobe that is not smooth.
    #[inline]
    pub fn discrete(&self, wi: [f32; 3], lobe: Lobe) -> Rgb<N> {
        match self {
            Self::Conductor(p) => p.discrete(wi, lobe),
            Self::Dielectric(p) => p.discrete(wi, lobe),
            Self::ThinDielectric(p) => p.discrete(wi, lobe),
            Self::Plastic(p) => p.discrete(wi, lobe),
            _ => Rgb::zero(),
        }
    }

    /// The derivatives by the values of its textures, from `d` by [`Self::discrete`].
    #[inline]
    pub fn discrete_adjoint(&self, wi: [f32; 3], lobe: Lobe, d: Rgb<N>) -> Values<N> {
        match self {
            Self::Conductor(p) => {
                let g = p.discrete_adjoint(wi, lobe, d);
                fill([g.eta, g.k, g.specular])
            }
            Self::Dielectric(p) => {
                let g = p.discrete_adjoint(wi, lobe, d);
                fill([first(g.eta), g.reflection, g.transmission])
            }
            Self::ThinDielectric(p) => {
                let g = p.discrete_adjoint(wi, lobe, d);
                fill([first(g.eta), g.reflection, g.transmission])
            }
            Self::Plastic(p) => {
                let g = p.discrete_adjoint(wi, lobe, d);
                fill([first(g.eta), g.diffuse, g.specular])
            }
            _ => [Rgb::zero(); LEAF_TEXTURES],
        }
    }
}

impl Model<'_, f32> {
    /// The pdf by solid angle with which [`Self::sample`] draws `wo` from a smooth lobe.
    #[inline(never)]
    pub fn pdf(&self, wi: [f32; 3], wo: [f32; 3]) -> f32 {
        match self {
            Self::Diffuse(_) if wi[2] > 0.0 => diffuse_pdf(wo),
            Self::RoughConductor(p) => p.pdf(wi, wo),
            Self::RoughDielectric(p) => p.pdf(wi, wo),
            Self::Plastic(p) => p.pdf(wi, wo),
            Self::RoughPlastic(p, table) => p.pdf(table.transmittance(wi[2]), wi, wo),
            Self::Principled(p, _) => p.pdf(wi, wo),
            Self::PrincipledThin(p) => p.pdf(wi, wo),
            Self::Diffuse(_) | Self::Conductor(_) | Self::Dielectric(_) | Self::ThinDielectric(_) => 0.0,
        }
    }

    /// Draws a direction from uniform numbers; None where the path ends.
    #[inline(never)]
    pub fn sample(&self, wi: [f32; 3], u1: f32, u2: [f32; 2]) -> Option<LobeSample> {
        match self {
            Self::Diffuse(_) => (wi[2] > 0.0).then(|| {
                let direction = diffuse_sample(u2);
                LobeSample {
                    direction,
                    pdf: diffuse_pdf(direction),
                    lobe: Lobe::Smooth,
                    eta: 1.0,
                }
            }),
            Self::Conductor(p) => p.sample(wi, u1, u2),
            Self::RoughConductor(p) => p.sample(wi, u1, u2),
            Self::Dielectric(p) => p.sample(wi, u1, u2),
            Self::ThinDielectric(p) => p.sample(wi, u1, u2),
            Self::RoughDielectric(p) => p.sample(wi, u1, u2),
            Self::Plastic(p) => p.sample(wi, u1, u2),
            Self::RoughPlastic(p, table) => p.sample(table.transmittance(wi[2]), wi, u1, u2),
            Self::Principled(p, _) => p.sample(wi, u1, u2),
            Self::PrincipledThin(p) => p.sample(wi, u1, u2),
        }
    }
}
