//! A page that shows runs: curves, views, recovered grids, times. One file without a network, made from what runs leave
//! in their folders.
//!
//! Its size has a bound: pictures hold at most `pictures::MAX_PIXELS` pixels (4 Mi, at 3 bytes a pixel before
//! compression and 4/3 for the text that they are written as) and volumes `grids::MAX_TEXELS` texels each, at one byte,
//! or three for colours. A report of one radiance field is a few MiB.

mod charts;
mod data;
mod grids;
mod live;
mod page;
mod pictures;
pub mod tone;

use std::path::{Path, PathBuf};

use anyhow::Result;

pub use live::Live;

use crate::io::atomic;
use data::RunData;
use pictures::Album;

/// The most runs that one report compares.
pub const MAX_RUNS: usize = charts::MAX_RUNS;

/// Makes reports, and keeps pictures from one version to the next.
#[derive(Debug, Default)]
struct Reporter {
    album: Album,
}

impl Reporter {
    fn write(&mut self, runs: &[RunData], file: &Path) -> Result<()> {
        let views = self.album.views(runs)?;
        let html = page::html(runs, &views);
        Ok(atomic::write_bytes(file, html.as_bytes())?)
    }
}

/// Writes the report of the runs in some folders, at most [`MAX_RUNS`], to `file`.
///
/// # Errors
/// A folder holds no run, something in it cannot be read, or the file cannot be written.
pub fn write(folders: &[PathBuf], file: &Path) -> Result<()> {
    let mut runs = Vec::new();
    for folder in folders {
        runs.push(data::read(folder, false)?);
    }
    data::tell_apart(&mut runs);
    Reporter::default().write(&runs, file)
}
