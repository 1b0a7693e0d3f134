//! Mistakes in a scene file: position, finding, and the probably intended name.

use std::fmt;
use std::path::{Path, PathBuf};

/// One mistake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// The scene file with the mistake, or whose value the command line changes.
    pub path: PathBuf,
    /// Its position in the scene.
    pub place: Place,
    /// One sentence.
    pub message: String,
}

/// The position of a mistake; ordered as mistakes are reported.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// The file as a whole.
    File,
    /// In the file: line and column, counted from 1.
    Text(usize, usize),
    /// In a value of the command line: its index from 0, and the option that gives it.
    Change(usize, String),
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = match self.path == Path::new("-") {
            true => "standard input".into(),
            false => self.path.to_string_lossy(),
        };
        match &self.place {
            Place::File => write!(f, "{file}: ")?,
            Place::Text(line, column) => write!(f, "{file}:{line}:{column}: ")?,
            Place::Change(_, change) => write!(f, "in `{change}`: ")?,
        }
        // Mistakes stand one a line, but what a message quotes from a file may hold ends of lines.
        f.write_str(&self.message.replace('\r', "\\r").replace('\n', "\\n"))
    }
}

/// All mistakes found in a scene file and in the files that it names, in the order of the file; never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostics {
    items: Vec<Diagnostic>,
}

impl Diagnostics {
    /// A single mistake about a file as a whole.
    pub fn whole_file(path: impl Into<PathBuf>, message: impl fmt::Display) -> Self {
        Self {
            items: vec![Diagnostic {
                path: path.into(),
                place: Place::File,
                message: message.to_string(),
            }],
        }
    }

    /// These mistakes, which are at least one, without duplicates.
    pub fn of(items: Vec<Diagnostic>) -> Self {
        Self::collect(items).unwrap_or(Self { items: Vec::new() })
    }

    /// The given mistakes without duplicates, or `None` if there are none.
    pub(super) fn collect(items: Vec<Diagnostic>) -> Option<Self> {
        let mut unique: Vec<Diagnostic> = Vec::with_capacity(items.len());
        for item in items {
            if !unique.contains(&item) {
                unique.push(item);
            }
        }
        (!unique.is_empty()).then_some(Self { items: unique })
    }

    /// The mistakes, at least one.
    pub fn iter(&self) -> impl Iterator<Item = &Diagnostic> {
        self.items.iter()
    }

    /// The mistakes themselves.
    pub(super) fn into_vec(self) -> Vec<Diagnostic> {
        self.items
    }
}

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, item) in self.items.iter().enumerate() {
            if i > 0 {
                writeln!(f)?;
            }
            write!(f, "{item}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Diagnostics {}

/// "did you mean `x`? (allowed: `x`, `y`)", or only the list if no name is similar.
pub(super) fn suggest(found: &str, allowed: &[&str]) -> String {
    let list = allowed
        .iter()
        .map(|name| format!("`{name}`"))
        .collect::<Vec<_>>()
        .join(", ");
    let meant = nearest(found, allowed).filter(|name| *name != found);
    match (meant, allowed.is_empty()) {
        (Some(name), _) => format!("did you mean `{name}`? (allowed: {list})"),
        (None, false) => format!("allowed: {list}"),
        (None, true) => "nothing is allowed here".to_string(),
    }
}

/// The allowed name most similar to `found`, if any is similar enough.
pub(super) fn nearest<'n>(found: &str, allowed: &[&'n str]) -> Option<&'n str> {
    let found = found.to_lowercase();
    let likeness = |name: &str| strsim::jaro_winkler(&found, &name.to_lowercase());
    let edits = |name: &str| strsim::damerau_levenshtein(&found, &name.to_lowercase());
    allowed
        .iter()
        .copied()
        .filter(|name| edits(name) <= found.chars().count().min(name.chars().count()) / 3 || likeness(name) > 0.9)
        .max_by(|a, b| likeness(a).total_cmp(&likeness(b)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_finger_is_recognised() {
        assert_eq!(nearest("albdeo", &["scale", "albedo", "sigma_t"]), Some("albedo"));
        assert_eq!(nearest("Radius", &["radius"]), Some("radius"));
        assert_eq!(
            nearest(
                "object.interior.sigma",
                &["object.interior.sigma_t", "object.interior.sh_coeffs"]
            ),
            Some("object.interior.sigma_t")
        );
    }

    #[test]
    fn what_is_unlike_everything_gets_no_suggestion() {
        assert_eq!(nearest("banana", &["scale", "albedo"]), None);
        assert_eq!(nearest("z", &["x", "y"]), None);
        assert_eq!(suggest("banana", &["scale"]), "allowed: `scale`");
    }

    #[test]
    fn repeated_mistakes_are_reported_once() {
        let one = Diagnostics::whole_file("a.json", "wrong").into_vec();
        let both = Diagnostics::collect([one.clone(), one].concat()).expect("one is left");
        assert_eq!(both.iter().count(), 1);
        assert!(Diagnostics::collect(Vec::new()).is_none());
    }
}
