//! The scene dictionary as it is built from XML: every value has the origin of its element.

use std::collections::HashSet;

use serde_json::{Map, Value};

use crate::cli::import::numbers::Numbers;

/// Where a value was written: a file, and line and column in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Origin {
    pub file: usize,
    pub place: (usize, usize),
}

/// A value of the dictionary.
#[derive(Debug, Clone)]
pub(super) struct Node {
    pub origin: Origin,
    pub content: Content,
}

#[derive(Debug, Clone)]
pub(super) enum Content {
    Value(Value),
    Object(Vec<(String, Node)>),
    Reference(Reference),
}

/// A reference to an object that is defined elsewhere.
#[derive(Debug, Clone)]
pub(super) struct Reference {
    /// Its id; once resolved, its path.
    pub id: String,
    /// Whether the reference has a `name`, which is then its key.
    pub named: bool,
}

/// The object that an id refers to.
#[derive(Debug, Clone)]
pub(super) struct Target {
    pub path: String,
    /// Its tag, which becomes the key of unnamed references to it.
    pub tag: String,
}

/// The names of an object's members.
#[derive(Debug, Default)]
pub(super) struct Names {
    taken: HashSet<String>,
    numbers: Numbers,
}

impl Names {
    pub(super) fn of<'n>(names: impl IntoIterator<Item = &'n str>) -> Self {
        Self {
            taken: names.into_iter().map(str::to_owned).collect(),
            numbers: Numbers::default(),
        }
    }

    /// Takes a name; false if it was taken.
    pub(super) fn take(&mut self, name: &str) -> bool {
        self.taken.insert(name.to_owned())
    }

    /// `wanted`, or if a member is called that `wanted_2`, `wanted_3` and so on.
    pub(super) fn free(&mut self, wanted: &str) -> String {
        self.numbers.free(wanted, |name| self.taken.contains(name))
    }
}

impl Node {
    /// The dictionary; references must have been resolved.
    pub(super) fn value(&self) -> Value {
        match &self.content {
            Content::Value(value) => value.clone(),
            Content::Object(members) => {
                let members = members.iter().map(|(key, node)| (key.clone(), node.value()));
                Value::Object(members.collect::<Map<_, _>>())
            }
            Content::Reference(Reference { id, .. }) => serde_json::json!({"type": "ref", "id": id}),
        }
    }

    /// The text of the dictionary with one member a line, and the origin of each line.
    pub(super) fn lines(&self) -> (String, Vec<Origin>) {
        let (mut text, mut origins) = (String::new(), vec![self.origin]);
        self.write(&mut text, &mut origins);
        (text, origins)
    }

    fn write(&self, text: &mut String, origins: &mut Vec<Origin>) {
        let Content::Object(members) = &self.content else {
            text.push_str(&self.value().to_string());
            return;
        };
        text.push('{');
        for (i, (key, node)) in members.iter().enumerate() {
            text.push_str(if i > 0 { ",\n" } else { "\n" });
            origins.push(node.origin);
            text.push_str(&format!("{}: ", Value::from(key.as_str())));
            node.write(text, origins);
        }
        text.push('\n');
        origins.push(self.origin);
        text.push('}');
    }

    /// Replaces the ids in references by paths; calls `missing` for each unknown id.
    pub(super) fn resolve(&mut self, find: &impl Fn(&str) -> Option<Target>, missing: &mut impl FnMut(&str, Origin)) {
        let Content::Object(members) = &mut self.content else {
            return;
        };
        let mut names = Names::of(members.iter().map(|(key, _)| key.as_str()));
        for at in 0..members.len() {
            let origin = members[at].1.origin;
            let Content::Reference(reference) = &mut members[at].1.content else {
                members[at].1.resolve(find, missing);
                continue;
            };
            let Some(target) = find(&reference.id) else {
                missing(&reference.id, origin);
                continue;
            };
            reference.id = target.path;
            if !reference.named {
                members[at].0 = names.free(&target.tag);
                names.take(&members[at].0);
            }
        }
    }
}
