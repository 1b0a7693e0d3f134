//! Light tracing through a slab of glass, and through a cube of varying index: radiance on the film, derivatives against finite
//! differences and forward mode, the same bits for any number of threads, the solid, and what is refused.

mod commands;
mod cube;
mod devices;
#[path = "../devices/gpu.rs"]
mod gpu;

use std::path::Path;

use prbopt::device::cpu::Cpu;
use prbopt::device::{ArrayKind, Batch, Device, Keys};
use prbopt::gradcheck::forward::forward;
use prbopt::gradcheck::{Options, Setup, check};
use prbopt::kernels::loss::Loss;
use prbopt::kernels::optimizer::Optimizer;
use prbopt::resident::solid::solid;
use prbopt::resident::{Resident, Transport};
use prbopt::scene::{self, Scene};
use prbopt::transport::rays::camera::camera_ray;
use prbopt::transport::rays::pixel::PixelTable;
use prbopt::transport::rays::random::{Counter, random_uniform};
use prbopt::transport::rays::sensor::sensor_ray;

const UPRIGHT: &str = r#"{"type": "rectangle", "to_world": [{"translate": [0, 0, -5]}],
    "emitter": {"type": "directionalarea", "radiance": [3, 2, 1]}}"#;
/// Light whose angle of incidence is about 13 degrees.
const TILTED: &str = r#"{"type": "rectangle", "to_world": [{"look_at": {"origin": [0.8, -0.6, -4], "target": [0, 0, 0], "up": [0, 1, 0]}}],
    "emitter": {"type": "directionalarea", "radiance": [3, 2, 1]}}"#;
const PINHOLE: &str = r#"{"type": "perspective", "fov": 50, "near_clip": 0.1,
    "to_world": [{"look_at": {"origin": [0.3, -0.2, 1.4], "target": [0, 0.1, 4], "up": [0, 1, 0]}}],
    "film": {"type": "hdrfilm", "width": 24, "height": 20, "rfilter": {"type": "gaussian"}}}"#;
const PARALLEL: &str = r#"{"type": "orthographic", "near_clip": 0.1,
    "to_world": [{"scale": [1.5, 1.5, 1]}, {"look_at": {"origin": [0, 0, 1], "target": [0, 0, 4], "up": [0, 1, 0]}}],
    "film": {"type": "hdrfilm", "width": 20, "height": 20, "rfilter": {"type": "mitchell"}}}"#;
const BITMAP: &str = r#"{"type": "bitmap", "wrap_mode": "clamp", "data": {"resolution": [7, 5], "value": 0}}"#;
const GLASS: &str =
    r#"{"type": "dielectric", "int_ior": 1.5, "ext_ior": 1, "specular_reflectance": 0, "specular_transmittance": 0.9}"#;
const SCREEN: &str = r#"{"type": "rectangle", "to_world": [{"scale": 4}, {"look_at": {"origin": [0, 0, 4], "target": [0, 0, 0], "up": [0, 1, 0]}}],
    "bsdf": {"type": "diffuse", "reflectance": 0.5}}"#;

fn text(light: &str, camera: &str) -> String {
    format!(
        r#"{{"type": "scene", "integrator": {{"type": "ptracer", "max_depth": 4}}, "light": {light},
        "slab": {{"type": "heightfield", "thickness": 0.4, "heights": {BITMAP}, "bsdf": {GLASS}}},
        "screen": {SCREEN}, "camera": {camera}}}"#
    )
}

fn parse(text: &str) -> Scene {
    scene::parse(text, Path::new("caustic.json")).unwrap_or_else(|mistakes| panic!("{mistakes}"))
}

/// A scene of random heights within ±0.06.
fn setup(light: &str, camera: &str) -> Setup {
    let scene = parse(&text(light, camera));
    let mut setup = Setup::new(&scene, &Options::default()).expect("can be made ready");
    setup.spp = 3;
    let heights = setup.params.find("slab.heights").expect("there");
    for (i, value) in setup.params.parameters[heights].values.iter_mut().enumerate() {
        let counter = Counter {
            sensor: 0,
            pixel: i as u32,
            sample: 0,
            block: 0,
        };
        *value = 0.12 * (random_uniform([5, 6, 7, 8], counter)[0] - 0.5);
    }
    setup
}

fn worlds() -> [(&'static str, Setup); 3] {
    [
        ("upright", setup(UPRIGHT, PINHOLE)),
        ("tilted", setup(TILTED, PINHOLE)),
        ("tilted, parallel", setup(TILTED, PARALLEL)),
    ]
}

/// `check` passes: derivatives in f64 against finite differences, the device's against those in f64; losses agree to 1e-4.
fn derivatives_agree(name: &str, setup: &Setup, options: &Options) {
    let outcome = check(setup, Some(&mut Cpu::new()), options).expect("checked");
    assert!(outcome.report.parameters.iter().all(|p| p.largest > 0.0), "{name}");
    assert!(outcome.report.passed, "{name}: {:#?}", outcome.report.parameters);
    for loss in &outcome.report.losses {
        let device = loss.device.expect("there was a device");
        assert!(
            (device - loss.value).abs() < 1e-4 * (1.0 + loss.value.abs()),
            "{name}: {loss:?}"
        );
    }
}

/// Forward mode (dual numbers) against finite differences pixel by pixel, to 1e-5 of the largest, and its mean against the
/// adjoint, to 1e-6.
fn forward_agrees(name: &str, setup: &Setup, path: &str, direction: &[f64], step: f64) {
    let parameter = setup.params.find(path).expect("there");
    let found = forward(setup, parameter, direction, Some(step)).expect("possible");
    assert!(
        found.largest > 0.0 && found.difference < 1e-5 * found.largest,
        "{name}: {} of {}",
        found.difference,
        found.largest
    );
    let outcome = check(setup, None, &Options::default()).expect("checked");
    // Gradients of the mean, which is the first weighting.
    let backward: f64 = outcome.gradients[0][0].iter().zip(direction).map(|(g, d)| g * d).sum();
    let pixels = found.slopes.iter().flatten().flatten().sum::<f64>() / (3.0 * found.slopes.len() as f64);
    assert!(
        (backward - pixels).abs() < 1e-6 * backward.abs(),
        "{name}: {backward} {pixels}"
    );
}

/// Image and gradient have the same bits with one thread and with three.
fn has_bits_of_one_thread(setup: &Setup, path: &str) {
    let parameter = setup.params.find(path).expect("there");
    let run = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .expect("threads");
        pool.install(|| {
            let mut device = loaded(setup);
            device.render(&setup.batch, setup.keys, 5).expect("renders");
            let image = device.image().expect("an image");
            device.loss(&setup.batch, setup.keys, Loss::L2).expect("compares");
            device.backpropagate(&setup.batch, setup.keys, 5).expect("sends");
            let gradient = device.read(parameter, ArrayKind::Gradient).expect("a gradient");
            let bits = |all: &[f32]| all.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
            (bits(image.as_flattened()), bits(&gradient))
        })
    };
    let (one, three) = (run(1), run(3));
    assert!(one.1.iter().any(|bits| *bits != 0));
    assert_eq!(one, three);
}

#[test]
fn derivatives_by_heights_are_those_of_what_arrives() {
    // Light that only moves on the film leaves its mean as it is, so that derivatives of the mean are small; and the second
    // derivative of filters jumps.
    let options = Options {
        entries: 12,
        tolerance: 1e-5,
        ..Options::default()
    };
    for (name, setup) in worlds() {
        derivatives_agree(name, &setup, &options);
    }
}

#[test]
fn forward_mode_agrees() {
    let direction: Vec<f64> = (0..35).map(|i| f64::from(i % 4) - 1.5).collect();
    for (name, setup) in worlds() {
        forward_agrees(name, &setup, "slab.heights", &direction, 1e-5);
    }
}

fn loaded(setup: &Setup) -> Cpu {
    let mut device = Cpu::new();
    let sgd = Optimizer::Sgd { momentum: 0.0 };
    device
        .load(setup.resident.clone(), setup.params.clone(), sgd)
        .expect("it fits");
    device
}

#[test]
fn threads_change_no_bit() {
    let (_, setup) = &worlds()[1];
    has_bits_of_one_thread(setup, "slab.heights");
}

/// Behind a flat slab the screen is lit as by the light alone, less what both faces reflect, to 1 %: radiance is E ρ / π with
/// E = L t₁ t₂ τ².
#[test]
fn a_flat_slab_passes_what_it_does_not_reflect() {
    let scene = parse(&text(UPRIGHT, PARALLEL));
    let setup = Setup::new(&scene, &Options::default()).expect("ready");
    let mut device = loaded(&setup);
    device.render(&setup.batch, setup.keys, 400).expect("renders");
    let image = device.image().expect("an image");
    let passed = 1.0 - 0.2f32.powi(2);
    for (c, radiance) in [3.0f32, 2.0, 1.0].into_iter().enumerate() {
        let expected = radiance * passed * passed * 0.81 * 0.5 / std::f32::consts::PI;
        // The film shows [-1.5, 1.5]², light falls on [-1, 1]².
        let inner = (8..12).flat_map(|y| (8..12).map(move |x| y * 20 + x));
        let mean = inner.map(|i| image[i][c]).sum::<f32>() / 16.0;
        assert!((mean / expected - 1.0).abs() < 0.01, "{mean} {expected}");
        assert!(image[0][c].abs() < 1e-6, "{}", image[0][c]);
    }
}

/// The film's map of the screen agrees with the sensor's rays: the ray through the pixel of a point meets that point, to 1e-4.
#[test]
fn films_are_seen_by_the_sensors_rays() {
    for camera in [PINHOLE, PARALLEL] {
        let scene = parse(&text(UPRIGHT, camera));
        let (resident, _) = Resident::new(&scene).expect("sound");
        let Transport::Light(light) = &resident.transport else {
            panic!("light is traced")
        };
        let sensor = &resident.sensors[0];
        let film = light.film(0, sensor);
        for [a, b] in [[0.0f32, 0.0], [0.1, -0.2], [-0.15, 0.05]] {
            let seen = film.rows.map(|row| row[0] * a + row[1] * b + row[2]);
            let (x, y) = (seen[0] / seen[2], seen[1] / seen[2]);
            let ray = match camera == PINHOLE {
                true => camera_ray(sensor, x, y),
                false => sensor_ray(sensor, x, y, [0.0; 4]),
            }
            .expect("a ray");
            let t = (4.0 - ray.origin[2]) / ray.direction[2];
            let found = [0, 1].map(|axis| ray.origin[axis] + t * ray.direction[axis]);
            let world = scene
                .world
                .surfaces
                .iter()
                .find(|s| s.name == "screen")
                .expect("there")
                .to_world;
            let expected = world.transform_point3(glam::Vec3::new(a, b, 0.0));
            assert!(
                (found[0] - expected.x).abs() < 1e-4 && (found[1] - expected.y).abs() < 1e-4,
                "{found:?} {expected}"
            );
        }
    }
}

/// The loss over means: pictures that differ by a factor have none, and against a flat picture it is that of the formula, to
/// 1e-5.
#[test]
fn pictures_are_compared_over_their_means() {
    let (_, mut setup) = worlds().into_iter().next().expect("three");
    let pixels = setup.batch.pixels() as usize;
    let rendered = {
        let mut device = loaded(&setup);
        device.render(&setup.batch, setup.keys, 3).expect("renders");
        device.image().expect("an image")
    };
    let sensor = setup.batch.table.sensors[0] as usize;
    let scaled = rendered.iter().map(|p| p.map(|x| 2.5 * x)).collect();
    setup.resident.set_references([(sensor, scaled)]);
    let mut device = loaded(&setup);
    device.render(&setup.batch, setup.keys, 3).expect("renders");
    let alike = device
        .loss(&setup.batch, setup.keys, Loss::NormalizedL2)
        .expect("compares");
    assert!(alike.loss < 1e-10 && alike.mse > 0.0, "{alike:?}");
    let flat = vec![[0.5; 4]; pixels];
    setup.resident.set_references([(sensor, flat)]);
    let mut device = loaded(&setup);
    device.render(&setup.batch, setup.keys, 3).expect("renders");
    let found = device
        .loss(&setup.batch, setup.keys, Loss::NormalizedL2)
        .expect("compares")
        .loss;
    let all: Vec<f64> = rendered.iter().flat_map(|p| p[..3].to_vec()).map(f64::from).collect();
    let mean = all.iter().sum::<f64>() / all.len() as f64;
    let expected = all.iter().map(|x| (x / mean - 1.0).powi(2)).sum::<f64>() / all.len() as f64;
    assert!((found / expected - 1.0).abs() < 1e-5, "{found} {expected}");
}

/// The transform of a `to_world` in JSON, or that of none.
fn placed(to_world: &str) -> glam::Affine3A {
    let text = format!(
        r#"{{"type": "scene", "shape": {{"type": "rectangle", {to_world} "emitter": {{"type": "area"}}}},
            "camera": {{"type": "perspective"}}}}"#
    );
    parse(&text).world.surfaces[0].to_world
}

/// Each edge is run along once in either direction, no two vertices coincide, and the volume is positive (faces look outwards)
/// and about the slab's.
#[test]
fn the_solid_is_closed() {
    for mirrored in [
        "",
        r#""to_world": [{"scale": 3}, {"translate": [1, 2, 3]}],"#,
        r#""to_world": [{"scale": [-2, 2, 2]}],"#,
    ] {
        let scene = parse(&text(UPRIGHT, PINHOLE));
        let mut slab = scene.slab().expect("there").clone();
        slab.to_world = placed(mirrored);
        let heights: Vec<f32> = (0..35).map(|i| 0.01 * ((i * 7) % 11) as f32).collect();
        let mesh = solid(&slab, &heights, [7, 5]);
        let mut edges = std::collections::HashMap::new();
        for t in &mesh.triangles {
            for k in 0..3 {
                *edges.entry((t[k], t[(k + 1) % 3])).or_insert(0) += 1;
            }
        }
        for (&(a, b), &count) in &edges {
            assert_eq!((count, edges.get(&(b, a))), (1, Some(&1)), "edge {a} {b}");
        }
        // Also by position: no two vertices lie in one place.
        let mut places: Vec<_> = mesh.positions.iter().map(|p| p.map(f32::to_bits)).collect();
        places.sort_unstable();
        places.dedup();
        assert_eq!(places.len(), mesh.positions.len());
        let corner = |v: u32| glam::DVec3::from_array(mesh.positions[v as usize].map(f64::from));
        let volume: f64 = mesh
            .triangles
            .iter()
            .map(|t| corner(t[0]).dot(corner(t[1]).cross(corner(t[2]))) / 6.0)
            .sum();
        let scale = f64::from(slab.to_world.matrix3.determinant().abs());
        assert!(volume > 1.6 * scale && volume < 2.0 * scale, "{volume}");
    }
}

/// Each scene that cannot be traced is refused with a sentence.
#[test]
fn what_cannot_be_traced_is_refused() {
    let good = text(UPRIGHT, PINHOLE);
    let run = |parameters: &str| {
        let block = format!(
            r#", "optimize": {{"iterations": 1, "parameters": {parameters}, "references": {{"type": "figure", "name": "ring"}}}}}}"#
        );
        format!("{}{block}", good.strip_suffix('}').expect("an object"))
    };
    let changed = |from: &str, to: &str| {
        assert!(good.contains(from), "{from}");
        good.replace(from, to)
    };
    let cases = [
        (
            changed("1.5", "0.9"),
            "expected more than 1: exchange `int_ior` and `ext_ior`",
        ),
        (
            changed(r#""specular_reflectance": 0"#, r#""specular_reflectance": 1"#),
            "only what passes it is traced",
        ),
        (changed(r#""wrap_mode": "clamp", "#, ""), "give the `wrap_mode` `clamp`"),
        (
            changed("\"ptracer\", \"max_depth\": 4", "\"ptracer\", \"max_depth\": 3"),
            "paths through the slab to the sensor have 4 edges",
        ),
        (
            changed(r#"{"type": "ptracer", "max_depth": 4}"#, r#"{"type": "path"}"#),
            "add the integrator `ptracer`",
        ),
        (
            changed("directionalarea", "area"),
            "`ptracer` sees 0 `directionalarea` lights",
        ),
        (
            run(r#"{"slab.heights": {}}"#),
            "lets it cross the slab's other side at -0.4",
        ),
        (
            run(r#"{"slab.heights": {"bounds": [-0.1, 0.1]}, "screen.bsdf.reflectance": {}}"#),
            "cannot be optimised by `ptracer`, only `slab.heights`",
        ),
        (
            run(r#"{"slab.heights": {"bounds": [-0.1, 0.1]}}"#).replace(r#""gaussian""#, r#""box""#),
            "has no slope for light that moves",
        ),
    ];
    for (text, expected) in cases {
        let Err(found) = scene::parse(&text, Path::new("caustic.json")) else {
            panic!("accepted, expected: {expected}")
        };
        let found = found.to_string();
        assert!(found.contains(expected), "{found}\nexpected: {expected}");
    }
    let cases = [
        (
            changed(r#""value": 0}"#, r#""value": -0.5}"#),
            "beyond the slab's other side at -0.4",
        ),
        (changed("[3, 2, 1]", "[0, 0, 0]"), "no light leaves `light`"),
        (
            changed("[0, 0, -5]", "[0, 0, 5]"),
            "does not reach the flat side of `slab`",
        ),
        (
            changed(r#""origin": [0, 0, 4]"#, r#""origin": [0, 0, -4]"#),
            "does not reach the screen",
        ),
        (
            changed(r#""origin": [0.3, -0.2, 1.4]"#, r#""origin": [0.3, -0.2, 5.4]"#),
            "looks at the dark side",
        ),
        (
            changed(r#""origin": [0.3, -0.2, 1.4]"#, r#""origin": [0.3, -0.2, -1.4]"#),
            "may stand between",
        ),
        (
            changed(
                r#""origin": [0, 0, 4], "target": [0, 0, 0]"#,
                r#""origin": [0, 0, 4], "target": [0, 0, 9]"#,
            ),
            "turns its back",
        ),
    ];
    for (text, expected) in cases {
        let found = Resident::new(&parse(&text)).expect_err(expected).to_string();
        assert!(found.contains(expected), "{found}\nexpected: {expected}");
    }
}

/// The written form of a scene gives the same scene.
#[test]
fn a_slab_comes_back_from_its_written_form() {
    let scene = parse(&text(TILTED, PINHOLE));
    let again = parse(&scene.resolved.to_string());
    assert_eq!(scene.resolved, again.resolved);
    let [a, b] = [&scene, &again].map(|s| s.slab().expect("there"));
    assert_eq!(
        (a.eta, a.thickness, a.transmittance),
        (b.eta, b.thickness, b.transmittance)
    );
}

/// Batches of pixels that are drawn are refused: light from a lamp falls on whole films.
#[test]
fn drawn_pixels_are_refused() {
    let (_, setup) = &worlds()[0];
    let batch = Batch {
        table: PixelTable::new(&setup.resident.sensors, &[0]).expect("few"),
        drawn: Some(4),
    };
    let keys: Keys = setup.keys;
    let error = loaded(setup).render(&batch, keys, 1).expect_err("refused");
    assert!(error.to_string().contains("look at whole views"), "{error}");
}
