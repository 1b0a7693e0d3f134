//! `prbopt view`: the page of a run that is over.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Result, anyhow, bail};
use clap::Args;

use super::Outcome;
use super::shared::{DeviceArgs, OutputArgs, SetArgs, announce_page, read_parameters, subject};
use crate::kernels::optimizer::Optimizer;
use crate::output::checkpoint::Checkpoint;
use crate::output::run_folder::RunFolder;
use crate::params::ParamSet;
use crate::report;
use crate::resident::{Resident, sensor_record};
use crate::scene::{Scene, Sensor};
use crate::serve::{Page, Reports, Setting};

/// Arguments of `prbopt view`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    prbopt view runs/two_blobs\n  \
    prbopt view runs/two_blobs --serve=0.0.0.0:8000")]
pub struct ViewArgs {
    /// Folder of a run
    #[arg(value_name = "RUN")]
    pub run: PathBuf,
    /// Where to serve the page [default: 127.0.0.1:7878, or the next free port]
    #[arg(long, value_name = "ADDRESS")]
    pub serve: Option<std::net::SocketAddr>,
    #[command(flatten)]
    pub device: DeviceArgs,
    #[command(flatten)]
    pub verbosity: OutputArgs,
}

/// Runs the command, until Ctrl-C.
///
/// # Errors
/// The folder holds no run, or one without a result or checkpoint; there is no such device, or the address is taken.
pub fn run(args: ViewArgs) -> Result<Outcome> {
    let page = report::page(std::slice::from_ref(&args.run))?;
    let folder = RunFolder::at(&args.run);
    let scene = SetArgs::default().load(&folder.scene())?;
    let (resident, params) = recovered(&folder, &scene)?;
    let mut device = args.device.open()?;
    device.load(resident, params, Optimizer::Sgd { momentum: 0.0 })?;
    let setting = Setting {
        title: args.run.display().to_string(),
        scene: &scene,
        subject: subject(&scene)?,
        reports: Reports::Page(page.into_bytes().into()),
        state: if folder.results().is_dir() {
            "finished"
        } else {
            "stopped"
        },
        seed: 0,
        iterations: 0,
        stop: None,
    };
    let page = Page::open(args.serve, setting)?;
    announce_page(&args.verbosity.progress(), &page);
    let stop = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&stop);
    ctrlc::set_handler(move || flag.store(true, Ordering::SeqCst))
        .map_err(|e| anyhow!("Ctrl-C cannot be caught: {e}"))?;
    page.show(device.as_mut(), &stop)?;
    page.end("the program that served this page has ended");
    Ok(Outcome::Done)
}

/// The scene with the values of a run's result, or else of its last checkpoint. A sensor for the page follows those of
/// the scene.
fn recovered(folder: &RunFolder, scene: &Scene) -> Result<(Resident, ParamSet)> {
    let (mut resident, mut params) = Resident::new(scene)?;
    let checkpoint = folder.checkpoint();
    if folder.results().is_dir() {
        read_parameters(&folder.results(), scene, &mut params)?;
    } else if checkpoint.is_file() {
        Checkpoint::open(&checkpoint)?.restore_values(&mut params.parameters)?;
    } else {
        bail!(
            "{}: holds neither a result nor a checkpoint yet; look at a run at work by `prbopt optimize --serve`",
            folder.path().display()
        );
    }
    let shapes: Vec<_> = params.parameters.iter().map(|p| p.shape).collect();
    resident.fit(&shapes);
    // Without tuned parameters no memory is allocated for gradients.
    params.parameters.iter_mut().for_each(|p| p.tuning = None);
    resident.sensors.push(sensor_record(&Sensor::default()));
    Ok((resident, params))
}
