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

/// How many times as much as that of the default step a difference may round without doubt: it still tells derivatives
/// of zero, to which no tolerance is relative.
const MARGIN: f64 = 16.0;

/// A step that `--epsilon` asked for beside the default one.
struct Asked {
    step: f64,
    default: f64,
    /// For each weighting, how far a difference of the default step is off by rounding.
    usual: Vec<f64>,
}

impl Asked {
    /// None if no step was asked for.
    fn new((objective, c): (&PathObjective, &Checked), default: f64, options: &Options, seeds: &[u32]) -> Option<Self> {
        let step = options.step?;
        let mut largest = vec![0.0; seeds.len()];
        for rays in &c.rays {
            for (largest, size) in largest.iter_mut().zip(difference::sizes(objective, rays, seeds)) {
                *largest = f64::max(*largest, size);
            }
        }
        let usual = largest.iter().map(|&size| difference::roundings(size, default)[0]);
        Some(Self {
            step,
            default,
            usual: usual.collect(),
        })
    }

    /// Takes back the verdicts that differences of this step cannot support: their rounding is allowed for, so that they
    /// agree with any derivative if it is large. `size` is as in [`difference`].
    fn doubt(&self, report: &mut ParameterReport, (w, size): (usize, f64), adjoint: (&[f64], f64), options: &Options) {
        let (gradient, loss) = adjoint;
        let [rounding, _] = difference::roundings(size, self.step);
        if rounding <= MARGIN * self.usual[w] {
            return;
        }
        let largest = gradient.iter().fold(0.0, |m: f64, g| m.max(g.abs()));
        let (step, default) = (self.step, self.default);
        report.take_back(rounding, largest, options.tolerance, || {
            let fault = if step < default { "small" } else { "large" };
            format!(
                "the step {step:e} is too {fault} for finite differences of a loss of {loss:.3e}; choose --epsilon between \
                 {:.1e} and {default:.1e}",
                default / 10.0
            )
        });
    }
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
    let differences: Vec<(f64, Option<Asked>, Vec<_>)> = checked
        .iter()
        .map(|c| {
            let quantity = setup.params.parameters[c.parameter].quantity;
            let default = difference::default_step(&objective, c.parameter, quantity);
            let asked = Asked::new((&objective, c), default, options, &seeds);
            let step = options.step.unwrap_or(default);
            let entries = c.entries.iter().zip(&c.rays);
            let differences = entries
                .map(|(entry, rays)| difference(&mut objective, (c.parameter, entry.flat), rays, step, &seeds))
                .collect();
            (step, asked, differences)
        })
        .collect();
    let mut parameters = Vec::new();
    for (w, &weighting) in options.weightings.iter().enumerate() {
        for (slot, c) in checked
            .iter()
            .enumerate()
            .filter(|(_, c)| !fresh::bends(setup, c.parameter))
        {
            let (step, asked, differences) = &differences[slot];
            let size = differences.iter().fold(0.0, |m: f64, (_, sizes)| m.max(sizes[w]));
            let entries = c.entries.iter().zip(differences);
            let gradient = &adjoints[w].gradient[c.parameter];
            let mut report = ParameterReport::judge(
                &setup.params.parameters[c.parameter],
                (w, weighting),
                (gradient, beside(size, *step, options)),
                found.get(w).map(|d| &d.gradients[slot][..]),
                entries.map(|(entry, (difference, _))| (entry.flat, entry.place, difference)),
                options,
            );
            if let Some(asked) = asked {
                asked.doubt(&mut report, (w, size), (gradient, adjoints[w].loss), options);
            }
            parameters.push(report);
        }
    }
    parameters
}
