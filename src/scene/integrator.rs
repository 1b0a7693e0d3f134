//! Integrators: how a name of Mitsuba's, or of ours, lets paths grow and sends their derivatives.

use super::diagnostics::suggest;
use super::object::Object;
use super::reader::{Limit, Value};
use super::reference::is_name_char;
use super::vocabulary::Class;
use super::{Aov, AovKind, Channels, Estimator, Gradient, Integrator, Rules, Variant};

/// Mitsuba's default `max_depth` of differentiable integrators, in edges.
const DEFAULT_DEPTH: u32 = 6;

/// What Jacobians of rays are made regular by (Vicini2021, section 4.2).
const REGULARIZATION: f32 = 0.01;

/// The longest path of `direct`: from the camera to a surface, and to a light.
const DIRECT_DEPTH: u32 = 2;

/// The integrator, and what pictures show beside its radiance.
pub(super) fn read(value: &Value<'_>) -> Option<(Integrator, Channels)> {
    let mut object = value.plugin(Class::Integrator)?;
    let mut channels = Channels::default();
    match object.name {
        "aov" => {
            channels.aovs = aovs(&mut object);
            let nested = object.nested_named(Class::Integrator);
            object.finish();
            let (integrator, inner) = nested.map_or(Some(Default::default()), |(_, value)| read(&value))?;
            if inner != Channels::default() {
                let advice = "list what they show in `aovs`, and put a light's integrator into it";
                value.error("an `aov` around an `aov`, a `depth` or a `moment`", advice);
            }
            Some((integrator, channels))
        }
        "moment" => {
            let nested = object.nested_named(Class::Integrator);
            object.finish();
            let Some((name, nested)) = nested else {
                value.error(
                    "a `moment` around nothing",
                    "put the integrator into it whose moments are wanted",
                );
                return None;
            };
            let (integrator, inner) = read(&nested)?;
            if inner != Channels::default() || integrator.rules == Rules::Light {
                let advice = "put an integrator into it that follows light from the camera, such as `path`";
                nested.error("single samples here have no radiance of their own", advice);
            }
            channels.moments = Some(name.to_owned());
            Some((integrator, channels))
        }
        "depth" => {
            object.finish();
            channels.depth = true;
            Some((Integrator::default(), channels))
        }
        _ => Some((light(object)?, channels)),
    }
}

/// The parameter `aovs`: names and kinds, separated by commas.
fn aovs(object: &mut Object<'_>) -> Vec<Aov> {
    let words = AovKind::ALL.map(|(word, _)| word);
    let Some(value) = object.require("aovs", "channels, such as \"dd:depth, nn:sh_normal\"") else {
        return Vec::new();
    };
    let mut found: Vec<Aov> = Vec::new();
    for part in value.string().unwrap_or_default().split(',') {
        let (name, word) = part.split_once(':').unwrap_or(("", part));
        let (name, word) = (name.trim(), word.trim());
        let kind = AovKind::ALL.iter().find(|(known, _)| *known == word);
        let named = !name.is_empty() && name.chars().all(is_name_char) && found.iter().all(|aov| aov.name != name);
        match kind {
            Some((_, kind)) if named => found.push(Aov {
                name: name.to_string(),
                kind: *kind,
            }),
            Some(_) => value.error(
                format!("{part:?} has no name of its own"),
                format!("write a name of letters, digits, `_` and `-`, such as \"surface:{word}\""),
            ),
            None => value.error(format!("unknown channel {word:?}"), suggest(word, &words)),
        }
    }
    found
}

/// An integrator of light.
fn light(mut object: Object<'_>) -> Option<Integrator> {
    let (rules, estimator) = match object.name {
        "path" | "direct" => (Rules::Path, Estimator::PathReplay),
        "prb" | "prb_attached" => (Rules::Prb, Estimator::PathReplay),
        "prb_basic" => (Rules::Basic, Estimator::PathReplay),
        "ad" => (Rules::Prb, Estimator::Tape),
        "rb" => (Rules::Prb, Estimator::Radiative(variant(&mut object))),
        "ptracer" => (Rules::Light, Estimator::PathReplay),
        "advolpath" => (Rules::Volpath, Estimator::Tape),
        "rbvolpath" => (Rules::Volpath, Estimator::Radiative(variant(&mut object))),
        _ => (Rules::Volpath, Estimator::PathReplay),
    };
    let attached = object.name == "prb_attached";
    let inverted = attached.then(|| inverted(&mut object)).flatten();
    let max_depth = match object.name {
        "direct" => {
            sample_counts(&mut object);
            Some(DIRECT_DEPTH)
        }
        "path" | "volpath" | "volpathmis" | "ptracer" => max_depth(&mut object, None),
        _ => max_depth(&mut object, Some(DEFAULT_DEPTH)),
    };
    let rr_depth = match object.name {
        "direct" => 5,
        _ => object.integer("rr_depth", 5),
    };
    if object.name == "volpathmis" {
        object.boolean("use_spectral_mis", true);
    }
    let hide_emitters = object.boolean("hide_emitters", false);
    let gradient = match rules {
        Rules::Volpath => gradient(&mut object, estimator),
        Rules::Path | Rules::Prb | Rules::Basic | Rules::Light => Gradient::Auto,
    };
    object.finish();
    Some(Integrator {
        rules,
        estimator,
        max_depth,
        rr_depth,
        hide_emitters,
        gradient,
        attached,
        inverted,
    })
}

/// How far Jacobians of rays are made regular; None where chains are kept instead.
fn inverted(object: &mut Object<'_>) -> Option<f32> {
    let inverts = object.choice("jacobians", &[("kept", false), ("inverted", true)], false);
    let Some(value) = object.get("regularization") else {
        return inverts.then_some(REGULARIZATION);
    };
    if !inverts {
        let advice = "remove it, or say \"jacobians\": \"inverted\"";
        object.error("`regularization` is for Jacobians that are inverted", advice);
    }
    let regularization = value.number(Limit::NonNegative).map_or(REGULARIZATION, |x| x as f32);
    inverts.then_some(regularization)
}

/// The samples of `direct` at a surface, of which one each is taken: more samples a pixel do the same.
fn sample_counts(object: &mut Object<'_>) {
    let counts = ["shading_samples", "emitter_samples", "bsdf_samples"].map(|key| object.integer(key, 1));
    if counts.iter().any(|count| *count > 1) {
        object.value.context.warn(
            "`direct` takes one sample of the lights and one of the BSDF: raise `sample_count` instead of their numbers",
        );
    }
}

fn variant(object: &mut Object<'_>) -> Variant {
    let words = [
        ("unbiased", Variant::Unbiased),
        ("biased", Variant::Biased),
        ("pipelined", Variant::Pipelined),
        ("biased_pipelined", Variant::BiasedPipelined),
    ];
    object.choice("variant", &words, Variant::default())
}

/// The gradient estimator. A tape differentiates the primal walk, which samples free flights.
fn gradient(object: &mut Object<'_>, estimator: Estimator) -> Gradient {
    let words = [
        ("auto", Gradient::Auto),
        ("paired", Gradient::Paired),
        ("drt", Gradient::Drt),
        ("free_flight", Gradient::FreeFlight),
    ];
    let gradient = object.choice("gradient", &words, Gradient::default());
    if estimator == Estimator::Tape && matches!(gradient, Gradient::Paired | Gradient::Drt) {
        let advice = "remove `gradient`: a tape differentiates the walk as it is, which is `free_flight`";
        object.error("`advolpath` has no differential tracking", advice);
    }
    gradient
}

/// An integer, or -1 for no limit.
fn max_depth(object: &mut Object<'_>, default: Option<u32>) -> Option<u32> {
    let Some(value) = object.get("max_depth") else {
        return default;
    };
    let Some(depth) = value.number(Limit::Any) else {
        return default;
    };
    if depth.fract() != 0.0 || !(-1.0..=f64::from(i32::MAX)).contains(&depth) {
        let advice = "expected a whole number of edges from 0, or -1 for no limit";
        value.error(format!("the value {depth} is not possible"), advice);
        return default;
    }
    (depth >= 0.0).then_some(depth as u32)
}
