//! `prbopt mill`: the slab of a scene as a cutter leaves it.

use std::path::PathBuf;

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use serde_json::json;

use super::Outcome;
use super::shared::{OutputArgs, SetArgs, read_parameters};
use crate::exchange::milling::{Cutter, mill};
use crate::output::parameters::{write_map, write_solid};
use crate::output::run_folder::create;
use crate::output::streams::print_line;
use crate::resident::Resident;

/// Arguments of `prbopt mill`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    prbopt mill scenes/caustic.json --parameters runs/caustic/final --radius 0.02 -o milled\n  \
    prbopt mill scenes/caustic.json --parameters runs/caustic/final --radius 0.02 --step 1e-5 -o coarse --json")]
pub struct MillArgs {
    /// The scene file, or - for standard input
    pub scene: PathBuf,
    /// Folder with values of parameters, such as `final` of a run
    #[arg(long, value_name = "FOLDER")]
    pub parameters: Option<PathBuf>,
    /// Radius of the ball at the cutter's end, in the scene's unit
    #[arg(long, value_name = "LENGTH")]
    pub radius: f64,
    /// The cutter's height is a whole number of these, in the scene's unit; 0 is a machine without steps
    #[arg(long, value_name = "LENGTH", default_value_t = 0.0)]
    pub step: f64,
    /// The folder to write: heights, as `final` of a run has them, and the closed solid
    #[arg(short, long, value_name = "FOLDER")]
    pub output: PathBuf,
    #[command(flatten)]
    pub set: SetArgs,
    #[command(flatten)]
    pub verbosity: OutputArgs,
}

/// Runs the command.
///
/// # Errors
/// The scene has mistakes or no slab, there is no such cutter, the slab would be cut through, or the folder exists or cannot be
/// written.
pub fn run(args: MillArgs) -> Result<Outcome> {
    ensure!(
        args.radius > 0.0 && args.radius.is_finite(),
        "--radius {}: expected a positive length",
        args.radius
    );
    ensure!(
        args.step >= 0.0 && args.step.is_finite(),
        "--step {}: expected a length, or 0 for none",
        args.step
    );
    let shown = args.output.display();
    ensure!(
        !args.output.exists(),
        "{shown}: exists already; choose another name with --output"
    );
    let scene = args.set.load(&args.scene)?;
    let Some(slab) = scene.slab() else {
        bail!(
            "{}: has no slab to mill: give a scene with a `heightfield`",
            args.scene.display()
        );
    };
    let (_, mut params) = Resident::new(&scene)?;
    if let Some(folder) = &args.parameters {
        read_parameters(folder, &scene, &mut params)?;
    }
    let index = params.find(&slab.heights.path).context("a slab has heights")?;
    let parameter = &mut params.parameters[index];
    let [width, height, _] = parameter.shape.size;
    let unit = f64::from(slab.to_world.matrix3.x_axis.length());
    let cutter = Cutter {
        radius: args.radius / unit,
        step: args.step / unit,
    };
    let milled = mill(&parameter.values, [width, height], cutter);
    parameter.values = milled.heights;
    ensure!(
        parameter.values.iter().all(|h| *h > -slab.thickness),
        "--step {}: the cutter would go through the slab, {} thick; take a smaller one",
        args.step,
        f64::from(slab.thickness) * unit
    );
    create(&args.output)?;
    write_map(&args.output, parameter.clone())?;
    write_solid(&args.output, slab, &parameter.values, [width, height])?;
    let [largest, mean, rms, range] =
        [milled.largest, milled.mean, milled.rms, milled.range].map(|length| length * unit);
    if args.verbosity.json {
        print_line(
            &json!({ "largest": largest, "mean": mean, "rms": rms, "range": range, "folder": shown.to_string() })
                .to_string(),
        );
    } else if args.verbosity.speaks() {
        print_line(&format!(
            "{shown}: heights that differ by {range:.3e} are off by {rms:.3e} (root mean square), by {largest:.3e} at most"
        ));
    }
    Ok(Outcome::Done)
}
