//! `prbopt optimize`: reconstructs what a scene's `optimize` block names.

use std::iter;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Result, anyhow, bail, ensure};
use clap::Args;
use serde_json::{Value, json};

use super::Outcome;
use super::shared::{
    DeviceArgs, OutputArgs, ServeArgs, SetArgs, announce_page, arguments, check_ranks, command_line, default_folder,
    files_of, is_same_file, subject,
};
use crate::cluster::Cluster;
use crate::device::{self, Device, ranks};
use crate::optimize::{Job, Observer, Report, Run, Wish, identity};
use crate::output::checkpoint::Checkpoint;
use crate::output::fingerprint::scene_fingerprint;
use crate::output::memory::peak_resident_mib;
use crate::output::metrics::Figures;
use crate::output::progress::{self, Progress, decibels, duration};
use crate::output::record::{self, Record, Stated};
use crate::output::run_folder::{Opening, RunFolder};
use crate::output::stored;
use crate::report::Live;
use crate::resident::Resident;
use crate::scene::{Array, Optimize, Rules, Scene, Visited};
use crate::serve::{Page, Reports, Setting};
use crate::tell;

/// Arguments of `prbopt optimize`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    prbopt optimize scenes/two_blobs.json\n  \
    prbopt optimize lego.json --iterations 2000 -o runs/quick\n  \
    prbopt optimize lego.json --resume\n  \
    prbopt optimize lego.json --serve\n  \
    prbopt optimize lego.json --set optimize.loss=l1 --set object.interior.sh_degree=1")]
pub struct OptimizeArgs {
    /// The scene file, or - for standard input
    pub scene: PathBuf,
    /// Iterations, instead of the scene's; stages are fractions of them
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub iterations: Option<u32>,
    /// Go on from the checkpoint in the output folder
    #[arg(long, conflicts_with = "force")]
    pub resume: bool,
    /// Replace the run that the output folder holds
    #[arg(long)]
    pub force: bool,
    /// Folder of the results [default: runs/<scene>]
    #[arg(short, long, value_name = "FOLDER")]
    pub output: Option<PathBuf>,
    /// Seed of all random numbers, instead of the scene's
    #[arg(long)]
    pub seed: Option<u64>,
    #[command(flatten)]
    pub serve: ServeArgs,
    #[command(flatten)]
    pub set: SetArgs,
    #[command(flatten)]
    pub device: DeviceArgs,
    #[command(flatten)]
    pub verbosity: OutputArgs,
}

/// Runs the command.
///
/// # Errors
/// The scene has mistakes, the folder is taken or cannot be written, there is no such device, or the run failed.
pub fn run(args: OptimizeArgs) -> Result<Outcome> {
    // Check the scene and open the run's folder.
    let scene = args.set.load(&args.scene)?;
    let Some(block) = &scene.optimize else {
        bail!(
            "{}: has no block `optimize`, which says what to recover; add one, or render the scene as it is by \
             `prbopt render`",
            args.scene.display()
        );
    };
    let path = args
        .output
        .clone()
        .unwrap_or_else(|| default_folder("runs", &args.scene));
    check_inputs(&args, &scene, &path)?;
    let (mut device, baton) = args.device.open_shared()?;
    check_ranks(&args.scene, &scene, device.as_ref())?;
    let leads = Cluster::world().leads();
    let folder = match leads {
        true => RunFolder::open(&path, opening(&args))?,
        false => RunFolder::at(&path),
    };
    let checkpoint = open_checkpoint(&args, &folder)?;
    let early = match &checkpoint {
        None => stopped_early(&args, &scene, &folder)?,
        Some(_) => None,
    };
    let settings = overridden(block, &args, checkpoint.as_ref(), early.as_ref());
    if let Some(checkpoint) = &checkpoint {
        checkpoint.check(&identity(&scene, &settings, device.as_ref()))?;
    }
    let mut progress = args.verbosity.progress();
    for warning in scene.all_warnings().cloned().chain(folder.warning()) {
        progress.note(&format!("warning: {warning}"));
    }
    if let Some(text) = resume_note(&args, &settings, checkpoint.as_ref()) {
        progress.note(&text);
    }
    // Record where and how the run is made.
    let from = checkpoint.as_ref().map(|c| c.state().iteration);
    let record = Record {
        version: env!("CARGO_PKG_VERSION").into(),
        scene: args.scene.display().to_string(),
        device: device.info().clone(),
        arithmetic: device.arithmetic(),
        seed: settings.seed,
        iterations: settings.iterations,
        // A command that works in the user's shell, not the program's full path.
        command: iter::once("prbopt".to_owned()).chain(arguments()).collect(),
        threads: rayon::current_num_threads(),
        started: record::now(),
    };
    announce(&progress, &record, &path, from);
    let resume_command = resume_command(&args, &path);
    Cluster::world().advise(&format!(
        "go on from {}, if it is there, by: {resume_command}",
        folder.checkpoint().display()
    ));
    let stop = stop_on_signal(&progress, folder.checkpoint(), resume_command.clone())?;
    if !leads {
        return follow(
            &args,
            &scene,
            &settings,
            &folder,
            checkpoint,
            device.as_mut(),
            resume_command,
        );
    }
    let watchers = Watchers {
        page: open_page(&args, &scene, &settings, &folder, &stop)?,
        live: Live::new(&folder),
    };
    if let Some(page) = &watchers.page {
        announce_page(&progress, page);
    }
    let job = Job {
        observer: &watchers,
        scene: &scene,
        settings: &settings,
        folder: &folder,
        stop: &stop,
        resume_command,
    };
    // Run. The previous run is deleted only after all inputs were checked.
    let run = Run::prepare(&job, checkpoint, device.as_mut(), &mut progress)?;
    baton.take();
    if args.force {
        folder.clear()?;
    }
    // The record is the first file of a run, by which all others are known to be its own.
    record::write(&folder.record(), &record, from)?;
    record::write_json(&folder.scene(), &scene.resolved)?;
    let report = run.finish()?;
    let resume_command = job.resume_command;
    // All results are on the disk: a report that cannot be written does not fail the run.
    let page = watchers.live.finish();
    if let Some(page) = watchers.page {
        page.conclude(&parting(&report, &folder, &resume_command));
    }
    if let Err(error) = &page {
        progress.note(&format!("warning: there is no report: {}", super::sentence(error)));
    }
    // Report the outcome.
    if report.interrupted {
        let command = &resume_command;
        progress.event(
            "interrupted",
            json!({ "iteration": report.iteration, "command": command }),
        );
        if args.verbosity.speaks() {
            tell!("stopped after iteration {}; go on with: {command}", report.iteration);
        }
        return Ok(Outcome::Interrupted);
    }
    drop(device);
    if let Some(what) = misplaced(&scene, &folder.results()) {
        progress.note(&format!(
            "warning: at the end of this run {what}; derivatives have left this out since it came there"
        ));
    }
    conclude(&args, &progress, &folder, &report, page.ok().as_deref());
    Ok(Outcome::Done)
}

/// What a run has moved into a medium, in one sentence.
fn misplaced(scene: &Scene, results: &Path) -> Option<String> {
    let moves = |visited: &Visited<&Array>| visited.quantity.moves() && visited.array.tuning.is_some();
    let follows = scene.integrator.rules == Rules::Volpath && !scene.world.media.is_empty();
    if !follows || !scene.visit().iter().any(moves) {
        return None;
    }
    let (mut resident, mut params) = Resident::new(scene).ok()?;
    stored::read_all(results, &mut params).ok()?;
    let shapes: Vec<_> = params.parameters.iter().map(|p| p.shape).collect();
    resident.fit(&shapes);
    resident.settle(scene, &params).err()
}

/// The run of a rank other than 0: prepares the same run as rank 0, then executes the commands that rank 0 sends.
fn follow(
    args: &OptimizeArgs,
    scene: &Scene,
    settings: &Optimize,
    folder: &RunFolder,
    checkpoint: Option<Checkpoint>,
    device: &mut dyn Device,
    resume_command: String,
) -> Result<Outcome> {
    let mut progress = args.verbosity.progress();
    let job = Job {
        observer: &Follower {
            watches: args.serve.serve.is_some(),
        },
        scene,
        settings,
        folder,
        // Only rank 0 decides when the run ends.
        stop: &AtomicBool::new(false),
        resume_command,
    };
    drop(Run::prepare(&job, checkpoint, device, &mut progress)?);
    ranks::follow(device);
    Ok(Outcome::Done)
}

/// The observer of ranks other than 0, which shows nothing.
#[derive(Debug)]
struct Follower {
    /// Whether the observer of rank 0 renders.
    watches: bool,
}

impl Observer for Follower {
    fn iterated(&self, _: &Figures) {}

    fn watches(&self) -> bool {
        self.watches
    }
}

/// The observers of a run: its report, and the page of `--serve`.
#[derive(Debug)]
struct Watchers {
    live: Live,
    page: Option<Page>,
}

impl Observer for Watchers {
    fn iterated(&self, figures: &Figures) {
        self.live.iterated(figures);
        self.page.iter().for_each(|page| page.iterated(figures));
    }

    fn watches(&self) -> bool {
        self.page.as_ref().is_some_and(Observer::watches)
    }

    fn stepping(&self, device: &mut dyn Device) -> device::Result<()> {
        self.page.as_ref().map_or(Ok(()), |page| page.stepping(device))
    }

    fn attend(&self, device: &mut dyn Device) -> device::Result<Wish> {
        self.page.as_ref().map_or(Ok(Wish::GoOn), |page| page.attend(device))
    }

    fn saved(&self, iteration: u32) {
        self.page.iter().for_each(|page| page.saved(iteration));
    }
}

/// The page of `--serve`.
fn open_page(
    args: &OptimizeArgs,
    scene: &Scene,
    settings: &Optimize,
    folder: &RunFolder,
    stop: &Arc<AtomicBool>,
) -> Result<Option<Page>> {
    let Some(address) = args.serve.serve else {
        return Ok(None);
    };
    let setting = Setting {
        title: folder.path().display().to_string(),
        scene,
        subject: subject(scene)?,
        reports: Reports::File(folder.report()),
        state: "running",
        seed: settings.seed,
        iterations: settings.iterations,
        stop: Some(Arc::clone(stop)),
    };
    Page::open(address, setting).map(Some)
}

/// The last message to pages, at the end of a run.
fn parting(report: &Report, folder: &RunFolder, resume_command: &str) -> String {
    let shown = folder.path().display().to_string();
    let view = command_line(["prbopt", "view", &shown]);
    match report.interrupted {
        true => format!(
            "stopped after iteration {}; go on with: {resume_command}",
            report.iteration
        ),
        false => format!(
            "finished after {}; look at it with: {view}",
            progress::iterations(report.iteration)
        ),
    }
}

/// Checks that a run in the folder `path` would neither remove nor write over what the scene is made of.
///
/// # Errors
/// It would.
fn check_inputs(args: &OptimizeArgs, scene: &Scene, path: &Path) -> Result<()> {
    let folder = RunFolder::at(path);
    let mut files = files_of(scene);
    if is_same_file(&folder.scene(), &args.scene) {
        if !args.resume {
            bail!(
                "{}: a run writes a scene.json of its own there, in the place of the one that it is made from; choose \
                 another folder with --output",
                path.display()
            );
        }
        // A run whose scene came from standard input goes on from what it has itself written.
        files.retain(|file| !is_same_file(file, &args.scene));
    }
    folder.check_inputs(&files)
}

fn opening(args: &OptimizeArgs) -> Opening {
    match (args.resume, args.force) {
        (true, _) => Opening::Resume,
        (_, true) => Opening::Force,
        _ => Opening::New,
    }
}

/// The checkpoint to resume from; None if the run was stopped before its first checkpoint, and restarts.
fn open_checkpoint(args: &OptimizeArgs, folder: &RunFolder) -> Result<Option<Checkpoint>> {
    let path = folder.checkpoint();
    if !args.resume {
        return Ok(None);
    }
    if !path.exists() {
        // A run that was stopped early has no checkpoint yet; one with results had a checkpoint, which is lost.
        if folder.results().exists() {
            bail!(
                "{}: is not there, but the results of the run are; restore it, or start anew with --force, which removes them",
                path.display()
            );
        }
        return Ok(None);
    }
    let checkpoint = Checkpoint::open(&path).map_err(|e| anyhow!("{e:#}; start anew with --force"))?;
    let done = checkpoint.state().iteration;
    if let Some(wanted) = args.iterations.filter(|&wanted| wanted < done) {
        bail!(
            "{}: the run has made {}, more than --iterations {wanted}; ask for more, or start anew with --force",
            path.display(),
            progress::iterations(done)
        );
    }
    Ok(Some(checkpoint))
}

/// What the record states of a run that is to go on but has no checkpoint yet; None if there is no such run.
///
/// # Errors
/// The run is of another scene.
fn stopped_early(args: &OptimizeArgs, scene: &Scene, folder: &RunFolder) -> Result<Option<Stated>> {
    let Some(stated) = folder.stated().filter(|_| args.resume) else {
        return Ok(None);
    };
    // As for a checkpoint: what may change from one part of a run to the next is left out.
    let mark = |resolved: &Value| scene_fingerprint(resolved, scene.folder(), &[]);
    let is_same = match record::read_json(&folder.scene()) {
        Some(earlier) => mark(&earlier) == mark(&scene.resolved),
        None => stated.scene == args.scene.display().to_string(),
    };
    ensure!(
        is_same,
        "{}: the run in this folder is of {}, or of another state of it, and has no checkpoint yet; go on with that scene \
         and its options, start anew with --force, or choose another folder with --output",
        folder.record().display(),
        stated.scene
    );
    Ok(Some(stated))
}

/// The scene's block with iterations and seed from the command line, or else from the resumed run.
fn overridden(
    block: &Optimize,
    args: &OptimizeArgs,
    checkpoint: Option<&Checkpoint>,
    early: Option<&Stated>,
) -> Optimize {
    let mut settings = block.clone();
    let before = checkpoint.map(|c| (c.iterations(), c.seed()));
    let before = before.or(early.map(|stated| (stated.iterations, stated.seed)));
    let (iterations, seed) = before.unwrap_or((settings.iterations, settings.seed));
    settings.iterations = args.iterations.unwrap_or(iterations);
    settings.seed = args.seed.unwrap_or(seed);
    settings
}

fn resume_note(args: &OptimizeArgs, settings: &Optimize, checkpoint: Option<&Checkpoint>) -> Option<String> {
    if !args.resume {
        return None;
    }
    let Some(checkpoint) = checkpoint else {
        return Some("there is no checkpoint yet: the run begins anew".into());
    };
    let mut text = format!("going on from iteration {}", checkpoint.state().iteration);
    if settings.iterations != checkpoint.iterations() {
        let (was, is) = (checkpoint.iterations(), settings.iterations);
        let is = progress::iterations(is);
        text += &format!("; the run is now {is} long instead of {was}, its schedule is stretched from here");
    }
    Some(text)
}

fn announce(progress: &Progress, record: &Record, path: &Path, from: Option<u32>) {
    let device = &record.device;
    progress.note(&format!(
        "{} on {} ({}), results in {}",
        record.scene,
        device.name,
        device.detail,
        path.display()
    ));
    let event = json!({
        "version": record.version, "scene": record.scene, "device": device, "seed": record.seed,
        "iterations": record.iterations, "from_iteration": from.unwrap_or(0), "output": path.display().to_string(),
    });
    progress.event("start", event);
}

/// The first Ctrl-C stops the run after its present iteration, a second one ends the program at once, which is safe
/// because files are replaced atomically.
fn stop_on_signal(progress: &Progress, checkpoint: PathBuf, resume: String) -> Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&stop);
    if !Cluster::world().leads() {
        // Some MPI launchers send signals to all ranks; rank 0 decides.
        ctrlc::set_handler(|| {}).map_err(|e| anyhow!("Ctrl-C cannot be caught: {e}"))?;
        return Ok(stop);
    }
    let say = progress.speaker();
    let handler = move || {
        if flag.swap(true, Ordering::SeqCst) {
            std::process::exit(130);
        }
        if !Cluster::world().is_single() {
            tell!(
                "\nasked to end; if a rank was lost, the run goes on from {} by: {resume}",
                checkpoint.display()
            );
        }
        say("stopping when what is at work is done and saved; once more to stop at once");
    };
    ctrlc::set_handler(handler).map_err(|e| anyhow!("Ctrl-C cannot be caught: {e}"))?;
    Ok(stop)
}

/// The scene's path for a later command. A scene from standard input was saved in the run's folder, changes included.
fn scene_words(args: &OptimizeArgs, path: &Path) -> Vec<String> {
    if args.scene == Path::new("-") {
        return vec![RunFolder::at(path).scene().display().to_string()];
    }
    let mut words = vec![args.scene.display().to_string()];
    words.extend(args.set.words());
    words
}

/// The command that resumes this run.
fn resume_command(args: &OptimizeArgs, path: &Path) -> String {
    let mut words: Vec<String> = ["prbopt", "optimize"].map(String::from).to_vec();
    words.extend(scene_words(args, path));
    words.push("--resume".into());
    if args.output.is_some() {
        words.extend(["-o".into(), path.display().to_string()]);
    }
    words.extend(args.device.words());
    command_line(words.iter().map(String::as_str))
}

/// Prints the result and suggests next commands.
fn conclude(args: &OptimizeArgs, progress: &Progress, folder: &RunFolder, report: &Report, page: Option<&Path>) {
    let last = report.last.as_ref();
    let held_out = report.held_out.as_ref();
    let event = json!({
        "iteration": report.iteration, "seconds": report.seconds,
        "loss": last.map(|f| f.loss), "psnr": last.and_then(|f| f.psnr),
        "held_out_mean_psnr": held_out.and_then(|h| h.mean_psnr),
        "held_out_mean_ssim": held_out.and_then(|h| h.mean_ssim),
        "held_out_refined_mean_psnr": report.held_out_refined.as_ref().and_then(|h| h.mean_psnr),
        "found": report.found.iter().map(|(path, values)| (path.clone(), json!(values))).collect::<serde_json::Map<_, _>>(),
        "results": folder.results().display().to_string(), "report": page.map(|page| page.display().to_string()),
        "peak_rss_mib": peak_resident_mib(),
    });
    progress.event("done", event);
    if !args.verbosity.speaks() {
        return;
    }
    tell!(
        "{} in {}",
        progress::iterations(report.iteration),
        duration(report.seconds)
    );
    if let Some(figures) = last {
        tell!(
            "  last batch: loss {:.4e}, PSNR {}",
            figures.loss,
            decibels(figures.psnr)
        );
    }
    tell_found(folder, &report.found);
    if let Some(held_out) = held_out {
        for view in &held_out.views {
            tell!(
                "  {}: PSNR {}, SSIM {}",
                view.name,
                decibels(view.psnr),
                similarity(view.ssim)
            );
        }
        let count = held_out.views.len();
        tell!(
            "  held-out views ({count}): mean PSNR {}, mean SSIM {}",
            decibels(held_out.mean_psnr),
            similarity(held_out.mean_ssim)
        );
    }
    if let Some(refined) = &report.held_out_refined {
        tell!(
            "  their cameras refined with everything else as it is: mean PSNR {}, mean SSIM {}",
            decibels(refined.mean_psnr),
            similarity(refined.mean_ssim)
        );
    }
    if let Some(cameras) = &report.cameras {
        tell!("  {}", cameras.text());
    }
    let results = folder.results();
    tell!("  results: {}", results.display());
    if let Some(page) = page {
        tell!("  report: {}", page.display());
    }
    let (scene, results) = (scene_words(args, folder.path()), results.display().to_string());
    let words = ["--parameters", &results, "--sensor", "all"];
    let scene = scene.iter().map(String::as_str);
    let next = command_line(["prbopt", "render"].into_iter().chain(scene).chain(words));
    tell!("next: {next}");
}

/// Prints the numbers that were found, beside the true ones where these are known.
fn tell_found(folder: &RunFolder, found: &[(String, Vec<f32>)]) {
    /// Largest number of parameters that are printed; the report has all.
    const MOST: usize = 12;
    for (path, values) in found.iter().take(MOST) {
        let truth = stored::read_numbers(&folder.truth(), path);
        let right = truth.map_or_else(String::new, |truth| format!(" (right: {})", numbers(&truth)));
        tell!("  {path}: {}{right}", numbers(values));
    }
    if found.len() > MOST {
        tell!("  and {} parameters more", found.len() - MOST);
    }
}

fn numbers(values: &[f32]) -> String {
    let text = |v: &f32| match v.abs() {
        0.0 | 1e-2..1e5 => format!("{v:.4}"),
        _ => format!("{v:.3e}"),
    };
    values.iter().map(text).collect::<Vec<_>>().join(", ")
}

fn similarity(ssim: Option<f64>) -> String {
    ssim.map_or_else(|| "not defined".into(), |value| format!("{value:.4}"))
}
