//! Scenes that are exported in the formats of other tools and imported again.

mod gltf;
mod xml;

use std::path::{Path, PathBuf};

use prbopt::params::{Kind, ParamSet, Quantity};
use prbopt::resident::Resident;
use prbopt::scene::{self, Scene};
use serde_json::Value;

/// The scenes that another renderer has measured, of all kinds.
fn measured() -> Vec<PathBuf> {
    let folder = Path::new("tests/data/peer/scenes");
    let entries = std::fs::read_dir(folder).expect("it is there");
    let mut paths: Vec<PathBuf> = entries
        .map(|entry| entry.expect("can be listed").path())
        .filter(|path| path.extension().is_some_and(|e| e == "json"))
        .collect();
    paths.sort();
    assert!(paths.len() >= 30, "{paths:?}");
    paths
}

fn load(path: &Path) -> Scene {
    scene::load(path).unwrap_or_else(|mistakes| panic!("{mistakes}"))
}

fn values(scene: &Scene) -> ParamSet {
    Resident::new(scene).expect("the scene is without mistakes").1
}

/// The bundled scene of all kinds of parameters, without emission, which the media of other tools do not have.
fn kinds() -> Scene {
    let path = Path::new("scenes/kinds.json");
    let text = std::fs::read_to_string(path).expect("it is there");
    let emission = text.lines().filter(|line| !line.contains("\"emission\""));
    let text = emission.collect::<Vec<_>>().join("\n");
    scene::parse(&text, path).unwrap_or_else(|mistakes| panic!("{mistakes}"))
}

/// Other values for all parameters: possible ones, no two entries alike.
fn changed(given: &ParamSet) -> ParamSet {
    let mut params = given.clone();
    for parameter in &mut params.parameters {
        let bends = matches!(
            parameter.quantity,
            Quantity::Index | Quantity::BendingIndex | Quantity::DenserIndex
        );
        let count = parameter.values.len();
        for (i, value) in parameter.values.iter_mut().enumerate() {
            // Numbers that 16 bits would not hold.
            let t = (i as f32 + 0.37) / (count as f32 + 1.0);
            *value = if bends { 1.2 + 0.3 * t } else { 0.2 + 0.7 * t };
        }
        if parameter.kind == Kind::Value {
            let [low, high] = parameter.tuning.map_or([f32::MIN, f32::MAX], |tuning| tuning.bounds);
            parameter.values.iter_mut().for_each(|v| *v = v.clamp(low, high));
        }
    }
    params
}

/// Compares resolved scenes: numbers up to rounding (1e-6), files by their canonical paths.
fn assert_alike(a: &Value, b: &Value, at: &str) {
    match (a, b) {
        (Value::Object(a), Value::Object(b)) => {
            let keys = |map: &serde_json::Map<String, Value>| map.keys().cloned().collect::<Vec<_>>();
            assert_eq!(keys(a), keys(b), "{at}");
            for (key, value) in a {
                assert_alike(value, &b[key], &format!("{at}.{key}"));
            }
        }
        (Value::Array(a), Value::Array(b)) => {
            assert_eq!(a.len(), b.len(), "{at}");
            a.iter().zip(b).for_each(|(a, b)| assert_alike(a, b, at));
        }
        (Value::Number(a), Value::Number(b)) => {
            let [a, b] = [a, b].map(|n| n.as_f64().expect("a number"));
            assert!((a - b).abs() <= 1e-6 * a.abs().max(1.0), "{at}: {a} {b}");
        }
        (Value::String(a), Value::String(b)) if at.ends_with(".filename") => {
            let [a, b] = [a, b].map(|name| std::fs::canonicalize(name).expect("it is there"));
            assert_eq!(a, b, "{at}");
        }
        // `prb` becomes `path`, which renders the same and which all variants of Mitsuba have; `prb_basic` has no other.
        (Value::String(a), Value::String(b)) if at.ends_with(".integrator.type") => {
            assert!(b == if a == "prb" { "path" } else { a }, "{at}: {a} {b}");
        }
        (a, b) => assert_eq!(a, b, "{at}"),
    }
}
