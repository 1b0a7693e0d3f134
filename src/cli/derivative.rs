//! What `prbopt gradient` and `prbopt backpropagate` share: the view, the values, and the output folder.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::Args;

use super::shared::{DeviceArgs, OutputArgs, SetArgs, default_folder, read_parameters, sensor_index};
use crate::device::{Batch, Keys};
use crate::gradcheck::{Options, Setup};
use crate::scene::Scene;
use crate::transport::rays::pixel::PixelTable;
use crate::transport::rays::random::{Pass, pass_key};

/// Flags of commands that write derivatives of one view.
#[derive(Debug, Args)]
pub struct DerivativeArgs {
    /// The view: its sensor's name, or its index from 0
    #[arg(long, value_name = "INDEX|NAME", default_value = "0")]
    pub sensor: String,
    /// Samples a pixel
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=1 << 16))]
    pub spp: u32,
    /// Folder with values of parameters, such as `final` of a run, at any resolution
    #[arg(long, value_name = "FOLDER")]
    pub parameters: Option<PathBuf>,
    /// Folder of what is written [default: gradients/<scene>]
    #[arg(short, long, value_name = "FOLDER")]
    pub output: Option<PathBuf>,
    /// Seed of all random numbers
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    #[command(flatten)]
    pub set: SetArgs,
    #[command(flatten)]
    pub device: DeviceArgs,
    #[command(flatten)]
    pub verbosity: OutputArgs,
}

impl DerivativeArgs {
    /// Reads the scene, to be differentiated by the parameters in `named`, and prints its warnings.
    ///
    /// # Errors
    /// The scene has mistakes, or there is no derivative by one of them.
    pub(super) fn load(&self, path: &Path, named: &[String]) -> Result<Scene> {
        let scene = self.set.load_asking(path, named)?;
        let progress = self.verbosity.progress();
        for warning in scene.all_warnings() {
            progress.note(&format!("warning: {warning}"));
        }
        Ok(scene)
    }

    /// The scene with the values of `--parameters`, to be differentiated by `parameters`; if that is empty, by those of
    /// its block `optimize`, or else by all.
    ///
    /// # Errors
    /// There is no such parameter, a file cannot be read, or the values do not fit.
    pub(super) fn setup(&self, scene: &Scene, parameters: Vec<String>) -> Result<Setup> {
        let options = Options {
            parameters,
            seed: self.seed,
            ..Options::default()
        };
        let mut setup = Setup::new(scene, &options)?;
        if let Some(folder) = &self.parameters {
            read_parameters(folder, scene, &mut setup.params)?;
            let shapes: Vec<_> = setup.params.parameters.iter().map(|p| p.shape).collect();
            setup.resident.fit(&shapes);
            setup.resident.place_views(&setup.params);
            if let Err(what) = setup.resident.settle(scene, &setup.params) {
                bail!("{}: {what}", folder.display());
            }
        }
        Ok(setup)
    }

    /// The index of the view's sensor, and all of its pixels.
    ///
    /// # Errors
    /// There is no such sensor, or it has too many pixels.
    pub(super) fn view(&self, scene: &Scene, setup: &Setup) -> Result<(usize, Batch)> {
        let sensor = sensor_index(scene, &self.sensor)?;
        let table = PixelTable::new(&setup.resident.sensors, &[sensor as u32]).with_context(|| {
            format!(
                "--sensor {}: has more than 2³² pixels; make its film smaller",
                self.sensor
            )
        })?;
        Ok((sensor, Batch { table, drawn: None }))
    }

    /// The random numbers of a pass.
    pub(super) fn keys(&self, pass: Pass) -> Keys {
        Keys {
            objective: pass_key(self.seed, 0, Pass::Objective),
            pass: pass_key(self.seed, 0, pass),
        }
    }

    /// Where files go: `--output`, or a folder named after the scene's file.
    pub(super) fn folder(&self, scene: &Path) -> PathBuf {
        let default = || default_folder("gradients", scene);
        self.output.clone().unwrap_or_else(default)
    }
}
