//! The CPU device: all cores, no driver. Work is cut by fixed sizes and summed in fixed orders, so that the number of
//! threads changes no bit. Ranks of a job take the chunks that they own; their results are put together in the order of the
//! chunks, or summed in whole numbers, so that the number of ranks changes no bit either.

mod chunk;
mod field;
mod frame;
mod holding;
mod light;
mod memory;
mod pages;
mod passes;
mod paths;
mod planes;
mod rounds;
mod shared;
mod splats;
mod step;
mod tiles;
mod update;
mod variation;
mod vector;

use self::chunk::{CHUNK, chunks};
use self::light::{film_bytes, pass_bytes};
use self::paths::vertex_normals::entries_of;
use super::gauge::Gauge;
use super::{
    ArrayKind, Batch, Device, DeviceInfo, Keys, LossValue, Replacement, ReplayStats, Result, Step, Term, Work,
    moment_bytes, parameter_bytes, splat_bytes,
};
use crate::kernels::loss::Loss;
use crate::kernels::optimizer::Optimizer;
use crate::params::{ParamSet, Shape};
use crate::resident::layout::SensorRecord;
use crate::resident::pages::physical_bytes;
use crate::resident::{Resident, Transport, fit_background};

use field::ranks::MOST_SHARES;
use frame::Frame;
use passes::{Inputs, Pass, Passes};
use splats::pairs::Pairs;
use update::Updates;
use vector::lanes::PowersOfTwo;
use vector::level::Level;

/// A tape may take the machine's memory divided by `TAPE_SHARE`, or `TAPE_UNKNOWN` bytes where the system does not tell it.
const TAPE_SHARE: u64 = 2;
const TAPE_UNKNOWN: u64 = 4 << 30;

/// The CPU device, on all cores of the machine.
#[derive(Debug)]
pub struct Cpu {
    info: DeviceInfo,
    inputs: Inputs,
    updates: Updates,
    frame: Frame,
    passes: Passes,
}

impl Default for Cpu {
    fn default() -> Self {
        Self::new()
    }
}

impl Cpu {
    /// 2ˣ of each of these numbers, between -126 and 127, on one thread at the device's vector level: the exponential of splats,
    /// for measurements. Vectors beyond the shorter slice are left out.
    pub fn powers_of_two(&self, numbers: &[[f32; 16]], powers: &mut [[f32; 16]]) {
        self.inputs.level.run(PowersOfTwo { numbers, powers });
    }

    /// Blends splats in a tile that they cover and undoes them, on one thread at the device's vector level: the arithmetic of
    /// a pair of a pixel and a splat, for measurements. Returns the number of pairs, and the largest |T − 1| of a transmittance T
    /// after the undoing.
    pub fn blend_pairs(&self, times: usize) -> (u64, f32) {
        let pairs = Pairs::new();
        let mut most = 0f32;
        for _ in 0..times {
            let [off, sum] = self.inputs.level.run(std::hint::black_box(&pairs));
            most = most.max(off);
            std::hint::black_box(sum);
        }
        ((times * Pairs::COUNT) as u64, most)
    }

    /// A device without a scene, with the vector level that the environment names or else the processor's widest.
    ///
    /// # Errors
    /// The processor has not got that level.
    pub fn open() -> Result<Self> {
        let level = Level::choose().map_err(super::DeviceError::Unavailable)?;
        Ok(Self::with_level(level))
    }

    /// A device without a scene.
    pub fn new() -> Self {
        Self::with_level(Level::detect())
    }

    fn with_level(level: Level) -> Self {
        let threads = match rayon::current_num_threads() {
            1 => "1 thread".into(),
            threads => format!("{threads} threads"),
        };
        let detail = format!("{threads}, {}", level.name());
        let tape_limit = physical_bytes().map_or(TAPE_UNKNOWN, |bytes| bytes / TAPE_SHARE);
        let (inputs, transport) = Inputs::new(
            level,
            tape_limit,
            Gauge::default(),
            Resident::empty(),
            ParamSet::default(),
        );
        Self {
            info: DeviceInfo {
                kind: "cpu",
                name: std::env::consts::ARCH.to_string(),
                detail,
            },
            inputs,
            updates: Updates::default(),
            frame: Frame::default(),
            passes: Passes::new(transport),
        }
    }

    /// Lets tapes of conventional differentiation take at most so many bytes, instead of half of the machine's memory.
    pub fn limit_tape(&mut self, bytes: u64) {
        self.inputs.tape_limit = bytes;
    }

    /// Name of the vector level in use.
    pub fn vector_level(&self) -> &'static str {
        self.inputs.level.name()
    }

    /// Shares the entries of a field's new grids out to the ranks.
    fn deal_evenly(&mut self) {
        if let Passes::Field(passes) = &mut self.passes {
            passes.deal_evenly(&self.inputs, &mut self.updates);
        }
    }

    /// Rebuilds what depends on the parameters' values: all of it, or what a step may have changed.
    fn rebuild_tables(&mut self, all: bool) {
        match &mut self.passes {
            Passes::Field(passes) => {
                let Inputs { params, sensors, .. } = &mut self.inputs;
                if let Some(views) = &passes.scene.views {
                    views.place(params, sensors);
                }
                passes.rebuild(&self.inputs);
            }
            Passes::Paths(passes) => passes.rebuild(&mut self.inputs, all),
            Passes::Splats(_) | Passes::Light(_) => {}
        }
    }
}

/// Whether a pixel's loss depends on that pixel alone.
fn compares_pixels(loss: Loss) -> bool {
    loss != Loss::NormalizedL2
}

impl Device for Cpu {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn arithmetic(&self) -> String {
        format!("cpu {}", self.inputs.level.name())
    }

    fn check_fits(&self, transport: &Transport, shapes: &[(Shape, bool)], optimizer: Optimizer) -> Result<()> {
        let needed = parameter_bytes(shapes.iter().copied(), optimizer);
        let ranks = self.inputs.cluster.size() as u64;
        let others = match transport {
            Transport::Field(_) => {
                moment_bytes(shapes.iter().copied(), optimizer) / ranks * ranks.saturating_sub(MOST_SHARES)
            }
            _ => 0,
        };
        memory::check_fits(needed - others)
    }

    fn sum_bytes(&self, transport: &Transport, shapes: &[(Shape, bool)]) -> u64 {
        match transport {
            Transport::Field(_) => 0,
            Transport::Light(scene) => film_bytes(scene),
            Transport::Paths(scene) => {
                let normals = entries_of(&scene.rest.meshes, |slot| shapes[slot].1).into_iter();
                let normals = normals.map(|entries| {
                    let size = [entries, 1, 1];
                    (Shape { size, channels: 1 }, entries > 0)
                });
                let all: Vec<_> = shapes.iter().copied().chain(normals).collect();
                paths::sums::sum_bytes(&all)
            }
            Transport::Splats(scene) => splat_bytes(shapes[scene.slots.position].0.texels() as u64),
        }
    }

    fn pass_bytes(&self, transport: &Transport, shapes: &[(Shape, bool)]) -> u64 {
        match transport {
            Transport::Light(scene) => pass_bytes(scene, shapes[scene.parameter].0.size, self.inputs.cluster),
            _ => 0,
        }
    }

    fn image_bytes(&self, resident: &Resident, batch: &Batch, loss: Loss) -> u64 {
        let is_splats = matches!(resident.transport, Transport::Splats(_));
        let pixels = match resident.transport {
            Transport::Light(_) => batch.pixels() as usize,
            _ => chunks(&resident.sensors, batch).len() * CHUNK,
        };
        let pixel = match is_splats {
            // The places in the lists at which pixels are finished; the fused pass keeps neither image nor adjoint image.
            true if compares_pixels(loss) => 4,
            true => 16 + 12 + 4,
            false => 16 + 12,
        };
        pixel * pixels as u64
    }

    fn path_bytes(&self, resident: &Resident, shapes: &[(Shape, bool)], batch: &Batch, spp: [u32; 2]) -> u64 {
        let Transport::Field(field) = &resident.transport else {
            return 0;
        };
        let shapes: Vec<Shape> = shapes.iter().map(|(shape, _)| *shape).collect();
        field::replay_bytes(field, resident, &shapes, batch, spp[1])
    }

    fn load(&mut self, resident: Resident, mut params: ParamSet, optimizer: Optimizer) -> Result<()> {
        self.updates = Updates::new(&params, optimizer);
        for parameter in &mut params.parameters {
            parameter.values = pages::on_large_pages(std::mem::take(&mut parameter.values));
        }
        let (inputs, transport) = Inputs::new(
            self.inputs.level,
            self.inputs.tape_limit,
            self.inputs.gauge.clone(),
            resident,
            params,
        );
        self.inputs = inputs;
        self.frame = Frame::default();
        self.passes = Passes::new(transport);
        self.deal_evenly();
        self.rebuild_tables(true);
        Ok(())
    }

    fn sensors(&self) -> &[SensorRecord] {
        &self.inputs.sensors
    }

    fn replace_sensor(&mut self, sensor: u32, record: SensorRecord) {
        self.inputs.sensors[sensor as usize] = record;
    }

    fn is_pipelined(&self) -> bool {
        match &self.passes {
            Passes::Field(_) | Passes::Splats(_) | Passes::Light(_) => false,
            Passes::Paths(passes) => passes.scene.estimator.is_pipelined(),
        }
    }

    fn params(&self) -> &ParamSet {
        &self.inputs.params
    }

    fn gauge(&self) -> Gauge {
        self.inputs.gauge.clone()
    }

    fn render(&mut self, batch: &Batch, keys: Keys, spp: u32) -> Result<()> {
        let pass = Pass { batch, keys, spp };
        self.inputs.gauge.begin_pass();
        match &mut self.passes {
            Passes::Field(passes) => passes.render(&self.inputs, pass, &mut self.frame),
            Passes::Paths(passes) => {
                passes.render(&self.inputs, pass, &mut self.frame);
                passes.splat_light(&self.inputs, pass, &mut self.frame)?;
            }
            Passes::Splats(passes) => passes.render(&self.inputs, pass, &mut self.frame)?,
            Passes::Light(passes) => passes.render(&self.inputs, pass, &mut self.frame)?,
        }
        self.frame.note(pass);
        Ok(())
    }

    fn develop(&mut self, batch: &Batch, keys: Keys, spp: u32) -> Result<()> {
        let Passes::Paths(passes) = &self.passes else {
            return self.render(batch, keys, spp);
        };
        let pass = Pass { batch, keys, spp };
        self.inputs.gauge.begin_pass();
        passes.develop(&self.inputs, pass, &mut self.frame);
        passes.splat_light(&self.inputs, pass, &mut self.frame)?;
        self.frame.note(pass);
        Ok(())
    }

    fn render_aov(&mut self, batch: &Batch, keys: Keys, spp: u32, aov: u32) -> Result<()> {
        let pass = Pass { batch, keys, spp };
        let Passes::Paths(passes) = &self.passes else {
            return Err(super::no_surfaces());
        };
        self.inputs.gauge.begin_pass();
        passes.render_aov(&self.inputs, pass, aov, &mut self.frame);
        self.frame.note(pass);
        Ok(())
    }

    fn image(&mut self) -> Result<Vec<[f32; 4]>> {
        self.frame.assemble(self.inputs.cluster);
        Ok(self.frame.in_order(&self.inputs.sensors))
    }

    fn loss(&mut self, batch: &Batch, keys: Keys, loss: Loss) -> Result<LossValue> {
        let rendered = self.frame.rendered();
        debug_assert_eq!(batch, rendered, "the loss compares the batch that was rendered");
        Ok(self.frame.compare(&self.inputs, batch, keys, loss))
    }

    fn set_adjoint(&mut self, batch: &Batch, keys: Keys, adjoint: &[[f32; 3]]) -> Result<()> {
        debug_assert_eq!(
            batch,
            self.frame.rendered(),
            "the adjoint image is of the batch that was rendered"
        );
        self.frame.set_adjoint(&self.inputs.sensors, batch, keys, adjoint);
        Ok(())
    }

    fn backpropagate(&mut self, batch: &Batch, keys: Keys, spp: u32) -> Result<ReplayStats> {
        let rendered = self.frame.rendered();
        debug_assert_eq!(
            batch, rendered,
            "the adjoint image belongs to the batch that was rendered"
        );
        let pass = Pass { batch, keys, spp };
        let updates = &mut self.updates;
        match &mut self.passes {
            Passes::Field(passes) => Ok(passes.backpropagate(&self.inputs, pass, self.frame.adjoint(), updates)),
            Passes::Paths(passes) => passes.backpropagate(&self.inputs, pass, self.frame.adjoint(), updates),
            Passes::Splats(passes) => passes.backpropagate(&self.inputs, &mut self.frame, updates),
            Passes::Light(passes) => passes.backpropagate(&self.inputs, pass, self.frame.adjoint(), updates),
        }
    }

    fn render_and_backpropagate(&mut self, batch: &Batch, keys: Keys, spp: u32) -> Result<ReplayStats> {
        let pass = Pass { batch, keys, spp };
        let stats = match &mut self.passes {
            Passes::Field(_) | Passes::Splats(_) | Passes::Light(_) => Err(passes::unshared()),
            Passes::Paths(passes) => {
                passes.render_and_backpropagate(&self.inputs, pass, &mut self.frame, &mut self.updates)
            }
        }?;
        self.frame.note(pass);
        Ok(stats)
    }

    /// Splats are evaluated at the centres of pixels, whatever the number of samples; a loss that needs the mean of the picture
    /// must wait for all of it.
    fn is_fused(&self, loss: Loss) -> bool {
        matches!(&self.passes, Passes::Splats(_)) && compares_pixels(loss)
    }

    fn value_and_gradient(&mut self, batch: &Batch, keys: Keys, loss: Loss) -> Result<(LossValue, ReplayStats)> {
        let pass = Pass { batch, keys, spp: 1 };
        let Passes::Splats(passes) = &mut self.passes else {
            return Err(super::unfused());
        };
        self.frame.forget();
        passes.value_and_gradient(&self.inputs, pass, loss, &mut self.updates)
    }

    fn regularise(&mut self, terms: &[Term]) -> Result<f64> {
        let level = self.inputs.level;
        let add = |term| self.updates.add_term(level, &self.inputs.params, term);
        Ok(terms.iter().map(add).sum())
    }

    fn step(&mut self, step: &Step) -> Result<Vec<f64>> {
        let level = self.inputs.level;
        let norms = self.updates.step(level, &mut self.inputs.params, step)?;
        if let Passes::Field(passes) = &mut self.passes {
            passes.deal_after_step(&self.inputs, &mut self.updates);
        }
        Ok(norms)
    }

    fn rebuild(&mut self) -> Result<()> {
        self.rebuild_tables(false);
        Ok(())
    }

    fn resample(&mut self, sizes: &[(usize, [usize; 3])], keep_moments: bool) -> Result<()> {
        let Inputs {
            scene, params, emitter, ..
        } = &mut self.inputs;
        for &(index, size) in sizes {
            let parameter = &mut params.parameters[index];
            self.updates.resample(index, parameter, size, keep_moments);
        }
        let shapes: Vec<_> = params.parameters.iter().map(|p| p.shape).collect();
        fit_background(scene, *emitter, &shapes);
        match &mut self.passes {
            Passes::Field(passes) => passes.scene.fit(scene, &shapes),
            Passes::Paths(passes) => passes.scene.fit(scene, &shapes),
            Passes::Splats(passes) => passes.scene.fit(&shapes),
            Passes::Light(passes) => passes.scene.fit(&shapes),
        }
        self.deal_evenly();
        self.rebuild_tables(true);
        Ok(())
    }

    fn replace(&mut self, replaced: Vec<Replacement>) -> Result<()> {
        for of in replaced {
            let parameter = &mut self.inputs.params.parameters[of.parameter];
            (parameter.shape, parameter.values) = (of.shape, of.values);
            self.updates.replace(of.parameter, parameter, of.moments);
        }
        self.resample(&[], true)
    }

    fn clear_gradients(&mut self) -> Result<()> {
        self.updates.clear();
        Ok(())
    }

    fn read(&mut self, parameter: usize, what: ArrayKind) -> Result<Vec<f32>> {
        Ok(match what {
            ArrayKind::Values => pages::copy(&self.inputs.params.parameters[parameter].values),
            ArrayKind::Gradient => self.updates.read_gradient(parameter),
            ArrayKind::Moment(i) => self.updates.read_moment(parameter, i),
        })
    }

    fn write(&mut self, parameter: usize, what: ArrayKind, values: &[f32]) -> Result<()> {
        match what {
            ArrayKind::Values => {
                let written = &mut self.inputs.params.parameters[parameter];
                written.values.copy_from_slice(values);
                self.updates.wake_outside(parameter, written);
                let decides = match &self.passes {
                    Passes::Field(passes) => {
                        let of_view = written.quantity.is_of_views();
                        of_view || passes.scene.slots.is_some_and(|slots| slots.sigma_t == parameter)
                    }
                    Passes::Paths(_) => true,
                    Passes::Splats(_) | Passes::Light(_) => false,
                };
                if decides {
                    self.rebuild_tables(true);
                }
            }
            ArrayKind::Gradient => self.updates.write_gradient(parameter, values),
            ArrayKind::Moment(i) => self.updates.write_moment(parameter, i, values),
        }
        Ok(())
    }

    fn in_a_row(&mut self, work: &mut Work) -> Result<()> {
        rayon::scope(|_| work(self))
    }

    fn memory(&self) -> u64 {
        let values = self
            .inputs
            .params
            .parameters
            .iter()
            .map(|p| p.values.len())
            .sum::<usize>();
        let passes = match &self.passes {
            Passes::Field(passes) => passes.bytes(),
            Passes::Paths(passes) => passes.bytes(),
            Passes::Splats(passes) => passes.bytes(),
            Passes::Light(passes) => passes.bytes(),
        };
        let references = self.inputs.references.bytes();
        (4 * values + references + self.updates.bytes() + self.frame.bytes()) as u64 + passes
    }
}
