//! `optimize.parameters`: optimised arrays, with learning rates, bounds and initial values.

use std::collections::{HashMap, HashSet};

use crate::params::{Kind, Shape, Tuning, fits_several, meanings, named};

use super::context::Context;
use super::diagnostics::suggest;
use super::emitter;
use super::json::Node;
use super::motion;
use super::object::Object;
use super::quantity::Quantity;
use super::reader::{Limit, Value};
use super::texture;
use super::views;
use super::volume::{self, Channels, Wanted};
use super::{Array, Penalty, Scene, Source, Stage, Visited, arrays, files};

/// Learning rate of Adam in Mitsuba's radiance field tutorial.
const DEFAULT_LEARNING_RATE: f32 = 0.05;

/// Applies `parameters` to the arrays of `scene`.
pub(super) fn tune(value: &Value<'_>, stages: &[Stage], scene: &mut Scene) {
    let Some(entries) = value.entries() else { return };
    if entries.is_empty() {
        value.error("no parameter is named", "name at least one, by its path");
    }
    each_named(&entries, stages, scene);
}

/// Makes the arrays that `asked` names optimised parameters, beside those of the block `optimize`, and returns their paths.
pub(super) fn ask(context: &Context<'_>, asked: &[(&str, Node)], scene: &mut Scene) -> Vec<String> {
    let entry = |(name, node)| {
        (
            name,
            Value {
                context,
                node,
                path: String::new(),
            },
        )
    };
    let entries: Vec<(&str, Value<'_>)> = asked.iter().map(|(name, node)| entry((*name, node))).collect();
    each_named(&entries, &[], scene);
    let arrays = scene.arrays();
    let paths = || arrays.iter().map(|array| array.path.as_str());
    let found = asked.iter().filter_map(|(name, _)| named(paths(), name));
    found.map(|index| arrays[index].path.clone()).collect()
}

/// Applies entries to the arrays that they name; the arrays that move shapes, lights and cameras are created first.
fn each_named(entries: &[(&str, Value<'_>)], stages: &[Stage], scene: &mut Scene) {
    let Some((_, first)) = entries.first() else { return };
    let mistaken = first.context.has_errors();
    let (field, attached) = (scene.field.is_some(), scene.integrator.attached);
    let places = match scene.world.is_empty() {
        true => "",
        false => "; what moves has `to_world.translate`, `to_world.rotate` and `to_world.scale`",
    };
    motion::name(entries, scene);
    views::name(entries, scene);
    let advices: Vec<Option<String>> = entries.iter().map(|(path, _)| motion::advice(path, scene)).collect();
    let mut tunables = arrays::all_mut(scene);
    let paths: Vec<String> = tunables.iter().map(|tunable| tunable.array.path.clone()).collect();
    let mut taken: HashMap<usize, &str> = HashMap::new();
    let mut replaced = Vec::new();
    for ((path, entry), advice) in entries.iter().zip(advices) {
        let index = named(paths.iter().map(String::as_str), path);
        if let Some(before) = index.and_then(|index| taken.insert(index, path))
            && !entry.path.is_empty()
        {
            entry.error(
                format!("`{path}` is `{before}`, which stands there already"),
                "keep one of them",
            );
            continue;
        }
        match index.map(|index| &mut tunables[index]) {
            // The settings of the block `optimize` stay if the command line names the parameter too.
            Some(tunable) if tunable.array.tuning.is_some() && entry.path.is_empty() => {}
            Some(tunable) => {
                if parameter(entry, stages, tunable, attached) {
                    replaced.push(tunable.array.path.clone());
                }
            }
            // The medium is missing because of another mistake, which was reported.
            None if mistaken && !field => {}
            None => {
                let fits = meanings(paths.iter().map(String::as_str), path);
                if !fits.is_empty() {
                    ambiguous(entry, path, &fits);
                    continue;
                }
                // What several shapes share is listed once for each.
                let mut named = HashSet::new();
                let paths: Vec<&str> = paths
                    .iter()
                    .map(String::as_str)
                    .filter(|path| named.insert(*path))
                    .collect();
                let advice = advice.unwrap_or_else(|| suggest(path, &paths) + places);
                entry.error(format!("there is no parameter `{path}`"), advice);
            }
        }
    }
    scene.replaced.extend(replaced);
}

/// Reports a name that fits several parameters.
fn ambiguous(value: &Value<'_>, name: &str, fits: &[&str]) {
    let [fault, advice] = fits_several(name, fits);
    value.error(fault, advice);
}

/// An array that can be optimised.
type Tunable<'a> = Visited<&'a mut Array>;

impl Tunable<'_> {
    fn wanted(&self) -> Wanted {
        Wanted {
            quantity: self.quantity,
            channels: Channels::Exactly(self.array.shape.channels),
        }
    }
}

/// One parameter; `attached`: whether the integrator moves the points of paths with it (`prb_attached`). Returns whether
/// its values become others than those at its place in the file.
fn parameter(value: &Value<'_>, stages: &[Stage], tunable: &mut Tunable<'_>, attached: bool) -> bool {
    let Some(mut object) = value.block("parameter") else {
        return false;
    };
    if !tunable.plain {
        object.error(
            format!("the volume `{}` cannot be optimised", tunable.array.path),
            "only volumes with the `filter_type` `trilinear` and the `wrap_mode` `clamp` can",
        );
    }
    if tunable.quantity == Quantity::BendingIndex && !attached {
        object.error(
            format!(
                "`{}` cannot be optimised: another index bends light elsewhere",
                tunable.array.path
            ),
            "only derivatives at fixed paths are known; those of a `roughdielectric` or a `thindielectric` are, and \
             the integrator `prb_attached` moves paths",
        );
    }
    if tunable.mirrors && !attached {
        object.error(
            format!(
                "`{}` cannot be optimised: another normal mirrors or bends light elsewhere",
                tunable.array.path
            ),
            "only derivatives at fixed paths are known; those of rough BSDFs under it are, and the integrator \
             `prb_attached` moves paths",
        );
    }
    let learning_rate = object.number("learning_rate", DEFAULT_LEARNING_RATE);
    let bounds = bounds(&mut object, tunable.quantity);
    let smoothing = smoothing(&mut object, tunable.array.kind);
    let mut replaces = false;
    if let Some((shape, source)) = object.get("initial").and_then(|value| initial(&value, tunable)) {
        replaces = tunable.array.source != source;
        tunable.array.shape = shape;
        tunable.array.source = source;
    }
    if let Some(value) = object.get("start_resolution") {
        let own = tunable.array.shape;
        start_resolution(&value, tunable.array);
        warn_of_another_end(&value, own, tunable.array, stages);
    }
    object.finish();
    tunable.array.tuning = Some(Tuning {
        learning_rate,
        bounds,
        smoothing,
    });
    volume::check_size(value, final_shape(tunable.array, stages));
    replaces
}

/// Warns if a `start_resolution` and the stages end at another resolution than `own`, that of the array's place in the file.
fn warn_of_another_end(value: &Value<'_>, own: Shape, array: &Array, stages: &[Stage]) {
    let end = final_shape(array, stages);
    if own.texels() > 1 && array.shape != own && end != own {
        let axes = if array.kind == Kind::Grid { 3 } else { 2 };
        let sizes = |shape: Shape| shape.size.map(|n| n.to_string())[..axes].join("×");
        let [own, start, end] = [own, array.shape, end].map(sizes);
        value.context.warn(format!(
            "`{}` has {own} texels where it stands, but begins with the {start} of its `start_resolution`, which the stages refine to \
             {end}: change one of them, or remove `start_resolution`",
            array.path
        ));
    }
}

/// The shape after all stages, which refine grids, textures and environment maps.
fn final_shape(array: &Array, stages: &[Stage]) -> Shape {
    let mut shape = array.shape;
    for stage in stages {
        for n in &mut shape.size[..array.kind.refined_axes()] {
            *n = n.saturating_mul(stage.upsample as usize).min(1 << 32);
        }
    }
    shape
}

/// The share of the longer side of a grid, texture or environment map over which the optimiser's steps are smoothed.
fn smoothing(object: &mut Object<'_>, kind: Kind) -> f32 {
    let Some(value) = object.get("smoothing") else {
        return 0.0;
    };
    let share = value.number(Limit::Within(0.0, 1.0)).unwrap_or(0.0) as f32;
    if share > 0.0 && kind.refined_axes() == 0 {
        value.error(
            "there is nothing to smooth over",
            "only the steps of grids, `bitmap`s and environment maps can be smoothed; leave `smoothing` out",
        );
    }
    share
}

/// `[low, high]`, with null for no bound.
fn bounds(object: &mut Object<'_>, quantity: Quantity) -> [f32; 2] {
    let default = quantity.default_bounds();
    let Some(value) = object.get("bounds") else {
        return default;
    };
    let Some(sides) = value.list_of::<2>() else {
        return default;
    };
    let bound = |side: &Value<'_>, open: f32| match side.is_null() {
        true => Some(open),
        false => side.number(Limit::Any).map(|x| x as f32),
    };
    let low = bound(&sides[0], f32::NEG_INFINITY);
    let high = bound(&sides[1], f32::INFINITY);
    let (Some(low), Some(high)) = (low, high) else {
        return default;
    };
    if low >= high {
        value.error(
            format!("the bounds {low} and {high} leave nothing between them"),
            "the lower one comes first",
        );
        return default;
    }
    let needs = quantity.needs();
    if let Some(reason) = [low, high].iter().find_map(|x| needs.violated_by(f64::from(*x))) {
        let [low, high] = [low, high].map(|x| if x.is_finite() { x.to_string() } else { "null".into() });
        value.error(
            format!("the bounds {low} and {high} let in what is not possible"),
            reason,
        );
        return default;
    }
    [low, high]
}

/// The parameter `initial`: a number, one number per channel, or a file.
fn initial(value: &Value<'_>, tunable: &Tunable<'_>) -> Option<(Shape, Source)> {
    let Shape { channels, .. } = tunable.array.shape;
    if matches!(tunable.quantity, Quantity::Vertex | Quantity::VertexNormal) {
        value.error(
            format!("`initial` of `{}`", tunable.array.path),
            "vertices and their normals begin as the file of the mesh has them: name another file there",
        );
        return None;
    }
    if tunable.quantity.is_of_views() {
        value.error(
            format!("`initial` of `{}`", tunable.array.path),
            "cameras begin where the data set has them: give it corrected ones",
        );
        return None;
    }
    let filled = |values| (tunable.array.shape, Source::Fill(values));
    if value.as_str().is_none() {
        return volume::channel_values(value, tunable.wanted()).map(filled);
    }
    match tunable.array.kind {
        Kind::Grid => volume::grid_file(value, tunable.wanted()).map(|volume| (volume.shape, volume.source)),
        Kind::Points => {
            value.error(
                "`initial` of splats from a file",
                "name the file in `filename` of the `splats`",
            );
            None
        }
        Kind::Attribute => {
            value.error(
                "`initial` of a mesh's values from a file",
                "name the mesh that has them in `filename` of the shape, or give a number or a colour",
            );
            None
        }
        Kind::Texture => texture::image(value, false, channels, tunable.quantity),
        Kind::Envmap => emitter::image(value),
        Kind::Value => {
            let path = value.file()?;
            let numbers = files::numbers(&path, channels);
            let limit = tunable.quantity.limit();
            let checked = numbers.map_err(|error| error.to_string()).and_then(|numbers| {
                match numbers.iter().find_map(|x| limit.violated_by(f64::from(*x))) {
                    Some(reason) => Err(format!("{}: {numbers:?}: {reason}", path.display())),
                    None => Ok(filled(numbers)),
                }
            });
            checked
                .map_err(|error| value.error("these values cannot be used", error))
                .ok()
        }
    }
}

fn start_resolution(value: &Value<'_>, array: &mut Array) {
    let shape = match array.kind {
        Kind::Grid => volume::resolution(value, array.shape.channels),
        Kind::Envmap => emitter::size(value),
        Kind::Points => {
            value.error(
                "splats have no resolution",
                "give their number in `count` of the `splats`",
            );
            None
        }
        Kind::Attribute => {
            value.error(
                "values of a mesh or of cameras have no resolution",
                "remove `start_resolution`: there is one for each vertex, face or camera",
            );
            None
        }
        Kind::Texture => texture::size_of(value, array.shape.channels),
        Kind::Value => {
            let advice = "remove `start_resolution`, or make it a `gridvolume` if it is a volume";
            value.error("a value without a place has no resolution", advice);
            None
        }
    };
    let Some(shape) = shape else { return };
    match array.source {
        Source::Fill(_)
        | Source::Blobs { .. }
        | Source::Plume { .. }
        | Source::Leaves { .. }
        | Source::Planet { .. }
        | Source::Motif { .. } => array.shape = shape,
        Source::Placed | Source::Vertices { .. } | Source::VertexNormals { .. } | Source::Attribute { .. } => {}
        Source::GridFile(_)
        | Source::ImageFile(_)
        | Source::Reflectance { .. }
        | Source::Share { .. }
        | Source::Radiance { .. }
        | Source::Relief { .. } => {
            if array.shape == shape {
                return;
            }
            let [x, y, z] = array.shape.size;
            let advice = "remove `start_resolution`, or start from a number in `initial`";
            value.error(
                format!("the initial values come from a file of {x}×{y}×{z} texels"),
                advice,
            );
        }
    }
}

/// The path of the optimised array that a penalty names; reports one that is not optimised or has no suitable shape.
pub(super) fn penalised(value: &Value<'_>, name: &str, penalty: Penalty, scene: &Scene) -> Option<String> {
    if value.context.has_errors() {
        return None;
    }
    let tuned: Vec<&Array> = scene
        .arrays()
        .into_iter()
        .filter(|array| array.tuning.is_some())
        .collect();
    let paths: Vec<&str> = tuned.iter().map(|array| array.path.as_str()).collect();
    let Some(array) = named(paths.iter().copied(), name).map(|index| tuned[index]) else {
        match meanings(paths.iter().copied(), name) {
            none if none.is_empty() => value.error(
                format!("`{name}` is not among the optimised parameters"),
                suggest(name, &paths),
            ),
            several => ambiguous(value, name, &several),
        }
        return None;
    };
    let is_density = |visited: &Visited<&Array>| {
        visited.array.path == array.path && matches!(visited.quantity, Quantity::Density | Quantity::Extinction)
    };
    let is_density = scene.visit().iter().any(is_density);
    match penalty {
        Penalty::TotalVariation if array.kind.refined_axes() == 0 => {
            let what = "total variation of something that is no grid, texture or environment map";
            value.error(what, "name a grid, a `bitmap` or the `data` of an `envmap`");
        }
        Penalty::Sparsity if !is_density => value.error("sparsity of something that is not density", "name `sigma_t`"),
        Penalty::TotalVariation | Penalty::Sparsity => {}
    }
    Some(array.path.clone())
}
