//! Whether values that come from files are possible: those that a scene states were checked while it was read.

use std::path::Path;

use crate::params::{ParamSet, Parameter, Quantity};
use crate::scene::{Array, Scene, Source, Visited};

/// A value that is not possible.
#[derive(Debug)]
pub struct Fault<'a> {
    array: &'a Array,
    /// One sentence.
    pub message: String,
}

impl Fault<'_> {
    /// The file that the scene takes the array from; the scene's own where it takes it from none.
    pub(super) fn origin<'a>(&'a self, scene: &'a Scene) -> &'a Path {
        match &self.array.source {
            Source::GridFile(path)
            | Source::ImageFile(path)
            | Source::Reflectance { path, .. }
            | Source::Radiance { path, .. } => path,
            _ => &scene.path,
        }
    }
}

/// The first value that a walk cannot use: a negative extinction, an albedo or a weight of a phase function outside
/// [0, 1], a `g` outside (-1, 1), a negative radiance of an environment map, which is drawn in proportion.
pub fn fault<'a>(scene: &'a Scene, params: &ParamSet) -> Option<Fault<'a>> {
    scene.visit().into_iter().find_map(|Visited { array, quantity, .. }| {
        let (what, possible, advice) = rule(quantity)?;
        let parameter = &params.parameters[params.find(&array.path)?];
        let at = parameter.values.iter().position(|v| !possible(*v))?;
        let (place, value) = (place(parameter, at), parameter.values[at]);
        let message = format!(
            "{place} of `{}` is {value}; {what} {advice}: correct the values",
            array.path
        );
        Some(Fault { array, message })
    })
}

/// The quantity in words, which values are possible, and that in words.
type Rule = (&'static str, fn(f32) -> bool, &'static str);

/// What a walk relies on. Images of reflectances are checked when they are read, before they are decoded.
fn rule(quantity: Quantity) -> Option<Rule> {
    match quantity {
        Quantity::Extinction => Some(("extinction", |v| v >= 0.0, "must not be negative")),
        Quantity::Albedo => Some(("an albedo", is_share, "must lie between 0 and 1")),
        Quantity::Weight => Some(("a weight", is_share, "must lie between 0 and 1")),
        Quantity::Asymmetry => Some(("`g`", |v| v.abs() < 1.0, "must lie between -1 and 1, both excluded")),
        Quantity::Environment => Some(("radiance", |v| v >= 0.0, "must not be negative")),
        Quantity::Opacity => Some(("an opacity", is_share, "must lie between 0 and 1")),
        Quantity::Position | Quantity::Scale | Quantity::Rotation | Quantity::Color => {
            Some(("a splat", f32::is_finite, "must have finite numbers"))
        }
        Quantity::Density | Quantity::Coefficients | Quantity::Emission | Quantity::Light | Quantity::Reflectance => {
            None
        }
    }
}

fn is_share(v: f32) -> bool {
    (0.0..=1.0).contains(&v)
}

fn place(parameter: &Parameter, index: usize) -> String {
    let shape = parameter.shape;
    let (texel, channel) = (index / shape.channels, index % shape.channels);
    if shape.texels() == 1 {
        return format!("channel {channel}");
    }
    let [nx, ny, _] = shape.size;
    let (x, y, z) = (texel % nx, texel / nx % ny, texel / (nx * ny));
    format!("texel x={x} y={y} z={z}, channel {channel},")
}
