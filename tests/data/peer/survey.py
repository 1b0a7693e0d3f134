"""Renders some two hundred small scenes of unusual settings with prbopt and with Mitsuba and names those that differ.

    peer/bin/python tests/data/peer/survey.py --prbopt target/release/prbopt [PREFIX...]

Each scene is a ball, a floor, a lamp and a sky of which one thing is changed: a crop window, a filter, a depth, a kind of light or
shape, a BSDF with textures in all its places, a medium behind it. All of them, or those whose names begin with a PREFIX, are
compared as `measure.py` does it; a scene differs if one in a hundred pixels does or its mean by more than four standard errors. What
is known to differ stands in `KNOWN`, with the reason. The exit code is 1 if anything else does.
"""

import argparse
import json
import math
import os
import sys
import tempfile
from pathlib import Path
from statistics import NormalDist

import measure
import mitsuba as mi
import numpy as np

# Beginnings of names, and why these scenes differ.
KNOWN = {
    "light_cube_textured": "3.9.1 draws points of textured meshes by coordinates, which the faces of a cube share",
    "light_rectangle_textured_flipped": "3.9.1's connections to flipped rectangles differ from its own picture without them",
    "mirrored_sphere": "mirrored spheres face inwards there",
    "ball_blend_": "3.9.1 takes the pdf of a lobe of no width in a blend for one of another",
    "sheet_blend_": "3.9.1 takes the pdf of a lobe of no width in a blend for one of another",
}


def colour(*values):
    return {"type": "rgb", "value": list(values)}


def image(filename="colours.png", **parameters):
    return {"type": "bitmap", "filename": filename, **parameters}


def rotate(angle, *axis):
    return {"rotate": {"axis": [x / math.hypot(*axis) for x in axis], "angle": angle}}


def move(*by):
    return {"translate": list(by)}


def scale(*by):
    return {"scale": list(by) if len(by) > 1 else by[0]}


def look(origin, target=(0, 0, 0), up=(0, 1, 0)):
    return {"look_at": {"origin": list(origin), "target": list(target), "up": list(up)}}


def camera(film=None, **parameters):
    pixels = {"type": "hdrfilm", "width": 24, "height": 24, "rfilter": {"type": "box"}, **(film or {})}
    eye = [look((0.5, 1.4, 4.4))]
    return {"type": "perspective", "fov": 42, "to_world": eye, "film": pixels, **parameters}


PATH = {"type": "path", "max_depth": 5, "rr_depth": 50}
FLOOR = {
    "type": "rectangle",
    "to_world": [scale(4.0), rotate(-90, 1, 0, 0), move(0, -1, 0)],
    "bsdf": {"type": "diffuse", "reflectance": colour(0.6, 0.5, 0.4)},
}
PANEL = {
    "type": "rectangle",
    "to_world": [scale(0.8), rotate(90, 1, 0, 0), move(0.5, 2.5, 0.5)],
    "emitter": {"type": "area", "radiance": colour(6, 5, 4)},
}
SKY = {"type": "constant", "radiance": 0.3}
PAINT = {"type": "diffuse", "reflectance": colour(0.3, 0.7, 0.5)}


def twosided(bsdf):
    return {"type": "twosided", "bsdf": bsdf}


def ball(bsdf, **parameters):
    return {"type": "sphere", "radius": 0.9, "bsdf": bsdf, **parameters}


def room(bsdf=None, **objects):
    """The floor under lamp and sky, with a ball of this BSDF."""
    all_objects = {"floor": FLOOR, "panel": PANEL, "sky": SKY, **objects}
    return {**all_objects, "ball": ball(bsdf)} if bsdf else all_objects


def films():
    window = {"width": 40, "height": 30, "crop_offset_x": 9, "crop_offset_y": 5, "crop_width": 20, "crop_height": 16}
    filters = [
        {"type": "box"},
        {"type": "tent", "radius": 2.3},
        {"type": "gaussian"},
        {"type": "mitchell", "B": 0.1, "C": 0.7},
        {"type": "catmullrom"},
        {"type": "lanczos", "lobes": 2},
    ]
    for rfilter in filters:
        yield f"crop_{rfilter['type']}", PATH, camera({**window, "rfilter": rfilter}), room(PAINT)
    border = {**window, "sample_border": True, "rfilter": {"type": "gaussian", "stddev": 0.8}}
    yield "crop_border", PATH, camera(border), room(PAINT)
    wide = {"width": 30, "height": 18}
    for axis in ["x", "y", "diagonal", "smaller", "larger"]:
        yield f"fov_{axis}", PATH, camera(wide, fov_axis=axis), room(PAINT)
    shift = {"principal_point_offset_x": 0.2, "principal_point_offset_y": -0.1}
    yield "shifted", PATH, camera(wide, **shift), room(PAINT)
    yield "clipped", PATH, camera(near_clip=4.0, far_clip=5.5), room(PAINT)
    lens = {"type": "thinlens", "aperture_radius": 0.2, "focus_distance": 3.0, "near_clip": 3.5, "far_clip": 6.0}
    yield "lens", PATH, camera(**lens), room(PAINT)
    yield "turned_over", PATH, camera(to_world=[scale(-1, 1, 1), look((0.5, 1.4, 4.4))]), room(PAINT)


def integrators():
    veil = {"type": "mask", "opacity": 0.5, "bsdf": twosided(PAINT)}
    for name in ["path", "volpath", "volpathmis"]:
        for depth in [1, 2, 3]:
            yield f"{name}_{depth}", {"type": name, "max_depth": depth, "rr_depth": 50}, camera(), room(veil)
        for depth in [1, 2]:
            roulette = {"type": name, "max_depth": 8, "rr_depth": depth}
            yield f"{name}_roulette_{depth}", roulette, camera(), room({"type": "dielectric"})
    lamp = {"type": "sphere", "radius": 0.4, "emitter": {"type": "area", "radiance": colour(3, 2, 1)}}
    leaf = {"type": "rectangle", "to_world": [scale(0.9), move(-0.8, 0.3, 1.8)], "bsdf": {**veil, "opacity": 0.4}}
    for name in ["path", "volpath", "direct"]:
        hidden = {"type": name, "hide_emitters": True, **({} if name == "direct" else {"max_depth": 4})}
        lamps = {
            "near": {**lamp, "center": [-0.9, 0.2, 1.0]},
            "far": {**lamp, "center": [-0.9, 0.2, 0.2], "radius": 0.3, "bsdf": PAINT},
        }
        yield f"hidden_{name}", hidden, camera(), room(PAINT, **lamps)
        yield f"masked_{name}", hidden, camera(), room(PAINT, near=lamps["near"], veil=leaf)
    yield "direct_samples", {"type": "direct", "shading_samples": 3}, camera(), room(PAINT)
    traced = {"type": "ptracer", "max_depth": 5, "rr_depth": 50}
    for name, seen in {"pinhole": camera(), "lens": camera(type="thinlens", aperture_radius=0.2, focus_distance=4.0)}.items():
        for kind in ["diffuse", "roughconductor", "roughdielectric", "roughplastic", "principled"]:
            bsdf = {"type": kind, **({"alpha": 0.3} if kind.startswith("rough") else {})}
            yield f"traced_{name}_{kind}", traced, seen, room(bsdf)


def lights():
    shapes = {
        "disk": {"type": "disk"},
        "cylinder": {"type": "cylinder", "p0": [0, -0.5, 0], "p1": [0.2, 0.8, 0], "radius": 0.4},
        "sphere": {"type": "sphere", "radius": 0.6},
        "cube": {"type": "cube"},
        "rectangle": {"type": "rectangle"},
    }
    bulb = {"type": "point", "position": [2, 2, 2], "intensity": colour(3, 3, 5)}
    for name, shape in shapes.items():
        size = scale(0.7) if name in ("cylinder", "sphere") else scale(0.5, 0.8, 1.0)
        place = [size, rotate(40, 1, 2, 3), move(-0.9, 0.6, 0.8)]
        for texture, radiance in {"uniform": colour(3, 2, 1), "textured": image("colours.exr", raw=True)}.items():
            for side, flipped in {"": False, "_flipped": True}.items():
                emitter = {"type": "area", "radiance": radiance, "sampling_weight": 0.3}
                lamp = {**shape, "to_world": place, "flip_normals": flipped, "emitter": emitter}
                objects = {"floor": FLOOR, "ball": ball(PAINT), "lamp": lamp, "bulb": bulb}
                yield f"light_{name}_{texture}{side}", PATH, camera(), objects
    plain = {"floor": FLOOR, "ball": ball(PAINT)}
    above = [look((-1, 3, 1.5), up=(1, 0, 0.2))]
    sky = {"type": "envmap", "filename": "sky.exr"}
    spot = {"type": "spot", "to_world": above, "intensity": colour(9, 8, 7)}
    kinds = {
        "spot": {**spot, "cutoff_angle": 30.0, "beam_width": 5.0, "texture": image()},
        "spot_sharp": {**spot, "cutoff_angle": 25.0, "beam_width": 25.0},
        "projector": {"type": "projector", "to_world": above, "irradiance": image(), "fov": 35.0, "fov_axis": "y", "scale": 5.0},
        "directional": {"type": "directional", "to_world": above, "irradiance": colour(2, 1, 0.5)},
        "envmap": {**sky, "scale": 2.0, "to_world": [rotate(50, 1, 2, 0.3)]},
    }
    for name, light in kinds.items():
        yield f"light_{name}", PATH, camera(), {**plain, "light": light}
    weights = {
        "panel": {**PANEL, "emitter": {**PANEL["emitter"], "sampling_weight": 0.0}},
        "bulb": {**bulb, "sampling_weight": 3.0},
        "spot": {**spot, "sampling_weight": 0.2},
        "sky": {**sky, "sampling_weight": 0.7},
    }
    yield "light_weights", PATH, camera(), {**plain, **weights}
    yield "light_unsampled_sky", PATH, camera(), {**plain, "panel": PANEL, "sky": {**sky, "sampling_weight": 0.0}}


def shapes():
    kinds = {
        "cube": {"type": "cube"},
        "sphere": {"type": "sphere", "center": [0.1, 0.2, 0]},
        "disk": {"type": "disk"},
        "cylinder": {"type": "cylinder"},
        "rectangle": {"type": "rectangle"},
    }
    surfaces = {
        "painted": {"type": "diffuse", "reflectance": image(filter_type="nearest")},
        "frosted": {"type": "roughdielectric", "alpha": 0.2, "int_ior": 1.3},
    }
    for name, shape in kinds.items():
        sides = (0.8, 0.8, 0.8) if name in ("sphere", "cylinder") else (0.8, 0.6, 0.7)
        for side, flipped in {"": False, "_flipped": True}.items():
            for how, sign in {"": 1, "mirrored_": -1}.items():
                size = scale(sign * sides[0], *sides[1:])
                for what, bsdf in surfaces.items():
                    shown = {**shape, "to_world": [size, rotate(40, 1, 2, 3), move(0, 0.2, 0)], "flip_normals": flipped}
                    yield f"{how}{name}_{what}{side}", PATH, camera(), room(shape={**shown, "bsdf": bsdf})


def checkerboard(color0, color1, times=6.0):
    return {"type": "checkerboard", "color0": color0, "color1": color1, "to_uv": [scale(times, times, times)]}


def bsdfs():
    grey = image("grey.png", raw=True)
    tint = checkerboard(0.9, colour(0.2, 0.5, 0.9))
    normals = {"normalmap": image("normals.png", raw=True)}
    every = {
        "rough_metal": {
            "type": "roughconductor", "distribution": "ggx", "eta": image(), "k": image("colours.exr"), "alpha_u": grey,
            "alpha_v": 0.4, "specular_reflectance": tint,
        },
        "metal_all_normals": {"type": "roughconductor", "material": "Cu", "alpha": grey, "sample_visible": False},
        "ggx_all_normals": {
            "type": "roughconductor", "material": "Au", "alpha": 0.4, "sample_visible": False, "distribution": "ggx",
        },
        "nearly_smooth": {"type": "roughconductor", "material": "Al", "alpha": 0.001},
        "mirror": {"type": "conductor", "eta": image(), "k": image("colours.exr"), "specular_reflectance": tint},
        "bubble": {
            "type": "dielectric", "int_ior": 1.0, "ext_ior": 1.5, "specular_reflectance": image(),
            "specular_transmittance": tint,
        },
        "nothing": {"type": "dielectric", "int_ior": 1.3, "ext_ior": 1.3},
        "plate": {"type": "thindielectric", "int_ior": "diamond", "specular_reflectance": image(), "specular_transmittance": tint},
        "frosted": {
            "type": "roughdielectric", "int_ior": 1.7, "alpha_u": 0.3, "alpha_v": grey, "specular_reflectance": image(),
            "specular_transmittance": tint,
        },
        "frosted_bubble": {"type": "roughdielectric", "int_ior": 1.0, "ext_ior": 1.4, "alpha": 0.3, "distribution": "ggx"},
        "frosted_all_normals": {"type": "roughdielectric", "int_ior": 1.5, "alpha": 0.3, "sample_visible": False},
        "plastic": {
            "type": "plastic", "diffuse_reflectance": image(), "specular_reflectance": tint, "nonlinear": True, "int_ior": 1.9,
        },
        "plastic_black": {"type": "plastic", "diffuse_reflectance": 0.0, "specular_reflectance": 0.7},
        "rough_plastic": {
            "type": "roughplastic", "diffuse_reflectance": image(), "specular_reflectance": tint, "nonlinear": True,
            "alpha": 0.3, "distribution": "ggx",
        },
        "rough_plastic_all_normals": {
            "type": "roughplastic", "diffuse_reflectance": image("alpha.png"), "alpha": 0.05, "sample_visible": False, "int_ior": 2.0,
        },
        "principled": {
            "type": "principled", "base_color": image(), "roughness": grey, "anisotropic": 0.6, "metallic": grey,
            "spec_trans": image("grey.exr", raw=True), "spec_tint": 0.5, "sheen": grey, "sheen_tint": 0.6, "flatness": 0.4,
            "clearcoat": grey, "clearcoat_gloss": 0.6, "eta": 1.6,
        },
        "principled_glass": {
            "type": "principled", "base_color": colour(0.8, 0.9, 0.5), "roughness": 0.3, "spec_trans": 1.0, "specular": 0.8,
        },
        "principled_rates": {
            "type": "principled", "base_color": image(), "roughness": 0.2, "metallic": 0.5, "clearcoat": 1.0,
            "main_specular_sampling_rate": 0.3, "clearcoat_sampling_rate": 2.0, "diffuse_reflectance_sampling_rate": 0.5,
        },
        "principled_thin": {
            "type": "principledthin", "base_color": image(), "roughness": grey, "anisotropic": 0.6, "spec_tint": 0.5,
            "spec_trans": image("grey.exr", raw=True), "sheen": grey, "flatness": 0.4, "diff_trans": 1.3, "eta": 1.4,
        },
        "blend_nested": {
            "type": "blendbsdf", "weight": grey, "a": {"type": "roughconductor"},
            "b": {"type": "blendbsdf", "weight": 0.4, "x": PAINT, "y": {"type": "plastic"}},
        },
        "blend_glass": {
            "type": "blendbsdf", "weight": 0.4, "a": {"type": "dielectric"},
            "b": {"type": "mask", "opacity": 0.6, "x": twosided(PAINT)},
        },
        "mixture": {"type": "blendbsdf", "weight": image(), "a": {"type": "roughconductor"}, "b": PAINT},
        "mask": {"type": "mask", "opacity": image("grey.png"), "b": twosided({"type": "diffuse", "reflectance": image()})},
        "mask_colours": {"type": "mask", "opacity": image(), "b": twosided({"type": "plastic"})},
        "mask_glass": {"type": "mask", "opacity": 0.7, "b": {"type": "dielectric"}},
        "mask_mask": {"type": "mask", "opacity": 0.7, "b": {"type": "mask", "opacity": 0.6, "b": PAINT}},
        "normals_brushed": {"type": "normalmap", **normals, "b": {"type": "roughconductor", "alpha_u": 0.1, "alpha_v": 0.4}},
        "normals_kept": {
            "type": "normalmap", "normalmap": image("normals.png", raw=True, to_uv=[scale(4.0, 4.0, 1.0)]),
            "flip_invalid_normals": False, "use_shadowing_function": False, "b": {"type": "roughplastic"},
        },
        "normals_both_sides": twosided({"type": "normalmap", **normals, "b": PAINT}),
        "normals_glass": {"type": "normalmap", **normals, "b": {"type": "dielectric"}},
        "normals_frosted": {"type": "normalmap", **normals, "b": {"type": "roughdielectric", "alpha": 0.2}},
        "normals_mirror": {"type": "normalmap", **normals, "b": {"type": "conductor"}},
        "normals_mixture": {
            "type": "normalmap", **normals, "b": {"type": "blendbsdf", "weight": 0.3, "x": PAINT, "y": {"type": "roughconductor"}},
        },
        "normals_mask": {"type": "normalmap", **normals, "b": {"type": "mask", "opacity": 0.6, "x": PAINT}},
        "bumps": {"type": "bumpmap", "b": PAINT, "t": grey, "scale": 0.3},
        "bumps_both_sides": twosided({"type": "bumpmap", "b": {"type": "roughplastic"}, "t": grey, "scale": 0.1}),
        "two": {"type": "twosided", "a": {"type": "roughconductor"}, "b": {"type": "plastic", "diffuse_reflectance": image()}},
    }
    for name, bsdf in every.items():
        yield f"ball_{name}", PATH, camera(), room(bsdf)
        left = {"type": "rectangle", "to_world": [scale(0.8), rotate(-30, 0, 1, 0), move(-0.8, 0.1, 0.4)], "bsdf": bsdf}
        right = {**left, "to_world": [scale(0.8), rotate(160, 0, 1, 0.1), move(0.9, 0.1, 0.4)]}
        yield f"sheet_{name}", PATH, camera(), room(left=left, right=right)


def textures():
    every = {
        "mirror": image(wrap_mode="mirror", to_uv=[rotate(30, 0, 0, 1), scale(3.0, 2.0, 1.0), move(0.3, 0.1, 0)]),
        "clamp": image(wrap_mode="clamp", to_uv=[move(-0.5, -0.5, 0), scale(2.0, 2.0, 1.0), move(0.3, 0.6, 0)]),
        "repeat": image(to_uv=[scale(-2.0, 3.0, 1.0)]),
        "nearest": image(filter_type="nearest", wrap_mode="mirror", to_uv=[scale(3.0, 3.0, 1.0)]),
        "raw": image(raw=True),
        "half": image(format="float16"),
        **{name: image(name) for name in IMAGES if name not in ("sky.exr", "normals.png")},
        "checkerboard": checkerboard(colour(0.9, 0.1, 0.2), 0.3, 5.0),
    }
    for name, texture in every.items():
        bsdf = {"type": "diffuse", "reflectance": texture}
        yield f"texture_{name}", PATH, camera(), {**room(bsdf), "floor": {**FLOOR, "bsdf": bsdf}}


def media():
    fog = {"type": "homogeneous", "sigma_t": 1.5, "albedo": colour(0.8, 0.7, 0.5), "phase": {"type": "hg", "g": 0.3}}
    volpath = {"type": "volpath", "max_depth": 8, "rr_depth": 50}
    shells = {
        "glass": {"type": "dielectric", "int_ior": 1.3},
        "frosted": {"type": "roughdielectric", "alpha": 0.3, "int_ior": 1.3},
        "plate": {"type": "thindielectric"},
        "mask": {"type": "mask", "opacity": 0.4, "b": twosided(PAINT)},
        "null": {"type": "null"},
        "principled": {"type": "principled", "spec_trans": 0.8, "roughness": 0.3, "base_color": colour(0.9, 0.8, 0.7)},
        "principled_thin": {"type": "principledthin", "spec_trans": 0.7, "diff_trans": 0.8},
        "mixture": {"type": "blendbsdf", "weight": 0.5, "a": {"type": "roughdielectric", "alpha": 0.3}, "b": twosided(PAINT)},
    }
    for name, bsdf in shells.items():
        yield f"medium_{name}", volpath, camera(), room(fog={**ball(bsdf), "interior": fog})


IMAGES = {
    "colours.png": ((5, 7, 3), 20, 250, np.uint8),
    "grey.png": ((6, 4, 1), 20, 250, np.uint8),
    "alpha.png": ((6, 5, 4), 20, 250, np.uint8),
    "normals.png": ((6, 5, 3), 70, 190, np.uint8),
    "grey16.png": ((6, 4, 1), 2000, 65000, np.uint16),
    "colours16.png": ((6, 4, 3), 2000, 65000, np.uint16),
    "one.png": ((1, 1, 3), 20, 250, np.uint8),
    "row.png": ((1, 6, 3), 20, 250, np.uint8),
    "colours.exr": ((6, 5, 3), 0.05, 0.95, np.float32),
    "grey.exr": ((6, 5, 1), 0.05, 0.95, np.float32),
    "photo.jpg": ((16, 16, 3), 20, 250, np.uint8),
    "sky.exr": ((8, 16, 3), 0.0, 4.0, np.float32),
}


def write_images(folder):
    random = np.random.default_rng(5)
    for name, (shape, low, high, kind) in IMAGES.items():
        pixels = random.uniform(low, high, shape)
        if name == "normals.png":
            pixels[..., 2] += 60
        mi.Bitmap(pixels.astype(kind)).write(str(folder / name))


def compare(program, path, batches, spp):
    """What differs between both pictures of a scene, as text, and whether it is too much."""
    seeds = range(1, batches + 1)
    theirs = measure.render_mitsuba(path, seeds, spp)
    ours = measure.render_prbopt(program, path, seeds, spp)
    z, _ = measure.welch(ours, theirs)
    bound = NormalDist().inv_cdf(1 - (1 - (1 - measure.FAMILY) ** (1 / z.size)) / 2)
    pixels = int((z > bound).any(axis=2).sum())
    a, b = (images.mean(axis=(1, 2, 3)) for images in (ours, theirs))
    error = math.sqrt((a.var(ddof=1) + b.var(ddof=1)) / len(a)) + 1e-12
    deviate = (a.mean() - b.mean()) / error
    mean = 100 * (a.mean() / b.mean() - 1) if b.mean() else 0.0
    return f"{pixels} pixels, mean {mean:+.2f} % ({deviate:+.1f} standard errors)", 100 * pixels > ours[0, ..., 0].size or abs(deviate) > 4


def main():
    parser = argparse.ArgumentParser(description="Compares prbopt with Mitsuba on many small scenes.")
    parser.add_argument("prefixes", nargs="*", help="beginnings of names")
    parser.add_argument("--prbopt", type=Path, required=True, help="the program")
    parser.add_argument("--batches", type=int, default=12)
    parser.add_argument("--spp", type=int, default=96, help="samples a pixel in each batch")
    options = parser.parse_args()
    mi.set_variant("scalar_rgb")
    mi.set_log_level(mi.LogLevel.Error)
    families = [films, integrators, lights, shapes, bsdfs, textures, media]
    scenes = [scene for family in families for scene in family()]
    program, count, wrong = os.path.abspath(options.prbopt), 0, 0
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        write_images(folder)
        for name, integrator, sensor, objects in scenes:
            if options.prefixes and not name.startswith(tuple(options.prefixes)):
                continue
            path = folder / "scene.json"
            path.write_text(json.dumps({"integrator": integrator, "camera": sensor, **objects}))
            text, differs = compare(program, path, options.batches, options.spp)
            why = next((why for start, why in KNOWN.items() if name.startswith(start)), None)
            count, wrong = count + 1, wrong + int(differs and why is None)
            if differs:
                print(f"{name}: {text}: {why or 'UNKNOWN'}", flush=True)
    print(f"{count} scenes, {wrong} of which differ for no known reason")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
