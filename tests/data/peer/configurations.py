"""Derivatives of the scenes of Mitsuba's own tests of derivatives: `prbopt`'s beside differences of Mitsuba's images.

    peer/bin/python tests/data/peer/configurations.py --prbopt target/release/prbopt --mitsuba ../mitsuba3 [NAME ...]

`--mitsuba` is a checkout of Mitsuba's sources with its submodule of data; of its file `test_ad_integrators.py` the scenes are
taken, nothing else of it runs. Each scene is written as JSON and differentiated by the parameter that the test names, by the
name that it has there: backwards (`prbopt backpropagate`, an adjoint image of ones over their number) and forwards
(`prbopt gradient --tangent`). Differences are of images of the same seeds, summed in f64. A row has the derivative of the
image's mean, backwards and by differences, and the root mean square, over blocks of 1/8 of the image's sides and colours, of the
forward image's deviation in standard errors; then what `prbopt` says.

With `--noise` a row has instead the standard deviation of a sample of the forward image, root mean square over pixels, of `prbopt`
and of Mitsuba's `prb`. With `--thresholds` it has the figures that Mitsuba's test of forward mode looks at, at its own number of
samples, beside its bounds: the mean and the largest deviation from the image of differences that the data have.
"""

import argparse
import json
import math
import re
import subprocess
import sys
import tempfile
import types
from pathlib import Path

import drjit as dr
import mitsuba as mi
import numpy as np

mi.set_variant("llvm_ad_rgb")

# Configurations that move along z; all others that move do so along x.
ALONG_Z = [
    "plane_under_envmap", "plane_under_projector", "glass_plane_lens", "textured_area_emitter", "plane_under_textured",
    "plane_and_area_emitter", "self_shadowing",
]
# Steps of the differences of configurations that move, where not 0.002: images are not linear across a few texels, and through
# glass, whose paths are drawn anew, noise falls as the step grows. Images are linear in colours, whose step only has to keep the
# rounding of Mitsuba's floats small.
COLOR_STEP = 0.2
STEPS = {"translate_textured_plane": 0.001, "translate_glass_plane_lens": 0.02, "rotate_shading_normals_plane": 0.02}


def configurations(checkout):
    """The configurations, of which the constructors alone run."""
    text = (checkout / "src/integrators/tests/test_ad_integrators.py").read_text()
    text = text[: text.index("CONFIGS = []\n")].replace("import pytest, ", "import ")
    text = re.sub(r"from mitsuba.scalar_rgb.test.util.*|output_dir = find_resource.*", "", text)
    text = text.replace("'resources/data/", f"'{checkout}/resources/data/")
    module = types.ModuleType("configurations")
    exec(text, module.__dict__)
    lists = [module.BASIC_CONFIGS_LIST, module.CONTINUOUS_BUT_NON_STATIC_GEOM_CONFIGS_LIST]
    lists += [module.DISCONTINUOUS_CONFIGS_LIST, [module.TranslateCameraConfig]]
    for config in (config() for group in lists for config in group):
        config.sensor_dict["film"]["width"] = config.sensor_dict["film"]["height"] = config.res
        config.scene_dict["sensor"] = config.sensor_dict
        config.keys = [config.key] if hasattr(config, "key") else [config.key1, config.key2]
        yield config


def plain(value):
    """A dictionary of Mitsuba as JSON: matrices become lists."""
    if isinstance(value, dict):
        return {key: plain(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(inner) for inner in value]
    return np.array(value.matrix, dtype=float).tolist() if hasattr(value, "matrix") else value


def tangent(config, key):
    """Three numbers, or one."""
    if key.endswith("normals"):
        return [math.pi / 180, 0, 0]
    if "positions" in key or "to_world" in key:
        return [0, 0, 1] if any(part in config.name for part in ALONG_Z) else [1, 0, 0]
    return [1]


def moved(config, key, value, by):
    """The value of Mitsuba's parameter, moved by this many units."""
    if "to_world" in key:
        shift = mi.Transform4f().translate([by, 0, 0])
        return value @ shift if key.startswith("sensor") else shift @ value
    if not ("positions" in key or "normals" in key):
        return value + by
    values = np.array(value).reshape(-1, 3)
    if config.name.startswith("scale"):
        values = values * (1 + by)
    elif key.endswith("normals"):
        angle = math.radians(by)
        values = values * math.cos(angle) + np.array([1, 0, 0]) * math.sin(angle)
    else:
        values = values + by * np.array(tangent(config, key))
    return type(value)(values.astype(np.float32).ravel())


def differences(config, seeds, spp):
    """Images of the derivative, one a seed."""
    scene = mi.load_dict(config.scene_dict, optimize=False)
    params = mi.traverse(scene)
    here = lambda key: key if key in params else re.sub(r"\.(positions|normals)$", r".vertex_\1", key)
    first = {key: type(params[here(key)])(params[here(key)]) for key in config.keys}
    integrator = mi.load_dict({"type": "path", "max_depth": config.integrator_dict["max_depth"], "rr_depth": 50})
    is_color = len(tangent(config, config.keys[0])) == 1
    step = COLOR_STEP if is_color else STEPS.get(config.name, 0.002)
    found = []
    for seed in range(seeds):
        images = []
        for side in (-0.5, 0.5):
            for key in config.keys:
                params[here(key)] = moved(config, key, first[key], side * step)
            params.update()
            images.append(np.array(integrator.render(scene, seed=seed, spp=spp), dtype=float))
        found.append((images[1] - images[0]) / step)
    return np.array(found)


class Ours:
    """A configuration as `prbopt` sees it."""

    def __init__(self, config, program, folder, flags):
        self.program, self.folder, self.flags, self.config = program, folder, flags, config
        scene = plain(config.scene_dict)
        scene["integrator"] = {"type": "prb", "max_depth": config.integrator_dict["max_depth"], "rr_depth": 50}
        (folder / "scene.json").write_text(json.dumps(scene))
        self.names = [key + ".translate" if key.endswith("to_world") else key for key in config.keys]
        film = scene["sensor"]["film"]
        self.shape = (film.get("crop_height", config.res), film.get("crop_width", config.res), 3)

    def run(self, command, *arguments, seed):
        words = [self.program, command, self.folder / "scene.json", "-o", self.folder, "--seed", str(seed), *arguments]
        done = subprocess.run(list(map(str, words)), capture_output=True, text=True)
        self.said = [line for line in done.stderr.splitlines() if line.startswith(("warning", "error"))]
        if done.returncode:
            raise SystemExit(done.stderr)

    def backwards(self, seed, spp):
        mi.Bitmap(np.full(self.shape, 1 / np.prod(self.shape), np.float32)).write(str(self.folder / "ones.exr"))
        named = [word for name in self.names for word in ("--parameter", name)]
        self.run("backpropagate", "--adjoint", self.folder / "ones.exr", "--spp", spp, *named, *self.flags, seed=seed)
        total = 0.0
        for name, key in zip(self.names, self.config.keys):
            path = re.sub(r"\.(value|data)$", "", re.sub(r"\.(positions|normals)$", r".vertex_\1", name))
            gradient = np.array(json.loads((self.folder / f"{path}.json").read_text())["value"])
            along = np.resize(tangent(self.config, key), gradient.shape)
            if self.config.name.startswith("scale"):
                along = np.array(mi.traverse(mi.load_dict(self.config.scene_dict))["light.vertex_positions"])
            total += gradient @ along
        return total

    def forwards(self, seed, spp):
        image = 0.0
        for name, key in zip(self.names, self.config.keys):
            along = ",".join(map(str, tangent(self.config, key)))
            how = ["--scale"] if self.config.name.startswith("scale") else ["--tangent", along]
            self.run("gradient", "--parameter", name, "--spp", spp, *how, seed=seed)
            word = "scale" if how == ["--scale"] else "tangent"
            image = image + np.array(mi.Bitmap(str(self.folder / f"{name}_{word}.exr")), dtype=float)
        return image


def forwards_of_mitsuba(config, seeds, spp):
    """Images of the derivative by Mitsuba's `prb`, one a seed; none for what has no parameter of vertices alone."""
    scene = mi.load_dict(config.scene_dict, optimize=False)
    params = mi.traverse(scene)
    key = config.keys[0] if config.keys[0] in params else re.sub(r"\.(positions|normals)$", r".vertex_\1", config.keys[0])
    if len(config.keys) > 1 or "positions" not in key:
        return None
    first = type(params[key])(params[key])
    way = tangent(config, key)
    integrator = mi.load_dict({"type": "prb", "max_depth": config.integrator_dict["max_depth"], "rr_depth": 50})
    found = []
    for seed in range(seeds):
        by = mi.Float(0.0)
        dr.enable_grad(by)
        points = dr.unravel(mi.Point3f, first)
        for axis in range(3):
            points[axis] += by * way[axis]
        params[key] = dr.ravel(points)
        params.update()
        dr.eval()
        dr.forward(by, dr.ADFlag.ClearEdges)
        image = integrator.render_forward(scene, seed=seed, spp=spp, params=by)
        found.append(np.array(dr.detach(image), dtype=float))
    return np.array(found)


def noise(images, spp):
    """The standard deviation of a sample, root mean square over pixels."""
    return math.sqrt(images.var(0, ddof=1).mean() * spp)


def beside_thresholds(config, ours, checkout):
    """Mitsuba's two figures of a forward image beside its bounds."""
    file = checkout / f"resources/data/tests/integrators/test_{config.name}_image_fwd_ref.exr"
    right = np.array(mi.Bitmap(str(file)), dtype=float)
    off = abs(ours.forwards(0, config.spp) - right) / np.maximum(abs(right), 0.2)
    return f"{off.mean():.4f} of {config.error_mean_threshold} | {off.max():.3f} of {config.error_max_threshold}"


def blocks(images):
    """Means over blocks of 1/8 of the sides."""
    count, height, width, colors = images.shape
    return images.reshape(count, 8, height // 8, 8, width // 8, colors).mean((2, 4))


def of(samples):
    """Mean and standard error."""
    samples = np.array(samples)
    return samples.mean(0), samples.std(0, ddof=1) / math.sqrt(len(samples))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--prbopt", required=True)
    parser.add_argument("--mitsuba", type=Path, required=True)
    parser.add_argument("--spp", type=int, default=64)
    parser.add_argument("--seeds", type=int, default=16)
    parser.add_argument("--forwards", type=int, default=8, help="images of forward mode")
    parser.add_argument("--flags", default="--device cpu", help="of `prbopt backpropagate`")
    parser.add_argument("--noise", action="store_true")
    parser.add_argument("--thresholds", action="store_true")
    parser.add_argument("names", nargs="*")
    asked = parser.parse_args()
    for config in configurations(asked.mitsuba.resolve()):
        if asked.names and config.name not in asked.names:
            continue
        with tempfile.TemporaryDirectory() as folder:
            ours = Ours(config, asked.prbopt, Path(folder), asked.flags.split())
            if asked.thresholds:
                print(f"| `{config.name}` | {beside_thresholds(config, ours, asked.mitsuba)} |", flush=True)
                continue
            if asked.noise:
                theirs = forwards_of_mitsuba(config, asked.seeds, asked.spp)
                if theirs is not None:
                    images = np.array([ours.forwards(seed, asked.spp) for seed in range(asked.seeds)])
                    both = [noise(found, asked.spp) for found in (images, theirs)]
                    print(f"| `{config.name}` | {both[0]:.2g} | {both[1]:.2g} |", flush=True)
                continue
            theirs = differences(config, asked.seeds, 4 * asked.spp)
            backwards = [ours.backwards(seed, asked.spp) for seed in range(asked.seeds)]
            forwards = np.array([ours.forwards(100 + seed, asked.spp) for seed in range(asked.forwards)])
        (mean, error), (other, other_error) = of(backwards), of(theirs.mean((1, 2, 3)))
        (a, a_error), (b, b_error) = of(blocks(forwards)), of(blocks(theirs))
        t = (a - b) / np.sqrt(a_error**2 + b_error**2 + (1e-3 * b) ** 2 + 1e-14)
        said = "warned" if any("silhouettes" in line for line in ours.said) else ""
        print(
            f"| `{config.name}` | {mean:.4e} ± {error:.0e} | {other:.4e} ± {other_error:.0e} | "
            f"{math.sqrt((t**2).mean()):.2f} | {said} |",
            flush=True,
        )


if __name__ == "__main__":
    sys.exit(main())
