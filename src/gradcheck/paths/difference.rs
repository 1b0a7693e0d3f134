//! Finite differences over paths with the sampling frozen (docs/method.md, section 17): decisions use the unperturbed
//! f32 values, throughput factors use f64 values of which one is perturbed.
//!
//! The contribution of a fixed path is smooth in nearly every parameter: central differences, extrapolated to step zero
//! (Richardson1911). Normals, roughnesses and indices have corners, which short steps seldom pass: a rough plastic's
//! transmittance is linear between the cosines of its table, light comes from the other side of a normal at once, total
//! reflection begins at an index, and the shadowing of Beckmann's distribution is a fit that jumps to one by 6e-5.

use rayon::prelude::*;

use super::objective::PathObjective;
use crate::each::EachEntry;
use crate::gradcheck::field::difference::{Difference, extrapolate};
use crate::gradcheck::field::objective::dot;
use crate::params::Quantity;

/// Halvings of the step.
const LEVELS: usize = 3;
/// Steps: relative to a medium's largest majorant; for values of order one; and for values in which radiance is
/// linear.
const EXTINCTION: f64 = 2e-4;
const FACTOR: f64 = 2e-3;
const LINEAR: f64 = 0.1;
/// For what moves: a path that grazes a surface bends sharply.
const LENGTH: f64 = 1e-5;
const DEGREES: f64 = 1e-3;
/// For what has corners: normals and heights, roughnesses, indices beyond which all light is reflected.
const CORNERED: f64 = 1e-4;
/// Roundings of a radiance that the extrapolated difference of two adds up, over the largest step.
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

/// The derivatives of the objectives with weights `seeds` by an entry of a parameter, and for each the sum of the sizes of
/// what was subtracted; `rays` are the paths that the entry affects.
pub fn difference(
    objective: &mut PathObjective,
    (parameter, flat): (usize, usize),
    rays: &[u32],
    step: f64,
    seeds: &[u32],
) -> (Difference, Vec<f64>) {
    let base = objective.fields.integrand[parameter][flat];
    let mut radiance = |delta: f64| -> Vec<[f64; 3]> {
        objective.fields.integrand[parameter][flat] = base + delta;
        let this = &*objective;
        let rays = rays.par_iter().with_min_len(64);
        rays.map(|&ray| this.gather(&this.fields, &this.casts[ray as usize]))
            .collect()
    };
    let mut radiances = Vec::new();
    let ladder: Vec<_> = (0..LEVELS)
        .map(|level| {
            let h = step / f64::from(1 << level);
            let (above, below) = (radiance(h), radiance(-h));
            let slopes = above.iter().zip(&below);
            let slopes = slopes
                .map(|(a, b)| [0, 1, 2].each(|c| (a[c] - b[c]) / (2.0 * h)))
                .collect::<Vec<[f64; 3]>>();
            radiances = above;
            slopes
        })
        .collect();
    objective.fields.integrand[parameter][flat] = base;
    let (mut fixed, mut sizes) = (vec![0.0; seeds.len()], vec![0.0; seeds.len()]);
    for (i, &ray) in rays.iter().enumerate() {
        let slope = [0, 1, 2].each(|c| extrapolate([0, 1, 2].each(|level: usize| ladder[level][i][c])));
        let cast = &objective.casts[ray as usize];
        for ((sum, size), &seed) in fixed.iter_mut().zip(&mut sizes).zip(seeds) {
            let weight = objective.weight(seed, cast);
            *sum += dot(weight, slope);
            *size += dot(weight.each(f64::abs), radiances[i].each(f64::abs));
        }
    }
    let difference = Difference {
        fixed,
        sides: None,
        blurred: false,
    };
    (difference, sizes)
}

/// What rounding alone makes of a derivative where radiances of that size cancel: of the difference with that step, and of
/// a device's gradient, which rounds in f32. A parameter's scale is known by its step, down to the steps between corners.
pub fn roundings(size: f64, step: f64) -> [f64; 2] {
    let of_device = f64::from(f32::EPSILON) * size * FACTOR / step.max(CORNERED);
    [ROUNDINGS * f64::EPSILON * size / step, of_device]
}
