//! The pixels of a tile, block by block as vectors take them, and as they follow each other in the frame.

use std::ops::{Index, IndexMut};

use super::lists::TILE;
use super::shape::{ACROSS, BLOCKS, EDGE};
use crate::device::cpu::chunk::place_in_tile;
use crate::device::cpu::vector::lanes::WIDTH;

/// A number for each pixel of a tile, block by block, each in lines of the cache of its own.
#[derive(Debug, Clone, Copy, PartialEq)]
#[repr(align(64))]
pub(super) struct Plane<T>(pub(super) [[T; WIDTH]; BLOCKS]);

impl<T: Copy> Plane<T> {
    /// The same number everywhere.
    #[inline(always)]
    pub(super) fn of(x: T) -> Self {
        Self([[x; WIDTH]; BLOCKS])
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

/// Pixels of a row of a block, which follow each other in the frame.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Run {
    block: usize,
    /// The first one's lane, and its place in the chunk.
    lane: usize,
    place: usize,
    length: usize,
}

/// The rows of all blocks of a tile.
const RUNS: usize = TILE * ACROSS;

/// A row of a block, if it is among the `columns` and `rows` of the tile that lie in the picture. They are numbered
/// block by block.
#[inline(always)]
fn run(i: usize, [columns, rows]: [usize; 2]) -> Option<Run> {
    let (block, within) = (i / EDGE, i % EDGE);
    let [row, column] = [block / ACROSS * EDGE + within, block % ACROSS * EDGE];
    (row < rows && column < columns).then(|| Run {
        block,
        lane: within * EDGE,
        place: place_in_tile(column, row, [columns, rows]),
        length: EDGE.min(columns - column),
    })
}

/// Writes planes, a channel each, to the pixels of a chunk.
#[inline(always)]
pub(super) fn write<const C: usize>(planes: [&Plane<f32>; C], inside: [usize; 2], pixels: &mut [[f32; C]]) {
    // Compilers make vectors of runs whose lengths they know.
    match inside {
        [TILE, TILE] => write_runs(planes, [TILE; 2], &mut pixels[..TILE * TILE]),
        _ => write_runs(planes, inside, pixels),
    }
}

#[inline(always)]
fn write_runs<const C: usize>(planes: [&Plane<f32>; C], inside: [usize; 2], pixels: &mut [[f32; C]]) {
    for i in 0..RUNS {
        let Some(run) = run(i, inside) else { continue };
        for i in 0..run.length {
            for c in 0..C {
                pixels[run.place + i][c] = planes[c][run.block][run.lane + i];
            }
        }
    }
}

/// Reads the channels of the pixels of a chunk, a plane each; what is not in the picture stays as it is.
#[inline(always)]
pub(super) fn read<const C: usize>(pixels: &[[f32; C]], inside: [usize; 2], planes: &mut [Plane<f32>; C]) {
    match inside {
        [TILE, TILE] => read_runs(&pixels[..TILE * TILE], [TILE; 2], planes),
        _ => read_runs(pixels, inside, planes),
    }
}

#[inline(always)]
fn read_runs<const C: usize>(pixels: &[[f32; C]], inside: [usize; 2], planes: &mut [Plane<f32>; C]) {
    for i in 0..RUNS {
        let Some(run) = run(i, inside) else { continue };
        for i in 0..run.length {
            for c in 0..C {
                planes[c][run.block][run.lane + i] = pixels[run.place + i][c];
            }
        }
    }
}

/// One for pixels in the picture, else zero.
#[inline(always)]
pub(super) fn ones(inside: [usize; 2]) -> Plane<f32> {
    if inside == [TILE; 2] {
        return Plane::of(1.0);
    }
    let mut plane = [Plane::of(0.0)];
    read(&[[1.0]; TILE * TILE], inside, &mut plane);
    plane[0]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn planes_hold_every_pixel_once_where_it_is() {
        for inside in [[16, 16], [5, 16], [16, 3], [1, 1], [13, 14]] {
            let [columns, rows] = inside;
            let mut pixels = vec![[0.0; 2]; TILE * TILE];
            for y in 0..rows {
                for x in 0..columns {
                    pixels[place_in_tile(x, y, inside)] = [1.0 + x as f32, 1.0 + y as f32];
                }
            }
            let mut planes = [Plane::of(0.0); 2];
            read(&pixels, inside, &mut planes);
            let is_in = ones(inside);
            for block in 0..BLOCKS {
                for lane in 0..WIDTH {
                    let [x, y] = [block % 4 * 4 + lane % 4, block / 4 * 4 + lane / 4];
                    let expected = match x < columns && y < rows {
                        true => [1.0 + x as f32, 1.0 + y as f32, 1.0],
                        false => [0.0; 3],
                    };
                    let found = [planes[0][block][lane], planes[1][block][lane], is_in[block][lane]];
                    assert_eq!(found, expected, "{inside:?}, column {x}, row {y}");
                }
            }
            let mut written = vec![[0.0; 2]; TILE * TILE];
            write([&planes[0], &planes[1]], inside, &mut written);
            assert_eq!(written, pixels, "{inside:?}");
        }
    }
}
