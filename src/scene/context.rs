//! What the readers of one scene file share: its text, its references, and the mistakes found so far.

use std::cell::RefCell;
use std::fmt::Display;
use std::path::{Path, PathBuf};

use super::diagnostics::Diagnostic;
use super::reference::References;

/// What all cursors of one file share.
#[derive(Debug)]
pub(super) struct Context<'a> {
    path: &'a Path,
    line_starts: Vec<usize>,
    text: &'a str,
    pub(super) references: References<'a>,
    diagnostics: RefCell<Vec<Diagnostic>>,
    warnings: RefCell<Vec<String>>,
}

impl<'a> Context<'a> {
    /// A context for the file at `path`, which holds `text`.
    pub(super) fn new(path: &'a Path, text: &'a str) -> Self {
        Self {
            path,
            line_starts: std::iter::once(0)
                .chain(text.match_indices('\n').map(|(i, _)| i + 1))
                .collect(),
            text,
            references: References::default(),
            diagnostics: RefCell::default(),
            warnings: RefCell::default(),
        }
    }

    /// Line and column, counted from 1, of a byte of the text; columns count characters.
    fn position(&self, at: usize) -> (usize, usize) {
        let line = self.line_starts.partition_point(|start| *start <= at).max(1);
        let start = self.line_starts[line - 1];
        let before = self.text.as_bytes().get(start..at).unwrap_or_default();
        // Continuation bytes of UTF-8 are not characters of their own.
        let column = 1 + before.iter().filter(|byte| **byte & 0xC0 != 0x80).count();
        (line, column)
    }

    /// Notes a mistake at a byte of the text.
    pub(super) fn error(&self, at: usize, message: impl Display) {
        self.diagnostics.borrow_mut().push(Diagnostic {
            path: self.path.to_path_buf(),
            position: Some(self.position(at)),
            message: message.to_string(),
        });
    }

    /// Notes mistakes of another file.
    pub(super) fn adopt(&self, diagnostics: Vec<Diagnostic>) {
        self.diagnostics.borrow_mut().extend(diagnostics);
    }

    /// Notes something that is probably not what the author wants but can be done.
    pub(super) fn warn(&self, message: impl Display) {
        self.warnings.borrow_mut().push(message.to_string());
    }

    /// Whether a mistake has been noted.
    pub(super) fn has_errors(&self) -> bool {
        !self.diagnostics.borrow().is_empty()
    }

    /// The mistakes in the order of the file, and the warnings.
    pub(super) fn into_parts(self) -> (Vec<Diagnostic>, Vec<String>) {
        let mut diagnostics = self.diagnostics.into_inner();
        diagnostics.sort_by_key(|d| (d.path != self.path, d.position));
        (diagnostics, self.warnings.into_inner())
    }

    /// A file name of the scene as a path: relative ones are relative to the scene file.
    pub(super) fn resolve_path(&self, name: &str) -> PathBuf {
        self.path.parent().unwrap_or(Path::new("")).join(name)
    }
}
