//! Differential tracking draws random numbers of its own, so that its sampling cannot be frozen: its mean is compared
//! with that of free flight, whose derivatives finite differences have confirmed.

use rayon::prelude::*;
use serde::Serialize;

use super::difference::default_step;
use super::entries::{Checked, coordinates};
use super::fields::Tell;
use super::objective::{PathObjective, cast_paths};
use super::{beside, with_gradient};
use crate::device::{Batch, Device, Keys};
use crate::gradcheck::field::entries::Place;
use crate::gradcheck::report::{DeviceCell, Verdict};
use crate::gradcheck::{Options, Setup, device_adjoints};
use crate::resident::layout::gradient;
use crate::transport::rays::random::{Pass, pass_key};

/// Paths of both estimators in total, pixels of a pass, and limits of the number of passes.
const PATHS: u32 = 1 << 18;
const PIXELS: u32 = 1 << 12;
const PASSES: [u32; 2] = [64, 1 << 14];
/// Difference of the means, in standard errors, from which on an entry fails.
const MOST: f64 = 4.0;

/// The means of both estimators, compared.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Comparison {
    pub tracked: f64,
    pub free_flight: f64,
    /// Their difference over its standard error.
    pub z: f64,
    /// The relative error that the comparison would detect: `MOST` standard errors.
    pub seen: f64,
    pub verdict: Verdict,
}

/// One entry of an extinction.
#[derive(Debug, Clone, Serialize)]
pub struct TrackingRow {
    /// x, y, z, channel.
    pub index: [usize; 4],
    pub place: Place,
    #[serde(flatten)]
    pub means: Comparison,
    /// The device's gradient by differential tracking, judged against the f64 one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device: Option<DeviceCell>,
}

/// The comparison for one extinction.
#[derive(Debug, Clone, Serialize)]
pub struct TrackingReport {
    pub path: String,
    pub passes: u32,
    pub passed: bool,
    /// The sum over all nonzero entries: shows a common bias below the noise of single entries.
    pub sum: Comparison,
    pub rows: Vec<TrackingRow>,
}

/// Means of both estimators over many passes, and the standard error of their difference: for each requested entry,
/// then for the sum over all nonzero entries of the parameter.
#[derive(Debug, Clone, PartialEq)]
pub struct Means {
    pub tracked: Vec<f64>,
    pub free_flight: Vec<f64>,
    pub error: Vec<f64>,
}

impl Means {
    /// Compares the `i`-th pair of means.
    pub fn compare(&self, i: usize) -> Comparison {
        let (tracked, free_flight, error) = (self.tracked[i], self.free_flight[i], self.error[i]);
        let difference = tracked - free_flight;
        let z = if difference == 0.0 { 0.0 } else { difference / error };
        Comparison {
            tracked,
            free_flight,
            z,
            seen: if free_flight == 0.0 {
                0.0
            } else {
                MOST * error / free_flight.abs()
            },
            verdict: if z.abs() < MOST { Verdict::Pass } else { Verdict::Fail },
        }
    }
}

/// Number of passes for a batch.
pub fn passes(batch: &Batch) -> u32 {
    (PATHS / batch.pixels().clamp(1, PIXELS)).clamp(PASSES[0], PASSES[1])
}

/// Runs `passes` passes with new random numbers by `tracking`, a constant of [`gradient`], and by free flight.
/// `wanted` are flat indices of entries of the parameter `of`.
pub fn means(setup: &Setup, tracking: u32, of: usize, wanted: &[usize], passes: u32) -> Means {
    // Map flat indices to positions among `wanted`.
    let objectives = [tracking, gradient::FREE_FLIGHT].map(|gradient| PathObjective::new(setup, gradient));
    let values = &setup.params.parameters[of].values;
    let mut slots = vec![u32::MAX; values.len()];
    for (i, &flat) in wanted.iter().enumerate() {
        slots[flat] = i as u32;
    }
    let pixels = setup.batch.pixels();
    let batch = Batch {
        drawn: (pixels > PIXELS).then_some(PIXELS).or(setup.batch.drawn),
        ..setup.batch.clone()
    };
    let weight = 1.0 / (3.0 * f64::from(batch.pixels()));
    // One pass: gradients by both estimators from the same paths.
    let pass = |k: u32| {
        let keys = Keys {
            objective: pass_key(u64::from(k), 0, Pass::Objective),
            pass: pass_key(u64::from(k), 0, Pass::Adjoint),
        };
        let casts = cast_paths(&setup.resident, &batch, keys, 1, 0..batch.pixels());
        [0, 1].map(|i: usize| {
            let objective = &objectives[i];
            let mut sums = vec![0.0; wanted.len() + 1];
            let mut sink = Tell {
                scene: objective.scene(),
                background: objective.records().background,
                tell: |parameter: usize, flat: usize, d: f64| {
                    if parameter != of {
                        return;
                    }
                    if slots[flat] != u32::MAX {
                        sums[slots[flat] as usize] += d;
                    }
                    if values[flat] != 0.0 {
                        sums[wanted.len()] += d;
                    }
                },
            };
            for cast in &casts {
                objective.replay([weight; 3], cast, &mut sink);
            }
            sums
        })
    };
    // Means of the passes, and the standard error of the paired difference.
    let found: Vec<[Vec<f64>; 2]> = (1..=passes).into_par_iter().map(pass).collect();
    let n = f64::from(passes);
    let mean = |of: &dyn Fn(&[Vec<f64>; 2]) -> f64| found.iter().map(of).sum::<f64>() / n;
    let mut means = Means {
        tracked: Vec::new(),
        free_flight: Vec::new(),
        error: Vec::new(),
    };
    for i in 0..=wanted.len() {
        let (tracked, free_flight) = (mean(&|f| f[0][i]), mean(&|f| f[1][i]));
        let variance = mean(&|f| (f[0][i] - f[1][i] - (tracked - free_flight)).powi(2));
        means.tracked.push(tracked);
        means.free_flight.push(free_flight);
        means.error.push((variance / (n - 1.0)).sqrt());
    }
    means
}

/// Checks the entries of every extinction among `checked` by `tracking`, a constant of [`gradient`].
///
/// # Errors
/// The device fails.
pub fn check(
    setup: &Setup,
    tracking: u32,
    checked: &[Checked],
    device: Option<&mut dyn Device>,
    options: &Options,
) -> anyhow::Result<Vec<TrackingReport>> {
    let setup = with_gradient(setup, tracking);
    let objective = PathObjective::new(&setup, tracking);
    let records = objective.records();
    let extinctions: Vec<u32> = records
        .media
        .iter()
        .map(|m| records.volumes[m.sigma_t as usize].slot)
        .collect();
    // Device against the f64 walk: both draw the same numbers.
    let seed = options.weightings.first().map_or(0, |w| w.seed(options.seed));
    let found = match device {
        Some(device) => Some((
            device_adjoints(&setup, device, &[seed])?.remove(0),
            objective.adjoint(seed),
        )),
        None => None,
    };
    // Tracking against free flight, for every extinction.
    let passes = passes(&setup.batch);
    let mut reports = Vec::new();
    for (slot, c) in checked.iter().enumerate() {
        if !extinctions.contains(&(c.parameter as u32)) {
            continue;
        }
        let parameter = &setup.params.parameters[c.parameter];
        let step = default_step(&objective, c.parameter, parameter.quantity);
        let wanted: Vec<usize> = c.entries.iter().map(|e| e.flat).collect();
        let means = means(&setup, tracking, c.parameter, &wanted, passes);
        let rows = c.entries.iter().enumerate().map(|(i, entry)| {
            let mut compared = means.compare(i);
            if parameter.values[entry.flat] == 0.0 {
                // Where the extinction is zero free flight never collides and misses the derivative of in-scattering.
                compared.verdict = Verdict::Unjudged;
            }
            let device = found.as_ref().map(|(device, adjoint)| {
                let gradient = &adjoint.gradient[c.parameter];
                let [_, least] = beside(adjoint.loss.abs(), step, options);
                let largest = gradient.iter().fold(least, |m: f64, g| m.max(g.abs()));
                let found = f64::from(device.gradients[slot][entry.flat]);
                DeviceCell::judge(found, gradient[entry.flat], largest, options.device_tolerance)
            });
            TrackingRow {
                index: coordinates(parameter.shape, entry.flat),
                place: entry.place,
                means: compared,
                device,
            }
        });
        let rows: Vec<TrackingRow> = rows.collect();
        let sum = means.compare(wanted.len());
        reports.push(TrackingReport {
            path: parameter.path.clone(),
            passes,
            passed: sum.verdict != Verdict::Fail && rows.iter().all(TrackingRow::passed),
            sum,
            rows,
        });
    }
    Ok(reports)
}

impl TrackingRow {
    /// Whether neither the mean nor the device failed.
    pub fn passed(&self) -> bool {
        self.means.verdict != Verdict::Fail && self.device.is_none_or(|d| d.verdict != Verdict::Fail)
    }
}
