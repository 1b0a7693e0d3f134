//! The scene as a whole: the objects at the top level of the file.

use std::collections::HashSet;
use std::path::Path;

use super::context::Context;
use super::diagnostics::{Diagnostics, suggest};
use super::json::{self, Node};
use super::reader::Value;
use super::vocabulary::{self, Class, Known};
use super::{Backdrop, Background, Integrator, Scene, Sensor, Source, World};
use super::{dataset, emitter, optimize, reference, sensor, shape, write};

/// The largest scene file, in bytes.
const MAX_BYTES: u64 = 1 << 28;

/// Reads and checks the scene file at `path` and the headers of all files that it names.
///
/// # Errors
/// Every mistake that was found, each with its place and the likely intention.
pub fn load(path: &Path) -> Result<Scene, Diagnostics> {
    parse(&read_text(path)?, path)
}

/// Like [`load`], for a text that is already here; `path` is what relative file names are relative to.
///
/// # Errors
/// As [`load`].
pub fn parse(text: &str, path: &Path) -> Result<Scene, Diagnostics> {
    parse_as(text, path, Role::Main)
}

/// Like [`load`], for the target of another scene, whose own block `optimize` plays no part.
///
/// # Errors
/// As [`load`].
pub fn load_target(path: &Path) -> Result<Scene, Diagnostics> {
    parse_as(&read_text(path)?, path, Role::Target)
}

/// What a scene is read for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Main,
    Target,
}

fn read_text(path: &Path) -> Result<String, Diagnostics> {
    let refuse = |message: String| Diagnostics::whole_file(path, message);
    let size = std::fs::metadata(path)
        .map_err(|error| refuse(format!("the scene cannot be read: {error}")))?
        .len();
    if size > MAX_BYTES {
        return Err(refuse(format!(
            "the file has {size} bytes, a scene file at most {MAX_BYTES}"
        )));
    }
    let bytes = std::fs::read(path).map_err(|error| refuse(format!("the scene cannot be read: {error}")))?;
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        refuse(format!(
            "the file is not UTF-8 text from byte {at} on: a scene file is JSON"
        ))
    })
}

fn parse_as(text: &str, path: &Path, role: Role) -> Result<Scene, Diagnostics> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let parsed = json::read(text);
    let mut context = Context::new(path, text);
    let scene = match &parsed {
        Ok(root) => {
            context.references = reference::resolve(root, &context);
            Some(read_scene(&context, root, path, role))
        }
        Err(faults) => {
            for fault in faults {
                context.error(fault.at, &fault.message);
            }
            None
        }
    };
    let (diagnostics, warnings) = context.into_parts();
    match (Diagnostics::collect(diagnostics), scene) {
        (None, Some(mut scene)) => {
            scene.resolved = write::to_json(&scene);
            scene.warnings = warnings;
            Ok(scene)
        }
        (Some(diagnostics), _) => Err(diagnostics),
        (None, None) => Err(Diagnostics::whole_file(path, "the scene could not be read")),
    }
}

/// The scene as far as it can be read; what cannot is noted in `context`.
fn read_scene(context: &Context<'_>, root: &Node, path: &Path, role: Role) -> Scene {
    let mut reader = Reader {
        with_images: role == Role::Main && compares_images(root),
        names: HashSet::new(),
        scene: Scene {
            path: path.to_path_buf(),
            field: None,
            world: World::default(),
            integrator: Integrator::default(),
            background: Background::None,
            sensors: Vec::new(),
            optimize: None,
            resolved: serde_json::Value::Null,
            warnings: Vec::new(),
        },
        seen: Seen::default(),
    };
    let value = Value {
        context,
        node: root,
        path: String::new(),
    };
    let entries = value.entries().unwrap_or_default();
    reader.names.extend(entries.iter().map(|(key, _)| key.to_string()));
    let mut block = None;
    for (key, entry) in &entries {
        match *key {
            "optimize" => block = Some(entry),
            "type" if entry.as_str() == Some("scene") => {}
            "type" => entry.error(
                "this file does not hold a scene",
                "the `type` of the whole is `scene`, or left out",
            ),
            "id" => {
                entry.string();
            }
            _ => reader.object(key, entry),
        }
    }
    let Reader { mut scene, .. } = reader;
    if let Some(block) = block.filter(|_| role == Role::Main) {
        scene.optimize = optimize::read(block, &mut scene);
    }
    warn_of_backdrops(context, &scene);
    if scene
        .sensors
        .iter()
        .any(|sensor| sensor.color_space != scene.sensors[0].color_space)
    {
        context.warn("some films are `linear` and some `srgb`: one medium cannot look right in both");
    }
    scene
}

/// Whether the block `optimize` compares with photographs, which must then be there.
fn compares_images(root: &Node) -> bool {
    let Some(block) = root.member("optimize") else {
        return false;
    };
    let Some(references) = block.member("references") else {
        return true;
    };
    let name = references
        .as_str()
        .or_else(|| references.member("type").and_then(Node::as_str));
    name.is_none_or(|name| name == "images")
}

/// What has been read of the top level so far.
#[derive(Debug)]
struct Reader {
    with_images: bool,
    /// Keys of the file and names of sensors.
    names: HashSet<String>,
    scene: Scene,
    seen: Seen,
}

/// The objects of which there can be only one.
#[derive(Debug, Default)]
struct Seen {
    emitter: Option<String>,
    shape: Option<String>,
}

impl Reader {
    /// One object of the top level.
    fn object(&mut self, key: &str, entry: &Value<'_>) {
        let Some(name) = entry.type_name() else {
            report_untyped(key, entry);
            return;
        };
        let target = entry.resolve();
        let name = if name == "ref" {
            target.as_ref().and_then(Value::type_name)
        } else {
            Some(name)
        };
        let Some(name) = name else { return };
        match vocabulary::lookup(name) {
            Known::Supported(Class::Sensor) => {
                self.scene.sensors.extend(sensor::read(entry, key, self.with_images));
            }
            Known::Supported(Class::Dataset) => self.dataset(key, entry),
            Known::Supported(Class::Emitter) => {
                if only_one(
                    &mut self.seen.emitter,
                    key,
                    entry,
                    "emitter",
                    "what lies behind the medium is one thing",
                ) {
                    self.scene.background = emitter::read(entry, key).unwrap_or_default();
                }
            }
            Known::Supported(Class::Shape) => {
                if only_one(
                    &mut self.seen.shape,
                    key,
                    entry,
                    "shape",
                    "one radiance field fills one cube so far",
                ) {
                    self.scene.field = shape::read(entry, key);
                }
            }
            Known::Supported(class) => {
                if !entry.context.references.is_target(entry.node) {
                    entry
                        .context
                        .warn(format!("the {class} `{key}` is not used: nothing refers to it"));
                }
            }
            Known::Mitsuba(_) | Known::Nobody => entry.report_unknown_type(name),
        }
    }

    fn dataset(&mut self, key: &str, entry: &Value<'_>) {
        let mut sensors: Vec<Sensor> = dataset::read(entry, self.with_images).unwrap_or_default();
        dataset::unique_names(&mut sensors, key, &mut self.names);
        self.scene.sensors.extend(sensors);
    }
}

/// Whether this is the first of its kind; reports it if not.
fn only_one(seen: &mut Option<String>, key: &str, entry: &Value<'_>, what: &str, reason: &str) -> bool {
    match seen {
        Some(first) => {
            entry.error(format!("a second {what} beside `{first}`"), reason);
            false
        }
        None => {
            *seen = Some(key.to_string());
            true
        }
    }
}

fn report_untyped(key: &str, entry: &Value<'_>) {
    if entry.is_object() && entry.node.member("type").is_none() && suggest(key, &["optimize"]).starts_with("allowed") {
        let names = suggest("", &vocabulary::top_level());
        entry.error("missing `type`", format!("every object of a scene needs one ({names})"));
    } else if entry.is_object() && entry.node.member("type").is_some() {
        entry.error("the `type` is not a string", suggest("", &vocabulary::top_level()));
    } else {
        let advice = suggest(key, &["type", "optimize"]);
        entry.error(
            format!("unknown parameter `{key}` of `scene`"),
            format!("{advice}, or any object with a `type`"),
        );
    }
}

/// Photographs composited on one colour in front of an emitter of another teach the medium to paint the difference.
fn warn_of_backdrops(context: &Context<'_>, scene: &Scene) {
    let behind = match &scene.background {
        Background::None => Some([0.0; 3]),
        Background::Constant { radiance } if radiance.tuning.is_none() => match &radiance.source {
            Source::Fill(values) => <[f32; 3]>::try_from(values.as_slice()).ok(),
            _ => None,
        },
        Background::Constant { .. } | Background::Envmap { .. } => None,
    };
    let backdrops = scene
        .sensors
        .iter()
        .filter_map(|sensor| sensor.reference.as_ref())
        .map(|image| image.backdrop);
    for backdrop in backdrops {
        let message = match (backdrop, behind) {
            (Backdrop::Color(color), Some(behind)) if color != behind => format!(
                "the photographs are composited on {color:?} but the scene's background is {behind:?}: \
                 a `constant` emitter of the same radiance makes them agree"
            ),
            (Backdrop::Random, behind) if behind != Some([0.0; 3]) => {
                "the photographs are composited on random colours, which replace the scene's emitter: remove it"
                    .to_string()
            }
            _ => continue,
        };
        context.warn(message);
        return;
    }
}
