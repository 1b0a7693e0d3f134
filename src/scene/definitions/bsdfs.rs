//! BSDFs.

use super::plugins::{COLOR, REFLECTANCE, SHARE};
use super::*;

const FRACTION: Form = Form::OneOf(&[Form::Number(SHARE), COLOR, Form::Object(Class::Texture)]);
const COMPLEX: Form = Form::OneOf(&[Form::Color(Limit::NonNegative), Form::Object(Class::Texture)]);
const ROUGHNESS: Form = Form::OneOf(&[POSITIVE, COLOR, Form::Object(Class::Texture)]);
const NORMALS: Form = Form::OneOf(&[Form::Color(Limit::Any), Form::Object(Class::Texture)]);
const INDEX: Form = Form::OneOf(&[POSITIVE, Form::Text]);
const DENSER: Form = Form::Number(Limit::Within(1.0, 10.0));
const MATERIAL: Parameter = may("material", Form::Text);
const INT_IOR: Parameter = may("int_ior", INDEX);
const EXT_IOR: Parameter = may("ext_ior", INDEX);
const SPECULAR_REFLECTANCE: Parameter = may("specular_reflectance", REFLECTANCE);
const SPECULAR_TRANSMITTANCE: Parameter = may("specular_transmittance", REFLECTANCE);
const DISTRIBUTION: Parameter = may("distribution", Form::Words(&["beckmann", "ggx"]));
const SAMPLE_VISIBLE: Parameter = may("sample_visible", Form::Boolean);
const FLIP_INVALID_NORMALS: Parameter = may("flip_invalid_normals", Form::Boolean);
const USE_SHADOWING_FUNCTION: Parameter = may("use_shadowing_function", Form::Boolean);
const DIELECTRIC: &[Parameter] = &[INT_IOR, EXT_IOR, SPECULAR_REFLECTANCE, SPECULAR_TRANSMITTANCE];

/// A BSDF that contains other BSDFs.
const fn mixture(name: &'static str, parameters: &'static [Parameter]) -> Definition {
    Definition {
        name,
        parameters,
        nested: &[Class::Bsdf],
    }
}

/// BSDFs, with their class beside them as for all objects with a type.
pub(in crate::scene) static BSDFS: &[(Class, Definition)] = &[
    (Class::Bsdf, plain("null", &[])),
    (Class::Bsdf, plain("diffuse", &[may("reflectance", REFLECTANCE)])),
    (
        Class::Bsdf,
        plain(
            "conductor",
            &[MATERIAL, may("eta", COMPLEX), may("k", COMPLEX), SPECULAR_REFLECTANCE],
        ),
    ),
    (
        Class::Bsdf,
        plain(
            "roughconductor",
            &[
                MATERIAL,
                may("eta", COMPLEX),
                may("k", COMPLEX),
                SPECULAR_REFLECTANCE,
                DISTRIBUTION,
                may("alpha", ROUGHNESS),
                may("alpha_u", ROUGHNESS),
                may("alpha_v", ROUGHNESS),
                SAMPLE_VISIBLE,
            ],
        ),
    ),
    (Class::Bsdf, plain("dielectric", DIELECTRIC)),
    (Class::Bsdf, plain("thindielectric", DIELECTRIC)),
    (
        Class::Bsdf,
        plain(
            "roughdielectric",
            &[
                INT_IOR,
                EXT_IOR,
                SPECULAR_REFLECTANCE,
                SPECULAR_TRANSMITTANCE,
                DISTRIBUTION,
                may("alpha", ROUGHNESS),
                may("alpha_u", ROUGHNESS),
                may("alpha_v", ROUGHNESS),
                SAMPLE_VISIBLE,
            ],
        ),
    ),
    (
        Class::Bsdf,
        plain(
            "plastic",
            &[
                INT_IOR,
                EXT_IOR,
                may("diffuse_reflectance", REFLECTANCE),
                SPECULAR_REFLECTANCE,
                may("nonlinear", Form::Boolean),
            ],
        ),
    ),
    (
        Class::Bsdf,
        plain(
            "roughplastic",
            &[
                INT_IOR,
                EXT_IOR,
                may("diffuse_reflectance", REFLECTANCE),
                SPECULAR_REFLECTANCE,
                may("nonlinear", Form::Boolean),
                DISTRIBUTION,
                may("alpha", POSITIVE),
                SAMPLE_VISIBLE,
            ],
        ),
    ),
    (
        Class::Bsdf,
        plain(
            "principled",
            &[
                may("base_color", REFLECTANCE),
                may("roughness", FRACTION),
                may("anisotropic", FRACTION),
                may("metallic", FRACTION),
                may("spec_trans", FRACTION),
                may("eta", DENSER),
                may("specular", Form::Number(SHARE)),
                may("spec_tint", FRACTION),
                may("sheen", FRACTION),
                may("sheen_tint", FRACTION),
                may("flatness", FRACTION),
                may("clearcoat", FRACTION),
                may("clearcoat_gloss", FRACTION),
                may("diffuse_reflectance_sampling_rate", NOT_NEGATIVE),
                may("main_specular_sampling_rate", NOT_NEGATIVE),
                may("clearcoat_sampling_rate", NOT_NEGATIVE),
            ],
        ),
    ),
    (
        Class::Bsdf,
        plain(
            "principledthin",
            &[
                may("base_color", REFLECTANCE),
                may("roughness", FRACTION),
                may("anisotropic", FRACTION),
                may("spec_trans", FRACTION),
                may("eta", Form::OneOf(&[DENSER, COLOR, Form::Object(Class::Texture)])),
                may("spec_tint", FRACTION),
                may("sheen", FRACTION),
                may("sheen_tint", FRACTION),
                may("flatness", FRACTION),
                may(
                    "diff_trans",
                    Form::OneOf(&[
                        Form::Number(Limit::Within(0.0, 2.0)),
                        COLOR,
                        Form::Object(Class::Texture),
                    ]),
                ),
                may("diffuse_reflectance_sampling_rate", NOT_NEGATIVE),
                may("diffuse_transmittance_sampling_rate", NOT_NEGATIVE),
                may("specular_reflectance_sampling_rate", NOT_NEGATIVE),
                may("specular_transmittance_sampling_rate", NOT_NEGATIVE),
            ],
        ),
    ),
    (Class::Bsdf, mixture("twosided", &[])),
    (Class::Bsdf, mixture("mask", &[may("opacity", FRACTION)])),
    (Class::Bsdf, mixture("blendbsdf", &[must("weight", FRACTION)])),
    (
        Class::Bsdf,
        mixture(
            "normalmap",
            &[must("normalmap", NORMALS), FLIP_INVALID_NORMALS, USE_SHADOWING_FUNCTION],
        ),
    ),
    (
        Class::Bsdf,
        Definition {
            name: "bumpmap",
            parameters: &[may("scale", ANY), FLIP_INVALID_NORMALS, USE_SHADOWING_FUNCTION],
            nested: &[Class::Bsdf, Class::Texture],
        },
    ),
];
