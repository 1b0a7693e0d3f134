//! BSDFs: `null`, materials, and those that contain others: `twosided`, `mask`, `blendbsdf`, `normalmap`, `bumpmap`.

use super::object::Object;
use super::quantity::Quantity;
use super::reader::Value;
use super::vocabulary::Class;
use super::world::{Model, Relief};
use super::{Bsdf, NestedBsdf, Source, Texture, material, texture};

/// Mitsuba's defaults.
const DEFAULT_REFLECTANCE: f32 = 0.5;
const DEFAULT_OPACITY: f32 = 0.5;

/// BSDFs can be nested to this depth.
pub(super) const MAX_NESTING: usize = 8;

/// The default of a shape: grey, or black for an emitter. `path` is where it would stand.
pub(super) fn default(path: &str, emits: bool) -> Bsdf {
    let grey = if emits { 0.0 } else { DEFAULT_REFLECTANCE };
    Bsdf::diffuse(Texture::constant(&format!("{path}.reflectance"), &[grey; 3]))
}

/// The BSDF at `value` and its path; that of its target if it is a reference.
pub(super) fn read(value: &Value<'_>) -> Option<NestedBsdf> {
    read_nested(value, 0)
}

fn read_nested(value: &Value<'_>, nesting: usize) -> Option<NestedBsdf> {
    if nesting > MAX_NESTING {
        let advice = format!("at most {MAX_NESTING} BSDFs may stand in each other");
        value.error("BSDFs are nested too deeply", advice);
        return None;
    }
    let mut object = value.plugin(Class::Bsdf)?;
    let path = object.value.path.clone();
    let bsdf = match object.name {
        "null" => Some(Bsdf::Null),
        "twosided" => two_sided(&mut object, nesting),
        "mask" => mask(&mut object, nesting),
        "blendbsdf" => blend(&mut object, nesting),
        "normalmap" => normal_map(&mut object, nesting),
        "bumpmap" => bump_map(&mut object, nesting),
        name => {
            let model = Model::ALL.into_iter().find(|model| model.name() == name);
            model.map(|model| Bsdf::Material(material::read(model, &mut object)))
        }
    };
    object.finish();
    Some(NestedBsdf { path, bsdf: bsdf? })
}

/// The weight `key` in [0, 1], a number or a texture; None if it is mistaken.
fn share(object: &Object<'_>, key: &'static str, given: Option<Value<'_>>, default: f32) -> Option<Texture> {
    match given {
        Some(value) => clamped_share(&value),
        None => Some(Texture::constant(&format!("{}.{key}", object.value.path), &[default])),
    }
}

/// A number in [0, 1], or a texture, which Mitsuba clamps as it is looked up: the values of an image are clamped as they are read.
fn clamped_share(value: &Value<'_>) -> Option<Texture> {
    let mut texture = texture::read_scalar(value, Quantity::Weight)?;
    clamp_images(&mut texture);
    Some(texture)
}

/// Makes shares of the images of a texture, also of those in the squares of a checkerboard.
fn clamp_images(texture: &mut Texture) {
    match texture {
        Texture::Bitmap(map) => {
            if let Source::Reflectance { path, raw } = &map.data.source {
                let (path, raw) = (path.clone(), *raw);
                map.data.source = Source::Share { path, raw };
            }
        }
        Texture::Squares { textures, .. } => textures.iter_mut().for_each(clamp_images),
        _ => {}
    }
}

/// The nested BSDFs in the order of the file, as many as `counts` allows.
fn parts(object: &mut Object<'_>, nesting: usize, counts: std::ops::RangeInclusive<usize>) -> Option<Vec<NestedBsdf>> {
    let named = object.nested_all(Class::Bsdf);
    if !counts.contains(&named.len()) {
        let expected = match (counts.start(), counts.end()) {
            (1, 1) => "one BSDF".to_string(),
            (low, high) if low == high => format!("{low} BSDFs"),
            (low, high) => format!("{low} or {high} BSDFs"),
        };
        let what = format!("`{}` holds {} BSDFs", object.name, named.len());
        object.error(what, format!("expected {expected}"));
        return None;
    }
    let read: Vec<_> = named.iter().map(|(_, value)| read_nested(value, nesting + 1)).collect();
    read.into_iter().collect()
}

fn two_sided(object: &mut Object<'_>, nesting: usize) -> Option<Bsdf> {
    let sides = parts(object, nesting, 1..=2)?;
    if sides.iter().any(|side| passes_light(&side.bsdf)) {
        object.error(
            "a `twosided` BSDF holds one that lets light through",
            "expected BSDFs that only reflect",
        );
        return None;
    }
    Some(Bsdf::TwoSided { sides })
}

/// Whether light gets through to the other side.
fn passes_light(bsdf: &Bsdf) -> bool {
    match bsdf {
        Bsdf::Null | Bsdf::Mask { .. } => true,
        Bsdf::Material(material) => material.transmits(),
        Bsdf::TwoSided { sides } => sides.iter().any(|side| passes_light(&side.bsdf)),
        Bsdf::Blend { nested, .. } => nested.iter().any(|part| passes_light(&part.bsdf)),
        Bsdf::Relief { nested, .. } => passes_light(&nested.bsdf),
    }
}

/// Whether it has a smooth (delta) lobe, whose direction turns with the normal.
pub(super) fn mirrors(bsdf: &Bsdf) -> bool {
    match bsdf {
        Bsdf::Null => false,
        Bsdf::Material(material) => matches!(
            material.model,
            Model::Conductor | Model::Dielectric | Model::ThinDielectric | Model::Plastic
        ),
        Bsdf::TwoSided { sides } => sides.iter().any(|side| mirrors(&side.bsdf)),
        Bsdf::Mask { nested, .. } | Bsdf::Relief { nested, .. } => mirrors(&nested.bsdf),
        Bsdf::Blend { nested, .. } => nested.iter().any(|part| mirrors(&part.bsdf)),
    }
}

/// Whether it contains a normal map or a bump map.
fn has_relief(bsdf: &Bsdf) -> bool {
    match bsdf {
        Bsdf::Null | Bsdf::Material(_) => false,
        Bsdf::TwoSided { sides } => sides.iter().any(|side| has_relief(&side.bsdf)),
        Bsdf::Mask { nested, .. } => has_relief(&nested.bsdf),
        Bsdf::Blend { nested, .. } => nested.iter().any(|part| has_relief(&part.bsdf)),
        Bsdf::Relief { .. } => true,
    }
}

fn normal_map(object: &mut Object<'_>, nesting: usize) -> Option<Bsdf> {
    let given = object.require("normalmap", "a `bitmap` of normals, with `raw` true");
    let texture = given.and_then(|value| texture::read(&value, Quantity::Normal));
    relief(object, nesting, texture, None)
}

fn bump_map(object: &mut Object<'_>, nesting: usize) -> Option<Bsdf> {
    let scale = object.number("scale", 1.0);
    let found = object.nested_named(Class::Texture);
    if found.is_none() {
        object.error(
            "the `bumpmap` has no texture",
            "give a `bitmap` of heights, with `raw` true",
        );
    }
    let texture = found.and_then(|(_, value)| {
        let read = texture::read_scalar(&value, Quantity::Height);
        texture::by_uv(&value, read, "a `bumpmap`")
    });
    relief(object, nesting, texture, Some(scale))
}

fn relief(object: &mut Object<'_>, nesting: usize, texture: Option<Texture>, bump_scale: Option<f32>) -> Option<Bsdf> {
    let flips = object.boolean("flip_invalid_normals", true);
    let shadows = object.boolean("use_shadowing_function", true);
    let nested = Box::new(parts(object, nesting, 1..=1)?.remove(0));
    if has_relief(&nested.bsdf) {
        object.error(
            format!("a `{}` holds another normal map or bump map", object.name),
            "expected one at most: put both into one texture",
        );
        return None;
    }
    Some(Bsdf::Relief {
        relief: Relief {
            texture: texture?,
            bump_scale,
            flips,
            shadows,
        },
        nested,
    })
}

fn mask(object: &mut Object<'_>, nesting: usize) -> Option<Bsdf> {
    let given = object.get("opacity");
    let opacity = share(object, "opacity", given, DEFAULT_OPACITY);
    let nested = Box::new(parts(object, nesting, 1..=1)?.remove(0));
    Some(Bsdf::Mask {
        opacity: opacity?,
        nested,
    })
}

fn blend(object: &mut Object<'_>, nesting: usize) -> Option<Bsdf> {
    let given = object.require(
        "weight",
        "the share of the second BSDF, a number in [0, 1] or a texture",
    );
    let weight = given.and_then(|value| clamped_share(&value));
    let [first, second] = <[NestedBsdf; 2]>::try_from(parts(object, nesting, 2..=2)?).ok()?;
    Some(Bsdf::Blend {
        weight: weight?,
        nested: Box::new([first, second]),
    })
}
