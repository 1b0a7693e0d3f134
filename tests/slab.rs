//! The albedo inside a slab is found from what its top is to look like (docs/experiments.md).

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use prbopt::io::{Grid, Image, UNIT_CUBE, image, vol};
use tempfile::TempDir;

/// Albedos of the table, which are closer where the colour changes faster; three of them are rendered at once.
const ALBEDOS: usize = 33;

/// The scene and its target, with pieces of the scene's text replaced, and where runs leave their results.
struct Slab {
    folder: TempDir,
    size: usize,
    grid: [usize; 3],
    /// Samples a pixel of the pictures that are compared with the target.
    spp: &'static str,
}

impl Slab {
    /// The experiment itself.
    fn full() -> Self {
        Self::new(128, [256, 256, 64], 100, "4096")
    }

    /// As small as fits a test of seconds.
    fn small() -> Self {
        Self::new(32, [64, 64, 16], 25, "1024")
    }

    /// Of a picture and a grid of these sizes and of this extinction.
    fn new(size: usize, grid: [usize; 3], extinction: u32, spp: &'static str) -> Self {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let scenes = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenes");
        for name in ["slab.json", "slab_target.json"] {
            let text = fs::read_to_string(scenes.join(name)).expect("it is there");
            let text = text
                .replace(
                    "\"width\": 128, \"height\": 128",
                    &format!("\"width\": {size}, \"height\": {size}"),
                )
                .replace("[128, 128]", &format!("[{size}, {size}]"))
                .replace("[256, 256, 64]", &format!("{grid:?}"))
                .replace("\"sigma_t\": 100", &format!("\"sigma_t\": {extinction}"));
            fs::write(folder.path().join(name), text).expect("the test's folder is writable");
        }
        Self {
            folder,
            size,
            grid,
            spp,
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn prbopt(&self, words: &[&str]) {
        let done = Command::new(env!("CARGO_BIN_EXE_prbopt"))
            .args(words)
            .args(["--device", "cpu"])
            .current_dir(&self.folder)
            .output()
            .expect("it runs");
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    }

    /// A picture from above, rendered with these options beside.
    fn picture(&self, scene: &str, spp: &str, options: &[&str]) -> Vec<f32> {
        let words = ["render", scene, "--spp", spp, "-o", "picture.exr"];
        self.prbopt(&[&words, options].concat());
        let (picture, _) = image::read(&self.path("picture.exr")).expect("it is written");
        picture.data
    }

    /// The mean absolute difference from the target of the slab with these options.
    fn distance(&self, target: &[f32], options: &[&str]) -> f64 {
        apart(&self.picture("slab.json", self.spp, options), target)
    }

    /// A table of albedos with the colours of slabs that have this albedo everywhere.
    fn table(&self) -> Vec<[f32; 2]> {
        let text = fs::read_to_string(self.path("slab.json")).expect("it is there");
        let from = text
            .find(
                r#"{
                "type": "gridvolume""#,
            )
            .expect("a grid");
        let to = from + text[from..].find("\n            }").expect("its end") + "\n            }".len();
        let albedo = |i: usize| 1.0 - (1.0 - i as f32 / (ALBEDOS - 1) as f32).powi(2);
        let mut table = Vec::new();
        for first in (0..ALBEDOS).step_by(3) {
            let albedos = [0, 1, 2].map(|c| albedo(first + c).min(0.9995));
            let constant = format!(r#"{{"type": "constvolume", "value": {albedos:?}}}"#);
            let flat = [&text[..from], &constant, &text[to..]].concat();
            let flat = flat.split("\"optimize\"").next().expect("the scene").trim_end();
            let flat = format!("{}}}", flat.trim_end_matches(','));
            fs::write(self.path("flat.json"), flat).expect("the test's folder is writable");
            let picture = self.picture("flat.json", "64", &["--scale", "0.125"]);
            for c in 0..3 {
                let sum: f64 = picture.iter().skip(c).step_by(3).map(|x| f64::from(*x)).sum();
                table.push([albedos[c], (sum / (picture.len() / 3) as f64) as f32]);
            }
        }
        table
    }

    /// The albedo that gives each texel of the target its colour in a slab of that albedo alone, through all depths.
    fn extrude(&self, target: &[f32], table: &[[f32; 2]]) {
        let [nx, ny, nz] = self.grid;
        let mut data = Vec::with_capacity(3 * nx * ny * nz);
        for _ in 0..nz {
            for y in 0..ny {
                for x in 0..nx {
                    // Rows of the picture begin at the largest y.
                    let [column, row] = [x * self.size / nx, self.size - 1 - y * self.size / ny];
                    let pixel = &target[3 * (row * self.size + column)..][..3];
                    data.extend(pixel.iter().map(|color| invert(table, *color)));
                }
            }
        }
        let grid = Grid {
            size: self.grid,
            channels: 3,
            bounds: UNIT_CUBE,
            data,
        };
        fs::create_dir(self.path("table")).expect("the test's folder is writable");
        vol::write(&self.path("table/slab.interior.albedo.vol"), &grid).expect("the test's folder is writable");
    }

    /// The derivative of the picture's mean by the albedo, the mean over each layer of texels, the lowest first.
    fn profile(&self, spp: &str) -> Vec<f64> {
        let ones = Image {
            width: self.size,
            height: self.size,
            channels: 3,
            data: vec![1.0; 3 * self.size * self.size],
        };
        image::write_exr(&self.path("ones.exr"), &ones).expect("the test's folder is writable");
        let words = [
            "backpropagate",
            "slab.json",
            "--adjoint",
            "ones.exr",
            "--spp",
            spp,
            "-o",
            "gradients",
        ];
        self.prbopt(&words);
        let gradient = vol::read(&self.path("gradients/slab.interior.albedo.vol")).expect("it is written");
        assert_eq!(gradient.size, self.grid);
        let layer = 3 * self.grid[0] * self.grid[1];
        let mean = |layer: &[f32]| layer.iter().map(|g| f64::from(*g)).sum::<f64>() / layer.len() as f64;
        gradient.data.chunks_exact(layer).map(mean).collect()
    }

    /// Mean radiances of pictures with paths of up to this many edges and of up to 64 times as many, without roulette and with it
    /// from the fifth edge.
    fn short_and_long(&self, albedo: f64, limit: u32, spp: &str) -> [[f64; 2]; 2] {
        let value = format!("slab.interior.albedo.value=[{albedo},{albedo},{albedo}]");
        [100_000, 5].map(|roulette| {
            [limit, 64 * limit].map(|edges| {
                let changes = [
                    format!("integrator.max_depth={edges}"),
                    format!("integrator.rr_depth={roulette}"),
                ];
                let options = [
                    "--set",
                    &value,
                    "--set",
                    &changes[0],
                    "--set",
                    &changes[1],
                    "--seed",
                    "7",
                ];
                let picture = self.picture("slab.json", spp, &options);
                picture.iter().map(|x| f64::from(*x)).sum::<f64>() / picture.len() as f64
            })
        })
    }

    /// Distances from the target: of the extruded table, and after a run from grey and from the table.
    fn find(&self, iterations: &str) -> [f64; 3] {
        let target = self.picture("slab_target.json", "256", &[]);
        let table = self.table();
        assert!(table.windows(2).all(|pair| pair[0][1] < pair[1][1]), "{table:?}");
        println!("the brightest slab shows {:.3}", table[ALBEDOS - 1][1]);
        self.extrude(&target, &table);
        let naive = self.distance(&target, &["--parameters", "table"]);
        let start = self.path("table/slab.interior.albedo.vol").display().to_string();
        let run = |name: &str, more: &[&str]| {
            self.prbopt(&[&["optimize", "slab.json", "--iterations", iterations, "-o", name], more].concat());
            self.distance(&target, &["--parameters", &format!("{name}/final")])
        };
        let initial = format!(
            "optimize.parameters={{\"slab.interior.albedo\": {{\"learning_rate\": 0.03, \
            \"bounds\": [0.001, 0.9995], \"smoothing\": 0.006, \"initial\": \"{start}\"}}}}"
        );
        [naive, run("grey", &[]), run("table", &["--set", &initial])]
    }
}

/// The mean absolute difference of two pictures.
fn apart(a: &[f32], b: &[f32]) -> f64 {
    let sum: f64 = a.iter().zip(b).map(|(a, b)| f64::from((a - b).abs())).sum();
    sum / b.len() as f64
}

/// The albedo of a colour, between the entries of the table.
fn invert(table: &[[f32; 2]], color: f32) -> f32 {
    let next = table.partition_point(|[_, c]| *c < color).clamp(1, table.len() - 1);
    let ([a, from], [b, to]) = (table[next - 1], table[next]);
    a + (b - a) * ((color - from) / (to - from)).clamp(0.0, 1.0)
}

#[test]
fn a_small_slab_looks_as_it_is_to() {
    let slab = Slab::small();
    let [naive, grey, table] = slab.find("60");
    println!("small slab: {naive:.4} by the table, {grey:.4} from grey, {table:.4} from the table");
    assert!(grey < 0.75 * naive && table < 0.75 * naive, "{naive}, {grey}, {table}");
}

/// Deeper texels are seen less: by fewer paths, which have lost more of their light.
#[test]
fn gradients_fade_with_depth() {
    let slab = Slab::small();
    let profile = slab.profile("16");
    println!("small slab, from below: {profile:.6?}");
    let upper = &profile[8..];
    assert!(upper.windows(2).all(|pair| pair[0] < pair[1]), "{profile:?}");
    assert!(profile[10] > 0.0 && profile[14] > 5.0 * profile[10], "{profile:?}");
}

/// A limit loses the radiance of longer paths, more where less is absorbed; roulette loses nothing, to 3 %.
#[test]
fn a_limit_loses_light_and_roulette_does_not() {
    let slab = Slab::new(32, [8, 8, 2], 25, "1024");
    let [bright, dark] = [0.95, 0.8].map(|albedo| slab.short_and_long(albedo, 16, "64"));
    println!("small slab: {bright:.5?} with an albedo of 0.95, {dark:.5?} of 0.8");
    for [[all_short, all_long], [few_short, few_long]] in [bright, dark] {
        assert!((few_long / all_long - 1.0).abs() < 0.03 && (few_short / all_short - 1.0).abs() < 0.03);
    }
    let lost = |[short, long]: [f64; 2]| 1.0 - short / long;
    assert!(
        lost(bright[0]) > 0.03 && lost(bright[0]) > 3.0 * lost(dark[0]),
        "{bright:?} {dark:?}"
    );
}

/// Prints gradients by depth and the light of longer paths: `cargo test --release --test slab -- --ignored --nocapture`.
#[test]
#[ignore = "a minute of measurements"]
fn what_is_deep_in_the_slab() {
    let slab = Slab::full();
    let profile = slab.profile("8");
    let top = profile.iter().copied().fold(0.0, f64::max);
    let shares = profile.iter().rev().step_by(4).map(|g| format!("{:.4}", g / top));
    println!(
        "from the top, every fourth layer: {}",
        shares.collect::<Vec<_>>().join(", ")
    );
    for albedo in [0.8, 0.95, 0.99, 0.999] {
        let [without, with] = slab.short_and_long(albedo, 64, "8");
        let lost = |[short, long]: [f64; 2]| 100.0 * (1.0 - short / long);
        println!(
            "albedo {albedo}: {:.4} in all, {:.3} % of it beyond 64 edges, {:.3} % with roulette",
            without[1],
            lost(without),
            lost(with)
        );
    }
}

/// The text of a scene without the comment at its beginning.
fn body(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenes").join(name);
    let text = fs::read_to_string(path).expect("it is there");
    text.split_once("{\n").expect("a scene").1.to_owned()
}

#[test]
fn the_large_slab_is_the_slab() {
    let larger = body("slab.json")
        .replace("[256, 256, 64]", "[512, 512, 128]")
        .replace("\"width\": 128, \"height\": 128", "\"width\": 512, \"height\": 512")
        .replace("\"sigma_t\": 100", "\"sigma_t\": 200")
        .replace(", \"smoothing\": 0.006", "")
        .replace("\"iterations\": 600", "\"iterations\": 200")
        .replace("\"spp\": 8", "\"spp\": 4")
        .replace("\"spp_grad\": 8", "\"spp_grad\": 4")
        .replace("slab_target", "slab_large_target");
    assert!(larger == body("slab_large.json"));
    let target = body("slab_target.json")
        .replace("[128, 128]", "[512, 512]")
        .replace("\"width\": 128, \"height\": 128", "\"width\": 512, \"height\": 512");
    assert!(target == body("slab_large_target.json"));
}

/// The experiment itself, which takes a quarter of an hour: `cargo test --release --test slab -- --ignored --nocapture looks`.
#[test]
#[ignore = "takes minutes"]
fn the_slab_looks_as_it_is_to() {
    let slab = Slab::full();
    let [naive, grey, table] = slab.find("600");
    let pictures =
        ["1", "2"].map(|seed| slab.picture("slab.json", slab.spp, &["--parameters", "grey/final", "--seed", seed]));
    println!(
        "slab: {naive:.4} by the table, {grey:.4} from grey, of which two pictures are {:.4} apart, {table:.4} from the table",
        apart(&pictures[0], &pictures[1])
    );
    assert!(grey < 0.5 * naive && grey < 1.1 * table, "{naive}, {grey}, {table}");
}
