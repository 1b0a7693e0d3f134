//! Blocks (objects without a type), and variants (choices by name).

use super::*;
use crate::scene::splats;

const DECAY: Form = Form::Number(Limit::Within(0.0, 0.999_999));
const WARM_UP: Parameter = may("warm_up", COUNT);
const FINAL_FACTOR: Parameter = may("final_factor", Form::Number(Limit::Within(1e-6, 1.0)));

/// Blocks, by key.
pub(in crate::scene) static BLOCKS: &[(&str, Definition)] = &[
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
                may("growth", Form::Block("growth")),
                may("views", Form::Block("views")),
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
                may("smoothing", Form::Number(Limit::Within(0.0, 1.0))),
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
        "growth",
        plain(
            "growth",
            &[
                must("count", Form::Integer(1, splats::MAX_COUNT)),
                may("every", Form::Integer(1, 1_000_000)),
                may("until", Form::Number(Limit::Within(0.0, 1.0))),
            ],
        ),
    ),
    (
        "views",
        plain(
            "views",
            &[
                may("start", Form::Number(Limit::Within(0.0, 1.0))),
                may("held_out_iterations", COUNT),
                may("held_out_rate", POSITIVE),
            ],
        ),
    ),
    (
        "disturb",
        plain(
            "disturb",
            &[
                may("rotate", NOT_NEGATIVE),
                may("translate", NOT_NEGATIVE),
                may("seed", Form::Integer(0, u64::MAX)),
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
                may("leaves", Form::Integer(0, u64::MAX)),
                may("planet", Form::Integer(0, u64::MAX)),
                may("coin", Form::Integer(0, u64::MAX)),
                may("magnifier", Form::Integer(0, u64::MAX)),
                may("ridges", Form::Integer(0, u64::MAX)),
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

const FIGURE: Form = Form::Words(&["letter", "digit", "ring", "discs"]);

/// Groups of variants; one of a group is chosen by its bare name or by an object whose `type` is the name.
pub(in crate::scene) static VARIANTS: &[(&str, &[Definition])] = &[
    (
        "references",
        &[
            plain("images", &[]),
            plain("scene", &[must("filename", Form::File), may("spp", SAMPLES)]),
            plain("constant", &[must("value", Form::Color(Limit::Any))]),
            plain("leaves", &[may("seed", Form::Integer(0, u64::MAX))]),
            plain("figure", &[must("name", Form::OneOf(&[FIGURE, Form::List(&FIGURE)]))]),
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
            plain("normalized_l2", &[]),
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
