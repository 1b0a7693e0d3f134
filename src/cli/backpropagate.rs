//! `prbopt backpropagate`: sends an adjoint image, the derivatives of some scalar by the pixels of a view, through the
//! scene.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use clap::Args;
use serde_json::json;

use super::Outcome;
use super::derivative::DerivativeArgs;
use super::shared::{check_folder, files_of};
use crate::io::image;
use crate::kernels::optimizer::Optimizer;
use crate::output::parameters::write_gradients;
use crate::output::streams::print_line;
use crate::scene::Sensor;
use crate::tell;
use crate::transport::rays::random::Pass;

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
    /// Path of a parameter to differentiate by; may be repeated [default: those of the block `optimize`, or else all]
    #[arg(long, value_name = "PATH")]
    pub parameter: Vec<String>,
    #[command(flatten)]
    pub derivative: DerivativeArgs,
}

/// Runs the command.
///
/// # Errors
/// The scene has mistakes, the image does not fit the view, there is no such parameter, sensor or device, or a file cannot
/// be written.
pub fn run(args: BackpropagateArgs) -> Result<Outcome> {
    let asked = &args.derivative;
    let scene = asked.load(&args.scene, &args.parameter)?;
    let setup = asked.setup(&scene, args.parameter.clone())?;
    let (sensor, batch) = asked.view(&scene, &setup)?;
    let folder = asked.folder(&args.scene);
    let mut inputs = files_of(&scene);
    inputs.push(args.adjoint.clone());
    check_folder(&folder, "--output", &setup.params, asked.parameters.as_deref(), &inputs)?;
    let adjoint = read_adjoint(&args.adjoint, &scene.sensors[sensor])?;
    let mut device = asked.device.open()?;
    device.load(setup.resident, setup.params, Optimizer::Sgd { momentum: 0.0 })?;
    // Rendering finds the pixels that have rays, and projects splats.
    device.render(&batch, asked.keys(Pass::Primal), 1)?;
    device.set_adjoint(&batch, asked.keys(Pass::Adjoint), &adjoint)?;
    device.backpropagate(&batch, asked.keys(Pass::Adjoint), asked.spp)?;
    let written = write_gradients(&folder, device.as_mut())?;
    for (path, largest) in &written {
        if asked.verbosity.json {
            print_line(&json!({ "parameter": path, "largest": largest }).to_string());
        } else if asked.verbosity.speaks() {
            print_line(&format!("{path}: largest derivative {largest:.4e}"));
        }
    }
    if asked.verbosity.speaks() {
        tell!("derivatives: {}", folder.display());
    }
    Ok(Outcome::Done)
}

/// Reads the derivatives by the pixels of a sensor.
///
/// # Errors
/// The file is no EXR image of red, green and blue, or of one channel for all three, of the sensor's size, or holds a value
/// that is not finite.
fn read_adjoint(path: &Path, sensor: &Sensor) -> Result<Vec<[f32; 3]>> {
    if !image::is_exr(path)? {
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
