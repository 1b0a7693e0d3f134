//! `prbopt report`: writes the report of a run, or of several side by side.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use clap::Args;

use super::Outcome;
use crate::io::atomic;
use crate::output::run_folder::RunFolder;
use crate::output::streams::{print_bytes, print_line};
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
    let to_standard_output = file == Path::new("-");
    let is_page = file
        .extension()
        .is_some_and(|e| e.eq_ignore_ascii_case("html") || e.eq_ignore_ascii_case("htm"));
    if !to_standard_output && !is_page {
        bail!("{}: a report is a page; give a name that ends in .html", file.display());
    }
    let page = report::page(&args.runs)?;
    if to_standard_output {
        print_bytes(page.as_bytes());
        return Ok(Outcome::Done);
    }
    atomic::write_bytes(&file, page.as_bytes())?;
    print_line(&file.display().to_string());
    Ok(Outcome::Done)
}
