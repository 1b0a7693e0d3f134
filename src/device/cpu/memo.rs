//! What the primal walk of an adjoint looks up is remembered for the replay that follows at once, up to a fixed number
//! of lookups a ray; beyond that the replay looks it up again. The walk does not know: it is a view like any other, and
//! the scratch of a packet has the same size however long its rays are.

use std::cell::Cell;

use super::packet::RAYS;
use crate::resident::layout::{SceneRecord, occupancy};
use crate::transport::grid::{Stencil, Stencils};
use crate::transport::radiance_field::{LANES, Lattice, Segment, View};
use crate::transport::sh::Basis;

/// Colours that are remembered for a ray.
const COLORS: usize = 256;
/// Blocks of [`LANES`] densities that are remembered for a ray.
const BLOCKS: usize = 64;

/// The scratch of a packet.
#[derive(Debug)]
pub(super) struct Memo {
    sigma: Vec<Cell<[f32; LANES]>>,
    color: Vec<Cell<[f32; 3]>>,
    /// For each ray the numbers of blocks and of colours so far.
    counts: Vec<Cell<(usize, usize)>>,
}

impl Default for Memo {
    fn default() -> Self {
        Self {
            sigma: vec![Cell::new([0.0; LANES]); RAYS * BLOCKS],
            color: vec![Cell::new([0.0; 3]); RAYS * COLORS],
            counts: vec![Cell::new((0, 0)); RAYS],
        }
    }
}

impl Memo {
    /// Back to every ray's first lookup.
    pub(super) fn rewind(&self) {
        self.counts.iter().for_each(|count| count.set((0, 0)));
    }

    /// A view that remembers (or, with `RECALL`, recalls) the lookups of a ray.
    #[inline(always)]
    pub(super) fn of<'a, V, const RECALL: bool>(&'a self, view: &'a V, ray: usize) -> Remembering<'a, V, RECALL> {
        Remembering {
            view,
            sigma: &self.sigma[ray * BLOCKS..(ray + 1) * BLOCKS],
            color: &self.color[ray * COLORS..(ray + 1) * COLORS],
            count: &self.counts[ray],
        }
    }
}

/// See [`Memo::of`].
pub(super) struct Remembering<'a, V, const RECALL: bool> {
    view: &'a V,
    sigma: &'a [Cell<[f32; LANES]>],
    color: &'a [Cell<[f32; 3]>],
    count: &'a Cell<(usize, usize)>,
}

impl<V: View<f32>, const RECALL: bool> View<f32> for Remembering<'_, V, RECALL> {
    const TWO_SIDED: bool = false;

    #[inline(always)]
    fn sigma_sampled(&self, at: &Stencil) -> f32 {
        self.sigma(at)
    }

    #[inline(always)]
    fn sigma(&self, at: &Stencil) -> f32 {
        self.view.sigma(at)
    }

    #[inline(always)]
    fn color(&self, at: &Stencil, basis: &Basis) -> [f32; 3] {
        self.view.color(at, basis)
    }

    #[inline(always)]
    fn color_of_lane(&self, at: &Stencils<LANES>, lane: usize, basis: &Basis) -> [f32; 3] {
        let (sigmas, index) = self.count.get();
        self.count.set((sigmas, index + 1));
        if index >= COLORS {
            return self.view.color_of_lane(at, lane, basis);
        }
        if !RECALL {
            self.color[index].set(self.view.color_of_lane(at, lane, basis));
        }
        self.color[index].get()
    }

    /// The primal walk visits the cells that the replay will visit, so that both make the same lookups.
    #[inline(always)]
    fn occupancy(&self, cell: u32) -> u32 {
        if self.view.occupancy(cell) & occupancy::LEARNS == 0 {
            0
        } else {
            occupancy::LEARNS | occupancy::RENDERS
        }
    }

    #[inline(always)]
    fn lattice(&self, scene: &SceneRecord, segment: &Segment, index: u32) -> Lattice {
        self.view.lattice(scene, segment, index)
    }

    #[inline(always)]
    fn stencils(&self, size: [u32; 4], p: &[[f32; LANES]; 3]) -> Stencils<LANES> {
        self.view.stencils(size, p)
    }

    #[inline(always)]
    fn opacities(&self, scene: &SceneRecord, raw_sigma: &[f32; LANES]) -> [f32; LANES] {
        self.view.opacities(scene, raw_sigma)
    }

    #[inline(always)]
    fn sigmas(&self, at: &Stencils<LANES>, live: u32) -> [f32; LANES] {
        let (block, colors) = self.count.get();
        self.count.set((block + 1, colors));
        if block >= BLOCKS {
            return self.view.sigmas(at, live);
        }
        if !RECALL {
            self.sigma[block].set(self.view.sigmas(at, live));
        }
        self.sigma[block].get()
    }

    #[inline(always)]
    fn expect_colors(&self, at: &Stencils<LANES>, live: u32) {
        if !RECALL {
            self.view.expect_colors(at, live);
        }
    }

    #[inline(always)]
    fn looks_ahead(&self) -> bool {
        !RECALL && self.view.looks_ahead()
    }

    #[inline(always)]
    fn expect_later(&self, at_sigma: &Stencils<LANES>, at_color: &Stencils<LANES>, live: u32) {
        self.view.expect_later(at_sigma, at_color, live);
    }

    #[inline(always)]
    fn emitter(&self) -> &[f32] {
        self.view.emitter()
    }
}
