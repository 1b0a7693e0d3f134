//! Flags that several commands share.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::{anyhow, bail};
use clap::{Args, ValueEnum};
use serde_json::json;

use super::extent::{Extent, upward};

use crate::cluster::Cluster;
use crate::device::Device;
use crate::device::ranks::{self, Baton};
use crate::device::select::{self, DeviceChoice, DeviceKind};
use crate::io::atomic;
use crate::output::fingerprint::{Fingerprint, scene_fingerprint};
use crate::output::progress::{Progress, Style};
use crate::output::stored;
use crate::params::ParamSet;
use crate::resident::values;
use crate::scene::{self, Change, Diagnostics, Scene};
use crate::serve::{Page, Subject};
use crate::tell;

/// Reads the values of `scene`'s parameters from the files of a folder, and warns of files that belong to none of them.
///
/// # Errors
/// Files are missing, do not fit their parameter, or hold values out of its range.
pub(super) fn read_parameters(folder: &Path, scene: &Scene, params: &mut ParamSet) -> anyhow::Result<()> {
    let strangers = stored::read_all(folder, params)?;
    if !strangers.is_empty() {
        tell!(
            "warning: {}: left aside, since the scene has no parameter of this name and kind: {}",
            folder.display(),
            strangers.join(", ")
        );
    }
    match values::fault(scene, params) {
        Some(fault) => bail!("{}: {}", folder.display(), fault.message),
        None => Ok(()),
    }
}

/// The index of the sensor that `--sensor` selects. Names take precedence over indices: photographs often have numbers
/// as names.
///
/// # Errors
/// There is no such sensor.
pub(super) fn sensor_index(scene: &Scene, wanted: &str) -> anyhow::Result<usize> {
    let names = || scene.sensors.iter().map(|s| s.name.as_str());
    if let Some(index) = names().position(|name| name == wanted) {
        return Ok(index);
    }
    if let Some(index) = wanted.parse().ok().filter(|i| *i < scene.sensors.len()) {
        return Ok(index);
    }
    let likeness = |name: &str| strsim::jaro_winkler(name, wanted);
    let nearest = names()
        .filter(|name| likeness(name) > 0.8)
        .max_by(|a, b| likeness(a).total_cmp(&likeness(b)));
    match (nearest, scene.sensors.len()) {
        (Some(name), _) => bail!("--sensor {wanted}: there is no such sensor; did you mean `{name}`?"),
        (None, 0) => bail!("--sensor {wanted}: there is no such sensor; add one to the scene"),
        (None, 1) => bail!(
            "--sensor {wanted}: there is no such sensor; the only one is `{}`",
            scene.sensors[0].name
        ),
        (None, count) => bail!(
            "--sensor {wanted}: there is no such sensor; give a name such as `{}`, or an index from 0 to {}",
            scene.sensors[0].name,
            count - 1
        ),
    }
}

/// Which device to run on.
#[derive(Debug, Clone, Default, Args)]
pub struct DeviceArgs {
    /// The device to run on
    #[arg(long, value_enum, default_value_t)]
    pub device: DeviceName,
    /// Part of the name of the GPU to use, if there are several
    #[arg(long, value_name = "NAME")]
    pub adapter: Option<String>,
    /// Sum gradients in fixed point on a GPU, so that the same seed gives the same bits (the CPU always does)
    #[arg(long)]
    pub deterministic: bool,
    /// Let the GPU's ray-tracing hardware find what rays meet; refused where it has none, and beside --deterministic
    #[arg(long)]
    pub ray_queries: bool,
}

/// The devices to choose from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum DeviceName {
    /// A hardware GPU if there is one, else the CPU
    #[default]
    Auto,
    /// The CPU
    Cpu,
    /// A GPU; without a hardware GPU, what stands in for one
    Gpu,
}

impl DeviceArgs {
    /// Opens the device.
    ///
    /// # Errors
    /// There is no such device.
    pub fn open(&self) -> anyhow::Result<Box<dyn Device>> {
        Ok(select::open(&self.choice(), Cluster::single())?)
    }

    /// Opens the device, or a share of one where there are several ranks.
    ///
    /// # Errors
    /// There is no such device, or it cannot be shared.
    pub fn open_shared(&self) -> anyhow::Result<(Box<dyn Device>, Baton)> {
        Ok(ranks::open(&self.choice())?)
    }

    /// The requested device.
    pub fn choice(&self) -> DeviceChoice {
        DeviceChoice {
            kind: match self.device {
                DeviceName::Auto => DeviceKind::Auto,
                DeviceName::Cpu => DeviceKind::Cpu,
                DeviceName::Gpu => DeviceKind::Gpu,
            },
            adapter: self.adapter.clone(),
            deterministic: self.deterministic,
            ray_queries: self.ray_queries,
        }
    }

    /// The flags as they would be typed; empty for the defaults.
    pub fn words(&self) -> Vec<String> {
        let mut words = Vec::new();
        match self.device {
            DeviceName::Auto => {}
            DeviceName::Cpu => words.extend(["--device".into(), "cpu".into()]),
            DeviceName::Gpu => words.extend(["--device".into(), "gpu".into()]),
        }
        if let Some(name) = &self.adapter {
            words.extend(["--adapter".into(), name.clone()]);
        }
        if self.deterministic {
            words.push("--deterministic".into());
        }
        if self.ray_queries {
            words.push("--ray-queries".into());
        }
        words
    }
}

/// Checks that all ranks run the same program with the same options on the same scene.
///
/// # Errors
/// One differs, or the scene came from standard input, which one rank alone can read.
pub(super) fn check_ranks(path: &Path, scene: &Scene, device: &dyn Device) -> anyhow::Result<()> {
    let cluster = Cluster::world();
    if cluster.is_single() {
        return Ok(());
    }
    if path == Path::new("-") {
        bail!("ranks cannot all read the scene from standard input; write it into a file that all of them see");
    }
    let program = std::env::current_exe().map(|path| Fingerprint::default().with_file(&path).text());
    let options: Vec<String> = std::env::args().skip(1).collect();
    let marks = [
        ("the program", program.unwrap_or_default()),
        (
            match device.info().kind {
                "cpu" => "the processor's vector level",
                _ => "the GPU",
            },
            device.arithmetic(),
        ),
        (
            "the command",
            Fingerprint::default().with(options.join("\0").as_bytes()).text(),
        ),
        (
            "the scene or its data",
            scene_fingerprint(&scene.resolved, scene.folder(), &scene.files()),
        ),
    ];
    cluster.agree(&marks).map_err(|e| anyhow!(e))
}

/// Values that take the place of the scene file's.
#[derive(Debug, Clone, Default, Args)]
pub struct SetArgs {
    /// Put a value in the place of the scene's, such as object.interior.scale=20; may be repeated
    #[arg(long = "set", value_name = "PATH=VALUE")]
    pub changes: Vec<Change>,
}

impl SetArgs {
    /// Reads a scene file, or standard input for `-`, with these changes.
    ///
    /// # Errors
    /// The scene has mistakes, or the path of a change does not exist.
    pub fn load(&self, path: &Path) -> Result<Scene, Diagnostics> {
        scene::load_with(path, &self.changes)
    }

    /// Like [`load`](Self::load), for a command that differentiates by the parameters that `asked` names.
    ///
    /// # Errors
    /// As [`load`](Self::load), or there is no derivative by one of them.
    pub fn load_asking(&self, path: &Path, asked: &[String]) -> Result<Scene, Diagnostics> {
        scene::load_asking(path, &self.changes, asked)
    }

    /// The flags as they would be typed.
    pub fn words(&self) -> Vec<String> {
        self.changes
            .iter()
            .flat_map(|change| ["--set".into(), change.to_string()])
            .collect()
    }
}

/// A page of a run.
#[derive(Debug, Clone, Copy, Args)]
pub struct ServeArgs {
    /// Serve a page that shows the run as it goes, with a view that one turns [default address: 127.0.0.1:7878, or the
    /// next free port]
    #[arg(long, value_name = "ADDRESS", num_args = 0..=1, require_equals = true)]
    pub serve: Option<Option<SocketAddr>>,
}

/// The sphere around which the camera of a page orbits, and its up direction; None without an extent.
///
/// # Errors
/// A mesh cannot be read.
pub(super) fn subject(scene: &Scene) -> anyhow::Result<Option<Subject>> {
    let extent = Extent::of(scene)?.filter(|extent| extent.radius() > 0.0);
    Ok(extent.map(|extent| Subject {
        center: extent.center(),
        radius: extent.radius(),
        up: upward(&scene.sensors),
    }))
}

/// Prints the address of a page, even in a quiet run, since nobody could open the page without it.
pub(super) fn announce_page(progress: &Progress, page: &Page) {
    let (url, tunnel) = (page.url(), page.tunnel());
    progress.event("serve", json!({ "url": url, "tunnel": tunnel }));
    if !progress.is_json() {
        tell!(
            "page: {url}
  seen from another machine by: {tunnel}"
        );
    }
}

/// How much to say, and to whom.
#[derive(Debug, Clone, Copy, Args)]
pub struct OutputArgs {
    /// Say nothing but errors
    #[arg(short, long)]
    pub quiet: bool,
    /// Print one line of JSON an event to standard output
    #[arg(long)]
    pub json: bool,
}

impl OutputArgs {
    /// Progress output in the requested style.
    pub fn progress(self) -> Progress {
        match Cluster::world().leads() {
            true => Progress::new(Style::choose(self.quiet, self.json)),
            false => Progress::new(Style::Quiet),
        }
    }

    /// Whether results are printed as text for people.
    pub fn speaks(self) -> bool {
        !self.quiet && !self.json && Cluster::world().leads()
    }
}

/// The default output folder under `parent`, named after the scene's file.
pub fn default_folder(parent: &str, scene: &Path) -> PathBuf {
    if scene == Path::new("-") {
        return Path::new(parent).join("scene");
    }
    let stem = scene.file_stem().map_or_else(|| "scene".into(), |s| s.to_os_string());
    Path::new(parent).join(stem)
}

/// A command as it would be typed in a shell.
pub fn command_line<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_./:=,+@%".contains(c);
    let quote = |word: &str| {
        if !word.is_empty() && word.chars().all(plain) {
            word.to_owned()
        } else {
            format!("'{}'", word.replace('\'', r"'\''"))
        }
    };
    words.into_iter().map(quote).collect::<Vec<_>>().join(" ")
}

/// Checks that a file may be written at `path`: that it is none of `inputs`, which would be lost, and its folder is
/// writable.
///
/// # Errors
/// It may not; the sentence says why.
pub(super) fn check_output(path: &Path, inputs: &[&Path]) -> anyhow::Result<()> {
    let place = |path: &Path| path.canonicalize().ok();
    if let Some(found) = place(path)
        && inputs.iter().any(|input| place(input).as_ref() == Some(&found))
    {
        bail!(
            "{}: is read by this command, and would be lost; write to another file",
            path.display()
        );
    }
    Ok(atomic::check(path)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_survive_a_shell() {
        assert_eq!(
            command_line(["prbopt", "a b.json", "-o", "it's"]),
            r"prbopt 'a b.json' -o 'it'\''s'"
        );
        assert_eq!(default_folder("runs", Path::new("x/lego.json")), Path::new("runs/lego"));
    }
}
