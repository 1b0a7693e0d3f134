//! The three passes over the rays of a batch: primal, loss, adjoint.

use std::ops::Range;

use bytemuck::Zeroable;

use super::adapters::AdapterKind;
use super::paths::PathPasses;
use super::pieces::{ADJOINT_SAMPLES, DispatchSize, PATH_LOOKUPS, PRIMAL_SAMPLES, SOFTWARE_SAMPLES, path_lookups};
use super::records::{self, ELEMENT_GROUP, Launch, RAY_GROUP, Slot, exposure};
use super::shaders::{Binding, Kernel};
use super::waves::Waves;
use super::{Gpu, Passes, views};
use crate::device::units::Units;
use crate::device::{Batch, DeviceError, Keys, LossValue, ReplayStats, Result, no_surfaces, only_rendered};
use crate::kernels::loss::Loss;
use crate::resident::field::FieldScene;
use crate::transport::rays::film::{spread_sensor, spreads};

/// The word of the statistics that has the faults of sums in whole numbers, and the bit of one that is not finite: the twins
/// of `shaders/bind/statistics.wgsl`.
const FAULTS: usize = 6;
const FAULT_NOT_FINITE: u32 = 2;

/// Bytes of a pixel's sums when samples are spread over pixels: eight floats, as in `shaders/develop.wgsl`.
const SPREAD_BYTES: u64 = 32;

impl Gpu {
    /// Renders a batch into the image.
    pub(super) fn render_pass(&mut self, batch: &Batch, keys: Keys, spp: u32) -> Result<()> {
        self.context.gauge.begin_pass();
        let (kernel, dispatch) = match &self.passes {
            Passes::Splats(_) => return self.render_splats_pass(batch),
            Passes::Light(_) => return self.render_light_pass(batch, keys, spp),
            Passes::Field(field) => (Kernel::Render, self.ray_dispatches(field, spp, PRIMAL_SAMPLES)?),
            Passes::Paths(passes) => (Kernel::RenderPaths, self.path_dispatches(passes, batch.pixels(), spp)),
        };
        self.prepare(kernel, batch.pixels(), spp)?;
        self.bring_batch(batch)?;
        self.arrays.fit_image(&self.context, batch.pixels())?;
        let launch = self.launch(batch, keys, spp);
        let (own, samples) = (self.own_run(batch), 0..spp);
        let parts = self.pieces(kernel, dispatch, &own, &samples).count();
        self.context.gauge.begin_parts(parts + self.particle_parts(batch, spp)?);
        self.over_samples(kernel, launch, dispatch, own, samples)?;
        self.splat_particles(batch, keys, spp)?;
        self.context.check()
    }

    /// Renders a view into the image by (13a), its samples spread over pixels: one sample of each pixel at a time, which the
    /// pixels around then gather.
    pub(super) fn develop_pass(&mut self, batch: &Batch, keys: Keys, spp: u32) -> Result<()> {
        let Passes::Paths(passes) = &self.passes else {
            return self.render_pass(batch, keys, spp);
        };
        let (&[sensor], None) = (&batch.table.sensors[..], batch.drawn) else {
            return self.render_pass(batch, keys, spp);
        };
        let record = &self.sensors[sensor as usize];
        if !spreads(record) {
            return self.render_pass(batch, keys, spp);
        }
        let wide = spread_sensor(record);
        self.context.gauge.begin_pass();
        let sampled = wide.width * wide.height;
        let dispatch = self.path_dispatches(passes, sampled, 1);
        self.prepare(Kernel::RenderPaths, sampled, 1)?;
        self.pipelines.prepare(&self.context, Kernel::Develop)?;
        self.bring_batch(batch)?;
        self.arrays.fit_image(&self.context, sampled)?;
        self.arrays.fit_film(
            &self.context,
            batch.pixels(),
            SPREAD_BYTES,
            "render a smaller picture, give the film a `box` filter",
        )?;
        let launch = Launch {
            exposure: exposure::SAMPLE,
            ..self.launch(batch, keys, spp)
        };
        let develop = |gpu: &Self, sample: u32, launch: Launch| {
            for (pixels, _) in dispatch.pieces(batch.pixels(), 1) {
                gpu.over_piece(Kernel::Develop, launch, pixels, sample..sample + 1);
            }
        };
        let parts = self
            .pieces(Kernel::RenderPaths, dispatch, &(0..sampled), &(0..1))
            .count();
        let parts = parts * spp as usize + self.particle_parts(batch, spp)?;
        self.context.gauge.begin_parts(parts);
        for sample in 0..spp {
            self.over_samples(Kernel::RenderPaths, launch, dispatch, 0..sampled, sample..sample + 1)?;
            develop(self, sample, launch);
        }
        let done = Launch {
            exposure: exposure::DONE,
            ..launch
        };
        develop(self, spp, done);
        self.splat_particles(batch, keys, spp)?;
        self.context.check()
    }

    /// Renders the channel `aov` of the surfaces that camera rays meet first into the image.
    pub(super) fn aov_pass(&mut self, batch: &Batch, keys: Keys, spp: u32, aov: u32) -> Result<()> {
        let Passes::Paths(passes) = &self.passes else {
            return Err(no_surfaces());
        };
        self.context.gauge.begin_pass();
        let dispatch = self.path_dispatches(passes, batch.pixels(), spp);
        self.pipelines.prepare(&self.context, Kernel::RenderAov)?;
        self.bring_batch(batch)?;
        self.arrays.fit_image(&self.context, batch.pixels())?;
        let launch = Launch {
            aov,
            ..self.launch(batch, keys, spp)
        };
        self.over_rays(Kernel::RenderAov, launch, dispatch, self.own_run(batch))?;
        self.context.check()
    }

    /// Compares the image with the references and leaves the adjoint image.
    pub(super) fn loss_pass(&mut self, batch: &Batch, keys: Keys, loss: Loss) -> Result<LossValue> {
        self.pipelines.prepare(&self.context, Kernel::Loss)?;
        self.bring_batch(batch)?;
        let compared = self.compared(batch);
        let groups = (compared.end - compared.start).div_ceil(ELEMENT_GROUP);
        self.arrays.fit_reports(&self.context, groups)?;
        let mut launch = self.launch(batch, keys, 1);
        (launch.first_pixel, launch.last_pixel) = (compared.start, compared.end);
        launch.groups_x = self.context.fold(groups)[0];
        let loss = match loss {
            Loss::NormalizedL2 => self.over_means(batch, launch)?,
            other => other,
        };
        (launch.loss_kind, launch.loss_delta, launch.loss_seed) = match loss {
            Loss::L1 => (records::loss::L1, 0.0, 0),
            Loss::L2 => (records::loss::L2, 0.0, 0),
            Loss::Huber { delta } => (records::loss::HUBER, delta, 0),
            Loss::RelativeL2 => (records::loss::RELATIVE_L2, 0.0, 0),
            Loss::LogL1 => (records::loss::LOG_L1, 0.0, 0),
            Loss::Linear { seed } => (records::loss::LINEAR, 0.0, seed),
            Loss::NormalizedL2 => unreachable!("its means were just taken"),
            Loss::ScaledL2 { image, reference } => {
                launch.loss_scale = reference;
                (records::loss::SCALED_L2, image, 0)
            }
        };
        let mut sums = [0f64; 3];
        self.largest_adjoint = 0.0;
        for [parts @ .., largest] in self.compare_pixels(batch, launch)? {
            for (sum, part) in sums.iter_mut().zip(parts) {
                *sum += f64::from(part);
            }
            self.largest_adjoint = self.largest_adjoint.max(largest);
        }
        let [loss, squares, masked] = sums;
        let pixels = f64::from(batch.pixels().min(self.arrays.pixels)).max(1.0);
        Ok(LossValue {
            loss: loss / (3.0 * pixels),
            mse: squares / (3.0 * (pixels - masked).max(1.0)),
            masked: masked as u64,
        })
    }

    /// The loss that divides image and reference by their means: sums over the pixels that are not masked, over the number of all
    /// pixels. An image whose mean is zero is not divided.
    fn over_means(&self, batch: &Batch, launch: Launch) -> Result<Loss> {
        let launch = Launch {
            loss_kind: records::loss::MEANS,
            ..launch
        };
        let reports = self.compare_pixels(batch, launch)?;
        let count = 3.0 * f64::from(batch.pixels().min(self.arrays.pixels));
        let [image, reference] = [0, 1].map(|k: usize| {
            let mean = reports.iter().map(|report| f64::from(report[k])).sum::<f64>() / count;
            if mean == 0.0 { 1.0 } else { (1.0 / mean) as f32 }
        });
        Ok(Loss::ScaledL2 { image, reference })
    }

    /// Runs the loss pass over the pixels that this rank compares; returns the results of all workgroups of the batch.
    fn compare_pixels(&self, batch: &Batch, launch: Launch) -> Result<Vec<[f32; 4]>> {
        let [first, last] = [launch.first_pixel, launch.last_pixel].map(|pixel| pixel.div_ceil(ELEMENT_GROUP));
        let groups = last - first;
        let pipeline = self.pipelines.get(Kernel::Loss);
        self.context
            .dispatch(pipeline, bytemuck::bytes_of(&launch), &self.ray_buffers(), groups);
        let reports = self.arrays.read_reports(&self.context, groups)?;
        let reporting = self.reporting(batch);
        let own = &reporting[self.cluster.rank()];
        let own = &reports[(own.start - first) as usize..(own.end - first) as usize];
        Ok(self.of_all(own, &reporting))
    }

    /// Uploads an adjoint image.
    pub(super) fn take_adjoint(&mut self, adjoint: &[[f32; 3]]) -> Result<()> {
        self.arrays.fit_image(&self.context, adjoint.len() as u32)?;
        let texels: Vec<[f32; 4]> = adjoint.iter().map(|[r, g, b]| [*r, *g, *b, 0.0]).collect();
        self.context
            .upload(&self.arrays.adjoint, 0, bytemuck::cast_slice(&texels));
        self.largest_adjoint = adjoint.iter().flatten().fold(0.0, |most, d| most.max(d.abs()));
        self.context.check()
    }

    /// Replays a batch's rays and adds to the gradients.
    pub(super) fn adjoint_pass(&mut self, batch: &Batch, keys: Keys, spp: u32) -> Result<ReplayStats> {
        let (kernel, dispatch) = match &self.passes {
            Passes::Paths(passes) if passes.tracer.is_some() => return Err(only_rendered()),
            Passes::Splats(_) => return self.splats_adjoint_pass(batch, keys),
            Passes::Light(_) => return self.light_adjoint_pass(batch, keys, spp),
            Passes::Field(field) => (Kernel::Backpropagate, self.ray_dispatches(field, spp, ADJOINT_SAMPLES)?),
            Passes::Paths(passes) => (
                Kernel::BackpropagatePaths,
                self.path_dispatches(passes, batch.pixels(), spp),
            ),
        };
        self.prepare(kernel, batch.pixels(), spp)?;
        self.bring_batch(batch)?;
        self.context.clear([&self.arrays.statistics]);
        self.begin_sums();
        let units = self.units(batch.pixels(), spp);
        let mut launch = self.launch(batch, keys, spp);
        (launch.digits, launch.exponent) = (units.digits, units.exponent);
        self.over_rays(kernel, launch, dispatch, self.own_run(batch))?;
        self.finish_adjoint(units)
    }

    /// Adds sums in whole numbers to the gradients, and reads the statistics of an adjoint pass.
    pub(super) fn finish_adjoint(&mut self, units: Units) -> Result<ReplayStats> {
        self.reduce_sums()?;
        self.collect_sums(units)?;
        let statistics = &self.arrays.statistics;
        let bytes = self.context.download(statistics, 0, statistics.size())?;
        let words: Vec<u32> = bytemuck::pod_collect_to_vec(&bytes);
        let faults = self
            .cluster
            .gather(&[words[FAULTS]])
            .into_iter()
            .fold(0, |all, of| all | of);
        if faults != 0 {
            let what = match faults & FAULT_NOT_FINITE {
                0 => "left the range of its sums",
                _ => "is not finite",
            };
            return Err(gradient_fault(what));
        }
        self.add_to_views(&words, units)?;
        let wide = |at: usize| u64::from(words[at]) | u64::from(words[at + 1]) << 32;
        let own = ReplayStats {
            rays: wide(0),
            samples: wide(2),
            drifted: wide(4),
            tape_bytes: 0,
        };
        Ok(own.over(self.cluster))
    }

    /// Rebuilds the tables that depend on the parameters' values: all of them, or those that a step may have changed.
    pub(super) fn rebuild_tables(&mut self, all: bool) -> Result<()> {
        if let Some(kernel) = self.passes.table_kernel() {
            self.pipelines.prepare(&self.context, kernel)?;
        }
        self.place_views(all)?;
        self.place_shapes(all)?;
        match &self.passes {
            Passes::Field(field) if field.slots.is_some() => self.occupancy_pass(),
            Passes::Field(_) | Passes::Splats(_) | Passes::Light(_) => Ok(()),
            Passes::Paths(passes) => self.rebuild_path_tables(passes, all),
        }
    }

    /// Rebuilds the occupancy grid; [`Kernel::Occupancy`] has been prepared.
    fn occupancy_pass(&self) -> Result<()> {
        let groups = self.arrays.tables.cells.div_ceil(RAY_GROUP);
        let none = Keys {
            objective: [0; 4],
            pass: [0; 4],
        };
        let mut launch = self.launch(&Batch::default(), none, 1);
        launch.groups_x = self.context.fold(groups)[0];
        let pipeline = self.pipelines.get(Kernel::Occupancy);
        self.context
            .dispatch(pipeline, bytemuck::bytes_of(&launch), &self.ray_buffers(), groups);
        self.context.check()
    }

    /// Compiles a kernel, or the kernels of waves that do its work in turn, for a pass of `spp` samples of `pixels` pixels.
    fn prepare(&mut self, kernel: Kernel, pixels: u32, spp: u32) -> Result<()> {
        let Some(turns) = self.turns(kernel) else {
            return self.pipelines.prepare(&self.context, kernel);
        };
        for kernel in turns.kernels() {
            self.pipelines.prepare(&self.context, kernel)?;
        }
        self.fit_wave(turns, pixels, spp)
    }

    /// Runs a kernel over all pieces of a run of pixels, or of a light's cells.
    ///
    /// # Errors
    /// The device was lost.
    pub(super) fn over_rays(
        &self,
        kernel: Kernel,
        launch: Launch,
        dispatch: DispatchSize,
        run: Range<u32>,
    ) -> Result<()> {
        let samples = 0..launch.spp;
        let parts = self.pieces(kernel, dispatch, &run, &samples).count();
        self.context.gauge.begin_parts(parts);
        self.over_samples(kernel, launch, dispatch, run, samples)
    }

    /// [`Self::over_rays`] over some samples of each pixel; each piece counts as a part of the picture.
    pub(super) fn over_samples(
        &self,
        kernel: Kernel,
        launch: Launch,
        dispatch: DispatchSize,
        run: Range<u32>,
        samples: Range<u32>,
    ) -> Result<()> {
        let turns = self.turns(kernel);
        for (pixels, samples) in self.pieces(kernel, dispatch, &run, &samples) {
            match turns {
                Some(turns) => self.over_wave(turns, launch, pixels, samples)?,
                None => self.over_piece(kernel, launch, pixels, samples),
            }
            self.context.count_when_done();
        }
        Ok(())
    }

    /// The pieces, or waves, that a pass over some samples of some pixels is cut into.
    pub(super) fn pieces(
        &self,
        kernel: Kernel,
        dispatch: DispatchSize,
        pixels: &Range<u32>,
        samples: &Range<u32>,
    ) -> impl Iterator<Item = (Range<u32>, Range<u32>)> + use<> {
        let spp = samples.end - samples.start;
        let size = self.turns(kernel).map_or(dispatch, |turns| self.wave_size(turns, spp));
        let from = |start: u32| move |part: Range<u32>| start + part.start..start + part.end;
        let (pixel, sample) = (from(pixels.start), from(samples.start));
        size.pieces(pixels.end - pixels.start, spp)
            .map(move |(pixels, samples)| (pixel(pixels), sample(samples)))
    }

    /// Runs a kernel over some samples of some pixels.
    pub(super) fn over_piece(&self, kernel: Kernel, mut launch: Launch, pixels: Range<u32>, samples: Range<u32>) {
        (launch.first_pixel, launch.last_pixel) = (pixels.start, pixels.end);
        (launch.first_sample, launch.last_sample) = (samples.start, samples.end);
        let invocations = match kernel {
            Kernel::BackpropagatePaths => (pixels.end - pixels.start) * (samples.end - samples.start),
            _ => pixels.end - pixels.start,
        };
        let groups = invocations.div_ceil(RAY_GROUP);
        launch.groups_x = self.context.fold(groups)[0];
        let pipeline = self.pipelines.get(kernel);
        let hierarchy = match &self.passes {
            Passes::Paths(passes) => passes.arrays.hierarchy.as_ref(),
            _ => None,
        };
        let record = bytemuck::bytes_of(&launch);
        self.context
            .dispatch_searching(pipeline, record, &self.ray_buffers(), hierarchy, groups);
    }

    fn bring_batch(&mut self, batch: &Batch) -> Result<()> {
        let known = |&sensor: &u32| (sensor as usize) < self.sensors.len();
        assert!(
            batch.table.sensors.iter().all(known),
            "a batch looks through the scene's sensors"
        );
        self.arrays.tables.set_batch(&self.context, &self.scene, &batch.table)
    }

    /// How a pass over a field is cut.
    ///
    /// # Errors
    /// A single ray has more samples than the adapter takes.
    fn ray_dispatches(&self, field: &FieldScene, spp: u32, budget: u64) -> Result<DispatchSize> {
        let longest = field.longest_ray(&self.scene);
        let adapter = &self.context.summary;
        if adapter.kind == AdapterKind::Software && longest > SOFTWARE_SAMPLES {
            return Err(DeviceError::TooLarge(format!(
                "rays of up to {longest} samples are longer than the {SOFTWARE_SAMPLES} that {} can be trusted with; \
                 raise `step`, or use --device cpu",
                adapter.name
            )));
        }
        Ok(self
            .options
            .dispatch_size
            .unwrap_or_else(|| DispatchSize::new(longest, spp, budget)))
    }

    /// How a pass over paths is cut.
    fn path_dispatches(&self, passes: &PathPasses, pixels: u32, spp: u32) -> DispatchSize {
        let longest = path_lookups(passes.scene.settings.max_depth);
        self.options
            .dispatch_size
            .unwrap_or_else(|| DispatchSize::over(pixels, longest, spp, PATH_LOOKUPS))
    }

    /// The launch record of a pass, before the pass is cut into pieces.
    pub(super) fn launch(&self, batch: &Batch, keys: Keys, spp: u32) -> Launch {
        let tables = &self.arrays.tables;
        let launch = Launch {
            objective: keys.objective,
            key: keys.pass,
            spp,
            drawn: u32::from(batch.drawn.is_some()),
            sensor_count: batch.table.sensors.len() as u32,
            starts_at: tables.starts_at,
            sensors_at: tables.sensors_at,
            occupancy_at: 0,
            reach_at: tables.reach_at,
            emitter: self.slot(self.emitter),
            reference_kind: self.arrays.references.kind,
            adjoint_scale: 1.0 / (3.0 * batch.pixels() as f32),
            ..Launch::zeroed()
        };
        match &self.passes {
            Passes::Field(field) => {
                let [sigma, sh] = [field.slots.map(|s| s.sigma_t), field.slots.map(|s| s.sh_coeffs)];
                Launch {
                    sigma: self.slot(sigma),
                    sh: self.slot(sh),
                    view_length: field.views.as_ref().map_or(1.0, views::length),
                    ..launch
                }
            }
            Passes::Paths(PathPasses { arrays, .. }) => Launch {
                surfaces_at: arrays.places.surfaces,
                media_at: arrays.places.media,
                volumes_at: arrays.places.volumes,
                phases_at: arrays.places.phases,
                lights_at: arrays.places.lights,
                bsdfs_at: arrays.places.bsdfs,
                leaves_at: arrays.places.leaves,
                factors_at: arrays.places.factors,
                textures_at: arrays.places.textures,
                parameters_at: arrays.places.parameters,
                nodes_at: arrays.places.nodes,
                blocks_at: arrays.places.blocks,
                corners_at: arrays.places.corners,
                emissive_triangles_at: arrays.places.emissive_triangles,
                distance_grids_at: arrays.places.distance_grids,
                distances_at: arrays.places.distances,
                rooms_at: arrays.places.rooms,
                motions_at: arrays.places.motions,
                displaced_at: arrays.places.displaced,
                light_motions_at: arrays.places.light_motions,
                sensor_motions_at: arrays.places.sensor_motions,
                around_at: arrays.places.around,
                singles_at: arrays.places.singles,
                environment_at: arrays.environment_at,
                coats_at: arrays.coats_at,
                ..launch
            },
            Passes::Splats(_) | Passes::Light(_) => launch,
        }
    }

    /// The slot by which shaders find a parameter.
    pub(super) fn slot(&self, parameter: Option<usize>) -> Slot {
        parameter.map_or(Slot::NONE, |i| {
            let described = &self.params.parameters[i];
            let tuned = described.tuning.is_some();
            Slot::new(self.arrays.plan.places[i], described.shape, tuned, self.magnitude(i))
        })
    }

    /// The buffers that passes over rays bind.
    pub(super) fn ray_buffers(&self) -> Vec<(Binding, &wgpu::Buffer)> {
        let arrays = &self.arrays;
        let mut buffers = vec![
            (Binding::Scene, &arrays.scene),
            (Binding::Tables, &arrays.tables.buffer),
            (Binding::Sensors, &arrays.sensors),
            (Binding::Image, &arrays.image),
            (Binding::Adjoint, &arrays.adjoint),
            (Binding::Film, &arrays.film),
            (Binding::References, &arrays.references.buffer),
            (Binding::Statistics, &arrays.statistics),
            (Binding::Partials, &arrays.partials),
        ];
        let names = [
            (Binding::Values, Binding::Gradient),
            (Binding::Values1, Binding::Gradient1),
        ];
        for (bank, (values, gradient)) in arrays.banks.iter().zip(names) {
            buffers.extend([(values, &bank.values), (gradient, bank.target())]);
        }
        if let Passes::Splats(passes) = &self.passes {
            buffers.extend(passes.buffers());
        }
        if let Passes::Light(passes) = &self.passes {
            buffers.extend(passes.buffers());
        }
        if let Passes::Paths(PathPasses {
            arrays, waves, tracer, ..
        }) = &self.passes
        {
            buffers.extend([(Binding::Settings, &arrays.record), (Binding::Bounds, &arrays.bounds)]);
            buffers.extend(arrays.records.buffers());
            buffers.extend(waves.iter().flat_map(Waves::buffers));
            buffers.extend(tracer.iter().map(|record| (Binding::Tracer, record)));
        }
        buffers
    }
}

/// The error of an adjoint pass whose gradients cannot be summed.
pub(super) fn gradient_fault(what: &str) -> DeviceError {
    DeviceError::Overflow(format!(
        "a gradient {what}; if values ran away, lower the learning rate or set `bounds`, else state light or lengths in other units"
    ))
}
