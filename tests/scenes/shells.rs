//! Media in shells that do not let light pass freely.

use std::path::Path;

use super::world_fitting::{bounds, flattened, scene_of};

/// A boundary of glass asks the shapes in it for its medium as an open boundary does, and may touch other shapes.
#[test]
fn media_fit_into_shells_of_glass() {
    let here = Path::new("");
    let told = |objects: &[String]| flattened(&scene_of(objects), here).unwrap_or_default();
    let glass = |more: &str| {
        format!(
            r#""jar": {{"type": "sphere", "radius": 2, "bsdf": {{"type": "dielectric"}}, "interior": {{"type": "homogeneous"}} {more}}}"#
        )
    };
    let sensor = |z: f32, more: &str| {
        format!(r#""camera": {{"type": "perspective", "to_world": [{{"translate": [0, 0, {z}]}}]{more}}}"#)
    };
    let inside = r#", "medium": {"type": "ref", "id": "jar.interior"}"#;
    let around = r#""exterior": {"type": "ref", "id": "jar.interior"}, "#;
    let core = bounds("core", "sphere", r#"{"scale": 0.5}"#, around);
    let far = bounds("far", "cube", r#"{"translate": [9, 0, 0]}"#, "");
    assert_eq!(told(&[glass(""), core.clone(), sensor(5.0, "")]), "");
    assert_eq!(told(&[glass(""), core.clone(), sensor(1.5, inside)]), "");
    assert_eq!(told(&[glass(""), far.clone(), sensor(1.5, inside)]), "");
    let found = told(&[glass(""), bounds("core", "sphere", r#"{"scale": 0.5}"#, "")]);
    assert!(
        found.contains("the shape `core` lies in `jar` but has no medium around it, expected `jar.interior`"),
        "{found}"
    );
    let found = told(&[glass(""), far, sensor(1.5, "")]);
    assert!(
        found.contains("the sensor `camera` stands in `jar` but has no `medium`"),
        "{found}"
    );
    let cut = bounds("cut", "cube", r#"{"translate": [2, 0, 0]}"#, "");
    assert_eq!(told(&[glass(""), cut, sensor(5.0, "")]), "");
    // A sheet of glass has no inside in which a shape could lie.
    let sheet = format!(
        r#""jar": {{"type": "obj", "filename": {:?}, "bsdf": {{"type": "dielectric"}}, "interior": {{"type": "homogeneous"}}}}"#,
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/meshes/panel.obj")
    );
    let alone = bounds("core", "sphere", r#"{"scale": 0.5}"#, "");
    assert_eq!(told(&[sheet, alone, sensor(5.0, "")]), "");
}
