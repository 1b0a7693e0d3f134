//! Waves: paths that are followed together, an edge at a time, by kernels that take turns.
//!
//! A walk in one kernel needs registers for all that may happen along it, and while some rays of a warp search the tree of
//! triangles, the others wait. Here the search is a kernel of its own, over the rays that may meet a triangle, and the replay of
//! an adjoint looks up the intersections of the first walk. Sixteen edges are kept at a time: before the replay of a long path
//! takes the next ones, the first walk takes them once more, by the same kernels, from a copy of the state that it had there. So
//! the memory of a wave does not grow with the length of paths, and a replay meets what the first walk met, to the bit.

mod follow;
mod turns;

use std::collections::HashMap;
use std::ops::Range;

use super::contents::has_hierarchy;
use super::context::Context;
use super::paths::PathPasses;
use super::pieces::DispatchSize;
use super::records::{Launch, RAY_GROUP};
use super::shaders::{Binding, Kernel};
use super::{Gpu, Passes};
use crate::device::Result;
use crate::resident::paths::PathScene;
use follow::Wave;
pub(super) use turns::Turns;
pub use turns::wave_bytes;
use turns::{PART_WORDS, STATE_PARTS, suits};

/// The buffers of a wave, as large as was needed so far.
#[derive(Debug)]
pub(super) struct Waves {
    paths: wgpu::Buffer,
    /// For long paths: the state before the edges that are replayed next, and the state behind these.
    copies: [wgpu::Buffer; 2],
    /// The number of rays that the tree is searched for, the numbers of paths that go on, then the queue of these rays, at most
    /// two of each path.
    queue: wgpu::Buffer,
}

impl Waves {
    /// Buffers without room for paths.
    ///
    /// # Errors
    /// There is not enough memory.
    pub(super) fn new(context: &Context) -> Result<Self> {
        Ok(Self {
            paths: context.storage("wave", 0)?,
            copies: [context.storage("state", 0)?, context.storage("next state", 0)?],
            queue: context.storage("queue", 0)?,
        })
    }

    /// Makes room for so many paths.
    fn fit(&mut self, context: &Context, paths: u32, turns: Turns) -> Result<()> {
        let [state, next] = &mut self.copies;
        let buffers = [
            (&mut self.paths, "wave"),
            (&mut self.queue, "queue"),
            (state, "state"),
            (next, "next state"),
        ];
        for ((buffer, name), words) in buffers.into_iter().zip(turns.words_of(paths)) {
            if 4 * words > buffer.size() {
                *buffer = context.storage(name, 4 * words)?;
            }
        }
        Ok(())
    }

    /// Copies the state of all paths to one of the copies, or back.
    fn copy(&self, context: &Context, paths: u32, copy: usize, back: bool) {
        let bytes = 4 * u64::from(PART_WORDS * STATE_PARTS) * u64::from(paths.next_multiple_of(RAY_GROUP));
        match back {
            false => context.copy(&self.paths, 0, &self.copies[copy], 0, bytes),
            true => context.copy(&self.copies[copy], 0, &self.paths, 0, bytes),
        }
    }

    /// How many paths went on or waited when the last of their rays were tested.
    ///
    /// # Errors
    /// The device was lost.
    fn paths_going_on(&self, context: &Context) -> Result<u32> {
        let bytes = context.download(&self.queue, 8, 4)?;
        Ok(bytemuck::pod_read_unaligned(&bytes))
    }

    /// The buffers by the names under which kernels bind them.
    pub(super) fn buffers(&self) -> [(Binding, &wgpu::Buffer); 2] {
        [(Binding::Wave, &self.paths), (Binding::Queue, &self.queue)]
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> u64 {
        let all = self.copies.iter().chain([&self.paths, &self.queue]);
        all.map(wgpu::Buffer::size).sum()
    }
}

impl Gpu {
    /// Whether the paths of a scene are followed in waves.
    pub(super) fn follows_in_waves(&self, scene: &PathScene) -> bool {
        let queries = self.options.ray_queries && has_hierarchy(scene);
        self.options.waves && !queries && suits(scene)
    }

    /// The kernels of waves that do the work of `kernel` in turn, if paths are followed in waves.
    pub(super) fn turns(&self, kernel: Kernel) -> Option<Turns> {
        let Passes::Paths(PathPasses {
            scene, waves: Some(_), ..
        }) = &self.passes
        else {
            return None;
        };
        match kernel {
            Kernel::RenderPaths => Some(Turns::of(scene, false)),
            Kernel::BackpropagatePaths => Some(Turns::of(scene, true)),
            _ => None,
        }
    }

    /// How a pass of `spp` samples a pixel is cut into waves.
    pub(super) fn wave_size(&self, turns: Turns, spp: u32) -> DispatchSize {
        turns.size(self.options.dispatch_size, spp)
    }

    /// Makes room for the waves of a pass.
    ///
    /// # Errors
    /// There is not enough memory.
    pub(super) fn fit_wave(&mut self, turns: Turns, pixels: u32, spp: u32) -> Result<()> {
        let size = self.wave_size(turns, spp);
        if let Passes::Paths(PathPasses { waves: Some(waves), .. }) = &mut self.passes {
            waves.fit(&self.context, size.rays.min(pixels) * size.samples, turns)?;
        }
        Ok(())
    }

    /// The bind groups of the kernels of a wave.
    fn bind_in_turn(&self, turns: Turns) -> HashMap<Kernel, wgpu::BindGroup> {
        let buffers = self.ray_buffers();
        let bind = |kernel| {
            let pipeline = self.pipelines.get(kernel);
            (kernel, self.context.bind_group(pipeline, &buffers, None))
        };
        turns.kernels().into_iter().map(bind).collect()
    }

    /// Follows the paths of some samples of some pixels in a wave.
    ///
    /// # Errors
    /// The device was lost.
    pub(super) fn over_wave(
        &self,
        turns: Turns,
        mut launch: Launch,
        pixels: Range<u32>,
        samples: Range<u32>,
    ) -> Result<()> {
        let Passes::Paths(PathPasses { waves: Some(waves), .. }) = &self.passes else {
            return Ok(());
        };
        (launch.first_pixel, launch.last_pixel) = (pixels.start, pixels.end);
        (launch.first_sample, launch.last_sample) = (samples.start, samples.end);
        launch.wave_places = turns.places();
        let paths = (pixels.end - pixels.start) * (samples.end - samples.start);
        [launch.wave_edges_at, launch.wave_edges_word] = turns.edges_at(paths);
        launch.groups_x = self.context.fold(paths.div_ceil(RAY_GROUP))[0];
        let wave = Wave {
            gpu: self,
            waves,
            turns,
            launch,
            paths,
            pixels: pixels.end - pixels.start,
            bound: self.bind_in_turn(turns),
        };
        wave.follow()
    }
}
