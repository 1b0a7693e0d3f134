//! Reconstruction filters by importance sampling: a sample's film position is drawn from its pixel's filter, truncated
//! at the film's edge and renormalised, so that every sample of a pixel has weight one.

use crate::resident::layout::{FILTER_TABLE, filter};

/// Standard deviations at which the Gaussian filter is truncated.
pub const GAUSSIAN_EXTENT: f32 = 4.0;
const STEPS_PER_DEVIATION: f32 = 8.0;
const LAST_STEP: f32 = 64.0;

/// Half the width of a filter in pixels.
#[inline(always)]
pub fn filter_radius(kind: u32, size: f32) -> f32 {
    match kind {
        filter::BOX => 0.5,
        filter::TENT => size,
        _ => GAUSSIAN_EXTENT * size,
    }
}

/// Cumulative distribution function of the filter, at `offset` pixels from its centre.
#[inline(always)]
pub fn filter_cdf(kind: u32, size: f32, table: &[f32; FILTER_TABLE], offset: f32) -> f32 {
    match kind {
        filter::BOX => (offset + 0.5).clamp(0.0, 1.0),
        filter::TENT => {
            let x = (offset / size).clamp(-1.0, 1.0);
            if x < 0.0 {
                0.5 * (1.0 + x) * (1.0 + x)
            } else {
                1.0 - 0.5 * (1.0 - x) * (1.0 - x)
            }
        }
        _ => {
            let x = ((offset / size + GAUSSIAN_EXTENT) * STEPS_PER_DEVIATION).clamp(0.0, LAST_STEP);
            let i = x.floor().min(LAST_STEP - 1.0);
            let (low, high) = (table[i as usize], table[i as usize + 1]);
            low + (high - low) * (x - i)
        }
    }
}

/// The inverse of [`filter_cdf`].
#[inline(always)]
pub fn filter_quantile(kind: u32, size: f32, table: &[f32; FILTER_TABLE], u: f32) -> f32 {
    match kind {
        filter::BOX => u - 0.5,
        filter::TENT => {
            let x = if u < 0.5 {
                (2.0 * u).sqrt() - 1.0
            } else {
                1.0 - (2.0 * (1.0 - u)).sqrt()
            };
            x * size
        }
        _ => {
            let (mut low, mut high) = (0usize, 64usize);
            while high - low > 1 {
                let middle = (low + high) / 2;
                if table[middle] <= u {
                    low = middle;
                } else {
                    high = middle;
                }
            }
            let (a, b) = (table[low], table[low + 1]);
            let x = low as f32 + (u - a) / (b - a);
            (x / STEPS_PER_DEVIATION - GAUSSIAN_EXTENT) * size
        }
    }
}

/// Samples the film position of `pixel` along one axis, in pixels from the film's edge, with the uniform number `u`.
#[inline(always)]
pub fn filter_sample(kind: u32, size: f32, table: &[f32; FILTER_TABLE], pixel: u32, extent: u32, u: f32) -> f32 {
    let center = pixel as f32 + 0.5;
    if kind == filter::BOX {
        return pixel as f32 + u;
    }
    let low = filter_cdf(kind, size, table, -center);
    let high = filter_cdf(kind, size, table, extent as f32 - center);
    let place = center + filter_quantile(kind, size, table, low + (high - low) * u);
    place.clamp(0.0, extent as f32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resident::filter::gaussian_table;
    use crate::transport::rays::random::test_uniform;

    /// Chi-square test of 2^17 samples against the exact filter's pdf truncated to the film, in 40 bins, for pixels
    /// inside and at the border. The bound is the 1 - 1e-4 quantile of 39 degrees of freedom.
    #[test]
    fn samples_follow_the_truncated_filter() {
        let table = gaussian_table();
        for (kind, size) in [
            (filter::BOX, 0.0),
            (filter::TENT, 1.0),
            (filter::TENT, 1.7),
            (filter::GAUSSIAN, 0.5),
        ] {
            for pixel in [0u32, 1, 5, 8] {
                let (extent, count, bins) = (9u32, 1u32 << 17, 40usize);
                let radius = filter_radius(kind, size);
                let center = pixel as f32 + 0.5;
                let low = (center - radius).max(0.0);
                let high = (center + radius).min(extent as f32);
                let density = |x: f32| {
                    let o = x - center;
                    match kind {
                        filter::BOX => 1.0,
                        filter::TENT => 1.0 - (o / size).abs(),
                        _ => (-0.5 * (o / size).powi(2)).exp() - (-8.0f32).exp(),
                    }
                };
                let mut mass: Vec<f64> = (0..bins)
                    .map(|b| {
                        (0..200)
                            .map(|i| {
                                let f = (b as f32 + (i as f32 + 0.5) / 200.0) / bins as f32;
                                f64::from(density(low + (high - low) * f))
                            })
                            .sum()
                    })
                    .collect();
                let total: f64 = mass.iter().sum();
                mass.iter_mut().for_each(|m| *m *= f64::from(count) / total);
                let mut found = vec![0f64; bins];
                for i in 0..count {
                    let u = test_uniform(11, i, pixel)[0];
                    let x = filter_sample(kind, size, &table, pixel, extent, u);
                    assert!((low - 1e-5..=high + 1e-5).contains(&x), "{x} outside {low}..{high}");
                    let b = ((x - low) / (high - low) * bins as f32) as usize;
                    found[b.min(bins - 1)] += 1.0;
                }
                let chi2: f64 = found
                    .iter()
                    .zip(&mass)
                    .filter(|(_, m)| **m > 5.0)
                    .map(|(n, m)| (n - m).powi(2) / m)
                    .sum();
                assert!(chi2 < 82.0, "kind {kind} size {size} pixel {pixel}: chi2 = {chi2}");
            }
        }
    }
}
