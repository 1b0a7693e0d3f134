"""Times iterations of a scene in Mitsuba, beside `prbopt bench` on the same file.

    peer/bin/python tests/data/peer/iteration.py --prbopt target/release/prbopt scenes/painted_room.json \
        floor.bsdf.reflectance ball.bsdf.alpha

An iteration renders the first sensor, takes the squared difference from 0.5, sends it back to the parameters (paths of our
files) and steps Adam; the first, which compiles, does not count. Both programs run in turn, three times each, and the fastest
median of each is printed as a row of Markdown, with the most memory that it took. The environment is that of measure.py.
"""

import argparse
import json
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

import drjit as dr
import mitsuba as mi

from measure import to_mitsuba

ITERATIONS = 6


def filled(value):
    """The same with bitmaps and grids of one value, which only our files can state, as arrays."""
    match value:
        case {"type": "bitmap", "data": {"resolution": [width, height], "value": number}, **rest}:
            texels = mi.TensorXf([float(number)] * (3 * width * height), shape=(height, width, 3))
            return {"type": "bitmap", "data": texels, "raw": True} | {k: v for k, v in rest.items() if k != "data"}
        case {"type": "gridvolume", "resolution": {"value": [width, height, depth]}, "value": {"value": colour}, **rest}:
            texels = mi.TensorXf(list(colour) * (width * height * depth), shape=(depth, height, width, 3))
            return {"type": "gridvolume", "grid": mi.VolumeGrid(texels), "raw": True} | rest
        case dict():
            return {key: filled(item) for key, item in value.items()}
        case _:
            return value


def load(path):
    """The scene of a file without what only our program knows, and its integrator."""
    lines = path.read_text().splitlines()
    scene = json.loads("\n".join(line for line in lines if not line.lstrip().startswith("//")))
    scene.pop("optimize", None)
    integrator = scene.pop("integrator")
    world = filled(to_mitsuba({k: v for k, v in scene.items() if k != "type"}, "", path.parent))
    return mi.load_dict({"type": "scene", **world}), mi.load_dict(integrator | {"rr_depth": 1 << 30})


def traversed(parameters, path):
    """What Mitsuba calls a parameter of ours."""
    path = path.replace(".interior.", ".interior_medium.")
    found = [name for name in (f"{path}.data", f"{path}.value", f"{path}.value.value", path) if name in parameters]
    if not found:
        sys.exit(f"Mitsuba has no {path}; it has {', '.join(name for name, _ in parameters)}")
    return found[0]


def time_mitsuba(path, wanted, spp):
    """Milliseconds of an iteration and of its primal pass, and the MiB that the process took."""
    mi.set_variant("llvm_ad_rgb")
    scene, integrator = load(path)
    parameters = mi.traverse(scene)
    names = [traversed(parameters, one) for one in wanted]
    adam = mi.ad.Adam(lr=1e-3, params={name: parameters[name] for name in names})
    parameters.update(adam)
    times = []
    for seed in range(ITERATIONS + 1):
        begun = time.perf_counter()
        image = mi.render(scene, parameters, integrator=integrator, spp=spp, spp_grad=spp, seed=seed)
        loss = dr.mean(dr.square(image - 0.5))
        dr.eval(loss)
        dr.sync_thread()
        rendered = time.perf_counter()
        dr.backward(loss)
        adam.step()
        for name in names:
            adam[name] = dr.clip(adam[name], 1e-3, 1)
        parameters.update(adam)
        dr.eval()
        dr.sync_thread()
        times.append((time.perf_counter() - begun, rendered - begun))
    iteration, primal = (1e3 * statistics.median(column) for column in zip(*times[1:]))
    return iteration, primal, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def time_prbopt(program, path, wanted, spp):
    command = [program, "bench", path, "--device", "cpu", "--spp", spp, "--spp-grad", spp, "--json"]
    command += [word for one in wanted for word in ("--parameter", one)]
    done = subprocess.run([str(word) for word in command], check=True, capture_output=True, text=True)
    figures = json.loads(done.stdout)
    return figures["iteration_ms"], figures["primal_ms"], figures["peak_rss_mib"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--prbopt", type=Path, help="our program; without it Mitsuba alone is timed, once, as JSON")
    parser.add_argument("--spp", type=int, default=16)
    parser.add_argument("scene", type=Path)
    parser.add_argument("parameter", nargs="+")
    given = parser.parse_args()
    if given.prbopt is None:
        print(json.dumps(time_mitsuba(given.scene, given.parameter, given.spp)))
        return
    found = {"prbopt": [], "Mitsuba": []}
    for _ in range(3):
        found["prbopt"].append(time_prbopt(given.prbopt, given.scene, given.parameter, given.spp))
        alone = [sys.executable, __file__, "--spp", given.spp, given.scene, *given.parameter]
        done = subprocess.run([str(word) for word in alone], check=True, capture_output=True, text=True)
        found["Mitsuba"].append(json.loads(done.stdout))
    print("| | iteration | primal | memory |\n|---|---|---|---|")
    for who, rows in found.items():
        iteration, primal, memory = (min(column) for column in zip(*rows))
        print(f"| {who} | {iteration:.0f} ms | {primal:.0f} ms | {memory:.0f} MiB |")


if __name__ == "__main__":
    main()
