//! Gradient checks of light tracing: the derivative by the heights in f64 against finite differences with the same paths, and a
//! device against the derivative in f64. Nothing is frozen: where filters are smooth, what arrives is.

use anyhow::{Result, ensure};
use rand_core::Rng;
use rand_pcg::Pcg64;
use rayon::prelude::*;

use super::field::difference::{Difference, extrapolate};
use super::field::entries::Place;
use super::report::{LossReport, ParameterReport, Report};
use super::{Options, Outcome, Setup, asked, device_adjoints};
use crate::device::Device;
use crate::each::EachEntry;
use crate::resident::light::{Film, LightScene, MAX_TAPS};
use crate::transport::light::heights::{Heights, height_adjoint};
use crate::transport::light::splat::{Taps, taps};
use crate::transport::light::walk::{arrival_adjoint, arrive, entry, exit, pass_by};
use crate::transport::number::Number;
use crate::transport::rays::pixel::linear_weight;
use crate::transport::rays::random::{Counter, random_uniform};
use crate::transport::rays::sampler::WALK;

/// The largest step of the differences, in units of the slab's thickness. Shares of a pixel's width of landing places are
/// what is to be small.
const STEP: f64 = 1e-7;

/// Halvings of the step.
const LEVELS: usize = 3;

/// Rows of the light that a thread takes at a time.
const ROWS: u32 = 8;

/// The objective: a weighted mean of pixels.
#[derive(Debug)]
pub struct LightObjective<'a> {
    setup: &'a Setup,
    scene: &'a LightScene,
    /// The heights of the scene.
    pub values: Vec<f64>,
}

/// A path: its film, its place on the light, and the colour that it begins with.
#[derive(Debug, Clone, Copy)]
struct Path<'a> {
    film: Film<'a>,
    /// Index of the film's first pixel in the batch.
    first: u32,
    place: [f32; 2],
    color: [f64; 3],
}

impl<'a> LightObjective<'a> {
    /// The objective of a scene that is traced from its light.
    pub fn new(setup: &'a Setup, scene: &'a LightScene) -> Self {
        let values = &setup.params.parameters[scene.heights].values;
        Self {
            setup,
            scene,
            values: values.iter().map(|v| f64::from(*v)).collect(),
        }
    }

    fn pixels(&self) -> u32 {
        self.setup.batch.pixels()
    }

    /// Calls `work` with the paths of some rows of a view's light, threads at once; results are in order.
    fn in_rows<T: Send>(&self, work: impl Fn(&mut dyn Iterator<Item = Path<'a>>) -> T + Sync) -> Vec<T> {
        let mut all = Vec::new();
        for (slot, &sensor) in self.setup.batch.table.sensors.iter().enumerate() {
            let film = self
                .scene
                .film(sensor as usize, &self.setup.resident.sensors[sensor as usize]);
            let first = self.setup.batch.table.starts[slot];
            let begins: Vec<u32> = (0..film.height).step_by(ROWS as usize).collect();
            let parts = begins.par_iter().map(|&begin| {
                let cells = (begin..(begin + ROWS).min(film.height)).flat_map(|y| (0..film.width).map(move |x| [x, y]));
                let mut paths = cells.flat_map(|cell| self.paths_of(sensor, film, first, cell));
                work(&mut paths)
            });
            all.extend(parts.collect::<Vec<T>>());
        }
        all
    }

    /// The paths that begin in a cell of the light.
    fn paths_of(
        &self,
        sensor: u32,
        film: Film<'a>,
        first: u32,
        [x, y]: [u32; 2],
    ) -> impl Iterator<Item = Path<'a>> + use<'a> {
        let (spp, key, scene) = (self.setup.spp, self.setup.keys.pass, self.scene);
        let paths = f64::from(film.width) * f64::from(film.height) * f64::from(spp);
        let size = [film.width as f32, film.height as f32];
        (0..spp).map(move |sample| {
            let counter = Counter {
                sensor,
                pixel: y * film.width + x,
                sample: sample / 2,
                block: WALK,
            };
            let [a, b, c, d] = random_uniform(key, counter);
            let [a, b] = if sample % 2 == 0 { [a, b] } else { [c, d] };
            let place = [(x as f32 + a) / size[0], (y as f32 + b) / size[1]];
            let color = scene.lamp.radiance(place[0], place[1]);
            Path {
                film,
                first,
                place,
                color: [0, 1, 2].each(|c| f64::from(color[c]) * f64::from(film.exposure[c]) / paths),
            }
        })
    }

    fn heights<'v, N>(&self, values: &'v [N]) -> Heights<'v, N> {
        Heights {
            values,
            size: self.scene.size,
        }
    }

    /// Calls `splat` with each pixel that a path arrives in, its share of the path and the share's factor.
    fn splat<N: Number>(&self, values: &[N], path: &Path<'_>, mut splat: impl FnMut(usize, N)) {
        let slab = &self.scene.slab;
        let entry = entry(slab, path.place);
        let through = exit(slab, self.heights(values), entry);
        let arrived = match &through {
            Some(exit) => arrive(slab, &self.scene.screen, &path.film, exit).map(|found| (found.film, found.weight)),
            None => pass_by(slab, &self.scene.screen, &path.film, entry),
        };
        let Some(([x, y], weight)) = arrived else { return };
        let across: Taps<_, MAX_TAPS> = taps(path.film.filter, x);
        let down: Taps<_, MAX_TAPS> = taps(path.film.filter, y);
        for r in 0..down.count {
            for c in 0..across.count {
                let at = [across.first + c as i32, down.first + r as i32];
                if let Some(pixel) = pixel_of(path, at) {
                    splat(pixel, weight * across.share[c] * down.share[r]);
                }
            }
        }
    }

    /// The picture in any number type, all views in order.
    pub fn image<N: Number + Send + Sync>(&self, values: &[N]) -> Vec<[N; 3]> {
        let black = || vec![[N::lift(0.0); 3]; self.pixels() as usize];
        let parts = self.in_rows(|paths| {
            let mut image = black();
            for path in paths {
                self.splat(values, &path, |pixel, share| {
                    for c in 0..3 {
                        image[pixel][c] += share * N::lift(path.color[c] as f32);
                    }
                });
            }
            image
        });
        parts.into_iter().fold(black(), |mut sum, part| {
            for (sum, part) in sum.iter_mut().zip(part) {
                for c in 0..3 {
                    sum[c] += part[c];
                }
            }
            sum
        })
    }

    /// The weight of each pixel in the objective.
    fn weights(&self, seed: u32) -> Vec<[f64; 3]> {
        let scale = 1.0 / (3.0 * f64::from(self.pixels()));
        let of = |index| [0, 1, 2].each(|c| f64::from(linear_weight(seed, index, c)) * scale);
        (0..self.pixels()).map(of).collect()
    }

    /// The objective with these weights along some paths.
    fn sum<'p>(&self, values: &[f64], weights: &[[f64; 3]], paths: impl Iterator<Item = Path<'p>>) -> f64 {
        let mut sum = 0.0;
        for path in paths {
            self.splat(values, &path, |pixel, share| {
                sum += share * (0..3).map(|c| weights[pixel][c] * path.color[c]).sum::<f64>();
            });
        }
        sum
    }

    /// The objective and its gradient by the heights.
    pub fn adjoint(&self, seed: u32) -> (f64, Vec<f64>) {
        let weights = self.weights(seed);
        let parts = self.in_rows(|paths| {
            let mut gradient = vec![0f64; self.values.len()];
            let mut loss = 0.0;
            for path in paths {
                loss += self.sum(&self.values, &weights, std::iter::once(path));
                self.path_adjoint(&path, &weights, &mut gradient);
            }
            (loss, gradient)
        });
        let zero = (0.0, vec![0f64; self.values.len()]);
        parts.into_iter().fold(zero, |(loss, mut sum), (more, part)| {
            sum.iter_mut().zip(part).for_each(|(sum, g)| *sum += g);
            (loss + more, sum)
        })
    }

    fn path_adjoint(&self, path: &Path<'_>, weights: &[[f64; 3]], gradient: &mut [f64]) {
        let (slab, screen) = (&self.scene.slab, &self.scene.screen);
        let Some(exit) = exit(slab, self.heights(&self.values), entry(slab, path.place)) else {
            return;
        };
        let Some(arrival) = arrive(slab, screen, &path.film, &exit) else {
            return;
        };
        let [x, y] = arrival.film;
        let across: Taps<_, MAX_TAPS> = taps(path.film.filter, x);
        let down: Taps<_, MAX_TAPS> = taps(path.film.filter, y);
        let (mut by_film, mut by_weight) = ([0.0; 2], 0.0);
        for r in 0..down.count {
            for c in 0..across.count {
                let Some(pixel) = pixel_of(path, [across.first + c as i32, down.first + r as i32]) else {
                    continue;
                };
                let wanted = (0..3).map(|k| weights[pixel][k] * path.color[k]).sum::<f64>();
                by_weight += wanted * across.share[c] * down.share[r];
                by_film[0] += wanted * arrival.weight * across.slope[c] * down.share[r];
                by_film[1] += wanted * arrival.weight * across.share[c] * down.slope[r];
            }
        }
        let by = arrival_adjoint(slab, screen, &path.film, (&exit, &arrival), (by_film, by_weight));
        let width = self.scene.size[0];
        height_adjoint(&exit.stencil, by, |column, row, g| gradient[row * width + column] += g);
    }

    /// The paths that leave the slab near a texel: all that depend on it.
    fn near(&self, flat: usize) -> Vec<Path<'a>> {
        let [width, _] = self.scene.size;
        let texel = [flat % width, flat / width];
        let slab = &self.scene.slab;
        let found = self.in_rows(|paths| {
            let is_near = |path: &Path<'_>| {
                let Some(exit) = exit(slab, self.heights(&self.values), entry(slab, path.place)) else {
                    return false;
                };
                let middle = [exit.stencil.columns[1], exit.stencil.rows[1]];
                (0..2).all(|a| texel[a].abs_diff(middle[a]) <= 2)
            };
            paths.filter(is_near).collect::<Vec<_>>()
        });
        found.into_iter().flatten().collect()
    }
}

/// The index of a pixel of a path's film in the batch; None beside the film.
fn pixel_of(path: &Path<'_>, [x, y]: [i32; 2]) -> Option<usize> {
    let (width, height) = (path.film.width as i32, path.film.height as i32);
    let inside = (0..width).contains(&x) && (0..height).contains(&y);
    inside.then(|| path.first as usize + (y * width + x) as usize)
}

/// Checks the f64 walk, and `device` if given.
///
/// # Errors
/// A parameter other than the heights, an index outside of it, or the device fails.
pub fn check(setup: &Setup, scene: &LightScene, device: Option<&mut dyn Device>, options: &Options) -> Result<Outcome> {
    let described = &setup.params.parameters[scene.heights];
    ensure!(
        setup.checked == [scene.heights],
        "--parameter: only `{}` has a derivative by light tracing; name it alone",
        described.path
    );
    let objective = LightObjective::new(setup, scene);
    let seeds: Vec<u32> = options.weightings.iter().map(|w| w.seed(options.seed)).collect();
    let adjoints: Vec<(f64, Vec<f64>)> = seeds.iter().map(|&seed| objective.adjoint(seed)).collect();
    let info = device.as_ref().map(|d| d.info().clone());
    let found = match device {
        Some(device) => device_adjoints(setup, device, &seeds)?,
        None => Vec::new(),
    };
    let entries = choose(setup, &adjoints[0].1, described, options)?;
    let step = options.step.unwrap_or(STEP * f64::from(scene.slab.thickness));
    let weights: Vec<_> = seeds.iter().map(|&seed| objective.weights(seed)).collect();
    let differences: Vec<Difference> = entries
        .iter()
        .map(|&(flat, _)| difference(&objective, flat, step, &weights))
        .collect();
    let weighted = options.weightings.iter().enumerate();
    let parameters: Vec<ParameterReport> = weighted
        .map(|(w, &weighting)| {
            ParameterReport::judge(
                described,
                (w, weighting),
                &adjoints[w].1,
                found.get(w).map(|d| &d.gradients[0][..]),
                entries
                    .iter()
                    .zip(&differences)
                    .map(|(&(flat, place), d)| (flat, place, d)),
                options,
            )
        })
        .collect();
    let losses = options.weightings.iter().enumerate().map(|(w, &weighting)| LossReport {
        weighting,
        value: adjoints[w].0,
        device: found.get(w).map(|d| d.loss),
    });
    let report = Report {
        device: info,
        skipped: None,
        pixels: setup.batch.pixels(),
        rays: u64::from(setup.batch.pixels()) * u64::from(setup.spp),
        spp: setup.spp,
        seed: options.seed,
        losses: losses.collect(),
        passed: parameters.iter().all(|p| p.passed),
        parameters,
        tracking: Vec::new(),
        fresh: Vec::new(),
    };
    Ok(Outcome {
        report,
        gradients: adjoints.into_iter().map(|(_, gradient)| vec![gradient]).collect(),
    })
}

/// Entries to check: those asked for, or random ones that light passes.
fn choose(
    setup: &Setup,
    gradient: &[f64],
    described: &crate::params::Parameter,
    options: &Options,
) -> Result<Vec<(usize, Place)>> {
    if !options.indices.is_empty() {
        let all = options
            .indices
            .iter()
            .map(|&index| Ok((asked(described, index)?, Place::Asked)));
        return all.collect();
    }
    let met: Vec<usize> = (0..gradient.len()).filter(|&flat| gradient[flat] != 0.0).collect();
    ensure!(
        !met.is_empty(),
        "no light that passes `{}` reaches a film",
        described.path
    );
    let mut random = Pcg64::new(u128::from(options.seed), 0x6c69_6768 + setup.spp as u128);
    let mut chosen: Vec<(usize, Place)> = Vec::new();
    for i in 0..options.entries.min(met.len()) {
        let at = match met.len() <= options.entries {
            true => i,
            false => random.next_u64() as usize % met.len(),
        };
        if chosen.iter().all(|(flat, _)| *flat != met[at]) {
            chosen.push((met[at], Place::Drawn));
        }
    }
    Ok(chosen)
}

/// The derivatives of the objectives with these weights by an entry: central differences along the paths that may depend on it,
/// extrapolated to step zero (Richardson1911).
fn difference(objective: &LightObjective<'_>, flat: usize, step: f64, weights: &[Vec<[f64; 3]>]) -> Difference {
    let paths = objective.near(flat);
    let moved = |h: f64| {
        let mut moved = objective.values.clone();
        moved[flat] += h;
        moved
    };
    // Path by path, so that rounding is that of a path's share and not of the sum.
    let at = |level: usize| {
        let h = step / f64::from(1 << level);
        let (above, below) = (moved(h), moved(-h));
        let of = |weights: &Vec<[f64; 3]>| {
            let along = |path: &Path<'_>| {
                let sum = |values: &[f64]| objective.sum(values, weights, std::iter::once(*path));
                sum(&above) - sum(&below)
            };
            paths.iter().map(along).sum::<f64>() / (2.0 * h)
        };
        weights.iter().map(of).collect::<Vec<f64>>()
    };
    let ladder: Vec<Vec<f64>> = (0..LEVELS).map(at).collect();
    let extrapolated = |i: usize| extrapolate([0, 1, 2].each(|level: usize| ladder[level][i]));
    Difference {
        fixed: (0..weights.len()).map(extrapolated).collect(),
        sides: None,
        blurred: false,
    }
}
