//! Checks that values from data files are possible; those in the scene file itself were checked while it was read.

use std::path::Path;

use super::optics;
use crate::params::{Kind, ParamSet, Parameter, Quantity};
use crate::scene::{Array, MAX_LIGHT, Rules, Scene, Source, Visited};

/// A value that is not possible.
#[derive(Debug)]
pub struct Fault<'a> {
    array: &'a Array,
    /// One sentence.
    pub message: String,
}

impl Fault<'_> {
    /// The file that the array is read from; the scene file if it is given there.
    pub(super) fn origin<'a>(&'a self, scene: &'a Scene) -> &'a Path {
        match &self.array.source {
            Source::GridFile(path)
            | Source::ImageFile(path)
            | Source::Reflectance { path, .. }
            | Source::Share { path, .. }
            | Source::Radiance { path, .. }
            | Source::Relief { path, .. }
            | Source::Attribute { path, .. } => path,
            _ => &scene.path,
        }
    }
}

/// The first value that a walk cannot use: a negative or infinite extinction, an albedo or a weight of a phase function outside
/// [0, 1], a `g` outside (-1, 1), a negative radiance of an environment map, which is drawn in proportion, a height beyond the
/// slab's other side.
pub fn fault<'a>(scene: &'a Scene, params: &ParamSet) -> Option<Fault<'a>> {
    impossible(scene, params).or_else(|| too_dense(scene, params))
}

/// Largest optical thickness across a grid that varies. It bounds the number of null collisions of a free flight, and so its time.
const MAX_THICKNESS: f32 = 1e6;

/// The first medium whose extinction is not finite once it is scaled, so that the free flights of a path would have length zero, or
/// is too large to be tracked through.
fn too_dense<'a>(scene: &'a Scene, params: &ParamSet) -> Option<Fault<'a>> {
    let tracks = scene.integrator.rules == Rules::Volpath;
    scene.world.media.iter().find_map(|medium| {
        let array = &medium.sigma_t.array;
        let values = &params.parameters[params.find(&array.path)?].values;
        let most = values.iter().fold(0.0f32, |most, &v| most.max(v));
        if (most * medium.scale).is_finite() {
            let axes = medium.sigma_t.to_world.matrix3;
            let sides = [axes.x_axis, axes.y_axis, axes.z_axis].map(|axis| axis.length_squared());
            let thickness = most * medium.scale * sides.iter().sum::<f32>().sqrt();
            let varies = array.kind == Kind::Grid && values.iter().any(|v| *v != values[0]);
            let message = format!(
                "`{}` is up to {most}, which times `scale` {} is an optical thickness of {thickness:e} across its grid, expected at most \
                 {MAX_THICKNESS:e} where it varies: lower it",
                array.path, medium.scale
            );
            return (tracks && varies && thickness > MAX_THICKNESS).then_some(Fault { array, message });
        }
        let message = format!(
            "`{}` is up to {most}, times `scale` {} no finite extinction: correct one of them",
            array.path, medium.scale
        );
        Some(Fault { array, message })
    })
}

/// The first value that is out of its quantity's range.
fn impossible<'a>(scene: &'a Scene, params: &ParamSet) -> Option<Fault<'a>> {
    scene.visit().into_iter().find_map(|Visited { array, quantity, .. }| {
        let parameter = &params.parameters[params.find(&array.path)?];
        if quantity == Quantity::Normal {
            let message = no_normal(parameter)?;
            return Some(Fault { array, message });
        }
        if let Some(slab) = scene.slab().filter(|slab| slab.heights.path == array.path) {
            let message = optics::crossing(slab, parameter)?;
            return Some(Fault { array, message });
        }
        // Numbers are held to the limits of a scene file, wherever they come from; it gives indices as ratios of two, which may be any.
        let is_ratio = matches!(quantity, Quantity::Index | Quantity::BendingIndex);
        if array.kind == Kind::Value && !is_ratio {
            let mut values = parameter.values.iter().enumerate();
            let (at, reason) = values.find_map(|(at, value)| Some((at, quantity.refuses(*value)?)))?;
            let (place, value) = (place(parameter, at), parameter.values[at]);
            let message = format!("{place} of `{}` is {value}: {reason}", array.path);
            return Some(Fault { array, message });
        }
        let (what, possible, advice) = match (quantity, array.kind) {
            (Quantity::Reflectance, Kind::Attribute | Kind::Grid) => {
                ("a reflectance", is_share as fn(f32) -> bool, "must lie between 0 and 1")
            }
            _ => rule(quantity)?,
        };
        let at = parameter.values.iter().position(|v| !possible(*v))?;
        let (place, value) = (place(parameter, at), parameter.values[at]);
        let message = format!(
            "{place} of `{}` is {value}; {what} {advice}: correct the values",
            array.path
        );
        Some(Fault { array, message })
    })
}

/// The first normal without a length, in words.
fn no_normal(parameter: &Parameter) -> Option<String> {
    let mut texels = parameter.values.chunks_exact(parameter.shape.channels);
    let length = |texel: &[f32]| texel.iter().map(|x| (2.0 * x - 1.0).powi(2)).sum::<f32>();
    let at = texels.position(|texel| length(texel).is_nan() || length(texel) <= 0.0)?;
    let [width, ..] = parameter.shape.size;
    Some(format!(
        "texel x={} y={} of `{}` is a normal of length zero: 0.5, 0.5, 1 is the surface's own; correct the values",
        at % width,
        at / width,
        parameter.path
    ))
}

/// The quantity in words, the test of a possible value, and the possible range in words.
type Rule = (&'static str, fn(f32) -> bool, &'static str);

/// The values of a quantity that a walk relies on; None if it may have any. Images of reflectances may be above 1.
fn rule(quantity: Quantity) -> Option<Rule> {
    match quantity {
        Quantity::Extinction => Some(("extinction", is_amount, "must be finite and not negative")),
        Quantity::Albedo => Some(("an albedo", is_share, "must lie between 0 and 1")),
        Quantity::Weight => Some(("a weight", is_share, "must lie between 0 and 1")),
        Quantity::Asymmetry => Some(("`g`", |v| v.abs() < 1.0, "must lie between -1 and 1, both excluded")),
        Quantity::Environment => Some(("radiance", is_bearable, "must lie between 0 and 1e30")),
        // Negative radiance is possible: a run's `bounds` may allow it.
        Quantity::Light | Quantity::Emission => Some((
            "radiance",
            |v| is_bearable(v.abs()),
            "must be at most 1e30, on either side of zero",
        )),
        Quantity::Reflectance => Some(("a reflectance", is_amount, "must be finite and not negative")),
        Quantity::Opacity => Some(("an opacity", is_share, "must lie between 0 and 1")),
        Quantity::Specular => Some(("`specular`", is_share, "must lie between 0 and 1")),
        Quantity::DiffuseTransmission => {
            Some(("`diff_trans`", |v| (0.0..=2.0).contains(&v), "must lie between 0 and 2"))
        }
        Quantity::Index | Quantity::BendingIndex => Some(("an index", |v| v > 0.0, "must be positive")),
        Quantity::DenserIndex => Some(("an index", |v| v >= 1.0, "must be at least 1")),
        Quantity::ComplexIndex => Some(("`eta` or `k`", |v| v >= 0.0, "must not be negative")),
        Quantity::Roughness => Some(("`alpha`", |v| v >= 0.0, "must not be negative")),
        Quantity::Position | Quantity::Scale | Quantity::Rotation | Quantity::Color => {
            Some(("a splat", f32::is_finite, "must have finite numbers"))
        }
        Quantity::Translation | Quantity::Orientation | Quantity::Vertex | Quantity::VertexNormal => {
            Some(("a place", f32::is_finite, "must be finite"))
        }
        Quantity::Pose | Quantity::Zoom | Quantity::Radial => {
            Some(("a camera", f32::is_finite, "must have finite numbers"))
        }
        Quantity::Elevation | Quantity::Displacement => Some(("a height", f32::is_finite, "must be finite")),
        Quantity::Extent => Some(("a scale", |v| v > 0.0 && v.is_finite(), "must be positive")),
        Quantity::Density | Quantity::Coefficients | Quantity::Normal | Quantity::Height => None,
    }
}

fn is_amount(v: f32) -> bool {
    v >= 0.0 && v.is_finite()
}

fn is_bearable(v: f32) -> bool {
    (0.0..=MAX_LIGHT).contains(&v)
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
    if parameter.kind == Kind::Attribute {
        return format!("value {texel}, channel {channel},");
    }
    let [nx, ny, _] = shape.size;
    let (x, y, z) = (texel % nx, texel / nx % ny, texel / (nx * ny));
    format!("texel x={x} y={y} z={z}, channel {channel},")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_those_of_the_texel() {
        let parameter = |size: [usize; 3], channels| Parameter {
            path: "a".into(),
            kind: crate::params::Kind::Grid,
            quantity: Quantity::Extinction,
            shape: crate::params::Shape { size, channels },
            to_world: glam::Affine3A::IDENTITY,
            values: Vec::new(),
            tuning: None,
        };
        // ((3 · 3 + 2) · 2 + 1) · 2 + 1
        assert_eq!(place(&parameter([2, 3, 4], 2), 47), "texel x=1 y=2 z=3, channel 1,");
        assert_eq!(place(&parameter([2, 3, 4], 2), 6), "texel x=1 y=1 z=0, channel 0,");
        assert_eq!(place(&parameter([1, 1, 1], 3), 2), "channel 2");
    }
}
