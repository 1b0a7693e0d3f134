//! `prbopt info`: what this program is and where it would run.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use serde_json::{Map, Value, json};

use super::Outcome;
use crate::device::Device;
use crate::device::cpu::Cpu;
use crate::device::select::{self, DeviceChoice, Selection};
use crate::output::progress::{bytes, print_line};
use crate::scene::{self, Array, Scene};

/// Arguments of `prbopt info`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  prbopt info\n  prbopt info --json\n  prbopt info lego.json")]
pub struct InfoArgs {
    /// A scene file to check and summarise
    pub scene: Option<PathBuf>,
    /// Print one line of JSON
    #[arg(long)]
    pub json: bool,
}

/// Runs the command.
///
/// # Errors
/// The scene has mistakes.
pub fn run(args: InfoArgs) -> Result<Outcome> {
    let report = match &args.scene {
        Some(path) => scene_report(&scene::load(path)?),
        None => program_report()?,
    };
    if args.json {
        print_line(&report.to_string());
    } else {
        lines(&report).iter().for_each(|line| print_line(line));
    }
    Ok(Outcome::Done)
}

fn program_report() -> Result<Value> {
    let cpu = Cpu::new();
    let adapters = select::list();
    let auto = match select::select(&DeviceChoice::default(), &adapters)? {
        Selection::Cpu => "cpu".to_owned(),
        Selection::Gpu(index) => format!("gpu: {}", adapters[index].name),
    };
    let cpu = json!({
        "kind": "cpu",
        "name": cpu.info().name,
        "threads": rayon::current_num_threads(),
        "vector_level": cpu.vector_level(),
    });
    let gpus = adapters.iter().map(|adapter| {
        let mut members = Map::from_iter([("kind".to_owned(), json!("gpu"))]);
        let described = serde_json::to_value(adapter).unwrap_or_default();
        for (key, value) in described.as_object().into_iter().flatten() {
            let key = if key == "kind" { "adapter_kind" } else { key };
            members.insert(key.to_owned(), value.clone());
        }
        Value::Object(members)
    });
    Ok(json!({
        "version": env!("CARGO_PKG_VERSION"),
        "auto": auto,
        "devices": std::iter::once(cpu).chain(gpus).collect::<Vec<_>>(),
    }))
}

fn scene_report(scene: &Scene) -> Value {
    let parameters: Map<String, Value> = scene.arrays().into_iter().map(describe).collect();
    let held_out = scene.sensors.iter().filter(|s| s.held_out).count();
    json!({
        "scene": scene.path,
        "sensors": scene.sensors.len(),
        "held_out": held_out,
        "parameters": parameters,
        "iterations": scene.optimize.as_ref().map(|o| o.iterations),
        "stages": scene.optimize.as_ref().map(|o| o.stages.len() + 1),
        "warnings": scene.warnings,
    })
}

fn describe(array: &Array) -> (String, Value) {
    let description = json!({
        "size": array.shape.size,
        "channels": array.shape.channels,
        "optimized": array.tuning.is_some(),
    });
    (array.path.clone(), description)
}

/// JSON as an indented list, without what is null or empty.
fn lines(value: &Value) -> Vec<String> {
    match value {
        Value::Object(members) => members.iter().flat_map(|(key, value)| member(key, value)).collect(),
        Value::Array(items) => items.iter().flat_map(|item| hang("- ", lines(item))).collect(),
        Value::String(text) => vec![text.clone()],
        other => vec![other.to_string()],
    }
}

fn member(key: &str, value: &Value) -> Vec<String> {
    match value {
        Value::Null => Vec::new(),
        Value::Array(items) if items.is_empty() => Vec::new(),
        Value::Array(items) if items.iter().all(Value::is_number) => {
            let numbers: Vec<String> = items.iter().map(ToString::to_string).collect();
            vec![format!("{key}: {}", numbers.join(" × "))]
        }
        Value::Object(_) | Value::Array(_) => {
            let mut all = vec![format!("{key}:")];
            all.extend(hang("  ", lines(value)));
            all
        }
        Value::Number(count) if key.ends_with("_bytes") => {
            let size = count.as_u64().map_or_else(|| count.to_string(), bytes);
            vec![format!("{}: {size}", key.trim_end_matches("_bytes"))]
        }
        Value::String(text) => vec![format!("{key}: {text}")],
        other => vec![format!("{key}: {other}")],
    }
}

/// Lines behind a mark of two characters, the first one's only.
fn hang(mark: &str, lines: Vec<String>) -> impl Iterator<Item = String> {
    let behind = move |(i, line)| format!("{}{line}", if i == 0 { mark } else { "  " });
    lines.into_iter().enumerate().map(behind)
}
