//! Resolution of `{"type": "ref", "id": …}`: targets are found by their `id` or by their path in the file.

use std::collections::{BTreeMap, HashMap};

use super::context::Context;
use super::diagnostics::suggest;
use super::json::{Json, Member, Node};

/// Every reference of a file and its target.
#[derive(Debug, Default)]
pub(super) struct References<'a> {
    /// By the reference's first byte; broken references are absent.
    targets: HashMap<usize, (&'a Node, String)>,
}

impl<'a> References<'a> {
    /// The target of the reference at `node`, and the target's path; None for a broken reference.
    pub(super) fn target(&self, node: &Node) -> Option<(&'a Node, &str)> {
        self.targets.get(&node.start).map(|(node, path)| (*node, path.as_str()))
    }

    /// Whether `node` is the target of some reference.
    pub(super) fn is_target(&self, node: &Node) -> bool {
        self.targets.values().any(|(target, _)| target.start == node.start)
    }

    /// The references inside `node`, itself included, by their first bytes.
    fn inside(&self, node: &Node) -> Vec<usize> {
        if self.targets.contains_key(&node.start) {
            return vec![node.start];
        }
        node.children().flat_map(|child| self.inside(child)).collect()
    }
}

/// The longest permitted name of an object.
const MAX_NAME: usize = 100;

/// Whether a character may stand in the name of an object.
pub(super) fn is_name_char(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '-'
}

/// Finds all references below the scene `root` and reports those that are malformed, have no target, or are circular.
/// The block `optimize` contains no scene objects and is skipped.
pub(super) fn resolve<'a>(root: &'a Node, context: &Context<'a>) -> References<'a> {
    let mut index = Index::default();
    if let Json::Object(members) = &root.json {
        for member in members.iter().filter(|m| m.name != "optimize") {
            index.walk(member, "", context);
        }
    }
    let ids: Vec<&str> = index.objects.keys().map(String::as_str).collect();
    let mut targets = HashMap::new();
    for (node, path) in &index.references {
        match node.member("id").map(|id| (id.as_str(), id.start)) {
            Some((Some(id), at)) => match index.objects.get(id) {
                Some((target, target_path)) => {
                    targets.insert(node.start, (*target, target_path.clone()));
                }
                None => context.error(at, format!("unknown id `{id}` at {path}.id: {}", suggest(id, &ids))),
            },
            Some((None, at)) => context.error(at, format!("the id at {path}.id is not a string: name an object")),
            None => context.error(
                node.start,
                format!("the reference at {path} lacks `id`: name an object"),
            ),
        }
    }
    let mut references = References { targets };
    for at in circular(&references) {
        references.targets.remove(&at);
        context.error(
            at,
            "this reference leads back to itself: an object cannot contain itself",
        );
    }
    references
}

#[derive(Debug, Default)]
struct Index<'a> {
    /// By id, explicit or implicit (its path): the object and its path.
    objects: BTreeMap<String, (&'a Node, String)>,
    references: Vec<(&'a Node, String)>,
}

impl<'a> Index<'a> {
    /// Registers the object `member` of an object at `parent`, and the objects below it.
    fn walk(&mut self, member: &'a Member, parent: &str, context: &Context<'a>) {
        let (node, key) = (&member.value, member.name.as_str());
        let Json::Object(members) = &node.json else {
            return;
        };
        let Some(name) = node.member("type").and_then(Node::as_str) else {
            return;
        };
        let path = if parent.is_empty() {
            key.to_string()
        } else {
            format!("{parent}.{key}")
        };
        if key.is_empty() || key.chars().count() > MAX_NAME || !key.chars().all(is_name_char) {
            let advice = "names are letters, digits, `_` and `-`, for they become parts of paths and of files' names";
            context.error(member.start, format!("an object cannot be called {key:?}: {advice}"));
        }
        self.insert(path.clone(), node, &path, member.start, context);
        if name == "ref" {
            for member in members.iter().filter(|m| m.name != "type" && m.name != "id") {
                let text = format!(
                    "unknown parameter `{}` of `ref` at {path}: a reference has only an `id`",
                    member.name
                );
                context.error(member.start, text);
            }
            self.references.push((node, path));
            return;
        }
        if let Some(id) = node.member("id") {
            match id.as_str() {
                Some(text) if text == path => {}
                Some(text) => self.insert(text.to_string(), node, &path, id.start, context),
                None => context.error(id.start, format!("the id of {path} is not a string: write one")),
            }
        }
        for member in members {
            self.walk(member, &path, context);
        }
    }

    fn insert(&mut self, id: String, node: &'a Node, path: &str, at: usize, context: &Context<'a>) {
        if let Some((_, other)) = self.objects.get(&id) {
            context.error(
                at,
                format!("the id `{id}` of {path} is also that of {other}: ids must differ"),
            );
            return;
        }
        self.objects.insert(id, (node, path.to_string()));
    }
}

/// The references that close a cycle, by their first bytes.
///
/// A depth-first search from objects to the targets of the references inside them; a reference to an object that is
/// being visited closes a cycle. The stack is explicit, so that long chains cannot overflow the call stack.
fn circular(references: &References<'_>) -> Vec<usize> {
    let mut starts: Vec<usize> = references.targets.keys().copied().collect();
    starts.sort_unstable();
    let mut finished: HashMap<usize, bool> = HashMap::new();
    let mut circles = Vec::new();
    for start in &starts {
        let root = references.targets[start].0;
        if finished.contains_key(&root.start) {
            continue;
        }
        finished.insert(root.start, false);
        let mut stack = vec![(root.start, references.inside(root).into_iter())];
        while let Some((object, pending)) = stack.last_mut() {
            let Some(next) = pending.next() else {
                finished.insert(*object, true);
                stack.pop();
                continue;
            };
            let target = references.targets[&next].0;
            match finished.get(&target.start) {
                Some(true) => {}
                Some(false) => circles.push(next),
                None => {
                    finished.insert(target.start, false);
                    stack.push((target.start, references.inside(target).into_iter()));
                }
            }
        }
    }
    circles
}
