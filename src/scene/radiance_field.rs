//! `radiance_field`: a medium that emits and absorbs, in a `cube` with a `null` BSDF.

use crate::params::Kind;

use super::object::Object;
use super::quantity::Quantity;
use super::reader::Value;
use super::vocabulary::Class;
use super::volume::{self, Channels, Volume, Wanted};
use super::{Array, ColorActivation, DensityActivation, RadianceField, transform};

/// Default degree of spherical harmonics: that of Mitsuba's radiance field tutorial.
const DEFAULT_SH_DEGREE: u32 = 2;

/// Its name in scene files.
pub(super) const TYPE: &str = "radiance_field";

/// The medium inside the shape called `name`, whose `interior` is of this type.
pub(super) fn read(value: &Value<'_>, name: &str) -> Option<RadianceField> {
    let mut object = value.plugin(Class::Shape)?;
    if object.name != "cube" {
        object.error(
            format!("a `{}` around a `{TYPE}`", object.name),
            "a radiance field fills a `cube`",
        );
        return None;
    }
    let to_world = transform::read(&mut object, "to_world");
    let interior = object.get("interior")?;
    if !object.mentions(Class::Bsdf) {
        object.error(
            "a `cube` without BSDF",
            "it would be opaque and grey (`diffuse`) as in Mitsuba; add \"bsdf\": {\"type\": \"null\"} to see its interior",
        );
    }
    if let Some(bsdf) = object.nested(Class::Bsdf) {
        if bsdf.name != "null" {
            let what = format!("a `{}` BSDF around a `{TYPE}`", bsdf.name);
            bsdf.error(what, "it would hide its interior; allowed: `null`");
        } else {
            bsdf.finish();
        }
    }
    object.finish();
    medium(&interior, &format!("{name}.interior"), to_world)
}

/// The medium at `value`, which stands at `path` in the file and fills a cube.
fn medium(value: &Value<'_>, path: &str, to_world: glam::DAffine3) -> Option<RadianceField> {
    let mut object = value.plugin(Class::Medium)?;
    let sh_degree = object.integer("sh_degree", DEFAULT_SH_DEGREE);
    let channels = 3 * (sh_degree as usize + 1).pow(2);
    let mut grid = |key: &'static str, quantity, channels| {
        let channels = Channels::Exactly(channels);
        let volume = object
            .require(key, "a number or a volume")
            .and_then(|v| volume::read(&v, Wanted { quantity, channels }));
        array(format!("{path}.{key}"), volume, channels)
    };
    let sigma_t = grid("sigma_t", Quantity::Density, 1);
    let sh_coeffs = grid("sh_coeffs", Quantity::Coefficients, channels);
    let density_activation = density_activation(&mut object);
    let color_activation = color_activation(&mut object);
    let step = object.number("step", 1.0);
    let stop = object.number("stop", 1e-4);
    object.finish();
    Some(RadianceField {
        to_world: transform::to_f32(to_world),
        sigma_t,
        sh_coeffs,
        sh_degree,
        density_activation,
        color_activation,
        step,
        stop,
    })
}

fn density_activation(object: &mut Object<'_>) -> DensityActivation {
    let words = [
        ("relu", DensityActivation::Relu),
        ("softplus", DensityActivation::Softplus),
        ("exp", DensityActivation::Exp),
    ];
    object.choice("density_activation", &words, DensityActivation::Relu)
}

fn color_activation(object: &mut Object<'_>) -> ColorActivation {
    let words = [
        ("clip", ColorActivation::Clip),
        ("sigmoid", ColorActivation::Sigmoid),
        ("relu", ColorActivation::ReluHalf),
    ];
    object.choice("color_activation", &words, ColorActivation::Clip)
}

/// An array that is not optimised; a placeholder if the volume was invalid, so that its path is still known.
fn array(path: String, volume: Option<Volume>, channels: Channels) -> Array {
    let volume = volume.unwrap_or_else(|| volume::constant(vec![0.0], channels));
    Array {
        path,
        kind: Kind::Grid,
        shape: volume.shape,
        source: volume.source,
        tuning: None,
    }
}
