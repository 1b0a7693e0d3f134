//! A cube whose index varies: derivatives against finite differences and forward mode, the transmittance of a constant index, two
//! lights and two screens, runs, and what is refused.

use std::f32::consts::PI;
use std::path::Path;

use prbopt::device::Device;
use prbopt::gradcheck::{Options, Setup};
use prbopt::kernels::loss::Loss;
use prbopt::resident::Resident;
use prbopt::scene;
use prbopt::transport::rays::random::{Counter, random_uniform};
use serde_json::{Value, json};

use super::commands::{Place, ends_with_the_same_bits, memory_is_as_told};
use super::{derivatives_agree, forward_agrees, has_bits_of_one_thread, loaded, parse};

/// A `to_world` at `at` on an axis, looking at the cube, whose side is 2.
fn facing(axis: usize, at: f32) -> Value {
    let mut origin = [0.0; 3];
    origin[axis] = at;
    let up = if axis == 2 { [0, 1, 0] } else { [0, 0, 1] };
    json!({"look_at": {"origin": origin, "target": [0, 0, 0], "up": up}})
}

fn screen(axis: usize) -> Value {
    json!({
        "type": "rectangle", "to_world": [{"scale": 1.5}, facing(axis, 3.0)],
        "bsdf": {"type": "diffuse", "reflectance": 0.5}
    })
}

/// A camera just outside the cube's face that sees the screen, with a square film and a filter whose slopes are continuous.
fn camera(axis: usize, size: u32) -> Value {
    let mut ends = [[0.0; 3]; 2];
    (ends[0][axis], ends[1][axis]) = (1.2, 3.0);
    let up = if axis == 2 { [0, 1, 0] } else { [0, 0, 1] };
    json!({
        "type": "perspective", "fov": 68,
        "to_world": [{"look_at": {"origin": ends[0], "target": ends[1], "up": up}}],
        "film": {"type": "hdrfilm", "width": size, "height": size, "rfilter": {"type": "mitchell"}}
    })
}

fn light(axis: usize, radiance: Value) -> Value {
    json!({
        "type": "rectangle", "to_world": [{"scale": 0.8}, facing(axis, -2.5)],
        "emitter": {"type": "directionalarea", "radiance": radiance}
    })
}

/// Two lights, two screens, two cameras.
pub(super) fn world(size: u32) -> Value {
    json!({
        "type": "scene",
        "integrator": {"type": "ptracer", "max_depth": 4},
        "below": light(2, json!([3, 2, 1])),
        "beside": light(0, json!([1, 2, 4])),
        "cube": {"type": "gradient_index", "index": {"type": "gridvolume", "resolution": [6, 5, 7], "value": 1.3}},
        "ceiling": screen(2),
        "wall": screen(0),
        "up": camera(2, size),
        "across": camera(0, size)
    })
}

/// Light that falls in askew on one face and on the edge of another, in a cube that is turned and twice as large.
fn askew() -> Value {
    let mut world = world(16);
    world["beside"]["to_world"] =
        json!([{"scale": 2}, {"look_at": {"origin": [-6, 1.2, -0.9], "target": [0, 0, 0], "up": [0, 0, 1]}}]);
    world["cube"]["to_world"] = json!([{"rotate": {"axis": [0, 0, 1], "angle": 12}}, {"scale": 2}]);
    world["below"]["to_world"] = json!([{"scale": 1.7}, facing(2, -5.0)]);
    world["across"] = json!({
        "type": "orthographic",
        "to_world": [{"scale": 2.2}, {"look_at": {"origin": [3.2, 0, 0], "target": [6, 0, 0], "up": [0, 0, 1]}}],
        "film": {"type": "hdrfilm", "width": 14, "height": 16, "rfilter": {"type": "mitchell"}}
    });
    for (name, axis) in [("ceiling", 2), ("wall", 0)] {
        world[name]["to_world"] = json!([{"scale": 3}, facing(axis, 6.0)]);
    }
    world["up"]["to_world"] = json!([{"look_at": {"origin": [0, 0, 3], "target": [0, 0, 6], "up": [0, 1, 0]}}]);
    world
}

/// The scene, ready, with a random index between 1.2 and 1.45.
pub(super) fn setup(mut world: Value, refracts: bool) -> Setup {
    world["cube"]["refraction"] = json!(refracts);
    let scene = parse(&world.to_string());
    let mut setup = Setup::new(&scene, &Options::default()).expect("can be made ready");
    setup.spp = 2;
    let index = setup.params.find("cube.index").expect("there");
    for (i, value) in setup.params.parameters[index].values.iter_mut().enumerate() {
        let counter = Counter {
            sensor: 0,
            pixel: i as u32,
            sample: 0,
            block: 0,
        };
        *value = 1.2 + 0.25 * random_uniform([5, 6, 7, 8], counter)[0];
    }
    setup
}

pub(super) fn setups() -> [(&'static str, Setup); 4] {
    [
        ("refracting", setup(world(16), true)),
        ("open", setup(world(16), false)),
        ("askew, refracting", setup(askew(), true)),
        ("askew, open", setup(askew(), false)),
    ]
}

#[test]
fn derivatives_by_the_index_are_those_of_what_arrives() {
    let options = Options {
        entries: 12,
        // The slopes of this filter are continuous: no path has a jump of the derivative within a step.
        step: Some(1e-5),
        tolerance: 1e-6,
        ..Options::default()
    };
    for (name, setup) in setups() {
        derivatives_agree(name, &setup, &options);
    }
}

#[test]
fn forward_mode_agrees() {
    let direction: Vec<f64> = (0..210).map(|i| f64::from(i % 5) - 2.0).collect();
    for (name, setup) in setups() {
        forward_agrees(name, &setup, "cube.index", &direction, 1e-6);
    }
}

/// Where the index is the same everywhere, light goes straight on, less what the faces reflect: radiance is E rho / pi with
/// E = L t², each camera seeing its own light.
#[test]
fn a_plain_cube_passes_what_it_does_not_reflect() {
    for refracts in [true, false] {
        let mut world = world(30);
        world["cube"]["refraction"] = json!(refracts);
        let setup = Setup::new(&parse(&world.to_string()), &Options::default()).expect("ready");
        let mut device = loaded(&setup);
        device.render(&setup.batch, setup.keys, 256).expect("renders");
        let image = device.image().expect("an image");
        let passed = if refracts { 1.0 - (0.3f32 / 2.3).powi(2) } else { 1.0 };
        for (view, light) in [[3.0f32, 2.0, 1.0], [1.0, 2.0, 4.0]].into_iter().enumerate() {
            for c in 0..3 {
                let expected = light[c] * passed * passed * 0.5 / PI;
                let inner = (12..18).flat_map(|y| (12..18).map(move |x| view * 900 + y * 30 + x));
                let mean = inner.map(|i| image[i][c]).sum::<f32>() / 36.0;
                assert!(
                    (mean / expected - 1.0).abs() < 0.01,
                    "{refracts} {view}: {mean} {expected}"
                );
                assert!(image[view * 900][c].abs() < 1e-6, "no light falls into the corner");
            }
        }
    }
}

#[test]
fn threads_change_no_bit() {
    has_bits_of_one_thread(&setup(askew(), true), "cube.index");
}

/// A pass takes as much memory when its steps are a hundred times shorter.
#[test]
fn memory_does_not_grow_with_the_number_of_steps() {
    let bytes = |step: f64| {
        let mut world = world(16);
        world["cube"]["step"] = json!(step);
        let setup = setup(world, true);
        let mut device = loaded(&setup);
        device.render(&setup.batch, setup.keys, 1).expect("renders");
        device.loss(&setup.batch, setup.keys, Loss::L2).expect("compares");
        device.backpropagate(&setup.batch, setup.keys, 1).expect("sends");
        device.memory()
    };
    assert_eq!(bytes(0.1), bytes(0.001));
}

/// A run from a plain cube towards two figures.
fn run() -> Value {
    let mut world = world(32);
    for (camera, axis) in [("up", 2), ("across", 0)] {
        world[camera] = camera_of_run(axis);
    }
    world["cube"]["index"]["resolution"] = json!([8, 8, 8]);
    world["optimize"] = json!({
        "parameters": {"cube.index": {"learning_rate": 4e-3, "bounds": [1, 1.6], "start_resolution": [4, 4, 4]}},
        "references": {"type": "figure", "name": ["ring", "digit"]},
        "loss": "normalized_l2",
        "iterations": 200, "spp": 1,
        "stages": [{"at": 0.2}],
        "output": {"checkpoint_seconds": 0.001, "spp": 2}
    });
    world
}

fn camera_of_run(axis: usize) -> Value {
    camera(axis, 12)
}

#[test]
fn a_run_stopped_within_a_stage_ends_with_the_same_bits() {
    let mut scene = run();
    scene["optimize"]["stages"] = json!([{"at": 0.2}, {"at": 0.9}]);
    scene["cube"]["index"]["resolution"] = json!([16, 16, 16]);
    let files = ["final/cube.index.vol", "stages/2/cube.index.vol"];
    ends_with_the_same_bits(&Place::of(&scene), "cpu", &files);
}

/// One cube for two pictures: the loss over both films falls below half.
#[test]
fn one_cube_learns_two_pictures() {
    let mut scene = run();
    for (camera, axis) in [("up", 2), ("across", 0)] {
        scene[camera] = self::camera(axis, 24);
    }
    scene["optimize"]["spp"] = json!(4);
    scene["optimize"]["iterations"] = json!(120);
    scene["optimize"]["references"]["name"] = json!(["ring", "ring"]);
    let place = Place::of(&scene);
    place.told("optimize a.json --device cpu --quiet -o run");
    let metrics = std::fs::read_to_string(place.path("run/metrics.jsonl")).expect("there");
    let losses: Vec<f64> = metrics
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).expect("JSON")["loss"].as_f64())
        .collect();
    let (first, last) = (losses[0], losses[losses.len() - 1]);
    assert!(last < 0.5 * first, "{first} {last}");
}

#[test]
fn memory_is_told_before_a_run() {
    let place = Place::of(&run());
    let mut large = run();
    large["up"]["film"]["width"] = json!(40);
    large["cube"]["index"]["resolution"] = json!([24, 20, 16]);
    large["optimize"]["parameters"]["cube.index"]["start_resolution"] = json!([12, 10, 8]);
    large["optimize"]["iterations"] = json!(10);
    place.write("large.json", &large);
    let info: Value = serde_json::from_str(&place.told("info large.json --json")).expect("JSON");
    assert_eq!(info["cube"]["refraction"], json!(true));
    memory_is_as_told(&place);
}

/// The written form of a scene gives the same scene.
#[test]
fn a_cube_comes_back_from_its_written_form() {
    let scene = parse(&askew().to_string());
    let again = parse(&scene.resolved.to_string());
    assert_eq!(scene.resolved, again.resolved);
}

/// Each mistake is told in a sentence.
#[test]
fn what_cannot_be_traced_is_refused() {
    let parsed = |change: &dyn Fn(&mut Value), expected: &str| {
        let mut world = world(8);
        change(&mut world);
        let Err(found) = scene::parse(&world.to_string(), Path::new("cube.json")) else {
            panic!("accepted, expected: {expected}")
        };
        let found = found.to_string();
        assert!(found.contains(expected), "{found}\nexpected: {expected}");
    };
    parsed(
        &|w| w["cube"]["index"]["value"] = json!(0.9),
        "it must lie between 1 and 10",
    );
    parsed(&|w| w["cube"]["step"] = json!(0), "it must lie between 0.00001 and 1");
    parsed(
        &|w| w["cube"]["to_world"] = json!([{"scale": [1, 1, 2]}]),
        "scale it alike along all axes",
    );
    parsed(
        &|w| w["integrator"] = json!({"type": "path"}),
        "add the integrator `ptracer`",
    );
    parsed(
        &|w| {
            for name in ["below", "beside"] {
                w[name]["emitter"]["type"] = json!("area");
            }
        },
        "`ptracer` sees no `directionalarea` lights, expected at least one",
    );
    parsed(
        &|w| {
            w["optimize"] = json!({
                "iterations": 1, "parameters": {"cube.index": {}},
                "references": {"type": "figure", "name": ["letter", "ring", "digit"]}
            });
        },
        "3 figures for 2 sensors",
    );
    let flattened = |change: &dyn Fn(&mut Value), expected: &str| {
        let mut world = world(8);
        change(&mut world);
        let found = Resident::new(&parse(&world.to_string()))
            .expect_err(expected)
            .to_string();
        assert!(found.contains(expected), "{found}\nexpected: {expected}");
    };
    flattened(
        &|w| w["below"]["to_world"] = json!([facing(2, -0.5)]),
        "light of `below` begins inside `cube` or behind it",
    );
    flattened(
        &|w| w["up"]["to_world"] = json!([{"look_at": {"origin": [0, 0, 1.2], "target": [3, 3, 3], "up": [0, 1, 0]}}]),
        "`up` looks past all screens in its middle",
    );
    flattened(
        &|w| w["beside"]["to_world"] = json!([facing(2, -3.5)]),
        "2 lights shine through `cube` straight at the screen `ceiling`, expected one",
    );
    flattened(
        &|w| w["up"]["to_world"] = json!([{"look_at": {"origin": [0, 0, -4], "target": [0, 0, 3], "up": [0, 1, 0]}}]),
        "`cube` may stand between `up` and the screen `ceiling`",
    );
    flattened(
        &|w| w["below"]["emitter"]["radiance"] = json!(0),
        "no light leaves `below`",
    );
}

/// Mitsuba has no medium of varying index: an export as XML is refused and names the cube.
#[test]
fn exports_say_that_they_leave_it_out() {
    let place = Place::of(&world(8));
    place.refuses(
        "export a.json -o a.xml",
        "Mitsuba has no media of varying index, as `cube` is one",
    );
}
