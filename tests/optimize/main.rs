//! The loop, on a device that records its calls, and its parts on the CPU.

mod growth;
mod parts;
mod resume;

use std::path::Path;
use std::sync::atomic::AtomicBool;

use anyhow::Result;

use prbopt::device::gauge::Gauge;
use prbopt::device::{
    self, ArrayKind, Batch, Device, DeviceError, DeviceInfo, Keys, LossValue, ReplayStats, Step, Term,
};
use prbopt::kernels::loss::Loss;
use prbopt::kernels::optimizer::Optimizer;
use prbopt::optimize::{Job, Report, Run};
use prbopt::output::checkpoint::Checkpoint;
use prbopt::output::progress::{Progress, Style};
use prbopt::output::run_folder::{Opening, RunFolder};
use prbopt::params::{Kind, ParamSet, Shape, Tuning};
use prbopt::resident::Resident;
use prbopt::resident::layout::SensorRecord;
use prbopt::scene::{
    Array, BatchRule, Decay, DensityActivation, MomentRule, Optimize, OutputRule, Penalty, RadianceField, References,
    Regularizer, Scene, Schedule, Sensor, Source, Stage,
};

/// A mock device: keeps parameters and moments, and records its calls.
struct Diary {
    info: DeviceInfo,
    resident: Resident,
    params: ParamSet,
    moments: Vec<Vec<f32>>,
    lines: Vec<String>,
    steps: Vec<Step>,
    keys: Vec<Keys>,
    terms: Vec<Vec<f32>>,
    pixels: u32,
    /// The step, counted from 1, that fails, and its error.
    failure: Option<(usize, fn() -> DeviceError)>,
    /// Norm of the gradient of the second parameter.
    second_norm: f64,
    /// Whether steps change values.
    moves: bool,
    arithmetic: &'static str,
}

impl Diary {
    fn new() -> Self {
        Self {
            info: DeviceInfo {
                kind: "diary",
                name: String::new(),
                detail: String::new(),
            },
            resident: Resident::empty(),
            params: ParamSet::default(),
            moments: Vec::new(),
            lines: Vec::new(),
            steps: Vec::new(),
            keys: Vec::new(),
            terms: Vec::new(),
            pixels: 0,
            failure: None,
            second_norm: 2.0,
            moves: true,
            arithmetic: "diary",
        }
    }

    fn count(&self, line: &str) -> usize {
        self.lines.iter().filter(|l| *l == line).count()
    }
}

impl Device for Diary {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn gauge(&self) -> Gauge {
        Gauge::default()
    }

    fn arithmetic(&self) -> String {
        self.arithmetic.into()
    }

    fn load(&mut self, resident: Resident, params: ParamSet, _: Optimizer) -> device::Result<()> {
        self.moments = params.parameters.iter().map(|p| vec![0.0; p.shape.len()]).collect();
        (self.resident, self.params) = (resident, params);
        Ok(())
    }

    fn sensors(&self) -> &[SensorRecord] {
        &self.resident.sensors
    }
    fn replace_sensor(&mut self, sensor: u32, record: SensorRecord) {
        self.resident.sensors[sensor as usize] = record;
    }

    fn is_pipelined(&self) -> bool {
        self.resident.transport.is_pipelined()
    }

    fn params(&self) -> &ParamSet {
        &self.params
    }

    fn render(&mut self, batch: &Batch, keys: Keys, spp: u32) -> device::Result<()> {
        self.pixels = batch.pixels();
        self.keys.push(keys);
        self.lines.push(format!("render {spp}"));
        Ok(())
    }

    fn image(&mut self) -> device::Result<Vec<[f32; 4]>> {
        Ok(vec![[0.5, 0.5, 0.5, 0.0]; self.pixels as usize])
    }

    fn render_aov(&mut self, _: &Batch, _: Keys, _: u32, _: u32) -> device::Result<()> {
        Ok(())
    }
    fn set_adjoint(&mut self, _: &Batch, _: Keys, _: &[[f32; 3]]) -> device::Result<()> {
        Ok(())
    }
    fn loss(&mut self, _: &Batch, keys: Keys, _: Loss) -> device::Result<LossValue> {
        self.keys.push(keys);
        Ok(LossValue {
            loss: 1.0,
            mse: 0.01,
            masked: 0,
        })
    }

    fn backpropagate(&mut self, _: &Batch, keys: Keys, spp: u32) -> device::Result<ReplayStats> {
        self.keys.push(keys);
        self.lines.push(format!("backpropagate {spp}"));
        Ok(ReplayStats::default())
    }

    fn replace(&mut self, _: Vec<device::Replacement>) -> device::Result<()> {
        unreachable!("the scene has no splats")
    }

    fn regularise(&mut self, terms: &[Term]) -> device::Result<f64> {
        self.terms.push(terms.iter().map(|t| t.weight).collect());
        Ok(0.5)
    }

    fn step(&mut self, step: &Step) -> device::Result<Vec<f64>> {
        self.steps.push(*step);
        self.lines.push("step".into());
        for (parameter, moments) in self.params.parameters.iter_mut().zip(&mut self.moments) {
            if self.moves {
                parameter.values.iter_mut().for_each(|v| *v += step.rate);
            }
            moments.iter_mut().for_each(|m| *m += 1.0);
        }
        match self.failure {
            Some((at, error)) if at == self.steps.len() => Err(error()),
            _ => Ok(vec![1.0, self.second_norm]),
        }
    }

    fn rebuild(&mut self) -> device::Result<()> {
        self.lines.push("rebuild".into());
        Ok(())
    }

    fn resample(&mut self, sizes: &[(usize, [usize; 3])], keep_moments: bool) -> device::Result<()> {
        self.lines.push(format!("resample {sizes:?} {keep_moments}"));
        for &(index, size) in sizes {
            let parameter = &mut self.params.parameters[index];
            parameter.shape.size = size;
            parameter.values.resize(parameter.shape.len(), 7.0);
            self.moments[index] = vec![0.0; parameter.shape.len()];
        }
        Ok(())
    }

    fn clear_gradients(&mut self) -> device::Result<()> {
        Ok(())
    }

    fn read(&mut self, parameter: usize, what: ArrayKind) -> device::Result<Vec<f32>> {
        Ok(match what {
            ArrayKind::Moment(_) => self.moments[parameter].clone(),
            _ => self.params.parameters[parameter].values.clone(),
        })
    }

    fn write(&mut self, parameter: usize, what: ArrayKind, values: &[f32]) -> device::Result<()> {
        match what {
            ArrayKind::Moment(_) => self.moments[parameter] = values.to_vec(),
            _ => self.params.parameters[parameter].values = values.to_vec(),
        }
        Ok(())
    }

    fn in_a_row(&mut self, work: &mut device::Work) -> device::Result<()> {
        work(self)
    }

    fn memory(&self) -> u64 {
        0
    }
}

fn array(path: &str, channels: usize) -> Array {
    Array {
        path: path.into(),
        kind: Kind::Grid,
        shape: Shape {
            size: [2, 2, 2],
            channels,
        },
        source: Source::Fill(vec![0.0]),
        tuning: Some(Tuning {
            learning_rate: 0.1,
            bounds: [-1000.0, 1000.0],
            smoothing: 0.0,
        }),
    }
}

/// A scene of one 2×2 view with two grids, and a run of 40 iterations with a stage in the middle.
fn scene() -> Scene {
    let field = RadianceField {
        to_world: glam::Affine3A::IDENTITY,
        sigma_t: array("sigma_t", 1),
        sh_coeffs: array("sh_coeffs", 3),
        sh_degree: 0,
        density_activation: DensityActivation::Relu,
        color_activation: Default::default(),
        step: 1.0,
        stop: 0.0,
    };
    let rule = Optimize {
        iterations: 40,
        spp: 3,
        spp_grad: 5,
        batch: BatchRule::AllViews,
        loss: Loss::L2,
        optimizer: Optimizer::Sgd { momentum: 0.5 },
        schedule: Schedule {
            decay: Decay::Constant,
            warm_up: 4,
        },
        stages: vec![Stage {
            at: 0.5,
            upsample: 2,
            moments: MomentRule::Reset,
            spp: 2,
            spp_grad: 4,
        }],
        regularizers: vec![Regularizer {
            parameter: "sigma_t".into(),
            penalty: Penalty::TotalVariation,
            weight: 0.25,
            every: 4,
        }],
        growth: None,
        views: prbopt::scene::ViewRule {
            start: 0.0,
            held_out_iterations: 0,
            held_out_rate: 1e-3,
        },
        references: References::Constant([0.5; 3]),
        seed: 3,
        output: OutputRule {
            images_every: 0,
            sensors: Vec::new(),
            checkpoint_seconds: 1e6,
            spp: 1,
        },
    };
    Scene {
        path: "scene.json".into(),
        field: Some(field),
        sensors: vec![Sensor {
            name: "view".into(),
            width: 2,
            height: 2,
            ..Sensor::default()
        }],
        optimize: Some(rule),
        ..Scene::default()
    }
}

fn drive(scene: &Scene, device: &mut Diary, folder: &Path, resume: bool, stop: bool) -> Result<Report> {
    let folder = RunFolder::open(folder, Opening::Resume)?;
    let checkpoint = resume.then(|| Checkpoint::open(&folder.checkpoint())).transpose()?;
    let stop = AtomicBool::new(stop);
    let job = Job {
        observer: &(),
        scene,
        settings: scene.optimize.as_ref().expect("given"),
        folder: &folder,
        stop: &stop,
        resume_command: "prbopt optimize scene.json --resume".into(),
    };
    let mut progress = Progress::new(Style::Quiet);
    Run::prepare(&job, checkpoint, device, &mut progress)?.finish()
}

#[test]
fn an_iteration_is_its_passes_in_order_with_keys_of_their_own() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut device = Diary::new();
    let report = drive(&scene(), &mut device, folder.path(), false, false).expect("runs");
    assert_eq!((report.iteration, report.interrupted), (40, false));
    assert_eq!(device.lines[..4], ["render 3", "backpropagate 5", "step", "rebuild"]);
    let [primal, loss, adjoint] = device.keys[..3] else {
        panic!("three passes")
    };
    assert_eq!(primal, loss);
    assert_eq!(
        primal.objective, adjoint.objective,
        "what defines the objective is shared"
    );
    assert_ne!(primal.pass, adjoint.pass, "shared noise would bias the gradient");
    let mut passes: Vec<_> = device.keys.iter().map(|k| k.pass).collect();
    passes.sort_unstable();
    passes.dedup();
    assert_eq!(passes.len(), 80, "every pass of every iteration has its own");
    assert_eq!(
        device.terms,
        vec![vec![1.0]; 10],
        "every fourth iteration, at four times the weight"
    );
    let rates: Vec<f32> = device.steps[..5].iter().map(|s| s.rate).collect();
    assert_eq!(rates, [0.25, 0.5, 0.75, 1.0, 1.0]);
}

#[test]
fn a_stage_resamples_all_grids_and_starts_the_count_of_steps_anew() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut device = Diary::new();
    drive(&scene(), &mut device, folder.path(), false, false).expect("runs");
    assert_eq!((device.count("render 3"), device.count("render 2")), (20, 20));
    assert_eq!(
        (device.count("backpropagate 5"), device.count("backpropagate 4")),
        (20, 20)
    );
    assert_eq!(device.count("resample [(0, [4, 4, 4]), (1, [4, 4, 4])] false"), 1);
    let counts: Vec<u32> = device.steps.iter().map(|s| s.count).collect();
    let expected: Vec<u32> = (1..=20).chain(1..=20).collect();
    assert_eq!(counts, expected);
    let coarse = prbopt::io::vol::read(&folder.path().join("stages/1/sigma_t.vol")).expect("written");
    assert_eq!(coarse.size, [2, 2, 2]);
    let mut kept = scene();
    kept.optimize.as_mut().expect("given").stages[0].moments = MomentRule::Resample;
    let mut device = Diary::new();
    drive(&kept, &mut device, folder.path(), false, false).expect("runs");
    let counts: Vec<u32> = device.steps.iter().map(|s| s.count).collect();
    assert_eq!(counts, (1..=40).collect::<Vec<_>>());
}

#[test]
fn a_run_goes_on_from_where_it_stopped() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let lost = || DeviceError::Lost("unplugged".into());
    let mut scene = scene();
    scene.optimize.as_mut().expect("given").output.checkpoint_seconds = 0.0;
    let mut device = Diary::new();
    device.failure = Some((31, lost));
    let error = drive(&scene, &mut device, folder.path(), false, false)
        .expect_err("lost")
        .to_string();
    assert!(error.contains("unplugged") && error.contains("iteration 30"), "{error}");
    assert!(error.contains("prbopt optimize scene.json --resume"), "{error}");
    let mut second = Diary::new();
    drive(&scene, &mut second, folder.path(), true, false).expect("goes on");
    assert_eq!(second.steps.len(), 10);
    assert_eq!(
        second.steps[0].count, 11,
        "the count since the stage, not since the resumption"
    );
    assert_eq!(second.params.parameters[0].shape.size, [4, 4, 4]);
    assert_eq!(second.moments[1][0], 20.0, "moments are restored");
    let mut whole = Diary::new();
    drive(&scene, &mut whole, &folder.path().join("whole"), false, false).expect("runs");
    assert_eq!(whole.params, second.params);
}

#[test]
fn a_stopped_run_saves_and_does_no_more() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut device = Diary::new();
    let report = drive(&scene(), &mut device, folder.path(), false, true).expect("stops");
    assert!(report.interrupted && device.steps.is_empty());
    assert!(folder.path().join("checkpoint.safetensors").exists() && !folder.path().join("final").exists());
}

#[test]
fn a_gradient_that_is_no_number_stops_the_run_after_saving() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut device = Diary::new();
    device.failure = Some((8, || DeviceError::NotFinite {
        path: "sigma_t".into(),
        texel: [1, 0, 1],
        channel: 0,
    }));
    let error = drive(&scene(), &mut device, folder.path(), false, false)
        .expect_err("not finite")
        .to_string();
    for words in ["in iteration 8", "sigma_t", "[1, 0, 1]", "last_good"] {
        assert!(error.contains(words), "`{words}` is missing in: {error}");
    }
    assert!(folder.path().join("last_good/sigma_t.vol").exists());
    let saved = Checkpoint::open(&folder.path().join("checkpoint.safetensors")).expect("saved");
    assert_eq!((saved.state().iteration, saved.state().steps), (8, 8));
    assert_eq!((saved.seed(), saved.iterations()), (3, 40));
}

#[test]
fn a_parameter_without_gradient_is_an_error_that_names_it() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut device = Diary::new();
    device.second_norm = 0.0;
    let error = drive(&scene(), &mut device, folder.path(), false, false)
        .expect_err("unreached")
        .to_string();
    assert!(
        error.contains("sh_coeffs received no gradient in 20 iterations"),
        "{error}"
    );
    assert_eq!(device.steps.len(), 20);
}

/// Stages and times in the lines of metrics: parts within the whole, all of them within the run's seconds.
#[test]
fn figures_tell_the_stage_and_times_that_add_up() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    drive(&scene(), &mut Diary::new(), folder.path(), false, false).expect("runs");
    let lines = prbopt::output::metrics::read(&folder.path().join("metrics.jsonl")).expect("written");
    let stages: Vec<u32> = lines.iter().map(|line| line.stage).collect();
    assert_eq!(stages, [[1; 20], [2; 20]].concat());
    let iterations: Vec<u32> = lines.iter().map(|line| line.iteration).collect();
    assert_eq!(iterations, (1..=40).collect::<Vec<_>>());
    let mut all = 0.0;
    for line in &lines {
        let ms = line.ms;
        let parts = ms.primal + ms.loss + ms.adjoint + ms.regularise + ms.step + ms.rebuild;
        assert!(parts > 0.0 && parts <= ms.total, "{ms:?}");
        all += ms.total;
        assert!(all <= 1e3 * line.seconds, "{all} ms of {} s", line.seconds);
        assert!((line.psnr.expect("an error of 0.01") - 20.0).abs() < 1e-9 && line.loss == 1.0);
    }
    let rates: Vec<f64> = lines[..5]
        .iter()
        .filter_map(|line| line.learning_rates["sigma_t"].as_f64())
        .collect();
    for (found, expected) in rates.iter().zip([0.025, 0.05, 0.075, 0.1, 0.1]) {
        assert!((found - expected).abs() < 1e-8, "{rates:?}");
    }
    let norms = &lines[0].gradient_norms;
    assert_eq!(
        (norms["sigma_t"].as_f64(), norms["sh_coeffs"].as_f64()),
        (Some(1.0), Some(2.0))
    );
    let penalties: Vec<f64> = lines[..5].iter().map(|line| line.penalty).collect();
    assert_eq!(penalties, [0.5, 0.0, 0.0, 0.0, 0.5]);
}

/// A view that is held out is rendered, and compared with a reference that is written beside it: a half against a
/// quarter, both coded.
#[test]
fn held_out_views_are_judged_and_written() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut scene = scene();
    let mut other = scene.sensors[0].clone();
    (other.name, other.held_out) = ("other".into(), true);
    scene.sensors.push(other);
    scene.optimize.as_mut().expect("given").references = References::Constant([0.25; 3]);
    let mut device = Diary::new();
    let report = drive(&scene, &mut device, folder.path(), false, false).expect("runs");
    let held_out = report.held_out.expect("one view");
    let difference = f64::from(prbopt::io::srgb::encode(0.5) - prbopt::io::srgb::encode(0.25));
    let psnr = -20.0 * difference.log10();
    assert!(
        (held_out.mean_psnr.expect("they differ") - psnr).abs() < 1e-4,
        "{held_out:?}"
    );
    assert_eq!((held_out.views.len(), &held_out.views[0].name[..]), (1, "other"));
    let read = |name: &str| prbopt::io::image::read(&folder.path().join(name)).expect("written").0;
    assert_eq!(read("held_out/other.exr").data, vec![0.5; 12]);
    let reference = read("references/other.png");
    assert_eq!((reference.width, reference.height, reference.channels), (2, 2, 3));
    let coded = prbopt::io::srgb::encode(0.25);
    assert!(reference.data.iter().all(|v| (v - coded).abs() <= 0.5 / 255.0));
    let written: serde_json::Value =
        serde_json::from_slice(&std::fs::read(folder.path().join("held_out.json")).expect("written")).expect("JSON");
    assert_eq!(written, serde_json::to_value(&held_out).expect("JSON"));
}
