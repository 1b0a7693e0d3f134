//! Objects with a type.

use super::*;
use crate::scene::{film, splats};

const LIGHT: Form = Form::Color(Limit::NonNegative);
const SHARE: Limit = Limit::Within(0.0, 1.0);
const FILTER_WIDTH: Form = Form::Number(film::FILTER_WIDTH);
const COLOR_SPACE: Form = Form::Words(&["linear", "srgb"]);
const GRID_FILTER: Form = Form::Words(&["trilinear", "nearest"]);
const WRAP: Form = Form::Words(&["repeat", "mirror", "clamp"]);
const FRACTION: Form = Form::OneOf(&[Form::Number(SHARE), Form::Object(Class::Texture)]);
const RADIANCE: Form = Form::OneOf(&[LIGHT, Form::Object(Class::Texture)]);
const REFLECTANCE: Form = Form::OneOf(&[Form::Color(SHARE), Form::Object(Class::Texture)]);
const GRADIENT: Form = Form::Words(&["auto", "paired", "drt", "free_flight"]);
const MAX_DEPTH: Form = Form::Number(Limit::Within(-1.0, i32::MAX as f64));
const RR_DEPTH: Form = Form::Integer(1, i32::MAX as u64);

/// Parameters of every integrator.
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

/// A BSDF made of others.
const fn mixture(name: &'static str, parameters: &'static [Parameter]) -> Definition {
    Definition {
        name,
        parameters,
        nested: &[Class::Bsdf],
    }
}

/// Objects with a type, by class.
pub(in crate::scene) static PLUGINS: &[(Class, Definition)] = &[
    (Class::Bsdf, plain("null", &[])),
    (Class::Bsdf, plain("diffuse", &[may("reflectance", REFLECTANCE)])),
    (Class::Bsdf, mixture("twosided", &[])),
    (Class::Bsdf, mixture("mask", &[may("opacity", FRACTION)])),
    (Class::Bsdf, mixture("blendbsdf", &[must("weight", FRACTION)])),
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
    (
        Class::Emitter,
        plain(
            "constant",
            &[may("radiance", LIGHT), may("sampling_weight", NOT_NEGATIVE)],
        ),
    ),
    (
        Class::Emitter,
        plain(
            "envmap",
            &[
                may("filename", Form::File),
                may("data", Form::Block("data")),
                may("scale", NOT_NEGATIVE),
                may("to_world", Form::Space),
                may("sampling_weight", NOT_NEGATIVE),
            ],
        ),
    ),
    (
        Class::Emitter,
        plain(
            "area",
            &[may("radiance", RADIANCE), may("sampling_weight", NOT_NEGATIVE)],
        ),
    ),
    (
        Class::Emitter,
        plain(
            "directionalarea",
            &[may("radiance", RADIANCE), may("sampling_weight", NOT_NEGATIVE)],
        ),
    ),
    (
        Class::Emitter,
        plain(
            "projector",
            &[
                may("irradiance", RADIANCE),
                may("scale", NOT_NEGATIVE),
                may("to_world", Form::Space),
                must("fov", Form::Number(Limit::Between(0.0, 180.0))),
                may("fov_axis", Form::Words(&["x", "y", "diagonal", "smaller", "larger"])),
                may("sampling_weight", NOT_NEGATIVE),
            ],
        ),
    ),
    (
        Class::Emitter,
        plain(
            "point",
            &[
                may("intensity", LIGHT),
                may("position", Form::Vector(3)),
                may("to_world", Form::Space),
                may("sampling_weight", NOT_NEGATIVE),
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
                may("sampling_weight", NOT_NEGATIVE),
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
                may("texture", Form::Object(Class::Texture)),
                may("sampling_weight", NOT_NEGATIVE),
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
                may("sample_border", Form::Boolean),
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
    (
        Class::Sensor,
        Definition {
            name: "canvas",
            parameters: &[
                may("image", Form::OneOf(&[Form::File, Form::Block("image")])),
                may("held_out", Form::Boolean),
            ],
            nested: &[Class::Film],
        },
    ),
    (Class::Shape, shape!("cube")),
    (
        Class::Shape,
        shape!("sphere", may("center", Form::Vector(3)), may("radius", POSITIVE)),
    ),
    (Class::Shape, shape!("rectangle")),
    (Class::Shape, shape!("disk")),
    (
        Class::Shape,
        shape!(
            "cylinder",
            may("p0", Form::Vector(3)),
            may("p1", Form::Vector(3)),
            may("radius", POSITIVE)
        ),
    ),
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
        Class::Shape,
        shape!(
            "serialized",
            must("filename", Form::File),
            may("shape_index", COUNT),
            may("face_normals", Form::Boolean)
        ),
    ),
    (
        Class::Shape,
        Definition {
            name: "shapegroup",
            parameters: &[],
            nested: &[Class::Shape],
        },
    ),
    (
        Class::Shape,
        Definition {
            name: "instance",
            parameters: &[may("to_world", Form::Space)],
            nested: &[Class::Shape],
        },
    ),
    (
        Class::Spectrum,
        plain("rgb", &[must("value", Form::OneOf(&[ANY, Form::Vector(3)]))]),
    ),
    (
        Class::Splats,
        plain(
            "splats",
            &[
                may("count", Form::Integer(1, splats::MAX_COUNT)),
                may("placement", Form::Words(&["random", "picture"])),
                may("filename", Form::File),
                may("order", Form::Words(&["index", "size"])),
                may("seed", Form::Integer(0, u64::MAX)),
            ],
        ),
    ),
    (
        Class::Texture,
        plain(
            "bitmap",
            &[
                may("filename", Form::File),
                may("data", Form::Block("data")),
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
