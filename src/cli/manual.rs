//! `prbopt completions` and `prbopt man`: shell completions and manual pages, generated from the command line's
//! definition.

use std::path::PathBuf;

use anyhow::Result;
use clap::{Args, CommandFactory};
use clap_complete::Shell;
use clap_mangen::Man;

use super::{Cli, Outcome};
use crate::io::atomic;
use crate::output::run_folder::create;
use crate::output::streams::print_bytes;

/// Arguments of `prbopt completions`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    prbopt completions bash > ~/.local/share/bash-completion/completions/prbopt\n  \
    prbopt completions fish > ~/.config/fish/completions/prbopt.fish")]
pub struct CompletionsArgs {
    /// The shell
    pub shell: Shell,
}

/// Arguments of `prbopt man`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  prbopt man | man -l -\n  prbopt man -o ~/.local/share/man/man1")]
pub struct ManArgs {
    /// Write a page for each command into this folder, instead of the first one to standard output
    #[arg(short, long, value_name = "FOLDER")]
    pub output: Option<PathBuf>,
}

/// Prints the completions.
///
/// # Errors
/// Standard output cannot be written.
pub fn completions(args: &CompletionsArgs) -> Result<Outcome> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "prbopt", &mut script);
    print_bytes(&script);
    Ok(Outcome::Done)
}

/// Prints or writes the manual.
///
/// # Errors
/// Standard output or the folder cannot be written.
pub fn run(args: &ManArgs) -> Result<Outcome> {
    let mut command = Cli::command();
    command.build();
    let Some(folder) = &args.output else {
        let mut text = Vec::new();
        Man::new(command).render(&mut text)?;
        print_bytes(&text);
        return Ok(Outcome::Done);
    };
    create(folder)?;
    let pages = command.get_subcommands().filter(|c| c.get_name() != "help").cloned();
    for page in std::iter::once(command.clone()).chain(pages) {
        let man = Man::new(page);
        let mut text = Vec::new();
        man.render(&mut text)?;
        atomic::write_bytes(&folder.join(man.get_filename()), &text)?;
    }
    Ok(Outcome::Done)
}
