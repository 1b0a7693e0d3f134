//! A cursor over the JSON tree: every value knows its path, and objects know which of their parameters were asked for.
//!
//! Reading never stops at a mistake: it is noted in the [`Context`], the reader returns `None` or a default, and all
//! mistakes are reported together.

use std::cell::RefCell;
use std::fmt::Display;
use std::path::{Path, PathBuf};

use super::diagnostics::{Diagnostic, suggest};
use super::json::{Json, Member, Node};
use super::reference::References;
use super::vocabulary::{self, Class, Known};

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

/// What a number may be.
#[derive(Debug, Clone, Copy)]
pub(super) enum Limit {
    Any,
    /// x > 0
    Positive,
    /// x ≥ 0
    NonNegative,
    /// a < x < b
    Between(f64, f64),
    /// a ≤ x ≤ b
    Within(f64, f64),
}

impl Limit {
    fn violated_by(self, x: f64) -> Option<String> {
        let (good, text) = match self {
            Limit::Any => (true, String::new()),
            Limit::Positive => (x > 0.0, "it must be positive".to_string()),
            Limit::NonNegative => (x >= 0.0, "it must not be negative".to_string()),
            Limit::Between(a, b) => (
                a < x && x < b,
                format!("it must lie between {a} and {b}, both excluded"),
            ),
            Limit::Within(a, b) => (a <= x && x <= b, format!("it must lie between {a} and {b}")),
        };
        (!good).then_some(text)
    }
}

/// A value and where it stands.
#[derive(Debug, Clone)]
pub(super) struct Value<'a> {
    pub(super) context: &'a Context<'a>,
    pub(super) node: &'a Node,
    /// Such as `sensor.to_world[0].rotate.axis`; empty for the scene itself.
    pub(super) path: String,
}

impl<'a> Value<'a> {
    /// Notes a mistake at this value: what is wrong, then what to do.
    pub(super) fn error(&self, what: impl Display, advice: impl Display) {
        let place = if self.path.is_empty() {
            String::new()
        } else {
            format!(" at {}", self.path)
        };
        self.context.error(self.node.start, format!("{what}{place}: {advice}"));
    }

    /// Notes that this value is of the wrong kind.
    fn mismatch(&self, expected: &str) {
        self.error(format!("found {}", self.describe()), format!("expected {expected}"));
    }

    /// The value in a few words.
    fn describe(&self) -> String {
        match &self.node.json {
            Json::Null => "null".to_string(),
            Json::Bool(value) => value.to_string(),
            Json::Number(number) => format!("the number {number}"),
            Json::String(text) if text.chars().count() <= 40 => format!("the string {text:?}"),
            Json::String(_) => "a long string".to_string(),
            Json::Array(items) => format!("a list of {}", items.len()),
            Json::Object(_) => match self.node.member("type").and_then(Node::as_str) {
                Some(name) => format!("an object of type `{name}`"),
                None => "an object".to_string(),
            },
        }
    }

    /// The value that a `{"type": "ref"}` stands for, else the value itself; `None` for a reference that has been
    /// reported as broken.
    pub(super) fn resolve(&self) -> Option<Value<'a>> {
        let (mut node, mut path) = (self.node, self.path.as_str());
        while node.member("type").and_then(Node::as_str) == Some("ref") {
            (node, path) = self.context.references.target(node)?;
        }
        Some(Value {
            context: self.context,
            node,
            path: path.to_string(),
        })
    }

    fn child(&self, node: &'a Node, step: &str) -> Value<'a> {
        let dot = if self.path.is_empty() || step.starts_with('[') {
            ""
        } else {
            "."
        };
        Value {
            context: self.context,
            node,
            path: format!("{}{dot}{step}", self.path),
        }
    }

    /// Whether this is `null`.
    pub(super) fn is_null(&self) -> bool {
        matches!(self.node.json, Json::Null)
    }

    /// The string, without complaint if it is none.
    pub(super) fn as_str(&self) -> Option<&'a str> {
        self.node.as_str()
    }

    /// Whether this is an object.
    pub(super) fn is_object(&self) -> bool {
        matches!(self.node.json, Json::Object(_))
    }

    /// Whether this is a list.
    pub(super) fn is_list(&self) -> bool {
        matches!(self.node.json, Json::Array(_))
    }

    /// Whether this is a number.
    pub(super) fn is_number(&self) -> bool {
        matches!(self.node.json, Json::Number(_))
    }

    /// The members' names and values, if this is an object.
    pub(super) fn entries(&self) -> Option<Vec<(&'a str, Value<'a>)>> {
        let Json::Object(members) = &self.node.json else {
            self.mismatch("an object `{…}`");
            return None;
        };
        Some(
            members
                .iter()
                .map(|m| (m.name.as_str(), self.child(&m.value, &m.name)))
                .collect(),
        )
    }

    /// A string.
    pub(super) fn string(&self) -> Option<&'a str> {
        let text = self.node.as_str();
        if text.is_none() {
            self.mismatch("a string");
        }
        text
    }

    /// `true` or `false`.
    pub(super) fn boolean(&self) -> Option<bool> {
        match self.node.json {
            Json::Bool(value) => Some(value),
            _ => {
                self.mismatch("`true` or `false`");
                None
            }
        }
    }

    /// A number that an f32 can hold.
    pub(super) fn number(&self, limit: Limit) -> Option<f64> {
        let Json::Number(number) = &self.node.json else {
            self.mismatch("a number");
            return None;
        };
        let x = number.as_f64()?;
        if !(x as f32).is_finite() {
            self.error(
                format!("the number {number} is out of range"),
                "magnitudes up to 3.4e38 can be stored",
            );
            return None;
        }
        if let Some(reason) = limit.violated_by(x) {
            self.error(format!("the value {number} is not possible"), reason);
            return None;
        }
        Some(x)
    }

    /// A whole number.
    pub(super) fn integer(&self, low: u64, high: u64) -> Option<u64> {
        let Json::Number(number) = &self.node.json else {
            self.mismatch("a whole number");
            return None;
        };
        let whole = number.as_u64().or_else(|| {
            let x = number.as_f64()?;
            (x.fract() == 0.0 && (0.0..9e15).contains(&x)).then_some(x as u64)
        });
        match whole {
            Some(n) if (low..=high).contains(&n) => Some(n),
            _ => {
                self.error(
                    format!("the value {number} is not possible"),
                    format!("expected a whole number from {low} to {high}"),
                );
                None
            }
        }
    }

    /// A list of any length.
    pub(super) fn list(&self) -> Option<Vec<Value<'a>>> {
        let Json::Array(items) = &self.node.json else {
            self.mismatch("a list `[…]`");
            return None;
        };
        Some(
            items
                .iter()
                .enumerate()
                .map(|(i, item)| self.child(item, &format!("[{i}]")))
                .collect(),
        )
    }

    /// A list of `N` values.
    pub(super) fn list_of<const N: usize>(&self) -> Option<[Value<'a>; N]> {
        if !matches!(&self.node.json, Json::Array(items) if items.len() == N) {
            self.mismatch(&format!("a list of {N} numbers"));
            return None;
        }
        self.list()?.try_into().ok()
    }

    /// A list of `N` numbers.
    pub(super) fn vector<const N: usize>(&self) -> Option<[f64; N]> {
        let numbers = self.list_of::<N>()?.map(|item| item.number(Limit::Any));
        numbers
            .iter()
            .all(Option::is_some)
            .then(|| numbers.map(Option::unwrap_or_default))
    }

    /// A file name, as a path from where the program runs.
    pub(super) fn file(&self) -> Option<PathBuf> {
        let name = self.string()?;
        if name.is_empty() {
            self.error("the file name is empty", "name a file, relative to the scene file");
            return None;
        }
        Some(self.context.resolve_path(name))
    }

    /// One of a few words; `later` are words that Mitsuba knows and that are not supported yet.
    pub(super) fn choice<T: Copy>(&self, words: &[(&'static str, T)], later: &[&str]) -> Option<T> {
        let text = self.string()?;
        if let Some((_, value)) = words.iter().find(|(word, _)| *word == text) {
            return Some(*value);
        }
        let allowed: Vec<_> = words.iter().map(|(word, _)| *word).collect();
        if later.contains(&text) {
            let list = allowed
                .iter()
                .map(|word| format!("`{word}`"))
                .collect::<Vec<_>>()
                .join(", ");
            self.error(
                format!("Mitsuba's `{text}` is not supported yet"),
                format!("supported: {list}"),
            );
        } else {
            self.error(format!("unknown value {text:?}"), suggest(text, &allowed));
        }
        None
    }

    /// An object without a type, called `name` in messages.
    pub(super) fn block(&self, name: &'static str) -> Option<Object<'a>> {
        let Json::Object(members) = &self.node.json else {
            self.mismatch("an object `{…}`");
            return None;
        };
        Some(Object::new(self.clone(), name, members))
    }

    /// One of a few kinds of thing: its bare name, or an object whose `type` is the name.
    pub(super) fn variant(&self, names: &[&'static str]) -> Option<Object<'a>> {
        let (value, members): (Value<'a>, &'a [Member]) = match &self.node.json {
            Json::String(_) => (self.clone(), &[]),
            Json::Object(members) => match self.node.member("type") {
                Some(node) => (self.child(node, "type"), members),
                None => {
                    self.error("missing `type`", suggest("", names));
                    return None;
                }
            },
            _ => {
                self.mismatch(&format!("a string or an object with a `type` ({})", suggest("", names)));
                return None;
            }
        };
        let text = value.string()?;
        let Some(name) = names.iter().copied().find(|name| *name == text) else {
            value.error(format!("unknown type `{text}`"), suggest(text, names));
            return None;
        };
        let mut object = Object::new(self.clone(), name, members);
        object.skip("type");
        Some(object)
    }

    /// The name of this object's type, if it has one, without complaint.
    pub(super) fn type_name(&self) -> Option<&'a str> {
        self.node.member("type").and_then(Node::as_str)
    }

    /// An object of a supported type of `class`, references resolved.
    pub(super) fn plugin(&self, class: Class) -> Option<Object<'a>> {
        let value = self.resolve()?;
        let Json::Object(members) = &value.node.json else {
            value.mismatch(&format!(
                "a {class} object ({})",
                suggest("", vocabulary::supported(class))
            ));
            return None;
        };
        let Some(node) = value.node.member("type") else {
            let names = suggest("", vocabulary::supported(class));
            value.error(
                "missing `type`",
                format!("every object needs one; for a {class}, {names}"),
            );
            return None;
        };
        let type_value = value.child(node, "type");
        let text = type_value.string()?;
        let Some(name) = vocabulary::supported(class).iter().copied().find(|name| *name == text) else {
            value.report_type(text, class);
            return None;
        };
        let mut object = Object::new(value.clone(), name, members);
        object.skip("type");
        object.skip("id");
        Some(object)
    }

    /// Notes why an object of type `name` cannot stand where a `class` is expected.
    fn report_type(&self, name: &str, class: Class) {
        let names = vocabulary::supported(class);
        let allowed = suggest("", names);
        match vocabulary::lookup(name) {
            Known::Supported(other) => {
                self.error(format!("`{name}` is a {other} where a {class} is expected"), allowed);
            }
            Known::Mitsuba(other) if other == class => {
                self.error(format!("Mitsuba's {class} `{name}` is not supported yet"), allowed);
            }
            Known::Mitsuba(other) => self.error(
                format!("Mitsuba's {other} `{name}` stands where a {class} is expected"),
                format!("{allowed} (and `{name}` is not supported yet)"),
            ),
            Known::Nobody => self.error(format!("unknown {class} type `{name}`"), suggest(name, names)),
        }
    }

    /// Notes why an object of type `name` cannot stand where any supported object could.
    pub(super) fn report_unknown_type(&self, name: &str) {
        match vocabulary::lookup(name) {
            Known::Mitsuba(class) => self.error(
                format!("Mitsuba's {class} `{name}` is not supported yet"),
                match vocabulary::supported(class) {
                    [] => format!("remove it; no {class} is needed"),
                    names => suggest("", names),
                },
            ),
            _ => self.error(
                format!("unknown type `{name}`"),
                suggest(name, &vocabulary::top_level()),
            ),
        }
    }
}

/// An object that is being read: it remembers what it was asked for, so that the rest can be reported.
#[derive(Debug)]
pub(super) struct Object<'a> {
    pub(super) value: Value<'a>,
    /// Its type, or the name of the block.
    pub(super) name: &'static str,
    members: &'a [Member],
    seen: Vec<bool>,
    allowed: Vec<&'static str>,
}

impl<'a> Object<'a> {
    fn new(value: Value<'a>, name: &'static str, members: &'a [Member]) -> Self {
        Self {
            value,
            name,
            members,
            seen: vec![false; members.len()],
            allowed: Vec::new(),
        }
    }

    fn index(&self, key: &str) -> Option<usize> {
        self.members.iter().position(|m| m.name == key)
    }

    /// Accepts a parameter that has been dealt with elsewhere.
    fn skip(&mut self, key: &str) {
        if let Some(i) = self.index(key) {
            self.seen[i] = true;
        }
    }

    /// Notes a mistake of the object as a whole.
    pub(super) fn error(&self, what: impl Display, advice: impl Display) {
        self.value.error(what, advice);
    }

    /// The parameter `key`, if given.
    pub(super) fn get(&mut self, key: &'static str) -> Option<Value<'a>> {
        if !self.allowed.contains(&key) {
            self.allowed.push(key);
        }
        let i = self.index(key)?;
        self.seen[i] = true;
        Some(self.value.child(&self.members[i].value, key))
    }

    /// The parameter `key`, which must be given.
    pub(super) fn require(&mut self, key: &'static str, expected: &str) -> Option<Value<'a>> {
        let value = self.get(key);
        if value.is_none() {
            self.error(format!("`{}` lacks `{key}`", self.name), format!("give {expected}"));
        }
        value
    }

    /// A number, or the default where it is absent or mistaken.
    pub(super) fn number(&mut self, key: &'static str, default: f32, limit: Limit) -> f32 {
        self.get(key)
            .and_then(|value| value.number(limit))
            .map_or(default, |x| x as f32)
    }

    /// A whole number, or the default where it is absent or mistaken.
    pub(super) fn integer(&mut self, key: &'static str, default: u32, low: u32, high: u32) -> u32 {
        let value = self.get(key).and_then(|value| value.integer(low.into(), high.into()));
        value.map_or(default, |n| n as u32)
    }

    /// `true` or `false`, or the default where it is absent or mistaken.
    pub(super) fn boolean(&mut self, key: &'static str, default: bool) -> bool {
        self.get(key).and_then(|value| value.boolean()).unwrap_or(default)
    }

    /// One of a few words, or the default where it is absent or mistaken.
    pub(super) fn choice<T: Copy>(&mut self, key: &'static str, words: &[(&'static str, T)], default: T) -> T {
        self.get(key)
            .and_then(|value| value.choice(words, &[]))
            .unwrap_or(default)
    }

    /// Accepts a parameter of Mitsuba's of which only one value is supported so far.
    pub(super) fn only(&mut self, key: &'static str, supported: impl Into<serde_json::Value>) {
        let supported = supported.into();
        if let Some(value) = self.get(key).filter(|value| !value.node.equals(&supported)) {
            let what = format!("`{key}` of `{}` is {}", self.name, value.describe());
            value.error(what, format!("only {supported} is supported so far"));
        }
    }

    /// The nested objects that are of `class` or may have been meant to be, unless asked for by name: index and value.
    fn candidates(&self, class: Class) -> Vec<(usize, Value<'a>, Known)> {
        let mut found = Vec::new();
        for (i, member) in self.members.iter().enumerate().filter(|(i, _)| !self.seen[*i]) {
            let value = self.value.child(&member.value, &member.name);
            if value.type_name().is_none() {
                continue;
            }
            let target = value.resolve();
            let known = target
                .and_then(|target| target.type_name().map(vocabulary::lookup))
                .unwrap_or(Known::Nobody);
            if matches!(known, Known::Supported(c) | Known::Mitsuba(c) if c == class) || known == Known::Nobody {
                found.push((i, value, known));
            }
        }
        found
    }

    /// Whether an object of `class`, right or wrong, stands in this one.
    pub(super) fn mentions(&self, class: Class) -> bool {
        !self.candidates(class).is_empty()
    }

    /// The one nested object of `class` under whatever name, references resolved.
    pub(super) fn nested(&mut self, class: Class) -> Option<Object<'a>> {
        self.allowed.push(class.usual_key());
        let mut candidates = self.candidates(class);
        candidates.retain(|(_, _, known)| *known != Known::Nobody);
        for (nth, (i, value, _)) in candidates.iter().enumerate() {
            self.seen[*i] = true;
            if nth > 0 {
                value.error(
                    format!("a second {class}"),
                    format!("`{}` can have only one", self.name),
                );
            }
        }
        candidates.first()?.1.plugin(class)
    }

    /// Notes every parameter that nobody asked for.
    pub(super) fn finish(self) {
        for (member, _) in self.members.iter().zip(&self.seen).filter(|(_, seen)| !**seen) {
            self.report_unasked(member);
        }
    }

    fn report_unasked(&self, member: &'a Member) {
        let value = self.value.child(&member.value, &member.name);
        let (key, owner, place) = (&member.name, self.name, &value.path);
        // A broken reference has been reported as such.
        let Some(target) = value.resolve() else { return };
        let message = match target.type_name().map(|name| (name, vocabulary::lookup(name))) {
            _ if vocabulary::is_mitsuba_parameter(owner, key) => {
                format!("Mitsuba's parameter `{key}` of `{owner}` at {place} is not supported yet: remove it")
            }
            Some((name, Known::Supported(class))) => {
                let advice = suggest(key, &self.allowed);
                format!("the {class} `{name}` at {place} has no place in `{owner}`: {advice}")
            }
            Some((name, Known::Mitsuba(_) | Known::Nobody)) => return value.report_unknown_type(name),
            None => {
                let advice = suggest(key, &self.allowed);
                format!("unknown parameter `{key}` of `{owner}` at {place}: {advice}")
            }
        };
        self.value.context.error(member.start, message);
    }
}
