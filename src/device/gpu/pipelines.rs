//! Kernels compiled when they are first used.

use std::collections::HashMap;
use std::path::Path;

use super::adapters::AdapterKind;
use super::contents::Contents;
use super::context::{Context, Pipeline, bind_group_layout};
use super::shaders::{Accumulation, Dialect, FOLDER_VARIABLE, Kernel, Library, UniformReads};
use crate::device::{DeviceError, Result};
use crate::resident::{Resident, Transport};

/// The kernels compiled for a scene.
#[derive(Debug)]
pub(super) struct Pipelines {
    library: Library,
    /// Whether the shaders are the embedded ones, which tests have checked.
    embedded: bool,
    pub dialect: Dialect,
    /// Degree of the spherical harmonics.
    degree: u32,
    contents: Contents,
    /// Whether light is bent inside of a cube, rather than by a slab.
    cube: bool,
    /// By kernel and by what it reads from uniform buffers: stages of a run may differ in that.
    compiled: HashMap<(Kernel, UniformReads), Pipeline>,
}

impl Pipelines {
    /// Nothing compiled yet.
    ///
    /// # Errors
    /// The folder that replaces the embedded shaders cannot be read.
    pub(super) fn new(dialect: Dialect) -> Result<Self> {
        let folder = std::env::var_os(FOLDER_VARIABLE);
        let library = match &folder {
            Some(folder) => Library::from_folder(Path::new(folder)).map_err(DeviceError::Unavailable)?,
            None => Library::embedded(),
        };
        Ok(Self {
            library,
            embedded: folder.is_none(),
            dialect,
            degree: 0,
            contents: Contents::default(),
            cube: false,
            compiled: HashMap::new(),
        })
    }

    /// Adapts to a scene: kernels whose constants or text change will be compiled anew.
    pub(super) fn follow(&mut self, resident: &Resident) {
        let (degree, contents) = (resident.scene.sh_degree, Contents::of(resident));
        let (other_degree, other_contents) = (degree != self.degree, contents != self.contents);
        (self.degree, self.contents) = (degree, contents);
        let cube = matches!(&resident.transport, Transport::Light(light) if light.has_cube());
        let other_optic = std::mem::replace(&mut self.cube, cube) != cube;
        self.compiled.retain(|(kernel, _), _| match kernel {
            Kernel::Render | Kernel::Backpropagate => !other_degree,
            kernel if kernel.traces_light() => !other_optic,
            kernel => !(kernel.follows_paths() && other_contents),
        });
    }

    /// The values of a kernel's constants.
    fn constants(&self, context: &Context, kernel: Kernel) -> Vec<(&'static str, f64)> {
        let is_software = context.summary.kind == AdapterKind::Software;
        match kernel {
            Kernel::Render | Kernel::Backpropagate => vec![
                ("SH_DEGREE", f64::from(self.degree)),
                ("UNROLLS", f64::from(u8::from(!is_software))),
            ],
            kernel if kernel.follows_paths() => self.contents.constants(),
            kernel if kernel.traces_light() => vec![("CUBE", f64::from(u8::from(self.cube)))],
            _ => Vec::new(),
        }
    }

    /// Sets the number of buffers of parameters; if it changes, all kernels will be compiled anew.
    pub(super) fn set_banks(&mut self, banks: usize) {
        if banks != self.dialect.banks {
            self.dialect.banks = banks;
            self.compiled.clear();
        }
    }

    /// Sets how gradients are summed; if that changes, kernels that sum will be compiled anew.
    pub(super) fn set_accumulation(&mut self, accumulation: Accumulation) {
        if accumulation != self.dialect.accumulation {
            self.dialect.accumulation = accumulation;
            self.compiled.retain(|(kernel, _), _| !kernel.sums());
        }
    }

    /// Sets whether ray queries find intersections; if that changes, kernels that follow paths will be compiled anew.
    pub(super) fn set_ray_queries(&mut self, ray_queries: bool) {
        if ray_queries != self.dialect.ray_queries {
            self.dialect.ray_queries = ray_queries;
            self.compiled.retain(|(kernel, _), _| !kernel.follows_paths());
        }
    }

    /// Sets what kernels that follow paths read from uniform buffers. Kernels compiled for other reads are kept; a pass prepares its
    /// own after this.
    pub(super) fn set_reads(&mut self, reads: UniformReads) {
        self.dialect.reads = reads;
    }

    /// Sets whether cameras are refined; if that changes, the replay of a field will be compiled anew.
    pub(super) fn set_views(&mut self, views: bool) {
        if views != self.dialect.views {
            self.dialect.views = views;
            self.compiled.retain(|(kernel, _), _| *kernel != Kernel::Backpropagate);
        }
    }

    /// Compiles a kernel, unless it is there.
    ///
    /// # Errors
    /// The shader is wrong or the driver refuses it.
    pub(super) fn prepare(&mut self, context: &Context, kernel: Kernel) -> Result<()> {
        let key = self.key(kernel);
        if !self.compiled.contains_key(&key) {
            let pipeline = self.compile(context, kernel)?;
            self.compiled.insert(key, pipeline);
        }
        Ok(())
    }

    /// A kernel that has been prepared.
    pub(super) fn get(&self, kernel: Kernel) -> &Pipeline {
        &self.compiled[&self.key(kernel)]
    }

    fn key(&self, kernel: Kernel) -> (Kernel, UniformReads) {
        (kernel, kernel.reads(self.dialect))
    }

    fn compile(&self, context: &Context, kernel: Kernel) -> Result<Pipeline> {
        let composed = self
            .library
            .compose(kernel, self.dialect, self.contents.leaves)
            .map_err(|e| DeviceError::Unavailable(e.to_string()))?;
        if !self.embedded {
            // Says the file and line; wgpu would count lines of the composed text.
            if let Err(e) = wgpu::naga::front::wgsl::parse_str(&composed.text) {
                let line = e.location(&composed.text).map_or(0, |l| l.line_number as usize);
                return Err(DeviceError::Unavailable(format!(
                    "{}: {}",
                    composed.place(line),
                    e.message()
                )));
            }
        }
        let device = &context.device;
        let scope = device.push_error_scope(wgpu::ErrorFilter::Validation);
        let descriptor = wgpu::ShaderModuleDescriptor {
            label: Some(kernel.entry()),
            source: wgpu::ShaderSource::Wgsl(composed.text.into()),
        };
        let module = if self.embedded {
            // SAFETY: the shaders index buffers by places that are clamped to their arrays' sizes, which the host has
            // uploaded beside arrays of at least these sizes; every loop counts towards a bound, goes on along a ray, goes
            // down a tree, or ends by Russian roulette; divisors are sizes, which are never zero where they are divided
            // by. None of this covers the rays of ray queries, whose checks therefore stay.
            unsafe {
                let checks = wgpu::ShaderRuntimeChecks {
                    ray_query_initialization_tracking: true,
                    ..wgpu::ShaderRuntimeChecks::unchecked()
                };
                device.create_shader_module_trusted(descriptor, checks)
            }
        } else {
            device.create_shader_module(descriptor)
        };
        let bindings = kernel.bindings(self.dialect);
        let layout = bind_group_layout(device, kernel, &bindings);
        let pipeline_layout = device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
            label: Some(kernel.entry()),
            bind_group_layouts: &[Some(&layout)],
            immediate_size: 0,
        });
        let constants = self.constants(context, kernel);
        let pipeline = device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
            label: Some(kernel.entry()),
            layout: Some(&pipeline_layout),
            module: &module,
            entry_point: Some("main"),
            compilation_options: wgpu::PipelineCompilationOptions {
                constants: &constants,
                zero_initialize_workgroup_memory: false,
            },
            cache: None,
        });
        if let Some(error) = pollster::block_on(scope.pop()) {
            let name = kernel.entry();
            return Err(DeviceError::Unavailable(format!(
                "the shader {name} was refused by {}: {}",
                context.summary.name,
                error.to_string().trim()
            )));
        }
        context.check()?;
        Ok(Pipeline {
            kernel,
            bindings,
            layout,
            pipeline,
        })
    }
}
