//! The scenes of moved chains (`prb_attached`), small: the same pictures, the same derivatives by normals, indices and pictures,
//! and the same normals after ten iterations on both devices.

use std::path::Path;

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

/// A scene: what it is called, its text, and the maps that are found.
struct Case {
    name: &'static str,
    text: String,
    maps: &'static [&'static str],
}

/// The text with pictures of 12 × 12 pixels and maps of 8 × 8 texels, and with mirrors of which all derivatives are other than zero.
fn small(text: &str) -> String {
    let text = text.replace("\"material\": \"none\"", "\"eta\": 0.2, \"k\": 3.9");
    let text = text.replace("\"width\": 96, \"height\": 96", "\"width\": 12, \"height\": 12");
    text.replace("\"resolution\": [64, 64]", "\"resolution\": [8, 8]")
}

/// The scenes that come along, and one with what they lack: a diffuse plane, an environment map, an index that is sought, a
/// disk, a cylinder, a cube and a thin pane.
fn cases() -> Vec<Case> {
    let glass = r#"{"type": "dielectric", "int_ior": 1.4, "ext_ior": 1}"#;
    let mapped = |inner: &str| {
        format!(
            r#"{{"type": "normalmap", "use_shadowing_function": false, "inner": {inner},
                 "normalmap": {{"type": "bitmap", "data": {{"resolution": [8, 8], "magnifier": 3}}}}}}"#
        )
    };
    let metal = r#"{"type": "conductor", "eta": 0.2, "k": 3.9}"#;
    let all = format!(
        r#"{{"integrator": {{"type": "prb_attached", "max_depth": 6}},
            "pane": {{"type": "disk", "bsdf": {}, "to_world": [{{"scale": 1.2}}, {{"translate": [-0.7, 0.5, 1]}}]}},
            "pipe": {{"type": "cylinder", "radius": 0.5, "p0": [0.6, -1, 0.4], "p1": [0.7, 1, 0.6], "bsdf": {}}},
            "thin": {{"type": "rectangle", "bsdf": {{"type": "thindielectric", "int_ior": 1.5, "ext_ior": 1}},
                "to_world": [{{"rotate": {{"axis": [0, 1, 0], "angle": 30}}}}, {{"translate": [0, -0.6, 1.6]}}]}},
            "block": {{"type": "cube", "bsdf": {glass}, "to_world": [{{"scale": 0.4}}, {{"rotate": {{"axis": [1, 1, 0], "angle": 40}}}},
                {{"translate": [-0.6, -0.6, 0.2]}}]}},
            "ball": {{"type": "sphere", "radius": 0.5, "center": [0.2, 0.9, 0.3], "bsdf": {}}},
            "sheet": {{"type": "rectangle", "to_world": [{{"scale": 3}}, {{"translate": [0, 0, -1]}}],
                "bsdf": {{"type": "diffuse", "reflectance":
                    {{"type": "bitmap", "raw": true, "data": {{"resolution": [9, 7], "leaves": 3}}}}}}}},
            "sky": {{"type": "envmap", "data": {{"resolution": [8, 5], "value": [0.5, 0.6, 0.8]}}}},
            "front": {{"type": "perspective", "fov": 40,
                "to_world": [{{"look_at": {{"origin": [0.2, 0.3, 5], "target": [0, 0, 0], "up": [0, 1, 0]}}}}],
                "film": {{"type": "hdrfilm", "width": 16, "height": 16, "rfilter": {{"type": "box"}}}}}}}}"#,
        mapped(glass),
        mapped(metal),
        mapped(glass)
    );
    vec![
        Case {
            name: "lens",
            text: small(include_str!("../../scenes/lens_target.json")),
            maps: &["face.bsdf.normalmap"],
        },
        Case {
            name: "cups",
            text: small(include_str!("../../scenes/cups_target.json")),
            maps: &["left_cup.bsdf.normalmap", "right_cup.bsdf.normalmap"],
        },
        Case {
            name: "torus",
            text: small(include_str!("../../scenes/torus_target.json")),
            maps: &["ring.bsdf.normalmap"],
        },
        Case {
            name: "all shapes and ends",
            text: all,
            maps: &["pane.bsdf.normalmap", "pipe.bsdf.normalmap", "ball.bsdf.normalmap"],
        },
    ]
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
        if parameter.path.ends_with("sky.data") {
            let values = parameter.values.iter_mut().enumerate();
            values.for_each(|(i, value)| *value *= 0.3 + (i * 7 % 11) as f32 * 0.1);
        }
    }
    device.load(resident, params, ADAM).expect("a small scene");
    let mut outcome = Outcome::new();
    image(device, &batch, "image", &mut outcome);
    gradients(device, &batch, &mut outcome);
    for map in case.maps {
        let found = outcome.iter().find(|(name, _)| *name == format!("gradient of {map}"));
        let (_, gradient) = found.expect("it has a gradient");
        let reached = gradient.iter().filter(|g| **g != 0.0).count();
        assert!(
            reached * 4 > gradient.len(),
            "{}: {reached} entries of {map}",
            case.name
        );
    }
    iterate(device, &batch, 4, 0.2);
    for map in case.maps {
        let slot = device.params().find(map).expect("it is a parameter");
        let values = device.read(slot, ArrayKind::Values).expect("values");
        outcome.push((format!("{map} after ten iterations"), values));
    }
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

/// What the shaders lack is refused in one sentence, by what it is and what there is instead.
#[test]
fn what_the_cpu_alone_moves_is_refused() {
    let Some(mut gpu) = gpu(Options::default()) else { return };
    for (file, changes, told) in [
        (
            "lens.json",
            &["integrator.jacobians=inverted"][..],
            "run on the CPU only; use --device cpu, or say \"jacobians\": \"kept\"",
        ),
        (
            "lens.json",
            &[r#"optimize.parameters={"bottom.to_world.translate":{}}"#],
            "are differentiated on the CPU only; use --device cpu",
        ),
        (
            "torus.json",
            &[
                "ring.face_normals=true",
                "optimize.regularizers=[]",
                r#"optimize.parameters={"ring.vertex_positions":{}}"#,
            ],
            "are differentiated on the CPU only; use --device cpu",
        ),
    ] {
        let changes: Vec<_> = changes.iter().map(|c| c.parse().expect("a change")).collect();
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenes").join(file);
        let scene = scene::load_with(&path, &changes).unwrap_or_else(|mistakes| panic!("{mistakes}"));
        let (resident, params) = Resident::new(&scene).expect("the CPU knows it");
        let why = gpu.load(resident, params, ADAM).expect_err(told).to_string();
        assert!(why.contains(told) && !why.trim_end().contains('\n'), "{why}");
    }
}
