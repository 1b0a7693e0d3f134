//! Flags that several commands share.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::{anyhow, bail};
use clap::{Args, ValueEnum};
use serde_json::{Value, json};

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
use crate::scene::{self, Change, Diagnostics, Placement, References, Scene};
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
    /// Part of the name of the GPU to use, if there are several; NAME#2 is the second that `prbopt info` lists
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
    let options = arguments();
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

/// The arguments of this command, for people to read: what is not UTF-8 in them is replaced.
pub(super) fn arguments() -> Vec<String> {
    let words = std::env::args_os().skip(1);
    words.map(|word| word.to_string_lossy().into_owned()).collect()
}

/// Checks that a file may be written at `path`: that it is none of `inputs`, which would be lost, and its folder is
/// writable.
///
/// # Errors
/// It may not; the sentence says why.
pub(super) fn check_output(path: &Path, inputs: &[impl AsRef<Path>]) -> anyhow::Result<()> {
    if inputs.iter().any(|input| is_same_file(path, input.as_ref())) {
        bail!(
            "{}: is read by this command, and would be lost; write to another file",
            path.display()
        );
    }
    Ok(atomic::check(path)?)
}

/// Whether two paths lead to one file or folder that is there, by symbolic or hard links, too.
pub(super) fn is_same_file(a: &Path, b: &Path) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let mark = |path: &Path| path.metadata().ok().map(|found| (found.dev(), found.ino()));
        mark(a).is_some_and(|found| mark(b) == Some(found))
    }
    #[cfg(not(unix))]
    {
        let place = |path: &Path| path.canonicalize().ok();
        place(a).is_some_and(|found| place(b) == Some(found))
    }
}

/// Checks that files named after parameters may be written into `folder`: that this replaces neither the values that
/// `parameters` holds nor a file in `inputs`.
///
/// # Errors
/// It would; the sentence says what, and `flag` chooses another folder.
pub(super) fn check_folder(
    folder: &Path,
    flag: &str,
    params: &ParamSet,
    parameters: Option<&Path>,
    inputs: &[PathBuf],
) -> anyhow::Result<()> {
    let shown = folder.display();
    if parameters.is_some_and(|read| is_same_file(folder, read)) {
        bail!(
            "{shown}: holds the values of --parameters, which would be lost under the derivatives; choose another \
             folder with {flag}"
        );
    }
    let is_written = |input: &&PathBuf| {
        let stem = input.file_stem().and_then(|stem| stem.to_str());
        stem.is_some_and(|stem| params.find(stem).is_some()) && is_same_file(folder, atomic::folder_of(input))
    };
    if let Some(input) = inputs.iter().find(is_written) {
        bail!(
            "{}: is read by this command, and could be lost under the derivatives; choose another folder with {flag}",
            input.display()
        );
    }
    Ok(())
}

/// A note for commands that show a scene without `--parameters`: which of its values are those that a run begins with. None
/// if all are those of the file.
pub(super) fn begins_otherwise(scene: &Scene) -> Option<String> {
    let shown: Vec<String> = scene.replaced.iter().map(|path| format!("`{path}`")).collect();
    (!shown.is_empty()).then(|| {
        format!(
            "{}: the values shown are those that a run begins with, `initial` in the block `optimize`; `--parameters` shows those \
             that a run has found",
            shown.join(", ")
        )
    })
}

/// The files and folders that a scene is made of: its own file, those that it names, the photographs of its data sets, and
/// the same of the scene that its references are rendered from.
pub(super) fn files_of(scene: &Scene) -> Vec<PathBuf> {
    let mut files = parts_of(scene);
    if let Some(folder) = scene.folder() {
        files.push(scene.path.clone());
        // Data sets and spectra have been read, and are named nowhere else.
        let text = std::fs::read(&scene.path).unwrap_or_default();
        let text = text.strip_prefix("\u{feff}".as_bytes()).unwrap_or(&text);
        if let Ok(written) = serde_json::from_slice(text) {
            named_in(&written, folder, &mut files);
        }
    }
    files
}

/// As [`files_of`], but for a scene whose own file is not written yet: without it, and without what it alone names.
pub(super) fn parts_of(scene: &Scene) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = scene.inputs().into_iter().map(Path::to_owned).collect();
    let photographs = scene.sensors.iter().filter_map(|sensor| sensor.reference.as_ref());
    files.extend(photographs.map(|photograph| photograph.path.clone()));
    if let Some(Placement::File(path)) = scene.splats.as_ref().map(|splats| &splats.placement) {
        files.push(path.clone());
    }
    let references = scene.optimize.as_ref().map(|block| &block.references);
    if let Some(References::Scene { path, .. }) = references
        && let Ok(target) = scene::load_target(path)
    {
        files.extend(files_of(&target));
    }
    files
}

/// Adds the paths that a scene file in `folder` gives by `filename`.
fn named_in(written: &Value, folder: &Path, files: &mut Vec<PathBuf>) {
    match written {
        Value::Array(items) => items.iter().for_each(|item| named_in(item, folder, files)),
        Value::Object(members) => {
            let name = members.get("filename").and_then(Value::as_str);
            files.extend(name.map(|name| folder.join(name)));
            members.values().for_each(|member| named_in(member, folder, files));
        }
        _ => {}
    }
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

    #[cfg(unix)]
    #[test]
    fn an_input_is_known_by_any_of_its_names() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("a"), "mine").expect("writable");
        std::fs::write(at("b"), "mine").expect("writable");
        std::fs::hard_link(at("a"), at("hard")).expect("a link");
        std::os::unix::fs::symlink(at("a"), at("soft")).expect("a link");
        for (name, is_read) in [
            ("a", true),
            ("hard", true),
            ("soft", true),
            ("b", false),
            ("none", false),
        ] {
            assert_eq!(
                check_output(&at(name), &[at("none"), at("a")]).is_err(),
                is_read,
                "{name}"
            );
        }
    }
}
