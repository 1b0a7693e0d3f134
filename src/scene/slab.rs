//! `heightfield`: a slab of glass with a flat side and a side whose heights are a texture. The integrator `ptracer` traces
//! light through it.

use glam::{Affine2, Affine3A};

use super::object::Object;
use super::quantity::Quantity;
use super::reader::Value;
use super::vocabulary::Class;
use super::world::{Material, Model};
use super::{Array, Bsdf, Source, Texture, TextureMap, Wrap, bsdf, texture, transform};

/// Its type in scene files.
pub(super) const TYPE: &str = "heightfield";

/// A slab, in local space [-1, 1]² × [-`thickness`, height(x, y)].
#[derive(Debug, Clone)]
pub struct Slab {
    pub name: String,
    pub to_world: Affine3A,
    /// Distance from the flat side, where light enters, to height zero; in local units, like the heights.
    pub thickness: f32,
    /// One channel: coefficients of a biquadratic spline over the side z = height, texel (0, 0) at x = y = -1.
    pub heights: Array,
    /// Index of refraction inside over that outside; above one.
    pub eta: f32,
    /// Factor on light for each of the two sides that it passes.
    pub transmittance: [f32; 3],
}

impl Slab {
    /// The heights as the `bitmap` that they are in a scene file.
    pub(super) fn texture(&self) -> Texture {
        Texture::Bitmap(TextureMap {
            data: self.heights.clone(),
            nearest: false,
            wrap: Wrap::Clamp,
            to_uv: Affine2::IDENTITY,
        })
    }
}

/// The slab called `name`.
pub(super) fn read(value: &Value<'_>, name: &str) -> Option<Slab> {
    let mut object = value.plugin(Class::Shape)?;
    let to_world = transform::to_f32(transform::read(&mut object, "to_world"));
    let thickness = object.require_number("thickness", "the distance of its flat side from height zero");
    let heights = object.require("heights", "a `bitmap` of heights");
    let heights = heights.and_then(|value| self::heights(&value, name));
    let glass = glass(&mut object);
    object.finish();
    let (eta, transmittance) = glass?;
    Some(Slab {
        name: name.to_string(),
        to_world,
        thickness: thickness? as f32,
        heights: heights?,
        eta,
        transmittance,
    })
}

fn heights(value: &Value<'_>, name: &str) -> Option<Array> {
    let found = texture::read_scalar(value, Quantity::Elevation)?;
    let Texture::Bitmap(map) = found else {
        value.error(
            "the heights of a slab are no `bitmap`",
            "give one, with `data` or a `filename`",
        );
        return None;
    };
    if map.wrap != Wrap::Clamp || map.nearest || map.to_uv != Affine2::IDENTITY {
        let advice = "give the `wrap_mode` `clamp`, and neither `to_uv` nor the `filter_type` `nearest`";
        value.error(
            "the heights of a slab are one smooth surface that ends at its rim",
            advice,
        );
        return None;
    }
    Some(Array {
        path: format!("{name}.heights"),
        ..map.data
    })
}

/// Relative index of refraction and transmittance of the slab's BSDF, which must be a smooth `dielectric`.
fn glass(object: &mut Object<'_>) -> Option<(f32, [f32; 3])> {
    let found = object.nested_named(Class::Bsdf);
    let Some((_, value)) = found else {
        object.error("the slab has no material", "give it a `dielectric`");
        return None;
    };
    let nested = bsdf::read(&value)?;
    let Bsdf::Material(
        material @ Material {
            model: Model::Dielectric,
            ..
        },
    ) = &nested.bsdf
    else {
        let what = format!("a slab of `{}`", nested.bsdf.name());
        value.error(what, "light is traced through smooth glass: give it a `dielectric`");
        return None;
    };
    let [eta, reflected, passed] = ["eta", "specular_reflectance", "specular_transmittance"].map(|key| {
        let input = material.inputs.iter().find(|input| input.key == key)?;
        match &input.texture {
            Texture::Constant(array) => match &array.source {
                Source::Fill(values) => Some([0, 1, 2].map(|c| values[c % values.len()])),
                _ => None,
            },
            _ => None,
        }
    });
    let (Some([eta, ..]), Some(reflected), Some(passed)) = (eta, reflected, passed) else {
        value.error(
            "the glass of a slab varies over it",
            "give numbers or colours in place of textures",
        );
        return None;
    };
    if eta <= 1.0 {
        value.error(
            format!("the slab's index is {eta} times that around it"),
            "expected more than 1: exchange `int_ior` and `ext_ior`, or take a denser glass",
        );
        return None;
    }
    if reflected != [0.0; 3] {
        value.error(
            "the slab reflects light",
            "only what passes it is traced: give the `specular_reflectance` 0",
        );
        return None;
    }
    Some((eta, passed))
}
