//! State of the passes over a radiance field, and the rebuilding of its occupancy grid.

use rayon::prelude::*;

use super::bricks::Bricks;
use super::ranks::{Shares, count_changed, weights};
use super::records::Replays;
use crate::device::cpu::passes::Inputs;
use crate::device::cpu::update::Updates;
use crate::each::EachEntry;
use crate::kernels::occupancy::reachable;
use crate::resident::field::{FieldScene, FieldSlots};
use crate::resident::layout::{density, occupancy};
use crate::transport::lookup::sh::Basis;

/// The passes over a radiance field.
#[derive(Debug)]
pub(in crate::device::cpu) struct FieldPasses {
    pub(in crate::device::cpu) scene: FieldScene,
    pub(super) occupancy: Vec<u8>,
    pub(super) replays: Vec<Replays>,
    /// Spherical harmonics of the directions of a round's rays.
    pub(super) bases: Vec<Basis>,
    /// Which of several ranks sums and steps which texels; None for a single rank.
    pub(super) shares: Option<Shares>,
    /// Number of this rank's records in each layer of bricks since the balance of ranks was last checked.
    pub(super) records: Vec<u64>,
    /// Steps since the grids were new.
    steps: u32,
}

/// Steps between checks of how evenly ranks share the work; new grids are checked after 1, 2, 4 … steps as well.
const LOOK_EVERY: u32 = 32;

/// Grids are dealt out anew if that would divide the work of the busiest rank by more than this.
const UNEVEN: f64 = 1.05;

impl FieldPasses {
    /// Passes over a field whose occupancy is not known yet.
    pub(in crate::device::cpu) fn new(scene: FieldScene) -> Self {
        Self {
            scene,
            occupancy: Vec::new(),
            replays: Vec::new(),
            bases: Vec::new(),
            shares: None,
            records: Vec::new(),
            steps: 0,
        }
    }

    /// Deals the grids out to several ranks evenly, when they are new.
    pub(in crate::device::cpu) fn deal_evenly(&mut self, inputs: &Inputs, updates: &mut Updates) {
        self.shares = None;
        self.records.clear();
        self.steps = 0;
        self.deal(inputs, updates);
    }

    /// Counts a step, and now and then deals the grids out to several ranks anew, if the places of records have changed. All
    /// gradients must be zero.
    pub(in crate::device::cpu) fn deal_after_step(&mut self, inputs: &Inputs, updates: &mut Updates) {
        self.steps += 1;
        if self.steps.is_power_of_two() || self.steps.is_multiple_of(LOOK_EVERY) {
            self.deal(inputs, updates);
        }
    }

    fn deal(&mut self, inputs: &Inputs, updates: &mut Updates) {
        let cluster = inputs.cluster;
        let Some(FieldSlots { sigma_t, sh_coeffs }) = self.scene.slots.filter(|_| !cluster.is_single()) else {
            return;
        };
        let bricks = Bricks::new(&inputs.scene);
        self.records.resize(bricks.count[2] as usize, 0);
        let all = cluster.gather(&self.records);
        let of_layer = |z: usize| all.iter().skip(z).step_by(self.records.len()).sum();
        let records: Vec<u64> = (0..self.records.len()).map(of_layer).collect();
        self.records.fill(0);
        let sizes = [inputs.scene.sigma_size, inputs.scene.sh_size];
        let mut changed = vec![0; records.len()];
        for (slot, size) in [sigma_t, sh_coeffs].into_iter().zip(sizes) {
            count_changed(bricks, size, updates.changed_blocks(slot), &mut changed);
        }
        let weights = weights(&records, &changed);
        let [texels, other] = sizes.map(|size| size[2]);
        let shares = Shares::new(cluster, bricks, texels.min(other), &weights);
        let is_even = |before: &Shares| before.heaviest(&weights) <= UNEVEN * shares.heaviest(&weights);
        if self
            .shares
            .as_ref()
            .is_some_and(|before| before.are_of(bricks) && is_even(before))
        {
            return;
        }
        for (slot, size) in [sigma_t, sh_coeffs].into_iter().zip(sizes) {
            updates.deal(slot, cluster, shares.entries(size));
        }
        self.shares = Some(shares);
    }

    /// Rebuilds the occupancy grid: separable maxima over the texels that each cell can reach.
    pub(in crate::device::cpu) fn rebuild(&mut self, inputs: &Inputs) {
        let Some(slots) = self.scene.slots else { return };
        let scene = &inputs.scene;
        let [cx, cy, cz] = [0, 1, 2].each(|a| scene.occupancy_size[a] as usize);
        self.occupancy.clear();
        if scene.density_activation != density::RELU {
            self.occupancy
                .resize(cx * cy * cz, (occupancy::RENDERS | occupancy::LEARNS) as u8);
            return;
        }
        let [nx, ny, nz] = [0, 1, 2].each(|a| scene.sigma_size[a] as usize);
        let ranges = [(cx, nx), (cy, ny), (cz, nz)].map(|(cells, texels)| {
            (0..cells)
                .map(|cell| reachable(cell, cells, texels))
                .collect::<Vec<_>>()
        });
        let values = &inputs.params.parameters[slots.sigma_t].values;
        let mut rows = vec![0f32; nz * ny * cx];
        rows.par_chunks_mut(ny * cx)
            .zip(values.par_chunks(ny * nx))
            .for_each(|(out, slice)| {
                for (out, row) in out.chunks_mut(cx).zip(slice.chunks(nx)) {
                    for (out, &(first, last)) in out.iter_mut().zip(&ranges[0]) {
                        *out = row[first..=last].iter().fold(f32::NEG_INFINITY, |a, b| a.max(*b));
                    }
                }
            });
        let fold = |rows: &[f32], stride: usize, first: usize, last: usize, out: &mut [f32]| {
            out.fill(f32::NEG_INFINITY);
            for i in first..=last {
                for (o, v) in out.iter_mut().zip(&rows[i * stride..(i + 1) * stride]) {
                    *o = o.max(*v);
                }
            }
        };
        let mut slices = vec![0f32; nz * cy * cx];
        slices
            .par_chunks_mut(cy * cx)
            .zip(rows.par_chunks(ny * cx))
            .for_each(|(out, rows)| {
                for (out, &(first, last)) in out.chunks_mut(cx).zip(&ranges[1]) {
                    fold(rows, cx, first, last, out);
                }
            });
        let mut cells = vec![0f32; cx * cy];
        for &(first, last) in &ranges[2] {
            fold(&slices, cx * cy, first, last, &mut cells);
            self.occupancy.extend(cells.iter().map(|m| {
                let renders = if *m > 0.0 { occupancy::RENDERS } else { 0 };
                let learns = if *m >= 0.0 { occupancy::LEARNS } else { 0 };
                (renders | learns) as u8
            }));
        }
    }

    pub(in crate::device::cpu) fn bytes(&self) -> u64 {
        let replays: usize = self.replays.iter().map(Replays::bytes).sum();
        (self.occupancy.len() + replays + size_of_val(&self.bases[..])) as u64
    }
}
