//! `optimize.parameters`: which arrays a run changes, how fast, within which bounds, and from where.

use crate::params::{Kind, Shape, Tuning};

use super::diagnostics::suggest;
use super::emitter;
use super::object::Object;
use super::reader::{Limit, Value};
use super::volume::{self, Volume};
use super::{Array, Background, Penalty, Scene, Source, Stage, files};

/// Adam's step in Mitsuba's radiance field tutorial.
const DEFAULT_LEARNING_RATE: f32 = 0.05;

/// Applies `parameters` to the arrays of `scene`.
pub(super) fn tune(value: &Value<'_>, stages: &[Stage], scene: &mut Scene) {
    let Some(entries) = value.entries() else { return };
    if entries.is_empty() {
        value.error("no parameter is named", "name at least one, by its path");
    }
    let mistaken = value.context.has_errors();
    let field = scene.field.is_some();
    let mut arrays = arrays_mut(scene);
    let paths: Vec<String> = arrays.iter().map(|array| array.path.clone()).collect();
    for (path, entry) in &entries {
        match arrays.iter_mut().find(|array| array.path == *path) {
            Some(array) => parameter(entry, stages, array),
            // Without a medium because of another mistake, its paths are unknown: one report is enough.
            None if mistaken && !field => {}
            None => {
                let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
                entry.error(format!("there is no parameter `{path}`"), suggest(path, &paths));
            }
        }
    }
}

fn arrays_mut(scene: &mut Scene) -> Vec<&mut Array> {
    let mut arrays: Vec<&mut Array> = Vec::new();
    if let Some(field) = &mut scene.field {
        arrays.extend([&mut field.sigma_t, &mut field.sh_coeffs]);
    }
    match &mut scene.background {
        Background::None => {}
        Background::Constant { radiance } => arrays.push(radiance),
        Background::Envmap { data, .. } => arrays.push(data),
    }
    arrays
}

/// One parameter.
fn parameter(value: &Value<'_>, stages: &[Stage], array: &mut Array) {
    let Some(mut object) = value.block("parameter") else {
        return;
    };
    let learning_rate = object.number("learning_rate", DEFAULT_LEARNING_RATE, Limit::Positive);
    let bounds = bounds(&mut object, array.kind);
    if let Some(start) = object.get("initial").and_then(|value| initial(&value, array)) {
        array.shape = start.shape;
        array.source = start.source;
    }
    if let Some(value) = object.get("start_resolution") {
        start_resolution(&value, array);
    }
    object.finish();
    array.tuning = Some(Tuning { learning_rate, bounds });
    volume::check_size(value, final_shape(array, stages));
}

/// The shape after all stages.
fn final_shape(array: &Array, stages: &[Stage]) -> Shape {
    let axes = match array.kind {
        Kind::Grid => 3,
        Kind::Envmap => 2,
        Kind::Value => 0,
    };
    let mut shape = array.shape;
    for stage in stages {
        for side in &mut shape.size[..axes] {
            *side = side.saturating_mul(stage.upsample as usize).min(1 << 32);
        }
    }
    shape
}

/// `[low, high]`, with null for no bound. Grids are unbounded unless bounds are given, light is not negative.
fn bounds(object: &mut Object<'_>, kind: Kind) -> [f32; 2] {
    let default = match kind {
        Kind::Grid => [f32::NEG_INFINITY, f32::INFINITY],
        Kind::Envmap | Kind::Value => [0.0, f32::INFINITY],
    };
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
    [low, high]
}

/// The parameter `initial`: a number, one number a channel, or a file.
fn initial(value: &Value<'_>, array: &Array) -> Option<Volume> {
    let Shape { channels, .. } = array.shape;
    if value.as_str().is_none() {
        return Some(Volume {
            shape: array.shape,
            source: Source::Fill(volume::channel_values(value, channels)?),
        });
    }
    match array.kind {
        Kind::Grid => volume::grid_file(value, channels),
        Kind::Envmap => emitter::image(value).map(|(shape, source)| Volume { shape, source }),
        Kind::Value => {
            let path = value.file()?;
            match files::numbers(&path, channels) {
                Ok(numbers) => Some(Volume {
                    shape: array.shape,
                    source: Source::Fill(numbers),
                }),
                Err(error) => {
                    value.error("these values cannot be used", error);
                    None
                }
            }
        }
    }
}

fn start_resolution(value: &Value<'_>, array: &mut Array) {
    let shape = match array.kind {
        Kind::Grid => volume::resolution(value, array.shape.channels),
        Kind::Envmap => emitter::size(value),
        Kind::Value => {
            value.error("a colour has no resolution", "remove `start_resolution`");
            None
        }
    };
    let Some(shape) = shape else { return };
    match array.source {
        Source::Fill(_) | Source::Blobs { .. } => array.shape = shape,
        Source::GridFile(_) | Source::ImageFile(_) if array.shape == shape => {}
        Source::GridFile(_) | Source::ImageFile(_) => {
            let [x, y, z] = array.shape.size;
            let advice = "remove `start_resolution`, or start from a number in `initial`";
            value.error(
                format!("the initial values come from a file of {x}×{y}×{z} texels"),
                advice,
            );
        }
    }
}

/// Reports a penalty on something that is not optimised or that it does not suit.
pub(super) fn check_penalty(value: &Value<'_>, path: &str, penalty: Penalty, scene: &Scene) {
    if value.context.has_errors() {
        return;
    }
    let tuned: Vec<&Array> = scene
        .arrays()
        .into_iter()
        .filter(|array| array.tuning.is_some())
        .collect();
    let paths: Vec<&str> = tuned.iter().map(|array| array.path.as_str()).collect();
    let Some(array) = tuned.iter().find(|array| array.path == path) else {
        value.error(
            format!("`{path}` is not among the optimised parameters"),
            suggest(path, &paths),
        );
        return;
    };
    let is_density = scene.field.as_ref().is_some_and(|field| field.sigma_t.path == path);
    match penalty {
        Penalty::TotalVariation if array.kind != Kind::Grid => {
            value.error("total variation of something that is not a grid", "name a grid");
        }
        Penalty::Sparsity if !is_density => value.error("sparsity of something that is not density", "name `sigma_t`"),
        Penalty::TotalVariation | Penalty::Sparsity => {}
    }
}
