//! Parses JSON with `//` and `/* */` comments into a tree whose values know their position in the text.

use jsonc_parser::ast;
use jsonc_parser::common::Ranged;
use jsonc_parser::{CollectOptions, CommentCollectionStrategy, ParseOptions};
use serde::de::IgnoredAny;

/// A value and its byte range in the text.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) json: Json,
}

/// A JSON value. Numbers are finite as f64.
#[derive(Debug)]
pub(super) enum Json {
    Null,
    Bool(bool),
    Number(serde_json::Number),
    String(String),
    Array(Vec<Node>),
    /// In the order of the file, names unique.
    Object(Vec<Member>),
}

/// A named value of an object.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) name: String,
    /// Where the name starts.
    pub(super) start: usize,
    pub(super) value: Node,
}

impl Node {
    /// The member called `name`, if this is an object that has it.
    pub(super) fn member(&self, name: &str) -> Option<&Node> {
        match &self.json {
            Json::Object(members) => members.iter().find(|m| m.name == name).map(|m| &m.value),
            _ => None,
        }
    }

    /// The children of a list or an object.
    pub(super) fn children(&self) -> impl Iterator<Item = &Node> {
        let (items, members): (&[Node], &[Member]) = match &self.json {
            Json::Array(items) => (items, &[]),
            Json::Object(members) => (&[], members),
            _ => (&[], &[]),
        };
        items.iter().chain(members.iter().map(|member| &member.value))
    }

    /// Whether this is the given string, number or truth value.
    pub(super) fn equals(&self, other: &serde_json::Value) -> bool {
        match &self.json {
            Json::Bool(value) => other.as_bool() == Some(*value),
            Json::Number(number) => other.is_number() && other.as_f64() == number.as_f64(),
            Json::String(text) => other.as_str() == Some(text),
            Json::Null | Json::Array(_) | Json::Object(_) => false,
        }
    }

    /// The string, if this is one.
    pub(super) fn as_str(&self) -> Option<&str> {
        match &self.json {
            Json::String(text) => Some(text),
            _ => None,
        }
    }
}

/// A mistake in the JSON text itself.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Fault {
    pub(super) at: usize,
    pub(super) message: String,
}

/// Largest nesting depth: readers recurse into the tree.
const MAX_DEPTH: usize = 64;

/// Parses `text`; comments are allowed, all else must be strict JSON.
pub(super) fn read(text: &str) -> Result<Node, Vec<Fault>> {
    let collect = CollectOptions {
        comments: CommentCollectionStrategy::Separate,
        tokens: false,
    };
    let strict = ParseOptions {
        allow_comments: true,
        allow_loose_object_property_names: false,
        allow_trailing_commas: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    };
    let parsed = jsonc_parser::parse_to_ast(text, &collect, &strict).map_err(|error| vec![explain(text, &error)])?;
    let comments = parsed.comments.unwrap_or_default();
    let spans = comments
        .values()
        .flat_map(|list| list.iter())
        .map(|comment| (comment.start(), comment.end()));
    check_strictly(text, spans)?;
    let Some(value) = parsed.value else {
        return Err(vec![Fault {
            at: 0,
            message: "the file is empty where a scene object `{…}` was expected".to_string(),
        }]);
    };
    let mut faults = Vec::new();
    let node = convert(value, 0, &mut faults);
    if faults.is_empty() { Ok(node) } else { Err(faults) }
}

/// Checks the text without its comments again by `serde_json`: the first parser accepts extensions of JSON.
fn check_strictly(text: &str, comments: impl Iterator<Item = (usize, usize)>) -> Result<(), Vec<Fault>> {
    let mut bytes = text.as_bytes().to_vec();
    for (start, end) in comments {
        for byte in &mut bytes[start..end] {
            if *byte != b'\n' {
                *byte = b' ';
            }
        }
    }
    match serde_json::from_slice::<IgnoredAny>(&bytes) {
        Ok(_) => Ok(()),
        Err(error) if error.is_eof() && bytes.iter().all(u8::is_ascii_whitespace) => Ok(()),
        Err(error) => {
            let line_start: usize = text
                .split_inclusive('\n')
                .take(error.line().saturating_sub(1))
                .map(str::len)
                .sum();
            let message = error.to_string();
            let message = message.split(" at line ").next().unwrap_or_default();
            Err(vec![Fault {
                at: line_start + error.column().saturating_sub(1),
                message: format!("malformed JSON: {message}"),
            }])
        }
    }
}

/// A syntax error as a sentence.
fn explain(text: &str, error: &jsonc_parser::errors::ParseError) -> Fault {
    let at = error.range().start;
    let rest = text.get(at..).unwrap_or_default().to_lowercase();
    let non_finite = ["nan", "inf", "-inf", "-nan", "+inf"]
        .iter()
        .any(|word| rest.starts_with(word));
    let message = if text.trim_start().starts_with('<') {
        "expected JSON, found XML: `prbopt import` converts a scene of Mitsuba's XML".to_string()
    } else if non_finite {
        "malformed JSON: NaN and infinity are not numbers here; every number must be finite".to_string()
    } else {
        format!("malformed JSON: {}", lower_first(&error.kind().to_string()))
    };
    Fault { at, message }
}

fn lower_first(text: &str) -> String {
    let mut chars = text.chars();
    chars
        .next()
        .map_or_else(String::new, |first| first.to_lowercase().chain(chars).collect())
}

/// Copies the tree; reports numbers that are too large and duplicate names.
fn convert(value: ast::Value<'_>, depth: usize, faults: &mut Vec<Fault>) -> Node {
    let (start, end) = (value.start(), value.end());
    if depth > MAX_DEPTH {
        faults.push(Fault {
            at: start,
            message: format!("values are nested more than {MAX_DEPTH} deep; a scene needs far less"),
        });
        let json = Json::Null;
        return Node { start, end, json };
    }
    let json = match value {
        ast::Value::NullKeyword(_) => Json::Null,
        ast::Value::BooleanLit(literal) => Json::Bool(literal.value),
        ast::Value::StringLit(literal) => Json::String(literal.value.into_owned()),
        ast::Value::NumberLit(literal) => number(literal.value, start, faults),
        ast::Value::Array(array) => Json::Array(
            array
                .elements
                .into_iter()
                .map(|v| convert(v, depth + 1, faults))
                .collect(),
        ),
        ast::Value::Object(object) => Json::Object(members(object, depth, faults)),
    };
    Node { start, end, json }
}

fn number(literal: &str, at: usize, faults: &mut Vec<Fault>) -> Json {
    match literal.parse::<serde_json::Number>() {
        Ok(number) if number.as_f64().is_some_and(f64::is_finite) => Json::Number(number),
        _ => {
            faults.push(Fault {
                at,
                message: format!("the number {literal} is too large; every number must be finite"),
            });
            Json::Null
        }
    }
}

fn members(object: ast::Object<'_>, depth: usize, faults: &mut Vec<Fault>) -> Vec<Member> {
    let mut names = std::collections::HashSet::new();
    let mut members = Vec::with_capacity(object.properties.len());
    for property in object.properties {
        let start = property.name.start();
        let name = property.name.into_string();
        let value = convert(property.value, depth + 1, faults);
        if names.insert(name.clone()) {
            members.push(Member { name, start, value });
        } else {
            faults.push(Fault {
                at: start,
                message: format!("the name `{name}` occurs twice in one object; remove one of the two"),
            });
        }
    }
    members
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(text: &str) -> Fault {
        read(text).expect_err("must be refused").remove(0)
    }

    #[test]
    fn comments_are_allowed_and_positions_are_bytes() {
        let root = read("// ä\n{ /* b */ \"a\": [1, true, null, \"x\"] }").expect("is valid");
        let list = root.member("a").expect("is there");
        assert_eq!((list.start, list.end), (21, 41));
        assert!(matches!(&list.json, Json::Array(items) if items.len() == 4));
    }

    #[test]
    fn nothing_else_is_loose() {
        for text in [
            "{\"a\":1,}",
            "{a:1}",
            "{'a':1}",
            "[1 2]",
            "[[1][2]]",
            "[0x1]",
            "[+1]",
            "[.5]",
            "[1.]",
            "[01]",
            "{} {}",
            "",
            "{\"a\" 1}",
            "[\"\u{1}\"]",
            "[",
            "\u{b}{}",
            "/*",
        ] {
            assert!(read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn numbers_are_finite() {
        for text in ["[NaN]", "[Infinity]", "[-Infinity]", "[1e999]", "[-1e999]"] {
            assert!(
                fault(text).message.contains("finite"),
                "{text}: {}",
                fault(text).message
            );
        }
    }

    #[test]
    fn nesting_is_bounded() {
        for depth in [200, 100_000] {
            assert!(read(&"[".repeat(depth)).is_err());
            assert!(read(&format!("{}{}", "[".repeat(depth), "]".repeat(depth))).is_err());
            assert!(read(&"{\"a\":".repeat(depth)).is_err());
        }
    }

    #[test]
    fn a_name_may_occur_once() {
        assert_eq!(fault("{\"a\": 1, \"a\": 2}").at, 9);
    }
}
