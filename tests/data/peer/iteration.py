"""Times iterations of a scene in Mitsuba, beside `prbopt bench` on the same file.

    peer/bin/python tests/data/peer/iteration.py --prbopt target/release/prbopt scenes/painted_room.json \
        floor.bsdf.reflectance ball.bsdf.alpha
    peer/bin/python tests/data/peer/iteration.py --prbopt target/release/prbopt --exported --spp 4 --noise 16 \
        scenes/globe.json globe.bsdf.reflectance

An iteration renders the first sensor, takes the squared difference from 0.5, sends it back to the parameters (paths of prbopt's
files) and steps Adam; the first, which compiles, does not count. Both programs run in turn, three times each, and the fastest
median of each is printed as a row of Markdown, with its processor time and the most memory that it took. `--exported` has
Mitsuba read what `prbopt export` makes of the file, with its own roulette. `--noise N` also tells the variance of one gradient
over N seeds, summed over the entries of the parameters, and its product with the processor time; `--gpu` has both programs compute on
a GPU of NVIDIA's, and also tells the most of its memory that is taken meanwhile, which must be at work for nobody else. The environment
is that of measure.py.
"""

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from xml.etree import ElementTree

import drjit as dr
import mitsuba as mi
import numpy as np

from measure import to_mitsuba

ITERATIONS = 6


def filled(value):
    """The same with bitmaps and grids of one value, which only files of prbopt can state, as arrays."""
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
    """The scene of a file without what only prbopt knows, and its integrator."""
    if path.suffix == ".xml":
        # Exported files name the integrators that any variant has.
        written = ElementTree.parse(path).getroot().find("integrator")
        kind = {"path": "prb", "volpath": "prbvolpath"}.get(written.get("type"), written.get("type"))
        depths = {one.get("name"): int(one.get("value")) for one in written.findall("integer")}
        return mi.load_file(str(path)), mi.load_dict({"type": kind, **depths})
    lines = path.read_text().splitlines()
    scene = json.loads("\n".join(line for line in lines if not line.lstrip().startswith("//")))
    scene.pop("optimize", None)
    integrator = scene.pop("integrator")
    world = filled(to_mitsuba({k: v for k, v in scene.items() if k != "type"}, "", path.parent))
    return mi.load_dict({"type": "scene", **world}), mi.load_dict(integrator | {"rr_depth": 1 << 30})


def traversed(parameters, path):
    """Mitsuba's name of a parameter of prbopt."""
    path = path.replace(".interior.", ".interior_medium.")
    found = [name for name in (f"{path}.data", f"{path}.value", f"{path}.value.value", path) if name in parameters]
    if not found:
        sys.exit(f"Mitsuba has no {path}; it has {', '.join(name for name, _ in parameters)}")
    return found[0]


def backpropagated(scene, parameters, integrator, spp, seed):
    """Sends the loss of one picture back; the seconds of the primal pass."""
    begun = time.perf_counter()
    image = mi.render(scene, parameters, integrator=integrator, spp=spp, spp_grad=spp, seed=seed)
    loss = dr.mean(dr.square(image - 0.5))
    dr.eval(loss)
    dr.sync_thread()
    rendered = time.perf_counter() - begun
    dr.backward(loss)
    return rendered


def variance(gradients):
    """The variance of one estimate, summed over the entries, and its 95 % interval by a bootstrap over the estimates."""
    gradients = np.stack(gradients)
    count = len(gradients)
    squares = np.square(gradients - gradients.mean(axis=0)).sum(axis=1) * count / (count - 1)
    drawn = np.random.default_rng(0).integers(0, count, (2000, count))
    return [float(squares.mean()), np.percentile(squares[drawn].mean(axis=1), [2.5, 97.5]).tolist()]


def measure_mitsuba(path, wanted, spp, seeds, gpu):
    """Milliseconds of an iteration, of its processors and of its primal pass, the MiB that the process took, and the noise."""
    mi.set_variant("cuda_ad_rgb" if gpu else "llvm_ad_rgb")
    scene, integrator = load(path)
    parameters = mi.traverse(scene)
    names = [traversed(parameters, one) for one in wanted]
    adam = mi.ad.Adam(lr=1e-3, params={name: parameters[name] for name in names})
    parameters.update(adam)
    gradients = []
    for seed in range(seeds):
        backpropagated(scene, parameters, integrator, spp, seed)
        gradients.append(np.concatenate([np.array(dr.grad(adam[name])).ravel().astype(np.float64) for name in names]))
        for name in names:
            dr.clear_grad(adam[name])
    times = []
    for seed in range(ITERATIONS + 1):
        begun, computed = time.perf_counter(), time.process_time()
        rendered = backpropagated(scene, parameters, integrator, spp, seed)
        adam.step()
        for name in names:
            adam[name] = dr.clip(adam[name], 1e-3, 1)
        parameters.update(adam)
        dr.eval()
        dr.sync_thread()
        times.append((time.perf_counter() - begun, time.process_time() - computed, rendered))
    columns = [1e3 * statistics.median(column) for column in zip(*times[1:])]
    columns.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
    return columns + (variance(gradients) if seeds else [])


class GpuMemory:
    """Asks nvidia-smi every 40 ms how many MiB are taken, for as long as something is at work; `most` is the answer."""

    def __enter__(self):
        asked = ["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits", "--loop-ms=40"]
        self.asking = subprocess.Popen(asked, stdout=subprocess.PIPE, text=True)
        return self

    def __exit__(self, *_):
        self.asking.terminate()
        self.most = max((int(line) for line in self.asking.communicate()[0].split()), default=0)


def bench(program, path, wanted, options):
    command = [program, "bench", path, "--json", *options]
    command += [word for one in wanted for word in ("--parameter", one)]
    done = subprocess.run([str(word) for word in command], check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


def measure_prbopt(program, path, wanted, spp, seeds, changes, gpu):
    """The same figures of prbopt."""
    options = ["--spp", spp, "--spp-grad", spp, *changes]
    options += ["--device", "gpu" if gpu else "cpu"]
    figures = bench(program, path, wanted, options)
    row = [figures[key] for key in ("iteration_ms", "processor_ms", "primal_ms", "peak_rss_mib")]
    if seeds:
        noise = bench(program, path, wanted, options + ["--noise", seeds])
        row.append(sum(noise[one]["variance_sum"] for one in wanted))
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    alone = "our program; without it Mitsuba alone is measured, once, as JSON, with a 95 %% interval of the variance"
    parser.add_argument("--prbopt", type=Path, help=alone)
    parser.add_argument("--spp", type=int, default=16)
    parser.add_argument("--noise", type=int, default=0, metavar="N")
    parser.add_argument("--runs", type=int, default=3, help="of either program in turn")
    parser.add_argument("--exported", action="store_true")
    parser.add_argument("--gpu", action="store_true")
    parser.add_argument("--set", action="append", default=[], metavar="PATH=VALUE", help="with --exported")
    parser.add_argument("scene", type=Path)
    parser.add_argument("parameter", nargs="+")
    given = parser.parse_args()
    if given.prbopt is None:
        print(json.dumps(measure_mitsuba(given.scene, given.parameter, given.spp, given.noise, given.gpu)))
        return
    if given.set and not given.exported:
        parser.error("--set changes what is exported: give --exported, too")
    changes = [word for change in given.set for word in ("--set", change)]
    found = {"prbopt": [], "Mitsuba": []}
    taken = {"prbopt": 0, "Mitsuba": 0}

    def at_work(who, work):
        if not given.gpu:
            return work()
        with GpuMemory() as memory:
            result = work()
        taken[who] = max(taken[who], memory.most)
        return result

    with tempfile.TemporaryDirectory() as folder:
        theirs = given.scene
        if given.exported:
            theirs = Path(folder) / "scene.xml"
            export = [given.prbopt, "export", given.scene, "-o", theirs, "-q", *changes]
            subprocess.run([str(word) for word in export], check=True)
        for run in range(given.runs):
            seeds = 0 if run else given.noise
            ours = (given.prbopt, given.scene, given.parameter, given.spp, seeds, changes, given.gpu)
            found["prbopt"].append(at_work("prbopt", lambda: measure_prbopt(*ours)))
            theirs_alone = [sys.executable, __file__, "--spp", given.spp, "--noise", seeds, theirs, *given.parameter]
            theirs_alone += ["--gpu"] * given.gpu
            command = [str(word) for word in theirs_alone]
            done = at_work("Mitsuba", lambda: subprocess.run(command, check=True, capture_output=True, text=True))
            found["Mitsuba"].append(json.loads(done.stdout))
    of_gpu = " of the GPU |" * given.gpu
    print(f"| | iteration | of processors | primal | memory |{of_gpu}" + " variance | variance × processors |" * (given.noise > 0))
    print("|---|---|---|---|---|" + "---|" * given.gpu + "---|---|" * (given.noise > 0))
    for who, rows in found.items():
        iteration, processors, primal, memory = (min(column) for column in zip(*(row[:4] for row in rows)))
        cells = [who, f"{iteration:.0f} ms", f"{processors:.0f} ms", f"{primal:.0f} ms", f"{memory:.0f} MiB"]
        cells += [f"{taken[who]} MiB"] * given.gpu
        cells += [f"{noise:.3g} | {noise * processors / 1e3:.3g} s" for noise in rows[0][4:5]]
        print(f"| {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
