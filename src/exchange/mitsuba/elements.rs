//! Mitsuba's dictionary as elements of XML.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use serde_json::{Map, Value};

use crate::io::xml::Element;
use crate::io::{Result, relative};
use crate::scene;

/// The version of Mitsuba's format.
const VERSION: &str = "3.0.0";

/// Three numbers under these names are a position or a direction; under any other they are a colour.
const POINTS: &[&str] = &["position", "center", "origin", "target", "p0", "p1"];
const VECTORS: &[&str] = &["direction"];

/// Numbers of these names are integers, which Mitsuba distinguishes from floats and scene files do not.
const WHOLE: &[&str] = &[
    "width",
    "height",
    "crop_offset_x",
    "crop_offset_y",
    "crop_width",
    "crop_height",
    "lobes",
    "max_depth",
    "rr_depth",
    "sample_count",
    "shape_index",
];

/// Colours of these names are volumes, whose numbers may exceed one.
const VOLUMES: &[&str] = &["sigma_t", "albedo", "volume"];

/// The element of a whole scene.
///
/// # Errors
/// A file that it names is gone.
pub(super) fn scene(root: &Map<String, Value>, output: &Path) -> Result<Element> {
    let mut targets = HashSet::new();
    root.values().for_each(|value| find_targets(value, &mut targets));
    let mut writer = Writer {
        output,
        ids: HashMap::new(),
    };
    // Names at the top level are ids already.
    let mut taken: HashSet<String> = root.keys().cloned().collect();
    let mut nested: Vec<&String> = targets.iter().filter(|path| path.contains('.')).collect();
    nested.sort();
    for path in nested {
        let mut id = path.replace('.', "_");
        while !taken.insert(id.clone()) {
            id.push('_');
        }
        writer.ids.insert(path.clone(), id);
    }
    let children = root.iter().map(|(key, value)| writer.member(key, value, ""));
    Ok(Element {
        children: children.collect::<Result<_>>()?,
        ..element("scene", &[("version", VERSION)])
    })
}

/// Collects the paths of the objects that references refer to.
fn find_targets(value: &Value, targets: &mut HashSet<String>) {
    let Value::Object(members) = value else { return };
    if let (Some("ref"), Some(id)) = (kind(members), members.get("id").and_then(Value::as_str)) {
        targets.insert(id.to_owned());
    }
    members.values().for_each(|value| find_targets(value, targets));
}

struct Writer<'a> {
    output: &'a Path,
    /// Ids of nested objects that are referred to, by their paths.
    ids: HashMap<String, String>,
}

impl Writer<'_> {
    /// A member of the object at `parent`, which is empty for the scene.
    fn member(&self, key: &str, value: &Value, parent: &str) -> Result<Element> {
        Ok(match value {
            Value::Object(members) => return self.object(key, members, parent),
            Value::Bool(is) => valued("boolean", key, &is.to_string()),
            Value::Number(number) if WHOLE.contains(&key) => valued("integer", key, &number.to_string()),
            // Mitsuba accepts only an object here.
            Value::Number(number) if key == "volume" => Element {
                children: vec![valued("float", "value", &number.to_string())],
                ..element("volume", &[("type", "constvolume"), ("name", key)])
            },
            Value::Number(number) => valued("float", key, &number.to_string()),
            Value::String(name) if key == "filename" => valued("string", key, &relative(Path::new(name), self.output)?),
            Value::String(text) => valued("string", key, text),
            Value::Array(items) if matches!(key, "to_world" | "to_uv") => transform(key, items),
            Value::Array(items) if POINTS.contains(&key) => valued("point", key, &joined(items)),
            Value::Array(items) if VECTORS.contains(&key) => valued("vector", key, &joined(items)),
            Value::Array(items) if VOLUMES.contains(&key) => Element {
                children: vec![valued("rgb", "value", &joined(items))],
                ..element("volume", &[("type", "constvolume"), ("name", key)])
            },
            Value::Array(items) => valued("rgb", key, &joined(items)),
            Value::Null => valued("string", key, ""),
        })
    }

    fn object(&self, key: &str, members: &Map<String, Value>, parent: &str) -> Result<Element> {
        let kind = kind(members).unwrap_or_default();
        if kind == "ref" {
            let path = members.get("id").and_then(Value::as_str).unwrap_or_default();
            let id = self.ids.get(path).map_or(path, |id| id);
            return Ok(element("ref", &[("name", key), ("id", id)]));
        }
        if kind == "rgb" {
            let value = members.get("value").unwrap_or(&Value::Null);
            let text = value
                .as_array()
                .map_or_else(|| value.to_string(), |items| joined(items));
            return Ok(valued("rgb", key, &text));
        }
        let path = if parent.is_empty() {
            key.to_owned()
        } else {
            format!("{parent}.{key}")
        };
        let mut attributes = vec![("type", kind)];
        match (parent.is_empty(), self.ids.get(&path)) {
            (true, _) => attributes.push(("id", key)),
            (false, None) => attributes.push(("name", key)),
            (false, Some(id)) => attributes.extend([("name", key), ("id", &id[..])]),
        }
        let inner = members.iter().filter(|(key, _)| *key != "type");
        let children = inner.map(|(key, value)| self.member(key, value, &path));
        Ok(Element {
            children: children.collect::<Result<_>>()?,
            ..element(scene::tag(kind), &attributes)
        })
    }
}

fn kind(members: &Map<String, Value>) -> Option<&str> {
    members.get("type").and_then(Value::as_str)
}

fn element(tag: &str, attributes: &[(&str, &str)]) -> Element {
    let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    Element {
        tag: tag.to_owned(),
        attributes: attributes.iter().map(owned).collect(),
        children: Vec::new(),
        place: (0, 0),
    }
}

fn valued(tag: &str, name: &str, value: &str) -> Element {
    element(tag, &[("name", name), ("value", value)])
}

/// Numbers separated by blanks.
fn joined(items: &[Value]) -> String {
    items.iter().map(Value::to_string).collect::<Vec<_>>().join(" ")
}

/// A 4 × 4 matrix; to a 3 × 3 one of texture coordinates the third row and column of the identity are added.
fn transform(key: &str, rows: &[Value]) -> Element {
    let row = |row: &Value| row.as_array().map(|row| joined(row)).unwrap_or_default();
    let value = match rows {
        [a, b, _] => {
            let wide = |row: &Value| match row.as_array().map(Vec::as_slice) {
                Some([x, y, shift]) => format!("{x} {y} 0 {shift}"),
                _ => String::new(),
            };
            format!("{} {} 0 0 1 0 0 0 0 1", wide(a), wide(b))
        }
        rows => rows.iter().map(row).collect::<Vec<_>>().join(" "),
    };
    Element {
        children: vec![element("matrix", &[("value", &value)])],
        ..element("transform", &[("name", key)])
    }
}
