//! Both devices trace the same light: films pixel by pixel, gradients entry by entry, losses over means, stages, and ten
//! iterations of the program.

use std::path::Path;

use prbopt::device::cpu::Cpu;
use prbopt::device::gpu::{AdapterKind, Adapters, DispatchSize, Options as GpuOptions};
use prbopt::device::{ArrayKind, Batch, Device, Keys, Step};
use prbopt::gradcheck::Setup;
use prbopt::io::{image, vol};
use prbopt::kernels::loss::Loss;
use prbopt::kernels::optimizer::Optimizer;
use prbopt::transport::rays::pixel::PixelTable;
use serde_json::{Value, json};

use super::commands::{Place, ends_with_the_same_bits, scene};
use super::gpu::gpu;
use super::{cube, worlds};

/// Largest difference of a pixel, over the brightest: a path's place on the film is rounded to 1e-6 of its side, and Newton's
/// method may take a step more on one device.
const PIXEL: f32 = 2e-5;

/// Largest difference of an entry of a gradient, over the largest entry: a sum of contributions of either sign that are hundreds
/// of times larger than the sum.
const ENTRY: f32 = 2e-4;

const SGD: Optimizer = Optimizer::Sgd { momentum: 0.5 };

fn deterministic() -> GpuOptions {
    GpuOptions {
        deterministic: true,
        ..GpuOptions::default()
    }
}

/// The options of a GPU, one for each way to sum.
fn dialects() -> [GpuOptions; 4] {
    [
        GpuOptions::default(),
        GpuOptions {
            float_atomics: false,
            ..GpuOptions::default()
        },
        deterministic(),
        GpuOptions {
            wide_atomics: false,
            ..deterministic()
        },
    ]
}

fn setups() -> Vec<(&'static str, Setup, &'static str)> {
    let slabs = worlds().into_iter().map(|(name, setup)| (name, setup, "slab.heights"));
    let cubes = cube::setups()
        .into_iter()
        .map(|(name, setup)| (name, setup, "cube.index"));
    slabs.chain(cubes).collect()
}

/// What a device computes: image, gradient, loss over means, and the values after a step.
#[derive(Debug, PartialEq)]
struct Driven {
    image: Vec<f32>,
    gradient: Vec<f32>,
    loss: f64,
    values: Vec<f32>,
    rays: u64,
}

fn drive(device: &mut dyn Device, setup: &Setup, path: &str, loss: Loss) -> Driven {
    let parameter = setup.params.find(path).expect("there");
    device
        .load(setup.resident.clone(), setup.params.clone(), SGD)
        .unwrap_or_else(|e| panic!("{e}"));
    device.render(&setup.batch, setup.keys, 5).expect("renders");
    let image = device.image().expect("an image").into_iter().flatten().collect();
    let found = device.loss(&setup.batch, setup.keys, loss).expect("compares");
    // Other paths than those of the image, as in a run.
    let keys = Keys {
        pass: setup.keys.pass.map(|word| word ^ 0x5bd1_e995),
        ..setup.keys
    };
    let stats = device.backpropagate(&setup.batch, keys, 4).expect("sends");
    let gradient = device.read(parameter, ArrayKind::Gradient).expect("a gradient");
    let step = Step {
        optimizer: SGD,
        rate: 1.0,
        count: 1,
    };
    device.step(&step).expect("steps");
    Driven {
        image,
        gradient,
        loss: found.loss,
        values: device.read(parameter, ArrayKind::Values).expect("values"),
        rays: stats.rays,
    }
}

/// The largest difference of two arrays, over the largest entry of the first.
fn apart(a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(a.len(), b.len());
    let largest = a.iter().fold(0.0, |most: f32, x| most.max(x.abs()));
    assert!(largest > 0.0 && b.iter().all(|x| x.is_finite()));
    a.iter().zip(b).fold(0.0, |most, (a, b)| (a - b).abs().max(most)) / largest
}

fn agree(name: &str, [cpu, gpu]: [&Driven; 2]) {
    let found = [apart(&cpu.image, &gpu.image), apart(&cpu.gradient, &gpu.gradient)];
    assert!(found[0] < PIXEL, "{name}: pixels are {} apart", found[0]);
    assert!(found[1] < ENTRY, "{name}: gradients are {} apart", found[1]);
    assert!(
        (cpu.loss / gpu.loss - 1.0).abs() < 1e-4,
        "{name}: {} {}",
        cpu.loss,
        gpu.loss
    );
    assert!(apart(&cpu.values, &gpu.values) < ENTRY, "{name}");
    assert_eq!(cpu.rays, gpu.rays, "{name}");
}

#[test]
fn both_devices_trace_the_same_light() {
    for options in dialects() {
        let Some(mut device) = gpu(options) else { return };
        for (name, setup, path) in setups() {
            let on_cpu = drive(&mut Cpu::new(), &setup, path, Loss::L2);
            let on_gpu = drive(&mut device, &setup, path, Loss::L2);
            agree(&format!("{name}, {options:?}"), [&on_cpu, &on_gpu]);
        }
    }
}

/// One entry that is off by a thousandth of the largest is seen, and so are a lost path and other random numbers.
#[test]
fn planted_faults_are_seen() {
    let (_, setup, path) = setups().swap_remove(1);
    let good = drive(&mut Cpu::new(), &setup, path, Loss::L2);
    let mut bent = good.gradient.clone();
    let largest = bent.iter().fold(0.0, |most: f32, x| most.max(x.abs()));
    bent[17] += 1e-3 * largest;
    assert!(apart(&good.gradient, &bent) > ENTRY);
    let mut other = setup;
    other.keys.pass[0] ^= 1;
    let found = drive(&mut Cpu::new(), &other, path, Loss::L2);
    assert!(apart(&good.image, &found.image) > 100.0 * PIXEL);
    let Some(mut device) = gpu(GpuOptions::default()) else {
        return;
    };
    device
        .load(other.resident.clone(), other.params.clone(), SGD)
        .expect("fits");
    device.render(&other.batch, other.keys, 4).expect("renders");
    let four: Vec<f32> = device.image().expect("an image").into_iter().flatten().collect();
    assert!(apart(&found.image, &four) > 100.0 * PIXEL, "five paths are not four");
}

/// Sums of whole numbers have the same bits at every run, however a pass is cut into dispatches, in words of 32 bits and of 64.
#[test]
fn whole_numbers_have_the_same_bits() {
    let cut = GpuOptions {
        dispatch_size: Some(DispatchSize { rays: 37, samples: 3 }),
        ..deterministic()
    };
    let words = GpuOptions {
        wide_atomics: false,
        ..deterministic()
    };
    for (name, setup, path) in [setups().swap_remove(1), setups().swap_remove(5)] {
        let of = |options| Some(drive(&mut gpu(options)?, &setup, path, Loss::L2));
        let Some(first) = of(deterministic()) else { return };
        for options in [deterministic(), cut, words] {
            assert_eq!(of(options).as_ref(), Some(&first), "{name}, {options:?}");
        }
    }
}

/// A light that is a bitmap in colours, with several filters and wrap modes.
#[test]
fn lights_that_are_pictures_look_alike() {
    let Some(mut device) = gpu(deterministic()) else { return };
    let picture = |filter: &str, wrap: &str| {
        format!(
            r#"{{"type": "bitmap", "filter_type": "{filter}", "wrap_mode": "{wrap}", "raw": true,
            "to_uv": [{{"rotate": {{"axis": [0, 0, 1], "angle": 20}}}}, {{"scale": [1.7, -1.3, 1]}}],
            "data": {{"resolution": [2, 2], "value": [0.2, 0.5, 0.9]}}}}"#
        )
    };
    for (filter, wrap) in [("bilinear", "repeat"), ("nearest", "mirror"), ("bilinear", "clamp")] {
        let mut setup = super::setup(
            &super::TILTED.replace("[3, 2, 1]", &picture(filter, wrap)),
            super::PARALLEL,
        );
        colour(&mut setup);
        let [on_cpu, on_gpu] = [
            drive(&mut Cpu::new(), &setup, "slab.heights", Loss::L2),
            drive(&mut device, &setup, "slab.heights", Loss::L2),
        ];
        agree(&format!("{filter} {wrap}"), [&on_cpu, &on_gpu]);
    }
}

/// Gives each texel of the light a colour of its own.
fn colour(setup: &mut Setup) {
    let prbopt::resident::Transport::Light(light) = &mut setup.resident.transport else {
        panic!("light is traced")
    };
    for (i, texel) in light.beams[0].lamp.texels.iter_mut().enumerate() {
        *texel = [0.3 + i as f32, 2.0 - 0.4 * i as f32, 0.1 * (i * i) as f32];
    }
}

/// Every reconstruction filter, on a film smaller than the lit part of the screen.
#[test]
fn filters_are_splatted_alike() {
    let Some(mut device) = gpu(GpuOptions::default()) else {
        return;
    };
    for filter in ["box", "tent", "gaussian", "mitchell", "catmullrom", "lanczos"] {
        let camera = super::PINHOLE
            .replace("gaussian", filter)
            .replace("\"fov\": 50", "\"fov\": 25");
        let setup = super::setup(super::UPRIGHT, &camera);
        let mut images = Vec::new();
        for device in [&mut Cpu::new() as &mut dyn Device, &mut device] {
            device
                .load(setup.resident.clone(), setup.params.clone(), SGD)
                .expect("fits");
            device.render(&setup.batch, setup.keys, 4).expect("renders");
            images.push(
                device
                    .image()
                    .expect("an image")
                    .into_iter()
                    .flatten()
                    .collect::<Vec<f32>>(),
            );
        }
        // With `box`, a path on the edge of two pixels may fall into either: this would be a difference of a whole path.
        let found = apart(&images[0], &images[1]);
        assert!(found < PIXEL, "{filter}: {found} apart");
    }
}

/// The loss over means (`normalized_l2`) and its derivatives are those of the CPU.
#[test]
fn pictures_are_compared_over_their_means_alike() {
    let (name, mut setup, path) = setups().swap_remove(3);
    for &sensor in &setup.batch.table.sensors.clone() {
        let record = setup.resident.sensors[sensor as usize];
        let pixel = |i: u32| [0.2 + 0.01 * (i % 7) as f32, 0.3, 0.1 * (i % 3) as f32, 1.0];
        let pixels = (0..record.width * record.height).map(pixel).collect();
        setup.resident.set_references([(sensor as usize, pixels)]);
    }
    let Some(mut device) = gpu(deterministic()) else { return };
    let [on_cpu, on_gpu] = [
        drive(&mut Cpu::new(), &setup, path, Loss::NormalizedL2),
        drive(&mut device, &setup, path, Loss::NormalizedL2),
    ];
    agree(name, [&on_cpu, &on_gpu]);
}

/// After a resampling to another resolution both devices have the same image and gradient.
#[test]
fn a_stage_is_followed() {
    for (which, size) in [(0, [14, 10, 1]), (5, [12, 10, 14])] {
        let (name, setup, path) = setups().swap_remove(which);
        let parameter = setup.params.find(path).expect("there");
        let Some(mut device) = gpu(deterministic()) else { return };
        let mut images = Vec::new();
        for device in [&mut Cpu::new() as &mut dyn Device, &mut device] {
            device
                .load(setup.resident.clone(), setup.params.clone(), SGD)
                .expect("fits");
            device.resample(&[(parameter, size)], false).expect("resampled");
            device.render(&setup.batch, setup.keys, 4).expect("renders");
            let image: Vec<f32> = device.image().expect("an image").into_iter().flatten().collect();
            device.loss(&setup.batch, setup.keys, Loss::L2).expect("compares");
            device.backpropagate(&setup.batch, setup.keys, 4).expect("sends");
            images.push((image, device.read(parameter, ArrayKind::Gradient).expect("a gradient")));
        }
        let found = [apart(&images[0].0, &images[1].0), apart(&images[0].1, &images[1].1)];
        assert!(found[0] < PIXEL && found[1] < ENTRY, "{name}: {found:?}");
    }
}

#[test]
fn a_run_on_a_gpu_stopped_within_a_stage_ends_with_the_same_bits() {
    if gpu(GpuOptions::default()).is_none() {
        return;
    }
    let mut scene = scene();
    scene["optimize"]["spp"] = json!(4);
    let files = ["final/slab.heights.exr", "stages/2/slab.heights.exr"];
    ends_with_the_same_bits(&Place::of(&scene), "gpu --deterministic", &files);
}

/// What a GPU cannot do is refused with a sentence that says what to do.
#[test]
fn what_a_gpu_cannot_trace_is_refused() {
    let Some(mut device) = gpu(GpuOptions::default()) else {
        return;
    };
    let (_, setup, _) = setups().swap_remove(0);
    device
        .load(setup.resident.clone(), setup.params.clone(), SGD)
        .expect("fits");
    let batch = Batch {
        table: PixelTable::new(&setup.resident.sensors, &[0]).expect("few"),
        drawn: Some(4),
    };
    let error = device.render(&batch, setup.keys, 1).expect_err("refused").to_string();
    assert!(error.contains("look at whole views"), "{error}");
    if Adapters::find().summaries()[0].kind != AdapterKind::Software {
        return;
    }
    let mut world = cube::world(8);
    world["cube"]["step"] = json!(0.001);
    let setup = cube::setup(world, true);
    device
        .load(setup.resident.clone(), setup.params.clone(), SGD)
        .expect("fits");
    let error = device
        .render(&setup.batch, setup.keys, 1)
        .expect_err("refused")
        .to_string();
    assert!(error.contains("raise `step`, or use --device cpu"), "{error}");
}

/// A bundled scene made small: its films, grids and numbers of paths, and ten iterations with one stage.
fn small(name: &str, parameter: &str, size: usize) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenes").join(name);
    let text = std::fs::read_to_string(path).expect("a scene");
    let lines = text.lines().filter(|line| !line.trim_start().starts_with("//"));
    let mut scene: Value = serde_json::from_str(&lines.collect::<Vec<_>>().join("\n")).expect("JSON");
    for (_, object) in scene.as_object_mut().expect("an object") {
        if let Some(film) = object.get_mut("film") {
            (film["width"], film["height"]) = (json!(20), json!(18));
        }
    }
    let run = &mut scene["optimize"];
    (run["iterations"], run["spp"], run["spp_grad"]) = (json!(10), json!(4), json!(3));
    run["stages"] = json!([{"at": 0.5}]);
    run["output"] = json!({"spp": 4});
    if scene.get("cube").is_some() {
        scene["cube"]["index"]["resolution"] = json!([size, size, size]);
        scene["optimize"]["parameters"][parameter]["start_resolution"] = json!([size / 2, size / 2, size / 2]);
    } else {
        scene["slab"]["heights"]["data"]["resolution"] = json!([size, size]);
    }
    scene
}

/// Ten iterations of a scene on both devices: losses of all iterations to 1e-3, and changes of the final values to 1e-2.
fn runs_alike(name: &str, parameter: &str, size: usize) {
    if gpu(GpuOptions::default()).is_none() {
        return;
    }
    let place = Place::of(&small(name, parameter, size));
    let primaries = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenes/primaries.png");
    std::fs::copy(primaries, place.path("primaries.png")).expect("copied");
    let losses = |device: &str| -> Vec<f64> {
        place.told(&format!(
            "optimize a.json --device {device} --deterministic --quiet -o {device}"
        ));
        let metrics = std::fs::read_to_string(place.path(&format!("{device}/metrics.jsonl"))).expect("there");
        let lines = metrics.lines();
        let of = |line: &str| serde_json::from_str::<Value>(line).expect("JSON")["loss"].as_f64();
        lines.filter_map(of).collect()
    };
    let (on_cpu, on_gpu) = (losses("cpu"), losses("gpu"));
    assert_eq!((on_cpu.len(), on_gpu.len()), (10, 10));
    for (i, (a, b)) in on_cpu.iter().zip(&on_gpu).enumerate() {
        assert!((a / b - 1.0).abs() < 1e-3, "{name}, iteration {i}: {a} {b}");
    }
    let [a, b] = ["cpu", "gpu"].map(|device| values(&place.path(&format!("{device}/final")), parameter));
    let moved: Vec<f32> = a.iter().map(|x| x - a[0]).collect();
    let apart_by: Vec<f32> = b.iter().map(|x| x - a[0]).collect();
    let found = apart(&moved, &apart_by);
    assert!(found < 1e-2, "{name}: values after ten iterations are {found} apart");
}

/// The values of a run's parameter.
fn values(folder: &Path, parameter: &str) -> Vec<f32> {
    let picture = folder.join(format!("{parameter}.exr"));
    if picture.exists() {
        return image::read(&picture).expect("readable").0.data;
    }
    vol::read(&folder.join(format!("{parameter}.vol")))
        .expect("readable")
        .data
}

#[test]
fn ten_iterations_of_the_caustic_are_alike() {
    runs_alike("caustic.json", "slab.heights", 8);
}

#[test]
fn ten_iterations_of_the_caustic_in_colours_are_alike() {
    runs_alike("caustic_colors.json", "slab.heights", 8);
}

#[test]
fn ten_iterations_of_bent_light_are_alike() {
    runs_alike("bent_light.json", "cube.index", 8);
}
