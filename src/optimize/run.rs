//! A run, from preparation to report.

use std::sync::atomic::Ordering;
use std::time::Instant;

use anyhow::{Result, anyhow, bail};
use serde_json::{Map, Value, json};

use super::batch::Batches;
use super::estimate::{self, Estimate};
use super::held_out::write_reference;
use super::references::{self, Targets, data_marks};
use super::views::{Preview, RenderSettings, chosen_views, previews, render_view, training_views};
use super::{Job, PATIENCE, Report, Wish, held_out, stage};
use crate::cluster::Cluster;
use crate::device::{ArrayKind, Device, DeviceError, Term};
use crate::io::IoError;
use crate::io::atomic::Pending;
use crate::output::checkpoint::{self, Checkpoint, Identity, State};
use crate::output::ellipses::with_ellipses;
use crate::output::fingerprint::{Fingerprint, scene_fingerprint};
use crate::output::images::{Picture, Writer};
use crate::output::metrics::{Figures, Metrics};
use crate::output::parameters::{self, is_map, write_map};
use crate::output::progress::Progress;
use crate::output::room::{self, Wait};
use crate::output::run_folder::create;
use crate::params::{Kind, ParamSet, Parameter, Shape};
use crate::resident::Resident;
use crate::scene::{BatchRule, MomentRule, Optimize, References, Regularizer, Scene, Sensor};

/// A run in progress.
pub struct Run<'a> {
    pub(super) job: &'a Job<'a>,
    pub(super) device: &'a mut dyn Device,
    pub(super) progress: &'a mut Progress,
    identity: Identity,
    pub(super) state: State,
    pub(super) targets: Targets,
    /// Textures, maps and numbers of the scene that references were rendered from.
    truth: Vec<Parameter>,
    pub(super) batches: Batches,
    /// Regularisers in the order of the scene: term and interval in iterations.
    pub(super) terms: Vec<(Term, u32)>,
    /// Sensor and file stem of each preview.
    previews: Vec<Preview>,
    writer: Writer,
    /// For pipelined estimators: whether the device holds the previous iteration's adjoint image.
    pub(super) carries: bool,
    last: Option<Figures>,
    /// Iteration of the newest checkpoint.
    saved: Option<u32>,
    /// The checkpoint being written, and its iteration.
    saving: Option<(Pending, u32)>,
    /// Whether a full disk was reported already.
    full_told: bool,
    begun: Instant,
    /// Seconds spent by the run before it was last resumed.
    earlier_seconds: f64,
}

impl std::fmt::Debug for Run<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Run").field("job", self.job).finish_non_exhaustive()
    }
}

impl<'a> Run<'a> {
    /// Reads the run's inputs, checks that they fit the device, and uploads them. Of the run's folder only the
    /// reference cache is written. `checkpoint` is the state to resume from.
    ///
    /// # Errors
    /// An input cannot be read or does not fit, or the checkpoint belongs to another run.
    pub fn prepare(
        job: &'a Job<'a>,
        checkpoint: Option<Checkpoint>,
        device: &'a mut dyn Device,
        progress: &'a mut Progress,
    ) -> Result<Self> {
        let (scene, settings) = (job.scene, job.settings);
        // Check that the checkpoint belongs to this run.
        let identity = identity(scene, settings, device);
        if let Some(checkpoint) = &checkpoint {
            checkpoint.check(&identity)?;
        }
        // Flatten the scene and check that its finest resolution fits the device.
        let (mut resident, mut params) = Resident::new(scene)?;
        let finest = estimate::finest(&params, &settings.stages, settings.growth);
        device.check_fits(&resident.transport, &finest, settings.optimizer)?;
        let training = training_views(scene, &settings.references);
        let batches =
            Batches::new(settings.batch, &resident.sensors, training.clone(), settings.seed).map_err(|e| anyhow!(e))?;
        if resident.transport.is_pipelined() && settings.batch != BatchRule::AllViews {
            bail!(
                "`{}`: a pipelined `rbvolpath` carries the adjoint image of the iteration before, so that all must look at \
                 the same pixels: set `batch` to \"all\", or `variant` to \"unbiased\" or \"biased\"",
                scene.path.display()
            );
        }
        // Prepare the references, and render them from a target scene if there is one.
        let cache = job.folder.references();
        let chosen = chosen_views(scene, settings, &training)?;
        let (targets, truth) = references::prepare(
            scene,
            &settings.references,
            &training,
            &chosen,
            &mut resident,
            device,
            &cache,
            progress,
        )?;
        let previews = previews(scene, &chosen, &mut resident);
        if job.observer.watches() {
            let spare = crate::resident::sensor_record(&Sensor::default());
            resident.sensors.push(spare);
        }
        // Estimate the memory.
        let (references, largest) = (resident.references.bytes() as u64, batches.largest());
        let estimate = Estimate::new(device, (&resident, &params), (scene, settings), references, &largest);
        progress.note(&estimate.text());
        if let Some(text) = estimate.shortage().filter(|_| device.info().kind == "cpu") {
            progress.note(&text);
        }
        progress.event("memory", json!({ "estimate_bytes": estimate.total() }));
        let terms = terms(settings, &params)?;
        let cluster = Cluster::world();
        cluster.agree(&data_marks(&resident, &params)).map_err(|e| anyhow!(e))?;

        // Upload the scene, with initial values or those of the checkpoint.
        let mut state = State::default();
        match checkpoint {
            None => {
                params
                    .parameters
                    .iter_mut()
                    .filter_map(outside_bounds)
                    .for_each(|text| progress.note(&text));
                device.load(resident, params, settings.optimizer)?;
            }
            Some(mut checkpoint) => {
                state = checkpoint.state().clone();
                let passed = settings.stages.get(..state.stage as usize);
                let path = job.folder.checkpoint();
                let Some(passed) = passed else {
                    let (path, number, last) = (path.display(), state.stage + 1, settings.stages.len() + 1);
                    bail!("{path}: is at stage {number}, but the scene has {last}; start anew with --force");
                };
                let shapes = checkpoint.shapes(&params.parameters)?;
                for (parameter, shape) in params.parameters.iter().zip(&shapes) {
                    let expected = stage::shape_after(parameter, passed);
                    let grows = parameter.kind == Kind::Points && settings.growth.is_some();
                    let possible = |shape: &Shape| {
                        let most = settings.growth.map_or(0, |growth| growth.count as usize);
                        let count = shape.size[0];
                        shape.size[1..] == [1, 1] && shape.channels == expected.channels && (1..=most).contains(&count)
                    };
                    if *shape != expected && !(grows && possible(shape)) {
                        bail!(
                            "{}: {} has {:?} texels of {} channels, expected {:?} of {} at stage {}; start anew with \
                             --force",
                            path.display(),
                            parameter.path,
                            shape.size,
                            shape.channels,
                            expected.size,
                            expected.channels,
                            state.stage + 1
                        );
                    }
                }
                let points = params
                    .parameters
                    .iter()
                    .zip(&shapes)
                    .filter(|(p, _)| p.kind == Kind::Points);
                let mut counts: Vec<usize> = points.map(|(_, shape)| shape.size[0]).collect();
                counts.dedup();
                if counts.len() > 1 {
                    bail!(
                        "{}: holds {} positions of splats, but {} of another of their numbers; start anew with --force",
                        path.display(),
                        counts[0],
                        counts[1]
                    );
                }
                checkpoint.restore_values(&mut params.parameters)?;
                resident.fit(&shapes);
                device.load(resident, params, settings.optimizer)?;
                checkpoint.restore_moments(device, settings.optimizer)?;
            }
        }
        cluster
            .agree(&[("the checkpoint", state_mark(&state, device))])
            .map_err(|e| anyhow!(e))?;
        // A run that goes on has written the truth.
        let truth = if state.iteration == 0 { truth } else { Vec::new() };
        Ok(Self {
            saved: (state.iteration > 0).then_some(state.iteration),
            earlier_seconds: state.seconds,
            job,
            device,
            progress,
            identity,
            state,
            targets,
            truth,
            batches,
            terms,
            previews,
            writer: Writer::default(),
            carries: false,
            last: None,
            saving: None,
            full_told: false,
            begun: Instant::now(),
        })
    }

    /// Runs to the last iteration, or until it is stopped.
    ///
    /// # Errors
    /// Anything that prevents completion. Earlier checkpoints remain, and the message says how to resume.
    pub fn finish(mut self) -> Result<Report> {
        self.complete().map_err(|error| self.explain(error))
    }

    fn complete(&mut self) -> Result<Report> {
        let mut metrics = Metrics::open(&self.job.folder.metrics(), self.state.iteration)?;
        let interrupted = self.advance(&mut metrics);
        self.progress.end();
        self.conclude(interrupted?, &mut metrics)
    }

    /// Iterates to the end; true if the run was stopped earlier.
    fn advance(&mut self, metrics: &mut Metrics) -> Result<bool> {
        let settings = self.job.settings;
        self.progress.begin(self.state.iteration, settings.iterations);
        self.write_references()?;
        if self.state.iteration == 0 {
            self.write_start_and_truth()?;
            self.preview()?;
        }
        let mut last_save = Instant::now();
        while self.state.iteration < settings.iterations {
            self.attend()?;
            if self.job.stop.load(Ordering::SeqCst) {
                return Ok(true);
            }
            self.enter_stages()?;
            self.grow()?;
            let figures = self.iterate()?;
            let added = metrics.add(&figures);
            self.pass_over_lack_of_room(added)?;
            self.progress.iteration(&figures);
            self.job.observer.iterated(&figures);
            self.last = Some(figures);
            self.check_reach()?;
            if settings.output.images_every > 0 && self.state.iteration.is_multiple_of(settings.output.images_every) {
                self.preview()?;
            }
            if last_save.elapsed().as_secs_f32() >= settings.output.checkpoint_seconds {
                let saved = self.save();
                self.pass_over_lack_of_room(saved)?;
                last_save = Instant::now();
            }
        }
        Ok(false)
    }

    /// Asks the observer before an iteration, and waits for as long as it wants.
    fn attend(&mut self) -> Result<()> {
        let begun = Instant::now();
        let mut waited = false;
        while !self.job.stop.load(Ordering::SeqCst) {
            match self.job.observer.attend(self.device)? {
                Wish::GoOn => break,
                Wish::Wait => waited = true,
                Wish::Save => {
                    let saved = self.save().and_then(|()| self.finish_saving());
                    self.pass_over_lack_of_room(saved)?;
                    if self.saved == Some(self.state.iteration) {
                        self.job.observer.saved(self.state.iteration);
                    }
                }
            }
        }
        if waited {
            let pause = begun.elapsed();
            self.begun += pause;
            self.progress.go_on(pause);
        }
        Ok(())
    }

    /// Writes what the report shows beside the textures, maps and numbers that a run finds: their initial values, and
    /// those of the scene that references were rendered from.
    fn write_start_and_truth(&mut self) -> Result<()> {
        let start = self.job.folder.start();
        let mut sought = Vec::new();
        for index in 0..self.device.params().parameters.len() {
            let mut described = self.device.params().parameters[index].without_values();
            if described.tuning.is_some() && is_map(&described) {
                sought.push(described.clone());
                described.values = self.device.read(index, ArrayKind::Values)?;
                write_map(&start, described)?;
            }
        }
        // No later part of the run needs the true values.
        for known in std::mem::take(&mut self.truth) {
            let alike = |p: &Parameter| p.path == known.path && p.kind == known.kind;
            if sought
                .iter()
                .any(|p| alike(p) && p.shape.channels == known.shape.channels)
            {
                write_map(&self.job.folder.truth(), known)?;
            }
        }
        Ok(())
    }

    /// Ignores a failed write if the disk is full: the file is written again later. Reported once.
    fn pass_over_lack_of_room(&mut self, written: Result<()>) -> Result<()> {
        match written {
            Err(error) if room::is_lacking(&error) => {
                if !self.full_told {
                    self.full_told = true;
                    let text = format!(
                        "warning: {error:#}; the run goes on: checkpoint and figures are written when there is room, \
                         pictures are left out until then"
                    );
                    self.progress.alert(&text);
                }
                Ok(())
            }
            written => written,
        }
    }

    /// Changes the resolution if the next iteration begins a new stage; the previous stage's result is saved.
    fn enter_stages(&mut self) -> Result<()> {
        let settings = self.job.settings;
        while let Some(stage) = settings.stages.get(self.state.stage as usize) {
            if self.state.iteration < stage::begins_at(stage, settings.iterations) {
                break;
            }
            let coarse = self.job.folder.stage(self.state.stage + 1);
            room::wait(self.progress, self.job.stop, || {
                parameters::write_all(&coarse, self.device)
            })?;
            stage::enter(self.device, stage, settings.optimizer)?;
            self.state.stage += 1;
            if stage.moments == MomentRule::Reset {
                self.state.steps = 0;
            }
            let parameters = self.device.params().parameters.iter();
            let sizes: Map<_, _> = parameters.filter(|p| p.tuning.is_some()).map(size_of).collect();
            let text = format!(
                "stage {} at iteration {}: {}",
                self.state.stage + 1,
                self.state.iteration,
                sizes_text(&sizes)
            );
            self.progress.note(&text);
            let stage = self.state.stage + 1;
            let event = json!({ "stage": stage, "iteration": self.state.iteration, "sizes": sizes });
            self.progress.event("stage", event);
        }
        Ok(())
    }

    /// Stops a run early if an optimised parameter has received no gradient: probably a mistake in the scene.
    fn check_reach(&self) -> Result<()> {
        let settings = self.job.settings;
        let due = PATIENCE.min(settings.iterations).max(2);
        if self.state.iteration != due || !self.state.learning {
            return Ok(());
        }
        let parameters = self.device.params().parameters.iter();
        let unreached: Vec<&str> = parameters
            .filter(|p| p.tuning.is_some() && !self.state.reached.contains(&p.path))
            // Cameras are held fixed, with a gradient of zero, in the first iterations.
            .filter(|p| !(p.quantity.is_of_views() && self.views_rest()))
            .map(|p| p.path.as_str())
            .collect();
        if unreached.is_empty() {
            return Ok(());
        }
        if let [only] = unreached[..] {
            bail!(
                "{only} received no gradient in {due} iterations: is it seen by any camera, does its initial value leave the \
                 medium transparent or opaque where it is, or does an activation or a clamp hold it? Take it out of \
                 `optimize`, or start it from another `initial` value"
            )
        }
        bail!(
            "{} received no gradient in {due} iterations: are they seen by any camera, do their initial values leave the \
             medium transparent or opaque where they are, or does an activation or a clamp hold them? Take them out of \
             `optimize`, or start them from other `initial` values",
            unreached.join(", ")
        )
    }

    /// Writes the references of the previewed views.
    fn write_references(&self) -> Result<()> {
        if self.job.settings.output.images_every == 0 {
            return Ok(());
        }
        for preview in &self.previews {
            let reference = self.targets.coded_image(self.job.scene, preview.sensor as u32)?;
            if let Some(image) = reference {
                write_reference(self.job.folder, &preview.stem, &image)?;
            }
        }
        Ok(())
    }

    /// Renders the previews that the scene asks for into `images/`.
    fn preview(&mut self) -> Result<()> {
        if self.job.settings.output.images_every == 0 {
            return Ok(());
        }
        let folder = self.job.folder.images();
        let created = create(&folder).map_err(Into::into);
        self.pass_over_lack_of_room(created)?;
        if !folder.is_dir() {
            return Ok(());
        }
        let (iteration, look) = (self.state.iteration, self.look());
        for preview in &self.previews {
            let pixels = render_view(self.device, preview.record, look)?;
            let sensor = &self.job.scene.sensors[preview.sensor];
            let picture = Picture::of(sensor, pixels);
            // A photograph that can no longer be read ends no run on the way.
            let reference = || self.targets.coded_image(self.job.scene, preview.sensor as u32);
            if self.progress.is_json()
                && let Ok(Some(reference)) = reference()
            {
                let mut event = serde_json::to_value(held_out::compare(&sensor.name, &picture, reference))?;
                (event["iteration"], event["held_out"]) = (iteration.into(), sensor.held_out.into());
                self.progress.event("picture", event);
            }
            if let Some((name, splats)) = parameters::splat_values(self.device)? {
                let outlined = with_ellipses(&picture, &splats);
                let stem = folder.join(format!("{iteration:05}_{}-{name}", preview.stem));
                self.writer.submit(outlined, stem)?;
            }
            let stem = folder.join(format!("{iteration:05}_{}", preview.stem));
            self.writer.submit(picture, stem)?;
        }
        match self.writer.left_out() {
            Some(error) => self.pass_over_lack_of_room(Err(error.into())),
            None => Ok(()),
        }
    }

    /// Starts writing a checkpoint, after the previous one is complete.
    fn save(&mut self) -> Result<()> {
        self.finish_saving()?;
        // A run that goes on from the checkpoint does not render the pictures before it again.
        self.writer.catch_up()?;
        self.state.seconds = self.seconds();
        let (path, settings) = (self.job.folder.checkpoint(), self.job.settings);
        let pending = checkpoint::save(
            &path,
            self.device,
            settings.optimizer,
            &self.identity,
            &self.state,
            settings.iterations,
        )?;
        self.saving = Some((pending, self.state.iteration));
        Ok(())
    }

    /// Writes the checkpoint of this iteration, retrying for as long as the disk is full.
    pub(super) fn save_until_there_is_room(&mut self) -> Result<()> {
        let mut wait = Wait::new(self.job.stop);
        loop {
            let begun = match self.saving {
                None if self.saved != Some(self.state.iteration) => self.save(),
                _ => Ok(()),
            };
            match begun.and_then(|()| self.finish_saving()) {
                Err(error) if wait.again(&error, self.progress) => {}
                outcome => return outcome,
            }
        }
    }

    /// Waits until the pending checkpoint is on the disk.
    fn finish_saving(&mut self) -> Result<()> {
        if let Some((pending, iteration)) = self.saving.take() {
            pending.finish()?;
            self.saved = Some(iteration);
            self.progress.event("checkpoint", json!({ "iteration": iteration }));
        }
        Ok(())
    }

    /// Saves the final state; at the end of the run also the result and the held-out views. The result is written
    /// before the checkpoint: on a nearly full disk it is smaller and more valuable.
    fn conclude(&mut self, interrupted: bool, metrics: &mut Metrics) -> Result<Report> {
        let (folder, settings, stop) = (self.job.folder, self.job.settings, self.job.stop);
        if !interrupted {
            let results = folder.results();
            room::wait(self.progress, stop, || {
                parameters::write_all(&results, self.device)?;
                parameters::write_meshes(&results, self.job.scene, self.device)
            })?;
            self.write_cameras()?;
            self.judge_half()?;
        }
        room::wait(self.progress, stop, || metrics.flush())?;
        // The checkpoint is written in the background while held-out views are rendered.
        match self.save() {
            Err(error) if !room::is_lacking(&error) => return Err(error),
            // On a full disk it is retried, and reported, after all other files are written.
            _ => {}
        }
        let (mut held_out, mut refined, mut cameras) = (None, None, None);
        let mut found = Vec::new();
        if !interrupted {
            found = numbers(self.device)?;
            let every = settings.output.images_every;
            if every > 0 && !self.state.iteration.is_multiple_of(every) {
                self.preview()?;
            }
            let (scene, look) = (self.job.scene, self.look());
            cameras = self.take_held_out_along()?;
            let figures = folder.held_out_figures();
            held_out = held_out::judge(
                scene,
                &self.targets,
                self.device,
                (folder, &figures),
                look,
                self.progress,
                stop,
            )?;
            refined = self.judge_refined()?;
        }
        self.writer.finish()?;
        self.save_until_there_is_room()?;
        Ok(Report {
            interrupted: interrupted || self.job.stop.load(Ordering::SeqCst),
            iteration: self.state.iteration,
            last: self.last.take(),
            held_out,
            held_out_refined: refined,
            cameras,
            found,
            seconds: self.seconds(),
        })
    }

    /// After an error, saves what can be saved and adds that to the message.
    fn explain(&mut self, error: anyhow::Error) -> anyhow::Error {
        let at = self.state.iteration;
        if let Some(DeviceError::NotFinite { .. }) = error.downcast_ref() {
            // Entries with finite gradients have completed this step, so the state is consistent and the run can
            // resume after it.
            self.state.iteration += 1;
            self.state.steps += 1;
            let good = self.job.folder.last_good();
            let saved = parameters::write_all(&good, self.device)
                .and_then(|()| self.save())
                .and_then(|()| self.finish_saving());
            let place = match saved {
                Ok(()) => format!("the last good parameters are in {}", good.display()),
                Err(other) => format!("the last good parameters could not be saved either: {other:#}"),
            };
            return anyhow!(
                "in iteration {}: {error:#}; {place}; a lower learning rate may help",
                at + 1
            );
        }
        // An error of writing here is the error being explained, or a consequence of it.
        let _ = self.finish_saving();
        match self.saved {
            Some(iteration) => anyhow!(
                "{error:#}; what was saved before is untouched; go on from the checkpoint of iteration {iteration} by: {}",
                self.job.resume_command
            ),
            None if error.is::<IoError>() => anyhow!("{error:#}; what was saved before is untouched"),
            None => error,
        }
    }

    /// Render settings at the present iteration.
    pub(super) fn look(&self) -> RenderSettings {
        RenderSettings {
            seed: self.job.settings.seed,
            iteration: self.state.iteration,
            spp: self.job.settings.output.spp,
        }
    }

    pub(super) fn seconds(&self) -> f64 {
        self.earlier_seconds + self.begun.elapsed().as_secs_f64()
    }
}

/// What a run and a checkpoint that it goes on from must have in common.
pub fn identity(scene: &Scene, settings: &Optimize, device: &dyn Device) -> Identity {
    let mut files = scene.files();
    if let References::Scene { path, .. } = &settings.references {
        files.push(path);
    }
    Identity {
        scene: scene_fingerprint(&scene.resolved, scene.folder(), &files),
        seed: settings.seed,
        arithmetic: device.arithmetic(),
    }
}

/// A fingerprint of the state and values that a run begins with, by which ranks see that they have read the same
/// checkpoint.
fn state_mark(state: &State, device: &dyn Device) -> String {
    if Cluster::world().is_single() {
        return String::new();
    }
    let mark = Fingerprint::default().with(format!("{state:?}").as_bytes());
    let values = device.params().parameters.iter().map(|p| &p.values[..]);
    values
        .fold(mark, |mark, values| mark.with(bytemuck::cast_slice(values)))
        .text()
}

/// The regularisers with the indices of their parameters; a term applied every n-th iteration gets n times its weight.
fn terms(settings: &Optimize, params: &ParamSet) -> Result<Vec<(Term, u32)>> {
    let term = |r: &Regularizer| {
        let parameter = params.find(&r.parameter);
        let parameter = parameter.ok_or_else(|| anyhow!("optimize.regularizers: `{}` is no parameter", r.parameter))?;
        let every = r.every.max(1);
        let weight = r.weight * every as f32;
        let penalty = r.penalty;
        Ok((
            Term {
                parameter,
                penalty,
                weight,
            },
            every,
        ))
    };
    settings.regularizers.iter().map(term).collect()
}

/// Projects a parameter's initial values onto its bounds, with a warning if any were outside. Steps project only
/// entries with a gradient, so values that no ray reaches would stay out of bounds.
fn outside_bounds(parameter: &mut Parameter) -> Option<String> {
    let count = parameter.project();
    let [low, high] = parameter.tuning?.bounds;
    let path = &parameter.path;
    (count > 0).then(|| {
        format!(
            "warning: initial values of {path} ({count}) lie outside of its bounds {low} to {high}: they start at the \
             nearest bound"
        )
    })
}

fn size_of(parameter: &Parameter) -> (String, Value) {
    (parameter.path.clone(), json!(parameter.shape.size))
}

fn sizes_text(sizes: &Map<String, Value>) -> String {
    let one = |(path, size): (&String, &Value)| {
        let numbers: Vec<String> = size.as_array().into_iter().flatten().map(ToString::to_string).collect();
        // Textures have no third axis.
        let text = numbers.join("×");
        format!("{path} {}", text.strip_suffix("×1").unwrap_or(&text))
    };
    sizes.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// Paths and values of the optimised parameters that are a few numbers.
fn numbers(device: &mut dyn Device) -> Result<Vec<(String, Vec<f32>)>> {
    let is_number = |p: &Parameter| p.kind == Kind::Value && p.tuning.is_some();
    let parameters = device.params().parameters.iter().enumerate();
    let paths: Vec<_> = parameters
        .filter(|(_, p)| is_number(p))
        .map(|(i, p)| (i, p.path.clone()))
        .collect();
    let read = |(index, path)| Ok((path, device.read(index, ArrayKind::Values)?));
    paths.into_iter().map(read).collect()
}
