//! The face of a magnifying glass, for scenes that recover it from the picture seen through it: a cap above the square
//! [-1, 1]², and the dents of a bad polish.

use rand_core::Rng;
use rand_pcg::Pcg64;

use super::relief::Heights;

/// Radius and height of the cap in units of half the side of the square: its steepest slope is 0.4.
const RADIUS: f64 = 0.95;
const HEIGHT: f64 = 0.247;
/// The number of dents, the range of their radii in the same unit, and the largest ratio of a dent's depth to its radius.
const DENTS: usize = 40;
const DENT_RADII: [f64; 2] = [0.08, 0.25];
const DENT: f64 = 0.09;

/// The relief of a seed.
pub(super) fn magnifier(seed: u64) -> Heights {
    let mut stream = Pcg64::new(u128::from(seed), 0x676c_6173);
    let mut uniform = || (stream.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
    let [low, high] = DENT_RADII;
    let dents: Vec<[f64; 4]> = (0..DENTS)
        .map(|_| {
            let radius = low + (high - low) * uniform();
            let depth = DENT * radius * (2.0 * uniform() - 1.0);
            [2.0 * uniform() - 1.0, 2.0 * uniform() - 1.0, radius, depth]
        })
        .collect();
    Box::new(move |x, y| {
        let cap = (1.0 - (x * x + y * y) / (RADIUS * RADIUS)).max(0.0);
        let dent = |[cx, cy, radius, depth]: &[f64; 4]| {
            let square = ((x - cx).powi(2) + (y - cy).powi(2)) / (radius * radius);
            depth * (-square).exp()
        };
        HEIGHT * cap * cap + dents.iter().map(dent).sum::<f64>()
    })
}

#[cfg(test)]
mod tests {
    use crate::scene::relief::Motif;

    /// The normals lean away from the middle, as those of a convex lens, by slopes up to those of cap and dents.
    #[test]
    fn it_bulges() {
        let size = 64;
        let normals = Motif::Magnifier.texels(3, [size; 2], 3);
        let (mut outwards, mut steepest) = (0, 0.0f32);
        for (i, texel) in normals.chunks_exact(3).enumerate() {
            let [x, y] = [i as u32 % size, i as u32 / size].map(|k| 2.0 * (k as f32 + 0.5) / size as f32 - 1.0);
            let [nx, ny, nz] = [0, 1, 2].map(|c: usize| 2.0 * texel[c] - 1.0);
            assert!((nx * nx + ny * ny + nz * nz - 1.0).abs() < 1e-5);
            steepest = steepest.max(nx.hypot(ny) / nz);
            let radius = x.hypot(y);
            outwards += u32::from((0.3..0.8).contains(&radius) && nx * x + ny * y > 0.0);
        }
        let ring = normals.chunks_exact(3).enumerate().filter(|(i, _)| {
            let [x, y] = [*i as u32 % size, *i as u32 / size].map(|k| 2.0 * (k as f32 + 0.5) / size as f32 - 1.0);
            (0.3..0.8).contains(&x.hypot(y))
        });
        assert!(outwards as usize * 10 > ring.count() * 9, "{outwards}");
        assert!((0.3..0.8).contains(&steepest), "{steepest}");
    }
}
