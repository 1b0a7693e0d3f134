//! Folders of results: which files are needed, and the messages about files that are missing or do not fit.

use std::fs;
use std::path::Path;

use prbopt::io::{Grid, Image, UNIT_CUBE, image, npy, vol};
use prbopt::output::stored::read_all;
use prbopt::params::{Kind, ParamSet, Parameter, Quantity, Shape, Tuning};

fn parameter(path: &str, kind: Kind, size: [usize; 3], channels: usize, tuned: bool) -> Parameter {
    let shape = Shape { size, channels };
    Parameter {
        path: path.into(),
        quantity: Quantity::Density,
        to_world: glam::Affine3A::IDENTITY,
        kind,
        shape,
        values: vec![0.0; shape.len()],
        tuning: tuned.then_some(Tuning {
            learning_rate: 0.1,
            bounds: [-10.0, 10.0],
            smoothing: 0.0,
        }),
    }
}

fn read(folder: &Path, parameters: &[Parameter]) -> Result<Vec<Vec<f32>>, String> {
    let mut params = ParamSet {
        parameters: parameters.to_vec(),
    };
    let read = read_all(folder, &mut params).map_err(|e| format!("{e:#}"));
    read.map(|_| params.parameters.into_iter().map(|p| p.values).collect())
}

#[test]
fn what_a_run_changes_must_be_there_and_the_rest_may() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let at = |name: &str| folder.path().join(name);
    let value = |path: &str, tuned| parameter(path, Kind::Value, [1, 1, 1], 3, tuned);
    fs::write(at("there.json"), r#"{"value": [1, 2, 3]}"#).expect("writable");
    let expected = [vec![1.0, 2.0, 3.0], vec![0.0; 3]];
    // In a scene without optimised parameters one file is enough.
    for tuned in [true, false] {
        let found = read(folder.path(), &[value("there", tuned), value("away", false)]);
        assert_eq!(found.as_deref(), Ok(&expected[..]));
    }
    let lacks = |parameters: &[Parameter]| read(folder.path(), parameters).expect_err("something is missing");
    let message = lacks(&[value("there", false), value("away", true)]);
    assert!(
        message.ends_with("lacks away.json; give the folder `final` of a run of this scene"),
        "{message}"
    );
    let message = lacks(&[value("far", false), value("away", false)]);
    assert!(message.contains("lacks far.json, away.json; give"), "{message}");
    fs::create_dir(at("final")).expect("writable");
    let message = lacks(&[value("there", false), value("away", true)]);
    assert!(
        message.ends_with(&format!("lacks away.json; did you mean {}?", at("final").display())),
        "{message}"
    );
    let message = read(&at("nowhere"), &[]).expect_err("no folder");
    assert!(
        message.ends_with("nowhere: is not a folder; give the folder `final` of a run"),
        "{message}"
    );
}

#[test]
fn values_and_grids_must_fit() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let at = |name: &str| folder.path().join(name);
    // Two texels of three channels.
    fs::write(at("a.json"), r#"{"value": [1, 2, 3, 4, 5, 6]}"#).expect("writable");
    let two = parameter("a", Kind::Value, [2, 1, 1], 3, true);
    assert_eq!(
        read(folder.path(), &[two]),
        Ok(vec![vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0]])
    );
    let one = parameter("a", Kind::Value, [1, 1, 1], 3, true);
    let message = read(folder.path(), &[one]).expect_err("too many");
    assert!(
        message.ends_with("a.json: has 6 channels, but a has 3 in this scene"),
        "{message}"
    );
    for text in [
        r#"{"value": [1, 2, "x"]}"#,
        r#"{"value": 1}"#,
        r#"{"value": [1, 2, 1e300]}"#,
        "[]",
    ] {
        fs::write(at("a.json"), text).expect("writable");
        let message = read(folder.path(), &[parameter("a", Kind::Value, [1, 1, 1], 3, true)]).expect_err(text);
        assert!(
            message.ends_with(r#"a.json: expected {"value": [numbers]}"#),
            "{message}"
        );
    }
    // A `.vol` goes before a `.npy`; both bring their own resolution.
    let grid = |fill: f32| Grid {
        size: [2, 1, 1],
        channels: 1,
        bounds: UNIT_CUBE,
        data: vec![fill; 2],
    };
    npy::write(&at("g.npy"), &grid(2.0)).expect("writable");
    let g = parameter("g", Kind::Grid, [1, 1, 1], 1, true);
    assert_eq!(read(folder.path(), std::slice::from_ref(&g)), Ok(vec![vec![2.0; 2]]));
    vol::write(&at("g.vol"), &grid(1.0)).expect("writable");
    assert_eq!(read(folder.path(), &[g]), Ok(vec![vec![1.0; 2]]));
}

/// Environment maps come back as they are, and must be finite.
#[test]
fn images_become_radiance() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("sky.exr");
    let map = |channels: usize, data: Vec<f32>| Image {
        width: 2,
        height: 1,
        channels,
        data,
    };
    let sky = parameter("sky", Kind::Envmap, [1, 1, 1], 3, true);
    image::write_exr(&file, &map(3, vec![0.5, 1.0, 2.0, 4.0, 8.0, 16.0])).expect("writable");
    let colors = read(folder.path(), std::slice::from_ref(&sky));
    assert_eq!(colors, Ok(vec![vec![0.5, 1.0, 2.0, 4.0, 8.0, 16.0]]));
    image::write_exr(&file, &map(3, vec![0.5, f32::INFINITY, 2.0, 4.0, 8.0, 16.0])).expect("writable");
    let message = read(folder.path(), &[sky]).expect_err("not finite");
    assert!(
        message.ends_with("sky.exr: value 1 is inf, expected finite numbers"),
        "{message}"
    );
}
