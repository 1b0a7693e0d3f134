//! Gradient checks of pictures of splats: the gradient in f64 by replay, which undoes the blend, against finite
//! differences with decisions frozen, and a device against that gradient.

pub mod objective;

use anyhow::Result;
use rand_core::Rng;
use rand_pcg::Pcg64;
use rayon::prelude::*;

use super::field::difference::{Difference, extrapolate};
use super::field::entries::Place;
use super::report::{LossReport, ParameterReport, Report};
use super::{Options, Outcome, Setup, asked, device_adjoints};
use crate::device::Device;
use crate::each::EachEntry;
use crate::resident::splats::SplatScene;
use objective::{Adjoint, SplatObjective};

/// The largest steps of the differences: that of positions, in units of the picture's longer side, is shorter, as
/// positions change a splat's weight faster than other parameters do.
const STEP: f64 = 1e-3;
const POSITION_STEP: f64 = 1e-5;

/// Number of steps, each half the one before.
const LEVELS: usize = 3;

/// Checks the f64 walk, and `device` if given.
///
/// # Errors
/// An index outside its parameter, or the device fails.
pub fn check(setup: &Setup, scene: &SplatScene, device: Option<&mut dyn Device>, options: &Options) -> Result<Outcome> {
    let objective = SplatObjective::new(setup, scene);
    let seeds: Vec<u32> = options.weightings.iter().map(|w| w.seed(options.seed)).collect();
    let adjoints: Vec<Adjoint> = seeds.iter().map(|&seed| objective.adjoint(seed)).collect();
    let info = device.as_ref().map(|d| d.info().clone());
    let found = match device {
        Some(device) => device_adjoints(setup, device, &seeds)?,
        None => Vec::new(),
    };
    let mut checked = Vec::new();
    for &parameter in &setup.checked {
        let entries = choose(setup, &objective, parameter, options)?;
        let largest = match parameter == scene.slots.position {
            true => POSITION_STEP,
            false => STEP,
        };
        let step = options.step.unwrap_or(largest);
        let differences = entries
            .par_iter()
            .map(|&(flat, _)| difference(&objective, parameter, flat, step, &seeds));
        checked.push((parameter, differences.collect::<Vec<_>>(), entries));
    }
    let mut parameters = Vec::new();
    for (w, &weighting) in options.weightings.iter().enumerate() {
        for (slot, (parameter, differences, entries)) in checked.iter().enumerate() {
            let entries = entries.iter().zip(differences);
            parameters.push(ParameterReport::judge(
                &setup.params.parameters[*parameter],
                (w, weighting),
                (&adjoints[w].gradient[*parameter], [0.0; 2]),
                found.get(w).map(|d| &d.gradients[slot][..]),
                entries.map(|(&(flat, place), difference)| (flat, place, difference)),
                options,
            ));
        }
    }
    let losses = options.weightings.iter().enumerate().map(|(w, &weighting)| LossReport {
        weighting,
        value: adjoints[w].loss,
        device: found.get(w).map(|d| d.loss),
    });
    let report = Report {
        device: info,
        skipped: None,
        pixels: setup.batch.pixels(),
        rays: u64::from(setup.batch.pixels()),
        spp: 1,
        seed: options.seed,
        losses: losses.collect(),
        passed: parameters.iter().all(|p| p.passed),
        parameters,
        tracking: Vec::new(),
        fresh: Vec::new(),
    };
    let of_checked = |adjoint: Adjoint| setup.checked.iter().map(|&p| adjoint.gradient[p].clone()).collect();
    Ok(Outcome {
        report,
        gradients: adjoints.into_iter().map(of_checked).collect(),
    })
}

/// Entries to check: those asked for, or mostly random ones of splats that reach a pixel, and some of splats that reach
/// none.
fn choose(
    setup: &Setup,
    objective: &SplatObjective,
    parameter: usize,
    options: &Options,
) -> Result<Vec<(usize, Place)>> {
    let described = &setup.params.parameters[parameter];
    if !options.indices.is_empty() {
        let all = options
            .indices
            .iter()
            .map(|&index| Ok((asked(described, index)?, Place::Asked)));
        return all.collect();
    }
    let channels = described.shape.channels;
    let is_met = |flat: usize| objective.is_met(parameter, flat / channels);
    let (met, unmet): (Vec<usize>, Vec<usize>) = (0..described.shape.len()).partition(|&flat| is_met(flat));
    let mut random = Pcg64::new(u128::from(options.seed), 0x7370_6c61 + parameter as u128);
    let mut chosen: Vec<(usize, Place)> = Vec::new();
    for (candidates, place, wanted) in [
        (unmet, Place::Unmet, options.entries.div_ceil(8)),
        (met, Place::Drawn, options.entries),
    ] {
        let few = candidates.len() <= wanted;
        for i in 0..wanted.min(candidates.len()) {
            let at = if few {
                i
            } else {
                random.next_u64() as usize % candidates.len()
            };
            if chosen.len() < options.entries && chosen.iter().all(|(flat, _)| *flat != candidates[at]) {
                chosen.push((candidates[at], place));
            }
        }
    }
    Ok(chosen)
}

/// The derivatives of the objectives with weights `seeds` by an entry: central differences over the pixels that may
/// depend on it, extrapolated to step zero (Richardson1911).
fn difference(objective: &SplatObjective, parameter: usize, flat: usize, step: f64, seeds: &[u32]) -> Difference {
    let pixels = objective.pixels_of(parameter, flat);
    let mut moved = objective.values.clone();
    let mut sums = |h: f64| -> Vec<f64> {
        moved[parameter][flat] = objective.values[parameter][flat] + h;
        let splats = objective.projected_alone(&moved, parameter, flat);
        let mut sums = vec![0.0; seeds.len()];
        for &(view, x, y) in &pixels {
            let color = objective.gather_with(view, [x, y], &splats, &moved);
            for (sum, &seed) in sums.iter_mut().zip(seeds) {
                let weight = objective.weight(seed, view, [x, y]);
                *sum += (0..3).map(|c| weight[c] * color[c]).sum::<f64>();
            }
        }
        sums
    };
    let ladder: Vec<Vec<f64>> = (0..LEVELS)
        .map(|level| {
            let h = step / f64::from(1 << level);
            let (above, below) = (sums(h), sums(-h));
            above.iter().zip(below).map(|(a, b)| (a - b) / (2.0 * h)).collect()
        })
        .collect();
    let extrapolated = |i: usize| extrapolate([0, 1, 2].each(|level: usize| ladder[level][i]));
    Difference {
        fixed: (0..seeds.len()).map(extrapolated).collect(),
        sides: None,
        blurred: false,
    }
}
