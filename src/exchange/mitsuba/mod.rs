//! A scene as Mitsuba's XML.

mod dictionary;
mod elements;
mod mirrored;
mod sensors;

use std::path::Path;

use crate::io::{Result, xml};
use crate::scene::Scene;

pub use mirrored::turn;

/// A scene in Mitsuba's words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Export {
    /// The XML.
    pub text: String,
    /// What Mitsuba cannot say and the picture does not need, a sentence each.
    pub notes: Vec<String>,
}

/// Why a scene cannot be exported.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// What Mitsuba cannot say and the picture needs, a sentence each.
    #[error("{}", .0.join("\n"))]
    Unsayable(Vec<String>),
    #[error(transparent)]
    Io(#[from] crate::io::IoError),
}

/// Whether Mitsuba can say a scene.
///
/// # Errors
/// All of it that changes its picture and that Mitsuba cannot say.
pub fn check(scene: &Scene) -> std::result::Result<(), Refusal> {
    dictionary::of(scene).map(drop).map_err(Refusal::Unsayable)
}

/// The XML of a scene whose values are its own ([`super::bake`]); names of files become relative to `output`.
///
/// # Errors
/// All of the scene that changes its picture and that Mitsuba cannot say; a file that the scene names is gone.
pub fn export(scene: &Scene, output: &Path) -> std::result::Result<Export, Refusal> {
    let mut dictionary = dictionary::of(scene).map_err(Refusal::Unsayable)?;
    turn(scene, &mut dictionary.root)?;
    let root = elements::scene(&dictionary.root, output)?;
    Ok(Export {
        text: xml::text(&root),
        notes: dictionary.notes,
    })
}

/// The XML of a scene, written into a file.
///
/// # Errors
/// The file cannot be written.
pub fn write(export: &Export, output: &Path) -> Result<()> {
    crate::io::atomic::write_bytes(output, export.text.as_bytes())
}
