//! Light of emissive shapes, against closed forms and against one another.

mod small;

use prbopt::gradcheck::Options;
use prbopt::resident::Resident;
use prbopt::transport::rays::random::{Counter, Pass, pass_key};
use prbopt::transport::rays::sampler::{Sampler, WALK};
use prbopt::transport::scene::area_light::area_pdf;
use prbopt::transport::scene::light::light_sample;
use prbopt::transport::scene::records::SceneView;
use prbopt::transport::scene::shape::intersect;
use prbopt::transport::scene::tables::Tables;
use small::worlds::{SmallWorld, cube, grid, mesh};

/// A camera that looks at the origin from the side, from below objects over the floor.
const ASIDE: &str = r#", "to_world": [{"look_at": {"origin": [0, -5, 2], "target": [0, 0, 0], "up": [0, 0, 1]}}]"#;
/// A camera that looks along -z at the origin.
const AHEAD: &str = r#", "to_world": [{"look_at": {"origin": [0, 0, 5], "target": [0, 0, 0], "up": [0, 1, 0]}}]"#;

/// A diffuse square around the origin that faces +z and reflects a half.
const FLOOR: &str = r#""floor": {"type": "rectangle", "to_world": [{"scale": 0.1}]}"#;

/// An emissive shape.
fn lamp(name: &str, shape: &str, to_world: &str) -> String {
    format!(r#""{name}": {{{shape}, "emitter": {{"type": "area"}}, "to_world": [{to_world}]}}"#)
}

fn lit(name: &'static str, sensor: &'static str, objects: String) -> SmallWorld {
    SmallWorld {
        name,
        sensor,
        objects,
        set: vec![
            ("radiance", vec![2.0, 3.0, 5.0]),
            ("reflectance", vec![0.5]),
            ("lamp.bsdf.reflectance", vec![0.0]),
        ],
        ..SmallWorld::default()
    }
}

fn assert_mean(small: &SmallWorld, expected: f64) {
    let (mean, error) = small.mean(8192, 1);
    assert!(
        (mean - expected).abs() < 4.0 * error + 1e-6,
        "{}: {mean} ± {error}, not {expected}",
        small.name
    );
    assert!(error < 0.01 * expected, "{}: {error} says little", small.name);
}

/// The share of the hemisphere over a point, by cosine, that a rectangle of half edges `a` and `b` covers which hangs
/// parallel over it at the height one.
fn form_factor(a: f64, b: f64) -> f64 {
    let part = |a: f64, b: f64| {
        let length = (1.0 + a * a).sqrt();
        a / length * (b / length).atan()
    };
    4.0 * (part(a, b) + part(b, a)) / (2.0 * std::f64::consts::PI)
}

/// A rectangle, a mesh and the lower side of a box, all of the same form over the floor, within four standard errors (below 1 %).
#[test]
fn a_floor_is_lit_by_the_form_factor() {
    let over = r#"{"scale": [1, 0.6, 1]}, {"rotate": {"axis": [1, 0, 0], "angle": 180}}, {"translate": [0, 0, 1.5]}"#;
    let upright = r#"{"scale": [1, 0.6, 1]}, {"translate": [0, 0, 1.5]}"#;
    let mirrored = r#"{"scale": [1, 0.6, -1]}, {"translate": [0, 0, 1.5]}"#;
    let around = r#"{"scale": [1, 0.6, -0.4]}, {"translate": [0, 0, 1.9]}"#;
    let expected = 0.5 * 3.0 * form_factor(1.0 / 1.5, 0.6 / 1.5);
    for (name, shape, place) in [
        ("rectangle", r#""type": "rectangle""#.to_string(), over),
        ("mesh", mesh("panel"), over),
        ("mirrored mesh", mesh("panel"), mirrored),
        (
            "flipped mesh",
            format!(r#"{}, "flip_normals": true"#, mesh("panel")),
            upright,
        ),
        ("cube", r#""type": "cube""#.to_string(), around),
    ] {
        let objects = format!("{FLOOR}, {}", lamp("lamp", &shape, place));
        assert_mean(&lit(name, ASIDE, objects), expected);
    }
}

/// A turned box shines as the six rectangles that bound it do.
#[test]
fn a_cube_is_six_rectangles() {
    let place =
        r#"{"scale": [0.5, 0.8, 0.3]}, {"rotate": {"axis": [1, 2, 0.5], "angle": 40}}, {"translate": [0.4, 0.3, 1.2]}"#;
    let turns = [("x", 0), ("x", 90), ("x", 180), ("x", 270), ("y", 90), ("y", 270)];
    let faces: Vec<String> = turns
        .iter()
        .map(|(axis, angle)| {
            let direction = if *axis == "x" { "[1, 0, 0]" } else { "[0, 1, 0]" };
            let turn = format!(r#"{{"rotate": {{"axis": {direction}, "angle": {angle}}}}}"#);
            let to_world = format!(r#"{{"translate": [0, 0, 1]}}, {turn}, {place}"#);
            lamp(&format!("{axis}{angle}"), r#""type": "rectangle""#, &to_world)
        })
        .collect();
    let whole = lit(
        "cube",
        ASIDE,
        format!("{FLOOR}, {}", lamp("lamp", r#""type": "cube""#, place)),
    );
    let parts = lit("rectangles", ASIDE, format!("{FLOOR}, {}", faces.join(", ")));
    let [(a, error_a), (b, error_b)] = [whole, parts].map(|small| small.mean(16384, 2));
    let error = error_a.hypot(error_b);
    assert!((a - b).abs() < 4.0 * error, "{a} ± {error_a}, {b} ± {error_b}");
    assert!(error < 0.02 * a, "{error} says little");
}

/// Inside a shape that shines inwards the same radiance comes from all directions.
#[test]
fn a_shining_box_is_a_furnace() {
    for (name, shape) in [
        ("cube", r#""type": "cube""#.to_string()),
        ("octahedron", mesh("octahedron")),
    ] {
        let shape = format!(r#"{shape}, "flip_normals": true"#);
        let around = lamp("lamp", &shape, r#"{"scale": [12, 10, 11]}"#);
        assert_mean(&lit(name, ASIDE, format!("{FLOOR}, {around}")), 0.5 * 3.0);
        let smoke = cube(&format!(r#""sigma_t": {}, "albedo": 1"#, grid([3, 3, 3], 1, "")));
        let mut small = lit(name, AHEAD, format!("{smoke}, {around}"));
        small.integrator = r#", "rr_depth": 1000"#;
        small.set.push(("albedo", vec![1.0]));
        assert_mean(&small, 3.0);
    }
}

/// Only the side of the normal shines.
#[test]
fn backs_are_dark() {
    for (shape, bright) in [
        (mesh("panel"), true),
        (format!(r#"{}, "flip_normals": true"#, mesh("panel")), false),
        (mesh("octahedron"), true),
        (r#""type": "cube""#.to_string(), true),
        (r#""type": "cube", "flip_normals": true"#.to_string(), false),
    ] {
        let (mean, _) = lit("direct view", AHEAD, lamp("lamp", &shape, "")).mean(1, 0);
        assert_eq!(mean, if bright { 2.0 } else { 0.0 }, "{shape}");
    }
}

/// Light that an emissive sphere transmits comes from its inside, which does not shine.
#[test]
fn a_shining_sphere_does_not_light_itself() {
    let place = r#"{"scale": 0.6}, {"translate": [0.1, 0.2, -0.3]}"#;
    let shown = |bsdf: &str, set: Vec<(&'static str, Vec<f32>)>| {
        let shape = format!(r#""type": "sphere", "bsdf": {bsdf}"#);
        let small = SmallWorld {
            integrator: r#", "max_depth": 2"#,
            set: [vec![("radiance", vec![2.0, 3.0, 5.0])], set].concat(),
            ..lit("sphere", AHEAD, lamp("lamp", &shape, place))
        };
        small.mean(2048, 1)
    };
    let (expected, _) = shown(r#"{"type": "diffuse"}"#, vec![("lamp.bsdf.reflectance", vec![0.0])]);
    assert!(expected > 1.0, "the lamp is seen: {expected}");
    for bsdf in [
        r#"{"type": "principledthin", "spec_trans": 0.5, "diff_trans": 1, "roughness": 0.5}"#,
        r#"{"type": "principled", "spec_trans": 0.9}"#,
        r#"{"type": "roughdielectric", "alpha": 0.4}"#,
    ] {
        let (found, _) = shown(bsdf, Vec::new());
        assert!(
            (found - expected).abs() < 1e-6 * expected,
            "{bsdf}: {found}, not {expected}"
        );
    }
}

#[test]
fn shapes_that_cannot_shine_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("line.obj");
    std::fs::write(&path, "v 0 0 0\nv 1 0 0\nv 2 0 0\nf 1 2 3\n").expect("is written");
    let line = format!(r#""type": "obj", "filename": {:?}"#, path.to_string_lossy());
    for (shape, to_world, why) in [
        (r#""type": "sphere""#, r#"{"scale": [1, 2, 1]}"#, "not scaled alike"),
        (&line, "", "an area of zero"),
    ] {
        let scene = lit("refused", AHEAD, lamp("lamp", shape, to_world)).scene("drt");
        let message = Resident::new(&scene).expect_err(why).to_string();
        assert!(message.contains("`lamp`") && message.contains(why), "{message}");
    }
}

/// Points of a mesh are drawn uniformly over its area, however it is cut, and with the pdf that a ray finds which
/// meets them by chance.
#[test]
fn points_of_a_mesh_are_uniform() {
    let setup = lit("panel", AHEAD, lamp("lamp", &mesh("panel"), "")).setup("drt", &Options::default());
    let tables = Tables::default();
    let world = SceneView::new(&setup.resident.scene, setup.resident.transport.paths(), &tables);
    let (p, bins, draws) = ([0.3f32, -0.2, 2.0], 16, 1 << 17);
    let mut counts = vec![0u32; bins * bins];
    for sample in 0..draws {
        let counter = Counter {
            sensor: 0,
            pixel: 0,
            sample,
            block: WALK,
        };
        let mut sampler = Sampler::new(pass_key(3, 0, Pass::Primal), counter);
        let drawn = light_sample(&world, p, &mut sampler).expect("all of it faces the point");
        let q = [0, 1, 2].map(|a| p[a] + drawn.distance * drawn.direction[a]);
        assert!(q[2].abs() < 1e-5);
        let bin = |x: f32| (((x + 1.0) * 0.5 * bins as f32) as usize).min(bins - 1);
        counts[bin(q[1]) * bins + bin(q[0])] += 1;
        assert!((drawn.weight * drawn.pdf - 1.0).abs() < 1e-4);
        let hit = intersect(&world, p, drawn.direction, f32::INFINITY).expect("it is there");
        let pdf = area_pdf(&world, p, drawn.direction, &hit);
        assert!((pdf / drawn.pdf - 1.0).abs() < 1e-4);
    }
    let expected = f64::from(draws) / counts.len() as f64;
    let chi_square: f64 = counts
        .iter()
        .map(|n| (f64::from(*n) - expected).powi(2) / expected)
        .sum();
    // The 1 - 10⁻⁴ quantile with 255 degrees of freedom.
    assert!(chi_square < 345.0, "{chi_square}");
}
