//! An HTML report of runs: curves, views, recovered grids, times. One self-contained file, made from the run folders.
//!
//! Its size is bounded: pictures hold at most `pictures::MAX_PIXELS` pixels (4 Mi, at 3 bytes per pixel before
//! compression and a factor of 4/3 for base64), and volumes `output::parameters::SHOWN_TEXELS` texels each, at one byte or, for
//! colours, three. A report of one radiance field is a few MiB.

mod charts;
pub mod colormap;
mod data;
mod grids;
mod live;
pub(crate) mod page;
mod pictures;
pub mod scaling;

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::Result;

pub use live::Live;

use crate::io::atomic;
use data::RunData;
use pictures::Album;

/// The largest number of runs in one report.
pub const MAX_RUNS: usize = charts::MAX_RUNS;

/// Generates reports, and caches pictures between versions.
#[derive(Debug, Default)]
struct Reporter {
    album: Album,
}

impl Reporter {
    fn page(&mut self, runs: &[RunData]) -> Result<String> {
        let views = self.album.views(runs)?;
        Ok(page::html(runs, &views))
    }

    fn write(&mut self, runs: &[RunData], file: &Path) -> Result<()> {
        let begun = Instant::now();
        let html = self.page(runs)?;
        atomic::write_bytes(file, html.as_bytes())?;
        log::debug!(
            "{} of {} bytes written in {:?}",
            file.display(),
            html.len(),
            begun.elapsed()
        );
        Ok(())
    }
}

/// The report of the runs in some folders, at most [`MAX_RUNS`], as HTML.
///
/// # Errors
/// A folder holds no run, or something in it cannot be read.
pub fn page(folders: &[PathBuf]) -> Result<String> {
    let mut runs = Vec::new();
    for folder in folders {
        runs.push(data::read(folder, false)?);
    }
    data::tell_apart(&mut runs);
    Reporter::default().page(&runs)
}
