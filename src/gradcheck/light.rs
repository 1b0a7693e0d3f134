//! Gradient checks of light tracing: the derivative by a slab's heights or a cube's index of refraction in f64 against
//! finite differences with the same paths, and a device against the derivative in f64. Frozen are only the pixels that a
//! path is splatted onto: within these, filters are smooth.

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
use crate::resident::light::{Beam, Film, LightScene, MAX_TAPS, ScreenRecord};
use crate::resident::optics::OpticRecord;
use crate::transport::light::cube::{CubeOptic, CubeTrace};
use crate::transport::light::heights::Heights;
use crate::transport::light::index::{Index, border, pad};
use crate::transport::light::optic::{Arrival, Optic};
use crate::transport::light::slab::{SlabOptic, SlabTrace};
use crate::transport::light::splat::{Taps, support, taps_of};
use crate::transport::number::Number;
use crate::transport::rays::pixel::linear_weight;
use crate::transport::rays::random::{Counter, random_uniform};
use crate::transport::rays::sampler::WALK;

/// The largest step of the differences, in units of a slab's thickness, or of ten times the index outside of a cube,
/// which is one. It is small so that landing places move by small parts of a pixel's width.
const STEP: f64 = 1e-7;

/// Number of steps, each half the one before.
const LEVELS: usize = 3;

/// Rows of the light that a thread takes at a time.
const ROWS: u32 = 8;

/// The objective: a weighted mean of the pixels of all films.
#[derive(Debug)]
pub struct LightObjective<'a> {
    setup: &'a Setup,
    scene: &'a LightScene,
    /// The heights of the scene's slab, or the coefficients of its cube's index of refraction.
    pub values: Vec<f64>,
}

/// The optic that bends light: a slab or a cube.
#[derive(Debug, Clone, Copy)]
enum Either<'a, N> {
    Slab(SlabOptic<'a, N>),
    Cube(CubeOptic<'a, Index<'a, N>>),
}

/// A path through a slab or a cube, as its adjoint needs it.
#[derive(Debug, Clone, Copy)]
#[allow(clippy::large_enum_variant, reason = "one is kept for as long as a path is followed")]
enum Trace<N> {
    Slab(SlabTrace<N>),
    Cube(CubeTrace<N>),
}

impl<N: Number + Sync> Either<'_, N> {
    fn follow(&self, screen: &ScreenRecord, film: &Film<'_>, place: [f32; 2]) -> Option<Arrival<N, Trace<N>>> {
        fn as_either<N, T, U>(arrival: Arrival<N, T>, of: impl Fn(T) -> U) -> Arrival<N, U> {
            Arrival {
                film: arrival.film,
                weight: arrival.weight,
                trace: arrival.trace.map(of),
            }
        }
        match self {
            Self::Slab(optic) => Some(as_either(optic.follow(screen, film, place)?, Trace::Slab)),
            Self::Cube(optic) => Some(as_either(optic.follow(screen, film, place)?, Trace::Cube)),
        }
    }

    fn send(
        &self,
        screen: &ScreenRecord,
        film: &Film<'_>,
        trace: &Trace<N>,
        by: ([N; 2], N),
        send: impl FnMut(usize, &[N]),
    ) {
        match (self, trace) {
            (Self::Slab(optic), Trace::Slab(trace)) => optic.send(screen, film, trace, by, send),
            (Self::Cube(optic), Trace::Cube(trace)) => optic.send(screen, film, trace, by, send),
            _ => unreachable!("a path goes through its own optic"),
        }
    }
}

/// A path: its light and film, its place on the light, and the colour that it begins with.
#[derive(Debug, Clone, Copy)]
struct Path<'a> {
    beam: &'a Beam,
    film: Film<'a>,
    /// Index of the film's first pixel in the batch.
    first: u32,
    place: [f32; 2],
    color: [f64; 3],
    /// The pixels that the path is splatted onto, first and number along both axes, wherever it lands; None for those
    /// around its landing place. At the end of its support a filter has a corner, which a step must not pass.
    frozen: Option<[(i32, usize); 2]>,
}

impl Path<'_> {
    /// The filter's weights, along both axes, of the pixels that a path landing at `place` is splatted onto.
    fn taps<N: Number>(&self, place: [N; 2]) -> [Taps<N, MAX_TAPS>; 2] {
        let around = self.support(place.map(|x| x.value()));
        [0, 1].map(|a| taps_of(self.film.filter, place[a], self.frozen.unwrap_or(around)[a]))
    }

    fn support(&self, place: [f64; 2]) -> [(i32, usize); 2] {
        place.map(|at| support(self.film.filter, at, MAX_TAPS))
    }
}

impl<'a> LightObjective<'a> {
    /// The objective of a scene that is traced from its light.
    pub fn new(setup: &'a Setup, scene: &'a LightScene) -> Self {
        let values = &setup.params.parameters[scene.parameter].values;
        Self {
            setup,
            scene,
            values: values.iter().map(|v| f64::from(*v)).collect(),
        }
    }

    fn pixels(&self) -> u32 {
        self.setup.batch.pixels()
    }

    /// Calls `work` with the paths of some rows of a view's light, in parallel; results are in order.
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
        let beam = scene.beam(sensor as usize);
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
            let color = beam.lamp.radiance(place[0], place[1]);
            Path {
                beam,
                film,
                first,
                place,
                frozen: None,
                color: [0, 1, 2].each(|c| f64::from(color[c]) * f64::from(film.exposure[c]) / paths),
            }
        })
    }

    /// The values in the layout in which optics look them up: those of a cube padded by a border.
    fn prepared<N: Copy>(&self, values: &[N]) -> Vec<N> {
        match self.scene.has_cube() {
            true => pad(values, self.scene.size),
            false => values.to_vec(),
        }
    }

    /// For each prepared value the entry of the parameter that it is a copy of.
    fn entries(&self) -> Vec<usize> {
        match self.scene.has_cube() {
            true => border(self.scene.size).collect(),
            false => (0..self.values.len()).collect(),
        }
    }

    fn optic<'v, N: Number + Sync>(&self, prepared: &'v [N], beam: &'v Beam) -> Either<'v, N> {
        let [width, height, _] = self.scene.size;
        match &beam.optic {
            OpticRecord::Slab(slab) => Either::Slab(SlabOptic {
                slab,
                heights: Heights {
                    values: prepared,
                    size: [width, height],
                },
            }),
            OpticRecord::Cube(cube) => Either::Cube(CubeOptic {
                cube,
                index: Index {
                    values: prepared,
                    size: self.scene.size,
                },
            }),
        }
    }

    /// Calls `splat` with each pixel that a path is splatted onto, and the share of the path's light that the pixel gets.
    fn splat<N: Number + Sync>(&self, prepared: &[N], path: &Path<'_>, mut splat: impl FnMut(usize, N)) {
        let optic = self.optic(prepared, path.beam);
        let Some(arrival) = optic.follow(&path.beam.screen, &path.film, path.place) else {
            return;
        };
        let weight = arrival.weight;
        let [across, down] = path.taps(arrival.film);
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
        let prepared = self.prepared(values);
        let black = || vec![[N::lift(0.0); 3]; self.pixels() as usize];
        let parts = self.in_rows(|paths| {
            let mut image = black();
            for path in paths {
                self.splat(&prepared, &path, |pixel, share| {
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

    /// The part of the objective that some paths add, for these prepared values and weights of pixels.
    fn sum<'p>(&self, prepared: &[f64], weights: &[[f64; 3]], paths: impl Iterator<Item = Path<'p>>) -> f64 {
        let mut sum = 0.0;
        for path in paths {
            self.splat(prepared, &path, |pixel, share| {
                sum += share * (0..3).map(|c| weights[pixel][c] * path.color[c]).sum::<f64>();
            });
        }
        sum
    }

    /// The objective and its gradient by the heights or the index.
    pub fn adjoint(&self, seed: u32) -> (f64, Vec<f64>) {
        let weights = self.weights(seed);
        let prepared = self.prepared(&self.values);
        let parts = self.in_rows(|paths| {
            let mut gradient = vec![0f64; prepared.len()];
            let mut loss = 0.0;
            for path in paths {
                loss += self.sum(&prepared, &weights, std::iter::once(path));
                self.path_adjoint(&prepared, &path, &weights, |entry, parts: &[f64]| {
                    gradient[entry..].iter_mut().zip(parts).for_each(|(sum, g)| *sum += g);
                });
            }
            (loss, gradient)
        });
        let entries = self.entries();
        let zero = (0.0, vec![0f64; self.values.len()]);
        parts.into_iter().fold(zero, |(loss, mut sum), (more, part)| {
            entries.iter().zip(part).for_each(|(entry, g)| sum[*entry] += g);
            (loss + more, sum)
        })
    }

    /// Sends the derivatives of a path's part of the objective by the prepared values.
    fn path_adjoint(&self, prepared: &[f64], path: &Path<'_>, weights: &[[f64; 3]], send: impl FnMut(usize, &[f64])) {
        let optic = self.optic(prepared, path.beam);
        let screen = &path.beam.screen;
        let Some(arrival) = optic.follow(screen, &path.film, path.place) else {
            return;
        };
        let Some(trace) = &arrival.trace else { return };
        let [across, down] = path.taps(arrival.film);
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
        optic.send(screen, &path.film, trace, (by_film, by_weight), send);
    }

    /// The paths that depend on an entry, frozen to the pixels around their present landing places.
    fn near(&self, flat: usize) -> Vec<Path<'a>> {
        let (prepared, entries) = (self.prepared(&self.values), self.entries());
        let found = self.in_rows(|paths| {
            let meets = |path: Path<'a>| {
                let optic = self.optic(&prepared, path.beam);
                let arrival = optic.follow(&path.beam.screen, &path.film, path.place)?;
                let trace = arrival.trace?;
                let mut met = false;
                let by = ([1.0; 2], 1.0);
                optic.send(&path.beam.screen, &path.film, &trace, by, |entry, parts: &[f64]| {
                    met |= entries[entry..entry + parts.len()].contains(&flat);
                });
                met.then(|| Path {
                    frozen: Some(path.support(arrival.film)),
                    ..path
                })
            };
            paths.filter_map(meets).collect::<Vec<_>>()
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
/// A parameter other than the heights or indices, an index outside of it, or the device fails.
pub fn check(setup: &Setup, scene: &LightScene, device: Option<&mut dyn Device>, options: &Options) -> Result<Outcome> {
    let described = &setup.params.parameters[scene.parameter];
    ensure!(
        setup.checked == [scene.parameter],
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
    let scale = match &scene.beam(0).optic {
        OpticRecord::Slab(slab) => f64::from(slab.thickness),
        OpticRecord::Cube(_) => 10.0,
    };
    let step = options.step.unwrap_or(STEP * scale);
    let weights: Vec<_> = seeds.iter().map(|&seed| objective.weights(seed)).collect();
    let differences: Vec<Difference> = entries
        .iter()
        .map(|&(flat, _)| difference(&objective, flat, step, &weights))
        .collect();
    // The mean of all pixels hardly depends on a cube's index, since light that is bent away from one pixel arrives at
    // another: its errors are relative to the largest derivative under any weighting. In f32 landing places are right to
    // some 1e-4 of a pixel, and filter slopes to as much, while small entries are sums of large terms of both signs.
    let beside = match scene.has_cube() {
        true => {
            let all = adjoints.iter().flat_map(|(_, gradient)| gradient);
            let largest = all.fold(0.0, |m: f64, g| m.max(g.abs()));
            [largest, 10.0 * largest]
        }
        false => [0.0; 2],
    };
    let weighted = options.weightings.iter().enumerate();
    let parameters: Vec<ParameterReport> = weighted
        .map(|(w, &weighting)| {
            ParameterReport::judge(
                described,
                (w, weighting),
                (&adjoints[w].1, beside),
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

/// Entries to check: those asked for, or random ones of nonzero gradient.
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
        objective.prepared(&moved)
    };
    // Differences are taken path by path: rounding is then relative to a path's part of the objective and not to the sum.
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
