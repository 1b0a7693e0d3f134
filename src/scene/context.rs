//! State shared by the readers of one scene file: its text, references, and the mistakes found so far.
//!
//! Source positions are bytes of the file's text, continued by the values of the command line.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fmt::Display;
use std::path::{Path, PathBuf};

use super::change::Change;
use super::diagnostics::{Diagnostic, Place};
use super::json::{Fault, Json, Node};
use super::reference::References;

/// State shared by all cursors of one file.
#[derive(Debug)]
pub(super) struct Context<'a> {
    path: &'a Path,
    line_starts: Vec<usize>,
    text: &'a str,
    /// First source position of each value of the command line, and the option that gives it, such as `--set a.b=1`.
    changes: Vec<(usize, String)>,
    /// One past the last source position.
    end: usize,
    pub(super) references: References<'a>,
    diagnostics: RefCell<Vec<Diagnostic>>,
    warnings: RefCell<Vec<String>>,
    derivative_warnings: RefCell<Vec<String>>,
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
            changes: Vec::new(),
            end: text.len() + 1,
            references: References::default(),
            diagnostics: RefCell::default(),
            warnings: RefCell::default(),
            derivative_warnings: RefCell::default(),
        }
    }

    /// Assigns a value of the command line in the scene.
    pub(super) fn apply(&mut self, change: &Change, root: &mut Node) {
        let first = self.end;
        self.end += change.len();
        self.changes.push((first, format!("--set {}", change.shown())));
        for Fault { at, message } in change.apply(first, root).err().into_iter().flatten() {
            self.error(at, message);
        }
    }

    /// An empty entry of the block `optimize` for the parameter that `--parameter` names, with a source position of its own.
    pub(super) fn ask(&mut self, name: &str) -> Node {
        let start = self.end;
        self.end += 1;
        self.changes.push((start, format!("--parameter {name}")));
        Node {
            start,
            end: start,
            json: Json::Object(Vec::new()),
        }
    }

    /// The index of the change at a source position; None inside the file.
    fn change_at(&self, at: usize) -> Option<usize> {
        self.changes.partition_point(|(first, _)| *first <= at).checked_sub(1)
    }

    /// Whether `node` comes from the command line.
    pub(super) fn is_change(&self, node: &Node) -> bool {
        self.change_at(node.start).is_some()
    }

    fn place(&self, at: usize) -> Place {
        match self.change_at(at) {
            Some(number) => Place::Change(number, self.changes[number].1.clone()),
            None => {
                let (line, column) = self.position(at);
                Place::Text(line, column)
            }
        }
    }

    /// Names the command line's changes inside an object or list of the file, in brackets; empty if there are none.
    pub(super) fn changes_inside(&self, node: &Node) -> String {
        let mut numbers = BTreeSet::new();
        if !self.changes.is_empty() && !self.is_change(node) {
            self.collect_changes(node, &mut numbers);
        }
        if numbers.is_empty() {
            return String::new();
        }
        let words: Vec<String> = numbers.iter().map(|i| format!("`{}`", self.changes[*i].1)).collect();
        format!(" (with {})", words.join(" and "))
    }

    fn collect_changes(&self, node: &Node, numbers: &mut BTreeSet<usize>) {
        match self.change_at(node.start) {
            Some(number) => {
                numbers.insert(number);
            }
            None => node.children().for_each(|child| self.collect_changes(child, numbers)),
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

    /// Records a mistake at a source position.
    pub(super) fn error(&self, at: usize, message: impl Display) {
        self.diagnostics.borrow_mut().push(Diagnostic {
            path: self.path.to_path_buf(),
            place: self.place(at),
            message: message.to_string(),
        });
    }

    /// Adds the mistakes of another file.
    pub(super) fn adopt(&self, diagnostics: Vec<Diagnostic>) {
        self.diagnostics.borrow_mut().extend(diagnostics);
    }

    /// Records a warning: probably unintended, but valid.
    pub(super) fn warn(&self, message: impl Display) {
        self.warnings.borrow_mut().push(message.to_string());
    }

    /// Records a warning about derivatives, which matters only where these are taken.
    pub(super) fn warn_of_derivatives(&self, message: impl Display) {
        self.derivative_warnings.borrow_mut().push(message.to_string());
    }

    /// Records a warning unless it has been recorded before.
    pub(super) fn warn_once(&self, message: &str) {
        let said = self.warnings.borrow().iter().any(|warning| warning == message);
        if !said {
            self.warn(message);
        }
    }

    /// Whether a mistake has been recorded.
    pub(super) fn has_errors(&self) -> bool {
        !self.diagnostics.borrow().is_empty()
    }

    /// The mistakes in the order of the file, then of the command line; the warnings; and those about derivatives.
    pub(super) fn into_parts(self) -> (Vec<Diagnostic>, Vec<String>, Vec<String>) {
        let mut diagnostics = self.diagnostics.into_inner();
        diagnostics.sort_by(|a, b| (a.path != self.path, &a.place).cmp(&(b.path != self.path, &b.place)));
        (
            diagnostics,
            self.warnings.into_inner(),
            self.derivative_warnings.into_inner(),
        )
    }

    /// A file name of the scene as a path: relative ones are relative to the scene file.
    pub(super) fn resolve_path(&self, name: &str) -> PathBuf {
        self.path.parent().unwrap_or(Path::new("")).join(name)
    }
}
