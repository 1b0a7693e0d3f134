//! Properties of the parsers: what is written is read back; random, mutated and truncated files give errors, never a
//! panic or an allocation that a header merely claims.

mod formats;
mod results;

use std::alloc::{GlobalAlloc, Layout, System};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use proptest::prelude::*;
use proptest::sample::Index;

use prbopt::cli::import::mitsuba::convert;
use prbopt::io::tensors::{self, Tensor, Values};
use prbopt::io::{Encoding, Grid, Image, dataset, image, mesh, npy, vdb, vol};

/// Remembers the largest allocation of the whole program.
struct Watch;

static LARGEST: AtomicUsize = AtomicUsize::new(0);

/// No test file holds more than a few KiB, so nothing near this is ever needed; a sparse grid may fill 64 MiB.
const MAX_ALLOCATION: usize = 80 << 20;

// SAFETY: every call is passed on to the system's allocator unchanged.
unsafe impl GlobalAlloc for Watch {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LARGEST.fetch_max(layout.size(), Ordering::Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        LARGEST.fetch_max(layout.size(), Ordering::Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        LARGEST.fetch_max(size, Ordering::Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.realloc(pointer, layout, size) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static WATCH: Watch = Watch;

/// A kind of file: how an example is written, and how any file of that name is read.
struct Format {
    file: &'static str,
    example: fn(&Path),
    read: fn(&Path) -> bool,
}

const FORMATS: [Format; 20] = [
    Format {
        file: "a.vol",
        example: write_vol,
        read: |path| vol::read(path).is_ok(),
    },
    Format {
        file: "a.xml",
        example: write_xml,
        read: |path| convert(path, &path.with_extension("json"), &[]).is_ok(),
    },
    Format {
        file: "a.npy",
        example: write_npy,
        read: |path| npy::read(path).is_ok(),
    },
    Format {
        file: "a.safetensors",
        example: write_tensors,
        read: read_tensors,
    },
    Format {
        file: "a.exr",
        example: |path| image::write_exr(path, &picture(4)).expect("writable"),
        read: read_image,
    },
    Format {
        file: "a.png",
        example: |path| image::write_png(path, &picture(4)).expect("writable"),
        read: read_image,
    },
    Format {
        file: "palette.png",
        example: |path| fs::write(path, PALETTE_PNG).expect("writable"),
        read: read_image,
    },
    Format {
        file: "a.jpg",
        example: write_rgb,
        read: read_image,
    },
    Format {
        file: "a.bmp",
        example: write_rgb,
        read: read_image,
    },
    Format {
        file: "a.tga",
        example: write_rgb,
        read: read_image,
    },
    Format {
        file: "a.obj",
        example: |path| fs::write(path, TETRAHEDRON_OBJ).expect("writable"),
        read: |path| mesh::read_obj(path, false, true).is_ok_and(check_mesh),
    },
    Format {
        file: "text.ply",
        example: |path| write_ply(path, false),
        read: |path| mesh::read_ply(path, false, false).is_ok_and(check_mesh),
    },
    Format {
        file: "binary.ply",
        example: |path| write_ply(path, true),
        read: |path| mesh::read_ply(path, true, false).is_ok_and(check_mesh),
    },
    Format {
        file: "a.serialized",
        example: |path| fs::write(path, include_bytes!("../data/peer/scenes/gems.serialized")).expect("writable"),
        read: |path| mesh::read_serialized(path, 1, false).is_ok_and(check_mesh),
    },
    Format {
        file: "float_zip.vdb",
        example: |path| fs::write(path, include_bytes!("../data/vdb/float_zip.vdb")).expect("writable"),
        read: read_vdb,
    },
    Format {
        file: "half_blosc.vdb",
        example: |path| fs::write(path, include_bytes!("../data/vdb/half_blosc.vdb")).expect("writable"),
        read: read_vdb,
    },
    Format {
        file: "transforms.json",
        example: write_transforms,
        read: read_dataset,
    },
    Format {
        file: "cameras.bin",
        example: write_colmap_binary,
        read: read_dataset,
    },
    Format {
        file: "images.bin",
        example: write_colmap_binary,
        read: read_dataset,
    },
    Format {
        file: "images.txt",
        example: write_colmap_text,
        read: read_dataset,
    },
];

/// Files of a folder by name.
type Files = Vec<(OsString, Vec<u8>)>;

/// Each format's example, made once: to write one takes as long as the disk does.
static EXAMPLES: LazyLock<Vec<Files>> = LazyLock::new(|| {
    let files = |format: &Format| {
        let folder = tempfile::tempdir().expect("a temporary folder");
        (format.example)(&folder.path().join(format.file));
        let entries = fs::read_dir(folder.path()).expect("there");
        let entries = entries.map(|entry| entry.expect("readable"));
        entries
            .map(|entry| (entry.file_name(), fs::read(entry.path()).expect("readable")))
            .collect()
    };
    FORMATS.iter().map(files).collect()
});

/// A fresh folder with a format's example, and its file, which has been changed.
fn changed(which: usize, change: impl Fn(&mut Vec<u8>)) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for (name, bytes) in &EXAMPLES[which] {
        let mut bytes = bytes.clone();
        if name == FORMATS[which].file {
            change(&mut bytes);
        }
        fs::write(folder.path().join(name), bytes).expect("writable");
    }
    let path = folder.path().join(FORMATS[which].file);
    (folder, path)
}

fn grid() -> Grid {
    let data = (0..48).map(|i| i as f32 * 0.25 - 3.0).collect();
    Grid {
        size: [2, 3, 4],
        channels: 2,
        bounds: [[-1.0, -2.0, -3.0], [1.0, 2.0, 3.0]],
        data,
    }
}

fn picture(channels: usize) -> Image {
    let data = (0..7 * 5 * channels).map(|i| (i * 37 % 256) as f32 / 255.0).collect();
    Image {
        width: 7,
        height: 5,
        channels,
        data,
    }
}

fn write_vol(path: &Path) {
    vol::write(path, &grid()).expect("writable");
}

fn write_npy(path: &Path) {
    npy::write(path, &grid()).expect("writable");
}

fn write_xml(path: &Path) {
    let text = r#"<?xml version="1.0"?>
<scene version="3.0.0">
    <default name="spp" value="4"/>
    <sensor type="perspective" id="eye">
        <transform name="to_world"><lookat origin="0 0 4" target="0, 0, 0"/></transform>
        <sampler type="independent"><integer name="sample_count" value="$spp"/></sampler>
        <film type="hdrfilm"><integer name="width" value="8"/><integer name="height" value="8"/></film>
    </sensor>
    <bsdf type="twosided" id="grey"><bsdf type="diffuse"><rgb name="reflectance" value=".5"/></bsdf></bsdf>
    <shape type="sphere"><point name="center" x="0" y="1" z="0"/><ref id="grey"/></shape>
    <emitter type="constant"><spectrum name="radiance" value="400:1, 700:2"/></emitter>
</scene>
"#;
    fs::write(path, text.trim_end()).expect("writable");
}

fn write_tensors(path: &Path) {
    let tensors = [
        Tensor {
            name: "values".into(),
            shape: vec![2, 2],
            values: Values::F32(&[1.0, -2.0, 3.5, 0.0]),
        },
        Tensor {
            name: "state".into(),
            shape: vec![3],
            values: Values::U64(&[1, u64::MAX, 3]),
        },
    ];
    let text = BTreeMap::from([("note".to_owned(), "text".to_owned())]);
    tensors::write(path, &tensors, &text).expect("writable");
}

fn read_tensors(path: &Path) -> bool {
    let Ok(mut reader) = tensors::Reader::open(path) else {
        return false;
    };
    let names = reader.names();
    // Arrays of other types are errors, which is all right as long as nothing breaks.
    names
        .iter()
        .for_each(|name| drop((reader.f32(name), reader.u32(name), reader.u64(name))));
    true
}

fn read_image(path: &Path) -> bool {
    let header = image::header(path).ok();
    let read = image::read(path).ok();
    if let Some((image, _)) = &read {
        let header = header.expect("an image that can be read has a header that can be read");
        assert_eq!(
            (header.width, header.height, header.channels),
            (image.width, image.height, image.channels)
        );
        assert_eq!(image.data.len(), image.width * image.height * image.channels);
    }
    read.is_some()
}

fn read_dataset(path: &Path) -> bool {
    dataset::load(path).is_ok()
}

/// A picture of seven by five pixels in the format that the path names.
fn write_rgb(path: &Path) {
    let bytes: Vec<u8> = picture(3).data.iter().map(|v| (v * 255.0) as u8).collect();
    let buffer = ::image::RgbImage::from_raw(7, 5, bytes).expect("as long as it should be");
    buffer.save(path).expect("writable");
}

fn write_transforms(path: &Path) {
    let json = r#"{ "camera_angle_x": 0.7, "k1": 0.01, "w": 7, "h": 5, "aabb_scale": 2, "camera_model": "OPENCV",
        "frames": [ { "file_path": "./a", "transform_matrix":
            [[0.0, -1.0, 0.0, 1.5], [1.0, 0.0, 0.0, -2.0], [0.0, 0.0, 1.0, 3.0], [0, 0, 0, 1]] } ] }"#;
    fs::write(path, json).expect("writable");
}

/// One camera, one image with two observations, one point.
fn write_colmap_binary(path: &Path) {
    let f64s = |values: &[f64]| values.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>();
    let mut cameras = [&1u64.to_le_bytes()[..], &3u32.to_le_bytes(), &2i32.to_le_bytes()].concat();
    cameras.extend(
        [
            &640u64.to_le_bytes()[..],
            &480u64.to_le_bytes(),
            &f64s(&[500.0, 320.0, 240.0, 0.1]),
        ]
        .concat(),
    );
    let mut images = [&1u64.to_le_bytes()[..], &9u32.to_le_bytes()].concat();
    images.extend(f64s(&[0.5, 0.5, -0.5, 0.5, 1.0, 2.0, 3.0]));
    images.extend(
        [
            &3u32.to_le_bytes()[..],
            b"folder/a b.jpg\0",
            &2u64.to_le_bytes(),
            &[7; 48],
        ]
        .concat(),
    );
    let mut points = [
        &1u64.to_le_bytes()[..],
        &5u64.to_le_bytes(),
        &f64s(&[1.0, -1.0, 0.5]),
        &[1, 2, 3],
    ]
    .concat();
    points.extend([&f64s(&[0.1])[..], &1u64.to_le_bytes(), &[0; 8]].concat());
    let folder = path.parent().expect("a file in a folder");
    for (name, bytes) in [
        ("cameras.bin", cameras),
        ("images.bin", images),
        ("points3D.bin", points),
    ] {
        fs::write(folder.join(name), bytes).expect("writable");
    }
}

fn write_colmap_text(path: &Path) {
    let folder = path.parent().expect("a file in a folder");
    let files = [
        (
            "cameras.txt",
            "# cameras\n3 OPENCV 640 480 500 501 320 240 0.1 0.01 0.001 -0.001\n",
        ),
        (
            "images.txt",
            "# images\n9 0.5 0.5 -0.5 0.5 1 2 3 3 a b.jpg\n\n10 1 0 0 0 1 2 3 3 c.jpg\n1.5 2.5 -1\n",
        ),
        ("points3D.txt", "5 1 -1 0.5 1 2 3 0.1 9 0\n"),
    ];
    for (name, text) in files {
        fs::write(folder.join(name), text).expect("writable");
    }
}

const TETRAHEDRON_OBJ: &str = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nvt 0 1\nvn 0 0 -1\nf 1/1/1 3/1/1 2/1/1\n\
    f 1 2 4\nf 2 3 \\\n -1\nf 1 4 3\n";

/// A tetrahedron with a colour for each vertex.
fn write_ply(path: &Path, binary: bool) {
    let format = if binary { "binary_big_endian" } else { "ascii" };
    let mut bytes = format!(
        "ply\nformat {format} 1.0\nelement vertex 4\nproperty float x\nproperty float y\nproperty float z\n\
         property uchar red\nelement face 4\nproperty list uchar int vertex_index\nend_header\n"
    )
    .into_bytes();
    let vertices = [[0.0f32; 3], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]];
    let faces = [[0i32, 2, 1], [0, 1, 3], [1, 2, 3], [0, 3, 2]];
    if binary {
        for vertex in vertices {
            bytes.extend(vertex.iter().flat_map(|v| v.to_be_bytes()).chain([9]));
        }
        for face in faces {
            bytes.extend([3].into_iter().chain(face.iter().flat_map(|v| v.to_be_bytes())));
        }
    } else {
        let vertices = vertices.map(|[x, y, z]| format!("{x} {y} {z} 9\n"));
        let faces = faces.map(|[a, b, c]| format!("3 {a} {b} {c}\n"));
        bytes.extend(vertices.into_iter().chain(faces).flat_map(String::into_bytes));
    }
    fs::write(path, bytes).expect("writable");
}

fn read_vdb(path: &Path) -> bool {
    let grid = vdb::read(path);
    if let Ok(grid) = &grid {
        let header = vdb::header(path).expect("a grid that can be read has a header that can be read");
        assert_eq!(header.size, grid.size);
        assert_eq!(grid.data.len(), grid.size.iter().product::<usize>());
    }
    grid.is_ok()
}

/// Asserts what must hold for every mesh that was read; always true.
fn check_mesh(mesh: mesh::Mesh) -> bool {
    let count = mesh.positions.len();
    assert!(!mesh.triangles.is_empty());
    assert!(mesh.triangles.as_flattened().iter().all(|&v| (v as usize) < count));
    assert!(mesh.positions.as_flattened().iter().all(|v| v.is_finite()));
    assert!([0, count].contains(&mesh.normals.len()) && [0, count].contains(&mesh.uvs.len()));
    drop(mesh.is_closed());
    true
}

/// 3×2 pixels of 2 bits that index red, half-transparent green and a transparent blue.
const PALETTE_PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x03\0\0\0\x02\x02\x03\0\0\0\xe0\x1a\x8e\x89\
    \0\0\0\x09PLTE\xff\0\0\0\xff\0\x33\x66\xff\x38\xc0\x5a\x62\0\0\0\x03tRNS\xff\x80\0\x7f\x6d\x68\x78\
    \0\0\0\x0cIDAT\x78\xda\x63\x90\x60\x98\0\0\0\xdc\0\xa9\x52\x1a\x13\x8f\0\0\0\0IEND\xae\x42\x60\x82";

/// A change to a file.
#[derive(Debug, Clone)]
enum Mutation {
    Set(Index, u8),
    /// Overwrites four bytes with a number that hostile files like.
    Number(Index, u32),
    Truncate(Index),
    Append(Vec<u8>),
    Delete(Index),
}

fn mutation() -> impl Strategy<Value = Mutation> {
    let numbers = prop::sample::select(vec![0, 1, 0x7fff_ffff, 0x8000_0000, u32::MAX, 1 << 24, 0xffff]);
    prop_oneof![
        4 => (any::<Index>(), any::<u8>()).prop_map(|(at, byte)| Mutation::Set(at, byte)),
        3 => (any::<Index>(), numbers).prop_map(|(at, number)| Mutation::Number(at, number)),
        1 => any::<Index>().prop_map(Mutation::Truncate),
        1 => prop::collection::vec(any::<u8>(), 1..40).prop_map(Mutation::Append),
        1 => any::<Index>().prop_map(Mutation::Delete),
    ]
}

fn mutate(bytes: &mut Vec<u8>, mutation: &Mutation) {
    if bytes.is_empty() {
        return;
    }
    match mutation {
        Mutation::Set(at, byte) => *at.get_mut(bytes) = *byte,
        Mutation::Number(at, number) => {
            let at = at.index(bytes.len());
            bytes
                .iter_mut()
                .skip(at)
                .zip(number.to_le_bytes())
                .for_each(|(byte, new)| *byte = new);
        }
        Mutation::Truncate(at) => bytes.truncate(at.index(bytes.len())),
        Mutation::Append(more) => bytes.extend(more),
        Mutation::Delete(at) => drop(bytes.remove(at.index(bytes.len()))),
    }
}

fn assert_frugal(what: &str) {
    let largest = LARGEST.load(Ordering::Relaxed);
    assert!(
        largest < MAX_ALLOCATION,
        "{what}: {largest} bytes were allocated at once"
    );
}

#[test]
fn examples_are_read() {
    for (which, format) in FORMATS.iter().enumerate() {
        let (_folder, path) = changed(which, |_| {});
        assert!((format.read)(&path), "{}", format.file);
    }
}

#[test]
fn no_prefix_of_a_binary_file_is_read() {
    for (which, format) in FORMATS.iter().enumerate() {
        if ["transforms.json", "images.txt", "a.obj", "text.ply"].contains(&format.file) {
            continue;
        }
        let (_folder, path) = changed(which, |_| {});
        let file = File::options().write(true).open(&path).expect("writable");
        let whole = file.metadata().expect("there").len();
        // The end markers of PNG and JPEG may be missing, as other programs see it too.
        let is_image = format.file.ends_with("png") || format.file.ends_with("jpg");
        let end = if is_image { whole * 2 / 3 } else { whole };
        // Long files are cut at every few bytes.
        for length in (0..end).rev().step_by(1 + end as usize / 4000) {
            file.set_len(length).expect("writable");
            assert!(!(format.read)(&path), "{}: {length} of {whole} bytes", format.file);
        }
    }
    assert_frugal("truncated files");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn mutated_files_do_no_harm(which in 0..FORMATS.len(), mutations in prop::collection::vec(mutation(), 1..6)) {
        let (_folder, path) = changed(which, |bytes| mutations.iter().for_each(|mutation| mutate(bytes, mutation)));
        (FORMATS[which].read)(&path);
        assert_frugal(FORMATS[which].file);
    }

    #[test]
    fn random_bytes_after_the_magic_do_no_harm(
        which in 0..FORMATS.len(), keep in 0usize..24, noise in prop::collection::vec(any::<u8>(), 0..300),
    ) {
        let (_folder, path) = changed(which, |bytes| {
            bytes.truncate(keep);
            bytes.extend(&noise);
        });
        (FORMATS[which].read)(&path);
        assert_frugal(FORMATS[which].file);
    }

    #[test]
    fn grids_survive_both_formats(
        size in [1usize..5, 1usize..5, 1usize..5], channels in 1usize..9, seed in any::<u32>(),
    ) {
        let values = size.iter().product::<usize>() * channels;
        let value = |i: usize| f32::from_bits((seed.wrapping_mul(i as u32 + 1)) & 0xbf7f_ffff);
        let bounds = [[-1.5, 0.0, 2.0], [4.0, 1.0, 2.5]];
        let grid = Grid { size, channels, bounds, data: (0..values).map(value).collect() };
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (a, b) = (folder.path().join("a.vol"), folder.path().join("a.npy"));
        vol::write(&a, &grid).expect("writable");
        npy::write(&b, &grid).expect("writable");
        prop_assert_eq!(&vol::read(&a).expect("readable"), &grid);
        let header = vol::header(&a).expect("readable");
        prop_assert_eq!((header.size, header.channels, header.bounds), (size, channels, bounds));
        let read = npy::read(&b).expect("readable");
        prop_assert_eq!((read.size, read.channels, &read.data), (size, channels, &grid.data));
    }

    #[test]
    fn exr_keeps_every_bit_of_rgb(width in 1usize..9, height in 1usize..9, seed in any::<u32>(), grey in any::<bool>()) {
        let channels = if grey { 1 } else { 3 };
        let value = |i: usize| f32::from_bits(seed.wrapping_mul(2 * i as u32 + 1) & 0xbf7f_ffff);
        let image = Image { width, height, channels, data: (0..width * height * channels).map(value).collect() };
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("a.exr");
        image::write_exr(&path, &image).expect("writable");
        prop_assert_eq!(image::read(&path).expect("readable"), (image, Encoding::Linear));
    }
}

#[test]
fn a_vol_header_that_claims_too_much_is_refused() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("a.vol");
    write_vol(&path);
    let mut bytes = fs::read(&path).expect("readable");
    for size in [[1 << 30, 2, 1], [i32::MAX; 3], [-1, 3, 4], [0, 3, 4]] {
        for (axis, n) in size.iter().enumerate() {
            bytes[8 + 4 * axis..12 + 4 * axis].copy_from_slice(&i32::to_le_bytes(*n));
        }
        fs::write(&path, &bytes).expect("writable");
        let message = vol::header(&path).expect_err("absurd").to_string();
        assert!(message.contains("a.vol: claims"), "{message}");
    }
    assert_frugal("absurd headers");
}
