//! OpenVDB's files, written by tests/data/vdb/write.cc, give the values that went into them.

use std::path::{Path, PathBuf};

use prbopt::io::{Grid, vdb};

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/vdb").join(name)
}

fn read(name: &str) -> Grid {
    let path = file(name);
    let grid = vdb::read(&path).unwrap_or_else(|e| panic!("{e}"));
    let header = vdb::header(&path).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(
        (header.size, header.channels, header.bounds),
        (grid.size, 1, grid.bounds)
    );
    assert_eq!(grid.data.len(), grid.size.iter().product::<usize>());
    grid
}

/// The voxels that write.cc writes: 0 where they are inactive.
fn value(x: i32, y: i32, z: i32) -> f32 {
    let active = (x + 2 * y + 3 * z) % 4 != 0;
    if active {
        ((x * x * 7 + y * 13 + z / 8 * 29) % 64) as f32 / 64.0
    } else {
        0.0
    }
}

fn check_cloud(name: &str, bounds: [[f32; 3]; 2]) {
    let grid = read(name);
    assert_eq!(grid.size, [10, 8, 20], "{name}");
    assert_eq!(grid.bounds, bounds, "{name}");
    let mut found = grid.data.iter();
    for z in 120..=139 {
        for y in 3..=10 {
            for x in -5..=4 {
                assert_eq!(*found.next().expect("a voxel"), value(x, y, z), "{name} at {x} {y} {z}");
            }
        }
    }
}

#[test]
fn every_compression_gives_the_values() {
    let plain = [[-5.5, 2.5, 119.5], [4.5, 10.5, 139.5]];
    for name in ["float_mask.vdb", "half_zip.vdb", "half_blosc.vdb"] {
        check_cloud(name, plain);
    }
}

/// What is written is read again, whole or half, with its place; zeros at the borders count as texels.
#[test]
fn what_is_written_is_read_again() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("a.vdb");
    // More than a leaf along x, more than an inner node along z, and nothing in most of it.
    let size = [19, 8, 150];
    let at = |i: usize| [i % size[0], i / size[0] % size[1], i / (size[0] * size[1])];
    let value = |i: usize| match at(i) {
        [x, y, z] if (3..17).contains(&x) && y > 0 && (z < 9 || (100..131).contains(&z)) => {
            (x * 7 + y * 5 + z) as f32 / 256.0
        }
        _ => 0.0,
    };
    let data: Vec<f32> = (0..size.iter().product()).map(value).collect();
    let scale = glam::DVec3::new(1.9, 0.8, 30.0);
    let shift = glam::DVec3::new(-1.0, 2.0, 0.5);
    let volume = vdb::Volume {
        name: "density",
        size,
        channels: 1,
        data: &data,
        to_world: glam::DAffine3::from_scale_rotation_translation(scale, glam::DQuat::IDENTITY, shift),
    };
    for half in [false, true] {
        vdb::write(&path, &[volume], half).expect("writable");
        let grid = vdb::read(&path).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(grid.size, size);
        let bounds = [[-1.0, 2.0, 0.5], [0.9, 2.8, 30.5]];
        for (a, b) in grid.bounds.as_flattened().iter().zip(bounds.as_flattened()) {
            assert!((a - b).abs() < 1e-6, "{:?}", grid.bounds);
        }
        assert_eq!(grid.data, data);
        let again = folder.path().join("b.vdb");
        vdb::write(&again, &[volume], half).expect("writable");
        let bytes = |path: &Path| std::fs::read(path).expect("readable");
        assert_eq!(bytes(&path), bytes(&again), "the same grid gives the same bytes");
    }
    let whole = std::fs::metadata(&path).expect("written").len();
    assert!(whole < 20_000, "{whole}: what is empty takes no room");
    // The grid called `density` is read among others; a turned one is refused.
    let color = vdb::Volume {
        name: "albedo",
        channels: 3,
        size: [1, 2, 2],
        data: &data[..12],
        ..volume
    };
    vdb::write(&path, &[color, volume], false).expect("writable");
    assert_eq!(vdb::read(&path).unwrap_or_else(|e| panic!("{e}")).data, data);
    let turned = vdb::Volume {
        to_world: glam::DAffine3::from_rotation_y(0.3),
        ..volume
    };
    vdb::write(&path, &[turned], false).expect("writable");
    assert!(
        vdb::read(&path)
            .expect_err("turned")
            .to_string()
            .contains("rotates or shears")
    );
    let many = vdb::Volume { channels: 2, ..volume };
    assert!(
        vdb::write(&path, &[many], false)
            .expect_err("two")
            .to_string()
            .contains("2 channels")
    );
}

/// Runs one of OpenVDB's own programs; None if it is not there, which fails where `PRBOPT_REQUIRE_OPENVDB` is set.
fn openvdb(program: &str, arguments: &[&std::ffi::OsStr]) -> Option<String> {
    let Ok(output) = std::process::Command::new(program).args(arguments).output() else {
        assert!(
            std::env::var_os("PRBOPT_REQUIRE_OPENVDB").is_none(),
            "{program} cannot be run; install it (Debian: libopenvdb-tools)"
        );
        eprintln!("skipped: {program} is not there (Debian: libopenvdb-tools)");
        return None;
    };
    let told = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    assert!(output.status.success(), "{program} {arguments:?}: {told:?}");
    Some(told.concat())
}

/// OpenVDB itself lists what is written, and reads it: what it writes then, packed by either codec, has the same values in
/// the same place.
#[test]
fn openvdb_reads_what_is_written() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let [ours, theirs] = ["a.vdb", "b.vdb"].map(|name| folder.path().join(name));
    // Leaves and inner nodes that differ along each axis, and empty ones between them.
    let size = [19, 140, 9];
    let count: usize = size.iter().product();
    let value = |i: usize| match i / size[0] % size[1] {
        20..120 => 0.0,
        _ => (i * 7919 % 1021) as f32 / 1024.0,
    };
    let data: Vec<f32> = (0..3 * count).map(value).collect();
    let scale = glam::DVec3::new(1.9, 14.0, 0.45);
    let density = vdb::Volume {
        name: "density",
        size,
        channels: 1,
        data: &data[..count],
        to_world: glam::DAffine3::from_scale_rotation_translation(
            scale,
            glam::DQuat::IDENTITY,
            glam::DVec3::new(-1.0, 2.0, 0.5),
        ),
    };
    let albedo = vdb::Volume {
        name: "cloud.albedo",
        channels: 3,
        data: &data,
        ..density
    };
    for half in [false, true] {
        vdb::write(&ours, &[albedo, density], half).expect("writable");
        let Some(told) = openvdb("vdb_print", &["-l".as_ref(), ours.as_ref()]) else {
            return;
        };
        for line in [
            "Name: cloud.albedo",
            "Type: Tree_vec3s_5_4_3",
            "Name: density",
            "Type: Tree_float_5_4_3",
            "class: fog volume",
            "Bounding box of active voxels: [0, 0, 0] -> [18, 139, 8]",
            &format!("is_saved_as_half_float: {half}"),
            // Voxels are a tenth wide, their values in the middle.
            "voxel dimensions: [0.1, 0.1, 0.05]",
            "[-0.95, 2.05, 0.525, 1]",
        ] {
            assert!(told.contains(line), "{line}\n{told}");
        }
        vdb::write(&ours, &[density], half).expect("writable");
        for codec in ["codec=blosc", "codec=zip", "codec=none"] {
            let arguments = [
                "-read".as_ref(),
                ours.as_ref(),
                "-write".as_ref(),
                codec.as_ref(),
                theirs.as_ref(),
            ];
            if openvdb("vdb_tool", &arguments).is_none() {
                return;
            }
            let grid = vdb::read(&theirs).unwrap_or_else(|e| panic!("{e}"));
            assert_eq!((grid.size, &grid.data[..]), (size, density.data), "{codec}");
            for (a, b) in grid.bounds.as_flattened().iter().zip([-1.0, 2.0, 0.5, 0.9, 16.0, 0.95]) {
                assert!((a - b).abs() < 1e-5, "{:?}", grid.bounds);
            }
        }
    }
}

/// A grid that is the only one may have any name.
#[test]
fn a_placed_grid_has_its_place() {
    check_cloud("float_zip.vdb", [[7.25, -18.75, 89.75], [12.25, -14.75, 99.75]]);
}

/// This file holds another grid of floats besides.
#[test]
fn the_density_is_chosen_and_its_voxels_may_be_boxes() {
    check_cloud("float_blosc.vdb", [[-2.75, 3.75, 239.0], [2.25, 15.75, 279.0]]);
}

#[test]
fn tiles_are_filled() {
    let grid = read("tiles.vdb");
    // From the lone voxel at x = -9 to the end of the large tile.
    assert_eq!(grid.size, [137, 256, 128]);
    assert_eq!(grid.bounds, [[-9.5, -0.5, -0.5], [127.5, 255.5, 127.5]]);
    for z in 0..128 {
        for y in 0..256 {
            for x in -9..128 {
                let expected = match (x, y, z) {
                    (-9, 0, 8) => 5.0,
                    (-9, 1, 8) => 6.0,
                    (-8..0, 0..8, 8..16) => 2.0,
                    (0..8, 0..8, 8..16) => 3.0,
                    (0..128, 128..256, 0..128) => 4.0,
                    _ => 0.25,
                };
                let at = (z as usize * 256 + y as usize) * 137 + (x + 9) as usize;
                assert_eq!(grid.data[at], expected, "{x} {y} {z}");
            }
        }
    }
}

#[test]
fn what_is_no_fog_volume_is_refused() {
    for (name, expected) in [
        ("level_set.vdb", "`density` of class `level set`, expected a fog volume"),
        ("vector.vdb", "`velocity` (Tree_vec3s_5_4_3), expected a grid of floats"),
        ("rotated.vdb", "rotates or shears"),
        (
            "several.vdb",
            "`fuel` (Tree_float_5_4_3), `heat` (Tree_float_5_4_3), expected one of them to be called `density`",
        ),
        ("empty.vdb", "`density` without an active voxel"),
        ("write.cc", "is not an OpenVDB file"),
    ] {
        let header = vdb::header(&file(name)).expect_err(name).to_string();
        let read = vdb::read(&file(name)).expect_err(name).to_string();
        assert!(header.contains(expected), "{header}");
        assert_eq!(header, read);
    }
}

/// Reads a file after the first occurrence of `from` in it is replaced.
fn read_damaged(name: &str, from: &[u8], to: &[u8]) -> Result<Grid, String> {
    let mut bytes = std::fs::read(file(name)).expect("readable");
    let at = (0..bytes.len()).find(|&i| bytes[i..].starts_with(from));
    let at = at.unwrap_or_else(|| panic!("{from:?} is not in {name}"));
    bytes.splice(at..at + from.len(), to.iter().copied());
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("a.vdb");
    std::fs::write(&path, bytes).expect("writable");
    vdb::read(&path).map_err(|e| e.to_string())
}

#[test]
fn damage_is_told() {
    let origin = |x: i32| [x, 0, 0].map(i32::to_le_bytes).concat();
    let (value, nan) = ((63.0f32 / 64.0).to_le_bytes(), f32::NAN.to_le_bytes());
    for (name, from, to, expected) in [
        (
            "tiles.vdb",
            &[224, 0, 0, 0][..],
            &[221, 0, 0, 0][..],
            "file version 221, expected 222 to 224",
        ),
        (
            "tiles.vdb",
            b"UniformScaleMap",
            b"UniformWarpsMap",
            "of type `UniformWarpsMap`",
        ),
        (
            "tiles.vdb",
            b"density\x10\0",
            b"density\x10\xff",
            "is truncated or damaged",
        ),
        ("tiles.vdb", &origin(-4096), &origin(-4095), "a node at [-4095, 0, 0]"),
        (
            "tiles.vdb",
            &origin(-4096),
            &origin(-4096 << 12),
            "a box of 16773257 × 256 × 128",
        ),
        ("float_mask.vdb", &value, &nan, "is NaN, expected finite numbers"),
    ] {
        let error = read_damaged(name, from, to).expect_err(expected);
        assert!(error.contains(expected), "{error}");
    }
}
