//! `prbopt gradient`: the derivative of an image by one scalar in forward mode, or the gradient of a loss.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::{Context, Result, bail, ensure};
use clap::{ArgGroup, Args};
use serde_json::json;

use super::Outcome;
use super::derivative::DerivativeArgs;
use crate::device::{ArrayKind, Batch};
use crate::gradcheck::forward::{self, Forward, Motion};
use crate::gradcheck::{Index, Setup};
use crate::io::{Image, atomic, image, npy, read_at_most};
use crate::optimize::references;
use crate::output::images::with_extension;
use crate::output::run_folder::create;
use crate::output::stored;
use crate::output::streams::print_line;
use crate::params::{Kind, Parameter};
use crate::report::colormap;
use crate::scene::Scene;
use crate::tell;
use crate::transport::rays::random::Pass;

/// Largest `.json` file of `--tangent`, in bytes.
const MAX_TANGENT_BYTES: u64 = 1 << 30;

/// Arguments of `prbopt gradient`.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("by").required(true).args(["index", "scale", "channel", "shift", "tangent", "loss"]))]
#[command(after_help = "Examples:\n  \
    prbopt gradient scenes/smoke_small.json --parameter smoke.interior.sigma_t --scale\n  \
    prbopt gradient scenes/smoke_small.json --parameter smoke.interior.sigma_t --shift 0,1,0 --spp 64\n  \
    prbopt gradient scenes/two_blobs.json --parameter object.interior.sigma_t --index 6,6,6,0\n  \
    prbopt gradient room.json --parameter chair.vertex_positions --tangent 0,0,1\n  \
    prbopt gradient scenes/two_blobs.json --parameter object.interior.sigma_t --loss")]
pub struct GradientArgs {
    /// The scene file, or - for standard input
    pub scene: PathBuf,
    /// Path of the parameter to differentiate by
    #[arg(long, value_name = "PATH")]
    pub parameter: String,
    /// By one entry: x,y,z,channel or its place in the array
    #[arg(long, value_name = "INDEX")]
    pub index: Option<Index>,
    /// By a factor on all of its values
    #[arg(long)]
    pub scale: bool,
    /// By a factor on one of its channels, counted from 0
    #[arg(long, value_name = "N")]
    pub channel: Option<usize>,
    /// By a shift of the grid, such as 0,1,0, in edges of its unit cube
    #[arg(long, value_name = "X,Y,Z", allow_hyphen_values = true)]
    pub shift: Option<Shift>,
    /// By one number t that changes the values by t times these: one number, one a channel such as 0,0,1, or a file, .npy or .exr
    /// of the parameter's shape or .json, as `backpropagate` writes them
    #[arg(long, value_name = "NUMBERS|FILE", allow_hyphen_values = true)]
    pub tangent: Option<Tangent>,
    /// Of the scene's loss by every entry, on the device: slices through the gradient
    #[arg(long)]
    pub loss: bool,
    /// The largest step of the finite differences that forward mode is compared with, relative to the parameter's largest value
    /// (default: that of `gradcheck` along paths, else 0.001)
    #[arg(long, value_name = "SHARE", allow_negative_numbers = true)]
    pub step: Option<f64>,
    #[command(flatten)]
    pub derivative: DerivativeArgs,
}

/// The value of `--shift`: a translation in edges of the grid's unit cube.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Shift([f64; 3]);

impl FromStr for Shift {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let numbers: Option<Vec<f64>> = text.split(',').map(|part| part.trim().parse().ok()).collect();
        match numbers.as_deref() {
            Some(&[x, y, z]) if [x, y, z].iter().all(|v| v.is_finite()) => Ok(Shift([x, y, z])),
            _ => Err("expected three numbers such as 0,1,0".into()),
        }
    }
}

/// The value of `--tangent`: the direction of a directional derivative.
#[derive(Debug, Clone, PartialEq)]
pub enum Tangent {
    Numbers(Vec<f64>),
    File(PathBuf),
}

/// Whether a number is finite as a 32-bit float, the type of parameters and images.
fn fits(number: &f64) -> bool {
    (*number as f32).is_finite()
}

impl FromStr for Tangent {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let numbers: Option<Vec<f64>> = text.split(',').map(|part| part.trim().parse().ok()).collect();
        match numbers {
            Some(numbers) if numbers.iter().all(fits) => Ok(Self::Numbers(numbers)),
            Some(_) => Err("expected finite numbers, as 32-bit floats hold them".into()),
            None => Ok(Self::File(text.into())),
        }
    }
}

impl Tangent {
    /// The numbers, read from the file if one is given; an image is read as the values of `parameter`.
    ///
    /// # Errors
    /// The file cannot be read, is of another format, does not fit, or holds a number that is not finite.
    fn numbers(&self, parameter: &Parameter) -> Result<Vec<f64>> {
        #[derive(serde::Deserialize)]
        struct Values {
            value: Vec<f64>,
        }
        let path = match self {
            Self::Numbers(numbers) => return Ok(numbers.clone()),
            Self::File(path) => path,
        };
        let named = || path.display().to_string();
        let numbers = match path.extension().and_then(|extension| extension.to_str()) {
            Some("npy") => npy::read(path)?.data.into_iter().map(f64::from).collect(),
            Some("json") => {
                let text = read_at_most(path, MAX_TANGENT_BYTES).with_context(named)?;
                let values: Values = serde_json::from_slice(&text)
                    .with_context(|| format!("{}: expected {{\"value\": […]}} with numbers", named()))?;
                values.value
            }
            Some("exr") if matches!(parameter.kind, Kind::Texture | Kind::Envmap) => {
                let mut values = parameter.clone();
                stored::read(path, &mut values).with_context(|| format!("--tangent {}", named()))?;
                let [[width, height, _], [asked_width, asked_height, _]] = [values.shape.size, parameter.shape.size];
                ensure!(
                    values.shape == parameter.shape,
                    "--tangent {}: has {width} × {height} texels, but {} has {asked_width} × {asked_height}; give an image of \
                     that size",
                    named(),
                    parameter.path,
                );
                values.values.into_iter().map(f64::from).collect()
            }
            _ => bail!(
                "--tangent {}: give numbers such as 0,0,1, or a file .npy, .json or, of a texture, .exr",
                named()
            ),
        };
        ensure!(
            numbers.iter().all(fits),
            "{}: holds a number that is not finite as a 32-bit float; give finite numbers",
            named()
        );
        Ok(numbers)
    }
}

/// Runs the command.
///
/// # Errors
/// The scene has mistakes, there is no such parameter, sensor or device, or a file cannot be written.
pub fn run(args: GradientArgs) -> Result<Outcome> {
    if let Some(step) = args.step {
        ensure!(
            step.is_finite() && step > 0.0,
            "--step {step}: expected a positive number"
        );
    }
    // Prepare the scene and the parameter's values.
    let asked = &args.derivative;
    let named = vec![args.parameter.clone()];
    let scene = asked.load(&args.scene, &named)?;
    let mut setup = asked.setup(&scene, named)?;
    let folder = asked.folder(&args.scene);
    create(&folder)?;
    if args.loss {
        return of_loss(&args, &scene, setup, &folder);
    }
    // Differentiate the image of one sensor.
    setup.spp = asked.spp;
    let (sensor, batch) = asked.view(&scene, &setup)?;
    setup.batch = batch;
    let parameter = setup.checked[0];
    let direction = forward::direction(
        &setup.params.parameters[parameter],
        args.motion(&setup.params.parameters[parameter])?,
    )?;
    let found = forward::forward(&setup, parameter, &direction, args.step)?;
    ensure!(
        fits(&found.largest),
        "{}: the largest derivative is {:e}, too large for an image of 32-bit floats; ask for a smaller change",
        args.parameter,
        found.largest
    );
    let size = [
        scene.sensors[sensor].width as usize,
        scene.sensors[sensor].height as usize,
    ];
    // Write the derivative image and print the figures.
    let stem = folder.join(format!("{}_{}", args.parameter, args.word()));
    let (files, end) = write_image(&stem, &found, size)?;
    let relative = found.difference / found.largest.max(f64::MIN_POSITIVE);
    if args.derivative.verbosity.json {
        print_line(
            &json!({
                "files": shown(&files), "largest": found.largest, "largest_difference": found.difference,
                "relative_difference": relative,
            })
            .to_string(),
        );
    } else if args.derivative.verbosity.speaks() {
        shown(&files).iter().for_each(|file| print_line(file));
        tell!(
            "largest derivative {:.4e}; red is positive, blue negative, grey zero, and colours end at {end:.4e}",
            found.largest
        );
        tell!(
            "forward mode and finite differences with frozen sampling differ by {:.2e} at most, {relative:.1e} of that",
            found.difference
        );
    }
    Ok(Outcome::Done)
}

impl GradientArgs {
    fn motion(&self, parameter: &Parameter) -> Result<Motion> {
        if let Some(index) = self.index {
            return Ok(Motion::Entry(index));
        }
        if let Some(Shift(by)) = self.shift {
            return Ok(Motion::Shift(by));
        }
        if let Some(tangent) = &self.tangent {
            return Ok(Motion::Along(tangent.numbers(parameter)?));
        }
        match (self.scale, self.channel) {
            (true, _) => Ok(Motion::Scale(None)),
            (false, Some(channel)) => Ok(Motion::Scale(Some(channel))),
            _ => bail!("say what to differentiate by: --index, --scale, --channel, --shift, --tangent or --loss"),
        }
    }

    /// Stem of the output files.
    fn word(&self) -> String {
        match (self.index, self.shift, self.channel) {
            (Some(_), ..) => "entry".into(),
            (_, Some(_), _) => "shift".into(),
            (.., Some(channel)) => format!("channel_{channel}"),
            _ if self.tangent.is_some() => "tangent".into(),
            _ => "scale".into(),
        }
    }
}

/// Paths as text, lossy where they are not UTF-8, as neither JSON nor a terminal takes them otherwise.
fn shown(files: &[PathBuf]) -> Vec<String> {
    files.iter().map(|file| file.display().to_string()).collect()
}

/// Writes the derivative as EXR, and its mean over the channels as a coloured picture; returns the colour scale, too.
fn write_image(stem: &Path, found: &Forward, [width, height]: [usize; 2]) -> Result<([PathBuf; 2], f32)> {
    let slopes = || found.slopes.iter().map(|slope| slope.unwrap_or([0.0; 3]));
    let (exr, png) = (with_extension(stem, "exr"), with_extension(stem, "png"));
    image::write_exr(
        &exr,
        &Image {
            width,
            height,
            channels: 3,
            data: slopes().flatten().map(|v| v as f32).collect(),
        },
    )?;
    let means: Vec<f32> = slopes().map(|[r, g, b]| ((r + g + b) / 3.0) as f32).collect();
    let end = end_of_colors(&means);
    atomic::write_bytes(&png, &signed_png(width, height, &means, end))?;
    Ok(([png, exr], end))
}

/// The colour scale: the magnitude at the 99.5 % quantile, as single noisy pixels would make all others grey.
fn end_of_colors(values: &[f32]) -> f32 {
    let mut sizes: Vec<f32> = values.iter().map(|v| v.abs()).collect();
    sizes.sort_unstable_by(f32::total_cmp);
    let most = sizes.last().copied().unwrap_or(0.0);
    let robust = sizes.get((sizes.len() * 199).div_ceil(200).saturating_sub(1)).copied();
    robust.filter(|size| *size > 0.0).unwrap_or(most)
}

/// Signed values in red and blue, zero in grey; `scale` maps to the end of the colour table.
fn signed_png(width: usize, height: usize, values: &[f32], scale: f32) -> Vec<u8> {
    let table = colormap::signed();
    let colors: Vec<u8> = values
        .iter()
        .flat_map(|v| table[usize::from(colormap::signed_step(*v, scale))])
        .collect();
    colormap::png(width, height, 3, &colors)
}

/// The gradient of the scene's own loss over all training views.
fn of_loss(args: &GradientArgs, scene: &Scene, setup: Setup, folder: &Path) -> Result<Outcome> {
    let Some(rule) = &scene.optimize else {
        bail!(
            "{}: has no block `optimize`, which says what the loss is; add one, or differentiate the image by --scale",
            args.scene.display()
        );
    };
    let asked = &args.derivative;
    let mut device = asked.device.open()?;
    let progress = asked.verbosity.progress();
    let parameter = setup.checked[0];
    let mut resident = setup.resident;
    let views = setup.batch.table.sensors.clone();
    let cache = folder.join("references.safetensors");
    references::prepare(
        scene,
        &rule.references,
        &views,
        &[],
        &mut resident,
        device.as_mut(),
        &cache,
        &progress,
    )?;
    let batch = Batch {
        drawn: None,
        ..setup.batch
    };
    let described = setup.params.parameters[parameter].clone();
    device.load(resident, setup.params, rule.optimizer)?;
    device.render(&batch, asked.keys(Pass::Primal), args.derivative.spp)?;
    let loss = device.loss(&batch, asked.keys(Pass::Primal), rule.loss)?;
    device.backpropagate(&batch, asked.keys(Pass::Adjoint), args.derivative.spp)?;
    let gradient = device.read(parameter, ArrayKind::Gradient)?;
    let files = write_gradient(folder, &described, &gradient)?;
    let largest = gradient.iter().fold(0.0, |m: f32, v| m.max(v.abs()));
    if args.derivative.verbosity.json {
        print_line(&json!({ "files": shown(&files), "loss": loss.loss, "largest": largest }).to_string());
    } else if args.derivative.verbosity.speaks() {
        shown(&files).iter().for_each(|file| print_line(file));
        tell!("loss {:.4e}, largest derivative {largest:.4e}", loss.loss);
    }
    Ok(Outcome::Done)
}

/// Writes the gradient as numbers, and for a grid its middle slices along x, y and z: per texel the sum over channels.
fn write_gradient(folder: &Path, parameter: &Parameter, gradient: &[f32]) -> Result<Vec<PathBuf>> {
    let (size, channels) = (parameter.shape.size, parameter.shape.channels);
    let stem = format!("{}_loss", parameter.path);
    let numbers = folder.join(format!("{stem}.npy"));
    let [x, y, z] = size.map(|n| n as u64);
    npy::write_array(&numbers, &[z, y, x, channels as u64], gradient)?;
    let mut files = vec![numbers];
    if parameter.kind == Kind::Grid {
        let texel = |p: [usize; 3]| -> f32 {
            let at = ((p[2] * size[1] + p[1]) * size[0] + p[0]) * channels;
            gradient[at..at + channels].iter().sum()
        };
        // Oriented as in the report: the second axis points up.
        for (axis, across, up) in [(0, 2, 1), (1, 0, 2), (2, 0, 1)] {
            let (width, height) = (size[across], size[up]);
            let mut slice = Vec::with_capacity(width * height);
            for v in (0..height).rev() {
                for u in 0..width {
                    let mut place = [0; 3];
                    (place[axis], place[across], place[up]) = (size[axis] / 2, u, v);
                    slice.push(texel(place));
                }
            }
            let file = folder.join(format!("{stem}_{}.png", ["x", "y", "z"][axis]));
            atomic::write_bytes(&file, &signed_png(width, height, &slice, end_of_colors(&slice)))?;
            files.push(file);
        }
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn single_pixels_do_not_set_the_end_of_the_colors() {
        let mut values: Vec<f32> = (0..400).map(|i| i as f32 / -400.0).collect();
        values[7] = 1e6;
        assert!((0.99..1.0).contains(&end_of_colors(&values)));
        values.fill(0.0);
        values[7] = -3.0;
        assert_eq!(
            end_of_colors(&values),
            3.0,
            "where nearly all is zero, the largest ends them"
        );
        assert_eq!(end_of_colors(&[]), 0.0);
    }
}
