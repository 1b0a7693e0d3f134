//! `prbopt render`: views of a scene as linear EXR and sRGB PNG.

mod film;
mod orbit;
mod turntable;

use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow, bail};
use clap::Args;
use serde_json::json;

use super::Outcome;
use super::shared::{
    DeviceArgs, OutputArgs, SetArgs, begins_otherwise, check_output, check_ranks, default_folder, files_of,
    read_parameters, sensor_index,
};
use crate::cluster::Cluster;
use crate::device::ranks;
use crate::io::image;
use crate::kernels::optimizer::Optimizer;
use crate::optimize::{RenderSettings, data_marks};
use crate::output::images::{file_stems, with_extension};
use crate::output::run_folder::create;
use crate::output::streams::{print_bytes, print_line};
use crate::params::ParamSet;
use crate::resident::{Resident, Transport};
use crate::scene::{Background, Rules, Scene, Sensor};
use film::{Film, films};
use turntable::Turntable;

/// Arguments of `prbopt render`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    prbopt render scenes/two_blobs.json --parameters runs/two_blobs/final\n  \
    prbopt render lego.json --parameters runs/lego/final --sensor all --spp 16 -o views\n  \
    prbopt render lego.json --sensor r_8 -o r_8.exr\n  \
    prbopt render photo.json --parameters runs/photo/final --scale 4\n  \
    prbopt render scenes/smoke.json --spp 16 -o - > smoke.png\n  \
    prbopt render scenes/two_blobs.json --parameters runs/two_blobs/final --turntable 120")]
pub struct RenderArgs {
    /// The scene file, or - for standard input
    pub scene: PathBuf,
    /// Folder with values of parameters, such as `final` of a run, at any resolution
    #[arg(long, value_name = "FOLDER")]
    pub parameters: Option<PathBuf>,
    /// Samples a pixel, instead of each sensor's own
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    pub spp: Option<u32>,
    /// Which sensor to render: its name, its index from 0, or `all`
    #[arg(long, value_name = "INDEX|NAME|all", default_value = "0")]
    pub sensor: String,
    /// Render this many frames on a circle around the scene, with a camera like the sensor, and an animated PNG of
    /// them; frames that are there already are kept
    #[arg(long, value_name = "FRAMES", value_parser = clap::value_parser!(u32).range(1..=turntable::MOST_FRAMES as i64))]
    pub turntable: Option<u32>,
    /// The way of the camera instead of a circle: a JSON list of places with `origin`, `target` and `up`
    #[arg(long, value_name = "FILE", requires = "turntable")]
    pub path: Option<PathBuf>,
    /// Frames a second of the animated PNG
    #[arg(long, value_name = "N", default_value_t = 24, value_parser = clap::value_parser!(u16).range(1..=120), requires = "turntable")]
    pub fps: u16,
    /// An .exr or .png file (its sibling is written beside it), a folder, or - for a PNG to standard output [default:
    /// renders/<scene>]
    #[arg(short, long, value_name = "FILE|FOLDER")]
    pub output: Option<PathBuf>,
    /// Render this many times as many pixels along each edge
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0, value_parser = scale_factor)]
    pub scale: f32,
    /// Write EXR files of 16-bit floats, whatever the film says
    #[arg(long, conflicts_with = "turntable")]
    pub half: bool,
    /// Write PNG files of 16 bits a channel
    #[arg(long, conflicts_with = "turntable")]
    pub deep: bool,
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

impl RenderArgs {
    /// Whether the image itself is written to standard output.
    fn to_standard_output(&self) -> bool {
        self.output.as_deref() == Some(Path::new("-"))
    }
}

/// Runs the command.
///
/// # Errors
/// The scene has mistakes, parameters are missing, there is no such sensor or device, or a file cannot be written.
pub fn run(args: RenderArgs) -> Result<Outcome> {
    let mut scene = args.set.load(&args.scene)?;
    let (mut device, baton) = args.device.open_shared()?;
    check_ranks(&args.scene, &scene, device.as_ref())?;
    let chosen = choose(&scene, &args.sensor)?;
    let given = scene.sensors.clone();
    for &index in &chosen {
        enlarge(&mut scene.sensors[index], args.scale)?;
    }
    // Check the output paths before any work.
    let turntable = match args.turntable {
        Some(frames) => Some(Turntable::prepare(&args, frames, &mut scene, chosen[0])?),
        None => None,
    };
    let stems = match turntable {
        Some(_) => Vec::new(),
        None if !Cluster::world().leads() => Vec::new(),
        None => destinations(&args, &scene, &chosen)?,
    };
    let mut progress = args.verbosity.progress();
    for warning in &scene.warnings {
        progress.note(&format!("warning: {warning}"));
    }
    if let Some(note) = begins_otherwise(&scene).filter(|_| args.parameters.is_none()) {
        progress.note(&note);
    }
    // Load the scene, with the parameters' values, onto the device.
    let (mut resident, mut params) = match turntable {
        Some(_) => Resident::new(&scene)?,
        None => resident_and_enlarged(&mut scene, given)?,
    };
    if let Some(folder) = &args.parameters {
        read_parameters(folder, &scene, &mut params)?;
        let shapes: Vec<_> = params.parameters.iter().map(|p| p.shape).collect();
        resident.fit(&shapes);
    }
    // Without tuned parameters no memory is allocated for gradients, and no path is spent on what a run may change.
    params.parameters.iter_mut().for_each(|p| p.tuning = None);
    if let Transport::Paths(paths) = &mut resident.transport {
        paths.bsdfs.hold();
    }
    let data = data_marks(&resident, &params);
    device.load(resident, params, Optimizer::Sgd { momentum: 0.0 })?;
    Cluster::world().agree(&data).map_err(|e| anyhow!(e))?;
    baton.take();
    if !Cluster::world().leads() {
        ranks::follow(device.as_mut());
        return Ok(Outcome::Done);
    }
    if let Some(turntable) = turntable {
        return turntable.render(&args, &scene, device.as_mut(), &mut progress);
    }
    // Render each film.
    // As in Mitsuba, an integrator's rules say whether what lies behind everything counts for alpha.
    let counts = !matches!(scene.integrator.rules, Rules::Prb | Rules::Basic);
    let opaque = counts && !matches!(scene.background, Background::None) && !scene.integrator.hide_emitters;
    for (film, stem) in films(&scene, &chosen).iter().zip(&stems) {
        let sensor = &scene.sensors[film.sensors[0]];
        let spp = args.spp.unwrap_or(sensor.spp.max(1));
        let look = RenderSettings {
            seed: args.seed,
            iteration: 0,
            spp,
        };
        let text = format!(
            "{}: {}×{} pixels, {spp} samples each",
            film.name, sensor.width, sensor.height
        );
        let busy = progress.busy(text, device.gauge());
        let picture = film.picture(&scene, device.as_mut(), look)?;
        drop(busy);
        let Some(mut picture) = picture else {
            continue;
        };
        picture.format.opaque = opaque;
        picture.format.half |= args.half;
        picture.format.deep = args.deep;
        if args.to_standard_output() {
            print_bytes(&image::png_bytes(&picture.shown()));
            continue;
        }
        let files = picture.write(stem)?;
        let masked = picture.masked();
        if masked > 0 {
            progress.note(&format!(
                "{}: {masked} pixels have no ray, their distortion has no inverse",
                film.name
            ));
        }
        let lost = picture.not_finite();
        if lost > 0 {
            progress.note(&format!(
                "warning: {}: {lost} pixels are not finite: look for indices, radiances and scales that are far too large or small",
                film.name
            ));
        }
        // Paths that are not UTF-8 are no JSON strings: their lossy text is told.
        let written: Vec<String> = files.iter().map(|file| file.display().to_string()).collect();
        let event =
            json!({ "sensor": film.name, "index": film.sensors[0], "spp": spp, "masked": masked, "files": written });
        progress.event("render", event);
        if args.verbosity.speaks() {
            written.iter().for_each(|file| print_line(file));
        }
    }
    Ok(Outcome::Done)
}

/// Parses the value of `--scale`.
fn scale_factor(text: &str) -> Result<f32, String> {
    match text.parse() {
        Ok(factor) if (0.01..=64.0).contains(&factor) => Ok(factor),
        _ => Err("expected a number from 0.01 to 64".into()),
    }
}

/// The records and parameters of a scene, made with its sensors as `given`, since splats are placed by the picture of a
/// sensor of that size; then the enlarged sensors take their place.
fn resident_and_enlarged(scene: &mut Scene, given: Vec<Sensor>) -> Result<(Resident, ParamSet)> {
    let enlarged = std::mem::replace(&mut scene.sensors, given);
    let (mut resident, params) = Resident::new(scene)?;
    scene.sensors = enlarged;
    resident.look_through(&scene.sensors);
    Ok((resident, params))
}

/// Multiplies the pixels of a sensor along each edge by `factor`; its field of view stays.
///
/// # Errors
/// It would have more pixels than are possible.
fn enlarge(sensor: &mut Sensor, factor: f32) -> Result<()> {
    if factor == 1.0 {
        return Ok(());
    }
    let [width, height] = [sensor.width, sensor.height].map(|n| (n as f32 * factor).round().max(1.0));
    if f64::from(width) * f64::from(height) > MAX_PIXELS {
        bail!("--scale {factor}: {width}×{height} pixels are more than an image can have; lower it");
    }
    let [x, y] = [width / sensor.width as f32, height / sensor.height as f32];
    sensor.focal = [sensor.focal[0] * x, sensor.focal[1] * y];
    sensor.center = [sensor.center[0] * x, sensor.center[1] * y];
    (sensor.width, sensor.height) = (width as u32, height as u32);
    Ok(())
}

/// The largest number of pixels of an image.
const MAX_PIXELS: f64 = (1u32 << 29) as f64;

/// Indices of the sensors that `--sensor` selects.
fn choose(scene: &Scene, wanted: &str) -> Result<Vec<usize>> {
    let count = scene.sensors.len();
    if count == 0 {
        bail!("{}: has no sensor to render; add one", scene.path.display());
    }
    let of_batch = |name: &str| -> Vec<usize> {
        (0..count)
            .filter(|&i| scene.sensors[i].batch.as_deref() == Some(name))
            .collect()
    };
    let batch = of_batch(wanted);
    if !batch.is_empty() {
        return Ok(batch);
    }
    match sensor_index(scene, wanted) {
        Err(_) if wanted == "all" => Ok((0..count).collect()),
        found => {
            // An index selects the whole batch that its sensor belongs to, a name that sensor alone.
            let index = found?;
            let sensor = &scene.sensors[index];
            match &sensor.batch {
                Some(batch) if sensor.name != wanted => Ok(of_batch(batch)),
                _ => Ok(vec![index]),
            }
        }
    }
}

/// Extensions of image formats that are not written: an output path with one is rejected, not taken for a folder.
const OTHER_PICTURES: &[&str] = &[
    "jpg", "jpeg", "gif", "bmp", "tif", "tiff", "webp", "avif", "hdr", "pfm", "ppm", "tga",
];

/// Output paths without extension. Folders are created first, so that an unwritable location is reported before
/// rendering.
fn destinations(args: &RenderArgs, scene: &Scene, chosen: &[usize]) -> Result<Vec<PathBuf>> {
    let stems = stems(args, scene, chosen)?;
    let inputs = files_of(scene);
    if !args.to_standard_output() {
        for stem in &stems {
            ["exr", "png"]
                .iter()
                .try_for_each(|e| check_output(&with_extension(stem, e), &inputs))?;
        }
    }
    Ok(stems)
}

/// The files without their extensions.
fn stems(args: &RenderArgs, scene: &Scene, chosen: &[usize]) -> Result<Vec<PathBuf>> {
    let films = films(scene, chosen);
    if args.to_standard_output() {
        if args.deep {
            bail!("--output -: the picture on standard output has 8 bits; write a file, or leave out --deep");
        }
        if films.len() > 1 || args.verbosity.json {
            bail!("--output -: standard output takes one picture and nothing else; choose one sensor, without --json");
        }
        return Ok(vec![PathBuf::from("-")]);
    }
    let output = args
        .output
        .clone()
        .unwrap_or_else(|| default_folder("renders", &args.scene));
    let extension = output.extension().and_then(|e| e.to_str()).map(str::to_lowercase);
    if matches!(extension.as_deref(), Some("exr" | "png")) {
        if films.len() > 1 {
            bail!(
                "{}: is one file for {} sensors; give a folder",
                output.display(),
                films.len()
            );
        }
        if let Some(parent) = output.parent().filter(|p| !p.as_os_str().is_empty()) {
            create(parent)?;
        }
        return Ok(vec![output.with_extension("")]);
    }
    if let Some(other) = extension.filter(|e| OTHER_PICTURES.contains(&e.as_str()) && !output.is_dir()) {
        bail!(
            "{}: cannot be written as .{other}; give an .exr or .png file, or a folder",
            output.display()
        );
    }
    if output.is_file() {
        bail!(
            "{}: is a file; give an .exr or .png file, or a folder",
            output.display()
        );
    }
    create(&output)?;
    let names: Vec<&str> = scene.sensors.iter().map(|s| s.name.as_str()).collect();
    let stems = file_stems(&names);
    let place = |film: &Film| match film.sensors.len() {
        1 => output.join(&stems[film.sensors[0]]),
        _ => output.join(film.name),
    };
    Ok(films.iter().map(place).collect())
}
