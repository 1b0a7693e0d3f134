//! What derivatives by places of surfaces leave out: their means beside differences of images whose sampling is not
//! frozen, in which silhouettes and the borders of shadows move too (docs/method.md, section 21). It is reported, and not
//! judged.

use rayon::prelude::*;
use serde::Serialize;

use super::entries::{Checked, coordinates};
use super::fields::Tell;
use super::objective::{PathObjective, cast_paths};
use crate::device::{Batch, Keys};
use crate::gradcheck::Setup;
use crate::params::Quantity;
use crate::resident::layout::gradient;
use crate::resident::{Resident, Transport};
use crate::transport::rays::random::{Pass, pass_key};

/// Paths in total, pixels of a pass, and limits of the number of passes.
const PATHS: u32 = 1 << 16;
const PIXELS: u32 = 1 << 12;
const PASSES: [u32; 2] = [16, 1 << 10];
/// Entries of a parameter that are compared at most.
const ENTRIES: usize = 6;
/// Steps of lengths and factors, and of angles in degrees: large beside the rounding of geometry, which is f32.
const LENGTH: f32 = 5e-3;
const DEGREES: f32 = 0.25;

/// The comparison for one entry of a parameter that moves surfaces or bends paths.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct FreshRow {
    /// x, y, z, channel.
    pub index: [usize; 4],
    /// The mean derivative by path replay, and by differences of the mean image.
    pub replayed: f64,
    pub fresh: f64,
    /// The standard error of the difference of both.
    pub error: f64,
}

/// The comparison for one parameter.
#[derive(Debug, Clone, Serialize)]
pub struct FreshReport {
    pub path: String,
    pub passes: u32,
    pub rows: Vec<FreshRow>,
}

/// Whether a parameter moves points of paths through smooth glass and mirrors, if the integrator follows these: the
/// derivative has this part, differences with the sampling frozen do not.
pub fn bends(setup: &Setup, parameter: usize) -> bool {
    let quantity = setup.params.parameters[parameter].quantity;
    let attached = matches!(&setup.resident.transport, Transport::Paths(paths) if paths.attached);
    attached && (quantity.moves() || matches!(quantity, Quantity::Normal | Quantity::BendingIndex))
}

/// Compares the parameters among `checked` that move surfaces or bend paths.
pub fn compare(setup: &Setup, checked: &[Checked]) -> Vec<FreshReport> {
    let moving = checked
        .iter()
        .filter(|c| setup.params.parameters[c.parameter].quantity.moves() || bends(setup, c.parameter));
    moving
        .map(|c| {
            let wanted: Vec<usize> = c.entries.iter().map(|entry| entry.flat).take(ENTRIES).collect();
            let passes = (PATHS / setup.batch.pixels().clamp(1, PIXELS)).clamp(PASSES[0], PASSES[1]);
            FreshReport {
                path: setup.params.parameters[c.parameter].path.clone(),
                passes,
                rows: rows(setup, c.parameter, &wanted, passes),
            }
        })
        .collect()
}

/// Means over `passes` passes for these entries of the parameter `of`; derivative and differences share random numbers.
pub fn rows(setup: &Setup, of: usize, wanted: &[usize], passes: u32) -> Vec<FreshRow> {
    let ways: Vec<Way> = wanted.iter().map(|&flat| vec![(flat, 1.0)]).collect();
    let step = match setup.params.parameters[of].quantity {
        Quantity::Orientation => DEGREES,
        _ => LENGTH,
    };
    along(setup, of, &ways, step, passes)
}

/// A direction: entries that are changed together, each with its change for a step of one.
pub type Way = Vec<(usize, f32)>;

/// [`rows`] along the directions `ways`, by differences of this step; a row has the index of the direction's first entry.
pub fn along(setup: &Setup, of: usize, ways: &[Way], step: f32, passes: u32) -> Vec<FreshRow> {
    let parameter = &setup.params.parameters[of];
    let here = PathObjective::without_paths(setup, gradient::FREE_FLIGHT);
    let moved: Vec<[(PathObjective, Resident); 2]> = ways
        .iter()
        .map(|way| {
            [step, -step].map(|by| {
                let mut moved = setup.clone();
                for (flat, share) in way {
                    moved.params.parameters[of].values[*flat] += by * share;
                }
                moved.resident.place_views(&moved.params);
                (
                    PathObjective::without_paths(&moved, gradient::FREE_FLIGHT),
                    moved.resident,
                )
            })
        })
        .collect();
    let batch = Batch {
        drawn: (setup.batch.pixels() > PIXELS).then_some(PIXELS).or(setup.batch.drawn),
        ..setup.batch.clone()
    };
    let weight = 1.0 / (3.0 * f64::from(batch.pixels()));
    // One pass: for each entry the derivative by path replay and the difference.
    let pass = |k: u32| -> Vec<[f64; 2]> {
        let keys = Keys {
            objective: pass_key(u64::from(k), 0, Pass::Objective),
            pass: pass_key(u64::from(k), 0, Pass::Adjoint),
        };
        let casts = cast_paths(&setup.resident, &batch, keys, 1, 0..batch.pixels());
        let mut replayed = vec![0.0; parameter.values.len()];
        let mut sink = Tell {
            scene: here.scene(),
            background: here.records().background,
            tell: |slot: usize, flat: usize, d: f64| {
                if slot == of {
                    replayed[flat] += d;
                }
            },
        };
        for cast in &casts {
            here.replay([weight; 3], cast, &mut sink);
        }
        let mean = |(objective, resident): &(PathObjective, Resident)| -> f64 {
            let casts = cast_paths(resident, &batch, keys, 1, 0..batch.pixels());
            let of_path = |cast| objective.gather(&objective.fields, cast).iter().sum::<f64>() * weight;
            casts.iter().map(of_path).sum()
        };
        let difference =
            |[more, less]: &[(PathObjective, Resident); 2]| (mean(more) - mean(less)) / (2.0 * f64::from(step));
        let along = |way: &Way| {
            way.iter()
                .map(|(flat, share)| f64::from(*share) * replayed[*flat])
                .sum()
        };
        ways.iter()
            .zip(&moved)
            .map(|(way, moved)| [along(way), difference(moved)])
            .collect()
    };
    let found: Vec<Vec<[f64; 2]>> = (1..=passes).into_par_iter().map(pass).collect();
    let n = f64::from(passes);
    let row = |(i, way): (usize, &Way)| {
        let mean = |of: &dyn Fn([f64; 2]) -> f64| found.iter().map(|pass| of(pass[i])).sum::<f64>() / n;
        let (replayed, fresh) = (mean(&|[replayed, _]| replayed), mean(&|[_, fresh]| fresh));
        let variance = mean(&|[replayed_here, fresh_here]| (fresh_here - replayed_here - (fresh - replayed)).powi(2));
        FreshRow {
            index: coordinates(parameter.shape, way[0].0),
            replayed,
            fresh,
            error: (variance / (n - 1.0)).sqrt(),
        }
    };
    ways.iter().enumerate().map(row).collect()
}
