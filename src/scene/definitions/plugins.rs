//! Objects with a type.

use super::*;
use crate::scene::{film, splats};

const LIGHT: Form = Form::Color(Limit::Light);
pub(super) const SHARE: Limit = Limit::Within(0.0, 1.0);
pub(super) const COLOR: Form = Form::Object(Class::Spectrum);
const RGB: Form = Form::OneOf(&[ANY, Form::Vector(3), COLOR]);
const HEIGHTS: Form = Form::OneOf(&[ANY, COLOR, Form::Object(Class::Texture)]);
const FILTER_WIDTH: Form = Form::Number(film::FILTER_WIDTH);
const COLOR_SPACE: Form = Form::Words(&["linear", "srgb"]);
const GRID_FILTER: Form = Form::Words(&["trilinear", "nearest"]);
const WRAP: Form = Form::Words(&["repeat", "mirror", "clamp"]);
const RADIANCE: Form = Form::OneOf(&[LIGHT, Form::Object(Class::Texture)]);
pub(super) const REFLECTANCE: Form = Form::OneOf(&[Form::Color(SHARE), Form::Object(Class::Texture)]);
const GRADIENT: Form = Form::Words(&["auto", "paired", "drt", "free_flight"]);
const MAX_DEPTH: Form = Form::Number(Limit::Within(-1.0, i32::MAX as f64));
const RR_DEPTH: Form = Form::Integer(1, i32::MAX as u64);

const HIDE_EMITTERS: Parameter = may("hide_emitters", Form::Boolean);
const IN_MEDIUM: Parameter = may("medium", Form::Object(Class::Medium));
const VARIANT: Parameter = may(
    "variant",
    Form::Words(&["unbiased", "biased", "pipelined", "biased_pipelined"]),
);

macro_rules! integrator {
    ($name:literal $(, $parameter:expr)*) => {
        (
            Class::Integrator,
            plain($name, &[may("max_depth", MAX_DEPTH), may("rr_depth", RR_DEPTH), HIDE_EMITTERS $(, $parameter)*]),
        )
    };
}

macro_rules! sampler {
    ($name:literal $(, $parameter:expr)*) => {
        (
            Class::Sampler,
            plain($name, &[may("sample_count", SAMPLES), may("seed", Form::Only("0")) $(, $parameter)*]),
        )
    };
}

/// A sensor, which may have a photograph; with `LENS` it has the parameters of a lens too.
macro_rules! sensor {
    ($name:literal, $($parameter:expr),*; LENS) => {
        sensor!(
            $name,
            $($parameter,)*
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
            may("far_clip", POSITIVE)
        )
    };
    ($name:literal, $($parameter:expr),*) => {
        (
            Class::Sensor,
            Definition {
                name: $name,
                parameters: &[
                    $($parameter,)*
                    may("image", Form::OneOf(&[Form::File, Form::Block("image")])),
                    may("held_out", Form::Boolean),
                    may("medium", Form::Object(Class::Medium)),
                ],
                nested: &[Class::Film, Class::Sampler],
            },
        )
    };
}

const FILM_OFFSET: Form = Form::Integer(0, film::MAX_SIDE as u64 - 1);

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
            nested: &[Class::Bsdf, Class::Emitter, Class::Sensor],
        }
    };
}

/// A shape that is a triangle mesh.
macro_rules! mesh {
    ($name:literal $(, $parameter:expr)*) => {
        shape!(
            $name,
            $($parameter,)*
            may("face_normals", Form::Boolean),
            may("displacement", HEIGHTS),
            may("displacement_scale", ANY)
        )
    };
}

macro_rules! medium {
    ($name:literal) => {
        Definition {
            name: $name,
            parameters: &[
                may("sigma_t", Form::Volume(Limit::NonNegative)),
                may("albedo", Form::Volume(SHARE)),
                may("emission", Form::Volume(Limit::Light)),
                may("scale", NOT_NEGATIVE),
                may("sample_emitters", Form::Only("true")),
                may("has_spectral_extinction", Form::Only("true")),
            ],
            nested: &[Class::Phase],
        }
    };
}

/// Objects with a type, by class.
pub(in crate::scene) static PLUGINS: &[(Class, Definition)] = &[
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
                may("disturb", Form::Block("disturb")),
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
            &[may("radiance", LIGHT), may("sampling_weight", NOT_NEGATIVE), IN_MEDIUM],
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
                may("mis_compensation", Form::Boolean),
                IN_MEDIUM,
            ],
        ),
    ),
    (
        Class::Emitter,
        plain(
            "area",
            &[
                may("radiance", RADIANCE),
                may("sampling_weight", NOT_NEGATIVE),
                IN_MEDIUM,
            ],
        ),
    ),
    (
        Class::Emitter,
        plain(
            "directionalarea",
            &[
                may("radiance", RADIANCE),
                may("sampling_weight", NOT_NEGATIVE),
                IN_MEDIUM,
            ],
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
                may("fov", Form::Number(Limit::Between(0.0, 180.0))),
                may("fov_axis", Form::Words(&["x", "y", "diagonal", "smaller", "larger"])),
                may("focal_length", Form::OneOf(&[Form::Text, POSITIVE])),
                may("sampling_weight", NOT_NEGATIVE),
                IN_MEDIUM,
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
                IN_MEDIUM,
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
                IN_MEDIUM,
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
                IN_MEDIUM,
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
                may("crop_offset_x", FILM_OFFSET),
                may("crop_offset_y", FILM_OFFSET),
                may("crop_width", SIDE),
                may("crop_height", SIDE),
                may("sample_border", Form::Boolean),
                may("file_format", Form::Words(&["openexr", "exr"])),
                may(
                    "pixel_format",
                    Form::Words(&["luminance", "luminance_alpha", "rgb", "rgba"]),
                ),
                may("component_format", Form::Words(&["float16", "float32"])),
            ],
            nested: &[Class::Filter],
        },
    ),
    (Class::Filter, plain("box", &[])),
    (Class::Filter, plain("tent", &[may("radius", FILTER_WIDTH)])),
    (Class::Filter, plain("gaussian", &[may("stddev", FILTER_WIDTH)])),
    (
        Class::Filter,
        plain(
            "mitchell",
            &[may("B", Form::Number(SHARE)), may("C", Form::Number(SHARE))],
        ),
    ),
    (Class::Filter, plain("catmullrom", &[])),
    (
        Class::Filter,
        plain("lanczos", &[may("lobes", Form::Integer(1, film::MAX_LOBES))]),
    ),
    (
        Class::Integrator,
        Definition {
            name: "aov",
            parameters: &[must("aovs", Form::Text)],
            nested: &[Class::Integrator],
        },
    ),
    (Class::Integrator, plain("depth", &[])),
    (
        Class::Integrator,
        Definition {
            name: "moment",
            parameters: &[],
            nested: &[Class::Integrator],
        },
    ),
    integrator!("path"),
    (
        Class::Integrator,
        plain(
            "direct",
            &[
                may("shading_samples", NO_OR_MORE_SAMPLES),
                may("emitter_samples", NO_OR_MORE_SAMPLES),
                may("bsdf_samples", NO_OR_MORE_SAMPLES),
                HIDE_EMITTERS,
            ],
        ),
    ),
    integrator!("prb"),
    integrator!(
        "prb_attached",
        may("jacobians", Form::Words(&["kept", "inverted"])),
        may("regularization", Form::Number(Limit::NonNegative))
    ),
    integrator!("prb_basic"),
    integrator!("ad"),
    integrator!("rb", VARIANT),
    integrator!("volpath", may("gradient", GRADIENT)),
    integrator!(
        "volpathmis",
        may("gradient", GRADIENT),
        may("use_spectral_mis", Form::Boolean)
    ),
    integrator!("prbvolpath", may("gradient", GRADIENT)),
    integrator!("advolpath", may("gradient", GRADIENT)),
    integrator!("rbvolpath", may("gradient", GRADIENT), VARIANT),
    integrator!("ptracer"),
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
    sampler!("independent"),
    sampler!("stratified", may("jitter", Form::Boolean)),
    sampler!("multijitter", may("jitter", Form::Boolean)),
    sampler!("orthogonal", may("jitter", Form::Boolean), may("strength", COUNT)),
    sampler!("ldsampler"),
    sensor!("perspective", may("to_world", Form::Space), may("undisturbed", Form::Space); LENS),
    sensor!(
        "thinlens",
        may("to_world", Form::Space),
        must("aperture_radius", NOT_NEGATIVE),
        may("focus_distance", POSITIVE);
        LENS
    ),
    sensor!(
        "orthographic",
        may("to_world", Form::Space),
        may("focal_x", POSITIVE),
        may("focal_y", POSITIVE),
        may("center_x", ANY),
        may("center_y", ANY),
        may("near_clip", POSITIVE),
        may("far_clip", POSITIVE)
    ),
    sensor!(
        "radiancemeter",
        may("to_world", Form::Space),
        may("origin", Form::Vector(3)),
        may("direction", Form::Vector(3))
    ),
    sensor!(
        "distant",
        may("to_world", Form::Space),
        may("direction", Form::Vector(3)),
        may("target", Form::OneOf(&[Form::Vector(3), Form::Object(Class::Shape)])),
        may("ray_offset", POSITIVE)
    ),
    (
        Class::Sensor,
        Definition {
            name: "irradiancemeter",
            parameters: &[may("medium", Form::Object(Class::Medium))],
            nested: &[Class::Film, Class::Sampler],
        },
    ),
    (
        Class::Sensor,
        Definition {
            name: "batch",
            parameters: &[],
            nested: &[Class::Sensor, Class::Film, Class::Sampler],
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
        mesh!(
            "obj",
            must("filename", Form::File),
            may("flip_tex_coords", Form::Boolean)
        ),
    ),
    (
        Class::Shape,
        mesh!(
            "ply",
            must("filename", Form::File),
            may("flip_tex_coords", Form::Boolean)
        ),
    ),
    (
        Class::Shape,
        shape!(
            "sdfgrid",
            must("filename", Form::File),
            may("normals", Form::Words(&["smooth", "analytic"]))
        ),
    ),
    (
        Class::Shape,
        mesh!("serialized", must("filename", Form::File), may("shape_index", COUNT)),
    ),
    (Class::Shape, mesh!("grid", must("resolution", Form::Resolution(2)))),
    (
        Class::Shape,
        Definition {
            name: "heightfield",
            parameters: &[
                may("to_world", Form::Space),
                must("thickness", POSITIVE),
                must("heights", Form::Object(Class::Texture)),
            ],
            nested: &[Class::Bsdf],
        },
    ),
    (
        Class::Shape,
        Definition {
            name: "gradient_index",
            parameters: &[
                may("to_world", Form::Space),
                must("index", Form::Volume(Limit::Within(1.0, 10.0))),
                may("step", Form::Number(Limit::Within(1e-5, 1.0))),
                may("refraction", Form::Boolean),
            ],
            nested: &[],
        },
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
        Class::Spectrum,
        plain("srgb", &[must("color", RGB), may("unbounded", Form::Boolean)]),
    ),
    (
        Class::Spectrum,
        plain(
            "spectrum",
            &[
                may("value", Form::OneOf(&[ANY, Form::List(&Form::Vector(2))])),
                may("filename", Form::File),
            ],
        ),
    ),
    (
        Class::Spectrum,
        plain(
            "uniform",
            &[
                must("value", ANY),
                may("wavelength_min", POSITIVE),
                may("wavelength_max", POSITIVE),
            ],
        ),
    ),
    (
        Class::Spectrum,
        plain("rawconstant", &[must("value", Form::OneOf(&[ANY, Form::Vector(3)]))]),
    ),
    (
        Class::Spectrum,
        plain("d65", &[may("color", RGB), may("scale", NOT_NEGATIVE)]),
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
                may("format", Form::Words(&["auto", "variant", "float16", "fp16", "uint8"])),
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
        Class::Texture,
        plain("mesh_attribute", &[must("name", Form::Text), may("scale", ANY)]),
    ),
    (
        Class::Texture,
        plain("volume", &[must("volume", Form::Volume(Limit::Any))]),
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
