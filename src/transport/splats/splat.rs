//! One Gaussian: from the parameters to a shape in pixels, its weight at a pixel, and the adjoints of both.

use super::blend::MIN_WEIGHT;
use crate::each::EachEntry;
use crate::transport::number::Number;

/// The parameters of one splat. The unit of lengths is the longer side of the picture.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Parameters<N> {
    /// From the picture's top left corner: right, down.
    pub position: [N; 2],
    /// Logarithms of the standard deviations along the splat's own axes.
    pub scale: [N; 2],
    /// Angle from the picture's first axis to the splat's, in radians.
    pub rotation: N,
    pub color: [N; 3],
    /// The weight at the centre.
    pub opacity: N,
}

/// A splat in pixels.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Splat<N> {
    pub center: [N; 2],
    /// The inverse of the covariance: xx, xy, yy.
    pub conic: [N; 3],
    pub opacity: N,
    pub color: [N; 3],
}

/// Derivatives of the loss by a [`Splat`].
pub type SplatAdjoint<N> = Splat<N>;

/// Logarithms of standard deviations are clamped to this, so that variances and their inverses are finite.
pub const SCALE_LOW: f32 = -16.0;
/// Their upper clamp.
pub const SCALE_HIGH: f32 = 4.0;

impl<N: Number> Splat<N> {
    /// The shape of a splat in a picture whose longer side is `side` pixels.
    #[inline(always)]
    pub fn project(of: &Parameters<N>, side: f32) -> Self {
        let side = N::lift(side);
        let [i, j] = of.scale.each(|scale| inverse_square(scale, side));
        let (cos, sin) = (of.rotation.cos(), of.rotation.sin());
        let conic = [
            cos * cos * i + sin * sin * j,
            cos * sin * (i - j),
            sin * sin * i + cos * cos * j,
        ];
        Self {
            center: of.position.each(|x| x * side),
            conic,
            opacity: of.opacity,
            color: of.color,
        }
    }

    /// [`Self::project`] backwards: derivatives by the parameters.
    #[inline(always)]
    pub fn project_adjoint(of: &Parameters<N>, side: f32, by: &SplatAdjoint<N>) -> Parameters<N> {
        let side = N::lift(side);
        let [i, j] = of.scale.each(|scale| inverse_square(scale, side));
        let (cos, sin) = (of.rotation.cos(), of.rotation.sin());
        let [xx, xy, yy] = by.conic;
        let by_i = cos * cos * xx + cos * sin * xy + sin * sin * yy;
        let by_j = sin * sin * xx - cos * sin * xy + cos * cos * yy;
        let two = N::lift(2.0);
        let turn = two * cos * sin * (yy - xx) + (cos * cos - sin * sin) * xy;
        let slope = |scale: N, x: N, by: N| match is_clamped(scale) {
            true => N::lift(0.0),
            false => -(two * x * by),
        };
        Parameters {
            position: by.center.each(|x| x * side),
            scale: [slope(of.scale[0], i, by_i), slope(of.scale[1], j, by_j)],
            rotation: (i - j) * turn,
            color: by.color,
            opacity: by.opacity,
        }
    }

    /// The exponent of the Gaussian at a point, and the point from the centre.
    #[inline(always)]
    fn power(&self, point: [f32; 2]) -> (N, [N; 2]) {
        let d = [N::lift(point[0]) - self.center[0], N::lift(point[1]) - self.center[1]];
        let [xx, xy, yy] = self.conic;
        let half = N::lift(0.5);
        (-(half * (xx * d[0] * d[0] + yy * d[1] * d[1]) + xy * d[0] * d[1]), d)
    }

    /// The weight at a point, not clamped yet.
    #[inline(always)]
    pub fn eval(&self, point: [f32; 2]) -> N {
        self.opacity * self.power(point).0.exp()
    }

    /// [`Self::eval`] backwards; no derivative by the colour.
    #[inline(always)]
    pub fn eval_adjoint(&self, point: [f32; 2], by_weight: N) -> SplatAdjoint<N> {
        let (power, [x, y]) = self.power(point);
        let gauss = power.exp();
        let by_power = by_weight * self.opacity * gauss;
        let [xx, xy, yy] = self.conic;
        let half = N::lift(0.5);
        Splat {
            center: [by_power * (xx * x + xy * y), by_power * (xy * x + yy * y)],
            conic: [
                -(half * by_power * x * x),
                -(by_power * x * y),
                -(half * by_power * y * y),
            ],
            opacity: by_weight * gauss,
            color: [N::lift(0.0); 3],
        }
    }

    /// Adds other derivatives.
    #[inline(always)]
    pub fn add(&mut self, other: &Self) {
        for i in 0..2 {
            self.center[i] += other.center[i];
        }
        for i in 0..3 {
            self.conic[i] += other.conic[i];
            self.color[i] += other.color[i];
        }
        self.opacity += other.opacity;
    }

    /// No derivatives.
    #[inline(always)]
    pub fn zero() -> Self {
        let zero = N::lift(0.0);
        Self {
            center: [zero; 2],
            conic: [zero; 3],
            opacity: zero,
            color: [zero; 3],
        }
    }
}

/// One over the square of a standard deviation in pixels.
#[inline(always)]
fn inverse_square<N: Number>(scale: N, side: N) -> N {
    let clamped = scale.max(N::lift(SCALE_LOW)).min(N::lift(SCALE_HIGH));
    (-(N::lift(2.0) * clamped)).exp() / (side * side)
}

#[inline(always)]
fn is_clamped<N: Number>(scale: N) -> bool {
    scale.below(SCALE_LOW) || scale.above(SCALE_HIGH)
}

/// Half the width and height, in pixels, of the box outside of which a splat's weight is below [`MIN_WEIGHT`]; None if it is
/// nowhere above, or the box or the position is not finite.
#[inline(always)]
pub fn reach(of: &Parameters<f32>, side: f32) -> Option<[f32; 2]> {
    /// Margin in pixels, for the rounding of weights at the edge.
    const SLACK: f32 = 0.01;
    let share = of.opacity / MIN_WEIGHT;
    if !(share > 1.0 && share.is_finite()) {
        return None;
    }
    let [i, j] = [inverse_square(of.scale[0], side), inverse_square(of.scale[1], side)];
    let (cos, sin) = (of.rotation.cos(), of.rotation.sin());
    let widest = 2.0 * share.ln();
    let across = |a: f32, b: f32| (widest * (a * a / i + b * b / j)).sqrt() + SLACK;
    let found = [across(cos, sin), across(sin, cos)];
    let known = found.iter().chain(&of.position).all(|x| x.is_finite());
    known.then_some(found)
}
