//! Atomic file writes: a file appears by rename, complete or not at all. The name of a symbolic link stands for the file that
//! it leads to; devices and pipes, which a rename would remove, are written into as they are.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;

use tempfile::TempPath;

use super::{IoError, Result};

/// Suffix of temporary files.
const SUFFIX: &str = ".part";

/// Writes the file at `path` through a temporary file in the same folder, which is renamed once it is complete and on
/// the disk. If two programs write the same file at once, the later rename wins; neither mixes with the other. If `path`
/// is a symbolic link, the file that it leads to is written; a device or a pipe receives the bytes directly.
///
/// # Errors
/// If anything fails (a full disk, a folder that is not there or not writable) an earlier file at `path` stays as it
/// was, and no temporary file is left. What a device or a pipe has received by then stays there.
pub fn write<T>(path: &Path, fill: impl FnOnce(&mut BufWriter<File>) -> io::Result<T>) -> Result<T> {
    try_write(path, fill).map_err(|e| unwritten(path, &e))
}

/// Writes `bytes` to `path` as [`write()`] does.
pub fn write_bytes(path: &Path, bytes: &[u8]) -> Result<()> {
    write(path, |out| out.write_all(bytes))
}

/// Checks that a file can be written at `path`, so that a long run does not fail only when it writes its result. A device
/// or a pipe passes untried: the reader of a pipe would take the trial for the whole.
///
/// # Errors
/// Those with which [`write()`] would fail.
pub fn check(path: &Path) -> Result<()> {
    let tried = Target::of(path).and_then(|target| match target {
        Target::File(place) => Draft::beside(place).map(drop),
        Target::Stream(_) => Ok(()),
    });
    tried.map_err(|e| unwritten(path, &e))
}

/// A file whose bytes were handed to the operating system; it is renamed into place once they are on the disk.
#[derive(Debug)]
pub struct Pending {
    path: PathBuf,
    worker: Option<JoinHandle<io::Result<()>>>,
}

/// Writes the file at `path` as [`write()`] does, but leaves the wait for the disk to another thread.
///
/// # Errors
/// As [`write()`]; later failures are returned by [`Pending::finish`].
pub fn write_behind(path: &Path, fill: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>) -> Result<Pending> {
    let ((), draft) = fill_draft(path, fill).map_err(|e| unwritten(path, &e))?;
    let worker = std::thread::spawn(move || draft.finish());
    Ok(Pending {
        path: path.to_owned(),
        worker: Some(worker),
    })
}

impl Pending {
    /// Waits until the file is in place.
    ///
    /// # Errors
    /// The disk failed or is full; an earlier file is untouched.
    pub fn finish(mut self) -> Result<()> {
        match self.worker.take().map(JoinHandle::join) {
            None | Some(Ok(Ok(()))) => Ok(()),
            Some(Ok(Err(e))) => Err(unwritten(&self.path, &e)),
            Some(Err(_)) => Err(unwritten(
                &self.path,
                &io::Error::other("its thread ended unexpectedly"),
            )),
        }
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        if let Some(worker) = self.worker.take() {
            // Errors are returned by `finish` alone.
            let _ = worker.join();
        }
    }
}

fn try_write<T>(path: &Path, fill: impl FnOnce(&mut BufWriter<File>) -> io::Result<T>) -> io::Result<T> {
    let (value, draft) = fill_draft(path, fill)?;
    draft.finish()?;
    Ok(value)
}

fn unwritten(path: &Path, error: &io::Error) -> IoError {
    let mut told = IoError::of_writing(path, "cannot be written", error);
    if path.is_file() {
        told.message += "; the earlier file is untouched";
    }
    told
}

/// Largest number of symbolic links that lead to a file; Linux follows as many.
const MAX_LINKS: usize = 40;

/// Where the bytes for a path go.
#[derive(Debug, PartialEq, Eq)]
enum Target {
    /// A regular file, there or not, which is replaced by rename; no symbolic link.
    File(PathBuf),
    /// A device or a pipe, which is written into.
    Stream(PathBuf),
}

impl Target {
    /// # Errors
    /// It is a folder, or symbolic links lead in a circle.
    fn of(path: &Path) -> io::Result<Self> {
        let a_folder = || io::Error::new(io::ErrorKind::IsADirectory, "it is a folder, expected a file");
        match fs::metadata(path) {
            Ok(found) if found.is_dir() => return Err(a_folder()),
            // The system resolves its name: that of a pipe on standard output leads nowhere.
            Ok(found) if !found.is_file() => return Ok(Self::Stream(path.to_owned())),
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ if path.file_name().is_none() => return Err(a_folder()),
            _ => {}
        }
        follow(path.to_owned()).map(Self::File)
    }
}

/// The path that symbolic links lead to, whether there is a file or not.
fn follow(mut path: PathBuf) -> io::Result<PathBuf> {
    for _ in 0..MAX_LINKS {
        if !path.is_symlink() {
            return Ok(path);
        }
        path = folder_of(&path).join(fs::read_link(&path)?);
    }
    Err(io::Error::other("too many symbolic links follow one another"))
}

/// A file that is being written.
#[derive(Debug)]
struct Draft {
    file: File,
    /// The temporary file's name and the one that it will have; None for a stream.
    names: Option<(TempPath, PathBuf)>,
}

impl Draft {
    /// A temporary file beside `place`.
    fn beside(place: PathBuf) -> io::Result<Self> {
        let mut prefix = OsString::from(".");
        prefix.push(place.file_name().unwrap_or_default());
        prefix.push(".");
        // A random name, created exclusively: a symbolic link planted under a predictable name would be followed.
        let (file, temporary) = tempfile::Builder::new()
            .prefix(&prefix)
            .suffix(SUFFIX)
            .rand_bytes(8)
            .make_in(folder_of(&place), |path| {
                OpenOptions::new().write(true).create_new(true).open(path)
            })?
            .into_parts();
        Ok(Self {
            file,
            names: Some((temporary, place)),
        })
    }

    fn open(target: Target) -> io::Result<Self> {
        match target {
            Target::File(place) => Self::beside(place),
            Target::Stream(path) => Ok(Self {
                file: OpenOptions::new().write(true).open(path)?,
                names: None,
            }),
        }
    }

    /// Waits until a temporary file is on the disk and renames it. A stream has neither a disk nor another name.
    fn finish(self) -> io::Result<()> {
        let Some((temporary, place)) = self.names else {
            return Ok(());
        };
        self.file.sync_all()?;
        drop(self.file);
        temporary.persist(&place)?;
        // The rename survives a power failure only once the folder is synced; some systems cannot sync folders.
        if let Ok(folder) = File::open(folder_of(&place)) {
            let _ = folder.sync_all();
        }
        Ok(())
    }
}

/// Fills a temporary file beside the file that `path` names, or the stream that it names.
fn fill_draft<T>(path: &Path, fill: impl FnOnce(&mut BufWriter<File>) -> io::Result<T>) -> io::Result<(T, Draft)> {
    let Draft { file, names } = Draft::open(Target::of(path)?)?;
    let mut out = BufWriter::with_capacity(1 << 18, file);
    let value = fill(&mut out)?;
    let file = out.into_inner().map_err(|e| e.into_error())?;
    Ok((value, Draft { file, names }))
}

/// The folder that a path lies in.
pub(crate) fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Removes temporary files that killed programs have left in `folder`, for targets whose name `is_ours`. Must not run
/// while one of them is being written.
pub fn remove_leftovers(folder: &Path, is_ours: impl Fn(&str) -> bool) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let target = name.to_str().and_then(target_of);
        if target.is_some_and(&is_ours) {
            // A file that cannot be removed only costs disk space.
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// The target of a temporary file's name.
fn target_of(temporary: &str) -> Option<&str> {
    let (target, _random) = temporary.strip_prefix('.')?.strip_suffix(SUFFIX)?.rsplit_once('.')?;
    Some(target)
}

/// Writes `values` in little endian on every machine.
pub(super) fn write_f32(out: &mut impl Write, values: &[f32]) -> io::Result<()> {
    let mut bytes = Vec::with_capacity(4 * values.len().min(1 << 14));
    for chunk in values.chunks(1 << 14) {
        bytes.clear();
        bytes.extend(chunk.iter().flat_map(|v| v.to_le_bytes()));
        out.write_all(&bytes)?;
    }
    Ok(())
}

/// Reads `count` little-endian values. The caller has checked that the file holds them.
pub(super) fn read_f32(input: &mut impl io::Read, count: usize) -> io::Result<Vec<f32>> {
    let mut values = Vec::with_capacity(count);
    let mut bytes = vec![0; 4 * count.min(1 << 14)];
    while values.len() < count {
        let chunk = &mut bytes[..4 * (count - values.len()).min(1 << 14)];
        input.read_exact(chunk)?;
        values.extend(
            chunk
                .chunks_exact(4)
                .map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])),
        );
    }
    Ok(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failure_leaves_the_earlier_file_and_nothing_else() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("a.txt");
        write_bytes(&path, b"first").expect("writable");
        let full = write(&path, |out| {
            out.write_all(b"half of the second")?;
            Err::<(), _>(io::Error::new(io::ErrorKind::StorageFull, "no space left"))
        });
        let message = full.expect_err("the disk is full").to_string();
        assert!(
            message.contains("a.txt") && message.contains("the disk is full"),
            "{message}"
        );
        assert_eq!(std::fs::read(&path).expect("still there"), b"first");
        assert_eq!(std::fs::read_dir(folder.path()).expect("readable").count(), 1);
    }

    #[test]
    fn leftovers_of_a_killed_program_are_removed_and_nothing_else() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let names = [
            ".a.txt.K3jd92Zx.part",
            ".b.txt.K3jd92Zx.part",
            ".a.txt",
            "a.txt.part",
            ".part",
        ];
        for name in names {
            std::fs::write(folder.path().join(name), b"half of a long file").expect("writable");
        }
        remove_leftovers(folder.path(), |target| target == "a.txt");
        let there: Vec<bool> = names.iter().map(|name| folder.path().join(name).exists()).collect();
        assert_eq!(there, [false, true, true, true, true]);
    }

    #[test]
    fn a_killed_writer_leaves_a_name_that_is_known_to_be_its_own() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let draft = Draft::beside(folder.path().join("a.b.txt")).expect("writable");
        let (temporary, _) = draft.names.expect("a file");
        let name = temporary.file_name().and_then(|name| name.to_str()).expect("a name");
        assert_eq!(target_of(name), Some("a.b.txt"));
    }

    #[test]
    fn only_a_lack_of_room_is_told_as_such() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("a.txt");
        let fails = |kind: io::ErrorKind| {
            let written = write(&path, |_| Err::<(), _>(io::Error::from(kind)));
            written.expect_err("it fails").no_room
        };
        use io::ErrorKind::{FileTooLarge, Other, PermissionDenied, QuotaExceeded, StorageFull};
        assert!(fails(StorageFull) && fails(QuotaExceeded) && fails(FileTooLarge));
        assert!(!fails(PermissionDenied) && !fails(Other));
    }

    #[cfg(unix)]
    #[test]
    fn links_in_the_place_of_temporary_files_are_not_followed() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let precious = folder.path().join("precious");
        std::fs::write(&precious, b"mine").expect("writable");
        std::os::unix::fs::symlink(&precious, folder.path().join(".a.txt.part")).expect("a link");
        write_bytes(&folder.path().join("a.txt"), b"new").expect("writable");
        assert_eq!(std::fs::read(&precious).expect("there"), b"mine");
        assert_eq!(std::fs::read(folder.path().join("a.txt")).expect("there"), b"new");
    }

    /// Links stay links: to a file, to another link, and to a file that is not there yet.
    #[cfg(unix)]
    #[test]
    fn a_link_stands_for_the_file_that_it_leads_to() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("inner")).expect("writable");
        fs::write(at("inner/file"), b"old").expect("writable");
        for (to, name) in [
            ("inner/file", "link"),
            ("link", "twice"),
            ("inner/none", "dangling"),
            ("circle", "circle"),
        ] {
            std::os::unix::fs::symlink(to, at(name)).expect("a link");
        }
        for (name, file) in [
            ("link", "inner/file"),
            ("twice", "inner/file"),
            ("dangling", "inner/none"),
        ] {
            check(&at(name)).expect("writable");
            write_bytes(&at(name), name.as_bytes()).expect("writable");
            assert_eq!(fs::read(at(file)).expect("there"), name.as_bytes());
            assert!(at(name).is_symlink() && !at(file).is_symlink(), "{name}");
        }
        assert_eq!(fs::read_dir(at("inner")).expect("readable").count(), 2);
        assert!(check(&at("circle")).is_err() && write_bytes(&at("circle"), b"x").is_err());
    }

    #[cfg(unix)]
    #[test]
    fn a_pipe_receives_the_bytes_and_stays_a_pipe() {
        use std::os::unix::fs::FileTypeExt;
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&path).status();
        assert!(made.expect("a tool of all systems").success());
        check(&path).expect("a pipe passes without a reader");
        let reader = std::thread::spawn({
            let path = path.clone();
            move || fs::read(path).expect("readable")
        });
        write_bytes(&path, &[7; 100_000]).expect("writable");
        assert_eq!(reader.join().expect("a reader"), [7; 100_000]);
        assert!(fs::metadata(&path).expect("there").file_type().is_fifo());
        assert_eq!(fs::read_dir(folder.path()).expect("readable").count(), 1);
    }

    /// The device is written by a link, since the program must not get the chance to replace the device itself.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_device_that_is_full_is_an_error_and_stays() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let link = folder.path().join("link");
        std::os::unix::fs::symlink("/dev/full", &link).expect("a link");
        check(&link).expect("a device passes");
        let error = write_bytes(&link, b"x").expect_err("it is full");
        assert!(
            error.no_room && error.to_string().ends_with("the disk is full"),
            "{error}"
        );
        let behind = write_behind(&link, |out| out.write_all(b"x")).and_then(Pending::finish);
        assert!(behind.is_err());
        assert!(!fs::metadata(&link).expect("there").is_file() && link.is_symlink());
    }

    #[test]
    fn a_file_written_behind_is_there_when_it_is_finished() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("a.bin");
        let pending = write_behind(&path, |out| out.write_all(&[7; 100_000])).expect("writable");
        pending.finish().expect("on the disk");
        assert_eq!(std::fs::read(&path).expect("there"), [7; 100_000]);
        assert_eq!(std::fs::read_dir(folder.path()).expect("readable").count(), 1);
        assert!(write_behind(&folder.path().join("none/a"), |_| Ok(())).is_err());
    }

    #[test]
    fn missing_folder_and_folder_as_target_are_errors() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        assert!(write_bytes(&folder.path().join("none/a"), b"x").is_err());
        assert!(write_bytes(folder.path(), b"x").is_err());
    }

    /// Counts around 2¹⁴, the number of values converted at a time, and more than twice as many.
    #[test]
    fn long_arrays_are_written_and_read_in_parts() {
        for count in [0, 1, (1 << 14) - 1, 1 << 14, 40_000] {
            let values: Vec<f32> = (0..count).map(|i| i as f32).collect();
            let mut bytes = Vec::new();
            write_f32(&mut bytes, &values).expect("in memory");
            assert!(
                bytes == values.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>(),
                "{count}"
            );
            assert!(
                read_f32(&mut &bytes[..], count).expect("in memory") == values,
                "{count}"
            );
        }
    }

    /// Dropping a [`Pending`] waits for its file; `finish` returns the error if the file cannot be renamed into place.
    #[test]
    fn a_pending_file_is_waited_for() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("a.bin");
        drop(write_behind(&path, |out| out.write_all(&[7; 1 << 20])).expect("writable"));
        assert_eq!(std::fs::metadata(&path).expect("there").len(), 1 << 20);
        let taken = folder.path().join("b.bin");
        let pending = write_behind(&taken, |_| fs::create_dir(&taken)).expect("writable");
        let error = pending.finish().expect_err("a folder is in its place").to_string();
        assert!(error.contains("b.bin: cannot be written"), "{error}");
    }

    #[test]
    fn only_a_file_that_is_there_is_called_untouched() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("a.txt");
        let fail = || {
            let written = write(&path, |_| Err::<(), _>(io::Error::other("no")));
            written.expect_err("it fails").to_string()
        };
        assert_eq!(fail(), format!("{}: cannot be written: no", path.display()));
        write_bytes(&path, b"first").expect("writable");
        assert_eq!(
            fail(),
            format!(
                "{}: cannot be written: no; the earlier file is untouched",
                path.display()
            )
        );
    }
}
