//! Conditions for resuming a run, and its initial values.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::*;
use prbopt::io::tensors::{self, Reader, Tensor, Values};

/// A checkpoint as text and arrays: shapes and values by name.
struct Parts {
    head: Value,
    arrays: BTreeMap<String, (Vec<usize>, Vec<f32>)>,
}

fn take_apart(path: &Path) -> Parts {
    let mut reader = Reader::open(path).expect("a checkpoint");
    let head = serde_json::from_str(reader.text("prbopt").expect("a head")).expect("JSON");
    let mut arrays = BTreeMap::new();
    for name in reader.names() {
        let shape = reader.shape(&name).expect("listed").to_vec();
        let values = reader.f32(&name).expect("listed");
        arrays.insert(name, (shape, values));
    }
    Parts { head, arrays }
}

fn put_together(path: &Path, parts: &Parts) {
    let arrays = parts.arrays.iter().map(|(name, (shape, values))| Tensor {
        name: name.clone(),
        shape: shape.clone(),
        values: Values::F32(values),
    });
    let text = BTreeMap::from([("prbopt".to_owned(), parts.head.to_string())]);
    tensors::write(path, &arrays.collect::<Vec<_>>(), &text).expect("writable");
}

/// A folder with a checkpoint of iteration 30, after the change of resolution at 20.
fn interrupted_run(scene: &Scene) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut device = Diary::new();
    device.failure = Some((31, || DeviceError::Lost("unplugged".into())));
    drive(scene, &mut device, folder.path(), false, false).expect_err("lost");
    folder
}

fn saving_scene(optimizer: Optimizer) -> Scene {
    let mut scene = scene();
    let rule = scene.optimize.as_mut().expect("given");
    rule.output.checkpoint_seconds = 0.0;
    rule.optimizer = optimizer;
    scene
}

const SGD: Optimizer = Optimizer::Sgd { momentum: 0.5 };

#[test]
fn what_no_run_reaches_is_refused_by_name() {
    let scene = saving_scene(SGD);
    let folder = interrupted_run(&scene);
    let path = folder.path().join("checkpoint.safetensors");
    let sound = std::fs::read(&path).expect("there");
    let refusal = |change: &dyn Fn(&mut Parts)| {
        std::fs::write(&path, &sound).expect("writable");
        let mut parts = take_apart(&path);
        change(&mut parts);
        put_together(&path, &parts);
        match drive(&scene, &mut Diary::new(), folder.path(), true, false) {
            Ok(report) => format!("went on to {}", report.iteration),
            Err(error) => format!("{error:#}"),
        }
    };
    let head = |key: &'static str, value: Value| move |parts: &mut Parts| parts.head[key] = value.clone();
    let values = "sigma_t/values";
    type Change = Box<dyn Fn(&mut Parts)>;
    let cases: Vec<(&str, Change)> = vec![
        ("went on to 40", Box::new(|_: &mut Parts| {})),
        ("iteration 41 of a run of 40", Box::new(head("iteration", json!(41)))),
        ("iteration 30 of a run of 0", Box::new(head("iterations", json!(0)))),
        ("31 steps after 30 iterations", Box::new(head("steps", json!(31)))),
        ("0 steps after 30 iterations", Box::new(head("steps", json!(0)))),
        (
            "10 steps after 30 iterations and 0 changes",
            Box::new(head("stage", json!(0))),
        ),
        ("to have taken -1 seconds", Box::new(head("seconds", json!(-1.0)))),
        ("is at stage 4, but the scene has 2", Box::new(head("stage", json!(3)))),
        ("head that is damaged", Box::new(head("iteration", json!(-3)))),
        (
            "a gradient of `other`",
            Box::new(head("reached", json!(["sigma_t", "other"]))),
        ),
        (
            "was written by prbopt checkpoint version 1, this is 2",
            Box::new(|parts| {
                parts.head.as_object_mut().expect("an object").remove("format");
            }),
        ),
        ("checkpoint version 7, this is 2", Box::new(head("format", json!(7)))),
        (
            "value 3 of sigma_t/values is NaN",
            Box::new(move |parts| parts.arrays.get_mut(values).expect("there").1[3] = f32::NAN),
        ),
        (
            "value 5 of sigma_t/values is 2000, expected values between -1000 and 1000",
            Box::new(move |parts| parts.arrays.get_mut(values).expect("there").1[5] = 2000.0),
        ),
        (
            "sigma_t has [4, 4, 2] texels of 1 channels, expected [4, 4, 4] of 1 at stage 2",
            Box::new(move |parts| {
                let (shape, data) = parts.arrays.get_mut(values).expect("there");
                shape[0] = 2;
                data.truncate(32);
            }),
        ),
        (
            "expected four axes",
            Box::new(move |parts| parts.arrays.get_mut(values).expect("there").0 = vec![64]),
        ),
        (
            "moment_1 has the shape [64]",
            Box::new(|parts| parts.arrays.get_mut("sigma_t/moment_1").expect("there").0 = vec![64]),
        ),
        (
            "no array named `sh_coeffs/values`",
            Box::new(|parts| drop(parts.arrays.remove("sh_coeffs/values"))),
        ),
    ];
    for (expected, change) in cases {
        let told = refusal(&*change);
        assert!(told.contains(expected), "expected: {expected}\ntold: {told}");
        let named = told.contains("checkpoint.safetensors: ") || told.starts_with("went on");
        assert!(named, "the file is not named: {told}");
    }
}

#[test]
fn means_of_squares_are_never_negative() {
    let rms = Optimizer::RmsProp {
        decay: 0.9,
        epsilon: 1e-8,
    };
    for (optimizer, value, refused) in [(SGD, -1.0, false), (rms, -1.0, true), (rms, 0.0, false)] {
        let scene = saving_scene(optimizer);
        let folder = interrupted_run(&scene);
        let path = folder.path().join("checkpoint.safetensors");
        let mut parts = take_apart(&path);
        parts.arrays.get_mut("sigma_t/moment_1").expect("there").1[2] = value;
        put_together(&path, &parts);
        let outcome = drive(&scene, &mut Diary::new(), folder.path(), true, false);
        let told = outcome.map_or_else(|e| e.to_string(), |_| "went on".into());
        assert_eq!(
            told.contains("value 2 of sigma_t/moment_1 is -1, expected squares"),
            refused,
            "{told}"
        );
        assert_eq!(told == "went on", !refused, "{told}");
    }
}

#[test]
fn a_run_goes_on_only_where_numbers_round_alike() {
    let scene = saving_scene(SGD);
    let folder = interrupted_run(&scene);
    let mut other = Diary::new();
    other.arithmetic = "diary of another kind";
    let error = drive(&scene, &mut other, folder.path(), true, false)
        .expect_err("another arithmetic")
        .to_string();
    assert!(
        error.contains("was made by diary, this would go on with diary of another kind") && error.contains("--force"),
        "{error}"
    );
    assert!(other.steps.is_empty());
    drive(&scene, &mut Diary::new(), folder.path(), true, false).expect("the same arithmetic");
}

/// Values that no ray reaches are never moved by a step, so they must start within their bounds.
#[test]
fn initial_values_begin_within_their_bounds() {
    let mut scene = scene();
    scene.optimize.as_mut().expect("given").iterations = 1;
    scene.optimize.as_mut().expect("given").stages.clear();
    let field = scene.field.as_mut().expect("given");
    for (array, value) in [(&mut field.sigma_t, 3000.0), (&mut field.sh_coeffs, -4000.0)] {
        array.source = Source::Fill(vec![value; array.shape.channels]);
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut device = Diary::new();
    device.failure = Some((1, || DeviceError::Lost("unplugged".into())));
    device.moves = false;
    drive(&scene, &mut device, folder.path(), false, false).expect_err("lost");
    assert_eq!(device.params.parameters[0].values, [1000.0; 8]);
    assert_eq!(device.params.parameters[1].values, [-1000.0; 24]);
}
