//! The command line: one file per command, which checks its arguments and then only orchestrates.

pub mod backpropagate;
pub mod bench;
pub mod compare;
mod derivative;
pub mod export;
mod extent;
pub mod gradcheck;
pub mod gradient;
pub mod import;
pub mod info;
mod log;
pub mod manual;
pub mod mill;
pub mod optimize;
pub mod render;
pub mod report;
pub mod schema;
pub mod shared;
mod usage;
pub mod view;

use anyhow::{anyhow, bail};
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

pub use self::log::Level;
use crate::cluster::{Cluster, Membership};
use crate::output::printable::printable;
use crate::output::streams;

/// The command line.
#[derive(Debug, Parser)]
#[command(version, about, arg_required_else_help = true)]
#[command(after_help = "To begin with:\n  \
    prbopt optimize scenes/two_blobs.json    and open runs/two_blobs/report.html in a browser\n  \
    prbopt import lego/transforms_train.json -o lego.json    then  prbopt optimize lego.json")]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
    /// Which messages about its own workings the program prints to standard error
    #[arg(
        long,
        global = true,
        value_enum,
        default_value_t,
        value_name = "LEVEL",
        display_order = 900
    )]
    pub log: Level,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Turn photographs with cameras, a picture, or a scene in Mitsuba's XML or glTF into a scene file
    Import(import::ImportArgs),
    /// Reconstruct what the scene's `optimize` block names
    Optimize(optimize::OptimizeArgs),
    /// Render views of a scene, with the result of a run if wanted
    Render(render::RenderArgs),
    /// Write a scene, with the result of a run if wanted, in the format of another tool
    Export(export::ExportArgs),
    /// Show what a cutter leaves of a slab whose heights were found
    Mill(mill::MillArgs),
    /// Make the page that shows a run, or several side by side
    Report(report::ReportArgs),
    /// Serve the page of a run that is over, with a view that one turns
    View(view::ViewArgs),
    /// Compare two images: figures, and an exit code for scripts
    Compare(compare::CompareArgs),
    /// Compare gradients with finite differences; the exit code says whether they are right
    Gradcheck(gradcheck::GradcheckArgs),
    /// Show how the image changes with one number, or the scene's loss with all entries of a parameter
    Gradient(gradient::GradientArgs),
    /// Send an adjoint image through the scene: the gradients by its parameters
    Backpropagate(backpropagate::BackpropagateArgs),
    /// Time the passes of an iteration, beside what the machine can do
    Bench(bench::BenchArgs),
    /// Show the version, the devices and what `auto` would choose, or summarise a scene
    Info(info::InfoArgs),
    /// Print a JSON Schema of scene files
    Schema(schema::SchemaArgs),
    /// Print completions for a shell
    Completions(manual::CompletionsArgs),
    /// Print the manual page, or write those of all commands into a folder
    Man(manual::ManArgs),
}

/// The outcome of a command without an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Success.
    Done,
    /// A requested check failed.
    CheckFailed,
    /// The user stopped it; the state reached is saved.
    Interrupted,
}

impl Outcome {
    /// The exit code of the program; errors exit with 2.
    pub fn exit_code(self) -> u8 {
        match self {
            Outcome::Done => 0,
            Outcome::CheckFailed => 1,
            Outcome::Interrupted => 130,
        }
    }
}

/// An error as one sentence, fit for a terminal, with the operating system's messages rephrased and without their numbers.
pub fn sentence(error: &anyhow::Error) -> String {
    let mut text = format!("{error:#}");
    while let Some(at) = text.find(" (os error ")
        && let Some(length) = text[at..].find(')')
    {
        text.replace_range(at..=at + length, "");
    }
    let phrases = [
        ("No such file or directory", "there is no such file or folder"),
        ("Permission denied", "permission is denied"),
        ("File exists", "there is a file of that name"),
        ("Is a directory", "it is a folder"),
        ("Not a directory", "a part of the path is no folder"),
        ("Read-only file system", "the file system is read-only"),
        ("No space left on device", "the disk is full"),
    ];
    let text = phrases
        .iter()
        .fold(text, |text, (theirs, ours)| text.replace(theirs, ours));
    printable(&text)
}

impl Cli {
    /// Parses the command line; exits with a message where it is wrong. None if help or the version was asked for, and
    /// printed.
    pub fn from_command_line() -> Option<Self> {
        // Accepts negative numbers as values, so that the error is a value out of range rather than an unknown option.
        let numbers = |arg: clap::Arg| match arg.get_action().takes_values() && !arg.is_positional() {
            true => arg.allow_negative_numbers(true),
            false => arg,
        };
        let mut command = Self::command().mut_subcommands(|command| command.mut_args(numbers));
        let matches = command.try_get_matches_from_mut(std::env::args_os());
        match matches.and_then(|matches| Self::from_arg_matches(&matches)) {
            Ok(parsed) => Some(parsed),
            Err(error) if error.use_stderr() => usage::explained(error, &command).exit(),
            Err(asked) => {
                streams::keep(asked.print());
                None
            }
        }
    }
}

/// Runs one command.
pub fn run(cli: Cli) -> anyhow::Result<Outcome> {
    self::log::begin(cli.log);
    // Kept until the command is over, so that all MPI ranks end together.
    let _membership = Membership::join().map_err(|e| anyhow!(e))?;
    let outcome = dispatch(cli.command);
    if let Err(error) = &outcome {
        Cluster::world().end_by(&sentence(error));
    }
    outcome
}

fn dispatch(command: Command) -> anyhow::Result<Outcome> {
    let is_shared = matches!(command, Command::Optimize(_) | Command::Render(_));
    if !is_shared && !Cluster::world().is_single() {
        bail!("only `prbopt optimize` and `prbopt render` are shared by several ranks; start this command alone");
    }
    match command {
        Command::Import(args) => import::run(args),
        Command::Optimize(args) => optimize::run(args),
        Command::Render(args) => render::run(args),
        Command::Export(args) => export::run(args),
        Command::Mill(args) => mill::run(args),
        Command::Report(args) => report::run(args),
        Command::View(args) => view::run(args),
        Command::Info(args) => info::run(args),
        Command::Compare(args) => compare::run(args),
        Command::Gradcheck(args) => gradcheck::run(args),
        Command::Backpropagate(args) => backpropagate::run(args),
        Command::Bench(args) => bench::run(args),
        Command::Gradient(args) => gradient::run(args),
        Command::Schema(args) => schema::run(&args),
        Command::Completions(args) => manual::completions(&args),
        Command::Man(args) => manual::run(&args),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_systems_phrases_become_words_of_a_sentence() {
        let missing = std::io::Error::from_raw_os_error(2);
        let error = anyhow::Error::from(missing).context("a.json: cannot be read");
        let told = sentence(&error);
        assert!(
            told.starts_with("a.json: cannot be read: ") && !told.contains("os error"),
            "{told}"
        );
        let hostile = sentence(&anyhow!(
            "a.json:1:1: unknown parameter `\u{1b}]0;x`\na.json:2:1: another"
        ));
        assert_eq!(
            hostile,
            "a.json:1:1: unknown parameter `\\u{1b}]0;x`\na.json:2:1: another"
        );
        #[cfg(target_os = "linux")]
        assert_eq!(told, "a.json: cannot be read: there is no such file or folder");
    }
}
