//! Visible slopes of a Beckmann surface of roughness one, by inverting their distribution function (Jakob2014).

use crate::each::EachEntry;
use crate::transport::number::Number;

/// 1 / √π
const INV_SQRT_PI: f32 = 0.564_189_6;
/// Draws are kept this far from 0 and 1, where slopes are infinite.
const MARGIN: f32 = 1e-6;
/// Steps of Newton's method: the distribution function then is right to 3e-5.
const STEPS: u32 = 3;

/// The error function, right to 2e-7 (Abramowitz1964, 7.1.26).
#[inline]
pub fn error_function(x: f32) -> f32 {
    let a = x.abs();
    let t = 1.0 / (1.0 + 0.327_591_1 * a);
    let p = 1.061_405_4 * t - 1.453_152;
    let p = p * t + 1.421_413_7;
    let p = p * t - 0.284_496_74;
    let p = p * t + 0.254_829_6;
    let value = 1.0 - p * t * Number::exp(-a * a);
    if x < 0.0 { -value } else { value }
}

/// The inverse of the error function, right to a relative 2e-5 (Giles2011).
#[inline]
pub fn inverse_error_function(x: f32) -> f32 {
    let w = -Number::ln((1.0 - x) * (1.0 + x));
    if w < 5.0 {
        let w = w - 2.5;
        let p = 2.810_226_4e-8;
        let p = 3.432_739_4e-7 + p * w;
        let p = -3.523_387_7e-6 + p * w;
        let p = -4.391_506_5e-6 + p * w;
        let p = 2.185_808_7e-4 + p * w;
        let p = -1.253_725e-3 + p * w;
        let p = -4.177_681_6e-3 + p * w;
        let p = 0.246_640_73 + p * w;
        return (1.501_409_4 + p * w) * x;
    }
    let w = w.sqrt() - 3.0;
    let p = -2.002_142_6e-4;
    let p = 1.009_505_6e-4 + p * w;
    let p = 1.349_343_2e-3 + p * w;
    let p = -3.673_428_4e-3 + p * w;
    let p = 5.739_507_7e-3 + p * w;
    let p = -7.622_461_3e-3 + p * w;
    let p = 9.438_870_5e-3 + p * w;
    let p = 1.001_674 + p * w;
    (2.832_976_8 + p * w) * x
}

/// Samples the slopes that the unit vector `v` sees.
#[inline]
pub fn visible_slopes(v: [f32; 3], u: [f32; 2]) -> [f32; 2] {
    let sine = (v[0] * v[0] + v[1] * v[1]).sqrt();
    let cosine = v[2].max(MARGIN);
    let tangent = sine / cosine;
    // The slope x along v, at most the cotangent of v, is sampled as b = erf x: its distribution function is 1 + b +
    // tan exp(-x²) / √π over the largest value of that.
    let largest = cosine / sine.max(1e-7);
    let (mut low, mut high) = (-1.0, error_function(largest));
    let total = 1.0 + high + tangent * INV_SQRT_PI * Number::exp(-largest * largest);
    let u = u.each(|u| u.clamp(MARGIN, 1.0 - MARGIN));
    let target = u[0] * total;
    let inside = |b: f32| b.clamp(-1.0 + MARGIN, 1.0 - MARGIN);
    // The first guess of b: high - b is about proportional to √(1 - u) at grazing angles and to 1 - u at normal incidence.
    let power = 1.0 - 0.5 * (1.0 - cosine).max(0.0).sqrt();
    let mut b = inside(high - (1.0 + high) * Number::exp(power * Number::ln(1.0 - u[0])));
    for _ in 0..STEPS {
        let x = inverse_error_function(b);
        let excess = 1.0 + b + tangent * INV_SQRT_PI * Number::exp(-x * x) - target;
        if excess > 0.0 {
            high = b;
        } else {
            low = b;
        }
        let next = b - excess / (1.0 - x * tangent).max(MARGIN);
        b = inside(if next >= low && next <= high {
            next
        } else {
            0.5 * (low + high)
        });
    }
    let (x, y) = (inverse_error_function(b), inverse_error_function(2.0 * u[1] - 1.0));
    let [c, s] = if sine > 0.0 {
        [v[0] / sine, v[1] / sine]
    } else {
        [1.0, 0.0]
    };
    [c * x - s * y, s * x + c * y]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The error function in f64, by Simpson's rule with 4000 intervals.
    fn exact(x: f64) -> f64 {
        let steps = 4000;
        let f = |t: f64| (-t * t).exp();
        let h = x / f64::from(steps);
        let inner: f64 = (1..steps).map(|i| (2 + 2 * (i % 2)) as f64 * f(f64::from(i) * h)).sum();
        (f(0.0) + inner + f(x)) * h / 3.0 * 2.0 / std::f64::consts::PI.sqrt()
    }

    #[test]
    fn the_error_function_and_its_inverse_are_accurate() {
        for i in -350..=350 {
            let x = i as f32 * 0.01;
            let value = exact(f64::from(x));
            assert!((f64::from(error_function(x)) - value).abs() < 4e-7, "erf {x}");
            if value.abs() < 0.999_99 {
                // The argument's rounding counts where the function is flat.
                let slope = 2.0 / std::f64::consts::PI.sqrt() * (-f64::from(x * x)).exp();
                let off = f64::from(inverse_error_function(value as f32) - x).abs();
                assert!(
                    off < 2e-5 * f64::from(x.abs()) + 1e-7 / slope,
                    "erfinv of erf {x}: {off}"
                );
            }
        }
    }

    #[test]
    fn sampled_slopes_invert_their_distribution_function() {
        for cosine in [1.0f32, 0.999, 0.9, 0.7, 0.4, 0.1, 0.01, 1e-4] {
            let sine = (1.0 - cosine * cosine).sqrt();
            let (tangent, largest) = (f64::from(sine / cosine), f64::from(cosine / sine.max(1e-7)).min(10.0));
            let distribution = |x: f64| 1.0 + exact(x) + tangent / std::f64::consts::PI.sqrt() * (-x * x).exp();
            for i in 0..64 {
                let u = (i as f32 + 0.5) / 64.0;
                let [x, y] = visible_slopes([sine, 0.0, cosine], [u, 0.3]).map(f64::from);
                let off = distribution(x) / distribution(largest) - f64::from(u);
                assert!(off.abs() < 5e-5, "cosine {cosine}, u {u}: {off}");
                assert!((exact(y) + 0.4).abs() < 1e-5, "{y}");
            }
        }
    }
}
