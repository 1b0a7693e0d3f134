//! Balls of every BSDF: the same picture and the same derivatives by every parameter on both devices.

use std::path::Path;

use prbopt::device::cpu::Cpu;
use prbopt::device::gpu::Options;
use prbopt::device::{Batch, Device};
use prbopt::gradcheck::{self, Setup};
use prbopt::scene;
use prbopt::transport::rays::pixel::PixelTable;

use super::gpu;
use super::worlds::{Outcome, SGD, compare, gradients, image};

/// A BSDF of each kind, all in one scene: a scene's shaders are compiled for the kinds that it has.
const BSDFS: [&str; 16] = [
    r#"{"type": "conductor", "material": "Ag"}"#,
    r#"{"type": "roughconductor", "material": "Cu", "distribution": "ggx", "alpha_u": 0.2, "alpha_v": 0.5}"#,
    r#"{"type": "twosided", "b": {"type": "roughconductor", "material": "Al", "alpha": 0.3, "sample_visible": false}}"#,
    r#"{"type": "dielectric"}"#,
    r#"{"type": "mask", "opacity": 0.7, "b": {"type": "thindielectric", "specular_transmittance": [0.9, 0.5, 0.7]}}"#,
    r#"{"type": "roughdielectric", "alpha": 0.3, "int_ior": 1.6}"#,
    r#"{"type": "roughdielectric", "distribution": "ggx", "alpha_u": 0.3, "alpha_v": 0.2, "sample_visible": false}"#,
    r#"{"type": "blendbsdf", "weight": 0.4, "a": {"type": "plastic"}, "b": {"type": "diffuse"}}"#,
    r#"{"type": "roughplastic", "alpha": 0.25, "nonlinear": true, "diffuse_reflectance": [0.2, 0.5, 0.8]}"#,
    r#"{"type": "principled", "base_color": [0.7, 0.4, 0.2], "roughness": 0.4, "metallic": 0.5, "spec_trans": 0.3, "clearcoat": 0.6, "sheen": 0.5}"#,
    r#"{"type": "principled", "roughness": 0.5, "anisotropic": 0.6, "eta": 1.5, "flatness": 0.5, "spec_tint": 0.4,
        "base_color": [0.3, 0.5, 0.8], "sheen": 0.3, "clearcoat": 0.5}"#,
    r#"{"type": "principledthin", "base_color": [0.8, 0.5, 0.6], "roughness": 0.5, "spec_trans": 0.4, "diff_trans": 0.8, "sheen": 0.6}"#,
    r#"{"type": "normalmap", "normalmap": {"type": "bitmap", "data": {"resolution": [8, 8], "coin": 3}},
        "b": {"type": "roughconductor", "material": "Au", "alpha_u": 0.3, "alpha_v": 0.5}}"#,
    r#"{"type": "twosided", "b": {"type": "bumpmap", "scale": 3, "heights": {"type": "bitmap", "data": {"resolution": [8, 8], "coin": 4}},
        "b": {"type": "roughplastic", "alpha": 0.3, "distribution": "ggx"}}}"#,
    r#"{"type": "blendbsdf", "weight": 0.5,
        "a": {"type": "normalmap", "normalmap": {"type": "bitmap", "data": {"resolution": [6, 4], "coin": 5}},
            "flip_invalid_normals": false, "b": {"type": "roughdielectric", "alpha": 0.4}},
        "b": {"type": "normalmap", "normalmap": {"type": "bitmap", "data": {"resolution": [6, 4], "coin": 6}},
            "b": {"type": "mask", "opacity": 0.5,
                "c": {"type": "principled", "base_color": [0.7, 0.4, 0.2], "roughness": 0.5, "sheen": 0.5, "clearcoat": 0.5, "spec_trans": 0.3}}}}"#,
    r#"{"type": "bumpmap", "scale": 4, "use_shadowing_function": false,
        "heights": {"type": "bitmap", "wrap_mode": "mirror", "data": {"resolution": [5, 6], "coin": 7}},
        "b": {"type": "principledthin", "base_color": [0.2, 0.5, 0.7], "roughness": 0.5, "spec_trans": 0.5, "diff_trans": 0.8, "sheen": 0.6}}"#,
];

/// A ball of each.
pub(super) fn balls() -> String {
    let ball = |(i, bsdf): (usize, &&str)| {
        let (x, y) = (i % 4, i / 4);
        let center = [x as f32 - 1.5, y as f32 - 1.3, 0.2 * (x as f32)];
        format!(r#""ball_{i}": {{"type": "sphere", "center": {center:?}, "radius": 0.48, "bsdf": {bsdf}}}"#)
    };
    let balls: Vec<String> = BSDFS.iter().enumerate().map(ball).collect();
    balls.join(", ")
}

fn world() -> String {
    format!(
        r#"{{"integrator": {{"type": "volpath", "max_depth": 5, "rr_depth": 3}},
        "camera": {{"type": "perspective", "fov": 45,
            "to_world": [{{"look_at": {{"origin": [0.5, 1, 5], "target": [0, 0, 0], "up": [0, 1, 0]}}}}],
            "film": {{"type": "hdrfilm", "width": 96, "height": 72, "rfilter": {{"type": "box"}}}}}},
        {},
        "ground": {{"type": "rectangle", "bsdf": {{"type": "diffuse", "reflectance": {{"type": "checkerboard"}}}},
            "to_world": [{{"scale": 4}}, {{"rotate": {{"axis": [1, 0, 0], "angle": -90}}}}, {{"translate": [0, -1.9, 0]}}]}},
        "panel": {{"type": "rectangle", "emitter": {{"type": "area", "radiance": 5}},
            "to_world": [{{"rotate": {{"axis": [1, 0, 0], "angle": 90}}}}, {{"translate": [0, 3, 1]}}]}},
        "sky": {{"type": "constant", "radiance": 0.5}}}}"#,
        balls()
    )
}

fn run(device: &mut dyn Device) -> Outcome {
    let scene = scene::parse(&world(), Path::new("materials.json")).unwrap_or_else(|mistakes| panic!("{mistakes}"));
    let setup = Setup::new(&scene, &gradcheck::Options::default()).expect("the scene is sound");
    let mut resident = setup.resident;
    resident.set_constant_reference([0.3, 0.5, 0.4]);
    let table = PixelTable::new(&resident.sensors, &[0]).expect("few pixels");
    let batch = Batch { table, drawn: None };
    device.load(resident, setup.params, SGD).expect("a small scene");
    let mut outcome = Outcome::new();
    image(device, &batch, "image", &mut outcome);
    gradients(device, &batch, &mut outcome);
    outcome
}

#[test]
fn devices_agree_on_every_material() {
    let Some(mut gpu) = gpu(Options::default()) else { return };
    let cpu = run(&mut Cpu::new());
    // An array of zeros would prove nothing about its parameter.
    let dark: Vec<&str> = cpu
        .iter()
        .filter(|(_, v)| v.iter().all(|x| *x == 0.0))
        .map(|(name, _)| &name[..])
        .collect();
    assert!(dark.is_empty(), "{dark:?}");
    compare(&cpu, &run(&mut gpu)).unwrap_or_else(|e| panic!("{e}"));
}
