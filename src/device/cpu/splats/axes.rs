//! The principal axes of splats, sixteen splats at a time, which projection and its derivatives share. Plain loops that
//! compilers vectorise; they round alike on all vector levels.

use crate::device::cpu::vector::lanes::WIDTH;
use crate::transport::number::Number;
use crate::transport::splats::splat::{SCALE_HIGH, SCALE_LOW};

/// A number for each of sixteen splats.
pub(super) type Each = [f32; WIDTH];

/// Directions and inverse widths of sixteen splats. A point x, y pixels from the centre has the coordinates
/// U = inverse₀ (cos x + sin y) and V = inverse₁ (cos y - sin x) along the axes, and the Gaussian is 2^(-U² - V²).
#[derive(Debug, Clone, Copy)]
pub(super) struct Axes {
    pub(super) cos: Each,
    pub(super) sin: Each,
    pub(super) inverse: [Each; 2],
}

/// √(½ log₂ e): at a distance of d standard deviations, a Gaussian's exponent to base 2 is minus the square of this times d.
const HALVED: f32 = 0.849_321_8;

impl Axes {
    /// From the parameters, in a picture whose longer side is `side` pixels.
    #[inline(always)]
    pub(super) fn new(scale: &[Each; 2], rotation: &Each, side: f32) -> Self {
        let mut inverse = [[0.0; WIDTH]; 2];
        for axis in 0..2 {
            for l in 0..WIDTH {
                let clamped = scale[axis][l].clamp(SCALE_LOW, SCALE_HIGH);
                inverse[axis][l] = Number::exp(-clamped) * (HALVED / side);
            }
        }
        let [cos, sin] = cos_sin(rotation);
        Self { cos, sin, inverse }
    }

    /// The entries a, b, c of the triangular matrix a, b; 0, c of (47), for which (a x + b y)² + (c y)² = U² + V².
    #[inline(always)]
    pub(super) fn triangle(&self) -> [Each; 3] {
        let mut triangle = [[0.0; WIDTH]; 3];
        let [p, q] = &self.inverse;
        for l in 0..WIDTH {
            let (cos, sin) = (self.cos[l], self.sin[l]);
            let (x, y) = (p[l] * cos, q[l] * sin);
            let a = (x * x + y * y).sqrt();
            triangle[0][l] = a;
            triangle[1][l] = (p[l] - q[l]) * (p[l] + q[l]) * (cos * sin) / a;
            triangle[2][l] = p[l] * q[l] / a;
        }
        triangle
    }
}

/// Cosines and sines, to 1.5 · 10⁻⁷; beyond 8000 to 3 · 10⁻⁷.
#[inline(always)]
fn cos_sin(angles: &Each) -> [Each; 2] {
    /// Beyond, the parts of π/2 below have too few digits.
    const FAR: f32 = 8000.0;
    const LARGE: f32 = 12_582_912.0;
    /// π/2 in three parts, of which the first two have few digits: their products with whole numbers are exact.
    const QUARTER: [f32; 3] = [1.570_312_5, 4.837_513e-4, 7.549_79e-8];
    let mut near = *angles;
    for l in 0..WIDTH {
        if near[l].abs() > FAR {
            near[l] = f64::from(near[l]).rem_euclid(std::f64::consts::TAU) as f32;
        }
    }
    let [mut all_cos, mut all_sin] = [[0.0; WIDTH]; 2];
    for l in 0..WIDTH {
        let shifted = near[l] * std::f32::consts::FRAC_2_PI + LARGE;
        let turns = shifted - LARGE;
        let r = ((near[l] - turns * QUARTER[0]) - turns * QUARTER[1]) - turns * QUARTER[2];
        let s = r * r;
        let sin = r + r * s * (-0.166_666_55 + s * (8.332_156e-3 - s * 1.951_463_2e-4));
        let cos = (1.0 - 0.5 * s) + s * s * (0.041_666_655 + s * (-1.388_765e-3 + s * 2.446_317_5e-5));
        // The lowest two bits count quarter turns: odd counts swap sine and cosine, and the second bit sets the signs.
        let quarters = shifted.to_bits();
        let is_odd = quarters & 1 == 1;
        let (even, odd) = (if is_odd { sin } else { cos }, if is_odd { cos } else { sin });
        all_cos[l] = f32::from_bits(even.to_bits() ^ (quarters.wrapping_add(1) & 2) << 30);
        all_sin[l] = f32::from_bits(odd.to_bits() ^ (quarters & 2) << 30);
    }
    [all_cos, all_sin]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cosines_and_sines_are_right_to_a_few_ulp_of_one() {
        for i in 0..20_000 {
            let step = if i % 2 == 0 { 0.0171 } else { 1.37 };
            let angles: Each = std::array::from_fn(|l| step * (16 * (i - 10_000) + l as i32) as f32);
            let [cos, sin] = cos_sin(&angles);
            for l in 0..WIDTH {
                let exact = f64::from(angles[l]);
                let off = (f64::from(cos[l]) - exact.cos())
                    .abs()
                    .max((f64::from(sin[l]) - exact.sin()).abs());
                let bound = if angles[l].abs() > 8000.0 { 3e-7 } else { 1.5e-7 };
                assert!(off < bound, "{}: off by {off}", angles[l]);
            }
        }
    }

    /// Triangle and axes give the same sum of squares, for needles too.
    #[test]
    fn triangles_measure_as_axes_do() {
        let rotation: Each = std::array::from_fn(|l| 0.4 * l as f32 - 3.0);
        let narrow: Each = std::array::from_fn(|l| -3.0 - 0.5 * l as f32);
        let axes = Axes::new(&[[-3.0; WIDTH], narrow], &rotation, 100.0);
        let [a, b, c] = axes.triangle();
        for l in 0..WIDTH {
            for [x, y] in [[1.0f32, 0.0], [0.0, 1.0], [0.7, -0.4], [-2.0, 5.0]] {
                let [cos, sin, p, q] =
                    [axes.cos[l], axes.sin[l], axes.inverse[0][l], axes.inverse[1][l]].map(f64::from);
                let [fx, fy] = [f64::from(x), f64::from(y)];
                let along = (p * (cos * fx + sin * fy)).powi(2) + (q * (cos * fy - sin * fx)).powi(2);
                let (u, v) = (a[l] * x + b[l] * y, c[l] * y);
                let found = f64::from(u * u + v * v);
                // The tolerance is relative to the terms of U and V, which may cancel.
                let size = (p * p + q * q) * (fx * fx + fy * fy);
                assert!(
                    (found - along).abs() < 4e-7 * size,
                    "splat {l}: {found}, expected {along}"
                );
            }
            let wide = f64::from(-3.0f32).exp() * 100.0;
            assert!((f64::from(axes.inverse[0][l]) * wide / f64::from(HALVED) - 1.0).abs() < 4e-7);
        }
    }
}
