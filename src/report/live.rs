//! A report that is updated during its run.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::Result;

use super::{Reporter, data};
use crate::optimize::Observer;
use crate::output::metrics::Figures;
use crate::output::run_folder::RunFolder;

/// The shortest time between two updates.
const INTERVAL: Duration = Duration::from_secs(5);

/// The next update waits this many times the duration of the last one, so that reports take under a hundredth of the
/// time.
const PATIENCE: u32 = 120;

/// Writes the report in a background thread.
#[derive(Debug)]
pub struct Live {
    folder: PathBuf,
    due: Arc<Mutex<Instant>>,
    wake: Option<SyncSender<()>>,
    worker: Option<JoinHandle<Reporter>>,
}

impl Live {
    /// Starts to follow the run in a folder.
    pub fn new(folder: &RunFolder) -> Self {
        let (wake, called) = sync_channel(1);
        let due = Arc::new(Mutex::new(Instant::now() + INTERVAL));
        let (path, clock) = (folder.path().to_owned(), Arc::clone(&due));
        Self {
            folder: folder.path().to_owned(),
            due,
            wake: Some(wake),
            worker: Some(std::thread::spawn(move || follow(&path, &called, &clock))),
        }
    }

    /// Writes the final report of a finished run and returns its path.
    ///
    /// # Errors
    /// The run's folder cannot be read, or the file not be written.
    pub fn finish(mut self) -> Result<PathBuf> {
        let mut reporter = self.end();
        let file = RunFolder::at(&self.folder).report();
        reporter.write(&[data::read(&self.folder, false)?], &file)?;
        Ok(file)
    }

    fn end(&mut self) -> Reporter {
        self.wake = None;
        let ended = self.worker.take().and_then(|worker| worker.join().ok());
        ended.unwrap_or_default()
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.end();
    }
}

impl Observer for Live {
    fn iterated(&self, _: &Figures) {
        let due = self.due.lock().is_ok_and(|due| Instant::now() >= *due);
        if let Some(wake) = self.wake.as_ref().filter(|_| due) {
            // If the channel is full, the worker has a pending update already.
            let _ = wake.try_send(());
        }
    }
}

/// Writes an update on each request.
fn follow(folder: &Path, called: &Receiver<()>, due: &Mutex<Instant>) -> Reporter {
    let mut reporter = Reporter::default();
    for () in called {
        let begun = Instant::now();
        // Half-written pictures or a full disk must not end the run: a later update may succeed.
        let _ = data::read(folder, true).and_then(|run| reporter.write(&[run], &RunFolder::at(folder).report()));
        let pause = (begun.elapsed() * PATIENCE).max(INTERVAL);
        if let Ok(mut due) = due.lock() {
            *due = Instant::now() + pause;
        }
    }
    reporter
}
