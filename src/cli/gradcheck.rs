//! `prbopt gradcheck`: checks gradients against finite differences; the exit code tells the result.

use std::path::PathBuf;
use std::str::FromStr;

use anyhow::{bail, ensure};
use clap::builder::PossibleValue;
use clap::{Args, ValueEnum};

use super::Outcome;
use super::shared::{DeviceArgs, OutputArgs, SetArgs, check_folder, files_of, read_parameters};
use crate::gradcheck::{self, Index, Options, Setup, Weighting};
use crate::output::streams::print_line;

/// Arguments of `prbopt gradcheck`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    prbopt gradcheck scenes/two_blobs.json\n  \
    prbopt gradcheck scenes/two_blobs.json --parameters runs/two_blobs/final --entries 100\n  \
    prbopt gradcheck lego.json --parameter object.interior.sigma_t --index 3,4,5,0 --write gradients")]
pub struct GradcheckArgs {
    /// The scene file, or - for standard input; it is checked at the values that its run begins with
    pub scene: PathBuf,
    /// Folder with values of parameters, such as `final` of a run, at any resolution
    #[arg(long, value_name = "FOLDER")]
    pub parameters: Option<PathBuf>,
    /// Path of a parameter to check; may be repeated [default: all that the scene optimises, or else all]
    #[arg(long, value_name = "PATH")]
    pub parameter: Vec<String>,
    /// Entries drawn of each parameter
    #[arg(long, default_value_t = 16, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub entries: u32,
    /// An entry to check in place of drawn ones: x,y,z,channel or its place in the array; may be repeated
    #[arg(long, value_name = "INDEX")]
    pub index: Vec<Index>,
    /// Weights of the pixels in the loss; may be repeated [default: both]
    #[arg(long, value_enum)]
    pub loss: Vec<Weighting>,
    /// Leave the losses (loss.json) and the whole gradient of each parameter (.npy) in this folder
    #[arg(long, value_name = "FOLDER")]
    pub write: Option<PathBuf>,
    /// Seed of all random numbers
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    /// Relative tolerance of the f64 walk against finite differences
    #[arg(long, value_name = "SHARE", default_value_t = 1e-6, allow_negative_numbers = true)]
    pub tolerance: f64,
    /// Relative tolerance of the device against the f64 walk
    #[arg(long, value_name = "SHARE", default_value_t = 1e-3, allow_negative_numbers = true)]
    pub device_tolerance: f64,
    /// Largest step of the finite differences [default: one that suits the parameter]
    #[arg(long, value_name = "STEP", allow_negative_numbers = true)]
    pub epsilon: Option<f64>,
    #[command(flatten)]
    pub set: SetArgs,
    #[command(flatten)]
    pub device: DeviceArgs,
    #[command(flatten)]
    pub verbosity: OutputArgs,
}

impl ValueEnum for Weighting {
    fn value_variants<'a>() -> &'a [Self] {
        &[Self::Mean, Self::Random]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let help = match self {
            Self::Mean => "All alike",
            Self::Random => "A random weight for each pixel and channel",
        };
        Some(PossibleValue::new(self.name()).help(help))
    }
}

impl FromStr for Index {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let numbers: Result<Vec<usize>, _> = text.split(',').map(|part| part.trim().parse()).collect();
        match numbers.as_deref() {
            Ok([flat]) => Ok(Index::Flat(*flat)),
            Ok(&[x, y, z, channel]) => Ok(Index::Coordinates([x, y, z, channel])),
            _ => Err("expected x,y,z,channel or one whole number".to_string()),
        }
    }
}

/// Checks the gradients and prints a table.
///
/// # Errors
/// The scene has mistakes, there is no such parameter, entry or device, or a file cannot be read or written.
pub fn run(args: GradcheckArgs) -> anyhow::Result<Outcome> {
    let options = options(&args)?;
    let scene = args.set.load_asking(&args.scene, &args.parameter)?;
    let progress = args.verbosity.progress();
    for warning in scene.all_warnings() {
        progress.note(&format!("warning: {warning}"));
    }
    let mut setup = Setup::new(&scene, &options)?;
    if let Some(folder) = &args.parameters {
        read_parameters(folder, &scene, &mut setup.params)?;
        let shapes: Vec<_> = setup.params.parameters.iter().map(|p| p.shape).collect();
        setup.resident.fit(&shapes);
        setup.resident.place_views(&setup.params);
    }
    if let Some(folder) = &args.write {
        check_folder(
            folder,
            "--write",
            &setup.params,
            args.parameters.as_deref(),
            &files_of(&scene),
        )?;
    }
    let mut device = args.device.open()?;
    let outcome = gradcheck::check(&setup, Some(device.as_mut()), &options)?;
    if let Some(folder) = &args.write {
        gradcheck::write::write(folder, &setup, &options, &outcome)?;
    }
    let report = &outcome.report;
    let verdicts = report.parameters.iter().map(|p| p.passed);
    let verdicts: Vec<bool> = verdicts.chain(report.tracking.iter().map(|t| t.passed)).collect();
    if args.verbosity.json {
        let mut line = serde_json::to_value(report)?;
        line["judged"] = verdicts.len().into();
        print_line(&line.to_string());
    } else if args.verbosity.speaks() {
        print_line(&report.to_string());
        let failed = verdicts.iter().filter(|passed| !**passed).count();
        print_line(&match failed {
            0 if verdicts.is_empty() => {
                "gradcheck judged nothing: derivatives by what bends or moves paths are only set beside differences of \
                 images drawn anew, above"
                    .into()
            }
            0 if verdicts.len() == 1 => "gradcheck passed: 1 verdict".into(),
            0 => format!("gradcheck passed: {} verdicts", verdicts.len()),
            _ if verdicts.len() == 1 => "gradcheck FAILED: 1 of 1 verdict".into(),
            _ => format!("gradcheck FAILED: {failed} of {} verdicts", verdicts.len()),
        });
    }
    Ok(if report.passed {
        Outcome::Done
    } else {
        Outcome::CheckFailed
    })
}

fn options(args: &GradcheckArgs) -> anyhow::Result<Options> {
    for (flag, value) in [
        ("--tolerance", args.tolerance),
        ("--device-tolerance", args.device_tolerance),
    ] {
        ensure!(value >= 0.0, "{flag} {value}: expected a number from 0");
    }
    if let Some(step) = args.epsilon
        && !(step.is_finite() && step > 0.0)
    {
        bail!("--epsilon {step}: expected a positive number");
    }
    if !args.index.is_empty() && args.parameter.len() != 1 {
        bail!("--index names an entry of one parameter; give exactly one --parameter with it");
    }
    let weightings = if args.loss.is_empty() {
        vec![Weighting::Mean, Weighting::Random]
    } else {
        args.loss.clone()
    };
    Ok(Options {
        parameters: args.parameter.clone(),
        entries: args.entries as usize,
        indices: args.index.clone(),
        weightings,
        seed: args.seed,
        tolerance: args.tolerance,
        device_tolerance: args.device_tolerance,
        step: args.epsilon,
    })
}
