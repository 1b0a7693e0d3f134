//! `prbopt report`: writes the report of a run, or of several side by side.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use clap::Args;

use super::Outcome;
use crate::io::atomic;
use crate::output::progress::print_line;
use crate::output::run_folder::RunFolder;
use crate::report;

/// Arguments of `prbopt report`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    prbopt report runs/two_blobs\n  \
    prbopt report runs/first runs/second -o comparison.html")]
pub struct ReportArgs {
    /// Folders of runs
    #[arg(required = true, value_name = "RUN")]
    pub runs: Vec<PathBuf>,
    /// The page, or - for standard output [default: report.html in the folder of the run, or in the current folder for
    /// several]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// Runs the command.
///
/// # Errors
/// A folder holds no run, there are too many, or the page cannot be written.
pub fn run(args: ReportArgs) -> Result<Outcome> {
    if args.runs.len() > report::MAX_RUNS {
        bail!(
            "{} runs are more than one page tells apart; give at most {}",
            args.runs.len(),
            report::MAX_RUNS
        );
    }
    let file = args.output.unwrap_or_else(|| match args.runs.as_slice() {
        [run] => RunFolder::at(run).report(),
        _ => PathBuf::from("report.html"),
    });
    let page = report::page(&args.runs)?;
    if file == Path::new("-") {
        std::io::stdout().write_all(page.as_bytes())?;
        return Ok(Outcome::Done);
    }
    atomic::write_bytes(&file, page.as_bytes())?;
    print_line(&file.display().to_string());
    Ok(Outcome::Done)
}
