//! The lattice of bricks in which the gradients of the grids are summed.

use super::step::Activity;
use crate::kernels::occupancy::reachable;
use crate::resident::layout::SceneRecord;
use crate::transport::grid::index_below;

/// Bits of a key that tell the cells of a brick apart, four an axis: cells are the cubes between texel centres. Where a
/// brick is wider than 16 cells some share a key, which costs time and nothing else.
pub(super) const CELL_BITS: u32 = 12;

/// The lattice of bricks: the same for both grids, and along each axis at least three texels of either a brick, so that
/// bricks two apart share no texel.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bricks {
    count: [u32; 3],
    /// Texels of the colour grid.
    texels: [u32; 3],
}

impl Bricks {
    pub(super) fn new(scene: &SceneRecord) -> Self {
        let along = |axis: usize| {
            let texels = scene.sigma_size[axis].min(scene.sh_size[axis]);
            let edge = if texels >= 64 { 8 } else { 4 };
            // 32 per axis keep the brick's index within 15 bits of a key.
            (texels / edge).clamp(1, 32)
        };
        let [x, y, z, _] = scene.sh_size;
        Self {
            count: [along(0), along(1), along(2)],
            texels: [x, y, z],
        }
    }

    pub(super) fn len(self) -> usize {
        self.count.iter().product::<u32>() as usize
    }

    /// What records are sorted by: the brick that holds `p`, and in its low [`CELL_BITS`] the cell of the colour grid, x
    /// fastest.
    #[inline(always)]
    pub(super) fn key(self, p: [f32; 3]) -> u32 {
        let (mut brick, mut cell) = ([0; 3], [0; 3]);
        for axis in 0..3 {
            brick[axis] = index_below(p[axis] * self.count[axis] as f32, self.count[axis] - 1);
            cell[axis] = index_below(p[axis] * self.texels[axis] as f32 + 0.5, self.texels[axis]) & 15;
        }
        let brick = (brick[2] * self.count[1] + brick[1]) * self.count[0] + brick[0];
        brick << CELL_BITS | cell[2] << 8 | cell[1] << 4 | cell[0]
    }

    /// Takes note that a brick's texels, in a grid of `size`, may have received gradients.
    pub(super) fn touch(self, brick: u32, size: [u32; 4], channels: usize, activity: &Activity) {
        if activity.is_empty() {
            return;
        }
        let [nx, ny, _] = self.count;
        let place = [brick % nx, brick / nx % ny, brick / (nx * ny)];
        let reach = |a: usize| reachable(place[a] as usize, self.count[a] as usize, size[a] as usize);
        let ((x0, x1), (y0, y1), (z0, z1)) = (reach(0), reach(1), reach(2));
        let [width, height] = [size[0] as usize, size[1] as usize];
        for z in z0..=z1 {
            for y in y0..=y1 {
                let row = (z * height + y) * width;
                activity.touch((row + x0) * channels..(row + x1 + 1) * channels);
            }
        }
    }

    /// The bricks of one of eight colours.
    pub(super) fn of_color(self, color: u32) -> Vec<u32> {
        let [nx, ny, nz] = self.count;
        let mut all = Vec::new();
        for z in (color >> 2..nz).step_by(2) {
            for y in ((color >> 1) & 1..ny).step_by(2) {
                for x in (color & 1..nx).step_by(2) {
                    all.push((z * ny + y) * nx + x);
                }
            }
        }
        all
    }
}
