//! The coin of `scenes/relief.json`, small: the same picture, the same derivatives by its normals, and the same normals
//! after ten iterations on both devices.

use std::path::Path;

use prbopt::device::cpu::Cpu;
use prbopt::device::gpu::Options;
use prbopt::device::{ArrayKind, Batch, Device};
use prbopt::gradcheck::{self, Setup};
use prbopt::params::Tuning;
use prbopt::scene;
use prbopt::transport::rays::pixel::PixelTable;

use super::gpu;
use super::iterations::{ADAM, iterate};
use super::worlds::{Outcome, compare, gradients, image};

/// The scene with 8 × 8 texels and pictures of 12 × 12 pixels.
fn text() -> String {
    let text = include_str!("../../scenes/relief_target.json");
    let text = text.replace("\"width\": 96, \"height\": 96", "\"width\": 12, \"height\": 12");
    text.replace("[64, 64]", "[8, 8]")
}

fn run(device: &mut dyn Device) -> Outcome {
    let scene = scene::parse(&text(), Path::new("scenes/relief.json")).unwrap_or_else(|mistakes| panic!("{mistakes}"));
    let setup = Setup::new(&scene, &gradcheck::Options::default()).expect("the scene is sound");
    let (mut resident, mut params) = (setup.resident, setup.params);
    resident.set_constant_reference([0.8, 0.6, 0.3]);
    let sensors: Vec<u32> = (0..resident.sensors.len() as u32).collect();
    let table = PixelTable::new(&resident.sensors, &sensors).expect("few pixels");
    let batch = Batch { table, drawn: None };
    let slot = params.find("coin.bsdf.normalmap").expect("it is a parameter");
    for (i, parameter) in params.parameters.iter_mut().enumerate() {
        parameter.tuning = (i == slot).then_some(Tuning {
            learning_rate: 0.01,
            bounds: [0.0, 1.0],
            smoothing: 0.0,
        });
    }
    device.load(resident, params, ADAM).expect("a small scene");
    let mut outcome = Outcome::new();
    image(device, &batch, "image", &mut outcome);
    gradients(device, &batch, &mut outcome);
    let found = outcome
        .iter()
        .find(|(name, _)| name == "gradient of coin.bsdf.normalmap");
    let (_, gradient) = found.expect("it has a gradient");
    assert!(gradient.iter().filter(|g| **g != 0.0).count() > 150, "{gradient:?}");
    let start = device.read(slot, ArrayKind::Values).expect("values");
    iterate(device, &batch, 4, 1.0);
    let found = device.read(slot, ArrayKind::Values).expect("values");
    let moved = found.iter().zip(&start).filter(|(a, b)| (*a - *b).abs() > 0.01).count();
    assert!(moved > 100, "{moved} of {} have moved", found.len());
    outcome.push(("normals after ten iterations".into(), found));
    outcome
}

#[test]
fn devices_agree_on_the_coin() {
    let Some(mut gpu) = gpu(Options::default()) else { return };
    let (cpu, gpu) = (run(&mut Cpu::new()), run(&mut gpu));
    compare(&cpu, &gpu).unwrap_or_else(|e| panic!("{e}"));
}
