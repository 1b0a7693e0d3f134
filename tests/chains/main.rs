//! Normal maps that are found through chains of glass and mirrors: the ridges of two cups, and of a ring that is seen in a mirror
//! (docs/experiments.md).

mod lathe;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use prbopt::io::image;
use prbopt::io::mesh::{Mesh, read_ply, write_ply};

fn scene_file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("scenes").join(name)
}

/// A function that makes a mesh.
type Maker = fn() -> Mesh;

/// The meshes of the scenes, by file and function.
const MESHES: [(&str, Maker); 3] = [
    ("torus.ply", lathe::torus),
    ("cup_outside.ply", lathe::cup_outside),
    ("cup_inside.ply", lathe::cup_inside),
];

#[test]
#[ignore = "writes meshes into scenes/"]
fn write_the_meshes() {
    for (name, make) in MESHES {
        write_ply(&scene_file(name), &make()).expect("the repository is writable");
    }
}

#[test]
fn meshes_are_those_of_their_generator_and_look_outwards() {
    for (name, make) in MESHES {
        let (file, made) = (read_ply(&scene_file(name), false, false).expect("it is there"), make());
        assert!(file.triangles == made.triangles, "{name}: other triangles");
        for (read, made) in [(&file.positions, &made.positions), (&file.normals, &made.normals)] {
            assert_eq!(read.len(), made.len(), "{name}");
            let mut pairs = read.as_flattened().iter().zip(made.as_flattened());
            assert!(pairs.all(|(a, b)| (a - b).abs() < 1e-6), "{name}");
        }
        assert_eq!(file.uvs.len(), made.uvs.len(), "{name}");
        for triangle in &made.triangles {
            let [a, b, c] = triangle.map(|v| glam::Vec3::from(made.positions[v as usize]));
            let faces = (b - a).cross(c - a);
            let normals = triangle.map(|v| glam::Vec3::from(made.normals[v as usize]));
            let looks = normals.iter().all(|n| n.dot(faces.normalize_or_zero()) > 0.5);
            assert!(faces.length() < 1e-12 || looks, "{name}: {triangle:?}");
        }
    }
}

fn prbopt(folder: &Path, words: &[&str]) {
    let done = Command::new(env!("CARGO_BIN_EXE_prbopt"))
        .args(words)
        .args(["--device", "cpu"])
        .current_dir(folder)
        .output()
        .expect("it runs");
    assert!(
        done.status.success(),
        "{words:?}: {}",
        String::from_utf8_lossy(&done.stderr)
    );
}

/// A scene, its views, and the normal maps that it finds.
struct Subject {
    name: &'static str,
    views: &'static [&'static str],
    maps: &'static [&'static str],
    /// The last words of the BSDF under the maps; its name and that of its factor on the light that it reflects or transmits.
    bsdf: &'static str,
    factor: [&'static str; 2],
}

const CUPS: Subject = Subject {
    name: "cups",
    views: &["front", "left", "right", "rear", "rear_left", "rear_right"],
    maps: &["left_cup.bsdf.normalmap", "right_cup.bsdf.normalmap"],
    bsdf: r#""glass": {"type": "dielectric", "int_ior": 1.5, "ext_ior": 1}"#,
    factor: ["glass", "specular_transmittance"],
};

const TORUS: Subject = Subject {
    name: "torus",
    views: &["above", "left", "right"],
    maps: &["ring.bsdf.normalmap"],
    bsdf: r#""metal": {"type": "conductor", "material": "Ag"}"#,
    factor: ["metal", "specular_reflectance"],
};

/// A texel counts as lit if the views get more light by way of it than this share of the ninth decile.
const LIT: f32 = 0.3;

/// The share of lit texels, and the PSNR in dB of a map's slopes on these, of a flat map and of the one found; the peak is the
/// range of the true slopes.
struct Found {
    lit: f64,
    flat: f64,
    found: f64,
}

impl Subject {
    /// Optimises the scene, with these pieces of its text and of its target's replaced, and judges its maps.
    fn find(&self, changes: &[(&str, &str)]) -> Vec<Found> {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let folder = folder.path();
        for (name, _) in MESHES {
            fs::copy(scene_file(name), folder.join(name)).expect("the test's folder is writable");
        }
        let [scene, target] = ["", "_target"].map(|part| format!("{}{part}.json", self.name));
        for name in [&scene, &target] {
            let mut text = fs::read_to_string(scene_file(name)).expect("it is there");
            for (from, to) in changes {
                assert!(name == &target || text.contains(from), "{name} has no {from}");
                text = text.replace(from, to);
            }
            fs::write(folder.join(name), text).expect("the test's folder is writable");
        }
        prbopt(folder, &["optimize", &scene, "-o", "run"]);
        let size = image::read(&folder.join(format!("run/references/{}.png", self.views[0])));
        let (mut ones, _) = size.expect("a reference is written");
        (ones.channels, ones.data) = (3, vec![1.0; 3 * ones.width * ones.height]);
        image::write_exr(&folder.join("ones.exr"), &ones).expect("the test's folder is writable");
        self.maps.iter().map(|map| self.judge(folder, map)).collect()
    }

    /// The light that the views get by way of each texel of a map: the derivative of the sum of all pixels by a factor on the
    /// reflectance or transmittance of the BSDF under the map.
    fn light_by(&self, folder: &Path, map: &str) -> Vec<f32> {
        let [bsdf, factor] = self.factor;
        let text = fs::read_to_string(folder.join(format!("{}_target.json", self.name))).expect("it was written");
        let size = text
            .split("\"normalmap\": {\"type\": \"bitmap\", \"data\": {\"resolution\": ")
            .nth(1);
        let size = size
            .and_then(|rest| rest.split_inclusive(']').next())
            .expect("the map has a size");
        let texels = format!(r#", "{factor}": {{"type": "bitmap", "data": {{"resolution": {size}, "value": 1}}}}}}"#);
        assert!(text.contains(self.bsdf), "the scene has no {}", self.bsdf);
        let text = text.replace(self.bsdf, &(self.bsdf.trim_end_matches('}').to_owned() + &texels));
        fs::write(folder.join("light.json"), text.replace("prb_attached", "prb")).expect("the folder is writable");
        let by = map.replace("normalmap", &format!("{bsdf}.{factor}"));
        let mut light = Vec::new();
        for view in self.views {
            let words = [
                "backpropagate",
                "light.json",
                "--adjoint",
                "ones.exr",
                "--parameter",
                &by,
                "--sensor",
                view,
                "-o",
                "light",
            ];
            prbopt(folder, &[&words[..], &["--spp", "64"]].concat());
            let (texels, _) = image::read(&folder.join(format!("light/{by}.exr"))).expect("it is written");
            let of_texel = texels.data.chunks_exact(3).map(|d| d.iter().sum::<f32>());
            light.resize(of_texel.len(), 0.0);
            light.iter_mut().zip(of_texel).for_each(|(sum, d)| *sum += d);
        }
        light
    }

    /// Compares a map with the true one, on lit texels.
    fn judge(&self, folder: &Path, map: &str) -> Found {
        let texels = |part: &str| {
            let file = folder.join(format!("{part}/{map}.exr"));
            let (texels, _) = image::read(&file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
            texels.data
        };
        let slopes = |texels: Vec<f32>| -> Vec<[f64; 2]> {
            let slope = |n: &[f32]| [0, 1].map(|c: usize| -f64::from(2.0 * n[c] - 1.0) / f64::from(2.0 * n[2] - 1.0));
            texels.chunks_exact(3).map(slope).collect()
        };
        let (truth, found) = (slopes(texels("run/truth")), slopes(texels("run/final")));
        assert_eq!(truth.len(), found.len(), "{map}");
        let seen = self.light_by(folder, map);
        let mut sorted = seen.clone();
        sorted.sort_by(f32::total_cmp);
        let limit = LIT * sorted[sorted.len() * 9 / 10];
        let lit: Vec<usize> = (0..truth.len()).filter(|&i| seen[i] > limit).collect();
        let all = truth.iter().flatten();
        let [low, high] = all.fold([f64::MAX, f64::MIN], |[low, high], x| [low.min(*x), high.max(*x)]);
        let psnr = |of: &dyn Fn(usize) -> [f64; 2]| {
            let square = |&i: &usize| (0..2).map(|c| (of(i)[c] - truth[i][c]).powi(2)).sum::<f64>();
            let mean = lit.iter().map(square).sum::<f64>() / (2 * lit.len()) as f64;
            10.0 * ((high - low).powi(2) / mean).log10()
        };
        let result = Found {
            lit: lit.len() as f64 / truth.len() as f64,
            flat: psnr(&|_| [0.0; 2]),
            found: psnr(&|i| found[i]),
        };
        println!(
            "{}, {map}: {:.0} % of the texels are lit, {:.1} dB flat, {:.1} dB found",
            self.name,
            100.0 * result.lit,
            result.flat,
            result.found
        );
        result
    }
}

#[test]
fn a_small_ring_is_found_in_the_mirror() {
    let found = TORUS.find(&[
        ("\"width\": 96, \"height\": 96", "\"width\": 32, \"height\": 32"),
        ("\"resolution\": [64, 64]", "\"resolution\": [16, 16]"),
        ("[16, 16]}},", "[8, 8]}},"),
        (r#"{"at": 0.4, "moments": "resample"}, "#, ""),
        ("\"iterations\": 160", "\"iterations\": 80"),
    ]);
    assert!(
        found[0].found > found[0].flat + 2.0,
        "{} dB of {} dB",
        found[0].found,
        found[0].flat
    );
}

/// The whole experiments, which take minutes: `cargo test --release --test chains -- --ignored --nocapture found`.
#[test]
#[ignore = "takes minutes"]
fn the_ring_is_found() {
    let found = TORUS.find(&[]);
    assert!(found[0].found > 20.0, "{} dB", found[0].found);
}

#[test]
#[ignore = "takes minutes"]
fn the_cups_are_found() {
    for found in CUPS.find(&[]) {
        assert!(found.found > 20.0, "{} dB", found.found);
    }
}
