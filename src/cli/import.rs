//! `prbopt import`: a data set becomes a scene file.

use std::path::PathBuf;

use super::Outcome;

/// Arguments of `prbopt import`.
#[derive(Debug, clap::Args)]
pub struct ImportArgs {
    /// A transforms.json, or the folder of a COLMAP model
    pub dataset: PathBuf,
}

/// Writes the scene file and says what it chose.
pub fn run(args: ImportArgs) -> anyhow::Result<Outcome> {
    anyhow::bail!("{}: import is not built yet", args.dataset.display())
}
