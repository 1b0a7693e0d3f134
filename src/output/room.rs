//! What a run does while the disk is full: wait for room, until Ctrl-C.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Error, Result};

use super::progress::Progress;
use crate::io::IoError;

/// Time until the first new attempt; each later one comes after twice as long, up to the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// Time between two checks for Ctrl-C.
const LOOK: Duration = Duration::from_millis(25);

/// Whether a file could not be written for want of room: a full disk, a used up quota, a limit on the size of files.
pub fn is_lacking(error: &Error) -> bool {
    error.downcast_ref::<IoError>().is_some_and(|error| error.no_room)
}

/// The wait for room for one thing to be written.
#[derive(Debug)]
pub struct Wait<'a> {
    stop: &'a AtomicBool,
    /// Whether `stop` was set before the wait: only Ctrl-C during the wait gives up, since a stopped run must still be
    /// saved.
    stopped_before: bool,
    pause: Option<Duration>,
}

impl<'a> Wait<'a> {
    /// A wait that has not begun. `stop` is set by Ctrl-C.
    pub fn new(stop: &'a AtomicBool) -> Self {
        Self {
            stop,
            stopped_before: stop.load(Ordering::SeqCst),
            pause: None,
        }
    }

    /// Waits a while after an attempt that found no room, and returns whether to try again. The first wait is reported
    /// to the user.
    pub fn again(&mut self, error: &Error, progress: &Progress) -> bool {
        if !is_lacking(error) {
            return false;
        }
        let pause = match self.pause {
            None => {
                progress.alert(&format!("{error:#}; waiting for room: free some, or give up by Ctrl-C"));
                FIRST_PAUSE
            }
            Some(pause) => (2 * pause).min(LONGEST_PAUSE),
        };
        self.pause = Some(pause);
        let begun = Instant::now();
        while begun.elapsed() < pause && !self.given_up() {
            std::thread::sleep(LOOK);
        }
        !self.given_up()
    }

    fn given_up(&self) -> bool {
        !self.stopped_before && self.stop.load(Ordering::SeqCst)
    }
}

/// Makes `attempt` to write something until there is room for it.
///
/// # Errors
/// Those of `attempt` that are not for want of room, and its last one where Ctrl-C ends the wait.
pub fn wait<T>(progress: &Progress, stop: &AtomicBool, mut attempt: impl FnMut() -> Result<T>) -> Result<T> {
    let mut wait = Wait::new(stop);
    loop {
        match attempt() {
            Err(error) if wait.again(&error, progress) => {}
            outcome => return outcome,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;
    use crate::io::atomic;
    use crate::output::progress::Style;

    /// Writes a file through a disk that has no room for the first `failures` attempts.
    fn write(path: &std::path::Path, attempts: &mut u32, failures: u32, kind: io::ErrorKind) -> Result<()> {
        *attempts += 1;
        let full = *attempts <= failures;
        let fill = |out: &mut dyn io::Write| match full {
            true => out.write_all(b"half").and(Err(io::Error::from(kind))),
            false => out.write_all(b"whole"),
        };
        Ok(atomic::write(path, |out| fill(out))?)
    }

    #[test]
    fn what_finds_no_room_is_written_once_there_is_some() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("a");
        let (progress, stop) = (Progress::new(Style::Json), AtomicBool::new(false));
        let mut attempts = 0;
        wait(&progress, &stop, || {
            write(&path, &mut attempts, 2, io::ErrorKind::StorageFull)
        })
        .expect("written");
        assert_eq!(attempts, 3);
        assert_eq!(std::fs::read(&path).expect("there"), b"whole");
    }

    #[test]
    fn other_errors_are_not_waited_for_and_neither_is_room_after_ctrl_c() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("a");
        let (progress, stop) = (Progress::new(Style::Json), AtomicBool::new(false));
        let mut attempts = 0;
        let denied = wait(&progress, &stop, || {
            write(&path, &mut attempts, u32::MAX, io::ErrorKind::PermissionDenied)
        });
        assert!(denied.is_err() && attempts == 1);
        let mut attempts = 0;
        let given_up = wait(&progress, &stop, || {
            // As the handler of Ctrl-C does, while the wait is under way.
            stop.store(attempts == 1, Ordering::SeqCst);
            write(&path, &mut attempts, u32::MAX, io::ErrorKind::StorageFull)
        });
        assert!(given_up.is_err_and(|error| is_lacking(&error)) && attempts == 2);
    }

    #[test]
    fn a_run_that_was_stopped_still_waits_to_be_saved() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("a");
        let (progress, stop) = (Progress::new(Style::Json), AtomicBool::new(true));
        let mut attempts = 0;
        wait(&progress, &stop, || {
            write(&path, &mut attempts, 1, io::ErrorKind::QuotaExceeded)
        })
        .expect("written");
        assert_eq!(attempts, 2);
    }

    /// Twice as long each time, up to half a minute; a wait that is given up ends at once, another lasts its time.
    #[test]
    fn pauses_double_up_to_the_longest() {
        let stop = AtomicBool::new(false);
        let progress = Progress::new(Style::Json);
        let full = Error::from(IoError::of_writing(
            "a",
            "cannot be written",
            &io::ErrorKind::StorageFull.into(),
        ));
        let begun = Instant::now();
        let mut waiting = Wait::new(&stop);
        assert!(waiting.again(&full, &progress) && begun.elapsed() >= FIRST_PAUSE);
        stop.store(true, Ordering::SeqCst);
        let mut pauses = vec![waiting.pause];
        for _ in 0..8 {
            assert!(!waiting.again(&full, &progress));
            pauses.push(waiting.pause);
        }
        let seconds: Vec<f64> = pauses.into_iter().flatten().map(|pause| pause.as_secs_f64()).collect();
        assert_eq!(seconds, [0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0]);
        assert!(!waiting.again(&Error::msg("another"), &progress));
    }
}
