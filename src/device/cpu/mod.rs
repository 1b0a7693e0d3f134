//! The CPU device: all cores, no driver. Work is cut by fixed sizes and summed in fixed orders, so that the number of
//! threads changes no bit.

mod chunk;
mod field;
mod loss;
mod memory;
mod pages;
mod paths;
mod shared;
mod step;
mod update;
mod vector;

use super::{ArrayKind, Batch, Device, DeviceInfo, Keys, LossValue, ReplayStats, Result, Step, Term, parameter_bytes};
use crate::kernels::loss::Loss;
use crate::kernels::optimizer::Optimizer;
use crate::params::{ParamSet, Shape};
use crate::resident::Resident;
use crate::transport::lookup::sh::Basis;

use field::records::Replays;
use paths::passes::{self, Tables};
use paths::sums::Sums;
use step::Activity;
use vector::level::Level;

/// The part of the machine's memory that a tape may take, and the bytes where the system does not tell how much it has.
const TAPE_SHARE: u64 = 2;
const TAPE_UNKNOWN: u64 = 4 << 30;

/// All cores of the machine.
#[derive(Debug)]
pub struct Cpu {
    info: DeviceInfo,
    level: Level,
    resident: Resident,
    params: ParamSet,
    /// For each parameter its gradient; empty if it is not tuned.
    gradients: Vec<Vec<f32>>,
    /// For each parameter the optimiser's state; no arrays if it is not tuned.
    moments: Vec<Vec<Vec<f32>>>,
    /// For each parameter the blocks that a step cannot skip.
    activity: Vec<Activity>,
    occupancy: Vec<u8>,
    /// The batch of the last render, whose chunks are the order of `image` and `adjoint`.
    rendered: Batch,
    rendered_keys: Keys,
    image: Vec<[f32; 4]>,
    adjoint: Vec<[f32; 3]>,
    replays: Vec<Replays>,
    /// Of the directions of a round's rays.
    bases: Vec<Basis>,
    /// Majorants and the environment map's table, for a world.
    tables: Tables,
    sums: Sums,
    /// Bytes of the longest tape so far, and of the longest that there may be.
    tape_bytes: u64,
    tape_limit: u64,
}

impl Default for Cpu {
    fn default() -> Self {
        Self::new()
    }
}

impl Cpu {
    /// A device without a scene.
    pub fn new() -> Self {
        let level = Level::detect();
        let detail = format!("{} threads, {}", rayon::current_num_threads(), level.name());
        let resident = Resident::empty();
        Self {
            info: DeviceInfo {
                kind: "cpu",
                name: std::env::consts::ARCH.to_string(),
                detail,
            },
            level,
            resident,
            params: ParamSet::default(),
            gradients: Vec::new(),
            moments: Vec::new(),
            activity: Vec::new(),
            occupancy: Vec::new(),
            rendered: Batch::default(),
            rendered_keys: Keys {
                objective: [0; 4],
                pass: [0; 4],
            },
            image: Vec::new(),
            adjoint: Vec::new(),
            replays: Vec::new(),
            bases: Vec::new(),
            tables: Tables::default(),
            sums: Sums::default(),
            tape_bytes: 0,
            tape_limit: memory::physical_bytes().map_or(TAPE_UNKNOWN, |bytes| bytes / TAPE_SHARE),
        }
    }

    /// Lets tapes of conventional differentiation take at most so many bytes, instead of half of the machine's memory.
    pub fn limit_tape(&mut self, bytes: u64) {
        self.tape_limit = bytes;
    }

    /// Name of the vector level in use.
    pub fn vector_level(&self) -> &'static str {
        self.level.name()
    }
}

impl Device for Cpu {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn arithmetic(&self) -> String {
        format!("cpu {}", self.level.name())
    }

    fn admit(&self, shapes: &[(Shape, bool)], optimizer: Optimizer) -> Result<()> {
        memory::admit_bytes(parameter_bytes(shapes.iter().copied(), optimizer))
    }

    fn load(&mut self, resident: Resident, params: ParamSet, optimizer: Optimizer) -> Result<()> {
        let tuned = |p: &crate::params::Parameter| if p.tuning.is_some() { p.shape.len() } else { 0 };
        self.gradients = params.parameters.iter().map(|p| pages::zeros(tuned(p))).collect();
        self.moments = params
            .parameters
            .iter()
            .map(|p| match p.tuning {
                Some(_) => (0..optimizer.moments()).map(|_| pages::zeros(p.shape.len())).collect(),
                None => Vec::new(),
            })
            .collect();
        self.activity = params
            .parameters
            .iter()
            .map(|p| Activity::new(tuned(p), false))
            .collect();
        self.resident = resident;
        self.params = params;
        for parameter in &mut self.params.parameters {
            parameter.values = pages::settle(std::mem::take(&mut parameter.values));
        }
        for (activity, parameter) in self.activity.iter_mut().zip(&self.params.parameters) {
            if let Some(tuning) = parameter.tuning {
                activity.wake_outside(&parameter.values, tuning.bounds);
            }
        }
        self.image = Vec::new();
        self.adjoint = Vec::new();
        self.tape_bytes = 0;
        self.rendered = Batch::default();
        self.rebuild()
    }

    fn resident(&self) -> &Resident {
        &self.resident
    }

    fn params(&self) -> &ParamSet {
        &self.params
    }

    fn render(&mut self, batch: &Batch, keys: Keys, spp: u32) -> Result<()> {
        match self.resident.world.take() {
            Some(world) => {
                self.render_paths(&world, batch, keys, spp);
                self.resident.world = Some(world);
            }
            None => self.render_field(batch, keys, spp),
        }
        self.rendered = batch.clone();
        self.rendered_keys = keys;
        Ok(())
    }

    fn image(&mut self) -> Result<Vec<[f32; 4]>> {
        Ok(self.image_in_order())
    }

    fn loss(&mut self, batch: &Batch, keys: Keys, loss: Loss) -> Result<LossValue> {
        debug_assert_eq!(*batch, self.rendered, "the loss compares the batch that was rendered");
        Ok(self.compare(batch, keys, loss))
    }

    fn backpropagate(&mut self, batch: &Batch, keys: Keys, spp: u32) -> Result<ReplayStats> {
        debug_assert_eq!(
            *batch, self.rendered,
            "the adjoint image belongs to the batch that was rendered"
        );
        match self.resident.world.take() {
            Some(world) => {
                let stats = self.backpropagate_paths(&world, batch, keys, spp);
                self.resident.world = Some(world);
                stats
            }
            None => Ok(self.backpropagate_field(batch, keys, spp)),
        }
    }

    fn render_and_backpropagate(&mut self, batch: &Batch, keys: Keys, spp: u32) -> Result<ReplayStats> {
        let stats = match self.resident.world.take() {
            Some(world) => {
                let stats = self.render_and_backpropagate_paths(&world, batch, keys, spp);
                self.resident.world = Some(world);
                stats?
            }
            None => return Err(passes::unshared()),
        };
        self.rendered = batch.clone();
        self.rendered_keys = keys;
        Ok(stats)
    }

    fn regularise(&mut self, terms: &[Term]) -> Result<f64> {
        Ok(terms.iter().map(|term| self.add_term(term)).sum())
    }

    fn step(&mut self, step: &Step) -> Result<Vec<f64>> {
        self.step_all(step)
    }

    fn rebuild(&mut self) -> Result<()> {
        match &self.resident.world {
            Some(world) => self.tables = Tables::new(&self.resident.scene, world, &self.params),
            None => self.rebuild_occupancy(),
        }
        Ok(())
    }

    fn resample(&mut self, sizes: &[(usize, [usize; 3])], keep_moments: bool) -> Result<()> {
        for &(index, size) in sizes {
            self.resample_one(index, size, keep_moments);
        }
        let shapes: Vec<_> = self.params.parameters.iter().map(|p| p.shape).collect();
        self.resident.fit(&shapes);
        self.rebuild()
    }

    fn clear_gradients(&mut self) -> Result<()> {
        self.gradients.iter_mut().for_each(|g| g.fill(0.0));
        Ok(())
    }

    fn read(&mut self, parameter: usize, what: ArrayKind) -> Result<Vec<f32>> {
        Ok(match what {
            ArrayKind::Values => self.params.parameters[parameter].values.clone(),
            ArrayKind::Gradient => self.gradients[parameter].clone(),
            ArrayKind::Moment(i) => self.moments[parameter][i].clone(),
        })
    }

    fn write(&mut self, parameter: usize, what: ArrayKind, values: &[f32]) -> Result<()> {
        let array = match what {
            ArrayKind::Values => {
                let written = &mut self.params.parameters[parameter];
                if let Some(tuning) = written.tuning {
                    self.activity[parameter].wake_outside(values, tuning.bounds);
                }
                &mut written.values
            }
            ArrayKind::Gradient => {
                self.activity[parameter].touch_all();
                &mut self.gradients[parameter]
            }
            ArrayKind::Moment(i) => {
                self.activity[parameter].wake(values);
                &mut self.moments[parameter][i]
            }
        };
        array.copy_from_slice(values);
        let rules = self.resident.world.is_some() || self.resident.slots.sigma_t == Some(parameter);
        if what == ArrayKind::Values && rules {
            self.rebuild()?;
        }
        Ok(())
    }

    fn memory(&self) -> u64 {
        let floats = self.params.parameters.iter().map(|p| p.values.len()).sum::<usize>()
            + self.gradients.iter().map(Vec::len).sum::<usize>()
            + self.moments.iter().flatten().map(Vec::len).sum::<usize>()
            + 4 * self.image.len()
            + 3 * self.adjoint.len();
        let replays: usize = self.replays.iter().map(Replays::bytes).sum();
        (4 * floats
            + self.occupancy.len()
            + self.resident.references.bytes()
            + replays
            + size_of_val(&self.bases[..])
            + self.tables.bytes()
            + self.sums.bytes()) as u64
            + self.tape_bytes
    }
}
