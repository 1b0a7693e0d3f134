//! Derivatives by splats: a record for each tile and splat, summed splat by splat in the order of the tiles.
//!
//! A splat belongs to many tiles and a tile to one thread, so that tiles cannot add to the same splat. They write
//! records of their own; then each thread takes a range of splats through all tiles. A tile's list is in the order of
//! splats, so that a range of splats is a range of the list. Rounds of tiles bound the memory of the records.

/// Sums over a tile's pixels for one splat.
#[derive(Debug, Clone, Copy, Default, PartialEq, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
pub(super) struct Record {
    /// Sums of −p̄ times 1, u, v, uu, uv and vv, with p̄ = ᾱ α of (46) at a pixel; then the derivatives by red and
    /// green.
    pub(super) sums: [f32; 8],
    /// Derivatives by blue.
    pub(super) last: f32,
}

impl Record {
    /// Adds another tile's sums.
    #[inline(always)]
    pub(super) fn add(&mut self, other: &Self) {
        for i in 0..8 {
            self.sums[i] += other.sums[i];
        }
        self.last += other.last;
    }
}
