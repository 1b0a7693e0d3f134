//! Light tracing among surfaces: its pictures are those of paths from the camera, for every kind of light, surface and sensor.

use std::path::Path;

use prbopt::device::Device;
use prbopt::device::cpu::Cpu;
use prbopt::kernels::optimizer::Optimizer;
use prbopt::optimize::{RenderSettings, render_view};
use prbopt::resident::{Resident, Transport};
use prbopt::scene;

/// Pixels along both sides of a picture, and along those of the blocks that are compared.
const SIDE: usize = 12;
const BLOCK: usize = 3;
const BATCHES: u64 = 24;
/// Largest standard deviate of a block: 6 would be exceeded by chance once in 10⁶ scenes of normal deviates; sums of few bright
/// paths are skewed.
const BOUND: f64 = 6.0;

const FLOOR: &str = r#""floor": {"type": "rectangle", "to_world": [{"scale": 3}, {"rotate": {"axis": [1, 0, 0], "angle": -90}}],
    "bsdf": {"type": "diffuse", "reflectance": [0.7, 0.5, 0.3]}}"#;
const RING: &str = r#""ring": {"type": "obj", "filename": "ring.obj", "to_world": [{"scale": 0.6}, {"translate": [0, 0.5, 0]}],
    "bsdf": {"type": "twosided", "bsdf": {"type": "roughplastic", "alpha": 0.3}}}"#;

/// A picture of these objects by an integrator.
fn render(integrator: &str, sensor: &str, objects: &str, spp: u32, seed: u64) -> Vec<[f64; 3]> {
    let mut device = load(integrator, sensor, objects);
    let look = RenderSettings {
        seed,
        iteration: 0,
        spp,
    };
    let pixels = render_view(&mut device, 0, look).expect("it renders");
    pixels.iter().map(|p| [0, 1, 2].map(|c| f64::from(p[c]))).collect()
}

fn text(integrator: &str, sensor: &str, objects: &str) -> String {
    format!(
        r#"{{"integrator": {{{integrator}, "max_depth": 4, "rr_depth": 3}}, {objects},
        "camera": {{{sensor}, "to_world": [{{"look_at": {{"origin": [0.4, 3, 3], "target": [0, 0.2, 0], "up": [0, 1, 0]}}}}],
            "film": {{"type": "hdrfilm", "width": {SIDE}, "height": {SIDE}, "rfilter": {{"type": "box"}}}}}}}}"#
    )
}

fn load(integrator: &str, sensor: &str, objects: &str) -> Cpu {
    let path = Path::new("tests/data/peer/scenes/particles.json");
    let scene = scene::parse(&text(integrator, sensor, objects), path).unwrap_or_else(|e| panic!("{e}"));
    let (resident, params) = Resident::new(&scene).expect("it is sound");
    let mut device = Cpu::new();
    device
        .load(resident, params, Optimizer::Sgd { momentum: 0.0 })
        .expect("it fits");
    device
}

/// Means over blocks, and at last over the whole picture, of all colours.
fn blocks(picture: &[[f64; 3]]) -> Vec<f64> {
    let count = SIDE / BLOCK;
    let mut means = vec![0.0; count * count + 1];
    for (i, pixel) in picture.iter().enumerate() {
        let sum: f64 = pixel.iter().sum::<f64>() / 3.0;
        means[i / SIDE / BLOCK * count + i % SIDE / BLOCK] += sum / (BLOCK * BLOCK) as f64;
        means[count * count] += sum / (SIDE * SIDE) as f64;
    }
    means
}

/// Means of batches and the squares of their standard errors.
fn measure(integrator: &str, sensor: &str, objects: &str, spp: u32) -> Vec<[f64; 2]> {
    let batches: Vec<Vec<f64>> = (0..BATCHES)
        .map(|seed| blocks(&render(integrator, sensor, objects, spp, seed)))
        .collect();
    let n = BATCHES as f64;
    (0..batches[0].len())
        .map(|i| {
            let mean = batches.iter().map(|b| b[i]).sum::<f64>() / n;
            let square = batches.iter().map(|b| (b[i] - mean).powi(2)).sum::<f64>();
            [mean, square / (n - 1.0) / n]
        })
        .collect()
}

/// The largest deviate between two measurements; entries without variance agree to the rounding of sums.
fn deviate(a: &[[f64; 2]], b: &[[f64; 2]]) -> f64 {
    let of = |([a, va], [b, vb]): (&[f64; 2], &[f64; 2])| (a - b).abs() / (va + vb + 1e-10 * b * b).sqrt();
    a.iter().zip(b).map(of).fold(0.0, f64::max)
}

/// Compares light tracing with paths from the camera; 8 % more light must be seen.
fn agree(name: &str, sensor: &str, objects: &str) {
    let settings = if name.starts_with("hidden") {
        r#", "hide_emitters": true"#
    } else {
        ""
    };
    let traced = measure(&format!(r#""type": "ptracer"{settings}"#), sensor, objects, 128);
    let seen = measure(&format!(r#""type": "path"{settings}"#), sensor, objects, 64);
    let [mean, square] = traced[traced.len() - 1];
    assert!(
        mean > 1e-3 && square.sqrt() < 0.01 * mean,
        "{name}: {mean} ± {}",
        square.sqrt()
    );
    let worst = deviate(&traced, &seen);
    assert!(worst < BOUND, "{name}: {worst} standard deviations");
    let planted: Vec<[f64; 2]> = traced.iter().map(|[m, v]| [1.08 * m, *v]).collect();
    assert!(deviate(&planted, &seen) > BOUND, "{name}: 8 % more light is not seen");
}

const PINHOLE: &str = r#""type": "perspective", "fov": 45"#;

#[test]
fn every_light_shines_as_paths_find_it() {
    let aim = |x: f64| {
        format!(r#""to_world": [{{"look_at": {{"origin": [{x}, 2.5, 0.5], "target": [0, 0, 0], "up": [0, 0, 1]}}}}]"#)
    };
    let [left, right] = [-1.0, 1.0].map(aim);
    let lights = [
        ("point", r#""l": {"type": "point", "position": [0.5, 2, 0.5], "intensity": [4, 5, 6]}"#.to_string()),
        ("spot", format!(r#""l": {{"type": "spot", {left}, "cutoff_angle": 35, "beam_width": 10, "intensity": 9,
            "texture": {{"type": "checkerboard", "color0": 0.9, "to_uv": [{{"scale": 3}}]}}}}"#)),
        ("projector", format!(r#""l": {{"type": "projector", {right}, "fov": 50, "scale": 2,
            "irradiance": {{"type": "bitmap", "filename": "chart.png"}}}}"#)),
        ("directional", r#""l": {"type": "directional", "direction": [0.4, -1, 0.2], "irradiance": [1, 2, 3]}"#.into()),
        ("constant", r#""l": {"type": "constant", "radiance": [0.3, 0.4, 0.5]}"#.into()),
        ("envmap", r#""l": {"type": "envmap", "filename": "sky.exr", "scale": 0.5}"#.into()),
        ("rectangle", r#""l": {"type": "rectangle", "to_world": [{"rotate": {"axis": [1, 0, 0], "angle": 90}}, {"translate": [0.5, 2, 0]}],
            "emitter": {"type": "area", "radiance": {"type": "bitmap", "filename": "chart.png"}}}"#.into()),
        ("sphere", r#""l": {"type": "sphere", "center": [-0.8, 1.2, 0], "radius": 0.4, "emitter": {"type": "area", "radiance": [3, 2, 1]}}"#.into()),
        ("tube", r#""l": {"type": "cylinder", "p0": [-1, 1, 0], "p1": [-0.6, 1.5, 0], "radius": 0.3, "emitter": {"type": "area", "radiance": 3}}"#.into()),
        ("cube", r#""l": {"type": "cube", "to_world": [{"scale": 0.3}, {"translate": [-0.8, 1, 0]}], "emitter": {"type": "area", "radiance": 2}}"#.into()),
        ("many", format!(r#""a": {{"type": "spot", {left}, "intensity": 4, "sampling_weight": 2}}, "b": {{"type": "constant", "radiance": 0.2}},
            "c": {{"type": "disk", "to_world": [{{"rotate": {{"axis": [1, 0, 0], "angle": 100}}}}, {{"translate": [0, 2, -1]}}],
                "emitter": {{"type": "area", "radiance": 1, "sampling_weight": 0.5}}}}"#)),
    ];
    for (name, light) in lights {
        agree(name, PINHOLE, &format!("{FLOOR}, {RING}, {light}"));
    }
}

/// Scattering at smooth normals, rough glass, coats and turned normals; and light that smooth glass and mirrors send to surfaces
/// that the camera sees.
#[test]
fn every_surface_scatters_as_paths_find_it() {
    let lamp = r#""l": {"type": "rectangle", "to_world": [{"rotate": {"axis": [1, 0, 0], "angle": 90}}, {"translate": [0, 2.6, 0]}],
        "emitter": {"type": "area", "radiance": [3, 4, 5]}}"#;
    let ball =
        |bsdf: &str| format!(r#""ball": {{"type": "sphere", "center": [0, 0.9, 0], "radius": 0.5, "bsdf": {bsdf}}}"#);
    for (name, bsdf) in [
        (
            "rough glass",
            r#"{"type": "roughdielectric", "alpha": 0.4, "int_ior": 1.4}"#,
        ),
        (
            "rough metal",
            r#"{"type": "roughconductor", "material": "Cu", "alpha_u": 0.2, "alpha_v": 0.5}"#,
        ),
        (
            "principled",
            r#"{"type": "principled", "base_color": [0.7, 0.6, 0.4], "spec_trans": 0.5, "roughness": 0.5, "clearcoat": 1}"#,
        ),
        (
            "thin",
            r#"{"type": "principledthin", "diff_trans": 1, "base_color": 0.8}"#,
        ),
        (
            "relief",
            r#"{"type": "normalmap", "normalmap": {"type": "bitmap", "filename": "normals.png", "raw": true},
            "bsdf": {"type": "roughplastic", "alpha": 0.3}}"#,
        ),
        (
            "blend",
            r#"{"type": "blendbsdf", "weight": 0.4, "a": {"type": "diffuse"}, "b": {"type": "roughconductor", "alpha": 0.4}}"#,
        ),
    ] {
        agree(name, PINHOLE, &format!("{FLOOR}, {lamp}, {}", ball(bsdf)));
    }
    // Panes that the camera does not see.
    let floor = r#""type": "perspective", "fov": 25"#;
    let above = r#"[{"scale": 0.8}, {"rotate": {"axis": [1, 0, 0], "angle": -90}}, {"translate": [0, 2, 0]}]"#;
    let beside = r#"[{"scale": 0.8}, {"rotate": {"axis": [0, 1, 0], "angle": 90}}, {"translate": [-1.8, 1, 0]}]"#;
    for (name, place, bsdf) in [
        (
            "glass",
            above,
            r#"{"type": "dielectric", "int_ior": 1.5, "specular_transmittance": [0.9, 0.8, 1]}"#,
        ),
        ("sheet", above, r#"{"type": "thindielectric", "int_ior": 1.8}"#),
        (
            "mask",
            above,
            r#"{"type": "mask", "opacity": 0.6, "b": {"type": "twosided", "bsdf": {"type": "diffuse"}}}"#,
        ),
        ("mirror", beside, r#"{"type": "conductor", "material": "Au"}"#),
    ] {
        let pane = format!(r#""pane": {{"type": "rectangle", "to_world": {place}, "bsdf": {bsdf}}}"#);
        agree(name, floor, &format!("{FLOOR}, {lamp}, {pane}"));
    }
}

#[test]
fn every_sensor_sees_what_paths_show_it() {
    let lights = r#""l": {"type": "sphere", "center": [-0.6, 1.2, 0.4], "radius": 0.4, "emitter": {"type": "area", "radiance": [3, 2, 1]},
        "bsdf": {"type": "diffuse"}}, "sky": {"type": "constant", "radiance": 0.2}"#;
    for (name, sensor) in [
        (
            "thinlens",
            r#""type": "thinlens", "fov": 45, "aperture_radius": 0.3, "focus_distance": 3"#,
        ),
        ("parallel", r#""type": "orthographic", "focal_x": 4"#),
        (
            "clipped",
            r#""type": "perspective", "fov": 50, "near_clip": 3.3, "far_clip": 5"#,
        ),
        (
            "shifted",
            r#""type": "perspective", "fov": 50, "principal_point_offset_x": 0.2"#,
        ),
        ("hidden", PINHOLE),
    ] {
        agree(name, sensor, &format!("{FLOOR}, {RING}, {lights}"));
    }
}

/// A beam along the normals of its source lights what lies below it by its radiance, and nothing else.
#[test]
fn a_beam_lights_its_own_shadow() {
    let beam = r#""l": {"type": "rectangle", "to_world": [{"rotate": {"axis": [1, 0, 0], "angle": 90}}, {"translate": [0, 2, 0]}],
        "emitter": {"type": "directionalarea", "radiance": [3, 2, 1]}}"#;
    let above = r#""type": "orthographic", "focal_x": 20, "near_clip": 3.3"#;
    let picture = render(r#""type": "ptracer""#, above, &format!("{FLOOR}, {beam}"), 4096, 1);
    for (c, expected) in [0.7 * 3.0, 0.5 * 2.0, 0.3 * 1.0].into_iter().enumerate() {
        let mean = picture.iter().map(|p| p[c]).sum::<f64>() / picture.len() as f64;
        let expected = expected / std::f64::consts::PI;
        assert!((mean / expected - 1.0).abs() < 0.02, "{mean} for {expected}");
    }
}

/// A filter that is splatted over pixels sums to what a box does, and threads change no bit.
#[test]
fn splats_keep_the_light_and_the_bits() {
    let objects = format!(r#"{FLOOR}, "l": {{"type": "point", "position": [0, 2, 0], "intensity": 5}}"#);
    let with = |filter: &str, threads: usize| {
        let wide = text(r#""type": "ptracer""#, PINHOLE, &objects).replace(r#"{"type": "box"}"#, filter);
        let scene =
            scene::parse(&wide, Path::new("tests/data/peer/scenes/particles.json")).unwrap_or_else(|e| panic!("{e}"));
        let (resident, params) = Resident::new(&scene).expect("it is sound");
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .expect("a pool");
        pool.install(|| {
            let mut device = Cpu::new();
            device
                .load(resident, params, Optimizer::Sgd { momentum: 0.0 })
                .expect("it fits");
            let look = RenderSettings {
                seed: 3,
                iteration: 0,
                spp: 64,
            };
            render_view(&mut device, 0, look).expect("it renders")
        })
    };
    let mean = |picture: &[[f32; 4]]| picture.iter().map(|p| f64::from(p[1])).sum::<f64>() / picture.len() as f64;
    let (narrow, wide) = (with(r#"{"type": "box"}"#, 1), with(r#"{"type": "gaussian"}"#, 1));
    assert!(
        (mean(&wide) / mean(&narrow) - 1.0).abs() < 0.02,
        "{} {}",
        mean(&wide),
        mean(&narrow)
    );
    assert_eq!(wide, with(r#"{"type": "gaussian"}"#, 3));
}

/// The same paths are followed for a part of the film as for all of it.
#[test]
fn a_crop_window_shows_a_part_of_the_picture() {
    let objects = format!(r#"{FLOOR}, "l": {{"type": "point", "position": [0, 2, 0], "intensity": 5}}"#);
    let (corner, [across, down]) = ([4, 3], [5, 7]);
    let size = format!(r#""width": {SIDE}, "height": {SIDE}"#);
    let crop = format!(
        r#"{size}, "crop_offset_x": {}, "crop_offset_y": {}, "crop_width": {across}, "crop_height": {down}"#,
        corner[0], corner[1]
    );
    let look = RenderSettings {
        seed: 3,
        iteration: 0,
        spp: 16,
    };
    for filter in [r#"{"type": "box"}"#, r#"{"type": "gaussian"}"#] {
        let whole = text(r#""type": "ptracer""#, PINHOLE, &objects).replace(r#"{"type": "box"}"#, filter);
        let [whole, part] = [whole.clone(), whole.replace(&size, &crop)].map(|text| {
            let scene = scene::parse(&text, Path::new("particles.json")).unwrap_or_else(|e| panic!("{e}"));
            let (resident, params) = Resident::new(&scene).expect("it is sound");
            let mut device = Cpu::new();
            device
                .load(resident, params, Optimizer::Sgd { momentum: 0.0 })
                .expect("it fits");
            render_view(&mut device, 0, look).expect("it renders")
        });
        assert_eq!(part.len(), across * down);
        for (i, part) in part.iter().enumerate() {
            let whole = whole[(corner[1] + i / across) * SIDE + corner[0] + i % across];
            for c in 0..3 {
                assert!(
                    (part[c] - whole[c]).abs() <= 1e-5 * whole[c],
                    "{i}: {part:?} for {whole:?}"
                );
            }
        }
        assert!(part.iter().any(|p| p[0] > 0.1), "{filter}: it is dark");
    }
}

/// A sample is one path for each pixel of the film that is rendered, or of the whole film where that is a crop window.
#[test]
fn enlarged_pictures_have_as_many_paths_a_pixel() {
    let size = format!(r#""width": {SIDE}, "height": {SIDE}"#);
    let crop = format!(r#"{size}, "crop_offset_x": 3, "crop_width": 6, "crop_height": 4"#);
    let whole = text(r#""type": "ptracer""#, PINHOLE, FLOOR);
    for (text, is_cropped) in [(whole.clone(), false), (whole.replace(&size, &crop), true)] {
        let mut scene = scene::parse(&text, Path::new("particles.json")).unwrap_or_else(|e| panic!("{e}"));
        let (mut resident, _) = Resident::new(&scene).expect("it is sound");
        assert_eq!(scene.sensors[0].cropped.is_some(), is_cropped);
        for sensor in &mut scene.sensors {
            (sensor.width, sensor.height) = (2 * sensor.width, 2 * sensor.height);
        }
        resident.look_through(&scene.sensors);
        let Transport::Paths(paths) = &resident.transport else {
            panic!("paths among surfaces")
        };
        let tracer = paths.light_tracer.as_ref().expect("light is traced");
        assert_eq!(tracer.film(0, &resident.sensors[0]), [2 * SIDE as u32; 2]);
    }
}

#[test]
fn what_cannot_be_traced_is_refused() {
    let objects = format!(r#"{FLOOR}, "l": {{"type": "point", "position": [0, 2, 0]}}"#);
    let plain = text(r#""type": "ptracer""#, PINHOLE, &objects);
    let run = format!(
        r#"{}, "optimize": {{"parameters": {{"floor.bsdf.reflectance": {{}}}}, "references": {{"type": "constant", "value": 1}}}}}}"#,
        plain.strip_suffix('}').expect("it ends so")
    );
    for (text, expected) in [
        (run, "among surfaces `ptracer` only renders"),
        (
            plain.replace(
                PINHOLE,
                r#""type": "perspective", "fov": 45, "distortion": {"model": "opencv", "k1": 0.1}"#,
            ),
            "light cannot be splatted onto `camera`",
        ),
        (
            plain.replace(r#"{"type": "box"}"#, r#"{"type": "gaussian", "stddev": 5}"#),
            "wider than 16 pixels",
        ),
    ] {
        let Err(found) = scene::parse(&text, Path::new("particles.json")) else {
            panic!("accepted: {text}");
        };
        assert!(found.to_string().contains(expected), "{found}");
    }
}
