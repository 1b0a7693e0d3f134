//! Waves: paths that are followed together, an edge at a time, by kernels that take turns.
//!
//! A walk in one kernel has the registers of all that may happen along it, and while some of its rays search the tree of
//! triangles, others of their warp wait. Here the search is a kernel of its own, over the rays that may meet a triangle, and the
//! replay of an adjoint looks up what the first walk has met. Of long paths it knows sixteen edges at a time: before it replays
//! the next ones, the first walk takes them once more, by the same kernels, from the state that it had there. So a wave takes the same
//! memory however long its paths are, and a replay follows them to the bit.

use std::collections::HashMap;
use std::ops::Range;

use super::adapters::AdapterSummary;
use super::contents::has_hierarchy;
use super::context::{Context, Turn};
use super::paths::PathPasses;
use super::pieces::DispatchSize;
use super::plan::MAX_BANKS;
use super::records::{Launch, RAY_GROUP};
use super::shaders::{Binding, Kernel};
use super::{Gpu, Passes};
use crate::device::Result;
use crate::resident::paths::PathScene;

/// The most edges of a path of which an adjoint knows at once what they met. After as many it is asked whether any path is left.
const KEPT_EDGES: u32 = 16;
/// Words that a wave keeps of a path beside what its edges met, and of what one met.
const WORDS: u32 = 51;
const NEAREST_WORDS: u32 = 6;
/// Those of them that make up the path's state, and those of what it has gathered.
const STATE: Range<u32> = 0..37;
const GATHERED: Range<u32> = 37..50;
/// Words of a queue before its entries: their number, and that of the paths that go on, and that went on an edge ago.
const QUEUE_HEAD: u64 = 3;
/// The most bytes that waves take beside a queue, which every adapter gives a shader.
const BYTES: u64 = 1 << 27;

/// Whether waves serve a scene: nothing happens to paths but at surfaces that do not move.
fn serve(scene: &PathScene) -> bool {
    let settings = &scene.settings;
    let among_surfaces = scene.media.is_empty() && settings.surfaces_only == 1 && settings.hide_emitters == 0;
    let still = !scene.attached && scene.rest.motions.is_empty();
    among_surfaces && still && settings.max_depth > 0
}

/// Whether an adapter gives kernels as many buffers as waves need.
fn has_buffers(adapter: &AdapterSummary) -> bool {
    adapter.max_storage_buffers >= Kernel::ReplayPaths.other_buffers() + 2 * MAX_BANKS as u32
}

/// Bytes of the waves in which a GPU follows the paths of a scene, if it does, with so many pixels, and samples of each in primal and
/// adjoint passes.
pub fn wave_bytes(scene: &PathScene, pixels: u32, [spp, spp_grad]: [u32; 2]) -> Option<u64> {
    let walk = |has_replay: bool, spp: u32| {
        let turns = Turns::of(scene, has_replay);
        let size = turns.size(None, spp);
        turns.words_of(size.rays.min(pixels) * size.samples)
    };
    serve(scene).then(|| {
        let [primal, adjoint] = [walk(false, spp), walk(true, spp_grad)];
        4 * primal.iter().zip(&adjoint).map(|(a, b)| a.max(b)).sum::<u64>()
    })
}

/// The buffers of a wave, as large as was needed so far.
#[derive(Debug)]
pub(super) struct Waves {
    paths: wgpu::Buffer,
    /// Of long paths: the state where the next edges begin that are to be replayed, the state where those behind them begin, and what
    /// the replay has left.
    copies: [wgpu::Buffer; 3],
    /// The number of rays that the tree is searched for, that of the paths that go on, and which rays they are: at most two of each
    /// path.
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
            copies: [
                context.storage("state", 0)?,
                context.storage("next state", 0)?,
                context.storage("gathered", 0)?,
            ],
            queue: context.storage("queue", 0)?,
        })
    }

    /// Makes room for so many paths.
    fn fit(&mut self, context: &Context, paths: u32, turns: Turns) -> Result<()> {
        let [state, next, gathered] = &mut self.copies;
        let buffers = [
            (&mut self.paths, "wave"),
            (&mut self.queue, "queue"),
            (state, "state"),
            (next, "next state"),
            (gathered, "gathered"),
        ];
        for ((buffer, name), words) in buffers.into_iter().zip(turns.words_of(paths)) {
            if 4 * words > buffer.size() {
                *buffer = context.storage(name, 4 * words)?;
            }
        }
        Ok(())
    }

    /// Copies these words of all paths, to a buffer of their own or back.
    fn copy(&self, context: &Context, paths: u32, words: Range<u32>, copy: usize, back: bool) {
        let bytes = |words: u32| 4 * u64::from(words) * u64::from(paths);
        let (at, length) = (bytes(words.start), bytes(words.end - words.start));
        match back {
            false => context.copy(&self.paths, at, &self.copies[copy], 0, length),
            true => context.copy(&self.copies[copy], 0, &self.paths, at, length),
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

    /// What kernels call them.
    pub(super) fn buffers(&self) -> [(Binding, &wgpu::Buffer); 2] {
        [(Binding::Wave, &self.paths), (Binding::Queue, &self.queue)]
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> u64 {
        let all = self.copies.iter().chain([&self.paths, &self.queue]);
        all.map(wgpu::Buffer::size).sum()
    }
}

/// The kernels that do the work of one in turn: a walk, and in an adjoint its replay.
#[derive(Debug, Clone, Copy)]
pub(super) struct Turns {
    has_replay: bool,
    /// Whether there is a tree that is searched.
    has_tree: bool,
    /// The most edges of a path.
    depth: u32,
}

impl Turns {
    /// Those of a scene's primal pass, or of its adjoint.
    fn of(scene: &PathScene, has_replay: bool) -> Self {
        Self {
            has_replay,
            has_tree: has_hierarchy(scene),
            depth: scene.settings.max_depth,
        }
    }

    /// Words of the buffers of a wave of so many paths: what is kept of them, the queue, and the three copies.
    fn words_of(self, paths: u32) -> [u64; 5] {
        let of = |words: u32| u64::from(paths) * u64::from(words);
        let [state, gathered] = match self.has_copies() {
            true => [STATE, GATHERED].map(|range| of(range.end - range.start)),
            false => [0; 2],
        };
        [of(self.words()), QUEUE_HEAD + of(2), state, state, gathered]
    }

    /// How a pass of `spp` samples a pixel is cut into waves: all samples of as many pixels as there is room for, or as many
    /// samples of one.
    fn size(self, wanted: Option<DispatchSize>, spp: u32) -> DispatchSize {
        let room = self.room();
        let wanted = wanted.unwrap_or(DispatchSize {
            rays: room,
            samples: room,
        });
        let samples = wanted.samples.min(spp).clamp(1, room);
        DispatchSize {
            rays: wanted.rays.min(room / samples),
            samples,
        }
    }

    /// All kernels.
    pub(super) fn kernels(self) -> Vec<Kernel> {
        let ends = match self.has_replay {
            true => &[Kernel::BeginReplay, Kernel::ReplayPaths, Kernel::EndReplay][..],
            false => &[Kernel::EndPaths],
        };
        [self.begin()]
            .into_iter()
            .chain(self.edge())
            .chain(ends.iter().copied())
            .collect()
    }

    /// Those that take a path along an edge.
    fn edge(self) -> impl Iterator<Item = Kernel> + Clone {
        let search = self.has_tree.then_some(Kernel::SearchPaths);
        [Kernel::MeetPaths].into_iter().chain(search).chain([self.advance()])
    }

    fn begin(self) -> Kernel {
        match self.has_replay {
            true => Kernel::BeginAdjoint,
            false => Kernel::BeginPaths,
        }
    }

    fn advance(self) -> Kernel {
        match self.has_replay {
            true => Kernel::AdvanceAdjoint,
            false => Kernel::AdvancePaths,
        }
    }

    /// How many edges are kept of a path, with a place that those share which are not.
    fn places(self) -> u32 {
        match self.has_replay {
            true => self.depth.min(KEPT_EDGES + 1),
            false => 1,
        }
    }

    /// Words that are kept of a path, without copies.
    fn words(self) -> u32 {
        WORDS + NEAREST_WORDS * self.places()
    }

    /// Whether some edges are walked once more before they are replayed.
    fn has_copies(self) -> bool {
        self.has_replay && self.depth > KEPT_EDGES
    }

    /// The most paths of a wave: where an adjoint's paths have copies, other walks leave room for these, so that all of a run has the
    /// same memory at any depth.
    fn room(self) -> u32 {
        const LONG_PATH: u64 = (WORDS + NEAREST_WORDS * (KEPT_EDGES + 1)) as u64;
        const COPIES: u64 = (2 * STATE.end + GATHERED.end - GATHERED.start) as u64;
        let bytes = match self.depth > KEPT_EDGES {
            true => BYTES * LONG_PATH / (LONG_PATH + COPIES),
            false => BYTES,
        };
        (bytes / (4 * u64::from(self.words()))) as u32
    }
}

impl Gpu {
    /// Whether the paths of a scene are followed in waves.
    pub(super) fn follows_in_waves(&self, scene: &PathScene) -> bool {
        let queries = self.options.ray_queries && has_hierarchy(scene);
        self.options.waves && !queries && serve(scene) && has_buffers(&self.context.summary)
    }

    /// What does the work of a kernel, if paths are followed in waves.
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

    /// Binds what the kernels of a wave read and write.
    fn bind_in_turn(&self, turns: Turns) -> HashMap<Kernel, wgpu::BindGroup> {
        let buffers = self.ray_buffers();
        let bind = |kernel| {
            let pipeline = self.pipelines.get(kernel);
            (kernel, self.context.bind_group(pipeline, &buffers, None))
        };
        turns.kernels().into_iter().map(bind).collect()
    }

    /// Follows some samples of some pixels together.
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

/// Some samples of some pixels that are followed together.
struct Wave<'a> {
    gpu: &'a Gpu,
    waves: &'a Waves,
    turns: Turns,
    launch: Launch,
    paths: u32,
    pixels: u32,
    bound: HashMap<Kernel, wgpu::BindGroup>,
}

impl Wave<'_> {
    /// Runs kernels in turn, of which those of an adjoint keep what edges from `first` on meet.
    fn take(&self, first: u32, kernels: impl IntoIterator<Item = Kernel>) {
        let turn = |kernel: Kernel| {
            let invocations = match kernel {
                Kernel::SearchPaths => 2 * self.paths,
                Kernel::EndPaths => self.pixels,
                _ => self.paths,
            };
            Turn {
                pipeline: self.gpu.pipelines.get(kernel),
                bound: &self.bound[&kernel],
                groups: invocations.div_ceil(RAY_GROUP),
            }
        };
        let launch = Launch {
            wave_first: first,
            ..self.launch
        };
        let turns: Vec<Turn<'_>> = kernels.into_iter().map(turn).collect();
        let context = &self.gpu.context;
        context.dispatch_in_turn(bytemuck::bytes_of(&launch), &turns);
    }

    /// Walks so many edges.
    fn walk(&self, first: u32, edges: u32) {
        self.take(first, (0..edges).flat_map(|_| self.turns.edge()));
    }

    /// Copies a path's state, or what it has gathered, to one of the copies, or back.
    fn copy(&self, words: Range<u32>, copy: usize, back: bool) {
        self.waves.copy(&self.gpu.context, self.paths, words, copy, back);
    }

    /// The walk, and its replay in an adjoint.
    ///
    /// # Errors
    /// The device was lost.
    fn follow(&self) -> Result<()> {
        let turns = self.turns;
        self.take(0, [turns.begin()]);
        let mut depth = 0;
        let mut is_going_on = true;
        while depth < turns.depth && is_going_on {
            let edges = KEPT_EDGES.min(turns.depth - depth);
            self.walk(0, edges);
            depth += edges;
            is_going_on = depth < turns.depth && self.waves.paths_going_on(&self.gpu.context)? > 0;
            if is_going_on && turns.has_replay && depth == KEPT_EDGES {
                self.copy(STATE, 0, false);
            }
        }
        match turns.has_replay {
            true => self.replay(depth),
            false => self.take(0, [Kernel::EndPaths]),
        }
        Ok(())
    }

    /// The replay of paths that have walked `depth` edges at most.
    fn replay(&self, depth: u32) {
        let replays = |edges: u32| std::iter::repeat_n(Kernel::ReplayPaths, edges as usize);
        let kept = depth.min(KEPT_EDGES);
        self.take(0, [Kernel::BeginReplay].into_iter().chain(replays(kept)));
        // The state where the next edges begin is in one copy, and goes into the other where those behind them begin.
        let (mut here, mut next) = (0, 1);
        for first in (KEPT_EDGES..depth).step_by(KEPT_EDGES as usize) {
            let edges = KEPT_EDGES.min(depth - first);
            self.copy(GATHERED, 2, false);
            self.copy(STATE, here, true);
            self.walk(first, edges);
            if first + edges < depth {
                self.copy(STATE, next, false);
                // What the shadow rays behind the last edge met is known an edge later.
                self.walk(first, 1);
            }
            self.copy(STATE, here, true);
            self.copy(GATHERED, 2, true);
            self.take(first, replays(edges));
            (here, next) = (next, here);
        }
        self.take(0, [Kernel::EndReplay]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The twins of shaders, which this module alone sees.
    #[test]
    fn shaders_keep_as_many_words() {
        let shader = include_str!("../../../shaders/bind/wave.wgsl");
        let kept = [
            ("WAVE_RADIANCE", STATE.end),
            ("WAVE_RADIANCE", GATHERED.start),
            ("WAVE_ALL_BLOCKED", GATHERED.end),
            ("WAVE_NEAREST", WORDS),
            ("NEAREST_WORDS", NEAREST_WORDS),
            ("KEPT_EDGES", KEPT_EDGES),
        ];
        for (name, words) in kept {
            let declared = format!("const {name}: u32 = {words}u;");
            assert!(shader.contains(&declared), "{declared}");
        }
        let queue = include_str!("../../../shaders/bind/queue.wgsl");
        let declared = format!("const QUEUE_ENTRIES: u32 = {QUEUE_HEAD}u;");
        assert!(queue.contains(&declared), "{declared}");
    }
}
