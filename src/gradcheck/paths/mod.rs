//! Gradient checks of path-traced scenes: path replay against finite differences with the sampling frozen, a device
//! against path replay, and differential ratio tracking against free flight.

pub mod difference;
pub mod entries;
pub mod fields;
pub mod fresh;
pub mod objective;
pub mod tracking;

use rayon::prelude::*;

use super::report::{DEVICE_FLOOR, FLOOR, LossReport, ParameterReport, Report};
use crate::device::Device;
use crate::gradcheck::{DeviceAdjoint, Options, Outcome, Setup, device_adjoints};
use crate::resident::layout::gradient;
use crate::resident::paths::{Estimator, PathScene};
use difference::difference;
use entries::{Checked, choose};
use objective::{Adjoint, PathObjective};

/// Why a device with an estimator that draws other random numbers than path replay is not checked.
const OTHER_PATHS: &str = "the device was not checked: radiative backpropagation follows paths of its own, so that only \
                           means could be compared";

/// Checks the f64 walk, and `device` if given.
///
/// # Errors
/// An index outside its parameter, or the device fails.
pub fn check(
    setup: &Setup,
    scene: &PathScene,
    device: Option<&mut dyn Device>,
    options: &Options,
) -> anyhow::Result<Outcome> {
    let objective = PathObjective::new(setup, gradient::FREE_FLIGHT);
    let seeds: Vec<u32> = options.weightings.iter().map(|w| w.seed(options.seed)).collect();
    let adjoints: Vec<Adjoint> = seeds.par_iter().map(|&seed| objective.adjoint(seed)).collect();
    let checked = choose(setup, &objective, options)?;
    // Gradients by the device, if it follows the same paths.
    let (mut device, skipped) = match device {
        Some(_) if matches!(scene.estimator, Estimator::Radiative(_)) => (None, Some(OTHER_PATHS.to_string())),
        device => (device, None),
    };
    let info = device.as_ref().map(|d| d.info().clone());
    let found = match &mut device {
        Some(device) => device_adjoints(&with_gradient(setup, gradient::FREE_FLIGHT), *device, &seeds)?,
        None => Vec::new(),
    };
    // Compare with finite differences, and tracking with free flight.
    let parameters = judge(setup, objective, &checked, &adjoints, &found, options);
    let tracking = match scene.settings.gradient {
        gradient::FREE_FLIGHT => Vec::new(),
        tracking => tracking::check(setup, tracking, &checked, device, options)?,
    };
    let fresh = fresh::compare(setup, &checked);
    let losses = options.weightings.iter().enumerate().map(|(w, &weighting)| LossReport {
        weighting,
        value: adjoints[w].loss,
        device: found.get(w).map(|d| d.loss),
    });
    let report = Report {
        device: info,
        skipped,
        pixels: setup.batch.pixels(),
        rays: adjoints.first().map_or(0, |a| a.rays),
        spp: setup.spp,
        seed: options.seed,
        losses: losses.collect(),
        passed: parameters.iter().all(|p| p.passed) && tracking.iter().all(|t| t.passed),
        parameters,
        tracking,
        fresh,
    };
    let gradients = adjoints.into_iter().map(|adjoint| {
        let mut gradient = adjoint.gradient;
        setup
            .checked
            .iter()
            .map(|&p| std::mem::take(&mut gradient[p]))
            .collect()
    });
    Ok(Outcome {
        report,
        gradients: gradients.collect(),
    })
}

/// The same setup with another estimator of the derivatives by the extinction, a constant of [`gradient`].
///
/// # Panics
/// The scene is a radiance field.
pub fn with_gradient(setup: &Setup, gradient: u32) -> Setup {
    let mut setup = setup.clone();
    setup.resident.transport.paths_mut().settings.gradient = gradient;
    setup
}

/// Lower bounds of the largest derivative, of which the floor of relative errors is a part, so that errors as small as
/// rounding are within the tolerances: for the f64 walk and for a device.
fn beside(size: f64, step: f64, options: &Options) -> [f64; 2] {
    let [of_difference, of_device] = difference::roundings(size, step);
    [
        of_difference / (FLOOR * options.tolerance),
        of_device / (DEVICE_FLOOR * options.device_tolerance),
    ]
}

/// Finds the finite differences of all chosen entries and judges the gradients.
fn judge(
    setup: &Setup,
    mut objective: PathObjective,
    checked: &[Checked],
    adjoints: &[Adjoint],
    found: &[DeviceAdjoint],
    options: &Options,
) -> Vec<ParameterReport> {
    let seeds: Vec<u32> = options.weightings.iter().map(|w| w.seed(options.seed)).collect();
    let differences: Vec<(f64, Vec<_>)> = checked
        .iter()
        .map(|c| {
            let quantity = setup.params.parameters[c.parameter].quantity;
            let default = || difference::default_step(&objective, c.parameter, quantity);
            let step = options.step.unwrap_or_else(default);
            let entries = c.entries.iter().zip(&c.rays);
            let differences = entries
                .map(|(entry, rays)| difference(&mut objective, (c.parameter, entry.flat), rays, step, &seeds))
                .collect();
            (step, differences)
        })
        .collect();
    let mut parameters = Vec::new();
    for (w, &weighting) in options.weightings.iter().enumerate() {
        for (slot, c) in checked
            .iter()
            .enumerate()
            .filter(|(_, c)| !fresh::bends(setup, c.parameter))
        {
            let (step, differences) = &differences[slot];
            let size = differences.iter().fold(0.0, |m: f64, (_, sizes)| m.max(sizes[w]));
            let entries = c.entries.iter().zip(differences);
            parameters.push(ParameterReport::judge(
                &setup.params.parameters[c.parameter],
                (w, weighting),
                (&adjoints[w].gradient[c.parameter], beside(size, *step, options)),
                found.get(w).map(|d| &d.gradients[slot][..]),
                entries.map(|(entry, (difference, _))| (entry.flat, entry.place, difference)),
                options,
            ));
        }
    }
    parameters
}
