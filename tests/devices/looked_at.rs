//! Pictures of views whose filter spreads samples over pixels, of textures that are attributes of a mesh, volumes or checkerboards of
//! textures, under a scaled environment map: the same pictures and the same derivatives on both devices.

use std::path::Path;

use prbopt::device::cpu::Cpu;
use prbopt::device::gpu::{DispatchSize, Options};
use prbopt::device::{Batch, Device};
use prbopt::gradcheck::{self, Setup};
use prbopt::kernels::optimizer::Optimizer;
use prbopt::optimize::{RenderSettings, render_view};
use prbopt::scene;
use prbopt::transport::rays::pixel::PixelTable;

use super::gpu;
use super::worlds::{Outcome, compare, gradients, image};

/// A painted sheet, a ball with a volume as texture, a board of textures and a painted lamp under a map, seen through this filter.
fn text(filter: &str, border: bool) -> String {
    let sheet = r#""type": "ply", "filename": "tests/data/meshes/sheet.ply""#;
    let attribute =
        |name: &str, scale: f32| format!(r#"{{"type": "mesh_attribute", "name": "{name}", "scale": {scale}}}"#);
    format!(
        r#"{{"integrator": {{"type": "path", "max_depth": 4}},
            "paper": {{{sheet}, "bsdf": {{"type": "twosided", "b": {{"type": "diffuse", "reflectance": {}}}}}}},
            "tile": {{{sheet}, "to_world": [{{"scale": 0.5}}, {{"translate": [0.4, 0.3, 0.6]}}], "bsdf": {{"type": "diffuse", "reflectance": {}}}}},
            "ball": {{"type": "sphere", "radius": 0.5, "center": [-0.5, -0.3, 0.5], "bsdf": {{"type": "diffuse", "reflectance": {{"type": "volume",
                "volume": {{"type": "gridvolume", "resolution": [3, 4, 2], "value": [0.8, 0.5, 0.3], "to_world": [{{"translate": [-0.5, -0.5, -0.5]}}, {{"scale": 2}}]}}}}}}}},
            "board": {{"type": "rectangle", "to_world": [{{"scale": 0.5}}, {{"translate": [0.6, -0.5, 0.7]}}], "bsdf": {{"type": "diffuse", "reflectance": {{
                "type": "checkerboard", "color0": {{"type": "bitmap", "data": {{"resolution": [3, 2], "value": 0.5}}, "to_uv": [{{"scale": [2, 1, 1]}}]}},
                "color1": {{"type": "checkerboard", "to_uv": [{{"scale": 3}}]}}}}}}}},
            "lamp": {{{sheet}, "flip_normals": true, "to_world": [{{"scale": 0.4}}, {{"translate": [0, 0.5, 2]}}], "emitter": {{"type": "area", "radiance": {}}}}},
            "sky": {{"type": "envmap", "data": {{"resolution": [6, 4], "value": [0.5, 0.6, 0.7]}}, "scale": 0.7}},
            "camera": {{"type": "perspective", "fov": 40, "to_world": [{{"look_at": {{"origin": [0.3, 0.4, 4], "target": [0, 0, 0], "up": [0, 1, 0]}}}}],
                "film": {{"type": "hdrfilm", "width": 19, "height": 18, "sample_border": {border}, "rfilter": {filter}}}}}}}"#,
        attribute("vertex_color", 0.9),
        attribute("face_tint", 1.0),
        attribute("vertex_color", 3.0),
    )
}

/// The first view as it is looked at, the image of a primal pass, and gradients by all parameters.
pub(super) fn outcome(device: &mut dyn Device, text: &str) -> Outcome {
    outcome_by(device, text, |_| true)
}

/// The same with gradients by those parameters alone whose path `sought` accepts.
pub(super) fn outcome_by(device: &mut dyn Device, text: &str, sought: impl Fn(&str) -> bool) -> Outcome {
    let scene = scene::parse(text, Path::new("looked_at.json")).unwrap_or_else(|e| panic!("{e}"));
    let setup = Setup::new(&scene, &gradcheck::Options::default()).expect("the scene is sound");
    let (mut resident, mut params) = (setup.resident, setup.params);
    for parameter in params.parameters.iter_mut().filter(|p| !sought(&p.path)) {
        parameter.tuning = None;
    }
    resident.set_constant_reference([0.3, 0.4, 0.2]);
    let table = PixelTable::new(&resident.sensors, &[0]).expect("few pixels");
    let batch = Batch { table, drawn: None };
    device
        .load(resident, params, Optimizer::Sgd { momentum: 0.0 })
        .expect("a small scene");
    let mut outcome = Outcome::new();
    let look = RenderSettings {
        seed: 4,
        iteration: 0,
        spp: 3,
    };
    let seen = render_view(device, 0, look).expect("it renders");
    outcome.push(("what is looked at".into(), seen.into_flattened()));
    image(device, &batch, "image", &mut outcome);
    gradients(device, &batch, &mut outcome);
    outcome
}

/// The first view of a scene, as [`outcome`] looks at it.
fn view(device: &mut dyn Device, text: &str, spp: u32) -> Vec<[f32; 4]> {
    let scene = scene::parse(text, Path::new("looked_at.json")).unwrap_or_else(|e| panic!("{e}"));
    let setup = Setup::new(&scene, &gradcheck::Options::default()).expect("the scene is sound");
    device
        .load(setup.resident, setup.params, Optimizer::Sgd { momentum: 0.0 })
        .expect("a small scene");
    device.gauge().begin_picture(1);
    let look = RenderSettings {
        seed: 4,
        iteration: 0,
        spp,
    };
    render_view(device, 0, look).expect("it renders")
}

/// With a `max_depth` of 0 pictures are black and transparent, of paths that the CPU follows together or one by one and of a GPU.
#[test]
fn without_edges_pictures_are_black_and_transparent() {
    let mut devices: Vec<Box<dyn Device>> = vec![Box::new(Cpu::new())];
    devices.extend(gpu(Options::default()).map(|gpu| Box::new(gpu) as Box<dyn Device>));
    let text = text(r#"{"type": "box"}"#, false);
    let short = text.replace(r#""max_depth": 4"#, r#""max_depth": 0"#);
    let alone = short.replace(r#""max_depth": 0"#, r#""max_depth": 0, "hide_emitters": true"#);
    for device in &mut devices {
        let name = device.info().name.clone();
        for text in [&short, &alone] {
            let seen = view(device.as_mut(), text, 3);
            assert!(seen.iter().all(|p| *p == [0.0, 0.0, 0.0, 1.0]), "{name}: {:?}", seen[0]);
        }
        let seen = view(device.as_mut(), &text, 3);
        assert!(seen.iter().any(|p| p[3] == 0.0), "{name}: nothing is seen");
    }
}

/// The CPU, and a GPU that follows paths in waves and in dispatches.
fn devices() -> Vec<Box<dyn Device>> {
    let waves = |waves| Options {
        waves,
        dispatch_size: Some(DispatchSize { rays: 100, samples: 2 }),
        ..Options::default()
    };
    let mut devices: Vec<Box<dyn Device>> = vec![Box::new(Cpu::new())];
    devices.extend(
        [true, false]
            .into_iter()
            .filter_map(|on| gpu(waves(on)))
            .map(|gpu| Box::new(gpu) as Box<dyn Device>),
    );
    devices
}

/// The gauge ends at 1, with and without samples spread over pixels.
#[test]
fn a_gauge_is_full_when_a_picture_is_done() {
    for device in &mut devices() {
        for filter in [r#"{"type": "box"}"#, r#"{"type": "gaussian"}"#] {
            view(device.as_mut(), &text(filter, false), 3);
            let name = device.info().name.clone();
            assert_eq!(device.gauge().share(), Some(1.0), "{name}, {filter}");
        }
    }
}

/// A mask of opacity 0.3 before a pane, over half of a picture, and behind them a surface that is nothing: by `path`, alpha is what
/// they leave of each pixel's paths; by `prb` all are opaque. The devices draw the same numbers.
#[test]
fn alpha_looks_through_masks_and_panes() {
    let text = |integrator: &str, more: &str| {
        format!(
            r#"{{"integrator": {{"type": "{integrator}"{more}}}, "lamp": {{"type": "point", "position": [0, 0, 5]}},
                "leaf": {{"type": "rectangle", "to_world": [{{"scale": 2}}, {{"translate": [2, 0, 0]}}],
                    "bsdf": {{"type": "mask", "opacity": 0.3, "nested": {{"type": "diffuse"}}}}}},
                "pane": {{"type": "rectangle", "to_world": [{{"scale": 2}}, {{"translate": [2, 0, -1]}}],
                    "bsdf": {{"type": "thindielectric"}}}},
                "veil": {{"type": "rectangle", "to_world": [{{"scale": 9}}, {{"translate": [0, 0, -2]}}], "bsdf": {{"type": "null"}}}},
                "sky": {{"type": "constant"}},
                "camera": {{"type": "perspective", "fov": 20, "to_world": [{{"look_at": {{"origin": [0, 0, 6], "target": [0, 0, 0], "up": [0, 1, 0]}}}}],
                    "film": {{"type": "hdrfilm", "width": 8, "height": 8, "rfilter": {{"type": "box"}}}}}}}}"#
        )
    };
    let alphas = |device: &mut dyn Device, integrator: &str| -> Vec<f32> {
        let pixels = view(device, &text(integrator, ""), 64);
        pixels.iter().map(|pixel| 1.0 - pixel[3]).collect()
    };
    // What comes straight from the sky is seen, or hidden with the emitters.
    let hidden = |device: &mut dyn Device| view(device, &text("path", r#", "hide_emitters": true"#), 64);
    let expected = alphas(&mut Cpu::new(), "path");
    let seen = view(&mut Cpu::new(), &text("path", ""), 64);
    let without = hidden(&mut Cpu::new());
    for (i, (seen, without)) in seen.iter().zip(&without).enumerate() {
        let straight = seen[0] - without[0];
        assert!(
            if i % 8 < 4 {
                straight == 1.0
            } else {
                straight > 0.4 && straight < 0.9
            },
            "pixel {i}: {straight}"
        );
    }
    for (i, alpha) in expected.iter().enumerate() {
        assert_eq!(*alpha > 0.0, i % 8 >= 4, "pixel {i}");
    }
    // 32 pixels of 64 paths, of which 0.3 + 0.7 * 0.0792 stop: a standard deviation of 0.011. The pane reflects as much at
    // normal incidence.
    let mean = expected.iter().sum::<f32>() / 32.0;
    assert!((mean - 0.355).abs() < 0.04, "{mean}");
    for device in &mut devices() {
        let found = alphas(device.as_mut(), "path");
        let apart = expected
            .iter()
            .zip(&found)
            .filter(|(a, b)| (*a - *b).abs() > 1e-6)
            .count();
        assert!(apart <= 1, "{}: {apart} pixels differ", device.info().name);
        let found = hidden(device.as_mut());
        let apart = without
            .iter()
            .zip(&found)
            .filter(|(a, b)| (a[0] - b[0]).abs() > 1e-4)
            .count();
        assert!(apart <= 1, "{}: {apart} pixels differ", device.info().name);
        let solid = alphas(device.as_mut(), "prb");
        assert!(solid.iter().all(|alpha| *alpha > 0.999), "{solid:?}");
    }
}

#[test]
fn devices_show_the_same() {
    // Sums as in the test above, whose kernels these are.
    let options = Options {
        deterministic: true,
        ..Options::default()
    };
    let Some(mut gpu) = gpu(options) else { return };
    for (filter, border) in [
        (r#"{"type": "gaussian"}"#, false),
        (r#"{"type": "lanczos", "lobes": 2}"#, true),
        (r#"{"type": "tent", "radius": 1.5}"#, false),
    ] {
        let text = text(filter, border);
        let (cpu, gpu) = (outcome(&mut Cpu::new(), &text), outcome(&mut gpu, &text));
        for part in [
            "paper.vertex_color",
            "tile.face_tint",
            "lamp.vertex_color",
            "board.bsdf.reflectance.color0",
            "color1.color0",
            "color1.color1",
            "reflectance.volume",
            "sky.scale",
        ] {
            let (_, gradient) = cpu.iter().find(|(name, _)| name.ends_with(part)).expect(part);
            assert!(gradient.iter().any(|g| *g != 0.0), "{part}");
        }
        compare(&cpu, &gpu).unwrap_or_else(|e| panic!("{filter}: {e}"));
    }
}
