//! The folder of a run: what is in it and where, and whether it may be written to.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};

use super::lock::{self, Lock};
use super::record::{self, Stated};
use crate::io::{IoError, atomic};

/// What to do with a folder that may hold a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opening {
    /// Refuse it if it holds a run.
    New,
    /// The run that it holds will be removed.
    Force,
    /// Go on with the run that it holds.
    Resume,
}

/// The folder of a run.
#[derive(Debug)]
pub struct RunFolder {
    path: PathBuf,
    /// Present if this process works on the run; keeps other processes out until it is dropped.
    lock: Option<Lock>,
}

/// Rendered references.
const REFERENCES: &str = "references.safetensors";

/// Everything that belongs to one run. Rendered references are not part of it: their file holds a hash of all
/// that they depend on. The record stands last, as it is removed last: while it is there, the rest is known to be the run's.
const CONTENTS: [&str; 15] = [
    "scene.json",
    "checkpoint.safetensors",
    "metrics.jsonl",
    "held_out.json",
    "held_out_refined.json",
    "start",
    "truth",
    "final",
    "stages",
    "images",
    "held_out",
    "last_good",
    "references",
    "report.html",
    "run.json",
];

impl RunFolder {
    /// Makes sure that there is a folder at `path` that may be written to and is free, or holds the run to go on with,
    /// and keeps other processes from working on it as long as the returned value lives.
    ///
    /// # Errors
    /// Another process is at work in it, it holds a run already or files of a run's names without one, or cannot be
    /// written to.
    pub fn open(path: &Path, opening: Opening) -> Result<Self> {
        let shown = path.display();
        fs::create_dir_all(path)
            .map_err(|e| anyhow!("{shown}: the folder cannot be created: {e}; choose another with --output"))?;
        tempfile::Builder::new()
            .prefix(".prbopt-")
            .tempfile_in(path)
            .map_err(|e| anyhow!("{shown}: the folder cannot be written to: {e}; choose another with --output"))?;
        let lock = lock::claim(path)?;
        let alone = matches!(lock, Lock::Held { .. });
        let folder = Self {
            path: path.to_owned(),
            lock: Some(lock),
        };
        folder.check_free(opening)?;
        if alone {
            folder.remove_leftovers();
        }
        Ok(folder)
    }

    /// Refuses a run that is neither replaced nor gone on with, and what stands in the place of a run's files without
    /// being a run's: a folder `images` may hold anybody's pictures, which the next `--force` would remove.
    fn check_free(&self, opening: Opening) -> Result<()> {
        let shown = self.path.display();
        let (begun, saved) = (self.stated().is_some(), self.checkpoint().exists());
        if opening == Opening::New && (begun || saved) {
            bail!(
                "{shown}: holds a run already; go on with it by --resume, replace it by --force, or choose another \
                 folder with --output"
            );
        }
        if begun || saved && opening == Opening::Resume {
            return Ok(());
        }
        if let Some(name) = CONTENTS.iter().find(|name| is_taken(&self.path.join(name))) {
            bail!(
                "{shown}: holds `{name}`, which a run would write over, but no run.json that tells of a run; move \
                 `{name}` away, or choose another folder with --output"
            );
        }
        Ok(())
    }

    /// Checks that a run here would neither remove nor write over any of `inputs`, files or folders.
    ///
    /// # Errors
    /// One of them, which is named, is one of a run's own files or lies among them.
    pub fn check_inputs(&self, inputs: &[PathBuf]) -> Result<()> {
        let names = CONTENTS.iter().chain([&REFERENCES]);
        let own: Vec<PathBuf> = names.flat_map(|name| places(&self.path.join(name))).collect();
        let is_own = |input: &&PathBuf| {
            let places = places(input);
            places.iter().any(|place| own.iter().any(|own| place.starts_with(own)))
        };
        match inputs.iter().find(is_own) {
            Some(input) => bail!(
                "{}: is read by the scene, and lies among the files that a run in {} writes and removes; choose another \
                 folder with --output",
                input.display(),
                self.path.display()
            ),
            None => Ok(()),
        }
    }

    /// The warning that the folder cannot be locked, if so: the user must then keep other processes out.
    pub fn warning(&self) -> Option<String> {
        let Some(Lock::Unsupported(error)) = &self.lock else {
            return None;
        };
        Some(format!(
            "{}: the folder cannot be locked: {error}; see to it that no other process works on the same run",
            self.path.display()
        ))
    }

    /// Removes the temporary files that a killed process has left.
    fn remove_leftovers(&self) {
        atomic::remove_leftovers(&self.path, |target| CONTENTS.contains(&target) || target == REFERENCES);
        let stages = fs::read_dir(self.path.join("stages")).into_iter().flatten().flatten();
        let folders = [
            self.results(),
            self.start(),
            self.truth(),
            self.images(),
            self.held_out(),
            self.last_good(),
            self.reference_images(),
        ];
        for folder in folders.into_iter().chain(stages.map(|entry| entry.path())) {
            atomic::remove_leftovers(&folder, |_| true);
        }
    }

    /// The folder of a run that is only looked at.
    pub fn at(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            lock: None,
        }
    }

    /// What the record of the run in it states; None if there is no run.
    pub fn stated(&self) -> Option<Stated> {
        record::read(&self.record())
    }

    /// The folder itself.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The result: one file a parameter.
    pub fn results(&self) -> PathBuf {
        self.path.join("final")
    }

    /// Initial values of textures, environment maps and numbers.
    pub fn start(&self) -> PathBuf {
        self.path.join("start")
    }

    /// Values of textures, environment maps and numbers in the scene that references are rendered from.
    pub fn truth(&self) -> PathBuf {
        self.path.join("truth")
    }

    /// Parameters at the end of resolution stage `stage`, from 1.
    pub fn stage(&self, stage: u32) -> PathBuf {
        self.path.join("stages").join(stage.to_string())
    }

    /// The parameters before a step that failed.
    pub fn last_good(&self) -> PathBuf {
        self.path.join("last_good")
    }

    /// Renders made on the way.
    pub fn images(&self) -> PathBuf {
        self.path.join("images")
    }

    /// Renders of the views that were held out.
    pub fn held_out(&self) -> PathBuf {
        self.path.join("held_out")
    }

    /// Figures of the held-out views.
    pub fn held_out_figures(&self) -> PathBuf {
        self.path.join("held_out.json")
    }

    /// Figures of the held-out views with their cameras refined.
    pub fn held_out_refined_figures(&self) -> PathBuf {
        self.path.join("held_out_refined.json")
    }

    /// Everything needed to resume the run.
    pub fn checkpoint(&self) -> PathBuf {
        self.path.join("checkpoint.safetensors")
    }

    /// One line an iteration.
    pub fn metrics(&self) -> PathBuf {
        self.path.join("metrics.jsonl")
    }

    /// Who ran what.
    pub fn record(&self) -> PathBuf {
        self.path.join("run.json")
    }

    /// The scene as it was understood.
    pub fn scene(&self) -> PathBuf {
        self.path.join("scene.json")
    }

    /// Rendered references.
    pub fn references(&self) -> PathBuf {
        self.path.join(REFERENCES)
    }

    /// Reference images of the rendered views.
    pub fn reference_images(&self) -> PathBuf {
        self.path.join("references")
    }

    /// The page that shows the run.
    pub fn report(&self) -> PathBuf {
        self.path.join("report.html")
    }

    /// Removes the run that it holds, and nothing else; nothing at all if there is no record of a run.
    ///
    /// # Errors
    /// A file or folder of the run cannot be removed.
    pub fn clear(&self) -> Result<()> {
        if self.stated().is_none() {
            return Ok(());
        }
        for name in CONTENTS {
            let path = self.path.join(name);
            let removed = if path.is_dir() {
                fs::remove_dir_all(&path)
            } else if path.exists() {
                fs::remove_file(&path)
            } else {
                Ok(())
            };
            removed.with_context(|| format!("{}: is of the earlier run and cannot be removed", path.display()))?;
        }
        Ok(())
    }
}

/// Whether there is anything at `path` that could be lost; an empty folder could not.
fn is_taken(path: &Path) -> bool {
    match fs::read_dir(path) {
        Ok(mut entries) => entries.next().is_some(),
        Err(_) => path.symlink_metadata().is_ok(),
    }
}

/// The places of a path without symbolic links: of what it leads to, and of the link itself if it is one.
fn places(path: &Path) -> Vec<PathBuf> {
    let target = path.canonicalize();
    let folder = atomic::folder_of(path).canonicalize();
    let name = path.file_name().and_then(|name| Some(folder.ok()?.join(name)));
    target.into_iter().chain(name).collect()
}

/// Creates a folder inside a run's.
///
/// # Errors
/// It cannot be created.
pub fn create(path: &Path) -> crate::io::Result<()> {
    fs::create_dir_all(path).map_err(|e| IoError::of_writing(path, "the folder cannot be created", &e))
}

#[cfg(test)]
mod tests {
    use super::*;

    const RECORD: &str = r#"{"scene": "a.json", "seed": 0, "iterations": 5}"#;

    #[test]
    fn a_folder_that_holds_a_run_is_refused_resumed_or_cleared() {
        let root = tempfile::tempdir().expect("a temporary folder");
        let path = root.path().join("a/b");
        let folder = RunFolder::open(&path, Opening::New).expect("free");
        fs::write(folder.record(), RECORD).expect("writable");
        fs::write(path.join("notes.txt"), "mine").expect("writable");
        create(&folder.results()).expect("writable");
        drop(folder);
        let refusal = RunFolder::open(&path, Opening::New).expect_err("taken").to_string();
        assert!(refusal.contains("--resume") && refusal.contains("--force"), "{refusal}");
        let folder = RunFolder::open(&path, Opening::Resume).expect("resumable");
        assert!(folder.record().exists());
        drop(folder);
        let folder = RunFolder::open(&path, Opening::Force).expect("replaceable");
        folder.clear().expect("removable");
        assert!(folder.stated().is_none() && !folder.results().exists());
        assert!(path.join("notes.txt").exists(), "what is not the run's stays");
    }

    #[test]
    fn what_a_killed_process_was_writing_is_removed_and_nothing_that_is_not_the_runs() {
        let root = tempfile::tempdir().expect("a temporary folder");
        let at = |name: &str| root.path().join(name);
        let ours = [
            ".checkpoint.safetensors.aB3dE6gH.part",
            ".references.safetensors.aB3dE6gH.part",
            "stages/1/.a.vol.aB3dE6gH.part",
            "images/.00010_a.exr.aB3dE6gH.part",
        ];
        let theirs = [
            ".film.mkv.aB3dE6gH.part",
            "checkpoint.safetensors",
            "images/00000_a.exr",
        ];
        for name in ours.iter().chain(&theirs) {
            create(at(name).parent().expect("a folder")).expect("writable");
            fs::write(at(name), "half").expect("writable");
        }
        RunFolder::open(root.path(), Opening::Resume).expect("resumable");
        assert!(ours.iter().all(|name| !at(name).exists()));
        assert!(theirs.iter().all(|name| at(name).exists()));
    }

    #[test]
    fn a_folder_that_cannot_be_locked_is_warned_of() {
        let root = tempfile::tempdir().expect("a temporary folder");
        let mut folder = RunFolder::open(root.path(), Opening::New).expect("free");
        assert_eq!(folder.warning(), None);
        folder.lock = Some(Lock::Unsupported(std::io::Error::other("no locks here")));
        let warning = folder.warning().expect("unlocked");
        assert!(
            warning.contains("no locks here") && warning.contains("other process"),
            "{warning}"
        );
    }

    #[test]
    fn an_unwritable_place_is_a_sentence() {
        let root = tempfile::tempdir().expect("a temporary folder");
        let file = root.path().join("file");
        fs::write(&file, "").expect("writable");
        let error = RunFolder::open(&file.join("run"), Opening::New).expect_err("a file is no folder");
        assert!(error.to_string().contains("--output"), "{error}");
    }

    #[test]
    fn files_have_their_names() {
        let folder = RunFolder::at(Path::new("runs/a"));
        for (path, name) in [
            (folder.path().to_owned(), ""),
            (folder.results(), "final"),
            (folder.stage(3), "stages/3"),
            (folder.last_good(), "last_good"),
            (folder.images(), "images"),
            (folder.held_out(), "held_out"),
            (folder.held_out_figures(), "held_out.json"),
            (folder.checkpoint(), "checkpoint.safetensors"),
            (folder.metrics(), "metrics.jsonl"),
            (folder.record(), "run.json"),
            (folder.scene(), "scene.json"),
            (folder.references(), "references.safetensors"),
            (folder.reference_images(), "references"),
            (folder.report(), "report.html"),
        ] {
            assert_eq!(path, Path::new("runs/a").join(name));
        }
    }

    /// All files and folders that a run has written are removed, and temporary files in any of its folders.
    #[test]
    fn clearing_leaves_the_references_and_what_is_not_the_runs() {
        let root = tempfile::tempdir().expect("a temporary folder");
        let folder = RunFolder::open(root.path(), Opening::Force).expect("free");
        let folders = [
            folder.results(),
            folder.stage(2),
            folder.images(),
            folder.held_out(),
            folder.last_good(),
            folder.reference_images(),
        ];
        let half: Vec<PathBuf> = folders.iter().map(|f| f.join(".a.vol.aB3dE6gH.part")).collect();
        for (folder, half) in folders.iter().zip(&half) {
            create(folder).expect("writable");
            fs::write(half, "half").expect("writable");
            fs::write(folder.join("a.vol"), "whole").expect("writable");
        }
        let files = [
            folder.record(),
            folder.scene(),
            folder.checkpoint(),
            folder.metrics(),
            folder.held_out_figures(),
            folder.report(),
        ];
        for file in &files {
            fs::write(file, "whole").expect("writable");
        }
        fs::write(folder.record(), RECORD).expect("writable");
        fs::write(folder.references(), "whole").expect("writable");
        folder.remove_leftovers();
        assert!(half.iter().all(|half| !half.exists()));
        assert!(folders.iter().all(|folder| folder.join("a.vol").exists()));
        folder.clear().expect("removable");
        assert!(folders.iter().chain(&files).all(|path| !path.exists()));
        assert!(folder.references().exists());
    }

    /// Without a record of a run nothing is removed, and nothing of a run's names may be there; empty folders may.
    #[test]
    fn what_no_run_has_written_is_kept() {
        for (name, record) in [("images", None), ("final", None), ("stages", Some("{}"))] {
            let root = tempfile::tempdir().expect("a temporary folder");
            let folder = RunFolder::at(root.path());
            let inner = root.path().join(name);
            create(&inner).expect("writable");
            for opening in [Opening::New, Opening::Force, Opening::Resume] {
                RunFolder::open(root.path(), opening).expect("an empty folder is nobody's");
            }
            fs::write(inner.join("mine.png"), "mine").expect("writable");
            if let Some(record) = record {
                fs::write(folder.record(), record).expect("writable");
            }
            for opening in [Opening::New, Opening::Force, Opening::Resume] {
                let refusal = RunFolder::open(root.path(), opening)
                    .expect_err("not a run's")
                    .to_string();
                assert!(refusal.contains(&format!("holds `{name}`")), "{refusal}");
            }
            folder.clear().expect("nothing to do");
            assert!(inner.join("mine.png").exists());
        }
    }

    #[test]
    fn a_checkpoint_without_a_record_is_a_run_to_go_on_with_and_not_to_replace() {
        let root = tempfile::tempdir().expect("a temporary folder");
        fs::write(RunFolder::at(root.path()).checkpoint(), "").expect("writable");
        assert!(RunFolder::open(root.path(), Opening::Resume).is_ok());
        let refusal = |opening| RunFolder::open(root.path(), opening).expect_err("taken").to_string();
        assert!(refusal(Opening::New).contains("holds a run already"));
        assert!(refusal(Opening::Force).contains("holds `checkpoint.safetensors`"));
    }

    #[test]
    fn inputs_do_not_lie_among_a_runs_own_files() {
        let root = tempfile::tempdir().expect("a temporary folder");
        let at = |name: &str| root.path().join(name);
        for folder in ["run/images/inner", "run/pictures", "elsewhere"] {
            create(&at(folder)).expect("writable");
        }
        for file in [
            "run/images/inner/a.png",
            "run/pictures/a.png",
            "run/references.safetensors",
            "elsewhere/a.png",
        ] {
            fs::write(at(file), "").expect("writable");
        }
        let folder = RunFolder::at(&at("run"));
        let refusal = |name: &str| folder.check_inputs(&[at("elsewhere/a.png"), at(name)]).err();
        assert!(refusal("run/pictures/a.png").is_none() && refusal("run/images/none/b.png").is_none());
        for name in [
            "run/images/inner/a.png",
            "run/pictures/../images/inner",
            "run/references.safetensors",
        ] {
            let refusal = refusal(name).expect("among the run's").to_string();
            assert!(
                refusal.contains(name) && refusal.contains("is read by the scene"),
                "{refusal}"
            );
        }
        #[cfg(unix)]
        {
            use std::os::unix::fs::symlink;
            symlink(at("elsewhere"), at("run/final")).expect("a link");
            symlink(at("run/pictures/a.png"), at("run/images/link.png")).expect("a link");
            symlink(at("run/images"), at("entrance")).expect("a link");
            for name in ["elsewhere/a.png", "run/images/link.png", "entrance/inner/a.png"] {
                assert!(folder.check_inputs(&[at(name)]).is_err(), "{name}");
            }
        }
    }
}
