//! A scene as Mitsuba's XML.

mod dictionary;
mod elements;
mod mirrored;
mod sensors;

use std::path::Path;

use crate::io::{Result, xml};
use crate::scene::Scene;

pub use mirrored::turn;

/// A scene converted for Mitsuba.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Export {
    /// The XML.
    pub text: String,
    /// The parts that Mitsuba cannot express and that do not change the picture, a sentence each.
    pub notes: Vec<String>,
}

/// Why a scene cannot be exported.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// The parts that Mitsuba cannot express and that change the picture, a sentence each.
    #[error("{}", .0.join("\n"))]
    Unsayable(Vec<String>),
    #[error(transparent)]
    Io(#[from] crate::io::IoError),
}

/// Checks that Mitsuba can express a scene.
///
/// # Errors
/// All parts of the scene that Mitsuba cannot express and that change its picture.
pub fn check(scene: &Scene) -> std::result::Result<(), Refusal> {
    dictionary::of(scene).map(drop).map_err(Refusal::Unsayable)
}

/// The XML of a scene into which [`super::bake`] has put its parameters' values; names of files become relative to
/// `output`.
///
/// # Errors
/// All parts of the scene that Mitsuba cannot express and that change its picture; a file that the scene names is gone.
pub fn export(scene: &Scene, output: &Path) -> std::result::Result<Export, Refusal> {
    let mut dictionary = dictionary::of(scene).map_err(Refusal::Unsayable)?;
    turn(scene, &mut dictionary.root)?;
    let root = elements::scene(&dictionary.root, output)?;
    Ok(Export {
        text: xml::text(&root),
        notes: dictionary.notes,
    })
}

/// Writes the XML of a scene into a file.
///
/// # Errors
/// The file cannot be written.
pub fn write(export: &Export, output: &Path) -> Result<()> {
    crate::io::atomic::write_bytes(output, export.text.as_bytes())
}
