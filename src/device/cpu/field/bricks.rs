//! The lattice of bricks in which the gradients of the grids are summed.

use std::ops::Range;

use crate::each::EachEntry;
use crate::resident::layout::SceneRecord;
use crate::transport::lookup::grid::index_below;

/// Bits of a key that tell the cells of a brick apart, three an axis: cells are the cubes between texel centres. Where
/// a brick is wider than eight cells some share a key, which costs time and nothing else.
pub(in crate::device::cpu) const CELL_BITS: u32 = 9;

/// The lattice of bricks, the same for both grids. Along each axis a brick has at least three texels of either grid, so that
/// two bricks with a third between them share no texel.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::device::cpu) struct Bricks {
    pub(in crate::device::cpu) count: [u32; 3],
    /// Texels of the colour grid.
    pub(in crate::device::cpu) texels: [u32; 3],
    /// Half a texel of the colour grid, in bricks: bricks begin where cells do.
    pub(in crate::device::cpu) shift: [f32; 3],
}

impl Bricks {
    pub(in crate::device::cpu) fn new(scene: &SceneRecord) -> Self {
        let along = |axis: usize| {
            let texels = scene.sigma_size[axis].min(scene.sh_size[axis]);
            let edge = if texels >= 64 { 8 } else { 4 };
            // 32 per axis keep the brick's index within 15 bits of a key.
            (texels / edge).clamp(1, 32)
        };
        let [x, y, z, _] = scene.sh_size;
        let (count, texels) = ([along(0), along(1), along(2)], [x, y, z]);
        Self {
            count,
            texels,
            shift: [0, 1, 2].each(|axis| 0.5 * count[axis] as f32 / texels[axis] as f32),
        }
    }

    pub(in crate::device::cpu) fn len(self) -> usize {
        self.count.iter().product::<u32>() as usize
    }

    /// Sort keys of records at the places `p`, an array for each axis: the brick that holds each place, and in the low
    /// [`CELL_BITS`] the cell of the colour grid, x fastest.
    #[inline(always)]
    pub(in crate::device::cpu) fn keys<const N: usize>(self, p: &[[f32; N]; 3]) -> [u32; N] {
        let (mut brick, mut cell) = ([[0; N]; 3], [[0; N]; 3]);
        for axis in 0..3 {
            let (count, texels) = (self.count[axis], self.texels[axis]);
            for i in 0..N {
                brick[axis][i] = index_below(p[axis][i] * count as f32 + self.shift[axis], count - 1);
                cell[axis][i] = index_below(p[axis][i] * texels as f32 + 0.5, texels) & 7;
            }
        }
        let mut keys = [0; N];
        for i in 0..N {
            let brick = (brick[2][i] * self.count[1] + brick[1][i]) * self.count[0] + brick[0][i];
            keys[i] = brick << CELL_BITS | cell[2][i] << 6 | cell[1][i] << 3 | cell[0][i];
        }
        keys
    }

    /// The rows of bricks along x of one of four colours, each as the range of its bricks.
    pub(in crate::device::cpu) fn of_color(self, color: u32) -> Vec<Range<u32>> {
        let [nx, ny, nz] = self.count;
        let mut all = Vec::new();
        for z in (color >> 1..nz).step_by(2) {
            for y in (color & 1..ny).step_by(2) {
                let first = (z * ny + y) * nx;
                all.push(first..first + nx);
            }
        }
        all
    }
}
