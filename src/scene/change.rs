//! Values set on the command line, which replace those of the scene file.

use std::str::FromStr;

use super::diagnostics::suggest;
use super::json::{self, Fault, Json, Member, Node};

/// Changes are truncated to this many characters in messages.
const LONGEST_SHOWN: usize = 80;

/// A value and the path in the scene that it is assigned to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    path: String,
    value: String,
}

impl FromStr for Change {
    type Err = String;

    /// Parses `path=value`: names joined by dots, list items as `[i]`; the value is JSON, or a bare word taken as a
    /// string.
    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            Some((path, value)) if !path.trim().is_empty() => Ok(Self {
                path: path.trim().to_owned(),
                value: value.trim().to_owned(),
            }),
            _ => Err("expected a path, =, and a value, such as object.interior.scale=20".into()),
        }
    }
}

impl std::fmt::Display for Change {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}={}", self.path, self.value)
    }
}

impl Change {
    /// Number of source positions that its value occupies.
    pub(super) fn len(&self) -> usize {
        self.value.len() + 1
    }

    /// The text as typed, on one line, truncated.
    pub(super) fn shown(&self) -> String {
        let text = self.to_string().replace(char::is_control, " ");
        match text.char_indices().nth(LONGEST_SHOWN) {
            Some((end, _)) => format!("{}…", &text[..end]),
            None => text,
        }
    }

    /// Assigns the value in the tree; its source positions start at `first`.
    ///
    /// # Errors
    /// The path does not exist, or the value is malformed.
    pub(super) fn apply(&self, first: usize, root: &mut Node) -> Result<(), Vec<Fault>> {
        let fault = |message| Fault { at: first, message };
        let read = self.read();
        let mut value = read.map_err(|faults| faults.into_iter().map(|f| fault(f.message)).collect::<Vec<_>>())?;
        value.move_by(first);
        self.place(value, root).map_err(|message| vec![fault(message)])
    }

    /// Parses the value: JSON, or a bare word taken as a string.
    fn read(&self) -> Result<Node, Vec<Fault>> {
        let text = &self.value;
        let word = !text.starts_with(['{', '[', '"']) && text.parse::<f64>().is_err();
        json::read(text).or_else(|faults| match word {
            true => Ok(Node {
                start: 0,
                end: text.len(),
                json: Json::String(text.clone()),
            }),
            false => Err(faults),
        })
    }

    fn place(&self, value: Node, root: &mut Node) -> Result<(), String> {
        let (mut at, mut rest) = (root, self.path.as_str());
        loop {
            if at.member("type").and_then(Node::as_str) == Some("ref") {
                let target = at.member("id").and_then(Node::as_str).unwrap_or_default();
                return Err(format!(
                    "a reference to `{target}` stands there: set `{target}` instead"
                ));
            }
            if let Some(inner) = rest.strip_prefix('[') {
                (at, rest) = item(at, inner)?;
            } else {
                let Json::Object(members) = &at.json else {
                    return Err(format!("there is no object that `{rest}` could stand in"));
                };
                let Some(index) = longest(members, rest) else {
                    let is_root = rest.len() == self.path.len();
                    return add(at, rest, value, is_root);
                };
                rest = &rest[members[index].name.len()..];
                let Json::Object(members) = &mut at.json else {
                    unreachable!("it was one above")
                };
                at = &mut members[index].value;
            }
            rest = rest.strip_prefix('.').unwrap_or(rest);
            if rest.is_empty() {
                // What is null is as good as absent: it would be told as an object of no known kind.
                let typed = at.member("type").is_some();
                if typed && matches!(value.json, Json::Null) {
                    return Err(format!("`{}` is an object; null cannot replace it", self.path));
                }
                *at = value;
                return Ok(());
            }
        }
    }
}

/// The list item at the start of `inner`, which follows an opening bracket, and the rest of the path.
fn item<'a, 'b>(at: &'a mut Node, inner: &'b str) -> Result<(&'a mut Node, &'b str), String> {
    let split = inner
        .split_once(']')
        .and_then(|(i, rest)| Some((i.parse::<usize>().ok()?, rest)));
    let Some((index, rest)) = split else {
        return Err("expected a number in brackets, such as [0]".into());
    };
    match &mut at.json {
        Json::Array(items) => {
            let count = items.len();
            let item = items.get_mut(index);
            let item = item.ok_or_else(|| format!("there is no item {index}: the list has {count}, counted from 0"))?;
            Ok((item, rest))
        }
        _ => Err(format!("what stands before [{index}] is no list")),
    }
}

/// Adds a member, and the blocks on the way if its name is dotted. At the root a dotted name is refused: its first part is
/// probably a misspelt object, and the new block would become an object of the scene.
fn add(at: &mut Node, name: &str, value: Node, is_root: bool) -> Result<(), String> {
    let Json::Object(members) = &mut at.json else {
        unreachable!("the caller has checked that it is an object")
    };
    if name.contains('[') || (is_root && name.contains('.')) {
        let names: Vec<&str> = members.iter().map(|m| m.name.as_str()).collect();
        let first = name.split(['.', '[']).next().unwrap_or(name);
        return Err(format!("there is no `{first}`: {}", suggest(first, &names)));
    }
    let (outer, inner) = match name.split_once('.') {
        Some((outer, inner)) => (outer, Some(inner)),
        None => (name, None),
    };
    let member = |name: &str, value: Node| Member {
        name: name.to_owned(),
        start: value.start,
        value,
    };
    let innermost = inner.into_iter().flat_map(|names| names.rsplit('.'));
    let value = innermost.fold(value, |value, name| Node {
        start: value.start,
        end: value.end,
        json: Json::Object(vec![member(name, value)]),
    });
    members.push(member(outer, value));
    Ok(())
}

/// The member whose name is a prefix of the path; the longest one, as names may contain dots.
fn longest(members: &[Member], path: &str) -> Option<usize> {
    let begins = |name: &str| {
        let rest = path.strip_prefix(name)?;
        (rest.is_empty() || rest.starts_with(['.', '['])).then_some(name.len())
    };
    let found = members
        .iter()
        .enumerate()
        .filter_map(|(i, m)| Some((begins(&m.name)?, i)));
    found.max().map(|(_, i)| i)
}

impl Node {
    /// Shifts the source positions of this value and all inside it.
    fn move_by(&mut self, places: usize) {
        self.start += places;
        self.end += places;
        match &mut self.json {
            Json::Array(items) => items.iter_mut().for_each(|item| item.move_by(places)),
            Json::Object(members) => {
                for member in members {
                    member.start += places;
                    member.value.move_by(places);
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(text: &str, change: &str) -> Result<Node, String> {
        let mut root = json::read(text).expect("is JSON");
        let placed = change.parse::<Change>()?.apply(text.len() + 1, &mut root);
        placed.map_err(|faults| faults[0].message.clone())?;
        Ok(root)
    }

    #[test]
    fn values_are_replaced_and_added() {
        let text = r#"{"a": {"b": 1}, "p": {"a.b": {"r": 1}}, "l": [1, {"c": 2}]}"#;
        let number = |node: &Node| matches!(&node.json, Json::Number(n) if n.as_f64() == Some(7.0));
        let root = changed(text, "a.b=7").expect("there");
        assert!(number(root.member("a").and_then(|a| a.member("b")).expect("there")));
        let root = changed(text, "p.a.b.r = 7").expect("names may have dots");
        assert!(number(
            root.member("p")
                .and_then(|p| p.member("a.b")?.member("r"))
                .expect("there")
        ));
        let root = changed(text, "a.new=word").expect("can be added");
        assert_eq!(root.member("a").and_then(|a| a.member("new")?.as_str()), Some("word"));
        let root = changed(text, "a.out.most=7").expect("blocks on the way are made");
        let block = root.member("a").and_then(|a| a.member("out"));
        assert!(number(block.and_then(|block| block.member("most")).expect("there")));
        let root = changed(text, "l[1].c=7").expect("there");
        let Json::Array(items) = &root.member("l").expect("there").json else {
            panic!("a list")
        };
        assert!(number(items[1].member("c").expect("there")));
    }

    #[test]
    fn what_leads_nowhere_is_told() {
        let text = r#"{"a": {"b": 1}, "l": [1], "r": {"type": "ref", "id": "a"}}"#;
        for (change, words) in [
            ("x.b=1", "no `x`"),
            ("a.b.c=1", "no object"),
            ("l[3]=1", "the list has 1"),
            ("a[0]=1", "no list"),
            ("l[x]=1", "number in brackets"),
            ("r.b=1", "set `a` instead"),
            ("a", "a path, =, and a value"),
            ("a.b=[1", "malformed JSON"),
            ("a.b=1e999", "finite"),
        ] {
            let message = changed(text, change).expect_err(change);
            assert!(message.contains(words), "{change}: {message}");
        }
    }
}
