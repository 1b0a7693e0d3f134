//! Derivatives by what the command line names: what moves, Mitsuba's names, tangents; what is refused, and in which words.

use std::fs;

use prbopt::io::{Image, image, npy};
use serde_json::{Value, json};

use super::Place;

/// A painted panel that fills the view under a sky, beside a ball of glass, a coin, a board and a lamp that the camera does not see.
fn world() -> Value {
    let mesh = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/meshes/panel.obj");
    let aside = |x: f64| json!([{"scale": 0.1}, {"translate": [x, 0, -9]}]);
    json!({
        "integrator": {"type": "prb", "max_depth": 2},
        "camera": {
            "type": "perspective", "fov": 30,
            "to_world": [{"look_at": {"origin": [0, 0, 4], "target": [0, 0, 0], "up": [0, 1, 0]}}],
            "film": {"type": "hdrfilm", "width": 8, "height": 8, "rfilter": {"type": "box"}}
        },
        "panel": {
            "type": "obj", "filename": mesh, "face_normals": true, "to_world": [{"scale": 2}],
            "paint": {"type": "diffuse", "reflectance": {"type": "bitmap", "filename": "paint.exr"}}
        },
        "ball": {"type": "sphere", "to_world": aside(0.0), "bsdf": {"type": "dielectric"}},
        "coin": {
            "type": "rectangle", "to_world": aside(1.0),
            "bsdf": {
                "type": "normalmap", "normalmap": {"type": "bitmap", "data": {"resolution": [4, 4], "coin": 3}},
                "metal": {"type": "conductor"}
            }
        },
        "board": {
            "type": "rectangle", "to_world": aside(2.0),
            "both": {
                "type": "twosided",
                "front": {"type": "diffuse", "reflectance": 0.2},
                "back": {"type": "diffuse", "reflectance": 0.7}
            }
        },
        "lamp": {"type": "point", "position": [0, 0, -9], "intensity": 0},
        "sky": {"type": "constant"}
    })
}

/// A folder with `mirrors.json`, the whole world, and `world.json`, without ball, coin and board; `paint` gives the texels of the
/// picture.
fn place(paint: impl Fn(usize) -> f32) -> Place {
    let place = Place::new();
    let picture = Image {
        width: 4,
        height: 4,
        channels: 3,
        data: (0..48).map(paint).collect(),
    };
    image::write_exr(&place.path("paint.exr"), &picture).expect("writable");
    let adjoint = Image {
        width: 8,
        height: 8,
        channels: 3,
        data: vec![1.0 / 192.0; 192],
    };
    image::write_exr(&place.path("mean.exr"), &adjoint).expect("writable");
    place.write("mirrors.json", &world());
    let mut plain = world();
    let objects = plain.as_object_mut().expect("an object");
    objects.retain(|name, _| !["ball", "coin", "board"].contains(&name.as_str()));
    place.write("world.json", &plain);
    place
}

fn shades(i: usize) -> f32 {
    (i * 7 % 10) as f32 / 10.0
}

/// The derivative image that `prbopt gradient` writes.
fn forward(place: &Place, parameter: &str, tangent: &str) -> Vec<f32> {
    let flags = [
        "gradient",
        "world.json",
        "--parameter",
        parameter,
        "--tangent",
        tangent,
        "-o",
        "g",
    ];
    place.expect(0, &flags);
    let file = place.path(&format!("g/{parameter}_tangent.exr"));
    image::read(&file).expect("an image").0.data
}

fn mean(values: &[f32]) -> f64 {
    values.iter().map(|v| f64::from(*v)).sum::<f64>() / values.len() as f64
}

/// The tangent of a texture can be an image, as `backpropagate` writes it: along its own values it is the derivative of
/// `--scale`.
#[test]
fn an_image_is_a_tangent() {
    let place = place(shades);
    let name = "panel.paint.reflectance";
    let along = forward(&place, name, "paint.exr");
    place.expect(
        0,
        &["gradient", "world.json", "--parameter", name, "--scale", "-o", "g"],
    );
    let scaled = image::read(&place.path(&format!("g/{name}_scale.exr")))
        .expect("an image")
        .0
        .data;
    assert_eq!(along.len(), scaled.len());
    assert!(scaled.iter().any(|v| *v > 0.1) && along.iter().zip(&scaled).all(|(a, b)| (a - b).abs() < 1e-6));
    let (_, told) = place.expect(
        2,
        &[
            "gradient",
            "world.json",
            "--parameter",
            name,
            "--tangent",
            "mean.exr",
            "-o",
            "g",
        ],
    );
    assert!(
        told.contains("has 8 × 8 texels, but panel.paint.reflectance has 4 × 4"),
        "{told}"
    );
}

/// Vertices that move alike have the derivative of the translated shape, to 1e-5, by either of their names, forwards and
/// backwards, without being declared in the scene.
#[test]
fn what_moves_is_named_on_the_command_line() {
    let place = place(shades);
    let whole = forward(&place, "panel.to_world.translate", "1,0,0");
    assert!(whole.iter().any(|v| v.abs() > 0.01), "{whole:?}");
    for name in ["panel.vertex_positions", "panel.positions"] {
        let moved = forward(&place, name, "1,0,0");
        for (a, b) in moved.iter().zip(&whole) {
            assert!((a - b).abs() <= 1e-5 * b.abs().max(0.01), "{name}: {a} and {b}");
        }
        let flags = [
            "backpropagate",
            "world.json",
            "--parameter",
            name,
            "--adjoint",
            "mean.exr",
            "--device",
            "cpu",
            "-o",
            "g",
        ];
        let (_, told) = place.expect(0, &flags);
        assert_eq!(
            told.matches("silhouettes and the borders of shadows").count(),
            1,
            "{told}"
        );
        let gradient = npy::read(&place.path("g/panel.vertex_positions.npy"))
            .expect("numbers")
            .data;
        let along_x: f64 = gradient.chunks(3).map(|v| f64::from(v[0])).sum();
        assert!(
            (along_x - mean(&moved)).abs() < 1e-4 * mean(&moved).abs().max(0.01),
            "{along_x}"
        );
        // The same tangent, as a file.
        let one_each: Vec<f64> = gradient
            .iter()
            .zip([1.0, 0.0, 0.0].iter().cycle())
            .map(|(_, t)| *t)
            .collect();
        place.write("tangent.json", &json!({ "value": one_each }));
        assert_eq!(forward(&place, name, "tangent.json"), moved);
    }
}

/// Mitsuba calls the BSDF of a shape `bsdf`, whatever the file calls it; and where all values are 1, adding to them and scaling
/// them have the same derivative.
#[test]
fn mitsubas_names_are_understood() {
    let place = place(|_| 1.0);
    let name = "panel.bsdf.reflectance.data";
    let added = forward(&place, name, "1");
    place.expect(
        0,
        &["gradient", "world.json", "--parameter", name, "--scale", "-o", "g"],
    );
    let scaled = image::read(&place.path(&format!("g/{name}_scale.exr")))
        .expect("an image")
        .0
        .data;
    assert!(added[0] > 0.9, "the sky reflected: {added:?}");
    assert_eq!(added, scaled);
    place.expect(
        0,
        &[
            "gradcheck",
            "world.json",
            "--parameter",
            name,
            "--entries",
            "2",
            "--device",
            "cpu",
        ],
    );
}

#[test]
fn what_has_no_derivative_is_refused_with_advice() {
    let place = place(shades);
    for (name, parts) in [
        (
            "panel.to_world",
            &["name a part of its place: `panel.to_world.translate`, `panel.to_world.rotate`, `panel.to_world.scale`"]
                [..],
        ),
        (
            "camera.to_world",
            &["`camera.to_world.translate`, `camera.to_world.rotate`\n"],
        ),
        (
            "lamp.position",
            &["there is no parameter `lamp.position`: name a part of its place: `lamp.to_world.translate`\n"],
        ),
        (
            "ball.positions",
            &["it is no mesh; make it one, or name a part of its place"],
        ),
        (
            "panel.normals",
            &["`panel.vertex_normals` cannot be optimised: the mesh has `face_normals`: remove them"],
        ),
        (
            "ball.bsdf.eta",
            &[
                "`ball.bsdf.eta` cannot be optimised: another index bends light elsewhere",
                "`prb_attached`",
            ],
        ),
        (
            "coin.bsdf.normalmap.data",
            &["another normal mirrors or bends light elsewhere", "`prb_attached`"],
        ),
        (
            "panel.vertex_positions",
            &["`panel.vertex_positions` cannot be optimised:"],
        ),
        (
            "panel.paint.reflectanse",
            &[
                "there is no parameter `panel.paint.reflectanse`: did you mean",
                "`panel.paint.reflectance`",
            ],
        ),
        (
            "board.bsdf.bsdf.reflectance",
            &["`board.bsdf.bsdf.reflectance` fits several parameters: name one of \
                `board.both.front.reflectance`, `board.both.back.reflectance`"],
        ),
    ] {
        let (_, told) = place.expect(2, &["gradient", "mirrors.json", "--parameter", name, "--scale"]);
        assert!(parts.iter().all(|part| told.contains(part)), "{name}: {told}");
        assert!(
            told.lines().filter(|line| line.starts_with("error")).count() == 1,
            "{told}"
        );
    }
    fs::write(place.path("words.json"), "[1, 2]").expect("writable");
    for (tangent, told_of) in [
        (
            "1,0",
            "--tangent has 2 numbers; give one, 3 (one for each channel) or 18 (one for each entry)",
        ),
        ("nowhere.json", "nowhere.json"),
        ("words.json", "words.json: expected {\"value\": […]} with numbers"),
        (
            "x",
            "--tangent x: give numbers such as 0,0,1, or a file .npy, .json or, of a texture, .exr",
        ),
        ("inf", "expected finite numbers"),
    ] {
        let flags = [
            "gradient",
            "world.json",
            "--parameter",
            "panel.positions",
            "--tangent",
            tangent,
        ];
        let (_, told) = place.expect(2, &flags);
        assert!(told.contains(told_of), "{tangent}: {told}");
    }
}

/// Reflectances above one in an image are rendered as they are, as in Mitsuba, with a warning.
#[test]
fn an_image_above_one_is_told_of_and_shown() {
    let place = place(|_| 2.5);
    let (_, told) = place.expect(0, &["render", "world.json", "--spp", "4", "-o", "seen.exr"]);
    assert!(
        told.contains(
            "48 of 48 values of paint.exr, which `panel.paint.reflectance` shows, are above 1, the largest 2.5"
        ),
        "{told}"
    );
    let seen = image::read(&place.path("seen.exr")).expect("an image").0.data;
    assert!((mean(&seen) - 2.5).abs() < 1e-3, "{}", mean(&seen));
}

/// A derivative beyond the largest float is refused, where its file would hold no number.
#[test]
fn what_is_not_finite_is_refused() {
    let place = place(|_| 0.5);
    let largest = Image {
        width: 8,
        height: 8,
        channels: 3,
        data: vec![f32::MAX; 192],
    };
    image::write_exr(&place.path("largest.exr"), &largest).expect("writable");
    let line = "backpropagate world.json --parameter sky.radiance --adjoint largest.exr --device cpu -o g";
    let flags: Vec<&str> = line.split(' ').collect();
    let told = place.run(&flags);
    let text = String::from_utf8_lossy(&told.stderr).into_owned();
    assert!(!told.status.success() && text.contains("no finite number"), "{text}");
    assert!(!place.path("g/sky.radiance.json").exists());
}
