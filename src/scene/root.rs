//! The scene as a whole: the objects at the top level of the file.

use std::collections::HashSet;
use std::io::Read;
use std::path::Path;

use crate::io;

use super::change::Change;
use super::context::Context;
use super::diagnostics::{Diagnostics, suggest};
use super::instance::{self, Groups};
use super::json::{self, Node};
use super::medium::Media;
use super::reader::Value;
use super::vocabulary::{self, Class, Known};
use super::{Background, Channels, Integrator, Optic, Rules, Scene, Sensor, World};
use super::{
    dataset, emitter, gradient_index, integrator, light, optic, optimize, parameters, radiance_field, reference,
    sensor, shape, slab, splats, warnings, write,
};

/// The largest scene file, in bytes.
const MAX_BYTES: u64 = 1 << 28;

/// Reads and checks the scene file at `path` and the headers of all files that it names.
///
/// # Errors
/// All mistakes, each with its position and the probable intention.
pub fn load(path: &Path) -> Result<Scene, Diagnostics> {
    load_with(path, &[])
}

/// Like [`load`], with values that replace the file's and are checked like them.
///
/// # Errors
/// As [`load`]; also a change whose path does not exist or that is malformed.
pub fn load_with(path: &Path, changes: &[Change]) -> Result<Scene, Diagnostics> {
    load_asking(path, changes, &[])
}

/// Like [`load_with`], for a command that differentiates by the parameters that `asked` names: they count as optimised, in
/// addition to those of the block `optimize`.
///
/// # Errors
/// As [`load_with`]; also a name in `asked` that is no parameter's, or whose parameter has no derivative.
pub fn load_asking(path: &Path, changes: &[Change], asked: &[String]) -> Result<Scene, Diagnostics> {
    parse_as(&read_text(path)?, path, Role::Main, changes, asked)
}

/// Like [`load`], for a given text; relative file names are relative to `path`.
///
/// # Errors
/// As [`load`].
pub fn parse(text: &str, path: &Path) -> Result<Scene, Diagnostics> {
    parse_as(text, path, Role::Main, &[], &[])
}

/// Like [`load`], for the target of another scene; the target's own block `optimize` is ignored.
///
/// # Errors
/// As [`load`].
pub fn load_target(path: &Path) -> Result<Scene, Diagnostics> {
    parse_as(&read_text(path)?, path, Role::Target, &[], &[])
}

/// The purpose of reading a scene.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Main,
    Target,
}

/// The text of a file, or of standard input for `-`.
fn read_text(path: &Path) -> Result<String, Diagnostics> {
    let refuse = |message: String| Diagnostics::whole_file(path, message);
    if path == Path::new("-") {
        let mut text = String::new();
        let read = std::io::stdin().take(MAX_BYTES + 1).read_to_string(&mut text);
        read.map_err(|error| refuse(format!("cannot be read: {error}")))?;
        if text.len() as u64 > MAX_BYTES {
            return Err(refuse(format!(
                "holds more than {MAX_BYTES} bytes, the most of a scene file"
            )));
        }
        return Ok(text);
    }
    let size = std::fs::metadata(path)
        .map_err(|error| refuse(format!("cannot be read: {error}")))?
        .len();
    if size > MAX_BYTES {
        return Err(refuse(format!(
            "has {size} bytes, a scene file has at most {MAX_BYTES}"
        )));
    }
    let bytes = io::read_at_most(path, MAX_BYTES).map_err(|error| refuse(format!("cannot be read: {error}")))?;
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        refuse(format!("is not UTF-8 text from byte {at} on, expected JSON"))
    })
}

fn parse_as(text: &str, path: &Path, role: Role, changes: &[Change], asked: &[String]) -> Result<Scene, Diagnostics> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut parsed = json::read(text);
    let mut context = Context::new(path, text);
    if let Ok(root) = &mut parsed {
        changes.iter().for_each(|change| context.apply(change, root));
    }
    let asked: Vec<(&str, Node)> = asked.iter().map(|name| (name.as_str(), context.ask(name))).collect();
    let scene = match &parsed {
        Ok(root) => {
            context.references = reference::resolve(root, &context);
            Some(read_scene(&context, root, path, role, &asked))
        }
        Err(faults) => {
            for fault in faults {
                context.error(fault.at, &fault.message);
            }
            None
        }
    };
    let (diagnostics, warnings, derivative_warnings) = context.into_parts();
    match (Diagnostics::collect(diagnostics), scene) {
        (None, Some(mut scene)) => {
            scene.resolved = write::to_json(&scene);
            scene.warnings = warnings;
            scene.derivative_warnings = derivative_warnings;
            Ok(scene)
        }
        (Some(diagnostics), _) => Err(diagnostics),
        (None, None) => Err(Diagnostics::whole_file(path, "the scene could not be read")),
    }
}

/// The scene as far as it is valid; mistakes are recorded in `context`.
fn read_scene(context: &Context<'_>, root: &Node, path: &Path, role: Role, asked: &[(&str, Node)]) -> Scene {
    let mut reader = Reader {
        with_images: role == Role::Main && compares_images(root),
        names: HashSet::new(),
        scene: Scene {
            path: path.to_path_buf(),
            field: None,
            splats: None,
            optic: None,
            world: World::default(),
            integrator: Integrator::default(),
            channels: Channels::default(),
            background: Background::None,
            sensors: Vec::new(),
            views: Vec::new(),
            optimize: None,
            resolved: serde_json::Value::Null,
            warnings: Vec::new(),
            derivative_warnings: Vec::new(),
            replaced: Vec::new(),
        },
        media: Media::default(),
        meters: Vec::new(),
        groups: Groups::default(),
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
    // Groups are read first, so that their order is that of the resolved form; then shapes: a medium shared by shapes and
    // sensors is named after a shape.
    let (groups, others): (Vec<_>, Vec<_>) = entries.iter().partition(|(_, entry)| is_group(entry));
    let (shapes, others): (Vec<_>, Vec<_>) = others.into_iter().partition(|(_, entry)| is_shape(entry));
    for (key, entry) in groups.into_iter().chain(shapes).chain(others) {
        match *key {
            "optimize" => block = Some(entry),
            "type" if entry.as_str() == Some("scene") => {}
            "type" => entry.error(
                "this file does not hold a scene",
                "the `type` of the whole is `scene`, or left out",
            ),
            "id" | "$schema" => {
                entry.string();
            }
            _ => reader.object(key, entry),
        }
    }
    reader.finish(context);
    let Reader { mut scene, .. } = reader;
    if let Some(block) = block.filter(|_| role == Role::Main) {
        scene.optimize = optimize::read(block, &mut scene);
    }
    let asked = parameters::ask(context, asked, &mut scene);
    optic::check(context, &scene);
    warnings::note(context, &scene, &asked);
    scene
}

/// Whether the block `optimize` compares with photographs, which must then exist.
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

/// The name of the type of `entry`, references resolved, without complaint.
fn resolved_type<'a>(entry: &Value<'a>) -> Option<&'a str> {
    entry.resolve().and_then(|target| target.type_name())
}

fn is_shape(entry: &Value<'_>) -> bool {
    let class = resolved_type(entry).map(vocabulary::lookup);
    class == Some(Known::Supported(Class::Shape))
}

fn is_group(entry: &Value<'_>) -> bool {
    resolved_type(entry) == Some(instance::GROUP)
}

/// Whether the shape at `entry` has a radiance field inside.
fn holds_field(entry: &Value<'_>) -> bool {
    let Some(shape) = entry.resolve() else { return false };
    let interior = shape.node.member("interior").map(|node| shape.child(node, "interior"));
    interior.is_some_and(|interior| resolved_type(&interior) == Some(radiance_field::TYPE))
}

/// State while the top level is read.
#[derive(Debug)]
struct Reader {
    with_images: bool,
    /// Keys of the file and names of sensors.
    names: HashSet<String>,
    scene: Scene,
    media: Media,
    /// Sensors on shapes, which are read before the other sensors and come after them.
    meters: Vec<Sensor>,
    groups: Groups,
    seen: Seen,
}

/// The key of the first object of each kind that may occur only once or excludes others.
#[derive(Debug, Default)]
struct Seen {
    background: Option<String>,
    integrator: Option<String>,
    field: Option<String>,
    /// The first shape or light of a path-traced scene.
    world: Option<String>,
    splats: Option<String>,
    optic: Option<String>,
    /// The first sensor of each kind.
    canvas: Option<String>,
    camera: Option<String>,
}

const ONE_OR_THE_OTHER: &str =
    "a scene is either one radiance field, or shapes, scattering media and lights; make two scenes of it";

impl Reader {
    /// One object of the top level.
    fn object(&mut self, key: &str, entry: &Value<'_>) {
        if entry.type_name().is_none() {
            report_untyped(key, entry);
            return;
        }
        let Some(name) = resolved_type(entry) else { return };
        match vocabulary::lookup(name) {
            Known::Supported(Class::Sensor) => self.sensor(key, entry),
            Known::Supported(Class::Dataset) => self.dataset(key, entry),
            Known::Supported(Class::Emitter) => self.emitter(key, entry, name),
            Known::Supported(Class::Shape) => self.shape(key, entry, name),
            Known::Supported(Class::Splats) => {
                let reason = "all splats of a picture are drawn in one order";
                if only_one(&mut self.seen.splats, key, entry, "list of splats", reason) {
                    self.scene.splats = splats::read(entry, key);
                }
            }
            Known::Supported(Class::Integrator) => {
                let reason = "light is followed in one way";
                if only_one(&mut self.seen.integrator, key, entry, "integrator", reason) {
                    (self.scene.integrator, self.scene.channels) = integrator::read(entry).unwrap_or_default();
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

    fn sensor(&mut self, key: &str, entry: &Value<'_>) {
        let sensors = sensor::read(entry, key, self.with_images, &mut self.media);
        if sensors.iter().any(|sensor| sensor.medium.is_some()) {
            self.enter_world(key, entry, "a sensor in a medium");
        }
        let seen = match resolved_type(entry) {
            Some("canvas") => &mut self.seen.canvas,
            _ => &mut self.seen.camera,
        };
        seen.get_or_insert_with(|| key.to_string());
        self.scene.sensors.extend(sensors);
    }

    fn dataset(&mut self, key: &str, entry: &Value<'_>) {
        let mut sensors: Vec<Sensor> = dataset::read(entry, self.with_images).unwrap_or_default();
        dataset::unique_names(&mut sensors, key, &mut self.names);
        self.seen.camera.get_or_insert_with(|| key.to_string());
        self.scene.sensors.extend(sensors);
    }

    fn emitter(&mut self, key: &str, entry: &Value<'_>, name: &str) {
        match name {
            "constant" | "envmap" => {
                let reason = "what lies behind the medium is one thing";
                if only_one(&mut self.seen.background, key, entry, "emitter", reason) {
                    self.scene.background = emitter::read(entry, key).unwrap_or_default();
                }
            }
            _ if emitter::stands_in_shapes(name) => {
                if !entry.context.references.is_target(entry.node) {
                    let article = if name == "area" { "an" } else { "a" };
                    entry.error(
                        format!("{article} `{name}` emitter without a shape"),
                        "put it into a shape, which then emits",
                    );
                }
            }
            _ => {
                self.enter_world(key, entry, &format!("a `{name}` light"));
                self.scene.world.lights.extend(light::read(entry, key));
            }
        }
    }

    fn shape(&mut self, key: &str, entry: &Value<'_>, name: &str) {
        if matches!(name, instance::GROUP | instance::INSTANCE) {
            self.enter_world(key, entry, &format!("a `{name}`"));
            let (groups, media) = (&mut self.groups, &mut self.media);
            if name == instance::GROUP {
                groups.read(entry, media);
            } else {
                let instance = groups.instance(entry, key, media);
                self.scene.world.instances.extend(instance);
            }
            return;
        }
        if matches!(name, slab::TYPE | gradient_index::TYPE) {
            self.enter_world(key, entry, &format!("a `{name}`"));
            let reason = "light is bent by one slab or cube so far";
            if only_one(&mut self.seen.optic, key, entry, "slab or cube", reason) {
                self.scene.optic = match name == slab::TYPE {
                    true => slab::read(entry, key).map(Optic::Slab),
                    false => gradient_index::read(entry, key).map(Optic::Cube),
                };
            }
            return;
        }
        if !holds_field(entry) {
            self.enter_world(key, entry, &format!("a `{name}`"));
            let surface = shape::read(entry, key, &mut self.media);
            if let Some(surface) = &surface {
                let meters = sensor::on_shape(entry, key, surface, &mut self.media);
                self.meters.extend(meters);
            }
            self.scene.world.surfaces.extend(surface);
            return;
        }
        if let Some(first) = &self.seen.world {
            entry.error(format!("a radiance field beside `{first}`"), ONE_OR_THE_OTHER);
            return;
        }
        let reason = "one radiance field fills one cube so far";
        if only_one(&mut self.seen.field, key, entry, "radiance field", reason) {
            self.scene.field = radiance_field::read(entry, key);
        }
    }

    /// Records an object that is only valid in a scene without a radiance field.
    fn enter_world(&mut self, key: &str, entry: &Value<'_>, what: &str) {
        if let Some(field) = &self.seen.field {
            entry.error(
                format!("{what} beside the radiance field of `{field}`"),
                ONE_OR_THE_OTHER,
            );
        }
        self.seen.world.get_or_insert_with(|| key.to_string());
    }

    /// Checks of the whole scene, after all objects have been read.
    fn finish(&mut self, context: &Context<'_>) {
        self.scene.world.media = std::mem::take(&mut self.media.list);
        self.scene.sensors.append(&mut self.meters);
        self.scene.world.groups = std::mem::take(&mut self.groups.list);
        self.check_picture(context);
        if let (Some(key), false) = (&self.seen.integrator, self.scene.world.media.is_empty())
            && self.scene.integrator.rules != Rules::Volpath
        {
            context.warn(format!(
                "the integrator `{key}` follows light among surfaces alone, so that the scattering media play no part: \
                 take `volpath` or `prbvolpath`"
            ));
        }
        if let (Some(_), Some(key)) = (&self.seen.field, &self.seen.integrator) {
            (self.scene.integrator, self.scene.channels) = Default::default();
            context.warn(format!(
                "the integrator `{key}` plays no part: a radiance field is marched through"
            ));
        }
    }
}

impl Reader {
    /// Checks a scene of splats: all sensors are canvases, and beside the splats there is at most a constant background.
    fn check_picture(&self, context: &Context<'_>) {
        let Seen {
            splats,
            canvas,
            camera,
            field,
            world,
            ..
        } = &self.seen;
        let refuse = |text: String| context.error(0, text);
        match (splats, canvas, camera) {
            (Some(splats), _, Some(camera)) => refuse(format!(
                "the sensor `{camera}` looks into space, but the splats `{splats}` lie in a plane: give them a `canvas`"
            )),
            (None, Some(canvas), _) => refuse(format!(
                "the canvas `{canvas}` shows splats, but the scene has none: add an object of the type `splats`, or make \
                 it a `perspective` sensor"
            )),
            _ => {}
        }
        let Some(splats) = splats else { return };
        if let Some(other) = field.as_ref().or(world.as_ref()) {
            refuse(format!(
                "the splats `{splats}` stand beside `{other}`: a picture holds splats alone; make two scenes of it"
            ));
        }
        if matches!(self.scene.background, Background::Envmap { .. }) {
            refuse(format!(
                "the splats `{splats}` stand before an `envmap`, but a plane has one background: make it `constant`"
            ));
        }
    }
}

/// Whether this is the first of its kind; reports further ones.
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
        let types = entry.suggest_types("");
        entry.error("missing `type`", format!("every object of a scene needs one ({types})"));
    } else if entry.is_object() && entry.node.member("type").is_some() {
        entry.error("the `type` is not a string", entry.suggest_types(""));
    } else if vocabulary::is_usual_key(key) {
        entry.report_untyped();
    } else {
        let advice = suggest(key, &["type", "optimize"]);
        entry.error(
            format!("unknown parameter `{key}` of `scene`"),
            format!("{advice}, or any object with a `type`"),
        );
    }
}
