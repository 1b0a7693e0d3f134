//! Integrators: `volpath`, `prbvolpath`, `advolpath`, `rbvolpath`.

use super::object::Object;
use super::reader::{Limit, Value};
use super::vocabulary::Class;
use super::{Estimator, Gradient, Integrator, Variant};

/// Mitsuba's default `max_depth` of differentiable integrators, in edges.
const DEFAULT_DEPTH: u32 = 6;

/// The integrator.
pub(super) fn read(value: &Value<'_>) -> Option<Integrator> {
    let mut object = value.plugin(Class::Integrator)?;
    let (estimator, default_depth) = match object.name {
        "volpath" => (Estimator::PathReplay, None),
        "prbvolpath" => (Estimator::PathReplay, Some(DEFAULT_DEPTH)),
        "advolpath" => (Estimator::Tape, Some(DEFAULT_DEPTH)),
        _ => (Estimator::Radiative(variant(&mut object)), Some(DEFAULT_DEPTH)),
    };
    let max_depth = max_depth(&mut object, default_depth);
    let rr_depth = object.integer("rr_depth", 5);
    let hide_emitters = object.boolean("hide_emitters", false);
    let gradient = gradient(&mut object, estimator);
    object.finish();
    Some(Integrator {
        estimator,
        max_depth,
        rr_depth,
        hide_emitters,
        gradient,
    })
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
