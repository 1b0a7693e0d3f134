//! A run's data, read from its folder.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use serde_json::Value;

use super::grids::{self, Display, Texels};
use crate::io::tensors::Reader;
use crate::io::{image, vol};
use crate::output::metrics::{self, Figures};
use crate::output::parameters::SHOWN_SAMPLES;
use crate::output::run_folder::RunFolder;
use crate::params::Shape;

/// The status of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    /// Its process is running.
    Running,
    /// It has not finished, and there is no sign of a running process.
    Stopped,
    Finished,
}

/// One run.
#[derive(Debug)]
pub(super) struct RunData {
    /// Its folder's name.
    pub(super) name: String,
    pub(super) folder: RunFolder,
    pub(super) standing: Standing,
    /// `run.json`, or null.
    pub(super) record: Value,
    /// `scene.json`, or null.
    pub(super) scene: Value,
    /// `held_out.json`, or null.
    pub(super) held_out: Value,
    /// `held_out_refined.json` and `final/cameras.json`, or null.
    pub(super) held_out_refined: Value,
    pub(super) cameras: Value,
    pub(super) figures: Vec<Figures>,
    pub(super) views: Vec<View>,
    pub(super) parameters: Vec<Recovered>,
    /// Initial textures, maps and numbers, and those of the scene that references were rendered from.
    pub(super) start: Vec<Recovered>,
    pub(super) truth: Vec<Recovered>,
}

/// A view and its image files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct View {
    /// The stem of its files.
    pub(super) name: String,
    pub(super) reference: Option<PathBuf>,
    /// Whether it is held out.
    pub(super) held_out: bool,
    /// Iteration and render, in order; the held-out render is that of the last iteration.
    pub(super) frames: Vec<(u32, PathBuf)>,
}

/// A recovered parameter, as far as a report shows it: whole arrays can be as large as all the rest of a run.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Recovered {
    pub(super) path: String,
    pub(super) shape: Shape,
    /// The values of evenly chosen texels, at most [`SHOWN_SAMPLES`].
    pub(super) sample: Vec<f32>,
    /// The least and the largest value of all that are finite; None if none is.
    pub(super) range: Option<(f32, f32)>,
    /// What is displayed of a volume or a map; None for numbers, for places of vertices, and where the values do not fit the shape.
    pub(super) texels: Option<Texels>,
}

impl Recovered {
    /// `values` are `[z][y][x][channel]`; `scene` says how they are displayed.
    pub(super) fn new(scene: &Value, path: &str, shape: Shape, values: &[f32]) -> Self {
        let channels = shape.channels.max(1);
        let step = values
            .len()
            .div_ceil(channels)
            .div_ceil((SHOWN_SAMPLES / channels).max(1))
            .max(1);
        let display = Display::of(scene, path, shape.channels);
        let is_shown = shape.texels() > 1
            && values.len() == shape.len()
            && shape.channels >= display.channels()
            && ![".vertex_positions", ".vertex_normals"]
                .iter()
                .any(|end| path.ends_with(end));
        Self {
            path: path.to_owned(),
            shape,
            sample: values.chunks(channels).step_by(step).flatten().copied().collect(),
            range: grids::range(values.iter().copied()),
            texels: is_shown.then(|| Texels::new(display, shape, values)),
        }
    }
}

/// Reads the contents of a run's folder. Files that do not exist yet leave their part empty.
///
/// # Errors
/// The folder holds no run, or a file in it cannot be read.
pub(super) fn read(path: &Path, at_work: bool) -> Result<RunData> {
    let folder = RunFolder::at(path);
    if !folder.metrics().is_file() {
        let hint = first_run_in(path).map_or_else(String::new, |run| format!("; did you mean {}?", run.display()));
        bail!(
            "{}: holds no run, expected a folder that `prbopt optimize` has written, with metrics.jsonl in it{hint}",
            path.display()
        );
    }
    let figures = metrics::read(&folder.metrics())?;
    let done = figures.last().map_or(0, |f| f.iteration);
    let standing = match (folder.results().is_dir(), at_work) {
        (_, true) => Standing::Running,
        (true, false) => Standing::Finished,
        (false, false) => Standing::Stopped,
    };
    let scene = json(&folder.scene());
    Ok(RunData {
        name: name_of(path),
        standing,
        record: json(&folder.record()),
        held_out: json(&folder.held_out_figures()),
        held_out_refined: json(&folder.held_out_refined_figures()),
        cameras: json(&folder.results().join("cameras.json")),
        views: views(&folder, &scene, done),
        parameters: parameters(&folder, &scene)?,
        start: results(&folder.start(), &scene)?,
        truth: results(&folder.truth(), &scene)?,
        scene,
        figures,
        folder,
    })
}

/// The first run inside a folder.
fn first_run_in(folder: &Path) -> Option<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let runs = entries.map(|entry| entry.path());
    runs.filter(|path| RunFolder::at(path).metrics().is_file()).min()
}

/// The name of a folder, also if it is given as `.`.
fn name_of(path: &Path) -> String {
    let whole = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    whole
        .file_name()
        .map_or_else(|| path.display().to_string(), |n| n.to_string_lossy().into_owned())
}

fn json(path: &Path) -> Value {
    let bytes = fs::read(path).unwrap_or_default();
    serde_json::from_slice(&bytes).unwrap_or_default()
}

/// Files of `folder` with this extension, in order.
fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|e| e == extension))
        .filter(|path| !stem(path).starts_with('.'))
        .collect();
    found.sort();
    found
}

fn stem(path: &Path) -> String {
    path.file_stem()
        .map_or_else(String::new, |s| s.to_string_lossy().into_owned())
}

/// The views that a run has rendered: previews, then held-out views.
fn views(folder: &RunFolder, scene: &Value, done: u32) -> Vec<View> {
    let mut views: Vec<View> = Vec::new();
    let mut add = |name: &str, iteration: u32, path: PathBuf| {
        let at = views.iter().position(|v| v.name == name).unwrap_or_else(|| {
            let reference = folder.reference_images().join(format!("{name}.png"));
            views.push(View {
                name: name.to_owned(),
                reference: reference.is_file().then_some(reference),
                held_out: scene[name]["held_out"] == true,
                frames: Vec::new(),
            });
            views.len() - 1
        });
        views[at].frames.push((iteration, path));
    };
    for path in files(&folder.images(), "png") {
        let stem = stem(&path);
        if let Some((number, name)) = stem.split_once('_')
            && let Ok(iteration) = number.parse()
            && iteration <= done
        {
            add(name, iteration, path.clone());
        }
    }
    for path in files(&folder.held_out(), "png") {
        add(&stem(&path), done, path.clone());
    }
    for view in &mut views {
        view.frames.sort_by_key(|(iteration, _)| *iteration);
        view.frames.dedup_by_key(|(iteration, _)| *iteration);
    }
    views
}

/// The final values of a run, or those of its newest checkpoint.
fn parameters(folder: &RunFolder, scene: &Value) -> Result<Vec<Recovered>> {
    if folder.results().is_dir() {
        return results(&folder.results(), scene);
    }
    // A run has no checkpoint in its first seconds.
    let Ok(mut reader) = Reader::open(&folder.checkpoint()) else {
        return Ok(Vec::new());
    };
    let mut found = Vec::new();
    for name in reader.names() {
        let Some(path) = name.strip_suffix("/values") else {
            continue;
        };
        let Some(&[z, y, x, channels]) = reader.shape(&name) else {
            continue;
        };
        let size = [x, y, z];
        found.push(Recovered::new(
            scene,
            path,
            Shape { size, channels },
            &reader.f32(&name)?,
        ));
    }
    Ok(found)
}

/// What a folder of results holds, a file at a time.
fn results(folder: &Path, scene: &Value) -> Result<Vec<Recovered>> {
    let mut found = Vec::new();
    let mut add = |path: &Path, size: [usize; 3], channels: usize, values: &[f32]| {
        found.push(Recovered::new(scene, &stem(path), Shape { size, channels }, values));
    };
    for path in files(folder, "vol") {
        let grid = vol::read(&path)?;
        add(&path, grid.size, grid.channels, &grid.data);
    }
    for path in files(folder, "exr") {
        let (image, _) = image::read(&path)?;
        add(&path, [image.width, image.height, 1], image.channels, &image.data);
    }
    for path in files(folder, "json") {
        let numbers = json(&path)["value"].as_array().cloned().unwrap_or_default();
        let values: Vec<f32> = numbers.iter().filter_map(Value::as_f64).map(|v| v as f32).collect();
        add(&path, [1; 3], values.len(), &values);
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(found)
}

/// Makes the names of runs with equal folder names unique.
pub(super) fn tell_apart(runs: &mut [RunData]) {
    let names: Vec<String> = runs.iter().map(|run| run.name.clone()).collect();
    for (i, run) in runs.iter_mut().enumerate() {
        if names.iter().filter(|name| **name == names[i]).count() > 1 {
            run.name = run.folder.path().display().to_string();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of 1024² texels every fourth is chosen, with all of its colours. Values that do not fit their shape are not displayed.
    #[test]
    fn samples_are_whole_texels() {
        let shape = Shape {
            size: [1024, 1024, 1],
            channels: 3,
        };
        let blue: Vec<f32> = (0..shape.len()).map(|i| if i % 3 == 2 { 7.0 } else { 0.0 }).collect();
        let found = Recovered::new(&Value::Null, "sky.data", shape, &blue);
        let count = |value: f32| found.sample.iter().filter(|v| **v == value).count();
        assert_eq!([count(7.0), count(0.0)], [1 << 18, 2 << 18]);
        assert_eq!(found.range, Some((0.0, 7.0)));
        assert!(found.texels.is_some());
        assert!(
            Recovered::new(&Value::Null, "sky.data", shape, &blue[3..])
                .texels
                .is_none()
        );
        assert_eq!(
            Recovered::new(
                &Value::Null,
                "a",
                Shape {
                    size: [1; 3],
                    channels: 1
                },
                &[f32::NAN]
            )
            .range,
            None
        );
    }
}
