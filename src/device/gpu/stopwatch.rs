//! How long an adapter works on each kernel, by its own clock.

use std::collections::HashMap;
use std::sync::Mutex;

use super::context::{Context, lock};
use super::shaders::Kernel;
use crate::device::{KernelTime, Result};

/// Dispatches that are timed before their times are read: two timestamps each, as many as wgpu lets a query set hold.
const DISPATCHES: u32 = wgpu::QUERY_SET_MAX_QUERIES / 2;

/// Timestamps of dispatches, and the times of earlier ones.
#[derive(Debug)]
pub(super) struct Stopwatch {
    stamps: wgpu::QuerySet,
    resolved: wgpu::Buffer,
    /// Nanoseconds of a tick.
    tick: f64,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The kernels that were dispatched since timestamps were last read.
    stamped: Vec<Kernel>,
    /// Dispatches of a kernel, and their ticks.
    spent: HashMap<Kernel, (u32, u64)>,
}

impl Stopwatch {
    /// One that has timed nothing; none where the adapter has no clock.
    ///
    /// # Errors
    /// There is not enough memory.
    pub(super) fn new(context: &Context) -> Result<Option<Self>> {
        use wgpu::BufferUsages as U;
        if !context.device.features().contains(wgpu::Features::TIMESTAMP_QUERY) {
            return Ok(None);
        }
        let stamps = context.device.create_query_set(&wgpu::QuerySetDescriptor {
            label: Some("stamps"),
            ty: wgpu::QueryType::Timestamp,
            count: 2 * DISPATCHES,
        });
        let bytes = u64::from(2 * DISPATCHES * wgpu::QUERY_SIZE);
        Ok(Some(Self {
            stamps,
            resolved: context.buffer("stamps", bytes, U::QUERY_RESOLVE | U::COPY_SRC)?,
            tick: f64::from(context.queue.get_timestamp_period()),
            state: Mutex::default(),
        }))
    }

    /// Where the next dispatch of a kernel leaves its stamps; there must be room.
    pub(super) fn stamp(&self, kernel: Kernel) -> wgpu::ComputePassTimestampWrites<'_> {
        let mut state = lock(&self.state);
        let at = 2 * state.stamped.len() as u32;
        state.stamped.push(kernel);
        wgpu::ComputePassTimestampWrites {
            query_set: &self.stamps,
            beginning_of_pass_write_index: Some(at),
            end_of_pass_write_index: Some(at + 1),
        }
    }

    /// Whether so many dispatches more have room.
    pub(super) fn has_room(&self, dispatches: usize) -> bool {
        lock(&self.state).stamped.len() + dispatches <= DISPATCHES as usize
    }

    /// Reads the stamps of what was submitted.
    ///
    /// # Errors
    /// The device was lost.
    pub(super) fn read(&self, context: &Context) -> Result<()> {
        let stamped = std::mem::take(&mut lock(&self.state).stamped);
        if stamped.is_empty() {
            return Ok(());
        }
        let stamps = 2 * stamped.len() as u32;
        let mut encoder = context.device.create_command_encoder(&Default::default());
        encoder.resolve_query_set(&self.stamps, 0..stamps, &self.resolved, 0);
        context.queue.submit([encoder.finish()]);
        let bytes = context.download(&self.resolved, 0, u64::from(stamps * wgpu::QUERY_SIZE))?;
        let ticks: Vec<u64> = bytemuck::pod_collect_to_vec(&bytes);
        let mut state = lock(&self.state);
        for (kernel, stamps) in stamped.into_iter().zip(ticks.chunks(2)) {
            let (dispatches, spent) = state.spent.entry(kernel).or_default();
            *dispatches += 1;
            // Clocks of some adapters step back now and then.
            *spent += stamps[1].saturating_sub(stamps[0]);
        }
        Ok(())
    }

    /// The total time of each kernel.
    pub(super) fn times(&self) -> Vec<KernelTime> {
        let time = |(kernel, (dispatches, ticks)): (&Kernel, &(u32, u64))| KernelTime {
            kernel: format!("{kernel:?}"),
            dispatches: *dispatches,
            ms: *ticks as f64 * self.tick * 1e-6,
        };
        lock(&self.state).spent.iter().map(time).collect()
    }
}
