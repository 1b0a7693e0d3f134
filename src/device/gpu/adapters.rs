//! The adapters that a machine has.

use super::Options;
use super::context::Context;
use crate::device::Result;

/// The features that shaders need to add 64-bit integers atomically.
pub(super) const WIDE_ATOMICS: wgpu::Features =
    wgpu::Features::SHADER_INT64.union(wgpu::Features::SHADER_INT64_ATOMIC_ALL_OPS);

/// Name, kind, limits and features of an adapter.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct AdapterSummary {
    pub name: String,
    /// `vulkan`, `metal` or `dx12`.
    pub backend: String,
    pub kind: AdapterKind,
    pub driver: String,
    /// Most bytes that a shader can see of one array.
    pub max_binding_bytes: u64,
    /// Most bytes of one buffer.
    pub max_buffer_bytes: u64,
    /// Most arrays that a shader can write or read.
    pub max_storage_buffers: u32,
    /// Whether it adds floats atomically.
    pub float_atomics: bool,
    /// Whether it adds whole numbers of 64 bits atomically.
    pub wide_atomics: bool,
    /// Whether it has sums over the invocations of a subgroup.
    pub subgroups: bool,
    /// Whether it has ray queries, by which it searches a hierarchy of its own for intersections.
    pub ray_queries: bool,
}

/// The kind of an adapter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AdapterKind {
    DiscreteGpu,
    IntegratedGpu,
    VirtualGpu,
    /// A software driver, which runs shaders on the CPU.
    Software,
    Other,
}

impl AdapterKind {
    /// Whether `auto` would take it.
    pub fn is_hardware(self) -> bool {
        matches!(self, Self::DiscreteGpu | Self::IntegratedGpu | Self::VirtualGpu)
    }

    /// In words.
    pub fn describe(self) -> &'static str {
        match self {
            Self::DiscreteGpu => "discrete GPU",
            Self::IntegratedGpu => "integrated GPU",
            Self::VirtualGpu => "virtual GPU",
            Self::Software => "software",
            Self::Other => "of unknown kind",
        }
    }
}

/// The adapters of this machine, ready to be opened.
#[derive(Debug)]
pub struct Adapters {
    adapters: Vec<wgpu::Adapter>,
    summaries: Vec<AdapterSummary>,
}

impl Adapters {
    /// Asks the drivers, in their order. None on a machine without a graphics driver.
    pub fn find() -> Self {
        let instance = wgpu::Instance::new(wgpu::InstanceDescriptor {
            backends: wgpu::Backends::VULKAN | wgpu::Backends::METAL | wgpu::Backends::DX12,
            ..wgpu::InstanceDescriptor::new_without_display_handle()
        });
        let adapters = pollster::block_on(instance.enumerate_adapters(wgpu::Backends::all()));
        let summaries = adapters.iter().map(summarise).collect();
        Self { adapters, summaries }
    }

    /// The adapters' summaries, in order.
    pub fn summaries(&self) -> &[AdapterSummary] {
        &self.summaries
    }

    /// Opens an adapter with all features that are used; ray queries only if they are wanted.
    pub(super) fn open(&self, index: usize, options: &Options) -> Result<Context> {
        Context::open(&self.adapters[index], self.summaries[index].clone(), options)
    }
}

fn summarise(adapter: &wgpu::Adapter) -> AdapterSummary {
    let (info, limits) = (adapter.get_info(), adapter.limits());
    AdapterSummary {
        name: info.name,
        backend: info.backend.to_str().to_owned(),
        kind: match info.device_type {
            wgpu::DeviceType::DiscreteGpu => AdapterKind::DiscreteGpu,
            wgpu::DeviceType::IntegratedGpu => AdapterKind::IntegratedGpu,
            wgpu::DeviceType::VirtualGpu => AdapterKind::VirtualGpu,
            wgpu::DeviceType::Cpu => AdapterKind::Software,
            wgpu::DeviceType::Other => AdapterKind::Other,
        },
        driver: format!("{} {}", info.driver, info.driver_info).trim().to_owned(),
        max_binding_bytes: limits.max_storage_buffer_binding_size,
        max_buffer_bytes: limits.max_buffer_size,
        max_storage_buffers: limits.max_storage_buffers_per_shader_stage,
        float_atomics: adapter.features().contains(wgpu::Features::SHADER_FLOAT32_ATOMIC),
        wide_atomics: adapter.features().contains(WIDE_ATOMICS),
        subgroups: adapter.features().contains(wgpu::Features::SUBGROUP),
        ray_queries: adapter.features().contains(wgpu::Features::EXPERIMENTAL_RAY_QUERY),
    }
}
