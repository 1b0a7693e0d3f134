//! The relief of a coin, for scenes that recover one: heights over the unit square as a sum of smooth parts, and the
//! normals that they have.

use rand_core::Rng;
use rand_pcg::Pcg64;

/// Dents of the field, and their radii over half the side of the square.
const DENTS: usize = 24;
const DENT_RADII: [f64; 2] = [0.05, 0.16];
/// Beads of the ring between the star and the rim.
const BEADS: usize = 36;
/// Step of the differences that slopes are taken by.
const STEP: f64 = 1e-4;

/// A relief, whose heights are in units of half the side of the square.
#[derive(Debug, Clone)]
struct Coin {
    /// Points of the star in its middle, and their angle.
    points: f64,
    angle: f64,
    /// Places, radii and depths of dents.
    dents: Vec<[f64; 4]>,
}

impl Coin {
    /// The coin of a seed.
    fn new(seed: u64) -> Self {
        let mut stream = Pcg64::new(u128::from(seed), 0x636f_696e);
        let mut uniform = || (stream.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
        let (points, angle) = (5.0 + (4.0 * uniform()).floor(), 6.0 * uniform());
        let [low, high] = DENT_RADII;
        let dents = (0..DENTS).map(|_| {
            let radius = low + (high - low) * uniform();
            let depth = 0.18 * radius * (2.0 * uniform() - 1.0);
            [2.0 * uniform() - 1.0, 2.0 * uniform() - 1.0, radius, depth]
        });
        Self {
            points,
            angle,
            dents: dents.collect(),
        }
    }

    /// The height at a point of [-1, 1]².
    fn height(&self, x: f64, y: f64) -> f64 {
        let (r, angle) = (x.hypot(y), y.atan2(x));
        let rim = 0.02 * edge((r - 0.84) / 0.05) * edge((0.97 - r) / 0.05);
        let turns = angle / std::f64::consts::TAU * BEADS as f64;
        let across = (turns - turns.round()) * std::f64::consts::TAU * 0.74 / BEADS as f64;
        let beads = 0.008 * (-(across.powi(2) + (r - 0.74).powi(2)) / 0.0009).exp();
        let reach = 0.42 + 0.1 * (self.points * (angle - self.angle)).cos();
        let star = 0.026 * edge((reach - r) / 0.12) + 0.02 * (1.0 - (r / 0.3).powi(2)).max(0.0).powi(2);
        let dents = self.dents.iter().map(|[cx, cy, radius, depth]| {
            let square = ((x - cx).powi(2) + (y - cy).powi(2)) / (radius * radius);
            depth * (-square).exp()
        });
        rim + beads + star + dents.sum::<f64>()
    }
}

/// A smooth step from 0 at -1 to 1 at 1.
fn edge(x: f64) -> f64 {
    let t = (0.5 + 0.5 * x).clamp(0.0, 1.0);
    t * t * t * (10.0 + t * (6.0 * t - 15.0))
}

/// The relief of a seed in this size, as [`texels`]. The same seed is the same coin at every size.
pub(super) fn coin(seed: u64, size: [u32; 2], channels: usize) -> Vec<f32> {
    let coin = Coin::new(seed);
    texels(size, channels, |x, y| coin.height(x, y))
}

/// A relief over [-1, 1]², row by row: heights if there is one channel, else the components of normals plus one, over two.
pub(super) fn texels([width, height]: [u32; 2], channels: usize, relief: impl Fn(f64, f64) -> f64) -> Vec<f32> {
    let place = |i: u32, count: u32| 2.0 * (f64::from(i) + 0.5) / f64::from(count) - 1.0;
    let texels = (0..height).flat_map(|j| (0..width).map(move |i| (place(i, width), place(j, height))));
    if channels == 1 {
        return texels.map(|(x, y)| relief(x, y) as f32).collect();
    }
    let normals = texels.map(|(x, y)| {
        let slope = |dx: f64, dy: f64| (relief(x + dx, y + dy) - relief(x - dx, y - dy)) / (2.0 * STEP);
        let [u, v] = [slope(STEP, 0.0), slope(0.0, STEP)];
        let length = (1.0 + u * u + v * v).sqrt();
        [-u, -v, 1.0].map(|c| (0.5 + 0.5 * c / length) as f32)
    });
    normals.flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn normals_are_those_of_the_heights() {
        let size = 512;
        let (heights, normals) = (coin(3, [size; 2], 1), coin(3, [size; 2], 3));
        let width = size as usize;
        let mut worst = 0f32;
        for (x, y) in (1..width - 1).flat_map(|y| (1..width - 1).map(move |x| (x, y))) {
            let at = |dx: usize, dy: usize| heights[(y + dy - 1) * width + x + dx - 1];
            let scale = size as f32 / 4.0;
            let slopes = [(at(2, 1) - at(0, 1)) * scale, (at(1, 2) - at(1, 0)) * scale];
            let normal = &normals[3 * (y * width + x)..][..3];
            let [nx, ny, nz] = [0, 1, 2].map(|c: usize| 2.0 * normal[c] - 1.0);
            assert!((nx * nx + ny * ny + nz * nz - 1.0).abs() < 1e-5);
            worst = worst.max((slopes[0] + nx / nz).abs()).max((slopes[1] + ny / nz).abs());
        }
        assert!(worst < 0.05, "{worst}");
    }
}
