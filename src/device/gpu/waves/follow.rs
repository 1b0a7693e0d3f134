//! The sequence of kernels that follow the paths of a wave.

use std::collections::HashMap;

use super::Waves;
use super::turns::{KEPT_EDGES, Turns};
use crate::device::Result;
use crate::device::gpu::Gpu;
use crate::device::gpu::context::Turn;
use crate::device::gpu::records::{Launch, RAY_GROUP};
use crate::device::gpu::shaders::Kernel;

/// A wave: the paths of some samples of some pixels, which are followed together.
pub(super) struct Wave<'a> {
    pub(super) gpu: &'a Gpu,
    pub(super) waves: &'a Waves,
    pub(super) turns: Turns,
    pub(super) launch: Launch,
    pub(super) paths: u32,
    pub(super) pixels: u32,
    /// The bind group of each kernel.
    pub(super) bound: HashMap<Kernel, wgpu::BindGroup>,
}

impl Wave<'_> {
    /// Runs kernels in turn; those of an adjoint keep the intersections of edges from `first` on.
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
        // Kernels number invocations by the length of the launch's rows.
        assert!(
            turns.iter().all(|turn| turn.groups <= self.gpu.context.max_groups),
            "a wave is a row of workgroups"
        );
        let context = &self.gpu.context;
        context.dispatch_in_turn(bytemuck::bytes_of(&launch), &turns);
    }

    /// Advances all paths by this many edges.
    fn walk(&self, first: u32, edges: u32) {
        self.take(first, (0..edges).flat_map(|_| self.turns.edge()));
    }

    /// Copies the paths' state to one of the copies, or back.
    fn copy(&self, copy: usize, back: bool) {
        self.waves.copy(&self.gpu.context, self.paths, copy, back);
    }

    /// The walk, and its replay in an adjoint.
    ///
    /// # Errors
    /// The device was lost.
    pub(super) fn follow(&self) -> Result<()> {
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
                self.copy(0, false);
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
        // One copy holds the state before the next edges; the state behind these goes into the other.
        let (mut here, mut next) = (0, 1);
        for first in (KEPT_EDGES..depth).step_by(KEPT_EDGES as usize) {
            let edges = KEPT_EDGES.min(depth - first);
            self.copy(here, true);
            self.walk(first, edges);
            if first + edges < depth {
                self.copy(next, false);
                // Whether the shadow rays of the last edge are blocked is known an edge later.
                self.walk(first, 1);
            }
            self.copy(here, true);
            self.take(first, replays(edges));
            (here, next) = (next, here);
        }
        self.take(0, [Kernel::EndReplay]);
    }
}
