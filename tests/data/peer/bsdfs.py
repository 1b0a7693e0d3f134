"""Writes `bsdfs.json`: values, pdfs and samples of Mitsuba's BSDFs, which `tests/bsdf/peer.rs` compares with prbopt's.

    python3 -m venv peer && peer/bin/pip install mitsuba==3.9.1 numpy
    peer/bin/python tests/data/peer/bsdfs.py

A smooth BSDF has rows of wi, wo, the value times the cosine, and the pdf; one with other lobes has samples: wi, the draw
that chooses the lobe, wo, weight, pdf (or probability) and relative index.
"""

import json
from pathlib import Path

import mitsuba as mi
import numpy as np

mi.set_variant("scalar_rgb")
ROWS = 24
GOLD = [0.143, 0.3753, 1.4421], [3.983, 2.3856, 1.6034]
CHROME = [4.3697, 2.9165, 1.6549], [5.2066, 4.2313, 3.7547]
PRINCIPLED = [
    "roughness", "anisotropic", "metallic", "spec_trans", "eta", "spec_tint", "sheen", "sheen_tint", "flatness",
    "clearcoat", "clearcoat_gloss",
]
THIN = [
    "roughness", "anisotropic", "spec_trans", "eta", "spec_tint", "sheen", "sheen_tint", "flatness", "diff_trans",
]


def colour(value):
    return {"type": "rgb", "value": list(value)}


def microfacets(options):
    return {"distribution": options["distribution"], "sample_visible": options["visible"]}


def conductor(options, p):
    return {
        "type": "conductor", "eta": colour(p[0:3]), "k": colour(p[3:6]), "specular_reflectance": colour(p[6:9])
    }


def rough_conductor(options, p):
    roughness = {"alpha_u": p[9], "alpha_v": p[10]}
    return {**conductor(options, p), "type": "roughconductor", **roughness, **microfacets(options)}


def dielectric(options, p, name="dielectric"):
    factors = {"specular_reflectance": colour(p[-6:-3]), "specular_transmittance": colour(p[-3:])}
    return {"type": name, "int_ior": p[0], "ext_ior": 1.0, **factors}


def thin_dielectric(options, p):
    return dielectric(options, p, "thindielectric")


def rough_dielectric(options, p):
    return {**dielectric(options, p, "roughdielectric"), "alpha_u": p[1], "alpha_v": p[2], **microfacets(options)}


def plastic(options, p):
    factors = {"diffuse_reflectance": colour(p[-6:-3]), "specular_reflectance": colour(p[-3:])}
    return {"type": "plastic", "int_ior": p[0], "ext_ior": 1.0, "nonlinear": options["nonlinear"], **factors}


def rough_plastic(options, p):
    return {**plastic(options, p), "type": "roughplastic", "alpha": p[1], **microfacets(options)}


def principled(options, p):
    return {"type": "principled", "base_color": colour(p[:3]), **dict(zip(PRINCIPLED, p[3:]))}


def principled_thin(options, p):
    return {"type": "principledthin", "base_color": colour(p[:3]), **dict(zip(THIN, p[3:]))}


WHITE = [1, 1, 1]
# Name, options, and the parameters in the order of prbopt's structs.
CASES = [
    (conductor, {}, [*GOLD[0], *GOLD[1], 0.9, 0.8, 1.0]),
    (conductor, {}, [*CHROME[0], *CHROME[1], *WHITE]),
    *[
        (rough_conductor, {"distribution": distribution, "visible": visible}, [*metal[0], *metal[1], *tint, *alpha])
        for distribution in ("beckmann", "ggx")
        for visible, metal, tint, alpha in [
            (True, GOLD, [0.9, 0.8, 1.0], [0.3, 0.3]),
            (True, CHROME, WHITE, [0.1, 0.6]),
            (False, GOLD, WHITE, [0.2, 0.05]),
        ]
    ],
    (dielectric, {}, [1.5, *WHITE, *WHITE]),
    (dielectric, {}, [0.7, 0.9, 0.8, 0.7, 0.4, 0.6, 0.8]),
    (thin_dielectric, {}, [1.5, 0.9, 0.8, 0.7, 0.4, 0.6, 0.8]),
    *[
        (rough_dielectric, {"distribution": distribution, "visible": visible}, [eta, *alpha, *factors])
        for distribution in ("beckmann", "ggx")
        for visible, eta, alpha, factors in [
            (True, 1.5, [0.3, 0.3], [*WHITE, *WHITE]),
            (True, 0.75, [0.4, 0.6], [0.9, 0.8, 0.7, 0.4, 0.6, 0.8]),
            (False, 1.33, [0.2, 0.2], [*WHITE, *WHITE]),
        ]
    ],
    (plastic, {"nonlinear": False}, [1.49, 0.5, 0.3, 0.1, 1, 1, 1]),
    (plastic, {"nonlinear": True}, [1.9, 0.9, 0.5, 0.2, 0.5, 0.7, 0.9]),
    *[
        (rough_plastic, {"nonlinear": nonlinear, "distribution": distribution, "visible": True}, p)
        for distribution in ("beckmann", "ggx")
        for nonlinear, p in [
            (False, [1.49, 0.1, 0.5, 0.3, 0.1, *WHITE]),
            (True, [1.7, 0.4, 0.9, 0.5, 0.2, 0.5, 0.7, 0.9]),
        ]
    ],
    (principled, {}, [0.7, 0.4, 0.2, 0.5, 0, 0, 0, 1.5, 0, 0, 0, 0, 0, 0]),
    (principled, {}, [0.7, 0.4, 0.2, 0.3, 0.6, 0.7, 0.5, 1.4, 0.5, 0, 0, 0, 0, 0]),
    (principled, {}, [0.3, 0.8, 0.5, 0.6, 0.2, 0.1, 0.3, 1.6, 0.4, 0.8, 0.6, 0.7, 0.9, 0.3]),
    (principled, {}, [0.9, 0.8, 0.5, 0.2, 0, 0, 1, 1.5, 0, 0, 0, 0, 0, 0]),
    (principled_thin, {}, [0.7, 0.4, 0.2, 0.5, 0, 0, 1.5, 0, 0, 0, 0, 0]),
    (principled_thin, {}, [0.7, 0.4, 0.2, 0.4, 0.5, 0.6, 1.4, 0.3, 0.7, 0.5, 0.4, 1.2]),
    (principled_thin, {}, [0.3, 0.6, 0.9, 0.8, 0, 1, 1.8, 0.5, 0, 0, 0, 2]),
]
SAMPLED = {"conductor", "dielectric", "thin_dielectric"}


def direction(random, grazing):
    """A direction on the upper side."""
    cosine = random.uniform(0.01, 0.15) if grazing else random.uniform(0.15, 1)
    angle = random.uniform(0, 2 * np.pi)
    sine = np.sqrt(1 - cosine * cosine)
    return np.array([sine * np.cos(angle), sine * np.sin(angle), cosine], dtype=np.float32)


def interaction(wi):
    si = mi.SurfaceInteraction3f()
    si.wi = mi.Vector3f(wi)
    return si


def smooth_row(bsdf, random, i):
    wi, wo = direction(random, i % 6 == 4), direction(random, i % 6 == 5)
    if i % 2:
        # Near the mirror image, or about where light is refracted.
        bend = 1 if i % 4 == 1 else 0.7 if i % 8 == 3 else 1 / 0.7
        wo = wi * [-bend, -bend, 1] + 0.2 * random.normal(size=3)
        wo[2] = max(abs(wo[2]), 0.05)
        wo = (wo / np.linalg.norm(wo)).astype(np.float32)
    wi = wi * np.float32([1, 1, -1] if i % 8 in (6, 7) else 1)
    if i % 8 in (2, 3, 6):
        wo = wo * np.float32([1, 1, -1])
    si, context = interaction(wi), mi.BSDFContext()
    value = bsdf.eval(context, si, mi.Vector3f(wo))
    pdf = bsdf.pdf(context, si, mi.Vector3f(wo))
    return [*wi, *wo, *value, pdf]


def sampled_row(bsdf, random, i):
    wi = direction(random, i % 6 == 4) * np.float32(-1 if i % 8 in (5, 6) else 1)
    u = np.float32(random.uniform())
    sample, weight = bsdf.sample(mi.BSDFContext(), interaction(wi), float(u), mi.Point2f(0.5))
    return [*wi, u, *sample.wo, *weight, sample.pdf, sample.eta]


def main():
    random = np.random.default_rng(7)
    cases = []
    for make, options, p in CASES:
        bsdf = mi.load_dict(make(options, p))
        name = make.__name__
        if "plastic" in name:
            diffuse, specular = np.mean(p[-6:-3]), np.mean(p[-3:])
            options = {**options, "specular_weight": specular / (diffuse + specular)}
        row = sampled_row if name in SAMPLED else smooth_row
        rows = [[float(f"{x:.7g}") for x in map(float, row(bsdf, random, i))] for i in range(ROWS)]
        cases.append({"bsdf": name, **options, "parameters": p, "rows": rows})
    lines = ",\n".join(json.dumps(case) for case in cases)
    (Path(__file__).resolve().parent / "bsdfs.json").write_text(f"[\n{lines}\n]\n")


if __name__ == "__main__":
    main()
