"""Writes the signed distances of `scenes/levels.json`: a wavy ball and a torus, which touch no side of their grids.

    python3 tests/data/peer/levels.py

Mitsuba exchanges the sizes along x and z, so that both grids have the same size along all axes.
"""

import math
import struct
from pathlib import Path

FOLDER = Path(__file__).resolve().parent / "scenes"


def write(name, points, distance):
    at = [i / (points - 1) - 0.5 for i in range(points)]
    values = [distance(x, y, z) for z in at for y in at for x in at]
    header = b"VOL\x03" + struct.pack("<5i6f", 1, points, points, points, 1, 0, 0, 0, 1, 1, 1)
    (FOLDER / name).write_bytes(header + struct.pack(f"<{len(values)}f", *values))


def wavy(x, y, z):
    return math.hypot(x, y, z) - 0.36 + 0.06 * math.sin(13 * x + 1) * math.sin(11 * y) * math.sin(12 * z + 2)


def torus(x, y, z):
    return math.hypot(math.hypot(x, y) - 0.29, z) - 0.13


write("wavy.vol", 21, wavy)
write("torus.vol", 13, torus)
