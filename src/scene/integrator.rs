//! Integrators: for each type, of Mitsuba's or of ours, the rules of path construction and the estimator of derivatives.

use super::diagnostics::suggest;
use super::object::Object;
use super::reader::{Limit, Value};
use super::reference::is_name_char;
use super::vocabulary::Class;

/// Mitsuba's default `max_depth` of differentiable integrators, in edges.
const DEFAULT_DEPTH: u32 = 6;

/// Default of what is added, with either sign, to the diagonals of rays' Jacobians (Vicini2021, section 4.2).
const REGULARIZATION: f32 = 0.01;

/// The longest path of `direct`: from the camera to a surface, and to a light.
const DIRECT_DEPTH: u32 = 2;

/// The light transport algorithm.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Integrator {
    pub rules: Rules,
    pub estimator: Estimator,
    /// Longest path in edges; None for no limit.
    pub max_depth: Option<u32>,
    /// Depth in edges beyond which Russian roulette may end a path; of [`Rules::Path`] from it on.
    pub rr_depth: u32,
    /// Emitters are invisible to the camera.
    pub hide_emitters: bool,
    pub gradient: Gradient,
    /// Whether points along chains of smooth glass and mirrors move with the parameters (`prb_attached`).
    pub attached: bool,
    /// If derivatives by these points are carried by inverted Jacobians of rays, the `regularization` that is added to the
    /// Jacobians' diagonals; None: the vertices of chains are kept instead.
    pub inverted: Option<f32>,
}

impl Default for Integrator {
    fn default() -> Self {
        Self {
            rules: Rules::Volpath,
            estimator: Estimator::PathReplay,
            max_depth: None,
            rr_depth: 5,
            hide_emitters: false,
            gradient: Gradient::Auto,
            attached: false,
            inverted: None,
        }
    }
}

/// What a picture shows beside radiance, or in its place.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Channels {
    /// Channels of the integrator `aov`, in the order of the file.
    pub aovs: Vec<Aov>,
    /// The integrator `depth`: the picture shows how far away surfaces are.
    pub depth: bool,
    /// The integrator `moment`: means of X, Y and Z of single samples and of their squares, under the name of the integrator
    /// nested in it.
    pub moments: Option<String>,
}

/// Channels that show a property of the first surfaces that camera rays hit, and their name.
#[derive(Debug, Clone, PartialEq)]
pub struct Aov {
    pub name: String,
    pub kind: AovKind,
}

/// The property of a surface that an [`Aov`] shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AovKind {
    Albedo,
    Depth,
    Position,
    Uv,
    GeoNormal,
    ShNormal,
    DpDu,
    DpDv,
    DuvDx,
    DuvDy,
    PrimIndex,
    ShapeIndex,
}

impl AovKind {
    /// All of them, by their names in Mitsuba.
    pub const ALL: [(&'static str, Self); 12] = [
        ("albedo", Self::Albedo),
        ("depth", Self::Depth),
        ("position", Self::Position),
        ("uv", Self::Uv),
        ("geo_normal", Self::GeoNormal),
        ("sh_normal", Self::ShNormal),
        ("dp_du", Self::DpDu),
        ("dp_dv", Self::DpDv),
        ("duv_dx", Self::DuvDx),
        ("duv_dy", Self::DuvDy),
        ("prim_index", Self::PrimIndex),
        ("shape_index", Self::ShapeIndex),
    ];

    /// Its name in Mitsuba.
    pub fn word(self) -> &'static str {
        let found = Self::ALL.iter().find(|(_, kind)| *kind == self);
        found.expect("all of them have names").0
    }

    /// The suffixes of its channels' names.
    pub fn channels(self) -> &'static [&'static str] {
        match self {
            Self::Albedo => &["R", "G", "B"],
            Self::Depth => &["T"],
            Self::Uv | Self::DuvDx | Self::DuvDy => &["U", "V"],
            Self::Position | Self::GeoNormal | Self::ShNormal | Self::DpDu | Self::DpDv => &["X", "Y", "Z"],
            Self::PrimIndex | Self::ShapeIndex => &["I"],
        }
    }
}

/// The rules of path construction of Mitsuba's integrators of these names. Except by [`Self::Volpath`], media are ignored, and
/// a surface that light passes straight through ends an edge of the path and casts a shadow, like any other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Rules {
    /// Media scatter, and a surface that light passes straight through ends no edge.
    #[default]
    Volpath,
    /// Russian roulette begins with the edge `rr_depth`, and alpha looks through surfaces that light passes straight through.
    Path,
    /// Russian roulette begins after the edge `rr_depth`, as by [`Self::Volpath`]; alpha takes all surfaces for opaque, as by those
    /// below.
    Prb,
    /// No next-event estimation and no Russian roulette.
    Basic,
    /// Light tracing: paths begin at lights.
    Light,
}

/// The estimator of derivatives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Estimator {
    /// Path replay backpropagation: all names but the following.
    #[default]
    PathReplay,
    /// Conventional reverse-mode differentiation of the same walk, recorded on a tape: `ad` and `advolpath`.
    Tape,
    /// Radiative backpropagation: `rb` and `rbvolpath`.
    Radiative(Variant),
}

impl Estimator {
    /// Whether an iteration renders along the paths of its adjoint pass, which uses the previous iteration's adjoint
    /// image.
    pub fn is_pipelined(self) -> bool {
        matches!(self, Self::Radiative(Variant::Pipelined | Variant::BiasedPipelined))
    }
}

/// The approximations of radiative backpropagation (NimierDavid2020, section 3.8).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Variant {
    /// None: an independent path estimates the incident radiance at every interaction.
    #[default]
    Unbiased,
    /// No such paths: in-scattered radiance is replaced by one.
    Biased,
    /// No primal pass: it is merged into the adjoint pass, which uses the previous iteration's adjoint image.
    Pipelined,
    /// Both.
    BiasedPipelined,
}

/// The estimator of derivatives by extinction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Gradient {
    /// Chosen by the scene: [`Self::Paired`] with a background, else [`Self::Drt`]; for a tape
    /// [`Self::FreeFlight`].
    #[default]
    Auto,
    /// At the collisions of free-flight sampling.
    FreeFlight,
    /// Differential ratio tracking.
    Drt,
    /// Paired points: differential tracking along the flight, with transmitted and in-scattered radiance at the same
    /// point.
    Paired,
}

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
        let is_new = found.iter().all(|aov| aov.name != name);
        let named = !name.is_empty() && name.chars().all(|c| is_name_char(c) || c == '.');
        match kind {
            Some(_) if named && !is_new => value.error(
                format!("two channels have the name {name:?}"),
                "give each a name of its own",
            ),
            Some((_, kind)) if named => found.push(Aov {
                name: name.to_string(),
                kind: *kind,
            }),
            Some(_) => value.error(
                match name {
                    "" => format!("{part:?} has no name"),
                    _ => format!("the name of {part:?} has other characters"),
                },
                format!("write a name of letters, digits, `_`, `-` and `.`, such as \"surface:{word}\""),
            ),
            None => value.error(format!("unknown channel {word:?}"), suggest(word, &words)),
        }
    }
    found
}

/// An integrator that computes radiance.
fn light(mut object: Object<'_>) -> Option<Integrator> {
    let (rules, estimator) = match object.name {
        "path" => (Rules::Path, Estimator::PathReplay),
        "direct" => (direct_rules(&mut object), Estimator::PathReplay),
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
        "direct" => Some(DIRECT_DEPTH),
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

/// The `regularization` of rays' Jacobians; None where the vertices of chains are kept instead.
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

/// The rules by which `direct` is a path: one sample of the lights, or none, and one of the BSDF are taken at a surface. Larger
/// numbers give a warning, since more samples per pixel have the same effect.
fn direct_rules(object: &mut Object<'_>) -> Rules {
    let shading = object.integer("shading_samples", 1);
    let [emitter, bsdf] = ["emitter_samples", "bsdf_samples"].map(|key| object.integer(key, shading));
    if emitter.max(bsdf) > 1 {
        object.value.context.warn(
            "`direct` takes one sample of the lights and one of the BSDF: raise `sample_count` instead of their numbers",
        );
    }
    match (emitter, bsdf) {
        (0, 0) => object.error(
            "`direct` without samples",
            "let `emitter_samples` or `bsdf_samples` be 1",
        ),
        (_, 0) => {
            let told = "`direct` samples the BSDF also where `bsdf_samples` is 0, which shows lights in mirrors";
            object.value.context.warn(told);
        }
        _ => {}
    }
    match emitter {
        0 => Rules::Basic,
        _ => Rules::Prb,
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
