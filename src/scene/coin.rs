//! The relief of a coin, for scenes that recover one: heights over the square [-1, 1]² as a sum of smooth parts.

use rand_core::Rng;
use rand_pcg::Pcg64;

use super::relief::Heights;

/// The number of dents, and the range of their radii in units of half the side of the square.
const DENTS: usize = 24;
const DENT_RADII: [f64; 2] = [0.05, 0.16];
/// The number of beads in the ring between the star and the rim.
const BEADS: usize = 36;

/// A relief, whose heights are in units of half the side of the square.
#[derive(Debug, Clone)]
struct Coin {
    /// The number of points of the star in its middle, and the star's rotation in radians.
    points: f64,
    angle: f64,
    /// Centre x and y, radius and depth of each dent.
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

/// The relief of a seed.
pub(super) fn coin(seed: u64) -> Heights {
    let coin = Coin::new(seed);
    Box::new(move |x, y| coin.height(x, y))
}
