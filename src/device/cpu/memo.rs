//! What the primal walk of an adjoint looks up is remembered for the replay that follows at once, up to a fixed number
//! of lookups a ray; beyond that the replay looks it up again. The walk does not know: it is a view like any other, and
//! the scratch of a packet has the same size however long its rays are.

use std::cell::Cell;

use super::packet::RAYS;
use crate::resident::layout::{SceneRecord, occupancy};
use crate::transport::grid::{Stencil, Stencils};
use crate::transport::radiance_field::{LANES, Lattice, Segment, View};
use crate::transport::sh::Basis;

/// Lookups of each kind that are remembered for a ray.
const CAPACITY: usize = 256;

/// The scratch of a packet.
#[derive(Debug)]
pub(super) struct Memo {
    sigma: Vec<Cell<f32>>,
    color: Vec<Cell<[f32; 3]>>,
    /// For each ray the number of lookups so far.
    counts: Vec<Cell<(usize, usize)>>,
}

impl Default for Memo {
    fn default() -> Self {
        Self {
            sigma: vec![Cell::new(0.0); RAYS * CAPACITY],
            color: vec![Cell::new([0.0; 3]); RAYS * CAPACITY],
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
        let range = ray * CAPACITY..(ray + 1) * CAPACITY;
        Remembering {
            view,
            sigma: &self.sigma[range.clone()],
            color: &self.color[range],
            count: &self.counts[ray],
        }
    }
}

/// See [`Memo::of`].
pub(super) struct Remembering<'a, V, const RECALL: bool> {
    view: &'a V,
    sigma: &'a [Cell<f32>],
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
        let (index, colors) = self.count.get();
        self.count.set((index + 1, colors));
        if index >= CAPACITY {
            return self.view.sigma(at);
        }
        if !RECALL {
            self.sigma[index].set(self.view.sigma(at));
        }
        self.sigma[index].get()
    }

    #[inline(always)]
    fn color(&self, at: &Stencil, basis: &Basis) -> [f32; 3] {
        let (sigmas, index) = self.count.get();
        self.count.set((sigmas, index + 1));
        if index >= CAPACITY {
            return self.view.color(at, basis);
        }
        if !RECALL {
            self.color[index].set(self.view.color(at, basis));
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
    fn expect_color(&self, at: &Stencil) {
        if !RECALL {
            self.view.expect_color(at);
        }
    }

    #[inline(always)]
    fn emitter(&self) -> &[f32] {
        self.view.emitter()
    }
}
