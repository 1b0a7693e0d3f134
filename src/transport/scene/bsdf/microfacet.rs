//! Microfacet distributions: the density of the normals of a rough surface's small mirrors (microfacets), their
//! shadowing, and the sampling of normals (Walter2007, Heitz2014).
//!
//! Directions and normals are on the upper side, z > 0. Shadowing is separable: the product of the two directions'
//! factors (Smith1967).

use super::beckmann::visible_slopes;
use super::local::{Gradients, add_scaled, halfway, inner, normalised};
use crate::each::EachEntry;
use crate::transport::number::Number;
use crate::transport::rays::sampler::{circle, dot};

/// Roughnesses below this one act as this one.
pub const MIN_ALPHA: f32 = 1e-4;
/// Roughnesses below this one have no derivative: less than [`MIN_ALPHA`] by more than interpolation rounds it.
pub const CLAMPED_ALPHA: f32 = 9.9999e-5;
/// Values of D cos θ, the density of projected normals, up to this one count as zero.
const LEAST_DENSITY: f32 = 1e-20;
/// Beckmann's exponent tan²θ / α² from which on the density counts as zero, at any roughness: exp(−x) is subnormal in
/// f32 for x > 87.
const MAX_EXPONENT: f32 = 80.0;
/// The value of cot θ / α from which on Beckmann's surface counts as not shadowed.
const NO_SHADOWING: f32 = 1.6;

/// The distribution of the microfacets' slopes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Distribution {
    Beckmann,
    Ggx,
}

/// A distribution of normals with its roughness along the two tangents.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Microfacets<N> {
    pub distribution: Distribution,
    pub alpha: [N; 2],
    /// Whether only visible normals are sampled.
    pub visible: bool,
}

impl<N: Number> Microfacets<N> {
    /// A distribution, its roughnesses at least [`MIN_ALPHA`].
    #[inline(always)]
    pub fn new(distribution: Distribution, alpha: [N; 2], visible: bool) -> Self {
        let alpha = alpha.each(|alpha| alpha.max(N::lift(MIN_ALPHA)));
        Self {
            distribution,
            alpha,
            visible,
        }
    }

    /// The density D of normals by solid angle: the integral of D cos θ is one.
    #[inline(always)]
    pub fn density(&self, m: [N; 3]) -> N {
        let [q, z2] = self.stretched(m);
        let zero = N::lift(0.0);
        if !m[2].above(0.0) {
            return zero;
        }
        let scale = N::lift(std::f32::consts::PI) * self.alpha[0] * self.alpha[1];
        let density = match self.distribution {
            Distribution::Beckmann => {
                let exponent = q / z2;
                if !exponent.below(MAX_EXPONENT) {
                    return zero;
                }
                (-exponent).exp() / (scale * z2 * z2)
            }
            Distribution::Ggx => {
                let sum = q + z2;
                (scale * sum * sum).recip()
            }
        };
        if (density * m[2]).above(LEAST_DENSITY) {
            density
        } else {
            zero
        }
    }

    /// (x / αu)² + (y / αv)² and z².
    #[inline(always)]
    fn stretched(&self, m: [N; 3]) -> [N; 2] {
        let (x, y) = (m[0] / self.alpha[0], m[1] / self.alpha[1]);
        [x * x + y * y, m[2] * m[2]]
    }

    /// The derivatives of the logarithm of [`Self::density`] by the two roughnesses.
    #[inline(always)]
    fn density_slopes(&self, m: [N; 3]) -> [N; 2] {
        let [q, z2] = self.stretched(m);
        let factor = match self.distribution {
            Distribution::Beckmann => N::lift(2.0) / z2,
            Distribution::Ggx => N::lift(4.0) / (q + z2),
        };
        [0, 1].each(|a| {
            let slope = m[a] / self.alpha[a];
            (slope * slope * factor - N::lift(1.0)) / self.alpha[a]
        })
    }

    /// The derivative along `d` of ln(D(h / |h|) / |h|⁴), with D the density.
    #[inline]
    pub fn density_slope_along(&self, h: [N; 3], d: [N; 3]) -> N {
        let two = N::lift(2.0);
        let [q, z2] = self.stretched(h);
        let along = |a: usize| two * h[a] * d[a] / (self.alpha[a] * self.alpha[a]);
        let (dq, dz2) = (along(0) + along(1), two * h[2] * d[2]);
        match self.distribution {
            Distribution::Beckmann => (q * dz2 / z2 - dq - two * dz2) / z2,
            Distribution::Ggx => -two * (dq + dz2) / (q + z2),
        }
    }

    /// (αu x)² + (αv y)² and |z|.
    #[inline(always)]
    fn stretched_direction(&self, v: [N; 3]) -> [N; 2] {
        let (x, y) = (self.alpha[0] * v[0], self.alpha[1] * v[1]);
        [x * x + y * y, v[2].abs()]
    }

    /// cot θ / α = |z| / √((αu x)² + (αv y)²), by which Beckmann's shadowing is fitted, and that root; None where
    /// nothing is shadowed.
    #[inline(always)]
    fn steepness([square, z]: [N; 2]) -> Option<(N, N)> {
        let root = square.sqrt();
        let shadowed = (root * N::lift(NO_SHADOWING) - z).above(0.0);
        shadowed.then(|| (z / root, root))
    }

    /// Smith's G1, the share of the normals facing `v` that are not shadowed in this direction, over the cosine of `v`:
    /// the quotient is finite at grazing angles.
    #[inline(always)]
    pub fn shadowing_over_cosine(&self, v: [N; 3]) -> N {
        let parts = self.stretched_direction(v);
        let [square, z] = parts;
        match self.distribution {
            Distribution::Beckmann => match Self::steepness(parts) {
                Some((a, root)) => (N::lift(3.535) + N::lift(2.181) * a) / (root * fit_below(a)),
                None => z.recip(),
            },
            Distribution::Ggx => N::lift(2.0) / (z + (z * z + square).sqrt()),
        }
    }

    /// The share of the normals facing `v` that are not shadowed in this direction.
    #[inline(always)]
    pub fn shadowing(&self, v: [N; 3]) -> N {
        v[2].abs() * self.shadowing_over_cosine(v)
    }

    /// The derivatives of the logarithm of [`Self::shadowing`] by the two roughnesses.
    #[inline(always)]
    fn shadowing_slopes(&self, v: [N; 3]) -> [N; 2] {
        let parts = self.stretched_direction(v);
        let [square, z] = parts;
        let factor = match self.distribution {
            Distribution::Beckmann => {
                let Some((a, _)) = Self::steepness(parts) else {
                    return [N::lift(0.0); 2];
                };
                let (linear, two) = (N::lift(2.181) * a, N::lift(2.0));
                let above = (N::lift(3.535) + two * linear) / (N::lift(3.535) + linear);
                let below = a * (N::lift(2.276) + two * N::lift(2.577) * a) / fit_below(a);
                (above - below) / square
            }
            Distribution::Ggx => {
                let root = (z * z + square).sqrt();
                (root * (z + root)).recip()
            }
        };
        [0, 1].each(|a| -self.alpha[a] * v[a] * v[a] * factor)
    }

    /// The BSDF of microfacets that reflect all light, times the cosine of `wo`: D G / (4 cos wi).
    #[inline(always)]
    pub fn reflection(&self, wi: [N; 3], wo: [N; 3]) -> N {
        let m = halfway(wi, wo);
        N::lift(0.25) * self.density(m) * self.shadowing_over_cosine(wi) * self.shadowing(wo)
    }

    /// [`Self::reflection`] and its derivatives by the two roughnesses.
    #[inline(always)]
    pub fn reflection_slopes(&self, wi: [N; 3], wo: [N; 3]) -> (N, [N; 2]) {
        let value = self.reflection(wi, wo);
        if !value.above(0.0) {
            return (N::lift(0.0), [N::lift(0.0); 2]);
        }
        let (d, i, o) = self.log_slopes(wi, wo, halfway(wi, wo));
        (value, [0, 1].each(|a| value * (d[a] + i[a] + o[a])))
    }

    /// The derivatives by the two roughnesses of the logarithms of D(m), G1(wi) and G1(wo).
    #[inline(always)]
    fn log_slopes(&self, wi: [N; 3], wo: [N; 3], m: [N; 3]) -> ([N; 2], [N; 2], [N; 2]) {
        (
            self.density_slopes(m),
            self.shadowing_slopes(wi),
            self.shadowing_slopes(wo),
        )
    }

    /// The gradient of the logarithm of [`Self::density`] by the normal's components.
    #[inline]
    fn density_gradient(&self, m: [N; 3]) -> [N; 3] {
        let [q, z2] = self.stretched(m);
        let across = |factor: N| [0, 1].each(|a| factor * m[a] / (self.alpha[a] * self.alpha[a]));
        let two = N::lift(2.0);
        match self.distribution {
            Distribution::Beckmann => {
                let [x, y] = across(-two / z2);
                [x, y, (two * q / z2 - two - two) / m[2]]
            }
            Distribution::Ggx => {
                let factor = -(two + two) / (q + z2);
                let [x, y] = across(factor);
                [x, y, factor * m[2]]
            }
        }
    }

    /// The gradient of the logarithm of [`Self::shadowing_over_cosine`].
    #[inline]
    fn shadowing_over_cosine_gradient(&self, v: [N; 3]) -> [N; 3] {
        let parts = self.stretched_direction(v);
        let [square, z] = parts;
        let (by_z, across) = match self.distribution {
            Distribution::Beckmann => match Self::steepness(parts) {
                Some((a, root)) => {
                    let below = N::lift(2.276) + N::lift(2.0 * 2.577) * a;
                    let by_a = N::lift(2.181) / (N::lift(3.535) + N::lift(2.181) * a) - below / fit_below(a);
                    (by_a / root, -(by_a * a + N::lift(1.0)) / square)
                }
                None => (-z.recip(), N::lift(0.0)),
            },
            Distribution::Ggx => {
                let root = (z * z + square).sqrt();
                (-root.recip(), -(root * (z + root)).recip())
            }
        };
        let [x, y] = [0, 1].each(|a| across * self.alpha[a] * self.alpha[a] * v[a]);
        [x, y, if v[2].below(0.0) { -by_z } else { by_z }]
    }

    /// The gradient of the logarithm of [`Self::shadowing`].
    #[inline]
    pub fn shadowing_gradient(&self, v: [N; 3]) -> [N; 3] {
        let [x, y, z] = self.shadowing_over_cosine_gradient(v);
        [x, y, z + v[2].recip()]
    }

    /// The gradients of the logarithm of [`Self::reflection`] by the two directions.
    #[inline]
    pub fn reflection_gradients(&self, wi: [N; 3], wo: [N; 3]) -> Gradients<N> {
        let h = [0, 1, 2].each(|a| wi[a] + wo[a]);
        let by_h = along_sphere(h, |m| self.density_gradient(m));
        let one = N::lift(1.0);
        [
            add_scaled(self.shadowing_over_cosine_gradient(wi), by_h, one),
            add_scaled(self.shadowing_gradient(wo), by_h, one),
        ]
    }

    /// The gradients by the two directions of the logarithm of [`Self::refraction`] plus a function of the cosine wi·m,
    /// whose derivative is `by_cosine`.
    #[inline]
    pub fn refraction_gradients(&self, wi: [N; 3], wo: [N; 3], e: N, bend: &Bend<N>, by_cosine: N) -> Gradients<N> {
        // The value without shadowing is that of the density at h / |h| times (wi·h) (wo·h) / |h|⁴, as a function of h and of the
        // directions in these products.
        let [by_wi_m, by_wo_m] = [bend.wi_m, bend.wo_m].each(N::recip);
        let by_wi_m = by_wi_m + by_cosine;
        let density = self.density_gradient(bend.m);
        let turning = inner(bend.m, density) + by_cosine * bend.wi_m + N::lift(4.0);
        let by_h =
            [0, 1, 2].each(|a| (density[a] + wi[a] * by_wi_m + wo[a] * by_wo_m - bend.m[a] * turning) / bend.length);
        let by_wi = add_scaled(self.shadowing_over_cosine_gradient(wi), bend.m, by_wi_m);
        let by_wo = add_scaled(self.shadowing_gradient(wo), bend.m, by_wo_m);
        [add_scaled(by_wi, by_h, N::lift(1.0)), add_scaled(by_wo, by_h, e)]
    }

    /// The BSDF of microfacets that refract all light, times the cosine of `wo`, without the factor e² by which
    /// refraction changes solid angles: D G |wi·m| |wo·m| / (cos wi |h|²), with h = wi + e wo for the relative index e.
    /// `wi` is above the surface and `wo` below it. Zero where one of them sees the back of m.
    #[inline]
    pub fn refraction(&self, wi: [N; 3], wo: [N; 3], e: N) -> N {
        let Some(bend) = Bend::new(wi, wo, e) else {
            return N::lift(0.0);
        };
        let sides = -bend.wi_m * bend.wo_m / bend.square;
        self.density(bend.m) * self.shadowing_over_cosine(wi) * self.shadowing(wo) * sides
    }

    /// [`Self::refraction`] and its derivatives by the two roughnesses and by the relative index.
    #[inline]
    pub fn refraction_slopes(&self, wi: [N; 3], wo: [N; 3], e: N) -> (N, [N; 2], N) {
        let zero = N::lift(0.0);
        let value = self.refraction(wi, wo, e);
        let Some(bend) = Bend::new(wi, wo, e).filter(|_| value.above(0.0)) else {
            return (zero, [zero; 2], zero);
        };
        let (d, i, o) = self.log_slopes(wi, wo, bend.m);
        // By e, the products wi·h and wo·h have the derivatives wi·wo and wo·wo; the factor 1 / |h|⁴ is in the
        // density's derivative.
        let cosines = inner(wi, wo) / bend.wi_m + inner(wo, wo) / bend.wo_m;
        let along = self.density_slope_along(bend.h, wo) + cosines / bend.length;
        (value, [0, 1].each(|a| value * (d[a] + i[a] + o[a])), value * along)
    }
}

/// The gradient by h of a function of h / |h|, whose gradient by that unit vector is `gradient`.
#[inline(always)]
pub fn along_sphere<N: Number>(h: [N; 3], gradient: impl Fn([N; 3]) -> [N; 3]) -> [N; 3] {
    let scale = inner(h, h).sqrt().recip();
    let m = h.each(|x| x * scale);
    let g = gradient(m);
    let along = inner(m, g);
    [0, 1, 2].each(|a| (g[a] - m[a] * along) * scale)
}

#[inline(always)]
fn fit_below<N: Number>(a: N) -> N {
    N::lift(1.0) + (N::lift(2.276) + N::lift(2.577) * a) * a
}

/// The normal at which `wo` below the surface is refracted into `wi` above it.
#[derive(Debug, Clone, Copy)]
pub struct Bend<N> {
    /// wi + e wo
    pub h: [N; 3],
    /// h over `length`, on the upper side
    pub m: [N; 3],
    /// |h|²
    pub square: N,
    /// |h|, negative if h points downwards
    pub length: N,
    /// The cosines with m of `wi`, positive, and `wo`, negative.
    pub wi_m: N,
    pub wo_m: N,
}

impl<N: Number> Bend<N> {
    /// None where a direction sees the back of m, or where no normal refracts one into the other.
    #[inline]
    pub fn new(wi: [N; 3], wo: [N; 3], e: N) -> Option<Self> {
        let h = [0, 1, 2].each(|a| wi[a] + e * wo[a]);
        let square = inner(h, h);
        let root = square.sqrt();
        let length = if h[2].below(0.0) { -root } else { root };
        let m = h.each(|x| x / length);
        let (wi_m, wo_m) = (inner(wi, m), inner(wo, m));
        (square.above(0.0) && wi_m.above(0.0) && wo_m.below(0.0)).then_some(Self {
            h,
            m,
            square,
            length,
            wi_m,
            wo_m,
        })
    }
}

impl Microfacets<f32> {
    /// The pdf by solid angle with which [`Self::sample_normal`] draws `m` for `wi`.
    #[inline]
    pub fn pdf(&self, wi: [f32; 3], m: [f32; 3]) -> f32 {
        if self.visible {
            self.density(m) * self.shadowing_over_cosine(wi) * dot(wi, m).max(0.0)
        } else {
            self.density(m) * m[2]
        }
    }

    /// The pdf of the direction that a sampled normal reflects `wi` into.
    #[inline(always)]
    pub fn reflection_pdf(&self, wi: [f32; 3], wo: [f32; 3]) -> f32 {
        let m = halfway(wi, wo);
        if self.visible {
            return 0.25 * self.density(m) * self.shadowing_over_cosine(wi);
        }
        0.25 * self.density(m) * m[2] / dot(wo, m).max(f32::MIN_POSITIVE)
    }

    /// Samples a normal, of those visible from `wi` (if `visible`) or of all.
    #[inline(always)]
    pub fn sample_normal(&self, wi: [f32; 3], u: [f32; 2]) -> [f32; 3] {
        let [alpha_u, alpha_v] = self.alpha;
        if !self.visible {
            let square = match self.distribution {
                Distribution::Beckmann => -(1.0 - u[0]).ln(),
                Distribution::Ggx => u[0] / (1.0 - u[0]),
            };
            let (slope, [x, y]) = (square.max(0.0).sqrt(), circle(u[1]));
            return normalised([alpha_u * slope * x, alpha_v * slope * y, 1.0]);
        }
        // Seen from the stretched direction the surface has a roughness of one.
        let v = normalised([alpha_u * wi[0], alpha_v * wi[1], wi[2]]);
        match self.distribution {
            Distribution::Beckmann => {
                let [x, y] = visible_slopes(v, u);
                normalised([-alpha_u * x, -alpha_v * y, 1.0])
            }
            Distribution::Ggx => {
                // Normals are halfway between v and a uniform point of a spherical cap (Dupuy2023).
                let height = (1.0 - u[1]) * (1.0 + v[2]);
                let z = height - v[2];
                let ([x, y], sine) = (circle(u[0]), (1.0 - z * z).max(0.0).sqrt());
                normalised([alpha_u * (sine * x + v[0]), alpha_v * (sine * y + v[1]), height])
            }
        }
    }
}
