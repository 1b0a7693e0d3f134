//! An open adapter: buffers, uploads, dispatches and downloads, and their errors.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::Options;
use super::adapters::{AdapterKind, AdapterSummary, WIDE_ATOMICS};
use super::hierarchy::Hierarchy;
use super::records::{Elements, Launch, UNIFORM_VECTORS};
use super::shaders::{Access, Binding, Kernel};
use super::stopwatch::Stopwatch;
use crate::device::gauge::Gauge;
use crate::device::{DeviceError, Result};

/// Bytes that go up or down at once, so that staging never doubles a large array.
const STAGING_BYTES: u64 = 64 << 20;

/// Bytes of a uniform buffer that holds what a scene has few of.
pub(super) const UNIFORM_BYTES: u64 = 16 * UNIFORM_VECTORS as u64;

/// The longest that a wait for the device blocks at a time: between, wgpu calls back for work that is done, and the gauge counts.
const LOOK_UP: Duration = Duration::from_millis(100);

/// An open device and its queue.
#[derive(Debug)]
pub(super) struct Context {
    pub device: wgpu::Device,
    pub queue: wgpu::Queue,
    pub summary: AdapterSummary,
    pub max_groups: u32,
    /// Whether kernels should read what fits from uniform buffers.
    uniform_buffers: bool,
    faults: Arc<Mutex<Faults>>,
    /// The uniform buffer with the record of the current piece of work.
    work: wgpu::Buffer,
    /// Times the dispatched kernels, if asked for.
    pub stopwatch: Option<Stopwatch>,
    /// Counts the finished parts of a picture.
    pub gauge: Gauge,
}

/// Errors that wgpu reported through callbacks.
#[derive(Debug, Default)]
struct Faults {
    lost: Option<String>,
    out_of_memory: bool,
    error: Option<String>,
}

/// A compiled kernel.
#[derive(Debug)]
pub(super) struct Pipeline {
    pub kernel: Kernel,
    pub bindings: Vec<(Binding, Access)>,
    pub layout: wgpu::BindGroupLayout,
    pub pipeline: wgpu::ComputePipeline,
}

/// One of the kernels that take turns at a piece of work, with the buffers that it binds.
#[derive(Debug, Clone, Copy)]
pub(super) struct Turn<'a> {
    pub pipeline: &'a Pipeline,
    pub bound: &'a wgpu::BindGroup,
    pub groups: u32,
}

impl Context {
    /// Opens an adapter with all that it can do, ray queries only where they are wanted: wgpu calls them experimental.
    ///
    /// # Errors
    /// The driver refuses.
    pub(super) fn open(adapter: &wgpu::Adapter, summary: AdapterSummary, options: &Options) -> Result<Self> {
        let mut wanted = wgpu::Features::SHADER_FLOAT32_ATOMIC
            | WIDE_ATOMICS
            | wgpu::Features::SUBGROUP
            | wgpu::Features::TIMESTAMP_QUERY;
        let mut experimental_features = wgpu::ExperimentalFeatures::disabled();
        if options.ray_queries {
            wanted |= wgpu::Features::EXPERIMENTAL_RAY_QUERY;
            // SAFETY: the one experimental feature is that of ray queries, whose rays and order of calls shaders check.
            experimental_features = unsafe { wgpu::ExperimentalFeatures::enabled() };
        }
        let features = adapter.features() & wanted;
        let descriptor = wgpu::DeviceDescriptor {
            label: Some("prbopt"),
            required_features: features,
            required_limits: adapter.limits(),
            experimental_features,
            // Memory in small blocks: buffers are few and live as long as a scene, so that much of large blocks would be unused.
            memory_hints: wgpu::MemoryHints::MemoryUsage,
            ..Default::default()
        };
        let (device, queue) = pollster::block_on(adapter.request_device(&descriptor)).map_err(|e| {
            let name = &summary.name;
            DeviceError::Unavailable(format!("{name} could not be opened ({e}); use --device cpu"))
        })?;
        let faults = Arc::new(Mutex::new(Faults::default()));
        let on_lost = Arc::clone(&faults);
        device.set_device_lost_callback(move |_, message| lock(&on_lost).lost = Some(message));
        let on_error = Arc::clone(&faults);
        device.on_uncaptured_error(Arc::new(move |error| match error {
            wgpu::Error::OutOfMemory { .. } => lock(&on_error).out_of_memory = true,
            other => {
                lock(&on_error).error.get_or_insert(other.to_string());
            }
        }));
        let work = device.create_buffer(&wgpu::BufferDescriptor {
            label: Some("work"),
            size: size_of::<Launch>().max(size_of::<Elements>()) as u64,
            usage: wgpu::BufferUsages::UNIFORM | wgpu::BufferUsages::COPY_DST,
            mapped_at_creation: false,
        });
        // Mesa's software driver reads a uniform buffer without a loop over the lanes, which takes less time to compile.
        let uniform_buffers = options.uniform_buffers
            && summary.kind == AdapterKind::Software
            && device.limits().max_uniform_buffer_binding_size >= UNIFORM_BYTES;
        Ok(Self {
            max_groups: device.limits().max_compute_workgroups_per_dimension,
            uniform_buffers,
            device,
            queue,
            summary,
            faults,
            work,
            stopwatch: None,
            gauge: Gauge::default(),
        })
    }

    /// Whether the device is still sound.
    ///
    /// # Errors
    /// It was lost, has no memory left, or refused a command.
    pub(super) fn check(&self) -> Result<()> {
        let mut faults = lock(&self.faults);
        if let Some(message) = &faults.lost {
            let name = &self.summary.name;
            return Err(DeviceError::Lost(format!("{name}: {}", message.trim())));
        }
        if std::mem::take(&mut faults.out_of_memory) {
            let name = &self.summary.name;
            return Err(DeviceError::TooLarge(format!(
                "{name} has not enough memory left; lower the resolution or the batch, or use --device cpu"
            )));
        }
        match faults.error.take() {
            Some(error) => Err(DeviceError::Unavailable(format!(
                "{} refused a command: {}",
                self.summary.name,
                error.trim()
            ))),
            None => Ok(()),
        }
    }

    /// A storage buffer of at least 16 bytes, zeroed.
    ///
    /// # Errors
    /// There is not enough memory.
    pub(super) fn storage(&self, label: &str, bytes: u64) -> Result<wgpu::Buffer> {
        use wgpu::BufferUsages as U;
        self.buffer(label, bytes, U::STORAGE | U::COPY_SRC | U::COPY_DST)
    }

    /// A uniform buffer.
    ///
    /// # Errors
    /// There is not enough memory.
    pub(super) fn uniform(&self, label: &str, bytes: u64) -> Result<wgpu::Buffer> {
        use wgpu::BufferUsages as U;
        self.buffer(label, bytes, U::UNIFORM | U::COPY_DST)
    }

    /// A buffer of [`UNIFORM_BYTES`] with values that some kernels write and others read as a uniform buffer.
    ///
    /// # Errors
    /// There is not enough memory.
    pub(super) fn uniform_values(&self) -> Result<wgpu::Buffer> {
        use wgpu::BufferUsages as U;
        let usage = U::UNIFORM | U::STORAGE | U::COPY_SRC | U::COPY_DST;
        self.buffer("values", UNIFORM_BYTES, usage)
    }

    /// Whether kernels should read so many bytes from a uniform buffer of [`UNIFORM_BYTES`].
    pub(super) fn prefers_uniform(&self, bytes: u64) -> bool {
        self.uniform_buffers && bytes <= UNIFORM_BYTES
    }

    /// A buffer with the corners or boxes that a hierarchy is built of.
    ///
    /// # Errors
    /// There is not enough memory.
    pub(super) fn input_of_hierarchy(&self, bytes: &[u8]) -> Result<wgpu::Buffer> {
        use wgpu::BufferUsages as U;
        let buffer = self.buffer("hierarchy", bytes.len() as u64, U::BLAS_INPUT | U::COPY_DST)?;
        self.upload(&buffer, 0, bytes);
        Ok(buffer)
    }

    /// A buffer of at least 16 bytes.
    ///
    /// # Errors
    /// There is not enough memory.
    pub(super) fn buffer(&self, label: &str, bytes: u64, usage: wgpu::BufferUsages) -> Result<wgpu::Buffer> {
        let buffer = self.device.create_buffer(&wgpu::BufferDescriptor {
            label: Some(label),
            size: bytes.max(16).next_multiple_of(16),
            usage,
            mapped_at_creation: false,
        });
        self.check()?;
        Ok(buffer)
    }

    /// Copies bytes into a buffer, before anything that is dispatched later.
    pub(super) fn upload(&self, buffer: &wgpu::Buffer, offset: u64, bytes: &[u8]) {
        let mut at = offset;
        for part in bytes.chunks(STAGING_BYTES as usize) {
            self.queue.write_buffer(buffer, at, part);
            at += part.len() as u64;
            if part.len() as u64 == STAGING_BYTES {
                self.queue.submit([]);
            }
        }
    }

    /// Copies bytes out of a buffer, after everything that was dispatched.
    ///
    /// # Errors
    /// The device was lost.
    pub(super) fn download(&self, buffer: &wgpu::Buffer, offset: u64, bytes: u64) -> Result<Vec<u8>> {
        let mut out = Vec::with_capacity(bytes as usize);
        while (out.len() as u64) < bytes {
            let part = (bytes - out.len() as u64).min(STAGING_BYTES);
            self.download_part(buffer, offset + out.len() as u64, part, &mut out)?;
        }
        Ok(out)
    }

    fn download_part(&self, buffer: &wgpu::Buffer, offset: u64, bytes: u64, out: &mut Vec<u8>) -> Result<()> {
        use wgpu::BufferUsages as U;
        let staging = self.buffer("staging", bytes, U::MAP_READ | U::COPY_DST)?;
        let mut encoder = self.device.create_command_encoder(&Default::default());
        encoder.copy_buffer_to_buffer(buffer, offset, &staging, 0, bytes);
        self.queue.submit([encoder.finish()]);
        let mapped = Arc::new(Mutex::new(false));
        let on_mapped = Arc::clone(&mapped);
        staging.map_async(wgpu::MapMode::Read, 0..bytes, move |result| {
            *lock(&on_mapped) = result.is_ok()
        });
        self.wait()?;
        let gone = || DeviceError::Lost(format!("{}: its memory cannot be read", self.summary.name));
        if !*lock(&mapped) {
            return Err(gone());
        }
        let view = staging.get_mapped_range(0..bytes).map_err(|_| gone())?;
        out.extend_from_slice(&view);
        Ok(())
    }

    /// Waits for everything that was submitted.
    ///
    /// # Errors
    /// The device was lost.
    pub(super) fn wait(&self) -> Result<()> {
        // wgpu panics here when the device is lost; the callback above has noted why.
        let polled = catch_unwind(AssertUnwindSafe(|| {
            loop {
                let polled = self.device.poll(wgpu::PollType::Wait {
                    submission_index: None,
                    timeout: Some(LOOK_UP),
                });
                if !matches!(polled, Err(wgpu::PollError::Timeout)) {
                    return polled;
                }
            }
        }));
        self.check()?;
        match polled {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(e)) => Err(DeviceError::Lost(format!("{}: {e}", self.summary.name))),
            Err(_) => Err(DeviceError::Lost(format!("{} stopped answering", self.summary.name))),
        }
    }

    /// Counts a part of the picture when everything that was submitted is done.
    pub(super) fn count_when_done(&self) {
        let gauge = self.gauge.clone();
        self.queue.on_submitted_work_done(move || gauge.add());
    }

    /// Fills buffers with zeros.
    pub(super) fn clear<'a>(&self, buffers: impl IntoIterator<Item = &'a wgpu::Buffer>) {
        let mut encoder = self.device.create_command_encoder(&Default::default());
        for buffer in buffers {
            encoder.clear_buffer(buffer, 0, None);
        }
        self.queue.submit([encoder.finish()]);
    }

    /// Copies bytes from buffer to buffer.
    pub(super) fn copy(&self, from: &wgpu::Buffer, from_offset: u64, to: &wgpu::Buffer, to_offset: u64, bytes: u64) {
        let mut encoder = self.device.create_command_encoder(&Default::default());
        encoder.copy_buffer_to_buffer(from, from_offset, to, to_offset, bytes);
        self.queue.submit([encoder.finish()]);
    }

    /// Workgroups along x and y of a dispatch of `groups`, folded where one dimension does not hold them.
    pub(super) fn fold(&self, groups: u32) -> [u32; 2] {
        let x = groups.clamp(1, self.max_groups);
        [x, groups.div_ceil(x).max(1)]
    }

    /// Runs a kernel on one piece of work: `record` is bound as [`Binding::Work`], the other buffers by their names.
    pub(super) fn dispatch(
        &self,
        pipeline: &Pipeline,
        record: &[u8],
        buffers: &[(Binding, &wgpu::Buffer)],
        groups: u32,
    ) {
        self.dispatch_searching(pipeline, record, buffers, None, groups);
    }

    /// [`Self::dispatch`] for a kernel that may search a hierarchy.
    pub(super) fn dispatch_searching(
        &self,
        pipeline: &Pipeline,
        record: &[u8],
        buffers: &[(Binding, &wgpu::Buffer)],
        hierarchy: Option<&Hierarchy>,
        groups: u32,
    ) {
        self.make_room_for_stamps(1);
        self.queue.write_buffer(&self.work, 0, record);
        let group = self.bind_group(pipeline, buffers, hierarchy);
        let mut encoder = self.device.create_command_encoder(&Default::default());
        self.encode(&mut encoder, pipeline, &group, groups);
        self.queue.submit([encoder.finish()]);
    }

    /// Runs kernels that take turns at one piece of work, as [`Context::dispatch`] runs one.
    pub(super) fn dispatch_in_turn(&self, record: &[u8], turns: &[Turn<'_>]) {
        self.make_room_for_stamps(turns.len());
        self.queue.write_buffer(&self.work, 0, record);
        let mut encoder = self.device.create_command_encoder(&Default::default());
        if self.stopwatch.is_some() {
            // Timestamps are taken of whole compute passes, so that each kernel gets a pass of its own.
            for turn in turns {
                self.encode(&mut encoder, turn.pipeline, turn.bound, turn.groups);
            }
        } else {
            let mut pass = encoder.begin_compute_pass(&Default::default());
            for turn in turns {
                self.encode_in(&mut pass, turn.pipeline, turn.bound, turn.groups);
            }
        }
        self.queue.submit([encoder.finish()]);
    }

    /// Reads the timestamps if the next dispatches would have no room for theirs. An error is reported by the next check.
    fn make_room_for_stamps(&self, dispatches: usize) {
        if let Some(watch) = &self.stopwatch
            && !watch.has_room(dispatches)
            && let Err(e) = watch.read(self)
        {
            lock(&self.faults).error.get_or_insert(e.to_string());
        }
    }

    fn encode(&self, encoder: &mut wgpu::CommandEncoder, pipeline: &Pipeline, group: &wgpu::BindGroup, groups: u32) {
        let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor {
            label: None,
            timestamp_writes: self.stopwatch.as_ref().map(|watch| watch.stamp(pipeline.kernel)),
        });
        self.encode_in(&mut pass, pipeline, group, groups);
    }

    fn encode_in(&self, pass: &mut wgpu::ComputePass<'_>, pipeline: &Pipeline, group: &wgpu::BindGroup, groups: u32) {
        pass.set_pipeline(&pipeline.pipeline);
        pass.set_bind_group(0, group, &[]);
        let [x, y] = self.fold(groups);
        pass.dispatch_workgroups(x, y, 1);
    }

    /// The buffers that a kernel binds, by their names.
    pub(super) fn bind_group(
        &self,
        pipeline: &Pipeline,
        buffers: &[(Binding, &wgpu::Buffer)],
        hierarchy: Option<&Hierarchy>,
    ) -> wgpu::BindGroup {
        let find = |binding: Binding| {
            let found = buffers.iter().find(|(b, _)| *b == binding).map(|(_, buffer)| *buffer);
            let resource = match binding {
                Binding::Work => Some(self.work.as_entire_binding()),
                Binding::Hierarchy => hierarchy.map(Hierarchy::binding),
                _ => found.map(wgpu::Buffer::as_entire_binding),
            };
            resource.expect("a pass names everything that its kernel binds")
        };
        let entries: Vec<_> = pipeline
            .bindings
            .iter()
            .map(|&(binding, _)| wgpu::BindGroupEntry {
                binding: binding as u32,
                resource: find(binding),
            })
            .collect();
        self.device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: Some(pipeline.kernel.entry()),
            layout: &pipeline.layout,
            entries: &entries,
        })
    }
}

/// The layout of a kernel's bindings.
pub(super) fn bind_group_layout(
    device: &wgpu::Device,
    kernel: Kernel,
    bindings: &[(Binding, Access)],
) -> wgpu::BindGroupLayout {
    let buffer = |ty| wgpu::BindingType::Buffer {
        ty,
        has_dynamic_offset: false,
        min_binding_size: None,
    };
    let entries: Vec<_> = bindings
        .iter()
        .map(|&(binding, access)| wgpu::BindGroupLayoutEntry {
            binding: binding as u32,
            visibility: wgpu::ShaderStages::COMPUTE,
            ty: match access {
                Access::Uniform => buffer(wgpu::BufferBindingType::Uniform),
                Access::Read => buffer(wgpu::BufferBindingType::Storage { read_only: true }),
                Access::Write => buffer(wgpu::BufferBindingType::Storage { read_only: false }),
                Access::Search => wgpu::BindingType::AccelerationStructure { vertex_return: false },
            },
            count: None,
        })
        .collect();
    device.create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor {
        label: Some(kernel.entry()),
        entries: &entries,
    })
}

/// Locks a mutex whose holder never panics.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::gpu::Adapters;

    #[test]
    fn a_lost_device_is_an_error_and_no_panic() {
        let adapters = Adapters::find();
        if adapters.summaries().is_empty() {
            assert!(
                std::env::var_os("PRBOPT_REQUIRE_GPU").is_none_or(|v| v != "1"),
                "PRBOPT_REQUIRE_GPU is set, but there is no adapter"
            );
            // Not by a macro, whose output the test runner keeps to itself.
            let _ = std::io::Write::write_all(&mut std::io::stderr(), b"skipped: this machine has no GPU adapter\n");
            return;
        }
        let context = adapters.open(0, &Options::default()).expect("an adapter that opens");
        let buffer = context.storage("data", 1024).expect("little memory");
        assert_eq!(context.download(&buffer, 0, 1024).expect("readable"), [0; 1024]);
        context.device.destroy();
        let result = context.download(&buffer, 0, 1024);
        assert!(matches!(result, Err(DeviceError::Lost(_))), "{result:?}");
        let result = context.storage("more", 64);
        assert!(matches!(result, Err(DeviceError::Lost(_))), "{result:?}");
    }
}
