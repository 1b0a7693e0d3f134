//! Light tracing among surfaces: both devices follow the same paths from every light, past every BSDF, onto every sensor.

use std::path::Path;

use prbopt::device::cpu::Cpu;
use prbopt::device::gpu::{DispatchSize, Options};
use prbopt::device::{Batch, Device};
use prbopt::optimize::{RenderSettings, render_view};
use prbopt::resident::Resident;
use prbopt::scene;
use prbopt::transport::rays::pixel::PixelTable;
use prbopt::transport::rays::random::Pass;

use super::materials::balls;
use super::worlds::SGD;
use super::{gpu, keys};

/// Larger differences of an entry, as a fraction of the mean entry, are more than rounding, which each vertex of a path
/// magnifies.
const TOLERANCE: f32 = 1e-3;
/// Share of entries that may differ by more, since rounding sends some paths another way.
const ASTRAY: f32 = 0.01;
/// Largest difference of the sums of entries, as a fraction.
const BIAS: f64 = 1e-3;

const SPP: u32 = 16;

const PINHOLE: &str = r#""type": "perspective", "fov": 45"#;
const GAUSSIAN: &str = r#""width": 24, "height": 18, "rfilter": {"type": "gaussian"}"#;
/// A filter with lobes below zero.
const LANCZOS: &str = r#""width": 24, "height": 18, "rfilter": {"type": "lanczos"}"#;
const FLOOR: &str = r#""floor": {"type": "rectangle", "to_world": [{"scale": 3}, {"rotate": {"axis": [1, 0, 0], "angle": -90}}],
    "bsdf": {"type": "diffuse", "reflectance": [0.7, 0.5, 0.3]}},
    "ring": {"type": "obj", "filename": "ring.obj", "to_world": [{"scale": 0.6}, {"translate": [0, 0.5, 0]}],
    "bsdf": {"type": "twosided", "bsdf": {"type": "roughplastic", "alpha": 0.3}}}"#;
/// A light of each kind but for backgrounds.
const LAMPS: &str = r#""point": {"type": "point", "position": [0.5, 2, 0.5], "intensity": [4, 5, 6]},
    "spot": {"type": "spot", "to_world": [{"look_at": {"origin": [-1, 2.5, 0.5], "target": [0, 0, 0], "up": [0, 0, 1]}}],
        "cutoff_angle": 35, "beam_width": 10, "intensity": 9, "texture": {"type": "checkerboard", "color0": 0.9, "to_uv": [{"scale": 3}]}},
    "projector": {"type": "projector", "to_world": [{"look_at": {"origin": [1, 2.5, 0.5], "target": [0, 0, 0], "up": [0, 0, 1]}}],
        "fov": 50, "scale": 8, "irradiance": {"type": "bitmap", "filename": "chart.png"}},
    "sun": {"type": "directional", "direction": [0.4, -1, 0.2], "irradiance": [1, 2, 3]},
    "panel": {"type": "rectangle", "to_world": [{"scale": 0.4}, {"rotate": {"axis": [1, 0, 0], "angle": 90}}, {"translate": [0, 2.4, -0.8]}],
        "emitter": {"type": "area", "radiance": {"type": "bitmap", "filename": "chart.png"}}},
    "bulb": {"type": "sphere", "center": [-0.8, 1.2, 0], "radius": 0.2, "emitter": {"type": "area", "radiance": [3, 2, 1]},
        "bsdf": {"type": "diffuse"}},
    "tube": {"type": "cylinder", "p0": [-1, 1, 0.5], "p1": [-0.6, 1.5, 0.5], "radius": 0.1, "emitter": {"type": "area", "radiance": 3}},
    "box": {"type": "cube", "to_world": [{"scale": 0.2}, {"translate": [0.9, 1, 0]}], "emitter": {"type": "area", "radiance": 2}},
    "beam": {"type": "disk", "to_world": [{"rotate": {"axis": [1, 0, 0], "angle": 100}}, {"translate": [0, 2, -1]}],
        "emitter": {"type": "directionalarea", "radiance": 2, "sampling_weight": 0.5}}"#;
const SKY: &str = r#""sky": {"type": "constant", "radiance": [0.3, 0.4, 0.5]}"#;

/// Paths of five edges, with roulette from the third on.
const SHORT: &str = r#""max_depth": 5, "rr_depth": 3"#;

fn text(settings: &str, sensor: &str, film: &str, objects: &str) -> String {
    format!(
        r#"{{"integrator": {{"type": "ptracer", {settings}}}, {objects},
        "camera": {{{sensor}, "to_world": [{{"look_at": {{"origin": [0.4, 3, 3], "target": [0, 0.2, 0], "up": [0, 1, 0]}}}}],
            "film": {{"type": "hdrfilm", {film}}}}}}}"#
    )
}

/// A picture of the first view as `render` makes it.
fn picture(device: &mut dyn Device, text: &str) -> Vec<f32> {
    load(device, text);
    let look = RenderSettings {
        seed: 3,
        iteration: 0,
        spp: SPP,
    };
    render_view(device, 0, look).expect("it renders").concat()
}

fn load(device: &mut dyn Device, text: &str) -> Batch {
    let path = Path::new("tests/data/peer/scenes/particles.json");
    let scene = scene::parse(text, path).unwrap_or_else(|e| panic!("{e}"));
    let (resident, params) = Resident::new(&scene).expect("it is sound");
    let views: Vec<u32> = (0..resident.sensors.len() as u32).rev().collect();
    let table = PixelTable::new(&resident.sensors, &views).expect("few pixels");
    device.load(resident, params, SGD).expect("a small scene");
    Batch { table, drawn: None }
}

/// Compares two pictures.
///
/// # Errors
/// How they differ.
fn compare(a: &[f32], b: &[f32]) -> Result<(), String> {
    assert_eq!(a.len(), b.len());
    if a.iter().chain(b).any(|x| !x.is_finite()) {
        return Err("not finite".into());
    }
    let sums = [a, b].map(|picture| picture.iter().map(|x| f64::from(*x)).sum::<f64>());
    let mean = (sums[0] / a.len() as f64) as f32;
    let differs = |(a, b): &(&f32, &f32)| (*a - *b).abs() > TOLERANCE * mean;
    let astray = a.iter().zip(b).filter(differs).count();
    let bias = (sums[1] / sums[0] - 1.0).abs();
    if astray as f32 > ASTRAY * a.len() as f32 || bias > BIAS {
        return Err(format!("{astray} of {} entries differ, and the sum by {bias}", a.len()));
    }
    Ok(())
}

/// Compares both devices; one lit entry in twenty that is 1 % off must be seen.
fn agree(gpu: &mut dyn Device, name: &str, text: &str) {
    let (cpu, gpu) = (picture(&mut Cpu::new(), text), picture(gpu, text));
    compare(&cpu, &gpu).unwrap_or_else(|e| panic!("{name}: {e}"));
    let mut faulty = gpu.clone();
    let lit = faulty.iter_mut().filter(|x| **x > 0.05).step_by(20);
    lit.for_each(|x| *x *= 1.01);
    compare(&cpu, &faulty).expect_err("some entries that are 1 % off");
}

#[test]
fn particles_leave_every_light_alike() {
    let Some(mut gpu) = gpu(Options::default()) else { return };
    let map = r#""map": {"type": "envmap", "filename": "sky.exr", "scale": 0.5}"#;
    for (name, sky) in [("constant", SKY), ("envmap", map)] {
        let objects = format!("{FLOOR}, {LAMPS}, {sky}");
        agree(&mut gpu, name, &text(SHORT, PINHOLE, GAUSSIAN, &objects));
    }
}

#[test]
fn particles_pass_every_material_alike() {
    let Some(mut gpu) = gpu(Options::default()) else { return };
    let film = r#""width": 32, "height": 24, "rfilter": {"type": "box"}"#;
    // A pane and a mirror with normal maps, which turn light once before it is seen.
    let normals =
        r#"{"type": "normalmap", "normalmap": {"type": "bitmap", "filename": "normals.png", "raw": true}, "bsdf": "#;
    let panes = format!(
        r#""pane": {{"type": "rectangle", "bsdf": {normals}{{"type": "dielectric", "int_ior": 1.5}}}},
            "to_world": [{{"scale": 0.2}}, {{"rotate": {{"axis": [1, 0, 0], "angle": -90}}}}, {{"translate": [-0.95, 2.35, 0.45]}}]}},
        "mirror": {{"type": "rectangle", "bsdf": {normals}{{"type": "conductor", "material": "Au"}}}},
            "to_world": [{{"scale": 0.8}}, {{"rotate": {{"axis": [0, 1, 0], "angle": 90}}}}, {{"translate": [-1.8, 1, 0]}}]}}"#
    );
    let objects = format!("{FLOOR}, {}, {panes}, {LAMPS}", balls());
    agree(&mut gpu, "materials", &text(SHORT, PINHOLE, film, &objects));
}

#[test]
fn particles_reach_every_sensor_alike() {
    let Some(mut gpu) = gpu(Options::default()) else { return };
    let lens = r#""type": "thinlens", "fov": 45, "aperture_radius": 0.3, "focus_distance": 3"#;
    let parallel = r#""type": "orthographic", "focal_x": 8, "near_clip": 1.5"#;
    let clipped =
        r#""type": "perspective", "fov": 50, "near_clip": 3.3, "far_clip": 5, "principal_point_offset_x": 0.2"#;
    let crop = r#""width": 32, "height": 24, "crop_offset_x": 7, "crop_offset_y": 5, "crop_width": 16, "crop_height": 11,
        "sample_border": true, "rfilter": {"type": "mitchell"}"#;
    let hidden = r#""max_depth": 5, "hide_emitters": true"#;
    let objects = format!("{FLOOR}, {LAMPS}, {SKY}");
    for (name, settings, sensor, film) in [
        ("lens", SHORT, lens, crop),
        ("parallel", SHORT, parallel, GAUSSIAN),
        ("clipped", SHORT, clipped, GAUSSIAN),
        ("hidden", hidden, PINHOLE, GAUSSIAN),
    ] {
        agree(&mut gpu, name, &text(settings, sensor, film, &objects));
    }
}

/// Paths of equal contributions, each of which a large sum of floats would round: settled on the way, sums agree with whole
/// numbers to 4e-4.
#[test]
fn sums_of_floats_keep_what_many_paths_bring() {
    let film = r#""width": 2, "height": 2, "rfilter": {"type": "box"}"#;
    // The beam of a directional area light, whose section fills the sensor's view from edge to edge.
    let beam = r#""l": {"type": "rectangle", "to_world": [{"scale": 0.5}, {"rotate": {"axis": [1, 0, 0], "angle": 90}}, {"translate": [0, 4, 0]}],
        "emitter": {"type": "directionalarea", "radiance": [1, 2, 3]}}"#;
    let floor =
        r#""floor": {"type": "rectangle", "to_world": [{"scale": 3}, {"rotate": {"axis": [1, 0, 0], "angle": -90}}]}"#;
    let parallel = r#""type": "orthographic", "focal_x": 1"#;
    let text = text(r#""max_depth": 2"#, parallel, film, &format!("{floor}, {beam}"));
    let run = |deterministic| {
        let options = Options {
            deterministic,
            ..Options::default()
        };
        let mut gpu = gpu(options)?;
        load(&mut gpu, &text);
        gpu.gauge().begin_picture(1);
        let look = RenderSettings {
            seed: 3,
            iteration: 0,
            spp: 1 << 18,
        };
        let seen = render_view(&mut gpu, 0, look).expect("it renders").concat();
        assert_eq!(gpu.gauge().share(), Some(1.0));
        Some(seen)
    };
    let Some([floats, whole]) = run(false).zip(run(true)).map(<[_; 2]>::from) else {
        return;
    };
    // The last number of a pixel is no radiance: it is the transmittance.
    for (float, whole) in floats.chunks(4).zip(whole.chunks(4)) {
        for c in 0..3 {
            assert!(
                whole[c] > 0.01 && (float[c] / whole[c] - 1.0).abs() <= 4e-4,
                "{float:?} for {whole:?}"
            );
        }
    }
}

/// Two views of a batch, in the order of its table, by every kind of sum; whole numbers have the same bits however passes are
/// cut.
#[test]
fn particles_are_the_same_however_they_are_summed() {
    let second = r#""second": {"type": "perspective", "to_world": [{"look_at": {"origin": [2, 2, 2], "target": [0, 0, 0], "up": [0, 1, 0]}}],
        "film": {"type": "hdrfilm", "width": 9, "height": 14, "rfilter": {"type": "lanczos"}}}"#;
    let text = text(SHORT, PINHOLE, GAUSSIAN, &format!("{FLOOR}, {LAMPS}, {SKY}, {second}"));
    let run = |device: &mut dyn Device| {
        let batch = load(device, &text);
        device.render(&batch, keys(Pass::Primal), SPP).expect("renders");
        device.image().expect("an image").concat()
    };
    let cpu = run(&mut Cpu::new());
    let small = Some(DispatchSize { rays: 77, samples: 3 });
    let mut whole = None;
    for (deterministic, float_atomics, wide_atomics, dispatch_size) in [
        (false, true, true, None),
        (false, true, true, small),
        (true, true, true, None),
        (true, true, true, small),
        (true, true, false, small),
        (false, false, false, None),
    ] {
        let options = Options {
            deterministic,
            float_atomics,
            wide_atomics,
            dispatch_size,
            ..Options::default()
        };
        let Some(mut gpu) = gpu(options) else { return };
        let image = run(&mut gpu);
        compare(&cpu, &image).unwrap_or_else(|e| panic!("{options:?}: {e}"));
        if deterministic || !float_atomics {
            let whole = whole.get_or_insert_with(|| image.clone());
            assert!(*whole == image, "{options:?}: other bits");
        }
    }
}

/// A narrow spot, beside which the lobes of a filter make pixels negative.
fn spot(intensity: &str) -> String {
    format!(
        r#""spot": {{"type": "spot", "to_world": [{{"look_at": {{"origin": [-1, 2.5, 0.5], "target": [0, 0, 0], "up": [0, 0, 1]}}}}],
            "cutoff_angle": 8, "beam_width": 8, "intensity": {intensity}}}"#
    )
}

/// In an open world no path has sixty edges, so that a higher limit only changes after how many paths sums are settled.
#[test]
fn sums_are_the_same_however_often_they_are_settled() {
    let options = Options {
        deterministic: true,
        ..Options::default()
    };
    let Some(mut gpu) = gpu(options) else { return };
    let objects = format!("{FLOOR}, {}", spot("4e6"));
    let often = r#""max_depth": 200000, "rr_depth": 200000"#;
    let often = text(often, PINHOLE, LANCZOS, &objects);
    let once = often.replace("200000", "60");
    let cpu = picture(&mut Cpu::new(), &once);
    let [once, often] = [once, often].map(|text| picture(&mut gpu, &text));
    compare(&cpu, &once).unwrap_or_else(|e| panic!("{e}"));
    assert!(
        once.iter().any(|x| *x < 0.0) && once.iter().any(|x| *x > 1e5),
        "{once:?}"
    );
    assert!(once == often, "other bits");
}

/// Light of any brightness is summed in whole numbers; a contribution beyond all ranges makes pixels NaN.
#[test]
fn dim_and_bright_light_is_summed() {
    let options = Options {
        deterministic: true,
        ..Options::default()
    };
    let Some(mut gpu) = gpu(options) else { return };
    let lit = |intensity: &str| text(SHORT, PINHOLE, LANCZOS, &format!("{FLOOR}, {}", spot(intensity)));
    for intensity in ["1e-9", "1e-4", "1", "1e9"] {
        let text = lit(intensity);
        let (cpu, gpu) = (picture(&mut Cpu::new(), &text), picture(&mut gpu, &text));
        let below = [&cpu, &gpu].map(|picture| picture.iter().filter(|x| **x < 0.0).count());
        assert!(below[0] > 0 && below[0].abs_diff(below[1]) <= below[0] / 4, "{below:?}");
        compare(&cpu, &gpu).unwrap_or_else(|e| panic!("{intensity}: {e}"));
    }
    let beyond = picture(&mut gpu, &lit("[1e20, 0, 0]"));
    assert!(beyond.iter().any(|x| x.is_nan()), "no pixel is spoiled");
}

/// Light tracing refuses single pixels, since light arrives anywhere on a film, and it has no derivatives.
#[test]
fn particles_are_refused_alike() {
    let Some(mut gpu) = gpu(Options::default()) else { return };
    let text = text(SHORT, PINHOLE, GAUSSIAN, &format!("{FLOOR}, {SKY}"));
    for device in [&mut Cpu::new() as &mut dyn Device, &mut gpu] {
        let whole = load(device, &text);
        let drawn = Batch {
            drawn: Some(7),
            ..whole.clone()
        };
        let refused = device.render(&drawn, keys(Pass::Primal), 1).expect_err("single pixels");
        assert!(refused.to_string().contains("look at whole views"), "{refused}");
        let refused = device.backpropagate(&whole, keys(Pass::Adjoint), 1);
        let refused = refused.expect_err("derivatives").to_string();
        assert!(refused.contains("only renders"), "{refused}");
    }
}
