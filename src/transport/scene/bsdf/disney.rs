//! Factors that the principled BSDFs share (Burley2012, Burley2015).

use super::conductor::mirror_cosine;
use super::fresnel::{schlick_slope, schlick_weight};
use crate::each::EachEntry;
use crate::transport::number::Number;
use crate::transport::number::rgb::Rgb;

pub const INV_PI: f32 = std::f32::consts::FRAC_1_PI;
/// Roughnesses of the principled BSDFs' lobes are at least this.
const LEAST_ALPHA: f32 = 1e-3;
/// Luminances of linear sRGB.
const LUMINANCE: [f32; 3] = [0.212671, 0.715160, 0.072169];

/// (1 - t) a + t b
#[inline(always)]
pub fn lerp<N: Number>(a: N, b: N, t: N) -> N {
    a + t * (b - a)
}

/// The microfacets' roughnesses along the two tangents.
#[inline]
pub fn disney_alpha<N: Number>(roughness: N, anisotropic: N) -> [N; 2] {
    let aspect = aspect(anisotropic);
    let square = roughness * roughness;
    [square / aspect, square * aspect].each(|alpha| alpha.max(N::lift(LEAST_ALPHA)))
}

#[inline(always)]
fn aspect<N: Number>(anisotropic: N) -> N {
    (N::lift(1.0) - N::lift(0.9) * anisotropic).sqrt()
}

/// The derivatives by `roughness` and by `anisotropic`, from those by [`disney_alpha`]'s results.
#[inline]
pub fn disney_alpha_adjoint<N: Number>(roughness: N, anisotropic: N, d: [N; 2]) -> [N; 2] {
    let aspect = aspect(anisotropic);
    let square = roughness * roughness;
    let alpha = [square / aspect, square * aspect];
    let d = [0, 1].each(|a| {
        if alpha[a].below(LEAST_ALPHA) {
            N::lift(0.0)
        } else {
            d[a]
        }
    });
    let by_roughness = N::lift(2.0) * roughness * (d[0] / aspect + d[1] * aspect);
    let by_aspect = square * (d[1] - d[0] / (aspect * aspect));
    [by_roughness, by_aspect * N::lift(-0.45) / aspect]
}

/// A colour over its luminance; white for black.
#[inline]
pub fn tint<N: Number>(color: Rgb<N>) -> Rgb<N> {
    let luminance = (color * Rgb::lift(LUMINANCE)).sum();
    if luminance.above(0.0) {
        color.map(|x| x / luminance)
    } else {
        Rgb::splat(N::lift(1.0))
    }
}

/// The derivatives by the colour, from those by [`tint`]'s result. Black has none.
#[inline]
pub fn tint_adjoint<N: Number>(color: Rgb<N>, d: Rgb<N>) -> Rgb<N> {
    let weights = Rgb::lift(LUMINANCE);
    let luminance = (color * weights).sum();
    if !luminance.above(0.0) {
        return Rgb::zero();
    }
    let back = (d * color).sum() / (luminance * luminance);
    d.map(|x| x / luminance) - weights * Rgb::splat(back)
}

/// The terms of the diffuse lobes that depend on a pair of directions on the upper side.
#[derive(Debug, Clone, Copy)]
pub struct Diffusion<N> {
    wi: N,
    wo: N,
    /// Schlick's weights of the two directions.
    weights: [N; 2],
    /// Twice the squared cosine between a direction and the half vector.
    retro: N,
    /// Schlick's weight of that cosine.
    pub sheen: N,
}

impl<N: Number> Diffusion<N> {
    #[inline]
    pub fn new(wi: [N; 3], wo: [N; 3]) -> Self {
        let cosine = mirror_cosine(wi, wo);
        Self {
            wi: wi[2],
            wo: wo[2],
            weights: [schlick_weight(wi[2]), schlick_weight(wo[2])],
            retro: N::lift(2.0) * cosine * cosine,
            sheen: schlick_weight(cosine),
        }
    }

    /// The shape of the diffuse lobe with retroreflection, blended by `flatness`, from 0 to 1, with Burley's
    /// approximation of subsurface scattering.
    #[inline]
    pub fn shape(&self, roughness: N, flatness: N) -> N {
        self.shape_slopes(roughness, flatness)[0]
    }

    /// [`Self::shape`] and its derivatives by roughness and by flatness.
    #[inline]
    pub fn shape_slopes(&self, roughness: N, flatness: N) -> [N; 3] {
        let [fi, fo] = self.weights;
        let (one, both) = (N::lift(1.0), fi * fo);
        let by_roughness = self.retro;
        let retro = by_roughness * roughness;
        let (sum, half) = (fi + fo, N::lift(0.5));
        let plain = (one - half * fi) * (one - half * fo) + retro * (sum + both * (retro - one));
        let plain_slope = by_roughness * (sum + both * (retro + retro - one));
        let grazing = half * retro - one;
        let (i, o) = (one + fi * grazing, one + fo * grazing);
        let spread = N::lift(1.25) * ((self.wi + self.wo).recip() - half);
        let flat = spread * i * o + N::lift(0.625);
        let flat_slope = spread * half * by_roughness * (fi * o + fo * i);
        [
            lerp(plain, flat, flatness),
            lerp(plain_slope, flat_slope, flatness),
            flat - plain,
        ]
    }

    /// The derivatives of [`Self::shape`] and of [`Self::sheen`] by `cosine`, that between a direction and the half vector.
    #[inline]
    pub fn by_mirror_cosine(&self, roughness: N, flatness: N, cosine: N) -> [N; 2] {
        // The shape depends on this cosine only by the product of roughness and twice its square.
        let [_, by_roughness, _] = self.shape_slopes(roughness, flatness);
        [N::lift(2.0) * by_roughness * roughness / cosine, schlick_slope(cosine)]
    }

    /// The derivatives of [`Self::shape`] by the cosines of the two directions.
    #[inline]
    pub fn shape_by_cosines(&self, roughness: N, flatness: N) -> [N; 2] {
        let [fi, fo] = self.weights;
        [
            self.shape_by(roughness, flatness, self.wi, [fi, fo]),
            self.shape_by(roughness, flatness, self.wo, [fo, fi]),
        ]
    }

    /// The derivative by one direction's cosine, from the Schlick weights of this and of the other direction.
    #[inline]
    fn shape_by(&self, roughness: N, flatness: N, cosine: N, [own, other]: [N; 2]) -> N {
        let (one, half) = (N::lift(1.0), N::lift(0.5));
        let retro = self.retro * roughness;
        let grazing = half * retro - one;
        let sum = (self.wi + self.wo).recip();
        let spread = N::lift(1.25) * (sum - half);
        let slope = schlick_slope(cosine);
        let other_share = one + other * grazing;
        let plain = slope * (-half * (one - half * other) + retro * (one + other * (retro - one)));
        let by_sum = N::lift(-1.25) * sum * sum * (one + own * grazing);
        let flat = (by_sum + spread * grazing * slope) * other_share;
        lerp(plain, flat, flatness)
    }
}
