//! Kernels compiled when they are first used.

use std::collections::HashMap;
use std::path::Path;

use super::context::{Context, Pipeline, bind_group_layout};
use super::shaders::{Constant, Dialect, FOLDER_VARIABLE, Kernel, Leaves, Library};
use crate::device::{DeviceError, Result};
use crate::resident::{Resident, Transport};

/// The kernels compiled for a scene.
#[derive(Debug)]
pub(super) struct Pipelines {
    library: Library,
    /// Whether the texts are those that the tests have seen.
    embedded: bool,
    pub dialect: Dialect,
    degree: u32,
    bvh: bool,
    leaves: Leaves,
    compiled: HashMap<Kernel, Pipeline>,
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
            bvh: false,
            leaves: Leaves::default(),
            compiled: HashMap::new(),
        })
    }

    /// Follows a scene: what depends on its figures will be compiled anew.
    pub(super) fn follow(&mut self, resident: &Resident) {
        let degree = resident.scene.sh_degree;
        let (bvh, leaves) = match &resident.transport {
            Transport::Field(_) | Transport::Splats(_) => (false, Leaves::default()),
            Transport::Paths(paths) => (!paths.bvh.nodes.is_empty(), Leaves::of(&paths.bsdfs)),
        };
        let other_degree = degree != self.degree;
        let other_paths = (bvh, leaves) != (self.bvh, self.leaves);
        (self.degree, self.bvh, self.leaves) = (degree, bvh, leaves);
        self.compiled.retain(|kernel, _| match kernel.constant() {
            Some(Constant::Degree) => !other_degree,
            Some(Constant::Bvh) => !other_paths,
            None => true,
        });
    }

    /// Follows a plan of parameters: where their number of buffers changes, all is compiled anew.
    pub(super) fn set_banks(&mut self, banks: usize) {
        if banks != self.dialect.banks {
            self.dialect.banks = banks;
            self.compiled.clear();
        }
    }

    /// Compiles a kernel, unless it is there.
    ///
    /// # Errors
    /// The shader is wrong or the driver refuses it.
    pub(super) fn prepare(&mut self, context: &Context, kernel: Kernel) -> Result<()> {
        if !self.compiled.contains_key(&kernel) {
            let pipeline = self.compile(context, kernel)?;
            self.compiled.insert(kernel, pipeline);
        }
        Ok(())
    }

    /// A kernel that has been prepared.
    pub(super) fn get(&self, kernel: Kernel) -> &Pipeline {
        &self.compiled[&kernel]
    }

    fn compile(&self, context: &Context, kernel: Kernel) -> Result<Pipeline> {
        let composed = self
            .library
            .compose(kernel, self.dialect, self.leaves)
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
            // uploaded beside arrays of just these sizes; every loop counts towards a bound, goes on along a ray, goes
            // down a tree, or ends by Russian roulette; divisors are sizes, which are never zero where they are divided
            // by.
            unsafe { device.create_shader_module_trusted(descriptor, wgpu::ShaderRuntimeChecks::unchecked()) }
        } else {
            device.create_shader_module(descriptor)
        };
        let bindings = kernel.bindings(self.dialect.banks);
        let layout = bind_group_layout(device, kernel, &bindings);
        let pipeline_layout = device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
            label: Some(kernel.entry()),
            bind_group_layouts: &[Some(&layout)],
            immediate_size: 0,
        });
        let constants: Vec<(&str, f64)> = kernel
            .constant()
            .map(|constant| match constant {
                Constant::Degree => (constant.name(), f64::from(self.degree)),
                Constant::Bvh => (constant.name(), f64::from(u8::from(self.bvh))),
            })
            .into_iter()
            .collect();
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
