//! What objects and blocks of a scene file may hold: the one place that readers take limits from, that unknown
//! parameters are told by, and that the schema is made of.

use super::film::MAX_SIDE;
use super::reader::Limit;
use super::sampler::MAX_SPP;
use super::vocabulary::Class;

/// The form of a value.
#[derive(Debug, Clone, Copy)]
pub(super) enum Form {
    Number(Limit),
    /// A whole number between two others, both included.
    Integer(u64, u64),
    Boolean,
    Words(&'static [&'static str]),
    Text,
    File,
    /// This many numbers.
    Vector(usize),
    /// Only one value is possible so far: JSON.
    Only(&'static str),
    /// A transform of space, or of a texture's plane.
    Space,
    Plane,
    /// A number, three numbers, or an `rgb`.
    Color(Limit),
    /// A number, or one a channel.
    Values(Limit),
    /// A volume, or what stands for one.
    Volume(Limit),
    /// Texels along two or three axes, or one number for all three.
    Resolution(usize),
    /// Two numbers, or null for no bound.
    Bounds,
    /// An object of a class, or a reference to one.
    Object(Class),
    /// A block by its key in [`BLOCKS`].
    Block(&'static str),
    /// One of the kinds of a group of [`VARIANTS`].
    Variant(&'static str),
    List(&'static Form),
    /// An object whose names are free.
    Map(&'static Form),
    OneOf(&'static [Form]),
}

/// A parameter.
#[derive(Debug)]
pub(super) struct Parameter {
    pub(super) key: &'static str,
    pub(super) form: Form,
    pub(super) required: bool,
}

/// An object or a block.
#[derive(Debug)]
pub(super) struct Definition {
    /// Its type, or what it is called in messages.
    pub(super) name: &'static str,
    pub(super) parameters: &'static [Parameter],
    /// Classes whose objects may stand in it under any name.
    pub(super) nested: &'static [Class],
}

impl Definition {
    /// The form of a parameter.
    ///
    /// # Panics
    /// If there is none of that name: a reader must not ask for what no one may write.
    pub(super) fn form(&self, key: &str) -> Form {
        let found = self.parameters.iter().find(|parameter| parameter.key == key);
        found
            .unwrap_or_else(|| panic!("`{}` defines no parameter `{key}`", self.name))
            .form
    }
}

const fn may(key: &'static str, form: Form) -> Parameter {
    Parameter {
        key,
        form,
        required: false,
    }
}

const fn must(key: &'static str, form: Form) -> Parameter {
    Parameter {
        key,
        form,
        required: true,
    }
}

const fn plain(name: &'static str, parameters: &'static [Parameter]) -> Definition {
    Definition {
        name,
        parameters,
        nested: &[],
    }
}

const ANY: Form = Form::Number(Limit::Any);
const POSITIVE: Form = Form::Number(Limit::Positive);
const NOT_NEGATIVE: Form = Form::Number(Limit::NonNegative);
const SIDE: Form = Form::Integer(1, MAX_SIDE as u64);
const COUNT: Form = Form::Integer(0, u32::MAX as u64);
const SAMPLES: Form = Form::Integer(1, MAX_SPP as u64);
const LIGHT: Form = Form::Color(Limit::NonNegative);
const SHARE: Limit = Limit::Within(0.0, 1.0);
const DECAY: Form = Form::Number(Limit::Within(0.0, 0.999_999));
const FILTER_WIDTH: Form = Form::Number(super::film::FILTER_WIDTH);
const COLOR_SPACE: Form = Form::Words(&["linear", "srgb"]);
const BACKDROP: Form = Form::OneOf(&[
    Form::Words(&["none", "white", "black", "random"]),
    Form::Color(Limit::Any),
]);
const GRID_FILTER: Form = Form::Words(&["trilinear", "nearest"]);
const WRAP: Form = Form::Words(&["repeat", "mirror", "clamp"]);
const REFLECTANCE: Form = Form::OneOf(&[Form::Color(SHARE), Form::Object(Class::Texture)]);

const GRADIENT: Form = Form::Words(&["auto", "paired", "drt", "free_flight"]);
const MAX_DEPTH: Form = Form::Number(Limit::Within(-1.0, i32::MAX as f64));
const RR_DEPTH: Form = Form::Integer(1, i32::MAX as u64);

/// What every integrator may hold.
const INTEGRATOR: &[Parameter] = &[
    may("max_depth", MAX_DEPTH),
    may("rr_depth", RR_DEPTH),
    may("hide_emitters", Form::Boolean),
    may("gradient", GRADIENT),
];

macro_rules! shape {
    ($name:literal $(, $parameter:expr)*) => {
        Definition {
            name: $name,
            parameters: &[
                may("to_world", Form::Space),
                may("flip_normals", Form::Boolean),
                may("interior", Form::Object(Class::Medium)),
                may("exterior", Form::Object(Class::Medium)),
                $($parameter),*
            ],
            nested: &[Class::Bsdf, Class::Emitter],
        }
    };
}

macro_rules! medium {
    ($name:literal) => {
        Definition {
            name: $name,
            parameters: &[
                may("sigma_t", Form::Volume(Limit::NonNegative)),
                may("albedo", Form::Volume(SHARE)),
                may("emission", Form::Volume(Limit::NonNegative)),
                may("scale", NOT_NEGATIVE),
                may("sample_emitters", Form::Only("true")),
                may("has_spectral_extinction", Form::Only("true")),
            ],
            nested: &[Class::Phase],
        }
    };
}

/// Objects with a type, by class.
pub(super) static PLUGINS: &[(Class, Definition)] = &[
    (Class::Bsdf, plain("null", &[])),
    (Class::Bsdf, plain("diffuse", &[may("reflectance", REFLECTANCE)])),
    (
        Class::Dataset,
        Definition {
            name: "dataset",
            parameters: &[
                must("filename", Form::File),
                may("skip_missing", Form::Boolean),
                may("downscale", SIDE),
                may("hold_out", COUNT),
                may("held_out", Form::Boolean),
                may("background", BACKDROP),
                may("color_space", COLOR_SPACE),
                may("to_world", Form::Space),
                may("near_clip", POSITIVE),
                may("far_clip", POSITIVE),
            ],
            nested: &[Class::Filter, Class::Sampler],
        },
    ),
    (Class::Emitter, plain("constant", &[may("radiance", LIGHT)])),
    (
        Class::Emitter,
        plain(
            "envmap",
            &[
                may("filename", Form::File),
                may("data", Form::Block("data")),
                may("scale", NOT_NEGATIVE),
                may("to_world", Form::Space),
            ],
        ),
    ),
    (Class::Emitter, plain("area", &[may("radiance", LIGHT)])),
    (
        Class::Emitter,
        plain(
            "point",
            &[
                may("intensity", LIGHT),
                may("position", Form::Vector(3)),
                may("to_world", Form::Space),
            ],
        ),
    ),
    (
        Class::Emitter,
        plain(
            "directional",
            &[
                may("irradiance", LIGHT),
                may("direction", Form::Vector(3)),
                may("to_world", Form::Space),
            ],
        ),
    ),
    (
        Class::Emitter,
        plain(
            "spot",
            &[
                may("intensity", LIGHT),
                may("to_world", Form::Space),
                may("cutoff_angle", Form::Number(Limit::Between(0.0, 180.0))),
                may("beam_width", Form::Number(Limit::Within(0.0, 180.0))),
            ],
        ),
    ),
    (
        Class::Film,
        Definition {
            name: "hdrfilm",
            parameters: &[
                may("width", SIDE),
                may("height", SIDE),
                may("color_space", COLOR_SPACE),
                may("crop_offset_x", Form::Only("0")),
                may("crop_offset_y", Form::Only("0")),
                may("crop_width", SIDE),
                may("crop_height", SIDE),
                may("sample_border", Form::Only("false")),
                may("file_format", Form::Only("\"openexr\"")),
                may("pixel_format", Form::Only("\"rgb\"")),
                may("component_format", Form::Only("\"float32\"")),
            ],
            nested: &[Class::Filter],
        },
    ),
    (Class::Filter, plain("box", &[])),
    (Class::Filter, plain("tent", &[may("radius", FILTER_WIDTH)])),
    (Class::Filter, plain("gaussian", &[may("stddev", FILTER_WIDTH)])),
    (Class::Integrator, plain("volpath", INTEGRATOR)),
    (Class::Integrator, plain("prbvolpath", INTEGRATOR)),
    (Class::Integrator, plain("advolpath", INTEGRATOR)),
    (
        Class::Integrator,
        plain(
            "rbvolpath",
            &[
                may("max_depth", MAX_DEPTH),
                may("rr_depth", RR_DEPTH),
                may("hide_emitters", Form::Boolean),
                may("gradient", GRADIENT),
                may(
                    "variant",
                    Form::Words(&["unbiased", "biased", "pipelined", "biased_pipelined"]),
                ),
            ],
        ),
    ),
    (
        Class::Medium,
        plain(
            "radiance_field",
            &[
                must("sigma_t", Form::Volume(Limit::Any)),
                must("sh_coeffs", Form::Volume(Limit::Any)),
                may("sh_degree", Form::Integer(0, 3)),
                may("density_activation", Form::Words(&["relu", "softplus", "exp"])),
                may("color_activation", Form::Words(&["clip", "sigmoid", "relu"])),
                may("step", Form::Number(Limit::Within(1e-3, 1e3))),
                may("stop", Form::Number(Limit::Within(0.0, 0.5))),
            ],
        ),
    ),
    (Class::Medium, medium!("heterogeneous")),
    (Class::Medium, medium!("homogeneous")),
    (Class::Phase, plain("isotropic", &[])),
    (Class::Phase, plain("rayleigh", &[])),
    (
        Class::Phase,
        plain("hg", &[may("g", Form::Number(Limit::Between(-1.0, 1.0)))]),
    ),
    (
        Class::Phase,
        Definition {
            name: "blendphase",
            parameters: &[must("weight", Form::Volume(SHARE))],
            nested: &[Class::Phase],
        },
    ),
    (
        Class::Sampler,
        plain(
            "independent",
            &[may("sample_count", SAMPLES), may("seed", Form::Only("0"))],
        ),
    ),
    (
        Class::Sensor,
        Definition {
            name: "perspective",
            parameters: &[
                may("to_world", Form::Space),
                may("fov", Form::Number(Limit::Between(0.0, 180.0))),
                may("fov_axis", Form::Words(&["x", "y", "diagonal", "smaller", "larger"])),
                may("focal_length", Form::OneOf(&[Form::Text, POSITIVE])),
                may("focal_x", POSITIVE),
                may("focal_y", POSITIVE),
                may("principal_point_offset_x", ANY),
                may("principal_point_offset_y", ANY),
                may("center_x", ANY),
                may("center_y", ANY),
                may("distortion", Form::Block("distortion")),
                may("near_clip", POSITIVE),
                may("far_clip", POSITIVE),
                may("image", Form::OneOf(&[Form::File, Form::Block("image")])),
                may("held_out", Form::Boolean),
                may("medium", Form::Object(Class::Medium)),
            ],
            nested: &[Class::Film, Class::Sampler],
        },
    ),
    (Class::Shape, shape!("cube")),
    (
        Class::Shape,
        shape!("sphere", may("center", Form::Vector(3)), may("radius", POSITIVE)),
    ),
    (Class::Shape, shape!("rectangle")),
    (
        Class::Shape,
        shape!(
            "obj",
            must("filename", Form::File),
            may("face_normals", Form::Boolean),
            may("flip_tex_coords", Form::Boolean)
        ),
    ),
    (
        Class::Shape,
        shape!(
            "ply",
            must("filename", Form::File),
            may("face_normals", Form::Boolean),
            may("flip_tex_coords", Form::Boolean)
        ),
    ),
    (
        Class::Spectrum,
        plain("rgb", &[must("value", Form::OneOf(&[ANY, Form::Vector(3)]))]),
    ),
    (
        Class::Texture,
        plain(
            "bitmap",
            &[
                must("filename", Form::File),
                may("filter_type", Form::Words(&["bilinear", "nearest"])),
                may("wrap_mode", WRAP),
                may("raw", Form::Boolean),
                may("to_uv", Form::Plane),
                may("accel", Form::Boolean),
            ],
        ),
    ),
    (
        Class::Texture,
        plain(
            "checkerboard",
            &[
                may("color0", REFLECTANCE),
                may("color1", REFLECTANCE),
                may("to_uv", Form::Plane),
            ],
        ),
    ),
    (
        Class::Volume,
        plain(
            "gridvolume",
            &[
                may("filename", Form::File),
                may("resolution", Form::Resolution(3)),
                may("value", Form::Values(Limit::Any)),
                may("to_world", Form::Space),
                may("use_grid_bbox", Form::Boolean),
                may("filter_type", GRID_FILTER),
                may("wrap_mode", WRAP),
                may("raw", Form::Boolean),
                may("accel", Form::Boolean),
            ],
        ),
    ),
    (
        Class::Volume,
        plain(
            "constvolume",
            &[may("value", Form::Values(Limit::Any)), may("to_world", Form::Space)],
        ),
    ),
    (
        Class::Volume,
        plain(
            "blobs",
            &[
                must("resolution", Form::Resolution(3)),
                may("base", Form::Values(Limit::Any)),
                must("blobs", Form::List(&Form::Block("blob"))),
                may("to_world", Form::Space),
            ],
        ),
    ),
    (
        Class::Volume,
        plain(
            "plume",
            &[
                must("resolution", Form::Resolution(3)),
                may("seed", Form::Integer(0, u64::MAX)),
                may("value", Form::Values(Limit::Any)),
                may("to_world", Form::Space),
            ],
        ),
    ),
];

/// Objects without a type, by a key.
pub(super) static BLOCKS: &[(&str, Definition)] = &[
    (
        "optimize",
        plain(
            "optimize",
            &[
                must("parameters", Form::Map(&Form::Block("parameter"))),
                may("references", Form::Variant("references")),
                may("iterations", Form::Integer(1, 100_000_000)),
                may("spp", SAMPLES),
                may("spp_grad", SAMPLES),
                may("batch", Form::OneOf(&[Form::Words(&["all"]), Form::Block("batch")])),
                may("loss", Form::Variant("loss")),
                may("optimizer", Form::Variant("optimizer")),
                may("schedule", Form::Variant("schedule")),
                may("stages", Form::List(&Form::Block("stage"))),
                may("regularizers", Form::List(&Form::Block("regularizer"))),
                may("seed", Form::Integer(0, u64::MAX)),
                may("output", Form::Block("output")),
            ],
        ),
    ),
    (
        "parameter",
        plain(
            "parameter",
            &[
                may("learning_rate", POSITIVE),
                may("bounds", Form::Bounds),
                may("initial", Form::OneOf(&[Form::Volume(Limit::Any), Form::File])),
                may(
                    "start_resolution",
                    Form::OneOf(&[Form::Resolution(3), Form::Resolution(2)]),
                ),
            ],
        ),
    ),
    (
        "batch",
        plain(
            "batch",
            &[
                may("views", Form::Integer(1, u32::MAX as u64)),
                may("rays", Form::Integer(1, 1 << 28)),
            ],
        ),
    ),
    (
        "stage",
        plain(
            "stage",
            &[
                must("at", Form::Number(Limit::Between(0.0, 1.0))),
                may("upsample", Form::Integer(1, 8)),
                may("moments", Form::Words(&["reset", "resample"])),
                may("spp", SAMPLES),
                may("spp_grad", SAMPLES),
            ],
        ),
    ),
    (
        "regularizer",
        plain(
            "regularizer",
            &[
                must("type", Form::Words(&["total_variation", "sparsity"])),
                must("parameter", Form::Text),
                must("weight", NOT_NEGATIVE),
                may("every", Form::Integer(1, 1_000_000)),
            ],
        ),
    ),
    (
        "output",
        plain(
            "output",
            &[
                may("images_every", COUNT),
                may("sensors", Form::List(&Form::Text)),
                may("spp", SAMPLES),
                may("checkpoint_seconds", NOT_NEGATIVE),
            ],
        ),
    ),
    (
        "image",
        plain(
            "image",
            &[
                must("filename", Form::File),
                may("downscale", SIDE),
                may("background", BACKDROP),
            ],
        ),
    ),
    (
        "distortion",
        plain(
            "distortion",
            &[
                must("model", Form::Words(&["opencv", "fisheye"])),
                may("k1", ANY),
                may("k2", ANY),
                may("k3", ANY),
                may("k4", ANY),
                may("p1", ANY),
                may("p2", ANY),
            ],
        ),
    ),
    (
        "data",
        plain(
            "data",
            &[
                must("resolution", Form::Resolution(2)),
                may("value", Form::Color(Limit::Any)),
            ],
        ),
    ),
    (
        "blob",
        plain(
            "blob",
            &[
                must("center", Form::Vector(3)),
                must("radius", POSITIVE),
                must("value", Form::Values(Limit::Any)),
            ],
        ),
    ),
    (
        "rotate",
        plain("rotate", &[must("axis", Form::Vector(3)), must("angle", ANY)]),
    ),
    (
        "rotate in the plane",
        plain("rotate", &[may("axis", Form::Vector(3)), must("angle", ANY)]),
    ),
    (
        "look_at",
        plain(
            "look_at",
            &[
                must("origin", Form::Vector(3)),
                must("target", Form::Vector(3)),
                must("up", Form::Vector(3)),
            ],
        ),
    ),
];

/// Kinds of thing of which one is chosen, by its bare name or by an object whose `type` is the name.
pub(super) static VARIANTS: &[(&str, &[Definition])] = &[
    (
        "references",
        &[
            plain("images", &[]),
            plain("scene", &[must("filename", Form::File), may("spp", SAMPLES)]),
            plain("constant", &[must("value", Form::Color(Limit::Any))]),
        ],
    ),
    (
        "loss",
        &[
            plain("l1", &[]),
            plain("l2", &[]),
            plain("huber", &[may("delta", POSITIVE)]),
            plain("relative_l2", &[]),
            plain("log_l1", &[]),
        ],
    ),
    (
        "optimizer",
        &[
            plain(
                "adam",
                &[
                    may("beta_1", DECAY),
                    may("beta_2", DECAY),
                    may("epsilon", POSITIVE),
                    may("mask_updates", Form::Boolean),
                ],
            ),
            plain("sgd", &[may("momentum", DECAY)]),
            plain("rmsprop", &[may("decay", DECAY), may("epsilon", POSITIVE)]),
        ],
    ),
    (
        "schedule",
        &[
            plain("constant", &[WARM_UP]),
            plain("exponential", &[WARM_UP, FINAL_FACTOR]),
            plain("cosine", &[WARM_UP, FINAL_FACTOR]),
        ],
    ),
];

const WARM_UP: Parameter = may("warm_up", COUNT);
const FINAL_FACTOR: Parameter = may("final_factor", Form::Number(Limit::Within(1e-6, 1.0)));

/// The definition of a supported type.
///
/// # Panics
/// If a type of the vocabulary has none.
pub(super) fn plugin(class: Class, name: &str) -> &'static Definition {
    let found = PLUGINS
        .iter()
        .find(|(c, definition)| *c == class && definition.name == name);
    &found.unwrap_or_else(|| panic!("the {class} `{name}` is not defined")).1
}

/// The definition of a block.
///
/// # Panics
/// If there is none.
pub(super) fn block(key: &str) -> &'static Definition {
    let found = BLOCKS.iter().find(|(k, _)| *k == key);
    &found.unwrap_or_else(|| panic!("the block `{key}` is not defined")).1
}

/// The definitions of a group of variants.
///
/// # Panics
/// If there is none.
pub(super) fn variants(group: &str) -> &'static [Definition] {
    let found = VARIANTS.iter().find(|(g, _)| *g == group);
    found
        .unwrap_or_else(|| panic!("the variants of `{group}` are not defined"))
        .1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scene::vocabulary::{self, Known};

    #[test]
    fn every_supported_type_is_defined_and_no_other() {
        for (class, definition) in PLUGINS {
            assert_eq!(
                vocabulary::lookup(definition.name),
                Known::Supported(*class),
                "{}",
                definition.name
            );
        }
        let classes: Vec<Class> = PLUGINS.iter().map(|(class, _)| *class).collect();
        for class in classes {
            for name in vocabulary::supported(class) {
                plugin(class, name);
            }
        }
    }

    #[test]
    fn no_parameter_is_defined_twice() {
        let variants = VARIANTS.iter().flat_map(|(_, all)| all.iter());
        let all = PLUGINS
            .iter()
            .map(|(_, d)| d)
            .chain(BLOCKS.iter().map(|(_, d)| d))
            .chain(variants);
        for definition in all {
            for (i, parameter) in definition.parameters.iter().enumerate() {
                assert!(
                    definition.parameters[..i].iter().all(|p| p.key != parameter.key),
                    "{}.{}",
                    definition.name,
                    parameter.key
                );
            }
        }
    }
}
