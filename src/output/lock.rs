//! The lock on a run's folder: one process works on it at a time, by a file lock of the operating system.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::path::Path;

use anyhow::{Result, anyhow, bail};

/// The file that is locked. It stays when its process has ended; only the lock on it counts.
const NAME: &str = ".lock";

/// Largest number of bytes read of the text that names a lock's holder.
const MAX_HOLDER_BYTES: u64 = 300;

/// This process's lock on a folder. The system releases it however the process ends.
#[derive(Debug)]
pub(super) enum Lock {
    Held {
        _file: File,
    },
    /// The file system has no locks; the system's error.
    Unsupported(io::Error),
}

/// Locks `folder` for this process; [`Lock::Unsupported`], not an error, on a file system without locks.
///
/// # Errors
/// Another process, which is named, holds the lock, or the file to lock cannot be opened.
pub(super) fn claim(folder: &Path) -> Result<Lock> {
    let shown = folder.display();
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        // Following a symbolic link in the file's place would overwrite the link's target.
        options.custom_flags(libc::O_NOFOLLOW);
    }
    let path = folder.join(NAME);
    let mut file = options.open(&path).map_err(|e| {
        let path = path.display();
        anyhow!("{path}: cannot be opened to lock the folder: {e}; remove it, or choose another folder with --output")
    })?;
    match file.try_lock() {
        Ok(()) => {
            // The text serves only the error message of other processes, so that a full disk may leave it out.
            let _ = file.set_len(0).and_then(|()| file.write_all(this_process().as_bytes()));
            Ok(Lock::Held { _file: file })
        }
        Err(TryLockError::WouldBlock) => bail!(
            "{shown}: {} is at work on the run in this folder; wait until it has ended, stop it by Ctrl-C, or choose \
             another folder with --output",
            holder(&mut file)
        ),
        Err(TryLockError::Error(error)) => Ok(Lock::Unsupported(error)),
    }
}

/// The lock file's text: this process's id and machine.
fn this_process() -> String {
    format!("{} {}\n", std::process::id(), host())
}

/// The holder of the lock in words, without a name where the system lets nobody read a locked file.
fn holder(file: &mut File) -> String {
    let mut text = String::new();
    // A text that cannot be read names no process.
    let _ = file.take(MAX_HOLDER_BYTES).read_to_string(&mut text);
    let mut words = text.split_whitespace();
    let Some(id) = words.next().and_then(|word| word.parse::<u32>().ok()) else {
        return "another process".into();
    };
    let plain = |c: char| c.is_alphanumeric() || "-_.".contains(c);
    match words.next().filter(|name| name.chars().all(plain)) {
        Some(name) if name != host() => format!("process {id} on {name}"),
        _ => format!("process {id}"),
    }
}

/// The name of this machine; empty where it has none.
#[cfg(unix)]
fn host() -> String {
    let mut bytes = [0u8; 256];
    // SAFETY: the buffer is longer than the length passed, and its last byte stays zero.
    let failed = unsafe { libc::gethostname(bytes.as_mut_ptr().cast(), bytes.len() - 1) };
    let end = bytes.iter().position(|b| *b == 0).unwrap_or(0);
    match failed {
        0 => String::from_utf8_lossy(&bytes[..end]).into_owned(),
        _ => String::new(),
    }
}

/// The name of this machine; empty where it has none.
#[cfg(not(unix))]
fn host() -> String {
    std::env::var("COMPUTERNAME").unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_has_one_claim_at_a_time_and_left_over_files_are_none() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        std::fs::write(folder.path().join(NAME), "4194304 elsewhere and much more").expect("writable");
        let first = claim(folder.path()).expect("nobody holds it");
        let refusal = claim(folder.path()).expect_err("held").to_string();
        let named = format!("process {} is at work", std::process::id());
        assert!(!cfg!(unix) || refusal.contains(&named), "{refusal}");
        assert!(refusal.contains("--output"), "{refusal}");
        drop(first);
        claim(folder.path()).expect("free again");
    }

    #[cfg(unix)]
    #[test]
    fn a_holder_elsewhere_is_named_with_its_machine_and_nonsense_is_not_repeated() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join(NAME);
        let told = |text: &str| {
            let _first = claim(folder.path()).expect("nobody holds it");
            std::fs::write(&path, text).expect("writable");
            claim(folder.path()).expect_err("held").to_string()
        };
        assert!(told("17 far.away.org\n").contains(": process 17 on far.away.org is at work"));
        assert!(told("17 \u{1b}[2J").contains(": process 17 is at work"));
        assert!(told("x").contains(": another process is at work"));
    }

    #[cfg(unix)]
    #[test]
    fn a_link_in_the_place_of_the_file_is_not_followed() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let precious = folder.path().join("precious");
        std::fs::write(&precious, "mine").expect("writable");
        std::os::unix::fs::symlink(&precious, folder.path().join(NAME)).expect("a link");
        let refusal = claim(folder.path()).expect_err("a link").to_string();
        assert!(refusal.contains(".lock") && refusal.contains("remove it"), "{refusal}");
        assert_eq!(std::fs::read_to_string(&precious).expect("there"), "mine");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_machines_name_is_that_of_the_kernel() {
        let name = std::fs::read_to_string("/proc/sys/kernel/hostname").expect("a Linux");
        assert_eq!(host(), name.trim_end());
    }
}
