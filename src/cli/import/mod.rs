//! `prbopt import`: writes a scene file for a data set, a picture, or a scene of Mitsuba's XML or of glTF, and says what it
//! chose.

mod coverage;
pub mod gltf;
pub mod mitsuba;
mod numbers;
mod picture;
mod recipe;

use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::{Result, bail, ensure};
use clap::value_parser;

use super::Outcome;
use super::shared::{check_output, command_line, parts_of};
use crate::io::dataset::Location;
use crate::io::{atomic, dataset, json, relative};
use crate::output::streams::print_line;
use crate::scene;
use crate::tell;
use coverage::{Coverage, HeldOut};
use recipe::{Behind, Plan};

/// Arguments of `prbopt import`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    prbopt import lego/transforms_train.json -o lego.json\n  \
    prbopt import garden/sparse/0 --downscale 4 --hold-out 8\n  \
    prbopt import photo.png --splats 20000 -o photo.json\n  \
    prbopt import room.xml -D spp=64 -o room.json\n  \
    prbopt import room.glb -o room.json")]
pub struct ImportArgs {
    /// A transforms.json, the folder of a COLMAP model, a Mitsuba scene in XML, a scene of glTF (.glb, .gltf), or with
    /// --splats a picture
    pub dataset: PathBuf,
    /// The scene file to write, or - for standard output [default: named after the data set's folder, in the current
    /// folder]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Show a picture as this many two-dimensional Gaussians
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..=1 << 26))]
    pub splats: Option<u32>,
    /// Of a Mitsuba scene, the value of a parameter that it asks for as $NAME; may be repeated
    #[arg(short = 'D', long, value_name = "NAME=VALUE", value_parser = definition)]
    pub define: Vec<(String, String)>,
    /// Hold out every N-th view, counted from 0; 0 for none [default: the data set's test split, else 8]
    #[arg(long, value_name = "N")]
    pub hold_out: Option<u32>,
    /// Reduce the images by this whole number
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = value_parser!(u32).range(1..=64))]
    pub downscale: u32,
    /// What transparent parts are composited on: white, black, r,g,b, random, or none for a learned background
    /// [default: white where the images are transparent, else none]
    #[arg(long, value_name = "COLOR")]
    pub background: Option<BackgroundChoice>,
    /// Voxels along each edge of the grids at the end of the run
    #[arg(long, value_name = "N", default_value_t = 128, value_parser = value_parser!(u32).range(2..=2048))]
    pub resolution: u32,
    /// Degree of the spherical harmonics of the colour
    #[arg(long, value_name = "DEGREE", default_value_t = 2, value_parser = value_parser!(u32).range(0..=3))]
    pub sh_degree: u32,
    /// Leave out views whose image is missing
    #[arg(long)]
    pub skip_missing: bool,
    /// Composite and fit in linear light instead of sRGB-coded values
    #[arg(long)]
    pub linear: bool,
    /// Overwrite the scene file
    #[arg(long)]
    pub force: bool,
    /// Say nothing but errors
    #[arg(short, long)]
    pub quiet: bool,
}

/// Extensions of pictures, which become splats.
const PICTURES: [&str; 7] = ["png", "jpg", "jpeg", "exr", "hdr", "bmp", "tga"];

impl ImportArgs {
    /// Whether the file has one of these extensions.
    fn is_one_of(&self, extensions: &[&str]) -> bool {
        let extension = self.dataset.extension();
        extension.is_some_and(|e| extensions.iter().any(|known| e.eq_ignore_ascii_case(known)))
    }

    /// Refuses options other than `used`, which have no meaning for the import of `what`.
    fn check_options(&self, what: &str, used: &[&str]) -> Result<()> {
        let given = [
            ("--splats", self.splats.is_some()),
            ("--define", !self.define.is_empty()),
            ("--hold-out", self.hold_out.is_some()),
            ("--downscale", self.downscale != 1),
            ("--background", self.background.is_some()),
            ("--resolution", self.resolution != 128),
            ("--sh-degree", self.sh_degree != 2),
            ("--skip-missing", self.skip_missing),
            ("--linear", self.linear),
        ];
        match given.iter().find(|(name, is_given)| *is_given && !used.contains(name)) {
            Some((name, _)) => bail!(
                "{name}: is not for {what}, as {} is; leave it out",
                self.dataset.display()
            ),
            None => Ok(()),
        }
    }
}

/// Parses a value of `--define`.
fn definition(text: &str) -> std::result::Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.into(), value.into())),
        _ => Err("expected a name and a value, such as spp=64".into()),
    }
}

/// The value of `--background`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum BackgroundChoice {
    Color([f32; 3]),
    Random,
    None,
}

impl FromStr for BackgroundChoice {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        match text {
            "white" => return Ok(BackgroundChoice::Color([1.0; 3])),
            "black" => return Ok(BackgroundChoice::Color([0.0; 3])),
            "random" => return Ok(BackgroundChoice::Random),
            "none" => return Ok(BackgroundChoice::None),
            _ => {}
        }
        let numbers: Option<Vec<f32>> = text.split(',').map(|v| v.trim().parse().ok()).collect();
        match numbers.as_deref() {
            Some(&[r, g, b]) if [r, g, b].iter().all(|v| (0.0..=1.0).contains(v)) => {
                Ok(BackgroundChoice::Color([r, g, b]))
            }
            _ => Err("expected white, black, random, none, or three numbers from 0 to 1 such as 0.5,0.5,1".into()),
        }
    }
}

/// Writes the scene file and prints its choices.
///
/// # Errors
/// If the data set is not usable, or the scene file exists already or cannot be written.
pub fn run(mut args: ImportArgs) -> Result<Outcome> {
    ensure!(
        args.dataset.exists(),
        "{}: there is no such file or folder; expected a transforms.json, the folder of a COLMAP model, a scene in XML or glTF, or a \
         picture",
        args.dataset.display()
    );
    if args.is_one_of(&["xml"]) {
        args.check_options("a Mitsuba scene", &["--define"])?;
        return mitsuba::run(&args);
    }
    if args.is_one_of(&["glb", "gltf"]) {
        args.check_options("a scene of glTF", &[])?;
        return gltf::run(&args);
    }
    if let Some(count) = args.splats {
        args.check_options("a picture", &["--splats", "--downscale", "--background", "--linear"])?;
        return picture::run(&args, count);
    }
    if args.dataset.is_file() && args.is_one_of(&PICTURES) {
        bail!(
            "{}: is a picture, which is imported as splats; say how many by --splats, such as --splats 20000",
            args.dataset.display()
        );
    }
    let of_photographs = [
        "--hold-out",
        "--downscale",
        "--background",
        "--resolution",
        "--sh-degree",
        "--skip-missing",
        "--linear",
    ];
    args.check_options("photographs with cameras", &of_photographs)?;
    if let Location::Transforms(file) = dataset::locate(&args.dataset)? {
        args.dataset = file;
    }
    let to_standard_output = args.output.as_deref() == Some(Path::new("-"));
    let output = args.output.clone().unwrap_or_else(|| default_output(&args.dataset));
    if !to_standard_output {
        check_scene_file(&args, &output)?;
    }
    let coverage = Coverage::new(&args)?;
    let content = coverage.content();
    let plan = Plan {
        dataset: relative(&args.dataset, &output)?,
        test_split: match &coverage.held_out {
            HeldOut::Split(file, _) => Some(relative(file, &output)?),
            HeldOut::Every(_) => None,
        },
        hold_out: coverage.hold_out(),
        downscale: args.downscale,
        skip_missing: args.skip_missing && coverage.missing > 0,
        linear: args.linear,
        behind: match coverage.background {
            BackgroundChoice::Color(color) => Behind::Color(color),
            BackgroundChoice::Random => Behind::Random,
            BackgroundChoice::None => Behind::Learned,
        },
        content,
        bounds: dataset::bounds::fit(&coverage.dataset, content)?,
        resolution: args.resolution,
        sh_degree: args.sh_degree,
    };
    let text = json::pretty(&plan.scene());
    let scene = scene::parse(&text, &output)?;
    if to_standard_output {
        print_line(text.trim_end());
        return Ok(Outcome::Done);
    }
    check_output(&output, &parts_of(&scene))?;
    if let HeldOut::Split(file, _) = &coverage.held_out {
        check_output(&output, &[file])?;
    }
    atomic::write_bytes(&output, text.as_bytes())?;
    if !args.quiet {
        tell!("{}", report(&args, &coverage, &plan).trim_end());
        let shown = output.display().to_string();
        let next = command_line(["prbopt", "optimize", &shown]);
        tell!("wrote {shown}; reconstruct with: {next}");
    }
    Ok(Outcome::Done)
}

/// Checks that the scene file may be written at `output`: that there is none yet, or one that `--force` overwrites. That
/// takes only what can be a scene file by its name, as the files of a data set have many names.
///
/// # Errors
/// It may not.
fn check_scene_file(args: &ImportArgs, output: &Path) -> Result<()> {
    let shown = output.display();
    ensure!(
        args.force || !output.exists(),
        "{shown}: exists already; overwrite it by --force, or choose another name with --output"
    );
    let is_scene = output.extension().is_some_and(|e| e.eq_ignore_ascii_case("json"));
    ensure!(
        is_scene || !output.is_file(),
        "{shown}: exists already and is no .json, and --force overwrites only scene files; choose another name with --output"
    );
    check_output(output, &[&args.dataset])
}

/// The choices, with reasons and the flags that change them.
fn report(args: &ImportArgs, coverage: &Coverage, plan: &Plan) -> String {
    let (center, half) = plan.cube();
    let edges = half * 2.0;
    let size = match edges == glam::DVec3::splat(edges.x) {
        true => format!("{} wide", edges.x),
        false => format!("{} × {} × {}", edges.x, edges.y, edges.z),
    };
    let voxel = edges.min_element() / f64::from(plan.resolution);
    let values = f64::from(plan.resolution).powi(3) * f64::from(1 + 3 * (plan.sh_degree + 1).pow(2));
    let steps: Vec<String> = plan.resolutions().iter().map(|n| format!("{n}³")).collect();
    let color = if plan.linear {
        "linear light, as asked"
    } else {
        "sRGB-coded values, as the images hold them (--linear)"
    };
    let mut lines = vec![
        ("data set", coverage.views_in_words()),
        ("held out", coverage.held_out_in_words()),
        (
            "box",
            format!(
                "{size} around ({}, {}, {}): {}",
                center.x, center.y, center.z, plan.bounds.reason
            ),
        ),
        ("background", coverage.background_in_words(args)),
        ("colour", format!("fitted in {color}")),
        (
            "grids",
            format!(
                "{}, voxels of {voxel:.3} at the end, SH of degree {}: {:.0} MiB, and 4 times that with gradient and \
                 moments (--resolution, --sh-degree)",
                steps.join(" → "),
                plan.sh_degree,
                values * 4.0 / f64::from(1 << 20)
            ),
        ),
        ("run", plan.run_in_words()),
    ];
    lines.extend(coverage.dataset.notes.iter().map(|note| ("note", note.clone())));
    lines.iter().map(|(what, text)| format!("{what:<12}{text}\n")).collect()
}

/// `<folder>.json` in the current folder, or `scene.json`.
fn default_output(dataset: &Path) -> PathBuf {
    let folder = if dataset.is_dir() {
        Some(dataset)
    } else {
        dataset.parent()
    };
    let folder = folder.and_then(|folder| {
        std::fs::canonicalize(if folder.as_os_str().is_empty() {
            Path::new(".")
        } else {
            folder
        })
        .ok()
    });
    let name = folder.and_then(|folder| folder.file_name().map(|name| name.to_string_lossy().into_owned()));
    PathBuf::from(format!("{}.json", name.unwrap_or_else(|| "scene".into())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backgrounds_are_names_or_three_numbers() {
        assert_eq!("white".parse(), Ok(BackgroundChoice::Color([1.0; 3])));
        assert_eq!("0.5, 0,1".parse(), Ok(BackgroundChoice::Color([0.5, 0.0, 1.0])));
        assert_eq!("none".parse(), Ok(BackgroundChoice::None));
        for wrong in ["whit", "1,2,3", "0.5", "0,0,nan", ""] {
            assert!(wrong.parse::<BackgroundChoice>().is_err(), "{wrong}");
        }
    }
}
