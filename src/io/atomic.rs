//! Files that appear by rename: whole or not at all.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;

use tempfile::TempPath;

use super::{IoError, Result};

/// Writes the file at `path` through a temporary file in the same folder, which replaces it once it is complete and
/// on the disk. Two programs must not write the same file at once.
///
/// # Errors
/// If anything fails (a full disk, a folder that is not there or not writable) an earlier file at `path` stays as it
/// was, and no temporary file is left.
pub fn write<T>(path: &Path, fill: impl FnOnce(&mut BufWriter<File>) -> io::Result<T>) -> Result<T> {
    try_write(path, fill).map_err(|e| unwritten(path, &e))
}

/// Writes `bytes` to `path` as [`write()`] does.
pub fn write_bytes(path: &Path, bytes: &[u8]) -> Result<()> {
    write(path, |out| out.write_all(bytes))
}

/// A file whose bytes have been handed to the system and that appears, by rename, once they are on the disk.
#[derive(Debug)]
pub struct Pending {
    path: PathBuf,
    worker: Option<JoinHandle<io::Result<()>>>,
}

/// Writes the file at `path` as [`write()`] does, but leaves the wait for the disk to another thread.
///
/// # Errors
/// As [`write()`]; what fails later is told by [`Pending::finish`].
pub fn write_behind(path: &Path, fill: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>) -> Result<Pending> {
    let ((), file, temporary) = fill_temporary(path, fill).map_err(|e| unwritten(path, &e))?;
    let target = path.to_owned();
    let worker = std::thread::spawn(move || settle(&target, file, temporary));
    Ok(Pending {
        path: path.to_owned(),
        worker: Some(worker),
    })
}

impl Pending {
    /// Waits until the file is there.
    ///
    /// # Errors
    /// The disk failed or is full; an earlier file is untouched.
    pub fn finish(mut self) -> Result<()> {
        match self.worker.take().map(JoinHandle::join) {
            None | Some(Ok(Ok(()))) => Ok(()),
            Some(Ok(Err(e))) => Err(unwritten(&self.path, &e)),
            Some(Err(_)) => Err(unwritten(&self.path, &"its thread ended unexpectedly")),
        }
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        if let Some(worker) = self.worker.take() {
            // Whoever wants to know of an error calls `finish`.
            let _ = worker.join();
        }
    }
}

fn try_write<T>(path: &Path, fill: impl FnOnce(&mut BufWriter<File>) -> io::Result<T>) -> io::Result<T> {
    let (value, file, temporary) = fill_temporary(path, fill)?;
    settle(path, file, temporary)?;
    Ok(value)
}

fn unwritten(path: &Path, error: &dyn std::fmt::Display) -> IoError {
    let kept = if path.exists() {
        "; the earlier file is untouched"
    } else {
        ""
    };
    IoError::new(path, format!("cannot be written: {error}{kept}"))
}

/// Fills a temporary file beside `path`.
fn fill_temporary<T>(
    path: &Path,
    fill: impl FnOnce(&mut BufWriter<File>) -> io::Result<T>,
) -> io::Result<(T, File, TempPath)> {
    let Some(name) = path.file_name().filter(|_| !path.is_dir()) else {
        return Err(io::Error::new(
            io::ErrorKind::IsADirectory,
            "it is a folder, expected a file",
        ));
    };
    // One name for each target, so that what a killed program leaves behind is overwritten by the next one's.
    let temporary = folder_of(path).join(format!(".{}.part", name.to_string_lossy()));
    let temporary = TempPath::try_from_path(temporary)?;
    let file = File::create(&temporary)?;
    let mut out = BufWriter::with_capacity(1 << 18, file);
    let value = fill(&mut out)?;
    let file = out.into_inner().map_err(|e| e.into_error())?;
    Ok((value, file, temporary))
}

/// Waits until a temporary file is on the disk and gives it its name.
fn settle(path: &Path, file: File, temporary: TempPath) -> io::Result<()> {
    file.sync_all()?;
    drop(file);
    temporary.persist(path)?;
    // The rename itself survives a power cut only once the folder is on the disk; not every system can do that.
    if let Ok(folder) = File::open(folder_of(path)) {
        let _ = folder.sync_all();
    }
    Ok(())
}

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Writes `values` little endian, whatever the machine.
pub(super) fn write_f32(out: &mut impl Write, values: &[f32]) -> io::Result<()> {
    let mut bytes = Vec::with_capacity(4 * values.len().min(1 << 14));
    for chunk in values.chunks(1 << 14) {
        bytes.clear();
        bytes.extend(chunk.iter().flat_map(|v| v.to_le_bytes()));
        out.write_all(&bytes)?;
    }
    Ok(())
}

/// Reads `count` little endian values. The caller has checked that they are there.
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
            message.contains("a.txt") && message.contains("no space left"),
            "{message}"
        );
        assert_eq!(std::fs::read(&path).expect("still there"), b"first");
        assert_eq!(std::fs::read_dir(folder.path()).expect("readable").count(), 1);
    }

    #[test]
    fn leftovers_of_a_killed_program_are_overwritten() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        std::fs::write(folder.path().join(".a.txt.part"), b"half of a long file").expect("writable");
        write_bytes(&folder.path().join("a.txt"), b"new").expect("writable");
        assert_eq!(std::fs::read(folder.path().join("a.txt")).expect("there"), b"new");
        assert_eq!(std::fs::read_dir(folder.path()).expect("readable").count(), 1);
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
}
