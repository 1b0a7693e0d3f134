//! Derivatives of an image by one scalar in forward mode: dual numbers through the same walk, compared with finite
//! differences of the image for the same rays and random numbers.

use std::ops::Range;

use rayon::prelude::*;

use super::field::fields::{Fields, Plain, Role};
use super::field::objective::{CastRay, cast_rays};
use super::light::LightObjective;
use super::paths::difference::{self, Direction, default_step};
use super::paths::fields::Sides;
use super::paths::fresh::bends;
use super::paths::objective::{PathObjective, cast_paths};
use super::splats::objective::SplatObjective;
use super::{Index, Setup, asked};
use crate::each::EachEntry;
use crate::params::{Kind, Parameter};
use crate::resident::Transport;
use crate::resident::layout::gradient;
use crate::resident::light::LightScene;
use crate::resident::splats::SplatScene;
use crate::transport::field::march;
use crate::transport::number::Number;
use crate::transport::number::dual::Dual;

/// Paths in memory at a time (at least those of one pixel): a few hundred bytes each.
pub const PATHS_AT_ONCE: u32 = 1 << 18;

/// The largest step of finite differences relative to a parameter's largest value, where a scene does not trace paths.
pub const STEP: f64 = 1e-3;

/// The scalar that an image is differentiated by.
#[derive(Debug, Clone, PartialEq)]
pub enum Motion {
    /// One entry of the parameter.
    Entry(Index),
    /// A factor on all values of one channel, or of all channels if None, differentiated where it is one.
    Scale(Option<usize>),
    /// A translation of the whole grid along this direction, in edges of its unit cube; values change by their central
    /// differences between texels.
    Shift([f64; 3]),
    /// The derivative of each entry by the scalar: one number for each entry, one for each channel, or one for all
    /// entries.
    Along(Vec<f64>),
}

/// A derivative image.
#[derive(Debug, Clone)]
pub struct Forward {
    /// RGB of each pixel of the batch, in order; None for masked pixels.
    pub slopes: Vec<Option<[f64; 3]>>,
    /// The largest magnitude among them.
    pub largest: f64,
    /// The largest difference between forward mode and finite differences over all pixels.
    pub difference: f64,
}

/// The derivative of each entry of a parameter by the scalar.
///
/// # Errors
/// An entry outside the parameter, a channel that does not exist, a translation of something other than a grid, or
/// numbers whose count is not that of the entries, that of the channels, or one.
pub fn direction(parameter: &Parameter, motion: Motion) -> anyhow::Result<Vec<f64>> {
    let (shape, values) = (parameter.shape, &parameter.values);
    match motion {
        Motion::Entry(index) => {
            let mut direction = vec![0.0; values.len()];
            direction[asked(parameter, index)?] = 1.0;
            Ok(direction)
        }
        Motion::Scale(channel) => {
            if let Some(channel) = channel.filter(|c| *c >= shape.channels) {
                anyhow::bail!(
                    "{}: there is no channel {channel}, expected one from 0 to {}",
                    parameter.path,
                    shape.channels - 1
                );
            }
            let scaled = |(i, v): (usize, &f32)| match channel {
                Some(channel) if i % shape.channels != channel => 0.0,
                _ => f64::from(*v),
            };
            Ok(values.iter().enumerate().map(scaled).collect())
        }
        Motion::Shift(by) => {
            if parameter.kind != Kind::Grid || shape.texels() < 2 {
                anyhow::bail!(
                    "{}: is no grid of several texels, so that nothing can be shifted; scale it, or say by --tangent how it \
                     changes",
                    parameter.path
                );
            }
            let [nx, ny, _] = shape.size;
            let strides = [1, nx, nx * ny];
            let moved = |i: usize| {
                let (texel, channel) = (i / shape.channels, i % shape.channels);
                let at = |texel: usize| f64::from(values[texel * shape.channels + channel]);
                let along = |axis: usize| {
                    let (n, stride) = (shape.size[axis], strides[axis]);
                    let place = texel / stride % n;
                    let (back, ahead) = (place.min(1), (n - 1 - place).min(1));
                    let span = (back + ahead).max(1) as f64;
                    (at(texel + ahead * stride) - at(texel - back * stride)) / span * n as f64
                };
                -(0..3).map(|axis| by[axis] * along(axis)).sum::<f64>()
            };
            Ok((0..values.len()).map(moved).collect())
        }
        Motion::Along(numbers) => {
            if ![1, shape.channels, values.len()].contains(&numbers.len()) {
                let channels = match shape.channels {
                    channels if channels == values.len() => String::new(),
                    channels => format!(", {channels} (one for each channel)"),
                };
                let entries = match values.len() {
                    1 => String::new(),
                    entries => format!("{channels} or {entries} (one for each entry)"),
                };
                anyhow::bail!(
                    "{}: --tangent has {} numbers; give one{entries}",
                    parameter.path,
                    numbers.len()
                );
            }
            Ok(numbers.iter().copied().cycle().take(values.len()).collect())
        }
    }
}

/// Differentiates the image of a setup's batch by the scalar behind `direction`. `step` is the largest step of the
/// finite differences: the largest change of an entry, relative to the parameter's largest value (as it is where all
/// values are zero). Without it paths have the step of `gradcheck`, which depends on the parameter's kind, and all else
/// [`STEP`].
///
/// # Errors
/// The walk does not read the parameter, or the parameter moves points of paths as only attached path replay follows
/// them.
pub fn forward(setup: &Setup, parameter: usize, direction: &[f64], step: Option<f64>) -> anyhow::Result<Forward> {
    let largest = |of: &mut dyn Iterator<Item = f64>| of.fold(0.0, |m: f64, v| m.max(v.abs()));
    let values = setup.params.parameters[parameter].values.iter();
    let reach = largest(&mut values.map(|v| f64::from(*v)));
    let speed = largest(&mut direction.iter().copied());
    let per_unit = |step: f64| if speed > 0.0 { step / speed } else { step };
    let relative = |share: f64| per_unit(if reach > 0.0 { share * reach } else { share });
    let (asked, step) = (step.map(relative), relative(step.unwrap_or(STEP)));
    match &setup.resident.transport {
        Transport::Paths(_) if bends(setup, parameter) => anyhow::bail!(
            "{}: moves points of paths behind smooth glass and mirrors, which forward mode does not follow; use \
             `prbopt backpropagate`, or `prbopt gradient --loss`",
            setup.params.parameters[parameter].path
        ),
        Transport::Paths(_) => {
            let objective = PathObjective::without_paths(setup, gradient::FREE_FLIGHT);
            let of_kind = || default_step(&objective, parameter, setup.params.parameters[parameter].quantity);
            let step = asked.unwrap_or_else(|| per_unit(of_kind()));
            Ok(of_paths(setup, &objective, parameter, direction, step))
        }
        Transport::Splats(scene) => Ok(of_splats(setup, scene, parameter, direction, step)),
        Transport::Light(scene) => {
            anyhow::ensure!(
                parameter == scene.parameter,
                "{}: plays no part in the derivatives of light tracing; choose `{}`",
                setup.params.parameters[parameter].path,
                setup.params.parameters[scene.parameter].path
            );
            Ok(of_light(setup, scene, direction, step))
        }
        Transport::Field(_) => match Role::of(&setup.resident, parameter) {
            Some(role) => Ok(of_field(setup, role, direction, step)),
            None => anyhow::bail!(
                "{}: plays no part in what is seen; choose another parameter",
                setup.params.parameters[parameter].path
            ),
        },
    }
}

fn of_field(setup: &Setup, role: Role, direction: &[f64], step: f64) -> Forward {
    let Setup { resident, params, .. } = setup;
    let mut dual = Fields::new(resident, params, |v| Dual::constant(v.into()));
    seed(dual.of_mut(role), direction);
    let fields: Fields<f64> = Fields::new(resident, params, f64::lift);
    let mut moved = fields.clone();
    in_pieces(setup, |places| {
        let casts = cast_rays(resident, &setup.batch, setup.keys, setup.spp, places);
        let scene = &resident.scene;
        let gather = |cast: &CastRay| {
            let view = Plain { scene, fields: &dual };
            march::gather(scene, &view, &cast.ray, cast.jitter, cast.backdrop).radiance
        };
        let slopes = casts
            .par_iter()
            .map(|cast| weighed(gather(cast).each(|c| c.slope), cast.weight))
            .collect();
        let image = |t: f64| -> Vec<[f64; 3]> {
            shift(moved.of_mut(role), fields.of(role), direction, t);
            let view = Plain { scene, fields: &moved };
            let gather = |cast: &CastRay| {
                let seen = march::gather(scene, &view, &cast.ray, cast.jitter, cast.backdrop);
                weighed(seen.radiance, cast.weight)
            };
            casts.par_iter().map(gather).collect()
        };
        Piece {
            differences: extrapolated(image, step),
            slopes,
            places: casts.iter().map(|cast| cast.place).collect(),
        }
    })
}

fn of_paths(setup: &Setup, objective: &PathObjective, parameter: usize, direction: &[f64], step: f64) -> Forward {
    let mut dual: Sides<Dual> = Sides::new(&setup.params, |v| Dual::constant(v.into()));
    seed(&mut dual.integrand[parameter], direction);
    let mut moved = objective.fields.clone();
    let changes = direction.iter().copied().enumerate().filter(|(_, by)| *by != 0.0);
    let along = Direction {
        parameter,
        changes: changes.collect(),
    };
    in_pieces(setup, |places| {
        let casts = cast_paths(&setup.resident, &setup.batch, setup.keys, setup.spp, places);
        let slopes = casts
            .par_iter()
            .map(|cast| weighed(objective.gather(&dual, cast).each(|c| c.slope), cast.weight))
            .collect();
        let all: Vec<_> = casts.iter().collect();
        let found = difference::slopes(objective, &mut moved, &along, &all, step);
        let pairs = found.iter().zip(&casts);
        Piece {
            differences: pairs.map(|(slope, cast)| weighed(slope.value, cast.weight)).collect(),
            slopes,
            places: casts.iter().map(|cast| cast.place).collect(),
        }
    })
}

fn of_light(setup: &Setup, scene: &LightScene, direction: &[f64], step: f64) -> Forward {
    let objective = LightObjective::new(setup, scene);
    let mut dual: Vec<Dual> = objective.values.iter().map(|v| Dual::constant(*v)).collect();
    seed(&mut dual, direction);
    let mut moved = objective.values.clone();
    let image = |t: f64| -> Vec<[f64; 3]> {
        shift(&mut moved, &objective.values, direction, t);
        objective.image(&moved)
    };
    let differences = extrapolated(image, step);
    let slopes: Vec<[f64; 3]> = objective.image(&dual).iter().map(|c| c.each(|c| c.slope)).collect();
    whole(slopes, &differences)
}

fn of_splats(setup: &Setup, scene: &SplatScene, parameter: usize, direction: &[f64], step: f64) -> Forward {
    let objective = SplatObjective::new(setup, scene);
    let constant = |values: &Vec<f64>| values.iter().map(|v| Dual::constant(*v)).collect();
    let mut dual: Vec<Vec<Dual>> = objective.values.iter().map(constant).collect();
    seed(&mut dual[parameter], direction);
    let mut moved = objective.values.clone();
    let image = |t: f64| -> Vec<[f64; 3]> {
        shift(&mut moved[parameter], &objective.values[parameter], direction, t);
        objective.image(&moved)
    };
    let differences = extrapolated(image, step);
    let slopes: Vec<[f64; 3]> = objective.image(&dual).iter().map(|c| c.each(|c| c.slope)).collect();
    whole(slopes, &differences)
}

/// The radiance of a sample times its weight in its pixel, which is set by filters with negative lobes and by meters.
fn weighed(radiance: [f64; 3], weight: f32) -> [f64; 3] {
    radiance.each(|x| x * f64::from(weight))
}

/// The derivatives of a whole picture.
fn whole(slopes: Vec<[f64; 3]>, differences: &[[f64; 3]]) -> Forward {
    let both = || slopes.iter().flatten().zip(differences.iter().flatten());
    Forward {
        largest: both().fold(0.0, |m, (a, _)| m.max(a.abs())),
        difference: both().fold(0.0, |m, (a, b)| m.max((a - b).abs())),
        slopes: slopes.iter().map(|slope| Some(*slope)).collect(),
    }
}

/// Derivatives of the radiances of some paths, one element a path.
struct Piece {
    /// Positions of their pixels in the batch.
    places: Vec<u32>,
    /// Derivatives by forward mode and by finite differences.
    slopes: Vec<[f64; 3]>,
    differences: Vec<[f64; 3]>,
}

/// Averages over the paths of each pixel; `find` is called with ranges of whole pixels.
fn in_pieces(setup: &Setup, mut find: impl FnMut(Range<u32>) -> Piece) -> Forward {
    let (count, spp) = (setup.batch.pixels(), f64::from(setup.spp));
    let at_once = (PATHS_AT_ONCE / setup.spp).max(1);
    let mut pixels: Vec<Option<[[f64; 3]; 2]>> = vec![None; count as usize];
    for first in (0..count).step_by(at_once as usize) {
        let piece = find(first..count.min(first.saturating_add(at_once)));
        let both = piece.slopes.iter().zip(&piece.differences);
        for (&place, (slope, difference)) in piece.places.iter().zip(both) {
            let sums = pixels[place as usize].get_or_insert([[0.0; 3]; 2]);
            for c in 0..3 {
                sums[0][c] += slope[c] / spp;
                sums[1][c] += difference[c] / spp;
            }
        }
    }
    let both = || pixels.iter().flatten().flat_map(|[a, b]| a.iter().zip(b));
    Forward {
        largest: both().fold(0.0, |m, (a, _)| m.max(a.abs())),
        difference: both().fold(0.0, |m, (a, b)| m.max((a - b).abs())),
        slopes: pixels.iter().map(|pixel| pixel.map(|[slope, _]| slope)).collect(),
    }
}

fn seed(values: &mut [Dual], direction: &[f64]) {
    for (value, slope) in values.iter_mut().zip(direction) {
        value.slope = *slope;
    }
}

/// Sets `values` to `base` + `t` · `direction`.
fn shift(values: &mut [f64], base: &[f64], direction: &[f64], t: f64) {
    for ((value, base), slope) in values.iter_mut().zip(base).zip(direction) {
        *value = base + t * slope;
    }
}

/// Central differences at a step and at half of it, extrapolated to step zero (Richardson).
fn extrapolated(mut image: impl FnMut(f64) -> Vec<[f64; 3]>, step: f64) -> Vec<[f64; 3]> {
    let mut central = |h: f64| -> Vec<[f64; 3]> {
        let (above, below) = (image(h), image(-h));
        let pairs = above.iter().zip(&below);
        pairs
            .map(|(a, b)| [0, 1, 2].each(|c| (a[c] - b[c]) / (2.0 * h)))
            .collect()
    };
    let (coarse, fine) = (central(step), central(step / 2.0));
    let pairs = coarse.iter().zip(&fine);
    pairs
        .map(|(a, b)| [0, 1, 2].each(|c| (4.0 * b[c] - a[c]) / 3.0))
        .collect()
}
