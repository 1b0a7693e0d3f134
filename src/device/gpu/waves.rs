//! Waves: paths that are followed together, an edge at a time, by kernels that take turns.
//!
//! A walk in one kernel has the registers of all that may happen along it, and while some of its rays search the tree of
//! triangles, others of their warp wait. Here the search is a kernel of its own, over the rays that may meet a triangle, and the
//! replay of an adjoint looks up what the first walk has met.

use std::ops::Range;

use super::adapters::AdapterSummary;
use super::context::{Context, Turn};
use super::paths::PathPasses;
use super::pieces::DispatchSize;
use super::plan::MAX_BANKS;
use super::records::{Launch, RAY_GROUP};
use super::shaders::{Binding, Kernel};
use super::{Gpu, Passes};
use crate::device::Result;
use crate::resident::paths::PathScene;

/// Longest paths, in edges, for whose replays a wave keeps what they met: as many as a replay remembers alone.
const LONGEST: u32 = 16;
/// Words that a wave keeps of a path beside what its edges met, and of what one met.
const WORDS: u32 = 47;
const NEAREST_WORDS: u32 = 6;
/// The most paths of a wave: as many as fill a large GPU.
const PATHS: u32 = 1 << 18;
/// The most bytes that a wave takes, which every adapter gives a shader.
const BYTES: u64 = 1 << 27;

/// Whether the paths of a scene are followed in waves: they may meet triangles, are short, and nothing happens to them but at
/// surfaces that do not move.
pub(super) fn serve(scene: &PathScene, adapter: &AdapterSummary) -> bool {
    let settings = &scene.settings;
    let among_surfaces = scene.media.is_empty() && settings.surfaces_only == 1 && settings.hide_emitters == 0;
    let still = !scene.attached && scene.rest.motions.is_empty();
    let buffers = Kernel::ReplayPaths.other_buffers() + 2 * MAX_BANKS as u32;
    !scene.bvh.blocks.is_empty()
        && among_surfaces
        && still
        && (1..=LONGEST).contains(&settings.max_depth)
        && adapter.max_storage_buffers >= buffers
}

/// The buffers of a wave, as large as was needed so far.
#[derive(Debug)]
pub(super) struct Waves {
    paths: wgpu::Buffer,
    /// The number of rays that the tree is searched for, and which they are: at most two of each path.
    queue: wgpu::Buffer,
}

impl Waves {
    /// Without room for paths.
    ///
    /// # Errors
    /// There is not enough memory.
    pub(super) fn new(context: &Context) -> Result<Self> {
        Ok(Self {
            paths: context.storage("wave", 0)?,
            queue: context.storage("queue", 0)?,
        })
    }

    /// Makes room for so many paths of so many words.
    fn fit(&mut self, context: &Context, paths: u32, words: u32) -> Result<()> {
        let [of_paths, of_queue] =
            [u64::from(paths) * u64::from(words), 1 + 2 * u64::from(paths)].map(|words| 4 * words);
        if of_paths > self.paths.size() {
            self.paths = context.storage("wave", of_paths)?;
        }
        if of_queue > self.queue.size() {
            self.queue = context.storage("queue", of_queue)?;
        }
        Ok(())
    }

    /// What kernels call them.
    pub(super) fn buffers(&self) -> [(Binding, &wgpu::Buffer); 2] {
        [(Binding::Wave, &self.paths), (Binding::Queue, &self.queue)]
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> u64 {
        self.paths.size() + self.queue.size()
    }
}

/// The kernels that do the work of one in turn.
#[derive(Debug, Clone, Copy)]
pub(super) struct Turns {
    begin: Kernel,
    advance: Kernel,
    end: Kernel,
    /// The most edges of a path, and how many of them are kept.
    depth: u32,
    places: u32,
}

impl Turns {
    /// All of them.
    pub(super) fn kernels(self) -> [Kernel; 5] {
        [
            self.begin,
            Kernel::MeetPaths,
            Kernel::SearchPaths,
            self.advance,
            self.end,
        ]
    }

    /// Words that are kept of a path.
    fn words(self) -> u32 {
        WORDS + NEAREST_WORDS * self.places
    }
}

impl Gpu {
    /// What does the work of a kernel, if paths are followed in waves.
    pub(super) fn turns(&self, kernel: Kernel) -> Option<Turns> {
        let Passes::Paths(PathPasses {
            scene, waves: Some(_), ..
        }) = &self.passes
        else {
            return None;
        };
        let depth = scene.settings.max_depth;
        match kernel {
            Kernel::RenderPaths => Some(Turns {
                begin: Kernel::BeginPaths,
                advance: Kernel::AdvancePaths,
                end: Kernel::EndPaths,
                depth,
                places: 1,
            }),
            Kernel::BackpropagatePaths => Some(Turns {
                begin: Kernel::BeginAdjoint,
                advance: Kernel::AdvanceAdjoint,
                end: Kernel::ReplayPaths,
                depth,
                places: depth,
            }),
            _ => None,
        }
    }

    /// How a pass of `spp` samples a pixel is cut into waves: all samples of as many pixels as there is room for, or as many
    /// samples of one.
    pub(super) fn wave_size(&self, turns: Turns, spp: u32) -> DispatchSize {
        let room = PATHS.min((BYTES / (4 * u64::from(turns.words()))) as u32);
        let wanted = self.options.dispatch_size.unwrap_or(DispatchSize {
            rays: room,
            samples: room,
        });
        let samples = wanted.samples.min(spp).clamp(1, room);
        DispatchSize {
            rays: wanted.rays.min(room / samples),
            samples,
        }
    }

    /// Makes room for the waves of a pass.
    ///
    /// # Errors
    /// There is not enough memory.
    pub(super) fn fit_wave(&mut self, turns: Turns, pixels: u32, spp: u32) -> Result<()> {
        let size = self.wave_size(turns, spp);
        if let Passes::Paths(PathPasses { waves: Some(waves), .. }) = &mut self.passes {
            waves.fit(&self.context, size.rays.min(pixels) * size.samples, turns.words())?;
        }
        Ok(())
    }

    /// Follows some samples of some pixels together.
    pub(super) fn over_wave(&self, turns: Turns, mut launch: Launch, pixels: Range<u32>, samples: Range<u32>) {
        let Passes::Paths(PathPasses { waves: Some(waves), .. }) = &self.passes else {
            return;
        };
        (launch.first_pixel, launch.last_pixel) = (pixels.start, pixels.end);
        (launch.first_sample, launch.last_sample) = (samples.start, samples.end);
        launch.wave_places = turns.places;
        let paths = (pixels.end - pixels.start) * (samples.end - samples.start);
        launch.groups_x = self.context.fold(paths.div_ceil(RAY_GROUP))[0];
        let turn = |kernel: Kernel, invocations: u32| Turn {
            pipeline: self.pipelines.get(kernel),
            groups: invocations.div_ceil(RAY_GROUP),
            cleared: (kernel == Kernel::MeetPaths).then_some(&waves.queue),
        };
        let mut all = vec![turn(turns.begin, paths)];
        for _ in 0..turns.depth {
            all.extend([
                turn(Kernel::MeetPaths, paths),
                turn(Kernel::SearchPaths, 2 * paths),
                turn(turns.advance, paths),
            ]);
        }
        all.push(match turns.end {
            Kernel::EndPaths => turn(Kernel::EndPaths, pixels.end - pixels.start),
            replay => turn(replay, paths),
        });
        let record = bytemuck::bytes_of(&launch);
        self.context.dispatch_in_turn(record, &self.ray_buffers(), &all);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The twins of shaders, which this module alone sees.
    #[test]
    fn shaders_keep_as_many_words() {
        let shader = include_str!("../../../shaders/bind/wave.wgsl");
        for (name, words) in [("WAVE_NEAREST", WORDS), ("NEAREST_WORDS", NEAREST_WORDS)] {
            let declared = format!("const {name}: u32 = {words}u;");
            assert!(shader.contains(&declared), "{declared}");
        }
        let cache = include_str!("../../../shaders/transport/paths/replay_cache.wgsl");
        let declared = format!("const SEGMENTS: u32 = {LONGEST}u;");
        assert!(cache.contains(&declared), "{declared}");
    }
}
