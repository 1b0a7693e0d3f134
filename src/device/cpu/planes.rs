//! Planes: a number for each pixel of a tile, in blocks of 4 × 4 pixels that each fill a vector; a channel is a plane.

use std::ops::{Index, IndexMut};

use super::vector::lanes::WIDTH;

/// Edge of a tile in pixels.
pub(super) const TILE: usize = 16;

/// Edge of a block in pixels.
pub(super) const EDGE: usize = 4;

/// Blocks along an edge of a tile.
pub(super) const ACROSS: usize = TILE / EDGE;

/// Blocks of a tile: as many as a vector has lanes, so that one vector can hold a number for each block.
pub(super) const BLOCKS: usize = ACROSS * ACROSS;
const _: () = assert!(BLOCKS == WIDTH && EDGE * EDGE == WIDTH && ACROSS == EDGE);

/// A number for each pixel of a tile, block by block, each in a line of the cache of its own.
#[derive(Debug, Clone, Copy, PartialEq)]
#[repr(align(64))]
pub(super) struct Plane<T>(pub(super) [[T; WIDTH]; BLOCKS]);

// SAFETY: floats without padding, for which every bit pattern is valid.
unsafe impl bytemuck::Zeroable for Plane<f32> {}
// SAFETY: as above.
unsafe impl bytemuck::Pod for Plane<f32> {}
const _: () = assert!(size_of::<Plane<f32>>() == 4 * WIDTH * BLOCKS);

impl<T: Copy> Plane<T> {
    /// The same number everywhere.
    #[inline(always)]
    pub(super) const fn of(x: T) -> Self {
        Self([[x; WIDTH]; BLOCKS])
    }

    /// The number of a pixel, counted block by block.
    #[inline(always)]
    pub(super) fn pixel(&self, index: usize) -> T {
        self.0[index / WIDTH][index % WIDTH]
    }

    /// [`Self::pixel`], to be written.
    #[inline(always)]
    pub(super) fn pixel_mut(&mut self, index: usize) -> &mut T {
        &mut self.0[index / WIDTH][index % WIDTH]
    }
}

impl<T> Index<usize> for Plane<T> {
    type Output = [T; WIDTH];

    #[inline(always)]
    fn index(&self, block: usize) -> &[T; WIDTH] {
        &self.0[block]
    }
}

impl<T> IndexMut<usize> for Plane<T> {
    #[inline(always)]
    fn index_mut(&mut self, block: usize) -> &mut [T; WIDTH] {
        &mut self.0[block]
    }
}

/// Block and lane of a pixel of a tile.
#[inline(always)]
pub(super) fn place(column: usize, row: usize) -> (usize, usize) {
    let block = row / EDGE * ACROSS + column / EDGE;
    (block, row % EDGE * EDGE + column % EDGE)
}

/// One for the pixels of a tile that lie in the picture, its first `columns` and `rows`; else zero.
#[inline(always)]
pub(super) fn ones([columns, rows]: [usize; 2]) -> Plane<f32> {
    if [columns, rows] == [TILE; 2] {
        return Plane::of(1.0);
    }
    let mut plane = Plane::of(0.0);
    for row in 0..rows {
        for column in 0..columns {
            let (block, lane) = place(column, row);
            plane[block][lane] = 1.0;
        }
    }
    plane
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn planes_hold_every_pixel_once_where_it_is() {
        for inside in [[16, 16], [5, 16], [16, 3], [1, 1], [13, 14]] {
            let mut left = ones(inside);
            assert_eq!(
                left.0.as_flattened().iter().sum::<f32>(),
                (inside[0] * inside[1]) as f32
            );
            for row in 0..inside[1] {
                for column in 0..inside[0] {
                    let (block, lane) = place(column, row);
                    let [x, y] = [block % 4 * 4 + lane % 4, block / 4 * 4 + lane / 4];
                    assert_eq!([x, y], [column, row]);
                    assert_eq!(
                        std::mem::take(&mut left[block][lane]),
                        1.0,
                        "{inside:?}: {column}, {row}"
                    );
                }
            }
            assert_eq!(left, Plane::of(0.0));
        }
    }
}
