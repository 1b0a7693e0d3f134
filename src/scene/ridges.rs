//! The ridges of cut glass and of hammered metal, for scenes that recover them: waves periodic in u and v, without a seam on
//! a body whose texture coordinates wrap around in both directions.

use std::f64::consts::{PI, TAU};

use rand_core::Rng;
use rand_pcg::Pcg64;

use super::relief::Heights;

/// The number of periods along u and v of each wave: the first makes slanted ridges, the others make each ridge differ.
const WAVES: [[i32; 2]; 5] = [[3, 1], [2, -2], [1, 2], [-2, 1], [1, 1]];
/// The steepest slope of each wave.
const SLOPES: [f64; 5] = [0.09, 0.04, 0.04, 0.03, 0.02];

/// The relief of a seed, periodic along both axes.
pub(super) fn ridges(seed: u64) -> Heights {
    let mut stream = Pcg64::new(u128::from(seed), 0x7269_6467);
    let mut uniform = || (stream.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
    let waves: Vec<[f64; 4]> = WAVES
        .iter()
        .zip(SLOPES)
        .map(|([across, down], slope)| {
            // The square [-1, 1]² has sides of length 2, so that n periods have the angular frequency π n.
            let [x, y] = [across, down].map(|waves| PI * f64::from(*waves));
            [x, y, slope / x.hypot(y), TAU * uniform()]
        })
        .collect();
    Box::new(move |u, v| {
        waves
            .iter()
            .map(|[x, y, height, phase]| height * (x * u + y * v + phase).sin())
            .sum()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_close_and_are_not_steep() {
        let heights = ridges(3);
        let steepest: f64 = SLOPES.iter().sum();
        for i in 0..50 {
            let (a, b) = (-1.0 + 0.04 * f64::from(i), 0.3 - 0.02 * f64::from(i));
            assert!((heights(a, b) - heights(a + 2.0, b)).abs() < 1e-12);
            assert!((heights(a, b) - heights(a, b - 2.0)).abs() < 1e-12);
            let slope = (heights(a + 1e-4, b) - heights(a - 1e-4, b)) / 2e-4;
            assert!(slope.abs() < steepest, "{slope}");
        }
    }
}
