//! Parses the command line, runs the command, maps its outcome to an exit code.

use std::process::ExitCode;

use prbopt::cli::{self, Cli, Outcome};
use prbopt::output::{memory, streams};
use prbopt::tell;

fn main() -> ExitCode {
    // Mesa's Vulkan layer for device selection asks the display server and prints an error where there is none. This
    // program chooses its device itself, so that the layer is switched off.
    // SAFETY: no other thread has been started.
    unsafe { std::env::set_var("NODEVICE_SELECT", "1") };
    memory::give_back_freed();
    let failed = |sentence: &str| {
        tell!("error: {sentence}");
        ExitCode::from(2)
    };
    let ended = Cli::from_command_line().map_or(Ok(Outcome::Done), cli::run);
    let lost = streams::finish();
    match (ended, lost) {
        (Err(error), _) => failed(&cli::sentence(&error)),
        (Ok(_), Some(reason)) => failed(&format!("standard output could not be written: {reason}")),
        (Ok(outcome), None) => ExitCode::from(outcome.exit_code()),
    }
}
