//! Losses between an image x and its reference r, per channel, and their derivatives by x.

/// Per-channel loss, averaged over the pixels and channels of a batch.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
pub enum Loss {
    /// |x - r|
    L1,
    /// (x - r)²
    L2,
    /// d²/2 for |d| < delta, else delta (|d| - delta/2)
    Huber { delta: f32 },
    /// (x - r)² / (x̄² + 0.01), the denominator detached
    RelativeL2,
    /// ln(1 + |x - r|)
    LogL1,
    /// (x / m - r / m')², m and m' being the means over all pixels and channels of render and reference, both detached
    NormalizedL2,
    /// (a x - b r)² with a = `image` and b = `reference`: replaces [`Self::NormalizedL2`] once the means are known.
    ScaledL2 { image: f32, reference: f32 },
    /// w x with a fixed weight w per pixel and channel, for gradient checks: one for `seed` 0, else uniform in [-1,
    /// 1).
    Linear { seed: u32 },
}

/// Keeps the relative loss finite at black pixels.
pub const RELATIVE_FLOOR: f32 = 0.01;

/// Loss of one channel and its derivative by `x`. `weight` is that of [`Loss::Linear`].
#[inline(always)]
pub fn loss_eval(loss: Loss, x: f32, reference: f32, weight: f32) -> (f32, f32) {
    let d = x - reference;
    match loss {
        Loss::L1 => (d.abs(), sign(d)),
        Loss::L2 => (d * d, 2.0 * d),
        Loss::Huber { delta } => {
            if d.abs() < delta {
                (0.5 * d * d, d)
            } else {
                (delta * (d.abs() - 0.5 * delta), delta * sign(d))
            }
        }
        Loss::RelativeL2 => {
            let scale = 1.0 / (x * x + RELATIVE_FLOOR);
            (d * d * scale, 2.0 * d * scale)
        }
        Loss::NormalizedL2 => (d * d, 2.0 * d),
        Loss::ScaledL2 {
            image,
            reference: scale,
        } => {
            let d = image * x - scale * reference;
            (d * d, 2.0 * image * d)
        }
        Loss::LogL1 => (d.abs().ln_1p(), sign(d) / (1.0 + d.abs())),
        Loss::Linear { .. } => (weight * x, weight),
    }
}

/// -1, 0 or 1: all |d| losses use the subgradient 0 at d = 0.
#[inline(always)]
fn sign(d: f32) -> f32 {
    if d > 0.0 {
        1.0
    } else if d < 0.0 {
        -1.0
    } else {
        0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slopes_are_the_differences_of_the_losses() {
        let h = 1e-2f32;
        for loss in [
            Loss::L1,
            Loss::L2,
            Loss::Huber { delta: 0.3 },
            Loss::LogL1,
            Loss::ScaledL2 {
                image: 1.5,
                reference: 0.7,
            },
            Loss::Linear { seed: 1 },
        ] {
            for (x, r) in [(0.2, 0.9), (0.9, 0.2), (0.5, 0.4), (1.5, 0.0)] {
                let (_, slope) = loss_eval(loss, x, r, 0.7);
                let difference = (loss_eval(loss, x + h, r, 0.7).0 - loss_eval(loss, x - h, r, 0.7).0) / (2.0 * h);
                assert!(
                    (slope - difference).abs() < 1e-3,
                    "{loss:?} at {x}, {r}: {slope} != {difference}"
                );
            }
        }
        let (value, slope) = loss_eval(Loss::RelativeL2, 0.3, 0.1, 0.0);
        assert!((value - 0.04 / 0.1).abs() < 1e-6 && (slope - 0.4 / 0.1).abs() < 1e-5);
    }

    /// Expected values by hand: d = x - r is 1/2, -1/4, 0, and the Huber loss changes to linear at 1/4.
    #[test]
    fn losses_have_the_values_that_define_them() {
        let huber = Loss::Huber { delta: 0.25 };
        let cases = [
            (Loss::L1, [(0.5, 1.0), (0.25, -1.0), (0.0, 0.0)]),
            (Loss::L2, [(0.25, 1.0), (0.0625, -0.5), (0.0, 0.0)]),
            (huber, [(0.25 * 0.375, 0.25), (0.5 * 0.0625, -0.25), (0.0, 0.0)]),
            // x is 1, 1/4 and 1/2; the relative loss divides d² by 1.01, 0.0725 and 0.26.
            (
                Loss::RelativeL2,
                [(0.25 / 1.01, 1.0 / 1.01), (0.0625 / 0.0725, -0.5 / 0.0725), (0.0, 0.0)],
            ),
            (
                Loss::LogL1,
                [(0.405_465_1, 1.0 / 1.5), (0.223_143_55, -0.8), (0.0, 0.0)],
            ),
            (Loss::Linear { seed: 1 }, [(-3.0, -3.0), (-0.75, -3.0), (-1.5, -3.0)]),
        ];
        for (loss, expected) in cases {
            for ((x, r), (value, slope)) in [(1.0, 0.5), (0.25, 0.5), (0.5, 0.5)].into_iter().zip(expected) {
                let found = loss_eval(loss, x, r, -3.0);
                let near = |a: f32, b: f32| (a - b).abs() <= 1e-6 * b.abs();
                assert!(
                    near(found.0, value) && near(found.1, slope),
                    "{loss:?} at {x}, {r}: {found:?}"
                );
            }
        }
    }
}
