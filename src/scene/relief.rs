//! Procedural reliefs: heights over the square [-1, 1]², and their normals.

use super::coin::coin;
use super::magnifier::magnifier;
use super::ridges::ridges;

/// Step of the central differences that approximate slopes.
const STEP: f64 = 1e-4;

/// A relief over [-1, 1]², in units of half the side of the square.
pub(super) type Heights = Box<dyn Fn(f64, f64) -> f64>;

/// What a relief shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Motif {
    /// A coin ([`super::coin`]).
    Coin,
    /// The face of a magnifying glass ([`super::magnifier`]).
    Magnifier,
    /// The ridges of cut glass ([`super::ridges`]).
    Ridges,
}

impl Motif {
    /// All, in the order of [`Self::name`]s in messages.
    pub const ALL: [Self; 3] = [Self::Coin, Self::Magnifier, Self::Ridges];

    /// What a scene file calls it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Coin => "coin",
            Self::Magnifier => "magnifier",
            Self::Ridges => "ridges",
        }
    }

    /// The relief of a seed in this size, row by row: heights if there is one channel, else the components of normals plus
    /// one, over two. The same seed is the same relief at every size.
    pub(super) fn texels(self, seed: u64, size: [u32; 2], channels: usize) -> Vec<f32> {
        let heights = match self {
            Self::Coin => coin(seed),
            Self::Magnifier => magnifier(seed),
            Self::Ridges => ridges(seed),
        };
        texels(size, channels, &heights)
    }
}

/// [`Motif::texels`] of any relief.
fn texels([width, height]: [u32; 2], channels: usize, relief: &Heights) -> Vec<f32> {
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
        for motif in Motif::ALL {
            let size = 512;
            let (heights, normals) = (motif.texels(3, [size; 2], 1), motif.texels(3, [size; 2], 3));
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
            assert!(worst < 0.05, "{motif:?}: {worst}");
        }
    }
}
