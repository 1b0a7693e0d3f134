//! Files that appear by rename: whole or not at all.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use tempfile::TempPath;

use super::{IoError, Result};

/// Writes the file at `path` through a temporary file in the same folder, which replaces it once it is complete and
/// on the disk. Two programs must not write the same file at once.
///
/// # Errors
/// If anything fails (a full disk, a folder that is not there or not writable) an earlier file at `path` stays as it
/// was, and no temporary file is left.
pub fn write<T>(path: &Path, fill: impl FnOnce(&mut BufWriter<File>) -> io::Result<T>) -> Result<T> {
    try_write(path, fill).map_err(|e| {
        let kept = if path.exists() {
            "; the earlier file is untouched"
        } else {
            ""
        };
        IoError::new(path, format!("cannot be written: {e}{kept}"))
    })
}

/// Writes `bytes` to `path` as [`write()`] does.
pub fn write_bytes(path: &Path, bytes: &[u8]) -> Result<()> {
    write(path, |out| out.write_all(bytes))
}

fn try_write<T>(path: &Path, fill: impl FnOnce(&mut BufWriter<File>) -> io::Result<T>) -> io::Result<T> {
    let Some(name) = path.file_name().filter(|_| !path.is_dir()) else {
        return Err(io::Error::new(
            io::ErrorKind::IsADirectory,
            "it is a folder, expected a file name",
        ));
    };
    let folder = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    // One name for each target, so that what a killed program leaves behind is overwritten by the next one's.
    let temporary = TempPath::try_from_path(folder.join(format!(".{}.part", name.to_string_lossy())))?;
    let file = File::create(&temporary)?;
    let mut out = BufWriter::with_capacity(1 << 18, file);
    let value = fill(&mut out)?;
    let file = out.into_inner().map_err(|e| e.into_error())?;
    file.sync_all()?;
    drop(file);
    temporary.persist(path)?;
    // The rename itself survives a power cut only once the folder is on the disk; not every system can do that.
    if let Ok(folder) = File::open(folder) {
        let _ = folder.sync_all();
    }
    Ok(value)
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
    fn missing_folder_and_folder_as_target_are_errors() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        assert!(write_bytes(&folder.path().join("none/a"), b"x").is_err());
        assert!(write_bytes(folder.path(), b"x").is_err());
    }
}
