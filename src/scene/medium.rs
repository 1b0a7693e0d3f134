//! `radiance_field`: a medium that emits and absorbs.

use crate::params::{Kind, Shape};

use super::object::Object;
use super::reader::{Limit, Value};
use super::vocabulary::Class;
use super::volume::{self, Volume};
use super::{Array, ColorActivation, DensityActivation, RadianceField, Source, transform};

/// Degree of spherical harmonics unless given: that of the radiance fields of Mitsuba's tutorial.
const DEFAULT_SH_DEGREE: u32 = 2;

/// The medium at `value`, which stands at `path` in the file and fills a cube.
pub(super) fn read(value: &Value<'_>, path: &str, to_world: glam::DAffine3) -> Option<RadianceField> {
    let mut object = value.plugin(Class::Medium)?;
    let sh_degree = object.integer("sh_degree", DEFAULT_SH_DEGREE, 0, 3);
    let channels = 3 * (sh_degree as usize + 1).pow(2);
    let mut grid = |key: &'static str, channels| {
        let volume = object
            .require(key, "a number or a volume")
            .and_then(|v| volume::read(&v, channels));
        array(format!("{path}.{key}"), volume, channels)
    };
    let sigma_t = grid("sigma_t", 1);
    let sh_coeffs = grid("sh_coeffs", channels);
    let density_activation = density_activation(&mut object);
    let color_activation = color_activation(&mut object);
    let step = object.number("step", 1.0, Limit::Within(1e-3, 1e3));
    let stop = object.number("stop", 1e-4, Limit::Within(0.0, 0.5));
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

/// An array that nothing tunes yet; a stand-in where the volume was mistaken, so that its path is still known.
fn array(path: String, volume: Option<Volume>, channels: usize) -> Array {
    let volume = volume.unwrap_or(Volume {
        shape: Shape {
            size: [1, 1, 1],
            channels,
        },
        source: Source::Fill(vec![0.0]),
    });
    Array {
        path,
        kind: Kind::Grid,
        shape: volume.shape,
        source: volume.source,
        tuning: None,
    }
}
