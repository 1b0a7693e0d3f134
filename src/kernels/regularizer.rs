//! Penalties on a grid and their gradients.

use crate::each::EachEntry;

/// The penalties.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Penalty {
    /// Mean over texels and channels of sqrt(dx² + dy² + dz² + e²) - e of forward differences, e = [`TV_EPSILON`].
    TotalVariation,
    /// Mean over texels of ln(1 + 2 max(x, 0)²) (Plenoxels' Cauchy sparsity).
    Sparsity,
}

/// Rounds the norm in the total variation at zero, where it would have a corner.
pub const TV_EPSILON: f32 = 1e-3;

/// The total variation at one texel and channel, from its value and its three forward neighbours (the texel itself
/// where there is none): the penalty and its derivatives by the neighbours; the derivative by the texel is minus their
/// sum.
#[inline(always)]
pub fn total_variation(value: f32, next: [f32; 3]) -> (f32, [f32; 3]) {
    let d = next.each(|n| n - value);
    let norm = (d[0] * d[0] + d[1] * d[1] + d[2] * d[2] + TV_EPSILON * TV_EPSILON).sqrt();
    (norm - TV_EPSILON, d.each(|x| x / norm))
}

/// The sparsity penalty of a raw density and its derivative.
#[inline(always)]
pub fn sparsity(value: f32) -> (f32, f32) {
    let x = value.max(0.0);
    let square = 2.0 * x * x;
    (square.ln_1p(), 4.0 * x / (1.0 + square))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn derivatives_are_differences() {
        let h = 1e-3f32;
        let (_, d) = total_variation(0.3, [0.5, 0.1, 0.35]);
        for axis in 0..3 {
            let mut up = [0.5, 0.1, 0.35];
            let mut down = up;
            up[axis] += h;
            down[axis] -= h;
            let difference = (total_variation(0.3, up).0 - total_variation(0.3, down).0) / (2.0 * h);
            assert!(
                (d[axis] - difference).abs() < 1e-3,
                "axis {axis}: {} != {difference}",
                d[axis]
            );
        }
        let (_, slope) = sparsity(0.8);
        let difference = (sparsity(0.8 + h).0 - sparsity(0.8 - h).0) / (2.0 * h);
        assert!((slope - difference).abs() < 1e-3);
        assert_eq!(sparsity(-1.0), (0.0, 0.0));
    }

    /// With differences of the order of e = 10⁻³: sqrt(4e² + 4e² + e² + e²) - e and so on. A constant region has no
    /// penalty.
    #[test]
    fn the_tip_of_the_total_variation_is_rounded_by_a_thousandth() {
        let (penalty, d) = total_variation(0.0, [2e-3, -2e-3, 1e-3]);
        let norm = 10f32.sqrt() * 1e-3;
        assert!((penalty - (norm - 1e-3)).abs() < 1e-9, "{penalty}");
        for (found, expected) in d.into_iter().zip([2e-3 / norm, -2e-3 / norm, 1e-3 / norm]) {
            assert!((found - expected).abs() < 1e-6, "{d:?}");
        }
        assert_eq!(total_variation(0.5, [0.5; 3]), (0.0, [0.0; 3]));
        // For differences much larger than e it is the norm of the difference.
        let (penalty, d) = total_variation(1.0, [4.0, 5.0, 1.0]);
        assert!((penalty - 4.999).abs() < 1e-5 && (d[0] - 0.6).abs() < 1e-6 && (d[1] - 0.8).abs() < 1e-6);
    }

    /// ln(1 + 2 x²) and 4 x / (1 + 2 x²) at 1/2: ln 1.5 and 4/3.
    #[test]
    fn sparsity_is_cauchys() {
        let (penalty, slope) = sparsity(0.5);
        assert!((penalty - 0.405_465_1).abs() < 1e-7 && (slope - 4.0 / 3.0).abs() < 1e-6);
        assert_eq!(sparsity(0.0), (0.0, 0.0));
    }
}
