//! A procedural plume of smoke that rises along +y, widens, sways and swirls.
//!
//! Density depends only on position and seed, so that every resolution shows the same plume: a cone around a winding
//! axis, displaced by low-frequency noise and frayed by octaves of value noise.

use std::f32::consts::TAU;

use rayon::prelude::*;

use crate::params::Shape;

use super::noise::{hash, octaves, smooth_step, unit};

/// Distance between plume and border of the unit cube: half a texel of a grid with eight texels per axis.
const MARGIN: f32 = 0.0625;

/// Amplitude of the noise added to the profile, which falls from 1 at the axis to 0 at the radius.
const FRAY: f32 = 0.9;

/// The plume at the centres (i + ½)/N of all texels, `[z][y][x][channel]`; `value` is a factor on its density in [0, 1], one
/// entry or one per channel.
pub(super) fn on_grid(seed: u64, value: &[f32], shape: Shape) -> Vec<f32> {
    let [nx, ny, nz] = shape.size;
    let center = |i: usize, n: usize| (i as f32 + 0.5) / n as f32;
    let mut data = vec![0.0; shape.len()];
    let rows = data.par_chunks_mut(nx * shape.channels).enumerate();
    rows.for_each(|(row, texels)| {
        let (y, z) = (center(row % ny, ny), center(row / ny, nz));
        for (i, texel) in texels.chunks_exact_mut(shape.channels).enumerate() {
            let density = density([center(i, nx), y, z], seed);
            for (channel, entry) in texel.iter_mut().enumerate() {
                *entry = density * value[channel % value.len()];
            }
        }
    });
    data
}

/// Density in [0, 1] at a point of the unit cube.
fn density(p: [f32; 3], seed: u64) -> f32 {
    let [x, y, z] = p;
    let height = (y - MARGIN) / (1.0 - 2.0 * MARGIN);
    let side = x.min(1.0 - x).min(z).min(1.0 - z);
    if height <= 0.0 || height >= 1.0 || side <= MARGIN {
        return 0.0;
    }
    let radius = 0.05 + 0.2 * height;
    let displacement = 0.01 + 0.1 * height;
    let (sin, cos) = (TAU * (0.8 * height + unit(hash([0, 0, 0], seed)))).sin_cos();
    let sway = 0.07 * height;
    let (dx, dz) = (x - 0.5 - sway * cos, z - 0.5 - sway * sin);
    if dx.hypot(dz) > radius * (1.0 + FRAY).sqrt() + displacement * 2f32.sqrt() {
        return 0.0;
    }
    let low = [5.0 * x, 4.0 * y, 5.0 * z];
    let dx = dx + displacement * octaves(low, 2, seed ^ 0x51);
    let dz = dz + displacement * octaves(low, 2, seed ^ 0x52);
    // Rotate the noise about the axis with height, which makes the swirl.
    let (sin, cos) = (1.5 * TAU * height).sin_cos();
    let swirled = [9.0 * (cos * dx - sin * dz), 8.0 * y, 9.0 * (sin * dx + cos * dz)];
    let profile = 1.0 - (dx * dx + dz * dz) / (radius * radius);
    let frayed = profile + FRAY * octaves(swirled, 5, seed ^ 0x53);
    let fading = smooth_step(0.0, 0.05, height) * (1.0 - smooth_step(0.55, 1.0, height)) * (1.0 - 0.5 * height);
    smooth_step(0.0, 0.75, frayed) * fading * smooth_step(MARGIN, 2.0 * MARGIN, side)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plume(side: usize, seed: u64) -> Vec<f32> {
        let size = [side; 3];
        on_grid(seed, &[1.0], Shape { size, channels: 1 })
    }

    fn mean(data: &[f32]) -> f64 {
        data.iter().map(|x| f64::from(*x)).sum::<f64>() / data.len() as f64
    }

    /// Sum over the texels of a layer of constant y, and their root mean square distance from their centroid.
    fn layer(data: &[f32], side: usize, y: usize) -> (f64, f64) {
        let mut moments = [0.0; 4];
        for (z, x) in (0..side).flat_map(|z| (0..side).map(move |x| (z, x))) {
            let weight = f64::from(data[(z * side + y) * side + x]);
            let (u, v) = (x as f64 / side as f64, z as f64 / side as f64);
            for (moment, term) in moments.iter_mut().zip([1.0, u, v, u * u + v * v]) {
                *moment += weight * term;
            }
        }
        let [mass, u, v, square] = moments;
        (mass, (square / mass - (u / mass).powi(2) - (v / mass).powi(2)).sqrt())
    }

    #[test]
    fn it_is_zero_at_the_borders_and_between_zero_and_its_peak() {
        for (side, seed) in [(8, 1), (17, 2), (40, 3), (64, 4)] {
            let data = plume(side, seed);
            assert!(data.iter().all(|x| (0.0..=1.0).contains(x)));
            for (i, x) in data.iter().enumerate() {
                let place = [i % side, i / side % side, i / (side * side)];
                let border = place.iter().any(|c| *c == 0 || *c == side - 1);
                assert!(!border || *x == 0.0, "{place:?} of {side}: {x}");
            }
        }
        for seed in 0..8 {
            let peak = plume(64, seed).into_iter().fold(0.0, f32::max);
            assert!(peak > 0.8, "seed {seed}: {peak}");
        }
    }

    #[test]
    fn a_seed_gives_the_same_bits_and_another_seed_others() {
        let bits = |seed| plume(32, seed).into_iter().map(f32::to_bits).collect::<Vec<_>>();
        assert_eq!(bits(7), bits(7));
        let (one, other) = (plume(32, 7), plume(32, 8));
        let difference: Vec<f32> = one.iter().zip(&other).map(|(a, b)| (a - b).abs()).collect();
        assert!(mean(&difference) > 0.2 * mean(&one));
        assert_ne!(bits(7), bits(7 + (1 << 40)), "all of the seed matters");
    }

    #[test]
    fn every_resolution_shows_the_same_plume() {
        let (fine, coarse) = (plume(96, 5), plume(32, 5));
        let mut reduced = vec![0.0f32; coarse.len()];
        for (i, x) in fine.iter().enumerate() {
            let [u, v, w] = [i % 96, i / 96 % 96, i / (96 * 96)].map(|c| c / 3);
            reduced[(w * 32 + v) * 32 + u] += x / 27.0;
        }
        let difference: Vec<f32> = reduced.iter().zip(&coarse).map(|(a, b)| (a - b).abs()).collect();
        assert!(
            mean(&difference) < 0.15 * mean(&coarse),
            "{} of {}",
            mean(&difference),
            mean(&coarse)
        );
        assert!((mean(&fine) / mean(&coarse) - 1.0).abs() < 0.03);
    }

    #[test]
    fn it_rises_and_widens_and_leaves_most_of_the_cube_empty() {
        let side = 64;
        for seed in 0..4 {
            let data = plume(side, seed);
            let (low, high) = (layer(&data, side, side / 6), layer(&data, side, 2 * side / 3));
            assert!(low.0 > 0.0 && high.0 > 0.0);
            assert!(high.1 > 1.8 * low.1, "seed {seed}: {} then {}", low.1, high.1);
            let filled = data.iter().filter(|x| **x > 0.01).count() as f64 / data.len() as f64;
            assert!((0.03..0.25).contains(&filled), "seed {seed}: {filled}");
        }
    }

    #[test]
    fn its_value_scales_every_channel() {
        let (size, channels) = ([16; 3], 3);
        let data = on_grid(3, &[1.0, 2.0, 0.5], Shape { size, channels });
        for (texel, x) in data.chunks_exact(3).zip(plume(16, 3)) {
            assert_eq!(texel, [x, 2.0 * x, 0.5 * x]);
        }
    }
}
