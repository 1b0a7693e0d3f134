//! The scene format's document shows only what works, and leaves no parameter out.

use std::collections::BTreeSet;
use std::path::Path;

use prbopt::io::{self, Grid, Image};
use prbopt::scene;
use tempfile::TempDir;

const DOCUMENT: &str = include_str!("../../docs/scene-format.md");

/// The blocks of JSON in the document: what they are parts of, and their text.
fn blocks() -> Vec<(&'static str, &'static str)> {
    let fenced = DOCUMENT.split("```").skip(1).step_by(2);
    fenced
        .filter_map(|block| block.strip_prefix("json ")?.split_once('\n'))
        .collect()
}

/// A whole scene around a block.
fn whole(kind: &str, block: &str) -> String {
    let part = |name: &str, default: &'static str| {
        if kind == name {
            block.to_string()
        } else {
            default.to_string()
        }
    };
    if kind == "scene" {
        return block.to_string();
    }
    if kind == "objects" {
        return format!("{{{block}}}");
    }
    let field = part("field", r#""sh_degree": 0, "sigma_t": 1, "sh_coeffs": 1"#);
    let sensor = part("sensor", r#""image": "photo.png""#);
    let cube = part("cube", r#""to_world": []"#);
    let default = r#""parameters": {"object.interior.sigma_t": {}}, "references": {"type": "constant", "value": 0}"#;
    let optimize = part("optimize", default);
    format!(
        r#"{{"camera": {{"type": "perspective", {sensor}}},
        "object": {{"type": "cube", "bsdf": {{"type": "null"}}, {cube}, "interior": {{"type": "radiance_field", {field}}}}},
        "optimize": {{{optimize}}}}}"#
    )
}

/// A folder with the files that the document's examples name.
fn folder() -> TempDir {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let at = |name: &str| folder.path().join(name);
    let grid = Grid {
        size: [2, 2, 2],
        channels: 1,
        bounds: io::UNIT_CUBE,
        data: vec![0.0; 8],
    };
    io::vol::write(&at("density.vol"), &grid).expect("is written");
    let image = Image {
        width: 128,
        height: 128,
        channels: 3,
        data: vec![0.5; 128 * 128 * 3],
    };
    io::image::write_png(&at("photo.png"), &image).expect("is written");
    io::image::write_exr(&at("sky.exr"), &image).expect("is written");
    let frame = r#"{"file_path": "photo.png", "transform_matrix": [[1,0,0,0],[0,1,0,0],[0,0,1,0],[0,0,0,1]]}"#;
    let dataset = format!(r#"{{"camera_angle_x": 1, "w": 128, "h": 128, "frames": [{frame}]}}"#);
    std::fs::write(at("transforms_train.json"), dataset).expect("is written");
    std::fs::write(at("leaf.spd"), "400 0.1\n550 0.4\n700 0.1\n").expect("is written");
    std::fs::write(at("teapot.ply"), "ply").expect("is written");
    std::fs::copy(at("density.vol"), at("stone.vol")).expect("is copied");
    std::fs::copy("tests/data/meshes/sheet.ply", at("leaf.ply")).expect("is copied");
    std::fs::write(at("target.json"), r#"{"light": {"type": "constant"}}"#).expect("is written");
    folder
}

#[test]
fn every_example_is_without_mistakes() {
    let folder = folder();
    let blocks = blocks();
    assert_eq!(
        blocks.len(),
        DOCUMENT.matches("```json").count(),
        "every block says what it is part of"
    );
    for (kind, block) in blocks {
        assert!(
            ["scene", "objects", "sensor", "cube", "field", "optimize"].contains(&kind),
            "{kind}"
        );
        let text = whole(kind, block);
        if let Err(mistakes) = scene::parse(&text, &folder.path().join("example.json")) {
            panic!("{mistakes}\nin {text}");
        }
    }
}

/// The names that are allowed where `text` has a parameter that nobody knows.
fn allowed(text: &str) -> BTreeSet<String> {
    let mistakes = scene::parse(text, Path::new("example.json"))
        .expect_err("`nobody` is unknown")
        .to_string();
    let line = mistakes
        .lines()
        .find(|line| line.contains("nobody"))
        .unwrap_or_else(|| panic!("{mistakes}"));
    let list = line.split("allowed: ").nth(1).unwrap_or_else(|| panic!("{line}"));
    list.split('`').skip(1).step_by(2).map(str::to_string).collect()
}

#[test]
fn no_parameter_is_left_out() {
    let unknown = r#""nobody": 1"#;
    let inside = |kind: &str| whole(kind, unknown);
    let objects = |block: &str| format!("{{{block}}}");
    let shape = |block: &str| objects(&format!(r#""s": {{{block}}}"#));
    let color = |name: &str| {
        objects(&format!(
            r#""e": {{"type": "constant", "radiance": {{"type": "{name}", {unknown}}}}}"#
        ))
    };
    let medium = |block: &str| {
        shape(&format!(
            r#""type": "cube", "interior": {{"type": "heterogeneous", {block}}}"#
        ))
    };
    let texts = [
        inside("sensor"),
        inside("field"),
        inside("cube"),
        inside("optimize"),
        whole("sensor", &format!(r#""film": {{"type": "hdrfilm", {unknown}}}"#)),
        whole(
            "sensor",
            &format!(r#""film": {{"type": "hdrfilm", "f": {{"type": "tent", {unknown}}}}}"#),
        ),
        whole(
            "sensor",
            &format!(r#""film": {{"type": "hdrfilm", "f": {{"type": "gaussian", {unknown}}}}}"#),
        ),
        whole(
            "sensor",
            &format!(r#""film": {{"type": "hdrfilm", "f": {{"type": "mitchell", {unknown}}}}}"#),
        ),
        whole(
            "sensor",
            &format!(r#""film": {{"type": "hdrfilm", "f": {{"type": "lanczos", {unknown}}}}}"#),
        ),
        whole("sensor", &format!(r#""s": {{"type": "independent", {unknown}}}"#)),
        whole("sensor", &format!(r#""s": {{"type": "orthogonal", {unknown}}}"#)),
        objects(&format!(r#""s": {{"type": "thinlens", {unknown}}}"#)),
        objects(&format!(r#""s": {{"type": "orthographic", {unknown}}}"#)),
        objects(&format!(r#""s": {{"type": "radiancemeter", {unknown}}}"#)),
        objects(&format!(r#""s": {{"type": "distant", {unknown}}}"#)),
        shape(r#""type": "rectangle", "m": {"type": "irradiancemeter", "nobody": 1}"#),
        objects(&format!(r#""i": {{"type": "path", {unknown}}}"#)),
        objects(&format!(r#""i": {{"type": "direct", {unknown}}}"#)),
        objects(&format!(r#""i": {{"type": "volpathmis", {unknown}}}"#)),
        objects(&format!(r#""i": {{"type": "rb", {unknown}}}"#)),
        whole("sensor", &format!(r#""image": {{{unknown}}}"#)),
        whole("sensor", &format!(r#""distortion": {{"model": "opencv", {unknown}}}"#)),
        whole("sensor", &format!(r#""distortion": {{"model": "fisheye", {unknown}}}"#)),
        whole("field", &format!(r#""sigma_t": {{"type": "gridvolume", {unknown}}}"#)),
        whole("field", &format!(r#""sigma_t": {{"type": "constvolume", {unknown}}}"#)),
        whole("field", &format!(r#""sigma_t": {{"type": "blobs", {unknown}}}"#)),
        whole(
            "field",
            &format!(r#""sigma_t": {{"type": "blobs", "blobs": [{{{unknown}}}]}}"#),
        ),
        whole(
            "optimize",
            &format!(r#""parameters": {{"object.interior.sigma_t": {{{unknown}}}}}"#),
        ),
        whole("optimize", &format!(r#""output": {{{unknown}}}"#)),
        whole("optimize", &format!(r#""stages": [{{{unknown}}}]"#)),
        whole("optimize", &format!(r#""regularizers": [{{{unknown}}}]"#)),
        whole("optimize", &format!(r#""loss": {{"type": "huber", {unknown}}}"#)),
        whole("optimize", &format!(r#""optimizer": {{"type": "adam", {unknown}}}"#)),
        whole("optimize", &format!(r#""optimizer": {{"type": "sgd", {unknown}}}"#)),
        whole("optimize", &format!(r#""optimizer": {{"type": "rmsprop", {unknown}}}"#)),
        whole("optimize", &format!(r#""schedule": {{"type": "cosine", {unknown}}}"#)),
        shape(r#""type": "cube", "nobody": 1"#),
        shape(r#""type": "sphere", "nobody": 1"#),
        shape(r#""type": "cylinder", "nobody": 1"#),
        shape(r#""type": "obj", "nobody": 1"#),
        shape(r#""type": "cube", "b": {"type": "diffuse", "nobody": 1}"#),
        shape(r#""type": "cube", "b": {"type": "diffuse", "reflectance": {"type": "bitmap", "nobody": 1}}"#),
        shape(r#""type": "cube", "b": {"type": "diffuse", "reflectance": {"type": "checkerboard", "nobody": 1}}"#),
        shape(r#""type": "cube", "e": {"type": "area", "nobody": 1}"#),
        medium(unknown),
        medium(r#""sigma_t": {"type": "gridvolume", "nobody": 1}"#),
        medium(r#""sigma_t": {"type": "plume", "nobody": 1}"#),
        medium(r#""p": {"type": "hg", "nobody": 1}"#),
        medium(r#""p": {"type": "blendphase", "nobody": 1}"#),
        objects(&format!(r#""e": {{"type": "point", {unknown}}}"#)),
        objects(&format!(r#""e": {{"type": "directional", {unknown}}}"#)),
        objects(&format!(r#""e": {{"type": "spot", {unknown}}}"#)),
        objects(&format!(r#""e": {{"type": "projector", {unknown}}}"#)),
        objects(&format!(r#""i": {{"type": "volpath", {unknown}}}"#)),
        objects(&format!(r#""d": {{"type": "dataset", {unknown}}}"#)),
        objects(&format!(r#""e": {{"type": "constant", {unknown}}}"#)),
        objects(&format!(r#""e": {{"type": "envmap", {unknown}}}"#)),
        color("rgb"),
        color("srgb"),
        color("spectrum"),
        color("uniform"),
        color("rawconstant"),
        color("d65"),
        objects(&format!(r#""e": {{"type": "envmap", "data": {{{unknown}}}}}"#)),
    ];
    for text in texts {
        for name in allowed(&text) {
            let shown = [format!("`{name}`"), format!("\"{name}\"")];
            assert!(
                shown.iter().any(|name| DOCUMENT.contains(name)),
                "`{name}` is not in the document: {text}"
            );
        }
    }
}

/// A text without its comments.
fn without_comments(text: &str) -> String {
    let (mut plain, mut rest) = (String::new(), text);
    let mut in_string = false;
    while let Some(c) = rest.chars().next() {
        if !in_string && rest.starts_with("//") {
            rest = rest.find('\n').map_or("", |end| &rest[end..]);
            continue;
        }
        if !in_string && rest.starts_with("/*") {
            rest = rest.find("*/").map_or("", |end| &rest[end + 2..]);
            continue;
        }
        let taken = if in_string && c == '\\' { 2 } else { c.len_utf8() };
        in_string ^= c == '"';
        plain += &rest[..taken];
        rest = &rest[taken..];
    }
    plain
}

fn validator() -> jsonschema::Validator {
    jsonschema::validator_for(&scene::schema()).expect("the schema is one")
}

#[track_caller]
fn assert_valid(validator: &jsonschema::Validator, value: &serde_json::Value, of: &str) {
    let errors: Vec<String> = validator
        .iter_errors(value)
        .map(|e| format!("{}: {e}", e.instance_path()))
        .collect();
    assert!(errors.is_empty(), "{of}\n{}", errors.join("\n"));
}

#[test]
fn every_example_and_every_bundled_scene_follows_the_schema() {
    let validator = validator();
    let mut texts: Vec<String> = blocks().into_iter().map(|(kind, block)| whole(kind, block)).collect();
    for entry in std::fs::read_dir("scenes").expect("there") {
        let path = entry.expect("readable").path();
        if path.extension().is_none_or(|kind| kind != "json") {
            continue;
        }
        texts.push(std::fs::read_to_string(&path).expect("text"));
        let resolved = scene::load(&path).expect("without mistakes").resolved;
        assert_valid(&validator, &resolved, &format!("{} as resolved", path.display()));
    }
    texts.extend([super::SCENE.to_string(), super::WORLD.to_string()]);
    assert!(texts.len() > 20);
    for text in texts {
        let value: serde_json::Value = serde_json::from_str(&without_comments(&text)).expect("JSON");
        assert_valid(&validator, &value, &text);
    }
}

/// What the reader refuses by the form of a single value, the schema refuses too.
#[test]
fn the_schema_refuses_what_the_reader_refuses() {
    let validator = validator();
    for (from, to) in [
        ("\"fov\": 40", "\"fov\": 400"),
        ("\"fov\": 40", "\"fvo\": 40"),
        ("\"width\": 64", "\"width\": 0"),
        ("\"type\": \"tent\"", "\"type\": \"mitchell\", \"C\": 2"),
        ("\"sh_degree\": 1", "\"sh_degree\": 4"),
        ("\"at\": 0.25", "\"at\": 1.5"),
        ("\"learning_rate\": 0.5", "\"learning_rate\": 0"),
        ("\"bsdf\": {\"type\": \"null\"}", "\"bsdf\": {\"type\": \"hg\"}"),
        ("\"bounds\": [0, null]", "\"bounds\": [0]"),
    ] {
        let text = super::edited(from, to);
        super::mistakes_in(&text);
        let value: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        assert!(!validator.is_valid(&value), "{from} -> {to}");
    }
    let value: serde_json::Value = serde_json::from_str(super::SCENE).expect("JSON");
    assert!(validator.is_valid(&value));
}
