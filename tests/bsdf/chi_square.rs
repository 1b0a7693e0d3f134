//! Sampled directions against the pdf: chi-square over cells of the sphere, at fixed seeds.
//!
//! The bound is the 1 - 10⁻⁶ quantile by the approximation of Wilson and Hilferty, for some two hundred tests: a sound
//! sampler fails one of them at one in five thousand seeds.

use prbopt::transport::scene::bsdf::local::Lobe;
use prbopt::transport::scene::bsdf::microfacet::Distribution;

use super::models::{Kind, Model, directions, models};

/// A sequence of uniform draws (SplitMix64).
#[derive(Debug)]
pub struct Draws(u64);

impl Draws {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn next(&mut self) -> f32 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let x = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((x ^ (x >> 31)) >> 40) as f32 / (1 << 24) as f32
    }
}

/// The direction at a cosine and a share of the full azimuth.
fn direction(cosine: f64, azimuth: f64) -> [f32; 3] {
    let sine = (1.0 - cosine * cosine).max(0.0).sqrt();
    let (y, x) = (azimuth * std::f64::consts::TAU).sin_cos();
    [(sine * x) as f32, (sine * y) as f32, cosine as f32]
}

/// The integral of `f` over part of the sphere by the midpoints of `rows` by `columns` cells.
fn cell_integral(
    cosines: [f64; 2],
    azimuths: [f64; 2],
    [rows, columns]: [usize; 2],
    f: &impl Fn([f32; 3]) -> f64,
) -> f64 {
    let (dz, da) = (
        (cosines[1] - cosines[0]) / rows as f64,
        (azimuths[1] - azimuths[0]) / columns as f64,
    );
    let mut sum = 0.0;
    for i in 0..rows {
        for j in 0..columns {
            sum += f(direction(
                cosines[0] + (i as f64 + 0.5) * dz,
                azimuths[0] + (j as f64 + 0.5) * da,
            ));
        }
    }
    sum * dz * da * std::f64::consts::TAU
}

/// The integral over the sphere with `2 n` rows.
pub fn sphere_integral(n: usize, f: impl Fn([f32; 3]) -> f64) -> f64 {
    cell_integral([-1.0, 0.0], [0.0, 1.0], [n, 2 * n], &f) + cell_integral([0.0, 1.0], [0.0, 1.0], [n, 2 * n], &f)
}

const ROWS: usize = 20;
const COLUMNS: usize = 20;
/// Cells of fewer expected draws are pooled.
const LEAST: f64 = 10.0;

/// Chi-square of the smooth samples among `count` draws, with its degrees of freedom; a `skew` > 0 plants a fault.
fn chi_square(model: &Model, wi: [f32; 3], count: u32, skew: f32) -> (f64, usize) {
    let mut draws = Draws::new(11);
    let draw = || {
        let (u1, u2) = (draws.next(), [draws.next().powf(1.0 + skew), draws.next()]);
        let sample = model.sample(wi, u1, u2)?;
        (sample.lobe == Lobe::Smooth).then_some(sample.direction)
    };
    statistic(&model.label(), count, draw, |wo| f64::from(model.pdf(wi, wo)))
}

/// Chi-square of `count` draws, of which some may yield nothing, against a pdf, with its degrees of freedom.
pub fn statistic(
    label: &str,
    count: u32,
    mut draw: impl FnMut() -> Option<[f32; 3]>,
    pdf: impl Fn([f32; 3]) -> f64,
) -> (f64, usize) {
    let mut found = vec![0.0; ROWS * COLUMNS];
    for direction in (0..count).filter_map(|_| draw()) {
        let [x, y, z] = direction.map(f64::from);
        let azimuth = (y.atan2(x) / std::f64::consts::TAU).rem_euclid(1.0);
        let row = (((z + 1.0) * 0.5 * ROWS as f64) as usize).min(ROWS - 1);
        let column = ((azimuth * COLUMNS as f64) as usize).min(COLUMNS - 1);
        found[row * COLUMNS + column] += 1.0;
    }
    let (mut sum, mut cells, mut pooled) = (0.0, 0usize, [0.0; 2]);
    for row in 0..ROWS {
        for column in 0..COLUMNS {
            let cosines = [row, row + 1].map(|r| 2.0 * r as f64 / ROWS as f64 - 1.0);
            let azimuths = [column, column + 1].map(|c| c as f64 / COLUMNS as f64);
            let expected = cell_integral(cosines, azimuths, [12, 12], &pdf) * f64::from(count);
            let number: f64 = found[row * COLUMNS + column];
            if expected < LEAST {
                pooled = [pooled[0] + expected, pooled[1] + number];
                continue;
            }
            sum += (number - expected).powi(2) / expected;
            cells += 1;
        }
    }
    if pooled[0] > LEAST {
        sum += (pooled[1] - pooled[0]).powi(2) / pooled[0];
        cells += 1;
    } else {
        assert!(
            pooled[1] < LEAST + 6.0 * LEAST.sqrt(),
            "{label}: draws where none may be"
        );
    }
    // Rejected and discrete samples are left out, so that the counts are independent of each other.
    (sum, cells)
}

/// The 1 - 10⁻⁶ quantile.
pub fn bound(freedom: usize) -> f64 {
    let (k, z) = (freedom as f64, 4.753);
    k * (1.0 - 2.0 / (9.0 * k) + z * (2.0 / (9.0 * k)).sqrt()).powi(3)
}

/// Number of draws at which the error of the pdf is within chance: 2^17 where it is rounding alone, 2^15 where Beckmann's
/// shadowing is a fit.
fn draws(model: &Model) -> u32 {
    let fitted = model.distribution == Distribution::Beckmann && model.visible;
    if fitted { 1 << 15 } else { 1 << 17 }
}

/// Models whose smooth lobe a grid of 240 by 240 points resolves.
fn tested() -> Vec<Model> {
    let mut all = models();
    let mut floored = all
        .iter()
        .find(|model| model.kind == Kind::Principled)
        .expect("one")
        .clone();
    floored.least_share = 0.1;
    all.push(floored);
    all.into_iter()
        .filter(|model| model.has_smooth_lobe() && !model.is_peaked())
        .collect()
}

#[test]
fn directions_follow_their_pdfs() {
    for model in tested() {
        for wi in directions(&[0.95, 0.4, -0.6]) {
            if wi[2] < 0.0 && !model.is_two_sided() {
                continue;
            }
            // Under total reflection no light reaches a plastic's base, and there is no smooth sample.
            let (found, cells) = chi_square(&model, wi, draws(&model), 0.0);
            assert!(
                cells == 0 || found < bound(cells),
                "{}, {wi:?}: chi-square {found} of {cells} cells exceeds {}",
                model.label(),
                bound(cells)
            );
        }
    }
}

/// Power: one of the uniform numbers raised to 1.1, and so a little more often small, is seen for every model.
#[test]
fn skewed_draws_are_seen() {
    for model in tested() {
        let wi = [0.6, -0.3, 0.741_62];
        let (found, cells) = chi_square(&model, wi, draws(&model), 0.1);
        assert!(
            found > bound(cells),
            "{}: chi-square {found} of {cells} cells",
            model.label()
        );
    }
}
