//! Parses the command line, runs the command, maps its outcome to an exit code.

use std::process::ExitCode;

use clap::Parser;
use prbopt::cli::{self, Cli};

fn main() -> ExitCode {
    // Mesa's Vulkan layer that sorts devices asks the display server and complains aloud where there is none. Devices
    // are chosen here, so that it has nothing to do.
    // SAFETY: no other thread has been started.
    unsafe { std::env::set_var("NODEVICE_SELECT", "1") };
    match cli::run(Cli::parse()) {
        Ok(outcome) => ExitCode::from(outcome.exit_code()),
        Err(error) => {
            eprintln!("error: {}", cli::sentence(&error));
            ExitCode::from(2)
        }
    }
}
