//! `heterogeneous` and `homogeneous`: media that absorb, scatter and emit.

use std::collections::HashMap;

use super::object::Object;
use super::quantity::Quantity;
use super::reader::Value;
use super::vocabulary::Class;
use super::{Medium, lookup, phase, radiance_field};

/// Mitsuba's defaults.
const DEFAULT_SIGMA_T: f32 = 1.0;
const DEFAULT_ALBEDO: f32 = 0.75;

/// The scattering media of a scene. A medium used several times is stored once, under the path of its first use.
#[derive(Debug, Default)]
pub(super) struct Media {
    pub(super) list: Vec<Medium>,
    /// Indices by the first byte of the object in the file; None for objects with mistakes.
    indices: HashMap<usize, Option<usize>>,
}

impl Media {
    /// The index of the medium at `value`, which is used at `path`.
    pub(super) fn read(&mut self, value: &Value<'_>, path: &str) -> Option<usize> {
        let start = value.resolve()?.node.start;
        if let Some(known) = self.indices.get(&start) {
            return *known;
        }
        let index = medium(value, path).map(|medium| {
            self.list.push(medium);
            self.list.len() - 1
        });
        self.indices.insert(start, index);
        index
    }
}

/// Checks the `medium` in which an emitter says that it stands. Nothing follows from it: paths know the medium at their end from
/// the boundaries that they have crossed.
pub(super) fn check_stated(object: &mut Object<'_>) {
    if let Some(value) = object.get("medium") {
        Media::default().read(&value, &value.path);
    }
}

fn medium(value: &Value<'_>, path: &str) -> Option<Medium> {
    let mut object = value.plugin(Class::Medium)?;
    if object.name == radiance_field::TYPE {
        value.error(
            "a `radiance_field` does not scatter light",
            "it stands only in a `cube`, as `interior`; allowed here: `heterogeneous`, `homogeneous`",
        );
        return None;
    }
    let at = |key: &str| format!("{path}.{key}");
    let mut volume = |key: &'static str, default: f32, quantity: Quantity| {
        let given = object.get(key);
        let read = given.as_ref().and_then(|v| lookup::read(v, &at(key), quantity));
        (read.unwrap_or_else(|| lookup::constant(&at(key), default)), given)
    };
    let (sigma_t, given) = volume("sigma_t", DEFAULT_SIGMA_T, Quantity::Extinction);
    let (albedo, _) = volume("albedo", DEFAULT_ALBEDO, Quantity::Albedo);
    if let Some(given) = given.filter(|_| object.name == "homogeneous" && !sigma_t.constant) {
        given.error(
            "`sigma_t` of a `homogeneous` medium varies",
            "give a number or a colour, or make the medium `heterogeneous`",
        );
    }
    let emission = emission(&mut object, &at("emission"));
    let scale = object.number("scale", 1.0);
    let phase = phase::nested(&mut object, path);
    object.only("sample_emitters", true);
    object.only("has_spectral_extinction", true);
    let homogeneous = object.name == "homogeneous";
    object.finish();
    Some(Medium {
        path: path.to_string(),
        homogeneous,
        sigma_t,
        albedo,
        emission,
        scale,
        phase,
    })
}

fn emission(object: &mut Object<'_>, path: &str) -> Option<super::Lookup> {
    let value = object.get("emission")?;
    let read = lookup::read(&value, path, Quantity::Emission);
    Some(read.unwrap_or_else(|| lookup::constant(path, 0.0)))
}
