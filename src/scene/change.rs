//! Values that the command line puts in place of the file's.

use std::str::FromStr;

use super::diagnostics::suggest;
use super::json::{self, Json, Member, Node};

/// A value and the place in the scene that it is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    path: String,
    value: String,
}

impl FromStr for Change {
    type Err = String;

    /// `path=value`: names joined by dots, list items as `[i]`; the value is JSON, or a word that stands for itself.
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
    /// Puts the value into the tree. A mistake in it is then told at the place of what it replaces, or of the object
    /// that it is added to.
    ///
    /// # Errors
    /// A sentence, if the path leads nowhere.
    pub(super) fn apply(&self, root: &mut Node) -> Result<(), String> {
        let mut value = json::read(&self.value).unwrap_or(Node {
            start: 0,
            end: 0,
            json: Json::String(self.value.clone()),
        });
        let (mut at, mut rest) = (root, self.path.as_str());
        loop {
            if at.member("type").and_then(Node::as_str) == Some("ref") {
                let target = at.member("id").and_then(Node::as_str).unwrap_or_default();
                return Err(format!(
                    "--set {self}: a reference to `{target}` stands there; set `{target}` instead"
                ));
            }
            if let Some(inner) = rest.strip_prefix('[') {
                (at, rest) = self.item(at, inner)?;
            } else {
                let Json::Object(members) = &at.json else {
                    return Err(format!("--set {self}: there is no object that `{rest}` could stand in"));
                };
                let Some(index) = longest(members, rest) else {
                    return self.add(at, rest, value);
                };
                rest = &rest[members[index].name.len()..];
                let Json::Object(members) = &mut at.json else {
                    unreachable!("it was one above")
                };
                at = &mut members[index].value;
            }
            rest = rest.strip_prefix('.').unwrap_or(rest);
            if rest.is_empty() {
                value.move_to(at.start);
                *at = value;
                return Ok(());
            }
        }
    }

    /// The list item that `inner`, behind an opening bracket, begins with, and what follows.
    fn item<'a, 'b>(&self, at: &'a mut Node, inner: &'b str) -> Result<(&'a mut Node, &'b str), String> {
        let split = inner
            .split_once(']')
            .and_then(|(i, rest)| Some((i.parse::<usize>().ok()?, rest)));
        let Some((index, rest)) = split else {
            return Err(format!("--set {self}: expected a number in brackets, such as [0]"));
        };
        match &mut at.json {
            Json::Array(items) => {
                let count = items.len();
                let item = items.get_mut(index);
                let item = item.ok_or_else(|| format!("--set {self}: the list has {count} items, counted from 0"))?;
                Ok((item, rest))
            }
            _ => Err(format!("--set {self}: what stands before [{index}] is no list")),
        }
    }

    fn add(&self, at: &mut Node, name: &str, mut value: Node) -> Result<(), String> {
        let start = at.start;
        let Json::Object(members) = &mut at.json else {
            unreachable!("the caller has checked that it is an object")
        };
        if name.contains(['.', '[']) {
            let names: Vec<&str> = members.iter().map(|m| m.name.as_str()).collect();
            let first = name.split(['.', '[']).next().unwrap_or(name);
            return Err(format!(
                "--set {self}: there is no `{first}`: {}",
                suggest(first, &names)
            ));
        }
        value.move_to(start);
        members.push(Member {
            name: name.to_owned(),
            start,
            value,
        });
        Ok(())
    }
}

/// The member whose name the path begins with; the longest, as names may have dots.
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
    /// Tells this and all in it to stand at one place of the file.
    fn move_to(&mut self, place: usize) {
        (self.start, self.end) = (place, place);
        match &mut self.json {
            Json::Array(items) => items.iter_mut().for_each(|item| item.move_to(place)),
            Json::Object(members) => {
                for member in members {
                    member.start = place;
                    member.value.move_to(place);
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
        change.parse::<Change>()?.apply(&mut root)?;
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
            ("l[3]=1", "1 items"),
            ("a[0]=1", "no list"),
            ("l[x]=1", "number in brackets"),
            ("r.b=1", "set `a` instead"),
            ("a", "a path, =, and a value"),
        ] {
            let message = changed(text, change).expect_err(change);
            assert!(message.contains(words), "{change}: {message}");
        }
    }
}
