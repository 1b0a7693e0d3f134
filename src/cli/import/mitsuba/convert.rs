//! Converts the elements of Mitsuba's XML to a scene dictionary, and collects what cannot be converted.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::node::{Content, Names, Node, Origin, Reference, Target};
use super::parameters::Parameters;
use super::values::{self, Parsed, required};
use crate::io::relative;
use crate::io::xml::{self, Element};
use crate::scene::{Diagnostic, Place};

/// Deepest nesting of files that include one another.
const MAX_INCLUDES: usize = 15;

/// Largest number of elements in a scene and the files that it includes.
const MAX_ELEMENTS: usize = 1 << 20;

/// Most files that are included, where each counts as often as it is named, and their bytes. A chain of files that include
/// the next ten times would otherwise be read without end.
const MAX_INCLUDED: usize = 4096;
const MAX_INCLUDED_BYTES: u64 = 256 << 20;

/// Newest major version of XML scenes.
const NEWEST: u32 = 3;

/// A scene that is being converted.
#[derive(Debug)]
pub(super) struct Conversion<'a> {
    /// The scene file that will be written, to which file names are relative.
    output: &'a Path,
    files: Vec<PathBuf>,
    mistakes: Vec<Diagnostic>,
    /// Objects that lack a member which could not be converted.
    partial: HashSet<Origin>,
    parameters: Parameters,
    /// The files that are being read, each of which includes the next.
    around: Vec<PathBuf>,
    /// Folders of `<path>`, in which files are looked for, the last one first.
    folders: Vec<PathBuf>,
    /// Objects by their ids.
    ids: HashMap<String, Target>,
    elements: usize,
    /// Files included so far, and their bytes.
    included: usize,
    included_bytes: u64,
    /// Whether the scene is so large that the rest of it is not read.
    stopped: bool,
}

/// The file that an element stands in.
#[derive(Debug, Clone, Copy)]
struct Source {
    file: usize,
    /// Whether it is of a version before 2, whose names are in camelCase.
    old: bool,
}

/// The members of an object that is being built.
#[derive(Debug)]
struct Members {
    origin: Origin,
    list: Vec<(String, Node)>,
    /// The names of `list`.
    names: Names,
    /// Path of the object, with a dot behind it; empty for the scene.
    prefix: String,
}

impl<'a> Conversion<'a> {
    /// A conversion to the scene file `output`, with the parameters `defines`.
    pub(super) fn new(output: &'a Path, defines: &[(String, String)]) -> Self {
        Self {
            output,
            files: Vec::new(),
            mistakes: Vec::new(),
            partial: HashSet::new(),
            parameters: Parameters::given(defines),
            around: Vec::new(),
            folders: Vec::new(),
            ids: HashMap::new(),
            elements: 0,
            included: 0,
            included_bytes: 0,
            stopped: false,
        }
    }

    /// The dictionary of a file.
    pub(super) fn scene(&mut self, path: &Path) -> Node {
        let origin = Origin { file: 0, place: (1, 1) };
        let mut members = Members {
            origin,
            list: Vec::new(),
            names: Names::default(),
            prefix: String::new(),
        };
        self.around.push(path.to_owned());
        match self.open(path) {
            Some((root, source)) if root.tag == "scene" => self.members(&root, source, &mut members),
            Some((root, source)) => {
                let message = format!("the outermost element is <{}>; expected <scene>", root.tag);
                self.lack(source, &root, message, &members);
            }
            None => {
                self.partial.insert(origin);
            }
        }
        let mut scene = Node {
            origin,
            content: Content::Object(members.list),
        };
        if self.stopped {
            return scene;
        }
        let Self {
            ids, mistakes, files, ..
        } = self;
        scene.resolve(&|id| ids.get(id).cloned(), &mut |id, origin| {
            let message = format!("nothing has the id {id:?}; give it to the object that is meant");
            mistakes.push(diagnostic(files, origin, message));
        });
        for (name, other) in self.parameters.unused() {
            self.mistakes.push(Diagnostic {
                path: path.to_owned(),
                place: Place::File,
                message: match other {
                    Some(last) => {
                        format!("--define {name} is there more than once, at last with {last:?}; leave the others out")
                    }
                    None => format!("--define {name}: nothing in the scene asks for ${name}; leave it out"),
                },
            });
        }
        scene
    }

    /// All mistakes, by file and place.
    pub(super) fn into_mistakes(mut self) -> Vec<Diagnostic> {
        let files = &self.files;
        let file = |mistake: &Diagnostic| {
            files
                .iter()
                .position(|path| *path == mistake.path)
                .unwrap_or(files.len())
        };
        self.mistakes
            .sort_by(|a, b| (file(a), &a.place).cmp(&(file(b), &b.place)));
        self.mistakes
    }

    /// Whether the scene is so large that the rest of it was not read, by which other mistakes would follow.
    pub(super) fn is_stopped(&self) -> bool {
        self.stopped
    }

    /// Whether there has been no mistake so far.
    pub(super) fn is_sound(&self) -> bool {
        self.mistakes.is_empty()
    }

    /// Adds mistakes that the reader of scenes has found, each with its origin, if known, and whether it concerns an object as a
    /// whole. Those that only follow from earlier mistakes are left out: at the same place, or about an object as a whole that
    /// lacks a member.
    pub(super) fn adopt(&mut self, found: impl Iterator<Item = (Diagnostic, Option<(Origin, bool)>)>) {
        let own = self.mistakes.len();
        for (mut mistake, at) in found {
            let Some((origin, is_whole)) = at else {
                self.mistakes.push(mistake);
                continue;
            };
            mistake = diagnostic(&self.files, origin, mistake.message);
            let is_same = |known: &Diagnostic| (&known.path, &known.place) == (&mistake.path, &mistake.place);
            let follows = self.mistakes[..own].iter().any(is_same) || is_whole && self.partial.contains(&origin);
            if !follows {
                self.mistakes.push(mistake);
            }
        }
    }

    /// Reads a file and finds out its version.
    fn open(&mut self, path: &Path) -> Option<(Element, Source)> {
        let file = self.files.len();
        self.files.push(path.to_owned());
        match xml::read(path) {
            Ok(root) => {
                let mut source = Source { file, old: false };
                match major_version(&root) {
                    Ok(major) => source.old = major < 2,
                    Err(message) => self.mistake(source, &root, message),
                }
                Some((root, source))
            }
            Err(mistake) => {
                self.mistakes.push(Diagnostic {
                    path: path.to_owned(),
                    place: mistake
                        .place
                        .map_or(Place::File, |(line, column)| Place::Text(line, column)),
                    message: mistake.message,
                });
                None
            }
        }
    }

    fn mistake(&mut self, source: Source, element: &Element, message: String) {
        let origin = Origin {
            file: source.file,
            place: element.place,
        };
        let mistake = diagnostic(&self.files, origin, message);
        self.mistakes.push(mistake);
    }

    /// Adds a mistake by which `object` lacks a member.
    fn lack(&mut self, source: Source, element: &Element, message: String, object: &Members) {
        self.partial.insert(object.origin);
        self.mistake(source, element, message);
    }

    /// Converts the children of an element.
    fn members(&mut self, parent: &Element, source: Source, members: &mut Members) {
        for child in &parent.children {
            if self.stopped {
                return;
            }
            self.elements += 1;
            if self.elements > MAX_ELEMENTS {
                self.stopped = true;
                let message = format!("the scene has more than {MAX_ELEMENTS} elements; join shapes into meshes");
                self.lack(source, child, message, members);
                return;
            }
            let mut child = child.clone();
            let substituted = self.substitute(&mut child);
            self.stopped = self.parameters.is_spent();
            if let Err(message) = substituted.and_then(|()| self.member(&child, source, members)) {
                self.lack(source, &child, message, members);
            }
        }
    }

    /// Puts the values of parameters into an element's attributes.
    fn substitute(&mut self, element: &mut Element) -> Parsed<()> {
        element.attributes.iter_mut().try_for_each(|(_, value)| {
            *value = self.parameters.substitute(value)?;
            Ok(())
        })
    }

    /// Converts an element.
    fn member(&mut self, child: &Element, source: Source, members: &mut Members) -> Parsed<()> {
        match child.tag.as_str() {
            "default" => {
                attributes(child, &["name", "value"])?;
                let name = required(child, "name")?;
                if name.is_empty() {
                    return Err("the name of a <default> is empty; give the name that follows a $".into());
                }
                self.parameters.set_default(name, required(child, "value")?);
            }
            "path" => self.add_folder(child, source)?,
            "alias" => {
                attributes(child, &["id", "as"])?;
                let (id, alias) = (required(child, "id")?, required(child, "as")?);
                let target = self.ids.get(id).cloned();
                let target = target.ok_or_else(|| format!("nothing before has the id {id:?}"))?;
                self.register(alias, target)?;
            }
            "include" => self.include(child, source, members)?,
            "ref" => {
                attributes(child, &["name", "id"])?;
                let id = required(child, "id")?.to_owned();
                let key = child.attribute("name").map(|name| self.name(name, source));
                let named = key.is_some();
                let key = key.unwrap_or_else(|| members.names.free("ref"));
                self.put(child, source, members, key, Content::Reference(Reference { id, named }))?;
            }
            "bsdf" | "emitter" | "film" | "integrator" | "medium" | "phase" | "rfilter" | "sampler" | "sensor"
            | "shape" | "texture" | "volume" => self.object(child, source, members)?,
            "spectrum" if child.attribute("type").is_some() => self.object(child, source, members)?,
            _ => {
                let value = self.property(child, source)?;
                let key = self.name(required(child, "name")?, source);
                if let Some(value) = value {
                    self.put(child, source, members, key, Content::Value(value))?;
                }
            }
        }
        Ok(())
    }

    /// A named value; None for a transform without operations.
    fn property(&mut self, element: &Element, source: Source) -> Parsed<Option<Value>> {
        if let (true, Some(child)) = (element.tag != "transform", element.children.first()) {
            return Err(format!("<{}> cannot stand in a <{}>", child.tag, element.tag));
        }
        let allowed: &[&str] = match element.tag.as_str() {
            "transform" => &["name"],
            "point" | "vector" => &["name", "value", "x", "y", "z"],
            "spectrum" => &["name", "value", "filename"],
            _ => &["name", "value"],
        };
        let value = match element.tag.as_str() {
            "float" => values::number(values::parse_number(required(element, "value")?)?),
            "integer" => {
                let text = required(element, "value")?;
                json!(
                    text.trim()
                        .parse::<i64>()
                        .map_err(|_| format!("{text:?} is no whole number"))?
                )
            }
            "boolean" => match required(element, "value")?.trim().to_ascii_lowercase().as_str() {
                "true" => json!(true),
                "false" => json!(false),
                other => return Err(format!("{other:?} is neither true nor false")),
            },
            "string" if element.attribute("name") == Some("filename") => {
                json!(self.file_name(required(element, "value")?, source)?)
            }
            "string" => json!(required(element, "value")?),
            "point" | "vector" => values::vector(element)?,
            "rgb" => values::rgb(element)?,
            "spectrum" => match (element.attribute("value"), element.attribute("filename")) {
                (Some(value), None) => values::spectrum(value)?,
                (None, Some(file)) => json!({"type": "spectrum", "filename": self.file_name(file, source)?}),
                _ => return Err("a <spectrum> has either `value` or `filename`".into()),
            },
            "transform" => return self.transform(element),
            other => {
                return Err(format!(
                    "<{other}> is no element of a scene; expected an object such as <shape> or <bsdf>, or a value such as \
                     <float> or <rgb>"
                ));
            }
        };
        attributes(element, allowed)?;
        Ok(Some(value))
    }

    fn transform(&mut self, element: &Element) -> Parsed<Option<Value>> {
        attributes(element, &["name"])?;
        let mut parameters = Vec::new();
        for child in &element.children {
            let mut child = child.clone();
            self.substitute(&mut child)?;
            parameters.push(values::operation(&child)?);
        }
        Ok((!parameters.is_empty()).then_some(Value::Array(parameters)))
    }

    /// Adds an object with its members.
    fn object(&mut self, element: &Element, source: Source, members: &mut Members) -> Parsed<()> {
        attributes(element, &["type", "id", "name"])?;
        let kind = required(element, "type")?;
        let id = element.attribute("id");
        let wanted = match (element.attribute("name"), id) {
            (Some(name), _) => self.name(name, source),
            (None, Some(id)) if members.prefix.is_empty() => {
                // Of the whole scene these are no objects.
                let reserved = ["type", "id", "optimize"].contains(&id);
                let id = if reserved {
                    format!("{}_{id}", element.tag)
                } else {
                    plain(id, &element.tag)
                };
                members.names.free(&id)
            }
            _ => members.names.free(&element.tag),
        };
        let path = format!("{}{wanted}", members.prefix);
        if let Some(id) = id {
            let target = Target {
                path: path.clone(),
                tag: element.tag.clone(),
            };
            self.register(id, target)?;
        }
        let origin = Origin {
            file: source.file,
            place: element.place,
        };
        let mut inner = Members {
            origin,
            list: vec![(
                "type".into(),
                Node {
                    origin,
                    content: Content::Value(json!(kind)),
                },
            )],
            names: Names::of(["type"]),
            prefix: format!("{path}."),
        };
        self.members(element, source, &mut inner);
        if source.old {
            modernize(kind, &mut inner.list, origin);
        }
        self.put(element, source, members, wanted, Content::Object(inner.list))
    }

    fn put(
        &mut self,
        element: &Element,
        source: Source,
        members: &mut Members,
        key: String,
        content: Content,
    ) -> Parsed<()> {
        if !members.names.take(&key) {
            return Err(format!("`{key}` is given twice; remove one"));
        }
        let origin = Origin {
            file: source.file,
            place: element.place,
        };
        members.list.push((key, Node { origin, content }));
        Ok(())
    }

    fn register(&mut self, id: &str, target: Target) -> Parsed<()> {
        match self.ids.insert(id.to_owned(), target) {
            None => Ok(()),
            Some(before) => Err(format!(
                "the id {id:?} is that of `{}` too; choose another",
                before.path
            )),
        }
    }

    /// A property's name in today's spelling.
    fn name(&self, name: &str, source: Source) -> String {
        let name = plain(name, "value");
        if source.old { snake_case(&name) } else { name }
    }

    /// Puts the contents of another file in the element's place.
    fn include(&mut self, element: &Element, source: Source, members: &mut Members) -> Parsed<()> {
        attributes(element, &["filename", "name"])?;
        let path = self.find(required(element, "filename")?, source);
        if self.around.contains(&path) {
            return Err(format!("{} would include itself; remove this", path.display()));
        }
        if self.around.len() == MAX_INCLUDES {
            return Err(format!(
                "files include one another more than {MAX_INCLUDES} deep; join some"
            ));
        }
        self.included += 1;
        self.included_bytes += std::fs::metadata(&path).map_or(0, |found| found.len());
        if self.included > MAX_INCLUDED || self.included_bytes > MAX_INCLUDED_BYTES {
            self.stopped = true;
            return Err(format!(
                "with {}, the scene includes more than {MAX_INCLUDED} files or {} MiB, counted each time they are named; \
                 include fewer",
                path.display(),
                MAX_INCLUDED_BYTES >> 20
            ));
        }
        self.around.push(path);
        let included = self.included(element, members);
        self.around.pop();
        included
    }

    /// Converts the contents of the innermost file in `around`.
    fn included(&mut self, element: &Element, members: &mut Members) -> Parsed<()> {
        let path = self.around.last().cloned().unwrap_or_default();
        let Some((mut root, inner)) = self.open(&path) else {
            self.partial.insert(members.origin);
            return Ok(());
        };
        if root.tag == "scene" {
            self.members(&root, inner, members);
            return Ok(());
        }
        root.attributes.retain(|(name, _)| name != "version");
        if let Some(name) = element.attribute("name") {
            root.attributes.retain(|(key, _)| key != "name");
            root.attributes.push(("name".into(), name.into()));
        }
        let around = Element {
            children: vec![root],
            ..element.clone()
        };
        self.members(&around, inner, members);
        Ok(())
    }

    fn add_folder(&mut self, element: &Element, source: Source) -> Parsed<()> {
        attributes(element, &["value"])?;
        let folder = self.find(required(element, "value")?, source);
        if !folder.is_dir() {
            return Err(format!("there is no folder {}", folder.display()));
        }
        self.folders.insert(0, folder);
        Ok(())
    }

    /// A file or folder: in one of the folders of `<path>`, the last of these first, beside the scene, or beside one of the files
    /// that it includes up to the one that names it; if it is nowhere, beside the latter.
    fn find(&self, name: &str, source: Source) -> PathBuf {
        let beside = |file: &PathBuf| file.with_file_name(name);
        let in_folders = self.folders.iter().map(|folder| folder.join(name));
        let around = self.around.iter().map(beside);
        let found = in_folders.chain(around).find(|path| path.exists());
        found.unwrap_or_else(|| beside(&self.files[source.file]))
    }

    /// The name of a file as the dictionary writes it.
    fn file_name(&self, name: &str, source: Source) -> Parsed<String> {
        let path = self.find(name, source);
        if !path.exists() {
            return Err(format!("there is no file {}", path.display()));
        }
        relative(&path, self.output).map_err(|e| e.to_string())
    }
}

/// The first number of the version of a file with this root.
fn major_version(root: &Element) -> Parsed<u32> {
    let text = root.attribute("version");
    let text = text.ok_or("lacks its version; write version=\"3.0.0\"")?;
    let major = text.split('.').next().unwrap_or(text).parse().ok();
    major
        .filter(|major| *major <= NEWEST)
        .ok_or_else(|| format!("has the version {text:?}, expected one up to {NEWEST} such as 3.0.0"))
}

fn diagnostic(files: &[PathBuf], origin: Origin, message: String) -> Diagnostic {
    Diagnostic {
        path: files[origin.file].clone(),
        place: Place::Text(origin.place.0, origin.place.1),
        message,
    }
}

/// Refuses attributes that are not `allowed`.
fn attributes(element: &Element, allowed: &[&str]) -> Parsed<()> {
    let unknown = element
        .attributes
        .iter()
        .find(|(name, _)| !allowed.contains(&name.as_str()));
    match unknown {
        None => Ok(()),
        Some((name, _)) => Err(format!(
            "<{}> has no attribute `{name}` (allowed: {})",
            element.tag,
            allowed
                .iter()
                .map(|name| format!("`{name}`"))
                .collect::<Vec<_>>()
                .join(", ")
        )),
    }
}

/// A name of letters, digits, `_` and `-`, such as the dictionary has; `otherwise` if nothing is left of it.
fn plain(name: &str, otherwise: &str) -> String {
    let keep = |c: char| {
        if c.is_ascii_alphanumeric() || c == '_' || c == '-' {
            c
        } else {
            '_'
        }
    };
    let plain: String = name.chars().map(keep).collect();
    if plain.is_empty() { otherwise.into() } else { plain }
}

/// `toWorld` as `to_world`.
fn snake_case(name: &str) -> String {
    let mut out = String::with_capacity(name.len() + 4);
    let mut before = ' ';
    for c in name.chars() {
        if c.is_uppercase() && before.is_lowercase() {
            out.push('_');
        }
        // Consecutive capitals after a lower-case letter are one word.
        let in_word = c.is_uppercase() && (before.is_lowercase() || (before.is_uppercase() && out.contains('_')));
        out.extend(if in_word { c.to_lowercase().next() } else { Some(c) });
        before = c;
    }
    out
}

/// Converts members that versions before 2 wrote differently: the reflectance of `diffuse`, and offsets and scales of
/// texture coordinates.
fn modernize(kind: &str, members: &mut Vec<(String, Node)>, origin: Origin) {
    if kind == "diffuse" {
        for (key, _) in members.iter_mut().filter(|(key, _)| key == "diffuse_reflectance") {
            *key = "reflectance".into();
        }
    }
    let mut take = |name: &str| {
        let at = members.iter().position(|(key, _)| key == name)?;
        match members.remove(at).1.content {
            Content::Value(value) => Some(value),
            Content::Object(_) | Content::Reference(_) => None,
        }
    };
    let [offset_u, offset_v] = ["uoffset", "voffset"].map(&mut take);
    let [scale_u, scale_v] = ["uscale", "vscale"].map(&mut take);
    if [&offset_u, &offset_v, &scale_u, &scale_v]
        .iter()
        .all(|found| found.is_none())
    {
        return;
    }
    let pair =
        |u: Option<Value>, v: Option<Value>, otherwise: i64| [u, v].map(|value| value.unwrap_or(json!(otherwise)));
    let operations = json!([
        {"translate": pair(offset_u, offset_v, 0)},
        {"scale": pair(scale_u, scale_v, 1)},
    ]);
    let node = Node {
        origin,
        content: Content::Value(operations),
    };
    members.push(("to_uv".into(), node));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_version_1_are_spelled_as_today() {
        for (old, new) in [
            ("toWorld", "to_world"),
            ("intIOR", "int_ior"),
            ("reflectance", "reflectance"),
            ("sigmaT", "sigma_t"),
            ("fovAxis", "fov_axis"),
        ] {
            assert_eq!(snake_case(old), new);
        }
        assert_eq!(plain("mat-Material.001", "bsdf"), "mat-Material_001");
        assert_eq!(plain("", "bsdf"), "bsdf");
    }
}
