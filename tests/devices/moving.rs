//! Shapes, lights and cameras that move beside rough surfaces: the same pictures, the same derivatives by places, vertices,
//! normals, heights, lights and cameras, and the same places and pictures after ten iterations on both devices.

#[path = "../small/mod.rs"]
mod small;

use prbopt::device::cpu::Cpu;
use prbopt::device::gpu::Options;
use prbopt::device::gpu::records::{DisplacedRecord, UNIFORM_VECTORS};
use prbopt::device::{ArrayKind, Batch, Device};
use prbopt::gradcheck;
use prbopt::transport::rays::pixel::PixelTable;
use serde_json::{Map, Value};

use super::buffers::storage_buffers;
use super::gpu;
use super::iterations::{ADAM, iterate};
use super::scenes::noise;
use super::worlds::{Outcome, compare, gradients, image};
use small::moving::moving_worlds;
use small::worlds::SmallWorld;

/// Loads a small world with all of its views: these, and the slots of the parameters that are checked.
fn load(device: &mut dyn Device, small: &SmallWorld) -> (Batch, Vec<usize>) {
    let options = gradcheck::Options {
        seed: 5,
        ..gradcheck::Options::default()
    };
    let setup = small.setup("free_flight", &options);
    let (mut resident, mut params) = (setup.resident, setup.params);
    resident.set_constant_reference([0.3, 0.5, 0.4]);
    let sensors: Vec<u32> = (0..resident.sensors.len() as u32).collect();
    let table = PixelTable::new(&resident.sensors, &sensors).expect("few pixels");
    for tuning in params.parameters.iter_mut().filter_map(|p| p.tuning.as_mut()) {
        tuning.learning_rate = 0.003;
    }
    device.load(resident, params, ADAM).expect("a small scene");
    (Batch { table, drawn: None }, setup.checked)
}

/// Images before and after all checked parameters have changed by up to a tenth.
pub(super) fn shake(device: &mut dyn Device, small: &SmallWorld) -> Outcome {
    let (batch, checked) = load(device, small);
    let mut outcome = Outcome::new();
    image(device, &batch, "image", &mut outcome);
    for slot in checked {
        let mut values = device.read(slot, ArrayKind::Values).expect("values");
        for (i, value) in values.iter_mut().enumerate() {
            *value += 0.2 * noise(7, i) - 0.1;
        }
        device.write(slot, ArrayKind::Values, &values).expect("as many values");
    }
    device.rebuild().expect("it rebuilds");
    image(device, &batch, "image after a change", &mut outcome);
    outcome
}

fn run(device: &mut dyn Device, small: &SmallWorld) -> Outcome {
    let (batch, checked) = load(device, small);
    let mut outcome = Outcome::new();
    image(device, &batch, "image", &mut outcome);
    gradients(device, &batch, &mut outcome);
    let is_reached = |slot: &&usize| {
        let name = format!("gradient of {}", device.params().parameters[**slot].path);
        let found = outcome.iter().find(|(of, _)| *of == name);
        let (_, gradient) = found.expect("it has a gradient");
        gradient.iter().any(|g| *g != 0.0)
    };
    let reached = checked.iter().filter(is_reached).count();
    assert!(4 * reached >= 3 * checked.len(), "{}: {reached}", small.name);
    iterate(device, &batch, 4, 0.2);
    for slot in &checked {
        let values = device.read(*slot, ArrayKind::Values).expect("values");
        let path = &device.params().parameters[*slot].path;
        outcome.push((format!("{path} after ten iterations"), values));
    }
    image(device, &batch, "image after ten iterations", &mut outcome);
    outcome
}

/// Records that fit into a uniform buffer until those of motions come to them, and the same in storage buffers.
#[test]
fn devices_agree_on_records_that_outgrow_a_uniform_buffer() {
    const POINTS: usize = 15;
    let small = SmallWorld {
        name: "a sheet of many points",
        objects: format!(
            r#""sheet": {{"type": "grid", "resolution": [{POINTS}, {POINTS}], "displacement": {{"type": "bitmap",
                "data": {{"resolution": [3, 3], "value": 0.2}}}},
                "to_world": [{{"rotate": {{"axis": [1, 0.2, 0], "angle": -40}}}}]}},
            "lamp": {{"type": "point", "position": [1, 2, 3], "intensity": 8}}"#
        ),
        optimize: r#", "optimize": {"references": {"type": "constant", "value": 0.5}, "parameters": {"sheet.displacement": {}}}"#.into(),
        ..SmallWorld::default()
    };
    let setup = small.setup("free_flight", &gradcheck::Options::default());
    let paths = setup.resident.transport.paths();
    let bytes =
        size_of_val(&paths.bvh.nodes[..]) + size_of_val(&paths.bvh.blocks[..]) + size_of_val(&paths.corners[..]);
    let (held, motions) = (
        16 * UNIFORM_VECTORS as usize,
        POINTS * POINTS * size_of::<DisplacedRecord>(),
    );
    assert!(
        bytes + 4096 < held && bytes + motions > held,
        "{bytes} and {motions} bytes"
    );
    let cpu = run(&mut Cpu::new(), &small);
    for options in [Options::default(), storage_buffers()] {
        let Some(mut gpu) = gpu(options) else { return };
        compare(&cpu, &run(&mut gpu, &small)).unwrap_or_else(|e| panic!("{options:?}: {e}"));
    }
}

/// These worlds of the table as one; where several have an object or a parameter of the same name, the first counts.
pub(super) fn together(names: &[&str]) -> SmallWorld {
    let worlds = moving_worlds();
    let [mut objects, mut parts] = [Map::new(), Map::new()];
    let mut all = SmallWorld::default();
    for name in names {
        let world = worlds.iter().find(|small| small.name == *name);
        let world = world.unwrap_or_else(|| panic!("there is no world of {name}"));
        let text = |inner: &str| -> Map<String, Value> { serde_json::from_str(&format!("{{{inner}}}")).expect("JSON") };
        for (name, object) in text(&world.objects) {
            objects.entry(name).or_insert(object);
        }
        let optimize = text(world.optimize.trim_start_matches(','));
        for (path, part) in optimize["optimize"]["parameters"].as_object().expect("a block") {
            parts.entry(path.clone()).or_insert(part.clone());
        }
        all.set.extend(world.set.iter().cloned());
        all.integrator = world.integrator;
    }
    let objects = Value::from(objects).to_string();
    all.objects = objects[1..objects.len() - 1].into();
    all.optimize = format!(
        r#", "optimize": {{"references": {{"type": "constant", "value": 0.5}}, "parameters": {}}}"#,
        Value::from(parts)
    );
    all
}

/// Meshes, displaced grids, disks and cubes with normal maps, balls, cameras, points, spots and projectors that move, in one
/// world: drivers compile shaders for each world, which takes longer than running them.
#[test]
fn devices_agree_on_what_moves_together() {
    let Some(mut gpu) = gpu(Options::default()) else { return };
    let small = together(&[
        "vertices of a smooth mesh",
        "displaced grids",
        "vertices",
        "lights with pictures that move",
        "a point and a spot that move",
        "normal maps on what moves",
        "a camera that moves past what stands still",
    ]);
    let (cpu, gpu) = (run(&mut Cpu::new(), &small), run(&mut gpu, &small));
    compare(&cpu, &gpu).unwrap_or_else(|e| panic!("{e}"));
}

/// Shapes and lights that move beside smoke and fog, and lights in them.
#[test]
fn devices_agree_beside_smoke_and_fog() {
    let Some(mut gpu) = gpu(Options::default()) else { return };
    let small = together(&["lamps in smoke and fog", "what stands beside smoke and fog"]);
    let (cpu, gpu) = (run(&mut Cpu::new(), &small), run(&mut gpu, &small));
    compare(&cpu, &gpu).unwrap_or_else(|e| panic!("{e}"));
}

/// Lights without extent that move, beside kinds of objects that are refused where shapes move.
#[test]
fn devices_agree_on_lamps_beside_what_stands_still() {
    let Some(mut gpu) = gpu(Options::default()) else { return };
    let worlds = moving_worlds();
    let name = "lamps that move beside bumps, distances, volumes and values of vertices";
    let small = worlds
        .iter()
        .find(|small| small.name == name)
        .expect("it is in the table");
    let (cpu, gpu) = (run(&mut Cpu::new(), small), run(&mut gpu, small));
    compare(&cpu, &gpu).unwrap_or_else(|e| panic!("{e}"));
}

/// The whole table: `cargo test --release --test devices all_that_moves -- --ignored --nocapture`.
#[test]
#[ignore = "compiles shaders for minutes"]
fn devices_agree_on_all_that_moves() {
    let Some(mut gpu) = gpu(Options::default()) else { return };
    let mut failed = 0;
    for small in moving_worlds() {
        let (cpu, gpu) = (run(&mut Cpu::new(), &small), run(&mut gpu, &small));
        let found = compare(&cpu, &gpu);
        println!("{}: {found:?}", small.name);
        failed += usize::from(found.is_err());
    }
    assert_eq!(failed, 0);
}
