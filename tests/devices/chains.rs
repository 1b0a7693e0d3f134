//! The scenes of moved chains (`prb_attached`), small: the same pictures, the same derivatives by normals, indices, pictures and
//! places of shapes, and the same normals, places and pictures after ten iterations on both devices.

use std::fs;
use std::path::{Path, PathBuf};

use prbopt::device::cpu::Cpu;
use prbopt::device::gpu::Options;
use prbopt::device::{ArrayKind, Batch, Device};
use prbopt::gradcheck::{self, Setup};
use prbopt::resident::Resident;
use prbopt::scene;
use prbopt::transport::rays::pixel::PixelTable;

use super::gpu;
use super::iterations::{ADAM, iterate};
use super::worlds::{Outcome, compare, gradients, image};

/// A scene: its name, its text, and the parameters by which it is differentiated.
struct Case {
    name: &'static str,
    text: String,
    sought: &'static [&'static str],
}

/// The text with pictures of 12 × 12 pixels and maps of 8 × 8 texels, and with mirrors of metal, so that no derivative is zero.
fn small(text: &str) -> String {
    let text = text.replace("\"material\": \"none\"", "\"eta\": 0.2, \"k\": 3.9");
    let text = text.replace("\"width\": 96, \"height\": 96", "\"width\": 12, \"height\": 12");
    text.replace("\"resolution\": [64, 64]", "\"resolution\": [8, 8]")
}

/// The bundled scenes, and one with what they lack: a diffuse plane, an environment map, an index as a parameter, a disk, a
/// cylinder, a cube and a thin pane; and shapes, vertices, normals of vertices and a camera that move.
fn cases() -> Vec<Case> {
    let glass = r#"{"type": "dielectric", "int_ior": 1.4, "ext_ior": 1}"#;
    let mapped = |inner: &str| {
        format!(
            r#"{{"type": "normalmap", "use_shadowing_function": false, "inner": {inner},
                 "normalmap": {{"type": "bitmap", "data": {{"resolution": [8, 8], "magnifier": 3}}}}}}"#
        )
    };
    let metal = r#"{"type": "conductor", "eta": 0.2, "k": 3.9}"#;
    let sheet = r#""sheet": {"type": "rectangle", "to_world": [{"scale": 3}, {"translate": [0, 0, -1]}],
        "bsdf": {"type": "diffuse", "reflectance":
            {"type": "bitmap", "raw": true, "data": {"resolution": [9, 7], "leaves": 3}}}}"#;
    let around = r#""sky": {"type": "envmap", "data": {"resolution": [8, 5], "value": [0.5, 0.6, 0.8]}},
        "front": {"type": "perspective", "fov": 40,
            "to_world": [{"look_at": {"origin": [0.2, 0.3, 5], "target": [0, 0, 0], "up": [0, 1, 0]}}],
            "film": {"type": "hdrfilm", "width": 16, "height": 16, "rfilter": {"type": "box"}}}"#;
    let stone = |name: &str, bsdf: &str, flat: bool, place: &str| {
        format!(
            r#""{name}": {{"type": "obj", "filename": "{}", "face_normals": {flat}, "bsdf": {bsdf}, "to_world": [{place}]}}"#,
            stone().display()
        )
    };
    let all = format!(
        r#"{{"integrator": {{"type": "prb_attached", "max_depth": 6}},
            "pane": {{"type": "disk", "bsdf": {}, "to_world": [{{"scale": 1.2}}, {{"translate": [-0.7, 0.5, 1]}}]}},
            "pipe": {{"type": "cylinder", "radius": 0.5, "p0": [0.6, -1, 0.4], "p1": [0.7, 1, 0.6], "bsdf": {}}},
            "thin": {{"type": "rectangle", "bsdf": {{"type": "thindielectric", "int_ior": 1.5, "ext_ior": 1}},
                "to_world": [{{"rotate": {{"axis": [0, 1, 0], "angle": 30}}}}, {{"translate": [0, -0.6, 1.6]}}]}},
            "block": {{"type": "cube", "bsdf": {glass}, "to_world": [{{"scale": 0.4}}, {{"rotate": {{"axis": [1, 1, 0], "angle": 40}}}},
                {{"translate": [-0.6, -0.6, 0.2]}}]}},
            "ball": {{"type": "sphere", "radius": 0.5, "center": [0.2, 0.9, 0.3], "bsdf": {}}},
            "raised": {{"type": "grid", "resolution": [4, 3], "face_normals": true, "bsdf": {glass},
                "displacement": {{"type": "bitmap", "data": {{"resolution": [4, 3], "value": 0.02}}}},
                "to_world": [{{"scale": 0.5}}, {{"rotate": {{"axis": [1, 0.5, 0], "angle": 25}}}}, {{"translate": [0.1, -1.2, 0.8]}}]}},
            {}, {}, {}, {sheet}, {around},
            "optimize": {{"references": {{"type": "constant", "value": 0.5}}, "parameters": {{
                "pane.bsdf.normalmap": {{}}, "pane.bsdf.inner.eta": {{}}, "pane.to_world.translate": {{"initial": [0.2, -0.1, 0.1]}},
                "pane.to_world.rotate": {{"initial": [4, -3, 2]}}, "pane.to_world.scale": {{"initial": [1.1, 0.9, 1]}},
                "pipe.bsdf.normalmap": {{}}, "pipe.to_world.translate": {{"initial": [0.03, 0, -0.05]}},
                "pipe.to_world.rotate": {{"initial": [0, 5, 4]}}, "pipe.to_world.scale": {{}},
                "thin.bsdf.eta": {{}}, "thin.to_world.rotate": {{"initial": [6, 0, 0]}},
                "block.bsdf.eta": {{}}, "block.to_world.rotate": {{"initial": [30, -20, 70]}},
                "block.to_world.scale": {{"initial": [0.8, 1.2, 1.1]}},
                "ball.bsdf.normalmap": {{}}, "ball.to_world.translate": {{"initial": [0.05, -0.02, 0.03]}},
                "ball.to_world.rotate": {{"initial": [120, 80, -60]}}, "ball.to_world.scale": {{"initial": 1.1}},
                "raised.displacement": {{}}, "cut.vertex_positions": {{}}, "smooth.vertex_normals": {{}}, "turned.to_world.translate": {{}},
                "turned.to_world.rotate": {{"initial": [10, 5, -20]}}, "turned.to_world.scale": {{"initial": [1.1, 0.9, 1.2]}},
                "front.to_world.translate": {{"initial": [0.1, -0.1, 0.1]}}, "front.to_world.rotate": {{"initial": [2, 3, 1]}},
                "sheet.bsdf.reflectance.data": {{}}, "sky.data": {{}}}}}}}}"#,
        mapped(glass),
        mapped(metal),
        mapped(glass),
        stone(
            "cut",
            &mapped(glass),
            true,
            r#"{"scale": 0.5}, {"translate": [1, -0.8, 0.6]}"#
        ),
        stone(
            "smooth",
            metal,
            false,
            r#"{"scale": 0.4}, {"translate": [-1.2, -1, 0.9]}"#
        ),
        stone(
            "turned",
            glass,
            false,
            r#"{"scale": 0.4}, {"rotate": {"axis": [1, 1, 0], "angle": 35}}, {"translate": [1.2, 0.6, 1]}"#
        ),
    );
    vec![
        Case {
            name: "lens",
            text: small(include_str!("../../scenes/lens_target.json")),
            sought: &["face.bsdf.normalmap"],
        },
        Case {
            name: "cups",
            text: small(include_str!("../../scenes/cups_target.json")),
            sought: &["left_cup.bsdf.normalmap", "right_cup.bsdf.normalmap"],
        },
        Case {
            name: "torus",
            text: small(include_str!("../../scenes/torus_target.json")),
            sought: &["ring.bsdf.normalmap"],
        },
        Case {
            name: "all shapes and ends",
            text: all,
            sought: &[
                "pane.bsdf.normalmap",
                "pane.to_world.translate",
                "pane.to_world.rotate",
                "pane.to_world.scale",
                "pipe.bsdf.normalmap",
                "pipe.to_world.translate",
                "pipe.to_world.rotate",
                "pipe.to_world.scale",
                "thin.to_world.rotate",
                "block.to_world.rotate",
                "block.to_world.scale",
                "ball.bsdf.normalmap",
                "ball.to_world.translate",
                "ball.to_world.rotate",
                "ball.to_world.scale",
                "raised.displacement",
                "cut.vertex_positions",
                "smooth.vertex_normals",
                "turned.to_world.translate",
                "turned.to_world.rotate",
                "turned.to_world.scale",
                "front.to_world.translate",
                "front.to_world.rotate",
            ],
        },
    ]
}

/// A file with two pyramids on one square.
fn stone() -> PathBuf {
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("devices_stone.obj");
    let text = "v 1 0.1 0\nv 0 1 0.1\nv -1 0 -0.1\nv 0 -1 0\nv 0.1 0 0.8\nv 0 0.1 -0.7\n\
        vt 0 0\nvt 1 0\nvt 1 1\nvt 0 1\nvt 0.5 0.4\nvt 0.4 0.6\n\
        f 1/1 2/2 5/5\nf 2/2 3/3 5/5\nf 3/3 4/4 5/5\nf 4/4 1/1 5/5\n\
        f 2/2 1/1 6/6\nf 3/3 2/2 6/6\nf 4/4 3/3 6/6\nf 1/1 4/4 6/6\n";
    fs::write(&file, text).expect("the folder is writable");
    file
}

fn run(device: &mut dyn Device, case: &Case) -> Outcome {
    let path = Path::new("scenes/chains.json");
    let scene = scene::parse(&case.text, path).unwrap_or_else(|mistakes| panic!("{}: {mistakes}", case.name));
    let setup = Setup::new(&scene, &gradcheck::Options::default()).expect("the scene is sound");
    let (mut resident, mut params) = (setup.resident, setup.params);
    resident.set_constant_reference([0.3, 0.5, 0.4]);
    let sensors: Vec<u32> = (0..resident.sensors.len() as u32).collect();
    let table = PixelTable::new(&resident.sensors, &sensors).expect("few pixels");
    let batch = Batch { table, drawn: None };
    for parameter in &mut params.parameters {
        if let Some(tuning) = &mut parameter.tuning {
            tuning.learning_rate = 0.005;
        }
        if parameter.path.ends_with("sky.data") {
            let values = parameter.values.iter_mut().enumerate();
            values.for_each(|(i, value)| *value *= 0.3 + (i * 7 % 11) as f32 * 0.1);
        }
    }
    device.load(resident, params, ADAM).expect("a small scene");
    let mut outcome = Outcome::new();
    image(device, &batch, "image", &mut outcome);
    gradients(device, &batch, &mut outcome);
    for path in case.sought {
        let found = outcome.iter().find(|(name, _)| *name == format!("gradient of {path}"));
        let (_, gradient) = found.expect("it has a gradient");
        let reached = gradient.iter().filter(|g| **g != 0.0).count();
        assert!(
            reached * 4 > gradient.len(),
            "{} {}: {reached} entries of {path}",
            case.name,
            device.info().kind
        );
    }
    iterate(device, &batch, 4, 0.2);
    for path in case.sought {
        let slot = device.params().find(path).expect("it is a parameter");
        let values = device.read(slot, ArrayKind::Values).expect("values");
        outcome.push((format!("{path} after ten iterations"), values));
    }
    image(device, &batch, "image after ten iterations", &mut outcome);
    outcome
}

/// Compares both devices on the case of this name.
fn compare_on(name: &str) {
    let Some(mut gpu) = gpu(Options::default()) else { return };
    let case = cases()
        .into_iter()
        .find(|case| case.name == name)
        .expect("there is such a case");
    let (cpu, gpu) = (run(&mut Cpu::new(), &case), run(&mut gpu, &case));
    compare(&cpu, &gpu).unwrap_or_else(|e| panic!("{name}: {e}"));
}

#[test]
fn devices_agree_on_the_lens() {
    compare_on("lens");
}

#[test]
fn devices_agree_on_the_cups() {
    compare_on("cups");
}

#[test]
fn devices_agree_on_the_torus() {
    compare_on("torus");
}

#[test]
fn devices_agree_on_all_shapes_and_ends() {
    compare_on("all shapes and ends");
}

/// Inverted Jacobians, which the shaders lack, are refused in one sentence that says what there is instead.
#[test]
fn what_the_cpu_alone_knows_is_refused() {
    let Some(mut gpu) = gpu(Options::default()) else { return };
    let inverted = "integrator.jacobians=inverted".parse().expect("a change");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenes/lens.json");
    let scene = scene::load_with(&path, &[inverted]).unwrap_or_else(|mistakes| panic!("{mistakes}"));
    let (resident, params) = Resident::new(&scene).expect("the CPU knows it");
    let told = "run on the CPU only; use --device cpu, or say \"jacobians\": \"kept\"";
    let why = gpu.load(resident, params, ADAM).expect_err(told).to_string();
    assert!(why.contains(told) && !why.trim_end().contains('\n'), "{why}");
}
