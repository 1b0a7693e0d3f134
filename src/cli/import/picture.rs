//! `prbopt import photo.png --splats N`: a scene that shows a picture as splats.

use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::{BackgroundChoice, ImportArgs, check_scene_file, relative};
use crate::cli::Outcome;
use crate::cli::shared::command_line;
use crate::io::{atomic, image, json};
use crate::output::splats::HALF_BITS;
use crate::output::streams::print_line;
use crate::scene;
use crate::tell;

/// Iterations of a run.
const ITERATIONS: u32 = 2000;

/// The learning rate of positions over the distance of neighbouring splats.
const POSITION_RATE: f64 = 0.07;

/// Writes the scene file.
///
/// # Errors
/// The picture cannot be read, or the scene file exists already or cannot be written.
pub(super) fn run(args: &ImportArgs, count: u32) -> Result<Outcome> {
    let output = args.output.clone().unwrap_or_else(|| default_output(&args.dataset));
    let to_standard_output = output == Path::new("-");
    if !to_standard_output {
        check_scene_file(args, &output)?;
    }
    let header = image::header(&args.dataset)?;
    let [width, height] = [header.width, header.height].map(|n| n / args.downscale as usize);
    ensure!(
        width > 0 && height > 0,
        "{}: {}×{} pixels cannot be reduced {} times; lower --downscale",
        args.dataset.display(),
        header.width,
        header.height,
        args.downscale
    );
    let text = json::pretty(&scene(args, count, [width, height], relative(&args.dataset, &output)?));
    scene::parse(&text, &output)?;
    if to_standard_output {
        print_line(text.trim_end());
        return Ok(Outcome::Done);
    }
    atomic::write_bytes(&output, text.as_bytes())?;
    if !args.quiet {
        let bits = HALF_BITS as f64 * f64::from(count) / (width * height) as f64;
        tell!("picture     {width}×{height} pixels");
        tell!("splats      {count}, {bits:.2} bits a pixel at half precision (--splats)");
        tell!("placement   by the picture's gradient, in its colours");
        tell!(
            "colour      fitted in {}",
            if args.linear {
                "linear light"
            } else {
                "sRGB-coded values (--linear)"
            }
        );
        let shown = output.display().to_string();
        let next = command_line(["prbopt", "optimize", &shown]);
        tell!("wrote {shown}; recover the picture with: {next}");
    }
    Ok(Outcome::Done)
}

fn scene(args: &ImportArgs, count: u32, [width, height]: [usize; 2], file: String) -> Value {
    let behind = match args.background {
        Some(BackgroundChoice::Color(color)) => color,
        Some(BackgroundChoice::Random | BackgroundChoice::None) | None => [1.0; 3],
    };
    let side = width.max(height) as f64;
    let spacing = ((width * height) as f64 / f64::from(count)).sqrt() / side;
    // Two digits: more would only look exact.
    let power = 10f64.powf((POSITION_RATE * spacing).log10().floor() - 1.0);
    let rate = (POSITION_RATE * spacing / power).round() * power;
    let rate = format!("{rate:.2e}").parse::<f64>().unwrap_or(rate);
    json!({
        "type": "scene",
        "picture": {
            "type": "canvas",
            "image": { "filename": file, "downscale": args.downscale, "background": behind },
            "film": {
                "type": "hdrfilm",
                "color_space": if args.linear { "linear" } else { "srgb" },
                "rfilter": { "type": "box" },
            },
        },
        "background": { "type": "constant", "radiance": behind },
        "splats": { "type": "splats", "count": count, "placement": "picture" },
        "optimize": {
            "iterations": ITERATIONS,
            "optimizer": { "type": "adam", "beta_2": 0.99 },
            "schedule": { "type": "exponential", "final_factor": 0.1 },
            "parameters": {
                "splats.position": { "learning_rate": rate },
                "splats.scale": { "learning_rate": 0.02 },
                "splats.rotation": { "learning_rate": 0.02 },
                "splats.color": { "learning_rate": 0.01 },
                "splats.opacity": { "learning_rate": 0.01 },
            },
            "output": { "images_every": 200 },
        },
    })
}

/// `<picture>.json` in the current folder.
fn default_output(picture: &Path) -> PathBuf {
    let stem = picture
        .file_stem()
        .map_or_else(|| "picture".into(), |s| s.to_os_string());
    Path::new(&stem).with_extension("json")
}
