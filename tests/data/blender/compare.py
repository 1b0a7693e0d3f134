"""Holds a scene of glTF, rendered by Blender's Cycles, beside the same scene rendered by prbopt.

    prbopt export SCENE.json -o SCENE.glb && prbopt render SCENE.json --spp 512 -o SCENE.exr
    blender --background --factory-startup --python-exit-code 1 --python tests/data/blender/compare.py -- \\
        SCENE.glb SCENE.exr [--samples 512] [--bounces 5] [--blocks 8] [--mean 0.05] [--picture SCENE_blender.png]

Prints both means, their ratio channel by channel, and the largest difference of a block of pixels, relative to the mean.
Exits with 1 if the means differ by more than --mean. Pixels are linear and without tone mapping.

    blender --background --factory-startup --python-exit-code 1 --python tests/data/blender/compare.py -- \\
        --volume FOG.vdb LOW_X LOW_Y LOW_Z HIGH_X HIGH_Y HIGH_Z

opens an OpenVDB file, prints its grids, and exits with 1 unless the box around it is this one, to 1e-4 of its edges.
"""

import argparse
import sys

import bpy
import numpy as np

# Blender 3.4's importer asks for a name that numpy from 1.24 on has not.
np.bool = bool


def box_of_volume(path, bounds):
    """The box around a volume in the world, beside the one that is expected."""
    bpy.ops.object.volume_import(filepath=path)
    volume = bpy.context.object
    grids = volume.data.grids
    grids.load()
    print("grids:", ", ".join(f"{grid.name} ({grid.data_type})" for grid in grids))
    # Blender's box is around the middles of voxels, in the file's own axes.
    half = 0.5 * np.linalg.norm(np.array(grids[0].matrix_object)[:3, :3], axis=0)
    corners = np.array([tuple(corner) for corner in volume.bound_box])
    found = np.concatenate([corners.min(axis=0) - half, corners.max(axis=0) + half])
    expected = np.array(bounds)
    print("box:     ", found)
    print("expected:", expected)
    return bool(np.all(np.abs(found - expected) <= 1e-4 * np.max(expected[3:] - expected[:3])))


def pixels_of(path):
    """Rows from the top of an image file, three channels, linear."""
    image = bpy.data.images.load(path)
    image.colorspace_settings.name = "Linear"
    width, height = image.size
    return np.array(image.pixels[:], dtype=np.float64).reshape(height, width, image.channels)[::-1, :, :3]


def render(scene, path, size, samples, bounces):
    """Renders by Cycles, with nothing that would make the picture smoother or darker than it is."""
    scene.render.engine = "CYCLES"
    cycles = scene.cycles
    cycles.device = "CPU"
    cycles.samples = samples
    cycles.use_adaptive_sampling = False
    cycles.use_denoising = False
    cycles.sample_clamp_direct = cycles.sample_clamp_indirect = 0
    cycles.blur_glossy = 0
    cycles.light_sampling_threshold = 0
    cycles.pixel_filter_type = "BOX"
    cycles.max_bounces = cycles.diffuse_bounces = cycles.glossy_bounces = bounces
    cycles.transmission_bounces = bounces
    scene.render.resolution_x, scene.render.resolution_y = size
    scene.render.resolution_percentage = 100
    scene.render.image_settings.file_format = "OPEN_EXR"
    scene.render.image_settings.color_depth = "32"
    scene.render.filepath = path
    bpy.ops.render.render(write_still=True)


def save(pixels, path):
    """A picture to look at, sRGB-coded."""
    height, width, _ = pixels.shape
    image = bpy.data.images.new("shown", width, height, float_buffer=False)
    light = np.clip(pixels[::-1], 0, 1)
    coded = np.where(light <= 0.0031308, 12.92 * light, 1.055 * light ** (1 / 2.4) - 0.055)
    image.pixels = np.dstack([coded, np.ones((height, width))]).ravel().tolist()
    image.filepath_raw = path
    image.file_format = "PNG"
    image.save()


def main():
    parser = argparse.ArgumentParser(prog="compare.py")
    parser.add_argument("scene", nargs="?")
    parser.add_argument("ours", nargs="?")
    parser.add_argument("--volume", nargs=7, metavar=("FILE", *"xyzXYZ"))
    parser.add_argument("--samples", type=int, default=512)
    parser.add_argument("--bounces", type=int, default=5, help="of a scene of `max_depth` edges, one less")
    parser.add_argument("--blocks", type=int, default=8, help="edge of the blocks that are compared, in pixels")
    parser.add_argument("--mean", type=float, default=0.05, help="largest relative difference of the means")
    parser.add_argument("--picture", help="where Blender's picture goes, to look at")
    args = parser.parse_args(sys.argv[sys.argv.index("--") + 1 :])
    bpy.ops.wm.read_factory_settings(use_empty=True)
    if args.volume:
        path, *bounds = args.volume
        return box_of_volume(path, [float(x) for x in bounds])
    bpy.ops.import_scene.gltf(filepath=args.scene)
    scene = bpy.context.scene
    cameras = [thing for thing in scene.objects if thing.type == "CAMERA"]
    scene.camera = cameras[0]
    for light in bpy.data.lights:
        # glTF's lights are points; the importer leaves them the size that new lights have.
        if light.type == "SUN":
            light.angle = 0
        else:
            light.shadow_soft_size = 0
    ours = pixels_of(args.ours)
    height, width, _ = ours.shape
    rendered = args.ours + ".blender.exr"
    render(scene, rendered, (width, height), args.samples, args.bounces)
    theirs = pixels_of(rendered)
    if args.picture:
        save(theirs, args.picture)
    print("mean of prbopt: ", ours.mean(axis=(0, 1)), ours.mean())
    print("mean of Blender:", theirs.mean(axis=(0, 1)), theirs.mean())
    ratio = theirs.mean() / ours.mean()
    print("ratio:", theirs.mean(axis=(0, 1)) / ours.mean(axis=(0, 1)), ratio)
    n = args.blocks
    def block(image):
        whole = image[: height // n * n, : width // n * n]
        return whole.reshape(height // n, n, width // n, n, 3).mean(axis=(1, 3))
    difference = np.abs(block(theirs) - block(ours)).max(axis=2) / ours.mean()
    row, column = np.unravel_index(difference.argmax(), difference.shape)
    print(f"blocks of {n}×{n}: mean difference {difference.mean():.4f}, largest {difference.max():.3f} of the mean,"
          f" at x {column * n}, y {row * n}")
    return abs(ratio - 1) <= args.mean


if not main():
    sys.exit(1)
