//! The kernels of a wave, and how large it is.

use crate::device::gpu::contents::has_hierarchy;
use crate::device::gpu::pieces::DispatchSize;
use crate::device::gpu::records::RAY_GROUP;
use crate::device::gpu::shaders::Kernel;
use crate::resident::layout::surfaces_only;
use crate::resident::paths::PathScene;

/// The most edges of a path whose intersections an adjoint keeps at a time. After as many edges the host asks whether any path
/// goes on.
pub(super) const KEPT_EDGES: u32 = 16;
/// Words of a part of a path's data in a wave, and the number of parts that are its state; the next part is what it has gathered.
pub(super) const PART_WORDS: u32 = 13;
pub(super) const STATE_PARTS: u32 = 3;
/// Words of an edge's intersection, and how many edges a part holds.
const EDGE_WORDS: u32 = 6;
const PART_EDGES: u32 = PART_WORDS / EDGE_WORDS;
/// Words of the radiance that a primal pass gathers.
const RADIANCE_WORDS: u32 = 3;
/// Words of a queue before its entries: their number, the number of paths that go on or wait, and that number an edge ago.
const QUEUE_HEAD: u64 = 3;
/// The most bytes that waves take beside a queue, which every adapter gives a shader.
const BYTES: u64 = 64 << 20;
/// The most samples of a pixel in a wave, which one invocation adds up: Mesa's software driver ends longer loops silently.
const MOST_SAMPLES: u32 = 1 << 12;

/// Whether a scene suits waves: it has no media and an integrator without them, emitters are not hidden, and paths scatter
/// only at surfaces that do not move.
pub(super) fn suits(scene: &PathScene) -> bool {
    let settings = &scene.settings;
    let among_surfaces =
        scene.media.is_empty() && settings.surfaces_only != surfaces_only::NO && settings.hide_emitters == 0;
    let still = !scene.attached && scene.rest.motions.is_empty();
    among_surfaces && still && settings.max_depth > 0
}

/// Bytes of the waves in which a GPU follows the paths of a scene, if it does, with so many pixels, and samples of each in
/// primal and adjoint passes. Pictures that are only looked at are not counted: they take a sample of each pixel at a time.
pub fn wave_bytes(scene: &PathScene, pixels: u32, [spp, spp_grad]: [u32; 2]) -> Option<u64> {
    let walk = |has_replay: bool, spp: u32| {
        let turns = Turns::of(scene, has_replay);
        let size = turns.size(None, spp);
        turns.words_of(size.rays.min(pixels) * size.samples)
    };
    (suits(scene) && pixels > 0).then(|| {
        let [primal, adjoint] = [walk(false, spp), walk(true, spp_grad)];
        4 * primal.iter().zip(&adjoint).map(|(a, b)| a.max(b)).sum::<u64>()
    })
}

/// The kernels of waves that do the work of one kernel in turn: a walk, and in an adjoint its replay.
#[derive(Debug, Clone, Copy)]
pub(in crate::device::gpu) struct Turns {
    pub(super) has_replay: bool,
    /// Whether there is a tree that is searched.
    has_tree: bool,
    /// The most edges of a path.
    pub(super) depth: u32,
}

impl Turns {
    /// The kernels of a scene's primal pass, or of its adjoint.
    pub(super) fn of(scene: &PathScene, has_replay: bool) -> Self {
        Self {
            has_replay,
            has_tree: has_hierarchy(scene),
            depth: scene.settings.max_depth,
        }
    }

    /// Words of the buffers of a wave of so many paths: the paths' data, the queue, and the two copies of states.
    pub(super) fn words_of(self, paths: u32) -> [u64; 4] {
        // Workgroups of paths are kept as a whole.
        let of = |words: u32| u64::from(paths.next_multiple_of(RAY_GROUP)) * u64::from(words);
        let state = match self.has_copies() {
            true => of(PART_WORDS * STATE_PARTS),
            false => 0,
        };
        [of(self.words()), QUEUE_HEAD + of(2), state, state]
    }

    /// Where the first kept edge lies in a wave of so many paths: its part, and a word in it. In primal passes it takes the place
    /// of data that only adjoints gather.
    pub(super) fn edges_at(self, paths: u32) -> [u32; 2] {
        let groups = paths.div_ceil(RAY_GROUP);
        match self.has_replay {
            true => [groups * (STATE_PARTS + 1), 0],
            false => [groups * STATE_PARTS, RADIANCE_WORDS],
        }
    }

    /// How a pass of `spp` samples a pixel is cut into waves: all samples of as many pixels as there is room for, or as many
    /// samples of one.
    pub(super) fn size(self, wanted: Option<DispatchSize>, spp: u32) -> DispatchSize {
        let room = self.room();
        let wanted = wanted.unwrap_or(DispatchSize {
            rays: room,
            samples: room,
        });
        let samples = wanted.samples.min(spp).clamp(1, room.min(MOST_SAMPLES));
        DispatchSize {
            rays: wanted.rays.min(room / samples),
            samples,
        }
    }

    /// All kernels.
    pub(in crate::device::gpu) fn kernels(self) -> Vec<Kernel> {
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

    /// The kernels that advance paths by an edge.
    pub(super) fn edge(self) -> impl Iterator<Item = Kernel> + Clone {
        let search = self.has_tree.then_some(Kernel::SearchPaths);
        [Kernel::MeetPaths].into_iter().chain(search).chain([self.advance()])
    }

    pub(super) fn begin(self) -> Kernel {
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

    /// Places for a path's edges: one for each that is kept, and for longer paths one that all other edges share.
    pub(super) fn places(self) -> u32 {
        match self.has_replay {
            true => self.depth.min(KEPT_EDGES + 1),
            false => 1,
        }
    }

    /// Words that are kept of a path, without copies.
    fn words(self) -> u32 {
        let of_edges = match self.has_replay {
            true => self.places().div_ceil(PART_EDGES),
            false => 0,
        };
        PART_WORDS * (STATE_PARTS + 1 + of_edges)
    }

    /// Whether some edges are walked once more before they are replayed.
    fn has_copies(self) -> bool {
        self.has_replay && self.depth > KEPT_EDGES
    }

    /// The most paths of a wave. Where paths may be so long that an adjoint needs copies, primal passes leave room for these as
    /// well, so that a run takes the same memory at any depth.
    fn room(self) -> u32 {
        const LONG_PATH: u64 = (PART_WORDS * (STATE_PARTS + 1 + (KEPT_EDGES + 1).div_ceil(PART_EDGES))) as u64;
        const COPIES: u64 = (2 * PART_WORDS * STATE_PARTS) as u64;
        let bytes = match self.depth > KEPT_EDGES {
            true => BYTES * LONG_PATH / (LONG_PATH + COPIES),
            false => BYTES,
        };
        (bytes / (4 * u64::from(self.words()))) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// To within a twentieth, in waves of many paths.
    #[test]
    fn waves_take_the_same_memory_at_any_depth() {
        let taken = |depth| {
            let words = [false, true].map(|has_replay| {
                let turns = Turns {
                    has_replay,
                    has_tree: true,
                    depth,
                };
                turns.words_of(turns.room())
            });
            let most = words[0].iter().zip(&words[1]).map(|(a, b)| a.max(b));
            4 * most.sum::<u64>()
        };
        for depth in [1, 4, 8, 16, 17, 64, 1024, u32::MAX] {
            let ratio = taken(depth) as f64 / taken(16) as f64;
            assert!((0.95..=1.05).contains(&ratio), "{depth}: {ratio}");
        }
    }

    /// Parameters are cut so that the adjoint in one kernel can bind them, and so all kernels of a wave.
    #[test]
    fn waves_bind_no_more_than_one_kernel() {
        for has_replay in [false, true] {
            let turns = Turns {
                has_replay,
                has_tree: true,
                depth: 40,
            };
            for kernel in turns.kernels() {
                assert!(
                    kernel.other_buffers() <= Kernel::BackpropagatePaths.other_buffers(),
                    "{kernel:?}"
                );
            }
        }
    }

    /// Constants that are private to this module have the same values in the shaders.
    #[test]
    fn shaders_keep_as_many_words() {
        let shader = include_str!("../../../../shaders/bind/wave.wgsl");
        let kept = [
            ("WAVE_RADIANCE", PART_WORDS * STATE_PARTS),
            ("WAVE_RADIANCE_LOW", PART_WORDS * STATE_PARTS + RADIANCE_WORDS),
            ("WAVE_GATHERED", PART_WORDS * STATE_PARTS + RADIANCE_WORDS + EDGE_WORDS),
            ("STATE_PARTS", STATE_PARTS),
            ("PART_WORDS", PART_WORDS),
            ("EDGE_WORDS", EDGE_WORDS),
            ("PART_EDGES", PART_EDGES),
            ("KEPT_EDGES", KEPT_EDGES),
        ];
        for (name, words) in kept {
            let declared = format!("const {name}: u32 = {words}u;");
            assert!(shader.contains(&declared), "{declared}");
        }
        let queue = include_str!("../../../../shaders/bind/queue.wgsl");
        let declared = format!("const QUEUE_ENTRIES: u32 = {QUEUE_HEAD}u;");
        assert!(queue.contains(&declared), "{declared}");
    }
}
