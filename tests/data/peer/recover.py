"""Recovers one value of a scene in Mitsuba and in prbopt, with as many samples, and compares the errors over five seeds.

    peer/bin/python tests/data/peer/recover.py --prbopt target/release/prbopt scenes/cornell.json red.bsdf.reflectance

The scene states start, rate, iterations and samples in its block `optimize`; its own value is the truth. Both take Adam on the
squared difference to a picture of the truth. The error is the sum of the squared differences of the value's numbers after the
last iteration. The environment is that of measure.py.
"""

import argparse
import json
import statistics
import subprocess
import tempfile
from pathlib import Path

import drjit as dr
import mitsuba as mi
import numpy as np

from iteration import load, traversed

SEEDS = range(1, 6)


def recover_mitsuba(path, wanted, rule, seed):
    """The value at first and at the end."""
    scene, integrator = load(path)
    reference = mi.render(scene, integrator=integrator, spp=rule["references"]["spp"])
    parameters = mi.traverse(scene)
    name = traversed(parameters, wanted)
    truth = np.array(parameters[name], dtype=float).ravel()
    asked = rule["parameters"][wanted]
    adam = mi.ad.Adam(lr=asked["learning_rate"], params={name: mi.Color3f(asked["initial"])})
    parameters.update(adam)
    for iteration in range(rule["iterations"]):
        number = seed * rule["iterations"] + iteration
        image = mi.render(
            scene, parameters, integrator=integrator, spp=rule["spp"], spp_grad=rule["spp_grad"], seed=number
        )
        dr.backward(dr.mean(dr.square(image - reference)))
        adam.step()
        adam[name] = dr.clip(adam[name], 0, 1)
        parameters.update(adam)
    return truth, np.array(adam[name], dtype=float).ravel()


def recover_prbopt(program, path, wanted, seed):
    with tempfile.TemporaryDirectory() as folder:
        run = f"{folder}/run"
        command = [program, "optimize", path, "--device", "cpu", "--set", f"optimize.seed={seed}", "--output", run]
        subprocess.run([str(word) for word in command], check=True, capture_output=True)
        return np.array(json.loads(Path(f"{run}/final/{wanted}.json").read_text())["value"])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--prbopt", type=Path, required=True, help="our program")
    parser.add_argument("scene", type=Path)
    parser.add_argument("parameter")
    given = parser.parse_args()
    mi.set_variant("llvm_ad_rgb")
    lines = given.scene.read_text().splitlines()
    rule = json.loads("\n".join(line for line in lines if not line.lstrip().startswith("//")))["optimize"]
    errors = {"prbopt": [], "Mitsuba": []}
    for seed in SEEDS:
        truth, found = recover_mitsuba(given.scene, given.parameter, rule, seed)
        errors["Mitsuba"].append(((found - truth) ** 2).sum())
        found = recover_prbopt(given.prbopt.resolve(), given.scene, given.parameter, seed)
        errors["prbopt"].append(((found - truth) ** 2).sum())
    for who, found in errors.items():
        print(f"| {who} | {', '.join(f'{error:.2e}' for error in found)} | {statistics.median(found):.2e} |")


if __name__ == "__main__":
    main()
