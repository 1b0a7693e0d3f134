//! Finite differences over paths with the sampling frozen (docs/method.md, section 17): decisions use the unperturbed
//! f32 values, throughput factors use f64 values of which one is perturbed.
//!
//! The contribution of a fixed path is smooth in nearly every parameter: central differences, extrapolated to step zero
//! (Richardson1911). Normals, roughnesses and indices have corners: a rough plastic's transmittance is linear between the
//! cosines of its table, lighting stops where a light passes behind a normal, total reflection begins at an index that
//! depends on the angle of incidence, and Beckmann's shadowing is a fit that jumps to one by 6e-5. Short steps seldom
//! pass a corner; paths whose differences of three steps disagree do, and are differenced again by shorter steps.

use rayon::prelude::*;

use super::fields::Sides;
use super::objective::{CastPath, PathObjective};
use crate::each::EachEntry;
use crate::gradcheck::field::difference::{Difference, extrapolate};
use crate::gradcheck::field::objective::dot;
use crate::params::Quantity;

/// Number of steps, each half the one before.
const LEVELS: usize = 3;
/// Steps: relative to a medium's largest majorant; for values of order one; and for values in which radiance is
/// linear.
const EXTINCTION: f64 = 2e-4;
const FACTOR: f64 = 2e-3;
const LINEAR: f64 = 0.1;
/// Steps of what moves, in units of length and in degrees: the radiance of a path that grazes a surface bends sharply.
const LENGTH: f64 = 1e-5;
const DEGREES: f64 = 1e-3;
/// Step for parameters with corners: normals and heights, roughnesses, indices beyond which all light is reflected.
const CORNERED: f64 = 1e-4;
/// Differences of a path whose radiance is smooth within the step agree up to this part of the derivative; where they do
/// not, the step is divided by [`SHORTENING`], [`SHORTENINGS`] times at most.
const SMOOTH: f64 = 1e-8;
const SHORTENING: f64 = 16.0;
const SHORTENINGS: usize = 3;
/// Rounding error of an extrapolated difference of radiances, in units of eps · radiance / largest step.
const ROUNDINGS: f64 = 8.0;

/// The largest step of a parameter's entries.
pub fn default_step(objective: &PathObjective, parameter: usize, quantity: Quantity) -> f64 {
    let records = objective.records();
    let is = |volume: u32| {
        let volume = records.volumes.get(volume as usize);
        volume.is_some_and(|v| v.slot as usize == parameter)
    };
    for medium in &records.media {
        if is(medium.sigma_t) {
            let [x, y, z, first] = medium.majorants.each(|n| n as usize);
            let most = objective.majorants()[first..first + x * y * z]
                .iter()
                .fold(0.0, |m: f32, mu| m.max(*mu));
            return match f64::from(most / medium.scale) {
                reach if reach > 0.0 && reach.is_finite() => EXTINCTION * reach,
                _ => EXTINCTION,
            };
        }
        if is(medium.emission) {
            return LINEAR;
        }
    }
    let sky = [records.background, objective.scene().env_scale_slot];
    let shines = sky
        .iter()
        .chain(records.lights.iter().map(|l| &l.slot))
        .any(|slot| *slot as usize == parameter);
    match quantity {
        _ if shines => LINEAR,
        Quantity::Translation
        | Quantity::Extent
        | Quantity::Vertex
        | Quantity::VertexNormal
        | Quantity::Displacement => LENGTH,
        Quantity::Orientation => DEGREES,
        Quantity::Normal | Quantity::Height | Quantity::Roughness | Quantity::Index => CORNERED,
        _ => FACTOR,
    }
}

/// Entries of a parameter that change together, each by its number times the step.
#[derive(Debug, Clone)]
pub struct Direction {
    pub parameter: usize,
    pub changes: Vec<(usize, f64)>,
}

/// The derivatives of the objectives with weights `seeds` by an entry of a parameter, and for each the sum of the
/// magnitudes of the weighted radiances that were subtracted; `rays` are the paths that the entry affects.
pub fn difference(
    objective: &mut PathObjective,
    (parameter, flat): (usize, usize),
    rays: &[u32],
    step: f64,
    seeds: &[u32],
) -> (Difference, Vec<f64>) {
    let direction = Direction {
        parameter,
        changes: vec![(flat, 1.0)],
    };
    // Taken out, so that they can change while the objective is read.
    let mut fields = std::mem::take(&mut objective.fields);
    let casts: Vec<&CastPath> = rays.iter().map(|&ray| &objective.casts[ray as usize]).collect();
    let slopes = slopes(objective, &mut fields, &direction, &casts, step);
    let (mut fixed, mut sizes) = (vec![0.0; seeds.len()], vec![0.0; seeds.len()]);
    for (slope, cast) in slopes.iter().zip(casts) {
        for ((sum, size), &seed) in fixed.iter_mut().zip(&mut sizes).zip(seeds) {
            let weight = objective.weight(seed, cast);
            *sum += dot(weight, slope.value);
            *size += dot(weight.each(f64::abs), slope.radiance.each(f64::abs));
        }
    }
    objective.fields = fields;
    let difference = Difference {
        fixed,
        sides: None,
        blurred: false,
    };
    (difference, sizes)
}

/// The derivatives of the radiances of `casts` along a direction, where `fields` hold the values at which it begins; `step` is the
/// largest of the steps. Paths that pass a corner within it are differenced by shorter steps.
pub fn slopes(
    objective: &PathObjective,
    fields: &mut Sides<f64>,
    direction: &Direction,
    casts: &[&CastPath],
    step: f64,
) -> Vec<Slope> {
    let mut slopes = slopes_of_step(objective, fields, direction, casts, step);
    let mut shorter = step;
    for _ in 0..SHORTENINGS {
        shorter /= SHORTENING;
        let bent: Vec<usize> = (0..casts.len()).filter(|&i| slopes[i].is_bent()).collect();
        if bent.is_empty() {
            break;
        }
        let again: Vec<&CastPath> = bent.iter().map(|&i| casts[i]).collect();
        let found = slopes_of_step(objective, fields, direction, &again, shorter);
        for (i, slope) in bent.into_iter().zip(found) {
            if slope.spread < slopes[i].spread {
                slopes[i] = slope;
            }
        }
    }
    slopes
}

/// The sums of the magnitudes of the weighted radiances of paths where nothing is changed, for all weights `seeds`.
pub fn sizes(objective: &PathObjective, rays: &[u32], seeds: &[u32]) -> Vec<f64> {
    let casts = rays.iter().map(|&ray| &objective.casts[ray as usize]);
    let radiances: Vec<_> = casts
        .map(|cast| (cast, objective.gather(&objective.fields, cast)))
        .collect();
    let size = |&seed: &u32| -> f64 {
        let sizes = radiances.iter().map(|(cast, radiance)| {
            let weight = objective.weight(seed, cast);
            dot(weight.each(f64::abs), radiance.each(f64::abs))
        });
        sizes.sum()
    };
    seeds.iter().map(size).collect()
}

/// The derivative of a path's radiance.
#[derive(Debug, Clone, Copy)]
pub struct Slope {
    pub value: [f64; 3],
    radiance: [f64; 3],
    /// By how much the derivative changes if the largest of the steps is left out.
    spread: f64,
    /// The step.
    step: f64,
}

impl Slope {
    /// Whether the radiance is not smooth within the step: the extrapolations of a smooth one with and without the
    /// largest step differ by the fourth power of the step and by rounding.
    fn is_bent(&self) -> bool {
        let largest = |of: [f64; 3]| of.into_iter().fold(0.0, |m: f64, x| m.max(x.abs()));
        let rounding = ROUNDINGS * f64::EPSILON * largest(self.radiance) / self.step;
        self.spread > SMOOTH * largest(self.value) + rounding
    }
}

/// [`slopes`] from [`LEVELS`] steps that are halved.
fn slopes_of_step(
    objective: &PathObjective,
    fields: &mut Sides<f64>,
    direction: &Direction,
    casts: &[&CastPath],
    step: f64,
) -> Vec<Slope> {
    let values = &fields.integrand[direction.parameter];
    let base: Vec<f64> = direction.changes.iter().map(|(flat, _)| values[*flat]).collect();
    let mut radiances = |delta: f64| -> Vec<[f64; 3]> {
        let values = &mut fields.integrand[direction.parameter];
        for (base, (flat, by)) in base.iter().zip(&direction.changes) {
            values[*flat] = base + delta * by;
        }
        let (fields, casts) = (&*fields, casts.par_iter().with_min_len(64));
        casts.map(|cast| objective.gather(fields, cast)).collect()
    };
    let mut above = Vec::new();
    let ladder: [Vec<[f64; 3]>; LEVELS] = std::array::from_fn(|level| {
        let h = step / f64::from(1 << level);
        let below = radiances(-h);
        above = radiances(h);
        let sides = above.iter().zip(&below);
        let slope = |(a, b): (&[f64; 3], &[f64; 3])| [0, 1, 2].each(|c: usize| (a[c] - b[c]) / (2.0 * h));
        sides.map(slope).collect()
    });
    for (base, (flat, _)) in base.iter().zip(&direction.changes) {
        fields.integrand[direction.parameter][*flat] = *base;
    }
    let slope = |i: usize| {
        let of = |c: usize| [0, 1, 2].each(|level: usize| ladder[level][i][c]);
        let value = [0, 1, 2].each(|c| extrapolate(of(c)));
        let of_the_shorter = |c: usize| (4.0 * of(c)[2] - of(c)[1]) / 3.0;
        Slope {
            value,
            radiance: above[i],
            spread: (0..3).fold(0.0, |m: f64, c| m.max((value[c] - of_the_shorter(c)).abs())),
            step,
        }
    };
    (0..casts.len()).map(slope).collect()
}

/// Rounding errors of derivatives where radiances whose magnitudes sum to `size` cancel: of a difference of this step,
/// and of a device's gradient in f32. For the latter `step`, at least `CORNERED`, tells the scale of the parameter.
pub fn roundings(size: f64, step: f64) -> [f64; 2] {
    let of_device = f64::from(f32::EPSILON) * size * FACTOR / step.max(CORNERED);
    [ROUNDINGS * f64::EPSILON * size / step, of_device]
}
