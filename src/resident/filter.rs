//! The table by which samples of a Gaussian filter are drawn.

use super::layout::FILTER_TABLE;

/// The distribution function of the filter exp(-z²/2) - exp(-8) on [-4, 4] at z = -4 + i/8, padded with ones.
/// Between entries it is linear: the density drawn from is the exact filter's mean over each eighth.
pub fn gaussian_table() -> [f32; FILTER_TABLE] {
    let density = |z: f64| (-0.5 * z * z).exp() - (-8.0f64).exp();
    // Simpson's rule on 64 parts of each eighth.
    let part = |from: f64| {
        let h = 0.125 / 64.0;
        (0..64)
            .map(|i| {
                let a = from + f64::from(i) * h;
                (density(a) + 4.0 * density(a + 0.5 * h) + density(a + h)) * h / 6.0
            })
            .sum::<f64>()
    };
    let mut sums = vec![0f64];
    for i in 0..64 {
        sums.push(sums[i] + part(-4.0 + 0.125 * i as f64));
    }
    let total = sums[64];
    let mut table = [1.0; FILTER_TABLE];
    for (t, s) in table.iter_mut().zip(&sums) {
        *t = (s / total) as f32;
    }
    table
}
