//! `prbopt backpropagate`: sends an adjoint image, the derivatives of anything by the pixels of a view, through the scene.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::Args;
use serde_json::json;

use super::Outcome;
use super::shared::{DeviceArgs, OutputArgs, SetArgs, default_folder, read_parameters, sensor_index};
use crate::device::{Batch, Keys};
use crate::gradcheck::{Options, Setup};
use crate::io::image;
use crate::kernels::optimizer::Optimizer;
use crate::output::parameters::write_gradients;
use crate::output::progress::print_line;
use crate::scene::Sensor;
use crate::transport::rays::pixel::PixelTable;
use crate::transport::rays::random::{Pass, pass_key};

/// Arguments of `prbopt backpropagate`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    prbopt backpropagate scenes/smoke_small.json --adjoint delta.exr --spp 64\n  \
    prbopt backpropagate lego.json --sensor r_8 --adjoint r_8.exr --parameters runs/lego/final -o gradients")]
pub struct BackpropagateArgs {
    /// The scene file, or - for standard input
    pub scene: PathBuf,
    /// An EXR image of the view's size: the derivatives of whatever is differentiated by its red, green and blue values
    #[arg(long, value_name = "FILE")]
    pub adjoint: PathBuf,
    /// The view: its sensor's name, or its index from 0
    #[arg(long, value_name = "INDEX|NAME", default_value = "0")]
    pub sensor: String,
    /// Path of a parameter to differentiate by; may be repeated [default: those of the block `optimize`, or else all]
    #[arg(long, value_name = "PATH")]
    pub parameter: Vec<String>,
    /// Samples a pixel
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=1 << 16))]
    pub spp: u32,
    /// Folder with values of parameters, such as `final` of a run, at any resolution
    #[arg(long, value_name = "FOLDER")]
    pub parameters: Option<PathBuf>,
    /// Folder of the gradients, one file a parameter [default: gradients/<scene>]
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
    pub voice: OutputArgs,
}

/// Runs the command.
///
/// # Errors
/// The scene has mistakes, the image does not fit the view, there is no such parameter, sensor or device, or a file cannot
/// be written.
pub fn run(args: BackpropagateArgs) -> Result<Outcome> {
    let scene = args.set.load(&args.scene)?;
    let sensor = sensor_index(&scene, &args.sensor)?;
    let adjoint = read_adjoint(&args.adjoint, &scene.sensors[sensor])?;
    let options = Options {
        parameters: args.parameter.clone(),
        seed: args.seed,
        ..Options::default()
    };
    let mut setup = Setup::new(&scene, &options)?;
    if let Some(folder) = &args.parameters {
        read_parameters(folder, &scene, &mut setup.params)?;
        let shapes: Vec<_> = setup.params.parameters.iter().map(|p| p.shape).collect();
        setup.resident.fit(&shapes);
    }
    let table = PixelTable::new(&setup.resident.sensors, &[sensor as u32]).with_context(|| {
        format!(
            "--sensor {}: has more than 2³² pixels; make its film smaller",
            args.sensor
        )
    })?;
    let batch = Batch { table, drawn: None };
    let mut device = args.device.open()?;
    device.load(setup.resident, setup.params, Optimizer::Sgd { momentum: 0.0 })?;
    let keys = |pass| Keys {
        objective: pass_key(args.seed, 0, Pass::Objective),
        pass: pass_key(args.seed, 0, pass),
    };
    // A render says which pixels have rays, and places splats.
    device.render(&batch, keys(Pass::Primal), 1)?;
    device.set_adjoint(&batch, keys(Pass::Adjoint), &adjoint)?;
    device.backpropagate(&batch, keys(Pass::Adjoint), args.spp)?;
    let folder = args
        .output
        .clone()
        .unwrap_or_else(|| default_folder("gradients", &args.scene));
    let written = write_gradients(&folder, device.as_mut())?;
    for (path, largest) in &written {
        if args.voice.json {
            print_line(&json!({ "parameter": path, "largest": largest }).to_string());
        } else if args.voice.speaks() {
            print_line(&format!("{path}: largest derivative {largest:.4e}"));
        }
    }
    Ok(Outcome::Done)
}

/// The derivatives by the pixels of a sensor.
///
/// # Errors
/// The file is no EXR image of red, green and blue, or of one channel for all three, of the sensor's size, or holds what is no
/// number.
fn read_adjoint(path: &Path, sensor: &Sensor) -> Result<Vec<[f32; 3]>> {
    if !path.extension().is_some_and(|e| e.eq_ignore_ascii_case("exr")) {
        bail!(
            "{}: is no .exr file; derivatives need signs and a range that other formats lack",
            path.display()
        );
    }
    let (image, _) = image::read(path)?;
    let [width, height] = [sensor.width as usize, sensor.height as usize];
    if [image.width, image.height] != [width, height] {
        bail!(
            "{}: has {}×{} pixels, but the sensor `{}` has {width}×{height}; make it of that size",
            path.display(),
            image.width,
            image.height,
            sensor.name
        );
    }
    if image.has_alpha() {
        bail!(
            "{}: has an alpha channel, which has no derivative here; leave it out",
            path.display()
        );
    }
    if let Some(at) = image.first_non_finite() {
        let pixel = at / image.channels;
        bail!(
            "{}: is {} in column {} of row {}; give finite numbers",
            path.display(),
            image.data[at],
            pixel % width,
            pixel / width
        );
    }
    let texel = |t: &[f32]| [0, 1, 2].map(|c: usize| t[c.min(t.len() - 1)]);
    Ok(image.data.chunks_exact(image.channels).map(texel).collect())
}
