//! `prbopt schema`: a JSON Schema of scene files, for editors and other programs.

use clap::Args;

use super::Outcome;
use crate::output::streams::print_line;
use crate::scene;

/// Arguments of `prbopt schema`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  prbopt schema > prbopt.schema.json")]
pub struct SchemaArgs {}

/// Prints the schema.
///
/// # Errors
/// None.
pub fn run(_: &SchemaArgs) -> anyhow::Result<Outcome> {
    print_line(&format!("{:#}", scene::schema()));
    Ok(Outcome::Done)
}
