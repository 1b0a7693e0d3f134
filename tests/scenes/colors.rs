//! Colours as Mitsuba's RGB variants read them, and the messages about mistakes in them.

use serde_json::{Value, json};

use super::*;

/// Colours with the values that Mitsuba gives them; `colors.py` beside the file writes it.
const PEER: &str = include_str!("../data/peer/colors.json");

/// The resolved form of a small scene with these objects.
fn resolved(objects: &Value) -> Result<Value, String> {
    let mut scene = json!({
        "camera": {"type": "perspective", "film": {"type": "hdrfilm", "width": 8, "height": 8}},
        "lamp": {"type": "point"},
    });
    for (name, object) in objects.as_object().expect("an object") {
        scene[name] = object.clone();
    }
    let read = scene::parse(&scene.to_string(), Path::new("test.json"));
    read.map(|scene| scene.resolved)
        .map_err(|mistakes| mistakes.to_string())
}

fn numbers(value: &Value) -> Vec<f64> {
    match value.as_array() {
        Some(items) => items.iter().map(|x| x.as_f64().expect("a number")).collect(),
        None => vec![value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))],
    }
}

#[track_caller]
fn assert_near(found: &Value, expected: &Value, of: &str) {
    let (found, expected) = (numbers(found), numbers(expected));
    let pairs = (0..expected.len().max(found.len())).map(|i| (found[i % found.len()], expected[i % expected.len()]));
    for (a, b) in pairs {
        assert!(
            (a - b).abs() <= 1e-5 * b.abs().max(1.0),
            "{of}: {found:?}, expected {expected:?}"
        );
    }
}

fn rows() -> Vec<Value> {
    let rows: Vec<Value> = serde_json::from_str(PEER).expect("JSON");
    assert!(rows.len() >= 19);
    rows
}

#[test]
fn colours_are_those_of_the_peer() {
    for row in rows() {
        let (color, text) = (&row["color"], row["color"].to_string());
        let surface = |bsdf: Value| json!({"s": {"type": "rectangle", "bsdf": bsdf}});
        let found = resolved(&surface(json!({"type": "diffuse", "reflectance": color})));
        if numbers(&row["reflectance"]).iter().any(|x| *x > 1.0) {
            let told = found.expect_err("a reflectance above one");
            assert!(told.contains("it must lie between 0 and 1"), "{told}");
        } else {
            let scene = found.unwrap_or_else(|told| panic!("{told}"));
            assert_near(&scene["s"]["bsdf"]["reflectance"], &row["reflectance"], &text);
        }
        let metal = resolved(&surface(json!({"type": "conductor", "eta": color, "k": 1}))).expect("without mistakes");
        assert_near(&metal["s"]["bsdf"]["eta"], &row["index"], &text);
        let sky = resolved(&json!({"sky": {"type": "constant", "radiance": color}})).expect("without mistakes");
        assert_near(&sky["sky"]["radiance"], &row["radiance"], &text);
        let sun = resolved(&json!({"sun": {"type": "directional", "irradiance": color}})).expect("without mistakes");
        assert_near(&sun["sun"]["irradiance"], &row["radiance"], &text);
        let board = json!({"type": "checkerboard", "color0": color});
        let screen = json!({"s": {"type": "rectangle", "e": {"type": "area", "radiance": board}}});
        let screen = resolved(&screen).expect("without mistakes");
        assert_near(&screen["s"]["e"]["radiance"]["color0"], &row["checkered"], &text);
    }
}

#[test]
fn where_a_number_is_expected_the_mean_of_a_colour_counts() {
    let mut compared = 0;
    for row in rows() {
        let color = &row["color"];
        if row["number"].is_null() || numbers(&row["reflectance"]).iter().any(|x| *x > 1.0) {
            continue;
        }
        let of = |opacity: &Value| {
            let bsdf = json!({"type": "mask", "opacity": opacity, "b": {"type": "diffuse"}});
            let scene = resolved(&json!({"s": {"type": "rectangle", "bsdf": bsdf}}));
            scene.unwrap_or_else(|told| panic!("{told}"))["s"]["bsdf"]["opacity"].clone()
        };
        assert_near(&of(color), &row["number"], &color.to_string());
        let board = of(&json!({"type": "checkerboard", "color0": color, "color1": 1}));
        assert_near(&board["color0"], &row["number"], &color.to_string());
        compared += 1;
    }
    assert!(compared >= 17);
    let refused = resolved(&json!({"s": {"type": "rectangle", "bsdf": {
        "type": "mask", "opacity": [0.1, 0.2, 0.3], "b": {"type": "diffuse"}}}}));
    assert!(
        refused
            .expect_err("a list is no colour there")
            .contains("expected a number")
    );
}

#[test]
fn one_number_stays_one_channel() {
    let albedo = |color: &str| {
        let scene = read(&edited_world("[0.9, 0.8, 0.7]", color));
        scene.world.media[0].albedo.array.shape.channels
    };
    assert_eq!(albedo(r#"{"type": "uniform", "value": 0.5}"#), 1);
    assert_eq!(albedo(r#"{"type": "spectrum", "value": 0.5}"#), 1);
    assert_eq!(albedo(r#"{"type": "rgb", "value": 0.5}"#), 3);
    assert_eq!(albedo(r#"{"type": "spectrum", "value": [[400, 0.5], [700, 0.6]]}"#), 3);
}

#[test]
fn colours_can_be_referred_to() {
    let paint = json!({"type": "spectrum", "value": [[400, 0.1], [700, 0.9]]});
    let there = json!({"type": "ref", "id": "paint"});
    let scene = json!({
        "paint": paint,
        "s": {"type": "rectangle", "bsdf": {"type": "diffuse", "reflectance": there}},
        "sky": {"type": "constant", "radiance": there},
    });
    let scene = resolved(&scene).unwrap_or_else(|told| panic!("{told}"));
    // The same spectrum is a reflectance in one place and light in the other.
    assert_near(
        &scene["paint"]["value"],
        &json!([0.74285, 0.48114, 0.20832]),
        "reflectance",
    );
    assert_near(&scene["sky"]["radiance"], &json!([0.87221, 0.45873, 0.18130]), "light");
}

#[test]
fn clamped_spectra_are_told() {
    let dull = r#"{"type": "spectrum", "value": [[400, 0.1], [700, 0.9]]}"#;
    assert_eq!(read(&edited_world("0.4", dull)).warnings, Vec::<String>::new());
    let warnings = read(&edited_world(
        "0.4",
        r#"{"type": "spectrum", "value": [[500, 1], [520, 1]]}"#,
    ))
    .warnings;
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(
        warnings[0].starts_with("the spectrum at floor.bsdf.reflectance has"),
        "{warnings:?}"
    );
    assert!(warnings[0].contains("is clamped to [0.0, "), "{warnings:?}");
}

#[test]
fn spectra_are_read_from_files() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let told = |text: &str| {
        std::fs::write(folder.path().join("leaf.spd"), text).expect("writable");
        let scene = edited_world("0.4", r#"{"type": "spectrum", "filename": "leaf.spd"}"#);
        let read = scene::parse(&scene, &folder.path().join("test.json"));
        read.map(|scene| scene.resolved["floor"]["bsdf"]["reflectance"].clone())
            .map_err(|mistakes| mistakes.to_string())
    };
    let found = told("# a leaf\n400 0.1\n\n  500 .3 # green\n600\t9e-1\n700 0.2\n").expect("without mistakes");
    assert_near(&found, &json!([0.8876085, 0.5628394, 0.1554881]), "file");
    for (text, expected) in [
        ("400 0.1\n500", "line 2 is \"500\"; expected a wavelength and a value"),
        ("400 0.1\n500, 1", "line 2 is \"500, 1\"; expected"),
        ("400 0.1\n500 1 2", "line 2 is \"500 1 2\"; expected"),
        ("400 0.1\n500 -1", "line 2 is \"500 -1\"; expected"),
        ("400 nan\n500 1", "line 1 is \"400 nan\"; expected"),
        ("400 0.1\n500 1e39", "line 2 is \"500 1e39\"; expected"),
        ("", "the number of pairs in the spectrum is 0"),
        (
            "500 1\n400 1",
            "the wavelength 400 follows 500 at floor.bsdf.reflectance.filename: wavelengths must increase",
        ),
    ] {
        let mistake = told(text).expect_err("refused");
        assert!(mistake.contains(expected), "{text:?}: {mistake}");
    }
    std::fs::remove_file(folder.path().join("leaf.spd")).expect("there");
    let scene = edited_world("0.4", r#"{"type": "spectrum", "filename": "leaf.spd"}"#);
    let missing = scene::parse(&scene, &folder.path().join("test.json")).expect_err("there is no file");
    assert!(
        missing
            .to_string()
            .contains("this spectrum cannot be used at floor.bsdf.reflectance.filename"),
        "{missing}"
    );
}

#[test]
fn mistakes_in_colours() {
    let refused = [
        (
            r#"{"type": "spectrum", "value": [[400, 1]]}"#,
            "the number of pairs in the spectrum is 1 at floor.bsdf.reflectance.value: give two or more, or one number for all wavelengths",
        ),
        (
            r#"{"type": "spectrum", "value": [[400, 1], [500, 1], [500, 1]]}"#,
            "the wavelength 500 follows 500 at floor.bsdf.reflectance.value[2]: wavelengths must increase",
        ),
        (
            r#"{"type": "spectrum", "value": [[400, 1], [500, -1]]}"#,
            "the value -1 is not possible at floor.bsdf.reflectance.value[1][1]: it must not be negative",
        ),
        (
            r#"{"type": "spectrum", "value": [[0, 1], [500, 1]]}"#,
            "the value 0 is not possible at floor.bsdf.reflectance.value[0][0]: it must be positive",
        ),
        (
            r#"{"type": "spectrum", "value": [[400], [500, 1]]}"#,
            "found a list of 1 at floor.bsdf.reflectance.value[0]: expected a list of 2 numbers",
        ),
        (
            r#"{"type": "spectrum", "value": "400:1, 500:1"}"#,
            r#"found the string "400:1, 500:1" at floor.bsdf.reflectance.value: expected a number, or a list of [wavelength, value]"#,
        ),
        (
            r#"{"type": "spectrum", "value": 1.5}"#,
            "the value 1.5 is not possible at floor.bsdf.reflectance.value: it must lie between 0 and 1",
        ),
        (
            r#"{"type": "spectrum"}"#,
            "the `spectrum` has no values at floor.bsdf.reflectance: give `value` or `filename`",
        ),
        (
            r#"{"type": "spectrum", "value": 1, "filename": "a.spd"}"#,
            "`value` and `filename` exclude each other at floor.bsdf.reflectance.filename: remove one of the two",
        ),
        (
            r#"{"type": "uniform"}"#,
            "`uniform` lacks `value` at floor.bsdf.reflectance: give a number",
        ),
        (
            r#"{"type": "srgb", "color": [0, 2, 0]}"#,
            "the value 2 is not possible at floor.bsdf.reflectance.color[1]: it must lie between 0 and 1",
        ),
        (
            r#"{"type": "d65", "scale": 2}"#,
            "the colour [2.0, 2.0, 2.0] is not possible at floor.bsdf.reflectance: it must lie between 0 and 1",
        ),
        (
            r#"{"type": "d65", "color": {"type": "uniform", "value": 1}}"#,
            "a `uniform` stands inside a colour at floor.bsdf.reflectance.color: give [r, g, b], or an `rgb`",
        ),
        (
            r#"{"type": "blackbody", "temperature": 5000}"#,
            "Mitsuba's colour `blackbody` is not supported yet at floor.bsdf.reflectance: allowed: `rgb`, `srgb`, `spectrum`, `uniform`, `rawconstant`, `d65`",
        ),
    ];
    for (color, expected) in refused {
        let told = mistakes_in(&edited_world("0.4", color));
        assert!(told.contains(expected), "{color}: {told}\nexpected {expected}");
    }
}
