//! A picture of leaves: discs of all sizes that hide each other, as a model of photographs (Lee2001).
//!
//! Objects in a photograph occlude each other, which makes edges at every scale between unrelated colours. Discs of random
//! colours whose radii r have a density in proportion to r⁻³ have these edges at all scales alike, and the power spectrum
//! of photographs.

use rand_core::Rng;
use rand_pcg::Pcg64;
use rayon::prelude::*;

/// Radii over the longer side of the picture.
const RADII: [f64; 2] = [0.004, 0.35];

/// The number of leaves of a picture; points that none of them covers have the last one's colour.
const LEAVES: usize = 12_000;

/// Sample points along each edge of a pixel, whose mean is the pixel.
const POINTS: usize = 4;

/// A disc whose colour changes across it.
struct Leaf {
    center: [f32; 2],
    radius: f32,
    color: [f32; 3],
    /// Change of the colour over a radius along x and y.
    slope: [[f32; 3]; 2],
}

impl Leaf {
    fn draw(stream: &mut Pcg64, aspect: [f64; 2]) -> Self {
        let mut uniform = || (stream.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
        let [low, high] = RADII.map(|r| r.powi(-2));
        let radius = (low + (high - low) * uniform()).powf(-0.5);
        let center = aspect.map(|length| (length * uniform()) as f32);
        // Leaves differ in brightness more than in hue, as things in photographs do.
        let brightness = 0.08 + 0.84 * uniform();
        let color = [0; 3].map(|_| (brightness + 0.3 * (uniform() - 0.5)).clamp(0.02, 0.98) as f32);
        let slope = [0; 2].map(|_| {
            let shade = 0.24 * (uniform() - 0.5);
            [0; 3].map(|_| (shade + 0.04 * (uniform() - 0.5)) as f32)
        });
        let radius = radius as f32;
        Self {
            center,
            radius,
            color,
            slope,
        }
    }

    /// Its colour at a point, if it covers it.
    fn at(&self, point: [f32; 2]) -> Option<[f32; 3]> {
        let [x, y] = [0, 1].map(|axis| (point[axis] - self.center[axis]) / self.radius);
        let shaded = |c: usize| (self.color[c] + x * self.slope[0][c] + y * self.slope[1][c]).clamp(0.0, 1.0);
        (x * x + y * y <= 1.0).then(|| [0, 1, 2].map(shaded))
    }
}

/// The picture of a seed in this size, row by row. The same seed shows the same leaves at every size of the same
/// proportions. Values between 0 and 1, which are taken to be in the colour space of the film.
pub fn leaves(seed: u64, [width, height]: [u32; 2]) -> Vec<[f32; 3]> {
    let [width, height] = [width as usize, height as usize];
    let side = width.max(height).max(1) as f64;
    let mut stream = Pcg64::new(u128::from(seed), 0x1eaf);
    let aspect = [width as f64 / side, height as f64 / side];
    let all: Vec<Leaf> = (0..LEAVES).map(|_| Leaf::draw(&mut stream, aspect)).collect();
    let pixel = 1.0 / side as f32;
    let mut picture = vec![[0.0f32; 3]; width * height];
    picture
        .par_chunks_mut(width.max(1))
        .enumerate()
        .for_each(|(row, pixels)| {
            let middle = (row as f32 + 0.5) * pixel;
            let near: Vec<&Leaf> = all
                .iter()
                .filter(|leaf| (leaf.center[1] - middle).abs() <= leaf.radius + pixel)
                .collect();
            for (column, out) in pixels.iter_mut().enumerate() {
                let middle = (column as f32 + 0.5) * pixel;
                let near: Vec<&&Leaf> = near
                    .iter()
                    .filter(|leaf| (leaf.center[0] - middle).abs() <= leaf.radius + pixel)
                    .collect();
                for i in 0..POINTS * POINTS {
                    let within = |i: usize| (i as f32 + 0.5) / POINTS as f32;
                    let point = [
                        (column as f32 + within(i % POINTS)) * pixel,
                        (row as f32 + within(i / POINTS)) * pixel,
                    ];
                    let color = near.iter().find_map(|leaf| leaf.at(point));
                    let color = color.unwrap_or(all[LEAVES - 1].color);
                    for c in 0..3 {
                        out[c] += color[c] / (POINTS * POINTS) as f32;
                    }
                }
            }
        });
    picture
}
