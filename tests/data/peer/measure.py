"""Renders small scenes with prbopt and with Mitsuba and compares them pixel by pixel, in mean and in variance.

    python3 -m venv peer && peer/bin/pip install mitsuba==3.9.1 numpy
    peer/bin/python tests/data/peer/measure.py --prbopt target/release/prbopt [SCENE...]

renders the scenes named, or all of `scenes/` and of `xml/` (which Mitsuba loads as they are, and `prbopt import` converts),
in batches of independent seeds and prints a row of Markdown for each. With `--store` it also writes what Mitsuba found to
`means/`, which `tests/peer.rs` reads. Mitsuba's `llvm_ad_rgb` needs LLVM 16 or later (Debian's `libllvm19`), named by
DRJIT_LIBLLVM_PATH.

Each batch renders both images with the same number of samples a pixel. A pixel's two means are compared, a channel each,
by Welch's t with the errors that the batches tell. The ratio of variances is that of their sums over all pixels and
channels.
"""

import argparse
import json
import math
import os
import resource
import subprocess
import tempfile
from pathlib import Path
from statistics import NormalDist

import mitsuba as mi
import numpy as np

FOLDER = Path(__file__).resolve().parent
# Pixels pass at 1 % after Šidák's correction for the three channels of a picture of 32 x 32.
FAMILY = 0.01
# Values whose relative error is no more than rounding have no variance and must agree to EXACT.
ROUNDING = 1e-5
EXACT = 1e-4
# Three numbers under these names are a place or a direction; under any other name they are a colour.
PLACES = {"position", "direction", "center", "origin", "target", "p0", "p1"}
# Mitsuba distinguishes whole numbers from others, files of prbopt do not.
WHOLE = {"sample_count", "width", "height", "crop_offset_x", "crop_offset_y", "crop_width", "crop_height", "lobes", "shape_index"}


def transform(operations):
    """A list of operations, the first applied first."""
    matrix = mi.ScalarTransform4f()
    for operation in operations:
        [(name, given)] = operation.items()
        step = {
            "translate": lambda: mi.ScalarTransform4f().translate(given),
            "scale": lambda: mi.ScalarTransform4f().scale(given),
            "rotate": lambda: mi.ScalarTransform4f().rotate(given["axis"], given["angle"]),
            "look_at": lambda: mi.ScalarTransform4f().look_at(**given),
        }[name]()
        matrix = step @ matrix
    return matrix


def to_mitsuba(value, name, folder):
    """A value of a scene file in Mitsuba's dictionary."""
    match value:
        case _ if name in ("to_world", "to_uv"):
            return transform(value)
        case str() if name == "filename":
            return str(folder / value)
        case {"type": "rgb"}:
            return dict(value)
        case dict():
            return {key: to_mitsuba(item, key, folder) for key, item in value.items()}
        case [_, _, _] if name not in PLACES:
            return {"type": "rgb", "value": value}
        case int() if not isinstance(value, bool) and name not in WHOLE:
            return float(value)
        case _:
            return value


def load_mitsuba(path):
    """The scene of a file, and its integrator."""
    if path.suffix == ".xml":
        scene = mi.load_file(str(path))
        return scene, scene.integrator()
    scene = json.loads(path.read_text())
    integrator = scene.pop("integrator")
    world = {"type": "scene", **to_mitsuba(scene, "", path.parent)}
    return mi.load_dict(world), mi.load_dict(integrator)


def render_mitsuba(path, seeds, spp, exported_by=None):
    """Pictures of independent seeds; of the XML that a program exports, if one is given."""
    with tempfile.TemporaryDirectory() as folder:
        if exported_by:
            xml = Path(folder) / "scene.xml"
            subprocess.run([exported_by, "export", str(path), "-o", str(xml), "-q"], check=True)
            path = xml
        scene, integrator = load_mitsuba(path)
    images = [mi.render(scene, integrator=integrator, seed=seed, spp=spp) for seed in seeds]
    return np.stack([np.array(image, dtype=np.float64)[..., :3] for image in images])


def render_prbopt(program, path, seeds, spp, settings=()):
    images = []
    changes = [word for setting in settings for word in ("--set", setting)]
    with tempfile.TemporaryDirectory() as folder:
        if path.suffix == ".xml":
            scene = Path(folder) / "scene.json"
            subprocess.run([program, "import", str(path), "-o", str(scene), "-q"], check=True)
            path = scene
        for seed in seeds:
            output = Path(folder) / f"{seed}.exr"
            command = [program, "render", path, "--device", "cpu", "--spp", spp, "--seed", seed, "-o", output, "-q"]
            command += changes
            subprocess.run([str(word) for word in command], check=True)
            images.append(np.array(mi.Bitmap(str(output)), dtype=np.float64)[..., :3])
    return np.stack(images)


def mean_and_error(images):
    """Mean over the batches and the square of its standard error."""
    return images.mean(axis=0), images.var(axis=0, ddof=1) / len(images)


def welch(ours, theirs):
    """Welch's t as the normal deviate of the same probability (Wallace 1959), and t itself; 0 where nothing varies."""
    (a, va), (b, vb) = mean_and_error(ours), mean_and_error(theirs)
    varies = va + vb > (ROUNDING * b) ** 2
    square = np.where(varies, (a - b) ** 2 / np.where(varies, va + vb, 1), 0)
    share = va**2 / (len(ours) - 1) + vb**2 / (len(theirs) - 1)
    freedom = np.where(varies, (va + vb) ** 2 / np.where(varies, share, 1), 1)
    z = (8 * freedom + 1) / (8 * freedom + 3) * np.sqrt(freedom * np.log1p(square / freedom))
    exact = varies | (np.abs(a - b) <= EXACT * np.abs(b))
    return np.where(exact, z, np.inf), np.sqrt(square)


def percent(ours, theirs, where):
    """By how many percent the mean over the pixels `where` differs, with its standard error, as text."""
    a, b = ours[:, where].mean(axis=(1, 2)), theirs[:, where].mean(axis=(1, 2))
    scale = 100 / b.mean()
    error = math.sqrt(a.var(ddof=1) / len(a) + b.var(ddof=1) / len(b))
    return f"{(a.mean() - b.mean()) * scale:+.3f} ± {error * scale:.3f}"


def compare(ours, theirs):
    """The columns of a scene's row."""
    z, t = welch(ours, theirs)
    bound = NormalDist().inv_cdf(1 - (1 - (1 - FAMILY) ** (1 / z.size)) / 2)
    passed = (z < bound).all(axis=2).mean()
    everywhere = np.ones(z.shape[:2], dtype=bool)
    border = everywhere.copy()
    border[1:-1, 1:-1] = False
    variance = ours.var(axis=0, ddof=1).sum() / theirs.var(axis=0, ddof=1).sum()
    # The standard error of the ratio, from four disjoint quarters of the batches.
    halves = [ours[k::4].var(axis=0, ddof=1).sum() / theirs[k::4].var(axis=0, ddof=1).sum() for k in range(4)]
    error = np.std(halves, ddof=1) / 2
    return [
        f"{100 * passed:.1f}",
        f"{t.max():.2f}",
        percent(ours, theirs, everywhere),
        percent(ours, theirs, border),
        f"{variance:.3f} ± {error:.3f}",
    ]


def store(name, theirs):
    """Means and standard errors, [2][y][x][channel], as 16-bit floats."""
    mean, square = mean_and_error(theirs)
    (FOLDER / "means").mkdir(exist_ok=True)
    np.save(FOLDER / "means" / f"{name}.npy", np.stack([mean, np.sqrt(square)]).astype(np.float16))


def compare_skies(program, path, seeds, spp):
    """The effect of sampling a constant sky as a light: ratios of the variance and the processor time of a sample."""
    radiance = json.loads(path.read_text())["sky"].get("radiance", 1)
    value = radiance["value"] if isinstance(radiance, dict) else radiance
    # A map, even if it has one colour, is sampled.
    sky = {"type": "envmap", "data": {"resolution": [64, 32], "value": value}}

    def measure(settings):
        begun = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        images = render_prbopt(program, path, seeds, spp, settings)
        return images, resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - begun

    (met, time_met), (sampled, time_sampled) = measure(()), measure([f"sky={json.dumps(sky)}"])
    theirs = render_mitsuba(path, seeds, spp)
    total = [images.var(axis=0, ddof=1).sum() for images in (met, sampled, theirs)]
    variance, time = total[1] / total[0], time_sampled / time_met
    return [f"{total[2] / total[0]:.2f}", f"{variance:.2f}", f"{time:.2f}", f"{variance * time:.2f}"]


def main():
    parser = argparse.ArgumentParser(description="Compares prbopt with Mitsuba on small scenes.")
    parser.add_argument("scenes", nargs="*", type=Path, help="scene files, or names of files in scenes/")
    parser.add_argument("--prbopt", type=Path, required=True, help="the program")
    parser.add_argument("--batches", type=int, default=32)
    parser.add_argument("--spp", type=int, default=256, help="samples a pixel in each batch")
    parser.add_argument("--variant", default="llvm_ad_rgb")
    parser.add_argument("--skies", action="store_true", help="compare sampling a constant sky with not sampling it")
    parser.add_argument("--exported", action="store_true", help="have Mitsuba render what the program exports as XML")
    parser.add_argument("--store", action="store_true", help="write what Mitsuba found to means/")
    options = parser.parse_args()
    mi.set_variant(options.variant)
    seeds = range(1, options.batches + 1)
    program, spp = os.path.abspath(options.prbopt), options.spp
    if options.skies:
        print("| scene | Mitsuba's variance | variance, sampled | time, sampled | variance times time |")
        print("|---|---|---|---|---|")
    else:
        print("| scene | pixels that pass, % | largest t | mean, % | border, % | variance ratio |")
        print("|---|---|---|---|---|---|")
    folder = FOLDER / ("skies" if options.skies else "scenes")
    everything = sorted(folder.glob("*.json")) + ([] if options.skies else sorted((FOLDER / "xml").glob("*.xml")))
    for path in options.scenes or everything:
        if not path.exists():
            path = folder / f"{path}.json"
        if options.skies:
            row = compare_skies(program, path, seeds, spp)
        else:
            theirs = render_mitsuba(path, seeds, spp, program if options.exported else None)
            row = compare(render_prbopt(program, path, seeds, spp), theirs)
            if options.store:
                store(path.stem, theirs)
        print(f"| `{path.stem}` | {' | '.join(row)} |", flush=True)


if __name__ == "__main__":
    main()
