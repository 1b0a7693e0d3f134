//! The loop's parts that run on a device: targets that it renders, stages that it enters, and the memory that is predicted.

use prbopt::device::cpu::Cpu;
use prbopt::device::{ArrayKind, Batch, Device, Keys};
use prbopt::kernels::loss::Loss;
use prbopt::kernels::optimizer::Optimizer;
use prbopt::optimize::estimate::finest;
use prbopt::optimize::references::{Targets, prepare};
use prbopt::optimize::stage::enter;
use prbopt::output::progress::{Progress, Style};
use prbopt::resident::Resident;
use prbopt::scene::{MomentRule, References, Scene, Sensor, Stage};
use prbopt::transport::rays::pixel::PixelTable;

/// An optimised cube of fog of `size`³ texels, seen by a camera of 4 × 4 pixels.
fn scene(size: usize) -> String {
    format!(
        r#"{{"type": "scene", "integrator": {{"type": "volpath", "max_depth": 3}},
            "fog": {{"type": "cube", "bsdf": {{"type": "null"}}, "interior": {{"type": "heterogeneous",
                "albedo": 0.5, "sigma_t": {{"type": "gridvolume", "resolution": [{size}, {size}, {size}], "value": 0.5}}}}}},
            "sky": {{"type": "constant"}},
            "view": {{"type": "perspective", "fov": 40,
                "to_world": [{{"look_at": {{"origin": [0, 0, 4], "target": [0, 0, 0], "up": [0, 1, 0]}}}}],
                "film": {{"type": "hdrfilm", "width": 4, "height": 4, "rfilter": {{"type": "box"}}}}}},
            "optimize": {{"iterations": 1, "references": {{"type": "constant", "value": 0.5}},
                "parameters": {{"fog.interior.sigma_t": {{"learning_rate": 0.1}}}}}}}}"#
    )
}

/// Renders of a target: those of training views are on the device; the host keeps only those that are shown or held out.
#[test]
fn renders_are_kept_for_the_views_that_are_shown_or_held_out() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let target = folder.path().join("target.json");
    std::fs::write(&target, r#"{"sky": {"type": "constant", "radiance": 0.75}}"#).expect("writable");
    let sensor = |name: &str, width| Sensor {
        name: name.into(),
        width,
        height: 2,
        focal: [4.0; 2],
        ..Sensor::default()
    };
    let scene = Scene {
        sensors: vec![sensor("a", 2), sensor("b", 3), sensor("c", 4)],
        ..Scene::default()
    };
    let mut resident = Resident::empty();
    resident.sensors = scene.sensors.iter().map(prbopt::resident::sensor_record).collect();
    let references = References::Scene { path: target, spp: 1 };
    let (targets, _) = prepare(
        &scene,
        &references,
        &[0, 1],
        &[1],
        &mut resident,
        &mut Cpu::new(),
        &folder.path().join("cache"),
        &Progress::new(Style::Quiet),
    )
    .expect("rendered");
    let Targets::Rendered(renders) = &targets else {
        panic!("renders")
    };
    let mut kept: Vec<_> = renders.iter().map(|(index, pixels)| (*index, pixels.len())).collect();
    kept.sort_unstable();
    assert_eq!(kept, [(1, 6), (2, 8)]);
    assert!(targets.coded_image(&scene, 0).expect("no file is read").is_none());
    let shown = targets.coded_image(&scene, 1).expect("no file is read").expect("kept");
    let coded = prbopt::io::srgb::encode(0.75);
    assert!(shown.data.iter().all(|v| (v - coded).abs() < 1e-6), "{:?}", shown.data);
    let first: Vec<u32> = resident.sensors.iter().map(|s| s.first_pixel).collect();
    assert_eq!(first, [0, 4, prbopt::resident::layout::NO_REFERENCE]);
    assert_eq!(resident.references.bytes(), 16 * (4 + 6));
    assert_eq!(resident.references.get(9), [0.75, 0.75, 0.75, 1.0]);
}

/// A stage that resets moments zeroes those of all parameters, also where the size stays; one that resamples keeps the latter.
#[test]
fn moments_of_what_keeps_its_size_follow_the_rule() {
    let text = r#"{"object": {"type": "cube", "bsdf": {"type": "null"}, "interior": {"type": "radiance_field",
            "sh_degree": 0, "sigma_t": {"type": "gridvolume", "resolution": [2, 3, 4], "value": 1},
            "sh_coeffs": {"type": "gridvolume", "resolution": 2, "value": [1, 1, 1]}}},
        "sky": {"type": "constant", "radiance": [1, 2, 3]},
        "camera": {"type": "perspective", "film": {"type": "hdrfilm", "width": 4, "height": 4}},
        "optimize": {"iterations": 1, "references": {"type": "constant", "value": 0.5}, "parameters": {
            "object.interior.sigma_t": {"learning_rate": 1}, "sky.radiance": {"learning_rate": 1}}}}"#;
    let scene = prbopt::scene::parse(text, std::path::Path::new("stage.json")).expect("no mistakes");
    let adam = Optimizer::Adam {
        beta_1: 0.9,
        beta_2: 0.99,
        epsilon: 1e-8,
        mask_updates: false,
    };
    for (rule, upsample, expected, sigma) in [
        (MomentRule::Reset, 2, [0.0, 0.0], [4, 6, 8]),
        (MomentRule::Resample, 2, [0.5, 0.25], [4, 6, 8]),
        (MomentRule::Reset, 1, [0.0, 0.0], [2, 3, 4]),
        (MomentRule::Resample, 1, [0.5, 0.25], [2, 3, 4]),
    ] {
        let (resident, params) = Resident::new(&scene).expect("sound");
        let mut device = Cpu::new();
        device.load(resident, params, adam).expect("it fits");
        let find = |path: &str, device: &Cpu| device.params().find(path).expect("there");
        let (grid, sky) = (find("object.interior.sigma_t", &device), find("sky.radiance", &device));
        for parameter in [grid, sky] {
            let len = device.params().parameters[parameter].shape.len();
            device
                .write(parameter, ArrayKind::Moment(0), &vec![0.5; len])
                .expect("written");
            device
                .write(parameter, ArrayKind::Moment(1), &vec![0.25; len])
                .expect("written");
        }
        let stage = Stage {
            at: 0.5,
            upsample,
            moments: rule,
            spp: 1,
            spp_grad: 1,
        };
        enter(&mut device, &stage, adam).expect("it fits");
        assert_eq!(device.params().parameters[grid].shape.size, sigma);
        let fixed = find("object.interior.sh_coeffs", &device);
        assert_eq!(device.params().parameters[fixed].shape.size, [2; 3]);
        for parameter in [grid, sky] {
            for (moment, expected) in expected.into_iter().enumerate() {
                let found = device.read(parameter, ArrayKind::Moment(moment)).expect("read");
                assert!(found.iter().all(|v| *v == expected), "{rule:?} {upsample}: {found:?}");
            }
        }
    }
}

/// The predicted sums equal what a backpropagation along paths adds to the CPU's memory.
#[test]
fn sums_are_told_as_large_as_they_become() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("scene.json");
    let threads = rayon::current_num_threads();
    // The larger size exceeds the limit for copies on any machine, the smaller one on machines of 2000 threads or
    // more. Each thread then has a cache: 4096 lines of a key and 32 entries.
    let cached = 4096 * (8 + 32 * 8);
    for (size, copies, caches) in [(16, threads, 0), (208, 1, cached * threads)] {
        std::fs::write(&path, scene(size)).expect("writable");
        let scene = prbopt::scene::load(&path).expect("no mistakes");
        let (mut resident, params) = Resident::new(&scene).expect("it can be flattened");
        resident.set_constant_reference([0.5; 3]);
        let shapes = finest(&params, &[], None);
        let mut device = Cpu::default();
        let told = device.sum_bytes(&resident.transport, &shapes);
        let optimizer = Optimizer::Sgd { momentum: 0.0 };
        device.load(resident, params, optimizer).expect("it fits");
        let table = PixelTable::new(device.sensors(), &[0]).expect("few pixels");
        let (batch, keys) = (
            Batch { table, drawn: None },
            Keys {
                objective: [1; 4],
                pass: [2; 4],
            },
        );
        device.render(&batch, keys, 1).expect("renders");
        device.loss(&batch, keys, Loss::L2).expect("compares");
        let before = device.memory();
        device.backpropagate(&batch, keys, 1).expect("backpropagates");
        assert_eq!(device.memory() - before, told, "{size}");
        assert_eq!(told, (8 * size * size * size * copies + caches) as u64);
    }
}
