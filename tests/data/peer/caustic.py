"""Compares light that a slab refracts with Mitsuba's: absolute radiance, pixel by pixel.

    peer/bin/python tests/data/peer/caustic.py --prbopt target/release/prbopt [--spp 1024]

A slab of waves is rendered by `prbopt`, and by Mitsuba's `ptracer` as the closed solid that `prbopt export` writes of the
same heights on 1024 x 1024 coefficients, with flat triangles. Prints the ratio of both means and the root mean square
difference of pixels, over the mean; and the same for two batches of Mitsuba's, which differ by noise alone.
"""

import argparse
import json
import subprocess
import tempfile
from pathlib import Path

import mitsuba as mi
import numpy as np

parser = argparse.ArgumentParser()
parser.add_argument("--prbopt", required=True)
parser.add_argument("--spp", type=int, default=1024)
args = parser.parse_args()
mi.set_variant("llvm_ad_rgb")
mi.set_log_level(mi.LogLevel.Error)
T = mi.ScalarTransform4f
SIDE = 64
# Light beside the film, which Mitsuba does not splat, would reach these outermost pixels by the filter.
EDGE = 3


def looking(z, to):
    return [{"look_at": {"origin": [0, 0, z], "target": [0, 0, to], "up": [0, 1, 0]}}]


def ours(n):
    return {
        "type": "scene",
        "integrator": {"type": "ptracer", "max_depth": 4},
        "light": {
            "type": "rectangle", "to_world": [{"translate": [0, 0, -5]}],
            "emitter": {"type": "directionalarea", "radiance": [3.0, 2.0, 1.0]},
        },
        "slab": {
            "type": "heightfield", "thickness": 0.087,
            "heights": {"type": "bitmap", "wrap_mode": "clamp", "data": {"resolution": [n, n], "value": 0}},
            "bsdf": {"type": "dielectric", "int_ior": 1.5, "ext_ior": 1.0, "specular_reflectance": 0},
        },
        "screen": {
            "type": "rectangle", "to_world": [{"scale": 5}, *looking(7, 0)],
            "bsdf": {"type": "diffuse", "reflectance": 0.8},
        },
        "camera": {
            "type": "perspective", "fov": 45, "near_clip": 1, "to_world": looking(4.65, 7),
            "film": {"type": "hdrfilm", "width": SIDE, "height": SIDE, "rfilter": {"type": "gaussian"}},
        },
    }


def peers(solid):
    rectangle = {"type": "rectangle", "to_world": T().translate([0, 0, -5])}
    return {
        "type": "scene",
        "integrator": {"type": "ptracer", "max_depth": 4},
        "light": rectangle | {"emitter": {"type": "directionalarea", "radiance": {"type": "rgb", "value": [3.0, 2.0, 1.0]}}},
        "slab": {
            "type": "ply", "filename": str(solid), "face_normals": True,
            "bsdf": {"type": "dielectric", "int_ior": 1.5, "ext_ior": 1.0, "specular_reflectance": 0.0},
        },
        "screen": {
            "type": "rectangle", "to_world": T().look_at(origin=[0, 0, 7], target=[0, 0, 0], up=[0, 1, 0]) @ T().scale(5),
            "bsdf": {"type": "diffuse", "reflectance": 0.8},
        },
        "camera": {
            "type": "perspective", "fov": 45, "near_clip": 1.0,
            "to_world": T().look_at(origin=[0, 0, 4.65], target=[0, 0, 7], up=[0, 1, 0]),
            "film": {"type": "hdrfilm", "width": SIDE, "height": SIDE, "pixel_format": "rgb", "rfilter": {"type": "gaussian"}},
        },
    }


def finer(h):
    """The same biquadratic spline on twice as many coefficients along both axes."""
    for axis in (0, 1):
        h = np.moveaxis(h, axis, 0)
        below, above = np.concatenate([h[:1], h[:-1]]), np.concatenate([h[1:], h[-1:]])
        h = np.moveaxis(np.stack([0.75 * h + 0.25 * below, 0.75 * h + 0.25 * above], 1).reshape(-1, *h.shape[1:]), 0, axis)
    return h


def write(folder, name, heights):
    (folder / name).mkdir()
    mi.Bitmap(np.repeat(heights[..., None], 3, axis=2).astype(np.float32)).write(str(folder / name / "slab.heights.exr"))
    (folder / f"{name}.json").write_text(json.dumps(ours(len(heights))))


def run(folder, *words):
    subprocess.run([str(Path(args.prbopt).resolve()), *words, "--quiet"], cwd=folder, check=True)


def difference(a, b):
    a, b = (image[EDGE:-EDGE, EDGE:-EDGE] for image in (a, b))
    mean = 0.5 * (a.mean() + b.mean())
    return a.mean() / b.mean(), float(np.sqrt(np.mean((a - b) ** 2)) / mean)


with tempfile.TemporaryDirectory() as place:
    place = Path(place)
    x, y = np.meshgrid(*[(np.arange(32) + 0.5) / 16 - 1] * 2)
    waves = 0.006 * (np.sin(5 * x + 2 * y) + np.cos(4 * y - 3 * x + 1))
    write(place, "coarse", waves)
    for _ in range(5):
        waves = finer(waves)
    write(place, "fine", waves)
    run(place, "render", "coarse.json", "--parameters", "coarse", "--device", "cpu", "--spp", str(args.spp), "-o", "ours.exr")
    run(place, "export", "fine.json", "--parameters", "fine", "--shape", "slab", "-o", "slab.ply")
    rendered = np.array(mi.Bitmap(str(place / "ours.exr")))[..., :3]
    scene = mi.load_dict(peers(place / "slab.ply"))
    first, second = (np.array(mi.render(scene, seed=seed, spp=args.spp)) for seed in (0, 1))
    ratio, rms = difference(rendered, 0.5 * (first + second))
    _, noise = difference(first, second)
    print(f"means {ratio:.4f}, pixels {rms:.4f}; two batches of Mitsuba's: pixels {noise:.4f}")
