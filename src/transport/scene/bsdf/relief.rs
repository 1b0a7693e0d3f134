//! A perturbed normal, of a normal map or a bump map (a relief): its frame in the local frame of the surface, the
//! shadowing of light by the relief (Estevez2019), and the derivatives by the normal.

use super::local::{inner, outer};
use crate::each::EachEntry;
use crate::transport::number::Number;

/// The squared roughness of microfacets over the squared slope of a normal that is as steep: 1/8.
const STEEPNESS: f32 = 0.125;

/// The frame of a perturbed normal, in the local frame of the surface.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Relief<N> {
    /// The normal before normalisation, turned towards the viewer.
    m: [N; 3],
    /// 1 / |m|; zero for m = 0.
    scale: N,
    /// -1 where x and y were reversed to turn it towards the viewer.
    sign: f32,
    /// The normal.
    n: [N; 3],
    /// The length of the normal's part perpendicular to x.
    across: N,
    /// The other axes: along x as far as that is tangential, and perpendicular to both.
    s: [N; 3],
    t: [N; 3],
}

impl<N: Number> Relief<N> {
    /// The frame of the normal along `m`. If it `flips` and `wi` sees its back while it sees the front of the surface,
    /// or the other way round, x and y are reversed. m = 0 stands for the surface's own normal.
    #[inline]
    pub fn new(m: [N; 3], wi: [N; 3], flips: bool) -> Self {
        let (zero, one) = (N::lift(0.0), N::lift(1.0));
        let seen = inner(m, wi) * wi[2];
        let sign = if flips && !seen.above(0.0) { -1.0 } else { 1.0 };
        let m = [m[0] * N::lift(sign), m[1] * N::lift(sign), m[2]];
        let square = inner(m, m);
        let (scale, n) = if square.above(0.0) {
            let scale = square.sqrt().recip();
            (scale, m.each(|x| x * scale))
        } else {
            (zero, [zero, zero, one])
        };
        let square = n[1] * n[1] + n[2] * n[2];
        let (across, s) = if square.above(0.0) {
            let across = square.sqrt();
            let along = -n[0] / across;
            (across, [across, along * n[1], along * n[2]])
        } else {
            (zero, [zero, zero, -n[0]])
        };
        Self {
            m,
            scale,
            sign,
            n,
            across,
            s,
            t: outer(n, s),
        }
    }

    /// A direction of the surface's frame in that of the normal.
    #[inline]
    pub fn to_local(&self, v: [N; 3]) -> [N; 3] {
        [inner(self.s, v), inner(self.t, v), inner(self.n, v)]
    }

    /// A direction in the frame of the normal in the surface's.
    #[inline]
    pub fn to_surface(&self, v: [N; 3]) -> [N; 3] {
        [0, 1, 2].each(|a| self.s[a] * v[0] + self.t[a] * v[1] + self.n[a] * v[2])
    }

    /// The squared roughness |m_xy|² / (8 m_z²) of microfacets as steep as the normal; None where it is clamped to one.
    #[inline]
    fn roughness(&self) -> Option<N> {
        let [x, y, z] = self.m;
        let across = N::lift(STEEPNESS) * (x * x + y * y);
        let along = z * z;
        (along - across).above(0.0).then(|| across / along)
    }

    /// The share of light from `wo`, a direction in the surface's frame, that the relief does not shadow.
    #[inline]
    pub fn shadowing(&self, wo: [N; 3]) -> N {
        let square = self.roughness().unwrap_or(N::lift(1.0)) * tangent_square(wo);
        N::lift(2.0) / (N::lift(1.0) + (N::lift(1.0) + square).sqrt())
    }

    /// The derivatives by the vector m that [`Self::new`] was given, (31d). `torque` is the derivative by rotating both
    /// directions in the normal's frame, `by_shadowing` that by [`Self::shadowing`] for `wo`.
    #[inline]
    pub fn adjoint(&self, torque: [N; 3], wo: [N; 3], by_shadowing: N) -> [N; 3] {
        // The frame turns by t · dn about -s and by s · dn about t; about n it turns so that s stays along x.
        let about_n = if self.across.above(0.0) {
            torque[2] * self.n[0] / self.across
        } else {
            N::lift(0.0)
        };
        let by_t = (torque[0] + about_n) * self.scale;
        let by_s = -torque[1] * self.scale;
        let steep = self.shadowing_slopes(wo);
        let [x, y, z] = [0, 1, 2].each(|a| self.t[a] * by_t + self.s[a] * by_s + steep[a] * by_shadowing);
        [x * N::lift(self.sign), y * N::lift(self.sign), z]
    }

    /// The gradient of [`Self::shadowing`] by the components of m.
    #[inline]
    fn shadowing_slopes(&self, wo: [N; 3]) -> [N; 3] {
        let Some(roughness) = self.roughness() else {
            return [N::lift(0.0); 3];
        };
        let (one, tangent) = (N::lift(1.0), tangent_square(wo));
        let root = (one + roughness * tangent).sqrt();
        let sum = one + root;
        let by_roughness = -tangent / (root * sum * sum);
        let [x, y, z] = self.m;
        let across = by_roughness * N::lift(2.0 * STEEPNESS) / (z * z);
        [across * x, across * y, -across * (x * x + y * y) / z]
    }

    /// The gradient of [`Self::shadowing`] by `wo`.
    #[inline]
    pub fn shadowing_by_direction(&self, wo: [N; 3]) -> [N; 3] {
        let (one, roughness) = (N::lift(1.0), self.roughness().unwrap_or(N::lift(1.0)));
        let root = (one + roughness * tangent_square(wo)).sqrt();
        let sum = one + root;
        let [x, y, z] = wo;
        let across = -roughness / (root * sum * sum) * N::lift(2.0) / (z * z);
        [across * x, across * y, -across * (x * x + y * y) / z]
    }
}

/// The squared tangent of the angle to the surface's normal.
#[inline(always)]
fn tangent_square<N: Number>(wo: [N; 3]) -> N {
    (wo[0] * wo[0] + wo[1] * wo[1]) / (wo[2] * wo[2])
}
