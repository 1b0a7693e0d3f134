//! A cursor over the JSON tree whose values know their path in the file.
//!
//! A mistake never stops the reading: it is recorded in the [`Context`], the reader returns `None` or a default, and
//! all mistakes are reported together.

use std::fmt::Display;
use std::path::PathBuf;

use super::context::Context;
use super::definitions;
use super::diagnostics::suggest;
use super::json::{Json, Member, Node};
use super::object::Object;
use super::quantity::{MAX_LIGHT, too_bright};
use super::vocabulary::{self, Class, Known};

/// The permitted range of a number.
#[derive(Debug, Clone, Copy)]
pub(super) enum Limit {
    Any,
    /// x > 0
    Positive,
    /// x ≥ 0
    NonNegative,
    /// 0 ≤ x ≤ [`MAX_LIGHT`]
    Light,
    /// a < x < b
    Between(f64, f64),
    /// a ≤ x ≤ b
    Within(f64, f64),
}

impl Limit {
    /// The violated condition as text; None if `x` is permitted.
    pub(super) fn violated_by(self, x: f64) -> Option<String> {
        let (good, text) = match self {
            Limit::Any => (true, String::new()),
            Limit::Positive => (x > 0.0, "it must be positive".to_string()),
            Limit::NonNegative => (x >= 0.0, "it must not be negative".to_string()),
            Limit::Light if x > f64::from(MAX_LIGHT) => (false, too_bright()),
            Limit::Light => (x >= 0.0, "it must not be negative".to_string()),
            // Rounding to f32 must not reach an open end either.
            Limit::Between(a, b) => (
                a < x.min(f64::from(x as f32)) && x.max(f64::from(x as f32)) < b,
                format!("it must lie between {a} and {b}, both excluded"),
            ),
            Limit::Within(a, b) => (a <= x && x <= b, format!("it must lie between {a} and {b}")),
        };
        (!good).then_some(text)
    }
}

/// A value and its position.
#[derive(Debug, Clone)]
pub(super) struct Value<'a> {
    pub(super) context: &'a Context<'a>,
    pub(super) node: &'a Node,
    /// Such as `sensor.to_world[0].rotate.axis`; empty for the scene itself.
    pub(super) path: String,
}

impl<'a> Value<'a> {
    /// Records a mistake at this value: the finding, then the advice.
    pub(super) fn error(&self, what: impl Display, advice: impl Display) {
        let place = if self.path.is_empty() {
            String::new()
        } else {
            format!(" at {}", self.path)
        };
        let changed = self.context.changes_inside(self.node);
        self.context
            .error(self.node.start, format!("{what}{place}: {advice}{changed}"));
    }

    /// Records a mistake of this object caused by its member `key`: at the member, if it comes from the command line.
    pub(super) fn error_by(&self, key: &str, what: impl Display, advice: impl Display) {
        let given = self.node.member(key).filter(|node| self.context.is_change(node));
        let place = Value {
            node: given.unwrap_or(self.node),
            ..self.clone()
        };
        place.error(what, advice);
    }

    /// Records that this value has the wrong type.
    fn mismatch(&self, expected: &str) {
        self.error(format!("found {}", self.describe()), format!("expected {expected}"));
    }

    /// The value in a few words.
    pub(super) fn describe(&self) -> String {
        match &self.node.json {
            Json::Null => "null".to_string(),
            Json::Bool(value) => value.to_string(),
            Json::Number(number) => format!("the number {number}"),
            Json::String(text) if text.chars().count() <= 40 => format!("the string {text:?}"),
            Json::String(_) => "a long string".to_string(),
            Json::Array(items) if items.is_empty() => "an empty list".to_string(),
            Json::Array(items) => format!("a list of {}", items.len()),
            Json::Object(_) => match self.node.member("type").and_then(Node::as_str) {
                Some(name) => format!("an object of type `{name}`"),
                None => "an object".to_string(),
            },
        }
    }

    /// The target of a `{"type": "ref"}`, or the value itself if it is no reference; `None` for a broken reference,
    /// which was reported.
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

    /// The child `node` of this value; `step` is its name, or its index in brackets.
    pub(super) fn child(&self, node: &'a Node, step: &str) -> Value<'a> {
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
        let stored = x as f32;
        if !stored.is_finite() || (stored == 0.0 && x != 0.0) {
            self.error(
                format!("the number {number} is out of range"),
                "magnitudes from 1.4e-45 to 3.4e38 can be stored",
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

    /// A file name, as a path relative to the working directory.
    pub(super) fn file(&self) -> Option<PathBuf> {
        let name = self.string()?;
        if name.is_empty() {
            self.error("the file name is empty", "name a file, relative to the scene file");
            return None;
        }
        Some(self.context.resolve_path(name))
    }

    /// One of a few words; `later` are words of Mitsuba that are not supported yet.
    pub(super) fn choice<T: Copy>(&self, words: &[(&'static str, T)], later: &[&str]) -> Option<T> {
        let text = self.string()?;
        if let Some((_, value)) = words.iter().find(|(word, _)| word.eq_ignore_ascii_case(text)) {
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

    /// An object without a type, by the key of its definition.
    pub(super) fn block(&self, key: &str) -> Option<Object<'a>> {
        let Json::Object(members) = &self.node.json else {
            self.mismatch("an object `{…}`");
            return None;
        };
        Some(Object::new(self.clone(), definitions::block(key), members))
    }

    /// A variant of a group: its bare name, or an object whose `type` is the name.
    pub(super) fn variant(&self, group: &str) -> Option<Object<'a>> {
        let kinds = definitions::variants(group);
        let names: Vec<&'static str> = kinds.iter().map(|kind| kind.name).collect();
        let (value, members): (Value<'a>, &'a [Member]) = match &self.node.json {
            Json::String(_) => (self.clone(), &[]),
            Json::Object(members) => match self.node.member("type") {
                Some(node) => (self.child(node, "type"), members),
                None => {
                    self.error("missing `type`", suggest("", &names));
                    return None;
                }
            },
            _ => {
                self.mismatch(&format!(
                    "a string or an object with a `type` ({})",
                    suggest("", &names)
                ));
                return None;
            }
        };
        let text = value.string()?;
        let Some(kind) = kinds.iter().find(|kind| kind.name == text) else {
            value.error(format!("unknown type `{text}`"), suggest(text, &names));
            return None;
        };
        let mut object = Object::new(self.clone(), kind, members);
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
        let mut object = Object::new(value.clone(), definitions::plugin(class, name), members);
        object.skip("type");
        object.skip("id");
        Some(object)
    }

    /// Reports why an object of type `name` is not valid where a `class` is expected.
    fn report_type(&self, name: &str, class: Class) {
        let names = vocabulary::supported(class);
        let allowed = suggest("", names);
        match vocabulary::lookup(name) {
            Known::Supported(other) => {
                self.error_by(
                    "type",
                    format!("`{name}` is a {other} where a {class} is expected"),
                    allowed,
                );
            }
            Known::Mitsuba(other) if other == class => {
                self.error_by(
                    "type",
                    format!("Mitsuba's {class} `{name}` is not supported yet"),
                    allowed,
                );
            }
            Known::Mitsuba(other) => self.error_by(
                "type",
                format!("Mitsuba's {other} `{name}` stands where a {class} is expected"),
                format!("{allowed} (and `{name}` is not supported yet)"),
            ),
            Known::Nobody => self.error_by("type", format!("unknown {class} type `{name}`"), suggest(name, names)),
        }
    }

    /// Reports a missing `type`.
    pub(super) fn report_untyped(&self) {
        if self.is_object() {
            self.error("missing `type`", "every object needs one");
        } else {
            self.mismatch("an object with a `type`");
        }
    }

    /// The types that may be meant by an unknown `name`, or by none, which is empty.
    pub(super) fn suggest_types(&self, name: &str) -> String {
        let key = self.path.rsplit('.').next().unwrap_or_default();
        match vocabulary::meant(name, key) {
            Some(names) => suggest(name, names),
            None => "`prbopt schema` lists all types".to_owned(),
        }
    }

    /// Reports why an object of type `name` is not valid where any supported object is.
    pub(super) fn report_unknown_type(&self, name: &str) {
        match vocabulary::lookup(name) {
            Known::Mitsuba(class) => self.error_by(
                "type",
                format!("Mitsuba's {class} `{name}` is not supported yet"),
                match (vocabulary::instead(name), vocabulary::supported(class)) {
                    (Some(advice), _) => advice.to_string(),
                    (None, []) => format!("remove it; no {class} is needed"),
                    (None, names) => suggest("", names),
                },
            ),
            _ => self.error_by("type", format!("unknown type `{name}`"), self.suggest_types(name)),
        }
    }
}
