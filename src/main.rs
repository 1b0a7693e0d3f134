//! Parses the command line, runs the command, maps its outcome to an exit code.

use std::process::ExitCode;

use clap::Parser;
use prbopt::cli::{self, Cli};

fn main() -> ExitCode {
    match cli::run(Cli::parse()) {
        Ok(outcome) => ExitCode::from(outcome.exit_code()),
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}
