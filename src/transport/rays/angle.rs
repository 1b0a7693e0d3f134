//! Arc tangent and arc cosine by series, so that loops over them vectorise: those of the standard library are function calls.
//! `shaders/common/math.wgsl` has the same.

// Chooses between two computed values without a branch, as the lanes of a vector do.
use std::f32::consts::{FRAC_PI_2, FRAC_PI_4, PI};
use std::hint::select_unpredictable as select;

/// The angle of the point (x, y) in radians, as `atan2`, to about 2 ulp of pi. The ratio of the smaller to the larger
/// coordinate is reduced to |r| <= tan(pi / 8) for the series.
#[inline(always)]
pub fn arc_tangent(y: f32, x: f32) -> f32 {
    let (beside, above) = (x.abs(), y.abs());
    let steep = above > beside;
    let (low, high) = (select(steep, beside, above), select(steep, above, beside));
    let is_large = low > 0.414_213_56 * high;
    let ratio = select(is_large, low - high, low) / select(is_large, low + high, high);
    let q = ratio * ratio;
    let mut p = -1.0 / 15.0;
    p = p * q + 1.0 / 13.0;
    p = p * q - 1.0 / 11.0;
    p = p * q + 1.0 / 9.0;
    p = p * q - 1.0 / 7.0;
    p = p * q + 1.0 / 5.0;
    p = p * q - 1.0 / 3.0;
    let angle = select(is_large, FRAC_PI_4, 0.0) + (ratio + ratio * q * p);
    let angle = select(steep, FRAC_PI_2 - angle, angle);
    let angle = select(x < 0.0, PI - angle, angle);
    let angle = select(y < 0.0, -angle, angle);
    select(high == 0.0, 0.0, angle)
}

/// The angle in radians with cosine x.
#[inline(always)]
pub fn arc_cosine(x: f32) -> f32 {
    arc_tangent(((1.0 - x) * (1.0 + x)).sqrt(), x)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Against the standard library in f64, all around and on the axes.
    #[test]
    fn angles_are_accurate() {
        for i in 0..(1u32 << 16) {
            let angle = (f64::from(i) / 32768.0 - 1.0) * std::f64::consts::PI;
            let [x, y] = [angle.cos() as f32 * 3.0, angle.sin() as f32 * 3.0];
            let error = (f64::from(arc_tangent(y, x)) - f64::from(y).atan2(f64::from(x))).abs();
            assert!(error < 5e-7, "({x}, {y}): {error}");
            let cosine = angle.cos() as f32;
            let error = (f64::from(arc_cosine(cosine)) - f64::from(cosine).acos()).abs();
            assert!(error < 5e-7, "{cosine}: {error}");
        }
        assert_eq!([arc_tangent(0.0, 0.0), arc_tangent(0.0, 1.0)], [0.0; 2]);
        assert_eq!([arc_tangent(2.0, 0.0), arc_tangent(-2.0, 0.0)], [FRAC_PI_2, -FRAC_PI_2]);
        assert_eq!(arc_tangent(0.0, -1.0), PI);
        assert_eq!([arc_cosine(1.0), arc_cosine(-1.0)], [0.0, PI]);
    }
}
