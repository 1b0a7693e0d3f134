//! Gradient checks: path replay in f64 against finite differences of the f64 walk, and a device's gradient against
//! that of the f64 walk. Rays and random numbers are the same, sampling is frozen, and rays are not stopped early.

pub mod field;
pub mod forward;
pub mod light;
pub mod paths;
pub mod report;
pub mod splats;
pub mod write;

use anyhow::{Context, anyhow, bail};
use rayon::prelude::*;

use crate::device::{ArrayKind, Batch, Device, Keys};
use crate::kernels::loss::Loss;
use crate::kernels::optimizer::Optimizer;
use crate::params::{ParamSet, Quantity, Tuning};
use crate::resident::layout::backdrop;
use crate::resident::{Resident, Transport};
use crate::scene::{Backdrop, Scene};
use crate::transport::rays::pixel::PixelTable;
use crate::transport::rays::random::{Pass, pass_key};
use field::coverage::{Coverage, seen_by};
use field::difference::{Difference, Entry, default_step, difference};
use field::entries::{Chosen, Place, choose, coordinates};
use field::fields::Role;
use field::objective::{Adjoint, FieldObjective};
use field::views::CheckedViews;
use report::{LossReport, ParameterReport, Report, Row};

/// Rays of a batch at most: of larger ones, pixels are drawn at random. Paths have a lower limit, as they take longer.
const MOST_RAYS: u32 = 1 << 18;
const MOST_PATHS: u32 = 1 << 15;

/// Weights of the pixels in the objective.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Weighting {
    /// One for all: the mean of the images.
    Mean,
    /// A random weight in [-1, 1) for each pixel and channel.
    Random,
}

impl Weighting {
    /// The seed of [`Loss::Linear`]: 0 for weights of one, an odd number for random ones.
    pub fn seed(self, seed: u64) -> u32 {
        match self {
            Self::Mean => 0,
            Self::Random => (seed as u32).wrapping_mul(2).wrapping_add(1),
        }
    }

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Mean => "mean",
            Self::Random => "random",
        }
    }
}

/// An entry of a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Index {
    /// Its flat index in the array.
    Flat(usize),
    /// x, y, z, channel.
    Coordinates([usize; 4]),
}

/// What to check, and how strictly.
#[derive(Debug, Clone)]
pub struct Options {
    /// Paths of the parameters; empty for all that the scene optimises, or all if it optimises none.
    pub parameters: Vec<String>,
    /// Entries drawn for each parameter.
    pub entries: usize,
    /// Entries to check instead of random ones.
    pub indices: Vec<Index>,
    pub weightings: Vec<Weighting>,
    pub seed: u64,
    /// Tolerated relative error of the f64 walk against finite differences, and of the device against the f64 walk.
    pub tolerance: f64,
    pub device_tolerance: f64,
    /// Largest step of the differences, in units of the parameter; None for a default by the parameter's kind.
    pub step: Option<f64>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            parameters: Vec::new(),
            entries: 16,
            indices: Vec::new(),
            weightings: vec![Weighting::Mean, Weighting::Random],
            seed: 0,
            tolerance: 1e-6,
            device_tolerance: 1e-3,
            step: None,
        }
    }
}

/// A prepared scene, as the f64 walk (the oracle) and the device receive it.
#[derive(Debug, Clone)]
pub struct Setup {
    pub resident: Resident,
    pub params: ParamSet,
    pub batch: Batch,
    pub keys: Keys,
    pub spp: u32,
    /// Indices of the parameters to check.
    pub checked: Vec<usize>,
}

impl Setup {
    /// Takes a scene's training views and the parameters that `options` asks for.
    ///
    /// # Errors
    /// A path that does not exist, no view, no parameter, or a file that cannot be read.
    pub fn new(scene: &Scene, options: &Options) -> anyhow::Result<Self> {
        let (mut resident, mut params) = Resident::new(scene)?;
        resident.scene.stop = 0.0;
        let most = match &mut resident.transport {
            Transport::Field(_) => MOST_RAYS,
            Transport::Splats(_) | Transport::Light(_) => u32::MAX,
            Transport::Paths(paths) => {
                paths.vary_all();
                MOST_PATHS
            }
        };
        for (record, sensor) in resident.sensors.iter_mut().zip(&scene.sensors) {
            if matches!(&sensor.reference, Some(r) if r.backdrop == Backdrop::Random) {
                record.backdrop = backdrop::RANDOM;
            }
        }
        let bent = scene.optic.as_ref().map(|optic| optic.array().path.as_str());
        let is_fixed = |path: &str| bent.is_some_and(|bent| path != bent);
        let turning: Vec<&str> = scene
            .visit()
            .iter()
            .filter(|visited| (visited.mirrors && !scene.integrator.attached) || is_fixed(&visited.array.path))
            .map(|visited| visited.array.path.as_str())
            .collect();
        let still = still(scene, &params, &options.parameters)?;
        let checked = checked_parameters(&params, &options.parameters, &[turning, still].concat())?;
        for (i, parameter) in params.parameters.iter_mut().enumerate() {
            parameter.tuning = checked.contains(&i).then_some(Tuning {
                learning_rate: 0.0,
                bounds: [f32::NEG_INFINITY, f32::INFINITY],
                smoothing: 0.0,
            });
        }
        let views: Vec<u32> = (0..scene.sensors.len() as u32)
            .filter(|&i| !scene.sensors[i as usize].held_out)
            .collect();
        if views.is_empty() {
            bail!(
                "{}: there is no view to look from; add a sensor that is not held out",
                scene.path.display()
            );
        }
        let table = PixelTable::new(&resident.sensors, &views).with_context(|| {
            format!(
                "{}: the views have more than 2³² pixels; make their films smaller",
                scene.path.display()
            )
        })?;
        let spp = scene.optimize.as_ref().map_or(1, |o| o.spp_grad).clamp(1, most);
        let drawn = (table.len() > most / spp).then_some((most / spp).max(1));
        let keys = Keys {
            objective: pass_key(options.seed, 0, Pass::Objective),
            pass: pass_key(options.seed, 0, Pass::Adjoint),
        };
        Ok(Self {
            resident,
            params,
            batch: Batch { table, drawn },
            keys,
            spp,
            checked,
        })
    }

    /// The objective of a radiance field.
    pub fn objective(&self) -> FieldObjective {
        FieldObjective::new(&self.resident, &self.params, &self.batch, self.keys, self.spp)
    }
}

/// Paths of the textures of heights that displace meshes and are not optimised: there are no derivatives by these. An
/// error if `wanted` names one.
fn still<'a>(scene: &'a Scene, params: &ParamSet, wanted: &[String]) -> anyhow::Result<Vec<&'a str>> {
    let heights = scene.visit().into_iter();
    let heights =
        heights.filter(|visited| visited.quantity == Quantity::Displacement && visited.array.tuning.is_none());
    let still: Vec<&str> = heights.map(|visited| visited.array.path.as_str()).collect();
    let is_still = |index: usize| still.contains(&params.parameters[index].path.as_str());
    match wanted.iter().find(|path| params.named(path).is_some_and(is_still)) {
        Some(path) => bail!(
            "--parameter: `{path}` moves vertices, which have derivatives where the block `optimize` names them; name it there"
        ),
        None => Ok(still),
    }
}

/// Indices of the parameters at `paths`, or of the tuned ones, or of all but those in `turning`, whose derivatives do not
/// exist. An error if `paths` names one of `turning`.
fn checked_parameters(params: &ParamSet, paths: &[String], turning: &[&str]) -> anyhow::Result<Vec<usize>> {
    let all = &params.parameters;
    let turns = |path: &&String| {
        params
            .named(path)
            .is_some_and(|i| turning.contains(&all[i].path.as_str()))
    };
    if let Some(path) = paths.iter().find(turns) {
        bail!(
            "--parameter: there is no derivative by `{path}`: another normal mirrors or bends light elsewhere, which the \
             integrator `prb_attached` follows, and light tracing follows heights alone; name another parameter"
        );
    }
    if all.is_empty() {
        bail!("the scene has no parameters; add a radiance field, a medium, a surface or an emitter");
    }
    if paths.is_empty() {
        let tuned: Vec<usize> = (0..all.len()).filter(|&i| all[i].tuning.is_some()).collect();
        return Ok(if tuned.is_empty() {
            let known = |i: &usize| !turning.contains(&all[*i].path.as_str());
            (0..all.len()).filter(known).collect()
        } else {
            tuned
        });
    }
    paths
        .iter()
        .map(|path| params.asked(path).map_err(|what| anyhow!("--parameter: {what}")))
        .collect()
}

/// Entries of one parameter, and their derivatives by finite differences.
#[derive(Debug, Clone)]
pub struct Differences {
    pub parameter: usize,
    pub role: Role,
    pub entries: Vec<(Chosen, Difference)>,
}

/// Chooses entries of every checked parameter and differences them, for all weightings at once.
///
/// # Errors
/// An index outside its parameter.
pub fn differences(setup: &Setup, objective: &FieldObjective, options: &Options) -> anyhow::Result<Vec<Differences>> {
    let coverage = Coverage::new(objective);
    let seeds: Vec<u32> = options.weightings.iter().map(|w| w.seed(options.seed)).collect();
    let mut all = Vec::new();
    for &parameter in &setup.checked {
        let Some(role) = Role::of(&setup.resident, parameter) else {
            continue;
        };
        let described = &setup.params.parameters[parameter];
        let chosen = if options.indices.is_empty() {
            choose(
                objective,
                &coverage,
                (role, described.shape, described.kind),
                options.entries,
                options.seed,
            )
        } else {
            let asked = options.indices.iter().map(|&index| {
                let flat = asked(described, index)?;
                let (texel, channel) = (flat / described.shape.channels, flat % described.shape.channels);
                let entry = Entry {
                    role,
                    texel: texel as u32,
                    channel: channel as u32,
                };
                Ok(Chosen {
                    entry,
                    place: Place::Asked,
                })
            });
            asked.collect::<anyhow::Result<_>>()?
        };
        let mut texels: Vec<u32> = chosen.iter().map(|c| c.entry.texel).collect();
        texels.sort_unstable();
        texels.dedup();
        let rays = seen_by(objective, role, &texels);
        let step = options.step.unwrap_or_else(|| default_step(&objective.scene, role));
        let entries = chosen
            .into_par_iter()
            .map(|chosen| {
                let slot = texels
                    .binary_search(&chosen.entry.texel)
                    .expect("every chosen texel is listed");
                (chosen, difference(objective, chosen.entry, &rays[slot], step, &seeds))
            })
            .collect();
        all.push(Differences {
            parameter,
            role,
            entries,
        });
    }
    Ok(all)
}

/// The flat index of an entry in its parameter's array.
fn asked(parameter: &crate::params::Parameter, index: Index) -> anyhow::Result<usize> {
    let shape = parameter.shape;
    let [nx, ny, nz] = shape.size;
    match index {
        Index::Flat(flat) if flat < shape.len() => Ok(flat),
        Index::Coordinates([x, y, z, c]) if x < nx && y < ny && z < nz && c < shape.channels => {
            Ok(((z * ny + y) * nx + x) * shape.channels + c)
        }
        Index::Coordinates([x, y, z, c]) => bail!(
            "{}: there is no entry {x},{y},{z},{c}, expected less than {nx},{ny},{nz},{}",
            parameter.path,
            shape.channels
        ),
        Index::Flat(flat) => bail!(
            "{}: there is no entry {flat}, expected one from 0 to {}",
            parameter.path,
            shape.len() - 1
        ),
    }
}

/// A device's loss and gradients under one weighting.
#[derive(Debug, Clone, PartialEq)]
pub struct DeviceAdjoint {
    pub loss: f64,
    /// A gradient for each of [`Setup::checked`].
    pub gradients: Vec<Vec<f32>>,
}

/// Computes on a device the gradients that the oracle computes.
///
/// # Errors
/// The device fails.
pub fn device_adjoints(
    setup: &Setup,
    device: &mut dyn Device,
    seeds: &[u32],
) -> crate::device::Result<Vec<DeviceAdjoint>> {
    let Setup { batch, keys, spp, .. } = setup;
    device.load(
        setup.resident.clone(),
        setup.params.clone(),
        Optimizer::Sgd { momentum: 0.0 },
    )?;
    seeds
        .iter()
        .map(|&seed| {
            device.clear_gradients()?;
            device.render(batch, *keys, *spp)?;
            let loss = device.loss(batch, *keys, Loss::Linear { seed })?.loss;
            device.backpropagate(batch, *keys, *spp)?;
            let gradients = setup.checked.iter().map(|&p| device.read(p, ArrayKind::Gradient));
            Ok(DeviceAdjoint {
                loss,
                gradients: gradients.collect::<crate::device::Result<_>>()?,
            })
        })
        .collect()
}

/// All results of a check.
#[derive(Debug)]
pub struct Outcome {
    pub report: Report,
    /// For each weighting the f64 gradients of [`Setup::checked`]; empty for a parameter that the walk does not read.
    pub gradients: Vec<Vec<Vec<f64>>>,
}

/// Checks the f64 walk, and `device` if given.
///
/// # Errors
/// An index outside its parameter, or the device fails.
pub fn check(setup: &Setup, device: Option<&mut dyn Device>, options: &Options) -> anyhow::Result<Outcome> {
    match &setup.resident.transport {
        Transport::Field(_) => check_field(setup, device, options),
        Transport::Splats(scene) => splats::check(setup, scene, device, options),
        Transport::Light(scene) => light::check(setup, scene, device, options),
        Transport::Paths(scene) => paths::check(setup, scene, device, options),
    }
}

fn check_field(setup: &Setup, device: Option<&mut dyn Device>, options: &Options) -> anyhow::Result<Outcome> {
    let objective = setup.objective();
    let seeds: Vec<u32> = options.weightings.iter().map(|w| w.seed(options.seed)).collect();
    let adjoints: Vec<Adjoint> = seeds.par_iter().map(|&seed| objective.adjoint(seed)).collect();
    let differences = differences(setup, &objective, options)?;
    let (info, found) = match device {
        None => (None, Vec::new()),
        Some(device) => (Some(device.info().clone()), device_adjoints(setup, device, &seeds)?),
    };
    let views = CheckedViews::all(setup, &objective, options, &seeds);
    let mut parameters = Vec::new();
    let mut losses = Vec::new();
    for (w, &weighting) in options.weightings.iter().enumerate() {
        let on_device = found.get(w);
        losses.push(LossReport {
            weighting,
            value: adjoints[w].loss,
            device: on_device.map(|d| d.loss),
        });
        for checked in &differences {
            let device = on_device.map(|d| &d.gradients[place_among(setup, checked.parameter)][..]);
            parameters.push(compare(setup, checked, (w, weighting), &adjoints[w], device, options));
        }
        for checked in &views {
            let device = on_device.map(|d| &d.gradients[place_among(setup, checked.parameter)][..]);
            parameters.push(checked.compare(setup, (w, weighting), device, options));
        }
    }
    let report = Report {
        device: info,
        skipped: None,
        pixels: objective.pixels,
        rays: objective.casts.len() as u64,
        spp: setup.spp,
        seed: options.seed,
        losses,
        passed: parameters.iter().all(|p| p.passed),
        parameters,
        tracking: Vec::new(),
        fresh: Vec::new(),
    };
    let gradients = adjoints.iter().enumerate().map(|(w, adjoint)| {
        let of = |&parameter: &usize| match Role::of(&setup.resident, parameter) {
            Some(role) => adjoint.gradient.of(role).to_vec(),
            None => {
                let of_views = views.iter().find(|checked| checked.parameter == parameter);
                of_views.map_or_else(Vec::new, |checked| checked.gradients[w].clone())
            }
        };
        setup.checked.iter().map(of).collect()
    });
    Ok(Outcome {
        report,
        gradients: gradients.collect(),
    })
}

/// The index of a parameter in [`Setup::checked`].
fn place_among(setup: &Setup, parameter: usize) -> usize {
    let place = setup.checked.iter().position(|&checked| checked == parameter);
    place.expect("only what is checked is compared")
}

/// Judges the gradient of one parameter of a field under the `w`-th weighting.
pub fn compare(
    setup: &Setup,
    checked: &Differences,
    (w, weighting): (usize, Weighting),
    adjoint: &Adjoint,
    device: Option<&[f32]>,
    options: &Options,
) -> ParameterReport {
    let parameter = &setup.params.parameters[checked.parameter];
    let gradient = adjoint.gradient.of(checked.role);
    let largest = gradient.iter().fold(0.0, |m: f64, g| m.max(g.abs()));
    let rows: Vec<Row> = checked
        .entries
        .iter()
        .map(|(chosen, difference)| {
            let flat = chosen.entry.texel as usize * parameter.shape.channels + chosen.entry.channel as usize;
            Row::judge(
                coordinates(parameter.shape, chosen.entry),
                chosen.place,
                gradient[flat],
                (difference, w),
                device.map(|d| f64::from(d[flat])),
                largest,
                options,
            )
        })
        .collect();
    ParameterReport {
        path: parameter.path.clone(),
        weighting,
        largest,
        device_worst: device.map(|device| report::worst_error(device, gradient, largest)),
        passed: !rows.is_empty() && rows.iter().all(Row::passed),
        advice: None,
        rows,
    }
}
