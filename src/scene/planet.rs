//! The map of a planet: seas, continents by noise on the sphere, and snow at the poles.

use std::f32::consts::{PI, TAU};

use rand_core::Rng;
use rand_pcg::Pcg64;
use rayon::prelude::*;

use super::noise::{octaves, smooth_step};

/// The frequency of the noise that makes continents: cells per radius of the planet.
const FREQUENCY: f32 = 1.6;
/// The noise value at which land begins, and half the width of a coast in the same unit.
const COAST: [f32; 2] = [0.02, 0.02];
/// |cos θ| at which snow begins, and the amplitude of the noise that moves this border.
const SNOW: [f32; 2] = [0.86, 0.16];

/// Colours of a planet.
struct Planet {
    seed: u64,
    deep: [f32; 3],
    shallow: [f32; 3],
    low: [f32; 3],
    high: [f32; 3],
}

impl Planet {
    fn new(seed: u64) -> Self {
        let mut stream = Pcg64::new(u128::from(seed), 0x706c_616e_6574);
        let mut uniform = || ((stream.next_u64() >> 40) as f32) / (1u32 << 24) as f32;
        let mut color = |low: f32, high: f32| [0; 3].map(|_| low + (high - low) * uniform());
        let deep = color(0.02, 0.4);
        Self {
            seed,
            deep,
            shallow: deep.map(|c| (1.5 * c + 0.05).min(0.9)),
            low: color(0.1, 0.7),
            high: color(0.3, 0.85),
        }
    }

    /// The colour in this direction from the planet's centre, of length 1; poles lie along z.
    fn color(&self, [x, y, z]: [f32; 3]) -> [f32; 3] {
        let noise =
            |frequency: f32, count: u32, kind: u64| octaves([x, y, z].map(|c| frequency * c), count, self.seed ^ kind);
        let height = noise(FREQUENCY, 6, 0x61);
        let [begin, width] = COAST;
        let land = smooth_step(begin - width, begin + width, height);
        let sea = mix(self.shallow, self.deep, smooth_step(0.0, 0.25, begin - height));
        let ground = mix(
            self.low,
            self.high,
            smooth_step(-0.3, 0.3, noise(3.0 * FREQUENCY, 5, 0x62)),
        );
        let [from, moved] = SNOW;
        let snow = smooth_step(from, from + 0.03, z.abs() + moved * noise(2.5 * FREQUENCY, 4, 0x63));
        mix(mix(sea, ground, land), [0.9; 3], snow)
    }
}

fn mix(a: [f32; 3], b: [f32; 3], t: f32) -> [f32; 3] {
    [0, 1, 2].map(|c| a[c] + (b[c] - a[c]) * t)
}

/// The map of a seed in this size, row by row: u is the angle about the axis through the poles, v the angle from the first
/// pole, like the texture coordinates of a `sphere`. The same seed is the same planet at every size.
pub(super) fn planet(seed: u64, [width, height]: [u32; 2]) -> Vec<[f32; 3]> {
    let planet = Planet::new(seed);
    let mut texels = vec![[0.0; 3]; width as usize * height as usize];
    texels.par_iter_mut().enumerate().for_each(|(index, texel)| {
        let (i, j) = (index % width as usize, index / width as usize);
        let (sin, cos) = (PI * (j as f32 + 0.5) / height as f32).sin_cos();
        let (y, x) = (TAU * (i as f32 + 0.5) / width as f32).sin_cos();
        *texel = planet.color([sin * x, sin * y, cos]);
    });
    texels
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mean_difference(a: &[[f32; 3]], b: &[[f32; 3]]) -> f32 {
        let sum: f32 = a
            .iter()
            .zip(b)
            .flat_map(|(a, b)| [0, 1, 2].map(|c| (a[c] - b[c]).abs()))
            .sum();
        sum / (3 * a.len()) as f32
    }

    /// The map has no seam where u wraps around, and nearly one colour along the rows at the poles.
    #[test]
    fn a_map_closes_around_its_sphere() {
        let [width, height] = [256, 128];
        for seed in 0..4 {
            let map = planet(seed, [width, height]);
            assert!(map.iter().flatten().all(|c| (0.0..=0.9).contains(c)));
            let column = |i: usize| map.iter().skip(i).step_by(width as usize).copied().collect::<Vec<_>>();
            let across = mean_difference(&column(0), &column(width as usize - 1));
            let beside = mean_difference(&column(0), &column(1));
            let far = mean_difference(&column(0), &column(width as usize / 2));
            assert!(
                across < 2.0 * beside + 0.01 && across < 0.3 * far,
                "{seed}: {across}, {beside}, {far}"
            );
            for row in [0, height as usize - 1] {
                let row = &map[row * width as usize..][..width as usize];
                assert!(mean_difference(&row[1..], &row[..row.len() - 1]) < 0.01);
            }
        }
    }

    #[test]
    fn a_planet_is_the_same_at_every_size_and_another_for_another_seed() {
        let (small, large) = (planet(1, [64, 32]), planet(1, [192, 96]));
        // The middle one of three texels lies where the small map's does.
        let middle: Vec<[f32; 3]> = (0..64 * 32)
            .map(|i| large[(i / 64 * 3 + 1) * 192 + i % 64 * 3 + 1])
            .collect();
        assert!(mean_difference(&small, &middle) < 1e-4);
        assert!(mean_difference(&small, &planet(2, [64, 32])) > 0.05);
    }
}
