//! BSDFs in WGSL: the same numbers as in Rust's f32 within rounding, on the first adapter.
//!
//! Without an adapter the test prints that it was skipped; with `PRBOPT_REQUIRE_GPU=1` it fails instead.

use std::collections::HashMap;

use prbopt::device::gpu::preprocess::compose;
use prbopt::device::gpu::shaders::MODULES;
use prbopt::transport::number::rgb::Rgb;
use prbopt::transport::scene::bsdf::local::{Lobe, outer};

use super::chi_square::Draws;
use super::models::{Kind, Model, directions, models};

/// Numbers in a row of inputs and in a row of results.
const ROW: usize = 40;
const RESULT: usize = 72;
/// The most parameters that a BSDF has.
const PARAMETERS: usize = 14;
const WEIGHTS: [f32; 3] = [0.7, -0.4, 1.1];
const LOBES: [Lobe; 3] = [Lobe::Reflection, Lobe::Transmission, Lobe::Null];

/// The kernel of a kind of BSDF. Parameters come in the order of the struct's fields, which `store` writes back.
fn kernel(kind: Kind) -> String {
    let facets = "u32(inputs[at + 14u]), inputs[at + 15u] > 0.0";
    let nonlinear = "inputs[at + 16u] > 0.0";
    let weight = "inputs[at + 17u]";
    // Struct, prefix of its functions, construction, fields.
    let (name, prefix, make, fields) = match kind {
        Kind::Conductor => ("Conductor", "conductor", "v(0), v(3), v(6)".into(), "eta k specular"),
        Kind::RoughConductor => (
            "RoughConductor",
            "rough_conductor",
            format!("v(0), v(3), v(6), x(9), x(10), {facets}"),
            "eta k specular alpha_u alpha_v",
        ),
        Kind::Dielectric => (
            "Dielectric",
            "dielectric",
            "x(0), v(1), v(4)".into(),
            "eta reflection transmission",
        ),
        Kind::ThinDielectric => (
            "ThinDielectric",
            "thin_dielectric",
            "x(0), v(1), v(4)".into(),
            "eta reflection transmission",
        ),
        Kind::RoughDielectric => (
            "RoughDielectric",
            "rough_dielectric",
            format!("x(0), x(1), x(2), v(3), v(6), {facets}"),
            "eta alpha_u alpha_v reflection transmission",
        ),
        Kind::Plastic => (
            "Plastic",
            "plastic",
            format!("x(0), v(1), v(4), {nonlinear}, {weight}"),
            "eta diffuse specular",
        ),
        Kind::RoughPlastic => (
            "RoughPlastic",
            "rough_plastic",
            format!("x(0), x(1), v(2), v(5), {nonlinear}, {facets}, {weight}"),
            "eta alpha diffuse specular",
        ),
        Kind::Principled => (
            "Principled",
            "principled",
            "v(0), x(3), x(4), x(5), x(6), x(7), x(8), x(9), x(10), x(11), x(12), x(13), vec3f(1.0), inputs[at + 18u]"
                .into(),
            "base_color roughness anisotropic metallic spec_trans eta spec_tint sheen sheen_tint flatness clearcoat \
             clearcoat_gloss",
        ),
        Kind::PrincipledThin => (
            "PrincipledThin",
            "principled_thin",
            "v(0), x(3), x(4), x(5), x(6), x(7), x(8), x(9), x(10), x(11), vec4f(1.0), inputs[at + 18u]".into(),
            "base_color roughness anisotropic spec_trans eta spec_tint sheen sheen_tint flatness diff_trans",
        ),
    };
    // `v(3)` is the vector from parameter 3 on, `x(3)` that parameter.
    let mut made = make;
    for i in 0..PARAMETERS {
        let vector = format!(
            "vec3f(inputs[at + {i}u], inputs[at + {}u], inputs[at + {}u])",
            i + 1,
            i + 2
        );
        made = made.replace(&format!("v({i})"), &vector);
        made = made.replace(&format!("x({i})"), &format!("inputs[at + {i}u]"));
    }
    let store = |first: &str| -> String {
        let mut lines = format!("var place = to + {first};\n");
        for field in fields.split_whitespace() {
            let colors = ["eta", "k"].contains(&field) && name.contains("Conductor");
            let vector = colors || ["specular", "reflection", "transmission", "diffuse", "base_color"].contains(&field);
            lines += &if vector {
                format!("for (var c = 0u; c < 3u; c++) {{ outputs[place] = g.{field}[c]; place++; }}\n")
            } else {
                format!("outputs[place] = g.{field}; place++;\n")
            };
        }
        lines
    };
    let smooth = !matches!(kind, Kind::Conductor | Kind::Dielectric | Kind::ThinDielectric);
    let discrete = !smooth || kind == Kind::Plastic;
    let [coat, transmittance, slopes] = if kind == Kind::RoughPlastic {
        [
            "coat, ",
            "inputs[at + 37u], ",
            "vec2f(inputs[at + 38u], inputs[at + 39u]), ",
        ]
    } else {
        [""; 3]
    };
    let mut body = String::new();
    if smooth {
        body += &format!(
            "let value = {prefix}_eval(p, {coat}wi, wo);
            outputs[to] = value.x; outputs[to + 1u] = value.y; outputs[to + 2u] = value.z;
            outputs[to + 3u] = {prefix}_pdf(p, {transmittance}wi, wo);
            {{ let g = {prefix}_eval_adjoint(p, {coat}wi, wo, d); {} }}
            let by = {prefix}_gradients(p, {coat}{slopes}wi, wo, d);
            let about_wi = cross(wi, by.wi);
            let about_wo = cross(wo, by.wo);
            for (var c = 0u; c < 3u; c++) {{
                outputs[to + 64u + c] = about_wi[c];
                outputs[to + 67u + c] = about_wo[c];
            }}\n",
            store("10u")
        );
    }
    if discrete {
        body += &format!(
            "for (var lobe = 1u; lobe < 4u; lobe++) {{
            let value = {prefix}_discrete(p, wi, lobe);
            let first = 24u + (lobe - 1u) * 13u;
            outputs[to + first] = value.x; outputs[to + first + 1u] = value.y; outputs[to + first + 2u] = value.z;
            let g = {prefix}_discrete_adjoint(p, wi, lobe, d); {} }}\n",
            store("first + 3u")
        );
    }
    let imports = ["conductor", "dielectric", "plastic", "principled", "principledthin"]
        .map(|file| format!("#import transport/scene/bsdf/{file}\n"))
        .concat();
    format!(
        "#import common/layout\n#import common/math\n{imports}
@group(0) @binding(20) var<storage, read> inputs: array<f32>;
@group(0) @binding(21) var<storage, read_write> outputs: array<f32>;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u) {{
    let at = id.x * {ROW}u;
    let to = id.x * {RESULT}u;
    if at >= arrayLength(&inputs) {{ return; }}
    let p = {name}({made});
    let wi = vec3f(inputs[at + 19u], inputs[at + 20u], inputs[at + 21u]);
    let wo = vec3f(inputs[at + 22u], inputs[at + 23u], inputs[at + 24u]);
    let coat = Coat(
        vec3f(inputs[at + 28u], inputs[at + 29u], inputs[at + 30u]),
        vec3f(inputs[at + 31u], inputs[at + 32u], inputs[at + 33u]),
        vec3f(inputs[at + 34u], inputs[at + 35u], inputs[at + 36u]),
    );
    let d = vec3f(0.7, -0.4, 1.1);
    {body}
    let drawn = {prefix}_sample(p, {transmittance}wi, inputs[at + 25u], vec2f(inputs[at + 26u], inputs[at + 27u]));
    outputs[to + 4u] = drawn.direction.x;
    outputs[to + 5u] = drawn.direction.y;
    outputs[to + 6u] = drawn.direction.z;
    outputs[to + 7u] = drawn.pdf;
    outputs[to + 8u] = f32(drawn.lobe);
    outputs[to + 9u] = drawn.eta;
}}
"
    )
}

/// A case for both languages.
struct Row {
    model: Model,
    wi: [f32; 3],
    wo: [f32; 3],
    u1: f32,
    u2: [f32; 2],
}

impl Row {
    fn inputs(&self) -> Vec<f32> {
        let model = &self.model;
        let mut row = model.parameters.clone();
        row.resize(PARAMETERS, 0.0);
        let flag = |set: bool| f32::from(u8::from(set));
        row.extend([
            model.distribution as u32 as f32,
            flag(model.visible),
            flag(model.nonlinear),
            model.specular_weight,
            model.least_share,
        ]);
        row.extend(self.wi.iter().chain(&self.wo));
        row.extend([self.u1, self.u2[0], self.u2[1]]);
        if let Some(table) = &model.table {
            let coat = table.coat(model.parameters[1], model.parameters[0], self.wi, self.wo);
            row.extend([coat.values, coat.by_alpha, coat.by_eta].concat());
            row.push(table.transmittance(self.wi[2]));
            row.extend(coat.by_cosine);
        }
        row.resize(ROW, 0.0);
        row
    }

    /// What Rust computes: groups of numbers, each with its place in a row of results.
    fn expected(&self) -> Vec<(usize, Vec<f32>)> {
        let (model, p, d) = (&self.model, &self.model.parameters[..], Rgb(WEIGHTS));
        let mut groups = Vec::new();
        if model.has_smooth_lobe() {
            groups.push((0, model.eval(p, self.wi, self.wo).0.to_vec()));
            groups.push((3, vec![model.pdf(self.wi, self.wo)]));
            groups.push((10, model.eval_adjoint(p, self.wi, self.wo, d)));
            let [by_wi, by_wo] = model.gradients(p, self.wi, self.wo, d);
            groups.push((64, [outer(self.wi, by_wi), outer(self.wo, by_wo)].concat()));
        }
        if !model.has_smooth_lobe() || model.kind == Kind::Plastic {
            for (i, lobe) in LOBES.into_iter().enumerate() {
                groups.push((24 + 13 * i, model.discrete(p, self.wi, lobe).0.to_vec()));
                groups.push((27 + 13 * i, model.discrete_adjoint(p, self.wi, lobe, d)));
            }
        }
        match model.sample(self.wi, self.u1, self.u2) {
            Some(sample) => {
                groups.push((4, sample.direction.to_vec()));
                groups.push((7, vec![sample.pdf]));
                let lobe = LOBES.iter().position(|lobe| *lobe == sample.lobe).map_or(0, |i| i + 1);
                groups.push((8, vec![lobe as f32, sample.eta]));
            }
            None => groups.push((7, vec![0.0])),
        }
        groups
    }
}

fn rows(kind: Kind) -> Vec<Row> {
    let mut draws = Draws::new(17);
    let mut rows = Vec::new();
    for model in models().into_iter().filter(|model| model.kind == kind) {
        for wi in directions(&[0.95, 0.4, 0.08, -0.7, -0.2]) {
            for turn in 0..12 {
                let (u1, u2) = (draws.next(), [draws.next(), draws.next()]);
                let around = directions(&[0.9, 0.3, -0.8, -0.1])[turn % 4];
                // Two thirds of the directions are sampled ones, near the peaks of the lobes.
                let near = model
                    .sample(wi, u1, u2)
                    .filter(|_| turn > 3)
                    .map(|sample| sample.direction);
                let model = model.clone();
                let wo = near.unwrap_or(around);
                rows.push(Row { model, wi, wo, u1, u2 });
            }
        }
    }
    rows
}

fn device() -> Option<(wgpu::Device, wgpu::Queue)> {
    let instance = wgpu::Instance::new(wgpu::InstanceDescriptor {
        backends: wgpu::Backends::VULKAN | wgpu::Backends::METAL | wgpu::Backends::DX12,
        ..wgpu::InstanceDescriptor::new_without_display_handle()
    });
    let adapters = pollster::block_on(instance.enumerate_adapters(wgpu::Backends::all()));
    let Some(adapter) = adapters.first() else {
        assert!(
            std::env::var_os("PRBOPT_REQUIRE_GPU").is_none_or(|v| v != "1"),
            "PRBOPT_REQUIRE_GPU is set, but there is no adapter"
        );
        eprintln!("skipped: this machine has no GPU adapter");
        return None;
    };
    Some(pollster::block_on(adapter.request_device(&wgpu::DeviceDescriptor::default())).expect("it opens"))
}

fn entry(binding: u32, buffer: &wgpu::Buffer) -> wgpu::BindGroupEntry<'_> {
    wgpu::BindGroupEntry {
        binding,
        resource: buffer.as_entire_binding(),
    }
}

/// Runs a kernel over rows.
fn run(device: &wgpu::Device, queue: &wgpu::Queue, text: &str, inputs: &[f32], count: usize) -> Vec<f32> {
    let module = device.create_shader_module(wgpu::ShaderModuleDescriptor {
        label: None,
        source: wgpu::ShaderSource::Wgsl(text.into()),
    });
    let pipeline = device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
        label: None,
        layout: None,
        module: &module,
        entry_point: Some("main"),
        compilation_options: wgpu::PipelineCompilationOptions::default(),
        cache: None,
    });
    let buffer = |size: usize, usage| {
        device.create_buffer(&wgpu::BufferDescriptor {
            label: None,
            size: (size * 4) as u64,
            usage,
            mapped_at_creation: false,
        })
    };
    use wgpu::BufferUsages as U;
    let source = buffer(inputs.len(), U::STORAGE | U::COPY_DST);
    let (results, size) = (buffer(count * RESULT, U::STORAGE | U::COPY_SRC), count * RESULT * 4);
    let staging = buffer(count * RESULT, U::MAP_READ | U::COPY_DST);
    queue.write_buffer(&source, 0, bytemuck::cast_slice(inputs));
    let group = device.create_bind_group(&wgpu::BindGroupDescriptor {
        label: None,
        layout: &pipeline.get_bind_group_layout(0),
        entries: &[entry(20, &source), entry(21, &results)],
    });
    let mut encoder = device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
    {
        let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
        pass.set_pipeline(&pipeline);
        pass.set_bind_group(0, &group, &[]);
        pass.dispatch_workgroups(count.div_ceil(64) as u32, 1, 1);
    }
    encoder.copy_buffer_to_buffer(&results, 0, &staging, 0, size as u64);
    queue.submit([encoder.finish()]);
    staging.map_async(wgpu::MapMode::Read, 0..size as u64, |mapped| mapped.expect("it maps"));
    device.poll(wgpu::PollType::wait_indefinitely()).expect("it ends");
    let bytes = staging.get_mapped_range(0..size as u64).expect("it is mapped");
    bytemuck::pod_collect_to_vec(&bytes)
}

/// Largest difference, relative to the mean of the number and the largest of its group (plus 1e-3). A compiler may fuse products
/// and sums; on lavapipe 1e-6 is left. A coefficient that is 2e-3 off is seen.
const TOLERANCE: f32 = 1e-4;

#[test]
fn shaders_compute_the_same_numbers() {
    let Some((device, queue)) = device() else { return };
    let library: HashMap<String, String> = MODULES
        .iter()
        .map(|(path, text)| ((*path).to_owned(), (*text).to_owned()))
        .collect();
    let mut mistakes = Vec::new();
    for kind in Kind::ALL {
        let mut modules = library.clone();
        modules.insert("bsdf_test".into(), kernel(kind));
        let composed = compose(&modules, "bsdf_test", &["REPLAY", "SLOPES"]).unwrap_or_else(|e| panic!("{e}"));
        let rows = rows(kind);
        let inputs: Vec<f32> = rows.iter().flat_map(Row::inputs).collect();
        let found = run(&device, &queue, &composed.text, &inputs, rows.len());
        let (mut compared, mut worst) = (0, 0.0f32);
        for (row, found) in rows.iter().zip(found.chunks_exact(RESULT)) {
            for (place, expected) in row.expected() {
                let found = &found[place..place + expected.len()];
                let size = expected.iter().fold(0.0f32, |size, x| size.max(x.abs()));
                for (a, b) in found.iter().zip(&expected) {
                    let off = (a - b).abs() / (0.5 * b.abs() + 0.5 * size + 1e-3);
                    worst = worst.max(off);
                    compared += usize::from(*b != 0.0);
                    if off.is_nan() || off >= TOLERANCE {
                        mistakes.push(format!(
                            "{}, {:?} {:?}, place {place}: {found:?}, not {expected:?}",
                            row.model.label(),
                            row.wi,
                            row.wo
                        ));
                        break;
                    }
                }
            }
        }
        println!("{kind:?}: {compared} numbers, worst {worst:.1e}");
        assert!(compared > 500, "{kind:?}: only {compared} numbers are not zero");
    }
    assert!(
        mistakes.is_empty(),
        "{} mistakes:\n{}",
        mistakes.len(),
        mistakes.join("\n")
    );
}
