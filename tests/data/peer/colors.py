"""Writes `colors.json`: the values that Mitsuba's RGB variants give to colours, which `tests/scenes/colors.rs` compares with prbopt's.

    python3 -m venv peer && peer/bin/pip install mitsuba==3.9.1 numpy
    peer/bin/python tests/data/peer/colors.py

Each row has a colour, and its red, green and blue as a reflectance, as an index of refraction, as radiance, and as a
colour of a checkerboard that emits; and the number that it is where one is expected. Null stands for a refusal.
"""

import json
from pathlib import Path

import mitsuba as mi
import numpy as np

mi.set_variant("scalar_rgb")
mi.set_log_level(mi.LogLevel.Error)


def spectrum(value):
    return {"type": "spectrum", "value": value}


COLORS = [
    spectrum(0.5),
    spectrum([[400, 0.1], [700, 0.9]]),
    spectrum([[360, 1], [830, 1]]),
    spectrum([[300, 0.5], [900, 0.7]]),
    spectrum([[400, 0.1], [500, 0.3], [600, 0.9], [700, 0.2]]),
    spectrum([[412.5, 0.3], [413, 0.9], [450, 0.1], [555, 0.8], [556, 0.2], [801, 0.6]]),
    spectrum([[640, 1], [700, 1]]),
    spectrum([[500, 1], [520, 1]]),
    spectrum([[400, 2], [700, 3]]),
    spectrum([[900, 1], [1000, 1]]),
    {"type": "uniform", "value": 0.4, "wavelength_min": 400.0, "wavelength_max": 500.0},
    {"type": "rgb", "value": [0.2, 0.5, 0.9]},
    {"type": "srgb", "color": [0.1, 0.2, 0.3]},
    {"type": "srgb", "color": [0.1, 0.2, 3.0], "unbounded": True},
    {"type": "d65"},
    {"type": "d65", "scale": 0.5},
    {"type": "d65", "scale": 0.5, "color": {"type": "rgb", "value": [0.1, 0.2, 1.6]}},
    {"type": "rawconstant", "value": 0.25},
    {"type": "rawconstant", "value": [0.2, 0.5, 0.9]},
]


def as_tuples(color):
    """Mitsuba takes lists for vectors and pairs for tuples."""
    if color["type"] == "spectrum" and isinstance(color["value"], list):
        return spectrum([tuple(map(float, pair)) for pair in color["value"]])
    return color


def value(plugin, *names):
    parameters = mi.traverse(mi.load_dict(plugin))
    found = next(parameters[name + ".value"] for name in names if name + ".value" in parameters)
    return [round(float(x), 7) for x in np.broadcast_to(np.array(found).ravel(), 3)]


def number(color):
    interaction = mi.SurfaceInteraction3f()
    interaction.wavelengths = []
    try:
        return round(float(mi.load_dict(color).eval_1(interaction)), 7)
    except RuntimeError:
        return None


def row(color):
    given = as_tuples(color)
    board = {"type": "checkerboard", "color0": given}
    return {
        "color": color,
        "reflectance": value({"type": "diffuse", "reflectance": given}, "reflectance"),
        "index": value({"type": "conductor", "eta": given, "k": 1.0}, "eta"),
        "radiance": value({"type": "constant", "radiance": given}, "radiance"),
        "number": number(given),
        "checkered": value({"type": "rectangle", "e": {"type": "area", "radiance": board}}, "emitter.radiance.color0"),
    }


rows = [row(color) for color in COLORS]
text = ",\n".join("  " + json.dumps(row) for row in rows)
Path(__file__).with_name("colors.json").write_text("[\n" + text + "\n]\n")
