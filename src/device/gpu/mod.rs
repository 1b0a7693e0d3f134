//! The GPU device: wgpu, and nothing physical. The estimator is in `shaders/`.

mod adapters;
mod arrays;
mod bindings;
mod contents;
mod context;
mod hierarchy;
mod light;
mod motion;
mod particles;
mod passes;
mod paths;
mod pieces;
mod pipelines;
mod plan;
pub mod preprocess;
mod ranks;
pub mod records;
pub mod shaders;
mod splats;
mod stopwatch;
mod update;
mod views;
mod waves;

use std::ops::Range;

pub use adapters::{AdapterKind, AdapterSummary, Adapters};
pub use pieces::DispatchSize;
pub use waves::wave_bytes;

use super::gauge::Gauge;
use super::{
    ArrayKind, Batch, Device, DeviceError, DeviceInfo, KernelTime, Keys, LossValue, Replacement, ReplayStats, Result,
    Step, Term, Work,
};
use crate::cluster::Cluster;
use crate::kernels::loss::Loss;
use crate::kernels::optimizer::Optimizer;
use crate::params::{ParamSet, Shape};
use crate::resident::field::FieldScene;
use crate::resident::layout::{NO_REFERENCE, SceneRecord, SensorRecord};
use crate::resident::paths::Estimator;
use crate::resident::references::Pixels;
use crate::resident::views::Views;
use crate::resident::{Resident, Transport};
use arrays::Arrays;
use contents::has_hierarchy;
use context::Context;
use light::{LightArrays, LightPasses};
use particles::tracer_record;
use paths::{PathArrays, PathPasses};
use pipelines::Pipelines;
use plan::{Plan, Room, shapes};
use shaders::{Accumulation, Dialect, Kernel, RecordSource, UniformReads};
use splats::{SplatArrays, SplatPasses};
use stopwatch::Stopwatch;
use waves::Waves;

/// How a GPU is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Gradients summed in whole numbers: the same bits every time.
    pub deterministic: bool,
    /// Sum in whole numbers where a parameter of at most [`FEW`] entries changes, too: floats lose what is added to them once
    /// they are large. `prbopt` asks for it.
    pub precise: bool,
    /// Use the adapter's float atomics where it has them.
    pub float_atomics: bool,
    /// Use the adapter's atomics of 64 bits where it has them.
    pub wide_atomics: bool,
    /// Add up over subgroups where the adapter does, and where sums need not have the same bits every time.
    pub subgroups: bool,
    /// Have the adapter's ray queries find intersections, by a hierarchy and tests of its own, which round differently from ours.
    pub ray_queries: bool,
    /// Follow paths among surfaces that stand still in waves, in kernels that take turns.
    pub waves: bool,
    /// Let a software adapter read what a scene has few of from uniform buffers: records, and values of parameters.
    pub uniform_buffers: bool,
    /// How passes are cut into dispatches; by fixed tables if None.
    pub dispatch_size: Option<DispatchSize>,
    /// Entries of the largest buffer of parameters; as many as the adapter gives if None.
    pub bank: Option<usize>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            deterministic: false,
            precise: false,
            float_atomics: true,
            wide_atomics: true,
            subgroups: true,
            ray_queries: false,
            waves: true,
            uniform_buffers: true,
            dispatch_size: None,
            bank: None,
        }
    }
}

/// Most entries of a parameter to each of which a pass adds so often that sums of floats would be wrong: after 2²² additions
/// of equal numbers they have lost two hundredths, and after 2²⁴ they no longer change.
pub const FEW: usize = 1 << 14;

/// One adapter and the scene that it holds.
#[derive(Debug)]
pub struct Gpu {
    info: DeviceInfo,
    options: Options,
    /// The ranks that share the rays of a pass.
    cluster: Cluster,
    context: Context,
    /// How gradients are summed where the options alone decide.
    accumulation: Accumulation,
    pipelines: Pipelines,
    scene: SceneRecord,
    sensors: Vec<SensorRecord>,
    /// Index of the parameter of the background's radiance.
    emitter: Option<usize>,
    passes: Passes,
    /// Parameters without their values, which live on the device; only values of views are here as well.
    params: ParamSet,
    optimizer: Optimizer,
    arrays: Arrays,
    /// For each rank the pixels of the last image that are read from it.
    rendered: Vec<Range<u32>>,
    /// Largest magnitude in the adjoint image.
    largest_adjoint: f32,
}

/// The passes of a scene, with what they alone keep: chosen once, when the scene is loaded.
#[derive(Debug)]
#[allow(
    clippy::large_enum_variant,
    reason = "a device holds one, for as long as it holds a scene"
)]
enum Passes {
    Field(FieldScene),
    Paths(PathPasses),
    Splats(SplatPasses),
    Light(LightPasses),
}

impl Passes {
    /// The kernel that rebuilds the tables that depend on the parameters' values.
    fn table_kernel(&self) -> Option<Kernel> {
        match self {
            Self::Field(field) => field.slots.map(|_| Kernel::Occupancy),
            Self::Paths(_) => Some(Kernel::Majorants),
            Self::Splats(_) | Self::Light(_) => None,
        }
    }
}

impl Gpu {
    /// Opens one of a machine's adapters.
    ///
    /// # Errors
    /// The driver refuses, or the adapter has no ray queries and they are wanted.
    pub fn open(adapters: &Adapters, index: usize, options: Options) -> Result<Self> {
        let summary = &adapters.summaries()[index];
        if options.ray_queries && !summary.ray_queries {
            return Err(DeviceError::Unavailable(format!(
                "{} has no ray queries; leave out --ray-queries, or name another GPU by --adapter",
                summary.name
            )));
        }
        let context = adapters.open(index, &options)?;
        let summary = &context.summary;
        let [float, wide] = [
            summary.float_atomics && options.float_atomics,
            summary.wide_atomics && options.wide_atomics,
        ];
        let accumulation = match options.deterministic {
            true => whole(wide),
            false if float => Accumulation::FloatAtomic,
            false => Accumulation::CompareExchange,
        };
        let subgroups = summary.subgroups && options.subgroups && !options.deterministic;
        let pipelines = Pipelines::new(Dialect {
            accumulation,
            subgroups,
            banks: 1,
            views: false,
            ray_queries: false,
            reads: UniformReads::default(),
        })?;
        let (resident, optimizer) = (Resident::empty(), Optimizer::Sgd { momentum: 0.0 });
        let arrays = Arrays::new(&context, &resident, Plan::default(), accumulation, optimizer)?;
        let summary = &context.summary;
        let caution = if summary.kind.is_hardware() {
            ""
        } else {
            "; --device cpu is faster"
        };
        let searching = if options.ray_queries { ", ray queries" } else { "" };
        Ok(Self {
            info: DeviceInfo {
                kind: "gpu",
                name: summary.name.clone(),
                detail: format!(
                    "{}, {}, {}{searching}{caution}",
                    summary.backend,
                    summary.kind.describe(),
                    summary.driver
                ),
            },
            options,
            cluster: Cluster::single(),
            accumulation,
            pipelines,
            scene: resident.scene,
            sensors: Vec::new(),
            emitter: None,
            passes: Passes::Field(FieldScene::default()),
            params: ParamSet::default(),
            optimizer,
            arrays,
            context,
            rendered: vec![Range::default()],
            largest_adjoint: 0.0,
        })
    }

    /// How gradients of parameters of these shapes are summed.
    fn accumulation_of(&self, transport: &Transport, shapes: &[(Shape, bool)]) -> Accumulation {
        let has_many_additions = matches!(transport, Transport::Field(_) | Transport::Paths(_));
        // Derivatives by views have accumulators of their own.
        let of_views = |slot| views_of(transport).is_some_and(|views| views.slots().contains(&(slot as u32)));
        let few = |(slot, (shape, tuned)): (usize, &(Shape, bool))| *tuned && shape.len() <= FEW && !of_views(slot);
        match self.options.precise && has_many_additions && shapes.iter().enumerate().any(few) {
            true => whole(self.context.summary.wide_atomics && self.options.wide_atomics),
            false => self.accumulation,
        }
    }

    /// Room for the parameters of the scene that is loaded.
    fn room(&self) -> Room {
        let kernel = match &self.passes {
            Passes::Field(_) => Kernel::Backpropagate,
            Passes::Paths(_) => Kernel::BackpropagatePaths,
            Passes::Splats(_) => Kernel::DerivativesSplats,
            Passes::Light(_) => Kernel::BackpropagateLight,
        };
        self.room_of(kernel, self.pipelines.dialect.accumulation)
    }

    /// Room for parameters beside what a kernel binds.
    fn room_of(&self, kernel: Kernel, accumulation: Accumulation) -> Room {
        let room = Room::new(&self.context.summary, kernel.other_buffers(), accumulation);
        room.at_most(self.options.bank)
    }

    /// Has kernels compiled for the number and the kinds of the buffers.
    fn follow_buffers(&mut self) {
        let banks = &self.arrays.banks;
        self.pipelines.set_banks(banks.len());
        self.pipelines.set_reads(UniformReads {
            records: match &self.passes {
                Passes::Paths(passes) => passes.arrays.records.source,
                Passes::Field(_) | Passes::Splats(_) | Passes::Light(_) => RecordSource::Storage,
            },
            uniform_values: banks[0].is_uniform,
        });
    }

    fn names(&self) -> Vec<String> {
        self.params.parameters.iter().map(|p| p.path.clone()).collect()
    }

    /// Buffer and byte offset of an array of a parameter; None if it does not exist.
    fn place(&self, parameter: usize, what: ArrayKind) -> Option<(&wgpu::Buffer, u64)> {
        let place = self.arrays.plan.places[parameter];
        let (bank, offset) = (&self.arrays.banks[place.bank], 4 * place.first as u64);
        let tuned = self.params.parameters[parameter].tuning.is_some();
        match what {
            ArrayKind::Values => Some((&bank.values, offset)),
            ArrayKind::Gradient => tuned.then_some((&bank.gradient, offset)),
            ArrayKind::Moment(i) => (tuned && i < self.optimizer.moments()).then(|| (&bank.moments[i], offset)),
        }
    }
}

/// Sums in whole numbers, of 64 bits at once if `wide`.
fn whole(wide: bool) -> Accumulation {
    match wide {
        true => Accumulation::FixedPoint64,
        false => Accumulation::FixedPoint,
    }
}

impl Device for Gpu {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn gauge(&self) -> Gauge {
        self.context.gauge.clone()
    }

    fn arithmetic(&self) -> String {
        let searching = if self.options.ray_queries { " RayQueries" } else { "" };
        format!("gpu {} {:?}{searching}", self.info.name, self.accumulation)
    }

    fn check_fits(&self, transport: &Transport, shapes: &[(Shape, bool)], _: Optimizer) -> Result<()> {
        let names = match self.params.parameters.len() == shapes.len() {
            true => self.names(),
            false => Vec::new(),
        };
        let accumulation = self.accumulation_of(transport, shapes);
        let plan = Plan::new(shapes, self.room_of(adjoint_kernel(transport), accumulation));
        plan.check_fits(&names, shapes, &self.context.summary, accumulation)
    }

    fn sum_bytes(&self, transport: &Transport, shapes: &[(Shape, bool)]) -> u64 {
        let accumulation = self.accumulation_of(transport, shapes);
        let plan = Plan::new(shapes, self.room_of(adjoint_kernel(transport), accumulation));
        let of_bank = |bank| plan.sum_bytes(bank, accumulation);
        (0..plan.banks.len()).map(of_bank).sum()
    }

    fn path_bytes(&self, resident: &Resident, _shapes: &[(Shape, bool)], batch: &Batch, spp: [u32; 2]) -> u64 {
        match &resident.transport {
            Transport::Paths(scene) if self.follows_in_waves(scene) => {
                wave_bytes(scene, batch.pixels(), spp).unwrap_or(0)
            }
            _ => 0,
        }
    }

    fn load(&mut self, mut resident: Resident, mut params: ParamSet, optimizer: Optimizer) -> Result<()> {
        resident.place_views(&params);
        if let Transport::Paths(paths) = &resident.transport
            && paths.inverted.is_some()
        {
            return Err(DeviceError::Unavailable(
                "inverted Jacobians of rays are there to compare with and run on the CPU only; use --device cpu, or say \
                 \"jacobians\": \"kept\" in the integrator"
                    .into(),
            ));
        }
        assert_consistent(&resident, &params);
        let shapes = shapes(&params);
        let accumulation = self.accumulation_of(&resident.transport, &shapes);
        if let Transport::Paths(paths) = &resident.transport
            && paths.estimator != Estimator::PathReplay
        {
            return Err(DeviceError::Unavailable(
                "`advolpath` and `rbvolpath` are there to compare with and run on the CPU only; use --device cpu, or \
                 `prbvolpath`"
                    .into(),
            ));
        }
        let plan = Plan::new(&shapes, self.room_of(adjoint_kernel(&resident.transport), accumulation));
        let names: Vec<String> = params.parameters.iter().map(|p| p.path.clone()).collect();
        plan.check_fits(&names, &shapes, &self.context.summary, accumulation)?;
        self.pipelines.follow(&resident);
        self.pipelines.set_accumulation(accumulation);
        let searches = matches!(&resident.transport, Transport::Paths(paths) if has_hierarchy(paths));
        self.pipelines.set_ray_queries(self.options.ray_queries && searches);
        let views = views_of(&resident.transport);
        self.pipelines
            .set_views(views.is_some_and(|views| views.are_wanted(&params)));
        self.arrays = Arrays::new(&self.context, &resident, plan, accumulation, optimizer)?;
        self.passes = match resident.transport {
            Transport::Field(scene) => Passes::Field(scene),
            Transport::Paths(scene) => {
                let plan = &self.arrays.plan;
                let arrays = PathArrays::new(
                    &self.context,
                    &resident.scene,
                    &scene,
                    plan,
                    &shapes,
                    self.pipelines.dialect.ray_queries,
                )?;
                let waves = self
                    .follows_in_waves(&scene)
                    .then(|| Waves::new(&self.context))
                    .transpose()?;
                let tracer = tracer_record(&self.context, &scene)?;
                Passes::Paths(PathPasses {
                    scene,
                    arrays,
                    waves,
                    tracer,
                })
            }
            Transport::Light(scene) => {
                let arrays = LightArrays::new(&self.context, &scene)?;
                Passes::Light(LightPasses { scene, arrays })
            }
            Transport::Splats(scene) => {
                let arrays = SplatArrays::new(&self.context, &scene)?;
                Passes::Splats(SplatPasses { scene, arrays })
            }
        };
        self.follow_buffers();
        for (parameter, place) in params.parameters.iter_mut().zip(&self.arrays.plan.places) {
            let values = std::mem::take(&mut parameter.values);
            let bank = &self.arrays.banks[place.bank];
            let bytes = bytemuck::cast_slice(&values);
            self.context.upload(&bank.values, 4 * place.first as u64, bytes);
        }
        (self.scene, self.sensors, self.emitter) = (resident.scene, resident.sensors, resident.emitter);
        (self.params, self.optimizer) = (params, optimizer);
        self.rendered = vec![0..0; self.cluster.size()];
        self.rebuild_tables(true)
    }

    fn sensors(&self) -> &[SensorRecord] {
        &self.sensors
    }

    fn replace_sensor(&mut self, sensor: u32, record: SensorRecord) {
        self.sensors[sensor as usize] = record;
        let at = u64::from(sensor) * size_of::<SensorRecord>() as u64;
        self.context
            .upload(&self.arrays.sensors, at, bytemuck::bytes_of(&record));
    }

    fn is_pipelined(&self) -> bool {
        false
    }

    fn params(&self) -> &ParamSet {
        &self.params
    }

    fn render(&mut self, batch: &Batch, keys: Keys, spp: u32) -> Result<()> {
        self.render_pass(batch, keys, spp)?;
        self.rendered = self.runs(batch);
        Ok(())
    }

    fn develop(&mut self, batch: &Batch, keys: Keys, spp: u32) -> Result<()> {
        self.develop_pass(batch, keys, spp)?;
        self.rendered = self.runs(batch);
        Ok(())
    }

    fn image(&mut self) -> Result<Vec<[f32; 4]>> {
        let own = &self.rendered[self.cluster.rank()];
        let (first, count) = (16 * u64::from(own.start), 16 * own.len() as u64);
        let bytes = self.context.download(&self.arrays.image, first, count)?;
        let own: Vec<[f32; 4]> = bytemuck::pod_collect_to_vec(&bytes);
        Ok(self.of_all(&own, &self.rendered))
    }

    fn loss(&mut self, batch: &Batch, keys: Keys, loss: Loss) -> Result<LossValue> {
        self.loss_pass(batch, keys, loss)
    }

    fn render_aov(&mut self, batch: &Batch, keys: Keys, spp: u32, aov: u32) -> Result<()> {
        self.aov_pass(batch, keys, spp, aov)?;
        self.rendered = self.runs(batch);
        Ok(())
    }

    fn set_adjoint(&mut self, _batch: &Batch, _keys: Keys, adjoint: &[[f32; 3]]) -> Result<()> {
        self.take_adjoint(adjoint)
    }

    fn backpropagate(&mut self, batch: &Batch, keys: Keys, spp: u32) -> Result<ReplayStats> {
        self.adjoint_pass(batch, keys, spp)
    }

    fn regularise(&mut self, terms: &[Term]) -> Result<f64> {
        self.regularise_pass(terms)
    }

    fn step(&mut self, step: &Step) -> Result<Vec<f64>> {
        self.step_pass(step)
    }

    fn rebuild(&mut self) -> Result<()> {
        self.rebuild_tables(false)
    }

    fn resample(&mut self, sizes: &[(usize, [usize; 3])], keep_moments: bool) -> Result<()> {
        self.resample_pass(sizes, keep_moments)
    }

    fn replace(&mut self, replaced: Vec<Replacement>) -> Result<()> {
        self.replace_arrays(replaced)
    }

    fn clear_gradients(&mut self) -> Result<()> {
        self.context.clear(self.arrays.banks.iter().map(|bank| &bank.gradient));
        self.context.check()
    }

    fn read(&mut self, parameter: usize, what: ArrayKind) -> Result<Vec<f32>> {
        let Some((buffer, offset)) = self.place(parameter, what) else {
            return Ok(Vec::new());
        };
        let len = self.arrays.plan.places[parameter].len;
        let bytes = self.context.download(buffer, offset, 4 * len as u64)?;
        Ok(bytemuck::pod_collect_to_vec(&bytes))
    }

    fn write(&mut self, parameter: usize, what: ArrayKind, values: &[f32]) -> Result<()> {
        let Some((buffer, offset)) = self.place(parameter, what) else {
            return Ok(());
        };
        let len = self.arrays.plan.places[parameter].len;
        assert_eq!(values.len(), len, "an array is replaced by one of its own length");
        self.context.upload(buffer, offset, bytemuck::cast_slice(values));
        if what == ArrayKind::Values {
            self.rebuild_tables(true)?;
        }
        self.context.check()
    }

    fn in_a_row(&mut self, work: &mut Work) -> Result<()> {
        work(self)
    }

    fn finish(&mut self) -> Result<()> {
        self.context.wait()
    }

    fn time_kernels(&mut self) -> Result<()> {
        self.context.stopwatch = Stopwatch::new(&self.context)?;
        if self.context.stopwatch.is_none() {
            let name = &self.context.summary.name;
            return Err(DeviceError::Unavailable(format!(
                "{name} has no clock of its own; leave out --kernels"
            )));
        }
        Ok(())
    }

    fn kernel_times(&mut self) -> Result<Vec<KernelTime>> {
        let Some(watch) = &self.context.stopwatch else {
            return Ok(Vec::new());
        };
        watch.read(&self.context)?;
        Ok(watch.times())
    }

    fn memory(&self) -> u64 {
        let passes = match &self.passes {
            Passes::Field(_) => 0,
            Passes::Paths(passes) => passes.bytes(),
            Passes::Splats(passes) => passes.arrays.bytes(),
            Passes::Light(passes) => passes.arrays.bytes(),
        };
        self.arrays.bytes() + passes
    }
}

/// The cameras of a scene that are parameters.
fn views_of(transport: &Transport) -> Option<&Views> {
    match transport {
        Transport::Field(field) => field.views.as_ref(),
        Transport::Paths(_) | Transport::Splats(_) | Transport::Light(_) => None,
    }
}

/// The adjoint pass of a kind of transport, which binds the most buffers.
fn adjoint_kernel(transport: &Transport) -> Kernel {
    match transport {
        Transport::Field(_) => Kernel::Backpropagate,
        Transport::Paths(_) => Kernel::BackpropagatePaths,
        Transport::Splats(_) => Kernel::DerivativesSplats,
        Transport::Light(_) => Kernel::BackpropagateLight,
    }
}

/// Checks what shaders rely on when they index arrays without bounds checks.
fn assert_consistent(resident: &Resident, params: &ParamSet) {
    for parameter in &params.parameters {
        assert_eq!(
            parameter.values.len(),
            parameter.shape.len(),
            "{} is as long as its shape",
            parameter.path
        );
    }
    if let Transport::Field(FieldScene { slots: Some(slots), .. }) = &resident.transport {
        let coefficients = (resident.scene.sh_degree as usize + 1).pow(2);
        assert_eq!(
            params.parameters[slots.sh_coeffs].shape.channels,
            3 * coefficients,
            "coefficients match their degree"
        );
    }
    let held = match &resident.references {
        Pixels::None | Pixels::Constant(_) => u64::MAX,
        Pixels::Unorm8(data) => data.len() as u64,
        Pixels::Float(data) => data.len() as u64,
    };
    for sensor in resident.sensors.iter().filter(|s| s.first_pixel != NO_REFERENCE) {
        let last = u64::from(sensor.first_pixel) + u64::from(sensor.width) * u64::from(sensor.height);
        assert!(last <= held, "a reference is as large as its sensor");
    }
}
