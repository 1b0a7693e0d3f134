//! Who is at work in a run's folder: one process at a time, known by a lock that the system keeps.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::path::Path;

use anyhow::{Result, anyhow, bail};

/// The file that is locked. It stays when its process has ended; only the lock on it counts.
const NAME: &str = ".lock";

/// The longest text that is read of who holds a lock.
const MAX_HOLDER_BYTES: u64 = 300;

/// This process's claim to a folder. The system gives it up however the process ends.
#[derive(Debug)]
pub(super) enum Lock {
    Held {
        _file: File,
    },
    /// The file system keeps no locks; the reason.
    Unsupported(io::Error),
}

/// Claims `folder` for this process. A file system without locks is no obstacle.
///
/// # Errors
/// Another process has claimed it, which is named, or the file to lock cannot be made.
pub(super) fn claim(folder: &Path) -> Result<Lock> {
    let shown = folder.display();
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        // A link in the file's place would have its target overwritten.
        options.custom_flags(libc::O_NOFOLLOW);
    }
    let path = folder.join(NAME);
    let mut file = options.open(&path).map_err(|e| {
        let path = path.display();
        anyhow!("{path}: cannot be opened to lock the folder: {e}; remove it, or choose another folder with --output")
    })?;
    match file.try_lock() {
        Ok(()) => {
            // Only the sentence that refuses others needs it: a full disk leaves it out.
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

/// What the lock's file says of this process.
fn this_process() -> String {
    format!("{} {}\n", std::process::id(), host())
}

/// Who holds the lock, in words. Where the system lets nobody read a locked file, it stays nameless.
fn holder(file: &mut File) -> String {
    let mut text = String::new();
    // A text that is not whole names nobody.
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
    // SAFETY: the buffer is as long as is said, and its last byte stays zero.
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
