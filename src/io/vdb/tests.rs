//! Files put together byte by byte, as OpenVDB documents them, and what they must give.

use std::collections::{BTreeMap, BTreeSet};

use super::*;

type Voxel = [i32; 3];

/// What a tree holds: cubes of one value with edges of 4096, 128 or 8 voxels, and active voxels.
#[derive(Default)]
struct Contents {
    background: f32,
    /// Origin, edge, value.
    cubes: Vec<(Voxel, i32, f32)>,
    /// As `cubes`, with an edge of 4096, but inactive.
    inactive: Vec<(Voxel, f32)>,
    voxels: Vec<(Voxel, f32)>,
}

fn corner(voxel: Voxel, edge: i32) -> Voxel {
    voxel.map(|v| v.div_euclid(edge) * edge)
}

/// Bit mask of `children` of the node at `origin`, which has `count` children of `edge` voxels along each axis.
fn mask(origin: Voxel, edge: i32, count: i32, children: impl IntoIterator<Item = Voxel>) -> Vec<u8> {
    let mut bits = vec![0; (count * count * count / 8) as usize];
    for child in children {
        let [x, y, z] = [0, 1, 2].map(|a| (child[a] - origin[a]) / edge);
        let i = (x * count * count + y * count + z) as usize;
        bits[i / 8] |= 1 << (i % 8);
    }
    bits
}

impl Contents {
    /// Appends an inner node's masks and the values of its active cubes in order; inactive cubes have the background
    /// value.
    fn inner(&self, out: &mut Vec<u8>, origin: Voxel, edge: i32, count: i32, children: &BTreeSet<Voxel>) {
        let within = |c: &&(Voxel, i32, f32)| c.1 == edge && corner(c.0, edge * count) == origin;
        let cubes: BTreeMap<Voxel, f32> = self.cubes.iter().filter(within).map(|c| (c.0, c.2)).collect();
        out.extend(mask(origin, edge, count, children.iter().copied()));
        out.extend(mask(origin, edge, count, cubes.keys().copied()));
        out.push(0);
        cubes.values().for_each(|v| out.extend(v.to_le_bytes()));
    }

    /// The tree's bytes where inactive values are not stored (compression 2).
    fn bytes(&self) -> Vec<u8> {
        let mut leaves: BTreeMap<Voxel, BTreeMap<Voxel, f32>> = BTreeMap::new();
        for (voxel, value) in &self.voxels {
            leaves.entry(corner(*voxel, 8)).or_default().insert(*voxel, *value);
        }
        let of = |edge: i32| self.cubes.iter().filter(move |c| c.1 == edge).map(|c| c.0);
        let middle: BTreeSet<Voxel> = leaves.keys().copied().chain(of(8)).map(|v| corner(v, 128)).collect();
        let upper = middle.iter().copied().chain(of(128)).map(|v| corner(v, 4096));
        let upper: BTreeSet<Voxel> = upper.collect();
        let place = |v: Voxel| v.map(i32::to_le_bytes).concat();
        let mut out = [1u32.to_le_bytes(), self.background.to_le_bytes()].concat();
        let whole: Vec<_> = self
            .cubes
            .iter()
            .filter(|c| c.1 == 4096)
            .map(|c| (c.0, c.2, 1))
            .collect();
        let whole: Vec<_> = whole
            .into_iter()
            .chain(self.inactive.iter().map(|c| (c.0, c.1, 0)))
            .collect();
        out.extend((whole.len() as u32).to_le_bytes());
        out.extend((upper.len() as u32).to_le_bytes());
        for (origin, value, active) in whole {
            out.extend([place(origin), value.to_le_bytes().to_vec(), vec![active]].concat());
        }
        let mut order = Vec::new();
        for origin in upper {
            out.extend(place(origin));
            let nodes = middle.iter().filter(|v| corner(**v, 4096) == origin).copied().collect();
            self.inner(&mut out, origin, 128, 32, &nodes);
            for node in nodes {
                let within = leaves.keys().filter(|v| corner(**v, 128) == node).copied().collect();
                self.inner(&mut out, node, 8, 16, &within);
                for leaf in within {
                    out.extend(mask(leaf, 1, 8, leaves[&leaf].keys().copied()));
                    order.push(leaf);
                }
            }
        }
        for leaf in order {
            out.extend(mask(leaf, 1, 8, leaves[&leaf].keys().copied()));
            out.push(0);
            leaves[&leaf].values().for_each(|v| out.extend(v.to_le_bytes()));
        }
        out
    }
}

fn text(text: &str) -> Vec<u8> {
    [&(text.len() as u32).to_le_bytes(), text.as_bytes()].concat()
}

fn doubles(values: &[f64]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_le_bytes()).collect()
}

/// A grid of a file.
#[derive(Clone)]
struct Listed {
    name: &'static str,
    kind: &'static str,
    instance_of: &'static str,
    /// Name, type and value.
    metadata: Vec<[&'static str; 3]>,
    /// Type of the map, and its numbers.
    map: (&'static str, Vec<f64>),
    tree: Vec<u8>,
}

const FLOATS: &str = "Tree_float_5_4_3";

impl Listed {
    /// A grid whose voxel indices are its world coordinates.
    fn new(name: &'static str, contents: &Contents) -> Self {
        Self {
            name,
            kind: FLOATS,
            instance_of: "",
            metadata: vec![["class", "string", "fog volume"], ["voxels", "int64", "12345678"]],
            map: ("TranslationMap", vec![0.0; 3]),
            tree: contents.bytes(),
        }
    }

    fn body(&self) -> Vec<u8> {
        let mut out = [2u32.to_le_bytes(), (self.metadata.len() as u32).to_le_bytes()].concat();
        for entry in &self.metadata {
            entry.iter().for_each(|word| out.extend(text(word)));
        }
        out.extend([text(self.map.0), doubles(&self.map.1), self.tree.clone()].concat());
        out
    }
}

/// What precedes the list of `count` grids.
fn preamble(version: u32, has_places: u8, count: usize) -> Vec<u8> {
    let mut out = vec![0x20, 0x42, 0x44, 0x56, 0, 0, 0, 0];
    out.extend(version.to_le_bytes());
    out.extend([9; 8]);
    out.push(has_places);
    out.extend([b'f'; 36]);
    out.extend([&1u32.to_le_bytes()[..], &text("class"), &text("int32"), &text("abcd")].concat());
    out.extend((count as u32).to_le_bytes());
    out
}

/// A file of these grids, each behind its entry in the list.
fn file(grids: &[Listed]) -> Vec<u8> {
    let mut out = preamble(224, 1, grids.len());
    for grid in grids {
        out.extend([text(grid.name), text(grid.kind), text(grid.instance_of)].concat());
        let (at, body) = (out.len() + 24, grid.body());
        [at, at, at + body.len()]
            .iter()
            .for_each(|p| out.extend((*p as i64).to_le_bytes()));
        out.extend(body);
    }
    out
}

/// The result of [`read`], with which [`header`] must agree; errors without the file's name.
fn parse(bytes: &[u8]) -> std::result::Result<Grid, String> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("a.vdb");
    std::fs::write(&path, bytes).expect("writable");
    let told = |e: IoError| e.to_string().replace(&format!("{}: ", path.display()), "");
    let (header, grid) = (header(&path).map_err(told), read(&path).map_err(told));
    match (&header, &grid) {
        (Ok(header), Ok(grid)) => assert_eq!((header.size, header.bounds), (grid.size, grid.bounds)),
        _ => assert_eq!(header.as_ref().err(), grid.as_ref().err()),
    }
    grid
}

/// The box that the header claims; nothing is allocated for it.
fn claim(bytes: &[u8], length: u64) -> std::result::Result<[usize; 3], String> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("a.vdb");
    std::fs::write(&path, bytes).expect("writable");
    if length > 0 {
        let file = std::fs::OpenOptions::new().write(true).open(&path).expect("writable");
        file.set_len(length).expect("zeros, which take no room");
    }
    header(&path).map(|h| h.size).map_err(|e| e.to_string())
}

/// One voxel at (1, 2, 3) of value 0.5.
fn one_voxel() -> Contents {
    Contents {
        voxels: vec![([1, 2, 3], 0.5)],
        ..Contents::default()
    }
}

#[test]
fn voxels_and_cubes_lie_where_they_are_written() {
    let contents = Contents {
        background: 0.25,
        cubes: vec![([-8, 0, 0], 8, 2.0), ([0, -8, 8], 8, 3.0)],
        inactive: vec![([0, 0, 0], 9.0), ([-4096, -4096, -4096], 0.25)],
        voxels: vec![
            ([-10, 0, 3], 4.0),
            ([-9, 1, 4], 5.0),
            ([-9, -3, 4], 6.0),
            ([3, -1, 1], 7.0),
            ([2, -2, 7], 8.0),
        ],
    };
    let grid = parse(&file(&[Listed::new("density", &contents)])).expect("no damage");
    // x from the first voxel to the end of the second cube, y from its beginning to the end of the first, z from that.
    assert_eq!(grid.size, [18, 16, 16]);
    assert_eq!(grid.bounds, [[-10.5, -8.5, -0.5], [7.5, 7.5, 15.5]]);
    let mut found = grid.data.iter();
    for z in 0..16 {
        for y in -8..8 {
            for x in -10..8 {
                let single = contents.voxels.iter().find(|v| v.0 == [x, y, z]).map(|v| v.1);
                let expected = single.unwrap_or(match (x, y, z) {
                    (-8..0, 0..8, 0..8) => 2.0,
                    (0..8, -8..0, 8..16) => 3.0,
                    (0.., 0.., 0..) => 9.0,
                    _ => 0.25,
                });
                assert_eq!(found.next(), Some(&expected), "{x} {y} {z}");
            }
        }
    }
}

/// A tile of the upper internal level (128 voxels wide) beside a single voxel, and a tile of the root (4096) alone.
#[test]
fn large_cubes_are_cut_to_the_box() {
    let contents = Contents {
        cubes: vec![([128, 0, 256], 128, 3.0)],
        voxels: vec![([127, 5, 300], 4.0)],
        ..Contents::default()
    };
    let grid = parse(&file(&[Listed::new("density", &contents)])).expect("no damage");
    assert_eq!(grid.bounds, [[126.5, -0.5, 255.5], [255.5, 127.5, 383.5]]);
    let inside = grid.data.iter().filter(|v| **v == 3.0).count();
    assert_eq!(inside, 128 * 128 * 128);
    assert_eq!((grid.data[(44 * 128 + 5) * 129], grid.data[0]), (4.0, 0.0));
    let whole = Contents {
        cubes: vec![([0, -4096, 4096], 4096, 1.0)],
        ..Contents::default()
    };
    let error = claim(&file(&[Listed::new("density", &whole)]), 0).expect_err("too many voxels");
    assert!(error.contains("a box of 4096 × 4096 × 4096"), "{error}");
}

/// 2²⁴ voxels are always accepted, 256 a byte, and never more than 2³¹. The numbers tried beyond these limits are
/// products of three edges: 97 · 257 · 673 = 2²⁴ + 1 and 3 · 715827883 = 2³¹ + 1.
#[test]
fn the_number_of_voxels_is_limited_by_the_files_length() {
    let spanning = |[x, y, z]: Voxel| {
        let voxels = vec![([0, 0, 0], 1.0), ([x - 1, y - 1, z - 1], 1.0)];
        let contents = Contents {
            voxels,
            ..Contents::default()
        };
        file(&[Listed::new("density", &contents)])
    };
    let mib = 1 << 20;
    for (size, length, limit) in [
        ([256, 256, 256], 0, None),
        ([97, 257, 673], 0, Some(1u64 << 24)),
        ([97, 257, 673], mib, None),
        ([1024, 512, 512], mib, None),
        ([1025, 512, 512], mib, Some(1 << 28)),
        ([2048, 1024, 1024], 8 * mib, None),
        ([2048, 1024, 1024], 9 * mib, None),
        ([3, 715_827_883, 1], 9 * mib, Some(1 << 31)),
    ] {
        let found = claim(&spanning(size), length);
        match limit {
            None => assert_eq!(found, Ok(size.map(|n| n as usize))),
            Some(limit) => {
                let error = found.expect_err("too many voxels");
                let [x, y, z] = size;
                assert!(
                    error.contains(&format!("a box of {x} × {y} × {z}, but a file of ")),
                    "{error}"
                );
                assert!(
                    error.contains(&format!(" bytes may fill {limit} voxels at most")),
                    "{error}"
                );
                assert!(
                    length == 0 || error.contains(&format!("a file of {length} bytes")),
                    "{error}"
                );
            }
        }
    }
    // 2³² along each axis: their product exceeds what 64 bits hold.
    let voxels = vec![([i32::MIN; 3], 1.0), ([i32::MAX; 3], 1.0)];
    let contents = Contents {
        voxels,
        ..Contents::default()
    };
    let error = claim(&file(&[Listed::new("density", &contents)]), 0).expect_err("too many voxels");
    assert!(
        error.contains("a box of 4294967296 × 4294967296 × 4294967296"),
        "{error}"
    );
}

/// Voxel i extends from i - ½ to i + ½, times the scale, plus the translation; the four derived vectors after a scale
/// are skipped.
#[test]
fn maps_place_voxels_in_the_world() {
    let inverses = [7.0; 12];
    let with = |first: &[f64]| [first, &inverses].concat();
    let mut affine = vec![0.0; 16];
    for (i, v) in [
        (0, 2.0),
        (5, 4.0),
        (10, 8.0),
        (12, 10.0),
        (13, 20.0),
        (14, 30.0),
        (15, 1.0),
    ] {
        affine[i] = v;
    }
    let (plain, scaled, moved) = (
        [[0.5, 1.5, 2.5], [1.5, 2.5, 3.5]],
        [[1.0, 6.0, 20.0], [3.0, 10.0, 28.0]],
        [[11.0, 26.0, 50.0], [13.0, 30.0, 58.0]],
    );
    for (kind, numbers, bounds) in [
        ("UniformScaleMap", with(&[2.0, 4.0, 8.0]), scaled),
        ("ScaleMap", with(&[2.0, 4.0, 8.0]), scaled),
        ("TranslationMap", vec![0.0; 3], plain),
        (
            "TranslationMap",
            vec![1.0, -1.0, 0.5],
            [[1.5, 0.5, 3.0], [2.5, 1.5, 4.0]],
        ),
        (
            "UniformScaleTranslateMap",
            with(&[10.0, 20.0, 30.0, 2.0, 4.0, 8.0]),
            moved,
        ),
        ("ScaleTranslateMap", with(&[10.0, 20.0, 30.0, 2.0, 4.0, 8.0]), moved),
        ("AffineMap", affine.clone(), moved),
    ] {
        let grid = Listed {
            map: (kind, numbers),
            ..Listed::new("density", &one_voxel())
        };
        let grid = parse(&file(&[grid])).unwrap_or_else(|e| panic!("{kind}: {e}"));
        assert_eq!((grid.bounds, &grid.data[..]), (bounds, &[0.5][..]), "{kind}");
    }
    let refused = |kind, numbers: &[f64]| {
        let grid = Listed {
            map: (kind, numbers.to_vec()),
            ..Listed::new("density", &one_voxel())
        };
        parse(&file(&[grid])).expect_err("no box along the axes")
    };
    for i in [1, 2, 3, 4, 6, 7, 8, 9, 11, 15] {
        let mut turned = affine.clone();
        turned[i] += 0.5;
        assert!(refused("AffineMap", &turned).contains("rotates or shears"), "entry {i}");
    }
    for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        for axis in 0..3 {
            let mut scale = [1.0; 3];
            scale[axis] = bad;
            assert!(
                refused("ScaleMap", &with(&scale)).contains("expected positive and finite"),
                "{bad}"
            );
            let mut translation = [0.0; 3];
            translation[axis] = bad;
            if !bad.is_finite() {
                assert!(refused("TranslationMap", &translation).contains("expected positive and finite"));
            }
        }
    }
    let far = refused("ScaleMap", &with(&[1e39; 3]));
    assert!(far.contains("has bounds [[inf, inf, inf]"), "{far}");
    assert!(refused("UnitaryMap", &[0.0; 16]).contains("of type `UnitaryMap`"));
}

#[test]
fn the_density_or_the_only_grid_of_floats_is_read() {
    let at = |x: i32| Contents {
        voxels: vec![([x, 0, 0], 1.0)],
        ..Contents::default()
    };
    let grid = |name, x| Listed::new(name, &at(x));
    let of = |kind, grid: Listed| Listed { kind, ..grid };
    let low = |grids: &[Listed]| parse(&file(grids)).map(|grid| grid.bounds[0][0] + 0.5);
    assert_eq!(low(&[grid("a", 1), grid("density", 2), grid("c", 3)]), Ok(2.0));
    assert_eq!(low(&[grid("a\x1e1", 1), grid("density\x1e0", 2)]), Ok(2.0));
    assert_eq!(
        low(&[of("Tree_vec3s_5_4_3", grid("density", 1)), grid("heat", 2)]),
        Ok(2.0)
    );
    assert_eq!(
        low(&[grid("a", 1), grid("b", 2)]),
        Err(format!(
            "holds `a` ({FLOATS}), `b` ({FLOATS}), expected one of them to be called `density`"
        ))
    );
    assert_eq!(
        low(&[]),
        Err(format!("holds no grids, expected a grid of floats ({FLOATS})"))
    );
    let copy = Listed {
        instance_of: "heat",
        ..grid("density", 2)
    };
    assert!(low(&[grid("heat", 1), copy]).is_err_and(|e| e.contains("`density` as an instance of `heat`")));
    // Only the metadata entry `class` marks a level set.
    let described = |entry: [&'static str; 3]| {
        let metadata = vec![entry, ["creator", "string", "me"]];
        low(&[Listed {
            metadata,
            ..grid("a", 5)
        }])
    };
    assert!(described(["class", "string", "level set"]).is_err_and(|e| e.contains("`a` of class `level set`")));
    for other in [
        ["class", "bytes", "level set"],
        ["note", "string", "level set"],
        ["class", "string", ""],
    ] {
        assert_eq!(described(other), Ok(5.0));
    }
    // Half precision: one voxel's value in two bytes.
    let mut half = of("Tree_float_5_4_3_HalfFloat", grid("density", 2));
    half.tree.truncate(half.tree.len() - 4);
    half.tree.extend(half::f16::from_f32(0.75).to_le_bytes());
    assert_eq!(parse(&file(&[half])).map(|g| g.data), Ok(vec![0.75]));
}

#[test]
fn what_precedes_the_grids_is_checked() {
    let good = file(&[Listed::new("density", &one_voxel())]);
    let with_version = |version: u32| [&good[..8], &version.to_le_bytes(), &good[12..]].concat();
    for version in 222..=224 {
        assert!(parse(&with_version(version)).is_ok());
    }
    for version in [221, 225] {
        let expected = format!("has OpenVDB's file version {version}, expected 222 to 224");
        assert!(parse(&with_version(version)).is_err_and(|e| e.starts_with(&expected)));
    }
    let streamed = [&good[..20], &[0], &good[21..]].concat();
    assert!(parse(&streamed).is_err_and(|e| e.contains("written to a stream")));
    let other = [&b"!BDV"[..], &good[4..]].concat();
    assert!(parse(&other).is_err_and(|e| e.contains("is not an OpenVDB file")));
    // Grids may lie behind the whole list: then each entry ends where the next one begins.
    let (one, entries) = (Listed::new("density", &one_voxel()), 2);
    let mut bytes = preamble(224, 1, entries);
    let names = [text("x"), text("Tree_bool_5_4_3"), text("")].concat();
    let chosen = [text("density"), text(FLOATS), text("")].concat();
    let at = bytes.len() + names.len() + chosen.len() + 48;
    for (i, name) in [names, chosen].into_iter().enumerate() {
        bytes.extend(name);
        let end = bytes.len() + 24;
        [at, at + i, end]
            .iter()
            .for_each(|p| bytes.extend((*p as i64).to_le_bytes()));
    }
    let list = bytes.len();
    assert_eq!(list, at);
    bytes.extend(one.body());
    assert_eq!(parse(&bytes).map(|g| g.data), Ok(vec![0.5]));
    for (place, value) in [(list - 8, list as i64 - 1), (list - 8, -1), (list - 24, -1)] {
        let mut damaged = bytes.clone();
        damaged[place..place + 8].copy_from_slice(&value.to_le_bytes());
        let error = parse(&damaged).expect_err("it goes back");
        assert!(error.contains("claims that the grid `density` lies at byte"), "{error}");
    }
    let mut far = bytes.clone();
    far[list - 24..list - 16].copy_from_slice(&(1i64 << 40).to_le_bytes());
    assert!(parse(&far).is_err_and(|e| e.contains("points to byte 1099511627776")));
    let mut two = Listed::new("density", &one_voxel());
    two.tree[0] = 2;
    assert!(parse(&file(&[two])).is_err_and(|e| e.contains("has 2 buffers a leaf, expected 1")));
}

/// A file that lacks bytes at its end, be it one, is reported as truncated.
#[test]
fn every_truncation_is_told() {
    let bytes = file(&[Listed::new("density", &one_voxel())]);
    for length in (8..200).chain(bytes.len() - 140..bytes.len()) {
        let error = parse_whole(&bytes[..length]).expect_err("truncated");
        assert!(error.contains("truncated or damaged"), "{length}: {error}");
    }
}

fn parse_whole(bytes: &[u8]) -> std::result::Result<Grid, String> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("a.vdb");
    std::fs::write(&path, bytes).expect("writable");
    read(&path).map_err(|e| e.to_string())
}
