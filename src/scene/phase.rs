//! Phase functions: `isotropic`, `hg`, `rayleigh`, `blendphase`.

use super::object::Object;
use super::quantity::Quantity;
use super::reader::Value;
use super::vocabulary::Class;
use super::{Phase, lookup};

/// Mitsuba's default.
const DEFAULT_G: f32 = 0.8;

/// Largest nesting depth of blends: references can build trees of exponential size.
const MAX_BLENDS: u32 = 4;

/// The phase function nested in the medium at `path`; isotropic by default.
pub(super) fn nested(medium: &mut Object<'_>, path: &str) -> Phase {
    let found = medium.nested_named(Class::Phase);
    found
        .and_then(|(key, value)| read(&value, &format!("{path}.{key}"), MAX_BLENDS))
        .unwrap_or(Phase::Isotropic)
}

/// The phase function at `value`, which is used at `path` and has at most `blends` blends below one another.
fn read(value: &Value<'_>, path: &str, blends: u32) -> Option<Phase> {
    let mut object = value.plugin(Class::Phase)?;
    let phase = match object.name {
        "isotropic" => Some(Phase::Isotropic),
        "rayleigh" => Some(Phase::Rayleigh),
        "hg" => {
            let g = object.number("g", DEFAULT_G);
            let g = lookup::value(format!("{path}.g"), vec![g]);
            Some(Phase::Hg { g })
        }
        _ if blends == 0 => {
            value.error(
                format!("more than {MAX_BLENDS} blends inside one another"),
                "blend fewer phase functions",
            );
            return None;
        }
        _ => blend(&mut object, path, blends - 1),
    };
    object.finish();
    phase
}

/// Two phase functions in the order of the file. Only the second may be a blend, since walks descend into second parts alone.
fn blend(object: &mut Object<'_>, path: &str, blends: u32) -> Option<Phase> {
    let weight = object
        .require(
            "weight",
            "the weight of the second phase function, a number or a volume",
        )
        .and_then(|value| lookup::read_scalar(&value, &format!("{path}.weight"), Quantity::Weight));
    let nested = object.nested_all(Class::Phase);
    let phases: Vec<_> = nested
        .iter()
        .map(|(key, value)| read(value, &format!("{path}.{key}"), blends))
        .collect();
    let Ok([first, second]) = <[Option<Phase>; 2]>::try_from(phases) else {
        object.error(
            format!("a `blendphase` of {} phase functions", nested.len()),
            "nest two, of which the second has the `weight`",
        );
        return None;
    };
    if matches!(first, Some(Phase::Blend { .. })) {
        object.error(
            "a `blendphase` whose first part is a blend".to_string(),
            "let only the second be one: exchange them, and take one less the `weight`",
        );
        return None;
    }
    Some(Phase::Blend {
        weight: Box::new(weight?),
        phases: Box::new([first?, second?]),
    })
}
