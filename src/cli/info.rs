//! `prbopt info`: shows the program's version and devices, or summarises a scene.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use clap::Args;
use serde_json::{Map, Value, json};

use super::Outcome;
use super::extent::Extent;
use super::shared::{DeviceArgs, SetArgs};
use crate::device::cpu::Cpu;
use crate::device::select::{self, DeviceChoice, Selection};
use crate::device::{Device, scene_bytes};
use crate::io::image;
use crate::kernels::optimizer::Optimizer;
use crate::optimize::estimate::{Estimate, finest};
use crate::optimize::{RenderSettings, render_view};
use crate::output::images::Picture;
use crate::output::progress::bytes;
use crate::output::streams::print_line;
use crate::resident::Resident;
use crate::resident::layout::CHAIN_BYTES;
use crate::scene::{
    Array, Background, Geometry, LightKind, Medium, MeshFormat, Optic, Phase, RadianceField, Scene, Sensor, Slab,
    Surface,
};

/// The longer side of a preview in pixels, and its samples per pixel.
const PREVIEW_SIDE: u32 = 256;
const PREVIEW_SPP: u32 = 16;

/// Arguments of `prbopt info`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  prbopt info\n  prbopt info --json\n  prbopt info lego.json --preview")]
pub struct InfoArgs {
    /// A scene file to check and summarise, or - for standard input
    pub scene: Option<PathBuf>,
    /// Render the first view small and write it beside the scene, as <scene>.preview.png
    #[arg(long, requires = "scene")]
    pub preview: bool,
    #[command(flatten)]
    pub set: SetArgs,
    #[command(flatten)]
    pub device: DeviceArgs,
    /// Print one line of JSON
    #[arg(long)]
    pub json: bool,
}

/// Runs the command.
///
/// # Errors
/// The scene has mistakes, or a mesh cannot be read.
pub fn run(args: InfoArgs) -> Result<Outcome> {
    let Some(path) = &args.scene else {
        print(&program_report()?, args.json);
        return Ok(Outcome::Done);
    };
    let scene = args.set.load(path)?;
    let mut report = scene_report(&scene)?;
    if args.preview {
        report["preview"] = json!(write_preview(scene, &args, path)?.display().to_string());
    }
    print(&report, args.json);
    Ok(Outcome::Done)
}

fn print(report: &Value, json: bool) {
    if json {
        print_line(&report.to_string());
    } else {
        lines(report).iter().for_each(|line| print_line(line));
    }
}

fn program_report() -> Result<Value> {
    let cpu = Cpu::open()?;
    let adapters = select::list();
    let auto = match select::select(&DeviceChoice::default(), &adapters, 0)? {
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

fn scene_report(scene: &Scene) -> Result<Value> {
    let parameters: Map<String, Value> = scene.arrays().into_iter().map(describe).collect();
    let held_out = scene.sensors.iter().filter(|s| s.held_out).count();
    let extent = Extent::of(scene)?;
    let world = &scene.world;
    let surfaces = surfaces(&world.surfaces)?;
    let groups = world
        .groups
        .iter()
        .map(|g| Ok((g.path.clone(), self::surfaces(&g.surfaces)?)));
    let groups = groups.collect::<Result<Map<_, _>>>()?;
    let instances = world
        .instances
        .iter()
        .map(|i| (i.name.clone(), json!(world.groups[i.group].path)));
    let rule = scene.optimize.as_ref();
    let memory = memory(scene)?;
    Ok(json!({
        "scene": scene.path.display().to_string(),
        "bounds": extent.map(|e| json!({ "low": e.low.to_array(), "high": e.high.to_array() })),
        "radiance_field": scene.field.as_ref().map(field),
        "surfaces": surfaces,
        "slab": scene.slab().map(slab),
        "cube": scene.optic.as_ref().and_then(cube),
        "groups": groups,
        "instances": instances.collect::<Map<_, _>>(),
        "media": world.media.iter().map(medium).collect::<Map<_, _>>(),
        "lights": world.lights.iter().map(|l| (l.name.clone(), json!(light_kind(&l.kind)))).collect::<Map<_, _>>(),
        "background": match &scene.background {
            Background::None => "black",
            Background::Constant { .. } => "constant",
            Background::Envmap { .. } => "envmap",
        },
        "sensors": scene.sensors.len(),
        "held_out": held_out,
        "views": views(scene),
        "parameters": parameters,
        "iterations": rule.map(|o| o.iterations),
        "stages": rule.map(|o| o.stages.len() + 1),
        "memory_bytes": memory.kept,
        "peak_memory_bytes": memory.peak,
        "waves_of_a_gpu_bytes": memory.waves,
        "chain_of_a_gpu_invocation_bytes": chain(scene),
        "warnings": scene.all_warnings().collect::<Vec<_>>(),
    }))
}

fn field(field: &RadianceField) -> Value {
    json!({
        "sh_degree": field.sh_degree,
        "sigma_t": field.sigma_t.path,
        "sh_coeffs": field.sh_coeffs.path,
    })
}

fn cube(optic: &Optic) -> Option<Value> {
    let Optic::Cube(cube) = optic else { return None };
    Some(json!({
        "name": cube.name,
        "step": cube.step,
        "refraction": cube.refracts,
        "unit": cube.to_world.matrix3.x_axis.length(),
    }))
}

fn slab(slab: &Slab) -> Value {
    json!({
        "name": slab.name,
        "thickness": slab.thickness,
        "index": slab.eta,
        "unit": slab.to_world.matrix3.x_axis.length(),
    })
}

fn surfaces(list: &[Surface]) -> Result<Value> {
    list.iter().map(surface).collect::<Result<_>>().map(Value::Object)
}

fn surface(surface: &Surface) -> Result<(String, Value)> {
    let form = match &surface.geometry {
        Geometry::Cube => "cube".to_owned(),
        Geometry::Sphere { .. } => "sphere".to_owned(),
        Geometry::Rectangle => "rectangle".to_owned(),
        Geometry::Disk => "disk".to_owned(),
        Geometry::Cylinder { .. } => "cylinder".to_owned(),
        Geometry::Mesh {
            format: MeshFormat::Grid([x, y]),
            ..
        } => format!("grid of {x} × {y} squares"),
        Geometry::Mesh { path, .. } => format!("mesh {}", path.display()),
        Geometry::Distances { path, .. } => format!("distances {}", path.display()),
    };
    let extent = Extent::of_surface(surface)?;
    let description = json!({
        "form": form,
        "bsdf": surface.bsdf.name(),
        "emits": surface.emitter.is_some(),
        "displacement": surface.displacement.as_ref().map(|displacement| &displacement.array().path),
        "low": extent.low.to_array(),
        "high": extent.high.to_array(),
    });
    Ok((surface.name.clone(), description))
}

fn medium(medium: &Medium) -> (String, Value) {
    let description = json!({
        "sigma_t": if medium.sigma_t.constant { "constant" } else { "grid" },
        "albedo": if medium.albedo.constant { "constant" } else { "grid" },
        "emits": medium.emission.is_some(),
        "scale": medium.scale,
        "phase": match medium.phase {
            Phase::Isotropic => "isotropic",
            Phase::Hg { .. } => "hg",
            Phase::Rayleigh => "rayleigh",
            Phase::Blend { .. } => "blendphase",
        },
    });
    (medium.path.clone(), description)
}

fn light_kind(kind: &LightKind) -> &'static str {
    match kind {
        LightKind::Point { .. } => "point",
        LightKind::Spot { .. } => "spot",
        LightKind::Directional { .. } => "directional",
        LightKind::Projector { .. } => "projector",
    }
}

/// Sizes of the views, and the number of views of each size.
fn views(scene: &Scene) -> Value {
    let mut sizes: Vec<([u32; 2], usize)> = Vec::new();
    for sensor in &scene.sensors {
        let size = [sensor.width, sensor.height];
        match sizes.iter_mut().find(|(s, _)| *s == size) {
            Some((_, count)) => *count += 1,
            None => sizes.push((size, 1)),
        }
    }
    let sizes = sizes
        .into_iter()
        .map(|([w, h], count)| (format!("{w}×{h} pixels"), json!(count)));
    Value::Object(sizes.collect())
}

/// The memory that a scene needs, in bytes.
struct Memory {
    /// What a run keeps on a CPU at its finest resolution, or values and scene if nothing is optimised.
    kept: u64,
    /// The largest resident size of such a run's process.
    peak: Option<u64>,
    /// The waves in which a GPU would follow the run's paths, if it would.
    waves: Option<u64>,
}

/// The memory that a run of the scene needs on a CPU, or its values and records if it optimises nothing.
fn memory(scene: &Scene) -> Result<Memory> {
    if let Some(settings) = &scene.optimize {
        let (estimate, waves) = Estimate::of_scene(scene, settings, &Cpu::open()?)?;
        let peak = Some(estimate.peak());
        let kept = estimate.total();
        return Ok(Memory { kept, peak, waves });
    }
    let (resident, params) = Resident::new(scene)?;
    let values: usize = params.parameters.iter().map(|p| p.values.len()).sum();
    let shapes = finest(&params, &[], None);
    Ok(Memory {
        kept: 4 * values as u64 + scene_bytes(&resident, &params, &shapes),
        peak: None,
        waves: None,
    })
}

/// Bytes of GPU memory for the chain of vertices of each path at work; None if the integrator keeps no chain.
fn chain(scene: &Scene) -> Option<u32> {
    let integrator = &scene.integrator;
    (integrator.attached && integrator.inverted.is_none()).then_some(CHAIN_BYTES)
}

fn describe(array: &Array) -> (String, Value) {
    let tuning = array.tuning;
    // The shortest decimal of the f32: widened to f64 it would have 17 digits.
    let written = |v: f32| v.to_string().parse::<f64>().ok();
    let finite = |v: f32| v.is_finite().then(|| written(v));
    let description = json!({
        "size": array.shape.size,
        "channels": array.shape.channels,
        "optimized": tuning.is_some(),
        "learning_rate": tuning.map(|t| written(t.learning_rate)),
        "least": tuning.and_then(|t| finite(t.bounds[0])),
        "most": tuning.and_then(|t| finite(t.bounds[1])),
        "smoothing": tuning.map(|t| written(t.smoothing)),
    });
    (array.path.clone(), description)
}

/// Renders the first view small and writes it beside the scene.
fn write_preview(scene: Scene, args: &InfoArgs, path: &Path) -> Result<PathBuf> {
    let Some(sensor) = scene.sensors.first().cloned() else {
        bail!(
            "{}: has no sensor to render; add one, or leave --preview out",
            path.display()
        );
    };
    let shrink = f64::from(PREVIEW_SIDE) / f64::from(sensor.width.max(sensor.height));
    let shrunk = |n: u32| (f64::from(n) * shrink).round().max(1.0) as u32;
    let [width, height] = [shrunk(sensor.width), shrunk(sensor.height)];
    let [x, y] = [width as f32 / sensor.width as f32, height as f32 / sensor.height as f32];
    let small = Sensor {
        width,
        height,
        focal: [sensor.focal[0] * x, sensor.focal[1] * y],
        center: [sensor.center[0] * x, sensor.center[1] * y],
        reference: None,
        ..sensor
    };
    let file = path.with_extension("preview.png");
    let mut scene = scene;
    scene.sensors = vec![small.clone()];
    let (resident, mut params) = Resident::new(&scene)?;
    params.parameters.iter_mut().for_each(|p| p.tuning = None);
    let mut device = args.device.open()?;
    device.load(resident, params, Optimizer::Sgd { momentum: 0.0 })?;
    let look = RenderSettings {
        seed: 0,
        iteration: 0,
        spp: PREVIEW_SPP,
    };
    let pixels = render_view(device.as_mut(), 0, look)?;
    image::write_png(&file, &Picture::of(&small, pixels).coded())?;
    Ok(file)
}

/// Formats JSON as a tree, without null and empty values.
fn lines(value: &Value) -> Vec<String> {
    match value {
        Value::Object(members) => {
            let shown: Vec<_> = members.iter().filter(|(_, value)| !is_nothing(value)).collect();
            let last = shown.len().saturating_sub(1);
            shown
                .iter()
                .enumerate()
                .flat_map(|(i, (key, value))| branch(member(key, value), i == last))
                .collect()
        }
        Value::Array(items) => {
            let last = items.len().saturating_sub(1);
            items
                .iter()
                .enumerate()
                .flat_map(|(i, item)| branch(named(i, item), i == last))
                .collect()
        }
        other => vec![text(other)],
    }
}

fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        _ => false,
    }
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// An item of a list, headed by its name if it has one, else by its number.
fn named(index: usize, item: &Value) -> Vec<String> {
    match item {
        Value::Object(members) => {
            let name = members.get("name").map_or_else(|| index.to_string(), text);
            let mut all = vec![name];
            all.extend(lines(
                &members
                    .iter()
                    .filter(|(key, _)| *key != "name")
                    .map(|(k, v)| (k.clone(), v.clone()))
                    .collect::<Map<_, _>>()
                    .into(),
            ));
            all
        }
        other => lines(other),
    }
}

fn member(key: &str, value: &Value) -> Vec<String> {
    match value {
        Value::Array(items) if items.iter().all(Value::is_number) => {
            let numbers: Vec<String> = items.iter().map(ToString::to_string).collect();
            let joint = if key == "size" { " × " } else { ", " };
            vec![format!("{key}: {}", numbers.join(joint))]
        }
        Value::Object(_) | Value::Array(_) => {
            let mut all = vec![key.to_owned()];
            all.extend(lines(value));
            all
        }
        Value::Number(count) if key.ends_with("_bytes") => {
            let size = count.as_u64().map_or_else(|| count.to_string(), bytes);
            vec![format!("{}: {size}", key.trim_end_matches("_bytes"))]
        }
        other => vec![format!("{key}: {}", text(other))],
    }
}

/// Indents lines under a branch of the tree.
fn branch(lines: Vec<String>, last: bool) -> impl Iterator<Item = String> {
    let (first, rest) = if last { ("└─ ", "   ") } else { ("├─ ", "│  ") };
    let hung = move |(i, line)| format!("{}{line}", if i == 0 { first } else { rest });
    lines.into_iter().enumerate().map(hung)
}
